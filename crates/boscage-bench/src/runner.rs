//! Runs a plan on all cores and appends results as they come; run again, it continues what is unfinished.
//!
//! Each run has a file of its own ([`crate::results`]), so what is in it depends neither on how many runs go on at a time nor
//! on what was interrupted. A run that was cut off goes on after its last complete trial, with the model learned last: no
//! trial is evaluated twice.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::plan::{Observations, Plan, Run};
use crate::problem::Problem;
use crate::results::{Line, Machine, SCHEMA, Start, TrialRecord, parse_run, run_path};
use crate::run::{RunInProgress, Step};

/// How a plan is run. None of it changes results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerOptions {
    /// Folder of the results.
    pub out: PathBuf,
    /// Runs at a time.
    pub jobs: usize,
    /// Threads of each run.
    pub threads: usize,
}

/// What the runner tells on the way. Runs are numbered as in [`Plan::runs`].
#[derive(Debug)]
pub enum Event<'a> {
    /// The run was complete before.
    AlreadyDone {
        /// Which run.
        run: usize,
    },
    /// The run begins or goes on.
    Started {
        /// Which run.
        run: usize,
        /// Trials it has already.
        trials: u64,
    },
    /// A trial is complete and stored.
    Trial {
        /// Which run.
        run: usize,
        /// The trial.
        record: &'a TrialRecord,
    },
    /// The run is complete.
    Finished {
        /// Which run.
        run: usize,
    },
    /// The run ended by an error; its trials so far are stored.
    Failed {
        /// Which run.
        run: usize,
        /// The error.
        error: &'a Error,
    },
}

/// What became of a plan.
#[derive(Debug)]
pub struct Summary {
    /// Runs that were complete before.
    pub already_done: usize,
    /// Runs completed now.
    pub finished: usize,
    /// Runs that ended by an error, by their number in [`Plan::runs`].
    pub failed: Vec<(usize, Error)>,
    /// Whether `stop` ended it.
    pub stopped: bool,
}

/// Runs everything in the plan that is not complete in the folder of results.
///
/// `stop` ends it after the trials that are being run. `observe` is called from several threads.
///
/// # Errors
///
/// The folder cannot be used, another runner uses it, or it holds results of another plan under the same labels. Errors of
/// single runs are in the [`Summary`].
pub fn run_plan(
    plan: &Plan,
    options: &RunnerOptions,
    stop: &AtomicBool,
    observe: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Summary> {
    let out = &options.out;
    std::fs::create_dir_all(out).map_err(Error::file(out, "making the folder"))?;
    let _lock = lock(out)?;
    let runs = plan.runs();
    let mut open = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let path = run_path(out, &run.problem.label, &run.method.label, run.seed);
        check_unchanged(plan, run, &path)?;
        if is_done(&path, plan.trials_in_run())? {
            observe(Event::AlreadyDone { run: number });
        } else {
            open.push((number, path));
        }
    }
    let already_done = runs.len() - open.len();
    if !open.is_empty() {
        log_session(plan, options, open.len())?;
    }

    let next = AtomicUsize::new(0);
    let finished = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        // Every worker has a pool of its own, so that the processor time of a run can be told from that of others.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .build()
            .map_err(|error| Error::results(out, format!("starting threads failed: {error}")))?;
        while !stop.load(Ordering::Relaxed) {
            let Some((number, path)) = open.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let attempt = || run_one(plan, &runs[*number], *number, path, stop, observe);
            let ended = catch_unwind(AssertUnwindSafe(|| pool.install(attempt)));
            match ended.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))) {
                Ok(Ended::Complete) => {
                    finished.fetch_add(1, Ordering::Relaxed);
                    observe(Event::Finished { run: *number });
                }
                Ok(Ended::Stopped) => {}
                Err(error) => {
                    observe(Event::Failed { run: *number, error: &error });
                    failed.lock().unwrap_or_else(|e| e.into_inner()).push((*number, error));
                }
            }
        }
        Ok(())
    };
    let workers = options.jobs.max(1).min(open.len());
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        handles.into_iter().try_for_each(|handle| {
            handle.join().unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
        })
    })?;
    let mut failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    failed.sort_by_key(|(number, _)| *number);
    let finished = finished.into_inner();
    // A stop that came after the last trial stopped nothing.
    let stopped = finished + failed.len() < open.len();
    Ok(Summary { already_done, finished, failed, stopped })
}

enum Ended {
    Complete,
    Stopped,
}

/// Runs one run to its end, from wherever its file ends.
fn run_one(
    plan: &Plan,
    run: &Run<'_>,
    number: usize,
    path: &Path,
    stop: &AtomicBool,
    observe: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Ended> {
    let problem = (run.problem.build)(run.seed)?;
    let optimizer = (run.method.build)(problem.as_ref())?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::file(folder, "making the folder"))?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(path)
        .map_err(Error::file(path, "opening"))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(Error::file(path, "reading"))?;
    let (stored, complete) = parse_run(path, &text)?;
    // What a killed process wrote of its last line is written again.
    file.set_len(complete as u64).map_err(Error::file(path, "shortening"))?;
    file.seek(SeekFrom::End(0)).map_err(Error::file(path, "writing"))?;

    let mut progress = RunInProgress::with(
        problem.as_ref(),
        optimizer,
        run.seed,
        plan.initial_points,
        run.method.observations,
    );
    let mut trials = 0;
    match stored {
        Some(stored) => {
            trials = stored.trials.len() as u64;
            if trials > 0 && stored.start.version != env!("CARGO_PKG_VERSION") {
                let reason = format!(
                    "the run was begun by boscage {}, this is {}; finish it with that version, or delete the file to run it again",
                    stored.start.version,
                    env!("CARGO_PKG_VERSION")
                );
                return Err(Error::results(path, reason));
            }
            let edges = problem.graph().map(|graph| graph.edges());
            if stored.start.true_edges.as_deref() != edges {
                let reason = "the graph of the problem has changed since this run was begun; choose another folder for the new results, or delete this one";
                return Err(Error::results(path, reason));
            }
            progress.resume(&stored.trials)?;
        }
        None => {
            let start = start_of(plan, run, problem.as_ref());
            append(&mut file, path, &Line::Start(Box::new(start)))?;
        }
    }
    observe(Event::Started { run: number, trials });
    while trials < plan.trials_in_run() {
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        match progress.step()? {
            Step::Trial(record) => {
                let begin = Instant::now();
                let line = Line::Trial(record);
                append(&mut file, path, &line)?;
                if let Line::Trial(record) = &line {
                    observe(Event::Trial { run: number, record });
                }
                progress.stored_in(begin.elapsed().as_secs_f64());
                trials += 1;
            }
            Step::Exhausted(reason) => {
                append(&mut file, path, &Line::End { reason })?;
                break;
            }
        }
    }
    file.sync_data().map_err(Error::file(path, "writing"))?;
    Ok(Ended::Complete)
}

fn start_of(plan: &Plan, run: &Run<'_>, problem: &dyn Problem) -> Start {
    Start {
        schema: SCHEMA,
        recipe: plan.name.clone(),
        problem: run.problem.label.clone(),
        problem_settings: run.problem.settings.clone(),
        method: run.method.label.clone(),
        method_settings: run.method.settings.clone(),
        seed: run.seed,
        initial_points: plan.initial_points,
        trials: plan.trials_in_run(),
        dimension: problem.space().dimension(),
        goal: problem.goal(),
        noise_std: match run.method.observations {
            Observations::Noisy => problem.noise_std(),
            Observations::NoiseFree => 0.0,
        },
        optimum: problem.optimum().cloned(),
        true_edges: problem.graph().map(|graph| graph.edges().to_vec()),
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: option_env!("BOSCAGE_COMMIT").map(str::to_string),
        machine: machine(),
        started: now(),
    }
}

/// Appends one line by one call, so that no other line can come between its parts.
fn append(file: &mut File, path: &Path, line: &impl Serialize) -> Result<()> {
    let mut bytes = to_json(path, line)?;
    bytes.push(b'\n');
    file.write_all(&bytes).map_err(Error::file(path, "writing"))
}

fn to_json(path: &Path, content: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(content).map_err(|error| Error::results(path, error.to_string()))
}

/// Whether a run has all its trials or ended before. Looks at line ends only: results can be large.
fn is_done(path: &Path, trials: u64) -> Result<bool> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        read => read.map_err(Error::file(path, "reading"))?,
    };
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let complete = lines.iter().filter(|line| line.ends_with(b"\n")).count() as u64;
    let ended =
        lines.iter().any(|line| line.starts_with(br#"{"line":"end""#) && line.ends_with(b"\n"));
    Ok(ended || complete > trials)
}

/// Refuses to continue a run whose problem or method has changed.
fn check_unchanged(plan: &Plan, run: &Run<'_>, path: &Path) -> Result<()> {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => {
            let mut reader = std::io::BufReader::new(opened.map_err(Error::file(path, "opening"))?);
            std::io::BufRead::read_until(&mut reader, b'\n', &mut text)
                .map_err(Error::file(path, "reading"))?;
        }
    }
    let Some(stored) = parse_run(path, &text)?.0 else { return Ok(()) };
    let stored = stored.start;
    let points = |points: u64| serde_json::json!({ "initial_points": points });
    let changes = [
        ("the problem", &stored.problem_settings, &run.problem.settings),
        ("the method", &stored.method_settings, &run.method.settings),
        ("the plan", &points(stored.initial_points), &points(plan.initial_points)),
    ];
    for (what, stored, now) in changes {
        if let Some(change) = difference(stored, now) {
            let reason = format!(
                "{what} has changed since this run was begun ({change}); choose another folder for the new results, or delete this one"
            );
            return Err(Error::results(path, reason));
        }
    }
    Ok(())
}

/// The first difference between two settings, in words.
pub(crate) fn difference(stored: &Value, now: &Value) -> Option<String> {
    match (stored, now) {
        (Value::Object(stored), Value::Object(now)) => {
            let keys = stored.keys().chain(now.keys().filter(|key| !stored.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let (stored, now) = (stored.get(key), now.get(key));
                let inner =
                    difference(stored.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null))?;
                Some(if inner.starts_with(": ") {
                    format!("{key}{inner}")
                } else {
                    format!("{key}.{inner}")
                })
            })
        }
        (stored, now) if stored == now => None,
        (stored, now) => Some(format!(": {stored} then, {now} now")),
    }
}

/// Keeps a second runner out of the folder for as long as the file is open.
fn lock(out: &Path) -> Result<File> {
    let path = out.join(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(Error::file(&path, "opening"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::results(
            out,
            "another process is running an experiment in this folder; wait for it or choose another folder",
        )),
        // Some network file systems have no locks; the folder is then only guarded by its user.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(Error::file(path, "locking")(error)),
    }
}

/// Notes who runs what, and when, beside the results.
fn log_session(plan: &Plan, options: &RunnerOptions, open: usize) -> Result<()> {
    let path = options.out.join("sessions.jsonl");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(Error::file(&path, "opening"))?;
    let session = serde_json::json!({
        "schema": SCHEMA,
        "recipe": plan.name,
        "problems": plan.problems.iter().map(|problem| &problem.label).collect::<Vec<_>>(),
        "methods": plan.methods.iter().map(|method| &method.label).collect::<Vec<_>>(),
        "seeds": plan.seeds,
        "initial_points": plan.initial_points,
        "trials": plan.trials,
        "open_runs": open,
        "jobs": options.jobs,
        "threads": options.threads,
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("BOSCAGE_COMMIT"),
        "machine": machine(),
        "started": now(),
    });
    append(&mut file, &path, &session)
}

fn machine() -> Machine {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    Machine {
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Panicked { reason: text.unwrap_or_else(|| "a panic without a message".to_string()) }
}
