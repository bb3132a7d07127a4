//! Faults while studies are run: killed workers, full and read-only disks, a server that restarts, programs that misbehave,
//! interrupts, hostile values, wrong files. Each test counts what it did and what survived, and prints it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints what it has counted"
)]

mod changes;
mod disks;
mod interrupted;
mod kills;
mod misbehaviour;
mod server;
mod support;
mod values;
mod wrong_files;
