//! What a study has learned: the point to use, what matters, how it matters, and how far to believe it.
//!
//! The model of a study is a sum of functions of few parameters. Conditioned on the outcomes it says of every parameter what
//! it does alone (its *main effect*), and of every two that share a function what they do together beyond that (their
//! *interaction*). This is the functional analysis of variance of the posterior mean over the space, every parameter drawn as
//! [`boscage::Space::sample`] draws it, whatever conditions say. Everything is given in the units of the user.
//!
//! Notation: a factor e_i(x, a) belongs to variable i between a coordinate and observation a. ē_i is its average over the
//! range of the variable, by quadrature. Since a kernel is a product of factors, the effect of a set S of variables has the
//! covariances Σ_{G⊇S} σ^G ∏_{i∈S} (e_i − ē_i) ∏_{j∈G∖S} ē_j with the observations: no other grid is needed, however large a
//! component is. α = Δ⁻¹y are the weights of the observations. Where all pairs interact ([`boscage::all_pairs`]), each pair with a
//! product of weights w_i w_j, they count as a component each; the sum over the partners of a variable is the same for all variables
//! but for its own term.
//!
//! Cost with n observations: n²/2 for each node at which effects are uncertain, 12 for each parameter and 49 for each pair: one or two
//! seconds at D = 250 and n = 1,000.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use boscage::additive_gp::{AdditivePosterior, Dataset, Normal};
use boscage::edge_probabilities::edge_probabilities;
use boscage::graph::{Component, Edge};
use boscage::kernel::Kernel;
use boscage::model_comparison::{ModelComparison, left_out, model_comparison, predicted_share};
use boscage::outputs::OutputMap;
use boscage::stream::Purpose;
use boscage::{Point, Space, Stream, Value};

use crate::error::Result;
use crate::goal::Goal;
use crate::parameters::{Kind, StudySpace, Values};
use crate::view::StudyView;

/// Nodes of the quadrature over a real parameter.
const NODES: usize = 32;
/// Nodes at which a main effect is drawn to learn how uncertain its share is, and those of each parameter of a pair.
const DRAWN_NODES: usize = 12;
const DRAWN_PAIR_NODES: usize = 7;
/// A parameter with this many levels or fewer is looked at on all of them.
const ALL_LEVELS: usize = 12;
/// Draws of every effect.
const DRAWS: usize = 200;
/// Places at which a main effect is shown, and those of each parameter of a pair.
const SHOWN: usize = 41;
const SHOWN_PAIR: usize = 21;
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
/// Pairs less likely than this are no edges.
const LEAST_PROBABILITY: f64 = 0.05;
/// A model is better than another if it predicts so much more of the variance, and as good if the difference is less than that.
const BETTER: f64 = 0.05;
const AS_GOOD: f64 = 0.01;
/// Below this share of the variance of left-out outcomes nothing is claimed.
const LEAST_PREDICTED: f64 = 0.25;

/// A point that was tried, with what the model makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The number of its trial.
    pub trial: u64,
    /// Its values.
    pub values: Values,
    /// What came out when it was tried.
    pub outcome: f64,
    /// What the model expects there, without noise.
    pub mean: f64,
    /// How sure it is of that: a standard deviation.
    pub std: f64,
}

/// A share of the variance, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Share {
    /// Of the posterior mean.
    pub value: f64,
    /// Nine of ten functions that fit the outcomes have a share from here …
    pub low: f64,
    /// … to here. Both ends are moved to hold `value`, where they would not.
    pub high: f64,
}

/// How much a parameter matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterImportance {
    /// Its number in the space.
    pub parameter: usize,
    /// The share of its main effect.
    pub main: Share,
    /// That, and the shares of all pairs that it is in.
    pub total: f64,
}

/// How much two parameters matter together, beyond what each does alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairImportance {
    /// The parameter with the smaller number.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// The share of their interaction.
    pub share: Share,
    /// If the pair is an edge of the learned graph: the share of structure samples that had it. Where all pairs may interact, the
    /// samples are those of [`boscage::edge_probabilities`], the share is a probability, and pairs without one are unlikely.
    pub frequency: Option<f64>,
}

/// How well the model predicts each outcome from all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trust {
    /// How many outcomes there are.
    pub observations: usize,
    /// How much of the variance of the outcomes is predicted that way: 1 is all, 0 no more than their mean does. None if
    /// there are fewer than three, or if they are all the same. Outliers count as the model sees them, drawn in.
    pub predicted: Option<f64>,
    /// The root of the mean square of what is left, in the units of the outcomes.
    pub error: f64,
    /// The share of outcomes that lie within two standard deviations of their prediction; 0.95 if these are right.
    pub within_two: f64,
    /// The standard deviation of the noise that was learned, in the units of the outcomes.
    pub noise: f64,
}

impl Trust {
    fn is_believable(&self) -> bool {
        self.predicted.is_some_and(|predicted| predicted >= LEAST_PREDICTED)
    }
}

/// A function of one parameter, centred: what the outcome is above or below its average over the space.
#[derive(Debug, Clone, PartialEq)]
pub struct MainEffect {
    /// Values of the parameter, from low to high; all levels, if there are few.
    pub values: Vec<Value>,
    /// The same as coordinates of the model, from 0 to 1.
    pub coordinates: Vec<f64>,
    /// The effect.
    pub mean: Vec<f64>,
    /// Its standard deviation.
    pub std: Vec<f64>,
}

/// A function of two parameters, centred: both main effects and the interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct PairSurface {
    /// Values of the first parameter.
    pub first: Vec<Value>,
    /// Values of the second.
    pub second: Vec<Value>,
    /// The effect; the second parameter varies fastest.
    pub mean: Vec<f64>,
    /// Its standard deviation.
    pub std: Vec<f64>,
}

/// What a study has learned.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The point to use: of all that were tried, the one of which the model expects most. It is less easily fooled by noise than
    /// the best outcome, and unlike a maximum of the model it is known to work: conditions and failures have had their say. While
    /// the model cannot be believed ([`Explanation::is_believable`]) it is the point with the best outcome.
    pub recommended: Predicted,
    /// The point with the best outcome.
    pub luckiest: Predicted,
    /// One for each parameter, in the order of the space.
    pub parameters: Vec<ParameterImportance>,
    /// All pairs that can have an interaction in the model, strongest first.
    pub pairs: Vec<PairImportance>,
    /// What is left of the variance after parameters and pairs: 0 for sums of functions of one or two parameters, and what
    /// three and more do together for others (with the pairs among weak parameters, if there are many). Parameters, pairs
    /// and this are 1 in sum.
    pub rest: f64,
    /// Whether that can only be pairs of weak parameters.
    pub rest_is_pairs: bool,
    /// Whether the model has more than one component: whether there is a structure to speak of.
    pub additive: bool,
    /// Whether frequencies of pairs are probabilities.
    pub probabilities: bool,
    /// How far to believe all this.
    pub trust: Trust,
    space: StudySpace,
    /// As the model sees it.
    data: Dataset,
    effects: Effects,
    units: Units,
}

/// From what the model sees to the units of the user.
#[derive(Debug, Clone, Copy)]
struct Units {
    sign: f64,
    outputs: OutputMap,
}

impl Units {
    fn mean(self, z: f64) -> f64 {
        self.sign * self.outputs.invert(z)
    }

    fn effect(self, z: f64) -> f64 {
        self.sign * self.outputs.scale * z
    }

    fn std(self, variance: f64) -> f64 {
        self.outputs.scale * variance.max(0.0).sqrt()
    }
}

impl Explanation {
    /// Explains a study; none if there is no model, or no outcome.
    pub fn new(view: &StudyView) -> Result<Option<Self>> {
        let Some(model) = view.model.as_ref().filter(|model| model.observations > 0) else {
            return Ok(None);
        };
        let space = &view.space;
        let mut outcomes: Vec<(u64, &Values, f64)> = view
            .trials
            .iter()
            .filter_map(|trial| Some((trial.number, trial.values.as_ref()?, trial.outcome()?)))
            .collect();
        outcomes.sort_by_key(|outcome| outcome.0);
        if outcomes.is_empty() {
            return Ok(None);
        }
        let units = Units { sign: view.goal.sign(), outputs: model.outputs };
        let mut data = Dataset::empty(space.dimension());
        for (_, values, outcome) in &outcomes {
            data.push(&space.encode(values)?, model.outputs.apply(units.sign * outcome))?;
        }
        let posterior = model.prior.condition(&data)?;
        let trust = trust(&posterior, &data, units);

        let predicted = |a: usize| -> Result<Predicted> {
            let (trial, values, outcome) = outcomes[a];
            let Normal { mean, variance } = posterior.joint(&data.point(a))?;
            let (mean, std) = (units.mean(mean), units.std(variance));
            Ok(Predicted { trial, values: values.clone(), outcome, mean, std })
        };
        // Kα = y − η²α is the mean at the observed points.
        let noise = model.prior.noise_std * model.prior.noise_std;
        let means: Vec<f64> = data
            .outcomes()
            .iter()
            .zip(posterior.weights())
            .map(|(y, alpha)| y - noise * alpha)
            .collect();
        let raw: Vec<f64> = outcomes.iter().map(|(.., outcome)| units.sign * outcome).collect();
        let luckiest = predicted(best(&raw))?;
        let recommended =
            if trust.is_believable() { predicted(best(&means))? } else { luckiest.clone() };

        let effects = Effects::new(space, posterior)?;
        let probabilities = model.prior.all_pairs.is_some();
        let edges: BTreeMap<(usize, usize), f64> = if probabilities {
            // Always the same stream: the same study has the same explanation.
            let stream = Stream::new(0, 2);
            edge_probabilities(&model.prior, space.engine(), &data, &stream)?
                .into_iter()
                .filter(|(_, probability)| *probability >= LEAST_PROBABILITY)
                .map(|(edge, probability)| (edge.into(), probability))
                .collect()
        } else {
            let frequencies: HashMap<Edge, f64> = model.edge_frequencies.iter().copied().collect();
            // An edge that no sample had was there from the beginning.
            let frequency = |edge: &Edge| frequencies.get(edge).copied().unwrap_or(1.0);
            model.graph.edges().iter().map(|edge| ((*edge).into(), frequency(edge))).collect()
        };
        let shares = effects.shares(space, edges.keys().copied())?;
        let pairs = shares.pairs.iter().map(|&((first, second), share)| PairImportance {
            first,
            second,
            share,
            frequency: edges.get(&(first, second)).copied(),
        });
        let mut pairs: Vec<PairImportance> = pairs.collect();
        pairs.sort_by(|a, b| {
            let frequency = |pair: &PairImportance| pair.frequency.unwrap_or(0.0);
            (b.share.value.total_cmp(&a.share.value))
                .then(frequency(b).total_cmp(&frequency(a)))
                .then((a.first, a.second).cmp(&(b.first, b.second)))
        });
        let mut totals: Vec<f64> = shares.mains.iter().map(|share| share.value).collect();
        for pair in &pairs {
            totals[pair.first] += pair.share.value;
            totals[pair.second] += pair.share.value;
        }
        let parameters = shares.mains.iter().zip(totals).enumerate();
        let parameters = parameters
            .map(|(parameter, (&main, total))| ParameterImportance { parameter, main, total })
            .collect();
        Ok(Some(Self {
            recommended,
            luckiest,
            parameters,
            pairs,
            rest: shares.rest,
            rest_is_pairs: model.prior.components.iter().all(|component| component.len() <= 2),
            additive: model.prior.components.len() > 1,
            probabilities,
            trust,
            space: space.clone(),
            data,
            effects,
            units,
        }))
    }

    /// Parameters by what they do alone and in pairs, strongest first.
    pub fn strongest(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.parameters.len()).collect();
        order.sort_by(|&a, &b| self.parameters[b].total.total_cmp(&self.parameters[a].total));
        order
    }

    /// The fewest of the strongest parameters whose effects, and those of the pairs among them, make up this share of the
    /// variance; with the share that they do make up. None if all of them do not.
    pub fn enough(&self, share: f64) -> Option<(Vec<usize>, f64)> {
        let mut chosen = BTreeSet::new();
        let mut list = Vec::new();
        let mut sum = 0.0;
        for parameter in self.strongest() {
            chosen.insert(parameter);
            list.push(parameter);
            sum += self.parameters[parameter].main.value;
            for pair in &self.pairs {
                let other = match (pair.first == parameter, pair.second == parameter) {
                    (true, _) => pair.second,
                    (_, true) => pair.first,
                    _ => continue,
                };
                if chosen.contains(&other) {
                    sum += pair.share.value;
                }
            }
            // Sums of shares round.
            if sum >= share - 1e-9 {
                return Some((list, sum.min(1.0)));
            }
        }
        None
    }

    /// The pairs that clearly act together: they make a difference, and the structure samples had them more often than not.
    pub fn joint_pairs(&self) -> Vec<&PairImportance> {
        let clear = |pair: &&PairImportance| {
            pair.share.value >= 0.03
                && pair.share.low >= 0.01
                && pair.frequency.map_or(!self.probabilities, |share| share >= 0.5)
        };
        if self.is_believable() { self.pairs.iter().filter(clear).collect() } else { Vec::new() }
    }

    /// Whether the model predicts well enough for claims about what matters.
    pub fn is_believable(&self) -> bool {
        self.trust.is_believable()
    }

    /// What matters, in a sentence; it claims nothing that the numbers do not support.
    pub fn sentence(&self) -> String {
        let name = |d: usize| {
            self.space.parameters().get(d).map_or("", |parameter| parameter.name.as_str())
        };
        let dimension = self.parameters.len();
        match self.trust.predicted {
            None if self.trust.observations < 3 => {
                return "There are too few outcomes to say what matters.".to_string();
            }
            None => return "All outcomes are the same: nothing matters so far.".to_string(),
            Some(predicted) if !self.is_believable() => {
                return format!(
                    "The model predicts {} of the variance of outcomes that are left out: too little to say what matters.",
                    if predicted <= 0.005 { "none".to_string() } else { percent(predicted) }
                );
            }
            Some(_) => {}
        }
        if self.parameters.iter().all(|parameter| parameter.total == 0.0) {
            return "No parameter has an effect in the model.".to_string();
        }
        let mut sentence = match self.enough(0.95) {
            Some((list, _)) if list.len() == dimension && dimension > 1 => {
                format!("It takes all {dimension} parameters to explain 95 % of the variance")
            }
            Some((list, _)) => {
                let parameters = if dimension == 1 { "parameter" } else { "parameters" };
                let explain = if list.len() == 1 { "explains" } else { "explain" };
                format!("{} of {dimension} {parameters} {explain} 95 % of the variance", list.len())
            }
            None => format!(
                "Single parameters and pairs explain {} of the variance, and {} the rest",
                percent(1.0 - self.rest),
                if self.rest_is_pairs {
                    "many weak pairs"
                } else {
                    "more than two parameters together"
                }
            ),
        };
        let together: Vec<String> = self
            .joint_pairs()
            .iter()
            .take(3)
            .map(|pair| format!("{} and {}", name(pair.first), name(pair.second)))
            .collect();
        match together.as_slice() {
            [] => {}
            [one] => sentence += &format!("; {one} must be tuned together"),
            [first, others @ ..] => {
                sentence += &format!(
                    "; {first} must be tuned together, and so must {}",
                    others.join(", and ")
                );
            }
        }
        sentence + "."
    }

    /// How well models of other kinds predict the same outcomes. They are learned for this, which takes a moment.
    pub fn comparison(&self) -> Result<ModelComparison> {
        let mut edges = Vec::new();
        for pair in &self.pairs {
            if pair.frequency.is_some_and(|frequency| frequency >= 0.5) {
                edges.push(Edge::new(pair.first, pair.second)?);
            }
        }
        Ok(model_comparison(self.space.engine(), &self.data, &edges)?)
    }

    /// A comparison in words, and what follows from it if anything does; nothing if nothing can be predicted.
    pub fn comparison_sentences(&self, comparison: &ModelComparison) -> Vec<String> {
        let share = |predicted: f64| match predicted {
            p if p <= 0.005 => "none".to_string(),
            p => percent(p),
        };
        let mut parts = Vec::new();
        if let Some(alone) = comparison.alone {
            parts.push(format!("single parameters {}", share(alone)));
        }
        if let Some((count, Some(forest))) = comparison.forest {
            let pairs = if count == 1 { "pair" } else { "pairs" };
            parts.push(format!("these and {count} likely {pairs} {}", share(forest)));
        }
        if let Some(whole) = comparison.whole {
            parts.push(format!("one function of all parameters {}", share(whole)));
        }
        let (Some(own), false) = (self.trust.predicted, parts.is_empty()) else {
            return Vec::new();
        };
        let mut sentences = vec![format!("Other models would predict: {}.", parts.join(", "))];
        if self.additive && comparison.whole.is_some_and(|whole| whole > own + BETTER) {
            let text = "More than two parameters act together: importances are not the whole story, and the method gp-ucb may \
                        do better.";
            sentences.push(text.to_string());
        } else if comparison.alone.is_some_and(|alone| alone > own - AS_GOOD && alone > 0.5) {
            sentences.push("As far as can be seen, parameters act independently.".to_string());
        }
        sentences
    }

    /// What a parameter does alone; none if there is no such parameter.
    pub fn main_effect(&self, parameter: usize) -> Result<Option<MainEffect>> {
        if parameter >= self.space.dimension() {
            return Ok(None);
        }
        let coordinates = shown_coordinates(&self.space, parameter, SHOWN)?;
        let normals = self.effects.main(parameter, &coordinates);
        Ok(Some(MainEffect {
            values: labels(&self.space, parameter, &coordinates)?,
            mean: normals.iter().map(|normal| self.units.effect(normal.mean)).collect(),
            std: normals.iter().map(|normal| self.units.std(normal.variance)).collect(),
            coordinates,
        }))
    }

    /// What two parameters do, alone and together; none if there are no two such parameters.
    pub fn pair_surface(&self, first: usize, second: usize) -> Result<Option<PairSurface>> {
        if first == second || first.max(second) >= self.space.dimension() {
            return Ok(None);
        }
        let axes = [
            shown_coordinates(&self.space, first, SHOWN_PAIR)?,
            shown_coordinates(&self.space, second, SHOWN_PAIR)?,
        ];
        let normals = self.effects.pair(first, second, &axes);
        Ok(Some(PairSurface {
            first: labels(&self.space, first, &axes[0])?,
            second: labels(&self.space, second, &axes[1])?,
            mean: normals.iter().map(|normal| self.units.effect(normal.mean)).collect(),
            std: normals.iter().map(|normal| self.units.std(normal.variance)).collect(),
        }))
    }

    /// What the model expects at these values, without noise, and the standard deviation of that.
    pub fn predict(&self, values: &[Option<Value>]) -> Result<(f64, f64)> {
        let Normal { mean, variance } =
            self.effects.posterior.joint(&self.space.encode(values)?)?;
        Ok((self.units.mean(mean), self.units.std(variance)))
    }

    /// The average of what the model expects over the space: what effects are above or below of.
    pub fn average(&self) -> f64 {
        self.units.mean(self.effects.constant())
    }

    /// Whether effects below 0 are good.
    pub fn goal(&self) -> Goal {
        if self.units.sign < 0.0 { Goal::Minimize } else { Goal::Maximize }
    }
}

/// A share as whole percent; small ones are not called 0.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.005 {
        "under 1 %".to_string()
    } else {
        format!("{:.0} %", 100.0 * share)
    }
}

/// The place of the largest number; the first of several.
fn best(numbers: &[f64]) -> usize {
    let mut place = 0;
    for (k, number) in numbers.iter().enumerate() {
        if *number > numbers[place] {
            place = k;
        }
    }
    place
}

/// Each outcome predicted from all others, without refitting.
fn trust(posterior: &AdditivePosterior, data: &Dataset, units: Units) -> Trust {
    let n = data.len() as f64;
    let left = left_out(posterior);
    let squares: f64 = left.iter().map(|(residual, _)| residual * residual).sum();
    let within = left.iter().filter(|(residual, variance)| residual * residual <= 4.0 * variance);
    Trust {
        observations: data.len(),
        predicted: predicted_share(posterior, data.outcomes()),
        error: units.outputs.scale * (squares / n).sqrt(),
        within_two: within.count() as f64 / n,
        noise: units.outputs.scale * posterior.prior().noise_std,
    }
}

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
fn shown_coordinates(space: &StudySpace, d: usize, most: usize) -> Result<Vec<f64>> {
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
fn labels(space: &StudySpace, d: usize, coordinates: &[f64]) -> Result<Vec<Value>> {
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
struct Shares {
    mains: Vec<Share>,
    pairs: Vec<((usize, usize), Share)>,
    rest: f64,
}

/// A posterior with averages of its factors.
#[derive(Debug, Clone)]
struct Effects {
    posterior: AdditivePosterior,
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
}

impl Effects {
    fn new(space: &StudySpace, posterior: AdditivePosterior) -> Result<Self> {
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
    fn constant(&self) -> f64 {
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
                alpha * (all_pairs.constant + 0.5 * (self.partners.0[a].powi(2) - squares))
            };
            self.posterior.weights().iter().enumerate().map(weighted).sum()
        });
        prior.components.iter().map(component).sum::<f64>() + all_pairs
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
    fn main(&self, i: usize, coordinates: &[f64]) -> Vec<Normal> {
        let (others, prior) = self.others(&[i], &[]);
        let mut columns = Vec::with_capacity(coordinates.len() * others.len());
        for &x in coordinates {
            columns.extend(
                self.centred(i, x).into_iter().zip(&others).map(|(factor, other)| factor * other),
            );
        }
        let variance =
            |&x: &f64| prior * (1.0 - 2.0 * self.average_factor(i, x) + self.double_averages[i]);
        self.normals(columns, &coordinates.iter().map(variance).collect::<Vec<_>>())
    }

    /// Both main effects and the interaction of two variables; the second varies fastest.
    fn pair(&self, i: usize, j: usize, axes: &[Vec<f64>; 2]) -> Vec<Normal> {
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
            for (of_j, average_j) in of_j.iter().zip(&averages_j) {
                columns.extend((0..n).map(|a| {
                    let (mean_i, mean_j) = (self.averages[i][a], self.averages[j][a]);
                    only_i[a] * (of_i[a] - mean_i)
                        + only_j[a] * (of_j[a] - mean_j)
                        + both[a] * (of_i[a] * of_j[a] - mean_i * mean_j)
                }));
                variances.push(
                    prior_i * (1.0 - 2.0 * average_i + double_i)
                        + prior_j * (1.0 - 2.0 * average_j + double_j)
                        + prior_both * (1.0 - 2.0 * average_i * average_j + double_i * double_j),
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
            [i] => nodes(i).map(|(column, weight)| weight * dot(&column, &others).powi(2)).sum(),
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
    fn shares(
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
        let constant = self.constant();
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
    /// drawn one by one, as if they did not depend on each other: their joint distribution would need all of them at once.
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
            means.push(dot(&column, self.posterior.weights()));
            columns.extend(column);
        }
        let weight =
            |place: &Vec<usize>| place.iter().zip(axes).map(|(&r, axis)| axis.weights[r]).product();
        let covariance = places
            .iter()
            .map(|a| {
                let entry = |b: &Vec<usize>| {
                    prior
                        * between
                            .iter()
                            .zip(a.iter().zip(b))
                            .map(|(between, (&r, &s))| between[r][s])
                            .product::<f64>()
                };
                places.iter().map(entry).collect()
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
