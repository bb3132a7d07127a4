//! Test functions of all variables at once: turned about by a random rotation, or hidden in a random subspace.
//!
//! No variable and no pair of variables explains such a function, so these are problems on which a sum over the edges of a
//! forest is the wrong model. f(R(x − x*)) with a random orthogonal matrix R and a random place x* of the minimum, both drawn by
//! the seed. Without the rotation, f(x − x*) is what many test functions are, but with its minimum elsewhere for every variable: not
//! at the centre, and not on a diagonal.
//!
//! Sources:
//! - Ackley: D. Ackley, *A Connectionist Machine for Genetic Hillclimbing*, 1987; on \[−5, 10\] as in Eriksson et al.,
//!   *Scalable Global Optimization via Local Bayesian Optimization*, NeurIPS 2019. Rotated as in Li et al., *Benchmark Functions
//!   for the CEC'2013 Special Session*, 2013.
//! - Lévy: M. Laguna, R. Martí, *Experimental Testing of Advanced Scatter Search Designs*, 2005, after Lévy and Montalvo.
//! - Rastrigin, the ellipsoid and Rosenbrock, rotated: N. Hansen et al., *Real-Parameter Black-Box Optimization Benchmarking 2009:
//!   Noiseless Functions Definitions*, INRIA RR-6829, 2009 (without its further distortions); Rosenbrock on about the range of K. De
//!   Jong's thesis, 1975.
//! - Griewank: A. Griewank, *Generalized Descent for Global Optimization*, JOTA 1981.
//! - Styblinski–Tang: M. Styblinski, T. Tang, *Experiments in Nonconvex Optimization*, Neural Networks 1990.
//! - The rotated ellipsoid in integers: N. Hansen, *A CMA-ES for Mixed-Integer Nonlinear Optimization*, INRIA RR-7751, 2011. Its
//!   condition number is 10⁶ there and 100 here: a few hundred evaluations would see nothing but the longest axis.
//! - Hartmann6 in a random subspace: Z. Wang et al., *Bayesian Optimization in a Billion Dimensions via Random Embeddings*, JAIR
//!   2016; B. Letham et al., *Re-Examining Linear Embeddings for High-Dimensional Bayesian Optimization*, NeurIPS 2020.
//!
//! Notation: D variables, of which the function sees m directions: D, but 6 for Hartmann6 and 8 for the quadratic function.
//!
//! Cost: O(Dm) for a value, O(Dm²) to draw the directions.

use boscage::stream::Generator;
use boscage::{Parameter, Space, Value};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Optimum, Problem};
use crate::problems::additive::{check_count, check_noise, generator, numbers};
use crate::problems::closed_form::{Function, MARGIN, STYBLINSKI_TANG_MINIMISER};
use crate::run::normal;

/// The most variables: the matrix of directions has as many numbers as their square.
const MOST_VARIABLES: usize = 1_000;

/// Condition number of the ellipsoid.
const CONDITION: f64 = 100.0;

/// What a step in a direction of x is in Hartmann6's unit cube. Uniform x in \[−1, 1\]ᴰ have the standard deviation 1/√3 in every
/// direction; half of that is the deviation of a uniform number in \[0, 1\].
const EMBEDDING_SCALE: f64 = 0.5;

/// Directions that the quadratic function sees.
const QUADRATIC_DIRECTIONS: usize = 8;

/// The functions. All are to be minimised, and their minimum over all of ℝᵐ is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotatedFunction {
    /// Ackley: 20 − 20 exp(−0.2 √(Σz²/D)) + e − exp(Σ cos(2πz)/D), on \[−5, 10\]. 20 variables if nothing is said.
    Ackley,
    /// Lévy: sin²(πw₁) + Σ (wᵢ − 1)² (1 + 10 sin²(πwᵢ + 1)) + (w_D − 1)² (1 + sin²(2πw_D)) with w = 1 + z/4, the sum without the
    /// last variable, on \[−10, 10\]. 12 variables if nothing is said.
    Levy,
    /// An ellipsoid Σ 100^((i−1)/(D−1)) zᵢ², on \[−10, 10\]. 16 variables if nothing is said.
    Ellipsoid,
    /// Hartmann's function of 6 variables at ½ + ½z, where z are the coordinates of x in a random subspace of 6 dimensions; x is
    /// in \[−1, 1\]. 40 variables if nothing is said.
    Hartmann6,
    /// Rastrigin: Σ z² + 10 (1 − cos(2πz)), on \[−5, 5\]. 10 variables if nothing is said.
    Rastrigin,
    /// Griewank: Σ z²/4000 + 1 − ∏ cos(zᵢ/√i), on \[−600, 600\]. 10 variables if nothing is said.
    Griewank,
    /// Rosenbrock: Σ 100(wᵢ₊₁ − wᵢ²)² + (1 − wᵢ)² with w = 1 + z, on \[−2, 2\]. 10 variables if nothing is said.
    Rosenbrock,
    /// Styblinski–Tang: ½ Σ (w⁴ − 16w² + 5w), less its minimum, with w = z − 2.9035…, where that is; on \[−5, 5\]. 15 variables if
    /// nothing is said.
    StyblinskiTang,
    /// Σ i zᵢ², where z are the coordinates of x in a random subspace of 8 dimensions, on \[−5, 5\]: whole planes of minima. 100
    /// variables if nothing is said.
    Quadratic,
}

impl RotatedFunction {
    fn name(self) -> &'static str {
        match self {
            Self::Ackley => "ackley",
            Self::Levy => "levy",
            Self::Ellipsoid => "ellipsoid",
            Self::Hartmann6 => "hartmann6",
            Self::Rastrigin => "rastrigin",
            Self::Griewank => "griewank",
            Self::Rosenbrock => "rosenbrock",
            Self::StyblinskiTang => "styblinski-tang",
            Self::Quadratic => "quadratic",
        }
    }

    fn usual_dimension(self) -> usize {
        match self {
            Self::Ackley => 20,
            Self::Levy => 12,
            Self::Ellipsoid => 16,
            Self::Hartmann6 => 40,
            Self::Rastrigin | Self::Griewank | Self::Rosenbrock => 10,
            Self::StyblinskiTang => 15,
            Self::Quadratic => 100,
        }
    }

    /// m, of D variables.
    fn directions(self, dimension: usize) -> usize {
        match self {
            Self::Hartmann6 => 6,
            Self::Quadratic => QUADRATIC_DIRECTIONS,
            _ => dimension,
        }
    }

    /// The range of every variable.
    fn range(self) -> (i64, i64) {
        match self {
            Self::Ackley => (-5, 10),
            Self::Levy | Self::Ellipsoid => (-10, 10),
            Self::Hartmann6 => (-1, 1),
            Self::Rastrigin | Self::StyblinskiTang | Self::Quadratic => (-5, 5),
            Self::Griewank => (-600, 600),
            Self::Rosenbrock => (-2, 2),
        }
    }

    /// The fewest variables, with which there is something to turn.
    fn fewest(self) -> usize {
        self.directions(2)
    }

    /// The value at z, before anything is turned. All but Hartmann6 are 0 at 0, and positive elsewhere.
    pub fn value(self, z: &[f64]) -> f64 {
        let count = z.len() as f64;
        match self {
            Self::Ackley => ackley(z.iter().copied()),
            Self::Levy => {
                let pi = std::f64::consts::PI;
                let last = z.len().saturating_sub(1);
                let term = |(i, z): (usize, &f64)| {
                    let (rise, w) = (z / 4.0, 1.0 + z / 4.0);
                    let wave = if i == last {
                        1.0 + (2.0 * pi * w).sin().powi(2)
                    } else {
                        1.0 + 10.0 * (pi * w + 1.0).sin().powi(2)
                    };
                    rise * rise * wave
                };
                // sin(π(1 + z/4)) = −sin(πz/4), which is 0 at 0 without rounding.
                let first = z.first().map_or(0.0, |z| (pi * z / 4.0).sin().powi(2));
                first + z.iter().enumerate().map(term).sum::<f64>()
            }
            Self::Ellipsoid => {
                let stretch = |i: usize| CONDITION.powf(i as f64 / (count - 1.0).max(1.0));
                z.iter().enumerate().map(|(i, z)| stretch(i) * z * z).sum()
            }
            Self::Hartmann6 => {
                let inside: Vec<f64> = z.iter().map(|z| 0.5 + EMBEDDING_SCALE * z).collect();
                Function::Hartmann6.value(&inside)
            }
            Self::Rastrigin => {
                let wave = |z: f64| 10.0 * (1.0 - (std::f64::consts::TAU * z).cos());
                z.iter().map(|&z| z * z + wave(z)).sum()
            }
            Self::Griewank => {
                let bowl: f64 = z.iter().map(|z| z * z / 4_000.0).sum();
                let wave = |(i, z): (usize, &f64)| (z / ((i + 1) as f64).sqrt()).cos();
                bowl + 1.0 - z.iter().enumerate().map(wave).product::<f64>()
            }
            Self::Rosenbrock => {
                let moved: Vec<f64> = z.iter().map(|z| 1.0 + z).collect();
                Function::Rosenbrock.value(&moved)
            }
            Self::StyblinskiTang => {
                // The quartic around its minimum at a, where it has no linear term. No digits are lost near 0, and the factor of
                // z² has no roots: 64 < 8a².
                let a = STYBLINSKI_TANG_MINIMISER;
                z.iter().map(|z| 0.5 * z * z * (z * z + 4.0 * a * z + 6.0 * a * a - 16.0)).sum()
            }
            Self::Quadratic => z.iter().enumerate().map(|(i, z)| (i + 1) as f64 * z * z).sum(),
        }
    }
}

/// Ackley's function, 0 at 0.
pub(super) fn ackley(z: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = z.len() as f64;
    let (mut squares, mut waves) = (0.0, 0.0);
    for z in z {
        squares += z * z;
        waves += (std::f64::consts::TAU * z).cos();
    }
    // Differences from 1 keep the digits near the minimum.
    -20.0 * (-0.2 * (squares / count).sqrt()).exp_m1()
        - std::f64::consts::E * (waves / count - 1.0).exp_m1()
}

fn turned() -> bool {
    true
}

fn is_turned(turn: &bool) -> bool {
    *turn
}

/// A test function, turned about and moved by the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotated {
    /// Which function.
    pub function: RotatedFunction,
    /// Number of variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Whether the variables are integers. The minimum then is at integers too.
    #[serde(default)]
    pub integer: bool,
    /// Whether it is turned about, or only moved.
    #[serde(default = "turned", skip_serializing_if = "is_turned")]
    pub turn: bool,
    /// Standard deviation of the observation noise.
    #[serde(default)]
    pub noise_std: f64,
    /// Seed of the rotation, if there is one, and the place of the minimum; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl Rotated {
    /// The function in its usual number of variables, without noise.
    pub fn new(function: RotatedFunction) -> Self {
        let (dimension, integer, turn) = (None, false, true);
        Self { function, dimension, integer, turn, noise_std: 0.0, draw_seed: None }
    }

    /// Refuses numbers that make no sense.
    pub fn validate(&self) -> Result<()> {
        let (name, dimension, fewest) =
            (self.function.name(), self.dimension(), self.function.fewest());
        if !(fewest..=MOST_VARIABLES).contains(&dimension) {
            return Err(Error::problem(format!(
                "dimension = {dimension} of {name} is not between {fewest} and {MOST_VARIABLES}"
            )));
        }
        if self.integer && self.function == RotatedFunction::Hartmann6 {
            return Err(Error::problem(
                "the minimum of hartmann6 in a subspace is not at integers; set integer = false",
            ));
        }
        let is_hidden =
            matches!(self.function, RotatedFunction::Hartmann6 | RotatedFunction::Quadratic);
        if !self.turn && is_hidden {
            return Err(Error::problem(format!(
                "{name} is in a random subspace, which is what it is turned into; set turn = true"
            )));
        }
        check_noise(self.noise_std)
    }

    fn dimension(&self) -> usize {
        self.dimension.unwrap_or(self.function.usual_dimension())
    }

    /// The function with the rotation of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`Rotated::validate`].
    pub fn build(&self, seed: u64) -> Result<TurnedFunction> {
        self.validate()?;
        let mut rng = generator(self.draw_seed.unwrap_or(seed), 0);
        let dimension = self.dimension();
        let (low, high) = self.function.range();
        let parameters = (0..dimension).map(|i| {
            let name = format!("x{i}");
            if self.integer {
                Parameter::integer(name, low, high)
            } else {
                Parameter::real(name, low as f64, high as f64)
            }
        });
        let space = Space::new(parameters.collect())?;
        let (directions, centre, minimiser) = match self.function {
            RotatedFunction::Hartmann6 => {
                let (directions, minimiser) = embedding(dimension, &mut rng);
                (directions, vec![0.0; dimension], minimiser)
            }
            _ => {
                let count = self.function.directions(dimension);
                let directions = match self.turn {
                    true => orthonormal(count, dimension, &mut rng),
                    false => axes(dimension),
                };
                let place = |_| {
                    let share = MARGIN + (1.0 - 2.0 * MARGIN) * rng.random::<f64>();
                    let place = low as f64 + share * (high - low) as f64;
                    if self.integer { place.round() } else { place }
                };
                let minimiser: Vec<f64> = (0..dimension).map(place).collect();
                (directions, minimiser.clone(), minimiser)
            }
        };
        let value = match self.function {
            RotatedFunction::Hartmann6 => Function::Hartmann6.minimum(6),
            _ => 0.0,
        };
        let values: Vec<Value> = minimiser.into_iter().map(Value::Real).collect();
        let point = space.encode(&values)?;
        Ok(TurnedFunction {
            space,
            function: self.function,
            directions,
            centre,
            noise_std: self.noise_std,
            optimum: Optimum { value, point, certainty: Certainty::Exact },
        })
    }
}

/// Six orthonormal directions, and the smallest x whose coordinates in them are those of Hartmann6's minimiser. It has to be in
/// the box, which it nearly always is: its length is 1.13, whatever the number of variables.
fn embedding(dimension: usize, rng: &mut Generator) -> (Vec<Vec<f64>>, Vec<f64>) {
    let minimiser = Function::Hartmann6.minimisers(6).swap_remove(0);
    let target: Vec<f64> = minimiser.iter().map(|z| (z - 0.5) / EMBEDDING_SCALE).collect();
    loop {
        let directions = orthonormal(target.len(), dimension, rng);
        let along = |i: usize| directions.iter().zip(&target).map(|(row, z)| row[i] * z).sum();
        let x: Vec<f64> = (0..dimension).map(along).collect();
        if x.iter().all(|x: &f64| x.abs() <= 1.0) {
            return (directions, x);
        }
    }
}

/// Random directions at right angles, all such equally likely: normal numbers, each row made orthogonal to those before. Twice,
/// because once leaves the rounding errors of what was taken away.
fn orthonormal(count: usize, dimension: usize, rng: &mut Generator) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(count);
    while rows.len() < count {
        let mut row: Vec<f64> = (0..dimension).map(|_| normal(1.0, rng)).collect();
        for _ in 0..2 {
            for other in &rows {
                let along = dot(&row, other);
                row.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
        }
        let length = dot(&row, &row).sqrt();
        // A row that others explain is drawn again; it has probability 0.
        if length > 1e-6 {
            rows.push(row.into_iter().map(|x| x / length).collect());
        }
    }
    rows
}

/// The directions of the variables themselves.
fn axes(dimension: usize) -> Vec<Vec<f64>> {
    let row = |i| (0..dimension).map(|j| f64::from(u8::from(i == j))).collect();
    (0..dimension).map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A test function, turned about. It is to be minimised.
#[derive(Debug, Clone)]
pub struct TurnedFunction {
    space: Space,
    function: RotatedFunction,
    /// The rows of R.
    directions: Vec<Vec<f64>>,
    /// What is taken from x before it is turned.
    centre: Vec<f64>,
    noise_std: f64,
    optimum: Optimum,
}

impl Problem for TurnedFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        let x = numbers(values)?;
        check_count(x.len(), &self.space)?;
        let moved: Vec<f64> = x.iter().zip(&self.centre).map(|(x, centre)| x - centre).collect();
        let turned: Vec<f64> = self.directions.iter().map(|row| dot(row, &moved)).collect();
        Ok(self.function.value(&turned))
    }

    fn noise_std(&self) -> f64 {
        self.noise_std
    }

    fn optimum(&self) -> Option<&Optimum> {
        Some(&self.optimum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_orthonormal_and_point_anywhere() {
        for (count, dimension) in [(2, 2), (6, 6), (6, 40), (30, 30)] {
            let rows = orthonormal(count, dimension, &mut generator(4, 0));
            for (i, row) in rows.iter().enumerate() {
                for (j, other) in rows.iter().enumerate() {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    approx::assert_abs_diff_eq!(dot(row, other), expected, epsilon = 1e-14);
                }
            }
        }
        // Every entry of a random direction in 3 dimensions has mean 0 and variance 1/3.
        let mut rng = generator(5, 0);
        let count = 4_000;
        let (mut means, mut variances) = ([0.0; 9], [0.0; 9]);
        for _ in 0..count {
            for (place, x) in orthonormal(3, 3, &mut rng).into_iter().flatten().enumerate() {
                means[place] += x / f64::from(count);
                variances[place] += x * x / f64::from(count);
            }
        }
        // x is uniform in [−1, 1] (Archimedes): its variance is 1/3, that of its square 4/45.
        for (mean, variance) in means.into_iter().zip(variances) {
            assert!(mean.abs() < 4.0 * (1.0 / 3.0 / f64::from(count)).sqrt(), "{mean}");
            let off = (variance - 1.0 / 3.0).abs();
            assert!(off < 4.0 * (4.0 / 45.0 / f64::from(count)).sqrt(), "{variance}");
        }
    }
}
