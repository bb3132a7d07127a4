//! Tree-GP-UCB.
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::acquisition::{Ucb, beta};
use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset, StructureScore};
use crate::error::{Error, Result};
use crate::graph::Forest;
use crate::kernel::{Kernel, KernelFamily, Metric};
use crate::kernel_learning::{KernelLearning, KernelPrior, PooledPrior, kernel_learning};
use crate::message_passing::{Maximum, Zoom, msg_passing_capped, msg_passing_continuous};
use crate::optimizer::{Model, Optimizer};
use crate::outputs::{OutputMap, OutputRule};
use crate::space::{Point, Space};
use crate::stream::{Purpose, Stream};
use crate::tree_learning::{TreeLearning, tree_learning};

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeGpUcbSettings {
    /// N_init.
    pub initial_points: usize,
    /// C.
    pub learning_interval: usize,
    /// Structure.
    pub tree_learning: TreeLearning,
    /// Kernel.
    pub kernel_learning: KernelLearning,
    /// Family.
    pub family: KernelFamily,
    /// Initial ℓ.
    pub lengthscale: f64,
    /// Initial σ.
    pub scale: f64,
    /// η.
    pub noise_std: f64,
    /// R, L.
    pub zoom: Zoom,
    /// Cap.
    pub max_evaluations: Option<usize>,
    /// Outputs.
    pub outputs: OutputRule,
}

impl Default for TreeGpUcbSettings {
    fn default() -> Self {
        let mut s = Self::paper();
        s.outputs = OutputRule::Standardised;
        s.kernel_learning = KernelLearning {
            budget: crate::kernel_learning::Budget::Fixed(50),
            lengthscale_bounds: [0.01, 100.0],
            scale_bounds: [1e-4, 100.0],
            noise_std_bounds: Some([1e-3, 1.0]),
            prior: Some(KernelPrior {
                lengthscales: PooledPrior { median: 0.5, common_log_std: 0.5, log_std: 0.5 },
                scales: PooledPrior { median: 0.05, common_log_std: 2.0, log_std: 1.0 },
                noise_std: PooledPrior { median: 0.1, common_log_std: 1.0, log_std: 0.1 },
            }),
        };
        s
    }
}

impl TreeGpUcbSettings {
    /// Paper.
    pub fn paper() -> Self {
        Self {
            initial_points: 10,
            learning_interval: 15,
            tree_learning: TreeLearning::default(),
            kernel_learning: KernelLearning::default(),
            family: KernelFamily::Rbf,
            lengthscale: 0.1,
            scale: 0.5,
            noise_std: 0.1,
            zoom: Zoom::default(),
            max_evaluations: Some(1000),
            outputs: OutputRule::Raw,
        }
    }
}

/// The method.
#[derive(Debug, Clone)]
pub struct TreeGpUcb {
    space: Space,
    settings: TreeGpUcbSettings,
    data: Dataset,
    seen: HashSet<Vec<u64>>,
    model: Model,
    posterior: Option<AdditivePosterior>,
    evaluations: usize,
}

impl TreeGpUcb {
    /// New.
    pub fn new(space: Space, settings: TreeGpUcbSettings) -> Result<Self> {
        let dimension = space.dimension();
        let mut kernel =
            Kernel::uniform(settings.family, dimension, settings.lengthscale, settings.scale);
        for d in 0..dimension {
            if settings.outputs == OutputRule::Standardised && space.is_categorical(d) {
                kernel.metrics[d] = Metric::Categorical;
            }
        }
        let forest = Forest::empty(dimension);
        let model = Model {
            prior: AdditivePrior {
                components: forest.components(),
                kernel,
                noise_std: settings.noise_std,
            },
            forest,
            outputs: OutputMap::identity(),
            observations: 0,
            log_likelihood: f64::NAN,
            edge_frequencies: Vec::new(),
        };
        Ok(Self {
            data: Dataset::empty(dimension),
            seen: HashSet::new(),
            space,
            settings,
            model,
            posterior: None,
            evaluations: 0,
        })
    }

    fn learn(&mut self, stream: &Stream) -> Result<()> {
        let n = self.data.len();
        let outputs = OutputMap::fit(self.settings.outputs, self.data.outcomes());
        let y = self.data.outcomes().iter().map(|&y| outputs.apply(y)).collect();
        let data = self.data.with_outcomes(n, y);
        let kernel = self.model.prior.kernel.clone();
        let mut score = StructureScore::new(&kernel, self.model.prior.noise_std, &data)?;
        let learned = tree_learning(
            &self.model.forest,
            |forest| Ok(score.log_likelihood(forest.components()).unwrap_or(f64::NEG_INFINITY)),
            &self.settings.tree_learning,
            &mut stream.generator(Purpose::Structure),
        )?;
        let start = AdditivePrior {
            components: learned.forest.components(),
            kernel: kernel.clone(),
            noise_std: self.model.prior.noise_std,
        };
        let result = kernel_learning(&start, &data, &self.settings.kernel_learning)?;
        self.model = Model {
            forest: learned.forest,
            prior: result.prior,
            outputs,
            observations: n,
            log_likelihood: learned.log_likelihood,
            edge_frequencies: learned.edge_frequencies,
        };
        self.posterior = None;
        Ok(())
    }

    fn refresh(&mut self) -> Result<&AdditivePosterior> {
        let y: Vec<f64> = self.data.outcomes().iter().map(|&y| self.model.outputs.apply(y)).collect();
        let mut posterior = match self.posterior.take() {
            Some(p) => p,
            None => {
                let n = self.model.observations;
                self.model.prior.condition(&self.data.with_outcomes(n, y[..n].to_vec()))?
            }
        };
        for a in posterior.len()..self.data.len() {
            posterior.append(&self.data.point(a), y[a])?;
        }
        Ok(self.posterior.insert(posterior))
    }
}

impl Optimizer for TreeGpUcb {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        let n = self.data.len();
        if n + pending.len() < self.settings.initial_points || n == 0 {
            return Ok(self.space.sample(&mut stream.generator(Purpose::Initial)));
        }
        let c = self.settings.learning_interval;
        if (n + 1) / c > (self.model.observations + 1) / c {
            self.learn(stream)?;
        }
        let zoom = self.settings.zoom;
        let cap = self.settings.max_evaluations;
        let space = self.space.clone();
        let posterior = self.refresh()?;
        let ucb = Ucb { posterior, beta: beta(n) };
        let mut rng = stream.generator(Purpose::Zoom);
        let maximum = match (space.size(), cap) {
            (Some(_), Some(cap)) => msg_passing_capped(&ucb, &space, cap, &mut rng)?,
            _ => msg_passing_continuous(&ucb, &space, zoom, &mut rng)?,
        };
        self.evaluations += maximum.evaluations;
        Ok(maximum.point)
    }

    fn tell(&mut self, point: Point, outcome: f64) -> Result<()> {
        self.space.check(&point)?;
        self.data.push(&point, outcome)?;
        Ok(())
    }

    fn model(&self) -> Option<&Model> {
        Some(&self.model)
    }

    fn evaluations(&self) -> usize {
        self.evaluations
    }
}
