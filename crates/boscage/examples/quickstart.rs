//! The tour: a function of 20 variables, ten lines to minimise it, and what was learned about it.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use boscage::{Parameter, Space, Value, minimize};

/// Twenty knobs in ten pairs. Each pair has a narrow diagonal valley: neither knob can be tuned without the other.
fn ten_valleys(values: &[Value]) -> f64 {
    let x: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    x.chunks_exact(2).map(|p| 4.0 * (p[0] - p[1]).powi(2) + (p[0] + p[1] - 1.0).powi(2)).sum()
}

fn main() -> boscage::Result<()> {
    let space = Space::new((0..20).map(|i| Parameter::real(format!("x{i}"), -5.0, 5.0)).collect())?;
    let found = minimize(&space, 150, 1, ten_valleys)?;

    let mut best = f64::INFINITY;
    for (number, trial) in found.trials.iter().enumerate() {
        best = best.min(trial.outcome);
        if [10, 25, 50, 100, 150].contains(&(number + 1)) {
            println!("after {:3} evaluations: {best:8.3} (the minimum is 0)", number + 1);
        }
    }
    if let Some(model) = &found.model {
        println!("learned forest, with the share of samples that agreed on each edge:");
        for edge in model.graph.edges() {
            let share = model.edge_frequencies.iter().find(|(e, _)| e == edge).map_or(0.0, |f| f.1);
            println!("  x{} – x{} ({:.0} %)", edge.low(), edge.high(), 100.0 * share);
        }
    }
    Ok(())
}
