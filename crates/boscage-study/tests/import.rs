//! Spaces from other tools' files, whole files and what is refused in them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

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
    insta::assert_snapshot!(shown(&read(IRACE, None, "irace.txt").unwrap()), @r#"
    {"name":"algorithm","type":"categorical","choices":["greedy","beam","two step"]}
    {"name":"search","type":"categorical","choices":[0,1,2,3]}
    {"name":"width","type":"integer","low":1,"high":64,"condition":"algorithm == \"beam\""}
    {"name":"depth","type":"integer","low":1,"high":1000,"log":true,"condition":"algorithm != \"greedy\" and search in [1, 2, 3]"}
    {"name":"decay","type":"real","low":0.0,"high":1.0,"condition":"width <= 8 or not (search in [0])"}
    {"name":"rate","type":"real","low":0.00001,"high":1.0,"log":true,"condition":"width >= 2 and width < 32 or not (algorithm in [\"beam\"]) and search != 0"}
    {"name":"effort","type":"ordinal","levels":["low","mid","high"]}
    {"name":"budget","type":"ordinal","levels":[1,10,100],"condition":"effort > \"low\""}
    {"name":"mixed.name_1","type":"categorical","choices":["","1.50","auto"]}
    {"name":"late","type":"real","low":-2.5,"high":2.5,"condition":"budget >= 5"}
    forbidden: algorithm == "beam" and width < 4
    forbidden: width >= depth
    forbidden: effort != "high" and false
    algorithm: ["--{algorithm}"]
    search: ["--search", "{search}"]
    width: ["--width={width}"]
    depth: ["-v", "--depth", "{depth}"]
    decay: ["{decay}"]
    rate: ["--rate={{x}}", "{rate}"]
    effort: ["--effort={effort}"]
    budget: ["--budget={budget}"]
    mixed.name_1: ["-m", "{mixed.name_1}"]
    late: ["--late={late}"]
    note: values of "algorithm" are empty or have spaces; irace pastes them into a command line, where they are none or several arguments, while a program gets each as one argument from boscage
    note: values of "mixed.name_1" are empty or have spaces; irace pastes them into a command line, where they are none or several arguments, while a program gets each as one argument from boscage
    note: irace rounds real parameters to 3 digits after the point; boscage does not
    note: R compares the values of "effort" as text in `effort > …`; boscage compares numbers by their size and words of an ordinal parameter by their place
    note: R compares the values of "budget" as text in `budget >= …`; boscage compares numbers by their size and words of an ordinal parameter by their place
    "#);
}

#[test]
fn old_pcs_files() {
    insta::assert_snapshot!(shown(&read(OLD_PCS, None, "old.pcs").unwrap()), @r#"
    {"name":"heuristic","type":"categorical","choices":["first","random","best"],"default":"random"}
    {"name":"restarts","type":"categorical","choices":[0,1,2],"default":1}
    {"name":"alpha","type":"real","low":0.5,"high":2.0,"default":1.0}
    {"name":"beta","type":"real","low":0.001,"high":10.0,"log":true,"default":0.1,"condition":"heuristic in [\"first\", \"best\"]"}
    {"name":"count","type":"integer","low":1,"high":100,"default":10,"condition":"restarts in [1, 2] and heuristic == \"random\""}
    {"name":"tries","type":"integer","low":1,"high":1000,"log":true,"default":50,"condition":"count in [10, 20]"}
    {"name":"quality","type":"real","low":-1.0,"high":1.0,"default":0.0}
    forbidden: heuristic == "first" and restarts == 2
    forbidden: alpha == 1.0
    "#);
}

#[test]
fn new_pcs_files() {
    insta::assert_snapshot!(shown(&read(NEW_PCS, None, "new.pcs").unwrap()), @r#"
    {"name":"heuristic","type":"categorical","choices":["first","random","best"],"default":"random"}
    {"name":"level","type":"ordinal","levels":["low","mid","high"],"default":"mid"}
    {"name":"size","type":"ordinal","levels":[1,2,4,8],"default":2}
    {"name":"down","type":"ordinal","levels":["8","4","2"],"default":"4"}
    {"name":"count","type":"integer","low":1,"high":100,"default":10}
    {"name":"tries","type":"integer","low":1,"high":1000,"log":true,"default":50,"condition":"heuristic in [\"first\", \"best\"] and count > 5"}
    {"name":"alpha","type":"real","low":0.5,"high":2.0,"default":1.0,"condition":"level < \"high\" or size == 8 and heuristic != \"random\""}
    {"name":"@1:beta<x>","type":"real","low":0.001,"high":10.0,"log":true,"default":0.1,"condition":"count < 50"}
    {"name":"gamma","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"`@1:beta<x>` > 0.5 and down > \"4\""}
    forbidden: heuristic == "first" and level == "low"
    forbidden: count == 7 and `@1:beta<x>` == 1.0
    note: the condition of "alpha" has both && and ||; && was taken to bind more tightly
    "#);
}

#[test]
fn configspace_files() {
    insta::assert_snapshot!(shown(&read(CONFIGSPACE, None, "space.json").unwrap()), @r#"
    {"name":"a","type":"real","low":0.0,"high":1.0,"default":0.5}
    {"name":"b","type":"real","low":0.0,"high":1.0,"default":0.25}
    {"name":"bf","type":"real","low":1.0,"high":4.0,"default":2.0}
    {"name":"bi","type":"integer","low":1,"high":9,"default":4}
    {"name":"c","type":"integer","low":1,"high":100,"log":true,"default":10}
    {"name":"fixed","type":"categorical","choices":[3],"default":3}
    {"name":"flag","type":"categorical","choices":[true,false],"default":true}
    {"name":"layers","type":"integer","low":1,"high":8,"default":2}
    {"name":"level","type":"ordinal","levels":["low","mid","high"],"default":"mid"}
    {"name":"mode","type":"categorical","choices":["fast","slow","off"],"default":"slow"}
    {"name":"my name","type":"categorical","choices":["p q","r\"s"],"default":"p q"}
    {"name":"nf","type":"real","low":-2.0,"high":3.0,"default":0.5}
    {"name":"ni","type":"integer","low":1,"high":9,"default":5}
    {"name":"nums","type":"categorical","choices":[1,2.5,"x"],"default":1}
    {"name":"rate","type":"real","low":0.00001,"high":1.0,"log":true,"default":0.01}
    {"name":"d","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"mode == \"fast\""}
    {"name":"e","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"layers > 3 and mode != \"off\""}
    {"name":"f","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"mode in [\"fast\", \"slow\"] or level < \"high\""}
    {"name":"g","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"flag == true"}
    {"name":"h","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"`my name` == \"p q\""}
    forbidden: mode == "fast" and layers in [7, 8]
    forbidden: a < b
    forbidden: a == b
    forbidden: layers > c
    forbidden: mode == "off"
    forbidden: a < 0.1 or level >= "high"
    forbidden: a <= b
    forbidden: c >= layers
    forbidden: c <= 0
    forbidden: layers > 7
    note: the beta distribution of "bf" is ignored; all values between its bounds are alike at first
    note: the beta distribution of "bi" is ignored; all values between its bounds are alike at first
    note: the weights of the choices of "mode" are ignored; a choice of weight 0 can be tried too
    note: the normal distribution of "nf" is ignored; all values between its bounds are alike at first
    note: the normal distribution of "ni" is ignored; all values between its bounds are alike at first
    "#);
}

#[test]
fn old_configspace_files() {
    insta::assert_snapshot!(shown(&read(OLD_CONFIGSPACE, None, "space.json").unwrap()), @r#"
    {"name":"a","type":"real","low":0.0,"high":1.0,"step":0.5,"default":0.5}
    {"name":"b","type":"real","low":0.0,"high":1.0,"default":0.25}
    {"name":"c","type":"integer","low":1,"high":100,"log":true,"default":10}
    {"name":"fixed","type":"categorical","choices":[3],"default":3}
    {"name":"flag","type":"categorical","choices":[true,false],"default":true}
    {"name":"layers","type":"integer","low":1,"high":8,"default":2}
    {"name":"level","type":"ordinal","levels":["low","mid","high"],"default":"mid"}
    {"name":"mode","type":"categorical","choices":["fast","slow","off"],"default":"slow"}
    {"name":"my name","type":"categorical","choices":["p q","r\"s"],"default":"p q"}
    {"name":"nf","type":"real","low":-2.0,"high":3.0,"default":0.5}
    {"name":"ni","type":"integer","low":1,"high":9,"default":5}
    {"name":"nums","type":"categorical","choices":[1,2.5,"x"],"default":1}
    {"name":"rate","type":"real","low":0.00001,"high":1.0,"log":true,"default":0.01}
    {"name":"d","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"mode == \"fast\""}
    {"name":"e","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"layers > 3 and mode != \"off\""}
    {"name":"f","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"mode in [\"fast\", \"slow\"] or level < \"high\""}
    {"name":"g","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"flag == true"}
    {"name":"h","type":"real","low":0.0,"high":1.0,"default":0.5,"condition":"`my name` == \"p q\""}
    forbidden: mode == "off"
    forbidden: mode == "fast" and layers in [8, 7]
    forbidden: a < b
    forbidden: a == b
    forbidden: layers > c
    note: the weights of the choices of "mode" are ignored; a choice of weight 0 can be tried too
    note: the normal distribution of "nf" is ignored; all values between its bounds are alike at first
    note: the normal distribution of "ni" is ignored; all values between its bounds are alike at first
    "#);
}

#[test]
fn optuna_files() {
    insta::assert_snapshot!(shown(&read(OPTUNA, None, "space.json").unwrap()), @r#"
    {"name":"x","type":"real","low":0.0,"high":1.0}
    {"name":"lr","type":"real","low":0.00001,"high":1.0,"log":true}
    {"name":"step","type":"real","low":0.0,"high":1.0,"step":0.25}
    {"name":"i","type":"integer","low":1,"high":9,"step":2}
    {"name":"il","type":"integer","low":1,"high":64,"log":true}
    {"name":"choice","type":"categorical","choices":["a",1,2.5,true]}
    {"name":"old uniform","type":"real","low":-1.0,"high":1.0}
    {"name":"old log","type":"real","low":0.1,"high":1.0,"log":true}
    {"name":"old discrete","type":"real","low":0.0,"high":1.0,"step":0.1}
    {"name":"old int","type":"integer","low":-5,"high":5,"step":5}
    {"name":"old int log","type":"integer","low":1,"high":100,"log":true}
    {"name":"text","type":"integer","low":0,"high":3}
    note: the upper bound of "old uniform" is no value of its own in UniformDistribution; in boscage it is
    note: the upper bound of "old log" is no value of its own in LogUniformDistribution; in boscage it is
    "#);
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
    insta::assert_snapshot!(refusals(&texts, Format::Irace), @r#"
    file: there are no parameters in it
    file: there are no parameters in it
    file, line 3: after "a", a switch in quotation marks was expected
    file, line 1: after "a", a switch in quotation marks was expected
    file, line 1: after "a", a switch in quotation marks was expected
    file, line 1: "a": the type "b" is not one of c, o, i, r, i,log and r,log
    file, line 1: "a": the type "r,exp" is not one of c, o, i, r, i,log and r,log
    file, line 1: "a": values in ( ) were expected
    file, line 1: "a": the ( of its values is never closed
    file, line 1: "a": a value is missing; an empty one is written ""
    file, line 1: "a": a value is missing; an empty one is written ""
    file, line 1: "a": a " in its values is never closed
    file, line 1: "a": after a value, a comma or ) was expected, not "y)"
    file, line 1: parameter "a": the choice x occurs twice, as a program would see it; they must all differ
    file, line 1: "a": two bounds were expected, not 1
    file, line 1: "a": two bounds were expected, not 3
    file, line 1: parameter "a": low 1 is above high 0; swap them
    file, line 1: "a": the bound "0.5" is not an integer
    file, line 1: parameter "a": integers must lie between -9007199254740992 and 9007199254740992, where every one is a number of 64 bits
    file, line 1: parameter "a": a log scale needs low above 0, not 0; raise low or set log to false
    file, line 2: "a": the bound "b*2" is not a number; bounds that depend on other parameters are not supported: use numbers, and a [forbidden] line for what must not be
    file, line 2: "a": the bound "b" is not a number; bounds that depend on other parameters are not supported: use numbers, and a [forbidden] line for what must not be
    file, line 2: "a": its values are an expression; bounds that depend on other parameters are not supported
    file, line 2: the parameter "a" is defined twice
    file, line 1: "a": | and a condition were expected, not "y"
    file, line 1: column 13: expected a comparison, ! or (
    file, line 1: the section [wrong] is not [forbidden] or [global]
    file, line 2: digits must be a number, not "many"
    file, line 2: [global] knows digits, not "other"
    file: parameter "a": its condition depends on itself, perhaps through others
    file, line 2: column 19: "a" cannot be "w": w is not one of x, y
    file, line 2: column 19: there is no parameter "x"; text is written in quotation marks
    file, line 2: column 19: there is no parameter "c"
    file, line 2: column 14: "a" is not true or false; compare it with a value
    file, line 2: the values of "a" have no order that < could ask for; use ==, != or in, or make it ordinal
    file, line 2: column 16: = assigns in R; write ==, or a space after <
    file, line 2: column 14: the function is.na() is not supported
    file, line 2: column 14: this ( is never closed; add )
    file, line 2: column 23: expected &, |, ) or the end
    file, line 2: column 21: after %in%, expected c(…)
    file, line 2: column 23: within c( ), expected a number or text in quotation marks
    file, line 2: column 27: within c( ), expected , or )
    file, line 2: column 16: '+' is not supported; conditions may use ==, !=, <, <=, >, >=, %in%, c(), !, &, | and parentheses
    file, line 2: column 18: R would compare the texts of "a" and "3", not the numbers; remove the quotation marks
    file, line 2: column 19: "a" cannot be "7": 7 is not between 1 and 5
    file, line 2: column 15: <- assigns in R; write ==, or a space after <
    file, line 2: column 18: 1x is not a number
    file, line 2: column 18: one side of a comparison must be a parameter
    file, line 2: column 19: \ within quotation marks is not supported
    file, line 5: column 4: after >, expected a value
    "#);
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
    insta::assert_snapshot!(refusals(&texts, Format::Pcs), @r#"
    file: there are no parameters in it
    file, line 1: "a": bounds in [ ] were expected
    file, line 1: "a": "wrong" is not categorical, ordinal, integer or real, nor values in { } or [ ]
    file, line 1: a parameter was expected, not "[0,1] [0]"
    file, line 1: "a": values in { } were expected
    file, line 1: "a": a value is missing in { }
    file, line 1: the default: "a" cannot be "z": z is not one of x, y
    file, line 1: parameter "a": the choice x occurs twice, as a program would see it; they must all differ
    file, line 1: "a": "i" was not expected after the values
    file, line 1: "a": two bounds were expected, not 1
    file, line 1: "a": two bounds were expected, not 3
    file, line 1: "a": the bound "one" is not a number
    file, line 1: "a": the bound "0.5" is not an integer
    file, line 1: the default: "a" cannot be "2": 2 is not between 0 and 1
    file, line 1: parameter "a": a log scale needs low above 0, not 0; raise low or set log to false
    file, line 1: "a": "x" was not expected; i, l or il would be right
    file, line 1: "a": "log" was not expected; i, l or il would be right
    file, line 1: "a": "il" was not expected; log would be right
    file, line 1: "a": bounds in [ ] were expected
    file, line 2: the parameter "a" is defined twice
    file, line 2: there is no parameter "b"
    file, line 2: there is no parameter "b"
    file, line 3: "a" cannot be "w": w is not one of x, y
    file, line 3: after "a in", values in { } were expected
    file, line 3: "c" was not expected; && or || joins conditions
    file, line 3: after "a", one of in, ==, !=, < and > was expected, not "= x"
    file, line 3: the values of "a" have no order that < could ask for; use ==, != or in, or make it ordinal
    file, line 3: a parameter and a comparison were expected, not ""
    file, line 3: a parameter and a comparison were expected, not ""
    file: parameter "a": its condition depends on itself, perhaps through others
    file, line 2: "a" cannot be "w": w is not one of x, y
    file, line 2: "b=x" is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave the line out and write it as a condition under forbidden in the study
    file, line 2: the { of a forbidden combination is never closed
    file, line 2: "" is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave the line out and write it as a condition under forbidden in the study
    file, line 3: "a < 3" is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave the line out and write it as a condition under forbidden in the study
    file, line 3: "a == 3" is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave the line out and write it as a condition under forbidden in the study
    file, line 3: "a + b > 10" is not parameter=value, with a parameter of this file; other forbidden expressions are not read: leave the line out and write it as a condition under forbidden in the study
    "#);
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
    insta::assert_snapshot!(refusals(&texts, Format::ConfigSpace), @r#"
    file, line 1: this is not JSON as expected: EOF while parsing an object at line 1 column 1
    file: there are no parameters in it
    file, line 3: this is not JSON as expected: expected value at line 3 column 2
    file: "hyperparameters" is not a list
    file: there are no parameters in it
    file: hyperparameter 1 has no name
    file: hyperparameter "a": there is no text "type"
    file: hyperparameter "a": the type "gamma" is unknown
    file: hyperparameter "a": there is no number "upper"
    file: hyperparameter "a": "lower" is not an integer
    file: hyperparameter "a": it has no number "lower"; a normal hyperparameter is read only if it is bounded on both sides
    file: hyperparameter "a": it has no number "lower"; a normal hyperparameter is read only if it is bounded on both sides
    file: hyperparameter "a": null cannot be a choice; use a word such as "none"
    file: hyperparameter "a": the choice ["x"] is neither a number, a truth value nor text
    file: hyperparameter "a": there is no list "choices"
    file: hyperparameter "a": parameter "a": y is not one of x
    file: parameter "a": level 2 is followed by 1; numbers must be in increasing order
    file: hyperparameter "a": null cannot be a choice; use a word such as "none"
    file: the parameter "a" is defined twice
    file: condition 1: parameter "a": z is not one of x, y
    file: condition 1: there is no parameter "c"
    file: condition 1: there is no parameter "c"
    file: condition 1: there is no "value"
    file: condition 1: there is no text "child"
    file: condition 1: the values of "a" have no order that > could ask for; use ==, != or in, or make it ordinal
    file: condition 1: the type "XOR" is not EQ, NEQ, LT, GT, IN, AND or OR
    file: condition 1: "conditions" is empty
    file: condition 1: the condition `a in []`: column 7: expected a value, found ]
    file: condition 1: there is no text "type"
    file: forbidden clause 1: parameter "b": 10 is not between 1 and 9
    file: forbidden clause 1: the values of "a" have no order that < could ask for; use ==, != or in, or make it ordinal
    file: forbidden clause 1: there is no text "right"
    file: forbidden clause 1: the type "RELATION" is not EQUALS, IN, AND, OR, one of CLAUSE_LT, _LE, _GT, _GE or one of RELATION_LT, _LE, _EQ, _GT, _GE
    file: forbidden clause 1: the type "NOT" is not EQUALS, IN, AND, OR, one of CLAUSE_LT, _LE, _GT, _GE or one of RELATION_LT, _LE, _EQ, _GT, _GE
    "#);
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
    insta::assert_snapshot!(refusals(&texts, Format::Optuna), @r#"
    file, line 1: this is not JSON as expected: EOF while parsing a value at line 1 column 0
    file, line 1: this is not JSON as expected: invalid type: sequence, expected an object from names to distributions at line 1 column 0
    file, line 2: this is not JSON as expected: expected value at line 2 column 6
    file: there are no parameters in it
    file: parameter "x": a distribution was expected, as in {"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 1.0}}
    file: parameter "x": "FloatDistribution" is not JSON: expected value at line 1 column 1
    file: parameter "x": the distribution "NormalDistribution" is unknown; FloatDistribution, IntDistribution and CategoricalDistribution are read
    file: parameter "x": FloatDistribution has no number "low" among its attributes
    file: parameter "x": FloatDistribution has no number "high" among its attributes
    file: parameter "x": low 1 is above high 0; swap them
    file: parameter "x": a step cannot be combined with a log scale; remove one
    file: parameter "x": IntDistribution has no integer "low" among its attributes
    file: parameter "x": the step -1 is negative
    file: parameter "x": step 2 cannot be combined with a log scale; use step 1 or list the values as an ordinal parameter
    file: parameter "x": null cannot be a choice; use a word such as "none"
    file: parameter "x": there are no choices; give at least one
    file: parameter "x": CategoricalDistribution has no list "choices"
    file: the parameter "x" is defined twice
    "#);
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
