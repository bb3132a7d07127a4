//! Time to draw a function with its optimum, and to evaluate it: `cargo bench -p boscage-bench --bench drawing`.
//!
//! The optimum of the 15 × 15 grid is out of reach, so that drawing it is drawing only.

use std::path::Path;

use boscage::Stream;
use boscage::stream::Purpose;
use boscage_bench::Problem;
use boscage_bench::problems::additive::{AdditiveDraw, DrawDomain, DrawnFunction};
use boscage_bench::problems::graphs::GraphShape;
use divan::{Bencher, black_box};

const NAMES: [&str; 3] = ["star25-51", "grid15x15-150", "grid3x3-continuous"];

fn main() {
    divan::main();
}

/// The value, or the end of the benchmark: what is made here is always valid.
#[allow(clippy::panic)]
fn valid<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

fn spec(name: &str) -> AdditiveDraw {
    let grid = |rows| AdditiveDraw::new(GraphShape::Grid { rows, columns: None });
    match name {
        "star25-51" => AdditiveDraw::new(GraphShape::Star { vertices: 25 }),
        "grid15x15-150" => AdditiveDraw { levels: 150, ..grid(15) },
        _ => AdditiveDraw { domain: DrawDomain::Continuous, ..grid(3) },
    }
}

fn drawn(spec: &AdditiveDraw) -> DrawnFunction {
    valid(spec.build(1, Path::new(".")))
}

/// A function with its optimum, where that is affordable.
#[divan::bench(args = NAMES, sample_count = 20, sample_size = 1)]
fn draw(bencher: Bencher, name: &str) {
    let spec = spec(name);
    bencher.bench(|| drawn(black_box(&spec)));
}

/// A value at a random point.
#[divan::bench(args = NAMES)]
fn evaluate(bencher: Bencher, name: &str) {
    let function = drawn(&spec(name));
    let point = function.space().sample(&mut Stream::new(0, 0).generator(Purpose::Problem));
    let values = valid(function.space().decode(&point));
    bencher.bench(|| valid(function.evaluate(black_box(&values))));
}
