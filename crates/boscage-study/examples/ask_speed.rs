//! Times asks of an optimization in memory, for comparison with the same asks from Python (`benches/python/compare.py`).
//!
//! ```sh
//! cargo run --release -p boscage-study --example ask_speed -- DIMENSION OBSERVATIONS ASKS
//! ```
//!
//! Tells the optimization so many points, then asks and tells. Prints one line of JSON: the seconds of the tells, the seconds
//! of each ask, and the sum of all numbers that were asked for, by which one sees that both did the same.

// A program that talks on standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use boscage::Value;
use boscage_study::{Definition, Kind, Optimization, StudyParameter, StudySpace, Values};

fn cost(values: &Values) -> f64 {
    values
        .iter()
        .flatten()
        .filter_map(Value::as_f64)
        .fold(0.0, |sum, x| sum + (x - 0.3) * (x - 0.3))
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[dimension, observations, asks] = numbers.as_slice() else {
        return Err("three numbers are needed: DIMENSION OBSERVATIONS ASKS".into());
    };
    let real = Kind::Real { low: 0.0, high: 1.0, log: false, step: None };
    let parameters =
        (0..dimension).map(|d| StudyParameter::new(format!("x{d}"), real.clone())).collect();
    let mut optimization =
        Optimization::new(Definition::new(StudySpace::new(parameters, Vec::new())?)?)?;
    let mut state: u64 = 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let begin = Instant::now();
    for _ in 0..observations {
        let values: Values = (0..dimension).map(|_| Some(Value::Real(next()))).collect();
        let outcome = cost(&values);
        let number = optimization.add(values)?;
        optimization.tell(number, outcome)?;
    }
    let tells = begin.elapsed().as_secs_f64();
    let (mut seconds, mut sum) = (Vec::new(), 0.0);
    for _ in 0..asks {
        let begin = Instant::now();
        let (number, values) = optimization.ask()?;
        seconds.push(begin.elapsed().as_secs_f64());
        sum += values.iter().flatten().filter_map(Value::as_f64).fold(0.0, |sum, x| sum + x);
        optimization.tell(number, cost(&values))?;
    }
    println!("{}", serde_json::json!({"tells": tells, "asks": seconds, "sum": sum}));
    Ok(())
}
