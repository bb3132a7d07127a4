//! External programs as problems.
use std::path::{Path, PathBuf};

use boscage::{Parameter, Space, Value};
use boscage_study::Program;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::problem::{Goal, Problem};

/// A problem whose values come from an external program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramProblem {
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// What is sought.
    #[serde(default)]
    pub goal: Goal,
    /// The program.
    pub program: Program,
}

impl ProgramProblem {
    /// The problem; the program runs in this folder.
    pub fn build(&self, folder: &Path) -> Result<ProgramFunction> {
        let space = Space::new(self.parameters.clone())?;
        self.program.validate(&space)?;
        Ok(ProgramFunction {
            space,
            goal: self.goal,
            program: self.program.clone(),
            folder: folder.to_path_buf(),
        })
    }
}

/// An external program as a function.
#[derive(Debug, Clone)]
pub struct ProgramFunction {
    space: Space,
    goal: Goal,
    program: Program,
    folder: PathBuf,
}

impl Problem for ProgramFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn goal(&self) -> Goal {
        self.goal
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        Ok(self.program.evaluate(&self.space, values, &self.folder)?)
    }
}
