//! Which runs are compared, and what is said about the others.
//!
//! Means over different seeds or different numbers of trials must not stand side by side unannounced: the functions of two
//! seeds differ more than two methods do. So a problem is reported for the seeds that every method finished. A method
//! that finished no seed is shown as far as it got, and marked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use boscage_bench::Goal;
use boscage_bench::results::{RunResult, TrialRecord};

/// The runs of one problem that a report compares.
pub(crate) struct ProblemRuns<'a> {
    /// Its label.
    pub label: &'a str,
    /// Number of parameters.
    pub dimension: usize,
    /// What is sought.
    pub goal: Goal,
    /// Points of the initial design.
    pub initial_points: u64,
    /// Whether all its runs know the optimum.
    pub optimum_known: bool,
    /// Trials of a finished run.
    pub trials: usize,
    /// The methods, by label.
    pub methods: Vec<MethodRuns<'a>>,
    /// What is used and what is missing, in sentences.
    pub notes: Vec<String>,
}

/// The runs of one method that a report compares.
pub(crate) struct MethodRuns<'a> {
    /// Its label.
    pub label: &'a str,
    /// Its place among all methods of the report: decides the colour.
    pub style: usize,
    /// How many trials of each run are used.
    pub trials: usize,
    /// The runs, by seed.
    pub runs: Vec<&'a RunResult>,
}

impl<'a> MethodRuns<'a> {
    /// The trials of each run that are used.
    pub(crate) fn used(&self) -> impl Iterator<Item = &'a [TrialRecord]> + '_ {
        self.runs.iter().map(|run| run.trials.get(..self.trials).unwrap_or(&run.trials))
    }
}

/// The labels of all methods: `tree` first, so that it has the same colour in all reports, then by name.
pub(crate) fn methods(runs: &[RunResult]) -> Vec<&str> {
    let labels: BTreeSet<&str> = runs.iter().map(|run| run.start.method.as_str()).collect();
    let mut labels: Vec<&str> = labels.into_iter().collect();
    labels.sort_by_key(|&label| label != "tree");
    labels
}

/// A problem's name for titles.
pub(crate) fn heading(problem: &ProblemRuns) -> String {
    format!("{} ({} parameters)", problem.label, problem.dimension)
}

type Runs<'a> = BTreeMap<&'a str, BTreeMap<u64, &'a RunResult>>;

/// Sorts runs into problems, ordered by name with numbers as numbers.
///
/// # Errors
///
/// If two runs have the same place, or runs of the same labels were made with different settings.
pub(crate) fn problems(runs: &[RunResult]) -> anyhow::Result<Vec<ProblemRuns<'_>>> {
    let styles = methods(runs);
    let mut sorted: BTreeMap<&str, Runs> = BTreeMap::new();
    for run in runs {
        let start = &run.start;
        let of_problem = sorted.entry(&start.problem).or_default();
        if let Some(other) = of_problem.values().flat_map(BTreeMap::values).next()
            && (&other.start.problem_settings, other.start.initial_points)
                != (&start.problem_settings, start.initial_points)
        {
            bail!(
                "{} and {} have the same label for different problems; report them apart",
                other.path.display(),
                run.path.display()
            );
        }
        let of_method = of_problem.entry(&start.method).or_default();
        if let Some(other) = of_method.values().next()
            && other.start.method_settings != start.method_settings
        {
            bail!(
                "{} and {} have the same label for different settings; report them apart",
                other.path.display(),
                run.path.display()
            );
        }
        if let Some(other) = of_method.insert(start.seed, run) {
            bail!(
                "{} and {} are the same run; name only one of their folders",
                other.path.display(),
                run.path.display()
            );
        }
    }
    let mut problems: Vec<_> =
        sorted.iter().filter_map(|(label, runs)| problem(label, runs, &styles)).collect();
    problems.sort_by_cached_key(|problem| natural_key(problem.label));
    Ok(problems)
}

/// Splits a label so that `grid-10` comes after `grid-9`.
fn natural_key(label: &str) -> Vec<(String, u64)> {
    let mut key = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in label.chars() {
        let digit = c.to_digit(10).map(u64::from);
        if in_number && digit.is_none() {
            key.push((String::new(), 0));
        }
        in_number = digit.is_some();
        if let Some((text, number)) = key.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit),
                None => text.push(c),
            }
        }
    }
    key
}

fn problem<'a>(label: &'a str, runs: &Runs<'a>, styles: &[&str]) -> Option<ProblemRuns<'a>> {
    let all = || runs.values().flat_map(BTreeMap::values);
    let start = &all().next()?.start;
    let longest = all().map(|run| run.trials.len().max(run.start.trials as usize)).max()?;
    let seeds: BTreeSet<u64> = all().map(|run| run.start.seed).collect();
    let finished = |run: &RunResult| run.trials.len() == longest;
    let has =
        |runs: &BTreeMap<u64, &RunResult>, seed: &u64, enough: &dyn Fn(&RunResult) -> bool| {
            runs.get(seed).is_some_and(|run| enough(run))
        };
    // every method that finished a seed at all has to have finished a seed for it to be used
    let finishers: Vec<_> =
        runs.iter().filter(|(_, runs)| runs.values().any(|run| finished(run))).collect();
    let mut used: Vec<u64> = seeds
        .iter()
        .copied()
        .filter(|seed| finishers.iter().all(|(_, runs)| has(runs, seed, &finished)))
        .collect();
    let mut notes = Vec::new();
    let mut trials = longest;
    let mut common = false;
    if used.is_empty() {
        let begun = |run: &RunResult| !run.trials.is_empty();
        used = seeds
            .iter()
            .copied()
            .filter(|seed| runs.values().all(|runs| has(runs, seed, &begun)))
            .collect();
        common = !used.is_empty();
        if common {
            let of_used = all().filter(|run| used.contains(&run.start.seed));
            trials = of_used.map(|run| run.trials.len()).min()?;
            notes.push(format!(
                "No seed was finished by all methods: all are shown for the {trials} trials that they have in common."
            ));
        } else {
            notes.push(
                "No seed was run with all methods: the lines are means over different seeds and \
                 cannot be compared. Finish the runs first."
                    .to_string(),
            );
        }
    }
    let mut methods = Vec::new();
    for (&method, runs) in runs {
        let min_trials = if common { trials } else { start.initial_points as usize + 1 };
        let chosen: Vec<&RunResult> = runs
            .values()
            .copied()
            .filter(|run| used.is_empty() || used.contains(&run.start.seed))
            .filter(|run| run.trials.len() >= min_trials.min(longest))
            .collect();
        let Some(shortest) = chosen.iter().map(|run| run.trials.len().min(trials)).min() else {
            notes.push(format!("{method} has no trials to show after the initial design."));
            continue;
        };
        if shortest < trials {
            notes.push(format!(
                "{method} is shown for its first {shortest} of {trials} trials only, over {}.",
                seed_list(&chosen.iter().map(|run| run.start.seed).collect::<Vec<_>>())
            ));
        }
        let style = styles.iter().position(|&style| style == method).unwrap_or_default();
        methods.push(MethodRuns { label: method, style, trials: shortest, runs: chosen });
    }
    if !used.is_empty() {
        notes.insert(
            0,
            format!(
                "Used: {}, {trials} trials each, {} of them the initial design.",
                seed_list(&used),
                (start.initial_points as usize).min(trials)
            ),
        );
        notes.extend(left_out(runs, &seeds, &used, longest));
    }
    for (method, runs) in runs {
        for run in runs.values() {
            if let Some(reason) = &run.end {
                notes.push(format!("{method} ended seed {} early: {reason}.", run.start.seed));
            }
        }
    }
    for method in &methods {
        let failed = method.used().flatten().filter(|trial| trial.value.is_none()).count();
        if failed > 0 {
            let total = method.trials * method.runs.len();
            notes.push(format!("{}: {failed} of {total} trials failed.", method.label));
        }
    }
    Some(ProblemRuns {
        label,
        dimension: start.dimension,
        goal: start.goal,
        initial_points: start.initial_points,
        optimum_known: all().all(|run| run.start.optimum.is_some()),
        trials,
        methods,
        notes,
    })
}

/// The seeds that are not used, each with who did not finish it.
fn left_out(runs: &Runs, seeds: &BTreeSet<u64>, used: &[u64], longest: usize) -> Option<String> {
    const SHOWN: usize = 12;
    let unused: Vec<_> = seeds.iter().filter(|seed| !used.contains(seed)).collect();
    let mut items: Vec<String> = Vec::new();
    for &seed in unused.iter().take(SHOWN) {
        let who: Vec<String> = runs
            .iter()
            .filter_map(|(method, runs)| match runs.get(seed) {
                None => Some(format!("{method} has not begun")),
                Some(run) if run.trials.len() < longest => {
                    Some(format!("{method} has {} of {longest} trials", run.trials.len()))
                }
                Some(_) => None,
            })
            .collect();
        items.push(format!("seed {seed} ({})", who.join(", ")));
    }
    if unused.len() > SHOWN {
        items.push(format!("{} more", unused.len() - SHOWN));
    }
    (!items.is_empty()).then(|| format!("Left out for all methods: {}.", items.join("; ")))
}

/// `3 seeds (0–2)`, `2 seeds (0, 4)`, `seed 7`.
pub(crate) fn seed_list(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("seed {seed}"),
        [first, .., last] if last - first + 1 == seeds.len() as u64 => {
            format!("{} seeds ({first}–{last})", seeds.len())
        }
        _ => {
            let list: Vec<_> = seeds.iter().map(ToString::to_string).collect();
            format!("{} seeds ({})", seeds.len(), list.join(", "))
        }
    }
}
