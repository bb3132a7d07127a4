use proptest::prelude::*;

use super::*;

/// What is in a study file, as far as it concerns us.
struct Contents {
    table: toml::Table,
    space: StudySpace,
}

fn contents_of(text: &str) -> Contents {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut space = toml::Table::new();
    for key in ["parameters", "forbidden"] {
        space.extend(table.get(key).map(|value| (key.to_string(), value.clone())));
    }
    let space = space.try_into().unwrap_or_else(|error| panic!("{error}\n{text}"));
    Contents { table, space }
}

fn study(draft: Draft) -> Study {
    Study::new("mine".to_string(), draft).unwrap()
}

/// The lists and words of the command, as JSON.
fn command(contents: &Contents) -> String {
    serde_json::to_string(&contents.table["program"]["command"]).unwrap()
}

fn drafted(parameters: &[&str], command: &[&str]) -> Draft {
    Draft {
        parameters: parameters.iter().map(|text| parameter(text).unwrap()).collect(),
        command: command.iter().map(ToString::to_string).collect(),
        ..Draft::default()
    }
}

fn refusal<T>(result: anyhow::Result<T>) -> String {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": "),
    }
}

#[test]
fn parameters_are_read_from_lines() {
    let shown = |line: &str| parameter_table(&parameter(line).unwrap());
    for (line, expected) in [
        ("x real 0 1", "{ type = \"real\", low = 0.0, high = 1.0 }"),
        (
            "x real 1e-5 1 log default 0.01",
            "{ type = \"real\", low = 1e-5, high = 1.0, log = true, default = 0.01 }",
        ),
        (
            "x real 0 1 step 0.25 default 1",
            "{ type = \"real\", low = 0.0, high = 1.0, step = 0.25, default = 1.0 }",
        ),
        ("  x\tinteger -3 8  ", "{ type = \"integer\", low = -3, high = 8 }"),
        (
            "x integer 1 9 step 2 default 3",
            "{ type = \"integer\", low = 1, high = 9, step = 2, default = 3 }",
        ),
        ("x integer 1 9 log", "{ type = \"integer\", low = 1, high = 9, log = true }"),
        ("x categorical a b c", "{ type = \"categorical\", choices = [\"a\", \"b\", \"c\"] }"),
        ("x categorical 1 2.5 -3", "{ type = \"categorical\", choices = [1, 2.5, -3] }"),
        (
            "x categorical 1 2.50 inf",
            "{ type = \"categorical\", choices = [\"1\", \"2.50\", \"inf\"] }",
        ),
        ("x categorical \"1\" 2", "{ type = \"categorical\", choices = [\"1\", \"2\"] }"),
        (
            "x categorical 'a b' \"\" default 'a b'",
            "{ type = \"categorical\", choices = [\"a b\", \"\"], default = \"a b\" }",
        ),
        (
            "x categorical log default default log",
            "{ type = \"categorical\", choices = [\"log\", \"default\"], default = \"log\" }",
        ),
        ("x categorical 'default' y", "{ type = \"categorical\", choices = [\"default\", \"y\"] }"),
        (
            "x ordinal low mid high default mid",
            "{ type = \"ordinal\", levels = [\"low\", \"mid\", \"high\"], default = \"mid\" }",
        ),
        ("x boolean", "{ type = \"boolean\" }"),
        ("x boolean default true", "{ type = \"boolean\", default = true }"),
        ("x boolean if  mode == \"a b\" ", "{ type = \"boolean\", condition = 'mode == \"a b\"' }"),
        ("x boolean if mode == 'it'", "{ type = \"boolean\", condition = \"mode == 'it'\" }"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
    assert_eq!(parameter("'my name' boolean").unwrap().name, "my name");
}

#[test]
fn wrong_parameters_are_refused() {
    let lines = [
        "",
        "x",
        "x float 0 1",
        "x real",
        "x real 0",
        "x real a 1",
        "x real 1 0",
        "x real 0 1 lag",
        "x real 0 1 step",
        "x real 0 1 log",
        "x real 0 inf",
        "x real 0 1 default 2",
        "x integer 0.5 1",
        "x integer 1 9 step 0",
        "x integer 1 9 step -1",
        "x categorical",
        "x categorical a a",
        "x ordinal 2 1",
        "x boolean a",
        "x boolean default maybe",
        "x boolean if mode ==",
        "x categorical 'a b",
    ];
    let all: String = lines.iter().map(|line| refusal(parameter(line)) + "\n").collect();
    insta::assert_snapshot!(all, @r#"
    "" does not describe a parameter: a name and a type were expected, as in: rate real 0 1
    "x" does not describe a parameter: a name and a type were expected, as in: rate real 0 1
    "x float 0 1" does not describe a parameter: "float" is not one of real, integer, categorical, ordinal and boolean
    "x real" does not describe a parameter: real needs its bounds, as in: x real 1 10
    "x real 0" does not describe a parameter: real needs its bounds, as in: x real 1 10
    "x real a 1" does not describe a parameter: "a" is not a number
    "x real 1 0" does not describe a parameter: parameter "x": low 1 is above high 0; swap them
    "x real 0 1 lag" does not describe a parameter: "lag" was not expected; log, step NUMBER, default VALUE or if CONDITION may follow the bounds
    "x real 0 1 step" does not describe a parameter: after step, a number was expected
    "x real 0 1 log" does not describe a parameter: parameter "x": a log scale needs low above 0, not 0; raise low or set log to false
    "x real 0 inf" does not describe a parameter: parameter "x": bounds 0 and inf must both be finite numbers
    "x real 0 1 default 2" does not describe a parameter: parameter "x": 2 is not between 0 and 1
    "x integer 0.5 1" does not describe a parameter: "0.5" is not an integer
    "x integer 1 9 step 0" does not describe a parameter: parameter "x": the step is 0; it must be at least 1
    "x integer 1 9 step -1" does not describe a parameter: the step "-1" is not an integer above 0
    "x categorical" does not describe a parameter: categorical needs its values, as in: x categorical low mid high
    "x categorical a a" does not describe a parameter: parameter "x": the choice a occurs twice, as a program would see it; they must all differ
    "x ordinal 2 1" does not describe a parameter: parameter "x": level 2 is followed by 1; numbers must be in increasing order
    "x boolean a" does not describe a parameter: boolean needs no values
    "x boolean default maybe" does not describe a parameter: parameter "x": maybe is not false or true
    "x boolean if mode ==" does not describe a parameter: the condition `mode ==`: column 8: expected a value or a parameter after ==, found the end
    "x categorical 'a b" does not describe a parameter: a ' is never closed in "x categorical 'a b"
    "#);
}

#[test]
fn every_imported_space_is_written_as_it_was_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../boscage-study/tests/spaces");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let imported =
            import::read(&contents(&path).unwrap(), None, &path.display().to_string()).unwrap();
        let expected =
            StudySpace::new(imported.parameters.clone(), imported.forbidden.clone()).unwrap();
        let draft = Draft {
            parameters: imported.parameters,
            forbidden: imported.forbidden,
            arguments: imported.command_arguments,
            notes: imported.notes,
            ..Draft::default()
        };
        let read = contents_of(&study(draft).text());
        assert_eq!(read.space, expected, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 6);
}

#[test]
fn the_switches_of_irace_become_arguments() {
    let file = "
        mode  \"--\"        c (fast, slow)
        rate  \"--rate \"   r (0, 1)
        depth \"-v -d \"    i (1, 9)  | mode == \"fast\"
        width \"--width=\"  i (1, 9)  | mode == \"fast\"
    ";
    let imported = import::read(file, None, "parameters.txt").unwrap();
    let draft = || Draft {
        parameters: imported.parameters.clone(),
        arguments: imported.command_arguments.clone(),
        ..Draft::default()
    };
    let read = contents_of(&study(draft()).text());
    let all = r#""--{mode}","--rate","{rate}",["-v","-d","{depth}"],["--width={width}"]]"#;
    assert_eq!(command(&read), format!("[\"./program\",{all}"));
    let with =
        Draft { command: vec!["./solve".to_string(), "--seed={seed}".to_string()], ..draft() };
    assert_eq!(
        command(&contents_of(&study(with).text())),
        format!("[\"./solve\",\"--seed={{seed}}\",{all}")
    );
}

#[test]
fn commands_are_kept_and_completed() {
    let parameters = ["mode categorical a b", "x real 0 1", "y real 0 1 if mode == 'a'"];
    let shown = |words: &[&str]| command(&contents_of(&study(drafted(&parameters, words)).text()));
    assert_eq!(shown(&[]), r#"["./program","--mode={mode}","--x={x}",["--y={y}"]]"#);
    assert_eq!(
        shown(&["p", "a b", "\"q\""]),
        r#"["p","a b","\"q\"","--mode={mode}","--x={x}",["--y={y}"]]"#
    );
    assert_eq!(shown(&["p", "{mode}", "{x}", "-y={y}"]), r#"["p","{mode}","{x}",["-y={y}"]]"#);
    assert_eq!(
        shown(&["p", "{mode}", "-x", "{x}", "-y", "{y}"]),
        r#"["p","{mode}","-x","{x}",["-y","{y}"]]"#
    );
    assert_eq!(shown(&["p", "{mode}", "-x", "{x}", "{y}"]), r#"["p","{mode}","-x","{x}",["{y}"]]"#);
    assert_eq!(
        shown(&["p", "{{}}", "{mode}{x}", "--a=b", "{y}"]),
        r#"["p","{{}}","{mode}{x}","--a=b",["{y}"]]"#
    );
    assert_eq!(
        shown(&["p", "{parameters_file}", "{trial}"]),
        r#"["p","{parameters_file}","{trial}"]"#
    );
    let refused = |words: &[&str]| refusal(Study::new(String::new(), drafted(&parameters, words)));
    assert_eq!(refused(&["p", "{z}"]), "{z} in the command is no parameter; did you mean \"x\"?");
    assert_eq!(
        refused(&["p", "{x}"]),
        "the command never uses \"mode\"; add {mode}, or leave all out to have an argument added for each"
    );
    for word in ["{x", "x}", "{x{y}}", "}{"] {
        assert!(
            refused(&["p", word]).contains("without its counterpart; write it twice"),
            "{word}"
        );
    }
    // Names that cannot stand between braces, or mean something else there.
    for name in ["seed", "'a{b'"] {
        let parameter = format!("{name} real 0 1");
        let study = study(drafted(&["x real 0 1", &parameter], &["p"]));
        assert_eq!(command(&contents_of(&study.text())), r#"["p","{parameters_file}"]"#);
        assert!(study.notes[0].contains("JSON file"), "{:?}", study.notes);
    }
}

#[test]
fn results_are_written_as_they_are_read() {
    for rule in [
        "last-number",
        "exit-code",
        r"regex:it's (\S+) 'x'",
        r"regex:cost: (\S+)",
        "json:test.loss",
    ] {
        let result = result_rule(rule).unwrap();
        let study = study(Draft { result: result.clone(), ..drafted(&["x real 0 1"], &[]) });
        let read = contents_of(&study.text()).table["program"]["result"].clone();
        assert_eq!(read.try_into::<ResultRule>().unwrap(), result, "{rule}");
    }
    assert!(
        refusal(result_rule("stdout"))
            .contains("use last-number, exit-code, regex:PATTERN or json:KEY")
    );
    for (rule, expected) in
        [("regex:(", "regular expression"), ("regex:cost", "no group"), ("json:a..b", "empty part")]
    {
        let draft = Draft { result: result_rule(rule).unwrap(), ..drafted(&["x real 0 1"], &[]) };
        let error = refusal(Study::new(String::new(), draft));
        assert!(error.contains(expected), "{error}");
    }
}

fn asked(answers: &str) -> (anyhow::Result<Draft>, String) {
    let mut out = Vec::new();
    let draft = ask(&mut answers.as_bytes(), &mut out);
    (draft, String::from_utf8(out).unwrap())
}

#[test]
fn questions_make_a_study() {
    let answers = "python 'my train.py'\nx real 0 1\nx real 0 2\ny wrong\ny boolean if x > 0.5\nz boolean if w\n\nup\nmaximize\nsomewhere\njson:loss\n";
    let (draft, out) = asked(answers);
    let draft = draft.unwrap();
    assert_eq!(draft.command, ["python", "my train.py"]);
    assert_eq!(
        draft.parameters,
        [parameter("x real 0 1").unwrap(), parameter("y boolean if x > 0.5").unwrap()]
    );
    assert_eq!(
        (draft.goal, &draft.result),
        (Goal::Maximize, &ResultRule::Json("loss".to_string()))
    );
    insta::assert_snapshot!(out, @r#"
    A few questions; an empty answer takes what is in brackets.

    Program to run, with arguments [./program]: 
    Parameters, one per line, an empty line at the end. For example:
      rate real 1e-5 1 log default 0.01
      layers integer 1 8 default 2
      mode categorical fast slow
      level ordinal low mid high
      cache boolean
      cutoff real 0 1 step 0.25 if mode == "fast"
    Parameter: Parameter: there is a parameter "x" already; once more:
    Parameter: "y wrong" does not describe a parameter: "wrong" is not one of real, integer, categorical, ordinal and boolean; once more:
    Parameter: Parameter: parameter "z": its condition `w`: there is no parameter "w"; once more:
    Parameter: 
    Are small or large results sought, minimize or maximize? [minimize]: "up" is neither minimize nor maximize; once more:
    Are small or large results sought, minimize or maximize? [minimize]: Where is the result: last-number, exit-code, regex:PATTERN or json:KEY? [last-number]: "somewhere" does not tell where the result is; use last-number, exit-code, regex:PATTERN or json:KEY; once more:
    Where is the result: last-number, exit-code, regex:PATTERN or json:KEY? [last-number]:
    "#);
    let read = contents_of(&study(draft).text());
    assert_eq!(read.table["goal"].as_str(), Some("maximize"));
    assert_eq!(command(&read), r#"["python","my train.py","--x={x}",["--y={y}"]]"#);
}

#[test]
fn empty_answers_take_what_is_offered() {
    let draft = asked("\nx real 0 1\n\n\n\n").0.unwrap();
    assert_eq!((draft.goal, draft.result.clone()), (Goal::Minimize, ResultRule::LastNumber));
    assert_eq!(command(&contents_of(&study(draft).text())), r#"["./program","--x={x}"]"#);
    // The end of the input answers all that is left.
    assert_eq!(asked("p\nx real 0 1").0.unwrap().command, ["p"]);
    assert!(refusal(asked("p\n").0).contains("no parameters; nothing was written"));
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        proptest::num::f64::NORMAL.prop_map(Value::Real),
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::Choice),
        "[\u{0}-\u{9f}'\"\\\\]{0,5}".prop_map(Value::Choice),
    ]
}

proptest! {
    #[test]
    fn any_line_is_a_parameter_or_refused(line in any::<String>(), tail in "[-a-z0-9 .'\"=<>]{0,20}") {
        let _ = parameter(&line);
        let _ = parameter(&format!("x real 0 1 {tail}"));
        let _ = parameter(&format!("x categorical a {tail}"));
    }

    #[test]
    fn any_space_is_written_as_it_is(
        names in proptest::collection::hash_set(any::<String>(), 1..5),
        choices in proptest::collection::vec(any_value(), 1..5),
        low in proptest::num::f64::NORMAL,
        width in 0..1000_i64,
    ) {
        let kinds = [
            Kind::Categorical { choices: choices.clone() },
            Kind::Real { low, high: low.abs() * 2.0, log: false, step: None },
            Kind::Integer { low: -width, high: width, step: 3, log: false },
            Kind::Boolean {},
        ];
        let mut parameters: Vec<StudyParameter> =
            names.into_iter().zip(kinds).map(|(name, kind)| StudyParameter::new(name, kind)).collect();
        parameters[0].default = choices.first().cloned();
        let first = parameters[0].name.clone();
        let condition = Condition::is_in(&first, &choices).unwrap();
        for parameter in &mut parameters[1..] {
            parameter.condition = Some(condition.clone());
        }
        let forbidden = vec![condition.negated().unwrap()];
        let Ok(expected) = StudySpace::new(parameters.clone(), forbidden.clone()) else { return Ok(()) };
        let study = study(Draft { parameters, forbidden, ..Draft::default() });
        prop_assert_eq!(contents_of(&study.text()).space, expected);
    }

    #[test]
    fn any_word_of_a_command_is_written_as_it_is(word in any::<String>(), name in any::<String>()) {
        let draft = drafted(&["x real 0 1"], &["p", "{x}", &word]);
        if let Ok(study) = Study::new(name.clone(), draft) {
            let read = contents_of(&study.text());
            prop_assert_eq!(read.table["program"]["command"][2].as_str(), Some(word.as_str()));
            prop_assert_eq!(read.table["name"].as_str(), Some(name.as_str()));
        }
    }
}
