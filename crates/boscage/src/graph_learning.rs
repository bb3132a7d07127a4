//! Learning any dependency graph by Gibbs sampling over all its edges.
//!
//! Source: Rolland, Scarlett, Bogunovic and Cevher, *High-Dimensional Bayesian Optimization via Additive Models with
//! Overlapping Groups*, AISTATS 2018, which the paper calls Graph Overlap. Every Z_ij is drawn given all others, with prior
//! γ; the additive structure is the set of maximal cliques.
//!
//! Notation: Z the graph, Z_ij whether i and j are joined, γ `edge_prior`, S `samples`, ρ the log likelihood.
//!
//! Cost: one likelihood a sample, S in all, and one triangulation for each graph that is looked at. Message passing along the
//! result is exponential in the size of the largest clique of the triangulated graph; `max_table` keeps the search away from
//! graphs that cannot be used. The chain then moves among the graphs within the cap only, with the posterior restricted to them.

use std::collections::BTreeMap;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::graph::{Edge, Graph};
use crate::message_passing::{elimination_scopes, largest_table};
use crate::stream::Generator;
use crate::tree_learning::{
    EdgeRule, finite_or_impossible, log_ratio, probability, shuffled_pairs,
};

/// Settings of [`graph_learning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct GraphLearning {
    /// S: how many likelihoods may be evaluated.
    pub samples: usize,
    /// γ: the prior probability of an edge, between 0 and 1.
    pub edge_prior: f64,
    /// How edges are chosen.
    pub edge_rule: EdgeRule,
    /// Largest table, in entries, that message passing along a graph may need. A graph beyond it is refused and counted; none
    /// refuses nothing, as in the original, and an ask may then take very long or, where even 2²⁷ entries are too few, fall back
    /// on a random point.
    pub max_table: Option<u64>,
}

impl Default for GraphLearning {
    /// S = 250 and γ = ½ as the paper's experiments have it, and at most 4⁸ entries: cliques of 8 variables with R = 4.
    fn default() -> Self {
        Self {
            samples: 250,
            edge_prior: 0.5,
            edge_rule: EdgeRule::Sample,
            max_table: Some(1 << 16),
        }
    }
}

impl GraphLearning {
    /// Refuses an edge prior outside of (0, 1), and a cap that not even a pair of variables could keep.
    pub fn validate(&self) -> Result<()> {
        if !(self.edge_prior > 0.0 && self.edge_prior < 1.0) {
            return Err(Error::InvalidSetting {
                setting: "edge_prior",
                value: self.edge_prior.to_string(),
                reason: "it is a probability strictly between 0 and 1",
            });
        }
        match self.max_table {
            Some(entries) if entries < 4 => Err(Error::InvalidSetting {
                setting: "max_table",
                value: entries.to_string(),
                reason: "a table of two variables has at least 4 entries",
            }),
            _ => Ok(()),
        }
    }

    fn prior_log_odds(&self) -> f64 {
        (self.edge_prior / (1.0 - self.edge_prior)).ln()
    }

    fn log_posterior(&self, graph: &Graph, log_likelihood: f64) -> f64 {
        log_likelihood + self.prior_log_odds() * graph.edge_count() as f64
    }

    /// Whether message passing along this graph, with so many values of each variable, keeps to the cap.
    fn allows(&self, graph: &Graph, sizes: &[usize]) -> bool {
        let needed = || largest_table(&elimination_scopes(graph), |i| sizes[i] as u64);
        self.max_table.is_none_or(|entries| needed() <= u128::from(entries))
    }
}

/// What [`graph_learning`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedGraph {
    /// The graph with the highest posterior of all that were evaluated.
    pub graph: Graph,
    /// Its ρ.
    pub log_likelihood: f64,
    /// How many likelihoods were evaluated.
    pub evaluations: usize,
    /// How many graphs were refused because of `max_table`.
    pub refused: usize,
    /// For every edge that was ever present, the share of the samples in which it was.
    pub edge_frequencies: Vec<(Edge, f64)>,
}

/// Gibbs sampling from Z = `current` on; returns the graph with the highest posterior seen. If `current` is itself beyond the
/// cap, the search begins without edges.
///
/// `rho` may return −∞ (a structure that cannot be scored is then never chosen over one that can); an error ends the search.
/// `sizes` are the numbers of values that message passing will look at, one for each variable.
pub fn graph_learning(
    current: &Graph,
    rho: impl FnMut(&Graph) -> Result<f64>,
    config: &GraphLearning,
    sizes: &[usize],
    rng: &mut Generator,
) -> Result<LearnedGraph> {
    config.validate()?;
    let (expected, found) = (current.dimension(), sizes.len());
    if found != expected {
        return Err(Error::WrongDimension { what: "the list of sizes", expected, found });
    }
    let mut chain = Chain::new(current.clone(), rho, config, sizes)?;
    while chain.evaluations < config.samples && current.dimension() > 1 {
        let before = chain.evaluations;
        for edge in shuffled_pairs(current.dimension(), rng)? {
            if chain.evaluations >= config.samples {
                break;
            }
            chain.gibbs_step(edge, rng)?;
        }
        if chain.evaluations == before {
            // Every graph next to this one is refused, and will be for ever.
            break;
        }
    }
    Ok(chain.finish())
}

/// The state of the sampler: Z, ρ(Z), and what has been seen.
struct Chain<'c, F> {
    graph: Graph,
    log_likelihood: f64,
    rho: F,
    config: &'c GraphLearning,
    sizes: &'c [usize],
    best: (Graph, f64),
    evaluations: usize,
    refused: usize,
    samples: usize,
    counts: BTreeMap<Edge, usize>,
}

impl<'c, F: FnMut(&Graph) -> Result<f64>> Chain<'c, F> {
    fn new(
        mut graph: Graph,
        mut rho: F,
        config: &'c GraphLearning,
        sizes: &'c [usize],
    ) -> Result<Self> {
        let mut refused = 0;
        if !config.allows(&graph, sizes) {
            graph = Graph::empty(graph.dimension());
            refused = 1;
        }
        let log_likelihood = finite_or_impossible(rho(&graph)?);
        Ok(Self {
            best: (graph.clone(), log_likelihood),
            graph,
            log_likelihood,
            rho,
            config,
            sizes,
            evaluations: 1,
            refused,
            samples: 0,
            counts: BTreeMap::new(),
        })
    }

    fn evaluate(&mut self, graph: &Graph) -> Result<f64> {
        let value = finite_or_impossible((self.rho)(graph)?);
        self.evaluations += 1;
        if self.config.log_posterior(graph, value)
            > self.config.log_posterior(&self.best.0, self.best.1)
        {
            self.best = (graph.clone(), value);
        }
        Ok(value)
    }

    /// Draws Z_ij given the rest. If one of its two values is refused, the other is certain and nothing is evaluated. Taking an
    /// edge out can be refused too: the fill of another order of elimination may be larger.
    fn gibbs_step(&mut self, edge: Edge, rng: &mut Generator) -> Result<()> {
        let is_present = self.graph.contains(edge);
        let mut other = self.graph.clone();
        if is_present {
            other.remove(edge)?;
        } else {
            other.add(edge)?;
        }
        if !self.config.allows(&other, self.sizes) {
            self.refused += 1;
            return Ok(());
        }
        let value = self.evaluate(&other)?;
        let (present, absent) =
            if is_present { (self.log_likelihood, value) } else { (value, self.log_likelihood) };
        let log_odds = self.config.prior_log_odds() + log_ratio(present, absent);
        let joined = match self.config.edge_rule {
            EdgeRule::Sample => rng.random::<f64>() < probability(log_odds),
            EdgeRule::Greedy => log_odds >= 0.0,
        };
        if joined != is_present {
            (self.graph, self.log_likelihood) = (other, value);
        }
        self.samples += 1;
        for &edge in self.graph.edges() {
            *self.counts.entry(edge).or_insert(0) += 1;
        }
        Ok(())
    }

    fn finish(self) -> LearnedGraph {
        let samples = self.samples.max(1) as f64;
        let share = |(edge, count): (Edge, usize)| (edge, count as f64 / samples);
        LearnedGraph {
            graph: self.best.0,
            log_likelihood: self.best.1,
            evaluations: self.evaluations,
            refused: self.refused,
            edge_frequencies: self.counts.into_iter().map(share).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::enumeration::{all_pairs, chosen_pairs};
    use crate::markov_chain::{
        assert_agrees, average, deviations, draw, drift, largest, pearson, standard_errors,
    };
    use crate::stream::{Purpose, Stream};

    fn generator(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Structure)
    }

    fn config(edge_prior: f64) -> GraphLearning {
        GraphLearning { edge_prior, max_table: None, ..GraphLearning::default() }
    }

    fn graph(dimension: usize, pairs: &[(usize, usize)]) -> Graph {
        Graph::from_edges(dimension, pairs.iter().map(|&(i, j)| Edge::new(i, j).unwrap())).unwrap()
    }

    fn complete(dimension: usize) -> Graph {
        Graph::from_edges(dimension, all_pairs(dimension)).unwrap()
    }

    /// All graphs that the settings allow, with a score of each.
    struct Table {
        states: Vec<Graph>,
        scores: Vec<f64>,
        sizes: Vec<usize>,
    }

    impl Table {
        /// Scores between ±1.5, each graph its own: nothing about one edge follows from another.
        fn new(dimension: usize, max_table: Option<u64>, seed: u64) -> Self {
            let sizes = vec![2; dimension];
            let allowed = GraphLearning { max_table, ..config(0.5) };
            let states: Vec<Graph> = (0..1_u32 << all_pairs(dimension).len())
                .map(|mask| Graph::from_edges(dimension, chosen_pairs(dimension, mask)).unwrap())
                .filter(|graph| allowed.allows(graph, &sizes))
                .collect();
            let mut rng = generator(seed);
            let scores = states.iter().map(|_| rng.random_range(-1.5..1.5)).collect();
            Self { states, scores, sizes }
        }

        fn place(&self, graph: &Graph) -> Option<usize> {
            self.states.iter().position(|state| state == graph)
        }

        fn rho(&self, graph: &Graph) -> Result<f64> {
            Ok(self.scores[self.place(graph).expect("a graph that is refused is not scored")])
        }

        /// π ∝ γ^|E| (1−γ)^(pairs − |E|) e^ρ on the graphs that are allowed, straight from the definition.
        fn posterior(&self, gamma: f64) -> Vec<f64> {
            let pairs = all_pairs(self.sizes.len()).len() as i32;
            let weight = |(state, score): (&Graph, &f64)| {
                let edges = state.edge_count() as i32;
                gamma.powi(edges) * (1.0 - gamma).powi(pairs - edges) * score.exp()
            };
            let weights: Vec<f64> = self.states.iter().zip(&self.scores).map(weight).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        }

        /// The transition matrix of a Gibbs step on this pair.
        fn gibbs_matrix(&self, pair: Edge, gamma: f64) -> Vec<Vec<f64>> {
            let row = |(place, state): (usize, &Graph)| {
                let mut row = vec![0.0; self.states.len()];
                let (mut with, mut without) = (state.clone(), state.clone());
                if state.contains(pair) {
                    without.remove(pair).unwrap();
                } else {
                    with.add(pair).unwrap();
                }
                match (self.place(&with), self.place(&without)) {
                    (Some(with), Some(without)) => {
                        let odds = gamma * self.scores[with].exp();
                        let against = (1.0 - gamma) * self.scores[without].exp();
                        row[with] += odds / (odds + against);
                        row[without] += against / (odds + against);
                    }
                    _ => row[place] = 1.0,
                }
                row
            };
            self.states.iter().enumerate().map(row).collect()
        }

        fn chain<'c>(
            &'c self,
            config: &'c GraphLearning,
        ) -> Chain<'c, impl FnMut(&Graph) -> Result<f64>> {
            let start = Graph::empty(self.sizes.len());
            Chain::new(start, |graph: &Graph| self.rho(graph), config, &self.sizes).unwrap()
        }
    }

    /// All 8 graphs of three variables, all 64 of four, and those of four with tables of at most 8 and 4 entries: all but the
    /// complete one, and the 38 forests.
    fn tables() -> Vec<(Option<u64>, Table)> {
        let cases = [(3, None, 8), (4, None, 64), (4, Some(8), 63), (4, Some(4), 38)];
        let table = |(seed, (dimension, max_table, states)): (usize, (_, _, usize))| {
            let table = Table::new(dimension, max_table, seed as u64);
            assert_eq!(table.states.len(), states);
            (max_table, table)
        };
        cases.into_iter().enumerate().map(table).collect()
    }

    #[test]
    fn a_gibbs_step_keeps_the_posterior_exactly() {
        for (_, table) in tables() {
            for gamma in [0.5, 0.2] {
                let posterior = table.posterior(gamma);
                for pair in all_pairs(table.sizes.len()) {
                    assert!(drift(&posterior, &table.gibbs_matrix(pair, gamma)) < 1e-12);
                }
                // The wrong prior must be noticed, or the above means nothing.
                let other = table.posterior(0.3);
                let matrix = table.gibbs_matrix(Edge::new(0, 1).unwrap(), gamma);
                assert!(drift(&other, &matrix) > 1e-3);
            }
        }
    }

    #[test]
    fn a_gibbs_chain_visits_graphs_as_often_as_the_posterior_says() {
        const STEPS: usize = 300_000;
        for (number, (max_table, table)) in tables().into_iter().enumerate() {
            let pairs = all_pairs(table.sizes.len());
            for gamma in [0.5, 0.2] {
                let posterior = table.posterior(gamma);
                let matrices: Vec<_> =
                    pairs.iter().map(|&pair| table.gibbs_matrix(pair, gamma)).collect();
                let errors = standard_errors(&posterior, &average(&matrices), STEPS);
                let off = |edge_rule: EdgeRule| {
                    let config = GraphLearning { edge_rule, max_table, ..config(gamma) };
                    let mut rng = generator(number as u64);
                    let mut chain = table.chain(&config);
                    let mut counts = vec![0; table.states.len()];
                    for step in 0..STEPS + 1_000 {
                        let pair = pairs[rng.random_range(0..pairs.len())];
                        chain.gibbs_step(pair, &mut rng).unwrap();
                        // The start is forgotten first.
                        if step >= 1_000 {
                            counts[table.place(&chain.graph).unwrap()] += 1;
                        }
                    }
                    assert!(max_table.is_some() || chain.refused == 0);
                    assert!(
                        chain.refused > 0 || max_table.is_none() || edge_rule == EdgeRule::Greedy
                    );
                    deviations(&counts, &posterior, &errors)
                };
                assert_agrees(&off(EdgeRule::Sample));
                // The published code's rule is another distribution altogether, and this test can tell.
                let greedy = largest(&off(EdgeRule::Greedy));
                assert!(greedy > 50.0, "greedy is only {greedy} standard errors off");
            }
        }
    }

    /// Whole sweeps from independent draws of the posterior: the counts are multinomial without any approximation.
    #[test]
    fn sweeps_keep_draws_of_the_posterior_what_they_are() {
        const DRAWS: usize = 40_000;
        let table = Table::new(4, None, 5);
        let posterior = table.posterior(0.2);
        let statistic = |edge_rule: EdgeRule| {
            let config = GraphLearning { edge_rule, ..config(0.2) };
            let mut rng = generator(7);
            let mut chain = table.chain(&config);
            let mut counts = vec![0; posterior.len()];
            for _ in 0..DRAWS {
                let place = draw(&posterior, &mut rng);
                chain.graph = table.states[place].clone();
                chain.log_likelihood = table.scores[place];
                for pair in shuffled_pairs(4, &mut rng).unwrap() {
                    chain.gibbs_step(pair, &mut rng).unwrap();
                }
                counts[table.place(&chain.graph).unwrap()] += 1;
            }
            pearson(&counts, &posterior)
        };
        let sampled = statistic(EdgeRule::Sample);
        assert!(sampled.abs() < 4.0, "{sampled} standard deviations");
        let greedy = statistic(EdgeRule::Greedy);
        assert!(greedy > 100.0, "only {greedy} standard deviations");
    }

    /// A score without structure, between 0 and 10.
    fn hashed(graph: &Graph) -> f64 {
        let mix = |hash: u64, edge: &Edge| {
            let number = (edge.low() * 131 + edge.high() + 1) as u64;
            (hash ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        };
        graph.edges().iter().fold(1, mix) as f64 / u64::MAX as f64 * 10.0
    }

    /// What is learned with R = 4, and all that was evaluated for it.
    fn learn(
        start: &Graph,
        rho: impl Fn(&Graph) -> f64,
        config: &GraphLearning,
        seed: u64,
    ) -> (LearnedGraph, Vec<(Graph, f64)>) {
        let mut evaluated = Vec::new();
        let recorded = |graph: &Graph| {
            evaluated.push((graph.clone(), rho(graph)));
            Ok(rho(graph))
        };
        let sizes = vec![4; start.dimension()];
        let learned =
            graph_learning(start, recorded, config, &sizes, &mut generator(seed)).unwrap();
        (learned, evaluated)
    }

    #[test]
    fn no_graph_beyond_the_cap_is_scored_or_returned() {
        // Every edge helps, so that nothing but the cap holds them back.
        let rho = |graph: &Graph| 5.0 * graph.edge_count() as f64;
        for (width, max_table) in [(0, 4), (1, 16), (2, 64), (2, 255), (3, 256), (7, 1 << 16)] {
            let config = GraphLearning { max_table: Some(max_table), samples: 300, ..config(0.5) };
            let (learned, evaluated) = learn(&Graph::empty(10), rho, &config, max_table);
            for (graph, _) in &evaluated {
                assert!(graph.elimination_order().induced_width <= width);
            }
            assert_eq!(learned.graph.elimination_order().induced_width, width);
            assert!(learned.refused > 0, "{width}");
            assert_eq!(learned.evaluations, evaluated.len());
            // With a cap that no pair keeps, the search ends after a sweep of refusals.
            assert_eq!(learned.evaluations, if width == 0 { 1 } else { 300 });
            if width == 0 {
                assert_eq!((learned.refused, learned.graph), (45, Graph::empty(10)));
            }
        }
        let (learned, _) =
            learn(&Graph::empty(10), rho, &GraphLearning { samples: 2000, ..config(0.5) }, 1);
        assert_eq!((learned.graph, learned.refused), (complete(10), 0));
    }

    #[test]
    fn parameters_of_few_levels_allow_denser_graphs() {
        let config = GraphLearning { max_table: Some(64), ..config(0.5) };
        let allows = |graph: &Graph, sizes: &[usize]| config.allows(graph, sizes);
        assert!(allows(&complete(6), &[2; 6]) && !allows(&complete(7), &[2; 7]));
        assert!(allows(&complete(5), &[1, 4, 4, 2, 2]) && !allows(&complete(5), &[1, 4, 4, 2, 4]));
        assert!(allows(&complete(100), &[1; 100]));
        // A cycle of five is triangulated by tables of three.
        let cycle = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]);
        assert!(allows(&cycle, &[4; 5]) && !allows(&cycle, &[5; 5]));
    }

    #[test]
    fn a_start_beyond_the_cap_is_refused_too() {
        let config = GraphLearning { max_table: Some(64), samples: 1, ..config(0.5) };
        let (learned, evaluated) = learn(&complete(6), hashed, &config, 1);
        assert_eq!((learned.graph, learned.refused), (Graph::empty(6), 1));
        assert_eq!(evaluated[0].0, Graph::empty(6));
        let wrong = graph_learning(&complete(6), |_| Ok(0.0), &config, &[4; 5], &mut generator(1));
        assert!(matches!(wrong, Err(Error::WrongDimension { expected: 6, found: 5, .. })));
    }

    #[test]
    fn one_variable_and_no_samples_score_only_the_start() {
        let (one, evaluated) = learn(&Graph::empty(1), hashed, &config(0.5), 1);
        assert_eq!((one.graph, evaluated.len()), (Graph::empty(1), 1));
        let start = graph(4, &[(0, 1), (1, 2), (0, 2)]);
        for samples in [0, 1] {
            let config = GraphLearning { samples, ..config(0.5) };
            let (learned, evaluated) = learn(&start, hashed, &config, 1);
            assert_eq!((&learned.graph, evaluated.len()), (&start, 1));
            assert_eq!(learned.log_likelihood, hashed(&start));
            assert!(learned.edge_frequencies.is_empty());
        }
    }

    #[test]
    fn a_structure_that_cannot_be_scored_is_never_moved_to() {
        let rho = |graph: &Graph| match (graph.neighbors(0).is_empty(), graph.edge_count() % 3) {
            (true, _) => 0.0,
            (false, 0) => f64::NAN,
            (false, 1) => f64::INFINITY,
            (false, _) => f64::NEG_INFINITY,
        };
        let (found, _) = learn(&Graph::empty(5), rho, &config(0.5), 1);
        assert!(!found.edge_frequencies.is_empty());
        assert!(found.edge_frequencies.iter().all(|(edge, _)| edge.low() > 0));
        // Where nothing can be scored the start is returned, after as many tries as are allowed.
        let (found, evaluated) = learn(&Graph::empty(5), |_| f64::NAN, &config(0.5), 1);
        assert_eq!((found.graph, evaluated.len()), (Graph::empty(5), 250));
        let error = Error::NotPositiveDefinite { pivot: 3 };
        let failing = |_: &Graph| Err(error.clone());
        let found =
            graph_learning(&Graph::empty(3), failing, &config(0.5), &[4; 3], &mut generator(1));
        assert_eq!(found, Err(error.clone()));
    }

    #[test]
    fn finds_a_planted_graph_with_cycles_from_any_start() {
        // A grid of 3 × 3, each of its edges worth 3 and each other −3.
        let grid = graph(
            9,
            &[
                (0, 1),
                (1, 2),
                (3, 4),
                (4, 5),
                (6, 7),
                (7, 8),
                (0, 3),
                (3, 6),
                (1, 4),
                (4, 7),
                (2, 5),
                (5, 8),
            ],
        );
        let worth = |edge: &Edge| if grid.contains(*edge) { 3.0 } else { -3.0 };
        let rho = |graph: &Graph| graph.edges().iter().map(worth).sum::<f64>();
        for start in [Graph::empty(9), grid.clone(), graph(9, &[(0, 8), (0, 5), (5, 8)])] {
            let config = GraphLearning { samples: 500, ..GraphLearning::default() };
            let (learned, _) = learn(&start, rho, &config, 3);
            assert_eq!(learned.graph, grid);
            let share = |edge: (Edge, f64)| {
                let expected = if grid.contains(edge.0) { 1.0 } else { 0.0 };
                assert!((edge.1 - expected).abs() < 0.25, "{edge:?}");
            };
            // Those of the start are there until they are first drawn.
            if start != graph(9, &[(0, 8), (0, 5), (5, 8)]) && start.edge_count() > 0 {
                learned.edge_frequencies.into_iter().for_each(share);
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for edge_prior in [0.0, 1.0, -0.1, f64::NAN] {
            let refused = config(edge_prior).validate().unwrap_err();
            assert!(refused.to_string().contains("edge_prior"), "{refused}");
        }
        for entries in [0, 3] {
            let bad = GraphLearning { max_table: Some(entries), ..config(0.5) };
            let refused = bad.validate().unwrap_err();
            assert!(refused.to_string().contains("max_table"), "{refused}");
            let never = |_: &Graph| -> Result<f64> { panic!("nothing is scored") };
            assert!(
                graph_learning(&Graph::empty(3), never, &bad, &[4; 3], &mut generator(1)).is_err()
            );
        }
    }

    proptest! {
        #[test]
        fn any_settings_and_scores_give_the_best_graph_seen(
            dimension in 1_usize..8,
            chosen in any::<u32>(),
            samples in 0_usize..80,
            edge_prior in 0.01..0.99_f64,
            greedy in any::<bool>(),
            scale in prop_oneof![Just(0.0), -30.0..30.0_f64],
            impossible in 0_usize..4,
            max_table in prop_oneof![Just(None), (4_u64..5000).prop_map(Some)],
            seed in any::<u64>(),
        ) {
            let start = Graph::from_edges(dimension, chosen_pairs(dimension, chosen)).unwrap();
            let edge_rule = if greedy { EdgeRule::Greedy } else { EdgeRule::Sample };
            let config = GraphLearning { samples, edge_prior, edge_rule, max_table };
            // Some scores are no numbers.
            let rho = |graph: &Graph| match (hashed(graph) * 100.0) as usize % 10 < impossible {
                true => f64::NAN,
                false => scale * hashed(graph),
            };
            let (learned, evaluated) = learn(&start, rho, &config, seed);
            prop_assert_eq!(learned.evaluations, evaluated.len());
            prop_assert!(evaluated.len() <= samples.max(1));
            prop_assert!(max_table.is_some() || learned.refused == 0);
            if max_table.is_none() && dimension > 1 {
                prop_assert_eq!(evaluated.len(), samples.max(1));
            }
            for (graph, _) in &evaluated {
                prop_assert!(config.allows(graph, &vec![4; dimension]));
            }
            let earned = (edge_prior / (1.0 - edge_prior)).ln();
            let posterior = |graph: &Graph, rho: f64| {
                finite_or_impossible(rho) + earned * graph.edge_count() as f64
            };
            let best = evaluated.iter().map(|(graph, rho)| posterior(graph, *rho));
            prop_assert_eq!(
                posterior(&learned.graph, learned.log_likelihood),
                best.fold(f64::NEG_INFINITY, f64::max)
            );
            prop_assert_eq!(finite_or_impossible(rho(&learned.graph)), learned.log_likelihood);
            let shares = learned.edge_frequencies.iter().map(|f| f.1);
            prop_assert!(shares.clone().all(|share| share > 0.0 && share <= 1.0));
            let edges: Vec<Edge> = learned.edge_frequencies.iter().map(|f| f.0).collect();
            prop_assert!(edges.is_sorted());
        }
    }
}
