//! What a study has learned: the point to use, what matters, how it matters, and how far to believe it.
//!
//! The model of a study is a sum of functions of few parameters. Conditioned on the outcomes it says of every parameter what
//! it does alone (its *main effect*), and of every two that share a function what they do together beyond that (their
//! *interaction*): the file `effects.rs` has how. Everything is given in the units of the user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use boscage::additive_gp::{AdditivePosterior, Dataset, Normal};
use boscage::edge_probabilities::edge_probabilities;
use boscage::graph::Edge;
use boscage::guard::Rival;
use boscage::model_comparison::{ModelComparison, left_out, model_comparison, predicted_share};
use boscage::outputs::OutputMap;
use boscage::{Stream, Value};

use crate::effects::{Effects, labels, shown_coordinates};
use crate::error::Result;
use crate::goal::Goal;
use crate::parameters::{Kind, StudySpace, Values};
use crate::view::StudyView;

/// Places at which a main effect is shown, and those of each parameter of a pair.
const SHOWN: usize = 41;
const SHOWN_PAIR: usize = 21;
/// The least share of an interaction that may have a probability: the smallest effect that the sampler looks for.
const LEAST_EFFECT: f64 = 0.001;
/// What is left unexplained by another model, as a share of what this one leaves, if it is clearly better.
const HALF_AS_MUCH: f64 = 0.5;
/// Pairs less likely than this are no edges.
const LEAST_PROBABILITY: f64 = 0.05;
/// A model is better than another if it predicts so much more of the variance, and as good if the difference is less than that.
const BETTER: f64 = 0.05;
const AS_GOOD: f64 = 0.01;
/// A range that is seen so many times as steep at one end as at the other should be stated as a logarithmic one.
const STEEP: f64 = 10.0;
/// Nothing is said of the range of a parameter whose prior variance is less than this share of that of the most varied one.
const VARIED: f64 = 0.1;
/// Names of parameters that a sentence lists.
const LISTED: usize = 5;
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
    /// Outcomes that were taken for penalties, of points where the function cannot be evaluated. They are not explained.
    pub penalties: Vec<f64>,
    /// The model that searches in the place of the one that is explained.
    rival: Option<Rival>,
    /// Whether it sees the logarithm of outcomes.
    of_logarithm: bool,
    /// Whether the method looks for likely pairs by itself, and lets them search where that is better.
    looks_for_pairs: bool,
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
        let units = Units { sign: view.goal.sign(), outputs: model.outputs };
        let is_penalty = |outcome: f64| model.is_penalty(units.sign * outcome);
        let penalties = outcomes.iter().map(|outcome| outcome.2).filter(|&y| is_penalty(y));
        let penalties: Vec<f64> = penalties.collect();
        outcomes.retain(|outcome| !is_penalty(outcome.2));
        if outcomes.is_empty() {
            return Ok(None);
        }
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
            // Whatever the data have done to the numbers, the rest of the explanation can be had.
            edge_probabilities(&model.prior, space.engine(), &data, &stream)
                .unwrap_or_default()
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
            // An effect that must be smaller than the least that the sampler looks for is not what it has found.
            frequency: edges
                .get(&(first, second))
                .copied()
                .filter(|_| !probabilities || share.high >= LEAST_EFFECT),
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
            penalties,
            // What was stored may be of anything.
            rival: model.verdict.as_ref().and_then(|verdict| verdict.rival.clone()).filter(
                |rival| {
                    let prior = rival.prior();
                    prior.validate().is_ok() && prior.kernel.dimension() == space.dimension()
                },
            ),
            of_logarithm: model.verdict.as_ref().is_some_and(|verdict| verdict.logarithm.is_some()),
            looks_for_pairs: model.verdict.as_ref().is_some_and(|verdict| verdict.sampled > 0),
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

    /// What was taken for penalties, in words; none if nothing was.
    pub fn penalties_sentence(&self) -> Option<String> {
        let sign = self.units.sign;
        let by_goal = |a: &&f64, b: &&f64| (sign * **a).total_cmp(&(sign * **b));
        let best = self.penalties.iter().max_by(by_goal)?;
        let (count, worse) = (self.penalties.len(), if sign > 0.0 { "less" } else { "more" });
        Some(format!(
            "Besides, {count} outcomes of {best:?} or {worse} were taken for penalties: they tell where evaluations fail, and nothing \
             else."
        ))
    }

    /// Which ranges should be stated otherwise, in words: where a model with stretched ranges searches, those that it sees much steeper
    /// at one end, of parameters that it believes to matter.
    pub fn range_sentences(&self) -> Vec<String> {
        let Some(prior) =
            self.rival.as_ref().filter(|rival| rival.is_stretched()).map(Rival::prior)
        else {
            return Vec::new();
        };
        let kernel = &prior.kernel;
        let weights = prior.all_pairs.as_ref().map_or([].as_slice(), |pairs| &pairs.weights);
        let sum: f64 = weights.iter().sum();
        let variance = |d: usize| {
            let components = prior.components.iter().filter(|g| g.variables().contains(&d));
            let components: f64 = components.map(|g| kernel.amplitude(g)).sum();
            components + weights.get(d).map_or(0.0, |weight| weight * (sum - weight))
        };
        let most = (0..kernel.dimension()).map(variance).fold(0.0, f64::max);
        // Of what has a logarithmic scale already, is no number, or has values that are given, nothing is to be said.
        let may_be_stated_otherwise = |d: usize| {
            let kind = &self.space.parameters()[d].kind;
            matches!(
                kind,
                Kind::Real { log: false, step: None, .. }
                    | Kind::Integer { log: false, step: 1, .. }
            ) && self.space.engine().levels(d).is_none_or(|levels| levels > 2)
        };
        let named = |is_steep: &dyn Fn(f64) -> bool| {
            let matters = |&d: &usize| may_be_stated_otherwise(d) && variance(d) >= VARIED * most;
            let all = (0..kernel.dimension()).filter(matters);
            let mut found: Vec<usize> = all.filter(|&d| is_steep(kernel.stretches[d])).collect();
            found.sort_by(|&a, &b| variance(b).total_cmp(&variance(a)));
            let names: Vec<&str> = found
                .iter()
                .take(LISTED)
                .map(|&d| self.space.parameters()[d].name.as_str())
                .collect();
            let more = found.len().saturating_sub(LISTED);
            let names = names.join(", ");
            match more {
                0 => names,
                more => format!("{names} and {more} more"),
            }
        };
        let (low, high) =
            (named(&|stretch| stretch >= STEEP), named(&|stretch| stretch <= 1.0 / STEEP));
        let mut sentences = Vec::new();
        if !low.is_empty() {
            sentences.push(format!(
                "What happens near the low end matters most in the ranges of {low}: in the next study state how far above that end they \
                 are as logarithmic (with ranges that begin at 0, log = true and a low end a little above 0)."
            ));
        }
        if !high.is_empty() {
            sentences.push(format!(
                "What happens near the upper end matters most in the ranges of {high}: in the next study state how far below that end \
                 they are as logarithmic."
            ));
        }
        sentences
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
        let forest = comparison.forest.and_then(|(_, predicted)| predicted).unwrap_or(own);
        let (pairs, whole) = (own.max(forest), comparison.whole.unwrap_or(f64::NEG_INFINITY));
        let alone = comparison.alone.unwrap_or(f64::NEG_INFINITY);
        let is_sum = alone > pairs.max(whole) - AS_GOOD && alone > 0.5;
        // Where the logarithm is likelier, that the outcomes are a sum would be the wrong thing to say.
        if is_sum && self.joint_pairs().is_empty() && !self.of_logarithm {
            sentences.push("As far as can be seen, parameters act independently.".to_string());
        } else if let Some(rival) = &self.rival {
            let (model, logarithm) = match rival {
                Rival::Pairs(_) => {
                    ("A model with the likely pairs", " for the logarithm of the outcomes")
                }
                Rival::Plain(_) => {
                    ("One function of all parameters", " for the logarithm of the outcomes")
                }
                Rival::Model(_) => ("The model", " of the logarithm of the outcomes"),
            };
            let logarithm = if self.of_logarithm { logarithm } else { "" };
            let ranges = if rival.is_stretched() { " with stretched ranges" } else { "" };
            sentences.push(format!(
                "{model}{logarithm}{ranges} makes the outcomes clearly more likely, so that it searches the whole space."
            ));
        } else if self.additive && whole > pairs + BETTER && whole >= LEAST_PREDICTED {
            let text = "One function of all parameters predicts more: they depend on each other in more ways than this model \
                        knows, and the method gp-ucb may do better.";
            sentences.push(text.to_string());
        } else if self.probabilities
            && !self.looks_for_pairs
            && forest >= LEAST_PREDICTED
            && 1.0 - forest < HALF_AS_MUCH * (1.0 - own)
        {
            let text = "The likely pairs alone leave less than half as much unexplained as all pairs do: the method tree, which \
                        looks for such pairs, may do better from here.";
            sentences.push(text.to_string());
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
