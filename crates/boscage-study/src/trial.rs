//! A trial: what was tried, and what came out.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::parameters::Values;

/// How far a trial is. The names are Optuna's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In the queue.
    Waiting,
    /// Asked for, not told yet.
    Running,
    /// Told with a value.
    Complete,
    /// Ended early, by a program that judged it hopeless.
    Pruned,
    /// Ended without a value.
    #[serde(rename = "fail")]
    Failed,
}

impl State {
    /// As it is stored.
    pub fn stored(self) -> &'static str {
        match self {
            State::Waiting => "WAITING",
            State::Running => "RUNNING",
            State::Complete => "COMPLETE",
            State::Pruned => "PRUNED",
            State::Failed => "FAIL",
        }
    }

    /// From how it is stored.
    pub fn from_stored(text: &str) -> Option<Self> {
        [State::Waiting, State::Running, State::Complete, State::Pruned, State::Failed]
            .into_iter()
            .find(|state| state.stored() == text)
    }

    /// Whether nothing more will happen to it.
    pub fn is_finished(self) -> bool {
        matches!(self, State::Complete | State::Pruned | State::Failed)
    }
}

/// A trial, as a study shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its number in the study, from 0.
    pub number: u64,
    /// How far it is.
    pub state: State,
    /// What came out, in the units of the user.
    pub value: Option<f64>,
    /// Its values, in the order of the study's space; none of a trial that waits, or that does not fit the space.
    pub values: Option<Values>,
    /// Why it failed, or why its value was made up.
    pub failure: Option<String>,
    /// Whether it broke a constraint: it has no part in what is best.
    pub infeasible: bool,
    /// When it began, in local time, as Optuna writes it.
    pub began: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// Seconds between the two.
    pub seconds: Option<f64>,
    /// Whatever users and programs have attached to it.
    pub attributes: Map<String, Json>,
}

impl Trial {
    /// Its value, if it counts: complete, feasible, finite.
    pub fn outcome(&self) -> Option<f64> {
        let counts = self.state == State::Complete && !self.infeasible && self.values.is_some();
        self.value.filter(|value| counts && value.is_finite())
    }
}
