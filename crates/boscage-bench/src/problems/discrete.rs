//! Published test problems whose parameters are not all real numbers.
//!
//! Sources:
//! - Ackley's function of 50 truth values and 3 reals: L. Bliek et al., *Black-box Mixed-Variable Optimization Using a Surrogate
//!   Model that Satisfies Integer Constraints*, GECCO 2021. Its minimum is at 0 there; here the seed chooses which truth values
//!   and reals are best, because 0 flatters methods that begin or end there (as in L. Papenmeier et al., *Bounce*, NeurIPS 2023).
//! - Binary sequences with low autocorrelation: M. Golay, *Sieves for Low Autocorrelation Binary Sequences*, 1977. The best merit
//!   factors: T. Packebusch, S. Mertens, *Low Autocorrelation Binary Sequences*, J. Phys. A 49, 2016.
//! - Pest control: C. Oh et al., *Combinatorial Bayesian Optimization using the Graph Cartesian Product*, NeurIPS 2019, section
//!   4.3 and its published code.
//!
//! Cost: O(D) for a value of Ackley's function, O(D²) for a sequence, 100 D for pest control.

use boscage::stream::Generator;
use boscage::{Parameter, Space, Value};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::problem::{Certainty, Optimum, Problem};
use crate::problems::additive::{check_count, check_noise, generator};
use crate::problems::closed_form::MARGIN;
use crate::problems::rotated::ackley;

/// The most parameters.
const MOST_PARAMETERS: usize = 1_000;

/// Real parameters of Ackley's function.
const ACKLEY_REALS: usize = 3;

/// Simulated fields of pest control.
const FIELDS: usize = 100;

/// Share of a field that pests may take before it counts.
const THRESHOLD: f64 = 0.1;

/// What can be done against pests, by the names of the choices; nothing comes first.
const CHOICES: [&str; 5] = ["nothing", "pesticide-1", "pesticide-2", "pesticide-3", "pesticide-4"];

/// One pesticide of pest control.
struct Pesticide {
    price: f64,
    /// Part of the price that is saved if all stages use it.
    discount: f64,
    /// The share of pests that it kills is a Beta(1, β) number; this is β at first.
    beta: f64,
    /// By how much β grows if all stages use it.
    tolerance: f64,
}

const PESTICIDES: [Pesticide; 4] = [
    Pesticide { price: 1.0, discount: 0.2, beta: 2.0 / 7.0, tolerance: 1.0 / 7.0 },
    Pesticide { price: 0.8, discount: 0.3, beta: 3.0 / 7.0, tolerance: 2.5 / 7.0 },
    Pesticide { price: 0.7, discount: 0.3, beta: 3.0 / 7.0, tolerance: 2.0 / 7.0 },
    Pesticide { price: 0.5, discount: 0.0, beta: 5.0 / 7.0, tolerance: 0.5 / 7.0 },
];

/// Best sequences of some lengths, as lengths of runs of equal signs: one of several that are as good.
const BEST_SEQUENCES: [(usize, &[u8]); 6] = [
    (10, b"42211"),
    (20, b"5113112321"),
    (30, b"551212111113231"),
    (40, b"44412112131121313131"),
    (50, b"215131311224112241141142"),
    (60, b"761112141111131124211322211222"),
];

/// The problems. All are to be minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscreteFunction {
    /// Ackley's function of x − x*: truth values as 0 and 1, and after them 3 reals in \[−1, 1\]. 53 parameters if nothing is said.
    Ackley,
    /// Minus the merit factor D²/(2 Σ C_k²) of a sequence of signs, with C_k = Σ sᵢsᵢ₊ₖ. The same for all seeds. 40 signs if
    /// nothing is said.
    LowAutocorrelation,
    /// In each stage, a choice between four pesticides and nothing: what they cost, and how many of 100 simulated fields have
    /// more than a tenth of pests, summed over the stages. Pesticides get cheaper and pests more tolerant the more one is used. The
    /// seed makes the weather of the fields. The best choices are not known. 25 stages if nothing is said.
    PestControl,
}

/// A problem whose parameters are not all real.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discrete {
    /// Which problem.
    pub function: DiscreteFunction,
    /// Number of parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Standard deviation of the observation noise.
    #[serde(default)]
    pub noise_std: f64,
    /// Seed of what is random in the problem; if it is left out, every seed of the experiment has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw_seed: Option<u64>,
}

impl Discrete {
    /// The problem as it was published.
    pub fn new(function: DiscreteFunction) -> Self {
        Self { function, dimension: None, noise_std: 0.0, draw_seed: None }
    }

    /// Refuses numbers that make no sense.
    pub fn validate(&self) -> Result<()> {
        let fewest = match self.function {
            DiscreteFunction::Ackley => ACKLEY_REALS + 1,
            DiscreteFunction::LowAutocorrelation => 2,
            DiscreteFunction::PestControl => 1,
        };
        let dimension = self.dimension();
        if !(fewest..=MOST_PARAMETERS).contains(&dimension) {
            return Err(Error::problem(format!(
                "dimension = {dimension} is not between {fewest} and {MOST_PARAMETERS}"
            )));
        }
        check_noise(self.noise_std)
    }

    fn dimension(&self) -> usize {
        self.dimension.unwrap_or(match self.function {
            DiscreteFunction::Ackley => 53,
            DiscreteFunction::LowAutocorrelation => 40,
            DiscreteFunction::PestControl => 25,
        })
    }

    /// The problem of this seed.
    ///
    /// # Errors
    ///
    /// Those of [`Discrete::validate`].
    pub fn build(&self, seed: u64) -> Result<DiscreteProblem> {
        self.validate()?;
        let mut rng = generator(self.draw_seed.unwrap_or(seed), 0);
        let dimension = self.dimension();
        let name = |i: usize| format!("x{i}");
        let (parameters, drawn, best) = match self.function {
            DiscreteFunction::Ackley => {
                let booleans = dimension - ACKLEY_REALS;
                let parameters = (0..dimension).map(|i| {
                    if i < booleans {
                        Parameter::boolean(name(i))
                    } else {
                        Parameter::real(name(i), -1.0, 1.0)
                    }
                });
                let best = (0..dimension).map(|i| {
                    if i < booleans {
                        Value::Boolean(rng.random())
                    } else {
                        let share = MARGIN + (1.0 - 2.0 * MARGIN) * rng.random::<f64>();
                        Value::Real(2.0 * share - 1.0)
                    }
                });
                let best: Vec<Value> = best.collect();
                let place = best.iter().filter_map(Value::as_f64).collect();
                (parameters.collect::<Vec<Parameter>>(), Drawn::Ackley(place), Some((0.0, best)))
            }
            DiscreteFunction::LowAutocorrelation => {
                let best = best_sequence(dimension).map(|signs| {
                    (
                        -merit_factor(&signs),
                        signs.into_iter().map(Value::Boolean).collect::<Vec<Value>>(),
                    )
                });
                let parameters = (0..dimension).map(|i| Parameter::boolean(name(i)));
                (parameters.collect::<Vec<Parameter>>(), Drawn::LowAutocorrelation, best)
            }
            DiscreteFunction::PestControl => {
                let parameters = (0..dimension).map(|i| Parameter::categorical(name(i), CHOICES));
                let weather = Weather::new(dimension, &mut rng);
                (parameters.collect::<Vec<Parameter>>(), Drawn::PestControl(weather), None)
            }
        };
        let space = Space::new(parameters)?;
        let optimum = match best {
            None => None,
            Some((value, best)) => {
                Some(Optimum { value, point: space.encode(&best)?, certainty: Certainty::Exact })
            }
        };
        Ok(DiscreteProblem { space, drawn, noise_std: self.noise_std, optimum })
    }
}

/// What the seed has drawn.
#[derive(Debug, Clone)]
enum Drawn {
    /// Where the minimum is.
    Ackley(Vec<f64>),
    LowAutocorrelation,
    PestControl(Weather),
}

/// Uniform numbers for each field of each stage: what is random in pest control. All Beta(1, β) numbers in it are
/// 1 − u^(1/β), whatever β is.
#[derive(Debug, Clone)]
struct Weather {
    first: Vec<f64>,
    /// For the spread of pests and for the work of a pesticide, of each stage.
    stages: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Weather {
    fn new(stages: usize, rng: &mut Generator) -> Self {
        let mut fields = || (0..FIELDS).map(|_| 1.0 - rng.random::<f64>()).collect::<Vec<f64>>();
        Self { first: fields(), stages: (0..stages).map(|_| (fields(), fields())).collect() }
    }
}

/// A Beta(1, β) number from a uniform one.
fn beta(uniform: f64, beta: f64) -> f64 {
    1.0 - uniform.powf(1.0 / beta)
}

/// What the choices of all stages come to; 0 is nothing, 1 the first pesticide.
fn pest_control(choices: &[usize], weather: &Weather) -> f64 {
    let stages = choices.len() as f64;
    let mut pests: Vec<f64> = weather.first.iter().map(|&u| beta(u, 30.0)).collect();
    let mut betas: Vec<f64> = PESTICIDES.iter().map(|pesticide| pesticide.beta).collect();
    let mut total = 0.0;
    for (&choice, (spread, work)) in choices.iter().zip(&weather.stages) {
        let infested = pests.iter().filter(|&&pests| pests > THRESHOLD).count();
        total += infested as f64 / FIELDS as f64;
        match choice.checked_sub(1) {
            None => {
                for (pests, &u) in pests.iter_mut().zip(spread) {
                    *pests += beta(u, 17.0 / 3.0) * (1.0 - *pests);
                }
            }
            Some(number) => {
                let pesticide = &PESTICIDES[number];
                for (pests, &u) in pests.iter_mut().zip(work) {
                    *pests *= 1.0 - beta(u, betas[number]);
                }
                betas[number] += pesticide.tolerance / stages;
                let uses = choices.iter().filter(|&&other| other == choice).count() as f64;
                total += pesticide.price * (1.0 - pesticide.discount / stages * uses);
            }
        }
    }
    total
}

/// The best sequence of this length, if it is known here.
fn best_sequence(length: usize) -> Option<Vec<bool>> {
    let (_, runs) = BEST_SEQUENCES.iter().find(|(known, _)| *known == length)?;
    let runs = runs.iter().enumerate();
    let signs =
        runs.flat_map(|(i, &count)| std::iter::repeat_n(i % 2 == 1, usize::from(count - b'0')));
    Some(signs.collect())
}

/// Golay's merit factor.
fn merit_factor(signs: &[bool]) -> f64 {
    let length = signs.len();
    let energy: i64 = (1..length)
        .map(|shift| {
            let same = signs.iter().zip(&signs[shift..]).filter(|(a, b)| a == b).count() as i64;
            let correlation = 2 * same - (length - shift) as i64;
            correlation * correlation
        })
        .sum();
    (length * length) as f64 / (2 * energy) as f64
}

/// A problem whose parameters are not all real. It is to be minimised.
#[derive(Debug, Clone)]
pub struct DiscreteProblem {
    space: Space,
    drawn: Drawn,
    noise_std: f64,
    optimum: Option<Optimum>,
}

impl Problem for DiscreteProblem {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> Result<f64> {
        check_count(values.len(), &self.space)?;
        let wrong = |value: &Value, expected: &str| Error::Evaluation {
            reason: format!("{value} is not {expected}"),
        };
        match &self.drawn {
            Drawn::Ackley(best) => {
                let off = values.iter().zip(best).map(|(value, best)| {
                    Ok(value.as_f64().ok_or_else(|| wrong(value, "a number"))? - best)
                });
                Ok(ackley(off.collect::<Result<Vec<f64>>>()?.into_iter()))
            }
            Drawn::LowAutocorrelation => {
                let signs = values.iter().map(|value| match value {
                    Value::Boolean(sign) => Ok(*sign),
                    _ => Err(wrong(value, "true or false")),
                });
                Ok(-merit_factor(&signs.collect::<Result<Vec<bool>>>()?))
            }
            Drawn::PestControl(weather) => {
                let choices = values.iter().map(|value| {
                    let known = match value {
                        Value::Choice(name) => CHOICES.iter().position(|choice| choice == name),
                        _ => None,
                    };
                    known.ok_or_else(|| wrong(value, "one of the choices"))
                });
                Ok(pest_control(&choices.collect::<Result<Vec<usize>>>()?, weather))
            }
        }
    }

    fn noise_std(&self) -> f64 {
        self.noise_std
    }

    fn optimum(&self) -> Option<&Optimum> {
        self.optimum.as_ref()
    }
}
