//! GP-UCB: one GP over all variables together, without any additive structure.
//!
//! Sources: Srinivas, Krause, Kakade and Seeger, *Gaussian Process Optimization in the Bandit Setting*, ICML 2010, for the
//! textbook variant; Hvarfner, Hellsten and Nardi, *Vanilla Bayesian Optimization Performs Great in High Dimensions*, ICML 2024,
//! for the prior that makes the modern variant strong: log ℓ_i ~ N(√2 + ½ log D, √3).
//!
//! Assumes smoothness only; the modern variant also that a function of many variables varies slowly along each.
//!
//! Cost of an ask: n² multiply-adds for each of some hundred random starts and n² + D·n for each step of the climbs from the
//! best of them; learning needs a Cholesky factorisation and a gradient for each likelihood, D·n²/2 exponentials at most.
//!
//! Settings: those of the default, with one component of all variables, and those below.
//!
//! Deviations of the modern variant: an upper confidence bound with κ = 2 where the source has LogEI; the best of 512 random and 3
//! observed starts are climbed from (message passing on a grid finds them in up to four dimensions); the kernel is a product of
//! Matérn-5/2 factors; the constant, which the source learns with the other parameters, has a wide prior and is integrated over. Both
//! variants learn the noise. The textbook variant has β_t of the paper's additive bound, ½ log 2t, in place of the one that the regret
//! bound needs, which is known to explore too much.

use crate::additive_gp_ucb::{Acquisition, AdditiveGpUcbSettings, Learning};
use crate::kernel::KernelFamily;
use crate::kernel_learning::{KernelLearning, KernelPrior, PooledPrior};
use crate::structure::Structure;

impl AdditiveGpUcbSettings {
    /// The modern variant.
    pub fn gp_ucb() -> Self {
        // The source takes the most probable ℓ, and we the most probable log ℓ. The density of ℓ is that of log ℓ over ℓ, which
        // moves the centre from μ to μ − σ²: e^(√2 − 3) in one dimension.
        let (location, log_std) = (std::f64::consts::SQRT_2, 3.0_f64.sqrt());
        let median = (location - log_std * log_std).exp();
        Self {
            structure: Structure::Whole,
            family: KernelFamily::Matern52,
            lengthscale: median,
            lengthscale_growth: 0.5,
            kernel_learning: KernelLearning {
                lengthscale_bounds: [0.01, 1e4],
                prior: Some(KernelPrior {
                    // Nothing is pooled: the common value is as good as fixed.
                    lengthscales: PooledPrior { median, common_log_std: 1e-3, log_std },
                    ..KernelPrior::default()
                }),
                ..KernelLearning::default()
            },
            // Three standard deviations of the outcomes: what lies far from all of them may be far from their average, too.
            constant: 10.0,
            acquisition: Acquisition::Joint(2.0),
            ..Self::default()
        }
    }

    /// The textbook variant: RBF kernel with the initial lengthscale of the paper's comparison, parameters by maximum likelihood
    /// every 15 observations, and μ + √β_t σ.
    pub fn gp_ucb_textbook() -> Self {
        Self {
            structure: Structure::Whole,
            learning: Learning::Every(15),
            kernel_learning: KernelLearning { prior: None, ..KernelLearning::default() },
            lengthscale: 0.1,
            acquisition: Acquisition::JointSchedule,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive_gp_ucb::AdditiveGpUcb;
    use crate::optimizer::Optimizer;
    use crate::space::Space;
    use crate::stream::Stream;

    /// A bump away from the centre, in so many variables that tables are out of the question.
    #[test]
    fn both_variants_climb_a_bump_from_random_starts() {
        let space = Space::unit_cube(5).unwrap();
        let value = |x: &[f64]| -x.iter().map(|x| (x - 0.7).powi(2)).sum::<f64>();
        for settings in [AdditiveGpUcbSettings::gp_ucb(), AdditiveGpUcbSettings::gp_ucb_textbook()]
        {
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            let mut best = f64::NEG_INFINITY;
            for trial in 0..60 {
                let point = optimizer.ask(&[], &Stream::new(2, trial)).unwrap();
                let y = value(&point.0);
                best = best.max(y);
                optimizer.tell(point, y).unwrap();
            }
            assert_eq!(optimizer.fallbacks(), 0);
            // The mean of a random point is −5 (1/12 + 0.04) = −0.62.
            assert!(best > -0.05, "{best}");
        }
    }
}
