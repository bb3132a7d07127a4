//! A plan: what an experiment consists of, ready to run.
//!
//! Recipes become plans ([`crate::recipe`]); programs in Rust can make plans of their own problems and methods.

use std::sync::Arc;

use boscage::Optimizer;

use crate::error::Result;
use crate::problem::Problem;

/// Makes the problem of a seed.
pub type BuildProblem = Arc<dyn Fn(u64) -> Result<Box<dyn Problem>> + Send + Sync>;

/// Makes a new optimizer for a problem. Only methods that are told the truth, such as an oracle, look at more than its space.
pub type BuildMethod = Arc<dyn Fn(&dyn Problem) -> Result<Box<dyn Optimizer>> + Send + Sync>;

/// A problem of a plan.
#[derive(Clone)]
pub struct PlannedProblem {
    /// Short name, used for folders and legends: letters, digits and `. _ + -`.
    pub label: String,
    /// What it is, for titles.
    pub title: String,
    /// All that defines it, as stored with its results: a run is only continued if this has not changed.
    pub settings: serde_json::Value,
    /// Makes the problem of a seed.
    pub build: BuildProblem,
}

/// A method of a plan.
#[derive(Clone)]
pub struct PlannedMethod {
    /// Short name, used for folders and legends: letters, digits and `. _ + -`.
    pub label: String,
    /// All that defines it, as stored with its results: a run is only continued if this has not changed.
    pub settings: serde_json::Value,
    /// What the method is told.
    pub observations: Observations,
    /// Makes the optimizer.
    pub build: BuildMethod,
}

/// What a method is told of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Observations {
    /// The value with the problem's noise.
    #[default]
    Noisy,
    /// The value itself, as the paper's published code tells its oracle.
    NoiseFree,
}

/// Every problem with every method and every seed.
#[derive(Clone)]
pub struct Plan {
    /// Name of the recipe.
    pub name: String,
    /// What it shows, for titles.
    pub title: String,
    /// The problems.
    pub problems: Vec<PlannedProblem>,
    /// The methods.
    pub methods: Vec<PlannedMethod>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Points of the initial design: uniform random points, the same for all methods of a seed.
    pub initial_points: u64,
    /// Points chosen by the method after that.
    pub trials: u64,
}

/// One run of a plan.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Its problem.
    pub problem: &'a PlannedProblem,
    /// Its method.
    pub method: &'a PlannedMethod,
    /// Its seed.
    pub seed: u64,
}

impl Plan {
    /// All runs, seed by seed, so that an interrupted experiment has whole comparisons.
    pub fn runs(&self) -> Vec<Run<'_>> {
        let mut runs = Vec::new();
        for &seed in &self.seeds {
            for problem in &self.problems {
                for method in &self.methods {
                    runs.push(Run { problem, method, seed });
                }
            }
        }
        runs
    }

    /// Trials of one run: the initial design and the chosen points.
    pub fn trials_in_run(&self) -> u64 {
        self.initial_points + self.trials
    }
}

/// Whether a label can be used for folders and legends.
pub fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 64
        && !label.starts_with(['.', '-'])
        && label.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}
