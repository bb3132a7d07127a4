//! The kernel of one component, κ^G, its parameters Θ, and sums of such kernels over data.
//!
//! Paper: section "Kernel" and eq. (rbf-ls):
//! κ^G(x, x′) = σ^G exp(−½ Σ_{i∈G} (x_i − x′_i)²/ℓ_i²) with σ^G = √(Σ_{i∈G} σ_i²).
//! Note that the amplitude σ^G multiplies the exponential once; it is *not* squared, as it is in most libraries.
//!
//! Notation: κ^G = σ^G ∏_{i∈G} e_i, where e_i is the *factor* of variable i; u_i is the coordinate x_i, or what is seen of it
//! through a stretch (`stretch.rs`), times a rate that depends on ℓ_i, so that e_i is a fixed function of u_i − u′_i. A weight
//! is an amplitude, possibly negated.
//!
//! Cost: adding a component to the n × n matrix K takes n²/2 exponentials, about 0.3 ms at n = 1,000. That is as fast as
//! reading stored factors from memory would be, so nothing is stored.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cholesky::Lower;
use crate::common_effect::SameChoices;
use crate::error::{Error, Result};
use crate::graph::Component;
use crate::simd;
use crate::stretch;

/// The shape of every factor e_i.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KernelFamily {
    /// exp(−Δ²/2ℓ²): the paper's RBF-ARD.
    #[default]
    Rbf,
    /// (1 + s + s²/3) exp(−s) with s = √5|Δ|/ℓ, multiplied over the variables of a component.
    Matern52,
}

/// How the difference Δ of two values of a variable is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Δ = x − x′.
    #[default]
    Numeric,
    /// Δ = 0 for equal values, 1 otherwise.
    Categorical,
}

/// Θ = {(ℓ_i, σ_i)}, and what kind of kernel they belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// The shape of the factors.
    pub family: KernelFamily,
    /// How each variable measures differences.
    pub metrics: Vec<Metric>,
    /// ℓ_i of each variable, in units of the model coordinate (the domain has length 1).
    pub lengthscales: Vec<f64>,
    /// σ_i of each variable.
    pub scales: Vec<f64>,
    /// Categorical variables with the same choices, which may do something alike ([`crate::common_effect`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_choices: Vec<SameChoices>,
    /// How many times as steep each variable is seen at the low end of its range as at the upper one; empty where all are seen as
    /// they are, as in the paper. It makes no difference for categorical variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stretches: Vec<f64>,
}

/// √(½ log₂ e): the rate that turns exp(−Δ²/2ℓ²) into 2^(−(u − u′)²).
const RBF_RATE: f64 = 0.849_321_800_288_019_1;
/// √5.
const MATERN52_RATE: f64 = 2.236_067_977_499_79;
/// Columns of K that are filled together, so that the coordinates stay in the nearest cache.
const COLUMN_BLOCK: usize = 8;

impl Kernel {
    /// A kernel with the same ℓ and σ for every variable, all numeric.
    pub fn uniform(family: KernelFamily, dimension: usize, lengthscale: f64, scale: f64) -> Self {
        Self {
            family,
            metrics: vec![Metric::Numeric; dimension],
            lengthscales: vec![lengthscale; dimension],
            scales: vec![scale; dimension],
            same_choices: Vec::new(),
            stretches: Vec::new(),
        }
    }

    /// Number of variables D.
    pub fn dimension(&self) -> usize {
        self.lengthscales.len()
    }

    /// Refuses parameters that are not positive and finite, and lists of different lengths.
    pub fn validate(&self) -> Result<()> {
        let dimension = self.dimension();
        let stretches = if self.stretches.is_empty() { dimension } else { self.stretches.len() };
        for (what, found) in [
            ("scales", self.scales.len()),
            ("metrics", self.metrics.len()),
            ("stretches", stretches),
        ] {
            if found != dimension {
                return Err(Error::WrongDimension { what, expected: dimension, found });
            }
        }
        for (setting, values) in [
            ("lengthscales", &self.lengthscales),
            ("scales", &self.scales),
            ("stretches", &self.stretches),
        ] {
            if let Some(value) = values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
                return Err(Error::InvalidSetting {
                    setting,
                    value: value.to_string(),
                    reason: "kernel parameters must be positive and finite",
                });
            }
        }
        self.validate_same_choices()
    }

    fn validate_same_choices(&self) -> Result<()> {
        let mut is_taken = vec![false; self.dimension()];
        for SameChoices { variables, choices } in &self.same_choices {
            let refuse = |reason: String| Err(Error::InvalidStructure { reason });
            if *choices < 2 || variables.is_empty() {
                return refuse(format!("variables {variables:?} with {choices} choices"));
            }
            for &i in variables {
                if self.metrics.get(i) != Some(&Metric::Categorical) {
                    return refuse(format!("variable {i} has choices but is not categorical"));
                }
                if std::mem::replace(&mut is_taken[i], true) {
                    return refuse(format!("variable {i} has two sets of choices"));
                }
            }
        }
        Ok(())
    }

    /// σ^G = √(Σ_{i∈G} σ_i²): the prior variance of the component.
    pub fn amplitude(&self, component: &Component) -> f64 {
        component.variables().iter().map(|&i| self.scales[i] * self.scales[i]).sum::<f64>().sqrt()
    }

    /// κ^G(x, x′) by the formula, for tests and small uses; everything fast goes through whole columns.
    pub fn value(&self, component: &Component, x: &[f64], other: &[f64]) -> f64 {
        let mut product = self.amplitude(component);
        for &i in component.variables() {
            let mut factor = [0.0];
            self.factor(i, &[self.scaled(i, x[i])], self.scaled(i, other[i]), &mut factor);
            product *= factor[0];
        }
        product
    }

    /// u_i of a coordinate.
    pub(crate) fn scaled(&self, i: usize, x: f64) -> f64 {
        match self.metrics[i] {
            Metric::Categorical => x,
            Metric::Numeric => stretch::seen(&self.stretches, i, x) * self.rate(i),
        }
    }

    /// ∂u_i/∂(log of the stretch) at a coordinate; 0 for categorical variables.
    fn scaled_by_stretch(&self, i: usize, x: f64) -> f64 {
        match self.metrics[i] {
            Metric::Categorical => 0.0,
            Metric::Numeric => stretch::slope_in_log_stretch(&self.stretches, i, x) * self.rate(i),
        }
    }

    /// u_i of a numeric variable over what is seen of its coordinate.
    fn rate(&self, i: usize) -> f64 {
        let rate = match self.family {
            KernelFamily::Rbf => RBF_RATE,
            KernelFamily::Matern52 => MATERN52_RATE,
        };
        rate / self.lengthscales[i]
    }

    /// The factor of two different categories.
    fn categorical_factor(&self, i: usize) -> f64 {
        let ell = self.lengthscales[i];
        match self.family {
            KernelFamily::Rbf => (-0.5 / (ell * ell)).exp(),
            KernelFamily::Matern52 => {
                let s = MATERN52_RATE / ell;
                (1.0 + s + s * s / 3.0) * (-s).exp()
            }
        }
    }

    /// out[a] = e_i(u[a], at).
    pub(crate) fn factor(&self, i: usize, u: &[f64], at: f64, out: &mut [f64]) {
        match (self.metrics[i], self.family) {
            (Metric::Categorical, _) => {
                let different = self.categorical_factor(i);
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = if u == at { 1.0 } else { different };
                }
            }
            (Metric::Numeric, KernelFamily::Rbf) => simd::rbf_factor(u, at, out),
            (Metric::Numeric, KernelFamily::Matern52) => simd::matern52_factor(u, at, out),
        }
    }

    /// out[a] = ∂e_i/∂log ℓ_i.
    fn slope(&self, i: usize, u: &[f64], at: f64, out: &mut [f64]) {
        match (self.metrics[i], self.family) {
            (Metric::Categorical, family) => {
                let ell = self.lengthscales[i];
                let different = match family {
                    KernelFamily::Rbf => self.categorical_factor(i) / (ell * ell),
                    KernelFamily::Matern52 => {
                        let s = MATERN52_RATE / ell;
                        s * s * (1.0 + s) / 3.0 * (-s).exp()
                    }
                };
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = if u == at { 0.0 } else { different };
                }
            }
            (Metric::Numeric, KernelFamily::Rbf) => simd::rbf_slope(u, at, out),
            (Metric::Numeric, KernelFamily::Matern52) => simd::matern52_slope(u, at, out),
        }
    }

    /// [`Kernel::factor`] and [`Kernel::slope`] together, which is cheaper than both.
    pub(crate) fn factor_and_slope(
        &self,
        i: usize,
        u: &[f64],
        at: f64,
        factor: &mut [f64],
        slope: &mut [f64],
    ) {
        if (self.metrics[i], self.family) == (Metric::Numeric, KernelFamily::Matern52) {
            simd::matern52_factor_and_slope(u, at, factor, slope);
        } else {
            self.factor(i, u, at, factor);
            self.slope(i, u, at, slope);
        }
    }

    /// [`Kernel::factor`], and slope[a] = ∂e_i(x_a, x)/∂x at the scaled coordinate `at` of x; 0 for categorical variables.
    fn factor_and_point_slope(
        &self,
        i: usize,
        u: &[f64],
        at: f64,
        factor: &mut [f64],
        slope: &mut [f64],
    ) {
        let ell = self.lengthscales[i];
        let steep = stretch::slope_at(&self.stretches, i, at / self.rate(i));
        if (self.metrics[i], self.family) == (Metric::Numeric, KernelFamily::Matern52) {
            let rate = MATERN52_RATE / (3.0 * ell) * steep;
            return simd::matern52_factor_and_point_slope(u, at, rate, factor, slope);
        }
        self.factor(i, u, at, factor);
        if self.metrics[i] == Metric::Categorical {
            return slope.fill(0.0);
        }
        // ∂/∂x 2^(−(u_a − u)²) = 2 ln 2 (u_a − u) e · du/dx
        let rate = 2.0 * std::f64::consts::LN_2 * RBF_RATE / ell * steep;
        for (slope, (e, u)) in slope.iter_mut().zip(factor.iter().zip(u)) {
            *slope = e * rate * (u - at);
        }
    }

    /// −∂²e_i/∂x² at distance 0 from a coordinate, which is the prior variance of a derivative up to the amplitude; 0 for categorical
    /// variables.
    pub(crate) fn curvature(&self, i: usize, x: f64) -> f64 {
        let seen = stretch::seen(&self.stretches, i, x);
        let steep = stretch::slope_at(&self.stretches, i, seen).powi(2);
        let ell = self.lengthscales[i];
        match (self.metrics[i], self.family) {
            (Metric::Categorical, _) => 0.0,
            (Metric::Numeric, KernelFamily::Rbf) => steep / (ell * ell),
            (Metric::Numeric, KernelFamily::Matern52) => steep * 5.0 / (3.0 * ell * ell),
        }
    }

    /// out[a] = ∂log e_i/∂log ℓ_i: the slope over the factor, finite even where both vanish.
    fn log_slope(&self, i: usize, u: &[f64], at: f64, out: &mut [f64]) {
        // s² (1 + s)/3 over 1 + s + s²/3.
        let matern52 = |s: f64| s * s * (1.0 + s) / (s * s + 3.0 * (1.0 + s));
        let ell = self.lengthscales[i];
        match (self.metrics[i], self.family) {
            (Metric::Categorical, family) => {
                let different = match family {
                    KernelFamily::Rbf => 1.0 / (ell * ell),
                    KernelFamily::Matern52 => matern52(MATERN52_RATE / ell),
                };
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = if u == at { 0.0 } else { different };
                }
            }
            (Metric::Numeric, KernelFamily::Rbf) => {
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = 2.0 * std::f64::consts::LN_2 * (u - at) * (u - at);
                }
            }
            (Metric::Numeric, KernelFamily::Matern52) => {
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = matern52((u - at).abs());
                }
            }
        }
    }

    /// Whether all variables of the component are numeric with an RBF factor: the case with its own loops.
    fn is_plain_rbf(&self, component: &Component) -> bool {
        self.family == KernelFamily::Rbf
            && component.variables().iter().all(|&i| self.metrics[i] == Metric::Numeric)
    }

    /// out[a] += weight · ∏_{i∈G} e_i(row a, row b) for the rows a from `first` on.
    fn add_column(
        &self,
        component: &Component,
        inputs: &Inputs,
        first: usize,
        b: usize,
        weight: f64,
        out: &mut [f64],
    ) {
        let column = |i: usize| (&inputs.columns[i][first..], inputs.columns[i][b]);
        match *component.variables() {
            [i] if self.is_plain_rbf(component) => {
                let (u, at) = column(i);
                simd::add_rbf_single(u, at, weight, out);
            }
            [i, j] if self.is_plain_rbf(component) => {
                simd::add_rbf_pair(column(i), column(j), weight, out);
            }
            // One exponential for all variables.
            _ if self.is_plain_rbf(component) => {
                let mut squares = vec![0.0; out.len()];
                for &i in component.variables() {
                    let (u, at) = column(i);
                    simd::add_squares(u, at, &mut squares);
                }
                simd::add_exp2_neg(&squares, weight, out);
            }
            _ => self.add_column_by_factors(component, inputs, first, b, weight, out),
        }
    }

    /// As [`Kernel::add_column`], factor by factor: for any component, and the check of the fast cases.
    fn add_column_by_factors(
        &self,
        component: &Component,
        inputs: &Inputs,
        first: usize,
        b: usize,
        weight: f64,
        out: &mut [f64],
    ) {
        let mut product = vec![1.0; out.len()];
        let mut factor = vec![0.0; out.len()];
        for &i in component.variables() {
            self.factor(i, &inputs.columns[i][first..], inputs.columns[i][b], &mut factor);
            simd::multiply(&mut product, &factor);
        }
        simd::add_scaled(out, weight, &product);
    }

    /// sums[0] += Σ_a w[a] ∏e, and sums[1 + k] += Σ_a w[a] ∂(∏e)/∂log ℓ of the k-th variable, over the rows a from
    /// `first` on against row b; with stretches, the same by their logarithms after these.
    fn add_sums(
        &self,
        component: &Component,
        inputs: &Inputs,
        first: usize,
        b: usize,
        w: &[f64],
        sums: &mut [f64],
    ) {
        const SLOPE: f64 = 2.0 * std::f64::consts::LN_2;
        let column = |i: usize| (&inputs.columns[i][first..], inputs.columns[i][b]);
        match *component.variables() {
            _ if !self.stretches.is_empty() => {
                self.add_sums_by_log_slopes(component, inputs, first, b, w, sums);
            }
            [i] if self.is_plain_rbf(component) => {
                let (u, at) = column(i);
                let [s, q] = simd::rbf_single_sums(u, at, w);
                sums[0] += s;
                sums[1] += SLOPE * q;
            }
            [i, j] if self.is_plain_rbf(component) => {
                let [s, q, r] = simd::rbf_pair_sums(column(i), column(j), w);
                sums[0] += s;
                sums[1] += SLOPE * q;
                sums[2] += SLOPE * r;
            }
            [_, _, _, ..] => self.add_sums_by_log_slopes(component, inputs, first, b, w, sums),
            _ => self.add_sums_by_factors(component, inputs, first, b, w, sums),
        }
    }

    /// As [`Kernel::add_sums`], from the whole product and its logarithmic derivatives: the cost grows with the number of
    /// variables and not with its square.
    fn add_sums_by_log_slopes(
        &self,
        component: &Component,
        inputs: &Inputs,
        first: usize,
        b: usize,
        w: &[f64],
        sums: &mut [f64],
    ) {
        let mut product = vec![0.0; w.len()];
        self.add_column(component, inputs, first, b, 1.0, &mut product);
        simd::multiply(&mut product, w);
        let mut slope = vec![1.0; w.len()];
        sums[0] += simd::dot(&product, &slope);
        let variables = component.variables();
        let (by_lengthscale, by_stretch) = sums[1..].split_at_mut(variables.len());
        for (k, (&i, sum)) in variables.iter().zip(by_lengthscale).enumerate() {
            self.log_slope(i, &inputs.columns[i][first..], inputs.columns[i][b], &mut slope);
            *sum += simd::dot(&product, &slope);
            if !self.stretches.is_empty()
                && let Some(sum) = by_stretch.get_mut(k)
            {
                inputs.slopes_by_stretch(i, first, b, &mut slope);
                *sum += simd::dot(&product, &slope);
            }
        }
    }

    /// As [`Kernel::add_sums`], factor by factor.
    fn add_sums_by_factors(
        &self,
        component: &Component,
        inputs: &Inputs,
        first: usize,
        b: usize,
        w: &[f64],
        sums: &mut [f64],
    ) {
        let variables = component.variables();
        let column = |i: usize| (&inputs.columns[i][first..], inputs.columns[i][b]);
        let mut factor = vec![0.0; w.len()];
        // Pass k multiplies the slope of variable k with the factors of the others; the first pass has no slope.
        for (k, sum) in sums.iter_mut().enumerate().take(1 + variables.len()) {
            let mut product = w.to_vec();
            for (position, &i) in variables.iter().enumerate() {
                let (u, at) = column(i);
                if position + 1 == k {
                    self.slope(i, u, at, &mut factor);
                } else {
                    self.factor(i, u, at, &mut factor);
                }
                simd::multiply(&mut product, &factor);
            }
            let mut total = 0.0;
            for value in product {
                total += value;
            }
            *sum += total;
        }
    }
}

/// The observed points as the kernel sees them: scaled coordinates, one contiguous column per variable.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    n: usize,
    columns: Vec<Vec<f64>>,
    /// ∂u/∂(log of the stretch) of the same; empty without stretches.
    by_stretch: Vec<Vec<f64>>,
}

impl Inputs {
    /// Scales the columns of the data (one per variable) for this kernel.
    pub(crate) fn new(kernel: &Kernel, x: &[Vec<f64>]) -> Self {
        let columns: Vec<Vec<f64>> = x
            .iter()
            .enumerate()
            .map(|(i, column)| column.iter().map(|&x| kernel.scaled(i, x)).collect())
            .collect();
        let stretched = if kernel.stretches.is_empty() { &[] } else { x };
        let by_stretch = stretched
            .iter()
            .enumerate()
            .map(|(i, column)| column.iter().map(|&x| kernel.scaled_by_stretch(i, x)).collect())
            .collect();
        Self { n: columns.first().map_or(0, Vec::len), columns, by_stretch }
    }

    pub(crate) fn n(&self) -> usize {
        self.n
    }

    pub(crate) fn column(&self, i: usize) -> &[f64] {
        &self.columns[i]
    }

    /// Turns slopes in log ℓ_i, of e_i or of its logarithm between row b and the rows from `first` on, into slopes in the logarithm
    /// of the stretch: e_i depends on both through |u_i − u′_i| only, which shrinks by as much as log ℓ_i grows.
    pub(crate) fn slopes_by_stretch(&self, i: usize, first: usize, b: usize, slope: &mut [f64]) {
        let (u, by_stretch) = (&self.columns[i], &self.by_stretch[i]);
        for (slope, (u_a, by_a)) in
            slope.iter_mut().zip(u[first..].iter().zip(&by_stretch[first..]))
        {
            let apart = u_a - u[b];
            *slope *= if apart == 0.0 { 0.0 } else { (by_stretch[b] - by_a) / apart };
        }
    }

    pub(crate) fn push(&mut self, kernel: &Kernel, point: &[f64]) {
        for (i, (column, &x)) in self.columns.iter_mut().zip(point).enumerate() {
            column.push(kernel.scaled(i, x));
        }
        for (i, (column, &x)) in self.by_stretch.iter_mut().zip(point).enumerate() {
            column.push(kernel.scaled_by_stretch(i, x));
        }
        self.n += 1;
    }

    /// K = base + Σ weight · ∏e over the given components (weights are amplitudes, negative to take a component away);
    /// without a base, K = Σ weight · ∏e. Each block of columns that is done is handed to `done` with the number of its
    /// first column, while it is in the cache.
    pub(crate) fn fill_gram(
        &self,
        kernel: &Kernel,
        base: Option<&Lower>,
        changes: &[(&Component, f64)],
        gram: &mut Lower,
        mut done: impl FnMut(usize, &[f64]),
    ) {
        let n = self.n;
        let fill = |(block, values): (usize, &mut [f64])| {
            let columns = |values: &mut [f64], f: &mut dyn FnMut(usize, &mut [f64])| {
                for (offset, column) in values.chunks_exact_mut(n).enumerate() {
                    let b = block * COLUMN_BLOCK + offset;
                    f(b, &mut column[b..]);
                }
            };
            columns(values, &mut |b, column| match base {
                Some(base) => column.copy_from_slice(base.column(b)),
                None => column.fill(0.0),
            });
            for &(component, weight) in changes {
                columns(values, &mut |b, column| {
                    kernel.add_column(component, self, b, b, weight, column);
                });
            }
        };
        let size = (COLUMN_BLOCK * n).max(1);
        // Blocks are independent, so the number of threads cannot change a bit. Small work is not worth a thread.
        if n * n * changes.len() > 1 << 23 {
            gram.values_mut().par_chunks_mut(size).enumerate().for_each(fill);
            done(0, gram.values_mut());
        } else {
            for (block, values) in gram.values_mut().chunks_mut(size).enumerate() {
                fill((block, values));
                done(block * COLUMN_BLOCK, values);
            }
        }
    }

    /// The matrix K of the summed kernel, without noise.
    pub(crate) fn gram(&self, kernel: &Kernel, components: &[Component]) -> Lower {
        let mut gram = Lower::zeros(self.n);
        let changes: Vec<_> = components.iter().map(|c| (c, kernel.amplitude(c))).collect();
        self.fill_gram(kernel, None, &changes, &mut gram, |_, _| {});
        gram
    }

    /// k[a] = Σ_G κ^G(row a, x) for a point given by its model coordinates.
    pub(crate) fn covariances(
        &self,
        kernel: &Kernel,
        components: &[Component],
        point: &[f64],
    ) -> Vec<f64> {
        self.covariances_of(kernel, components, &self.factors(kernel, point))
    }

    /// As [`Inputs::covariances`], from the factors of the point.
    pub(crate) fn covariances_of(
        &self,
        kernel: &Kernel,
        components: &[Component],
        factors: &[Vec<f64>],
    ) -> Vec<f64> {
        let mut sum = vec![0.0; self.n];
        let mut product = vec![0.0; self.n];
        for component in components {
            if let [i] = *component.variables() {
                simd::add_scaled(&mut sum, kernel.scales[i], &factors[i]);
                continue;
            }
            product.fill(kernel.amplitude(component));
            for &i in component.variables() {
                simd::multiply(&mut product, &factors[i]);
            }
            simd::add_scaled(&mut sum, 1.0, &product);
        }
        sum
    }

    /// e_i(row a, x) for every variable i.
    pub(crate) fn factors(&self, kernel: &Kernel, point: &[f64]) -> Vec<Vec<f64>> {
        let mut factors = vec![vec![0.0; self.n]; self.columns.len()];
        for (i, factor) in factors.iter_mut().enumerate() {
            kernel.factor(i, &self.columns[i], kernel.scaled(i, point[i]), factor);
        }
        factors
    }

    /// [`Inputs::factors`], and their slopes ∂e_i(row a, x)/∂x_i.
    pub(crate) fn factors_and_slopes(
        &self,
        kernel: &Kernel,
        point: &[f64],
    ) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let mut factors = vec![vec![0.0; self.n]; self.columns.len()];
        let mut slopes = factors.clone();
        for (i, (factor, slope)) in factors.iter_mut().zip(&mut slopes).enumerate() {
            let at = kernel.scaled(i, point[i]);
            kernel.factor_and_point_slope(i, &self.columns[i], at, factor, slope);
        }
        (factors, slopes)
    }

    /// For every component the sums ⟨W, ∏e⟩ and ⟨W, ∂(∏e)/∂log ℓ_i⟩ over the whole symmetric matrix W; with stretches, the same by
    /// their logarithms after these.
    pub(crate) fn weighted_sums(
        &self,
        kernel: &Kernel,
        components: &[Component],
        w: &Lower,
    ) -> Vec<Vec<f64>> {
        let n = self.n;
        let slopes = if kernel.stretches.is_empty() { 1 } else { 2 };
        let zeros: Vec<Vec<f64>> =
            components.iter().map(|c| vec![0.0; 1 + slopes * c.variables().len()]).collect();
        let of_block = |block: usize| {
            let mut sums = zeros.clone();
            let columns = block * COLUMN_BLOCK..((block + 1) * COLUMN_BLOCK).min(n);
            for (component, sums) in components.iter().zip(&mut sums) {
                for b in columns.clone() {
                    kernel.add_sums(component, self, b + 1, b, &w.column(b)[1..], sums);
                }
            }
            sums
        };
        let blocks = n.div_ceil(COLUMN_BLOCK);
        // Partial sums are added in the order of the blocks, whoever computed them.
        let parts: Vec<Vec<Vec<f64>>> = if n * n * components.len() > 1 << 21 {
            (0..blocks).into_par_iter().map(of_block).collect()
        } else {
            (0..blocks).map(of_block).collect()
        };
        let mut total = zeros.clone();
        for part in parts {
            for (total, part) in total.iter_mut().zip(part) {
                for (total, part) in total.iter_mut().zip(part) {
                    // Twice, for the upper triangle.
                    *total += 2.0 * part;
                }
            }
        }
        // On the diagonal every factor is 1 and its slope 0.
        let trace: f64 = (0..n).map(|b| w.column(b)[0]).sum();
        for total in &mut total {
            total[0] += trace;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize, dimension: usize) -> Vec<Vec<f64>> {
        (0..dimension)
            .map(|i| (0..n).map(|a| (a as f64 * 0.618 + i as f64 * 0.37).fract()).collect())
            .collect()
    }

    fn kernel(family: KernelFamily, dimension: usize) -> Kernel {
        Kernel {
            family,
            metrics: vec![Metric::Numeric; dimension],
            lengthscales: (0..dimension).map(|i| 0.1 + 0.07 * i as f64).collect(),
            scales: (0..dimension).map(|i| 0.5 + 0.1 * i as f64).collect(),
            same_choices: Vec::new(),
            stretches: Vec::new(),
        }
    }

    fn component(variables: &[usize]) -> Component {
        Component::new(variables.to_vec()).unwrap()
    }

    #[test]
    fn value_is_the_papers_formula() {
        let kernel = kernel(KernelFamily::Rbf, 3);
        let (x, y) = ([0.1, 0.9, 0.4], [0.35, 0.2, 0.5]);
        let g = component(&[0, 2]);
        let exponent: f64 =
            [0, 2].iter().map(|&i| ((x[i] - y[i]) / kernel.lengthscales[i]).powi(2)).sum();
        let amplitude = (kernel.scales[0].powi(2) + kernel.scales[2].powi(2)).sqrt();
        let want = amplitude * (-0.5 * exponent).exp();
        assert!((kernel.value(&g, &x, &y) - want).abs() < 1e-15);
        assert!((kernel.value(&g, &x, &x) - amplitude).abs() < 1e-15);
    }

    #[test]
    fn matern_and_categorical_values() {
        let mut kernel = kernel(KernelFamily::Matern52, 2);
        let s = 5.0_f64.sqrt() * 0.3 / 0.1;
        let want = 0.5 * (1.0 + s + s * s / 3.0) * (-s).exp();
        assert!((kernel.value(&component(&[0]), &[0.1, 0.0], &[0.4, 1.0]) - want).abs() < 1e-15);

        kernel.family = KernelFamily::Rbf;
        kernel.metrics[1] = Metric::Categorical;
        let different = 0.6 * (-0.5 / 0.17_f64.powi(2)).exp();
        let value = |a, b| kernel.value(&component(&[1]), &[0.0, a], &[0.0, b]);
        // The distance of two categories does not depend on their codes.
        assert!((value(0.0, 1.0 / 3.0) - different).abs() < 1e-20);
        assert_eq!(value(0.0, 1.0 / 3.0), value(0.0, 1.0));
        assert!((value(0.5, 0.5) - 0.6).abs() < 1e-16);
    }

    #[test]
    fn gram_equals_the_formula_for_every_kind_of_component() {
        for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
            for n in [1, 7, 8, 9, 41] {
                let mut kernel = kernel(family, 4);
                kernel.metrics[3] = Metric::Categorical;
                let x = data(n, 4);
                let inputs = Inputs::new(&kernel, &x);
                let components = [
                    component(&[0]),
                    component(&[0, 1]),
                    component(&[0, 1, 2]),
                    component(&[2, 3]),
                ];
                let gram = inputs.gram(&kernel, &components);
                let row = |a: usize| x.iter().map(|column| column[a]).collect::<Vec<_>>();
                for b in 0..n {
                    for a in b..n {
                        let want: f64 =
                            components.iter().map(|c| kernel.value(c, &row(a), &row(b))).sum();
                        assert!((gram.column(b)[a - b] - want).abs() < 1e-13);
                    }
                }
                let k = inputs.covariances(&kernel, &components, &row(n / 2));
                for (a, k) in k.iter().enumerate() {
                    let (a, b) = (a.max(n / 2), a.min(n / 2));
                    // Each factor has its own exponential here, with an error of 4e-14.
                    assert!((k - gram.column(b)[a - b]).abs() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn removing_what_was_added_gives_zero() {
        let n = 30;
        let kernel = kernel(KernelFamily::Rbf, 3);
        let inputs = Inputs::new(&kernel, &data(n, 3));
        let (g, h) = (component(&[0, 1]), component(&[1, 2]));
        let both = inputs.gram(&kernel, &[g.clone(), h.clone()]);
        let mut gram = Lower::zeros(n);
        let without = [(&g, -kernel.amplitude(&g))];
        let mut handed = vec![0.0; n * n];
        inputs.fill_gram(&kernel, Some(&both), &without, &mut gram, |first, columns| {
            handed[first * n..first * n + columns.len()].copy_from_slice(columns);
        });
        assert_eq!(handed, gram.values_mut());
        let only = inputs.gram(&kernel, std::slice::from_ref(&h));
        for b in 0..n {
            for (got, want) in gram.column(b).iter().zip(only.column(b)) {
                assert!((got - want).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn fast_sums_equal_sums_by_factors() {
        let n = 37;
        for (family, metric) in [
            (KernelFamily::Rbf, Metric::Numeric),
            (KernelFamily::Rbf, Metric::Categorical),
            (KernelFamily::Matern52, Metric::Numeric),
            (KernelFamily::Matern52, Metric::Categorical),
        ] {
            let mut kernel = kernel(family, 5);
            kernel.metrics[2] = metric;
            // Categories are equal now and then.
            let mut x = data(n, 5);
            x[2].iter_mut().for_each(|x| *x = (*x * 3.0).floor());
            let inputs = Inputs::new(&kernel, &x);
            for g in [&[1][..], &[0, 2], &[0, 1, 2], &[1, 3, 4], &[0, 1, 2, 3, 4]] {
                let g = component(g);
                let w: Vec<f64> = (0..n - 5).map(|a| (a as f64).cos()).collect();
                let mut fast = vec![0.0; 6];
                let mut slow = vec![0.0; 6];
                kernel.add_sums(&g, &inputs, 5, 4, &w, &mut fast);
                kernel.add_sums_by_factors(&g, &inputs, 5, 4, &w, &mut slow);
                let (mut fast_column, mut slow_column) = (w.clone(), w.clone());
                kernel.add_column(&g, &inputs, 5, 4, 0.3, &mut fast_column);
                kernel.add_column_by_factors(&g, &inputs, 5, 4, 0.3, &mut slow_column);
                for (fast, slow) in
                    fast.iter().chain(&fast_column).zip(slow.iter().chain(&slow_column))
                {
                    assert!((fast - slow).abs() < 1e-12, "{fast} {slow}");
                }
            }
        }
    }

    /// What a kernel with stretches says of coordinates is what the same without says of what is seen of them.
    #[test]
    fn a_stretched_kernel_is_that_of_what_is_seen() {
        for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
            let plain = kernel(family, 3);
            let stretched = Kernel { stretches: vec![50.0, 1.0, 0.01], ..plain.clone() };
            let all = component(&[0, 1, 2]);
            let seen = |x: [f64; 3]| {
                [
                    (1.0 + 49.0 * x[0]).ln() / 50_f64.ln(),
                    x[1],
                    (1.0 - 0.99 * x[2]).ln() / 0.01_f64.ln(),
                ]
            };
            for (x, other) in
                [([0.0, 0.3, 1.0], [0.02, 0.5, 0.97]), ([1.0, 0.1, 0.2], [0.4, 0.9, 0.0])]
            {
                let found = stretched.value(&all, &x, &other);
                let wanted = plain.value(&all, &seen(x), &seen(other));
                assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
                // The prior variance of a slope grows with the square of what is seen of a step.
                for i in 0..3 {
                    let step = 1e-4;
                    let mut near = x;
                    near[i] += if x[i] < 0.5 { step } else { -step };
                    let one = component(&[i]);
                    let drop = 1.0 - stretched.value(&one, &x, &near) / stretched.amplitude(&one);
                    let curvature = stretched.curvature(i, 0.5 * (x[i] + near[i]));
                    assert!((2.0 * drop / (step * step) / curvature - 1.0).abs() < 0.05, "{i}");
                }
            }
        }
        for (stretches, reason) in [(vec![1.0; 2], "stretches"), (vec![1.0, 0.0, 1.0], "positive")]
        {
            let refused = Kernel { stretches, ..kernel(KernelFamily::Rbf, 3) }.validate();
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn slopes_equal_finite_differences() {
        let h = 1e-6;
        for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
            for metric in [Metric::Numeric, Metric::Categorical] {
                let mut kernel = Kernel::uniform(family, 1, 0.3, 1.0);
                kernel.metrics[0] = metric;
                let x = [0.1, 0.5, 0.8, 0.55];
                let at = 0.55;
                let values = |kernel: &Kernel, at: f64| {
                    let u: Vec<f64> = x.iter().map(|&x| kernel.scaled(0, x)).collect();
                    let mut out = [0.0; 4];
                    kernel.factor(0, &u, kernel.scaled(0, at), &mut out);
                    out
                };
                let shifted = |log: f64| {
                    let mut kernel = kernel.clone();
                    kernel.lengthscales[0] *= log.exp();
                    values(&kernel, at)
                };
                let u: Vec<f64> = x.iter().map(|&x| kernel.scaled(0, x)).collect();
                let (mut slope, mut factor, mut point) = ([0.0; 4], [0.0; 4], [0.0; 4]);
                kernel.slope(0, &u, kernel.scaled(0, at), &mut slope);
                let scaled = kernel.scaled(0, at);
                kernel.factor_and_point_slope(0, &u, scaled, &mut factor, &mut point);
                assert_eq!(factor, values(&kernel, at));
                let (up, down) = (shifted(h), shifted(-h));
                let (right, left) = (values(&kernel, at + h), values(&kernel, at - h));
                for a in 0..4 {
                    assert!((slope[a] - (up[a] - down[a]) / (2.0 * h)).abs() < 1e-8);
                    if metric == Metric::Numeric {
                        assert!((point[a] - (right[a] - left[a]) / (2.0 * h)).abs() < 1e-8);
                    } else {
                        assert_eq!(point[a], 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        let good = Kernel::uniform(KernelFamily::Rbf, 2, 0.1, 0.5);
        assert!(good.validate().is_ok());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut kernel = good.clone();
            kernel.lengthscales[1] = bad;
            assert!(matches!(kernel.validate(), Err(Error::InvalidSetting { .. })));
            let mut kernel = good.clone();
            kernel.scales[0] = bad;
            assert!(kernel.validate().is_err());
        }
        let mut kernel = good;
        kernel.scales.pop();
        assert!(matches!(kernel.validate(), Err(Error::WrongDimension { .. })));
    }
}
