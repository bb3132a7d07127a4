//! Made-up results with numbers chosen by the tests.

// Each test file uses its part.
#![allow(dead_code)]

use std::path::Path;

use boscage::Point;
use boscage::graph::{Edge, EdgeScore};
use boscage_bench::problem::{Certainty, Goal, Optimum};
use boscage_bench::results::{
    LearnedGraph, Line, Machine, RunResult, SCHEMA, Start, Timing, TrialRecord, run_path,
};

/// Points of the initial design of every made-up run.
pub(crate) const INITIAL: u64 = 2;

/// A run without trials: a minimisation of three variables whose optimum is −1.
pub(crate) fn run(problem: &str, method: &str, seed: u64) -> RunResult {
    let start = Start {
        schema: SCHEMA,
        recipe: "made-up".to_string(),
        problem: problem.to_string(),
        problem_settings: serde_json::json!({ "kind": "made-up" }),
        method: method.to_string(),
        method_settings: serde_json::json!({ "name": method }),
        seed,
        initial_points: INITIAL,
        trials: 0,
        dimension: 3,
        goal: Goal::Minimize,
        noise_std: 0.125,
        optimum: Some(Optimum {
            value: -1.0,
            point: Point(vec![0.5; 3]),
            certainty: Certainty::Exact,
        }),
        true_edges: None,
        version: "0.0.1".to_string(),
        commit: None,
        machine: Machine { system: "none".to_string(), processor: None, cores: 1 },
        started: 1.5e9,
    };
    let path = run_path(Path::new(""), problem, method, seed);
    RunResult { path, start, trials: Vec::new(), end: None }
}

/// The same with these best values and costs, trial by trial.
pub(crate) fn run_with(
    problem: &str,
    method: &str,
    seed: u64,
    trials: impl IntoIterator<Item = (f64, u64)>,
) -> RunResult {
    let mut run = run(problem, method, seed);
    for (best, cost) in trials {
        push(&mut run, best, cost);
    }
    run
}

/// Adds a trial.
pub(crate) fn push(run: &mut RunResult, best: f64, cost: u64) {
    let trial = run.trials.len() as u64;
    run.trials.push(TrialRecord {
        trial,
        initial: trial < INITIAL,
        point: Point(vec![0.1, 0.25, 1.0 / 3.0]),
        observed: Some(best + 0.1),
        value: Some(best),
        failure: None,
        best_value: Some(best),
        regret: Some(best + 1.0),
        score: None,
        cost,
        learned: None,
        model: None,
        timing: Timing { ask_seconds: 1e-7, resident_bytes: 1 << 20, ..Timing::default() },
    });
}

/// Gives the last trial a newly learned graph, and it and later pushes of the caller an F1.
pub(crate) fn learn(run: &mut RunResult, f1: f64) {
    if let Some(trial) = run.trials.last_mut() {
        trial.learned = Some(LearnedGraph {
            edges: Edge::new(0, 1).into_iter().map(|edge| (edge, 0.5)).collect(),
            log_likelihood: -3.0,
        });
        trial.score = Some(EdgeScore { precision: f1, recall: f1, f1 });
    }
}

/// The lines of a run's file.
pub(crate) fn lines(run: &RunResult) -> String {
    let start = Line::Start(Box::new(run.start.clone()));
    let trials = run.trials.iter().map(|trial| Line::Trial(Box::new(trial.clone())));
    let end = run.end.clone().map(|reason| Line::End { reason });
    let all = std::iter::once(start).chain(trials).chain(end);
    all.map(|line| serde_json::to_string(&line).unwrap() + "\n").collect()
}

/// Stores runs as the runner would.
pub(crate) fn store(out: &Path, runs: &[RunResult]) {
    for run in runs {
        let path = out.join(&run.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, lines(run)).unwrap();
    }
}
