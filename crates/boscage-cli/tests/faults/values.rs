//! Values that a shell, a parser or a terminal could misunderstand.

use std::collections::BTreeSet;

use crate::support::{Scene, essence};

const NASTY: [&str; 15] = [
    "$(touch x); rm -rf .",
    "`touch x`",
    "-rf",
    "--help",
    "-",
    "--",
    " two words ",
    "it's \"quoted\" \\ and \\n",
    "line\nbreak\r\n\ttab",
    "müßig 🌳 \u{202e}\u{200b}",
    "{x} {{y}} {trial}",
    "%s %d ${HOME} ~ * ? [a-z] ! #",
    "\u{1b}[31mred\u{7}",
    "a=b;c|d&e>f<g",
    "",
];

/// Writes how many arguments it has, and each of them with a zero byte behind it.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\0' "$#" "$@" "$PASSED" > "seen-$1"
echo "$1.5"
"#;

fn study() -> String {
    let choices: Vec<toml::Value> = NASTY.iter().map(|word| toml::Value::from(*word)).collect();
    let mut parameter = toml::Table::new();
    parameter.insert("type".to_string(), "categorical".into());
    parameter.insert("choices".to_string(), choices.into());
    let mut parameters = toml::Table::new();
    parameters.insert("word".to_string(), parameter.into());
    let mut study = toml::Table::new();
    study.insert("parameters".to_string(), parameters.into());
    toml::to_string(&study).unwrap()
        + r#"
[program]
command = ["./program", "{trial}", "{word}", "--word={word}", "{{word}}"]
environment = { PASSED = "{word}" }
"#
}

#[test]
fn every_choice_reaches_the_program_as_one_literal_argument() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(&study());
    scene.write("program", PROGRAM);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scene.path("program"), executable).unwrap();
    // In two parts, so that the second reads what the first has stored; one of them from the queue.
    scene.tune(&["--trials", "6"]);
    let queued = NASTY[8];
    let enqueued = scene.run(&["enqueue", "study.toml", &format!("word={queued}")]);
    assert_eq!(enqueued.code, Some(0), "{}", enqueued.stderr);
    scene.tune(&["--trials", "60"]);
    let trials = scene.trials();
    let mut seen = BTreeSet::new();
    for trial in &trials {
        let word = trial["params"]["word"].as_str().unwrap();
        let number = trial["number"].as_u64().unwrap();
        assert_eq!(trial["value"].as_f64(), Some(number as f64 + 0.5), "{word:?}");
        let told = scene.read(&format!("seen-{number}"));
        let expected = format!("4\0{number}\0{word}\0--word={word}\0{{word}}\0{word}\0");
        assert_eq!(told, expected, "{word:?}");
        seen.insert(word.to_string());
    }
    assert_eq!(trials[6]["params"]["word"], queued);
    assert_eq!(seen, NASTY.iter().map(|word| word.to_string()).collect(), "all were tried");
    assert!(!scene.path("x").exists(), "nothing was executed");
    // Whoever only reads gets them too, and nothing that a terminal would obey.
    let shown = scene.run(&["show", "study.toml"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        !shown.stdout.contains('\u{1b}') && !shown.stdout.contains('\u{7}'),
        "{}",
        shown.stdout
    );
    let report = scene.run(&["report", "study.toml"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let exported = scene.run(&["export", "study.toml", "--out", "past.csv"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);

    // The table is read back as it was written.
    let other = Scene::new(&study());
    std::fs::copy(scene.path("past.csv"), other.path("past.csv")).unwrap();
    let imported = other.run(&["import", "study.toml", "past.csv"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert_eq!(essence(&other.trials()), essence(&trials));
    println!(
        "{} hostile choices in {} trials: each one literal argument",
        seen.len(),
        trials.len()
    );
}

#[test]
fn lines_about_trials_do_not_obey_values_either() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(&study());
    scene.write("program", "#!/bin/sh\nexit 1\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scene.path("program"), executable).unwrap();
    let ran = scene.run(&["tune", "study.toml", "--no-report", "--verbose", "--trials", "40"]);
    assert_eq!(ran.code, Some(1));
    for text in [&ran.stderr, &ran.stdout] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    }
}
