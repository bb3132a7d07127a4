//! Tells the crate which commit it is built from, if it is built from a repository: results name it.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    // This file gets a line with every commit and every change of branch.
    let log = format!("{folder}/.git/logs/HEAD");
    if !std::path::Path::new(&log).exists() {
        return;
    }
    println!("cargo:rerun-if-changed={log}");
    let output =
        Command::new("git").args(["-C", folder, "rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(output) = output
        && output.status.success()
        && let Ok(commit) = String::from_utf8(output.stdout)
    {
        println!("cargo:rustc-env=BOSCAGE_COMMIT={}", commit.trim());
    }
}
