//! Functions of which a part of the space cannot be evaluated: what tuned programs that crash look like.
//!
//! People who tune a program with a script of their own often answer a crash by a very bad value, such as a million. The optimizer
//! then sees a function with a cliff, whose height says nothing and whose place nobody has told it. What is on the good side of
//! the cliff is easy here, so that the cliff is what the problem is about:
//!
//! ```text
//! f(x) = Σ 10 (xᵢ − sᵢ)² + 3 sin²(5 (x₀ − s₀)(x₁ − s₁))   where x succeeds
//! f(x) = penalty                                           where it fails
//! ```
//!
//! on the unit cube. The seed draws s, which succeeds, and what fails. The minimum is 0 and at s alone: f is positive elsewhere, and
//! no penalty is allowed that a value could reach. The runner adds noise to everything, a penalty included. The functions are not
//! published ones.
//!
//! Notation: D variables.
//!
//! Cost: O(D) for a value.

use boscage::stream::Generator;
use boscage::{Parameter, Space, Value};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Optimum, Problem};
use crate::problems::additive::{check_count, check_noise, generator, numbers};
use crate::problems::closed_form::MARGIN;
use crate::run::normal;

/// The most variables.
const MOST_VARIABLES: usize = 1_000;

/// What a squared distance to the minimum is multiplied by.
const STEEPNESS: f64 = 10.0;

/// Height of the ripple of the first two variables.
const RIPPLE: f64 = 3.0;

/// How quickly the ripple goes up and down.
const RIPPLE_FREQUENCY: f64 = 5.0;

/// The least penalty of few variables.
const LEAST_PENALTY: f64 = 1_000.0;

/// Half spaces that everything that succeeds is in.
const HALF_SPACES: usize = 3;

/// How far behind the centre a half space ends, if it does not end there. How far a uniform point is from the centre in any direction
/// is about normal, with a standard deviation of 1/√12 = 0.29: one half space has 0.81 of the points in it, three have a half.
const SLACK: f64 = 0.25;

/// Pairs of variables that may not go together. A pair is a variable k and the variable k + 8.
const PAIRS: usize = 8;

/// Levels that a variable of a pair is cut into.
const LEVELS: usize = 3;

/// Probability that two levels of a pair do not go together. All eight pairs do with probability (1 − 8/9 · 0.15)⁸ = 0.32.
const CLASH: f64 = 0.15;

/// What the product takes even of a variable that is 0.
const LEAST_USE: f64 = 0.2;

/// How much memory there is.
const MEMORY: f64 = 0.25;

/// How far the fourth variable can go.
const THRESHOLD: f64 = 0.7;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PenalisedShape {
    /// Whatever is outside of one of three random half spaces, which all contain the centre. Settings that add up to something
    /// that is limited, such as time, weight or power, with defaults that work. About half of the space succeeds.
    HalfSpaces,
    /// The same with half spaces that end at the centre: the defaults are just about what works, and only one corner of the space
    /// does. About an eighth of the space succeeds.
    Corner,
    /// Eight pairs of variables, k and k + 8, each cut into three levels: each of the nine combinations of a pair fails with
    /// probability 0.15, but that of the minimum never does. Options that exclude each other, which is found out when the program
    /// stops with an error. About a third of the space succeeds. At least 16 variables.
    Choices,
    /// (x₀ + 0.2)(x₁ + 0.2)(x₂ + 0.2) > 0.25, or x₃ > 0.7. A network whose width, depth and batch need more memory than there is,
    /// or whose step size is so large that the training diverges. The same part fails for all seeds, two thirds of the space. At
    /// least 4 variables.
    Memory,
}

impl PenalisedShape {
    fn name(self) -> &'static str {
        match self {
            Self::HalfSpaces => "half-spaces",
            Self::Corner => "corner",
            Self::Choices => "choices",
            Self::Memory => "memory",
        }
    }

    /// The fewest variables. The ripple takes two.
    fn fewest(self) -> usize {
        match self {
            Self::HalfSpaces | Self::Corner => 2,
            Self::Choices => 2 * PAIRS,
            Self::Memory => 4,
        }
    }
}

fn twenty() -> usize {
    20
}

fn million() -> f64 {
    1e6
}

fn paper_noise() -> f64 {
    0.15
}

/// A function of which a part cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalised {
    /// What fails.
    pub shape: PenalisedShape,
    /// Number of variables.
    #[serde(default = "twenty")]
    pub dimension: usize,
    /// The value where the evaluation fails: at least 1000, and more than any value can be, which is 10 D + 3.
    #[serde(default = "million")]
    pub penalty: f64,
    /// Standard deviation of the observation noise.
    #[serde(default = "paper_noise")]
    pub noise_std: f64,
    /// Seed of the minimum and of what fails; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl Penalised {
    /// The function of 20 variables, with a penalty of a million.
    pub fn new(shape: PenalisedShape) -> Self {
        Self {
            shape,
            dimension: twenty(),
            penalty: million(),
            noise_std: paper_noise(),
            draw_seed: None,
        }
    }

    /// Refuses numbers that make no sense.
    pub fn validate(&self) -> Result<()> {
        let (name, dimension, fewest) = (self.shape.name(), self.dimension, self.shape.fewest());
        if !(fewest..=MOST_VARIABLES).contains(&dimension) {
            return Err(Error::problem(format!(
                "dimension = {dimension} of {name} is not between {fewest} and {MOST_VARIABLES}"
            )));
        }
        let (penalty, least) = (self.penalty, self.least_penalty());
        if !(least..=f64::MAX).contains(&penalty) {
            return Err(Error::problem(format!(
                "penalty = {penalty:?} is not a finite number of at least {least}"
            )));
        }
        check_noise(self.noise_std)
    }

    /// With less, something that fails could be better than something that succeeds.
    fn least_penalty(&self) -> f64 {
        LEAST_PENALTY.max(STEEPNESS * self.dimension as f64 + RIPPLE)
    }

    /// The function of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`Penalised::validate`].
    pub fn build(&self, seed: u64) -> Result<PenalisedFunction> {
        self.validate()?;
        let mut rng = generator(self.draw_seed.unwrap_or(seed), 0);
        let parameters = (0..self.dimension).map(|i| Parameter::real(format!("x{i}"), 0.0, 1.0));
        let space = Space::new(parameters.collect())?;
        let mut minimiser = place(self.dimension, &mut rng);
        let limits = match self.shape {
            PenalisedShape::HalfSpaces => half_spaces(SLACK, &minimiser, &mut rng),
            PenalisedShape::Corner => half_spaces(0.0, &minimiser, &mut rng),
            PenalisedShape::Choices => clashes(&minimiser, &mut rng),
            PenalisedShape::Memory => {
                // What fails is the same for all seeds here, so that it is the minimum that is drawn again.
                while Limits::Memory.are_exceeded(&minimiser) {
                    minimiser = place(self.dimension, &mut rng);
                }
                Limits::Memory
            }
        };
        let values: Vec<Value> = minimiser.iter().copied().map(Value::Real).collect();
        let point = space.encode(&values)?;
        Ok(PenalisedFunction {
            space,
            minimiser,
            limits,
            penalty: self.penalty,
            noise_std: self.noise_std,
            optimum: Optimum { value: 0.0, point, certainty: Certainty::Exact },
        })
    }
}

/// A random place that is not at the border of the unit cube.
fn place(dimension: usize, rng: &mut Generator) -> Vec<f64> {
    (0..dimension).map(|_| MARGIN + (1.0 - 2.0 * MARGIN) * rng.random::<f64>()).collect()
}

/// Three random half spaces with this point in them. A half space without it is drawn again, which happens at most half of the
/// time: the opposite direction is as likely, and has the point in it.
fn half_spaces(slack: f64, inside: &[f64], rng: &mut Generator) -> Limits {
    let mut directions: Vec<Vec<f64>> = Vec::with_capacity(HALF_SPACES);
    while directions.len() < HALF_SPACES {
        let drawn: Vec<f64> = inside.iter().map(|_| normal(1.0, rng)).collect();
        let length = drawn.iter().map(|x| x * x).sum::<f64>().sqrt();
        // A direction of no length has probability 0.
        if length < 1e-6 {
            continue;
        }
        let direction: Vec<f64> = drawn.into_iter().map(|x| x / length).collect();
        if from_centre(&direction, inside) <= slack {
            directions.push(direction);
        }
    }
    Limits::HalfSpaces { directions, slack }
}

/// How far a point is from the centre of the cube in this direction.
fn from_centre(direction: &[f64], x: &[f64]) -> f64 {
    direction.iter().zip(x).map(|(direction, x)| direction * (x - 0.5)).sum()
}

/// For each pair of variables the combinations that clash; those of this point never do.
fn clashes(inside: &[f64], rng: &mut Generator) -> Limits {
    let pairs = (0..PAIRS).map(|pair| {
        // Drawn for all, so that one combination does not move the draws of the others.
        let mut clash = [[false; LEVELS]; LEVELS];
        clash.iter_mut().flatten().for_each(|clash| *clash = rng.random::<f64>() < CLASH);
        clash[level(inside[pair])][level(inside[pair + PAIRS])] = false;
        clash
    });
    Limits::Choices(pairs.collect())
}

/// The level of a number in \[0, 1\].
fn level(x: f64) -> usize {
    ((LEVELS as f64 * x) as usize).min(LEVELS - 1)
}

/// What has to be kept to.
#[derive(Debug, Clone)]
enum Limits {
    /// How far a point may be from the centre in these directions.
    HalfSpaces {
        directions: Vec<Vec<f64>>,
        slack: f64,
    },
    /// Whether two levels clash, for each pair of variables.
    Choices(Vec<[[bool; LEVELS]; LEVELS]>),
    Memory,
}

impl Limits {
    fn are_exceeded(&self, x: &[f64]) -> bool {
        match self {
            Self::HalfSpaces { directions, slack } => {
                directions.iter().any(|direction| from_centre(direction, x) > *slack)
            }
            Self::Choices(clashes) => {
                let mut pairs = clashes.iter().zip(x.iter().zip(&x[PAIRS..]));
                pairs.any(|(clash, (&a, &b))| clash[level(a)][level(b)])
            }
            Self::Memory => {
                let used: f64 = x[..3].iter().map(|x| x + LEAST_USE).product();
                used > MEMORY || x[3] > THRESHOLD
            }
        }
    }
}

/// A function of which a part cannot be evaluated. It is to be minimised.
#[derive(Debug, Clone)]
pub struct PenalisedFunction {
    space: Space,
    minimiser: Vec<f64>,
    limits: Limits,
    penalty: f64,
    noise_std: f64,
    optimum: Optimum,
}

impl Problem for PenalisedFunction {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        let x = numbers(values)?;
        check_count(x.len(), &self.space)?;
        if self.limits.are_exceeded(&x) {
            return Ok(self.penalty);
        }
        let off: Vec<f64> = x.iter().zip(&self.minimiser).map(|(x, best)| x - best).collect();
        let bowl: f64 = off.iter().map(|off| STEEPNESS * off * off).sum();
        Ok(bowl + RIPPLE * (RIPPLE_FREQUENCY * off[0] * off[1]).sin().powi(2))
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
    use boscage::Point;

    use super::*;

    const SHAPES: [PenalisedShape; 4] = [
        PenalisedShape::HalfSpaces,
        PenalisedShape::Corner,
        PenalisedShape::Choices,
        PenalisedShape::Memory,
    ];

    fn at(problem: &PenalisedFunction, point: &Point) -> f64 {
        problem.evaluate(&problem.space().decode(point).unwrap()).unwrap()
    }

    /// The share of 4,000 random points that succeed.
    fn share(problem: &PenalisedFunction, seed: u64) -> f64 {
        let mut rng = generator(seed, 1);
        let succeeds = |_: &i32| at(problem, &problem.space().sample(&mut rng)) < problem.penalty;
        (0..4_000).filter(succeeds).count() as f64 / 4_000.0
    }

    #[test]
    fn the_minimum_succeeds_and_is_0() {
        for shape in SHAPES {
            for dimension in [shape.fewest(), 20, 33] {
                let spec = Penalised { dimension, ..Penalised::new(shape) };
                for seed in 0..20 {
                    let problem = spec.build(seed).unwrap();
                    let optimum = problem.optimum().unwrap();
                    assert_eq!((optimum.value, optimum.certainty), (0.0, Certainty::Exact));
                    assert_eq!(at(&problem, &optimum.point), 0.0, "{shape:?}, seed {seed}");
                    // Near it and far from it everything is higher.
                    let mut rng = generator(seed, 1);
                    for width in [1e-3, 0.1, 2.0] {
                        for _ in 0..50 {
                            let near = |x: &f64| x + width * (rng.random::<f64>() - 0.5);
                            let near = optimum.point.0.iter().map(near);
                            let point = Point(near.map(|x| x.clamp(0.0, 1.0)).collect());
                            assert!(at(&problem, &point) > 0.0);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn as_much_of_the_space_succeeds_as_is_said() {
        for (shape, expected) in
            SHAPES.into_iter().zip([0.49..0.54, 0.11..0.16, 0.27..0.38, 0.32..0.345])
        {
            let spec = Penalised::new(shape);
            let shares: Vec<f64> =
                (0..40).map(|seed| share(&spec.build(seed).unwrap(), seed)).collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!(expected.contains(&mean), "{shape:?}: {mean}");
        }
    }

    #[test]
    fn what_fails_has_the_penalty_and_nothing_else_comes_near_it() {
        for shape in SHAPES {
            for (dimension, penalty) in [(20, 1e3), (20, 1e6), (16, 1e300), (200, 2_003.0)] {
                let problem = Penalised { dimension, penalty, ..Penalised::new(shape) };
                let problem = problem.build(3).unwrap();
                let mut rng = generator(3, 1);
                let mut failures = 0;
                for _ in 0..300 {
                    let point = problem.space().sample(&mut rng);
                    let value = at(&problem, &point);
                    if problem.limits.are_exceeded(&point.0) {
                        assert_eq!(value, penalty);
                        failures += 1;
                    } else {
                        assert!((0.0..10.0 * dimension as f64 + 3.0).contains(&value), "{value}");
                    }
                }
                assert!((1..300).contains(&failures), "{shape:?}: {failures}");
            }
        }
    }

    #[test]
    fn values_are_those_of_the_formula() {
        // The wall of the memory and the threshold are where they are said to be, and the ripple is one of two variables.
        let spec = Penalised { dimension: 4, ..Penalised::new(PenalisedShape::Memory) };
        let problem = spec.build(1).unwrap();
        let value = |x: [f64; 4]| problem.evaluate(&x.map(Value::Real)).unwrap();
        let expected = |x: [f64; 4]| {
            let off: Vec<f64> = x.iter().zip(&problem.minimiser).map(|(x, s)| x - s).collect();
            let ripple = (5.0 * off[0] * off[1]).sin();
            10.0 * off.iter().map(|off| off.powi(2)).sum::<f64>() + 3.0 * ripple * ripple
        };
        // 0.8 · 0.8 · 0.39 = 0.2496 and 0.8 · 0.8 · 0.391 = 0.25024.
        for x in [[0.6, 0.6, 0.19, 0.7], [0.0; 4], [0.0, 1.0, 0.8, 0.3], [1.0, 0.0, 0.84, 0.0]] {
            approx::assert_relative_eq!(value(x), expected(x), max_relative = 1e-13);
        }
        for x in [[0.6, 0.6, 0.191, 0.7], [0.0, 0.0, 0.0, 0.701], [1.0, 0.0, 0.85, 0.0], [1.0; 4]] {
            assert_eq!(value(x), 1e6);
        }
        // The centre is in all half spaces; those of a corner end there.
        let centre = Point(vec![0.5; 20]);
        for seed in 0..20 {
            for shape in [PenalisedShape::HalfSpaces, PenalisedShape::Corner] {
                let problem = Penalised::new(shape).build(seed).unwrap();
                assert!(at(&problem, &centre) < 1e3);
                let Limits::HalfSpaces { directions, .. } = &problem.limits else {
                    panic!("{shape:?} has no half spaces");
                };
                for direction in directions {
                    let step = |length: f64| {
                        Point(direction.iter().map(|along| 0.5 + length * along).collect())
                    };
                    let reach = if shape == PenalisedShape::Corner { 0.0 } else { 0.25 };
                    assert_eq!(at(&problem, &step(reach + 1e-9)), 1e6);
                }
            }
        }
    }

    #[test]
    fn combinations_clash_as_often_as_they_should() {
        let (mut clashing, mut all) = (0, 0);
        for seed in 0..100 {
            let problem = Penalised::new(PenalisedShape::Choices).build(seed).unwrap();
            let Limits::Choices(pairs) = &problem.limits else {
                panic!("there are no choices");
            };
            assert_eq!(pairs.len(), 8);
            clashing += pairs.iter().flatten().flatten().filter(|&&clash| clash).count();
            all += 8 * 8;
        }
        // One of the nine never does.
        let expected = 0.15 * f64::from(all);
        assert!((clashing as f64 - expected).abs() < 4.0 * (expected * 0.85).sqrt(), "{clashing}");
        // Levels are thirds, and what is beyond 16 variables takes no part.
        assert_eq!([0.0, 0.333, 0.334, 0.666, 0.667, 1.0].map(level), [0, 0, 1, 1, 2, 2]);
        let problem = Penalised::new(PenalisedShape::Choices).build(0).unwrap();
        let mut rng = generator(0, 1);
        for _ in 0..100 {
            let mut point = problem.space().sample(&mut rng);
            let fails = problem.limits.are_exceeded(&point.0);
            point.0[16..].fill(rng.random());
            assert_eq!(problem.limits.are_exceeded(&point.0), fails);
        }
    }

    #[test]
    fn the_seed_decides() {
        for shape in SHAPES {
            let spec = Penalised::new(shape);
            let build = |spec: &Penalised, seed| spec.build(seed).unwrap();
            let (one, again, other) = (build(&spec, 1), build(&spec, 1), build(&spec, 2));
            let fixed = build(&Penalised { draw_seed: Some(1), ..spec.clone() }, 99);
            let points: Vec<Point> = {
                let mut rng = generator(5, 1);
                (0..2_000).map(|_| one.space().sample(&mut rng)).collect()
            };
            let values = |problem| points.iter().map(|x| at(problem, x)).collect::<Vec<f64>>();
            assert_eq!(values(&one), values(&again));
            assert_eq!(values(&one), values(&fixed));
            assert_ne!(one.optimum().unwrap().point, other.optimum().unwrap().point);
            let (ones, others) = (values(&one), values(&other));
            let both = ones.iter().zip(&others).filter(|(a, b)| **a < 1e3 && **b < 1e3);
            assert!(both.clone().count() > 10 && both.clone().all(|(a, b)| a != b), "{shape:?}");
            // What fails is drawn too, but for the memory, which is what it is.
            let same = ones.iter().zip(&others).all(|(a, b)| (*a < 1e3) == (*b < 1e3));
            assert_eq!(same, shape == PenalisedShape::Memory);
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let refusal = |spec: Penalised| spec.build(0).unwrap_err().to_string();
        for (shape, dimension, reason) in [
            (PenalisedShape::HalfSpaces, 1, "dimension = 1 of half-spaces is not between 2 and"),
            (PenalisedShape::Corner, 1_001, "dimension = 1001 of corner is not between 2 and 1000"),
            (PenalisedShape::Choices, 15, "dimension = 15 of choices is not between 16 and 1000"),
            (PenalisedShape::Memory, 3, "dimension = 3 of memory is not between 4 and 1000"),
        ] {
            let found = refusal(Penalised { dimension, ..Penalised::new(shape) });
            assert!(found.contains(reason), "{found}");
        }
        let usual = Penalised::new(PenalisedShape::Memory);
        for penalty in [999.9, -1e6, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let found = refusal(Penalised { penalty, ..usual.clone() });
            let reason = format!("penalty = {penalty:?} is not a finite number of at least 1000");
            assert!(found.contains(&reason), "{found}");
        }
        let many = Penalised { dimension: 200, penalty: 2_000.0, ..usual.clone() };
        assert!(refusal(many).contains("at least 2003"));
        let noisy = Penalised { noise_std: -1.0, ..usual.clone() };
        assert!(refusal(noisy).contains("noise_std = -1"));
        assert_eq!(toml::from_str::<Penalised>("shape = \"memory\"").unwrap(), usual);
        assert!(toml::from_str::<Penalised>("shape = \"ball\"").is_err());
        assert!(toml::from_str::<Penalised>("shape = \"memory\"\nslack = 1").is_err());
        assert!(toml::from_str::<Penalised>("dimension = 20").is_err());
        let problem = usual.build(0).unwrap();
        assert!(problem.evaluate(&vec![Value::Real(0.5); 19]).is_err());
        assert!(problem.evaluate(&vec![Value::Choice("a half".into()); 20]).is_err());
    }
}
