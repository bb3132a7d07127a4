//! No-Overlap: GP-UCB with disjoint groups of variables.
//!
//! Sources: Kandasamy et al. 2015 and Wang et al. 2017 (see [`crate::partition_learning`]); the paper calls it Graph
//! No-Overlap, with the largest group size in brackets.
//!
//! Assumes that the variables fall into groups that do not depend on each other.
//!
//! Cost of an ask: Σ over groups G of R^|G| values of φ^G at each of L levels.
//!
//! Settings: those of [`tree-paper`](crate::methods::tree_gp_ucb), with groups for the structure.
//!
//! Deviations: the acquisition function of a group is maximised by zooming, as in the paper's comparison, and not by a
//! continuous optimiser. Wang et al. stop after a number of sweeps, we after S likelihoods. The size limit is a limit in the
//! sampler: a full group cannot be joined. (In the paper's published code the Gumbel noise and the size term have no effect;
//! here they have.)

use crate::additive_gp_ucb::AdditiveGpUcbSettings;
use crate::partition_learning::PartitionLearning;
use crate::structure::Structure;

impl AdditiveGpUcbSettings {
    /// No-Overlap with groups of at most this many variables; none for no limit.
    pub fn no_overlap(max_group_size: Option<usize>) -> Self {
        let learning = PartitionLearning { max_group_size, ..PartitionLearning::default() };
        Self { structure: Structure::Partition(learning), ..Self::paper() }
    }
}
