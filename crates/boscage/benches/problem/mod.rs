//! The inputs of all timings, made from a seed: data, a random spanning tree, mutations of it, grids.

// The benchmarks and the server each use a part.
#![allow(dead_code)]

use boscage::acquisition::AdditiveFunction;
use boscage::additive_gp::{AdditivePosterior, AdditivePrior, Dataset};
use boscage::error::Result;
use boscage::graph::{Component, Edge, Forest};
use boscage::kernel::{Kernel, KernelFamily};
use boscage::message_passing::Grid;
use boscage::space::Point;
use boscage::stream::{Generator, Purpose, Stream};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Standard deviation of the noise, the paper's η.
pub(crate) const NOISE_STD: f64 = 0.1;

/// n observations of D variables, a kernel and a spanning tree.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) data: Dataset,
    pub(crate) kernel: Kernel,
    pub(crate) tree: Forest,
    pub(crate) rng: Generator,
}

impl Problem {
    pub(crate) fn new(n: usize, dimension: usize) -> Result<Self> {
        let mut rng = Stream::new(n as u64, dimension as u64).generator(Purpose::Problem);
        let mut data = Dataset::empty(dimension);
        for _ in 0..n {
            let point = random_point(dimension, &mut rng);
            let y = point.0.windows(2).map(|x| (5.0 * x[0] + 3.0 * x[1]).sin()).sum();
            data.push(&point, y)?;
        }
        let kernel = random_kernel(dimension, &mut rng);
        let tree = random_tree(dimension, &mut rng)?;
        Ok(Self { data, kernel, tree, rng })
    }

    /// The prior with this tree's components.
    pub(crate) fn prior(&self) -> AdditivePrior {
        AdditivePrior {
            components: self.tree.components(),
            kernel: self.kernel.clone(),
            noise_std: NOISE_STD,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        }
    }

    pub(crate) fn posterior(&self) -> Result<AdditivePosterior> {
        self.prior().condition(&self.data)
    }

    /// The prior with new parameters.
    pub(crate) fn next_prior(&mut self) -> AdditivePrior {
        self.kernel = random_kernel(self.tree.dimension(), &mut self.rng);
        self.prior()
    }

    /// Moves one edge of the tree to another place and returns the components of the new tree.
    pub(crate) fn next_tree(&mut self) -> Result<Vec<Component>> {
        let edges = self.tree.edges();
        let removed = edges[self.rng.random_range(0..edges.len())];
        let (left, right) = self.tree.split(removed)?;
        self.tree.remove(removed)?;
        loop {
            let i = left[self.rng.random_range(0..left.len())];
            let j = right[self.rng.random_range(0..right.len())];
            let added = Edge::new(i, j)?;
            // With a single variable on each side there is no other edge.
            if added != removed || left.len() * right.len() == 1 {
                self.tree.add(added)?;
                return Ok(self.tree.components());
            }
        }
    }

    /// A grid of R random values an axis.
    pub(crate) fn next_grid(&mut self, values: usize) -> Result<Grid> {
        let axes = (0..self.tree.dimension())
            .map(|_| (0..values).map(|_| self.rng.random()).collect())
            .collect();
        Grid::new(axes)
    }

    pub(crate) fn next_point(&mut self) -> Point {
        random_point(self.tree.dimension(), &mut self.rng)
    }
}

fn random_point(dimension: usize, rng: &mut Generator) -> Point {
    Point((0..dimension).map(|_| rng.random()).collect())
}

fn random_kernel(dimension: usize, rng: &mut Generator) -> Kernel {
    let mut kernel = Kernel::uniform(KernelFamily::Rbf, dimension, 0.1, 0.5);
    for i in 0..dimension {
        kernel.lengthscales[i] = rng.random_range(0.1..1.0);
        kernel.scales[i] = rng.random_range(0.2..1.0);
    }
    kernel
}

/// A tree over all variables: in random order, each is joined to one of those before it.
pub(crate) fn random_tree(dimension: usize, rng: &mut Generator) -> Result<Forest> {
    let mut order: Vec<usize> = (0..dimension).collect();
    order.shuffle(rng);
    let mut tree = Forest::empty(dimension);
    for k in 1..dimension {
        tree.add(Edge::new(order[k], order[rng.random_range(0..k)])?)?;
    }
    Ok(tree)
}

/// An additive function whose tables are known.
pub(crate) struct Tables {
    pub(crate) components: Vec<Component>,
    pub(crate) tables: Vec<Vec<f64>>,
}

impl AdditiveFunction for Tables {
    fn components(&self) -> &[Component] {
        &self.components
    }

    fn tabulate(&self, _: &Grid) -> Result<Vec<Vec<f64>>> {
        Ok(self.tables.clone())
    }
}
