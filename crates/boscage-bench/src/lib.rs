//! Experiments: problems with known answers, a runner that loses nothing, metrics, statistics, and the paper's claims as tests.
//!
//! The program `boscage bench` is the usual way in; this crate is for those who want to compare a problem or a method of their
//! own (see the example `own_problem`).
//!
//! | to | look in |
//! | --- | --- |
//! | add a problem | [`problem`] for what it must offer, [`problems`] for the families, [`mod@problems::presets`] for the named ones |
//! | change what a recipe may say | [`recipe`] |
//! | change what is stored | [`results`] for the format, [`run`] for the metrics of a trial, [`runner`] for files and threads |
//! | compare | [`statistics`], [`claims`] |
//! | hand results to other programs | [`export`] |
//! | tell how long it will take | [`estimate`] |

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
pub use plan::{Observations, Plan, PlannedMethod, PlannedProblem};
pub use problem::{Goal, Optimum, Problem, ProblemSpec};
pub use runner::{Event, RunnerOptions, Summary, run_plan};
