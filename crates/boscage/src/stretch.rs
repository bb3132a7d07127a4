//! Ranges of which one end matters more than the other: a kernel may see a variable through a logarithm.
//!
//! Not in the paper. Whoever states a range from 0 to 1 where 0.001 is a good value means orders of magnitude, and a kernel whose
//! lengthscale is the same everywhere in a range can only take nearly all of it for flat or next to its end for noise. A variable may
//! therefore be seen through
//!
//! w(x) = ln(1 + (r − 1) x)/ln r,
//!
//! which goes from 0 to 1 as x does and is r times as steep at the low end as at the upper one: as a logarithm of x for a large
//! *stretch* r, as one of 1 − x for a small one, the line for r = 1. Seen through 1/r, 1 − x is what x is through r, turned about.
//! Stretches are learned with the other parameters ([`crate::kernel_learning`]), by models that search where they are clearly likelier
//! ([`crate::guard`]).
//!
//! Notation: s = ln r; w for what is seen of a coordinate. A list of stretches is either empty, for none, or has one of each variable.
//!
//! Cost: two logarithms and an exponential for each coordinate that is seen.

/// w of a coordinate of variable i.
pub(crate) fn seen(stretches: &[f64], i: usize, x: f64) -> f64 {
    let Some(s) = stretches.get(i).map(|r| r.ln()) else { return x };
    if s == 0.0 {
        return x;
    }
    (s.exp_m1() * x).ln_1p() / s
}

/// The coordinate of variable i of which w is seen.
pub(crate) fn coordinate_of(stretches: &[f64], i: usize, w: f64) -> f64 {
    let Some(s) = stretches.get(i).map(|r| r.ln()) else { return w };
    if s == 0.0 {
        return w;
    }
    (s * w).exp_m1() / s.exp_m1()
}

/// ∂w/∂x where w is seen of variable i.
pub(crate) fn slope_at(stretches: &[f64], i: usize, w: f64) -> f64 {
    let Some(s) = stretches.get(i).map(|r| r.ln()) else { return 1.0 };
    if s == 0.0 {
        return 1.0;
    }
    s.exp_m1() / s * (-s * w).exp()
}

/// ∂w/∂s at a coordinate of variable i; 0 without stretches.
pub(crate) fn slope_in_log_stretch(stretches: &[f64], i: usize, x: f64) -> f64 {
    let Some(s) = stretches.get(i).map(|r| r.ln()) else { return 0.0 };
    // What is divided by s is a difference of nearly equal numbers where s is small: the first two terms of the series.
    if s.abs() < 1e-4 {
        return x * (1.0 - x) * (0.5 + s * (1.0 - 2.0 * x) / 3.0);
    }
    (s.exp() * x / (1.0 + s.exp_m1() * x) - seen(stretches, i, x)) / s
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRETCHES: [f64; 10] =
        [1e-4, 0.03, 0.9, 1.0 - 1e-7, 1.0, 1.0 + 1e-6, 1.00009, 1.003, 40.0, 1e4];

    fn coordinates() -> impl Iterator<Item = f64> {
        (0..=40).map(|k| f64::from(k) / 40.0)
    }

    #[test]
    fn what_is_seen_is_the_formula_and_goes_from_0_to_1() {
        for (i, &r) in STRETCHES.iter().enumerate() {
            assert_eq!(seen(&STRETCHES, i, 0.0), 0.0, "{r}");
            assert!((seen(&STRETCHES, i, 1.0) - 1.0).abs() < 1e-12, "{r}");
            for x in coordinates() {
                let w = seen(&STRETCHES, i, x);
                if (r - 1.0).abs() > 1e-5 {
                    assert!((w - (1.0 + (r - 1.0) * x).ln() / r.ln()).abs() < 1e-9, "{r} {x}");
                } else {
                    assert!((w - x).abs() < 1e-5, "{r} {x}");
                }
                // Turned about for 1/r, and back again.
                let turned = 1.0 - seen(&[1.0 / r], 0, 1.0 - x);
                assert!((w - turned).abs() < 1e-9, "{r} {x}: {w} {turned}");
                assert!((coordinate_of(&STRETCHES, i, w) - x).abs() < 1e-9, "{r} {x}");
            }
            let steeper = slope_at(&STRETCHES, i, 0.0) / slope_at(&STRETCHES, i, 1.0);
            assert!((steeper / r - 1.0).abs() < 1e-9, "{r}: {steeper}");
        }
        for x in coordinates() {
            let (w, back) = (seen(&[], 0, x), coordinate_of(&[], 0, x));
            let slopes = (slope_at(&[], 0, x), slope_in_log_stretch(&[], 0, x));
            assert_eq!((w, back, slopes), (x, x, (1.0, 0.0)));
        }
    }

    #[test]
    fn slopes_equal_finite_differences() {
        for r in STRETCHES {
            for x in coordinates().filter(|x| (0.01..0.99).contains(x)) {
                let by_x = (seen(&[r], 0, x + 1e-6) - seen(&[r], 0, x - 1e-6)) / 2e-6;
                let slope = slope_at(&[r], 0, seen(&[r], 0, x));
                assert!((slope / by_x - 1.0).abs() < 1e-5, "{r} {x}: {slope} {by_x}");
                let by_s = (seen(&[r * 1e-4_f64.exp()], 0, x)
                    - seen(&[r * (-1e-4_f64).exp()], 0, x))
                    / 2e-4;
                let slope = slope_in_log_stretch(&[r], 0, x);
                assert!((slope - by_s).abs() < 3e-9, "{r} {x}: {slope} {by_s}");
            }
        }
    }
}
