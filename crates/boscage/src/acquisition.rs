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

/// The posterior mean Σ_G μ^G, which needs no variances and can be tabulated finely.
#[derive(Debug, Clone, Copy)]
pub struct PosteriorMean<'a> {
    /// The posterior whose components are summed.
    pub posterior: &'a AdditivePosterior,
}

impl AdditiveFunction for PosteriorMean<'_> {
    fn components(&self) -> &[Component] {
        &self.posterior.prior().components
    }

    fn tabulate(&self, grid: &Grid) -> Result<Vec<Vec<f64>>> {
        self.posterior.tabulate_means(grid)
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{LN_2, LN_10};

    use super::*;
    use crate::additive_gp::{AdditivePrior, Dataset};
    use crate::kernel::{Kernel, KernelFamily};
    use crate::space::Point;

    #[test]
    fn beta_is_half_the_log_of_2t() {
        for (t, want) in
            [(1, 0.346_573_590_279_972_65), (2, LN_2), (50, LN_10), (1000, 3.800_451_229_771_041)]
        {
            assert!((beta(t) - want).abs() < 1e-15, "β_{t} = {}", beta(t));
        }
        // Before the first observation there is nothing to trade off; it must not be −∞.
        assert_eq!(beta(0), beta(1));
    }

    fn posterior() -> AdditivePosterior {
        let component = |variables: &[usize]| Component::new(variables.to_vec()).unwrap();
        let prior = AdditivePrior {
            components: vec![component(&[0]), component(&[0, 1]), component(&[1, 2])],
            kernel: Kernel::uniform(KernelFamily::Rbf, 3, 0.3, 0.8),
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        };
        let mut data = Dataset::empty(3);
        for a in 0..9 {
            let x = (0..3).map(|i| (0.618 * f64::from(a) + 0.27 * f64::from(i)).fract()).collect();
            data.push(&Point(x), f64::from(a).sin()).unwrap();
        }
        prior.condition(&data).unwrap()
    }

    #[test]
    fn ucb_is_mean_plus_root_beta_standard_deviations() {
        let posterior = posterior();
        let axes = vec![vec![0.1, 0.7], vec![0.2, 0.5, 0.9], vec![0.0, 0.4, 0.6, 1.0]];
        let grid = Grid::new(axes.clone()).unwrap();
        let tables = posterior.tabulate(&grid).unwrap();
        for beta in [0.0, 0.5, 2.3, 100.0] {
            let ucb = Ucb { posterior: &posterior, beta };
            assert_eq!(ucb.components(), &posterior.prior().components);
            let phi = ucb.tabulate(&grid).unwrap();
            assert_eq!(phi.iter().map(Vec::len).collect::<Vec<_>>(), [2, 6, 12]);
            for (k, phi) in phi.iter().enumerate() {
                for (entry, phi) in phi.iter().enumerate() {
                    let (mean, variance) = (tables.means[k][entry], tables.variances[k][entry]);
                    assert!((phi - (mean + (beta * variance).sqrt())).abs() < 1e-13);
                }
            }
            // The last entry but one of {1, 2}, from the posterior itself: last variable fastest.
            let x = Point(vec![axes[0][0], axes[1][2], axes[2][2]]);
            let normal = posterior.component(2, &x).unwrap();
            let want = normal.mean + (beta * normal.variance).sqrt();
            assert!((phi[2][2 * 4 + 2] - want).abs() < 1e-12);
        }
        // A negative β is none at all.
        let none = Ucb { posterior: &posterior, beta: -1.0 };
        assert_eq!(none.tabulate(&grid).unwrap(), tables.means);
        let short = Grid::new(axes[..2].to_vec()).unwrap();
        assert!(none.tabulate(&short).is_err());
    }

    #[test]
    fn posterior_mean_is_ucb_without_uncertainty() {
        let posterior = posterior();
        let grid = Grid::new(vec![vec![0.1, 0.7], vec![0.2, 0.5, 0.9], vec![0.0, 0.4]]).unwrap();
        let mean = PosteriorMean { posterior: &posterior };
        let want = posterior.tabulate(&grid).unwrap().means;
        assert_eq!(mean.components(), &posterior.prior().components);
        for (got, want) in mean.tabulate(&grid).unwrap().iter().zip(&want) {
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(want) {
                assert!((got - want).abs() < 1e-13);
            }
        }
    }
}
