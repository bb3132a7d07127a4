//! Tree-GP-UCB: the paper's method, and the default settings built on it.
//!
//! Paper: Algorithm 1. Each ask learns the forest and Θ if that is due, conditions the additive GP on all observations
//! and on the pending points, and maximises the acquisition function by message passing.
//!
//! Notation: N_init `initial_points`, C `learning`, S and γ in `tree_learning`, R and L in `zoom`, η `noise_std`,
//! ℓ_i `lengthscale` and σ_i `scale` to begin with; t is the number of the observation that is being chosen.
//!
//! Two presets: [`TreeGpUcbSettings::paper`] follows the text with its constants; [`TreeGpUcbSettings::default`] is the same
//! model and search with what users need. `docs/paper-map.md` lists the differences and what each is worth.
//!
//! Cost of an ask with n observations: n²/2 multiply-adds to append and for each of the (D − 1)·R² values of φ^G at each of L levels; a
//! learning step adds S Cholesky factorisations and as many gradients of ρ as the budget of kernel learning says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::acquisition::{Ucb, beta};
use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset, StructureScore};
use crate::error::{Error, Result};
use crate::graph::Forest;
use crate::joint_ucb::maximize_joint_ucb;
use crate::kernel::{Kernel, KernelFamily, Metric};
use crate::kernel_learning::{KernelLearning, kernel_learning};
use crate::message_passing::{Maximum, Zoom, msg_passing_capped, msg_passing_continuous};
use crate::optimizer::{Model, Optimizer};
use crate::outputs::{OutputMap, OutputRule};
use crate::repeats::{RepeatRule, Seen};
use crate::space::{Point, Space};
use crate::stream::{Purpose, Stream};
use crate::tree_learning::{TreeLearning, tree_learning};

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
#[serde(rename_all = "lowercase")]
pub enum Acquisition {
    /// Σ_G (μ^G + √β_t σ^G), exactly on the grid, as in the paper.
    Additive,
    /// μ + κσ of the whole sum, with this κ, climbed from the maxima that message passing finds.
    Joint(f64),
}

/// Settings of [`TreeGpUcb`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TreeGpUcbSettings {
    /// N_init: uniform random points before the model is used.
    pub initial_points: usize,
    /// When structure and parameters are learned.
    pub learning: Learning,
    /// How the forest is learned.
    pub tree_learning: TreeLearning,
    /// How Θ and the noise are learned. The median of the prior on scales counts in multiples of `scale`.
    pub kernel_learning: KernelLearning,
    /// Where it starts from.
    pub kernel_start: KernelStart,
    /// The shape of the kernel.
    pub family: KernelFamily,
    /// How categorical parameters measure differences.
    pub categorical: Metric,
    /// ℓ_i to begin with, as a share of each parameter's range.
    pub lengthscale: f64,
    /// σ_i to begin with; none for 1/D, which spreads the variance of standardised outcomes over the variables.
    pub scale: Option<f64>,
    /// η to begin with, in units of what the model sees (see `outputs`).
    pub noise_std: f64,
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
}

impl Default for TreeGpUcbSettings {
    fn default() -> Self {
        Self {
            initial_points: 10,
            learning: Learning::Growth(0.1),
            tree_learning: TreeLearning::default(),
            kernel_learning: KernelLearning::default(),
            kernel_start: KernelStart::PresentAndInitial,
            family: KernelFamily::Rbf,
            categorical: Metric::Categorical,
            lengthscale: 0.3,
            scale: None,
            noise_std: 0.1,
            acquisition: Acquisition::Joint(2.0),
            zoom: Zoom::default(),
            max_evaluations: None,
            outputs: OutputRule::Standardised,
            repeats: RepeatRule::Avoid,
        }
    }
}

impl TreeGpUcbSettings {
    /// The paper's algorithms with its constants; `docs/paper-map.md` lists every departure from the text.
    pub fn paper() -> Self {
        Self {
            initial_points: 10,
            learning: Learning::Every(15),
            tree_learning: TreeLearning::paper(),
            kernel_learning: KernelLearning::paper(),
            kernel_start: KernelStart::Present,
            family: KernelFamily::Rbf,
            categorical: Metric::Numeric,
            lengthscale: 0.1,
            scale: Some(0.5),
            noise_std: 0.1,
            acquisition: Acquisition::Additive,
            zoom: Zoom::default(),
            max_evaluations: Some(1000),
            outputs: OutputRule::Raw,
            repeats: RepeatRule::Allow,
        }
    }

    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.tree_learning.validate()?;
        self.kernel_learning.validate()?;
        self.zoom.validate()?;
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
    /// TREE-LEARNING.
    TreeLearning,
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

/// Tree-GP-UCB, Algorithm 1, one ask at a time.
#[derive(Clone)]
pub struct TreeGpUcb {
    space: Space,
    settings: TreeGpUcbSettings,
    data: Dataset,
    /// Points that could not be evaluated: conditioned on like pending ones, or they would be the maximum again.
    failed: Vec<Point>,
    seen: Seen,
    /// The initial parameters, with the empty forest.
    initial: AdditivePrior,
    /// What was learned last; before that, the initial parameters with `observations` 0.
    model: Model,
    /// The model conditioned on its first `model.observations` observations at once and on later ones row by row, so
    /// that a resumed run has the same bits.
    posterior: Option<AdditivePosterior>,
    evaluations: usize,
    fallbacks: usize,
    observer: Option<Observer>,
}

impl std::fmt::Debug for TreeGpUcb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeGpUcb")
            .field("settings", &self.settings)
            .field("observations", &self.data.len())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl TreeGpUcb {
    /// A new run in this space.
    pub fn new(space: Space, mut settings: TreeGpUcbSettings) -> Result<Self> {
        settings.validate()?;
        let dimension = space.dimension();
        let scale = settings.scale.unwrap_or(1.0 / dimension as f64);
        if let Some(prior) = &mut settings.kernel_learning.prior {
            prior.scales.median *= scale;
        }
        let mut kernel = Kernel::uniform(settings.family, dimension, settings.lengthscale, scale);
        for d in (0..dimension).filter(|&d| space.is_categorical(d)) {
            kernel.metrics[d] = settings.categorical;
        }
        let forest = Forest::empty(dimension);
        let components = forest.components();
        let initial = AdditivePrior { components, kernel, noise_std: settings.noise_std };
        let model = Model {
            forest,
            prior: initial.clone(),
            outputs: OutputMap::identity(),
            observations: 0,
            log_likelihood: 0.0,
            edge_frequencies: Vec::new(),
        };
        Ok(Self {
            data: Dataset::empty(dimension),
            failed: Vec::new(),
            seen: Seen::default(),
            space,
            settings,
            initial,
            model,
            posterior: None,
            evaluations: 0,
            fallbacks: 0,
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

    /// The observations so far.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// The posterior of the present model given all observations; predictions are on the model's scale of outcomes
    /// (`model.outputs` maps them back).
    pub fn posterior(&mut self) -> Result<&AdditivePosterior> {
        let y = self.model_outcomes();
        let mut posterior = match self.posterior.take() {
            Some(posterior) => posterior,
            None => {
                let n = self.model.observations;
                self.model.prior.condition(&self.data.with_outcomes(n, y[..n].to_vec()))?
            }
        };
        for (a, &y) in y.iter().enumerate().skip(posterior.len()) {
            posterior.append(&self.data.point(a), y)?;
        }
        Ok(self.posterior.insert(posterior))
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
        let (n, learned) = (self.data.len(), self.model.observations);
        // Without a first learning there is no scale to standardise outcomes with.
        if learned == 0 && self.settings.outputs == OutputRule::Standardised {
            return true;
        }
        match self.settings.learning {
            Learning::Every(interval) => (n + 1) / interval > (learned + 1) / interval,
            Learning::Growth(share) => n > learned && n as f64 >= learned as f64 * (1.0 + share),
        }
    }

    /// Alg. 1, line 4, and Θ after it: a new model from all observations.
    fn learn(&mut self, stream: &Stream) -> Result<()> {
        let n = self.data.len();
        let outputs = OutputMap::fit(self.settings.outputs, self.data.outcomes());
        let y = self.data.outcomes().iter().map(|&y| outputs.apply(y)).collect();
        let data = self.data.with_outcomes(n, y);
        let AdditivePrior { kernel, noise_std, .. } = self.model.prior.clone();

        self.observe(Phase::TreeLearning);
        let mut score = StructureScore::new(&kernel, noise_std, &data)?;
        let learned = tree_learning(
            &self.model.forest,
            // A structure whose likelihood cannot be computed is never chosen over one whose can.
            |forest| Ok(score.log_likelihood(forest.components()).unwrap_or(f64::NEG_INFINITY)),
            &self.settings.tree_learning,
            &mut stream.generator(Purpose::Structure),
        )?;

        self.observe(Phase::KernelLearning);
        let components = learned.forest.components();
        let start = AdditivePrior { components, kernel, noise_std };
        let mut learned_kernel = kernel_learning(&start, &data, &self.settings.kernel_learning)?;
        if self.settings.kernel_start == KernelStart::PresentAndInitial {
            let mut initial = self.initial.clone();
            initial.components.clone_from(&start.components);
            let other = kernel_learning(&initial, &data, &self.settings.kernel_learning)?;
            if other.objective > learned_kernel.objective {
                learned_kernel = other;
            }
        }
        let prior = learned_kernel.prior;
        let posterior = prior.condition(&data)?;
        self.model = Model {
            forest: learned.forest,
            prior,
            outputs,
            observations: n,
            log_likelihood: finite_or_lowest(posterior.log_likelihood()),
            edge_frequencies: learned.edge_frequencies,
        };
        self.posterior = Some(posterior);
        Ok(())
    }

    /// Alg. 1, lines 3 to 6.
    fn model_based(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        if self.learning_is_due() {
            self.learn(stream)?;
        }
        self.observe(Phase::Conditioning);
        let t = self.data.len() + pending.len() + 1;
        let with_pending;
        self.posterior()?;
        let posterior = match &self.posterior {
            Some(posterior) if pending.is_empty() && self.failed.is_empty() => posterior,
            Some(posterior) => {
                with_pending = posterior.with_pending(&[&self.failed, pending].concat())?;
                &with_pending
            }
            None => return Err(Error::NotPositiveDefinite { pivot: 0 }),
        };
        self.observe(Phase::Acquisition);
        let maximum = self.maximize_acquisition(posterior, t, stream)?;
        if !maximum.value.is_finite() {
            // The numbers have overflowed, and the point is only the first of the grid.
            return Err(Error::NotPositiveDefinite { pivot: 0 });
        }
        let mut point = maximum.point;
        if self.settings.repeats == RepeatRule::Avoid {
            let kappa = match self.settings.acquisition {
                Acquisition::Additive => beta(t).sqrt(),
                Acquisition::Joint(kappa) => kappa,
            };
            let score = |points: &[Point]| {
                let joint = posterior.joint_many(points)?;
                Ok(joint.iter().map(|n| n.mean + kappa * n.variance.sqrt()).collect())
            };
            let seen = self.seen.with(pending);
            let mut rng = stream.generator(Purpose::Repeat);
            point = seen.replace(point, &self.space, score, &mut rng)?;
        }
        self.evaluations += maximum.evaluations;
        self.space.check(&point)?;
        Ok(point)
    }

    fn maximize_acquisition(
        &self,
        posterior: &AdditivePosterior,
        t: usize,
        stream: &Stream,
    ) -> Result<Maximum> {
        let (space, settings) = (&self.space, &self.settings);
        let mut rng = stream.generator(Purpose::Zoom);
        match settings.acquisition {
            Acquisition::Joint(kappa) => maximize_joint_ucb(posterior, space, kappa, &mut rng),
            Acquisition::Additive => {
                let ucb = Ucb { posterior, beta: beta(t) };
                match settings.max_evaluations {
                    Some(cap) if space.size().is_some() => {
                        msg_passing_capped(&ucb, space, cap, &mut rng)
                    }
                    _ => msg_passing_continuous(&ucb, space, settings.zoom, &mut rng),
                }
            }
        }
    }

    /// A uniform point, new if it has to be.
    fn random_point(&self, pending: &[Point], stream: &Stream) -> Result<Point> {
        let mut rng = stream.generator(Purpose::Initial);
        match self.settings.repeats {
            RepeatRule::Allow => Ok(self.space.sample(&mut rng)),
            RepeatRule::Avoid => self.seen.with(pending).any_new(&self.space, &mut rng),
        }
    }
}

impl Optimizer for TreeGpUcb {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        for point in pending {
            self.space.check(point)?;
        }
        if self.settings.repeats == RepeatRule::Avoid {
            self.seen.with(pending).check_exhausted(&self.space)?;
        }
        let n = self.data.len();
        if n == 0 || n + pending.len() < self.settings.initial_points {
            return self.random_point(pending, stream);
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
        self.data.push(&point, outcome)?;
        self.seen.insert(&point);
        Ok(())
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
        for (what, found) in [
            ("the model's forest", model.forest.dimension()),
            ("the model's kernel", model.prior.kernel.dimension()),
        ] {
            if found != dimension {
                return Err(Error::WrongDimension { what, expected: dimension, found });
            }
        }
        let outputs = &model.outputs;
        let numbers = [outputs.shift, outputs.scale, outputs.reach, model.log_likelihood];
        if !(numbers.iter().all(|number| number.is_finite()) && outputs.scale > 0.0) {
            return Err(Error::InvalidSetting {
                setting: "model.outputs",
                value: format!("{outputs:?}"),
                reason: "its numbers must be finite and its scale positive",
            });
        }
        if model.prior.components != model.forest.components() {
            return Err(Error::InvalidStructure {
                reason: "the model's components are not those of its forest".to_string(),
            });
        }
        if model.observations > self.data.len() {
            return Err(Error::InvalidSetting {
                setting: "model.observations",
                value: model.observations.to_string(),
                reason: "the model was learned from more observations than have been told",
            });
        }
        self.model = model;
        self.posterior = None;
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

    /// Tells `n` random points with these outcomes, then asks once.
    fn asked(settings: TreeGpUcbSettings, n: u64, outcome: impl Fn(u64) -> f64) -> TreeGpUcb {
        let space = Space::unit_cube(3).unwrap();
        let mut optimizer = TreeGpUcb::new(space.clone(), settings).unwrap();
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
        let learned_at = |settings: &TreeGpUcbSettings, n| {
            asked(settings.clone(), n, |t| (t as f64).sin()).model().map(|m| m.observations)
        };
        // t = n + 1 passes a multiple of 15.
        let paper = TreeGpUcbSettings::paper();
        assert_eq!([13, 14, 20].map(|n| learned_at(&paper, n)), [None, Some(14), Some(20)]);
        // Standardised outcomes need a first learning at once, whatever the interval.
        let every = TreeGpUcbSettings { learning: Learning::Every(15), ..Default::default() };
        assert_eq!(learned_at(&every, 10), Some(10));
        assert_eq!(learned_at(&TreeGpUcbSettings::default(), 10), Some(10));
    }

    #[test]
    fn growth_learns_again_after_a_tenth() {
        let mut optimizer = asked(TreeGpUcbSettings::default(), 20, |t| (t as f64).sin());
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
        let good = asked(TreeGpUcbSettings::paper(), 20, |t| t as f64);
        assert_eq!(good.fallbacks(), 0);
        let phases = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&phases);
        let mut bad =
            asked(TreeGpUcbSettings::paper(), 20, |t| if t == 3 { f64::MAX } else { 0.0 })
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
            TreeGpUcb::new(space.clone(), settings).unwrap().model.prior.kernel.metrics[0]
        };
        assert_eq!(metric(TreeGpUcbSettings::default()), Metric::Categorical);
        assert_eq!(metric(TreeGpUcbSettings::paper()), Metric::Numeric);
    }
}
