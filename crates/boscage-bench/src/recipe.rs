//! Recipes: an experiment as a TOML file, read strictly.
//!
//! A recipe names problems, methods, seeds and a budget; [`Recipe::plan`] turns it, with what the command line changes, into a
//! [`Plan`]. Every error names the recipe, the place in it, what is wrong and what would be right.
//!
//! ```toml
//! name = "star25"
//! title = "Star-25"
//! seeds = 25                  # 0 to 24; or a list, [0, 3]; or { first = 10, count = 5 }
//! trials = 990                # points chosen after the initial design
//! initial_points = 10
//!
//! [problems.star]             # a label, used for folders and legends
//! preset = "star25"           # or kind = "additive", "closed-form", "rotated", "discrete", "penalised", "linear-ranges" or "program" with its settings
//! levels = 51                 # other keys change the preset, tables key by key
//!
//! [methods.tree-few]
//! name = "tree"               # if it is left out, the label is the name
//! settings = { structure.tree.samples = 50 }           # "none" stands for an absent value
//! vary = { "zoom.levels" = [3, 4] }                   # one method for each value, here tree-few-3 and tree-few-4
//!
//! [profiles.quick]            # any of seeds, trials, initial_points, problems and methods (labels to keep)
//! seeds = 5
//! trials = 300
//! ```

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use boscage::structure::Structure;
use boscage::{Method, Optimizer};
use boscage_study::MethodChoice;
use boscage_study::method::merge;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::plan::{Observations, Plan, PlannedMethod, PlannedProblem, is_label};
use crate::problem::{Problem, ProblemSpec};
use crate::problems::presets::{preset, presets};

/// Points of the initial design if a recipe does not say.
const INITIAL_POINTS: u64 = 10;

/// The most seeds of an experiment, and the most variants of one problem or method: more is a slip.
const MOST: u64 = 10_000;

/// The most trials of a run and the most points of an initial design: more is a slip.
const MOST_TRIALS: u64 = 1_000_000;

/// The recipes that come with the program, by name.
const EMBEDDED: [(&str, &str); 14] = [
    ("star25", include_str!("../../../experiments/star25/recipe.toml")),
    ("partition12", include_str!("../../../experiments/partition12/recipe.toml")),
    ("grid3x3", include_str!("../../../experiments/grid3x3/recipe.toml")),
    ("ancestry132", include_str!("../../../experiments/ancestry132/recipe.toml")),
    ("grid-scaling", include_str!("../../../experiments/grid-scaling/recipe.toml")),
    ("hartmann6", include_str!("../../../experiments/hartmann6/recipe.toml")),
    ("hartmann6-14", include_str!("../../../experiments/hartmann6-14/recipe.toml")),
    ("camelback", include_str!("../../../experiments/camelback/recipe.toml")),
    ("camelback-8", include_str!("../../../experiments/camelback-8/recipe.toml")),
    ("styblinski-tang-250", include_str!("../../../experiments/styblinski-tang-250/recipe.toml")),
    ("default-settings", include_str!("../../../experiments/default-settings/recipe.toml")),
    ("rivals", include_str!("../../../experiments/rivals/recipe.toml")),
    ("rivals-drawn", include_str!("../../../experiments/rivals-drawn/recipe.toml")),
    ("ablation", include_str!("../../../experiments/ablation/recipe.toml")),
];

/// The recipes that come with the program: name and text.
pub fn embedded() -> &'static [(&'static str, &'static str)] {
    &EMBEDDED
}

/// A recipe that could be read and makes sense on its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    origin: String,
    folder: PathBuf,
    table: Table,
}

/// What the command line changes in a recipe. Later fields win over the profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// A profile of the recipe.
    pub profile: Option<String>,
    /// The seeds.
    pub seeds: Option<Seeds>,
    /// Points chosen after the initial design.
    pub trials: Option<u64>,
    /// Points of the initial design.
    pub initial_points: Option<u64>,
    /// Labels of the problems to keep.
    pub problems: Option<Vec<String>>,
    /// Labels of the methods to keep, or names of methods to add with their own settings.
    pub methods: Option<Vec<String>>,
    /// Paths in the recipe and what to set there, as TOML (text that is no TOML stands for itself).
    pub set: Vec<(String, String)>,
}

/// Seeds, as written on a command line: `5` for 0 to 4, `0,3,7` for these, `10-14` for these five.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| {
            part.trim()
                .parse::<u64>()
                .map_err(|_| format!("{part:?} is not a whole number of at least 0"))
        };
        if let Some((first, last)) = text.split_once('-').filter(|(first, _)| !first.is_empty()) {
            let (first, last) = (number(first)?, number(last)?);
            let count = last.checked_sub(first).ok_or("the last seed is before the first")?;
            return range(first, count.saturating_add(1));
        }
        if text.contains(',') {
            return distinct(text.split(',').map(number).collect::<std::result::Result<_, _>>()?);
        }
        range(0, number(text)?)
    }
}

fn range(first: u64, count: u64) -> std::result::Result<Seeds, String> {
    match count {
        0 => Err("there must be at least one seed".to_string()),
        1..=MOST => match first.checked_add(count) {
            Some(end) => Ok(Seeds((first..end).collect())),
            None => Err("the last seed is too large".to_string()),
        },
        _ => Err(format!("{count} seeds are too many; at most {MOST} can be run at once")),
    }
}

fn distinct(seeds: Vec<u64>) -> std::result::Result<Seeds, String> {
    if seeds.is_empty() {
        return Err("there must be at least one seed".to_string());
    }
    match seeds.iter().enumerate().find(|(place, seed)| seeds[..*place].contains(seed)) {
        Some((_, twice)) => Err(format!("the seed {twice} is there twice")),
        None => Ok(Seeds(seeds)),
    }
}

/// What a recipe consists of, before any problem is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Name of the recipe.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The problems.
    pub problems: Vec<OutlinedProblem>,
    /// The methods.
    pub methods: Vec<OutlinedMethod>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Points of the initial design.
    pub initial_points: u64,
    /// Points chosen after that.
    pub trials: u64,
}

/// A problem of an [`Outline`].
#[derive(Debug, Clone, PartialEq)]
pub struct OutlinedProblem {
    /// Its label.
    pub label: String,
    /// What it is.
    pub title: String,
    /// All that defines it.
    pub spec: ProblemSpec,
    entry: String,
}

/// A method of an [`Outline`].
#[derive(Debug, Clone, PartialEq)]
pub struct OutlinedMethod {
    /// Its label.
    pub label: String,
    /// The method with all its settings.
    pub method: Method,
    /// What it is told.
    pub observations: Observations,
    entry: String,
}

impl OutlinedMethod {
    /// All that defines it, as stored with its results.
    pub fn settings(&self) -> Result<Json> {
        let mut settings = to_json(&self.method)?;
        if let (Observations::NoiseFree, Some(settings)) =
            (self.observations, settings.as_object_mut())
        {
            settings.insert("noise_free".to_string(), true.into());
        }
        Ok(settings)
    }

    /// A new run of it on a problem. An oracle is told the problem's truth, unless its settings have one.
    fn build(&self, problem: &dyn Problem) -> Result<Box<dyn Optimizer>> {
        let mut method = self.method.clone();
        if let Method::Oracle(settings) = &mut method
            && settings.structure == Structure::Given(None)
        {
            let Some(truth) = problem.truth() else {
                return Err(Error::problem(
                    "this problem was not drawn from an additive GP, so there is no truth to tell an oracle",
                ));
            };
            settings.noise_std = truth.noise_std;
            settings.structure = Structure::Given(Some(Box::new(truth)));
        }
        Ok(method.build(problem.space().clone())?)
    }
}

impl Recipe {
    /// Reads a recipe. Errors call it by its `origin`; relative paths in it begin at the present folder.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        Self::parse_in(text, origin, PathBuf::from("."))
    }

    /// Reads a recipe from a file. Relative paths in it begin at the file's folder.
    pub fn load(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(Error::file(path, "reading the recipe"))?;
        // A path without a folder has an empty parent, in which no program can be started.
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).to_path_buf();
        Self::parse_in(&text, &path.display().to_string(), folder)
    }

    /// The recipe of this name that comes with the program.
    pub fn embedded(name: &str) -> Result<Self> {
        match embedded().iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, &format!("the recipe {name}")),
            None => Err(Error::Recipe {
                origin: name.to_string(),
                reason: format!(
                    "this is neither a file nor a recipe that comes with boscage{}",
                    choices(name, embedded().iter().map(|(name, _)| *name))
                ),
            }),
        }
    }

    fn parse_in(text: &str, origin: &str, folder: PathBuf) -> Result<Self> {
        let table = text.parse::<Table>().map_err(|error| {
            let place = error.span().map_or(String::new(), |span| {
                let before = text.get(..span.start).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                format!("line {line}, column {column}: ")
            });
            let reason =
                format!("{place}this is not valid TOML: {}", error.message().replace('\n', "; "));
            Error::Recipe { origin: origin.to_string(), reason }
        })?;
        let recipe = Self { origin: origin.to_string(), folder, table };
        recipe.outline(&Overrides::default())?;
        for profile in recipe.profiles() {
            recipe.outline(&Overrides { profile: Some(profile), ..Overrides::default() })?;
        }
        Ok(recipe)
    }

    /// The file or the name it came from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Names of its profiles.
    pub fn profiles(&self) -> Vec<String> {
        let profiles = self.table.get("profiles").and_then(Value::as_table);
        profiles.map_or(Vec::new(), |profiles| profiles.keys().cloned().collect())
    }

    /// What it consists of with these changes. Builds no problem and reads no file.
    pub fn outline(&self, overrides: &Overrides) -> Result<Outline> {
        let mut table = self.table.clone();
        let kept = match &overrides.profile {
            Some(profile) => self.apply_profile(&mut table, profile)?,
            None => [None, None],
        };
        for (path, value) in &overrides.set {
            self.set(&mut table, path, value)?;
        }
        let mut outline = self.read(&table)?;
        if let Some(Seeds(seeds)) = &overrides.seeds {
            outline.seeds =
                distinct(seeds.clone()).map_err(|reason| self.error("--seeds", reason))?.0;
        }
        if let Some(trials) = overrides.trials {
            if trials == 0 {
                return Err(self.error("--trials", "it must be at least 1"));
            }
            outline.trials = trials;
        }
        outline.initial_points = overrides.initial_points.unwrap_or(outline.initial_points);
        for (key, number) in
            [("trials", outline.trials), ("initial_points", outline.initial_points)]
        {
            if number > MOST_TRIALS {
                let reason = format!("{number} are too many; at most {MOST_TRIALS} can be run");
                return Err(self.error(key, reason));
            }
        }

        let [kept_problems, kept_methods] = kept;
        let profile = overrides.profile.as_deref().unwrap_or_default();
        match (&overrides.problems, kept_problems) {
            (Some(wanted), _) => self.keep(&mut outline.problems, wanted, "--problems")?,
            (None, Some(wanted)) => {
                self.keep(&mut outline.problems, &wanted, &format!("profiles.{profile}.problems"))?;
            }
            (None, None) => {}
        }
        match (&overrides.methods, kept_methods) {
            (Some(wanted), _) => {
                for name in wanted {
                    let known = Method::NAMES.iter().any(|known| known.name == name);
                    if known && !outline.methods.iter().any(|method| method.is_called(name)) {
                        outline.methods.push(OutlinedMethod {
                            label: name.clone(),
                            method: Method::named(name)?,
                            observations: Observations::Noisy,
                            entry: name.clone(),
                        });
                    }
                }
                self.keep(&mut outline.methods, wanted, "--methods")?;
            }
            (None, Some(wanted)) => {
                self.keep(&mut outline.methods, &wanted, &format!("profiles.{profile}.methods"))?;
            }
            (None, None) => {}
        }
        Ok(outline)
    }

    /// The plan with these changes. Every problem is checked once, with the first seed, so that nothing runs if anything is
    /// wrong.
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan> {
        let outline = self.outline(overrides)?;
        let first = outline.seeds.first().copied().unwrap_or_default();
        for problem in &outline.problems {
            let place = format!("problems.{}", problem.entry);
            let built = problem
                .spec
                .build(first, &self.folder)
                .map_err(|error| self.error(&place, error))?;
            for method in &outline.methods {
                let place = format!("methods.{}", method.entry);
                method.build(built.as_ref()).map_err(|error| self.error(&place, error))?;
            }
        }
        let problems = outline.problems.into_iter().map(|problem| {
            let (spec, folder) = (problem.spec, self.folder.clone());
            Ok(PlannedProblem {
                label: problem.label,
                title: problem.title,
                settings: to_json(&spec)?,
                build: Arc::new(move |seed| spec.build(seed, &folder)),
            })
        });
        let methods = outline.methods.into_iter().map(|method| {
            Ok(PlannedMethod {
                label: method.label.clone(),
                settings: method.settings()?,
                observations: method.observations,
                build: Arc::new(move |problem| method.build(problem)),
            })
        });
        Ok(Plan {
            name: outline.name,
            title: outline.title,
            problems: problems.collect::<Result<_>>()?,
            methods: methods.collect::<Result<_>>()?,
            seeds: outline.seeds,
            initial_points: outline.initial_points,
            trials: outline.trials,
        })
    }

    fn error(&self, place: &str, reason: impl Display) -> Error {
        let separator = if place.is_empty() { "" } else { ": " };
        Error::Recipe { origin: self.origin.clone(), reason: format!("{place}{separator}{reason}") }
    }

    /// Puts a profile's numbers in the place of the recipe's; gives the labels that it keeps.
    fn apply_profile(&self, table: &mut Table, name: &str) -> Result<[Option<Vec<String>>; 2]> {
        let profiles = self.section(table, "").section("profiles")?;
        let Some(profile) = profiles.as_ref().map(|all| all.section(name)).transpose()?.flatten()
        else {
            let reason = format!("there is no profile {name:?}{}", choices(name, self.profiles()));
            return Err(self.error("profiles", reason));
        };
        profile.check_keys(&["seeds", "trials", "initial_points", "problems", "methods"], "")?;
        // Read here so that errors name the profile.
        profile.seeds()?;
        profile.number("trials", 1)?;
        profile.number("initial_points", 0)?;
        let kept = [profile.labels("problems")?, profile.labels("methods")?];
        let changed: Vec<(String, Value)> = ["seeds", "trials", "initial_points"]
            .into_iter()
            .filter_map(|key| profile.table.get(key).map(|value| (key.to_string(), value.clone())))
            .collect();
        table.extend(changed);
        Ok(kept)
    }

    /// Puts a value at a path of the recipe.
    fn set(&self, table: &mut Table, path: &str, text: &str) -> Result<()> {
        let value =
            format!("value = {text}").parse::<Table>().ok().filter(|parsed| parsed.len() == 1);
        let value = value.and_then(|mut parsed| parsed.remove("value"));
        let value = value.unwrap_or_else(|| Value::String(text.to_string()));
        let place = format!("--set {path}");
        let keys = self.keys(table, path).map_err(|reason| self.error(&place, reason))?;
        let mut inner = table;
        let Some((last, outer)) = keys.split_last() else {
            return Err(self.error(&place, "the path is empty"));
        };
        for key in outer {
            let next = inner.entry(key).or_insert_with(|| Value::Table(Table::new()));
            inner = match next {
                Value::Table(next) => next,
                other => {
                    let reason = format!(
                        "{key:?} is {}, not a table, so nothing can be set in it",
                        describe(other)
                    );
                    return Err(self.error(&place, reason));
                }
            };
        }
        inner.insert(last.clone(), value);
        Ok(())
    }

    /// The keys of a path. Labels may contain dots, and so do the keys of `vary`.
    fn keys(&self, table: &Table, path: &str) -> std::result::Result<Vec<String>, String> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let settable =
            ["name", "title", "seeds", "trials", "initial_points", "problems", "methods"];
        if !settable.contains(&first) {
            return Err(format!("unknown key {first:?}{}", choices(first, settable)));
        }
        let Some(rest) = rest else { return Ok(vec![first.to_string()]) };
        if !["problems", "methods"].contains(&first) {
            return Ok(path.split('.').map(str::to_string).collect());
        }
        let labels = table.get(first).and_then(Value::as_table);
        let labels: Vec<&String> = labels.map(|labels| labels.keys().collect()).unwrap_or_default();
        let of_path = |label: &&&String| {
            rest.strip_prefix(label.as_str())
                .is_some_and(|after| after.is_empty() || after.starts_with('.'))
        };
        let Some(label) = labels.iter().filter(of_path).max_by_key(|label| label.len()) else {
            let name = rest.split('.').next().unwrap_or_default();
            return Err(format!("there is no {name:?} in {first}{}", choices(name, labels)));
        };
        let mut keys = vec![first.to_string(), label.to_string()];
        if let Some(inner) = rest[label.len()..].strip_prefix('.') {
            match inner.strip_prefix("vary.") {
                Some(varied) => keys.extend(["vary".to_string(), varied.to_string()]),
                None => keys.extend(inner.split('.').map(str::to_string)),
            }
        }
        Ok(keys)
    }

    fn section<'a>(&'a self, table: &'a Table, path: &str) -> Section<'a> {
        Section { recipe: self, path: path.to_string(), table }
    }

    /// Reads the whole recipe from its table.
    fn read(&self, table: &Table) -> Result<Outline> {
        let top = self.section(table, "");
        let keys = [
            "name",
            "title",
            "seeds",
            "trials",
            "initial_points",
            "problems",
            "methods",
            "profiles",
        ];
        top.check_keys(&keys, "")?;
        let name = top.required("name", top.text("name")?)?;
        if !is_label(name) {
            return Err(top.error("name", bad_label(name)));
        }
        let problems =
            top.entries("problems")?.iter().map(Section::problem).collect::<Result<Vec<_>>>()?;
        let methods =
            top.entries("methods")?.iter().map(Section::method).collect::<Result<Vec<_>>>()?;
        let (problems, methods) = (problems.concat(), methods.concat());
        self.check_distinct("problems", problems.iter().map(|problem| &problem.label))?;
        self.check_distinct("methods", methods.iter().map(|method| &method.label))?;
        Ok(Outline {
            name: name.to_string(),
            title: top.text("title")?.unwrap_or(name).to_string(),
            problems,
            methods,
            seeds: top.required("seeds", top.seeds()?)?,
            initial_points: top.number("initial_points", 0)?.unwrap_or(INITIAL_POINTS),
            trials: top.required("trials", top.number("trials", 1)?)?,
        })
    }

    /// Variants may meet another label, and folders must differ even where letters' cases do not count.
    fn check_distinct<'a>(
        &self,
        place: &str,
        labels: impl Iterator<Item = &'a String>,
    ) -> Result<()> {
        let mut seen: Vec<&String> = Vec::new();
        for label in labels {
            if let Some(other) = seen.iter().find(|other| other.eq_ignore_ascii_case(label)) {
                let reason =
                    format!("the labels {other:?} and {label:?} would share a folder; rename one");
                return Err(self.error(place, reason));
            }
            seen.push(label);
        }
        Ok(())
    }

    /// Keeps the entries that are called by one of these names, in the order of the names.
    fn keep<T: Labelled + Clone>(
        &self,
        all: &mut Vec<T>,
        wanted: &[String],
        place: &str,
    ) -> Result<()> {
        let mut kept: Vec<T> = Vec::new();
        for name in wanted {
            let mut found = all.iter().filter(|entry| entry.is_called(name)).peekable();
            if found.peek().is_none() {
                let reason = format!(
                    "there is no {name:?}{}",
                    choices(name, all.iter().map(Labelled::label))
                );
                return Err(self.error(place, reason));
            }
            for entry in found {
                if !kept.iter().any(|other| other.label() == entry.label()) {
                    kept.push(entry.clone());
                }
            }
        }
        if kept.is_empty() {
            return Err(self.error(place, "it keeps nothing; name at least one label"));
        }
        *all = kept;
        Ok(())
    }
}

/// What is called by its own label, or by that of the entry it is a variant of.
trait Labelled {
    fn label(&self) -> &str;
    fn is_called(&self, name: &str) -> bool;
}

impl Labelled for OutlinedProblem {
    fn label(&self) -> &str {
        &self.label
    }
    fn is_called(&self, name: &str) -> bool {
        self.label == name || self.entry == name
    }
}

impl Labelled for OutlinedMethod {
    fn label(&self) -> &str {
        &self.label
    }
    fn is_called(&self, name: &str) -> bool {
        self.label == name || self.entry == name
    }
}

/// A table of a recipe and its place there.
struct Section<'a> {
    recipe: &'a Recipe,
    path: String,
    table: &'a Table,
}

impl<'a> Section<'a> {
    fn place(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_string(),
            (path, "") => path.to_string(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    fn error(&self, key: &str, reason: impl Display) -> Error {
        self.recipe.error(&self.place(key), reason)
    }

    /// Its last key: the label of a problem or method.
    fn label(&self) -> &str {
        self.path.split_once('.').map_or(&self.path, |(_, label)| label)
    }

    fn check_keys(&self, known: &[&str], hint: &str) -> Result<()> {
        match self.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let reason = format!("unknown key {key:?}{}{hint}", choices(key, known));
                Err(self.error("", reason))
            }
            None => Ok(()),
        }
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.error("", format!("the key {key:?} is missing")))
    }

    fn wrong_type(&self, key: &str, value: &Value, wanted: &str) -> Error {
        self.error(key, format!("it must be {wanted}, but it is {}", describe(value)))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(key, other, "a text in quotes")),
        }
    }

    fn number(&self, key: &str, least: u64) -> Result<Option<u64>> {
        self.table.get(key).map(|value| self.whole(key, value, least)).transpose()
    }

    fn whole(&self, key: &str, value: &Value, least: u64) -> Result<u64> {
        match value {
            Value::Integer(number) => {
                u64::try_from(*number).ok().filter(|number| *number >= least).ok_or_else(|| {
                    self.error(key, format!("it is {number}, but it must be at least {least}"))
                })
            }
            other => {
                Err(self.wrong_type(key, other, &format!("a whole number of at least {least}")))
            }
        }
    }

    fn section(&self, key: &str) -> Result<Option<Section<'a>>> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => {
                Ok(Some(Section { recipe: self.recipe, path: self.place(key), table }))
            }
            Some(other) => Err(self.wrong_type(key, other, "a table")),
        }
    }

    fn seeds(&self) -> Result<Option<Vec<u64>>> {
        let seeds = match self.table.get("seeds") {
            None => return Ok(None),
            Some(Value::Array(list)) => {
                let list = list.iter().map(|seed| self.whole("seeds", seed, 0));
                distinct(list.collect::<Result<_>>()?)
            }
            Some(Value::Table(table)) => {
                let range_of = Section { recipe: self.recipe, path: self.place("seeds"), table };
                range_of.check_keys(&["first", "count"], "")?;
                let first = range_of.required("first", range_of.number("first", 0)?)?;
                range(first, range_of.required("count", range_of.number("count", 1)?)?)
            }
            Some(count @ Value::Integer(_)) => range(0, self.whole("seeds", count, 1)?),
            Some(other) => {
                let wanted = "a number of seeds, a list of seeds or { first = …, count = … }";
                return Err(self.wrong_type("seeds", other, wanted));
            }
        };
        seeds.map(|Seeds(seeds)| Some(seeds)).map_err(|reason| self.error("seeds", reason))
    }

    fn labels(&self, key: &str) -> Result<Option<Vec<String>>> {
        let wanted = "a list of labels, each in quotes";
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => {
                let text = |label: &Value| match label {
                    Value::String(label) => Ok(label.clone()),
                    other => Err(self.wrong_type(key, other, wanted)),
                };
                list.iter().map(text).collect::<Result<_>>().map(Some)
            }
            Some(other) => Err(self.wrong_type(key, other, wanted)),
        }
    }

    /// The problems or the methods, each a table under a label.
    fn entries(&self, key: &str) -> Result<Vec<Section<'a>>> {
        let all = self.section(key)?.filter(|all| !all.table.is_empty()).ok_or_else(|| {
            let one = key.trim_end_matches('s');
            self.error("", format!("there are no {key}; add a {one} as [{key}.LABEL]"))
        })?;
        let mut entries = Vec::new();
        for label in all.table.keys() {
            if !is_label(label) {
                return Err(all.error("", bad_label(label)));
            }
            entries.extend(all.section(label)?);
        }
        Ok(entries)
    }

    /// The problems that a `[problems.LABEL]` stands for.
    fn problem(&self) -> Result<Vec<OutlinedProblem>> {
        let kinds = [
            "additive",
            "closed-form",
            "rotated",
            "discrete",
            "penalised",
            "linear-ranges",
            "program",
        ];
        let (title, kind_given) = (self.text("title")?, self.text("kind")?);
        let (kind, base, summary) = match self.text("preset")? {
            Some(name) => {
                let Some(preset) = preset(name) else {
                    let reason = format!(
                        "there is no preset {name:?}{}",
                        choices(name, presets().iter().map(|p| p.name))
                    );
                    return Err(self.error("preset", reason));
                };
                let mut base = to_json(&preset.spec)?;
                let kind = base.as_object_mut().and_then(|base| base.remove("kind"));
                let own = kind.as_ref().and_then(Json::as_str).unwrap_or_default().to_string();
                if let Some(kind) = kind_given
                    && kind != own
                {
                    let reason = format!(
                        "it is {kind:?}, but the preset is of kind {own:?}; leave one of them out"
                    );
                    return Err(self.error("kind", reason));
                }
                (own, base, Some(preset.summary))
            }
            None => match kind_given {
                Some(kind) if kinds.contains(&kind) => {
                    (kind.to_string(), Json::Object(Map::new()), None)
                }
                Some(kind) => {
                    let reason = format!("unknown kind {kind:?}{}", choices(kind, kinds));
                    return Err(self.error("kind", reason));
                }
                None => {
                    let reason = "neither a preset nor a kind is given; `boscage bench problems` lists the presets, the \
                                  kinds are additive, closed-form, rotated, discrete, penalised, linear-ranges and program";
                    return Err(self.error("", reason));
                }
            },
        };
        // Values of a program's own may well be called "none".
        let none = if kind == "program" { Json::from("none") } else { Json::Null };
        let change = self.settings(self.table, &["title", "preset", "kind", "vary"], &none)?;
        let title = title.or(summary).unwrap_or(self.label());
        let variants = self.variants(change)?.into_iter().map(|variant| {
            let mut whole = base.clone();
            // Another shape has other settings: those of the shape before would only be in the way.
            let shape = |value: &Json| value.pointer("/graph/shape").cloned();
            if shape(&variant.change).is_some_and(|new| Some(new) != shape(&whole))
                && let Some(whole) = whole.as_object_mut()
            {
                whole.remove("graph");
            }
            merge(&mut whole, &variant.change);
            Ok(OutlinedProblem {
                label: variant.label,
                title: format!("{title}{}", variant.title),
                spec: self.spec(&kind, whole)?,
                entry: self.label().to_string(),
            })
        });
        variants.collect()
    }

    /// The problem that these settings describe. Each kind is read by its own type, which can say where it went wrong.
    fn spec(&self, kind: &str, whole: Json) -> Result<ProblemSpec> {
        match kind {
            "additive" => self.typed(whole).map(ProblemSpec::Additive),
            "closed-form" => self.typed(whole).map(ProblemSpec::ClosedForm),
            "rotated" => self.typed(whole).map(ProblemSpec::Rotated),
            "discrete" => self.typed(whole).map(ProblemSpec::Discrete),
            "penalised" => self.typed(whole).map(ProblemSpec::Penalised),
            "linear-ranges" => self.typed(whole).map(ProblemSpec::LinearRanges),
            _ => self.typed(whole).map(ProblemSpec::Program),
        }
    }

    fn typed<T: DeserializeOwned>(&self, value: Json) -> Result<T> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            self.error(
                if path == "." { "" } else { &path },
                in_plain_words(&error.inner().to_string()),
            )
        })
    }

    /// The methods that a `[methods.LABEL]` stands for.
    fn method(&self) -> Result<Vec<OutlinedMethod>> {
        self.check_keys(
            &["name", "settings", "noise_free", "vary"],
            "; settings of the method go into `settings`",
        )?;
        let observations = match self.table.get("noise_free") {
            None | Some(Value::Boolean(false)) => Observations::Noisy,
            Some(Value::Boolean(true)) => Observations::NoiseFree,
            Some(_) => return Err(self.error("noise_free", "it must be true or false")),
        };
        let name = self.text("name")?;
        let (key, name) = (name.map_or("", |_| "name"), name.unwrap_or(self.label()));
        let Some(named) = Method::named(name).ok() else {
            let reason = format!(
                "there is no method {name:?}{}",
                choices(name, Method::NAMES.iter().map(|known| known.name))
            );
            return Err(self.error(key, reason));
        };
        let known = to_json(&named)?.get("settings").cloned().unwrap_or_default();
        let change = match self.section("settings")? {
            Some(settings) => settings.settings(settings.table, &[], &Json::Null)?,
            None => Map::new(),
        };
        let variants = self.variants(change)?.into_iter().map(|variant| {
            self.check_settings(&known, &variant.change, "settings")?;
            let settings = variant.change.as_object().cloned().unwrap_or_default();
            let choice = MethodChoice { name: name.to_string(), settings };
            let method = choice.resolve().map_err(|error| match error {
                // The place says which method it is, and can say which setting.
                boscage_study::Error::Method { reason, .. } => {
                    match reason.strip_prefix("setting ").and_then(|rest| rest.split_once(": ")) {
                        Some((path, reason)) => {
                            self.error(&format!("settings.{path}"), in_plain_words(reason))
                        }
                        None => self.error("settings", reason),
                    }
                }
                other => self.error("settings", other),
            })?;
            let entry = self.label().to_string();
            Ok(OutlinedMethod { label: variant.label, method, observations, entry })
        });
        variants.collect()
    }

    /// Refuses settings that the method's own do not have. Where these hold a choice between alternatives, its type decides.
    fn check_settings(&self, known: &Json, change: &Json, path: &str) -> Result<()> {
        let (known, change) = match (known, change) {
            (Json::Object(known), Json::Object(change)) => (known, change),
            (Json::Null, Json::Object(change)) if path == "settings" => {
                match change.keys().next() {
                    Some(key) => {
                        return Err(self.error(
                            path,
                            format!("the method has no settings, but {key:?} is set"),
                        ));
                    }
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        for (key, value) in change {
            match known.get(key) {
                Some(known) => self.check_settings(known, value, &format!("{path}.{key}"))?,
                None if known.len() == 1 && change.len() == 1 => {}
                None => {
                    let reason = format!("unknown key {key:?}{}", choices(key, known.keys()));
                    return Err(self.error(path, reason));
                }
            }
        }
        Ok(())
    }

    /// A table without some of its keys as JSON.
    fn settings(&self, table: &Table, without: &[&str], none: &Json) -> Result<Map<String, Json>> {
        let kept = table.iter().filter(|(key, _)| !without.contains(&key.as_str()));
        kept.map(|(key, value)| Ok((key.clone(), self.json(key, value, none)?))).collect()
    }

    /// A value as JSON. The text "none" becomes `none`, but not in lists, where it may be a choice.
    fn json(&self, path: &str, value: &Value, none: &Json) -> Result<Json> {
        Ok(match value {
            Value::String(text) if text == "none" => none.clone(),
            Value::String(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Float(number) if number.is_finite() => Json::from(*number),
            Value::Boolean(flag) => Json::from(*flag),
            Value::Table(table) => {
                let inner = |(key, value): (&String, &Value)| {
                    Ok((key.clone(), self.json(&format!("{path}.{key}"), value, none)?))
                };
                Json::Object(table.iter().map(inner).collect::<Result<_>>()?)
            }
            Value::Array(list) => {
                let inner = |value: &Value| match value {
                    Value::String(text) => Ok(Json::from(text.as_str())),
                    other => self.json(path, other, none),
                };
                Json::Array(list.iter().map(inner).collect::<Result<_>>()?)
            }
            Value::Float(_) | Value::Datetime(_) => {
                return Err(self.error(path, format!("{} cannot be used here", describe(value))));
            }
        })
    }

    /// One variant for each combination of the values in `vary`.
    fn variants(&self, change: Map<String, Json>) -> Result<Vec<Variant>> {
        let label = self.label().to_string();
        let mut variants =
            vec![Variant { label, title: String::new(), change: Json::Object(change) }];
        let Some(vary) = self.section("vary")? else { return Ok(variants) };
        for (path, values) in vary.table {
            let values = match values {
                Value::Array(values) if !values.is_empty() => values,
                other => return Err(vary.wrong_type(path, other, "a list of at least one value")),
            };
            if (values.len() * variants.len()) as u64 > MOST {
                return Err(vary.error("", format!("these are more than {MOST} variants")));
            }
            let mut longer = Vec::new();
            for variant in &variants {
                for value in values {
                    let word = match value {
                        Value::String(text) => text.clone(),
                        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
                            value.to_string()
                        }
                        other => {
                            let wanted = "a list of numbers, texts or true and false";
                            return Err(vary.wrong_type(path, other, wanted));
                        }
                    };
                    let label = format!("{}-{word}", variant.label);
                    if !is_label(&label) {
                        return Err(vary.error(path, bad_label(&label)));
                    }
                    let mut change = variant.change.clone();
                    if !put(&mut change, path, vary.json(path, value, &Json::Null)?) {
                        let reason = "the path leads through a value that is not a table";
                        return Err(vary.error(path, reason));
                    }
                    let name = path.rsplit('.').next().unwrap_or(path).replace('_', " ");
                    let title = format!("{}, {name} {word}", variant.title);
                    longer.push(Variant { label, title, change });
                }
            }
            variants = longer;
        }
        Ok(variants)
    }
}

/// An entry with one combination of the values it varies.
struct Variant {
    label: String,
    title: String,
    change: Json,
}

/// Puts a value at a dotted path. False if the path leads through something that is not a table.
fn put(whole: &mut Json, path: &str, value: Json) -> bool {
    let mut inner = whole;
    for key in path.split('.') {
        if inner.is_null() {
            *inner = Json::Object(Map::new());
        }
        let Json::Object(table) = inner else { return false };
        inner = table.entry(key).or_insert(Json::Null);
    }
    *inner = value;
    true
}

fn to_json(value: &impl serde::Serialize) -> Result<Json> {
    serde_json::to_value(value)
        .map_err(|error| Error::problem(format!("it cannot be stored: {error}")))
}

fn bad_label(label: &str) -> String {
    format!(
        "{label:?} cannot be a label: use up to 64 letters, digits and . _ + - and begin with none of . and -"
    )
}

fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {text:?}"),
        Value::Integer(_) | Value::Float(_) => format!("the number {value}"),
        Value::Boolean(_) => value.to_string(),
        Value::Datetime(_) => format!("the date or time {value}"),
        Value::Array(list) if list.is_empty() => "an empty list".to_string(),
        Value::Array(_) => "a list".to_string(),
        Value::Table(_) => "a table".to_string(),
    }
}

/// The end of a message about an unknown name: the nearest known one, and all of them.
pub fn choices<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>) -> String {
    let known: Vec<T> = known.into_iter().collect();
    if known.is_empty() {
        return "; there are none".to_string();
    }
    let distance = |other: &T| strsim::damerau_levenshtein(name, other.as_ref());
    let nearest = known.iter().min_by_key(|other| distance(other));
    let near = nearest.filter(|other| distance(other) <= 1 + name.chars().count() / 4);
    let suggestion =
        near.map_or(String::new(), |near| format!("; did you mean {:?}?", near.as_ref()));
    let list: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let separator = if suggestion.is_empty() { ";" } else { "" };
    format!("{suggestion}{separator} known are {}", list.join(", "))
}

/// A refusal by a type, in the words of a recipe.
fn in_plain_words(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let Some((&name, known)) = quoted.split_first() {
        if message.starts_with("unknown field") {
            return format!("unknown key {name:?}{}", choices(name, known));
        }
        if message.starts_with("unknown variant") {
            return format!("unknown value {name:?}{}", choices(name, known));
        }
        if message.starts_with("missing field") {
            return format!("the key {name:?} is missing");
        }
    }
    if let Some((found, wanted)) = message.split_once(", expected ") {
        let wanted = match wanted {
            "usize" | "u64" | "u32" => "a whole number of at least 0",
            "i64" => "a whole number",
            "f64" => "a number",
            "a string" | "path string" => "a text in quotes",
            "a boolean" => "true or false",
            "a sequence" => "a list",
            "a map" => "a table",
            other => other,
        };
        let found =
            found.trim_start_matches("invalid type: ").trim_start_matches("invalid value: ");
        let found = found.replace("string ", "the text ").replace("integer ", "the number ");
        let found = found.replace("floating point ", "the number ").replace('`', "");
        let found = match found.as_str() {
            "sequence" => "a list",
            "map" => "a table",
            "null" => "absent",
            other => other,
        };
        return format!("it must be {wanted}, but it is {found}");
    }
    message.to_string()
}
