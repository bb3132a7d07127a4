//! The steps of a report on examples small enough for a pencil.

use std::path::PathBuf;

use boscage::Point;
use boscage::graph::{Edge, EdgeScore};
use boscage_bench::Goal;
use boscage_bench::problem::{Certainty, Optimum};
use boscage_bench::results::{Machine, RunResult, SCHEMA, Start, Timing, TrialRecord};
use boscage_bench::statistics::{RESAMPLES, Statistic, bootstrap_interval};

use super::chart::sensible_scale;
use super::curves::{Curve, CurvePoint, Metric, cost_curves, curves};
use super::figures::{cost_over_dimension, of_problem, of_series};
use super::pooled::pooled;
use super::selection::{ProblemRuns, problems, seed_list};
use super::table::{Difference, table};
use super::{Horizontal, baseline};
use crate::draw::layout::{closest, layout};
use crate::draw::svg::{Scale, grouped, short};

/// A run of a two-parameter problem with optimum 0: one trial for each value, nothing for a failed one.
fn run(method: &str, seed: u64, values: &[Option<f64>]) -> RunResult {
    let mut best: Option<f64> = None;
    let trials = values.iter().enumerate().map(|(k, &value)| {
        best = value.map(|value| best.map_or(value, |best| best.min(value))).or(best);
        TrialRecord {
            trial: k as u64,
            initial: k < 1,
            point: Point(vec![0.5; 2]),
            observed: value,
            value,
            failure: None,
            best_value: best,
            regret: best,
            score: None,
            cost: 0,
            learned: None,
            model: None,
            timing: Timing::default(),
        }
    });
    RunResult {
        path: PathBuf::from(format!("{method}-{seed}")),
        trials: trials.collect(),
        end: None,
        start: Start {
            schema: SCHEMA,
            recipe: "example".to_string(),
            problem: "bowl".to_string(),
            problem_settings: serde_json::json!({}),
            method: method.to_string(),
            method_settings: serde_json::json!({}),
            seed,
            initial_points: 1,
            trials: 0,
            dimension: 2,
            goal: Goal::Minimize,
            noise_std: 0.0,
            optimum: Some(Optimum {
                value: 0.0,
                point: Point(vec![0.0; 2]),
                certainty: Certainty::Exact,
            }),
            true_edges: None,
            version: "0.1.0".to_string(),
            commit: None,
            machine: Machine { system: "a system".to_string(), processor: None, cores: 2 },
            started: 0.0,
        },
    }
}

fn values(method: &str, seed: u64, values: &[f64]) -> RunResult {
    run(method, seed, &values.iter().copied().map(Some).collect::<Vec<_>>())
}

fn only(runs: &[RunResult]) -> ProblemRuns<'_> {
    let mut found = problems(runs).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn with_costs(mut run: RunResult, costs: &[u64]) -> RunResult {
    run.trials.iter_mut().zip(costs).for_each(|(trial, &cost)| trial.cost = cost);
    run
}

#[test]
fn the_band_is_the_mean_and_a_quarter_of_the_standard_deviation() {
    let runs = [values("tree", 0, &[4.0, 2.0, 1.0]), values("tree", 1, &[6.0, 5.0, 1.0])];
    let found = curves(&only(&runs), Metric::Regret);
    // standard deviations of (4, 6), (2, 5) and (1, 1): √2, 3/√2, 0
    let quarter = [2f64.sqrt() / 4.0, 3.0 / 2f64.sqrt() / 4.0, 0.0];
    let expected = [(1.0, 5.0), (2.0, 3.5), (3.0, 1.0)];
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].points.len(), 3);
    for ((point, (x, mean)), quarter) in found[0].points.iter().zip(expected).zip(quarter) {
        assert_eq!((point.x, point.mean), (x, mean));
        assert!((point.low - (mean - quarter)).abs() < 1e-12, "{point:?}");
        assert!((point.high - (mean + quarter)).abs() < 1e-12, "{point:?}");
    }
}

#[test]
fn a_curve_begins_when_every_seed_has_a_value() {
    let runs = [
        run("tree", 0, &[None, Some(3.0), None, Some(5.0)]),
        values("tree", 1, &[8.0, 1.0, 1.0, 1.0]),
    ];
    let problem = only(&runs);
    let points = &curves(&problem, Metric::Regret)[0].points;
    let means: Vec<_> = points.iter().map(|point| (point.x, point.mean)).collect();
    assert_eq!(means, [(2.0, 2.0), (3.0, 2.0), (4.0, 2.0)]);
    assert!(
        problem.notes.contains(&"tree: 2 of 8 trials failed.".to_string()),
        "{:?}",
        problem.notes
    );
}

#[test]
fn the_best_final_value_comes_first() {
    let order = |runs: &[RunResult], metric| -> Vec<String> {
        curves(&only(runs), metric).into_iter().map(|curve| curve.label).collect()
    };
    let mut runs =
        [values("a", 0, &[1.0, 1.0]), values("b", 0, &[9.0, 0.5]), values("c", 0, &[5.0, 2.0])];
    assert_eq!(order(&runs, Metric::Regret), ["b", "a", "c"]);
    for run in &mut runs {
        run.start.goal = Goal::Maximize;
    }
    assert_eq!(order(&runs, Metric::BestValue), ["c", "a", "b"]);
}

#[test]
fn at_a_cost_each_seed_counts_with_what_it_had_reached() {
    let runs = [
        with_costs(values("tree", 0, &[4.0, 2.0, 1.0]), &[0, 10, 30]),
        with_costs(values("tree", 1, &[6.0, 4.0, 3.0]), &[0, 20, 40]),
        values("random", 0, &[4.0, 4.0, 4.0]),
        values("random", 1, &[6.0, 6.0, 6.0]),
    ];
    let found = cost_curves(&only(&runs));
    // random search has no cost and so no curve
    assert_eq!(found.len(), 1);
    let (first, last) = (found[0].points[0], found[0].points[found[0].points.len() - 1]);
    // at 20: seed 0 has 2, seed 1 has 4; at 30: seed 0 has 1, seed 1 still 4
    assert_eq!((first.x, first.mean), (20.0, 3.0));
    assert_eq!((last.x, last.mean), (30.0, 2.5));
    assert!(
        found[0]
            .points
            .windows(2)
            .all(|pair| pair[0].x < pair[1].x && pair[0].mean >= pair[1].mean)
    );
}

#[test]
fn the_table_has_the_numbers_of_a_pencil() {
    let mut runs = Vec::new();
    for seed in 0..5 {
        let end = seed as f64 + 1.0;
        let mut tree =
            with_costs(values("tree", seed, &[9.0, 9.0, end]), &[0, 50, 100 * (seed + 1)]);
        for (trial, seconds) in tree.trials.iter_mut().zip([7.0, 1.0, 3.0]) {
            trial.timing.ask_seconds = seconds * end;
            trial.timing.ask_cpu_seconds = 2.0 * seconds * end;
            trial.timing.resident_bytes = 1024 * (seed + 1);
            trial.score = Some(EdgeScore { precision: 1.0, recall: 1.0, f1: end / 10.0 });
        }
        runs.push(tree);
        runs.push(values("random", seed, &[20.0, 2.0 * end, 2.0 * end]));
    }
    let found = table(&only(&runs), "tree");
    let [tree, random] = &found.rows[..] else { panic!("{:?}", found.rows) };
    // final regrets 1 … 5, and twice that
    assert_eq!((tree.method.as_str(), tree.seeds), ("tree", 5));
    assert_eq!((tree.median, tree.quartiles, tree.mean), (Some(3.0), Some((2.0, 4.0)), Some(3.0)));
    assert_eq!(
        (random.median, random.quartiles, random.mean),
        (Some(6.0), Some((4.0, 8.0)), Some(6.0))
    );
    assert_eq!((tree.f1, tree.cost), (Some(0.3), Some(300.0)));
    // the asks after the initial design take 1 and 3 times 1 … 5 seconds: mean 2, median 6
    assert_eq!((tree.ask_seconds, tree.ask_cpu_seconds), (Some(6.0), Some(12.0)));
    assert_eq!(tree.resident_bytes, 5 * 1024);
    assert_eq!(tree.difference, Difference::Baseline);
    let differences = [1.0, 2.0, 3.0, 4.0, 5.0];
    let interval = bootstrap_interval(&differences, Statistic::Mean, 0.95, RESAMPLES, 0).unwrap();
    assert_eq!(random.difference, Difference::Paired { mean: 3.0, interval, seeds: 5 });
    let markdown = found.markdown();
    let line = markdown.lines().find(|line| line.contains("random")).unwrap();
    assert!(line.contains(" 3 [") && line.contains("] worse |"), "{line}");
    // seen from the other side
    let found = table(&only(&runs), "random");
    assert!(
        found.markdown().lines().any(|line| line.contains("| tree") && line.contains("] better |"))
    );
}

#[test]
fn a_seed_that_one_method_has_not_finished_is_left_out_for_all() {
    let runs = [
        values("a", 0, &[5.0, 1.0]),
        values("a", 1, &[5.0, 3.0]),
        values("b", 0, &[5.0, 2.0]),
        values("b", 1, &[5.0]),
        values("a", 2, &[5.0, 3.0]),
    ];
    let problem = only(&runs);
    assert_eq!(problem.trials, 2);
    assert!(problem.methods.iter().all(|method| method.trials == 2 && method.runs.len() == 1));
    assert_eq!(
        problem.notes,
        [
            "Used: seed 0, 2 trials each, 1 of them the initial design.",
            "Left out for all methods: seed 1 (b has 1 of 2 trials); seed 2 (b has not begun).",
        ]
    );
}

#[test]
fn a_method_that_finished_nothing_is_shown_as_far_as_it_got_and_marked() {
    let mut slow = values("slow", 0, &[5.0, 4.0]);
    slow.end = Some("out of time".to_string());
    let runs = [
        values("a", 0, &[5.0, 1.0, 1.0]),
        values("a", 1, &[5.0, 3.0, 1.0]),
        slow,
        values("slow", 1, &[5.0, 4.0]),
    ];
    let problem = only(&runs);
    let labels: Vec<_> = curves(&problem, Metric::Regret)
        .into_iter()
        .map(|curve| (curve.label, curve.points.len()))
        .collect();
    assert_eq!(labels, [("a".to_string(), 3), ("slow (to 2)".to_string(), 2)]);
    assert_eq!(
        problem.notes[1],
        "slow is shown for its first 2 of 3 trials only, over 2 seeds (0–1)."
    );
    assert_eq!(problem.notes[2], "slow ended seed 0 early: out of time.");
    let table = table(&problem, "a");
    assert_eq!(table.rows[1].method, "slow (to 2)");
    // two trials against three: no difference is stated
    assert_eq!(table.rows[1].difference, Difference::Unknown);
}

#[test]
fn without_a_finished_seed_all_methods_get_the_common_length() {
    let runs = [
        values("a", 0, &[5.0, 1.0, 1.0]),
        values("a", 1, &[5.0, 3.0]),
        values("b", 0, &[5.0, 2.0]),
        values("b", 1, &[5.0, 2.0, 1.0]),
    ];
    let problem = only(&runs);
    assert_eq!(problem.trials, 2);
    assert!(problem.methods.iter().all(|method| method.trials == 2 && method.runs.len() == 2));
    assert!(
        problem.notes.iter().any(|note| note.contains("the 2 trials that they have in common"))
    );

    let apart = [values("a", 0, &[5.0, 1.0]), values("b", 1, &[5.0, 2.0])];
    let problem = only(&apart);
    assert!(problem.notes[0].contains("cannot be compared"), "{:?}", problem.notes);
    assert_eq!(table(&problem, "a").rows[1].difference, Difference::Unknown);
}

#[test]
fn runs_without_trials_make_an_empty_report() {
    let runs = [values("a", 0, &[])];
    let problem = only(&runs);
    assert!(of_problem(&problem, &[Horizontal::Evaluations, Horizontal::Cost]).is_empty());
    assert_eq!(table(&problem, "a").rows[0].median, None);
    let failed = [run("a", 0, &[None, None])];
    assert!(of_problem(&only(&failed), &[Horizontal::Evaluations]).is_empty());
}

#[test]
fn runs_that_do_not_belong_together_are_refused() {
    let refused = |change: fn(&mut RunResult)| {
        let mut runs = [values("a", 0, &[5.0]), values("a", 1, &[5.0])];
        change(&mut runs[1]);
        problems(&runs).err().unwrap().to_string()
    };
    assert_eq!(
        refused(|run| run.start.seed = 0),
        "a-0 and a-1 are the same run; name only one of their folders"
    );
    let settings = refused(|run| run.start.method_settings = serde_json::json!({"samples": 3}));
    assert_eq!(
        settings,
        "a-0 and a-1 have the same label for different settings; report them apart"
    );
    let problem = refused(|run| run.start.problem_settings = serde_json::json!({"levels": 3}));
    assert_eq!(
        problem,
        "a-0 and a-1 have the same label for different problems; report them apart"
    );
}

#[test]
fn the_baseline_is_the_wish_or_tree_or_the_first() {
    assert_eq!(baseline(None, &["tree", "a"]).unwrap(), "tree");
    assert_eq!(baseline(None, &["a", "b"]).unwrap(), "a");
    assert_eq!(baseline(Some("b"), &["a", "b"]).unwrap(), "b");
    let refused = baseline(Some("c"), &["a", "b"]).unwrap_err().to_string();
    assert_eq!(refused, "no run has the method `c`; the results have a, b");
}

#[test]
fn problems_are_ordered_with_numbers_as_numbers() {
    let mut runs = Vec::new();
    for label in ["grid-10", "grid-9", "grid-2", "alpha"] {
        let mut run = values("a", 0, &[1.0]);
        run.start.problem = label.to_string();
        runs.push(run);
    }
    let labels: Vec<_> = problems(&runs).unwrap().iter().map(|problem| problem.label).collect();
    assert_eq!(labels, ["alpha", "grid-2", "grid-9", "grid-10"]);
    assert_eq!(
        [seed_list(&[4]), seed_list(&[1, 2, 3]), seed_list(&[1, 3])],
        ["seed 4", "3 seeds (1–3)", "2 seeds (1, 3)"]
    );
}

#[test]
fn cost_over_dimension_has_a_point_for_each_problem_of_a_series() {
    let mut runs = Vec::new();
    for side in [2u64, 3, 4] {
        for (method, factor) in [("tree", 10), ("overlap", 100)] {
            for seed in 0..2 {
                let mut run =
                    with_costs(values(method, seed, &[3.0, 2.0]), &[0, factor * side + 2 * seed]);
                run.start.problem = format!("grid-{side}");
                run.start.dimension = (side * side) as usize;
                runs.push(run);
            }
        }
    }
    let mut other = values("tree", 0, &[3.0, 2.0]);
    other.start.problem = "star25".to_string();
    runs.push(other);
    let found = problems(&runs).unwrap();
    let grids: Vec<_> = found.iter().filter(|problem| problem.label.starts_with("grid")).collect();
    let lines = cost_over_dimension(&grids);
    let ends: Vec<_> = lines.iter().map(|line| (line.label.as_str(), line.last())).collect();
    assert_eq!(ends, [("tree", 41.0), ("overlap", 401.0)]);
    let dimensions: Vec<_> = lines[0].points.iter().map(|point| (point.x, point.mean)).collect();
    assert_eq!(dimensions, [(4.0, 21.0), (9.0, 31.0), (16.0, 41.0)]);
    let figures = of_series(&found);
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0].name, "grid-cost-over-dimension");
}

#[test]
fn powers_of_ten_are_used_for_more_than_two_decades() {
    let curve = |means: &[f64]| {
        let points = means.iter().map(|&mean| CurvePoint { x: mean, mean, low: mean, high: mean });
        [Curve { label: "a".to_string(), style: 0, points: points.collect() }]
    };
    assert_eq!(sensible_scale(&curve(&[101.0, 1.0])), Scale::Log);
    assert_eq!(sensible_scale(&curve(&[101.0, 1.0, 0.0])), Scale::Log);
    assert_eq!(sensible_scale(&curve(&[99.0, 1.0])), Scale::Linear);
    assert_eq!(sensible_scale(&curve(&[101.0, 1.0, -1.0])), Scale::Linear);
    assert_eq!(sensible_scale(&curve(&[0.0, 0.0])), Scale::Linear);
}

#[test]
fn numbers_are_short_and_grouped() {
    let shown = [0.0, 1.0, -2.5, 1234.5678, 0.000123456, 0.25, 12_345_678.0, 0.000_001, f64::NAN]
        .map(short);
    assert_eq!(shown, ["0", "1", "−2.5", "1,235", "0.0001235", "0.25", "1.23·10⁷", "1·10⁻⁶", "–"]);
    assert_eq!(
        [grouped(1_234_567.0, 0), grouped(-0.001, 1), grouped(999.5, 1)],
        ["1,234,567", "0.0", "999.5"]
    );
}

/// A tree with generations of 1, 15, 43 and 73 vertices, children dealt out in turn.
fn ancestry() -> Vec<(usize, usize)> {
    (1..132)
        .map(|child| match child {
            1..16 => (0, child),
            16..59 => (1 + (child * 7) % 15, child),
            _ => (16 + (child * 11) % 43, child),
        })
        .collect()
}

fn lattice(side: usize) -> Vec<(usize, usize)> {
    let across = (0..side * side).filter(|k| k % side + 1 < side).map(|k| (k, k + 1));
    across.chain((0..side * (side - 1)).map(|k| (k, k + side))).collect()
}

#[test]
fn vertices_do_not_overlap() {
    let cases = [
        ("nothing", 132, vec![]),
        ("star", 132, (1..132).map(|leaf| (0, leaf)).collect()),
        ("path", 132, (1..132).map(|k| (k - 1, k)).collect()),
        ("ancestry", 132, ancestry()),
        ("lattice", 225, lattice(15)),
        (
            "triangles",
            132,
            (0..44)
                .flat_map(|k| [(3 * k, 3 * k + 1), (3 * k, 3 * k + 2), (3 * k + 1, 3 * k + 2)])
                .collect(),
        ),
        (
            "caterpillar",
            80,
            (1..80).map(|k| if k < 40 { (k - 1, k) } else { (k - 40, k) }).collect(),
        ),
        ("clique", 20, (0..20).flat_map(|i| (0..i).map(move |j| (j, i))).collect()),
    ];
    for (name, vertices, edges) in cases {
        let places = layout(vertices, &edges);
        assert_eq!(places.len(), vertices);
        assert!(
            places.iter().flatten().all(|x| (-1e-9..=1.0 + 1e-9).contains(x)),
            "{name}: {places:?}"
        );
        // of the 384 units of a panel two vertices keep 4 at least; the smallest vertex is 2.4 wide
        assert!(closest(&places) * 384.0 > 4.0, "{name}: {}", closest(&places) * 384.0);
        assert_eq!(places, layout(vertices, &edges), "{name}");
    }
    assert!(layout(0, &[]).is_empty());
    // vertices that do not exist are no reason to fall over
    assert_eq!(layout(2, &[(0, 7)]).len(), 2);
}

#[test]
fn a_star_has_its_centre_in_the_middle_and_a_lattice_looks_like_one() {
    let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    let star = layout(25, &(0..25).filter(|&k| k != 3).map(|leaf| (3, leaf)).collect::<Vec<_>>());
    let lengths: Vec<f64> =
        (0..25).filter(|&k| k != 3).map(|leaf| distance(star[leaf], star[3])).collect();
    assert!(
        lengths.iter().all(|length| (length - lengths[0]).abs() < 1e-9 && *length > 0.45),
        "{lengths:?}"
    );

    let edges = lattice(8);
    let places = layout(64, &edges);
    let longest = edges.iter().map(|&(i, j)| distance(places[i], places[j])).fold(0.0, f64::max);
    for i in 0..64 {
        for j in 0..i {
            let joined = edges.contains(&(j, i));
            assert!(joined || distance(places[i], places[j]) > 0.9 * longest, "{i} {j}");
        }
    }
}

#[test]
fn the_median_run_by_f1_is_drawn() {
    use boscage_bench::results::LearnedGraph;
    let mut runs = Vec::new();
    for (seed, f1) in [(0, 0.9), (1, 0.1), (2, 0.5)] {
        let mut run = values("tree", seed, &[3.0, 2.0]);
        let edge = Edge::new(0, 1).unwrap();
        run.start.true_edges = Some(vec![edge]);
        run.trials[1].score = Some(EdgeScore { precision: f1, recall: f1, f1 });
        run.trials[1].learned =
            Some(LearnedGraph { edges: vec![(edge, 0.5)], log_likelihood: 0.0 });
        runs.push(run);
    }
    let problem = only(&runs);
    let figures = of_problem(&problem, &[]);
    let names: Vec<_> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["bowl-f1", "bowl-tree-graph"]);
    assert!(
        figures[1].caption.contains("seed 2, the median of 3 by F1 (0.50)"),
        "{}",
        figures[1].caption
    );
    assert_eq!(figures[1].svg.matches("class=\"true-edge\"").count(), 1);
    assert_eq!(figures[1].svg.matches("class=\"right s0\"").count(), 1);
    assert_eq!(figures[1].svg.matches("class=\"vertex\"").count(), 4);
}

#[test]
fn regrets_of_all_problems_together_are_ratios_to_the_baseline() {
    let on = |problem: &str, mut run: RunResult| {
        run.start.problem = problem.to_string();
        run
    };
    let mut runs = vec![
        // Twice the baseline's regret in both seeds …
        on("one", values("tree", 0, &[8.0, 4.0, 2.0])),
        on("one", values("tree", 1, &[8.0, 4.0, 1.0])),
        on("one", values("other", 0, &[8.0, 4.0, 5.0])),
        on("one", values("other", 1, &[8.0, 4.0, 2.0])),
        // … and eight times and twice on a problem of another scale.
        on("two", values("tree", 0, &[800.0, 400.0, 100.0])),
        on("two", values("tree", 1, &[800.0, 400.0, 100.0])),
        on("two", values("other", 0, &[800.0, 800.0, 800.0])),
        on("two", values("other", 1, &[800.0, 200.0, 200.0])),
    ];
    let together = |runs: &[RunResult]| pooled(&problems(runs).unwrap(), "tree");
    let found = together(&runs).unwrap();
    assert_eq!((found.problems, found.times.as_slice()), (2, [3].as_slice()));
    let [(label, ratios)] = found.rows.as_slice() else { panic!("{:?}", found.rows) };
    assert_eq!(label, "other");
    let [Some(ratio)] = ratios.as_slice() else { panic!("{ratios:?}") };
    // ln 2 on average in one, ln 4 in the other.
    let centre = 1.5 * 2.0_f64.ln();
    assert!((ratio.ratio.ln() - centre).abs() < 1e-4, "{ratio:?}");
    // The seeds of the second are ln 8 and ln 2: a variance of (ln 4)²/2, half of that for the mean of two, and one degree of
    // freedom.
    let half = 12.7062 * (4.0_f64.ln() / 2.0) / 2.0;
    let interval = ratio.interval.unwrap();
    assert!((interval.low.ln() - (centre - half)).abs() < 1e-3, "{interval:?}");
    assert!((interval.high.ln() - (centre + half)).abs() < 1e-3, "{interval:?}");
    assert_eq!(found.cells()[1][0], "other");
    assert!(found.cells()[1][1].starts_with("2.828 [0.034"), "{:?}", found.cells());

    // A regret of 0 has a ratio, and noise says what is small: (0 + 0.1)/(0.3 + 0.1).
    let mut none = runs.clone();
    for run in &mut none {
        run.start.noise_std = 1.0;
        for trial in &mut run.trials {
            trial.regret = Some(if run.start.method == "tree" { 0.3 } else { 0.0 });
        }
    }
    let found = together(&none).unwrap();
    let ratio = found.rows[0].1[0].clone().unwrap();
    assert!((ratio.ratio - 0.25).abs() < 1e-5, "{ratio:?}");

    // A run that has not come so far has no part in it, and neither has its method.
    let mut unfinished = runs.clone();
    unfinished[2].trials.truncate(2);
    unfinished[3].trials.truncate(2);
    assert_eq!(together(&unfinished), None);

    // Nothing is said of a method that was not run on all, of one problem, or without optimum.
    assert_eq!(together(&runs[..6]), None);
    assert_eq!(together(&runs[..4]), None);
    let mut unknown = runs.clone();
    for run in &mut unknown {
        run.start.optimum = None;
    }
    assert_eq!(together(&unknown), None);
    // A problem without the baseline is left out, and it is said so.
    runs.push(on("three", values("other", 0, &[8.0, 4.0, 2.0])));
    let found = together(&runs).unwrap();
    assert_eq!((found.problems, found.left_out), (2, 1));
    assert!(found.caption().contains("1 more"), "{}", found.caption());
}
