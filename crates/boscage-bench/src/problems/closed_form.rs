//! Test functions with a formula, a known minimum and a known graph.
//!
//! Paper: section "Experiments with Non-GP Functions" (Hartmann6, Styblinski–Tang) and its supplementary (camelback).
//!
//! Every minimum stated here is that over all of ℝᴰ, not only over the usual domain. A function can therefore be moved about:
//! f(x − t) has the same minimum at x* + t, wherever in the domain that is. Why each minimum is global is said at
//! [`Function::minimum`].
//!
//! Notation: D variables matter, `auxiliary` do not; the *range* of a variable is from its lowest to its highest value.
//!
//! Cost: O(D) for a value.

use boscage::graph::{Edge, Graph};
use boscage::{Parameter, Space, Value};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Optimum, Problem};
use crate::problems::additive::{check_count, check_noise, generator, numbers};
use crate::problems::graphs::MOST_VERTICES;

/// The most variables of the Gaussian, whose graph joins every two.
const MOST_IN_A_CLIQUE: usize = 1_000;

/// How far a moved minimum stays from the boundary, as a share of the range.
pub(super) const MARGIN: f64 = 0.05;

/// The functions. All are to be minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// Hartmann's function of 6 variables: four wells of the form −α exp(−Σ Aⱼ(xⱼ − Pⱼ)²), on \[0, 1\].
    Hartmann6,
    /// The six-hump camel function (4 − 2.1x² + x⁴/3)x² + xy + (4y² − 4)y², on \[−3, 3\] × \[−2, 2\].
    Camelback,
    /// Styblinski–Tang: ½ Σ (x⁴ − 16x² + 5x), on \[−5, 5\]. Any number of variables; 20 if nothing is said.
    StyblinskiTang,
    /// Rosenbrock: Σ 100(xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)², on \[−5, 10\]. Two variables or more; 20 if nothing is said.
    Rosenbrock,
    /// −exp(−4‖x‖²), on \[−1, 1\]. Up to 1,000 variables; 2 if nothing is said.
    Gaussian,
}

/// Heights of the wells.
const HARTMANN_HEIGHTS: [f64; 4] = [1.0, 1.2, 3.0, 3.2];

/// How narrow each well is along each axis.
const HARTMANN_NARROWNESS: [[f64; 6]; 4] = [
    [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
    [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
    [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
    [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
];

/// Centres of the wells.
const HARTMANN_CENTRES: [[f64; 6]; 4] = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
];

// Minima and minimisers: roots of the gradient, by Newton's method in 40 digits, rounded to the nearest f64.
const HARTMANN_MINIMUM: f64 = -3.322368011415515;
const HARTMANN_MINIMISER: [f64; 6] = [
    0.20168951100670542,
    0.15001069182345797,
    0.476873974221897,
    0.2753324304940561,
    0.31165161660011324,
    0.6573005340656203,
];
const CAMELBACK_MINIMUM: f64 = -1.0316284534898774;
const CAMELBACK_MINIMISER: [f64; 2] = [0.08984201310031806, -0.7126564030207396];
const STYBLINSKI_TANG_MINIMUM: f64 = -39.16616570377141;
pub(super) const STYBLINSKI_TANG_MINIMISER: f64 = -2.903534027771177;

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Hartmann6 => "hartmann6",
            Self::Camelback => "camelback",
            Self::StyblinskiTang => "styblinski-tang",
            Self::Rosenbrock => "rosenbrock",
            Self::Gaussian => "gaussian",
        }
    }

    /// The number of variables that matter, if nothing else is said.
    pub fn usual_dimension(self) -> usize {
        match self {
            Self::Hartmann6 => 6,
            Self::Camelback | Self::Gaussian => 2,
            Self::StyblinskiTang | Self::Rosenbrock => 20,
        }
    }

    /// The usual range of variable i.
    fn usual_range(self, i: usize) -> (f64, f64) {
        match self {
            Self::Hartmann6 => (0.0, 1.0),
            Self::Camelback if i == 1 => (-2.0, 2.0),
            Self::Camelback => (-3.0, 3.0),
            Self::StyblinskiTang => (-5.0, 5.0),
            Self::Rosenbrock => (-5.0, 10.0),
            Self::Gaussian => (-1.0, 1.0),
        }
    }

    /// The value at a point, which must have as many numbers as the function has variables.
    pub fn value(self, x: &[f64]) -> f64 {
        match self {
            Self::Hartmann6 => {
                let wells =
                    HARTMANN_HEIGHTS.iter().zip(&HARTMANN_NARROWNESS).zip(&HARTMANN_CENTRES);
                let depth = |((height, narrowness), centre): ((&f64, &[f64; 6]), &[f64; 6])| {
                    let axes = x.iter().zip(narrowness).zip(centre);
                    height * (-axes.map(|((x, a), p)| a * (x - p) * (x - p)).sum::<f64>()).exp()
                };
                -wells.map(depth).sum::<f64>()
            }
            Self::Camelback => match *x {
                [x, y] => {
                    let (xx, yy) = (x * x, y * y);
                    (4.0 - 2.1 * xx + xx * xx / 3.0) * xx + x * y + (4.0 * yy - 4.0) * yy
                }
                _ => f64::NAN,
            },
            Self::StyblinskiTang => {
                0.5 * x.iter().map(|x| ((x * x - 16.0) * x + 5.0) * x).sum::<f64>()
            }
            Self::Rosenbrock => {
                let term = |pair: &[f64]| {
                    100.0 * (pair[1] - pair[0] * pair[0]).powi(2) + (1.0 - pair[0]).powi(2)
                };
                x.windows(2).map(term).sum()
            }
            Self::Gaussian => -(-4.0 * x.iter().map(|x| x * x).sum::<f64>()).exp(),
        }
    }

    /// The smallest value of the function of `dimension` variables over all of ℝᴰ.
    ///
    /// - Hartmann6 is negative and goes to 0 far away, so its minimum is where the gradient vanishes. There every xⱼ is a mean
    ///   of the four centres with positive weights: it lies between them, in the usual domain, whose minimum is known.
    /// - The camel is a polynomial that grows without bound. Outside of its usual domain it is positive: with 2|xy| ≤ x² + y² it
    ///   is at least x²(3.5 − 2.1x² + x⁴/3) + y²(4y² − 4.5); the first term is at least 104 from |x| = 3 on and never below 0,
    ///   the second at least 46 from |y| = 2 on and never below −1.3.
    /// - Styblinski–Tang is a sum over its variables of a quartic that grows without bound and has two minima, of which the
    ///   lower one is meant.
    /// - Rosenbrock is a sum of squares that vanish at (1, …, 1) only.
    /// - The Gaussian is −exp of something that is nowhere above 0.
    pub fn minimum(self, dimension: usize) -> f64 {
        match self {
            Self::Hartmann6 => HARTMANN_MINIMUM,
            Self::Camelback => CAMELBACK_MINIMUM,
            Self::StyblinskiTang => STYBLINSKI_TANG_MINIMUM * dimension as f64,
            Self::Rosenbrock => 0.0,
            Self::Gaussian => -1.0,
        }
    }

    /// All points where the minimum is attained.
    pub fn minimisers(self, dimension: usize) -> Vec<Vec<f64>> {
        match self {
            Self::Hartmann6 => vec![HARTMANN_MINIMISER.to_vec()],
            Self::Camelback => {
                vec![CAMELBACK_MINIMISER.to_vec(), CAMELBACK_MINIMISER.map(|x| -x).to_vec()]
            }
            Self::StyblinskiTang => vec![vec![STYBLINSKI_TANG_MINIMISER; dimension]],
            Self::Rosenbrock => vec![vec![1.0; dimension]],
            Self::Gaussian => vec![vec![0.0; dimension]],
        }
    }

    /// The pairs of variables that share a component. A product over variables, as in Hartmann6 and the Gaussian, is no sum of
    /// functions of fewer of them: it joins them all.
    fn pairs(self, dimension: usize) -> Vec<(usize, usize)> {
        match self {
            Self::StyblinskiTang => Vec::new(),
            Self::Camelback | Self::Rosenbrock => (1..dimension).map(|j| (j - 1, j)).collect(),
            Self::Hartmann6 | Self::Gaussian => {
                (0..dimension).flat_map(|j| (0..j).map(move |i| (i, j))).collect()
            }
        }
    }
}

/// A test function, with what makes it harder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Which function.
    pub function: Function,
    /// Number of variables that matter, for functions of any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Number of variables that do not matter. Their range spans the ranges of the others.
    #[serde(default)]
    pub auxiliary: usize,
    /// Lowest value of every variable, where the usual domain is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Highest value of every variable, where the usual domain is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether the seed permutes the variables.
    #[serde(default)]
    pub permute: bool,
    /// Whether the seed moves the optimum to a random place, at least 5 % of the range from the boundary.
    #[serde(default)]
    pub shift: bool,
    /// Standard deviation of the observation noise.
    #[serde(default)]
    pub noise_std: f64,
    /// Seed of permutation and shift; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl ClosedForm {
    /// The function as it is, without anything that makes it harder.
    pub fn new(function: Function) -> Self {
        Self {
            function,
            dimension: None,
            auxiliary: 0,
            low: None,
            high: None,
            permute: false,
            shift: false,
            noise_std: 0.0,
            draw_seed: None,
        }
    }

    /// Refuses numbers that make no sense.
    pub fn validate(&self) -> Result<()> {
        let name = self.function.name();
        let dimension = self.active();
        let allowed = match self.function {
            Function::Hartmann6 => 6..=6,
            Function::Camelback => 2..=2,
            Function::StyblinskiTang => 1..=MOST_VERTICES,
            Function::Rosenbrock => 2..=MOST_VERTICES,
            Function::Gaussian => 1..=MOST_IN_A_CLIQUE,
        };
        if !allowed.contains(&dimension) {
            let (fewest, most) = (allowed.start(), allowed.end());
            return Err(Error::problem(if fewest == most {
                format!(
                    "{name} has {most} variables, not {dimension}; leave `dimension` out and add others by `auxiliary`"
                )
            } else {
                format!("dimension = {dimension} of {name} is not between {fewest} and {most}")
            }));
        }
        if dimension.saturating_add(self.auxiliary) > MOST_VERTICES {
            return Err(Error::problem(format!(
                "{dimension} variables of {name} and {} auxiliary ones are more than the {MOST_VERTICES} allowed",
                self.auxiliary
            )));
        }
        for i in 0..dimension {
            let (low, high) = self.range(i);
            if !(low < high && (high - low).is_finite()) {
                return Err(Error::problem(format!(
                    "the range of {name} from low = {low} to high = {high} is not one from a finite number to a larger one"
                )));
            }
        }
        if !self.shift && self.minimiser_inside().is_none() {
            let minimiser = self.function.minimisers(dimension).swap_remove(0);
            let shown: Vec<String> = minimiser.iter().take(6).map(|x| format!("{x:.4}")).collect();
            let dots = if dimension > 6 { ", …" } else { "" };
            return Err(Error::problem(format!(
                "the minimum of {name} at ({}{dots}) is outside of the domain that low and high leave; widen it, or set \
                 shift = true to move the minimum inside",
                shown.join(", ")
            )));
        }
        check_noise(self.noise_std)
    }

    /// The number of variables that matter.
    fn active(&self) -> usize {
        self.dimension.unwrap_or(self.function.usual_dimension())
    }

    /// The range of variable i of the function; of an auxiliary one from D on.
    fn range(&self, i: usize) -> (f64, f64) {
        // Variable 0 has the widest usual range of all.
        let usual = self.function.usual_range(if i < self.active() { i } else { 0 });
        (self.low.unwrap_or(usual.0), self.high.unwrap_or(usual.1))
    }

    /// A minimiser that lies in the domain as it is.
    fn minimiser_inside(&self) -> Option<Vec<f64>> {
        self.function.minimisers(self.active()).into_iter().find(|minimiser| {
            minimiser.iter().enumerate().all(|(i, x)| {
                let (low, high) = self.range(i);
                (low..=high).contains(x)
            })
        })
    }

    /// Whether everything is right, and the space of the function of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`ClosedForm::validate`].
    pub fn check(&self, seed: u64) -> Result<Space> {
        Ok(self.build(seed)?.space)
    }

    /// The function with the permutation and shift of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`ClosedForm::validate`].
    pub fn build(&self, seed: u64) -> Result<ClosedFormFunction> {
        self.validate()?;
        let mut rng = generator(self.draw_seed.unwrap_or(seed), 0);
        let active = self.active();
        let dimension = active + self.auxiliary;
        // order[i]: the parameter that variable i of the function became.
        let mut order: Vec<usize> = (0..dimension).collect();
        if self.permute {
            order.shuffle(&mut rng);
        }
        let minimiser = self.function.minimisers(active).swap_remove(0);
        let (target, shift) = match self.minimiser_inside().filter(|_| !self.shift) {
            Some(minimiser) => (minimiser, vec![0.0; active]),
            None => {
                let target = (0..active).map(|i| {
                    let (low, high) = self.range(i);
                    let share = MARGIN + (1.0 - 2.0 * MARGIN) * rng.random::<f64>();
                    low + share * (high - low)
                });
                let target: Vec<f64> = target.collect();
                let shift = target.iter().zip(&minimiser).map(|(to, from)| to - from).collect();
                (target, shift)
            }
        };

        let mut parameters: Vec<Option<Parameter>> = vec![None; dimension];
        let mut values = vec![Value::Real(0.0); dimension];
        for (i, &place) in order.iter().enumerate() {
            let (low, high) = self.range(i);
            parameters[place] = Some(Parameter::real(format!("x{place}"), low, high));
            values[place] = Value::Real(target.get(i).copied().unwrap_or(low + 0.5 * (high - low)));
        }
        let space = Space::new(parameters.into_iter().flatten().collect())?;
        let point = space.encode(&values)?;
        let edges =
            self.function.pairs(active).into_iter().map(|(i, j)| Edge::new(order[i], order[j]));
        let graph = Graph::from_edges(dimension, edges.collect::<boscage::Result<Vec<_>>>()?)?;
        order.truncate(active);
        let value = self.function.minimum(active);
        Ok(ClosedFormFunction {
            space,
            function: self.function,
            order,
            shift,
            noise_std: self.noise_std,
            optimum: Optimum { value, point, certainty: Certainty::Exact },
            graph,
        })
    }
}

/// A test function. It is to be minimised.
#[derive(Debug, Clone)]
pub struct ClosedFormFunction {
    space: Space,
    function: Function,
    /// The parameter of each variable of the function.
    order: Vec<usize>,
    /// What is taken from each variable before the formula is applied.
    shift: Vec<f64>,
    noise_std: f64,
    optimum: Optimum,
    graph: Graph,
}

impl Problem for ClosedFormFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        let x = numbers(values)?;
        check_count(x.len(), &self.space)?;
        let moved: Vec<f64> =
            self.order.iter().zip(&self.shift).map(|(&place, shift)| x[place] - shift).collect();
        Ok(self.function.value(&moved))
    }

    fn noise_std(&self) -> f64 {
        self.noise_std
    }

    fn optimum(&self) -> Option<&Optimum> {
        Some(&self.optimum)
    }

    fn graph(&self) -> Option<&Graph> {
        Some(&self.graph)
    }
}
