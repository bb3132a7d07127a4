//! Reads arbitrary bytes as a space and checks that its points and values keep their invariants.

#![no_main]

use boscage::space::{Domain, Parameter, Point, Space, Value};

#[path = "../checks/space.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    checks::check(input);
});
