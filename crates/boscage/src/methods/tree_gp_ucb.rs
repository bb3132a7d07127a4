//! Tree-GP-UCB: the paper's method, and the default settings built on it.
//!
//! Paper: Algorithm 1, with [`crate::tree_learning`] for the structure; the loop itself is [`crate::additive_gp_ucb`].
//!
//! Two presets: [`AdditiveGpUcbSettings::paper`] follows the text with its constants; [`AdditiveGpUcbSettings::default`] is the
//! same model and search with what users need. `docs/paper-map.md` lists the differences and what each is worth.
//!
//! Cost of an ask: (D − 1)·R² values of φ^G at each of L levels, n²/2 multiply-adds each; a learning step adds S Cholesky
//! factorisations.

use crate::additive_gp_ucb::{Acquisition, AdditiveGpUcbSettings, KernelStart, Learning};
use crate::design::Design;
use crate::kernel::{KernelFamily, Metric};
use crate::kernel_learning::KernelLearning;
use crate::message_passing::Zoom;
use crate::outputs::OutputRule;
use crate::repeats::RepeatRule;
use crate::structure::Structure;
use crate::tree_learning::TreeLearning;

impl Default for AdditiveGpUcbSettings {
    fn default() -> Self {
        Self {
            initial_points: 10,
            design: Design::Uniform,
            learning: Learning::Growth(0.1),
            structure: Structure::default(),
            kernel_learning: KernelLearning::default(),
            kernel_start: KernelStart::PresentAndInitial,
            family: KernelFamily::Rbf,
            categorical: Metric::Categorical,
            lengthscale: 0.3,
            lengthscale_growth: 0.0,
            scale: None,
            noise_std: 0.1,
            constant: 0.0,
            common_std: 0.0,
            acquisition: Acquisition::Joint(2.0),
            zoom: Zoom::default(),
            max_evaluations: None,
            outputs: OutputRule::Standardised,
            repeats: RepeatRule::Avoid,
            centre: false,
            local: None,
            news: 0.0,
            guard: None,
            failures: false,
        }
    }
}

impl AdditiveGpUcbSettings {
    /// The paper's algorithms with its constants; `docs/paper-map.md` lists every departure from the text.
    pub fn paper() -> Self {
        Self {
            initial_points: 10,
            design: Design::Uniform,
            learning: Learning::Every(15),
            structure: Structure::Tree(TreeLearning::paper()),
            kernel_learning: KernelLearning::paper(),
            kernel_start: KernelStart::Present,
            family: KernelFamily::Rbf,
            categorical: Metric::Numeric,
            lengthscale: 0.1,
            lengthscale_growth: 0.0,
            scale: Some(0.5),
            noise_std: 0.1,
            constant: 0.0,
            common_std: 0.0,
            acquisition: Acquisition::Additive,
            zoom: Zoom::default(),
            max_evaluations: Some(1000),
            outputs: OutputRule::Raw,
            repeats: RepeatRule::Allow,
            centre: false,
            local: None,
            news: 0.0,
            guard: None,
            failures: false,
        }
    }
}
