//! Searching near the best point: a box around it, and a model of what is in it.
//!
//! Not in the paper. A model of the whole space spends its resolution on regions that are long known to be bad: where outcomes span
//! many orders of magnitude it cannot tell the good ones apart. Where all variables act together it knows nothing far from what was
//! observed, which is nearly everywhere. Some asks therefore stay in a box around the best observation, and most in these cases.
//! There, a model that is learned from the observations near it alone, with their own scale of outcomes and with lengthscales that
//! count in sizes of the box, takes turns with the model of the whole space, which knows more observations, if that one predicts
//! left-out outcomes near the box better. The idea of a box that grows with success and shrinks with failure is that of trust
//! regions (Eriksson et al. 2019, *Scalable global optimization via local Bayesian optimization*); what is different is that no
//! observation is forgotten, that the search of the whole space goes on in between, and that the box is a function of the outcomes
//! alone, so that it needs no state and survives a restart.
//!
//! Where nothing is left to gain in the box, which the bound tells, an ask there would tell what is known already. The best
//! observation outside of it (outside of a box of the first size, in which categories are the same) then has a box of its own, and
//! after that the next; where these have nothing left either, the ask is one of the whole space. So a run that has come to the
//! bottom of one well goes on with others. (What the model of the whole space says of that counts only where it is not blind to the
//! differences between the best outcomes: where these span orders of magnitude, its noise is larger than they are.) These boxes are
//! searched with the parameters that were learned near the best point, in units of theirs, and what there is to gain counts from the
//! highest mean of the observations that the model in turn knows: near the box, or all.
//!
//! Notation: h is the half width of the box, as a share of each range.
//!
//! Cost: conditioning and searching as for the whole space, with fewer observations at the turns of the own model, and that for each
//! box that has nothing left; kernel learning whenever the model of the whole space is learned, unless the box holds all of it, and
//! n³ for its left-out outcomes.

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset};
use crate::error::{Error, Result};
use crate::model_comparison::left_out;
use crate::outputs::{OutputMap, OutputRule};
use crate::space::{Point, Space};

/// Successes in a row after which the box grows.
const SUCCESSES: usize = 2;
/// Below this half width the box starts anew.
const SMALLEST: f64 = 0.004;
/// A local model has at least so many observations, if there are so many.
const FEWEST: usize = 20;
/// Outcomes are of different orders of magnitude where the best quarter spans less than this share of their standard deviation
/// (outliers drawn in).
const NARROW: f64 = 0.08;
/// With fewer outcomes than this there is no best quarter to speak of.
const QUARTERED: usize = 8;
/// How many boxes an ask looks into before it is one of the whole space.
pub(crate) const CENTRES: usize = 3;

/// Settings of local search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LocalSearch {
    /// One ask in so many is local, unless `blind` or `plain` says more, and as far as there is something to gain (`gain`).
    pub every: usize,
    /// All asks but one in so many are local while outcomes are of different orders of magnitude, so that the model of the whole
    /// space is blind to the differences between the best.
    pub blind: usize,
    /// All asks but one in so many are local while the guard has a plain GP search the whole space: most of that is far from all
    /// observations, where such a model knows nothing. None for no more than `every` says.
    pub plain: Option<usize>,
    /// κ of local asks.
    pub kappa: f64,
    /// h to begin with.
    pub half_width: f64,
    /// After so many outcomes in a row without a new best one, in multiples of the number of variables, the box shrinks to half.
    pub patience: f64,
    /// How many observations a local model has at least, in multiples of the number of variables: the nearest.
    pub points: f64,
    /// Which model is searched in the box.
    pub model: LocalModel,
    /// The least by which μ + κσ, with the κ of local asks, must exceed the highest mean of an observation, in multiples of η: with
    /// less there is nothing left to gain in the box, and the next best point or the whole space is searched. That is not believed of
    /// the model of the whole space while outcomes are of different orders of magnitude (`blind`). 0 to stay in the box always.
    pub gain: f64,
}

/// Which model is searched in the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LocalModel {
    /// One of its own, learned from the nearest observations.
    Own,
    /// The one that searches the whole space.
    Whole,
    /// One of its own, and in turn with it the one that searches the whole space, while that makes the outcomes near the
    /// box more likely, each left out in turn: what predicts better over all need not do so at the very best points, so that
    /// neither is left to itself.
    #[default]
    Turns,
}

impl Default for LocalSearch {
    fn default() -> Self {
        Self {
            every: 3,
            blind: 8,
            plain: Some(4),
            kappa: 1.0,
            half_width: 0.1,
            patience: 0.5,
            points: 2.0,
            model: LocalModel::Turns,
            gain: 0.5,
        }
    }
}

impl LocalSearch {
    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        let refuse = |setting, value: f64, reason| {
            Err(Error::InvalidSetting { setting, value: value.to_string(), reason })
        };
        let counts = [
            ("local.every", Some(self.every)),
            ("local.blind", Some(self.blind)),
            ("local.plain", self.plain),
        ];
        for (setting, count) in counts {
            if count == Some(0) {
                return refuse(setting, 0.0, "it must be at least 1");
            }
        }
        for (setting, value) in [("local.kappa", self.kappa), ("local.gain", self.gain)] {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(setting, value, "it must be finite and not negative");
            }
        }
        if !(self.half_width >= SMALLEST && self.half_width <= 0.5) {
            return refuse("local.half_width", self.half_width, "it must be from 0.004 to 0.5");
        }
        for (setting, value) in [("local.patience", self.patience), ("local.points", self.points)] {
            if !(value > 0.0 && value.is_finite()) {
                return refuse(setting, value, "it must be positive and finite");
            }
        }
        Ok(())
    }

    /// Whether an ask with so many observations and pending points is local, where the model of the whole space is blind to the
    /// differences between the best outcomes, where it is a plain GP, and elsewhere.
    pub(crate) fn is_due(&self, count: usize, blind: bool, plain: bool) -> bool {
        let all_but_one_in = match (blind, plain) {
            (true, _) => Some(self.blind),
            (false, true) => self.plain,
            (false, false) => None,
        };
        match all_but_one_in {
            Some(many) => !count.is_multiple_of(many),
            None => count % self.every == self.every - 1,
        }
    }

    /// Whether, of the local asks, one with so many observations and pending points is the turn of the model of the whole space. By
    /// blocks of `every` counts: one local ask each, or, where most are local, several in a row.
    pub(crate) fn is_turn_of_whole(&self, count: usize) -> bool {
        match self.model {
            LocalModel::Own => false,
            LocalModel::Whole => true,
            LocalModel::Turns => (count / self.every) % 2 == 1,
        }
    }

    /// h after these outcomes, of which the first `initial` were not chosen by a model.
    fn half_width_after(&self, outcomes: &[f64], initial: usize, dimension: usize) -> f64 {
        let patience = ((self.patience * dimension as f64) as usize).max(4);
        let (mut half, mut best) = (self.half_width, f64::NEG_INFINITY);
        let (mut successes, mut failures) = (0, 0);
        for (a, &outcome) in outcomes.iter().enumerate() {
            let is_best = outcome > best;
            best = best.max(outcome);
            if a < initial {
                continue;
            }
            (successes, failures) = if is_best { (successes + 1, 0) } else { (0, failures + 1) };
            if successes == SUCCESSES {
                half = (2.0 * half).min(0.5);
                successes = 0;
            } else if failures == patience {
                half *= 0.5;
                failures = 0;
                if half < SMALLEST {
                    half = self.half_width;
                }
            }
        }
        half
    }

    /// The best observation that lies in none of the boxes of these, as large as they were to begin with, and the box around it.
    pub(crate) fn centre(
        &self,
        space: &Space,
        data: &Dataset,
        initial: usize,
        others: &[Centre],
    ) -> Option<Centre> {
        let is_beside = |a: usize, b: usize| {
            (0..data.dimension()).all(|d| {
                let (x, y) = (data.coordinates(d)[a], data.coordinates(d)[b]);
                if space.is_categorical(d) { x == y } else { (x - y).abs() <= self.half_width }
            })
        };
        let is_elsewhere = |&a: &usize| !others.iter().any(|other| is_beside(a, other.observation));
        let outcomes = data.outcomes();
        let observation = first_best((0..data.len()).filter(is_elsewhere), outcomes)?;
        if others.is_empty() {
            let half_width = self.half_width_after(outcomes, initial, data.dimension());
            return Some(Centre { observation, half_width });
        }
        // How it went there, only what was asked there tells; and it is no more than a box, however well it went.
        let beside: Vec<usize> = (0..data.len()).filter(|&a| is_beside(a, observation)).collect();
        let of_design = beside.iter().filter(|&&a| a < initial).count();
        let beside: Vec<f64> = beside.into_iter().map(|a| outcomes[a]).collect();
        let half_width = self.half_width_after(&beside, of_design, data.dimension());
        Some(Centre { observation, half_width: half_width.min(self.half_width) })
    }

    /// Whether it is worth an ask if the bound exceeds the highest mean by so much, with this noise.
    pub(crate) fn is_worth_it(&self, gain: f64, noise_std: f64) -> bool {
        // What is no number is left to who answers the ask.
        let is_too_little = gain < self.gain * noise_std;
        self.gain == 0.0 || !is_too_little
    }

    /// The box around the best point and the observations near it.
    pub(crate) fn neighbourhood(
        &self,
        space: &Space,
        data: &Dataset,
        initial: usize,
    ) -> Result<Neighbourhood> {
        match self.centre(space, data, initial, &[]) {
            Some(centre) => self.neighbourhood_of(space, data, centre),
            None => Err(Error::InvalidSetting {
                setting: "local",
                value: "no observation".to_string(),
                reason: "a local search needs a point to search around",
            }),
        }
    }

    /// The box around this centre and the observations near it.
    pub(crate) fn neighbourhood_of(
        &self,
        space: &Space,
        data: &Dataset,
        centre: Centre,
    ) -> Result<Neighbourhood> {
        let (n, dimension) = (data.len(), data.dimension());
        let y = data.outcomes();
        let Centre { observation, half_width: half } = centre;
        let centre = data.point(observation);
        let distance = |a: usize| -> f64 {
            let apart = |d: usize| match (space.is_categorical(d), data.coordinates(d)[a]) {
                (true, x) => f64::from(u8::from(x != centre.0[d])),
                (false, x) => x - centre.0[d],
            };
            (0..dimension).map(|d| apart(d) * apart(d)).sum::<f64>().sqrt()
        };
        let mut nearest: Vec<(f64, usize)> = (0..n).map(|a| (distance(a), a)).collect();
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let fewest = ((self.points * dimension as f64) as usize).max(FEWEST);
        // Twice the typical distance of a point in the box from its centre.
        let radius = 2.0 * half * (dimension as f64 / 3.0).sqrt();
        let mut near = Dataset::empty(dimension);
        let mut members = Vec::new();
        for (rank, &(distance, a)) in nearest.iter().enumerate() {
            if rank >= fewest && distance >= radius {
                break;
            }
            near.push(&data.point(a), y[a])?;
            members.push(a);
        }
        let outputs = OutputMap::fit(OutputRule::Standardised, near.outcomes());
        let scaled = near.outcomes().iter().map(|&y| outputs.apply(y)).collect();
        let log_slopes = near.outcomes().iter().map(|&y| outputs.log_slope(y)).collect();
        Ok(Neighbourhood {
            region: region(space, &centre, half),
            data: near.with_outcomes(near.len(), scaled),
            members,
            log_slopes,
            units: (0..dimension)
                .map(|d| if space.is_categorical(d) { 1.0 } else { 2.0 * half })
                .collect(),
        })
    }
}

/// What a box is around: an observation, and h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Centre {
    pub(crate) observation: usize,
    pub(crate) half_width: f64,
}

/// The first of these observations with the best outcome.
fn first_best(observations: impl Iterator<Item = usize>, outcomes: &[f64]) -> Option<usize> {
    let order = |&a: &usize, &b: &usize| outcomes[a].total_cmp(&outcomes[b]).then(b.cmp(&a));
    observations.max_by(order)
}

/// The least and the largest coordinate of each variable in a box of this half width around a point.
fn region(space: &Space, centre: &Point, half: f64) -> Vec<(f64, f64)> {
    let half_of = |d: usize| match space.levels(d) {
        // A box that holds a single level would leave nothing to choose.
        Some(levels) if levels > 1 => half.max(1.01 / (levels - 1) as f64),
        _ => half,
    };
    let range = |(d, x): (usize, &f64)| match space.is_categorical(d) {
        true => (0.0, 1.0),
        false => ((x - half_of(d)).max(0.0), (x + half_of(d)).min(1.0)),
    };
    centre.0.iter().enumerate().map(range).collect()
}

/// Whether outcomes are of different orders of magnitude: the best quarter of them spans next to nothing of what all do. A model of all
/// of them then spends itself on the bad ones. (So it does when nearly all is found, and only the last digits are left.)
pub(crate) fn is_blind(outcomes: &[f64]) -> bool {
    if outcomes.len() < QUARTERED {
        return false;
    }
    let mut sorted = outcomes.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let spread = sorted[0] - sorted[sorted.len() / 4];
    // Equal outcomes are no sign of magnitudes: there the whole space has to be searched.
    spread > 0.0 && spread < NARROW * OutputMap::fit(OutputRule::Standardised, outcomes).scale
}

/// What was learned of the neighbourhood of the best point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedLocal {
    /// Structure and parameters of a model of its own, with lengthscales in sizes of the box.
    pub own: AdditivePrior,
    /// Whether the model that searches the whole space predicts outcomes near the box better.
    pub whole_is_better: bool,
}

/// A box, and what was observed near it.
#[derive(Debug, Clone)]
pub(crate) struct Neighbourhood {
    /// The least and the largest coordinate of each variable.
    pub(crate) region: Vec<(f64, f64)>,
    /// The observations, with outcomes as a local model sees them.
    pub(crate) data: Dataset,
    /// Their places among all observations.
    members: Vec<usize>,
    /// For each of them the logarithm of the slope of what a local model sees.
    log_slopes: Vec<f64>,
    /// What lengthscales are measured in: the width of the box, and 1 for categories.
    units: Vec<f64>,
}

impl Neighbourhood {
    /// The observations in units of the box.
    pub(crate) fn scaled_data(&self) -> Result<Dataset> {
        let mut data = Dataset::empty(self.units.len());
        for (a, &y) in self.data.outcomes().iter().enumerate() {
            let point = self.data.point(a);
            data.push(&Point(point.0.iter().zip(&self.units).map(|(x, u)| x / u).collect()), y)?;
        }
        Ok(data)
    }

    /// Whether it holds all of so many observations, in their own coordinates.
    pub(crate) fn is_everything(&self, observations: usize) -> bool {
        self.members.len() == observations && self.units.iter().all(|&unit| unit == 1.0)
    }

    /// By how much the log density of its outcomes, each predicted from all others that a model knows, is larger for the local model
    /// with this prior than for that of the whole space, which sees all outcomes through a map with these slopes (their logarithms).
    pub(crate) fn gain_of_own(
        &self,
        prior: &AdditivePrior,
        whole: &AdditivePosterior,
        log_slopes: &[f64],
    ) -> Result<f64> {
        // Of the outcomes rather than of what a model sees, or the two could not be compared.
        let log_density = |(&(residual, variance), log_slope): (&(f64, f64), &f64)| {
            -0.5 * (residual * residual / variance + variance.ln()) + log_slope
        };
        let own = left_out(&self.unscaled(prior).condition(&self.data)?);
        let own = own.iter().zip(&self.log_slopes).map(log_density);
        let whole = left_out(whole);
        let whole = self.members.iter().filter_map(|&a| Some((whole.get(a)?, log_slopes.get(a)?)));
        Ok(own.sum::<f64>() - whole.map(log_density).sum::<f64>())
    }

    /// A prior in units of the box, as one in coordinates of the space.
    pub(crate) fn unscaled(&self, prior: &AdditivePrior) -> AdditivePrior {
        let mut prior = prior.clone();
        if self.units.iter().any(|&unit| unit != 1.0) {
            // It is of the whole space, and was not learned in a box.
            prior.common_std = 0.0;
        }
        for (lengthscale, unit) in prior.kernel.lengthscales.iter_mut().zip(&self.units) {
            *lengthscale *= unit;
        }
        prior
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Component;
    use crate::kernel::{Kernel, KernelFamily};
    use crate::space::Parameter;
    use crate::stream::{Purpose, Stream};

    fn data(space: &Space, n: usize, outcome: impl Fn(usize, &Point) -> f64) -> Dataset {
        let mut data = Dataset::empty(space.dimension());
        for a in 0..n {
            let point = space.sample(&mut Stream::new(5, a as u64).generator(Purpose::Problem));
            data.push(&point, outcome(a, &point)).unwrap();
        }
        data
    }

    #[test]
    fn the_box_grows_with_success_and_shrinks_with_failure() {
        let local = LocalSearch { half_width: 0.2, patience: 0.5, ..LocalSearch::default() };
        let after = |outcomes: &[f64]| local.half_width_after(outcomes, 3, 12);
        assert_eq!(after(&[]), 0.2);
        // Neither the initial points nor one success count.
        assert_eq!(after(&[1.0, 2.0, 3.0]), 0.2);
        assert_eq!(after(&[1.0, 2.0, 3.0, 4.0]), 0.2);
        assert_eq!(after(&[1.0, 2.0, 3.0, 4.0, 5.0]), 0.4);
        // It never holds more than the space.
        assert_eq!(after(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), 0.5);
        // Six failures are half of twelve variables; an equal outcome is one.
        let mut outcomes = vec![9.0; 8];
        assert_eq!(after(&outcomes), 0.2);
        outcomes.push(9.0);
        assert_eq!(after(&outcomes), 0.1);
        // A success in between starts the count anew.
        assert_eq!(after(&[9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 10.0, 1.0, 1.0, 1.0]), 0.2);
        // It ends up too small to be of use, and begins again.
        outcomes.extend(vec![0.0; 4 * 6]);
        assert_eq!(after(&outcomes), 0.00625);
        outcomes.extend(vec![0.0; 6]);
        assert_eq!(after(&outcomes), 0.2);
    }

    #[test]
    fn the_neighbourhood_is_the_box_around_the_best_point_and_the_nearest_observations() {
        let space = Space::unit_cube(3).unwrap();
        let data = data(&space, 60, |_, point| -(point.0[0] - 0.9).powi(2));
        let local = LocalSearch { half_width: 0.1, ..LocalSearch::default() };
        // All are initial: the box has its first size.
        let near = local.neighbourhood(&space, &data, 60).unwrap();
        let best = (0..60).max_by(|&a, &b| data.outcomes()[a].total_cmp(&data.outcomes()[b]));
        let best = data.point(best.unwrap());
        for (&(low, high), &x) in near.region.iter().zip(&best.0) {
            assert_eq!((low, high), ((x - 0.1).max(0.0), (x + 0.1).min(1.0)));
        }
        // At least twenty, the nearest, and all within twice the typical distance.
        let distance = |point: &Point| -> f64 {
            point.0.iter().zip(&best.0).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
        };
        let mut distances: Vec<f64> = (0..60).map(|a| distance(&data.point(a))).collect();
        distances.sort_by(f64::total_cmp);
        let wanted = distances.iter().filter(|&&d| d < 0.2).count().max(20);
        assert_eq!(near.data.len(), wanted);
        for (a, wanted) in distances[..wanted].iter().enumerate() {
            assert_eq!(distance(&near.data.point(a)), *wanted);
        }
        // Outcomes have a scale of their own.
        let mean = near.data.outcomes().iter().sum::<f64>() / wanted as f64;
        assert!(mean.abs() < 1e-9, "{mean}");
        // A lengthscale of one box is as long as the box.
        let prior = AdditivePrior {
            components: Vec::new(),
            kernel: Kernel::uniform(KernelFamily::Rbf, 3, 1.5, 1.0),
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        };
        for ell in near.unscaled(&prior).kernel.lengthscales {
            assert!((ell - 1.5 * 0.2).abs() < 1e-15);
        }
        let scaled = near.scaled_data().unwrap();
        assert!((scaled.coordinates(1)[4] - near.data.coordinates(1)[4] / 0.2).abs() < 1e-12);
        assert_eq!(scaled.outcomes(), near.data.outcomes());
    }

    #[test]
    fn the_next_box_is_around_the_best_point_outside_of_the_others() {
        let space = Space::new(vec![
            Parameter::real("x", 0.0, 1.0),
            Parameter::categorical("kind", ["a", "b", "c"]),
        ])
        .unwrap();
        let mut data = Dataset::empty(2);
        let mut tell = |x: f64, level: u64, outcome: f64| {
            data.push(&Point(vec![x, space.coordinate(1, level)]), outcome).unwrap();
        };
        tell(0.5, 0, 9.0);
        tell(0.59, 0, 8.0);
        tell(0.59, 1, 7.0);
        tell(0.61, 0, 6.0);
        tell(0.45, 0, 5.0);
        let local = LocalSearch { half_width: 0.1, ..LocalSearch::default() };
        let mut centres = Vec::new();
        while let Some(centre) = local.centre(&space, &data, 5, &centres) {
            centres.push(centre);
        }
        // Next to the first: 1, and 4. In another category: 2. Farther away: 3.
        let places: Vec<usize> = centres.iter().map(|centre| centre.observation).collect();
        assert_eq!(places, [0, 2, 3]);
        // However small the first box has become, or large.
        for half_width in [0.01, 0.5] {
            let first = Centre { observation: 0, half_width };
            assert_eq!(local.centre(&space, &data, 5, &[first]).unwrap().observation, 2);
        }
        assert_eq!(local.centre(&space, &Dataset::empty(2), 5, &[]), None);
    }

    #[test]
    fn the_size_of_another_box_tells_how_it_went_there() {
        let space = Space::unit_cube(1).unwrap();
        let local = LocalSearch { half_width: 0.1, ..LocalSearch::default() };
        let half_widths = |outcomes: &[f64]| {
            let mut data = Dataset::empty(1);
            data.push(&Point(vec![0.1]), 9.0).unwrap();
            data.push(&Point(vec![0.8]), 1.0).unwrap();
            for &outcome in outcomes {
                data.push(&Point(vec![0.81]), outcome).unwrap();
            }
            let best = local.centre(&space, &data, 2, &[]).unwrap();
            let next = local.centre(&space, &data, 2, &[best]).unwrap();
            assert_eq!(best.observation, 0);
            (best.half_width, next.half_width)
        };
        // Four failures over all are none there while outcomes rise, and however often they do, the box does not grow.
        assert_eq!(half_widths(&[]), (0.1, 0.1));
        assert_eq!(half_widths(&[2.0, 3.0, 4.0, 5.0]), (0.05, 0.1));
        assert_eq!(half_widths(&[2.0, 0.0, 0.0, 0.0, 0.0]), (0.05, 0.05));
        // The one observation of the initial design that is there does not count, and no other is left out for it.
        assert_eq!(half_widths(&[0.0; 4]), (0.05, 0.05));
        assert_eq!(half_widths(&[0.0; 3]), (0.1, 0.1));
    }

    #[test]
    fn it_is_worth_an_ask_where_the_bound_exceeds_all_means_by_a_share_of_the_noise() {
        let local = LocalSearch { gain: 0.5, ..LocalSearch::default() };
        for (gain, is_worth_it) in [(0.101, true), (0.099, false), (-1.0, false)] {
            assert_eq!(local.is_worth_it(gain, 0.2), is_worth_it, "{gain}");
            // Who never leaves the box does not ask.
            assert!(LocalSearch { gain: 0.0, ..local }.is_worth_it(gain, 0.2));
        }
        // An overflow is no reason to look elsewhere.
        assert!(local.is_worth_it(f64::NAN, 0.2));
    }

    /// The slow way: every outcome near the box is left out, and predicted by what is left.
    #[test]
    fn the_gain_of_an_own_model_is_that_of_left_out_outcomes() {
        let space = Space::unit_cube(3).unwrap();
        let data = data(&space, 30, |_, point| (7.0 * point.0[0]).sin() + point.0[1]);
        let near = LocalSearch { half_width: 0.1, ..LocalSearch::default() };
        let near = near.neighbourhood(&space, &data, 30).unwrap();
        assert!(near.data.len() < 30);
        let prior = |lengthscale| AdditivePrior {
            components: (0..3).map(|i| Component::new(vec![i]).unwrap()).collect(),
            kernel: Kernel::uniform(KernelFamily::Matern52, 3, lengthscale, 1.0),
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        };
        let log_density = |prior: &AdditivePrior, data: &Dataset, a: usize, scale: f64| {
            let mut others = Dataset::empty(3);
            for b in (0..data.len()).filter(|&b| b != a) {
                others.push(&data.point(b), data.outcomes()[b]).unwrap();
            }
            let normal = prior.condition(&others).unwrap().joint(&data.point(a)).unwrap();
            let std = (normal.variance + prior.noise_std.powi(2)).sqrt();
            // By a difference of outcomes, not of what the model sees.
            -0.5 * ((data.outcomes()[a] - normal.mean) / std).powi(2) - (std * scale).ln()
        };
        // The whole space sees the logarithm of outcomes in units of 5, moved by 1.
        let map = OutputMap { shift: 1.0, scale: 5.0, ..OutputMap::identity() };
        let map = map.with_logarithm(data.outcomes(), 0.3);
        let seen: Vec<f64> = data.outcomes().iter().map(|&y| map.apply(y)).collect();
        let whole = data.with_outcomes(30, seen);
        let slope = |a: usize| {
            let y = data.outcomes()[a];
            (map.apply(y + 1e-6) - map.apply(y - 1e-6)) / 2e-6
        };
        let (own_prior, whole_prior) = (prior(2.0), prior(0.7));
        let mut wanted = 0.0;
        for a in 0..near.data.len() {
            let same = (0..30).find(|&b| data.point(b) == near.data.point(a)).unwrap();
            let scale = data_scale(&data, &near);
            wanted += log_density(&near.unscaled(&own_prior), &near.data, a, scale)
                - log_density(&whole_prior, &whole, same, 1.0 / slope(same));
        }
        let log_slopes: Vec<f64> = data.outcomes().iter().map(|&y| map.log_slope(y)).collect();
        let whole = whole_prior.condition(&whole).unwrap();
        let gain = near.gain_of_own(&own_prior, &whole, &log_slopes);
        // The best outcome is where the slope has a kink.
        assert!((gain.unwrap() - wanted).abs() < 1e-4, "{wanted}");
    }

    /// How many units of the outcomes are one of a local model, from two of them.
    fn data_scale(data: &Dataset, near: &Neighbourhood) -> f64 {
        let raw = |a: usize| {
            let same = (0..data.len()).find(|&b| data.point(b) == near.data.point(a)).unwrap();
            data.outcomes()[same]
        };
        (raw(0) - raw(1)) / (near.data.outcomes()[0] - near.data.outcomes()[1])
    }

    #[test]
    fn finite_parameters_keep_something_to_choose() {
        let space = Space::new(vec![
            Parameter::categorical("c", ["a", "b", "c"]),
            Parameter::boolean("b"),
            Parameter::integer("i", 0, 4),
            Parameter::integer("many", 0, 1000),
        ])
        .unwrap();
        let data = data(&space, 30, |_, point| point.0[3]);
        let near = LocalSearch { half_width: 0.01, ..LocalSearch::default() };
        let near = near.neighbourhood(&space, &data, 30).unwrap();
        assert_eq!(near.region[0], (0.0, 1.0));
        for d in 1..4 {
            let (low, high) = near.region[d];
            let levels = space.levels(d).unwrap();
            let inside = |l: &u64| (low..=high).contains(&space.coordinate(d, *l));
            assert!((0..levels).filter(inside).count() >= 2, "{d}: {low} to {high}");
        }
    }

    #[test]
    fn outcomes_of_many_magnitudes_make_the_model_of_the_whole_space_blind() {
        let even = |n: u32| -> Vec<f64> { (0..n).map(f64::from).collect() };
        assert!(!is_blind(&[]));
        assert!(!is_blind(&even(40)));
        assert!(!is_blind(&[1.0; 40]));
        // From −1 to −10⁹: whatever is learned of the worst, the best quarter is all the same. Seven are too few to say so.
        let magnitudes = |n: u32| -> Vec<f64> {
            (0..n).map(|a| -10_f64.powf(9.0 * f64::from(a) / f64::from(n - 1))).collect()
        };
        assert!(is_blind(&magnitudes(40)) && is_blind(&magnitudes(8)) && !is_blind(&magnitudes(7)));
        // Half of the outcomes lie between 0 and −1, so that the best quarter spans ½, and half far below: the standard deviation is
        // about half of how far, and 0.08 of that is ½ at 13.
        let two_heaps = |below: f64| -> Vec<f64> {
            (0..20).map(|a| -f64::from(a) / 20.0).chain(std::iter::repeat_n(-below, 20)).collect()
        };
        assert!(is_blind(&two_heaps(14.0)) && !is_blind(&two_heaps(11.0)));
        // What is beyond numbers is not narrow.
        assert!(!is_blind(&[f64::MAX, -f64::MAX, -f64::MAX, -f64::MAX, -f64::MAX].repeat(4)));
    }

    #[test]
    fn without_an_observation_there_is_nothing_to_search_around() {
        let space = Space::unit_cube(2).unwrap();
        let local = LocalSearch::default();
        assert!(local.neighbourhood(&space, &Dataset::empty(2), 0).is_err());
    }

    #[test]
    fn how_many_asks_are_local_depends_on_who_searches_the_whole_space() {
        let local = LocalSearch { blind: 4, plain: Some(6), ..LocalSearch::default() };
        let due = |blind: bool, plain: bool| {
            (0..24).filter(|&count| local.is_due(count, blind, plain)).collect::<Vec<usize>>()
        };
        let all_but_one_in = |many: usize| (0..24).filter(move |count| count % many != 0);
        assert_eq!(due(false, false), [2, 5, 8, 11, 14, 17, 20, 23]);
        assert_eq!(due(true, false), all_but_one_in(4).collect::<Vec<usize>>());
        assert_eq!(due(false, true), all_but_one_in(6).collect::<Vec<usize>>());
        // What is not to be told apart is so whoever searches.
        assert_eq!(due(true, true), due(true, false));
        let no_difference = LocalSearch { plain: None, ..local };
        assert!(no_difference.is_due(11, false, true) && !no_difference.is_due(13, false, true));
        // 11, 14, 17, … are local, and every other one of them is the turn of the whole space.
        let turns = [11, 14, 17, 20].map(|count| local.is_turn_of_whole(count));
        assert_eq!(turns, [true, false, true, false]);
        for (model, whole) in [(LocalModel::Own, false), (LocalModel::Whole, true)] {
            let local = LocalSearch { model, ..local };
            assert!((10..20).all(|count| local.is_turn_of_whole(count) == whole));
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let refused = |change: fn(&mut LocalSearch)| {
            let mut local = LocalSearch::default();
            change(&mut local);
            match local.validate() {
                Err(Error::InvalidSetting { setting, .. }) => setting,
                other => panic!("{other:?}"),
            }
        };
        LocalSearch::default().validate().unwrap();
        assert_eq!(refused(|local| local.every = 0), "local.every");
        assert_eq!(refused(|local| local.blind = 0), "local.blind");
        assert_eq!(refused(|local| local.plain = Some(0)), "local.plain");
        assert_eq!(refused(|local| local.kappa = -1.0), "local.kappa");
        assert_eq!(refused(|local| local.kappa = f64::NAN), "local.kappa");
        assert_eq!(refused(|local| local.gain = -0.1), "local.gain");
        assert_eq!(refused(|local| local.gain = f64::INFINITY), "local.gain");
        assert_eq!(refused(|local| local.half_width = 0.6), "local.half_width");
        assert_eq!(refused(|local| local.half_width = 0.0), "local.half_width");
        assert_eq!(refused(|local| local.patience = 0.0), "local.patience");
        assert_eq!(refused(|local| local.points = f64::INFINITY), "local.points");
    }
}
