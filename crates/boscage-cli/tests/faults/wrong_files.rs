//! Files that are not what they should be: a clear message, exit code 2, and nothing written.

use std::collections::BTreeMap;
use std::process::Stdio;

use crate::support::{Ran, Scene, assert_ended_without_gaps, end_of, states};

const STUDY: &str = r#"
[parameters]
x = { type = "real", low = 0, high = 1 }
[program]
command = ["sh", "-c", "echo {x}"]
[budget]
trials = 3
"#;

/// All files of the folder with what is in them, except what SQLite keeps beside a damaged store to read it: nothing.
fn contents(scene: &Scene) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(scene.path(".")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        if !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty()) {
            found.insert(name, bytes);
        }
    }
    found
}

/// A command that must be refused and must not change any file.
fn refused(scene: &Scene, arguments: &[&str]) -> String {
    let before = contents(scene);
    let Ran { code, stdout, stderr } = scene.run(arguments);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    let after = contents(scene);
    let changed: Vec<&String> =
        after.keys().filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(
        changed.is_empty() && before.len() == after.len(),
        "{arguments:?} has changed {changed:?}"
    );
    stderr.trim_end().replace(&scene.path("").display().to_string(), "")
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let scene = Scene::new(STUDY);
    scene.tune(&[]);
    let whole = std::fs::read(scene.path("study.db")).unwrap();
    scene.write("text.db", "This is a text of more than sixteen bytes, and no database at all.\n");
    scene.write("short.db", "x");
    scene.write("cut.db", &whole[..5000]);
    scene.write("half.db", &whole[..whole.len() / 2]);
    let mut bent = whole.clone();
    for byte in &mut bent[4096..whole.len() / 2] {
        *byte = !*byte;
    }
    scene.write("bent.db", bent);
    std::fs::create_dir(scene.path("folder.db")).unwrap();
    let made = |name: &str, sql: &str| {
        let file = rusqlite::Connection::open(scene.path(name)).unwrap();
        file.execute_batch(sql).unwrap();
    };
    made("birds.db", "CREATE TABLE birds (name TEXT); INSERT INTO birds VALUES ('crow')");
    for (name, version) in [("newer.db", 13), ("older.db", 11)] {
        scene.write(name, &whole);
        let sql = "UPDATE version_info SET schema_version = {}; PRAGMA journal_mode = DELETE";
        made(name, &sql.replace("{}", &version.to_string()));
    }
    let mut texts = Vec::new();
    let stores = [
        "text.db",
        "short.db",
        "cut.db",
        "half.db",
        "bent.db",
        "folder.db",
        "birds.db",
        "newer.db",
        "older.db",
        "nowhere/study.db",
        "mysql://me:secret@host/db",
        "sqlite://study.db",
        ":memory:",
    ];
    for store in stores {
        let read = refused(&scene, &["show", store]);
        let written = refused(&scene, &["tune", "study.toml", "--storage", store]);
        assert!(!read.contains("secret") && !written.contains("secret"), "{read} {written}");
        texts.push(format!("show {store}\n  {read}\ntune --storage {store}\n  {written}"));
        for arguments in [
            &["export", store, "--out", "-"][..],
            &["studies", store],
            &["enqueue", "study.toml", "x=0.5", "--storage", store],
            &["tell", "study.toml", "0", "1", "--storage", store],
        ] {
            refused(&scene, arguments);
        }
    }
    insta::assert_snapshot!(texts.join("\n"), @r#"
    show text.db
      error: text.db is no store; give a study file (its name must end in .toml) or a store (NAME.db)
    tune --storage text.db
      error: text.db: it is not a SQLite database; give another file
    show short.db
      error: short.db is no store; give a study file (its name must end in .toml) or a store (NAME.db)
    tune --storage short.db
      error: short.db: it is not a SQLite database; give another file
    show cut.db
      error: the store cannot be read
      caused by: cut.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    tune --storage cut.db
      error: cut.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    show half.db
      error: the store cannot be read
      caused by: half.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    tune --storage half.db
      error: half.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    show bent.db
      error: the store cannot be read
      caused by: bent.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    tune --storage bent.db
      error: bent.db: it is damaged; `sqlite3 FILE .recover` may rescue what is in it (database disk image is malformed)
    show folder.db
      error: folder.db is a folder; name a study file or a store in it
    tune --storage folder.db
      error: folder.db: it is a folder; give a file (unable to open database file: folder.db)
    show birds.db
      error: the store cannot be read
      caused by: birds.db: it is a database of something else (its tables are birds); give another file
    tune --storage birds.db
      error: birds.db: it is a database of something else (its tables are birds); give another file
    show newer.db
      error: the store cannot be read
      caused by: newer.db: its tables are those of Optuna 5.0.0 (schema 13, v3.2.0.a), and this version of boscage knows schema 12, v3.2.0.a; they are newer; use a newer boscage
    tune --storage newer.db
      error: newer.db: its tables are those of Optuna 5.0.0 (schema 13, v3.2.0.a), and this version of boscage knows schema 12, v3.2.0.a; they are newer; use a newer boscage
    show older.db
      error: the store cannot be read
      caused by: older.db: its tables are those of Optuna 5.0.0 (schema 11, v3.2.0.a), and this version of boscage knows schema 12, v3.2.0.a; they are older; `optuna storage upgrade --storage ADDRESS` brings them up to date
    tune --storage older.db
      error: older.db: its tables are those of Optuna 5.0.0 (schema 11, v3.2.0.a), and this version of boscage knows schema 12, v3.2.0.a; they are older; `optuna storage upgrade --storage ADDRESS` brings them up to date
    show nowhere/study.db
      error: there is no file nowhere/study.db; give a study file (NAME.toml) or a store (NAME.db), or begin one with `boscage init`
    tune --storage nowhere/study.db
      error: nowhere/study.db: there is no such folder; make it first (unable to open database file: nowhere/study.db)
    show mysql://me:secret@host/db
      error: mysql://me:…@host/db: mysql is not supported; use a path (SQLite) or postgresql://user@host/database
    tune --storage mysql://me:secret@host/db
      error: mysql://me:…@host/db: mysql is not supported; use a path (SQLite) or postgresql://user@host/database
    show sqlite://study.db
      error: sqlite://study.db: write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path
    tune --storage sqlite://study.db
      error: sqlite://study.db: write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path
    show :memory:
      error: :memory:: a store in memory would be lost; give a path
    tune --storage :memory:
      error: :memory:: a store in memory would be lost; give a path
    "#);

    // An empty file is what a killed process may leave: reading says so, tuning begins.
    scene.write("empty.db", "");
    insta::assert_snapshot!(refused(&scene, &["show", "empty.db"]), @r#"
    error: the store cannot be read
      caused by: empty.db: there are no studies in it
    "#);
    scene.tune(&["--storage", "empty.db"]);
    assert_eq!(scene.trials_of("empty.db").len(), 3);
    println!(
        "{} files that are no stores: refused {} times, none changed",
        stores.len(),
        6 * stores.len()
    );
}

#[test]
fn a_study_file_that_is_none_is_refused_before_anything_is_made() {
    let scene = Scene::empty();
    std::fs::create_dir(scene.path("folder.toml")).unwrap();
    scene.write("binary.toml", [0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe, 0x80]);
    scene.write("large.toml", format!("{STUDY}\n#{}", "x".repeat(20 << 20)));
    scene.write("empty.toml", "");
    let mut texts = Vec::new();
    for file in
        ["folder.toml", "binary.toml", "large.toml", "empty.toml", "missing.toml", "study.txt"]
    {
        for arguments in
            [&["tune", file][..], &["tune", file, "--check"], &["show", file], &["ask", file]]
        {
            let text = refused(&scene, arguments);
            if arguments == ["tune", file] {
                texts.push(text);
            }
        }
    }
    insta::assert_snapshot!(texts.join("\n"), @r#"
    error: folder.toml: it is a folder; give a study file
    error: binary.toml: it is not text in UTF-8
    error: large.toml: a study file has at most 16777216 bytes
    error: empty.toml: TOML parse error at line 1, column 1
      |
    1 | 
      | ^
    missing field `parameters`
    error: missing.toml: there is no such file; `boscage init` writes one to begin with
    error: there is no file study.txt; give a study file (NAME.toml) or a store (NAME.db), or begin one with `boscage init`
    "#);
}

#[test]
fn a_study_file_with_a_mistake_is_refused_with_its_place() {
    const REAL: &str = r#"x = { type = "real", low = 0, high = 1 }"#;
    const PROGRAM: &str = "[program]\ncommand = [\"sh\", \"-c\", \"echo {x}\"]";
    let parameter = |parameter: &str| format!("[parameters]\n{parameter}\n{PROGRAM}");
    let top = |line: &str| format!("{line}\n[parameters]\n{REAL}\n{PROGRAM}");
    let program = |lines: &str| format!("[parameters]\n{REAL}\n[program]\n{lines}");
    let below = |lines: &str| format!("[parameters]\n{REAL}\n{PROGRAM}\n{lines}");
    let cases = [
        // Not TOML.
        top("seed ="),
        top("seed = 1\nseed = 2"),
        parameter(&format!("{REAL}\n{REAL}")),
        parameter(r#"x = { type = "real", low = 0, low = 1, high = 2 }"#),
        // Unknown names.
        top("sed = 1"),
        parameter(r#"x = { type = "real", low = 0, high = 1, hihg = 2 }"#),
        parameter(r#"x = { type = "boolean", low = 0 }"#),
        parameter(r#"x = { type = "float", low = 0, high = 1 }"#),
        program("command = [\"echo\", \"{x}\"]\ntimeout = 3"),
        below("[budget]\ntrial = 3"),
        below("[workers]\njob = 3"),
        // Wrong types.
        top("seed = \"one\""),
        top("seed = -1"),
        top("goal = \"best\""),
        top("method = 3"),
        top("method = { name = \"tree\", setings = {} }"),
        top("method = { name = \"tree\", settings = { sede = 1 } }"),
        top("method = \"tre\""),
        top("name = \"\""),
        top("storage = \"mysql://host/db\""),
        "parameters = 3".to_string(),
        parameter("x = 3"),
        parameter(r#"x = { type = "real", low = "0", high = 1 }"#),
        parameter(r#"x = { type = "integer", low = 0.5, high = 1 }"#),
        parameter(r#"x = { type = "real", low = 0 }"#),
        program("command = \"echo {x}\""),
        program("command = [\"echo\", \"{x}\", 3]"),
        below("[failure]\nscore = \"bad\""),
        below("[failure]\nscore = nan"),
        below("[budget]\ntrials = 0"),
        below("[budget]\nseconds = inf"),
        below("[workers]\nlease_seconds = 0"),
        // Ranges.
        parameter(r#"x = { type = "real", low = nan, high = 1 }"#),
        parameter(r#"x = { type = "real", low = 0, high = inf }"#),
        parameter(r#"x = { type = "real", low = 1, high = 0 }"#),
        parameter(r#"x = { type = "integer", low = 1, high = 0 }"#),
        parameter(r#"x = { type = "real", low = 0, high = 1, log = true }"#),
        parameter(r#"x = { type = "real", low = 0, high = 1, step = 0 }"#),
        parameter(r#"x = { type = "integer", low = 0, high = 9, step = 0 }"#),
        parameter(r#"x = { type = "categorical", choices = [] }"#),
        parameter(r#"x = { type = "categorical", choices = ["a", "a"] }"#),
        parameter(r#"x = { type = "categorical", choices = ["a\u0000b", "c"] }"#),
        parameter(r#"x = { type = "categorical", choices = [["a"], "c"] }"#),
        parameter(r#"x = { type = "ordinal", levels = [] }"#),
        // Names.
        "[parameters]".to_string(),
        format!(
            "parameters = [{{ name = \"x\", type = \"boolean\" }}, {{ name = \"x\", type = \"boolean\" }}]\n{PROGRAM}"
        ),
        program("command = [\"echo\", \"{x}\", \"{y}\"]"),
        program("command = [\"echo\"]"),
        program("command = []"),
        program("command = [\"echo\", \"{x\"]"),
        format!("[parameters]\n{REAL}"),
        // Conditions.
        parameter(r#"x = { type = "real", low = 0, high = 1, condition = "mode == 3" }"#),
        parameter(r#"x = { type = "real", low = 0, high = 1, condition = "x > 0.5" }"#),
        parameter(r#"x = { type = "real", low = 0, high = 1, condition = "((" }"#),
        top("forbidden = [\"z > 3\"]"),
        // Defaults and start points.
        parameter(r#"x = { type = "real", low = 0, high = 1, default = 2 }"#),
        parameter(r#"x = { type = "real", low = 0, high = 1, default = nan }"#),
        parameter(r#"x = { type = "categorical", choices = ["a"], default = "b" }"#),
        parameter(r#"x = { type = "integer", low = 0, high = 9, default = 1.5 }"#),
        top("start = [{ y = 1 }]"),
        top("start = [{ x = 2 }]"),
    ];
    let scene = Scene::empty();
    let mut texts = Vec::new();
    for case in &cases {
        scene.write("study.toml", case);
        texts.push(refused(&scene, &["tune", "study.toml", "--no-report"]));
    }
    for (case, text) in cases.iter().zip(&texts) {
        assert!(text.starts_with("error: study.toml: "), "{case}\n{text}");
        assert!(!text.contains("untagged") && !text.contains("Written"), "{case}\n{text}");
    }
    insta::assert_snapshot!(texts.join("\n\n"), @r#"
    error: study.toml: TOML parse error at line 1, column 7
      |
    1 | seed =
      |       ^
    string values must be quoted, expected literal string

    error: study.toml: TOML parse error at line 2, column 1
      |
    2 | seed = 2
      | ^^^^
    duplicate key

    error: study.toml: TOML parse error at line 3, column 1
      |
    3 | x = { type = "real", low = 0, high = 1 }
      | ^
    duplicate key

    error: study.toml: TOML parse error at line 2, column 31
      |
    2 | x = { type = "real", low = 0, low = 1, high = 2 }
      |                               ^^^
    duplicate key

    error: study.toml: TOML parse error at line 1, column 1
      |
    1 | sed = 1
      | ^^^
    unknown field `sed`, expected one of `name`, `goal`, `seed`, `method`, `storage`, `parameters`, `forbidden`, `program`, `evaluation`, `failure`, `budget`, `workers`, `start`

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "real", low = 0, high = 1, hihg = 2 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    unknown field `hihg`, expected one of `low`, `high`, `log`, `step`

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "boolean", low = 0 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    unknown field `low`, there are no fields

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "float", low = 0, high = 1 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    unknown variant `float`, expected one of `real`, `integer`, `ordinal`, `boolean`, `categorical`

    error: study.toml: TOML parse error at line 5, column 1
      |
    5 | timeout = 3
      | ^^^^^^^
    unknown field `timeout`, expected one of `command`, `environment`, `parameters_in_environment`, `parameters_file`, `result`, `result_file`, `working_folder`, `timeout_seconds`, `cpu_seconds`, `memory_bytes`

    error: study.toml: TOML parse error at line 6, column 1
      |
    6 | trial = 3
      | ^^^^^
    unknown field `trial`, expected one of `trials`, `seconds`, `target`

    error: study.toml: TOML parse error at line 6, column 1
      |
    6 | job = 3
      | ^^^
    unknown field `job`, expected one of `jobs`, `lease_seconds`, `lost_retries`

    error: study.toml: TOML parse error at line 1, column 8
      |
    1 | seed = "one"
      |        ^^^^^
    invalid type: string "one", expected u64

    error: study.toml: TOML parse error at line 1, column 8
      |
    1 | seed = -1
      |        ^^
    invalid value: integer `-1`, expected u64

    error: study.toml: TOML parse error at line 1, column 8
      |
    1 | goal = "best"
      |        ^^^^^^
    unknown variant `best`, expected `minimize` or `maximize`

    error: study.toml: TOML parse error at line 1, column 10
      |
    1 | method = 3
      |          ^
    invalid type: integer `3`, expected the name of a method, or a table with its name and settings

    error: study.toml: TOML parse error at line 1, column 27
      |
    1 | method = { name = "tree", setings = {} }
      |                           ^^^^^^^
    unknown field `setings`, expected `name` or `settings`

    error: study.toml: method "tree": setting sede: unknown field `sede`, expected one of `initial_points`, `design`, `learning`, `structure`, `kernel_learning`, `kernel_start`, `family`, `categorical`, `lengthscale`, `lengthscale_growth`, `scale`, `noise_std`, `constant`, `common_std`, `acquisition`, `zoom`, `max_evaluations`, `outputs`, `repeats`, `centre`, `local`, `news`, `guard`, `failures`

    error: study.toml: there is no method "tre"; the methods are boscage, tree, tree-paper, overlap, no-overlap, no-overlap-5, no-overlap-10, random-trees, oracle, gp-ucb, gp-ucb-textbook, line-coordinate, line-random, line-ascent, rembo, rembo-interleaved, random

    error: study.toml: the study's name "" is empty; give it one

    error: study.toml: mysql://host/db: mysql is not supported; use a path (SQLite) or postgresql://user@host/database

    error: study.toml: TOML parse error at line 1, column 14
      |
    1 | parameters = 3
      |              ^
    invalid type: integer `3`, expected a table of parameters, as in rate = { type = "real", low = 0, high = 1 }

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = 3
      |     ^
    invalid type: integer `3`, expected a parameter, as in { type = "real", low = 0, high = 1 }

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "real", low = "0", high = 1 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    invalid type: string "0", expected f64

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "integer", low = 0.5, high = 1 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    invalid type: floating point `0.5`, expected i64

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "real", low = 0 }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
    missing field `high`

    error: study.toml: TOML parse error at line 4, column 11
      |
    4 | command = "echo {x}"
      |           ^^^^^^^^^^
    invalid type: string "echo {x}", expected a list of the program and its arguments, as in ["./train", "--rate={rate}"]

    error: study.toml: TOML parse error at line 4, column 11
      |
    4 | command = ["echo", "{x}", 3]
      |           ^^^^^^^^^^^^^^^^^^
    an argument is text, or a list of texts that belong together; write numbers in quotes

    error: study.toml: TOML parse error at line 6, column 9
      |
    6 | score = "bad"
      |         ^^^^^
    score is "bad"; write "ignore", "worst" or a number

    error: study.toml: TOML parse error at line 6, column 9
      |
    6 | score = nan
      |         ^^^
    score is not finite; write "ignore", "worst" or a finite number

    error: study.toml: budget.trials is 0; at least one trial is needed

    error: study.toml: budget.seconds must be a positive number

    error: study.toml: workers.lease_seconds is 0; it must be between 1 and 31536000

    error: study.toml: parameter "x": bounds NaN and 1 must both be finite numbers

    error: study.toml: parameter "x": bounds 0 and inf must both be finite numbers

    error: study.toml: parameter "x": low 1 is above high 0; swap them

    error: study.toml: parameter "x": low 1 is above high 0; swap them

    error: study.toml: parameter "x": a log scale needs low above 0, not 0; raise low or set log to false

    error: study.toml: parameter "x": low 0, high 1 and step 0 do not fit; low must not be above high, and the step must be positive

    error: study.toml: parameter "x": the step is 0; it must be at least 1

    error: study.toml: parameter "x": there are no choices; give at least one

    error: study.toml: parameter "x": the choice a occurs twice, as a program would see it; they must all differ

    error: study.toml: parameter "x": "a\0b" has a zero character, which no program can be given; remove it

    error: study.toml: TOML parse error at line 2, column 5
      |
    2 | x = { type = "categorical", choices = [["a"], "c"] }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    a value is a number, true, false or text

    error: study.toml: parameter "x": there are no levels; give at least one

    error: study.toml: the space has no parameters; give it at least one

    error: study.toml: two parameters are called "x"; names must differ

    error: study.toml: the program: {y} in element 3 of the command, "{y}" is unknown; the parameters are x, and there are trial, seed, instance, parameters_file, result_file (for a brace write it twice)

    error: study.toml: the program: it never gets x, which would have no effect: use {name} in the command or the environment, give it {parameters_file}, set parameters_in_environment, or remove the parameter

    error: study.toml: the program: the command is empty; write the program and its arguments as a list

    error: study.toml: the program: element 2 of the command, "{x": "{" without its counterpart; write it twice to mean a brace

    error: study.toml: the study has no [program]; add one to the study file, or use `boscage ask` and `boscage tell`

    error: study.toml: parameter "x": its condition `mode == 3`: there is no parameter "mode"

    error: study.toml: parameter "x": its condition depends on itself, perhaps through others

    error: study.toml: TOML parse error at line 2, column 53
      |
    2 | x = { type = "real", low = 0, high = 1, condition = "((" }
      |                                                     ^^^^
    the condition `((`: column 3: expected a parameter, a value, not or (, found the end

    error: study.toml: the condition `z > 3`: there is no parameter "z"

    error: study.toml: parameter "x": the default: 2 is not between 0 and 1

    error: study.toml: parameter "x": the default: NaN is not between 0 and 1

    error: study.toml: parameter "x": the default: b is not one of a

    error: study.toml: parameter "x": the default: 1.5 is not an integer

    error: study.toml: start point 1: there is no parameter "y"; did you mean "x"?

    error: study.toml: start point 1: parameter "x": 2 is not between 0 and 1
    "#);
    println!("{} mistakes: refused, nothing made", cases.len());
}

#[test]
fn several_that_begin_an_empty_store_at_once_share_one_study() {
    const AT_ONCE: usize = 6;
    const ROUNDS: usize = 8;
    for round in 0..ROUNDS {
        let scene = Scene::new(
            r#"
            seed = 4
            [parameters]
            x = { type = "real", low = 0, high = 1, default = 0.5 }
            [program]
            command = ["sh", "-c", "echo {trial} >> log; echo {x}"]
            [budget]
            trials = 12
            "#,
        );
        let mut children: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let errors =
                    std::fs::File::create(scene.path(&format!("errors-{number}"))).unwrap();
                let mut tune = scene.boscage(&["tune", "study.toml", "--no-report"]);
                tune.stdout(Stdio::null()).stderr(Stdio::from(errors)).spawn().unwrap()
            })
            .collect();
        let mut new = 0;
        for (number, child) in children.iter_mut().enumerate() {
            let code = end_of(child);
            let errors = scene.read(&format!("errors-{number}"));
            assert_eq!(code, Some(0), "round {round}: {errors}");
            new += usize::from(errors.contains("a new study"));
        }
        assert_eq!(new, 1, "one of them has made the study");
        let studies = scene.run(&["studies", "--json"]);
        assert_eq!(studies.stdout.matches("\"name\": \"study\"").count(), 1, "{}", studies.stdout);
        let trials = scene.trials();
        assert_ended_without_gaps(&trials);
        assert_eq!(states(&trials)["COMPLETE"], 12);
        assert_eq!(trials[0]["params"]["x"].as_f64(), Some(0.5));
        let defaults = trials.iter().filter(|trial| trial["params"]["x"].as_f64() == Some(0.5));
        assert_eq!(defaults.count(), 1, "the defaults are tried once");
        assert_eq!(scene.read("log").lines().count(), 12, "each trial was run once");
        scene.assert_whole("study.db");
    }
    println!(
        "{ROUNDS} times {AT_ONCE} processes on an empty store: one study and 12 trials each time"
    );
}
