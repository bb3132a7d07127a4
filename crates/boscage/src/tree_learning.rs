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
    /// The paper's S = 250, γ = ½.
    fn default() -> Self {
        Self {
            samples: 250,
            edge_prior: 0.5,
            edge_rule: EdgeRule::Sample,
            generation: 5,
        }
    }
}

impl TreeLearning {
    /// Refuses an edge prior outside of (0, 1).
    pub fn validate(&self) -> Result<()> {
        if self.edge_prior > 0.0 && self.edge_prior < 1.0 {
            Ok(())
        } else {
            Err(Error::InvalidSetting {
                setting: "edge_prior",
                value: self.edge_prior.to_string(),
                reason: "it is a probability strictly between 0 and 1",
            })
        }
    }
}

/// What [`tree_learning`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedForest {
    /// The likeliest of all forests whose likelihood was evaluated.
    pub forest: Forest,
    /// Its ρ.
    pub log_likelihood: f64,
    /// How many likelihoods were evaluated.
    pub evaluations: usize,
    /// For every edge that was ever present, the share of the samples in which it was: how sure we are of it.
    pub edge_frequencies: Vec<(Edge, f64)>,
}

/// Alg. 3, TREE-LEARNING: S samples from Z = `current` on; returns the likeliest forest seen.
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
    evaluations: usize,
    samples: usize,
    counts: BTreeMap<Edge, usize>,
}

impl<'c, F: FnMut(&Forest) -> Result<f64>> Chain<'c, F> {
    fn new(forest: Forest, mut rho: F, config: &'c TreeLearning) -> Result<Self> {
        let log_likelihood = finite_or_impossible(rho(&forest)?);
        Ok(Self {
            best: (forest.clone(), log_likelihood),
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
        if value > self.best.1 {
            self.best = (forest.clone(), value);
        }
        Ok(value)
    }

    /// Draws whether an edge is present, from the likelihoods with and without it.
    fn draw(&self, present: f64, absent: f64, rng: &mut Generator) -> bool {
        let gamma = self.config.edge_prior;
        let mut log_odds = (gamma / (1.0 - gamma)).ln() + (present - absent);
        if log_odds.is_nan() {
            // Neither can be scored.
            log_odds = 0.0;
        }
        match self.config.edge_rule {
            EdgeRule::Sample => rng.random::<f64>() < 1.0 / (1.0 + (-log_odds).exp()),
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
            if !self.draw(self.log_likelihood, absent, rng) {
                self.accept(other, absent);
            }
        } else if !self.forest.closes_cycle(edge) {
            other.add(edge)?;
            let present = self.evaluate(&other)?;
            if self.draw(present, self.log_likelihood, rng) {
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
        if self.best.0.is_tree() {
            let (forest, log_likelihood) = self.best.clone();
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
        let present = self.evaluate(&mutated)?;
        let absent = self.log_likelihood;
        if self.draw(present, absent, rng) {
            self.accept(mutated, present);
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
fn finite_or_impossible(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::NEG_INFINITY }
}

fn shuffled_pairs(dimension: usize, rng: &mut Generator) -> Result<Vec<Edge>> {
    let mut pairs = Vec::with_capacity(dimension * (dimension - 1) / 2);
    for j in 1..dimension {
        for i in 0..j {
            pairs.push(Edge::new(i, j)?);
        }
    }
    pairs.shuffle(rng);
    Ok(pairs)
}
