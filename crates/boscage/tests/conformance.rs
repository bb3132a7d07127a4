//! One suite for every method: what a user of [`Optimizer`] may rely on, whichever method is behind it.
//!
//! Every test runs on every name in [`Method::NAMES`]. A new method joins by its line in that table and its line in
//! [`promises`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use boscage::additive_gp::AdditivePrior;
use boscage::additive_gp_ucb::AdditiveGpUcbSettings;
use boscage::graph::{Component, Edge};
use boscage::kernel::{Kernel, KernelFamily};
use boscage::methods::line_bo::Direction;
use boscage::repeats::RepeatRule;
use boscage::stream::Purpose;
use boscage::{Domain, Error, Method, Model, Optimizer, Parameter, Point, Space, Stream};

/// What sets methods apart from each other in this suite.
struct Promises {
    /// Never asks for a point that was told or is pending, and so exhausts finite spaces.
    avoids_repeats: bool,
    /// Uses a model once it has been told 10 outcomes.
    learns: bool,
    /// Shows that model.
    shows_model: bool,
    /// Refuses parameters of three or more choices.
    refuses_choices: bool,
    /// Clips to the domain, so that a corner may come again as long as nobody tells.
    clips: bool,
}

fn promises(method: &Method) -> Promises {
    let with = |repeats: RepeatRule, shows_model: bool, refuses_choices: bool| {
        let avoids_repeats = repeats == RepeatRule::Avoid;
        let clips = matches!(method, Method::Rembo(_));
        Promises { avoids_repeats, learns: true, shows_model, refuses_choices, clips }
    };
    match method {
        Method::Boscage(settings)
        | Method::Tree(settings)
        | Method::Overlap(settings)
        | Method::NoOverlap(settings)
        | Method::RandomTrees(settings)
        | Method::Oracle(settings)
        | Method::GpUcb(settings) => with(settings.repeats, true, false),
        Method::Line(settings) => {
            with(settings.repeats, true, settings.direction != Direction::Coordinate)
        }
        Method::Rembo(settings) => with(settings.repeats, false, true),
        Method::Random => Promises {
            avoids_repeats: false,
            learns: false,
            shows_model: false,
            refuses_choices: false,
            clips: false,
        },
    }
}

/// The method of this name. Who needs the truth is told one: a path through all variables.
fn named(name: &str, dimension: usize) -> Method {
    let edge = |i: usize| Component::pair(Edge::new(i - 1, i).unwrap());
    let components = match dimension {
        1 => vec![Component::single(0)],
        _ => (1..dimension).map(edge).collect(),
    };
    let kernel = Kernel::uniform(KernelFamily::Rbf, dimension, 0.3, 0.5);
    match Method::named(name).unwrap() {
        Method::Oracle(_) => {
            let truth = AdditivePrior {
                components,
                kernel,
                noise_std: 0.1,
                all_pairs: None,
                constant: 0.0,
                common_std: 0.0,
            };
            Method::Oracle(Box::new(AdditiveGpUcbSettings::oracle(Some(truth))))
        }
        other => other,
    }
}

/// The first parameter of three or more choices.
fn with_choices(space: &Space) -> Option<&Parameter> {
    let has_choices = |parameter: &&Parameter| match &parameter.domain {
        Domain::Categorical { choices } => choices.len() > 2,
        _ => false,
    };
    space.parameters().iter().find(has_choices)
}

/// A method at work; every point it returns is checked.
struct Run {
    name: &'static str,
    promises: Promises,
    space: Space,
    optimizer: Box<dyn Optimizer>,
    told: Vec<Point>,
    trial: u64,
    /// There may be no model: outcomes are so large that none can be computed, or are not where the method looks.
    may_do_without: bool,
}

impl Run {
    /// Every method that does not refuse the space.
    fn all(space: &Space) -> impl Iterator<Item = Run> {
        Method::NAMES.into_iter().filter_map(|known| {
            let method = named(known.name, space.dimension());
            let promises = promises(&method);
            let built = method.build(space.clone());
            if promises.refuses_choices
                && let Some(parameter) = with_choices(space)
            {
                let refused = built.err();
                let clear = matches!(&refused, Some(Error::InvalidDomain { name, .. }) if *name == parameter.name);
                assert!(clear, "{}: {refused:?}", known.name);
                return None;
            }
            Some(Run {
                name: known.name,
                promises,
                space: space.clone(),
                optimizer: built.unwrap(),
                told: Vec::new(),
                trial: 0,
                may_do_without: false,
            })
        })
    }

    /// Those that never ask for a known point.
    fn avoiding_repeats(space: &Space) -> impl Iterator<Item = Run> {
        let runs: Vec<Run> = Run::all(space).filter(|run| run.promises.avoids_repeats).collect();
        assert!(!runs.is_empty());
        runs.into_iter()
    }

    fn stream(&self) -> Stream {
        Stream::new(2021, self.trial)
    }

    /// Asks for the next trial.
    #[track_caller]
    fn ask(&mut self, pending: &[Point]) -> Point {
        let before = self.optimizer.evaluations();
        let point = self.optimizer.ask(pending, &self.stream()).unwrap();
        let (name, trial) = (self.name, self.trial);
        self.space.check(&point).unwrap_or_else(|error| panic!("{name}, trial {trial}: {error}"));
        assert!(point.0.iter().all(|c| c.is_finite()));
        self.space.decode(&point).unwrap();
        if self.promises.avoids_repeats {
            assert!(
                !self.told.contains(&point) && !pending.contains(&point),
                "{name}, trial {trial}: {point:?} again"
            );
        }
        // An ask that fails inside falls back on a random point, so a broken model would go unnoticed otherwise.
        if self.promises.learns && !self.may_do_without && self.told.len() >= 10 {
            let used = self.optimizer.evaluations() > before;
            assert!(used, "{name}, trial {trial}: the model was not used");
        }
        self.trial += 1;
        point
    }

    #[track_caller]
    fn tell(&mut self, point: Point, outcome: f64) {
        self.told.push(point.clone());
        self.optimizer.tell(point, outcome).unwrap();
    }

    /// This many asks, each told at once; the outcome is a function of the trial's number and the point.
    #[track_caller]
    fn trials(&mut self, count: usize, outcome: impl Fn(u64, &Point) -> f64) {
        for _ in 0..count {
            let trial = self.trial;
            let point = self.ask(&[]);
            let outcome = outcome(trial, &point);
            self.tell(point, outcome);
        }
    }
}

/// A smooth function of the point.
fn hill(_: u64, point: &Point) -> f64 {
    let bowl: f64 = point.0.iter().map(|x| -(x - 0.3).powi(2)).sum();
    let pairs: f64 = point.0.windows(2).map(|x| x[0] * x[1]).sum();
    bowl + 0.5 * pairs
}

/// Every kind of parameter, and three of a single value.
fn mixed() -> Space {
    Space::new(vec![
        Parameter::real("real", -5.0, 5.0),
        Parameter::real_log("log real", 1e-5, 1e-1),
        Parameter::integer("integer", -3, 8),
        Parameter::integer_log("log integer", 1, 1000),
        Parameter::integer_step("step", 0, 100, 7),
        Parameter::ordinal("ordinal", [0.1, 0.5, 2.0, 10.0]),
        Parameter::boolean("boolean"),
        Parameter::categorical("categorical", ["a", "b", "c", "d", "e"]),
        Parameter::integer("single integer", 5, 5),
        Parameter::real("single real", 2.5, 2.5),
        Parameter::categorical("single choice", ["only"]),
    ])
    .unwrap()
}

/// The same without the parameter that has no order.
fn ordered() -> Space {
    let all = mixed();
    let has_order = |p: &&Parameter| p.name != "categorical";
    Space::new(all.parameters().iter().filter(has_order).cloned().collect()).unwrap()
}

/// The same without reals.
fn finite() -> Space {
    Space::new(mixed().parameters()[2..].to_vec()).unwrap()
}

fn single_values() -> Space {
    Space::new(mixed().parameters()[8..].to_vec()).unwrap()
}

fn cube(dimension: usize) -> Space {
    Space::unit_cube(dimension).unwrap()
}

fn one(parameter: Parameter) -> Space {
    Space::new(vec![parameter]).unwrap()
}

fn all_different(points: &[Point]) -> bool {
    (0..points.len()).all(|a| !points[..a].contains(&points[a]))
}

#[test]
fn mixed_spaces() {
    for space in [mixed(), finite(), ordered()] {
        for mut run in Run::all(&space) {
            run.trials(40, hill);
        }
    }
}

#[test]
fn one_dimension() {
    for parameter in [
        Parameter::real("x", -1.0, 1.0),
        Parameter::real_log("x", 1e-3, 1e3),
        Parameter::integer("x", 0, 1000),
        Parameter::integer_log("x", 1, 1000),
    ] {
        for mut run in Run::all(&one(parameter)) {
            run.trials(25, hill);
        }
    }
}

#[test]
fn nothing_to_choose() {
    for space in [single_values(), one(Parameter::integer("x", 7, 7))] {
        let only = Point(vec![0.5; space.dimension()]);
        for mut run in Run::all(&space) {
            run.trials(1, hill);
            assert_eq!(run.told, std::slice::from_ref(&only));
            if run.promises.avoids_repeats {
                let refused = run.optimizer.ask(&[], &run.stream());
                assert_eq!(refused, Err(Error::SpaceExhausted { points: 1 }));
            } else {
                run.trials(15, hill);
                assert!(run.told.iter().all(|point| *point == only), "{}", run.name);
            }
        }
    }
}

#[test]
fn finite_spaces_are_used_up_to_the_last_point() {
    let space = Space::new(vec![
        Parameter::integer("i", 0, 2),
        Parameter::boolean("b"),
        Parameter::integer("single", 1, 1),
        Parameter::ordinal("o", [1.0, 3.0, 9.0, 27.0]),
    ])
    .unwrap();
    for mut run in Run::avoiding_repeats(&space) {
        // The run itself asserts that no point comes twice.
        run.trials(24, hill);
        for _ in 0..2 {
            let refused = run.optimizer.ask(&[], &run.stream());
            assert_eq!(refused, Err(Error::SpaceExhausted { points: 24 }));
        }
        // Telling a point again changes nothing about that, and is not an error.
        run.tell(Point(vec![0.0, 1.0, 0.5, 1.0]), 3.0);
        let refused = run.optimizer.ask(&[], &run.stream());
        assert_eq!(refused, Err(Error::SpaceExhausted { points: 24 }));
    }
    // Without the rule a finite space never ends.
    for mut run in Run::all(&space).filter(|run| !run.promises.avoids_repeats) {
        run.trials(40, hill);
        assert!(!all_different(&run.told));
    }
}

#[test]
fn pending_points_use_up_a_finite_space_too() {
    let space = Space::new(vec![
        Parameter::integer("i", 0, 3),
        Parameter::categorical("c", ["a", "b", "c"]),
    ])
    .unwrap();
    for told in [0, 5, 11] {
        for mut run in Run::avoiding_repeats(&space) {
            run.trials(told, hill);
            let mut pending = Vec::new();
            while pending.len() + told < 12 {
                // The model need not be used here: the initial design counts pending points.
                let point = run.optimizer.ask(&pending, &run.stream()).unwrap();
                assert!(!pending.contains(&point) && !run.told.contains(&point));
                run.trial += 1;
                pending.push(point);
            }
            let refused = run.optimizer.ask(&pending, &run.stream());
            assert_eq!(refused, Err(Error::SpaceExhausted { points: 12 }));
            // A worker that gave up makes its point free again.
            let given_up = pending.remove(0);
            let again = run.optimizer.ask(&pending, &run.stream());
            assert_eq!(again, Ok(given_up));
        }
    }
}

#[test]
fn five_workers() {
    for space in [cube(4), mixed(), finite()] {
        for mut run in Run::all(&space) {
            let has_reals = space.size().is_none();
            let mut pending: Vec<Point> = Vec::new();
            for step in 0..45 {
                let point = run.ask(&pending);
                if has_reals {
                    assert!(!pending.contains(&point), "{}, step {step}", run.name);
                }
                pending.push(point);
                // Outcomes arrive out of order, and after every seventh step in threes.
                while pending.len() > 4 || (step % 7 == 0 && pending.len() > 2) {
                    let point = pending.remove(step % pending.len());
                    let outcome = hill(0, &point);
                    run.tell(point, outcome);
                }
            }
        }
    }
}

#[test]
fn in_the_initial_design_only_the_number_of_the_trial_sets_workers_apart() {
    // They do not know of each other, and nothing is told of a failed evaluation.
    for told in [0, 3, 9] {
        for mut run in Run::all(&cube(3)) {
            run.trials(told, hill);
            let points: Vec<Point> = (0..5).map(|_| run.ask(&[])).collect();
            assert!(all_different(&points), "{} after {told}", run.name);
        }
    }
}

/// Once a model has made up its mind, another trial number may have the same answer: whoever wants another one passes
/// failed points on as pending.
#[test]
fn a_failed_evaluation_that_stays_pending_does_not_come_back() {
    for space in [cube(3), mixed()] {
        for mut run in Run::all(&space) {
            let mut failed: Vec<Point> = Vec::new();
            for step in 0..36 {
                let point = run.ask(&failed);
                assert!(!failed.contains(&point), "{}, step {step}", run.name);
                if step % 3 == 0 {
                    failed.push(point);
                } else {
                    let outcome = hill(0, &point);
                    run.tell(point, outcome);
                }
            }
        }
    }
}

#[test]
fn points_that_failed_do_not_come_back() {
    for space in [cube(1), cube(3), mixed()] {
        for mut run in Run::all(&space) {
            run.trials(20, hill);
            let mut failed = Vec::new();
            for _ in 0..10 {
                let point = run.ask(&[]);
                run.optimizer.fail(point.clone()).unwrap();
                failed.push(point);
            }
            assert!(all_different(&failed), "{}: {failed:?}", run.name);
        }
    }
}

#[test]
fn a_finite_space_is_used_up_by_failures_too() {
    let space = one(Parameter::integer("i", 0, 6));
    for mut run in Run::avoiding_repeats(&space) {
        let size = space.size().unwrap();
        for _ in 0..size {
            let point = run.ask(&[]);
            run.optimizer.fail(point).unwrap();
        }
        let refused = run.optimizer.ask(&[], &run.stream()).unwrap_err();
        assert_eq!(refused, Error::SpaceExhausted { points: size });
    }
}

#[test]
fn all_evaluations_fail() {
    for mut run in Run::all(&cube(2)) {
        let points: Vec<Point> = (0..30).map(|_| run.ask(&[])).collect();
        let inside = |point: &&Point| point.0.iter().any(|&x| x > 0.0 && x < 1.0);
        let apart: Vec<Point> = match run.promises.clips {
            true => points.iter().filter(inside).cloned().collect(),
            false => points,
        };
        assert!(apart.len() > 5 && all_different(&apart), "{}", run.name);
    }
}

#[test]
fn the_initial_design_has_no_two_equal_points() {
    for mut run in Run::all(&cube(1)) {
        run.trials(10, hill);
        assert!(all_different(&run.told), "{}", run.name);
    }
    // 12 points: ten uniform ones would almost surely collide.
    let small = one(Parameter::integer("x", 1, 12));
    for mut run in Run::avoiding_repeats(&small) {
        run.trials(10, hill);
        assert!(all_different(&run.told), "{}", run.name);
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    let space = mixed();
    for mut run in Run::all(&space) {
        for step in 0..22 {
            let pending: Vec<Point> = (0..step % 3)
                .map(|k| Stream::new(7, k).generator(Purpose::Problem))
                .map(|mut rng| space.sample(&mut rng))
                .collect();
            let stream = run.stream();
            let first = run.ask(&pending);
            let model = run.optimizer.model().cloned();
            for _ in 0..2 {
                let again = run.optimizer.ask(&pending, &stream).unwrap();
                assert_eq!(bits(&again), bits(&first), "{}, step {step}", run.name);
            }
            assert_eq!(run.optimizer.model(), model.as_ref());
            let outcome = hill(0, &first);
            run.tell(first, outcome);
        }
    }
}

fn bits(point: &Point) -> Vec<u64> {
    point.0.iter().map(|c| c.to_bits()).collect()
}

#[test]
fn the_same_point_told_again_and_again() {
    for space in [cube(3), mixed()] {
        for mut run in Run::all(&space) {
            for _ in 0..12 {
                let trial = run.trial;
                let point = run.ask(&[]);
                // Three measurements with noise, one of them equal to another.
                for noise in [0.0, 0.01, 0.01] {
                    let outcome = hill(trial, &point) + noise;
                    run.tell(point.clone(), outcome);
                }
            }
        }
    }
}

#[test]
fn three_hundred_times_the_same_point() {
    for mut run in Run::all(&cube(3)) {
        // It may lie in some embeddings only, and the others have nothing to learn from.
        run.may_do_without = run.name == "rembo-interleaved";
        let point = Point(vec![0.25, 0.0, 1.0]);
        for k in 0..300 {
            let noise = (f64::from(k) * 0.7).sin();
            run.tell(point.clone(), noise);
        }
        run.trials(2, hill);
    }
}

#[test]
fn points_that_were_never_asked_for() {
    for space in [cube(5), mixed()] {
        for mut run in Run::all(&space) {
            for k in 0..20 {
                let point = space.sample(&mut Stream::new(99, k).generator(Purpose::Problem));
                let outcome = hill(0, &point);
                run.tell(point, outcome);
            }
            // They count: there is no initial design any more, and the run asserts that the model is used.
            run.trials(4, hill);
            assert_eq!(
                run.optimizer.model().map(|model| model.observations >= 20),
                run.promises.shows_model.then_some(true)
            );
        }
    }
}

/// Runs all methods with outcomes that need not have to do with the points.
#[track_caller]
fn outcomes(outcome: impl Fn(u64, &Point) -> f64) {
    for space in [cube(3), mixed()] {
        for mut run in Run::all(&space) {
            run.trials(26, &outcome);
            if let Some(model) = run.optimizer.model() {
                assert_round_trip(model);
                assert!(model.observations >= 14, "{}: {model:?}", run.name);
            }
        }
    }
}

#[test]
fn constant_outcomes() {
    for constant in [0.0, -3.0, 1e300, -1e300, 1e-300] {
        outcomes(|_, _| constant);
    }
}

#[test]
fn two_different_outcomes() {
    outcomes(|trial, _| if trial % 3 == 0 { 1.0 } else { 0.0 });
    outcomes(|trial, _| if trial == 12 { -1.0 } else { 5.0 });
}

#[test]
fn outcomes_of_every_size() {
    let sizes = [1e300, -1e300, 1e-300, 0.0, -1e-300, 1.0, -7.0];
    outcomes(|trial, _| sizes[trial as usize % sizes.len()]);
}

#[test]
fn one_enormous_outcome() {
    for enormous in [1e300, -1e300] {
        outcomes(|trial, point| if trial == 5 { enormous } else { hill(0, point) });
    }
}

#[test]
fn the_largest_and_the_smallest_number() {
    let all: [fn(u64, &Point) -> f64; 4] = [
        |trial, _| if trial % 2 == 0 { f64::MAX } else { f64::MIN },
        |_, _| f64::MAX,
        |trial, point| if trial == 5 { f64::MAX } else { hill(0, point) },
        |trial, point| if trial == 5 { f64::MIN } else { hill(0, point) },
    ];
    for outcome in all {
        for mut run in Run::all(&cube(3)) {
            run.may_do_without = true;
            run.trials(40, outcome);
            if let Some(model) = run.optimizer.model() {
                assert_round_trip(model);
            }
            // Where nothing can be computed the search must not get stuck in a corner: there are 30 points after the
            // initial design, and a corner cell of the finest grid is 1/256 wide.
            let after = &run.told[10..];
            let spread = |d: usize| {
                let x = after.iter().map(|point| point.0[d]);
                x.clone().fold(0.0, f64::max) - x.fold(1.0, f64::min)
            };
            assert!((0..3).any(|d| spread(d) > 0.05), "{}: {:?}", run.name, after.last());
        }
    }
}

#[test]
fn outcomes_that_grow_with_time() {
    outcomes(|trial, _| trial as f64);
    outcomes(|trial, _| (trial as f64).exp2().powi(8));
}

#[test]
fn a_thousand_parameters() {
    for mut run in Run::all(&cube(1000)) {
        run.trials(15, hill);
        assert!(all_different(&run.told));
    }
}

/// Through JSON and back, nothing changes.
#[track_caller]
fn assert_round_trip(model: &Model) {
    let text = serde_json::to_string(model).unwrap();
    let read: Model = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *model);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn methods_and_models_survive_json() {
    for known in Method::NAMES {
        let method = named(known.name, 3);
        let text = serde_json::to_string(&method).unwrap();
        assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), method);
    }
    for space in [mixed(), cube(6), one(Parameter::real("x", 0.0, 1.0))] {
        for mut run in Run::all(&space) {
            assert_eq!(run.optimizer.model(), None);
            run.trials(33, hill);
            assert_eq!(run.optimizer.model().is_some(), run.promises.shows_model);
            if let Some(model) = run.optimizer.model() {
                assert_eq!(model.graph.dimension(), space.dimension());
                assert_round_trip(model);
            }
        }
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    type Expected = fn(&Error) -> bool;
    let space = mixed();
    let good = space.sample(&mut Stream::new(3, 3).generator(Purpose::Problem));
    let with = |d: usize, value: f64| {
        let mut point = good.clone();
        point.0[d] = value;
        point
    };
    let invalid: Expected = |error| matches!(error, Error::InvalidPoint { coordinate: 0, .. });
    let off_level: Expected = |error| matches!(error, Error::InvalidPoint { coordinate: 2, .. });
    let single: Expected = |error| matches!(error, Error::InvalidPoint { coordinate: 8, .. });
    let dimension: Expected =
        |error| matches!(error, Error::WrongDimension { expected: 11, found, .. } if *found != 11);
    let bad_points: Vec<(Point, Expected)> = vec![
        (with(0, -0.001), invalid),
        (with(0, 1.0_f64.next_up()), invalid),
        (with(0, f64::NAN), invalid),
        (with(0, f64::INFINITY), invalid),
        (with(0, f64::NEG_INFINITY), invalid),
        (with(2, 0.123), off_level),
        (with(2, f64::NAN), off_level),
        (with(8, 0.0), single),
        (Point(good.0[..10].to_vec()), dimension),
        (Point([&good.0[..], &[0.5]].concat()), dimension),
        (Point(vec![]), dimension),
    ];
    // NaN differs from itself, so that outcomes are compared by their bits.
    let bad_outcomes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

    let undisturbed = Run::all(&space).map(|mut run| {
        run.trials(24, hill);
        run.told
    });
    for (mut run, want) in Run::all(&space).zip(undisturbed.collect::<Vec<_>>()) {
        let name = run.name;
        for (step, want) in want.iter().enumerate() {
            for (point, expected) in &bad_points {
                let refused = run.optimizer.tell(point.clone(), 1.0).unwrap_err();
                assert!(expected(&refused), "{name}: {point:?} told: {refused:?}");
                let pending = [good.clone(), point.clone()];
                let refused = run.optimizer.ask(&pending, &run.stream()).unwrap_err();
                assert!(expected(&refused), "{name}: {point:?} pending: {refused:?}");
            }
            for outcome in bad_outcomes {
                let refused = run.optimizer.tell(good.clone(), outcome).unwrap_err();
                assert!(
                    matches!(refused, Error::InvalidOutcome { value } if value.to_bits() == outcome.to_bits()),
                    "{name}: {outcome} told: {refused:?}"
                );
            }
            run.trials(1, hill);
            assert_eq!(bits(&run.told[step]), bits(want), "{name}, {step}");
        }
    }
}
