//! The search space: named parameters, their values, and the unit cube in which models see them.
//!
//! **Source.** Scaling every parameter to `[0, 1]` and moving finite coordinates onto their levels
//! before a kernel sees them follows E. C. Garrido-Merchán and D. Hernández-Lobato, "Dealing with
//! categorical and integer-valued variables in Bayesian optimization with Gaussian processes"
//! (Neurocomputing 380, 2020). Drawing integers on a log scale from the interval widened by one
//! half on both sides is what Optuna and ConfigSpace do.
//!
//! **Notation.** `D` is the number of parameters; `d` numbers them from 0. A parameter is either a
//! real interval or has `k` levels `m = 0, …, k - 1`. A coordinate `c` is the place of a value in
//! `[0, 1]`; a [`Point`] holds `D` of them.
//!
//! | domain | levels | coordinate |
//! |---|---|---|
//! | real `v` | none | `(v - low) / (high - low)` |
//! | real `v`, log | none | `ln(v / low) / ln(high / low)` |
//! | integer, ordinal, boolean, categorical | `k` | `m / (k - 1)` |
//! | integer `v`, log | `k` | `ln(v / low) / ln(last / low)` |
//! | anything with one value | 1 | `0.5` |
//!
//! Here `last` is the largest level, which is below `high` if the step does not divide the range.
//!
//! **Cost.** Levels are never listed: [`Space::coordinate`], [`Space::level`] and everything that
//! handles one integer coordinate take constant time however long the range. Encoding a real costs
//! one or two hundred evaluations of its scale at worst, encoding a choice a scan of the choices.

use std::collections::{HashMap, HashSet};
use std::fmt;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most levels of an integer parameter. Up to here `m / (k - 1)` differs for every `m`.
const MOST_INTEGER_LEVELS: u64 = 1 << 53;

/// The most levels of an ordinal or categorical parameter, whose levels are listed.
const MOST_LISTED_LEVELS: usize = 65_536;

/// The largest `last · ln(last / low)` of an integer on a log scale. The coordinates of its two
/// largest levels are the reciprocal of this apart, at least 8 units in the last place of 1, which
/// leaves room for the rounding of the logarithms.
const MOST_LOG_DENSITY: f64 = (1_u64 << 50) as f64;

/// How many neighbouring floating-point numbers are tried on either side of an estimate.
const NEIGHBOURS: usize = 8;

/// The values a parameter may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Domain {
    /// All real numbers from `low` to `high`, both included.
    Real {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Whether equal ratios, not equal differences, are equally far apart.
        #[serde(default)]
        log: bool,
    },
    /// The integers `low`, `low + step`, … up to `high`.
    Integer {
        /// Smallest value.
        low: i64,
        /// Upper bound; the largest value if the step divides the range.
        high: i64,
        /// Distance between neighbouring values.
        #[serde(default = "unit_step")]
        step: u64,
        /// Whether equal ratios, not equal differences, are equally far apart.
        #[serde(default)]
        log: bool,
    },
    /// Numbers of which only the order matters to the model.
    Ordinal {
        /// The values, strictly increasing.
        levels: Vec<f64>,
    },
    /// False or true.
    // A unit variant would let unknown fields pass.
    #[serde(deserialize_with = "no_fields")]
    Boolean,
    /// Names without an order.
    Categorical {
        /// The names, all different.
        choices: Vec<String>,
    },
}

fn unit_step() -> u64 {
    1
}

fn no_fields<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoFields {}
    NoFields::deserialize(deserializer).map(|NoFields {}| ())
}

/// A name and a domain.
///
/// As JSON: `{"name": "rate", "type": "real", "low": 1e-5, "high": 1, "log": true}`. A parameter is
/// checked when it becomes part of a [`Space`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// What the parameter is called; not empty, and different from all others of the space.
    pub name: String,
    /// The values it may take.
    #[serde(flatten)]
    pub domain: Domain,
}

impl Parameter {
    /// Real numbers from `low` to `high`.
    pub fn real(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self::new(name, Domain::Real { low, high, log: false })
    }

    /// Positive real numbers from `low` to `high` on a log scale.
    pub fn real_log(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self::new(name, Domain::Real { low, high, log: true })
    }

    /// Integers from `low` to `high`.
    pub fn integer(name: impl Into<String>, low: i64, high: i64) -> Self {
        Self::integer_step(name, low, high, 1)
    }

    /// Positive integers from `low` to `high` on a log scale.
    pub fn integer_log(name: impl Into<String>, low: i64, high: i64) -> Self {
        Self::new(name, Domain::Integer { low, high, step: 1, log: true })
    }

    /// The integers `low`, `low + step`, … that are not above `high`.
    pub fn integer_step(name: impl Into<String>, low: i64, high: i64, step: u64) -> Self {
        Self::new(name, Domain::Integer { low, high, step, log: false })
    }

    /// The given numbers, which must be strictly increasing; the model sees their ranks.
    pub fn ordinal(name: impl Into<String>, levels: impl Into<Vec<f64>>) -> Self {
        Self::new(name, Domain::Ordinal { levels: levels.into() })
    }

    /// False or true.
    pub fn boolean(name: impl Into<String>) -> Self {
        Self::new(name, Domain::Boolean)
    }

    /// One of the given names, which have no order.
    pub fn categorical<C: Into<String>>(
        name: impl Into<String>,
        choices: impl IntoIterator<Item = C>,
    ) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        Self::new(name, Domain::Categorical { choices })
    }

    fn new(name: impl Into<String>, domain: Domain) -> Self {
        Self { name: name.into(), domain }
    }

    /// Checks the domain and works out its geometry.
    fn axis(&self) -> Result<Axis> {
        let refuse = |reason: String| Err(Error::InvalidDomain { name: self.name.clone(), reason });
        let count = match &self.domain {
            &Domain::Real { low, high, log } => {
                if !low.is_finite() || !high.is_finite() {
                    return refuse(format!("bounds {low} and {high} must both be finite numbers"));
                }
                if low > high {
                    return refuse(format!("low {low} is above high {high}; swap them"));
                }
                if log && low <= 0.0 {
                    return refuse(format!(
                        "a log scale needs low above 0, not {low}; raise low or set log to false"
                    ));
                }
                return Ok(match (low < high, log) {
                    (false, _) => Axis::Even { count: 1 },
                    (true, false) => Axis::Interval { low, high },
                    (true, true) => {
                        Axis::LogInterval { low, high, ratio: log_ratio(low, high - low) }
                    }
                });
            }
            &Domain::Integer { low, high, step, log } => {
                if low > high {
                    return refuse(format!("low {low} is above high {high}; swap them"));
                }
                if step == 0 {
                    return refuse("the step is 0; it must be at least 1".to_owned());
                }
                if log && step != 1 {
                    return refuse(format!(
                        "step {step} cannot be combined with a log scale; use step 1 or list the \
                         values as an ordinal parameter"
                    ));
                }
                if log && low < 1 {
                    return refuse(format!(
                        "a log scale needs low of at least 1, not {low}; raise low or set log to \
                         false"
                    ));
                }
                // One level less than there are, so that the whole range of i64 does not overflow.
                let steps = high.abs_diff(low) / step;
                if steps >= MOST_INTEGER_LEVELS {
                    return refuse(format!(
                        "{} levels are more than the {MOST_INTEGER_LEVELS} that can be told apart; \
                         use a narrower range, a larger step or a real parameter",
                        u128::from(steps) + 1
                    ));
                }
                let count = steps + 1;
                if log && count > 1 {
                    let ratio = log_ratio(low as f64, steps as f64);
                    if high as f64 * ratio > MOST_LOG_DENSITY {
                        return refuse(format!(
                            "on a log scale, neighbouring integers near {high} are too close to be \
                             told apart; lower high (from 1, 30000000000000 is fine), set log to \
                             false or use a real parameter"
                        ));
                    }
                    return Ok(Axis::LogInteger { low, count, ratio });
                }
                count
            }
            Domain::Ordinal { levels } => {
                if levels.is_empty() {
                    return refuse("there are no levels; give at least one".to_owned());
                }
                if levels.len() > MOST_LISTED_LEVELS {
                    return refuse(format!(
                        "{} levels are more than the {MOST_LISTED_LEVELS} allowed; use an integer \
                         or real parameter",
                        levels.len()
                    ));
                }
                if let Some(level) = levels.iter().find(|level| !level.is_finite()) {
                    return refuse(format!("level {level} must be a finite number"));
                }
                if let Some(pair) = levels.windows(2).find(|pair| pair[0] >= pair[1]) {
                    return refuse(format!(
                        "level {} is followed by {}; levels must be strictly increasing",
                        pair[0], pair[1]
                    ));
                }
                levels.len() as u64
            }
            Domain::Boolean => 2,
            Domain::Categorical { choices } => {
                if choices.is_empty() {
                    return refuse("there are no choices; give at least one".to_owned());
                }
                if choices.len() > MOST_LISTED_LEVELS {
                    return refuse(format!(
                        "{} choices are more than the {MOST_LISTED_LEVELS} allowed",
                        choices.len()
                    ));
                }
                let mut seen = HashSet::new();
                if let Some(choice) = choices.iter().find(|choice| !seen.insert(choice.as_str())) {
                    return refuse(format!("choice {choice:?} occurs twice; choices must differ"));
                }
                choices.len() as u64
            }
        };
        Ok(Axis::Even { count })
    }

    /// The value at a level of a finite domain. The level must be one of the domain.
    fn value_at(&self, level: u64) -> Value {
        match &self.domain {
            &Domain::Real { low, .. } => Value::Real(low + 0.0),
            &Domain::Integer { low, step, .. } => {
                // The sum lies between low and high, so that wrapping arithmetic is exact.
                Value::Integer(low.wrapping_add_unsigned(level.wrapping_mul(step)))
            }
            Domain::Ordinal { levels } => Value::Real(levels[level as usize]),
            Domain::Boolean => Value::Boolean(level == 1),
            Domain::Categorical { choices } => Value::Choice(choices[level as usize].clone()),
        }
    }

    /// The place of a value in the domain, or what is wrong with the value.
    fn place(&self, value: &Value) -> std::result::Result<Place, String> {
        match (&self.domain, value) {
            (&Domain::Real { low, high, .. }, &(Value::Real(_) | Value::Integer(_))) => {
                let number = value.as_f64().unwrap_or(f64::NAN);
                if !(low..=high).contains(&number) {
                    return Err(format!("{value} is not between {low} and {high}"));
                }
                Ok(if low < high { Place::Real(number) } else { Place::Level(0) })
            }
            (&Domain::Integer { low, high, step, .. }, value) => {
                let number = match *value {
                    Value::Integer(number) => number,
                    Value::Real(number) => whole(number)
                        .ok_or_else(|| format!("{value} is not an integer of 64 bits"))?,
                    _ => return Err(format!("{value} is not an integer")),
                };
                if !(low..=high).contains(&number) {
                    return Err(format!("{value} is not between {low} and {high}"));
                }
                let offset = number.abs_diff(low);
                if !offset.is_multiple_of(step) {
                    return Err(format!("{value} is not {low} plus a multiple of {step}"));
                }
                Ok(Place::Level(offset / step))
            }
            (Domain::Ordinal { levels }, &(Value::Real(_) | Value::Integer(_))) => {
                let position = match *value {
                    // An integer that no f64 equals must not pass for the f64 next to it.
                    Value::Integer(number) => {
                        levels.iter().position(|level| whole(*level) == Some(number))
                    }
                    _ => {
                        let number = value.as_f64().unwrap_or(f64::NAN);
                        levels.iter().position(|level| *level == number)
                    }
                };
                position
                    .map(|position| Place::Level(position as u64))
                    .ok_or_else(|| format!("{value} is not one of the levels"))
            }
            (Domain::Boolean, &Value::Boolean(truth)) => Ok(Place::Level(u64::from(truth))),
            (Domain::Categorical { choices }, Value::Choice(choice)) => choices
                .iter()
                .position(|other| other == choice)
                .map(|position| Place::Level(position as u64))
                .ok_or_else(|| format!("{choice:?} is not one of the choices")),
            (Domain::Real { .. } | Domain::Ordinal { .. }, _) => {
                Err(format!("{value} is not a number"))
            }
            (Domain::Boolean, _) => Err(format!("{value} is neither false nor true")),
            (Domain::Categorical { .. }, _) => {
                Err(format!("{value} is not text; choices are given by name"))
            }
        }
    }
}

/// Where a value lies in its domain.
enum Place {
    /// In a real interval of positive width.
    Real(f64),
    /// On this level.
    Level(u64),
}

/// The 64-bit integer that equals `number`, if there is one.
fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = (1_u64 << 63) as f64;
    let fits = number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number);
    fits.then_some(number as i64)
}

/// The value of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a value is a number, true, false or text")]
pub enum Value {
    /// Of a boolean parameter.
    Boolean(bool),
    /// Of an integer parameter.
    Integer(i64),
    /// Of a real or ordinal parameter.
    Real(f64),
    /// Of a categorical parameter.
    Choice(String),
}

impl Value {
    /// The value as a number: false is 0, true is 1, and a choice has none. An integer of more than
    /// 53 bits is rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Boolean(truth) => Some(f64::from(u8::from(truth))),
            Self::Integer(number) => Some(number as f64),
            Self::Real(number) => Some(number),
            Self::Choice(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(truth) => write!(formatter, "{truth}"),
            Self::Integer(number) => write!(formatter, "{number}"),
            // Debug writes 1.0 and 1e300 where Display would write 1 and 301 digits.
            Self::Real(number) => write!(formatter, "{number:?}"),
            Self::Choice(choice) => write!(formatter, "{choice}"),
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for Value {
    fn from(choice: &str) -> Self {
        Self::Choice(choice.to_owned())
    }
}

impl From<String> for Value {
    fn from(choice: String) -> Self {
        Self::Choice(choice)
    }
}

/// Model coordinates: one number in `[0, 1]` for each parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub Vec<f64>);

impl Point {
    /// The coordinates.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }
}

/// The geometry of one parameter.
#[derive(Debug, Clone, PartialEq)]
enum Axis {
    /// A real interval with `low < high`.
    Interval { low: f64, high: f64 },
    /// A real interval with `0 < low < high` on a log scale; `ratio` is `ln(high / low)`.
    LogInterval { low: f64, high: f64, ratio: f64 },
    /// Levels at equal distances, or a single one in the middle.
    Even { count: u64 },
    /// At least two integers from `low` on a log scale; `ratio` is `ln(last / low)`.
    LogInteger { low: i64, count: u64, ratio: f64 },
}

impl Axis {
    fn levels(&self) -> Option<u64> {
        match *self {
            Self::Interval { .. } | Self::LogInterval { .. } => None,
            Self::Even { count } | Self::LogInteger { count, .. } => Some(count),
        }
    }

    fn coordinate(&self, level: u64) -> f64 {
        let Some(last) = self.levels().map(|count| count - 1).filter(|last| *last > 0) else {
            return 0.5;
        };
        let level = level.min(last);
        match *self {
            Self::LogInteger { low, ratio, .. } => {
                // Measured from the nearer end, both ends are exact and the rounding is least.
                let from_low = log_ratio(low as f64, level as f64) / ratio;
                if from_low <= 0.5 {
                    from_low
                } else {
                    let value = low as f64 + level as f64;
                    1.0 - log_ratio(value, (last - level) as f64) / ratio
                }
            }
            _ => level as f64 / last as f64,
        }
    }

    fn level(&self, coordinate: f64) -> u64 {
        let Some(last) = self.levels().map(|count| count - 1).filter(|last| *last > 0) else {
            return 0;
        };
        // Far outside, all levels would seem equally far. NaN stays NaN; its conversion gives 0.
        let coordinate = coordinate.clamp(0.0, 1.0);
        let estimate = match *self {
            Self::LogInteger { low, ratio, .. } => {
                if coordinate <= 0.5 {
                    (low as f64 * (coordinate * ratio).exp_m1()).round() as u64
                } else {
                    let high = low as f64 + last as f64;
                    let below = -high * ((coordinate - 1.0) * ratio).exp_m1();
                    last.saturating_sub(below.round() as u64)
                }
            }
            _ => (coordinate * last as f64).round() as u64,
        };
        // Rounding can put the estimate one or two levels off, and on a log scale the nearest value
        // need not have the nearest coordinate.
        let distance = |level| (self.coordinate(level) - coordinate).abs();
        let mut level = estimate.min(last);
        let mut least = distance(level);
        while level < last && distance(level + 1) < least {
            level += 1;
            least = distance(level);
        }
        while level > 0 && distance(level - 1) <= least {
            level -= 1;
            least = distance(level);
        }
        level
    }

    /// The coordinate below which a share `uniform` in `[0, 1]` of the parameter's draws lies.
    fn quantile(&self, uniform: f64) -> f64 {
        let level = match *self {
            // Adding 0 turns -0 into 0.
            Self::Interval { .. } | Self::LogInterval { .. } => return uniform + 0.0,
            Self::Even { count } => (uniform * count as f64) as u64,
            Self::LogInteger { low, count, .. } => {
                // Between low - 1/2 and last + 1/2, so that the ends get their full share.
                let start = low as f64 - 0.5;
                (start * (uniform * log_ratio(start, count as f64)).exp_m1()) as u64
            }
        };
        // `coordinate` takes the level k, which u = 1 gives, to the last.
        self.coordinate(level)
    }

    /// The value at a coordinate of a real interval.
    fn real(&self, coordinate: f64) -> f64 {
        let (low, high, value) = match *self {
            Self::Interval { low, high } => {
                let width = high - low;
                let value = if width.is_finite() {
                    low + coordinate * width
                } else {
                    2.0 * (0.5 * low + coordinate * (0.5 * high - 0.5 * low))
                };
                (low, high, value)
            }
            Self::LogInterval { low, high, ratio } => {
                // From the nearer end, as in `coordinate`.
                let value = if coordinate <= 0.5 {
                    scale(low, coordinate * ratio)
                } else {
                    scale(high, (coordinate - 1.0) * ratio)
                };
                (low, high, value)
            }
            Self::Even { .. } | Self::LogInteger { .. } => return f64::NAN,
        };
        let value = if coordinate <= 0.0 {
            low
        } else if coordinate >= 1.0 {
            high
        } else {
            // The exponential of the platform might overshoot.
            value.clamp(low, high)
        };
        // Without -0, equal values are equal bit for bit.
        value + 0.0
    }

    /// The coordinate of a value of a real interval: one at which `real` gives exactly this value
    /// if there is one, otherwise one at which it gives the nearest.
    fn real_coordinate(&self, value: f64) -> f64 {
        let estimate = match *self {
            Self::Interval { low, high } => {
                if value == low {
                    return 0.0;
                }
                if value == high {
                    return 1.0;
                }
                let width = high - low;
                if width.is_finite() {
                    (value - low) / width
                } else {
                    (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
                }
            }
            Self::LogInterval { low, high, ratio } => {
                if value == low {
                    return 0.0;
                }
                if value == high {
                    return 1.0;
                }
                let from_low = log_ratio(low, value - low) / ratio;
                if from_low <= 0.5 {
                    from_low
                } else {
                    1.0 - log_ratio(value, high - value) / ratio
                }
            }
            Self::Even { .. } | Self::LogInteger { .. } => return 0.5,
        };
        let mut search = Search { axis: self, value, best: 0.0, error: f64::INFINITY };
        if search.around(estimate.clamp(0.0, 1.0)) {
            return search.best;
        }
        // Where floating-point coordinates are much denser than values (near 0, or if the interval
        // is narrow), the right ones can be far away in number. On each half, `real` does not
        // decrease but for the rounding of the exponential, which the neighbours make up for.
        let middle = 0.5_f64;
        let _found = search.between(0.0, middle) || search.between(middle.next_up(), 1.0);
        search.best
    }
}

/// A search for the coordinate at which a real interval has a value.
struct Search<'a> {
    axis: &'a Axis,
    value: f64,
    best: f64,
    error: f64,
}

impl Search<'_> {
    /// Tries one coordinate and says whether it is exact.
    fn at(&mut self, coordinate: f64) -> bool {
        let error = (self.axis.real(coordinate) - self.value).abs();
        if error < self.error {
            self.best = coordinate;
            self.error = error;
        }
        error == 0.0
    }

    /// Tries a coordinate and its neighbours.
    fn around(&mut self, coordinate: f64) -> bool {
        let (mut below, mut above) = (coordinate, coordinate);
        if self.at(coordinate) {
            return true;
        }
        for _ in 0..NEIGHBOURS {
            below = below.next_down().max(0.0);
            above = above.next_up().min(1.0);
            if self.at(below) || self.at(above) {
                return true;
            }
        }
        false
    }

    /// Bisects the floating-point numbers between two coordinates.
    fn between(&mut self, first: f64, last: f64) -> bool {
        if self.at(first) || self.at(last) {
            return true;
        }
        // Numbers that are not negative are ordered like their bits.
        let (mut below, mut above) = (first.to_bits(), last.to_bits());
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if self.axis.real(f64::from_bits(middle)) < self.value {
                below = middle;
            } else {
                above = middle;
            }
        }
        self.around(f64::from_bits(above))
    }
}

/// `ln((low + difference) / low)`, accurate also if the difference is small.
fn log_ratio(low: f64, difference: f64) -> f64 {
    let quotient = difference / low;
    if quotient.is_finite() { quotient.ln_1p() } else { difference.ln() - low.ln() }
}

/// `value · exp(exponent)` where the exponential alone may be too large or too small for an f64.
fn scale(value: f64, exponent: f64) -> f64 {
    if exponent.abs() <= 700.0 {
        value * exponent.exp()
    } else {
        let root = (0.5 * exponent).exp();
        value * root * root
    }
}

/// A list of parameters with their geometry.
///
/// As JSON: `{"parameters": […]}`, where each entry is a [`Parameter`]. Reading it checks it like
/// [`Space::new`].
///
/// # Examples
///
/// ```
/// use boscage::space::{Parameter, Space, Value};
///
/// let space = Space::new(vec![
///     Parameter::real_log("rate", 1e-4, 1.0),
///     Parameter::integer("layers", 1, 5),
///     Parameter::categorical("kind", ["plain", "gated"]),
/// ])?;
/// let point = space.encode(&[1e-4.into(), 4.into(), "gated".into()])?;
/// assert_eq!(point.as_slice(), [0.0, 0.75, 1.0]);
/// assert_eq!(space.decode(&point)?[1], Value::Integer(4));
/// # Ok::<(), boscage::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Description", into = "Description")]
pub struct Space {
    parameters: Vec<Parameter>,
    axes: Vec<Axis>,
    positions: HashMap<String, usize>,
}

/// How a space is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    parameters: Vec<Parameter>,
}

impl TryFrom<Description> for Space {
    type Error = Error;

    fn try_from(description: Description) -> Result<Self> {
        Self::new(description.parameters)
    }
}

impl From<Space> for Description {
    fn from(space: Space) -> Self {
        Self { parameters: space.parameters }
    }
}

impl Space {
    /// A space of these parameters, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySpace`], [`Error::EmptyName`] and [`Error::DuplicateName`] if that is the
    /// case, and [`Error::InvalidDomain`] if a domain
    ///
    /// - has a bound that is NaN or infinite, or `low` above `high`;
    /// - has a log scale with `low` not above 0, or with a step other than 1;
    /// - has step 0;
    /// - has more than 2^53 integers, or integers on a log scale so dense that they cannot be told
    ///   apart (`high · ln(high / low)` above 2^50), or more than 65,536 levels or choices;
    /// - has no levels or choices, the same choice twice, or levels that do not increase strictly.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self> {
        if parameters.is_empty() {
            return Err(Error::EmptySpace);
        }
        let mut positions = HashMap::with_capacity(parameters.len());
        let mut axes = Vec::with_capacity(parameters.len());
        for (position, parameter) in parameters.iter().enumerate() {
            if parameter.name.is_empty() {
                return Err(Error::EmptyName { position });
            }
            if positions.insert(parameter.name.clone(), position).is_some() {
                return Err(Error::DuplicateName { name: parameter.name.clone() });
            }
            axes.push(parameter.axis()?);
        }
        Ok(Self { parameters, axes, positions })
    }

    /// Reals `x0`, `x1`, … on `[0, 1]`, whose values are their coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySpace`] if the dimension is 0.
    pub fn unit_cube(dimension: usize) -> Result<Self> {
        Self::new((0..dimension).map(|d| Parameter::real(format!("x{d}"), 0.0, 1.0)).collect())
    }

    /// The number of parameters, `D`.
    pub fn dimension(&self) -> usize {
        self.parameters.len()
    }

    /// The parameters in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.index_of(name).map(|d| &self.parameters[d])
    }

    /// The position of the parameter of this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// The number of levels of parameter `d`, or `None` if it is a real interval. A real parameter
    /// with `low == high` has one level.
    ///
    /// # Panics
    ///
    /// If `d` is not below the dimension.
    pub fn levels(&self, d: usize) -> Option<u64> {
        self.axes[d].levels()
    }

    /// The coordinate of a level of parameter `d`. Levels past the last count as the last. For a
    /// real interval, which has no levels, it is 0.5.
    ///
    /// # Panics
    ///
    /// If `d` is not below the dimension.
    pub fn coordinate(&self, d: usize, level: u64) -> f64 {
        self.axes[d].coordinate(level)
    }

    /// The level of parameter `d` whose coordinate is nearest, the lower of two equally near ones.
    /// For a real interval, which has no levels, and for NaN it is 0.
    ///
    /// # Panics
    ///
    /// If `d` is not below the dimension.
    pub fn level(&self, d: usize, coordinate: f64) -> u64 {
        self.axes[d].level(coordinate)
    }

    /// Whether the levels of parameter `d` have no order: it is boolean or categorical.
    ///
    /// # Panics
    ///
    /// If `d` is not below the dimension.
    pub fn is_categorical(&self, d: usize) -> bool {
        matches!(self.parameters[d].domain, Domain::Boolean | Domain::Categorical { .. })
    }

    /// The number of points, or `None` if there is a real interval. A number too large for its type
    /// is given as the largest number of the type.
    pub fn size(&self) -> Option<u128> {
        self.axes.iter().try_fold(1_u128, |size, axis| {
            axis.levels().map(|count| size.saturating_mul(count.into()))
        })
    }

    /// A random point. Reals are uniform on their scale, as are integers on a log scale between one
    /// half below the first and one half above the last; the levels of anything else are equally
    /// likely. Takes one number from the generator for each parameter.
    pub fn sample(&self, rng: &mut impl Rng) -> Point {
        Point(self.axes.iter().map(|axis| axis.quantile(rng.random::<f64>())).collect())
    }

    /// The point whose coordinates are the quantiles `uniform` of the distribution of
    /// [`Space::sample`]; numbers that fill the unit cube evenly become points that fill the space
    /// evenly.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDimension`], and [`Error::InvalidPoint`] if a number is not in `[0, 1]`.
    pub fn from_uniform(&self, uniform: &[f64]) -> Result<Point> {
        self.check_dimension("the list of uniform numbers", uniform)?;
        check_unit(uniform)?;
        Ok(Point(
            self.axes.iter().zip(uniform).map(|(axis, &share)| axis.quantile(share)).collect(),
        ))
    }

    /// The nearest point of the space: coordinates are clamped to `[0, 1]`, and those of finite
    /// parameters move to the nearest level.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDimension`], and [`Error::InvalidPoint`] if a coordinate is NaN.
    pub fn snap(&self, coordinates: &[f64]) -> Result<Point> {
        self.check_dimension("the list of coordinates", coordinates)?;
        let snapped = self.axes.iter().zip(coordinates).enumerate().map(|(d, (axis, &value))| {
            if value.is_nan() {
                let reason = "NaN is near no point; give a number".to_owned();
                return Err(Error::InvalidPoint { coordinate: d, value, reason });
            }
            let inside = value.clamp(0.0, 1.0) + 0.0;
            Ok(match axis.levels() {
                None => inside,
                Some(_) => axis.coordinate(axis.level(inside)),
            })
        });
        Ok(Point(snapped.collect::<Result<_>>()?))
    }

    /// Checks that a point belongs to the space: all coordinates in `[0, 1]`, and those of finite
    /// parameters exactly on a level.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDimension`] or [`Error::InvalidPoint`] if it does not.
    pub fn check(&self, point: &Point) -> Result<()> {
        self.check_dimension("the point", point.as_slice())?;
        check_unit(point.as_slice())?;
        for (d, (axis, &value)) in self.axes.iter().zip(point.as_slice()).enumerate() {
            if axis.levels().is_none() {
                continue;
            }
            let nearest = axis.coordinate(axis.level(value));
            if value != nearest {
                return Err(Error::InvalidPoint {
                    coordinate: d,
                    value,
                    reason: format!(
                        "it is on no level of parameter {:?}, of which the nearest is at {nearest}",
                        self.parameters[d].name
                    ),
                });
            }
        }
        Ok(())
    }

    /// The point of these values, one for each parameter in order.
    ///
    /// Real and ordinal parameters also take integers, integer parameters also take reals without
    /// a fraction. Values of finite parameters are given back exactly by [`Space::decode`], and so
    /// is a real that some coordinate stands for; of another real it gives back the nearest such.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDimension`], and [`Error::InvalidValue`] if a value does not belong to the
    /// domain of its parameter.
    pub fn encode(&self, values: &[Value]) -> Result<Point> {
        self.check_dimension("the list of values", values)?;
        let coordinates =
            self.parameters.iter().zip(&self.axes).zip(values).map(|((parameter, axis), value)| {
                match parameter.place(value) {
                    Ok(Place::Real(number)) => Ok(axis.real_coordinate(number)),
                    Ok(Place::Level(level)) => Ok(axis.coordinate(level)),
                    Err(reason) => {
                        Err(Error::InvalidValue { name: parameter.name.clone(), reason })
                    }
                }
            });
        Ok(Point(coordinates.collect::<Result<_>>()?))
    }

    /// The values at a point, one for each parameter in order. Reals never leave their bounds.
    ///
    /// # Errors
    ///
    /// Those of [`Space::check`].
    pub fn decode(&self, point: &Point) -> Result<Vec<Value>> {
        self.check(point)?;
        let coordinates = point.as_slice().iter();
        Ok(self
            .parameters
            .iter()
            .zip(&self.axes)
            .zip(coordinates)
            .map(|((parameter, axis), &coordinate)| match axis.levels() {
                None => Value::Real(axis.real(coordinate)),
                Some(_) => parameter.value_at(axis.level(coordinate)),
            })
            .collect())
    }

    fn check_dimension<T>(&self, what: &'static str, given: &[T]) -> Result<()> {
        let (expected, found) = (self.dimension(), given.len());
        if found == expected {
            Ok(())
        } else {
            Err(Error::WrongDimension { what, expected, found })
        }
    }
}

/// Checks that all numbers are in `[0, 1]`.
fn check_unit(numbers: &[f64]) -> Result<()> {
    match numbers.iter().position(|number| !(0.0..=1.0).contains(number)) {
        None => Ok(()),
        Some(coordinate) => Err(Error::InvalidPoint {
            coordinate,
            value: numbers[coordinate],
            reason: "it must be between 0 and 1".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// The checks of the fuzz target.
    mod checks {
        include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/checks/space.rs"));
    }

    const SEEDS: [(&[u8], bool); 5] = [
        (include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/every_type")), true),
        (include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/widest")), true),
        (include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/narrowest")), true),
        (
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/full_integers")),
            true,
        ),
        (include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/refused")), false),
    ];

    fn one(parameter: Parameter) -> Space {
        Space::new(vec![parameter]).unwrap()
    }

    fn encode(space: &Space, value: impl Into<Value>) -> f64 {
        space.encode(&[value.into()]).unwrap().0[0]
    }

    fn decode(space: &Space, coordinate: f64) -> Value {
        space.decode(&Point(vec![coordinate])).unwrap().remove(0)
    }

    fn real(space: &Space, coordinate: f64) -> f64 {
        decode(space, coordinate).as_f64().unwrap()
    }

    /// The reason for which a domain is refused.
    fn refusal(parameter: Parameter) -> String {
        match Space::new(vec![parameter.clone()]) {
            Err(Error::InvalidDomain { name, reason }) => {
                assert_eq!(name, parameter.name);
                reason
            }
            other => panic!("{parameter:?} gave {other:?}"),
        }
    }

    /// The reason for which a value is refused.
    fn value_refusal(space: &Space, value: impl Into<Value>) -> String {
        match space.encode(&[value.into()]) {
            Err(Error::InvalidValue { name, reason }) => {
                assert_eq!(name, "p");
                reason
            }
            other => panic!("{other:?}"),
        }
    }

    // Construction

    #[test]
    fn a_space_needs_parameters_with_different_names() {
        assert_eq!(Space::new(vec![]), Err(Error::EmptySpace));
        assert_eq!(Space::unit_cube(0), Err(Error::EmptySpace));
        assert_eq!(
            Space::new(vec![Parameter::boolean("a"), Parameter::boolean("")]),
            Err(Error::EmptyName { position: 1 })
        );
        assert_eq!(
            Space::new(vec![
                Parameter::boolean("a"),
                Parameter::boolean("b"),
                Parameter::real("a", 0.0, 1.0),
            ]),
            Err(Error::DuplicateName { name: "a".to_owned() })
        );
    }

    #[test]
    fn parameters_are_found_by_name() {
        let space =
            Space::new(vec![Parameter::boolean("a"), Parameter::integer("b", 0, 3)]).unwrap();
        assert_eq!(space.dimension(), 2);
        assert_eq!(space.index_of("b"), Some(1));
        assert_eq!(space.index_of("c"), None);
        assert_eq!(space.parameter("b"), Some(&space.parameters()[1]));
        assert_eq!(space.parameter("B"), None);
        assert!(space.is_categorical(0) && !space.is_categorical(1));
        let cube = Space::unit_cube(3).unwrap();
        assert_eq!(cube.parameters()[2], Parameter::real("x2", 0.0, 1.0));
        assert_eq!(cube.dimension(), 3);
        let corner = Point(vec![0.1, 0.7, 1.0]);
        let values = [0.1, 0.7, 1.0].map(Value::Real);
        assert_eq!(cube.decode(&corner).unwrap(), values);
        assert_eq!(cube.encode(&values).unwrap(), corner);
    }

    #[test]
    fn bad_real_bounds_are_refused() {
        for (low, high) in [(f64::NAN, 1.0), (0.0, f64::NAN), (f64::NEG_INFINITY, 0.0)] {
            assert!(refusal(Parameter::real("p", low, high)).contains("finite"));
        }
        assert!(refusal(Parameter::real_log("p", 1.0, f64::INFINITY)).contains("finite"));
        assert!(refusal(Parameter::real("p", 1.0, 0.5)).contains("swap"));
        assert!(refusal(Parameter::real_log("p", 2.0, 1.0)).contains("swap"));
        for low in [0.0, -0.0, -1.0] {
            assert!(refusal(Parameter::real_log("p", low, 1.0)).contains("above 0"));
        }
        // One value on a log scale still needs a logarithm.
        assert!(refusal(Parameter::real_log("p", 0.0, 0.0)).contains("above 0"));
    }

    #[test]
    fn bad_integer_ranges_are_refused() {
        assert!(refusal(Parameter::integer("p", 3, 2)).contains("swap"));
        assert!(refusal(Parameter::integer_step("p", 0, 5, 0)).contains("at least 1"));
        assert!(refusal(Parameter::integer_log("p", 0, 5)).contains("at least 1"));
        let domain = Domain::Integer { low: 1, high: 9, step: 2, log: true };
        let stepped = Parameter { name: "p".to_owned(), domain };
        assert!(refusal(stepped).contains("step 2 cannot be combined"));
        let most = 1 << 53;
        assert_eq!(one(Parameter::integer("p", 1, most)).levels(0), Some(most as u64));
        assert!(refusal(Parameter::integer("p", 0, most)).contains("9007199254740993 levels"));
        let all = Parameter::integer("p", i64::MIN, i64::MAX);
        assert!(refusal(all).contains("18446744073709551616 levels"));
    }

    #[test]
    fn integers_too_dense_on_a_log_scale_are_refused() {
        for (low, high) in [
            (1, 30_000_000_000_000),
            (1_000_000, 1_000_000_000_000),
            (1 << 60, (1 << 60) + 1000),
            (i64::MAX - 1, i64::MAX),
            (i64::MAX, i64::MAX),
        ] {
            let space = one(Parameter::integer_log("p", low, high));
            assert_eq!(space.levels(0), Some((high - low + 1) as u64));
        }
        for (low, high) in [(1, 40_000_000_000_000), (1, 1_000_000_000_000_000), (1 << 50, 1 << 53)]
        {
            assert!(refusal(Parameter::integer_log("p", low, high)).contains("told apart"));
        }
    }

    #[test]
    fn bad_lists_are_refused() {
        assert!(refusal(Parameter::ordinal("p", [])).contains("at least one"));
        assert!(refusal(Parameter::ordinal("p", [1.0, f64::NAN])).contains("finite"));
        assert!(refusal(Parameter::ordinal("p", [1.0, f64::INFINITY])).contains("finite"));
        for levels in [[0.0, 2.0, 1.0], [0.0, 1.0, 1.0], [-0.0, 0.0, 1.0]] {
            assert!(refusal(Parameter::ordinal("p", levels)).contains("strictly increasing"));
        }
        assert!(refusal(Parameter::categorical::<&str>("p", [])).contains("at least one"));
        assert!(refusal(Parameter::categorical("p", ["a", "b", "a"])).contains("\"a\" occurs"));
        let numbers = |count: u32| (0..count).map(f64::from).collect::<Vec<_>>();
        let names = |count: u32| (0..count).map(|number| number.to_string());
        assert_eq!(one(Parameter::ordinal("p", numbers(65_536))).levels(0), Some(65_536));
        assert!(refusal(Parameter::ordinal("p", numbers(65_537))).contains("65537 levels"));
        assert_eq!(one(Parameter::categorical("p", names(65_536))).levels(0), Some(65_536));
        let many = Parameter::categorical("p", names(65_537));
        assert!(refusal(many).contains("65537 choices"));
    }

    // Geometry

    #[test]
    fn levels_are_counted() {
        let levels = |parameter| one(parameter).levels(0);
        assert_eq!(levels(Parameter::real("p", 0.0, 1.0)), None);
        assert_eq!(levels(Parameter::real("p", 1.0, 1.0_f64.next_up())), None);
        assert_eq!(levels(Parameter::real_log("p", 1.0, 2.0)), None);
        assert_eq!(levels(Parameter::real("p", 2.0, 2.0)), Some(1));
        assert_eq!(levels(Parameter::real_log("p", 2.0, 2.0)), Some(1));
        assert_eq!(levels(Parameter::integer("p", -2, 2)), Some(5));
        assert_eq!(levels(Parameter::integer_step("p", 0, 10, 4)), Some(3));
        assert_eq!(levels(Parameter::integer_step("p", 0, 3, 4)), Some(1));
        assert_eq!(levels(Parameter::integer_step("p", i64::MIN, i64::MAX, u64::MAX)), Some(2));
        assert_eq!(levels(Parameter::ordinal("p", [0.5, 2.0, 7.0])), Some(3));
        assert_eq!(levels(Parameter::boolean("p")), Some(2));
        assert_eq!(levels(Parameter::categorical("p", ["x"])), Some(1));
        assert!(one(Parameter::categorical("p", ["x"])).is_categorical(0));
        assert!(one(Parameter::categorical("p", ["x", "y", "z"])).is_categorical(0));
        assert!(!one(Parameter::ordinal("p", [0.0, 1.0])).is_categorical(0));
    }

    #[test]
    fn size_is_the_product_of_the_levels() {
        let mut parameters = vec![
            Parameter::boolean("a"),
            Parameter::integer("b", 1, 10),
            Parameter::real("c", 3.0, 3.0),
        ];
        assert_eq!(Space::new(parameters.clone()).unwrap().size(), Some(20));
        parameters.push(Parameter::real("d", 3.0, 4.0));
        assert_eq!(Space::new(parameters).unwrap().size(), None);
        let booleans =
            |count: usize| (0..count).map(|d| Parameter::boolean(d.to_string())).collect();
        assert_eq!(Space::new(booleans(127)).unwrap().size(), Some(1 << 127));
        assert_eq!(Space::new(booleans(128)).unwrap().size(), Some(u128::MAX));
        assert_eq!(Space::new(booleans(1000)).unwrap().size(), Some(u128::MAX));
    }

    #[test]
    fn coordinates_follow_their_formulas() {
        let coordinates = |parameter| {
            let space = one(parameter);
            (0..space.levels(0).unwrap())
                .map(|level| space.coordinate(0, level))
                .collect::<Vec<f64>>()
        };
        let quarters: Vec<f64> = vec![0.0, 0.25, 0.5, 0.75, 1.0];
        let thirds: Vec<f64> = vec![0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];
        assert_eq!(quarters, coordinates(Parameter::integer("p", -7, -3)));
        assert_eq!(thirds, coordinates(Parameter::integer_step("p", 0, 11, 3)));
        assert_eq!(thirds, coordinates(Parameter::ordinal("p", [-1.0, 0.0, 0.5, 900.0])));
        assert_eq!(thirds, coordinates(Parameter::categorical("p", ["d", "a", "c", "b"])));
        assert_eq!(vec![0.0, 1.0], coordinates(Parameter::boolean("p")));
        assert_eq!(vec![0.5], coordinates(Parameter::integer("p", 4, 4)));
        assert_eq!(vec![0.5], coordinates(Parameter::integer_log("p", 4, 4)));
        assert_eq!(vec![0.5], coordinates(Parameter::real("p", 4.0, 4.0)));
        let space = one(Parameter::integer_log("p", 3, 5000));
        for value in 3..=5000 {
            let exact = (f64::from(value) / 3.0).ln() / (5000.0_f64 / 3.0).ln();
            let coordinate = encode(&space, value);
            assert!((coordinate - exact).abs() < 1e-14, "{value}: {coordinate} is not {exact}");
            assert_eq!(coordinate, space.coordinate(0, value as u64 - 3));
        }
        assert_eq!((encode(&space, 3), encode(&space, 5000)), (0.0, 1.0));
        // Past the last level there is only the last, and a real interval has no levels.
        assert_eq!(space.coordinate(0, u64::MAX), 1.0);
        assert_eq!(Space::unit_cube(1).unwrap().coordinate(0, 3), 0.5);
        assert_eq!(Space::unit_cube(1).unwrap().level(0, 0.9), 0);
    }

    #[test]
    fn the_nearest_level_wins_and_ties_go_down() {
        let space = one(Parameter::integer("p", 10, 14));
        let expected = [
            (f64::NEG_INFINITY, 0),
            (-0.0, 0),
            (0.125, 0),
            (0.125_f64.next_up(), 1),
            (0.375, 1),
            (0.6, 2),
            (0.875, 3),
            (0.876, 4),
            (1.0, 4),
            (7.0, 4),
            (f64::INFINITY, 4),
            (f64::NAN, 0),
        ];
        for (coordinate, level) in expected {
            assert_eq!(space.level(0, coordinate), level, "of {coordinate}");
        }
        assert_eq!(one(Parameter::boolean("p")).level(0, 0.5), 0);
        // On a log scale from 1 to 4, 2 is in the middle: ties are at 1/4 and 3/4.
        let space = one(Parameter::integer_log("p", 1, 4));
        let third = space.coordinate(0, 2);
        assert!((third - 3.0_f64.ln() / 4.0_f64.ln()).abs() < 1e-15);
        for (coordinate, level) in
            [(0.25, 0), (0.2501, 1), (0.5 * (0.5 + third) - 1e-9, 1), (0.649, 2), (0.897, 3)]
        {
            assert_eq!(space.level(0, coordinate), level, "of {coordinate}");
        }
    }

    #[test]
    fn every_level_of_a_dense_range_is_found_again() {
        let parameters = [
            Parameter::integer("p", 0, (1 << 53) - 1),
            Parameter::integer("p", 1, 1_000_000_000_000_000),
            Parameter::integer("p", -4_503_599_627_370_497, 4_503_599_627_370_494),
            Parameter::integer_log("p", 1, 30_000_000_000_000),
            Parameter::integer_log("p", 40_000_000_000_000, 49_000_000_000_000),
            Parameter::integer_log("p", 1 << 60, (1 << 60) + (1 << 49)),
            Parameter::integer_log("p", 1_000_000, 1_000_000_000_000),
        ];
        for parameter in parameters {
            let space = one(parameter);
            let count = space.levels(0).unwrap();
            // Both ends, the middle and the middle of the log scale.
            let half = space.level(0, 0.5);
            for start in [0, half.saturating_sub(5000), count / 2, count - 10_000] {
                for level in start..start + 10_000 {
                    let coordinate = space.coordinate(0, level);
                    assert_eq!(space.level(0, coordinate), level, "{:?}", space.parameters()[0]);
                }
            }
        }
    }

    #[test]
    fn snap_clamps_and_moves_to_levels() {
        let space = Space::new(vec![
            Parameter::real("a", 0.0, 1.0),
            Parameter::integer("b", 0, 2),
            Parameter::real("c", 5.0, 5.0),
        ])
        .unwrap();
        let snap = |coordinates: [f64; 3]| space.snap(&coordinates).unwrap().0;
        assert_eq!(snap([0.3, 0.3, 0.3]), [0.3, 0.5, 0.5]);
        assert_eq!(snap([-3.0, 9.0, 9.0]), [0.0, 1.0, 0.5]);
        assert_eq!(snap([f64::INFINITY, f64::NEG_INFINITY, 0.0]), [1.0, 0.0, 0.5]);
        assert!(snap([-0.0, 0.0, 0.0])[0].is_sign_positive());
        assert_eq!(
            space.snap(&[0.0; 2]),
            Err(Error::WrongDimension { what: "the list of coordinates", expected: 3, found: 2 })
        );
        let refused = space.snap(&[0.0, f64::NAN, 0.0]);
        assert!(matches!(refused, Err(Error::InvalidPoint { coordinate: 1, value, .. })
            if value.is_nan()));
    }

    #[test]
    fn check_refuses_what_is_not_in_the_space() {
        let space = Space::new(vec![Parameter::real("a", 0.0, 1.0), Parameter::integer("b", 0, 2)])
            .unwrap();
        let check = |coordinates: &[f64]| space.check(&Point(coordinates.to_vec()));
        assert_eq!(check(&[0.123, 0.5]), Ok(()));
        assert_eq!(check(&[1.0, 0.0]), Ok(()));
        assert_eq!(
            check(&[0.5]),
            Err(Error::WrongDimension { what: "the point", expected: 2, found: 1 })
        );
        for (coordinates, wrong) in [
            ([f64::NAN, 0.5], 0),
            ([0.5, f64::INFINITY], 1),
            ([-1e-300, 0.5], 0),
            ([1.0_f64.next_up(), 0.5], 0),
            ([0.5, 0.5_f64.next_up()], 1),
            ([0.5, 0.3], 1),
        ] {
            let refused = check(&coordinates);
            assert!(
                matches!(refused, Err(Error::InvalidPoint { coordinate, .. })
                    if coordinate == wrong),
                "{coordinates:?} gave {refused:?}"
            );
            assert_eq!(format!("{:?}", space.decode(&Point(coordinates.to_vec()))), {
                format!("{:?}", refused.map(|()| Vec::<Value>::new()))
            });
        }
        let Err(error) = check(&[0.5, 0.3]) else { panic!("0.3 is on no level") };
        assert!(error.to_string().contains("nearest is at 0.5"), "{error}");
    }

    // Values

    #[test]
    fn values_of_the_wrong_kind_or_outside_are_refused() {
        let space = one(Parameter::real("p", -1.0, 2.0));
        for value in [(-1.0_f64).next_down(), 2.0_f64.next_up(), f64::INFINITY] {
            assert!(value_refusal(&space, value).contains("between -1 and 2"));
        }
        assert!(value_refusal(&space, 3).contains("between -1 and 2"));
        assert!(value_refusal(&space, f64::NAN).contains("between -1 and 2"));
        assert!(value_refusal(&space, true).contains("not a number"));
        assert!(value_refusal(&space, "1").contains("not a number"));

        let space = one(Parameter::integer_step("p", -5, 6, 3));
        assert!(value_refusal(&space, -6).contains("between -5 and 6"));
        assert!(value_refusal(&space, 7).contains("between -5 and 6"));
        assert!(value_refusal(&space, 6).contains("-5 plus a multiple of 3"));
        for value in [0.5, f64::NAN, f64::INFINITY, 1e19, -1e19] {
            assert!(value_refusal(&space, value).contains("not an integer of 64 bits"));
        }
        assert!(value_refusal(&space, false).contains("not an integer"));
        assert!(value_refusal(&space, "4").contains("not an integer"));

        let space = one(Parameter::ordinal("p", [1.0, 2.5, 9_007_199_254_740_992.0]));
        assert!(value_refusal(&space, 2).contains("one of the levels"));
        assert!(value_refusal(&space, 2.4).contains("one of the levels"));
        assert!(value_refusal(&space, f64::NAN).contains("one of the levels"));
        assert!(value_refusal(&space, 9_007_199_254_740_993_i64).contains("one of the levels"));
        assert!(value_refusal(&space, true).contains("not a number"));

        let space = one(Parameter::boolean("p"));
        assert!(value_refusal(&space, 1).contains("neither false nor true"));
        assert!(value_refusal(&space, 0.0).contains("neither false nor true"));
        assert!(value_refusal(&space, "true").contains("neither false nor true"));

        let space = one(Parameter::categorical("p", ["a", "1"]));
        assert!(value_refusal(&space, "b").contains("\"b\" is not one of the choices"));
        assert!(value_refusal(&space, 1).contains("by name"));
        assert!(value_refusal(&space, true).contains("by name"));

        assert_eq!(
            space.encode(&[]),
            Err(Error::WrongDimension { what: "the list of values", expected: 1, found: 0 })
        );
    }

    #[test]
    fn values_of_a_near_kind_are_accepted() {
        let space = one(Parameter::real("p", -1.0, 3.0));
        assert_eq!(encode(&space, 1), 0.5);
        let space = one(Parameter::ordinal("p", [1.0, 2.5, 9_007_199_254_740_992.0]));
        assert_eq!(encode(&space, 1), 0.0);
        assert_eq!(encode(&space, 9_007_199_254_740_992_i64), 1.0);
        assert_eq!(decode(&space, 0.5), Value::Real(2.5));
        let space = one(Parameter::integer("p", i64::MAX - 2, i64::MAX));
        assert_eq!(encode(&space, i64::MAX - 1), 0.5);
        assert_eq!(decode(&space, 1.0), Value::Integer(i64::MAX));
        let space = one(Parameter::integer_step("p", i64::MIN, i64::MAX, 1 << 62));
        assert_eq!(encode(&space, -9_223_372_036_854_775_808.0), 0.0);
        assert_eq!(encode(&space, 4.0 * 2.0_f64.powi(60)), 1.0);
        assert_eq!(decode(&space, 2.0 / 3.0), Value::Integer(0));
        let space = one(Parameter::categorical("p", ["a", "", "c"]));
        assert_eq!(encode(&space, ""), 0.5);
        assert_eq!(decode(&space, 1.0), Value::Choice("c".to_owned()));
        let space = one(Parameter::boolean("p"));
        assert_eq!(decode(&space, encode(&space, false)), Value::Boolean(false));
        assert_eq!(decode(&space, 1.0), Value::Boolean(true));
        let space = one(Parameter::real("p", 7.5, 7.5));
        assert_eq!(decode(&space, encode(&space, 7.5)), Value::Real(7.5));
    }

    #[test]
    fn reals_are_linear_or_logarithmic() {
        let space = one(Parameter::real("p", -3.0, 5.0));
        assert_eq!(real(&space, 0.25), -1.0);
        assert_eq!(encode(&space, 3.0), 0.75);
        let space = one(Parameter::real_log("p", 1e-4, 1e4));
        for (coordinate, value) in [(0.25, 1e-2), (0.5, 1.0), (0.625, 10.0), (0.875, 1e3)] {
            assert!((real(&space, coordinate) / value - 1.0).abs() < 1e-14);
            assert!((encode(&space, value) - coordinate).abs() < 1e-15);
        }
    }

    #[test]
    fn extreme_reals_stay_accurate() {
        let space = one(Parameter::real("p", -f64::MAX, f64::MAX));
        assert_eq!(real(&space, 0.5), 0.0);
        assert!((real(&space, 0.75) / (0.5 * f64::MAX) - 1.0).abs() < 1e-15);
        assert!((encode(&space, -0.5 * f64::MAX) - 0.25).abs() < 1e-15);
        // The geometric mean of the smallest and the largest double.
        let smallest = f64::from_bits(1);
        let space = one(Parameter::real_log("p", smallest, f64::MAX));
        let mean = f64::MAX.sqrt() * 2.0_f64.powi(-537);
        for coordinate in [0.5, 0.5_f64.next_up()] {
            assert!((real(&space, coordinate) / mean - 1.0).abs() < 1e-12);
        }
        assert!((encode(&space, mean) - 0.5).abs() < 1e-14);
        for space in [
            one(Parameter::real("p", 1.0, 1.0_f64.next_up())),
            one(Parameter::real_log("p", 1.0, 1.0_f64.next_up())),
            one(Parameter::real_log("p", smallest, 2.0 * smallest)),
        ] {
            let (low, high) = (real(&space, 0.0), real(&space, 1.0));
            assert!(low < high);
            assert_eq!((encode(&space, low), encode(&space, high)), (0.0, 1.0));
            assert_eq!((real(&space, 0.1), real(&space, 0.9)), (low, high));
        }
    }

    #[test]
    fn bounds_are_exact() {
        for (low, high) in [
            (0.1, 0.3),
            (2.6, 6.8),
            (0.8, 3.6),
            (0.7, 1.9),
            (1e-5, 0.1),
            (3e-320, 1e-300),
            (1.1, 1e308),
        ] {
            for space in
                [one(Parameter::real("p", low, high)), one(Parameter::real_log("p", low, high))]
            {
                assert_eq!((encode(&space, low), encode(&space, high)), (0.0, 1.0));
                assert_eq!((real(&space, 0.0), real(&space, 1.0)), (low, high));
            }
        }
        let space = one(Parameter::real("p", -0.0, 1.0));
        assert_eq!(real(&space, 0.0).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn values_that_only_one_half_of_a_narrow_log_scale_has_are_found() {
        // Measured from low, values just above the middle are skipped, and the estimate is so far
        // off in floating-point numbers that only bisection of the upper half finds the coordinate.
        for (low, high, coordinate) in [
            (0.0017686641992559209, 0.0017686641992559224, 0.5001487879472679),
            (1.462906489717886, 1.46290648972003, 0.5000000000000011),
            (186.60756758347483, 186.60756762940326, 0.5000000000001836),
            (0.018172330907063824, 0.018172331014113807, 0.5000000000008572),
        ] {
            let space = one(Parameter::real_log("p", low, high));
            let value = real(&space, coordinate);
            assert_eq!(real(&space, encode(&space, value)), value);
        }
    }

    #[test]
    fn most_plain_decimals_on_a_linear_scale_come_back_exactly() {
        // With a power of two as width and no offset, every double has its coordinate.
        let space = one(Parameter::real("p", 0.0, 8.0));
        for number in 0..8000 {
            let value = f64::from(number) / 1000.0;
            assert_eq!(real(&space, encode(&space, value)), value);
        }
        // In general the nearest is at most one unit in the last place of the wider bound away.
        let space = one(Parameter::real("p", -3.0, 7.0));
        for number in -3000..=7000 {
            let value = f64::from(number) / 1000.0;
            assert!((real(&space, encode(&space, value)) - value).abs() <= 7.0 * f64::EPSILON);
        }
    }

    #[test]
    fn values_convert_and_print() {
        let values: Vec<Value> =
            vec![true.into(), 3.into(), 4_u32.into(), 5_i64.into(), 1.0.into(), "a".into()];
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        assert_eq!(texts, ["true", "3", "4", "5", "1.0", "a"]);
        let numbers: Vec<Option<f64>> = values.iter().map(Value::as_f64).collect();
        let expected = [Some(1.0), Some(3.0), Some(4.0), Some(5.0), Some(1.0), None];
        assert_eq!(numbers, expected);
        assert_eq!(Value::from("b".to_owned()), Value::Choice("b".to_owned()));
        assert_eq!(Value::Real(1e300).to_string(), "1e300");
        let json = serde_json::to_string(&values).unwrap();
        assert_eq!(json, r#"[true,3,4,5,1.0,"a"]"#);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&json).unwrap(), values);
    }

    // JSON

    #[test]
    fn json_has_the_documented_form() {
        let text = r#"{"name":"x","type":"real","low":0.0,"high":1.0,"log":true}"#;
        let parameter = Parameter::real_log("x", 0.0, 1.0);
        assert_eq!(serde_json::to_string(&parameter).unwrap(), text);
        let read = |text: &str| serde_json::from_str::<Parameter>(text);
        let text = r#"{"type": "real", "high": 1, "low": 0, "log": true, "name": "x"}"#;
        assert_eq!(read(text).unwrap(), parameter);
        let text = r#"{"name": "x", "type": "real", "low": 0, "high": 1}"#;
        assert_eq!(read(text).unwrap(), Parameter::real("x", 0.0, 1.0));
        let text = r#"{"name": "n", "type": "integer", "low": 0, "high": 9}"#;
        assert_eq!(read(text).unwrap(), Parameter::integer("n", 0, 9));
        let text = r#"{"name": "n", "type": "integer", "low": 0, "high": 9, "step": 2}"#;
        assert_eq!(read(text).unwrap(), Parameter::integer_step("n", 0, 9, 2));
        let text = r#"{"name": "o", "type": "ordinal", "levels": [1, 2.5]}"#;
        assert_eq!(read(text).unwrap(), Parameter::ordinal("o", [1.0, 2.5]));
        let text = r#"{"name": "b", "type": "boolean"}"#;
        assert_eq!(read(text).unwrap(), Parameter::boolean("b"));
        let text = r#"{"name": "c", "type": "categorical", "choices": ["u", "v"]}"#;
        assert_eq!(read(text).unwrap(), Parameter::categorical("c", ["u", "v"]));
        let space: Space = serde_json::from_str(&format!(r#"{{"parameters": [{text}]}}"#)).unwrap();
        assert_eq!(space, one(Parameter::categorical("c", ["u", "v"])));
        let json = serde_json::to_string(&Point(vec![0.5, 1.0])).unwrap();
        assert_eq!(json, "[0.5,1.0]");
    }

    #[test]
    fn json_with_mistakes_is_refused() {
        for (text, message) in [
            (r#"{"name": "b", "type": "boolean", "low": 0}"#, "unknown field `low`"),
            (r#"{"name": "x", "type": "real", "low": 0, "high": 1, "step": 1}"#, "unknown field"),
            (r#"{"name": "x", "type": "real", "low": 0, "high": 1, "l": 1}"#, "unknown field `l`"),
            (r#"{"name": "x", "type": "real", "low": 0}"#, "missing field `high`"),
            (r#"{"name": "x", "type": "float", "low": 0, "high": 1}"#, "unknown variant `float`"),
            (r#"{"name": "x", "low": 0, "high": 1}"#, "missing field `type`"),
            (r#"{"type": "boolean"}"#, "missing field `name`"),
            (r#"{"name": "n", "type": "integer", "low": 0.5, "high": 1}"#, "floating point"),
            (r#"{"name": "x", "type": "real", "low": 0, "low": 0, "high": 1}"#, "duplicate field"),
            // Mistakes that only the check of the space finds.
            (r#"{"name": "x", "type": "real", "low": 2, "high": 1}"#, "swap them"),
            (r#"{"name": "", "type": "boolean"}"#, "empty name"),
        ] {
            let text = format!(r#"{{"parameters": [{text}]}}"#);
            let error = serde_json::from_str::<Space>(&text).unwrap_err().to_string();
            assert!(error.contains(message), "{text} gave {error:?}");
        }
        let text = r#"{"parameters": [{"name": "b", "type": "boolean"}], "x": 1}"#;
        let error = serde_json::from_str::<Space>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `x`"), "{error}");
    }

    // Distribution

    #[test]
    fn quantiles_are_checked_and_reach_the_ends() {
        let space = Space::new(vec![
            Parameter::real("a", 2.0, 3.0),
            Parameter::integer("b", 0, 4),
            Parameter::integer_log("c", 1, 9),
            Parameter::real("d", 1.0, 1.0),
        ])
        .unwrap();
        let quantile = |uniform| space.from_uniform(&[uniform; 4]).unwrap().0;
        assert_eq!(quantile(0.0), [0.0, 0.0, 0.0, 0.5]);
        assert_eq!(quantile(-0.0)[0].to_bits(), 0);
        assert_eq!(quantile(1.0), [1.0, 1.0, 1.0, 0.5]);
        assert_eq!(quantile(1.0_f64.next_down())[1..], [1.0, 1.0, 0.5]);
        assert_eq!(quantile(0.3)[..2], [0.3, 0.25]);
        for (uniform, wrong) in [([0.0, 1.1, 0.0, 0.0], 1), ([0.0, 0.0, 0.0, -0.1], 3)] {
            let refused = space.from_uniform(&uniform);
            assert!(matches!(refused, Err(Error::InvalidPoint { coordinate, .. })
                if coordinate == wrong));
        }
        assert!(space.from_uniform(&[f64::NAN; 4]).is_err());
        assert_eq!(
            space.from_uniform(&[0.0; 5]),
            Err(Error::WrongDimension {
                what: "the list of uniform numbers",
                expected: 4,
                found: 5
            })
        );
    }

    #[test]
    fn evenly_spread_quantiles_hit_every_level_equally_often() {
        for parameter in [
            Parameter::integer("p", -3, 3),
            Parameter::integer_step("p", 0, 40, 6),
            Parameter::ordinal("p", [0.0, 1.0, 5.0, 6.0, 7.0, 9.0, 10.0]),
            Parameter::categorical("p", ["a", "b", "c", "d", "e", "f", "g"]),
        ] {
            let space = one(parameter);
            let mut counts = [0; 7];
            for i in 0..7000 {
                let point = space.from_uniform(&[(f64::from(i) + 0.5) / 7000.0]).unwrap();
                counts[space.level(0, point.0[0]) as usize] += 1;
            }
            assert_eq!(counts, [1000; 7]);
        }
    }

    #[test]
    fn log_integers_have_their_exact_probabilities() {
        for (low, high) in [(1_i64, 30_i64), (5, 9), (1, 2), (1000, 1003)] {
            let space = one(Parameter::integer_log("p", low, high));
            let total = 1_000_000;
            let mut counts = vec![0; (high - low + 1) as usize];
            for i in 0..total {
                let uniform = (f64::from(i) + 0.5) / f64::from(total);
                let point = space.from_uniform(&[uniform]).unwrap();
                counts[space.level(0, point.0[0]) as usize] += 1;
            }
            let (first, last) = (low as f64 - 0.5, high as f64 + 0.5);
            for (value, count) in (low..=high).zip(counts) {
                let value = value as f64;
                let share = ((value + 0.5) / (value - 0.5)).ln() / (last / first).ln();
                // An interval of the regular grid holds its share of the grid, to within one point.
                let expected = share * f64::from(total);
                assert!((f64::from(count) - expected).abs() <= 1.0, "{value}: {count}, {expected}");
            }
        }
    }

    #[test]
    fn samples_hit_end_points_as_often_as_the_rest() {
        let space = Space::new(vec![
            Parameter::integer("a", 1, 5),
            Parameter::real("b", 0.0, 1.0),
            Parameter::integer_log("c", 1, 5),
        ])
        .unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let draws = 200_000;
        let mut counts = [[0_u32; 5]; 3];
        for _ in 0..draws {
            let point = space.sample(&mut rng);
            counts[0][space.level(0, point.0[0]) as usize] += 1;
            counts[1][(point.0[1] * 5.0) as usize] += 1;
            counts[2][space.level(2, point.0[2]) as usize] += 1;
        }
        let logarithmic = [1.0, 2.0, 3.0, 4.0, 5.0_f64]
            .map(|value| ((value + 0.5) / (value - 0.5)).ln() / 11.0_f64.ln());
        for (counts, shares) in counts.iter().zip([[0.2; 5], [0.2; 5], logarithmic]) {
            let chi_square: f64 = counts
                .iter()
                .zip(shares)
                .map(|(count, share)| {
                    let expected = share * f64::from(draws);
                    (f64::from(*count) - expected).powi(2) / expected
                })
                .sum();
            // Exceeded with probability 0.001 at 4 degrees of freedom. Rounding u · 4 instead of
            // taking the floor of u · 5, which halves the ends, would give about 20,000.
            assert!(chi_square < 18.467, "{counts:?} give {chi_square}");
        }
    }

    #[test]
    fn a_sample_takes_one_number_for_each_parameter() {
        let space = Space::new(vec![
            Parameter::real("a", 1.0, 1.0),
            Parameter::boolean("b"),
            Parameter::real("c", 0.0, 1.0),
        ])
        .unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let uniform: [f64; 6] = rng.random();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        assert_eq!(space.sample(&mut rng), space.from_uniform(&uniform[..3]).unwrap());
        assert_eq!(space.sample(&mut rng), space.from_uniform(&uniform[3..]).unwrap());
    }

    // Properties

    fn finite() -> impl Strategy<Value = f64> {
        use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
        prop_oneof![
            POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
            -100.0..100.0_f64,
            (-10..10_i8).prop_map(f64::from),
        ]
    }

    fn positive() -> impl Strategy<Value = f64> {
        use proptest::num::f64::{NORMAL, POSITIVE, SUBNORMAL};
        prop_oneof![POSITIVE | NORMAL | SUBNORMAL, 1e-6..1e3_f64, (1..10_i8).prop_map(f64::from)]
    }

    /// Two numbers, the second a few doubles after the first or anywhere above it.
    fn bounds(number: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = (f64, f64)> {
        let near = (number.clone(), 0..50_u8).prop_map(|(low, steps)| {
            (low, (0..steps).fold(low, |high, _| high.next_up()).min(f64::MAX))
        });
        let far = (number.clone(), number).prop_map(|(one, two)| (one.min(two), one.max(two)));
        prop_oneof![1 => near, 4 => far]
    }

    fn domains() -> impl Strategy<Value = Domain> {
        let integers = (any::<i64>(), any::<u64>(), any::<u64>(), 0..64_u32, 0..54_u32).prop_map(
            |(low, step, steps, step_bits, count_bits)| {
                let step = (step >> step_bits).max(1);
                let steps = (steps >> 11 >> (53 - count_bits)) % ((1 << 53) - 1);
                let room = i64::MAX.abs_diff(low);
                let high = low.wrapping_add_unsigned(steps.saturating_mul(step).min(room));
                // The room can only be less than the steps take, so that the count still fits.
                Domain::Integer { low, high, step, log: false }
            },
        );
        let log_integers = (any::<u64>(), 1..63_u32, any::<u64>(), 1..51_u32).prop_filter_map(
            "too dense",
            |(low, low_bits, steps, step_bits)| {
                let low = (low >> (64 - low_bits)).max(1) as i64;
                let high = low.checked_add((steps >> (64 - step_bits)) as i64)?;
                let ratio = ((high - low) as f64 / low as f64).ln_1p();
                let fits = high as f64 * ratio < 0.999 * 2.0_f64.powi(50);
                fits.then_some(Domain::Integer { low, high, step: 1, log: true })
            },
        );
        let ordinals = prop::collection::vec(finite(), 1..12).prop_map(|mut levels| {
            levels.sort_by(f64::total_cmp);
            levels.dedup();
            Domain::Ordinal { levels }
        });
        let categories = prop::collection::hash_set(".{0,3}", 1..8)
            .prop_map(|choices| Domain::Categorical { choices: choices.into_iter().collect() });
        prop_oneof![
            4 => bounds(finite().boxed())
                .prop_map(|(low, high)| Domain::Real { low, high, log: false }),
            4 => bounds(positive().boxed())
                .prop_map(|(low, high)| Domain::Real { low, high, log: true }),
            4 => integers,
            4 => log_integers,
            1 => ordinals,
            1 => Just(Domain::Boolean),
            1 => categories,
        ]
    }

    fn spaces() -> impl Strategy<Value = Space> {
        prop::collection::vec(domains(), 1..6).prop_map(|domains| {
            let parameters = domains.into_iter().enumerate();
            let named = parameters.map(|(d, domain)| Parameter { name: d.to_string(), domain });
            Space::new(named.collect()).unwrap()
        })
    }

    /// Numbers in `[0, 1]`, also near the ends and the middle, where formulas switch.
    fn shares() -> impl Strategy<Value = f64> {
        let near = (0..40_u32).prop_flat_map(|bits| 0.0..2.0_f64.powi(-(bits as i32)));
        prop_oneof![
            3 => 0.0..=1.0_f64,
            1 => near.clone(),
            1 => near.clone().prop_map(|distance| 1.0 - distance),
            1 => near.prop_map(|distance| 0.5 + 0.5 * distance),
            1 => (0..100_u64).prop_map(|bits| f64::from_bits(0.5_f64.to_bits() - 50 + bits)),
            1 => (0..100_u64).prop_map(f64::from_bits),
            1 => prop::sample::select(vec![0.0, 0.5, 1.0]),
        ]
    }

    fn bits(values: &[Value]) -> Vec<(Value, u64)> {
        let bits = |value: &Value| value.as_f64().map_or(0, f64::to_bits);
        values.iter().map(|value| (value.clone(), bits(value))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn values_survive_the_round_trip(
            space in spaces(),
            shares in prop::collection::vec(shares(), 6),
        ) {
            let point = space.snap(&shares[..space.dimension()]).unwrap();
            let values = space.decode(&point).unwrap();
            let back = space.encode(&values).unwrap();
            prop_assert_eq!(bits(&space.decode(&back).unwrap()), bits(&values));
            for (d, value) in values.iter().enumerate() {
                match space.parameters()[d].domain {
                    Domain::Real { low, high, .. } => {
                        let value = value.as_f64().unwrap();
                        prop_assert!(low <= value && value <= high);
                    }
                    _ => prop_assert_eq!(back.0[d], point.0[d]),
                }
            }
        }

        #[test]
        fn every_level_has_its_own_coordinate(space in spaces(), numbers: [u64; 16]) {
            for d in 0..space.dimension() {
                let Some(count) = space.levels(d) else { continue };
                let random = numbers.iter().map(|number| number % count);
                let ends = (0..4).flat_map(|end| [end, (count - 1).saturating_sub(end)]);
                for level in random.chain(ends).map(|level| level.min(count - 1)) {
                    let coordinate = space.coordinate(d, level);
                    prop_assert_eq!(space.level(d, coordinate), level);
                    if level > 0 {
                        prop_assert!(space.coordinate(d, level - 1) < coordinate);
                    }
                }
                if count > 1 {
                    prop_assert_eq!(space.coordinate(d, 0), 0.0);
                    prop_assert_eq!(space.coordinate(d, count - 1), 1.0);
                }
            }
        }

        #[test]
        fn snapping_takes_the_nearest_point(
            space in spaces(),
            coordinates in prop::collection::vec(-0.5..1.5_f64, 6),
        ) {
            let coordinates = &coordinates[..space.dimension()];
            let point = space.snap(coordinates).unwrap();
            prop_assert_eq!(space.check(&point), Ok(()));
            prop_assert_eq!(&space.snap(point.as_slice()).unwrap(), &point);
            for (d, coordinate) in coordinates.iter().enumerate() {
                let inside = coordinate.clamp(0.0, 1.0);
                let Some(count) = space.levels(d) else {
                    prop_assert_eq!(point.0[d], inside);
                    continue;
                };
                let level = space.level(d, *coordinate);
                prop_assert_eq!(space.coordinate(d, level), point.0[d]);
                let distance = |level| (space.coordinate(d, level) - inside).abs();
                prop_assert!(level == 0 || distance(level) < distance(level - 1));
                prop_assert!(level + 1 == count || distance(level) <= distance(level + 1));
            }
        }

        #[test]
        fn encoding_a_real_finds_the_nearest_coordinate(
            (low, high) in bounds(positive().boxed()),
            share in 0.0..=1.0_f64,
            log: bool,
        ) {
            let domain = Domain::Real { low, high, log };
            let space = one(Parameter { name: "p".to_owned(), domain });
            let value = (low + share * (high - low)).clamp(low, high);
            let coordinate = encode(&space, value);
            let error = |coordinate: f64| (real(&space, coordinate.clamp(0.0, 1.0)) - value).abs();
            let best = error(coordinate);
            let (mut below, mut above) = (coordinate, coordinate);
            for _ in 0..100 {
                (below, above) = (below.next_down(), above.next_up());
                prop_assert!(space.levels(0).is_some() || best <= error(below));
                prop_assert!(space.levels(0).is_some() || best <= error(above));
            }
        }

        #[test]
        fn spaces_survive_json(space in spaces()) {
            let text = serde_json::to_string(&space).unwrap();
            prop_assert_eq!(serde_json::from_str::<Space>(&text).unwrap(), space);
        }

        #[test]
        fn samples_belong_to_the_space(space in spaces(), seed: u64) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            for _ in 0..8 {
                let point = space.sample(&mut rng);
                prop_assert_eq!(space.check(&point), Ok(()));
                prop_assert!(space.decode(&point).is_ok());
            }
        }

        #[test]
        fn quantiles_do_not_decrease(space in spaces(), one in shares(), two in shares()) {
            let quantile = |share| space.from_uniform(&vec![share; space.dimension()]).unwrap();
            let (low, high) = (quantile(one.min(two)), quantile(one.max(two)));
            for (low, high) in low.as_slice().iter().zip(high.as_slice()) {
                prop_assert!(low <= high);
            }
        }

        #[test]
        fn any_valid_input_passes_the_fuzz_checks(space in spaces(), numbers: [u8; 48]) {
            let mut input = serde_json::to_vec(&space).unwrap();
            input.push(b'\n');
            input.extend(numbers);
            prop_assert!(checks::check(&input));
        }

        #[test]
        fn any_damaged_input_passes_the_fuzz_checks(
            seed in prop::sample::select(SEEDS.to_vec()),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            words in prop::collection::vec((any::<prop::sample::Index>(), 0..6_usize), 0..3),
        ) {
            let mut input = seed.0.to_vec();
            for (place, byte) in changes {
                let place = place.index(input.len());
                // Mostly digits, which keep the JSON valid.
                input[place] = if byte < 200 { b'0' + byte % 10 } else { byte };
            }
            for (place, word) in words {
                let place = place.index(input.len());
                let word = ["e300", "e-300", "-", "\"log\":true,", "9999999", "\n"][word];
                input.splice(place..place, word.bytes());
            }
            checks::check(&input);
        }

        #[test]
        fn arbitrary_bytes_pass_the_fuzz_checks(input: Vec<u8>) {
            prop_assert!(!checks::check(&input));
        }
    }

    #[test]
    fn the_seeds_pass_the_fuzz_checks() {
        for (input, valid) in SEEDS {
            assert_eq!(checks::check(input), valid, "{}", String::from_utf8_lossy(input));
        }
    }
}
