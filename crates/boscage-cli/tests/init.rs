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
    insta::assert_snapshot!(out, @r#"
    study.toml: 6 parameters (1 with a condition), 1 forbidden combination
    note: the parameters are an example; write your own in their place
    Look through it, then try it with: boscage tune study.toml --check
    "#);
    let text = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    insta::assert_snapshot!(text, @r#"
    # A study of boscage. Try it with `boscage tune FILE --check`, run it with `boscage tune FILE`,
    # and run the same command again to go on with it.

    name = "study"
    goal = "minimize"       # or "maximize"
    seed = 1
    method = "tree"         # or a table with settings: { name = "tree", settings = { … } }
    # Where the trials are kept: a file, or a PostgreSQL address such as postgresql://user@host/database.
    # storage = "study.db"

    # Combinations that must not be tried.
    forbidden = [
        'mode == "fast" and layers > 4',
    ]

    # Types: real, integer (with low, high; log or step), categorical (choices), ordinal (levels), boolean.
    # The defaults make the first trial. A parameter with a condition has a value only where it holds.
    # Note: the parameters are an example; write your own in their place.
    [parameters]
    rate = { type = "real", low = 1e-5, high = 1.0, log = true, default = 0.01 }
    layers = { type = "integer", low = 1, high = 8, default = 2 }
    mode = { type = "categorical", choices = ["fast", "slow"] }
    level = { type = "ordinal", levels = ["low", "mid", "high"] }
    cache = { type = "boolean" }
    cutoff = { type = "real", low = 0.0, high = 1.0, step = 0.25, condition = 'mode == "fast"' }

    [program]
    # Each element is one argument; there is no shell. An element in a list of its own is left out as a whole if a
    # parameter in it has no value.
    command = [
        "./program",
        "--rate={rate}",
        "--layers={layers}",
        "--mode={mode}",
        "--level={level}",
        "--cache={cache}",
        ["--cutoff={cutoff}"],
    ]
    # The last number that the program prints, or { regex = 'cost: (\S+)' }, { json = "test.loss" }, "exit-code".
    result = "last-number"
    # timeout_seconds = 60    # also cpu_seconds, memory_bytes

    [evaluation]
    repeats = 1
    # instances = ["a.cnf", "b.cnf"]    # {instance} in the command
    # seeds = [1, 2]                     # {seed} in the command
    aggregate = "mean"      # or "worst", "median"

    [failure]
    retries = 0             # runs again at most so often
    score = "ignore"        # or "worst" (the worst seen so far), or a number

    [budget]
    trials = 100
    # seconds = 3600
    # target = 0.5

    [workers]
    jobs = 1                # programs that run at the same time
    lease_seconds = 60
    lost_retries = 3

    # Points to begin with, beside the defaults; they may leave parameters out.
    # [[start]]
    # rate = 0.01
    "#);
    // What is commented out is right as well.
    let is_setting = |rest: &str| {
        rest.starts_with("[[") || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    let filled: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ").filter(|rest| is_setting(rest)) {
            Some(rest) => format!("{rest}\n"),
            None => format!("{line}\n"),
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
    assert_eq!(table["start"][0]["rate"].as_float(), Some(0.01));
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
    insta::assert_snapshot!(error, @r#"error: study.toml is already there; give another name, or --force to write over it"#);
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
    insta::assert_snapshot!(out, @r#"
    study.toml: 2 parameters (1 with a condition)
    note: R compares the values of "a" as text in `a > …`; boscage compares numbers by their size and words of an ordinal parameter by their place
    Look through it, then try it with: boscage tune study.toml --check
    "#);
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
    insta::assert_snapshot!(all, @r#"
    error: missing.txt cannot be read
      caused by: No such file or directory (os error 2)
    error: wrong.txt, line 2: "b": the type "q" is not one of c, o, i, r, i,log and r,log
    error: binary.txt is not text in UTF-8; parameters are read from text files only
    error: space.json: parameter "x": null cannot be a choice; use a word such as "none"
    error: space.json: there are no parameters in it
    error: "x real 1 0" does not describe a parameter: parameter "x": low 1 is above high 0; swap them
    error: two parameters are called "x"; names must differ
    error: parameter "x": its condition `y == 3`: there is no parameter "y"
    error: {z} in the command is no parameter; did you mean "x"?
    error: the program: the regular expression "(": found open group without closing ')'
    error: nowhere/study.toml cannot be written
      caused by: No such file or directory (os error 2)
    "#);
    assert!(!folder.path().join("study.toml").exists());
}
