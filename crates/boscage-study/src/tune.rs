//! Workers that run trials of a study with its program, until the budget is spent.
//!
//! Each of the jobs is a thread that asks for a trial, runs the program, and tells the result over a connection of its own, so
//! that no result waits for somebody else's ask. One more thread keeps the leases of all that is running going.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boscage::Value;

use crate::definition::{Aggregate, Budget, Definition, Score};
use crate::error::{Error, Result};
use crate::parameters::Values;
use crate::program::{Context, Program};
use crate::store::{Outcome, Store};
use crate::study::{Asked, AskedTrial, Renewer, Study};
use crate::worker::Worker;

/// How often others' trials are looked at while nothing else is to be done.
const WAIT: Duration = Duration::from_millis(500);
/// How often a signal to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// How a study is run.
pub struct Plan<'a> {
    /// The folder that the program's paths begin in.
    pub folder: &'a Path,
    /// How many trials are run at a time.
    pub jobs: usize,
    /// When to end.
    pub budget: Budget,
    /// Set by whoever wants no more trials to be begun.
    pub stop: &'a AtomicBool,
}

/// What happens while a study is run.
#[derive(Debug)]
pub enum Event<'a> {
    /// A trial begins.
    Began {
        /// The trial.
        trial: &'a AskedTrial,
        /// Seconds that asking took.
        ask_seconds: f64,
    },
    /// A trial has ended and is stored.
    Ended {
        /// The trial.
        trial: &'a AskedTrial,
        /// What came out.
        outcome: &'a Outcome,
        /// Seconds that it took.
        seconds: f64,
        /// Number and value of the best trial so far.
        best: Option<(u64, f64)>,
        /// Whether this is the best so far.
        is_best: bool,
    },
    /// The model was learned anew.
    Learned(&'a boscage::Model),
    /// The program failed and is run again.
    Retried {
        /// The trial's number.
        number: u64,
        /// Why.
        reason: &'a str,
    },
    /// A result could not be used.
    Dropped {
        /// The trial's number.
        number: u64,
        /// Why.
        reason: String,
    },
    /// All trials are begun, and others run some of them.
    WaitsForOthers,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StopReason {
    /// There are as many trials as wanted.
    Trials(u64),
    /// The time is over.
    Seconds(f64),
    /// A value as good as wanted was found.
    Target(f64),
    /// Every point of the space has been tried.
    Exhausted(String),
    /// Somebody wanted it.
    Interrupted,
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StopReason::Trials(trials) => {
                write!(f, "the study has {trials} trials, as budget.trials says")
            }
            StopReason::Seconds(seconds) => {
                write!(f, "{seconds} s are over, as budget.seconds says")
            }
            StopReason::Target(target) => {
                write!(f, "a value as good as budget.target, {target}, was found")
            }
            StopReason::Exhausted(reason) => f.write_str(reason),
            StopReason::Interrupted => f.write_str("it was interrupted; the same command goes on"),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Why.
    pub reason: StopReason,
    /// Trials that this run has ended.
    pub trials: u64,
}

/// Runs trials until the budget is spent.
///
/// # Errors
///
/// A store that cannot be read or written ends the run; results that could not be stored are in the message.
pub fn tune(
    study: &mut Study,
    plan: &Plan<'_>,
    events: &(dyn Fn(&Event<'_>) + Sync),
) -> Result<Finish> {
    let definition = study.definition().clone();
    let Some(program) = definition.program.clone() else {
        return Err(Error::Study {
            reason: "the study has no [program]; add one to the study file, or use `boscage ask` and `boscage tell`".to_string(),
        });
    };
    let renewer = study.renewer()?;
    let stores =
        (0..plan.jobs.max(1)).map(|_| study.store().reopen()).collect::<Result<Vec<Store>>>()?;
    let name = study.name().to_string();
    let crew = Crew {
        name: &name,
        definition: &definition,
        program: &program,
        plan,
        events,
        worker: Worker::this_process(),
        begin: Instant::now(),
        study: Mutex::new(study),
        held: Mutex::new(BTreeMap::new()),
        best: Mutex::new(None),
        end: Mutex::new(None),
        ended: AtomicU64::new(0),
        unstored: Mutex::new(Vec::new()),
    };
    crew.ask_best()?;
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        let crew = &crew;
        let keeper = std::thread::Builder::new()
            .name("leases".to_string())
            .spawn_scoped(scope, move || crew.keep_leases(renewer, &is_done));
        if let Err(error) = keeper {
            crew.end_with(Err(thread_error(&error)));
        }
        let mut workers = Vec::new();
        for store in stores {
            let work = move || {
                // The others have to end too if this one panics.
                let done = catch_unwind(AssertUnwindSafe(|| crew.work(store)));
                match done {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => crew.end_with(Err(error)),
                    Err(panic) => {
                        crew.end_with(Err(Error::Study {
                            reason: "a worker has panicked; this is a bug of boscage".to_string(),
                        }));
                        resume_unwind(panic);
                    }
                }
            };
            match std::thread::Builder::new().name("trials".to_string()).spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => crew.end_with(Err(thread_error(&error))),
            }
        }
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        drop(done);
        if let Some(panic) = ends.into_iter().find_map(std::result::Result::err) {
            resume_unwind(panic);
        }
    });
    let trials = crew.ended.load(Ordering::SeqCst);
    let end = crew.end.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unstored = crew.unstored.into_inner().unwrap_or_else(PoisonError::into_inner);
    match end.unwrap_or(Ok(StopReason::Interrupted)) {
        Ok(reason) => Ok(Finish { reason, trials }),
        Err(Error::Storage { place, reason, passing }) => {
            let lines: Vec<String> = std::iter::once(reason).chain(unstored).collect();
            Err(Error::Storage { place, reason: lines.join("\n"), passing })
        }
        Err(error) => Err(error),
    }
}

fn thread_error(error: &std::io::Error) -> Error {
    Error::Study { reason: format!("no thread could be started: {error}") }
}

/// All who run trials in this process.
struct Crew<'a> {
    name: &'a str,
    definition: &'a Definition,
    program: &'a Program,
    plan: &'a Plan<'a>,
    events: &'a (dyn Fn(&Event<'_>) + Sync),
    worker: Worker,
    begin: Instant,
    study: Mutex<&'a mut Study>,
    /// Tokens of the trials that are being run.
    held: Mutex<BTreeMap<u64, String>>,
    best: Mutex<Option<(u64, f64)>>,
    /// Why it ends.
    end: Mutex<Option<Result<StopReason>>>,
    ended: AtomicU64,
    /// A line for each result that could not be stored.
    unstored: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew<'_> {
    /// The first reason stays, unless an error comes after it.
    fn end_with(&self, reason: Result<StopReason>) {
        let mut end = locked(&self.end);
        if end.is_none() || (reason.is_err() && !matches!(*end, Some(Err(_)))) {
            *end = Some(reason);
        }
    }

    fn is_ending(&self) -> bool {
        if self.plan.stop.load(Ordering::SeqCst) {
            self.end_with(Ok(StopReason::Interrupted));
        }
        if let Some(seconds) = self.plan.budget.seconds
            && self.begin.elapsed().as_secs_f64() >= seconds
        {
            self.end_with(Ok(StopReason::Seconds(seconds)));
        }
        locked(&self.end).is_some()
    }

    /// The best so far, and whether it is good enough.
    fn ask_best(&self) -> Result<()> {
        let mut study = locked(&self.study);
        study.look()?;
        *locked(&self.best) = study.best();
        drop(study);
        self.check_target();
        Ok(())
    }

    fn check_target(&self) {
        let best = *locked(&self.best);
        if let (Some(target), Some((_, value))) = (self.plan.budget.target, best)
            && !self.definition.goal.is_better(target, value)
        {
            self.end_with(Ok(StopReason::Target(target)));
        }
    }

    /// One job: trial after trial.
    fn work(&self, mut store: Store) -> Result<()> {
        let mut is_waiting = false;
        while !self.is_ending() {
            let trial = match self.ask()? {
                Asked::Trial(trial) => trial,
                Asked::Exhausted(reason) => {
                    self.end_with(Ok(StopReason::Exhausted(reason)));
                    return Ok(());
                }
                Asked::Enough { .. } if self.is_ending() => break,
                Asked::Enough { others_run } => {
                    let trials = self.plan.budget.trials.unwrap_or_default();
                    if !others_run {
                        self.end_with(Ok(StopReason::Trials(trials)));
                        return Ok(());
                    }
                    // One of them may be lost, and then it is ours.
                    if !is_waiting {
                        (self.events)(&Event::WaitsForOthers);
                        is_waiting = true;
                    }
                    let until = Instant::now() + WAIT;
                    while Instant::now() < until && !self.is_ending() {
                        std::thread::sleep(LOOK);
                    }
                    continue;
                }
            };
            let begin = Instant::now();
            let outcome = match self.evaluate(&trial) {
                Ok(outcome) => outcome,
                // Without a program the whole budget would be spent on failures. The trial is as if it had not begun.
                Err(error) => {
                    store.release(self.name, trial.number, &trial.token)?;
                    return Err(error);
                }
            };
            let told = self.tell(&mut store, &trial, &outcome);
            locked(&self.held).remove(&trial.number);
            if told? {
                self.note(&trial, &outcome, begin.elapsed().as_secs_f64());
            }
        }
        Ok(())
    }

    fn ask(&self) -> Result<Asked> {
        let mut study = locked(&self.study);
        if self.is_ending() {
            // While this one waited for its turn.
            return Ok(Asked::Enough { others_run: true });
        }
        let begin = Instant::now();
        let learned = study.model().map(|model| model.observations);
        let lease = self.definition.workers.lease_seconds;
        let asked = study.ask(&self.worker, lease, self.plan.budget.trials)?;
        if let Some(best) = study.best() {
            let mut known = locked(&self.best);
            if known.is_none_or(|(_, value)| self.definition.goal.is_better(best.1, value)) {
                *known = Some(best);
            }
        }
        self.check_target();
        if let Asked::Trial(trial) = &asked {
            locked(&self.held).insert(trial.number, trial.token.clone());
            (self.events)(&Event::Began { trial, ask_seconds: begin.elapsed().as_secs_f64() });
            if let Some(model) = study.model()
                && learned != Some(model.observations)
            {
                (self.events)(&Event::Learned(model));
            }
        }
        Ok(asked)
    }

    /// Runs the program, again if it fails, and applies the failure policy.
    fn evaluate(&self, trial: &AskedTrial) -> Result<Outcome> {
        let mut retries = 0;
        loop {
            let context = Evaluating {
                definition: self.definition,
                program: self.program,
                folder: self.plan.folder,
            };
            match context.value(trial.number, &trial.values) {
                Ok(value) => return Ok(Outcome::Value(value)),
                Err(error @ Error::NotStarted { .. }) => return Err(error),
                // Also after an interrupt: the outcome must not depend on when somebody pressed Ctrl-C.
                Err(error) if retries < self.definition.failure.retries => {
                    retries += 1;
                    (self.events)(&Event::Retried {
                        number: trial.number,
                        reason: &error.to_string(),
                    });
                }
                Err(error) => {
                    let reason = error.to_string();
                    return Ok(match self.definition.failure.score {
                        Score::Ignore => Outcome::Failed(reason),
                        Score::Value(value) => Outcome::Scored(value, reason),
                        Score::Worst => match locked(&self.study).worst() {
                            Ok(Some(worst)) => Outcome::Scored(worst, reason),
                            _ => Outcome::Failed(reason),
                        },
                    });
                }
            }
        }
    }

    /// Stores a result. False if it was no longer wanted.
    fn tell(&self, store: &mut Store, trial: &AskedTrial, outcome: &Outcome) -> Result<bool> {
        match store.tell(self.name, trial.number, outcome, Some(&trial.token)) {
            Ok(_) => Ok(true),
            Err(Error::Study { reason }) => {
                (self.events)(&Event::Dropped { number: trial.number, reason });
                Ok(false)
            }
            Err(error) => {
                let number = trial.number;
                let result = match outcome {
                    Outcome::Value(value) => format!(
                        "its value is {value:?}: `boscage tell STUDY {number} {value:?}` stores it later"
                    ),
                    _ => "it failed".to_string(),
                };
                locked(&self.unstored)
                    .push(format!("trial {number} could not be stored; {result}"));
                Err(error)
            }
        }
    }

    fn note(&self, trial: &AskedTrial, outcome: &Outcome, seconds: f64) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        let mut is_best = false;
        let best = {
            let mut best = locked(&self.best);
            if let Outcome::Value(value) | Outcome::Scored(value, _) = outcome
                && best.is_none_or(|(_, known)| self.definition.goal.is_better(*value, known))
            {
                *best = Some((trial.number, *value));
                is_best = true;
            }
            *best
        };
        (self.events)(&Event::Ended { trial, outcome, seconds, best, is_best });
        self.check_target();
    }

    /// Prolongs the leases of what is running, until all is done.
    fn keep_leases(&self, mut renewer: Renewer, is_done: &std::sync::mpsc::Receiver<()>) {
        let lease = self.definition.workers.lease_seconds;
        let pause = Duration::from_secs_f64(lease / 3.0);
        while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let held: Vec<(u64, String)> =
                locked(&self.held).iter().map(|(&number, token)| (number, token.clone())).collect();
            if let Err(error) = renewer.renew(&held, lease) {
                // The result decides: it is taken if nobody else was given the trial.
                let reason = format!("its lease could not be prolonged: {error}");
                for (number, _) in held {
                    (self.events)(&Event::Dropped { number, reason: reason.clone() });
                }
            }
        }
    }
}

/// How the value of one point is found.
pub struct Evaluating<'a> {
    /// The study.
    pub definition: &'a Definition,
    /// Its program.
    pub program: &'a Program,
    /// The folder that the program's paths begin in.
    pub folder: &'a Path,
}

impl Evaluating<'_> {
    /// Runs the program for each instance, seed and repeat, and makes one value of all.
    pub fn value(&self, trial: u64, values: &Values) -> Result<f64> {
        let named: Vec<(&str, Option<Value>)> =
            self.definition.space.names().zip(values.iter().cloned()).collect();
        let evaluation = &self.definition.evaluation;
        let instances: Vec<Option<&str>> = match evaluation.instances.as_slice() {
            [] => vec![None],
            instances => instances.iter().map(|instance| Some(instance.as_str())).collect(),
        };
        let mut found = Vec::new();
        for instance in instances {
            for repeat in 0..evaluation.repeats {
                let own = [self.definition.seed.wrapping_add(u64::from(repeat))];
                let seeds = if evaluation.seeds.is_empty() { &own[..] } else { &evaluation.seeds };
                for &seed in seeds {
                    let context = Context { trial: Some(trial), seed: Some(seed), instance };
                    found.push(self.program.evaluate(&named, self.folder, context)?);
                }
            }
        }
        let value = aggregate(evaluation.aggregate, self.definition.goal, &mut found);
        if !value.is_finite() {
            return Err(Error::Evaluation {
                reason: format!(
                    "the {} of {} results is {value}; they are too large",
                    evaluation.aggregate.name(),
                    found.len()
                ),
            });
        }
        Ok(value)
    }
}

fn aggregate(how: Aggregate, goal: crate::goal::Goal, values: &mut [f64]) -> f64 {
    match how {
        Aggregate::Mean => values.iter().sum::<f64>() / values.len() as f64,
        Aggregate::Worst => {
            values.iter().copied().reduce(|a, b| goal.worse(a, b)).unwrap_or(f64::NAN)
        }
        Aggregate::Median => {
            values.sort_by(f64::total_cmp);
            let (low, high) =
                (values.get((values.len().max(1) - 1) / 2), values.get(values.len() / 2));
            low.zip(high).map_or(f64::NAN, |(low, high)| low / 2.0 + high / 2.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Goal;

    #[test]
    fn several_values_become_one() {
        let of = |how, goal, values: &[f64]| aggregate(how, goal, &mut values.to_vec());
        let values = [3.0, -1.0, 7.0, 4.0];
        assert_eq!(of(Aggregate::Mean, Goal::Minimize, &values), 3.25);
        assert_eq!(of(Aggregate::Median, Goal::Minimize, &values), 3.5);
        assert_eq!(of(Aggregate::Median, Goal::Minimize, &values[..3]), 3.0);
        assert_eq!(of(Aggregate::Median, Goal::Minimize, &values[..1]), 3.0);
        assert_eq!(of(Aggregate::Worst, Goal::Minimize, &values), 7.0);
        assert_eq!(of(Aggregate::Worst, Goal::Maximize, &values), -1.0);
    }
}
