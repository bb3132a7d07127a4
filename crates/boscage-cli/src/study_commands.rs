//! The small commands around a study: list, show, export, import, enqueue, ask, tell, report.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use boscage_study::explain::Explanation;
use boscage_study::export::{self, ExportFormat};
use boscage_study::past_results::{self, PastFormat, PastOptions, PastOutcome};
use boscage_study::{Asked, Location, Outcome, Store, StudyRow, StudyView, Told, Worker};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::bench::list::{table, text};
use crate::study_argument::{StudyArgument, access, assignments, reading};
use crate::{show, study_report};

/// List studies.
///
/// Without a store, those in all files NAME.db of this folder, or in the store that BOSCAGE_STORAGE names.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage studies
  boscage studies results/*.db
  boscage studies postgresql://me@host/tuning")]
pub(crate) struct StudiesArgs {
    /// Stores: files or addresses.
    #[arg(value_name = "STORE")]
    stores: Vec<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Lists studies.
pub(crate) fn studies(args: &StudiesArgs) -> anyhow::Result<ExitCode> {
    let mut locations =
        args.stores.iter().map(|store| Location::parse(store)).collect::<Result<Vec<_>, _>>()?;
    if locations.is_empty() {
        match std::env::var("BOSCAGE_STORAGE").ok().filter(|storage| !storage.is_empty()) {
            Some(storage) => locations.push(Location::parse(&storage)?),
            None => locations = stores_here()?,
        }
    }
    let mut found: Vec<(String, StudyRow)> = Vec::new();
    for location in &locations {
        let rows = Store::open(location, &reading()).and_then(|mut store| store.studies());
        match rows {
            Ok(rows) => found.extend(rows.into_iter().map(|row| (location.to_string(), row))),
            // Of many files some may be something else; one that was named must be a store.
            Err(error) if args.stores.is_empty() => {
                crate::bench::progress::line(&format!("passed over {error}"))
            }
            Err(error) => return Err(error.into()),
        }
    }
    let out = &mut std::io::stdout().lock();
    if args.json {
        let rows = found.iter().map(|(store, row)| {
            json!({"name": row.name, "storage": store, "goal": row.goal.map(|goal| goal.name()), "trials": row.trials, "best": row.best})
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        writeln!(
            out,
            "there are no studies here; `boscage init` writes a study file, `boscage tune example` runs an example"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = found.iter().map(|(store, row)| {
        let count = |state: &str| row.trials.get(state).copied().unwrap_or(0);
        let mut trials = format!("{} complete", count("COMPLETE"));
        for (state, word) in [
            ("FAIL", "failed"),
            ("PRUNED", "pruned"),
            ("RUNNING", "running"),
            ("WAITING", "waiting"),
        ] {
            if count(state) > 0 {
                trials += &format!(", {} {word}", count(state));
            }
        }
        vec![
            row.name.clone(),
            row.goal.map_or("several objectives", |goal| goal.name()).to_string(),
            trials,
            row.best.map_or("–".to_string(), show::number),
            store.clone(),
        ]
    });
    let mut shown = table(&["study", "goal", "trials", "best", "store"]);
    for row in rows {
        shown.add_row(row);
    }
    writeln!(out, "{}", text(shown))?;
    Ok(ExitCode::SUCCESS)
}

fn stores_here() -> anyhow::Result<Vec<Location>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(".")
        .context("this folder cannot be read")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "db"))
        .map(|path| path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path))
        .collect();
    paths.sort();
    Ok(paths.into_iter().map(Location::Sqlite).collect())
}

/// Show what a study has found and learned.
///
/// The best trial, the point that the model recommends, the learned forest, and how much each parameter and pair matters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage show study.toml
  boscage show study.db --json | jq .best")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Shows a study.
pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let view = args.study.view()?;
    let explanation = Explanation::new(&view)?;
    let out = &mut std::io::stdout().lock();
    match args.json {
        true => writeln!(
            out,
            "{}",
            serde_json::to_string_pretty(&show::json(&view, explanation.as_ref()))?
        )?,
        false => show::text(&view, explanation.as_ref(), out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Make a page from a study: history, importances, the learned forest, effects, trials.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage report study.toml
  boscage report postgresql://me@host/tuning --name solver --out solver.html")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// File to write [default: the study's file with .html].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the report.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let view = args.study.view()?;
    let explanation = Explanation::new(&view)?;
    let out = args.out.clone().unwrap_or_else(|| beside(&args.study, &view.name, "html"));
    write_report(&view, explanation.as_ref(), &out)?;
    writeln!(std::io::stdout(), "{}", out.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page, all of it or nothing.
pub(crate) fn write_report(
    view: &StudyView,
    explanation: Option<&Explanation>,
    path: &Path,
) -> anyhow::Result<()> {
    let page = study_report::html(view, explanation)?;
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = (|| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(page.as_bytes())?;
        // Temporary files are for their owner alone; a page is as readable as any other file.
        let permissions = std::fs::Permissions::from_mode(0o666 & !umask());
        file.as_file().set_permissions(permissions)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok::<(), std::io::Error>(())
    })();
    written.with_context(|| {
        format!(
            "the report cannot be written to {}; name another file with --out or --report",
            path.display()
        )
    })
}

/// What new files are not to be allowed.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok()).unwrap_or(0o022)
}

/// A file beside the study's own, or in this folder if the study is on a server.
fn beside(study: &StudyArgument, name: &str, ending: &str) -> PathBuf {
    match study.text().contains("://") {
        false => Path::new(study.text()).with_extension(ending),
        true => {
            let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
            PathBuf::from(format!("{}.{ending}", name.chars().map(plain).collect::<String>()))
        }
    }
}

/// A format of a table of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Csv,
    Jsonl,
    Parquet,
}

/// Write all trials of a study as a table, for Python, R and spreadsheets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage export study.toml
  boscage export study.toml --out trials.parquet
  boscage export study.db --out - | head")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// File to write, or `-` for the standard output [default: the study's file with .csv].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format [default: by the ending of --out, otherwise csv].
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
}

/// Exports the trials.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let is_piped = args.out.as_deref() == Some(Path::new("-"));
    let format = match (args.format, &args.out) {
        (Some(FormatName::Csv), _) => ExportFormat::Csv,
        (Some(FormatName::Jsonl), _) => ExportFormat::JsonLines,
        (Some(FormatName::Parquet), _) => ExportFormat::Parquet,
        (None, Some(path)) if !is_piped => ExportFormat::from_path(path)?,
        (None, _) => ExportFormat::Csv,
    };
    let view = args.study.view()?;
    if is_piped {
        let out = std::io::stdout().lock();
        match format {
            ExportFormat::Csv => export::write_csv(&view, out)?,
            ExportFormat::JsonLines => export::write_json_lines(&view, out)?,
            ExportFormat::Parquet => {
                bail!("Parquet cannot be written to standard output; name a file with --out")
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let out =
        args.out.clone().unwrap_or_else(|| beside(&args.study, &view.name, format.extension()));
    export::export(&view, format, &out)?;
    writeln!(std::io::stdout(), "{}: {} trials", out.display(), view.trials.len())?;
    Ok(ExitCode::SUCCESS)
}

/// Add results that were found elsewhere to a study, from CSV or JSON lines.
///
/// Columns are parameters (`x` or `params_x`) and `value`; what `boscage export` writes can be read. The optimizer learns from
/// them; they do not count as trials of the budget. A line that was imported before is passed over.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage import study.toml past.csv
  boscage import study.toml past.csv --value-column loss")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// The file: .csv, .jsonl or .ndjson.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The column that has the value.
    #[arg(long, value_name = "NAME")]
    value_column: Option<String>,
}

/// Imports past results.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let mut study = args.study.open()?;
    let options = PastOptions { value_column: args.value_column.clone() };
    let format = PastFormat::from_path(&args.file)?;
    let past =
        past_results::read_file(&args.file, Some(format), &study.definition().space, &options)?;
    let results: Vec<_> = past
        .results
        .into_iter()
        .map(|result| {
            let outcome = match result.outcome {
                PastOutcome::Value(value) => Outcome::Value(value),
                PastOutcome::Failed(reason) => Outcome::Failed(reason),
            };
            (result.values, outcome, result.place)
        })
        .collect();
    let new = study.import(&results)?;
    let out = &mut std::io::stdout().lock();
    writeln!(
        out,
        "{}: {new} of {} results are new in study {}",
        args.file.display(),
        results.len(),
        study.name()
    )?;
    if !past.ignored.is_empty() {
        writeln!(out, "columns that are no parameters were ignored: {}", past.ignored.join(", "))?;
    }
    if past.unfinished + past.without_values > 0 {
        writeln!(
            out,
            "{} rows without a result were passed over",
            past.unfinished + past.without_values
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Put a point into the queue: it is the next trial. Parameters that are left out are chosen by the method.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage enqueue study.toml rate=0.1 mode=fast")]
pub(crate) struct EnqueueArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// Values.
    #[arg(value_name = "NAME=VALUE", required = true)]
    values: Vec<String>,
}

/// Enqueues a point.
pub(crate) fn enqueue(args: &EnqueueArgs) -> anyhow::Result<ExitCode> {
    let mut study = args.study.open()?;
    let values = assignments(&study.definition().space, &args.values)?;
    let number = study.enqueue(&values)?;
    writeln!(std::io::stdout(), "trial {number} is in the queue")?;
    Ok(ExitCode::SUCCESS)
}

/// Ask for the next trial, to be run by a script of your own.
///
/// Prints one line of JSON: the trial's number and its parameters. `boscage tell` takes its result. A trial that is not told
/// before its lease is over is given to whoever asks next.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage ask study.toml
  while trial=$(boscage ask study.toml --trials 100); do
    number=$(echo \"$trial\" | jq .number)
    boscage tell study.toml \"$number\" \"$(echo \"$trial\" | jq .params | ./simulate)\"
  done

Exit codes: 0 a trial was given; 1 there are as many trials as --trials (or budget.trials) says; 2 an error.")]
pub(crate) struct AskArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// Give no trial if the study has so many [default: budget.trials].
    #[arg(long, value_name = "N")]
    trials: Option<u64>,
    /// How long the trial is yours.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0)]
    lease_seconds: f64,
}

/// Asks for a trial.
pub(crate) fn ask(args: &AskArgs) -> anyhow::Result<ExitCode> {
    if !(args.lease_seconds > 0.0 && args.lease_seconds.is_finite()) {
        bail!("--lease-seconds must be a positive number");
    }
    let mut study = args.study.open()?;
    let limit = args.trials.or(study.definition().budget.trials);
    let out = &mut std::io::stdout().lock();
    match study.ask(&Worker::somebody(), args.lease_seconds, limit)? {
        Asked::Trial(trial) => {
            let params = study.definition().space.to_json(&trial.values);
            writeln!(
                out,
                "{}",
                json!({"number": trial.number, "params": params, "attempt": trial.attempt, "token": trial.token})
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Asked::Enough { .. } => {
            crate::bench::progress::line(&format!("the study has {} trials", study.begun()));
            Ok(ExitCode::from(1))
        }
        Asked::Exhausted(reason) => {
            crate::bench::progress::line(&reason);
            Ok(ExitCode::from(1))
        }
    }
}

/// Tell the result of a trial that was asked for.
///
/// The same result told again changes nothing; another one is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage tell study.toml 12 0.37
  boscage tell study.toml 12 -1.5e3
  boscage tell study.toml 12 --failed \"out of memory\"")]
pub(crate) struct TellArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// The trial's number.
    #[arg(value_name = "NUMBER")]
    number: u64,
    /// Its value.
    #[arg(value_name = "VALUE", allow_negative_numbers = true, required_unless_present_any = ["failed", "infeasible", "pruned"])]
    value: Option<String>,
    /// There is no value, for this reason.
    #[arg(long, value_name = "REASON", conflicts_with_all = ["value", "infeasible", "pruned"])]
    failed: Option<String>,
    /// The parameters break a constraint.
    #[arg(long, value_name = "REASON", conflicts_with_all = ["value", "pruned"])]
    infeasible: Option<String>,
    /// The trial was ended early.
    #[arg(long, value_name = "REASON", conflicts_with = "value")]
    pruned: Option<String>,
    /// What `ask` gave with the trial: the result is refused if the trial was given to somebody else since.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// Tells a result.
pub(crate) fn tell(args: &TellArgs) -> anyhow::Result<ExitCode> {
    let outcome = match (&args.value, &args.failed, &args.infeasible, &args.pruned) {
        (Some(value), ..) => {
            let number: f64 =
                value.trim().parse().map_err(|_| anyhow::anyhow!("{value:?} is not a number"))?;
            if !number.is_finite() {
                bail!("{value} is not a finite number; tell --failed with a reason instead");
            }
            Outcome::Value(number)
        }
        (_, Some(reason), ..) => Outcome::Failed(reason.clone()),
        (_, _, Some(reason), _) => Outcome::Infeasible(reason.clone()),
        (.., Some(reason)) => Outcome::Pruned(reason.clone()),
        _ => bail!("give a value, or --failed with a reason"),
    };
    let found = args.study.find()?;
    if let Location::Sqlite(path) = &found.location
        && !path.exists()
    {
        bail!(
            "there is no store {}; `boscage ask` begins a study and gives its first trial",
            path.display()
        );
    }
    let mut store = Store::open(&found.location, &access())?;
    let name = match found.name {
        Some(name) => name,
        None => match store.studies()?.as_slice() {
            [one] => one.name.clone(),
            [] => bail!("{} has no studies", found.location),
            several => {
                let names: Vec<&str> = several.iter().map(|row| row.name.as_str()).collect();
                bail!(
                    "{} has several studies; choose one by --name: {}",
                    found.location,
                    names.join(", ")
                )
            }
        },
    };
    let told = store.tell(&name, args.number, &outcome, args.token.as_deref())?;
    let again = if told == Told::Again { "; it was told before" } else { "" };
    writeln!(std::io::stdout(), "trial {} is told{again}", args.number)?;
    Ok(ExitCode::SUCCESS)
}
