//! Past results from CSV or JSON lines: what was tried before there was a study.
//!
//! The first line of CSV names the columns; each further line is a result. As JSON lines, each line is an object. Blank lines
//! are skipped. These columns, or keys, are looked at:
//!
//! | column | meaning |
//! | --- | --- |
//! | `params_NAME`, or else `NAME` | the value of a parameter; none (an empty cell, `null`) only where its condition does not hold |
//! | `value`, or another one by [`PastOptions::value_column`] | what came out; nothing, NaN or an infinite number is a failure |
//! | `state`, if there is one | `COMPLETE`; `FAIL` and `PRUNED`, which are failures; `RUNNING` and `WAITING`, which are skipped |
//! | `failure`, if there is one | why there is no value |
//! | `infeasible`, if there is one | `true` is a failure |
//!
//! All others are ignored, and listed. What [`export`](crate::export) writes is read back equal; so is its form of JSON lines,
//! with the parameters in an object of their own under `params`. Tables of Optuna's `trials_dataframe` are read as well.
//!
//! A parameter whose condition does not hold has no value, whatever its cell says. An empty cell is the choice `""` if the
//! parameter has that choice. A line without any value for a parameter is skipped. Forbidden combinations are not looked
//! for: there may be results for them.
//!
//! Cells are separated by commas and may be quoted as in RFC 4180. Python's `NaN`, `Infinity` and `-Infinity` are understood
//! in JSON. Text must be UTF-8, of at most [`MOST_BYTES`], with at most [`MOST_RESULTS`] results of at most [`LONGEST_LINE`].
//!
//! ```
//! use boscage_study::past_results::{PastFormat, PastOptions, PastOutcome, read};
//! use boscage_study::{Kind, StudyParameter, StudySpace};
//!
//! let rate = Kind::Real { low: 0.0, high: 1.0, log: false, step: None };
//! let space = StudySpace::new(vec![StudyParameter::new("rate", rate)], Vec::new())?;
//! let text = "rate,value,host\n0.25,17.5,ant\n0.5,,bee\n";
//! let past = read(text.as_bytes(), PastFormat::Csv, &space, &PastOptions::default(), "past.csv")?;
//! assert_eq!(past.results[0].outcome, PastOutcome::Value(17.5));
//! assert_eq!(past.results[1].outcome, PastOutcome::Failed("there is no value".to_string()));
//! assert_eq!(past.ignored, ["host"]);
//! # Ok::<(), boscage_study::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use boscage::Value;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value as Json};

use crate::error::{Error, Result};
use crate::export::{ATTRIBUTE_PREFIX, PARAMETER_PREFIX};
use crate::parameters::{Kind, StudyParameter, StudySpace, Values};
use crate::trial::State;

/// The most bytes of a file: 256 MiB.
pub const MOST_BYTES: usize = 256 << 20;
/// The most results in a file.
pub const MOST_RESULTS: usize = 1_000_000;
/// The most bytes of one result: 4 MiB.
pub const LONGEST_LINE: usize = 4 << 20;

/// How many columns an error lists, and how many characters of a text it repeats.
const QUOTED_COLUMNS: usize = 12;
const QUOTED_CHARACTERS: usize = 300;

/// The format of past results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastFormat {
    /// Comma-separated values, with a header line.
    Csv,
    /// An object on each line.
    JsonLines,
}

impl PastFormat {
    /// The format that the ending of a file's name tells: `.csv`, `.jsonl` or `.ndjson`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if it tells none.
    pub fn from_path(path: &Path) -> Result<Self> {
        let extension = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("csv") => Ok(PastFormat::Csv),
            Some("jsonl" | "ndjson") => Ok(PastFormat::JsonLines),
            _ => Err(refused(
                &path.display().to_string(),
                "the ending of its name does not tell the format; past results are read from .csv, .jsonl and .ndjson",
            )),
        }
    }
}

/// How past results are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastOptions {
    /// The column of the values, if it is not `value`.
    pub value_column: Option<String>,
}

/// What came out of a trial before there was a study.
#[derive(Debug, Clone, PartialEq)]
pub enum PastOutcome {
    /// A finite number.
    Value(f64),
    /// Nothing of use, and why.
    Failed(String),
}

/// A past result.
#[derive(Debug, Clone, PartialEq)]
pub struct PastResult {
    /// The values of the parameters, in the order of the space.
    pub values: Values,
    /// What came out.
    pub outcome: PastOutcome,
    /// The file and the line.
    pub place: String,
}

/// All that was read from a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PastResults {
    /// The results, in the order of the file.
    pub results: Vec<PastResult>,
    /// Columns that were not looked at.
    pub ignored: Vec<String>,
    /// Lines that were skipped because their state is `RUNNING` or `WAITING`.
    pub unfinished: usize,
    /// Lines that were skipped because they have no value for any parameter.
    pub without_values: usize,
}

fn refused(place: &str, reason: impl AsRef<str>) -> Error {
    Error::Input { place: place.to_string(), reason: shortened(reason.as_ref()) }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(4 * QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A text in quotation marks, or its beginning.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(quoted).collect();
    let more = names.len().saturating_sub(QUOTED_COLUMNS);
    names.truncate(QUOTED_COLUMNS);
    let text = names.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Reads a file. Its format is told by its name if none is given.
///
/// # Errors
///
/// As [`read`]; and if the file cannot be read.
pub fn read_file(
    path: &Path,
    format: Option<PastFormat>,
    space: &StudySpace,
    options: &PastOptions,
) -> Result<PastResults> {
    let format = format.map_or_else(|| PastFormat::from_path(path), Ok)?;
    let place = path.display().to_string();
    let failed = |error: std::io::Error| refused(&place, format!("cannot be read: {error}"));
    let mut bytes = Vec::new();
    // One more than is allowed, so that it is noticed.
    let file = File::open(path).map_err(failed)?;
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    read(&bytes, format, space, options, &place)
}

/// Reads past results. `place` is the name of the file, for errors.
///
/// # Errors
///
/// [`Error::Input`] with the line and, where there is one, the column: no UTF-8, a limit reached, a column that is missing or
/// occurs twice, a wrong number of cells, values that are none of the parameter's, no value where there must be one.
pub fn read(
    bytes: &[u8],
    format: PastFormat,
    space: &StudySpace,
    options: &PastOptions,
    place: &str,
) -> Result<PastResults> {
    if bytes.len() > MOST_BYTES {
        return Err(refused(
            place,
            format!("it has more than {} MiB; import it in parts", MOST_BYTES >> 20),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + line_ends(&String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
        refused(&format!("{place}, line {line}"), "it is not UTF-8; save it in that encoding")
    })?;
    // Spreadsheets like to begin with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value_column = options.value_column.as_deref().unwrap_or("value");
    let reader =
        |column| Reader { space, value_column, place, column, past: PastResults::default() };
    match format {
        PastFormat::Csv => reader("column").csv(text),
        PastFormat::JsonLines => reader("key").json_lines(text),
    }
}

/// What a line says of one thing.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Text(&'a str),
    Json(&'a Json),
}

impl<'a> Field<'a> {
    fn is_empty(self) -> bool {
        match self {
            Field::Text(text) => text.trim().is_empty(),
            Field::Json(json) => json.is_null(),
        }
    }

    fn words(self) -> Cow<'a, str> {
        match self {
            Field::Text(text) => Cow::Borrowed(text),
            Field::Json(Json::String(text)) => Cow::Borrowed(text),
            Field::Json(Json::Null) => Cow::Borrowed(""),
            Field::Json(json) => Cow::Owned(json.to_string()),
        }
    }
}

/// Where in a line everything is: numbers of columns of CSV, or of keys of JSON.
struct Layout {
    /// For each parameter.
    parameters: Vec<Option<usize>>,
    value: Option<usize>,
    state: Option<usize>,
    failure: Option<usize>,
    infeasible: Option<usize>,
}

impl Layout {
    /// Finds everything by name; or says what cannot be told apart.
    fn find(
        space: &StudySpace,
        value_column: &str,
        with_prefix_only: bool,
        find: impl Fn(&str) -> Option<usize>,
    ) -> std::result::Result<Self, String> {
        let value = find(value_column);
        let plain =
            |name: &str| find(name).filter(|place| !with_prefix_only && Some(*place) != value);
        let of_parameter =
            |name: &str| find(&format!("{PARAMETER_PREFIX}{name}")).or_else(|| plain(name));
        let parameters: Vec<Option<usize>> = space.names().map(of_parameter).collect();
        let mut claimed: HashMap<usize, &str> = HashMap::new();
        for (name, place) in space.names().zip(&parameters) {
            let Some(place) = *place else { continue };
            if Some(place) == value {
                return Err(format!(
                    "{} is that of the parameter {}; name another one for the values",
                    quoted(value_column),
                    quoted(name)
                ));
            }
            if let Some(other) = claimed.insert(place, name) {
                return Err(format!(
                    "one column could be that of the parameter {} or of {}; call them {} and {}",
                    quoted(other),
                    quoted(name),
                    quoted(&format!("{PARAMETER_PREFIX}{other}")),
                    quoted(&format!("{PARAMETER_PREFIX}{name}"))
                ));
            }
        }
        // A parameter may have such a name.
        let unclaimed = |name: &str| {
            find(name).filter(|place| Some(*place) != value && !claimed.contains_key(place))
        };
        let (state, failure) = (unclaimed("state"), unclaimed("failure"));
        let infeasible = unclaimed("infeasible");
        Ok(Self { parameters, value, state, failure, infeasible })
    }

    fn used(&self) -> HashSet<usize> {
        let others = [self.value, self.state, self.failure, self.infeasible];
        self.parameters.iter().copied().chain(others).flatten().collect()
    }
}

/// A line, with what it says found.
struct Line<'a> {
    place: String,
    parameters: Vec<Option<Field<'a>>>,
    value: Option<Field<'a>>,
    state: Option<Field<'a>>,
    failure: Option<Field<'a>>,
    infeasible: Option<Field<'a>>,
}

impl<'a> Line<'a> {
    fn new(place: String, layout: &Layout, field: impl Fn(usize) -> Option<Field<'a>>) -> Self {
        let get = |place: Option<usize>| place.and_then(&field);
        Self {
            place,
            parameters: layout.parameters.iter().map(|place| get(*place)).collect(),
            value: get(layout.value),
            state: get(layout.state),
            failure: get(layout.failure),
            infeasible: get(layout.infeasible),
        }
    }
}

struct Reader<'a> {
    space: &'a StudySpace,
    value_column: &'a str,
    place: &'a str,
    /// What a column is called.
    column: &'static str,
    past: PastResults,
}

impl Reader<'_> {
    fn line_place(&self, line: usize) -> String {
        format!("{}, line {line}", self.place)
    }

    fn csv(mut self, text: &str) -> Result<PastResults> {
        let mut records = Records { rest: text, line: 1 };
        let first = records.next().map_err(|(line, why)| refused(&self.line_place(line), why))?;
        let Some((line, names)) = first else {
            return Err(refused(self.place, "it is empty; the first line must name the columns"));
        };
        let place = self.line_place(line);
        let mut columns: HashMap<&str, usize> = HashMap::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            if columns.insert(name, column).is_some() && !name.trim().is_empty() {
                let why = format!("the column {} occurs twice; remove one", quoted(name));
                return Err(refused(&place, why));
            }
        }
        for (column, name) in names.iter().enumerate() {
            columns.entry(name.trim()).or_insert(column);
        }
        let layout =
            Layout::find(self.space, self.value_column, false, |name| columns.get(name).copied())
                .map_err(|why| refused(&place, why))?;
        let used: HashSet<usize> = layout.used();
        let unused = || names.iter().enumerate().filter(|(column, _)| !used.contains(column));
        self.check_columns(&layout, &names, unused().map(|(_, name)| name.as_ref()))
            .map_err(|why| refused(&place, why))?;
        let ignored = unused().map(|(_, name)| name.trim()).filter(|name| !name.is_empty());
        self.past.ignored = ignored.map(String::from).collect();
        let of_parameter: Vec<String> = layout
            .parameters
            .iter()
            .map(|column| column.and_then(|column| names.get(column)))
            .map(|name| name.map(|name| format!("column {}", quoted(name))))
            .map(Option::unwrap_or_default)
            .collect();
        loop {
            let record =
                records.next().map_err(|(line, why)| refused(&self.line_place(line), why))?;
            let Some((line, cells)) = record else { break };
            let place = self.line_place(line);
            if cells.len() != names.len() {
                let why = format!(
                    "it has {} cells, but there are {} columns; quote cells that hold a comma or a quotation mark",
                    cells.len(),
                    names.len()
                );
                return Err(refused(&place, why));
            }
            let field = |column: usize| cells.get(column).map(|cell| Field::Text(cell));
            self.add(Line::new(place, &layout, field), &|d| of_parameter[d].clone())?;
        }
        Ok(self.past)
    }

    /// What is wrong with the columns as a whole.
    fn check_columns<'n>(
        &self,
        layout: &Layout,
        names: &[Cow<'_, str>],
        unused: impl Iterator<Item = &'n str> + Clone,
    ) -> std::result::Result<(), String> {
        if let [name] = names
            && let Some(separator) = [';', '\t', '|'].into_iter().find(|c| name.contains(*c))
        {
            return Err(format!(
                "the columns seem to be separated by {separator:?}; separate them by commas"
            ));
        }
        let have = || listed(names.iter().map(AsRef::as_ref));
        if layout.value.is_none() {
            return Err(format!(
                "there is no column {} for the values{}; name the column that has them, which is one of {}",
                quoted(self.value_column),
                near(self.value_column, unused),
                have()
            ));
        }
        let parameters = self.space.parameters().iter().zip(&layout.parameters);
        // One with a condition may never have had a value.
        let missing = parameters
            .filter(|(parameter, column)| column.is_none() && parameter.condition.is_none())
            .map(|(parameter, _)| parameter.name.as_str())
            .collect::<Vec<_>>();
        match missing.as_slice() {
            [] => Ok(()),
            [name] if *name == self.value_column => Err(format!(
                "the column {name:?} is that of the values; call the one of the parameter {name:?} \
                 \"{PARAMETER_PREFIX}{name}\""
            )),
            [name] => Err(format!(
                "there is no column {name:?} or \"{PARAMETER_PREFIX}{name}\" for the parameter {name:?}{}; there are {}",
                near(name, unused),
                have()
            )),
            [name, ..] => Err(format!(
                "there are no columns for the parameters {}{}; there are {}",
                listed(missing.iter().copied()),
                near(name, unused),
                have()
            )),
        }
    }

    fn json_lines(mut self, text: &str) -> Result<PastResults> {
        let mut seen_value = false;
        let mut wanted_value = None;
        let mut ignored = HashSet::new();
        for (number, line) in text.split('\n').enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let place = self.line_place(number + 1);
            if line.len() > LONGEST_LINE {
                return Err(refused(&place, too_long()));
            }
            let object = object(line).map_err(|why| refused(&place, why))?;
            let (object, is_nested) =
                flat(object, self.space).map_err(|why| refused(&place, why))?;
            // Numbers stand for keys, in their order.
            let places: HashMap<&str, usize> =
                object.iter().enumerate().map(|(k, (key, _))| (key.as_str(), k)).collect();
            let find = |name: &str| places.get(name).copied();
            let layout = Layout::find(self.space, self.value_column, is_nested, find)
                .map_err(|why| refused(&place, why))?;
            let used: HashSet<usize> = layout.used();
            for (k, (key, _)) in object.iter().enumerate() {
                if !used.contains(&k) && !ignored.contains(key) {
                    ignored.insert(key.clone());
                    self.past.ignored.push(key.clone());
                }
            }
            let field = |k: usize| object.get(k).map(|(_, json)| Field::Json(json));
            let line = Line::new(place.clone(), &layout, field);
            seen_value |= layout.value.is_some();
            let key_of = |d: usize| {
                let key = layout.parameters.get(d).copied().flatten().and_then(|k| object.get(k));
                match key {
                    Some((key, _)) if !is_nested => format!("key {}", quoted(key)),
                    _ => String::new(),
                }
            };
            if self.add(line, &key_of)? && layout.value.is_none() {
                wanted_value.get_or_insert(place);
            }
        }
        // A name that was mistyped would make failures of all results.
        match wanted_value {
            Some(place) if !seen_value => Err(refused(
                &place,
                format!(
                    "no line has the key {} for the values{}; name the key that has them, which is one of {}",
                    quoted(self.value_column),
                    near(self.value_column, self.past.ignored.iter().map(String::as_str)),
                    listed(self.past.ignored.iter().map(String::as_str))
                ),
            )),
            _ => Ok(self.past),
        }
    }

    /// Adds what a line says, and tells whether its value was looked for. `column_of` names the column of a parameter; it is
    /// empty if there is none.
    fn add(&mut self, line: Line<'_>, column_of: &dyn Fn(usize) -> String) -> Result<bool> {
        if self.past.results.len() >= MOST_RESULTS {
            let why = format!("there are more than {MOST_RESULTS} results; import them in parts");
            return Err(refused(&line.place, why));
        }
        let in_column = |name: &str, why: &str| {
            refused(&format!("{}, {} {}", line.place, self.column, quoted(name)), why)
        };
        let state = match line.state {
            Some(field) if !field.is_empty() => {
                let words = field.words();
                let state = State::from_stored(&words.trim().to_uppercase());
                Some(state.ok_or_else(|| {
                    let why = format!(
                        "{} is none of COMPLETE, FAIL, PRUNED, RUNNING and WAITING",
                        quoted(&words)
                    );
                    in_column("state", &why)
                })?)
            }
            _ => None,
        };
        if matches!(state, Some(State::Running | State::Waiting)) {
            self.past.unfinished += 1;
            return Ok(false);
        }
        let Some(values) = self.values(&line, column_of)? else {
            self.past.without_values += 1;
            return Ok(false);
        };
        let reason = |otherwise: &str| {
            let given = line.failure.map(Field::words).filter(|words| !words.is_empty());
            PastOutcome::Failed(given.unwrap_or(Cow::Borrowed(otherwise)).into_owned())
        };
        let is_infeasible = line.infeasible.map_or(Ok(false), |field| {
            truth(field).ok_or_else(|| {
                let why = format!("{} is neither true nor false", quoted(&field.words()));
                in_column("infeasible", &why)
            })
        })?;
        let outcome = match state {
            Some(State::Failed) => reason("failed"),
            Some(State::Pruned) => reason("pruned"),
            _ if is_infeasible => reason("infeasible"),
            _ => {
                let given = line.value.map_or(Ok(None), number);
                match given.map_err(|why| in_column(self.value_column, &why))? {
                    None => reason("there is no value"),
                    Some(value) if value.is_finite() => PastOutcome::Value(value),
                    Some(value) => reason(&format!("the value is {value:?}")),
                }
            }
        };
        self.past.results.push(PastResult { values, outcome, place: line.place });
        Ok(!matches!(state, Some(State::Failed | State::Pruned)))
    }

    /// The values of a line; nothing if it has none at all.
    fn values(
        &self,
        line: &Line<'_>,
        column_of: &dyn Fn(usize) -> String,
    ) -> Result<Option<Values>> {
        let mut values: Values = Vec::with_capacity(line.parameters.len());
        let mut wrong = Vec::new();
        for (d, (parameter, field)) in
            self.space.parameters().iter().zip(&line.parameters).enumerate()
        {
            values.push(value(parameter, *field).unwrap_or_else(|error| {
                wrong.push((d, error));
                None
            }));
        }
        self.space.drop_inactive(&mut values);
        let fits = wrong.is_empty() && self.space.encode(&values).is_ok();
        if fits {
            return Ok(Some(values));
        }
        if line.parameters.iter().flatten().all(|field| field.is_empty()) {
            return Ok(None);
        }
        let at = |d: usize| match column_of(d) {
            column if column.is_empty() => line.place.clone(),
            column => format!("{}, {column}", line.place),
        };
        for (d, error) in wrong {
            // What a cell says that is not looked at does not matter.
            if self.needs_value(d, &values) {
                return Err(match error {
                    Error::Parameter { name, reason } if column_of(d).is_empty() => {
                        refused(&at(d), format!("parameter {}: {reason}", quoted(&name)))
                    }
                    Error::Parameter { reason, .. } => refused(&at(d), reason),
                    other => refused(&at(d), other.to_string()),
                });
            }
        }
        for (d, parameter) in self.space.parameters().iter().enumerate() {
            if values.get(d).is_some_and(Option::is_none) && self.needs_value(d, &values) {
                let why = match &parameter.condition {
                    None => {
                        format!("there is no value for the parameter {}", quoted(&parameter.name))
                    }
                    Some(condition) => format!(
                        "there is no value for the parameter {}, but its condition holds: {}",
                        quoted(&parameter.name),
                        condition.text()
                    ),
                };
                return Err(refused(&at(d), why));
            }
        }
        match self.space.encode(&values) {
            Ok(_) => Ok(Some(values)),
            Err(error) => Err(refused(&line.place, error.to_string())),
        }
    }

    /// Whether the condition of a parameter holds: whether a value would stay if it had one.
    fn needs_value(&self, d: usize, values: &Values) -> bool {
        let mut values = values.clone();
        if let Some(value) = values.get_mut(d) {
            *value = Some(Value::Boolean(false));
        }
        self.space.drop_inactive(&mut values);
        values.get(d).is_some_and(Option::is_some)
    }
}

fn too_long() -> String {
    format!("it has more than {} MiB", LONGEST_LINE >> 20)
}

/// "(did you mean …?)", if a name is close.
fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let wanted = wanted.to_lowercase();
    let near = names
        // A long name would take long.
        .filter(|name| name.len() <= 100 && wanted.len() <= 100)
        .map(|name| (strsim::damerau_levenshtein(&name.trim().to_lowercase(), &wanted), name))
        .min();
    match near {
        Some((distance, name)) if distance <= 2 && distance < wanted.len() => {
            format!(" (did you mean {name:?}?)")
        }
        _ => String::new(),
    }
}

/// The value of a parameter that a field says.
fn value(parameter: &StudyParameter, field: Option<Field<'_>>) -> Result<Option<Value>> {
    let Some(field) = field else { return Ok(None) };
    let known: &[Value] = match &parameter.kind {
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => values,
        _ => &[],
    };
    match field {
        Field::Json(Json::Null) => Ok(None),
        Field::Json(json) => parameter.value_from_json(json).map(Some),
        Field::Text(text) => {
            // As it is written, with all spaces; or as Python writes it.
            let same = |value: &&Value| value.to_string() == text;
            let truth = |value: &&Value| {
                matches!(value, Value::Boolean(_))
                    && value.to_string().eq_ignore_ascii_case(text.trim())
            };
            if let Some(value) = known.iter().find(same) {
                return Ok(Some(value.clone()));
            }
            if text.trim().is_empty() {
                return Ok(None);
            }
            match parameter.value_from_text(text) {
                Err(error) => known.iter().find(truth).cloned().map(Some).ok_or(error),
                value => value.map(Some),
            }
        }
    }
}

/// The number that a field says, or what is wrong with it; nothing if it says that there is none.
fn number(field: Field<'_>) -> std::result::Result<Option<f64>, String> {
    if let Field::Json(Json::Number(number)) = field {
        return Ok(number.as_f64());
    }
    if let Field::Json(json @ (Json::Bool(_) | Json::Array(_) | Json::Object(_))) = field {
        return Err(format!("{} is not a number", quoted(&json.to_string())));
    }
    let words = field.words();
    let text = words.trim();
    if ["", "na", "n/a", "null", "none"].contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let advice = if text.contains(',') { "; write 1.5, not 1,5" } else { "" };
        format!("{} is not a number{advice}", quoted(text))
    })
}

fn truth(field: Field<'_>) -> Option<bool> {
    match field.words().trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// How many lines end in a text.
fn line_ends(text: &str) -> usize {
    let bytes = text.as_bytes();
    let returns = bytes.iter().enumerate();
    let returns = returns.filter(|(k, byte)| **byte == b'\r' && bytes.get(k + 1) != Some(&b'\n'));
    returns.count() + bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The records of a text in CSV, each with the line it begins in. Lines may end in `\n`, `\r\n` or `\r`.
struct Records<'a> {
    rest: &'a str,
    line: usize,
}

type Record<'a> = (usize, Vec<Cow<'a, str>>);

impl<'a> Records<'a> {
    /// The next record that is not blank, or the line and what is wrong there.
    fn next(&mut self) -> std::result::Result<Option<Record<'a>>, (usize, String)> {
        while !self.rest.is_empty() {
            let (line, before) = (self.line, self.rest.len());
            let mut cells = Vec::new();
            let mut was_quoted = false;
            loop {
                let cell_line = self.line;
                was_quoted |= self.rest.starts_with('"');
                cells.push(self.cell().map_err(|why| (cell_line, why))?);
                match self.rest.strip_prefix(',') {
                    Some(rest) => self.rest = rest,
                    None => break,
                }
            }
            if before - self.rest.len() > LONGEST_LINE {
                return Err((line, too_long()));
            }
            let ended =
                self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix(['\r', '\n']));
            self.rest = ended.unwrap_or(self.rest);
            self.line += 1;
            let is_blank = !was_quoted && matches!(&cells[..], [cell] if cell.trim().is_empty());
            if !is_blank {
                return Ok(Some((line, cells)));
            }
        }
        Ok(None)
    }

    /// The next cell, up to what separates it from the next one.
    fn cell(&mut self) -> std::result::Result<Cow<'a, str>, String> {
        let Some(inside) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\r', '\n']).unwrap_or(self.rest.len());
            let (cell, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Ok(Cow::Borrowed(cell));
        };
        let mut end = 0;
        let mut has_marks = false;
        loop {
            let Some(mark) = inside[end..].find('"') else {
                return Err("a quotation mark is opened and not closed".to_string());
            };
            end += mark;
            if !inside[end + 1..].starts_with('"') {
                break;
            }
            has_marks = true;
            end += 2;
        }
        let (cell, rest) = (&inside[..end], &inside[end + 1..]);
        if !rest.is_empty() && !rest.starts_with([',', '\r', '\n']) {
            return Err(format!(
                "there is text after the closing quotation mark of {}; write a quotation mark inside of a cell twice",
                quoted(cell)
            ));
        }
        self.line += line_ends(cell);
        self.rest = rest;
        Ok(if has_marks { Cow::Owned(cell.replace("\"\"", "\"")) } else { Cow::Borrowed(cell) })
    }
}

/// JSON in which no key occurs twice.
struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Strict;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> std::result::Result<Strict, E> {
                Ok(Strict(Json::Null))
            }

            fn visit_bool<E>(self, truth: bool) -> std::result::Result<Strict, E> {
                Ok(Strict(Json::Bool(truth)))
            }

            fn visit_i64<E>(self, number: i64) -> std::result::Result<Strict, E> {
                Ok(Strict(Json::from(number)))
            }

            fn visit_u64<E>(self, number: u64) -> std::result::Result<Strict, E> {
                Ok(Strict(Json::from(number)))
            }

            fn visit_f64<E>(self, number: f64) -> std::result::Result<Strict, E> {
                Ok(Strict(Number::from_f64(number).map_or(Json::Null, Json::Number)))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Strict, E> {
                Ok(Strict(Json::String(text.to_string())))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> std::result::Result<Strict, A::Error> {
                let mut items = Vec::new();
                while let Some(Strict(item)) = list.next_element()? {
                    items.push(item);
                }
                Ok(Strict(Json::Array(items)))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut object: A,
            ) -> std::result::Result<Strict, A::Error> {
                let mut map = Map::new();
                while let Some((key, Strict(value))) = object.next_entry::<String, Strict>()? {
                    if map.contains_key(&key) {
                        let why = format!("the key {} occurs twice", quoted(&key));
                        return Err(serde::de::Error::custom(why));
                    }
                    map.insert(key, value);
                }
                Ok(Strict(Json::Object(map)))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The object of a line.
fn object(line: &str) -> std::result::Result<Map<String, Json>, String> {
    let read = serde_json::from_str(line);
    // Python writes numbers that JSON does not have.
    let read = read.or_else(|error| {
        with_words_quoted(line).ok_or(error).and_then(|line| serde_json::from_str(&line))
    });
    let example = "each line must be an object, such as {\"x\": 0.5, \"value\": 17.5}";
    match read {
        Ok(Strict(Json::Object(object))) => Ok(object),
        Ok(_) => Err(example.to_string()),
        Err(_) if line.trim_start().starts_with('[') => Err(example.to_string()),
        Err(error) => {
            let text = error.to_string();
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            Err(format!("{what} (at byte {} of the line); {example}", error.column()))
        }
    }
}

/// A line of JSON with `NaN`, `Infinity` and `-Infinity` in quotation marks; nothing if there is none of them.
fn with_words_quoted(line: &str) -> Option<String> {
    const WORDS: [(&str, &str); 3] =
        [("-Infinity", "\"-inf\""), ("Infinity", "\"inf\""), ("NaN", "\"NaN\"")];
    let mut out = String::with_capacity(line.len() + 16);
    let (mut rest, mut is_inside, mut found) = (line, false, false);
    while let Some(character) = rest.chars().next() {
        if !is_inside
            && let Some((word, instead)) = WORDS.iter().find(|(word, _)| rest.starts_with(word))
        {
            out += instead;
            rest = &rest[word.len()..];
            found = true;
            continue;
        }
        let mut length = character.len_utf8();
        if character == '"' {
            is_inside = !is_inside;
        } else if is_inside && character == '\\' {
            length += rest[length..].chars().next().map_or(0, char::len_utf8);
        }
        out += &rest[..length];
        rest = &rest[length..];
    }
    found.then_some(out)
}

/// The keys of an object and their values, with those of `params` and `user_attrs` among them as they are called in CSV; and
/// whether there was such a `params`.
fn flat(
    object: Map<String, Json>,
    space: &StudySpace,
) -> std::result::Result<(Vec<(String, Json)>, bool), String> {
    let is_nested = match object.get("params") {
        Some(Json::Object(_)) => true,
        Some(Json::Null) => space.index_of("params").is_none(),
        _ => false,
    };
    if !is_nested {
        return Ok((object.into_iter().collect(), false));
    }
    let mut keys = Vec::new();
    for (key, json) in object {
        let prefix = match key.as_str() {
            "params" => PARAMETER_PREFIX,
            "user_attrs" => ATTRIBUTE_PREFIX,
            _ => "",
        };
        match json {
            Json::Object(inner) if !prefix.is_empty() => {
                keys.extend(inner.into_iter().map(|(key, json)| (format!("{prefix}{key}"), json)));
            }
            Json::Null if !prefix.is_empty() => {}
            json => keys.push((key, json)),
        }
    }
    let mut seen = HashSet::new();
    match keys.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        Some((key, _)) => Err(format!("the key {} occurs twice", quoted(key))),
        None => Ok((keys, true)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(text: &str) -> std::result::Result<Vec<Vec<String>>, (usize, String)> {
        let mut records = Records { rest: text, line: 1 };
        let mut all = Vec::new();
        while let Some((_, cells)) = records.next()? {
            all.push(cells.into_iter().map(Cow::into_owned).collect());
        }
        Ok(all)
    }

    /// As the crate `csv` reads it, which accepts more.
    fn other_reader(text: &str) -> Vec<Vec<String>> {
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.has_headers(false).flexible(true).from_reader(text.as_bytes());
        let records = reader.into_records().map(|record| record.unwrap());
        records.map(|record| record.iter().map(String::from).collect()).collect()
    }

    proptest! {
        #[test]
        fn what_another_program_writes_is_read(
            table in proptest::collection::vec(proptest::collection::vec("[a, \"\r\né;]{0,4}", 2..5), 0..5),
        ) {
            let mut builder = csv::WriterBuilder::new();
            let mut writer = builder.flexible(true).from_writer(Vec::new());
            for cells in &table {
                writer.write_record(cells).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            prop_assert_eq!(records(&text).unwrap(), table);
        }

        #[test]
        fn what_is_accepted_is_read_as_another_program_does(text in "[a,\"\r\né]{0,12}") {
            if let Ok(table) = records(&text) {
                prop_assert_eq!(table, other_reader(&text));
            }
        }

        #[test]
        fn lines_are_counted(cells in proptest::collection::vec("[a\r\n]{0,4}", 1..6), end in "\r|\n|\r\n") {
            let quoted = |cell: &String| format!("\"{cell}\",{end}");
            let text: String = cells.iter().map(quoted).collect();
            let mut records = Records { rest: &text, line: 1 };
            for cell in &cells {
                let before = text[..text.len() - records.rest.len()].replace("\r\n", "\n");
                let expected = 1 + before.matches(['\r', '\n']).count();
                let (line, read) = records.next().unwrap().unwrap();
                prop_assert_eq!((line, &*read[0]), (expected, cell.as_str()));
            }
        }
    }

    #[test]
    fn only_bare_words_are_quoted() {
        assert_eq!(with_words_quoted(r#"{"NaN": "a\"NaN", "b": 1}"#), None);
        assert_eq!(
            with_words_quoted(r#"{"a\\": NaN, "b": [-Infinity,Infinity], "é": "Infinity"}"#)
                .unwrap(),
            r#"{"a\\": "NaN", "b": ["-inf","inf"], "é": "Infinity"}"#
        );
    }
}
