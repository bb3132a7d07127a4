//! What is sought.

use serde::{Deserialize, Serialize};

/// Whether small or large values are sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Small values are good.
    #[default]
    Minimize,
    /// Large values are good.
    Maximize,
}

impl Goal {
    /// What a value has to be multiplied by so that large is good.
    pub fn sign(self) -> f64 {
        match self {
            Goal::Minimize => -1.0,
            Goal::Maximize => 1.0,
        }
    }

    /// The better of two values.
    pub fn better(self, a: f64, b: f64) -> f64 {
        match self {
            Goal::Minimize => a.min(b),
            Goal::Maximize => a.max(b),
        }
    }

    /// The worse of two values.
    pub fn worse(self, a: f64, b: f64) -> f64 {
        match self {
            Goal::Minimize => a.max(b),
            Goal::Maximize => a.min(b),
        }
    }

    /// Whether the first value is better than the second.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        self.sign() * a > self.sign() * b
    }

    /// `minimize` or `maximize`.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Minimize => "minimize",
            Goal::Maximize => "maximize",
        }
    }
}
