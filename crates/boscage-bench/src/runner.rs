//! Runs a plan on all cores and appends results as they come; run again, it continues what is unfinished.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::results::TrialRecord;

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
    _plan: &Plan,
    _options: &RunnerOptions,
    _stop: &AtomicBool,
    _observe: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Summary> {
    Err(Error::problem("to be written"))
}
