//! Any text as a study file: nothing panics, and what is accepted makes sense and survives being stored.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints what it has counted"
)]

use std::path::Path;

use boscage_study::{Definition, StudyFile};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// The checks of the fuzz target.
mod checks {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/checks/study_file.rs"));
}

/// The seeds of the fuzz target.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/study_file_seeds");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn the_seeds_of_the_fuzz_target_are_study_files() {
    let seeds = seeds();
    assert_eq!(seeds.len(), 3);
    for seed in seeds {
        assert!(checks::check(&seed), "{seed}");
    }
}

/// What may stand in the place of a word.
const WORDS: [&str; 44] = [
    "",
    "0",
    "1",
    "-1",
    "0.5",
    "1e308",
    "-1e308",
    "5e-324",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "true",
    "false",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "\"{x}\"",
    "\"{\"",
    "\"a\\u0000b\"",
    "\"\\uD800\"",
    "[]",
    "[[]]",
    "{}",
    "{ a = 1 }",
    "[1, \"1\", 1.0, true]",
    "1979-05-27",
    "=",
    "]",
    "}",
    "#",
    "'''",
    "\"worst\"",
    "\"real\"",
    "\"integer\"",
    "\"boolean\"",
    "\"categorical\"",
    "\"ordinal\"",
    "\"x > 0 and not (y in [1, 2])\"",
    "\"((((((((((\"",
    "\"random\"",
    "\"exit-code\"",
];

/// A text with some of its words, lines and characters replaced, removed, doubled or swapped.
fn mutated() -> impl Strategy<Value = String> {
    let step = (0..6u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..WORDS.len());
    (prop::sample::select(seeds()), prop::collection::vec(step, 1..4)).prop_map(|(text, steps)| {
        let mut text = text;
        for (kind, at, other, word) in steps {
            let mut lines: Vec<String> = text.lines().map(ToString::to_string).collect();
            if lines.is_empty() {
                break;
            }
            let line = at.index(lines.len());
            match kind {
                0 => drop(lines.remove(line)),
                1 => lines.insert(other.index(lines.len()), lines[line].clone()),
                2 => {
                    let second = other.index(lines.len());
                    lines.swap(line, second);
                }
                3 | 4 => {
                    // A word after a space, an equals sign or a bracket.
                    let mut words: Vec<&str> =
                        lines[line].split_inclusive([' ', '=', '[', ',']).collect();
                    if !words.is_empty() {
                        let place = other.index(words.len());
                        words[place] = WORDS[word];
                        lines[line] = words.concat();
                    }
                }
                _ => {
                    let mut characters: Vec<char> = lines[line].chars().collect();
                    if !characters.is_empty() {
                        characters.remove(other.index(characters.len()));
                        lines[line] = characters.into_iter().collect();
                    }
                }
            }
            text = lines.join("\n");
        }
        text
    })
}

/// A value that fits in most places, or any other.
fn value() -> impl Strategy<Value = &'static str> {
    let usual = prop::sample::select(vec!["1", "2", "3", "4", "10"]);
    prop_oneof![12 => usual, 1 => prop::sample::select(WORDS.to_vec())]
}

/// A parameter with the keys of its kind, and perhaps one more.
fn parameter() -> impl Strategy<Value = String> {
    let list = || {
        prop::collection::vec(value(), 1..4).prop_map(|values| format!("[{}]", values.join(", ")))
    };
    let range = |kind: &'static str| {
        (value(), value()).prop_map(move |(low, high)| {
            // Most often the right way round.
            let (low, high) =
                if low.len() > high.len() || low > high { (high, low) } else { (low, high) };
            format!("type = \"{kind}\"\nlow = {low}\nhigh = {high}\n")
        })
    };
    let kind = prop_oneof![
        4 => range("real"),
        4 => range("integer"),
        1 => list().prop_map(|levels| format!("type = \"ordinal\"\nlevels = {levels}\n")),
        1 => list().prop_map(|choices| format!("type = \"categorical\"\nchoices = {choices}\n")),
        1 => Just("type = \"boolean\"\n".to_string()),
    ];
    let more = prop_oneof![
        6 => Just(String::new()),
        1 => value().prop_map(|step| format!("step = {step}\n")),
        1 => any::<bool>().prop_map(|log| format!("log = {log}\n")),
        1 => value().prop_map(|default| format!("default = {default}\n")),
        1 => value().prop_map(|value| format!("condition = 'p0 > {value}'\n")),
    ];
    (kind, more).prop_map(|(kind, more)| kind + &more)
}

/// Files whose structure is right and whose values are anything.
fn filled() -> impl Strategy<Value = String> {
    let settings = vec![
        ("program", "timeout_seconds"),
        ("program", "cpu_seconds"),
        ("program", "memory_bytes"),
        ("program", "result"),
        ("program", "result_file"),
        ("program", "environment"),
        ("evaluation", "repeats"),
        ("evaluation", "seeds"),
        ("evaluation", "instances"),
        ("failure", "score"),
        ("failure", "retries"),
        ("budget", "trials"),
        ("budget", "seconds"),
        ("budget", "target"),
        ("workers", "jobs"),
        ("workers", "lease_seconds"),
        ("workers", "lost_retries"),
        ("method", "settings"),
    ];
    (
        prop::collection::vec(parameter(), 1..4),
        prop::collection::btree_map(prop::sample::select(settings), value(), 0..4),
        prop::option::of(value()),
    )
        .prop_map(|(parameters, settings, start)| {
            let mut text = String::new();
            for (number, parameter) in parameters.iter().enumerate() {
                text += &format!("[parameters.p{number}]\n{parameter}");
            }
            text += "[program]\ncommand = [\"program\", \"{parameters_file}\"]\n";
            let (own, others): (Vec<_>, Vec<_>) =
                settings.into_iter().partition(|((table, _), _)| *table == "program");
            let mut last = "program";
            for ((table, key), value) in own.into_iter().chain(others) {
                if table != last {
                    text += &format!("[{table}]\n");
                    if table == "method" {
                        text += "name = \"tree\"\n";
                    }
                    last = table;
                }
                text += &format!("{key} = {value}\n");
            }
            if let Some(start) = start {
                text += &format!("[[start]]\np0 = {start}\n");
            }
            text
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_accepted_or_refused(text in any::<String>()) {
        checks::check(&text);
    }

    #[test]
    fn a_damaged_study_file_is_accepted_or_refused(text in mutated()) {
        checks::check(&text);
    }

    #[test]
    fn a_study_file_with_any_values_is_accepted_or_refused(text in filled()) {
        checks::check(&text);
    }
}

/// Otherwise the properties would say little about what is accepted.
#[test]
fn damage_is_neither_always_fatal_nor_always_harmless() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (what, texts) in [("damaged", mutated().boxed()), ("filled", filled().boxed())] {
        let count = 1000;
        let accepted = (0..count)
            .filter(|_| checks::check(&texts.new_tree(&mut runner).unwrap().current()))
            .count();
        println!("{what}: {accepted} of {count} accepted");
        assert!((count / 50..count * 9 / 10).contains(&accepted), "{what}: {accepted}");
    }
}
