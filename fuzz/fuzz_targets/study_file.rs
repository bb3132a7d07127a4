//! Reads arbitrary text as a study file. Nothing may panic, and what is accepted must make sense and survive being stored.

#![no_main]

use std::path::Path;

use boscage_study::{Definition, StudyFile};

#[path = "../checks/study_file.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        checks::check(text);
    }
});
