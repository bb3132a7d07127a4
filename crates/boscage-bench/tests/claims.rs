//! Verdicts on made-up results with known answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod synthetic;

use std::collections::BTreeSet;
use std::path::Path;

use boscage_bench::Goal;
use boscage_bench::claims::{
    Claim, Expectation, Outcome, Quantity, Section, Verdict, claims, judge, judge_all, markdown,
    numbers,
};
use boscage_bench::recipe::{Overrides, Recipe};
use boscage_bench::results::{RunResult, run_path};
use boscage_bench::statistics::{RESAMPLES, Statistic, bootstrap_interval};
use synthetic::{INITIAL, learn, push, run, run_with, store};

/// A claim about the problem `p` of star25.
fn claim(quantity: Quantity, expectation: Expectation) -> Claim {
    Claim {
        id: "star25-test".to_string(),
        section: Section::Paper,
        recipe: "star25",
        problem: Some("p"),
        statement: "A is as claimed".to_string(),
        quantity,
        expectation,
    }
}

const TREE: &str = "tree-paper";

fn regret_below_random() -> Claim {
    claim(Quantity::FinalRegret { a: TREE, b: "random" }, Expectation::Below(0.0))
}

/// Runs of three trials that end at these values, for seeds 0, 1, …
fn ending_at(method: &str, values: &[f64]) -> Vec<RunResult> {
    let run = |(seed, &end): (usize, &f64)| {
        run_with("p", method, seed as u64, [(9.0, 0), (9.0, 0), (end, 10)])
    };
    values.iter().enumerate().map(run).collect()
}

/// Differences with mean 1 and standard deviation about 0.1.
const NOISE: [f64; 8] = [1.1, 0.9, 1.05, 0.95, 1.0, 1.12, 0.88, 1.0];

fn versus(a: &[f64], b: &[f64]) -> Outcome {
    let runs = [ending_at(TREE, a), ending_at("random", b)].concat();
    judge(&regret_below_random(), &runs, Some("quick"))
}

#[test]
fn a_clear_difference_holds_one_way_and_fails_the_other() {
    let zero = [0.0; 8];
    let better = versus(&zero, &NOISE);
    assert_eq!(better.verdict, Verdict::Holds);
    assert_eq!(better.values.len(), 8);
    assert!((better.estimate.unwrap() + 1.0).abs() < 1e-12);
    let differences: Vec<f64> = NOISE.iter().map(|d| -d).collect();
    let interval = bootstrap_interval(&differences, Statistic::Mean, 0.95, RESAMPLES, 0);
    assert_eq!(better.interval, interval);
    assert_eq!(versus(&NOISE, &zero).verdict, Verdict::DoesNotHold);
    // No difference at all is not "better".
    assert_eq!(versus(&zero, &zero).verdict, Verdict::DoesNotHold);
    // Maximisation turns it round.
    let mut runs = [ending_at(TREE, &zero), ending_at("random", &NOISE)].concat();
    runs.iter_mut().for_each(|run| run.start.goal = Goal::Maximize);
    assert_eq!(judge(&regret_below_random(), &runs, None).verdict, Verdict::DoesNotHold);
}

#[test]
fn an_interval_across_the_bound_is_undecided_and_says_how_many_seeds_are_needed() {
    // Mean 0.05, half-width about 0.9: some 8 · (0.9 / 0.05)² ≈ 2,600 seeds.
    let values = [1.05, -0.95, 1.05, -0.95, 1.05, -0.95, 1.05, -0.95];
    let outcome = versus(&values, &[0.0; 8]);
    let Verdict::Undecided { seeds_needed: Some(needed) } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    let interval = outcome.interval.unwrap();
    let by_hand = 8.0 * ((interval.high - interval.low) / 2.0 / 0.05).powi(2);
    assert!((needed as f64 - by_hand).abs() <= 1.0, "{needed} {by_hand}");
    assert!((1500..4500).contains(&needed), "{needed}");
    // An estimate at the bound: no number of seeds.
    let outcome = versus(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0], &[0.0; 6]);
    assert_eq!(outcome.verdict, Verdict::Undecided { seeds_needed: None });
    assert_eq!(outcome.verdict.describe(), "undecided");
}

#[test]
fn four_seeds_decide_nothing_five_do() {
    let four = versus(&[0.0; 4], &NOISE[..4]);
    assert_eq!(four.verdict, Verdict::Undecided { seeds_needed: Some(5) });
    assert!(four.note.unwrap().contains("fewer than 5"));
    assert_eq!(versus(&[0.0; 5], &NOISE[..5]).verdict, Verdict::Holds);
    let one = versus(&[0.0], &NOISE[..1]);
    assert_eq!((one.verdict, one.interval), (Verdict::Undecided { seeds_needed: Some(5) }, None));
}

#[test]
fn seeds_are_paired() {
    // Seeds differ by 100 and more, the methods by 1: without pairing, nothing could be told.
    let a: Vec<f64> = (0..8).map(|seed| 100.0 * f64::from(seed * seed % 5)).collect();
    let b: Vec<f64> = a.iter().zip(NOISE).map(|(a, d)| a + d).collect();
    assert_eq!(versus(&a, &b).verdict, Verdict::Holds);
    let interval =
        |values: &[f64]| bootstrap_interval(values, Statistic::Mean, 0.95, RESAMPLES, 0).unwrap();
    assert!(interval(&a).high > interval(&b).low && interval(&b).high > interval(&a).low);

    // By seed, whatever the order, and without the seeds that only one has.
    let mut runs = [ending_at(TREE, &a), ending_at("random", &b)].concat();
    runs.reverse();
    runs.retain(|run| !(run.start.method == TREE && run.start.seed == 3));
    let outcome = judge(&regret_below_random(), &runs, None);
    assert_eq!(outcome.values.iter().map(|v| v.0).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7]);
    assert_eq!(outcome.verdict, Verdict::Holds);
}

#[test]
fn unfinished_runs_do_not_count_but_exhausted_ones_do() {
    let mut runs = [ending_at(TREE, &[0.0; 8]), ending_at("random", &NOISE)].concat();
    runs[2].trials.pop();
    let outcome = judge(&regret_below_random(), &runs, None);
    assert_eq!((outcome.values.len(), outcome.skipped), (7, 1));
    runs[2].end = Some("nothing is left".to_string());
    let outcome = judge(&regret_below_random(), &runs, None);
    assert_eq!((outcome.values.len(), outcome.skipped), (8, 0));
    assert_eq!(outcome.values[2], (2, 9.0 - NOISE[2]));
}

#[test]
fn missing_results_and_missing_methods_are_told_apart() {
    let outcome = judge(&regret_below_random(), &[], Some("quick"));
    let command = "boscage bench run star25 --profile quick".to_string();
    assert_eq!(outcome.verdict, Verdict::NoData { command: command.clone() });

    let only_random = judge(&regret_below_random(), &ending_at("random", &NOISE), Some("quick"));
    assert_eq!(only_random.verdict, Verdict::NoData { command });
    assert!(only_random.note.unwrap().contains("no runs of tree-paper"));

    let unknown =
        claim(Quantity::FinalRegret { a: TREE, b: "no-such-method" }, Expectation::Below(0.0));
    let needs = Verdict::NeedsMethod { method: "no-such-method".to_string() };
    assert_eq!(judge(&unknown, &[], None).verdict, needs);
    assert_eq!(judge(&unknown, &ending_at(TREE, &NOISE), None).verdict, needs);
    // Results with that label, from wherever, are as good as any.
    let runs = [ending_at(TREE, &[0.0; 8]), ending_at("no-such-method", &NOISE)].concat();
    assert_eq!(judge(&unknown, &runs, None).verdict, Verdict::Holds);
}

#[test]
fn close_means_a_small_share_of_the_gain() {
    // Both gain 9 over the initial design; they differ by 0.45, that is, 5 %.
    let close = claim(Quantity::RelativeRegret { a: TREE, b: "random" }, Expectation::Within(0.1));
    let outcome = |shift: f64| {
        let b: Vec<f64> = NOISE.iter().map(|noise| shift * noise).collect();
        judge(&close, &[ending_at(TREE, &[0.0; 8]), ending_at("random", &b)].concat(), None)
    };
    let held = outcome(0.45);
    assert!((held.estimate.unwrap() + 0.05).abs() < 1e-12, "{:?}", held.estimate);
    assert_eq!(held.verdict, Verdict::Holds);
    assert_eq!(outcome(-0.45).verdict, Verdict::Holds);
    assert_eq!(outcome(1.8).verdict, Verdict::DoesNotHold);
    assert_eq!(outcome(0.9).verdict, Verdict::Undecided { seeds_needed: None });
    assert_eq!(outcome(0.0).estimate, Some(0.0));
}

#[test]
fn early_and_late_are_read_at_their_trials() {
    // a falls at once, b later: after 2 chosen points a leads by 4, at the end by 1.
    let a = |seed| {
        run_with("p", TREE, seed, [(9.0, 0), (9.0, 0), (3.0, 1), (2.0, 2), (2.0, 3), (2.0, 4)])
    };
    let b = |seed| {
        run_with("p", "random", seed, [(9.0, 0), (9.0, 0), (9.0, 1), (6.0, 2), (6.0, 3), (3.0, 4)])
    };
    let runs: Vec<RunResult> = (0..5).flat_map(|seed| [a(seed), b(seed)]).collect();
    let estimate =
        |quantity| judge(&claim(quantity, Expectation::Below(0.0)), &runs, None).estimate;
    let after = |points| estimate(Quantity::RegretAfter { a: TREE, b: "random", points });
    assert_eq!([after(0), after(1), after(2), after(3)], [0.0, -6.0, -4.0, -4.0].map(Some));
    // The last point is the end, not early.
    assert_eq!(after(4), None);
    assert_eq!(estimate(Quantity::FinalRegret { a: TREE, b: "random" }), Some(-1.0));
    assert_eq!(INITIAL, 2);
}

#[test]
fn the_cost_to_reach_a_value_by_hand() {
    // Both reach 2.0 (b ends there): a with its third trial at cost 30, b with its fourth at cost 120.
    let a = [(9.0, 0), (9.0, 0), (2.0, 30), (1.0, 50)];
    let b = [(9.0, 0), (9.0, 0), (5.0, 70), (2.0, 120)];
    let ratio = Quantity::CostToReach { a: TREE, b: "overlap" };
    let outcome = |a: &[(f64, u64)], b: &[(f64, u64)], bound| {
        let runs: Vec<RunResult> = (0..5)
            .flat_map(|seed| {
                [run_with("p", TREE, seed, a.to_vec()), run_with("p", "overlap", seed, b.to_vec())]
            })
            .collect();
        judge(&claim(ratio, Expectation::Above(bound)), &runs, None)
    };
    let four = outcome(&a, &b, 3.0);
    assert!((four.estimate.unwrap() - 4.0).abs() < 1e-12, "{:?}", four.estimate);
    assert!((four.values[0].1 - 4.0).abs() < 1e-12);
    assert_eq!(four.verdict, Verdict::Holds);
    assert_eq!(outcome(&a, &b, 5.0).verdict, Verdict::DoesNotHold);
    // The other way round: b is reached first.
    assert!((outcome(&b, &a, 1.0).estimate.unwrap() - 0.25).abs() < 1e-12);
    // Nobody improves on the shared initial design: no difference.
    let stuck = [(9.0, 0), (9.0, 0), (9.0, 30), (9.0, 50)];
    assert_eq!(outcome(&stuck, &b, 1.0).estimate, Some(1.0));
    // A method without message passing has no cost to compare.
    let free = a.map(|(value, _)| (value, 0));
    let none = outcome(&free, &b, 1.0);
    assert!(matches!(none.verdict, Verdict::NoData { .. }), "{:?}", none.verdict);
    assert_eq!(none.skipped, 5);
}

#[test]
fn agreement_of_graphs_by_hand() {
    // F1 of a: 0.2 at trial 2, 0.6 at trial 3 and 4. b: 0.5 from trial 3 on.
    let of = |method: &str, seed, scores: [Option<f64>; 5]| {
        let mut run = run("p", method, seed);
        for f1 in scores {
            push(&mut run, 1.0, 0);
            if let Some(f1) = f1 {
                learn(&mut run, f1);
            }
        }
        run
    };
    let runs: Vec<RunResult> = (0..5)
        .flat_map(|seed| {
            [
                of(TREE, seed, [None, None, Some(0.2), Some(0.6), Some(0.9)]),
                of("overlap", seed, [None, None, None, Some(0.5), Some(0.5)]),
                of("random", seed, [None; 5]),
            ]
        })
        .collect();
    let estimate =
        |quantity| judge(&claim(quantity, Expectation::Above(0.0)), &runs, None).estimate;
    let close = |estimate: Option<f64>, value: f64| (estimate.unwrap() - value).abs() < 1e-12;
    assert!(close(estimate(Quantity::F1Difference { a: TREE, b: "overlap" }), 0.25));
    assert!(close(estimate(Quantity::F1Growth { a: TREE }), 0.7));
    assert!(close(estimate(Quantity::F1AboveChance { a: TREE }), 0.9 - 2.0 / 3.0));
    assert_eq!(estimate(Quantity::F1Growth { a: "random" }), None);
    assert_eq!(estimate(Quantity::F1Difference { a: TREE, b: "random" }), None);
}

#[test]
fn the_exponent_of_the_cost_by_hand() {
    let all =
        |quantity, bound| Claim { problem: None, ..claim(quantity, Expectation::Below(bound)) };
    let run = |method: &str, dimension: usize, seed: u64, cost: u64| {
        let mut run = run_with(&format!("grid-{dimension}"), method, seed, [(1.0, 0), (1.0, cost)]);
        run.start.dimension = dimension;
        run
    };
    let mut runs = Vec::new();
    for seed in 0..5 {
        for dimension in [4_usize, 9, 16] {
            let power = |p| 10 * (seed + 1) * (dimension as u64).pow(p);
            runs.push(run(TREE, dimension, seed, power(1)));
            runs.push(run("overlap", dimension, seed, power(3)));
        }
        // One that only one of them finished.
        runs.push(run(TREE, 25, seed, 1_000_000));
    }
    let only = |runs: &[RunResult], claim: Claim| judge(&claim, runs, None);
    let small: Vec<RunResult> =
        runs.iter().filter(|run| run.start.dimension < 25).cloned().collect();
    let exponent = only(&small, all(Quantity::CostExponent { a: TREE }, 1.5));
    assert!((exponent.estimate.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(exponent.verdict, Verdict::Holds);
    let difference =
        only(&runs, all(Quantity::CostExponentDifference { a: TREE, b: "overlap" }, 0.0));
    assert!((difference.estimate.unwrap() + 2.0).abs() < 1e-9, "{:?}", difference.estimate);
    assert_eq!(difference.verdict, Verdict::Holds);
    // A seed without all the problems does not count, and two dimensions make no line.
    runs.retain(|run| run.start.seed != 1 || run.start.dimension != 9);
    let difference =
        only(&runs, all(Quantity::CostExponentDifference { a: TREE, b: "overlap" }, 0.0));
    assert_eq!((difference.values.len(), difference.skipped), (4, 1));
    small.iter().for_each(|run| assert!(run.start.dimension < 25));
    let two: Vec<RunResult> = small.into_iter().filter(|run| run.start.dimension < 16).collect();
    assert_eq!(only(&two, all(Quantity::CostExponent { a: TREE }, 1.5)).estimate, None);
}

/// Gives made-up runs the settings that star25 has.
fn of_star25(mut runs: Vec<RunResult>) -> Vec<RunResult> {
    let outline = Recipe::embedded("star25").unwrap().outline(&Overrides::default()).unwrap();
    let spec = serde_json::to_value(&outline.problems[0].spec).unwrap();
    for run in &mut runs {
        let method =
            outline.methods.iter().find(|method| method.label == run.start.method).unwrap();
        run.start.problem = "star25".to_string();
        run.path = run_path(Path::new(""), "star25", &run.start.method, run.start.seed);
        run.start.problem_settings = spec.clone();
        run.start.method_settings = serde_json::to_value(&method.method).unwrap();
    }
    runs
}

#[test]
fn the_folder_that_says_most_is_used() {
    let results = tempfile::tempdir().unwrap();
    let claim = Claim { problem: Some("star25"), ..regret_below_random() };
    let runs = |n: usize| {
        of_star25([ending_at(TREE, &[0.0; 8][..n]), ending_at("random", &NOISE[..n])].concat())
    };
    let judged = |profile| {
        judge_all(std::slice::from_ref(&claim), results.path(), profile).unwrap().remove(0)
    };
    assert!(matches!(judged(None).verdict, Verdict::NoData { .. }));
    // A folder that has no results yet is no error.
    std::fs::create_dir_all(results.path().join("star25/star25/m")).unwrap();
    assert!(matches!(judged(None).verdict, Verdict::NoData { .. }));

    store(&results.path().join("star25-quick"), &runs(5));
    store(&results.path().join("star25"), &runs(8));
    store(&results.path().join("star25-other"), &runs(8));
    assert_eq!(judged(Some("quick")).values.len(), 8);
    assert_eq!(judged(Some("quick")).folder, Some(results.path().join("star25")));
    // Longer runs say more than more of them, as long as they are enough.
    let longer = |n: usize| {
        let mut runs = runs(n);
        runs.iter_mut().for_each(|run| push(run, 0.0, 20));
        runs
    };
    store(&results.path().join("star25-quick"), &longer(5));
    assert_eq!(judged(Some("quick")).values.len(), 5);
    store(&results.path().join("star25-quick"), &runs(5));
    std::fs::remove_dir_all(results.path().join("star25")).unwrap();
    assert_eq!(judged(Some("quick")).values.len(), 5);
    assert_eq!(judged(None).values.len(), 0);
    // Results that cannot be read are an error, not missing data.
    std::fs::write(
        results.path().join("star25-quick/star25/random/seed-0000.jsonl"),
        "gibberish\n",
    )
    .unwrap();
    let error = judge_all(std::slice::from_ref(&claim), results.path(), Some("quick")).unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn results_of_changed_settings_do_not_speak_for_a_claim() {
    let results = tempfile::tempdir().unwrap();
    let claim = Claim { problem: Some("star25"), ..regret_below_random() };
    let mut runs = of_star25([ending_at(TREE, &[0.0; 5]), ending_at("random", &[1.0; 5])].concat());
    runs[3].start.problem_settings["levels"] = 3.into();
    store(&results.path().join("star25"), &runs);
    let error = judge_all(std::slice::from_ref(&claim), results.path(), None).unwrap_err();
    assert!(error.to_string().contains("levels: 3 then, 51 now"), "{error}");
}

#[test]
fn an_unfinished_experiment_decides_nothing() {
    let mut runs = [ending_at(TREE, &[0.0; 5]), ending_at("random", &NOISE[..5])].concat();
    assert_eq!(judge(&regret_below_random(), &runs, None).verdict, Verdict::Holds);
    runs.iter_mut().for_each(|run| run.start.trials = 4);
    let outcome = judge(&regret_below_random(), &runs, None);
    assert!(matches!(outcome.verdict, Verdict::NoData { .. }), "{:?}", outcome.verdict);
    assert_eq!(outcome.skipped, 5);
}

#[test]
fn the_total_cost_is_that_of_the_largest_common_problem() {
    let series = |method: &str, costs: &[(&str, usize, u64)]| -> Vec<RunResult> {
        let mut runs = Vec::new();
        for seed in 0..5 {
            for &(problem, dimension, cost) in costs {
                let mut run = run_with(problem, method, seed, [(1.0, 1), (1.0, cost)]);
                run.start.dimension = dimension;
                runs.push(run);
            }
        }
        runs
    };
    let tree = series(TREE, &[("g-4", 4, 10), ("g-9", 9, 20), ("g-16", 16, 50)]);
    let other = series("overlap", &[("g-4", 4, 10), ("g-9", 9, 100)]);
    let quantity = Quantity::TotalCost { a: TREE, b: "overlap" };
    let claim = Claim { problem: None, ..claim(quantity, Expectation::Above(1.0)) };
    let estimate = judge(&claim, &[tree, other].concat(), None).estimate.unwrap();
    assert!((estimate - 5.0).abs() < 1e-9, "{estimate}");
}

#[test]
fn every_claim_is_about_something_that_a_recipe_runs() {
    let claims = claims();
    let ids: BTreeSet<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids.len(), claims.len(), "two claims have the same name");
    for claim in &claims {
        let recipe = Recipe::embedded(claim.recipe).unwrap();
        for profile in [None, Some("quick".to_string())] {
            let outline = recipe.outline(&Overrides { profile, ..Overrides::default() }).unwrap();
            assert_eq!(outline.name, claim.recipe);
            let problems: Vec<&str> = outline.problems.iter().map(|p| p.label.as_str()).collect();
            match claim.problem {
                Some(problem) => assert!(problems.contains(&problem), "{}: {problems:?}", claim.id),
                None => assert!(problems.len() >= 3, "{}: {problems:?}", claim.id),
            }
            for method in claim.quantity.methods() {
                if boscage::Method::NAMES.iter().any(|known| known.name == method) {
                    let known = outline.methods.iter().any(|known| known.label == method);
                    assert!(known, "{} needs {method}", claim.id);
                }
            }
            if let Quantity::RegretAfter { points, .. } = claim.quantity {
                assert!(outline.trials > points, "{}: {} trials", claim.id, outline.trials);
            }
        }
    }
}

#[test]
fn the_document_has_verdicts_numbers_and_commands() {
    let held = versus(&[0.0; 8], &NOISE);
    let missing = judge(&regret_below_random(), &[], Some("quick"));
    assert_eq!(numbers(&held)[0], "−1.00");
    assert_eq!(numbers(&missing), ["–", "–", "–"]);
    let text = markdown(&[held, missing]);
    for part in [
        "## Stated in the paper",
        "| **star25-test**<br>A is as claimed | holds | −1.00 | −1.0",
        "| 8 | 3 | final regret, tree-paper − random < 0 |",
        "| no data | – | – | – | – |",
        "| star25-test | −1.12 | −1.06, −1.00, −0.938 | −0.880 |",
        "boscage bench run star25 --profile quick",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(!text.contains("Beyond"));
}
