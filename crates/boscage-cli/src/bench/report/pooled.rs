//! All problems together: how many times the regret of the baseline a method has.
//!
//! The ratio is taken seed by seed, at the same trial, and averaged as a logarithm: over the seeds of a problem first, then over
//! the problems, which all count the same. Both regrets get the same small number added before they are divided, a tenth of the
//! problem's noise and a millionth of what the initial design leaves: differences below that are nobody's concern, and a regret of
//! 0 has a ratio. The interval comes from the spread of the seeds within their problems, so it says how sure the average over
//! these problems is, not what other problems would give.

use boscage_bench::statistics::{Interval, interval_of_group_means, mean, median};

use super::curves::Metric;
use super::selection::{MethodRuns, ProblemRuns};
use super::table::aligned;
use crate::draw::svg::short;

/// Trials after which ratios are taken, as far as the problems go; always at the end too.
const TIMES: [usize; 4] = [50, 100, 200, 300];

/// The regret of a method over that of the baseline, after so many trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ratio {
    /// Geometric mean over the problems.
    pub ratio: f64,
    /// Its 95 % interval, where every problem has two seeds.
    pub interval: Option<Interval>,
}

/// The ratios of all methods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pooled {
    /// What they are compared with.
    pub baseline: String,
    /// After how many trials.
    pub times: Vec<usize>,
    /// Each method, with one ratio for each time; none where it has not come so far on all problems.
    pub rows: Vec<(String, Vec<Option<Ratio>>)>,
    /// How many problems they are of.
    pub problems: usize,
    /// How many have no known optimum, or no run of the baseline.
    pub left_out: usize,
}

/// The ratios over all problems whose optimum is known and that have the baseline; none if there are fewer than two of them, or no
/// method was run on all.
pub(crate) fn pooled(all: &[ProblemRuns], baseline: &str) -> Option<Pooled> {
    let has_baseline =
        |problem: &ProblemRuns| problem.methods.iter().any(|method| method.label == baseline);
    let problems: Vec<&ProblemRuns> =
        all.iter().filter(|problem| problem.optimum_known && has_baseline(problem)).collect();
    let shortest = problems.iter().map(|problem| problem.trials).min()?;
    let mut labels: Vec<&str> = Vec::new();
    for method in problems.iter().flat_map(|problem| &problem.methods) {
        if method.label != baseline && !labels.contains(&method.label) {
            labels.push(method.label);
        }
    }
    let mut times: Vec<usize> = TIMES.into_iter().filter(|&time| time < shortest).collect();
    times.push(shortest);
    let row = |&label: &&str| {
        let at = |&time: &usize| {
            let ratios = problems.iter().map(|problem| log_ratios(problem, label, baseline, time));
            over_problems(&ratios.collect::<Option<Vec<_>>>()?)
        };
        (label.to_string(), times.iter().map(at).collect::<Vec<_>>())
    };
    let rows: Vec<_> = labels.iter().map(row).collect();
    let rows: Vec<_> = rows.into_iter().filter(|(_, of)| of.iter().any(Option::is_some)).collect();
    let left_out = all.len() - problems.len();
    (problems.len() > 1 && !rows.is_empty()).then(|| Pooled {
        baseline: baseline.to_string(),
        times: times.clone(),
        rows,
        problems: problems.len(),
        left_out,
    })
}

/// ln of the ratio for each seed; none if a run that is compared has not come so far.
fn log_ratios(problem: &ProblemRuns, label: &str, baseline: &str, time: usize) -> Option<Vec<f64>> {
    let of = |label: &str| problem.methods.iter().find(|method| method.label == label);
    let (method, base) = (of(label)?, of(baseline)?);
    if method.trials < time || base.trials < time {
        return None;
    }
    let initial = regrets(base, (problem.initial_points as usize).max(1));
    let initial: Vec<f64> = initial.into_iter().map(|(_, regret)| regret).collect();
    let noise = base.runs.first().map_or(0.0, |run| run.start.noise_std);
    let small = 0.1 * noise + 1e-6 * median(&initial)?;
    let base = regrets(base, time);
    let ratio = |(seed, regret): (u64, f64)| {
        let (_, other) = base.iter().find(|(of, _)| *of == seed)?;
        // Nothing is left to either.
        let equal = regret == *other;
        Some(if equal { 0.0 } else { ((regret + small) / (other + small)).ln() })
            .filter(|ratio| ratio.is_finite())
    };
    let ratios: Vec<f64> = regrets(method, time).into_iter().filter_map(ratio).collect();
    (!ratios.is_empty() && ratios.len() == base.len()).then_some(ratios)
}

/// The regret of each run after so many trials, with its seed. A value that is better than the optimum of a fine grid has none.
fn regrets(method: &MethodRuns, time: usize) -> Vec<(u64, f64)> {
    let at = |run: &&boscage_bench::results::RunResult| {
        let regret = Metric::Regret.of(run.trials.get(..time)?).last().copied().flatten()?;
        Some((run.start.seed, regret.max(0.0)))
    };
    method.runs.iter().filter_map(at).collect()
}

fn over_problems(ratios: &[Vec<f64>]) -> Option<Ratio> {
    let means: Vec<f64> = ratios.iter().filter_map(|of_problem| mean(of_problem)).collect();
    let interval = interval_of_group_means(ratios, 0.95)
        .map(|of_logs| Interval { low: of_logs.low.exp(), high: of_logs.high.exp() });
    Some(Ratio { ratio: mean(&means)?.exp(), interval })
}

impl Pooled {
    /// What the numbers are.
    pub(crate) fn caption(&self) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            some => format!(" ({some} more have no known optimum or no run of {})", self.baseline),
        };
        format!(
            "Regret over that of {}, seed by seed: geometric mean over {} problems{left_out}, with its 95 % interval by Student's \
             t from the spread of seeds. Below 1 is better. A tenth of the noise is added to both regrets: less is nobody's \
             concern. A dash: not run so far on all of them.",
            self.baseline, self.problems
        )
    }

    /// A header and one line for each method.
    pub(crate) fn cells(&self) -> Vec<Vec<String>> {
        let after = |time: &usize| format!("after {time} trials");
        let head = ["method".to_string()].into_iter().chain(self.times.iter().map(after));
        let cell = |ratio: &Option<Ratio>| match ratio {
            None => "–".to_string(),
            Some(Ratio { ratio, interval: None }) => short(*ratio),
            Some(Ratio { ratio, interval: Some(Interval { low, high }) }) => {
                format!("{} [{}, {}]", short(*ratio), short(*low), short(*high))
            }
        };
        let rows = self.rows.iter().map(|(method, ratios)| {
            [method.clone()].into_iter().chain(ratios.iter().map(cell)).collect()
        });
        [head.collect()].into_iter().chain(rows).collect()
    }

    /// The table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        aligned(&self.cells())
    }
}
