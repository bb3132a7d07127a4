//! The default method.
//!
//! Not in the paper, but made of its parts and of what measurements say about them (`docs/default-method.md`): an additive GP of all
//! variables, all pairs and what the variables do alike, whose parameters are really trained and drawn to common values; the joint
//! upper confidence bound, with more weight on the uncertainty where its maximum would say nothing new; one ask in three a local
//! one, and most where the whole space tells little; and other models that search where they explain the outcomes better. Each part
//! can be switched off or changed in the settings.
//!
//! Cost of an ask with n observations: about a hundred joint gradients, n² + D·n each, and 64·n²/2 for the starts; a learning step
//! adds up to 80 gradients of ρ, n³/2 + 2·D·n² each, and 160 more where the models are compared, 360 where those of logarithms are
//! promising.

use crate::additive_gp_ucb::{Acquisition, AdditiveGpUcbSettings, KernelStart};
use crate::guard::Guard;
use crate::kernel::KernelFamily;
use crate::kernel_learning::{Budget, KernelLearning, KernelPrior, PooledPrior};
use crate::local_search::LocalSearch;
use crate::structure::Structure;

impl AdditiveGpUcbSettings {
    /// The default method.
    pub fn boscage() -> Self {
        Self {
            structure: Structure::Pairs,
            kernel_learning: KernelLearning {
                budget: Budget::Fixed(40),
                // Parameters that the next outcomes change again need no more digits than the data give them.
                tolerance: 1e-4,
                lengthscale_bounds: [0.02, 30.0],
                scale_bounds: [1e-6, 30.0],
                noise_std_bounds: Some([1e-3, 1.0]),
                prior: Some(KernelPrior {
                    lengthscales: PooledPrior { median: 0.5, common_log_std: 0.6, log_std: 0.5 },
                    scales: PooledPrior { median: 0.5, common_log_std: 1.0, log_std: 1.0 },
                    noise_std: PooledPrior { median: 0.08, common_log_std: 0.5, log_std: 0.1 },
                    // Half of the variance to single variables, ½ (D · 1/D)² to all pairs: no opinion which of them it is.
                    pair_weights: PooledPrior { median: 1.0, common_log_std: 0.7, log_std: 1.0 },
                    ..KernelPrior::default()
                }),
                most_observations: Some(400),
            },
            kernel_start: KernelStart::Present,
            family: KernelFamily::Matern52,
            lengthscale: 0.5,
            noise_std: 0.08,
            constant: 1.0,
            common_std: 0.1,
            acquisition: Acquisition::Joint(2.0),
            centre: true,
            local: Some(LocalSearch::default()),
            news: 1.0,
            guard: Some(Guard::default()),
            failures: true,
            ..Self::default()
        }
    }
}
