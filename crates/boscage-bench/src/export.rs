//! All trials of a folder of results as one long table, in CSV or Parquet, for Python, R and anything else.
//!
//! Not in the paper. [`COLUMNS`] says what each column means; `docs/results.md` has the same table for readers. What is unknown
//! is null in Parquet and empty in CSV. A file appears under its name only when it is complete.
//!
//! Cost: one pass over the trials for each column; all trials are in memory.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::error::{Error, Result};
use crate::problem::Goal;
use crate::results::{RunResult, Start, TrialRecord};

/// The format of an exported table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values in UTF-8, with a header line.
    Csv,
    /// Apache Parquet, not compressed.
    Parquet,
}

impl Format {
    /// The usual ending of such files.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }
}

/// Whether the table has the column `point`, which is as wide as all others together, and in high dimension far wider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// Without it.
    Omit,
    /// With it.
    Include,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A double; in CSV, as many digits as it takes to read the same number back.
    Real,
    /// True or false; in CSV, `true` or `false`.
    Truth,
    /// A list of doubles; in CSV, as JSON: `[0.5,0.25]`.
    Reals,
}

impl Kind {
    /// Its name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Real => "real",
            Kind::Truth => "true or false",
            Kind::Reals => "list of reals",
        }
    }
}

/// One value of the table.
#[derive(Debug, Clone, PartialEq)]
enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    Real(f64),
    Truth(bool),
    Reals(&'a [f64]),
}

/// One row: a trial and what it belongs to.
struct Row<'a> {
    start: &'a Start,
    trial: &'a TrialRecord,
    /// Edges of the graph learned last, up to this trial.
    edges: Option<usize>,
}

/// A column of the table.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it holds, and when it is empty.
    pub meaning: &'static str,
    cell: for<'a> fn(&Row<'a>) -> Cell<'a>,
}

const fn column(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    cell: for<'a> fn(&Row<'a>) -> Cell<'a>,
) -> Column {
    Column { name, kind, meaning, cell }
}

/// All columns, in order. The last one, `point`, is there only on request.
pub static COLUMNS: [Column; 30] = [
    column("recipe", Kind::Text, "name of the recipe", |r| text(&r.start.recipe)),
    column("problem", Kind::Text, "label of the problem in the recipe", |r| text(&r.start.problem)),
    column("method", Kind::Text, "label of the method in the recipe", |r| text(&r.start.method)),
    column(
        "seed",
        Kind::Integer,
        "seed of the run: one run is one problem, method and seed",
        |r| integer(r.start.seed),
    ),
    column("dimension", Kind::Integer, "number of parameters", |r| {
        integer(r.start.dimension as u64)
    }),
    column("goal", Kind::Text, "`minimize` or `maximize`", |r| {
        text(match r.start.goal {
            Goal::Minimize => "minimize",
            Goal::Maximize => "maximize",
        })
    }),
    column(
        "noise_std",
        Kind::Real,
        "standard deviation of the noise that was added to what the method saw",
        |r| real(r.start.noise_std),
    ),
    column("optimum", Kind::Real, "best value there is, without noise; empty if unknown", |r| {
        known(r.start.optimum.as_ref().map(|optimum| optimum.value))
    }),
    column("trial", Kind::Integer, "number of the trial in its run, from 0", |r| {
        integer(r.trial.trial)
    }),
    column(
        "initial",
        Kind::Truth,
        "whether the trial belongs to the initial design, which all methods of a seed share",
        |r| Cell::Truth(r.trial.initial),
    ),
    column(
        "observed",
        Kind::Real,
        "what the method was told: value plus noise; empty if the trial failed",
        |r| known(r.trial.observed),
    ),
    column("value", Kind::Real, "value without noise; empty if the trial failed", |r| {
        known(r.trial.value)
    }),
    column(
        "best_value",
        Kind::Real,
        "best `value` so far; empty until a trial has succeeded",
        |r| known(r.trial.best_value),
    ),
    column(
        "regret",
        Kind::Real,
        "distance of `best_value` to `optimum`; empty if one of them is",
        |r| known(r.trial.regret),
    ),
    column(
        "f1",
        Kind::Real,
        "F1 score of the learned graph's edges; empty if there is no learned or no true graph",
        |r| known(r.trial.score.map(|score| score.f1)),
    ),
    column("precision", Kind::Real, "share of learned edges that are true; empty as `f1`", |r| {
        known(r.trial.score.map(|score| score.precision))
    }),
    column("recall", Kind::Real, "share of true edges that were learned; empty as `f1`", |r| {
        known(r.trial.score.map(|score| score.recall))
    }),
    column(
        "edges_learned",
        Kind::Integer,
        "edges of the graph learned last; empty until one was learned",
        |r| r.edges.map_or(Cell::Null, |edges| integer(edges as u64)),
    ),
    column(
        "cost",
        Kind::Integer,
        "message-passing cost: evaluations of component acquisition functions in all asks so far",
        |r| integer(r.trial.cost),
    ),
    column("ask_seconds", Kind::Real, "time of this ask, by the clock", |r| {
        real(r.trial.timing.ask_seconds)
    }),
    column("tell_seconds", Kind::Real, "time of this tell, by the clock", |r| {
        real(r.trial.timing.tell_seconds)
    }),
    column("ask_cpu_seconds", Kind::Real, "processor time of this ask, all threads", |r| {
        real(r.trial.timing.ask_cpu_seconds)
    }),
    column("tell_cpu_seconds", Kind::Real, "processor time of this tell, all threads", |r| {
        real(r.trial.timing.tell_cpu_seconds)
    }),
    column("evaluation_seconds", Kind::Real, "time of the evaluation, by the clock", |r| {
        real(r.trial.timing.evaluation_seconds)
    }),
    column(
        "overhead_seconds",
        Kind::Real,
        "time the runner itself took: metrics, and writing the trial before",
        |r| real(r.trial.timing.overhead_seconds),
    ),
    column(
        "resident_bytes",
        Kind::Integer,
        "memory of the whole process after the trial; empty where the system does not tell",
        |r| match r.trial.timing.resident_bytes {
            0 => Cell::Null,
            bytes => integer(bytes),
        },
    ),
    column("failure", Kind::Text, "why the trial failed; empty if it did not", |r| {
        r.trial.failure.as_deref().map_or(Cell::Null, text)
    }),
    column("version", Kind::Text, "version of boscage that began the run", |r| {
        text(&r.start.version)
    }),
    column("started", Kind::Real, "when the run began, in seconds since 1970", |r| {
        real(r.start.started)
    }),
    column(
        "point",
        Kind::Reals,
        "the point in model coordinates, each in [0, 1]; only with `--points`",
        |r| Cell::Reals(r.trial.point.as_slice()),
    ),
];

fn text(text: &str) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text))
}

fn real<'a>(value: f64) -> Cell<'a> {
    Cell::Real(value)
}

fn known<'a>(value: Option<f64>) -> Cell<'a> {
    value.map_or(Cell::Null, Cell::Real)
}

/// Counts and bytes fit; seeds are checked before.
fn integer<'a>(value: u64) -> Cell<'a> {
    i64::try_from(value).map_or(Cell::Null, Cell::Integer)
}

/// Writes all trials of the runs to a file, replacing it. Returns the number of rows.
///
/// # Errors
///
/// The file cannot be written, or a seed is too large for a whole number of 64 bits with a sign.
pub fn export(runs: &[RunResult], format: Format, points: Points, path: &Path) -> Result<usize> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("export");
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written =
        std::fs::File::create(&partial).map_err(Error::file(path, "writing")).and_then(|file| {
            let rows = match format {
                Format::Csv => write_csv(runs, points, &file, path),
                Format::Parquet => write_parquet(runs, points, &file, path),
            }?;
            file.sync_all().map_err(Error::file(path, "writing"))?;
            std::fs::rename(&partial, path).map_err(Error::file(path, "writing"))?;
            Ok(rows)
        });
    if written.is_err() {
        // Best effort: the first error is the one to tell.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// Writes all trials of the runs as CSV. `path` names the target in errors. Returns the number of rows.
pub fn write_csv(
    runs: &[RunResult],
    points: Points,
    out: impl Write,
    path: &Path,
) -> Result<usize> {
    let rows = rows(runs)?;
    let columns = columns(points);
    let failed = |error: csv::Error| {
        let source = match error.into_kind() {
            csv::ErrorKind::Io(source) => source,
            other => std::io::Error::other(format!("{other:?}")),
        };
        Error::file(path, "writing")(source)
    };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| column.name)).map_err(failed)?;
    for row in &rows {
        for column in &columns {
            let field: Cow<'_, str> = match (column.cell)(row) {
                Cell::Null => "".into(),
                Cell::Text(text) => text,
                Cell::Integer(value) => value.to_string().into(),
                // Debug keeps all digits and uses an exponent where that is shorter.
                Cell::Real(value) => format!("{value:?}").into(),
                Cell::Truth(value) => value.to_string().into(),
                Cell::Reals(values) => format!("{values:?}").replace(' ', "").into(),
            };
            writer.write_field(field.as_bytes()).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush().map_err(Error::file(path, "writing"))?;
    Ok(rows.len())
}

fn columns(points: Points) -> Vec<&'static Column> {
    COLUMNS
        .iter()
        .filter(|column| points == Points::Include || column.kind != Kind::Reals)
        .collect()
}

fn rows(runs: &[RunResult]) -> Result<Vec<Row<'_>>> {
    let mut rows = Vec::with_capacity(runs.iter().map(|run| run.trials.len()).sum());
    for run in runs {
        if i64::try_from(run.start.seed).is_err() {
            return Err(Error::results(
                &run.path,
                format!(
                    "seed {} does not fit in the column `seed`; use seeds below 2^63",
                    run.start.seed
                ),
            ));
        }
        let mut edges = None;
        for trial in &run.trials {
            edges = trial.learned.as_ref().map(|learned| learned.edges.len()).or(edges);
            rows.push(Row { start: &run.start, trial, edges });
        }
    }
    Ok(rows)
}

/// Rows of one group of a Parquet file: the unit that readers load at a time.
const GROUP_ROWS: usize = 1 << 17;

fn write_parquet(
    runs: &[RunResult],
    points: Points,
    out: impl Write + Send,
    path: &Path,
) -> Result<usize> {
    let rows = rows(runs)?;
    let columns = columns(points);
    let write = || -> std::result::Result<(), ParquetError> {
        let fields =
            columns.iter().map(|column| parquet_type(column)).collect::<ParquetResult<Vec<_>>>();
        let schema = Type::group_type_builder("trials").with_fields(fields?).build()?;
        let mut writer =
            SerializedFileWriter::new(BufWriter::new(out), Arc::new(schema), Default::default())?;
        for rows in rows.chunks(GROUP_ROWS) {
            let mut group = writer.next_row_group()?;
            for column in &columns {
                write_column(&mut group, column, rows)?;
            }
            group.close()?;
        }
        writer.into_inner()?.flush()?;
        Ok(())
    };
    write().map_err(|error| Error::file(path, "writing")(std::io::Error::other(error)))?;
    Ok(rows.len())
}

type ParquetResult<T> = std::result::Result<T, ParquetError>;

/// Every column may be null, so that a reader needs no special case; lists follow the standard's three-level form.
fn parquet_type(column: &Column) -> ParquetResult<Arc<Type>> {
    let leaf = |name, physical, converted, repetition| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_converted_type(converted)
            .build()
            .map(Arc::new)
    };
    let optional =
        |physical, converted| leaf(column.name, physical, converted, Repetition::OPTIONAL);
    match column.kind {
        Kind::Text => optional(Physical::BYTE_ARRAY, ConvertedType::UTF8),
        Kind::Integer => optional(Physical::INT64, ConvertedType::NONE),
        Kind::Real => optional(Physical::DOUBLE, ConvertedType::NONE),
        Kind::Truth => optional(Physical::BOOLEAN, ConvertedType::NONE),
        Kind::Reals => {
            let element =
                leaf("element", Physical::DOUBLE, ConvertedType::NONE, Repetition::REQUIRED)?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![element])
                .build()?;
            let outer = Type::group_type_builder(column.name)
                .with_repetition(Repetition::REQUIRED)
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()?;
            Ok(Arc::new(outer))
        }
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    rows: &[Row<'_>],
) -> ParquetResult<()> {
    let cells = rows.iter().map(column.cell);
    match column.kind {
        Kind::Text => write_values::<ByteArrayType, W>(group, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.as_bytes().to_vec())),
            _ => None,
        }),
        Kind::Integer => write_values::<Int64Type, W>(group, cells, |cell| match cell {
            Cell::Integer(value) => Some(value),
            _ => None,
        }),
        Kind::Real => write_values::<DoubleType, W>(group, cells, |cell| match cell {
            Cell::Real(value) => Some(value),
            _ => None,
        }),
        Kind::Truth => write_values::<BoolType, W>(group, cells, |cell| match cell {
            Cell::Truth(value) => Some(value),
            _ => None,
        }),
        Kind::Reals => {
            // Definition: 1 where there is an element, 0 for an empty list. Repetition: 0 where a list begins.
            let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
            for cell in cells {
                let list = if let Cell::Reals(list) = cell { list } else { &[] };
                values.extend_from_slice(list);
                defined.extend(std::iter::repeat_n(i16::from(!list.is_empty()), list.len().max(1)));
                repeated.extend((0..list.len().max(1)).map(|i| i16::from(i > 0)));
            }
            write_levels::<DoubleType, W>(group, &values, &defined, Some(&repeated))
        }
    }
}

fn write_values<'a, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Cell<'a>>,
    value: impl Fn(Cell<'a>) -> Option<T::T>,
) -> ParquetResult<()> {
    let (mut values, mut defined) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        defined.push(i16::from(value.is_some()));
        values.extend(value);
    }
    write_levels::<T, W>(group, &values, &defined, None)
}

fn write_levels<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    defined: &[i16],
    repeated: Option<&[i16]>,
) -> ParquetResult<()> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_string()));
    };
    writer.typed::<T>().write_batch(values, Some(defined), repeated)?;
    writer.close()
}
