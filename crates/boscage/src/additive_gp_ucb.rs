//! GP-UCB with an additive GP: the loop of Algorithm 1, for any way of choosing the structure.
//!
//! Paper: Algorithm 1. Each ask learns the structure and Θ if that is due, conditions the additive GP on all observations
//! and on the pending points, and maximises the acquisition function. With trees as the structure this is Tree-GP-UCB
//! ([`crate::methods::tree_gp_ucb`]); the other files in `methods/` say what else it can be.
//!
//! Notation: N_init `initial_points`, C `learning`, S and γ in `structure`, R and L in `zoom`, η `noise_std`,
//! ℓ_i `lengthscale` and σ_i `scale` to begin with; t is the number of the observation that is being chosen.
//!
//! Cost of an ask with n observations: n²/2 multiply-adds to append and for each of the Σ_G R^|G| values of φ^G at each of L
//! levels; a learning step adds a Cholesky factorisation for each structure that is scored and as many gradients of ρ as the
//! budget of kernel learning says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::acquisition::{Ucb, beta};
use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset, StructureScore};
use crate::all_pairs::AllPairs;
use crate::common_effect::same_choices;
use crate::design::Design;
use crate::error::{Error, Result};
use crate::failures::{FEWEST, LearnedFailures, Success, learn_success, penalty};
use crate::graph::{Component, Graph};
use crate::guard::{Guard, Observed, Rival, Verdict};
use crate::joint_ucb::{Effort, Objective, everywhere, maximize_for_news, maximize_joint_ucb};
use crate::kernel::{Kernel, KernelFamily, Metric};
use crate::kernel_learning::{KernelLearning, kernel_learning};
use crate::local_search::{LearnedLocal, LocalModel, LocalSearch, Neighbourhood, is_blind};
use crate::message_passing::{Maximum, Zoom, msg_passing_capped, msg_passing_continuous};
use crate::optimizer::{Model, Optimizer};
use crate::outputs::{OutputMap, OutputRule};
use crate::repeats::{RepeatRule, Seen};
use crate::space::{Point, Space};
use crate::stream::{Purpose, Stream};
use crate::structure::{LearnedStructure, Structure};

/// When structure and parameters are learned again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Learning {
    /// Whenever t has passed a multiple of C since the last time: the paper's rule, made safe for parallel workers.
    Every(usize),
    /// When the number of observations has grown by this share since the last time: often at first, when each
    /// observation says much, and seldom later, when learning is expensive.
    Growth(f64),
}

/// Where kernel learning starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KernelStart {
    /// The present parameters.
    Present,
    /// The present parameters, and once more the initial ones; the better result is kept. A way out of local maxima,
    /// such as the one where everything is noise.
    #[default]
    PresentAndInitial,
}

/// What is maximised to choose a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Acquisition {
    /// Σ_G (μ^G + √β_t σ^G), exactly on the grid, as in the paper.
    Additive,
    /// μ + κσ of the whole sum, with this κ, climbed from the maxima that message passing finds.
    Joint(f64),
    /// The same with κ = √β_t.
    JointSchedule,
}

/// Settings of [`AdditiveGpUcb`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AdditiveGpUcbSettings {
    /// N_init: points before the model is used.
    pub initial_points: usize,
    /// How they are chosen.
    pub design: Design,
    /// When structure and parameters are learned.
    pub learning: Learning,
    /// How the structure is chosen.
    pub structure: Structure,
    /// How Θ and the noise are learned. The median of the prior on scales counts in multiples of `scale`, that on the
    /// weights of pairs in multiples of 1/D, that on what all variables do alike in multiples of 1/√D.
    pub kernel_learning: KernelLearning,
    /// Where it starts from.
    pub kernel_start: KernelStart,
    /// The shape of the kernel.
    pub family: KernelFamily,
    /// How categorical parameters measure differences.
    pub categorical: Metric,
    /// ℓ_i to begin with, as a share of each parameter's range.
    pub lengthscale: f64,
    /// How ℓ_i to begin with, and the median of their prior, grow with the number of variables: they are multiplied by D to this
    /// power.
    pub lengthscale_growth: f64,
    /// σ_i to begin with; none for 1/D, which spreads the variance of standardised outcomes over the variables (1/√D if they
    /// are all in one component).
    pub scale: Option<f64>,
    /// η to begin with, in units of what the model sees (see `outputs`).
    pub noise_std: f64,
    /// The variance of a constant that is part of the model, in the same units: far from all observations the constant is expected,
    /// and not the average outcome. It is not learned; 0 for none.
    pub constant: f64,
    /// The standard deviation of what variables do alike at a random point, to begin with: of a polynomial of degree 4 of all ordered
    /// variables, for each degree, in the same units, and half of it for categorical variables with the same choices
    /// ([`crate::common_effect`]). It is learned; 0 for no such part.
    pub common_std: f64,
    /// What is maximised to choose a point.
    pub acquisition: Acquisition,
    /// R and L of the search by the additive bound, in spaces with real parameters.
    pub zoom: Zoom,
    /// Cap on evaluations of φ^G for a search by the additive bound in spaces of finite parameters; none searches them by
    /// zooming too.
    pub max_evaluations: Option<usize>,
    /// What the model sees of outcomes.
    pub outputs: OutputRule,
    /// Whether points may be asked for again.
    pub repeats: RepeatRule,
    /// Whether the centre of the space is asked for first: whoever chose the ranges had a reason for where they are.
    pub centre: bool,
    /// Asks that stay near the best points, as long as there is something to gain; none searches the whole space always.
    pub local: Option<LocalSearch>,
    /// The least σ of what is climbed to in the whole space, in multiples of η, though never more than 0.3 in units of what the model
    /// sees. Where the climb from the best start ends at less, an outcome would say next to nothing, and κ (or 1, if it is less) is
    /// doubled, up to four times. 0 leaves κ as it is.
    pub news: f64,
    /// Other models, which search the whole space where they explain the outcomes better; none for no others.
    pub guard: Option<Guard>,
    /// Whether it is learned where evaluations fail, outcomes that can only be penalties among them ([`crate::failures`]); otherwise
    /// nothing new is expected at points that failed, and that is all.
    pub failures: bool,
}

/// What is news however large η is, in units of what the model sees: a model that takes nearly everything for noise cannot tell what
/// is known.
const ALWAYS_NEWS: f64 = 0.3;

impl AdditiveGpUcbSettings {
    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.structure.validate()?;
        self.kernel_learning.validate()?;
        self.zoom.validate()?;
        if let Some(local) = &self.local {
            local.validate()?;
        }
        if let Some(guard) = &self.guard {
            guard.validate()?;
        }
        let positive = [
            ("lengthscale", self.lengthscale),
            ("scale", self.scale.unwrap_or(1.0)),
            ("noise_std", self.noise_std),
        ];
        for (setting, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                let reason = "it must be positive and finite";
                return Err(Error::InvalidSetting { setting, value: value.to_string(), reason });
            }
        }
        // Structures are scored, and tables for message passing made, without these.
        let has_others = matches!(self.structure, Structure::Pairs | Structure::Whole);
        for (setting, value) in [("constant", self.constant), ("common_std", self.common_std)] {
            let reason = match value {
                value if !(value >= 0.0 && value.is_finite()) => {
                    "it must be finite and not negative"
                }
                value if value > 0.0 && !has_others => {
                    "only models of all pairs and of one component have it; set it to 0"
                }
                _ => continue,
            };
            return Err(Error::InvalidSetting { setting, value: value.to_string(), reason });
        }
        if let Structure::Given(Some(given)) = &self.structure
            && given.common_std > 0.0
        {
            return Err(Error::InvalidSetting {
                setting: "structure",
                value: format!("common_std {}", given.common_std),
                reason: "a given sum is searched component by component; set common_std to 0",
            });
        }
        match self.learning {
            Learning::Every(0) => Err(Error::InvalidSetting {
                setting: "learning",
                value: "every 0".to_string(),
                reason: "the interval must be at least 1",
            }),
            Learning::Growth(share) if !(share > 0.0 && share.is_finite()) => {
                Err(Error::InvalidSetting {
                    setting: "learning",
                    value: format!("growth {share}"),
                    reason: "the share must be positive and finite",
                })
            }
            _ if !(0.0..=1.0).contains(&self.lengthscale_growth) => Err(Error::InvalidSetting {
                setting: "lengthscale_growth",
                value: self.lengthscale_growth.to_string(),
                reason: "it must be between 0 and 1",
            }),
            _ if !(self.news >= 0.0 && self.news.is_finite()) => Err(Error::InvalidSetting {
                setting: "news",
                value: self.news.to_string(),
                reason: "it must be finite and not negative",
            }),
            _ if self.news > 0.0 && self.acquisition == Acquisition::Additive => {
                Err(Error::InvalidSetting {
                    setting: "news",
                    value: self.news.to_string(),
                    reason: "the additive bound has no κ to double; choose joint, or leave it at 0",
                })
            }
            _ if self.failures
                && (self.acquisition == Acquisition::Additive
                    || matches!(self.structure, Structure::Given(_))) =>
            {
                Err(Error::InvalidSetting {
                    setting: "failures",
                    value: "true".to_string(),
                    reason: "it needs a learned structure and the joint bound; set it to false",
                })
            }
            _ if self.guard.is_some()
                && (self.acquisition == Acquisition::Additive
                    || matches!(self.structure, Structure::Given(_))) =>
            {
                Err(Error::InvalidSetting {
                    setting: "guard",
                    value: "some".to_string(),
                    reason: "it needs a learned structure and the joint bound; leave it out",
                })
            }
            _ if self.structure == Structure::Pairs
                && self.acquisition == Acquisition::Additive =>
            {
                Err(Error::InvalidSetting {
                    setting: "acquisition",
                    value: "additive".to_string(),
                    reason: "all pairs of variables are no forest; choose joint",
                })
            }
            _ if self.structure == Structure::Whole
                && self.acquisition == Acquisition::Additive =>
            {
                Err(Error::InvalidSetting {
                    setting: "acquisition",
                    value: "additive".to_string(),
                    reason: "a single component of all variables is no sum; choose joint",
                })
            }
            _ if matches!(self.structure, Structure::Given(_))
                && self.outputs != OutputRule::Raw =>
            {
                Err(Error::InvalidSetting {
                    setting: "outputs",
                    value: "standardised".to_string(),
                    reason: "a given kernel and noise are on the scale of raw outcomes; choose raw",
                })
            }
            _ if matches!(self.structure, Structure::Given(_)) && self.local.is_some() => {
                Err(Error::InvalidSetting {
                    setting: "local",
                    value: "some".to_string(),
                    reason: "local models are learned, and a given structure is not; leave it out",
                })
            }
            _ => match self.acquisition {
                Acquisition::Joint(kappa) if !(kappa >= 0.0 && kappa.is_finite()) => {
                    Err(Error::InvalidSetting {
                        setting: "acquisition",
                        value: format!("joint {kappa}"),
                        reason: "κ must be finite and not negative",
                    })
                }
                _ => Ok(()),
            },
        }
    }
}

/// The squares of raw outcomes may overflow; a model is plain data, and JSON has no word for what is not finite.
fn finite_or_lowest(log_likelihood: f64) -> f64 {
    if log_likelihood.is_finite() { log_likelihood } else { f64::MIN }
}

/// The parts of an ask, as told to an observer when each begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Structure learning, such as TREE-LEARNING.
    StructureLearning,
    /// Kernel learning.
    KernelLearning,
    /// Conditioning on the data and pending points.
    Conditioning,
    /// Maximising the acquisition function.
    Acquisition,
    /// The model could not be used: a random point is drawn instead.
    Fallback,
    /// The ask is over.
    Done,
}

/// Called with each phase of an ask as it begins. The crate has no clock: who wants times takes them here.
pub type Observer = Arc<dyn Fn(Phase) + Send + Sync>;

/// GP-UCB with an additive GP, one ask at a time.
#[derive(Clone)]
pub struct AdditiveGpUcb {
    space: Space,
    settings: AdditiveGpUcbSettings,
    /// All outcomes, and those that are no penalties.
    told: Dataset,
    data: Dataset,
    /// All outcomes, the worst first.
    ascending: Vec<f64>,
    /// Outcomes up to this one are penalties.
    penalty: Option<f64>,
    /// Points that could not be evaluated, and those with penalties: if nothing else is learned from them they are conditioned on,
    /// or they would be the maximum again.
    failed: Vec<Point>,
    penalties: Vec<Point>,
    seen: Seen,
    /// The initial parameters, with the structure to begin with.
    initial: AdditivePrior,
    /// What was learned last; before that, the initial parameters with `observations` 0.
    model: Model,
    /// The model conditioned on its first `model.observations` observations at once and on later ones row by row, so
    /// that a resumed run has the same bits.
    posterior: Option<AdditivePosterior>,
    /// The rival that searches the whole space, if one does, conditioned like `posterior`.
    rival_posterior: Option<AdditivePosterior>,
    evaluations: usize,
    fallbacks: usize,
    refused: usize,
    observer: Option<Observer>,
}

impl std::fmt::Debug for AdditiveGpUcb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdditiveGpUcb")
            .field("settings", &self.settings)
            .field("observations", &self.data.len())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl AdditiveGpUcb {
    /// A new run in this space.
    pub fn new(space: Space, mut settings: AdditiveGpUcbSettings) -> Result<Self> {
        settings.validate()?;
        let dimension = space.dimension();
        let share = match settings.structure {
            Structure::Whole => 1.0 / (dimension as f64).sqrt(),
            _ => 1.0 / dimension as f64,
        };
        let scale = settings.scale.unwrap_or(share);
        let growth = (dimension as f64).powf(settings.lengthscale_growth);
        if let Some(prior) = &mut settings.kernel_learning.prior {
            prior.scales.median *= scale;
            prior.pair_weights.median /= dimension as f64;
            prior.lengthscales.median *= growth;
            // What is expected in a corner before anything is seen does not grow with D.
            prior.common_std.median /= (dimension as f64).sqrt();
        }
        let lengthscale = settings.lengthscale * growth;
        let mut kernel = Kernel::uniform(settings.family, dimension, lengthscale, scale);
        for d in (0..dimension).filter(|&d| space.is_categorical(d)) {
            kernel.metrics[d] = settings.categorical;
        }
        if settings.categorical == Metric::Categorical && settings.common_std > 0.0 {
            kernel.same_choices = same_choices(&space);
        }
        let graph = settings.structure.initial_graph(dimension)?;
        let components = settings.structure.components(&graph);
        let initial = match settings.structure.given_prior(dimension)? {
            Some(prior) => prior.clone(),
            None => {
                let noise_std = settings.noise_std;
                let all_pairs = (settings.structure == Structure::Pairs).then(|| {
                    let prior = settings.kernel_learning.prior.as_ref();
                    let weight = prior.map_or(share, |prior| prior.pair_weights.median);
                    AllPairs { weights: vec![weight; dimension] }
                });
                let AdditiveGpUcbSettings { constant, common_std, .. } = settings;
                AdditivePrior { components, kernel, noise_std, all_pairs, constant, common_std }
            }
        };
        let model = Model {
            graph,
            prior: initial.clone(),
            outputs: OutputMap::identity(),
            observations: 0,
            log_likelihood: 0.0,
            edge_frequencies: Vec::new(),
            verdict: None,
            local: None,
            failures: None,
        };
        Ok(Self {
            told: Dataset::empty(dimension),
            ascending: Vec::new(),
            data: Dataset::empty(dimension),
            penalty: None,
            failed: Vec::new(),
            penalties: Vec::new(),
            seen: Seen::default(),
            space,
            settings,
            initial,
            model,
            posterior: None,
            rival_posterior: None,
            evaluations: 0,
            fallbacks: 0,
            refused: 0,
            observer: None,
        })
    }

    /// Has `observer` called at the beginning of each phase of every ask.
    pub fn with_observer(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// How many asks had to fall back on a random point because the model could not be computed from the data.
    pub fn fallbacks(&self) -> usize {
        self.fallbacks
    }

    /// How many structures were refused because message passing along them would need too large a table.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// The space that is searched.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The observations so far, without outcomes that are taken for penalties.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// The posterior of the present model given all observations; predictions are on the model's scale of outcomes
    /// (`model.outputs` maps them back).
    pub fn posterior(&mut self) -> Result<&AdditivePosterior> {
        let y = self.model_outcomes();
        let mut posterior = match self.posterior.take() {
            Some(posterior) => posterior,
            None => self.model.prior.condition(&self.learned_data())?,
        };
        for (a, &y) in y.iter().enumerate().skip(posterior.len()) {
            posterior.append(&self.data.point(a), y)?;
        }
        Ok(self.posterior.insert(posterior))
    }

    /// The posterior given the first n observations only, at least those the model was learned from: the same bits as
    /// [`AdditiveGpUcb::posterior`] had then.
    pub(crate) fn posterior_of_first(&self, n: usize) -> Result<AdditivePosterior> {
        let (y, learned) = (self.model_outcomes(), self.model.observations);
        let mut posterior = self.model.prior.condition(&self.learned_data())?;
        for (a, &y) in y.iter().enumerate().take(n).skip(learned) {
            posterior.append(&self.data.point(a), y)?;
        }
        Ok(posterior)
    }

    /// Points that could not be evaluated.
    pub(crate) fn failed(&self) -> &[Point] {
        &self.failed
    }

    /// The parameters that learning begins with, and how it goes.
    pub(crate) fn untrained(&self) -> (&AdditivePrior, &KernelLearning) {
        (&self.initial, &self.settings.kernel_learning)
    }

    /// Number of observations that the model was learned from.
    pub(crate) fn learned_from(&self) -> usize {
        self.model.observations
    }

    fn model_outcomes(&self) -> Vec<f64> {
        self.data.outcomes().iter().map(|&y| self.model.outputs.apply(y)).collect()
    }

    fn observe(&self, phase: Phase) {
        if let Some(observer) = &self.observer {
            observer(phase);
        }
    }

    /// Alg. 1, line 3. With several workers the number of observations may jump over a multiple of C.
    fn learning_is_due(&self) -> bool {
        self.learning_is_due_at(self.data.len()) || self.learning_of_failures_is_due()
    }

    /// Failures count like observations, and what the model took for an outcome may have turned out to be a penalty.
    fn learning_of_failures_is_due(&self) -> bool {
        let has_grown = |share: f64| {
            let last = self.model.told() as f64;
            self.failures_tell()
                && (self.data.len() + self.failure_count()) as f64 >= last * (1.0 + share)
        };
        match self.settings.learning {
            Learning::Growth(share) if has_grown(share) => true,
            _ => self.takes_others_for_penalties(&self.model),
        }
    }

    /// Whether this model was learned when other outcomes were taken for penalties than are now.
    fn takes_others_for_penalties(&self, model: &Model) -> bool {
        let learned = model.failures.as_ref().and_then(|learned| learned.penalty);
        model.observations > 0 && !self.is_the_same(learned, self.told.len())
    }

    /// Whether the first n outcomes are divided by this penalty as by the present one.
    fn is_the_same(&self, other: Option<f64>, n: usize) -> bool {
        let is_in = |y: f64, penalty: Option<f64>| penalty.is_some_and(|penalty| y <= penalty);
        self.told.outcomes().iter().take(n).all(|&y| is_in(y, other) == is_in(y, self.penalty))
    }

    /// Whether there are enough failures, and enough else, to learn where evaluations fail.
    fn failures_tell(&self) -> bool {
        self.settings.failures && self.failure_count().min(self.data.len()) >= FEWEST
    }

    fn failure_count(&self) -> usize {
        self.failed.len() + self.penalties.len()
    }

    fn failures(&self) -> Vec<Point> {
        [self.failed.as_slice(), &self.penalties].concat()
    }

    /// Where evaluations fail, by a model of the kind that the method begins with.
    fn learn_failures(&self) -> Option<LearnedFailures> {
        let failures = self.failures();
        if !self.settings.failures || failures.is_empty() {
            return None;
        }
        let last = self.model.failures.as_ref().and_then(|learned| learned.success.as_ref());
        let start = last.map_or(&self.initial, |success| &success.prior);
        let learning = &self.settings.kernel_learning;
        // Where it cannot be computed, nothing is known of it.
        let success = self
            .failures_tell()
            .then(|| learn_success(start, &self.data, &failures, learning).ok())
            .flatten();
        Some(LearnedFailures { penalty: self.penalty, failures: failures.len(), success })
    }

    /// Where evaluations succeed; none if nothing was learned of it.
    fn success(&self) -> Option<Success> {
        let learned = self.model.failures.as_ref()?.success.as_ref()?;
        Success::new(learned, &self.data, &self.failures()).ok()
    }

    /// A posterior that knows of pending points and, unless there is a model of success, of failed ones.
    fn with_busy(
        &self,
        posterior: &AdditivePosterior,
        success: Option<&Success>,
        pending: &[Point],
    ) -> Result<AdditivePosterior> {
        let failures = if success.is_some() { Vec::new() } else { self.failures() };
        posterior.with_failed(&failures)?.with_pending(pending)
    }

    /// Takes the last outcome for what it is, and those before it for what they are now known to be.
    fn sort_out(&mut self) -> Result<()> {
        let (last, penalty) = (self.penalty, penalty(&self.ascending));
        self.penalty = penalty.filter(|_| self.settings.failures);
        let n = self.told.len();
        let from = if self.is_the_same(last, n.saturating_sub(1)) {
            n.saturating_sub(1)
        } else {
            self.data = Dataset::empty(self.told.dimension());
            self.penalties.clear();
            (self.posterior, self.rival_posterior) = (None, None);
            0
        };
        for a in from..n {
            let (point, y) = (self.told.point(a), self.told.outcomes()[a]);
            match self.penalty {
                Some(penalty) if y <= penalty => self.penalties.push(point),
                _ => self.data.push(&point, y)?,
            }
        }
        // Until the model is learned again, which is due.
        self.model.observations = self.model.observations.min(self.data.len());
        Ok(())
    }

    /// Whether it would be due with n observations.
    pub(crate) fn learning_is_due_at(&self, n: usize) -> bool {
        let learned = self.model.observations;
        // Without a first learning there is no scale to standardise outcomes with.
        // And what is given need not be waited for.
        let at_once = matches!(self.settings.structure, Structure::Given(_))
            || self.settings.outputs == OutputRule::Standardised;
        if learned == 0 && at_once {
            return true;
        }
        match self.settings.learning {
            Learning::Every(interval) => (n + 1) / interval > (learned + 1) / interval,
            Learning::Growth(share) => n > learned && n as f64 >= learned as f64 * (1.0 + share),
        }
    }

    /// Alg. 1, line 4, and Θ after it: a new model from all observations.
    pub fn learn(&mut self, stream: &Stream) -> Result<()> {
        let n = self.data.len();
        let outputs = OutputMap::fit(self.settings.outputs, self.data.outcomes());
        let y = self.data.outcomes().iter().map(|&y| outputs.apply(y)).collect();
        let data = self.data.with_outcomes(n, y);
        let (graph, edge_frequencies, prior) = match &self.settings.structure {
            Structure::Given(_) => (self.model.graph.clone(), Vec::new(), self.initial.clone()),
            _ => {
                let learned = self.learn_structure(&data, stream)?;
                self.refused += learned.refused;
                let prior = self.learn_kernel(&data, &learned.graph)?;
                (learned.graph, learned.edge_frequencies, prior)
            }
        };
        let posterior = prior.condition(&data)?;
        let verdict = self.settings.guard.map(|guard| {
            let last = self.model.verdict.clone().unwrap_or_default();
            let learning = &self.settings.kernel_learning;
            let observed = Observed { data: &self.data, outputs: &outputs };
            guard
                .compare(&last, &self.space, observed, &prior, learning, stream)
                // A rival that cannot be computed is not better.
                .unwrap_or(Verdict { rival: None, logarithm: None, ..last })
        });
        self.model = Model {
            graph,
            prior,
            outputs,
            observations: n,
            log_likelihood: finite_or_lowest(posterior.log_likelihood()),
            edge_frequencies,
            verdict,
            local: self.model.local.take(),
            failures: self.learn_failures(),
        };
        self.posterior = Some(posterior);
        self.rival_posterior = self.rival().and_then(|rival| {
            rival.prior().condition(&self.learned_through(&self.rival_outputs())).ok()
        });
        // Without a model of their own, local asks search that of the whole space.
        self.model.local = match self.settings.local {
            Some(local) if local.model != LocalModel::Whole => self.learn_local(&local).ok(),
            _ => None,
        };
        Ok(())
    }

    /// Alg. 1, line 4: the structure, with the present kernel.
    fn learn_structure(&self, data: &Dataset, stream: &Stream) -> Result<LearnedStructure> {
        self.observe(Phase::StructureLearning);
        let AdditivePrior { kernel, noise_std, .. } = &self.model.prior;
        // Not every way of choosing scores anything.
        let mut score = None;
        let rho = |components: Vec<Component>| {
            let score = match &mut score {
                Some(score) => score,
                none => none.insert(StructureScore::new(kernel, *noise_std, data)?),
            };
            // A structure whose likelihood cannot be computed is never chosen over one whose can.
            Ok(score.log_likelihood(components).unwrap_or(f64::NEG_INFINITY))
        };
        let most = self.settings.zoom.grid_size as u64;
        let sizes: Vec<usize> = (0..self.space.dimension())
            .map(|d| self.space.levels(d).map_or(most, |levels| levels.min(most)) as usize)
            .collect();
        let mut rng = stream.generator(Purpose::Structure);
        self.settings.structure.learn(&self.model.graph, rho, &sizes, &mut rng)
    }

    /// Θ and the noise for the structure that belongs to this graph.
    fn learn_kernel(&self, data: &Dataset, graph: &Graph) -> Result<AdditivePrior> {
        self.observe(Phase::KernelLearning);
        let components = self.settings.structure.components(graph);
        self.learn_from(&self.model.prior, components, data)
    }

    /// Θ and the noise of these components, from where they were last, and from the initial ones too if that is due.
    fn learn_from(
        &self,
        last: &AdditivePrior,
        components: Vec<Component>,
        data: &Dataset,
    ) -> Result<AdditivePrior> {
        let config = &self.settings.kernel_learning;
        let mut start = AdditivePrior { components, ..last.clone() };
        // Models that were stored before there was such a part have none.
        start.kernel.same_choices.clone_from(&self.initial.kernel.same_choices);
        let mut learned = kernel_learning(&start, data, config)?;
        let twice = self.settings.kernel_start == KernelStart::PresentAndInitial;
        let components = start.components.clone();
        let common_std = if start.common_std > 0.0 { self.initial.common_std } else { 0.0 };
        let initial = AdditivePrior { components, common_std, ..self.initial.clone() };
        if twice && initial != start {
            let other = kernel_learning(&initial, data, config)?;
            if other.objective > learned.objective {
                learned = other;
            }
        }
        Ok(learned.prior)
    }

    /// A model of what is near the best point, from the observations that the model was just learned from, and whether that one
    /// predicts better there.
    fn learn_local(&self, local: &LocalSearch) -> Result<LearnedLocal> {
        self.observe(Phase::KernelLearning);
        let (space, stretches) = (&self.space, self.searching_stretches());
        let initial = self.settings.initial_points;
        let near = local.neighbourhood(space, stretches, &self.data, initial)?;
        // What interacts in the whole space does so near the best point.
        let components = match self.rival() {
            Some(Rival::Pairs(prior)) => prior.components.clone(),
            _ => self.model.prior.components.clone(),
        };
        let last = self.model.local.as_ref().map_or(&self.initial, |local| &local.own);
        // What all variables do alike over their ranges tells nothing of what they do in a box.
        let last = AdditivePrior { common_std: 0.0, ..last.clone() };
        // From the same points and outcomes next to the same would be learned again, and predict as well.
        let is_known = self.settings.outputs == OutputRule::Standardised
            && near.is_everything(self.data.len())
            && components == self.model.prior.components;
        let own = match is_known {
            true => self.model.prior.clone(),
            false => self.learn_from(&last, components, &near.scaled_data()?)?,
        };
        let whole = match is_known {
            true => self.rival_posterior.as_ref(),
            false => self.rival_posterior.as_ref().or(self.posterior.as_ref()),
        };
        let map = match self.rival_posterior {
            Some(_) => self.rival_outputs(),
            None => self.model.outputs,
        };
        let log_slopes: Vec<f64> = self.data.outcomes().iter().map(|&y| map.log_slope(y)).collect();
        let whole_is_better = match whole {
            Some(whole) if local.model == LocalModel::Turns => {
                near.gain_of_own(&own, whole, &log_slopes).is_ok_and(|gain| gain < 0.0)
            }
            _ => false,
        };
        Ok(LearnedLocal { own, whole_is_better })
    }

    /// The observations that the model was learned from, as it sees them.
    fn learned_data(&self) -> Dataset {
        self.learned_through(&self.model.outputs)
    }

    fn learned_through(&self, map: &OutputMap) -> Dataset {
        let n = self.model.observations;
        let y = self.data.outcomes().iter().take(n).map(|&y| map.apply(y)).collect();
        self.data.with_outcomes(n, y)
    }

    /// A point of the box around the best one.
    fn search_near(
        &mut self,
        local: &LocalSearch,
        success: Option<&Success>,
        pending: &[Point],
        stream: &Stream,
    ) -> Result<Point> {
        let (space, stretches) = (&self.space, self.searching_stretches());
        let initial = self.settings.initial_points;
        let near = local.neighbourhood(space, stretches, &self.data, initial)?;
        let posterior = self.local_posterior(local, pending, &near)?;
        let posterior = self.with_busy(&posterior, success, pending)?;
        self.observe(Phase::Acquisition);
        let mut rng = stream.generator(Purpose::Zoom);
        let (region, kappa) = (&near.region, local.kappa);
        let objective = Objective::new(&posterior, success);
        let effort = Effort::with_pending(pending.len());
        let maximum = maximize_joint_ucb(objective, &self.space, region, kappa, effort, &mut rng)?;
        self.evaluations += maximum.evaluations;
        self.answer(maximum, &posterior, kappa, pending, stream)
    }

    /// What was learned near the best point; none at the turn of the model that searches the whole space.
    fn own_in_turn(&self, local: &LocalSearch, known: usize) -> Option<&LearnedLocal> {
        let is_turn = local.is_turn_of_whole(known);
        match local.model {
            LocalModel::Whole => None,
            _ => self.model.local.as_ref().filter(|local| !(is_turn && local.whole_is_better)),
        }
    }

    /// A posterior to search this neighbourhood, given what was observed.
    fn local_posterior(
        &mut self,
        local: &LocalSearch,
        pending: &[Point],
        near: &Neighbourhood,
    ) -> Result<AdditivePosterior> {
        let own = self.own_in_turn(local, self.data.len() + pending.len());
        let own = own.map(|local| near.unscaled(&local.own));
        self.observe(Phase::Conditioning);
        match &own {
            Some(prior) => prior.condition(&near.data),
            None => self.searching_posterior().cloned(),
        }
    }

    /// Alg. 1, lines 3 to 6.
    fn model_based(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        if self.learning_is_due() {
            self.learn(stream)?;
        }
        // The same wherever is searched.
        let success = self.success();
        let known = self.data.len() + pending.len();
        let is_plain = matches!(self.rival(), Some(Rival::Plain(_)));
        if let Some(local) = self.settings.local
            && local.is_due(known, is_blind(self.data.outcomes()), is_plain)
        {
            return self.search_near(&local, success.as_ref(), pending, stream);
        }
        self.observe(Phase::Conditioning);
        let kappa = self.kappa(known + 1);
        if self.settings.guard.is_some()
            && let Some(rival) = self.take_rival()?
        {
            let point = self.search_everywhere(&rival, success.as_ref(), kappa, pending, stream);
            self.rival_posterior = Some(rival);
            return point;
        }
        self.posterior()?;
        let Some(posterior) = self.posterior.take() else {
            return Err(Error::NotPositiveDefinite { pivot: 0 });
        };
        let point = self.search_everywhere(&posterior, success.as_ref(), kappa, pending, stream);
        self.posterior = Some(posterior);
        point
    }

    /// κ of an ask of the whole space for observation t.
    fn kappa(&self, t: usize) -> f64 {
        match (self.rival(), self.settings.guard, self.settings.acquisition) {
            (Some(Rival::Plain(_)), Some(Guard { plain: Some(kappa), .. }), _) => kappa,
            (_, _, Acquisition::Joint(kappa)) => kappa,
            (_, _, Acquisition::Additive | Acquisition::JointSchedule) => beta(t).sqrt(),
        }
    }

    /// The model that searches the whole space instead, if there is one.
    fn rival(&self) -> Option<&Rival> {
        self.model.verdict.as_ref().and_then(|verdict| verdict.rival.as_ref())
    }

    /// What the model that searches the whole space sees ranges through.
    fn searching_stretches(&self) -> &[f64] {
        &self.rival().map_or(&self.model.prior, Rival::prior).kernel.stretches
    }

    /// What it sees of outcomes.
    fn rival_outputs(&self) -> OutputMap {
        let logarithm = self.model.verdict.as_ref().and_then(|verdict| verdict.logarithm);
        OutputMap { logarithm, ..self.model.outputs }
    }

    /// The posterior that searches the whole space, given all observations: the rival's, if there is one.
    fn searching_posterior(&mut self) -> Result<&AdditivePosterior> {
        match self.take_rival()? {
            Some(rival) => Ok(self.rival_posterior.insert(rival)),
            None => self.posterior(),
        }
    }

    /// Its posterior given all observations; to be put back.
    fn take_rival(&mut self) -> Result<Option<AdditivePosterior>> {
        let map = self.rival_outputs();
        let mut posterior = match (self.rival_posterior.take(), self.rival()) {
            (Some(posterior), _) => posterior,
            (None, Some(rival)) => rival.prior().condition(&self.learned_through(&map))?,
            (None, None) => return Ok(None),
        };
        for (a, &y) in self.data.outcomes().iter().enumerate().skip(posterior.len()) {
            posterior.append(&self.data.point(a), map.apply(y))?;
        }
        Ok(Some(posterior))
    }

    /// Alg. 1, lines 5 and 6: a point of the whole space.
    fn search_everywhere(
        &mut self,
        posterior: &AdditivePosterior,
        success: Option<&Success>,
        kappa: f64,
        pending: &[Point],
        stream: &Stream,
    ) -> Result<Point> {
        let with_busy;
        let posterior = if pending.is_empty() && self.failure_count() == 0 {
            posterior
        } else {
            with_busy = self.with_busy(posterior, success, pending)?;
            &with_busy
        };
        self.observe(Phase::Acquisition);
        let t = self.data.len() + pending.len() + 1;
        let effort = Effort::with_pending(pending.len());
        let objective = Objective::new(posterior, success);
        let (maximum, kappa) = self.maximize_acquisition(objective, kappa, t, effort, stream)?;
        self.evaluations += maximum.evaluations;
        self.answer(maximum, posterior, kappa, pending, stream)
    }

    /// Whether an outcome at this point would say something: σ against η, what is not known yet against what will not be known
    /// after it either.
    fn is_news(&self, posterior: &AdditivePosterior, point: &Point) -> Result<bool> {
        let least = (self.settings.news * posterior.prior().noise_std).min(ALWAYS_NEWS);
        Ok(least == 0.0 || posterior.joint(point)?.variance.sqrt() >= least)
    }

    /// The point to ask for: the maximum, or one near it if that is known and none may come twice.
    fn answer(
        &self,
        maximum: Maximum,
        posterior: &AdditivePosterior,
        kappa: f64,
        pending: &[Point],
        stream: &Stream,
    ) -> Result<Point> {
        if !maximum.value.is_finite() {
            // The numbers have overflowed, and the point is only the first of the grid.
            return Err(Error::NotPositiveDefinite { pivot: 0 });
        }
        let mut point = maximum.point;
        if self.settings.repeats == RepeatRule::Avoid {
            let score = |points: &[Point]| {
                let joint = posterior.joint_many(points)?;
                Ok(joint.iter().map(|n| n.mean + kappa * n.variance.sqrt()).collect())
            };
            let seen = self.seen.with(pending);
            let mut rng = stream.generator(Purpose::Repeat);
            point = seen.replace(point, &self.space, score, &mut rng)?;
        }
        self.space.check(&point)?;
        Ok(point)
    }

    /// Alg. 1, line 5, in the whole space; κ is that of the joint bound, and what has become of it.
    fn maximize_acquisition(
        &self,
        objective: Objective<'_>,
        kappa: f64,
        t: usize,
        effort: Effort,
        stream: &Stream,
    ) -> Result<(Maximum, f64)> {
        let (space, settings) = (&self.space, &self.settings);
        let mut rng = stream.generator(Purpose::Zoom);
        let posterior = objective.posterior;
        if settings.acquisition != Acquisition::Additive {
            let is_news = |point: &Point| self.is_news(posterior, point);
            return maximize_for_news(
                objective,
                space,
                &everywhere(space),
                kappa,
                is_news,
                effort,
                &mut rng,
            );
        }
        let ucb = Ucb { posterior, beta: beta(t) };
        let maximum = match settings.max_evaluations {
            Some(cap) if space.size().is_some() => {
                msg_passing_capped(&ucb, space, cap, settings.structure.max_table(), &mut rng)
            }
            _ => msg_passing_continuous(&ucb, space, settings.zoom, &mut rng),
        };
        Ok((maximum?, kappa))
    }

    /// A point of the initial design, new if it has to be.
    pub(crate) fn initial_point(&self, pending: &[Point], stream: &Stream) -> Result<Point> {
        match self.settings.design.point(&self.space, stream)? {
            Some(point) if self.may_ask(&point, pending) => Ok(point),
            _ => self.random_point(pending, stream),
        }
    }

    /// Whether this point is new, or need not be.
    pub(crate) fn may_ask(&self, point: &Point, pending: &[Point]) -> bool {
        self.settings.repeats == RepeatRule::Allow || !self.seen.with(pending).contains(point)
    }

    /// Refuses pending points that are not in the space, and a space in which every point is known if none may come twice.
    pub(crate) fn check_ask(&self, pending: &[Point]) -> Result<()> {
        for point in pending {
            self.space.check(point)?;
        }
        match self.settings.repeats {
            RepeatRule::Allow => Ok(()),
            RepeatRule::Avoid => self.seen.with(pending).check_exhausted(&self.space),
        }
    }

    /// A uniform point, new if it has to be.
    pub(crate) fn random_point(&self, pending: &[Point], stream: &Stream) -> Result<Point> {
        let mut rng = stream.generator(Purpose::Initial);
        match self.settings.repeats {
            RepeatRule::Allow => Ok(self.space.sample(&mut rng)),
            RepeatRule::Avoid => self.seen.with(pending).any_new(&self.space, &mut rng),
        }
    }
}

impl Optimizer for AdditiveGpUcb {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        self.check_ask(pending)?;
        let n = self.data.len();
        // Where it is learned what fails, failures have told something, too.
        let told = if self.failures_tell() { n + self.failure_count() } else { n };
        // The centre is the first point of the initial design; where that was given instead, the first one after it.
        let known = told + pending.len();
        let is_first = stream.trial() == 0 && known == 0;
        if self.settings.centre && (is_first || known == self.settings.initial_points) {
            let centre = self.space.snap(&vec![0.5; self.space.dimension()])?;
            if !self.seen.with(pending).contains(&centre) {
                return Ok(centre);
            }
        }
        if n == 0 || known < self.settings.initial_points {
            return self.initial_point(pending, stream);
        }
        // Whatever the data have done to the numbers, an ask has an answer.
        let point = self.model_based(pending, stream).or_else(|_| {
            self.fallbacks += 1;
            self.observe(Phase::Fallback);
            self.random_point(pending, stream)
        });
        self.observe(Phase::Done);
        point
    }

    fn tell(&mut self, point: Point, outcome: f64) -> Result<()> {
        self.space.check(&point)?;
        self.told.push(&point, outcome)?;
        let place = self.ascending.partition_point(|&other| other < outcome);
        self.ascending.insert(place, outcome);
        self.seen.insert(&point);
        self.sort_out()
    }

    fn fail(&mut self, point: Point) -> Result<()> {
        self.space.check(&point)?;
        self.seen.insert(&point);
        self.failed.push(point);
        Ok(())
    }

    fn model(&self) -> Option<&Model> {
        Some(&self.model).filter(|model| model.observations > 0)
    }

    fn resume(&mut self, model: Model) -> Result<()> {
        let dimension = self.space.dimension();
        model.prior.validate()?;
        let rival = model.verdict.as_ref().and_then(|verdict| verdict.rival.as_ref());
        let rival = rival.map_or(&model.prior, Rival::prior);
        rival.validate()?;
        let near = model.local.as_ref().map_or(&model.prior, |local| &local.own);
        near.validate()?;
        let success = model.failures.as_ref().and_then(|learned| learned.success.as_ref());
        let success = success.map_or(&model.prior, |success| &success.prior);
        success.validate()?;
        for (what, found) in [
            ("the model's graph", model.graph.dimension()),
            ("the model's kernel", model.prior.kernel.dimension()),
            ("the kernel of the model's rival", rival.kernel.dimension()),
            ("the kernel of the local model", near.kernel.dimension()),
            ("the kernel of the model of failures", success.kernel.dimension()),
        ] {
            if found != dimension {
                return Err(Error::WrongDimension { what, expected: dimension, found });
            }
        }
        let outputs = &model.outputs;
        let of_rival = model.verdict.as_ref().and_then(|verdict| verdict.logarithm);
        let of_rival = OutputMap { logarithm: of_rival, ..*outputs };
        if !(outputs.is_usable() && of_rival.is_usable() && model.log_likelihood.is_finite()) {
            return Err(Error::InvalidSetting {
                setting: "model.outputs",
                value: format!("{of_rival:?}"),
                reason: "its numbers must be finite and its scales positive",
            });
        }
        for prior in [&model.prior, rival, near, success] {
            let sets = &prior.kernel.same_choices;
            if !sets.is_empty() && *sets != same_choices(&self.space) {
                return Err(Error::InvalidStructure {
                    reason: "the model's choices are not those of the space".to_string(),
                });
            }
        }
        if model.prior.components != self.settings.structure.components(&model.graph) {
            return Err(Error::InvalidStructure {
                reason: "the model's components are not those of its graph".to_string(),
            });
        }
        let is_outdated = self.takes_others_for_penalties(&model);
        if model.observations > self.data.len() && !is_outdated {
            return Err(Error::InvalidSetting {
                setting: "model.observations",
                value: model.observations.to_string(),
                reason: "the model was learned from more observations than have been told",
            });
        }
        self.model = model;
        self.model.observations = self.model.observations.min(self.data.len());
        self.posterior = None;
        self.rival_posterior = None;
        Ok(())
    }

    fn evaluations(&self) -> usize {
        self.evaluations
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::failures::LearnedSuccess;
    use crate::graph_learning::GraphLearning;
    use crate::kernel_learning::{Budget, log_posterior_density};
    use crate::space::Parameter;

    #[test]
    fn local_asks_stay_in_the_box_and_others_do_not() {
        let space = Space::unit_cube(4).unwrap();
        let asked_with = |every: usize| {
            let local = LocalSearch { every, half_width: 0.05, ..LocalSearch::default() };
            let settings =
                AdditiveGpUcbSettings { local: Some(local), ..AdditiveGpUcbSettings::boscage() };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..16 {
                let stream = Stream::new(4, trial);
                let point = space.sample(&mut stream.generator(Purpose::Problem));
                // Rises to a corner, so that the whole space is searched far from what is known.
                let outcome = point.0.iter().sum();
                optimizer.tell(point, outcome).unwrap();
            }
            let near = local.neighbourhood(&space, &[], optimizer.data(), 10).unwrap();
            let point = optimizer.ask(&[], &Stream::new(4, 16)).unwrap();
            let inside = |(x, (low, high)): (&f64, &(f64, f64))| (low..=high).contains(&x);
            point.0.iter().zip(&near.region).all(inside)
        };
        // With sixteen observations every ask is due, and of asks in turn the global one.
        assert!(asked_with(1));
        assert!(!asked_with(2));
    }

    #[test]
    fn where_stretched_ranges_search_local_asks_stay_in_boxes_of_what_is_seen() {
        let space = Space::unit_cube(4).unwrap();
        let local = LocalSearch { every: 1, half_width: 0.05, ..LocalSearch::default() };
        let bowl = |x: f64| (2.0 * (x + 1e-3).log10() + 4.0).powi(2);
        let ask = |stretch: bool| {
            let guard = Guard { stretch, logarithm: false, ..Guard::default() };
            let settings = AdditiveGpUcbSettings {
                local: Some(local),
                guard: Some(guard),
                initial_points: 121,
                centre: false,
                ..AdditiveGpUcbSettings::boscage()
            };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..121 {
                let mut point =
                    space.sample(&mut Stream::new(4, trial).generator(Purpose::Problem));
                if trial == 120 {
                    // The best of all: 0.005 to either side is a tenth of the range, or next to nothing of it.
                    point = Point(vec![0.01; 4]);
                }
                let outcome = -point.0.iter().map(|&x| bowl(x)).sum::<f64>();
                optimizer.tell(point, outcome).unwrap();
            }
            let point = optimizer.ask(&[], &Stream::new(4, 121)).unwrap();
            let stretches = optimizer.searching_stretches().to_vec();
            let initial = optimizer.settings.initial_points;
            let region = |stretches: &[f64]| {
                local.neighbourhood(&space, stretches, optimizer.data(), initial).unwrap().region
            };
            let inside = |(x, (low, high)): (&f64, &(f64, f64))| (low..=high).contains(&x);
            let widest = |region: &[(f64, f64)]| {
                region.iter().map(|(low, high)| high - low).fold(0.0, f64::max)
            };
            let region = region(&stretches);
            (stretches, point.0.iter().zip(&region).all(inside), widest(&region))
        };
        let (stretches, is_inside, width) = ask(true);
        assert_eq!(stretches.len(), 4);
        assert!(is_inside && width < 0.03, "{width}");
        let (stretches, is_inside, width) = ask(false);
        assert!(stretches.is_empty() && is_inside && width > 0.05, "{width}");
    }

    #[test]
    fn asks_are_local_where_outcomes_are_of_many_magnitudes() {
        let asked_with = |blind: usize, outcome: fn(&[f64]) -> f64| {
            let mut optimizer = told(12, outcome);
            let local = LocalSearch { blind, half_width: 0.05, ..LocalSearch::default() };
            optimizer.settings.local = Some(local);
            let near = local.neighbourhood(&optimizer.space, &[], optimizer.data(), 10).unwrap();
            let point = optimizer.ask(&[], &Stream::new(3, 12)).unwrap();
            let inside = |(x, (low, high)): (&f64, &(f64, f64))| (low..=high).contains(&x);
            point.0.iter().zip(&near.region).all(inside)
        };
        let magnitudes = |x: &[f64]| -10_f64.powf(3.0 * x.iter().sum::<f64>());
        // With twelve observations none is due, if not for that; and of all but one in one none is left.
        assert!(asked_with(8, magnitudes));
        assert!(!asked_with(1, magnitudes));
        assert!(!asked_with(8, |x| -x.iter().sum::<f64>()));
    }

    #[test]
    fn a_box_that_holds_everything_has_the_model_of_everything() {
        let learned = |half_width: f64, points: f64| {
            let space = Space::unit_cube(3).unwrap();
            let local = LocalSearch { half_width, points, ..LocalSearch::default() };
            let settings = AdditiveGpUcbSettings {
                local: Some(local),
                initial_points: 40,
                guard: None,
                ..AdditiveGpUcbSettings::boscage()
            };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..40 {
                let point = space.sample(&mut Stream::new(6, trial).generator(Purpose::Problem));
                let outcome = (5.0 * point.0[0]).sin() + point.0[1];
                optimizer.tell(point, outcome).unwrap();
            }
            let near = local.neighbourhood(&space, &[], optimizer.data(), 40).unwrap();
            optimizer.learn(&Stream::new(6, 40)).unwrap();
            let whole = optimizer.model.prior.clone();
            let LearnedLocal { own, whole_is_better } = optimizer.model.local.clone().unwrap();
            // A model is not better than itself.
            assert!(own != whole || !whole_is_better);
            // What learning from the neighbourhood would have come to.
            let config = &optimizer.settings.kernel_learning;
            let again = kernel_learning(&optimizer.initial, &near.scaled_data().unwrap(), config);
            (near.is_everything(40), own == whole, again.unwrap().prior.kernel, own.kernel)
        };
        // The whole space: what was learned, which is what would be learned again.
        let (is_everything, is_same, again, own) = learned(0.5, 100.0);
        assert!(is_everything && is_same);
        for (again, own) in again.lengthscales.iter().zip(&own.lengthscales) {
            assert!((again / own - 1.0).abs() < 0.1, "{again} {own}");
        }
        // All observations, but in units of a smaller box; and a part of them.
        for (half_width, points) in [(0.2, 100.0), (0.5, 1.0)] {
            let (is_everything, is_same, ..) = learned(half_width, points);
            assert!(!is_everything && !is_same);
        }
    }

    #[test]
    fn asks_that_would_say_nothing_give_way_to_others() {
        let space = Space::unit_cube(2).unwrap();
        // Where the next ask is after many noisy outcomes at the top of a hill: its σ over η, and whether it is in the box.
        let asked_with = |news: f64, local: Option<LocalSearch>| {
            // With what both variables do alike, a bowl would be known everywhere.
            let common_std = 0.0;
            let settings = AdditiveGpUcbSettings {
                news,
                local,
                common_std,
                ..AdditiveGpUcbSettings::boscage()
            };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..90 {
                let mut rng = Stream::new(9, trial).generator(Purpose::Problem);
                let mut point = space.sample(&mut rng);
                if trial >= 60 {
                    let near = |(x, top): (&f64, f64)| top + 0.02 * (x - 0.5);
                    point = Point(point.0.iter().zip([0.3, 0.6]).map(near).collect());
                }
                let noise = 0.03 * (space.sample(&mut rng).0[0] - 0.5);
                let outcome = noise - (point.0[0] - 0.3).powi(2) - (point.0[1] - 0.6).powi(2);
                optimizer.tell(point, outcome).unwrap();
            }
            let point = optimizer.ask(&[], &Stream::new(9, 90)).unwrap();
            let region = LocalSearch::default()
                .neighbourhood(&space, &[], optimizer.data(), 10)
                .unwrap()
                .region;
            let inside = |(x, (low, high)): (&f64, &(f64, f64))| (low..=high).contains(&x);
            let is_near = point.0.iter().zip(&region).all(inside);
            let posterior = optimizer.posterior().unwrap();
            let std = posterior.joint(&point).unwrap().variance.sqrt();
            (std / posterior.prior().noise_std, is_near)
        };
        let always = Some(LocalSearch { every: 1, ..LocalSearch::default() });
        let [anywhere, near] = [None, always].map(|local| asked_with(0.0, local));
        assert!(anywhere.0 < 0.5 && near.1, "{anywhere:?} {near:?}");
        let anywhere = asked_with(1.0, None);
        assert!(anywhere.0 >= 1.0, "{anywhere:?}");
    }

    #[test]
    fn a_model_that_takes_everything_for_noise_does_not_say_what_is_known() {
        let mut optimizer = told(40, |x| x.iter().sum());
        let data = optimizer.data().clone();
        let point = Point(vec![0.5; 3]);
        // σ at the centre by the noise that the model believes in, and whether it is news.
        let mut with_noise = |noise_std: f64, news: f64| {
            optimizer.settings.news = news;
            let prior = AdditivePrior { noise_std, ..optimizer.initial.clone() };
            let posterior = prior.condition(&data).unwrap();
            let std = posterior.joint(&point).unwrap().variance.sqrt();
            (std, optimizer.is_news(&posterior, &point).unwrap())
        };
        // Less than the noise, but more than what is always news.
        let (std, is_news) = with_noise(2.0, 1.0);
        assert!(std > ALWAYS_NEWS && std < 2.0 && is_news, "{std} {is_news}");
        // Less than both.
        let (std, is_news) = with_noise(0.5, 1.0);
        assert!(std > 0.1 && std < ALWAYS_NEWS && !is_news, "{std} {is_news}");
        // More than the noise; less than so many times the noise, and than what is always news.
        let (std, is_news) = with_noise(1e-3, 1.0);
        assert!(std > 1e-3 && std < ALWAYS_NEWS && is_news, "{std} {is_news}");
        assert!(!with_noise(1e-3, ALWAYS_NEWS / 1e-3).1);
        assert!(with_noise(1e-3, 0.0).1);
    }

    #[test]
    fn kappa_is_that_of_who_searches() {
        let space = Space::unit_cube(3).unwrap();
        let guard = Some(Guard { plain: Some(0.7), ..Guard::default() });
        let settings = AdditiveGpUcbSettings { guard, ..AdditiveGpUcbSettings::boscage() };
        let mut optimizer = AdditiveGpUcb::new(space, settings).unwrap();
        let prior = optimizer.initial.clone();
        assert_eq!(optimizer.kappa(30), 2.0);
        for (rival, kappa) in [(Rival::Plain(prior.clone()), 0.7), (Rival::Pairs(prior), 2.0)] {
            optimizer.model.verdict = Some(Verdict { rival: Some(rival), ..Verdict::default() });
            assert_eq!(optimizer.kappa(30), kappa);
        }
        optimizer.settings.acquisition = Acquisition::JointSchedule;
        assert_eq!(optimizer.kappa(30), beta(30).sqrt());
    }

    #[test]
    fn news_is_refused_where_there_is_no_weight_to_double_and_where_it_is_no_number() {
        let additive = AdditiveGpUcbSettings { news: 1.0, ..AdditiveGpUcbSettings::paper() };
        assert!(additive.validate().unwrap_err().to_string().contains("choose joint"));
        for news in [-1.0, f64::NAN, f64::INFINITY] {
            let settings = AdditiveGpUcbSettings { news, ..AdditiveGpUcbSettings::boscage() };
            assert!(settings.validate().unwrap_err().to_string().contains("news"));
        }
    }

    #[test]
    fn a_constant_is_refused_where_structures_are_scored_without_and_where_it_is_no_number() {
        let tree = AdditiveGpUcbSettings { constant: 1.0, ..AdditiveGpUcbSettings::default() };
        assert!(tree.validate().unwrap_err().to_string().contains("set it to 0"));
        let alike = AdditiveGpUcbSettings { common_std: 0.1, ..AdditiveGpUcbSettings::default() };
        assert!(alike.validate().unwrap_err().to_string().contains("set it to 0"));
        for constant in [-1.0, f64::NAN, f64::INFINITY] {
            let settings = AdditiveGpUcbSettings { constant, ..AdditiveGpUcbSettings::gp_ucb() };
            assert!(settings.validate().unwrap_err().to_string().contains("constant"));
            let common_std = constant;
            let settings = AdditiveGpUcbSettings { common_std, ..AdditiveGpUcbSettings::boscage() };
            assert!(settings.validate().unwrap_err().to_string().contains("common_std"));
        }
    }

    /// The default method after these many random points, with outcomes by the place of each.
    fn told(n: u64, outcome: fn(&[f64]) -> f64) -> AdditiveGpUcb {
        let space = Space::unit_cube(3).unwrap();
        let mut optimizer =
            AdditiveGpUcb::new(space.clone(), AdditiveGpUcbSettings::boscage()).unwrap();
        for trial in 0..n {
            let point = space.sample(&mut Stream::new(3, trial).generator(Purpose::Problem));
            let outcome = outcome(&point.0);
            optimizer.tell(point, outcome).unwrap();
        }
        optimizer
    }

    #[test]
    fn what_was_taken_for_noise_is_learned_when_more_is_known() {
        // The default method learns from the present parameters only: its priors leave no maximum where everything is noise.
        for n in [12, 20, 30, 70] {
            let mut optimizer = told(n, |x| (9.0 * x[0]).sin() + x[1] * x[2]);
            let prior = &mut optimizer.model.prior;
            prior.noise_std = 1.0;
            prior.common_std = 1e-6;
            prior.kernel.scales.fill(1e-6);
            prior.all_pairs.as_mut().unwrap().weights.fill(1e-6);
            optimizer.learn(&Stream::new(3, n)).unwrap();
            let prior = &optimizer.model.prior;
            assert!(prior.noise_std < 0.1, "{n}: {}", prior.noise_std);
            let scales = &prior.kernel.scales;
            assert!(scales.iter().all(|&scale| scale > 0.1), "{n}: {scales:?}");
        }
    }

    #[test]
    fn the_initial_parameters_are_a_start_too_if_that_is_set() {
        let learned = |kernel_start| {
            let mut optimizer = told(30, |x| (9.0 * x[0]).sin() + x[1] * x[2]);
            optimizer.settings.kernel_start = kernel_start;
            optimizer.settings.kernel_learning.budget = Budget::Fixed(2);
            optimizer.model.prior.noise_std = 1.0;
            optimizer.model.prior.kernel.scales.fill(1e-6);
            optimizer.learn(&Stream::new(3, 30)).unwrap();
            let config = &optimizer.settings.kernel_learning;
            let data = optimizer.learned_data();
            log_posterior_density(&optimizer.model.prior, &data, config).unwrap()
        };
        // Two steps from where nothing is known do not come as far as two from the initial parameters.
        assert!(learned(KernelStart::PresentAndInitial) > learned(KernelStart::Present) + 1.0);
    }

    #[test]
    fn a_model_that_was_stored_before_choices_had_anything_in_common_learns_it() {
        let parameter = |i| Parameter::categorical(format!("p{i}"), ["a", "b", "c"]);
        let space = Space::new((0..4).map(parameter).collect()).unwrap();
        let settings =
            |common_std| AdditiveGpUcbSettings { common_std, ..AdditiveGpUcbSettings::boscage() };
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings(0.1)).unwrap();
        for trial in 0..20 {
            let point = space.sample(&mut Stream::new(3, trial).generator(Purpose::Problem));
            let outcome = point.0.iter().sum();
            optimizer.tell(point, outcome).unwrap();
        }
        let sets = optimizer.model.prior.kernel.same_choices.clone();
        assert_eq!(sets.len(), 1);
        optimizer.model.prior.kernel.same_choices.clear();
        optimizer.learn(&Stream::new(3, 20)).unwrap();
        assert_eq!(optimizer.model.prior.kernel.same_choices, sets);
        let mut of_another = optimizer.model.clone();
        of_another.prior.kernel.same_choices[0].choices = 1 << 60;
        let refused = optimizer.resume(of_another).unwrap_err().to_string();
        assert!(refused.contains("choices"), "{refused}");
        // Without the part there is nothing to know, and where choices count as numbers they are ordered.
        let without = AdditiveGpUcb::new(space.clone(), settings(0.0)).unwrap();
        let numeric = AdditiveGpUcbSettings { categorical: Metric::Numeric, ..settings(0.1) };
        let numeric = AdditiveGpUcb::new(space, numeric).unwrap();
        for other in [without, numeric] {
            assert!(other.model.prior.kernel.same_choices.is_empty());
        }
    }

    #[test]
    fn what_variables_do_alike_is_learned_from_the_beginning_and_not_in_a_box() {
        let alike = |x: &[f64]| x.iter().map(|x| -(x - 0.4).powi(2)).sum();
        let mut optimizer = told(30, alike);
        // As small as it may get where variables seemed to have nothing in common.
        optimizer.model.prior.common_std = 1e-6;
        optimizer.learn(&Stream::new(3, 30)).unwrap();
        assert!(optimizer.model.prior.common_std > 0.1, "{}", optimizer.model.prior.common_std);
        assert_eq!(optimizer.model.local.unwrap().own.common_std, 0.0);
    }

    #[test]
    fn the_whole_space_has_its_turn_near_the_best_point_where_it_predicts_better() {
        let local = LocalSearch::default();
        let whole_is_better = |outcome| {
            let mut optimizer = told(80, outcome);
            optimizer.learn(&Stream::new(3, 80)).unwrap();
            optimizer.model.local.unwrap().whole_is_better
        };
        // What holds everywhere is learned from everywhere; what spans nine orders of magnitude is not.
        let waves = |x: &[f64]| (9.0 * x[0]).sin() + (8.0 * x[1]).cos() + (7.0 * x[2]).sin();
        assert!(whole_is_better(waves));
        assert!(!whole_is_better(|x| -10.0_f64.powf(3.0 * x.iter().sum::<f64>())));
        // At the turn of the whole space its model is searched, otherwise the box's own.
        let mut optimizer = told(83, waves);
        optimizer.learn(&Stream::new(3, 83)).unwrap();
        let prior = |optimizer: &mut AdditiveGpUcb, pending: &[Point]| {
            let near = local.neighbourhood(&optimizer.space, &[], &optimizer.data, 10).unwrap();
            optimizer.local_posterior(&local, pending, &near).unwrap().prior().clone()
        };
        assert!(local.is_turn_of_whole(83) && optimizer.rival().is_none());
        assert_eq!(prior(&mut optimizer, &[]), optimizer.model.prior);
        let pending = vec![Point(vec![0.1; 3]), Point(vec![0.2; 3])];
        assert!(!local.is_turn_of_whole(85));
        let own = prior(&mut optimizer, &pending);
        assert_ne!(own, optimizer.model.prior);
    }

    #[test]
    fn what_was_learned_near_the_best_point_is_where_the_next_learning_starts() {
        let learned = |lengthscale: f64| {
            let sum = |x: &[f64]| (5.0 * x[0]).sin() + x[1] * x[2];
            let mut optimizer = told(30, sum);
            optimizer.settings.kernel_learning.budget = Budget::Fixed(2);
            optimizer.learn(&Stream::new(3, 30)).unwrap();
            let local = optimizer.model.local.as_mut().unwrap();
            local.own.kernel.lengthscales.fill(lengthscale);
            optimizer.learn(&Stream::new(3, 30)).unwrap();
            optimizer.model.local.unwrap().own
        };
        assert_ne!(learned(0.1), learned(3.0));
    }

    #[test]
    fn a_rival_stays_in_the_box_at_its_turn() {
        // Largest far from what was observed: all variables together, and every one with one other.
        let together = |x: &[f64]| (1.5 * x.iter().sum::<f64>() - 5.0).cos();
        let pairs = |x: &[f64]| (0..3).map(|i| (4.0 * x[i]).sin() * (4.0 * x[i + 3]).sin()).sum();
        let is_forest = |rival: &Rival| match rival {
            Rival::Pairs(prior) => prior.all_pairs.is_none(),
            Rival::Plain(_) | Rival::Model(_) => false,
        };
        for (outcome, forest) in [(&together as &dyn Fn(&[f64]) -> f64, false), (&pairs, true)] {
            let space = Space::unit_cube(6).unwrap();
            let settings = AdditiveGpUcbSettings::boscage();
            let local = settings.local.unwrap();
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..101 {
                let mut point =
                    space.sample(&mut Stream::new(8, trial).generator(Purpose::Problem));
                point.0.iter_mut().for_each(|x| *x *= 0.5);
                let outcome = outcome(&point.0);
                optimizer.tell(point, outcome).unwrap();
            }
            optimizer.learn(&Stream::new(8, 101)).unwrap();
            assert_eq!(is_forest(optimizer.rival().unwrap()), forest);
            optimizer.model.local.as_mut().unwrap().whole_is_better = true;
            assert!(local.is_turn_of_whole(101));
            let near = local.neighbourhood(&optimizer.space, &[], &optimizer.data, 10).unwrap();
            let posterior = optimizer.local_posterior(&local, &[], &near).unwrap();
            let region = near.region;
            assert_eq!(posterior.prior(), optimizer.rival().unwrap().prior());
            let point = optimizer.ask(&[], &Stream::new(8, 101)).unwrap();
            for (x, (low, high)) in point.0.iter().zip(region) {
                assert!((low..=high).contains(x), "{x} is not from {low} to {high}");
            }
        }
    }

    #[test]
    fn asks_are_local_while_a_plain_gp_searches() {
        // All are largest far from what was observed: in all variables together, in each alone, and in every one with one other.
        let together = |x: &[f64]| (1.5 * x.iter().sum::<f64>() - 5.0).cos();
        let alone = |x: &[f64]| x.iter().map(|x| (2.0 * x - 2.0).cos()).sum::<f64>();
        let pairs = |x: &[f64]| (0..3).map(|i| (3.0 * x[i] * x[i + 3]).sin()).sum::<f64>();
        let asked_with = |plain: Option<usize>, pending: usize, outcome: &dyn Fn(&[f64]) -> f64| {
            let space = Space::unit_cube(6).unwrap();
            let local = LocalSearch { plain, ..LocalSearch::default() };
            let settings = AdditiveGpUcbSettings {
                local: Some(local),
                guard: Some(Guard { stretch: false, ..Guard::default() }),
                ..AdditiveGpUcbSettings::boscage()
            };
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            let mut points: Vec<Point> = (0..102)
                .map(|trial| space.sample(&mut Stream::new(8, trial).generator(Purpose::Problem)))
                .collect();
            points.iter_mut().flat_map(|point| &mut point.0).for_each(|x| *x *= 0.5);
            let pending = points.split_off(102 - pending);
            for point in points {
                let outcome = outcome(&point.0);
                optimizer.tell(point, outcome).unwrap();
            }
            let near = local.neighbourhood(&space, &[], optimizer.data(), 10).unwrap();
            let point = optimizer.ask(&pending, &Stream::new(8, 102)).unwrap();
            assert!(!is_blind(optimizer.data().outcomes()));
            let inside = |(x, (low, high)): (&f64, &(f64, f64))| (low..=high).contains(&x);
            (optimizer.rival().cloned(), point.0.iter().zip(&near.region).all(inside))
        };
        let default = LocalSearch::default().plain;
        // With 102 known none would be due, and of all but one in 51 this is the one.
        for (plain, pending, local) in
            [(default, 0, true), (default, 2, true), (Some(51), 0, false), (None, 0, false)]
        {
            let (rival, is_local) = asked_with(plain, pending, &together);
            assert!(matches!(rival, Some(Rival::Plain(_))));
            assert_eq!(is_local, local, "{plain:?}, {pending} pending");
        }
        assert_eq!(asked_with(default, 0, &alone), (None, false));
        let (rival, is_local) = asked_with(default, 0, &pairs);
        assert!(matches!(rival, Some(Rival::Pairs(_))) && !is_local);
    }

    #[test]
    fn a_stored_local_model_of_another_space_is_refused() {
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let mut optimizer = told(30, sum);
        optimizer.learn(&Stream::new(3, 30)).unwrap();
        let mut model = optimizer.model.clone();
        optimizer.resume(model.clone()).unwrap();
        assert_eq!(optimizer.model, model);
        let smaller =
            AdditiveGpUcb::new(Space::unit_cube(2).unwrap(), AdditiveGpUcbSettings::boscage());
        let good = model.clone();
        model.local.as_mut().unwrap().own = smaller.unwrap().initial;
        let refused = optimizer.resume(model).unwrap_err().to_string();
        assert!(refused.contains("local model"), "{refused}");
        for stretches in [vec![1.0; 2], vec![1.0, -1.0, 1.0]] {
            let mut model = good.clone();
            model.local.as_mut().unwrap().own.kernel.stretches.clone_from(&stretches);
            assert!(optimizer.resume(model).unwrap_err().to_string().contains("stretches"));
            let mut model = good.clone();
            let mut rival = model.prior.clone();
            rival.kernel.stretches = stretches;
            model.verdict.as_mut().unwrap().rival = Some(Rival::Model(rival));
            assert!(optimizer.resume(model).unwrap_err().to_string().contains("stretches"));
        }
    }

    #[test]
    fn what_is_given_has_no_local_models() {
        let local = Some(LocalSearch::default());
        let settings =
            AdditiveGpUcbSettings { local, ..AdditiveGpUcbSettings::oracle(Some(path(3, 0.5))) };
        match settings.validate() {
            Err(Error::InvalidSetting { setting: "local", .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Tells `n` random points with these outcomes, then asks once.
    fn asked(
        settings: AdditiveGpUcbSettings,
        n: u64,
        outcome: impl Fn(u64) -> f64,
    ) -> AdditiveGpUcb {
        let space = Space::unit_cube(3).unwrap();
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
        for trial in 0..n {
            let stream = Stream::new(1, trial);
            let point = space.sample(&mut stream.generator(Purpose::Initial));
            optimizer.tell(point, outcome(trial)).unwrap();
        }
        optimizer.ask(&[], &Stream::new(1, n)).unwrap();
        optimizer
    }

    #[test]
    fn learning_comes_when_the_number_of_observations_says_so() {
        let learned_at = |settings: &AdditiveGpUcbSettings, n| {
            asked(settings.clone(), n, |t| (t as f64).sin()).model().map(|m| m.observations)
        };
        // t = n + 1 passes a multiple of 15.
        let paper = AdditiveGpUcbSettings::paper();
        assert_eq!([13, 14, 20].map(|n| learned_at(&paper, n)), [None, Some(14), Some(20)]);
        // Standardised outcomes need a first learning at once, whatever the interval.
        let every = AdditiveGpUcbSettings { learning: Learning::Every(15), ..Default::default() };
        assert_eq!(learned_at(&every, 10), Some(10));
        assert_eq!(learned_at(&AdditiveGpUcbSettings::default(), 10), Some(10));
    }

    #[test]
    fn growth_learns_again_after_a_tenth() {
        let mut optimizer = asked(AdditiveGpUcbSettings::default(), 20, |t| (t as f64).sin());
        let mut learned = Vec::new();
        for trial in 20..26 {
            let point = optimizer.ask(&[], &Stream::new(1, trial)).unwrap();
            learned.push(optimizer.model().map(|m| m.observations));
            optimizer.tell(point, 0.1 * trial as f64).unwrap();
        }
        // 20 → 22 → 25, since 24 is less than 22 and a tenth.
        assert_eq!(learned, [20, 20, 22, 22, 22, 25].map(Some));
    }

    #[test]
    fn an_ask_that_cannot_use_the_model_falls_back_and_says_so() {
        let good = asked(AdditiveGpUcbSettings::paper(), 20, |t| t as f64);
        assert_eq!(good.fallbacks(), 0);
        let phases = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&phases);
        let mut bad =
            asked(AdditiveGpUcbSettings::paper(), 20, |t| if t == 3 { f64::MAX } else { 0.0 })
                .with_observer(Arc::new(move |phase| seen.lock().unwrap().push(phase)));
        assert_eq!(bad.fallbacks(), 1);
        bad.ask(&[], &Stream::new(1, 21)).unwrap();
        assert_eq!(bad.fallbacks(), 2);
        let phases = phases.lock().unwrap();
        assert_eq!(phases[phases.len() - 2..], [Phase::Fallback, Phase::Done]);
    }

    #[test]
    fn categories_have_no_order_in_the_default_and_one_in_the_paper() {
        let choices = ["a", "b", "c"];
        let parameters = vec![crate::space::Parameter::categorical("c", choices)];
        let space = Space::new(parameters).unwrap();
        let metric = |settings| {
            AdditiveGpUcb::new(space.clone(), settings).unwrap().model.prior.kernel.metrics[0]
        };
        assert_eq!(metric(AdditiveGpUcbSettings::default()), Metric::Categorical);
        assert_eq!(metric(AdditiveGpUcbSettings::paper()), Metric::Numeric);
    }

    fn path(dimension: usize, scale: f64) -> AdditivePrior {
        let edge = |i: usize| crate::graph::Edge::new(i - 1, i).unwrap();
        AdditivePrior {
            components: (1..dimension).map(|i| Component::pair(edge(i))).collect(),
            kernel: Kernel::uniform(KernelFamily::Rbf, dimension, 0.2, scale),
            noise_std: 0.15,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        }
    }

    #[test]
    fn what_is_given_is_not_learned() {
        // A scale below the bounds of kernel learning, which must not move it.
        let truth = path(3, 0.05);
        let settings = AdditiveGpUcbSettings::oracle(Some(truth.clone()));
        let eager = AdditiveGpUcbSettings { learning: Learning::Every(1), ..settings.clone() };
        for (settings, want) in [(settings, [10, 14, 20]), (eager, [10, 14, 20])] {
            let at = [10, 14, 20].map(|n| {
                let optimizer = asked(settings.clone(), n, |t| (t as f64).sin());
                let model = optimizer.model().cloned().unwrap();
                assert_eq!(model.prior, truth);
                assert_eq!(model.graph, Graph::from_components(3, &truth.components).unwrap());
                assert_eq!(model.outputs, OutputMap::identity());
                assert!(model.edge_frequencies.is_empty());
                // Its likelihood is that of the observations, noise and all.
                let data = optimizer.data();
                let posterior = truth.condition(data).unwrap();
                assert_eq!(model.log_likelihood, posterior.log_likelihood());
                assert!(optimizer.evaluations() > 0);
                model.observations
            });
            assert_eq!(at, want);
        }
        let phases = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&phases);
        let settings = AdditiveGpUcbSettings::oracle(Some(truth));
        let mut optimizer = asked(settings, 14, |t| t as f64)
            .with_observer(Arc::new(move |phase| seen.lock().unwrap().push(phase)));
        for trial in 15..18 {
            let point = optimizer.ask(&[], &Stream::new(1, trial)).unwrap();
            optimizer.tell(point, 0.5).unwrap();
        }
        let phases = phases.lock().unwrap();
        assert_eq!(phases.len(), 9);
        assert!(
            phases.iter().all(|p| *p != Phase::StructureLearning && *p != Phase::KernelLearning)
        );
    }

    #[test]
    fn a_graph_beyond_all_tables_falls_back_on_random_points() {
        let space = Space::unit_cube(20).unwrap();
        let none = GraphLearning { max_table: None, ..GraphLearning::default() };
        let settings = AdditiveGpUcbSettings {
            structure: Structure::Graph(none),
            ..AdditiveGpUcbSettings::overlap()
        };
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
        for trial in 0..16 {
            let point = space.sample(&mut Stream::new(3, trial).generator(Purpose::Problem));
            optimizer.tell(point, trial as f64).unwrap();
        }
        // One component of all 20 variables, with tables of 4²⁰.
        let whole = Component::new((0..20).collect()).unwrap();
        let graph = Graph::from_components(20, std::slice::from_ref(&whole)).unwrap();
        let prior = AdditivePrior { components: vec![whole], ..optimizer.initial.clone() };
        let model = Model { graph, prior, observations: 16, ..optimizer.model.clone() };
        optimizer.resume(model).unwrap();
        let point = optimizer.ask(&[], &Stream::new(3, 16)).unwrap();
        space.check(&point).unwrap();
        assert_eq!((optimizer.fallbacks(), optimizer.evaluations()), (1, 0));
    }

    #[test]
    fn graphs_beyond_the_cap_are_refused_and_counted() {
        let settings = |max_table: Option<u64>| AdditiveGpUcbSettings {
            structure: Structure::Graph(GraphLearning { max_table, ..GraphLearning::default() }),
            ..AdditiveGpUcbSettings::overlap()
        };
        for (max_table, pairs_only) in [(None, false), (Some(16), true)] {
            let optimizer = asked(settings(max_table), 20, |t| (t as f64).sin());
            assert_eq!(optimizer.refused() > 0, pairs_only);
            assert_eq!(optimizer.fallbacks(), 0);
            let model = optimizer.model().unwrap();
            assert!(!pairs_only || model.graph.is_forest());
        }
    }

    #[test]
    fn random_forests_are_new_for_every_observation() {
        let space = Space::unit_cube(12).unwrap();
        let mut optimizer =
            AdditiveGpUcb::new(space, AdditiveGpUcbSettings::random_trees()).unwrap();
        let mut graphs = Vec::new();
        for trial in 0..20 {
            let point = optimizer.ask(&[], &Stream::new(1, trial)).unwrap();
            if let Some(model) = optimizer.model() {
                assert_eq!((model.graph.edge_count(), model.observations), (2, trial as usize));
                graphs.push(model.graph.clone());
            }
            // Another worker that asks before anything was told has the same model.
            if trial >= 10 {
                optimizer.ask(std::slice::from_ref(&point), &Stream::new(1, 100 + trial)).unwrap();
                assert_eq!(optimizer.model().map(|m| &m.graph), graphs.last());
            }
            let outcome = point.0[0] * point.0[1];
            optimizer.tell(point, outcome).unwrap();
        }
        assert_eq!(graphs.len(), 10);
        graphs.sort();
        graphs.dedup();
        // Of C(66, 2) forests of two edges ten are seldom all different, but mostly.
        assert!(graphs.len() >= 9, "{}", graphs.len());
    }

    /// The best part of the space cannot be evaluated. Without an outcome there, it must lose its appeal all the same.
    #[test]
    fn a_region_where_everything_fails_is_left_alone() {
        let space = Space::unit_cube(2).unwrap();
        for seed in 0..4 {
            let mut optimizer =
                AdditiveGpUcb::new(space.clone(), AdditiveGpUcbSettings::default()).unwrap();
            let mut failures = 0;
            for trial in 0..50 {
                let point = optimizer.ask(&[], &Stream::new(seed, trial)).unwrap();
                if point.0[0] > 0.8 {
                    failures += 1;
                    optimizer.fail(point).unwrap();
                } else {
                    let outcome = 10.0 * point.0[0] - point.0[1];
                    optimizer.tell(point, outcome).unwrap();
                }
            }
            let best = optimizer.data().outcomes().iter().copied().fold(f64::MIN, f64::max);
            assert!(failures <= 25 && best > 7.0, "seed {seed}: {failures} failures, best {best}");
        }
    }

    /// How a function tells that a point cannot be evaluated.
    #[derive(Clone, Copy, PartialEq)]
    enum Tells {
        Failure,
        Penalty,
    }

    /// Beyond a line nothing can be evaluated, and the best of the rest is next to it.
    fn cut(optimizer: &mut AdditiveGpUcb, point: Point, tells: Tells) -> Option<f64> {
        let x = &point.0;
        let y = -(x[0] - 0.7).powi(2) - (x[1] - 0.7).powi(2);
        let y = (x[0] + x[1] < 1.2).then_some(y);
        match (y, tells) {
            (Some(y), _) => optimizer.tell(point, y).unwrap(),
            (None, Tells::Failure) => optimizer.fail(point).unwrap(),
            (None, Tells::Penalty) => optimizer.tell(point, -1e6).unwrap(),
        }
        y
    }

    fn told_of_cut(settings: AdditiveGpUcbSettings, n: u64, tells: Tells) -> AdditiveGpUcb {
        let space = Space::unit_cube(3).unwrap();
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
        for trial in 0..n {
            let point = space.sample(&mut Stream::new(5, trial).generator(Purpose::Problem));
            cut(&mut optimizer, point, tells);
        }
        optimizer
    }

    #[test]
    fn penalties_are_failures_unless_that_is_switched_off() {
        let boscage = AdditiveGpUcbSettings::boscage();
        let mut failed = told_of_cut(boscage.clone(), 30, Tells::Failure);
        let mut penalised = told_of_cut(boscage.clone(), 30, Tells::Penalty);
        assert_eq!(failed.data(), penalised.data());
        assert!(failed.data().len() > 10 && failed.data().len() < 26);
        let stream = Stream::new(5, 30);
        assert_eq!(failed.ask(&[], &stream).unwrap(), penalised.ask(&[], &stream).unwrap());
        let learned =
            |optimizer: &AdditiveGpUcb| optimizer.model().unwrap().failures.clone().unwrap();
        let (by_failure, by_penalty) = (learned(&failed), learned(&penalised));
        assert_eq!(by_failure.failures, 30 - failed.data().len());
        assert!(by_failure.success.is_some() && by_failure.penalty.is_none());
        assert_eq!(by_penalty, LearnedFailures { penalty: Some(-1e6), ..by_failure });
        assert_eq!(penalised.model().unwrap().told(), 30);
        assert!(
            penalised.model().unwrap().is_penalty(-1e6)
                && !penalised.model().unwrap().is_penalty(-1.0)
        );

        let mut off =
            told_of_cut(AdditiveGpUcbSettings { failures: false, ..boscage }, 30, Tells::Penalty);
        off.ask(&[], &stream).unwrap();
        assert_eq!((off.data().len(), off.model().unwrap().failures.as_ref()), (30, None));
    }

    #[test]
    fn what_was_taken_for_a_penalty_is_an_outcome_again_when_the_gap_fills() {
        let mut optimizer = told_of_cut(AdditiveGpUcbSettings::boscage(), 0, Tells::Failure);
        let space = optimizer.space().clone();
        let tell = |optimizer: &mut AdditiveGpUcb, y: f64| {
            let trial = optimizer.told.len() as u64;
            let point = space.sample(&mut Stream::new(5, trial).generator(Purpose::Problem));
            optimizer.tell(point, y).unwrap();
        };
        for k in 0..12 {
            tell(&mut optimizer, (1.7 * f64::from(k)).sin());
        }
        tell(&mut optimizer, -100.0);
        assert_eq!((optimizer.data().len(), optimizer.penalties.len()), (13, 0));
        tell(&mut optimizer, -101.0);
        // Both, though the first was an outcome before.
        assert_eq!((optimizer.data().len(), optimizer.penalties.len()), (12, 2));
        optimizer.ask(&[], &Stream::new(5, 14)).unwrap();
        let model = optimizer.model().cloned().unwrap();
        assert_eq!((model.observations, model.told()), (12, 14));
        assert!(!optimizer.learning_is_due());
        tell(&mut optimizer, -50.0);
        assert_eq!((optimizer.data().len(), optimizer.penalties.len()), (15, 0));
        assert_eq!(optimizer.data().outcomes()[12..], [-100.0, -101.0, -50.0]);
        assert!(optimizer.learning_is_due());
        // A model that took other outcomes for penalties is learned again after a resume, too.
        let mut resumed = told_of_cut(AdditiveGpUcbSettings::boscage(), 0, Tells::Failure);
        for a in 0..15 {
            resumed.tell(optimizer.told.point(a), optimizer.told.outcomes()[a]).unwrap();
        }
        resumed.resume(model).unwrap();
        assert!(resumed.learning_is_due());
        let stream = Stream::new(5, 15);
        assert_eq!(optimizer.ask(&[], &stream).unwrap(), resumed.ask(&[], &stream).unwrap());
        assert_eq!(optimizer.model().unwrap().told(), 15);
        assert_eq!(optimizer.model(), resumed.model());
    }

    #[test]
    fn runs_with_failures_go_on_from_stored_models_to_the_bit() {
        for tells in [Tells::Failure, Tells::Penalty] {
            let settings = AdditiveGpUcbSettings::boscage();
            let mut optimizer = told_of_cut(settings.clone(), 0, tells);
            let mut points: Vec<Point> = Vec::new();
            for trial in 0..40 {
                let stream = Stream::new(7, trial);
                let mut resumed = told_of_cut(settings.clone(), 0, tells);
                for point in &points {
                    cut(&mut resumed, point.clone(), tells);
                }
                if let Some(model) = optimizer.model() {
                    let json = serde_json::to_string(model).unwrap();
                    resumed.resume(serde_json::from_str(&json).unwrap()).unwrap();
                }
                let point = optimizer.ask(&[], &stream).unwrap();
                assert_eq!(point, resumed.ask(&[], &stream).unwrap(), "trial {trial}");
                points.push(point.clone());
                cut(&mut optimizer, point, tells);
            }
            assert_eq!(optimizer.fallbacks(), 0);
            let learned = optimizer.model().unwrap().failures.clone().unwrap();
            assert!(learned.success.is_some());

            let mut model = optimizer.model().cloned().unwrap();
            let of_another = AdditiveGpUcb::new(Space::unit_cube(2).unwrap(), settings).unwrap();
            let success = LearnedSuccess { prior: of_another.initial, probability: 1.0 };
            model.failures = Some(LearnedFailures { success: Some(success), ..learned });
            let refused = optimizer.resume(model).unwrap_err().to_string();
            assert!(refused.contains("model of failures"), "{refused}");
        }
    }

    /// With two points of ten that could be evaluated the next one is chosen, and not drawn.
    #[test]
    fn failures_are_initial_points_too() {
        for (failures, is_chosen) in [(true, true), (false, false)] {
            let settings = AdditiveGpUcbSettings { failures, ..AdditiveGpUcbSettings::boscage() };
            let phases = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&phases);
            let mut optimizer = told_of_cut(settings, 0, Tells::Failure)
                .with_observer(Arc::new(move |phase| seen.lock().unwrap().push(phase)));
            for trial in 0..10 {
                let point = optimizer.ask(&[], &Stream::new(9, trial)).unwrap();
                match trial {
                    3 | 6 => optimizer.tell(point, trial as f64).unwrap(),
                    _ => optimizer.fail(point).unwrap(),
                }
            }
            assert!(phases.lock().unwrap().is_empty());
            optimizer.ask(&[], &Stream::new(9, 10)).unwrap();
            assert_eq!(phases.lock().unwrap().contains(&Phase::Acquisition), is_chosen);
        }
    }

    #[test]
    fn where_evaluations_fail_is_found_out() {
        let (mut count, mut best) = (0, f64::NEG_INFINITY);
        for seed in 0..4 {
            let mut optimizer = told_of_cut(AdditiveGpUcbSettings::boscage(), 0, Tells::Penalty);
            for trial in 0..50 {
                let point = optimizer.ask(&[], &Stream::new(seed, trial)).unwrap();
                match cut(&mut optimizer, point, Tells::Penalty) {
                    Some(y) => best = y.max(best),
                    None => count += 1,
                }
            }
        }
        // The best of all is −0.02, at (0.6, 0.6). The line goes through it, so that some asks have to fail.
        assert!(best > -0.025, "{best}");
        // Of random points a third fail, and of those next to the line half.
        assert!(count <= 66, "{count} of 200 failed");
    }

    /// They say nothing of a place, and must not spoil what is known of it.
    #[test]
    fn failures_at_random_cost_little_more_than_their_number() {
        let best_of = |failures: bool| -> f64 {
            let settings = AdditiveGpUcbSettings { failures, ..AdditiveGpUcbSettings::boscage() };
            let regrets = (0..3).map(|seed| {
                let space = Space::unit_cube(8).unwrap();
                let mut optimizer = AdditiveGpUcb::new(space, settings.clone()).unwrap();
                let mut least = f64::INFINITY;
                for trial in 0..80 {
                    let point = optimizer.ask(&[], &Stream::new(seed, trial)).unwrap();
                    if trial * 7 % 5 < 2 {
                        optimizer.fail(point).unwrap();
                        continue;
                    }
                    let place = |d: usize| 0.2 + 0.09 * ((d as u64 * 3 + seed) % 8) as f64;
                    let x = point.0.iter().enumerate();
                    let y: f64 = x.map(|(d, x)| (x - place(d)).powi(2)).sum();
                    least = least.min(y);
                    optimizer.tell(point, -y).unwrap();
                }
                least
            });
            regrets.sum()
        };
        let (with, without) = (best_of(true), best_of(false));
        assert!(with < 0.5 * without, "{with} against {without}");
    }

    #[test]
    fn failures_need_a_learned_structure_and_the_joint_bound() {
        for settings in [
            AdditiveGpUcbSettings { failures: true, ..AdditiveGpUcbSettings::paper() },
            AdditiveGpUcbSettings {
                failures: true,
                ..AdditiveGpUcbSettings::oracle(Some(path(3, 0.5)))
            },
        ] {
            match settings.validate() {
                Err(Error::InvalidSetting { setting: "failures", .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_plain_gp_has_the_priors_of_its_source() {
        for dimension in [1, 4, 100] {
            let space = Space::unit_cube(dimension).unwrap();
            let optimizer = AdditiveGpUcb::new(space, AdditiveGpUcbSettings::gp_ucb()).unwrap();
            // The density of ℓ with log ℓ ~ N(√2 + ½ log D, √3) has its maximum where learning starts, and the density of
            // log ℓ that learning adds has its own there too.
            let location = std::f64::consts::SQRT_2 + 0.5 * (dimension as f64).ln();
            let log_density = |ell: f64| -(ell.ln() - location).powi(2) / (2.0 * 3.0) - ell.ln();
            let kernel = &optimizer.initial.kernel;
            for &ell in &kernel.lengthscales {
                assert!(log_density(ell) > log_density(ell * 1.001));
                assert!(log_density(ell) > log_density(ell / 1.001));
            }
            let prior = optimizer.settings.kernel_learning.prior.as_ref().unwrap();
            assert!((prior.lengthscales.median / kernel.lengthscales[0] - 1.0).abs() < 1e-12);
            // All of the variance of standardised outcomes, and a constant besides.
            let anywhere = Point(vec![0.3; dimension]);
            let varies = optimizer.initial.variance(&anywhere) - optimizer.initial.constant;
            assert!((varies - 1.0).abs() < 1e-12);
            assert_eq!(optimizer.initial.constant, 10.0);
            assert!((prior.scales.median / kernel.scales[0] - 1.0).abs() < 1e-12);
        }
        // The others do not grow.
        let space = Space::unit_cube(100).unwrap();
        let tree = AdditiveGpUcb::new(space, AdditiveGpUcbSettings::default()).unwrap();
        assert_eq!(tree.initial.kernel.lengthscales, vec![0.3; 100]);
        assert_eq!(tree.initial.kernel.scales, vec![0.01; 100]);
    }

    #[test]
    fn groups_keep_to_their_size_and_share_nothing() {
        for (max_group_size, limit) in [(Some(2), 2), (Some(5), 5), (None, 12)] {
            let space = Space::unit_cube(12).unwrap();
            let settings = AdditiveGpUcbSettings::no_overlap(max_group_size);
            let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
            for trial in 0..40 {
                let point = space.sample(&mut Stream::new(4, trial).generator(Purpose::Problem));
                let x = &point.0;
                let outcome = 5.0 * (3.0 * (x[0] + x[1])).sin() + 5.0 * (3.0 * (x[2] - x[3])).cos();
                optimizer.tell(point, outcome).unwrap();
            }
            optimizer.ask(&[], &Stream::new(4, 40)).unwrap();
            assert_eq!(optimizer.fallbacks(), 0);
            let groups = &optimizer.model().unwrap().prior.components;
            let mut variables: Vec<usize> =
                groups.iter().flat_map(|g| g.variables().to_vec()).collect();
            variables.sort_unstable();
            assert!(variables.into_iter().eq(0..12));
            let largest = groups.iter().map(Component::len).max().unwrap();
            assert!(largest > 1 && largest <= limit, "{groups:?}");
        }
    }
}
