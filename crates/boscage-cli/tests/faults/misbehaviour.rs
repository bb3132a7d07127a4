//! Programs that do not do what they should: each is one trial with a clear reason, and the study goes on.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value as Json;

use crate::support::{Scene, assert_ended_without_gaps, states};

/// What a program does, and what has to come of it: a value, or words of the reason.
type Deed = (&'static str, Result<f64, &'static str>);

/// Those that end by themselves or by their use of CPU time or memory.
const DEEDS: [Deed; 20] = [
    ("echo 0.5", Ok(0.5)),
    // Children and grandchildren that outlive it.
    ("(sleep 600 & sleep 600 & wait) & sleep 600 & echo 2.5", Ok(2.5)),
    ("nohup sleep 600 > /dev/null 2>&1 & echo 3.5", Ok(3.5)),
    ("head -c 100000000 /dev/zero | tr '\\0' '\\n'; echo 4.5", Ok(4.5)),
    ("head -c 100000000 /dev/zero | tr '\\0' 'x'", Err("there is no number")),
    ("head -c 100000000 /dev/zero | tr '\\0' 'x' >&2; echo 6.5", Ok(6.5)),
    ("echo 1; echo NaN", Err("gave NaN as its result")),
    ("echo 1; echo inf", Err("gave inf as its result")),
    ("echo 1; echo -inf", Err("gave -inf as its result")),
    (":", Err("there is no number; its output is empty")),
    ("echo 1e999", Err("gave inf as its result")),
    ("echo 1e300", Ok(1e300)),
    ("echo -1.7e308", Ok(-1.7e308)),
    ("kill -SEGV $$", Err("was ended by signal 11 (SEGV)")),
    ("kill -KILL $$", Err("was ended by signal 9 (KILL: perhaps the system had no memory left)")),
    (
        "echo 1; echo it is broken >&2; exit 3",
        Err("exit code 3; its error output ends with\n  it is broken"),
    ),
    (
        "awk 'BEGIN { while (1) held[i++] = sprintf(\"%1000d\", i) }'; echo 1",
        Err("used more than 200000000 bytes of memory"),
    ),
    ("while :; do :; done", Err("used more than 4 s of CPU time")),
    // Ends whoever is in its process group.
    ("echo 1; kill -TERM 0; sleep 600", Err("was ended by signal 15 (TERM)")),
    ("echo 1; kill -KILL 0; sleep 600", Err("was ended by signal 9")),
];

/// Those that only the clock ends.
const ENDLESS: [Deed; 3] = [
    // Ignores the request to end, and so do its children.
    (
        "trap '' TERM; sleep 600 & while :; do sleep 1; done",
        Err("took longer than 2 s and was ended"),
    ),
    ("exec >&- 2>&-; sleep 600", Err("took longer than 2 s")),
    ("sleep 600 & sleep 600", Err("took longer than 2 s")),
];

fn study(deeds: &[&str], limits: &str, more: &str) -> Scene {
    let scene = Scene::new(&format!(
        r#"
        [parameters]
        x = {{ type = "real", low = 0, high = 1 }}
        [program]
        command = ["sh", "program.sh", "{{trial}}", "{{x}}"]
        {limits}
        {more}
        "#
    ));
    let mut script = "echo $1 >> log\ncase $1 in\n".to_string();
    for (number, deed) in deeds.iter().enumerate() {
        script += &format!("{number}) {deed} ;;\n");
    }
    scene.write("program.sh", script + "*) echo 0.25 ;;\nesac\n");
    scene
}

#[test]
fn each_misbehaviour_is_one_trial_with_a_reason() {
    assert_reasons(&DEEDS, "timeout_seconds = 100\ncpu_seconds = 4\nmemory_bytes = 200000000");
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    assert_reasons(&ENDLESS, "timeout_seconds = 2");
}

fn assert_reasons(expected: &[Deed], limits: &str) {
    let deeds: Vec<&str> = expected.iter().map(|(deed, _)| *deed).collect();
    let wanted = deeds.len() + 3;
    for jobs in ["1", "3"] {
        let scene = study(&deeds, limits, "");
        let begin = Instant::now();
        scene.tune(&["--trials", &wanted.to_string(), "--jobs", jobs]);
        scene.assert_no_orphans(&[]);
        let trials = scene.trials();
        assert_ended_without_gaps(&trials);
        assert_eq!(trials.len(), wanted);
        assert_eq!(scene.read("log").lines().count(), wanted, "each was run once");
        let shown = scene.run(&["show", "study.toml", "--json"]);
        let shown: Json = serde_json::from_str(&shown.stdout).unwrap();
        let listed: BTreeMap<u64, &str> = shown["failures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["trial"].as_u64().unwrap(), one["reason"].as_str().unwrap()))
            .collect();
        for (trial, (deed, expected)) in trials.iter().zip(expected) {
            match expected {
                Ok(value) => {
                    assert_eq!(trial["state"], "COMPLETE", "{deed}: {trial}");
                    assert_eq!(trial["value"].as_f64(), Some(*value), "{deed}: {trial}");
                }
                Err(words) => {
                    assert_eq!(trial["state"], "FAIL", "{deed}: {trial}");
                    let reason = trial["failure"].as_str().unwrap();
                    assert!(reason.contains(words), "{deed}: {reason}");
                    assert!(reason.starts_with(&format!("`sh program.sh {} ", trial["number"])));
                    assert!(reason.len() < 10_000, "{deed}: {} bytes", reason.len());
                    assert_eq!(listed[&trial["number"].as_u64().unwrap()], reason, "{deed}");
                }
            }
        }
        for trial in &trials[deeds.len()..] {
            assert_eq!(trial["value"].as_f64(), Some(0.25), "the study goes on: {trial}");
        }
        println!(
            "{} deeds, {jobs} jobs: {:?} after {:.0} s, no orphans",
            deeds.len(),
            states(&trials),
            begin.elapsed().as_secs_f64()
        );
    }
}

#[test]
fn failures_are_ignored_run_again_or_scored() {
    let deeds = ["echo 3", "echo 8", "exit 1", "echo 5", "exit 1", "echo 1"];
    let of = |more: &str| {
        let scene = study(&deeds, "", more);
        scene.tune(&["--trials", "6"]);
        let trials = scene.trials();
        assert_ended_without_gaps(&trials);
        let runs = |number: &str| scene.read("log").lines().filter(|line| *line == number).count();
        let values: Vec<Option<f64>> = trials.iter().map(|trial| trial["value"].as_f64()).collect();
        (values, trials, [runs("1"), runs("2"), runs("4")])
    };
    let reason = |trial: &Json| trial["failure"].as_str().unwrap_or_default().to_string();

    let (values, trials, runs) = of("");
    assert_eq!(values, [Some(3.0), Some(8.0), None, Some(5.0), None, Some(1.0)]);
    assert_eq!(states(&trials)["FAIL"], 2);
    assert_eq!(runs, [1, 1, 1]);

    let (values, _, runs) = of("[failure]\nretries = 3");
    assert_eq!(values, [Some(3.0), Some(8.0), None, Some(5.0), None, Some(1.0)]);
    assert_eq!(runs, [1, 4, 4]);

    let (values, trials, runs) = of("[failure]\nretries = 1\nscore = 100");
    assert_eq!(values, [3.0, 8.0, 100.0, 5.0, 100.0, 1.0].map(Some));
    assert_eq!(runs, [1, 2, 2]);
    assert!(reason(&trials[2]).contains("ended with exit code 1"), "{}", trials[2]);

    let (values, trials, _) = of("[failure]\nscore = \"worst\"");
    assert_eq!(values, [3.0, 8.0, 8.0, 5.0, 8.0, 1.0].map(Some));
    assert!(reason(&trials[4]).contains("ended with exit code 1"), "{}", trials[4]);
    // The goal says what is worst. It is said before the tables.
    let scene = study(&deeds, "", "[failure]\nscore = \"worst\"");
    let text = format!("goal = \"maximize\"\n{}", scene.read("study.toml"));
    scene.write("study.toml", text);
    scene.tune(&["--trials", "6"]);
    let values: Vec<Option<f64>> =
        scene.trials().iter().map(|trial| trial["value"].as_f64()).collect();
    assert_eq!(values, [3.0, 8.0, 3.0, 5.0, 3.0, 1.0].map(Some));

    // Nothing is worst of nothing.
    let scene = study(&["exit 1", "echo 5", "exit 1"], "", "[failure]\nscore = \"worst\"");
    scene.tune(&["--trials", "3"]);
    let trials = scene.trials();
    assert_eq!(trials[0]["state"], "FAIL");
    assert_eq!(trials[2]["value"].as_f64(), Some(5.0));
    println!("4 policies, 2 failures each: values, reasons and numbers of runs as stated");
}

#[test]
fn a_retry_that_goes_well_counts() {
    let deeds = ["echo 3", "if [ -e second ]; then echo 7; else touch second; exit 1; fi"];
    let scene = study(&deeds, "", "[failure]\nretries = 2");
    let ran = scene.tune(&["--trials", "3"]);
    let trials = scene.trials();
    assert_eq!(trials[1]["value"].as_f64(), Some(7.0));
    assert_eq!(trials[1]["failure"], Json::Null);
    assert_eq!(scene.read("log"), "0\n1\n1\n2\n");
    assert_eq!(ran.stdout.matches("\"retried\"").count(), 1);
}

#[test]
fn no_trial_with_a_value_is_exit_code_1() {
    let scene = study(&["exit 1", "exit 1", "exit 1"], "", "");
    let ran = scene.run(&["tune", "study.toml", "--no-report", "--trials", "3"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let shown = scene.run(&["show", "study.toml"]).stdout;
    assert!(shown.contains("\nWhat failed\n  trial 0: `sh program.sh 0 "), "{shown}");
    assert!(ran.stderr.ends_with(
        "no trial gave a value; `boscage show` tells why each failed, and `boscage tune --check` runs one by hand\n"
    ));
}
