//! The additive Gaussian process: prior, posterior of each component, likelihood ρ.
//!
//! Paper: section "Prior and Posterior" and eq. (lml). A prior conditioned on data *is* a posterior; there is no "fit"
//! that could be forgotten.
//!
//! Notation: 𝒢 is the list of components, Δ = K + η²I = LLᵀ, α = Δ⁻¹y, and
//!
//! * μ^G(x) = κ^G(x, X) α,
//! * (σ^G(x))² = κ^G(x, x) − ‖L⁻¹ κ^G(X, x)‖²,
//! * ρ = −½ yᵀα − ½ log|Δ| − (n/2) log 2π,
//! * ∂ρ/∂θ = ½ ⟨W, ∂Δ/∂θ⟩ with W = ααᵀ − Δ⁻¹.
//!
//! Components may overlap in any way and have any size: {i} and {i, j} may both be there. Beyond the paper there may be all pairs, a
//! constant, and what all variables do alike besides.
//!
//! Cost: conditioning |𝒢|·n²/2 exponentials + n³/6 multiply-adds; appending a row n²/2; tabulating m values of φ^G n²·m/2;
//! a gradient of ρ about three times a conditioning. Memory: n² numbers for the factor and n·D for the inputs.

use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};

use crate::all_pairs::{self, AllPairs};
use crate::cholesky::{Factor, Lower};
use crate::common_effect::{CommonColumns, CommonEffect, DEGREE};
use crate::error::{Error, Result};
use crate::graph::Component;
use crate::kernel::{Inputs, Kernel};
use crate::message_passing::Grid;
use crate::simd;
use crate::space::Point;

/// log 2π.
pub(crate) const LOG_2_PI: f64 = 1.837_877_066_409_345_3;
/// Columns of a table that are solved together: a block of n × 128 stays in the cache.
const TABLE_BLOCK: usize = 128;

/// Observations: points in model coordinates, stored one variable after the other, and outcomes (to be maximised).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dataset {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
}

impl Dataset {
    /// No observations of points with this many coordinates.
    pub fn empty(dimension: usize) -> Self {
        Self { x: vec![Vec::new(); dimension], y: Vec::new() }
    }

    /// Adds an observation.
    pub fn push(&mut self, point: &Point, y: f64) -> Result<()> {
        if point.0.len() != self.x.len() {
            return Err(Error::WrongDimension {
                what: "the point",
                expected: self.x.len(),
                found: point.0.len(),
            });
        }
        check_finite(point)?;
        check_outcome(y)?;
        for (column, &x) in self.x.iter_mut().zip(&point.0) {
            column.push(x);
        }
        self.y.push(y);
        Ok(())
    }

    /// Number of observations n.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// Number of coordinates D.
    pub fn dimension(&self) -> usize {
        self.x.len()
    }

    /// The outcomes.
    pub fn outcomes(&self) -> &[f64] {
        &self.y
    }

    /// The coordinates of variable i, one for each observation.
    pub fn coordinates(&self, i: usize) -> &[f64] {
        &self.x[i]
    }

    /// The point of observation a.
    pub fn point(&self, a: usize) -> Point {
        Point(self.x.iter().map(|column| column[a]).collect())
    }

    /// So many of the observations, one from each of as many stretches of equal length, in their order. Which one of a stretch goes
    /// by the golden section, so that no period of the run is met again and again (one ask in three, four or eight is of another kind
    /// than the rest).
    pub(crate) fn evenly(&self, count: usize) -> Result<Self> {
        let mut few = Self::empty(self.dimension());
        for k in 0..count.min(self.len()) {
            let within = (k as f64 * 0.618_033_988_749_895).fract();
            let a = ((k as f64 + within) * self.len() as f64 / count as f64) as usize;
            let a = a.min(self.len() - 1);
            few.push(&self.point(a), self.y[a])?;
        }
        Ok(few)
    }

    /// The first n observations with other outcomes.
    pub(crate) fn with_outcomes(&self, n: usize, y: Vec<f64>) -> Self {
        Self { x: self.x.iter().map(|column| column[..n].to_vec()).collect(), y }
    }
}

/// f ~ GP(0, Σ_G κ^G), observed with noise of standard deviation η; beyond the paper, with all pairs, a constant and what all
/// variables do alike besides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdditivePrior {
    /// 𝒢: the components.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Vec<usize>>"))]
    pub components: Vec<Component>,
    /// The kernel with its parameters Θ.
    pub kernel: Kernel,
    /// η, the standard deviation of the noise.
    pub noise_std: f64,
    /// Interactions of all pairs besides; none in the paper's methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_pairs: Option<AllPairs>,
    /// The variance of a constant besides, which is what is expected far from all observations; 0 in the paper's methods. The larger
    /// it is, the more it is left to the outcomes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub constant: f64,
    /// s of [`crate::common_effect`]: the standard deviation of what variables do alike at a random point, for each of the four
    /// degrees of a polynomial, and half of it for each set of choices; 0 in the paper's methods, which have no such part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub common_std: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl<'de> Deserialize<'de> for AdditivePrior {
    /// Models that were stored when the constant was a part of all pairs are read as well.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Stored {
            components: Vec<Component>,
            kernel: Kernel,
            noise_std: f64,
            all_pairs: Option<StoredPairs>,
            #[serde(default)]
            constant: f64,
            #[serde(default)]
            common_std: f64,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct StoredPairs {
            weights: Vec<f64>,
            #[serde(default)]
            constant: f64,
        }
        let Stored { components, kernel, noise_std, all_pairs, mut constant, common_std } =
            Stored::deserialize(deserializer)?;
        let all_pairs = all_pairs.map(|pairs| {
            constant += pairs.constant;
            AllPairs { weights: pairs.weights }
        });
        Ok(Self { components, kernel, noise_std, all_pairs, constant, common_std })
    }
}

impl AdditivePrior {
    /// Refuses components outside of the kernel's variables and parameters that are not positive.
    pub fn validate(&self) -> Result<()> {
        self.kernel.validate()?;
        check_noise(self.noise_std)?;
        if let Some(all_pairs) = &self.all_pairs {
            all_pairs.validate(self.kernel.dimension())?;
        }
        check_not_negative("constant", self.constant)?;
        check_not_negative("common_std", self.common_std)?;
        check_components(&self.components, self.kernel.dimension())
    }

    /// The posterior given the data.
    pub fn condition(&self, data: &Dataset) -> Result<AdditivePosterior> {
        self.validate()?;
        check_data(&self.kernel, data)?;
        let inputs = Inputs::new(&self.kernel, &data.x);
        let common = CommonColumns::new(CommonEffect::new(&self.kernel, self.common_std), &data.x);
        let factor = Factor::new(&self.gram(&inputs, &common), self.noise_std * self.noise_std)?;
        let mut posterior = AdditivePosterior {
            prior: self.clone(),
            x: data.x.clone(),
            inputs,
            common,
            y: data.y.clone(),
            factor,
            alpha: Vec::new(),
        };
        posterior.solve_for_alpha();
        Ok(posterior)
    }

    /// κ(x, x): the prior variance of the whole sum at a point.
    pub fn variance(&self, point: &Point) -> f64 {
        let effect = CommonEffect::new(&self.kernel, self.common_std);
        self.variance_with(&effect.of_point(&point.0))
    }

    /// The same at a point with these q_k of [`crate::common_effect`].
    fn variance_with(&self, q: &[f64]) -> f64 {
        self.variance_without_common() + simd::dot(q, q)
    }

    /// The same without what all variables do alike: the same at every point.
    fn variance_without_common(&self) -> f64 {
        let components: f64 = self.components.iter().map(|g| self.kernel.amplitude(g)).sum();
        components + self.all_pairs.as_ref().map_or(0.0, AllPairs::variance) + self.constant
    }

    /// The matrix K of the whole sum, without noise.
    fn gram(&self, inputs: &Inputs, common: &CommonColumns) -> Lower {
        let mut gram = self.gram_without_common(inputs);
        common.add_gram(&mut gram);
        gram
    }

    fn gram_without_common(&self, inputs: &Inputs) -> Lower {
        match &self.all_pairs {
            None => {
                let mut gram = inputs.gram(&self.kernel, &self.components);
                if self.constant > 0.0 {
                    gram.values_mut().iter_mut().for_each(|value| *value += self.constant);
                }
                gram
            }
            Some(all_pairs) => all_pairs::gram(self, all_pairs, inputs),
        }
    }

    /// The variance of each variable alone, and the components of several variables.
    pub(crate) fn split(&self) -> (Vec<f64>, Vec<Component>) {
        let mut alone = vec![0.0; self.kernel.dimension()];
        let mut joint = Vec::new();
        for component in &self.components {
            match *component.variables() {
                [i] => alone[i] += self.kernel.scales[i],
                _ => joint.push(component.clone()),
            }
        }
        (alone, joint)
    }

    /// κ(row a, x) of the whole sum for every observation; q are the q_k of the point.
    fn covariances(
        &self,
        inputs: &Inputs,
        common: &CommonColumns,
        point: &Point,
        q: &[f64],
    ) -> Vec<f64> {
        self.covariances_of(inputs, common, &inputs.factors(&self.kernel, &point.0), q)
    }

    /// The same from the factors of the point.
    fn covariances_of(
        &self,
        inputs: &Inputs,
        common: &CommonColumns,
        factors: &[Vec<f64>],
        q: &[f64],
    ) -> Vec<f64> {
        let mut sum = inputs.covariances_of(&self.kernel, &self.components, factors);
        if let Some(all_pairs) = &self.all_pairs {
            all_pairs.add_covariances(factors, &mut sum);
        }
        if self.constant > 0.0 {
            sum.iter_mut().for_each(|covariance| *covariance += self.constant);
        }
        common.add(q, &mut sum);
        sum
    }
}

fn check_finite(point: &Point) -> Result<()> {
    match point.0.iter().position(|v| !v.is_finite()) {
        Some(coordinate) => Err(Error::InvalidPoint {
            coordinate,
            value: point.0[coordinate],
            reason: "coordinates must be finite".to_string(),
        }),
        None => Ok(()),
    }
}

fn check_outcome(y: f64) -> Result<()> {
    if y.is_finite() { Ok(()) } else { Err(Error::InvalidOutcome { value: y }) }
}

fn check_noise(noise_std: f64) -> Result<()> {
    check_not_negative("noise_std", noise_std)
}

fn check_not_negative(setting: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    let reason = "it must be finite and not negative";
    Err(Error::InvalidSetting { setting, value: value.to_string(), reason })
}

fn check_components(components: &[Component], dimension: usize) -> Result<()> {
    for component in components {
        if component.variables().iter().any(|&i| i >= dimension) {
            return Err(Error::InvalidStructure {
                reason: format!("component {component} names a variable beyond {dimension}"),
            });
        }
    }
    Ok(())
}

pub(crate) fn check_data(kernel: &Kernel, data: &Dataset) -> Result<()> {
    let (expected, found) = (kernel.dimension(), data.dimension());
    if found == expected {
        Ok(())
    } else {
        Err(Error::WrongDimension { what: "the data", expected, found })
    }
}

/// A mean and a variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal {
    /// The mean.
    pub mean: f64,
    /// The variance, not negative.
    pub variance: f64,
}

/// The mean and variance of the whole sum at a point, and how they change with the point.
#[derive(Debug, Clone, PartialEq)]
pub struct JointGradient {
    /// Mean and variance.
    pub normal: Normal,
    /// ∂mean/∂x_i.
    pub mean_gradient: Vec<f64>,
    /// ∂variance/∂x_i.
    pub variance_gradient: Vec<f64>,
}

/// ∂k/∂e_i between a point and every observation, for every variable i.
struct Others {
    /// The variance of each variable alone.
    alone: Vec<f64>,
    /// w_i and P of all pairs; 0 without them.
    weights: Vec<f64>,
    p: Vec<f64>,
    /// Σ_{G∋i} σ^G ∏_{j∈G, j≠i} e_j over components of several variables; empty where there is none.
    joint: Vec<Vec<f64>>,
}

impl Others {
    /// ∂k/∂e_i for a variable with this factor.
    fn of(&self, i: usize, factor: &[f64]) -> Vec<f64> {
        let (alone, w) = (self.alone[i], self.weights[i]);
        let mut others: Vec<f64> =
            self.p.iter().zip(factor).map(|(p, e)| alone + w * (p - w * e)).collect();
        if !self.joint[i].is_empty() {
            simd::add_scaled(&mut others, 1.0, &self.joint[i]);
        }
        others
    }

    /// Sums of ∂k/∂x_i with two weights of the observations, for a variable with this factor and slope.
    fn sums(&self, i: usize, factor: &[f64], slope: &[f64], by: (&[f64], &[f64])) -> [f64; 2] {
        if self.joint[i].is_empty() {
            let weights = (self.alone[i], self.weights[i]);
            return simd::all_pairs_slopes((factor, slope), &self.p, weights, by);
        }
        let mut others = self.of(i, factor);
        simd::multiply(&mut others, slope);
        [simd::dot(&others, by.0), simd::dot(&others, by.1)]
    }
}

/// ∂ρ by the logarithm of every parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelihoodGradient {
    /// ∂ρ/∂log ℓ_i.
    pub log_lengthscales: Vec<f64>,
    /// ∂ρ/∂log σ_i.
    pub log_scales: Vec<f64>,
    /// ∂ρ/∂log η.
    pub log_noise_std: f64,
    /// ∂ρ/∂log w_i, where all pairs interact; empty otherwise.
    pub log_pair_weights: Vec<f64>,
    /// ∂ρ/∂log s, where variables do something alike.
    pub log_common_std: Option<f64>,
    /// ∂ρ by the logarithms of stretches, where there are any; empty otherwise.
    pub log_stretches: Vec<f64>,
}

/// μ^G and (σ^G)² of every component on a grid. Entry order: the last variable of a component varies fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentTables {
    /// One table of means a component.
    pub means: Vec<Vec<f64>>,
    /// One table of variances a component.
    pub variances: Vec<Vec<f64>>,
}

/// A point of which one coordinate after the other changes, with its factors e_i(x, X).
pub(crate) struct MovingPoint<'a> {
    posterior: &'a AdditivePosterior,
    factors: Vec<Vec<f64>>,
    /// P of [`crate::all_pairs`].
    p: Option<Vec<f64>>,
    /// The means of the b_k of [`crate::common_effect`].
    b: Vec<f64>,
    components_of: Vec<Vec<&'a Component>>,
}

impl MovingPoint<'_> {
    /// The factors of variable i.
    pub(crate) fn factor(&self, i: usize) -> &[f64] {
        &self.factors[i]
    }

    /// What all variables do alike, as far as variable i does it at this coordinate.
    pub(crate) fn common_mean(&self, i: usize, x: f64) -> f64 {
        match self.posterior.prior.common_std {
            0.0 => 0.0,
            _ => self.posterior.common.effect.along(i, x, &self.b),
        }
    }

    /// B_i ∘ α, where B_i = ∂k/∂e_i: whatever the coordinate of variable i, the posterior mean is a constant, the product of these
    /// with its factors, and what it does like all others.
    pub(crate) fn weights(&self, i: usize) -> Vec<f64> {
        let AdditivePosterior { prior, alpha, .. } = self.posterior;
        let mut weights = vec![0.0; alpha.len()];
        for component in &self.components_of[i] {
            let mut product = vec![prior.kernel.amplitude(component); alpha.len()];
            for &j in component.variables().iter().filter(|&&j| j != i) {
                simd::multiply(&mut product, &self.factors[j]);
            }
            simd::add_scaled(&mut weights, 1.0, &product);
        }
        if let (Some(all_pairs), Some(p)) = (&prior.all_pairs, &self.p) {
            all_pairs.add_others(i, p, &self.factors[i], &mut weights);
        }
        simd::multiply(&mut weights, alpha);
        weights
    }

    /// Moves variable i to where it has these factors.
    pub(crate) fn set(&mut self, i: usize, factor: &[f64]) {
        if let (Some(all_pairs), Some(p)) = (&self.posterior.prior.all_pairs, &mut self.p) {
            simd::add_scaled(p, all_pairs.weights[i], factor);
            simd::add_scaled(p, -all_pairs.weights[i], &self.factors[i]);
        }
        self.factors[i].copy_from_slice(factor);
    }
}

/// The prior of [`AdditivePrior`] conditioned on data.
#[derive(Debug, Clone)]
pub struct AdditivePosterior {
    prior: AdditivePrior,
    x: Vec<Vec<f64>>,
    inputs: Inputs,
    common: CommonColumns,
    y: Vec<f64>,
    factor: Factor,
    alpha: Vec<f64>,
}

impl AdditivePosterior {
    /// The prior that was conditioned.
    pub fn prior(&self) -> &AdditivePrior {
        &self.prior
    }

    /// Number of observations n.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    fn solve_for_alpha(&mut self) {
        self.alpha.clone_from(&self.y);
        self.factor.forward_solve(&mut self.alpha);
        self.factor.backward_solve(&mut self.alpha);
    }

    /// α = Δ⁻¹y: the posterior mean of anything is its covariances with the observations times these.
    pub fn weights(&self) -> &[f64] {
        &self.alpha
    }

    /// e_i between a coordinate of variable i and those of all observations; none if there is no such variable.
    pub fn factors(&self, i: usize, coordinate: f64) -> Option<Vec<f64>> {
        let kernel = &self.prior.kernel;
        let column = self.x.get(i).map(|_| self.inputs.column(i))?;
        let mut factors = vec![0.0; self.len()];
        kernel.factor(i, column, kernel.scaled(i, coordinate), &mut factors);
        Some(factors)
    }

    /// Replaces columns of covariances with the observations, n numbers each, by L⁻¹ times them: what their products take away
    /// from prior covariances is what the observations tell. A rest of less than n numbers is left alone.
    pub fn whiten(&self, columns: &mut [f64]) {
        let n = self.len().max(1);
        columns.par_chunks_mut(n * TABLE_BLOCK).for_each(|block| {
            let count = block.len() / n;
            self.factor.forward_solve_columns(&mut block[..count * n], count);
        });
    }

    /// The diagonal of Δ⁻¹: 1 over the variance with which each outcome is predicted from all others.
    pub fn precisions(&self) -> Vec<f64> {
        let inverse = self.factor.inverse();
        (0..inverse.n()).map(|b| inverse.column(b)[0]).collect()
    }

    /// Conditions on one more observation, in O(n²). If it is refused the posterior stays as it was.
    pub fn append(&mut self, point: &Point, y: f64) -> Result<()> {
        check_outcome(y)?;
        self.append_row(point)?;
        self.y.push(y);
        self.solve_for_alpha();
        Ok(())
    }

    fn append_row(&mut self, point: &Point) -> Result<()> {
        self.check(point)?;
        let kernel = &self.prior.kernel;
        let q = self.common.effect.of_point(&point.0);
        let row = self.prior.covariances(&self.inputs, &self.common, point, &q);
        let noise = self.prior.noise_std * self.prior.noise_std;
        if self.factor.append(&row, self.prior.variance_with(&q) + noise).is_err() {
            // The new row is a combination of the others to working precision: factor afresh, with jitter.
            let mut inputs = self.inputs.clone();
            inputs.push(kernel, &point.0);
            let mut common = self.common.clone();
            common.push(&q);
            self.factor = Factor::new(&self.prior.gram(&inputs, &common), noise)?;
        }
        self.common.push(&q);
        self.inputs.push(kernel, &point.0);
        for (column, &x) in self.x.iter_mut().zip(&point.0) {
            column.push(x);
        }
        Ok(())
    }

    /// The same inputs with other outcomes, in O(n²).
    pub fn set_outcomes(&mut self, y: &[f64]) -> Result<()> {
        if y.len() != self.y.len() {
            return Err(Error::WrongDimension {
                what: "the list of outcomes",
                expected: self.y.len(),
                found: y.len(),
            });
        }
        y.iter().try_for_each(|&y| check_outcome(y))?;
        self.y.copy_from_slice(y);
        self.solve_for_alpha();
        Ok(())
    }

    /// Conditions on points whose outcomes are not known yet, taking each at its posterior mean: the mean stays as it
    /// is everywhere, and the variance shrinks as it will when the outcome arrives.
    pub fn with_pending(&self, pending: &[Point]) -> Result<Self> {
        let mut posterior = self.clone();
        for point in pending {
            let mean = posterior.joint(point)?.mean;
            posterior.append(point, mean)?;
        }
        Ok(posterior)
    }

    /// Conditions on points that could not be evaluated, taking each at its posterior mean or at the lower quartile of the
    /// outcomes, whichever is lower. At the mean alone, a region where everything fails would look as good as before, for ever.
    pub fn with_failed(&self, failed: &[Point]) -> Result<Self> {
        let mut sorted = self.y.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let quartile = sorted.get(sorted.len() / 4).copied().unwrap_or(0.0);
        let mut posterior = self.clone();
        for point in failed {
            let mean = posterior.joint(point)?.mean;
            posterior.append(point, mean.min(quartile))?;
        }
        Ok(posterior)
    }

    /// The worst outcome.
    pub(crate) fn lowest(&self) -> f64 {
        self.y.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The observed points with the highest posterior mean, best first: less easily fooled by noise than the highest
    /// outcomes.
    pub fn best_observed(&self, count: usize) -> Vec<Point> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&a, &b| self.observed_mean(b).total_cmp(&self.observed_mean(a)));
        let point = |a: usize| Point(self.x.iter().map(|column| column[a]).collect());
        order.into_iter().take(count).map(point).collect()
    }

    /// The posterior mean at an observed point: Kα = y − η²α.
    fn observed_mean(&self, a: usize) -> f64 {
        self.y[a] - self.prior.noise_std * self.prior.noise_std * self.alpha[a]
    }

    /// ρ, the log marginal likelihood of the outcomes.
    pub fn log_likelihood(&self) -> f64 {
        log_likelihood(&self.factor, &self.y)
    }

    /// The gradient of ρ in the logarithms of all parameters.
    pub fn log_likelihood_gradient(&self) -> LikelihoodGradient {
        let kernel = &self.prior.kernel;
        let components = &self.prior.components;
        let w = self.residual_weights();
        let dimension = kernel.dimension();
        let mut gradient = LikelihoodGradient {
            log_lengthscales: vec![0.0; dimension],
            log_scales: vec![0.0; dimension],
            log_noise_std: 0.0,
            log_pair_weights: Vec::new(),
            log_common_std: None,
            log_stretches: vec![0.0; kernel.stretches.len()],
        };
        let mut joint = None;
        if let Some(all_pairs) = &self.prior.all_pairs {
            let part = all_pairs::gradient(&self.prior, all_pairs, &self.inputs, &w);
            gradient.log_lengthscales = part.log_lengthscales;
            gradient.log_scales = part.log_scales;
            gradient.log_pair_weights = part.log_weights;
            gradient.log_stretches = part.log_stretches;
            joint = Some(part.joint);
        }
        let components = joint.as_ref().unwrap_or(components);
        let sums = self.inputs.weighted_sums(kernel, components, &w);
        for (component, sums) in components.iter().zip(&sums) {
            let amplitude = kernel.amplitude(component);
            for (position, &i) in component.variables().iter().enumerate() {
                gradient.log_lengthscales[i] += 0.5 * amplitude * sums[1 + position];
                if let Some(slope) = gradient.log_stretches.get_mut(i) {
                    let variables = component.variables().len();
                    *slope += 0.5 * amplitude * sums[1 + variables + position];
                }
                // ∂σ^G/∂log σ_i = σ_i²/σ^G
                let scale = kernel.scales[i];
                gradient.log_scales[i] += 0.5 * scale * scale / amplitude * sums[0];
            }
        }
        let trace: f64 = (0..w.n()).map(|b| w.column(b)[0]).sum();
        gradient.log_noise_std = self.prior.noise_std * self.prior.noise_std * trace;
        if self.prior.common_std > 0.0 {
            // ∂Δ/∂log s = 2 Σ_k q_k q_kᵀ, and qᵀΔ⁻¹q = ‖L⁻¹q‖².
            let of = |q: &Vec<f64>| {
                let mut told = q.clone();
                self.factor.forward_solve(&mut told);
                simd::dot(q, &self.alpha).powi(2) - simd::dot(&told, &told)
            };
            gradient.log_common_std = Some(self.common.columns().iter().map(of).sum());
        }
        gradient
    }

    /// W = ααᵀ − Δ⁻¹.
    fn residual_weights(&self) -> Lower {
        let mut w = self.factor.inverse();
        let n = w.n();
        for (b, column) in w.values_mut().chunks_exact_mut(n.max(1)).enumerate() {
            let alpha_b = self.alpha[b];
            for (value, &alpha_a) in column[b..].iter_mut().zip(&self.alpha[b..]) {
                *value = alpha_a.mul_add(alpha_b, -*value);
            }
        }
        w
    }

    /// Mean and variance of one component at a point: eq. (gp-posterior).
    pub fn component(&self, component: usize, point: &Point) -> Result<Normal> {
        self.check(point)?;
        let component = self.prior.components.get(component).ok_or_else(|| {
            Error::InvalidStructure { reason: format!("there is no component {component}") }
        })?;
        let covariances =
            self.inputs.covariances(&self.prior.kernel, std::slice::from_ref(component), &point.0);
        Ok(self.normal(covariances, self.prior.kernel.amplitude(component)))
    }

    /// Mean and variance of the whole sum at a point, cross-covariances of the components included.
    pub fn joint(&self, point: &Point) -> Result<Normal> {
        self.check(point)?;
        let q = self.common.effect.of_point(&point.0);
        let covariances = self.prior.covariances(&self.inputs, &self.common, point, &q);
        Ok(self.normal(covariances, self.prior.variance_with(&q)))
    }

    fn normal(&self, mut covariances: Vec<f64>, prior_variance: f64) -> Normal {
        let mean = simd::dot(&covariances, &self.alpha);
        self.factor.forward_solve(&mut covariances);
        let variance = (prior_variance - simd::dot(&covariances, &covariances)).max(0.0);
        Normal { mean, variance }
    }

    /// As [`AdditivePosterior::joint`], with gradients in the model coordinates. Categorical variables have gradient 0.
    pub fn joint_gradient(&self, point: &Point) -> Result<JointGradient> {
        self.check(point)?;
        let kernel = &self.prior.kernel;
        let (factors, slopes) = self.inputs.factors_and_slopes(kernel, &point.0);
        let q = self.common.effect.of_point(&point.0);
        let covariances = self.prior.covariances_of(&self.inputs, &self.common, &factors, &q);
        let mean = simd::dot(&covariances, &self.alpha);
        // Δ⁻¹k: the variance is κ − kᵀΔ⁻¹k, and its derivative −2 (Δ⁻¹k)ᵀ ∂k.
        let mut solved = covariances;
        let explained = self.factor.solve(&mut solved);
        let variance = (self.prior.variance_with(&q) - explained).max(0.0);
        // The mean of b_k, which is how much the mean changes with q_k, and half of how much the variance does.
        // Only polynomials have slopes. They come first; where there are none their slopes are 0.
        let first = |all: &[f64]| -> [f64; DEGREE] {
            std::array::from_fn(|k| all.get(k).copied().unwrap_or(0.0))
        };
        let b = first(&self.common.dot(&self.alpha));
        let (q, told) = (first(&q), first(&self.common.dot(&solved)));
        let unknown: [f64; DEGREE] = std::array::from_fn(|k| q[k] - told[k]);

        let mut mean_gradient = vec![0.0; kernel.dimension()];
        let mut variance_gradient = vec![0.0; kernel.dimension()];
        let others = self.others(&factors);
        for (i, (factor, slope)) in factors.iter().zip(&slopes).enumerate() {
            let [by_alpha, by_solved] = others.sums(i, factor, slope, (&self.alpha, &solved));
            mean_gradient[i] = by_alpha;
            variance_gradient[i] = -2.0 * by_solved;
            if self.prior.common_std > 0.0 {
                let slopes = self.common.effect.slopes(i, point.0[i]);
                mean_gradient[i] += simd::dot(&slopes, &b);
                variance_gradient[i] += 2.0 * simd::dot(&slopes, &unknown);
            }
        }
        Ok(JointGradient { normal: Normal { mean, variance }, mean_gradient, variance_gradient })
    }

    /// What variable i has of the q_k of [`crate::common_effect`] at a coordinate; empty without such a part.
    pub fn common_features(&self, i: usize, x: f64) -> Vec<f64> {
        self.common.effect.features(i, x)
    }

    /// Adds the covariances of Σ_k weight_k b_k with all observations, b_k the coefficients of what variables do alike.
    pub fn add_common_covariances(&self, weights: &[f64], sum: &mut [f64]) {
        self.common.add(weights, sum);
    }

    /// The means of these coefficients.
    pub fn common_means(&self) -> Vec<f64> {
        self.common.dot(&self.alpha)
    }

    /// What a change of each factor does to the covariances with the observations, for a point with these factors.
    fn others(&self, factors: &[Vec<f64>]) -> Others {
        let kernel = &self.prior.kernel;
        let n = self.len();
        let (alone, components) = self.prior.split();
        let (mut before, mut product) = (vec![0.0; n], vec![0.0; n]);
        let mut joint: Vec<Vec<f64>> = vec![Vec::new(); kernel.dimension()];
        for component in &components {
            // after[k]: the product of the factors from position k on; before: of those up to it.
            let variables = component.variables();
            let mut after = vec![vec![1.0; n]];
            for &j in variables[1..].iter().rev() {
                let mut product = after[after.len() - 1].clone();
                simd::multiply(&mut product, &factors[j]);
                after.push(product);
            }
            before.fill(kernel.amplitude(component));
            for (&i, after) in variables.iter().zip(after.iter().rev()) {
                product.copy_from_slice(&before);
                simd::multiply(&mut product, after);
                joint[i].resize(n, 0.0);
                simd::add_scaled(&mut joint[i], 1.0, &product);
                simd::multiply(&mut before, &factors[i]);
            }
        }
        match &self.prior.all_pairs {
            Some(pairs) => {
                let p = pairs.weighted_factors(factors);
                Others { alone, weights: pairs.weights.clone(), p, joint }
            }
            None => Others { alone, weights: vec![0.0; joint.len()], p: vec![0.0; n], joint },
        }
    }

    /// A draw of ∇f at a point from its posterior: the mean plus Lz, where LLᵀ is the covariance and z should be standard
    /// normal. Coordinates without a gradient (categorical ones) have mean 0 and next to no variance.
    ///
    /// Cost: D·n²/2 + D²·n/2 + D³/6.
    pub(crate) fn gradient_sample(&self, point: &Point, z: &[f64]) -> Result<Vec<f64>> {
        self.check(point)?;
        let kernel = &self.prior.kernel;
        let (n, dimension) = (self.len(), kernel.dimension());
        let mut mean = vec![0.0; dimension];
        let mut block = vec![0.0; n * dimension];
        let (factors, mut slopes) = self.inputs.factors_and_slopes(kernel, &point.0);
        let others = self.others(&factors);
        for (i, (factor, slope)) in factors.iter().zip(&mut slopes).enumerate() {
            simd::multiply(slope, &others.of(i, factor));
            self.common.add(&self.common.effect.slopes(i, point.0[i]), slope);
            mean[i] = simd::dot(slope, &self.alpha);
            block[i * n..(i + 1) * n].copy_from_slice(slope);
        }
        self.factor.forward_solve_columns(&mut block, dimension);
        let column = |i: usize| &block[i * n..(i + 1) * n];
        // The prior covariance of ∇f is diagonal but for what all variables do alike: a factor has slope 0 at distance 0.
        let mut covariance = Lower::zeros(dimension);
        for component in &self.prior.components {
            let amplitude = kernel.amplitude(component);
            for &i in component.variables() {
                covariance.column_mut(i)[0] += amplitude * kernel.curvature(i, point.0[i]);
            }
        }
        if let Some(all_pairs) = &self.prior.all_pairs {
            for (i, &x) in point.0.iter().enumerate() {
                let curvature = kernel.curvature(i, x);
                covariance.column_mut(i)[0] += all_pairs.variance_with(i) * curvature;
            }
        }
        let effect = &self.common.effect;
        let alike: Vec<_> = point.0.iter().enumerate().map(|(i, &x)| effect.slopes(i, x)).collect();
        for j in 0..dimension {
            for (i, value) in (j..dimension).zip(covariance.column_mut(j)) {
                *value += simd::dot(&alike[i], &alike[j]) - simd::dot(column(i), column(j));
            }
        }
        let deviation = Factor::new(&covariance, 0.0)?.lower_times(z);
        Ok(mean.iter().zip(deviation).map(|(mean, deviation)| mean + deviation).collect())
    }

    fn check(&self, point: &Point) -> Result<()> {
        let expected = self.prior.kernel.dimension();
        if point.0.len() != expected {
            let found = point.0.len();
            return Err(Error::WrongDimension { what: "the point", expected, found });
        }
        check_finite(point)
    }

    /// A point whose coordinates are to be changed one by one.
    pub(crate) fn moving(&self, point: &Point) -> Result<MovingPoint<'_>> {
        self.check(point)?;
        let factors = self.inputs.factors(&self.prior.kernel, &point.0);
        let p = self.prior.all_pairs.as_ref().map(|pairs| pairs.weighted_factors(&factors));
        let mut components_of = vec![Vec::new(); factors.len()];
        for component in &self.prior.components {
            for &i in component.variables() {
                components_of[i].push(component);
            }
        }
        let b = self.common.dot(&self.alpha);
        Ok(MovingPoint { posterior: self, factors, p, b, components_of })
    }

    /// Mean and variance of the whole sum at many points, solved for in one block.
    pub fn joint_many(&self, points: &[Point]) -> Result<Vec<Normal>> {
        let n = self.len();
        let variance = self.prior.variance_without_common();
        let mut block = Vec::with_capacity(n * points.len());
        let mut variances = Vec::with_capacity(points.len());
        for point in points {
            self.check(point)?;
            let q = self.common.effect.of_point(&point.0);
            block.extend(self.prior.covariances(&self.inputs, &self.common, point, &q));
            variances.push(variance + simd::dot(&q, &q));
        }
        let columns = |block: &[f64], f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            (0..points.len()).map(|c| f(&block[c * n..(c + 1) * n])).collect()
        };
        let means = columns(&block, &|k| simd::dot(k, &self.alpha));
        self.factor.forward_solve_columns(&mut block, points.len());
        let explained = columns(&block, &|z| simd::dot(z, z));
        let normal = |((mean, explained), variance): ((f64, f64), f64)| Normal {
            mean,
            variance: (variance - explained).max(0.0),
        };
        Ok(means.into_iter().zip(explained).zip(variances).map(normal).collect())
    }

    /// μ^G of all components on a grid, without variances: no solve is needed, so that fine grids are cheap.
    pub fn tabulate_means(&self, grid: &Grid) -> Result<Vec<Vec<f64>>> {
        let kernel = &self.prior.kernel;
        let n = self.len();
        grid.check(kernel.dimension())?;
        let factors = self.axis_factors(grid);
        let factor = |i: usize, r: usize| &factors[i][r * n..(r + 1) * n];
        let table = |component: &Component| {
            let mut weights = vec![self.alpha.clone()];
            // All products of the factors of the variables so far with α, last variable fastest.
            let amplitude = kernel.amplitude(component);
            let (&last, others) = component.variables().split_last()?;
            for &i in others {
                weights = weights
                    .iter()
                    .flat_map(|weight| {
                        (0..grid.axis(i).len()).map(|r| {
                            let mut product = weight.clone();
                            simd::multiply(&mut product, factor(i, r));
                            product
                        })
                    })
                    .collect();
            }
            let values = weights.iter().flat_map(|weight| {
                (0..grid.axis(last).len())
                    .map(move |r| amplitude * simd::dot(weight, factor(last, r)))
            });
            Some(values.collect())
        };
        Ok(self.prior.components.par_iter().map(|c| table(c).unwrap_or_default()).collect())
    }

    /// e_i(value, X) for every variable and every value on its axis.
    pub(crate) fn axis_factors(&self, grid: &Grid) -> Vec<Vec<f64>> {
        let (kernel, n) = (&self.prior.kernel, self.len());
        (0..kernel.dimension())
            .into_par_iter()
            .map(|i| {
                let axis = grid.axis(i);
                let mut factors = vec![0.0; axis.len() * n];
                for (&value, factor) in axis.iter().zip(factors.chunks_exact_mut(n.max(1))) {
                    kernel.factor(i, self.inputs.column(i), kernel.scaled(i, value), factor);
                }
                factors
            })
            .collect()
    }

    /// μ^G and (σ^G)² of all components on a grid. All values of a block are solved for at once.
    pub fn tabulate(&self, grid: &Grid) -> Result<ComponentTables> {
        let kernel = &self.prior.kernel;
        let n = self.len();
        grid.check(kernel.dimension())?;
        let factors = self.axis_factors(grid);
        let components = &self.prior.components;
        let mut starts = vec![0];
        for component in components {
            let size: usize = component.variables().iter().map(|&i| grid.axis(i).len()).product();
            starts.push(starts[starts.len() - 1] + size);
        }
        let total = starts[components.len()];
        let mut values = vec![(0.0, 0.0); total];
        // Blocks are cut the same way whatever the number of threads.
        values.par_chunks_mut(TABLE_BLOCK).enumerate().for_each_init(
            || (vec![0.0; n * TABLE_BLOCK], vec![0.0; n]),
            |(columns, leading), (block, values)| {
                let columns = &mut columns[..n * values.len()];
                let first = block * TABLE_BLOCK;
                let mut g = starts.partition_point(|&start| start <= first) - 1;
                let mut known = None;
                for (offset, value) in values.iter_mut().enumerate() {
                    while first + offset >= starts[g + 1] {
                        g += 1;
                    }
                    let amplitude = kernel.amplitude(&components[g]);
                    let column = &mut columns[offset * n..(offset + 1) * n];
                    let factor = |i: usize, r: usize| &factors[i][r * n..(r + 1) * n];
                    let mut entry = first + offset - starts[g];
                    match *components[g].variables() {
                        [i] => {
                            column.fill(amplitude);
                            simd::multiply(column, factor(i, entry));
                        }
                        [i, j] => {
                            let last = grid.axis(j).len();
                            let (r, s) = (entry / last, entry % last);
                            simd::scaled_product(amplitude, factor(i, r), factor(j, s), column);
                        }
                        [ref others @ .., j] => {
                            let last = grid.axis(j).len();
                            let s = entry % last;
                            entry /= last;
                            // The product over all variables but the last serves for all values of the last.
                            if known != Some((g, entry)) {
                                known = Some((g, entry));
                                leading.fill(1.0);
                                for &i in others.iter().rev() {
                                    let size = grid.axis(i).len();
                                    simd::multiply(leading, factor(i, entry % size));
                                    entry /= size;
                                }
                            }
                            simd::scaled_product(amplitude, leading, factor(j, s), column);
                        }
                        [] => {}
                    }
                    *value = (simd::dot(column, &self.alpha), amplitude);
                }
                self.factor.forward_solve_columns(columns, values.len());
                for (value, column) in values.iter_mut().zip(columns.chunks_exact(n.max(1))) {
                    value.1 = (value.1 - simd::dot(column, column)).max(0.0);
                }
            },
        );
        let table = |pick: fn(&(f64, f64)) -> f64| -> Vec<Vec<f64>> {
            starts.windows(2).map(|w| values[w[0]..w[1]].iter().map(pick).collect()).collect()
        };
        Ok(ComponentTables { means: table(|v| v.0), variances: table(|v| v.1) })
    }
}

fn log_likelihood(factor: &Factor, y: &[f64]) -> f64 {
    let mut z = y.to_vec();
    factor.forward_solve(&mut z);
    -0.5 * simd::dot(&z, &z) - 0.5 * factor.log_determinant() - 0.5 * y.len() as f64 * LOG_2_PI
}

/// ρ as a function of the components, for structure learning: candidates that differ by a few components from one seen
/// before cost one update of K and one Cholesky.
///
/// Two matrices K are kept, of an earlier candidate and of the latest one: a new candidate is made from the one that it is
/// nearer to, usually the structure it was derived from.
#[derive(Debug)]
pub struct StructureScore<'a> {
    kernel: &'a Kernel,
    noise_variance: f64,
    inputs: Inputs,
    y: &'a [f64],
    /// Sorted components and their K: earlier and latest.
    known: [(Vec<Component>, Lower); 2],
    factor: Factor,
}

impl<'a> StructureScore<'a> {
    /// Prepares ρ for the given data, kernel and noise.
    pub fn new(kernel: &'a Kernel, noise_std: f64, data: &'a Dataset) -> Result<Self> {
        kernel.validate()?;
        check_noise(noise_std)?;
        check_data(kernel, data)?;
        let inputs = Inputs::new(kernel, &data.x);
        let n = inputs.n();
        Ok(Self {
            kernel,
            noise_variance: noise_std * noise_std,
            inputs,
            y: &data.y,
            known: std::array::from_fn(|_| (Vec::new(), Lower::zeros(n))),
            factor: Factor::new(&Lower::zeros(n), 1.0)?,
        })
    }

    /// ρ of these components.
    pub fn log_likelihood(&mut self, mut components: Vec<Component>) -> Result<f64> {
        check_components(&components, self.kernel.dimension())?;
        components.sort_unstable();
        let changes = self.known.each_ref().map(|known| differences(&known.0, &components));
        let [mut changes, from_latest] = changes;
        if from_latest.len() < changes.len() {
            // The latest was accepted: it takes the place of the earlier one, which is overwritten.
            self.known.swap(0, 1);
            changes = from_latest;
        }
        let [base, candidate] = &mut self.known;
        let changes: Vec<_> = changes
            .iter()
            .map(|(component, sign)| (component, sign * self.kernel.amplitude(component)))
            .collect();
        let factor = &mut self.factor;
        factor.make_room(self.inputs.n());
        let (base, gram) = (Some(&base.1), &mut candidate.1);
        self.inputs.fill_gram(self.kernel, base, &changes, gram, |first, columns| {
            factor.write_columns(first, columns);
        });
        candidate.0 = components;
        factor.refactor_written(gram, self.noise_variance)?;
        Ok(log_likelihood(factor, self.y))
    }
}

/// What must be added (+1) to and removed (−1) from the sorted list `from` to make it `to`.
fn differences(from: &[Component], to: &[Component]) -> Vec<(Component, f64)> {
    let (mut a, mut b) = (0, 0);
    let mut changes = Vec::new();
    while a < from.len() || b < to.len() {
        match (from.get(a), to.get(b)) {
            (Some(x), Some(y)) if x == y => {
                a += 1;
                b += 1;
            }
            (Some(x), Some(y)) if x < y => {
                changes.push((x.clone(), -1.0));
                a += 1;
            }
            (Some(x), None) => {
                changes.push((x.clone(), -1.0));
                a += 1;
            }
            (_, Some(y)) => {
                changes.push((y.clone(), 1.0));
                b += 1;
            }
            (None, None) => break,
        }
    }
    changes
}
