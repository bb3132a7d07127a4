//! The commands around a study, as a user runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

const STUDY: &str = r#"
seed = 3
goal = "maximize"
[parameters]
x = { type = "real", low = -5, high = 5, default = 0 }
n = { type = "integer", low = 1, high = 8, default = 2 }
mode = { type = "categorical", choices = ["plain", "$(touch x); rm -rf .", "-v", "two words"], default = "plain" }
[program]
command = ["./program", "{x}", "{n}", "{mode}"]
[budget]
trials = 12
"#;

/// Prints a value that depends on all three, and keeps its last argument.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\n' "$3" >> modes
awk -v x="$1" -v n="$2" -v l="${#3}" 'BEGIN { print -(x - 1.5)^2 - (n - 5)^2 - l / 10 }'
"#;

fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let program = folder.path().join("program");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn boscage(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_boscage"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("BOSCAGE_STORAGE")
        .output()
        .unwrap()
}

/// The standard output of a command that must succeed.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = boscage(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and message of a command that must fail.
fn refused(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = boscage(folder, arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn trials(folder: &Path) -> Vec<Json> {
    let lines = done(folder, &["export", "study.db", "--format", "jsonl", "--out", "-"]);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_study_from_its_beginning_to_its_report() {
    let folder = folder();
    let folder = folder.path();
    let check = done(folder, &["tune", "study.toml", "--check"]);
    assert!(
        check.contains("x = 0.0")
            && check.contains("result: -11.75")
            && check.contains("nothing was stored"),
        "{check}"
    );
    assert!(!folder.join("study.db").exists());

    let tuned = done(folder, &["tune", "study.toml"]);
    assert!(tuned.contains("ended: the study has 12 trials, as budget.trials says"), "{tuned}");
    assert!(tuned.contains("report: study.html"), "{tuned}");
    assert!(std::fs::read_to_string(folder.join("study.html")).unwrap().contains("</html>"));
    let found = trials(folder);
    assert_eq!(found.len(), 12);
    // The defaults come first, and every choice reached the program as it is.
    assert_eq!(found[0]["params"], serde_json::json!({"x": 0.0, "n": 2, "mode": "plain"}));
    assert_eq!(found[0]["value"], -11.75);
    let modes: Vec<&str> =
        found.iter().map(|trial| trial["params"]["mode"].as_str().unwrap()).collect();
    let seen = std::fs::read_to_string(folder.join("modes")).unwrap();
    assert_eq!(seen.lines().skip(1).collect::<Vec<_>>(), modes);
    assert!(!folder.join("x").exists());

    // Nothing more to do.
    let again = boscage(folder, &["tune", "study.toml"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(trials(folder), found);

    let best = found.iter().map(|trial| trial["value"].as_f64().unwrap()).fold(f64::MIN, f64::max);
    let shown: Json = serde_json::from_str(&done(folder, &["show", "study.db", "--json"])).unwrap();
    assert_eq!(shown["best"]["value"].as_f64(), Some(best));
    assert!(done(folder, &["show", "study.toml"]).contains("Best outcome"));
    let studies: Json = serde_json::from_str(&done(folder, &["studies", "--json"])).unwrap();
    assert_eq!(studies[0]["name"], "study");
    assert_eq!(studies[0]["trials"]["COMPLETE"], 12);
    assert!(done(folder, &["studies", "study.db"]).contains("12 complete"));
    done(folder, &["report", "study.db", "--out", "page.html"]);
    assert!(folder.join("page.html").exists());
    for file in ["trials.csv", "trials.jsonl", "trials.parquet"] {
        assert!(done(folder, &["export", "study.toml", "--out", file]).contains("12 trials"));
        assert!(folder.join(file).metadata().unwrap().len() > 500);
    }
}

#[test]
fn events_as_json_lines() {
    let folder = folder();
    let output = done(folder.path(), &["tune", "study.toml", "--json", "--trials", "3"]);
    let events: Vec<Json> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["opened", "began", "ended", "began", "ended", "began", "ended", "finished"]);
    assert_eq!(events[1]["params"]["n"], 2);
    assert_eq!(events[2]["value"], -11.75);
    assert_eq!(events[7]["best"]["trial"].as_u64(), events[6]["best"]["trial"].as_u64());
    assert!(events[7]["reason"].as_str().unwrap().contains("3 trials"));
}

#[test]
fn ask_and_tell_from_a_script() {
    let folder = folder();
    let folder = folder.path();
    let asked =
        |arguments: &[&str]| -> Json { serde_json::from_str(&done(folder, arguments)).unwrap() };
    let first = asked(&["ask", "study.toml"]);
    assert_eq!(
        (first["number"].as_u64(), first["params"]["mode"].as_str()),
        (Some(0), Some("plain"))
    );
    let second = asked(&["ask", "study.db"]);
    assert_eq!(second["number"], 1);
    assert_ne!(first["params"], second["params"]);
    assert_eq!(done(folder, &["tell", "study.toml", "0", "-1.5e3"]), "trial 0 is told\n");
    assert_eq!(
        done(folder, &["tell", "study.db", "0", "-1500"]),
        "trial 0 is told; it was told before\n"
    );
    done(folder, &["tell", "study.db", "1", "--failed", "no licence"]);
    for (arguments, expected) in [
        (
            &["tell", "study.db", "0", "1"][..],
            "error: trial 0 has the value -1500.0; it cannot be told anything else",
        ),
        (
            &["tell", "study.db", "7", "1"],
            "error: study \"study\" has no trial 7; `boscage show` lists its trials",
        ),
        (
            &["tell", "study.db", "1", "nan"],
            "error: nan is not a finite number; tell --failed with a reason instead",
        ),
        (&["tell", "study.db", "1", "much"], "error: \"much\" is not a number"),
        (&["tell", "other.db", "1", "1"], "error: there is no file other.db"),
    ] {
        let (code, message) = refused(folder, arguments);
        assert_eq!(code, 2);
        assert!(message.starts_with(expected), "{message}");
    }
    // A trial that nobody told in time comes again, the same.
    let third = asked(&["ask", "study.db", "--lease-seconds", "0.000001"]);
    let again = asked(&["ask", "study.db"]);
    assert_eq!(
        (&again["number"], &again["params"], again["attempt"].as_u64()),
        (&third["number"], &third["params"], Some(2))
    );
    let (code, message) = refused(folder, &["ask", "study.db", "--trials", "3"]);
    assert_eq!((code, message.as_str()), (1, "the study has 3 trials\n"));
    let found = trials(folder);
    assert_eq!(found[1]["failure"], "no licence");
    assert_eq!(found[2]["state"], "RUNNING");
}

#[test]
fn queue_and_past_results() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &["tune", "study.toml", "--trials", "1", "-q", "--no-report"]);
    assert!(!folder.join("study.html").exists());
    assert_eq!(
        done(folder, &["enqueue", "study.toml", "x=1.25", "mode=-v"]),
        "trial 1 is in the queue\n"
    );
    for (arguments, expected) in [
        (&["enqueue", "study.toml", "x=9"][..], "parameter \"x\": 9 is not between -5 and 5"),
        (&["enqueue", "study.toml", "m=1"], "there is no parameter \"m\"; did you mean \"n\"?"),
        (&["enqueue", "study.toml", "x"], "\"x\" is not NAME=VALUE"),
        (&["enqueue", "study.toml", "x=1", "x=2"], "x is given twice"),
    ] {
        let (code, message) = refused(folder, arguments);
        assert_eq!(code, 2);
        assert!(message.contains(expected), "{message}");
    }
    std::fs::write(
        folder.join("past.csv"),
        "mode,x,n,loss,day\nplain,1,5,-0.75,Monday\ntwo words,2,4,,Tuesday\n",
    )
    .unwrap();
    let imported = done(folder, &["import", "study.toml", "past.csv", "--value-column", "loss"]);
    assert!(
        imported.contains("2 of 2 results are new") && imported.contains("ignored: day"),
        "{imported}"
    );
    assert!(
        done(folder, &["import", "study.toml", "past.csv", "--value-column", "loss"])
            .contains("0 of 2")
    );
    done(folder, &["tune", "study.toml", "--trials", "3"]);
    let found = trials(folder);
    assert_eq!(found.len(), 5);
    assert_eq!(
        (&found[1]["params"]["x"], &found[1]["params"]["mode"]),
        (&1.25.into(), &"-v".into())
    );
    assert_eq!(found[2]["value"], -0.75);
    assert_eq!(found[3]["state"], "FAIL");
    let best: Json =
        serde_json::from_str(&done(folder, &["show", "study.toml", "--json"])).unwrap();
    assert_eq!(best["best"]["trial"], 2);
}

#[test]
fn a_target_ends_a_study_and_no_value_at_all_is_exit_code_1() {
    let folder = folder();
    let folder = folder.path();
    let tuned = done(folder, &["tune", "study.toml", "--target", "-11.75", "-q"]);
    assert!(
        tuned.contains("ended: a value as good as budget.target, -11.75, was found"),
        "{tuned}"
    );
    assert_eq!(trials(folder).len(), 1);

    let failing = STUDY.replace("\"./program\"", "\"false\"").replace("trials = 12", "trials = 2");
    std::fs::write(folder.join("failing.toml"), failing).unwrap();
    let (code, message) = refused(folder, &["tune", "failing.toml"]);
    assert_eq!(code, 1);
    assert!(
        message.contains("trial 1: failed") && message.contains("no trial gave a value"),
        "{message}"
    );
    let (code, message) = refused(folder, &["tune", "failing.toml", "--check"]);
    assert_eq!(code, 1);
    assert!(message.contains("ended with exit code 1"), "{message}");
}

#[test]
fn messages_say_what_to_do_next() {
    let folder = folder();
    let folder = folder.path();
    for (arguments, expected) in [
        (&["tune", "nothing.toml"][..], "`boscage init` writes one to begin with"),
        (&["show", "nothing.db"], "begin one with `boscage init`"),
        (&["show", "study.toml"], "`boscage tune study.toml` begins it"),
        (&["tune", "mysql://host/x"], "use a path (SQLite) or postgresql://"),
        (&["studies", "mysql://me:secret@host/x"], "mysql://me:…@host/x"),
        (&["studies", "postgresql://me:secret@127.0.0.1:1/x"], "postgresql://me:…@127.0.0.1:1/x"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_boscage"))
            .args(arguments)
            .current_dir(folder)
            .env("BOSCAGE_PATIENCE", "0")
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn the_example_that_comes_with_boscage() {
    let folder = TempDir::new().unwrap();
    let ended = done(folder.path(), &["tune", "example"]);
    for expected in ["oven_celsius", "report: boscage-example/study.html", "act together"] {
        assert!(ended.contains(expected), "{expected}: {ended}");
    }
    // Of 58.9 with the defaults nearly everything is gone.
    let best = ended.split_once("Best outcome: ").unwrap().1;
    let best: f64 = best.split_whitespace().next().unwrap().parse().unwrap();
    assert!(best < 2.0, "{ended}");
    // The pairs that the program couples.
    let shown: Json = serde_json::from_str(&done(
        folder.path(),
        &["show", "boscage-example/study.toml", "--json"],
    ))
    .unwrap();
    let text = shown.to_string();
    assert!(text.contains("bake_minutes") && text.contains("proof_hours"), "{text}");
}

#[test]
fn a_program_that_is_not_there_costs_no_trial() {
    let folder = folder();
    let folder = folder.path();
    std::fs::rename(folder.join("program"), folder.join("elsewhere")).unwrap();
    for _ in 0..6 {
        let (code, message) = refused(folder, &["tune", "study.toml", "--jobs", "2"]);
        assert_eq!(code, 2);
        assert!(
            message.contains("could not be started") && message.contains("there is no file"),
            "{message}"
        );
    }
    assert!(trials(folder).iter().all(|trial| trial["state"] == "RUNNING"));
    std::fs::rename(folder.join("elsewhere"), folder.join("program")).unwrap();
    done(folder, &["tune", "study.toml"]);
    let found = trials(folder);
    assert_eq!(found.len(), 12);
    assert!(found.iter().all(|trial| trial["state"] == "COMPLETE"));
}

#[test]
fn a_check_looks_at_the_store_too() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &["tune", "study.toml", "--trials", "1", "-q"]);
    assert!(done(folder, &["tune", "study.toml", "--check"]).contains("the study can begin"));
    let study = folder.join("study.toml");
    std::fs::write(&study, STUDY.replace("high = 5,", "high = 6,")).unwrap();
    let (code, message) = refused(folder, &["tune", "study.toml", "--check"]);
    assert_eq!(code, 2);
    assert!(
        message.contains("parameters.x.high: 5.0 → 6.0")
            && message.contains("--allow-changes goes on"),
        "{message}"
    );
    std::fs::write(&study, STUDY.replace("high = 5,", "high = 4,")).unwrap();
    let (_, message) = refused(folder, &["tune", "study.toml", "--check"]);
    assert!(
        message.contains("earlier trials may lie outside") && message.contains("another name"),
        "{message}"
    );
    std::fs::write(
        folder.join("study.db"),
        "something else, and long enough to be looked at".repeat(30),
    )
    .unwrap();
    assert_eq!(refused(folder, &["tune", "study.toml", "--check"]).0, 2);
}

#[test]
fn a_result_with_the_token_of_an_earlier_attempt_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let asked =
        |arguments: &[&str]| -> Json { serde_json::from_str(&done(folder, arguments)).unwrap() };
    let late = asked(&["ask", "study.toml", "--lease-seconds", "0.000001"]);
    let now = asked(&["ask", "study.toml"]);
    assert_eq!(late["number"], now["number"]);
    let token = |trial: &Json| trial["token"].as_str().unwrap().to_string();
    let (code, message) =
        refused(folder, &["tell", "study.toml", "0", "1", "--token", &token(&late)]);
    assert_eq!(code, 2);
    assert!(message.contains("was given to another worker"), "{message}");
    done(folder, &["tell", "study.toml", "0", "1", "--token", &token(&now)]);
}
