//! Oracle: GP-UCB with the true structure and the true kernel parameters.
//!
//! Source: the paper's comparison. It shows how well the acquisition function does when there is nothing to learn.
//!
//! Assumes that the truth is given: a test problem drawn from an additive GP has it, a real one has not.
//!
//! Cost of an ask: that of message passing along the true graph.
//!
//! Settings: those of [`tree-paper`](crate::methods::tree_gp_ucb), with the structure, kernel and noise given. They are on the
//! scale of raw outcomes, so that `outputs` must be raw; what concerns learning has no effect, other than that `learning` says how
//! often the model that is shown gets the likelihood of all observations.
//!
//! Deviations: observations are noisy, as for every other method. The paper's published code shows its Oracle noise-free
//! values; an experiment can do so too, and then says so.

use crate::additive_gp::AdditivePrior;
use crate::additive_gp_ucb::AdditiveGpUcbSettings;
use crate::structure::Structure;

impl AdditiveGpUcbSettings {
    /// Oracle with this truth; without one it cannot be built.
    pub fn oracle(truth: Option<AdditivePrior>) -> Self {
        Self { structure: Structure::Given(truth.map(Box::new)), ..Self::paper() }
    }
}
