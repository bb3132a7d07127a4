//! Dependency graphs of test problems.
use std::path::{Path, PathBuf};

use boscage::graph::Graph;
use boscage::stream::Generator;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The shape of a dependency graph. Random shapes are drawn with the problem's seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case", deny_unknown_fields)]
pub enum GraphShape {
    /// Vertex 0 joined to all others.
    Star {
        /// Number of vertices.
        vertices: usize,
    },
    /// Vertices in a row.
    Path {
        /// Number of vertices.
        vertices: usize,
    },
    /// No edges.
    Empty {
        /// Number of vertices.
        vertices: usize,
    },
    /// A lattice, numbered row by row.
    Grid {
        /// Number of rows.
        rows: usize,
        /// Number of columns; as many as rows if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<usize>,
    },
    /// Disjoint cliques of these sizes.
    Partition {
        /// Size of each clique.
        sizes: Vec<usize>,
    },
    /// Each pair is joined with probability `degree` / `vertices`.
    ErdosRenyi {
        /// Number of vertices.
        vertices: usize,
        /// Mean number of neighbours, nearly: the probability of an edge is this over the number of vertices.
        #[serde(default = "two")]
        degree: f64,
    },
    /// A random tree with degrees of a power law.
    PowerLawTree {
        /// Number of vertices.
        vertices: usize,
        /// Exponent of the power law.
        #[serde(default = "three")]
        exponent: f64,
    },
    /// A tree drawn uniformly from all labelled trees.
    RandomTree {
        /// Number of vertices.
        vertices: usize,
    },
    /// A family tree with this many members a generation; every member but the first has a random parent in the generation
    /// before.
    Ancestry {
        /// Members of each generation; the first must be 1.
        generations: Vec<usize>,
    },
    /// Edges from a file: two vertex numbers a line, from 0.
    EdgeList {
        /// The file.
        file: PathBuf,
        /// Number of vertices, if there are isolated ones after the last that has an edge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vertices: Option<usize>,
    },
}

fn two() -> f64 {
    2.0
}

fn three() -> f64 {
    3.0
}

impl GraphShape {
    /// The graph. `folder` is where relative paths begin.
    pub fn build(&self, _rng: &mut Generator, _folder: &Path) -> Result<Graph> {
        Err(Error::problem("to be written"))
    }
}
