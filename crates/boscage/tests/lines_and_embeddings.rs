//! LineBO and REMBO: what a run is a function of. What every method promises is in `conformance.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use boscage::additive_gp_ucb::AdditiveGpUcbSettings;
use boscage::design::Design;
use boscage::methods::line_bo::LineBoSettings;
use boscage::methods::rembo::RemboSettings;
use boscage::stream::Purpose;
use boscage::{Method, Model, Optimizer, Parameter, Point, Space, Stream};

const NAMES: [&str; 5] =
    ["line-coordinate", "line-random", "line-ascent", "rembo", "rembo-interleaved"];
const SEED: u64 = 77;

fn cube(dimension: usize) -> Space {
    Space::unit_cube(dimension).unwrap()
}

/// Everything that all five methods take.
fn mixed() -> Space {
    Space::new(vec![
        Parameter::real("r", 0.0, 1.0),
        Parameter::real_log("l", 1e-4, 1.0),
        Parameter::integer("i", 0, 9),
        Parameter::ordinal("o", [1.0, 2.0, 5.0]),
        Parameter::boolean("b"),
        Parameter::integer("single", 3, 3),
        Parameter::real("s", -1.0, 1.0),
    ])
    .unwrap()
}

fn build(name: &str, space: &Space) -> Box<dyn Optimizer> {
    Method::named(name).unwrap().build(space.clone()).unwrap()
}

fn outcome(point: &Point) -> f64 {
    let waves: f64 = point.0.iter().map(|x| (5.0 * x).sin()).sum();
    let pairs: f64 = point.0.chunks_exact(2).map(|x| x[0] * x[1]).sum();
    waves + 2.0 * pairs
}

fn bits(point: &Point) -> Vec<u64> {
    point.0.iter().map(|c| c.to_bits()).collect()
}

fn through_json(model: &Model) -> Model {
    serde_json::from_str(&serde_json::to_string(model).unwrap()).unwrap()
}

#[test]
fn a_run_resumed_at_any_trial_goes_on_bit_for_bit() {
    for (name, space) in NAMES.into_iter().flat_map(|name| [(name, cube(5)), (name, mixed())]) {
        let mut whole = build(name, &space);
        let mut told: Vec<Point> = Vec::new();
        let mut model: Option<Model> = None;
        for trial in 0..42 {
            let stream = Stream::new(SEED, trial);
            let mut fresh = build(name, &space);
            for point in &told {
                fresh.tell(point.clone(), outcome(point)).unwrap();
            }
            if let Some(model) = &model {
                fresh.resume(through_json(model)).unwrap();
            }
            let point = whole.ask(&[], &stream).unwrap();
            let again = fresh.ask(&[], &stream).unwrap();
            assert_eq!(bits(&again), bits(&point), "{name}, trial {trial}");
            assert_eq!(fresh.model(), whole.model(), "{name}, trial {trial}");
            model = whole.model().cloned();
            whole.tell(point.clone(), outcome(&point)).unwrap();
            told.push(point);
        }
        // REMBO needs no model to go on: there is nothing about parameters to show.
        assert_eq!(model.is_some(), name.starts_with("line"), "{name}");
    }
}

/// Pending points, failures, and outcomes that arrive in another order.
#[test]
fn a_run_with_workers_can_be_resumed() {
    for (name, space) in NAMES.into_iter().flat_map(|name| [(name, cube(4)), (name, mixed())]) {
        let mut whole = build(name, &space);
        let (mut told, mut failed, mut pending) = (Vec::new(), Vec::new(), Vec::new());
        for trial in 0..60 {
            let stream = Stream::new(SEED, trial);
            let mut fresh = build(name, &space);
            for point in &told {
                fresh.tell(Point::clone(point), outcome(point)).unwrap();
            }
            for point in &failed {
                fresh.fail(Point::clone(point)).unwrap();
            }
            if let Some(model) = whole.model() {
                fresh.resume(through_json(model)).unwrap();
            }
            let point = whole.ask(&pending, &stream).unwrap();
            let again = fresh.ask(&pending, &stream).unwrap();
            assert_eq!(bits(&again), bits(&point), "{name}, trial {trial}");
            assert!(
                !told.contains(&point) && !failed.contains(&point) && !pending.contains(&point)
            );
            pending.push(point);
            if pending.len() == 4 {
                let point = pending.remove(1);
                whole.fail(point.clone()).unwrap();
                failed.push(point);
                for point in pending.drain(..2).rev() {
                    whole.tell(point.clone(), outcome(&point)).unwrap();
                    told.push(point);
                }
            }
        }
        assert!(told.len() > 30 && failed.len() > 15);
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    // Gram matrices are split among threads from n² · components > 2²¹ on.
    for name in NAMES {
        let [one, two] = [1, 2].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let space = cube(6);
                let mut optimizer = build(name, &space);
                for k in 0..150 {
                    let point = space.sample(&mut Stream::new(8, k).generator(Purpose::Problem));
                    optimizer.tell(point.clone(), outcome(&point)).unwrap();
                }
                [150, 151, 152].map(|trial| {
                    let point = optimizer.ask(&[], &Stream::new(SEED, trial)).unwrap();
                    optimizer.tell(point.clone(), outcome(&point)).unwrap();
                    bits(&point)
                })
            })
        });
        assert_eq!(one, two, "{name}");
    }
}

#[test]
fn asking_again_or_for_another_run_in_between_changes_nothing() {
    for name in NAMES {
        let space = cube(5);
        let mut optimizer = build(name, &space);
        for trial in 0..24 {
            let stream = Stream::new(SEED, trial);
            let point = optimizer.ask(&[], &stream).unwrap();
            optimizer.ask(&[], &Stream::new(SEED + 1, trial)).unwrap();
            optimizer.ask(std::slice::from_ref(&point), &Stream::new(SEED, trial + 1)).unwrap();
            assert_eq!(
                bits(&optimizer.ask(&[], &stream).unwrap()),
                bits(&point),
                "{name}, {trial}"
            );
            optimizer.tell(point.clone(), outcome(&point)).unwrap();
        }
    }
}

/// All methods with settings of their own for the design start from the same kind of points.
#[test]
fn a_sobol_design_is_an_option_of_every_method() {
    let additive = |settings: AdditiveGpUcbSettings| AdditiveGpUcbSettings {
        design: Design::Sobol,
        initial_points: 16,
        ..settings
    };
    let line = LineBoSettings { design: Design::Sobol, initial_points: 16, ..Default::default() };
    let methods = [
        Method::Tree(Box::new(additive(AdditiveGpUcbSettings::default()))),
        Method::Tree(Box::new(additive(AdditiveGpUcbSettings::paper()))),
        Method::GpUcb(Box::new(additive(AdditiveGpUcbSettings::gp_ucb()))),
        Method::Line(Box::new(line)),
    ];
    let mut designs = Vec::new();
    for method in &methods {
        let mut optimizer = method.build(cube(300)).unwrap();
        let points: Vec<Point> = (0..16)
            .map(|trial| {
                let point = optimizer.ask(&[], &Stream::new(SEED, trial)).unwrap();
                optimizer.tell(point.clone(), outcome(&point)).unwrap();
                point
            })
            .collect();
        for d in 0..300 {
            let mut parts: Vec<usize> = points.iter().map(|p| (16.0 * p.0[d]) as usize).collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..16).collect::<Vec<_>>(), "axis {d}");
        }
        designs.push(points);
    }
    assert!(designs.iter().all(|design| *design == designs[0]));
    // Workers that know nothing of each other get different points of it.
    let mut optimizer = methods[0].build(cube(300)).unwrap();
    for (trial, want) in designs[0].iter().enumerate().rev() {
        assert_eq!(optimizer.ask(&[], &Stream::new(SEED, trial as u64)).unwrap(), *want);
    }
    // In an embedding they are points of its box, so that each embedding has its own.
    let rembo = RemboSettings { design: Design::Sobol, ..RemboSettings::default() };
    let uniform =
        Method::Rembo(Box::default()).build(cube(9)).unwrap().ask(&[], &Stream::new(1, 0));
    let sobol = Method::Rembo(Box::new(rembo)).build(cube(9)).unwrap().ask(&[], &Stream::new(1, 0));
    assert_ne!(uniform.unwrap(), sobol.unwrap());
}

#[test]
fn finite_spaces_are_used_up_to_the_last_point() {
    let space = Space::new(vec![
        Parameter::integer("i", 0, 2),
        Parameter::boolean("b"),
        Parameter::ordinal("o", [1.0, 3.0, 9.0, 27.0]),
    ])
    .unwrap();
    for name in NAMES {
        let mut optimizer = build(name, &space);
        let mut told: Vec<Point> = Vec::new();
        for trial in 0..24 {
            let point = optimizer.ask(&[], &Stream::new(3, trial)).unwrap();
            assert!(!told.contains(&point), "{name}, trial {trial}");
            optimizer.tell(point.clone(), outcome(&point)).unwrap();
            told.push(point);
        }
        assert!(optimizer.ask(&[], &Stream::new(3, 24)).is_err());
    }
}

#[test]
fn settings_survive_json_and_unknown_fields_are_named() {
    for text in [
        r#"{"name":"line","settings":{"direction":"ascent","gradient_points":3,"BAD":1}}"#,
        r#"{"name":"line","settings":{"gp":{"noise_std":0.2,"BAD":1}}}"#,
        r#"{"name":"rembo","settings":{"embeddings":4,"design":"sobol","BAD":1}}"#,
    ] {
        let error = serde_json::from_str::<Method>(&text.replace("BAD", "gamma")).unwrap_err();
        assert!(error.to_string().contains("gamma"), "{error}");
        let method: Method = serde_json::from_str(&text.replace(r#","BAD":1"#, "")).unwrap();
        let again: Method = serde_json::from_str(&serde_json::to_string(&method).unwrap()).unwrap();
        assert_eq!(again, method);
        method.build(cube(4)).unwrap();
    }
}
