//! What is shown while a study is run: a bar in a terminal, a line for each trial elsewhere, or events as JSON lines.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use boscage::Model;
use boscage_study::{
    Budget, Event, Finish, Opening, Outcome, Study, StudySpace, StudyView, Values,
};
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use crate::bench::progress::{duration, line};
use crate::interrupt::Screen;
use crate::show::number as shown;

/// How many learned interactions a bar names.
const INTERACTIONS: usize = 3;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Nothing,
    Lines { values: bool },
    Json,
}

/// Shows how far a study is.
pub(super) struct TuneProgress {
    detail: Detail,
    bar: Option<ProgressBar>,
    space: StudySpace,
    state: Mutex<State>,
    trials: Option<u64>,
    deadline: Option<Instant>,
    begin: Instant,
    begun_before: u64,
}

#[derive(Default)]
struct State {
    ended: u64,
    running: BTreeMap<u64, Instant>,
    interactions: String,
    best: Option<(u64, f64)>,
}

impl TuneProgress {
    pub(super) fn new(study: &Study, budget: &Budget, detail: Detail) -> Self {
        let is_lines = matches!(detail, Detail::Lines { .. });
        let bar = (is_lines && std::io::stderr().is_terminal()).then(|| {
            let bar = match budget.trials {
                Some(trials) => ProgressBar::new(trials),
                None => ProgressBar::new_spinner(),
            };
            let template = match budget.trials {
                Some(_) => "{prefix} {wide_bar} {pos}/{len} {elapsed} elapsed{msg}",
                None => "{prefix} {spinner} {pos} trials, {elapsed} elapsed{msg}",
            };
            bar.set_style(crate::bench::progress::style(template));
            bar.set_prefix(study.name().to_string());
            bar.set_position(study.begun());
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        let state = State { best: study.best(), ..State::default() };
        let seconds = budget.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Self {
            detail,
            bar,
            space: study.definition().space.clone(),
            state: Mutex::new(state),
            trials: budget.trials,
            deadline: seconds.and_then(|seconds| Instant::now().checked_add(seconds)),
            begin: Instant::now(),
            begun_before: study.begun(),
        }
    }

    /// Says what was found in the store.
    pub(super) fn opened(&self, study: &Study, opening: &Opening, place: &str) {
        if self.detail == Detail::Json {
            let changes: Vec<String> = opening
                .changes
                .iter()
                .map(|change| change.to_string().trim().to_string())
                .collect();
            self.event(json!({
                "event": "opened", "study": study.name(), "storage": place, "new": opening.is_new,
                "goal": study.definition().goal.name(), "trials": self.begun_before, "changes": changes,
            }));
            return;
        }
        if self.detail == Detail::Nothing {
            return;
        }
        let goal = study.definition().goal.name();
        let what = match (opening.is_new, opening.is_adopted) {
            (true, _) => "a new study".to_string(),
            (_, true) => "a study that Optuna began".to_string(),
            _ => format!("going on after {} trials", self.begun_before),
        };
        self.say(&format!("study {} ({goal}) in {place}: {what}", study.name()));
        if study.misfits() > 0 {
            let count = study.misfits();
            self.say(&format!(
                "{count} earlier trials do not fit the parameters; nothing is learned from them"
            ));
        }
        for change in &opening.changes {
            self.say(&format!("changed: {}", change.to_string().trim()));
        }
    }

    /// Takes in what happens.
    pub(super) fn observe(&self, event: &Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Began { trial, ask_seconds } => {
                state.running.insert(trial.number, Instant::now());
                if self.detail == Detail::Json {
                    self.event(json!({
                        "event": "began", "trial": trial.number, "params": self.space.to_json(&trial.values),
                        "attempt": trial.attempt, "ask_seconds": ask_seconds,
                    }));
                } else if trial.attempt > 1 {
                    self.note(&format!(
                        "trial {}: begun again, attempt {}",
                        trial.number, trial.attempt
                    ));
                }
            }
            Event::Ended { trial, outcome, seconds, best, is_best } => {
                state.running.remove(&trial.number);
                state.ended += 1;
                state.best = *best;
                if self.detail == Detail::Json {
                    self.event(ended(trial.number, outcome, *seconds, *best));
                } else if let Detail::Lines { values } = self.detail {
                    self.ended(trial.number, outcome, *seconds, *best, *is_best);
                    if values {
                        self.say(&format!("  {}", one_line(&self.space, &trial.values)));
                    }
                }
            }
            Event::Learned(model) => {
                state.interactions = interactions(&self.space, model);
                if self.detail == Detail::Json {
                    self.event(json!({
                        "event": "learned", "observations": model.observations,
                        "edges": edges(&self.space, model),
                    }));
                }
            }
            Event::Retried { number, reason } => match self.detail {
                Detail::Json => {
                    self.event(json!({"event": "retried", "trial": number, "reason": reason}))
                }
                _ => self.note(&format!("trial {number}: failed and is run again: {reason}")),
            },
            Event::Dropped { number, reason } => match self.detail {
                Detail::Json => {
                    self.event(json!({"event": "dropped", "trial": number, "reason": reason}))
                }
                // Never hidden: a result may be lost.
                _ => self.say(&format!("trial {number}: {reason}")),
            },
            Event::WaitsForOthers => match self.detail {
                Detail::Json => self.event(json!({"event": "waits"})),
                _ => self.note("all trials are begun; waiting for those that other workers run"),
            },
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.begun_before + state.ended);
            bar.set_message(self.standing(&state));
        }
    }

    /// A message that quiet users do not want.
    fn note(&self, message: &str) {
        if self.detail != Detail::Nothing {
            self.say(message);
        }
    }

    fn ended(
        &self,
        number: u64,
        outcome: &Outcome,
        seconds: f64,
        best: Option<(u64, f64)>,
        is_best: bool,
    ) {
        let took = duration(seconds);
        let standing = match best {
            Some(_) if is_best => ", the best so far".to_string(),
            Some((of, value)) => format!(", best {} of trial {of}", shown(value)),
            None => String::new(),
        };
        let text = match outcome {
            Outcome::Value(value) => {
                format!("trial {number}: {} after {took}{standing}", shown(*value))
            }
            Outcome::Scored(value, reason) => {
                format!("trial {number}: counts as {}: {reason}", shown(*value))
            }
            Outcome::Failed(reason) => format!("trial {number}: failed after {took}: {reason}"),
            Outcome::Infeasible(reason) => format!("trial {number}: infeasible: {reason}"),
            Outcome::Pruned(reason) => format!("trial {number}: pruned: {reason}"),
        };
        // Over a bar, only what is news.
        if self.bar.is_none() || is_best || !matches!(outcome, Outcome::Value(_)) {
            self.say(&text);
        }
    }

    fn standing(&self, state: &State) -> String {
        let mut text = String::new();
        if let Some((number, value)) = state.best {
            text += &format!(", best {} (trial {number})", shown(value));
        }
        if let Some(left) = self.time_left(state) {
            text += &format!(", {} left", duration(left));
        }
        text + &state.interactions
    }

    /// Seconds until the budget is spent, by the pace so far.
    fn time_left(&self, state: &State) -> Option<f64> {
        let by_trials = self.trials.filter(|_| state.ended > 0).map(|trials| {
            let open = trials.saturating_sub(self.begun_before + state.ended);
            open as f64 * self.begin.elapsed().as_secs_f64() / state.ended as f64
        });
        let by_clock =
            self.deadline.map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
        match (by_trials, by_clock) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The last event.
    pub(super) fn finished(
        &self,
        finish: &Finish,
        view: &StudyView,
        report: Option<&Path>,
    ) -> anyhow::Result<()> {
        if self.detail == Detail::Json {
            let best = view.best().map(|trial| {
                let params = trial.values.as_ref().map(|values| self.space.to_json(values));
                json!({"trial": trial.number, "value": trial.value, "params": params})
            });
            self.event(json!({
                "event": "finished", "reason": finish.reason.to_string(), "trials": finish.trials, "best": best,
                "report": report.map(|path| path.display().to_string()),
            }));
        }
        Ok(())
    }

    fn event(&self, event: Json) {
        // Whoever reads may have stopped reading; that is no reason to stop tuning.
        let _ = writeln!(std::io::stdout().lock(), "{event}");
    }
}

fn ended(number: u64, outcome: &Outcome, seconds: f64, best: Option<(u64, f64)>) -> Json {
    let (state, value, reason) = match outcome {
        Outcome::Value(value) => ("complete", Some(*value), None),
        Outcome::Scored(value, reason) => ("complete", Some(*value), Some(reason)),
        Outcome::Failed(reason) => ("fail", None, Some(reason)),
        Outcome::Infeasible(reason) => ("infeasible", None, Some(reason)),
        Outcome::Pruned(reason) => ("pruned", None, Some(reason)),
    };
    let best = best.map(|(trial, value)| json!({"trial": trial, "value": value}));
    json!({"event": "ended", "trial": number, "state": state, "value": value, "failure": reason, "seconds": seconds, "best": best})
}

/// Learned edges with their frequencies, strongest first.
fn edges(space: &StudySpace, model: &Model) -> Vec<Json> {
    let name = |d: usize| {
        space.parameters().get(d).map_or(String::new(), |parameter| parameter.name.clone())
    };
    let edges = by_frequency(model).into_iter();
    edges.map(|(a, b, share)| json!({"between": [name(a), name(b)], "frequency": share})).collect()
}

fn by_frequency(model: &Model) -> Vec<(usize, usize, f64)> {
    let shares: std::collections::HashMap<_, f64> =
        model.edge_frequencies.iter().copied().collect();
    // An edge that no sample had was there from the beginning.
    let edges = model.graph.edges().iter();
    let mut edges: Vec<_> = edges
        .map(|edge| (edge.low(), edge.high(), shares.get(edge).copied().unwrap_or(1.0)))
        .collect();
    edges.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)).then(a.1.cmp(&b.1)));
    edges
}

fn interactions(space: &StudySpace, model: &Model) -> String {
    let name =
        |d: usize| space.parameters().get(d).map_or("?", |parameter| parameter.name.as_str());
    let edges = by_frequency(model);
    let strongest: Vec<String> = edges
        .iter()
        .take(INTERACTIONS)
        .map(|&(a, b, _)| format!("{}–{}", name(a), name(b)))
        .collect();
    if strongest.is_empty() {
        String::new()
    } else {
        format!(", together: {}", strongest.join(" "))
    }
}

fn one_line(space: &StudySpace, values: &Values) -> String {
    let named = space.names().zip(values).filter_map(|(name, value)| {
        Some(format!("{name}={}", quoted(&value.as_ref()?.to_string())))
    });
    named.collect::<Vec<_>>().join(" ")
}

/// A value as it is, or in quotes if one could not see where it begins or ends.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"';
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("{text:?}"),
    }
}

impl Screen for TuneProgress {
    fn say(&self, message: &str) {
        // Names, and whatever a program has said, cannot move the cursor or change colours.
        let unsafe_here = |c: char| c.is_control() && c != '\n' && c != '\t';
        let message = message.replace(unsafe_here, "\u{fffd}");
        match &self.bar {
            Some(bar) => bar.println(message),
            None => line(&message),
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
