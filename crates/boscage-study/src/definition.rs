//! What a study is: goal, parameters, method, program, budget. Read from a study file, kept with the study, and compared when
//! the study goes on.
//!
//! ```toml
//! goal = "minimize"
//! seed = 1
//!
//! [parameters]
//! rate = { type = "real", low = 1e-5, high = 1.0, log = true, default = 0.01 }
//! layers = { type = "integer", low = 1, high = 8 }
//!
//! [program]
//! command = ["./train", "--rate={rate}", "--layers={layers}"]
//!
//! [budget]
//! trials = 100
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use boscage::Method;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use crate::condition::Condition;
use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::method::{MethodChoice, stored_method};
use crate::parameters::{Kind, StudyParameter, StudySpace, Values, table_or_list};
use crate::program::Program;
use crate::store::Location;

/// The most bytes of a study file.
const MOST_BYTES: u64 = 16 << 20;
/// The most runs of a program in one trial.
const MOST_RUNS: u64 = 100_000;
/// The longest that a worker may be silent: a year.
const MOST_LEASE_SECONDS: f64 = 31_536_000.0;
/// The version of how a definition is stored.
const FORMAT: u32 = 1;

/// How one trial is evaluated: each instance with each seed, so often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluation {
    /// How often the program is run for each instance and seed.
    pub repeats: u32,
    /// What `{instance}` stands for, one after the other.
    pub instances: Vec<String>,
    /// What `{seed}` stands for, one after the other. Without them it is the study's seed plus the number of the repeat.
    pub seeds: Vec<u64>,
    /// How one value is made of several.
    pub aggregate: Aggregate,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { repeats: 1, instances: Vec::new(), seeds: Vec::new(), aggregate: Aggregate::Mean }
    }
}

/// How one value is made of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// The mean.
    #[default]
    Mean,
    /// The median.
    Median,
    /// The worst.
    Worst,
}

impl Aggregate {
    /// As it is written in a study file.
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Mean => "mean",
            Aggregate::Median => "median",
            Aggregate::Worst => "worst",
        }
    }
}

/// What becomes of a trial whose program fails.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Failure {
    /// How often the program is run again.
    pub retries: u32,
    /// What the trial counts as in the end.
    pub score: Score,
}

/// What a failed trial counts as.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Json", into = "Json")]
pub enum Score {
    /// Nothing: the model learns no value, but does not ask for the point again.
    #[default]
    Ignore,
    /// The worst value seen so far; nothing if there is none.
    Worst,
    /// This value.
    Value(f64),
}

impl TryFrom<Json> for Score {
    type Error = String;

    fn try_from(json: Json) -> std::result::Result<Self, String> {
        match (json.as_str(), json.as_f64()) {
            (Some("ignore"), _) => Ok(Score::Ignore),
            (Some("worst"), _) => Ok(Score::Worst),
            (_, Some(value)) if value.is_finite() => Ok(Score::Value(value)),
            // What is not finite is nothing in JSON.
            _ if json.is_null() => {
                Err("score is not finite; write \"ignore\", \"worst\" or a finite number"
                    .to_string())
            }
            _ => Err(format!("score is {json}; write \"ignore\", \"worst\" or a number")),
        }
    }
}

impl From<Score> for Json {
    fn from(score: Score) -> Self {
        match score {
            Score::Ignore => "ignore".into(),
            Score::Worst => "worst".into(),
            Score::Value(value) => value.into(),
        }
    }
}

/// When a run ends. Whatever comes first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Trials of the study, failed ones included, imported ones not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<u64>,
    /// Seconds of this run; trials that are being run then are waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// A value that is good enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
}

/// Those who run trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workers {
    /// How many trials are run at a time on this machine.
    pub jobs: u32,
    /// How long a worker may be silent before its trial is given to another one.
    pub lease_seconds: f64,
    /// How often a trial whose worker died is given to another one.
    pub lost_retries: u32,
}

impl Default for Workers {
    fn default() -> Self {
        Self { jobs: 1, lease_seconds: 60.0, lost_retries: 3 }
    }
}

/// What a study is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The version of this format.
    #[serde(default = "format")]
    format: u32,
    /// What is sought.
    #[serde(default)]
    pub goal: Goal,
    /// The parameters.
    pub space: StudySpace,
    /// The method, as it was chosen.
    pub choice: MethodChoice,
    /// The method, with all settings.
    #[serde(deserialize_with = "stored_method")]
    pub method: Method,
    /// Where all randomness comes from.
    pub seed: u64,
    /// The program that evaluates points, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// How a trial is evaluated.
    #[serde(default)]
    pub evaluation: Evaluation,
    /// What becomes of failures.
    #[serde(default)]
    pub failure: Failure,
    /// When a run ends.
    #[serde(default)]
    pub budget: Budget,
    /// Who runs trials.
    #[serde(default)]
    pub workers: Workers,
    /// Points to begin with, beside the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<Map<String, Json>>,
}

fn format() -> u32 {
    FORMAT
}

/// The name of the method of a study that does not say.
const METHOD: &str = "boscage";

impl Definition {
    /// A study of this space, everything else as usual.
    pub fn new(space: StudySpace) -> Result<Self> {
        let choice = MethodChoice { name: METHOD.to_string(), settings: Map::new() };
        Ok(Self {
            format: FORMAT,
            goal: Goal::default(),
            space,
            method: choice.resolve()?,
            choice,
            seed: 0,
            program: None,
            evaluation: Evaluation::default(),
            failure: Failure::default(),
            budget: Budget::default(),
            workers: Workers::default(),
            start: Vec::new(),
        })
    }

    /// Reads what was stored.
    pub(crate) fn from_json(json: Json) -> Result<Self> {
        let format = json.get("format").and_then(Json::as_u64);
        if format != Some(u64::from(FORMAT)) {
            return Err(Error::Study {
                reason: format!(
                    "the study was made by another version of boscage (format {}, this one writes {FORMAT}); use that version",
                    format.map_or("unknown".to_string(), |format| format.to_string())
                ),
            });
        }
        serde_json::from_value(json).map_err(|error| Error::Study {
            reason: format!("the study's definition cannot be read: {error}"),
        })
    }

    /// Refuses what cannot work.
    pub fn validate(&self) -> Result<()> {
        let refused = |reason: String| Err(Error::Study { reason });
        if let Some(program) = &self.program {
            let names: Vec<&str> = self.space.names().collect();
            program.validate(&names)?;
            for parameter in self.space.parameters() {
                let words = match &parameter.kind {
                    Kind::Categorical { choices: words } | Kind::Ordinal { levels: words } => words,
                    _ => continue,
                };
                if let Some(word) =
                    words.iter().map(ToString::to_string).find(|word| word.contains('\0'))
                {
                    return Err(Error::Parameter {
                        name: parameter.name.clone(),
                        reason: format!(
                            "{word:?} has a zero character, which no program can be given; remove it"
                        ),
                    });
                }
            }
            let uses_instance = program.uses("instance")?;
            if self.evaluation.instances.is_empty() && uses_instance {
                return refused("the command uses {instance}, but evaluation.instances is empty; list the instances".into());
            }
            if !self.evaluation.instances.is_empty() && !uses_instance {
                return refused(
                    "there are instances, but the command does not use {instance}".into(),
                );
            }
            if !self.evaluation.seeds.is_empty() && !program.uses("seed")? {
                return refused("there are seeds, but the command does not use {seed}".into());
            }
        }
        if self.evaluation.repeats == 0 {
            return refused("evaluation.repeats is 0; at least one run is needed".into());
        }
        let runs = u64::from(self.evaluation.repeats)
            .saturating_mul(self.evaluation.instances.len().max(1) as u64)
            .saturating_mul(self.evaluation.seeds.len().max(1) as u64);
        if runs > MOST_RUNS {
            return refused(format!(
                "one trial would be {runs} runs of the program; at most {MOST_RUNS} are allowed"
            ));
        }
        let workers = &self.workers;
        if workers.jobs == 0 || workers.jobs > 1024 {
            return refused(format!(
                "workers.jobs is {}; it must be between 1 and 1024",
                workers.jobs
            ));
        }
        if !(1.0..=MOST_LEASE_SECONDS).contains(&workers.lease_seconds) {
            return refused(format!(
                "workers.lease_seconds is {}; it must be between 1 and {MOST_LEASE_SECONDS}",
                workers.lease_seconds
            ));
        }
        let budget = &self.budget;
        if budget.seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return refused("budget.seconds must be a positive number".into());
        }
        if budget.trials == Some(0) {
            return refused("budget.trials is 0; at least one trial is needed".into());
        }
        if budget.target.is_some_and(|target| !target.is_finite()) {
            return refused("budget.target must be a finite number".into());
        }
        self.start_points()?;
        // Settings that do not make sense together, or a method that needs what a study does not have.
        self.method.build(self.space.engine().clone())?;
        Ok(())
    }

    /// The points to begin with: the defaults, if there are any, then those of the file, filled up with defaults. They may
    /// be partial.
    pub fn start_points(&self) -> Result<Vec<Values>> {
        let defaults: Values =
            self.space.parameters().iter().map(|parameter| parameter.default.clone()).collect();
        let mut points = Vec::new();
        if defaults.iter().any(Option::is_some) {
            points.push(defaults.clone());
        }
        for (number, start) in self.start.iter().enumerate() {
            let given = self.space.partial_from_json(start).map_err(|error| Error::Study {
                reason: format!("start point {}: {error}", number + 1),
            })?;
            points.push(
                given
                    .into_iter()
                    .zip(&defaults)
                    .map(|(value, default)| value.or_else(|| default.clone()))
                    .collect(),
            );
        }
        for values in &mut points {
            *values = values
                .iter()
                .zip(self.space.parameters())
                .map(|(value, parameter)| {
                    value.clone().map(|value| parameter.checked(value)).transpose()
                })
                .collect::<Result<_>>()?;
        }
        for values in &points {
            if let Some(forbidden) = self.space.forbidden_by(values) {
                return Err(Error::Study {
                    reason: format!(
                        "a start point (or the defaults) is forbidden by `{}`",
                        forbidden.text()
                    ),
                });
            }
        }
        Ok(points)
    }
}

/// A study file.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyFile {
    /// The study's name.
    pub name: String,
    /// Where it is stored.
    pub storage: Location,
    /// The folder that the program's paths begin in.
    pub folder: PathBuf,
    /// What the study is.
    pub definition: Definition,
}

/// A study file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    #[serde(default)]
    goal: Goal,
    #[serde(default)]
    seed: u64,
    method: Option<WrittenMethod>,
    storage: Option<String>,
    #[serde(deserialize_with = "table_or_list")]
    parameters: Vec<StudyParameter>,
    #[serde(default)]
    forbidden: Vec<Condition>,
    program: Option<Program>,
    #[serde(default)]
    evaluation: Evaluation,
    #[serde(default)]
    failure: Failure,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    workers: Workers,
    #[serde(default)]
    start: Vec<Map<String, Json>>,
}

/// A name, or a name with settings.
struct WrittenMethod(MethodChoice);

impl<'de> Deserialize<'de> for WrittenMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = WrittenMethod;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a method, or a table with its name and settings")
            }

            fn visit_str<E>(self, name: &str) -> std::result::Result<Self::Value, E> {
                Ok(WrittenMethod(MethodChoice { name: name.to_string(), settings: Map::new() }))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                table: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let table = serde::de::value::MapAccessDeserializer::new(table);
                MethodChoice::deserialize(table).map(WrittenMethod)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl StudyFile {
    /// Reads a study file.
    pub fn read(path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::Input { place: path.display().to_string(), reason };
        let details = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused(
                "there is no such file; `boscage init` writes one to begin with".to_string(),
            ),
            _ => refused(error.to_string()),
        })?;
        if details.is_dir() {
            return Err(refused("it is a folder; give a study file".to_string()));
        }
        if details.len() > MOST_BYTES {
            return Err(refused(format!("a study file has at most {MOST_BYTES} bytes")));
        }
        let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let text =
            String::from_utf8(text).map_err(|_| refused("it is not text in UTF-8".to_string()))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a study file that is, or would be, here.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let refused = |reason: String| Error::Input { place: place.clone(), reason };
        let located = |error: Error| match error {
            Error::Input { .. } => error,
            other => refused(other.to_string()),
        };
        let written: Written = toml::from_str(text)
            .map_err(|error| refused(error.to_string().trim_end().to_string()))?;
        let stem = path
            .file_stem()
            .map_or_else(|| "study".to_string(), |stem| stem.to_string_lossy().into_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let storage = match written.storage {
            Some(storage) => Location::parse(&storage).map_err(located)?.in_folder(&folder),
            None => Location::Sqlite(path.with_extension("db")),
        };
        let name = written.name.unwrap_or(stem);
        check_name(&name).map_err(located)?;
        let choice = match written.method {
            None => MethodChoice { name: METHOD.to_string(), settings: Map::new() },
            Some(WrittenMethod(choice)) => choice,
        };
        let definition = (|| {
            let definition = Definition {
                format: FORMAT,
                goal: written.goal,
                space: StudySpace::new(written.parameters, written.forbidden)?,
                method: choice.resolve()?,
                choice,
                seed: written.seed,
                program: written.program,
                evaluation: written.evaluation,
                failure: written.failure,
                budget: written.budget,
                workers: written.workers,
                start: written.start,
            };
            definition.validate()?;
            Ok(definition)
        })()
        .map_err(located)?;
        Ok(Self { name, storage, folder, definition })
    }
}

/// Refuses names that no store takes.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let refused =
        |reason: &str| Err(Error::Study { reason: format!("the study's name {name:?} {reason}") });
    match name {
        "" => refused("is empty; give it one"),
        _ if name.chars().count() > 512 => refused("is longer than 512 characters"),
        _ if name.contains(char::is_control) => refused("has control characters; remove them"),
        _ => Ok(()),
    }
}

/// One difference between two definitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What differs: `parameters.rate.high`.
    pub path: String,
    /// How it was; none if it was not there.
    pub before: Option<Json>,
    /// How it is; none if it is not there.
    pub after: Option<Json>,
    /// Why the study cannot go on with it; none if it can.
    pub conflict: Option<&'static str>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |json: &Option<Json>| {
            json.as_ref().map_or("not there".to_string(), ToString::to_string)
        };
        write!(f, "  {}: {} → {}", self.path, shown(&self.before), shown(&self.after))?;
        match self.conflict {
            Some(conflict) => write!(f, "  ({conflict})"),
            None => Ok(()),
        }
    }
}

impl Definition {
    /// What differs in `other`.
    pub fn differences(&self, other: &Definition) -> Vec<Difference> {
        let mut found = Vec::new();
        let note =
            |found: &mut Vec<Difference>, path: &str, before: Json, after: Json, conflict| {
                if before != after {
                    let shown = |json: Json| (!json.is_null()).then_some(json);
                    found.push(Difference {
                        path: path.to_string(),
                        before: shown(before),
                        after: shown(after),
                        conflict,
                    });
                }
            };
        let goal = |definition: &Definition| definition.goal.name().into();
        note(
            &mut found,
            "goal",
            goal(self),
            goal(other),
            Some("outcomes would mean something else"),
        );
        note(&mut found, "seed", self.seed.into(), other.seed.into(), None);
        compare_spaces(&self.space, &other.space, &mut found);
        let part = |value: serde_json::Result<Json>| value.unwrap_or_default();
        let parts = |definition: &Definition| {
            [
                ("method", part(serde_json::to_value(&definition.choice))),
                ("program", part(serde_json::to_value(&definition.program))),
                ("evaluation", part(serde_json::to_value(&definition.evaluation))),
                ("failure", part(serde_json::to_value(&definition.failure))),
                ("budget", part(serde_json::to_value(&definition.budget))),
                ("workers", part(serde_json::to_value(&definition.workers))),
                ("start", part(serde_json::to_value(&definition.start))),
            ]
        };
        for ((path, before), (_, after)) in parts(self).into_iter().zip(parts(other)) {
            let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
            flatten(path, &before, &mut old);
            flatten(path, &after, &mut new);
            let paths: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for path in paths {
                let value =
                    |side: &BTreeMap<String, Json>| side.get(path).cloned().unwrap_or_default();
                note(&mut found, path, value(&old), value(&new), None);
            }
        }
        found
    }
}

/// The leaves of a table, each with its path.
fn flatten(path: &str, json: &Json, leaves: &mut BTreeMap<String, Json>) {
    match json {
        Json::Object(table) => {
            for (key, value) in table {
                flatten(&format!("{path}.{key}"), value, leaves);
            }
        }
        Json::Null => {}
        leaf => drop(leaves.insert(path.to_string(), leaf.clone())),
    }
}

fn compare_spaces(before: &StudySpace, after: &StudySpace, found: &mut Vec<Difference>) {
    const MISSING: &str = "earlier trials have no value for it";
    let json = |parameter: &StudyParameter| serde_json::to_value(parameter).unwrap_or_default();
    for old in before.parameters() {
        let path = format!("parameters.{}", old.name);
        let Some(new) = after.index_of(&old.name).and_then(|d| after.parameters().get(d)) else {
            found.push(Difference {
                path,
                before: Some(json(old)),
                after: None,
                conflict: Some("earlier trials have it; give it a range of one value instead"),
            });
            continue;
        };
        let (mut leaves, mut others) = (BTreeMap::new(), BTreeMap::new());
        flatten(&path, &json(old), &mut leaves);
        flatten(&path, &json(new), &mut others);
        let paths: std::collections::BTreeSet<&String> =
            leaves.keys().chain(others.keys()).collect();
        for leaf in paths {
            let (was, is) = (leaves.get(leaf), others.get(leaf));
            if was == is {
                continue;
            }
            let key = leaf.rsplit('.').next().unwrap_or(leaf);
            let conflict = conflict(key, &old.kind, &new.kind);
            found.push(Difference {
                path: leaf.clone(),
                before: was.cloned(),
                after: is.cloned(),
                conflict,
            });
        }
    }
    for new in after.parameters() {
        if before.index_of(&new.name).is_none() {
            let path = format!("parameters.{}", new.name);
            found.push(Difference {
                path,
                before: None,
                after: Some(json(new)),
                conflict: Some(MISSING),
            });
        }
    }
    let order = |space: &StudySpace| space.names().map(ToString::to_string).collect::<Vec<_>>();
    let sorted = |space: &StudySpace| {
        let mut names = order(space);
        names.sort();
        names
    };
    if sorted(before) == sorted(after) && order(before) != order(after) {
        found.push(Difference {
            path: "order of the parameters".to_string(),
            before: Some(order(before).into()),
            after: Some(order(after).into()),
            conflict: None,
        });
    }
    let texts = |space: &StudySpace| {
        space
            .forbidden()
            .iter()
            .map(|condition| Json::from(condition.text()))
            .collect::<Vec<Json>>()
    };
    if texts(before) != texts(after) {
        found.push(Difference {
            path: "forbidden".to_string(),
            before: Some(texts(before).into()),
            after: Some(texts(after).into()),
            conflict: None,
        });
    }
}

/// Why a study cannot go on with a parameter that changed in this; none if it can.
fn conflict(key: &str, old: &Kind, new: &Kind) -> Option<&'static str> {
    const NARROWER: Option<&str> = Some("earlier trials may lie outside");
    const OTHER: Option<&str> = Some("earlier trials may not fit");
    match (key, old, new) {
        ("default", ..) => None,
        ("low", Kind::Real { low: a, step: None, .. }, Kind::Real { low: b, .. }) => {
            if b <= a {
                None
            } else {
                NARROWER
            }
        }
        ("high", Kind::Real { high: a, .. }, Kind::Real { high: b, .. }) => {
            if b >= a {
                None
            } else {
                NARROWER
            }
        }
        ("low", Kind::Integer { low: a, step, .. }, Kind::Integer { low: b, .. }) => {
            if b <= a && a.abs_diff(*b).is_multiple_of((*step).max(1)) { None } else { NARROWER }
        }
        ("high", Kind::Integer { high: a, .. }, Kind::Integer { high: b, .. }) => {
            if b >= a {
                None
            } else {
                NARROWER
            }
        }
        ("choices", Kind::Categorical { choices: a }, Kind::Categorical { choices: b })
        | ("levels", Kind::Ordinal { levels: a }, Kind::Ordinal { levels: b }) => {
            if a.iter().all(|value| b.contains(value)) { None } else { OTHER }
        }
        _ => OTHER,
    }
}
