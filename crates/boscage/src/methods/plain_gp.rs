//! The plain GP inside LineBO and REMBO: one component of all variables.
//!
//! Sources and cost: see [`crate::methods::gp_ucb`], whose modern variant this is by default, but for the constant, which the sources
//! of LineBO and REMBO do not have; LineBO uses it. REMBO, whose few variables need no prior, learns by maximum likelihood.

use serde::{Deserialize, Serialize};

use crate::additive_gp_ucb::{AdditiveGpUcbSettings, KernelStart, Learning};
use crate::design::Design;
use crate::kernel::KernelFamily;
use crate::kernel_learning::KernelLearning;
use crate::outputs::OutputRule;
use crate::repeats::RepeatRule;

/// Settings of a plain GP. Their meaning is that in [`AdditiveGpUcbSettings`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PlainGp {
    /// When the parameters are learned.
    pub learning: Learning,
    /// How they are learned.
    pub kernel_learning: KernelLearning,
    /// Where kernel learning starts from.
    pub kernel_start: KernelStart,
    /// The shape of the kernel.
    pub family: KernelFamily,
    /// ℓ_i to begin with.
    pub lengthscale: f64,
    /// The power of the number of variables that it grows with.
    pub lengthscale_growth: f64,
    /// σ_i to begin with; none for a prior variance of 1.
    pub scale: Option<f64>,
    /// η to begin with.
    pub noise_std: f64,
    /// What the model sees of outcomes.
    pub outputs: OutputRule,
}

impl Default for PlainGp {
    fn default() -> Self {
        let settings = AdditiveGpUcbSettings::gp_ucb();
        Self {
            learning: settings.learning,
            kernel_learning: settings.kernel_learning,
            kernel_start: settings.kernel_start,
            family: settings.family,
            lengthscale: settings.lengthscale,
            lengthscale_growth: settings.lengthscale_growth,
            scale: settings.scale,
            noise_std: settings.noise_std,
            outputs: settings.outputs,
        }
    }
}

impl PlainGp {
    /// An RBF kernel whose parameters are learned by maximum likelihood, without priors.
    pub fn maximum_likelihood() -> Self {
        Self {
            kernel_learning: KernelLearning { prior: None, ..KernelLearning::default() },
            family: KernelFamily::Rbf,
            lengthscale: 0.3,
            lengthscale_growth: 0.0,
            ..Self::default()
        }
    }

    /// The engine's settings for this GP.
    pub(crate) fn settings(
        &self,
        initial_points: usize,
        design: Design,
        repeats: RepeatRule,
    ) -> AdditiveGpUcbSettings {
        AdditiveGpUcbSettings {
            initial_points,
            design,
            repeats,
            learning: self.learning,
            kernel_learning: self.kernel_learning.clone(),
            kernel_start: self.kernel_start,
            family: self.family,
            lengthscale: self.lengthscale,
            lengthscale_growth: self.lengthscale_growth,
            scale: self.scale,
            noise_std: self.noise_std,
            constant: 0.0,
            outputs: self.outputs,
            ..AdditiveGpUcbSettings::gp_ucb()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_it_is_gp_ucb_without_its_constant() {
        let gp_ucb = AdditiveGpUcbSettings::gp_ucb();
        let AdditiveGpUcbSettings { initial_points, design, repeats, .. } = gp_ucb;
        let settings = PlainGp::default().settings(initial_points, design, repeats);
        assert_eq!(settings, AdditiveGpUcbSettings { constant: 0.0, ..gp_ucb });
    }
}
