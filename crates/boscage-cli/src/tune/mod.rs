//! `boscage tune`: runs a program with ever better parameters.

mod example;
mod progress;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use boscage_study::explain::Explanation;
use boscage_study::study::{definition_of, view};
use boscage_study::tune::{Evaluating, tune};
use boscage_study::{Budget, Location, Plan, StopReason, Store, Study, StudyFile, Values};
use clap::Args;

use crate::interrupt::{Interrupts, STOPPED, Screen, end_at_first_interrupt};
use crate::show;
use crate::study_argument::{StudyArgument, access, reading};
use crate::study_commands::write_report;
use progress::{Detail, TuneProgress};

/// Run a program again and again with parameters that get better, or go on with a study.
///
/// A study file says what the parameters are, how the program is called and where its result is; `boscage init` writes
/// one. Every trial is stored when it ends. The same command goes on after any interruption; several at a time, on one
/// machine or (with a PostgreSQL store) on many, share the work. `boscage tune example` runs an example that comes with
/// boscage.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// Check everything and run one trial without storing it.
    #[arg(long)]
    check: bool,
    /// Trials run at a time on this machine [default: workers.jobs of the study file].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// End when the study has so many trials, failed ones included [default: budget.trials].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: Option<u64>,
    /// Begin no more trials after so many seconds [default: budget.seconds].
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// End when a value as good as this was found [default: budget.target].
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    target: Option<f64>,
    /// Go on although the study file has changed, where that is possible: wider ranges, more choices, another budget,
    /// program or method.
    #[arg(long)]
    allow_changes: bool,
    /// Write events as JSON lines to the standard output.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Show the values of each trial.
    #[arg(long, short)]
    verbose: bool,
    /// Where the report goes [default: the study file's name with .html].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write no report at the end.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
}

const EXAMPLES: &str = "Examples:
  boscage tune example                     tune a small program that comes with boscage
  boscage tune study.toml --check          try a study file without storing anything
  boscage tune study.toml                  run it, or go on with it
  boscage tune study.toml --jobs 4         four trials at a time
  boscage tune study.toml --trials 200     go on until there are 200 trials
  BOSCAGE_STORAGE=postgresql://me:secret@host/tuning boscage tune study.toml
                                           with others, on as many machines as you like

Exit codes: 0 done; 1 no trial gave a value; 2 the study, its file or its store does not allow it; 130 interrupted.";

/// Runs the study.
pub(crate) fn run(args: &TuneArgs) -> anyhow::Result<ExitCode> {
    if args.study.text() == example::NAME && !Path::new(example::NAME).is_file() {
        let path = example::write()?;
        let study = args.study.at(&path);
        return start(args, &study);
    }
    start(args, &args.study)
}

fn start(args: &TuneArgs, argument: &StudyArgument) -> anyhow::Result<ExitCode> {
    let found = argument.find()?;
    let (Some(file), Some(name)) = (found.file, found.name) else {
        bail!(
            "{} is a store; give the study file, which says how the program is called (`boscage show` needs only the store)",
            argument.text()
        );
    };
    if args.check {
        return check(&file, &name, &found.location, argument.text());
    }
    if file.definition.program.is_none() {
        bail!(
            "{}: the study has no [program]; add one to the study file, or use `boscage ask` and `boscage tell`",
            argument.text()
        );
    }
    let planned = Budget {
        trials: args.trials.or(file.definition.budget.trials),
        seconds: args.seconds.or(file.definition.budget.seconds),
        target: args.target.or(file.definition.budget.target),
    };
    if planned.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
        bail!("--seconds must be a positive number");
    }
    if planned.target.is_some_and(|target| !target.is_finite()) {
        bail!("--target must be a finite number");
    }
    let interrupts = Interrupts::catch()?;
    let store = Store::open(&found.location, &access())?;
    let (mut study, opening) =
        Study::open(store, &name, file.definition.clone(), args.allow_changes)?;
    let detail = match (args.json, args.quiet, args.verbose) {
        (true, ..) => Detail::Json,
        (_, true, _) => Detail::Nothing,
        (_, _, verbose) => Detail::Lines { values: verbose },
    };
    study.look()?;
    let progress = Arc::new(TuneProgress::new(&study, &planned, detail));
    interrupts.show_in(progress.clone());
    progress.opened(&study, &opening, &found.location.to_string());
    let jobs = args.jobs.map_or(file.definition.workers.jobs as usize, usize::from);
    let plan = Plan { folder: &file.folder, jobs, budget: planned, stop: interrupts.stop() };
    let finish = tune(&mut study, &plan, &|event| progress.observe(event));
    progress.clear();
    let finish = finish?;
    let view = view(study.store(), Some(&name))?;
    let explanation = Explanation::new(&view)?;
    let report = match (args.no_report, &args.report) {
        (true, _) => None,
        (false, Some(path)) => Some(path.clone()),
        (false, None) => Some(Path::new(argument.text()).with_extension("html")),
    };
    let written = match &report {
        Some(path) => write_report(&view, explanation.as_ref(), path),
        None => Ok(()),
    };
    // What was found is said even if the page cannot be written.
    let report = report.filter(|_| written.is_ok());
    progress.finished(&finish, &view, report.as_deref())?;
    if !args.json {
        let out = &mut std::io::stdout().lock();
        show::summary(&view, explanation.as_ref(), out)?;
        writeln!(out, "\nended: {}", finish.reason)?;
        if let Some(path) = &report {
            writeln!(out, "report: {}", path.display())?;
        }
    }
    written?;
    Ok(match (&finish.reason, view.best()) {
        (StopReason::Interrupted, _) => ExitCode::from(STOPPED),
        (_, Some(_)) => ExitCode::SUCCESS,
        (_, None) => {
            crate::bench::progress::line(
                "no trial gave a value; `boscage show` tells why each failed, and `boscage tune --check` runs one by hand",
            );
            ExitCode::from(1)
        }
    })
}

/// Runs one trial without storing it.
fn check(
    file: &StudyFile,
    name: &str,
    location: &Location,
    argument: &str,
) -> anyhow::Result<ExitCode> {
    end_at_first_interrupt()?;
    let definition = &file.definition;
    let Some(program) = &definition.program else {
        bail!("the study has no [program]; add one to the study file");
    };
    // What is there must be readable, and the same study.
    let is_there = !matches!(location, Location::Sqlite(path) if !path.exists());
    let stored = match is_there {
        true => match Store::open(location, &reading()) {
            Ok(mut store) => definition_of(&mut store, name)?,
            // A server whose database is empty is fine.
            Err(boscage_study::Error::Storage { reason, .. }) if reason.contains("no studies") => {
                None
            }
            Err(error) => return Err(error.into()),
        },
        false => None,
    };
    let changes = stored.map(|stored| stored.differences(definition)).unwrap_or_default();
    let folder = tempfile::tempdir().context("no folder for a trial run could be made")?;
    let store = Store::open(
        &boscage_study::Location::Sqlite(folder.path().join("check.db")),
        &boscage_study::Access::default(),
    )?;
    let (mut study, _) = Study::open(store, name, definition.clone(), false)?;
    let values = study.rehearse()?;
    let out = &mut std::io::stdout().lock();
    writeln!(
        out,
        "study {name}: {} parameters, {}",
        definition.space.dimension(),
        definition.goal.name()
    )?;
    writeln!(out, "store: {location}")?;
    writeln!(out, "values:\n{}", listed(definition, &values))?;
    let begin = std::time::Instant::now();
    let found = Evaluating { definition, program, folder: &file.folder }.value(0, &values);
    let seconds = crate::bench::progress::duration(begin.elapsed().as_secs_f64());
    match found {
        Ok(value) => {
            writeln!(out, "result: {value:?} after {seconds}; nothing was stored")?;
            if changes.is_empty() {
                writeln!(out, "the study can begin: boscage tune {argument}")?;
                return Ok(ExitCode::SUCCESS);
            }
            let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let is_possible = changes.iter().all(|change| change.conflict.is_none());
            let advice = match is_possible {
                true => format!("boscage tune {argument} --allow-changes goes on with it"),
                false => {
                    "it cannot go on with what is marked; undo it, or give the study another name"
                        .to_string()
                }
            };
            bail!(
                "study {name} is not as it was when it was begun:\n{}\n{advice}",
                lines.join("\n")
            );
        }
        Err(error) => {
            crate::bench::progress::line(&format!("no result after {seconds}: {error}"));
            Ok(ExitCode::from(1))
        }
    }
}

fn listed(definition: &boscage_study::Definition, values: &Values) -> String {
    let named = definition.space.names().zip(values);
    let lines: Vec<String> = named
        .map(|(name, value)| match value {
            Some(value) => format!("  {name} = {value}"),
            None => format!("  {name} has no value: its condition does not hold"),
        })
        .collect();
    lines.join("\n")
}
