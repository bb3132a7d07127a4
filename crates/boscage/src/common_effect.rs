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
//! Notation: P_1, …, P_4 are Legendre's polynomials over the range of a variable, scaled to variance 1 under the uniform
//! distribution, and q_k(x) = s Σ_i P_k(x_i) / √D over the D ordered variables. The part is Σ_k b_k q_k(x) with standard normal b_k,
//!
//! k(x, x′) = Σ_k q_k(x) q_k(x′).
//!
//! It is the one part whose variance differs from point to point. Categorical variables have no part in it.
//!
//! Cost: 4·D for a point, 4·n² for a matrix.

use crate::cholesky::Lower;
use crate::kernel::{Kernel, Metric};
use crate::simd;

/// The degree of the polynomial: enough for a valley on either side of a hill, and no more.
pub const DEGREE: usize = 4;

/// The part of one variable in q_1, …, q_4; `std` is s.
pub(crate) fn features(kernel: &Kernel, std: f64, i: usize, x: f64) -> [f64; DEGREE] {
    let weight = weight(kernel, std, i);
    legendre(2.0 * x - 1.0).map(|value| weight * value)
}

/// Its derivative by the coordinate.
pub(crate) fn slopes(kernel: &Kernel, std: f64, i: usize, x: f64) -> [f64; DEGREE] {
    let weight = 2.0 * weight(kernel, std, i);
    legendre_slopes(2.0 * x - 1.0).map(|slope| weight * slope)
}

/// q_1, …, q_4 of a point.
pub(crate) fn of_point(kernel: &Kernel, std: f64, x: &[f64]) -> [f64; DEGREE] {
    let mut sums = [0.0; DEGREE];
    for (i, &x) in x.iter().enumerate() {
        for (sum, feature) in sums.iter_mut().zip(features(kernel, std, i, x)) {
            *sum += feature;
        }
    }
    sums
}

/// q_1, …, q_4 of all observations; nothing if there is no such part.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommonColumns(Vec<Vec<f64>>);

impl CommonColumns {
    /// Of observations that are given one variable after the other.
    pub(crate) fn new(kernel: &Kernel, std: f64, x: &[Vec<f64>]) -> Self {
        if std == 0.0 {
            return Self::default();
        }
        let n = x.first().map_or(0, Vec::len);
        let mut columns = vec![vec![0.0; n]; DEGREE];
        for (i, coordinates) in x.iter().enumerate() {
            for (a, &x) in coordinates.iter().enumerate() {
                for (column, feature) in columns.iter_mut().zip(features(kernel, std, i, x)) {
                    column[a] += feature;
                }
            }
        }
        Self(columns)
    }

    /// One list for each degree; none without such a part.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.0
    }

    /// One more observation, with these q_k.
    pub(crate) fn push(&mut self, q: [f64; DEGREE]) {
        for (column, q) in self.0.iter_mut().zip(q) {
            column.push(q);
        }
    }

    /// Adds Σ_k weight_k q_k at every observation.
    pub(crate) fn add(&self, weights: [f64; DEGREE], sum: &mut [f64]) {
        for (column, weight) in self.0.iter().zip(weights) {
            simd::add_scaled(sum, weight, column);
        }
    }

    /// Adds k between all observations.
    pub(crate) fn add_gram(&self, gram: &mut Lower) {
        for column in &self.0 {
            for (b, &q) in column.iter().enumerate() {
                simd::add_scaled(gram.column_mut(b), q, &column[b..]);
            }
        }
    }

    /// The product of each q_k with numbers of the observations; 0 without such a part.
    pub(crate) fn dot(&self, by: &[f64]) -> [f64; DEGREE] {
        std::array::from_fn(|k| self.0.get(k).map_or(0.0, |column| simd::dot(column, by)))
    }
}

/// s / √D; 0 for a categorical variable.
fn weight(kernel: &Kernel, std: f64, i: usize) -> f64 {
    match kernel.metrics[i] {
        Metric::Categorical => 0.0,
        Metric::Numeric => {
            let ordered = kernel.metrics.iter().filter(|metric| **metric == Metric::Numeric);
            std / (ordered.count() as f64).sqrt()
        }
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
}
