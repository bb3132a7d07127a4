//! Learning the kernel parameters Θ (and the noise) by maximum likelihood or maximum a posteriori.
//!
//! Paper: section "Kernel", "the established gradient-based approach to learning Θ". Here: L-BFGS-B on the logarithms of
//! the parameters with the analytic gradient of ρ, from the present parameters, with a stated budget of likelihoods.
//!
//! Notation: θ is the vector (log ℓ_1 … log ℓ_D, log σ_1 … log σ_D, log η).
//!
//! Cost: each evaluation is one conditioning and one gradient (see [`crate::additive_gp`]).

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePrior, Dataset};
use crate::error::{Error, Result};
use crate::quasi_newton::minimize_in_box;

/// A prior on positive parameters that belong together: their logarithms are normal around a common value, which is
/// itself normal around the log of `median`. Variables of which the data say little are drawn to what the others have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledPrior {
    /// Median of the common value.
    pub median: f64,
    /// Standard deviation of the log of the common value.
    pub common_log_std: f64,
    /// Standard deviation of the logs around the log of the common value.
    pub log_std: f64,
}

impl PooledPrior {
    /// Log density of the logarithms up to a constant, maximised over the common value; adds its gradient.
    fn log_density(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (precision, common_precision) = (self.log_std.powi(-2), self.common_log_std.powi(-2));
        let center = self.median.ln();
        let common = (precision * theta.iter().sum::<f64>() + common_precision * center)
            / (precision * theta.len() as f64 + common_precision);
        let mut density = -0.5 * common_precision * (common - center).powi(2);
        for (&theta, gradient) in theta.iter().zip(gradient) {
            density -= 0.5 * precision * (theta - common).powi(2);
            // The common value is optimal, so its own change contributes nothing.
            *gradient -= precision * (theta - common);
        }
        density
    }
}

/// Priors on all parameters; without them kernel learning maximises the likelihood alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelPrior {
    /// On the ℓ_i.
    pub lengthscales: PooledPrior,
    /// On the σ_i.
    pub scales: PooledPrior,
    /// On η; its two spreads add up.
    pub noise_std: PooledPrior,
}

/// How many likelihoods kernel learning may evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// Always the same number; 0 keeps the parameters as they are.
    Fixed(usize),
    /// ⌊(2D)^(n/1000)⌋ for n observations, the schedule of the paper's published code: a single one, which cannot move
    /// the parameters, until n is in the hundreds.
    Growing,
}

impl Budget {
    /// The number of evaluations for D variables and n observations.
    pub fn evaluations(self, dimension: usize, n: usize) -> usize {
        match self {
            Budget::Fixed(evaluations) => evaluations,
            Budget::Growing => (2.0 * dimension as f64).powf(n as f64 / 1000.0) as usize,
        }
    }
}

/// Settings of [`kernel_learning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelLearning {
    /// How many evaluations of the likelihood and its gradient may be spent.
    pub budget: Budget,
    /// Smallest and largest ℓ_i.
    pub lengthscale_bounds: [f64; 2],
    /// Smallest and largest σ_i.
    pub scale_bounds: [f64; 2],
    /// Smallest and largest η; none keeps η as it is.
    pub noise_std_bounds: Option<[f64; 2]>,
    /// Priors on the parameters; none for maximum likelihood.
    pub prior: Option<KernelPrior>,
}

impl Default for KernelLearning {
    /// Maximum likelihood with the bounds of the paper's published code, and η fixed.
    fn default() -> Self {
        Self {
            budget: Budget::Growing,
            lengthscale_bounds: [0.01, 1e5],
            scale_bounds: [0.1_f64.sqrt(), 1e5],
            noise_std_bounds: None,
            prior: None,
        }
    }
}

impl KernelLearning {
    /// Refuses bounds that are not positive, finite and in order, and priors without spread.
    pub fn validate(&self) -> Result<()> {
        let bounds = [
            ("lengthscale_bounds", Some(self.lengthscale_bounds)),
            ("scale_bounds", Some(self.scale_bounds)),
            ("noise_std_bounds", self.noise_std_bounds),
        ];
        for (setting, bounds) in bounds {
            if let Some([low, high]) = bounds
                && !(low > 0.0 && low <= high && high.is_finite())
            {
                return Err(Error::InvalidSetting {
                    setting,
                    value: format!("[{low}, {high}]"),
                    reason: "bounds must be positive, finite and in order",
                });
            }
        }
        if let Some(prior) = &self.prior {
            for pooled in [prior.lengthscales, prior.scales, prior.noise_std] {
                for value in [pooled.median, pooled.common_log_std, pooled.log_std] {
                    if !(value > 0.0 && value.is_finite()) {
                        return Err(Error::InvalidSetting {
                            setting: "prior",
                            value: value.to_string(),
                            reason: "medians and spreads must be positive and finite",
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// What [`kernel_learning`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedKernel {
    /// The structure that was given, with the learned kernel and noise.
    pub prior: AdditivePrior,
    /// ρ plus the log of the parameters' prior, which was maximised.
    pub objective: f64,
    /// How many evaluations of ρ and its gradient were used.
    pub evaluations: usize,
}

/// Maximises ρ (plus the log prior) over Θ and, if it has bounds, η, starting from `start`.
///
/// Never returns parameters worse than the start, and leaves them as they are if nothing can be scored.
pub fn kernel_learning(
    start: &AdditivePrior,
    data: &Dataset,
    config: &KernelLearning,
) -> Result<LearnedKernel> {
    config.validate()?;
    start.validate()?;
    let dimension = start.kernel.dimension();
    let mut theta: Vec<f64> =
        start.kernel.lengthscales.iter().chain(&start.kernel.scales).map(|v| v.ln()).collect();
    let ln = |[low, high]: [f64; 2]| (low.ln(), high.ln());
    let (l, s) = (ln(config.lengthscale_bounds), ln(config.scale_bounds));
    let mut lower = [vec![l.0; dimension], vec![s.0; dimension]].concat();
    let mut upper = [vec![l.1; dimension], vec![s.1; dimension]].concat();
    if let Some(bounds) = config.noise_std_bounds {
        let n = ln(bounds);
        theta.push(start.noise_std.max(bounds[0]).ln());
        lower.push(n.0);
        upper.push(n.1);
    }
    let minimum = minimize_in_box(
        |theta| match posterior_density(&with_parameters(start, theta), data, config, theta) {
            Ok((value, gradient)) => (-value, gradient.into_iter().map(|g| -g).collect()),
            // Not positive definite even with jitter: a wall the line search steps back from.
            Err(_) => (f64::INFINITY, vec![0.0; theta.len()]),
        },
        &theta,
        &lower,
        &upper,
        config.budget.evaluations(dimension, data.len()),
    );
    let prior = if minimum.value.is_finite() {
        with_parameters(start, &minimum.point)
    } else {
        start.clone()
    };
    Ok(LearnedKernel { prior, objective: -minimum.value, evaluations: minimum.evaluations })
}

/// The structure with the parameters θ.
fn with_parameters(start: &AdditivePrior, theta: &[f64]) -> AdditivePrior {
    let dimension = start.kernel.dimension();
    let mut prior = start.clone();
    for (i, value) in theta.iter().enumerate() {
        let value = value.exp();
        match i / dimension.max(1) {
            0 => prior.kernel.lengthscales[i] = value,
            1 => prior.kernel.scales[i - dimension] = value,
            _ => prior.noise_std = value,
        }
    }
    prior
}

/// ρ + log prior at θ, and its gradient in θ.
fn posterior_density(
    prior: &AdditivePrior,
    data: &Dataset,
    config: &KernelLearning,
    theta: &[f64],
) -> Result<(f64, Vec<f64>)> {
    let posterior = prior.condition(data)?;
    let mut value = posterior.log_likelihood();
    let rho = posterior.log_likelihood_gradient();
    let mut gradient = [rho.log_lengthscales, rho.log_scales].concat();
    if config.noise_std_bounds.is_some() {
        gradient.push(rho.log_noise_std);
    }
    if let Some(density) = &config.prior {
        let dimension = prior.kernel.dimension();
        let groups = [
            (0..dimension, density.lengthscales),
            (dimension..2 * dimension, density.scales),
            (2 * dimension..theta.len(), density.noise_std),
        ];
        for (range, pooled) in groups {
            value += pooled.log_density(&theta[range.clone()], &mut gradient[range]);
        }
    }
    if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
        Ok((value, gradient))
    } else {
        Err(Error::NotPositiveDefinite { pivot: 0 })
    }
}
