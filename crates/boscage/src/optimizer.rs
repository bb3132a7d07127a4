//! What every method offers: ask for a point, tell an outcome, show and restore what was learned.
//!
//! Outcomes are maximised, and points are model coordinates in [0,1]^D: names, units and minimisation belong to the layers
//! above ([`crate::space::Space`], [`crate::minimize()`]).

use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePrior;
use crate::error::Result;
use crate::graph::{Edge, Forest};
use crate::outputs::OutputMap;
use crate::space::Point;
use crate::stream::Stream;

/// What was learned about the objective, as plain data: enough to continue a run bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The dependency structure.
    pub forest: Forest,
    /// Components, kernel parameters Θ and noise.
    pub prior: AdditivePrior,
    /// How outcomes are scaled before the model sees them.
    pub outputs: OutputMap,
    /// Number of observations when this was learned.
    pub observations: usize,
    /// ρ of the structure with the learned parameters, on the scaled outcomes.
    pub log_likelihood: f64,
    /// For each edge seen in structure learning, the share of samples in which it was present.
    pub edge_frequencies: Vec<(Edge, f64)>,
}

/// A method of choosing points.
pub trait Optimizer: Send {
    /// The next point to evaluate, given the points that are being evaluated now.
    ///
    /// All randomness comes from `stream`, which belongs to one trial: the answer is a function of the settings, the
    /// outcomes told, the pending points and the stream.
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point>;

    /// Takes in the outcome of a point, whether it was asked for or not.
    fn tell(&mut self, point: Point, outcome: f64) -> Result<()>;

    /// What has been learned so far, if the method learns.
    fn model(&self) -> Option<&Model> {
        None
    }

    /// Continues with a model learned earlier. Tell the outcomes first.
    fn resume(&mut self, _model: Model) -> Result<()> {
        Ok(())
    }

    /// How many values of φ^G all asks so far have needed: the paper's message-passing cost.
    fn evaluations(&self) -> usize {
        0
    }
}
