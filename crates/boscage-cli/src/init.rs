//! `boscage init`: a commented study file, from questions, from flags, or from another tool's file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use boscage::Value;
use boscage_study::import::{self, Format, ParameterArguments};
use boscage_study::{Condition, Goal, Kind, Program, ResultRule, StudyParameter, StudySpace};
use clap::{Args, ValueEnum};

/// Write a commented study file, to be changed and then run with `boscage tune`.
///
/// Without flags it asks a few questions on a terminal, and writes an example elsewhere. Everything after `--` is the command
/// to run, in which {name} stands for the value of a parameter; if it has no such place, an argument for each parameter is
/// added.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// File to write.
    #[arg(value_name = "FILE", default_value = "study.toml")]
    file: PathBuf,
    /// Write over a file that is already there.
    #[arg(long)]
    force: bool,
    /// Take the parameters from a file of irace, SMAC or ParamILS (.pcs), ConfigSpace or Optuna.
    #[arg(long, value_name = "SPACEFILE")]
    import: Option<PathBuf>,
    /// Whose file it is [default: found out from the file].
    #[arg(long, value_name = "FORMAT", requires = "import")]
    format: Option<FormatName>,
    /// A parameter: its name, its type, and what the type needs. May be given several times.
    #[arg(long = "parameter", value_name = "TEXT")]
    parameters: Vec<String>,
    /// Whether small or large results are sought [default: minimize].
    #[arg(long, value_name = "GOAL")]
    goal: Option<GoalName>,
    /// How many trials to run [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: Option<u64>,
    /// Where the result is: last-number, exit-code, regex:PATTERN or json:KEY [default: last-number].
    #[arg(long, value_name = "RULE")]
    result: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "Parameters:
  rate real 1e-5 1 log default 0.01      also: step 0.25 in the place of log
  layers integer 1 8                     also: log, step 2, default 3
  mode categorical fast slow default slow
  level ordinal low mid high
  cache boolean
  cutoff real 0 1 if mode == \"fast\"      only where the condition holds
A value with spaces is written in quotation marks.

Examples:
  boscage init
  boscage init --parameter 'rate real 1e-5 1 log' --parameter 'layers integer 1 8' -- ./train --rate={rate} --layers={layers}
  boscage init solver.toml --import parameters.txt --format irace -- ./solver
  boscage init --import space.pcs --goal maximize --trials 500 --result json:test.accuracy -- ./solver";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    Irace,
    Pcs,
    Configspace,
    Optuna,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Irace => Format::Irace,
            FormatName::Pcs => Format::Pcs,
            FormatName::Configspace => Format::ConfigSpace,
            FormatName::Optuna => Format::Optuna,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GoalName {
    Minimize,
    Maximize,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Minimize => Goal::Minimize,
            GoalName::Maximize => Goal::Maximize,
        }
    }
}

/// What the example of a study has.
const EXAMPLE_PARAMETERS: [&str; 6] = [
    "rate real 1e-5 1 log default 0.01",
    "layers integer 1 8 default 2",
    "mode categorical fast slow",
    "level ordinal low mid high",
    "cache boolean",
    "cutoff real 0 1 step 0.25 if mode == \"fast\"",
];
const EXAMPLE_FORBIDDEN: &str = "mode == \"fast\" and layers > 4";
const EXAMPLE_PROGRAM: &str = "./program";

/// Placeholders that are not parameters.
const BUILT_IN: [&str; 5] = ["trial", "seed", "instance", "parameters_file", "result_file"];
const PARAMETERS_FILE: &str = "{parameters_file}";

/// Writes the file.
pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    // Before any question is asked.
    if !args.force && args.file.symlink_metadata().is_ok() {
        bail!(
            "{} is already there; give another name, or --force to write over it",
            args.file.display()
        );
    }
    let asked = args.import.is_none()
        && args.parameters.is_empty()
        && args.goal.is_none()
        && args.trials.is_none()
        && args.result.is_none()
        && args.command.is_empty()
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal();
    let mut out = std::io::stdout().lock();
    let draft =
        if asked { ask(&mut std::io::stdin().lock(), &mut out)? } else { from_flags(args)? };
    let name = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let study = Study::new(name.unwrap_or_default(), draft)?;
    write(&args.file, args.force, &study.text())?;

    let parameters = study.space.parameters();
    let conditions = parameters.iter().filter(|parameter| parameter.condition.is_some()).count();
    let count =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut summary = count(parameters.len(), "parameter");
    if conditions > 0 {
        summary += &format!(" ({conditions} with a condition)");
    }
    if !study.space.forbidden().is_empty() {
        summary += &format!(", {}", count(study.space.forbidden().len(), "forbidden combination"));
    }
    let file = args.file.display();
    writeln!(out, "{file}: {summary}")?;
    for note in &study.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "Look through it, then try it with: boscage tune {file} --check")?;
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, force: bool, text: &str) -> anyhow::Result<()> {
    let mut options = File::options();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options
        .open(file)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("{} cannot be written", file.display()))
}

/// What is known of a study before it is checked.
#[derive(Debug, Default)]
struct Draft {
    goal: Goal,
    trials: Option<u64>,
    result: ResultRule,
    parameters: Vec<StudyParameter>,
    forbidden: Vec<Condition>,
    /// The program and arguments that the user gave.
    command: Vec<String>,
    /// Arguments for parameters, as another tool's file gives them.
    arguments: Vec<ParameterArguments>,
    notes: Vec<String>,
}

fn from_flags(args: &InitArgs) -> anyhow::Result<Draft> {
    let mut draft = Draft {
        goal: args.goal.map(Goal::from).unwrap_or_default(),
        trials: args.trials,
        command: args.command.clone(),
        ..Draft::default()
    };
    if let Some(rule) = &args.result {
        draft.result = result_rule(rule)?;
    }
    if let Some(path) = &args.import {
        let imported = import::read(
            &contents(path)?,
            args.format.map(Format::from),
            &path.display().to_string(),
        )?;
        draft.parameters = imported.parameters;
        draft.forbidden = imported.forbidden;
        draft.arguments = imported.command_arguments;
        draft.notes = imported.notes;
    }
    for text in &args.parameters {
        draft.parameters.push(parameter(text)?);
    }
    if draft.parameters.is_empty() {
        for text in EXAMPLE_PARAMETERS {
            draft.parameters.push(parameter(text)?);
        }
        draft.forbidden.push(Condition::parse(EXAMPLE_FORBIDDEN)?);
        draft
            .notes
            .push("the parameters are an example; write your own in their place".to_string());
    }
    Ok(draft)
}

/// A text file of another tool.
fn contents(path: &Path) -> anyhow::Result<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One more than is allowed, so that too much is noticed without reading it all.
        File::open(path)?.take(import::MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().with_context(|| format!("{} cannot be read", path.display()))?;
    if bytes.len() > import::MOST_BYTES {
        bail!(
            "{} has more than {} bytes, the most that are read",
            path.display(),
            import::MOST_BYTES
        );
    }
    String::from_utf8(bytes).ok().with_context(|| {
        format!("{} is not text in UTF-8; parameters are read from text files only", path.display())
    })
}

/// `last-number`, `exit-code`, `regex:PATTERN` or `json:KEY`.
fn result_rule(text: &str) -> anyhow::Result<ResultRule> {
    Ok(match text.split_once(':') {
        None if text == "last-number" => ResultRule::LastNumber,
        None if text == "exit-code" => ResultRule::ExitCode,
        Some(("regex", pattern)) => ResultRule::Regex(pattern.to_string()),
        Some(("json", key)) => ResultRule::Json(key.to_string()),
        _ => bail!(
            "{text:?} does not tell where the result is; use last-number, exit-code, regex:PATTERN or json:KEY"
        ),
    })
}

/// Asks for what a study needs. Wrong answers are asked for again.
fn ask(input: &mut dyn BufRead, out: &mut dyn Write) -> anyhow::Result<Draft> {
    let mut draft = Draft::default();
    writeln!(out, "A few questions; an empty answer takes what is in brackets.\n")?;

    let program =
        answered(input, out, &format!("Program to run, with arguments [{EXAMPLE_PROGRAM}]: "))?;
    draft.command =
        words(program.as_deref().unwrap_or_default())?.into_iter().map(|word| word.text).collect();

    writeln!(out, "\nParameters, one per line, an empty line at the end. For example:")?;
    for text in EXAMPLE_PARAMETERS {
        writeln!(out, "  {text}")?;
    }
    while let Some(line) = answered(input, out, "Parameter: ")? {
        let read = parameter(&line).and_then(|parameter| {
            if draft.parameters.iter().any(|other| other.name == parameter.name) {
                bail!("there is a parameter {:?} already", parameter.name);
            }
            let mut parameters = draft.parameters.clone();
            parameters.push(parameter);
            StudySpace::new(parameters.clone(), Vec::new())?;
            Ok(parameters)
        });
        match read {
            Ok(parameters) => draft.parameters = parameters,
            Err(error) => writeln!(out, "{error:#}; once more:")?,
        }
    }
    if draft.parameters.is_empty() {
        bail!("there are no parameters; nothing was written");
    }
    writeln!(out)?;
    draft.goal = loop {
        match answered(
            input,
            out,
            "Are small or large results sought, minimize or maximize? [minimize]: ",
        )?
        .as_deref()
        {
            None | Some("minimize") => break Goal::Minimize,
            Some("maximize") => break Goal::Maximize,
            Some(other) => writeln!(out, "{other:?} is neither minimize nor maximize; once more:")?,
        }
    };
    draft.result = loop {
        let question = "Where is the result: last-number, exit-code, regex:PATTERN or json:KEY? [last-number]: ";
        match answered(input, out, question)?.map(|rule| result_rule(&rule)) {
            None => break ResultRule::LastNumber,
            Some(Ok(rule)) => break rule,
            Some(Err(error)) => writeln!(out, "{error}; once more:")?,
        }
    };
    writeln!(out)?;
    Ok(draft)
}

/// An answer, if there is any; the end of the input is an empty answer.
fn answered(
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    question: &str,
) -> anyhow::Result<Option<String>> {
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        writeln!(out)?;
    }
    let line = line.trim();
    Ok((!line.is_empty()).then(|| line.to_string()))
}

/// A word of a line.
struct Word {
    text: String,
    /// Whether it was in quotation marks, and so cannot be a keyword.
    quoted: bool,
    /// Where it ends, in bytes.
    end: usize,
}

/// The words of a line. Quotation marks, single or double, hold a word with spaces together.
fn words(line: &str) -> anyhow::Result<Vec<Word>> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let mut mark: Option<char> = None;
    for (at, c) in line.char_indices() {
        if mark.is_none() && c.is_whitespace() {
            words.extend(current.take());
            continue;
        }
        let word = current.get_or_insert(Word { text: String::new(), quoted: false, end: 0 });
        word.end = at + c.len_utf8();
        match (mark, c) {
            (Some(open), c) if open == c => mark = None,
            (None, '"' | '\'') => {
                mark = Some(c);
                word.quoted = true;
            }
            _ => word.text.push(c),
        }
    }
    if let Some(mark) = mark {
        bail!("a {mark} is never closed in {line:?}");
    }
    words.extend(current);
    Ok(words)
}

/// A parameter as it is written in one line: `rate real 1e-5 1 log default 0.01`.
fn parameter(line: &str) -> anyhow::Result<StudyParameter> {
    read_parameter(line)
        .map_err(|error| anyhow!("{line:?} does not describe a parameter: {error:#}"))
}

fn read_parameter(line: &str) -> anyhow::Result<StudyParameter> {
    let words = words(line)?;
    let is_keyword = |word: &Word, keyword: &str| !word.quoted && word.text == keyword;
    let end = words.iter().position(|word| is_keyword(word, "if"));
    let (words, condition) = match end.and_then(|end| Some((end, words.get(end)?.end))) {
        Some((end, from)) => {
            let condition = Condition::parse(line.get(from..).unwrap_or_default().trim())?;
            (words.get(..end).unwrap_or_default(), Some(condition))
        }
        None => (&words[..], None),
    };
    let [name, kind, rest @ ..] = words else {
        bail!("a name and a type were expected, as in: rate real 0 1");
    };
    let (rest, default) = match rest {
        [rest @ .., keyword, default] if is_keyword(keyword, "default") => {
            (rest, Some(&default.text))
        }
        rest => (rest, None),
    };
    let values = || {
        if rest.is_empty() {
            bail!(
                "{} needs its values, as in: {} {} low mid high",
                kind.text,
                name.text,
                kind.text
            );
        }
        Ok(listed(rest))
    };
    let kind = match kind.text.as_str() {
        "real" | "integer" => range(&kind.text, rest)?,
        "categorical" => Kind::Categorical { choices: values()? },
        "ordinal" => Kind::Ordinal { levels: values()? },
        "boolean" if rest.is_empty() => Kind::Boolean {},
        "boolean" => bail!("boolean needs no values"),
        other => bail!("{other:?} is not one of real, integer, categorical, ordinal and boolean"),
    };
    let mut parameter = StudyParameter::new(name.text.as_str(), kind);
    if let Some(default) = default {
        parameter.default = Some(parameter.value_from_text(default)?);
    }
    // Whether it makes sense by itself; its condition cannot be looked at without the others.
    StudySpace::new(vec![parameter.clone()], Vec::new())?;
    parameter.condition = condition;
    Ok(parameter)
}

/// `LOW HIGH [log] [step S]`
fn range(kind: &str, words: &[Word]) -> anyhow::Result<Kind> {
    let [low, high, flags @ ..] = words else {
        bail!("{kind} needs its bounds, as in: x {kind} 1 10");
    };
    let mut log = false;
    let mut step = None;
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.text.as_str() {
            "log" => log = true,
            "step" => step = Some(flags.next().context("after step, a number was expected")?),
            other => bail!(
                "{other:?} was not expected; log, step NUMBER, default VALUE or if CONDITION may follow the bounds"
            ),
        }
    }
    Ok(if kind == "integer" {
        let number = |word: &Word| {
            word.text
                .parse::<i64>()
                .ok()
                .with_context(|| format!("{:?} is not an integer", word.text))
        };
        let step = step.map(|step| {
            step.text
                .parse::<u64>()
                .ok()
                .with_context(|| format!("the step {:?} is not an integer above 0", step.text))
        });
        Kind::Integer {
            low: number(low)?,
            high: number(high)?,
            step: step.transpose()?.unwrap_or(1),
            log,
        }
    } else {
        let number = |word: &Word| {
            word.text
                .parse::<f64>()
                .ok()
                .with_context(|| format!("{:?} is not a number", word.text))
        };
        let step = step.map(number).transpose()?;
        Kind::Real { low: number(low)?, high: number(high)?, log, step }
    })
}

/// Values of a list: numbers if all of them are.
fn listed(words: &[Word]) -> Vec<Value> {
    let number = |word: &Word| {
        let number = match word.text.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                Value::Real(word.text.parse().ok().filter(|number: &f64| number.is_finite())?)
            }
        };
        // A program must get what was written.
        (!word.quoted && number.to_string() == word.text).then_some(number)
    };
    let numbers: Option<Vec<Value>> = words.iter().map(number).collect();
    numbers.unwrap_or_else(|| words.iter().map(|word| Value::Choice(word.text.clone())).collect())
}

/// An element of a command.
#[derive(Debug, Clone, PartialEq)]
enum Element {
    One(String),
    /// Left out as a whole where a parameter in it has no value.
    Group(Vec<String>),
}

/// A study that makes sense.
struct Study {
    name: String,
    goal: Goal,
    trials: u64,
    result: ResultRule,
    space: StudySpace,
    command: Vec<Element>,
    notes: Vec<String>,
}

impl Study {
    fn new(name: String, draft: Draft) -> anyhow::Result<Self> {
        let Draft { goal, trials, result, parameters, forbidden, command, arguments, mut notes } =
            draft;
        let space = StudySpace::new(parameters, forbidden)?;
        let command = elements(&space, &command, &arguments, &mut notes)?;
        // Regular expressions and keys are checked with a program of no consequence.
        let program = Program {
            command: vec!["program".into(), "{x0}".into()],
            result: result.clone(),
            ..Program::default()
        };
        program.validate(&["x0"])?;
        Ok(Self { name, goal, trials: trials.unwrap_or(100), result, space, command, notes })
    }

    /// The study file.
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "# A study of boscage. Try it with `boscage tune FILE --check`, run it with `boscage tune FILE`,"
        )?;
        writeln!(out, "# and run the same command again to go on with it.")?;
        writeln!(out)?;
        writeln!(out, "name = {}", quoted(&self.name))?;
        writeln!(
            out,
            "goal = {:<16} # or \"{}\"",
            quoted(self.goal.name()),
            other(self.goal).name()
        )?;
        writeln!(out, "seed = 1")?;
        writeln!(
            out,
            "method = \"tree\"         # or a table with settings: {{ name = \"tree\", settings = {{ … }} }}"
        )?;
        writeln!(
            out,
            "# Where the trials are kept: a file, or a PostgreSQL address such as postgresql://user@host/database."
        )?;
        writeln!(out, "# storage = {}", quoted(&format!("{}.db", self.name)))?;
        writeln!(out)?;
        writeln!(out, "# Combinations that must not be tried.")?;
        match self.space.forbidden() {
            [] => writeln!(out, "# forbidden = ['mode == \"fast\" and layers > 4']")?,
            forbidden => {
                writeln!(out, "forbidden = [")?;
                for condition in forbidden {
                    writeln!(out, "    {},", literal(condition.text()))?;
                }
                writeln!(out, "]")?;
            }
        }
        writeln!(out)?;
        self.write_parameters(out)?;
        self.write_program(out)?;
        out.push_str(REST);
        writeln!(out, "[budget]\ntrials = {}", self.trials)?;
        out.push_str(END);
        let first = self.space.parameters().first();
        first.map_or(Ok(()), |first| {
            writeln!(out, "# {} = {}", key(&first.name), value_text(&some_value(first)))
        })
    }

    fn write_parameters(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "# Types: real, integer (with low, high; log or step), categorical (choices), ordinal (levels), boolean."
        )?;
        writeln!(
            out,
            "# The defaults make the first trial. A parameter with a condition has a value only where it holds."
        )?;
        for note in &self.notes {
            let plain: String =
                note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            writeln!(out, "# Note: {plain}.")?;
        }
        writeln!(out, "[parameters]")?;
        for parameter in self.space.parameters() {
            writeln!(out, "{} = {}", key(&parameter.name), parameter_table(parameter))?;
        }
        writeln!(out)
    }

    fn write_program(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "[program]")?;
        writeln!(
            out,
            "# Each element is one argument; there is no shell. An element in a list of its own is left out as a whole if a"
        )?;
        writeln!(out, "# parameter in it has no value.")?;
        writeln!(out, "command = [")?;
        for element in &self.command {
            match element {
                Element::One(word) => writeln!(out, "    {},", quoted(word))?,
                Element::Group(words) => {
                    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                    writeln!(out, "    [{}],", words.join(", "))?;
                }
            }
        }
        writeln!(out, "]")?;
        writeln!(
            out,
            "# The last number that the program prints, or {{ regex = 'cost: (\\S+)' }}, {{ json = \"test.loss\" }}, \"exit-code\"."
        )?;
        match &self.result {
            ResultRule::LastNumber => writeln!(out, "result = \"last-number\"")?,
            ResultRule::ExitCode => writeln!(out, "result = \"exit-code\"")?,
            ResultRule::Regex(pattern) => {
                writeln!(out, "result = {{ regex = {} }}", literal(pattern))?
            }
            ResultRule::Json(path) => writeln!(out, "result = {{ json = {} }}", literal(path))?,
        }
        writeln!(out, "# timeout_seconds = 60    # also cpu_seconds, memory_bytes")?;
        writeln!(out)
    }
}

const REST: &str = "[evaluation]
repeats = 1
# instances = [\"a.cnf\", \"b.cnf\"]    # {instance} in the command
# seeds = [1, 2]                     # {seed} in the command
aggregate = \"mean\"      # or \"worst\", \"median\"

[failure]
retries = 0             # runs again at most so often
score = \"ignore\"        # or \"worst\" (the worst seen so far), or a number

";

const END: &str = "# seconds = 3600
# target = 0.5

[workers]
jobs = 1                # programs that run at the same time
lease_seconds = 60
lost_retries = 3

# Points to begin with, beside the defaults; they may leave parameters out.
# [[start]]
";

fn other(goal: Goal) -> Goal {
    match goal {
        Goal::Minimize => Goal::Maximize,
        Goal::Maximize => Goal::Minimize,
    }
}

/// A value that a parameter can have.
fn some_value(parameter: &StudyParameter) -> Value {
    let first = |values: &[Value]| values.first().cloned().unwrap_or(Value::Boolean(false));
    parameter.default.clone().unwrap_or_else(|| match &parameter.kind {
        Kind::Real { low, .. } => Value::Real(*low),
        Kind::Integer { low, .. } => Value::Integer(*low),
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => first(values),
        Kind::Boolean {} => Value::Boolean(false),
    })
}

/// The names between braces; double braces are braces.
fn placeholders(word: &str) -> anyhow::Result<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let (_, from) = rest.split_at(at);
        let (brace, after) = from.split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            rest = after;
            continue;
        }
        let name = after.split_once(['{', '}']).filter(|(name, _)| {
            brace == "{" && after.get(name.len()..).is_some_and(|end| end.starts_with('}'))
        });
        let Some((name, after)) = name else {
            bail!(
                "{word:?} in the command has a {brace} without its counterpart; write it twice to mean a brace"
            );
        };
        names.push(name);
        rest = after;
    }
    Ok(names)
}

/// The command, with arguments for all parameters if it has none for any.
fn elements(
    space: &StudySpace,
    command: &[String],
    arguments: &[ParameterArguments],
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Element>> {
    let example = [EXAMPLE_PROGRAM.to_string()];
    let command = if command.is_empty() { &example[..] } else { command };
    let has_condition = |name: &str| {
        let parameter = space.index_of(name).and_then(|d| space.parameters().get(d));
        parameter.is_some_and(|parameter| parameter.condition.is_some())
    };
    let mut elements: Vec<Element> = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    for word in command {
        let names = placeholders(word)?;
        for name in &names {
            if !BUILT_IN.contains(name) && space.index_of(name).is_none() {
                bail!("{{{name}}} in the command is no parameter{}", space.meant(name));
            }
        }
        let element = match names.iter().any(|name| has_condition(name)) {
            true => Element::Group(vec![word.clone()]),
            false => Element::One(word.clone()),
        };
        // `--cutoff {cutoff}` belongs together.
        let is_switch = |word: &str| word.starts_with('-') && !word.contains(['=', '{']);
        match (&element, elements.last()) {
            (Element::Group(_), Some(Element::One(switch)))
                if names.len() == 1
                    && word.starts_with('{')
                    && word.ends_with('}')
                    && is_switch(switch) =>
            {
                let switch = switch.clone();
                elements.pop();
                elements.push(Element::Group(vec![switch, word.clone()]));
            }
            _ => elements.push(element),
        }
        used.extend(names);
    }
    if used.contains(&"parameters_file") {
        return Ok(elements);
    }
    let mut unused = space.names().filter(|name| !used.contains(name)).peekable();
    let uses_none = !used.iter().any(|name| !BUILT_IN.contains(name));
    if !uses_none {
        if let Some(name) = unused.peek() {
            bail!(
                "the command never uses {name:?}; add {{{name}}}, or leave all out to have an argument added for each"
            );
        }
        return Ok(elements);
    }
    if space.names().any(|name| BUILT_IN.contains(&name) || name.contains(['{', '}'])) {
        notes.push(
            "some names of parameters cannot stand in the command; the program gets the path of a JSON file with all parameters"
                .to_string(),
        );
        elements.push(Element::One(PARAMETERS_FILE.to_string()));
        return Ok(elements);
    }
    for name in unused {
        let given = arguments.iter().find(|given| given.parameter == name);
        let words = match given {
            Some(given) => given.arguments.clone(),
            None => vec![format!("--{name}={{{name}}}")],
        };
        match has_condition(name) {
            true => elements.push(Element::Group(words)),
            false => elements.extend(words.into_iter().map(Element::One)),
        }
    }
    Ok(elements)
}

/// Text in TOML's double quotation marks, in which everything can be said.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Text in TOML's single quotation marks, in which nothing has to be doubled, if that is possible.
fn literal(text: &str) -> String {
    if text.contains('\'') || text.chars().any(char::is_control) {
        quoted(text)
    } else {
        format!("'{text}'")
    }
}

/// A key of TOML.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) { name.to_string() } else { quoted(name) }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Choice(text) => quoted(text),
        other => other.to_string(),
    }
}

fn parameter_table(parameter: &StudyParameter) -> String {
    let list = |values: &[Value]| {
        let values: Vec<String> = values.iter().map(value_text).collect();
        format!("[{}]", values.join(", "))
    };
    let mut fields: Vec<(&str, String)> = Vec::new();
    match &parameter.kind {
        Kind::Real { low, high, log, step } => {
            fields.push(("type", quoted("real")));
            // Debug writes 1e300 where Display would write 301 digits.
            fields.push(("low", format!("{low:?}")));
            fields.push(("high", format!("{high:?}")));
            fields.extend(log.then(|| ("log", "true".to_string())));
            fields.extend(step.map(|step| ("step", format!("{step:?}"))));
        }
        Kind::Integer { low, high, step, log } => {
            fields.push(("type", quoted("integer")));
            fields.push(("low", low.to_string()));
            fields.push(("high", high.to_string()));
            fields.extend((*step != 1).then(|| ("step", step.to_string())));
            fields.extend(log.then(|| ("log", "true".to_string())));
        }
        Kind::Ordinal { levels } => {
            fields.push(("type", quoted("ordinal")));
            fields.push(("levels", list(levels)));
        }
        Kind::Categorical { choices } => {
            fields.push(("type", quoted("categorical")));
            fields.push(("choices", list(choices)));
        }
        Kind::Boolean {} => fields.push(("type", quoted("boolean"))),
    }
    fields.extend(parameter.default.as_ref().map(|default| ("default", value_text(default))));
    fields.extend(
        parameter.condition.as_ref().map(|condition| ("condition", literal(condition.text()))),
    );
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

#[cfg(test)]
mod tests;
