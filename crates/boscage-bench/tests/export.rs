//! The exported table: read back, it equals the results it was made from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod synthetic;

use std::fs::File;
use std::path::Path;

use boscage_bench::Error;
use boscage_bench::export::{COLUMNS, Format, Kind, Points, export, write_csv};
use boscage_bench::results::RunResult;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use synthetic::{learn, push, run_with};

/// Two runs with a failure, awkward text and numbers, a graph learned on the way, and nothing known.
fn awkward() -> Vec<RunResult> {
    let mut first = run_with("p+1", "tree", 3, [(1e-300, 0), (0.1 + 0.2, 0)]);
    push(&mut first, -0.125, 17);
    learn(&mut first, 2.0 / 3.0);
    push(&mut first, -0.5, 40);
    first.trials[3].failure = Some("said \"no\",\nthen\r\nended; größer".to_string());
    first.trials[3].observed = None;
    first.trials[3].value = None;
    let mut second = run_with("p+1", "random", 4, [(5.0, 0)]);
    second.start.optimum = None;
    second.start.goal = boscage_bench::Goal::Maximize;
    second.trials[0].regret = None;
    second.trials[0].best_value = None;
    second.trials[0].timing.resident_bytes = 0;
    vec![first, second]
}

/// What a column holds for a trial, worked out from the results a second time.
fn expected(run: &RunResult, t: usize, column: &str) -> Option<Field> {
    let (start, trial) = (&run.start, &run.trials[t]);
    let text = |s: &str| Some(Field::Str(s.to_string()));
    let long = |n: u64| Some(Field::Long(n as i64));
    let (real, maybe) = (|x: f64| Some(Field::Double(x)), |x: Option<f64>| x.map(Field::Double));
    match column {
        "recipe" => text(&start.recipe),
        "problem" => text(&start.problem),
        "method" => text(&start.method),
        "seed" => long(start.seed),
        "dimension" => long(3),
        "goal" => text(if start.method == "tree" { "minimize" } else { "maximize" }),
        "noise_std" => real(0.125),
        "optimum" => (start.method == "tree").then_some(Field::Double(-1.0)),
        "trial" => long(t as u64),
        "initial" => Some(Field::Bool(t < 2)),
        "observed" => maybe(trial.observed),
        "value" => maybe(trial.value),
        "best_value" => maybe(trial.best_value),
        "regret" => maybe(trial.regret),
        "f1" | "precision" | "recall" => maybe(trial.score.map(|_| 2.0 / 3.0)),
        "edges_learned" => (t >= 2).then_some(Field::Long(1)),
        "cost" => long(trial.cost),
        "ask_seconds" => real(1e-7),
        "tell_seconds" | "ask_cpu_seconds" | "tell_cpu_seconds" => real(0.0),
        "evaluation_seconds" | "overhead_seconds" => real(0.0),
        "resident_bytes" => (start.method == "tree").then_some(Field::Long(1 << 20)),
        "failure" => trial.failure.as_deref().and_then(text),
        "version" => text("0.0.1"),
        "started" => real(1.5e9),
        other => panic!("the test does not know the column {other}"),
    }
}

#[test]
fn csv_read_back_is_what_was_written() {
    let runs = awkward();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.csv");
    assert_eq!(export(&runs, Format::Csv, Points::Include, &path).unwrap(), 5);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let header: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(header, COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>());
    let mut records = reader.records();
    for run in &runs {
        for t in 0..run.trials.len() {
            let record = records.next().unwrap().unwrap();
            for (field, column) in record.iter().zip(&COLUMNS) {
                if column.kind == Kind::Reals {
                    let point: Vec<f64> = serde_json::from_str(field).unwrap();
                    assert_eq!(point, run.trials[t].point.0);
                    continue;
                }
                let read = (!field.is_empty()).then(|| match column.kind {
                    Kind::Text | Kind::Reals => Field::Str(field.to_string()),
                    Kind::Integer => Field::Long(field.parse().unwrap()),
                    Kind::Real => Field::Double(field.parse().unwrap()),
                    Kind::Truth => Field::Bool(field.parse().unwrap()),
                });
                assert_eq!(read, expected(run, t, column.name), "{} of trial {t}", column.name);
            }
        }
    }
    assert!(records.next().is_none());
}

#[test]
fn parquet_read_back_is_what_was_written() {
    let runs = awkward();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.parquet");
    for points in [Points::Include, Points::Omit] {
        assert_eq!(export(&runs, Format::Parquet, points, &path).unwrap(), 5);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let mut rows = reader.get_row_iter(None).unwrap();
        for run in &runs {
            for (t, trial) in run.trials.iter().enumerate() {
                let row = rows.next().unwrap().unwrap();
                let mut names = 0;
                for ((name, field), column) in row.get_column_iter().zip(&COLUMNS) {
                    assert_eq!(name, column.name);
                    names += 1;
                    if let Field::ListInternal(list) = field {
                        let list: Vec<&Field> = list.elements().iter().collect();
                        let point: Vec<Field> =
                            trial.point.0.iter().map(|&x| Field::Double(x)).collect();
                        assert_eq!(list, point.iter().collect::<Vec<_>>());
                    } else {
                        let expected = expected(run, t, name).unwrap_or(Field::Null);
                        assert_eq!(*field, expected, "{name} of trial {t}");
                    }
                }
                assert_eq!(names, COLUMNS.len() - usize::from(points == Points::Omit));
            }
        }
        assert!(rows.next().is_none());
    }
}

#[test]
fn many_rows_span_several_groups() {
    // Groups are of 131,072 rows.
    let run = run_with("p", "m", 0, (0..140_000).map(|t| (-(t as f64), t)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.parquet");
    assert_eq!(export(&[run], Format::Parquet, Points::Omit, &path).unwrap(), 140_000);
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 140_000);
    let cost = COLUMNS.iter().position(|column| column.name == "cost").unwrap();
    for (expected, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let field = row.get_column_iter().nth(cost).unwrap().1;
        assert_eq!(*field, Field::Long(expected as i64));
    }
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.csv");
    export(&awkward(), Format::Csv, Points::Omit, &path).unwrap();
    let before = std::fs::read(&path).unwrap();

    let mut bad = awkward();
    bad[1].start.seed = u64::MAX;
    for format in [Format::Csv, Format::Parquet] {
        let error = export(&bad, format, Points::Omit, &path).unwrap_err();
        assert!(matches!(error, Error::Results { .. }), "{error:?}");
        assert!(error.to_string().contains("18446744073709551615"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    let missing = folder.path().join("nowhere").join("trials.csv");
    let error = export(&awkward(), Format::Csv, Points::Omit, &missing).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["trials.csv"]);

    export(&awkward()[1..], Format::Csv, Points::Omit, &path).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn the_same_table_goes_to_any_writer() {
    let mut bytes = Vec::new();
    let rows = write_csv(&awkward(), Points::Omit, &mut bytes, Path::new("-")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(rows, 5);
    assert!(text.starts_with("recipe,problem,method,seed,dimension,goal,"));
    assert!(!text.contains("point"));
    assert!(text.contains("made-up,p+1,random,4,3,maximize,0.125,,0,true,"), "{text}");
}

#[test]
fn a_writer_that_fails_is_named_with_its_reason() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // Few rows fail when they are flushed, many on the way.
    for copies in [1, 100] {
        let runs: Vec<RunResult> = (0..copies).flat_map(|_| awkward()).collect();
        let error = write_csv(&runs, Points::Omit, Closed, Path::new("target")).unwrap_err();
        let Error::File { path, source, .. } = error else { panic!("{error:?}") };
        assert_eq!(
            (path.as_path(), source.kind()),
            (Path::new("target"), std::io::ErrorKind::BrokenPipe)
        );
    }
}

#[test]
fn the_documentation_lists_exactly_the_columns() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    let text = std::fs::read_to_string(page).unwrap();
    let begin = text.find("## Columns").unwrap();
    let section = text[begin..].split("\n## ").next().unwrap();
    let documented: Vec<String> =
        section.lines().filter(|line| line.starts_with("| `")).map(String::from).collect();
    let line = |c: &boscage_bench::export::Column| {
        format!("| `{}` | {} | {} |", c.name, c.kind.name(), c.meaning)
    };
    assert_eq!(documented, COLUMNS.iter().map(line).collect::<Vec<_>>());
}
