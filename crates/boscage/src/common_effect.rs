//! What variables do alike, as a part of an additive GP.
//!
//! Not in the paper. Lengthscales and variances of the variables are drawn to common values
//! ([`crate::kernel_learning::PooledPrior`]); here so is what the variables do. With fewer observations than variables next to
//! nothing is known of each one, but something of all of them together: that it is bad to be far from the centre, for instance, or
//! that one of the choices is good wherever it is taken. So there is a function that all ordered variables have in common,
//! Σ_i g(x_i), and one for all categorical variables with the same choices, besides the one that each has of its own, which says how
//! it differs. g is a polynomial for ordered variables, and a number for each choice for the others, so that this costs next to
//! nothing, and its coefficients are integrated over; how large they may be is learned, so that where the variables have nothing in
//! common next to nothing is expected of it.
//!
//! Notation: P_1, …, P_4 are Legendre's polynomials over 0 to 1, scaled to variance 1 under the uniform distribution, and
//! q_k(x) = s Σ_i P_k(x_i) / √D over the D ordered variables. For m ≥ 2 categorical variables with the same K choices there are K
//! more, q_c(x) = 2 s √(K/(K − 1)) Σ_i (\[x_i = c\] − 1/K) / √m. The part is Σ_k b_k q_k(x) over all of them with standard normal b_k,
//!
//! k(x, x′) = Σ_k q_k(x) q_k(x′).
//!
//! It is the one part whose variance differs from point to point: 4 s² on average over the space, for ordered variables and for each
//! set of choices, 24 D s² where all ordered variables are at their ends and 4 m s² where all of a set have the same choice. Outside
//! of 0 to 1 a variable counts as at its end. Of an ordered variable with few levels the polynomials are no longer of mean 0 and
//! variance 1; with two they say one thing and a constant. A parameter that a condition switches off counts with the choice it rests
//! at.
//!
//! Cost: 4·D for a point, 4·n² for a matrix, and K for every categorical variable and K·n² for every set of choices.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cholesky::Lower;
use crate::kernel::{Kernel, Metric};
use crate::simd;
use crate::space::Space;

/// The degree of the polynomial: enough for a valley on either side of a hill, and no more.
pub const DEGREE: usize = 4;

/// Sets with more choices than this have no part: each costs as much as a degree of the polynomial, and one of so many is seldom seen
/// twice.
const MOST_CHOICES: usize = 32;

/// Categorical variables that have the same choices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SameChoices {
    /// The variables.
    pub variables: Vec<usize>,
    /// How many choices each has.
    pub choices: usize,
}

/// The sets of categorical parameters with the same choices, in the same order: at least two parameters each, and neither one choice
/// nor too many.
/// Truth values have the same choices.
pub(crate) fn same_choices(space: &Space) -> Vec<SameChoices> {
    let parameters = space.parameters();
    let mut sets: Vec<SameChoices> = Vec::new();
    for d in (0..space.dimension()).filter(|&d| space.is_categorical(d)) {
        let choices = space.levels(d).unwrap_or(0) as usize;
        let domain = &parameters[d].domain;
        match sets.iter_mut().find(|set| parameters[set.variables[0]].domain == *domain) {
            Some(set) => set.variables.push(d),
            None => sets.push(SameChoices { variables: vec![d], choices }),
        }
    }
    sets.retain(|set| set.variables.len() > 1 && (2..=MOST_CHOICES).contains(&set.choices));
    sets
}

/// What a variable has of the q_k.
#[derive(Debug, Clone, Default, PartialEq)]
enum Share {
    /// Nothing.
    #[default]
    None,
    /// The polynomials, which come first, with the weight s / √D.
    Ordered(f64),
    /// These, one for each choice, with the weight 2 s √(K/(K − 1)) / √m.
    Choice(Range<usize>, f64),
}

/// What each variable has of the q_k; empty if there is no such part.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommonEffect {
    shares: Vec<Share>,
    /// How many q_k there are.
    count: usize,
}

impl CommonEffect {
    /// For the variables of this kernel, with s.
    pub(crate) fn new(kernel: &Kernel, common_std: f64) -> Self {
        let is_ordered = |metric: &Metric| *metric == Metric::Numeric;
        let ordered = kernel.metrics.iter().filter(|metric| is_ordered(metric)).count();
        if common_std == 0.0 || (ordered == 0 && kernel.same_choices.is_empty()) {
            return Self::default();
        }
        let weight = common_std / (ordered.max(1) as f64).sqrt();
        let of = |metric| if is_ordered(metric) { Share::Ordered(weight) } else { Share::None };
        let mut shares: Vec<Share> = kernel.metrics.iter().map(of).collect();
        let mut count = if ordered > 0 { DEGREE } else { 0 };
        for SameChoices { variables, choices } in &kernel.same_choices {
            let places = count..count + choices;
            count = places.end;
            let (m, k) = (variables.len() as f64, *choices as f64);
            let weight = 2.0 * common_std * (k / ((k - 1.0) * m)).sqrt();
            for &i in variables {
                shares[i] = Share::Choice(places.clone(), weight);
            }
        }
        Self { shares, count }
    }

    /// Adds what a variable has of the q_k at a coordinate.
    pub(crate) fn add_features(&self, i: usize, x: f64, q: &mut [f64]) {
        match self.shares.get(i) {
            Some(&Share::Ordered(weight)) => {
                let values = legendre(2.0 * x.clamp(0.0, 1.0) - 1.0);
                q.iter_mut().zip(values).for_each(|(q, value)| *q += weight * value);
            }
            Some(Share::Choice(places, weight)) => {
                let choices = places.len();
                let q = &mut q[places.clone()];
                q.iter_mut().for_each(|q| *q -= weight / choices as f64);
                q[choice(x, choices)] += weight;
            }
            Some(Share::None) | None => {}
        }
    }

    /// The product of what a variable has of the q_k at a coordinate with coefficients.
    pub(crate) fn along(&self, i: usize, x: f64, b: &[f64]) -> f64 {
        match self.shares.get(i) {
            Some(&Share::Ordered(weight)) => {
                let values = legendre(2.0 * x.clamp(0.0, 1.0) - 1.0);
                simd::dot(&values.map(|value| weight * value), &b[..DEGREE])
            }
            Some(Share::Choice(places, weight)) => {
                let b = &b[places.clone()];
                weight * (b[choice(x, b.len())] - b.iter().sum::<f64>() / b.len() as f64)
            }
            Some(Share::None) | None => 0.0,
        }
    }

    /// The derivative of what a variable has of the polynomials by the coordinate; of choices there is none.
    pub(crate) fn slopes(&self, i: usize, x: f64) -> [f64; DEGREE] {
        match self.shares.get(i) {
            Some(&Share::Ordered(weight)) if (0.0..=1.0).contains(&x) => {
                legendre_slopes(2.0 * x - 1.0).map(|slope| 2.0 * weight * slope)
            }
            _ => [0.0; DEGREE],
        }
    }

    /// What a variable has of all q_k at a coordinate.
    pub(crate) fn features(&self, i: usize, x: f64) -> Vec<f64> {
        let mut q = vec![0.0; self.count];
        self.add_features(i, x, &mut q);
        q
    }

    /// The q_k of a point.
    pub(crate) fn of_point(&self, x: &[f64]) -> Vec<f64> {
        let mut q = vec![0.0; self.count];
        for (i, &x) in x.iter().enumerate().take(self.shares.len()) {
            self.add_features(i, x, &mut q);
        }
        q
    }
}

/// The choice whose coordinate is nearest.
fn choice(x: f64, choices: usize) -> usize {
    // Of numbers below 0, and of what is no number, this is the first.
    ((x * (choices - 1) as f64).round() as usize).min(choices - 1)
}

/// The q_k of all observations; nothing if there is no such part.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommonColumns {
    pub(crate) effect: CommonEffect,
    columns: Vec<Vec<f64>>,
}

impl CommonColumns {
    /// Of observations that are given one variable after the other.
    pub(crate) fn new(effect: CommonEffect, x: &[Vec<f64>]) -> Self {
        let n = x.first().map_or(0, Vec::len);
        let mut columns = vec![Vec::with_capacity(n); effect.count];
        let mut q = vec![0.0; effect.count];
        for a in 0..n {
            q.fill(0.0);
            for (i, coordinates) in x.iter().enumerate().take(effect.shares.len()) {
                effect.add_features(i, coordinates[a], &mut q);
            }
            columns.iter_mut().zip(&q).for_each(|(column, &q)| column.push(q));
        }
        Self { effect, columns }
    }

    /// One list for each q_k; none without such a part.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// One more observation, with these q_k.
    pub(crate) fn push(&mut self, q: &[f64]) {
        for (column, &q) in self.columns.iter_mut().zip(q) {
            column.push(q);
        }
    }

    /// Adds Σ_k weight_k q_k at every observation, over as many k as there are weights.
    pub(crate) fn add(&self, weights: &[f64], sum: &mut [f64]) {
        for (column, &weight) in self.columns.iter().zip(weights) {
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

    /// The product of each q_k with numbers of the observations.
    pub(crate) fn dot(&self, by: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| simd::dot(column, by)).collect()
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
    use crate::space::Parameter;

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
    fn a_category_of_its_own_has_no_part_and_outside_counts_as_the_end() {
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
        // Without the part, and without a variable that could have one, there is nothing.
        kernel.metrics.fill(Metric::Categorical);
        for (std, metrics) in [(0.0, vec![Metric::Numeric; 5]), (0.6, kernel.metrics.clone())] {
            let effect = CommonEffect::new(&Kernel { metrics, ..kernel.clone() }, std);
            assert!(effect.of_point(&[1.0; 5]).is_empty());
        }
    }

    /// Two numbers, three variables of three choices, and two truth values.
    fn with_choices() -> CommonEffect {
        let mut kernel = Kernel::uniform(KernelFamily::Rbf, 7, 0.3, 0.5);
        kernel.metrics[2..].fill(Metric::Categorical);
        kernel.same_choices = vec![
            SameChoices { variables: vec![2, 4, 6], choices: 3 },
            SameChoices { variables: vec![3, 5], choices: 2 },
        ];
        CommonEffect::new(&kernel, 0.6)
    }

    #[test]
    fn choices_are_alike_in_each_set_and_their_variance_is_that_of_the_polynomial() {
        let effect = with_choices();
        assert_eq!(effect.features(0, 0.3).len(), DEGREE + 3 + 2);
        let variance = |q: &[f64]| q.iter().map(|q| q * q).sum::<f64>();
        // The average over all choices of all variables of a set: 4 s²; all alike: 4 m s².
        let (mut sum, mut all_alike) = (0.0, Vec::new());
        for [a, b, c] in (0..27).map(|k| [k % 3, k / 3 % 3, k / 9]) {
            let x = [a, b, c].map(|c| f64::from(c) / 2.0);
            let q = effect.of_point(&[0.5, 0.5, x[0], 0.0, x[1], 0.0, x[2]]);
            sum += variance(&q[DEGREE..DEGREE + 3]);
            if a == b && b == c {
                all_alike.push(variance(&q[DEGREE..DEGREE + 3]));
            }
        }
        assert!((sum / 27.0 - 4.0 * 0.36).abs() < 1e-12, "{sum}");
        assert_eq!(all_alike.len(), 3);
        for alike in all_alike {
            assert!((alike - 4.0 * 3.0 * 0.36).abs() < 1e-12, "{alike}");
        }
        // The average choice has no effect, and no variable has one on the choices of another set.
        let mut average = vec![0.0; DEGREE + 5];
        for x in [0.0, 0.5, 1.0] {
            effect.add_features(4, x, &mut average);
        }
        assert!(average.iter().all(|q| q.abs() < 1e-12), "{average:?}");
        assert_eq!(effect.features(2, 0.5), effect.features(6, 0.5));
        assert_eq!(effect.features(3, 1.0)[..DEGREE + 3], [0.0; DEGREE + 3]);
        assert_eq!(effect.slopes(2, 0.5), [0.0; DEGREE]);
        // What is between two choices, outside or no number is one of them.
        for (x, of) in [(0.3, 0.5), (-7.0, 0.0), (9.0, 1.0), (f64::NAN, 0.0)] {
            assert_eq!(effect.features(2, x), effect.features(2, of));
        }
    }

    #[test]
    fn the_product_with_coefficients_is_that_of_the_features() {
        let effect = with_choices();
        let b: Vec<f64> = (0..DEGREE + 5).map(|k| (k as f64 * 1.7).sin()).collect();
        for i in 0..7 {
            for x in [0.0, 0.5, 1.0] {
                let want: f64 = effect.features(i, x).iter().zip(&b).map(|(q, b)| q * b).sum();
                let got = effect.along(i, x, &b);
                assert!((got - want).abs() < 1e-12, "{i} {x}: {got} {want}");
            }
        }
    }

    #[test]
    fn parameters_have_the_same_choices_if_these_are_equal_and_in_the_same_order() {
        let space = Space::new(vec![
            Parameter::categorical("a", ["x", "y", "z"]),
            Parameter::boolean("b"),
            Parameter::categorical("c", ["x", "y"]),
            Parameter::real("d", 0.0, 1.0),
            Parameter::categorical("e", ["x", "y", "z"]),
            Parameter::categorical("f", ["z", "y", "x"]),
            Parameter::boolean("g"),
            Parameter::categorical("h", ["only"]),
            Parameter::categorical("i", ["only"]),
            Parameter::categorical("j", ["x", "y", "z"]),
            Parameter::categorical("k", (0..33).map(|k| k.to_string())),
            Parameter::categorical("l", (0..33).map(|k| k.to_string())),
        ]);
        let set =
            |variables: &[usize], choices| SameChoices { variables: variables.into(), choices };
        assert_eq!(same_choices(&space.unwrap()), [set(&[0, 4, 9], 3), set(&[1, 6], 2)]);
    }
}
