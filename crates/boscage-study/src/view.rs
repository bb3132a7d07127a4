//! A study at one moment, as plain data: what `show`, `export` and reports are made from.

use boscage::{Method, Model};

use crate::goal::Goal;
use crate::parameters::StudySpace;
use crate::trial::Trial;

/// A study at one moment.
#[derive(Debug, Clone)]
pub struct StudyView {
    /// Its name.
    pub name: String,
    /// Where it is stored, without passwords.
    pub storage: String,
    /// What is sought.
    pub goal: Goal,
    /// Its parameters.
    pub space: StudySpace,
    /// The method, with all settings.
    pub method: Method,
    /// Where all randomness comes from.
    pub seed: u64,
    /// All trials, by number.
    pub trials: Vec<Trial>,
    /// What was learned last.
    pub model: Option<Model>,
}

impl StudyView {
    /// The trial with the best outcome; the first of several.
    pub fn best(&self) -> Option<&Trial> {
        let mut best: Option<(&Trial, f64)> = None;
        for trial in &self.trials {
            if let Some(value) = trial.outcome()
                && best.is_none_or(|(_, known)| self.goal.is_better(value, known))
            {
                best = Some((trial, value));
            }
        }
        best.map(|(trial, _)| trial)
    }
}
