//! The runner: what it stores, what it repeats, what it survives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use boscage::graph::{Edge, Graph};
use boscage::{Method, Model, Optimizer, Parameter, Point, Space, Stream, Value};
use boscage_bench::problem::Certainty;
use boscage_bench::results::{Line, RunResult, TrialRecord, read_run, read_runs, run_path};
use boscage_bench::run::{initial_design, noise};
use boscage_bench::{
    Error, Event, Goal, Observations, Optimum, Plan, PlannedMethod, PlannedProblem, Problem,
    RunnerOptions, Summary, run_plan,
};

/// (x0 − 0.3)² + (x0 − x1)² + (x1 − x2)², observed with noise; counts its evaluations.
struct Bowl {
    space: Space,
    optimum: Optimum,
    graph: Graph,
    evaluated: Arc<AtomicU64>,
}

fn path_of_three() -> Graph {
    Graph::from_edges(3, [Edge::new(0, 1).unwrap(), Edge::new(1, 2).unwrap()]).unwrap()
}

fn optimum(value: f64, coordinate: f64) -> Optimum {
    Optimum { value, point: Point(vec![coordinate; 3]), certainty: Certainty::Exact }
}

impl Bowl {
    fn boxed(evaluated: Arc<AtomicU64>) -> Box<dyn Problem> {
        let space = Space::unit_cube(3).unwrap();
        Box::new(Self { space, optimum: optimum(0.0, 0.3), graph: path_of_three(), evaluated })
    }
}

fn numbers(values: &[Value]) -> Vec<f64> {
    values.iter().map(|value| value.as_f64().unwrap()).collect()
}

impl Problem for Bowl {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> boscage_bench::Result<f64> {
        self.evaluated.fetch_add(1, Ordering::Relaxed);
        let x = numbers(values);
        Ok((x[0] - 0.3).powi(2) + (x[0] - x[1]).powi(2) + (x[1] - x[2]).powi(2))
    }

    fn noise_std(&self) -> f64 {
        0.1
    }

    fn optimum(&self) -> Option<&Optimum> {
        Some(&self.optimum)
    }

    fn graph(&self) -> Option<&Graph> {
        Some(&self.graph)
    }
}

fn named(label: &str, name: &str) -> PlannedMethod {
    let method = Method::named(name).unwrap();
    PlannedMethod {
        label: label.to_string(),
        settings: serde_json::to_value(&method).unwrap(),
        observations: Observations::Noisy,
        build: Arc::new(move |problem| Ok(method.build(problem.space().clone())?)),
    }
}

fn planned(
    label: &str,
    build: impl Fn(u64) -> Box<dyn Problem> + Send + Sync + 'static,
) -> PlannedProblem {
    PlannedProblem {
        label: label.to_string(),
        title: label.to_string(),
        settings: serde_json::json!({ "label": label }),
        build: Arc::new(move |seed| Ok(build(seed))),
    }
}

fn bowls(evaluated: &Arc<AtomicU64>) -> Plan {
    let evaluated = evaluated.clone();
    Plan {
        name: "bowls".to_string(),
        title: "Bowls".to_string(),
        problems: vec![planned("bowl", move |_| Bowl::boxed(evaluated.clone()))],
        methods: vec![
            named("paper", "tree-paper"),
            named("tree", "tree"),
            named("random", "random"),
        ],
        seeds: vec![3, 4],
        initial_points: 4,
        trials: 34,
    }
}

fn options(out: &Path) -> RunnerOptions {
    RunnerOptions { out: out.to_path_buf(), jobs: 2, threads: 1 }
}

fn run(plan: &Plan, out: &Path) -> Summary {
    run_plan(plan, &options(out), &AtomicBool::new(false), &|_| {}).unwrap()
}

/// All lines of all runs without times, by path within the folder.
fn stored(out: &Path) -> BTreeMap<PathBuf, Vec<serde_json::Value>> {
    let mut all = BTreeMap::new();
    for run in read_runs(out).unwrap() {
        let text = std::fs::read_to_string(&run.path).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            let object = line.as_object_mut().unwrap();
            object.remove("timing");
            object.remove("started");
            if object["line"] == "start" {
                object.remove("trials");
            }
            line
        });
        all.insert(run.path.strip_prefix(out).unwrap().to_path_buf(), lines.collect());
    }
    all
}

fn result(out: &Path, method: &str, seed: u64) -> RunResult {
    read_run(&run_path(out, "bowl", method, seed)).unwrap().unwrap()
}

#[test]
fn everything_is_run_once_and_the_same_for_any_number_of_jobs() {
    let evaluated = Arc::new(AtomicU64::new(0));
    let plan = bowls(&evaluated);
    let (one, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stop = AtomicBool::new(false);
    let single = RunnerOptions { jobs: 1, ..options(one.path()) };
    let summary = run_plan(&plan, &single, &stop, &|_| {}).unwrap();
    assert_eq!((summary.finished, summary.already_done, summary.stopped), (6, 0, false));
    assert!(summary.failed.is_empty());
    assert_eq!(evaluated.load(Ordering::Relaxed), 6 * 38);

    let several = RunnerOptions { jobs: 3, threads: 2, ..options(many.path()) };
    run_plan(&plan, &several, &stop, &|_| {}).unwrap();
    assert_eq!(stored(one.path()), stored(many.path()));
    assert_eq!(stored(one.path()).len(), 6);

    let before = evaluated.load(Ordering::Relaxed);
    let summary = run(&plan, one.path());
    assert_eq!((summary.finished, summary.already_done), (0, 6));
    assert_eq!(evaluated.load(Ordering::Relaxed), before, "nothing runs twice");
}

#[test]
fn all_methods_of_a_seed_share_design_and_noise() {
    let folder = tempfile::tempdir().unwrap();
    run(&bowls(&Arc::default()), folder.path());
    for seed in [3, 4] {
        let design = initial_design(&Space::unit_cube(3).unwrap(), seed, 4);
        for method in ["paper", "tree", "random"] {
            let run = result(folder.path(), method, seed);
            assert_eq!(run.trials.len(), 38);
            for (trial, point) in run.trials.iter().zip(&design) {
                assert!(trial.initial);
                assert_eq!(&trial.point, point);
            }
            assert!(run.trials[4..].iter().all(|trial| !trial.initial));
            for trial in &run.trials {
                let added = trial.observed.unwrap() - trial.value.unwrap();
                assert!((added - 0.1 * noise(seed, trial.trial)).abs() < 1e-12);
            }
        }
    }
    assert_ne!(noise(3, 0), noise(4, 0));
    assert_ne!(noise(3, 0), noise(3, 1));
}

#[test]
fn noise_is_standard_normal() {
    let n = 40_000;
    let draws: Vec<f64> = (0..n).map(|trial| noise(11, trial)).collect();
    let moment = |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / n as f64;
    // Means and variances of x, x², x³, x⁴ for a standard normal x.
    for (power, expected, variance) in
        [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
    {
        let error = f64::sqrt(variance / n as f64);
        assert!(
            (moment(power) - expected).abs() < 4.0 * error,
            "moment {power}: {}",
            moment(power)
        );
    }
}

#[test]
fn stopped_after_any_trial_and_continued_it_stores_the_same() {
    let whole = tempfile::tempdir().unwrap();
    run(&bowls(&Arc::default()), whole.path());
    for pause in [1_u64, 5, 16, 17, 50] {
        let evaluated = Arc::new(AtomicU64::new(0));
        let plan = bowls(&evaluated);
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = 0;
        loop {
            let stop = AtomicBool::new(false);
            let seen = AtomicU64::new(0);
            let observe = |event: Event<'_>| {
                let is_trial = matches!(event, Event::Trial { .. });
                if is_trial && seen.fetch_add(1, Ordering::Relaxed) + 1 == pause {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let summary = run_plan(&plan, &options(folder.path()), &stop, &observe).unwrap();
            assert!(summary.failed.is_empty(), "{:?}", summary.failed);
            rounds += 1;
            if !summary.stopped {
                break;
            }
        }
        assert!(rounds > 3, "the test must interrupt: {rounds}");
        assert_eq!(stored(folder.path()), stored(whole.path()), "paused after {pause} trials");
        assert_eq!(evaluated.load(Ordering::Relaxed), 6 * 38, "no trial is evaluated twice");
    }
}

#[test]
fn a_file_cut_off_anywhere_is_mended() {
    let plan = bowls(&Arc::default());
    let whole = tempfile::tempdir().unwrap();
    run(&plan, whole.path());
    let expected = stored(whole.path());
    let path = run_path(whole.path(), "bowl", "paper", 3);
    let text = std::fs::read(&path).unwrap();
    let before = read_run(&path).unwrap().unwrap();
    let learned = before.trials.iter().rposition(|trial| trial.learned.is_some()).unwrap();
    let ends: Vec<usize> = (0..text.len()).filter(|&k| text[k] == b'\n').map(|k| k + 1).collect();
    // Nothing, half of the first line, in the initial design, before, in and after the trial that learned, in the last line.
    // Line 0 is the start: trial k is line k + 1.
    let cuts = [
        0,
        ends[0] / 2,
        ends[0],
        ends[2] + 9,
        ends[learned],
        ends[learned] + 40,
        ends[learned + 1],
        ends[learned + 2] + 7,
        text.len() - 1,
    ];
    for cut in cuts {
        std::fs::write(&path, &text[..cut]).unwrap();
        assert_eq!(
            read_run(&path).unwrap().is_some(),
            cut >= ends[0],
            "readers ignore a torn line"
        );
        let summary = run(&plan, whole.path());
        assert_eq!((summary.finished, summary.already_done), (1, 5), "cut at {cut}");
        assert_eq!(stored(whole.path()), expected, "cut at {cut}");
    }
}

#[test]
fn a_run_on_another_graph_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = scripted(&[0.2, 0.1, 0.3]);
    plan.trials = 2;
    run(&plan, folder.path());
    plan.trials = 3;
    plan.problems = vec![planned("line", |_| {
        let space = Space::unit_cube(3).unwrap();
        Box::new(Slope { space, optimum: optimum(10.0, 1.0), graph: Graph::empty(3) })
    })];
    let message = run(&plan, folder.path()).failed[0].1.to_string();
    assert!(message.contains("the graph of the problem has changed"), "{message}");
}

#[test]
fn a_longer_budget_continues_finished_runs() {
    let mut plan = bowls(&Arc::default());
    let (long, grown) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&plan, long.path());
    plan.trials = 20;
    run(&plan, grown.path());
    assert_eq!(result(grown.path(), "tree", 3).trials.len(), 24);
    plan.trials = 34;
    assert_eq!(run(&plan, grown.path()).finished, 6);
    assert_eq!(stored(grown.path()), stored(long.path()));
    plan.trials = 10;
    assert_eq!(run(&plan, grown.path()).already_done, 6);
}

/// A method that goes through a list of points and, at its second ask, pretends to have learned edges.
struct Script {
    points: Vec<f64>,
    model: Option<Model>,
    asks: usize,
}

impl Optimizer for Script {
    fn ask(&mut self, _: &[Point], _: &Stream) -> boscage::Result<Point> {
        self.asks += 1;
        if self.asks == 2 {
            let mut learner = Method::named("tree-paper")?.build(Space::unit_cube(3)?)?;
            for k in 0..20 {
                learner.tell(Point(vec![0.05 * f64::from(k); 3]), f64::from(k))?;
            }
            learner.ask(&[], &Stream::new(0, 20))?;
            let mut model = learner.model().unwrap().clone();
            model.graph = Graph::from_edges(3, [Edge::new(0, 1)?, Edge::new(0, 2)?])?;
            model.edge_frequencies = vec![(Edge::new(0, 1)?, 0.75)];
            self.model = Some(model);
        }
        Ok(Point(vec![self.points[self.asks - 1], 0.5, 0.5]))
    }

    fn tell(&mut self, _: Point, _: f64) -> boscage::Result<()> {
        Ok(())
    }

    fn fail(&mut self, _: Point) -> boscage::Result<()> {
        Ok(())
    }

    fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    fn evaluations(&self) -> usize {
        self.asks * 100
    }
}

/// 10·x0, to be maximised; with one point where it is not a number, one where it fails and one where it panics.
struct Slope {
    space: Space,
    optimum: Optimum,
    graph: Graph,
}

impl Problem for Slope {
    fn space(&self) -> &Space {
        &self.space
    }

    fn goal(&self) -> Goal {
        Goal::Maximize
    }

    fn evaluate(&self, values: &[Value]) -> boscage_bench::Result<f64> {
        match numbers(values)[0] {
            0.5 => Ok(f64::NAN),
            0.6 => Err(Error::Evaluation { reason: "the oven is broken".to_string() }),
            0.7 => panic!("an unforeseen case"),
            x => Ok(10.0 * x),
        }
    }

    fn optimum(&self) -> Option<&Optimum> {
        Some(&self.optimum)
    }

    fn graph(&self) -> Option<&Graph> {
        Some(&self.graph)
    }
}

fn scripted(points: &[f64]) -> Plan {
    let points = points.to_vec();
    let build = |_| -> Box<dyn Problem> {
        let space = Space::unit_cube(3).unwrap();
        Box::new(Slope { space, optimum: optimum(10.0, 1.0), graph: path_of_three() })
    };
    Plan {
        name: "script".to_string(),
        title: "Script".to_string(),
        problems: vec![planned("line", build)],
        trials: points.len() as u64,
        methods: vec![PlannedMethod {
            label: "script".to_string(),
            settings: serde_json::json!({ "points": points }),
            observations: Observations::Noisy,
            build: Arc::new(move |_| {
                Ok(Box::new(Script { points: points.clone(), model: None, asks: 0 }))
            }),
        }],
        seeds: vec![0],
        initial_points: 0,
    }
}

#[test]
fn metrics_are_those_computed_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    run(&scripted(&[0.2, 0.1, 0.5, 0.6, 0.8]), folder.path());
    let run = read_run(&run_path(folder.path(), "line", "script", 0)).unwrap().unwrap();
    let all = |pick: fn(&TrialRecord) -> Option<f64>| -> Vec<Option<f64>> {
        run.trials.iter().map(pick).collect()
    };
    assert_eq!(all(|t| t.value), [Some(2.0), Some(1.0), None, None, Some(8.0)]);
    assert_eq!(all(|t| t.observed), [Some(2.0), Some(1.0), None, None, Some(8.0)]);
    assert_eq!(all(|t| t.best_value), [2.0, 2.0, 2.0, 2.0, 8.0].map(Some));
    assert_eq!(all(|t| t.regret), [8.0, 8.0, 8.0, 8.0, 2.0].map(Some));
    // Truth 0–1, 1–2; learned at the second ask: 0–1, 0–2. One of two is right, one of two is found.
    assert_eq!(all(|t| t.score.map(|s| s.f1)), [None, Some(0.5), Some(0.5), Some(0.5), Some(0.5)]);
    assert_eq!(all(|t| t.score.map(|s| s.precision))[4], Some(0.5));
    assert_eq!(all(|t| t.score.map(|s| s.recall))[4], Some(0.5));
    assert_eq!(all(|t| Some(t.cost as f64)), [100.0, 200.0, 300.0, 400.0, 500.0].map(Some));
    let learned = run.learned().unwrap();
    assert_eq!(learned.edges[0], (Edge::new(0, 1).unwrap(), 0.75));
    assert_eq!(run.trials.iter().filter(|trial| trial.learned.is_some()).count(), 1);
    assert_eq!(run.trials[2].failure.as_deref(), Some("the value is NaN"));
    assert_eq!(run.trials[3].failure.as_deref(), Some("the oven is broken"));
    let timing = run.trials[4].timing;
    assert!(timing.ask_seconds > 0.0 && timing.ask_cpu_seconds >= 0.0 && timing.tell_seconds > 0.0);
    assert!(!cfg!(target_os = "linux") || timing.resident_bytes > 1 << 20);
}

#[test]
fn a_panic_ends_one_run_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = scripted(&[0.2, 0.7]);
    plan.problems.push(planned("bowl", |_| Bowl::boxed(Arc::default())));
    let summary = run(&plan, folder.path());
    assert_eq!(summary.finished, 1);
    let (number, error) = &summary.failed[0];
    assert_eq!(*number, 0);
    assert_eq!(error.to_string(), "a bug ended the run: an unforeseen case");
    let run = read_run(&run_path(folder.path(), "line", "script", 0)).unwrap().unwrap();
    assert_eq!(run.trials.len(), 1);
}

struct Coin(Space);

impl Problem for Coin {
    fn space(&self) -> &Space {
        &self.0
    }

    fn evaluate(&self, _: &[Value]) -> boscage_bench::Result<f64> {
        Ok(1.0)
    }
}

#[test]
fn an_exhausted_space_ends_its_run_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let space = Space::new(vec![Parameter::boolean("side")]).unwrap();
    let mut plan = bowls(&Arc::default());
    plan.problems = vec![planned("coin", move |_| Box::new(Coin(space.clone())))];
    plan.methods = vec![named("tree", "tree")];
    plan.seeds = vec![0];
    plan.initial_points = 1;
    assert_eq!(run(&plan, folder.path()).finished, 1);
    let stored = read_run(&run_path(folder.path(), "coin", "tree", 0)).unwrap().unwrap();
    assert!(stored.end.unwrap().contains("all 2 points"));
    assert_eq!(stored.trials.len(), 2);
    assert_eq!(run(&plan, folder.path()).already_done, 1);
}

#[test]
fn changed_settings_are_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = bowls(&Arc::default());
    plan.trials = 2;
    run(&plan, folder.path());
    let refused = |plan: &Plan| {
        let ran = run_plan(plan, &options(folder.path()), &AtomicBool::new(false), &|_| {});
        ran.err().unwrap().to_string()
    };
    let mut other = plan.clone();
    other.methods[0] = named("paper", "tree");
    let message = refused(&other);
    assert!(message.contains("the method has changed"), "{message}");
    let change = "settings.acquisition: \"additive\" then, {\"joint\":2.0} now";
    assert!(message.contains(change), "{message}");
    let mut other = plan.clone();
    other.problems[0].settings = serde_json::json!({ "label": "bowl", "noise": 1 });
    let message = refused(&other);
    assert!(message.contains("the problem has changed"), "{message}");
    assert!(message.contains("noise: null then, 1 now"), "{message}");
    let mut other = plan.clone();
    other.initial_points = 5;
    assert!(refused(&other).contains("initial_points: 4 then, 5 now"));
}

#[test]
fn a_second_runner_is_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let plan = bowls(&Arc::default());
    let refused = std::sync::Mutex::new(None);
    let observe = |event: Event<'_>| {
        if let Event::Trial { run: 0, record } = event
            && record.trial == 0
        {
            let second = run_plan(&plan, &options(folder.path()), &AtomicBool::new(false), &|_| {});
            *refused.lock().unwrap() = second.err().map(|error| error.to_string());
        }
    };
    run_plan(&plan, &options(folder.path()), &AtomicBool::new(false), &observe).unwrap();
    let message = refused.into_inner().unwrap().unwrap();
    assert!(message.contains("another process is running"), "{message}");
}

#[test]
fn a_run_of_another_version_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = bowls(&Arc::default());
    plan.methods = vec![named("random", "random")];
    plan.seeds = vec![3];
    plan.trials = 2;
    run(&plan, folder.path());
    let path = run_path(folder.path(), "bowl", "random", 3);
    let text = std::fs::read_to_string(&path).unwrap();
    let Line::Start(mut start) = serde_json::from_str(text.lines().next().unwrap()).unwrap() else {
        panic!("the first line is the start");
    };
    start.version = "0.0.1".to_string();
    let first = serde_json::to_string(&Line::Start(start)).unwrap();
    let rest: Vec<&str> = text.lines().skip(1).collect();
    std::fs::write(&path, format!("{first}\n{}\n", rest.join("\n"))).unwrap();
    assert_eq!(run(&plan, folder.path()).already_done, 1, "a finished run stays as it is");
    plan.trials = 4;
    let message = run(&plan, folder.path()).failed[0].1.to_string();
    assert!(message.contains("begun by boscage 0.0.1"), "{message}");
}
