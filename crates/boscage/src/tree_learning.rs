//! Learning the forest: Gibbs sampling of edges until it is a tree, then mutation.
//!
//! Paper: Alg. 3 TREE-LEARNING ([`tree_learning`]), Alg. 4 GIBBS-SAMPLING, Alg. 5 MUTATION.
//!
//! Notation: Z is the forest, ρ(Z) its log-likelihood, γ the prior probability of an edge, S the number of likelihoods
//! that may be evaluated, k how many have been. The score ρ is an argument: nothing here knows about Gaussian processes.
//!
//! Departures from the text, each recorded in `docs/paper-map.md`: k counts evaluations of ρ, not pairs looked at; pairs
//! come in random order (with S = 250 and D = 250 the text's order would only ever see the first variables); a sweep
//! ends when the forest has become a tree; a mutation whose new edge is drawn absent leaves the tree as it was.
//!
//! Cost: S evaluations of ρ, and D²/2 steps to shuffle the pairs of a sweep.

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::graph::{Edge, Forest};
use crate::stream::Generator;

/// How the new state of an edge is chosen between absent and present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EdgeRule {
    /// Drawn with the odds γ e^ρ(present) : (1−γ) e^ρ(absent), as the paper's text says.
    #[default]
    Sample,
    /// The likelier one; present if they are equal. This is what the paper's published code does (without γ).
    Greedy,
}

/// Settings of [`tree_learning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TreeLearning {
    /// S: how many likelihoods may be evaluated.
    pub samples: usize,
    /// γ: the prior probability of an edge, between 0 and 1.
    pub edge_prior: f64,
    /// How edges are chosen.
    pub edge_rule: EdgeRule,
    /// How many mutations make a generation: each generation descends from the likeliest tree seen so far.
    pub generation: usize,
}

impl Default for TreeLearning {
    /// The paper's S = 250, with γ = 0.1: an edge must raise the likelihood by a factor of 9 to be worth its place.
    fn default() -> Self {
        Self { edge_prior: 0.1, ..Self::paper() }
    }
}

impl TreeLearning {
    /// The paper's S = 250, γ = ½.
    pub fn paper() -> Self {
        Self { samples: 250, edge_prior: 0.5, edge_rule: EdgeRule::Sample, generation: 5 }
    }

    /// Refuses an edge prior outside of (0, 1) and generations without mutations, which would never end.
    pub fn validate(&self) -> Result<()> {
        if !(self.edge_prior > 0.0 && self.edge_prior < 1.0) {
            return Err(Error::InvalidSetting {
                setting: "edge_prior",
                value: self.edge_prior.to_string(),
                reason: "it is a probability strictly between 0 and 1",
            });
        }
        if self.generation < 1 {
            return Err(Error::InvalidSetting {
                setting: "generation",
                value: self.generation.to_string(),
                reason: "a generation needs at least 1 mutation",
            });
        }
        Ok(())
    }

    /// log(γ e^ρ(present) / (1−γ) e^ρ(absent)).
    fn log_odds(&self, present: f64, absent: f64) -> f64 {
        self.prior_log_odds() + log_ratio(present, absent)
    }

    /// log(γ / (1−γ)): what an edge must earn in likelihood.
    fn prior_log_odds(&self) -> f64 {
        (self.edge_prior / (1.0 - self.edge_prior)).ln()
    }

    /// The log posterior probability of a forest, up to a constant.
    fn log_posterior(&self, forest: &Forest, log_likelihood: f64) -> f64 {
        log_likelihood + self.prior_log_odds() * forest.edge_count() as f64
    }
}

/// log(e^ρ(new) / e^ρ(old)); 0 if neither can be scored.
pub(crate) fn log_ratio(new: f64, old: f64) -> f64 {
    let ratio = new - old;
    if ratio.is_nan() { 0.0 } else { ratio }
}

/// The probability of an event with these log odds.
pub(crate) fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// What [`tree_learning`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedForest {
    /// The forest with the highest posterior (with γ = ½: the highest likelihood) of all that were evaluated.
    pub forest: Forest,
    /// Its ρ.
    pub log_likelihood: f64,
    /// How many likelihoods were evaluated.
    pub evaluations: usize,
    /// For every edge that was ever present, the share of the samples in which it was. Not a posterior probability: each
    /// generation starts from the fittest tree, so that the edges of that tree are over-counted.
    pub edge_frequencies: Vec<(Edge, f64)>,
}

/// Alg. 3, TREE-LEARNING: S samples from Z = `current` on; returns the forest with the highest posterior seen
/// (with γ = ½ that is the highest likelihood, as in the text).
///
/// `rho` may return −∞ (a structure that cannot be scored is then never chosen over one that can); an error ends the
/// search.
pub fn tree_learning(
    current: &Forest,
    rho: impl FnMut(&Forest) -> Result<f64>,
    config: &TreeLearning,
    rng: &mut Generator,
) -> Result<LearnedForest> {
    config.validate()?;
    let mut chain = Chain::new(current.clone(), rho, config)?;
    while chain.evaluations < config.samples && chain.forest.dimension() > 1 {
        if chain.forest.is_tree() {
            chain.select_fittest();
            for _ in 0..config.generation {
                if chain.evaluations < config.samples {
                    chain.mutation(rng)?;
                }
            }
        } else {
            chain.gibbs_sampling(rng)?;
        }
    }
    Ok(chain.finish())
}

/// The state of the sampler: Z, ρ(Z), and what has been seen.
struct Chain<'c, F> {
    forest: Forest,
    log_likelihood: f64,
    rho: F,
    config: &'c TreeLearning,
    best: (Forest, f64),
    /// The likeliest tree, which need not be the likeliest forest.
    fittest: Option<(Forest, f64)>,
    evaluations: usize,
    samples: usize,
    counts: BTreeMap<Edge, usize>,
}

impl<'c, F: FnMut(&Forest) -> Result<f64>> Chain<'c, F> {
    fn new(forest: Forest, mut rho: F, config: &'c TreeLearning) -> Result<Self> {
        let log_likelihood = finite_or_impossible(rho(&forest)?);
        Ok(Self {
            best: (forest.clone(), log_likelihood),
            fittest: forest.is_tree().then(|| (forest.clone(), log_likelihood)),
            forest,
            log_likelihood,
            rho,
            config,
            evaluations: 1,
            samples: 0,
            counts: BTreeMap::new(),
        })
    }

    fn evaluate(&mut self, forest: &Forest) -> Result<f64> {
        let value = finite_or_impossible((self.rho)(forest)?);
        self.evaluations += 1;
        if self.config.log_posterior(forest, value)
            > self.config.log_posterior(&self.best.0, self.best.1)
        {
            self.best = (forest.clone(), value);
        }
        let fitter = |fittest: &(Forest, f64)| value > fittest.1;
        if forest.is_tree() && self.fittest.as_ref().is_none_or(fitter) {
            self.fittest = Some((forest.clone(), value));
        }
        Ok(value)
    }

    /// Draws an event with these log odds.
    fn draw(&self, log_odds: f64, rng: &mut Generator) -> bool {
        match self.config.edge_rule {
            EdgeRule::Sample => rng.random::<f64>() < probability(log_odds),
            EdgeRule::Greedy => log_odds >= 0.0,
        }
    }

    fn accept(&mut self, forest: Forest, log_likelihood: f64) {
        self.forest = forest;
        self.log_likelihood = log_likelihood;
    }

    fn count_sample(&mut self) {
        self.samples += 1;
        for &edge in self.forest.edges() {
            *self.counts.entry(edge).or_insert(0) += 1;
        }
    }

    /// Alg. 4, GIBBS-SAMPLING: one sweep over all pairs in random order.
    fn gibbs_sampling(&mut self, rng: &mut Generator) -> Result<()> {
        for edge in shuffled_pairs(self.forest.dimension(), rng)? {
            if self.evaluations >= self.config.samples || self.forest.is_tree() {
                break;
            }
            self.gibbs_step(edge, rng)?;
        }
        Ok(())
    }

    /// Draws Z_ij given the rest. An edge that would close a cycle has no choice but to be absent.
    fn gibbs_step(&mut self, edge: Edge, rng: &mut Generator) -> Result<()> {
        let mut other = self.forest.clone();
        if self.forest.contains(edge) {
            other.remove(edge)?;
            let absent = self.evaluate(&other)?;
            if !self.draw(self.config.log_odds(self.log_likelihood, absent), rng) {
                self.accept(other, absent);
            }
        } else if !self.forest.closes_cycle(edge) {
            other.add(edge)?;
            let present = self.evaluate(&other)?;
            if self.draw(self.config.log_odds(present, self.log_likelihood), rng) {
                self.accept(other, present);
            }
        } else {
            return Ok(());
        }
        self.count_sample();
        Ok(())
    }

    /// Starts a generation from the likeliest tree seen, if there is one.
    fn select_fittest(&mut self) {
        if let Some((forest, log_likelihood)) = self.fittest.clone() {
            self.accept(forest, log_likelihood);
        }
    }

    /// Alg. 5, MUTATION: takes a random edge out and draws whether a random pair across the cut is connected instead.
    fn mutation(&mut self, rng: &mut Generator) -> Result<()> {
        let edges = self.forest.edges();
        let removed = edges[rng.random_range(0..edges.len())];
        let (left, right) = self.forest.split(removed)?;
        let pick = |part: &[usize], rng: &mut Generator| part[rng.random_range(0..part.len())];
        let added = Edge::new(pick(&left, rng), pick(&right, rng))?;
        let mut mutated = self.forest.clone();
        mutated.remove(removed)?;
        mutated.add(added)?;
        let log_likelihood = self.evaluate(&mutated)?;
        // Both trees have D − 1 edges, so γ cancels.
        if self.draw(log_ratio(log_likelihood, self.log_likelihood), rng) {
            self.accept(mutated, log_likelihood);
        }
        self.count_sample();
        Ok(())
    }

    fn finish(self) -> LearnedForest {
        let samples = self.samples.max(1) as f64;
        LearnedForest {
            forest: self.best.0,
            log_likelihood: self.best.1,
            evaluations: self.evaluations,
            edge_frequencies: self
                .counts
                .into_iter()
                .map(|(edge, count)| (edge, count as f64 / samples))
                .collect(),
        }
    }
}

/// NaN and +∞ are not likelihoods: such a structure is as good as impossible.
pub(crate) fn finite_or_impossible(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::NEG_INFINITY }
}

pub(crate) fn shuffled_pairs(dimension: usize, rng: &mut Generator) -> Result<Vec<Edge>> {
    let mut pairs = Vec::with_capacity(dimension * (dimension - 1) / 2);
    for j in 1..dimension {
        for i in 0..j {
            pairs.push(Edge::new(i, j)?);
        }
    }
    pairs.shuffle(rng);
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::graph::enumeration::{all_pairs, chosen_pairs, enumerate_forests};
    use crate::markov_chain::{
        assert_agrees, average, deviations, draw, drift, largest, pearson, standard_errors,
    };
    use crate::stream::{Purpose, Stream};

    fn generator(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Structure)
    }

    fn config(edge_prior: f64) -> TreeLearning {
        TreeLearning { edge_prior, ..TreeLearning::paper() }
    }

    fn forest(dimension: usize, pairs: &[(usize, usize)]) -> Forest {
        let edges = pairs.iter().map(|&(i, j)| Edge::new(i, j).unwrap());
        Forest::from_edges(dimension, edges).unwrap()
    }

    /// The edges as bits, in the order of [`all_pairs`].
    fn mask(forest: &Forest) -> usize {
        let pairs = all_pairs(forest.dimension()).into_iter().enumerate();
        pairs.filter(|&(_, edge)| forest.contains(edge)).fold(0, |mask, (bit, _)| mask | 1 << bit)
    }

    /// A score for each forest, and where that forest is in a list of states.
    struct Table {
        pairs: Vec<Edge>,
        states: Vec<Forest>,
        /// ρ of each state.
        scores: Vec<f64>,
        /// The state of each mask.
        places: Vec<usize>,
    }

    impl Table {
        fn new(states: Vec<Forest>, mut score: impl FnMut(&Forest) -> f64) -> Self {
            let pairs = all_pairs(states[0].dimension());
            let mut places = vec![usize::MAX; 1 << pairs.len()];
            for (place, state) in states.iter().enumerate() {
                places[mask(state)] = place;
            }
            let scores = states.iter().map(&mut score).collect();
            Self { pairs, states, scores, places }
        }

        /// Scores between ±`size`, each forest its own: nothing about one edge follows from another.
        fn random(states: Vec<Forest>, size: f64, seed: u64) -> Self {
            let mut rng = generator(seed);
            Self::new(states, |_| rng.random_range(-size..size))
        }

        /// Edges that mostly like or dislike each other: {0,1} and {2,3} only together, {0,2} without either.
        fn interacting() -> Self {
            let mut rng = generator(99);
            let has = |forest: &Forest, i, j| forest.contains(Edge::new(i, j).unwrap());
            Self::new(enumerate_forests(4), |state| {
                let (a, b, c) = (has(state, 0, 1), has(state, 2, 3), has(state, 0, 2));
                let together = if a == b { 1.5 } else { -1.5 };
                let apart = if c && (a || b) { -1.5 } else { 1.0 };
                together + apart + rng.random_range(-0.5..0.5)
            })
        }

        fn place(&self, forest: &Forest) -> usize {
            self.places[mask(forest)]
        }

        fn score(&self, forest: &Forest) -> f64 {
            self.scores[self.place(forest)]
        }

        /// π ∝ γ^|E| (1−γ)^(pairs − |E|) e^ρ, straight from the definition.
        fn posterior(&self, gamma: f64) -> Vec<f64> {
            let pairs = self.pairs.len() as i32;
            let weight = |(state, score): (&Forest, &f64)| {
                let edges = state.edge_count() as i32;
                gamma.powi(edges) * (1.0 - gamma).powi(pairs - edges) * score.exp()
            };
            let weights: Vec<f64> = self.states.iter().zip(&self.scores).map(weight).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        }

        /// The transition matrix of a Gibbs step on this pair.
        fn gibbs_matrix(&self, pair: Edge, config: &TreeLearning) -> Vec<Vec<f64>> {
            let row = |(place, state): (usize, &Forest)| {
                let mut row = vec![0.0; self.states.len()];
                let mut with = state.clone();
                let mut without = state.clone();
                if state.contains(pair) {
                    without.remove(pair).unwrap();
                } else if with.add(pair).is_err() {
                    // It would close a cycle.
                    row[place] = 1.0;
                    return row;
                }
                let presence =
                    probability(config.log_odds(self.score(&with), self.score(&without)));
                row[self.place(&with)] += presence;
                row[self.place(&without)] += 1.0 - presence;
                row
            };
            self.states.iter().enumerate().map(row).collect()
        }

        /// The transition matrix of a mutation, if all states are trees.
        fn mutation_matrix(&self) -> Vec<Vec<f64>> {
            let row = |(place, state): (usize, &Forest)| {
                let mut row = vec![0.0; self.states.len()];
                for (mutated, proposal) in mutants(state) {
                    let presence = probability(log_ratio(self.score(&mutated), self.scores[place]));
                    row[self.place(&mutated)] += proposal * presence;
                    row[place] += proposal * (1.0 - presence);
                }
                row
            };
            self.states.iter().enumerate().map(row).collect()
        }
    }

    /// Every tree that a mutation can propose, with its probability: one of the edges, then one variable of each part.
    fn mutants(tree: &Forest) -> Vec<(Forest, f64)> {
        let mut found: Vec<(Forest, f64)> = Vec::new();
        for &removed in tree.edges() {
            let mut parted = tree.clone();
            parted.remove(removed).unwrap();
            let across: Vec<Forest> = all_pairs(tree.dimension())
                .into_iter()
                .filter_map(|added| {
                    let mut mutated = parted.clone();
                    mutated.add(added).ok().map(|()| mutated)
                })
                .collect();
            let share = 1.0 / (tree.edge_count() * across.len()) as f64;
            for mutated in across {
                match found.iter_mut().find(|(known, _)| *known == mutated) {
                    Some((_, probability)) => *probability += share,
                    None => found.push((mutated, share)),
                }
            }
        }
        found
    }

    fn trees(dimension: usize) -> Vec<Forest> {
        let forests = enumerate_forests(dimension).into_iter();
        forests.filter(Forest::is_tree).collect()
    }

    /// How often each state was visited by Gibbs steps on random pairs, starting from no edges.
    fn gibbs_counts(table: &Table, config: &TreeLearning, steps: usize, seed: u64) -> Vec<usize> {
        let mut rng = generator(seed);
        let start = Forest::empty(table.states[0].dimension());
        let mut chain = Chain::new(start, |f: &Forest| Ok(table.score(f)), config).unwrap();
        let mut counts = vec![0; table.states.len()];
        for step in 0..steps + 1_000 {
            let pair = table.pairs[rng.random_range(0..table.pairs.len())];
            chain.gibbs_step(pair, &mut rng).unwrap();
            // The start is forgotten first.
            if step >= 1_000 {
                counts[table.place(&chain.forest)] += 1;
            }
        }
        counts
    }

    fn gibbs_tables() -> Vec<Table> {
        vec![
            Table::random(enumerate_forests(3), 1.5, 1),
            Table::random(enumerate_forests(4), 1.5, 2),
            Table::interacting(),
        ]
    }

    #[test]
    fn probability_of_presence_is_the_posterior() {
        for gamma in [0.01, 0.2, 0.5, 0.9] {
            let config = config(gamma);
            for (present, absent) in [(0.0, 0.0), (1.5, -0.5), (-2.0, 1.0), (-700.0, -701.0)] {
                let found = probability(config.log_odds(present, absent));
                // Taking the larger score out of both keeps the direct formula within range.
                let top = f64::max(present, absent);
                let with = gamma * f64::exp(present - top);
                let without = (1.0 - gamma) * f64::exp(absent - top);
                assert!((found - with / (with + without)).abs() < 1e-15);
            }
            // A score that cannot be had is never chosen, nor is a hopeless one; no overflow on the way.
            let never = f64::NEG_INFINITY;
            assert_eq!(probability(config.log_odds(3.0, never)), 1.0);
            assert_eq!(probability(config.log_odds(never, 3.0)), 0.0);
            assert_eq!(probability(config.log_odds(1e300, -1e300)), 1.0);
            assert_eq!(probability(config.log_odds(-1e300, 1e300)), 0.0);
            // If neither can be scored, the prior is all there is.
            assert!((probability(config.log_odds(never, never)) - gamma).abs() < 1e-15);
        }
    }

    #[test]
    fn gibbs_step_keeps_the_posterior_exactly() {
        for table in gibbs_tables() {
            for gamma in [0.5, 0.2] {
                let config = config(gamma);
                let posterior = table.posterior(gamma);
                for &pair in &table.pairs {
                    let matrix = table.gibbs_matrix(pair, &config);
                    assert!(drift(&posterior, &matrix) < 1e-12);
                }
                // The wrong prior must be noticed, or the above means nothing.
                let other = table.posterior(0.3);
                let matrix = table.gibbs_matrix(table.pairs[0], &config);
                assert!(drift(&other, &matrix) > 1e-3);
            }
        }
    }

    #[test]
    fn gibbs_chain_visits_forests_as_often_as_the_posterior_says() {
        const STEPS: usize = 300_000;
        for (number, table) in gibbs_tables().iter().enumerate() {
            for gamma in [0.5, 0.2] {
                let config = config(gamma);
                let posterior = table.posterior(gamma);
                let matrices: Vec<_> =
                    table.pairs.iter().map(|&pair| table.gibbs_matrix(pair, &config)).collect();
                let errors = standard_errors(&posterior, &average(&matrices), STEPS);
                let counts = gibbs_counts(table, &config, STEPS, number as u64);
                assert_agrees(&deviations(&counts, &posterior, &errors));

                // The published code's rule is another distribution altogether, and this test can tell.
                let greedy = TreeLearning { edge_rule: EdgeRule::Greedy, ..config };
                let counts = gibbs_counts(table, &greedy, STEPS, number as u64);
                let off = largest(&deviations(&counts, &posterior, &errors));
                assert!(off > 50.0, "greedy is only {off} standard errors off");
            }
        }
    }

    /// Starts from draws of the posterior itself are independent, so that after any number of steps the counts must be
    /// multinomial: Pearson's statistic has mean and variance (n − 1) and 2(n − 1) without any approximation of how
    /// fast the chain mixes.
    #[test]
    fn gibbs_sweeps_keep_draws_of_the_posterior_what_they_are() {
        const DRAWS: usize = 40_000;
        let statistic = |rule: EdgeRule| {
            let gamma = 0.2;
            let config = TreeLearning { edge_rule: rule, ..config(gamma) };
            let table = Table::interacting();
            let posterior = table.posterior(gamma);
            let mut rng = generator(7);
            let start = Forest::empty(4);
            let mut chain = Chain::new(start, |f: &Forest| Ok(table.score(f)), &config).unwrap();
            let mut counts = vec![0; posterior.len()];
            for _ in 0..DRAWS {
                let place = draw(&posterior, &mut rng);
                chain.accept(table.states[place].clone(), table.scores[place]);
                for pair in shuffled_pairs(4, &mut rng).unwrap() {
                    chain.gibbs_step(pair, &mut rng).unwrap();
                }
                counts[table.place(&chain.forest)] += 1;
            }
            pearson(&counts, &posterior)
        };
        let sampled = statistic(EdgeRule::Sample);
        assert!(sampled.abs() < 4.0, "{sampled} standard deviations");
        let greedy = statistic(EdgeRule::Greedy);
        assert!(greedy > 100.0, "only {greedy} standard deviations");
    }

    #[test]
    fn gibbs_step_leaves_a_pair_that_closes_a_cycle_alone() {
        let triangle = forest(4, &[(0, 1), (1, 2)]);
        let config = config(0.5);
        let mut chain = Chain::new(triangle.clone(), |_: &Forest| Ok(0.0), &config).unwrap();
        let closing = Edge::new(0, 2).unwrap();
        chain.gibbs_step(closing, &mut generator(1)).unwrap();
        assert_eq!(chain.forest, triangle);
        assert_eq!((chain.evaluations, chain.samples), (1, 0));
    }

    #[test]
    fn greedy_takes_the_likelier_and_draws_no_numbers() {
        let config = TreeLearning { edge_rule: EdgeRule::Greedy, ..config(0.2) };
        let chain = Chain::new(Forest::empty(2), |_: &Forest| Ok(0.0), &config).unwrap();
        let mut rng = generator(1);
        // γ/(1−γ) = 1/4.
        let even = 4.0_f64.ln();
        assert!(chain.draw(config.log_odds(even + 1e-9, 0.0), &mut rng));
        assert!(!chain.draw(config.log_odds(even - 1e-9, 0.0), &mut rng));
        assert_eq!(rng.random::<u64>(), generator(1).random::<u64>());
    }

    #[test]
    fn mutation_keeps_the_posterior_over_trees() {
        const STEPS: usize = 200_000;
        let table = Table::random(trees(4), 1.5, 3);
        assert_eq!(table.states.len(), 16, "Cayley's 4²");
        // All trees have as many edges, so that γ is of no account.
        let posterior = table.posterior(0.2);
        let config = config(0.2);
        let matrix = table.mutation_matrix();
        assert!(drift(&posterior, &matrix) < 1e-12);

        let errors = standard_errors(&posterior, &matrix, STEPS);
        let run = |config: &TreeLearning| {
            let mut rng = generator(4);
            let start = table.states[0].clone();
            let mut chain = Chain::new(start, |f: &Forest| Ok(table.score(f)), config).unwrap();
            let mut counts = vec![0; table.states.len()];
            for step in 0..STEPS + 1_000 {
                chain.mutation(&mut rng).unwrap();
                assert!(chain.forest.is_tree());
                if step >= 1_000 {
                    counts[table.place(&chain.forest)] += 1;
                }
            }
            deviations(&counts, &posterior, &errors)
        };
        assert_agrees(&run(&config));
        let greedy = TreeLearning { edge_rule: EdgeRule::Greedy, ..config };
        assert!(largest(&run(&greedy)) > 50.0);
    }

    #[test]
    fn mutation_proposes_uniformly_and_accepts_by_the_odds() {
        const DRAWS: usize = 100_000;
        // Parts of all sizes: 1 + 5, 2 + 4, 3 + 3.
        let tree = forest(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)]);
        let score = |f: &Forest| ((mask(f) * 2_654_435_761) % 1_000) as f64 / 300.0;
        let config = config(0.3);
        let proposed = RefCell::new(tree.clone());
        let rho = |f: &Forest| {
            proposed.replace(f.clone());
            Ok(score(f))
        };
        let mut chain = Chain::new(tree.clone(), rho, &config).unwrap();
        let mut rng = generator(5);
        let (mut proposals, mut accepted) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..DRAWS {
            chain.accept(tree.clone(), score(&tree));
            chain.mutation(&mut rng).unwrap();
            let proposed = proposed.borrow().clone();
            assert!(chain.forest == proposed || chain.forest == tree);
            let key = mask(&proposed);
            *proposals.entry(key).or_insert(0_usize) += 1;
            *accepted.entry(key).or_insert(0_usize) += usize::from(chain.forest == proposed);
        }
        let expected = mutants(&tree);
        assert_eq!(
            proposals.keys().copied().collect::<BTreeSet<_>>(),
            expected.iter().map(|(f, _)| mask(f)).collect(),
            "all are proposed, and nothing else"
        );
        let binomial = |count: usize, of: usize, probability: f64| {
            let error = (of as f64 * probability * (1.0 - probability)).sqrt();
            (count as f64 - of as f64 * probability) / error
        };
        let (mut frequency, mut acceptance) = (Vec::new(), Vec::new());
        for (mutated, probability) in expected {
            let count = proposals[&mask(&mutated)];
            frequency.push(binomial(count, DRAWS, probability));
            if mutated != tree {
                let (new, old) = (score(&mutated).exp(), score(&tree).exp());
                let odds = new / old;
                acceptance.push(binomial(accepted[&mask(&mutated)], count, odds / (1.0 + odds)));
            }
        }
        assert!(acceptance.len() > 20, "{} proposals", acceptance.len());
        assert_agrees(&frequency);
        assert_agrees(&acceptance);
    }

    #[test]
    fn a_generation_descends_from_the_likeliest_tree_even_below_a_likelier_forest() {
        let start = forest(3, &[(0, 1), (1, 2)]);
        let config = config(0.5);
        let path = |middle: usize| {
            let others: Vec<usize> = (0..3).filter(|&i| i != middle).collect();
            forest(3, &[(middle, others[0]), (middle, others[1])])
        };
        let rho = |f: &Forest| {
            let fit = if *f == path(2) { 5.0 } else { 1.0 };
            Ok(if f.is_tree() { fit } else { 9.0 })
        };
        let mut chain = Chain::new(start.clone(), rho, &config).unwrap();
        for other in [Forest::empty(3), path(2), path(0)] {
            chain.evaluate(&other).unwrap();
        }
        chain.select_fittest();
        assert_eq!((&chain.forest, chain.log_likelihood), (&path(2), 5.0));
        assert_eq!(chain.best, (Forest::empty(3), 9.0));
    }

    /// What is evaluated while learning: forests and their scores.
    struct Recorded {
        learned: LearnedForest,
        evaluated: Vec<(Forest, f64)>,
    }

    fn learn(
        start: &Forest,
        rho: impl Fn(&Forest) -> f64,
        config: &TreeLearning,
        seed: u64,
    ) -> Recorded {
        let mut evaluated = Vec::new();
        let recorded = |f: &Forest| {
            evaluated.push((f.clone(), rho(f)));
            Ok(rho(f))
        };
        let learned = tree_learning(start, recorded, config, &mut generator(seed)).unwrap();
        Recorded { learned, evaluated }
    }

    /// A score without structure, between 0 and 10.
    fn hashed(f: &Forest) -> f64 {
        let mix = |hash: u64, edge: &Edge| {
            let number = (edge.low() * 131 + edge.high() + 1) as u64;
            (hash ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        };
        f.edges().iter().fold(1, mix) as f64 / u64::MAX as f64 * 10.0
    }

    #[test]
    fn learning_counts_evaluations_and_returns_the_best_of_them() {
        for samples in [1, 2, 3, 7, 50, 251] {
            for dimension in [2, 3, 6, 12] {
                for edge_rule in [EdgeRule::Sample, EdgeRule::Greedy] {
                    let config = TreeLearning { samples, edge_rule, ..TreeLearning::paper() };
                    let start = Forest::empty(dimension);
                    let found = learn(&start, hashed, &config, samples as u64);
                    assert_eq!(found.evaluated.len(), samples);
                    assert_eq!(found.learned.evaluations, samples);
                    let best = found.evaluated.iter().map(|e| e.1).fold(f64::MIN, f64::max);
                    assert_eq!(found.learned.log_likelihood, best);
                    assert_eq!(hashed(&found.learned.forest), best);
                    assert_eq!(found.evaluated[0].0, start);
                }
            }
        }
    }

    #[test]
    fn learning_without_samples_only_scores_the_start() {
        // Its log-likelihood has to be known, so that one evaluation is made even if none is allowed.
        let start = forest(4, &[(1, 2)]);
        for samples in [0, 1] {
            let config = TreeLearning { samples, ..TreeLearning::paper() };
            let found = learn(&start, hashed, &config, 1);
            assert_eq!(found.evaluated.len(), 1);
            assert_eq!(
                found.learned,
                LearnedForest {
                    forest: start.clone(),
                    log_likelihood: hashed(&start),
                    evaluations: 1,
                    edge_frequencies: Vec::new(),
                }
            );
        }
    }

    #[test]
    fn learning_one_or_two_variables_ends() {
        let config = TreeLearning::paper();
        let one = learn(&Forest::empty(1), hashed, &config, 1).learned;
        assert_eq!((one.forest, one.evaluations), (Forest::empty(1), 1));
        assert!(one.edge_frequencies.is_empty());

        let pair = Edge::new(0, 1).unwrap();
        for (weight, expected) in [(3.0, 1), (-3.0, 0)] {
            for start in [Forest::empty(2), forest(2, &[(0, 1)])] {
                let rho = |f: &Forest| weight * f.edge_count() as f64;
                let two = learn(&start, rho, &config, 1).learned;
                assert_eq!(two.evaluations, config.samples);
                let trapped = weight < 0.0 && start.is_tree();
                // A tree is only mutated, and the one tree of two variables only into itself.
                let edges = if trapped { 1 } else { expected };
                assert_eq!(two.forest.edge_count(), edges);
                if start.is_tree() {
                    assert_eq!(two.edge_frequencies, [(pair, 1.0)]);
                }
            }
        }
    }

    #[test]
    fn scores_that_are_not_likelihoods_end_with_the_start() {
        for score in [f64::NEG_INFINITY, f64::NAN, f64::INFINITY] {
            for start in [Forest::empty(5), forest(5, &[(0, 1), (1, 2), (2, 3), (3, 4)])] {
                let found = learn(&start, |_| score, &TreeLearning::paper(), 1).learned;
                assert_eq!(found.forest, start);
                assert_eq!(found.log_likelihood, f64::NEG_INFINITY);
                assert_eq!(found.evaluations, 250);
            }
        }
    }

    #[test]
    fn a_structure_that_cannot_be_scored_is_never_moved_to() {
        // Variable 0 must stay alone: with it the score is anything but a likelihood.
        let rho = |f: &Forest| match (f.is_isolated(0), f.edge_count() % 3) {
            (true, _) => 0.0,
            (false, 0) => f64::NAN,
            (false, 1) => f64::INFINITY,
            (false, _) => f64::NEG_INFINITY,
        };
        let found = learn(&Forest::empty(5), rho, &TreeLearning::paper(), 1).learned;
        assert!(found.forest.is_isolated(0));
        assert!(!found.edge_frequencies.is_empty());
        assert!(found.edge_frequencies.iter().all(|(edge, _)| edge.low() > 0));
    }

    #[test]
    fn an_error_of_the_score_ends_the_search() {
        let refused = Error::NotPositiveDefinite { pivot: 3 };
        // At the start, among the Gibbs steps, and among the mutations.
        for fails_at in [1, 4, 200] {
            let calls = Cell::new(0);
            let rho = |f: &Forest| {
                calls.set(calls.get() + 1);
                if calls.get() == fails_at {
                    return Err(refused.clone());
                }
                Ok(f.edge_count() as f64)
            };
            let config = TreeLearning::paper();
            let found = tree_learning(&Forest::empty(4), rho, &config, &mut generator(1));
            assert_eq!(found, Err(refused.clone()));
            assert_eq!(calls.get(), fails_at);
        }
    }

    #[test]
    fn frequencies_are_shares_of_the_samples() {
        // The same steps taken one by one, with every state written down.
        let config = TreeLearning { samples: 400, generation: 7, ..TreeLearning::paper() };
        let rho = |f: &Forest| 0.3 * hashed(f) + 0.5 * f.edge_count() as f64;
        let found = learn(&Forest::empty(6), rho, &config, 11).learned;

        let mut rng = generator(11);
        let mut states = Vec::new();
        let score = |f: &Forest| Ok(rho(f));
        let mut chain = Chain::new(Forest::empty(6), score, &config).unwrap();
        while !chain.forest.is_tree() {
            for pair in shuffled_pairs(6, &mut rng).unwrap() {
                let closing = !chain.forest.contains(pair) && chain.forest.closes_cycle(pair);
                if !closing && !chain.forest.is_tree() {
                    chain.gibbs_step(pair, &mut rng).unwrap();
                    states.push(chain.forest.clone());
                }
            }
        }
        assert!(states.len() < 350, "mutations must come into it");
        for mutation in 0..400 - 1 - states.len() {
            if mutation % 7 == 0 {
                chain.select_fittest();
            }
            chain.mutation(&mut rng).unwrap();
            states.push(chain.forest.clone());
        }
        assert_eq!(states.len(), 399);
        let seen: BTreeSet<Edge> = states.iter().flat_map(|s| s.edges().to_vec()).collect();
        let share = |edge: Edge| {
            let with = states.iter().filter(|state| state.contains(edge)).count();
            (edge, with as f64 / 399.0)
        };
        let expected: Vec<(Edge, f64)> = seen.into_iter().map(share).collect();
        assert!(expected.len() > 5);
        assert_eq!(found.edge_frequencies, expected);
    }

    #[test]
    fn same_seed_same_result() {
        let config = TreeLearning::paper();
        let start = Forest::empty(7);
        let of = |seed| learn(&start, hashed, &config, seed);
        let (first, again, other) = (of(1), of(1), of(2));
        assert_eq!(first.learned, again.learned);
        assert_eq!(first.evaluated, again.evaluated);
        assert_ne!(first.evaluated, other.evaluated);
    }

    #[test]
    fn finds_the_heaviest_tree() {
        let config = TreeLearning { samples: 4_000, ..TreeLearning::paper() };
        for seed in 0..5 {
            let mut rng = generator(1_000 + seed);
            let weights: BTreeMap<Edge, f64> =
                all_pairs(8).into_iter().map(|pair| (pair, rng.random_range(0.0..10.0))).collect();
            let rho = |f: &Forest| f.edges().iter().map(|edge| weights[edge]).sum::<f64>();
            // Kruskal: the heaviest edges first, as long as they close no cycle.
            let mut pairs = all_pairs(8);
            pairs.sort_by(|a, b| weights[b].total_cmp(&weights[a]));
            let mut heaviest = Forest::empty(8);
            for pair in pairs {
                if !heaviest.closes_cycle(pair) {
                    heaviest.add(pair).unwrap();
                }
            }
            let found = learn(&Forest::empty(8), rho, &config, seed).learned;
            assert_eq!(found.forest, heaviest);
            assert!((found.log_likelihood - rho(&heaviest)).abs() < 1e-9);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for edge_prior in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
            let refused = config(edge_prior).validate().unwrap_err();
            assert!(refused.to_string().contains("edge_prior"), "{refused}");
            let never = |_: &Forest| -> Result<f64> { panic!("nothing is scored") };
            let started =
                tree_learning(&Forest::empty(3), never, &config(edge_prior), &mut generator(1));
            assert!(started.is_err());
        }
        let endless = TreeLearning { generation: 0, ..TreeLearning::paper() };
        let refused = endless.validate().unwrap_err();
        assert!(refused.to_string().contains("generation"), "{refused}");
        assert!(config(1e-12).validate().is_ok());
    }

    #[test]
    fn pairs_are_shuffled_and_complete() {
        let mut rng = generator(1);
        let shuffled = shuffled_pairs(6, &mut rng).unwrap();
        assert_ne!(shuffled, all_pairs(6));
        let mut sorted = shuffled.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all_pairs(6));
        assert_ne!(shuffled_pairs(6, &mut rng).unwrap(), shuffled);
        assert!(shuffled_pairs(1, &mut rng).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_settings_and_scores_give_a_forest(
            dimension in 1_usize..8,
            chosen in any::<u32>(),
            samples in 0_usize..80,
            generation in 1_usize..9,
            edge_prior in 0.01..0.99_f64,
            greedy in any::<bool>(),
            scale in prop_oneof![Just(0.0), -30.0..30.0_f64],
            impossible in 0_usize..4,
            seed in any::<u64>(),
        ) {
            let mut start = Forest::empty(dimension);
            for pair in chosen_pairs(dimension, chosen) {
                if !start.closes_cycle(pair) {
                    start.add(pair).unwrap();
                }
            }
            let config = TreeLearning {
                samples,
                edge_prior,
                edge_rule: if greedy { EdgeRule::Greedy } else { EdgeRule::Sample },
                generation,
            };
            // Some scores are no numbers.
            let rho = |f: &Forest| match (hashed(f) * 100.0) as usize % 10 < impossible {
                true => f64::NAN,
                false => scale * hashed(f),
            };
            let found = learn(&start, rho, &config, seed);
            let learned = found.learned;
            prop_assert_eq!(learned.forest.dimension(), dimension);
            prop_assert!(learned.forest.as_graph().is_forest());
            for (evaluated, _) in &found.evaluated {
                prop_assert_eq!(evaluated.dimension(), dimension);
                prop_assert!(evaluated.as_graph().is_forest());
            }
            let expected = if dimension == 1 { 1 } else { samples.max(1) };
            prop_assert_eq!(learned.evaluations, expected);
            prop_assert_eq!(found.evaluated.len(), expected);
            // The best by likelihood and prior, which with γ = ½ is the text's best by likelihood.
            let earned = (edge_prior / (1.0 - edge_prior)).ln();
            let posterior = |forest: &Forest, rho: f64| {
                finite_or_impossible(rho) + earned * forest.edge_count() as f64
            };
            let best = found.evaluated.iter().map(|e| posterior(&e.0, e.1));
            prop_assert_eq!(
                posterior(&learned.forest, learned.log_likelihood),
                best.fold(f64::NEG_INFINITY, f64::max)
            );
            prop_assert_eq!(finite_or_impossible(rho(&learned.forest)), learned.log_likelihood);
            let edges: Vec<Edge> = learned.edge_frequencies.iter().map(|f| f.0).collect();
            prop_assert!(edges.is_sorted());
            let shares = learned.edge_frequencies.iter().map(|f| f.1);
            prop_assert!(shares.clone().all(|share| share > 0.0 && share <= 1.0));
            // No forest has more than D − 1 edges, so that on average there are no more either.
            prop_assert!(shares.sum::<f64>() <= (dimension - 1) as f64 + 1e-9);
        }
    }
}
