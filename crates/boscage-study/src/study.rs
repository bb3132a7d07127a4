//! A study: ask for trials, tell what came out, go on after any interruption.
//!
//! All that is known is in the store. A [`Study`] holds an optimizer that has been told what the store had when it was last
//! looked at; each [`Study::ask`] looks again. So any number of processes can work on a study, and one that dies loses only
//! what it had not stored:
//!
//! - one ask is one transaction: the trial, its values, its lease, and the model if it was learned anew;
//! - one tell is one transaction, and the same tell again changes nothing ([`Store::tell`]);
//! - asks wait for each other, so that each sees the points of all earlier ones as pending;
//! - a trial whose worker is gone keeps its number and its values and is given to the next who asks, a stated number of times.
//!
//! With a single worker, a study is a function of its definition and the outcomes: outcomes are told in the order of trial
//! numbers, randomness comes from (seed, trial number), and the model is stored with the ask that learned it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use boscage::{Model, Optimizer, Point, Stream};
use jiff::civil::DateTime;
use serde_json::{Map, Value as Json, json};

use crate::definition::{Definition, Difference, check_name};
use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::parameters::{StudySpace, Values};
use crate::propose::{Tried, propose};
use crate::store::database::Stop;
use crate::store::{
    self, Access, Attribute, CHANGES, DEFINITION, ENQUEUED, FAILURE, FIXED, IMPORTED, LEASE, Lease,
    MODEL, MODEL_TRIAL, NewTrial, Outcome, Selection, Store, StoredTrial,
};
use crate::trial::{State, Trial};
use crate::view::StudyView;
use crate::worker::Worker;

/// A trial to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedTrial {
    /// Its number.
    pub number: u64,
    /// Its values, in the order of the study's space; none where a condition does not hold.
    pub values: Values,
    /// How often it has been begun: more than once if earlier workers were lost.
    pub attempt: u32,
    /// To be given to [`Store::tell`], so that a result of somebody who has lost the trial is not taken for this one's.
    pub token: String,
}

/// What an ask gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A trial.
    Trial(AskedTrial),
    /// There are as many trials as were wanted.
    Enough {
        /// Whether some are still being run by other processes.
        others_run: bool,
    },
    /// Every point of the space has been tried.
    Exhausted(String),
}

/// How a study was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Opening {
    /// It was made now.
    pub is_new: bool,
    /// Optuna had made it.
    pub is_adopted: bool,
    /// What was changed.
    pub changes: Vec<Difference>,
}

/// What is known of a trial in the store.
struct Known {
    number: u64,
    state: State,
    values: Option<Values>,
    point: Option<Point>,
    lease: Option<Lease>,
    fixed: Option<Map<String, Json>>,
    is_imported: bool,
    value: Option<f64>,
}

/// A study that trials can be asked of.
pub struct Study {
    store: Store,
    id: i64,
    name: String,
    definition: Definition,
    optimizer: Box<dyn Optimizer>,
    /// By place in the table.
    known: BTreeMap<i64, Known>,
    /// Trials that were ever given to a worker.
    given: i64,
    /// The trial whose ask learned the model that the optimizer has.
    model_trial: Option<u64>,
    /// Observations at that time.
    learned_at: Option<usize>,
}

impl Study {
    /// Opens the study of this name, or makes it.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] if the study is not as it was, unless the changes are allowed and possible.
    pub fn open(
        mut store: Store,
        name: &str,
        definition: Definition,
        allow_changes: bool,
    ) -> Result<(Self, Opening)> {
        check_name(name)?;
        definition.validate()?;
        let (id, definition, opening) = store.write(|transaction| {
            let found = store::study_id(transaction, name)?;
            let made = match found {
                Some(_) => None,
                None => store::make_study(transaction, name, definition.goal)?,
            };
            if let Some(id) = made {
                store::set_attribute(
                    transaction,
                    Attribute::StudySystem,
                    id,
                    DEFINITION,
                    &definition,
                )?;
                for start in definition.start_points()? {
                    store::make_trial(transaction, id, &waiting(&definition.space, &start))?;
                }
                return Ok((
                    id,
                    definition.clone(),
                    Opening { is_new: true, ..Opening::default() },
                ));
            }
            let id = match found {
                Some(id) => Some(id),
                None => store::study_id(transaction, name)?,
            };
            let id = id.ok_or_else(|| store::unreadable("the number of the study"))?;
            store::lock_study(transaction, id)?;
            let Some(stored) = store::study_attribute(transaction, id, DEFINITION)? else {
                let goal = store::goal(transaction, id)?;
                if goal != Some(definition.goal) {
                    return Err(Stop::Own(other_goal(name, goal, definition.goal)));
                }
                store::set_attribute(
                    transaction,
                    Attribute::StudySystem,
                    id,
                    DEFINITION,
                    &definition,
                )?;
                return Ok((
                    id,
                    definition.clone(),
                    Opening { is_adopted: true, ..Opening::default() },
                ));
            };
            let mut stored = Definition::from_json(stored)?;
            let changes = stored.differences(&definition);
            if changes.is_empty() {
                // With the settings of the version that began it.
                return Ok((id, stored, Opening::default()));
            }
            let is_possible = changes.iter().all(|change| change.conflict.is_none());
            if !is_possible || !allow_changes {
                return Err(Stop::Own(changed(name, &changes, is_possible)));
            }
            for start in definition.start_points()? {
                if !stored.start_points()?.contains(&start) {
                    store::make_trial(transaction, id, &waiting(&definition.space, &start))?;
                }
            }
            if stored.space != definition.space || stored.choice != definition.choice {
                // It speaks of coordinates, or of settings, that are no more.
                store::remove_study_attribute(transaction, id, MODEL)?;
                store::remove_study_attribute(transaction, id, MODEL_TRIAL)?;
            }
            let mut now = definition.clone();
            if stored.choice == now.choice {
                now.method = stored.method;
            }
            stored = now;
            store::set_attribute(transaction, Attribute::StudySystem, id, DEFINITION, &stored)?;
            let mut log =
                store::study_attribute(transaction, id, CHANGES)?.unwrap_or_else(|| json!([]));
            if let Some(log) = log.as_array_mut() {
                let lines: Vec<String> =
                    changes.iter().map(|change| change.to_string().trim().to_string()).collect();
                log.push(json!({"time": store::now(transaction)?, "changes": lines}));
            }
            store::set_attribute(transaction, Attribute::StudySystem, id, CHANGES, &log)?;
            Ok((id, stored, Opening { changes, ..Opening::default() }))
        })?;
        Ok((Self::with(store, id, name, definition)?, opening))
    }

    /// Opens a study that boscage has worked on before, as it is.
    pub fn load(mut store: Store, name: Option<&str>) -> Result<Self> {
        let (id, name, definition) = stored_definition(&mut store, name)?;
        Self::with(store, id, &name, definition)
    }

    fn with(store: Store, id: i64, name: &str, definition: Definition) -> Result<Self> {
        let optimizer = definition.method.build(definition.space.engine().clone())?;
        Ok(Self {
            store,
            id,
            name: name.to_string(),
            definition,
            optimizer,
            known: BTreeMap::new(),
            given: 0,
            model_trial: None,
            learned_at: None,
        })
    }

    /// The study's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the study is.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The store, to tell results.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// What was learned, as of the last ask.
    pub fn model(&self) -> Option<&Model> {
        self.optimizer.model()
    }

    /// The best outcome, as of the last ask.
    pub fn best(&self) -> Option<(u64, f64)> {
        let goal = self.definition.goal;
        let mut best: Option<(u64, f64)> = None;
        let mut trials: Vec<&Known> =
            self.known.values().filter(|known| known.value.is_some()).collect();
        trials.sort_by_key(|known| known.number);
        for known in trials {
            if let Some(value) = known.value
                && best.is_none_or(|(_, other)| goal.is_better(value, other))
            {
                best = Some((known.number, value));
            }
        }
        best
    }

    /// The worst outcome in the store now.
    pub fn worst(&mut self) -> Result<Option<f64>> {
        self.look()?;
        let goal = self.definition.goal;
        Ok(self.known.values().filter_map(|known| known.value).reduce(|a, b| goal.worse(a, b)))
    }

    /// How many trials have begun or ended, imported ones aside, as of the last ask.
    pub fn begun(&self) -> u64 {
        self.known
            .values()
            .filter(|known| known.state != State::Waiting && !known.is_imported)
            .count() as u64
    }

    /// How many ended trials do not fit the parameters, as of the last ask: nothing is learned from them.
    pub fn misfits(&self) -> usize {
        let ended = self.known.values().filter(|known| known.state.is_finished());
        ended.filter(|known| known.point.is_none() && known.fixed.is_none()).count()
    }

    /// Takes in what has happened in the store.
    pub fn look(&mut self) -> Result<()> {
        let open =
            self.known.iter().find(|(_, known)| !known.state.is_finished()).map(|(&id, _)| id);
        let from = open.unwrap_or_else(|| self.known.last_key_value().map_or(0, |(id, _)| id + 1));
        let (known, id, model_trial) = (&self.known, self.id, self.model_trial);
        let (changed, leases, given, model) = self.store.read(|transaction| {
            let mut wanted = Vec::new();
            for (trial, _, state) in store::states(transaction, id, from)? {
                let is_news = match known.get(&trial) {
                    None => true,
                    // Optuna makes a trial first and gives it its values one by one.
                    Some(known) => {
                        known.state != state || (state == State::Running && known.values.is_none())
                    }
                };
                if is_news {
                    wanted.push(trial);
                }
            }
            let changed = store::trials(transaction, id, &Selection::These(wanted))?;
            let leases = store::leases(transaction, id)?;
            let given = store::given_count(transaction, id)?;
            let at = store::study_attribute(transaction, id, MODEL_TRIAL)?
                .and_then(|number| number.as_u64());
            let model = match at {
                Some(at) if Some(at) != model_trial => {
                    store::study_attribute(transaction, id, MODEL)?.map(|model| (at, model))
                }
                _ => None,
            };
            Ok((changed, leases, given, model))
        })?;
        self.given = given;
        for trial in changed {
            self.take_in(trial)?;
        }
        for (&id, known) in &mut self.known {
            if known.state == State::Running {
                known.lease = leases.get(&id).cloned();
            }
        }
        if let Some((at, model)) = model {
            let model: Model = serde_json::from_value(model).map_err(|error| Error::Study {
                reason: format!("the stored model cannot be read: {error}"),
            })?;
            self.learned_at = Some(model.told());
            self.model_trial = Some(at);
            self.optimizer.resume(model)?;
        }
        Ok(())
    }

    /// Takes in one trial that is new or has changed.
    fn take_in(&mut self, trial: StoredTrial) -> Result<()> {
        let space = &self.definition.space;
        let values = match trial.state {
            State::Waiting => None,
            _ => values_of(space, &trial),
        };
        let point = values.as_ref().map(|values| space.encode(values)).transpose()?;
        let before = self.known.get(&trial.id).map(|known| known.state);
        let value = trial
            .value
            .filter(|value| {
                trial.state == State::Complete && value.is_finite() && !trial.is_infeasible()
            })
            .filter(|_| point.is_some());
        if trial.state.is_finished()
            && !before.is_some_and(State::is_finished)
            && let Some(point) = &point
        {
            match value {
                Some(value) => {
                    self.optimizer.tell(point.clone(), self.definition.goal.sign() * value)?
                }
                None => self.optimizer.fail(point.clone())?,
            }
        }
        let known = Known {
            number: trial.number,
            state: trial.state,
            values,
            point,
            lease: trial.lease(),
            fixed: trial.system.get(FIXED).and_then(Json::as_object).cloned(),
            is_imported: trial.system.contains_key(IMPORTED),
            value,
        };
        self.known.insert(trial.id, known);
        Ok(())
    }

    /// The next trial to run, unless there are as many as `limit`. It is this worker's for so many seconds.
    pub fn ask(
        &mut self,
        worker: &Worker,
        lease_seconds: f64,
        limit: Option<u64>,
    ) -> Result<Asked> {
        self.store.begin_ask(self.id)?;
        let asked = self.ask_alone(worker, lease_seconds, limit);
        self.store.end_ask(self.id);
        asked
    }

    /// [`Study::ask`] while nobody else asks.
    fn ask_alone(
        &mut self,
        worker: &Worker,
        lease_seconds: f64,
        limit: Option<u64>,
    ) -> Result<Asked> {
        loop {
            self.look()?;
            if let Some(lost) = self.take_over(worker, lease_seconds)? {
                return Ok(Asked::Trial(lost));
            }
            if limit.is_some_and(|limit| self.begun() >= limit) {
                return Ok(Asked::Enough { others_run: self.others_run(worker) });
            }
            let waiting = self.known.iter().filter(|(_, known)| known.state == State::Waiting);
            let waiting = waiting
                .min_by_key(|(_, known)| known.number)
                .map(|(&id, known)| (id, known.number, known.fixed.clone().unwrap_or_default()));
            let (place, number, fixed) = match waiting {
                Some((id, number, fixed)) => (Some(id), number, fixed),
                None => (None, self.known.len() as u64, Map::new()),
            };
            let values = match self.propose(number, &fixed) {
                Ok(values) => values,
                Err(Error::Engine(error @ boscage::Error::SpaceExhausted { .. })) => {
                    return Ok(Asked::Exhausted(error.to_string()));
                }
                // One impossible point must not hold up all that comes after it.
                Err(
                    Error::Values { reason }
                    | Error::Parameter { reason, .. }
                    | Error::Study { reason },
                ) if place.is_some() => {
                    self.discard(place, &reason)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Some(asked) = self.give(worker, lease_seconds, place, values)? {
                return Ok(Asked::Trial(asked));
            }
        }
    }

    /// Ends a trial in the queue that cannot be run.
    fn discard(&mut self, place: Option<i64>, reason: &str) -> Result<()> {
        let Some(place) = place else { return Ok(()) };
        let outcome = Outcome::Failed(format!("its values do not fit the study: {reason}"));
        let study = self.id;
        self.store.write(|transaction| {
            store::lock_study(transaction, study)?;
            store::lock_trial(transaction, place)?;
            let found = store::trials(transaction, study, &Selection::These(vec![place]))?;
            // Otherwise somebody for whom they do fit has begun it.
            if found.first().is_some_and(|trial| trial.state == State::Waiting) {
                store::begin(transaction, place)?;
                store::finish(transaction, place, &outcome)?;
            }
            Ok(())
        })
    }

    /// Whether a process other than this worker's runs a trial.
    fn others_run(&self, worker: &Worker) -> bool {
        self.known.values().any(|known| {
            known.state == State::Running
                && known
                    .lease
                    .as_ref()
                    .is_some_and(|lease| lease.is_watched() && lease.worker != worker.name())
        })
    }

    /// A trial whose worker was lost; those that were lost too often fail.
    fn take_over(&mut self, worker: &Worker, lease_seconds: f64) -> Result<Option<AskedTrial>> {
        if !self.known.values().any(|known| known.lease.is_some() && known.state == State::Running)
        {
            return Ok(None);
        }
        let now = self.store.now()?;
        let mut lost: Vec<(i64, u64, Option<Values>, Lease)> = Vec::new();
        for (&id, known) in &self.known {
            // Whoever asks is alive and runs what it holds, even if a machine that slept could not prolong its leases.
            let is_own = |lease: &Lease| lease.is_watched() && lease.worker == worker.name();
            if known.state == State::Running
                && let Some(lease) =
                    known.lease.as_ref().filter(|lease| lease.is_over(now) && !is_own(lease))
            {
                lost.push((id, known.number, known.values.clone(), lease.clone()));
            }
        }
        lost.sort_by_key(|(_, number, ..)| *number);
        for (id, number, values, lost) in lost {
            let most = self.definition.workers.lost_retries;
            let lease = worker.lease(now + lease_seconds, lost.attempt + 1);
            let is_over = lost.attempt > most || values.is_none();
            let study = self.id;
            let is_taken = self.store.write(|transaction| {
                store::lock_study(transaction, study)?;
                store::lock_trial(transaction, id)?;
                let current = store::leases(transaction, study)?.remove(&id);
                match current {
                    // Given to us by an attempt whose answer was lost.
                    Some(current) if current.token == lease.token => return Ok(true),
                    Some(current) if current.token == lost.token => {}
                    // Told, or given to somebody else, in the meantime.
                    _ => return Ok(false),
                }
                if is_over {
                    let reason = format!(
                        "its worker was lost {} times, the last one was {}; workers.lost_retries is {most}",
                        lost.attempt, lost.worker
                    );
                    store::finish(transaction, id, &Outcome::Failed(reason))?;
                    return Ok(false);
                }
                // How long it took is counted from now.
                store::begin(transaction, id)?;
                store::set_attribute(transaction, Attribute::TrialSystem, id, LEASE, &lease)?;
                Ok(true)
            })?;
            if let (true, Some(values)) = (is_taken, values) {
                if let Some(known) = self.known.get_mut(&id) {
                    known.lease = Some(lease.clone());
                }
                return Ok(Some(AskedTrial {
                    number,
                    values,
                    attempt: lease.attempt,
                    token: lease.token,
                }));
            }
        }
        // Those that failed have to be told to the optimizer.
        self.look()?;
        Ok(None)
    }

    /// Values for the trial of this number, some of them fixed.
    fn propose(&mut self, number: u64, fixed: &Map<String, Json>) -> Result<Values> {
        let space = &self.definition.space;
        // Names that the space does not have are somebody else's business.
        let ours = fixed.iter().filter(|(name, _)| space.index_of(name).is_some());
        let ours: Map<String, Json> =
            ours.map(|(name, value)| (name.clone(), value.clone())).collect();
        let fixed = space.partial_from_json(&ours)?;
        let mut running: Vec<&Known> =
            self.known.values().filter(|known| known.state == State::Running).collect();
        running.sort_by_key(|known| known.number);
        let tried = Tried {
            running: running.iter().filter_map(|known| known.point.clone()).collect(),
            known: self.known.values().filter_map(|known| known.point.as_ref()).collect(),
        };
        let stream = Stream::new(self.definition.seed, number);
        propose(&self.definition, self.optimizer.as_mut(), &fixed, tried, &stream)
    }

    /// Stores a new trial, or one of the queue, as this worker's; nothing if somebody else took it out of the queue, or asked
    /// in between.
    fn give(
        &mut self,
        worker: &Worker,
        lease_seconds: f64,
        place: Option<i64>,
        values: Values,
    ) -> Result<Option<AskedTrial>> {
        let space = &self.definition.space;
        let mut parameters = Vec::with_capacity(values.len());
        for (d, value) in values.iter().enumerate() {
            if let Some(value) = value {
                let name = space.parameters()[d].name.clone();
                parameters.push((name, space.stored(d, value)?, space.distribution(d).to_string()));
            }
        }
        let model =
            self.optimizer.model().filter(|model| self.learned_at != Some(model.told())).cloned();
        let lease = worker.lease(self.store.now()? + lease_seconds, 1);
        let (study, given_before) = (self.id, self.given);
        let new = NewTrial {
            state: State::Running,
            value: None,
            parameters,
            user: Vec::new(),
            system: vec![(LEASE, json!(lease))],
        };
        let given = self.store.write(|transaction| {
            store::lock_study(transaction, study)?;
            // Stored already, by an attempt whose answer was lost.
            let mine = store::leases(transaction, study)?
                .into_iter()
                .find(|(_, known)| known.token == lease.token);
            if let Some((id, _)) = mine {
                let found = store::trials(transaction, study, &Selection::These(vec![id]))?;
                return Ok(found.first().map(|trial| trial.number));
            }
            // A lost connection takes the turn to ask with it: somebody else may have got the same point.
            if store::given_count(transaction, study)? != given_before {
                return Ok(None);
            }
            let number = match place {
                None => store::make_trial(transaction, study, &new)?.1,
                Some(id) => {
                    store::lock_trial(transaction, id)?;
                    let found = store::trials(transaction, study, &Selection::These(vec![id]))?;
                    let Some(queued) = found.first().filter(|trial| trial.state == State::Waiting)
                    else {
                        return Ok(None);
                    };
                    store::begin(transaction, id)?;
                    store::set_parameters(transaction, id, &new.parameters)?;
                    store::set_attribute(transaction, Attribute::TrialSystem, id, LEASE, &lease)?;
                    queued.number
                }
            };
            if let Some(model) = &model {
                store::set_attribute(transaction, Attribute::StudySystem, study, MODEL, model)?;
                store::set_attribute(
                    transaction,
                    Attribute::StudySystem,
                    study,
                    MODEL_TRIAL,
                    &number,
                )?;
            }
            Ok(Some(number))
        })?;
        let Some(number) = given else { return Ok(None) };
        if let Some(model) = model {
            self.learned_at = Some(model.told());
            self.model_trial = Some(number);
        }
        Ok(Some(AskedTrial { number, values, attempt: 1, token: lease.token }))
    }

    /// Values for one trial that is not stored: the first that would be asked for.
    pub fn rehearse(&mut self) -> Result<Values> {
        let start = self.definition.start_points()?.into_iter().next();
        let fixed = start.map(|values| self.definition.space.to_json(&values)).unwrap_or_default();
        self.propose(0, &fixed)
    }

    /// Puts a trial into the queue, perhaps with some of its values only.
    pub fn enqueue(&mut self, values: &Values) -> Result<u64> {
        let space = &self.definition.space;
        if values.iter().all(Option::is_none) {
            return Err(Error::Values {
                reason: "no values were given; write name=value".to_string(),
            });
        }
        if let Some(forbidden) = space.forbidden_by(values) {
            return Err(Error::Values {
                reason: format!("the values are forbidden by `{}`", forbidden.text()),
            });
        }
        let (study, mut new) = (self.id, waiting(space, values));
        let token = Worker::this_process().lease(0.0, 0).token;
        new.system.push((ENQUEUED, json!(token)));
        self.store.write(|transaction| {
            store::lock_study(transaction, study)?;
            // Stored already, by an attempt whose answer was lost.
            match store::enqueued(transaction, study, &token)? {
                Some(number) => Ok(number),
                None => Ok(store::make_trial(transaction, study, &new)?.1),
            }
        })
    }

    /// Adds trials that were run elsewhere: values, outcome, and where each comes from. A result that was imported before is
    /// passed over, wherever it comes from: files are moved, and lines are added to them. The number of new ones is given.
    pub fn import(&mut self, results: &[(Values, Outcome, String)]) -> Result<u64> {
        let space = &self.definition.space;
        let mut trials = Vec::with_capacity(results.len());
        for (values, outcome, place) in results {
            space.encode(values).map_err(|error| Error::Input {
                place: place.clone(),
                reason: error.to_string(),
            })?;
            let mut parameters = Vec::new();
            for (d, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    let name = space.parameters()[d].name.clone();
                    parameters.push((
                        name,
                        space.stored(d, value)?,
                        space.distribution(d).to_string(),
                    ));
                }
            }
            trials.push((parameters, outcome, place));
        }
        let study = self.id;
        self.store.write(|transaction| {
            store::lock_study(transaction, study)?;
            let mut there: HashMap<String, usize> = HashMap::new();
            for trial in store::all_trials(transaction, study)? {
                if trial.system.contains_key(IMPORTED)
                    && let Some(values) = values_of(space, &trial)
                {
                    *there.entry(essence(space, &values, trial.state, trial.value)).or_default() +=
                        1;
                }
            }
            let mut count = 0;
            for ((parameters, outcome, place), (values, ..)) in trials.iter().zip(results) {
                let (state, value) = match outcome {
                    Outcome::Value(value) | Outcome::Scored(value, _) => {
                        (State::Complete, Some(*value))
                    }
                    Outcome::Failed(_) | Outcome::Infeasible(_) => (State::Failed, None),
                    Outcome::Pruned(_) => (State::Pruned, None),
                };
                if let Some(left) = there.get_mut(&essence(space, values, state, value))
                    && *left > 0
                {
                    *left -= 1;
                    continue;
                }
                let new = NewTrial {
                    state: State::Running,
                    value: None,
                    parameters: parameters.clone(),
                    user: Vec::new(),
                    system: vec![(IMPORTED, json!(place))],
                };
                let (id, _) = store::make_trial(transaction, study, &new)?;
                store::finish(transaction, id, outcome)?;
                count += 1;
            }
            Ok(count)
        })
    }

    /// Prolongs the leases of trials: their numbers with their tokens.
    pub fn renewer(&self) -> Result<Renewer> {
        // The next renewal is another attempt, so that none has to wait for long, or to say that it does.
        let lease = self.definition.workers.lease_seconds;
        let usual = self.store.access();
        let patience = Duration::try_from_secs_f64(lease / 10.0).unwrap_or(usual.patience);
        let access = Access {
            patience: patience.min(usual.patience),
            notice: Arc::new(|_| {}),
            ..usual.clone()
        };
        Ok(Renewer { store: self.store.reopen_with(&access)?, study: self.id })
    }
}

/// Prolongs leases.
pub struct Renewer {
    store: Store,
    study: i64,
}

impl Renewer {
    /// Prolongs these by so many seconds from now.
    pub fn renew(&mut self, held: &[(u64, String)], seconds: f64) -> Result<()> {
        if held.is_empty() { Ok(()) } else { self.store.renew(self.study, held, seconds) }
    }
}

/// A study at this moment, read only.
pub fn view(store: &mut Store, name: Option<&str>) -> Result<StudyView> {
    let (id, name, definition) = stored_definition(store, name)?;
    let (trials, model) = store.read(|transaction| {
        Ok((store::all_trials(transaction, id)?, store::study_attribute(transaction, id, MODEL)?))
    })?;
    let model = model.map(serde_json::from_value).transpose().map_err(|error| Error::Study {
        reason: format!("the stored model cannot be read: {error}"),
    })?;
    let trials = trials.iter().map(|trial| shown(&definition.space, trial)).collect();
    let storage = store.location().to_string();
    let Definition { goal, space, method, seed, .. } = definition;
    Ok(StudyView { name, storage, goal, space, method, seed, trials, model })
}

/// What a study is, if there is one of this name that boscage has worked on.
pub fn definition_of(store: &mut Store, name: &str) -> Result<Option<Definition>> {
    let stored = store.read(|transaction| match store::study_id(transaction, name)? {
        Some(id) => store::study_attribute(transaction, id, DEFINITION),
        None => Ok(None),
    })?;
    stored.map(Definition::from_json).transpose()
}

/// The number, name and definition of a study; of the only one, if no name is given.
fn stored_definition(store: &mut Store, name: Option<&str>) -> Result<(i64, String, Definition)> {
    let rows = store.studies()?;
    let names = || rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ");
    let refused = |reason: String| Err(Error::Study { reason });
    let row = match (name, rows.as_slice()) {
        (_, []) => return refused(format!("{} has no studies yet", store.location())),
        (None, [one]) => one,
        (None, _) => {
            return refused(format!(
                "{} has several studies; choose one by its name (`--name`; in Python, name=): {}",
                store.location(),
                names()
            ));
        }
        (Some(name), rows) => match rows.iter().find(|row| row.name == name) {
            Some(row) => row,
            None => {
                return refused(format!(
                    "{} has no study {name:?}; it has {}",
                    store.location(),
                    names()
                ));
            }
        },
    };
    if !row.is_ours {
        return refused(format!(
            "study {:?} was made by Optuna and boscage has not worked on it yet; `boscage tune` with a study file of this name \
             and storage goes on with it",
            row.name
        ));
    }
    let (id, name) = (row.id, row.name.clone());
    let definition =
        store.read(|transaction| store::study_attribute(transaction, id, DEFINITION))?;
    Ok((id, name, Definition::from_json(definition.unwrap_or_default())?))
}

/// A trial for the queue.
fn waiting(space: &StudySpace, values: &Values) -> NewTrial {
    NewTrial {
        state: State::Waiting,
        value: None,
        parameters: Vec::new(),
        user: Vec::new(),
        system: vec![(FIXED, Json::Object(space.to_json(values)))],
    }
}

/// What makes two results of the same state one.
fn essence(space: &StudySpace, values: &Values, state: State, value: Option<f64>) -> String {
    let named = space.parameters().iter().zip(values);
    let mut values: Values = named
        .map(|(parameter, value)| value.clone().and_then(|value| parameter.checked(value).ok()))
        .collect();
    space.drop_inactive(&mut values);
    // SQLite keeps −0 as 0.
    format!("{state:?} {:?} {values:?}", value.map(|value| value + 0.0))
}

fn other_goal(name: &str, is: Option<Goal>, wanted: Goal) -> Error {
    let is = match is {
        Some(goal) => format!("its goal is to {}", goal.name()),
        None => "it has several objectives".to_string(),
    };
    Error::Study {
        reason: format!(
            "study {name:?} was made by Optuna, and {is}; this one is to {}. Give the study another name",
            wanted.name()
        ),
    }
}

fn changed(name: &str, changes: &[Difference], is_possible: bool) -> Error {
    let differences = changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let advice = match is_possible {
        true => {
            "Allow the changes (`--allow-changes`; in Python, allow_changes=True) to go on with the study as it is now, or undo them."
        }
        false => {
            "The study cannot go on with all of this: undo what is marked, or give the study another name."
        }
    };
    Error::Changed { name: name.to_string(), differences, advice: advice.to_string() }
}

/// The values of a stored trial, if they are a point of the space.
fn values_of(space: &StudySpace, trial: &StoredTrial) -> Option<Values> {
    let mut values: Values = vec![None; space.dimension()];
    for (name, stored, distribution) in &trial.parameters {
        if let Some(d) = space.index_of(name) {
            values[d] = Some(space.from_stored(d, *stored, distribution).ok()?);
        }
    }
    space.drop_inactive(&mut values);
    space.encode(&values).ok()?;
    Some(values)
}

/// A stored trial as a study shows it.
fn shown(space: &StudySpace, trial: &StoredTrial) -> Trial {
    let time = |text: &Option<String>| text.as_ref()?.parse::<DateTime>().ok();
    let seconds = time(&trial.began)
        .zip(time(&trial.ended))
        .map(|(began, ended)| began.duration_until(ended).as_secs_f64());
    let mut attributes = trial.user.clone();
    let failure = attributes.remove(FAILURE).map(|reason| match reason {
        Json::String(reason) => reason,
        other => other.to_string(),
    });
    Trial {
        number: trial.number,
        state: trial.state,
        value: trial.value,
        values: values_of(space, trial),
        failure,
        infeasible: trial.is_infeasible(),
        began: trial.began.clone(),
        ended: trial.ended.clone(),
        seconds,
        attributes,
    }
}
