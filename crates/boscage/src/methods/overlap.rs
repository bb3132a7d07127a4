//! Overlap: GP-UCB with any dependency graph.
//!
//! Source: Rolland, Scarlett, Bogunovic and Cevher, AISTATS 2018 (see [`crate::graph_learning`]); the paper calls it Graph
//! Overlap.
//!
//! Assumes that the objective is a sum of functions of few variables each, which may share variables.
//!
//! Cost of an ask: Σ over maximal cliques G of R^|G| values of φ^G at each of L levels, and max-sum along the triangulated
//! graph, exponential in its largest clique.
//!
//! Settings: those of [`tree-paper`](crate::methods::tree_gp_ucb), with a general graph for the structure.
//!
//! Deviations: the original has no cap on the size of tables; ours refuses graphs beyond `max_table` and counts them
//! ([`AdditiveGpUcb::refused`](crate::additive_gp_ucb::AdditiveGpUcb::refused)); set it to none for the original. The original
//! samples components by their cliques on a grid; here zooming takes the place of the grid, as in the paper's comparison. The
//! paper's published code keeps an edge if the likelihood does not fall; here edges are drawn.

use crate::additive_gp_ucb::AdditiveGpUcbSettings;
use crate::graph_learning::GraphLearning;
use crate::structure::Structure;

impl AdditiveGpUcbSettings {
    /// Overlap.
    pub fn overlap() -> Self {
        Self { structure: Structure::Graph(GraphLearning::default()), ..Self::paper() }
    }
}
