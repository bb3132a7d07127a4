//! An optimization in memory: ask for trials, tell what came out, save the state as data.
//!
//! It is a study without a store, for programs that keep their own records (a Python loop, a sampler of another tool). The
//! same definition and the same outcomes give the same points as a [`crate::Study`].

use std::collections::BTreeSet;

use boscage::{Model, Optimizer, Point, Stream};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::parameters::Values;
use crate::propose::{Tried, propose};
use crate::trial::{State, Trial};
use crate::view::StudyView;

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
    /// Nobody waits for it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    forgotten: bool,
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
    /// Points that come first, the next one last.
    queue: Vec<Values>,
    model: Option<Model>,
}

/// An optimization in memory.
pub struct Optimization {
    definition: Definition,
    optimizer: Box<dyn Optimizer>,
    trials: Vec<SavedTrial>,
    told: Vec<u64>,
    /// The point of each trial.
    points: Vec<Point>,
    /// The trials that were asked for and neither told nor forgotten.
    pending: BTreeSet<u64>,
    /// Points that come first, the next one last.
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
            points: Vec::new(),
            pending: BTreeSet::new(),
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
        let forgotten =
            |number: usize| self.trials.get(number).is_some_and(|trial| trial.forgotten);
        let known = self.points.iter().enumerate().filter(|&(number, _)| !forgotten(number));
        let tried = Tried {
            running: self
                .pending
                .iter()
                .filter_map(|&n| self.points.get(n as usize).cloned())
                .collect(),
            known: known.map(|(_, point)| point).collect(),
        };
        let stream = Stream::new(self.definition.seed, stream);
        let proposed = propose(&self.definition, self.optimizer.as_mut(), &fixed, tried, &stream);
        // What nothing can be made of is told once, and does not stand in the way for ever.
        self.queue.pop();
        let values = proposed?;
        self.begin(values.clone())?;
        Ok((number, values))
    }

    fn begin(&mut self, values: Values) -> Result<u64> {
        let number = self.trials.len() as u64;
        self.points.push(self.definition.space.encode(&values)?);
        self.pending.insert(number);
        self.trials.push(SavedTrial { number, values, outcome: None, forgotten: false });
        Ok(number)
    }

    /// The trial that is open with these values, the oldest of several.
    pub fn open_trial(&self, values: &Values) -> Result<Option<u64>> {
        let point = self.definition.space.encode(values)?;
        Ok(self.pending.iter().copied().find(|&n| self.points.get(n as usize) == Some(&point)))
    }

    /// Adds a trial that nobody asked for, to be told.
    pub fn add(&mut self, values: Values) -> Result<u64> {
        let mut values = values;
        self.definition.space.drop_inactive(&mut values);
        self.begin(values)
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
        let point = match self.points.get(number as usize) {
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
            trial.forgotten = false;
        }
        Ok(())
    }

    /// Forgets a trial that is open: its point may be asked for again.
    pub fn forget(&mut self, number: u64) {
        if self.pending.remove(&number)
            && let Some(trial) = self.trials.get_mut(number as usize)
        {
            trial.forgotten = true;
        }
    }

    /// Everything, as JSON.
    pub fn save(&self) -> Result<String> {
        let saved = Saved {
            definition: self.definition.clone(),
            trials: self.trials.clone(),
            told: self.told.clone(),
            queue: self.queue.clone(),
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
        let dimension = loaded.definition.space.dimension();
        if saved.queue.iter().any(|values| values.len() != dimension) {
            return Err(refused(format!("a point in the queue does not have {dimension} values")));
        }
        loaded.queue = saved.queue;
        for (place, trial) in saved.trials.iter().enumerate() {
            if trial.number != place as u64 {
                return Err(refused(format!("trial {} is in place {place}", trial.number)));
            }
            let number = loaded.add(trial.values.clone())?;
            if trial.forgotten {
                loaded.forget(number);
            }
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
