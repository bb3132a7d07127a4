// What must hold for every input: shared by the fuzz target and the tests of past results, each of which brings the names into
// scope. An input is a space as JSON and, after a line break, past results, which are read as CSV and as JSON lines. If the
// first line is no space, one with a parameter of each type is used.

use super::{
    ExportFormat, Goal, Kind, Map, Method, PastFormat, PastOptions, PastOutcome, PastResult, State, StudySpace, StudyView,
    Trial, Value, export, past_results,
};

const EVERY_TYPE: &str = r#"{"parameters": [
    {"name": "r", "type": "real", "low": -2, "high": 3.5},
    {"name": "s", "type": "real", "low": 0, "high": 1, "step": 0.1},
    {"name": "i", "type": "integer", "low": -3, "high": 9},
    {"name": "o", "type": "ordinal", "levels": ["low", "mid", 7]},
    {"name": "b", "type": "boolean"},
    {"name": "c", "type": "categorical", "choices": ["", "a", " a", "=1+1", true, 2, 2.5]}
]}"#;

/// Panics if an invariant is broken; says how many results were read.
pub(super) fn check(input: &[u8]) -> usize {
    let (first, rest) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let (space, text) = match serde_json::from_slice::<StudySpace>(first) {
        Ok(space) => (space, rest),
        Err(_) => (serde_json::from_str(EVERY_TYPE).expect("a space"), input),
    };
    // Choices that are the same number are one choice in JSON.
    if space.parameters().iter().any(|parameter| has_equal_numbers(&parameter.kind)) {
        return 0;
    }
    let options = PastOptions::default();
    let mut count = 0;
    for format in [PastFormat::Csv, PastFormat::JsonLines] {
        let Ok(past) = past_results::read(text, format, &space, &options, "input") else {
            continue;
        };
        count += past.results.len();
        check_round_trip(&space, &past.results);
    }
    count
}

/// Whether two choices or levels are the same number.
pub(super) fn has_equal_numbers(kind: &Kind) -> bool {
    let (Kind::Ordinal { levels: values } | Kind::Categorical { choices: values }) = kind else {
        return false;
    };
    let mut numbers: Vec<f64> = values
        .iter()
        .filter(|value| matches!(value, Value::Integer(_) | Value::Real(_)))
        .filter_map(Value::as_f64)
        .collect();
    numbers.sort_by(f64::total_cmp);
    numbers.windows(2).any(|pair| pair[0] == pair[1])
}

/// What was read can be written as trials of a study, and is read back equal.
pub(super) fn check_round_trip(space: &StudySpace, results: &[PastResult]) {
    let view = view(space, results.iter().enumerate().map(|(number, result)| trial(number, result)));
    for (format, from) in
        [(ExportFormat::Csv, PastFormat::Csv), (ExportFormat::JsonLines, PastFormat::JsonLines)]
    {
        let mut written = Vec::new();
        match format {
            ExportFormat::Csv => export::write_csv(&view, &mut written),
            _ => export::write_json_lines(&view, &mut written),
        }
        .expect("memory can be written to");
        let again = past_results::read(&written, from, space, &PastOptions::default(), "again")
            .expect("what was written can be read");
        assert_eq!(again.results.len(), results.len());
        for (again, result) in again.results.iter().zip(results) {
            assert_eq!(again.values, result.values);
            assert!(same_outcome(&again.outcome, &result.outcome), "{again:?} {result:?}");
        }
    }
    export::write_parquet(&view, std::io::sink()).expect("nowhere can be written to");
}

/// Bit for bit.
pub(super) fn same_outcome(a: &PastOutcome, b: &PastOutcome) -> bool {
    match (a, b) {
        (PastOutcome::Value(a), PastOutcome::Value(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn trial(number: usize, result: &PastResult) -> Trial {
    let (state, value, failure) = match &result.outcome {
        PastOutcome::Value(value) => (State::Complete, Some(*value), None),
        PastOutcome::Failed(reason) => (State::Failed, None, Some(reason.clone())),
    };
    Trial {
        number: number as u64,
        state,
        value,
        values: Some(result.values.clone()),
        failure,
        infeasible: false,
        began: None,
        ended: None,
        seconds: None,
        attributes: Map::new(),
    }
}

/// A study with these trials.
pub(super) fn view(space: &StudySpace, trials: impl Iterator<Item = Trial>) -> StudyView {
    StudyView {
        name: "made up".to_string(),
        storage: "nowhere".to_string(),
        goal: Goal::Minimize,
        space: space.clone(),
        method: Method::named("random").expect("a method"),
        seed: 0,
        trials: trials.collect(),
        model: None,
    }
}
