//! What all variables do alike, as a part of an additive GP.
//!
//! Not in the paper. Lengthscales and variances of the variables are drawn to common values
//! ([`crate::kernel_learning::PooledPrior`]); here so is what the variables do. With fewer observations than variables next to
//! nothing is known of each one, but something of all of them together: that it is bad to be far from the centre, for instance, or
//! good to be near the upper ends. So there is a function that all ordered variables have in common, Σ_i g(x_i), besides the one
//! that each has of its own, which says how it differs. g is a polynomial, so that this costs next to nothing, and its
//! coefficients are integrated over; how large they may be is learned, so that where the variables have nothing in common next to
//! nothing is expected of it.
//!
//! Notation: P_1, …, P_4 are Legendre's polynomials over 0 to 1, scaled to variance 1 under the uniform distribution, and
//! q_k(x) = s Σ_i P_k(x_i) / √D over the D ordered variables. The part is Σ_k b_k q_k(x) with standard normal b_k,
//!
//! k(x, x′) = Σ_k q_k(x) q_k(x′).
//!
//! It is the one part whose variance differs from point to point: 4 s² on average over the space, 24 D s² in a corner, where all
//! variables are at their ends. Outside of 0 to 1 a variable counts as at its end. Categorical variables have no part in it. Of a
//! variable with few levels the polynomials are no longer of mean 0 and variance 1; with two they say one thing and a constant.
//!
//! Cost: 4·D for a point, 4·n² for a matrix.

use crate::cholesky::Lower;
use crate::kernel::{Kernel, Metric};
use crate::simd;

/// The degree of the polynomial: enough for a valley on either side of a hill, and no more.
pub const DEGREE: usize = 4;

/// s / √D for an ordered variable, 0 for a categorical one; empty if there is no such part.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommonEffect {
    weights: Vec<f64>,
}

impl CommonEffect {
    /// For the variables of this kernel, with s.
    pub(crate) fn new(kernel: &Kernel, common_std: f64) -> Self {
        if common_std == 0.0 {
            return Self::default();
        }
        let is_ordered = |metric: &Metric| *metric == Metric::Numeric;
        let ordered = kernel.metrics.iter().filter(|metric| is_ordered(metric)).count();
        let weight = common_std / (ordered.max(1) as f64).sqrt();
        let of = |metric: &Metric| if is_ordered(metric) { weight } else { 0.0 };
        Self { weights: kernel.metrics.iter().map(of).collect() }
    }

    /// What a variable has of q_1, …, q_4 at a coordinate.
    pub(crate) fn features(&self, i: usize, x: f64) -> [f64; DEGREE] {
        match self.weights.get(i) {
            Some(&weight) if weight > 0.0 => {
                legendre(2.0 * x.clamp(0.0, 1.0) - 1.0).map(|value| weight * value)
            }
            _ => [0.0; DEGREE],
        }
    }

    /// Its derivative by the coordinate.
    pub(crate) fn slopes(&self, i: usize, x: f64) -> [f64; DEGREE] {
        match self.weights.get(i) {
            Some(&weight) if weight > 0.0 && (0.0..=1.0).contains(&x) => {
                legendre_slopes(2.0 * x - 1.0).map(|slope| 2.0 * weight * slope)
            }
            _ => [0.0; DEGREE],
        }
    }

    /// q_1, …, q_4 of a point.
    pub(crate) fn of_point(&self, x: &[f64]) -> [f64; DEGREE] {
        let mut sums = [0.0; DEGREE];
        if self.weights.is_empty() {
            return sums;
        }
        for (i, &x) in x.iter().enumerate() {
            for (sum, feature) in sums.iter_mut().zip(self.features(i, x)) {
                *sum += feature;
            }
        }
        sums
    }
}

/// q_1, …, q_4 of all observations; nothing if there is no such part.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommonColumns {
    pub(crate) effect: CommonEffect,
    columns: Vec<Vec<f64>>,
}

impl CommonColumns {
    /// Of observations that are given one variable after the other.
    pub(crate) fn new(effect: CommonEffect, x: &[Vec<f64>]) -> Self {
        if effect.weights.is_empty() {
            return Self::default();
        }
        let n = x.first().map_or(0, Vec::len);
        let mut columns = vec![vec![0.0; n]; DEGREE];
        for (i, coordinates) in x.iter().enumerate() {
            for (a, &x) in coordinates.iter().enumerate() {
                for (column, feature) in columns.iter_mut().zip(effect.features(i, x)) {
                    column[a] += feature;
                }
            }
        }
        Self { effect, columns }
    }

    /// One list for each degree; none without such a part.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// One more observation, with these q_k.
    pub(crate) fn push(&mut self, q: [f64; DEGREE]) {
        for (column, q) in self.columns.iter_mut().zip(q) {
            column.push(q);
        }
    }

    /// Adds Σ_k weight_k q_k at every observation.
    pub(crate) fn add(&self, weights: [f64; DEGREE], sum: &mut [f64]) {
        for (column, weight) in self.columns.iter().zip(weights) {
            simd::add_scaled(sum, weight, column);
        }
    }

    /// Adds k between all observations.
    pub(crate) fn add_gram(&self, gram: &mut Lower) {
        for column in &self.columns {
            for (b, &q) in column.iter().enumerate() {
                simd::add_scaled(gram.column_mut(b), q, &column[b..]);
            }
        }
    }

    /// The product of each q_k with numbers of the observations; 0 without such a part.
    pub(crate) fn dot(&self, by: &[f64]) -> [f64; DEGREE] {
        std::array::from_fn(|k| self.columns.get(k).map_or(0.0, |column| simd::dot(column, by)))
    }
}

/// √(2k + 1) times Legendre's polynomial of degree k = 1, …, 4: the mean of its square over −1 to 1 is 1.
fn legendre(u: f64) -> [f64; DEGREE] {
    let square = u * u;
    [
        3.0_f64.sqrt() * u,
        5.0_f64.sqrt() * (1.5 * square - 0.5),
        7.0_f64.sqrt() * u * (2.5 * square - 1.5),
        3.0 * (square * (4.375 * square - 3.75) + 0.375),
    ]
}

fn legendre_slopes(u: f64) -> [f64; DEGREE] {
    let square = u * u;
    [
        3.0_f64.sqrt(),
        5.0_f64.sqrt() * 3.0 * u,
        7.0_f64.sqrt() * (7.5 * square - 1.5),
        3.0 * u * (17.5 * square - 7.5),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelFamily;

    #[test]
    fn the_polynomials_are_legendres_with_variance_1() {
        let recursive = |k: usize, u: f64| {
            let (mut before, mut last) = (1.0, u);
            for m in 1..k {
                let m = m as f64;
                (before, last) = (last, ((2.0 * m + 1.0) * u * last - m * before) / (m + 1.0));
            }
            (2.0 * k as f64 + 1.0).sqrt() * last
        };
        for u in [-1.0, -0.7, -0.2, 0.0, 0.35, 0.9, 1.0, 1.4] {
            for (k, (value, slope)) in legendre(u).into_iter().zip(legendre_slopes(u)).enumerate() {
                let want = recursive(k + 1, u);
                assert!((value - want).abs() < 1e-12, "{k} {u}: {value} {want}");
                let step = 1e-5;
                let difference = (legendre(u + step)[k] - legendre(u - step)[k]) / (2.0 * step);
                assert!((slope - difference).abs() < 1e-7, "{k} {u}: {slope} {difference}");
            }
        }
        // By the midpoints of many cells: no two have anything to do with each other, or with a constant.
        const CELLS: usize = 20_000;
        let mean = |f: &dyn Fn([f64; DEGREE]) -> f64| -> f64 {
            let of = |c: usize| f(legendre(2.0 * (c as f64 + 0.5) / CELLS as f64 - 1.0));
            (0..CELLS).map(of).sum::<f64>() / CELLS as f64
        };
        for k in 0..DEGREE {
            assert!(mean(&|p| p[k]).abs() < 1e-7);
            for l in 0..DEGREE {
                let want = if k == l { 1.0 } else { 0.0 };
                assert!((mean(&|p| p[k] * p[l]) - want).abs() < 1e-6, "{k} {l}");
            }
        }
    }

    #[test]
    fn categories_have_no_part_and_outside_counts_as_the_end() {
        let mut kernel = Kernel::uniform(KernelFamily::Rbf, 5, 0.3, 0.5);
        kernel.metrics[1] = Metric::Categorical;
        let effect = CommonEffect::new(&kernel, 0.6);
        assert_eq!(effect.features(1, 0.2), [0.0; DEGREE]);
        assert_eq!(effect.slopes(1, 0.2), [0.0; DEGREE]);
        for (outside, end) in [(-1e6, 0.0), (1.5, 1.0)] {
            assert_eq!(effect.features(0, outside), effect.features(0, end));
            assert_eq!(effect.slopes(0, outside), [0.0; DEGREE]);
        }
        // In a corner 24 D s².
        let q = effect.of_point(&[1.0, 0.3, 1.0, 1.0, 1.0]);
        let variance: f64 = q.iter().map(|q| q * q).sum();
        assert!((variance - 24.0 * 4.0 * 0.36).abs() < 1e-10, "{variance}");
        // Without the part, and without an ordered variable, there is nothing.
        kernel.metrics.fill(Metric::Categorical);
        for (std, metrics) in [(0.0, vec![Metric::Numeric; 5]), (0.6, kernel.metrics.clone())] {
            let effect = CommonEffect::new(&Kernel { metrics, ..kernel.clone() }, std);
            assert_eq!(effect.of_point(&[1.0; 5]), [0.0; DEGREE]);
        }
    }
}
