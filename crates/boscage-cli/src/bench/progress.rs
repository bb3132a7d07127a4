//! Progress of an experiment: bars in a terminal, a line now and then elsewhere.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::interrupt::Screen;
use boscage_bench::results::TrialRecord;
use boscage_bench::{Event, Plan};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Plain lines are at least this far apart, those of finished runs aside.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shows how far an experiment is.
pub(crate) struct Progress {
    shown: Shown,
    state: Mutex<State>,
    begin: Instant,
}

enum Shown {
    Nothing,
    Lines,
    Bars { all: MultiProgress, whole: ProgressBar },
}

struct State {
    /// Label of each run, and which pair of problem and method it belongs to.
    runs: Vec<(String, usize)>,
    trials_in_run: u64,
    jobs: usize,
    /// Trials of each run.
    trials: Vec<u64>,
    done: Vec<bool>,
    bars: HashMap<usize, ProgressBar>,
    clock: TimeLeft,
    last_line: Instant,
}

impl Progress {
    /// For a plan; quiet shows nothing.
    pub(crate) fn new(plan: &Plan, jobs: usize, quiet: bool) -> Self {
        let shown = match quiet {
            true => Shown::Nothing,
            false if std::io::stderr().is_terminal() => {
                let all = MultiProgress::new();
                let whole =
                    all.add(ProgressBar::new(plan.runs().len() as u64 * plan.trials_in_run()));
                whole.set_style(style("{prefix} {wide_bar} {percent}% {elapsed} elapsed{msg}"));
                whole.set_prefix(plan.name.clone());
                whole.enable_steady_tick(Duration::from_secs(1));
                Shown::Bars { all, whole }
            }
            false => Shown::Lines,
        };
        let pairs = plan.problems.len() * plan.methods.len();
        let label = |(number, run): (usize, &boscage_bench::plan::Run<'_>)| {
            (
                format!("{} {} seed {}", run.problem.label, run.method.label, run.seed),
                number % pairs.max(1),
            )
        };
        let runs: Vec<_> = plan.runs().iter().enumerate().map(label).collect();
        let state = State {
            trials: vec![0; runs.len()],
            done: vec![false; runs.len()],
            runs,
            trials_in_run: plan.trials_in_run(),
            jobs,
            bars: HashMap::new(),
            clock: TimeLeft::new(pairs),
            last_line: Instant::now(),
        };
        Self { shown, state: Mutex::new(state), begin: Instant::now() }
    }

    /// Takes in what the runner tells.
    pub(crate) fn observe(&self, event: &Event<'_>) {
        if matches!(self.shown, Shown::Nothing) {
            return;
        }
        let mut state = self.state();
        match event {
            Event::AlreadyDone { run } => state.finish(*run),
            Event::Started { run, trials } => {
                state.set_trials(*run, *trials);
                if let Shown::Bars { all, whole } = &self.shown {
                    let bar = all.insert_before(whole, ProgressBar::new(state.trials_in_run));
                    bar.set_style(style("{prefix} {wide_bar:.dim} {pos}/{len}{msg}"));
                    let width =
                        state.runs.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
                    bar.set_prefix(format!("{:<width$}", state.label(*run)));
                    bar.set_position(*trials);
                    state.bars.insert(*run, bar);
                }
            }
            Event::Trial { run, record } => {
                state.set_trials(*run, record.trial + 1);
                let pair = state.pair(*run);
                let timing = &record.timing;
                let seconds = timing.ask_seconds + timing.tell_seconds + timing.evaluation_seconds;
                state.clock.took(pair, seconds);
                if let Some(bar) = state.bars.get(run) {
                    bar.set_position(record.trial + 1);
                    bar.set_message(standing(record));
                }
            }
            Event::Finished { run } => {
                state.finish(*run);
                self.finished(&mut state, *run, "done");
            }
            Event::Failed { run, error } => {
                state.finish(*run);
                self.finished(&mut state, *run, &format!("failed: {error}"));
            }
        }
        match &self.shown {
            Shown::Bars { whole, .. } => {
                whole.set_position(state.trials.iter().sum());
                whole.set_message(
                    state
                        .time_left()
                        .map_or(String::new(), |left| format!(", {} left", duration(left))),
                );
            }
            Shown::Lines if state.last_line.elapsed() >= LINE_INTERVAL => {
                state.last_line = Instant::now();
                line(&self.standing_of_all(&state));
            }
            _ => {}
        }
    }

    fn finished(&self, state: &mut State, run: usize, how: &str) {
        if let Some(bar) = state.bars.remove(&run) {
            bar.finish_and_clear();
        }
        if let Shown::Lines = self.shown {
            state.last_line = Instant::now();
            line(&format!("{}: {how}; {}", state.label(run), self.standing_of_all(state)));
        }
    }

    fn standing_of_all(&self, state: &State) -> String {
        let done = state.done.iter().filter(|done| **done).count();
        let trials: u64 = state.trials.iter().sum();
        let share = 100 * trials / (state.trials_in_run * state.runs.len() as u64).max(1);
        let left =
            state.time_left().map_or(String::new(), |left| format!(", {} left", duration(left)));
        let elapsed = duration(self.begin.elapsed().as_secs_f64());
        format!("{done} of {} runs, {share}% of trials, {elapsed} elapsed{left}", state.runs.len())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Screen for Progress {
    fn say(&self, message: &str) {
        match &self.shown {
            // A failed message is no reason to end an experiment.
            Shown::Bars { all, .. } => drop(all.println(message)),
            _ => line(message),
        }
    }

    fn clear(&self) {
        if let Shown::Bars { all, whole } = &self.shown {
            whole.finish_and_clear();
            drop(all.clear());
        }
    }
}

impl State {
    fn label(&self, run: usize) -> &str {
        self.runs.get(run).map_or("", |(label, _)| label)
    }

    fn pair(&self, run: usize) -> usize {
        self.runs.get(run).map_or(0, |(_, pair)| *pair)
    }

    fn set_trials(&mut self, run: usize, trials: u64) {
        if let Some(known) = self.trials.get_mut(run) {
            *known = trials;
        }
    }

    fn finish(&mut self, run: usize) {
        self.set_trials(run, self.trials_in_run);
        if let Some(done) = self.done.get_mut(run) {
            *done = true;
        }
    }

    fn time_left(&self) -> Option<f64> {
        let open = self
            .trials
            .iter()
            .zip(&self.runs)
            .map(|(trials, (_, pair))| (self.trials_in_run - trials, *pair));
        self.clock.left(open, self.jobs)
    }
}

/// Time left, from the seconds that trials of each pair of problem and method took so far. Later trials take longer than early
/// ones, so it is too low until a run of each pair is complete.
struct TimeLeft {
    /// For each pair: trials seen, and their seconds.
    pairs: Vec<(u64, f64)>,
}

impl TimeLeft {
    fn new(pairs: usize) -> Self {
        Self { pairs: vec![(0, 0.0); pairs] }
    }

    fn took(&mut self, pair: usize, seconds: f64) {
        if let Some((trials, sum)) = self.pairs.get_mut(pair) {
            *trials += 1;
            *sum += seconds;
        }
    }

    /// Seconds for these open trials, each with its pair. Nothing before any trial was seen.
    fn left(&self, open: impl Iterator<Item = (u64, usize)>, jobs: usize) -> Option<f64> {
        let (all_trials, all_seconds) = self
            .pairs
            .iter()
            .fold((0, 0.0), |(n, sum), (trials, seconds)| (n + trials, sum + seconds));
        if all_trials == 0 {
            return None;
        }
        let mean = all_seconds / all_trials as f64;
        let seconds = open.map(|(trials, pair)| {
            let own = self.pairs.get(pair).filter(|(seen, _)| *seen > 0);
            trials as f64 * own.map_or(mean, |(seen, sum)| sum / *seen as f64)
        });
        Some(seconds.sum::<f64>() / jobs.max(1) as f64)
    }
}

fn standing(record: &TrialRecord) -> String {
    match (record.regret, record.best_value) {
        (Some(regret), _) => format!(" regret {regret:.4}"),
        (None, Some(best)) => format!(" best {best:.4}"),
        (None, None) => String::new(),
    }
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

pub(crate) fn line(text: &str) {
    // Progress that nobody can read is no reason to end an experiment.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A time in words: the two largest units.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 0.0005 {
        return "0 s".to_string();
    }
    if seconds < 9.95 {
        let digits = if seconds < 0.1 { 3 } else { 1 };
        return format!("{seconds:.digits$} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..=59 => format!("{whole} s"),
        60..=3_599 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..=86_399 => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        let words = [
            (0.0, "0 s"),
            (0.0123, "0.012 s"),
            (3.12, "3.1 s"),
            (59.6, "1 min 0 s"),
            (61.0, "1 min 1 s"),
            (3_725.0, "1 h 2 min"),
            (200_000.0, "2 d 7 h"),
        ];
        for (seconds, expected) in words {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn time_left_counts_open_trials_by_what_their_own_method_takes() {
        let mut clock = TimeLeft::new(3);
        assert_eq!(clock.left([(10, 0)].into_iter(), 1), None);
        for seconds in [1.0, 3.0] {
            clock.took(0, seconds);
        }
        for _ in 0..6 {
            clock.took(1, 0.5);
        }
        // 10 trials of 2 s, 4 of 0.5 s, and 8 of a pair not seen yet at the mean of all, (4 + 3)/8 s.
        assert_eq!(clock.left([(10, 0), (4, 1), (8, 2)].into_iter(), 1), Some(20.0 + 2.0 + 7.0));
        assert_eq!(clock.left([(10, 0)].into_iter(), 4), Some(5.0));
    }
}
