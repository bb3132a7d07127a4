//! `.pcs` files, as ParamILS and SMAC read them, in the old form (`name {a,b} [a]`, `name [0,1] [0.5]il`) and in the new
//! (`name categorical {a,b} [a]`, `name integer [1,9] [2] log`). Each line tells its form by itself.

use boscage::Value;

use super::{Draft, range, value_from_text, values_from_texts};
use crate::condition::{Comparison, Condition};
use crate::error::Result;
use crate::parameters::{Kind, StudyParameter};

type Reading<T> = std::result::Result<T, String>;

/// Reads a file.
pub(super) fn read(text: &str, draft: &mut Draft) -> Result<()> {
    // These may speak of parameters further down.
    let mut clauses: Vec<(usize, &str)> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(k, line)| (k + 1, line)) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let heading = line.strip_suffix(':').map(str::to_ascii_lowercase);
        let is_heading = matches!(
            heading.as_deref(),
            Some("conditionals" | "conditions" | "forbidden" | "parameters")
        );
        if line.is_empty() || is_heading {
            continue;
        }
        if line.starts_with('{') || line.contains('|') {
            clauses.push((number, line));
            continue;
        }
        parameter(line, draft).map_err(|reason| draft.refused_at(number, reason))?;
    }
    for (number, line) in clauses {
        let read =
            if line.starts_with('{') { forbidden(line, draft) } else { conditional(line, draft) };
        read.map_err(|reason| draft.refused_at(number, reason))?;
    }
    Ok(())
}

/// What stands between two brackets at the beginning, and what follows.
fn within(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

fn items(text: &str) -> Vec<String> {
    // Quotation marks are allowed and mean nothing.
    text.split(',').map(|item| item.trim().trim_matches(['"', '\'']).to_string()).collect()
}

fn parameter(line: &str, draft: &mut Draft) -> Reading<()> {
    let end = line.find(|c: char| c.is_whitespace() || c == '{' || c == '[').unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let name = name.trim_matches(['"', '\'']);
    if name.is_empty() {
        return Err(format!("a parameter was expected, not {line:?}"));
    }
    let of = |reason: String| format!("{name:?}: {reason}");
    let rest = rest.trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || c == '{' || c == '[').unwrap_or(rest.len());
    let (word, body) = rest.split_at(end);
    let is_list = match word {
        "" => body.starts_with('{'),
        "categorical" | "ordinal" => true,
        "integer" | "real" => false,
        other => {
            return Err(of(format!(
                "{other:?} is not categorical, ordinal, integer or real, nor values in {{ }} or [ ]"
            )));
        }
    };
    let (inside, rest) = if is_list { within(body, '{', '}') } else { within(body, '[', ']') }
        .ok_or_else(|| {
            of(format!("{} were expected", if is_list { "values in { }" } else { "bounds in [ ]" }))
        })?;
    let (default, rest) = match within(rest, '[', ']') {
        Some((default, rest)) => (Some(default.trim().trim_matches(['"', '\''])), rest),
        None => (None, rest),
    };
    // What is left are the flags of a range.
    let flags: String = rest.split_whitespace().collect();
    let kind = if is_list {
        if !flags.is_empty() {
            return Err(of(format!("{:?} was not expected after the values", rest.trim())));
        }
        let texts = items(inside);
        if texts.iter().any(String::is_empty) {
            return Err(of("a value is missing in { }".to_string()));
        }
        let values = values_from_texts(&texts, word == "ordinal");
        if word == "ordinal" {
            Kind::Ordinal { levels: values }
        } else {
            Kind::Categorical { choices: values }
        }
    } else {
        let (is_integer, log) = match (word, flags.as_str()) {
            ("integer", "") => (true, false),
            ("integer", "log") => (true, true),
            ("real", "") | ("", "") => (false, false),
            ("real", "log") | ("", "l") => (false, true),
            ("", "i") => (true, false),
            ("", "il" | "li") => (true, true),
            _ => {
                let right = if word.is_empty() { "i, l or il" } else { "log" };
                return Err(of(format!(
                    "{:?} was not expected; {right} would be right",
                    rest.trim()
                )));
            }
        };
        let bounds = items(inside);
        let [low, high] = &bounds[..] else {
            return Err(of(format!("two bounds were expected, not {}", bounds.len())));
        };
        range(low, high, is_integer, log).map_err(of)?
    };
    let mut parameter = StudyParameter::new(name, kind);
    if let Some(default) = default {
        let value = value_from_text(&parameter, default, Comparison::Equal);
        parameter.default = Some(value.map_err(|reason| format!("the default: {reason}"))?);
    }
    draft.add(parameter)
}

/// `child | parent in {a, b} && …`
fn conditional(line: &str, draft: &mut Draft) -> Reading<()> {
    let (child, rest) = line.split_once('|').unwrap_or((line, ""));
    let child = child.trim().trim_matches(['"', '\'']);
    draft.known(child)?;
    if rest.contains("||") && rest.contains("&&") {
        draft.note(format!(
            "the condition of {child:?} has both && and ||; && was taken to bind more tightly"
        ));
    }
    let mut alternatives = Vec::new();
    for alternative in rest.split("||") {
        let tests: Reading<Vec<Condition>> =
            alternative.split("&&").map(|test| comparison(test.trim(), draft)).collect();
        alternatives.push(Condition::all(&tests?).map_err(|error| error.to_string())?);
    }
    let condition = Condition::any(&alternatives).map_err(|error| error.to_string())?;
    draft.restrict(child, condition)
}

/// `parent in {a, b}`, `parent == a`
fn comparison(text: &str, draft: &Draft) -> Reading<Condition> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default();
    // A name may have < or > in it, if a space follows.
    let end = match draft.parameter(word.trim_matches(['"', '\''])) {
        Some(_) => end,
        None => text.find(|c: char| c.is_whitespace() || "=!<>".contains(c)).unwrap_or(text.len()),
    };
    let (name, rest) = text.split_at(end);
    let name = name.trim_matches(['"', '\'']);
    let rest = rest.trim_start();
    if name.is_empty() {
        return Err(format!("a parameter and a comparison were expected, not {text:?}"));
    }
    let parameter = draft.known(name)?;
    if let Some(list) = rest.strip_prefix("in") {
        let (inside, after) = within(list, '{', '}')
            .ok_or_else(|| format!("after \"{name} in\", values in {{ }} were expected"))?;
        if !after.trim().is_empty() {
            return Err(format!("{:?} was not expected; && or || joins conditions", after.trim()));
        }
        let values: Reading<Vec<Value>> = items(inside)
            .iter()
            .map(|item| value_from_text(parameter, item, Comparison::Equal))
            .collect();
        return match &values?[..] {
            [value] => Condition::equals(name, value),
            values => Condition::is_in(name, values),
        }
        .map_err(|error| error.to_string());
    }
    let end = rest.find(|c: char| !"=!<>".contains(c)).unwrap_or(rest.len());
    let (symbol, value) = rest.split_at(end);
    let comparison = Comparison::of_symbol(symbol).ok_or_else(|| {
        format!("after {name:?}, one of in, ==, !=, < and > was expected, not {rest:?}")
    })?;
    let value = value.trim().trim_matches(['"', '\'']);
    let value = value_from_text(parameter, value, comparison)?;
    Condition::compare(name, comparison, &value).map_err(|error| error.to_string())
}

/// `{a=1, b=2}`
fn forbidden(line: &str, draft: &mut Draft) -> Reading<()> {
    let inside = line.strip_prefix('{').and_then(|line| line.strip_suffix('}'));
    let inside = inside.ok_or("the { of a forbidden combination is never closed")?;
    let mut tests = Vec::new();
    for part in inside.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = name.trim().trim_matches(['"', '\'']);
        let value = value.trim().trim_matches(['"', '\'']);
        let Some(parameter) = draft.parameter(name).filter(|_| !value.starts_with('=')) else {
            return Err(format!(
                "{:?} is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave \
                 the line out and write it as a condition under forbidden in the study",
                part.trim()
            ));
        };
        let value = value_from_text(parameter, value, Comparison::Equal)?;
        tests.push(Condition::equals(name, &value).map_err(|error| error.to_string())?);
    }
    draft.forbid(Condition::all(&tests).map_err(|error| error.to_string())?)
}
