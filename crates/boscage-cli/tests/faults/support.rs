//! A study in a folder of its own, the program `boscage` on it, and what is left of both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

/// The variable by which processes of a test are found.
const MARK: &str = "BOSCAGE_FAULTS_MARK";
/// Against hanging: nothing here takes nearly as long.
const FOREVER: Duration = Duration::from_secs(120);

/// A study in a folder of its own.
pub(crate) struct Scene {
    folder: TempDir,
    mark: String,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    /// A folder with this study file.
    pub(crate) fn new(study: &str) -> Self {
        let scene = Self::empty();
        scene.write("study.toml", study);
        scene
    }

    /// An empty folder.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        Self { folder, mark }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program in the folder; whatever it starts can be found.
    pub(crate) fn boscage(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boscage"));
        command.args(arguments).current_dir(self.folder.path()).env(MARK, &self.mark);
        command.env_remove("BOSCAGE_STORAGE").stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        run(&mut self.boscage(arguments))
    }

    /// `boscage tune study.toml`, which has to go well.
    pub(crate) fn tune(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(&[&["tune", "study.toml", "--no-report", "--json"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran
    }

    /// All trials, as they are exported.
    pub(crate) fn trials(&self) -> Vec<Json> {
        self.trials_of("study.toml")
    }

    pub(crate) fn trials_of(&self, study: &str) -> Vec<Json> {
        let ran = self.run(&["export", study, "--format", "jsonl", "--out", "-"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        json_lines(&ran.stdout)
    }

    /// Processes that the program has started and that are still alive: those that have the mark, and guardians.
    fn processes(&self, of: &[u32]) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(number) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let command = read("cmdline");
            let command: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            let is_marked =
                read("environ").split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
            let is_guardian = command.windows(2).any(|pair| {
                pair[0] == b"boscage-guardian"
                    && of.iter().any(|boscage| pair[1] == boscage.to_string().as_bytes())
            });
            if number != std::process::id() && is_alive(number) && (is_marked || is_guardian) {
                let words: Vec<_> =
                    command.iter().map(|word| String::from_utf8_lossy(word)).collect();
                found.push(format!("{number}: {}", words.join(" ")));
            }
        }
        found
    }

    /// Fails if something that these boscages have started stays alive. Whoever was killed takes a moment to end.
    pub(crate) fn assert_no_orphans(&self, of: &[u32]) {
        let mut found = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20) {
            found = self.processes(of);
            if found.is_empty() {
                return;
            }
            pause(10);
        }
        panic!("these outlive boscage: {found:#?}");
    }

    /// How many processes have the mark now.
    pub(crate) fn alive(&self) -> usize {
        self.processes(&[]).len()
    }

    /// Fails unless SQLite finds the store whole.
    pub(crate) fn assert_whole(&self, store: &str) {
        let file = rusqlite::Connection::open(self.path(store)).unwrap();
        let answer: String =
            file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(answer, "ok");
    }
}

/// A process that runs: not one that has ended and that nobody has asked for its exit code.
fn is_alive(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ran {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits for the end of a process, not for ever.
pub(crate) fn end_of(child: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(begin.elapsed() < FOREVER, "it does not end");
        pause(2);
    }
}

/// Waits until something holds, not for ever.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < FOREVER, "waited in vain: {what}");
        pause(5);
    }
}

pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// SIGKILL: the process has no chance to tidy up.
pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

pub(crate) fn send(signal: &str, to: &Child) {
    assert!(Command::new("kill").args([signal, &to.id().to_string()]).status().unwrap().success());
}

/// The lines of a text that are whole: a killed process leaves its last one torn.
pub(crate) fn json_lines(text: &str) -> Vec<Json> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The value of a trial, bit for bit.
pub(crate) fn bits(trial: &Json) -> Option<u64> {
    trial["value"].as_f64().map(f64::to_bits)
}

/// Number, state, parameters and value of trials: what has to be the same in two runs. Numbers are printed with all their
/// digits, so that equal texts are equal bits.
pub(crate) fn essence(trials: &[Json]) -> Vec<String> {
    let one = |trial: &Json| {
        format!("{} {} {} {}", trial["number"], trial["state"], trial["params"], trial["value"])
    };
    trials.iter().map(one).collect()
}

/// How many trials are in each state.
pub(crate) fn states(trials: &[Json]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for trial in trials {
        *counts.entry(trial["state"].as_str().unwrap().to_string()).or_insert(0) += 1;
    }
    counts
}

/// Fails unless the numbers are 0, 1, 2, … and everything has ended.
pub(crate) fn assert_ended_without_gaps(trials: &[Json]) {
    let numbers: Vec<u64> = trials.iter().map(|trial| trial["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..trials.len() as u64).collect::<Vec<_>>(), "gaps or doubles");
    for trial in trials {
        assert!(!matches!(trial["state"].as_str(), Some("RUNNING" | "WAITING")), "{trial}");
    }
}

/// Numbers that look random and are always the same.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below this number.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.share() * end as f64) as usize
    }
}

/// Whether this process may mount a file system; says if not.
pub(crate) fn mounted(kind: &str, path: &Path) -> Option<Mount> {
    std::fs::create_dir_all(path).unwrap();
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", kind, "boscage-faults"])
        .arg(path)
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("left out: a tmpfs cannot be mounted here (it needs root)");
        return None;
    }
    Some(Mount { path: path.to_path_buf() })
}

/// A file system of a test.
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
}

impl Mount {
    /// Mounts it anew with these options.
    pub(crate) fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.path).status().unwrap();
        assert!(status.success(), "{options}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}
