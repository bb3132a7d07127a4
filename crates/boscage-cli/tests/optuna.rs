//! A study of boscage is a study of Optuna: shown with the real Optuna, its command line and its dashboard, on SQLite and on
//! PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Keeper, Running, TestStore, python, wait_until};
use serde_json::{Map, Value as Json, json};

/// Each test with both stores.
macro_rules! with_both_stores {
    ($($test:ident)*) => {
        mod sqlite {
            $(#[test] fn $test() { super::with(super::Keeper::Sqlite, super::$test); })*
        }
        mod postgres {
            $(#[test] fn $test() { super::with(super::Keeper::Postgres, super::$test); })*
        }
    };
}

/// In a SQLite file, Optuna looks at a trial in the queue and takes it in two steps, and its own workers too can take the
/// same one: so the queue is shared on PostgreSQL only.
#[test]
fn both_take_from_one_queue() {
    with(Keeper::Postgres, share_a_queue);
}

with_both_stores! {
    the_tables_are_those_that_optuna_makes
    optuna_reads_everything
    the_dashboard_shows_everything
    the_dashboard_shows_a_study_while_it_runs
    boscage_goes_on_with_a_study_of_optuna
    a_study_of_optuna_with_another_goal_is_left_alone
    boscage_runs_what_optuna_enqueues
    optuna_runs_what_boscage_enqueues
    both_write_at_once
}

fn with(keeper: Keeper, test: fn(&Case)) {
    if let (Some(python), Some(store)) = (python(), TestStore::new(keeper)) {
        let case = Case { python, store };
        case.write("everything.awk", EVERYTHING_PROGRAM);
        case.write("grid.awk", GRID_PROGRAM);
        test(&case);
    }
}

/// A parameter of each kind, and the distribution that Optuna has to see.
const EVERYTHING: [(&str, &str, &str); 13] = [
    (
        "x",
        r#"{ type = "real", low = -5, high = 5, default = 0.1 }"#,
        r#"{"name": "FloatDistribution", "attributes": {"low": -5.0, "high": 5.0, "log": false, "step": null}}"#,
    ),
    (
        "rate",
        r#"{ type = "real", low = 1e-5, high = 1, log = true }"#,
        r#"{"name": "FloatDistribution", "attributes": {"low": 1e-5, "high": 1.0, "log": true, "step": null}}"#,
    ),
    (
        "share",
        r#"{ type = "real", low = 0, high = 1, step = 0.1 }"#,
        r#"{"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 1.0, "log": false, "step": 0.1}}"#,
    ),
    (
        "n",
        r#"{ type = "integer", low = 1, high = 8 }"#,
        r#"{"name": "IntDistribution", "attributes": {"low": 1, "high": 8, "log": false, "step": 1}}"#,
    ),
    (
        "even",
        r#"{ type = "integer", low = 0, high = 11, step = 2 }"#,
        r#"{"name": "IntDistribution", "attributes": {"low": 0, "high": 10, "log": false, "step": 2}}"#,
    ),
    (
        "size",
        r#"{ type = "integer", low = 1, high = 1024, log = true }"#,
        r#"{"name": "IntDistribution", "attributes": {"low": 1, "high": 1024, "log": true, "step": 1}}"#,
    ),
    (
        "level",
        r#"{ type = "ordinal", levels = [0.5, 1, 2] }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": [0.5, 1, 2]}}"#,
    ),
    (
        "mood",
        r#"{ type = "ordinal", levels = ["low", "mid", "high"] }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": ["low", "mid", "high"]}}"#,
    ),
    (
        "cache",
        r#"{ type = "boolean" }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": [false, true]}}"#,
    ),
    (
        "mode",
        r#"{ type = "categorical", choices = ["fast", "slow", "$(touch x); rm -rf"] }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": ["fast", "slow", "$(touch x); rm -rf"]}}"#,
    ),
    (
        "block",
        r#"{ type = "categorical", choices = [16, 32, 64] }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32, 64]}}"#,
    ),
    (
        "mixed",
        r#"{ type = "categorical", choices = ["auto", 1, 2.5, false] }"#,
        r#"{"name": "CategoricalDistribution", "attributes": {"choices": ["auto", 1, 2.5, false]}}"#,
    ),
    (
        "depth",
        r#"{ type = "integer", low = 1, high = 4, condition = 'mode == "fast"' }"#,
        r#"{"name": "IntDistribution", "attributes": {"low": 1, "high": 4, "log": false, "step": 1}}"#,
    ),
];

/// The program of a study of everything, which fails in every fifth trial.
const EVERYTHING_PROGRAM: &str = r#"BEGIN {
    if (ARGV[1] % 5 == 3) { print "as planned" > "/dev/stderr"; exit 3 }
    printf "%.17g\n", (ARGV[2] - 1) ^ 2 + log(ARGV[3]) ^ 2 / 30 + ARGV[4] / 3 + ARGV[5] / 7
}"#;

fn everything(goal: &str) -> String {
    let parameters: String =
        EVERYTHING.iter().map(|(name, kind, _)| format!("{name} = {kind}\n")).collect();
    format!(
        r#"name = "everything"
goal = "{goal}"
seed = 5

[parameters]
{parameters}
[program]
command = ["awk", "-f", "everything.awk", "{{trial}}", "{{x}}", "{{rate}}", "{{share}}", "{{n}}"]
parameters_in_environment = true
"#
    )
}

const GRID_PROGRAM: &str =
    r#"BEGIN { printf "%.17g\n", (ARGV[1] - 7) ^ 2 / 3 + (ARGV[2] - 12) ^ 2 / 7 }"#;

/// Two integers: few enough points that two workers would meet by chance. `waits` is a shell script that is run first.
fn grid(method: &str, waits: &str) -> String {
    format!(
        r#"name = "grid"
method = "{method}"

[parameters]
x = {{ type = "integer", low = 0, high = 19 }}
y = {{ type = "integer", low = 0, high = 19 }}

[program]
command = ["sh", "-c", '''{waits}
awk -f grid.awk $2 $3''', "sh", "{{trial}}", "{{x}}", "{{y}}"]
"#
    )
}

/// A store and the clients that use it.
struct Case {
    python: PathBuf,
    store: TestStore,
}

impl Case {
    fn file(&self, name: &str) -> PathBuf {
        self.store.folder().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    /// A command of boscage on this store.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boscage"));
        command.args(arguments).current_dir(self.store.folder());
        command.env("BOSCAGE_STORAGE", &self.store.address);
        command
    }

    fn boscage(&self, arguments: &[&str]) -> String {
        succeeded(
            &format!("boscage {}", arguments.join(" ")),
            &self.command(arguments).output().unwrap(),
        )
    }

    /// Runs `study.toml` until it has so many trials, and gives the events.
    fn tune(&self, trials: usize) -> Vec<Json> {
        lines(&self.boscage(&[
            "tune",
            "study.toml",
            "--json",
            "--no-report",
            "--trials",
            &trials.to_string(),
        ]))
    }

    fn script(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/optuna");
        command.arg(folder.join(name)).args(arguments);
        command
    }

    fn tables(&self, action: &str, url: &str) -> Json {
        let found = succeeded(action, &self.script("tables.py", &[action, url]).output().unwrap());
        if found.is_empty() { Json::Null } else { serde_json::from_str(&found).unwrap() }
    }

    /// Optuna, on this store.
    fn optuna(&self, action: &str, more: &[&str]) -> String {
        let mut arguments = vec![action, self.store.url.as_str()];
        arguments.extend(more);
        succeeded(action, &self.script("client.py", &arguments).output().unwrap())
    }

    fn read(&self, study: &str) -> Json {
        serde_json::from_str(&self.optuna("read", &[study])).unwrap()
    }

    /// Starts an Optuna program that waits for the file `go` and then runs trials.
    fn optuna_worker(&self, study: &str, trials: u32, space: &str, identity: u32) -> Running {
        let (trials, identity) = (trials.to_string(), identity.to_string());
        let folder = self.store.folder().display().to_string();
        let arguments = ["work", &self.store.url, study, &trials, space, &folder, &identity];
        let mut running = Running(self.script("client.py", &arguments).spawn().unwrap());
        wait_until("Optuna is ready", || {
            let is_ready = self.file(&format!("ready-{identity}")).exists();
            assert!(is_ready || running.0.try_wait().unwrap().is_none(), "it has ended");
            is_ready
        });
        running
    }
}

/// What was printed.
fn succeeded(what: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{what}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn trials(study: &Json) -> &Vec<Json> {
    study["trials"].as_array().unwrap()
}

fn count(study: &Json, state: &str) -> usize {
    trials(study).iter().filter(|trial| trial["state"] == state).count()
}

fn the_tables_are_those_that_optuna_makes(case: &Case) {
    case.write("study.toml", &grid("random", ""));
    case.tune(3);
    let keeper =
        if case.store.url.starts_with("sqlite") { Keeper::Sqlite } else { Keeper::Postgres };
    let theirs = TestStore::new(keeper).unwrap();
    case.tables("make", &theirs.url);
    let (ours, theirs) =
        (case.tables("schema", &case.store.url), case.tables("schema", &theirs.url));
    assert!(ours.as_object().unwrap().len() > 5);
    for (part, made) in theirs.as_object().unwrap() {
        assert_eq!(ours[part], *made, "{part}");
    }
    assert_eq!(ours, theirs);

    // Optuna finds nothing to do.
    let upgrade = Command::new(case.python.with_file_name("optuna"))
        .args(["storage", "upgrade", "--storage", &case.store.url])
        .output()
        .unwrap();
    succeeded("upgrade", &upgrade);
    let said = String::from_utf8_lossy(&upgrade.stderr);
    assert!(said.contains("This storage is up-to-date."), "{said}");
    assert_eq!(case.tables("schema", &case.store.url), theirs);
}

/// A study with trials of each state: complete and failed ones of a tune, and an infeasible, a pruned, a running and a waiting
/// one.
fn tell_everything(case: &Case) {
    case.write("study.toml", &everything("maximize"));
    case.tune(22);
    let ask = || {
        let asked: Json = serde_json::from_str(&case.boscage(&["ask", "study.toml"])).unwrap();
        asked["number"].to_string()
    };
    case.boscage(&["tell", "study.toml", &ask(), "--infeasible", "too \"heavy\""]);
    case.boscage(&["tell", "study.toml", &ask(), "--pruned", "hopeless"]);
    case.boscage(&["tell", "study.toml", &ask(), "1e300"]);
    case.boscage(&["tell", "study.toml", &ask(), "-5e-324"]);
    assert_eq!(ask(), "26");
    case.boscage(&[
        "enqueue",
        "study.toml",
        "x=0.30000000000000004",
        "cache=true",
        "mode=slow",
        "block=32",
    ]);
}

fn exported(case: &Case) -> Vec<Json> {
    lines(&case.boscage(&["export", "study.toml", "--format", "jsonl", "--out", "-"]))
}

/// PostgreSQL leaves zeros at the end out, Python a fraction that is zero.
fn moment(time: &Json) -> Option<String> {
    let text = time.as_str()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    Some(format!("{seconds}.{fraction:0<6}"))
}

fn optuna_reads_everything(case: &Case) {
    tell_everything(case);
    let read = case.read("everything");
    assert_eq!(read["directions"], json!(["MAXIMIZE"]));
    let exported = exported(case);
    assert_eq!(trials(&read).len(), 28);
    assert_eq!(exported.len(), 28);
    let distributions: BTreeMap<&str, Json> = EVERYTHING
        .iter()
        .map(|(name, _, json)| (*name, serde_json::from_str(json).unwrap()))
        .collect();
    let mut with_depth = 0;
    for (number, (theirs, ours)) in trials(&read).iter().zip(&exported).enumerate() {
        assert_eq!(theirs["number"], number);
        for same in ["number", "state", "params"] {
            assert_eq!(theirs[same], ours[same], "{same} of trial {number}");
        }
        let bits = |value: &Json| value.as_f64().map(f64::to_bits);
        assert_eq!(bits(&theirs["value"]), bits(&ours["value"]), "trial {number}");
        for time in ["datetime_start", "datetime_complete"] {
            assert_eq!(moment(&theirs[time]), moment(&ours[time]), "{time} of trial {number}");
        }
        // Where the condition does not hold, there is neither a value nor a distribution.
        let params = theirs["params"].as_object().unwrap();
        let expected: Map<String, Json> = params
            .keys()
            .map(|name| (name.clone(), distributions[name.as_str()].clone()))
            .collect();
        assert_eq!(theirs["distributions"], Json::Object(expected), "trial {number}");
        if theirs["state"] != "WAITING" {
            let is_fast = params["mode"] == "fast";
            assert_eq!(params.len(), if is_fast { 13 } else { 12 }, "trial {number}");
            with_depth += usize::from(is_fast);
        }
        let mut attributes = ours["user_attrs"].as_object().unwrap().clone();
        if !ours["failure"].is_null() {
            attributes.insert("failure".to_string(), ours["failure"].clone());
        }
        assert_eq!(theirs["user_attrs"], Json::Object(attributes), "trial {number}");
        assert_eq!(ours["infeasible"], number == 22, "trial {number}");
        assert_eq!(theirs["constraints"], if number == 22 { json!({"0": 1.0}) } else { json!({}) });
    }
    assert!((1..27).contains(&with_depth), "the condition is seen to hold and not to hold");

    let states: Vec<&str> =
        trials(&read).iter().map(|trial| trial["state"].as_str().unwrap()).collect();
    for (number, state) in states.iter().enumerate() {
        let expected = match number {
            0..22 if number % 5 == 3 => "FAIL",
            22 => "FAIL",
            23 => "PRUNED",
            26 => "RUNNING",
            27 => "WAITING",
            _ => "COMPLETE",
        };
        assert_eq!(*state, expected, "trial {number}");
    }
    let of = |number: usize| &trials(&read)[number];
    // The default of x is in the first trial.
    assert_eq!(of(0)["params"]["x"], 0.1);
    assert!(of(3)["user_attrs"]["failure"].as_str().unwrap().contains("as planned"));
    assert_eq!(of(22)["user_attrs"], json!({"failure": "too \"heavy\""}));
    assert_eq!(of(23)["user_attrs"], json!({"failure": "hopeless"}));
    assert_eq!(of(24)["value"].as_f64(), Some(1e300));
    assert_eq!(of(25)["value"].as_f64(), Some(-5e-324));
    assert_eq!(
        of(27)["system_attrs"]["fixed_params"],
        json!({"x": 0.30000000000000004, "cache": true, "mode": "slow", "block": 32})
    );

    let shown: Json =
        serde_json::from_str(&case.boscage(&["show", "study.toml", "--json"])).unwrap();
    assert_eq!(shown["goal"], "maximize");
    assert_eq!(read["best"], 24);
    assert_eq!(shown["best"]["trial"], 24);
    assert_eq!(shown["best"]["values"], of(24)["params"]);
    let counts = json!({"all": 28, "complete": 20, "running": 1, "waiting": 1, "pruned": 1, "failed": 5, "infeasible": 1});
    assert_eq!(shown["trials"], counts);
}

/// The dashboard of Optuna, until the test ends.
struct Dashboard {
    port: u16,
    _server: Running,
}

impl Dashboard {
    fn start(case: &Case) -> Self {
        // Somebody may take the port before the dashboard does.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let server = Command::new(case.python.with_file_name("optuna-dashboard"))
                .args([
                    "--host",
                    "127.0.0.1",
                    "--port",
                    &port.to_string(),
                    "--quiet",
                    &case.store.url,
                ])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut server = Running(server);
            let mut has_ended = false;
            wait_until("the dashboard answers", || {
                has_ended = server.0.try_wait().unwrap().is_some();
                has_ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            if !has_ended {
                return Self { port, _server: server };
            }
        }
        panic!("the dashboard does not start");
    }

    fn get(&self, path: &str) -> Json {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(common::HANGS)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.lines().next().unwrap().contains(" 200 "), "{path}: {head}\n{body}");
        serde_json::from_str(body).unwrap()
    }

    /// The study of this name: its direction and its trials.
    fn study(&self, name: &str) -> Json {
        let studies = self.get("/api/studies");
        let found = studies["study_summaries"].as_array().unwrap();
        let study = found.iter().find(|study| study["study_name"] == name).unwrap();
        self.get(&format!("/api/studies/{}?after=0", study["study_id"]))
    }
}

/// The dashboard's trials are those of an export.
fn compare_with_dashboard(shown: &Json, exported: &[Json]) {
    assert_eq!(trials(shown).len(), exported.len());
    for (theirs, ours) in trials(shown).iter().zip(exported) {
        let number = &ours["number"];
        assert_eq!(theirs["number"], *number);
        assert_eq!(
            theirs["state"].as_str().unwrap().to_uppercase(),
            ours["state"].as_str().unwrap()
        );
        let value = theirs["values"].get(0).and_then(Json::as_f64);
        assert_eq!(
            value.map(f64::to_bits),
            ours["value"].as_f64().map(f64::to_bits),
            "trial {number}"
        );
        let params: BTreeMap<&str, &str> = theirs["params"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                (one["name"].as_str().unwrap(), one["param_external_value"].as_str().unwrap())
            })
            .collect();
        let ours = ours["params"].as_object().unwrap();
        assert_eq!(params.len(), ours.len(), "trial {number}");
        for (name, value) in ours {
            // As Python prints it.
            match value {
                Json::String(text) => assert_eq!(params[name.as_str()], text),
                Json::Bool(truth) => {
                    assert_eq!(params[name.as_str()], if *truth { "True" } else { "False" })
                }
                number => {
                    assert_eq!(
                        params[name.as_str()].parse::<f64>().unwrap(),
                        number.as_f64().unwrap(),
                        "{name}"
                    );
                }
            }
        }
    }
}

fn the_dashboard_shows_everything(case: &Case) {
    tell_everything(case);
    case.write("other.toml", &grid("random", ""));
    case.boscage(&["tune", "other.toml", "--trials", "3", "--no-report", "--quiet"]);
    let dashboard = Dashboard::start(case);
    let studies = dashboard.get("/api/studies");
    let studies: Vec<(&Json, &Json)> = studies["study_summaries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|study| (&study["study_name"], &study["directions"]))
        .collect();
    assert_eq!(
        studies,
        [(&json!("everything"), &json!(["maximize"])), (&json!("grid"), &json!(["minimize"]))]
    );
    let shown = dashboard.study("everything");
    compare_with_dashboard(&shown, &exported(case));
    assert_eq!(shown["best_trials"][0]["number"], 24);
    assert_eq!(shown["best_trials"].as_array().unwrap().len(), 1);
    assert_eq!(trials(&shown)[22]["constraints"], json!([1.0]));
    let space: BTreeSet<&str> = shown["union_search_space"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(space, EVERYTHING.iter().map(|(name, ..)| *name).collect());
    assert_eq!(trials(&dashboard.study("grid")).len(), 3);
}

fn the_dashboard_shows_a_study_while_it_runs(case: &Case) {
    // From the fourth trial on, the program waits for a file.
    case.write(
        "study.toml",
        &grid("random", "while [ $1 -ge 3 ] && [ ! -e go ]; do sleep 0.05; done"),
    );
    let tune = ["tune", "study.toml", "--trials", "6", "--no-report", "--quiet"];
    let mut tune = Running(case.command(&tune).stdout(Stdio::null()).spawn().unwrap());
    wait_until("four trials have begun", || {
        assert_eq!(tune.0.try_wait().unwrap(), None, "it has ended");
        // Until the store is there, the command fails.
        let output = case
            .command(&["export", "study.toml", "--format", "jsonl", "--out", "-"])
            .output()
            .unwrap();
        output.status.success() && lines(&String::from_utf8_lossy(&output.stdout)).len() == 4
    });
    let dashboard = Dashboard::start(case);
    let shown = dashboard.study("grid");
    let states: Vec<&Json> = trials(&shown).iter().map(|trial| &trial["state"]).collect();
    assert_eq!(states, ["Complete", "Complete", "Complete", "Running"]);
    compare_with_dashboard(&shown, &exported(case));

    case.write("go", "");
    assert!(tune.ended("the tune").success());
    // The dashboard looks again after two seconds.
    let mut shown = Json::Null;
    wait_until("the dashboard shows the end", || {
        shown = dashboard.study("grid");
        trials(&shown).iter().filter(|trial| trial["state"] == "Complete").count() == 6
    });
    compare_with_dashboard(&shown, &exported(case));
}

/// Three steps of 0.1 are 0.30000000000000004 for Optuna and 0.3 for boscage.
fn same_up_to_steps(theirs: &Json, ours: &Json) {
    let (mut theirs, mut ours) = (theirs.clone(), ours.clone());
    let share = |params: &mut Json| {
        params.as_object_mut().unwrap().remove("share").unwrap().as_f64().unwrap()
    };
    let (their_share, our_share) = (share(&mut theirs), share(&mut ours));
    assert!((their_share - our_share).abs() < 1e-12, "{their_share} and {our_share}");
    assert_eq!(theirs, ours);
}

fn boscage_goes_on_with_a_study_of_optuna(case: &Case) {
    case.optuna("create", &["everything", "minimize", "30"]);
    let before = case.read("everything");
    assert_eq!((count(&before, "FAIL"), count(&before, "PRUNED")), (4, 4));
    // An infinite one and an infeasible one tell nothing of a value.
    let observations = count(&before, "COMPLETE") - 2;

    case.write("study.toml", &everything("minimize"));
    let events = case.tune(36);
    let learned: Vec<&Json> = events
        .iter()
        .filter(|event| event["event"] == "learned")
        .map(|event| &event["observations"])
        .collect();
    assert_eq!(
        *learned[0], observations,
        "the first ask has learned from all that Optuna has done"
    );
    let ended: Vec<&Json> = events
        .iter()
        .filter(|event| event["event"] == "ended")
        .map(|event| &event["trial"])
        .collect();
    assert_eq!(ended, [30, 31, 32, 33, 34, 35]);

    let after = case.read("everything");
    assert_eq!(trials(&after).len(), 36);
    assert_eq!(trials(&after)[..30], trials(&before)[..], "what Optuna has done is as it was");
    assert_eq!(count(&after, "RUNNING") + count(&after, "WAITING"), 0);
    let exported = exported(case);
    for (number, (theirs, ours)) in trials(&after).iter().zip(&exported).enumerate() {
        assert_eq!(theirs["state"], ours["state"], "trial {number}");
        same_up_to_steps(&theirs["params"], &ours["params"]);
        assert_eq!(theirs["value"], ours["value"], "trial {number}");
        assert_eq!(ours["infeasible"], number == 1, "trial {number}");
    }
    assert_eq!(exported[1]["user_attrs"], json!({"note": ["NaN", "NaN"]}));
    let shown: Json =
        serde_json::from_str(&case.boscage(&["show", "study.toml", "--json"])).unwrap();
    assert_eq!(shown["best"]["trial"], after["best"]);

    // And Optuna goes on with what boscage has done.
    case.write("go", "");
    assert!(case.optuna_worker("everything", 3, "everything", 1).ended("Optuna").success());
    let last = case.read("everything");
    assert_eq!(trials(&last).len(), 39);
    assert_eq!(trials(&last)[..36], trials(&after)[..]);
}

fn a_study_of_optuna_with_another_goal_is_left_alone(case: &Case) {
    case.optuna("create", &["upwards", "maximize", "3"]);
    case.optuna("create", &["both", "minimize,maximize", "3"]);
    case.write("study.toml", &everything("minimize"));
    let before = case.tables("rows", &case.store.url);
    assert!(before["trials"].as_array().unwrap().len() == 6);
    for (name, reason) in [
        (
            "upwards",
            "study \"upwards\" was made by Optuna, and its goal is to maximize; this one is to minimize.",
        ),
        (
            "both",
            "study \"both\" was made by Optuna, and it has several objectives; this one is to minimize.",
        ),
    ] {
        for command in ["tune", "ask"] {
            let output = case
                .command(&[command, "study.toml", "--name", name, "--trials", "5"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(reason), "{said}");
            assert!(said.contains("Give the study another name"), "{said}");
        }
    }
    assert_eq!(case.tables("rows", &case.store.url), before);
}

fn boscage_runs_what_optuna_enqueues(case: &Case) {
    case.write("study.toml", &everything("minimize"));
    case.tune(2);
    let whole = json!({
        "x": 4.75, "rate": 0.125, "share": 0.30000000000000004, "n": 8, "even": 6, "size": 1000, "level": 2,
        "mood": "high", "cache": true, "mode": "$(touch x); rm -rf", "block": 64, "mixed": false
    });
    let part = json!({"x": -0.1, "mode": "fast", "mixed": 1});
    let outside = json!({"x": 7.0});
    let foreign = json!({"n": 2, "unknown": 3});
    for values in [&whole, &part, &outside, &foreign] {
        case.optuna("enqueue", &["everything", &values.to_string()]);
    }
    case.tune(7);
    let read = case.read("everything");
    let of = |number: usize| &trials(&read)[number];
    // The number with which a step of 0.1 is 0.3.
    let mut expected = whole;
    expected["share"] = json!(0.3);
    assert_eq!(of(2)["params"], expected);
    assert!(!case.file("x").exists());
    let params = of(3)["params"].as_object().unwrap();
    assert_eq!(
        (&params["x"], &params["mode"], &params["mixed"]),
        (&json!(-0.1), &json!("fast"), &json!(1))
    );
    assert_eq!(params.len(), 13, "boscage has chosen the rest");
    assert_eq!(of(4)["state"], "FAIL");
    let failure = of(4)["user_attrs"]["failure"].as_str().unwrap();
    assert!(failure.contains("7.0 is not between -5 and 5"), "{failure}");
    assert_eq!(of(5)["params"]["n"], 2);
    assert_eq!(of(5)["state"], "COMPLETE");
    assert_eq!(trials(&read).len(), 7);
}

fn optuna_runs_what_boscage_enqueues(case: &Case) {
    case.write("study.toml", &everything("minimize"));
    case.tune(2);
    let whole = [
        "x=4.75",
        "rate=0.125",
        "share=0.3",
        "n=8",
        "even=6",
        "size=1000",
        "level=2",
        "mood=high",
        "cache=true",
        "mode=$(touch x); rm -rf",
        "block=64",
        "mixed=2.5",
    ];
    let mut arguments = vec!["enqueue", "study.toml"];
    arguments.extend(whole);
    case.boscage(&arguments);
    case.boscage(&["enqueue", "study.toml", "x=-0.1", "mode=fast", "cache=false", "mixed=false"]);
    case.write("go", "");
    assert!(case.optuna_worker("everything", 3, "everything", 1).ended("Optuna").success());
    let read = case.read("everything");
    let of = |number: usize| &trials(&read)[number];
    assert_eq!(
        of(2)["params"],
        json!({
            "x": 4.75, "rate": 0.125, "share": 0.3, "n": 8, "even": 6, "size": 1000, "level": 2,
            "mood": "high", "cache": true, "mode": "$(touch x); rm -rf", "block": 64, "mixed": 2.5
        })
    );
    let params = of(3)["params"].as_object().unwrap();
    assert_eq!(
        (&params["x"], &params["mode"], &params["cache"], &params["mixed"]),
        (&json!(-0.1), &json!("fast"), &json!(false), &json!(false))
    );
    assert_eq!(trials(&read).len(), 5);
    assert_eq!(count(&read, "WAITING") + count(&read, "RUNNING"), 0);
    // boscage sees what came out.
    let exported = exported(case);
    for (number, exported) in exported.iter().enumerate().skip(2) {
        same_up_to_steps(&of(number)["params"], &exported["params"]);
        assert_eq!(exported["value"], of(number)["value"]);
    }
}

/// Starts a tune whose events go to a file.
fn start_tune(case: &Case, name: &str, trials: u32) -> Running {
    let trials = trials.to_string();
    let arguments =
        ["tune", "study.toml", "--json", "--no-report", "--jobs", "2", "--trials", &trials];
    Running(
        case.command(&arguments).stdout(File::create(case.file(name)).unwrap()).spawn().unwrap(),
    )
}

/// What workers say they have told, by trial. None may be told by two.
fn told(case: &Case, optuna: &[u32], boscage: &[&str]) -> (BTreeMap<u64, f64>, BTreeSet<u64>) {
    let mut told = BTreeMap::new();
    let mut note = |number: &Json, value: &Json| {
        let number = number.as_u64().unwrap();
        let before = told.insert(number, value.as_f64().unwrap());
        assert_eq!(before, None, "trial {number} was told twice");
        number
    };
    for identity in optuna {
        for line in lines(&std::fs::read_to_string(case.file(&format!("told-{identity}"))).unwrap())
        {
            note(&line["number"], &line["value"]);
        }
    }
    let mut by_boscage = BTreeSet::new();
    for name in boscage {
        for line in lines(&std::fs::read_to_string(case.file(name)).unwrap()) {
            assert_ne!(line["event"], "dropped", "{line}");
            if line["event"] == "ended" {
                by_boscage.insert(note(&line["trial"], &line["value"]));
            }
        }
    }
    (told, by_boscage)
}

/// Trials are numbered without gaps, all are complete, and everything that was told is there, and nothing else.
fn nothing_is_lost_or_doubled(read: &Json, told: &BTreeMap<u64, f64>) {
    for (number, trial) in trials(read).iter().enumerate() {
        assert_eq!(trial["number"], number);
        assert_eq!(trial["state"], "COMPLETE", "trial {number}");
        let value = trial["value"].as_f64().unwrap();
        assert_eq!(
            Some(value.to_bits()),
            told.get(&(number as u64)).map(|told| told.to_bits()),
            "trial {number}"
        );
    }
    assert_eq!(trials(read).len(), told.len());
}

fn both_write_at_once(case: &Case) {
    // After a few trials boscage's programs wait until both Optuna programs have told something, so that they do meet.
    let waits = "while [ $1 -ge 8 ] && ! [ -e begun-1 -a -e begun-2 ]; do sleep 0.01; done";
    case.write("study.toml", &grid("tree", waits));
    case.tune(2);
    let optuna =
        [case.optuna_worker("grid", 25, "grid", 1), case.optuna_worker("grid", 25, "grid", 2)];
    let boscage = [start_tune(case, "events-1", 110), start_tune(case, "events-2", 110)];
    case.write("go", "");
    for worker in optuna {
        assert!(worker.ended("Optuna").success());
    }
    for worker in boscage {
        assert!(worker.ended("boscage").success());
    }
    let read = case.read("grid");
    let (mut told, by_boscage) = told(case, &[1, 2], &["events-1", "events-2"]);
    // Those before.
    for trial in &trials(&read)[..2] {
        told.insert(trial["number"].as_u64().unwrap(), trial["value"].as_f64().unwrap());
    }
    nothing_is_lost_or_doubled(&read, &told);
    assert!(trials(&read).len() >= 110);
    assert_eq!(told.len() - by_boscage.len(), 2 + 50);
    let last = *by_boscage.last().unwrap();
    let optuna_between = (2..last).filter(|number| !by_boscage.contains(number)).count();
    assert!(optuna_between >= 2, "they have not met");
    let points: BTreeSet<String> = by_boscage
        .iter()
        .map(|number| trials(&read)[*number as usize]["params"].to_string())
        .collect();
    assert_eq!(points.len(), by_boscage.len(), "boscage has tried a point twice");
    let numbers = |line: &Json| (line["event"] == "ended").then(|| line["trial"].as_u64().unwrap());
    for name in ["events-1", "events-2"] {
        let events = lines(&std::fs::read_to_string(case.file(name)).unwrap());
        assert!(events.iter().filter_map(numbers).count() > 0, "{name}: it has run nothing");
    }
}

fn share_a_queue(case: &Case) {
    case.write("study.toml", &grid("random", ""));
    case.tune(1);
    for x in 0..20 {
        case.boscage(&["enqueue", "study.toml", &format!("x={x}"), "y=5"]);
    }
    let optuna = case.optuna_worker("grid", 10, "grid", 1);
    case.write("go", "");
    let boscage = start_tune(case, "events-1", 21);
    assert!(optuna.ended("Optuna").success());
    assert!(boscage.ended("boscage").success());
    let read = case.read("grid");
    let (mut told, by_boscage) = told(case, &[1], &["events-1"]);
    told.insert(0, trials(&read)[0]["value"].as_f64().unwrap());
    nothing_is_lost_or_doubled(&read, &told);
    for x in 0..20 {
        assert_eq!(
            trials(&read)[x + 1]["params"],
            json!({"x": x, "y": 5}),
            "the queue is in its order"
        );
    }
    assert!(!by_boscage.is_empty());
}
