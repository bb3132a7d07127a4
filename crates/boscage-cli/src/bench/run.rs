//! `boscage bench run`: runs a recipe.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use boscage_bench::estimate::{PairEstimate, estimate};
use boscage_bench::recipe::{Overrides, Recipe, Seeds};
use boscage_bench::{Plan, RunnerOptions, Summary, run_plan};
use clap::Args;

use super::list::{table, text};
use super::progress::{Progress, duration};
use crate::interrupt::Screen;
use crate::interrupt::{Interrupts, STOPPED, end_at_first_interrupt};

/// Run a recipe, or go on with it: nothing is run twice.
///
/// Results go to a folder as JSON lines, one file a run, written trial by trial. Ctrl-C stops after the trials that are being
/// run; the same command goes on from there. Results do not depend on --jobs or --threads.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// A file, or the name of a recipe that comes with boscage (see `boscage bench recipes`).
    recipe: String,
    /// A profile of the recipe, such as `quick`.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Folder of the results [default: results/NAME or results/NAME-PROFILE].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Runs at a time [default: cores divided by threads].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Threads of each run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Seeds: `5` for 0 to 4, `0,3,7` for these, `10-14` for these five.
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<Seeds>,
    /// Points chosen after the initial design.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: Option<u64>,
    /// Points of the initial design, the same for all methods of a seed.
    #[arg(long, value_name = "N")]
    initial_points: Option<u64>,
    /// Only these problems of the recipe, by label.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    problems: Option<Vec<String>>,
    /// Only these methods, by label; a method that is not in the recipe is added with its own settings.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    methods: Option<Vec<String>>,
    /// Set anything in the recipe, such as problems.star25.levels=21; can be repeated.
    #[arg(long, value_name = "PATH=VALUE", value_parser = path_and_value)]
    set: Vec<(String, String)>,
    /// Only print what would be run, and how long it would take. An external program is executed once, to measure it.
    #[arg(long)]
    dry_run: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  boscage bench run star25 --profile quick
  boscage bench run star25 --dry-run --jobs 8
  boscage bench run my.toml --out results/mine --seeds 5 --trials 100
  boscage bench run star25 --methods tree --set methods.tree.settings.structure.tree.samples=50 --out results/samples-50";

fn path_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.trim().is_empty() => {
            Ok((path.trim().to_string(), value.trim().to_string()))
        }
        _ => Err("write PATH=VALUE, such as trials=100".to_string()),
    }
}

/// Runs the recipe, or says what it would run.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let recipe = load(&args.recipe)?;
    let overrides = Overrides {
        profile: args.profile.clone(),
        seeds: args.seeds.clone(),
        trials: args.trials,
        initial_points: args.initial_points,
        problems: args.problems.clone(),
        methods: args.methods.clone(),
        set: args.set.clone(),
    };
    let plan = recipe.plan(&overrides)?;
    let out = args.out.clone().unwrap_or_else(|| {
        let name = args
            .profile
            .as_ref()
            .map_or(plan.name.clone(), |profile| format!("{}-{profile}", plan.name));
        Path::new("results").join(name)
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = usize::from(args.threads);
    let jobs = args.jobs.map_or((cores / threads).max(1), usize::from);
    let options = RunnerOptions { out, jobs, threads };
    if args.dry_run { dry_run(&plan, &options) } else { start(&plan, &options, args.quiet) }
}

/// A file if there is one of this name, otherwise a recipe of ours.
fn load(recipe: &str) -> anyhow::Result<Recipe> {
    let path = Path::new(recipe);
    let looks_like_a_file =
        path.is_file() || path.extension().is_some() || recipe.contains(['/', '\\']);
    match looks_like_a_file {
        true if path.is_dir() => {
            bail!(
                "{recipe} is a folder; name the recipe in it, such as {}",
                path.join("recipe.toml").display()
            )
        }
        true => Ok(Recipe::load(path)?),
        false => Ok(Recipe::embedded(recipe)?),
    }
}

fn dry_run(plan: &Plan, options: &RunnerOptions) -> anyhow::Result<ExitCode> {
    end_at_first_interrupt()?;
    // The whole of it should not take much longer than a user waits.
    let pairs = (plan.problems.len() * plan.methods.len()) as f64;
    let budget = Duration::from_secs_f64((30.0 / pairs).min(1.0));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build()?;
    let pairs = pool.install(|| estimate(plan, &options.out, budget))?;
    let mut stdout = std::io::stdout().lock();
    write_plan(&mut stdout, plan, options, &pairs)?;
    Ok(ExitCode::SUCCESS)
}

fn write_plan(
    to: &mut impl Write,
    plan: &Plan,
    options: &RunnerOptions,
    pairs: &[PairEstimate],
) -> anyhow::Result<()> {
    writeln!(to, "{}: {}\n", plan.name, plan.title)?;
    let mut rows = table(&["problem", "method", "runs", "done", "a run", "left", "how known"]);
    for pair in pairs {
        rows.add_row([
            pair.problem.clone(),
            pair.method.clone(),
            pair.runs.to_string(),
            pair.done.to_string(),
            duration(pair.seconds),
            duration(pair.seconds_left()),
            pair.source.name().to_string(),
        ]);
    }
    writeln!(to, "{}\n", text(rows))?;
    let (runs, done) =
        pairs.iter().fold((0, 0), |(runs, done), pair| (runs + pair.runs, done + pair.done));
    let left: f64 = pairs.iter().map(PairEstimate::seconds_left).sum();
    // However many jobs there are, the longest run takes its time.
    let longest = pairs
        .iter()
        .filter(|pair| pair.done < pair.runs)
        .map(|pair| pair.seconds)
        .fold(0.0, f64::max);
    let seeds: Vec<String> = plan.seeds.iter().map(u64::to_string).collect();
    writeln!(to, "seeds       {} ({})", plan.seeds.len(), shortened(&seeds))?;
    writeln!(to, "trials      {} + {} initial points a run", plan.trials, plan.initial_points)?;
    writeln!(to, "runs        {runs}, of which {done} are done")?;
    writeln!(to, "results     {}", options.out.display())?;
    writeln!(
        to,
        "time left   about {} with {} at a time",
        duration((left / options.jobs as f64).max(longest)),
        count(options.jobs, "run")
    )?;
    Ok(())
}

fn shortened(words: &[String]) -> String {
    match words {
        [first, .., last] if words.len() > 12 => format!("{first} … {last}"),
        _ => words.join(", "),
    }
}

pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Runs a plan with its progress shown, and tells the errors of the runs that failed.
pub(super) fn run_shown(
    plan: &Plan,
    options: &RunnerOptions,
    quiet: bool,
    interrupts: &Interrupts,
) -> anyhow::Result<Summary> {
    let progress = Arc::new(Progress::new(plan, options.jobs, quiet));
    interrupts.show_in(progress.clone());
    let summary = run_plan(plan, options, interrupts.stop(), &|event| progress.observe(&event));
    progress.clear();
    let summary = summary?;
    let mut stderr = std::io::stderr().lock();
    let runs = plan.runs();
    for (number, error) in &summary.failed {
        if let Some(run) = runs.get(*number) {
            writeln!(
                stderr,
                "error: {}, {}, seed {}: {error}",
                run.problem.label, run.method.label, run.seed
            )?;
        }
    }
    Ok(summary)
}

fn start(plan: &Plan, options: &RunnerOptions, quiet: bool) -> anyhow::Result<ExitCode> {
    let interrupts = Interrupts::catch()?;
    let summary = run_shown(plan, options, quiet, &interrupts)?;
    let mut stderr = std::io::stderr().lock();
    let out = options.out.display();
    if summary.stopped {
        writeln!(
            stderr,
            "stopped; what is complete is in {out}, and the same command goes on from there"
        )?;
        return Ok(ExitCode::from(STOPPED));
    }
    if !summary.failed.is_empty() {
        writeln!(
            stderr,
            "{} of {} failed; the same command tries them again and runs nothing else",
            summary.failed.len(),
            count(plan.runs().len(), "run")
        )?;
        return Ok(ExitCode::from(1));
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "{}, {} before; results are in {out}",
        ran(summary.finished),
        summary.already_done
    )?;
    writeln!(stdout, "next: boscage bench report {out}")?;
    Ok(ExitCode::SUCCESS)
}

fn ran(finished: usize) -> String {
    format!("{} completed now", count(finished, "run"))
}
