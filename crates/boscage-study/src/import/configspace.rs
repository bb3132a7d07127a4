//! What ConfigSpace writes with `to_json`, in its version 1 and in the versions before.

use boscage::Value;
use serde_json::Value as Json;

use super::optuna::choice;
use super::{Draft, whole};
use crate::condition::{Comparison, Condition};
use crate::error::Result;
use crate::parameters::{Kind, StudyParameter};

type Reading<T> = std::result::Result<T, String>;

/// Reads a file.
pub(super) fn read(text: &str, draft: &mut Draft) -> Result<()> {
    let file: Json = serde_json::from_str(text).map_err(|error| draft.json_error(&error))?;
    let listed = |key: &str| match file.get(key) {
        None | Some(Json::Null) => Ok(&[][..]),
        Some(Json::Array(list)) => Ok(&list[..]),
        Some(_) => Err(format!("{key:?} is not a list")),
    };
    let parts = || -> Reading<_> {
        Ok((listed("hyperparameters")?, listed("conditions")?, listed("forbiddens")?))
    };
    let (parameters, conditions, forbidden) = parts().map_err(|reason| draft.refused(reason))?;
    for (k, item) in parameters.iter().enumerate() {
        let added = match item.get("name").and_then(Json::as_str) {
            Some(name) => parameter(name, item, draft)
                .map_err(|reason| format!("hyperparameter {name:?}: {reason}"))
                .and_then(|parameter| draft.add(parameter)),
            None => Err(format!("hyperparameter {} has no name", k + 1)),
        };
        added.map_err(|reason| draft.refused(reason))?;
    }
    for (k, item) in conditions.iter().enumerate() {
        let read = condition(item, draft)
            .and_then(|condition| draft.restrict(child(item)?, condition))
            .map_err(|reason| format!("condition {}: {reason}", k + 1));
        read.map_err(|reason| draft.refused(reason))?;
    }
    for (k, item) in forbidden.iter().enumerate() {
        let read = clause(item, draft)
            .and_then(|condition| draft.forbid(condition))
            .map_err(|reason| format!("forbidden clause {}: {reason}", k + 1));
        read.map_err(|reason| draft.refused(reason))?;
    }
    Ok(())
}

/// The text under a key.
fn word<'a>(item: &'a Json, key: &str) -> Reading<&'a str> {
    item.get(key).and_then(Json::as_str).ok_or_else(|| format!("there is no text {key:?}"))
}

fn items<'a>(item: &'a Json, key: &str) -> Reading<&'a [Json]> {
    let list = item.get(key).and_then(Json::as_array).map(Vec::as_slice);
    list.ok_or_else(|| format!("there is no list {key:?}"))
}

fn parameter(name: &str, item: &Json, draft: &mut Draft) -> Reading<StudyParameter> {
    let kind = word(item, "type")?;
    let (is_integer, shape) = match kind {
        "uniform_float" => (false, "uniform"),
        "uniform_int" => (true, "uniform"),
        "normal_float" => (false, "normal"),
        "normal_int" => (true, "normal"),
        "beta_float" => (false, "beta"),
        "beta_int" => (true, "beta"),
        "categorical" | "ordinal" | "constant" => (false, "listed"),
        other => return Err(format!("the type {other:?} is unknown")),
    };
    let given = |key: &str| item.get(key).filter(|value| !value.is_null());
    let list = |key: &str| items(item, key)?.iter().map(choice).collect::<Reading<Vec<Value>>>();
    let kind = match kind {
        "categorical" => {
            if given("weights").or(given("probabilities")).is_some() {
                draft.note(format!(
                    "the weights of the choices of {name:?} are ignored; a choice of weight 0 can be tried too"
                ));
            }
            Kind::Categorical { choices: list("choices")? }
        }
        "ordinal" => Kind::Ordinal { levels: list("sequence")? },
        "constant" => {
            let value = choice(item.get("value").unwrap_or(&Json::Null))?;
            Kind::Categorical { choices: vec![value] }
        }
        _ => {
            let log = item.get("log").and_then(Json::as_bool).unwrap_or(false);
            let number = |key: &str| {
                given(key).and_then(Json::as_f64).ok_or_else(|| match shape {
                    "uniform" => format!("there is no number {key:?}"),
                    _ => format!(
                        "it has no number {key:?}; a {shape} hyperparameter is read only if it is bounded on both sides"
                    ),
                })
            };
            let (low, high) = (number("lower")?, number("upper")?);
            if shape != "uniform" {
                draft.note(format!(
                    "the {shape} distribution of {name:?} is ignored; all values between its bounds are alike at first"
                ));
            }
            let step = given("q").and_then(Json::as_f64);
            let step = step.filter(|&step| !(is_integer && step == 1.0));
            if let (Some(step), true) = (step, log) {
                draft.note(format!(
                    "the step {step} of {name:?} is ignored, because it is on a log scale"
                ));
            }
            let step = step.filter(|_| !log);
            if is_integer {
                let integer = |key: &str, number: f64| {
                    let exact = item.get(key).and_then(Json::as_i64);
                    exact
                        .or_else(|| whole(number))
                        .ok_or_else(|| format!("{key:?} is not an integer"))
                };
                let step = match step {
                    Some(step) => whole(step)
                        .and_then(|step| u64::try_from(step).ok())
                        .ok_or_else(|| format!("the step {step} is not an integer above 0"))?,
                    None => 1,
                };
                Kind::Integer {
                    low: integer("lower", low)?,
                    high: integer("upper", high)?,
                    step,
                    log,
                }
            } else {
                Kind::Real { low, high, log, step }
            }
        }
    };
    let mut parameter = StudyParameter::new(name, kind);
    if let Some(default) = given("default_value").or(given("default")) {
        parameter.default = Some(value(&parameter, default)?);
    } else if let Kind::Categorical { choices } = &parameter.kind
        && let [only] = &choices[..]
    {
        parameter.default = Some(only.clone());
    }
    Ok(parameter)
}

/// A value that a parameter can have.
fn value(parameter: &StudyParameter, json: &Json) -> Reading<Value> {
    parameter.value_from_json(json).map_err(|error| error.to_string())
}

/// A value to compare a parameter with.
fn compared_value(
    parameter: &StudyParameter,
    comparison: Comparison,
    item: &Json,
) -> Reading<Value> {
    let json = item.get("value").ok_or("there is no \"value\"")?;
    // Beyond the ends of a range, an order can still be asked for.
    let in_order = comparison.is_ordered()
        && matches!(parameter.kind, Kind::Real { .. } | Kind::Integer { .. })
        && json.is_number();
    if in_order { choice(json) } else { value(parameter, json) }
}

fn compare(name: &str, comparison: Comparison, item: &Json, draft: &Draft) -> Reading<Condition> {
    let value = compared_value(draft.known(name)?, comparison, item)?;
    Condition::compare(name, comparison, &value).map_err(|error| error.to_string())
}

fn is_in(name: &str, item: &Json, draft: &Draft) -> Reading<Condition> {
    let parameter = draft.known(name)?;
    let values = items(item, "values")?.iter().map(|json| value(parameter, json));
    let values: Vec<Value> = values.collect::<Reading<_>>()?;
    match &values[..] {
        [value] => Condition::equals(name, value),
        values => Condition::is_in(name, values),
    }
    .map_err(|error| error.to_string())
}

/// The parts of a conjunction. JSON is at most 128 deep, and so is this.
fn joined(
    item: &Json,
    key: &str,
    all: bool,
    draft: &Draft,
    read: fn(&Json, &Draft) -> Reading<Condition>,
) -> Reading<Condition> {
    let parts: Vec<Condition> =
        items(item, key)?.iter().map(|part| read(part, draft)).collect::<Reading<_>>()?;
    if parts.is_empty() {
        return Err(format!("{key:?} is empty"));
    }
    let joined = if all { Condition::all(&parts) } else { Condition::any(&parts) };
    joined.map_err(|error| error.to_string())
}

/// The parameter that a condition is for.
fn child(item: &Json) -> Reading<&str> {
    // Some versions name it only in the parts.
    let first = item.get("conditions").and_then(|parts| parts.get(0));
    word(item, "child").or_else(|reason| first.map_or(Err(reason), child))
}

fn condition(item: &Json, draft: &Draft) -> Reading<Condition> {
    let comparison = match word(item, "type")? {
        "EQ" => Comparison::Equal,
        "NEQ" => Comparison::NotEqual,
        "LT" => Comparison::Less,
        "GT" => Comparison::Greater,
        "IN" => return is_in(word(item, "parent")?, item, draft),
        "AND" => return joined(item, "conditions", true, draft, condition),
        "OR" => return joined(item, "conditions", false, draft, condition),
        other => {
            return Err(format!("the type {other:?} is not EQ, NEQ, LT, GT, IN, AND or OR"));
        }
    };
    compare(word(item, "parent")?, comparison, item, draft)
}

fn clause(item: &Json, draft: &Draft) -> Reading<Condition> {
    let name = || word(item, "name");
    let kind = word(item, "type")?;
    let relation = match kind {
        "EQUALS" => return compare(name()?, Comparison::Equal, item, draft),
        "IN" => return is_in(name()?, item, draft),
        "AND" => return joined(item, "clauses", true, draft, clause),
        "OR" => return joined(item, "clauses", false, draft, clause),
        "CLAUSE_LT" => return compare(name()?, Comparison::Less, item, draft),
        "CLAUSE_LE" => return compare(name()?, Comparison::LessOrEqual, item, draft),
        "CLAUSE_GT" => return compare(name()?, Comparison::Greater, item, draft),
        "CLAUSE_GE" => return compare(name()?, Comparison::GreaterOrEqual, item, draft),
        "RELATION" => word(item, "lambda")?,
        other => other.strip_prefix("RELATION_").unwrap_or_default(),
    };
    let comparison = match relation {
        "LT" | "LESS" => Comparison::Less,
        "LE" => Comparison::LessOrEqual,
        "EQ" | "EQUALS" => Comparison::Equal,
        "GT" | "GREATER" => Comparison::Greater,
        "GE" => Comparison::GreaterOrEqual,
        _ => {
            return Err(format!(
                "the type {kind:?} is not EQUALS, IN, AND, OR, one of CLAUSE_LT, _LE, _GT, _GE or one of RELATION_LT, _LE, \
                 _EQ, _GT, _GE"
            ));
        }
    };
    Condition::relation(word(item, "left")?, comparison, word(item, "right")?)
        .map_err(|error| error.to_string())
}
