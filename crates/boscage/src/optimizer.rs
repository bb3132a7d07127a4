//! What every method offers: ask for a point, tell an outcome, show and restore what was learned.
//!
//! Outcomes are maximised, and points are model coordinates in \[0, 1\]^D: names, units and minimisation belong to the layers
//! above ([`crate::space::Space`], [`crate::minimize()`]).

use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePrior;
use crate::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use crate::error::{Error, Result};
use crate::failures::LearnedFailures;
use crate::graph::{Edge, Graph};
use crate::guard::Verdict;
use crate::local_search::LearnedLocal;
use crate::methods::RandomSearch;
use crate::methods::line_bo::{Direction, LineBo, LineBoSettings};
use crate::methods::rembo::{Rembo, RemboSettings};
use crate::outputs::OutputMap;
use crate::space::{Point, Space};
use crate::stream::Stream;
use crate::structure::Structure;

/// What was learned about the objective, as plain data: enough to continue a run bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The dependency graph; a forest, for methods that learn forests; without edges, for a plain GP.
    pub graph: Graph,
    /// Components, kernel parameters Θ and noise.
    pub prior: AdditivePrior,
    /// How outcomes are scaled before the model sees them.
    pub outputs: OutputMap,
    /// Number of observations when this was learned.
    pub observations: usize,
    /// ρ of the structure with the learned parameters, on the scaled outcomes.
    pub log_likelihood: f64,
    /// For each edge seen in structure learning, the share of samples in which it was present (see
    /// [`crate::tree_learning::LearnedForest`] for what it is not).
    pub edge_frequencies: Vec<(Edge, f64)>,
    /// What comparisons with other models have found, for methods with a guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What was learned of the neighbourhood of the best point, for methods with local asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LearnedLocal>,
    /// What was learned of where evaluations fail, for methods that learn that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<LearnedFailures>,
}

impl Model {
    /// How many points had been told when this was learned, failures among them: no two models of a run have the same number.
    pub fn told(&self) -> usize {
        self.observations + self.failures.as_ref().map_or(0, |learned| learned.failures)
    }

    /// Whether an outcome (larger is better) was taken for a penalty, and told the model nothing but that the point failed.
    pub fn is_penalty(&self, outcome: f64) -> bool {
        let learned = self.failures.as_ref().and_then(|learned| learned.penalty);
        learned.is_some_and(|penalty| outcome <= penalty)
    }
}

/// A method of choosing points.
pub trait Optimizer: Send {
    /// The next point to evaluate, given the points that are being evaluated now.
    ///
    /// All randomness comes from `stream`, which belongs to one trial: the answer is a function of the settings, the
    /// outcomes told, the pending points and the stream.
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point>;

    /// Takes in the outcome of a point, whether it was asked for or not.
    fn tell(&mut self, point: Point, outcome: f64) -> Result<()>;

    /// Takes in that a point could not be evaluated. It counts as no observation; a method that learns expects nothing new
    /// there, and one that avoids repeats does not ask for it again.
    fn fail(&mut self, point: Point) -> Result<()>;

    /// What has been learned so far, if the method learns.
    fn model(&self) -> Option<&Model> {
        None
    }

    /// Continues with a model learned earlier. Tell the outcomes and failures first.
    fn resume(&mut self, _model: Model) -> Result<()> {
        Ok(())
    }

    /// How many values of φ^G all asks so far have needed: the paper's message-passing cost.
    fn evaluations(&self) -> usize {
        0
    }
}

/// A method and its settings: what a study remembers of how it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", content = "settings", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// [The default](crate::methods::boscage).
    Boscage(Box<AdditiveGpUcbSettings>),
    /// [Tree-GP-UCB](crate::methods::tree_gp_ucb).
    Tree(Box<AdditiveGpUcbSettings>),
    /// [Any graph](crate::methods::overlap).
    Overlap(Box<AdditiveGpUcbSettings>),
    /// [Disjoint groups](crate::methods::no_overlap).
    NoOverlap(Box<AdditiveGpUcbSettings>),
    /// [A random forest for every point](crate::methods::random_trees).
    RandomTrees(Box<AdditiveGpUcbSettings>),
    /// [The true structure](crate::methods::oracle).
    Oracle(Box<AdditiveGpUcbSettings>),
    /// [One GP over all variables](crate::methods::gp_ucb).
    GpUcb(Box<AdditiveGpUcbSettings>),
    /// [Lines through the best point](crate::methods::line_bo).
    Line(Box<LineBoSettings>),
    /// [Random embeddings](crate::methods::rembo).
    Rembo(Box<RemboSettings>),
    /// [`RandomSearch`].
    Random,
}

impl Default for Method {
    fn default() -> Self {
        Method::Boscage(Box::new(AdditiveGpUcbSettings::boscage()))
    }
}

/// A name of a method.
#[derive(Debug, Clone, Copy)]
pub struct NamedMethod {
    /// The name.
    pub name: &'static str,
    /// What it stands for, in a line.
    pub summary: &'static str,
    /// The method with its own default settings.
    pub method: fn() -> Method,
}

impl Method {
    /// The names that [`Method::named`] knows, each with what it stands for.
    pub const NAMES: [NamedMethod; 17] = [
        NamedMethod {
            name: "boscage",
            summary: "an additive GP of all variables and pairs, searched globally and locally",
            method: || Method::Boscage(Box::new(AdditiveGpUcbSettings::boscage())),
        },
        NamedMethod {
            name: "tree",
            summary: "Tree-GP-UCB with the default settings",
            method: || Method::Tree(Box::default()),
        },
        NamedMethod {
            name: "tree-paper",
            summary: "Tree-GP-UCB as in the paper's text",
            method: || Method::Tree(Box::new(AdditiveGpUcbSettings::paper())),
        },
        NamedMethod {
            name: "overlap",
            summary: "any dependency graph (Rolland et al. 2018)",
            method: || Method::Overlap(Box::new(AdditiveGpUcbSettings::overlap())),
        },
        NamedMethod {
            name: "no-overlap",
            summary: "disjoint groups of any size (Kandasamy et al. 2015, Wang et al. 2017)",
            method: || Method::NoOverlap(Box::new(AdditiveGpUcbSettings::no_overlap(None))),
        },
        NamedMethod {
            name: "no-overlap-5",
            summary: "disjoint groups of at most 5 variables",
            method: || Method::NoOverlap(Box::new(AdditiveGpUcbSettings::no_overlap(Some(5)))),
        },
        NamedMethod {
            name: "no-overlap-10",
            summary: "disjoint groups of at most 10 variables",
            method: || Method::NoOverlap(Box::new(AdditiveGpUcbSettings::no_overlap(Some(10)))),
        },
        NamedMethod {
            name: "random-trees",
            summary: "a new random forest for every point (Ziomek and Bou-Ammar 2023)",
            method: || Method::RandomTrees(Box::new(AdditiveGpUcbSettings::random_trees())),
        },
        NamedMethod {
            name: "oracle",
            summary: "the true structure and kernel, for problems that know them",
            method: || Method::Oracle(Box::new(AdditiveGpUcbSettings::oracle(None))),
        },
        NamedMethod {
            name: "gp-ucb",
            summary: "one GP over all variables, with a prior for many of them (Hvarfner et al. 2024)",
            method: || Method::GpUcb(Box::new(AdditiveGpUcbSettings::gp_ucb())),
        },
        NamedMethod {
            name: "gp-ucb-textbook",
            summary: "one GP over all variables, as in the textbook (Srinivas et al. 2010)",
            method: || Method::GpUcb(Box::new(AdditiveGpUcbSettings::gp_ucb_textbook())),
        },
        NamedMethod {
            name: "line-coordinate",
            summary: "lines along one parameter at a time (Kirschner et al. 2019)",
            method: || Method::Line(Box::new(LineBoSettings::new(Direction::Coordinate))),
        },
        NamedMethod {
            name: "line-random",
            summary: "lines in random directions (Kirschner et al. 2019)",
            method: || Method::Line(Box::new(LineBoSettings::new(Direction::Random))),
        },
        NamedMethod {
            name: "line-ascent",
            summary: "lines along an estimate of the gradient (Kirschner et al. 2019)",
            method: || Method::Line(Box::new(LineBoSettings::new(Direction::Ascent))),
        },
        NamedMethod {
            name: "rembo",
            summary: "a random embedding of few variables (Wang et al. 2013)",
            method: || Method::Rembo(Box::default()),
        },
        NamedMethod {
            name: "rembo-interleaved",
            summary: "four random embeddings in turn (Wang et al. 2013)",
            method: || Method::Rembo(Box::new(RemboSettings::interleaved())),
        },
        NamedMethod { name: "random", summary: "uniform random points", method: || Method::Random },
    ];

    /// The method of this name, with its own default settings.
    pub fn named(name: &str) -> Result<Self> {
        match Self::NAMES.iter().find(|known| known.name == name) {
            Some(known) => Ok((known.method)()),
            None => Err(Error::UnknownMethod { name: name.to_string() }),
        }
    }

    /// A new run of the method in this space.
    pub fn build(&self, space: Space) -> Result<Box<dyn Optimizer>> {
        match self {
            Method::Boscage(settings)
            | Method::Tree(settings)
            | Method::Overlap(settings)
            | Method::NoOverlap(settings)
            | Method::RandomTrees(settings)
            | Method::Oracle(settings)
            | Method::GpUcb(settings) => {
                self.check_structure(&settings.structure)?;
                Ok(Box::new(AdditiveGpUcb::new(space, (**settings).clone())?))
            }
            Method::Line(settings) => Ok(Box::new(LineBo::new(space, (**settings).clone())?)),
            Method::Rembo(settings) => Ok(Box::new(Rembo::new(space, (**settings).clone())?)),
            Method::Random => Ok(Box::new(RandomSearch::new(space))),
        }
    }

    /// A method's name says what its structure is.
    fn check_structure(&self, structure: &Structure) -> Result<()> {
        let fits = matches!(
            (self, structure),
            (Method::Boscage(_), Structure::Pairs)
                | (Method::Tree(_), Structure::Tree(_))
                | (Method::Overlap(_), Structure::Graph(_))
                | (Method::NoOverlap(_), Structure::Partition(_))
                | (Method::RandomTrees(_), Structure::RandomForest(_))
                | (Method::Oracle(_), Structure::Given(_))
                | (Method::GpUcb(_), Structure::Whole)
        );
        if fits {
            return Ok(());
        }
        Err(Error::InvalidSetting {
            setting: "structure",
            value: structure.name().to_string(),
            reason: "it belongs to another method; choose that method by its name",
        })
    }
}
