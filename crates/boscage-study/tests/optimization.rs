//! An optimization in memory is a study without a store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use boscage::Value;
use boscage_study::{
    Asked, Definition, Optimization, Outcome, Study, StudyFile, StudySpace, Values, Worker,
};
use common::Place;

const TEXT: &str = r#"
seed = 3
[parameters]
x = { type = "real", low = -2, high = 2, default = 0.5 }
rate = { type = "real", low = 1e-4, high = 1.0, log = true }
n = { type = "integer", low = 1, high = 9 }
mode = { type = "categorical", choices = ["a", "b"] }
cache = { type = "boolean" }
"#;

fn definition() -> Definition {
    StudyFile::parse(TEXT, Path::new("study.toml")).unwrap().definition
}

/// Some points fail.
fn outcome(values: &Values) -> Option<f64> {
    let number = |d: usize| values[d].as_ref().and_then(Value::as_f64).unwrap_or(0.0);
    let x = number(0);
    (x < 1.8)
        .then(|| (x - 0.3).powi(2) + number(1).ln().abs() / 9.0 + (number(2) - 4.0).abs() / 5.0)
}

#[test]
fn it_asks_for_the_same_points_as_a_study() {
    let place = Place::sqlite();
    let (mut study, _) = Study::open(place.store(), "s", definition(), false).unwrap();
    let mut optimization = Optimization::new(definition()).unwrap();
    for n in 0..40 {
        let Asked::Trial(trial) = study.ask(&Worker::this_process(), 60.0, None).unwrap() else {
            panic!("there is always another point");
        };
        assert_eq!(optimization.ask().unwrap(), (n, trial.values.clone()));
        match outcome(&trial.values) {
            Some(value) => {
                study.store().tell("s", n, &Outcome::Value(value), None).unwrap();
                optimization.tell(n, value).unwrap();
            }
            None => {
                study.store().tell("s", n, &Outcome::Failed("no".to_string()), None).unwrap();
                optimization.fail(n, "no").unwrap();
            }
        }
    }
    assert!(optimization.model().is_some());
}

#[test]
fn what_was_saved_goes_on_to_the_last_bit() {
    let mut whole = Optimization::new(definition()).unwrap();
    let mut broken = Optimization::new(definition()).unwrap();
    for n in 0..30 {
        broken = Optimization::load(&broken.save().unwrap()).unwrap();
        let asked = whole.ask().unwrap();
        assert_eq!(broken.ask().unwrap(), asked);
        // Every fourth stays open for good.
        if n % 4 != 0 {
            let value = outcome(&asked.1).unwrap_or(f64::NAN);
            whole.tell(n, value).unwrap();
            broken.tell(n, value).unwrap();
        }
    }
    assert_eq!(whole.len(), 30);
    assert!(Optimization::load("{}").is_err() && Optimization::load("").is_err());
}

#[test]
fn outcomes_are_told_once() {
    let mut optimization = Optimization::new(definition()).unwrap();
    let (number, values) = optimization.ask().unwrap();
    assert_eq!(optimization.open_trial(&values).unwrap(), Some(number));
    optimization.tell(number, 1.0).unwrap();
    optimization.tell(number, 1.0).unwrap();
    assert_eq!(optimization.open_trial(&values).unwrap(), None);
    assert!(optimization.tell(number, 2.0).unwrap_err().to_string().contains("has the value 1.0"));
    assert!(optimization.fail(7, "no").unwrap_err().to_string().contains("there is no trial 7"));
    assert_eq!(optimization.view().best().unwrap().number, number);
}

#[test]
fn queue_and_forgotten_trials_are_saved() {
    let mut optimization = Optimization::new(definition()).unwrap();
    let mut point = vec![None; 5];
    point[0] = Some(Value::Real(-1.25));
    optimization.enqueue(point).unwrap();
    // The default of `x` comes first, then what was put into the queue.
    let (first, _) = optimization.ask().unwrap();
    optimization.forget(first);
    let mut loaded = Optimization::load(&optimization.save().unwrap()).unwrap();
    let (number, values) = loaded.ask().unwrap();
    assert_eq!((number, &values[0]), (1, &Some(Value::Real(-1.25))));
    assert_eq!(optimization.ask().unwrap(), (number, values));
    // It is not waited for, but a result is welcome.
    loaded.tell(first, 0.5).unwrap();
    assert_eq!(loaded.view().trials[0].value, Some(0.5));
    let short = loaded.save().unwrap().replace("\"queue\":[]", "\"queue\":[[null]]");
    let refused = Optimization::load(&short).err().map(|error| error.to_string());
    assert!(refused.unwrap().contains("does not have 5 values"));
}

/// With `b` off, points that differ in `x` are one point: four in all.
#[test]
fn points_that_differ_only_in_what_is_off_are_one() {
    let text = r#"
[parameters]
b = { type = "boolean" }
x = { type = "integer", low = 1, high = 3, condition = "b == true" }
"#;
    let definition = StudyFile::parse(text, Path::new("study.toml")).unwrap().definition;
    let mut optimization = Optimization::new(definition).unwrap();
    let mut seen = Vec::new();
    for n in 0..4 {
        let (_, values) = optimization.ask().unwrap();
        assert!(!seen.contains(&values), "{values:?} twice");
        seen.push(values);
        optimization.tell(n, n as f64).unwrap();
    }
    let error = optimization.ask().unwrap_err().to_string();
    assert!(error.contains('4'), "{error}");
}

#[test]
fn a_queued_point_that_is_forbidden_is_told_once() {
    let text = r#"
forbidden = ["x > 1 and y > 1"]
[parameters]
x = { type = "integer", low = 0, high = 9 }
y = { type = "integer", low = 2, high = 9 }
"#;
    let definition = StudyFile::parse(text, Path::new("study.toml")).unwrap().definition;
    let mut optimization = Optimization::new(definition).unwrap();
    optimization.enqueue(vec![Some(Value::Integer(5)), None]).unwrap();
    let error = optimization.ask().unwrap_err().to_string();
    assert!(error.contains("forbidden"), "{error}");
    let (number, values) = optimization.ask().unwrap();
    assert_eq!(number, 0);
    assert!(values[0].as_ref().and_then(Value::as_f64).unwrap() <= 1.0);
}

/// The loop of the engine, which knows neither definitions nor stores, asks for the same points.
#[test]
fn it_asks_for_the_same_points_as_the_engine() {
    let mut definition = definition();
    // The engine has no defaults.
    let mut parameters = definition.space.parameters().to_vec();
    parameters[0].default = None;
    definition.space = StudySpace::new(parameters, Vec::new()).unwrap();
    let engine = definition.space.engine().clone();
    let mut optimization = Optimization::new(definition).unwrap();
    let mut asked = Vec::new();
    let found = boscage::minimize(&engine, 40, 3, |values| {
        asked.push(values.to_vec());
        outcome(&values.iter().cloned().map(Some).collect()).unwrap_or(f64::NAN)
    })
    .unwrap();
    for (n, values) in asked.into_iter().enumerate() {
        let values: Values = values.into_iter().map(Some).collect();
        assert_eq!(optimization.ask().unwrap(), (n as u64, values.clone()));
        optimization.tell(n as u64, outcome(&values).unwrap_or(f64::NAN)).unwrap();
    }
    assert_eq!(found.model.as_ref(), optimization.model());
}
