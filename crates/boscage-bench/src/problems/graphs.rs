//! Dependency graphs of test problems.
//!
//! Paper: section "Experiments" (star, grid, ancestry) and its supplementary (the others).
//!
//! Notation: D is the number of vertices. A Prüfer sequence is a list of D − 2 vertices; each belongs to one labelled tree,
//! in which a vertex has one neighbour more than the sequence names it.
//!
//! Cost: O(D log D) for trees, O(D²) for Erdős–Rényi, O(D² log D) for the degrees of a power-law tree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use boscage::graph::{Edge, Graph};
use boscage::stream::Generator;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most vertices of a graph.
pub const MOST_VERTICES: usize = 10_000;

/// The most edges of a graph, so that a slip of the pen does not take all memory.
pub const MOST_EDGES: usize = 1_000_000;

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
    ///
    /// Degrees are Pareto numbers with density ∝ x^−exponent from 1 on, rounded to the nearest integer, independent but for
    /// the condition that their sum is 2(D − 1), as it must be in a tree. All trees with the drawn degrees are equally
    /// likely. At exponent 3 the mean of such a degree is 1.93, so that the condition changes little.
    PowerLawTree {
        /// Number of vertices.
        vertices: usize,
        /// Exponent of the power law, above 1 and at most 10.
        #[serde(default = "three")]
        exponent: f64,
    },
    /// A tree drawn uniformly from all labelled trees.
    RandomTree {
        /// Number of vertices.
        vertices: usize,
    },
    /// A family tree with this many members a generation; every member but the first has a random parent in the generation
    /// before. Vertices are numbered generation by generation.
    Ancestry {
        /// Members of each generation; the first must be 1.
        #[serde(default = "four_generations")]
        generations: Vec<usize>,
    },
    /// Edges from a file: two vertex numbers a line, from 0. Blank lines and what follows a `#` do not count.
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

/// The shape of the paper's Ancestry-132.
pub(super) fn four_generations() -> Vec<usize> {
    vec![1, 15, 43, 73]
}

impl GraphShape {
    /// The graph. `folder` is where relative paths begin.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidProblem`] if a number makes no sense or a line of an edge list is wrong, [`Error::File`] if an edge
    /// list cannot be read.
    pub fn build(&self, rng: &mut Generator, folder: &Path) -> Result<Graph> {
        let (vertices, edges) = match self {
            &Self::Star { vertices } => {
                (check_vertices(vertices)?, (1..vertices).map(|i| (0, i)).collect())
            }
            &Self::Path { vertices } => {
                (check_vertices(vertices)?, (1..vertices).map(|i| (i - 1, i)).collect())
            }
            &Self::Empty { vertices } => (check_vertices(vertices)?, Vec::new()),
            &Self::Grid { rows, columns } => grid(rows, columns.unwrap_or(rows))?,
            Self::Partition { sizes } => partition(sizes)?,
            &Self::ErdosRenyi { vertices, degree } => {
                (check_vertices(vertices)?, erdos_renyi(vertices, degree, rng)?)
            }
            &Self::PowerLawTree { vertices, exponent } => {
                (check_vertices(vertices)?, power_law_tree(vertices, exponent, rng)?)
            }
            &Self::RandomTree { vertices } => {
                check_vertices(vertices)?;
                let names =
                    (2..vertices).map(|_| rng.random_range(0..vertices)).collect::<Vec<_>>();
                (vertices, tree_of_pruefer(vertices, &names))
            }
            Self::Ancestry { generations } => ancestry(generations, rng)?,
            Self::EdgeList { file, vertices } => {
                return read_edge_list(&folder.join(file), *vertices);
            }
        };
        let edges =
            edges.into_iter().map(|(i, j)| Edge::new(i, j)).collect::<boscage::Result<Vec<_>>>()?;
        Ok(Graph::from_edges(vertices, edges)?)
    }
}

fn check_vertices(vertices: usize) -> Result<usize> {
    match vertices {
        0 => Err(Error::problem("a graph has 0 vertices; give it at least 1")),
        1..=MOST_VERTICES => Ok(vertices),
        _ => Err(Error::problem(format!(
            "a graph has {vertices} vertices; at most {MOST_VERTICES} are allowed"
        ))),
    }
}

fn check_edges(edges: f64) -> Result<()> {
    if edges > MOST_EDGES as f64 {
        return Err(Error::problem(format!(
            "a graph would have about {edges:.0} edges; at most {MOST_EDGES} are allowed: make it smaller or sparser"
        )));
    }
    Ok(())
}

type Pairs = Vec<(usize, usize)>;

fn grid(rows: usize, columns: usize) -> Result<(usize, Pairs)> {
    if rows == 0 || columns == 0 {
        return Err(Error::problem(format!(
            "a grid has {rows} rows and {columns} columns; give it at least 1 of each"
        )));
    }
    let vertices = check_vertices(rows.saturating_mul(columns))?;
    let right = (0..vertices).filter(|i| (i + 1) % columns != 0).map(|i| (i, i + 1));
    let down = (columns..vertices).map(|i| (i - columns, i));
    Ok((vertices, right.chain(down).collect()))
}

fn partition(sizes: &[usize]) -> Result<(usize, Pairs)> {
    if let Some(clique) = sizes.iter().position(|&size| size == 0) {
        return Err(Error::problem(format!(
            "clique {clique} of a partition has size 0; leave it out or give it at least 1 vertex"
        )));
    }
    let vertices =
        check_vertices(sizes.iter().fold(0, |sum: usize, &size| sum.saturating_add(size)))?;
    check_edges(sizes.iter().map(|&size| size as f64 * (size as f64 - 1.0) / 2.0).sum())?;
    let mut edges = Vec::new();
    let mut first = 0;
    for size in sizes {
        edges.extend((first..first + size).flat_map(|j| (first..j).map(move |i| (i, j))));
        first += size;
    }
    Ok((vertices, edges))
}

fn erdos_renyi(vertices: usize, degree: f64, rng: &mut Generator) -> Result<Pairs> {
    if !(0.0..=vertices as f64).contains(&degree) {
        return Err(Error::problem(format!(
            "degree {degree} of an Erdős–Rényi graph is not between 0 and its {vertices} vertices"
        )));
    }
    let probability = degree / vertices as f64;
    check_edges(probability * vertices as f64 * (vertices as f64 - 1.0) / 2.0)?;
    let pairs = (0..vertices).flat_map(|j| (0..j).map(move |i| (i, j)));
    Ok(pairs.filter(|_| rng.random::<f64>() < probability).collect())
}

/// The tree of a Prüfer sequence: for each name in turn, the smallest leaf that is left hangs on it; two vertices remain.
fn tree_of_pruefer(vertices: usize, names: &[usize]) -> Pairs {
    let mut degree = vec![1; vertices];
    for &i in names {
        degree[i] += 1;
    }
    let mut leaves: BinaryHeap<Reverse<usize>> =
        (0..vertices).filter(|&i| degree[i] == 1).map(Reverse).collect();
    let mut edges = Vec::with_capacity(vertices.saturating_sub(1));
    for &i in names {
        if let Some(Reverse(leaf)) = leaves.pop() {
            edges.push((leaf, i));
        }
        degree[i] -= 1;
        if degree[i] == 1 {
            leaves.push(Reverse(i));
        }
    }
    if let (Some(Reverse(i)), Some(Reverse(j))) = (leaves.pop(), leaves.pop()) {
        edges.push((i, j));
    }
    edges
}

fn power_law_tree(vertices: usize, exponent: f64, rng: &mut Generator) -> Result<Pairs> {
    if !(exponent > 1.0 && exponent <= 10.0) {
        return Err(Error::problem(format!(
            "exponent {exponent} of a power-law tree is not above 1 and at most 10"
        )));
    }
    if vertices <= 2 {
        return Ok(tree_of_pruefer(vertices, &[]));
    }
    // How often a Prüfer sequence names a vertex is its degree less 1.
    let total = vertices - 2;
    let at_least =
        |degree: usize| if degree <= 1 { 1.0 } else { (degree as f64 - 0.5).powf(1.0 - exponent) };
    let weights = (0..=total).map(|named| at_least(named + 1) - at_least(named + 2)).collect();
    let counts = ConditionedSum::new(weights, vertices).draw(vertices, total, rng);
    let mut names: Vec<usize> =
        counts.iter().enumerate().flat_map(|(i, &count)| std::iter::repeat_n(i, count)).collect();
    names.shuffle(rng);
    Ok(tree_of_pruefer(vertices, &names))
}

/// Independent numbers with given weights, conditioned on their sum. Drawn exactly, by halving: how much of the sum falls to
/// the first half of the numbers, then the same in each half.
struct ConditionedSum {
    /// For each count n that halving meets, the weight of n numbers having the sum s.
    sums: BTreeMap<usize, Vec<f64>>,
}

impl ConditionedSum {
    fn new(weights: Vec<f64>, count: usize) -> Self {
        let mut sums = BTreeMap::from([(1, weights)]);
        // The sizes of halves, of their halves, and so on: at most two on each level.
        let mut sizes = BTreeSet::from([count]);
        let mut open = vec![count];
        while let Some(n) = open.pop() {
            open.extend(
                [n / 2, n.div_ceil(2)].into_iter().filter(|&half| half > 1 && sizes.insert(half)),
            );
        }
        for n in sizes {
            if let (Some(a), Some(b)) = (sums.get(&(n / 2)), sums.get(&n.div_ceil(2))) {
                let both = (0..a.len()).map(|sum| splits(a, b, sum).sum()).collect();
                sums.insert(n, both);
            }
        }
        Self { sums }
    }

    fn draw(&self, count: usize, sum: usize, rng: &mut Generator) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        let mut open = vec![(count, sum)];
        while let Some((n, sum)) = open.pop() {
            let (Some(a), Some(b)) = (self.sums.get(&(n / 2)), self.sums.get(&n.div_ceil(2)))
            else {
                drawn.push(sum);
                continue;
            };
            let first = choose(&splits(a, b, sum).collect::<Vec<f64>>(), rng);
            open.extend([(n / 2, first), (n.div_ceil(2), sum - first)]);
        }
        drawn
    }
}

/// The weights of the ways to make a sum of two: 0 from the first and the rest from the second, 1 from the first, …
fn splits(a: &[f64], b: &[f64], sum: usize) -> impl Iterator<Item = f64> {
    a[..=sum].iter().zip(b[..=sum].iter().rev()).map(|(a, b)| a * b)
}

/// A position, with probability in proportion to its weight.
fn choose(weights: &[f64], rng: &mut Generator) -> usize {
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    for (position, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return position;
        }
    }
    // Only rounding leads here.
    weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0)
}

fn ancestry(generations: &[usize], rng: &mut Generator) -> Result<(usize, Pairs)> {
    if generations.first() != Some(&1) {
        return Err(Error::problem(format!(
            "the generations {generations:?} of an ancestry do not begin with 1, the root of the tree"
        )));
    }
    if let Some(generation) = generations.iter().position(|&size| size == 0) {
        return Err(Error::problem(format!(
            "generation {generation} of an ancestry has 0 members; leave it out or give it at least 1"
        )));
    }
    let vertices =
        check_vertices(generations.iter().fold(0, |sum: usize, &size| sum.saturating_add(size)))?;
    let mut edges = Vec::with_capacity(vertices - 1);
    let mut parents = 0..1;
    for size in &generations[1..] {
        let members = parents.end..parents.end + size;
        edges.extend(members.clone().map(|member| (rng.random_range(parents.clone()), member)));
        parents = members;
    }
    Ok((vertices, edges))
}

fn read_edge_list(path: &Path, vertices: Option<usize>) -> Result<Graph> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path, "reading"))?;
    let mut lines_of_edges: HashMap<Edge, usize> = HashMap::new();
    let mut highest = None;
    for (line, content) in text.lines().enumerate() {
        let line = line + 1;
        let bad =
            |reason: String| Error::problem(format!("{}, line {line}: {reason}", path.display()));
        let content = content.split_once('#').map_or(content, |(before, _)| before);
        let words: Vec<&str> = content.split_whitespace().collect();
        let (first, second) = match words[..] {
            [] => continue,
            [first, second] => (first, second),
            _ => {
                let found = match words.len() {
                    1 => "there is 1 word".to_string(),
                    count => format!("there are {count} words"),
                };
                return Err(bad(format!(
                    "{found}, but an edge is two vertex numbers, as in `0 1`"
                )));
            }
        };
        let number = |word: &str| match word.parse::<usize>() {
            Ok(vertex) if vertex < MOST_VERTICES => Ok(vertex),
            Ok(vertex) => Err(bad(format!(
                "vertex {vertex} is too large; at most {MOST_VERTICES} vertices are allowed"
            ))),
            Err(_) => Err(bad(format!(
                "{word:?} is not a vertex number; vertices are numbered 0, 1, 2, …"
            ))),
        };
        let (i, j) = (number(first)?, number(second)?);
        if i == j {
            return Err(bad(format!(
                "the edge joins vertex {i} to itself; give two different vertices"
            )));
        }
        if let Some(before) = lines_of_edges.insert(Edge::new(i, j)?, line) {
            return Err(bad(format!(
                "edge {i} {j} is already in line {before}; give every edge once"
            )));
        }
        highest = highest.max(Some(i.max(j)));
    }
    let needed = highest.map_or(0, |vertex| vertex + 1);
    let vertices = vertices.unwrap_or(needed);
    if vertices < needed {
        return Err(Error::problem(format!(
            "{}: there is a vertex {}, but only {vertices} vertices are asked for; vertices are numbered from 0",
            path.display(),
            needed - 1
        )));
    }
    if vertices == 0 {
        return Err(Error::problem(format!(
            "{}: there are no edges; add some, or give the number of vertices",
            path.display()
        )));
    }
    Ok(Graph::from_edges(check_vertices(vertices)?, lines_of_edges.into_keys())?)
}
