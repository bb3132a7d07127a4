//! Conditions between parameters, in a small language of their own: `mode == "fast" and (layers > 4 or not cache)`.
//!
//! | written | meaning |
//! | --- | --- |
//! | `x == 3`, `!=`, `<`, `<=`, `>`, `>=` | comparison of a parameter with a value, or with another parameter |
//! | `x in ["a", "b"]`, `x not in [1, 2]` | whether the value is one of a list |
//! | `cache` | a parameter that is false or true stands for itself |
//! | `true`, `false` | always, never |
//! | `and`, `or`, `not`, `( )`; also `&&`, `\|\|`, `!` | `not` binds more tightly than `and`, `and` than `or` |
//!
//! Values are numbers, truth values (`true`, `false`), or text in `"` or `'`, in which `\` stands before `\`, `"`, `'` and
//! `` ` ``, and `\n`, `\r`, `\t` are a line break, a carriage return and a tab. 1 and 1.0 are equal.
//!
//! A name is written as it is if it consists of letters of ASCII, digits, `_`, `.` and `-`, and is neither a number nor one
//! of the words above; any other is written in backquotes: `` `my name` > 3 ``.
//!
//! `<` and `>` compare numbers, and the words of an ordinal parameter by their place in its levels. `!` and `not` are one:
//! `! x == 3` is `not (x == 3)`.
//!
//! # Parameters without a value
//!
//! A parameter whose own condition does not hold has no value. **No comparison with it holds**, neither `x == 3` nor
//! `x != 3` nor `x not in [3]`. `not` turns that around as it turns everything around: where `x` has no value,
//! `not (x > 3)` holds and `x <= 3` does not.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::{self, Write};

use boscage::Value;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parameters::{Kind, StudyParameter};

/// The most bytes of a condition.
pub const MOST_BYTES: usize = 65_536;
/// The most parentheses and `not` that may be open at a time.
const MOST_DEPTH: usize = 64;
/// How much of a condition that is too long is shown.
const SHOWN_CHARACTERS: usize = 60;

/// The words that have a meaning of their own.
const WORDS: [&str; 6] = ["and", "or", "not", "in", "true", "false"];

/// A parsed condition; as data, its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    text: String,
    /// Operators after what they combine, so that nothing needs recursion.
    steps: Vec<Step>,
}

/// What is done next when a condition is looked at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A test whose outcome is put on the pile.
    Test(Test),
    /// Always or never.
    Constant(bool),
    /// Turns the topmost outcome around.
    Not,
    /// Combines the two topmost outcomes.
    And,
    /// Combines the two topmost outcomes.
    Or,
}

/// Something that a single parameter, or two, can answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Bare(String),
    Compare { name: String, comparison: Comparison, with: Operand },
    Within { name: String, values: Vec<Value>, negated: bool },
}

/// The right side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Value(Value),
    Parameter(String),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The comparison of this symbol.
    pub fn of_symbol(symbol: &str) -> Option<Self> {
        [
            Self::Equal,
            Self::NotEqual,
            Self::Less,
            Self::LessOrEqual,
            Self::Greater,
            Self::GreaterOrEqual,
        ]
        .into_iter()
        .find(|comparison| comparison.symbol() == symbol)
    }

    /// Whether it asks for an order, not only whether two values are one.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// What holds of `b` and `a` where this holds of `a` and `b`.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            other => other,
        }
    }

    /// What holds of two values where this does not.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// The order of two numbers.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Integer(_) | Value::Real(_), Value::Integer(_) | Value::Real(_)) => {
            a.as_f64()?.partial_cmp(&b.as_f64()?)
        }
        _ => None,
    }
}

/// Whether two values are one: 1 and 1.0 are.
fn equal(a: &Value, b: &Value) -> bool {
    order(a, b).map_or_else(|| a == b, Ordering::is_eq)
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MOST_BYTES {
            return Err(Error::Condition {
                text: text.chars().take(SHOWN_CHARACTERS).chain(['…']).collect(),
                reason: format!("it has {} bytes; at most {MOST_BYTES} are allowed", text.len()),
            });
        }
        let steps = read(text).map_err(|Wrong { column, reason }| Error::Condition {
            text: text.to_string(),
            reason: format!("column {column}: {reason}"),
        })?;
        Ok(Self { text: text.to_string(), steps })
    }

    /// The condition with these steps. Its text is made and read again, so that text and steps are always one.
    pub(crate) fn from_steps(steps: &[Step]) -> Result<Self> {
        let text = written(steps);
        let condition = Self::parse(&text)?;
        // NaN and infinities would be read as names.
        let finite = |value: &Value| !matches!(value, Value::Real(number) if !number.is_finite());
        let all_finite = steps.iter().all(|step| match step {
            Step::Test(Test::Compare { with: Operand::Value(value), .. }) => finite(value),
            Step::Test(Test::Within { values, .. }) => values.iter().all(finite),
            _ => true,
        });
        if !all_finite {
            return Err(Error::Condition {
                text,
                reason: "its numbers must be finite".to_string(),
            });
        }
        Ok(condition)
    }

    /// A parameter compared with a value.
    ///
    /// ```
    /// use boscage::Value;
    /// use boscage_study::{Condition, condition::Comparison};
    ///
    /// let fast = Condition::equals("mode", &Value::Choice("fast".to_string()))?;
    /// let deep = Condition::compare("my layers", Comparison::Greater, &Value::Integer(4))?;
    /// assert_eq!(Condition::all(&[fast, deep])?.text(), r#"mode == "fast" and `my layers` > 4"#);
    /// # Ok::<(), boscage_study::Error>(())
    /// ```
    pub fn compare(name: &str, comparison: Comparison, value: &Value) -> Result<Self> {
        let with = Operand::Value(value.clone());
        Self::from_steps(&[Step::Test(Test::Compare { name: name.to_string(), comparison, with })])
    }

    /// A parameter compared with another.
    pub fn relation(name: &str, comparison: Comparison, other: &str) -> Result<Self> {
        let with = Operand::Parameter(other.to_string());
        Self::from_steps(&[Step::Test(Test::Compare { name: name.to_string(), comparison, with })])
    }

    /// A parameter has this value.
    pub fn equals(name: &str, value: &Value) -> Result<Self> {
        Self::compare(name, Comparison::Equal, value)
    }

    /// A parameter has one of these values, of which there must be one at least.
    pub fn is_in(name: &str, values: &[Value]) -> Result<Self> {
        let (name, values) = (name.to_string(), values.to_vec());
        Self::from_steps(&[Step::Test(Test::Within { name, values, negated: false })])
    }

    /// All of these hold; `true` if there are none.
    pub fn all(conditions: &[Condition]) -> Result<Self> {
        Self::joined(conditions, &Step::And, true)
    }

    /// One of these holds at least; `false` if there are none.
    pub fn any(conditions: &[Condition]) -> Result<Self> {
        Self::joined(conditions, &Step::Or, false)
    }

    fn joined(conditions: &[Condition], step: &Step, none: bool) -> Result<Self> {
        let mut steps = Vec::new();
        for (k, condition) in conditions.iter().enumerate() {
            steps.extend_from_slice(&condition.steps);
            if k > 0 {
                steps.push(step.clone());
            }
        }
        if steps.is_empty() {
            steps.push(Step::Constant(none));
        }
        Self::from_steps(&steps)
    }

    /// This does not hold.
    pub fn negated(&self) -> Result<Self> {
        let mut steps = self.steps.clone();
        steps.push(Step::Not);
        Self::from_steps(&steps)
    }

    /// The parameters it speaks of, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let mut seen = HashSet::new();
        let mut add = |name| {
            if seen.insert(name) {
                names.push(name);
            }
        };
        for test in self.tests() {
            match test {
                Test::Bare(name) | Test::Within { name, .. } => add(name),
                Test::Compare { name, with, .. } => {
                    add(name);
                    if let Operand::Parameter(other) = with {
                        add(other);
                    }
                }
            }
        }
        names
    }

    fn tests(&self) -> impl Iterator<Item = &Test> {
        self.steps.iter().filter_map(|step| match step {
            Step::Test(test) => Some(test),
            _ => None,
        })
    }

    /// Whether it holds. A comparison with a parameter that has no value does not hold, nor does `<` or `>` of words,
    /// whose order [`Condition::holds_with_ranks`] has to be told.
    pub fn holds<'a>(&self, value: &dyn Fn(&str) -> Option<&'a Value>) -> bool {
        self.holds_with_ranks(value, &|_, _| None)
    }

    /// Whether it holds, with the places of words in an order: `rank` gives the place of a value among the levels of a
    /// parameter, for those whose levels are compared by their places.
    pub fn holds_with_ranks<'a>(
        &self,
        value: &dyn Fn(&str) -> Option<&'a Value>,
        rank: &dyn Fn(&str, &Value) -> Option<usize>,
    ) -> bool {
        let mut pile: Vec<bool> = Vec::with_capacity(4);
        for step in &self.steps {
            let outcome = match step {
                Step::Test(test) => test.holds(value, rank),
                Step::Constant(outcome) => *outcome,
                Step::Not => !pile.pop().unwrap_or(false),
                Step::And | Step::Or => {
                    let (b, a) = (pile.pop().unwrap_or(false), pile.pop().unwrap_or(false));
                    if *step == Step::And { a && b } else { a || b }
                }
            };
            pile.push(outcome);
        }
        pile.pop().unwrap_or(false)
    }

    /// What is wrong with it among these parameters: a name that is none of them, or a comparison that could never hold,
    /// such as one with a value that the parameter does not have.
    pub(crate) fn check<'a>(
        &self,
        parameter: &dyn Fn(&str) -> Option<&'a StudyParameter>,
    ) -> std::result::Result<(), String> {
        self.tests().try_for_each(|test| test.check(parameter))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Condition {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.text
    }
}

impl Test {
    fn holds<'a>(
        &self,
        value: &dyn Fn(&str) -> Option<&'a Value>,
        rank: &dyn Fn(&str, &Value) -> Option<usize>,
    ) -> bool {
        match self {
            Test::Bare(name) => value(name) == Some(&Value::Boolean(true)),
            Test::Within { name, values, negated } => value(name)
                .is_some_and(|value| values.iter().any(|known| equal(known, value)) != *negated),
            Test::Compare { name, comparison, with } => {
                let Some(left) = value(name) else { return false };
                let (right, owner) = match with {
                    Operand::Value(literal) => (literal, name),
                    Operand::Parameter(other) => match value(other) {
                        Some(right) => (right, other),
                        None => return false,
                    },
                };
                match comparison {
                    Comparison::Equal => equal(left, right),
                    Comparison::NotEqual => !equal(left, right),
                    _ => {
                        let ranks = rank(name, left).zip(rank(owner, right));
                        let order =
                            ranks.map_or_else(|| order(left, right), |(a, b)| Some(a.cmp(&b)));
                        order.is_some_and(|order| comparison.holds(order))
                    }
                }
            }
        }
    }

    fn check<'a>(
        &self,
        parameter: &dyn Fn(&str) -> Option<&'a StudyParameter>,
    ) -> std::result::Result<(), String> {
        let known =
            |name: &str| parameter(name).ok_or_else(|| format!("there is no parameter {name:?}"));
        match self {
            Test::Bare(name) => match values_of(known(name)?) {
                Taken::Truths => Ok(()),
                _ => Err(format!("{name:?} is neither false nor true; compare it with a value")),
            },
            Test::Within { name, values, .. } => {
                let parameter = known(name)?;
                values.iter().try_for_each(|value| can_be(parameter, value))
            }
            Test::Compare { name, comparison, with: Operand::Value(value) } => {
                let parameter = known(name)?;
                if !comparison.is_ordered() {
                    return can_be(parameter, value);
                }
                match values_of(parameter) {
                    Taken::Numbers => match value {
                        Value::Integer(_) | Value::Real(_) => Ok(()),
                        _ => Err(format!("{name:?} is a number and {} is none", literal(value))),
                    },
                    Taken::Ranks(_) => can_be(parameter, value),
                    Taken::Truths | Taken::Words => Err(unordered(name, *comparison)),
                }
            }
            Test::Compare { name, comparison, with: Operand::Parameter(other) } => {
                let left = known(name)?;
                // The likeliest reason is a word whose quotation marks were forgotten.
                let right = parameter(other).ok_or_else(|| {
                    format!("there is no parameter {other:?}; text is written in quotation marks")
                })?;
                let fits = match (values_of(left), values_of(right)) {
                    (Taken::Numbers, Taken::Numbers) => true,
                    (Taken::Ranks(a), Taken::Ranks(b)) if comparison.is_ordered() => a == b,
                    (Taken::Truths | Taken::Words, _) if comparison.is_ordered() => {
                        return Err(unordered(name, *comparison));
                    }
                    (_, Taken::Truths | Taken::Words) if comparison.is_ordered() => {
                        return Err(unordered(other, *comparison));
                    }
                    (Taken::Truths, Taken::Truths) => true,
                    _ if comparison.is_ordered() => false,
                    _ => share_a_value(left, right),
                };
                fits.then_some(()).ok_or_else(|| {
                    format!("{name:?} and {other:?} have no values that could be compared")
                })
            }
        }
    }
}

/// What kind of values a parameter takes, as conditions see them.
enum Taken<'a> {
    Numbers,
    Truths,
    /// Words in an order, perhaps with numbers among them.
    Ranks(&'a [Value]),
    Words,
}

fn values_of(parameter: &StudyParameter) -> Taken<'_> {
    match &parameter.kind {
        Kind::Real { .. } | Kind::Integer { .. } => Taken::Numbers,
        Kind::Boolean {} => Taken::Truths,
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
            if values.iter().all(|value| matches!(value, Value::Integer(_) | Value::Real(_))) {
                Taken::Numbers
            } else if matches!(parameter.kind, Kind::Ordinal { .. }) {
                Taken::Ranks(values)
            } else if values.iter().all(|value| matches!(value, Value::Boolean(_))) {
                Taken::Truths
            } else {
                Taken::Words
            }
        }
    }
}

/// The place of a value among the levels of a parameter, if its values are compared by their places.
pub(crate) fn rank(parameter: &StudyParameter, value: &Value) -> Option<usize> {
    match values_of(parameter) {
        Taken::Ranks(levels) => levels.iter().position(|level| equal(level, value)),
        _ => None,
    }
}

fn unordered(name: &str, comparison: Comparison) -> String {
    format!(
        "the values of {name:?} have no order that {} could ask for; use ==, != or in, or make it ordinal",
        comparison.symbol()
    )
}

fn share_a_value(a: &StudyParameter, b: &StudyParameter) -> bool {
    let listed = |parameter: &StudyParameter| match &parameter.kind {
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => values.clone(),
        Kind::Boolean {} => vec![Value::Boolean(false), Value::Boolean(true)],
        Kind::Real { .. } | Kind::Integer { .. } => Vec::new(),
    };
    // At least one of them is a list: two ranges of numbers can always be compared.
    let (of_a, of_b) = (listed(a), listed(b));
    of_a.iter().any(|value| b.checked(value.clone()).is_ok())
        || of_b.iter().any(|value| a.checked(value.clone()).is_ok())
}

/// Refuses a value that a parameter cannot have: most likely a typo, which would make a condition that never holds.
fn can_be(parameter: &StudyParameter, value: &Value) -> std::result::Result<(), String> {
    let Err(error) = parameter.checked(value.clone()) else { return Ok(()) };
    let reason = match error {
        Error::Parameter { reason, .. } => reason,
        other => other.to_string(),
    };
    let look_alike = match &parameter.kind {
        Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
            values.iter().find(|known| known.to_string() == value.to_string())
        }
        _ => None,
    };
    let hint = look_alike.map_or_else(String::new, |known| format!("; write {}", literal(known)));
    Err(format!("{:?} cannot be {}: {reason}{hint}", parameter.name, literal(value)))
}

// ---- writing ----

/// A value as it is written in a condition.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Choice(text) => quoted(text, '"'),
        other => other.to_string(),
    }
}

/// A name as it is written in a condition.
fn name_text(name: &str) -> String {
    let plain = !name.is_empty()
        && name.bytes().all(|byte| is_plain(char::from(byte)))
        && !looks_like_number(name)
        && !WORDS.contains(&name);
    if plain { name.to_string() } else { quoted(name, '`') }
}

fn quoted(text: &str, mark: char) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(mark);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => {
                if c == mark || c == '\\' {
                    quoted.push('\\');
                }
                quoted.push(c);
            }
        }
    }
    quoted.push(mark);
    quoted
}

fn test_text(test: &Test) -> String {
    match test {
        Test::Bare(name) => name_text(name),
        Test::Compare { name, comparison, with } => {
            let right = match with {
                Operand::Value(value) => literal(value),
                Operand::Parameter(other) => name_text(other),
            };
            format!("{} {} {right}", name_text(name), comparison.symbol())
        }
        Test::Within { name, values, negated } => {
            let not = if *negated { "not " } else { "" };
            let values: Vec<String> = values.iter().map(literal).collect();
            format!("{} {not}in [{}]", name_text(name), values.join(", "))
        }
    }
}

/// The text of steps.
fn written(steps: &[Step]) -> String {
    // How tightly the parts of a text hold together.
    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    enum Strength {
        Or,
        And,
        Test,
        Word,
    }
    let enclose = |text: &mut String| {
        text.insert(0, '(');
        text.push(')');
    };
    let mut pile: Vec<(String, Strength)> = Vec::new();
    for step in steps {
        match step {
            Step::Test(test @ Test::Bare(_)) => pile.push((test_text(test), Strength::Word)),
            Step::Test(test) => pile.push((test_text(test), Strength::Test)),
            Step::Constant(truth) => pile.push((truth.to_string(), Strength::Word)),
            Step::Not => {
                if let Some((text, strength)) = pile.last_mut() {
                    if *strength != Strength::Word {
                        enclose(text);
                    }
                    text.insert_str(0, "not ");
                    *strength = Strength::Test;
                }
            }
            Step::And | Step::Or => {
                let (own, word) =
                    if *step == Step::And { (Strength::And, "and") } else { (Strength::Or, "or") };
                let Some((mut right, of_right)) = pile.pop() else { continue };
                let Some((text, strength)) = pile.last_mut() else { continue };
                if *strength < own {
                    enclose(text);
                }
                if of_right < own {
                    enclose(&mut right);
                }
                let _ = write!(text, " {word} {right}");
                *strength = own;
            }
        }
    }
    pile.pop().map(|(text, _)| text).unwrap_or_default()
}

// ---- reading ----

/// What is wrong, and where, counted in characters from 1.
pub(crate) struct Wrong {
    pub(crate) column: usize,
    pub(crate) reason: String,
}

/// Puts operators after what they combine. Shared with importers, whose languages have the same operators.
#[derive(Default)]
pub(crate) struct Assembly {
    steps: Vec<Step>,
    waiting: Vec<Waiting>,
    /// Whether something that can be true or false came last.
    complete: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    /// A parenthesis, with its column.
    Open(usize),
    Not,
    And,
    Or,
}

impl Assembly {
    /// Whether something that can be true or false must come next, and not an operator or the end.
    pub(crate) fn expects_test(&self) -> bool {
        !self.complete
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
        self.completed();
    }

    fn completed(&mut self) {
        self.complete = true;
        while self.waiting.last() == Some(&Waiting::Not) {
            self.waiting.pop();
            self.steps.push(Step::Not);
        }
    }

    fn wait(&mut self, waiting: Waiting) -> std::result::Result<(), String> {
        // `and` and `or` add at most two for each that is counted here.
        let open = self.waiting.iter().filter(|w| matches!(w, Waiting::Open(_) | Waiting::Not));
        if open.count() >= MOST_DEPTH {
            return Err(format!("more than {MOST_DEPTH} parentheses and nots are open"));
        }
        self.waiting.push(waiting);
        Ok(())
    }

    pub(crate) fn not(&mut self) -> std::result::Result<(), String> {
        self.wait(Waiting::Not)
    }

    pub(crate) fn open(&mut self, column: usize) -> std::result::Result<(), String> {
        self.wait(Waiting::Open(column))
    }

    pub(crate) fn close(&mut self) -> std::result::Result<(), String> {
        self.settle(true);
        match self.waiting.pop() {
            Some(Waiting::Open(_)) => {
                self.completed();
                Ok(())
            }
            _ => Err("there is no ( for this )".to_string()),
        }
    }

    pub(crate) fn and(&mut self) {
        self.settle(false);
        self.waiting.push(Waiting::And);
        self.complete = false;
    }

    pub(crate) fn or(&mut self) {
        self.settle(true);
        self.waiting.push(Waiting::Or);
        self.complete = false;
    }

    /// Applies the operators that bind at least as tightly as the one that comes now.
    fn settle(&mut self, or_too: bool) {
        loop {
            match self.waiting.last() {
                Some(Waiting::And) => self.steps.push(Step::And),
                Some(Waiting::Or) if or_too => self.steps.push(Step::Or),
                _ => return,
            }
            self.waiting.pop();
        }
    }

    /// The steps; to be called where no test is expected.
    pub(crate) fn finish(mut self) -> std::result::Result<Vec<Step>, Wrong> {
        self.settle(true);
        match self.waiting.pop() {
            Some(Waiting::Open(column)) => {
                Err(Wrong { column, reason: "this ( is never closed; add )".to_string() })
            }
            _ => Ok(self.steps),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Value(Value),
    Compare(Comparison),
    In,
    And,
    Or,
    Not,
    Open,
    Close,
    ListOpen,
    ListClose,
    Comma,
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Token::Name(name) => return f.write_str(&name_text(name)),
            Token::Value(value) => return f.write_str(&literal(value)),
            Token::Compare(comparison) => comparison.symbol(),
            Token::In => "in",
            Token::And => "and",
            Token::Or => "or",
            Token::Not => "not",
            Token::Open => "(",
            Token::Close => ")",
            Token::ListOpen => "[",
            Token::ListClose => "]",
            Token::Comma => ",",
            Token::End => "the end",
        })
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-".contains(c)
}

/// Whether a word begins as a number does; `inf` and `nan` do not.
fn begins_like_number(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    digits.strip_prefix('.').unwrap_or(digits).starts_with(|c: char| c.is_ascii_digit())
}

fn looks_like_number(word: &str) -> bool {
    begins_like_number(word) && word.parse::<f64>().is_ok()
}

/// The finite number of a text.
pub(crate) fn number(text: &str) -> Option<Value> {
    if !begins_like_number(text) {
        return None;
    }
    let real = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Real);
    text.parse().ok().map(Value::Integer).or_else(real)
}

/// Cuts a text into tokens, each with its column.
struct Reader<'a> {
    rest: &'a str,
    column: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        self.column += 1;
        Some(c)
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            // 1e+5 is one word.
            let exponent = c == '+'
                && (word.is_empty() || (word.ends_with(['e', 'E']) && begins_like_number(&word)));
            if !(is_plain(c) || exponent) {
                break;
            }
            word.push(c);
            self.skip();
        }
        word
    }

    /// What stands between two marks.
    fn quoted(&mut self, mark: char) -> std::result::Result<String, Wrong> {
        let begin = self.column;
        self.skip();
        let mut text = String::new();
        loop {
            let column = self.column;
            match self.skip() {
                None => {
                    let reason = format!("this {mark} is never closed; add {mark}");
                    return Err(Wrong { column: begin, reason });
                }
                Some(c) if c == mark => return Ok(text),
                Some('\\') => text.push(match self.skip() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(c @ ('\\' | '"' | '\'' | '`')) => c,
                    _ => {
                        let reason =
                            "after \\ is expected one of \\ \" ' ` n r t; for a \\ write \\\\";
                        return Err(Wrong { column, reason: reason.to_string() });
                    }
                }),
                Some(c) => text.push(c),
            }
        }
    }

    fn next(&mut self) -> std::result::Result<(Token, usize), Wrong> {
        while self.peek().is_some_and(char::is_whitespace) {
            self.skip();
        }
        let column = self.column;
        let Some(c) = self.peek() else { return Ok((Token::End, column)) };
        let two: String = self.rest.chars().take(2).collect();
        let symbol = match two.as_str() {
            "&&" => Some(Token::And),
            "||" => Some(Token::Or),
            two => Comparison::of_symbol(two).map(Token::Compare),
        };
        if let Some(token) = symbol {
            for _ in two.chars() {
                self.skip();
            }
            return Ok((token, column));
        }
        let symbol = match c {
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            '[' => Some(Token::ListOpen),
            ']' => Some(Token::ListClose),
            ',' => Some(Token::Comma),
            '!' => Some(Token::Not),
            '<' => Some(Token::Compare(Comparison::Less)),
            '>' => Some(Token::Compare(Comparison::Greater)),
            _ => None,
        };
        if let Some(token) = symbol {
            self.skip();
            return Ok((token, column));
        }
        let token = match c {
            '"' | '\'' => Token::Value(Value::Choice(self.quoted(c)?)),
            '`' => Token::Name(self.quoted(c)?),
            '=' => {
                return Err(Wrong { column, reason: "write == to compare".to_string() });
            }
            c if is_plain(c) || c == '+' => {
                let word = self.word();
                match word.as_str() {
                    "and" => Token::And,
                    "or" => Token::Or,
                    "not" => Token::Not,
                    "in" => Token::In,
                    "true" => Token::Value(Value::Boolean(true)),
                    "false" => Token::Value(Value::Boolean(false)),
                    word => match number(word) {
                        Some(number) => Token::Value(number),
                        None if looks_like_number(word) => {
                            let reason = format!("the number {word} is too large");
                            return Err(Wrong { column, reason });
                        }
                        None if word.contains('+') => return Err(strange('+', column)),
                        None => Token::Name(word.to_string()),
                    },
                }
            }
            c => return Err(strange(c, column)),
        };
        Ok((token, column))
    }
}

fn strange(c: char, column: usize) -> Wrong {
    let reason = format!(
        "{c:?} was not expected; a name with such a character is written in backquotes, text in quotes"
    );
    Wrong { column, reason }
}

fn read(text: &str) -> std::result::Result<Vec<Step>, Wrong> {
    let mut reader = Reader { rest: text, column: 1 };
    let mut tokens = Vec::new();
    while tokens.last().is_none_or(|(token, _)| *token != Token::End) {
        tokens.push(reader.next()?);
    }
    let mut tokens = tokens.into_iter().peekable();
    let mut assembly = Assembly::default();
    // The last token is the end, at which the loop is left.
    while let Some((token, column)) = tokens.next() {
        let here = |reason: String| Wrong { column, reason };
        if assembly.expects_test() {
            match token {
                Token::Not => assembly.not().map_err(here)?,
                Token::Open => assembly.open(column).map_err(here)?,
                Token::Name(_) | Token::Value(_) => {
                    let step = read_test(token, column, &mut tokens)?;
                    assembly.push(step);
                }
                other => {
                    return Err(here(format!(
                        "expected a parameter, a value, not or (, found {other}"
                    )));
                }
            }
        } else {
            match token {
                Token::And => assembly.and(),
                Token::Or => assembly.or(),
                Token::Close => assembly.close().map_err(here)?,
                Token::End => return assembly.finish(),
                other => {
                    return Err(here(format!("expected and, or, ) or the end, found {other}")));
                }
            }
        }
    }
    Err(Wrong { column: 1, reason: "it has no end".to_string() })
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<(Token, usize)>>;

/// The token that comes, which is the end if there is none.
fn take(tokens: &mut Tokens) -> (Token, usize) {
    match tokens.peek() {
        // The end stays, so that it can be met again.
        Some((Token::End, column)) => (Token::End, *column),
        _ => tokens.next().unwrap_or((Token::End, 0)),
    }
}

/// A comparison, or whatever else begins with a name or a value.
fn read_test(left: Token, at: usize, tokens: &mut Tokens) -> std::result::Result<Step, Wrong> {
    let (next, next_at) = tokens.peek().cloned().unwrap_or((Token::End, at));
    match (&next, left) {
        (Token::Compare(comparison), left) => {
            let comparison = *comparison;
            take(tokens);
            let (right, column) = take(tokens);
            let (name, comparison, with) = match (left, right) {
                (Token::Name(name), Token::Value(value)) => {
                    (name, comparison, Operand::Value(value))
                }
                (Token::Name(name), Token::Name(other)) => {
                    (name, comparison, Operand::Parameter(other))
                }
                (Token::Value(value), Token::Name(name)) => {
                    (name, comparison.flipped(), Operand::Value(value))
                }
                (Token::Value(_), Token::Value(_)) => {
                    let reason = "one side of a comparison must be a parameter".to_string();
                    return Err(Wrong { column: at, reason });
                }
                (_, other) => {
                    let symbol = comparison.symbol();
                    let reason =
                        format!("expected a value or a parameter after {symbol}, found {other}");
                    return Err(Wrong { column, reason });
                }
            };
            Ok(Step::Test(Test::Compare { name, comparison, with }))
        }
        (Token::In, Token::Name(name)) => {
            take(tokens);
            let values = read_list(tokens)?;
            Ok(Step::Test(Test::Within { name, values, negated: false }))
        }
        (Token::Not, Token::Name(name)) => {
            take(tokens);
            let (token, column) = take(tokens);
            if token != Token::In {
                let reason = format!("expected in after not, found {token}");
                return Err(Wrong { column, reason });
            }
            let values = read_list(tokens)?;
            Ok(Step::Test(Test::Within { name, values, negated: true }))
        }
        (_, Token::Name(name)) => Ok(Step::Test(Test::Bare(name))),
        (Token::In, Token::Value(value)) => {
            let reason = format!("expected a parameter before in, found {}", literal(&value));
            Err(Wrong { column: at, reason })
        }
        (_, Token::Value(Value::Boolean(truth))) => Ok(Step::Constant(truth)),
        (next, left) => Err(Wrong {
            column: next_at,
            reason: format!("expected a comparison after {left}, found {next}"),
        }),
    }
}

/// `["a", "b"]`
fn read_list(tokens: &mut Tokens) -> std::result::Result<Vec<Value>, Wrong> {
    let (token, column) = take(tokens);
    if token != Token::ListOpen {
        return Err(Wrong { column, reason: format!("expected [ after in, found {token}") });
    }
    let mut values = Vec::new();
    loop {
        match take(tokens) {
            (Token::Value(value), _) => values.push(value),
            (other, column) => {
                let quotes = if matches!(other, Token::Name(_)) {
                    "; text is written in quotation marks"
                } else {
                    ""
                };
                let reason = format!("expected a value, found {other}{quotes}");
                return Err(Wrong { column, reason });
            }
        }
        match take(tokens) {
            (Token::Comma, _) => {}
            (Token::ListClose, _) => return Ok(values),
            (other, column) => {
                return Err(Wrong { column, reason: format!("expected , or ], found {other}") });
            }
        }
    }
}

#[cfg(test)]
mod tests;
