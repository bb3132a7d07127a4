//! What is maximised to choose the next point: functions that are sums over components, UCB above all.
//!
//! Paper: section "Acquisition Function", eq. (acquisition-gp-tree):
//! φ_t(x) = Σ_G φ_t^G(x^G) with φ_t^G = μ^G_{t−1} + √β_t σ^G_{t−1} and β_t = ½ log 2t.
//!
//! Notation: φ^G is tabulated on a [`Grid`]; the table of a component lists its values with the last variable fastest.
//!
//! Cost: that of [`AdditivePosterior::tabulate`].

use crate::additive_gp::AdditivePosterior;
use crate::error::Result;
use crate::graph::Component;
use crate::message_passing::Grid;

/// A function φ = Σ_G φ^G that can be maximised by message passing.
pub trait AdditiveFunction {
    /// 𝒢: the components.
    fn components(&self) -> &[Component];

    /// φ^G on the grid, one table a component, last variable fastest.
    fn tabulate(&self, grid: &Grid) -> Result<Vec<Vec<f64>>>;
}

/// β_t = ½ log 2t, the paper's trade-off between mean and uncertainty after t observations.
pub fn beta(t: usize) -> f64 {
    0.5 * (2.0 * t.max(1) as f64).ln()
}

/// The additive upper confidence bound Σ_G (μ^G + √β σ^G).
#[derive(Debug, Clone, Copy)]
pub struct Ucb<'a> {
    /// The posterior whose components are summed.
    pub posterior: &'a AdditivePosterior,
    /// β ≥ 0.
    pub beta: f64,
}

impl AdditiveFunction for Ucb<'_> {
    fn components(&self) -> &[Component] {
        &self.posterior.prior().components
    }

    fn tabulate(&self, grid: &Grid) -> Result<Vec<Vec<f64>>> {
        let weight = self.beta.max(0.0).sqrt();
        let tables = self.posterior.tabulate(grid)?;
        let mut phi = tables.means;
        for (phi, variances) in phi.iter_mut().zip(&tables.variances) {
            for (phi, &variance) in phi.iter_mut().zip(variances) {
                *phi += weight * variance.sqrt();
            }
        }
        Ok(phi)
    }
}
