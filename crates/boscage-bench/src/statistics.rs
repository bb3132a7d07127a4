//! Summaries over seeds, and how far they can be trusted: bootstrap intervals and paired differences.
//!
//! The paper shows means with a band of ¼ standard deviation (its figures); it has no intervals. Here a mean gets a
//! bias-corrected and accelerated (BCa) bootstrap interval. Its level is widened as a t interval is wider than a normal one,
//! because plain bootstrap intervals of few values are too narrow. Measured with 10,000 samples, 95 % intervals of the mean
//! cover it in 92 % at 5 normal values (plain percentile: 82 %), 94 % at 8, 94.5 % from 10 on; for exponential values 88 %,
//! 92 %, 92 %. A median gets the plain percentile interval, which suits small samples and for which BCa is not made.
//!
//! Notation: n values, θ the statistic, θ* its value on a resample, z₀ the bias correction, a the acceleration. A function
//! returns nothing if there are too few values, or if one of them is not finite.
//!
//! Cost: O(resamples · n) for a mean; well under 10 ms at 25 values and 10,000 resamples.

use boscage::Stream;
use boscage::stream::Purpose;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Resamples that are enough for the ends of a 95 % interval to be steady in the second digit.
pub const RESAMPLES: usize = 10_000;

/// The mean. Nothing if there are no values, or one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    usable(values, 1)?;
    Some(mean_of(values))
}

/// The standard deviation, dividing by n − 1. Nothing for fewer than two values, or if one is not finite.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    usable(values, 2)?;
    let mean = mean_of(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which this share of the values lies, with linear interpolation between the two nearest (type 7, as in R and
/// NumPy). Nothing if there are no values, one is not finite, or the share is not in [0, 1].
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    usable(values, 1)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (0.0..=1.0).contains(&share).then(|| quantile_of_sorted(&sorted, share))
}

/// The middle value; the mean of the two middle ones if their number is even.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// What is computed from a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    Median,
}

impl Statistic {
    /// Its value. Nothing if there are no values, or one is not finite.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Statistic::Mean => mean(values),
            Statistic::Median => median(values),
        }
    }
}

/// A confidence interval of this level, by the bootstrap: BCa with a widened level for the mean, percentile for the median
/// (see the head of the module). The same arguments give the same interval.
///
/// Nothing for fewer than two values, a value that is not finite, a level outside (0, 1), or no resamples. Values that are all
/// the same have an interval without width.
pub fn bootstrap_interval(
    values: &[f64],
    statistic: Statistic,
    level: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    usable(values, 2)?;
    if !(level > 0.0 && level < 1.0) || resamples == 0 {
        return None;
    }
    if values.iter().all(|value| *value == values[0]) {
        return Some(Interval { low: values[0], high: values[0] });
    }
    let mut generator = Stream::new(seed, BOOTSTRAP_TRIAL).generator(Purpose::Problem);
    let mut resample = vec![0.0; values.len()];
    let mut replicates = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for value in &mut resample {
            // The high bits of the product: uniform but for 1 part in 2³² / n.
            let index = (u64::from(generator.next_u32()) * values.len() as u64) >> 32;
            *value = values[index as usize];
        }
        replicates.push(match statistic {
            Statistic::Mean => mean_of(&resample),
            Statistic::Median => {
                resample.sort_unstable_by(f64::total_cmp);
                quantile_of_sorted(&resample, 0.5)
            }
        });
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let [low, high] = match statistic {
        Statistic::Mean => bca_shares(values, &replicates, tail),
        Statistic::Median => [tail, 1.0 - tail],
    };
    Some(Interval {
        low: quantile_of_sorted(&replicates, low),
        high: quantile_of_sorted(&replicates, high),
    })
}

/// The difference a − b for each seed that both have, ordered by seed.
pub fn paired_differences(a: &[(u64, f64)], b: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let b: std::collections::BTreeMap<u64, f64> = b.iter().copied().collect();
    let mut differences: Vec<(u64, f64)> =
        a.iter().filter_map(|&(seed, value)| Some((seed, value - b.get(&seed)?))).collect();
    differences.sort_unstable_by_key(|&(seed, _)| seed);
    differences
}

/// Keeps the bootstrap's numbers apart from those of any problem: no run has that many trials.
const BOOTSTRAP_TRIAL: u64 = u64::MAX - 1;

/// An interval for the mean of the means of several groups, from the spread within each: Student's, with the degrees of freedom of
/// Welch and Satterthwaite, rounded down. None where a group has fewer than two numbers.
///
/// The groups are taken as they are: it does not say what other groups would give.
pub fn interval_of_group_means(groups: &[Vec<f64>], level: f64) -> Option<Interval> {
    let mut means = Vec::with_capacity(groups.len());
    // Of each mean: its variance, and the square of that over its degrees of freedom.
    let (mut variances, mut squares) = (0.0, 0.0);
    for group in groups {
        means.push(mean(group)?);
        let variance = standard_deviation(group)?.powi(2) / group.len() as f64;
        variances += variance;
        squares += variance * variance / (group.len() - 1) as f64;
    }
    let centre = mean(&means)?;
    if variances == 0.0 {
        return Some(Interval { low: centre, high: centre });
    }
    // A whole number may come out a rounding error below itself.
    let freedom = ((variances * variances / squares + 1e-9) as usize).max(1);
    let half =
        student_quantile(0.5 + 0.5 * level, freedom) * variances.sqrt() / groups.len() as f64;
    Some(Interval { low: centre - half, high: centre + half })
}

fn usable(values: &[f64], at_least: usize) -> Option<()> {
    (values.len() >= at_least && values.iter().all(|value| value.is_finite())).then_some(())
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

/// The shares of the resampled means at which the interval ends.
fn bca_shares(values: &[f64], replicates: &[f64], tail: f64) -> [f64; 2] {
    let n = values.len() as f64;
    let estimate = mean_of(values);
    // Ties count half, so that a symmetric sample needs no correction.
    let below = replicates.partition_point(|value| *value < estimate);
    let not_above = replicates.partition_point(|value| *value <= estimate);
    let share = (below + not_above) as f64 / (2 * replicates.len()) as f64;
    let edge = 0.5 / replicates.len() as f64;
    let bias = normal_quantile(share.clamp(edge, 1.0 - edge));
    // The means without one value differ from the mean of those by (x − mean) / (n − 1): the skewness of the values, over 6√n.
    let deviations = values.iter().map(|value| value - estimate);
    let (squares, cubes) = deviations.fold((0.0, 0.0), |(s, c), d| (s + d * d, c + d * d * d));
    let acceleration = cubes / (6.0 * squares.powf(1.5));
    // The bootstrap's variance is that of dividing by n; t stands for the spread being estimated.
    let width = (n / (n - 1.0)).sqrt() * student_quantile(1.0 - tail, values.len() - 1);
    [-width, width].map(|z| {
        let shifted = bias + z;
        normal_cdf(bias + shifted / (1.0 - acceleration * shifted).max(1e-3))
    })
}

/// Φ(z), to about 1e-15.
fn normal_cdf(z: f64) -> f64 {
    // Series near the middle, continued fraction (from its end) in the tails.
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z.abs() < 3.0 {
        let (mut term, mut sum, mut k) = (z, z, 1.0);
        while term.abs() > 1e-17 * sum.abs() {
            k += 2.0;
            term *= z * z / k;
            sum += term;
        }
        0.5 + density * sum
    } else {
        let fraction = (1..=100).rev().fold(0.0, |below, k| f64::from(k) / (z.abs() + below));
        let tail = density / (z.abs() + fraction);
        if z > 0.0 { 1.0 - tail } else { tail }
    }
}

/// The z with Φ(z) = `share`.
fn normal_quantile(share: f64) -> f64 {
    bisect(|z| normal_cdf(z) - share, 9.0)
}

/// The t that a Student variable with this many degrees of freedom stays below with probability `share`.
fn student_quantile(share: f64, freedom: usize) -> f64 {
    // The normal distribution is within 1e-3 of it beyond this.
    if freedom > 2000 {
        return normal_quantile(share);
    }
    bisect(|angle| student_cdf(angle, freedom) - share, std::f64::consts::FRAC_PI_2).tan()
        * (freedom as f64).sqrt()
}

/// P(T ≤ √ν · tan angle) for ν degrees of freedom: a finite sum of powers of the cosine.
fn student_cdf(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    // ν odd: 2/π (θ + sin θ (cos θ + 2/3 cos³ θ + …)); ν even: sin θ (1 + 1/2 cos² θ + …).
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cosine } else { 1.0 }, 0.0);
    let mut k = if odd { 1 } else { 0 };
    while k + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * (k + 1) as f64 / (k + 2) as f64;
        k += 2;
    }
    let between = if odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    0.5 + 0.5 * between
}

/// The zero of an increasing function in [−bound, bound].
fn bisect(function: impl Fn(f64) -> f64, bound: f64) -> f64 {
    let (mut low, mut high) = (-bound, bound);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn summaries_by_hand() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(mean(&values), Some(2.5));
        assert_eq!(median(&values), Some(2.5));
        assert_eq!(median(&[7.0, 1.0, 2.0]), Some(2.0));
        // R: quantile(1:4, c(.25, .9)) is 1.75, 3.7; sd(1:4) is 1.290994.
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_abs_diff_eq!(quantile(&values, 0.9).unwrap(), 3.7, epsilon = 1e-12);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(1.0), Some(4.0)));
        assert_abs_diff_eq!(standard_deviation(&values).unwrap(), 1.290994, epsilon = 1e-6);
    }

    #[test]
    fn too_few_values_and_nan_are_refused() {
        assert_eq!((mean(&[]), median(&[]), quantile(&[], 0.5)), (None, None, None));
        assert_eq!((mean(&[2.0]), median(&[2.0])), (Some(2.0), Some(2.0)));
        assert_eq!(standard_deviation(&[2.0]), None);
        assert_eq!((quantile(&[1.0], -0.1), quantile(&[1.0], f64::NAN)), (None, None));
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(mean(&[1.0, bad]), None);
            assert_eq!(standard_deviation(&[1.0, bad]), None);
            assert_eq!(median(&[1.0, bad]), None);
            assert_eq!(bootstrap_interval(&[1.0, bad], Statistic::Mean, 0.95, 100, 1), None);
        }
        for statistic in [Statistic::Mean, Statistic::Median] {
            assert_eq!(bootstrap_interval(&[], statistic, 0.95, 100, 1), None);
            assert_eq!(bootstrap_interval(&[1.0], statistic, 0.95, 100, 1), None);
            assert_eq!(bootstrap_interval(&[1.0, 2.0], statistic, 1.0, 100, 1), None);
            assert_eq!(bootstrap_interval(&[1.0, 2.0], statistic, 0.95, 0, 1), None);
            assert_eq!(
                bootstrap_interval(&[3.0; 4], statistic, 0.95, 100, 1),
                Some(Interval { low: 3.0, high: 3.0 })
            );
            let two = bootstrap_interval(&[1.0, 2.0], statistic, 0.95, 1000, 1);
            assert_eq!(two, Some(Interval { low: 1.0, high: 2.0 }));
        }
    }

    #[test]
    fn distribution_functions_agree_with_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841344746068543),
            (-2.5, 0.006209665325776),
            (3.5, 0.999767370920964),
        ] {
            assert_abs_diff_eq!(normal_cdf(z), p, epsilon = 1e-13);
            assert_abs_diff_eq!(normal_quantile(p), z, epsilon = 1e-9);
        }
        assert_abs_diff_eq!(normal_cdf(2.999_999), normal_cdf(3.000_001), epsilon = 1e-7);
        // t.ppf(0.975, ν)
        for (freedom, t) in
            [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (19, 2.09302), (24, 2.06390)]
        {
            assert_abs_diff_eq!(student_quantile(0.975, freedom), t, epsilon = 1e-4);
        }
        assert_abs_diff_eq!(
            student_quantile(0.975, 2000),
            student_quantile(0.975, 2001),
            epsilon = 2e-3
        );
    }

    #[test]
    fn the_interval_is_repeatable_and_contains_the_estimate() {
        let values = [0.1, 0.5, 0.2, 0.9, 0.4, 3.0, 0.3];
        for statistic in [Statistic::Mean, Statistic::Median] {
            let interval = bootstrap_interval(&values, statistic, 0.95, 2000, 7).unwrap();
            assert_eq!(bootstrap_interval(&values, statistic, 0.95, 2000, 7), Some(interval));
            assert!(interval.contains(statistic.of(&values).unwrap()), "{interval:?}");
            let narrow = bootstrap_interval(&values, statistic, 0.5, 2000, 7).unwrap();
            assert!(narrow.high - narrow.low < interval.high - interval.low);
        }
        assert_ne!(
            bootstrap_interval(&values, Statistic::Mean, 0.95, 2000, 7),
            bootstrap_interval(&values, Statistic::Mean, 0.95, 2000, 8)
        );
        // A mirrored sample has, up to the resampling, the mirrored interval; a skewed one reaches further to its long side.
        let interval = bootstrap_interval(&values, Statistic::Mean, 0.95, 50_000, 7).unwrap();
        let mirrored =
            bootstrap_interval(&values.map(|v| -v), Statistic::Mean, 0.95, 50_000, 8).unwrap();
        assert_abs_diff_eq!(interval.low, -mirrored.high, epsilon = 0.05);
        assert_abs_diff_eq!(interval.high, -mirrored.low, epsilon = 0.05);
        let centre = mean(&values).unwrap();
        assert!(interval.high - centre > 1.3 * (centre - interval.low));
    }

    /// How often the interval holds the truth, over `samples` samples.
    fn coverage(statistic: Statistic, n: usize, samples: u64, skewed: bool) -> f64 {
        let truth = match (skewed, statistic) {
            (false, _) => 0.0,
            (true, Statistic::Mean) => 1.0,
            (true, Statistic::Median) => std::f64::consts::LN_2,
        };
        let hit = |sample: u64| {
            let mut generator = Stream::new(11, sample).generator(Purpose::Problem);
            let mut uniform = || (generator.next_u32() as f64 + 0.5) / 4_294_967_296.0;
            let values: Vec<f64> = (0..n)
                .map(|_| {
                    let radius = -uniform().ln();
                    if skewed {
                        radius
                    } else {
                        (2.0 * radius).sqrt() * (std::f64::consts::TAU * uniform()).cos()
                    }
                })
                .collect();
            bootstrap_interval(&values, statistic, 0.95, 2000, sample).unwrap().contains(truth)
        };
        (0..samples).filter(|&sample| hit(sample)).count() as f64 / samples as f64
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        // 1,000 samples: one standard error is 0.0069 at 95 % and 0.0087 at 92 %. Five values cannot reach 95 %, since no
        // resample leaves their range; plain percentile intervals would be at 82 % there, 15 standard errors lower.
        for (n, nominal) in [(5, 0.92), (20, 0.95)] {
            let normal = coverage(Statistic::Mean, n, 1000, false);
            assert!((normal - nominal).abs() < 0.026, "n = {n}: {normal}");
        }
        // An exponential sample of 20 is known to be covered too seldom (t intervals: 92 %).
        let exponential = coverage(Statistic::Mean, 20, 1000, true);
        assert!((0.91..0.971).contains(&exponential), "{exponential}");
        // The median of 20: an interval between two order statistics, whose coverage comes in steps: 88 %, 96 %, …
        for skewed in [false, true] {
            let median = coverage(Statistic::Median, 20, 1000, skewed);
            assert!((0.92..0.98).contains(&median), "{median}");
        }
    }

    #[test]
    fn group_means_have_an_interval_of_student() {
        let close = |found: Option<Interval>, low: f64, high: f64| {
            let found = found.unwrap();
            assert!(
                (found.low - low).abs() < 1e-3 && (found.high - high).abs() < 1e-3,
                "{found:?}"
            );
        };
        // One group: 2 ± 4.3027 · 1/√3, as any table of Student's t has it.
        close(interval_of_group_means(&[vec![1.0, 2.0, 3.0]], 0.95), -0.4841, 4.4841);
        // Two alike: (1/3 + 1/3)² / (1/9 / 2 + 1/9 / 2) = 4 degrees of freedom, 2 ± 2.7764 · √(2/3)/2.
        let alike = [vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0]];
        close(interval_of_group_means(&alike, 0.95), 0.8665, 3.1335);
        // All count the same, however many numbers they have, and what does not spread adds nothing.
        let other = [vec![1.0, 2.0, 3.0], vec![8.0; 9]];
        close(interval_of_group_means(&other, 0.95), 5.0 - 1.2421, 5.0 + 1.2421);
        close(interval_of_group_means(&[vec![4.0; 3], vec![2.0; 2]], 0.95), 3.0, 3.0);
        assert_eq!(interval_of_group_means(&[vec![1.0, 2.0], vec![1.0]], 0.95), None);
        assert_eq!(interval_of_group_means(&[], 0.95), None);
    }

    #[test]
    fn differences_are_taken_seed_by_seed() {
        let a = [(3, 10.0), (1, 5.0), (2, 7.0)];
        let b = [(1, 4.0), (3, 1.0), (9, 0.0)];
        assert_eq!(paired_differences(&a, &b), vec![(1, 1.0), (3, 9.0)]);
        assert_eq!(paired_differences(&a, &[]), vec![]);
    }
}
