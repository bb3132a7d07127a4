//! Random trees: GP-UCB with a new random forest for every point.
//!
//! Source: Ziomek and Bou-Ammar, *Are Random Decompositions all we need in High Dimensional Bayesian Optimisation?*, ICML 2023
//! (RDUCB).
//!
//! Assumes nothing about which variables depend on each other: learning a structure from data that were chosen by that
//! structure can mislead, and a random one cannot.
//!
//! Cost of an ask: ⌊0.2 D⌋·R² values of φ^G at each of L levels, one Cholesky factorisation, and the gradients of ρ that the
//! kernel parameters are refined with.
//!
//! Settings: those of the default, with random forests of 0.2·D edges, new for every point, and 10 likelihoods to refine the
//! kernel parameters each time.
//!
//! Deviations: the original draws a tree of a given number of edges by adding random edges to a forest, as we do; its kernel
//! parameters have no priors, ours have those of the default.

use crate::additive_gp_ucb::{Acquisition, AdditiveGpUcbSettings, KernelStart, Learning};
use crate::kernel_learning::{Budget, KernelLearning};
use crate::structure::{RandomForest, Structure};

impl AdditiveGpUcbSettings {
    /// RDUCB.
    pub fn random_trees() -> Self {
        Self {
            structure: Structure::RandomForest(RandomForest::default()),
            learning: Learning::Every(1),
            kernel_learning: KernelLearning {
                budget: Budget::Fixed(10),
                ..KernelLearning::default()
            },
            kernel_start: KernelStart::Present,
            acquisition: Acquisition::Additive,
            ..Self::default()
        }
    }
}
