//! All trials of a folder of results as one long table, in CSV or Parquet, for Python, R and anything else.
//!
//! Not in the paper. [`COLUMNS`] says what each column means; `docs/results.md` has the same table for readers. What is unknown
//! is null in Parquet and empty in CSV. A file appears under its name only when it is complete.
//!
//! Cost: one pass over the trials for each column; all trials are in memory.

use std::io::Write;
use std::path::Path;

pub use boscage_study::table::ColumnType as Kind;
use boscage_study::table::{Cell, Heading, replace_file};

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
    Cell::text(text)
}

fn real<'a>(value: f64) -> Cell<'a> {
    Cell::Real(value)
}

fn known<'a>(value: Option<f64>) -> Cell<'a> {
    value.map_or(Cell::Null, Cell::Real)
}

/// Counts and bytes fit; seeds are checked before.
fn integer<'a>(value: u64) -> Cell<'a> {
    Cell::count(value)
}

/// Writes all trials of the runs to a file, replacing it. Returns the number of rows.
///
/// # Errors
///
/// The file cannot be written, or a seed is too large for a whole number of 64 bits with a sign.
pub fn export(runs: &[RunResult], format: Format, points: Points, path: &Path) -> Result<usize> {
    let failed = |source| Error::file(path, "writing")(source);
    replace_file(path, failed, |file| match format {
        Format::Csv => write_csv(runs, points, file, path),
        Format::Parquet => write_parquet(runs, points, file, path),
    })
}

/// Writes all trials of the runs as CSV. `path` names the target in errors. Returns the number of rows.
pub fn write_csv(
    runs: &[RunResult],
    points: Points,
    out: impl Write,
    path: &Path,
) -> Result<usize> {
    let (rows, columns) = (rows(runs)?, columns(points));
    let cell = |row: usize, column: usize| (columns[column].cell)(&rows[row]);
    boscage_study::table::write_csv(&headings(&columns), rows.len(), cell, out)
        .map_err(Error::file(path, "writing"))?;
    Ok(rows.len())
}

fn write_parquet(
    runs: &[RunResult],
    points: Points,
    out: impl Write + Send,
    path: &Path,
) -> Result<usize> {
    let (rows, columns) = (rows(runs)?, columns(points));
    let cell = |row: usize, column: usize| (columns[column].cell)(&rows[row]);
    boscage_study::table::write_parquet(&headings(&columns), rows.len(), cell, out)
        .map_err(Error::file(path, "writing"))?;
    Ok(rows.len())
}

fn headings(columns: &[&Column]) -> Vec<Heading<'static>> {
    columns.iter().map(|column| Heading::new(column.name, column.kind)).collect()
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
