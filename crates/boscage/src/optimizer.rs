//! What every method offers: ask for a point, tell an outcome, show and restore what was learned.
//!
//! Outcomes are maximised, and points are model coordinates in \[0, 1\]^D: names, units and minimisation belong to the layers
//! above ([`crate::space::Space`], [`crate::minimize()`]).

use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePrior;
use crate::error::{Error, Result};
use crate::graph::{Edge, Forest};
use crate::methods::{RandomSearch, TreeGpUcb, TreeGpUcbSettings};
use crate::outputs::OutputMap;
use crate::space::{Point, Space};
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
    /// For each edge seen in structure learning, the share of samples in which it was present (see
    /// [`crate::tree_learning::LearnedForest`] for what it is not).
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

    /// Takes in that a point could not be evaluated. It counts as no observation; a method that learns expects nothing new
    /// there, and one that avoids repeats does not ask for it again.
    fn fail(&mut self, point: Point) -> Result<()>;

    /// What has been learned so far, if the method learns.
    fn model(&self) -> Option<&Model> {
        None
    }

    /// Continues with a model learned earlier. Tell the outcomes and failures first.
    fn resume(&mut self, _model: Model) -> Result<()> {
        Ok(())
    }

    /// How many values of φ^G all asks so far have needed: the paper's message-passing cost.
    fn evaluations(&self) -> usize {
        0
    }
}

/// A method and its settings: what a study remembers of how it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", content = "settings", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// [`TreeGpUcb`].
    Tree(Box<TreeGpUcbSettings>),
    /// [`RandomSearch`].
    Random,
}

impl Default for Method {
    fn default() -> Self {
        Method::Tree(Box::default())
    }
}

impl Method {
    /// The names that [`Method::named`] knows, each with what it stands for.
    pub const NAMES: [(&'static str, &'static str); 3] = [
        ("tree", "Tree-GP-UCB with the default settings"),
        ("tree-paper", "Tree-GP-UCB as in the paper's text"),
        ("random", "uniform random points"),
    ];

    /// The method of this name, with its own default settings.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "tree" => Ok(Method::default()),
            "tree-paper" => Ok(Method::Tree(Box::new(TreeGpUcbSettings::paper()))),
            "random" => Ok(Method::Random),
            _ => Err(Error::InvalidSetting {
                setting: "method",
                value: name.to_string(),
                reason: "the methods are tree, tree-paper and random",
            }),
        }
    }

    /// A new run of the method in this space.
    pub fn build(&self, space: Space) -> Result<Box<dyn Optimizer>> {
        Ok(match self {
            Method::Tree(settings) => Box::new(TreeGpUcb::new(space, (**settings).clone())?),
            Method::Random => Box::new(RandomSearch::new(space)),
        })
    }
}
