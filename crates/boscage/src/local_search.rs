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
//! Where a model with stretched ranges searches the whole space ([`crate::guard`]), all this is so in what it sees of coordinates: a
//! box that is a tenth of a range of orders of magnitude is a tenth of their number.
//!
//! Notation: h is the half width of the box, as a share of each range.
//!
//! Cost: conditioning and searching as for the whole space, with fewer observations at the turns of the own model; kernel learning
//! whenever the model of the whole space is learned, unless the box holds all of it, and n³ for its left-out outcomes.

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset};
use crate::error::{Error, Result};
use crate::model_comparison::left_out;
use crate::outputs::{OutputMap, OutputRule};
use crate::space::{Point, Space};
use crate::stretch::{coordinate_of, seen};

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

/// Settings of local search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LocalSearch {
    /// One ask in so many is local, unless `blind` or `plain` says more.
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
        if !(self.kappa >= 0.0 && self.kappa.is_finite()) {
            return refuse("local.kappa", self.kappa, "it must be finite and not negative");
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

    /// The box around the best observation (the first of several), and the observations near it, of which the first `initial` were not
    /// chosen by a model. All distances are of what is seen through the stretches.
    pub(crate) fn neighbourhood(
        &self,
        space: &Space,
        stretches: &[f64],
        data: &Dataset,
        initial: usize,
    ) -> Result<Neighbourhood> {
        let (n, dimension) = (data.len(), data.dimension());
        let y = data.outcomes();
        let Some(best) = (0..n).max_by(|&a, &b| y[a].total_cmp(&y[b]).then(b.cmp(&a))) else {
            return Err(Error::InvalidSetting {
                setting: "local",
                value: "no observation".to_string(),
                reason: "a local search needs a point to search around",
            });
        };
        let centre = data.point(best);
        let half = self.half_width_after(y, initial, dimension);
        let distance = |a: usize| -> f64 {
            let apart = |d: usize| match (space.is_categorical(d), data.coordinates(d)[a]) {
                (true, x) => f64::from(u8::from(x != centre.0[d])),
                (false, x) => seen(stretches, d, x) - seen(stretches, d, centre.0[d]),
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
            region: region(space, stretches, &centre, half),
            stretches: stretches.to_vec(),
            data: near.with_outcomes(near.len(), scaled),
            members,
            log_slopes,
            units: (0..dimension)
                .map(|d| if space.is_categorical(d) { 1.0 } else { 2.0 * half })
                .collect(),
        })
    }
}

/// The least and the largest coordinate of each variable in a box of this half width around a point.
fn region(space: &Space, stretches: &[f64], centre: &Point, half: f64) -> Vec<(f64, f64)> {
    let range = |(d, &x): (usize, &f64)| {
        if space.is_categorical(d) {
            return (0.0, 1.0);
        }
        // A box that holds a single level would leave nothing to choose.
        let least = match space.levels(d) {
            Some(levels) if levels > 1 => 1.01 / (levels - 1) as f64,
            _ => 0.0,
        };
        if stretches.is_empty() {
            let half = half.max(least);
            return ((x - half).max(0.0), (x + half).min(1.0));
        }
        let middle = seen(stretches, d, x);
        let end = |w: f64| coordinate_of(stretches, d, w.clamp(0.0, 1.0));
        let (low, high) = (end(middle - half).min(x - least), end(middle + half).max(x + least));
        (low.max(0.0), high.min(1.0))
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
    /// What coordinates are seen through.
    stretches: Vec<f64>,
}

impl Neighbourhood {
    /// The observations as they are seen, in units of the box.
    pub(crate) fn scaled_data(&self) -> Result<Dataset> {
        let mut data = Dataset::empty(self.units.len());
        for (a, &y) in self.data.outcomes().iter().enumerate() {
            let point = self.data.point(a);
            let scaled =
                |(d, (x, unit)): (usize, (&f64, &f64))| seen(&self.stretches, d, *x) / unit;
            data.push(
                &Point(point.0.iter().zip(&self.units).enumerate().map(scaled).collect()),
                y,
            )?;
        }
        Ok(data)
    }

    /// Whether it holds all of so many observations, in their own coordinates.
    pub(crate) fn is_everything(&self, observations: usize) -> bool {
        self.members.len() == observations
            && self.units.iter().all(|&unit| unit == 1.0)
            && self.stretches.is_empty()
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

    /// A prior of what is seen in units of the box, as one in coordinates of the space.
    pub(crate) fn unscaled(&self, prior: &AdditivePrior) -> AdditivePrior {
        let mut prior = prior.clone();
        prior.kernel.stretches.clone_from(&self.stretches);
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
        let near = local.neighbourhood(&space, &[], &data, 60).unwrap();
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

    /// All there is of a box, its members and its model's data is that of the seen coordinates.
    #[test]
    fn with_stretched_ranges_a_box_is_one_of_what_is_seen() {
        let space = Space::new(vec![
            Parameter::real("low", 0.0, 1.0),
            Parameter::real("as it is", 0.0, 1.0),
            Parameter::integer("count", 1, 1000),
            Parameter::categorical("kind", ["a", "b"]),
        ])
        .unwrap();
        let stretches = [400.0, 1.0, 0.01, 30.0];
        let see = |point: &Point| {
            let see = |(i, &x): (usize, &f64)| match i {
                0 | 2 => (1.0 + (stretches[i] - 1.0) * x).ln() / stretches[i].ln(),
                _ => x,
            };
            Point(point.0.iter().enumerate().map(see).collect())
        };
        let data = data(&space, 60, |_, point| -(see(point).0[0] - 0.3).abs() - point.0[1]);
        let mut seen = Dataset::empty(4);
        for a in 0..60 {
            seen.push(&see(&data.point(a)), data.outcomes()[a]).unwrap();
        }
        let as_reals = Space::new(vec![
            Parameter::real("low", 0.0, 1.0),
            Parameter::real("as it is", 0.0, 1.0),
            Parameter::real("count", 0.0, 1.0),
            Parameter::categorical("kind", ["a", "b"]),
        ])
        .unwrap();
        let local = LocalSearch { half_width: 0.15, ..LocalSearch::default() };
        let near = local.neighbourhood(&space, &stretches, &data, 60).unwrap();
        let wanted = local.neighbourhood(&as_reals, &[], &seen, 60).unwrap();
        assert!(near.data.len() < 60);
        assert_eq!(near.members, wanted.members);
        assert_eq!(near.data.outcomes(), wanted.data.outcomes());
        for d in 0..4 {
            let (low, high) = near.region[d];
            let mut ends = [vec![0.0; 4], vec![0.0; 4]];
            (ends[0][d], ends[1][d]) = (low, high);
            let [low, high] = ends.map(|end| see(&Point(end)).0[d]);
            assert!((low - wanted.region[d].0).abs() < 1e-9, "{d}");
            assert!((high - wanted.region[d].1).abs() < 1e-9, "{d}");
        }
        let (scaled, wanted) = (near.scaled_data().unwrap(), wanted.scaled_data().unwrap());
        for (x, y) in (0..4).flat_map(|d| scaled.coordinates(d).iter().zip(wanted.coordinates(d))) {
            assert!((x - y).abs() < 1e-9);
        }
        // A prior of these units is one of the space's coordinates.
        let prior = AdditivePrior {
            components: (0..4).map(|i| Component::new(vec![i]).unwrap()).collect(),
            kernel: Kernel::uniform(KernelFamily::Matern52, 4, 0.8, 1.0),
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        };
        let of_units = prior.condition(&scaled).unwrap().log_likelihood();
        let of_space = near.unscaled(&prior).condition(&near.data).unwrap().log_likelihood();
        assert!((of_units - of_space).abs() < 1e-8, "{of_units} {of_space}");
        // However far apart two levels are seen, the box holds more than one.
        let mut one = Dataset::empty(4);
        one.push(&Point(vec![0.5, 0.5, 1.0, 0.0]), 1.0).unwrap();
        let tiny = LocalSearch { half_width: 0.004, ..local };
        let (low, high) = tiny.neighbourhood(&space, &stretches, &one, 1).unwrap().region[2];
        assert!(crate::stretch::seen(&stretches, 2, space.coordinate(2, 998)) < 1.0 - 0.01);
        let inside = (0..1000).filter(|&l| (low..=high).contains(&space.coordinate(2, l))).count();
        assert!(inside >= 2, "{low} {high}");
        // Of what is seen there is no model yet, even if the box holds all of it.
        let all = LocalSearch { half_width: 0.5, points: 100.0, ..local };
        assert!(all.neighbourhood(&space, &[], &data, 60).unwrap().is_everything(60));
        assert!(!all.neighbourhood(&space, &stretches, &data, 60).unwrap().is_everything(60));
    }

    /// The slow way: every outcome near the box is left out, and predicted by what is left.
    #[test]
    fn the_gain_of_an_own_model_is_that_of_left_out_outcomes() {
        let space = Space::unit_cube(3).unwrap();
        let data = data(&space, 30, |_, point| (7.0 * point.0[0]).sin() + point.0[1]);
        let near = LocalSearch { half_width: 0.1, ..LocalSearch::default() };
        let near = near.neighbourhood(&space, &[], &data, 30).unwrap();
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
        let near = near.neighbourhood(&space, &[], &data, 30).unwrap();
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
        assert!(local.neighbourhood(&space, &[], &Dataset::empty(2), 0).is_err());
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
        assert_eq!(refused(|local| local.half_width = 0.6), "local.half_width");
        assert_eq!(refused(|local| local.half_width = 0.0), "local.half_width");
        assert_eq!(refused(|local| local.patience = 0.0), "local.patience");
        assert_eq!(refused(|local| local.points = f64::INFINITY), "local.points");
    }
}
