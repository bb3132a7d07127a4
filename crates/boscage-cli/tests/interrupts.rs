//! Ctrl-C and other signals to end: what is stored, which code is left, and that no external program outlives boscage.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

const MESSAGE: &str = "finishing the trials that are being run; press again to stop at once";

/// The program notes a child of its own that sleeps for long, and ends when there is a file `go`.
const RECIPE: &str = r#"
name = "slow"
seeds = 1
trials = 2
initial_points = 1
[problems.slow]
kind = "program"
parameters = [{ name = "x", type = "real", low = 0, high = 1 }]
program.command = ["sh", "-c", "sleep 600 & echo $! > new; mv new sleeper; while [ ! -e go ]; do sleep 0.02; done; echo $1", "slow", "{x}"]
[methods.random]
"#;

/// The program on the recipe, and its error output.
fn start(folder: &Path, command: &mut Command) -> (Child, Lines<BufReader<ChildStderr>>) {
    std::fs::write(folder.join("slow.toml"), RECIPE).unwrap();
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    (child, said)
}

fn boscage(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boscage"));
    command.args(arguments);
    command
}

fn send(signal: &str, to: &Child) {
    assert!(Command::new("kill").args([signal, &to.id().to_string()]).status().unwrap().success());
}

fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// The number of the sleeping process, once there is one.
fn sleeper(folder: &Path, boscage: &mut Child) -> u32 {
    loop {
        if let Ok(number) = std::fs::read_to_string(folder.join("sleeper")) {
            return number.trim().parse().unwrap();
        }
        assert_eq!(boscage.try_wait().unwrap(), None, "it ended before the program began");
        pause();
    }
}

/// Whether this process runs. One that has ended may stay in the system's list until somebody asks for its exit code.
fn is_alive(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// A killed process takes a moment to end; one that sleeps for ten minutes does not end while we look.
fn ends(process: u32) -> bool {
    (0..500).any(|_| {
        pause();
        !is_alive(process)
    })
}

/// Lines of the one file of results: one for the start, one for each trial.
fn stored(folder: &Path) -> usize {
    let path = folder.join("results/slow/slow/random/seed-0000.jsonl");
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn the_second_interrupt_kills_running_programs_and_stores_no_failure() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, mut said) =
            start(folder.path(), &mut boscage(&["bench", "run", "slow.toml"]));
        let sleeper = sleeper(folder.path(), &mut child);
        send(signal, &child);
        assert_eq!(said.next().unwrap().unwrap(), MESSAGE);
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(is_alive(sleeper), "the first interrupt waits for the program");
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert!(ends(sleeper), "{signal}: {sleeper} outlives boscage");
        // A program that we have killed has not failed.
        assert_eq!(stored(folder.path()), 1, "{signal}");
    }
}

#[test]
fn the_first_interrupt_waits_for_the_running_program_and_stores_its_trial() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, mut said) =
            start(folder.path(), &mut boscage(&["bench", "run", "slow.toml"]));
        let sleeper = sleeper(folder.path(), &mut child);
        send(signal, &child);
        assert_eq!(said.next().unwrap().unwrap(), MESSAGE);
        std::fs::write(folder.path().join("go"), "").unwrap();
        let last = said.last().unwrap().unwrap();
        assert!(last.starts_with("stopped; what is complete is in results/slow"), "{last}");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(stored(folder.path()), 2, "{signal}");
        assert!(ends(sleeper), "{signal}");
    }
}

#[test]
fn a_closed_terminal_does_not_end_what_was_started_to_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "trap '' HUP; exec \"$0\" bench run slow.toml",
        env!("CARGO_BIN_EXE_boscage"),
    ]);
    let (mut child, said) = start(folder.path(), &mut command);
    sleeper(folder.path(), &mut child);
    send("-HUP", &child);
    std::fs::write(folder.path().join("go"), "").unwrap();
    let said: Vec<String> = said.map(Result::unwrap).collect();
    assert!(!said.iter().any(|line| line == MESSAGE), "{said:?}");
    assert!(child.wait().unwrap().success(), "{said:?}");
    assert_eq!(stored(folder.path()), 1 + 3);
}

#[test]
fn the_first_interrupt_of_a_dry_run_kills_the_program_that_it_measures() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, _said) =
        start(folder.path(), &mut boscage(&["bench", "run", "slow.toml", "--dry-run"]));
    let sleeper = sleeper(folder.path(), &mut child);
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(ends(sleeper), "{sleeper} outlives boscage");
}

#[test]
fn an_interrupt_stops_the_runs_for_claims() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut said) = start(
        folder.path(),
        &mut boscage(&["bench", "claims", "star25", "--run", "--profile", "full", "--jobs", "1"]),
    );
    // The log of the runner: from then on there are runs.
    while !folder.path().join("results/star25/sessions.jsonl").exists() {
        assert_eq!(child.try_wait().unwrap(), None);
        pause();
    }
    send("-INT", &child);
    // Another line only comes at the end of a run, of which there are hours.
    assert_eq!(said.next().unwrap().unwrap(), MESSAGE);
    let last = said.last().unwrap().unwrap();
    assert_eq!(
        last,
        "stopped; what is complete is in results, and the same command goes on from there"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn claims_are_judged_with_code_1_if_runs_failed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "claims", "camelback-default", "--run", "--profile", "smoke"];
    let output = || boscage(&arguments).current_dir(folder.path()).output().unwrap();
    let good = output();
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    // A run that another version has begun cannot be continued.
    let results = std::fs::read_dir(folder.path().join("results")).unwrap();
    let problem = results.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut run = problem;
    while run.is_dir() {
        let entries = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
        run = entries
            .filter(|path| path.is_dir() || path.ends_with("seed-0000.jsonl"))
            .min()
            .unwrap();
    }
    let text = std::fs::read_to_string(&run).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    let begun: Vec<&str> = text.lines().take(2).collect();
    let begun = begun.join("\n").replace(&version, "\"version\":\"0.0.0\"");
    std::fs::write(&run, begun + "\n").unwrap();
    let bad = output();
    let said = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(1), "{said}");
    assert!(said.contains("error: ") && said.contains(": 1 of "), "{said}");
    assert!(String::from_utf8_lossy(&bad.stdout).contains("undecided"));
}
