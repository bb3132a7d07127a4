//! A run is a function of settings, seed and outcomes: whatever the number of threads, and whether it was interrupted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use boscage::additive_gp::AdditivePrior;
use boscage::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use boscage::additive_gp_ucb::{Learning, Phase};
use boscage::graph::{Component, Edge};
use boscage::kernel::{Kernel, KernelFamily};
use boscage::kernel_learning::Budget;
use boscage::stream::Purpose;
use boscage::structure::Structure;
use boscage::tree_learning::TreeLearning;
use boscage::{Error, Method, Model, Optimizer, Parameter, Point, Space, Stream};

const SEED: u64 = 77;

fn presets() -> [(&'static str, AdditiveGpUcbSettings); 2] {
    [("default", AdditiveGpUcbSettings::default()), ("paper", AdditiveGpUcbSettings::paper())]
}

/// The structure of these settings, learned with fewer samples.
fn tree_with_samples(samples: usize, settings: &AdditiveGpUcbSettings) -> Structure {
    match &settings.structure {
        Structure::Tree(learning) => Structure::Tree(TreeLearning { samples, ..learning.clone() }),
        other => other.clone(),
    }
}

/// All methods by name. Who needs the truth is told one: a path through all variables.
fn named(dimension: usize) -> impl Iterator<Item = (&'static str, Method)> {
    let edge = |i: usize| Component::pair(Edge::new(i - 1, i).unwrap());
    let truth = AdditivePrior {
        components: (1..dimension).map(edge).collect(),
        kernel: Kernel::uniform(KernelFamily::Rbf, dimension, 0.3, 0.5),
        noise_std: 0.1,
        all_pairs: None,
        constant: 0.0,
        common_std: 0.0,
    };
    Method::NAMES.into_iter().map(move |known| match (known.method)() {
        Method::Oracle(_) => {
            let settings = AdditiveGpUcbSettings::oracle(Some(truth.clone()));
            (known.name, Method::Oracle(Box::new(settings)))
        }
        other => (known.name, other),
    })
}

fn optimizer(space: &Space, settings: &AdditiveGpUcbSettings) -> AdditiveGpUcb {
    AdditiveGpUcb::new(space.clone(), settings.clone()).unwrap()
}

fn cube(dimension: usize) -> Space {
    Space::unit_cube(dimension).unwrap()
}

fn outcome(point: &Point) -> f64 {
    let waves: f64 = point.0.iter().map(|x| (5.0 * x).sin()).sum();
    let pairs: f64 = point.0.chunks_exact(2).map(|x| x[0] * x[1]).sum();
    waves + 2.0 * pairs
}

fn bits(point: &Point) -> Vec<u64> {
    point.0.iter().map(|c| c.to_bits()).collect()
}

/// As it would come back from a file.
fn through_json(model: Model) -> Model {
    serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap()
}

/// What a run asked for, and what its model was after each ask.
struct Record {
    points: Vec<Point>,
    models: Vec<Option<Model>>,
}

/// Asks and tells until there are `end` trials, the first of which are already in the record.
fn go_on(optimizer: &mut dyn Optimizer, record: &mut Record, end: usize, seed: u64) {
    while record.points.len() < end {
        let stream = Stream::new(seed, record.points.len() as u64);
        let point = optimizer.ask(&[], &stream).unwrap();
        record.models.push(optimizer.model().cloned());
        optimizer.tell(point.clone(), outcome(&point)).unwrap();
        record.points.push(point);
    }
}

fn run(optimizer: &mut dyn Optimizer, trials: usize, seed: u64) -> Record {
    let mut record = Record { points: Vec::new(), models: Vec::new() };
    go_on(optimizer, &mut record, trials, seed);
    record
}

#[track_caller]
fn assert_same(what: &str, found: &Record, want: &Record) {
    assert_eq!(found.points.len(), want.points.len(), "{what}");
    for (trial, (a, b)) in found.points.iter().zip(&want.points).enumerate() {
        assert_eq!(bits(a), bits(b), "{what}: trial {trial}");
    }
    assert_eq!(found.models, want.models, "{what}");
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    for (name, method) in named(5) {
        let [a, b, other] = [1, 1, 2].map(|seed| {
            let mut optimizer = method.build(cube(5)).unwrap();
            run(optimizer.as_mut(), 24, seed)
        });
        assert_same(name, &b, &a);
        let centre = bits(&Point(vec![0.5; 5]));
        for (trial, (a, b)) in a.points.iter().zip(&other.points).enumerate() {
            // Some begin at the centre, whatever the seed.
            let is_centre = trial == 0 && bits(a) == centre;
            assert!(is_centre || bits(a) != bits(b), "{name}, trial {trial}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    // Gram matrices and gradients are split among threads from n² · components > 2²¹ on, and a forest of 30 variables
    // has at least 15 components: 400² · 15 is above that. Tables are split in blocks of 128 values; there are
    // hundreds. Samples and budget only decide how long this takes.
    let space = cube(30);
    for (name, mut settings) in presets() {
        settings.structure = tree_with_samples(40, &settings);
        settings.kernel_learning.budget = Budget::Fixed(8);
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                assert_eq!(rayon::current_num_threads(), threads);
                let mut optimizer = optimizer(&space, &settings);
                for k in 0..400 {
                    let point = space.sample(&mut Stream::new(8, k).generator(Purpose::Problem));
                    let outcome = outcome(&point);
                    optimizer.tell(point, outcome).unwrap();
                }
                run(&mut optimizer, 3, SEED)
            })
        });
        let model = one.models[0].as_ref().unwrap();
        assert_eq!(model.observations, 400, "{name}");
        assert!(!model.graph.edges().is_empty());
        assert_same(name, &two, &one);
    }
}

/// Every method by its name, with its own settings. Tables are split among threads at any size.
#[test]
fn the_number_of_threads_does_not_matter_to_any_method() {
    let space = cube(12);
    for (name, method) in named(12) {
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut optimizer = method.build(space.clone()).unwrap();
                for k in 0..150 {
                    let point = space.sample(&mut Stream::new(8, k).generator(Purpose::Problem));
                    let outcome = outcome(&point);
                    optimizer.tell(point, outcome).unwrap();
                }
                run(optimizer.as_mut(), 2, SEED)
            })
        });
        assert_same(name, &two, &one);
    }
}

/// Every method by its name, interrupted at some trials and continued from its model as a file would have it: with pending points,
/// a failure, and a space of every kind of parameter that all methods take.
#[test]
fn every_method_can_be_resumed() {
    let space = Space::new(vec![
        Parameter::real("r", 0.0, 1.0),
        Parameter::real_log("l", 1e-4, 1.0),
        Parameter::integer("i", 0, 9),
        Parameter::boolean("b"),
        Parameter::real("s", 0.0, 1.0),
    ])
    .unwrap();
    for (name, method) in named(5) {
        let mut optimizer = method.build(space.clone()).unwrap();
        let mut pending: Vec<Point> = Vec::new();
        // What a store would hold: what was told, in order, and the latest model. None stands for a failure.
        let mut told: Vec<(Point, Option<f64>)> = Vec::new();
        let mut models = 0;
        for trial in 0..34_u64 {
            let stream = Stream::new(SEED, trial);
            let before = optimizer.model().cloned();
            let point = optimizer.ask(&pending, &stream).unwrap();
            if [1, 11, 13, 17, 18, 23, 29, 32, 33].contains(&trial) {
                let mut fresh = method.build(space.clone()).unwrap();
                for (point, outcome) in &told {
                    match outcome {
                        Some(outcome) => fresh.tell(point.clone(), *outcome).unwrap(),
                        None => fresh.fail(point.clone()).unwrap(),
                    }
                }
                if let Some(model) = before {
                    models += 1;
                    fresh.resume(through_json(model)).unwrap();
                }
                let again = fresh.ask(&pending, &stream).unwrap();
                assert_eq!(bits(&again), bits(&point), "{name}: trial {trial}");
                assert_eq!(fresh.model(), optimizer.model(), "{name}: trial {trial}");
            }
            pending.push(point);
            if pending.len() == 3 {
                for point in pending.drain(..2) {
                    let outcome = (trial != 14).then(|| outcome(&point));
                    match outcome {
                        Some(outcome) => optimizer.tell(point.clone(), outcome).unwrap(),
                        None => optimizer.fail(point.clone()).unwrap(),
                    }
                    told.push((point, outcome));
                }
            }
        }
        let shows_model = optimizer.model().is_some();
        assert_eq!(models > 2, shows_model, "{name}: {models} resumed with a model");
        assert_eq!(shows_model, !name.starts_with("rembo") && name != "random");
    }
}

/// 26 trials in five dimensions with both presets, and how often each of them learns on the way.
fn short_runs() -> Vec<(&'static str, AdditiveGpUcbSettings, Record)> {
    let runs = presets().into_iter().map(|(name, mut settings)| {
        // So few samples and likelihoods that what is learned depends on what was learned before, and more often than
        // in the paper, so that each resumed run learns again.
        settings.structure = tree_with_samples(12, &settings);
        if name == "paper" {
            settings.learning = Learning::Every(4);
            settings.kernel_learning.budget = Budget::Fixed(3);
        }
        let record = run(&mut optimizer(&cube(5), &settings), 26, SEED);
        let mut learned: Vec<usize> =
            record.models.iter().flatten().map(|m| m.observations).collect();
        learned.dedup();
        assert!(learned.len() >= 4, "{name} learned at {learned:?}");
        (name, settings, record)
    });
    runs.collect()
}

/// A new optimizer in the state that the run was in before its trial k.
fn restored(
    settings: &AdditiveGpUcbSettings,
    record: &Record,
    k: usize,
    json: bool,
) -> AdditiveGpUcb {
    let mut optimizer = optimizer(&cube(5), settings);
    for point in &record.points[..k] {
        optimizer.tell(point.clone(), outcome(point)).unwrap();
    }
    // There is none before the first learning step.
    let model = k.checked_sub(1).and_then(|last| record.models[last].clone());
    if let Some(model) = model {
        let model = if json { through_json(model) } else { model };
        optimizer.resume(model).unwrap();
    }
    optimizer
}

fn resume_at_every_trial(json: bool) {
    for (name, settings, want) in short_runs() {
        for k in 0..26 {
            let mut record =
                Record { points: want.points[..k].to_vec(), models: want.models[..k].to_vec() };
            let mut optimizer = restored(&settings, &want, k, json);
            go_on(&mut optimizer, &mut record, 26, SEED);
            assert_same(&format!("{name} resumed at {k}"), &record, &want);
        }
    }
}

#[test]
fn a_run_resumed_at_any_trial_goes_on_bit_for_bit() {
    resume_at_every_trial(false);
}

#[test]
fn a_run_resumed_from_json_goes_on_bit_for_bit() {
    resume_at_every_trial(true);
}

#[test]
fn a_run_with_the_presets_themselves_can_be_resumed() {
    for (name, settings) in presets() {
        let want = run(&mut optimizer(&cube(5), &settings), 33, SEED);
        for k in [9, 14, 15, 20, 29, 31] {
            let mut record =
                Record { points: want.points[..k].to_vec(), models: want.models[..k].to_vec() };
            let mut optimizer = restored(&settings, &want, k, true);
            go_on(&mut optimizer, &mut record, 33, SEED);
            assert_same(&format!("{name} resumed at {k}"), &record, &want);
        }
    }
}

/// The resume tests can only mean something if the model matters: without it a run goes on differently.
#[test]
fn without_its_model_a_run_does_not_go_on_as_it_would_have() {
    for (name, settings, want) in short_runs() {
        let k = 25;
        let mut optimizer = optimizer(&cube(5), &settings);
        for point in &want.points[..k] {
            optimizer.tell(point.clone(), outcome(point)).unwrap();
        }
        let point = optimizer.ask(&[], &Stream::new(SEED, k as u64)).unwrap();
        assert_ne!(bits(&point), bits(&want.points[k]), "{name}");
    }
}

/// A space with a failed evaluation, pending points and every kind of parameter, interrupted with work in flight.
#[test]
fn a_run_with_workers_can_be_resumed() {
    let space = Space::new(vec![
        Parameter::real("r", 0.0, 1.0),
        Parameter::real_log("l", 1e-4, 1.0),
        Parameter::integer("i", 0, 9),
        Parameter::categorical("c", ["a", "b", "c"]),
        Parameter::boolean("b"),
    ])
    .unwrap();
    for (name, settings) in presets() {
        let mut optimizer = optimizer(&space, &settings);
        let mut pending: Vec<Point> = Vec::new();
        // What a store would hold: the outcomes in the order they came, and the latest model.
        let mut told: Vec<Point> = Vec::new();
        for trial in 0..50 {
            let stream = Stream::new(SEED, trial);
            let mut fresh = AdditiveGpUcb::new(space.clone(), settings.clone()).unwrap();
            for point in &told {
                fresh.tell(point.clone(), outcome(point)).unwrap();
            }
            if let Some(model) = optimizer.model() {
                fresh.resume(through_json(model.clone())).unwrap();
            }
            let point = optimizer.ask(&pending, &stream).unwrap();
            let again = fresh.ask(&pending, &stream).unwrap();
            assert_eq!(bits(&again), bits(&point), "{name}: trial {trial}");
            assert_eq!(fresh.model(), optimizer.model(), "{name}: trial {trial}");
            pending.push(point);
            if pending.len() == 4 {
                pending.remove(1); // failed
                for point in pending.drain(..2) {
                    optimizer.tell(point.clone(), outcome(&point)).unwrap();
                    told.push(point);
                }
            }
        }
        assert!(optimizer.model().is_some_and(|m| m.observations >= 29));
    }
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    for (name, settings) in presets() {
        let want = run(&mut optimizer(&cube(5), &settings), 16, SEED);
        let model = want.models[15].clone().unwrap();
        let other = run(&mut optimizer(&cube(4), &settings), 16, SEED);
        let wrong = other.models[15].clone().unwrap();

        let mut resumed = restored(&settings, &want, 15, false);
        let refused = resumed.resume(wrong.clone()).unwrap_err();
        assert!(
            matches!(refused, Error::WrongDimension { expected: 5, found: 4, .. }),
            "{name}: {refused:?}"
        );
        // A forest and a kernel that do not belong together.
        for mixed in [
            Model { graph: wrong.graph.clone(), ..model.clone() },
            Model { prior: wrong.prior.clone(), ..model.clone() },
        ] {
            let refused = resumed.resume(mixed).unwrap_err();
            assert!(matches!(refused, Error::WrongDimension { .. }), "{name}: {refused:?}");
        }
        let early = Model { observations: 16, ..model.clone() };
        let refused = resumed.resume(early).unwrap_err();
        assert!(
            matches!(&refused, Error::InvalidSetting { setting: "model.observations", value, .. } if value == "16"),
            "{name}: {refused:?}"
        );
        let mut broken = model.clone();
        broken.prior.noise_std = f64::NAN;
        assert!(matches!(
            resumed.resume(broken).unwrap_err(),
            Error::InvalidSetting { setting: "noise_std", .. }
        ));
        // And none of this did any harm.
        let point = resumed.ask(&[], &Stream::new(SEED, 15)).unwrap();
        assert_eq!(bits(&point), bits(&want.points[15]), "{name}");
    }
}

/// Workers that ask together and are told together, so that the number of observations jumps.
#[test]
fn workers_learn_once_for_each_interval_passed() {
    for (workers, want) in [
        // t = n + 1 passes a multiple of 15 …
        (1, vec![14, 29, 44, 59]),
        (4, vec![16, 32, 44, 60]),
        (5, vec![15, 30, 45, 60]),
        // … or two of them.
        (20, vec![20, 40, 60]),
    ] {
        let learned = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&learned);
        let mut settings = AdditiveGpUcbSettings::paper();
        settings.structure = tree_with_samples(10, &settings);
        let mut optimizer = optimizer(&cube(3), &settings).with_observer(Arc::new(move |phase| {
            if phase == Phase::StructureLearning {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let mut at = Vec::new();
        let mut trial = 0;
        for _ in 0..=60 / workers {
            let mut pending = Vec::new();
            for _ in 0..workers {
                let before = learned.load(Ordering::Relaxed);
                pending.push(optimizer.ask(&pending, &Stream::new(SEED, trial)).unwrap());
                trial += 1;
                if learned.load(Ordering::Relaxed) > before {
                    assert_eq!(learned.load(Ordering::Relaxed), before + 1);
                    at.push(optimizer.model().unwrap().observations);
                }
            }
            for point in pending {
                let outcome = outcome(&point);
                optimizer.tell(point, outcome).unwrap();
            }
        }
        assert_eq!(at, want, "{workers} workers");
        assert_eq!(learned.load(Ordering::Relaxed), want.len());
    }
}

/// The default learns when there is a tenth more to learn from, never twice from the same.
#[test]
fn workers_learn_once_from_the_same_observations() {
    let learned = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&learned);
    let settings = AdditiveGpUcbSettings::default();
    let mut optimizer = optimizer(&cube(3), &settings).with_observer(Arc::new(move |phase| {
        if phase == Phase::StructureLearning {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let mut at = Vec::new();
    for round in 0..12 {
        let mut pending = Vec::new();
        for worker in 0..4 {
            let stream = Stream::new(SEED, 4 * round + worker);
            pending.push(optimizer.ask(&pending, &stream).unwrap());
            at.extend(optimizer.model().map(|model| model.observations));
        }
        for point in pending {
            let outcome = outcome(&point);
            optimizer.tell(point, outcome).unwrap();
        }
    }
    at.dedup();
    // With 8 observations and two pending points the initial design is over.
    assert_eq!(at, [8, 12, 16, 20, 24, 28, 32, 36, 40, 44]);
    assert_eq!(learned.load(Ordering::Relaxed), at.len());
}
