//! An external program that evaluates points.
//!
//! ```
//! use boscage::Value;
//! use boscage_study::{Context, Program};
//!
//! let program: Program = toml::from_str(r#"
//!     command = ["sh", "-c", "echo cost: $(($1 * $1))", "square", "{x}"]
//!     result = { regex = "cost: (.*)" }
//!     timeout_seconds = 10
//! "#)?;
//! program.validate(&["x"])?;
//! let here = std::path::Path::new(".");
//! let values = [("x", Some(Value::Integer(-3)))];
//! assert_eq!(program.evaluate(&values, here, Context::default())?, 9.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Placeholders
//!
//! There is no shell: each element of `command` is one argument, whatever its values contain. Within it, `{name}` stands
//! for the value of the parameter `name`; `{{` and `}}` stand for braces. A value may begin with `-`: write `--x={x}` as one
//! argument where `--x`, `{x}` could be misread. A parameter whose condition does not hold has no value: an argument that uses
//! it is left out, and so is a list of arguments within the command, as a whole: `["--x", "{x}"]`.
//!
//! More placeholders are always there:
//!
//! | placeholder | meaning |
//! | --- | --- |
//! | `{trial}` | number of the trial |
//! | `{seed}` | seed of the study or run, or what a study lists as seeds |
//! | `{instance}` | what a study lists as instances |
//! | `{parameters_file}` | path of a file made for this run that holds all parameters (see [`Program::parameters_file`]) |
//! | `{result_file}` | path of the file the result is read from (see [`Program::result_file`]) |
//!
//! Reals are written with as few digits as are needed to read the same number again, booleans as `true` and `false`, and
//! choices as they are.
//!
//! # The end of a run
//!
//! A program fails if its exit code is not 0 (unless that is the result), if a signal ended it, if a limit was reached, or
//! if there is no finite result. Whatever it has started and left running is killed with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use boscage::Value;
use regex_lite::Regex;
use serde::{Deserialize, Deserializer, Serialize};
use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::process::{self, Ended, Limits, OUTPUT_BYTES, Reached};

/// What the names of the variables begin with if parameters are passed in the environment.
pub const ENVIRONMENT_PREFIX: &str = "BOSCAGE_PARAM_";

const TRIAL: &str = "trial";
const SEED: &str = "seed";
const INSTANCE: &str = "instance";
const PARAMETERS_FILE: &str = "parameters_file";
const RESULT_FILE: &str = "result_file";
/// The placeholders that are not parameters.
const BUILT_IN: [&str; 5] = [TRIAL, SEED, INSTANCE, PARAMETERS_FILE, RESULT_FILE];

/// How many lines and characters of a program's words an error repeats.
const QUOTED_LINES: usize = 10;
const QUOTED_CHARACTERS: usize = 2000;
const COMMAND_CHARACTERS: usize = 400;

/// Where in a program's standard output, or in its result file, the value is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultRule {
    /// The last number. Numbers are told apart from text by spaces and punctuation: `cost=1.5e3,` holds one, `run7` and
    /// `3.2s` hold none, and `1,234` holds two.
    #[default]
    LastNumber,
    /// The first group of the last match of a regular expression: `{ regex = "cost: (\\S+)" }`.
    Regex(String),
    /// The number under a key, with dots between the keys of nested tables: `{ json = "test.loss" }`. It is looked up in
    /// the text as a whole, or else in the last JSON object that begins at the beginning of a line.
    Json(String),
    /// The exit code of the program.
    ExitCode,
}

/// A format for parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// `{"rate": 0.1, "layers": 3}`
    #[default]
    Json,
    /// `rate = 0.1`, a line for each parameter.
    Toml,
}

/// An argument of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "an argument is text, or a list of texts that belong together; write numbers in quotes"
)]
pub enum Argument {
    /// A single one.
    One(String),
    /// Several that are left out together if a parameter in one of them has no value.
    Together(Vec<String>),
}

impl Argument {
    fn texts(&self) -> &[String] {
        match self {
            Argument::One(text) => std::slice::from_ref(text),
            Argument::Together(texts) => texts,
        }
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Argument::One(text.to_string())
    }
}

/// Reads a command. Many write one as they would for a shell, which there is none of.
fn list_of_arguments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<Argument>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<Argument>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(
                "a list of the program and its arguments, as in [\"./train\", \"--rate={rate}\"]",
            )
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            let mut arguments = Vec::new();
            while let Some(argument) = list.next_element()? {
                arguments.push(argument);
            }
            Ok(arguments)
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// A program, how it gets the values, where its result is, and what it may use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments, with [placeholders](self#placeholders). A program with a slash in its name is sought
    /// from the folder of the recipe or study, any other in the folders of `PATH`.
    #[serde(deserialize_with = "list_of_arguments")]
    pub command: Vec<Argument>,
    /// Further environment variables; values may have placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Whether all parameters are passed as environment variables: `BOSCAGE_PARAM_` and the name in capital letters,
    /// with `_` for whatever is neither a letter of ASCII nor a digit.
    #[serde(default)]
    pub parameters_in_environment: bool,
    /// The format of the file whose path `{parameters_file}` stands for. Without that placeholder there is no such file.
    #[serde(default)]
    pub parameters_file: FileFormat,
    /// Where the result is.
    #[serde(default)]
    pub result: ResultRule,
    /// The file that has the result, from the working folder; may use `{trial}` and `{seed}`. Without it the result is read
    /// from a new file for each run if `{result_file}` is used, and else from the standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_file: Option<String>,
    /// The folder in which the program runs, from the folder of the recipe or study, which it is if nothing is said. May use
    /// `{trial}` and `{seed}`, and is made if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_folder: Option<String>,
    /// Seconds by the clock after which the program and its children are ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Seconds of CPU time that the program and its children may use together. Looked at ten times a second; Linux only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Bytes of resident memory that the program and its children may use together. Looked at ten times a second, so that
    /// it stops a program that grows, not one that takes all at once; memory that children share counts for each. Linux only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// What a program may be told about the trial it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context<'a> {
    /// For `{trial}`.
    pub trial: Option<u64>,
    /// For `{seed}`.
    pub seed: Option<u64>,
    /// For `{instance}`.
    pub instance: Option<&'a str>,
}

impl Program {
    /// Refuses what cannot work with parameters of these names.
    pub fn validate(&self, names: &[&str]) -> Result<()> {
        let named =
            matches!(self.command.first(), Some(Argument::One(program)) if !program.is_empty());
        if !named {
            return Err(invalid(
                "the command is empty; write the program and its arguments as a list",
            ));
        }
        let used = self.placeholders()?;
        for (place, name) in &used {
            let is_parameter = names.contains(&name.as_str());
            if BUILT_IN.contains(&name.as_str()) {
                if is_parameter {
                    return Err(invalid(format!(
                        "{{{name}}} in {place} could mean the parameter or boscage's own; rename the parameter"
                    )));
                }
            } else if !is_parameter {
                return Err(invalid(format!(
                    "{{{name}}} in {place} is unknown; the parameters are {}, and there are {} (for a brace write it twice)",
                    listed(names.iter().copied()),
                    listed(BUILT_IN.into_iter())
                )));
            }
        }
        let used: HashSet<&str> = used.iter().map(|(_, name)| name.as_str()).collect();
        if !self.parameters_in_environment && !used.contains(PARAMETERS_FILE) {
            let unused: Vec<&str> =
                names.iter().copied().filter(|name| !used.contains(name)).collect();
            if !unused.is_empty() {
                return Err(invalid(format!(
                    "it never gets {}, which would have no effect: use {{name}} in the command or the environment, give it \
                     {{{PARAMETERS_FILE}}}, set parameters_in_environment, or remove the parameter",
                    listed(unused.into_iter())
                )));
            }
        }
        for name in self.environment.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(invalid(format!(
                    "{name:?} cannot be the name of an environment variable"
                )));
            }
        }
        if self.parameters_in_environment {
            let mut owners = HashMap::new();
            for &name in names {
                let variable = variable(name);
                if self.environment.contains_key(&variable) {
                    return Err(invalid(format!(
                        "both parameters_in_environment and environment set {variable}"
                    )));
                }
                if let Some(other) = owners.insert(variable.clone(), name) {
                    return Err(invalid(format!(
                        "the parameters {other:?} and {name:?} would both be the variable {variable}; rename one"
                    )));
                }
            }
        }
        match &self.result {
            ResultRule::Regex(pattern) => drop(compiled(pattern)?),
            ResultRule::Json(path) if path.split('.').any(str::is_empty) => {
                return Err(invalid(format!(
                    "the JSON key {path:?} has an empty part; write it like test.loss"
                )));
            }
            ResultRule::ExitCode if self.result_file.is_some() || used.contains(RESULT_FILE) => {
                return Err(invalid(
                    "the result is the exit code, so that there is no use for a result file",
                ));
            }
            _ => {}
        }
        for (setting, seconds) in
            [("timeout_seconds", self.timeout_seconds), ("cpu_seconds", self.cpu_seconds)]
        {
            if seconds.is_some_and(|seconds| {
                seconds <= 0.0 || Duration::try_from_secs_f64(seconds).is_err()
            }) {
                let seconds = seconds.unwrap_or_default();
                return Err(invalid(format!(
                    "{setting} is {seconds}; it must be a positive number of seconds"
                )));
            }
        }
        if self.memory_bytes == Some(0) {
            return Err(invalid("memory_bytes is 0; it must be positive"));
        }
        if !cfg!(target_os = "linux") && (self.cpu_seconds.is_some() || self.memory_bytes.is_some())
        {
            return Err(invalid(
                "cpu_seconds and memory_bytes need Linux; timeout_seconds works here too",
            ));
        }
        Ok(())
    }

    /// Whether the command, or anything else that may have placeholders, uses this one.
    pub fn uses(&self, name: &str) -> Result<bool> {
        Ok(self.placeholders()?.iter().any(|(_, used)| used == name))
    }

    /// All placeholders, each with where it is.
    fn placeholders(&self) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        let mut visit = |place: String, text: &str, only_context: bool| {
            expand(text, |name| {
                if only_context && ![TRIAL, SEED, INSTANCE].contains(&name) {
                    return Err(invalid(format!(
                        "{{{name}}} cannot be used here; {{trial}}, {{seed}} and {{instance}} can"
                    )));
                }
                found.push((place.clone(), name.to_string()));
                Ok(Some(String::new()))
            })
            .map_err(|error| located(&place, error))
        };
        for (number, argument) in self.command.iter().enumerate() {
            for text in argument.texts() {
                visit(format!("element {} of the command, {text:?}", number + 1), text, false)?;
            }
        }
        for (name, value) in &self.environment {
            visit(format!("the environment variable {name}"), value, false)?;
        }
        for (place, text) in
            [("result_file", &self.result_file), ("working_folder", &self.working_folder)]
        {
            if let Some(text) = text {
                visit(place.to_string(), text, true)?;
            }
        }
        Ok(found)
    }

    /// Runs the program with these values and reads its result. `folder` is that of the recipe or study. A parameter
    /// without a value is one whose condition does not hold.
    ///
    /// # Errors
    ///
    /// [`Error::LimitReached`] and [`Error::Evaluation`] are failures of this one evaluation; with [`Error::NotStarted`]
    /// no other would go better.
    pub fn evaluate(
        &self,
        values: &[(&str, Option<Value>)],
        folder: &Path,
        context: Context<'_>,
    ) -> Result<f64> {
        let told = |name: &str| match name {
            TRIAL => number(context.trial, TRIAL).map(Some),
            SEED => number(context.seed, SEED).map(Some),
            INSTANCE => match context.instance {
                Some(instance) => Ok(Some(instance.to_string())),
                None => Err(invalid("{instance} is not known here; list the instances")),
            },
            _ => Err(invalid(format!("{{{name}}} cannot be used here"))),
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = std::path::absolute(folder)
            .map_err(|e| failed(format!("{}: {e}", folder.display())))?;
        let working_folder = match &self.working_folder {
            Some(text) => folder.join(expand(text, told)?.unwrap_or_default()),
            None => folder.clone(),
        };
        if self.working_folder.is_some() {
            std::fs::create_dir_all(&working_folder).map_err(|e| {
                failed(format!("the working folder {}: {e}", working_folder.display()))
            })?;
        }

        // Lives as long as the run.
        let mut own_files: Option<TempDir> = None;
        let mut own_file = |name: &str| -> Result<PathBuf> {
            let made = match own_files.take() {
                Some(made) => made,
                None => tempfile::Builder::new().prefix("boscage-").tempdir().map_err(|e| {
                    failed(format!("no folder for the program's files could be made: {e}"))
                })?,
            };
            Ok(own_files.insert(made).path().join(name))
        };
        let result_file = match &self.result_file {
            Some(text) => Some(working_folder.join(expand(text, told)?.unwrap_or_default())),
            None if self.uses(RESULT_FILE)? => Some(own_file("result")?),
            None => None,
        };
        let parameters_file = match self.uses(PARAMETERS_FILE)? {
            true => {
                let (name, text) = self.written(values)?;
                let path = own_file(name)?;
                std::fs::write(&path, text)
                    .map_err(|e| failed(format!("{}: {e}", path.display())))?;
                Some(path)
            }
            false => None,
        };
        let value_of = |name: &str| match (name, &parameters_file, &result_file) {
            (PARAMETERS_FILE, Some(path), _) | (RESULT_FILE, _, Some(path)) => {
                Ok(Some(path.display().to_string()))
            }
            _ => match values.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => Ok(value.as_ref().map(Value::to_string)),
                None => told(name),
            },
        };

        let mut arguments: Vec<String> = Vec::with_capacity(self.command.len());
        for argument in &self.command {
            let texts = argument.texts().iter().map(|text| expand(text, value_of));
            // All of them, or none if one lacks a value.
            let together: Option<Vec<String>> = texts.collect::<Result<_>>()?;
            arguments.extend(together.into_iter().flatten());
        }
        let Some((program, rest)) = arguments.split_first() else {
            return Err(invalid("the command is empty"));
        };
        let run = Running { arguments: &arguments, working_folder: &working_folder };
        // An absolute program is what `join` makes of itself.
        let path =
            if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(&path);
        command.args(rest).current_dir(&working_folder);
        if self.parameters_in_environment {
            for (name, value) in values {
                match value {
                    Some(value) => command.env(variable(name), value.to_string()),
                    None => command.env_remove(variable(name)),
                };
            }
        }
        for (name, text) in &self.environment {
            if let Some(text) = expand(text, value_of)? {
                command.env(name, text);
            }
        }

        if let Some(path) = &result_file {
            backdate(path)
                .map_err(|e| run.failed(format!("the result file {}: {e}", path.display())))?;
        }
        let seconds =
            |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let limits = Limits {
            wall: seconds(self.timeout_seconds),
            cpu: seconds(self.cpu_seconds),
            memory_bytes: self.memory_bytes,
        };
        let ended = process::run(&mut command, limits).map_err(|e| run.not_started(&path, &e))?;
        self.read(&run, &ended, result_file.as_deref())
    }

    /// The parameters as a file: its name and its text.
    fn written(&self, values: &[(&str, Option<Value>)]) -> Result<(&'static str, String)> {
        let refused =
            |reason: String| failed(format!("the parameters cannot be written: {reason}"));
        let present = values.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?)));
        let table: BTreeMap<&str, &Value> = present.collect();
        Ok(match self.parameters_file {
            FileFormat::Json => (
                "parameters.json",
                serde_json::to_string_pretty(&table).map_err(|e| refused(e.to_string()))? + "\n",
            ),
            FileFormat::Toml => {
                ("parameters.toml", toml::to_string(&table).map_err(|e| refused(e.to_string()))?)
            }
        })
    }

    /// The result of a program that has ended.
    fn read(&self, run: &Running<'_>, ended: &Ended, file: Option<&Path>) -> Result<f64> {
        let errors = quoted("its error output", &ended.stderr.text());
        if let Some(reached) = ended.reached {
            let limit = match reached {
                Reached::Wall => {
                    format!("took longer than {} s", self.timeout_seconds.unwrap_or_default())
                }
                Reached::Cpu => {
                    format!("used more than {} s of CPU time", self.cpu_seconds.unwrap_or_default())
                }
                Reached::Memory => format!(
                    "used more than {} bytes of memory",
                    self.memory_bytes.unwrap_or_default()
                ),
            };
            return Err(Error::LimitReached {
                reason: format!("{run} {limit} and was ended{errors}"),
            });
        }
        let Some(code) = ended.status.code() else {
            let signal = ended.status.signal().unwrap_or_default();
            return Err(run.failed(format!("was ended by signal {}{errors}", signal_name(signal))));
        };
        if self.result == ResultRule::ExitCode {
            return Ok(f64::from(code));
        }
        if code != 0 {
            return Err(run.failed(format!("ended with exit code {code}{errors}")));
        }
        let (place, text, cut) = match file {
            None => ("its output".to_string(), ended.stdout.text(), ended.stdout.cut),
            Some(path) => {
                let place = format!("its result file {}", path.display());
                match read_new(path) {
                    Ok(text) => (place, text, false),
                    Err(reason) => {
                        return Err(run.failed(format!("left no result: {place} {reason}{errors}")));
                    }
                }
            }
        };
        let value = match &self.result {
            ResultRule::LastNumber => {
                last_number(&text).ok_or_else(|| "there is no number".to_string())
            }
            ResultRule::Regex(pattern) => last_match(&compiled(pattern)?, &text),
            ResultRule::Json(path) => json_number(&text, path),
            ResultRule::ExitCode => Ok(f64::from(code)),
        };
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(value) => Err(run.failed(format!(
                "gave {value} as its result in {place}; only finite numbers count (end with an exit code other than 0 if \
                 there is no result){errors}"
            ))),
            Err(reason) => {
                let cut = if cut { format!(" (only its last {OUTPUT_BYTES} bytes were kept)") } else { String::new() };
                let words = quoted(&place, &text);
                Err(run.failed(format!("left no result: in {place}{cut}, {reason}{words}{errors}")))
            }
        }
    }
}

/// A command with all its values, as it is called in messages.
struct Running<'a> {
    arguments: &'a [String],
    working_folder: &'a Path,
}

impl std::fmt::Display for Running<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        let words = self.arguments.iter().map(|argument| {
            match !argument.is_empty() && argument.chars().all(plain) {
                true => argument.clone(),
                false => format!("{argument:?}"),
            }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(COMMAND_CHARACTERS) {
            Some((end, _)) => write!(f, "`{} …`", &line[..end]),
            None => write!(f, "`{line}`"),
        }
    }
}

impl Running<'_> {
    fn failed(&self, what: String) -> Error {
        failed(format!("{self} {what}"))
    }

    fn not_started(&self, path: &Path, error: &std::io::Error) -> Error {
        let hint = match error.kind() {
            _ if !self.working_folder.is_dir() => {
                format!("there is no folder {}", self.working_folder.display())
            }
            std::io::ErrorKind::NotFound if path.exists() => {
                format!(
                    "{} names an interpreter that does not exist in its first line",
                    path.display()
                )
            }
            std::io::ErrorKind::NotFound if path.is_absolute() => {
                format!("there is no file {}", path.display())
            }
            std::io::ErrorKind::NotFound => format!(
                "no folder of PATH has {}; write ./{} for a program beside the recipe or study",
                path.display(),
                path.display()
            ),
            std::io::ErrorKind::PermissionDenied => {
                format!("{} may not be executed; chmod +x makes it a program", path.display())
            }
            _ => "see the system's message".to_string(),
        };
        let reason = format!("{self} could not be started: {error}; {hint}");
        match error.kind() {
            // It is the same for all values.
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                Error::NotStarted { reason }
            }
            _ => failed(reason),
        }
    }
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidProgram { reason: reason.into() }
}

fn failed(reason: impl Into<String>) -> Error {
    Error::Evaluation { reason: reason.into() }
}

/// Says where a setting was refused.
fn located(place: &str, error: Error) -> Error {
    match error {
        Error::InvalidProgram { reason } => invalid(format!("{place}: {reason}")),
        other => other,
    }
}

fn number(given: Option<u64>, name: &str) -> Result<String> {
    given
        .map(|number| number.to_string())
        .ok_or_else(|| invalid(format!("there is no {name} number here for {{{name}}}")))
}

/// At most twenty names, for a message.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 20;
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(MOST);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The environment variable of a parameter.
fn variable(name: &str) -> String {
    let tail =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    ENVIRONMENT_PREFIX.chars().chain(tail).collect()
}

/// Puts values in the place of `{name}`, and single braces in the place of double ones; nothing if one has no value.
fn expand(
    text: &str,
    mut value: impl FnMut(&str) -> Result<Option<String>>,
) -> Result<Option<String>> {
    let mut complete = true;
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        expanded.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(tail) = after.strip_prefix(brace) {
            expanded.push_str(brace);
            rest = tail;
            continue;
        }
        let end =
            after.find(['{', '}']).filter(|&end| brace == "{" && after[end..].starts_with('}'));
        let Some(end) = end else {
            return Err(invalid(format!(
                "{brace:?} without its counterpart; write it twice to mean a brace"
            )));
        };
        match value(&after[..end])? {
            Some(value) => expanded.push_str(&value),
            None => complete = false,
        }
        rest = &after[end + 1..];
    }
    expanded.push_str(rest);
    Ok(complete.then_some(expanded))
}

/// Sets the time of an old result file back, so that it can be told from a new one. It is not removed: a wrong name must
/// not cost anybody a file.
fn backdate(path: &Path) -> std::io::Result<()> {
    match File::options().append(true).open(path) {
        Ok(file) => file.set_modified(SystemTime::UNIX_EPOCH),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The end of a result file that was written after [`backdate`].
fn read_new(path: &Path) -> std::result::Result<String, String> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<(bool, String)> {
        let mut file = File::open(path)?;
        let details = file.metadata()?;
        let new = details.modified()? != SystemTime::UNIX_EPOCH;
        file.seek(SeekFrom::Start(details.len().saturating_sub(OUTPUT_BYTES as u64)))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_BYTES as u64).read_to_end(&mut bytes)?;
        Ok((new, String::from_utf8_lossy(&bytes).into_owned()))
    };
    match read() {
        Ok((true, text)) => Ok(text),
        Ok((false, _)) => Err("is from before: this run has not written it".to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err("does not exist".to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn compiled(pattern: &str) -> Result<Regex> {
    let regex = Regex::new(pattern)
        .map_err(|e| invalid(format!("the regular expression {pattern:?}: {e}")))?;
    if regex.captures_len() < 2 {
        return Err(invalid(format!(
            "the regular expression {pattern:?} has no group; put the part that is the number in parentheses"
        )));
    }
    Ok(regex)
}

/// The last word that is a number; words such as `nan` and `inf` are, so that they are not passed over for an older number.
fn last_number(text: &str) -> Option<f64> {
    let words = text.rsplit(|c: char| !(c.is_alphanumeric() || "+-._".contains(c)));
    let mut numbers = words.filter_map(|word| match word.parse() {
        Ok(number) => Some(number),
        Err(_) => word.strip_suffix('.')?.parse().ok(),
    });
    numbers.next()
}

fn last_match(regex: &Regex, text: &str) -> std::result::Result<f64, String> {
    let group =
        regex.captures_iter(text).last().ok_or("the regular expression matches nothing")?.get(1);
    let group =
        group.ok_or("the group of the regular expression is not part of its last match")?.as_str();
    group
        .trim()
        .parse()
        .map_err(|_| format!("the regular expression found {group:?}, which is not a number"))
}

fn json_number(text: &str, path: &str) -> std::result::Result<f64, String> {
    let whole = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(whole) => whole,
        Err(_) => {
            let last =
                text.rfind("\n{").map(|at| at + 1).or_else(|| text.starts_with('{').then_some(0));
            let last = &text[last.ok_or("there is no JSON object")?..];
            match serde_json::Deserializer::from_str(last).into_iter().next() {
                Some(Ok(object)) => object,
                Some(Err(error)) => {
                    return Err(format!("the last JSON object is malformed: {error}"));
                }
                None => return Err("there is no JSON object".to_string()),
            }
        }
    };
    let mut value = &whole;
    for key in path.split('.') {
        let inner = match value {
            serde_json::Value::Array(list) => {
                key.parse().ok().and_then(|index: usize| list.get(index))
            }
            other => other.get(key),
        };
        value = inner.ok_or_else(|| format!("the JSON has no {key:?} on the way to {path:?}"))?;
    }
    value.as_f64().ok_or_else(|| format!("{path:?} is {value}, which is not a number"))
}

/// The last lines of what a program wrote, for the end of a message.
fn quoted(place: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return format!("; {place} is empty");
    }
    let mut end = lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n  ");
    if let Some((start, _)) = end.char_indices().nth_back(QUOTED_CHARACTERS) {
        end = format!("…{}", &end[start..]);
    }
    format!("; {place} ends with\n  {end}")
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL: perhaps the system had no memory left",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        _ => return number.to_string(),
    };
    format!("{number} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> std::result::Result<String, String> {
        let expanded = expand(text, |name| Ok(Some(format!("<{name}>"))));
        expanded.map(|text| text.unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn placeholders_are_filled_and_double_braces_are_braces() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{x}", "<x>"),
            ("--x={x},{y z}é{x}", "--x=<x>,<y z>é<x>"),
            ("{{x}}", "{x}"),
            ("{{{x}}}", "{<x>}"),
            (r#"{{"a": {x}}}"#, r#"{"a": <x>}"#),
            ("{{{{", "{{"),
            ("{}", "<>"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["{", "}", "{x", "x}", "{x{y}}", "{{x}", "{x}}", "a{{b}c"] {
            assert!(filled(text).unwrap_err().contains("without its counterpart"), "{text}");
        }
    }

    #[test]
    fn values_are_not_filled_again() {
        let value = expand("{x}", |_| Ok(Some("{y} }} {{".to_string()))).unwrap().unwrap();
        assert_eq!(value, "{y} }} {{");
    }

    #[test]
    fn the_last_number_is_found_among_words() {
        for (text, expected) in [
            ("3", 3.0),
            ("-1.5e-3\n", -1.5e-3),
            ("epoch 3 loss=0.25, done", 0.25),
            ("The cost is 0.5.", 0.5),
            ("(7)", 7.0),
            ("cost: +2;", 2.0),
            ("1.5 run7 3.2s 2024-01-02 1.2.3", 1.5),
            ("50%", 50.0),
            ("1.0,2.0", 2.0),
            (".5", 0.5),
            ("5 -inf", f64::NEG_INFINITY),
            ("5\r\n", 5.0),
            ("4 ẞ2 2é", 4.0),
        ] {
            assert_eq!(last_number(text), Some(expected), "{text}");
        }
        assert!(last_number("5 nan").is_some_and(f64::is_nan));
        assert!(last_number("5 -NaN").is_some_and(f64::is_nan));
        for text in ["", "\n\n", "no numbers", "x1", "-", "+.", "e5"] {
            assert_eq!(last_number(text), None, "{text}");
        }
    }

    #[test]
    fn json_is_read_whole_or_from_its_last_object() {
        for (text, path, expected) in [
            (r#"{"loss": 2}"#, "loss", 2.0),
            (r#"[{"a": 1}, {"a": {"b": -2.5}}]"#, "1.a.b", -2.5),
            ("{\n  \"a\": [\n{\"b\": 4}\n]\n}\n", "a.0.b", 4.0),
            ("log\n{\"loss\": 1}\nlog {\n{\"loss\": 3}\nbye\n", "loss", 3.0),
            ("log\n{\n  \"a\": {\n    \"b\": 5\n  }\n}\n", "a.b", 5.0),
        ] {
            assert_eq!(json_number(text, path), Ok(expected), "{text}");
        }
        for (text, path, expected) in [
            ("", "a", "no JSON object"),
            ("a {}", "a", "no JSON object"),
            // Python writes NaN, which is not JSON; an older result must not stand in for it.
            ("{\"a\": 1}\n{\"a\": NaN}\n", "a", "malformed"),
            ("{\"a\": 1", "a", "malformed"),
            ("{\"a\": 1}", "b", "no \"b\""),
            ("{\"a\": 1}", "a.b", "no \"b\""),
            ("{\"a\": null}", "a", "is null"),
            ("{\"a\": \"1\"}", "a", "not a number"),
            ("[1]", "1", "no \"1\""),
        ] {
            let reason = json_number(text, path).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }

    #[test]
    fn the_last_match_of_a_regular_expression_counts() {
        let found = |pattern: &str, text: &str| last_match(&compiled(pattern).unwrap(), text);
        assert_eq!(found(r"cost: (\S+)", "cost: 1\ncost: -2e3 5\n"), Ok(-2000.0));
        assert_eq!(found(r"cost:(.*)", "cost: 7 \n"), Ok(7.0));
        assert!(found(r"cost: (\S+)", "3").unwrap_err().contains("matches nothing"));
        assert!(found(r"cost: (\S+)", "cost: x").unwrap_err().contains("\"x\""));
        assert!(found(r"a|b(.)", "a").unwrap_err().contains("not part"));
    }

    #[test]
    fn variables_have_capital_letters_digits_and_underlines() {
        assert_eq!(variable("learning-rate.2é"), "BOSCAGE_PARAM_LEARNING_RATE_2_");
    }

    #[test]
    fn long_words_are_cut_in_messages() {
        let arguments = vec!["é".repeat(1000)];
        let run = Running { arguments: &arguments, working_folder: Path::new(".") };
        assert_eq!(run.to_string().chars().count(), COMMAND_CHARACTERS + 4);
        let lines: Vec<String> = (0..100).map(|i| format!("line {i}")).collect();
        let end = quoted("it", &lines.join("\n"));
        assert!(
            end.ends_with("line 99") && end.contains("line 90\n") && !end.contains("line 89"),
            "{end}"
        );
        assert!(quoted("it", &"x".repeat(100_000)).chars().count() < QUOTED_CHARACTERS + 50);
        assert_eq!(quoted("it", "\n \n"), "; it is empty");
    }
}
