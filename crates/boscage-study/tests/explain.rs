//! Explanations against the obvious: full grids, refitting, and functions whose effects are known.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use boscage::additive_gp::{AdditivePosterior, Dataset};
use boscage::additive_gp_ucb::AdditiveGpUcbSettings;
use boscage::all_pairs::AllPairs;
use boscage::graph::Component;
use boscage::guard::{Rival, Verdict};
use boscage::model_comparison::ModelComparison;
use boscage::{Method, Model, Stream, Value};
use boscage_study::explain::{Explanation, Share};
use boscage_study::{Goal, Kind, State, StudyParameter, StudySpace, StudyView, Trial, Values};

fn real(name: &str, low: f64, high: f64) -> StudyParameter {
    StudyParameter::new(name, Kind::Real { low, high, log: false, step: None })
}

fn complete(number: u64, values: Values, value: f64) -> Trial {
    Trial {
        number,
        state: State::Complete,
        value: Some(value),
        values: Some(values),
        failure: None,
        infeasible: false,
        began: None,
        ended: None,
        seconds: None,
        attributes: serde_json::Map::new(),
    }
}

/// A study of some trials, as a method would make it.
fn study(
    parameters: Vec<StudyParameter>,
    method: &str,
    goal: Goal,
    trials: u64,
    objective: impl Fn(u64, &[Option<Value>]) -> f64,
) -> StudyView {
    let space = StudySpace::new(parameters, Vec::new()).unwrap();
    let method = match method {
        // Points all over the space, and only then a model.
        "spread" => Method::Tree(Box::new(AdditiveGpUcbSettings {
            initial_points: trials as usize - 1,
            ..AdditiveGpUcbSettings::default()
        })),
        method => Method::named(method).unwrap(),
    };
    let mut optimizer = method.build(space.engine().clone()).unwrap();
    let mut view = StudyView {
        name: "example".to_string(),
        storage: "nowhere".to_string(),
        goal,
        space,
        method,
        seed: 7,
        trials: Vec::new(),
        model: None,
    };
    for number in 0..trials {
        let point = optimizer.ask(&[], &Stream::new(view.seed, number)).unwrap();
        let values = view.space.decode(&point).unwrap();
        let value = objective(number, &values);
        optimizer.tell(view.space.encode(&values).unwrap(), goal.sign() * value).unwrap();
        view.trials.push(complete(number, values, value));
    }
    view.model = optimizer.model().cloned();
    view
}

fn number(value: &Option<Value>) -> f64 {
    value.as_ref().and_then(Value::as_f64).unwrap()
}

fn numbers(values: &[Option<Value>]) -> Vec<f64> {
    values.iter().map(number).collect()
}

fn explained(view: &StudyView) -> Explanation {
    Explanation::new(view).unwrap().unwrap()
}

fn model(view: &StudyView) -> &Model {
    view.model.as_ref().unwrap()
}

/// The posterior, made here.
fn posterior(view: &StudyView, without: Option<usize>) -> (AdditivePosterior, Dataset) {
    let mut data = Dataset::empty(view.space.dimension());
    for (k, trial) in view.trials.iter().enumerate() {
        if Some(k) != without {
            let point = view.space.encode(trial.values.as_ref().unwrap()).unwrap();
            data.push(&point, model(view).outputs.apply(view.goal.sign() * trial.value.unwrap()))
                .unwrap();
        }
    }
    (model(view).prior.condition(&data).unwrap(), data)
}

fn four() -> Vec<StudyParameter> {
    vec![real("a", -1.0, 1.0), real("b", 0.0, 10.0), real("c", -5.0, 0.0), real("d", 0.0, 1.0)]
}

/// a and b act together, c alone, d not at all.
fn bumpy(x: &[f64]) -> f64 {
    10.0 + (x[0] * 2.0).sin() * (x[1] - 4.0) + 0.3 * (x[2] + 2.0).powi(2)
}

#[test]
fn average_main_effects_and_interactions_are_the_whole_mean() {
    for (goal, method) in
        [(Goal::Minimize, "tree"), (Goal::Maximize, "tree"), (Goal::Minimize, "boscage")]
    {
        let view = study(four(), method, goal, 45, |_, values| bumpy(&numbers(values)));
        let explanation = explained(&view);
        let effects: Vec<_> =
            (0..4).map(|d| explanation.main_effect(d).unwrap().unwrap()).collect();
        let surface = |i, j| explanation.pair_surface(i, j).unwrap().unwrap();
        let pairs: Vec<_> = explanation
            .pairs
            .iter()
            .map(|pair| (pair.first, pair.second, surface(pair.first, pair.second)))
            .collect();
        assert!(!pairs.is_empty());
        for k in 0..40_usize {
            // Main effects are shown at 41 places and surfaces at 21, so that every second place is one of both.
            let place: Vec<usize> = (0..4).map(|d| (k * (3 + 2 * d) + d) % 21).collect();
            let values: Values =
                (0..4).map(|d| Some(effects[d].values[2 * place[d]].clone())).collect();
            let main = |d: usize| effects[d].mean[2 * place[d]];
            let mut sum = explanation.average() + (0..4).map(main).sum::<f64>();
            for (i, j, surface) in &pairs {
                assert_eq!(surface.first[place[*i]], effects[*i].values[2 * place[*i]]);
                sum += surface.mean[place[*i] * 21 + place[*j]] - main(*i) - main(*j);
            }
            let (mean, std) = explanation.predict(&values).unwrap();
            assert!((sum - mean).abs() < 1e-9 * (1.0 + mean.abs()), "{sum} {mean}");
            let point = view.space.encode(&values).unwrap();
            let direct = posterior(&view, None).0.joint(&point).unwrap();
            let units = model(&view).outputs;
            assert!((mean - goal.sign() * units.invert(direct.mean)).abs() < 1e-9);
            assert!((std - units.scale * direct.variance.sqrt()).abs() < 1e-9);
        }
    }
}

/// Variances of main effects, pairs and the rest of a function of three variables on a full grid.
fn anova(table: &[f64], size: usize) -> ([f64; 3], [f64; 3], f64) {
    let at = |r: usize, s: usize, t: usize| table[(r * size + s) * size + t];
    let cells = (size * size * size) as f64;
    let constant = table.iter().sum::<f64>() / cells;
    let mut main = vec![vec![0.0; size]; 3];
    let mut pair = vec![vec![0.0; size * size]; 3];
    for r in 0..size {
        for s in 0..size {
            for t in 0..size {
                let value = at(r, s, t) - constant;
                for (d, k) in [r, s, t].into_iter().enumerate() {
                    main[d][k] += value / (size * size) as f64;
                }
                for (p, k) in [r * size + s, r * size + t, s * size + t].into_iter().enumerate() {
                    pair[p][k] += value / size as f64;
                }
            }
        }
    }
    let ends = [(0, 1), (0, 2), (1, 2)];
    for (p, &(i, j)) in ends.iter().enumerate() {
        for r in 0..size {
            for s in 0..size {
                pair[p][r * size + s] -= main[i][r] + main[j][s];
            }
        }
    }
    let variance =
        |values: &Vec<f64>| values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
    let total = table.iter().map(|v| (v - constant).powi(2)).sum::<f64>() / cells;
    let mains = [0, 1, 2].map(|d| variance(&main[d]));
    let pairs = [0, 1, 2].map(|p| variance(&pair[p]));
    let rest = total - mains.iter().sum::<f64>() - pairs.iter().sum::<f64>();
    (mains.map(|v| v / total), pairs.map(|v| v / total), rest / total)
}

#[test]
fn shares_are_those_of_a_full_grid() {
    const SIZE: usize = 32;
    for method in ["boscage", "tree", "overlap", "gp-ucb", "no-overlap"] {
        let parameters = vec![real("a", -1.0, 1.0), real("b", 0.0, 10.0), real("c", -5.0, 0.0)];
        let view = study(parameters, method, Goal::Minimize, 40, |_, values| {
            let x = numbers(values);
            bumpy(&x) + 0.4 * x[0] * x[1] * x[2]
        });
        let explanation = explained(&view);
        let at = |k: usize| (k as f64 + 0.5) / SIZE as f64;
        let mut table = Vec::new();
        for r in 0..SIZE {
            for s in 0..SIZE {
                for t in 0..SIZE {
                    let values = [2.0 * at(r) - 1.0, 10.0 * at(s), 5.0 * at(t) - 5.0];
                    let values: Values = values.iter().map(|&v| Some(Value::Real(v))).collect();
                    table.push(explanation.predict(&values).unwrap().0);
                }
            }
        }
        let (mains, pairs, rest) = anova(&table, SIZE);
        for (d, want) in mains.iter().enumerate() {
            let got = explanation.parameters[d].main.value;
            assert!(
                (got - want).abs() < 0.1 * rest.abs() + 1e-9,
                "{method}: {d} has {got}, not {want}"
            );
        }
        for ((i, j), want) in [(0, 1), (0, 2), (1, 2)].into_iter().zip(pairs) {
            let found = explanation.pairs.iter().find(|pair| (pair.first, pair.second) == (i, j));
            let got = found.map_or(0.0, |pair| pair.share.value);
            assert!(
                (got - want).abs() < 0.1 * rest.abs() + 1e-9,
                "{method}: {i}–{j} has {got}, not {want}"
            );
        }
        // What is left is looked at from random points.
        assert!(
            (explanation.rest - rest).abs() < 0.15 * rest.abs() + 1e-9,
            "{method}: {} {rest}",
            explanation.rest
        );
        let sum: f64 =
            explanation.parameters.iter().map(|parameter| parameter.main.value).sum::<f64>()
                + explanation.pairs.iter().map(|pair| pair.share.value).sum::<f64>()
                + explanation.rest;
        assert!((sum - 1.0).abs() < 1e-12, "{method}: {sum}");
        if model(&view).prior.components.iter().all(|component| component.len() < 3) {
            assert_eq!(explanation.rest, 0.0);
        }
    }
}

fn holds(share: Share, truth: f64) -> bool {
    (share.low - 0.02..=share.high + 0.02).contains(&truth)
}

#[test]
fn known_shares_are_found() {
    // With a, b and c from −½ to ½ the variances are 1/12 and 36/144: shares of ¼ and ¾.
    let half = |name| real(name, -0.5, 0.5);
    let parameters = vec![half("a"), half("b"), half("c"), half("idle"), half("lazy")];
    let view = study(parameters, "spread", Goal::Maximize, 90, |_, values| {
        let x = numbers(values);
        x[0] + 6.0 * x[1] * x[2]
    });
    let explanation = explained(&view);
    let strongest = explanation.pairs[0];
    assert_eq!((strongest.first, strongest.second), (1, 2));
    assert!((strongest.share.value - 0.75).abs() < 0.03, "{strongest:?}");
    assert!(holds(strongest.share, 0.75), "{strongest:?}");
    let alone = explanation.parameters[0];
    assert!((alone.main.value - 0.25).abs() < 0.03 && holds(alone.main, 0.25), "{alone:?}");
    for idle in [3, 4] {
        assert!(explanation.parameters[idle].total < 0.01, "{:?}", explanation.parameters[idle]);
    }
    assert_eq!(explanation.strongest()[2], 0);
    let (enough, share) = explanation.enough(0.95).unwrap();
    assert_eq!(enough.len(), 3);
    assert!(share >= 0.95);
    assert_eq!(
        explanation.sentence(),
        "3 of 5 parameters explain 95 % of the variance; b and c must be tuned together."
    );
    assert!(explanation.trust.predicted.unwrap() > 0.9, "{:?}", explanation.trust);
    // A line of slope 1, centred.
    let effect = explanation.main_effect(0).unwrap().unwrap();
    for (value, mean) in effect.values.iter().zip(&effect.mean) {
        assert!((mean - value.as_f64().unwrap()).abs() < 0.06, "{value} {mean}");
    }
}

#[test]
fn noise_claims_nothing() {
    let view =
        study(four(), "tree", Goal::Minimize, 40, |trial, _| ((trial * 7919 + 13) % 101) as f64);
    let explanation = explained(&view);
    assert!(explanation.trust.predicted.unwrap() < 0.25);
    assert_eq!(explanation.recommended, explanation.luckiest);
    assert!(explanation.joint_pairs().is_empty());
    let sentence = explanation.sentence();
    assert!(sentence.ends_with("too little to say what matters."), "{sentence}");
}

#[test]
fn the_recommended_point_has_the_best_mean_and_the_luckiest_the_best_outcome() {
    // One trial is far better than the model can believe.
    let view = study(four(), "tree", Goal::Minimize, 40, |trial, values| {
        let noise = ((trial * 7919 + 13) % 101) as f64 / 50.0 - 1.0;
        bumpy(&numbers(values)) + noise - if trial == 30 { 5.0 } else { 0.0 }
    });
    let explanation = explained(&view);
    assert!(explanation.is_believable());
    let (posterior, data) = posterior(&view, None);
    let units = model(&view).outputs;
    let means: Vec<f64> =
        (0..40).map(|a| -units.invert(posterior.joint(&data.point(a)).unwrap().mean)).collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let found = explanation.recommended.clone();
    assert!((found.mean - least).abs() < 1e-9, "{} {least}", found.mean);
    assert!((means[found.trial as usize] - least).abs() < 1e-9);
    assert_eq!(Some(&found.values), view.trials[found.trial as usize].values.as_ref());
    assert_eq!(explanation.luckiest.trial, 30);
    assert_eq!(explanation.luckiest.outcome, view.best().unwrap().value.unwrap());
    assert!((explanation.luckiest.mean - means[30]).abs() < 1e-9);
    assert!(explanation.luckiest.mean > explanation.luckiest.outcome);
}

#[test]
fn left_out_outcomes_are_predicted_as_by_refitting() {
    let view = study(four(), "tree", Goal::Maximize, 30, |trial, values| {
        bumpy(&numbers(values)) + ((trial * 7919 + 13) % 101) as f64 / 100.0
    });
    let (_, data) = posterior(&view, None);
    let noise = model(&view).prior.noise_std.powi(2);
    let (mut squares, mut plain, mut within) = (0.0, 0.0, 0);
    for a in 0..30 {
        let (without, others) = posterior(&view, Some(a));
        let normal = without.joint(&data.point(a)).unwrap();
        let residual = data.outcomes()[a] - normal.mean;
        squares += residual * residual;
        within += usize::from(residual * residual <= 4.0 * (normal.variance + noise));
        let mean = others.outcomes().iter().sum::<f64>() / 29.0;
        plain += (data.outcomes()[a] - mean).powi(2);
    }
    let trust = explained(&view).trust;
    assert!((trust.predicted.unwrap() - (1.0 - squares / plain)).abs() < 1e-7, "{trust:?}");
    assert!((trust.error - model(&view).outputs.scale * (squares / 30.0).sqrt()).abs() < 1e-6);
    assert_eq!(trust.within_two, within as f64 / 30.0);
    assert_eq!(trust.observations, 30);
}

/// Solves Δv = b by elimination.
fn solved(mut matrix: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        for row in k + 1..n {
            let factor = matrix[row][k] / matrix[k][k];
            let pivot = matrix[k].clone();
            matrix[row].iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            b[row] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| matrix[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / matrix[k][k];
    }
    b
}

#[test]
fn bands_are_those_of_averages_over_a_grid() {
    const SIZE: usize = 32;
    for method in ["tree", "gp-ucb", "boscage"] {
        let parameters = vec![real("a", 0.0, 1.0), real("b", 0.0, 1.0)];
        let view = study(parameters, method, Goal::Maximize, 20, |_, values| {
            let x = numbers(values);
            (5.0 * x[0]).sin() + x[0] * x[1]
        });
        let explanation = explained(&view);
        let (_, data) = posterior(&view, None);
        let prior = &model(&view).prior;
        let kernel = |x: &[f64], y: &[f64]| {
            let alone =
                |i: usize| prior.kernel.value(&Component::single(i), x, y) / prior.kernel.scales[i];
            let pairs = prior
                .all_pairs
                .as_ref()
                .map_or(0.0, |pairs| pairs.weights[0] * pairs.weights[1] * alone(0) * alone(1));
            // What both do alike, by Legendre's polynomials over 0 to 1.
            let alike = |x: &[f64], k: usize| -> f64 {
                let value = |x: &f64| match k {
                    1 => 2.0 * x - 1.0,
                    2 => 6.0 * x.powi(2) - 6.0 * x + 1.0,
                    3 => 20.0 * x.powi(3) - 30.0 * x.powi(2) + 12.0 * x - 1.0,
                    _ => 70.0 * x.powi(4) - 140.0 * x.powi(3) + 90.0 * x.powi(2) - 20.0 * x + 1.0,
                };
                x.iter().map(value).sum()
            };
            let common = (1..=4).map(|k| (2 * k + 1) as f64 / 2.0 * alike(x, k) * alike(y, k));
            prior.constant
                + prior.components.iter().map(|g| prior.kernel.value(g, x, y)).sum::<f64>()
                + pairs
                + prior.common_std.powi(2) * common.sum::<f64>()
        };
        let points: Vec<Vec<f64>> = (0..20).map(|a| data.point(a).0).collect();
        let gram: Vec<Vec<f64>> = (0..20)
            .map(|a| {
                let noise = |b: usize| if a == b { prior.noise_std.powi(2) } else { 0.0 };
                (0..20).map(|b| kernel(&points[a], &points[b]) + noise(b)).collect()
            })
            .collect();
        // A weighted sum of values of f: its variance given the outcomes.
        let variance = |terms: &[(Vec<f64>, f64)]| {
            let covariances: Vec<f64> =
                points.iter().map(|p| terms.iter().map(|(x, w)| w * kernel(x, p)).sum()).collect();
            let prior: f64 = terms
                .iter()
                .map(|(x, w)| terms.iter().map(|(y, v)| w * v * kernel(x, y)).sum::<f64>())
                .sum();
            let told: f64 = solved(gram.clone(), covariances.clone())
                .iter()
                .zip(&covariances)
                .map(|(s, c)| s * c)
                .sum();
            prior - told
        };
        let at = |k: usize| (k as f64 + 0.5) / SIZE as f64;
        let everywhere = (0..SIZE * SIZE)
            .map(|k| (vec![at(k / SIZE), at(k % SIZE)], -1.0 / (SIZE * SIZE) as f64));
        let everywhere: Vec<_> = everywhere.collect();
        let scale = model(&view).outputs.scale;
        let effect = explanation.main_effect(0).unwrap().unwrap();
        for place in [0, 13, 40] {
            let along =
                (0..SIZE).map(|k| (vec![effect.coordinates[place], at(k)], 1.0 / SIZE as f64));
            let terms: Vec<_> = everywhere.iter().cloned().chain(along).collect();
            let want = scale * variance(&terms).max(0.0).sqrt();
            assert!(
                (effect.std[place] - want).abs() < 1e-6 * scale,
                "{method}: {} {want}",
                effect.std[place]
            );
        }
        let surface = explanation.pair_surface(0, 1).unwrap().unwrap();
        for (r, s) in [(0, 0), (20, 3), (7, 12)] {
            let mut terms = everywhere.clone();
            terms.push((vec![r as f64 / 20.0, s as f64 / 20.0], 1.0));
            let want = scale * variance(&terms).max(0.0).sqrt();
            let got = surface.std[r * 21 + s];
            assert!((got - want).abs() < 1e-6 * scale, "{method}: {got} {want}");
        }
    }
}

/// As above, for choices, of which there are few enough to average over all of them.
#[test]
fn bands_of_choices_that_parameters_have_in_common_are_those_of_averages() {
    let words = || ["x", "y", "z"].map(Value::from).to_vec();
    let choice = |name| StudyParameter::new(name, Kind::Categorical { choices: words() });
    let view = study(
        vec![choice("a"), choice("b"), choice("c")],
        "boscage",
        Goal::Maximize,
        18,
        |a, values| {
            let is_y = |value: &Option<Value>| *value == Some(Value::from("y"));
            let worth = |value: &Option<Value>| if is_y(value) { 1.0 } else { 0.0 };
            values.iter().map(worth).sum::<f64>() + 0.1 * (a as f64).sin()
        },
    );
    let (_, data) = posterior(&view, None);
    let prior = &model(&view).prior;
    assert_eq!(prior.kernel.same_choices.len(), 1);
    assert!(prior.common_std > 1e-3, "{}", prior.common_std);
    let kernel = |x: &[f64], y: &[f64]| {
        let e = |i: usize| prior.kernel.value(&Component::single(i), x, y) / prior.kernel.scales[i];
        let w = &prior.all_pairs.as_ref().unwrap().weights;
        let pairs: f64 =
            [(0, 1), (0, 2), (1, 2)].map(|(i, j)| w[i] * w[j] * e(i) * e(j)).iter().sum();
        let alike = |x: &f64| y.iter().map(|y| if x == y { 1.0 } else { -0.5 }).sum::<f64>();
        prior.constant
            + prior.components.iter().map(|g| prior.kernel.value(g, x, y)).sum::<f64>()
            + pairs
            + 4.0 * prior.common_std.powi(2) * x.iter().map(alike).sum::<f64>() / 3.0
    };
    let n = data.outcomes().len();
    let points: Vec<Vec<f64>> = (0..n).map(|a| data.point(a).0).collect();
    let noise = |a: usize, b: usize| if a == b { prior.noise_std.powi(2) } else { 0.0 };
    let row = |a: usize| (0..n).map(|b| kernel(&points[a], &points[b]) + noise(a, b)).collect();
    let gram: Vec<Vec<f64>> = (0..n).map(row).collect();
    // What the choice k of the first parameter is worth: all points with it, less all points.
    let all: Vec<Vec<f64>> = (0..27)
        .map(|k| [k / 9, k / 3 % 3, k % 3].iter().map(|&c| f64::from(c) / 2.0).collect())
        .collect();
    let scale = model(&view).outputs.scale;
    let effect = explained(&view).main_effect(0).unwrap().unwrap();
    assert_eq!(effect.coordinates, [0.0, 0.5, 1.0]);
    for (k, &at) in effect.coordinates.iter().enumerate() {
        let weight = |x: &Vec<f64>| if x[0] == at { 2.0 / 27.0 } else { -1.0 / 27.0 };
        let covariance = |p: &[f64]| all.iter().map(|x| weight(x) * kernel(x, p)).sum::<f64>();
        let covariances: Vec<f64> = points.iter().map(|p| covariance(p)).collect();
        let before: f64 = all.iter().map(|x| weight(x) * covariance(x)).sum();
        let solved = solved(gram.clone(), covariances.clone());
        let with = |by: &[f64]| solved.iter().zip(by).map(|(s, by)| s * by).sum::<f64>();
        let (mean, std) = (with(data.outcomes()), (before - with(&covariances)).max(0.0).sqrt());
        assert!((effect.mean[k] - scale * mean).abs() < 1e-6 * scale, "{} {mean}", effect.mean[k]);
        assert!((effect.std[k] - scale * std).abs() < 1e-6 * scale, "{} {std}", effect.std[k]);
    }
}

#[test]
fn goals_mirror_each_other() {
    let view = study(four(), "tree", Goal::Minimize, 30, |_, values| bumpy(&numbers(values)));
    let mut mirrored = view.clone();
    mirrored.goal = Goal::Maximize;
    for trial in &mut mirrored.trials {
        trial.value = trial.value.map(|value| -value);
    }
    let (one, other) = (explained(&view), explained(&mirrored));
    assert_eq!(one.parameters, other.parameters);
    assert_eq!(one.pairs, other.pairs);
    assert_eq!(one.recommended.mean, -other.recommended.mean);
    assert_eq!(one.recommended.std, other.recommended.std);
    let (one, other) =
        (one.main_effect(2).unwrap().unwrap(), other.main_effect(2).unwrap().unwrap());
    assert!(one.mean.iter().zip(&other.mean).all(|(one, other)| *one == -other));
    assert_eq!(one.std, other.std);
}

#[test]
fn all_kinds_have_their_own_values() {
    let words = |words: &[&str]| words.iter().map(|&word| Value::from(word)).collect::<Vec<_>>();
    let parameters = vec![
        StudyParameter::new("rate", Kind::Real { low: 1e-4, high: 1.0, log: true, step: None }),
        StudyParameter::new(
            "step",
            Kind::Real { low: 0.0, high: 0.4, log: false, step: Some(0.1) },
        ),
        StudyParameter::new("count", Kind::Integer { low: 1, high: 1000, step: 1, log: true }),
        StudyParameter::new("size", Kind::Ordinal { levels: words(&["small", "large"]) }),
        StudyParameter::new("fast", Kind::Boolean {}),
        StudyParameter::new("mode", Kind::Categorical { choices: words(&["x", "y", "z"]) }),
        StudyParameter::new("fixed", Kind::Integer { low: 3, high: 3, step: 1, log: false }),
    ];
    let view = study(parameters, "tree", Goal::Minimize, 40, |_, values| {
        let mode = if values[5] == Some(Value::from("y")) { 0.0 } else { 3.0 };
        mode + (number(&values[0]).log10() + 2.0).powi(2)
    });
    let explanation = explained(&view);
    let labels = |d: usize| explanation.main_effect(d).unwrap().unwrap().values;
    assert_eq!(labels(0).len(), 41);
    assert!((labels(0)[20].as_f64().unwrap() - 1e-2).abs() < 1e-6);
    assert_eq!(labels(1), [0.0, 0.1, 0.2, 0.3, 0.4].map(Value::Real));
    assert_eq!(labels(2).first(), Some(&Value::Integer(1)));
    assert_eq!(labels(2).last(), Some(&Value::Integer(1000)));
    assert_eq!(labels(3), words(&["small", "large"]));
    assert_eq!(labels(4), [Value::Boolean(false), Value::Boolean(true)]);
    assert_eq!(labels(5), words(&["x", "y", "z"]));
    let mode = explanation.main_effect(5).unwrap().unwrap();
    // Centred over three equally likely choices: 1, −2, 1.
    for (mean, want) in mode.mean.iter().zip([1.0, -2.0, 1.0]) {
        assert!((mean - want).abs() < 0.5, "{:?}", mode.mean);
    }
    assert_eq!(explanation.parameters[6].total, 0.0);
    assert_eq!(explanation.pair_surface(3, 5).unwrap().unwrap().mean.len(), 6);
    assert!(explanation.main_effect(7).unwrap().is_none());
    assert!(
        explanation.pair_surface(2, 2).unwrap().is_none()
            && explanation.pair_surface(0, 9).unwrap().is_none()
    );
}

/// A program that answers with a million where it cannot run.
#[test]
fn penalties_are_counted_and_not_explained() {
    for (goal, worse) in [(Goal::Minimize, "more"), (Goal::Maximize, "less")] {
        let penalty = -1e6 * goal.sign();
        let view = study(four(), "boscage", goal, 40, |_, values| {
            let x = numbers(values);
            if x[0] + x[1] > 1.2 { penalty } else { -goal.sign() * bumpy(&x) }
        });
        let count = view.trials.iter().filter(|trial| trial.value == Some(penalty)).count();
        assert!(count >= 3, "{count}");
        let found = explained(&view);
        assert_eq!(found.penalties, vec![penalty; count]);
        assert_eq!(found.trust.observations, 40 - count);
        assert!(found.recommended.outcome != penalty && found.luckiest.outcome != penalty);
        let sentence = found.penalties_sentence().unwrap();
        let start = format!("Besides, {count} outcomes of {penalty:?} or {worse} were taken");
        assert!(sentence.starts_with(&start), "{sentence}");
    }
    let view = study(four(), "boscage", Goal::Minimize, 20, |_, values| bumpy(&numbers(values)));
    assert_eq!(explained(&view).penalties_sentence(), None);
}

#[test]
fn without_model_or_outcomes_there_is_no_explanation() {
    let random = study(four(), "random", Goal::Minimize, 5, |_, values| bumpy(&numbers(values)));
    assert!(Explanation::new(&random).unwrap().is_none());
    let mut view = study(four(), "tree", Goal::Minimize, 15, |_, values| bumpy(&numbers(values)));
    view.trials.truncate(1);
    let one = explained(&view);
    assert_eq!(one.trust.predicted, None);
    assert_eq!(one.sentence(), "There are too few outcomes to say what matters.");
    view.trials[0].state = State::Failed;
    assert!(Explanation::new(&view).unwrap().is_none());
    // A model of another space is refused.
    let mut other = study(four(), "tree", Goal::Minimize, 15, |_, values| bumpy(&numbers(values)));
    other.model =
        study(vec![real("a", 0.0, 1.0)], "tree", Goal::Minimize, 15, |_, v| number(&v[0])).model;
    assert!(Explanation::new(&other).is_err());
}

#[test]
fn equal_outcomes_have_no_shares() {
    let view = study(four(), "tree", Goal::Minimize, 15, |_, _| 4.0);
    let explanation = explained(&view);
    assert_eq!(explanation.trust.predicted, None);
    assert!(explanation.parameters.iter().all(|parameter| parameter.total == 0.0));
    assert_eq!(explanation.recommended.mean, 4.0);
    assert_eq!(explanation.sentence(), "All outcomes are the same: nothing matters so far.");
}

#[test]
fn pairs_that_interact_are_likely_and_others_are_not() {
    let mut view =
        study(four(), "boscage", Goal::Minimize, 45, |_, values| bumpy(&numbers(values)));
    // As if there were no guard.
    let verdict = view.model.as_mut().unwrap().verdict.take();
    let explanation = explained(&view);
    assert!(explanation.probabilities);
    // All pairs have a share, and only what is likely a probability.
    assert_eq!(explanation.pairs.len(), 6);
    let strongest = &explanation.pairs[0];
    assert_eq!((strongest.first, strongest.second), (0, 1));
    assert!(strongest.frequency.unwrap() > 0.9, "{strongest:?}");
    for pair in &explanation.pairs[1..] {
        assert!(pair.frequency.is_none_or(|share| (0.05..0.5).contains(&share)), "{pair:?}");
    }
    let joint = explanation.joint_pairs();
    assert_eq!(joint.iter().map(|pair| (pair.first, pair.second)).collect::<Vec<_>>(), [(0, 1)]);
    assert!(explanation.sentence().ends_with("; a and b must be tuned together."));

    let comparison = explanation.comparison().unwrap();
    assert_eq!(comparison.forest.unwrap().0, 1);
    let sentences = explanation.comparison_sentences(&comparison);
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].starts_with("Other models would predict: single parameters "));
    assert!(sentences[0].contains(", these and 1 likely pair "), "{sentences:?}");
    // Where likely pairs leave much less unexplained, it is said what could be done.
    let clearly = ModelComparison { forest: Some((1, Some(1.0 - 1e-12))), ..comparison };
    let sentences = explanation.comparison_sentences(&clearly);
    assert!(sentences[1].contains("the method tree"), "{sentences:?}");
    // The guard has looked for such pairs, and would have let them search.
    let verdict = Verdict { rival: None, ..verdict.unwrap() };
    assert!(verdict.sampled > 0);
    view.model.as_mut().unwrap().verdict = Some(verdict);
    assert_eq!(explained(&view).comparison_sentences(&clearly).len(), 1);
}

#[test]
fn it_is_said_which_model_searches() {
    let together = |values: &[Option<Value>]| {
        let x = numbers(values);
        (0.4 * (3.0 * x[0] + x[1] + x[2] + x[3])).cos()
    };
    let mut said = Vec::new();
    for objective in [&together as &dyn Fn(&[Option<Value>]) -> f64, &|v| bumpy(&numbers(v))] {
        let view = study(four(), "boscage", Goal::Minimize, 60, |_, values| objective(values));
        let explanation = explained(&view);
        let sentences = explanation.comparison_sentences(&explanation.comparison().unwrap());
        let verdict = view.model.as_ref().unwrap().verdict.as_ref().unwrap();
        let wanted = match (&verdict.rival, verdict.logarithm) {
            (Some(Rival::Pairs(_)), None) => {
                "A model with the likely pairs makes the outcomes clearly more likely"
            }
            (Some(Rival::Pairs(_)), Some(_)) => {
                "A model with the likely pairs for the logarithm of the outcomes makes the outcomes clearly more likely"
            }
            (Some(Rival::Plain(_)), None) => {
                "One function of all parameters makes the outcomes clearly more likely"
            }
            (Some(Rival::Plain(_)), Some(_)) => {
                "One function of all parameters for the logarithm of the outcomes makes the outcomes clearly more likely"
            }
            (Some(Rival::Model(_)), Some(_)) => {
                "The model of the logarithm of the outcomes makes the outcomes clearly more likely"
            }
            (Some(Rival::Model(_)), None) => {
                "The model with stretched ranges makes the outcomes clearly more likely"
            }
            (None, _) => "",
        };
        let searches =
            sentences.iter().any(|sentence| sentence.contains("searches the whole space"));
        assert_eq!(searches, verdict.rival.is_some(), "{sentences:?}");
        assert!(!searches || sentences[1].starts_with(wanted), "{sentences:?}");
        said.push(wanted);
    }
    assert!(said[0].starts_with("One function of all parameters"), "{said:?}");
    // The same, as if other models were what searches.
    let mut view = study(four(), "boscage", Goal::Minimize, 60, |_, values| together(values));
    let model = view.model.as_ref().unwrap();
    let prior = model.prior.clone();
    let map = model.outputs.with_logarithm(&[1.0, 2.0], 0.1).logarithm;
    let mut stretched = prior.clone();
    stretched.kernel.stretches = vec![1.0; 4];
    for (rival, logarithm, text) in [
        (Rival::Pairs(prior.clone()), None, "A model with the likely pairs makes"),
        (Rival::Plain(prior.clone()), None, "One function of all parameters makes"),
        (
            Rival::Plain(prior.clone()),
            map,
            "One function of all parameters for the logarithm of the outcomes makes",
        ),
        (Rival::Model(prior), map, "The model of the logarithm of the outcomes makes"),
        (Rival::Model(stretched.clone()), None, "The model with stretched ranges makes"),
        (
            Rival::Pairs(stretched),
            map,
            "A model with the likely pairs for the logarithm of the outcomes with stretched ranges makes",
        ),
    ] {
        let verdict = view.model.as_mut().unwrap().verdict.as_mut().unwrap();
        (verdict.rival, verdict.logarithm) = (Some(rival), logarithm);
        let explanation = explained(&view);
        let sentences = explanation.comparison_sentences(&explanation.comparison().unwrap());
        assert!(sentences[1].starts_with(text), "{sentences:?}");
    }
}

#[test]
fn ranges_that_should_be_logarithmic_are_named() {
    let parameters = || {
        let log =
            StudyParameter::new("log", Kind::Real { low: 1e-3, high: 1.0, log: true, step: None });
        vec![real("rate", 0.0, 2.0), real("keep", 0.0, 1.0), real("shift", -1.0, 1.0), log]
    };
    let objective = |values: &[Option<Value>]| {
        let x = numbers(values);
        let z = |x: f64| (x + 1e-3).log10() + 2.0;
        z(x[0] / 2.0).powi(2) + z(1.0 - x[1]).powi(2) + x[2] * x[2] + (x[3].log10() + 1.5).powi(2)
    };
    let view = study(parameters(), "boscage", Goal::Minimize, 80, |_, values| objective(values));
    let rival = model(&view).verdict.as_ref().unwrap().rival.as_ref().unwrap();
    assert!(rival.is_stretched());
    let low = "What happens near the low end matters most in the ranges of rate: in the next study state how far above that end they \
               are as logarithmic (with ranges that begin at 0, log = true and a low end a little above 0).";
    let high = "What happens near the upper end matters most in the ranges of keep: in the next study state how far below that end \
                they are as logarithmic.";
    assert_eq!(explained(&view).range_sentences(), [low, high]);
    // Only those that matter and are not logarithmic, and the first five: as if others were learned.
    let names: Vec<String> = (0..9).map(|d| format!("x{d}")).collect();
    let mut parameters: Vec<StudyParameter> =
        names.iter().map(|name| real(name, 0.0, 1.0)).collect();
    let kinds = [
        ("log", Kind::Real { low: 1e-3, high: 1.0, log: true, step: None }),
        ("stepped", Kind::Real { low: 0.0, high: 1.0, log: false, step: Some(0.1) }),
        ("two", Kind::Integer { low: 0, high: 1, step: 1, log: false }),
        (
            "word",
            Kind::Categorical {
                choices: vec![Value::Choice("a".into()), Value::Choice("b".into())],
            },
        ),
    ];
    parameters.extend(kinds.map(|(name, kind)| StudyParameter::new(name, kind)));
    let mut view = study(parameters, "boscage", Goal::Minimize, 20, |_, values| number(&values[0]));
    assert!(explained(&view).range_sentences().is_empty());
    let prior = model(&view).prior.clone();
    let mut with = |weights: Option<Vec<f64>>, stretches: Vec<f64>| {
        let mut prior = prior.clone();
        prior.all_pairs = weights.map(|weights| AllPairs { weights });
        prior.kernel.scales =
            vec![0.09, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0];
        prior.kernel.stretches = stretches;
        let verdict = view.model.as_mut().unwrap().verdict.as_mut().unwrap();
        verdict.rival = Some(Rival::Model(prior));
        explained(&view).range_sentences()
    };
    let mut stretches = vec![10.0; 13];
    stretches[8] = 9.9;
    let said = with(None, stretches.clone());
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("low end") && said[0].contains(" of x7, x6, x5, x4, x3 and 2 more: "));
    // What interacts matters, too.
    let mut weights = vec![0.1; 13];
    weights[0] = 1.0;
    let said = with(Some(weights), stretches);
    assert!(said[0].contains(" of x0, x7, x6, x5, x4 and 3 more: "), "{said:?}");
    let said = with(None, vec![1.0, 0.1, 0.11, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("upper end") && said[0].contains(" of x1: "), "{said:?}");
    // What was stored of another space, or is no model, has nothing to say.
    for stretches in [vec![10.0; 12], vec![-1.0; 13]] {
        assert!(with(None, stretches).is_empty());
    }
}

#[test]
fn the_wrong_model_is_called_so() {
    // A sum: single parameters do as well as all pairs.
    let sum = |values: &[Option<Value>]| {
        let x = numbers(values);
        (3.0 * x[0]).sin() + 0.1 * (x[1] - 3.0).powi(2) + 0.2 * x[2] + x[3]
    };
    let view = study(four(), "boscage", Goal::Minimize, 40, |_, values| sum(values));
    let explanation = explained(&view);
    let sentences = explanation.comparison_sentences(&explanation.comparison().unwrap());
    assert_eq!(sentences[1..], ["As far as can be seen, parameters act independently."]);
    // Three at once, observed all over the space: no sum of functions of two can say it.
    let three = |values: &[Option<Value>]| {
        let x = numbers(values);
        x[0] * (x[1] - 5.0) * (x[2] + 2.5)
    };
    let view = study(four(), "spread", Goal::Minimize, 150, |_, values| three(values));
    let explanation = explained(&view);
    let sentences = explanation.comparison_sentences(&explanation.comparison().unwrap());
    assert!(sentences[1].contains("the method gp-ucb may do better"), "{sentences:?}");
}
