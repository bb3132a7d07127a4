//! The commands `boscage bench problems`, `methods`, `recipes`, `run` and `serve`, from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use boscage::Method;
use boscage::optimizer::NamedMethod;
use boscage_bench::problems::presets;
use boscage_bench::recipe::{Overrides, Recipe, embedded};

fn boscage(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("boscage").unwrap().current_dir(folder).args(arguments).output().unwrap()
}

/// What a command that must succeed prints.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = boscage(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn anywhere(arguments: &[&str]) -> String {
    printed(Path::new("."), arguments)
}

#[test]
fn version_and_help() {
    assert_eq!(anywhere(&["--version"]), format!("boscage {}\n", env!("CARGO_PKG_VERSION")));
    for command in [
        &["bench"][..],
        &["bench", "problems"],
        &["bench", "methods"],
        &["bench", "recipes"],
        &["bench", "run"],
        &["bench", "serve"],
    ] {
        let help = anywhere(&[command, &["--help"]].concat());
        assert!(help.contains("Examples:"), "{command:?}: {help}");
    }
    // Lines may be broken anywhere.
    let help = anywhere(&["bench", "run", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("An external program is executed once"), "{help}");
}

#[test]
fn every_problem_is_listed_and_can_be_pasted_into_a_recipe() {
    let table = anywhere(&["bench", "problems"]);
    let listed: serde_json::Value =
        serde_json::from_str(&anywhere(&["bench", "problems", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), presets().len());
    for (preset, entry) in presets().iter().zip(listed.as_array().unwrap()) {
        assert!(table.contains(preset.name), "{}", preset.name);
        assert_eq!(entry["name"], preset.name);
        assert_eq!(entry["settings"], serde_json::to_value(&preset.spec).unwrap());

        let pasted = anywhere(&["bench", "problems", preset.name]);
        let text = format!("name = \"pasted\"\nseeds = 1\ntrials = 1\n[methods.random]\n{pasted}");
        let outline =
            Recipe::parse(&text, "pasted").unwrap().outline(&Overrides::default()).unwrap();
        assert_eq!(outline.problems[0].spec, preset.spec);
        assert_eq!(outline.problems[0].label, preset.name);
    }
    let unknown = boscage(Path::new("."), &["bench", "problems", "star52"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean \"star25\"?"));
}

#[test]
fn the_numbers_of_some_problems() {
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&anywhere(&["bench", "problems", "--json"])).unwrap();
    let of = |name: &str| listed.iter().find(|entry| entry["name"] == name).unwrap();
    let numbers = |name: &str| {
        let entry = of(name);
        (
            entry["dimension"].as_u64().unwrap(),
            entry["edges"].as_u64(),
            entry["noise_std"].as_f64().unwrap(),
        )
    };
    assert_eq!(numbers("star25"), (25, Some(24), 0.15));
    assert_eq!(numbers("partition12"), (12, Some(12), 0.15));
    assert_eq!(numbers("grid3x3"), (9, Some(12), 0.15));
    assert_eq!(numbers("ancestry132"), (132, Some(131), 0.15));
    assert_eq!(numbers("hartmann6+14").0, 20);
    assert_eq!(of("styblinski-tang-250")["domain"], "real in [−4, 4]");
    let best = of("camelback")["optimum"]["value"].as_f64().unwrap();
    assert!((best + 1.031628).abs() < 1e-5, "{best}");
}

#[test]
fn every_method_is_listed_with_all_its_settings() {
    let table = anywhere(&["bench", "methods"]);
    for NamedMethod { name, .. } in Method::NAMES {
        assert!(table.contains(name), "{name}");
        let described = anywhere(&["bench", "methods", name]);
        let settings: Vec<serde_json::Value> =
            serde_json::from_str(&anywhere(&["bench", "methods", name, "--json"])).unwrap();
        for setting in &settings {
            assert!(described.contains(setting["path"].as_str().unwrap()), "{setting}");
        }
        let defaults = serde_json::to_value(Method::named(name).unwrap()).unwrap();
        assert_eq!(settings.is_empty(), defaults.get("settings").is_none());
    }
    assert_eq!(boscage(Path::new("."), &["bench", "methods", "tre"]).status.code(), Some(2));
}

#[test]
fn every_recipe_is_listed_and_plans_with_every_profile() {
    let table = anywhere(&["bench", "recipes"]);
    for (name, text) in embedded() {
        assert!(table.contains(name), "{name}");
        assert_eq!(&anywhere(&["bench", "recipes", name]), text);
        let recipe = Recipe::embedded(name).unwrap();
        assert_eq!(recipe.profiles(), ["quick", "smoke"], "{name}");
        let whole = recipe.plan(&Overrides::default()).unwrap();
        // The paper's length, but for what goes with the comparison with other optimizers.
        let trials = if *name == "ablation" { 300 } else { 1000 };
        assert_eq!(
            (whole.name.as_str(), whole.seeds.len(), whole.trials_in_run()),
            (*name, 25, trials)
        );
        for profile in recipe.profiles() {
            let smaller =
                recipe.plan(&Overrides { profile: Some(profile), ..Overrides::default() }).unwrap();
            let trials =
                |plan: &boscage_bench::Plan| plan.runs().len() as u64 * plan.trials_in_run();
            assert!(trials(&smaller) < trials(&whole) / 5, "{name}");
        }
    }
}

/// All files of a folder of results, without what may differ: times, machine, the log of sessions.
fn results(folder: &Path) -> BTreeMap<PathBuf, Vec<serde_json::Value>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().unwrap().to_string_lossy().starts_with("seed-") {
                let text = std::fs::read_to_string(&path).unwrap();
                let without_times = |line: &str| {
                    let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
                    line.as_object_mut()
                        .unwrap()
                        .retain(|key, _| !["timing", "machine", "started"].contains(&key.as_str()));
                    line
                };
                let lines = text.lines().map(without_times).collect();
                found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), lines);
            }
        }
    }
    found
}

const SMALL: &str = r#"
name = "small"
seeds = 2
trials = 4
initial_points = 3
[problems.path]
preset = "path10"
vary = { levels = [5, 7] }
[methods.tree]
settings = { initial_points = 3, structure.tree.samples = 5 }
[methods.random]
"#;

#[test]
fn a_small_experiment_runs_once_and_does_not_depend_on_jobs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let first = printed(folder.path(), &["bench", "run", "small.toml", "--jobs", "1"]);
    assert_eq!(
        first,
        "8 runs completed now, 0 before; results are in results/small\nnext: boscage bench report results/small\n"
    );
    let once = results(&folder.path().join("results/small"));
    let runs = once.keys().filter(|path| path.extension().unwrap() == "jsonl");
    assert_eq!(runs.count(), 2 * 2 * 2);
    // A start line and seven trials.
    assert_eq!(once[Path::new("path-5/tree/seed-0001.jsonl")].len(), 8);

    let files = || {
        let run = folder.path().join("results/small/path-7/random/seed-0000.jsonl");
        std::fs::metadata(run).unwrap().modified().unwrap()
    };
    let before = files();
    let again = printed(folder.path(), &["bench", "run", "small.toml"]);
    assert!(again.starts_with("0 runs completed now, 8 before"), "{again}");
    assert_eq!(files(), before);

    let arguments = [
        "bench",
        "run",
        "small.toml",
        "--jobs",
        "3",
        "--threads",
        "2",
        "--out",
        "other",
        "--quiet",
    ];
    let quiet = boscage(folder.path(), &arguments);
    assert!(
        quiet.status.success() && quiet.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&quiet.stderr)
    );
    assert_eq!(results(&folder.path().join("other")), once);

    // Another problem under the same label must not be mixed in.
    let changed = boscage(
        folder.path(),
        &["bench", "run", "small.toml", "--set", "problems.path.lengthscale=0.5"],
    );
    assert_eq!(changed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&changed.stderr).contains("lengthscale"));
}

#[test]
fn a_dry_run_tells_what_is_done_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let dry = |more: &[&str]| {
        printed(folder.path(), &[&["bench", "run", "small.toml", "--dry-run"], more].concat())
    };
    let plan = dry(&["--jobs", "4"]);
    for part in [
        "seeds       2 (0, 1)",
        "4 + 3 initial points",
        "runs        8, of which 0 are done",
        "4 runs at a time",
    ] {
        assert!(plan.contains(part), "{part:?} in {plan}");
    }
    assert!(!folder.path().join("results").exists());

    printed(folder.path(), &["bench", "run", "small.toml", "--seeds", "1-1", "--methods", "tree"]);
    let plan = dry(&[]);
    assert!(
        plan.contains("runs        8, of which 2 are done") && plan.contains("finished runs"),
        "{plan}"
    );
}

#[test]
fn the_command_line_wins_over_the_profile_and_the_recipe() {
    let text = format!(
        "{SMALL}\n[profiles.quick]\nseeds = [5]\ntrials = 2\nmethods = [\"random\"]\nproblems = [\"path-7\"]"
    );
    let recipe = Recipe::parse(&text, "small").unwrap();
    let labels = |overrides: Overrides| {
        let plan = recipe.plan(&overrides).unwrap();
        let problems: Vec<String> =
            plan.problems.iter().map(|problem| problem.label.clone()).collect();
        let methods: Vec<String> = plan.methods.iter().map(|method| method.label.clone()).collect();
        (problems.join(" "), methods.join(" "), plan.seeds, plan.trials)
    };
    let quick = || Some("quick".to_string());
    let words = |text: &str| Some(text.split(' ').map(str::to_string).collect());
    let of = |problems: &str, methods: &str, seeds: &[u64], trials| {
        (problems.to_string(), methods.to_string(), seeds.to_vec(), trials)
    };
    assert_eq!(labels(Overrides::default()), of("path-5 path-7", "tree random", &[0, 1], 4));
    assert_eq!(
        labels(Overrides { profile: quick(), ..Default::default() }),
        of("path-7", "random", &[5], 2)
    );
    let all = Overrides {
        profile: quick(),
        seeds: Some("3-4".parse().unwrap()),
        trials: Some(9),
        // The label of an entry stands for all its variants; a method that the recipe does not have is added.
        problems: words("path"),
        methods: words("tree-paper tree"),
        ..Default::default()
    };
    assert_eq!(labels(all), of("path-5 path-7", "tree-paper tree", &[3, 4], 9));
    let set = Overrides {
        profile: quick(),
        set: vec![
            ("trials".to_string(), "7".to_string()),
            ("problems.path.vary.levels".to_string(), "[7, 8]".to_string()),
            ("methods.random.name".to_string(), "tree".to_string()),
            ("methods.random.settings.scale".to_string(), "none".to_string()),
            ("methods.random.settings.learning.every".to_string(), "3".to_string()),
        ],
        ..Default::default()
    };
    let plan = recipe.plan(&set).unwrap();
    assert_eq!((plan.trials, plan.seeds.as_slice()), (7, &[5][..]));
    let settings = &plan.methods[0].settings["settings"];
    assert_eq!(
        (&settings["scale"], &settings["learning"]),
        (&serde_json::Value::Null, &serde_json::json!({ "every": 3 }))
    );
    // All settings are stored, not only the changed ones.
    assert!(settings["zoom"]["levels"].is_u64());
    assert_eq!(plan.problems[0].settings["levels"], 7);
}

#[test]
fn another_shape_of_graph_replaces_the_presets() {
    let text = "name = \"a\"\nseeds = 1\ntrials = 1\n[methods.random]\n[problems.p]\npreset = \"star25\"\n\
                graph = { shape = \"grid\", rows = 2 }\n[problems.q]\npreset = \"star25\"\ngraph.vertices = 4\n";
    let plan = Recipe::parse(text, "a").unwrap().plan(&Overrides::default()).unwrap();
    assert_eq!(
        plan.problems[0].settings["graph"],
        serde_json::json!({ "shape": "grid", "rows": 2 })
    );
    assert_eq!(
        plan.problems[1].settings["graph"],
        serde_json::json!({ "shape": "star", "vertices": 4 })
    );
}

#[test]
fn a_failed_run_ends_with_code_1_and_its_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    printed(folder.path(), &["bench", "run", "small.toml", "--trials", "2"]);
    let run = folder.path().join("results/small/path-5/random/seed-0001.jsonl");
    let text = std::fs::read_to_string(&run).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    // A run that another version has begun cannot be continued; the others can.
    std::fs::write(&run, text.replace(&version, "\"version\":\"0.0.0\"")).unwrap();
    let output = boscage(folder.path(), &["bench", "run", "small.toml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("error: path-5, random, seed 1: ") && error.contains("1 of 8 runs failed"),
        "{error}"
    );
    let others = boscage(folder.path(), &["bench", "run", "small.toml", "--methods", "tree"]);
    assert!(String::from_utf8_lossy(&others.stdout).starts_with("0 runs completed now, 4 before"));
}

#[test]
fn a_dry_run_runs_a_program_once_and_only_a_run_runs_it_for_every_trial() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = r#"
name = "square"
seeds = 1
trials = 4
initial_points = 2
[problems.square]
kind = "program"
parameters = [{ name = "x", type = "integer", low = -9, high = 9 }, { name = "y", type = "categorical", choices = ["none", "one"] }]
program.command = ["sh", "-c", "echo run >> calls; echo $(($1 * $1))", "square", "{x}"]
program.environment = { LEVEL = "none", Y = "{y}" }
[methods.tree]
settings.initial_points = 2
"#;
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::fs::write(folder.path().join("inner/square.toml"), recipe).unwrap();
    let calls = || {
        std::fs::read_to_string(folder.path().join("inner/calls"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    printed(folder.path(), &["bench", "run", "inner/square.toml", "--dry-run"]);
    assert_eq!(calls(), 1);
    printed(folder.path(), &["bench", "run", "inner/square.toml"]);
    assert_eq!(calls(), 1 + 6);
}

#[test]
#[cfg(unix)]
fn an_interrupt_stops_after_the_trial_and_the_same_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["bench", "run", "camelback", "--methods", "random", "--seeds", "1", "--trials"];
    let many = [&arguments[..], &["1000000"]].concat();
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("boscage"))
        .current_dir(folder.path())
        .args(many)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let run = folder.path().join("results/camelback/camelback/random/seed-0000.jsonl");
    let trials = || {
        std::fs::read(&run)
            .unwrap_or_default()
            .split(|&byte| byte == b'\n')
            .count()
            .saturating_sub(2)
    };
    while trials() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains("press again to stop at once") && said.contains("the same command goes on"),
        "{said}"
    );
    // The last line is complete, and the run goes on behind it.
    let before = std::fs::read(&run).unwrap();
    assert_eq!(before.last(), Some(&b'\n'));
    let more = (trials() - 10 + 3).to_string();
    printed(folder.path(), &[&arguments[..], &[&more]].concat());
    let after = std::fs::read(&run).unwrap();
    assert!(after.starts_with(&before));
    assert_eq!(trials(), more.parse::<usize>().unwrap() + 10);
}

/// The lines that `bench serve` prints for these lines of input, as JSON.
fn served(arguments: &[&str], input: &[u8]) -> Vec<serde_json::Value> {
    let mut command = Command::cargo_bin("boscage").unwrap();
    let output = command
        .args([&["bench", "serve"], arguments].concat())
        .write_stdin(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_problem_is_served_to_other_languages() {
    let best = b"[0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730053]\n";
    let lines = served(&["hartmann6"], best);
    assert_eq!(lines.len(), 2);
    let (first, answer) = (&lines[0], &lines[1]);
    assert_eq!((&first["name"], &first["seed"]), (&"hartmann6".into(), &0.into()));
    assert_eq!((&first["goal"], &first["noise_std"]), (&"minimize".into(), &0.15.into()));
    let parameter =
        serde_json::json!({"name": "x0", "type": "real", "low": 0.0, "high": 1.0, "log": false});
    assert_eq!(first["parameters"][0], parameter);
    assert_eq!(first["optimum"]["certainty"], "exact");
    let (optimum, found) =
        (first["optimum"]["value"].as_f64().unwrap(), answer["value"].as_f64().unwrap());
    assert!((optimum + 3.322368011415515).abs() < 1e-12, "{optimum}");
    assert!((found - optimum).abs() < 1e-12, "{found}");

    // The optimum of the first line is a point, and the seed decides where it is.
    for name in ["star25-continuous", "hartmann6+14", "ackley53", "ellipsoid-integer-16", "labs-40"]
    {
        let first = &served(&[name, "--seed", "7"], b"")[0];
        let point = format!("{}\n", first["optimum"]["at"]);
        let again = served(&[name, "--seed", "7"], point.repeat(2).as_bytes());
        assert_eq!((&again[0], again.len()), (first, 3));
        assert_eq!(again[1], again[2]);
        let off = again[1]["value"].as_f64().unwrap() - first["optimum"]["value"].as_f64().unwrap();
        assert!(off.abs() < 1e-9, "{name}: {off}");
        let other = served(&[name, "--seed", "8"], point.as_bytes());
        assert_eq!(again[1] == other[1], name == "labs-40", "{name}");
    }
}

#[test]
fn a_bad_line_is_answered_and_the_next_is_served() {
    let nothing = serde_json::json!(vec!["nothing"; 25]).to_string();
    let input = [
        b"[1, 2]".as_slice(),
        b"nonsense",
        b"",
        b"\xff",
        b"{}",
        nothing.replacen("nothing", "prayer", 1).as_bytes(),
        nothing.replacen("\"nothing\"", "[]", 1).as_bytes(),
        nothing.as_bytes(),
    ]
    .join(&b"\n"[..]);
    // The last line has no end.
    let lines = served(&["pest-control-25", "--seed", "1"], &input);
    assert_eq!(lines.len(), 9);
    assert_eq!(lines[0]["optimum"], serde_json::Value::Null);
    for line in &lines[1..8] {
        let error = line["error"].as_str().unwrap();
        assert!(error.len() > 10 && line.get("value").is_none(), "{error}");
    }
    assert!(lines[1]["error"].as_str().unwrap().contains("25"), "{}", lines[1]);
    assert!(lines[6]["error"].as_str().unwrap().contains("prayer"), "{}", lines[6]);
    assert!(lines[8]["value"].as_f64().unwrap() > 20.0, "{}", lines[8]);

    let unknown = boscage(Path::new("."), &["bench", "serve", "hartman6"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean \"hartmann6\"?"));
}
