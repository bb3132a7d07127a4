//! Standardising outcomes: what the model sees is a bounded, monotone function of what was observed.
//!
//! Not in the paper, which models raw outcomes. Priors and bounds on Θ only mean something on a known scale, and one
//! outcome of −1e300 must not make the rest invisible.
//!
//! Notation: a *fence* lies three trimmed ranges beyond the trimmed range of the outcomes. Between the fences the map is
//! linear; beyond them it bends towards an asymptote one more trimmed range away, so order is kept and nothing
//! overflows.
//!
//! Cost: one sort of the outcomes at each learning step.

use serde::{Deserialize, Serialize};

/// What the model is told about outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
}

impl OutputMap {
    /// The map that changes nothing.
    pub fn identity() -> Self {
        Self { shift: 0.0, scale: 1.0, low_fence: None, high_fence: None, reach: 1.0 }
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
            return Self { shift: sorted[0], ..Self::identity() };
        }
        let mut map = Self {
            shift: 0.0,
            scale: 1.0,
            low_fence: Some(range.0 - 3.0 * width).filter(|f| f.is_finite()),
            high_fence: Some(range.1 + 3.0 * width).filter(|f| f.is_finite()),
            reach: width,
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
            let excess = beyond / self.reach;
            if excess.is_finite() { self.reach * (excess / (1.0 + excess)) } else { self.reach }
        };
        match (self.low_fence, self.high_fence) {
            (Some(fence), _) if y < fence => fence - bent(fence - y),
            (_, Some(fence)) if y > fence => fence + bent(y - fence),
            _ => y,
        }
    }

    /// What the model sees of an outcome.
    pub fn apply(&self, y: f64) -> f64 {
        // Halves, because the difference itself may overflow.
        2.0 * ((self.bend(y) / 2.0 - self.shift / 2.0) / self.scale)
    }

    /// The outcome that the model's value stands for, between the fences.
    pub fn invert(&self, z: f64) -> f64 {
        z.mul_add(self.scale, self.shift)
    }
}
