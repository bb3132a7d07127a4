//! Spaces from other tools' files, whole files and what is refused in them.

use boscage::Value;
use boscage_study::import::{Format, ImportedSpace, MOST_BYTES, read};
use boscage_study::{Condition, StudySpace};
use proptest::prelude::*;

const IRACE: &str = include_str!("spaces/irace.txt");
const OLD_PCS: &str = include_str!("spaces/old.pcs");
const NEW_PCS: &str = include_str!("spaces/new.pcs");
const CONFIGSPACE: &str = include_str!("spaces/configspace.json");
const OLD_CONFIGSPACE: &str = include_str!("spaces/configspace-old.json");
const OPTUNA: &str = include_str!("spaces/optuna.json");

const FILES: [(&str, &str, Format); 6] = [
    ("irace.txt", IRACE, Format::Irace),
    ("old.pcs", OLD_PCS, Format::Pcs),
    ("new.pcs", NEW_PCS, Format::Pcs),
    ("configspace.json", CONFIGSPACE, Format::ConfigSpace),
    ("configspace-old.json", OLD_CONFIGSPACE, Format::ConfigSpace),
    ("optuna.json", OPTUNA, Format::Optuna),
];

fn shown(space: &ImportedSpace) -> String {
    let mut lines: Vec<String> =
        space.parameters.iter().map(|p| serde_json::to_string(p).unwrap()).collect();
    lines.extend(space.forbidden.iter().map(|condition| format!("forbidden: {condition}")));
    lines.extend(
        space.command_arguments.iter().map(|a| format!("{}: {:?}", a.parameter, a.arguments)),
    );
    lines.extend(space.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

fn refusal(text: &str, format: Format) -> String {
    match read(text, Some(format), "file") {
        Ok(space) => panic!("{text:?} was read:\n{}", shown(&space)),
        Err(error) => error.to_string(),
    }
}

fn refusals(texts: &[&str], format: Format) -> String {
    texts.iter().map(|text| refusal(text, format) + "\n").collect()
}

#[test]
fn irace_files() {
    insta::assert_snapshot!(shown(&read(IRACE, None, "irace.txt").unwrap()), @"");
}

#[test]
fn old_pcs_files() {
    insta::assert_snapshot!(shown(&read(OLD_PCS, None, "old.pcs").unwrap()), @"");
}

#[test]
fn new_pcs_files() {
    insta::assert_snapshot!(shown(&read(NEW_PCS, None, "new.pcs").unwrap()), @"");
}

#[test]
fn configspace_files() {
    insta::assert_snapshot!(shown(&read(CONFIGSPACE, None, "space.json").unwrap()), @"");
}

#[test]
fn old_configspace_files() {
    insta::assert_snapshot!(shown(&read(OLD_CONFIGSPACE, None, "space.json").unwrap()), @"");
}

#[test]
fn optuna_files() {
    insta::assert_snapshot!(shown(&read(OPTUNA, None, "space.json").unwrap()), @"");
}

/// Which parameters have a value, and whether the point is forbidden, for values by name.
fn looked_at(space: &StudySpace, values: &[(&str, Value)]) -> (Vec<String>, Option<String>) {
    let mut list: Vec<Option<Value>> = space
        .parameters()
        .iter()
        .map(|p| values.iter().find(|(name, _)| *name == p.name).map(|(_, value)| value.clone()))
        .collect();
    space.drop_inactive(&mut list);
    let active = space.names().zip(&list).filter(|(_, value)| value.is_some());
    (
        active.map(|(name, _)| name.to_string()).collect(),
        space.forbidden_by(&list).map(|condition| condition.text().to_string()),
    )
}

fn space(imported: ImportedSpace) -> StudySpace {
    StudySpace::new(imported.parameters, imported.forbidden).unwrap()
}

#[test]
fn a_negated_comparison_of_r_does_not_hold_without_a_value() {
    let file = "
        mode  \"\" c (on, off)
        x     \"\" r (0, 9)  | mode == \"on\"
        never \"\" c (a)     | !(x > 3)
        also  \"\" c (a)     | !(x %in% c(3))
        both  \"\" c (a)     | !(x > 3 | mode == \"on\")
        one   \"\" c (a)     | !(x > 3 & mode == \"on\")
    ";
    let space = space(read(file, Some(Format::Irace), "file").unwrap());
    let word = |text: &str| Value::Choice(text.to_string());
    let values = |mode: &str, x: f64| {
        let a = word("a");
        let all = [
            ("mode", word(mode)),
            ("x", Value::Real(x)),
            ("never", a.clone()),
            ("also", a.clone()),
            ("both", a.clone()),
            ("one", a),
        ];
        looked_at(&space, &all).0
    };
    // In R: NA > 3 is NA, !NA is NA, NA | FALSE is NA, and NA & FALSE is FALSE; NA %in% 3 is FALSE.
    assert_eq!(values("off", 1.0), ["mode", "also", "one"]);
    assert_eq!(values("on", 1.0), ["mode", "x", "never", "also", "one"]);
    assert_eq!(values("on", 4.0), ["mode", "x", "also"]);
    assert_eq!(values("on", 3.0), ["mode", "x", "never", "one"]);
}

#[test]
fn ordinal_words_are_compared_by_their_place() {
    let space = space(read(NEW_PCS, None, "new.pcs").unwrap());
    let word = |text: &str| Value::Choice(text.to_string());
    let has = |level: &str, down: &str| {
        let values = [
            ("heuristic", word("random")),
            ("level", word(level)),
            ("size", Value::Integer(1)),
            ("down", word(down)),
            ("count", Value::Integer(1)),
            ("alpha", Value::Real(1.0)),
            ("@1:beta<x>", Value::Real(1.0)),
            ("gamma", Value::Real(0.5)),
        ];
        let (active, _) = looked_at(&space, &values);
        (active.contains(&"alpha".to_string()), active.contains(&"gamma".to_string()))
    };
    assert_eq!(has("high", "4"), (false, false));
    // 2 comes after 4 in the list.
    assert_eq!(has("mid", "2"), (true, true));
    assert_eq!(has("low", "8"), (true, false));
}

#[test]
fn wrong_irace_lines_are_named() {
    let texts = [
        "",
        "# nothing\n\n",
        "\n\na%b \"--a\" c (x)",
        "a --a c (x)",
        "a \"--a c (x)",
        "a \"--a\" b (x)",
        "a \"--a\" r,exp (0, 1)",
        "a \"--a\" c x",
        "a \"--a\" c (x, y",
        "a \"--a\" c (x,, y)",
        "a \"--a\" c ()",
        "a \"--a\" c (\"x, y)",
        "a \"--a\" c (\"x\" y)",
        "a \"--a\" c (x, x)",
        "a \"--a\" r (0)",
        "a \"--a\" r (0, 1, 2)",
        "a \"--a\" r (1, 0)",
        "a \"--a\" i (0.5, 2)",
        "a \"--a\" i (0, 99999999999999999)",
        "a \"--a\" r,log (0, 1)",
        "b \"\" i (1, 5)\na \"--a\" i (\"b*2\", 10)",
        "b \"\" i (1, 5)\na \"--a\" i (1, b)",
        "b \"\" i (1, 5)\na \"--a\" i (1, min(b, 3))",
        "a \"\" c (x)\na \"\" c (y)",
        "a \"\" c (x) y",
        "a \"\" c (x) |",
        "[wrong]",
        "[global]\ndigits = many",
        "[global]\nother = 1",
        "a \"\" c (x, y) | a == \"x\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a == \"w\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a == x",
        "a \"\" c (x, y)\nb \"\" c (z) | c == \"x\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a",
        "a \"\" c (x, y)\nb \"\" c (z) | a < \"x\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a = \"x\"",
        "a \"\" c (x, y)\nb \"\" c (z) | is.na(a)",
        "a \"\" c (x, y)\nb \"\" c (z) | (a == \"x\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a == \"x\" \"y\"",
        "a \"\" c (x, y)\nb \"\" c (z) | a %in% x",
        "a \"\" c (x, y)\nb \"\" c (z) | a %in% c(x)",
        "a \"\" c (x, y)\nb \"\" c (z) | a %in% c(\"x\" \"y\")",
        "a \"\" i (1, 5)\nb \"\" c (z) | a + 1 > 3",
        "a \"\" i (1, 5)\nb \"\" c (z) | a > \"3\"",
        "a \"\" i (1, 5)\nb \"\" c (z) | a == 7",
        "a \"\" i (1, 5)\nb \"\" c (z) | a<-3",
        "a \"\" i (1, 5)\nb \"\" c (z) | a > 1x",
        "a \"\" i (1, 5)\nb \"\" c (z) | 1 > 3",
        "a \"\" i (1, 5)\nb \"\" c (z) | a == \"\\\\\"",
        "a \"\" i (1, 5)\n\n[forbidden]\na > 3\na >",
    ];
    insta::assert_snapshot!(refusals(&texts, Format::Irace), @"");
}

#[test]
fn wrong_pcs_lines_are_named() {
    let texts = [
        "",
        "a",
        "a wrong {x} [x]",
        "[0,1] [0]",
        "a {x, y",
        "a {x,,y} [x]",
        "a {x, y} [z]",
        "a {x, x} [x]",
        "a {x, y} [x] i",
        "a [0] [0]",
        "a [0, 1, 2] [0]",
        "a [0, one] [0]",
        "a [0.5, 2] [1]i",
        "a [0, 1] [2]",
        "a [0, 1] [0.5]l",
        "a [1, 2] [1]x",
        "a [1, 2] [1]log",
        "a integer [1, 2] [1]il",
        "a real {1, 2} [1]",
        "a {x} [x]\na {x} [x]",
        "a {x, y} [x]\nb | a in {x}",
        "a {x, y} [x]\na | b in {x}",
        "a {x, y} [x]\nb {z} [z]\nb | a in {w}",
        "a {x, y} [x]\nb {z} [z]\nb | a in x",
        "a {x, y} [x]\nb {z} [z]\nb | a in {x} c",
        "a {x, y} [x]\nb {z} [z]\nb | a = x",
        "a {x, y} [x]\nb {z} [z]\nb | a < x",
        "a {x, y} [x]\nb {z} [z]\nb |",
        "a {x, y} [x]\nb {z} [z]\nb | a in {x} &&",
        "a {x, y} [x]\nb {z} [z]\n\nb | a in {x}\na | b in {z}",
        "a {x, y} [x]\n{a=w}",
        "a {x, y} [x]\n{b=x}",
        "a {x, y} [x]\n{a=x",
        "a {x, y} [x]\n{}",
        "a [1, 9] [1]i\nb [1, 9] [1]i\n{a < 3}",
        "a [1, 9] [1]i\nb [1, 9] [1]i\n{a == 3}",
        "a [1, 9] [1]i\nb [1, 9] [1]i\n{a + b > 10}",
    ];
    insta::assert_snapshot!(refusals(&texts, Format::Pcs), @"");
}

#[test]
fn wrong_configspace_files_are_named() {
    let with = |parameter: &str| format!("{{\"hyperparameters\": [{parameter}]}}");
    let parameters = r#""hyperparameters": [{"type": "categorical", "name": "a", "choices": ["x", "y"]},
        {"type": "uniform_int", "name": "b", "lower": 1, "upper": 9}]"#;
    let rule = |key: &str, rule: &str| format!("{{{parameters}, \"{key}\": [{rule}]}}");
    let texts = [
        "{".to_string(),
        "[]".to_string(),
        "{\n\"hyperparameters\":\n NaN}".to_string(),
        r#"{"hyperparameters": 3}"#.to_string(),
        r#"{"hyperparameters": []}"#.to_string(),
        with("3"),
        with(r#"{"name": "a"}"#),
        with(r#"{"name": "a", "type": "gamma"}"#),
        with(r#"{"name": "a", "type": "uniform_float", "lower": 0}"#),
        with(r#"{"name": "a", "type": "uniform_int", "lower": 0.5, "upper": 2}"#),
        with(r#"{"name": "a", "type": "normal_float", "mu": 0, "sigma": 1}"#),
        with(
            r#"{"name": "a", "type": "normal_float", "mu": 0, "sigma": 1, "lower": null, "upper": 3}"#,
        ),
        with(r#"{"name": "a", "type": "categorical", "choices": ["x", null]}"#),
        with(r#"{"name": "a", "type": "categorical", "choices": [["x"]]}"#),
        with(r#"{"name": "a", "type": "categorical"}"#),
        with(r#"{"name": "a", "type": "categorical", "choices": ["x"], "default": "y"}"#),
        with(r#"{"name": "a", "type": "ordinal", "sequence": [2, 1]}"#),
        with(r#"{"name": "a", "type": "constant"}"#),
        with(
            r#"{"name": "a", "type": "constant", "value": 1}, {"name": "a", "type": "constant", "value": 2}"#,
        ),
        rule("conditions", r#"{"type": "EQ", "child": "b", "parent": "a", "value": "z"}"#),
        rule("conditions", r#"{"type": "EQ", "child": "b", "parent": "c", "value": "z"}"#),
        rule("conditions", r#"{"type": "EQ", "child": "c", "parent": "a", "value": "x"}"#),
        rule("conditions", r#"{"type": "EQ", "child": "b", "parent": "a"}"#),
        rule("conditions", r#"{"type": "EQ", "parent": "a", "value": "x"}"#),
        rule("conditions", r#"{"type": "GT", "child": "b", "parent": "a", "value": "x"}"#),
        rule("conditions", r#"{"type": "XOR", "child": "b"}"#),
        rule("conditions", r#"{"type": "AND", "child": "b", "conditions": []}"#),
        rule("conditions", r#"{"type": "IN", "child": "b", "parent": "a", "values": []}"#),
        rule("conditions", "3"),
        rule("forbiddens", r#"{"type": "EQUALS", "name": "b", "value": 10}"#),
        rule("forbiddens", r#"{"type": "RELATION_LT", "left": "a", "right": "b"}"#),
        rule("forbiddens", r#"{"type": "RELATION_LT", "left": "b"}"#),
        rule("forbiddens", r#"{"type": "RELATION", "left": "b", "right": "b", "lambda": "NEAR"}"#),
        rule("forbiddens", r#"{"type": "NOT"}"#),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(refusals(&texts, Format::ConfigSpace), @"");
}

#[test]
fn wrong_optuna_files_are_named() {
    let with = |distribution: &str| format!("{{\"x\": {distribution}}}");
    let texts = [
        "".to_string(),
        "[]".to_string(),
        "{\n\"x\": }".to_string(),
        "{}".to_string(),
        with("3"),
        with("\"FloatDistribution\""),
        with(r#"{"name": "NormalDistribution"}"#),
        with(r#"{"name": "FloatDistribution"}"#),
        with(r#"{"name": "FloatDistribution", "attributes": {"low": 0, "high": "1"}}"#),
        with(r#"{"name": "FloatDistribution", "attributes": {"low": 1, "high": 0}}"#),
        with(r#"{"name": "FloatDistribution", "attributes": {"low": 1, "high": 2, "log": true, "step": 1}}"#),
        with(r#"{"name": "IntDistribution", "attributes": {"low": 1.5, "high": 2}}"#),
        with(r#"{"name": "IntDistribution", "attributes": {"low": 1, "high": 2, "step": -1}}"#),
        with(r#"{"name": "IntDistribution", "attributes": {"low": 1, "high": 9, "step": 2, "log": true}}"#),
        with(r#"{"name": "CategoricalDistribution", "attributes": {"choices": ["a", null]}}"#),
        with(r#"{"name": "CategoricalDistribution", "attributes": {"choices": []}}"#),
        with(r#"{"name": "CategoricalDistribution", "attributes": {}}"#),
        r#"{"x": {"name": "IntDistribution", "attributes": {"low": 1, "high": 2}}, "x": {"name": "IntDistribution", "attributes": {"low": 1, "high": 3}}}"#.to_string(),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(refusals(&texts, Format::Optuna), @"");
}

#[test]
fn formats_are_found_out() {
    for (name, text, format) in FILES {
        let expected = read(text, Some(format), name).unwrap();
        // Also without an ending, and after the mark that some editors put first.
        for place in [name, "space", "a.b/space"] {
            assert_eq!(read(text, None, place).unwrap(), expected, "{place}");
            assert_eq!(read(&format!("\u{feff}{text}"), None, place).unwrap(), expected);
        }
    }
    assert_eq!(
        read("\n#\n", None, "space").unwrap_err().to_string(),
        "space: there are no parameters in it"
    );
    // JSON that is broken is still meant to be JSON.
    assert!(read("{\"hyper", None, "space.json").unwrap_err().to_string().contains("not JSON"));
}

#[test]
fn large_files_are_refused() {
    let text = "#".repeat(MOST_BYTES + 1);
    let error = read(&text, None, "space.pcs").unwrap_err().to_string();
    assert_eq!(error, "space.pcs: it has 10000001 bytes; at most 10000000 are read");
    let many: String = (0..10_001).map(|k| format!("x{k} [0,1]\n")).collect();
    let error = read(&many, None, "space.pcs").unwrap_err().to_string();
    assert_eq!(error, "space.pcs, line 10001: more than 10000 parameters are not read");
}

#[test]
fn what_is_read_can_be_written_and_read_as_a_space() {
    for (name, text, _) in FILES {
        let space = space(read(text, None, name).unwrap());
        let json = serde_json::to_string(&space).unwrap();
        assert_eq!(serde_json::from_str::<StudySpace>(&json).unwrap(), space, "{name}");
        for condition in space.parameters().iter().filter_map(|p| p.condition.as_ref()) {
            assert_eq!(&Condition::parse(condition.text()).unwrap(), condition);
        }
    }
}

fn any_format() -> impl Strategy<Value = Option<Format>> {
    proptest::option::of(proptest::sample::select(vec![
        Format::Irace,
        Format::Pcs,
        Format::ConfigSpace,
        Format::Optuna,
    ]))
}

/// Reads, and checks that what was read makes sense.
fn survives(text: &str, format: Option<Format>) {
    if let Ok(imported) = read(text, format, "file") {
        StudySpace::new(imported.parameters, imported.forbidden).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), format in any_format()) {
        survives(&text, format);
    }

    #[test]
    fn changed_files_are_read_or_refused(
        file in 0..FILES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..6_usize, "[-a-z0-9\"'|&(){}\\[\\], .=<>!#\n:%é\\\\]{0,3}"), 1..6),
        own in any::<bool>(),
        format in any_format(),
    ) {
        let (_, text, own_format) = FILES[file];
        let mut letters: Vec<char> = text.chars().collect();
        for (at, removed, added) in &changes {
            let at = at.index(letters.len() + 1);
            let end = (at + removed).min(letters.len());
            letters.splice(at..end, added.chars());
        }
        let changed: String = letters.into_iter().collect();
        survives(&changed, if own { Some(own_format) } else { format });
    }

    #[test]
    fn any_lines_of_parts_are_read_or_refused(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "a ", "b ", "\"\" ", "\"-a \" ", "c ", "o ", "i ", "r ", "r,log ", "(x,y) ", "(1, 9) ", "| ", "a == \"x\" ",
            "!(", ")", "a > 3 ", "b %in% c(1,2) ", "& ", "|| ", "\n", "\n", "[forbidden]\n", "{x,y} [x] ", "[1,9] [2]i ",
            "{a=x} ", "a in {x} ", "&& ", "categorical ", "integer ", "log ", "TRUE ", "a ",
        ]), 0..30),
        format in any_format(),
    ) {
        survives(&parts.concat(), format);
    }
}
