//! Functions drawn from an additive GP on a graph.
use std::path::Path;

use boscage::{Space, Value};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::problems::graphs::GraphShape;

/// Whether a drawn function lives on its grid only or everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrawDomain {
    /// Every parameter has `levels` equally spaced values in \[0, 1\].
    #[default]
    Discrete,
    /// Every parameter is real in \[0, 1\]; the function is smooth and agrees with the discrete draw on its grid.
    Continuous,
}

/// A function drawn from an additive GP: one component for each edge of a graph and one for each isolated vertex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdditiveDraw {
    /// The dependency graph.
    pub graph: GraphShape,
    /// Where the function lives.
    #[serde(default)]
    pub domain: DrawDomain,
    /// Levels of the grid along each axis.
    #[serde(default = "fifty_one")]
    pub levels: usize,
    /// Lengthscale of the RBF kernel.
    #[serde(default = "one_fifth")]
    pub lengthscale: f64,
    /// Prior variance of each component.
    #[serde(default = "one")]
    pub variance: f64,
    /// Standard deviation of the observation noise.
    #[serde(default = "paper_noise")]
    pub noise_std: f64,
    /// Seed of graph and function; if it is left out, every seed of the experiment draws its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

fn fifty_one() -> usize {
    51
}
fn one_fifth() -> f64 {
    0.2
}
fn one() -> f64 {
    1.0
}
fn paper_noise() -> f64 {
    0.15
}

impl AdditiveDraw {
    /// Draws the function of this seed.
    pub fn build(&self, _seed: u64, _folder: &Path) -> Result<DrawnFunction> {
        Err(Error::problem("to be written"))
    }
}

/// A drawn function.
#[derive(Debug, Clone)]
pub struct DrawnFunction {
    space: Space,
}

impl Problem for DrawnFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, _values: &[Value]) -> Result<f64> {
        Err(Error::problem("to be written"))
    }
}
