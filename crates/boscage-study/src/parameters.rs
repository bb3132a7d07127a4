//! The parameters of a study: what a user writes, what a program gets, what the engine sees.
//!
//! A [`StudyParameter`] is a name, the values it may take, and, if wanted, a default and a condition. A [`StudySpace`] is a
//! list of them that makes sense together. It goes between three forms of a point:
//!
//! - *values*, one for each parameter, none for a parameter whose condition does not hold ([`Values`]);
//! - a [`Point`] of the engine. A parameter without a value is put at its default, so that two points which differ only in
//!   parameters without a value are one point;
//! - what Optuna stores: a number for each parameter beside a distribution as JSON ([`StudySpace::distribution`]).

use std::collections::HashSet;

use boscage::{Domain, Parameter, Point, Space, Value};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::condition::{self, Condition};
use crate::error::{Error, Result};

/// The values of a study's parameters, in the order of the space; `None` where a condition does not hold.
pub type Values = Vec<Option<Value>>;

/// The largest integer up to which all integers are numbers of 64 bits, which is how stores keep them.
const MOST_EXACT: i64 = 1 << 53;
/// The most characters of a name, as stores keep them.
const MOST_CHARACTERS: usize = 512;
/// The most levels of a real parameter with a step.
const MOST_STEPS: f64 = 65_536.0;

/// The values that a parameter may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Kind {
    /// Real numbers from `low` to `high`, both included.
    Real {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Whether equal ratios, not equal differences, are equally far apart.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        log: bool,
        /// If given, only `low`, `low + step`, … up to `high`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<f64>,
    },
    /// The integers `low`, `low + step`, … up to `high`.
    Integer {
        /// Smallest value.
        low: i64,
        /// Upper bound; the largest value if the step divides the range.
        high: i64,
        /// Distance between neighbouring values.
        #[serde(default = "unit", skip_serializing_if = "is_unit")]
        step: u64,
        /// Whether equal ratios, not equal differences, are equally far apart.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        log: bool,
    },
    /// Numbers or words in an order; only the order matters to the model.
    Ordinal {
        /// The values, in their order.
        levels: Vec<Value>,
    },
    /// False or true.
    // A unit variant would let unknown fields pass.
    Boolean {},
    /// Words, numbers or truth values without an order.
    Categorical {
        /// The values, all different.
        choices: Vec<Value>,
    },
}

fn unit() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_unit(step: &u64) -> bool {
    *step == 1
}

/// One parameter of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyParameter {
    /// What it is called.
    pub name: String,
    /// The values it may take.
    #[serde(flatten)]
    pub kind: Kind,
    /// Its value in the first trial, and in the model where its condition does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// It has a value only where this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

impl StudyParameter {
    /// A parameter without default and condition.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, default: None, condition: None }
    }

    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Parameter { name: self.name.clone(), reason: reason.into() }
    }

    /// What the engine sees of it.
    fn engine(&self) -> Result<Parameter> {
        let name = self.name.clone();
        let domain = match &self.kind {
            &Kind::Real { low, high, log, step: None } => Domain::Real { low, high, log },
            &Kind::Real { low, high, log, step: Some(step) } => {
                if log {
                    return Err(
                        self.refused("a step cannot be combined with a log scale; remove one")
                    );
                }
                if !(step.is_finite() && step > 0.0 && low.is_finite() && high >= low) {
                    return Err(self.refused(format!(
                        "low {low}, high {high} and step {step} do not fit; low must not be above high, and the step must be \
                         positive"
                    )));
                }
                let steps = steps(low, high, step);
                if steps >= MOST_STEPS {
                    return Err(self.refused(format!(
                        "the step {step} makes more than {MOST_STEPS} levels; use a larger one"
                    )));
                }
                Domain::Ordinal {
                    levels: (0..=steps as u32).map(|k| stepped(low, step, k)).collect(),
                }
            }
            &Kind::Integer { low, high, step, log } => {
                if low < -MOST_EXACT || high > MOST_EXACT {
                    return Err(self.refused(format!(
                        "integers must lie between -{MOST_EXACT} and {MOST_EXACT}, where every one is a number of 64 bits"
                    )));
                }
                Domain::Integer { low, high, step, log }
            }
            Kind::Ordinal { levels } => {
                self.all_different("level", levels)?;
                let numbers: Option<Vec<f64>> = levels.iter().map(number).collect();
                if let Some(numbers) = numbers
                    && let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1])
                {
                    return Err(self.refused(format!(
                        "level {} is followed by {}; numbers must be in increasing order",
                        pair[0], pair[1]
                    )));
                }
                Domain::Ordinal { levels: (0..levels.len()).map(|rank| rank as f64).collect() }
            }
            Kind::Boolean {} => Domain::Boolean,
            Kind::Categorical { choices } => {
                self.all_different("choice", choices)?;
                Domain::Categorical { choices: choices.iter().map(Value::to_string).collect() }
            }
        };
        Ok(Parameter { name, domain })
    }

    fn all_different(&self, what: &str, values: &[Value]) -> Result<()> {
        let (mut seen, mut words) = (HashSet::new(), HashSet::new());
        for value in values {
            if matches!(value, Value::Real(number) if !number.is_finite()) {
                return Err(self.refused(format!("the {what} {value} is not a finite number")));
            }
            let is_new = match number(value) {
                Some(number) => seen.insert(Value::Real(number).to_string()),
                None => seen.insert(value.to_string()),
            };
            if !is_new || !words.insert(value.to_string()) {
                return Err(self.refused(format!(
                    "the {what} {value} occurs twice, as a program would see it; they must all differ"
                )));
            }
        }
        Ok(())
    }

    /// The engine's value for a value of this parameter, or what is wrong with it.
    fn to_engine(&self, value: &Value) -> Result<Value> {
        let listed = |values: &[Value]| {
            let place = values.iter().position(|known| same(known, value));
            place.ok_or_else(|| {
                self.refused(format!("{value} is not one of {}", enumeration(values)))
            })
        };
        let wrong = |what: &str| self.refused(format!("{value} is not {what}"));
        match &self.kind {
            &Kind::Real { low, high, step, .. } => {
                let number = number(value).ok_or_else(|| wrong("a number"))?;
                match step {
                    None if (low..=high).contains(&number) => Ok(Value::Real(number)),
                    Some(step) if (low..=high + 1e-8 * step).contains(&number) => {
                        let k = ((number - low) / step).round();
                        let level = stepped(low, step, k as u32);
                        // As near as other programs compute it.
                        if (number - level).abs() > 1e-8 * step {
                            return Err(self.refused(format!(
                                "{value} is not {low} plus a multiple of {step}"
                            )));
                        }
                        Ok(Value::Real(level))
                    }
                    _ => Err(self.refused(format!("{value} is not between {low} and {high}"))),
                }
            }
            &Kind::Integer { low, high, step, .. } => {
                let number = match *value {
                    Value::Integer(number) => number,
                    Value::Real(number)
                        if number.fract() == 0.0 && number.abs() <= MOST_EXACT as f64 =>
                    {
                        number as i64
                    }
                    _ => return Err(wrong("an integer")),
                };
                if !(low..=high).contains(&number) {
                    return Err(self.refused(format!("{value} is not between {low} and {high}")));
                }
                if !number.abs_diff(low).is_multiple_of(step.max(1)) {
                    return Err(
                        self.refused(format!("{value} is not {low} plus a multiple of {step}"))
                    );
                }
                Ok(Value::Integer(number))
            }
            Kind::Ordinal { levels } => Ok(Value::Real(listed(levels)? as f64)),
            Kind::Boolean {} => match value {
                Value::Boolean(_) => Ok(value.clone()),
                _ => Err(wrong("false or true")),
            },
            Kind::Categorical { choices } => {
                Ok(Value::Choice(choices[listed(choices)?].to_string()))
            }
        }
    }

    /// The value of this parameter for a value of the engine.
    #[allow(clippy::wrong_self_convention)] // a value is what comes from the engine
    pub(crate) fn in_words(&self, value: Value) -> Value {
        let listed = |values: &[Value], place: Option<usize>| {
            place.and_then(|place| values.get(place)).cloned().unwrap_or(value.clone())
        };
        match &self.kind {
            Kind::Ordinal { levels } => listed(levels, value.as_f64().map(|rank| rank as usize)),
            Kind::Categorical { choices } => {
                let text = value.to_string();
                listed(choices, choices.iter().position(|choice| choice.to_string() == text))
            }
            _ => value,
        }
    }

    /// A value from JSON, checked.
    pub fn value_from_json(&self, json: &Json) -> Result<Value> {
        let value: Value = serde_json::from_value(json.clone()).map_err(|_| {
            self.refused(format!("{json} is neither a number, a truth value nor text"))
        })?;
        self.checked(value)
    }

    /// A value from text, checked: as a program would see it.
    pub fn value_from_text(&self, text: &str) -> Result<Value> {
        let text = text.trim();
        let listed =
            |values: &[Value]| values.iter().find(|value| value.to_string() == text).cloned();
        let value = match &self.kind {
            Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
                listed(values)
            }
            Kind::Boolean {} => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(Value::Boolean(true)),
                "false" | "0" => Some(Value::Boolean(false)),
                _ => None,
            },
            _ => None,
        };
        let read = || match text.parse::<i64>() {
            Ok(number) => Value::Integer(number),
            Err(_) => text.parse().map_or_else(|_| Value::Choice(text.to_string()), Value::Real),
        };
        self.checked(value.unwrap_or_else(read))
    }

    /// The value in the form that this parameter gives it, if it is one of its values.
    pub fn checked(&self, value: Value) -> Result<Value> {
        Ok(self.in_words(self.to_engine(&value)?))
    }

    /// The distribution of this parameter, as Optuna writes it.
    fn distribution(&self) -> Json {
        let (name, attributes) = match &self.kind {
            Kind::Real { low, high, log, step } => {
                // Optuna wants the largest value itself.
                let last = match step {
                    Some(step) => stepped(*low, *step, steps(*low, *high, *step) as u32),
                    None => *high,
                };
                ("FloatDistribution", json!({"step": step, "low": low, "high": last, "log": log}))
            }
            Kind::Integer { low, high, step, log } => {
                // Optuna wants the largest value itself.
                let last = high - (high.abs_diff(*low) % (*step).max(1)) as i64;
                ("IntDistribution", json!({"log": log, "step": step, "low": low, "high": last}))
            }
            Kind::Ordinal { levels: choices } | Kind::Categorical { choices } => {
                ("CategoricalDistribution", json!({"choices": choices}))
            }
            Kind::Boolean {} => ("CategoricalDistribution", json!({"choices": [false, true]})),
        };
        json!({"name": name, "attributes": attributes})
    }
}

/// How many steps there are from `low` to `high`, or just short of it.
fn steps(low: f64, high: f64, step: f64) -> f64 {
    ((high - low) / step + 1e-8).floor()
}

/// `low + k · step`, with the digits that `low` and `step` are written with: 0.1 + 2 · 0.1 is 0.3.
fn stepped(low: f64, step: f64, k: u32) -> f64 {
    let plain = low + f64::from(k) * step;
    let digits = |number: f64| {
        let text = format!("{number}");
        text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
    };
    let digits = digits(low).max(digits(step));
    if digits > 15 { plain } else { format!("{plain:.digits$}").parse().unwrap_or(plain) + 0.0 }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(_) | Value::Real(_) => value.as_f64(),
        _ => None,
    }
}

/// Whether two values are one: 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn enumeration(values: &[Value]) -> String {
    const MOST: usize = 12;
    let mut text = values.iter().take(MOST).map(Value::to_string).collect::<Vec<_>>().join(", ");
    if values.len() > MOST {
        text += &format!(" and {} more", values.len() - MOST);
    }
    text
}

/// Parameters that make sense together. As data: `{"parameters": [...], "forbidden": [...]}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SpaceData", into = "SpaceData")]
pub struct StudySpace {
    parameters: Vec<StudyParameter>,
    forbidden: Vec<Condition>,
    engine: Space,
    /// Parameters in an order in which whatever a condition speaks of comes before.
    order: Vec<usize>,
    /// Where a parameter without a value is put.
    resting: Vec<Value>,
    /// Distributions as text, for stores.
    distributions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceData {
    #[serde(deserialize_with = "table_or_list")]
    parameters: Vec<StudyParameter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forbidden: Vec<Condition>,
}

impl TryFrom<SpaceData> for StudySpace {
    type Error = Error;

    fn try_from(data: SpaceData) -> Result<Self> {
        Self::new(data.parameters, data.forbidden)
    }
}

impl From<StudySpace> for SpaceData {
    fn from(space: StudySpace) -> Self {
        Self { parameters: space.parameters, forbidden: space.forbidden }
    }
}

impl StudySpace {
    /// Checks that everything fits.
    pub fn new(parameters: Vec<StudyParameter>, forbidden: Vec<Condition>) -> Result<Self> {
        let engine =
            Space::new(parameters.iter().map(StudyParameter::engine).collect::<Result<_>>()?)?;
        for parameter in &parameters {
            if parameter.name.chars().count() > MOST_CHARACTERS {
                return Err(parameter
                    .refused(format!("its name is longer than {MOST_CHARACTERS} characters")));
            }
            if parameter.name.contains(char::is_control) {
                return Err(parameter.refused("its name has control characters; remove them"));
            }
            if let Some(default) = &parameter.default {
                parameter.to_engine(default).map_err(|error| match error {
                    Error::Parameter { name, reason } => {
                        Error::Parameter { name, reason: format!("the default: {reason}") }
                    }
                    other => other,
                })?;
            }
        }
        let named = |name: &str| parameters.get(engine.index_of(name)?);
        for parameter in &parameters {
            if let Some(condition) = &parameter.condition {
                condition.check(&named).map_err(|reason| {
                    parameter.refused(format!("its condition `{condition}`: {reason}"))
                })?;
            }
        }
        for condition in &forbidden {
            condition.check(&named).map_err(|reason| Error::Condition {
                text: condition.text().to_string(),
                reason,
            })?;
        }
        let order = order(&parameters, &engine)?;
        let middle = engine.decode(&engine.from_uniform(&vec![0.5; engine.dimension()])?)?;
        let resting = parameters
            .iter()
            .zip(middle)
            .map(|(parameter, middle)| match &parameter.default {
                Some(default) => parameter.to_engine(default),
                None => Ok(middle),
            })
            .collect::<Result<_>>()?;
        let distributions =
            parameters.iter().map(|parameter| parameter.distribution().to_string()).collect();
        Ok(Self { parameters, forbidden, engine, order, resting, distributions })
    }

    /// The parameters, in their order.
    pub fn parameters(&self) -> &[StudyParameter] {
        &self.parameters
    }

    /// Combinations that must not be tried.
    pub fn forbidden(&self) -> &[Condition] {
        &self.forbidden
    }

    /// The number of parameters.
    pub fn dimension(&self) -> usize {
        self.parameters.len()
    }

    /// The number of the parameter of this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.engine.index_of(name)
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// What the engine sees.
    pub fn engine(&self) -> &Space {
        &self.engine
    }

    /// The values at a point of the engine, whatever conditions say.
    pub(crate) fn engine_values(&self, point: &Point) -> Result<Values> {
        let values = self.engine.decode(point)?;
        let values = self.parameters.iter().zip(values);
        Ok(values.map(|(parameter, value)| Some(parameter.in_words(value))).collect())
    }

    /// The values at a point of the engine.
    pub fn decode(&self, point: &Point) -> Result<Values> {
        let mut values = self.engine_values(point)?;
        self.drop_inactive(&mut values);
        Ok(values)
    }

    /// The point of the engine for these values. Values of parameters whose condition does not hold are not looked at.
    pub fn encode(&self, values: &[Option<Value>]) -> Result<Point> {
        if values.len() != self.dimension() {
            return Err(Error::Values {
                reason: format!(
                    "{} values were given for {} parameters",
                    values.len(),
                    self.dimension()
                ),
            });
        }
        let mut active = values.to_vec();
        self.drop_inactive(&mut active);
        let mut seen = Vec::with_capacity(values.len());
        for (d, parameter) in self.parameters.iter().enumerate() {
            seen.push(match &active[d] {
                Some(value) => parameter.to_engine(value)?,
                None if self.is_active(d, &active) => {
                    return Err(Error::Values {
                        reason: format!("there is no value for {:?}", parameter.name),
                    });
                }
                None => self.resting[d].clone(),
            });
        }
        Ok(self.engine.encode(&seen)?)
    }

    /// Takes the values of parameters away whose condition does not hold.
    pub fn drop_inactive(&self, values: &mut [Option<Value>]) {
        for &d in &self.order {
            if !self.is_active(d, values) {
                values[d] = None;
            }
        }
    }

    /// Whether the condition of a parameter holds, given the values of those before it.
    fn is_active(&self, d: usize, values: &[Option<Value>]) -> bool {
        let condition = self.parameters[d].condition.as_ref();
        condition.is_none_or(|condition| self.holds(condition, values))
    }

    /// The first forbidden combination that holds for these values.
    pub fn forbidden_by(&self, values: &[Option<Value>]) -> Option<&Condition> {
        self.forbidden.iter().find(|condition| self.holds(condition, values))
    }

    fn holds(&self, condition: &Condition, values: &[Option<Value>]) -> bool {
        condition.holds_with_ranks(&|name| self.value_of(name, values), &|name, value| {
            condition::rank(self.parameters.get(self.index_of(name)?)?, value)
        })
    }

    fn value_of<'a>(&self, name: &str, values: &'a [Option<Value>]) -> Option<&'a Value> {
        values.get(self.index_of(name)?)?.as_ref()
    }

    /// Values from a JSON object; parameters that it does not have are `None`.
    pub fn partial_from_json(&self, object: &Map<String, Json>) -> Result<Values> {
        if let Some(name) = object.keys().find(|name| self.index_of(name).is_none()) {
            return Err(Error::Values {
                reason: format!("there is no parameter {name:?}{}", self.meant(name)),
            });
        }
        let value = |parameter: &StudyParameter| match object.get(&parameter.name) {
            None | Some(Json::Null) => Ok(None),
            Some(json) => parameter.value_from_json(json).map(Some),
        };
        self.parameters.iter().map(value).collect()
    }

    /// A JSON object of the values that there are.
    pub fn to_json(&self, values: &[Option<Value>]) -> Map<String, Json> {
        let named = self.parameters.iter().zip(values);
        let present = named.filter_map(|(parameter, value)| {
            Some((parameter.name.clone(), serde_json::to_value(value.as_ref()?).ok()?))
        });
        present.collect()
    }

    /// "; did you mean …", if a name is close.
    pub fn meant(&self, name: &str) -> String {
        let near =
            self.names().map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
        match near {
            Some((distance, known)) if distance <= 2 => format!("; did you mean {known:?}?"),
            _ => String::new(),
        }
    }

    /// The distribution of a parameter, as Optuna stores it.
    pub fn distribution(&self, d: usize) -> &str {
        &self.distributions[d]
    }

    /// The number that Optuna stores for a value of a parameter.
    pub fn stored(&self, d: usize, value: &Value) -> Result<f64> {
        let parameter = &self.parameters[d];
        let place = match &parameter.kind {
            Kind::Categorical { choices } => choices.iter().position(|choice| same(choice, value)),
            _ => None,
        };
        let seen = parameter.to_engine(value)?;
        Ok(place.map_or_else(|| seen.as_f64().unwrap_or_default(), |place| place as f64))
    }

    /// The value of a parameter that Optuna stores as this number, under this distribution.
    pub fn from_stored(&self, d: usize, stored: f64, distribution: &str) -> Result<Value> {
        let parameter = &self.parameters[d];
        let listed = |values: &[Value]| values.get(stored as usize).cloned();
        // Most are our own.
        let value = if distribution == self.distributions[d] {
            match &parameter.kind {
                Kind::Real { .. } => Some(Value::Real(stored)),
                Kind::Integer { .. } => Some(Value::Integer(stored as i64)),
                Kind::Boolean {} => Some(Value::Boolean(stored == 1.0)),
                Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
                    listed(values)
                }
            }
        } else {
            let read: Json = serde_json::from_str(distribution).unwrap_or_default();
            match read.pointer("/attributes/choices").and_then(Json::as_array) {
                Some(choices) => choices
                    .get(stored as usize)
                    .and_then(|choice| serde_json::from_value(choice.clone()).ok()),
                None => Some(Value::Real(stored)),
            }
        };
        let value = value.ok_or_else(|| {
            parameter.refused(format!(
                "{stored} is stored under {distribution}, which has no such value"
            ))
        })?;
        parameter.checked(value)
    }
}

/// The parameters in an order in which those that a condition speaks of come first.
fn order(parameters: &[StudyParameter], engine: &Space) -> Result<Vec<usize>> {
    let mut before: Vec<Vec<usize>> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let Some(condition) = &parameter.condition else {
            before.push(Vec::new());
            continue;
        };
        let places = condition.names().into_iter().map(|name| {
            engine.index_of(name).ok_or_else(|| {
                parameter
                    .refused(format!("its condition speaks of {name:?}, which is no parameter"))
            })
        });
        before.push(places.collect::<Result<_>>()?);
    }
    let mut order = Vec::with_capacity(parameters.len());
    let mut placed = vec![false; parameters.len()];
    while order.len() < parameters.len() {
        let already = order.len();
        for d in 0..parameters.len() {
            if !placed[d] && before[d].iter().all(|&other| placed[other]) {
                placed[d] = true;
                order.push(d);
            }
        }
        if order.len() == already {
            let d = placed.iter().position(|placed| !placed).unwrap_or_default();
            return Err(
                parameters[d].refused("its condition depends on itself, perhaps through others")
            );
        }
    }
    Ok(order)
}

/// Parameters as a list with names, or as a table from names.
pub(crate) fn table_or_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<StudyParameter>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<StudyParameter>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(
                "a table of parameters, as in rate = { type = \"real\", low = 0, high = 1 }",
            )
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            let mut parameters = Vec::new();
            while let Some(parameter) = list.next_element()? {
                parameters.push(parameter);
            }
            Ok(parameters)
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut table: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            #[derive(Deserialize)]
            #[serde(expecting = "a parameter, as in { type = \"real\", low = 0, high = 1 }")]
            struct Unnamed {
                #[serde(flatten)]
                kind: Kind,
                #[serde(default)]
                default: Option<Value>,
                #[serde(default)]
                condition: Option<Condition>,
            }
            let mut parameters = Vec::new();
            while let Some(name) = table.next_key::<String>()? {
                // What reads the file says where: the line and the name.
                let Unnamed { kind, default, condition } = table.next_value()?;
                parameters.push(StudyParameter { name, kind, default, condition });
            }
            Ok(parameters)
        }
    }
    deserializer.deserialize_any(Visitor)
}
