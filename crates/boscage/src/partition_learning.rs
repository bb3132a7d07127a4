//! Learning disjoint groups of variables by Gibbs sampling of each variable's group.
//!
//! Sources: Kandasamy, Schneider and Póczos, *High Dimensional Bayesian Optimisation and Bandits via Additive Models*, ICML
//! 2015, for the model; Wang, Li, Jegelka and Kohli, *Batched High-dimensional Bayesian Optimization via Structural Kernel
//! Learning*, ICML 2017, for the sampler. The paper calls it Graph No-Overlap.
//!
//! Notation: z_i the group of variable i, one of M = D labels; θ ~ Dirichlet(α, …, α) the shares of the groups, integrated
//! out: P(z_i = m | the others, data) ∝ (α + size of group m without i) e^ρ. The draw is the largest of log weight plus Gumbel
//! noise, which is a draw from just these probabilities. A group may have at most `max_group_size` variables.
//!
//! Cost: one likelihood for each group that a variable could join, S in all: some S/D variables are drawn anew in a search. With
//! more groups than S not a single variable is; what was evaluated still counts for the best that is returned.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::graph::{Component, Edge, Graph, UnionFind};
use crate::stream::Generator;
use crate::tree_learning::{EdgeRule, finite_or_impossible};

/// Settings of [`partition_learning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PartitionLearning {
    /// S: how many likelihoods may be evaluated.
    pub samples: usize,
    /// α: how evenly variables spread over groups; large values spread them evenly over all D labels.
    pub concentration: f64,
    /// Largest number of variables in a group; none for no limit, with cost exponential in the size.
    pub max_group_size: Option<usize>,
    /// How groups are chosen.
    pub edge_rule: EdgeRule,
}

impl Default for PartitionLearning {
    /// S = 250, α = 1, and groups of at most 5 variables.
    fn default() -> Self {
        Self {
            samples: 250,
            concentration: 1.0,
            max_group_size: Some(5),
            edge_rule: EdgeRule::Sample,
        }
    }
}

impl PartitionLearning {
    /// Refuses an α that is not positive, and groups without variables.
    pub fn validate(&self) -> Result<()> {
        if !(self.concentration > 0.0 && self.concentration.is_finite()) {
            return Err(Error::InvalidSetting {
                setting: "concentration",
                value: self.concentration.to_string(),
                reason: "it must be positive and finite",
            });
        }
        if self.max_group_size == Some(0) {
            return Err(Error::InvalidSetting {
                setting: "max_group_size",
                value: "0".to_string(),
                reason: "a group has at least 1 variable",
            });
        }
        Ok(())
    }

    /// log P(z), up to a constant, of a partition into these groups: summed over all ways of labelling the groups.
    fn log_prior(&self, groups: &[Vec<usize>], dimension: usize) -> f64 {
        let alpha = self.concentration;
        // M (M − 1) … (M − k + 1) labellings, each with ∏ Γ(α + size) / Γ(α).
        let labels: f64 = (0..groups.len()).map(|used| ((dimension - used) as f64).ln()).sum();
        let sizes = groups.iter().flat_map(|group| 0..group.len());
        labels + sizes.map(|taken| (alpha + taken as f64).ln()).sum::<f64>()
    }
}

/// What [`partition_learning`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedPartition {
    /// The groups with the highest posterior of all that were evaluated: each sorted, in the order of their first variables.
    pub groups: Vec<Component>,
    /// Its ρ.
    pub log_likelihood: f64,
    /// How many likelihoods were evaluated.
    pub evaluations: usize,
    /// For every pair that was ever in one group, the share of the samples in which it was.
    pub edge_frequencies: Vec<(Edge, f64)>,
}

/// The connected parts of a graph, in the order of their first variables: its groups, if its parts are cliques.
pub fn groups_of(graph: &Graph) -> Vec<Component> {
    let dimension = graph.dimension();
    let mut sets = UnionFind::new(dimension);
    for edge in graph.edges() {
        sets.union(edge.low(), edge.high());
    }
    let mut place = vec![usize::MAX; dimension];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in 0..dimension {
        let root = sets.find(i);
        if place[root] == usize::MAX {
            place[root] = groups.len();
            groups.push(Vec::new());
        }
        groups[place[root]].push(i);
    }
    groups.into_iter().filter_map(|group| Component::new(group).ok()).collect()
}

/// Gibbs sampling from the groups `current` on, which must have each of the variables once; returns the partition with the
/// highest posterior seen. If a group is larger than allowed, the search begins with every variable by itself.
///
/// `rho` may return −∞ (a structure that cannot be scored is then never chosen over one that can); an error ends the search.
pub fn partition_learning(
    current: &[Component],
    rho: impl FnMut(Vec<Component>) -> Result<f64>,
    config: &PartitionLearning,
    rng: &mut Generator,
) -> Result<LearnedPartition> {
    config.validate()?;
    let mut chain = Chain::new(current, rho, config)?;
    let mut order: Vec<usize> = (0..chain.dimension).collect();
    while chain.has_choices() && chain.evaluations < config.samples {
        order.shuffle(rng);
        for &variable in &order {
            if chain.evaluations >= config.samples {
                break;
            }
            chain.gibbs_step(variable, rng)?;
        }
    }
    chain.finish()
}

/// A partition that differs from the present one by where a single variable is.
struct Place {
    groups: Vec<Vec<usize>>,
    log_likelihood: f64,
    /// log P(z_i = m | the others), up to a constant; summed over the labels that make the same partition.
    log_prior: f64,
}

/// The state of the sampler: the groups, their ρ, and what has been seen.
struct Chain<'c, F> {
    /// Each sorted, in the order of their first variables.
    groups: Vec<Vec<usize>>,
    log_likelihood: f64,
    dimension: usize,
    rho: F,
    config: &'c PartitionLearning,
    best: (Vec<Vec<usize>>, f64),
    evaluations: usize,
    samples: usize,
    counts: BTreeMap<Edge, usize>,
}

impl<'c, F: FnMut(Vec<Component>) -> Result<f64>> Chain<'c, F> {
    fn new(current: &[Component], mut rho: F, config: &'c PartitionLearning) -> Result<Self> {
        let mut groups: Vec<Vec<usize>> =
            current.iter().map(|group| group.variables().to_vec()).collect();
        groups.sort_unstable();
        let mut all = groups.concat();
        all.sort_unstable();
        let dimension = all.len();
        if all.into_iter().ne(0..dimension) {
            return Err(Error::InvalidStructure {
                reason: "groups must have each variable exactly once".to_string(),
            });
        }
        if groups.iter().any(|group| group.len() > config.max_group_size.unwrap_or(dimension)) {
            groups = (0..dimension).map(|i| vec![i]).collect();
        }
        let log_likelihood = finite_or_impossible(rho(to_components(&groups)?)?);
        Ok(Self {
            best: (groups.clone(), log_likelihood),
            groups,
            log_likelihood,
            dimension,
            rho,
            config,
            evaluations: 1,
            samples: 0,
            counts: BTreeMap::new(),
        })
    }

    fn largest_group(&self) -> usize {
        self.config.max_group_size.unwrap_or(self.dimension)
    }

    /// Whether there is more than one partition.
    fn has_choices(&self) -> bool {
        self.dimension > 1 && self.largest_group() > 1
    }

    fn evaluate(&mut self, groups: &[Vec<usize>]) -> Result<f64> {
        let value = finite_or_impossible((self.rho)(to_components(groups)?)?);
        self.evaluations += 1;
        let posterior = |groups: &[Vec<usize>], value: f64| {
            self.config.log_prior(groups, self.dimension) + value
        };
        if posterior(groups, value) > posterior(&self.best.0, self.best.1) {
            self.best = (groups.to_vec(), value);
        }
        Ok(value)
    }

    /// Every partition that the variable can be in given the others: with each group that has room, and by itself. None if
    /// the likelihoods do not suffice for all of them.
    fn places(&mut self, variable: usize) -> Result<Option<Vec<Place>>> {
        let mut others = self.groups.clone();
        for group in &mut others {
            group.retain(|&i| i != variable);
        }
        others.retain(|group| !group.is_empty());
        // A group of its own has a label that no other group has; all those labels make the same partition.
        let free_labels = (self.dimension - others.len()) as f64;
        let mut places = Vec::with_capacity(others.len() + 1);
        for place in 0..=others.len() {
            let mut groups = others.clone();
            let weight = match groups.get_mut(place) {
                Some(group) if group.len() >= self.largest_group() => continue,
                Some(group) => {
                    let at = group.partition_point(|&i| i < variable);
                    group.insert(at, variable);
                    self.config.concentration + (group.len() - 1) as f64
                }
                None => {
                    groups.push(vec![variable]);
                    self.config.concentration * free_labels
                }
            };
            groups.sort_unstable();
            let log_likelihood = if groups == self.groups {
                self.log_likelihood
            } else if self.evaluations >= self.config.samples {
                return Ok(None);
            } else {
                self.evaluate(&groups)?
            };
            places.push(Place { groups, log_likelihood, log_prior: weight.ln() });
        }
        Ok(Some(places))
    }

    /// Draws the group of a variable given the groups of all others.
    fn gibbs_step(&mut self, variable: usize, rng: &mut Generator) -> Result<()> {
        let Some(places) = self.places(variable)? else {
            // A draw from some of the places would be a draw from another distribution.
            return Ok(());
        };
        // If none can be scored, the prior is all there is.
        let can_be_scored = places.iter().any(|place| place.log_likelihood.is_finite());
        let mut chosen: Option<(f64, Place)> = None;
        for place in places {
            let noise = match self.config.edge_rule {
                EdgeRule::Sample => gumbel(rng),
                EdgeRule::Greedy => 0.0,
            };
            let likelihood = if can_be_scored { place.log_likelihood } else { 0.0 };
            let rank = place.log_prior + likelihood + noise;
            if chosen.as_ref().is_none_or(|chosen| rank > chosen.0) {
                chosen = Some((rank, place));
            }
        }
        if let Some((_, place)) = chosen {
            (self.groups, self.log_likelihood) = (place.groups, place.log_likelihood);
        }
        self.samples += 1;
        for group in &self.groups {
            for (k, &i) in group.iter().enumerate() {
                for &j in &group[k + 1..] {
                    *self.counts.entry(Edge::new(i, j)?).or_insert(0) += 1;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<LearnedPartition> {
        let samples = self.samples.max(1) as f64;
        let share = |(edge, count): (Edge, usize)| (edge, count as f64 / samples);
        Ok(LearnedPartition {
            groups: to_components(&self.best.0)?,
            log_likelihood: self.best.1,
            evaluations: self.evaluations,
            edge_frequencies: self.counts.into_iter().map(share).collect(),
        })
    }
}

/// Standard Gumbel noise: −log(−log u). The largest of log weights with such noise is a draw by the weights.
fn gumbel(rng: &mut Generator) -> f64 {
    -(-rng.random::<f64>().max(f64::MIN_POSITIVE).ln()).ln()
}

fn to_components(groups: &[Vec<usize>]) -> Result<Vec<Component>> {
    groups.iter().map(|group| Component::new(group.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::markov_chain::{
        assert_agrees, average, deviations, draw, drift, largest, pearson, standard_errors,
    };
    use crate::stream::{Purpose, Stream};

    fn generator(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Structure)
    }

    fn config(concentration: f64, max_group_size: Option<usize>) -> PartitionLearning {
        let samples = usize::MAX;
        PartitionLearning { samples, concentration, max_group_size, ..PartitionLearning::default() }
    }

    /// All partitions of 0..D, each with sorted groups in the order of their first variables.
    fn partitions(dimension: usize) -> Vec<Vec<Vec<usize>>> {
        (0..dimension).fold(vec![Vec::new()], |all, i| {
            let with = |groups: &Vec<Vec<usize>>| {
                let mut found = Vec::new();
                for place in 0..=groups.len() {
                    let mut groups = groups.clone();
                    match groups.get_mut(place) {
                        Some(group) => group.push(i),
                        None => groups.push(vec![i]),
                    }
                    found.push(groups);
                }
                found
            };
            all.iter().flat_map(with).collect()
        })
    }

    fn singles(dimension: usize) -> Vec<Component> {
        (0..dimension).map(Component::single).collect()
    }

    fn groups(lists: &[&[usize]]) -> Vec<Component> {
        lists.iter().map(|list| Component::new(list.to_vec()).unwrap()).collect()
    }

    /// All partitions within the limit, with a score of each.
    struct Table {
        dimension: usize,
        states: Vec<Vec<Vec<usize>>>,
        scores: Vec<f64>,
    }

    impl Table {
        /// Scores between ±1.5, each partition its own.
        fn new(dimension: usize, max_group_size: Option<usize>, seed: u64) -> Self {
            let limit = max_group_size.unwrap_or(dimension);
            let mut states = partitions(dimension);
            states.retain(|groups| groups.iter().all(|group| group.len() <= limit));
            let mut rng = generator(seed);
            let scores = states.iter().map(|_| rng.random_range(-1.5..1.5)).collect();
            Self { dimension, states, scores }
        }

        fn place(&self, groups: &[Vec<usize>]) -> usize {
            self.states.iter().position(|state| state == groups).expect("within the limit")
        }

        fn rho(&self, components: &[Component]) -> Result<f64> {
            let groups: Vec<Vec<usize>> =
                components.iter().map(|g| g.variables().to_vec()).collect();
            Ok(self.scores[self.place(&groups)])
        }

        /// π from the definition: for every labelling of the variables by D labels, the Dirichlet-multinomial probability
        /// ∏_m Γ(α + n_m)/Γ(α), and e^ρ of the partition that the labels make.
        fn posterior(&self, alpha: f64) -> Vec<f64> {
            let d = self.dimension;
            let mut weights = vec![0.0; self.states.len()];
            for mut number in 0..d.pow(d as u32) {
                let labels: Vec<usize> = (0..d)
                    .map(|_| {
                        let label = number % d;
                        number /= d;
                        label
                    })
                    .collect();
                let with =
                    |label: usize| (0..d).filter(|&i| labels[i] == label).collect::<Vec<_>>();
                let mut groups: Vec<Vec<usize>> = (0..d).map(with).collect();
                groups.retain(|group| !group.is_empty());
                groups.sort_unstable();
                let rising = |size: usize| (0..size).map(|k| alpha + k as f64).product::<f64>();
                let prior: f64 = groups.iter().map(|group| rising(group.len())).product();
                if let Some(place) = self.states.iter().position(|state| *state == groups) {
                    weights[place] += prior * self.scores[place].exp();
                }
            }
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        }

        fn chain<'c>(
            &'c self,
            config: &'c PartitionLearning,
        ) -> Chain<'c, impl FnMut(Vec<Component>) -> Result<f64>> {
            let rho = |components: Vec<Component>| self.rho(&components);
            Chain::new(&singles(self.dimension), rho, config).unwrap()
        }

        /// The transition matrix of a Gibbs step on this variable, by the weights of the sampler itself.
        fn gibbs_matrix(&self, variable: usize, config: &PartitionLearning) -> Vec<Vec<f64>> {
            let mut chain = self.chain(config);
            let row = |(state, score): (&Vec<Vec<usize>>, &f64)| {
                (chain.groups, chain.log_likelihood) = (state.clone(), *score);
                let places = chain.places(variable).unwrap().unwrap();
                let weights: Vec<f64> =
                    places.iter().map(|p| (p.log_prior + p.log_likelihood).exp()).collect();
                let total: f64 = weights.iter().sum();
                let mut row = vec![0.0; self.states.len()];
                for (place, weight) in places.iter().zip(weights) {
                    row[self.place(&place.groups)] += weight / total;
                }
                row
            };
            self.states.iter().zip(&self.scores).map(row).collect()
        }
    }

    /// 5 and 15 partitions of three and four variables, and those with groups of at most two, for three values of α.
    fn cases() -> Vec<(PartitionLearning, Table)> {
        let mut cases = Vec::new();
        for (dimension, max_group_size, states) in [
            (2, None, 2),
            (3, None, 5),
            (3, Some(2), 4),
            (4, None, 15),
            (4, Some(2), 10),
            (4, Some(3), 14),
        ] {
            for alpha in [0.3, 1.0, 2.5] {
                let table = Table::new(dimension, max_group_size, cases.len() as u64);
                assert_eq!(table.states.len(), states);
                cases.push((config(alpha, max_group_size), table));
            }
        }
        cases
    }

    #[test]
    fn the_prior_is_that_of_labels_from_a_dirichlet_distribution() {
        for (config, mut table) in cases() {
            table.scores.fill(0.0);
            let prior = table.posterior(config.concentration);
            let logs = table.states.iter().map(|state| config.log_prior(state, table.dimension));
            let weights: Vec<f64> = logs.map(f64::exp).collect();
            let total: f64 = weights.iter().sum();
            for (weight, prior) in weights.iter().zip(prior) {
                assert!((weight / total - prior).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_gibbs_step_keeps_the_posterior_exactly() {
        for (config, table) in cases() {
            let posterior = table.posterior(config.concentration);
            for variable in 0..table.dimension {
                assert!(drift(&posterior, &table.gibbs_matrix(variable, &config)) < 1e-12);
            }
            // The wrong α must be noticed, or the above means nothing.
            let other = table.posterior(config.concentration + 1.0);
            assert!(drift(&other, &table.gibbs_matrix(0, &config)) > 1e-3);
        }
    }

    #[test]
    fn a_gibbs_chain_visits_partitions_as_often_as_the_posterior_says() {
        const STEPS: usize = 200_000;
        for (number, (config, table)) in cases().into_iter().enumerate() {
            let posterior = table.posterior(config.concentration);
            let matrices: Vec<_> = (0..table.dimension)
                .map(|variable| table.gibbs_matrix(variable, &config))
                .collect();
            let errors = standard_errors(&posterior, &average(&matrices), STEPS);
            let off = |edge_rule: EdgeRule| {
                let config = PartitionLearning { edge_rule, ..config.clone() };
                let mut rng = generator(number as u64);
                let mut chain = table.chain(&config);
                let mut counts = vec![0; table.states.len()];
                for step in 0..STEPS + 1_000 {
                    let variable = rng.random_range(0..table.dimension);
                    chain.gibbs_step(variable, &mut rng).unwrap();
                    // The start is forgotten first.
                    if step >= 1_000 {
                        counts[table.place(&chain.groups)] += 1;
                    }
                }
                deviations(&counts, &posterior, &errors)
            };
            assert_agrees(&off(EdgeRule::Sample));
            // The published code's rule is another distribution altogether, and this test can tell.
            let greedy = largest(&off(EdgeRule::Greedy));
            assert!(greedy > 50.0, "greedy is only {greedy} standard errors off");
        }
    }

    /// Whole sweeps from independent draws of the posterior: the counts are multinomial without any approximation.
    #[test]
    fn sweeps_keep_draws_of_the_posterior_what_they_are() {
        const DRAWS: usize = 40_000;
        for max_group_size in [None, Some(2)] {
            let table = Table::new(4, max_group_size, 50);
            let posterior = table.posterior(1.0);
            let statistic = |edge_rule: EdgeRule| {
                let config = PartitionLearning { edge_rule, ..config(1.0, max_group_size) };
                let mut rng = generator(8);
                let mut chain = table.chain(&config);
                let mut counts = vec![0; posterior.len()];
                let mut order: Vec<usize> = (0..4).collect();
                for _ in 0..DRAWS {
                    let place = draw(&posterior, &mut rng);
                    chain.groups = table.states[place].clone();
                    chain.log_likelihood = table.scores[place];
                    order.shuffle(&mut rng);
                    for &variable in &order {
                        chain.gibbs_step(variable, &mut rng).unwrap();
                    }
                    counts[table.place(&chain.groups)] += 1;
                }
                pearson(&counts, &posterior)
            };
            let sampled = statistic(EdgeRule::Sample);
            assert!(sampled.abs() < 4.0, "{sampled} standard deviations");
            let greedy = statistic(EdgeRule::Greedy);
            assert!(greedy > 100.0, "only {greedy} standard deviations");
        }
    }

    #[test]
    fn gumbel_noise_makes_the_largest_a_draw_by_the_weights() {
        const DRAWS: usize = 200_000;
        let weights = [0.5, 0.05, 0.3, 0.15];
        let mut rng = generator(9);
        let mut counts = [0; 4];
        for _ in 0..DRAWS {
            let ranks = weights.map(|weight: f64| weight.ln() + gumbel(&mut rng));
            let best = (0..4).max_by(|&a, &b| ranks[a].total_cmp(&ranks[b])).unwrap();
            counts[best] += 1;
        }
        assert!(pearson(&counts, &weights).abs() < 4.0, "{counts:?}");
    }

    /// A score without structure, between 0 and 10.
    fn hashed(components: &[Component]) -> f64 {
        let mix = |hash: u64, group: &Component| {
            let number = group.variables().iter().fold(7, |sum, i| sum * 131 + *i as u64 + 1);
            (hash ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        };
        components.iter().fold(1, mix) as f64 / u64::MAX as f64 * 10.0
    }

    fn learn(
        start: &[Component],
        rho: impl Fn(&[Component]) -> f64,
        config: &PartitionLearning,
        seed: u64,
    ) -> (LearnedPartition, Vec<(Vec<Component>, f64)>) {
        let mut evaluated = Vec::new();
        let recorded = |components: Vec<Component>| {
            let value = rho(&components);
            evaluated.push((components, value));
            Ok(value)
        };
        let learned = partition_learning(start, recorded, config, &mut generator(seed)).unwrap();
        (learned, evaluated)
    }

    #[test]
    fn finds_planted_groups_from_any_start() {
        let planted = groups(&[&[0, 4, 7], &[1, 2], &[3], &[5, 6, 8, 9]]);
        let together = |i: usize, j: usize| planted.iter().any(|g| g.contains(i) && g.contains(j));
        let rho = |found: &[Component]| {
            let pairs = |g: &Component| {
                let v = g.variables().to_vec();
                let value = |i: usize, j: usize| if together(i, j) { 4.0 } else { -4.0 };
                (0..v.len()).map(|b| (0..b).map(|a| value(v[a], v[b])).sum::<f64>()).sum::<f64>()
            };
            found.iter().map(pairs).sum::<f64>()
        };
        let whole = groups(&[&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]);
        for start in [singles(10), whole, planted.clone()] {
            for max_group_size in [None, Some(4), Some(5)] {
                let config = PartitionLearning { samples: 1500, ..config(1.0, max_group_size) };
                assert_eq!(learn(&start, rho, &config, 3).0.groups, planted);
            }
        }
    }

    #[test]
    fn no_group_is_larger_than_allowed() {
        // Everything together is best.
        let rho = |found: &[Component]| -5.0 * found.len() as f64;
        for limit in 1..=5 {
            let config = PartitionLearning { samples: 400, ..config(1.0, Some(limit)) };
            for start in [singles(7), groups(&[&[0, 1, 2, 3, 4, 5, 6]])] {
                let (learned, evaluated) = learn(&start, rho, &config, limit as u64);
                for (found, _) in &evaluated {
                    assert!(found.iter().all(|group| group.len() <= limit));
                }
                assert_eq!(learned.groups.len(), 7_usize.div_ceil(limit));
                // Groups of one leave nothing to choose.
                assert_eq!(evaluated.len(), if limit == 1 { 1 } else { 400 });
            }
        }
    }

    #[test]
    fn a_step_that_cannot_be_finished_is_not_taken_but_counts_for_the_best() {
        let pair = groups(&[&[0], &[1, 3], &[2], &[4], &[5], &[6], &[7]]);
        let rho = |found: &[Component]| if found == pair { 50.0 } else { 0.0 };
        for seed in 0..20 {
            // One variable has seven other places, and only six can be looked at.
            let config = PartitionLearning { samples: 7, ..config(1.0, None) };
            let (learned, evaluated) = learn(&singles(8), rho, &config, seed);
            assert_eq!(evaluated.len(), 7);
            assert!(learned.edge_frequencies.is_empty());
            let seen = evaluated.iter().any(|(found, _)| *found == pair);
            assert_eq!(learned.groups == pair, seen);
        }
        let config = PartitionLearning { samples: 8, ..config(1.0, None) };
        let (learned, _) = learn(&singles(8), |_| 0.0, &config, 1);
        let shares: Vec<f64> = learned.edge_frequencies.iter().map(|f| f.1).collect();
        assert!(shares.is_empty() || shares == [1.0], "{shares:?}");
    }

    #[test]
    fn a_structure_that_cannot_be_scored_is_never_moved_to() {
        let alone = |found: &[Component]| found.contains(&Component::single(0));
        let rho = |found: &[Component]| match (alone(found), found.len() % 3) {
            (true, _) => 0.0,
            (false, 0) => f64::NAN,
            (false, 1) => f64::INFINITY,
            (false, _) => f64::NEG_INFINITY,
        };
        let config = PartitionLearning { samples: 250, ..config(1.0, None) };
        let (found, _) = learn(&singles(5), rho, &config, 1);
        assert!(!found.edge_frequencies.is_empty());
        assert!(found.edge_frequencies.iter().all(|(edge, _)| edge.low() > 0));
        // Where nothing can be scored the chain follows the prior, and the start is returned.
        let (found, evaluated) = learn(&singles(5), |_| f64::NAN, &config, 1);
        assert_eq!((found.groups, evaluated.len()), (singles(5), 250));
        assert!(!found.edge_frequencies.is_empty());
        let error = Error::NotPositiveDefinite { pivot: 3 };
        let failing = |_: Vec<Component>| Err(error.clone());
        let found = partition_learning(&singles(3), failing, &config, &mut generator(1));
        assert_eq!(found, Err(error.clone()));
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        for bad in [groups(&[&[0, 1], &[1, 2]]), groups(&[&[0], &[2]]), groups(&[&[1, 2]])] {
            let never = |_: Vec<Component>| -> Result<f64> { panic!("nothing is scored") };
            let found = partition_learning(&bad, never, &config(1.0, None), &mut generator(1));
            assert!(matches!(found, Err(Error::InvalidStructure { .. })), "{bad:?}");
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = config(alpha, None).validate().unwrap_err();
            assert!(refused.to_string().contains("concentration"), "{refused}");
        }
        let refused = config(1.0, Some(0)).validate().unwrap_err();
        assert!(refused.to_string().contains("max_group_size"), "{refused}");
    }

    #[test]
    fn the_groups_of_a_graph_are_its_parts() {
        for dimension in 1..=5 {
            for partition in partitions(dimension) {
                let components = to_components(&partition).unwrap();
                let graph = Graph::from_components(dimension, &components).unwrap();
                assert_eq!(groups_of(&graph), components);
            }
        }
        // Two edges that meet make one part, though no clique.
        let path = [(0, 3), (3, 4)].map(|(i, j)| Edge::new(i, j).unwrap());
        let graph = Graph::from_edges(5, path).unwrap();
        assert_eq!(groups_of(&graph), groups(&[&[0, 3, 4], &[1], &[2]]));
    }

    proptest! {
        #[test]
        fn any_settings_and_scores_give_the_best_partition_seen(
            dimension in 1_usize..8,
            chosen in any::<prop::sample::Index>(),
            samples in 0_usize..120,
            alpha in 0.01..10.0_f64,
            max_group_size in prop_oneof![Just(None), (1_usize..6).prop_map(Some)],
            greedy in any::<bool>(),
            scale in prop_oneof![Just(0.0), -30.0..30.0_f64],
            impossible in 0_usize..4,
            seed in any::<u64>(),
        ) {
            let all = partitions(dimension);
            let start = to_components(&all[chosen.index(all.len())]).unwrap();
            let edge_rule = if greedy { EdgeRule::Greedy } else { EdgeRule::Sample };
            let config = PartitionLearning { samples, concentration: alpha, max_group_size, edge_rule };
            let rho = |found: &[Component]| match (hashed(found) * 100.0) as usize % 10 < impossible {
                true => f64::NAN,
                false => scale * hashed(found),
            };
            let (learned, evaluated) = learn(&start, rho, &config, seed);
            prop_assert_eq!(learned.evaluations, evaluated.len());
            let choices = dimension > 1 && max_group_size != Some(1);
            prop_assert_eq!(evaluated.len(), if choices { samples.max(1) } else { 1 });
            let limit = max_group_size.unwrap_or(dimension);
            for (found, _) in &evaluated {
                let mut variables: Vec<usize> =
                    found.iter().flat_map(|g| g.variables().to_vec()).collect();
                variables.sort_unstable();
                prop_assert!(variables.into_iter().eq(0..dimension));
                prop_assert!(found.iter().all(|group| group.len() <= limit));
                prop_assert!(found.is_sorted());
            }
            let posterior = |found: &[Component], rho: f64| {
                let groups: Vec<Vec<usize>> = found.iter().map(|g| g.variables().to_vec()).collect();
                finite_or_impossible(rho) + config.log_prior(&groups, dimension)
            };
            let best = evaluated.iter().map(|(found, rho)| posterior(found, *rho));
            prop_assert_eq!(
                posterior(&learned.groups, learned.log_likelihood),
                best.fold(f64::NEG_INFINITY, f64::max)
            );
            prop_assert_eq!(finite_or_impossible(rho(&learned.groups)), learned.log_likelihood);
            let shares = learned.edge_frequencies.iter().map(|f| f.1);
            prop_assert!(shares.clone().all(|share| share > 0.0 && share <= 1.0));
        }
    }
}
