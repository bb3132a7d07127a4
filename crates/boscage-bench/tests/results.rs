//! Reading stored runs: what is torn, foreign or damaged.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod synthetic;

use std::path::PathBuf;

use boscage_bench::Error;
use boscage_bench::results::{RunResult, read_run, read_runs};
use synthetic::{lines, run_with, store};

fn three_trials() -> RunResult {
    run_with("a", "m", 7, [(3.0, 0), (2.0, 0), (1.5, 40)])
}

/// A folder with one file of these bytes.
fn file(text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed-0007.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn refused(text: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(text);
    let error = read_run(&path).unwrap_err();
    assert!(matches!(error, Error::Results { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("seed-0007.jsonl"), "{message}");
    message
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let mut run = three_trials();
    run.end = Some("nothing is left".to_string());
    let (_folder, path) = file(lines(&run));
    run.path = path.clone();
    assert_eq!(read_run(&path).unwrap(), Some(run));
}

#[test]
fn a_last_line_without_its_end_is_ignored_wherever_it_is_torn() {
    let run = three_trials();
    let text = lines(&run);
    let whole = text.lines().take(3).map(|line| line.len() + 1).sum::<usize>();
    for length in whole..text.len() {
        let (_folder, path) = file(&text.as_bytes()[..length]);
        let read = read_run(&path).unwrap().unwrap();
        assert_eq!(read.trials, run.trials[..2], "{length} bytes");
    }
    // Bytes that are not UTF-8, as a torn character leaves them.
    let mut torn = text.as_bytes()[..whole].to_vec();
    torn.extend([b'{', 0xe2, 0x82]);
    let (_folder, path) = file(torn);
    assert_eq!(read_run(&path).unwrap().unwrap().trials.len(), 2);
}

#[test]
fn a_file_without_a_complete_line_is_no_run() {
    for text in ["", "{\"line\":\"start\"", "\n"] {
        let (_folder, path) = file(text);
        assert_eq!(read_run(&path).unwrap(), None, "{text:?}");
    }
}

#[test]
fn another_format_is_refused() {
    let mut run = three_trials();
    run.start.schema = 99;
    let message = refused(lines(&run));
    assert!(message.contains("format 99") && message.contains("reads format 1"), "{message}");
}

#[test]
fn a_damaged_line_is_named() {
    let text = lines(&three_trials());
    let all: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.join("\n") + "\n";

    let message = refused(join(&[all[0], all[1], "gibberish", all[3]]));
    assert!(message.contains("line 3:") && message.contains("delete the file"), "{message}");
    // A trial is missing, is there twice, or comes before the start.
    let message = refused(join(&[all[0], all[1], all[3]]));
    assert!(message.contains("line 3: trial 2 does not follow"), "{message}");
    assert!(refused(join(&[all[0], all[1], all[1]])).contains("line 3: trial 0"));
    assert!(refused(join(&[all[1]])).contains("line 1: trial 0"));
    assert!(refused(join(&[all[0], all[0]])).contains("line 2: it does not follow"));
    // A line of another kind, and a trial with a field of another type.
    assert!(refused(join(&[all[0], "{\"line\":\"model\"}"])).contains("line 2:"));
    let wrong = all[1].replace("\"cost\":0", "\"cost\":-1");
    assert_ne!(wrong, all[1]);
    assert!(refused(join(&[all[0], &wrong])).contains("line 2:"));
}

#[test]
fn folders_are_read_in_order_and_other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let runs: Vec<RunResult> = [("b", "m", 1), ("a", "n", 0), ("a", "m", 10), ("a", "m", 9)]
        .map(|(problem, method, seed)| run_with(problem, method, seed, [(1.0, 0)]))
        .into();
    store(out, &runs);
    std::fs::write(out.join("sessions.jsonl"), "gibberish\n").unwrap();
    std::fs::write(out.join("a/m/seed-0009.notes.json"), "gibberish\n").unwrap();
    std::fs::write(out.join("a/m/seed-0011.jsonl"), "{\"line\":").unwrap();
    let read = read_runs(out).unwrap();
    let found: Vec<_> = read
        .iter()
        .map(|r| (r.start.problem.as_str(), r.start.method.as_str(), r.start.seed))
        .collect();
    assert_eq!(found, [("a", "m", 9), ("a", "m", 10), ("a", "n", 0), ("b", "m", 1)]);
}

#[test]
fn a_missing_or_empty_folder_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = read_runs(&folder.path().join("nowhere")).unwrap_err();
    assert!(matches!(missing, Error::File { .. }), "{missing:?}");
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    let empty = read_runs(folder.path()).unwrap_err();
    assert!(matches!(empty, Error::Results { .. }), "{empty:?}");
    assert!(empty.to_string().contains("boscage bench run"), "{empty}");
}
