//! Where evaluations fail, learned like the rest of a function.
//!
//! Not in the paper, whose functions have a value everywhere. A program that is tuned crashes, runs out of memory or time, or is given
//! parameters that do not go together; a simulation diverges. Often that is so in a large part of the space.
//!
//! **Success.** A Gaussian process of the same kind as the model's is learned from what came of every point, 1 for an outcome and −1
//! for a failure, standardised. With its mean m, its standard deviation s and its noise η, and z for what 0 is on its scale, the
//! chance of success is p = Φ((m − z)/√(s² + η²)). (The logistic function of 1.702 times as much takes the place of Φ: they differ by
//! less than 0.01.) Where nothing is known that is about the share of points that have succeeded. It is that share everywhere if
//! evaluations fail at random, of which the likelihood of the labels is known, too: p is the average of both, weighted by how likely they
//! are. The joint bound U then counts by its chance, as what it has more than the worst outcome q: q + p (U − q).
//!
//! **Penalties.** Many programs do not say that they have failed, but return 10⁶, or 10⁶ and something. No smooth function has such
//! a cliff, and on the scale of the penalties all other outcomes look the same. So outcomes are taken for failures that are
//!
//! - the worst, the same to the last digit `TIES` times as often as any of at least `OTHERS` other outcomes is; or
//! - a group of the worst at a distance from the others that is `APART` times the spread of either, at least two of them and `OTHERS`
//!   others. (The bad outcomes of a function that spans orders of magnitude are spread out themselves.)
//!
//! Cost: kernel learning from the labels, n³/2 for each gradient, whenever the model is learned, and n³/3 for each ask; a look at all
//! outcomes for each that is told.

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset, LOG_2_PI, Normal};
use crate::error::Result;
use crate::kernel_learning::{KernelLearning, kernel_learning};
use crate::space::Point;

/// Fewer failures, or fewer outcomes, are not learned from.
pub(crate) const FEWEST: usize = 2;
/// How often the worst outcome must have come, for each time that any other has.
const TIES: usize = 3;
/// The least distance of penalties from the other outcomes, in multiples of the spread of either.
const APART: f64 = 10.0;
/// The fewest others, all different, that say what outcomes are like.
const OTHERS: usize = 3;
/// Of more points than this an ask looks at so many only.
const MOST: usize = 1_000;
/// The median of the prior on the noise of labels, which have a standard deviation of 1.
const LABEL_NOISE: f64 = 0.3;
/// Φ(u) is nearly the logistic function of this times u.
const LOGISTIC: f64 = 1.702;

/// What was learned of failures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LearnedFailures {
    /// Outcomes up to this one are taken for failures; none if all are what they seem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// How many failures there were, those among the outcomes counted.
    pub failures: usize,
    /// The model of where evaluations succeed; none with too few failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<LearnedSuccess>,
}

/// A model of where evaluations succeed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedSuccess {
    /// Its structure and parameters.
    pub prior: AdditivePrior,
    /// How likely it is, and not that evaluations fail anywhere alike.
    pub probability: f64,
}

/// The best of these outcomes, in ascending order, that is taken for a failure; none if all are what they seem.
pub(crate) fn penalty(ascending: &[f64]) -> Option<f64> {
    by_ties(ascending).or_else(|| by_distance(ascending))
}

/// The first is a penalty if it came so much more often than any other.
fn by_ties(ascending: &[f64]) -> Option<f64> {
    let mut runs = ascending.chunk_by(|a, b| a == b).map(<[f64]>::len);
    let worst = runs.next()?;
    let others: Vec<usize> = runs.collect();
    let most = others.iter().max()?;
    (worst >= TIES * most && others.len() >= OTHERS).then(|| ascending[0])
}

/// Those before the widest gap are penalties if it is wide enough.
fn by_distance(ascending: &[f64]) -> Option<f64> {
    // Halves: the difference of two finite numbers may not be finite.
    let half = |low: usize, high: usize| ascending[high] / 2.0 - ascending[low] / 2.0;
    let last = ascending.len().checked_sub(OTHERS)?;
    let gap = |k: &usize| half(k - 1, *k);
    let first = (FEWEST..=last).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let spread = half(0, first - 1).max(half(first, ascending.len() - 1));
    let is_apart = gap(&first) > 0.0 && gap(&first) / APART >= spread;
    let distinct = ascending[first..].chunk_by(|a, b| a == b).count();
    (is_apart && distinct >= OTHERS).then(|| ascending[first - 1])
}

/// What is known of where evaluations succeed.
#[derive(Debug, Clone)]
pub(crate) struct Success {
    posterior: AdditivePosterior,
    /// z: what a label of 0 is on the scale of the posterior.
    between: f64,
    /// How likely the model is, and the share of successes, which is the chance of one if it is wrong.
    probability: f64,
    share: f64,
}

/// A label for every point, standardised, and z.
fn labels(succeeded: &Dataset, failed: &[Point]) -> Result<(Dataset, f64)> {
    let (n, m) = (succeeded.len() as f64, failed.len() as f64);
    let mean = (n - m) / (n + m);
    let std = (1.0 - mean * mean).sqrt();
    let ones = vec![(1.0 - mean) / std; succeeded.len()];
    let mut labels = succeeded.with_outcomes(succeeded.len(), ones);
    for point in failed {
        labels.push(point, (-1.0 - mean) / std)?;
    }
    Ok((labels, -mean / std))
}

/// A model of success, learned in this way from there.
pub(crate) fn learn_success(
    start: &AdditivePrior,
    succeeded: &Dataset,
    failed: &[Point],
    learning: &KernelLearning,
) -> Result<LearnedSuccess> {
    let (labels, _) = labels(succeeded, failed)?;
    let mut learning = learning.clone();
    if let Some(prior) = &mut learning.prior {
        // Labels are no smooth function.
        prior.noise_std.median = LABEL_NOISE;
    }
    let learned = kernel_learning(start, &labels, &learning)?;
    let few = labels.evenly(learning.most_observations.unwrap_or(labels.len()))?;
    let of_chance = |y: &f64| -0.5 * (y * y + LOG_2_PI);
    let by_chance: f64 = few.outcomes().iter().map(of_chance).sum();
    let probability = logistic(learned.objective - by_chance);
    Ok(LearnedSuccess { prior: learned.prior, probability })
}

impl Success {
    /// What these points say, to a model with these parameters.
    pub(crate) fn new(
        learned: &LearnedSuccess,
        succeeded: &Dataset,
        failed: &[Point],
    ) -> Result<Self> {
        let (labels, between) = labels(succeeded, failed)?;
        let posterior = learned.prior.condition(&labels.evenly(labels.len().min(MOST))?)?;
        let share = succeeded.len() as f64 / labels.len() as f64;
        Ok(Self { posterior, between, probability: learned.probability, share })
    }

    /// p, whether or not the model is right.
    fn mixed(&self, chance: f64) -> f64 {
        self.share + self.probability * (chance - self.share)
    }

    /// 1.702 (m − z)/√(s² + η²), and s² + η².
    fn logit(&self, normal: Normal) -> (f64, f64) {
        let noise = self.posterior.prior().noise_std;
        let variance = normal.variance + noise * noise;
        (LOGISTIC * (normal.mean - self.between) / variance.sqrt(), variance)
    }

    /// p at these points.
    pub(crate) fn chances(&self, points: &[Point]) -> Result<Vec<f64>> {
        let normals = self.posterior.joint_many(points)?;
        Ok(normals.into_iter().map(|normal| self.mixed(logistic(self.logit(normal).0))).collect())
    }

    /// p at a point.
    pub(crate) fn chance(&self, point: &Point) -> Result<f64> {
        Ok(self.mixed(logistic(self.logit(self.posterior.joint(point)?).0)))
    }

    /// p at a point, and its gradient.
    pub(crate) fn chance_gradient(&self, point: &Point) -> Result<(f64, Vec<f64>)> {
        let joint = self.posterior.joint_gradient(point)?;
        let (logit, variance) = self.logit(joint.normal);
        let chance = logistic(logit);
        let slope = self.probability * chance * (1.0 - chance);
        let (by_mean, by_variance) =
            (slope * LOGISTIC / variance.sqrt(), -0.5 * slope * logit / variance);
        let gradients = joint.mean_gradient.iter().zip(&joint.variance_gradient);
        Ok((self.mixed(chance), gradients.map(|(m, v)| by_mean * m + by_variance * v).collect()))
    }
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::additive_gp_ucb::AdditiveGpUcbSettings;
    use crate::all_pairs::AllPairs;
    use crate::graph::Component;
    use crate::kernel::{Kernel, KernelFamily};

    fn of(outcomes: &[f64]) -> Option<f64> {
        let mut ascending = outcomes.to_vec();
        ascending.sort_unstable_by(f64::total_cmp);
        penalty(&ascending)
    }

    /// Both rules as their definitions say them, in any order.
    fn slow(outcomes: &[f64]) -> Option<f64> {
        let count = |y: f64| outcomes.iter().filter(|&&other| other == y).count();
        let worst = outcomes.iter().copied().min_by(f64::total_cmp)?;
        let others: Vec<f64> = outcomes.iter().copied().filter(|&y| y != worst).collect();
        let most = others.iter().map(|&y| count(y)).max().unwrap_or(0);
        let mut distinct = others.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() >= OTHERS && count(worst) >= TIES * most {
            return Some(worst);
        }
        let spread = |part: &[f64]| {
            let of = |by: fn(f64, f64) -> f64| part.iter().copied().reduce(by).unwrap_or(0.0);
            of(f64::max) - of(f64::min)
        };
        let mut found = Vec::new();
        for &y in outcomes {
            let (bad, good): (Vec<f64>, Vec<f64>) = outcomes.iter().partition(|&&other| other <= y);
            let mut distinct = good.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            if bad.len() < FEWEST || distinct.len() < OTHERS {
                continue;
            }
            let gap = good.iter().copied().fold(f64::INFINITY, f64::min) - y;
            if gap >= APART * spread(&bad).max(spread(&good)) {
                found.push(y);
            }
        }
        found.into_iter().max_by(f64::total_cmp)
    }

    #[test]
    fn penalties_are_found() {
        let usual = [3.0, -1.0, 2.5, 0.5];
        let with = |others: &[f64]| of(&[usual.as_slice(), others].concat());
        assert_eq!(with(&[]), None);
        // The same to the last digit, however near.
        assert_eq!(with(&[-2.0; 3]), Some(-2.0));
        assert_eq!(with(&[-2.0; 2]), None);
        // Not if other outcomes come again and again, too.
        assert_eq!(with(&[-2.0, -2.0, -2.0, 3.0]), None);
        assert_eq!(with(&[[-2.0; 6].as_slice(), &[3.0]].concat()), Some(-2.0));
        // The best is no penalty however often it comes.
        assert_eq!(with(&[7.0; 5]), None);
        // Far away and near each other.
        assert_eq!(with(&[-1e6, -1e6 - 500.0]), Some(-1e6));
        assert_eq!(with(&[-1e6]), None);
        assert_eq!(with(&[-42.0, -43.0]), Some(-42.0));
        assert_eq!(with(&[-40.0, -43.0]), None);
        // Orders of magnitude are no penalty.
        assert_eq!(with(&[-1e2, -1e3, -1e4, -1e5, -1e6]), None);
        // With too few others their spread says nothing.
        assert_eq!(of(&[1.0, 2.0, -1e6, -1e6 - 1.0]), None);
        assert_eq!(of(&[1.0, 2.0, 3.0, -1e6, -1e6 - 1.0]), Some(-1e6));
        assert_eq!(of(&[1.0, 2.0, -1e6, -1e6, -1e6]), None);
        assert_eq!(of(&[1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), Some(0.0));
        // What has two or three values only has them for a reason.
        assert_eq!(of(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]), None);
        // The differences of these are not finite.
        assert_eq!(of(&[f64::MIN, f64::MIN, 1.7e308, 1.75e308, f64::MAX]), Some(f64::MIN));
        assert_eq!((of(&[]), of(&[1.0; 9])), (None, None));
    }

    proptest! {
        #[test]
        fn penalties_are_what_their_definition_says(
            usual in vec(-20_i32..20, 0..12),
            bad in vec(-3_i32..3, 0..8),
            far in prop::sample::select(vec![10_i32, 100, 300, 1000]),
        ) {
            let outcomes: Vec<f64> = usual.iter().copied().chain(bad.iter().map(|y| y - far)).map(f64::from).collect();
            prop_assert_eq!(of(&outcomes), slow(&outcomes));
        }
    }

    fn prior(dimension: usize) -> AdditivePrior {
        AdditivePrior {
            components: (0..dimension).map(|i| Component::new(vec![i]).unwrap()).collect(),
            kernel: Kernel::uniform(KernelFamily::Matern52, dimension, 0.4, 0.5),
            noise_std: 0.2,
            all_pairs: Some(AllPairs { weights: vec![0.4; dimension] }),
            constant: 1.0,
            common_std: 0.1,
        }
    }

    fn sure(prior: AdditivePrior) -> LearnedSuccess {
        LearnedSuccess { prior, probability: 1.0 }
    }

    /// Points of a square, of which those beyond a line fail.
    fn cut() -> (Dataset, Vec<Point>) {
        let (mut succeeded, mut failed) = (Dataset::empty(2), Vec::new());
        for a in 0..40_u32 {
            let point =
                Point([0.618_034, 0.414_214].map(|step| (step * f64::from(a)).fract()).to_vec());
            match point.0[0] + point.0[1] < 1.1 {
                true => succeeded.push(&point, 5.0).unwrap(),
                false => failed.push(point),
            }
        }
        (succeeded, failed)
    }

    #[test]
    fn chances_follow_the_cut_and_are_the_share_of_successes_far_away() {
        let (succeeded, failed) = cut();
        let success = Success::new(&sure(prior(2)), &succeeded, &failed).unwrap();
        let chance = |x: f64, y: f64| success.chance(&Point(vec![x, y])).unwrap();
        assert!(
            chance(0.2, 0.3) > 0.9 && chance(0.4, 0.5) > 0.7,
            "{} {}",
            chance(0.2, 0.3),
            chance(0.4, 0.5)
        );
        assert!(
            chance(0.9, 0.8) < 0.1 && chance(0.7, 0.6) < 0.3,
            "{} {}",
            chance(0.9, 0.8),
            chance(0.7, 0.6)
        );
        // A model that knows nothing anywhere but at the observations, and has no constant to learn.
        let blind = AdditivePrior {
            kernel: Kernel::uniform(KernelFamily::Matern52, 2, 1e-4, 0.7),
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
            ..prior(2)
        };
        let blind = Success::new(&sure(blind), &succeeded, &failed).unwrap();
        let share = succeeded.len() as f64 / 40.0;
        let chance = blind.chance(&Point(vec![0.123, 0.987])).unwrap();
        assert!((chance - share).abs() < 0.06, "{chance} for {share}");
    }

    #[test]
    fn one_chance_many_and_that_with_a_gradient_are_the_same() {
        let (succeeded, failed) = cut();
        let success = Success::new(&sure(prior(2)), &succeeded, &failed).unwrap();
        let points: Vec<Point> =
            [[0.3, 0.7], [0.5, 0.6], [0.95, 0.1], [0.05, 0.9]].map(|x| Point(x.to_vec())).to_vec();
        for (point, many) in points.iter().zip(success.chances(&points).unwrap()) {
            let (chance, gradient) = success.chance_gradient(point).unwrap();
            assert!(
                (success.chance(point).unwrap() - chance).abs() < 1e-9
                    && (many - chance).abs() < 1e-9
            );
            for (d, &found) in gradient.iter().enumerate() {
                let at = |step: f64| {
                    let mut moved = point.clone();
                    moved.0[d] += step;
                    success.chance(&moved).unwrap()
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((slope - found).abs() < 1e-5 * (1.0 + slope.abs()), "{slope} {found}");
            }
        }
    }

    #[test]
    fn failures_at_random_are_told_from_failures_beyond_a_line() {
        let learning = AdditiveGpUcbSettings::boscage().kernel_learning;
        let (succeeded, failed) = cut();
        let learned = learn_success(&prior(2), &succeeded, &failed, &learning).unwrap();
        assert!(learned.probability > 0.99, "{}", learned.probability);
        // The same number of failures, whatever the point.
        let (mut at_random, mut others) = (Dataset::empty(2), Vec::new());
        let points = (0..succeeded.len()).map(|a| succeeded.point(a)).chain(failed.iter().cloned());
        for (a, point) in points.enumerate() {
            match (a * 17) % 40 < succeeded.len() {
                true => at_random.push(&point, 5.0).unwrap(),
                false => others.push(point),
            }
        }
        assert_eq!((at_random.len(), others.len()), (succeeded.len(), failed.len()));
        let by_chance = learn_success(&prior(2), &at_random, &others, &learning).unwrap();
        assert!(by_chance.probability < 0.2, "{}", by_chance.probability);
        // The chance is between what the model says and the share of successes, by that probability.
        let share = succeeded.len() as f64 / 40.0;
        let at = |probability: f64, point: &Point| {
            let learned = LearnedSuccess { prior: prior(2), probability };
            Success::new(&learned, &succeeded, &failed).unwrap().chance_gradient(point).unwrap()
        };
        let point = Point(vec![0.8, 0.7]);
        let ((sure, slopes), (half, half_slopes), (none, flat)) =
            (at(1.0, &point), at(0.5, &point), at(0.0, &point));
        assert!((none - share).abs() < 1e-12 && (half - 0.5 * (sure + share)).abs() < 1e-12);
        assert_eq!(flat, [0.0, 0.0]);
        assert!(
            half_slopes.iter().zip(&slopes).all(|(half, slope)| (half - 0.5 * slope).abs() < 1e-12)
        );
    }

    /// Against Φ by Simpson's rule.
    #[test]
    fn the_logistic_function_is_nearly_the_normal_distribution() {
        let density = |u: f64| (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (mut phi, step) = (0.5, 0.01);
        for k in 0..500 {
            let u = step * f64::from(k);
            assert!((logistic(LOGISTIC * u) - phi).abs() < 0.01, "{u}");
            assert!((logistic(-LOGISTIC * u) - (1.0 - phi)).abs() < 0.01, "{u}");
            phi += step / 6.0 * (density(u) + 4.0 * density(u + 0.5 * step) + density(u + step));
        }
        assert!(logistic(f64::MAX) == 1.0 && logistic(f64::MIN) == 0.0);
    }
}
