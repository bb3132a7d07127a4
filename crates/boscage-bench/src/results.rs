//! Results on disk: one file of JSON lines for each run, readable by any program.
//!
//! ```text
//! OUT/sessions.jsonl                    one line for each time the runner was started: what was planned, version, machine, time
//! OUT/PROBLEM/METHOD/seed-0003.jsonl    a start line, then one line for each trial, in order
//! ```
//!
//! A line is written by one call once its trial is complete. A process killed in the middle of that leaves a last line without
//! its end, which is ignored by readers and overwritten when the run goes on. Everything but times and memory
//! ([`TrialRecord::timing`]) is a function of the recipe and the seed.

use std::path::{Path, PathBuf};

use boscage::graph::{Edge, EdgeScore};
use boscage::{Model, Point};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Goal, Optimum};

/// Version of the format. It grows when a reader of the old one could misunderstand the new one.
pub const SCHEMA: u32 = 1;

/// One line of a run's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// The first line: what is being run.
    Start(Box<Start>),
    /// One trial.
    Trial(Box<TrialRecord>),
    /// The run ended before its budget did.
    End {
        /// Why.
        reason: String,
    },
}

/// What is being run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// Label of the problem in the recipe.
    pub problem: String,
    /// The problem in full.
    pub problem_settings: serde_json::Value,
    /// Label of the method in the recipe.
    pub method: String,
    /// The method with all its settings.
    pub method_settings: serde_json::Value,
    /// The seed of the run.
    pub seed: u64,
    /// Points of the initial design, the same for all methods of a seed.
    pub initial_points: u64,
    /// Trials that the run was to have when it was begun, the initial design included.
    pub trials: u64,
    /// Number of parameters.
    pub dimension: usize,
    /// What is sought.
    pub goal: Goal,
    /// Standard deviation of the noise.
    pub noise_std: f64,
    /// The best value, if it is known.
    pub optimum: Option<Optimum>,
    /// Edges of the true graph, if it is known.
    pub true_edges: Option<Vec<Edge>>,
    /// Version of boscage that began the run.
    pub version: String,
    /// Commit of boscage that began the run, if it was built from a repository.
    pub commit: Option<String>,
    /// The machine that began the run.
    pub machine: Machine,
    /// When the run began, in seconds since 1970.
    pub started: f64,
}

/// The machine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and processor architecture.
    pub system: String,
    /// Name of the processor, if it can be told.
    pub processor: Option<String>,
    /// Number of cores the process may use.
    pub cores: usize,
}

/// One trial: what was evaluated, what came out, and how the run stands after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Number of the trial in its run, from 0.
    pub trial: u64,
    /// Whether the trial belongs to the initial design.
    pub initial: bool,
    /// The point in model coordinates.
    pub point: Point,
    /// What the optimizer was told; nothing if the trial failed.
    pub observed: Option<f64>,
    /// The value without noise; nothing if the trial failed.
    pub value: Option<f64>,
    /// Why the trial failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The best noise-free value so far.
    pub best_value: Option<f64>,
    /// Distance of `best_value` to the optimum, if that is known.
    pub regret: Option<f64>,
    /// How well the learned graph agrees with the true one, if both exist.
    pub score: Option<EdgeScore>,
    /// How many values of φ^G all asks so far needed: the paper's message-passing cost.
    pub cost: u64,
    /// The graph, if it was learned anew in this trial's ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<LearnedGraph>,
    /// The whole model, if it was learned anew in this trial's ask: what a continued run goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<Model>>,
    /// Times and memory: the only part that differs between repetitions of a run.
    pub timing: Timing,
}

/// A learned graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedGraph {
    /// Its edges, each with the share of the structure samples that had it.
    pub edges: Vec<(Edge, f64)>,
    /// Log marginal likelihood of the model.
    pub log_likelihood: f64,
}

/// What one trial took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Seconds in ask, by the clock.
    pub ask_seconds: f64,
    /// Seconds in tell, by the clock.
    pub tell_seconds: f64,
    /// Seconds of processor time in ask, over all threads of the run.
    pub ask_cpu_seconds: f64,
    /// Seconds of processor time in tell, over all threads of the run.
    pub tell_cpu_seconds: f64,
    /// Seconds of the evaluation, by the clock.
    pub evaluation_seconds: f64,
    /// Seconds of everything that the runner itself does in a trial: metrics and writing of the trial before.
    pub overhead_seconds: f64,
    /// Resident memory of the whole process after the trial, in bytes; 0 where the system does not tell.
    pub resident_bytes: u64,
}

/// One run as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// Its file.
    pub path: PathBuf,
    /// What was run.
    pub start: Start,
    /// Its trials, in order.
    pub trials: Vec<TrialRecord>,
    /// Why it ended before its budget, if it did.
    pub end: Option<String>,
}

impl RunResult {
    /// The graph learned last, if any.
    pub fn learned(&self) -> Option<&LearnedGraph> {
        self.trials.iter().rev().find_map(|trial| trial.learned.as_ref())
    }
}

/// The file of a run.
pub fn run_path(out: &Path, problem: &str, method: &str, seed: u64) -> PathBuf {
    out.join(problem).join(method).join(format!("seed-{seed:04}.jsonl"))
}

/// What a run's file holds, and how many of its bytes are complete lines.
pub(crate) fn parse_run(path: &Path, text: &[u8]) -> Result<(Option<RunResult>, usize)> {
    let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut run: Option<RunResult> = None;
    for (number, line) in text[..complete].split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let bad = |reason: String| {
            Error::results(
                path,
                format!("line {}: {reason}; delete the file to run this again", number + 1),
            )
        };
        match (serde_json::from_slice(line).map_err(|e| bad(e.to_string()))?, &mut run) {
            (Line::Start(start), None) => {
                if start.schema != SCHEMA {
                    return Err(Error::results(
                        path,
                        format!(
                            "the file has format {}, but this version of boscage reads format {SCHEMA}",
                            start.schema
                        ),
                    ));
                }
                run = Some(RunResult {
                    path: path.to_path_buf(),
                    start: *start,
                    trials: Vec::new(),
                    end: None,
                });
            }
            (Line::Trial(trial), Some(run)) if trial.trial == run.trials.len() as u64 => {
                run.trials.push(*trial);
            }
            (Line::End { reason }, Some(run)) => run.end = Some(reason),
            (Line::Trial(trial), _) => {
                return Err(bad(format!("trial {} does not follow the line before", trial.trial)));
            }
            (Line::Start(_) | Line::End { .. }, _) => {
                return Err(bad("it does not follow the line before".to_string()));
            }
        }
    }
    Ok((run, complete))
}

/// Reads one run. Nothing if the file has no complete line yet.
pub fn read_run(path: &Path) -> Result<Option<RunResult>> {
    let text = std::fs::read(path).map_err(Error::file(path, "reading"))?;
    Ok(parse_run(path, &text)?.0)
}

/// Reads all runs below a folder, ordered by path.
pub fn read_runs(out: &Path) -> Result<Vec<RunResult>> {
    let mut runs = Vec::new();
    for problem in folders(out)? {
        for method in folders(&problem)? {
            for path in entries(&method)? {
                let is_run = path.extension().is_some_and(|extension| extension == "jsonl");
                if is_run && let Some(run) = read_run(&path)? {
                    runs.push(run);
                }
            }
        }
    }
    if runs.is_empty() {
        return Err(Error::results(
            out,
            "there are no results here; `boscage bench run` makes them",
        ));
    }
    Ok(runs)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listing = std::fs::read_dir(folder).map_err(Error::file(folder, "reading the folder"))?;
    let mut paths = listing
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(Error::file(folder, "reading the folder"))?;
    paths.sort();
    Ok(paths)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}
