//! What a study exports is what it holds, and is read back as past results; what else is read, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs::File;
use std::path::Path;

use boscage::{Method, Value};
use boscage_study::{
    ExportFormat, Goal, Kind, PastFormat, PastOptions, PastOutcome, PastResult, PastResults, State,
    StudyParameter, StudySpace, StudyView, Trial, Values, export, past_results,
};
use insta::assert_snapshot;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use serde_json::{Map, json};

/// The checks of the fuzz target.
mod checks {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/checks/past_results.rs"));
}

fn space() -> StudySpace {
    serde_json::from_value(json!({"parameters": [
        {"name": "rate", "type": "real", "low": 1e-5, "high": 1.0, "log": true},
        {"name": "cutoff", "type": "real", "low": 0.0, "high": 1.0, "step": 0.25},
        {"name": "layers", "type": "integer", "low": 1, "high": 8},
        {"name": "level", "type": "ordinal", "levels": ["low", "mid", "high"]},
        {"name": "cache", "type": "boolean"},
        {"name": "mode", "type": "categorical", "choices": ["a,b", "=1+1", "say \"no\""]},
        {"name": "size", "type": "categorical", "choices": [1, 2.5]},
        {"name": "mixed", "type": "categorical", "choices": [true, "yes", 3]}
    ]}))
    .unwrap()
}

fn trial(number: u64, state: State) -> Trial {
    Trial {
        number,
        state,
        value: None,
        values: None,
        failure: None,
        infeasible: false,
        began: None,
        ended: None,
        seconds: None,
        attributes: Map::new(),
    }
}

fn choice(text: &str) -> Option<Value> {
    Some(Value::Choice(text.to_string()))
}

/// Trials with whatever is awkward.
fn awkward() -> StudyView {
    let values = |mode: &str, size: Value, mixed: Value| -> Option<Values> {
        let real = |number| Some(Value::Real(number));
        let (layers, cache) = (Some(Value::Integer(3)), Some(Value::Boolean(true)));
        let rest = vec![choice("mid"), cache, choice(mode), Some(size), Some(mixed)];
        Some([vec![real(0.1 + 0.2), real(0.75), layers], rest].concat())
    };
    let mut told = trial(0, State::Complete);
    told.value = Some(-1e-300);
    told.values = values("a,b", Value::Integer(1), Value::Boolean(true));
    told.began = Some("2026-01-02 03:04:05.000006".to_string());
    told.ended = Some("2026-01-02 03:04:06.500006".to_string());
    told.seconds = Some(1.5);
    told.attributes = serde_json::from_value(json!({
        "count": 1, "share": 1, "list": [1, {"a": null}], "note": "größer", "mixed": true, "nothing": null, "flag": false
    }))
    .unwrap();
    let mut failed = trial(1, State::Failed);
    failed.values = values("=1+1", Value::Real(2.5), Value::Choice("yes".to_string()));
    failed.failure = Some("said \"no\",\nthen\r\nended".to_string());
    failed.attributes = serde_json::from_value(
        json!({"count": -7, "share": 0.5, "mixed": "true", "large": u64::MAX}),
    )
    .unwrap();
    let mut infinite = trial(2, State::Complete);
    infinite.value = Some(f64::INFINITY);
    infinite.infeasible = true;
    infinite.values = values("say \"no\"", Value::Integer(1), Value::Integer(3));
    checks::view(&space(), [told, failed, infinite, trial(3, State::Waiting)].into_iter())
}

fn csv(view: &StudyView) -> String {
    let mut bytes = Vec::new();
    export::write_csv(view, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn json_lines(view: &StudyView) -> String {
    let mut bytes = Vec::new();
    export::write_json_lines(view, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn csv_is_as_documented() {
    assert_snapshot!(csv(&awkward()).replace('\r', "<CR>"), @r#"
    number,value,state,datetime_start,datetime_complete,duration_seconds,failure,infeasible,params_rate,params_cutoff,params_layers,params_level,params_cache,params_mode,params_size,params_mixed,user_attrs_count,user_attrs_flag,user_attrs_large,user_attrs_list,user_attrs_mixed,user_attrs_note,user_attrs_nothing,user_attrs_share
    0,-1e-300,COMPLETE,2026-01-02 03:04:05.000006,2026-01-02 03:04:06.500006,1.5,,false,0.30000000000000004,0.75,3,mid,true,"a,b",1.0,true,1,false,,"[1,{""a"":null}]",true,größer,,1.0
    1,,FAIL,,,,"said ""no"",
    then<CR>
    ended",false,0.30000000000000004,0.75,3,mid,true,=1+1,2.5,yes,-7,,18446744073709551615,,true,,,0.5
    2,inf,COMPLETE,,,,,true,0.30000000000000004,0.75,3,mid,true,"say ""no""",1.0,3,,,,,,,,
    3,,WAITING,,,,,false,,,,,,,,,,,,,,,,
    "#);
}

#[test]
fn json_lines_are_as_documented() {
    assert_snapshot!(json_lines(&awkward()), @r#"
    {"number":0,"state":"COMPLETE","value":-1e-300,"params":{"rate":0.30000000000000004,"cutoff":0.75,"layers":3,"level":"mid","cache":true,"mode":"a,b","size":1,"mixed":true},"datetime_start":"2026-01-02 03:04:05.000006","datetime_complete":"2026-01-02 03:04:06.500006","duration_seconds":1.5,"failure":null,"infeasible":false,"user_attrs":{"count":1,"flag":false,"list":[1,{"a":null}],"mixed":true,"note":"größer","nothing":null,"share":1}}
    {"number":1,"state":"FAIL","value":null,"params":{"rate":0.30000000000000004,"cutoff":0.75,"layers":3,"level":"mid","cache":true,"mode":"=1+1","size":2.5,"mixed":"yes"},"datetime_start":null,"datetime_complete":null,"duration_seconds":null,"failure":"said \"no\",\nthen\r\nended","infeasible":false,"user_attrs":{"count":-7,"large":18446744073709551615,"mixed":"true","share":0.5}}
    {"number":2,"state":"COMPLETE","value":"inf","params":{"rate":0.30000000000000004,"cutoff":0.75,"layers":3,"level":"mid","cache":true,"mode":"say \"no\"","size":1,"mixed":3},"datetime_start":null,"datetime_complete":null,"duration_seconds":null,"failure":null,"infeasible":true,"user_attrs":{}}
    {"number":3,"state":"WAITING","value":null,"params":{},"datetime_start":null,"datetime_complete":null,"duration_seconds":null,"failure":null,"infeasible":false,"user_attrs":{}}
    "#);
}

#[test]
fn parquet_read_back_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.parquet");
    let view = awkward();
    export::export(&view, ExportFormat::Parquet, &path).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4);
    let text = |text: &str| Field::Str(text.to_string());
    let expected: [(&str, [Field; 4]); 24] = [
        ("number", [0, 1, 2, 3].map(Field::Long)),
        ("value", [Field::Double(-1e-300), Field::Null, Field::Double(f64::INFINITY), Field::Null]),
        ("state", ["COMPLETE", "FAIL", "COMPLETE", "WAITING"].map(text)),
        (
            "datetime_start",
            [text("2026-01-02 03:04:05.000006"), Field::Null, Field::Null, Field::Null],
        ),
        (
            "datetime_complete",
            [text("2026-01-02 03:04:06.500006"), Field::Null, Field::Null, Field::Null],
        ),
        ("duration_seconds", [Field::Double(1.5), Field::Null, Field::Null, Field::Null]),
        ("failure", [Field::Null, text("said \"no\",\nthen\r\nended"), Field::Null, Field::Null]),
        ("infeasible", [false, false, true, false].map(Field::Bool)),
        ("params_rate", three(Field::Double(0.1 + 0.2))),
        ("params_cutoff", three(Field::Double(0.75))),
        ("params_layers", three(Field::Long(3))),
        ("params_level", three(text("mid"))),
        ("params_cache", three(Field::Bool(true))),
        ("params_mode", [text("a,b"), text("=1+1"), text("say \"no\""), Field::Null]),
        ("params_size", [Field::Double(1.0), Field::Double(2.5), Field::Double(1.0), Field::Null]),
        ("params_mixed", [text("true"), text("yes"), text("3"), Field::Null]),
        ("user_attrs_count", [Field::Long(1), Field::Long(-7), Field::Null, Field::Null]),
        ("user_attrs_flag", [Field::Bool(false), Field::Null, Field::Null, Field::Null]),
        ("user_attrs_large", [Field::Null, text("18446744073709551615"), Field::Null, Field::Null]),
        ("user_attrs_list", [text("[1,{\"a\":null}]"), Field::Null, Field::Null, Field::Null]),
        ("user_attrs_mixed", [text("true"), text("true"), Field::Null, Field::Null]),
        ("user_attrs_note", [text("größer"), Field::Null, Field::Null, Field::Null]),
        ("user_attrs_nothing", [const { Field::Null }; 4]),
        ("user_attrs_share", [Field::Double(1.0), Field::Double(0.5), Field::Null, Field::Null]),
    ];
    for (r, row) in rows.iter().enumerate() {
        let columns: Vec<(&String, &Field)> = row.get_column_iter().collect();
        assert_eq!(columns.len(), expected.len());
        for ((name, field), (wanted, fields)) in columns.into_iter().zip(&expected) {
            assert_eq!((name.as_str(), field), (*wanted, &fields[r]), "row {r}");
        }
    }
}

/// The same for three trials, and nothing for the last.
fn three(field: Field) -> [Field; 4] {
    [field.clone(), field.clone(), field, Field::Null]
}

#[test]
fn the_name_of_a_file_tells_the_format() {
    for (name, format) in [
        ("a.csv", ExportFormat::Csv),
        ("a.b.CSV", ExportFormat::Csv),
        ("a.jsonl", ExportFormat::JsonLines),
        ("a.ndjson", ExportFormat::JsonLines),
        ("x/a.parquet", ExportFormat::Parquet),
    ] {
        assert_eq!(ExportFormat::from_path(Path::new(name)).unwrap(), format);
        assert!(name.ends_with(format.extension()) || name.contains("CSV") || name.contains("nd"));
    }
    let error = ExportFormat::from_path(Path::new("a.xlsx")).unwrap_err();
    assert_snapshot!(error, @"a.xlsx: the ending of its name does not tell the format; use .csv, .jsonl (or .ndjson) or .parquet");
    assert_snapshot!(PastFormat::from_path(Path::new("past")).unwrap_err(), @"past: the ending of its name does not tell the format; past results are read from .csv, .jsonl and .ndjson");
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let view = awkward();
    for format in [ExportFormat::Csv, ExportFormat::JsonLines, ExportFormat::Parquet] {
        let path = folder.path().join("trials").with_extension(format.extension());
        std::fs::write(&path, "before").unwrap();
        export::export(&view, format, &path).unwrap();
        assert_ne!(std::fs::read(&path).unwrap(), b"before");
        let nowhere = folder.path().join("nowhere").join("trials.csv");
        let error = export::export(&view, format, &nowhere).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("trials.csv"), csv(&view));
    assert_eq!(read("trials.jsonl"), json_lines(&view));
}

fn read(text: &str, format: PastFormat) -> boscage_study::Result<PastResults> {
    past_results::read(text.as_bytes(), format, &xy(), &PastOptions::default(), "past")
}

/// A small space.
fn xy() -> StudySpace {
    serde_json::from_value(json!({"parameters": [
        {"name": "x", "type": "real", "low": 0.0, "high": 1.0},
        {"name": "mode", "type": "categorical", "choices": ["fast", "slow", true]}
    ]}))
    .unwrap()
}

fn point(x: f64, mode: &str) -> Values {
    vec![Some(Value::Real(x)), choice(mode)]
}

fn outcomes(past: &PastResults) -> Vec<String> {
    past.results
        .iter()
        .map(|result| match &result.outcome {
            PastOutcome::Value(value) => format!("{}: {value:?}", result.place),
            PastOutcome::Failed(reason) => format!("{}: failed: {reason}", result.place),
        })
        .collect()
}

#[test]
fn csv_by_hand() {
    let text = "\u{feff}, mode ,value,x,host\r\n\
        0,fast,1.5, 0.25 ,ant\r\n\
        \r\n\
        1,True,-2,1,\"b,\n\"\"ee\"\"\"\r\n\
        2,slow,,0,\r\
        3,fast,nan,1e-1,\n\
        4,fast,-inf,0.5,\n\
        5,fast,NA,.5,";
    let past = read(text, PastFormat::Csv).unwrap();
    assert_eq!(
        outcomes(&past),
        [
            "past, line 2: 1.5",
            "past, line 4: -2.0",
            "past, line 6: failed: there is no value",
            "past, line 7: failed: the value is NaN",
            "past, line 8: failed: the value is -inf",
            "past, line 9: failed: there is no value",
        ]
    );
    assert_eq!(past.results[0].values, point(0.25, "fast"));
    assert_eq!(past.results[1].values, [Some(Value::Real(1.0)), Some(Value::Boolean(true))]);
    assert_eq!(past.results[5].values, point(0.5, "fast"));
    assert_eq!(past.ignored, ["host"]);
    assert_eq!((past.unfinished, past.without_values), (0, 0));
}

#[test]
fn states_are_honoured() {
    let text = "number,state,value,params_x,params_mode,failure,infeasible\n\
        0,COMPLETE,1,0.5,fast,,false\n\
        1,FAIL,timeout,0.5,fast,took too long,\n\
        2,fail,1,0.5,fast,,\n\
        3,PRUNED,1,0.5,fast,,\n\
        4,RUNNING,,0.5,fast,,\n\
        5,WAITING,,,,,\n\
        6,FAIL,,,,before it began,\n\
        7,COMPLETE,1,0.5,fast,,True\n\
        8,,3,0.5,fast,made up,0\n";
    let past = read(text, PastFormat::Csv).unwrap();
    assert_eq!(
        outcomes(&past),
        [
            "past, line 2: 1.0",
            "past, line 3: failed: took too long",
            "past, line 4: failed: failed",
            "past, line 5: failed: pruned",
            "past, line 9: failed: infeasible",
            "past, line 10: 3.0",
        ]
    );
    assert_eq!((past.unfinished, past.without_values), (2, 1));
    assert_eq!(past.ignored, ["number"]);
}

#[test]
fn json_lines_by_hand() {
    let text = r#"
        {"x": 0.25, "mode": "fast", "value": 1.5, "host": "ant"}
        {"params_x": 1, "params_mode": true, "x": "not looked at", "value": "-2"}

        {"params": {"x": 0.5, "mode": "slow", "old": 1}, "value": NaN, "user_attrs": {"host": "NaN"}}
        {"params": {"x": 0.5, "mode": "slow"}, "value": -Infinity, "note": "a \"NaN\" \\"}
        {"params": {"x": 0.5, "mode": "slow"}, "state": "FAIL", "failure": "no"}
        {"params": {}, "state": "RUNNING"}
        {"params": null, "value": 3}
        {"x": 0.5, "mode": "slow"}"#;
    let past = read(text, PastFormat::JsonLines).unwrap();
    assert_eq!(
        outcomes(&past),
        [
            "past, line 2: 1.5",
            "past, line 3: -2.0",
            "past, line 5: failed: the value is NaN",
            "past, line 6: failed: the value is -inf",
            "past, line 7: failed: no",
            "past, line 10: failed: there is no value",
        ]
    );
    assert_eq!(past.results[0].values, point(0.25, "fast"));
    assert_eq!(past.results[2].values, point(0.5, "slow"));
    assert_eq!((past.unfinished, past.without_values), (1, 1));
    assert_eq!(past.ignored, ["host", "x", "params_old", "user_attrs_host", "note"]);
}

#[test]
fn the_value_column_can_be_named() {
    let read = |text: &str, format, name: &str| {
        let options = PastOptions { value_column: Some(name.to_string()) };
        past_results::read(text.as_bytes(), format, &xy(), &options, "past")
    };
    let past = read("x,mode,seconds,value\n0,fast,7,8\n", PastFormat::Csv, "seconds").unwrap();
    assert_eq!(outcomes(&past), ["past, line 2: 7.0"]);
    assert_eq!(past.ignored, ["value"]);
    let line = r#"{"params": {"x": 0, "mode": "fast"}, "user_attrs": {"t": 7}, "value": 8}"#;
    let past = read(line, PastFormat::JsonLines, "user_attrs_t").unwrap();
    assert_eq!(outcomes(&past), ["past, line 1: 7.0"]);
    let error = read("x,mode,seconds\n0,fast,7\n", PastFormat::Csv, "Second").unwrap_err();
    assert_snapshot!(error, @r#"past, line 1: there is no column "Second" for the values (did you mean "seconds"?); name the column that has them, which is one of "x", "mode", "seconds""#);
    let error = read("params_x,mode,y\n0,fast,7\n", PastFormat::Csv, "params_x").unwrap_err();
    assert_snapshot!(error, @r#"past, line 1: "params_x" is that of the parameter "x"; name another one for the values"#);
    let error =
        read(r#"{"x":0,"mode":"fast","time":1}"#, PastFormat::JsonLines, "tiem").unwrap_err();
    assert_snapshot!(error, @r#"past, line 1: no line has the key "tiem" for the values (did you mean "time"?); name the key that has them, which is one of "time""#);
}

#[test]
fn parameters_may_be_called_as_other_columns_are() {
    let real = || Kind::Real { low: 0.0, high: 9.0, log: false, step: None };
    let space = |names: &[&str]| {
        let parameters = names.iter().map(|name| StudyParameter::new(*name, real())).collect();
        StudySpace::new(parameters, Vec::new()).unwrap()
    };
    let read = |names: &[&str], text: &str| {
        let options = PastOptions::default();
        past_results::read(text.as_bytes(), PastFormat::Csv, &space(names), &options, "past")
    };
    let reals = |past: PastResults| {
        past.results[0]
            .values
            .iter()
            .map(|v| v.as_ref().unwrap().as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    let names = ["state", "value", "params_x", "x"];
    let past = read(&names, "state,params_value,value,params_params_x,params_x\n1,2,7,3,4\n");
    let past = past.unwrap();
    assert_eq!(past.results[0].outcome, PastOutcome::Value(7.0));
    assert_eq!(reals(past), [1.0, 2.0, 3.0, 4.0]);
    assert_snapshot!(read(&["x", "value"], "x,value\n1,2\n").unwrap_err(), @r#"past, line 1: the column "value" is that of the values; call the one of the parameter "value" "params_value""#);
    assert_snapshot!(read(&["x", "params_x"], "x,params_x,value\n1,2,3\n").unwrap_err(), @r#"past, line 1: one column could be that of the parameter "x" or of "params_x"; call them "params_x" and "params_params_x""#);
    // In our own form of JSON the number of a trial is not taken for a parameter without a value.
    let text = "{\"number\":3,\"params\":{\"x\":1},\"value\":2}";
    let options = PastOptions::default();
    let nested = space(&["x", "number"]);
    let error =
        past_results::read(text.as_bytes(), PastFormat::JsonLines, &nested, &options, "past");
    assert_snapshot!(error.unwrap_err(), @r#"past, line 1: there is no value for the parameter "number""#);
}

#[test]
fn what_is_refused_in_csv() {
    let refused = |text: &str| read(text, PastFormat::Csv).unwrap_err().to_string();
    assert_snapshot!(refused(""), @"past: it is empty; the first line must name the columns");
    assert_snapshot!(refused("x,mode,value\n0,fast,1\n0.5,fast\n"), @"past, line 3: it has 2 cells, but there are 3 columns; quote cells that hold a comma or a quotation mark");
    assert_snapshot!(refused("x,mode,value,value\n0,fast,1,1\n"), @r#"past, line 1: the column "value" occurs twice; remove one"#);
    assert_snapshot!(refused("x,mode\n0,fast\n"), @r#"past, line 1: there is no column "value" for the values; name the column that has them, which is one of "x", "mode""#);
    assert_snapshot!(refused("x;mode;value\n0;fast;1\n"), @"past, line 1: the columns seem to be separated by ';'; separate them by commas");
    assert_snapshot!(refused("X,value\n0,1\n"), @r#"past, line 1: there are no columns for the parameters "x", "mode" (did you mean "X"?); there are "X", "value""#);
    assert_snapshot!(refused("Mode,x,value\nfast,0,1\n"), @r#"past, line 1: there is no column "mode" or "params_mode" for the parameter "mode" (did you mean "Mode"?); there are "Mode", "x", "value""#);
    assert_snapshot!(refused("x,mode,value\n0,fast,1\n7,fast,1\n"), @r#"past, line 3, column "x": 7 is not between 0 and 1"#);
    assert_snapshot!(refused("x,mode,value\n0,quick,1\n"), @r#"past, line 2, column "mode": quick is not one of fast, slow, true"#);
    assert_snapshot!(refused("params_x,mode,value\nhalf,fast,1\n"), @r#"past, line 2, column "params_x": half is not a number"#);
    assert_snapshot!(refused("x,mode,value\n,fast,1\n"), @r#"past, line 2, column "x": there is no value for the parameter "x""#);
    assert_snapshot!(refused("x,mode,value\n0,fast,\"1,5\"\n"), @r#"past, line 2, column "value": "1,5" is not a number; write 1.5, not 1,5"#);
    assert_snapshot!(refused("x,mode,value,state\n0,fast,1,DONE\n"), @r#"past, line 2, column "state": "DONE" is none of COMPLETE, FAIL, PRUNED, RUNNING and WAITING"#);
    assert_snapshot!(refused("x,mode,value,infeasible\n0,fast,1,maybe\n"), @r#"past, line 2, column "infeasible": "maybe" is neither true nor false"#);
    assert_snapshot!(refused("x,mode,value,note\n0,fast,1,\"a\nb\"\n0,fast,1,\"c\n0,slow,2\n"), @"past, line 4: a quotation mark is opened and not closed");
    assert_snapshot!(refused("x,mode,value\n0,\"fast\"er,1\n"), @r#"past, line 2: there is text after the closing quotation mark of "fast"; write a quotation mark inside of a cell twice"#);
    let bytes = b"x,mode,value\r\n0,fast,1\r\n0,f\xff,1";
    let options = PastOptions::default();
    let error = past_results::read(bytes, PastFormat::Csv, &xy(), &options, "past").unwrap_err();
    assert_snapshot!(error, @"past, line 3: it is not UTF-8; save it in that encoding");
}

#[test]
fn what_is_refused_in_json_lines() {
    let refused = |text: &str| read(text, PastFormat::JsonLines).unwrap_err().to_string();
    assert_snapshot!(refused("{\"x\":0,\"mode\":\"fast\",\"value\":1}\n{\"x\":}"), @r#"past, line 2: expected value (at byte 6 of the line); each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
    assert_snapshot!(refused("[{\"x\":0}]"), @r#"past, line 1: each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
    assert_snapshot!(refused("[\n{\"x\":0}\n]"), @r#"past, line 1: each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
    assert_snapshot!(refused("{\"x\":0,\"mode\":\"fast\",\"x\":1}"), @r#"past, line 1: the key "x" occurs twice (at byte 27 of the line); each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
    assert_snapshot!(refused("{\"params\":{\"x\":0,\"x\":1}}"), @r#"past, line 1: the key "x" occurs twice (at byte 23 of the line); each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
    assert_snapshot!(refused("{\"params\":{\"x\":0},\"params_x\":1}"), @r#"past, line 1: the key "params_x" occurs twice"#);
    assert_snapshot!(refused("{\"x\":0,\"value\":1}"), @r#"past, line 1: there is no value for the parameter "mode""#);
    assert_snapshot!(refused("{\"params\":{\"x\":2,\"mode\":\"fast\"},\"value\":1}"), @r#"past, line 1: parameter "x": 2 is not between 0 and 1"#);
    assert_snapshot!(refused("{\"params_x\":2,\"mode\":\"fast\",\"value\":1}"), @r#"past, line 1, key "params_x": 2 is not between 0 and 1"#);
    assert_snapshot!(refused("{\"x\":[0],\"mode\":\"fast\",\"value\":1}"), @r#"past, line 1, key "x": [0] is neither a number, a truth value nor text"#);
    assert_snapshot!(refused("{\"x\":0,\"mode\":\"fast\",\"value\":true}"), @r#"past, line 1, key "value": "true" is not a number"#);
    assert_snapshot!(refused(&format!("{{\"x\":{}", "[".repeat(100_000))), @r#"past, line 1: recursion limit exceeded (at byte 132 of the line); each line must be an object, such as {"x": 0.5, "value": 17.5}"#);
}

#[test]
fn limits_are_kept() {
    let options = PastOptions::default();
    let long = "n".repeat(past_results::LONGEST_LINE);
    for (text, format) in [
        (format!("x,mode,value,note\n0,fast,1,{long}\n"), PastFormat::Csv),
        (
            format!("\n{{\"x\":0,\"mode\":\"fast\",\"value\":1,\"note\":\"{long}\"}}"),
            PastFormat::JsonLines,
        ),
    ] {
        let error = read(&text, format).unwrap_err().to_string();
        assert_eq!(error, "past, line 2: it has more than 4 MiB");
    }
    let many = format!("x,mode,value\n{}", "0,fast,1\n".repeat(past_results::MOST_RESULTS));
    let read =
        |text: &str| past_results::read(text.as_bytes(), PastFormat::Csv, &xy(), &options, "past");
    assert_eq!(read(&many).unwrap().results.len(), past_results::MOST_RESULTS);
    let error = read(&(many + "0,fast,1\n")).unwrap_err().to_string();
    assert_eq!(
        error,
        "past, line 1000002: there are more than 1000000 results; import them in parts"
    );
}

#[test]
fn files_are_read_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("past.csv");
    let options = PastOptions::default();
    let missing = past_results::read_file(&path, None, &xy(), &options).unwrap_err().to_string();
    assert!(missing.contains("past.csv: cannot be read: "), "{missing}");
    std::fs::write(&path, "x,mode,value\n0,fast,1\n").unwrap();
    let past = past_results::read_file(&path, None, &xy(), &options).unwrap();
    assert_eq!(past.results.len(), 1);
    assert!(past.results[0].place.ends_with("past.csv, line 2"));
    let json = Some(PastFormat::JsonLines);
    assert!(past_results::read_file(&path, json, &xy(), &options).is_err());
}

#[test]
fn the_seeds_of_the_fuzz_target_hold_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/past_results_seeds");
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(checks::check(&std::fs::read(&path).unwrap()), 2, "{}", path.display());
        seeds += 1;
    }
    assert_eq!(seeds, 4);
}

/// Text with whatever CSV, JSON and we ourselves treat in a special way.
fn awkward_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,3}",
        "[ ,\"\r\n=@a-cé\\\\;\t-]{0,4}",
        proptest::sample::select(vec![
            "true",
            "True",
            "1",
            "1.0",
            "NaN",
            "inf",
            "NA",
            "null",
            "value",
            "state",
            "params",
            "number",
            "failure",
            "infeasible",
            "params_a",
            "params_value",
            "user_attrs",
            "-0.0",
        ])
        .prop_map(String::from),
        any::<String>(),
    ]
}

fn value_of_choice() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        (-(1_i64 << 53)..1 << 53).prop_map(Value::Integer),
        (-3_i64..4).prop_map(Value::Integer),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::Real),
        awkward_text().prop_map(Value::Choice),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let real = (-1e6..1e6_f64, 0.0..1e6_f64);
    prop_oneof![
        real.prop_map(|(low, width)| Kind::Real { low, high: low + width, log: false, step: None }),
        (1e-300..1e3_f64, 1.0..1e9_f64).prop_map(|(low, ratio)| Kind::Real {
            low,
            high: low * ratio,
            log: true,
            step: None
        }),
        (-100..100_i32, 0..100_u32, 1..50_u32).prop_map(|(low, steps, step)| {
            let step = f64::from(step) / 100.0;
            let low = f64::from(low) / 10.0;
            Kind::Real { low, high: low + f64::from(steps) * step, log: false, step: Some(step) }
        }),
        (-(1_i64 << 53)..1 << 53, 0..1_i64 << 53, 1..9_u64).prop_map(|(low, width, step)| {
            Kind::Integer { low, high: (low + width).min(1 << 53), step, log: false }
        }),
        Just(Kind::Boolean {}),
        proptest::collection::vec(value_of_choice(), 1..5)
            .prop_map(|choices| Kind::Categorical { choices }),
        proptest::collection::vec(value_of_choice(), 1..5)
            .prop_map(|levels| Kind::Ordinal { levels }),
    ]
}

/// Spaces of all kinds of parameters. Choices that are the same number are left out: they are one choice in JSON.
fn any_space() -> impl Strategy<Value = StudySpace> {
    let parameters = proptest::collection::btree_map(awkward_text(), kind(), 1..7);
    parameters.prop_filter_map("a space that makes sense", |parameters| {
        let parameters: Vec<StudyParameter> =
            parameters.into_iter().map(|(name, kind)| StudyParameter::new(name, kind)).collect();
        let ambiguous =
            parameters.iter().any(|parameter| checks::has_equal_numbers(&parameter.kind));
        if ambiguous { None } else { StudySpace::new(parameters, Vec::new()).ok() }
    })
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|truth| json!(truth)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        awkward_text().prop_map(|text| json!(text)),
        Just(json!({"a": [1, 2]})),
    ]
}

type Drawn = (usize, Option<f64>, Option<String>, bool, Vec<f64>, Vec<(String, serde_json::Value)>);

fn any_trial() -> impl Strategy<Value = Drawn> {
    (
        0..5_usize,
        proptest::option::of(any::<f64>()),
        proptest::option::of(awkward_text()),
        any::<bool>(),
        proptest::collection::vec(0.0..1.0, 8),
        proptest::collection::vec((awkward_text(), any_json()), 0..3),
    )
}

const STATES: [State; 5] =
    [State::Complete, State::Failed, State::Pruned, State::Running, State::Waiting];

proptest! {
    #[test]
    fn what_is_exported_is_read_back_equal(
        space in any_space(),
        drawn in proptest::collection::vec(any_trial(), 0..8),
    ) {
        let trials = drawn.into_iter().enumerate().map(|(number, drawn)| {
            let (state, value, failure, infeasible, uniform, attributes) = drawn;
            let point = space.engine().from_uniform(&uniform[..space.dimension()]).unwrap();
            let mut trial = trial(number as u64, STATES[state]);
            trial.values = (trial.state != State::Waiting).then(|| space.decode(&point).unwrap());
            (trial.value, trial.failure, trial.infeasible) = (value, failure, infeasible);
            trial.attributes = attributes.into_iter().collect();
            trial
        });
        let view = checks::view(&space, trials);
        let expected: Vec<(&Trial, PastOutcome)> = view
            .trials
            .iter()
            .filter(|trial| trial.state.is_finished())
            .map(|trial| {
                let reason = trial.failure.clone().filter(|reason| !reason.is_empty());
                let failed = |otherwise: &str| PastOutcome::Failed(reason.unwrap_or(otherwise.to_string()));
                (trial, match (trial.state, trial.value) {
                    (State::Failed, _) => failed("failed"),
                    (State::Pruned, _) => failed("pruned"),
                    _ if trial.infeasible => failed("infeasible"),
                    (_, None) => failed("there is no value"),
                    (_, Some(value)) if value.is_nan() => failed("the value is NaN"),
                    (_, Some(value)) if value == f64::INFINITY => failed("the value is inf"),
                    (_, Some(value)) if value == f64::NEG_INFINITY => failed("the value is -inf"),
                    (_, Some(value)) => PastOutcome::Value(value),
                })
            })
            .collect();
        for (text, format) in
            [(csv(&view), PastFormat::Csv), (json_lines(&view), PastFormat::JsonLines)]
        {
            let past = past_results::read(text.as_bytes(), format, &space, &PastOptions::default(), "past");
            let past = past.unwrap_or_else(|error| panic!("{error}\n{text}"));
            prop_assert_eq!(past.results.len(), expected.len(), "{}", text);
            for (result, (trial, outcome)) in past.results.iter().zip(&expected) {
                // Debug tells -0.0 from 0.0.
                prop_assert_eq!(format!("{:?}", Some(&result.values)), format!("{:?}", trial.values.as_ref()));
                prop_assert!(checks::same_outcome(&result.outcome, outcome), "{:?} {:?}", result, outcome);
            }
            prop_assert_eq!(past.unfinished, view.trials.len() - expected.len());
            prop_assert_eq!(past.without_values, 0);
        }
        // The columns are all different and as many in every line.
        let table = csv(&view);
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let names: std::collections::HashSet<String> =
            reader.headers().unwrap().iter().map(String::from).collect();
        prop_assert_eq!(names.len(), reader.headers().unwrap().len());
        prop_assert_eq!(reader.records().filter(Result::is_ok).count(), view.trials.len());
        export::write_parquet(&view, std::io::sink()).unwrap();
    }

    #[test]
    fn nothing_panics(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        checks::check(&input);
    }

    #[test]
    fn nothing_panics_on_what_is_nearly_right(
        header in proptest::collection::vec(proptest::sample::select(vec!["x", "mode", "value", "params_x", "state", "failure", "infeasible", "a"]), 1..6),
        body in "([0-9.,\"\n\r{}:eNaInfstlow-]|fast|slow|,fast,|0,|\n){0,60}",
    ) {
        for text in [format!("{}\n{body}", header.join(",")), format!("x,mode,value\n{body}"), body.clone()] {
            for format in [PastFormat::Csv, PastFormat::JsonLines] {
                if let Ok(past) = read(&text, format) {
                    checks::check_round_trip(&xy(), &past.results);
                }
            }
            checks::check(text.as_bytes());
        }
    }
}
