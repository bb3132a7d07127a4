//! A PostgreSQL server that goes away in the middle.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{
    Scene, assert_ended_without_gaps, bits, end_of, json_lines, pause, send, states, until,
};

const STUDY: &str = r#"
seed = 2
[parameters]
x = { type = "real", low = -1, high = 1 }
y = { type = "real", low = -1, high = 1 }
[program]
command = ["sh", "-c", "echo {trial} >> log; sleep 0.02; awk -v x={x} -v y={y} 'BEGIN {{ printf \"%.17g\\n\", x * x + x * y + 1 }}'"]
[workers]
lease_seconds = 600
lost_retries = 1000
"#;

/// A server of our own: it is to be restarted.
struct Server {
    folder: PathBuf,
    address: String,
}

impl Server {
    /// None if the tests are to do without PostgreSQL.
    fn start(folder: PathBuf) -> Option<Self> {
        if std::env::var_os("BOSCAGE_WITHOUT_POSTGRES").is_some_and(|value| value == "1") {
            println!("left out: BOSCAGE_WITHOUT_POSTGRES=1");
            return None;
        }
        let address = script("start", &folder);
        Some(Self { folder, address })
    }

    fn restart(&self) {
        script("restart", &self.folder);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script("stop", &self.folder);
    }
}

fn script(word: &str, folder: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(script).arg(word).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

#[test]
fn a_server_that_restarts_costs_no_result() {
    let scene = Scene::new(STUDY);
    // Whoever runs the server has to reach its folder.
    std::fs::set_permissions(scene.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let Some(server) = Server::start(scene.path("server")) else { return };
    let file = std::fs::File::create(scene.path("events")).unwrap();
    let errors = std::fs::File::create(scene.path("errors")).unwrap();
    let mut tune = scene
        .boscage(&[
            "tune",
            "study.toml",
            "--no-report",
            "--json",
            "--jobs",
            "2",
            "--trials",
            "100000",
        ])
        .env("BOSCAGE_STORAGE", &server.address)
        .stdout(Stdio::from(file))
        .stderr(Stdio::from(errors))
        .spawn()
        .unwrap();
    let begun = || scene.read("log").lines().count();
    let mut restarts = 0;
    for _ in 0..3 {
        let before = begun();
        until("trials are run", || begun() > before + 10);
        server.restart();
        restarts += 1;
        assert_eq!(tune.try_wait().unwrap(), None, "{}", scene.read("errors"));
    }
    let before = begun();
    until("trials are run after the last restart", || begun() > before + 10);
    // Asks to end: the trials that are run are told.
    send("-INT", &tune);
    assert_eq!(end_of(&mut tune), Some(130), "{}", scene.read("errors"));
    pause(10);
    scene.assert_no_orphans(&[tune.id()]);

    let mut export = scene.boscage(&["export", "study.toml", "--format", "jsonl", "--out", "-"]);
    let exported = crate::support::run(export.env("BOSCAGE_STORAGE", &server.address));
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let trials = json_lines(&exported.stdout);
    assert_ended_without_gaps(&trials);
    assert_eq!(states(&trials)["COMPLETE"], trials.len());
    for trial in &trials {
        let at = |name: &str| trial["params"][name].as_f64().unwrap();
        let expected = at("x") * at("x") + at("x") * at("y") + 1.0;
        assert!((trial["value"].as_f64().unwrap() - expected).abs() < 1e-12, "{trial}");
    }
    let mut told = 0;
    for event in json_lines(&scene.read("events")) {
        if event["event"] == "ended" {
            told += 1;
            assert_eq!(bits(&event), bits(&trials[event["trial"].as_u64().unwrap() as usize]));
        }
    }
    assert_eq!(told, trials.len(), "every trial was told once");
    assert_eq!(begun(), trials.len(), "every trial was run once: {}", scene.read("errors"));
    println!(
        "{restarts} restarts of the server under 2 jobs: {told} trials run, told and stored, each once"
    );
}
