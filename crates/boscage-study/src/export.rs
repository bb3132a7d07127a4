//! All trials of a study as a table for Python, R and spreadsheets: CSV, JSON lines or Parquet.
//!
//! The columns have the names that Optuna's `trials_dataframe` gives them, as far as it has them:
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `number` | integer | number of the trial, from 0 |
//! | `value` | real | what came out; empty if nothing did |
//! | `state` | text | `WAITING`, `RUNNING`, `COMPLETE`, `PRUNED` or `FAIL` |
//! | `datetime_start`, `datetime_complete` | text | when it began and ended, in local time; empty if not yet |
//! | `duration_seconds` | real | seconds between the two |
//! | `failure` | text | why it failed, or why its value was made up; empty if neither |
//! | `infeasible` | true or false | whether it broke a constraint |
//! | `params_NAME` | as the parameter | for each parameter, in their order; empty where its condition does not hold |
//! | `user_attrs_KEY` | as the attribute | for each attribute, in the order of the alphabet; lists and tables as JSON |
//!
//! A column of choices, levels or attributes has the type that all of them have, and is text if they have none in common.
//! How CSV and Parquet are written is said in [`table`].
//!
//! As JSON lines, a trial is an object on a line of its own, with its parameters and attributes in objects of theirs:
//! `{"number":0,"state":"COMPLETE","value":1.5,"params":{"x":0.25},…,"user_attrs":{}}`. There `null` is what is not known.
//! JSON has no infinite numbers: such a value is the text `"inf"`, `"-inf"` or `"NaN"`.
//!
//! [`past_results`](crate::past_results) reads CSV and JSON lines back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use boscage::Value;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::parameters::{Kind, StudyParameter, StudySpace, Values};
use crate::table::{self, Cell, ColumnType, Heading};
use crate::trial::Trial;
use crate::view::StudyView;

/// What the name of a parameter's column begins with.
pub const PARAMETER_PREFIX: &str = "params_";
/// What the name of an attribute's column begins with.
pub const ATTRIBUTE_PREFIX: &str = "user_attrs_";

/// The format of an exported table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Comma-separated values in UTF-8, with a header line.
    Csv,
    /// A JSON object for each trial, each on a line.
    JsonLines,
    /// Apache Parquet, not compressed.
    Parquet,
}

impl ExportFormat {
    /// The format that the ending of a file's name tells: `.csv`, `.jsonl` or `.ndjson`, `.parquet`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if it tells none.
    pub fn from_path(path: &Path) -> Result<Self> {
        let extension = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("csv") => Ok(ExportFormat::Csv),
            Some("jsonl" | "ndjson") => Ok(ExportFormat::JsonLines),
            Some("parquet") => Ok(ExportFormat::Parquet),
            _ => Err(Error::Input {
                place: path.display().to_string(),
                reason: "the ending of its name does not tell the format; use .csv, .jsonl (or .ndjson) or .parquet"
                    .to_string(),
            }),
        }
    }

    /// The usual ending of such files.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::Csv => "csv",
            ExportFormat::JsonLines => "jsonl",
            ExportFormat::Parquet => "parquet",
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let place = path.display().to_string();
    move |source| Error::Output { place: place.clone(), source }
}

/// Writes all trials to a file, replacing it: it appears under its name only when it is complete.
///
/// # Errors
///
/// [`Error::Output`] if it cannot be written.
pub fn export(view: &StudyView, format: ExportFormat, path: &Path) -> Result<()> {
    table::replace_file(path, failed(path), |file| {
        let written = match format {
            ExportFormat::Csv => write_csv(view, file),
            ExportFormat::JsonLines => write_json_lines(view, file),
            ExportFormat::Parquet => write_parquet(view, file),
        };
        written.map_err(failed(path))
    })
}

/// Writes all trials as CSV.
pub fn write_csv(view: &StudyView, out: impl Write) -> io::Result<()> {
    let columns = columns(view);
    table::write_csv(&headings(&columns), view.trials.len(), cells(view, &columns), out)
}

/// Writes all trials as Parquet.
pub fn write_parquet(view: &StudyView, out: impl Write + Send) -> io::Result<()> {
    let columns = columns(view);
    table::write_parquet(&headings(&columns), view.trials.len(), cells(view, &columns), out)
}

/// Where the cells of a column come from.
enum Source<'a> {
    /// The trial itself.
    Trial(OfTrial),
    /// A parameter, by its place.
    Parameter(usize),
    /// An attribute.
    Attribute(&'a str),
}

struct Column<'a> {
    heading: Heading<'a>,
    source: Source<'a>,
}

type OfTrial = for<'t> fn(&'t Trial) -> Cell<'t>;

/// The columns that every table has.
const FIXED: [(&str, ColumnType, OfTrial); 8] = [
    ("number", ColumnType::Integer, |trial| Cell::count(trial.number)),
    ("value", ColumnType::Real, |trial| trial.value.map_or(Cell::Null, Cell::Real)),
    ("state", ColumnType::Text, |trial| Cell::text(trial.state.stored())),
    ("datetime_start", ColumnType::Text, |trial| text(trial.began.as_deref())),
    ("datetime_complete", ColumnType::Text, |trial| text(trial.ended.as_deref())),
    ("duration_seconds", ColumnType::Real, |trial| trial.seconds.map_or(Cell::Null, Cell::Real)),
    ("failure", ColumnType::Text, |trial| text(trial.failure.as_deref())),
    ("infeasible", ColumnType::Truth, |trial| Cell::Truth(trial.infeasible)),
];

fn text(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Null, Cell::text)
}

fn columns(view: &StudyView) -> Vec<Column<'_>> {
    let fixed = FIXED.map(|(name, kind, cell)| Column {
        heading: Heading::new(name, kind),
        source: Source::Trial(cell),
    });
    let parameters = view.space.parameters().iter().enumerate().map(|(d, parameter)| Column {
        heading: Heading::new(
            format!("{PARAMETER_PREFIX}{}", parameter.name),
            type_of_parameter(parameter),
        ),
        source: Source::Parameter(d),
    });
    let mut attributes: BTreeMap<&str, Option<ColumnType>> = BTreeMap::new();
    for (key, value) in view.trials.iter().flat_map(|trial| &trial.attributes) {
        let known = attributes.entry(key).or_default();
        *known = common(*known, type_of_json(value));
    }
    let attributes = attributes.into_iter().map(|(key, kind)| Column {
        heading: Heading::new(format!("{ATTRIBUTE_PREFIX}{key}"), kind.unwrap_or(ColumnType::Text)),
        source: Source::Attribute(key),
    });
    fixed.into_iter().chain(parameters).chain(attributes).collect()
}

fn headings<'a>(columns: &[Column<'a>]) -> Vec<Heading<'a>> {
    columns.iter().map(|column| column.heading.clone()).collect()
}

fn cells<'a>(view: &'a StudyView, columns: &'a [Column<'a>]) -> impl Fn(usize, usize) -> Cell<'a> {
    move |row, column| {
        let (trial, column) = (&view.trials[row], &columns[column]);
        match column.source {
            Source::Trial(cell) => cell(trial),
            Source::Parameter(d) => {
                let value = trial.values.as_ref().and_then(|values| values.get(d)?.as_ref());
                value.map_or(Cell::Null, |value| cell_of_value(value, column.heading.kind))
            }
            Source::Attribute(key) => {
                let value = trial.attributes.get(key);
                value.map_or(Cell::Null, |value| cell_of_json(value, column.heading.kind))
            }
        }
    }
}

/// The type that holds values of both types; nothing is known of a column of nulls.
fn common(a: Option<ColumnType>, b: Option<ColumnType>) -> Option<ColumnType> {
    use ColumnType::{Integer, Real, Text};
    match (a, b) {
        (None, known) | (known, None) => known,
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(Integer | Real), Some(Integer | Real)) => Some(Real),
        _ => Some(Text),
    }
}

fn type_of_parameter(parameter: &StudyParameter) -> ColumnType {
    match &parameter.kind {
        Kind::Real { .. } => ColumnType::Real,
        Kind::Integer { .. } => ColumnType::Integer,
        Kind::Boolean {} => ColumnType::Truth,
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
            let kinds = values.iter().map(|value| {
                Some(match value {
                    Value::Boolean(_) => ColumnType::Truth,
                    Value::Integer(_) => ColumnType::Integer,
                    Value::Real(_) => ColumnType::Real,
                    Value::Choice(_) => ColumnType::Text,
                })
            });
            kinds.fold(None, common).unwrap_or(ColumnType::Text)
        }
    }
}

fn cell_of_value(value: &Value, kind: ColumnType) -> Cell<'_> {
    match (kind, value) {
        (ColumnType::Truth, Value::Boolean(truth)) => Cell::Truth(*truth),
        (ColumnType::Integer, Value::Integer(number)) => Cell::Integer(*number),
        (ColumnType::Real, Value::Integer(_) | Value::Real(_)) => {
            value.as_f64().map_or(Cell::Null, Cell::Real)
        }
        (_, Value::Choice(choice)) => Cell::text(choice),
        _ => Cell::text(value.to_string()),
    }
}

fn type_of_json(value: &Json) -> Option<ColumnType> {
    match value {
        Json::Null => None,
        Json::Bool(_) => Some(ColumnType::Truth),
        Json::Number(number) if number.is_i64() => Some(ColumnType::Integer),
        Json::Number(number) if number.is_f64() => Some(ColumnType::Real),
        // Also numbers that are too large for either.
        _ => Some(ColumnType::Text),
    }
}

fn cell_of_json(value: &Json, kind: ColumnType) -> Cell<'_> {
    let cell = match (kind, value) {
        (_, Json::Null) => return Cell::Null,
        (ColumnType::Truth, Json::Bool(truth)) => Some(Cell::Truth(*truth)),
        (ColumnType::Integer, Json::Number(number)) => number.as_i64().map(Cell::Integer),
        (ColumnType::Real, Json::Number(number)) => number.as_f64().map(Cell::Real),
        (_, Json::String(text)) => Some(Cell::Text(Cow::Borrowed(text))),
        _ => None,
    };
    cell.unwrap_or_else(|| Cell::text(value.to_string()))
}

/// A trial as an object. The order of the fields is the order in which they are written.
#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    state: &'static str,
    #[serde(serialize_with = "number_or_text")]
    value: Option<f64>,
    params: Parameters<'a>,
    datetime_start: Option<&'a str>,
    datetime_complete: Option<&'a str>,
    #[serde(serialize_with = "number_or_text")]
    duration_seconds: Option<f64>,
    failure: Option<&'a str>,
    infeasible: bool,
    user_attrs: &'a Map<String, Json>,
}

/// The parameters that have a value, in the order of the space.
struct Parameters<'a>(&'a StudySpace, Option<&'a Values>);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.names().zip(self.1.into_iter().flatten()) {
            if let Some(value) = value {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

#[allow(clippy::ref_option, reason = "as serde calls it")]
fn number_or_text<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match number {
        Some(number) if !number.is_finite() => serializer.serialize_str(&format!("{number:?}")),
        _ => number.serialize(serializer),
    }
}

/// Writes all trials as JSON lines.
pub fn write_json_lines(view: &StudyView, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    for trial in &view.trials {
        let line = Line {
            number: trial.number,
            state: trial.state.stored(),
            value: trial.value,
            params: Parameters(&view.space, trial.values.as_ref()),
            datetime_start: trial.began.as_deref(),
            datetime_complete: trial.ended.as_deref(),
            duration_seconds: trial.seconds,
            failure: trial.failure.as_deref(),
            infeasible: trial.infeasible,
            user_attrs: &trial.attributes,
        };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
