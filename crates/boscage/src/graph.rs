//! Dependency graphs over the variables: forests, in which a cycle cannot be built, and general graphs.
//!
//! Paper: the additive structure 𝒢 of section "Additive Dependency Tree Structures" (a two-variable function per edge,
//! a one-variable function per disconnected vertex), the adjacency matrix Z of "Additive Components", the union-find of
//! "Adding Edges", and the F1 score of "Graph Learning Performance". General graphs serve the models with cycles that
//! the paper compares with.
//!
//! Notation: D is the dimension, the number of variables; i and j are variables, numbered from 0 (the paper numbers
//! from 1); G is a [`Component`]; E is the number of edges. A *part* is a maximal connected set of variables.
//!
//! Cost: asking a [`Forest`] whether an edge is present takes O(log E) and whether it would close a cycle O(log E);
//! changing it takes O(D), or O(D log D) for a removal. Min-fill elimination takes O(D log D) on a forest and at worst
//! O(D⁴ / 64) on a graph; listing the maximal cliques of a graph takes O(3^(D/3)) at worst, little on sparse graphs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::error::{Error, Result};

/// The largest dimension that a graph can be built with from edges or read with. It keeps a corrupt file from asking
/// for all the memory there is.
pub const LARGEST_DIMENSION: usize = 1 << 20;

fn invalid(reason: String) -> Error {
    Error::InvalidStructure { reason }
}

/// Equality, order and hash by what `key` returns, so that fields derived from the key cost nothing in comparisons.
macro_rules! compare_by_key {
    ($type:ty) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.key() == other.key()
            }
        }

        impl Eq for $type {}

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.key().cmp(&other.key())
            }
        }

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
    };
}

/// An unordered pair of different variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(usize, usize)", into = "(usize, usize)")]
pub struct Edge {
    low: usize,
    high: usize,
}

impl Edge {
    /// The edge between `i` and `j`, in either order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`] if `i` and `j` are the same variable.
    pub fn new(i: usize, j: usize) -> Result<Self> {
        if i == j {
            return Err(invalid(format!(
                "edge {i}–{j} joins a variable to itself; an edge needs two different variables"
            )));
        }
        Ok(Self { low: i.min(j), high: i.max(j) })
    }

    /// The variable with the smaller number.
    pub fn low(self) -> usize {
        self.low
    }

    /// The variable with the larger number.
    pub fn high(self) -> usize {
        self.high
    }

    /// The end that is not `i`, or `None` if `i` is not an end of this edge.
    pub fn other(self, i: usize) -> Option<usize> {
        if i == self.low {
            Some(self.high)
        } else if i == self.high {
            Some(self.low)
        } else {
            None
        }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}–{}", self.low, self.high)
    }
}

impl TryFrom<(usize, usize)> for Edge {
    type Error = Error;

    fn try_from((i, j): (usize, usize)) -> Result<Self> {
        Self::new(i, j)
    }
}

impl From<Edge> for (usize, usize) {
    fn from(edge: Edge) -> Self {
        (edge.low, edge.high)
    }
}

/// Singles and pairs are nearly all the components there are; they live without an allocation.
#[derive(Debug, Clone)]
enum Variables {
    One([usize; 1]),
    Two([usize; 2]),
    Many(Box<[usize]>),
}

/// A nonempty set of variables G that one function of the additive model depends on.
///
/// Components are ordered as their sorted lists of variables are: {0} < {0, 1} < {0, 1, 5} < {0, 2} < {1}.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>", into = "Vec<usize>")]
pub struct Component(Variables);

compare_by_key!(Component);

impl Component {
    /// The component of these variables, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`] if there are no variables or one is listed twice.
    pub fn new(mut variables: Vec<usize>) -> Result<Self> {
        variables.sort_unstable();
        if variables.is_empty() {
            return Err(invalid("a component has no variables; give it at least one".to_owned()));
        }
        if let Some(twice) = variables.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(invalid(format!(
                "a component lists variable {} twice; its variables must differ",
                twice[0]
            )));
        }
        Ok(Self::from_sorted(&variables))
    }

    /// `variables` must be sorted, distinct and nonempty.
    fn from_sorted(variables: &[usize]) -> Self {
        Self(match *variables {
            [i] => Variables::One([i]),
            [i, j] => Variables::Two([i, j]),
            _ => Variables::Many(variables.into()),
        })
    }

    /// The component of the one variable `i`.
    pub fn single(i: usize) -> Self {
        Self(Variables::One([i]))
    }

    /// The component of the two ends of an edge.
    pub fn pair(edge: Edge) -> Self {
        Self(Variables::Two([edge.low, edge.high]))
    }

    /// The variables, smallest first.
    pub fn variables(&self) -> &[usize] {
        match &self.0 {
            Variables::One(variables) => variables,
            Variables::Two(variables) => variables,
            Variables::Many(variables) => variables,
        }
    }

    /// The number of variables, at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a component is never empty, so the question cannot arise"
    )]
    pub fn len(&self) -> usize {
        self.variables().len()
    }

    /// Whether `i` is one of the variables.
    pub fn contains(&self, i: usize) -> bool {
        self.variables().binary_search(&i).is_ok()
    }

    fn key(&self) -> &[usize] {
        self.variables()
    }
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.variables()).finish()
    }
}

impl TryFrom<Vec<usize>> for Component {
    type Error = Error;

    fn try_from(variables: Vec<usize>) -> Result<Self> {
        Self::new(variables)
    }
}

impl From<Component> for Vec<usize> {
    fn from(component: Component) -> Self {
        component.variables().to_vec()
    }
}

/// Disjoint sets of `0..n` that can be merged but not split, by weighted union with path compression.
///
/// Each operation takes amortized O(α(n)), nearly constant. A number that is not below `n` panics, as an index out of
/// bounds does.
#[derive(Debug, Clone)]
pub struct UnionFind {
    parent: Vec<usize>,
    /// The number of members, up to date at roots only.
    weight: Vec<usize>,
    sets: usize,
}

impl UnionFind {
    /// `n` sets of one member each.
    pub fn new(n: usize) -> Self {
        Self { parent: (0..n).collect(), weight: vec![1; n], sets: n }
    }

    /// The member that stands for the set of `i`. It may change when sets are merged.
    pub fn find(&mut self, i: usize) -> usize {
        let mut root = i;
        while self.parent[root] != root {
            root = self.parent[root];
        }
        let mut member = i;
        while member != root {
            member = std::mem::replace(&mut self.parent[member], root);
        }
        root
    }

    /// Merges the sets of `i` and `j`; `false` if they were one set already.
    pub fn union(&mut self, i: usize, j: usize) -> bool {
        let (i, j) = (self.find(i), self.find(j));
        if i == j {
            return false;
        }
        let (heavy, light) = if self.weight[i] >= self.weight[j] { (i, j) } else { (j, i) };
        self.parent[light] = heavy;
        self.weight[heavy] += self.weight[light];
        self.sets -= 1;
        true
    }

    /// Whether `i` and `j` are in the same set.
    pub fn together(&mut self, i: usize, j: usize) -> bool {
        self.find(i) == self.find(j)
    }

    /// The number of sets.
    pub fn sets(&self) -> usize {
        self.sets
    }
}

/// An undirected graph over `dimension` variables, without loops or parallel edges.
///
/// Graphs are compared by dimension, then by their sorted lists of edges. Serialised as
/// `{"dimension": 3, "edges": [[0, 1], [1, 2]]}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "UncheckedGraph")]
pub struct Graph {
    dimension: usize,
    /// Sorted.
    edges: Vec<Edge>,
    /// Per variable, sorted. Says the same as `edges`.
    #[serde(skip_serializing)]
    neighbors: Vec<Vec<usize>>,
}

compare_by_key!(Graph);

/// A graph as read, before it is known to be one.
#[derive(Deserialize)]
struct UncheckedGraph {
    dimension: usize,
    edges: Vec<Edge>,
}

impl TryFrom<UncheckedGraph> for Graph {
    type Error = Error;

    fn try_from(unchecked: UncheckedGraph) -> Result<Self> {
        Self::from_edges(unchecked.dimension, unchecked.edges)
    }
}

impl From<&Forest> for Graph {
    fn from(forest: &Forest) -> Self {
        forest.graph.clone()
    }
}

impl From<Forest> for Graph {
    fn from(forest: Forest) -> Self {
        forest.graph
    }
}

impl Graph {
    /// The graph without edges.
    pub fn empty(dimension: usize) -> Self {
        Self { dimension, edges: Vec::new(), neighbors: vec![Vec::new(); dimension] }
    }

    /// The graph with these edges, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if one is listed twice or joins a variable that does not exist;
    /// also if the dimension is above [`LARGEST_DIMENSION`].
    pub fn from_edges(dimension: usize, edges: impl IntoIterator<Item = Edge>) -> Result<Self> {
        if dimension > LARGEST_DIMENSION {
            return Err(invalid(format!(
                "a graph over {dimension} variables is too large; the limit is {LARGEST_DIMENSION}"
            )));
        }
        let mut graph = Self::empty(dimension);
        graph.edges = edges.into_iter().collect();
        graph.edges.sort_unstable();
        for edge in &graph.edges {
            check_range(*edge, dimension)?;
        }
        if let Some(twice) = graph.edges.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(already_present(twice[0]));
        }
        // The edges are sorted, so every list below receives first its lower members, then its higher ones, each in
        // ascending order.
        for edge in &graph.edges {
            graph.neighbors[edge.low].push(edge.high);
            graph.neighbors[edge.high].push(edge.low);
        }
        Ok(graph)
    }

    /// The graph in which two variables are adjacent if some component contains both: every component is a clique.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the component, if it contains a variable that does not exist.
    pub fn from_components(dimension: usize, components: &[Component]) -> Result<Self> {
        let mut edges = Vec::new();
        for component in components {
            let variables = component.variables();
            if let Some(outside) = variables.iter().find(|&&i| i >= dimension) {
                return Err(invalid(format!(
                    "component {component} contains variable {outside}, but there are {dimension} variables, numbered \
                     from 0"
                )));
            }
            for (position, &low) in variables.iter().enumerate() {
                edges.extend(variables[position + 1..].iter().map(|&high| Edge { low, high }));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        Self::from_edges(dimension, edges)
    }

    /// The graph with adjacency matrix Z.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`] if the matrix is not square and symmetric with a false diagonal.
    pub fn from_adjacency(adjacency: &[Vec<bool>]) -> Result<Self> {
        let dimension = adjacency.len();
        for (i, row) in adjacency.iter().enumerate() {
            if row.len() != dimension {
                return Err(invalid(format!(
                    "row {i} of the adjacency matrix has {} entries, but there are {dimension} rows; the matrix must \
                     be square",
                    row.len()
                )));
            }
        }
        let mut edges = Vec::new();
        for (i, row) in adjacency.iter().enumerate() {
            if row[i] {
                return Err(invalid(format!(
                    "entry ({i}, {i}) of the adjacency matrix is set; no variable is adjacent to itself"
                )));
            }
            for j in i + 1..dimension {
                if row[j] != adjacency[j][i] {
                    return Err(invalid(format!(
                        "entries ({i}, {j}) and ({j}, {i}) of the adjacency matrix differ; it must be symmetric"
                    )));
                }
                if row[j] {
                    edges.push(Edge { low: i, high: j });
                }
            }
        }
        Self::from_edges(dimension, edges)
    }

    /// The adjacency matrix Z.
    pub fn to_adjacency(&self) -> Vec<Vec<bool>> {
        let mut adjacency = vec![vec![false; self.dimension]; self.dimension];
        for edge in &self.edges {
            adjacency[edge.low][edge.high] = true;
            adjacency[edge.high][edge.low] = true;
        }
        adjacency
    }

    /// Adds an edge.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if it is present already or joins a variable that does not exist.
    /// The graph is then unchanged.
    pub fn add(&mut self, edge: Edge) -> Result<()> {
        check_range(edge, self.dimension)?;
        let Err(place) = self.edges.binary_search(&edge) else {
            return Err(already_present(edge));
        };
        self.edges.insert(place, edge);
        insert_sorted(&mut self.neighbors[edge.low], edge.high);
        insert_sorted(&mut self.neighbors[edge.high], edge.low);
        Ok(())
    }

    /// Removes an edge.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if it is not present. The graph is then unchanged.
    pub fn remove(&mut self, edge: Edge) -> Result<()> {
        let Ok(place) = self.edges.binary_search(&edge) else {
            return Err(not_present(edge));
        };
        self.edges.remove(place);
        remove_sorted(&mut self.neighbors[edge.low], edge.high);
        remove_sorted(&mut self.neighbors[edge.high], edge.low);
        Ok(())
    }

    /// Whether the edge is present.
    pub fn contains(&self, edge: Edge) -> bool {
        self.edges.binary_search(&edge).is_ok()
    }

    /// The number of variables D.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The edges, sorted.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// The variables adjacent to `i`, smallest first.
    ///
    /// # Panics
    ///
    /// If `i` is not below the dimension, as an index out of bounds does.
    pub fn neighbors(&self, i: usize) -> &[usize] {
        &self.neighbors[i]
    }

    /// Whether the graph has no cycle.
    pub fn is_forest(&self) -> bool {
        self.cycle_edge().is_none()
    }

    /// The first edge, in sorted order, that closes a cycle with edges before it.
    fn cycle_edge(&self) -> Option<Edge> {
        let mut sets = UnionFind::new(self.dimension);
        self.edges.iter().copied().find(|edge| !sets.union(edge.low, edge.high))
    }

    /// The maximal cliques, sorted: the additive structure that belongs to a general graph. An isolated variable is a
    /// clique of one.
    ///
    /// Bron–Kerbosch with pivoting.
    pub fn maximal_cliques(&self) -> Vec<Component> {
        let mut found = Vec::new();
        if self.dimension > 0 {
            let candidates = (0..self.dimension).collect();
            self.extend_clique(&mut Vec::new(), candidates, Vec::new(), &mut found);
        }
        found.sort_unstable();
        found
    }

    /// Appends to `found` every maximal clique that consists of `clique` and some of `candidates`, and none of
    /// `excluded`. Candidates and excluded variables are sorted and adjacent to all of `clique`.
    fn extend_clique(
        &self,
        clique: &mut Vec<usize>,
        mut candidates: Vec<usize>,
        mut excluded: Vec<usize>,
        found: &mut Vec<Component>,
    ) {
        // A maximal clique contains the pivot or a variable that is not adjacent to it: the pivot's neighbours need not
        // be tried, and the most are saved by the pivot with the most neighbours among the candidates.
        let pivot = candidates.iter().chain(&excluded).copied().max_by_key(|&i| {
            let saved = self.neighbors[i].iter().filter(|j| candidates.binary_search(j).is_ok());
            (saved.count(), Reverse(i))
        });
        let Some(pivot) = pivot else {
            let mut variables = clique.clone();
            variables.sort_unstable();
            found.push(Component::from_sorted(&variables));
            return;
        };
        let adjacent_among = |i: usize, among: &[usize]| -> Vec<usize> {
            self.neighbors[i].iter().copied().filter(|j| among.binary_search(j).is_ok()).collect()
        };
        let tried: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|i| self.neighbors[pivot].binary_search(i).is_err())
            .collect();
        for i in tried {
            clique.push(i);
            self.extend_clique(
                clique,
                adjacent_among(i, &candidates),
                adjacent_among(i, &excluded),
                found,
            );
            clique.pop();
            remove_sorted(&mut candidates, i);
            insert_sorted(&mut excluded, i);
        }
    }

    /// An order in which to eliminate the variables one by one, by the min-fill rule: next is the variable whose
    /// elimination joins the fewest pairs of its neighbours anew, among those one with the fewest neighbours, among
    /// those the one with the smallest number.
    ///
    /// On a forest this takes leaves first and never joins anything.
    pub fn elimination_order(&self) -> EliminationOrder {
        let mut order = Vec::with_capacity(self.dimension);
        let mut induced_width = 0;
        let mut degree: Vec<usize> = self.neighbors.iter().map(Vec::len).collect();
        let mut eliminated = vec![false; self.dimension];

        // A variable with at most one neighbour joins nothing, and no variable with more neighbours comes before it, so
        // min-fill begins by peeling these off. That is all there is to do on a forest, and it shrinks other graphs.
        let mut peel: BinaryHeap<Reverse<(usize, usize)>> = (0..self.dimension)
            .filter(|&i| degree[i] <= 1)
            .map(|i| Reverse((degree[i], i)))
            .collect();
        while let Some(Reverse((width, i))) = peel.pop() {
            // A leaf that lost its last neighbour was queued again, ahead of its old entry.
            if std::mem::replace(&mut eliminated[i], true) {
                continue;
            }
            order.push(i);
            induced_width = induced_width.max(width);
            for &j in self.neighbors[i].iter().filter(|&&j| !eliminated[j]) {
                degree[j] -= 1;
                if degree[j] <= 1 {
                    peel.push(Reverse((degree[j], j)));
                }
            }
        }

        let core: Vec<usize> = (0..self.dimension).filter(|&i| !eliminated[i]).collect();
        induced_width = induced_width.max(self.eliminate_core(&core, &mut order));
        EliminationOrder { order, induced_width }
    }

    /// Appends the min-fill order of the subgraph on the variables of `core`, which is sorted, and returns its width.
    fn eliminate_core(&self, core: &[usize], order: &mut Vec<usize>) -> usize {
        let size = core.len();
        // From here on variables are positions in the core, which keeps their order.
        let mut adjacent = vec![BitSet::new(size); size];
        for (position, &i) in core.iter().enumerate() {
            for j in &self.neighbors[i] {
                if let Ok(neighbor) = core.binary_search(j) {
                    adjacent[position].insert(neighbor);
                }
            }
        }
        let mut degree: Vec<usize> = adjacent.iter().map(BitSet::count).collect();
        let mut fill: Vec<usize> = (0..size).map(|i| fill_of(i, &adjacent)).collect();
        let mut remaining: Vec<usize> = (0..size).collect();
        let mut width = 0;
        while let Some(place) = (0..remaining.len()).min_by_key(|&place| {
            let i = remaining[place];
            (fill[i], degree[i], i)
        }) {
            let i = remaining.swap_remove(place);
            order.push(core[i]);
            width = width.max(degree[i]);
            let clique = std::mem::replace(&mut adjacent[i], BitSet::new(0));
            if fill[i] == 0 {
                // Nothing is joined: only the neighbours change, and each only loses the pairs it had with `i`.
                for j in clique.iter() {
                    fill[j] -= degree[j] - 1 - adjacent[j].count_common(&clique);
                    adjacent[j].remove(i);
                    degree[j] -= 1;
                }
                continue;
            }
            // A new edge changes the fill of every common neighbour of its ends, so of neighbours of neighbours too.
            let mut changed = clique.clone();
            for j in clique.iter() {
                changed.insert_all(&adjacent[j]);
            }
            changed.remove(i);
            for j in clique.iter() {
                adjacent[j].insert_all(&clique);
                adjacent[j].remove(j);
                adjacent[j].remove(i);
                degree[j] = adjacent[j].count();
            }
            for j in changed.iter() {
                fill[j] = fill_of(j, &adjacent);
            }
        }
        width
    }

    /// The graph in the DOT language, for viewing. A variable without a name is shown by its number.
    pub fn to_dot(&self, names: &[String]) -> String {
        let mut dot = String::from("graph dependencies {\n");
        for i in 0..self.dimension {
            let name = names.get(i).cloned().unwrap_or_else(|| i.to_string());
            let label = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            dot.push_str(&format!("  {i} [label=\"{label}\"];\n"));
        }
        for edge in &self.edges {
            dot.push_str(&format!("  {} -- {};\n", edge.low, edge.high));
        }
        dot.push_str("}\n");
        dot
    }

    fn key(&self) -> (usize, &[Edge]) {
        (self.dimension, &self.edges)
    }
}

fn check_range(edge: Edge, dimension: usize) -> Result<()> {
    if edge.high < dimension {
        return Ok(());
    }
    Err(invalid(format!(
        "edge {edge} joins a variable that does not exist; there are {dimension} variables, numbered from 0"
    )))
}

fn already_present(edge: Edge) -> Error {
    invalid(format!("edge {edge} is there already; an edge can be there only once"))
}

fn not_present(edge: Edge) -> Error {
    invalid(format!(
        "edge {edge} is not there; only an edge that is there can be removed or split at"
    ))
}

/// Does nothing if the value is there already.
fn insert_sorted(sorted: &mut Vec<usize>, value: usize) {
    if let Err(place) = sorted.binary_search(&value) {
        sorted.insert(place, value);
    }
}

/// Does nothing if the value is not there.
fn remove_sorted(sorted: &mut Vec<usize>, value: usize) {
    if let Ok(place) = sorted.binary_search(&value) {
        sorted.remove(place);
    }
}

/// The number of pairs of neighbours of `i` that are not adjacent.
fn fill_of(i: usize, adjacent: &[BitSet]) -> usize {
    let own = &adjacent[i];
    let degree = own.count();
    // Counts ordered pairs, and every neighbour paired with itself, which is never adjacent to itself.
    let ordered: usize = own.iter().map(|j| degree - own.count_common(&adjacent[j])).sum();
    (ordered - degree) / 2
}

/// A set of small numbers, for the dense graphs that elimination makes.
#[derive(Debug, Clone)]
struct BitSet(Vec<u64>);

impl BitSet {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    fn insert_all(&mut self, other: &Self) {
        for (word, added) in self.0.iter_mut().zip(&other.0) {
            *word |= added;
        }
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn count_common(&self, other: &Self) -> usize {
        let words = self.0.iter().zip(&other.0);
        words.map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(place, &word)| {
            // Clearing the lowest set bit gives the rest of the members.
            let rests = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
            rests
                .take_while(|&rest| rest != 0)
                .map(move |rest| place * 64 + rest.trailing_zeros() as usize)
        })
    }
}

/// An order for eliminating variables one by one, each time joining all remaining neighbours of the eliminated one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EliminationOrder {
    /// Every variable once, first eliminated first.
    pub order: Vec<usize>,
    /// The largest number of neighbours that a variable has when it is eliminated. Message passing costs the number of
    /// values per variable to the power of this plus one.
    pub induced_width: usize,
}

/// A graph without cycles over `dimension` variables: the dependency structure of the paper.
///
/// There is no way to build one with a cycle, reading from a file included. Forests are compared by dimension, then by
/// their sorted lists of edges, and serialised as graphs are.
///
/// ```
/// use boscage::graph::{Edge, Forest};
///
/// let mut forest = Forest::empty(4);
/// forest.add(Edge::new(0, 1)?)?;
/// forest.add(Edge::new(1, 2)?)?;
/// assert!(forest.closes_cycle(Edge::new(0, 2)?));
/// assert!(forest.add(Edge::new(0, 2)?).is_err());
/// // Two functions of two variables and, of the isolated variable, one of one.
/// let sizes: Vec<usize> = forest.components().iter().map(|component| component.len()).collect();
/// assert_eq!(sizes, [2, 2, 1]);
/// # Ok::<(), boscage::error::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Graph")]
pub struct Forest {
    graph: Graph,
    /// Per variable, the smallest variable of its part. Kept up to date so that a cycle is recognised at once:
    /// structure learning asks for nearly every pair but seldom changes anything.
    parts: Vec<usize>,
}

compare_by_key!(Forest);

impl Serialize for Forest {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.graph.serialize(serializer)
    }
}

impl TryFrom<Graph> for Forest {
    type Error = Error;

    fn try_from(graph: Graph) -> Result<Self> {
        if let Some(edge) = graph.cycle_edge() {
            return Err(closing_cycle(edge));
        }
        let mut forest = Self { parts: (0..graph.dimension).collect(), graph };
        for i in 0..forest.dimension() {
            // The smallest variable of a part comes first, and then finds everything still labelled with itself.
            if forest.parts[i] == i {
                for j in forest.reachable(i, None) {
                    forest.parts[j] = i;
                }
            }
        }
        Ok(forest)
    }
}

impl Forest {
    /// The forest without edges, where every variable is isolated.
    pub fn empty(dimension: usize) -> Self {
        Self { graph: Graph::empty(dimension), parts: (0..dimension).collect() }
    }

    /// The forest with these edges, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if one is listed twice, closes a cycle with others, or joins a
    /// variable that does not exist; also if the dimension is above [`LARGEST_DIMENSION`].
    pub fn from_edges(dimension: usize, edges: impl IntoIterator<Item = Edge>) -> Result<Self> {
        Graph::from_edges(dimension, edges)?.try_into()
    }

    /// The forest with adjacency matrix Z.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`] if the matrix is not square and symmetric with a false diagonal, or if it has a
    /// cycle.
    pub fn from_adjacency(adjacency: &[Vec<bool>]) -> Result<Self> {
        Graph::from_adjacency(adjacency)?.try_into()
    }

    /// The adjacency matrix Z.
    pub fn to_adjacency(&self) -> Vec<Vec<bool>> {
        self.graph.to_adjacency()
    }

    /// Adds an edge.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if it is present already, would close a cycle, or joins a variable
    /// that does not exist. The forest is then unchanged.
    pub fn add(&mut self, edge: Edge) -> Result<()> {
        if self.closes_cycle(edge) {
            return Err(closing_cycle(edge));
        }
        self.graph.add(edge)?;
        let (one, other) = (self.parts[edge.low], self.parts[edge.high]);
        let (kept, dropped) = (one.min(other), one.max(other));
        for part in self.parts.iter_mut().filter(|part| **part == dropped) {
            *part = kept;
        }
        Ok(())
    }

    /// Removes an edge.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if it is not present. The forest is then unchanged.
    pub fn remove(&mut self, edge: Edge) -> Result<()> {
        let (low_side, high_side) = self.split(edge)?;
        self.graph.remove(edge)?;
        for side in [low_side, high_side] {
            for &i in &side {
                self.parts[i] = side[0];
            }
        }
        Ok(())
    }

    /// Whether the edge is present.
    pub fn contains(&self, edge: Edge) -> bool {
        self.graph.contains(edge)
    }

    /// Whether adding this edge would close a cycle: its ends are in one part, and it is not present itself. An edge
    /// that joins a variable that does not exist closes none.
    pub fn closes_cycle(&self, edge: Edge) -> bool {
        edge.high < self.dimension()
            && self.parts[edge.low] == self.parts[edge.high]
            && !self.contains(edge)
    }

    /// The number of variables D.
    pub fn dimension(&self) -> usize {
        self.graph.dimension
    }

    /// The edges, sorted.
    pub fn edges(&self) -> &[Edge] {
        self.graph.edges()
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.graph.edge_count()
    }

    /// The variables adjacent to `i`, smallest first.
    ///
    /// # Panics
    ///
    /// If `i` is not below the dimension, as an index out of bounds does.
    pub fn neighbors(&self, i: usize) -> &[usize] {
        self.graph.neighbors(i)
    }

    /// Whether no edge ends at `i`.
    ///
    /// # Panics
    ///
    /// If `i` is not below the dimension, as an index out of bounds does.
    pub fn is_isolated(&self, i: usize) -> bool {
        self.neighbors(i).is_empty()
    }

    /// Whether all variables are connected, by D − 1 edges.
    pub fn is_tree(&self) -> bool {
        self.edge_count() + 1 == self.dimension()
    }

    /// The additive structure 𝒢, sorted: a pair for every edge and a single for every isolated variable.
    pub fn components(&self) -> Vec<Component> {
        let mut components = Vec::with_capacity(self.dimension());
        for low in 0..self.dimension() {
            if self.is_isolated(low) {
                components.push(Component::single(low));
            }
            let above = self.neighbors(low).iter().filter(|&&high| high > low);
            components.extend(above.map(|&high| Component::pair(Edge { low, high })));
        }
        components
    }

    /// For every variable the label of its part: the smallest variable in it.
    pub fn parts(&self) -> Vec<usize> {
        self.parts.clone()
    }

    /// The two sets of variables, sorted, into which removing this edge would separate its part: first the one with
    /// [`Edge::low`], then the one with [`Edge::high`]. Other parts are not included.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStructure`], naming the edge, if it is not present.
    pub fn split(&self, edge: Edge) -> Result<(Vec<usize>, Vec<usize>)> {
        if !self.contains(edge) {
            return Err(not_present(edge));
        }
        let mut low_side = self.reachable(edge.low, Some(edge.high));
        let mut high_side = self.reachable(edge.high, Some(edge.low));
        low_side.sort_unstable();
        high_side.sort_unstable();
        Ok((low_side, high_side))
    }

    /// The forest as a general graph.
    pub fn as_graph(&self) -> &Graph {
        &self.graph
    }

    /// The forest in the DOT language, for viewing. A variable without a name is shown by its number.
    pub fn to_dot(&self, names: &[String]) -> String {
        self.graph.to_dot(names)
    }

    /// The variables that can be reached from `start` without a first step to its neighbour `avoided`. Without cycles
    /// there is no other way back, so not turning round is enough to visit each once.
    fn reachable(&self, start: usize, avoided: Option<usize>) -> Vec<usize> {
        let mut reached = Vec::new();
        let mut pending = vec![(start, avoided)];
        while let Some((i, before)) = pending.pop() {
            reached.push(i);
            let onward = self.graph.neighbors[i].iter().filter(|&&j| Some(j) != before);
            pending.extend(onward.map(|&j| (j, Some(i))));
        }
        reached
    }

    fn key(&self) -> (usize, &[Edge]) {
        self.graph.key()
    }
}

fn closing_cycle(edge: Edge) -> Error {
    invalid(format!(
        "edge {edge} closes a cycle; in a forest at most one path can join two variables"
    ))
}

/// How well learned edges agree with the true ones. All three numbers are between 0 and 1, and 1 is best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EdgeScore {
    /// The share of learned edges that are true.
    pub precision: f64,
    /// The share of true edges that were learned.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
}

/// Compares learned edges with the true ones. An edge listed twice counts once.
///
/// Where the paper's formulas divide by zero: if neither list has edges, all three numbers are 1; if only one of them
/// has, all three are 0.
pub fn edge_score(learned: &[Edge], truth: &[Edge]) -> EdgeScore {
    let distinct = |edges: &[Edge]| {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        edges.dedup();
        edges
    };
    let (learned, truth) = (distinct(learned), distinct(truth));
    let common = learned.iter().filter(|edge| truth.binary_search(edge).is_ok()).count();
    let share = |part: usize, whole: usize| {
        if learned.is_empty() && truth.is_empty() { 1.0 } else { part as f64 / whole.max(1) as f64 }
    };
    EdgeScore {
        precision: share(common, learned.len()),
        recall: share(common, truth.len()),
        // The harmonic mean, with the fractions cleared so that it is defined when both are 0.
        f1: share(2 * common, learned.len() + truth.len()),
    }
}

/// All forests on few variables, for tests that compare with exhaustive search.
#[cfg(test)]
pub(crate) mod enumeration {
    use super::{Edge, Forest};

    /// All pairs of `dimension` variables, sorted.
    pub(crate) fn all_pairs(dimension: usize) -> Vec<Edge> {
        (0..dimension)
            .flat_map(|i| (i + 1..dimension).map(move |j| Edge::new(i, j).unwrap()))
            .collect()
    }

    /// The pairs whose bits are set in `mask`.
    pub(crate) fn chosen_pairs(dimension: usize, mask: u32) -> Vec<Edge> {
        let pairs = all_pairs(dimension).into_iter().enumerate();
        pairs.filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, edge)| edge).collect()
    }

    /// All labelled forests on `dimension` variables, at most 5, sorted.
    pub(crate) fn enumerate_forests(dimension: usize) -> Vec<Forest> {
        assert!(dimension <= 5, "too many forests on {dimension} variables");
        let mut forests: Vec<Forest> = (0..1u32 << all_pairs(dimension).len())
            .filter_map(|mask| Forest::from_edges(dimension, chosen_pairs(dimension, mask)).ok())
            .collect();
        forests.sort();
        forests
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{Hash, Hasher};

    use petgraph::graph::UnGraph;
    use proptest::prelude::*;

    use super::enumeration::{all_pairs, chosen_pairs, enumerate_forests};
    use super::*;

    fn edge(i: usize, j: usize) -> Edge {
        Edge::new(i, j).unwrap()
    }

    fn edges(pairs: &[(usize, usize)]) -> Vec<Edge> {
        pairs.iter().map(|&(i, j)| edge(i, j)).collect()
    }

    fn forest(dimension: usize, pairs: &[(usize, usize)]) -> Forest {
        Forest::from_edges(dimension, edges(pairs)).unwrap()
    }

    fn graph(dimension: usize, pairs: &[(usize, usize)]) -> Graph {
        Graph::from_edges(dimension, edges(pairs)).unwrap()
    }

    fn component(variables: &[usize]) -> Component {
        Component::new(variables.to_vec()).unwrap()
    }

    /// The message of a refusal.
    fn refusal<T: fmt::Debug>(result: Result<T>) -> String {
        match result.unwrap_err() {
            Error::InvalidStructure { reason } => reason,
            other => panic!("refused with another error: {other}"),
        }
    }

    /// The paper's figure 1, numbered from 0.
    fn figure() -> Forest {
        forest(6, &[(0, 5), (0, 4), (0, 3), (3, 2)])
    }

    fn cycle(dimension: usize) -> Graph {
        let closed = (0..dimension).map(|i| edge(i, (i + 1) % dimension));
        Graph::from_edges(dimension, closed).unwrap()
    }

    fn complete(dimension: usize) -> Graph {
        Graph::from_edges(dimension, all_pairs(dimension)).unwrap()
    }

    fn grid(rows: usize, columns: usize) -> Graph {
        let mut graph = Graph::empty(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let here = row * columns + column;
                if column + 1 < columns {
                    graph.add(edge(here, here + 1)).unwrap();
                }
                if row + 1 < rows {
                    graph.add(edge(here, here + columns)).unwrap();
                }
            }
        }
        graph
    }

    /// A scrambled tree: variable k hangs on an earlier one, all numbers multiplied by a unit.
    fn large_tree(dimension: usize) -> Forest {
        let scrambled = |k: usize| k * 377 % dimension;
        let joined =
            (1..dimension).map(|k| edge(scrambled(k), scrambled((k * k + 7 * k) % k.min(97))));
        Forest::from_edges(dimension, joined).unwrap()
    }

    fn petgraph_of(dimension: usize, edges: impl IntoIterator<Item = Edge>) -> UnGraph<(), ()> {
        let mut graph = UnGraph::default();
        let nodes: Vec<_> = (0..dimension).map(|_| graph.add_node(())).collect();
        for edge in edges {
            graph.add_edge(nodes[edge.low()], nodes[edge.high()], ());
        }
        graph
    }

    /// Everything a forest says about itself, derived anew from the set of its edges.
    fn check_forest(forest: &Forest, dimension: usize, model: &BTreeSet<Edge>) {
        let listed: Vec<Edge> = model.iter().copied().collect();
        assert_eq!(forest.dimension(), dimension);
        assert_eq!(forest.edges(), listed);
        assert_eq!(forest.edge_count(), listed.len());
        assert!(!petgraph::algo::is_cyclic_undirected(&petgraph_of(
            dimension,
            listed.iter().copied()
        )));
        assert_eq!(*forest, Forest::from_edges(dimension, listed).unwrap());

        let mut sets = petgraph::unionfind::UnionFind::<usize>::new(dimension);
        for edge in model {
            sets.union(edge.low(), edge.high());
        }
        let parts: Vec<usize> =
            (0..dimension).map(|i| (0..dimension).find(|&j| sets.equiv(i, j)).unwrap()).collect();
        assert_eq!(forest.parts(), parts);
        assert_eq!(forest.is_tree(), parts.iter().all(|&part| part == 0), "{model:?}");
        for pair in all_pairs(dimension) {
            assert_eq!(forest.contains(pair), model.contains(&pair));
            assert_eq!(
                forest.closes_cycle(pair),
                sets.equiv(pair.low(), pair.high()) && !model.contains(&pair)
            );
        }
        let mut structure: Vec<Component> = model.iter().copied().map(Component::pair).collect();
        for i in 0..dimension {
            let adjacent: Vec<usize> =
                (0..dimension).filter(|&j| j != i && model.contains(&edge(i, j))).collect();
            assert_eq!(forest.neighbors(i), adjacent);
            assert_eq!(forest.is_isolated(i), adjacent.is_empty());
            if adjacent.is_empty() {
                structure.push(Component::single(i));
            }
        }
        structure.sort();
        assert_eq!(forest.components(), structure);
    }

    fn brute_force_cliques(graph: &Graph) -> Vec<Component> {
        let dimension = graph.dimension();
        let adjacency = graph.to_adjacency();
        let members = |set: u32| (0..dimension).filter(move |i| set >> i & 1 == 1);
        let is_clique =
            |set: u32| members(set).all(|i| members(set).all(|j| i == j || adjacency[i][j]));
        let mut cliques: Vec<Component> = (1..1u32 << dimension)
            .filter(|&set| is_clique(set))
            .filter(|&set| (0..dimension).all(|i| set >> i & 1 == 1 || !is_clique(set | 1 << i)))
            .map(|set| component(&members(set).collect::<Vec<_>>()))
            .collect();
        cliques.sort();
        cliques
    }

    /// Min-fill as it is defined, everything counted anew at every step.
    fn brute_force_elimination(graph: &Graph) -> EliminationOrder {
        let mut adjacency = graph.to_adjacency();
        let mut left: BTreeSet<usize> = (0..graph.dimension()).collect();
        let mut order = Vec::new();
        let mut induced_width = 0;
        while !left.is_empty() {
            let neighbors = |i: usize| -> Vec<usize> {
                left.iter().copied().filter(|&j| adjacency[i][j]).collect()
            };
            let missing = |i: usize| -> Vec<(usize, usize)> {
                let around = neighbors(i);
                let pairs = around.iter().flat_map(|&a| around.iter().map(move |&b| (a, b)));
                pairs.filter(|&(a, b)| a < b && !adjacency[a][b]).collect()
            };
            let next = left
                .iter()
                .copied()
                .min_by_key(|&i| (missing(i).len(), neighbors(i).len(), i))
                .unwrap();
            induced_width = induced_width.max(neighbors(next).len());
            let joined = missing(next);
            for (a, b) in joined {
                adjacency[a][b] = true;
                adjacency[b][a] = true;
            }
            left.remove(&next);
            order.push(next);
        }
        EliminationOrder { order, induced_width }
    }

    /// The width of an order, by eliminating.
    fn width_of(graph: &Graph, order: &[usize]) -> usize {
        let mut around: Vec<BTreeSet<usize>> =
            (0..graph.dimension()).map(|i| graph.neighbors(i).iter().copied().collect()).collect();
        let mut width = 0;
        for &i in order {
            let clique = std::mem::take(&mut around[i]);
            width = width.max(clique.len());
            for &j in &clique {
                around[j].extend(&clique);
                around[j].remove(&j);
                around[j].remove(&i);
            }
        }
        width
    }

    fn check_elimination(graph: &Graph) -> EliminationOrder {
        let found = graph.elimination_order();
        let mut sorted = found.order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..graph.dimension()));
        assert_eq!(found.induced_width, width_of(graph, &found.order));
        found
    }

    fn any_graph(largest: usize) -> impl Strategy<Value = Graph> {
        // Two masks, combined or not, so that sparse and dense graphs are as common as half full ones.
        (1..=largest, any::<u32>(), any::<u32>(), 0..3).prop_map(
            |(dimension, one, other, density)| {
                let mask = match density {
                    0 => one & other,
                    1 => one,
                    _ => one | other,
                };
                Graph::from_edges(dimension, chosen_pairs(dimension, mask)).unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn any_edits_leave_a_forest(
            dimension in 1usize..9,
            edits in prop::collection::vec((0usize..9, 0usize..9, 0..4), 0..60),
        ) {
            let mut forest = Forest::empty(dimension);
            let mut model = BTreeSet::new();
            for (i, j, kind) in edits {
                let Ok(edge) = Edge::new(i, j) else {
                    prop_assert_eq!(i, j);
                    continue;
                };
                let before = forest.clone();
                if kind == 0 {
                    let removed = forest.remove(edge);
                    prop_assert_eq!(removed.is_ok(), model.remove(&edge));
                    if removed.is_err() {
                        prop_assert!(refusal(removed).contains(&edge.to_string()));
                        prop_assert_eq!(&forest, &before);
                    }
                } else {
                    let outside = edge.high() >= dimension;
                    // A second copy of an edge is a cycle to petgraph, so it covers duplicates.
                    let cyclic = !outside
                        && petgraph::algo::is_cyclic_undirected(&petgraph_of(
                            dimension,
                            model.iter().copied().chain([edge]),
                        ));
                    prop_assert_eq!(before.closes_cycle(edge), cyclic && !model.contains(&edge));
                    let added = forest.add(edge);
                    prop_assert_eq!(added.is_err(), outside || cyclic);
                    if added.is_err() {
                        prop_assert!(refusal(added).contains(&edge.to_string()));
                        prop_assert_eq!(&forest, &before);
                    } else {
                        model.insert(edge);
                    }
                }
                check_forest(&forest, dimension, &model);
            }
        }

        #[test]
        fn forests_are_the_acyclic_graphs(graph in any_graph(7)) {
            let cyclic = petgraph::algo::is_cyclic_undirected(&petgraph_of(
                graph.dimension(),
                graph.edges().iter().copied(),
            ));
            prop_assert_eq!(graph.is_forest(), !cyclic);
            let forest = Forest::try_from(graph.clone());
            prop_assert_eq!(forest.is_err(), cyclic);
            if let Ok(forest) = forest {
                check_forest(&forest, graph.dimension(), &graph.edges().iter().copied().collect());
                prop_assert_eq!(Graph::from(&forest), graph);
            }
        }

        #[test]
        fn union_find_agrees_with_petgraph(
            size in 1usize..40,
            merges in prop::collection::vec((0usize..40, 0usize..40), 0..60),
        ) {
            let mut ours = UnionFind::new(size);
            let mut theirs = petgraph::unionfind::UnionFind::<usize>::new(size);
            let mut sets = size;
            for (i, j) in merges.into_iter().map(|(i, j)| (i % size, j % size)) {
                let merged = theirs.union(i, j);
                sets -= usize::from(merged);
                prop_assert_eq!(ours.union(i, j), merged);
                prop_assert_eq!(ours.sets(), sets);
            }
            for i in 0..size {
                let root = ours.find(i);
                prop_assert!(theirs.equiv(i, root));
                for j in 0..size {
                    prop_assert_eq!(ours.together(i, j), theirs.equiv(i, j));
                }
            }
        }

        #[test]
        fn graph_edits_agree_with_a_set(
            dimension in 1usize..7,
            edits in prop::collection::vec((0usize..7, 0usize..7, any::<bool>()), 0..40),
        ) {
            let mut graph = Graph::empty(dimension);
            let mut model = BTreeSet::new();
            for (i, j, add) in edits {
                let Ok(edge) = Edge::new(i, j) else { continue };
                if add {
                    let fits = edge.high() < dimension && model.insert(edge);
                    prop_assert_eq!(graph.add(edge).is_ok(), fits);
                } else {
                    prop_assert_eq!(graph.remove(edge).is_ok(), model.remove(&edge));
                }
                let listed: Vec<Edge> = model.iter().copied().collect();
                prop_assert_eq!(graph.edges(), &listed[..]);
                prop_assert_eq!(graph.edge_count(), listed.len());
                let rebuilt = Graph::from_edges(dimension, listed.into_iter().rev()).unwrap();
                for k in 0..dimension {
                    let adjacent: Vec<usize> = (0..dimension)
                        .filter(|&l| l != k && graph.contains(super::tests::edge(k, l)))
                        .collect();
                    prop_assert_eq!(graph.neighbors(k), &adjacent[..]);
                    prop_assert_eq!(rebuilt.neighbors(k), &adjacent[..]);
                }
                prop_assert_eq!(&graph, &rebuilt);
            }
        }

        #[test]
        fn maximal_cliques_agree_with_brute_force(graph in any_graph(7)) {
            let cliques = graph.maximal_cliques();
            prop_assert_eq!(&cliques, &brute_force_cliques(&graph));
            prop_assert_eq!(Graph::from_components(graph.dimension(), &cliques).unwrap(), graph);
        }

        #[test]
        fn elimination_agrees_with_brute_force(graph in any_graph(8)) {
            let found = check_elimination(&graph);
            let largest_clique = graph.maximal_cliques().iter().map(Component::len).max();
            prop_assert!(found.induced_width + 1 >= largest_clique.unwrap());
            prop_assert_eq!(found, brute_force_elimination(&graph));
        }

        #[test]
        fn matrices_and_files_round_trip(graph in any_graph(7)) {
            let adjacency = graph.to_adjacency();
            let set = adjacency.iter().flatten().filter(|&&set| set).count();
            prop_assert_eq!(set, 2 * graph.edge_count());
            prop_assert_eq!(&Graph::from_adjacency(&adjacency).unwrap(), &graph);
            prop_assert_eq!(Forest::from_adjacency(&adjacency).is_ok(), graph.is_forest());
            let text = serde_json::to_string(&graph).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Graph>(&text).unwrap(), &graph);
            let forest = serde_json::from_str::<Forest>(&text);
            prop_assert_eq!(forest.is_ok(), graph.is_forest());
            if let Ok(forest) = forest {
                prop_assert_eq!(serde_json::to_string(&forest).unwrap(), text);
                prop_assert_eq!(forest.to_adjacency(), adjacency);
            }
        }
    }

    #[test]
    fn an_edge_is_an_unordered_pair() {
        assert_eq!(edge(7, 2), edge(2, 7));
        assert_eq!((edge(7, 2).low(), edge(7, 2).high()), (2, 7));
        assert_eq!(edge(7, 2).to_string(), "2–7");
        assert_eq!(edge(2, 7).other(2), Some(7));
        assert_eq!(edge(2, 7).other(7), Some(2));
        assert_eq!(edge(2, 7).other(3), None);
        assert!(edge(0, 9) < edge(1, 2) && edge(1, 2) < edge(1, 3));
        assert!(refusal(Edge::new(4, 4)).contains("4–4"));
    }

    #[test]
    fn a_component_is_a_sorted_set() {
        assert_eq!(component(&[5, 1, 3]).variables(), [1, 3, 5]);
        assert_eq!(component(&[5, 1, 3]).len(), 3);
        assert_eq!(component(&[4]), Component::single(4));
        assert_eq!(component(&[6, 2]), Component::pair(edge(2, 6)));
        assert_eq!(component(&[6, 2]).variables(), [2, 6]);
        assert_eq!(component(&[6, 2]).len(), 2);
        assert_eq!(Component::single(4).len(), 1);
        assert!(component(&[5, 1, 3]).contains(3) && !component(&[5, 1, 3]).contains(2));
        assert_eq!(component(&[5, 1, 3]).to_string(), "{1, 3, 5}");
        assert!(refusal(Component::new(vec![])).contains("no variables"));
        assert!(refusal(Component::new(vec![3, 1, 3])).contains("variable 3 twice"));

        let ascending = [&[0][..], &[0, 1], &[0, 1, 5], &[0, 2], &[1], &[1, 2, 3, 4]];
        for pair in ascending.windows(2) {
            assert!(component(pair[0]) < component(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn union_find_stays_flat() {
        // Merging blocks of 1, 2, 4, … in pairs makes the deepest trees there are.
        let mut sets = UnionFind::new(1024);
        for block in (0..10).map(|k| 1 << k) {
            for start in (0..1024).step_by(2 * block) {
                assert!(sets.union(start + block, start));
            }
        }
        assert_eq!(sets.sets(), 1);
        let root = sets.find(0);
        let depth = |sets: &UnionFind, i: usize| {
            std::iter::successors(Some(i), |&j| Some(sets.parent[j]))
                .position(|j| j == root)
                .unwrap()
        };
        assert!((0..1024).all(|i| depth(&sets, i) <= 10));
        for i in 0..1024 {
            sets.find(i);
            assert!(depth(&sets, i) <= 1, "the path from {i} is not compressed");
        }
        // The lighter set joins the heavier one, whichever is named first.
        for (i, j) in [(0, 2), (2, 0)] {
            let mut sets = UnionFind::new(4);
            sets.union(0, 1);
            let heavy = sets.find(0);
            sets.union(i, j);
            assert_eq!(sets.find(2), heavy);
        }
    }

    #[test]
    fn forests_are_counted_right() {
        let counts: Vec<usize> = (1..=5).map(|d| enumerate_forests(d).len()).collect();
        assert_eq!(counts, [1, 2, 7, 38, 291]);
        // Cayley: D^(D − 2) of them are trees.
        let trees = |d: usize| enumerate_forests(d).iter().filter(|f| f.is_tree()).count();
        assert_eq!([trees(2), trees(3), trees(4), trees(5)], [1, 3, 16, 125]);
        for forest in enumerate_forests(5) {
            check_forest(&forest, 5, &forest.edges().iter().copied().collect());
        }
    }

    #[test]
    fn the_figure_of_the_paper_has_its_structure() {
        let structure: Vec<Vec<usize>> = figure().components().into_iter().map(Vec::from).collect();
        let expected: [&[usize]; 5] = [&[0, 3], &[0, 4], &[0, 5], &[1], &[2, 3]];
        assert_eq!(structure, expected);
        assert_eq!(figure().parts(), [0, 1, 0, 0, 0, 0]);
        assert_eq!(figure().as_graph().maximal_cliques(), figure().components());
        assert!(!figure().is_tree());
        let mut connected = figure();
        connected.add(edge(1, 2)).unwrap();
        assert!(connected.is_tree());
    }

    #[test]
    fn splitting_partitions_the_part() {
        assert_eq!(figure().split(edge(0, 3)).unwrap(), (vec![0, 4, 5], vec![2, 3]));
        assert_eq!(figure().split(edge(2, 3)).unwrap(), (vec![2], vec![0, 3, 4, 5]));
        assert!(refusal(figure().split(edge(0, 2))).contains("0–2"));
        assert!(refusal(figure().split(edge(0, 9))).contains("0–9"));

        for whole in enumerate_forests(5) {
            let parts = whole.parts();
            for &removed in whole.edges() {
                let (low_side, high_side) = whole.split(removed).unwrap();
                assert!(low_side.contains(&removed.low()) && high_side.contains(&removed.high()));
                assert!(low_side.is_sorted() && high_side.is_sorted());
                let mut both = [&low_side[..], &high_side[..]].concat();
                both.sort_unstable();
                let part: Vec<usize> =
                    (0..5).filter(|&i| parts[i] == parts[removed.low()]).collect();
                assert_eq!(both, part);
                let mut rest = whole.clone();
                rest.remove(removed).unwrap();
                // Within a side everything stays connected, and the sides are now apart.
                for pair in all_pairs(5) {
                    let (i, j) = (pair.low(), pair.high());
                    let one_side = [&low_side, &high_side]
                        .iter()
                        .any(|side| side.contains(&i) && side.contains(&j));
                    let apart = part.contains(&i) && part.contains(&j) && !one_side;
                    let connected = parts[i] == parts[j] && !apart;
                    assert_eq!(rest.parts()[i] == rest.parts()[j], connected);
                }
            }
        }
    }

    #[test]
    fn comparison_is_by_dimension_and_edges() {
        let digest = |value: &Forest| {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            hasher.finish()
        };
        let one = forest(4, &[(0, 1), (2, 3)]);
        let other = forest(4, &[(3, 2), (1, 0)]);
        assert_eq!(one, other);
        assert_eq!(digest(&one), digest(&other));
        assert_ne!(one, forest(5, &[(0, 1), (2, 3)]));
        assert_ne!(one, forest(4, &[(0, 1)]));
        assert!(forest(4, &[(0, 1)]) < one);
        assert!(one < forest(4, &[(0, 2)]));
        assert!(forest(4, &[(0, 2)]) < forest(5, &[(0, 1)]));
        let distinct: BTreeSet<Forest> = enumerate_forests(4).into_iter().collect();
        assert_eq!(distinct.len(), 38);
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        let triangle = [(0, 1), (0, 2), (1, 2)];
        assert!(refusal(Forest::from_edges(3, edges(&triangle))).contains("1–2 closes a cycle"));
        let twice = [(0, 1), (1, 0)];
        assert!(refusal(Forest::from_edges(3, edges(&twice))).contains("0–1 is there already"));
        assert!(refusal(Graph::from_edges(3, edges(&twice))).contains("0–1 is there already"));
        let outside = [(0, 1), (1, 3)];
        assert!(refusal(Forest::from_edges(3, edges(&outside))).contains("1–3"));
        let huge = Graph::from_edges(usize::MAX, []);
        assert!(refusal(huge).contains(&usize::MAX.to_string()));

        let mut path = forest(3, &[(0, 1), (1, 2)]);
        assert!(refusal(path.add(edge(0, 2))).contains("0–2 closes a cycle"));
        assert!(refusal(path.add(edge(0, 1))).contains("0–1 is there already"));
        assert!(refusal(path.add(edge(0, 3))).contains("0–3 joins a variable"));
        assert!(refusal(path.remove(edge(0, 2))).contains("0–2 is not there"));

        let components = [Component::single(0), component(&[1, 3, 2])];
        assert!(Graph::from_components(4, &components).is_ok());
        let refused = refusal(Graph::from_components(3, &components));
        assert!(refused.contains("{1, 2, 3}") && refused.contains("variable 3"));
        assert!(refusal(Graph::from_components(2, &[Component::single(2)])).contains("{2}"));
    }

    #[test]
    fn matrices_are_checked() {
        let (yes, no) = (true, false);
        let path = vec![vec![no, yes, no], vec![yes, no, yes], vec![no, yes, no]];
        assert_eq!(Forest::from_adjacency(&path).unwrap(), forest(3, &[(0, 1), (1, 2)]));
        assert_eq!(forest(3, &[(0, 1), (1, 2)]).to_adjacency(), path);
        let mut looped = path.clone();
        looped[1][1] = yes;
        assert!(refusal(Forest::from_adjacency(&looped)).contains("(1, 1)"));
        let mut lopsided = path.clone();
        lopsided[2][0] = yes;
        assert!(refusal(Graph::from_adjacency(&lopsided)).contains("(0, 2) and (2, 0)"));
        let mut ragged = path.clone();
        ragged[2].pop();
        assert!(refusal(Graph::from_adjacency(&ragged)).contains("row 2"));
        let mut cyclic = path;
        cyclic[0][2] = yes;
        cyclic[2][0] = yes;
        assert!(refusal(Forest::from_adjacency(&cyclic)).contains("cycle"));
        assert_eq!(Graph::from_adjacency(&cyclic).unwrap(), complete(3));
    }

    #[test]
    fn serialised_forms_are_fixed() {
        let text = r#"{"dimension":6,"edges":[[0,3],[0,4],[0,5],[2,3]]}"#;
        assert_eq!(serde_json::to_string(&figure()).unwrap(), text);
        assert_eq!(
            serde_json::to_string(figure().as_graph()).unwrap(),
            serde_json::to_string(&figure()).unwrap()
        );
        let read: Forest = serde_json::from_str(text).unwrap();
        check_forest(&read, 6, &figure().edges().iter().copied().collect());

        assert_eq!(serde_json::to_string(&edge(4, 1)).unwrap(), "[1,4]");
        assert_eq!(serde_json::from_str::<Edge>("[4,1]").unwrap(), edge(1, 4));
        for variables in [&[3][..], &[1, 3], &[0, 1, 3]] {
            let text = serde_json::to_string(&component(variables)).unwrap();
            assert_eq!(text, serde_json::to_string(variables).unwrap());
            let read: Component = serde_json::from_str(&text).unwrap();
            assert_eq!(read, component(variables));
        }
        let order = grid(3, 3).elimination_order();
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<EliminationOrder>(&text).unwrap(), order);
        let score = edge_score(&edges(&[(0, 1), (1, 2), (2, 3)]), &edges(&[(0, 1)]));
        let text = serde_json::to_string(&score).unwrap();
        assert_eq!(serde_json::from_str::<EdgeScore>(&text).unwrap(), score);
    }

    #[test]
    fn reading_is_checked() {
        fn refused<T: for<'a> Deserialize<'a> + fmt::Debug>(text: &str) -> String {
            serde_json::from_str::<T>(text).unwrap_err().to_string()
        }
        let triangle = r#"{"dimension":3,"edges":[[0,1],[1,2],[0,2]]}"#;
        assert!(refused::<Forest>(triangle).contains("1–2 closes a cycle"));
        assert_eq!(serde_json::from_str::<Graph>(triangle).unwrap(), complete(3));
        let outside = r#"{"dimension":3,"edges":[[0,1],[1,3]]}"#;
        assert!(refused::<Forest>(outside).contains("1–3 joins"));
        assert!(refused::<Graph>(outside).contains("1–3 joins"));
        let twice = r#"{"dimension":3,"edges":[[0,1],[1,0]]}"#;
        assert!(refused::<Forest>(twice).contains("0–1 is there already"));
        let huge = r#"{"dimension":1000000000000000000,"edges":[]}"#;
        assert!(refused::<Forest>(huge).contains("too large"));
        assert!(refused::<Edge>("[2,2]").contains("2–2"));
        assert!(refused::<Component>("[]").contains("no variables"));
        assert!(refused::<Component>("[0,1,0]").contains("variable 0 twice"));
    }

    #[test]
    fn maximal_cliques_of_known_graphs() {
        let overlapping = [component(&[0, 1, 2]), component(&[2, 3]), component(&[5])];
        let graph = Graph::from_components(6, &overlapping).unwrap();
        assert_eq!(graph.edge_count(), 4);
        let mut expected = overlapping.to_vec();
        expected.push(Component::single(4));
        expected.sort();
        assert_eq!(graph.maximal_cliques(), expected);
        assert_eq!(complete(200).maximal_cliques().len(), 1);
        assert_eq!(complete(200).maximal_cliques()[0].len(), 200);
        // Moon and Moser: with D/3 groups of three that are adjacent to all but their own group, there are 3^(D/3).
        let groups = all_pairs(15).into_iter().filter(|pair| pair.low() / 3 != pair.high() / 3);
        let graph = Graph::from_edges(15, groups).unwrap();
        assert_eq!(graph.maximal_cliques().len(), 243);
    }

    #[test]
    fn elimination_of_known_graphs() {
        for dimension in 3..9 {
            assert_eq!(check_elimination(&cycle(dimension)).induced_width, 2);
        }
        for dimension in 1..9 {
            let width = check_elimination(&complete(dimension)).induced_width;
            assert_eq!(width, dimension - 1);
        }
        assert_eq!(check_elimination(&grid(2, 9)).induced_width, 2);
        assert_eq!(check_elimination(&grid(3, 3)).induced_width, 3);
        assert_eq!(check_elimination(&Graph::empty(5)).induced_width, 0);

        // The isolated variable first, then leaves, of which a neighbour may become one on the way.
        let figure = check_elimination(figure().as_graph());
        assert_eq!(figure.order, [1, 2, 3, 4, 0, 5]);
        assert_eq!(figure.induced_width, 1);
        // A triangle on a stalk: the stalk goes first although the triangle has nothing to join either.
        let stalk = check_elimination(&graph(5, &[(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]));
        assert_eq!(stalk.order, [4, 3, 0, 1, 2]);
        assert_eq!(stalk.induced_width, 2);
    }

    #[test]
    fn elimination_of_forests_is_min_fill_of_width_one() {
        for forest in enumerate_forests(5) {
            let found = check_elimination(forest.as_graph());
            assert_eq!(found.induced_width, forest.edge_count().min(1));
            assert_eq!(found, brute_force_elimination(forest.as_graph()));
        }
    }

    #[test]
    fn elimination_of_many_words_agrees_with_brute_force() {
        // More than 64 variables in the core, and less than all of them.
        let mut graph = Graph::empty(90);
        for joined in grid(9, 9).edges() {
            graph.add(edge(89 - joined.low(), 89 - joined.high())).unwrap();
        }
        for i in 0..8 {
            graph.add(edge(i, 10 * i + 9)).unwrap();
        }
        let found = check_elimination(&graph);
        assert_eq!(found, brute_force_elimination(&graph));
        assert!(found.induced_width >= 9, "the treewidth of the grid is 9");
    }

    #[test]
    fn elimination_of_large_graphs() {
        let tree = large_tree(1000);
        assert!(tree.is_tree());
        assert_eq!(check_elimination(tree.as_graph()).induced_width, 1);
        let wide = check_elimination(&grid(15, 17)).induced_width;
        assert!(wide >= 15, "{wide} is below the treewidth of the grid");
    }

    #[test]
    fn dot_shows_names_and_edges() {
        let names = ["rate".to_owned(), "a \"b\"\\".to_owned()];
        let expected = "graph dependencies {\n  0 [label=\"rate\"];\n  1 [label=\"a \\\"b\\\"\\\\\"];\n  \
                        2 [label=\"2\"];\n  0 -- 2;\n}\n";
        assert_eq!(forest(3, &[(2, 0)]).to_dot(&names), expected);
        assert_eq!(graph(3, &[(2, 0)]).to_dot(&names), expected);
    }

    #[test]
    fn scores_by_hand() {
        let score = |learned: &[(usize, usize)], truth: &[(usize, usize)]| {
            let EdgeScore { precision, recall, f1 } = edge_score(&edges(learned), &edges(truth));
            [precision, recall, f1]
        };
        let truth = [(0, 1), (1, 2), (2, 3), (3, 4)];
        assert_eq!(score(&truth, &truth), [1.0, 1.0, 1.0]);
        // 1 of 2 learned is true, 1 of 4 true is learned: 2 · ½ · ¼ / ¾ = ⅓.
        assert_eq!(score(&[(1, 0), (0, 4)], &truth), [0.5, 0.25, 1.0 / 3.0]);
        assert_eq!(score(&[(0, 1), (1, 0)], &truth), [1.0, 0.25, 0.4]);
        assert_eq!(score(&[(0, 3)], &truth), [0.0, 0.0, 0.0]);
        assert_eq!(score(&[], &truth), [0.0, 0.0, 0.0]);
        assert_eq!(score(&truth, &[]), [0.0, 0.0, 0.0]);
        assert_eq!(score(&[], &[]), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn one_variable_is_a_tree() {
        let mut only = Forest::empty(1);
        assert!(only.is_tree() && only.is_isolated(0));
        assert_eq!(only.components(), [Component::single(0)]);
        assert_eq!(only.parts(), [0]);
        assert_eq!(only.to_adjacency(), [[false]]);
        assert_eq!(Forest::from_adjacency(&[vec![false]]).unwrap(), only);
        assert!(only.add(edge(0, 1)).is_err());
        assert!(!only.closes_cycle(edge(0, 1)));
        assert_eq!(only.as_graph().maximal_cliques(), [Component::single(0)]);
        let found = only.as_graph().elimination_order();
        assert_eq!((found.order, found.induced_width), (vec![0], 0));
        let text = serde_json::to_string(&only).unwrap();
        assert_eq!(serde_json::from_str::<Forest>(&text).unwrap(), only);
    }

    #[test]
    fn no_variables_are_no_tree() {
        let none = Forest::empty(0);
        assert!(!none.is_tree());
        assert_eq!(none.components(), []);
        assert_eq!(none.as_graph().maximal_cliques(), []);
        assert_eq!(none.as_graph().elimination_order().order, [0; 0]);
    }
}
