//! How long a plan will take: measured on finished runs, otherwise by a short pilot.
//!
//! Notation: n counts the trials of a run, n₀ those of the initial design, c(n) is the time of the first n trials. An ask with n
//! observations costs about a + 3b·n² (a part that does not grow, and solves with an n × n factor), so the pilot's times are
//! extrapolated by c(n) − c(n₀) ≈ a·(n − n₀) + b·(n³ − n₀³) with a, b ≥ 0.
//!
//! Cost: the wall time it is given for each pair of problem and method, and drawing each problem once.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use boscage::additive_gp::AdditivePrior;
use boscage::graph::Graph;
use boscage::{Space, Value};

use crate::error::Result;
use crate::plan::Plan;
use crate::problem::{Goal, Optimum, Problem};
use crate::results::{Timing, read_run, run_path};
use crate::run::{RunInProgress, Step};

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The mean of finished runs.
    Finished,
    /// A pilot that came to its end.
    Measured,
    /// A pilot that was cut off after some trials.
    Extrapolated,
}

impl Source {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Source::Finished => "finished runs",
            Source::Measured => "measured",
            Source::Extrapolated => "extrapolated",
        }
    }
}

/// How long the runs of one method on one problem take.
#[derive(Debug, Clone, PartialEq)]
pub struct PairEstimate {
    /// Label of the problem.
    pub problem: String,
    /// Label of the method.
    pub method: String,
    /// Runs of the plan.
    pub runs: usize,
    /// Runs that are complete.
    pub done: usize,
    /// Seconds of one run, with making its problem.
    pub seconds: f64,
    /// Where this is from.
    pub source: Source,
}

impl PairEstimate {
    /// Seconds of all the runs that are not complete.
    pub fn seconds_left(&self) -> f64 {
        self.seconds * (self.runs - self.done) as f64
    }
}

/// Seconds of a run for every problem with every method. Nothing is stored.
///
/// Runs in `out` that are complete are measured; where there are none, the first seed is run for at most
/// `budget_per_pair`, in the present thread pool. An external program is run at most once.
pub fn estimate(plan: &Plan, out: &Path, budget_per_pair: Duration) -> Result<Vec<PairEstimate>> {
    let mut pairs = Vec::new();
    for problem in &plan.problems {
        let seed = plan.seeds.first().copied().unwrap_or_default();
        // Every run makes its problem anew, which can take longer than a short run on it.
        let begin = Instant::now();
        let built = Once {
            inner: (problem.build)(seed)?,
            is_program: problem.settings.get("kind").is_some_and(|kind| kind == "program"),
            first: OnceLock::new(),
        };
        let building = begin.elapsed().as_secs_f64();
        for method in &plan.methods {
            let mut finished = Vec::new();
            for &seed in &plan.seeds {
                let path = run_path(out, &problem.label, &method.label, seed);
                let run = if path.exists() { read_run(&path)? } else { None };
                if let Some(run) = run
                    && (run.end.is_some() || run.trials.len() as u64 >= plan.trials_in_run())
                {
                    let trials = run.trials.iter().take(plan.trials_in_run() as usize);
                    finished.push(trials.map(|trial| seconds(&trial.timing)).sum::<f64>());
                }
            }
            let (seconds, source) = if finished.is_empty() {
                let optimizer = (method.build)(&built)?;
                let mut run = RunInProgress::new(&built, optimizer, seed, plan.initial_points);
                pilot(&mut run, plan, budget_per_pair, &built)?
            } else {
                (finished.iter().sum::<f64>() / finished.len() as f64, Source::Finished)
            };
            pairs.push(PairEstimate {
                problem: problem.label.clone(),
                method: method.label.clone(),
                runs: plan.seeds.len(),
                done: finished.len(),
                seconds: building + seconds,
                source,
            });
        }
    }
    Ok(pairs)
}

fn seconds(timing: &Timing) -> f64 {
    timing.ask_seconds + timing.tell_seconds + timing.evaluation_seconds
}

fn pilot(
    run: &mut RunInProgress<'_>,
    plan: &Plan,
    budget: Duration,
    problem: &Once,
) -> Result<(f64, Source)> {
    let begin = Instant::now();
    let (all, initial) = (plan.trials_in_run(), plan.initial_points);
    let mut design = 0.0;
    // Time of the chosen points so far, after each of them.
    let mut chosen: Vec<f64> = Vec::new();
    let mut source = Source::Measured;
    for trial in 0..all {
        if trial > initial && begin.elapsed() >= budget {
            source = Source::Extrapolated;
            break;
        }
        let Step::Trial(record) = run.step()? else { break };
        let taken = match problem.is_program {
            // The program ran only once: every evaluation counts as long as that one.
            true => {
                seconds(&record.timing) - record.timing.evaluation_seconds
                    + problem.evaluation_seconds()
            }
            false => seconds(&record.timing),
        };
        if record.initial {
            design += taken;
        } else {
            chosen.push(chosen.last().copied().unwrap_or_default() + taken);
        }
    }
    let seconds = match source {
        Source::Extrapolated => design + extrapolate(&chosen, initial, all),
        _ => design + chosen.last().copied().unwrap_or_default(),
    };
    Ok((seconds, source))
}

/// What the time of the chosen points will have come to when there are `all` trials. `chosen[k]` is the time of the first k + 1
/// points after the `initial` ones.
fn extrapolate(chosen: &[f64], initial: u64, all: u64) -> f64 {
    let cubic = |n: f64| n.powi(3) - (initial as f64).powi(3);
    let row = |n: f64| (n - initial as f64, cubic(n));
    let measured = (initial + chosen.len() as u64) as f64;
    let rows: Vec<((f64, f64), f64)> = chosen
        .iter()
        .enumerate()
        .map(|(k, &time)| (row((initial + k as u64 + 1) as f64), time))
        .collect();
    let (a, b) = nonnegative_fit(&rows);
    let curve = |n: f64| a * row(n).0 + b * row(n).1;
    chosen.last().copied().unwrap_or_default() + curve(all as f64) - curve(measured)
}

/// Least squares y ≈ a·u + b·v with a, b ≥ 0.
fn nonnegative_fit(rows: &[((f64, f64), f64)]) -> (f64, f64) {
    let sum = |term: &dyn Fn(f64, f64, f64) -> f64| {
        rows.iter().map(|&((u, v), y)| term(u, v, y)).sum::<f64>()
    };
    let (uu, uv, vv) = (sum(&|u, _, _| u * u), sum(&|u, v, _| u * v), sum(&|_, v, _| v * v));
    let (uy, vy) = (sum(&|u, _, y| u * y), sum(&|_, v, y| v * y));
    let share = |y: f64, x: f64| if x > 0.0 { (y / x).max(0.0) } else { 0.0 };
    let determinant = uu * vv - uv * uv;
    // With a single row the two columns are proportional: the slower growth is the safer guess.
    if rows.len() < 2 || determinant <= 1e-12 * uu * vv {
        return (share(uy, uu), 0.0);
    }
    let (a, b) = ((uy * vv - vy * uv) / determinant, (vy * uu - uy * uv) / determinant);
    match (a >= 0.0, b >= 0.0) {
        (true, true) => (a, b),
        (false, _) => (0.0, share(vy, vv)),
        (true, false) => (share(uy, uu), 0.0),
    }
}

/// A problem whose program runs only once; after that a made-up outcome stands in for it. Other problems are as they are.
struct Once {
    inner: Box<dyn Problem>,
    is_program: bool,
    first: OnceLock<f64>,
}

impl Once {
    fn evaluation_seconds(&self) -> f64 {
        self.first.get().copied().unwrap_or_default()
    }
}

impl Problem for Once {
    fn space(&self) -> &Space {
        self.inner.space()
    }
    fn goal(&self) -> Goal {
        self.inner.goal()
    }
    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        if !self.is_program {
            return self.inner.evaluate(values);
        }
        self.first.get_or_init(|| {
            let begin = Instant::now();
            // A failure takes its time too, and the run itself will tell of it.
            let _ = self.inner.evaluate(values);
            begin.elapsed().as_secs_f64()
        });
        let point = self.space().encode(values)?;
        Ok(point.0.iter().map(|x| (x - 0.3).powi(2)).sum())
    }
    fn noise_std(&self) -> f64 {
        self.inner.noise_std()
    }
    fn optimum(&self) -> Option<&Optimum> {
        self.inner.optimum()
    }
    fn graph(&self) -> Option<&Graph> {
        self.inner.graph()
    }
    fn truth(&self) -> Option<AdditivePrior> {
        self.inner.truth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_follow_the_curve_are_continued_exactly() {
        let (a, b, initial) = (0.02, 3e-8, 10_u64);
        let time =
            |n: u64| a * (n - initial) as f64 + b * ((n as f64).powi(3) - (initial as f64).powi(3));
        let chosen: Vec<f64> = (initial + 1..=initial + 40).map(time).collect();
        let guess = extrapolate(&chosen, initial, 1_010);
        assert!((guess / time(1_010) - 1.0).abs() < 1e-6, "{guess} against {}", time(1_010));
    }

    #[test]
    fn the_fit_is_the_best_of_all_that_are_not_negative() {
        // Concave, convex and mixed times: against a fine grid of coefficients.
        let shapes: [fn(f64) -> f64; 4] =
            [|n| n.sqrt(), |n| n.powi(4), |n| n + n.powi(3), |n| (5.0 - n).max(0.0)];
        for (number, shape) in shapes.into_iter().enumerate() {
            let rows: Vec<((f64, f64), f64)> =
                (1..=8).map(|n| f64::from(n) / 8.0).map(|n| ((n, n.powi(3)), shape(n))).collect();
            let loss = |a: f64, b: f64| {
                rows.iter().map(|((u, v), y)| (a * u + b * v - y).powi(2)).sum::<f64>()
            };
            let (a, b) = nonnegative_fit(&rows);
            assert!(a >= 0.0 && b >= 0.0);
            for i in 0..=200 {
                for j in 0..=200 {
                    let (other_a, other_b) = (f64::from(i) * 0.05, f64::from(j) * 0.05);
                    assert!(
                        loss(a, b) <= loss(other_a, other_b) + 1e-12,
                        "shape {number}: ({a}, {b}) against ({other_a}, {other_b})"
                    );
                }
            }
        }
    }

    #[test]
    fn one_measured_point_is_continued_in_proportion() {
        assert!((extrapolate(&[0.5], 10, 110) - 50.0).abs() < 1e-9);
        assert_eq!(extrapolate(&[], 10, 110), 0.0);
    }
}
