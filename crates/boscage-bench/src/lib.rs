//! Experiments: problems with known answers, a runner, metrics and statistics.

pub mod claims;
pub mod error;
pub mod estimate;
pub mod export;
pub mod plan;
pub mod problem;
pub mod problems;
pub mod recipe;
pub mod results;
pub mod run;
pub mod runner;
pub mod statistics;

pub use error::{Error, Result};
pub use plan::{Plan, PlannedMethod, PlannedProblem};
pub use problem::{Goal, Optimum, Problem, ProblemSpec};
pub use runner::{Event, RunnerOptions, Summary, run_plan};
