//! How the dependency structure of an additive GP is chosen: the one place that knows all the ways.
//!
//! Paper: Algorithm 3 for trees. The other ways belong to the methods that the paper compares with.
//!
//! Cost: one likelihood for each structure that is scored; nothing where there is nothing to learn.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePrior;
use crate::error::{Error, Result};
use crate::graph::{Component, Edge, Forest, Graph};
use crate::graph_learning::{GraphLearning, graph_learning};
use crate::partition_learning::{PartitionLearning, groups_of, partition_learning};
use crate::stream::Generator;
use crate::tree_learning::{TreeLearning, tree_learning};

/// A way of choosing the structure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// A forest, learned by TREE-LEARNING.
    Tree(TreeLearning),
    /// Any graph, learned by Gibbs sampling over all edges; its components are the maximal cliques.
    Graph(GraphLearning),
    /// Disjoint groups, learned by Gibbs sampling of each variable's group.
    Partition(PartitionLearning),
    /// A new random forest at every learning, whatever the data say.
    RandomForest(RandomForest),
    /// Every variable by itself and every pair with the strength that is learned for its variables
    /// ([`crate::all_pairs`]): there is nothing to choose.
    Pairs,
    /// One component of all variables: a plain GP.
    Whole,
    /// Known components and kernel parameters; nothing is learned.
    Given(Option<Box<AdditivePrior>>),
}

/// Settings of random forests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RandomForest {
    /// Number of edges as a share of the number of variables, below 1.
    pub edge_share: f64,
}

impl Default for RandomForest {
    fn default() -> Self {
        Self { edge_share: 0.2 }
    }
}

/// A forest with ⌊share · D⌋ edges, at least 1 if there are two variables: random pairs one after the other, those left out that
/// are there already or would close a cycle.
pub fn random_forest(dimension: usize, edge_share: f64, rng: &mut Generator) -> Result<Forest> {
    let mut forest = Forest::empty(dimension);
    let wanted = ((edge_share * dimension as f64) as usize).max(1).min(dimension.saturating_sub(1));
    while forest.edge_count() < wanted {
        let (i, j) = (rng.random_range(0..dimension), rng.random_range(0..dimension));
        if i != j {
            let edge = Edge::new(i, j)?;
            if !forest.contains(edge) && !forest.closes_cycle(edge) {
                forest.add(edge)?;
            }
        }
    }
    Ok(forest)
}

impl Default for Structure {
    fn default() -> Self {
        Structure::Tree(TreeLearning::default())
    }
}

/// What was learned about the structure.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedStructure {
    /// The dependency graph.
    pub graph: Graph,
    /// For every edge that was ever present, the share of the samples in which it was.
    pub edge_frequencies: Vec<(Edge, f64)>,
    /// Structures that were refused because message passing along them would need too large a table.
    pub refused: usize,
}

impl Structure {
    /// The word that stands for this way of choosing in stored settings.
    pub fn name(&self) -> &'static str {
        match self {
            Structure::Tree(_) => "tree",
            Structure::Graph(_) => "graph",
            Structure::Partition(_) => "partition",
            Structure::RandomForest(_) => "random-forest",
            Structure::Pairs => "pairs",
            Structure::Whole => "whole",
            Structure::Given(_) => "given",
        }
    }

    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        match self {
            Structure::Tree(config) => config.validate(),
            Structure::Graph(config) => config.validate(),
            Structure::Partition(config) => config.validate(),
            Structure::RandomForest(config)
                if !(config.edge_share > 0.0 && config.edge_share < 1.0) =>
            {
                Err(Error::InvalidSetting {
                    setting: "edge_share",
                    value: config.edge_share.to_string(),
                    reason: "it is a share strictly between 0 and 1",
                })
            }
            Structure::RandomForest(_) | Structure::Pairs | Structure::Whole => Ok(()),
            Structure::Given(Some(prior)) => prior.validate(),
            Structure::Given(None) => Err(Error::InvalidSetting {
                setting: "structure",
                value: "given".to_string(),
                reason: "the true structure must be given: components, kernel and noise (a test problem has them)",
            }),
        }
    }

    /// The graph to begin with.
    pub(crate) fn initial_graph(&self, dimension: usize) -> Result<Graph> {
        match self.given_prior(dimension)? {
            Some(prior) => Graph::from_components(dimension, &prior.components),
            None => Ok(Graph::empty(dimension)),
        }
    }

    /// The limit on the tables of message passing, if the structure has one.
    pub(crate) fn max_table(&self) -> Option<u64> {
        match self {
            Structure::Graph(config) => config.max_table,
            _ => None,
        }
    }

    /// The components that belong to a graph. The graph of a plain GP has no edges: there is nothing to be told apart.
    pub(crate) fn components(&self, graph: &Graph) -> Vec<Component> {
        match self {
            Structure::Whole => {
                Component::new((0..graph.dimension()).collect()).into_iter().collect()
            }
            Structure::Given(Some(prior)) => prior.components.clone(),
            Structure::Partition(_) => groups_of(graph),
            // Edges say what was found in the posterior; in the prior all pairs are alike.
            Structure::Pairs => (0..graph.dimension()).map(Component::single).collect(),
            // The cliques of a forest are its edges and isolated vertices.
            Structure::Tree(_) | Structure::Graph(_) | Structure::RandomForest(_) => {
                graph.maximal_cliques()
            }
            Structure::Given(None) => Vec::new(),
        }
    }

    /// The prior, if it is known and not learned.
    pub(crate) fn given_prior(&self, dimension: usize) -> Result<Option<&AdditivePrior>> {
        let Structure::Given(Some(prior)) = self else {
            return Ok(None);
        };
        let found = prior.kernel.dimension();
        if found != dimension {
            let what = "the given structure";
            return Err(Error::WrongDimension { what, expected: dimension, found });
        }
        Ok(Some(prior))
    }

    /// A new structure. `rho` scores components; `sizes` are the numbers of values of each variable that message passing looks
    /// at, on which the size of its tables depends.
    pub(crate) fn learn(
        &self,
        current: &Graph,
        mut rho: impl FnMut(Vec<Component>) -> Result<f64>,
        sizes: &[usize],
        rng: &mut Generator,
    ) -> Result<LearnedStructure> {
        match self {
            Structure::Tree(config) => {
                let current = Forest::try_from(current.clone())?;
                let learned =
                    tree_learning(&current, |forest| rho(forest.components()), config, rng)?;
                Ok(LearnedStructure {
                    graph: learned.forest.into(),
                    edge_frequencies: learned.edge_frequencies,
                    refused: 0,
                })
            }
            Structure::Graph(config) => {
                let rho = |graph: &Graph| rho(graph.maximal_cliques());
                let learned = graph_learning(current, rho, config, sizes, rng)?;
                Ok(LearnedStructure {
                    graph: learned.graph,
                    edge_frequencies: learned.edge_frequencies,
                    refused: learned.refused,
                })
            }
            Structure::Partition(config) => {
                let dimension = current.dimension();
                let learned = partition_learning(&groups_of(current), rho, config, rng)?;
                Ok(LearnedStructure {
                    graph: Graph::from_components(dimension, &learned.groups)?,
                    edge_frequencies: learned.edge_frequencies,
                    refused: 0,
                })
            }
            Structure::RandomForest(config) => {
                let forest = random_forest(current.dimension(), config.edge_share, rng)?;
                let edge_frequencies = forest.edges().iter().map(|&edge| (edge, 1.0)).collect();
                Ok(LearnedStructure { graph: forest.into(), edge_frequencies, refused: 0 })
            }
            Structure::Pairs | Structure::Whole | Structure::Given(_) => {
                let graph = current.clone();
                Ok(LearnedStructure { graph, edge_frequencies: Vec::new(), refused: 0 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernel::{Kernel, KernelFamily};
    use crate::markov_chain::pearson;
    use crate::stream::{Purpose, Stream};

    fn generator(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Structure)
    }

    fn truth(dimension: usize) -> AdditivePrior {
        let edge = |i: usize| Edge::new(i - 1, i).unwrap();
        AdditivePrior {
            components: (1..dimension).map(|i| Component::pair(edge(i))).collect(),
            kernel: Kernel::uniform(KernelFamily::Rbf, dimension, 0.2, 0.05),
            noise_std: 0.15,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        }
    }

    fn all() -> Vec<Structure> {
        vec![
            Structure::Tree(TreeLearning::default()),
            Structure::Graph(GraphLearning::default()),
            Structure::Graph(GraphLearning { max_table: None, ..GraphLearning::default() }),
            Structure::Partition(PartitionLearning::default()),
            Structure::Partition(PartitionLearning {
                max_group_size: None,
                ..PartitionLearning::default()
            }),
            Structure::RandomForest(RandomForest::default()),
            Structure::Whole,
            Structure::Given(Some(Box::new(truth(4)))),
            Structure::Given(None),
        ]
    }

    #[test]
    fn names_are_those_of_stored_settings() {
        for structure in all() {
            let value = serde_json::to_value(&structure).unwrap();
            let name = match &value {
                serde_json::Value::String(name) => name.clone(),
                other => other.as_object().unwrap().keys().next().unwrap().clone(),
            };
            assert_eq!(name, structure.name());
            assert_eq!(serde_json::from_value::<Structure>(value).unwrap(), structure);
        }
    }

    /// Every way of learning gives a graph whose components are those that were scored, and every variable is in one.
    #[test]
    fn learned_graphs_and_components_belong_together() {
        for structure in all().into_iter().filter(|s| s.validate().is_ok()) {
            let start = structure.initial_graph(4).unwrap();
            let mut scored = vec![structure.components(&start)];
            let rho = |components: Vec<Component>| {
                let value: f64 = components.iter().map(|g| [0.0, 2.0, 1.0, 0.0][g.len() - 1]).sum();
                scored.push(components);
                Ok(value)
            };
            let learned = structure.learn(&start, rho, &[4; 4], &mut generator(1)).unwrap();
            let components = structure.components(&learned.graph);
            if !matches!(structure, Structure::RandomForest(_)) {
                assert!(scored.contains(&components), "{structure:?}: {components:?}");
            }
            for i in 0..4 {
                assert!(components.iter().any(|g| g.contains(i)), "{structure:?}");
            }
            assert!(components.is_sorted());
            if structure == Structure::Whole {
                assert_eq!((components.len(), components[0].len()), (1, 4));
            } else {
                assert_eq!(learned.graph, Graph::from_components(4, &components).unwrap());
            }
        }
    }

    #[test]
    fn what_is_given_must_fit() {
        let given = Structure::Given(Some(Box::new(truth(4))));
        assert_eq!(given.initial_graph(4).unwrap().edge_count(), 3);
        assert!(matches!(
            given.initial_graph(5),
            Err(Error::WrongDimension { expected: 5, found: 4, .. })
        ));
        let mut bad = truth(4);
        bad.noise_std = -1.0;
        assert!(Structure::Given(Some(Box::new(bad))).validate().is_err());
        let mut bad = truth(4);
        bad.components.push(Component::single(4));
        let refused = Structure::Given(Some(Box::new(bad))).validate().unwrap_err();
        assert!(matches!(refused, Error::InvalidStructure { .. }));
        let missing = Structure::Given(None).validate().unwrap_err();
        assert!(missing.to_string().contains("must be given"), "{missing}");
    }

    #[test]
    fn random_forests_have_the_stated_share_of_edges() {
        for (dimension, share, edges) in [
            (1, 0.2, 0),
            (2, 0.2, 1),
            (9, 0.2, 1),
            (10, 0.2, 2),
            (24, 0.2, 4),
            (25, 0.2, 5),
            (25, 0.999, 24),
            (2, 0.999, 1),
            (300, 0.9, 270),
        ] {
            let forest = random_forest(dimension, share, &mut generator(2)).unwrap();
            assert_eq!(forest.edge_count(), edges, "{dimension} variables, share {share}");
        }
        for share in [0.0, 1.0, -0.2, f64::NAN] {
            let refused = Structure::RandomForest(RandomForest { edge_share: share }).validate();
            assert!(refused.unwrap_err().to_string().contains("edge_share"));
        }
    }

    /// The probability of each forest with so many edges, if pairs come in random order: every order of all pairs is as likely.
    fn by_orders(dimension: usize, edges: usize) -> BTreeMap<Forest, f64> {
        let mut found = BTreeMap::from([(Forest::empty(dimension), 1.0)]);
        for _ in 0..edges {
            let mut next = BTreeMap::new();
            for (forest, probability) in found {
                let pairs = crate::graph::enumeration::all_pairs(dimension);
                let free: Vec<Edge> = pairs
                    .into_iter()
                    .filter(|&e| !forest.contains(e) && !forest.closes_cycle(e))
                    .collect();
                for &edge in &free {
                    let mut larger = forest.clone();
                    larger.add(edge).unwrap();
                    *next.entry(larger).or_insert(0.0) += probability / free.len() as f64;
                }
            }
            found = next;
        }
        found
    }

    #[test]
    fn random_forests_are_distributed_as_random_orders_of_pairs_say() {
        const DRAWS: usize = 40_000;
        for (share, edges, forests) in [(0.3, 1, 6), (0.6, 2, 15), (0.9, 3, 16)] {
            let exact = by_orders(4, edges);
            assert_eq!(exact.len(), forests);
            let mut counts: BTreeMap<Forest, usize> =
                exact.keys().map(|f| (f.clone(), 0)).collect();
            let mut rng = generator(3);
            for _ in 0..DRAWS {
                let forest = random_forest(4, share, &mut rng).unwrap();
                *counts.get_mut(&forest).unwrap() += 1;
            }
            let counts: Vec<usize> = counts.into_values().collect();
            let exact: Vec<f64> = exact.into_values().collect();
            let off = pearson(&counts, &exact);
            assert!(off.abs() < 4.0, "{edges} edges: {off} standard deviations");
        }
    }
}
