//! Interactions of all pairs of variables at once, as a part of an additive GP.
//!
//! Not in the paper, whose pairs are few and have to be found first. Here every pair may interact, with a strength that is the
//! product of one weight a variable: nothing has to be found before it can be used, and a variable that interacts with nothing
//! gets a weight near 0. What is found is then read off the posterior.
//!
//! Notation: e_i is the factor of variable i ([`crate::kernel`]) and w_i its weight. The part is
//!
//! k(x, x′) = Σ_{i<j} w_i w_j e_i e_j = ½ (P² − Q),   P = Σ w_i e_i,   Q = Σ w_i² e_i²,
//!
//! so that all D(D − 1)/2 pairs cost no more than the D variables do.
//!
//! Cost: nothing beyond the factors, D·n²/2 exponentials for a matrix and as many again for the slopes of a gradient.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePrior;
use crate::cholesky::Lower;
use crate::error::{Error, Result};
use crate::graph::Component;
use crate::kernel::{Inputs, Kernel};
use crate::simd;

/// Columns that a thread works on at a time.
const COLUMN_BLOCK: usize = 8;

/// The parameters of the part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AllPairs {
    /// w_i.
    pub weights: Vec<f64>,
}

impl AllPairs {
    pub(crate) fn validate(&self, dimension: usize) -> Result<()> {
        if self.weights.len() != dimension {
            let (expected, found) = (dimension, self.weights.len());
            return Err(Error::WrongDimension { what: "the weights of pairs", expected, found });
        }
        match self.weights.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
            None => Ok(()),
            Some(value) => Err(Error::InvalidSetting {
                setting: "all_pairs",
                value: value.to_string(),
                reason: "weights must be finite and not negative",
            }),
        }
    }

    /// k(x, x), the same at every point.
    pub(crate) fn variance(&self) -> f64 {
        let sum: f64 = self.weights.iter().sum();
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        0.5 * (sum * sum - squares).max(0.0)
    }

    /// w_i Σ_{j≠i} w_j: the variance of all pairs that variable i is in.
    pub(crate) fn variance_with(&self, i: usize) -> f64 {
        let sum: f64 = self.weights.iter().sum();
        self.weights[i] * (sum - self.weights[i])
    }

    /// P at every observation.
    pub(crate) fn weighted_factors(&self, factors: &[Vec<f64>]) -> Vec<f64> {
        let mut p = vec![0.0; factors.first().map_or(0, Vec::len)];
        for (w, factor) in self.weights.iter().zip(factors) {
            simd::add_scaled(&mut p, *w, factor);
        }
        p
    }

    /// Adds k between a point, given by its factors, and every observation.
    pub(crate) fn add_covariances(&self, factors: &[Vec<f64>], sum: &mut [f64]) {
        let p = self.weighted_factors(factors);
        let mut q = vec![0.0; p.len()];
        for (w, factor) in self.weights.iter().zip(factors) {
            simd::add_scaled_squares(&mut q, w * w, factor);
        }
        for (sum, (p, q)) in sum.iter_mut().zip(p.iter().zip(&q)) {
            *sum += 0.5 * (p * p - q);
        }
    }

    /// Adds ∂k/∂e_i = w_i (P − w_i e_i) at every observation.
    pub(crate) fn add_others(&self, i: usize, p: &[f64], factor: &[f64], sum: &mut [f64]) {
        let w = self.weights[i];
        for (sum, (p, e)) in sum.iter_mut().zip(p.iter().zip(factor)) {
            *sum += w * (p - w * e);
        }
    }
}

/// The factors of all variables between observation b and those from `first` on, one after the other.
fn fill_factors(kernel: &Kernel, inputs: &Inputs, first: usize, b: usize, factors: &mut Vec<f64>) {
    let rows = inputs.n() - first;
    factors.resize(rows * kernel.dimension(), 0.0);
    for (i, factor) in factors.chunks_exact_mut(rows.max(1)).enumerate() {
        let column = inputs.column(i);
        kernel.factor(i, &column[first..], column[b], factor);
    }
}

/// The matrix K of a prior with all pairs, without noise. Variables alone and pairs share their factors.
pub(crate) fn gram(prior: &AdditivePrior, all_pairs: &AllPairs, inputs: &Inputs) -> Lower {
    let (kernel, n) = (&prior.kernel, inputs.n());
    let (singles, joint) = prior.split();
    let fill = |(block, values): (usize, &mut [f64])| {
        let (mut factors, mut p, mut q) = (Vec::new(), Vec::new(), Vec::new());
        for (offset, column) in values.chunks_exact_mut(n).enumerate() {
            let b = block * COLUMN_BLOCK + offset;
            fill_factors(kernel, inputs, b, b, &mut factors);
            for sums in [&mut p, &mut q] {
                sums.clear();
                sums.resize(n - b, 0.0);
            }
            let column = &mut column[b..];
            column.fill(prior.constant);
            for (i, factor) in factors.chunks_exact(n - b).enumerate() {
                let weights = (singles[i], all_pairs.weights[i]);
                simd::add_all_pairs(factor, weights, column, &mut p, &mut q);
            }
            for (value, (p, q)) in column.iter_mut().zip(p.iter().zip(&q)) {
                *value += 0.5 * (p * p - q);
            }
        }
    };
    let mut gram = Lower::zeros(n);
    // Blocks are independent, so the number of threads cannot change a bit.
    gram.values_mut().par_chunks_mut((COLUMN_BLOCK * n).max(1)).enumerate().for_each(fill);
    if joint.is_empty() {
        return gram;
    }
    let changes: Vec<_> = joint.iter().map(|c| (c, kernel.amplitude(c))).collect();
    let mut sum = Lower::zeros(n);
    inputs.fill_gram(kernel, Some(&gram), &changes, &mut sum, |_, _| {});
    sum
}

/// ∂ρ by the logarithms of parameters, without the components of several variables.
pub(crate) struct AllPairsGradient {
    pub(crate) log_lengthscales: Vec<f64>,
    pub(crate) log_scales: Vec<f64>,
    pub(crate) log_weights: Vec<f64>,
    /// Empty without stretches.
    pub(crate) log_stretches: Vec<f64>,
    /// Those that are left out.
    pub(crate) joint: Vec<Component>,
}

/// The gradient of ρ for variables alone and all pairs, with W = ααᵀ − Δ⁻¹.
pub(crate) fn gradient(
    prior: &AdditivePrior,
    all_pairs: &AllPairs,
    inputs: &Inputs,
    w: &Lower,
) -> AllPairsGradient {
    let (kernel, n) = (&prior.kernel, inputs.n());
    let dimension = kernel.dimension();
    let (singles, joint) = prior.split();
    // For each variable: ⟨W, e⟩, ⟨W, ∂k/∂e · ∂e/∂log ℓ⟩, ⟨W, e (P − w e)⟩ and, with stretches, ⟨W, ∂k/∂e · ∂e/∂log r⟩, below the
    // diagonal.
    let of_block = |block: usize| {
        let mut sums = vec![[0.0; 4]; dimension];
        let (mut factors, mut slopes, mut p) = (Vec::new(), Vec::new(), Vec::new());
        for b in block * COLUMN_BLOCK..((block + 1) * COLUMN_BLOCK).min(n) {
            let rows = n - b - 1;
            if rows == 0 {
                continue;
            }
            let weights = &w.column(b)[1..];
            factors.resize(rows * dimension, 0.0);
            slopes.resize(rows * dimension, 0.0);
            p.clear();
            p.resize(rows, 0.0);
            let each = factors.chunks_exact_mut(rows).zip(slopes.chunks_exact_mut(rows));
            for (i, (factor, slope)) in each.enumerate() {
                let column = inputs.column(i);
                kernel.factor_and_slope(i, &column[b + 1..], column[b], factor, slope);
                simd::add_scaled(&mut p, all_pairs.weights[i], factor);
            }
            let each = factors.chunks_exact(rows).zip(slopes.chunks_exact(rows));
            for (i, (sums, each)) in sums.iter_mut().zip(each).enumerate() {
                let weight = all_pairs.weights[i];
                let [of_factor, of_slope, slope_others, factor_others] =
                    simd::all_pairs_sums(weights, each, &p, weight);
                sums[0] += of_factor;
                sums[1] += singles[i] * of_slope + weight * slope_others;
                sums[2] += factor_others;
            }
            if kernel.stretches.is_empty() {
                continue;
            }
            let each = factors.chunks_exact(rows).zip(slopes.chunks_exact_mut(rows));
            for (i, (sums, (factor, slope))) in sums.iter_mut().zip(each).enumerate() {
                inputs.slopes_by_stretch(i, b + 1, b, slope);
                let weight = all_pairs.weights[i];
                let [_, of_slope, slope_others, _] =
                    simd::all_pairs_sums(weights, (factor, slope), &p, weight);
                sums[3] += singles[i] * of_slope + weight * slope_others;
            }
        }
        sums
    };
    let parts: Vec<Vec<[f64; 4]>> =
        (0..n.div_ceil(COLUMN_BLOCK)).into_par_iter().map(of_block).collect();
    let mut sums = vec![[0.0; 4]; dimension];
    // In the order of the blocks, whoever computed them.
    for part in parts {
        for (sums, part) in sums.iter_mut().zip(part) {
            for (sum, part) in sums.iter_mut().zip(part) {
                // ρ has half of the whole symmetric matrix: the lower triangle once.
                *sum += part;
            }
        }
    }
    // On the diagonal every factor is 1 and its slope 0.
    let half_trace = 0.5 * (0..n).map(|b| w.column(b)[0]).sum::<f64>();
    let each = |f: &dyn Fn(usize, &[f64; 4]) -> f64| -> Vec<f64> {
        sums.iter().enumerate().map(|(i, sums)| f(i, sums)).collect()
    };
    AllPairsGradient {
        log_lengthscales: each(&|_, sums| sums[1]),
        log_stretches: match kernel.stretches.is_empty() {
            true => Vec::new(),
            false => each(&|_, sums| sums[3]),
        },
        log_scales: each(&|i, sums| singles[i] * (sums[0] + half_trace)),
        log_weights: each(&|i, sums| {
            all_pairs.weights[i] * sums[2] + all_pairs.variance_with(i) * half_trace
        }),
        joint,
    }
}
