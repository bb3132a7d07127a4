//! `boscage init` as a program: what it writes, prints and refuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use assert_cmd::Command;

/// The exit code, the output and the errors of `boscage init` with these arguments, in this folder, without a terminal.
fn init(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("boscage").unwrap();
    let output = command.current_dir(folder).arg("init").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_flags_and_terminal_an_example_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, error) = init(folder.path(), &[]);
    assert_eq!((code, error.as_str()), (0, ""));
    insta::assert_snapshot!(out, @"");
    let text = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    insta::assert_snapshot!(text, @"");
    // What is commented out is right as well.
    let filled: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") || rest.starts_with("[[") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let table: toml::Table = toml::from_str(&filled).unwrap();
    let sections: Vec<&str> = table.keys().map(String::as_str).collect();
    assert_eq!(
        sections,
        [
            "name",
            "goal",
            "seed",
            "method",
            "storage",
            "forbidden",
            "parameters",
            "program",
            "evaluation",
            "failure",
            "budget",
            "workers",
            "start"
        ]
    );
    assert_eq!(table["program"]["timeout_seconds"].as_integer(), Some(60));
    assert_eq!(table["budget"]["target"].as_float(), Some(0.5));
}

#[test]
fn flags_make_a_study() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "solver.toml",
        "--parameter",
        "rate real 1e-5 1 log",
        "--parameter",
        "mode categorical a b",
        "--goal",
        "maximize",
        "--trials",
        "7",
        "--result",
        "exit-code",
        "--",
        "./solver",
        "--rate={rate}",
        "--",
        "{mode}",
    ];
    let (code, out, error) = init(folder.path(), &arguments);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("solver.toml: 2 parameters\n"), "{out}");
    let text = std::fs::read_to_string(folder.path().join("solver.toml")).unwrap();
    let table: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(table["name"].as_str(), Some("solver"));
    assert_eq!(table["goal"].as_str(), Some("maximize"));
    assert_eq!(table["budget"]["trials"].as_integer(), Some(7));
    assert_eq!(table["program"]["result"].as_str(), Some("exit-code"));
    let command = table["program"]["command"].to_string();
    assert_eq!(command, r#"["./solver", "--rate={rate}", "--", "{mode}"]"#);
}

#[test]
fn a_file_that_is_there_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    std::fs::write(&file, "precious").unwrap();
    let (code, out, error) = init(folder.path(), &["--trials", "3"]);
    assert_eq!((code, out.as_str()), (2, ""));
    insta::assert_snapshot!(error, @"");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    // Nor is it touched if something else is wrong.
    let (code, _, _) = init(folder.path(), &["--force", "--parameter", "x"]);
    assert_eq!((code, std::fs::read_to_string(&file).unwrap().as_str()), (2, "precious"));
    let (code, _, error) = init(folder.path(), &["--force", "--trials", "3"]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(std::fs::read_to_string(&file).unwrap().contains("trials = 3\n"));
}

#[test]
fn files_of_other_tools_are_imported_with_notes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("p.txt"),
        "a \"-a \" o (low, high)\nb \"-b=\" i (1, 9) | a > \"low\"\n",
    )
    .unwrap();
    let (code, out, error) = init(folder.path(), &["--import", "p.txt", "--", "./solve"]);
    assert_eq!((code, error.as_str()), (0, ""));
    insta::assert_snapshot!(out, @"");
    let text = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    assert!(
        text.contains(
            "command = [\n    \"./solve\",\n    \"-a\",\n    \"{a}\",\n    [\"-b={b}\"],\n]"
        ),
        "{text}"
    );
    assert!(text.contains("# Note: R compares the values"), "{text}");
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("wrong.txt", b"a \"-a\" c (x)\nb \"-b\" q (y)\n");
    write("binary.txt", &[0xff, 0xfe, 0x00]);
    write(
        "space.json",
        b"{\"x\": {\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [null]}}}",
    );
    let all: String = [
        &["--import", "missing.txt"][..],
        &["--import", "wrong.txt"],
        &["--import", "binary.txt"],
        &["--import", "space.json", "--format", "optuna"],
        &["--import", "space.json", "--format", "configspace"],
        &["--parameter", "x real 1 0"],
        &["--parameter", "x real 0 1", "--parameter", "x boolean"],
        &["--parameter", "x boolean if y == 3"],
        &["--parameter", "x real 0 1", "--", "p", "{z}"],
        &["--result", "regex:("],
        &["nowhere/study.toml"],
    ]
    .iter()
    .map(|arguments| {
        let (code, out, error) = init(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        error
    })
    .collect();
    insta::assert_snapshot!(all, @"");
    assert!(!folder.path().join("study.toml").exists());
}
