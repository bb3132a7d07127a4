//! Where studies are kept: Optuna's relational schema, in SQLite or PostgreSQL.
//!
//! A study made here is an Optuna study: its programs and its dashboard read and write it. What Optuna has no column for is
//! in attributes, as JSON:
//!
//! | where | key | what |
//! | --- | --- | --- |
//! | study, system | `boscage:definition` | goal, space, method with all settings, seed, program (see [`crate::Definition`]) |
//! | study, system | `boscage:model` | what was learned last |
//! | study, system | `boscage:model_trial` | the number of the trial whose ask learned it |
//! | study, system | `boscage:changes` | when the definition was changed, and how |
//! | trial, system | `boscage:lease` | who runs it, until when, and how often it was begun (see [`Lease`]) |
//! | trial, system | `boscage:enqueued` | different for each `boscage enqueue` |
//! | trial, system | `boscage:imported` | the file that it came from |
//! | trial, system | `fixed_params` | values of a trial in the queue; Optuna's own |
//! | trial, system | `constraints` | if one of the list is positive, the trial is infeasible; Optuna's own |
//! | trial, system | `constraints:NAME` | the same, one by one |
//! | trial, user | `failure` | why there is no value, or why it was made up |

pub(crate) mod database;
pub mod schema;

use std::collections::BTreeMap;
use std::fs::File;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

pub use database::{Access, Location};
use database::{Database, Sql, Stop, Transaction};

use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::trial::State;

pub(crate) const DEFINITION: &str = "boscage:definition";
pub(crate) const MODEL: &str = "boscage:model";
pub(crate) const MODEL_TRIAL: &str = "boscage:model_trial";
pub(crate) const CHANGES: &str = "boscage:changes";
pub(crate) const LEASE: &str = "boscage:lease";
pub(crate) const ENQUEUED: &str = "boscage:enqueued";
pub(crate) const IMPORTED: &str = "boscage:imported";
pub(crate) const FIXED: &str = "fixed_params";
pub(crate) const CONSTRAINTS: &str = "constraints";
pub(crate) const FAILURE: &str = "failure";

/// The most trials that are asked for by their numbers in one statement.
const MOST_LISTED: usize = 500;
/// A number of our own: with the study's, what those who ask at the same time wait for each other under.
const ASK_LOCK: i64 = 0x626f_7363;

/// Who runs a trial, and until when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// Who: see [`crate::worker`].
    pub worker: String,
    /// When others may take the trial over, in seconds since 1970 by the clock of the store.
    pub until: f64,
    /// How often the trial has been begun.
    pub attempt: u32,
    /// Different for each time that a trial was given out.
    pub token: String,
}

/// A trial as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredTrial {
    pub(crate) id: i64,
    pub(crate) number: u64,
    pub(crate) state: State,
    pub(crate) began: Option<String>,
    pub(crate) ended: Option<String>,
    pub(crate) value: Option<f64>,
    /// Name, number and distribution.
    pub(crate) parameters: Vec<(String, f64, String)>,
    pub(crate) user: Map<String, Json>,
    pub(crate) system: Map<String, Json>,
}

impl StoredTrial {
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.system.get(LEASE).and_then(|lease| serde_json::from_value(lease.clone()).ok())
    }

    pub(crate) fn is_infeasible(&self) -> bool {
        let list = self.system.get(CONSTRAINTS).and_then(Json::as_array).into_iter().flatten();
        let named = self.system.iter().filter(|(key, _)| {
            key.strip_prefix(CONSTRAINTS).is_some_and(|rest| rest.starts_with(':'))
        });
        list.chain(named.map(|(_, value)| value))
            .any(|value| value.as_f64().is_some_and(|value| value > 0.0) || value == INFINITE)
    }
}

/// What is known of a study without reading its trials.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRow {
    /// The name.
    pub name: String,
    /// What is sought; none if there are several objectives.
    pub goal: Option<Goal>,
    /// How many trials are in each state.
    pub trials: BTreeMap<&'static str, u64>,
    /// The best value, constraints aside.
    pub best: Option<f64>,
    /// Whether boscage has worked on it, so that its space is known.
    pub is_ours: bool,
    pub(crate) id: i64,
}

/// What ended a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A value.
    Value(f64),
    /// A value that was made up for a failure, with the reason.
    Scored(f64, String),
    /// There is no value, for this reason.
    Failed(String),
    /// The values break a constraint, for this reason.
    Infeasible(String),
    /// It was ended early, for this reason.
    Pruned(String),
}

/// Whether a tell was news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It was.
    New,
    /// The same was told before.
    Again,
}

/// A store of studies.
pub struct Store {
    database: Database,
    /// The open file under whose lock those who ask wait for each other.
    lock_file: Option<File>,
}

impl Store {
    /// Opens a store; makes its tables if there are none and it may be written.
    pub fn open(location: &Location, access: &Access) -> Result<Self> {
        let mut database = Database::open(location, access)?;
        let place = location.to_string();
        if !access.read_only && !database.read(schema::exists)? {
            database.write(|transaction| schema::make(transaction, &place))?;
        }
        database.read(|transaction| schema::check(transaction, &place))?;
        database.use_log()?;
        Ok(Self { database, lock_file: None })
    }

    /// Another connection to the same store.
    pub fn reopen(&self) -> Result<Self> {
        self.reopen_with(self.access())
    }

    /// Another connection to the same store, opened in another way.
    pub(crate) fn reopen_with(&self, access: &Access) -> Result<Self> {
        Ok(Self { database: Database::open(self.database.location(), access)?, lock_file: None })
    }

    /// How it was opened.
    pub(crate) fn access(&self) -> &Access {
        self.database.access()
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        self.database.location()
    }

    pub(crate) fn write<T>(
        &mut self,
        work: impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        self.database.write(work)
    }

    pub(crate) fn read<T>(
        &mut self,
        work: impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        self.database.read(work)
    }

    /// All studies, in the order they were made.
    pub fn studies(&mut self) -> Result<Vec<StudyRow>> {
        self.read(|transaction| {
            let rows = transaction
                .query("SELECT study_id, study_name FROM studies ORDER BY study_id", &[])?;
            let mut studies = Vec::with_capacity(rows.len());
            for row in &rows {
                if let [Sql::Integer(id), Sql::Text(name)] = row.as_slice() {
                    studies.push(study_row(transaction, *id, name)?);
                }
            }
            Ok(studies)
        })
    }

    /// The time, by the clock that leases go by.
    pub(crate) fn now(&mut self) -> Result<f64> {
        self.read(now)
    }

    /// Waits until nobody else asks for a trial of the study. [`Store::end_ask`] lets the next one.
    pub(crate) fn begin_ask(&mut self, study: i64) -> Result<()> {
        let refused = |place: String, error: &std::io::Error| Error::Storage {
            place,
            reason: format!("it cannot be locked: {error}; check the permissions of its folder"),
            passing: false,
        };
        match self.database.location() {
            Location::Sqlite(path) => {
                let name = database::beside(path, "-lock");
                let place = || name.display().to_string();
                let file = match self.lock_file.take() {
                    Some(file) => file,
                    None => File::options()
                        .create(true)
                        .truncate(false)
                        .write(true)
                        .open(&name)
                        .map_err(|error| refused(place(), &error))?,
                };
                file.lock().map_err(|error| refused(place(), &error))?;
                self.lock_file = Some(file);
            }
            Location::Postgres(_) => {
                self.database.statement(
                    &format!("SELECT CAST(pg_advisory_lock({ASK_LOCK}, {study}) AS TEXT)"),
                    &[],
                )?;
            }
        }
        Ok(())
    }

    /// Lets others ask. If it fails, the connection is gone, and the lock with it.
    pub(crate) fn end_ask(&mut self, study: i64) {
        match self.database.location() {
            Location::Sqlite(_) => drop(self.lock_file.as_ref().map(File::unlock)),
            Location::Postgres(_) => {
                let sql = format!("SELECT pg_advisory_unlock({ASK_LOCK}, {study})");
                drop(self.database.statement(&sql, &[]));
            }
        }
    }

    /// Ends a trial. With a token, only whoever was given the trial last can.
    pub fn tell(
        &mut self,
        study: &str,
        number: u64,
        outcome: &Outcome,
        token: Option<&str>,
    ) -> Result<Told> {
        let value = match outcome {
            Outcome::Value(value) | Outcome::Scored(value, _) => Some(*value),
            _ => None,
        };
        if let Some(value) = value
            && !value.is_finite()
        {
            return Err(Error::Study {
                reason: format!(
                    "the value {value} is not finite; tell that trial {number} failed instead"
                ),
            });
        }
        self.write(|transaction| {
            let refused = |reason: String| Stop::Own(Error::Study { reason });
            let Some(id) = study_id(transaction, study)? else {
                return Err(refused(format!("there is no study {study:?}")));
            };
            lock_study(transaction, id)?;
            let sql = "SELECT trial_id FROM trials WHERE study_id = $1 AND number = $2";
            let rows = transaction.query(sql, &[id.into(), (number as i64).into()])?;
            let Some(trial) = rows.first().and_then(|row| row.first()).and_then(Sql::integer) else {
                return Err(refused(format!("study {study:?} has no trial {number}; `boscage show` lists its trials")));
            };
            lock_trial(transaction, trial)?;
            let stored = trials(transaction, id, &Selection::These(vec![trial]))?;
            let Some(stored) = stored.first() else {
                return Err(refused(format!("trial {number} cannot be read")));
            };
            match stored.state {
                State::Running => {}
                State::Waiting => {
                    return Err(refused(format!("trial {number} is still in the queue; ask for it first")));
                }
                _ => return already_told(stored, outcome).map_err(Stop::Own),
            }
            if let (Some(token), Some(lease)) = (token, stored.lease())
                && lease.token != token
            {
                return Err(refused(format!(
                    "trial {number} was given to another worker ({}) after its lease was over; this result comes too late",
                    lease.worker
                )));
            }
            finish(transaction, trial, outcome)?;
            Ok(Told::New)
        })
    }

    /// Gives a trial back that could not be run here: it is the next one's at once, and this attempt does not count.
    pub fn release(&mut self, study: &str, number: u64, token: &str) -> Result<()> {
        self.write(|transaction| {
            let Some(id) = study_id(transaction, study)? else { return Ok(()) };
            lock_study(transaction, id)?;
            for (trial, mut lease) in leases(transaction, id)? {
                if lease.token == token {
                    lease.until = 0.0;
                    lease.attempt = lease.attempt.saturating_sub(1);
                    // Whoever gives it back may still live.
                    lease.worker = String::new();
                    set_attribute(transaction, Attribute::TrialSystem, trial, LEASE, &lease)?;
                }
            }
            Ok(())
        })
        .map_err(|error| match error {
            Error::Study { reason } => Error::Study { reason: format!("trial {number}: {reason}") },
            other => other,
        })
    }

    /// Prolongs leases: trial numbers with their tokens. Trials that were ended or given to others are passed over.
    pub(crate) fn renew(&mut self, study: i64, held: &[(u64, String)], seconds: f64) -> Result<()> {
        self.write(|transaction| {
            let until = now(transaction)? + seconds;
            let sql = "SELECT t.number, t.trial_id, a.value_json FROM trials t JOIN trial_system_attributes a \
                       ON a.trial_id = t.trial_id WHERE t.study_id = $1 AND t.state = 'RUNNING' AND a.\"key\" = $2";
            for row in transaction.query(sql, &[study.into(), LEASE.into()])? {
                let [Sql::Integer(number), Sql::Integer(trial), Sql::Text(before)] = row.as_slice() else { continue };
                let Ok(mut lease) = serde_json::from_str::<Lease>(before) else { continue };
                if held.iter().any(|(held, token)| *held as i64 == *number && *token == lease.token) {
                    lease.until = until;
                    let after = serde_json::to_string(&lease).map_err(|error| unreadable(&format!("a lease ({error})")))?;
                    // Unless the trial was given to another one since: the study is not locked.
                    let sql = "UPDATE trial_system_attributes SET value_json = $1 \
                               WHERE trial_id = $2 AND \"key\" = $3 AND value_json = $4";
                    transaction.execute(sql, &[after.into(), (*trial).into(), LEASE.into(), before.as_str().into()])?;
                }
            }
            Ok(())
        })
    }
}

/// What a second tell of a trial is: the same, or an error.
fn already_told(stored: &StoredTrial, outcome: &Outcome) -> Result<Told> {
    let same = match outcome {
        Outcome::Value(value) | Outcome::Scored(value, _) => {
            stored.state == State::Complete
                // SQLite keeps −0 as 0.
                && stored.value == Some(*value)
        }
        Outcome::Failed(_) => stored.state == State::Failed && !stored.is_infeasible(),
        Outcome::Infeasible(_) => stored.state == State::Failed && stored.is_infeasible(),
        Outcome::Pruned(_) => stored.state == State::Pruned,
    };
    if same {
        return Ok(Told::Again);
    }
    let was = match (stored.state, stored.value) {
        (State::Complete, Some(value)) => format!("has the value {value:?}"),
        (State::Pruned, _) => "was pruned".to_string(),
        _ => format!(
            "failed ({})",
            stored.user.get(FAILURE).and_then(Json::as_str).unwrap_or("no reason given")
        ),
    };
    Err(Error::Study {
        reason: format!("trial {} {was}; it cannot be told anything else", stored.number),
    })
}

/// The number of a study.
pub(crate) fn study_id(
    transaction: &mut Transaction<'_>,
    name: &str,
) -> std::result::Result<Option<i64>, Stop> {
    let rows =
        transaction.query("SELECT study_id FROM studies WHERE study_name = $1", &[name.into()])?;
    Ok(rows.first().and_then(|row| row.first()).and_then(Sql::integer))
}

/// What is sought in a study; none if there are several objectives.
pub(crate) fn goal(
    transaction: &mut Transaction<'_>,
    id: i64,
) -> std::result::Result<Option<Goal>, Stop> {
    let sql = "SELECT CAST(direction AS TEXT) FROM study_directions WHERE study_id = $1";
    let directions = transaction.query(sql, &[id.into()])?;
    Ok(match directions.as_slice() {
        [one] => match one.first().and_then(Sql::text) {
            Some("MAXIMIZE") => Some(Goal::Maximize),
            Some("MINIMIZE") => Some(Goal::Minimize),
            _ => None,
        },
        _ => None,
    })
}

fn study_row(
    transaction: &mut Transaction<'_>,
    id: i64,
    name: &str,
) -> std::result::Result<StudyRow, Stop> {
    let goal = goal(transaction, id)?;
    let sql = "SELECT CAST(state AS TEXT), COUNT(*) FROM trials WHERE study_id = $1 GROUP BY state";
    let mut trials = BTreeMap::new();
    for row in transaction.query(sql, &[id.into()])? {
        if let [Sql::Text(state), Sql::Integer(count)] = row.as_slice()
            && let Some(state) = State::from_stored(state)
        {
            trials.insert(state.stored(), *count as u64);
        }
    }
    let best = match goal {
        None => None,
        Some(goal) => {
            let best = if goal == Goal::Maximize { "MAX" } else { "MIN" };
            let sql = format!(
                "SELECT {best}(v.value) FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id WHERE t.study_id = $1 \
                 AND t.state = 'COMPLETE' AND v.objective = 0 AND v.value_type = 'FINITE'"
            );
            transaction
                .query(&sql, &[id.into()])?
                .first()
                .and_then(|row| row.first())
                .and_then(Sql::real)
        }
    };
    let is_ours = study_attribute(transaction, id, DEFINITION)?.is_some();
    Ok(StudyRow { name: name.to_string(), goal, trials, best, is_ours, id })
}

/// Makes a study, and gives its number; none if somebody else has made it in the meantime.
pub(crate) fn make_study(
    transaction: &mut Transaction<'_>,
    name: &str,
    goal: Goal,
) -> std::result::Result<Option<i64>, Stop> {
    let sql = "INSERT INTO studies (study_name) VALUES ($1) ON CONFLICT (study_name) DO NOTHING RETURNING study_id";
    let rows = transaction.query(sql, &[name.into()])?;
    let Some(id) = rows.first().and_then(|row| row.first()).and_then(Sql::integer) else {
        return Ok(None);
    };
    let direction = if goal == Goal::Maximize { "MAXIMIZE" } else { "MINIMIZE" };
    transaction.execute(
        "INSERT INTO study_directions (direction, study_id, objective) VALUES ($1, $2, 0)",
        &[direction.into(), id.into()],
    )?;
    Ok(Some(id))
}

pub(crate) fn unreadable(what: &str) -> Stop {
    Stop::Own(Error::Study { reason: format!("{what} cannot be read from the store") })
}

/// Waits until nobody else makes or ends trials of the study. In SQLite, a transaction that writes does that already.
pub(crate) fn lock_study(
    transaction: &mut Transaction<'_>,
    id: i64,
) -> std::result::Result<(), Stop> {
    let sql = match transaction.is_postgres() {
        true => "SELECT study_id FROM studies WHERE study_id = $1 FOR UPDATE",
        false => "SELECT study_id FROM studies WHERE study_id = $1",
    };
    if transaction.query(sql, &[id.into()])?.is_empty() {
        let reason = "the study is no longer in its store; somebody has deleted it";
        return Err(Stop::Own(Error::Study { reason: reason.to_string() }));
    }
    Ok(())
}

/// Waits until nobody else begins or ends the trial: Optuna does both without locking the study. The study must be locked.
pub(crate) fn lock_trial(
    transaction: &mut Transaction<'_>,
    id: i64,
) -> std::result::Result<(), Stop> {
    if transaction.is_postgres() {
        transaction
            .query("SELECT trial_id FROM trials WHERE trial_id = $1 FOR UPDATE", &[id.into()])?;
    }
    Ok(())
}

/// Seconds since 1970: by the server's clock, so that the machines' clocks need not agree.
pub(crate) fn now(transaction: &mut Transaction<'_>) -> std::result::Result<f64, Stop> {
    if transaction.is_postgres() {
        let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)";
        let rows = transaction.query(sql, &[])?;
        return rows
            .first()
            .and_then(|row| row.first())
            .and_then(Sql::real)
            .ok_or_else(|| unreadable("the time"));
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(since.as_secs_f64())
}

/// Local time, as Optuna writes it.
fn local_time() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// Which trials of a study are meant.
pub(crate) enum Selection {
    /// This one and all that were made later.
    From(i64),
    /// These.
    These(Vec<i64>),
}

impl Selection {
    fn all() -> Self {
        Selection::From(0)
    }

    /// As a condition on `t`, and the values in it, of which the first is `$2`.
    fn condition(&self) -> (String, Vec<Sql>) {
        match self {
            Selection::From(first) => ("t.trial_id >= $2".to_string(), vec![(*first).into()]),
            Selection::These(ids) => {
                let places: Vec<String> = (2..ids.len() + 2).map(|k| format!("${k}")).collect();
                let condition = format!("t.trial_id IN ({})", places.join(", "));
                (condition, ids.iter().map(|&id| id.into()).collect())
            }
        }
    }
}

/// Number and state of trials, by their place in the table.
pub(crate) fn states(
    transaction: &mut Transaction<'_>,
    study: i64,
    from: i64,
) -> std::result::Result<Vec<(i64, u64, State)>, Stop> {
    let sql = "SELECT trial_id, number, CAST(state AS TEXT) FROM trials WHERE study_id = $1 AND trial_id >= $2 \
               ORDER BY trial_id";
    let rows = transaction.query(sql, &[study.into(), from.into()])?;
    let read = |row: &Vec<Sql>| match row.as_slice() {
        [Sql::Integer(id), Sql::Integer(number), Sql::Text(state)] => {
            Some((*id, *number as u64, State::from_stored(state)?))
        }
        _ => None,
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// The leases of all trials that are being run, by place in the table.
pub(crate) fn leases(
    transaction: &mut Transaction<'_>,
    study: i64,
) -> std::result::Result<BTreeMap<i64, Lease>, Stop> {
    let sql = "SELECT t.trial_id, a.value_json FROM trials t JOIN trial_system_attributes a ON a.trial_id = t.trial_id \
               WHERE t.study_id = $1 AND t.state = 'RUNNING' AND a.\"key\" = $2";
    let rows = transaction.query(sql, &[study.into(), LEASE.into()])?;
    let read = |row: &Vec<Sql>| match row.as_slice() {
        [Sql::Integer(id), Sql::Text(lease)] => Some((*id, serde_json::from_str(lease).ok()?)),
        _ => None,
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// How many trials of a study were ever given to a worker of ours.
pub(crate) fn given_count(
    transaction: &mut Transaction<'_>,
    study: i64,
) -> std::result::Result<i64, Stop> {
    let sql = "SELECT COUNT(*) FROM trials t JOIN trial_system_attributes a ON a.trial_id = t.trial_id \
               WHERE t.study_id = $1 AND a.\"key\" = $2";
    let rows = transaction.query(sql, &[study.into(), LEASE.into()])?;
    let count = rows.first().and_then(|row| row.first()).and_then(Sql::integer);
    count.ok_or_else(|| unreadable("the number of trials"))
}

/// The number of the trial that was put into the queue under this token.
pub(crate) fn enqueued(
    transaction: &mut Transaction<'_>,
    study: i64,
    token: &str,
) -> std::result::Result<Option<u64>, Stop> {
    let sql = "SELECT t.number FROM trials t JOIN trial_system_attributes a ON a.trial_id = t.trial_id \
               WHERE t.study_id = $1 AND a.\"key\" = $2 AND a.value_json = $3";
    let token = Json::from(token).to_string();
    let rows = transaction.query(sql, &[study.into(), ENQUEUED.into(), token.into()])?;
    let number = rows.first().and_then(|row| row.first()).and_then(Sql::integer);
    Ok(number.map(|number| number as u64))
}

/// All trials of a study.
pub(crate) fn all_trials(
    transaction: &mut Transaction<'_>,
    study: i64,
) -> std::result::Result<Vec<StoredTrial>, Stop> {
    trials(transaction, study, &Selection::all())
}

/// Trials of a study, with everything, by number.
pub(crate) fn trials(
    transaction: &mut Transaction<'_>,
    study: i64,
    selection: &Selection,
) -> std::result::Result<Vec<StoredTrial>, Stop> {
    if let Selection::These(ids) = selection {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if ids.len() > MOST_LISTED {
            let first = ids.iter().min().copied().unwrap_or_default();
            let mut found = trials(transaction, study, &Selection::From(first))?;
            let wanted: std::collections::HashSet<i64> = ids.iter().copied().collect();
            found.retain(|trial| wanted.contains(&trial.id));
            return Ok(found);
        }
    }
    let (condition, selected) = selection.condition();
    let mut values: Vec<Sql> = vec![study.into()];
    values.extend(selected);
    let mut found: BTreeMap<i64, StoredTrial> = BTreeMap::new();
    let sql = format!(
        "SELECT t.trial_id, t.number, CAST(t.state AS TEXT), CAST(t.datetime_start AS TEXT), \
         CAST(t.datetime_complete AS TEXT) FROM trials t WHERE t.study_id = $1 AND {condition}"
    );
    for row in transaction.query(&sql, &values)? {
        let [Sql::Integer(id), Sql::Integer(number), Sql::Text(state), began, ended] =
            row.as_slice()
        else {
            continue;
        };
        let Some(state) = State::from_stored(state) else { continue };
        let text = |value: &Sql| value.text().map(ToString::to_string);
        let trial = StoredTrial {
            id: *id,
            number: *number as u64,
            state,
            began: text(began),
            ended: text(ended),
            value: None,
            parameters: Vec::new(),
            user: Map::new(),
            system: Map::new(),
        };
        found.insert(*id, trial);
    }
    let of = |columns: &str, table: &str, more: &str| {
        format!(
            "SELECT t.trial_id, {columns} FROM {table} a JOIN trials t ON t.trial_id = a.trial_id \
             WHERE t.study_id = $1 AND {condition} {more}"
        )
    };
    let sql = of("a.value, CAST(a.value_type AS TEXT)", "trial_values", "AND a.objective = 0");
    for row in transaction.query(&sql, &values)? {
        if let [Sql::Integer(id), value, Sql::Text(kind)] = row.as_slice()
            && let Some(trial) = found.get_mut(id)
        {
            trial.value = match kind.as_str() {
                "INF_POS" => Some(f64::INFINITY),
                "INF_NEG" => Some(f64::NEG_INFINITY),
                _ => value.real(),
            };
        }
    }
    let sql = of(
        "a.param_name, a.param_value, a.distribution_json",
        "trial_params",
        "ORDER BY a.param_id",
    );
    for row in transaction.query(&sql, &values)? {
        let [Sql::Integer(id), Sql::Text(name), value, Sql::Text(distribution)] = row.as_slice()
        else {
            continue;
        };
        if let (Some(trial), Some(value)) = (found.get_mut(id), value.real()) {
            trial.parameters.push((name.clone(), value, distribution.clone()));
        }
    }
    for (table, is_user) in [("trial_user_attributes", true), ("trial_system_attributes", false)] {
        for row in transaction.query(&of("a.\"key\", a.value_json", table, ""), &values)? {
            let [Sql::Integer(id), Sql::Text(key), Sql::Text(json)] = row.as_slice() else {
                continue;
            };
            if let (Some(trial), Some(json)) = (found.get_mut(id), from_python(json)) {
                let attributes = if is_user { &mut trial.user } else { &mut trial.system };
                attributes.insert(key.clone(), json);
            }
        }
    }
    let mut found: Vec<StoredTrial> = found.into_values().collect();
    found.sort_by_key(|trial| trial.number);
    Ok(found)
}

/// What [`from_python`] makes of the number that is larger than any other.
const INFINITE: &str = "inf";

/// JSON as Python writes it, where numbers need not be finite: those become text, as in an export.
fn from_python(text: &str) -> Option<Json> {
    if let Ok(json) = serde_json::from_str(text) {
        return Some(json);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut is_quoted = false;
    while let Some(next) = rest.chars().next() {
        let words = [("-Infinity", "\"-inf\""), ("Infinity", "\"inf\""), ("NaN", "\"NaN\"")];
        let word = words.iter().find(|(word, _)| !is_quoted && rest.starts_with(word));
        let length = match (word, next) {
            (Some((word, instead)), _) => {
                plain += instead;
                word.len()
            }
            // Python escapes everything that is not ASCII, and so a character after this one has one byte.
            (None, '\\') if rest.is_char_boundary(2) && rest.len() >= 2 => {
                plain += &rest[..2];
                2
            }
            (None, next) => {
                is_quoted ^= next == '"';
                plain.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    serde_json::from_str(&plain).ok()
}

/// A trial that is to be made.
pub(crate) struct NewTrial {
    pub(crate) state: State,
    pub(crate) value: Option<f64>,
    /// Name, number and distribution.
    pub(crate) parameters: Vec<(String, f64, String)>,
    pub(crate) user: Vec<(&'static str, Json)>,
    pub(crate) system: Vec<(&'static str, Json)>,
}

/// Makes a trial, and gives its place in the table and its number. The study must be locked.
pub(crate) fn make_trial(
    transaction: &mut Transaction<'_>,
    study: i64,
    new: &NewTrial,
) -> std::result::Result<(i64, u64), Stop> {
    let rows =
        transaction.query("SELECT COUNT(*) FROM trials WHERE study_id = $1", &[study.into()])?;
    let number = rows.first().and_then(|row| row.first()).and_then(Sql::integer);
    let number = number.ok_or_else(|| unreadable("the number of trials"))?;
    let time = local_time();
    let began = (new.state != State::Waiting).then(|| time.clone());
    let ended = new.state.is_finished().then(|| time.clone());
    let rows = transaction.query(
        "INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) VALUES ($1, $2, $3, $4, $5) \
         RETURNING trial_id",
        &[number.into(), study.into(), new.state.stored().into(), began.into(), ended.into()],
    )?;
    let id = rows.first().and_then(|row| row.first()).and_then(Sql::integer);
    let id = id.ok_or_else(|| unreadable("the place of the new trial"))?;
    set_parameters(transaction, id, &new.parameters)?;
    if let Some(value) = new.value {
        set_value(transaction, id, value)?;
    }
    for (key, json) in &new.user {
        set_attribute(transaction, Attribute::TrialUser, id, key, json)?;
    }
    for (key, json) in &new.system {
        set_attribute(transaction, Attribute::TrialSystem, id, key, json)?;
    }
    Ok((id, number as u64))
}

/// Gives a trial its values.
pub(crate) fn set_parameters(
    transaction: &mut Transaction<'_>,
    trial: i64,
    parameters: &[(String, f64, String)],
) -> std::result::Result<(), Stop> {
    let rows: Vec<Vec<Sql>> = parameters
        .iter()
        .map(|(name, value, distribution)| {
            vec![trial.into(), name.as_str().into(), (*value).into(), distribution.as_str().into()]
        })
        .collect();
    transaction.insert(
        "trial_params",
        &["trial_id", "param_name", "param_value", "distribution_json"],
        &rows,
    )
}

/// Begins a trial that was in the queue, or whose worker was lost.
pub(crate) fn begin(
    transaction: &mut Transaction<'_>,
    trial: i64,
) -> std::result::Result<(), Stop> {
    let sql = "UPDATE trials SET state = 'RUNNING', datetime_start = $1 WHERE trial_id = $2";
    transaction.execute(sql, &[local_time().into(), trial.into()]).map(drop)
}

/// Ends a trial. Attributes come first: once it has ended, nobody may change it.
pub(crate) fn finish(
    transaction: &mut Transaction<'_>,
    trial: i64,
    outcome: &Outcome,
) -> std::result::Result<(), Stop> {
    let (state, value, reason) = match outcome {
        Outcome::Value(value) => (State::Complete, Some(*value), None),
        Outcome::Scored(value, reason) => (State::Complete, Some(*value), Some(reason)),
        Outcome::Failed(reason) => (State::Failed, None, Some(reason)),
        Outcome::Infeasible(reason) => {
            set_attribute(transaction, Attribute::TrialSystem, trial, CONSTRAINTS, &[1.0])?;
            (State::Failed, None, Some(reason))
        }
        Outcome::Pruned(reason) => (State::Pruned, None, Some(reason)),
    };
    if let Some(reason) = reason {
        set_attribute(transaction, Attribute::TrialUser, trial, FAILURE, reason)?;
    }
    if let Some(value) = value {
        set_value(transaction, trial, value)?;
    }
    let sql = "UPDATE trials SET state = $1, datetime_complete = $2 WHERE trial_id = $3";
    transaction.execute(sql, &[state.stored().into(), local_time().into(), trial.into()]).map(drop)
}

fn set_value(
    transaction: &mut Transaction<'_>,
    trial: i64,
    value: f64,
) -> std::result::Result<(), Stop> {
    let (value, kind) = match value {
        f64::INFINITY => (Sql::Null, "INF_POS"),
        f64::NEG_INFINITY => (Sql::Null, "INF_NEG"),
        value => (value.into(), "FINITE"),
    };
    let sql = "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES ($1, 0, $2, $3) \
               ON CONFLICT (trial_id, objective) DO UPDATE SET value = excluded.value, value_type = excluded.value_type";
    transaction.execute(sql, &[trial.into(), value, kind.into()]).map(drop)
}

/// Whose attribute.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attribute {
    StudySystem,
    TrialUser,
    TrialSystem,
}

/// Sets an attribute of a study or trial.
pub(crate) fn set_attribute(
    transaction: &mut Transaction<'_>,
    attribute: Attribute,
    owner: i64,
    key: &str,
    value: &(impl Serialize + ?Sized),
) -> std::result::Result<(), Stop> {
    let json = serde_json::to_string(value).map_err(|error| {
        Stop::Own(Error::Study { reason: format!("{key} cannot be written as JSON: {error}") })
    })?;
    let (table, column) = match attribute {
        Attribute::StudySystem => ("study_system_attributes", "study_id"),
        Attribute::TrialUser => ("trial_user_attributes", "trial_id"),
        Attribute::TrialSystem => ("trial_system_attributes", "trial_id"),
    };
    let sql = format!(
        "INSERT INTO {table} ({column}, \"key\", value_json) VALUES ($1, $2, $3) \
         ON CONFLICT ({column}, \"key\") DO UPDATE SET value_json = excluded.value_json"
    );
    transaction.execute(&sql, &[owner.into(), key.into(), json.into()]).map(drop)
}

/// A system attribute of a study.
pub(crate) fn study_attribute(
    transaction: &mut Transaction<'_>,
    study: i64,
    key: &str,
) -> std::result::Result<Option<Json>, Stop> {
    let sql = "SELECT value_json FROM study_system_attributes WHERE study_id = $1 AND \"key\" = $2";
    let rows = transaction.query(sql, &[study.into(), key.into()])?;
    let text = rows.first().and_then(|row| row.first()).and_then(Sql::text);
    text.map(|text| {
        serde_json::from_str(text).map_err(|error| unreadable(&format!("{key} ({error})")))
    })
    .transpose()
}

/// Removes a system attribute of a study.
pub(crate) fn remove_study_attribute(
    transaction: &mut Transaction<'_>,
    study: i64,
    key: &str,
) -> std::result::Result<(), Stop> {
    let sql = "DELETE FROM study_system_attributes WHERE study_id = $1 AND \"key\" = $2";
    transaction.execute(sql, &[study.into(), key.into()]).map(drop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_read_from_python() {
        for (text, expected) in [
            ("Infinity", json!("inf")),
            ("-Infinity", json!("-inf")),
            ("[NaN, 1.5, {\"a\": -Infinity}]", json!(["NaN", 1.5, {"a": "-inf"}])),
            (r#"["NaN", NaN, "a\"NaN", "\\", NaN]"#, json!(["NaN", "NaN", "a\"NaN", "\\", "NaN"])),
            ("{\"NaN\": Infinity}", json!({"NaN": "inf"})),
        ] {
            assert_eq!(from_python(text), Some(expected), "{text}");
        }
        for text in ["", "infinity", "NaNa", "[Infinity", "\\", "\"\\ä", "\\ä"] {
            assert_eq!(from_python(text), None, "{text}");
        }
    }

    #[test]
    fn a_positive_constraint_makes_a_trial_infeasible() {
        let is_infeasible = |system: Json| {
            let system = system.as_object().unwrap().clone();
            let trial = StoredTrial {
                id: 0,
                number: 0,
                state: State::Complete,
                began: None,
                ended: None,
                value: None,
                parameters: Vec::new(),
                user: Map::new(),
                system,
            };
            trial.is_infeasible()
        };
        for system in [
            json!({}),
            json!({"constraints": []}),
            json!({"constraints": [0.0, -1.0]}),
            json!({"constraints:a": 0.0, "constraints:b": "-inf"}),
            json!({"constraintsa": 1.0}),
            json!({"constraints": 1.0}),
        ] {
            assert!(!is_infeasible(system.clone()), "{system}");
        }
        for system in [
            json!({"constraints": [0.0, 1.0]}),
            json!({"constraints:a": 0.0, "constraints:b": 2}),
            json!({"constraints:a": "inf"}),
            json!({"constraints": ["inf"]}),
        ] {
            assert!(is_infeasible(system.clone()), "{system}");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_python_is_too_much(text in any::<String>(), words in "[-NaInfty\"\\\\, \\[\\]ä]*") {
            drop((from_python(&text), from_python(&words)));
        }
    }
}
