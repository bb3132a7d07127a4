//! An optimization in memory: ask for trials, tell what came out, save the state as data.
//!
//! It is a study without a store, for programs that keep their own records (a Python loop, a sampler of another tool). The
//! same definition and the same outcomes give the same points as a [`crate::Study`].

use std::collections::BTreeMap;

use boscage::stream::Purpose;
use boscage::{Model, Optimizer, Point, Stream};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::parameters::{StudySpace, Values};
use crate::trial::{State, Trial};
use crate::view::StudyView;

/// How many forbidden points of the optimizer are replaced before points are drawn at random.
const FORBIDDEN_ASKS: usize = 8;
/// How many points are drawn at random before the space counts as forbidden altogether.
const FORBIDDEN_DRAWS: u64 = 100_000;

/// Values for a trial: those of `fixed`, and the optimizer's for the others.
///
/// `pending` are the points that are being evaluated. Randomness comes from the stream of the trial alone.
pub(crate) fn propose(
    space: &StudySpace,
    optimizer: &mut dyn Optimizer,
    fixed: &Values,
    mut pending: Vec<Point>,
    stream: &Stream,
) -> Result<Values> {
    let mut whole = fixed.clone();
    space.drop_inactive(&mut whole);
    if space.encode(&whole).is_ok() {
        return Ok(whole);
    }
    let complete = |point: &Point| -> Result<Values> {
        let mut values = space.engine_values(point)?;
        for (value, fixed) in values.iter_mut().zip(fixed) {
            if fixed.is_some() {
                value.clone_from(fixed);
            }
        }
        space.drop_inactive(&mut values);
        Ok(values)
    };
    for _ in 0..FORBIDDEN_ASKS {
        let point = optimizer.ask(&pending, stream)?;
        let values = complete(&point)?;
        if space.forbidden_by(&values).is_none() {
            return Ok(values);
        }
        // Expecting nothing new there, the optimizer goes elsewhere.
        pending.push(point);
    }
    let mut generator = stream.generator(Purpose::Repeat);
    for _ in 0..FORBIDDEN_DRAWS {
        let values = complete(&space.engine().sample(&mut generator))?;
        if space.forbidden_by(&values).is_none() {
            return Ok(values);
        }
    }
    Err(Error::Study {
        reason: format!(
            "{FORBIDDEN_DRAWS} points in a row were forbidden; the conditions in `forbidden` leave (almost) nothing"
        ),
    })
}

/// One trial, as it is saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTrial {
    number: u64,
    /// In the order of the space.
    values: Values,
    /// None as long as nothing was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<SavedOutcome>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedOutcome {
    Value(f64),
    Failed(String),
}

/// All that an optimization is, as data.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    definition: Definition,
    trials: Vec<SavedTrial>,
    /// The order in which outcomes were told.
    told: Vec<u64>,
    model: Option<Model>,
}

/// An optimization in memory.
pub struct Optimization {
    definition: Definition,
    optimizer: Box<dyn Optimizer>,
    trials: Vec<SavedTrial>,
    told: Vec<u64>,
    /// The points of trials that were asked for and not told.
    pending: BTreeMap<u64, Point>,
    /// Start points that were not asked for yet.
    queue: Vec<Values>,
}

impl Optimization {
    /// Begins one. The defaults and start points of the definition come first.
    pub fn new(definition: Definition) -> Result<Self> {
        definition.validate()?;
        let optimizer = definition.method.build(definition.space.engine().clone())?;
        let mut queue = definition.start_points()?;
        queue.reverse();
        Ok(Self {
            definition,
            optimizer,
            trials: Vec::new(),
            told: Vec::new(),
            pending: BTreeMap::new(),
            queue,
        })
    }

    /// What it is.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What was learned.
    pub fn model(&self) -> Option<&Model> {
        self.optimizer.model()
    }

    /// The number of trials.
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    /// Whether nothing was asked or told yet.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// Puts values, perhaps only some, before whatever the method would choose.
    pub fn enqueue(&mut self, values: Values) -> Result<()> {
        if let Some(forbidden) = self.definition.space.forbidden_by(&values) {
            return Err(Error::Values {
                reason: format!("the values are forbidden by `{}`", forbidden.text()),
            });
        }
        self.queue.insert(0, values);
        Ok(())
    }

    /// The next trial: its number and its values.
    pub fn ask(&mut self) -> Result<(u64, Values)> {
        self.ask_as(self.trials.len() as u64)
    }

    /// The next trial, with the randomness of the trial that has the number `stream` where the records are kept.
    ///
    /// For samplers of other tools: there, trials have numbers of their own, and several processes may ask.
    pub fn ask_as(&mut self, stream: u64) -> Result<(u64, Values)> {
        let number = self.trials.len() as u64;
        let fixed = self
            .queue
            .last()
            .cloned()
            .unwrap_or_else(|| vec![None; self.definition.space.dimension()]);
        let pending = self.pending.values().cloned().collect();
        let stream = Stream::new(self.definition.seed, stream);
        let values =
            propose(&self.definition.space, self.optimizer.as_mut(), &fixed, pending, &stream)?;
        self.queue.pop();
        self.pending.insert(number, self.definition.space.encode(&values)?);
        self.trials.push(SavedTrial { number, values: values.clone(), outcome: None });
        Ok((number, values))
    }

    /// The trial that is open with these values, the oldest of several.
    pub fn open_trial(&self, values: &Values) -> Result<Option<u64>> {
        let point = self.definition.space.encode(values)?;
        Ok(self.pending.iter().find(|(_, known)| **known == point).map(|(&number, _)| number))
    }

    /// Adds a trial that nobody asked for, to be told.
    pub fn add(&mut self, values: Values) -> Result<u64> {
        let number = self.trials.len() as u64;
        let mut values = values;
        self.definition.space.drop_inactive(&mut values);
        let point = self.definition.space.encode(&values)?;
        self.pending.insert(number, point);
        self.trials.push(SavedTrial { number, values, outcome: None });
        Ok(number)
    }

    /// Ends a trial with a value; one that is not finite is a failure.
    pub fn tell(&mut self, number: u64, value: f64) -> Result<()> {
        if value.is_finite() {
            self.end(number, SavedOutcome::Value(value))
        } else {
            self.end(number, SavedOutcome::Failed(format!("the value is {value}")))
        }
    }

    /// Ends a trial without a value.
    pub fn fail(&mut self, number: u64, reason: &str) -> Result<()> {
        self.end(number, SavedOutcome::Failed(reason.to_string()))
    }

    fn end(&mut self, number: u64, outcome: SavedOutcome) -> Result<()> {
        let refused = |reason: String| Err(Error::Study { reason });
        let Some(trial) = self.trials.get(number as usize) else {
            return refused(format!("there is no trial {number}; there are {}", self.trials.len()));
        };
        match &trial.outcome {
            Some(known) if *known == outcome => return Ok(()),
            Some(SavedOutcome::Value(value)) => {
                return refused(format!(
                    "trial {number} has the value {value:?}; it cannot be told anything else"
                ));
            }
            Some(SavedOutcome::Failed(reason)) => {
                return refused(format!(
                    "trial {number} failed ({reason}); it cannot be told anything else"
                ));
            }
            None => {}
        }
        let point = match self.pending.get(&number) {
            Some(point) => point.clone(),
            None => self.definition.space.encode(&trial.values)?,
        };
        match &outcome {
            SavedOutcome::Value(value) => {
                self.optimizer.tell(point, self.definition.goal.sign() * value)?
            }
            SavedOutcome::Failed(_) => self.optimizer.fail(point)?,
        }
        self.pending.remove(&number);
        self.told.push(number);
        if let Some(trial) = self.trials.get_mut(number as usize) {
            trial.outcome = Some(outcome);
        }
        Ok(())
    }

    /// Forgets a trial that is open: its point may be asked for again.
    pub fn forget(&mut self, number: u64) {
        self.pending.remove(&number);
    }

    /// Everything, as JSON.
    pub fn save(&self) -> Result<String> {
        let saved = Saved {
            definition: self.definition.clone(),
            trials: self.trials.clone(),
            told: self.told.clone(),
            model: self.optimizer.model().cloned(),
        };
        serde_json::to_string(&saved).map_err(|error| Error::Study { reason: error.to_string() })
    }

    /// Goes on from what [`Optimization::save`] gave, with the same points to the last bit.
    pub fn load(json: &str) -> Result<Self> {
        let refused =
            |reason: String| Error::Study { reason: format!("the saved state: {reason}") };
        let saved: Saved =
            serde_json::from_str(json).map_err(|error| refused(error.to_string()))?;
        let mut loaded = Self::new(saved.definition)?;
        let asked = saved.trials.len();
        let keep = loaded.queue.len().saturating_sub(asked);
        loaded.queue.truncate(keep);
        for (place, trial) in saved.trials.iter().enumerate() {
            if trial.number != place as u64 {
                return Err(refused(format!("trial {} is in place {place}", trial.number)));
            }
            loaded.add(trial.values.clone())?;
        }
        for number in saved.told {
            let outcome = saved.trials.get(number as usize).and_then(|trial| trial.outcome.clone());
            loaded.end(
                number,
                outcome.ok_or_else(|| refused(format!("trial {number} has no outcome")))?,
            )?;
        }
        if let Some(model) = saved.model {
            loaded.optimizer.resume(model)?;
        }
        Ok(loaded)
    }

    /// The optimization as a study would be shown.
    pub fn view(&self) -> StudyView {
        let trials = self.trials.iter().map(|trial| {
            let (state, value, failure) = match &trial.outcome {
                None => (State::Running, None, None),
                Some(SavedOutcome::Value(value)) => (State::Complete, Some(*value), None),
                Some(SavedOutcome::Failed(reason)) => (State::Failed, None, Some(reason.clone())),
            };
            Trial {
                number: trial.number,
                state,
                value,
                values: Some(trial.values.clone()),
                failure,
                infeasible: false,
                began: None,
                ended: None,
                seconds: None,
                attributes: serde_json::Map::new(),
            }
        });
        StudyView {
            name: "optimization".to_string(),
            storage: "memory".to_string(),
            goal: self.definition.goal,
            space: self.definition.space.clone(),
            method: self.definition.method.clone(),
            seed: self.definition.seed,
            trials: trials.collect(),
            model: self.optimizer.model().cloned(),
        }
    }
}
