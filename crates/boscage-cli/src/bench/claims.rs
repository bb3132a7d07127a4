//! `boscage bench claims`: the paper's claims, tested on results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use boscage_bench::RunnerOptions;
use boscage_bench::claims::{
    Claim, LEAST_SEEDS, Outcome, Section, Verdict, claims, judge_all, markdown, numbers, remarks,
    results_folder,
};
use boscage_bench::recipe::{Overrides, Recipe, choices, embedded};
use clap::Args;

use super::list::{table, text};
use super::run::{count, run_shown};
use crate::interrupt::{Interrupts, STOPPED};

/// Test the claims of the paper on results: each holds, does not hold, or is undecided at this sample size.
///
/// A claim is judged by the 95 % bootstrap interval of its mean over paired seeds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ClaimsArgs {
    /// Only claims whose name begins like this, such as star25; can be repeated.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Folder with the folders of results.
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    /// Also use results of this profile, and run this one; `full` for none.
    #[arg(long, value_name = "NAME", default_value = "quick")]
    profile: String,
    /// First run the recipes that results are missing of.
    #[arg(long)]
    run: bool,
    /// Runs at a time [default: all cores].
    #[arg(long, value_name = "N", requires = "run")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Print JSON, with the value of each seed.
    #[arg(long)]
    json: bool,
    /// Also write a Markdown document.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  boscage bench claims                      judge by what is in results/
  boscage bench claims star25 --run         run the quick profile of star25 first, if it is missing
  boscage bench claims --profile full       by results of the full recipes only
  boscage bench claims --markdown claims.md";

/// Judges the claims and prints the verdicts.
pub(crate) fn run(args: &ClaimsArgs) -> anyhow::Result<ExitCode> {
    let claims = chosen(&args.names)?;
    let profile = Some(args.profile.as_str()).filter(|profile| *profile != "full");
    if let Some(profile) = profile {
        check_profile(profile)?;
    }
    if !args.run && !args.results.is_dir() {
        bail!(
            "there is no folder {}; make results by --run, or name their folder by --results",
            args.results.display()
        );
    }
    let mut outcomes = judge_all(&claims, &args.results, profile)?;
    let mut code = ExitCode::SUCCESS;
    if args.run {
        match run_missing(args, profile, &outcomes)? {
            Ran::Stopped => return Ok(ExitCode::from(STOPPED)),
            // What there is is judged all the same.
            Ran::WithFailures => code = ExitCode::from(1),
            Ran::All => {}
        }
        outcomes = judge_all(&claims, &args.results, profile)?;
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, markdown(&outcomes))
            .with_context(|| format!("{}: writing failed", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &outcomes)?;
        writeln!(out)?;
    } else {
        write_tables(&mut out, &outcomes)?;
    }
    Ok(code)
}

/// Refuses a profile that no recipe has.
fn check_profile(profile: &str) -> anyhow::Result<()> {
    let mut known = BTreeSet::from(["full".to_string()]);
    for (recipe, _) in embedded() {
        known.extend(Recipe::embedded(recipe)?.profiles());
    }
    if !known.contains(profile) {
        bail!("no recipe has a profile {profile:?}{}", choices(profile, known));
    }
    Ok(())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Claim>> {
    let all = claims();
    if let Some(unknown) =
        names.iter().find(|name| !all.iter().any(|claim| claim.id.starts_with(name.as_str())))
    {
        let recipes: BTreeSet<&str> = all.iter().map(|claim| claim.recipe).collect();
        let recipes: Vec<&str> = recipes.into_iter().collect();
        bail!("no claim begins with {unknown:?}; they begin with {}", recipes.join(", "));
    }
    let wanted =
        |claim: &Claim| names.is_empty() || names.iter().any(|n| claim.id.starts_with(n.as_str()));
    Ok(all.into_iter().filter(wanted).collect())
}

fn write_tables(out: &mut impl Write, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let can_be_judged =
        |outcome: &&Outcome| !matches!(outcome.verdict, Verdict::NeedsMethod { .. });
    for section in [Section::Paper, Section::Implied, Section::Beyond] {
        let mut rows = table(&["claim", "verdict", "estimate", "95 % interval", "seeds", "what"]);
        let of_section = outcomes.iter().filter(|outcome| outcome.claim.section == section);
        for outcome in of_section.filter(can_be_judged) {
            let [estimate, interval, seeds] = numbers(outcome);
            let (verdict, remarks) = (outcome.verdict.describe(), remarks(outcome));
            rows.add_row([
                outcome.claim.id.clone(),
                if remarks.is_empty() { verdict } else { format!("{verdict}; {remarks}") },
                estimate,
                interval,
                seeds,
                outcome.claim.statement.clone(),
            ]);
        }
        if !rows.is_empty() {
            writeln!(out, "{}\n\n{}\n", section.title(), text(rows))?;
        }
    }
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut commands = BTreeSet::new();
    let [mut held, mut failed, mut undecided, mut missing] = [0; 4];
    for outcome in outcomes {
        match &outcome.verdict {
            Verdict::Holds => held += 1,
            Verdict::DoesNotHold => failed += 1,
            Verdict::Undecided { .. } => undecided += 1,
            Verdict::NoData { command } => {
                missing += 1;
                commands.insert(command.as_str());
            }
            Verdict::NeedsMethod { method } => *waiting.entry(method).or_default() += 1,
        }
    }
    writeln!(
        out,
        "{held} hold, {failed} do not hold, {undecided} undecided, {missing} without results, {} need methods that this version \
         does not have",
        waiting.values().sum::<usize>()
    )?;
    if !waiting.is_empty() {
        let waiting: Vec<String> =
            waiting.iter().map(|(method, n)| format!("{method} ({n})")).collect();
        writeln!(out, "methods needed: {}", waiting.join(", "))?;
    }
    if !commands.is_empty() {
        writeln!(out, "\nMissing results are made by `boscage bench claims --run`, or by")?;
        for command in commands {
            writeln!(out, "  {command}")?;
        }
    }
    Ok(())
}

/// Recipes that a claim has no results of, or results of too few seeds or of unfinished runs.
fn missing(outcomes: &[Outcome]) -> BTreeSet<&'static str> {
    let lacks = |outcome: &&Outcome| match outcome.verdict {
        Verdict::NeedsMethod { .. } => false,
        Verdict::NoData { .. } => true,
        _ => outcome.values.len() < LEAST_SEEDS || outcome.skipped > 0,
    };
    outcomes.iter().filter(lacks).map(|outcome| outcome.claim.recipe).collect()
}

/// How it went.
enum Ran {
    All,
    WithFailures,
    Stopped,
}

fn run_missing(
    args: &ClaimsArgs,
    profile: Option<&str>,
    outcomes: &[Outcome],
) -> anyhow::Result<Ran> {
    let interrupts = Interrupts::catch()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut ran = Ran::All;
    for recipe in missing(outcomes) {
        let overrides = Overrides { profile: profile.map(str::to_string), ..Overrides::default() };
        let plan = Recipe::embedded(recipe)?.plan(&overrides)?;
        let options = RunnerOptions {
            out: results_folder(&args.results, recipe, profile),
            jobs: args.jobs.map_or(cores, usize::from),
            threads: 1,
        };
        let summary = run_shown(&plan, &options, false, &interrupts)?;
        let mut stderr = std::io::stderr().lock();
        if summary.stopped {
            let results = args.results.display();
            writeln!(
                stderr,
                "stopped; what is complete is in {results}, and the same command goes on from there"
            )?;
            return Ok(Ran::Stopped);
        }
        if !summary.failed.is_empty() {
            let (failed, runs) = (summary.failed.len(), count(plan.runs().len(), "run"));
            writeln!(
                stderr,
                "{recipe}: {failed} of {runs} failed; the same command tries them again"
            )?;
            ran = Ran::WithFailures;
        }
    }
    Ok(ran)
}
