//! One run: a method on a problem, trial by trial.
//!
//! The initial design and the noise of a trial belong to the seed, not to the method: all methods of a seed see the same.
//!
//! Cost beside asks, tells and evaluations: some ten microseconds a trial, mostly for asking the system for time and memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::time::Instant;

use boscage::graph::{Edge, EdgeScore, edge_score};
use boscage::stream::{Generator, Purpose};
use boscage::{Model, Optimizer, Point, Space, Stream};
use rand::RngExt;

use crate::error::Result;
use crate::plan::Observations;
use crate::problem::Problem;
use crate::results::{LearnedGraph, Timing, TrialRecord};

/// The points that every method of this seed starts with: uniform in the space.
pub fn initial_design(space: &Space, seed: u64, points: u64) -> Vec<Point> {
    (0..points)
        .map(|trial| space.sample(&mut Stream::new(seed, trial).generator(Purpose::Initial)))
        .collect()
}

/// The noise of a trial, the same for every method of this seed: a standard normal number.
pub fn noise(seed: u64, trial: u64) -> f64 {
    normal(1.0, &mut Stream::new(seed, trial).generator(Purpose::Noise))
}

/// A normal number with this standard deviation, by Box and Muller. Stored results depend on the order of the factors.
pub(crate) fn normal(std: f64, rng: &mut Generator) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    std * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// What one step of a run gave.
#[derive(Debug)]
pub enum Step {
    /// A trial.
    Trial(Box<TrialRecord>),
    /// There is nothing left to evaluate, for this reason.
    Exhausted(String),
}

/// A run in progress.
///
/// ```
/// use boscage::Method;
/// use boscage_bench::ProblemSpec;
/// use boscage_bench::problems::presets::preset;
/// use boscage_bench::run::{RunInProgress, Step};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = preset("hartmann6").ok_or("no such problem")?.spec;
/// let problem = spec.build(0, ".".as_ref())?;
/// let optimizer = Method::named("random")?.build(problem.space().clone())?;
/// let mut run = RunInProgress::new(problem.as_ref(), optimizer, 0, 5);
/// for _ in 0..20 {
///     if let Step::Trial(record) = run.step()? {
///         println!("{} {:?}", record.trial, record.regret);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct RunInProgress<'a> {
    problem: &'a dyn Problem,
    optimizer: Box<dyn Optimizer>,
    seed: u64,
    noise_std: f64,
    design: Vec<Point>,
    truth: Option<Vec<Edge>>,
    trial: u64,
    best: Option<f64>,
    /// Cost of the asks before this process took the run over.
    cost_before: u64,
    /// Observations of the model seen last, to notice a new one, and its agreement with the truth.
    learned_at: Option<usize>,
    score: Option<EdgeScore>,
    /// Seconds that whoever stores the trials spent since the last step.
    storing_seconds: f64,
    memory: Memory,
}

impl<'a> RunInProgress<'a> {
    /// A new run.
    pub fn new(
        problem: &'a dyn Problem,
        optimizer: Box<dyn Optimizer>,
        seed: u64,
        initial_points: u64,
    ) -> Self {
        Self::with(problem, optimizer, seed, initial_points, Observations::Noisy)
    }

    /// A new run that is told this of its values.
    pub fn with(
        problem: &'a dyn Problem,
        optimizer: Box<dyn Optimizer>,
        seed: u64,
        initial_points: u64,
        observations: Observations,
    ) -> Self {
        let noise_std = match observations {
            Observations::Noisy => problem.noise_std(),
            Observations::NoiseFree => 0.0,
        };
        Self {
            problem,
            optimizer,
            seed,
            noise_std,
            design: initial_design(problem.space(), seed, initial_points),
            truth: problem.graph().map(|graph| graph.edges().to_vec()),
            trial: 0,
            best: None,
            cost_before: 0,
            learned_at: None,
            score: None,
            storing_seconds: 0.0,
            memory: Memory::new(),
        }
    }

    /// Takes over where these trials end.
    pub fn resume(&mut self, trials: &[TrialRecord]) -> Result<()> {
        for record in trials {
            match record.observed {
                Some(observed) => self
                    .optimizer
                    .tell(record.point.clone(), self.problem.goal().sign() * observed)?,
                None => self.optimizer.fail(record.point.clone())?,
            }
        }
        if let Some(last) = trials.last() {
            self.trial = last.trial + 1;
            self.best = last.best_value;
            self.cost_before = last.cost;
            self.score = last.score;
        }
        if let Some(model) = trials.iter().rev().find_map(|record| record.model.as_deref()) {
            self.learned_at = Some(model.told());
            self.optimizer.resume(model.clone())?;
        }
        Ok(())
    }

    /// The model, if the last ask learned it anew.
    fn new_model(&mut self) -> Option<Box<Model>> {
        let model = self.optimizer.model()?;
        if self.learned_at == Some(model.told()) {
            return None;
        }
        self.learned_at = Some(model.told());
        Some(Box::new(model.clone()))
    }

    /// Runs one trial.
    pub fn step(&mut self) -> Result<Step> {
        let begin = Instant::now();
        let mut timing = Timing::default();
        let initial = self.design.get(self.trial as usize).cloned();
        let is_initial = initial.is_some();
        let point = match initial {
            Some(point) => point,
            None => {
                let stream = Stream::new(self.seed, self.trial);
                let (asked, seconds, cpu_seconds) = timed(|| self.optimizer.ask(&[], &stream));
                (timing.ask_seconds, timing.ask_cpu_seconds) = (seconds, cpu_seconds);
                match asked {
                    Err(error @ boscage::Error::SpaceExhausted { .. }) => {
                        return Ok(Step::Exhausted(error.to_string()));
                    }
                    asked => asked?,
                }
            }
        };
        let model = self.new_model();
        let learned = model.as_deref().map(|model| {
            let edges = model.graph.edges();
            self.score = self.truth.as_deref().map(|truth| edge_score(edges, truth));
            let frequencies: HashMap<Edge, f64> = model.edge_frequencies.iter().copied().collect();
            // An edge that no sample had was there from the beginning.
            let share = |&edge: &Edge| (edge, frequencies.get(&edge).copied().unwrap_or(1.0));
            LearnedGraph {
                edges: edges.iter().map(share).collect(),
                log_likelihood: model.log_likelihood,
            }
        });

        let values = self.problem.space().decode(&point)?;
        let evaluation = Instant::now();
        let outcome = self.problem.evaluate(&values);
        timing.evaluation_seconds = evaluation.elapsed().as_secs_f64();
        let (value, failure) = match outcome {
            Ok(value) if value.is_finite() => (Some(value), None),
            Ok(value) => (None, Some(format!("the value is {value}"))),
            Err(error) => (None, Some(error.to_string())),
        };
        let goal = self.problem.goal();
        let observed = value.map(|value| value + self.noise_std * noise(self.seed, self.trial));
        let (told, seconds, cpu_seconds) = timed(|| match observed {
            Some(observed) => self.optimizer.tell(point.clone(), goal.sign() * observed),
            None => self.optimizer.fail(point.clone()),
        });
        told?;
        (timing.tell_seconds, timing.tell_cpu_seconds) = (seconds, cpu_seconds);

        self.best = match (self.best, value) {
            (Some(best), Some(value)) => Some(goal.better(best, value)),
            (best, value) => best.or(value),
        };
        let regret = self
            .problem
            .optimum()
            .zip(self.best)
            .map(|(optimum, best)| goal.sign() * (optimum.value - best));
        timing.resident_bytes = self.memory.resident_bytes();
        let known = timing.ask_seconds + timing.tell_seconds + timing.evaluation_seconds;
        timing.overhead_seconds = (begin.elapsed().as_secs_f64() - known).max(0.0)
            + std::mem::take(&mut self.storing_seconds);
        let record = TrialRecord {
            trial: self.trial,
            initial: is_initial,
            point,
            observed,
            value,
            failure,
            best_value: self.best,
            regret,
            score: self.score,
            cost: self.cost_before + self.optimizer.evaluations() as u64,
            learned,
            model,
            timing,
        };
        self.trial += 1;
        Ok(Step::Trial(Box::new(record)))
    }

    /// Adds time spent on storing a trial to the overhead of the next one.
    pub(crate) fn stored_in(&mut self, seconds: f64) {
        self.storing_seconds += seconds;
    }
}

/// What `work` gives, its seconds by the clock, and its seconds of processor time over all threads of the present pool.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64, f64) {
    let cpu = cpu_seconds();
    let clock = Instant::now();
    let done = work();
    let seconds = clock.elapsed().as_secs_f64();
    (done, seconds, (cpu_seconds() - cpu).max(0.0))
}

/// Processor time of all threads of the present pool, or of this thread outside of a pool.
fn cpu_seconds() -> f64 {
    if rayon::current_thread_index().is_some() {
        rayon::broadcast(|_| thread_cpu_seconds()).iter().sum()
    } else {
        thread_cpu_seconds()
    }
}

fn thread_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Tells the resident memory of this process. The file of the system stays open, since opening it is what takes time.
struct Memory {
    file: Option<File>,
    page_size: u64,
}

impl Memory {
    fn new() -> Self {
        let file = File::open("/proc/self/statm").ok();
        Self { file, page_size: rustix::param::page_size() as u64 }
    }

    /// Resident bytes, or 0 where the system does not tell.
    fn resident_bytes(&mut self) -> u64 {
        let mut text = [0_u8; 64];
        let pages = self.file.as_mut().and_then(|file| {
            file.rewind().ok()?;
            let length = file.read(&mut text).ok()?;
            std::str::from_utf8(&text[..length])
                .ok()?
                .split_whitespace()
                .nth(1)?
                .parse::<u64>()
                .ok()
        });
        pages.unwrap_or(0) * self.page_size
    }
}
