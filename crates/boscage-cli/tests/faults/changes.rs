//! A study file that has changed since the study was begun.

use crate::support::{Scene, assert_ended_without_gaps, essence};

const STUDY: &str = r#"
seed = 1
method = "tree"
[parameters]
rate = { type = "real", low = 0.1, high = 1 }
layers = { type = "integer", low = 1, high = 8 }
mode = { type = "categorical", choices = ["a", "b"] }
[program]
command = ["sh", "-c", "echo {rate} {layers}", "program", "{mode}"]
[budget]
trials = 6
"#;

/// A study of six trials.
fn begun() -> Scene {
    let scene = Scene::new(STUDY);
    scene.tune(&[]);
    scene
}

fn change(scene: &Scene, pairs: &[(&str, &str)]) {
    let mut text = STUDY.to_string();
    for (before, after) in pairs {
        assert_eq!(text.matches(before).count(), 1, "{before}");
        text = text.replace(before, after);
    }
    scene.write("study.toml", text);
}

#[test]
fn changes_are_listed_and_need_permission() {
    let scene = begun();
    let before = essence(&scene.trials());
    change(
        &scene,
        &[
            ("low = 0.1, high = 1 ", "low = 0.01, high = 2 "),
            ("low = 1, high = 8", "low = 0, high = 12"),
            ("\"b\"]", "\"b\", \"c\"]"),
            ("trials = 6", "trials = 9"),
            ("seed = 1", "seed = 2"),
            ("\"tree\"", "\"random\""),
            ("echo {rate}", "echo 1{layers} {rate}"),
        ],
    );
    let refused = scene.run(&["tune", "study.toml", "--no-report"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(refused.stderr, @r#"
    error: study "study" has changed:
      seed: 1 → 2
      parameters.rate.high: 1.0 → 2.0
      parameters.rate.low: 0.1 → 0.01
      parameters.layers.high: 8 → 12
      parameters.layers.low: 1 → 0
      parameters.mode.choices: ["a","b"] → ["a","b","c"]
      method.name: "tree" → "random"
      program.command: ["sh","-c","echo {rate} {layers}","program","{mode}"] → ["sh","-c","echo 1{layers} {rate} {layers}","program","{mode}"]
      budget.trials: 6 → 9
    Allow the changes (`--allow-changes`; in Python, allow_changes=True) to go on with the study as it is now, or undo them.
    "#);
    assert_eq!(essence(&scene.trials()), before, "nothing was changed");

    let allowed = scene.run(&["tune", "study.toml", "--no-report", "--allow-changes"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert_eq!(allowed.stderr.matches("changed: ").count(), 9, "{}", allowed.stderr);
    let trials = scene.trials();
    assert_ended_without_gaps(&trials);
    assert_eq!(trials.len(), 9);
    assert_eq!(essence(&trials[..6]), before);
    // Now it is as the file says; nothing has to be allowed.
    scene.tune(&["--trials", "11"]);
    assert_eq!(scene.trials().len(), 11);
    println!("9 compatible changes: refused with a list, allowed on demand, 6 earlier trials kept");
}

#[test]
fn changes_that_earlier_trials_contradict_are_never_allowed() {
    let scene = begun();
    let before = essence(&scene.trials());
    let mut texts = Vec::new();
    for (was, is) in [
        ("seed = 1", "seed = 1\ngoal = \"maximize\""),
        ("low = 0.1, high = 1 ", "low = 0.2, high = 1 "),
        ("low = 0.1, high = 1 ", "low = 0.1, high = 0.9 "),
        ("low = 0.1, high = 1 ", "low = 0.1, high = 1, log = true "),
        ("low = 1, high = 8", "low = 2, high = 8"),
        ("low = 1, high = 8", "low = 1, high = 8, step = 2"),
        ("\"integer\"", "\"real\""),
        ("[\"a\", \"b\"]", "[\"a\"]"),
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]"),
        ("[program]", "more = { type = \"boolean\" }\n[program]\nparameters_in_environment = true"),
        ("mode = { type = \"categorical\", choices = [\"a\", \"b\"] }\n", ""),
    ] {
        let mut pairs = vec![(was, is)];
        if is.is_empty() {
            pairs.push(("\"{mode}\"", "\"mode\""));
        }
        change(&scene, &pairs);
        for arguments in [&["--no-report"][..], &["--no-report", "--allow-changes"]] {
            let ran = scene.run(&[&["tune", "study.toml"], arguments].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{is}: {}", ran.stderr);
            assert!(ran.stderr.ends_with(
                "The study cannot go on with all of this: undo what is marked, or give the study another name.\n"
            ));
            if arguments.len() == 2 {
                let marked = ran.stderr.lines().filter(|line| line.starts_with("  "));
                texts.push(marked.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    insta::assert_snapshot!(texts.join("\n\n"), @r#"
    goal: "minimize" → "maximize"  (outcomes would mean something else)

    parameters.rate.low: 0.1 → 0.2  (earlier trials may lie outside)

    parameters.rate.high: 1.0 → 0.9  (earlier trials may lie outside)

    parameters.rate.log: not there → true  (earlier trials may not fit)

    parameters.layers.low: 1 → 2  (earlier trials may lie outside)

    parameters.layers.step: not there → 2  (earlier trials may not fit)

    parameters.layers.high: 8 → 8.0  (earlier trials may not fit)
    parameters.layers.low: 1 → 1.0  (earlier trials may not fit)
    parameters.layers.type: "integer" → "real"  (earlier trials may not fit)

    parameters.mode.choices: ["a","b"] → ["a"]  (earlier trials may not fit)

    parameters.mode.choices: ["a","b"] → ["a","c"]  (earlier trials may not fit)

    parameters.more: not there → {"name":"more","type":"boolean"}  (earlier trials have no value for it)
    program.parameters_in_environment: false → true

    parameters.mode: {"choices":["a","b"],"name":"mode","type":"categorical"} → not there  (earlier trials have it; give it a range of one value instead)
    program.command: ["sh","-c","echo {rate} {layers}","program","{mode}"] → ["sh","-c","echo {rate} {layers}","program","mode"]
    "#);
    change(&scene, &[]);
    scene.tune(&[]);
    assert_eq!(essence(&scene.trials()), before);
    println!("{} incompatible changes: never allowed, nothing changed", texts.len());
}
