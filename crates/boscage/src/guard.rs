//! A guard against the wrong model: others that search the whole space where they explain the outcomes better.
//!
//! Not in the paper, which believes in its forest. Every variable and every pair a little is a model that is seldom far off, and
//! seldom the best. Whenever it has been learned, it is compared with others, learned from the same outcomes: the same with a
//! component for each pair that is likely to interact ([`crate::edge_probabilities`]); every variable and these components only,
//! without all pairs, constant and what all variables do alike, which is the paper's idea of few pairs; and one function of all
//! variables, a plain GP ([`crate::methods::gp_ucb`]). The first two are for functions of few and strong interactions, the last for
//! functions that all variables shape together, as rotated ones. The model and the first two are rivals again with the logarithm of
//! how far outcomes are below the best one ([`crate::outputs`]): for times and costs, which often are products, and for errors that
//! span orders of magnitude. So is the plain GP, but only where it is the best of the rivals that see outcomes as they are, and where
//! all parameters are ordered: it looks closely at the bottom that is known, and where a choice has a bottom of its own that is seldom
//! found then. Last, the model, and the best of its rivals unless that is a plain GP, are rivals with stretched ranges
//! (`stretch.rs`), for parameters that should have been stated as logarithmic: where these are clearly likelier than the best
//! that sees ranges as they are. The rival that makes the outcomes clearly more likely searches the whole space until the next
//! comparison. The model stays: it begins the next learning and says what is explained.
//!
//! Notation: the log posterior density of a model is ρ plus the log prior of its parameters, which is 0 where they are most
//! probable. It takes the place of the evidence: a parameter that the data say nothing about counts nothing in either. Where a model
//! sees logarithms, the logarithms of their slopes are added, so that it is a density of the same outcomes.
//!
//! Cost: kernel learning for each rival, always with at most `EARLY` observations and of the one that searches (of both with likely
//! pairs, if it is one of them), otherwise when the number of observations has grown by a fifth, or by a half if there are many,
//! when pairs are looked for too. For logarithms once more with at most `TRIED` observations, a second time if that is promising, and
//! then with all. For stretched ranges once more of the model and of the best rival, then only of the one that searches.

use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePrior, Dataset};
use crate::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use crate::edge_probabilities::likely_forest;
use crate::error::{Error, Result};
use crate::graph::{Component, Edge};
use crate::kernel::Metric;
use crate::kernel_learning::{
    KernelLearning, LearnedKernel, kernel_learning, log_posterior_density,
};
use crate::outputs::{Logarithm, OutputMap};
use crate::space::Space;
use crate::stream::Stream;

/// With at most so many observations the models are compared whenever they are learned.
const EARLY: usize = 60;
/// With more, up to this, when their number has grown by a fifth, and then by a half: it is with some tens of observations that
/// it comes out what a function is made of, and with many that comparing is expensive.
const SOME: usize = 200;
const GROWTH: f64 = 1.2;
const LATE_GROWTH: f64 = 1.5;
/// Pairs are not looked for with fewer observations.
const FEWEST: usize = 20;
/// The knees of logarithms that are tried, in units of what the model sees of outcomes, and on how many observations at most.
const KNEES: [f64; 2] = [1.0, 0.1];
const TRIED: usize = 100;

/// Settings of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// By how much the log posterior density of a rival must exceed that of the model.
    pub margin: f64,
    /// Whether likely pairs are rivals, besides all pairs and in their place.
    pub pairs: bool,
    /// κ of the joint bound where a plain GP searches, whose σ is large wherever nothing was observed, in many dimensions nearly
    /// everywhere; none for no such rival.
    pub plain: Option<f64>,
    /// The variance of the plain GP's constant, in units of what the model sees: with none it expects the average outcome wherever
    /// nothing was observed, as good as that may be.
    pub constant: f64,
    /// Whether the model and its rivals are rivals that see the logarithm of outcomes, too ([`crate::outputs`]).
    pub logarithm: bool,
    /// Whether the model and its best rival are rivals with stretched ranges, too: for parameters that are stated from 0 to 1 where
    /// 0.001 is a good value.
    pub stretch: bool,
}

impl Default for Guard {
    /// 150 times as likely: what Kass and Raftery (1995, *Bayes factors*) call very strong evidence.
    fn default() -> Self {
        let constant = AdditiveGpUcbSettings::gp_ucb().constant;
        Self {
            margin: 5.0,
            pairs: true,
            plain: Some(1.0),
            constant,
            logarithm: true,
            stretch: true,
        }
    }
}

/// What comparisons have found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Number of observations when all models were last compared.
    pub observations: usize,
    /// The likely pairs, and the number of observations when they were looked for.
    pub pairs: Vec<Edge>,
    /// See `pairs`.
    pub sampled: usize,
    /// The rival that searches; none if the model does.
    pub rival: Option<Rival>,
    /// What it sees of outcomes where that is their logarithm; none if it sees what the model does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logarithm: Option<Logarithm>,
}

/// A model that explains the outcomes better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rival {
    /// The model with components for the likely pairs, besides all pairs or, if the prior has none of these, in their place.
    Pairs(AdditivePrior),
    /// One function of all variables.
    Plain(AdditivePrior),
    /// The model, of the logarithm of the outcomes or with stretched ranges.
    Model(AdditivePrior),
}

impl Rival {
    /// Its structure and parameters.
    pub fn prior(&self) -> &AdditivePrior {
        match self {
            Rival::Pairs(prior) | Rival::Plain(prior) | Rival::Model(prior) => prior,
        }
    }

    /// The same with another structure or parameters.
    fn with(&self, prior: AdditivePrior) -> Self {
        match self {
            Rival::Pairs(_) => Rival::Pairs(prior),
            Rival::Plain(_) => Rival::Plain(prior),
            Rival::Model(_) => Rival::Model(prior),
        }
    }

    /// Whether it sees ranges stretched.
    pub fn is_stretched(&self) -> bool {
        !self.prior().kernel.stretches.is_empty()
    }
}

impl Guard {
    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        let kappa = self.plain.unwrap_or_default();
        for (setting, value) in [
            ("guard.margin", self.margin),
            ("guard.plain", kappa),
            ("guard.constant", self.constant),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                let reason = "it must be finite and not negative";
                return Err(Error::InvalidSetting { setting, value: value.to_string(), reason });
            }
        }
        Ok(())
    }

    /// Compares a model that has just been learned in this way from what was observed with its rivals; `last` is what was found
    /// before, and stands where it is too early to look again.
    pub(crate) fn compare(
        &self,
        last: &Verdict,
        space: &Space,
        observed: Observed<'_>,
        prior: &AdditivePrior,
        learning: &KernelLearning,
        stream: &Stream,
    ) -> Result<Verdict> {
        let n = observed.data.len();
        let growth = if n <= SOME { GROWTH } else { LATE_GROWTH };
        let has_grown = |since: usize| n as f64 >= growth * since as f64;
        let is_due = n <= EARLY || has_grown(last.observations);
        let mut verdict = Verdict { rival: None, logarithm: None, ..last.clone() };
        if is_due {
            verdict.observations = n;
        }
        let data = observed.through(observed.outputs);
        if self.pairs && n >= FEWEST && (n <= EARLY || has_grown(last.sampled)) {
            verdict.pairs = likely_forest(prior, space, &data, stream)?.edges().to_vec();
            verdict.sampled = n;
        }
        if !is_due && last.rival.is_none() {
            return Ok(verdict);
        }
        let model = observed.log_density(prior, observed.outputs, learning)?;
        if !is_due && let Some(rival) = last.rival.as_ref().filter(|rival| rival.is_stretched()) {
            let map = match last.logarithm {
                Some(Logarithm { knee, .. }) => {
                    observed.outputs.with_logarithm(observed.data.outcomes(), knee)
                }
                None => *observed.outputs,
            };
            let learned = observed.learn(rival.prior(), &map, learning)?;
            if learned.objective > model + self.margin {
                verdict.rival = Some(rival.with(learned.prior));
                verdict.logarithm = map.logarithm;
            }
            return Ok(verdict);
        }
        let searches = |is_it: fn(&Rival) -> bool| last.rival.as_ref().is_some_and(is_it);
        // One that searches keeps its knee until all are compared again. What cannot be computed is not better.
        let logarithm_of = |prior: &AdditivePrior, learning: &KernelLearning| {
            let found = match last.logarithm {
                Some(Logarithm { knee, .. }) if !is_due => {
                    let map = observed.outputs.with_logarithm(observed.data.outcomes(), knee);
                    let found = last.rival.as_ref().map(Rival::prior);
                    let found = found.filter(|found| found.components == prior.components);
                    let start = found.unwrap_or(prior);
                    observed.learn(start, &map, learning).map(|learned| Some((learned, map)))
                }
                None if !is_due => Ok(None),
                _ => observed.learn_logarithm(prior, learning, self.margin),
            };
            found.ok().flatten()
        };
        let mut best = (model + self.margin, None, None);
        let mut offer = |objective: f64, rival: Rival, logarithm: Option<Logarithm>| {
            let is_better = objective > best.0;
            if is_better {
                best = (objective, Some(rival), logarithm);
            }
            is_better
        };
        let of_pairs = searches(|rival| matches!(rival, Rival::Pairs(_)));
        let of_model = searches(|rival| matches!(rival, Rival::Model(_)));
        let of_plain = searches(|rival| matches!(rival, Rival::Plain(_)));
        // Besides all pairs, and in their place.
        let with_pairs = |prior: &AdditivePrior| {
            let mut besides = prior.clone();
            besides.components.extend(verdict.pairs.iter().copied().map(Component::pair));
            let (all_pairs, constant, common_std) = (None, 0.0, 0.0);
            let instead = AdditivePrior { all_pairs, constant, common_std, ..besides.clone() };
            if verdict.pairs.is_empty() { Vec::new() } else { vec![besides, instead] }
        };
        if is_due || of_pairs {
            for start in with_pairs(prior) {
                let learned = kernel_learning(&start, &data, learning)?;
                offer(learned.objective, Rival::Pairs(learned.prior), None);
            }
        }
        let mut plain = None;
        if self.plain.is_some() && (is_due || of_plain) {
            let settings = AdditiveGpUcbSettings {
                constant: self.constant,
                ..AdditiveGpUcbSettings::gp_ucb()
            };
            let gp_ucb = AdditiveGpUcb::new(space.clone(), settings)?;
            let (start, config) = gp_ucb.untrained();
            let KernelLearning { budget, tolerance, most_observations, .. } = *learning;
            let config = KernelLearning { budget, tolerance, most_observations, ..config.clone() };
            let learned = kernel_learning(start, &data, &config)?;
            if offer(learned.objective, Rival::Plain(learned.prior.clone()), None) {
                plain = Some((learned.prior, config));
            }
        }
        if self.logarithm
            && (is_due || of_model || of_pairs)
            && let Some((learned, map)) = logarithm_of(prior, learning)
        {
            let of_logarithm = with_pairs(&learned.prior);
            offer(learned.objective, Rival::Model(learned.prior), map.logarithm);
            for start in of_logarithm {
                let learned = observed.learn(&start, &map, learning)?;
                offer(learned.objective, Rival::Pairs(learned.prior), map.logarithm);
            }
        }
        // Of logarithms only where it is the best of those that see outcomes, and every value has its place among the others.
        if self.logarithm
            && let Some((prior, config)) = plain
            && !prior.kernel.metrics.contains(&Metric::Categorical)
            && let Some((learned, map)) = logarithm_of(&prior, &config)
        {
            offer(learned.objective, Rival::Plain(learned.prior), map.logarithm);
        }
        // Without a prior a parameter more for each variable would cost nothing.
        if self.stretch && is_due && learning.prior.is_some() {
            self.offer_stretched(last, &mut best, observed, prior, learning);
        }
        (_, verdict.rival, verdict.logarithm) = best;
        Ok(verdict)
    }

    /// Replaces the best so far (its log posterior density or, without a rival, what one has to exceed) by the model or itself with
    /// stretched ranges, if these are clearly likelier.
    fn offer_stretched(
        &self,
        last: &Verdict,
        best: &mut (f64, Option<Rival>, Option<Logarithm>),
        observed: Observed<'_>,
        prior: &AdditivePrior,
        learning: &KernelLearning,
    ) {
        let (to_beat, found, logarithm) = best.clone();
        // What the model has to be exceeded by is in it.
        let mut to_beat = to_beat + if found.is_some() { self.margin } else { 0.0 };
        let found = found.filter(|rival| !matches!(rival, Rival::Plain(_)));
        let found = found.map(|rival| (rival, logarithm));
        let known = last.rival.as_ref().filter(|rival| rival.is_stretched()).map(Rival::prior);
        for (rival, logarithm) in [(Rival::Model(prior.clone()), None)].into_iter().chain(found) {
            let mut start = rival.prior().clone();
            let is_same = |known: &&AdditivePrior| {
                known.components == start.components
                    && last.logarithm.is_some() == logarithm.is_some()
            };
            match (known.filter(is_same), known) {
                // From where it was.
                (Some(known), _) => start = known.clone(),
                (None, Some(known)) => start.kernel.stretches.clone_from(&known.kernel.stretches),
                (None, None) => start.kernel.stretches = vec![1.0; start.kernel.dimension()],
            }
            let map = OutputMap { logarithm, ..*observed.outputs };
            // What cannot be computed is not better.
            if let Ok(learned) = observed.learn(&start, &map, learning)
                && learned.objective > to_beat
            {
                to_beat = learned.objective;
                *best = (to_beat, Some(rival.with(learned.prior)), logarithm);
            }
        }
    }
}

/// What was observed, and what the model sees of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) outputs: &'a OutputMap,
}

impl Observed<'_> {
    /// The observations as they are seen through a map.
    fn through(&self, map: &OutputMap) -> Dataset {
        let y = self.data.outcomes().iter().map(|&y| map.apply(y)).collect();
        self.data.with_outcomes(self.data.len(), y)
    }

    /// As many of them as kernel learning looks at.
    fn few(&self, learning: &KernelLearning) -> Result<Dataset> {
        let n = self.data.len();
        self.data.evenly(learning.most_observations.map_or(n, |most| most.min(n)))
    }

    /// By how much log densities of what is seen through a map are less than those of the same outcomes as the model sees them.
    fn log_slopes(&self, map: &OutputMap, learning: &KernelLearning) -> Result<f64> {
        let slope = |&y: &f64| map.log_slope(y) - self.outputs.log_slope(y);
        Ok(self.few(learning)?.outcomes().iter().map(slope).sum())
    }

    /// The log posterior density of a model that sees outcomes through a map, as a density of what the model sees.
    fn log_density(
        &self,
        prior: &AdditivePrior,
        map: &OutputMap,
        learning: &KernelLearning,
    ) -> Result<f64> {
        let few = Observed { data: &self.few(learning)?, ..*self };
        let density = log_posterior_density(prior, &few.through(map), learning)?;
        Ok(density + self.log_slopes(map, learning)?)
    }

    /// A model of logarithms, and what it sees; none if they do not promise more than `prior`, which sees what the model does, by the
    /// margin. Knees are tried on few of the observations, one after the other as long as a smaller one is better.
    fn learn_logarithm(
        &self,
        prior: &AdditivePrior,
        learning: &KernelLearning,
        margin: f64,
    ) -> Result<Option<(LearnedKernel, OutputMap)>> {
        let most = learning.most_observations.map_or(TRIED, |most| most.min(TRIED));
        let trial = KernelLearning { most_observations: Some(most), ..learning.clone() };
        let mut to_beat = self.log_density(prior, self.outputs, &trial)? + margin;
        let mut found = None;
        let mut start = prior.clone();
        for knee in KNEES {
            let map = self.outputs.with_logarithm(self.data.outcomes(), knee);
            let learned = self.learn(&start, &map, &trial)?;
            if learned.objective <= to_beat {
                break;
            }
            to_beat = learned.objective;
            start = learned.prior.clone();
            found = Some((learned, map));
        }
        match found {
            Some((tried, map)) if self.data.len() > most => {
                Ok(Some((self.learn(&tried.prior, &map, learning)?, map)))
            }
            found => Ok(found),
        }
    }

    /// Kernel learning of a model that sees outcomes through a map; the objective is a density of what the model sees.
    fn learn(
        &self,
        start: &AdditivePrior,
        map: &OutputMap,
        learning: &KernelLearning,
    ) -> Result<LearnedKernel> {
        let mut learned = kernel_learning(start, &self.through(map), learning)?;
        learned.objective += self.log_slopes(map, learning)?;
        Ok(learned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::{Model, Optimizer};
    use crate::outputs::OutputRule;
    use crate::space::{Parameter, Point};
    use crate::stream::Purpose;

    const DIMENSION: usize = 6;

    /// The default method after n random points.
    fn told(n: u64, guard: Guard, outcome: fn(&[f64]) -> f64) -> AdditiveGpUcb {
        let space = Space::unit_cube(DIMENSION).unwrap();
        let settings =
            AdditiveGpUcbSettings { guard: Some(guard), ..AdditiveGpUcbSettings::boscage() };
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
        for trial in 0..n {
            let point = space.sample(&mut Stream::new(8, trial).generator(Purpose::Problem));
            let outcome = outcome(&point.0);
            optimizer.tell(point, outcome).unwrap();
        }
        optimizer
    }

    fn learned(n: u64, guard: Guard, outcome: fn(&[f64]) -> f64) -> Model {
        let mut optimizer = told(n, guard, outcome);
        optimizer.learn(&Stream::new(8, n)).unwrap();
        optimizer.model().unwrap().clone()
    }

    fn without_logarithms() -> Guard {
        Guard { logarithm: false, ..Guard::default() }
    }

    fn without_stretches() -> Guard {
        Guard { stretch: false, ..Guard::default() }
    }

    fn additive(x: &[f64]) -> f64 {
        x.iter().enumerate().map(|(i, x)| (4.0 * x + i as f64).sin()).sum()
    }

    /// A wave across all axes: what one variable does depends on all others.
    fn together(x: &[f64]) -> f64 {
        (1.5 * x.iter().sum::<f64>()).cos()
    }

    /// Every variable with one other.
    fn three_pairs(x: &[f64]) -> f64 {
        let wave = |x: f64| (4.0 * x - 2.0).sin();
        (0..3).map(|i| wave(x[i]) * wave(x[i + 3])).sum()
    }

    #[test]
    fn the_model_that_explains_the_outcomes_best_searches() {
        let rival = |outcome| learned(100, Guard::default(), outcome).verdict.unwrap().rival;
        assert_eq!(rival(additive), None);
        assert!(matches!(rival(together), Some(Rival::Plain(_))));
        let Some(Rival::Pairs(prior)) = rival(three_pairs) else { panic!("no pairs") };
        for i in 0..3 {
            let pair = Component::new(vec![i, i + 3]).unwrap();
            assert!(prior.components.contains(&pair), "{:?}", prior.components);
        }
        // What is switched off does not search, nor does anything that is not better by the margin.
        let off = Guard { plain: None, pairs: false, stretch: false, ..Guard::default() };
        let far = Guard { margin: 1e6, ..Guard::default() };
        for guard in [off, far] {
            for outcome in [together, three_pairs] {
                assert_eq!(learned(100, guard, outcome).verdict.unwrap().rival, None);
            }
        }
    }

    /// Nearly 0 across all axes, and steep on both sides of that.
    fn valley(x: &[f64]) -> f64 {
        -(4.0 * (x.iter().sum::<f64>() - 3.0)).abs().exp()
    }

    #[test]
    fn a_plain_gp_sees_logarithms_where_all_parameters_are_ordered() {
        let found = |space: Space, guard: Guard| {
            let settings =
                AdditiveGpUcbSettings { guard: Some(guard), ..AdditiveGpUcbSettings::boscage() };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..100 {
                let point = space.sample(&mut Stream::new(8, trial).generator(Purpose::Problem));
                let outcome = valley(&point.0[..DIMENSION]);
                optimizer.tell(point, outcome).unwrap();
            }
            optimizer.learn(&Stream::new(8, 100)).unwrap();
            optimizer.model().unwrap().verdict.clone().unwrap()
        };
        let of = |parameter: Option<Parameter>| {
            let numbers = (0..DIMENSION).map(|i| Parameter::real(format!("x{i}"), 0.0, 1.0));
            Space::new(numbers.chain(parameter).collect()).unwrap()
        };
        let is_plain = |verdict: &Verdict| matches!(verdict.rival, Some(Rival::Plain(_)));
        for ordered in [None, Some(Parameter::ordinal("one more", [1.0, 2.0, 4.0]))] {
            let verdict = found(of(ordered), without_stretches());
            assert!(is_plain(&verdict) && verdict.logarithm.is_some(), "{verdict:?}");
        }
        let not = [Parameter::boolean("one more"), Parameter::categorical("one more", ["a", "b"])];
        for parameter in not {
            let verdict = found(of(Some(parameter)), without_stretches());
            assert!(!is_plain(&verdict) || verdict.logarithm.is_none(), "{verdict:?}");
        }
        let off = Guard { stretch: false, ..without_logarithms() };
        let verdict = found(of(None), off);
        assert!(is_plain(&verdict) && verdict.logarithm.is_none(), "{verdict:?}");
    }

    #[test]
    fn the_plain_gp_has_the_constant_that_is_set() {
        for constant in [Guard::default().constant, 3.0, 0.0] {
            let guard = Guard { constant, ..Guard::default() };
            let rival = learned(100, guard, together).verdict.unwrap().rival;
            let Some(Rival::Plain(plain)) = rival else { panic!("no plain GP") };
            assert_eq!(plain.constant, constant);
        }
        assert_eq!(Guard::default().constant, 10.0);
    }

    #[test]
    fn a_rival_is_better_by_the_margin_in_log_posterior_density() {
        let model = learned(60, Guard::default(), together);
        let Some(Rival::Plain(plain)) = model.verdict.clone().unwrap().rival else {
            panic!("none")
        };
        let optimizer = told(60, Guard::default(), together);
        let y = optimizer.data().outcomes().iter().map(|&y| model.outputs.apply(y)).collect();
        let data = optimizer.data().with_outcomes(60, y);
        let whole =
            AdditiveGpUcb::new(optimizer.space().clone(), AdditiveGpUcbSettings::gp_ucb()).unwrap();
        let (_, of_plain) = whole.untrained();
        let (_, of_model) = optimizer.untrained();
        let gain = log_posterior_density(&plain, &data, of_plain).unwrap()
            - log_posterior_density(&model.prior, &data, of_model).unwrap();
        assert!(gain > Guard::default().margin, "{gain}");
        // With a margin on either side of that, it does and does not.
        for (margin, searches) in [(gain - 0.01, true), (gain + 0.01, false)] {
            let guard = Guard { margin, pairs: false, ..Guard::default() };
            let verdict = learned(60, guard, together).verdict.unwrap();
            assert_eq!(verdict.rival.is_some(), searches, "{margin}");
        }
    }

    /// The product of what each variable does: a time of 1 to some thousands.
    fn product(x: &[f64]) -> f64 {
        -(1.5 * additive(x)).exp()
    }

    #[test]
    fn logarithms_search_where_outcomes_are_products() {
        let verdict = |guard, outcome| learned(100, guard, outcome).verdict.unwrap();
        let without_pairs = Guard { pairs: false, ..Guard::default() };
        let found = verdict(without_pairs, product);
        assert!(matches!(found.rival, Some(Rival::Model(_))), "{found:?}");
        assert!(found.logarithm.is_some());
        let found = verdict(Guard::default(), product);
        assert!(matches!(found.rival, Some(Rival::Pairs(_))), "{found:?}");
        assert!(found.logarithm.is_some());
        // Sums are none, and without logarithms there is none.
        for outcome in [additive, together, three_pairs] {
            assert_eq!(verdict(Guard::default(), outcome).logarithm, None);
        }
        assert_eq!(verdict(without_logarithms(), product).logarithm, None);
    }

    /// What is compared are densities of the same outcomes: a model of logarithms is better than one of the outcomes by as much as
    /// its density of what it sees is larger, plus the logarithms of the slopes, here by finite differences.
    #[test]
    fn a_model_of_logarithms_is_compared_as_one_of_the_outcomes() {
        let optimizer = told(60, Guard::default(), product);
        let outputs = OutputMap::fit(OutputRule::Standardised, optimizer.data().outcomes());
        let observed = Observed { data: optimizer.data(), outputs: &outputs };
        let (start, learning) = optimizer.untrained();
        let (learned, map) = observed.learn_logarithm(start, learning, 5.0).unwrap().unwrap();
        let seen = observed.through(&map);
        let of_seen = log_posterior_density(&learned.prior, &seen, learning).unwrap();
        let slope = |&y: &f64| {
            let step = 1e-6 * y.abs();
            let difference = |map: &OutputMap| map.apply(y + step) - map.apply(y - step);
            (difference(&map) / difference(&outputs)).ln()
        };
        let slopes: f64 = optimizer.data().outcomes().iter().map(slope).sum();
        assert!((learned.objective - of_seen - slopes).abs() < 1e-3, "{slopes}");
        let density = observed.log_density(&learned.prior, &map, learning).unwrap();
        assert!((learned.objective - density).abs() < 1e-8);
        // So it is where kernel learning looks at few of the outcomes, after fewer at which knees are tried.
        let many = told(150, Guard::default(), product);
        let outputs_of_many = OutputMap::fit(OutputRule::Standardised, many.data().outcomes());
        let of_many = Observed { data: many.data(), outputs: &outputs_of_many };
        let few = KernelLearning { most_observations: Some(120), ..learning.clone() };
        let (found, map) = of_many.learn_logarithm(start, &few, 5.0).unwrap().unwrap();
        let seen = of_many.through(&map).evenly(120).unwrap();
        let slopes: f64 = many
            .data()
            .evenly(120)
            .unwrap()
            .outcomes()
            .iter()
            .map(|&y| map.log_slope(y) - outputs_of_many.log_slope(y))
            .sum();
        let density = log_posterior_density(&found.prior, &seen, &few).unwrap() + slopes;
        assert!((found.objective - density).abs() < 1e-8, "{density}");
        // Of the knees it is the best, but for what kernel learning makes of other starts.
        for knee in KNEES {
            let other = outputs.with_logarithm(optimizer.data().outcomes(), knee);
            let other = observed.learn(start, &other, learning).unwrap();
            assert!(other.objective < learned.objective + 0.5, "{knee}");
        }
        // Nothing is promised where the outcomes are likelier as they are.
        let optimizer = told(60, Guard::default(), additive);
        let outputs = OutputMap::fit(OutputRule::Standardised, optimizer.data().outcomes());
        let observed = Observed { data: optimizer.data(), outputs: &outputs };
        let learned = observed.learn(start, &outputs, learning).unwrap();
        assert!(observed.learn_logarithm(&learned.prior, learning, 5.0).unwrap().is_none());
    }

    /// A bowl of the logarithms of what is near 0, or near 1.
    fn orders_of_magnitude(x: &[f64]) -> f64 {
        let z = |x: f64| (x + 1e-3).log10() + 2.0;
        let ends = |i: usize| if i.is_multiple_of(2) { x[i] } else { 1.0 - x[i] };
        -(0..DIMENSION).map(|i| z(ends(i)).powi(2)).sum::<f64>() - 0.5 * z(x[0]) * z(x[2])
    }

    #[test]
    fn stretched_ranges_search_where_ends_of_ranges_matter() {
        let verdict = |guard, outcome| learned(100, guard, outcome).verdict.unwrap();
        let found = verdict(without_logarithms(), orders_of_magnitude);
        let rival = found.rival.unwrap();
        assert!(matches!(rival, Rival::Model(_)) && rival.is_stretched());
        assert_eq!(found.logarithm, None);
        for (i, &stretch) in rival.prior().kernel.stretches.iter().enumerate() {
            let is_low = i.is_multiple_of(2);
            assert!(if is_low { stretch > 10.0 } else { stretch < 0.1 }, "{i}: {stretch}");
        }
        // Where it is the logarithm of outcomes that is a sum, that is what is stretched.
        let sums = Guard { plain: None, pairs: false, ..Guard::default() };
        let found = verdict(sums, |x| -(-3.0 * orders_of_magnitude(x)).exp());
        assert!(found.logarithm.is_some());
        assert!(found.rival.is_some_and(|rival| rival.is_stretched()));
        // Where ranges are as they should be there is none, nor if that is switched off.
        for outcome in [additive, together, three_pairs] {
            let found = verdict(Guard::default(), outcome);
            assert!(!found.rival.is_some_and(|rival| rival.is_stretched()));
        }
        let off = Guard { stretch: false, ..without_logarithms() };
        assert!(!verdict(off, orders_of_magnitude).rival.is_some_and(|rival| rival.is_stretched()));
    }

    #[test]
    fn stretched_ranges_are_better_by_the_margin_than_any_rival_without() {
        let model = learned(60, without_logarithms(), orders_of_magnitude);
        let verdict = model.verdict.clone().unwrap();
        let stretched = verdict.rival.unwrap();
        assert!(matches!(stretched, Rival::Model(_)) && stretched.is_stretched());
        let optimizer = told(60, without_logarithms(), orders_of_magnitude);
        let observed = Observed { data: optimizer.data(), outputs: &model.outputs };
        let (_, learning) = optimizer.untrained();
        let density = observed.log_density(stretched.prior(), &model.outputs, learning).unwrap();
        let guard = without_logarithms();
        let plain = Rival::Plain(model.prior.clone());
        let searches = |to_beat: f64, found: Option<Rival>, last: &Verdict| {
            let mut best = (to_beat, found.clone(), None);
            guard.offer_stretched(last, &mut best, observed, &model.prior, learning);
            // Else all is as it was.
            assert!(
                best.1.as_ref().is_some_and(Rival::is_stretched) || best == (to_beat, found, None)
            );
            best.1.is_some_and(|rival| rival.is_stretched())
        };
        // What the model has to be exceeded by is in what is given where no rival is better.
        let first = Verdict::default();
        assert!(searches(density - 0.01, None, &first));
        assert!(!searches(density + 0.01, None, &first));
        assert!(searches(density - guard.margin - 0.01, Some(plain.clone()), &first));
        assert!(!searches(density - guard.margin + 0.01, Some(plain), &first));
        // It goes on from the stretches that were known, and is no worse for that.
        let known = Verdict { rival: Some(stretched), ..Verdict::default() };
        assert!(searches(density - 0.5, None, &known));
    }

    /// Every variable with one other, and a little with all.
    fn pairs_among_many(x: &[f64]) -> f64 {
        let sum: f64 = x.iter().map(|x| (4.0 * x - 2.0).sin()).sum();
        3.0 * three_pairs(x) + 0.5 * sum * sum
    }

    #[test]
    fn likely_pairs_take_the_place_of_all_pairs_where_that_is_likelier() {
        let guard = Guard { plain: None, ..Guard::default() };
        let rival = |outcome: fn(&[f64]) -> f64| {
            let model = learned(100, guard, outcome);
            let verdict = model.verdict.clone().unwrap();
            let Some(Rival::Pairs(found)) = verdict.rival else { panic!("no pairs") };
            let optimizer = told(100, guard, outcome);
            let y = optimizer.data().outcomes().iter().map(|&y| model.outputs.apply(y)).collect();
            let data = optimizer.data().with_outcomes(100, y);
            let (_, learning) = optimizer.untrained();
            let mut besides = model.prior.clone();
            besides.components.extend(verdict.pairs.iter().copied().map(Component::pair));
            let instead = AdditivePrior {
                all_pairs: None,
                constant: 0.0,
                common_std: 0.0,
                ..besides.clone()
            };
            let both = [besides, instead].map(|start| kernel_learning(&start, &data, learning));
            let [besides, instead] = both.map(Result::unwrap);
            let likelier = if instead.objective > besides.objective { instead } else { besides };
            assert_eq!(found, likelier.prior);
            found
        };
        assert_eq!(rival(three_pairs).all_pairs, None);
        assert!(rival(pairs_among_many).all_pairs.is_some());
    }

    #[test]
    fn a_verdict_stands_until_the_observations_have_grown() {
        // By a fifth, and where there are many by a half.
        for (n, recently, before) in [(200, 167, 166), (201, 135, 134)] {
            let optimizer = told(n as u64, Guard::default(), together);
            let (prior, learning) = optimizer.untrained();
            let compare = |last: &Verdict| {
                let stream = Stream::new(8, n as u64);
                let observed = Observed { data: optimizer.data(), outputs: &OutputMap::identity() };
                let space = optimizer.space();
                Guard::default().compare(last, space, observed, prior, learning, &stream).unwrap()
            };
            let at = |n: usize| Verdict { observations: n, sampled: n, ..Verdict::default() };
            assert_eq!(compare(&at(recently)), at(recently));
            let found = compare(&at(before));
            assert_eq!((found.observations, found.sampled), (n, n));
            assert!(found.rival.is_some());
            // A rival that searches has to be better at every learning.
            let again = compare(&Verdict { rival: found.rival.clone(), ..at(recently) });
            assert_eq!(again.observations, recently);
            assert_eq!(again.rival, found.rival);
        }
    }

    #[test]
    fn a_run_goes_on_with_the_rival_as_if_it_had_not_been_interrupted() {
        goes_on_with_the_rival(together, true, false);
        goes_on_with_the_rival(product, false, true);
        goes_on_with_the_rival(valley, true, true);
    }

    #[test]
    fn a_run_goes_on_with_stretched_ranges_as_if_it_had_not_been_interrupted() {
        goes_on_with_the_rival(orders_of_magnitude, false, false);
        let rival = learned(60, Guard::default(), orders_of_magnitude).verdict.unwrap().rival;
        assert!(rival.is_some_and(|rival| rival.is_stretched()));
    }

    /// Between comparisons a stretched rival is learned from where it was, and has to be better by the margin each time.
    #[test]
    fn stretched_ranges_are_learned_again_between_comparisons() {
        let optimizer = told(70, without_logarithms(), orders_of_magnitude);
        let model = learned(60, without_logarithms(), orders_of_magnitude);
        let (_, learning) = optimizer.untrained();
        let outputs = OutputMap::fit(OutputRule::Standardised, optimizer.data().outcomes());
        let observed = Observed { data: optimizer.data(), outputs: &outputs };
        let compare = |guard: Guard, last: &Verdict| {
            let (space, stream) = (optimizer.space(), Stream::new(8, 70));
            guard.compare(last, space, observed, &model.prior, learning, &stream).unwrap()
        };
        let last = model.verdict.clone().unwrap();
        let stretched = last.rival.clone().unwrap();
        assert!(stretched.is_stretched());
        let found = compare(without_logarithms(), &last);
        assert_eq!(found.observations, last.observations);
        let again =
            kernel_learning(stretched.prior(), &observed.through(&outputs), learning).unwrap();
        assert_eq!(found.rival, Some(Rival::Model(again.prior)));
        let far = Guard { margin: 1e6, ..without_logarithms() };
        assert_eq!(compare(far, &last).rival, None);
        // Of logarithms with the knee that was found.
        let logarithm = outputs.with_logarithm(observed.data.outcomes(), 0.3).logarithm;
        let of_logarithm = Verdict { logarithm, ..last };
        let in_any_case = Guard { margin: -1e6, ..without_logarithms() };
        let found = compare(in_any_case, &of_logarithm);
        assert!(found.rival.is_some_and(|rival| rival.is_stretched()));
        assert_eq!(found.logarithm.map(|logarithm| logarithm.knee), Some(0.3));
    }

    fn goes_on_with_the_rival(outcome: fn(&[f64]) -> f64, is_plain: bool, of_logarithm: bool) {
        let stream = |trial: u64| Stream::new(8, trial);
        let (mut one, mut other) =
            (told(60, Guard::default(), outcome), told(60, Guard::default(), outcome));
        let tell = |optimizer: &mut AdditiveGpUcb, point: &Point| {
            optimizer.tell(point.clone(), outcome(&point.0)).unwrap();
        };
        // The first ask learns; then comes a resumed run with the model as it was stored.
        let first = one.ask(&[], &stream(60)).unwrap();
        let stored = serde_json::to_string(one.model().unwrap()).unwrap();
        tell(&mut one, &first);
        tell(&mut other, &first);
        let model: Model = serde_json::from_str(&stored).unwrap();
        let verdict = model.verdict.as_ref().unwrap();
        assert_eq!(matches!(verdict.rival, Some(Rival::Plain(_))), is_plain);
        assert_eq!(verdict.logarithm.is_some(), of_logarithm);
        other.resume(model.clone()).unwrap();
        let mut without_rival = told(60, Guard::default(), outcome);
        tell(&mut without_rival, &first);
        without_rival.resume(Model { verdict: None, ..model }).unwrap();
        let knee = |optimizer: &AdditiveGpUcb| {
            let verdict = optimizer.model().unwrap().verdict.clone().unwrap();
            (verdict.observations, verdict.logarithm.map(|logarithm| logarithm.knee))
        };
        let before = knee(&one);
        // With 66 observations it is learned again, too early to compare.
        for trial in 61..70 {
            let point = one.ask(&[], &stream(trial)).unwrap();
            assert_eq!(other.ask(&[], &stream(trial)).unwrap(), point);
            if trial == 64 {
                // An ask of the whole space, and another search than the model's own.
                assert_ne!(without_rival.ask(&[], &stream(trial)).unwrap(), point);
            }
            for optimizer in [&mut one, &mut other, &mut without_rival] {
                tell(optimizer, &point);
            }
        }
        assert_eq!((one.model().unwrap().observations, before.0), (66, 60));
        assert_eq!(knee(&one), before);
        assert_eq!(one.model(), other.model());
    }

    #[test]
    fn a_stored_rival_of_another_space_is_refused() {
        let mut model = learned(60, Guard::default(), together);
        let smaller = AdditiveGpUcb::new(
            Space::unit_cube(DIMENSION - 1).unwrap(),
            AdditiveGpUcbSettings::gp_ucb(),
        );
        let smaller = smaller.unwrap();
        model.verdict.as_mut().unwrap().rival = Some(Rival::Plain(smaller.untrained().0.clone()));
        let refused = told(60, Guard::default(), together).resume(model).unwrap_err().to_string();
        assert!(refused.contains("rival"), "{refused}");
        let mut model = learned(60, Guard::default(), product);
        model.verdict.as_mut().unwrap().logarithm.as_mut().unwrap().knee = -1.0;
        let refused = told(60, Guard::default(), product).resume(model).unwrap_err().to_string();
        assert!(refused.contains("outputs"), "{refused}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let refused =
            |settings: AdditiveGpUcbSettings| settings.validate().unwrap_err().to_string();
        let default = AdditiveGpUcbSettings::boscage();
        for margin in [-1.0, f64::NAN, f64::INFINITY] {
            let guard = Some(Guard { margin, ..Guard::default() });
            assert!(refused(AdditiveGpUcbSettings { guard, ..default.clone() }).contains("margin"));
            let guard = Some(Guard { plain: Some(margin), ..Guard::default() });
            let reason = refused(AdditiveGpUcbSettings { guard, ..default.clone() });
            assert!(reason.contains("guard.plain"), "{reason}");
            let guard = Some(Guard { constant: margin, ..Guard::default() });
            let reason = refused(AdditiveGpUcbSettings { guard, ..default.clone() });
            assert!(reason.contains("guard.constant"), "{reason}");
        }
        let guard = Some(Guard::default());
        let additive = AdditiveGpUcbSettings { guard, ..AdditiveGpUcbSettings::paper() };
        assert!(refused(additive).contains("joint bound"));
    }
}
