//! An external program that evaluates points.
use std::path::Path;

use boscage::{Space, Value};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A program, how it gets the values, and where its result is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; `{name}` stands for the value of the parameter `name`.
    pub command: Vec<String>,
}

impl Program {
    /// Refuses what cannot work with the parameters of this space.
    pub fn validate(&self, _space: &Space) -> Result<()> {
        Err(Error::InvalidProgram { reason: "to be written".to_string() })
    }

    /// Runs the program in this folder and reads its result.
    pub fn evaluate(&self, _space: &Space, _values: &[Value], _folder: &Path) -> Result<f64> {
        Err(Error::Evaluation { reason: "to be written".to_string() })
    }
}
