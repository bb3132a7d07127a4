//! How likely it is that two variables interact.
//!
//! Not in the paper, where an edge is in the structure or not, and the frequencies of a short chain say how often it was. Here a
//! sampler visits the pairs that the data speak for, and for each asks how much more likely the outcomes are with an effect of
//! this pair than without. Everything that is not asked about stays in the background, as in models of sparse and many weak
//! effects together (Zhou, Carbonetto and Stephens 2013, *Polygenic modeling with Bayesian sparse linear mixed models*).
//!
//! Notation: ẽ_i is the factor e_i of variable i, centred over its range and scaled to an average variance of 1, so that a product
//! ẽ_i ẽ_j is what two variables do together beyond what each does alone. The outcomes are normal with covariance
//!
//! A = c + g + Σ_i m_i e_i + Σ_{i<j} s_ij ẽ_i ẽ_j + η² + τ,
//!
//! where c, g (what all variables do alike), m_i and η come from the model that was learned, τ is one of `BACKGROUNDS` and s_ij is 0
//! or one of `STRENGTHS`. How common each strength is, is learned too: a pair has one with probability
//!
//! P(s_ij = 0) ∝ b + the number of other pairs without an effect, P(s_ij = s) ∝ (a + the number with one) · (share of s among them),
//!
//! which is what the others tell of a pair if nothing but they is known (a Pólya urn).
//!
//! Points that were chosen keep to a part of the range, where what two variables do together looks like what one of them does, or
//! two others, and a small error of the kernels like an effect. There the likelihood counts to the power of the spread of the points,
//! 1 if they are uniform and about ½ after a search. That evidence should count to a power below 1 where its model is not quite
//! right is known (Miller and Dunson 2019, *Robust Bayesian inference via coarsening*); that this power should be the spread is not
//! derived from anything: with it the probabilities come nearly true.
//!
//! Cost: 2·D²n²/2 multiply-adds to find the pairs worth a visit, and 2·r·n² for each visit, where r is the rank of the effect of a
//! pair at the observations, at most `MOST_RANK`.

use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::additive_gp::{AdditivePrior, Dataset, check_data};
use crate::all_pairs::AllPairs;
use crate::cholesky::{Factor, Lower, add_transposed_product};
use crate::common_effect::{CommonColumns, CommonEffect};
use crate::error::Result;
use crate::graph::{Component, Edge, Forest};
use crate::kernel::{Inputs, Kernel};
use crate::simd;
use crate::space::Space;
use crate::stream::{Generator, Purpose, Stream};

/// Variances that an effect may have, where the outcomes have variance 1.
const STRENGTHS: [f64; 7] = [0.001, 0.004, 0.016, 0.064, 0.25, 1.0, 4.0];
/// Variances that all effects together may have of which nothing can be said: they look like noise.
const BACKGROUNDS: [f64; 8] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8];
/// The least η²: an effect that explains everything could not be taken out again without losing all digits.
const LEAST_NOISE: f64 = 1e-4;
/// What the urn holds before any pair is seen: URN·D/2 pairs with an effect and URN·D(D − 1)/2 without, so that a pair has one with
/// probability 1/D.
const URN: f64 = 0.5;
/// Chains, each of which starts without any effect, and visits of each pair in each of them, the first half of which are not
/// counted. Pairs that the data cannot tell apart take turns, if not in one chain then from chain to chain.
const CHAINS: usize = 4;
const SWEEPS: usize = 24;
/// Visits in the single chain of [`likely_forest`].
const FEW_SWEEPS: usize = 4;
/// More observations than this are thinned out.
const MOST_OBSERVATIONS: usize = 300;
/// More variables than this are left out, those of the smallest weights first.
const MOST_VARIABLES: usize = 200;
/// Pairs to visit: so many for each variable, but not more than that.
const PAIRS_PER_VARIABLE: usize = 3;
const MOST_PAIRS: usize = 100;
/// The largest rank of an effect, and the share of its variance that may be missing.
const MOST_RANK: usize = 12;
const MISSING: f64 = 0.01;
/// Entries of a matrix that are multiplied at a time.
const ENTRIES: usize = 1024;
/// Nodes of the average over the range of a variable.
const NODES: usize = 32;

/// The most promising pairs, each with the probability that it interacts, most likely first; of other pairs nothing is known.
/// Outcomes are as the model sees them. Without a part of all pairs in the prior there is nothing to say, and the list is empty.
pub fn edge_probabilities(
    prior: &AdditivePrior,
    space: &Space,
    data: &Dataset,
    stream: &Stream,
) -> Result<Vec<(Edge, f64)>> {
    of_chains::<CHAINS>(prior, space, data, SWEEPS, CentredFactors::spread, stream)
}

/// Pairs that are more likely to interact than not, those left out that would close a cycle with likelier ones, by a single short
/// chain in which the whole likelihood counts: a proposal of what a model may be made of, for whoever then looks how good that is.
pub(crate) fn likely_forest(
    prior: &AdditivePrior,
    space: &Space,
    data: &Dataset,
    stream: &Stream,
) -> Result<Forest> {
    let mut forest = Forest::empty(data.dimension());
    for (edge, probability) in of_chains::<1>(prior, space, data, FEW_SWEEPS, |_| 1.0, stream)? {
        if probability >= 0.5 && !forest.closes_cycle(edge) {
            forest.add(edge)?;
        }
    }
    Ok(forest)
}

fn of_chains<const COUNT: usize>(
    prior: &AdditivePrior,
    space: &Space,
    data: &Dataset,
    sweeps: usize,
    power: fn(&CentredFactors) -> f64,
    stream: &Stream,
) -> Result<Vec<(Edge, f64)>> {
    prior.validate()?;
    check_data(&prior.kernel, data)?;
    let Some(all_pairs) = &prior.all_pairs else { return Ok(Vec::new()) };
    let data = data.evenly(data.len().min(MOST_OBSERVATIONS))?;
    if data.len() < 3 {
        return Ok(Vec::new());
    }
    let factors = CentredFactors::new(&prior.kernel, all_pairs, space, &data);
    let background = Background::new(prior, all_pairs, &factors, &data);
    let pairs = promising_pairs(&factors, &background, data.outcomes())?;
    let effects = pairs.iter().map(|&(i, j)| Effect::new(i, j, factors.columns(i, j))).collect();
    let power = power(&factors);
    let chain = Chain::new(background, effects, data.dimension(), data.outcomes(), power);
    let seeds: [u64; COUNT] = stream.generator(Purpose::Structure).random();
    let runs = seeds.into_par_iter().map(|seed| {
        let mut rng = Stream::new(seed, 0).generator(Purpose::Structure);
        chain.clone().run(sweeps, sweeps / 2, &mut rng)
    });
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let average = |place: usize| runs.iter().map(|run| run[place]).sum::<f64>() / COUNT as f64;
    let mut found = Vec::with_capacity(pairs.len());
    for (place, &(i, j)) in pairs.iter().enumerate() {
        found.push((Edge::new(factors.variables[i], factors.variables[j])?, average(place)));
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(found)
}

/// ẽ_i between all observations, for the variables that may be in a pair.
struct CentredFactors {
    n: usize,
    variables: Vec<usize>,
    /// Lower triangles, column by column.
    matrices: Vec<Vec<f64>>,
    /// What ẽ_i was divided by: the average variance of the centred factor.
    variances: Vec<f64>,
}

impl CentredFactors {
    fn new(kernel: &Kernel, all_pairs: &AllPairs, space: &Space, data: &Dataset) -> Self {
        let (n, dimension) = (data.len(), data.dimension());
        let mut variables: Vec<usize> = (0..dimension).collect();
        variables.sort_by(|&i, &j| all_pairs.weights[j].total_cmp(&all_pairs.weights[i]));
        variables.truncate(MOST_VARIABLES);
        // Where a factor is the same everywhere nothing is left of it, and nothing can be seen.
        let centred = |i: usize| centred_factor(kernel, space, data, i);
        let mut kept = Self { n, variables: vec![], matrices: vec![], variances: vec![] };
        variables.sort_unstable();
        for i in variables {
            let (matrix, variance) = centred(i);
            if variance > 1e-6 {
                kept.variables.push(i);
                kept.matrices.push(matrix);
                kept.variances.push(variance);
            }
        }
        kept
    }

    /// Where column b begins, with its diagonal element.
    fn start(&self, b: usize) -> usize {
        b * self.n - b * b.saturating_sub(1) / 2
    }

    fn entry(&self, i: usize, a: usize, b: usize) -> f64 {
        let (low, high) = (a.min(b), a.max(b));
        self.matrices[i][self.start(low) + high - low]
    }

    /// How much of the variance of a random function of one variable, over its whole range, there is between the observations, on
    /// average over the variables: 1 − the average of e_i between observations, over the same between all points of the range.
    fn spread(&self) -> f64 {
        let n = self.n as f64;
        // Between different observations: with itself each has an e_i of 1. What centring has taken away cancels.
        let of_one = |matrix: &Vec<f64>| {
            let diagonal: f64 = (0..self.n).map(|b| matrix[self.start(b)]).sum();
            let others = 2.0 * (matrix.iter().sum::<f64>() - diagonal);
            (diagonal / n - others / (n * (n - 1.0).max(1.0))).clamp(0.0, 1.0)
        };
        let sum: f64 = self.matrices.iter().map(of_one).sum();
        sum / self.matrices.len().max(1) as f64
    }

    /// Columns whose products with themselves make up ẽ_i ẽ_j at the observations: a Cholesky factor that takes the largest
    /// pivot first and ends when next to nothing is left.
    fn columns(&self, i: usize, j: usize) -> Vec<Vec<f64>> {
        let entry = |a: usize, b: usize| self.entry(i, a, b) * self.entry(j, a, b);
        let mut left: Vec<f64> = (0..self.n).map(|a| entry(a, a)).collect();
        let all: f64 = left.iter().sum();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        while columns.len() < MOST_RANK && left.iter().sum::<f64>() > MISSING * all {
            let pivot = (0..self.n).fold(0, |best, a| if left[a] > left[best] { a } else { best });
            let root = left[pivot].sqrt();
            let mut column: Vec<f64> = (0..self.n).map(|a| entry(a, pivot)).collect();
            for other in &columns {
                simd::add_scaled(&mut column, -other[pivot], other);
            }
            column.iter_mut().for_each(|value| *value /= root);
            left.iter_mut().zip(&column).for_each(|(left, x)| *left = (*left - x * x).max(0.0));
            left[pivot] = 0.0;
            columns.push(column);
        }
        columns
    }
}

/// The lower triangle of ẽ_i between the observations, and its variance before it was scaled.
fn centred_factor(kernel: &Kernel, space: &Space, data: &Dataset, i: usize) -> (Vec<f64>, f64) {
    let n = data.len();
    let nodes: Vec<f64> = match space.levels(i) {
        // Between categories there is nothing.
        Some(levels) if levels <= NODES as u64 || space.is_categorical(i) => {
            (0..levels).map(|level| kernel.scaled(i, space.coordinate(i, level))).collect()
        }
        _ => (0..NODES).map(|k| kernel.scaled(i, (k as f64 + 0.5) / NODES as f64)).collect(),
    };
    let column: Vec<f64> = data.coordinates(i).iter().map(|&x| kernel.scaled(i, x)).collect();
    let (mut averages, mut factor) = (vec![0.0; n], vec![0.0; n]);
    for &node in &nodes {
        kernel.factor(i, &column, node, &mut factor);
        simd::add_scaled(&mut averages, 1.0 / nodes.len() as f64, &factor);
    }
    let mut between = vec![0.0; nodes.len()];
    let double: f64 = nodes
        .iter()
        .map(|&node| {
            kernel.factor(i, &nodes, node, &mut between);
            between.iter().sum::<f64>() / (nodes.len() * nodes.len()) as f64
        })
        .sum();
    // The average of e_i(x, x) is 1.
    let variance = (1.0 - double).max(0.0);
    let mut matrix = Vec::with_capacity(n * (n + 1) / 2);
    for b in 0..n {
        kernel.factor(i, &column[b..], column[b], &mut factor[b..]);
        let centred = |a: usize| (factor[a] - averages[a] - averages[b] + double) / variance;
        matrix.extend((b..n).map(centred));
    }
    (matrix, variance)
}

/// What is there without any effect of a pair.
#[derive(Clone)]
struct Background {
    /// c + g + Σ m_i e_i.
    alone: Lower,
    /// η².
    noise: f64,
}

impl Background {
    fn new(
        prior: &AdditivePrior,
        all_pairs: &AllPairs,
        factors: &CentredFactors,
        data: &Dataset,
    ) -> Self {
        let dimension = prior.kernel.dimension();
        // e_i e_j = (ẽ_i + ē_i)(ẽ_j + ē_j), nearly: what a pair has of a single variable goes to that variable.
        let mut averages = vec![1.0; dimension];
        for (&i, variance) in factors.variables.iter().zip(&factors.variances) {
            averages[i] = 1.0 - variance;
        }
        let weighted: Vec<f64> =
            all_pairs.weights.iter().zip(&averages).map(|(w, average)| w * average).collect();
        let sum: f64 = weighted.iter().sum();
        let mut kernel = prior.kernel.clone();
        for (i, scale) in kernel.scales.iter_mut().enumerate() {
            *scale += all_pairs.weights[i] * (sum - weighted[i]);
        }
        let x: Vec<Vec<f64>> = (0..dimension).map(|i| data.coordinates(i).to_vec()).collect();
        let components: Vec<Component> = (0..dimension).map(Component::single).collect();
        let mut alone = Inputs::new(&kernel, &x).gram(&kernel, &components);
        for b in 0..data.len() {
            alone.column_mut(b).iter_mut().for_each(|value| *value += prior.constant);
        }
        let alike = CommonEffect::new(&prior.kernel, prior.common_std);
        CommonColumns::new(alike, &x).add_gram(&mut alone);
        Self { alone, noise: (prior.noise_std * prior.noise_std).max(LEAST_NOISE) }
    }
}

/// The pairs whose effects would make the outcomes more likely, as places in the list of variables. Without any effect,
/// ∂ρ/∂s_ij = ½ ⟨W, ẽ_i ẽ_j⟩ with W = ααᵀ − A⁻¹; it varies by about ½ ‖ẽ_i ẽ_j‖ if there is nothing to see.
fn promising_pairs(
    factors: &CentredFactors,
    background: &Background,
    y: &[f64],
) -> Result<Vec<(usize, usize)>> {
    let n = y.len();
    let mut best = (f64::NEG_INFINITY, None);
    for tau in BACKGROUNDS {
        let factor = Factor::new(&background.alone, background.noise + tau)?;
        let rho = log_likelihood(&factor, y);
        if rho > best.0 {
            best = (rho, Some(factor));
        }
    }
    // Numbers that have overflowed say nothing.
    let Some(factor) = best.1 else { return Ok(Vec::new()) };
    let mut alpha = y.to_vec();
    factor.forward_solve(&mut alpha);
    factor.backward_solve(&mut alpha);
    let inverse = factor.inverse();
    let mut w = Vec::with_capacity(n * (n + 1) / 2);
    for b in 0..n {
        for (offset, inverse) in inverse.column(b).iter().enumerate() {
            let twice = if offset == 0 { 1.0 } else { 2.0 };
            w.push(twice * (alpha[b] * alpha[b + offset] - inverse));
        }
    }
    let count = factors.variables.len();
    // Of all pairs at once, by matrix products over as many entries at a time as stay in the cache.
    let (mut slopes, mut spreads) = (vec![0.0; count * count], vec![0.0; count * count]);
    for first in (0..w.len()).step_by(ENTRIES) {
        let entries = first..(first + ENTRIES).min(w.len());
        let block = |f: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
            factors.matrices.iter().flat_map(|matrix| f(&matrix[entries.clone()])).collect()
        };
        let w = &w[entries.clone()];
        let plain = block(&|e| e.to_vec());
        let weighted = block(&|e| e.iter().zip(w).map(|(e, w)| e * w).collect());
        let squares = block(&|e| e.iter().map(|e| e * e).collect());
        add_transposed_product(entries.len(), &weighted, &plain, &mut slopes);
        add_transposed_product(entries.len(), &squares, &squares, &mut spreads);
    }
    let mut scored = Vec::with_capacity(count * count.saturating_sub(1) / 2);
    for i in 0..count {
        for j in i + 1..count {
            let spread = spreads[j * count + i].sqrt().max(f64::MIN_POSITIVE);
            scored.push((slopes[j * count + i] / spread, (i, j)));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let most = (PAIRS_PER_VARIABLE * count).min(MOST_PAIRS);
    Ok(scored.into_iter().take(most).map(|(_, pair)| pair).collect())
}

/// The effect of a pair.
#[derive(Clone)]
struct Effect {
    /// Places in the list of variables.
    variables: [usize; 2],
    /// φ with Σ φφᵀ = ẽ_i ẽ_j at the observations.
    columns: Vec<Vec<f64>>,
    /// None, or a place in `STRENGTHS`.
    strength: Option<usize>,
}

impl Effect {
    fn new(i: usize, j: usize, columns: Vec<Vec<f64>>) -> Self {
        Self { variables: [i, j], columns, strength: None }
    }

    fn variance(&self) -> f64 {
        self.strength.map_or(0.0, |strength| STRENGTHS[strength])
    }
}

/// What a change of the strength of an effect depends on: with Φ its columns, V = A⁻¹Φ (column by column), M = ΦᵀV and u = Φᵀα, a
/// change of s by δ changes ρ by −½ log|I + δM| + ½ δ uᵀ(I + δM)⁻¹u, and A⁻¹ by −δ V (I + δM)⁻¹ Vᵀ.
struct Lever {
    v: Vec<f64>,
    m: Lower,
    u: Vec<f64>,
}

impl Lever {
    /// I + δM, factored.
    fn factor(&self, delta: f64) -> Result<Factor> {
        let mut scaled = self.m.clone();
        scaled.values_mut().iter_mut().for_each(|value| *value *= delta);
        Factor::new(&scaled, 1.0)
    }

    /// By how much ρ changes.
    fn gain(&self, delta: f64) -> Result<f64> {
        let factor = self.factor(delta)?;
        let mut solved = self.u.clone();
        factor.forward_solve(&mut solved);
        Ok(0.5 * (delta * simd::dot(&solved, &solved) - factor.log_determinant()))
    }
}

/// The state of the sampler: τ, s_ij of every pair that is visited, and A⁻¹ with them.
#[derive(Clone)]
struct Chain<'a> {
    background: Background,
    effects: Vec<Effect>,
    dimension: usize,
    y: &'a [f64],
    /// The power to which the likelihood counts.
    power: f64,
    /// A place in `BACKGROUNDS`.
    tau: usize,
    /// A⁻¹, all of it, by rows.
    inverse: Vec<f64>,
    /// A⁻¹y.
    alpha: Vec<f64>,
}

impl<'a> Chain<'a> {
    fn new(
        background: Background,
        effects: Vec<Effect>,
        dimension: usize,
        y: &'a [f64],
        power: f64,
    ) -> Self {
        let (inverse, alpha) = (Vec::new(), Vec::new());
        Self { background, effects, dimension, y, power, tau: 0, inverse, alpha }
    }

    /// The average probability of each effect over the sweeps that count.
    fn run(&mut self, sweeps: usize, uncounted: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        let mut sums = vec![0.0; self.effects.len()];
        let mut order: Vec<usize> = (0..self.effects.len()).collect();
        self.visit_background(rng)?;
        for sweep in 0..sweeps {
            order.shuffle(rng);
            for &pair in &order {
                let probability = self.visit(pair, rng)?;
                if sweep >= uncounted {
                    sums[pair] += probability;
                }
            }
            for variable in 0..self.dimension {
                self.swap(variable, rng)?;
            }
            self.visit_background(rng)?;
        }
        let counted = sweeps.saturating_sub(uncounted).max(1) as f64;
        Ok(sums.into_iter().map(|sum| sum / counted).collect())
    }

    /// The log of what the urn says of a pair, for none and for each strength, up to a constant.
    fn log_urn(&self, pair: usize) -> [f64; STRENGTHS.len() + 1] {
        let mut counts = [0.0; STRENGTHS.len()];
        for (other, effect) in self.effects.iter().enumerate() {
            if let Some(strength) = effect.strength
                && other != pair
            {
                counts[strength] += 1.0;
            }
        }
        let with: f64 = counts.iter().sum();
        let dimension = self.dimension as f64;
        let all = 0.5 * dimension * (dimension - 1.0);
        let mut log = [0.0; STRENGTHS.len() + 1];
        log[0] = (URN * all + all - 1.0 - with).ln();
        for (log, count) in log[1..].iter_mut().zip(counts) {
            let share = (count + 1.0 / STRENGTHS.len() as f64) / (with + 1.0);
            *log = ((URN * 0.5 * dimension + with) * share).ln();
        }
        log
    }

    /// Draws the strength of a pair given everything else; the probability that it has one.
    fn visit(&mut self, pair: usize, rng: &mut Generator) -> Result<f64> {
        if self.effects[pair].columns.is_empty() {
            return Ok(0.0);
        }
        let lever = self.lever(pair);
        let present = self.effects[pair].variance();
        let mut log = self.log_urn(pair);
        log[0] += self.power * lever.gain(-present)?;
        for (log, &strength) in log[1..].iter_mut().zip(&STRENGTHS) {
            *log += self.power * lever.gain(strength - present)?;
        }
        let weights = normalised(&log);
        self.set(pair, drawn(&weights, rng).checked_sub(1), &lever)?;
        Ok(1.0 - weights[0])
    }

    /// Lets one effect that this variable has go over to another pair of the variable, with the strength that it has: of pairs that
    /// the data hardly tell apart, neither would come while the other is there. The variable and the number of its effects are the
    /// same before and after, and so are the pairs to choose from: a step is as likely as the step back.
    fn swap(&mut self, variable: usize, rng: &mut Generator) -> Result<()> {
        let of_variable =
            |effect: &Effect| effect.variables.contains(&variable) && !effect.columns.is_empty();
        let (with, without): (Vec<usize>, Vec<usize>) = (0..self.effects.len())
            .filter(|&pair| of_variable(&self.effects[pair]))
            .partition(|&pair| self.effects[pair].strength.is_some());
        if with.is_empty() || without.is_empty() {
            return Ok(());
        }
        let from = with[rng.random_range(0..with.len())];
        let strength = self.effects[from].strength;
        let variance = self.effects[from].variance();
        let lever = self.lever(from);
        self.set(from, None, &lever)?;
        let mut log = Vec::with_capacity(1 + without.len());
        let mut levers = Vec::with_capacity(1 + without.len());
        for &pair in std::iter::once(&from).chain(&without) {
            let lever = self.lever(pair);
            log.push(self.power * lever.gain(variance)?);
            levers.push((pair, lever));
        }
        let (pair, lever) = &levers[drawn(&normalised(&log), rng)];
        self.set(*pair, strength, lever)
    }

    fn lever(&self, pair: usize) -> Lever {
        let (n, columns) = (self.y.len(), &self.effects[pair].columns);
        let rank = columns.len();
        let mut v = vec![0.0; n * rank];
        add_transposed_product(n, &self.inverse, &columns.concat(), &mut v);
        let mut m = Lower::zeros(rank);
        for (k, column) in columns.iter().enumerate() {
            for (value, v) in m.column_mut(k).iter_mut().zip(v[k * n..].chunks_exact(n)) {
                *value = simd::dot(column, v);
            }
        }
        let u = columns.iter().map(|column| simd::dot(column, &self.alpha)).collect();
        Lever { v, m, u }
    }

    /// Gives an effect this strength.
    fn set(&mut self, pair: usize, strength: Option<usize>, lever: &Lever) -> Result<()> {
        let before = self.effects[pair].variance();
        self.effects[pair].strength = strength;
        let delta = self.effects[pair].variance() - before;
        if delta == 0.0 {
            return Ok(());
        }
        let (n, rank) = (self.y.len(), lever.u.len());
        // Rows of V become rows of VL⁻ᵀ.
        let mut rows = vec![0.0; n * rank];
        for a in 0..n {
            for k in 0..rank {
                rows[a * rank + k] = lever.v[k * n + a];
            }
        }
        lever.factor(delta)?.forward_solve_columns(&mut rows, n);
        let mut columns = vec![0.0; n * rank];
        for a in 0..n {
            for k in 0..rank {
                columns[k * n + a] = rows[a * rank + k];
            }
        }
        for (row, weights) in self.inverse.chunks_exact_mut(n).zip(rows.chunks_exact(rank)) {
            for (column, weight) in columns.chunks_exact(n).zip(weights) {
                simd::add_scaled(row, -delta * weight, column);
            }
        }
        self.alpha = self.times_inverse(self.y);
        Ok(())
    }

    fn times_inverse(&self, v: &[f64]) -> Vec<f64> {
        self.inverse.chunks_exact(v.len().max(1)).map(|row| simd::dot(row, v)).collect()
    }

    /// Draws τ, and computes A⁻¹ afresh, so that rounding does not add up.
    fn visit_background(&mut self, rng: &mut Generator) -> Result<()> {
        let mut covariance = self.background.alone.clone();
        for effect in self.effects.iter().filter(|effect| effect.strength.is_some()) {
            for column in &effect.columns {
                for (b, &value) in column.iter().enumerate() {
                    let weight = effect.variance() * value;
                    simd::add_scaled(covariance.column_mut(b), weight, &column[b..]);
                }
            }
        }
        let mut log = [0.0; BACKGROUNDS.len()];
        let mut factors = Vec::with_capacity(log.len());
        for (tau, log) in BACKGROUNDS.iter().zip(&mut log) {
            let factor = Factor::new(&covariance, self.background.noise + tau)?;
            *log = self.power * log_likelihood(&factor, self.y);
            factors.push(factor);
        }
        self.tau = drawn(&normalised(&log), rng);
        let (n, inverse) = (self.y.len(), factors[self.tau].inverse());
        self.inverse.resize(n * n, 0.0);
        for b in 0..n {
            for (offset, &value) in inverse.column(b).iter().enumerate() {
                self.inverse[b * n + b + offset] = value;
                self.inverse[(b + offset) * n + b] = value;
            }
        }
        self.alpha = self.times_inverse(self.y);
        Ok(())
    }
}

/// ρ up to a constant.
fn log_likelihood(factor: &Factor, y: &[f64]) -> f64 {
    let mut solved = y.to_vec();
    factor.forward_solve(&mut solved);
    -0.5 * (simd::dot(&solved, &solved) + factor.log_determinant())
}

/// Probabilities from their logarithms up to a constant.
fn normalised(log: &[f64]) -> Vec<f64> {
    let largest = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log.iter().map(|log| (log - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// A place drawn with these probabilities.
fn drawn(weights: &[f64], rng: &mut Generator) -> usize {
    let mut left: f64 = rng.random();
    for (place, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return place;
        }
    }
    weights.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelFamily;
    use crate::space::Parameter;

    fn random_data(space: &Space, n: usize, seed: u64, outcome: impl Fn(&[f64]) -> f64) -> Dataset {
        let mut data = Dataset::empty(space.dimension());
        for a in 0..n as u64 {
            let mut rng = Stream::new(seed, a).generator(Purpose::Problem);
            let point = space.sample(&mut rng);
            let y = outcome(&point.0) + 0.05 * crate::stream::standard_normal(&mut rng);
            data.push(&point, y).unwrap();
        }
        data
    }

    fn prior(dimension: usize, lengthscale: f64) -> AdditivePrior {
        AdditivePrior {
            components: (0..dimension).map(Component::single).collect(),
            kernel: Kernel::uniform(KernelFamily::Matern52, dimension, lengthscale, 0.3),
            noise_std: 0.1,
            all_pairs: Some(AllPairs { weights: vec![0.1; dimension] }),
            constant: 1.0,
            common_std: 0.0,
        }
    }

    fn chain<'a>(prior: &AdditivePrior, space: &Space, data: &'a Dataset) -> Chain<'a> {
        let all_pairs = prior.all_pairs.as_ref().unwrap();
        let factors = CentredFactors::new(&prior.kernel, all_pairs, space, data);
        let background = Background::new(prior, all_pairs, &factors, data);
        let pairs = promising_pairs(&factors, &background, data.outcomes()).unwrap();
        let effects =
            pairs.iter().map(|&(i, j)| Effect::new(i, j, factors.columns(i, j))).collect();
        Chain::new(background, effects, data.dimension(), data.outcomes(), 1.0)
    }

    /// ρ and A⁻¹ of the present state, computed afresh.
    fn afresh(chain: &Chain, tau: usize) -> (f64, Lower) {
        let n = chain.y.len();
        let mut covariance = chain.background.alone.clone();
        for b in 0..n {
            for a in b..n {
                let pairs = chain.effects.iter().map(|effect| {
                    let products = effect.columns.iter().map(|column| column[a] * column[b]);
                    effect.variance() * products.sum::<f64>()
                });
                covariance.column_mut(b)[a - b] += pairs.sum::<f64>();
            }
        }
        let noise = chain.background.noise + BACKGROUNDS[tau];
        let factor = Factor::new(&covariance, noise).unwrap();
        (log_likelihood(&factor, chain.y), factor.inverse())
    }

    #[test]
    fn centred_factors_average_to_nothing_and_vary_by_one() {
        let space = Space::new(vec![
            Parameter::real("r", -1.0, 3.0),
            Parameter::categorical("c", ["a", "b", "c"]),
            Parameter::integer("i", 0, 6),
        ])
        .unwrap();
        let mut prior = prior(3, 0.4);
        prior.kernel.metrics[1] = crate::kernel::Metric::Categorical;
        // Observations at the nodes of the averages: every one counts the same.
        let nodes: [Vec<f64>; 3] = [
            (0..NODES).map(|k| (k as f64 + 0.5) / NODES as f64).collect(),
            (0..3).map(|level| space.coordinate(1, level)).collect(),
            (0..7).map(|level| space.coordinate(2, level)).collect(),
        ];
        for (i, nodes) in nodes.iter().enumerate() {
            let mut data = Dataset::empty(3);
            for &x in nodes {
                let mut point = vec![0.5, space.coordinate(1, 0), 0.5];
                point[i] = x;
                data.push(&crate::space::Point(point), 0.0).unwrap();
            }
            let n = nodes.len();
            let all_pairs = prior.all_pairs.clone().unwrap();
            let factors = CentredFactors::new(&prior.kernel, &all_pairs, &space, &data);
            assert_eq!(factors.variables, [0, 1, 2]);
            for b in 0..n {
                let sum: f64 = (0..n).map(|a| factors.entry(i, a, b)).sum();
                assert!(sum.abs() < 1e-10, "{sum}");
            }
            let trace: f64 = (0..n).map(|a| factors.entry(i, a, a)).sum();
            assert!((trace / n as f64 - 1.0).abs() < 1e-10, "{trace}");
        }
    }

    #[test]
    fn the_spread_is_one_all_over_the_range_and_none_at_a_point() {
        let space = Space::new(vec![
            Parameter::real("r", -1.0, 3.0),
            Parameter::categorical("c", ["a", "b", "c"]),
        ])
        .unwrap();
        let mut prior = prior(2, 0.4);
        prior.kernel.metrics[1] = crate::kernel::Metric::Categorical;
        let all_pairs = prior.all_pairs.clone().unwrap();
        // Every category, at points of this part of the range of the other variable.
        let spread = |part: f64| {
            let mut data = Dataset::empty(2);
            for k in 0..NODES {
                let x = 0.5 + part * ((k as f64 + 0.5) / NODES as f64 - 0.5);
                for level in 0..3 {
                    let point = vec![x, space.coordinate(1, level)];
                    data.push(&crate::space::Point(point), 0.0).unwrap();
                }
            }
            CentredFactors::new(&prior.kernel, &all_pairs, &space, &data).spread()
        };
        assert!((spread(1.0) - 1.0).abs() < 1e-10, "{}", spread(1.0));
        assert!((spread(0.0) - 0.5).abs() < 1e-10, "{}", spread(0.0));
        // As the definition has it, without centring.
        let e = |x: f64, node: f64| {
            let mut factor = [0.0];
            prior.kernel.factor(
                0,
                &[prior.kernel.scaled(0, x)],
                prior.kernel.scaled(0, node),
                &mut factor,
            );
            factor[0]
        };
        let missing = |part: f64| {
            let x = |k: usize| 0.5 + part * ((k as f64 + 0.5) / NODES as f64 - 0.5);
            let sum: f64 = (0..NODES)
                .flat_map(|k| (0..NODES).map(move |l| (k, l)))
                .map(|(k, l)| e(x(k), x(l)))
                .sum();
            1.0 - sum / (NODES * NODES) as f64
        };
        // Between different observations only.
        let n = (3 * NODES) as f64;
        let want = 0.5 + 0.5 * n / (n - 1.0) * missing(0.3) / missing(1.0);
        assert!((spread(0.3) - want).abs() < 1e-10, "{} {want}", spread(0.3));
        assert!(want < 0.7, "{want}");
    }

    #[test]
    fn columns_make_up_the_effect_of_a_pair() {
        let space = Space::unit_cube(3).unwrap();
        let data = random_data(&space, 30, 1, |x| x[0]);
        let prior = prior(3, 1.0);
        let all_pairs = prior.all_pairs.as_ref().unwrap();
        let factors = CentredFactors::new(&prior.kernel, all_pairs, &space, &data);
        let columns = factors.columns(0, 2);
        assert!(!columns.is_empty() && columns.len() <= MOST_RANK);
        let (mut missing, mut all) = (0.0, 0.0);
        for a in 0..30 {
            for b in 0..30 {
                let whole = factors.entry(0, a, b) * factors.entry(2, a, b);
                let made: f64 = columns.iter().map(|column| column[a] * column[b]).sum();
                // What is missing is a covariance too: nowhere more than on its diagonal.
                if a == b {
                    assert!(made <= whole + 1e-9, "{made} {whole}");
                    missing += whole - made;
                    all += whole;
                }
            }
        }
        assert!(missing <= MISSING * all + 1e-9, "{missing} of {all}");
    }

    #[test]
    fn gains_and_inverses_are_those_computed_afresh() {
        let space = Space::unit_cube(4).unwrap();
        let data = random_data(&space, 25, 2, |x| 3.0 * (x[0] - 0.5) * (x[1] - 0.5) + x[2]);
        let prior = prior(4, 0.5);
        let mut chain = chain(&prior, &space, &data);
        let mut rng = Stream::new(1, 1).generator(Purpose::Structure);
        chain.visit_background(&mut rng).unwrap();
        let changes =
            [(0, Some(4)), (2, Some(6)), (0, Some(2)), (5, Some(0)), (2, None), (0, None)];
        for (pair, strength) in changes {
            let before = afresh(&chain, chain.tau).0;
            let lever = chain.lever(pair);
            let variance = strength.map_or(0.0, |strength| STRENGTHS[strength]);
            let gain = lever.gain(variance - chain.effects[pair].variance()).unwrap();
            chain.set(pair, strength, &lever).unwrap();
            let (after, inverse) = afresh(&chain, chain.tau);
            assert!((after - before - gain).abs() < 1e-8, "{before} {after} {gain}");
            for b in 0..25 {
                for (offset, value) in inverse.column(b).iter().enumerate() {
                    for found in
                        [chain.inverse[b * 25 + b + offset], chain.inverse[(b + offset) * 25 + b]]
                    {
                        assert!((found - value).abs() < 1e-8 * (1.0 + value.abs()));
                    }
                }
            }
        }
    }

    #[test]
    fn what_variables_do_alike_is_in_the_background() {
        let space = Space::unit_cube(3).unwrap();
        let data = random_data(&space, 8, 4, |x| x[0] + x[1] * x[2]);
        let with = AdditivePrior { common_std: 0.4, ..prior(3, 0.5) };
        let effect = CommonEffect::new(&with.kernel, with.common_std);
        let [with, without] =
            [with, prior(3, 0.5)].map(|prior| chain(&prior, &space, &data).background.alone);
        for b in 0..8 {
            for a in b..8 {
                let [of_a, of_b] = [a, b].map(|a| effect.of_point(&data.point(a).0));
                let want: f64 = of_a.iter().zip(of_b).map(|(a, b)| a * b).sum();
                let got = with.column(b)[a - b] - without.column(b)[a - b];
                assert!((got - want).abs() < 1e-12, "{got} {want}");
            }
        }
    }

    #[test]
    fn the_sampler_has_the_exact_distribution() {
        the_sampler_has_the_exact_distribution_with(1.0);
    }

    #[test]
    fn the_sampler_has_the_exact_distribution_with_a_power_of_the_likelihood() {
        the_sampler_has_the_exact_distribution_with(0.5);
    }

    /// All states of three pairs and τ with their probabilities, against long chains.
    fn the_sampler_has_the_exact_distribution_with(power: f64) {
        let space = Space::unit_cube(3).unwrap();
        let data = random_data(&space, 14, 3, |x| 2.0 * (x[0] - 0.5) * (x[1] - 0.5) + 0.3 * x[2]);
        let prior = prior(3, 0.6);
        let mut exact = Chain { power, ..chain(&prior, &space, &data) };
        assert_eq!(exact.effects.len(), 3);
        let choices = STRENGTHS.len() + 1;
        let mut logs = Vec::new();
        for code in 0..choices.pow(3) {
            let state = [code % choices, code / choices % choices, code / choices / choices];
            // The urn, one pair after the other: the order does not matter.
            let mut urn = 0.0;
            for effect in &mut exact.effects {
                effect.strength = None;
            }
            for (pair, &choice) in state.iter().enumerate() {
                // What the urn says of this pair knows only of those before it.
                let all = 3.0;
                let before: Vec<usize> =
                    state[..pair].iter().filter_map(|c| c.checked_sub(1)).collect();
                let with = before.len() as f64;
                let without = pair as f64 - with;
                let (a, b) = (URN * 1.5, URN * all);
                let sum = a + b + pair as f64;
                urn += match choice.checked_sub(1) {
                    None => ((b + without) / sum).ln(),
                    Some(strength) => {
                        let same = before.iter().filter(|&&other| other == strength).count() as f64;
                        let share = (same + 1.0 / STRENGTHS.len() as f64) / (with + 1.0);
                        ((a + with) / sum * share).ln()
                    }
                };
                exact.effects[pair].strength = choice.checked_sub(1);
            }
            for tau in 0..BACKGROUNDS.len() {
                logs.push((state, urn + power * afresh(&exact, tau).0));
            }
        }
        let weights = normalised(&logs.iter().map(|(_, log)| *log).collect::<Vec<_>>());
        let mut want = [0.0; 3];
        for ((state, _), weight) in logs.iter().zip(&weights) {
            for (want, choice) in want.iter_mut().zip(state) {
                *want += if *choice > 0 { *weight } else { 0.0 };
            }
        }
        // Something is to be found, and something is not sure.
        assert!(want.iter().any(|want| (0.1..0.98).contains(want)), "{want:?}");
        let mut rng = Stream::new(7, 7).generator(Purpose::Structure);
        let mut found = vec![Vec::new(); 3];
        for _ in 0..20 {
            let mut chain = exact.clone();
            chain.effects.iter_mut().for_each(|effect| effect.strength = None);
            let run = chain.run(420, 20, &mut rng).unwrap();
            for (found, probability) in found.iter_mut().zip(run) {
                found.push(probability);
            }
        }
        for (found, want) in found.iter().zip(want) {
            let mean = found.iter().sum::<f64>() / 20.0;
            let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0;
            let error = (variance / 20.0).sqrt();
            assert!((mean - want).abs() < 4.0 * error + 1e-9, "{mean} ± {error}, exact {want}");
            assert!(error < 0.02, "{error}");
        }
    }

    #[test]
    fn a_planted_pair_is_found_and_an_empty_graph_stays_empty() {
        let space = Space::unit_cube(8).unwrap();
        let alone = |x: &[f64]| (3.0 * x[0]).sin() + x[3] * x[3] + 0.5 * x[5];
        let planted = |x: &[f64]| alone(x) + 6.0 * (x[1] - 0.5) * (x[6] - 0.5);
        let of = |outcome: &dyn Fn(&[f64]) -> f64| {
            let data = random_data(&space, 80, 5, outcome);
            edge_probabilities(&prior(8, 0.7), &space, &data, &Stream::new(0, 0)).unwrap()
        };
        let found = of(&planted);
        assert_eq!(<(usize, usize)>::from(found[0].0), (1, 6));
        assert!(found[0].1 > 0.95, "{found:?}");
        assert!(found[1..].iter().all(|(_, probability)| *probability < 0.3), "{found:?}");
        assert!(of(&alone).iter().all(|(_, probability)| *probability < 0.3));
        // The same data have the same answer.
        assert_eq!(found, of(&planted));
    }

    #[test]
    fn points_in_a_part_of_the_range_say_less_of_pairs_than_the_likelihood_does() {
        let space = Space::unit_cube(5).unwrap();
        let near = |x: f64| 0.4 + 0.25 * x;
        let mut data = Dataset::empty(5);
        for a in 0..60 {
            let mut rng = Stream::new(11, a).generator(Purpose::Problem);
            let point =
                crate::space::Point(space.sample(&mut rng).0.into_iter().map(near).collect());
            let y = 30.0 * (point.0[0] - 0.5) * (point.0[1] - 0.5);
            data.push(&point, y + 0.1 * crate::stream::standard_normal(&mut rng)).unwrap();
        }
        let (prior, stream) = (prior(5, 0.5), Stream::new(0, 0));
        let likeliest = |found: Vec<(Edge, f64)>| (<(usize, usize)>::from(found[0].0), found[0].1);
        let spread = likeliest(edge_probabilities(&prior, &space, &data, &stream).unwrap());
        let whole =
            likeliest(of_chains::<4>(&prior, &space, &data, SWEEPS, |_| 1.0, &stream).unwrap());
        assert_eq!((spread.0, whole.0), ((0, 1), (0, 1)));
        assert!(spread.1 < whole.1 - 0.1, "{spread:?} {whole:?}");
    }

    /// An effect that explains everything to the last digit can come and go.
    #[test]
    fn an_exact_effect_of_booleans_is_no_accident() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let space = Space::new(names.map(Parameter::boolean).to_vec()).unwrap();
        for seed in 0..10 {
            let mut data = Dataset::empty(6);
            for a in 0..80 {
                let point = space.sample(&mut Stream::new(seed, a).generator(Purpose::Problem));
                let y = (2.0 * point.0[0] - 1.0) * (2.0 * point.0[1] - 1.0);
                data.push(&point, y).unwrap();
            }
            let exact = AdditivePrior { noise_std: 1e-3, ..prior(6, 0.5) };
            let found = edge_probabilities(&exact, &space, &data, &Stream::new(0, 0)).unwrap();
            assert_eq!(<(usize, usize)>::from(found[0].0), (0, 1));
            assert!(found[0].1 > 0.99 && found[1].1 < 0.3, "{found:?}");
        }
    }

    #[test]
    fn where_nothing_can_be_said_nothing_is() {
        let space = Space::unit_cube(3).unwrap();
        let data = random_data(&space, 20, 6, |x| x[0]);
        let without = AdditivePrior { all_pairs: None, constant: 0.0, ..prior(3, 0.5) };
        let stream = Stream::new(0, 0);
        assert!(edge_probabilities(&without, &space, &data, &stream).unwrap().is_empty());
        let two = random_data(&space, 2, 6, |x| x[0]);
        assert!(edge_probabilities(&prior(3, 0.5), &space, &two, &stream).unwrap().is_empty());
        let one = Space::unit_cube(1).unwrap();
        let data = random_data(&one, 20, 6, |x| x[0]);
        assert!(edge_probabilities(&prior(1, 0.5), &one, &data, &stream).unwrap().is_empty());
        // More observations than are looked at, and a variable that never varies.
        let data = random_data(&space, MOST_OBSERVATIONS + 20, 6, |x| x[0] * x[1]);
        let mut flat = prior(3, 0.5);
        flat.kernel.lengthscales[2] = 1e4;
        let found = edge_probabilities(&flat, &space, &data, &stream).unwrap();
        assert_eq!(found.len(), 1);
    }
}
