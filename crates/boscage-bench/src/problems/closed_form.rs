//! Test functions with a formula.
use boscage::{Space, Value};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::Problem;

/// The functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// Hartmann's function of 6 variables.
    Hartmann6,
    /// The six-hump camel function of 2 variables.
    Camelback,
    /// Styblinski–Tang.
    StyblinskiTang,
    /// Rosenbrock.
    Rosenbrock,
    /// −exp(−4‖x‖²).
    Gaussian,
}

/// A test function, with what makes it harder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Which function.
    pub function: Function,
    /// Number of variables that matter, for functions of any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Number of variables that do not matter.
    #[serde(default)]
    pub auxiliary: usize,
    /// Lowest value of every variable, where the usual domain is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Highest value of every variable, where the usual domain is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether the seed permutes the variables.
    #[serde(default)]
    pub permute: bool,
    /// Whether the seed moves the optimum to a random place.
    #[serde(default)]
    pub shift: bool,
    /// Standard deviation of the observation noise.
    #[serde(default)]
    pub noise_std: f64,
    /// Seed of permutation and shift; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl ClosedForm {
    /// The function with the permutation and shift of this seed.
    pub fn build(&self, _seed: u64) -> Result<ClosedFormFunction> {
        Err(Error::problem("to be written"))
    }
}

/// A test function.
#[derive(Debug, Clone)]
pub struct ClosedFormFunction {
    space: Space,
}

impl Problem for ClosedFormFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, _values: &[Value]) -> Result<f64> {
        Err(Error::problem("to be written"))
    }
}
