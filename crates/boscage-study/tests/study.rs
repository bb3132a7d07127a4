//! Studies on both stores: ask, tell, leases, resume, changes, queue, import.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::collections::HashSet;
use std::path::Path;

use boscage::Value;
use boscage_study::study::view;
use boscage_study::{
    Asked, AskedTrial, Definition, Error, Outcome, State, Study, StudyFile, Told, Values, Worker,
};
use common::Place;
use serde_json::json;

/// Mixed parameters, a condition and a forbidden corner.
const MIXED: &str = r#"
seed = 7
forbidden = ['mode == "a" and layers > 6']
[parameters]
rate = { type = "real", low = 1e-4, high = 1.0, log = true }
x = { type = "real", low = -2, high = 2 }
y = { type = "real", low = 0, high = 1, step = 0.1 }
layers = { type = "integer", low = 1, high = 8 }
width = { type = "integer", low = 4, high = 64, step = 4 }
mode = { type = "categorical", choices = ["a", "b", 3] }
level = { type = "ordinal", levels = ["low", "mid", "high"] }
cache = { type = "boolean" }
cutoff = { type = "real", low = 0, high = 1, condition = 'mode == "b"' }
"#;

fn definition(text: &str) -> Definition {
    StudyFile::parse(text, Path::new("study.toml")).unwrap().definition
}

fn mixed(method: &str) -> Definition {
    let method = format!("method = {method:?}\n");
    definition(&(method + MIXED))
}

fn number(value: &Option<Value>) -> f64 {
    value.as_ref().and_then(Value::as_f64).unwrap_or(0.3)
}

/// A deterministic function of the values; some points fail.
fn outcome(values: &Values) -> Outcome {
    let numbers: Vec<f64> = values.iter().map(number).collect();
    let mode = values[5].as_ref().map_or(0, |value| value.to_string().len());
    let value = (numbers[0].ln() + 4.0).powi(2)
        + (numbers[1] - 0.5).powi(2) * (1.0 + numbers[2])
        + (numbers[3] - 4.0).powi(2) / 4.0
        + numbers[4] / 64.0
        + mode as f64
        + numbers[8];
    if numbers[1] > 1.7 { Outcome::Failed("too large".to_string()) } else { Outcome::Value(value) }
}

fn open(place: &Place, definition: &Definition) -> Study {
    Study::open(place.store(), "s", definition.clone(), false).unwrap().0
}

fn asked(study: &mut Study) -> AskedTrial {
    match study.ask(&Worker::this_process(), 60.0, None).unwrap() {
        Asked::Trial(trial) => trial,
        other => panic!("{other:?}"),
    }
}

/// A trial whose worker is gone at once.
fn lost(study: &mut Study) -> AskedTrial {
    match study.ask(&Worker::somebody(), -1.0, None).unwrap() {
        Asked::Trial(trial) => trial,
        other => panic!("{other:?}"),
    }
}

fn step(study: &mut Study) {
    let trial = asked(study);
    let outcome = outcome(&trial.values);
    assert_eq!(
        study.store().tell("s", trial.number, &outcome, Some(&trial.token)).unwrap(),
        Told::New
    );
}

/// Everything that must not depend on interruptions, to the last bit.
fn fingerprint(place: &Place) -> Vec<String> {
    let view = view(&mut place.store(), Some("s")).unwrap();
    let mut lines: Vec<String> = view
        .trials
        .iter()
        .map(|trial| {
            let bits = |value: &Option<Value>| match value {
                Some(Value::Real(number)) => format!("{:x}", number.to_bits()),
                other => format!("{other:?}"),
            };
            let values =
                trial.values.as_ref().map(|values| values.iter().map(bits).collect::<Vec<_>>());
            format!(
                "{} {:?} {:?} {values:?}",
                trial.number,
                trial.state,
                trial.value.map(f64::to_bits)
            )
        })
        .collect();
    lines.push(serde_json::to_string(&view.model).unwrap());
    lines
}

#[test]
fn a_study_that_is_opened_anew_for_every_trial_is_the_same_to_the_last_bit() {
    for method in ["tree", "tree-paper", "gp-ucb", "line-coordinate", "random"] {
        let whole = Place::sqlite();
        let definition = mixed(method);
        let mut study = open(&whole, &definition);
        for _ in 0..50 {
            step(&mut study);
        }
        let expected = fingerprint(&whole);
        assert_eq!(expected.len(), 51);
        for place in Place::all() {
            // 25 in one go, each of the others by a process of its own, some of them lost on the way.
            let mut study = open(&place, &definition);
            for _ in 0..25 {
                step(&mut study);
            }
            for n in 25..50 {
                if n % 4 == 0 {
                    lost(&mut open(&place, &definition));
                }
                step(&mut open(&place, &definition));
            }
            assert_eq!(fingerprint(&place), expected, "{method}");
        }
        if method == "tree" {
            assert!(expected[50].contains("graph"), "nothing was learned");
        }
    }
}

#[test]
fn values_keep_to_ranges_conditions_and_what_is_forbidden() {
    let place = Place::sqlite();
    let definition = mixed("tree");
    let mut study = open(&place, &definition);
    let (mut with, mut without) = (0, 0);
    for _ in 0..40 {
        let trial = asked(&mut study);
        let values = &trial.values;
        definition.space.encode(values).unwrap();
        assert!(definition.space.forbidden_by(values).is_none(), "{values:?}");
        assert_eq!(values[5] == Some("b".into()), values[8].is_some(), "{values:?}");
        if values[8].is_some() {
            with += 1
        } else {
            without += 1
        }
        study.store().tell("s", trial.number, &outcome(values), None).unwrap();
    }
    assert!(with > 0 && without > 0);
}

#[test]
fn nothing_but_the_forbidden_is_left_gives_an_error() {
    let place = Place::sqlite();
    let all = definition(
        "forbidden = ['x >= 0']\n[parameters]\nx = { type = \"real\", low = 0, high = 1 }\n",
    );
    let error =
        open(&place, &all).ask(&Worker::this_process(), 60.0, None).unwrap_err().to_string();
    assert!(error.contains("forbidden"), "{error}");
}

#[test]
fn the_same_tell_again_is_a_success_and_another_one_an_error() {
    for place in Place::all() {
        let mut study = open(&place, &mixed("random"));
        let first = asked(&mut study).number;
        let second = asked(&mut study).number;
        let third = asked(&mut study).number;
        // From anywhere, by number alone.
        let mut store = place.store();
        assert_eq!(store.tell("s", first, &Outcome::Value(0.1 + 0.2), None).unwrap(), Told::New);
        assert_eq!(store.tell("s", first, &Outcome::Value(0.1 + 0.2), None).unwrap(), Told::Again);
        let other = store.tell("s", first, &Outcome::Value(0.3), None).unwrap_err().to_string();
        assert_eq!(
            other,
            "trial 0 has the value 0.30000000000000004; it cannot be told anything else"
        );
        let failed = Outcome::Failed("why".to_string());
        assert!(store.tell("s", first, &failed, None).is_err());
        assert_eq!(store.tell("s", second, &failed, None).unwrap(), Told::New);
        assert_eq!(store.tell("s", second, &failed, None).unwrap(), Told::Again);
        let value = store.tell("s", second, &Outcome::Value(1.0), None).unwrap_err().to_string();
        assert_eq!(value, "trial 1 failed (why); it cannot be told anything else");
        let infeasible = Outcome::Infeasible("too hot".to_string());
        assert_eq!(store.tell("s", third, &infeasible, None).unwrap(), Told::New);
        assert_eq!(store.tell("s", third, &infeasible, None).unwrap(), Told::Again);
        assert!(store.tell("s", third, &failed, None).is_err());

        for (number, outcome, expected) in [
            (9, Outcome::Value(1.0), "no trial 9"),
            (0, Outcome::Value(f64::NAN), "not finite"),
            (0, Outcome::Value(f64::INFINITY), "not finite"),
        ] {
            let error = store.tell("s", number, &outcome, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(
            store.tell("t", 0, &failed, None).unwrap_err().to_string().contains("no study \"t\"")
        );

        let seen = view(&mut store, Some("s")).unwrap();
        assert_eq!(seen.trials[0].outcome(), Some(0.1 + 0.2));
        assert_eq!(seen.trials[1].failure.as_deref(), Some("why"));
        assert_eq!((seen.trials[2].state, seen.trials[2].infeasible), (State::Failed, true));
        assert!(
            seen.trials.iter().all(|trial| trial.seconds.is_some_and(|seconds| seconds >= 0.0))
        );
    }
}

#[test]
fn a_lost_trial_is_given_to_the_next_a_stated_number_of_times() {
    for place in Place::all() {
        let mut definition = mixed("random");
        definition.workers.lost_retries = 2;
        let mut study = open(&place, &definition);
        let first = lost(&mut study);
        let second = lost(&mut open(&place, &definition));
        let third = lost(&mut study);
        for (again, attempt) in [(&second, 2), (&third, 3)] {
            assert_eq!((again.number, &again.values, again.attempt), (0, &first.values, attempt));
        }
        // Not given again a third time.
        let next = asked(&mut study);
        assert_eq!((next.number, next.attempt), (1, 1));
        let seen = view(&mut place.store(), None).unwrap();
        assert_eq!(seen.trials[0].state, State::Failed);
        let reason = seen.trials[0].failure.clone().unwrap();
        assert!(
            reason.contains("lost 3 times") && reason.contains("lost_retries is 2"),
            "{reason}"
        );
    }
}

#[test]
fn a_late_tell_is_accepted_if_the_trial_was_not_given_to_another() {
    for place in Place::all() {
        let mut study = open(&place, &mixed("random"));
        let late = lost(&mut study);
        let value = Outcome::Value(1.0);
        assert_eq!(
            study.store().tell("s", late.number, &value, Some(&late.token)).unwrap(),
            Told::New
        );

        let late = lost(&mut study);
        let other = asked(&mut study);
        assert_eq!(late.number, other.number);
        let refused = study
            .store()
            .tell("s", late.number, &value, Some(&late.token))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("was given to another worker"), "{refused}");
        assert_eq!(
            study.store().tell("s", other.number, &value, Some(&other.token)).unwrap(),
            Told::New
        );
        // Now it is told, and the same result is no contradiction.
        assert_eq!(
            study.store().tell("s", late.number, &value, Some(&late.token)).unwrap(),
            Told::Again
        );
    }
}

#[test]
fn a_lease_that_is_prolonged_is_kept() {
    for place in Place::all() {
        let mut study = open(&place, &mixed("random"));
        let mine = lost(&mut study);
        study.renewer().unwrap().renew(&[(mine.number, mine.token.clone())], 60.0).unwrap();
        assert_eq!(asked(&mut study).number, 1);
        // A wrong token prolongs nothing.
        let other = lost(&mut study);
        study.renewer().unwrap().renew(&[(other.number, mine.token)], 60.0).unwrap();
        assert_eq!(asked(&mut study).number, other.number);
    }
}

#[test]
fn points_that_are_being_run_are_not_asked_for_again() {
    let place = Place::sqlite();
    let small = definition(
        "[parameters]\na = { type = \"integer\", low = 1, high = 3 }\nb = { type = \"boolean\" }\n",
    );
    let mut study = open(&place, &small);
    let mut seen = HashSet::new();
    for n in 0..6 {
        // Half of them from another process; some fail.
        let trial = if n % 2 == 0 { asked(&mut study) } else { asked(&mut open(&place, &small)) };
        assert!(seen.insert(format!("{:?}", trial.values)), "{:?} comes twice", trial.values);
        if n % 3 == 0 {
            study
                .store()
                .tell("s", trial.number, &Outcome::Failed("no".to_string()), None)
                .unwrap();
        }
    }
    match study.ask(&Worker::this_process(), 60.0, None).unwrap() {
        Asked::Exhausted(reason) => assert!(reason.contains('6'), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn points_that_differ_only_where_a_condition_does_not_hold_are_one() {
    let place = Place::sqlite();
    // Four points: a1, a2, a3 and b; the other a's are forbidden.
    let small = definition(
        "forbidden = ['n > 3']\n[parameters]\nmode = { type = \"categorical\", choices = [\"a\", \"b\"] }\n\
         n = { type = \"integer\", low = 1, high = 30, condition = 'mode == \"a\"' }\n",
    );
    let mut study = open(&place, &small);
    let mut seen = HashSet::new();
    for n in 0..4 {
        let trial = asked(&mut study);
        assert!(seen.insert(format!("{:?}", trial.values)), "{:?} comes twice", trial.values);
        if n % 2 == 0 {
            study.store().tell("s", trial.number, &Outcome::Value(1.0), None).unwrap();
        }
    }
    match study.ask(&Worker::this_process(), 60.0, None).unwrap() {
        Asked::Exhausted(reason) => assert!(reason.contains("all 4 points"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_processes_share_trials_and_the_model() {
    for place in Place::all() {
        let definition = mixed("tree");
        let mut studies = [open(&place, &definition), open(&place, &definition)];
        let mut numbers = Vec::new();
        for n in 0..40 {
            let study = &mut studies[n % 2];
            let trial = asked(study);
            numbers.push(trial.number);
            // The other one tells.
            let outcome = outcome(&trial.values);
            studies[(n + 1) % 2]
                .store()
                .tell("s", trial.number, &outcome, Some(&trial.token))
                .unwrap();
        }
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
        let [one, two] = &mut studies;
        one.look().unwrap();
        two.look().unwrap();
        assert!(one.model().is_some());
        assert_eq!(one.model(), two.model());
        assert_eq!(one.best(), two.best());
    }
}

#[test]
fn defaults_and_start_points_come_first_and_the_queue_before_new_points() {
    for place in Place::all() {
        let text = r#"
            [parameters]
            a = { type = "real", low = 0, high = 1, default = 0.25 }
            b = { type = "integer", low = 0, high = 9, default = 3 }
            c = { type = "categorical", choices = ["u", "v"] }
            [[start]]
            a = 0.5
            b = 4
            c = "v"
        "#;
        let mut study = open(&place, &definition(text));
        let values = |trial: &AskedTrial| study_json(&trial.values);
        let first = asked(&mut study);
        assert_eq!(
            (first.number, &values(&first)[..2]),
            (0, &["0.25".to_string(), "3".to_string()][..])
        );
        assert!(first.values[2].is_some());
        let second = asked(&mut study);
        assert_eq!(
            (second.number, values(&second)),
            (1, ["0.5", "4", "v"].map(String::from).to_vec())
        );
        assert_eq!(study.enqueue(&vec![Some(Value::Real(0.125)), None, None]).unwrap(), 2);
        let none = study.enqueue(&vec![None, None, None]).unwrap_err().to_string();
        assert!(none.contains("no values"), "{none}");
        let waits = study.store().tell("s", 2, &Outcome::Value(1.0), None).unwrap_err().to_string();
        assert!(waits.contains("still in the queue"), "{waits}");
        let third = asked(&mut open(&place, &definition(text)));
        assert_eq!((third.number, values(&third)[0].as_str()), (2, "0.125"));
        assert_eq!(asked(&mut study).number, 3);
    }
}

fn study_json(values: &Values) -> Vec<String> {
    values.iter().map(|value| value.as_ref().map_or(String::new(), Value::to_string)).collect()
}

#[test]
fn no_more_trials_than_wanted_are_given() {
    for place in Place::all() {
        let mut study = open(&place, &mixed("random"));
        let here = Worker::this_process();
        for _ in 0..3 {
            assert!(matches!(study.ask(&here, 60.0, Some(3)).unwrap(), Asked::Trial(_)));
        }
        assert_eq!(study.ask(&here, 60.0, Some(3)).unwrap(), Asked::Enough { others_run: false });
        let past = (asked(&mut study).values, Outcome::Value(3.0), "file:1".to_string());
        assert_eq!(study.import(std::slice::from_ref(&past)).unwrap(), 1);
        // It is known by what it is, not by where it stands.
        let mut moved = past.clone();
        moved.2 = "elsewhere.csv, line 7".to_string();
        assert_eq!(study.import(&[past.clone(), moved.clone()]).unwrap(), 1);
        assert_eq!(study.import(&[moved.clone(), moved.clone()]).unwrap(), 0);
        moved.1 = Outcome::Value(77.0);
        assert_eq!(study.import(&[past, moved]).unwrap(), 1);
        study.look().unwrap();
        // Imported trials are not counted, but learned from.
        assert_eq!(study.begun(), 4);
        assert_eq!(study.best(), Some((4, 3.0)));
    }
}

#[test]
fn a_changed_study_is_refused_with_what_changed() {
    let place = Place::sqlite();
    let before = definition(MIXED);
    let mut study = open(&place, &before);
    for _ in 0..20 {
        step(&mut study);
    }
    let changed = |from: &str, to: &str| {
        assert!(MIXED.contains(from), "{from}");
        definition(&MIXED.replace(from, to))
    };
    let error = |definition: &Definition, allow: bool| match Study::open(
        place.store(),
        "s",
        definition.clone(),
        allow,
    ) {
        Err(error @ Error::Changed { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("was not refused"),
    };
    // Possible, but only on demand.
    let wider = changed("low = -2, high = 2", "low = -2, high = 3");
    assert_eq!(
        error(&wider, false),
        "study \"s\" has changed:\n  parameters.x.high: 2.0 → 3.0\nAllow the changes (`--allow-changes`; in Python, \
         allow_changes=True) to go on with the study as it is now, or undo them."
    );
    // Never possible.
    for (definition, expected) in [
        (
            changed("low = -2, high = 2", "low = -2, high = 1"),
            "parameters.x.high: 2.0 → 1.0  (earlier trials may lie outside)",
        ),
        (changed("\"a\", \"b\", 3", "\"a\", \"b\""), "parameters.mode.choices"),
        (changed("cache = { type = \"boolean\" }\n", ""), "parameters.cache"),
        (changed("cache =", "z = { type = \"boolean\" }\ncache ="), "parameters.z: not there → "),
        (changed("1.0, log = true", "1.0"), "parameters.rate.log: true → not there"),
        (changed("seed = 7", "goal = \"maximize\"\nseed = 7"), "goal: \"minimize\" → \"maximize\""),
        (changed("step = 4", "step = 2"), "parameters.width.step: 4 → 2"),
    ] {
        for allow in [false, true] {
            let error = error(&definition, allow);
            assert!(error.contains(expected) && error.contains("another name"), "{error}");
        }
    }
    // Possible: the old trials are there, and new values are reached.
    let more = definition(
        &MIXED
            .replace("low = -2, high = 2", "low = -2, high = 3")
            .replace("\"a\", \"b\", 3", "\"a\", \"b\", 3, \"c\"")
            .replace("seed = 7", "seed = 7\nbudget = { trials = 99 }"),
    );
    let (mut study, opening) = Study::open(place.store(), "s", more.clone(), true).unwrap();
    assert_eq!(opening.changes.len(), 3);
    study.look().unwrap();
    assert_eq!(study.begun(), 20);
    for _ in 0..10 {
        step(&mut study);
    }
    assert_eq!(
        view(&mut place.store(), None)
            .unwrap()
            .trials
            .iter()
            .filter(|trial| trial.values.is_some())
            .count(),
        30
    );
    // From now on this is the study.
    assert!(Study::open(place.store(), "s", more, false).unwrap().1.changes.is_empty());
    assert!(error(&before, false).contains("parameters.x.high: 3.0 → 2.0"));
}

#[test]
fn another_version_goes_on_with_the_settings_of_the_one_that_began() {
    let place = Place::sqlite();
    let mut older = definition(MIXED);
    // A default that was different then.
    older.method = boscage::Method::named("tree-paper").unwrap();
    open(&place, &older);
    let study = open(&place, &definition(MIXED));
    assert_eq!(study.definition().method, older.method);
}

#[test]
fn a_definition_can_be_stored_and_read() {
    for text in [MIXED, "[parameters]\nx = { type = \"boolean\" }\n"] {
        let definition = definition(text);
        let json = serde_json::to_value(&definition).unwrap();
        let back: Definition = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(back, definition);
        assert!(back.differences(&definition).is_empty());
        assert_eq!(json["format"], json!(1));
    }
}

#[test]
fn several_studies_in_one_store_do_not_meet() {
    for place in Place::all() {
        let definition = mixed("tree");
        for name in ["one", "two"] {
            let (mut study, opening) =
                Study::open(place.store(), name, definition.clone(), false).unwrap();
            assert!(opening.is_new);
            for n in 0..5 {
                let trial = asked(&mut study);
                assert_eq!(trial.number, n);
                study.store().tell(name, n, &Outcome::Value(n as f64), None).unwrap();
            }
        }
        let rows = place.store().studies().unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert!(rows.iter().all(|row| row.trials["COMPLETE"] == 5 && row.best == Some(0.0)));
        let several = view(&mut place.store(), None).unwrap_err().to_string();
        assert!(several.contains("several studies") && several.contains("one, two"), "{several}");
    }
}
