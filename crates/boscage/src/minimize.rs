//! The whole loop in one call: [`minimize`] and [`maximize`].
//!
//! These are the only places in the crate that know about minimisation: outcomes change their sign here, once.
//!
//! Cost: that of the asks, plus whatever the objective costs.

use crate::error::{Error, Result};
use crate::optimizer::{Method, Model, Optimizer};
use crate::space::{Point, Space, Value};
use crate::stream::Stream;

/// One evaluation of the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The point in model coordinates.
    pub point: Point,
    /// The parameters' values, in the order of the space.
    pub values: Vec<Value>,
    /// What the objective returned; not finite if the evaluation failed.
    pub outcome: f64,
}

/// The result of [`minimize`] or [`maximize`].
#[derive(Debug, Clone)]
pub struct Optimum {
    /// The trial with the best outcome.
    pub best: Trial,
    /// All trials in order.
    pub trials: Vec<Trial>,
    /// What was learned about the objective, if the method learns.
    pub model: Option<Model>,
}

/// Minimises `objective` in `space` with `trials` evaluations, by the default method.
///
/// The objective gets the values of all parameters in the order of the space. The run is a function of the seed and of
/// what the objective returns.
///
/// # Errors
///
/// An outcome that is NaN or infinite counts as a failed evaluation: the trial is kept, the model does not see it, and the
/// search goes on; it is an error only if every trial failed. If the space is exhausted before the trials are, the search
/// ends early without an error.
pub fn minimize(
    space: &Space,
    trials: u64,
    seed: u64,
    objective: impl FnMut(&[Value]) -> f64,
) -> Result<Optimum> {
    run(space, &Method::default(), trials, seed, -1.0, objective)
}

/// Maximises `objective`; otherwise as [`minimize`].
pub fn maximize(
    space: &Space,
    trials: u64,
    seed: u64,
    objective: impl FnMut(&[Value]) -> f64,
) -> Result<Optimum> {
    run(space, &Method::default(), trials, seed, 1.0, objective)
}

/// As [`minimize`], by a method of your choice.
pub fn minimize_with(
    method: &Method,
    space: &Space,
    trials: u64,
    seed: u64,
    objective: impl FnMut(&[Value]) -> f64,
) -> Result<Optimum> {
    run(space, method, trials, seed, -1.0, objective)
}

/// As [`maximize`], by a method of your choice.
pub fn maximize_with(
    method: &Method,
    space: &Space,
    trials: u64,
    seed: u64,
    objective: impl FnMut(&[Value]) -> f64,
) -> Result<Optimum> {
    run(space, method, trials, seed, 1.0, objective)
}

/// The loop; `sign` turns outcomes into what is maximised.
fn run(
    space: &Space,
    method: &Method,
    trials: u64,
    seed: u64,
    sign: f64,
    mut objective: impl FnMut(&[Value]) -> f64,
) -> Result<Optimum> {
    let mut optimizer: Box<dyn Optimizer> = method.build(space.clone())?;
    let mut done: Vec<Trial> = Vec::new();
    let mut best: Option<usize> = None;
    for number in 0..trials {
        let point = match optimizer.ask(&[], &Stream::new(seed, number)) {
            Err(Error::SpaceExhausted { .. }) if !done.is_empty() => break,
            asked => asked?,
        };
        let values = space.decode(&point)?;
        // What was evaluated are these values, and whoever keeps only them must come to the same points to the last bit.
        let point = space.encode(&values)?;
        let outcome = objective(&values);
        if outcome.is_finite() {
            optimizer.tell(point.clone(), sign * outcome)?;
            if best.is_none_or(|best| sign * outcome > sign * done[best].outcome) {
                best = Some(done.len());
            }
        } else {
            optimizer.fail(point.clone())?;
        }
        done.push(Trial { point, values, outcome });
    }
    if let (None, Some(last)) = (best, done.last()) {
        return Err(Error::Objective {
            trial: done.len() as u64 - 1,
            reason: format!("no trial had a finite outcome; this last one was {}", last.outcome),
        });
    }
    match best.and_then(|best| done.get(best)) {
        Some(trial) => {
            Ok(Optimum { best: trial.clone(), model: optimizer.model().cloned(), trials: done })
        }
        None => Err(Error::InvalidSetting {
            setting: "trials",
            value: trials.to_string(),
            reason: "there must be at least 1 trial",
        }),
    }
}
