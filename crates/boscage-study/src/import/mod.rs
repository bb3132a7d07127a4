//! Spaces from the files of other tools: irace, SMAC and ParamILS (`.pcs`), ConfigSpace, Optuna.
//!
//! What a file says is taken over exactly, or refused, or a note says what differs; no condition is dropped silently.
//!
//! ```
//! use boscage_study::import;
//!
//! let file = "
//!     mode \"--mode=\" c (fast, slow)
//!     rate \"--rate \" r,log (1e-5, 1) | mode == \"fast\"
//! ";
//! let imported = import::read(file, None, "parameters.txt")?;
//! assert_eq!(imported.parameters[1].condition.as_ref().unwrap().text(), "mode == \"fast\"");
//! assert_eq!(imported.command_arguments[0].arguments, ["--mode={mode}"]);
//! assert_eq!(imported.command_arguments[1].arguments, ["--rate", "{rate}"]);
//! # Ok::<(), boscage_study::Error>(())
//! ```

mod configspace;
mod irace;
mod optuna;
mod pcs;

use std::collections::HashMap;

use boscage::Value;
use serde_json::Value as Json;

use crate::condition::{self, Comparison, Condition};
use crate::error::{Error, Result};
use crate::parameters::{Kind, StudyParameter, StudySpace};

/// The most bytes of a file.
pub const MOST_BYTES: usize = 10_000_000;
/// The most parameters of a file.
const MOST_PARAMETERS: usize = 10_000;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A parameter file of irace.
    Irace,
    /// A `.pcs` file, in its old or its new form.
    Pcs,
    /// What ConfigSpace writes with `to_json`.
    ConfigSpace,
    /// A JSON object from names to Optuna's distributions.
    Optuna,
}

impl Format {
    /// The word for it: `irace`, `pcs`, `configspace` or `optuna`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Irace => "irace",
            Self::Pcs => "pcs",
            Self::ConfigSpace => "configspace",
            Self::Optuna => "optuna",
        }
    }
}

/// A space as another tool's file describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportedSpace {
    /// The parameters, in the order of the file.
    pub parameters: Vec<StudyParameter>,
    /// Combinations that must not be tried.
    pub forbidden: Vec<Condition>,
    /// How each parameter is passed to the program, if the file says so.
    pub command_arguments: Vec<ParameterArguments>,
    /// What is different from what the other tool would do.
    pub notes: Vec<String>,
}

/// How one parameter is passed to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterArguments {
    /// The parameter.
    pub parameter: String,
    /// Elements of a command, in which `{name}` stands for the value. All are left out where it has none.
    pub arguments: Vec<String>,
}

/// Reads a space. Without a format it is found out from the text and from the ending of `place`, the file's name, which
/// messages repeat.
pub fn read(text: &str, format: Option<Format>, place: &str) -> Result<ImportedSpace> {
    if text.len() > MOST_BYTES {
        return Err(Error::Input {
            place: place.to_string(),
            reason: format!("it has {} bytes; at most {MOST_BYTES} are read", text.len()),
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut draft = Draft::new(place);
    match format.map_or_else(|| detected(text, place), Ok)? {
        Format::Irace => irace::read(text, &mut draft)?,
        Format::Pcs => pcs::read(text, &mut draft)?,
        Format::ConfigSpace => configspace::read(text, &mut draft)?,
        Format::Optuna => optuna::read(text, &mut draft)?,
    }
    draft.finish()
}

/// The format that a text looks like.
fn detected(text: &str, place: &str) -> Result<Format> {
    let ending = place.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if ending.as_deref() == Some("pcs") {
        return Ok(Format::Pcs);
    }
    let json: Option<Json> =
        if text.trim_start().starts_with('{') { serde_json::from_str(text).ok() } else { None };
    if json.is_some() || ending.as_deref() == Some("json") {
        let has_hyperparameters = json.is_some_and(|json| json.get("hyperparameters").is_some());
        return Ok(if has_hyperparameters { Format::ConfigSpace } else { Format::Optuna });
    }
    let line = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let line = line.into_iter().find(|line| !line.is_empty() && !line.starts_with('['));
    match line {
        Some(line) => {
            let after_name = line.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
            Ok(if after_name.starts_with('"') { Format::Irace } else { Format::Pcs })
        }
        None => Err(Error::Input {
            place: place.to_string(),
            reason: "there are no parameters in it".to_string(),
        }),
    }
}

/// A space while its file is being read.
struct Draft<'a> {
    place: &'a str,
    space: ImportedSpace,
    positions: HashMap<String, usize>,
}

impl<'a> Draft<'a> {
    fn new(place: &'a str) -> Self {
        Self { place, space: ImportedSpace::default(), positions: HashMap::new() }
    }

    /// An error that concerns the file as a whole.
    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::Input { place: self.place.to_string(), reason: reason.into() }
    }

    /// An error in a line, counted from 1.
    fn refused_at(&self, line: usize, reason: impl Into<String>) -> Error {
        Error::Input { place: format!("{}, line {line}", self.place), reason: reason.into() }
    }

    fn json_error(&self, error: &serde_json::Error) -> Error {
        self.refused_at(error.line(), format!("this is not JSON as expected: {error}"))
    }

    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.space.notes.contains(&note) {
            self.space.notes.push(note);
        }
    }

    fn parameter(&self, name: &str) -> Option<&StudyParameter> {
        self.space.parameters.get(*self.positions.get(name)?)
    }

    /// The parameter of a name, or what to say.
    fn known(&self, name: &str) -> std::result::Result<&StudyParameter, String> {
        self.parameter(name).ok_or_else(|| format!("there is no parameter {name:?}"))
    }

    /// Takes a parameter in, if it makes sense by itself.
    fn add(&mut self, parameter: StudyParameter) -> std::result::Result<(), String> {
        let position = self.space.parameters.len();
        if position == MOST_PARAMETERS {
            return Err(format!("more than {MOST_PARAMETERS} parameters are not read"));
        }
        StudySpace::new(vec![parameter.clone()], Vec::new()).map_err(|error| error.to_string())?;
        if self.positions.insert(parameter.name.clone(), position).is_some() {
            return Err(format!("the parameter {:?} is defined twice", parameter.name));
        }
        self.space.parameters.push(parameter);
        Ok(())
    }

    /// Adds a condition to those that a parameter has.
    fn restrict(&mut self, name: &str, condition: Condition) -> std::result::Result<(), String> {
        self.check(&condition)?;
        let before = self.known(name)?.condition.clone();
        let condition = match before {
            Some(before) => {
                Condition::all(&[before, condition]).map_err(|error| error.to_string())?
            }
            None => condition,
        };
        let parameter =
            self.positions.get(name).and_then(|&position| self.space.parameters.get_mut(position));
        if let Some(parameter) = parameter {
            parameter.condition = Some(condition);
        }
        Ok(())
    }

    fn forbid(&mut self, condition: Condition) -> std::result::Result<(), String> {
        self.check(&condition)?;
        self.space.forbidden.push(condition);
        Ok(())
    }

    fn check(&self, condition: &Condition) -> std::result::Result<(), String> {
        condition.check(&|name| self.parameter(name))
    }

    fn finish(self) -> Result<ImportedSpace> {
        if self.space.parameters.is_empty() {
            return Err(self.refused("there are no parameters in it"));
        }
        StudySpace::new(self.space.parameters.clone(), self.space.forbidden.clone())
            .map_err(|error| self.refused(error.to_string()))?;
        Ok(self.space)
    }
}

/// Values that a file gives as text: numbers if all of them are, written as we would write them, so that a program gets the
/// same text.
fn values_from_texts(texts: &[String], ordinal: bool) -> Vec<Value> {
    let numbers: Option<Vec<Value>> = texts
        .iter()
        .map(|text| condition::number(text).filter(|number| number.to_string() == *text))
        .collect();
    let in_order = |numbers: &Vec<Value>| {
        !ordinal || numbers.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64())
    };
    let words = || texts.iter().cloned().map(Value::Choice).collect();
    numbers.filter(in_order).unwrap_or_else(words)
}

/// The value of a parameter that a file gives as text, for a comparison.
fn value_from_text(
    parameter: &StudyParameter,
    text: &str,
    comparison: Comparison,
) -> std::result::Result<Value, String> {
    if let Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } =
        &parameter.kind
        && let Some(value) = values.iter().find(|value| value.to_string() == text)
    {
        return Ok(value.clone());
    }
    // Beyond the ends of a range, an order can still be asked for.
    if comparison.is_ordered()
        && let Some(number) = condition::number(text)
    {
        return Ok(number);
    }
    parameter.value_from_text(text).map_err(|error| match error {
        Error::Parameter { name, reason } => format!("{name:?} cannot be {text:?}: {reason}"),
        other => other.to_string(),
    })
}

/// An integer, perhaps written as 1e3 or 2.0.
fn integer(text: &str) -> Option<i64> {
    match condition::number(text)? {
        Value::Integer(number) => Some(number),
        Value::Real(number) => whole(number),
        _ => None,
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9e15).then_some(number as i64)
}

fn real(text: &str) -> Option<f64> {
    condition::number(text)?.as_f64()
}

/// The bounds of a range of numbers, as a kind.
fn range(low: &str, high: &str, is_integer: bool, log: bool) -> std::result::Result<Kind, String> {
    let bad = |text: &str| {
        format!("the bound {text:?} is not {}", if is_integer { "an integer" } else { "a number" })
    };
    Ok(if is_integer {
        let bound = |text| integer(text).ok_or_else(|| bad(text));
        Kind::Integer { low: bound(low)?, high: bound(high)?, step: 1, log }
    } else {
        let bound = |text| real(text).ok_or_else(|| bad(text));
        Kind::Real { low: bound(low)?, high: bound(high)?, log, step: None }
    })
}
