//! Optuna's distributions: a JSON object from names to `{"name": "FloatDistribution", "attributes": {…}}`, in the names of
//! today and in those that Optuna used before version 3.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::{Draft, whole};
use crate::error::Result;
use crate::parameters::{Kind, StudyParameter};

type Reading<T> = std::result::Result<T, String>;

/// An object in the order of the file, with whatever it has twice.
struct Entries(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object from names to distributions")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Reads a file.
pub(super) fn read(text: &str, draft: &mut Draft) -> Result<()> {
    let Entries(entries) = serde_json::from_str(text).map_err(|error| draft.json_error(&error))?;
    for (name, distribution) in entries {
        let kind = match &distribution {
            // What distribution_to_json gives is text.
            Json::String(text) => match serde_json::from_str(text) {
                Ok(inner) => kind(&name, &inner, draft),
                Err(error) => Err(format!("{text:?} is not JSON: {error}")),
            },
            other => kind(&name, other, draft),
        };
        let added = kind
            .map_err(|reason| format!("parameter {name:?}: {reason}"))
            .and_then(|kind| draft.add(StudyParameter::new(name, kind)));
        added.map_err(|reason| draft.refused(reason))?;
    }
    Ok(())
}

fn kind(parameter: &str, distribution: &Json, draft: &mut Draft) -> Reading<Kind> {
    let name = distribution.get("name").and_then(Json::as_str).ok_or_else(|| {
        "a distribution was expected, as in {\"name\": \"FloatDistribution\", \"attributes\": {\"low\": 0.0, \"high\": 1.0}}"
            .to_string()
    })?;
    let none = Map::new();
    let attributes = distribution.get("attributes").and_then(Json::as_object).unwrap_or(&none);
    let real = |key: &str| {
        let number = attributes.get(key).and_then(Json::as_f64);
        number.ok_or_else(|| format!("{name} has no number {key:?} among its attributes"))
    };
    let integer = |key: &str| {
        let number = attributes.get(key);
        let number = number.and_then(|n| n.as_i64().or_else(|| whole(n.as_f64()?)));
        number.ok_or_else(|| format!("{name} has no integer {key:?} among its attributes"))
    };
    let log = attributes.get("log").and_then(Json::as_bool).unwrap_or(false);
    let is_given = |key: &str| attributes.get(key).is_some_and(|step| !step.is_null());
    let step = |key: &str| {
        let step = if is_given(key) { integer(key)? } else { 1 };
        u64::try_from(step).map_err(|_| format!("the step {step} is negative"))
    };
    match name {
        "FloatDistribution" => {
            let step = if is_given("step") { Some(real("step")?) } else { None };
            Ok(Kind::Real { low: real("low")?, high: real("high")?, log, step })
        }
        "UniformDistribution" | "LogUniformDistribution" => {
            draft.note(format!(
                "the upper bound of {parameter:?} is no value of its own in {name}; in boscage it is"
            ));
            let log = name == "LogUniformDistribution";
            Ok(Kind::Real { low: real("low")?, high: real("high")?, log, step: None })
        }
        "DiscreteUniformDistribution" => {
            let step = Some(real("q")?);
            Ok(Kind::Real { low: real("low")?, high: real("high")?, log: false, step })
        }
        "IntDistribution" => Ok(Kind::Integer {
            low: integer("low")?,
            high: integer("high")?,
            step: step("step")?,
            log,
        }),
        "IntUniformDistribution" => {
            let step = step("step")?;
            Ok(Kind::Integer { low: integer("low")?, high: integer("high")?, step, log: false })
        }
        "IntLogUniformDistribution" => {
            let step = step("step")?;
            Ok(Kind::Integer { low: integer("low")?, high: integer("high")?, step, log: true })
        }
        "CategoricalDistribution" => {
            let choices = attributes.get("choices").and_then(Json::as_array);
            let choices = choices.ok_or("CategoricalDistribution has no list \"choices\"")?;
            let choices = choices.iter().map(choice).collect::<Reading<_>>()?;
            Ok(Kind::Categorical { choices })
        }
        other => Err(format!(
            "the distribution {other:?} is unknown; FloatDistribution, IntDistribution and CategoricalDistribution are read"
        )),
    }
}

/// A choice of a categorical parameter.
pub(super) fn choice(json: &Json) -> Reading<boscage::Value> {
    if json.is_null() {
        return Err("null cannot be a choice; use a word such as \"none\"".to_string());
    }
    serde_json::from_value(json.clone())
        .map_err(|_| format!("the choice {json} is neither a number, a truth value nor text"))
}
