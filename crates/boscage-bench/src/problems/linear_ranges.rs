//! Functions whose parameters have linear ranges, although some or all of them should have been stated as logarithmic ones.
//!
//! People who state a parameter as "a rate between 0 and 1" often mean one of which 0.001 is right: what counts is by which factor
//! it is off. Nearly all of such a range is far too large, so that what matters happens next to its lower end. An optimizer that
//! takes distances in the range for distances in what it models sees a cliff there, and a plain everywhere else.
//!
//! The seed draws the minimum, which is 0 and at a single point, and how much each parameter matters. The functions are not published
//! ones.
//!
//! Notation: D parameters x; c where the minimum is; N a normal number, U(a, b) a uniform one, both drawn for each parameter anew;
//! z = log₁₀((x + ε)/(c + ε)), how many decades x is off, with a small ε, because x may be 0.
//!
//! Cost: O(D) for a value, O(D²) of the turned bowl.

use boscage::graph::{Edge, Graph};
use boscage::stream::Generator;
use boscage::{Parameter, Point, Space, Value};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Optimum, Problem};
use crate::problems::additive::{check_noise, generator};
use crate::run::normal;

/// The most parameters: the matrix of the turned bowl has as many numbers as their square.
const MOST_PARAMETERS: usize = 1_000;

/// Standard deviation of the logarithm of a weight.
const WEIGHT_LOG_STD: f64 = 0.7;

/// ε of both bowls.
const BOWL_OFFSET: f64 = 1e-4;

/// How strongly the two parameters of a pair of the bowl interact; with 2 a bowl would become a valley without an end.
const COUPLING: f64 = 0.5;

/// ε of the few among others.
const FEW_OFFSET: f64 = 1e-5;

/// What the others' distance to the minimum is multiplied by. A range of theirs is about as long as three decades.
const LINEAR_STEEPNESS: f64 = 3.0;

/// How quickly it becomes all the same how far off one of twelve is: z²/(1 + 0.2 z²) is below 5.
const FLATTENING: f64 = 0.2;

/// The largest count.
const MOST_COUNTED: i64 = 1_000;

/// What a squared logarithm of a count is multiplied by.
const COUNT_STEEPNESS: f64 = 0.3;

/// What a squared distance of a real parameter beside counts is multiplied by.
const REAL_STEEPNESS: f64 = 8.0;

/// The choices beside counts, which mean nothing.
const CHOICES: [&str; 4] = ["a", "b", "c", "d"];

/// ε of the run time.
const TIME_OFFSET: f64 = 1e-3;

/// The functions. All are to be minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinearRangesFunction {
    /// Σ aᵢzᵢ² + ½ Σ √(aᵢaⱼ) zᵢzⱼ over the pairs (0, 1), (2, 3), … of the first half of the parameters, which are real in \[0, 1\];
    /// c = 10^U(−3, −½), a = exp(0.7 N), ε = 10⁻⁴. 20 parameters if nothing is said.
    Bowl,
    /// |Mz|² with a matrix M of normal numbers N/√D, so that all parameters act together; they are real in \[0, 1\];
    /// c = 10^U(−2.5, −½), ε = 10⁻⁴. 10 parameters if nothing is said.
    TurnedBowl,
    /// Σ az²/(1 + 0.2 z²) with a = exp(0.7 N), in \[0, 1\]. Only a third of the parameters should be logarithmic, and the seed says
    /// which: c = 10^U(−3, −1), ε = 10⁻⁵. The others have z = 3 (x − c) with c = U(0.15, 0.85). 12 parameters if nothing is said.
    Few,
    /// Σ (x − b (1 − exp(−x/τ))), less its minimum, in \[0, 1\]: more of something costs, and helps until it saturates.
    /// b = U(½, 2), τ = 10^U(−2, 0). 20 parameters if nothing is said.
    Saturating,
    /// A third of the parameters are integers n from 1 to 1000 with 0.3 ln(n/c)² and c = 10^U(0, 2), rounded; a third are choices of
    /// four, each with an effect N, less the least of these; those between are real in \[0, 1\] with 8 (x − c)² and
    /// c = U(0.1, 0.9). 18 parameters if nothing is said.
    Counts,
    /// A run time, less the shortest: ∏ (r + 1/r − 1)ᵃ − 1 with r = (x + ε)/(c + ε), ε = 10⁻³, in \[0, 1\]. Too little of something
    /// takes longer, and so does too much, by a factor whatever the rest is. c = 10^U(−2.5, −½), a = U(0.1, 0.6). 16 parameters if
    /// nothing is said.
    Powers,
}

impl LinearRangesFunction {
    fn name(self) -> &'static str {
        match self {
            Self::Bowl => "bowl",
            Self::TurnedBowl => "turned-bowl",
            Self::Few => "few",
            Self::Saturating => "saturating",
            Self::Counts => "counts",
            Self::Powers => "powers",
        }
    }

    fn usual_dimension(self) -> usize {
        match self {
            Self::Bowl | Self::Saturating => 20,
            Self::TurnedBowl => 10,
            Self::Few => 12,
            Self::Counts => 18,
            Self::Powers => 16,
        }
    }

    /// The fewest parameters, with which there is one of each sort, or a pair where pairs interact.
    fn fewest(self) -> usize {
        match self {
            Self::Bowl => 4,
            Self::TurnedBowl | Self::Powers => 2,
            Self::Few | Self::Counts => 3,
            Self::Saturating => 1,
        }
    }

    /// The parameters that interact.
    fn pairs(self, dimension: usize) -> Vec<(usize, usize)> {
        match self {
            Self::Bowl => (0..dimension / 4).map(|pair| (2 * pair, 2 * pair + 1)).collect(),
            Self::TurnedBowl | Self::Powers => {
                (0..dimension).flat_map(|j| (0..j).map(move |i| (i, j))).collect()
            }
            Self::Few | Self::Saturating | Self::Counts => Vec::new(),
        }
    }

    fn parameter(self, i: usize, dimension: usize) -> Parameter {
        let name = format!("x{i}");
        match sort(i, dimension) {
            Sort::Count if self == Self::Counts => Parameter::integer(name, 1, MOST_COUNTED),
            Sort::Choice if self == Self::Counts => Parameter::categorical(name, CHOICES),
            _ => Parameter::real(name, 0.0, 1.0),
        }
    }
}

/// What a parameter of [`LinearRangesFunction::Counts`] is.
enum Sort {
    Count,
    Real,
    Choice,
}

fn sort(i: usize, dimension: usize) -> Sort {
    let third = dimension / 3;
    if i < third {
        Sort::Count
    } else if i < dimension - third {
        Sort::Real
    } else {
        Sort::Choice
    }
}

/// A function whose parameters have linear ranges, although they should have logarithmic ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearRanges {
    /// Which function.
    pub function: LinearRangesFunction,
    /// Number of parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Standard deviation of the observation noise.
    #[serde(default)]
    pub noise_std: f64,
    /// Seed of the minimum and the weights; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl LinearRanges {
    /// The function of its usual number of parameters, without noise.
    pub fn new(function: LinearRangesFunction) -> Self {
        Self { function, dimension: None, noise_std: 0.0, draw_seed: None }
    }

    /// Refuses numbers that make no sense.
    pub fn validate(&self) -> Result<()> {
        let (name, dimension, fewest) =
            (self.function.name(), self.dimension(), self.function.fewest());
        if !(fewest..=MOST_PARAMETERS).contains(&dimension) {
            return Err(Error::problem(format!(
                "dimension = {dimension} of {name} is not between {fewest} and {MOST_PARAMETERS}"
            )));
        }
        check_noise(self.noise_std)
    }

    fn dimension(&self) -> usize {
        self.dimension.unwrap_or(self.function.usual_dimension())
    }

    /// The function of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`LinearRanges::validate`].
    pub fn build(&self, seed: u64) -> Result<LinearRangesProblem> {
        self.validate()?;
        let mut rng = generator(self.draw_seed.unwrap_or(seed), 0);
        let (function, dimension) = (self.function, self.dimension());
        let parameters = (0..dimension).map(|i| function.parameter(i, dimension));
        let space = Space::new(parameters.collect())?;
        let drawn = Drawn::new(function, dimension, &mut rng);
        let point = space.encode(&drawn.minimiser())?;
        let edges = function.pairs(dimension).into_iter().map(|(i, j)| Edge::new(i, j));
        let graph = Graph::from_edges(dimension, edges.collect::<boscage::Result<Vec<_>>>()?)?;
        Ok(LinearRangesProblem {
            space,
            drawn,
            noise_std: self.noise_std,
            optimum: Optimum { value: 0.0, point, certainty: Certainty::Exact },
            graph,
        })
    }
}

/// What the seed has drawn, each list with an entry for each parameter.
#[derive(Debug, Clone)]
enum Drawn {
    Bowl { centre: Vec<f64>, weights: Vec<f64> },
    TurnedBowl { centre: Vec<f64>, rows: Vec<Vec<f64>> },
    Few { centre: Vec<f64>, weights: Vec<f64>, is_logarithmic: Vec<bool> },
    Saturating(Vec<Saturation>),
    Counts(Vec<Part>),
    Powers { centre: Vec<f64>, exponents: Vec<f64> },
}

/// What a parameter that saturates does.
#[derive(Debug, Clone)]
struct Saturation {
    /// b, what much of it is worth.
    gain: f64,
    /// τ, how much of it is much.
    scale: f64,
}

/// What a parameter of [`LinearRangesFunction::Counts`] adds.
#[derive(Debug, Clone)]
enum Part {
    /// The best count.
    Count(i64),
    /// The best place.
    Real(f64),
    /// What each choice adds.
    Choice([f64; CHOICES.len()]),
}

impl Drawn {
    fn new(function: LinearRangesFunction, dimension: usize, rng: &mut Generator) -> Self {
        let all = 0..dimension;
        match function {
            LinearRangesFunction::Bowl => {
                let centre = all.clone().map(|_| power_of_ten(-3.0, -0.5, rng)).collect();
                Self::Bowl { centre, weights: all.map(|_| weight(rng)).collect() }
            }
            LinearRangesFunction::TurnedBowl => {
                let centre = all.clone().map(|_| power_of_ten(-2.5, -0.5, rng)).collect();
                let std = (dimension as f64).sqrt().recip();
                let rows = all.map(|_| (0..dimension).map(|_| normal(std, rng)).collect());
                Self::TurnedBowl { centre, rows: rows.collect() }
            }
            LinearRangesFunction::Few => {
                let mut is_logarithmic: Vec<bool> =
                    all.clone().map(|i| i < dimension / 3).collect();
                is_logarithmic.shuffle(rng);
                let place = |&logarithmic: &bool| match logarithmic {
                    true => power_of_ten(-3.0, -1.0, rng),
                    false => uniform(0.15, 0.85, rng),
                };
                let centre = is_logarithmic.iter().map(place).collect();
                Self::Few { centre, weights: all.map(|_| weight(rng)).collect(), is_logarithmic }
            }
            LinearRangesFunction::Saturating => {
                let saturation = |_| Saturation {
                    gain: uniform(0.5, 2.0, rng),
                    scale: power_of_ten(-2.0, 0.0, rng),
                };
                Self::Saturating(all.map(saturation).collect())
            }
            LinearRangesFunction::Counts => {
                let part = |i| match sort(i, dimension) {
                    Sort::Count => Part::Count(power_of_ten(0.0, 2.0, rng).round() as i64),
                    Sort::Real => Part::Real(uniform(0.1, 0.9, rng)),
                    Sort::Choice => {
                        let effects = CHOICES.map(|_| normal(1.0, rng));
                        let least = effects.iter().copied().fold(f64::INFINITY, f64::min);
                        Part::Choice(effects.map(|effect| effect - least))
                    }
                };
                Self::Counts(all.map(part).collect())
            }
            LinearRangesFunction::Powers => {
                let centre = all.clone().map(|_| power_of_ten(-2.5, -0.5, rng)).collect();
                Self::Powers { centre, exponents: all.map(|_| uniform(0.1, 0.6, rng)).collect() }
            }
        }
    }

    /// Where the minimum is.
    fn minimiser(&self) -> Vec<Value> {
        match self {
            Self::Bowl { centre, .. }
            | Self::TurnedBowl { centre, .. }
            | Self::Few { centre, .. }
            | Self::Powers { centre, .. } => centre.iter().copied().map(Value::Real).collect(),
            Self::Saturating(all) => all.iter().map(|one| Value::Real(one.best())).collect(),
            Self::Counts(parts) => parts.iter().map(Part::best).collect(),
        }
    }

    /// The value at this point of the space.
    fn value(&self, point: &Point, space: &Space) -> f64 {
        let x = point.as_slice();
        match self {
            Self::Bowl { centre, weights } => {
                let z: Vec<f64> =
                    x.iter().zip(centre).map(|(&x, &c)| decades(x, c, BOWL_OFFSET)).collect();
                let alone: f64 = z.iter().zip(weights).map(|(z, weight)| weight * z * z).sum();
                let together = |(i, j): (usize, usize)| {
                    COUPLING * (weights[i] * weights[j]).sqrt() * z[i] * z[j]
                };
                let pairs = LinearRangesFunction::Bowl.pairs(x.len()).into_iter();
                alone + pairs.map(together).sum::<f64>()
            }
            Self::TurnedBowl { centre, rows } => {
                let z: Vec<f64> =
                    x.iter().zip(centre).map(|(&x, &c)| decades(x, c, BOWL_OFFSET)).collect();
                let along = |row: &Vec<f64>| row.iter().zip(&z).map(|(m, z)| m * z).sum::<f64>();
                rows.iter().map(|row| along(row).powi(2)).sum()
            }
            Self::Few { centre, weights, is_logarithmic } => {
                let off =
                    x.iter().zip(centre).zip(is_logarithmic).map(|((&x, &c), &logarithmic)| {
                        match logarithmic {
                            true => decades(x, c, FEW_OFFSET),
                            false => LINEAR_STEEPNESS * (x - c),
                        }
                    });
                let flat = |z: f64| z * z / (1.0 + FLATTENING * z * z);
                off.zip(weights).map(|(z, weight)| weight * flat(z)).sum()
            }
            Self::Saturating(all) => x.iter().zip(all).map(|(&x, one)| one.value(x)).sum(),
            Self::Counts(parts) => {
                let value = |(i, part): (usize, &Part)| part.value(x[i], space.level(i, x[i]));
                parts.iter().enumerate().map(value).sum()
            }
            Self::Powers { centre, exponents } => {
                let log_factor = |((x, c), exponent): ((&f64, &f64), &f64)| {
                    let r = (x + TIME_OFFSET) / (c + TIME_OFFSET);
                    // r + 1/r − 1 = 1 + (r − 1)²/r, which keeps the digits near the minimum.
                    exponent * ((r - 1.0) * (r - 1.0) / r).ln_1p()
                };
                x.iter().zip(centre).zip(exponents).map(log_factor).sum::<f64>().exp_m1()
            }
        }
    }
}

impl Saturation {
    /// Where 1 = (b/τ) exp(−x/τ), if more of it is worth anything at 0; at most b/e = 0.74.
    fn best(&self) -> f64 {
        (self.scale * (self.gain / self.scale).ln()).max(0.0)
    }

    /// What it costs less what it is worth, from the best on: no digits are lost near it.
    fn value(&self, x: f64) -> f64 {
        let best = self.best();
        let worth = self.gain * (-best / self.scale).exp();
        // Never negative but for rounding.
        (x - best + worth * (-(x - best) / self.scale).exp_m1()).max(0.0)
    }
}

impl Part {
    fn best(&self) -> Value {
        match self {
            Self::Count(best) => Value::Integer(*best),
            Self::Real(best) => Value::Real(*best),
            Self::Choice(effects) => {
                let best = CHOICES.iter().zip(effects).min_by(|a, b| a.1.total_cmp(b.1));
                Value::Choice(best.map_or(CHOICES[0], |(choice, _)| choice).to_string())
            }
        }
    }

    /// What it adds at this coordinate, which is one of this level if it has levels.
    fn value(&self, coordinate: f64, level: u64) -> f64 {
        match self {
            Self::Count(best) => COUNT_STEEPNESS * ((1 + level) as f64 / *best as f64).ln().powi(2),
            Self::Real(best) => REAL_STEEPNESS * (coordinate - best) * (coordinate - best),
            Self::Choice(effects) => effects[level as usize],
        }
    }
}

/// z, how many decades x is off.
fn decades(x: f64, centre: f64, offset: f64) -> f64 {
    ((x + offset) / (centre + offset)).log10()
}

fn uniform(low: f64, high: f64, rng: &mut Generator) -> f64 {
    low + (high - low) * rng.random::<f64>()
}

/// 10^U(low, high).
fn power_of_ten(low: f64, high: f64, rng: &mut Generator) -> f64 {
    10.0_f64.powf(uniform(low, high, rng))
}

fn weight(rng: &mut Generator) -> f64 {
    normal(WEIGHT_LOG_STD, rng).exp()
}

/// A function whose parameters have linear ranges, although they should have logarithmic ones. It is to be minimised.
#[derive(Debug, Clone)]
pub struct LinearRangesProblem {
    space: Space,
    drawn: Drawn,
    noise_std: f64,
    optimum: Optimum,
    graph: Graph,
}

impl Problem for LinearRangesProblem {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        // The coordinates of real parameters are their values. A value below its range may have no logarithm, so it is refused.
        Ok(self.drawn.value(&self.space.encode(values)?, &self.space))
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

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [LinearRangesFunction; 6] = [
        LinearRangesFunction::Bowl,
        LinearRangesFunction::TurnedBowl,
        LinearRangesFunction::Few,
        LinearRangesFunction::Saturating,
        LinearRangesFunction::Counts,
        LinearRangesFunction::Powers,
    ];

    fn of(function: LinearRangesFunction, dimension: usize, seed: u64) -> LinearRangesProblem {
        let spec = LinearRanges { dimension: Some(dimension), ..LinearRanges::new(function) };
        spec.build(seed).unwrap()
    }

    fn usual(function: LinearRangesFunction, seed: u64) -> LinearRangesProblem {
        LinearRanges::new(function).build(seed).unwrap()
    }

    fn sample(problem: &LinearRangesProblem, rng: &mut Generator) -> Vec<Value> {
        problem.space().decode(&problem.space().sample(rng)).unwrap()
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        approx::assert_relative_eq!(found, expected, max_relative = tolerance, epsilon = tolerance);
    }

    #[test]
    fn the_minimum_is_0_and_at_one_point() {
        for function in FUNCTIONS {
            for dimension in [function.fewest(), function.usual_dimension(), 33] {
                for seed in 0..20 {
                    let problem = of(function, dimension, seed);
                    assert_eq!(problem.space().dimension(), dimension);
                    let optimum = problem.optimum().unwrap();
                    assert_eq!((optimum.value, optimum.certainty), (0.0, Certainty::Exact));
                    // The point stands for exactly what was drawn.
                    let best = problem.space().decode(&optimum.point).unwrap();
                    assert_eq!(best, problem.drawn.minimiser());
                    assert_eq!(problem.evaluate(&best).unwrap(), 0.0, "{function:?}, seed {seed}");
                    // Near it and far from it everything is higher, whether all parameters move or one.
                    let mut rng = generator(seed, 1);
                    let higher = |point: Vec<f64>| {
                        let point = problem.space().snap(&point).unwrap();
                        let values = problem.space().decode(&point).unwrap();
                        let value = problem.evaluate(&values).unwrap();
                        assert_eq!(
                            value > 0.0,
                            values != best,
                            "{function:?}, seed {seed}: {value}"
                        );
                    };
                    for width in [1e-6, 1e-3, 0.1, 2.0] {
                        let mut moved =
                            |x: &f64| (x + width * (rng.random::<f64>() - 0.5)).clamp(0.0, 1.0);
                        for _ in 0..50 {
                            higher(optimum.point.0.iter().map(&mut moved).collect());
                        }
                        for i in 0..dimension {
                            let mut point = optimum.point.0.clone();
                            point[i] = moved(&point[i]);
                            higher(point);
                        }
                    }
                }
            }
        }
    }

    /// The formula as one would write it down, from what the seed has drawn.
    fn formula(drawn: &Drawn, values: &[Value]) -> f64 {
        let x: Vec<f64> = values.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
        let mut sum = 0.0;
        match drawn {
            Drawn::Bowl { centre, weights } => {
                let z = |i: usize| (x[i] + 0.0001).log10() - (centre[i] + 0.0001).log10();
                for (i, weight) in weights.iter().enumerate() {
                    sum += weight * z(i) * z(i);
                }
                for (i, j) in [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)] {
                    sum += 0.5 * weights[i].sqrt() * weights[j].sqrt() * z(i) * z(j);
                }
            }
            Drawn::TurnedBowl { centre, rows } => {
                // zᵀ(MᵀM)z.
                let z = |i: usize| (x[i] + 0.0001).log10() - (centre[i] + 0.0001).log10();
                for i in 0..10 {
                    for j in 0..10 {
                        let entry: f64 = rows.iter().map(|row| row[i] * row[j]).sum();
                        sum += entry * z(i) * z(j);
                    }
                }
            }
            Drawn::Few { centre, weights, is_logarithmic } => {
                for i in 0..12 {
                    let z = if is_logarithmic[i] {
                        (x[i] + 0.00001).log10() - (centre[i] + 0.00001).log10()
                    } else {
                        3.0 * (x[i] - centre[i])
                    };
                    // z²/(1 + 0.2 z²) = 5 − 5/(1 + 0.2 z²).
                    sum += weights[i] * (5.0 - 5.0 / (1.0 + 0.2 * z * z));
                }
            }
            Drawn::Saturating(all) => {
                for (&x, Saturation { gain: b, scale: tau }) in x.iter().zip(all) {
                    let best = (tau * (b / tau).ln()).clamp(0.0, 1.0);
                    let cost = |x: f64| x - b * (1.0 - (-x / tau).exp());
                    sum += cost(x) - cost(best);
                }
            }
            Drawn::Counts(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    sum += match (part, &values[i]) {
                        (Part::Count(c), Value::Integer(n)) => {
                            0.3 * ((*n as f64).ln() - (*c as f64).ln()).powi(2)
                        }
                        (Part::Real(c), Value::Real(x)) => 8.0 * (x - c).powi(2),
                        (Part::Choice(effects), Value::Choice(name)) => match name.as_str() {
                            "a" => effects[0],
                            "b" => effects[1],
                            "c" => effects[2],
                            "d" => effects[3],
                            _ => panic!("there is no choice {name}"),
                        },
                        _ => panic!("{part:?} has the value {}", values[i]),
                    };
                }
            }
            Drawn::Powers { centre, exponents } => {
                let mut time = 1.0;
                for i in 0..16 {
                    let r = (x[i] + 0.001) / (centre[i] + 0.001);
                    time *= (r + 1.0 / r - 1.0).powf(exponents[i]);
                }
                sum = time - 1.0;
            }
        }
        sum
    }

    #[test]
    fn values_are_those_of_the_formula() {
        for function in FUNCTIONS {
            for seed in 0..20 {
                let problem = usual(function, seed);
                let mut rng = generator(seed, 1);
                let ends = [0.0, 1.0].map(|end| {
                    let point = Point(vec![end; problem.space().dimension()]);
                    problem.space().decode(&problem.space().snap(&point.0).unwrap()).unwrap()
                });
                let points = (0..50).map(|_| sample(&problem, &mut rng)).chain(ends);
                for values in points.collect::<Vec<_>>() {
                    let found = problem.evaluate(&values).unwrap();
                    close(found, formula(&problem.drawn, &values), 1e-10);
                }
            }
        }
    }

    #[test]
    fn what_saturates_is_best_where_a_search_finds_it() {
        let (mut at_0, mut inside) = (0, 0);
        for seed in 0..20 {
            let Drawn::Saturating(all) = usual(LinearRangesFunction::Saturating, seed).drawn else {
                panic!("nothing saturates");
            };
            for one in all {
                let cost = |x: f64| x - one.gain * (1.0 - (-x / one.scale).exp());
                let steps = 10_000;
                let (best, least) = (0..=steps)
                    .map(|k| f64::from(k) / f64::from(steps))
                    .map(|x| (x, cost(x)))
                    .min_by(|a, b| a.1.total_cmp(&b.1))
                    .unwrap();
                approx::assert_abs_diff_eq!(one.best(), best, epsilon = 1e-4);
                // A step off, with a curvature of 1/τ of at most 100 there.
                let lost = least - cost(one.best());
                assert!((-1e-14..1e-6).contains(&lost), "{one:?}: {lost}");
                if one.best() == 0.0 { at_0 += 1 } else { inside += 1 }
            }
        }
        assert!(at_0 > 3 && inside > 300, "{at_0} {inside}");
    }

    #[test]
    fn parameters_interact_where_the_graph_says() {
        // Two parameters share a component if and only if f(a, a) − f(a, b) − f(b, a) + f(b, b) does not vanish everywhere.
        for function in FUNCTIONS {
            let problem = usual(function, 11);
            let graph = problem.graph().unwrap();
            let dimension = problem.space().dimension();
            assert_eq!(graph.dimension(), dimension);
            let mut rng = generator(7, 1);
            for j in 0..dimension {
                for i in 0..j {
                    let mut largest = 0.0_f64;
                    for _ in 0..20 {
                        let (a, b) = (sample(&problem, &mut rng), sample(&problem, &mut rng));
                        let value = |first: &[Value], second: &[Value]| {
                            let mut values = a.clone();
                            values[i] = first[i].clone();
                            values[j] = second[j].clone();
                            problem.evaluate(&values).unwrap()
                        };
                        let corners = [value(&a, &a), value(&a, &b), value(&b, &a), value(&b, &b)];
                        let size = corners.into_iter().fold(0.0, f64::max);
                        let mixed = corners[0] - corners[1] - corners[2] + corners[3];
                        largest = largest.max(mixed.abs() / size);
                    }
                    let joined = graph.contains(Edge::new(i, j).unwrap());
                    assert_eq!(joined, largest > 1e-9, "{function:?}: {i}–{j} {largest}");
                }
            }
        }
    }

    /// Numbers of this mean and this variance, whose squared deviations have this variance in turn, within 4 standard errors.
    fn check_moments(what: &str, drawn: &[f64], mean: f64, variance: f64, of_squares: f64) {
        let count = drawn.len() as f64;
        let found = drawn.iter().sum::<f64>() / count;
        assert!((found - mean).abs() < 4.0 * (variance / count).sqrt(), "{what}: {found}");
        let found = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        assert!((found - variance).abs() < 4.0 * (of_squares / count).sqrt(), "{what}: {found}");
    }

    fn check_uniform(what: &str, drawn: &[f64], low: f64, high: f64) {
        let slack = 1e-12;
        assert!(drawn.iter().all(|x| (low - slack..high + slack).contains(x)), "{what}");
        let width = high - low;
        let middle = 0.5 * (low + high);
        check_moments(what, drawn, middle, width.powi(2) / 12.0, width.powi(4) / 180.0);
    }

    fn check_normal(what: &str, drawn: &[f64], std: f64) {
        check_moments(what, drawn, 0.0, std.powi(2), 2.0 * std.powi(4));
    }

    fn log10(numbers: &[f64]) -> Vec<f64> {
        numbers.iter().map(|x| x.log10()).collect()
    }

    #[test]
    fn draws_have_the_distributions_that_are_said() {
        let (mut bowl, mut bowl_weights, mut turned, mut entries) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut few, mut others, mut few_weights, mut places) =
            (Vec::new(), Vec::new(), Vec::new(), vec![0.0; 12]);
        let (mut gains, mut scales, mut times, mut exponents) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut counts, mut reals, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
        let seeds = 400;
        for (function, seed) in
            FUNCTIONS.into_iter().flat_map(|function| (0..seeds).map(move |seed| (function, seed)))
        {
            match usual(function, seed).drawn {
                Drawn::Bowl { centre, weights } => {
                    bowl.extend(log10(&centre));
                    bowl_weights.extend(weights.iter().map(|weight| weight.ln()));
                }
                Drawn::TurnedBowl { centre, rows } => {
                    turned.extend(log10(&centre));
                    assert_eq!((rows.len(), rows[0].len()), (10, 10));
                    entries.extend(rows.into_iter().flatten());
                }
                Drawn::Few { centre, weights, is_logarithmic } => {
                    assert_eq!(is_logarithmic.iter().filter(|&&is| is).count(), 4);
                    for (i, &is) in is_logarithmic.iter().enumerate() {
                        places[i] += f64::from(u8::from(is));
                        if is { few.push(centre[i].log10()) } else { others.push(centre[i]) }
                    }
                    few_weights.extend(weights.iter().map(|weight| weight.ln()));
                }
                Drawn::Saturating(all) => {
                    gains.extend(all.iter().map(|one| one.gain));
                    scales.extend(all.iter().map(|one| one.scale.log10()));
                }
                Drawn::Counts(parts) => {
                    for part in parts {
                        match part {
                            Part::Count(best) => counts.push(best),
                            Part::Real(best) => reals.push(best),
                            Part::Choice(effects) => {
                                let mean = effects.iter().sum::<f64>() / 4.0;
                                assert_eq!(effects.into_iter().fold(f64::INFINITY, f64::min), 0.0);
                                let squares = effects.map(|effect| (effect - mean).powi(2));
                                spreads.push(squares.iter().sum::<f64>() / 3.0);
                            }
                        }
                    }
                }
                Drawn::Powers { centre, exponents: drawn } => {
                    times.extend(log10(&centre));
                    exponents.extend(drawn);
                }
            }
        }
        check_uniform("centre of the bowl", &bowl, -3.0, -0.5);
        check_normal("weights of the bowl", &bowl_weights, 0.7);
        check_uniform("centre of the turned bowl", &turned, -2.5, -0.5);
        check_normal("matrix", &entries, 0.1_f64.sqrt());
        check_uniform("centre of the few", &few, -3.0, -1.0);
        check_uniform("centre of the others", &others, 0.15, 0.85);
        check_normal("weights of the few", &few_weights, 0.7);
        // Each of the twelve is one of the four with probability 1/3.
        let seeds = seeds as f64;
        for taken in places {
            assert!((taken - seeds / 3.0).abs() < 4.0 * (seeds * 2.0 / 9.0).sqrt(), "{taken}");
        }
        check_uniform("gain", &gains, 0.5, 2.0);
        check_uniform("scale", &scales, -2.0, 0.0);
        check_uniform("centre of the run time", &times, -2.5, -0.5);
        check_uniform("exponents", &exponents, 0.1, 0.6);
        check_uniform("reals beside counts", &reals, 0.1, 0.9);
        // Counts are rounded: 9 is what 8.5 to 9.5 become.
        assert!(counts.iter().all(|count| (1..=100).contains(count)));
        for bound in [1, 9, 50] {
            let share = (bound as f64 + 0.5).log10() / 2.0;
            let below = counts.iter().filter(|&&count| count <= bound).count() as f64;
            let (expected, all) = (share * counts.len() as f64, counts.len() as f64);
            assert!((below - expected).abs() < 4.0 * (all * share * (1.0 - share)).sqrt());
        }
        // The variance of four normal numbers is 1 on average, and varies by 2/3.
        assert_eq!((counts.len(), reals.len(), spreads.len()), (2_400, 2_400, 2_400));
        let mean = spreads.iter().sum::<f64>() / 2_400.0;
        assert!((mean - 1.0).abs() < 4.0 * (2.0 / 3.0 / 2_400.0_f64).sqrt(), "{mean}");
    }

    #[test]
    fn ranges_are_linear() {
        for function in FUNCTIONS {
            let problem = usual(function, 0);
            for (i, parameter) in problem.space().parameters().iter().enumerate() {
                let name = format!("x{i}");
                let expected = match (function, i) {
                    (LinearRangesFunction::Counts, 0..6) => Parameter::integer(name, 1, 1_000),
                    (LinearRangesFunction::Counts, 12..) => {
                        Parameter::categorical(name, ["a", "b", "c", "d"])
                    }
                    _ => Parameter::real(name, 0.0, 1.0),
                };
                assert_eq!(parameter, &expected);
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        for function in FUNCTIONS {
            let spec = LinearRanges::new(function);
            let build = |spec: &LinearRanges, seed| spec.build(seed).unwrap();
            let (one, again, other) = (build(&spec, 1), build(&spec, 1), build(&spec, 2));
            let fixed = build(&LinearRanges { draw_seed: Some(1), ..spec.clone() }, 99);
            let mut rng = generator(5, 1);
            let points: Vec<Vec<Value>> = (0..200).map(|_| sample(&one, &mut rng)).collect();
            let values = |problem: &LinearRangesProblem| {
                points.iter().map(|x| problem.evaluate(x).unwrap()).collect::<Vec<f64>>()
            };
            assert_eq!(values(&one), values(&again));
            assert_eq!(values(&one), values(&fixed));
            assert_eq!(one.optimum(), fixed.optimum());
            assert_ne!(one.optimum().unwrap().point, other.optimum().unwrap().point);
            assert!(values(&one).iter().zip(&values(&other)).all(|(a, b)| a != b), "{function:?}");
        }
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        for function in FUNCTIONS {
            let plain = LinearRanges::new(function);
            let text = format!("function = {:?}", function.name());
            assert_eq!(toml::from_str::<LinearRanges>(&text).unwrap(), plain);
            let whole = LinearRanges {
                dimension: Some(7),
                noise_std: 0.1,
                draw_seed: Some(3),
                ..plain.clone()
            };
            for spec in [plain, whole] {
                let text = toml::to_string(&spec).unwrap();
                assert_eq!(toml::from_str::<LinearRanges>(&text).unwrap(), spec, "{text}");
                let text = serde_json::to_string(&spec).unwrap();
                assert_eq!(serde_json::from_str::<LinearRanges>(&text).unwrap(), spec, "{text}");
                assert_eq!(spec.build(0).unwrap().noise_std(), spec.noise_std);
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refusal = |spec: LinearRanges| spec.build(0).unwrap_err().to_string();
        for (function, dimension, reason) in [
            (LinearRangesFunction::Bowl, 3, "dimension = 3 of bowl is not between 4 and 1000"),
            (LinearRangesFunction::TurnedBowl, 1, "dimension = 1 of turned-bowl is not between 2"),
            (LinearRangesFunction::Few, 2, "dimension = 2 of few is not between 3 and 1000"),
            (LinearRangesFunction::Saturating, 0, "dimension = 0 of saturating is not between 1"),
            (LinearRangesFunction::Counts, 2, "dimension = 2 of counts is not between 3 and 1000"),
            (LinearRangesFunction::Powers, 1_001, "dimension = 1001 of powers is not between 2"),
        ] {
            let dimension = Some(dimension);
            let found = refusal(LinearRanges { dimension, ..LinearRanges::new(function) });
            assert!(found.contains(reason), "{found}");
        }
        let usual_bowl = LinearRanges::new(LinearRangesFunction::Bowl);
        for noise_std in [-1.0, f64::NAN, f64::INFINITY] {
            let found = refusal(LinearRanges { noise_std, ..usual_bowl.clone() });
            assert!(found.contains(&format!("noise_std = {noise_std:?}")), "{found}");
        }
        assert!(toml::from_str::<LinearRanges>("function = \"ball\"").is_err());
        assert!(toml::from_str::<LinearRanges>("function = \"bowl\"\nlog = true").is_err());
        assert!(toml::from_str::<LinearRanges>("dimension = 20").is_err());

        let bowl = usual_bowl.build(0).unwrap();
        assert!(bowl.evaluate(&vec![Value::Real(0.5); 20]).is_ok());
        assert!(bowl.evaluate(&vec![Value::Real(0.5); 19]).is_err());
        for wrong in [Value::Real(-0.01), Value::Real(1.01), Value::Choice("a".into())] {
            let mut values = vec![Value::Real(0.5); 20];
            values[7] = wrong;
            let found = bowl.evaluate(&values).unwrap_err().to_string();
            assert!(found.contains("x7"), "{found}");
        }
        let counts = usual(LinearRangesFunction::Counts, 0);
        let good = counts.drawn.minimiser();
        for (i, wrong) in [
            (0, Value::Integer(0)),
            (5, Value::Integer(1_001)),
            (3, Value::Real(1.5)),
            (6, Value::Real(2.0)),
            (12, Value::Choice("e".into())),
            (17, Value::Integer(1)),
        ] {
            let mut values = good.clone();
            values[i] = wrong;
            assert!(counts.evaluate(&values).is_err(), "{}", values[i]);
        }
    }
}
