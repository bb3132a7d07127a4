//! The program killed at random points and started again stores what an uninterrupted run stores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use boscage_bench::results::read_runs;

const RECIPE: &str = r#"
name = "killed"
title = "A small star"
seeds = 2
trials = 120
initial_points = 5

[problems.star]
kind = "additive"
levels = 11
graph = { shape = "star", vertices = 6 }

[methods.tree]

[methods.tree-paper]

[methods.random]
"#;

fn bench(recipe: &Path, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boscage"));
    command
        .args(["bench", "run"])
        .arg(recipe)
        .arg("--out")
        .arg(out)
        .args(["--jobs", "2", "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The text of every file of results without times, by path.
fn stored(out: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for run in read_runs(out).unwrap() {
        let name = run.path.strip_prefix(out).unwrap().to_path_buf();
        let mut text = String::new();
        for line in std::fs::read_to_string(&run.path).unwrap().lines() {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            let object = line.as_object_mut().unwrap();
            object.remove("timing");
            object.remove("started");
            text += &format!("{line}\n");
        }
        all.insert(name, text);
    }
    all
}

#[test]
fn killed_at_random_points_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = folder.path().join("recipe.toml");
    std::fs::write(&recipe, RECIPE).unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let begin = Instant::now();
    assert!(bench(&recipe, &whole).status().unwrap().success());
    let whole_time = begin.elapsed();
    let expected = stored(&whole);
    assert_eq!(expected.len(), 2 * 3);

    let mut kills = 0;
    let mut share: f64 = 0.1;
    loop {
        let mut child = bench(&recipe, &killed).spawn().unwrap();
        // An irregular sequence of pauses, so that kills hit asks, learning, writing and starting up.
        share = (share * 7.3 + 0.31).fract();
        std::thread::sleep(whole_time.mul_f64(0.03 + 0.2 * share) + Duration::from_millis(3));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => {
                // SIGKILL: the process has no chance to tidy up.
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
        // Each start gets at least one trial done in the end; a run that never ends fails here.
        assert!(kills < 500, "it does not come to an end");
        if kills > 60 {
            assert!(bench(&recipe, &killed).status().unwrap().success());
            break;
        }
    }
    assert!(kills >= 3, "the test must interrupt: {kills} kills");
    assert_eq!(stored(&killed), expected, "after {kills} kills");
}
