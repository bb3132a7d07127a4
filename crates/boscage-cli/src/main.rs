//! The program `boscage`.
fn main() {}
