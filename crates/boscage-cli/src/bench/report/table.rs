//! The table of a problem: how each method ended, how far it is from the baseline, and what it took.

use boscage_bench::Goal;
use boscage_bench::results::{RunResult, Timing, TrialRecord};
use boscage_bench::statistics::{
    Interval, RESAMPLES, Statistic, bootstrap_interval, mean, median, paired_differences, quantile,
};

use super::curves::Metric;
use super::selection::{MethodRuns, ProblemRuns};
use crate::draw::svg::{escaped, grouped, short};

/// What the columns of all tables mean.
pub(crate) const LEGEND: &str = "Median, quartiles and mean are over seeds. Difference: mean over seeds of method − baseline, \
    paired by seed, with its 95 % bootstrap interval; with at least 5 seeds, \u{201c}better\u{201d} and \u{201c}worse\u{201d} mark intervals \
    without 0. F1: agreement of the learned graph with the true one. Cost: values of φ that the message passing of a run \
    computed (median). Seconds: mean of the asks after the initial design, median over runs. Memory: largest resident memory \
    of the whole process, which may work on several runs at once.";

/// Fewer seeds are too few to call a difference real.
const VERDICT_SEEDS: usize = 5;

/// The numbers of one method.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The method.
    pub method: String,
    /// Whether it has fewer trials than the others.
    pub unfinished: bool,
    /// Number of runs used.
    pub seeds: usize,
    /// Median of the final objective.
    pub median: Option<f64>,
    /// Quartiles of the final objective.
    pub quartiles: Option<(f64, f64)>,
    /// Mean of the final objective.
    pub mean: Option<f64>,
    /// How the method compares with the baseline.
    pub difference: Difference,
    /// Median of the final F1.
    pub f1: Option<f64>,
    /// Median of the message-passing cost of a run.
    pub cost: Option<f64>,
    /// Median over runs of the mean seconds of an ask.
    pub ask_seconds: Option<f64>,
    /// The same in processor time.
    pub ask_cpu_seconds: Option<f64>,
    /// The largest resident memory after any trial, in bytes.
    pub resident_bytes: u64,
}

/// Method minus baseline, by seed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Difference {
    /// The method is the baseline.
    Baseline,
    /// The mean difference over this many seeds, and its 95 % interval.
    Paired { mean: f64, interval: Interval, seeds: usize },
    /// Fewer than two seeds in common, or different numbers of trials.
    Unknown,
}

/// The table of a problem.
pub(crate) struct Table {
    /// The rows, best final median first.
    pub rows: Vec<Row>,
    /// What was measured, and when.
    pub caption: String,
    baseline: String,
    objective: &'static str,
    goal: Goal,
}

/// Computes the table of a problem. If the baseline was not run on it, its first method takes that place.
pub(crate) fn table(problem: &ProblemRuns, baseline: &str) -> Table {
    let metric = Metric::objective(problem);
    let goal = metric.goal(problem);
    let base =
        problem.methods.iter().find(|method| method.label == baseline).or(problem.methods.first());
    let mut rows: Vec<Row> =
        problem.methods.iter().map(|method| row(problem, method, base)).collect();
    let sign = goal.sign();
    // methods that did not get to the end come last: their values are not comparable
    let key = |row: &Row| row.median.map_or(f64::NEG_INFINITY, |median| sign * median);
    rows.sort_by(|a, b| a.unfinished.cmp(&b.unfinished).then(key(b).total_cmp(&key(a))));
    let objective = match metric {
        Metric::Regret => "regret",
        _ => "best value",
    };
    let baseline = base.map(|base| base.label.to_string()).unwrap_or_default();
    let caption = format!(
        "Final noise-free {objective} after {} trials; {} is better.",
        problem.trials,
        match goal {
            Goal::Minimize => "lower",
            Goal::Maximize => "higher",
        }
    );
    Table { rows, caption, baseline, objective, goal }
}

/// The last number of each run, with its seed. A run without any gives nothing.
fn finals(method: &MethodRuns, metric: Metric) -> Vec<(u64, f64)> {
    let last = |(run, trials): (&&RunResult, &[TrialRecord])| {
        Some((run.start.seed, metric.of(trials).last().copied().flatten()?))
    };
    method.runs.iter().zip(method.used()).filter_map(last).collect()
}

fn row(problem: &ProblemRuns, method: &MethodRuns, base: Option<&MethodRuns>) -> Row {
    let metric = Metric::objective(problem);
    let ends = finals(method, metric);
    let numbers: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let f1: Vec<f64> = finals(method, Metric::F1).into_iter().map(|end| end.1).collect();
    let costs: Vec<f64> =
        method.used().filter_map(|trials| trials.last()).map(|trial| trial.cost as f64).collect();
    let per_ask = |seconds: fn(&Timing) -> f64| {
        let of_run = |trials: &[TrialRecord]| {
            let chosen = trials.iter().filter(|trial| !trial.initial);
            mean(&chosen.map(|trial| seconds(&trial.timing)).collect::<Vec<_>>())
        };
        median(&method.used().filter_map(of_run).collect::<Vec<_>>())
    };
    let difference = match base {
        Some(base) if base.label == method.label => Difference::Baseline,
        Some(base) if base.trials == method.trials => {
            let pairs = paired_differences(&ends, &finals(base, metric));
            let pairs: Vec<f64> = pairs.into_iter().map(|pair| pair.1).collect();
            let interval = bootstrap_interval(&pairs, Statistic::Mean, 0.95, RESAMPLES, 0);
            match (mean(&pairs), interval) {
                (Some(mean), Some(interval)) => {
                    Difference::Paired { mean, interval, seeds: pairs.len() }
                }
                _ => Difference::Unknown,
            }
        }
        _ => Difference::Unknown,
    };
    let mut label = method.label.to_string();
    if method.trials < problem.trials {
        label.push_str(&format!(" (to {})", method.trials));
    }
    Row {
        method: label,
        unfinished: method.trials < problem.trials,
        seeds: method.runs.len(),
        median: median(&numbers),
        quartiles: quantile(&numbers, 0.25).zip(quantile(&numbers, 0.75)),
        mean: mean(&numbers),
        difference,
        f1: median(&f1),
        cost: median(&costs),
        ask_seconds: per_ask(|timing| timing.ask_seconds),
        ask_cpu_seconds: per_ask(|timing| timing.ask_cpu_seconds),
        resident_bytes: method
            .used()
            .flatten()
            .map(|trial| trial.timing.resident_bytes)
            .max()
            .unwrap_or(0),
    }
}

impl Table {
    fn header(&self) -> Vec<String> {
        let objective = self.objective;
        vec![
            "method".to_string(),
            "seeds".to_string(),
            format!("median {objective}"),
            "quartiles".to_string(),
            "mean".to_string(),
            format!("difference to {} [95 %]", self.baseline),
            "median F1".to_string(),
            "cost".to_string(),
            "s per ask".to_string(),
            "CPU s per ask".to_string(),
            "memory MiB".to_string(),
        ]
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let number = |number: Option<f64>| number.map_or("–".to_string(), short);
        let difference = match &row.difference {
            Difference::Baseline => "baseline".to_string(),
            Difference::Unknown => "–".to_string(),
            Difference::Paired { mean, interval, seeds } => {
                let sign = self.goal.sign();
                let verdict = if *seeds < VERDICT_SEEDS {
                    ""
                } else if sign * interval.low > 0.0 && sign * interval.high > 0.0 {
                    " better"
                } else if sign * interval.low < 0.0 && sign * interval.high < 0.0 {
                    " worse"
                } else {
                    ""
                };
                let fewer =
                    if *seeds < row.seeds { format!(" ({seeds} seeds)") } else { String::new() };
                format!(
                    "{} [{}, {}]{verdict}{fewer}",
                    short(*mean),
                    short(interval.low),
                    short(interval.high)
                )
            }
        };
        vec![
            row.method.clone(),
            row.seeds.to_string(),
            number(row.median),
            row.quartiles.map_or("–".to_string(), |(low, high)| {
                format!("{} … {}", short(low), short(high))
            }),
            number(row.mean),
            difference,
            row.f1.map_or("–".to_string(), |f1| format!("{f1:.2}")),
            row.cost.map_or("–".to_string(), |cost| grouped(cost, 0)),
            number(row.ask_seconds),
            number(row.ask_cpu_seconds),
            match row.resident_bytes {
                0 => "–".to_string(),
                bytes => grouped(bytes as f64 / f64::from(1 << 20), 0),
            },
        ]
    }

    /// The header and one line for each row.
    fn lines(&self) -> Vec<Vec<String>> {
        [self.header()].into_iter().chain(self.rows.iter().map(|row| self.cells(row))).collect()
    }

    /// The table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        aligned(&self.lines())
    }

    /// The table in HTML.
    pub(crate) fn html(&self) -> String {
        html(&self.lines(), &self.caption, "Table of methods")
    }
}

/// A header and lines as a table in Markdown, aligned so that it reads well on a terminal.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            let rules: Vec<String> = widths
                .iter()
                .enumerate()
                .map(|(column, &width)| match column {
                    0 => "-".repeat(width),
                    _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
                })
                .collect();
            text.push_str(&format!("| {} |\n", rules.join(" | ")));
        }
    }
    text
}

/// A header and lines as a table in HTML, with this name for readers of the screen.
pub(crate) fn html(lines: &[Vec<String>], caption: &str, name: &str) -> String {
    let head = |cell: &String| {
        format!("<th scope=\"col\">{}</th>", escaped(&cell.replace("95 %", "95\u{a0}%")))
    };
    let row = |line: &Vec<String>| {
        let cells = line.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
            _ => format!("<td>{}</td>", escaped(cell)),
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let first: String = lines.iter().take(1).flatten().map(head).collect();
    let body: String = lines.iter().skip(1).map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table>\n\
         <caption>{}</caption>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n",
        escaped(caption)
    )
}
