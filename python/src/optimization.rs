//! An optimization in memory.

use std::sync::{Arc, Mutex};

use boscage::Method;
use boscage_study::{Definition, MethodChoice, StudySpace, Values};
use pyo3::prelude::*;
use serde_json::{Map, Value as Json, json};

use crate::errors::Failure;
use crate::explanation::Explanation;
use crate::{Shared, locked, long, long_or_undone, short, short_with};

/// A definition from what Python gives.
pub(crate) fn definition(
    space: &str,
    goal: &str,
    method: &str,
    seed: u64,
) -> Result<Definition, Failure> {
    let space: StudySpace = read("space", space)?;
    let mut definition = Definition::new(space)?;
    definition.goal = read("goal", &Json::from(goal).to_string())?;
    definition.choice = read::<MethodChoice>("method", method)?;
    definition.method = definition.choice.resolve()?;
    definition.seed = seed;
    definition.validate()?;
    Ok(definition)
}

/// JSON from Python, with a name for messages.
pub(crate) fn read<T: serde::de::DeserializeOwned>(what: &str, json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|error| {
        // Places in a text that the user has never seen say nothing.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or(&text);
        Failure::Value(format!("{what}: {text}"))
    })
}

/// Values from a JSON object; all must be there that have to be.
pub(crate) fn values(space: &StudySpace, json: &str) -> Result<Values, Failure> {
    let object: Map<String, Json> = read("values", json)?;
    Ok(space.partial_from_json(&object)?)
}

/// A space in its own words, if it makes sense.
#[pyfunction]
pub(crate) fn space(py: Python<'_>, space: String) -> PyResult<String> {
    short(py, move || {
        let space: StudySpace = read("space", &space)?;
        Ok(serde_json::to_string(&space)?)
    })
}

/// A space from another tool's file, in our words.
#[pyfunction]
pub(crate) fn import_space(py: Python<'_>, text: String, format: String) -> PyResult<String> {
    use boscage_study::import::{self, Format};
    short(py, move || {
        let format = match format.as_str() {
            "irace" => Format::Irace,
            "pcs" => Format::Pcs,
            "configspace" => Format::ConfigSpace,
            "optuna" => Format::Optuna,
            other => return Err(Failure::Value(format!("{other:?} is no format of spaces"))),
        };
        let imported = import::read(&text, Some(format), "the space")?;
        let space = json!({"parameters": imported.parameters, "forbidden": imported.forbidden, "notes": imported.notes});
        Ok(space.to_string())
    })
}

/// The names of all methods, each with what it stands for.
#[pyfunction]
pub(crate) fn method_names() -> Vec<(&'static str, &'static str)> {
    Method::NAMES.iter().map(|named| (named.name, named.summary)).collect()
}

/// All settings of a method, as JSON.
#[pyfunction]
pub(crate) fn method_settings(py: Python<'_>, name: String) -> PyResult<String> {
    short(py, move || Ok(serde_json::to_string(&boscage_study::describe(&name)?)?))
}

/// An optimization in memory.
#[pyclass(frozen, module = "boscage._native")]
pub(crate) struct Optimization {
    inner: Shared<boscage_study::Optimization>,
}

impl Optimization {
    /// A trial that nobody waits for after Ctrl-C is forgotten.
    fn asked(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut boscage_study::Optimization) -> Result<(u64, Values), Failure>
        + Send
        + 'static,
    ) -> PyResult<(u64, String)> {
        let (inner, same) = (self.inner.clone(), self.inner.clone());
        long_or_undone(
            py,
            move || {
                let mut inner = locked(&inner);
                let (number, values) = ask(&mut inner)?;
                Ok((number, Json::Object(inner.definition().space.to_json(&values)).to_string()))
            },
            move |&(number, _)| locked(&same).forget(number),
        )
    }
}

#[pymethods]
impl Optimization {
    #[new]
    fn new(
        py: Python<'_>,
        space: String,
        goal: String,
        method: String,
        seed: u64,
    ) -> PyResult<Self> {
        short(py, move || {
            let inner =
                boscage_study::Optimization::new(definition(&space, &goal, &method, seed)?)?;
            Ok(Self { inner: Arc::new(Mutex::new(inner)) })
        })
    }

    /// From what `save` gave.
    #[staticmethod]
    fn load(py: Python<'_>, state: String) -> PyResult<Self> {
        long(py, move || {
            Ok(Self { inner: Arc::new(Mutex::new(boscage_study::Optimization::load(&state)?)) })
        })
    }

    fn save(&self, py: Python<'_>) -> PyResult<String> {
        short_with(py, &self.inner, |inner| Ok(inner.save()?))
    }

    /// The next trial: its number, and its values as JSON.
    fn ask(&self, py: Python<'_>) -> PyResult<(u64, String)> {
        self.asked(py, |inner| Ok(inner.ask()?))
    }

    /// The next trial, with the randomness of a trial that has another number elsewhere.
    fn ask_as(&self, py: Python<'_>, stream: u64) -> PyResult<(u64, String)> {
        self.asked(py, move |inner| Ok(inner.ask_as(stream)?))
    }

    fn enqueue(&self, py: Python<'_>, values: String) -> PyResult<()> {
        short_with(py, &self.inner, |inner| {
            let values = crate::optimization::values(&inner.definition().space, &values)?;
            Ok(inner.enqueue(values)?)
        })
    }

    fn tell(&self, py: Python<'_>, number: u64, value: f64) -> PyResult<()> {
        short_with(py, &self.inner, |inner| Ok(inner.tell(number, value)?))
    }

    fn fail(&self, py: Python<'_>, number: u64, reason: String) -> PyResult<()> {
        short_with(py, &self.inner, |inner| Ok(inner.fail(number, &reason)?))
    }

    fn forget(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        short_with(py, &self.inner, |inner| {
            inner.forget(number);
            Ok(())
        })
    }

    /// The open trial with these values, or a new one.
    fn trial_of(&self, py: Python<'_>, values: String) -> PyResult<u64> {
        short_with(py, &self.inner, |inner| {
            let values = crate::optimization::values(&inner.definition().space, &values)?;
            match inner.open_trial(&values)? {
                Some(number) => Ok(number),
                None => Ok(inner.add(values)?),
            }
        })
    }

    /// A new trial with these values.
    fn add(&self, py: Python<'_>, values: String) -> PyResult<u64> {
        short_with(py, &self.inner, |inner| {
            let values = crate::optimization::values(&inner.definition().space, &values)?;
            Ok(inner.add(values)?)
        })
    }

    fn trials(&self, py: Python<'_>) -> PyResult<String> {
        short_with(
            py,
            &self.inner,
            |inner| Ok(crate::study::trials_json(&inner.view()).to_string()),
        )
    }

    fn best(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        short_with(py, &self.inner, |inner| Ok(inner.view().best().map(|trial| trial.number)))
    }

    /// What was learned, explained; none if nothing was.
    fn explain(&self, py: Python<'_>) -> PyResult<Option<Explanation>> {
        let inner = self.inner.clone();
        long(py, move || {
            let view = locked(&inner).view();
            Explanation::of(&view)
        })
    }

    fn definition(&self, py: Python<'_>) -> PyResult<String> {
        short_with(py, &self.inner, |inner| {
            let definition = inner.definition();
            let parts = json!({
                "space": definition.space, "goal": definition.goal, "method": definition.choice, "seed": definition.seed,
            });
            Ok(parts.to_string())
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        short_with(py, &self.inner, |inner| Ok(inner.len()))
    }
}
