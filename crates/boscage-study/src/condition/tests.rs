use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::parameters::StudySpace;

fn word(text: &str) -> Value {
    Value::Choice(text.to_string())
}

fn outcome(text: &str, values: &[(&str, Value)]) -> bool {
    let values: BTreeMap<&str, &Value> =
        values.iter().map(|(name, value)| (*name, value)).collect();
    Condition::parse(text).unwrap().holds(&|name| values.get(name).copied())
}

fn refusal(text: &str) -> String {
    Condition::parse(text).unwrap_err().to_string()
}

#[test]
fn conditions_hold_as_their_words_say() {
    let values = [
        ("mode", word("fast")),
        ("layers", Value::Integer(4)),
        ("rate", Value::Real(0.5)),
        ("cache", Value::Boolean(false)),
        ("my name", Value::Integer(1)),
        ("a-b.c_1", Value::Integer(2)),
        ("in", Value::Integer(3)),
        ("1e5", word("it's \"é\"\n\\")),
        ("large", Value::Integer((1 << 53) + 1)),
    ];
    for (text, expected) in [
        (r#"mode == "fast""#, true),
        ("mode == 'fast'", true),
        ("mode != 'fast'", false),
        ("'fast' == mode", true),
        ("layers == 4.0", true),
        ("layers != 4.0", false),
        ("layers < 4", false),
        ("layers <= 4", true),
        ("layers > 3.5", true),
        ("layers >= 5", false),
        ("3 < layers", true),
        ("4 < layers", false),
        ("5 <= layers", false),
        ("layers>-1e+3", true),
        ("layers > rate", true),
        ("rate == .5", true),
        ("rate in [0, 0.5]", true),
        ("rate not in [0, 0.5]", false),
        ("layers in [4.0]", true),
        ("layers in ['4']", false),
        ("layers == '4'", false),
        ("layers != '4'", true),
        ("cache", false),
        ("not cache", true),
        ("!cache", true),
        ("!!cache", false),
        ("cache == false", true),
        ("true", true),
        ("false or not false", true),
        ("cache and cache or true", true),
        ("true or cache and cache", true),
        ("(true or cache) and cache", false),
        ("not cache and cache", false),
        ("not (cache and cache)", true),
        ("not layers == 3", true),
        ("! layers == 4", false),
        ("mode == 'fast' and (layers > 4 or not cache)", true),
        ("mode == 'fast' && (layers > 4 || cache)", false),
        ("`my name` >= 1", true),
        ("a-b.c_1 == 2", true),
        ("`in` == 3", true),
        (r#"`1e5` == "it's \"é\"\n\\""#, true),
        ("large == 9007199254740993", true),
        ("large == 9007199254740992", false),
        ("large > 9007199254740992", true),
        ("  \t\nmode=='fast'\r\n ", true),
        // Without order, < and > do not hold.
        ("mode < 'zebra'", false),
        ("mode >= 'a'", false),
        ("cache < true", false),
    ] {
        assert_eq!(outcome(text, &values), expected, "{text}");
    }
}

#[test]
fn comparisons_with_a_parameter_without_value_do_not_hold() {
    let values = [("y", Value::Integer(1))];
    for text in [
        "x",
        "x == 3",
        "x != 3",
        "x > 3",
        "x <= 3",
        "x in [3]",
        "x not in [3]",
        "x == y",
        "y == x",
        "y != x",
        "x == x",
    ] {
        assert!(!outcome(text, &values), "{text}");
        assert!(outcome(&format!("not ({text})"), &values), "{text}");
    }
}

#[test]
fn words_are_compared_by_rank_if_ranks_are_told() {
    let levels = ["low", "mid", "high"];
    let high = word("high");
    let rank = |name: &str, value: &Value| {
        (name == "level").then_some(())?;
        levels.iter().position(|level| word(level) == *value)
    };
    let holds = |text: &str| {
        Condition::parse(text)
            .unwrap()
            .holds_with_ranks(&|name| (name == "level").then_some(&high), &rank)
    };
    assert!(holds("level > 'mid'") && holds("level >= 'high'") && holds("'low' < level"));
    assert!(!holds("level < 'mid'") && !holds("level > 'high'") && !holds("level > 'unknown'"));
}

#[test]
fn names_are_given_once_in_their_order() {
    let condition = Condition::parse("b > 1 and (a or b < c) or `d e` in [1] and not a").unwrap();
    assert_eq!(condition.names(), ["b", "a", "c", "d e"]);
    assert_eq!(Condition::parse("true").unwrap().names(), [""; 0]);
}

#[test]
fn the_text_is_kept_as_it_was_written() {
    let text = " mode   ==\t'fast' ";
    let condition: Condition = text.parse().unwrap();
    assert_eq!((condition.text(), condition.to_string().as_str()), (text, text));
    let json = serde_json::to_string(&condition).unwrap();
    assert_eq!(json, serde_json::to_string(text).unwrap());
    assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), condition);
    assert!(
        serde_json::from_str::<Condition>("\"x ==\"").unwrap_err().to_string().contains("column 5")
    );
}

#[test]
fn refusals_name_the_column_and_what_was_expected() {
    let texts = [
        "",
        "x ==",
        "x = 3",
        "== 3",
        "x 3",
        "3",
        "3 < 4",
        "1 < x < 3",
        "x in 3",
        "x in []",
        "x in [a]",
        "x in [1 2]",
        "x in [1",
        "x not 3",
        "'a' in [1]",
        "(x",
        "x)",
        "(x or (y)",
        "x and",
        "and",
        "x & y",
        "x == 'a",
        "é > 3",
        "`é > 3",
        r"x == '\q'",
        "x == 1e999",
        "x + y > 3",
        "not",
        "()",
    ];
    let all: String = texts.iter().map(|text| refusal(text) + "\n").collect();
    insta::assert_snapshot!(all, @r#"
    the condition ``: column 1: expected a parameter, a value, not or (, found the end
    the condition `x ==`: column 5: expected a value or a parameter after ==, found the end
    the condition `x = 3`: column 3: write == to compare
    the condition `== 3`: column 1: expected a parameter, a value, not or (, found ==
    the condition `x 3`: column 3: expected and, or, ) or the end, found 3
    the condition `3`: column 2: expected a comparison after 3, found the end
    the condition `3 < 4`: column 1: one side of a comparison must be a parameter
    the condition `1 < x < 3`: column 7: expected and, or, ) or the end, found <
    the condition `x in 3`: column 6: expected [ after in, found 3
    the condition `x in []`: column 7: expected a value, found ]
    the condition `x in [a]`: column 7: expected a value, found a; text is written in quotation marks
    the condition `x in [1 2]`: column 9: expected , or ], found 2
    the condition `x in [1`: column 8: expected , or ], found the end
    the condition `x not 3`: column 7: expected in after not, found 3
    the condition `'a' in [1]`: column 1: expected a parameter before in, found "a"
    the condition `(x`: column 1: this ( is never closed; add )
    the condition `x)`: column 2: there is no ( for this )
    the condition `(x or (y)`: column 1: this ( is never closed; add )
    the condition `x and`: column 6: expected a parameter, a value, not or (, found the end
    the condition `and`: column 1: expected a parameter, a value, not or (, found and
    the condition `x & y`: column 3: '&' was not expected; a name with such a character is written in backquotes, text in quotes
    the condition `x == 'a`: column 6: this ' is never closed; add '
    the condition `é > 3`: column 1: 'é' was not expected; a name with such a character is written in backquotes, text in quotes
    the condition ``é > 3`: column 1: this ` is never closed; add `
    the condition `x == '\q'`: column 7: after \ is expected one of \ " ' ` n r t; for a \ write \\
    the condition `x == 1e999`: column 6: the number 1e999 is too large
    the condition `x + y > 3`: column 3: '+' was not expected; a name with such a character is written in backquotes, text in quotes
    the condition `not`: column 4: expected a parameter, a value, not or (, found the end
    the condition `()`: column 2: expected a parameter, a value, not or (, found )
    "#);
}

#[test]
fn long_and_deep_conditions_are_refused() {
    let deep = |n: usize| format!("{}x{}", "(".repeat(n), ")".repeat(n));
    assert!(Condition::parse(&deep(64)).is_ok());
    assert!(refusal(&deep(65)).contains("column 65: more than 64 parentheses and nots are open"));
    assert!(Condition::parse(&format!("{}x", "not ".repeat(64))).is_ok());
    assert!(refusal(&format!("{}x", "!".repeat(65))).contains("more than 64"));
    assert!(refusal(&"(".repeat(MOST_BYTES)).contains("more than 64"));
    // Side by side there may be as many as fit.
    let wide = vec!["(x)"; 8000].join(" or ");
    assert!(Condition::parse(&wide).is_ok());
    let long = "x".repeat(MOST_BYTES + 1);
    let text = refusal(&long);
    assert!(text.contains("65537 bytes; at most 65536") && text.len() < 200, "{text}");
}

#[test]
fn built_conditions_have_correct_text() {
    let all = |conditions: &[Condition]| Condition::all(conditions).unwrap();
    let any = |conditions: &[Condition]| Condition::any(conditions).unwrap();
    let a = Condition::equals("a", &word("x \"y\" \\ `z` 'w'\n\t\r")).unwrap();
    let b =
        Condition::is_in("my name", &[Value::Integer(1), Value::Real(1e-7), Value::Boolean(true)])
            .unwrap();
    let c = Condition::relation("not", Comparison::GreaterOrEqual, "a`b\\c").unwrap();
    let d = Condition::parse("flag").unwrap();
    assert_eq!(a.text(), r#"a == "x \"y\" \\ `z` 'w'\n\t\r""#);
    assert_eq!(b.text(), "`my name` in [1, 1e-7, true]");
    assert_eq!(c.text(), r"`not` >= `a\`b\\c`");
    assert_eq!(c.names(), ["not", "a`b\\c"]);
    assert_eq!(
        all(&[any(&[b.clone(), c.clone()]), d.negated().unwrap()]).text(),
        r"(`my name` in [1, 1e-7, true] or `not` >= `a\`b\\c`) and not flag"
    );
    assert_eq!(all(&[d.clone(), all(&[d.clone(), d.clone()])]).text(), "flag and flag and flag");
    assert_eq!(any(&[d.clone(), all(&[d.clone(), d.clone()])]).text(), "flag or flag and flag");
    assert_eq!(c.negated().unwrap().text(), r"not (`not` >= `a\`b\\c`)");
    assert_eq!(d.negated().unwrap().negated().unwrap().text(), "not (not flag)");
    assert_eq!((all(&[]).text(), any(&[]).text()), ("true", "false"));
    for name in ["", "1", "-1", "1e5", "true", "in", "é", "a b", "inf", "nan", "-", "--x", "@1:a"]
    {
        let condition = Condition::equals(name, &Value::Integer(1)).unwrap();
        assert_eq!(condition.names(), [name]);
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Condition::equals("x", &Value::Real(number)).unwrap_err().to_string();
        assert!(error.ends_with("its numbers must be finite"), "{error}");
    }
    assert!(Condition::is_in("x", &[]).is_err());
}

fn space(parameters: &str, forbidden: &[&str]) -> Result<StudySpace> {
    let text = format!("forbidden = {forbidden:?}\n[parameters]\n{parameters}");
    let data: serde_json::Value = toml::from_str(&text).unwrap();
    serde_json::from_value(data).map_err(|e| Error::Study { reason: e.to_string() })
}

const PARAMETERS: &str = r#"
mode = { type = "categorical", choices = ["fast", "slow"] }
size = { type = "categorical", choices = [1, 2, 10] }
text = { type = "categorical", choices = ["1", "2"] }
truth = { type = "categorical", choices = [true, false] }
level = { type = "ordinal", levels = ["low", "mid", "high"] }
upper = { type = "ordinal", levels = ["low", "mid", "high"] }
other = { type = "ordinal", levels = ["mid", "low"] }
count = { type = "ordinal", levels = [1, 2, 4] }
cache = { type = "boolean" }
layers = { type = "integer", low = 1, high = 8 }
rate = { type = "real", low = 0, high = 1 }
"#;

#[test]
fn a_space_accepts_what_can_hold() {
    for text in [
        "mode == 'fast'",
        "size > 1 and size in [2, 10]",
        "size > 3",
        "text == '1'",
        "truth",
        "not truth",
        "level > 'low'",
        "level >= upper",
        "level == other",
        "count > 3",
        "cache",
        "cache == truth",
        "layers > 100",
        "layers == rate",
        "layers < count",
        "rate != 0.5",
        "1 == layers",
        "text in ['1']",
        "true",
    ] {
        space(PARAMETERS, &[text]).unwrap();
        space(&format!("{PARAMETERS}x = {{ type = \"boolean\", condition = {text:?} }}"), &[])
            .unwrap();
    }
}

#[test]
fn a_space_refuses_what_can_never_hold() {
    let texts = [
        "mode == 'fats'",
        "mode in ['fast', 'slwo']",
        "mode == fast",
        "nowhere > 3",
        "nowhere",
        "text == 1",
        "size == '1'",
        "size == 3",
        "mode > 'fast'",
        "cache > false",
        "layers > 'a'",
        "layers == 9",
        "rate == 2",
        "level > 'top'",
        "level > 1",
        "level > other",
        "level > count",
        "mode == layers",
        "layers",
        "mode",
        "count > 'a'",
        "cache == 1",
        "rate == true",
        "mode == cache",
    ];
    let refusals = |text: &&str| space(PARAMETERS, &[text]).unwrap_err().to_string() + "\n";
    insta::assert_snapshot!(texts.iter().map(refusals).collect::<String>(), @r#"
    the condition `mode == 'fats'`: "mode" cannot be "fats": fats is not one of fast, slow
    the condition `mode in ['fast', 'slwo']`: "mode" cannot be "slwo": slwo is not one of fast, slow
    the condition `mode == fast`: there is no parameter "fast"; text is written in quotation marks
    the condition `nowhere > 3`: there is no parameter "nowhere"
    the condition `nowhere`: there is no parameter "nowhere"
    the condition `text == 1`: "text" cannot be 1: 1 is not one of 1, 2; write "1"
    the condition `size == '1'`: "size" cannot be "1": 1 is not one of 1, 2, 10; write 1
    the condition `size == 3`: "size" cannot be 3: 3 is not one of 1, 2, 10
    the condition `mode > 'fast'`: the values of "mode" have no order that > could ask for; use ==, != or in, or make it ordinal
    the condition `cache > false`: the values of "cache" have no order that > could ask for; use ==, != or in, or make it ordinal
    the condition `layers > 'a'`: "layers" is a number and "a" is none
    the condition `layers == 9`: "layers" cannot be 9: 9 is not between 1 and 8
    the condition `rate == 2`: "rate" cannot be 2: 2 is not between 0 and 1
    the condition `level > 'top'`: "level" cannot be "top": top is not one of low, mid, high
    the condition `level > 1`: "level" cannot be 1: 1 is not one of low, mid, high
    the condition `level > other`: "level" and "other" have no values that could be compared
    the condition `level > count`: "level" and "count" have no values that could be compared
    the condition `mode == layers`: "mode" and "layers" have no values that could be compared
    the condition `layers`: "layers" is neither false nor true; compare it with a value
    the condition `mode`: "mode" is neither false nor true; compare it with a value
    the condition `count > 'a'`: "count" is a number and "a" is none
    the condition `cache == 1`: "cache" cannot be 1: 1 is not false or true
    the condition `rate == true`: "rate" cannot be true: true is not a number
    the condition `mode == cache`: "mode" and "cache" have no values that could be compared
    "#);
    let error = space(
        "a = { type = \"boolean\", condition = \"b == 'c'\" }\nb = { type = \"integer\", low = 0, high = 1 }",
        &[],
    );
    insta::assert_snapshot!(error.unwrap_err(), @r#"parameter "a": its condition `b == 'c'`: "b" cannot be "c": c is not an integer"#);
}

#[test]
fn a_space_knows_the_rank_of_words() {
    let parameters = r#"
level = { type = "ordinal", levels = ["low", "mid", "high"] }
upper = { type = "ordinal", levels = ["low", "mid", "high"] }
x = { type = "boolean", condition = "level > 'low'" }
"#;
    let space = space(parameters, &["level > upper"]).unwrap();
    let seen = |level: &str, upper: &str| {
        let mut values = vec![Some(word(level)), Some(word(upper)), Some(Value::Boolean(true))];
        space.drop_inactive(&mut values);
        (values[2].is_some(), space.forbidden_by(&values).is_some())
    };
    assert_eq!(seen("low", "low"), (false, false));
    assert_eq!(seen("mid", "high"), (true, false));
    assert_eq!(seen("high", "mid"), (true, true));
    // In the order of the alphabet, "high" would be below "low".
    assert_eq!(seen("high", "low"), (true, true));
}

/// A condition as a tree, looked at in the obvious way.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(Step),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn steps(&self, steps: &mut Vec<Step>) {
        match self {
            Tree::Leaf(step) => steps.push(step.clone()),
            Tree::Not(a) => {
                a.steps(steps);
                steps.push(Step::Not);
            }
            Tree::And(a, b) | Tree::Or(a, b) => {
                a.steps(steps);
                b.steps(steps);
                steps.push(if matches!(self, Tree::And(..)) { Step::And } else { Step::Or });
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Tree::Leaf(Step::Test(test)) => test_text(test),
            Tree::Leaf(Step::Constant(truth)) => truth.to_string(),
            Tree::Leaf(_) => unreachable!(),
            Tree::Not(a) => format!("!({})", a.text()),
            Tree::And(a, b) => format!("(({}) && ({}))", a.text(), b.text()),
            Tree::Or(a, b) => format!("(({}) or {})", a.text(), b.text()),
        }
    }

    fn holds(&self, value: &dyn Fn(&str) -> Option<&'static Value>) -> bool {
        match self {
            Tree::Leaf(Step::Test(test)) => test.holds(value, &|_, _| None),
            Tree::Leaf(Step::Constant(truth)) => *truth,
            Tree::Leaf(_) => unreachable!(),
            Tree::Not(a) => !a.holds(value),
            Tree::And(a, b) => a.holds(value) && b.holds(value),
            Tree::Or(a, b) => a.holds(value) || b.holds(value),
        }
    }
}

static ONE: Value = Value::Integer(1);
static TRUE: Value = Value::Boolean(true);

fn value_of(name: &str) -> Option<&'static Value> {
    match name.len() % 3 {
        0 => Some(&ONE),
        1 => Some(&TRUE),
        _ => None,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        (0..3_i64).prop_map(Value::Integer),
        proptest::num::f64::NORMAL.prop_map(Value::Real),
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::Choice),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}",
        "[-+.0-9e_]{1,6}",
        "(and|or|not|in|true|false|inf|nan)",
        any::<String>()
    ]
}

fn any_comparison() -> impl Strategy<Value = Comparison> {
    proptest::sample::select(vec!["==", "!=", "<", "<=", ">", ">="])
        .prop_map(|symbol| Comparison::of_symbol(symbol).unwrap())
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let operand =
        prop_oneof![any_value().prop_map(Operand::Value), any_name().prop_map(Operand::Parameter)];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Step::Constant),
        any_name().prop_map(|name| Step::Test(Test::Bare(name))),
        (any_name(), any_comparison(), operand).prop_map(|(name, comparison, with)| Step::Test(
            Test::Compare { name, comparison, with }
        )),
        (any_name(), proptest::collection::vec(any_value(), 1..4), any::<bool>())
            .prop_map(|(name, values, negated)| Step::Test(Test::Within { name, values, negated })),
    ];
    leaf.prop_map(Tree::Leaf).prop_recursive(6, 40, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| Tree::Not(Box::new(a))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Tree::Or(Box::new(a), Box::new(b))),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = Condition::parse(&text);
    }

    #[test]
    fn any_sequence_of_tokens_is_read_or_refused(
        tokens in proptest::collection::vec(
            proptest::sample::select(vec![
                "x", "`y z`", "1", "-1e5", "'a'", "\"b", "true", "and", "or", "not", "!", "&&", "||", "(", ")", "[",
                "]", ",", "in", "==", "<", ">=", "=", "&", "é", "\\", "+",
            ]),
            0..20,
        ),
        space in proptest::sample::select(vec!["", " "]),
    ) {
        if let Ok(condition) = Condition::parse(&tokens.join(space)) {
            // What was read can be written, and means the same.
            let again = Condition::from_steps(&condition.steps).unwrap();
            prop_assert_eq!(again.names(), condition.names());
            prop_assert_eq!(again.holds(&value_of), condition.holds(&value_of));
        }
    }

    #[test]
    fn trees_are_written_read_and_looked_at_alike(tree in any_tree()) {
        let mut steps = Vec::new();
        tree.steps(&mut steps);
        let built = Condition::from_steps(&steps).unwrap();
        let with_parentheses = Condition::parse(&tree.text()).unwrap();
        prop_assert_eq!(&with_parentheses.steps, &steps);
        prop_assert_eq!(built.names(), with_parentheses.names());
        for condition in [&built, &with_parentheses] {
            prop_assert_eq!(condition.holds(&value_of), tree.holds(&value_of), "{}", condition);
        }
        // The text is final: it is not changed by writing it again.
        let again = Condition::from_steps(&built.steps).unwrap();
        prop_assert_eq!(again, built);
    }
}
