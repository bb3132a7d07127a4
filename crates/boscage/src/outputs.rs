//! Standardising outcomes: what the model sees is a bounded, monotone function of what was observed.
//!
//! Not in the paper, which models raw outcomes. Priors and bounds on Θ only mean something on a known scale, and one
//! outcome of −1e300 must not make the rest invisible.
//!
//! Notation: a *fence* lies three trimmed ranges beyond the trimmed range of the outcomes. Between the fences the map is
//! linear; beyond them it bends towards an asymptote one more trimmed range away, so order is kept and nothing
//! overflows.
//!
//! Times, costs and errors often are products rather than sums of what the parameters do, or span orders of magnitude. What is a sum
//! then is their logarithm. So there is a second map, for a model that is compared with one of the standardised outcomes
//! ([`crate::guard`]): −c ln(1 + d/c), standardised again, where d is how far an outcome is below the best one. Where d is far less
//! than the *knee* c this is d itself. The likelihoods of what two maps show differ by their slopes.
//!
//! Cost: one sort of the outcomes at each learning step.

use serde::{Deserialize, Serialize};

/// What the model is told about outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputRule {
    /// The outcomes as they are, as in the paper.
    Raw,
    /// Mean 0 and standard deviation 1, with outliers drawn in.
    #[default]
    Standardised,
}

/// A monotone map from outcomes to what the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutputMap {
    /// The outcome that becomes 0.
    pub shift: f64,
    /// The difference of outcomes that becomes 1.
    pub scale: f64,
    /// Below this outcome the map bends; none where it never does.
    pub low_fence: Option<f64>,
    /// Above this outcome the map bends.
    pub high_fence: Option<f64>,
    /// How far beyond a fence the bent part reaches.
    pub reach: f64,
    /// What becomes of all this where the model sees logarithms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logarithm: Option<Logarithm>,
}

/// The logarithm of how far a standardised outcome is below the best one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Logarithm {
    /// The best standardised outcome. Of better ones, which may come later, it is the logarithm of how far they are above it: on a
    /// line they would seem to be as far above it as all others are below.
    pub best: f64,
    /// c, in units of standardised outcomes: the distance from the best up to which outcomes are seen nearly as they are.
    pub knee: f64,
    /// The logarithm that becomes 0.
    pub shift: f64,
    /// The difference of logarithms that becomes 1.
    pub scale: f64,
}

impl Logarithm {
    /// With this knee, for these standardised outcomes.
    fn fit(z: &[f64], knee: f64) -> Self {
        let best = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let raw = Self { best, knee, shift: 0.0, scale: 1.0 };
        let seen: Vec<f64> = z.iter().map(|&z| raw.apply(z)).collect();
        let n = seen.len() as f64;
        let shift = seen.iter().sum::<f64>() / n;
        let variance = seen.iter().map(|s| (s - shift) * (s - shift)).sum::<f64>() / n;
        let scale = variance.sqrt();
        let usable = shift.is_finite() && scale.is_finite() && scale > 0.0;
        if usable { Self { shift, scale, ..raw } } else { raw }
    }

    fn apply(&self, z: f64) -> f64 {
        let distance = (z - self.best).clamp(-f64::MAX, f64::MAX);
        let seen = self.knee * (distance.abs() / self.knee).min(f64::MAX).ln_1p();
        (seen.copysign(distance) - self.shift) / self.scale
    }

    fn invert(&self, z: f64) -> f64 {
        let seen = z.mul_add(self.scale, self.shift);
        self.best + (self.knee * (seen.abs() / self.knee).exp_m1()).copysign(seen)
    }

    fn log_slope(&self, z: f64) -> f64 {
        let distance = (z - self.best).abs().min(f64::MAX);
        -(distance / self.knee).min(f64::MAX).ln_1p() - self.scale.ln()
    }

    fn is_usable(&self) -> bool {
        [self.best, self.shift].iter().all(|number| number.is_finite())
            && [self.knee, self.scale].iter().all(|&number| number > 0.0 && number.is_finite())
    }
}

impl OutputMap {
    /// The map that changes nothing.
    pub fn identity() -> Self {
        Self {
            shift: 0.0,
            scale: 1.0,
            low_fence: None,
            high_fence: None,
            reach: 1.0,
            logarithm: None,
        }
    }

    /// The map that this rule prescribes for these outcomes, which must be finite.
    pub fn fit(rule: OutputRule, outcomes: &[f64]) -> Self {
        match rule {
            OutputRule::Raw => Self::identity(),
            OutputRule::Standardised => Self::standardise(outcomes),
        }
    }

    fn standardise(outcomes: &[f64]) -> Self {
        let n = outcomes.len();
        if n == 0 {
            return Self::identity();
        }
        let mut sorted = outcomes.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let trim = if n < 4 { 0 } else { (n / 20).max(1) };
        let mut range = (sorted[trim], sorted[n - 1 - trim]);
        if range.0 == range.1 {
            // Nearly all outcomes are equal: what is left is all there is to see.
            range = (sorted[0], sorted[n - 1]);
        }
        // Halves first: the difference of two finite numbers may not be finite.
        let width = 2.0 * (range.1 / 2.0 - range.0 / 2.0).min(f64::MAX / 16.0);
        if width <= 0.0 {
            // Nothing is known of the scale yet; the fences still hold off whatever comes next.
            let fence = |distance: f64| Some(sorted[0] + distance).filter(|f| f.is_finite());
            let (low_fence, high_fence) = (fence(-3.0), fence(3.0));
            return Self { shift: sorted[0], low_fence, high_fence, ..Self::identity() };
        }
        let mut map = Self {
            shift: 0.0,
            scale: 1.0,
            low_fence: Some(range.0 - 3.0 * width).filter(|f| f.is_finite()),
            high_fence: Some(range.1 + 3.0 * width).filter(|f| f.is_finite()),
            reach: width,
            logarithm: None,
        };
        let bent: Vec<f64> = outcomes.iter().map(|&y| map.bend(y) / width).collect();
        let mean = bent.iter().sum::<f64>() / n as f64;
        let variance = bent.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / n as f64;
        map.shift = mean * width;
        let scale = variance.sqrt() * width;
        map.scale = if scale.is_finite() && scale > 0.0 { scale } else { width };
        map
    }

    /// Draws what lies beyond a fence to within `reach` of it.
    fn bend(&self, y: f64) -> f64 {
        let bent = |beyond: f64| {
            // e/(1 + e), in a form of which every step is monotone in floating point, and which takes e = ∞.
            self.reach * (1.0 - 1.0 / (1.0 + beyond / self.reach))
        };
        match (self.low_fence, self.high_fence) {
            (Some(fence), _) if y < fence => fence - bent(fence - y),
            (_, Some(fence)) if y > fence => fence + bent(y - fence),
            _ => y,
        }
    }

    fn standardised(&self, y: f64) -> f64 {
        // Halves, because the difference itself may overflow.
        2.0 * ((self.bend(y) / 2.0 - self.shift / 2.0) / self.scale)
    }

    /// What the model sees of an outcome.
    pub fn apply(&self, y: f64) -> f64 {
        let z = self.standardised(y);
        self.logarithm.map_or(z, |logarithm| logarithm.apply(z))
    }

    /// The outcome that the model's value stands for, between the fences.
    pub fn invert(&self, z: f64) -> f64 {
        let z = self.logarithm.map_or(z, |logarithm| logarithm.invert(z));
        z.mul_add(self.scale, self.shift)
    }

    /// The same map with a logarithm of this knee after it, fitted to these outcomes, of which there is one at least.
    pub fn with_logarithm(&self, outcomes: &[f64], knee: f64) -> Self {
        let z: Vec<f64> = outcomes.iter().map(|&y| self.standardised(y)).collect();
        Self { logarithm: Some(Logarithm::fit(&z, knee)), ..*self }
    }

    /// The logarithm of the slope of the map at an outcome: what the log density of the outcome itself has more than that of what
    /// the model sees.
    pub fn log_slope(&self, y: f64) -> f64 {
        let beyond = match (self.low_fence, self.high_fence) {
            (Some(fence), _) if y < fence => (fence - y) / self.reach,
            (_, Some(fence)) if y > fence => (y - fence) / self.reach,
            _ => 0.0,
        };
        // Outcomes of any size have a slope, if a tiny one.
        let slope = -2.0 * beyond.min(f64::MAX).ln_1p() - self.scale.ln();
        slope + self.logarithm.map_or(0.0, |logarithm| logarithm.log_slope(self.standardised(y)))
    }

    /// Whether its numbers are finite and its scales positive.
    pub(crate) fn is_usable(&self) -> bool {
        [self.shift, self.scale, self.reach].iter().all(|number| number.is_finite())
            && self.scale > 0.0
            && self.logarithm.is_none_or(|logarithm| logarithm.is_usable())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn standardised(outcomes: &[f64]) -> (OutputMap, Vec<f64>) {
        let map = OutputMap::fit(OutputRule::Standardised, outcomes);
        (map, outcomes.iter().map(|&y| map.apply(y)).collect())
    }

    fn mean_and_std(z: &[f64]) -> (f64, f64) {
        let n = z.len() as f64;
        let mean = z.iter().sum::<f64>() / n;
        (mean, (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    /// Spread out like a sine, without outliers.
    fn waves(n: usize) -> Vec<f64> {
        (0..n).map(|a| 7.0 + 3.0 * (1.0 + a as f64).sin()).collect()
    }

    #[test]
    fn raw_outcomes_stay_as_they_are() {
        let map = OutputMap::fit(OutputRule::Raw, &[1.0, 5.0, 1e300]);
        assert_eq!(map, OutputMap::identity());
        for y in [0.0, -1.5, 1e-300, 0.1, 1.7e308, -1.7e308] {
            assert_eq!(map.apply(y), y);
            assert_eq!(map.invert(y), y);
        }
        assert_eq!(OutputMap::fit(OutputRule::Standardised, &[]), OutputMap::identity());
    }

    #[test]
    fn without_outliers_mean_0_and_std_1() {
        for n in [2, 3, 4, 5, 19, 20, 21, 100] {
            let (_, z) = standardised(&waves(n));
            let (mean, std) = mean_and_std(&z);
            assert!(mean.abs() < 1e-13, "n = {n}: mean {mean}");
            assert!((std - 1.0).abs() < 1e-13, "n = {n}: std {std}");
        }
    }

    #[test]
    fn shift_and_unit_of_the_outcomes_do_not_matter() {
        let y = waves(30);
        let (_, z) = standardised(&y);
        for (unit, shift) in [(1e-200, 0.0), (1e200, 0.0), (1.0, 1e6)] {
            let other: Vec<f64> = y.iter().map(|y| y * unit + shift).collect();
            for (a, b) in standardised(&other).1.iter().zip(&z) {
                assert!((a - b).abs() < 1e-8, "{a} {b}");
            }
        }
    }

    #[test]
    fn few_outcomes() {
        let (map, z) = standardised(&[5.0]);
        assert_eq!(z, [0.0]);
        assert_eq!(map.apply(6.0), 1.0);

        let (_, z) = standardised(&[5.0, 9.0]);
        assert!((z[0] + 1.0).abs() < 1e-14 && (z[1] - 1.0).abs() < 1e-14);

        let (_, z) = standardised(&[-1.0, 0.0, 1.0]);
        let want = 1.5_f64.sqrt();
        assert!((z[0] + want).abs() < 1e-14 && z[1].abs() < 1e-14 && (z[2] - want).abs() < 1e-14);
    }

    #[test]
    fn constant_outcomes_become_0() {
        for y in [0.0, -3.5, 1e-300, 1.7e308, -1.7e308] {
            for n in [1, 2, 3, 4, 25] {
                let (map, z) = standardised(&vec![y; n]);
                assert_eq!(z, vec![0.0; n]);
                assert!(map.apply(1.0).is_finite() && map.apply(-1.0).is_finite());
            }
        }
    }

    #[test]
    fn all_equal_but_one() {
        // The trimmed range is empty: the one that differs must still be told apart.
        let mut y = vec![2.0; 30];
        y[17] = 2.5;
        let (_, z) = standardised(&y);
        assert!(z[17] - z[0] > 1.0 && z[17] < 10.0, "{} {}", z[0], z[17]);
    }

    #[test]
    fn one_outlier_does_not_hide_the_rest() {
        for outlier in [1e300, -1e300, 1.7e308, -1.7e308, 1e3] {
            for n in [5, 8, 20, 100] {
                let mut y = waves(n);
                y[n / 3] = outlier;
                let (_, mut z) = standardised(&y);
                let bent = z.remove(n / 3);
                let (_, spread) = mean_and_std(&z);
                assert!(spread > 0.1, "{outlier} among {n}: spread {spread}");
                // And it stays the largest or smallest, at a bounded distance.
                let beyond = z.iter().all(|z| if outlier > 0.0 { bent > *z } else { bent < *z });
                assert!(beyond && bent.abs() < 15.0, "{outlier} among {n}: {bent}");
            }
        }
    }

    #[test]
    fn outliers_keep_their_order() {
        let mut y = waves(100);
        y.truncate(95);
        y.extend([20.0, 50.0, 1e3, 1e6, 1e9]);
        let (map, z) = standardised(&y);
        assert!(map.high_fence.is_some_and(|fence| fence < 50.0));
        for pair in z[95..].windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }

    #[test]
    fn logarithms_are_standardised_and_in_order_and_can_be_undone() {
        let y: Vec<f64> = (0..40).map(|a| -(f64::from(a) * 0.37).exp()).collect();
        let map = OutputMap::fit(OutputRule::Standardised, &y[..30]);
        for knee in [1.0, 0.1, 0.01] {
            let logarithm = map.with_logarithm(&y[..30], knee);
            let z: Vec<f64> = y.iter().map(|&y| logarithm.apply(y)).collect();
            let (mean, std) = mean_and_std(&z[..30]);
            assert!(mean.abs() < 1e-12 && (std - 1.0).abs() < 1e-12, "{mean} {std}");
            assert!(z.windows(2).all(|pair| pair[0] > pair[1]));
            // By the formula, between the fences.
            let Logarithm { shift, scale, .. } = logarithm.logarithm.unwrap();
            for &y in y.iter().filter(|&&y| map.low_fence.is_none_or(|fence| y > fence)) {
                let below = map.apply(-1.0) - map.apply(y);
                let want = (-knee * (1.0 + below / knee).ln() - shift) / scale;
                assert!((logarithm.apply(y) - want).abs() < 1e-12);
                assert!((logarithm.invert(logarithm.apply(y)) - y).abs() < 1e-8 * y.abs());
            }
            // Above the best it is the same upside down.
            let (best, at) = (logarithm.apply(-1.0), |by: f64| logarithm.apply(-1.0 + by));
            for by in [1e-3, 0.5, 3.0] {
                assert!(
                    (at(by) - best - (best - at(-by))).abs() < 1e-9 * (1.0 + best.abs() / knee)
                );
                assert!((logarithm.invert(at(by)) - (-1.0 + by)).abs() < 1e-8);
            }
        }
        // The smaller the knee, the more of the map is the best outcomes.
        let share = |knee| {
            let map = map.with_logarithm(&y[..30], knee);
            let at = |a: usize| map.apply(y[a]);
            (at(0) - at(10)) / (at(0) - at(29))
        };
        assert!(share(0.01) > share(0.1) && share(0.1) > share(1.0));
    }

    #[test]
    fn slopes_are_those_of_finite_differences() {
        let mut y = waves(30);
        y.extend([-1e3, 90.0]);
        let map = OutputMap::fit(OutputRule::Standardised, &y);
        assert!(map.low_fence.is_some_and(|fence| fence > -1e3));
        let logarithms = [0.5, 0.02].map(|knee| map.with_logarithm(&y, knee));
        for map in [map, logarithms[0], logarithms[1], OutputMap::identity()] {
            for at in [-1e3, -500.0, 5.0, 7.3, 9.9, 60.0, 89.0, 200.0] {
                let step = 1e-4;
                let slope = (map.apply(at + step) - map.apply(at - step)) / (2.0 * step);
                let log_slope = map.log_slope(at);
                assert!((log_slope - slope.ln()).abs() < 1e-3, "{at}: {log_slope} {}", slope.ln());
            }
        }
    }

    #[test]
    fn logarithms_of_equal_outcomes_are_0() {
        for y in [0.0, -3.5, 1.7e308] {
            let map = OutputMap::fit(OutputRule::Standardised, &[y; 5]);
            let map = map.with_logarithm(&[y; 5], 0.1);
            assert!(map.is_usable());
            assert_eq!(map.apply(y), 0.0);
        }
        let map = OutputMap::identity().with_logarithm(&[1.0, 2.0], 0.1);
        assert!(map.is_usable());
        let broken = |change: fn(&mut Logarithm)| {
            let mut map = map;
            change(map.logarithm.as_mut().unwrap());
            !map.is_usable()
        };
        assert!(map.with_logarithm(&[-1.7e308, 1.7e308], 0.1).log_slope(-1.7e308).is_finite());
        assert!(broken(|logarithm| logarithm.knee = 0.0));
        assert!(broken(|logarithm| logarithm.scale = f64::NAN));
        assert!(broken(|logarithm| logarithm.best = f64::INFINITY));
        assert!(!OutputMap { scale: 0.0, ..OutputMap::identity() }.is_usable());
    }

    #[test]
    fn far_beyond_a_fence_rounding_does_not_swap_neighbours() {
        // Where 1 + e rounds up and down in turn.
        let (fence, start) = (0.0, 2.0_f64.powi(53));
        let map =
            OutputMap { high_fence: Some(fence), low_fence: Some(fence), ..OutputMap::identity() };
        for step in 0..1000 {
            let (y, next) = (start + f64::from(step), (start + f64::from(step)).next_up());
            assert!(map.apply(y) <= map.apply(next), "{y}");
            assert!(map.apply(-y) >= map.apply(-next), "{y}");
        }
    }

    /// Numbers of every size, and some that are nearly or exactly equal.
    fn outcomes() -> impl Strategy<Value = Vec<f64>> {
        let any_size = (-1.0..1.0_f64, -300..309_i32)
            .prop_map(|(m, e)| (m * 10.0_f64.powi(e)).clamp(-f64::MAX, f64::MAX));
        let huge = prop_oneof![
            Just(1.7e308),
            Just(-1.7e308),
            Just(f64::MAX),
            Just(-f64::MAX),
            -1.7e308..1.7e308_f64,
        ];
        let special = prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::MIN_POSITIVE),
            Just(f64::from_bits(1)),
            Just(f64::EPSILON),
        ];
        let ordinary = -10.0..10.0_f64;
        let tiny_range =
            (prop_oneof![-10.0..10.0_f64, -1.7e308..1.7e308_f64], vec(0..9_u64, 1..40)).prop_map(
                |(y, steps)| steps.iter().map(|&step| f64::from_bits(y.to_bits() + step)).collect(),
            );
        prop_oneof![
            vec(ordinary.clone(), 1..60),
            vec(any_size.clone(), 1..60),
            vec(huge.clone(), 1..60),
            vec(prop_oneof![8 => ordinary, 1 => any_size, 1 => huge, 1 => special], 1..60),
            tiny_range,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 1000,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn monotone_and_finite(outcomes in outcomes(), others in outcomes()) {
            let map = OutputMap::fit(OutputRule::Standardised, &outcomes);
            // Also for outcomes that come later.
            let mut sorted = [outcomes.clone(), others].concat();
            sorted.sort_by(f64::total_cmp);
            let z: Vec<f64> = sorted.iter().map(|&y| map.apply(y)).collect();
            for (y, z) in sorted.iter().zip(&z) {
                prop_assert!(z.is_finite(), "{y:e} becomes {z} by {map:?}");
            }
            for (y, z) in sorted.windows(2).zip(z.windows(2)) {
                prop_assert!(z[0] <= z[1], "{y:?} become {z:?} by {map:?}");
            }
            // What the map was made for stays of order 1, however large it was.
            let largest = outcomes.iter().map(|&y| map.apply(y).abs()).fold(0.0, f64::max);
            prop_assert!(largest < 20.0, "{largest} by {map:?}");
        }

        #[test]
        fn what_lies_between_the_fences_comes_back(outcomes in vec(-10.0..10.0_f64, 1..60), at in 0.0..1.0_f64) {
            let map = OutputMap::fit(OutputRule::Standardised, &outcomes);
            let (low, high) = (map.low_fence.unwrap_or(-100.0), map.high_fence.unwrap_or(100.0));
            let y = low + at * (high - low);
            let back = map.invert(map.apply(y));
            prop_assert!((back - y).abs() < 1e-12 * (low.abs() + high.abs()), "{y} {back} by {map:?}");
            // In between the map is linear, whatever the outcomes were.
            let want = (y - map.shift) / map.scale;
            prop_assert!((map.apply(y) - want).abs() < 1e-10 * want.abs().max(1.0));
        }
    }
}
