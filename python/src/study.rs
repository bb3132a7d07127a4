//! A study in a store.

use std::sync::{Arc, Mutex};

use boscage_study::{
    Access, Asked, Definition, Location, Outcome, Store, StudyView, Told, Worker, study::view,
};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::errors::Failure;
use crate::explanation::Explanation;
use crate::optimization::{definition, read};
use crate::{Shared, locked, long, long_or_undone, short_with};

/// All trials, as Python's trials are made from.
pub(crate) fn trials_json(view: &StudyView) -> Json {
    let trials = view.trials.iter().map(|trial| {
        let params = trial.values.as_ref().map(|values| view.space.to_json(values));
        json!({
            "number": trial.number, "state": trial.state.stored(), "value": trial.value.filter(|value| value.is_finite()),
            "params": params.unwrap_or_default(), "failure": trial.failure, "infeasible": trial.infeasible,
            "datetime_start": trial.began, "datetime_complete": trial.ended, "seconds": trial.seconds,
            "user_attrs": trial.attributes,
        })
    });
    trials.collect()
}

/// The studies of a store: names, goals, numbers of trials, best values, as JSON.
#[pyfunction]
pub(crate) fn studies(py: Python<'_>, storage: String) -> PyResult<String> {
    long(py, move || {
        let access = Access { read_only: true, ..Access::default() };
        let rows = Store::open(&Location::parse(&storage)?, &access)?.studies()?;
        let rows: Json = rows
            .iter()
            .map(|row| {
                let goal = row.goal.map(boscage_study::Goal::name);
                json!({"name": row.name, "goal": goal, "trials": row.trials, "best_value": row.best})
            })
            .collect();
        Ok(rows.to_string())
    })
}

/// A study in a store.
#[pyclass(frozen, module = "boscage._native")]
pub(crate) struct Study {
    inner: Shared<boscage_study::Study>,
    /// A connection of its own, so that a tell waits for nobody's ask.
    store: Shared<Store>,
    name: String,
}

impl Study {
    fn with(mut study: boscage_study::Study) -> Result<Self, Failure> {
        let store = study.store().reopen()?;
        let name = study.name().to_string();
        Ok(Self { inner: Arc::new(Mutex::new(study)), store: Arc::new(Mutex::new(store)), name })
    }

    fn end(
        &self,
        py: Python<'_>,
        number: u64,
        outcome: Outcome,
        token: Option<String>,
    ) -> PyResult<bool> {
        let (store, name) = (self.store.clone(), self.name.clone());
        long(py, move || {
            let told = locked(&store).tell(&name, number, &outcome, token.as_deref())?;
            Ok(told == Told::New)
        })
    }
}

#[pymethods]
impl Study {
    /// Opens a study, or makes it.
    #[staticmethod]
    #[pyo3(signature = (storage, name, space, goal, method, seed, allow_changes, start, lost_retries))]
    #[allow(clippy::too_many_arguments, reason = "the Python part calls it by name")]
    fn open(
        py: Python<'_>,
        storage: String,
        name: String,
        space: String,
        goal: String,
        method: String,
        seed: u64,
        allow_changes: bool,
        start: String,
        lost_retries: u32,
    ) -> PyResult<Self> {
        long(py, move || {
            let mut definition: Definition = definition(&space, &goal, &method, seed)?;
            definition.start = read("start points", &start)?;
            definition.workers.lost_retries = lost_retries;
            let store = Store::open(&Location::parse(&storage)?, &Access::default())?;
            Self::with(boscage_study::Study::open(store, &name, definition, allow_changes)?.0)
        })
    }

    /// Opens a study as it is.
    #[staticmethod]
    fn load(py: Python<'_>, storage: String, name: Option<String>) -> PyResult<Self> {
        long(py, move || {
            let location = Location::parse(&storage)?;
            if let Location::Sqlite(path) = &location
                && !path.exists()
            {
                return Err(Failure::Value(format!(
                    "there is no file {storage}; give a space to begin a study"
                )));
            }
            let store = Store::open(&location, &Access::default())?;
            Self::with(boscage_study::Study::load(store, name.as_deref())?)
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
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

    /// The next trial: number, values as JSON, attempt, token; none if there are enough.
    #[pyo3(signature = (lease_seconds, limit, watched))]
    fn ask(
        &self,
        py: Python<'_>,
        lease_seconds: f64,
        limit: Option<u64>,
        watched: bool,
    ) -> PyResult<Option<(u64, String, u32, String)>> {
        let inner = self.inner.clone();
        let (store, name) = (self.store.clone(), self.name.clone());
        long_or_undone(
            py,
            move || {
                let mut inner = locked(&inner);
                let worker = if watched { Worker::this_process() } else { Worker::somebody() };
                match inner.ask(&worker, lease_seconds, limit)? {
                    Asked::Trial(trial) => {
                        let params = inner.definition().space.to_json(&trial.values);
                        let params = Json::Object(params).to_string();
                        Ok(Some((trial.number, params, trial.attempt, trial.token)))
                    }
                    Asked::Enough { .. } => Ok(None),
                    Asked::Exhausted(reason) => Err(Failure::Exhausted(reason)),
                }
            },
            // After Ctrl-C nobody has the trial; if it cannot be given back now, it is when its lease has passed.
            move |asked| {
                if let Some((number, _, _, token)) = asked {
                    drop(locked(&store).release(&name, *number, token));
                }
            },
        )
    }

    /// Whether it was news.
    #[pyo3(signature = (number, value, token=None))]
    fn tell(
        &self,
        py: Python<'_>,
        number: u64,
        value: f64,
        token: Option<String>,
    ) -> PyResult<bool> {
        self.end(py, number, Outcome::Value(value), token)
    }

    #[pyo3(signature = (number, reason, token=None))]
    fn fail(
        &self,
        py: Python<'_>,
        number: u64,
        reason: String,
        token: Option<String>,
    ) -> PyResult<bool> {
        self.end(py, number, Outcome::Failed(reason), token)
    }

    #[pyo3(signature = (number, reason, token=None))]
    fn prune(
        &self,
        py: Python<'_>,
        number: u64,
        reason: String,
        token: Option<String>,
    ) -> PyResult<bool> {
        self.end(py, number, Outcome::Pruned(reason), token)
    }

    /// Gives a trial back: it is the next one's at once, and this attempt does not count.
    fn release(&self, py: Python<'_>, number: u64, token: String) -> PyResult<()> {
        let (store, name) = (self.store.clone(), self.name.clone());
        long(py, move || Ok(locked(&store).release(&name, number, &token)?))
    }

    /// Prolongs leases: trial numbers with their tokens.
    fn renew(&self, py: Python<'_>, held: Vec<(u64, String)>, seconds: f64) -> PyResult<()> {
        let inner = self.inner.clone();
        long(py, move || {
            let mut renewer = locked(&inner).renewer()?;
            Ok(renewer.renew(&held, seconds)?)
        })
    }

    fn enqueue(&self, py: Python<'_>, values: String) -> PyResult<u64> {
        let inner = self.inner.clone();
        long(py, move || {
            let mut inner = locked(&inner);
            let values = crate::optimization::values(&inner.definition().space, &values)?;
            Ok(inner.enqueue(&values)?)
        })
    }

    /// Adds a finished trial: its values, and its value or why there is none.
    fn add(
        &self,
        py: Python<'_>,
        values: String,
        value: Option<f64>,
        reason: String,
        place: String,
    ) -> PyResult<u64> {
        let inner = self.inner.clone();
        long(py, move || {
            let mut inner = locked(&inner);
            let values = crate::optimization::values(&inner.definition().space, &values)?;
            let outcome = match value.filter(|value| value.is_finite()) {
                Some(value) => Outcome::Value(value),
                None => Outcome::Failed(reason),
            };
            Ok(inner.import(&[(values, outcome, place)])?)
        })
    }

    fn trials(&self, py: Python<'_>) -> PyResult<String> {
        let (store, name) = (self.store.clone(), self.name.clone());
        long(py, move || Ok(trials_json(&view(&mut locked(&store), Some(&name))?).to_string()))
    }

    fn best(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let (store, name) = (self.store.clone(), self.name.clone());
        long(py, move || {
            Ok(view(&mut locked(&store), Some(&name))?.best().map(|trial| trial.number))
        })
    }

    fn explain(&self, py: Python<'_>) -> PyResult<Option<Explanation>> {
        let (store, name) = (self.store.clone(), self.name.clone());
        long(py, move || {
            let view = view(&mut locked(&store), Some(&name))?;
            Explanation::of(&view)
        })
    }
}
