//! Surprises: what outcomes have been next to what the model expected of them, and what that says of its next promise.
//!
//! Not in the paper. The bound μ + κσ leads to where the model promises most, and of all its promises the highest are wrong most
//! often. Where the model is right, outcomes of such asks lie about μ as σ says. Where all variables act together and the model
//! says they do not, or knows nothing far from what was observed, they come out far below it, ask after ask, and no likelihood of
//! all outcomes shows it as early. So the bound is corrected by what asks have brought: with a mean surprise of z̄, what an outcome
//! is really expected to be is about μ + z̄σ, and the bound of that is μ + (κ + z̄)σ. Where asks disappoint, the next ones go less far
//! from what is known; where that ends at what is known already, `news` sends the next one out again. (That uncertainties of a model
//! should be set by how outcomes fell out was said before, of their spread: Deshpande and Kuleshov 2021, *Calibration improves
//! Bayesian optimization*.)
//!
//! Only outcomes away from the best point count: near it every model is right. (With categories and truth values alone, nothing is
//! away from it, and nothing is corrected.) What was expected is what the model that searches when an outcome is told expects, with
//! the parameters it has then: later ones know the outcome. And only κ of sums is corrected: a plain GP, which the guard
//! ([`crate::guard`]) has search where no sum explains the outcomes, has a lower one from the start.
//!
//! Notation: the surprise of an outcome y is z = (y − μ)/√(σ² + η²), with μ and σ given all outcomes before it. With Δ = LLᵀ in the
//! order of the observations, the surprises are L⁻¹y.
//!
//! Cost: n² for the surprises, and n + D for each outcome since the model was learned.

/// How many surprises count, the last ones.
const RECENT: usize = 8;
/// With fewer there is nothing to go by.
const FEWEST: usize = 4;
/// What a single surprise counts at most, so that one does not make up for all others.
const MOST: f64 = 3.0;
/// The least that a correction makes of κ. Below 0 the bound keeps close to what is known; far below, it would be nowhere else.
const LEAST_KAPPA: f64 = -1.0;

/// The last surprises of these: what is worth keeping.
pub(crate) fn recent(mut surprises: Vec<f64>) -> Vec<f64> {
    surprises.split_off(surprises.len().saturating_sub(RECENT))
}

/// κ after these surprises, by so many times their mean. Never more than κ: outcomes that are better than expected need no more
/// courage.
pub(crate) fn corrected(kappa: f64, weight: f64, surprises: &[f64]) -> f64 {
    if surprises.len() < FEWEST {
        return kappa;
    }
    let sum: f64 = surprises.iter().map(|z| z.clamp(-MOST, MOST)).sum();
    let mean = sum / surprises.len() as f64;
    (kappa + weight * mean.min(0.0)).max(LEAST_KAPPA.min(kappa))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disappointments_lower_kappa_and_nothing_raises_it() {
        // Too few to go by; as expected; better than expected.
        assert_eq!(corrected(2.0, 1.0, &[-2.0; 3]), 2.0);
        assert_eq!(corrected(2.0, 1.0, &[1.0, -1.0, 0.5, -0.5]), 2.0);
        assert_eq!(corrected(2.0, 1.0, &[1.0; 8]), 2.0);
        // By their mean, and by a multiple of it.
        assert_eq!(corrected(2.0, 1.0, &[-2.0, -1.0, -0.5, -0.5]), 1.0);
        assert_eq!(corrected(2.0, 0.5, &[-2.0, -1.0, -0.5, -0.5]), 1.5);
        assert_eq!(corrected(2.0, 0.0, &[-2.0; 8]), 2.0);
        // One alone counts no more than three.
        assert_eq!(corrected(2.0, 1.0, &[-100.0, 0.0, 0.0, 0.0]), 1.25);
        // There is a limit, which is no reason to raise a κ that is lower.
        assert_eq!(corrected(2.0, 2.0, &[-3.0; 8]), -1.0);
        assert_eq!(corrected(0.0, 1.0, &[-3.0; 8]), -1.0);
        assert_eq!(corrected(-2.0, 1.0, &[-3.0; 8]), -2.0);
    }

    #[test]
    fn the_last_eight_are_kept() {
        let all: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(recent(all.clone()), all[12..]);
        assert_eq!(recent(all[..5].to_vec()), all[..5]);
    }
}
