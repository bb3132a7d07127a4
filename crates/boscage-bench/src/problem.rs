//! What every problem offers, and how a problem is described in a recipe.
//!
//! A [`Problem`] is one function: it knows its space, what is sought, and, where that is known, its optimum and its true
//! dependency graph. A [`ProblemSpec`] describes a family of them as plain data; with a seed it becomes a problem.

use std::path::Path;

use boscage::additive_gp::AdditivePrior;
use boscage::graph::Graph;
use boscage::{Point, Space, Value};
pub use boscage_study::Goal;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::problems::{
    AdditiveDraw, ClosedForm, Discrete, LinearRanges, Penalised, ProgramProblem, Rotated,
};

/// How sure an optimum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// No point of the space has a better value.
    Exact,
    /// The best point of a fine grid, improved by a climb in the continuous space: better points can only lie in the gaps of
    /// the grid.
    Polished,
}

/// The best value there is, and a point that attains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Optimum {
    /// The value without noise.
    pub value: f64,
    /// Where it is attained.
    pub point: Point,
    /// How sure it is.
    pub certainty: Certainty,
}

/// A function to optimise. Implement it for a type of your own to run boscage's methods on it
/// (see the example `own_problem`).
pub trait Problem: Send + Sync {
    /// The parameters.
    fn space(&self) -> &Space;

    /// What is sought.
    fn goal(&self) -> Goal {
        Goal::Minimize
    }

    /// The value at a point of the space, without the noise that the runner adds.
    ///
    /// # Errors
    ///
    /// Any error counts as a failed trial, and its text is stored as the reason.
    fn evaluate(&self, values: &[Value]) -> Result<f64>;

    /// Standard deviation of the noise that is added to what an optimizer sees.
    fn noise_std(&self) -> f64 {
        0.0
    }

    /// The best value, if it is known.
    fn optimum(&self) -> Option<&Optimum> {
        None
    }

    /// The true dependency graph, if it is known: an edge for every two variables that share a component.
    fn graph(&self) -> Option<&Graph> {
        None
    }

    /// The model that the function was drawn from, if it was: what an oracle is told.
    fn truth(&self) -> Option<AdditivePrior> {
        None
    }
}

/// A family of problems as plain data: what a recipe holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProblemSpec {
    /// A function drawn from an additive GP on a graph.
    Additive(AdditiveDraw),
    /// A test function with a formula.
    ClosedForm(ClosedForm),
    /// A test function of all variables at once.
    Rotated(Rotated),
    /// A test problem whose parameters are not all real.
    Discrete(Discrete),
    /// A function of which a part cannot be evaluated.
    Penalised(Penalised),
    /// A function whose parameters have linear ranges, although they should have logarithmic ones.
    LinearRanges(LinearRanges),
    /// An external program.
    Program(ProgramProblem),
}

impl ProblemSpec {
    /// The problem that this seed makes. `folder` is where relative paths begin.
    pub fn build(&self, seed: u64, folder: &Path) -> Result<Box<dyn Problem>> {
        Ok(match self {
            ProblemSpec::Additive(spec) => Box::new(spec.build(seed, folder)?),
            ProblemSpec::ClosedForm(spec) => Box::new(spec.build(seed)?),
            ProblemSpec::Rotated(spec) => Box::new(spec.build(seed)?),
            ProblemSpec::Discrete(spec) => Box::new(spec.build(seed)?),
            ProblemSpec::Penalised(spec) => Box::new(spec.build(seed)?),
            ProblemSpec::LinearRanges(spec) => Box::new(spec.build(seed)?),
            ProblemSpec::Program(spec) => Box::new(spec.build(seed, folder)?),
        })
    }
}

/// A ready-made problem with a name.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name in recipes and on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it stands for.
    pub spec: ProblemSpec,
}
