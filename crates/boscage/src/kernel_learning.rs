//! Learning the kernel parameters Θ (and the noise) by maximum likelihood or maximum a posteriori.
//!
//! Paper: section "Kernel", "the established gradient-based approach to learning Θ". Here: L-BFGS-B on the logarithms of
//! the parameters with the analytic gradient of ρ, from the present parameters, with a stated budget of likelihoods.
//!
//! Notation: θ is the vector (log ℓ_1 … log ℓ_D, log σ_1 … log σ_D, log η); beyond the paper, log w_1 … log w_D where all pairs
//! interact, log s where variables do something alike, and log r_1 … log r_D where ranges are stretched, come before log η.
//!
//! Cost: each evaluation is one conditioning and one gradient (see [`crate::additive_gp`]).

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePrior, Dataset, check_data};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::quasi_newton::{TOLERANCE, minimize_in_box_to};

/// A prior on positive parameters that belong together: their logarithms are normal around a common value, which is
/// itself normal around the log of `median`. Variables of which the data say little are drawn to what the others have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KernelPrior {
    /// On the ℓ_i.
    pub lengthscales: PooledPrior,
    /// On the σ_i.
    pub scales: PooledPrior,
    /// On η; its two spreads add up.
    pub noise_std: PooledPrior,
    /// On the weights w_i, where all pairs interact.
    #[serde(default = "KernelPrior::default_pair_weights")]
    pub pair_weights: PooledPrior,
    /// On s, where variables do something alike; its two spreads add up.
    #[serde(default = "KernelPrior::default_common_std")]
    pub common_std: PooledPrior,
    /// On the stretches, where ranges have any.
    #[serde(default = "KernelPrior::default_stretches")]
    pub stretches: PooledPrior,
}

impl KernelPrior {
    fn default_pair_weights() -> PooledPrior {
        // With 1/D the variance of all pairs together is ½ (D · 1/D)²: a half.
        PooledPrior { median: 1.0, common_log_std: 0.7, log_std: 1.0 }
    }

    fn default_common_std() -> PooledPrior {
        // Next to nothing, a quarter of the variance even in a corner, unless the outcomes say more, and then nearly anything.
        PooledPrior { median: 0.1, common_log_std: 1.5, log_std: 0.1 }
    }

    fn default_stretches() -> PooledPrior {
        // A range that should have been logarithmic spans some three orders of magnitude, ln 1000 = 6.9: two standard deviations of
        // what all ranges have in common and of what each has of its own, 3.6 together. Who mistook one often mistook several.
        PooledPrior { median: 1.0, common_log_std: 3.0, log_std: 2.0 }
    }
}

impl Default for KernelPrior {
    fn default() -> Self {
        Self {
            lengthscales: PooledPrior { median: 0.4, common_log_std: 0.3, log_std: 0.5 },
            scales: PooledPrior { median: 1.0, common_log_std: 1.0, log_std: 1.0 },
            noise_std: PooledPrior { median: 0.1, common_log_std: 1.0, log_std: 0.1 },
            pair_weights: Self::default_pair_weights(),
            common_std: Self::default_common_std(),
            stretches: Self::default_stretches(),
        }
    }
}

/// Smallest and largest stretch.
const STRETCH_BOUNDS: [f64; 2] = [1e-4, 1e4];
/// Smallest and largest s of what variables do alike.
const COMMON_STD_BOUNDS: [f64; 2] = [1e-6, 30.0];

/// How many likelihoods kernel learning may evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct KernelLearning {
    /// How many evaluations of the likelihood and its gradient may be spent.
    pub budget: Budget,
    /// Learning ends before that when a step gains less than this share of the log posterior density (of 1, if that is smaller).
    pub tolerance: f64,
    /// Smallest and largest ℓ_i.
    pub lengthscale_bounds: [f64; 2],
    /// Smallest and largest σ_i, and weight of a variable in pairs.
    pub scale_bounds: [f64; 2],
    /// Smallest and largest η; none keeps η as it is.
    pub noise_std_bounds: Option<[f64; 2]>,
    /// Priors on the parameters; none for maximum likelihood.
    pub prior: Option<KernelPrior>,
    /// Of more observations than this, so many evenly spaced ones are learned from: a likelihood costs n³, and parameters that
    /// hundreds cannot tell thousands seldom tell. None for all.
    pub most_observations: Option<usize>,
}

impl Default for KernelLearning {
    /// For standardised outcomes: parameters really trained, with pooled priors, learned noise with a floor, and
    /// components that can shrink to nothing.
    fn default() -> Self {
        Self {
            budget: Budget::Fixed(50),
            tolerance: TOLERANCE,
            lengthscale_bounds: [0.01, 100.0],
            scale_bounds: [1e-5, 100.0],
            noise_std_bounds: Some([1e-3, 1.0]),
            prior: Some(KernelPrior::default()),
            most_observations: None,
        }
    }
}

impl KernelLearning {
    /// Maximum likelihood with the budget and bounds of the paper's published code, and η fixed.
    pub fn paper() -> Self {
        Self {
            budget: Budget::Growing,
            tolerance: TOLERANCE,
            lengthscale_bounds: [0.01, 1e5],
            scale_bounds: [0.1_f64.sqrt(), 1e5],
            noise_std_bounds: None,
            prior: None,
            most_observations: None,
        }
    }

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
        if !(self.tolerance >= 0.0 && self.tolerance < 1.0) {
            return Err(Error::InvalidSetting {
                setting: "tolerance",
                value: self.tolerance.to_string(),
                reason: "it must be from 0 to below 1",
            });
        }
        if self.most_observations == Some(0) {
            return Err(Error::InvalidSetting {
                setting: "most_observations",
                value: "0".to_string(),
                reason: "there must be something to learn from",
            });
        }
        if let Some(prior) = &self.prior {
            for pooled in [
                prior.lengthscales,
                prior.scales,
                prior.noise_std,
                prior.pair_weights,
                prior.common_std,
                prior.stretches,
            ] {
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
/// Never returns parameters worse than the start (moved into the bounds), and leaves them as they are if nothing can be scored.
pub fn kernel_learning(
    start: &AdditivePrior,
    data: &Dataset,
    config: &KernelLearning,
) -> Result<LearnedKernel> {
    config.validate()?;
    start.validate()?;
    check_data(&start.kernel, data)?;
    let few;
    let data = match config.most_observations.filter(|&most| data.len() > most) {
        Some(most) => {
            few = data.evenly(most)?;
            &few
        }
        None => data,
    };
    let dimension = start.kernel.dimension();
    let mut theta = parameters(start);
    let ln = |[low, high]: [f64; 2]| (low.ln(), high.ln());
    let (l, s) = (ln(config.lengthscale_bounds), ln(config.scale_bounds));
    let stretches = start.kernel.stretches.len();
    let commons = usize::from(start.common_std > 0.0);
    let others = theta.len() - dimension - commons - stretches;
    let bounds = [
        vec![l; dimension],
        vec![s; others],
        vec![ln(COMMON_STD_BOUNDS); commons],
        vec![ln(STRETCH_BOUNDS); stretches],
    ];
    let (mut lower, mut upper): (Vec<f64>, Vec<f64>) = bounds.concat().into_iter().unzip();
    if let Some(bounds) = config.noise_std_bounds {
        let n = ln(bounds);
        theta.push(start.noise_std.max(bounds[0]).ln());
        lower.push(n.0);
        upper.push(n.1);
    }
    let minimum = minimize_in_box_to(
        config.tolerance,
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

/// θ without the noise.
fn parameters(prior: &AdditivePrior) -> Vec<f64> {
    let weights = prior.all_pairs.as_ref().map_or([].as_slice(), |pairs| &pairs.weights);
    let common = (prior.common_std > 0.0).then_some(&prior.common_std);
    let kernel = &prior.kernel;
    let parameters = kernel.lengthscales.iter().chain(&kernel.scales).chain(weights).chain(common);
    let parameters = parameters.chain(&kernel.stretches);
    parameters.map(|value| value.ln()).collect()
}

/// ρ + log prior, as [`kernel_learning`] maximises it, of parameters that are known.
pub(crate) fn log_posterior_density(
    prior: &AdditivePrior,
    data: &Dataset,
    config: &KernelLearning,
) -> Result<f64> {
    let mut theta = parameters(prior);
    if config.noise_std_bounds.is_some() {
        theta.push(prior.noise_std.ln());
    }
    let value = prior.condition(data)?.log_likelihood();
    Ok(value + log_prior_density(prior, config, &theta, &mut vec![0.0; theta.len()]))
}

/// The structure with the parameters θ.
fn with_parameters(start: &AdditivePrior, theta: &[f64]) -> AdditivePrior {
    let mut prior = start.clone();
    let weights = prior.all_pairs.as_mut().map_or([].as_mut_slice(), |pairs| &mut pairs.weights);
    let common = (start.common_std > 0.0).then_some(&mut prior.common_std);
    let Kernel { lengthscales, scales, stretches, .. } = &mut prior.kernel;
    let parameters = lengthscales.iter_mut().chain(scales).chain(weights).chain(common);
    let parameters = parameters.chain(stretches);
    // θ may end before the noise.
    for (parameter, value) in parameters.chain([&mut prior.noise_std]).zip(theta) {
        *parameter = value.exp();
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
    let mut gradient = [rho.log_lengthscales, rho.log_scales, rho.log_pair_weights].concat();
    gradient.extend(rho.log_common_std);
    gradient.extend(rho.log_stretches);
    if config.noise_std_bounds.is_some() {
        gradient.push(rho.log_noise_std);
    }
    value += log_prior_density(prior, config, theta, &mut gradient);
    if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
        Ok((value, gradient))
    } else {
        Err(Error::NotPositiveDefinite { pivot: 0 })
    }
}

/// Log prior of the parameters of this structure at θ; adds its gradient.
fn log_prior_density(
    prior: &AdditivePrior,
    config: &KernelLearning,
    theta: &[f64],
    gradient: &mut [f64],
) -> f64 {
    let Some(density) = &config.prior else { return 0.0 };
    let dimension = prior.kernel.dimension();
    let pairs = if prior.all_pairs.is_some() { 3 * dimension } else { 2 * dimension };
    let common = pairs + usize::from(prior.common_std > 0.0);
    let stretches = common + prior.kernel.stretches.len();
    let groups = [
        (0..dimension, density.lengthscales),
        (dimension..2 * dimension, density.scales),
        (2 * dimension..pairs, density.pair_weights),
        (pairs..common, density.common_std),
        (common..stretches, density.stretches),
        (stretches..theta.len(), density.noise_std),
    ];
    let density = |(range, pooled): (std::ops::Range<usize>, PooledPrior)| {
        pooled.log_density(&theta[range.clone()], &mut gradient[range])
    };
    groups.into_iter().map(density).sum()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::graph::Component;
    use crate::kernel::KernelFamily;
    use crate::space::Point;
    use crate::stream::{Generator, Purpose, Stream};

    fn random(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Problem)
    }

    fn component(variables: &[usize]) -> Component {
        Component::new(variables.to_vec()).unwrap()
    }

    /// Box and Muller.
    fn normal(rng: &mut Generator) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    /// n observations at random points of a function drawn from the prior, noise included.
    fn draw(prior: &AdditivePrior, n: usize, rng: &mut Generator) -> Dataset {
        let dimension = prior.kernel.dimension();
        let x: Vec<Point> =
            (0..n).map(|_| Point((0..dimension).map(|_| rng.random()).collect())).collect();
        let covariance = |a: usize, b: usize| {
            let noise = if a == b { prior.noise_std.powi(2) } else { 0.0 };
            let values = prior.components.iter().map(|g| prior.kernel.value(g, &x[a].0, &x[b].0));
            noise + values.sum::<f64>()
        };
        // y = Lz with a Cholesky factor by the textbook.
        let mut l = vec![vec![0.0; n]; n];
        for a in 0..n {
            for b in 0..=a {
                let dot: f64 = (0..b).map(|k| l[a][k] * l[b][k]).sum();
                let rest = covariance(a, b) - dot;
                l[a][b] = if a == b { rest.sqrt() } else { rest / l[b][b] };
            }
        }
        let z: Vec<f64> = (0..n).map(|_| normal(rng)).collect();
        let mut data = Dataset::empty(dimension);
        for (x, row) in x.iter().zip(&l) {
            data.push(x, row.iter().zip(&z).map(|(l, z)| l * z).sum()).unwrap();
        }
        data
    }

    fn planted() -> AdditivePrior {
        let mut kernel = Kernel::uniform(KernelFamily::Rbf, 4, 1.0, 1.0);
        kernel.lengthscales = vec![0.1, 0.25, 0.4, 0.15];
        AdditivePrior {
            components: vec![component(&[0, 1]), component(&[2, 3])],
            kernel,
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        }
    }

    /// All parameters wrong, and all the same.
    fn uninformed(prior: &AdditivePrior) -> AdditivePrior {
        let dimension = prior.kernel.dimension();
        let kernel = Kernel::uniform(prior.kernel.family, dimension, 0.3, 0.5);
        AdditivePrior { kernel, ..prior.clone() }
    }

    fn with_budget(evaluations: usize) -> KernelLearning {
        KernelLearning { budget: Budget::Fixed(evaluations), ..KernelLearning::paper() }
    }

    fn likelihood(prior: &AdditivePrior, data: &Dataset) -> f64 {
        prior.condition(data).unwrap().log_likelihood()
    }

    #[test]
    fn planted_lengthscales_are_recovered() {
        // Draws of 200 observations: ℓ within a factor of 1.5 and η within 1.7, about three standard errors.
        for seed in 0..5 {
            for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
                let mut truth = planted();
                truth.kernel.family = family;
                let data = draw(&truth, 200, &mut random(seed));
                let start = AdditivePrior { noise_std: 0.5, ..uninformed(&truth) };
                let config =
                    KernelLearning { noise_std_bounds: Some([1e-3, 10.0]), ..with_budget(100) };
                let learned = kernel_learning(&start, &data, &config).unwrap();
                let found = &learned.prior.kernel.lengthscales;
                for (found, planted) in found.iter().zip(&truth.kernel.lengthscales) {
                    assert!((found / planted).ln().abs() < 1.5_f64.ln(), "{found} {planted}");
                }
                let noise_ratio = learned.prior.noise_std / truth.noise_std;
                assert!(noise_ratio.ln().abs() < 1.7_f64.ln(), "{noise_ratio}");
                // The maximum is at least as likely as the truth.
                assert!(learned.objective >= likelihood(&truth, &data));
                assert_eq!(learned.prior.components, truth.components);
            }
        }
    }

    #[test]
    fn never_worse_than_the_start_whatever_the_budget() {
        let truth = planted();
        let mut rng = random(10);
        let data = draw(&truth, 30, &mut rng);
        for budget in [1, 2, 3, 5, 8, 20] {
            for _ in 0..5 {
                let mut start = truth.clone();
                start.kernel.lengthscales.fill_with(|| rng.random_range(0.02..3.0));
                start.kernel.scales.fill_with(|| rng.random_range(0.4..3.0));
                let before = likelihood(&start, &data);
                let learned = kernel_learning(&start, &data, &with_budget(budget)).unwrap();
                let after = likelihood(&learned.prior, &data);
                assert!(after >= before - 1e-10, "{before} {after}");
                assert!((after - learned.objective).abs() < 1e-9 * after.abs());
                assert!((1..=budget).contains(&learned.evaluations), "{}", learned.evaluations);
                if budget == 1 {
                    // Only the start was seen; logarithm and exponential may cost the last digit.
                    for (a, b) in
                        learned.prior.kernel.lengthscales.iter().zip(&start.kernel.lengthscales)
                    {
                        assert!((a / b - 1.0).abs() < 1e-14);
                    }
                }
                if budget == 20 {
                    assert!(after > before + 1.0, "{before} {after}: nothing was learned");
                }
            }
        }
    }

    #[test]
    fn of_many_observations_some_are_enough() {
        let truth = planted();
        let data = draw(&truth, 60, &mut random(13));
        let learned = |data: &Dataset, most_observations| {
            let config = KernelLearning { most_observations, ..with_budget(20) };
            kernel_learning(&uninformed(&truth), data, &config).unwrap()
        };
        assert_eq!(learned(&data, Some(60)), learned(&data, None));
        let third = data.evenly(20).unwrap();
        assert_eq!(third.len(), 20);
        // One of every three, in order, and not always the same of the three.
        let place = |k: usize| (0..60).find(|&a| data.point(a) == third.point(k)).unwrap();
        let places: Vec<usize> = (0..20).map(place).collect();
        assert!(places.iter().enumerate().all(|(k, a)| a / 3 == k), "{places:?}");
        assert!((0..3).all(|rest| places.iter().any(|a| a % 3 == rest)), "{places:?}");
        assert_eq!(learned(&data, Some(20)), learned(&third, None));
        assert_ne!(learned(&data, Some(20)).prior, learned(&data, None).prior);
        let none = KernelLearning { most_observations: Some(0), ..with_budget(20) };
        assert!(none.validate().unwrap_err().to_string().contains("most_observations"));
    }

    #[test]
    fn the_density_of_what_was_learned_is_what_was_maximised() {
        let mut truth = planted();
        let data = draw(&truth, 30, &mut random(14));
        truth.all_pairs = Some(crate::all_pairs::AllPairs { weights: vec![0.3; 4] });
        truth.constant = 1.0;
        let without = AdditivePrior { all_pairs: None, constant: 0.0, ..truth.clone() };
        for start in [&truth, &without] {
            for noise_std_bounds in [None, Some([1e-3, 1.0])] {
                let config = KernelLearning { noise_std_bounds, ..KernelLearning::default() };
                let learned = kernel_learning(start, &data, &config).unwrap();
                let density = log_posterior_density(&learned.prior, &data, &config).unwrap();
                let apart = (density - learned.objective).abs();
                assert!(apart < 1e-8 * density.abs(), "{density} {}", learned.objective);
                assert_ne!(density, likelihood(&learned.prior, &data));
            }
        }
    }

    #[test]
    fn no_budget_keeps_the_parameters_to_the_bit() {
        let truth = planted();
        let data = draw(&truth, 10, &mut random(11));
        let learned = kernel_learning(&truth, &data, &with_budget(0)).unwrap();
        assert_eq!(learned.prior, truth);
        assert_eq!(learned.evaluations, 0);
    }

    #[test]
    fn bounds_are_respected() {
        let truth = planted();
        let data = draw(&truth, 60, &mut random(12));
        let config = KernelLearning {
            lengthscale_bounds: [0.15, 0.18],
            scale_bounds: [0.7, 0.9],
            noise_std_bounds: Some([0.3, 0.4]),
            ..with_budget(30)
        };
        // Starts inside and outside of the box.
        for (lengthscale, scale, noise_std) in
            [(0.16, 0.8, 0.35), (0.01, 5.0, 0.0), (9.0, 0.1, 2.0)]
        {
            let kernel = Kernel::uniform(KernelFamily::Rbf, 4, lengthscale, scale);
            let start = AdditivePrior { kernel, noise_std, ..truth.clone() };
            let learned = kernel_learning(&start, &data, &config).unwrap().prior;
            let inside = |value: f64, [low, high]: [f64; 2]| {
                assert!(value >= low * (1.0 - 1e-14) && value <= high * (1.0 + 1e-14), "{value}");
            };
            learned.kernel.lengthscales.iter().for_each(|&v| inside(v, config.lengthscale_bounds));
            learned.kernel.scales.iter().for_each(|&v| inside(v, config.scale_bounds));
            inside(learned.noise_std, [0.3, 0.4]);
            // The data want ℓ_0 = 0.1 and ℓ_1 = 0.25, so that bounds are reached from either side.
            assert!(learned.kernel.lengthscales[0] < 0.15 + 1e-9);
            assert!(learned.kernel.lengthscales[1] > 0.18 - 1e-9);
        }
        // And η = 0.1, if nothing else stands in the way.
        let config = KernelLearning { noise_std_bounds: Some([0.15, 0.4]), ..with_budget(30) };
        let learned = kernel_learning(&truth, &data, &config).unwrap().prior;
        assert!((learned.noise_std - 0.15).abs() < 1e-9, "{}", learned.noise_std);
    }

    #[test]
    fn noise_without_bounds_stays_as_it_is() {
        let truth = planted();
        let data = draw(&truth, 40, &mut random(13));
        for noise_std in [0.3, 0.1] {
            let start = AdditivePrior { noise_std, ..uninformed(&truth) };
            let learned = kernel_learning(&start, &data, &with_budget(20)).unwrap().prior;
            assert_eq!(learned.noise_std, noise_std);
            assert_ne!(learned.kernel, start.kernel);
        }
    }

    #[test]
    fn growing_budget_is_the_published_schedule() {
        let evaluations = |n| Budget::Growing.evaluations(25, n);
        // ⌊50^(n/1000)⌋ steps where n = 1000 ln k / ln 50: 177.2, 354.4, 497.4.
        for (n, want) in [
            (0, 1),
            (10, 1),
            (177, 1),
            (178, 2),
            (354, 3),
            (355, 4),
            (497, 6),
            (498, 7),
            (1000, 50),
        ] {
            assert_eq!(evaluations(n), want, "n = {n}");
        }
        assert_eq!(Budget::Growing.evaluations(250, 1000), 500);
        assert_eq!(Budget::Fixed(17).evaluations(25, 1000), 17);
    }

    /// Central differences of `f` at θ.
    fn differences(theta: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let h = 1e-5;
        let at = |i: usize, by: f64| {
            let mut theta = theta.to_vec();
            theta[i] += by;
            f(&theta)
        };
        (0..theta.len()).map(|i| (at(i, h) - at(i, -h)) / (2.0 * h)).collect()
    }

    const POOLED: PooledPrior = PooledPrior { median: 0.3, common_log_std: 0.8, log_std: 0.4 };

    #[test]
    fn pooled_density_is_maximal_over_the_common_value() {
        for theta in [vec![0.7], vec![-1.0, 0.2, 0.9, -2.5, -1.1]] {
            let given = |common: f64| {
                let of = |difference: f64, std: f64| -0.5 * (difference / std).powi(2);
                of(common - POOLED.median.ln(), POOLED.common_log_std)
                    + theta.iter().map(|t| of(t - common, POOLED.log_std)).sum::<f64>()
            };
            let best =
                (-40_000..40_000).map(|k| given(f64::from(k) * 1e-4)).reduce(f64::max).unwrap();
            let got = POOLED.log_density(&theta, &mut vec![0.0; theta.len()]);
            assert!(got >= best && got - best < 1e-6, "{got} {best}");
        }
        // Of a single parameter the two spreads add up.
        let want = -0.5 * (0.7 - 0.3_f64.ln()).powi(2) / (0.8_f64.powi(2) + 0.4_f64.powi(2));
        assert!((POOLED.log_density(&[0.7], &mut [0.0]) - want).abs() < 1e-14);
        assert_eq!(POOLED.log_density(&[], &mut []), 0.0);
    }

    #[test]
    fn pooled_gradient_equals_finite_differences_and_is_added() {
        for theta in [vec![0.7], vec![-1.0, 0.2, 0.9, -2.5, -1.1]] {
            let mut gradient = vec![10.0; theta.len()];
            POOLED.log_density(&theta, &mut gradient);
            let want =
                differences(&theta, |theta| POOLED.log_density(theta, &mut vec![0.0; theta.len()]));
            for (got, want) in gradient.iter().zip(want) {
                assert!((got - 10.0 - want).abs() < 1e-8, "{got} {want}");
            }
        }
    }

    fn kernel_prior() -> KernelPrior {
        let scales = PooledPrior { median: 0.9, common_log_std: 0.5, log_std: 0.3 };
        let noise_std = PooledPrior { median: 0.05, common_log_std: 1.0, log_std: 0.2 };
        let common_std = PooledPrior { median: 0.2, common_log_std: 0.7, log_std: 0.3 };
        let stretches = PooledPrior { median: 2.0, common_log_std: 1.5, log_std: 0.8 };
        let pair_weights = POOLED;
        KernelPrior { lengthscales: POOLED, scales, noise_std, pair_weights, common_std, stretches }
    }

    #[test]
    fn objective_gradient_equals_finite_differences() {
        let truth = planted();
        let data = draw(&truth, 25, &mut random(14));
        let mut with_all = truth.clone();
        with_all.all_pairs = Some(crate::all_pairs::AllPairs { weights: vec![0.3; 4] });
        with_all.common_std = 0.4;
        let alike = AdditivePrior { common_std: 0.4, ..truth.clone() };
        let stretched = |prior: &AdditivePrior| {
            let mut prior = prior.clone();
            prior.kernel.stretches = vec![1.0; 4];
            prior
        };
        let all = [stretched(&truth), stretched(&with_all), truth, alike, with_all];
        for (truth, (noise_std_bounds, prior)) in all.iter().flat_map(|t| {
            [
                (None, None),
                (None, Some(kernel_prior())),
                (Some([1e-3, 1.0]), None),
                (Some([1e-3, 1.0]), Some(kernel_prior())),
            ]
            .map(|case| (t, case))
        }) {
            let config = KernelLearning { noise_std_bounds, prior, ..KernelLearning::paper() };
            let mut theta: Vec<f64> =
                [0.2, 0.3, 0.3, 0.2, 0.8, 1.2, 0.7, 0.9].iter().map(|v: &f64| v.ln()).collect();
            theta
                .extend(truth.all_pairs.iter().flat_map(|_| [0.2_f64, 0.5, 0.3, 0.1].map(f64::ln)));
            theta.extend((truth.common_std > 0.0).then(|| 0.3_f64.ln()));
            theta.extend(truth.kernel.stretches.iter().zip([2.0, -1.5, 0.3, 1e-7]).map(|(_, s)| s));
            theta.extend(noise_std_bounds.map(|_| 0.2_f64.ln()));
            assert_eq!(parameters(&with_parameters(truth, &theta)).len(), {
                theta.len() - usize::from(noise_std_bounds.is_some())
            });
            let density = |theta: &[f64]| {
                posterior_density(&with_parameters(truth, theta), &data, &config, theta).unwrap()
            };
            let got = density(&theta).1;
            let want = differences(&theta, |theta| density(theta).0);
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{got} {want}");
            }
        }
    }

    #[test]
    fn stretches_are_learned_and_only_where_there_are_any() {
        const DIMENSION: usize = 6;
        let kernel = Kernel::uniform(KernelFamily::Matern52, DIMENSION, 0.5, 0.2);
        let components = (0..DIMENSION).map(|i| component(&[i])).collect();
        let mut start = AdditivePrior { components, kernel, ..planted() };
        // Two are logarithms of x, two of 1 − x, two are neither.
        let outcome = |x: &[f64]| -> f64 {
            let of = |x: f64| (2.0 * (x + 1e-3).log10() + 2.0).sin();
            let ends = of(x[0]) + of(x[1]) + of(1.0 - x[2]) + of(1.0 - x[3]);
            ends + (5.0 * x[4]).sin() + (4.0 * x[5]).cos()
        };
        let mut rng = random(22);
        let mut data = Dataset::empty(DIMENSION);
        for _ in 0..120 {
            let x: Vec<f64> = (0..DIMENSION).map(|_| rng.random()).collect();
            let y = outcome(&x);
            data.push(&Point(x), y).unwrap();
        }
        let config = KernelLearning { budget: Budget::Fixed(150), ..KernelLearning::default() };
        let without = kernel_learning(&start, &data, &config).unwrap();
        assert_eq!(without.prior.kernel.stretches, Vec::<f64>::new());
        start.kernel.stretches = vec![1.0; DIMENSION];
        let with = kernel_learning(&start, &data, &config).unwrap();
        assert!(
            with.objective > without.objective + 20.0,
            "{} {}",
            with.objective,
            without.objective
        );
        let found = &with.prior.kernel.stretches;
        assert!(found[..2].iter().all(|&r| r > 20.0), "{found:?}");
        assert!(found[2..4].iter().all(|&r| r < 0.05), "{found:?}");
        assert!(found[4..].iter().all(|&r| (0.1..10.0).contains(&r)), "{found:?}");
        // Never beyond the bounds, and all else as it was.
        let [low, high] = STRETCH_BOUNDS;
        assert!(found.iter().all(|r| (low * 0.999..=high * 1.001).contains(r)), "{found:?}");
    }

    #[test]
    fn how_much_variables_do_alike_is_learned() {
        const DIMENSION: usize = 12;
        let kernel = Kernel::uniform(KernelFamily::Matern52, DIMENSION, 0.5, 0.1);
        let components = (0..DIMENSION).map(|i| component(&[i])).collect();
        let start = AdditivePrior { components, kernel, common_std: 0.1, ..planted() };
        let learned = |f: &dyn Fn(usize, f64) -> f64| {
            let mut rng = random(21);
            let mut data = Dataset::empty(DIMENSION);
            for _ in 0..40 {
                let x: Vec<f64> = (0..DIMENSION).map(|_| rng.random()).collect();
                let y = x.iter().enumerate().map(|(i, &x)| f(i, x)).sum();
                data.push(&Point(x), y).unwrap();
            }
            kernel_learning(&start, &data, &KernelLearning::default()).unwrap().prior.common_std
        };
        let wave = |x: f64| (4.0 * x).sin();
        let (alike, not_alike) = (
            learned(&|_, x| wave(x)),
            learned(&|i, x| if i.is_multiple_of(2) { wave(x) } else { -wave(x) }),
        );
        assert!(alike > 0.3 && not_alike < 0.1, "{alike} {not_alike}");
    }

    #[test]
    fn pooled_prior_draws_a_variable_without_evidence_to_the_others() {
        // Only the first three variables have planted effects. Variable 3 sits in a component of which it explains
        // nothing, variable 4 in none at all.
        let mut truth = planted();
        truth.kernel = Kernel::uniform(KernelFamily::Rbf, 5, 0.15, 1.0);
        truth.components = vec![component(&[0]), component(&[1]), component(&[2])];
        let data = draw(&truth, 120, &mut random(15));
        let mut start = truth.clone();
        start.components[2] = component(&[2, 3]);
        start.kernel.lengthscales = vec![0.5; 5];
        let prior = KernelPrior {
            lengthscales: PooledPrior { median: 1.0, common_log_std: 2.0, log_std: 0.5 },
            ..kernel_prior()
        };
        let config = KernelLearning { prior: Some(prior), ..with_budget(100) };

        let alone = kernel_learning(&start, &data, &with_budget(100)).unwrap().prior.kernel;
        let pooled = kernel_learning(&start, &data, &config).unwrap().prior.kernel;
        let (alone, pooled) = (alone.lengthscales, pooled.lengthscales);
        // By likelihood alone an irrelevant variable's ℓ grows out of sight, and one without a component stays.
        assert!(alone[3] > 2.0, "{alone:?}");
        assert!((alone[4] - 0.5).abs() < 1e-12, "{alone:?}");
        // With the prior it is held back, and the one without a component gets what the others have in common.
        assert!(pooled[3] < 0.5 * alone[3], "{pooled:?} {alone:?}");
        let others = pooled[..4].iter().map(|v| v.ln()).sum::<f64>() / 4.0;
        let common = {
            // The maximum over ℓ_4 and the common value: ℓ_4 has no say.
            let (tau, tau_common) = (0.5_f64.powi(-2), 2.0_f64.powi(-2));
            4.0 * tau * others / (4.0 * tau + tau_common)
        };
        assert!((pooled[4].ln() - common).abs() < 1e-3, "{pooled:?} {common}");
        // Of variables with evidence the data have the last word.
        for i in 0..3 {
            assert!((pooled[i] / 0.15).ln().abs() < 1.4_f64.ln(), "{pooled:?}");
        }
    }

    #[test]
    fn a_tolerance_ends_learning_when_little_is_gained() {
        let truth = planted();
        let data = draw(&truth, 80, &mut random(19));
        let start = uninformed(&truth);
        let learned = |tolerance: f64| {
            let config = KernelLearning { tolerance, ..with_budget(200) };
            kernel_learning(&start, &data, &config).unwrap()
        };
        let (fine, loose) = (learned(TOLERANCE), learned(1e-4));
        assert!(fine.evaluations < 200, "{}", fine.evaluations);
        assert!(loose.evaluations < fine.evaluations, "{} {}", loose.evaluations, fine.evaluations);
        // What is given away is of the order of the tolerance, a part of what learning gains.
        let missing = fine.objective - loose.objective;
        let gained = loose.objective - likelihood(&start, &data);
        assert!(missing >= 0.0 && missing < 0.02 * gained, "{missing} of {gained}");
        // 0 is no reason to end: the gradient is, or the budget.
        assert!(learned(0.0).evaluations >= fine.evaluations);
    }

    #[test]
    fn invalid_settings_are_refused() {
        let good = KernelLearning {
            noise_std_bounds: Some([0.1, 0.1]),
            prior: Some(kernel_prior()),
            ..KernelLearning::paper()
        };
        assert!(KernelLearning::paper().validate().is_ok());
        assert!(good.validate().is_ok());
        let mut bad = Vec::new();
        for bounds in [
            [0.0, 1.0],
            [-1.0, 1.0],
            [2.0, 1.0],
            [0.1, f64::INFINITY],
            [f64::NAN, 1.0],
            [0.1, f64::NAN],
        ] {
            bad.push(KernelLearning { lengthscale_bounds: bounds, ..good.clone() });
            bad.push(KernelLearning { scale_bounds: bounds, ..good.clone() });
            bad.push(KernelLearning { noise_std_bounds: Some(bounds), ..good.clone() });
        }
        for tolerance in [-1e-9, 1.0, f64::NAN, f64::INFINITY] {
            bad.push(KernelLearning { tolerance, ..good.clone() });
        }
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            for pooled in [
                PooledPrior { median: value, ..POOLED },
                PooledPrior { common_log_std: value, ..POOLED },
                PooledPrior { log_std: value, ..POOLED },
            ] {
                for prior in [
                    KernelPrior { lengthscales: pooled, ..kernel_prior() },
                    KernelPrior { scales: pooled, ..kernel_prior() },
                    KernelPrior { noise_std: pooled, ..kernel_prior() },
                    KernelPrior { pair_weights: pooled, ..kernel_prior() },
                    KernelPrior { common_std: pooled, ..kernel_prior() },
                    KernelPrior { stretches: pooled, ..kernel_prior() },
                ] {
                    bad.push(KernelLearning { prior: Some(prior), ..good.clone() });
                }
            }
        }
        let (truth, data) = (planted(), Dataset::empty(4));
        for bad in bad {
            assert!(matches!(bad.validate(), Err(Error::InvalidSetting { .. })), "{bad:?}");
            assert!(kernel_learning(&truth, &data, &bad).is_err());
        }
        // A start that cannot be scored because it makes no sense is an error, not a wall.
        let negative = AdditivePrior { noise_std: -1.0, ..truth.clone() };
        assert!(kernel_learning(&negative, &data, &good).is_err());
        let narrow = Dataset::empty(3);
        let refused = kernel_learning(&truth, &narrow, &good).unwrap_err();
        assert!(
            matches!(refused, Error::WrongDimension { expected: 4, found: 3, .. }),
            "{refused}"
        );
    }

    #[test]
    fn what_cannot_be_scored_leaves_the_parameters_unchanged() {
        let truth = planted();
        let mut data = draw(&truth, 5, &mut random(16));
        // Finite, but its square is not: ρ is −∞ everywhere.
        data.push(&Point(vec![0.5; 4]), 1e200).unwrap();
        let learned = kernel_learning(&truth, &data, &with_budget(20)).unwrap();
        assert_eq!(learned.prior, truth);
        assert!(learned.evaluations <= 20);
    }

    #[test]
    fn no_observations_and_one_observation() {
        let truth = planted();
        for n in [0, 1] {
            let data = draw(&truth, n, &mut random(17));
            let learned = kernel_learning(&truth, &data, &with_budget(20)).unwrap();
            assert!(learned.objective >= likelihood(&truth, &data) - 1e-12);
            assert!(learned.prior.validate().is_ok());
        }
    }
}
