//! Parameter files of irace: `name "switch" type (domain) [ | condition ]`, with sections `[forbidden]` and `[global]`.
//!
//! Conditions are expressions of R, of which comparisons, `%in%`, `c(…)`, `!`, `&`, `|` and parentheses are read. In R a
//! comparison with a parameter without value is neither true nor false, and what is not true counts as false in the end, so
//! that `!(x > 3)` does not hold where `x` has no value. Ours would. Therefore negations are moved inwards: `x <= 3`.
//! `%in%` is the exception, in R too: `!(x %in% 3)` holds where `x` has no value.

use boscage::Value;

use super::{Draft, ParameterArguments, range, value_from_text, values_from_texts};
use crate::condition::{Assembly, Comparison, Condition, Operand, Step, Test, Wrong};
use crate::error::Result;
use crate::parameters::{Kind, StudyParameter};

type Reading<T> = std::result::Result<T, String>;

/// Reads a file.
pub(super) fn read(text: &str, draft: &mut Draft) -> Result<()> {
    let mut section = "";
    // Conditions may speak of parameters further down.
    let mut conditions: Vec<(usize, Option<String>, &str, usize)> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(k, line)| (k + 1, line)) {
        let content = without_comment(line);
        let trimmed = content.trim();
        if trimmed.is_empty() {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = match name.trim() {
                "forbidden" => "forbidden",
                "global" => "global",
                "parameters" => "",
                other => {
                    let reason = format!("the section [{other}] is not [forbidden] or [global]");
                    return Err(draft.refused_at(number, reason));
                }
            };
            continue;
        }
        match section {
            "forbidden" => conditions.push((number, None, content, 0)),
            "global" => {
                global(trimmed, draft).map_err(|reason| draft.refused_at(number, reason))?;
            }
            _ => {
                let read = parameter(content, draft);
                let (name, condition) = read.map_err(|reason| draft.refused_at(number, reason))?;
                if let Some(at) = condition {
                    conditions.push((number, Some(name), content, at));
                }
            }
        }
    }
    for (number, child, content, at) in conditions {
        let read = attach(child.as_deref(), content, at, draft);
        read.map_err(|reason| draft.refused_at(number, reason))?;
    }
    Ok(())
}

/// A line up to the first `#` outside of quotation marks.
fn without_comment(line: &str) -> &str {
    let mut within: Option<char> = None;
    for (at, c) in line.char_indices() {
        match within {
            Some(mark) if c == mark => within = None,
            None if c == '#' => return &line[..at],
            None if c == '"' || c == '\'' => within = Some(c),
            _ => {}
        }
    }
    line
}

fn global(line: &str, draft: &mut Draft) -> Reading<()> {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    match (name.trim(), value.trim().parse::<u32>()) {
        ("digits", Ok(digits)) => {
            draft.note(format!(
                "irace rounds real parameters to {digits} digits after the point; boscage does not"
            ));
            Ok(())
        }
        ("digits", Err(_)) => Err(format!("digits must be a number, not {:?}", value.trim())),
        (name, _) => Err(format!("[global] knows digits, not {name:?}")),
    }
}

/// Reads the line of a parameter; gives its name and where its condition begins.
fn parameter(line: &str, draft: &mut Draft) -> Reading<(String, Option<usize>)> {
    let rest = line.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if name.is_empty() {
        return Err(format!(
            "a name of letters, digits, _ and . was expected, not {:?}",
            line.trim()
        ));
    }
    let rest = rest.trim_start();
    let switch = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (switch, rest) = switch
        .ok_or_else(|| format!("after {name:?}, a switch in quotation marks was expected"))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(rest.len());
    let (kind, rest) = rest.split_at(end);
    let (is_integer, log) = match kind {
        "c" | "o" | "r" => (false, false),
        "i" => (true, false),
        "r,log" => (false, true),
        "i,log" => (true, true),
        other => {
            return Err(format!(
                "{name:?}: the type {other:?} is not one of c, o, i, r, i,log and r,log"
            ));
        }
    };
    let domain = rest.trim_start().strip_prefix('(');
    let domain = domain.ok_or_else(|| format!("{name:?}: values in ( ) were expected"))?;
    let (texts, rest) = domain_values(domain).map_err(|reason| format!("{name:?}: {reason}"))?;
    let kind = match kind {
        "c" => Kind::Categorical { choices: values_from_texts(&texts, false) },
        "o" => Kind::Ordinal { levels: values_from_texts(&texts, true) },
        _ => {
            let [low, high] = &texts[..] else {
                return Err(format!("{name:?}: two bounds were expected, not {}", texts.len()));
            };
            if let Some(bound) = texts.iter().find(|text| super::real(text).is_none()) {
                return Err(format!(
                    "{name:?}: the bound {bound:?} is not a number; bounds that depend on other parameters are not supported: \
                     use numbers, and a [forbidden] line for what must not be"
                ));
            }
            range(low, high, is_integer, log).map_err(|reason| format!("{name:?}: {reason}"))?
        }
    };
    if let Kind::Categorical { .. } | Kind::Ordinal { .. } = kind
        && texts.iter().any(|text| text.is_empty() || text.contains(char::is_whitespace))
    {
        draft.note(format!(
            "values of {name:?} are empty or have spaces; irace pastes them into a command line, where they are none or several \
             arguments, while a program gets each as one argument from boscage"
        ));
    }
    draft.add(StudyParameter::new(name, kind))?;
    draft.space.command_arguments.push(ParameterArguments {
        parameter: name.to_string(),
        arguments: arguments(switch, name),
    });
    let rest = rest.trim_start();
    let condition = match rest.strip_prefix('|') {
        Some(condition) => Some(line.len() - condition.len()),
        None if rest.is_empty() => None,
        None => return Err(format!("{name:?}: | and a condition were expected, not {rest:?}")),
    };
    Ok((name.to_string(), condition))
}

/// The values up to the closing parenthesis, and what follows.
fn domain_values(text: &str) -> Reading<(Vec<String>, &str)> {
    const OPEN: &str = "the ( of its values is never closed";
    let mut values = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let quoted = rest.strip_prefix('"').map(|rest| (rest, '"'));
        let quoted = quoted.or_else(|| rest.strip_prefix('\'').map(|rest| (rest, '\'')));
        if let Some((inside, mark)) = quoted {
            let (value, after) = inside
                .split_once(mark)
                .ok_or_else(|| format!("a {mark} in its values is never closed"))?;
            values.push(value.to_string());
            rest = after.trim_start();
        } else {
            let end = rest.find([',', ')', '(', '|']).ok_or(OPEN)?;
            let (value, after) = rest.split_at(end);
            if after.starts_with('(') {
                return Err("its values are an expression; bounds that depend on other parameters are not supported".to_string());
            }
            if value.trim().is_empty() {
                return Err("a value is missing; an empty one is written \"\"".to_string());
            }
            values.push(value.trim().to_string());
            rest = after;
        }
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
        } else if let Some(after) = rest.strip_prefix(')') {
            return Ok((values, after));
        } else if rest.is_empty() || rest.starts_with('|') {
            return Err(OPEN.to_string());
        } else {
            return Err(format!("after a value, a comma or ) was expected, not {rest:?}"));
        }
    }
}

/// The arguments for a switch, which irace and the shell would split at spaces.
fn arguments(switch: &str, name: &str) -> Vec<String> {
    let switch = switch.replace('{', "{{").replace('}', "}}");
    let placeholder = format!("{{{name}}}");
    let mut words: Vec<String> = switch.split_whitespace().map(str::to_string).collect();
    match words.last_mut() {
        Some(last) if !switch.ends_with(char::is_whitespace) => last.push_str(&placeholder),
        _ => words.push(placeholder),
    }
    words
}

fn attach(child: Option<&str>, line: &str, at: usize, draft: &mut Draft) -> Reading<()> {
    let steps = condition(line, at, draft)
        .map_err(|Wrong { column, reason }| format!("column {column}: {reason}"))?;
    let steps = negations_inwards(steps);
    if child.is_some() && steps == [Step::Constant(true)] {
        return Ok(());
    }
    let condition = Condition::from_steps(&steps).map_err(|error| error.to_string())?;
    match child {
        Some(child) => draft.restrict(child, condition),
        None => draft.forbid(condition),
    }
}

/// An expression in which nothing but `%in%` is negated, and which holds where the one that was given is true.
fn negations_inwards(steps: Vec<Step>) -> Vec<Step> {
    if !steps.contains(&Step::Not) {
        return steps;
    }
    // Each expression beside its opposite.
    let mut pile: Vec<(Vec<Step>, Vec<Step>)> = Vec::new();
    for step in steps {
        let pair = match step {
            Step::Test(Test::Compare { ref name, comparison, ref with }) => {
                let (name, with) = (name.clone(), with.clone());
                let opposite =
                    Step::Test(Test::Compare { name, comparison: comparison.opposite(), with });
                (vec![step], vec![opposite])
            }
            Step::Test(_) => (vec![step.clone()], vec![step, Step::Not]),
            Step::Constant(truth) => (vec![step], vec![Step::Constant(!truth)]),
            Step::Not => {
                let (plain, opposite) = pile.pop().unwrap_or_default();
                (opposite, plain)
            }
            Step::And | Step::Or => {
                let (plain, opposite) = pile.pop().unwrap_or_default();
                let (mut left, mut left_opposite) = pile.pop().unwrap_or_default();
                left.extend(plain);
                left_opposite.extend(opposite);
                left_opposite.push(if step == Step::And { Step::Or } else { Step::And });
                left.push(step);
                (left, left_opposite)
            }
        };
        pile.push(pair);
    }
    pile.pop().unwrap_or_default().0
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    /// A number or a truth value, as it is written.
    Bare(String),
    Text(String),
    Compare(Comparison),
    In,
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// The tokens of an expression of R that begins at a byte of a line, each with its column.
fn tokens(line: &str, at: usize) -> std::result::Result<Vec<(Token, usize)>, Wrong> {
    let (before, text) = line.split_at_checked(at).unwrap_or((line, ""));
    let mut rest = text;
    let mut column = before.chars().count() + 1;
    let mut tokens = Vec::new();
    loop {
        let blank = rest.len() - rest.trim_start().len();
        let (skipped, after) = rest.split_at(blank);
        column += skipped.chars().count();
        rest = after;
        let Some(c) = rest.chars().next() else {
            tokens.push((Token::End, column));
            return Ok(tokens);
        };
        const SYMBOLS: [(&str, Token); 17] = [
            ("%in%", Token::In),
            ("==", Token::Compare(Comparison::Equal)),
            ("!=", Token::Compare(Comparison::NotEqual)),
            ("<=", Token::Compare(Comparison::LessOrEqual)),
            (">=", Token::Compare(Comparison::GreaterOrEqual)),
            ("<-", Token::End),
            ("<", Token::Compare(Comparison::Less)),
            (">", Token::Compare(Comparison::Greater)),
            ("&&", Token::And),
            ("&", Token::And),
            ("||", Token::Or),
            ("|", Token::Or),
            ("!", Token::Not),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
            ("=", Token::End),
        ];
        let symbol = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol));
        let (token, length) = match symbol {
            // x<-3 is an assignment in R.
            Some((symbol, Token::End)) => {
                let reason = format!("{symbol} assigns in R; write ==, or a space after <");
                return Err(Wrong { column, reason });
            }
            Some((symbol, token)) => (token.clone(), symbol.len()),
            None => word(rest, c).map_err(|reason| Wrong { column, reason })?,
        };
        tokens.push((token, column));
        let (taken, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        column += taken.chars().count();
        rest = after;
    }
}

/// A name, number or text at the beginning, and its length in bytes.
fn word(rest: &str, first: char) -> Reading<(Token, usize)> {
    if let mark @ ('"' | '\'' | '`') = first {
        let inside = rest.get(1..).unwrap_or_default();
        let end = inside.find(mark).ok_or_else(|| format!("this {mark} is never closed"))?;
        let text = inside.get(..end).unwrap_or_default();
        if text.contains('\\') {
            return Err("\\ within quotation marks is not supported".to_string());
        }
        let token = if mark == '`' { Token::Name } else { Token::Text };
        return Ok((token(text.to_string()), end + 2));
    }
    let letters = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let signed = matches!(first, '-' | '+');
    let after_sign = if signed { rest.get(1..).unwrap_or_default() } else { rest };
    let is_number = after_sign
        .strip_prefix('.')
        .unwrap_or(after_sign)
        .starts_with(|c: char| c.is_ascii_digit());
    if is_number {
        let mut end = usize::from(signed);
        let mut last = ' ';
        for c in after_sign.chars() {
            let exponent = matches!(c, '-' | '+') && matches!(last, 'e' | 'E');
            if !(letters(c) || exponent) {
                break;
            }
            end += c.len_utf8();
            last = c;
        }
        let written = rest.get(..end).unwrap_or_default();
        // 5L is an integer in R.
        let number = written.strip_suffix('L').unwrap_or(written);
        let number = number.strip_prefix('+').unwrap_or(number);
        return match super::real(number) {
            Some(_) => Ok((Token::Bare(number.to_string()), end)),
            None => Err(format!("{written} is not a number")),
        };
    }
    if letters(first) {
        let end = rest.find(|c| !letters(c)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        return Ok((
            match name {
                "TRUE" | "T" => Token::Bare("TRUE".to_string()),
                "FALSE" | "F" => Token::Bare("FALSE".to_string()),
                _ => Token::Name(name.to_string()),
            },
            end,
        ));
    }
    Err(format!(
        "{first:?} is not supported; conditions may use ==, !=, <, <=, >, >=, %in%, c(), !, &, | and parentheses"
    ))
}

/// Reads an expression of R.
fn condition(line: &str, at: usize, draft: &mut Draft) -> std::result::Result<Vec<Step>, Wrong> {
    let tokens = tokens(line, at)?;
    let mut assembly = Assembly::default();
    let mut k = 0;
    // Past the last token, which is the end, there is only the end.
    let end = tokens.last().cloned().unwrap_or((Token::End, 1));
    let at = |k: usize| tokens.get(k).unwrap_or(&end);
    loop {
        let (token, column) = at(k);
        let here = |reason: String| Wrong { column: *column, reason };
        k += 1;
        if !assembly.expects_test() {
            match token {
                Token::And => assembly.and(),
                Token::Or => assembly.or(),
                Token::Close => assembly.close().map_err(here)?,
                Token::End => return assembly.finish(),
                _ => return Err(here("expected &, |, ) or the end".to_string())),
            }
            continue;
        }
        match (token, &at(k).0) {
            (Token::Not, _) => assembly.not().map_err(here)?,
            (Token::Open, _) => assembly.open(*column).map_err(here)?,
            (Token::Name(name), Token::Open) => {
                return Err(here(format!("the function {name}() is not supported")));
            }
            (left, Token::Compare(comparison)) => {
                let (right, right_column) = at(k + 1);
                let step = compared(left, *comparison, right, draft)
                    .map_err(|reason| Wrong { column: *right_column, reason })?;
                assembly.push(step);
                k += 2;
            }
            (Token::Name(name), Token::In) => {
                k += 1;
                let texts = list(&tokens, &mut k)?;
                let parameter = draft.known(name).map_err(here)?;
                let values = texts.iter().map(|text| listed_value(parameter, text));
                let values = values.collect::<Reading<_>>().map_err(here)?;
                let name = name.clone();
                assembly.push(Step::Test(Test::Within { name, values, negated: false }));
            }
            (Token::Bare(text), _) if text == "TRUE" => assembly.push(Step::Constant(true)),
            (Token::Bare(text), _) if text == "FALSE" => assembly.push(Step::Constant(false)),
            (Token::Name(name), _) => {
                draft.known(name).map_err(here)?;
                let reason = format!("{name:?} is not true or false; compare it with a value");
                return Err(here(reason));
            }
            _ => return Err(here("expected a comparison, ! or (".to_string())),
        }
    }
}

/// `c("a", "b")`, or a single value; `k` is moved past it.
fn list(tokens: &[(Token, usize)], k: &mut usize) -> std::result::Result<Vec<String>, Wrong> {
    let mut next = || {
        let token = tokens.get(*k).or(tokens.last()).cloned().unwrap_or((Token::End, 1));
        *k += 1;
        token
    };
    match next() {
        (Token::Text(text) | Token::Bare(text), _) => return Ok(vec![text]),
        (Token::Name(name), _) if name == "c" => {}
        (_, column) => {
            return Err(Wrong { column, reason: "after %in%, expected c(…)".to_string() });
        }
    }
    let (open, column) = next();
    if open != Token::Open {
        return Err(Wrong { column, reason: "after c, expected (".to_string() });
    }
    let mut texts = Vec::new();
    loop {
        match next() {
            (Token::Text(text) | Token::Bare(text), _) => texts.push(text),
            (_, column) => {
                let reason = "within c( ), expected a number or text in quotation marks";
                return Err(Wrong { column, reason: reason.to_string() });
            }
        }
        match next() {
            (Token::Comma, _) => {}
            (Token::Close, _) => return Ok(texts),
            (_, column) => {
                return Err(Wrong { column, reason: "within c( ), expected , or )".to_string() });
            }
        }
    }
}

/// The value that a text or number means for a parameter, as R would compare them: as text.
fn listed_value(parameter: &StudyParameter, text: &str) -> Reading<Value> {
    let found = value_from_text(parameter, text, Comparison::Equal);
    // R writes 1.0 as 1.
    match (found, super::integer(text)) {
        (Err(reason), Some(number)) => {
            value_from_text(parameter, &number.to_string(), Comparison::Equal).map_err(|_| reason)
        }
        (found, _) => found,
    }
}

fn compared(
    left: &Token,
    comparison: Comparison,
    right: &Token,
    draft: &mut Draft,
) -> Reading<Step> {
    let (name, comparison, other) = match (left, right) {
        (Token::Name(name), other) => (name, comparison, other),
        (other, Token::Name(name)) => (name, comparison.flipped(), other),
        _ => return Err("one side of a comparison must be a parameter".to_string()),
    };
    let parameter = draft.known(name)?;
    let listed = matches!(parameter.kind, Kind::Categorical { .. } | Kind::Ordinal { .. });
    let with = match other {
        Token::Name(other) => {
            draft
                .known(other)
                .map_err(|reason| format!("{reason}; text is written in quotation marks"))?;
            Operand::Parameter(other.clone())
        }
        Token::Text(text) | Token::Bare(text) => Operand::Value(if !comparison.is_ordered() {
            listed_value(parameter, text)?
        } else if matches!(other, Token::Text(_)) && !listed {
            return Err(format!(
                "R would compare the texts of {name:?} and {text:?}, not the numbers; remove the quotation marks"
            ));
        } else {
            value_from_text(parameter, text, comparison)?
        }),
        _ => return Err(format!("after {}, expected a value", comparison.symbol())),
    };
    if listed && comparison.is_ordered() {
        let symbol = comparison.symbol();
        draft.note(format!(
            "R compares the values of {name:?} as text in `{name} {symbol} …`; boscage compares numbers by their size and \
             words of an ordinal parameter by their place"
        ));
    }
    Ok(Step::Test(Test::Compare { name: name.clone(), comparison, with }))
}
