//! Curves: a number of every run after every trial, as mean and band over seeds.
//!
//! The band is mean ± ¼ standard deviation over seeds, as in the paper. A point is only drawn where every seed has the number:
//! a curve begins when the last seed has its first successful trial.

use boscage_bench::Goal;
use boscage_bench::results::TrialRecord;
use boscage_bench::statistics::{mean, standard_deviation};

use super::selection::{MethodRuns, ProblemRuns};

/// A number that a run has after each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Regret, if the optimum is known.
    Regret,
    /// The best value so far.
    BestValue,
    /// F1 of the learned graph.
    F1,
}

impl Metric {
    /// What the success of a run is measured by.
    pub(crate) fn objective(problem: &ProblemRuns) -> Self {
        if problem.optimum_known { Self::Regret } else { Self::BestValue }
    }

    /// Whether large numbers are good.
    pub(crate) fn goal(self, problem: &ProblemRuns) -> Goal {
        match self {
            Self::Regret => Goal::Minimize,
            Self::BestValue => problem.goal,
            Self::F1 => Goal::Maximize,
        }
    }

    /// The number after each trial. Once there is one, a trial without it keeps the one before.
    pub(crate) fn of(self, trials: &[TrialRecord]) -> Vec<Option<f64>> {
        let now = |trial: &TrialRecord| match self {
            Self::Regret => trial.regret,
            Self::BestValue => trial.best_value,
            Self::F1 => trial.score.map(|score| score.f1),
        };
        let mut last = None;
        trials
            .iter()
            .map(|trial| {
                last = now(trial).filter(|number| number.is_finite()).or(last);
                last
            })
            .collect()
    }
}

/// One method's line in a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// The method.
    pub label: String,
    /// Decides the colour.
    pub style: usize,
    /// The points, in order of `x`; never empty.
    pub points: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    /// Where.
    pub x: f64,
    /// Mean over seeds.
    pub mean: f64,
    /// Mean − ¼ standard deviation.
    pub low: f64,
    /// Mean + ¼ standard deviation.
    pub high: f64,
}

impl CurvePoint {
    /// The point of numbers from all seeds. One seed has no band.
    pub(crate) fn of_seeds(x: f64, numbers: &[f64]) -> Option<Self> {
        let mean = mean(numbers)?;
        let half = standard_deviation(numbers).map_or(0.0, |deviation| deviation / 4.0);
        Some(Self { x, mean, low: mean - half, high: mean + half })
    }
}

impl Curve {
    /// The mean at the end.
    pub(crate) fn last(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |point| point.mean)
    }
}

/// A metric over evaluations, one curve a method, best final value first.
pub(crate) fn curves(problem: &ProblemRuns, metric: Metric) -> Vec<Curve> {
    let one = |method: &MethodRuns| {
        let numbers: Vec<_> = method.used().map(|trials| metric.of(trials)).collect();
        (0..method.trials)
            .filter_map(|trial| {
                let of_seeds = numbers.iter().map(|run| run.get(trial).copied().flatten());
                let of_seeds: Option<Vec<f64>> = of_seeds.collect();
                CurvePoint::of_seeds((trial + 1) as f64, &of_seeds?)
            })
            .collect()
    };
    sorted(problem, metric, one)
}

/// The objective over message-passing cost, one curve a method that has such a cost, best final value first.
///
/// At a cost c each seed contributes what it had reached when its cost was at most c. A curve begins where every seed has spent
/// something, and ends where the first seed has spent everything.
pub(crate) fn cost_curves(problem: &ProblemRuns) -> Vec<Curve> {
    const POINTS: usize = 160;
    let metric = Metric::objective(problem);
    let one = |method: &MethodRuns| {
        let mut steps = Vec::new();
        for trials in method.used() {
            let numbers = metric.of(trials);
            let of_run: Vec<(f64, f64)> = trials
                .iter()
                .zip(numbers)
                .filter(|(trial, _)| trial.cost > 0)
                .filter_map(|(trial, number)| Some((trial.cost as f64, number?)))
                .collect();
            match (of_run.first(), of_run.last()) {
                (Some(&first), Some(&last)) => steps.push((of_run, first.0, last.0)),
                _ => return Vec::new(),
            }
        }
        let begin = steps.iter().map(|step| step.1).fold(0.0, f64::max);
        let end = steps.iter().map(|step| step.2).fold(f64::INFINITY, f64::min);
        if begin >= end {
            return Vec::new();
        }
        let ratio = (end / begin).ln();
        (0..POINTS)
            .filter_map(|k| {
                let cost = match k {
                    0 => begin,
                    k if k + 1 == POINTS => end,
                    k => begin * (ratio * k as f64 / (POINTS - 1) as f64).exp(),
                };
                let reached: Vec<f64> = steps
                    .iter()
                    .filter_map(|(run, ..)| {
                        let spent = run.partition_point(|step| step.0 <= cost);
                        run.get(spent.checked_sub(1)?).map(|step| step.1)
                    })
                    .collect();
                CurvePoint::of_seeds(cost, &reached)
            })
            .collect()
    };
    sorted(problem, metric, one)
}

fn sorted(
    problem: &ProblemRuns,
    metric: Metric,
    points: impl Fn(&MethodRuns) -> Vec<CurvePoint>,
) -> Vec<Curve> {
    let mut curves: Vec<Curve> = problem
        .methods
        .iter()
        .map(|method| {
            let mut label = method.label.to_string();
            if method.trials < problem.trials {
                label.push_str(&format!(" (to {})", method.trials));
            }
            Curve { label, style: method.style, points: points(method) }
        })
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let sign = metric.goal(problem).sign();
    curves.sort_by(|a, b| (sign * b.last()).total_cmp(&(sign * a.last())));
    curves
}
