//! Functions drawn from an additive GP on a graph.
//!
//! Paper: section "Experiments with Additive GP Functions". Every edge and every isolated vertex of the graph has a
//! component of its own, also inside cliques: f(x) = Σ_G f^G(x^G) with independent f^G from a GP with an RBF kernel.
//!
//! Notation: D variables, m levels k/(m − 1) on each axis, k(x, y) = exp(−(x − y)²/2ℓ²) the kernel of one axis, K its matrix
//! on the levels, r its numerical rank.
//!
//! The kernel of an edge is a product over its two axes, and all axes share K. A Cholesky factorisation of K with pivoting
//! takes r levels p₁ … p_r and gives features φ(x) = L⁻¹ k(p, x), for which φ(x)ᵀφ(y) = k(x, y) on the levels up to
//! [`TOLERANCE`]. Then φ(x)ᵀ Z φ(y) with independent standard normal numbers Z is a draw of a component on the whole grid, and
//! so is φ(x)ᵀ z for a single variable. The same formula is the value anywhere between the levels: the interpolation of the
//! draw on the grid by the kernel itself. That is again a draw from the GP as long as the levels are dense for the
//! lengthscale, which 51 levels are for ℓ = 0.2 by far.
//!
//! Cost: m r² for the features, r² numbers for each edge, D r² for a value. r is 17 for ℓ = 0.2; an m² × m² matrix is never
//! made.

use std::borrow::Cow;
use std::f64::consts::FRAC_1_SQRT_2;
use std::path::Path;
use std::rc::Rc;

use boscage::acquisition::AdditiveFunction;
use boscage::additive_gp::AdditivePrior;
use boscage::graph::{Component, Graph};
use boscage::kernel::{Kernel, KernelFamily};
use boscage::message_passing::{Grid, msg_passing_discrete};
use boscage::stream::{Generator, Purpose};
use boscage::{Parameter, Point, Space, Stream, Value};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Goal, Optimum, Problem};
use crate::problems::graphs::GraphShape;
use crate::run::normal;

/// Noise of the true model of a function that is observed without noise, as a share of its components' deviation.
const LEAST_NOISE: f64 = 1e-3;

/// The largest error of the variance of a drawn function on one axis of its grid, relative to the prior variance. No entry of
/// a covariance matrix is further off than that, or twice that for an edge. A smaller one would be lost in rounding: φ divides by the
/// root of it, so that values are rounded at about 1e-11 of the prior standard deviation.
pub const TOLERANCE: f64 = 1e-10;

/// The most levels of an axis.
pub const MOST_LEVELS: usize = 1_000;

/// The largest standard deviation of noise.
const MOST_NOISE: f64 = 1e100;

/// The most numbers that all components may hold together, 512 MiB; also of all tables in the search for the optimum.
const MOST_NUMBERS: usize = 1 << 26;

/// The largest table that one elimination in the search for the optimum may go through.
const LARGEST_TABLE: f64 = 3e7;

/// The most additions, nearly, in the search for the optimum.
const MOST_WORK: f64 = 5e8;

/// Levels of the grid on which the optimum of a continuous function is looked for first, where that many are affordable.
const SEARCH_LEVELS: usize = 201;

/// The most edges of a graph with cycles whose tree-width is looked at.
const MOST_EDGES_WITH_CYCLES: usize = 4_000;

/// The most rounds of a climb. Each takes every variable once.
const MOST_ROUNDS: usize = 1_000;

/// Whether a drawn function lives on its grid only or everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrawDomain {
    /// Every parameter has `levels` equally spaced values in \[0, 1\].
    #[default]
    Discrete,
    /// Every parameter is real in \[0, 1\]; the function is smooth and agrees with the discrete draw on its grid.
    Continuous,
}

/// A function drawn from an additive GP: one component for each edge of a graph and one for each isolated vertex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdditiveDraw {
    /// The dependency graph.
    pub graph: GraphShape,
    /// Where the function lives.
    #[serde(default)]
    pub domain: DrawDomain,
    /// Levels of the grid along each axis.
    #[serde(default = "fifty_one")]
    pub levels: usize,
    /// Lengthscale of the RBF kernel.
    #[serde(default = "one_fifth")]
    pub lengthscale: f64,
    /// Prior variance of each component.
    #[serde(default = "one")]
    pub variance: f64,
    /// Standard deviation of the observation noise.
    #[serde(default = "paper_noise")]
    pub noise_std: f64,
    /// Seed of graph and function; if it is left out, every seed of the experiment draws its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

fn fifty_one() -> usize {
    51
}
fn one_fifth() -> f64 {
    0.2
}
fn one() -> f64 {
    1.0
}
fn paper_noise() -> f64 {
    0.15
}

impl AdditiveDraw {
    /// A draw on this graph with the numbers of the paper's published experiments: 51 levels, lengthscale 0.2, variance 1 for
    /// every component, noise 0.15. (The text has 50 levels, and its kernel would give an edge the variance √2.)
    pub fn new(graph: GraphShape) -> Self {
        Self {
            graph,
            domain: DrawDomain::default(),
            levels: fifty_one(),
            lengthscale: one_fifth(),
            variance: one(),
            noise_std: paper_noise(),
            draw_seed: None,
        }
    }

    /// Refuses numbers that make no sense. The graph is checked when it is built.
    pub fn validate(&self) -> Result<()> {
        if !(2..=MOST_LEVELS).contains(&self.levels) {
            return Err(Error::problem(format!(
                "levels = {} is not between 2 and {MOST_LEVELS}",
                self.levels
            )));
        }
        // The bounds keep the kernel's numbers finite; beyond them a function is noise or constant.
        for (name, value) in [("lengthscale", self.lengthscale), ("variance", self.variance)] {
            if !(1e-3..=1e3).contains(&value) {
                return Err(Error::problem(format!(
                    "{name} = {value} is not between 0.001 and 1000"
                )));
            }
        }
        check_noise(self.noise_std)
    }

    /// Draws the function of this seed. `folder` is where relative paths begin.
    ///
    /// # Errors
    ///
    /// Those of [`AdditiveDraw::validate`] and [`GraphShape::build`]; also if the function would need too much memory.
    pub fn build(&self, seed: u64, folder: &Path) -> Result<DrawnFunction> {
        let mut function = self.draw(seed, folder)?;
        function.optimum = match self.domain {
            DrawDomain::Discrete => function.best_on_grid()?,
            DrawDomain::Continuous => function.best_anywhere()?,
        };
        Ok(function)
    }

    /// Whether everything is right, and the space of the function of this seed. Takes less time than building it: the
    /// optimum is not looked for.
    ///
    /// # Errors
    ///
    /// Those of [`AdditiveDraw::build`].
    pub fn check(&self, seed: u64, folder: &Path) -> Result<Space> {
        Ok(self.draw(seed, folder)?.space)
    }

    /// The function, without its optimum.
    fn draw(&self, seed: u64, folder: &Path) -> Result<DrawnFunction> {
        self.validate()?;
        let seed = self.draw_seed.unwrap_or(seed);
        let graph = self.graph.build(&mut generator(seed, 0), folder)?;
        let axis = even_levels(self.levels);
        let parameters = (0..graph.dimension()).map(|i| match self.domain {
            DrawDomain::Discrete => Parameter::ordinal(format!("x{i}"), axis.clone()),
            DrawDomain::Continuous => Parameter::real(format!("x{i}"), 0.0, 1.0),
        });
        let space = Space::new(parameters.collect())?;

        let features = Features::new(&axis, self.lengthscale);
        let isolated = (0..graph.dimension())
            .filter(|&i| graph.neighbors(i).is_empty())
            .map(Component::single);
        let components: Vec<Component> =
            graph.edges().iter().map(|&edge| Component::pair(edge)).chain(isolated).collect();
        let rank = features.rank();
        let numbers = components.len().saturating_mul(rank * rank);
        if numbers > MOST_NUMBERS {
            return Err(Error::problem(format!(
                "{} components of {rank}² numbers each are more than the {MOST_NUMBERS} numbers allowed; use fewer levels, \
                 a larger lengthscale or a smaller graph",
                components.len()
            )));
        }
        let std = self.variance.sqrt();
        let weights = components.iter().zip(1..).map(|(component, number)| {
            // A generator for each component: what one draws does not depend on how much another drew.
            let mut rng = generator(seed, number);
            draw_weights(rank, component.len(), std, &mut rng)
        });
        let weights = weights.collect();
        let tabulated = match self.domain {
            DrawDomain::Discrete => axis.iter().map(|&x| features.at(x)).collect(),
            DrawDomain::Continuous => Vec::new(),
        };
        Ok(DrawnFunction {
            space,
            graph,
            components,
            weights,
            features,
            axis,
            tabulated,
            noise_std: self.noise_std,
            lengthscale: self.lengthscale,
            variance: self.variance,
            optimum: None,
        })
    }
}

/// Refuses noise whose squares, or sums of them, would not be finite.
pub(super) fn check_noise(noise_std: f64) -> Result<()> {
    if (0.0..=MOST_NOISE).contains(&noise_std) {
        return Ok(());
    }
    Err(Error::problem(format!("noise_std = {noise_std:?} is not between 0 and {MOST_NOISE:e}")))
}

/// The generator of one part of a problem.
pub(super) fn generator(seed: u64, part: u64) -> Generator {
    Stream::new(seed, part).generator(Purpose::Problem)
}

fn even_levels(count: usize) -> Vec<f64> {
    (0..count).map(|k| k as f64 / (count - 1) as f64).collect()
}

/// Independent normal numbers: r for a single variable, r × r for an edge, row by row.
///
/// They are drawn so that a smaller rank takes the first of the same numbers: should rounding on another machine lead to
/// another rank, the function is still the same.
fn draw_weights(rank: usize, variables: usize, std: f64, rng: &mut Generator) -> Vec<f64> {
    let mut normal = || normal(std, rng);
    if variables == 1 {
        return (0..rank).map(|_| normal()).collect();
    }
    let mut weights = vec![0.0; rank * rank];
    for k in 0..rank {
        for j in 0..k {
            weights[k * rank + j] = normal();
            weights[j * rank + k] = normal();
        }
        weights[k * rank + k] = normal();
    }
    weights
}

/// The features φ of one axis.
#[derive(Debug, Clone)]
struct Features {
    /// 1/2ℓ².
    decay: f64,
    /// p₁ … p_r.
    pivots: Vec<f64>,
    /// L, a row for each pivot.
    rows: Vec<Vec<f64>>,
}

impl Features {
    /// Cholesky with pivoting: the next pivot is the level whose variance is worst explained by those before.
    fn new(axis: &[f64], lengthscale: f64) -> Self {
        let mut features =
            Self { decay: 0.5 / (lengthscale * lengthscale), pivots: Vec::new(), rows: Vec::new() };
        let mut unexplained = vec![1.0; axis.len()];
        let mut columns: Vec<Vec<f64>> = Vec::new();
        loop {
            let worst = unexplained.iter().copied().fold(0.0, f64::max);
            // The grid is symmetric, so ties are common. They must not be broken by rounding, which differs between machines.
            let pivot = unexplained.iter().position(|&left| left >= worst * (1.0 - 1e-3));
            let Some(pivot) = pivot.filter(|_| worst > TOLERANCE) else {
                return features;
            };
            let root = unexplained[pivot].sqrt();
            let column: Vec<f64> = (0..axis.len())
                .map(|i| {
                    let explained: f64 =
                        columns.iter().map(|column| column[i] * column[pivot]).sum();
                    (features.kernel(axis[i], axis[pivot]) - explained) / root
                })
                .collect();
            for (left, entry) in unexplained.iter_mut().zip(&column) {
                *left -= entry * entry;
            }
            unexplained[pivot] = 0.0;
            features.rows.push(columns.iter().map(|column| column[pivot]).chain([root]).collect());
            features.pivots.push(axis[pivot]);
            columns.push(column);
        }
    }

    fn kernel(&self, x: f64, y: f64) -> f64 {
        (-self.decay * (x - y) * (x - y)).exp()
    }

    fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// φ(x), by forward substitution.
    fn at(&self, x: f64) -> Vec<f64> {
        let mut features: Vec<f64> = Vec::with_capacity(self.rank());
        for (pivot, row) in self.pivots.iter().zip(&self.rows) {
            let explained = dot(row, &features);
            features.push((self.kernel(x, *pivot) - explained) / row[features.len()]);
        }
        features
    }
}

/// Of as many numbers as the shorter has.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A drawn function. It is to be maximised.
#[derive(Debug, Clone)]
pub struct DrawnFunction {
    space: Space,
    graph: Graph,
    /// The edges in order, then the isolated vertices.
    components: Vec<Component>,
    /// Z of each component.
    weights: Vec<Vec<f64>>,
    features: Features,
    /// The levels.
    axis: Vec<f64>,
    /// φ at each level; empty if the function lives everywhere.
    tabulated: Vec<Vec<f64>>,
    noise_std: f64,
    lengthscale: f64,
    variance: f64,
    optimum: Option<Optimum>,
}

impl DrawnFunction {
    /// φ at a value of a variable.
    fn features_at(&self, x: f64) -> Result<Cow<'_, [f64]>> {
        if self.tabulated.is_empty() {
            if (0.0..=1.0).contains(&x) {
                return Ok(Cow::Owned(self.features.at(x)));
            }
            return Err(Error::Evaluation { reason: format!("{x} is not between 0 and 1") });
        }
        // A number below 0 or NaN becomes level 0, which it does not equal.
        let level = (x * (self.axis.len() - 1) as f64).round() as usize;
        match (self.axis.get(level), self.tabulated.get(level)) {
            (Some(&at), Some(features)) if at == x => Ok(Cow::Borrowed(features)),
            _ => {
                let levels = self.axis.len();
                let reason = format!("{x} is not one of the {levels} levels between 0 and 1");
                Err(Error::Evaluation { reason })
            }
        }
    }

    /// Σ_G f^G.
    fn value_at(&self, x: &[f64]) -> Result<f64> {
        check_count(x.len(), &self.space)?;
        let features = x.iter().map(|&x| self.features_at(x)).collect::<Result<Vec<_>>>()?;
        let value = |component: &Component, weights: &[f64]| match *component.variables() {
            [i, j] => {
                let rows = weights.chunks_exact(self.features.rank());
                features[i].iter().zip(rows).map(|(a, row)| a * dot(row, &features[j])).sum()
            }
            [i] => dot(weights, &features[i]),
            _ => 0.0,
        };
        Ok(self.components.iter().zip(&self.weights).map(|(g, weights)| value(g, weights)).sum())
    }

    /// Whether message passing on a grid with this many levels is affordable. `width` is the induced width.
    fn affordable(&self, width: usize, levels: usize) -> bool {
        let largest = (levels as f64).powi(width as i32 + 1);
        self.components.len().saturating_mul(levels * levels) <= MOST_NUMBERS
            && largest <= LARGEST_TABLE
            && largest * self.graph.dimension() as f64 <= MOST_WORK
    }

    /// The induced width of the graph, if it is small enough to be of use.
    fn width(&self) -> Option<usize> {
        // Finding a good order takes long on large graphs with cycles, and shows nothing but that the width is large.
        if self.graph.edge_count() > MOST_EDGES_WITH_CYCLES && !self.graph.is_forest() {
            return None;
        }
        let width = self.graph.elimination_order().induced_width;
        self.affordable(width, 2).then_some(width)
    }

    fn grid(&self, levels: usize) -> Result<Grid> {
        Ok(Grid::new(vec![even_levels(levels); self.graph.dimension()])?)
    }

    /// The optimum of a function on its grid, by message passing over all levels.
    fn best_on_grid(&self) -> Result<Option<Optimum>> {
        let levels = self.axis.len();
        if !self.width().is_some_and(|width| self.affordable(width, levels)) {
            return Ok(None);
        }
        let point = msg_passing_discrete(self, &self.grid(levels)?)?.point;
        Ok(Some(Optimum {
            value: self.value_at(point.as_slice())?,
            point,
            certainty: Certainty::Exact,
        }))
    }

    /// The optimum of a function that lives everywhere: that of a fine grid, then a climb.
    fn best_anywhere(&self) -> Result<Option<Optimum>> {
        // A grid that is coarse for the lengthscale could miss the best hill: at least two steps a lengthscale.
        let fewest = (2.0 * (2.0 * self.features.decay).sqrt()).ceil() as usize + 1;
        let levels = |width| {
            (fewest..=SEARCH_LEVELS.max(fewest))
                .rev()
                .find(|&levels| self.affordable(width, levels))
        };
        let Some(levels) = self.width().and_then(levels) else {
            return Ok(None);
        };
        let start = msg_passing_discrete(self, &self.grid(levels)?)?.point;
        let point = Point(self.climb(start.0, levels));
        Ok(Some(Optimum {
            value: self.value_at(point.as_slice())?,
            point,
            certainty: Certainty::Polished,
        }))
    }

    /// Improves one variable after the other until nothing changes. With the others fixed, f is φ(x)ᵀv plus a constant: the
    /// best of all levels is found by trying them, and the place between its neighbours by golden section.
    fn climb(&self, mut x: Vec<f64>, levels: usize) -> Vec<f64> {
        let axis = even_levels(levels);
        let on_axis: Vec<Vec<f64>> = axis.iter().map(|&x| self.features.at(x)).collect();
        let mut features: Vec<Vec<f64>> = x.iter().map(|&x| self.features.at(x)).collect();
        let mut members = vec![Vec::new(); x.len()];
        for (number, component) in self.components.iter().enumerate() {
            for &i in component.variables() {
                members[i].push(number);
            }
        }
        for _ in 0..MOST_ROUNDS {
            let mut gain = 0.0;
            for i in 0..x.len() {
                let slope = self.slope(i, &members[i], &features);
                let value = |x: f64| dot(&self.features.at(x), &slope);
                let now = dot(&features[i], &slope);
                let heights: Vec<f64> =
                    on_axis.iter().map(|features| dot(features, &slope)).collect();
                let top =
                    (0..levels).max_by(|&a, &b| heights[a].total_cmp(&heights[b])).unwrap_or(0);
                // Where the level does no better than the present place, the hill is the one of the present place.
                let step = 1.0 / (levels - 1) as f64;
                let centre = if heights[top] > now { axis[top] } else { x[i] };
                let between =
                    golden_section(value, (centre - step).max(0.0), (centre + step).min(1.0));
                let better = [(between, value(between)), (axis[top], heights[top])];
                for (place, height) in better {
                    if height > dot(&features[i], &slope) {
                        x[i] = place;
                        features[i] = self.features.at(place);
                    }
                }
                gain += dot(&features[i], &slope) - now;
            }
            if gain <= 1e-12 * self.weights.len() as f64 {
                break;
            }
        }
        x
    }

    /// v, with which φ(x)ᵀv is the part of f that depends on variable i.
    fn slope(&self, i: usize, components: &[usize], features: &[Vec<f64>]) -> Vec<f64> {
        let rank = self.features.rank();
        let mut slope = vec![0.0; rank];
        for &number in components {
            let weights = &self.weights[number];
            match *self.components[number].variables() {
                [low, high] if low == i => {
                    for (slope, row) in slope.iter_mut().zip(weights.chunks_exact(rank)) {
                        *slope += dot(row, &features[high]);
                    }
                }
                [low, _] => {
                    for (row, other) in weights.chunks_exact(rank).zip(&features[low]) {
                        for (slope, weight) in slope.iter_mut().zip(row) {
                            *slope += weight * other;
                        }
                    }
                }
                _ => {
                    for (slope, weight) in slope.iter_mut().zip(weights) {
                        *slope += weight;
                    }
                }
            }
        }
        slope
    }
}

/// The place of the maximum of a function with one hill.
fn golden_section(value: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut value_a, mut value_b) = (value(a), value(b));
    while high - low > 1e-9 {
        if value_a >= value_b {
            (high, b, value_b) = (b, a, value_a);
            a = high - ratio * (high - low);
            value_a = value(a);
        } else {
            (low, a, value_a) = (a, b, value_b);
            b = low + ratio * (high - low);
            value_b = value(b);
        }
    }
    if value_a >= value_b { a } else { b }
}

impl AdditiveFunction for DrawnFunction {
    fn components(&self) -> &[Component] {
        &self.components
    }

    fn tabulate(&self, grid: &Grid) -> boscage::Result<Vec<Vec<f64>>> {
        if grid.dimension() != self.graph.dimension() {
            return Err(boscage::Error::WrongDimension {
                what: "the grid",
                expected: self.graph.dimension(),
                found: grid.dimension(),
            });
        }
        let rank = self.features.rank();
        let axes = self.features_of_axes(grid);
        let tables = self.components.iter().zip(&self.weights).map(|(component, weights)| {
            let mut table = Vec::new();
            match *component.variables() {
                [i, j] => {
                    // Zφ(y) once for each y.
                    let turned = |y: &Vec<f64>| {
                        weights.chunks_exact(rank).map(|row| dot(row, y)).collect::<Vec<_>>()
                    };
                    let turned: Vec<Vec<f64>> = axes[j].iter().map(turned).collect();
                    table.reserve(axes[i].len() * turned.len());
                    for x in axes[i].iter() {
                        table.extend(turned.iter().map(|y| dot(x, y)));
                    }
                }
                [i] => table.extend(axes[i].iter().map(|x| dot(weights, x))),
                _ => {}
            }
            table
        });
        Ok(tables.collect())
    }
}

impl DrawnFunction {
    /// φ at all values of a grid. Equal axes, which nearly all are, are worked out once.
    fn features_of_axes(&self, grid: &Grid) -> Vec<Rc<Vec<Vec<f64>>>> {
        let mut axes: Vec<Rc<Vec<Vec<f64>>>> = Vec::with_capacity(grid.dimension());
        for i in 0..grid.dimension() {
            let same =
                axes.last().filter(|_| i > 0 && grid.axis(i) == grid.axis(i - 1)).map(Rc::clone);
            let compute = || Rc::new(grid.axis(i).iter().map(|&x| self.features.at(x)).collect());
            axes.push(same.unwrap_or_else(compute));
        }
        axes
    }
}

impl Problem for DrawnFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn goal(&self) -> Goal {
        Goal::Maximize
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        self.value_at(&numbers(values)?)
    }

    fn noise_std(&self) -> f64 {
        self.noise_std
    }

    fn optimum(&self) -> Option<&Optimum> {
        self.optimum.as_ref()
    }

    fn graph(&self) -> Option<&Graph> {
        Some(&self.graph)
    }

    fn truth(&self) -> Option<AdditivePrior> {
        let dimension = self.space.dimension();
        // The variance of a component is √(Σσ_i²): an edge gets σ_i = variance/√2 from each of its two variables.
        let scale = |i: usize| {
            let isolated = self.graph.neighbors(i).is_empty();
            if isolated { self.variance } else { self.variance * FRAC_1_SQRT_2 }
        };
        let mut kernel =
            Kernel::uniform(KernelFamily::Rbf, dimension, self.lengthscale, self.variance);
        kernel.scales = (0..dimension).map(scale).collect();
        let mut components = self.components.clone();
        components.sort_unstable();
        // A GP without noise is not one that can be conditioned on everything.
        let noise_std = self.noise_std.max(LEAST_NOISE * self.variance.sqrt());
        Some(AdditivePrior {
            components,
            kernel,
            noise_std,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        })
    }
}

/// Refuses a list of values of the wrong length.
pub(super) fn check_count(found: usize, space: &Space) -> Result<()> {
    let expected = space.dimension();
    if found == expected {
        return Ok(());
    }
    Err(Error::Evaluation { reason: format!("there are {found} values for {expected} parameters") })
}

/// The values as numbers.
pub(super) fn numbers(values: &[Value]) -> Result<Vec<f64>> {
    let number = |value: &Value| {
        value
            .as_f64()
            .ok_or_else(|| Error::Evaluation { reason: format!("{value} is not a number") })
    };
    values.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    fn kernel(x: f64, y: f64, lengthscale: f64) -> f64 {
        (-(x - y) * (x - y) / (2.0 * lengthscale * lengthscale)).exp()
    }

    #[test]
    fn features_multiply_to_the_kernel() {
        for (levels, lengthscale) in [
            (2, 0.2),
            (3, 1000.0),
            (51, 0.2),
            (150, 0.2),
            (51, 0.01),
            (40, 0.001),
            (151, 0.05),
            (1000, 0.2),
        ] {
            let axis = even_levels(levels);
            let features = Features::new(&axis, lengthscale);
            assert!(features.rank() <= levels);
            let on_axis: Vec<Vec<f64>> = axis.iter().map(|&x| features.at(x)).collect();
            for i in 0..levels {
                for j in 0..=i {
                    let off = dot(&on_axis[i], &on_axis[j]) - kernel(axis[i], axis[j], lengthscale);
                    assert!(
                        off.abs() < 2.0 * TOLERANCE,
                        "{levels} levels, ℓ = {lengthscale}: {off}"
                    );
                }
            }
        }
    }

    #[test]
    fn features_multiply_to_the_kernel_between_the_levels_of_a_dense_grid() {
        let mut rng = generator(0, 0);
        for (levels, lengthscale, bound) in
            [(51, 0.2, 1e-9), (150, 0.2, 1e-9), (101, 0.1, 1e-9), (21, 0.2, 1e-8)]
        {
            let features = Features::new(&even_levels(levels), lengthscale);
            for _ in 0..2_000 {
                let (x, y): (f64, f64) = (rng.random(), rng.random());
                let off = dot(&features.at(x), &features.at(y)) - kernel(x, y, lengthscale);
                assert!(off.abs() < bound, "{levels} levels, ℓ = {lengthscale}: {off}");
            }
        }
    }

    #[test]
    fn the_rank_hardly_depends_on_the_levels() {
        for levels in [51, 150, 1000] {
            let rank = Features::new(&even_levels(levels), 0.2).rank();
            assert!((12..=18).contains(&rank), "{rank}");
        }
    }

    #[test]
    fn continuous_draws_have_the_covariance_of_the_kernel_between_the_levels() {
        // An edge and an isolated vertex at 8 random points, 8,000 draws; covariances of the whole function in standard
        // errors √((Σ_aa Σ_bb + Σ_ab²) / n).
        let spec = AdditiveDraw {
            domain: DrawDomain::Continuous,
            ..AdditiveDraw::new(GraphShape::Partition { sizes: vec![2, 1] })
        };
        let mut rng = generator(1, 0);
        let first: [f64; 3] = std::array::from_fn(|_| rng.random());
        // Half of the points are near the first, so that their covariances are not small.
        let points: Vec<[f64; 3]> = (0..8)
            .map(|k| match k {
                0..4 => first.map(|x| (x + 0.2 * (rng.random::<f64>() - 0.5)).clamp(0.0, 1.0)),
                _ => std::array::from_fn(|_| rng.random()),
            })
            .collect();
        let draws = 8_000;
        let mut products = [[0.0; 8]; 8];
        for seed in 0..draws {
            let function = spec.draw(seed, Path::new(".")).unwrap();
            let values: Vec<f64> = points.iter().map(|x| function.value_at(x).unwrap()).collect();
            for a in 0..8 {
                for b in 0..8 {
                    products[a][b] += values[a] * values[b] / draws as f64;
                }
            }
        }
        let covariance = |a: usize, b: usize| {
            let k = |i: usize| kernel(points[a][i], points[b][i], 0.2);
            k(0) * k(1) + k(2)
        };
        for (a, products) in products.iter().enumerate() {
            for (b, product) in products.iter().enumerate() {
                let error = ((4.0 + covariance(a, b).powi(2)) / draws as f64).sqrt();
                let off = (product - covariance(a, b)) / error;
                assert!(off.abs() < 4.0, "{a} {b}: {off} standard errors");
            }
        }
    }

    #[test]
    fn a_smaller_rank_takes_the_first_of_the_same_numbers() {
        let (large, small) = (
            draw_weights(5, 2, 1.0, &mut generator(3, 1)),
            draw_weights(3, 2, 1.0, &mut generator(3, 1)),
        );
        for i in 0..3 {
            assert_eq!(large[i * 5..i * 5 + 3], small[i * 3..i * 3 + 3]);
        }
    }

    #[test]
    fn golden_section_finds_the_top() {
        approx::assert_abs_diff_eq!(
            golden_section(|x| -(x - 0.3).powi(2), 0.0, 1.0),
            0.3,
            epsilon = 1e-7
        );
        approx::assert_abs_diff_eq!(golden_section(|x| x, 0.0, 1.0), 1.0, epsilon = 1e-8);
        assert_eq!(golden_section(|x| x, 0.5, 0.5), 0.5);
    }

    #[test]
    fn a_slope_is_the_change_of_the_function() {
        let spec = AdditiveDraw::new(GraphShape::Partition { sizes: vec![3, 1] });
        let spec = AdditiveDraw { domain: DrawDomain::Continuous, ..spec };
        let function = spec.draw(2, Path::new(".")).unwrap();
        let x = [0.11, 0.52, 0.83, 0.34];
        let features: Vec<Vec<f64>> = x.iter().map(|&x| function.features.at(x)).collect();
        for i in 0..4 {
            let of_i = |number: &usize| function.components[*number].contains(i);
            let members: Vec<usize> = (0..function.components.len()).filter(of_i).collect();
            let slope = function.slope(i, &members, &features);
            let mut moved = x;
            moved[i] = 0.7;
            let change = function.value_at(&moved).unwrap() - function.value_at(&x).unwrap();
            let expected = dot(&function.features.at(0.7), &slope) - dot(&features[i], &slope);
            approx::assert_abs_diff_eq!(change, expected, epsilon = 1e-12);
        }
    }
}
