//! What parameters and pairs do in a model: the functional analysis of variance of the posterior mean over the space, every parameter
//! drawn as [`boscage::Space::sample`] draws it, whatever conditions say. In the units of the model.
//!
//! Notation: a factor e_i(x, a) belongs to variable i between a coordinate and observation a. ē_i is its average over the
//! range of the variable, by quadrature. Since a kernel is a product of factors, the effect of a set S of variables has the
//! covariances Σ_{G⊇S} σ^G ∏_{i∈S} (e_i − ē_i) ∏_{j∈G∖S} ē_j with the observations: no other grid is needed, however large a
//! component is. α = Δ⁻¹y are the weights of the observations. Where all pairs interact ([`boscage::all_pairs`]), each pair with a
//! product of weights w_i w_j, they count as a component each; the sum over the partners of a variable is the same for all variables
//! but for its own term. What all variables do alike ([`boscage::common_effect`]) is a part of the main effect of each: its features,
//! centred too, times the coefficients that they share.
//!
//! Cost with n observations: n²/2 for each node at which effects are uncertain, 12 for each parameter and 49 for each pair: one or two
//! seconds at D = 250 and n = 1,000.

use std::collections::BTreeSet;

use boscage::additive_gp::{AdditivePosterior, Normal};
use boscage::graph::Component;
use boscage::kernel::Kernel;
use boscage::stream::Purpose;
use boscage::{Point, Space, Stream, Value};

use crate::error::Result;
use crate::explain::Share;
use crate::parameters::{Kind, StudySpace};

/// Nodes of the quadrature over a real parameter.
const NODES: usize = 32;
/// Nodes at which a main effect is drawn to learn how uncertain its share is, and those of each parameter of a pair.
const DRAWN_NODES: usize = 12;
const DRAWN_PAIR_NODES: usize = 7;
/// A parameter with this many levels or fewer is looked at on all of them.
const ALL_LEVELS: usize = 12;
/// Draws of every effect.
const DRAWS: usize = 200;
/// If components are so large that they have more pairs than this, only those among the strongest parameters are looked at.
const MOST_PAIRS: usize = 2000;
const STRONGEST: usize = 24;
/// The same where all pairs interact.
const MOST_OF_ALL_PAIRS: usize = 300;
/// Points at which what is left after main effects and pairs is looked at.
const REST_POINTS: usize = 1024;
/// Columns that are solved for at once.
const BATCH: usize = 1024;
/// Quantiles that stand for the distribution of a parameter with levels.
const QUANTILES: usize = 1024;

/// Coordinates of a variable with the shares of its range that they stand for.
#[derive(Debug, Clone, PartialEq)]
struct Axis {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

/// Quadratures of all variables under the distribution of [`Space::sample`].
struct Quadrature<'a> {
    space: &'a StudySpace,
    /// Points all coordinates of which are at the same quantile.
    quantiles: Vec<Point>,
}

impl<'a> Quadrature<'a> {
    fn new(space: &'a StudySpace) -> Result<Self> {
        let finite = (0..space.dimension()).any(|d| space.engine().levels(d).is_some());
        let count = if finite { QUANTILES } else { 0 };
        let quantile = |k: usize| {
            let share = (k as f64 + 0.5) / QUANTILES as f64;
            Ok(space.engine().from_uniform(&vec![share; space.dimension()])?)
        };
        Ok(Self { space, quantiles: (0..count).map(quantile).collect::<Result<_>>()? })
    }

    /// At most `most` nodes, but all levels of a variable that has few.
    fn axis(&self, d: usize, most: usize) -> Axis {
        let even = |nodes: Vec<f64>| {
            let weight = 1.0 / nodes.len().max(1) as f64;
            Axis { weights: vec![weight; nodes.len()], nodes }
        };
        let engine = self.space.engine();
        let Some(levels) = engine.levels(d) else {
            return even((0..most).map(|k| (k as f64 + 0.5) / most as f64).collect());
        };
        let log = matches!(self.space.parameters()[d].kind, Kind::Integer { log: true, .. });
        let all = levels <= most.max(ALL_LEVELS) as u64;
        if all && !log {
            return even((0..levels).map(|level| engine.coordinate(d, level)).collect());
        }
        let places = if all { QUANTILES } else { most };
        let mut axis = Axis { nodes: Vec::new(), weights: Vec::new() };
        for k in 0..places {
            let row = (2 * k + 1) * QUANTILES / (2 * places);
            let Some(&node) = self.quantiles.get(row).and_then(|point| point.0.get(d)) else {
                continue;
            };
            match axis.weights.last_mut() {
                // Quantiles come in order.
                Some(weight) if axis.nodes.last() == Some(&node) => *weight += 1.0 / places as f64,
                _ => {
                    axis.nodes.push(node);
                    axis.weights.push(1.0 / places as f64);
                }
            }
        }
        axis
    }
}

/// Where a parameter is shown: all levels, or evenly from end to end.
pub(crate) fn shown_coordinates(space: &StudySpace, d: usize, most: usize) -> Result<Vec<f64>> {
    let engine = space.engine();
    let even = |k: usize| k as f64 / (most - 1) as f64;
    match engine.levels(d) {
        None => Ok((0..most).map(even).collect()),
        // Categories have no order in which some could be left out.
        Some(levels) if levels <= most as u64 || (engine.is_categorical(d) && levels <= 100) => {
            Ok((0..levels).map(|level| engine.coordinate(d, level)).collect())
        }
        Some(levels) => {
            let mut coordinates = Vec::new();
            for k in 0..most {
                let level = engine.level(d, even(k)).min(levels - 1);
                let coordinate = engine.coordinate(d, level);
                if coordinates.last() != Some(&coordinate) {
                    coordinates.push(coordinate);
                }
            }
            Ok(coordinates)
        }
    }
}

/// The user's values at coordinates of a variable.
pub(crate) fn labels(space: &StudySpace, d: usize, coordinates: &[f64]) -> Result<Vec<Value>> {
    let engine = space.engine();
    let mut point = engine.from_uniform(&vec![0.5; space.dimension()])?;
    let mut labels = Vec::with_capacity(coordinates.len());
    for &coordinate in coordinates {
        point.0[d] = coordinate;
        let value = engine.decode(&point)?.swap_remove(d);
        labels.push(space.parameters()[d].in_words(value));
    }
    Ok(labels)
}

/// How many pairs so many variables have.
fn all_count(variables: usize) -> usize {
    variables * variables.saturating_sub(1) / 2
}

/// Shares of the variance.
pub(crate) struct Shares {
    pub(crate) mains: Vec<Share>,
    pub(crate) pairs: Vec<((usize, usize), Share)>,
    /// What is left after these.
    pub(crate) rest: f64,
}

/// A posterior with averages of its factors.
#[derive(Debug, Clone)]
pub(crate) struct Effects {
    pub(crate) posterior: AdditivePosterior,
    axes: Vec<Axis>,
    /// ē_i(a): one list of n numbers for each variable.
    averages: Vec<Vec<f64>>,
    /// The average of e_i between two coordinates.
    double_averages: Vec<f64>,
    /// The kernel of each variable alone, with amplitude 1.
    kernels: Vec<Kernel>,
    /// The numbers of the components that each variable is in.
    components_of: Vec<Vec<usize>>,
    /// Σ w_i ē_i where all pairs interact: for each observation, and as it is a priori.
    partners: (Vec<f64>, f64),
    /// The averages of the features of what all variables do alike, for each variable.
    common_averages: Vec<Vec<f64>>,
}

impl Effects {
    pub(crate) fn new(space: &StudySpace, posterior: AdditivePosterior) -> Result<Self> {
        let quadrature = Quadrature::new(space)?;
        let kernel = &posterior.prior().kernel;
        let dimension = kernel.dimension();
        let mut effects = Self {
            axes: (0..dimension).map(|d| quadrature.axis(d, NODES)).collect(),
            averages: Vec::with_capacity(dimension),
            double_averages: Vec::with_capacity(dimension),
            kernels: (0..dimension).map(|d| alone(kernel, d)).collect(),
            components_of: vec![Vec::new(); dimension],
            partners: (vec![0.0; posterior.len()], 0.0),
            common_averages: Vec::with_capacity(dimension),
            posterior,
        };
        for (g, component) in effects.posterior.prior().components.iter().enumerate() {
            for &i in component.variables() {
                effects.components_of[i].push(g);
            }
        }
        for i in 0..dimension {
            let axis = &effects.axes[i];
            let mut average = vec![0.0; effects.posterior.len()];
            for (&node, &weight) in axis.nodes.iter().zip(&axis.weights) {
                let factors = effects.factors(i, node);
                average.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += weight * factor);
            }
            let double = axis.nodes.iter().zip(&axis.weights);
            let double =
                double.map(|(&node, &weight)| weight * effects.average_factor(i, node)).sum();
            let mut common = Vec::new();
            for (&node, &weight) in axis.nodes.iter().zip(&axis.weights) {
                let features = effects.posterior.common_features(i, node);
                common.resize(features.len(), 0.0);
                common.iter_mut().zip(features).for_each(|(sum, value)| *sum += weight * value);
            }
            effects.common_averages.push(common);
            effects.averages.push(average);
            effects.double_averages.push(double);
        }
        if let Some(all_pairs) = &effects.posterior.prior().all_pairs {
            let (sum, prior_sum) = &mut effects.partners;
            for (i, weight) in all_pairs.weights.iter().enumerate() {
                sum.iter_mut()
                    .zip(&effects.averages[i])
                    .for_each(|(sum, average)| *sum += weight * average);
                *prior_sum += weight * effects.double_averages[i];
            }
        }
        Ok(effects)
    }

    fn factors(&self, i: usize, coordinate: f64) -> Vec<f64> {
        self.posterior.factors(i, coordinate).unwrap_or_default()
    }

    /// e_i between two coordinates.
    fn factor(&self, i: usize, x: f64, other: f64) -> f64 {
        self.kernels[i].value(&Component::single(0), &[x], &[other])
    }

    /// The average of e_i between a coordinate and all others.
    fn average_factor(&self, i: usize, x: f64) -> f64 {
        let axis = &self.axes[i];
        let terms = axis.nodes.iter().zip(&axis.weights);
        terms.map(|(&node, &weight)| weight * self.factor(i, x, node)).sum()
    }

    /// e_i − ē_i between a coordinate and all observations.
    fn centred(&self, i: usize, coordinate: f64) -> Vec<f64> {
        let mut factors = self.factors(i, coordinate);
        factors.iter_mut().zip(&self.averages[i]).for_each(|(factor, average)| *factor -= average);
        factors
    }

    /// The features of what all variables do alike, of variable i at a coordinate and less their averages.
    fn common(&self, i: usize, coordinate: f64) -> Vec<f64> {
        let features = self.posterior.common_features(i, coordinate);
        features
            .iter()
            .zip(&self.common_averages[i])
            .map(|(value, average)| value - average)
            .collect()
    }

    /// Σ σ^G ∏_{j∈G∖S} ē_j over the components with all variables of `set` and none of `without`: for each observation, and as
    /// it is a priori.
    fn others(&self, set: &[usize], without: &[usize]) -> (Vec<f64>, f64) {
        let prior = self.posterior.prior();
        let mut sum = vec![0.0; self.posterior.len()];
        let mut prior_sum = 0.0;
        if let Some(all_pairs) = &prior.all_pairs {
            let weights = &all_pairs.weights;
            match *set {
                [i] => {
                    sum.clone_from(&self.partners.0);
                    prior_sum = self.partners.1;
                    for &j in std::iter::once(&i).chain(without) {
                        sum.iter_mut()
                            .zip(&self.averages[j])
                            .for_each(|(sum, average)| *sum -= weights[j] * average);
                        prior_sum -= weights[j] * self.double_averages[j];
                    }
                    sum.iter_mut().for_each(|sum| *sum *= weights[i]);
                    prior_sum *= weights[i];
                }
                [i, j] => {
                    sum.fill(weights[i] * weights[j]);
                    prior_sum = weights[i] * weights[j];
                }
                _ => {}
            }
        }
        let Some(components) = set.first().and_then(|&i| self.components_of.get(i)) else {
            return (sum, prior_sum);
        };
        for component in components.iter().map(|&g| &prior.components[g]) {
            let fits = set.iter().all(|&i| component.contains(i))
                && !without.iter().any(|&i| component.contains(i));
            if !fits {
                continue;
            }
            let amplitude = prior.kernel.amplitude(component);
            let mut product = vec![amplitude; sum.len()];
            let mut prior_product = amplitude;
            for &j in component.variables().iter().filter(|j| !set.contains(j)) {
                product
                    .iter_mut()
                    .zip(&self.averages[j])
                    .for_each(|(product, average)| *product *= average);
                prior_product *= self.double_averages[j];
            }
            sum.iter_mut().zip(product).for_each(|(sum, product)| *sum += product);
            prior_sum += prior_product;
        }
        (sum, prior_sum)
    }

    /// The average of the posterior mean over the space.
    pub(crate) fn constant(&self) -> f64 {
        let prior = self.posterior.prior();
        let component = |component: &Component| {
            let mut product = self.posterior.weights().to_vec();
            for &j in component.variables() {
                product
                    .iter_mut()
                    .zip(&self.averages[j])
                    .for_each(|(product, average)| *product *= average);
            }
            prior.kernel.amplitude(component) * product.iter().sum::<f64>()
        };
        let all_pairs = prior.all_pairs.as_ref().map_or(0.0, |all_pairs| {
            let weighted = |(a, alpha): (usize, &f64)| {
                let squares = all_pairs.weights.iter().zip(&self.averages);
                let squares: f64 = squares.map(|(w, average)| (w * average[a]).powi(2)).sum();
                alpha * 0.5 * (self.partners.0[a].powi(2) - squares)
            };
            self.posterior.weights().iter().enumerate().map(weighted).sum()
        });
        let constant = prior.constant * self.posterior.weights().iter().sum::<f64>();
        let means = self.posterior.common_means();
        let common: f64 = self.common_averages.iter().map(|average| dot(average, &means)).sum();
        prior.components.iter().map(component).sum::<f64>() + all_pairs + constant + common
    }

    /// Mean and variance from covariances with the observations and prior variances, one for each column.
    fn normals(&self, mut columns: Vec<f64>, prior_variances: &[f64]) -> Vec<Normal> {
        let n = self.posterior.len().max(1);
        let means: Vec<f64> =
            columns.chunks_exact(n).map(|column| dot(column, self.posterior.weights())).collect();
        self.posterior.whiten(&mut columns);
        let explained = columns.chunks_exact(n).map(|column| dot(column, column));
        let variances =
            prior_variances.iter().zip(explained).map(|(prior, told)| (prior - told).max(0.0));
        means.into_iter().zip(variances).map(|(mean, variance)| Normal { mean, variance }).collect()
    }

    /// The main effect of a variable.
    pub(crate) fn main(&self, i: usize, coordinates: &[f64]) -> Vec<Normal> {
        let (others, prior) = self.others(&[i], &[]);
        let mut columns = Vec::with_capacity(coordinates.len() * others.len());
        for &x in coordinates {
            let mut column = self.centred(i, x);
            column.iter_mut().zip(&others).for_each(|(factor, other)| *factor *= other);
            self.posterior.add_common_covariances(&self.common(i, x), &mut column);
            columns.extend(column);
        }
        let variance = |&x: &f64| {
            let common = self.common(i, x);
            prior * (1.0 - 2.0 * self.average_factor(i, x) + self.double_averages[i])
                + dot(&common, &common)
        };
        self.normals(columns, &coordinates.iter().map(variance).collect::<Vec<_>>())
    }

    /// Both main effects and the interaction of two variables; the second varies fastest.
    pub(crate) fn pair(&self, i: usize, j: usize, axes: &[Vec<f64>; 2]) -> Vec<Normal> {
        let (only_i, prior_i) = self.others(&[i], &[j]);
        let (only_j, prior_j) = self.others(&[j], &[i]);
        let (both, prior_both) = self.others(&[i, j], &[]);
        let n = self.posterior.len();
        let of_j: Vec<Vec<f64>> = axes[1].iter().map(|&x| self.factors(j, x)).collect();
        let averages_j: Vec<f64> = axes[1].iter().map(|&x| self.average_factor(j, x)).collect();
        let (double_i, double_j) = (self.double_averages[i], self.double_averages[j]);
        let mut columns = Vec::with_capacity(axes[0].len() * axes[1].len() * n);
        let mut variances = Vec::with_capacity(axes[0].len() * axes[1].len());
        for &x in &axes[0] {
            let (of_i, average_i) = (self.factors(i, x), self.average_factor(i, x));
            let common_i = self.common(i, x);
            for ((of_j, average_j), &y) in of_j.iter().zip(&averages_j).zip(&axes[1]) {
                let common_j = self.common(j, y);
                let common: Vec<f64> = common_i.iter().zip(&common_j).map(|(i, j)| i + j).collect();
                let first = columns.len();
                columns.extend((0..n).map(|a| {
                    let (mean_i, mean_j) = (self.averages[i][a], self.averages[j][a]);
                    only_i[a] * (of_i[a] - mean_i)
                        + only_j[a] * (of_j[a] - mean_j)
                        + both[a] * (of_i[a] * of_j[a] - mean_i * mean_j)
                }));
                self.posterior.add_common_covariances(&common, &mut columns[first..]);
                variances.push(
                    prior_i * (1.0 - 2.0 * average_i + double_i)
                        + prior_j * (1.0 - 2.0 * average_j + double_j)
                        + prior_both * (1.0 - 2.0 * average_i * average_j + double_i * double_j)
                        + dot(&common, &common),
                );
            }
        }
        self.normals(columns, &variances)
    }

    /// The variance of the mean of a pure effect over the space.
    fn variance(&self, set: &[usize]) -> f64 {
        let (mut others, _) = self.others(set, &[]);
        others.iter_mut().zip(self.posterior.weights()).for_each(|(other, alpha)| *other *= alpha);
        let nodes = |i: usize| {
            let axis = &self.axes[i];
            axis.nodes.iter().map(move |&x| self.centred(i, x)).zip(&axis.weights)
        };
        match *set {
            [i] => {
                let common = self.posterior.common_means();
                let means = nodes(i).zip(&self.axes[i].nodes).map(|((column, weight), &x)| {
                    weight * (dot(&column, &others) + dot(&self.common(i, x), &common)).powi(2)
                });
                means.sum()
            }
            [i, j] => {
                let of_j: Vec<_> = nodes(j).collect();
                let row = |(mut column, weight): (Vec<f64>, &f64)| {
                    column.iter_mut().zip(&others).for_each(|(value, other)| *value *= other);
                    weight
                        * of_j
                            .iter()
                            .map(|(of_j, weight)| *weight * dot(&column, of_j).powi(2))
                            .sum::<f64>()
                };
                nodes(i).map(row).sum()
            }
            _ => 0.0,
        }
    }

    /// All pairs that share a component; too many only among the variables of the largest main effects.
    fn candidate_pairs(&self, mains: &[f64]) -> Vec<(usize, usize)> {
        let components = &self.posterior.prior().components;
        let all_pairs = self.posterior.prior().all_pairs.as_ref();
        let count: usize = components.iter().map(|g| g.len() * (g.len() - 1) / 2).sum();
        let mut kept: Vec<usize> = (0..mains.len()).collect();
        if count > MOST_PAIRS || (all_pairs.is_some() && all_count(mains.len()) > MOST_OF_ALL_PAIRS)
        {
            // A variable may do nothing alone and much with others.
            let weight = |i: usize| all_pairs.map_or(0.0, |all_pairs| all_pairs.weights[i]);
            let mut by_weight = kept.clone();
            by_weight.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            kept.sort_by(|&a, &b| mains[b].total_cmp(&mains[a]));
            if all_pairs.is_some() {
                kept.truncate(STRONGEST / 2);
                let others: Vec<usize> =
                    by_weight.into_iter().filter(|i| !kept.contains(i)).collect();
                kept.extend(others.into_iter().take(STRONGEST / 2));
            }
            kept.truncate(STRONGEST);
        }
        let kept: BTreeSet<usize> = kept.into_iter().collect();
        let mut pairs = BTreeSet::new();
        if all_pairs.is_some() {
            for &i in &kept {
                pairs.extend(kept.range(i + 1..).map(|&j| (i, j)));
            }
        }
        for component in components {
            let inside: Vec<usize> =
                component.variables().iter().copied().filter(|i| kept.contains(i)).collect();
            for (place, &i) in inside.iter().enumerate() {
                pairs.extend(inside[place + 1..].iter().map(|&j| (i, j)));
            }
        }
        pairs.into_iter().collect()
    }

    /// Shares of all main effects, of the strongest pairs and of these.
    pub(crate) fn shares(
        &self,
        space: &StudySpace,
        edges: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Shares> {
        let mains: Vec<f64> = (0..self.axes.len()).map(|i| self.variance(&[i])).collect();
        let mut pairs: BTreeSet<(usize, usize)> =
            self.candidate_pairs(&mains).into_iter().collect();
        pairs.extend(edges);
        let pairs: Vec<(usize, usize)> = pairs.into_iter().collect();
        let of_pairs: Vec<f64> = pairs.iter().map(|&(i, j)| self.variance(&[i, j])).collect();
        let rest = self.rest_variance(space, &pairs)?;
        let total = mains.iter().chain(&of_pairs).sum::<f64>() + rest;
        let drawn = self.drawn_shares(space, &pairs, rest)?;
        let share = |variance: f64, (low, high): (f64, f64)| {
            // Nothing varies: no one has a share.
            let value = if total > 0.0 && total.is_finite() { variance / total } else { 0.0 };
            Share { value, low: low.min(value), high: high.max(value) }
        };
        let (drawn_mains, drawn_pairs) = drawn.split_at(mains.len());
        let of_pairs =
            of_pairs.iter().zip(drawn_pairs).map(|(&variance, &drawn)| share(variance, drawn));
        Ok(Shares {
            mains: mains
                .iter()
                .zip(drawn_mains)
                .map(|(&variance, &drawn)| share(variance, drawn))
                .collect(),
            pairs: pairs.iter().copied().zip(of_pairs).collect(),
            rest: share(rest, (0.0, 0.0)).value,
        })
    }

    /// The variance of what is left of the mean after main effects and pairs, from random points; 0 if nothing can be left.
    fn rest_variance(&self, space: &StudySpace, pairs: &[(usize, usize)]) -> Result<f64> {
        let components = &self.posterior.prior().components;
        let has_all =
            self.posterior.prior().all_pairs.is_none() || pairs.len() == all_count(self.axes.len());
        if has_all && components.iter().all(|component| component.len() <= 2) {
            return Ok(0.0);
        }
        let weighted = |set: &[usize]| -> Vec<f64> {
            let (others, _) = self.others(set, &[]);
            others
                .iter()
                .zip(self.posterior.weights())
                .map(|(other, alpha)| other * alpha)
                .collect()
        };
        let mains: Vec<Vec<f64>> = (0..self.axes.len()).map(|i| weighted(&[i])).collect();
        let of_pairs: Vec<Vec<f64>> = pairs.iter().map(|&(i, j)| weighted(&[i, j])).collect();
        let (constant, common) = (self.constant(), self.posterior.common_means());
        // Always the same points: the same study has the same explanation.
        let mut generator = Stream::new(0, 0).generator(Purpose::Design);
        let points: Vec<Point> =
            (0..REST_POINTS).map(|_| space.engine().sample(&mut generator)).collect();
        let mut squares = 0.0;
        for block in points.chunks(128) {
            for (point, normal) in block.iter().zip(self.posterior.joint_many(block)?) {
                let centred: Vec<Vec<f64>> =
                    point.0.iter().enumerate().map(|(i, &x)| self.centred(i, x)).collect();
                let alone: f64 =
                    centred.iter().zip(&mains).map(|(factors, main)| dot(factors, main)).sum();
                let alike: f64 = (point.0.iter().enumerate())
                    .map(|(i, &x)| dot(&self.common(i, x), &common))
                    .sum();
                let alone = alone + alike;
                let together = pairs.iter().zip(&of_pairs).map(|(&(i, j), weights)| {
                    let product = centred[i].iter().zip(&centred[j]).zip(weights);
                    product.map(|((of_i, of_j), weight)| of_i * of_j * weight).sum::<f64>()
                });
                squares += (normal.mean - constant - alone - together.sum::<f64>()).powi(2);
            }
        }
        Ok(squares / REST_POINTS as f64)
    }

    /// The 5 % and 95 % quantiles of the shares of all main effects and pairs in functions drawn from the posterior. Effects are
    /// drawn one by one, as if they did not depend on each other (also in what all variables do alike): their joint distribution
    /// would need all of them at once.
    fn drawn_shares(
        &self,
        space: &StudySpace,
        pairs: &[(usize, usize)],
        rest: f64,
    ) -> Result<Vec<(f64, f64)>> {
        let quadrature = Quadrature::new(space)?;
        let sets: Vec<Vec<usize>> = (0..self.axes.len())
            .map(|i| vec![i])
            .chain(pairs.iter().map(|&(i, j)| vec![i, j]))
            .collect();
        let mut draws: Vec<Vec<f64>> = Vec::with_capacity(sets.len());
        let mut generator = Stream::new(0, 1).generator(Purpose::Design);
        let mut batch: Vec<Drawn> = Vec::new();
        let mut columns: Vec<f64> = Vec::new();
        let n = self.posterior.len().max(1);
        for (number, set) in sets.iter().enumerate() {
            let most = if set.len() == 1 { DRAWN_NODES } else { DRAWN_PAIR_NODES };
            let axes: Vec<Axis> = set.iter().map(|&i| quadrature.axis(i, most)).collect();
            batch.push(self.drawn(set, &axes, &mut columns));
            if columns.len() >= BATCH * n || number + 1 == sets.len() {
                self.posterior.whiten(&mut columns);
                let mut start = 0;
                for drawn in batch.drain(..) {
                    let end = start + drawn.means.len() * n;
                    draws.push(drawn.variances(
                        columns.get(start..end).unwrap_or_default(),
                        n,
                        &mut generator,
                    )?);
                    start = end;
                }
                columns.clear();
            }
        }
        let totals: Vec<f64> =
            (0..DRAWS).map(|k| rest + draws.iter().map(|draws| draws[k]).sum::<f64>()).collect();
        Ok(draws
            .into_iter()
            .map(|draws| {
                let share =
                    |(draw, total): (&f64, &f64)| if *total > 0.0 { draw / total } else { 0.0 };
                let mut shares: Vec<f64> = draws.iter().zip(&totals).map(share).collect();
                shares.sort_by(f64::total_cmp);
                (shares[DRAWS / 20], shares[DRAWS - 1 - DRAWS / 20])
            })
            .collect())
    }

    /// A pure effect on a product of axes; its covariances with the observations are added to `columns`.
    fn drawn(&self, set: &[usize], axes: &[Axis], columns: &mut Vec<f64>) -> Drawn {
        let (others, prior) = self.others(set, &[]);
        // The doubly centred factor between nodes of each axis.
        let between: Vec<Vec<Vec<f64>>> = set
            .iter()
            .zip(axes)
            .map(|(&i, axis)| {
                let averages: Vec<f64> =
                    axis.nodes.iter().map(|&x| self.average_factor(i, x)).collect();
                let row = |(&x, average): (&f64, &f64)| {
                    let entry = |(&other, other_average): (&f64, &f64)| {
                        self.factor(i, x, other) - average - other_average + self.double_averages[i]
                    };
                    axis.nodes.iter().zip(&averages).map(entry).collect()
                };
                axis.nodes.iter().zip(&averages).map(row).collect()
            })
            .collect();
        let centred: Vec<Vec<Vec<f64>>> = set
            .iter()
            .zip(axes)
            .map(|(&i, axis)| axis.nodes.iter().map(|&x| self.centred(i, x)).collect())
            .collect();
        let places: Vec<Vec<usize>> = match axes {
            [one] => (0..one.nodes.len()).map(|r| vec![r]).collect(),
            [one, two] => (0..one.nodes.len())
                .flat_map(|r| (0..two.nodes.len()).map(move |s| vec![r, s]))
                .collect(),
            _ => Vec::new(),
        };
        let mut means = Vec::with_capacity(places.len());
        for place in &places {
            let mut column = others.clone();
            for (centred, &r) in centred.iter().zip(place) {
                column.iter_mut().zip(&centred[r]).for_each(|(value, factor)| *value *= factor);
            }
            if let ([i], [axis], [r]) = (set, axes, place.as_slice()) {
                let features = self.common(*i, axis.nodes[*r]);
                self.posterior.add_common_covariances(&features, &mut column);
            }
            means.push(dot(&column, self.posterior.weights()));
            columns.extend(column);
        }
        let weight =
            |place: &Vec<usize>| place.iter().zip(axes).map(|(&r, axis)| axis.weights[r]).product();
        // What all variables do alike is no part of an interaction.
        let alike: Vec<Vec<f64>> = match (set, axes) {
            ([i], [axis]) => axis.nodes.iter().map(|&x| self.common(*i, x)).collect(),
            _ => vec![Vec::new(); places.len()],
        };
        let covariance = (places.iter().zip(&alike))
            .map(|(a, alike_a)| {
                let entry = |(b, alike_b): (&Vec<usize>, &Vec<f64>)| {
                    let between = between.iter().zip(a.iter().zip(b));
                    let product: f64 = between.map(|(between, (&r, &s))| between[r][s]).product();
                    prior * product + dot(alike_a, alike_b)
                };
                places.iter().zip(&alike).map(entry).collect()
            })
            .collect();
        Drawn { means, weights: places.iter().map(weight).collect(), covariance }
    }
}

/// An effect at some nodes, ready to be drawn.
struct Drawn {
    means: Vec<f64>,
    weights: Vec<f64>,
    /// A priori.
    covariance: Vec<Vec<f64>>,
}

impl Drawn {
    /// Variances of draws over the nodes. `whitened` are the covariances with the observations, n for each node.
    fn variances(
        mut self,
        whitened: &[f64],
        n: usize,
        generator: &mut boscage::stream::Generator,
    ) -> Result<Vec<f64>> {
        let column = |a: usize| whitened.get(a * n..(a + 1) * n).unwrap_or_default();
        for (a, row) in self.covariance.iter_mut().enumerate() {
            for (b, value) in row.iter_mut().enumerate().take(a + 1) {
                *value -= dot(column(a), column(b));
            }
        }
        factor_in_place(&mut self.covariance);
        let nodes = self.means.len();
        // A point of the unit cube is that many uniform numbers.
        let cube = Space::unit_cube((2 * nodes).max(1))?;
        let draw = |_| {
            let uniform = cube.sample(generator).0;
            let normal: Vec<f64> = uniform
                .chunks_exact(2)
                .map(|pair| {
                    (-2.0 * (1.0 - pair[0]).ln()).sqrt() * (std::f64::consts::TAU * pair[1]).cos()
                })
                .collect();
            let value = |(row, mean): (&Vec<f64>, &f64)| mean + dot(row, &normal);
            let values: Vec<f64> = self.covariance.iter().zip(&self.means).map(value).collect();
            values.iter().zip(&self.weights).map(|(value, weight)| weight * value * value).sum()
        };
        Ok((0..DRAWS).map(draw).collect())
    }
}

/// The lower factor of a covariance, in place, with zeros above; of directions without variance nothing is drawn.
fn factor_in_place(matrix: &mut [Vec<f64>]) {
    let largest = matrix.iter().enumerate().map(|(a, row)| row[a]).fold(0.0, f64::max);
    for b in 0..matrix.len() {
        let (above, below) = matrix.split_at_mut(b);
        let Some((row_b, below)) = below.split_first_mut() else { return };
        let _ = above;
        let pivot = row_b[b] - dot(&row_b[..b], &row_b[..b]);
        let root = if pivot > 1e-10 * largest { pivot.sqrt() } else { 0.0 };
        row_b[b] = root;
        row_b[b + 1..].fill(0.0);
        for row in below {
            let value = row[b] - dot(&row[..b], &row_b[..b]);
            row[b] = if root > 0.0 { value / root } else { 0.0 };
        }
    }
}

/// The kernel of one variable, with amplitude 1.
fn alone(kernel: &Kernel, d: usize) -> Kernel {
    Kernel {
        family: kernel.family,
        metrics: vec![kernel.metrics[d]],
        lengthscales: vec![kernel.lengthscales[d]],
        scales: vec![1.0],
        same_choices: Vec::new(),
        stretches: kernel.stretches.get(d).copied().into_iter().collect(),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Eight sums at a time, so that the compiler can use vectors.
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in a8.zip(b8) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + tail
}
