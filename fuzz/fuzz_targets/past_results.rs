//! Reads arbitrary bytes as past results and checks that what was read is written and read again unchanged.

#![no_main]

use boscage::{Method, Value};
use boscage_study::{
    ExportFormat, Goal, Kind, PastFormat, PastOptions, PastOutcome, PastResult, State, StudySpace, StudyView, Trial, export,
    past_results,
};
use serde_json::Map;

#[path = "../checks/past_results.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    checks::check(input);
});
