//! Bayesian optimization of expensive black-box functions with 10 to 1,000 parameters.
//!
//! The objective is modelled as a sum of functions of one or two variables whose dependency graph is a forest. The forest
//! is learned from the outcomes, and the acquisition function is maximised by message passing along it. This is
//! Tree-GP-UCB (Han, Arora and Scarlett, *High-Dimensional Bayesian Optimization via Tree-Structured Additive Models*,
//! AAAI 2021), with settings as in the paper and with a default that serves users.
//!
//! # Ten lines
//!
//! ```
//! use boscage::{Parameter, Space, minimize};
//!
//! fn main() -> boscage::Result<()> {
//!     // Styblinski–Tang in 20 dimensions; its minimum is −39.166 · 20 = −783.3.
//!     let space = Space::new((0..20).map(|i| Parameter::real(format!("x{i}"), -5.0, 5.0)).collect())?;
//!     let found = minimize(&space, 60, 42, |values| {
//!         let x = values.iter().filter_map(|v| v.as_f64());
//!         x.map(|x| 0.5 * (x.powi(4) - 16.0 * x * x + 5.0 * x)).sum()
//!     })?;
//!     println!("best value {:.1}", found.best.outcome);
//!     if let Some(model) = &found.model {
//!         for edge in model.graph.edges() {
//!             println!("x{} and x{} depend on each other", edge.low(), edge.high());
//!         }
//!     }
//!     # assert!(found.best.outcome < -400.0, "{}", found.best.outcome);
//!     # assert_eq!(found.trials.len(), 60);
//!     Ok(())
//! }
//! ```
//!
//! To run the loop yourself, build an [`Optimizer`] from a [`Method`], and [`Optimizer::ask`] and [`Optimizer::tell`]:
//!
//! ```
//! use boscage::{Method, Parameter, Space, Stream, Value};
//!
//! # fn main() -> boscage::Result<()> {
//! let space = Space::new(vec![
//!     Parameter::real_log("learning_rate", 1e-5, 1e-1),
//!     Parameter::integer("layers", 1, 8),
//!     Parameter::categorical("activation", ["relu", "tanh", "gelu"]),
//! ])?;
//! let mut optimizer = Method::default().build(space.clone())?;
//! for trial in 0..5 {
//!     let point = optimizer.ask(&[], &Stream::new(42, trial))?;
//!     let values = space.decode(&point)?;
//!     let accuracy = match &values[1] {
//!         Value::Integer(layers) => 1.0 / (1.0 + (*layers as f64 - 3.0).abs()),
//!         _ => 0.0,
//!     };
//!     optimizer.tell(point, accuracy)?; // larger is better
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where the paper is
//!
//! | paper | here |
//! | --- | --- |
//! | additive structure 𝒢, dependency graph, adjacency Z | [`graph`]: [`graph::Component`], [`graph::Forest`] |
//! | κ^G, Θ = {(ℓ_i, σ_i)} | [`kernel`] |
//! | prior, posterior μ^G and σ^G, likelihood ρ | [`additive_gp`] |
//! | learning Θ | [`kernel_learning`] |
//! | φ_t, β_t | [`acquisition`] |
//! | Alg. 2 MSG-PASSING-CONTINUOUS, MSG-PASSING-DISCRETE, ZOOM-STRATEGY | [`message_passing`] |
//! | Alg. 3 TREE-LEARNING, Alg. 4 GIBBS-SAMPLING, Alg. 5 MUTATION | [`tree_learning`] |
//! | beyond the paper: all pairs at once, what all variables do alike, a box around the best point | [`all_pairs`], [`common_effect`], [`local_search`], [`methods::boscage`] |
//! | beyond the paper: where evaluations fail | [`failures`] |
//! | beyond the paper: ranges of which one end matters more | `stretch.rs` |
//! | beyond the paper: other models where they explain the outcomes better | [`guard`] |
//! | beyond the paper: which pairs interact, and whether another model would do better | [`edge_probabilities`], [`model_comparison`] |
//! | Alg. 1 TREE-GP-UCB | [`additive_gp_ucb`], with the settings in [`methods::tree_gp_ucb`] |
//!
//! # Notation
//!
//! | symbol | meaning | name here |
//! | --- | --- | --- |
//! | D | number of variables | `dimension` |
//! | n, t | number of observations | `observations` |
//! | G ∈ 𝒢 | a component: a set of variables with a function of its own | `component` |
//! | ℓ_i, σ_i | lengthscale and scale of variable i | `lengthscales`, `scales` |
//! | σ^G | √(Σσ_i²), the prior variance of a component | `amplitude` |
//! | η | standard deviation of the noise | `noise_std` |
//! | ρ | log marginal likelihood | `log_likelihood` |
//! | γ, S, C | prior probability of an edge, samples, learning interval | `edge_prior`, `samples`, `learning` |
//! | R, L | cells an axis, levels of zooming | `zoom.grid_size`, `zoom.levels` |
//!
//! The crate has no files, clocks, printing or global state. Everything random comes from a [`Stream`], which is made from
//! (seed, trial number): a run is a function of settings, seed and outcomes, whatever the number of threads.

pub mod acquisition;
pub mod additive_gp;
pub mod additive_gp_ucb;
pub mod all_pairs;
mod cholesky;
pub mod common_effect;
pub mod design;
pub mod edge_probabilities;
pub mod error;
pub mod failures;
pub mod graph;
pub mod graph_learning;
pub mod guard;
mod joint_ucb;
pub mod kernel;
pub mod kernel_learning;
pub mod local_search;
#[cfg(test)]
mod markov_chain;
pub mod message_passing;
pub mod methods;
mod minimize;
pub mod model_comparison;
pub mod optimizer;
pub mod outputs;
pub mod partition_learning;
mod quasi_newton;
pub mod repeats;
mod simd;
pub mod space;
pub mod stream;
mod stretch;
pub mod structure;
pub mod tree_learning;

pub use error::{Error, Result};
pub use minimize::{Optimum, Trial, maximize, maximize_with, minimize, minimize_with};
pub use optimizer::{Method, Model, Optimizer};
pub use space::{Domain, Parameter, Point, Space, Value};
pub use stream::Stream;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
