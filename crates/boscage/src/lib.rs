//! Bayesian optimization with tree-structured additive models.

pub mod acquisition;
pub mod additive_gp;
mod cholesky;
pub mod error;
pub mod graph;
pub mod kernel;
pub mod kernel_learning;
pub mod message_passing;
pub mod methods;
pub mod optimizer;
pub mod outputs;
mod quasi_newton;
mod simd;
pub mod space;
pub mod stream;
pub mod tree_learning;
