//! How far to believe edge probabilities: on problems whose graph is known, are of the edges said to be 80 % likely about 80 % there?
//!
//! ```text
//! cargo run --release -p boscage-bench --example edge_calibration -- [SEEDS [FIRST_SEED]]
//! ```
//!
//! Each problem is looked at twice: with uniform points, and with those that the default method chose. Prints one table of how often
//! edges were there for each range of probabilities, and one of precision, recall and F1 for the edges that are more likely
//! than not.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use boscage::additive_gp::Dataset;
use boscage::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use boscage::edge_probabilities::edge_probabilities;
use boscage::graph::Graph;
use boscage::stream::Purpose;
use boscage::{Optimizer, Point, Stream};
use boscage_bench::problem::{Problem, ProblemSpec};
use boscage_bench::problems::additive::DrawDomain;
use boscage_bench::problems::closed_form::Function;
use boscage_bench::problems::graphs::GraphShape;
use boscage_bench::problems::{AdditiveDraw, ClosedForm};
use boscage_study::Goal;
use rand::RngExt;

/// Points of a run that are not chosen by a model.
const INITIAL: u64 = 10;

fn problems() -> Vec<(&'static str, ProblemSpec)> {
    let draw = |graph| {
        let draw = AdditiveDraw::new(graph);
        ProblemSpec::Additive(AdditiveDraw { domain: DrawDomain::Continuous, ..draw })
    };
    let formula = |function, dimension, auxiliary| {
        let formula = ClosedForm::new(function);
        let permute = auxiliary > 0;
        let noise_std = 0.15;
        ProblemSpec::ClosedForm(ClosedForm { dimension, auxiliary, permute, noise_std, ..formula })
    };
    vec![
        ("no edges, 15 variables (draw)", draw(GraphShape::Empty { vertices: 15 })),
        ("star, 15 (draw)", draw(GraphShape::Star { vertices: 15 })),
        ("random tree, 20 (draw)", draw(GraphShape::RandomTree { vertices: 20 })),
        ("path, 12 (draw)", draw(GraphShape::Path { vertices: 12 })),
        ("random graph, 15 (draw)", draw(GraphShape::ErdosRenyi { vertices: 15, degree: 1.0 })),
        ("grid, 3 × 3 (draw)", draw(GraphShape::Grid { rows: 3, columns: None })),
        ("no edges, Styblinski–Tang 20", formula(Function::StyblinskiTang, Some(20), 0)),
        ("one edge, camelback and 10 idle", formula(Function::Camelback, None, 10)),
        ("path, Rosenbrock 10", formula(Function::Rosenbrock, Some(10), 0)),
    ]
}

/// The data of a run: uniform points, or those that the method asks for.
fn observe(
    problem: &dyn Problem,
    seed: u64,
    n: u64,
    uniform: bool,
) -> Result<AdditiveGpUcb, Box<dyn Error>> {
    let space = problem.space().clone();
    let sign = if problem.goal() == Goal::Minimize { -1.0 } else { 1.0 };
    let mut optimizer = AdditiveGpUcb::new(space.clone(), AdditiveGpUcbSettings::boscage())?;
    for trial in 0..n {
        let stream = Stream::new(seed, trial);
        let point: Point = if uniform || trial < INITIAL {
            space.sample(&mut stream.generator(Purpose::Problem))
        } else {
            optimizer.ask(&[], &stream)?
        };
        let mut rng = stream.generator(Purpose::Noise);
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let value = problem.evaluate(&space.decode(&point)?)? + problem.noise_std() * normal;
        optimizer.tell(point, sign * value)?;
    }
    optimizer.learn(&Stream::new(seed, n))?;
    Ok(optimizer)
}

/// The probability that each pair was said to have, and whether it is there.
fn compare(
    optimizer: &AdditiveGpUcb,
    truth: &Graph,
    seed: u64,
) -> boscage::Result<Vec<(f64, bool)>> {
    let Some(model) = optimizer.model() else { return Ok(Vec::new()) };
    let mut data = Dataset::empty(optimizer.data().dimension());
    for (a, &y) in optimizer.data().outcomes().iter().enumerate() {
        data.push(&optimizer.data().point(a), model.outputs.apply(y))?;
    }
    let space = optimizer.space();
    let found: BTreeMap<(usize, usize), f64> =
        edge_probabilities(&model.prior, space, &data, &Stream::new(seed, 0))?
            .into_iter()
            .map(|(edge, probability)| (edge.into(), probability))
            .collect();
    let there: Vec<(usize, usize)> = truth.edges().iter().map(|edge| (*edge).into()).collect();
    let dimension = data.dimension();
    let pairs = (0..dimension).flat_map(|i| (i + 1..dimension).map(move |j| (i, j)));
    Ok(pairs
        .map(|pair| (found.get(&pair).copied().unwrap_or(0.0), there.contains(&pair)))
        .collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let seeds = arguments.next().transpose()?.unwrap_or(5);
    let first = arguments.next().transpose()?.unwrap_or(0);
    let mut all: [Vec<(f64, bool)>; 2] = [Vec::new(), Vec::new()];
    println!("| problem | data | observations | edges | found | right | F1 |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for (name, spec) in problems() {
        for (kind, uniform) in [(0, true), (1, false)] {
            for n in [100, 200] {
                let mut compared = Vec::new();
                for seed in first..first + seeds {
                    let problem = spec.build(seed, Path::new("."))?;
                    let Some(truth) = problem.graph() else { continue };
                    let optimizer = observe(problem.as_ref(), seed, n, uniform)?;
                    compared.extend(compare(&optimizer, truth, seed)?);
                    eprint!("\r{name}: {n} observations, seed {seed}    ");
                }
                let edges = compared.iter().filter(|(_, there)| *there).count();
                let found = compared.iter().filter(|(p, _)| *p >= 0.5).count();
                let right = compared.iter().filter(|(p, there)| *p >= 0.5 && *there).count();
                let f1 = match edges + found {
                    0 => "–".to_string(),
                    sum => format!("{:.2}", 2.0 * right as f64 / sum as f64),
                };
                let data = if uniform { "uniform" } else { "chosen" };
                println!("| {name} | {data} | {n} | {edges} | {found} | {right} | {f1} |");
                all[kind].extend(compared);
            }
        }
    }
    println!(
        "\n| said to be | uniform: pairs | expected | there | chosen: pairs | expected | there |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let bounds = [0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0];
    for range in bounds.windows(2) {
        print!("| {:.0} to {:.0} % |", 100.0 * range[0], 100.0 * range[1]);
        for compared in &all {
            let inside = |p: f64| p >= range[0] && (p < range[1] || range[1] == 1.0);
            let pairs: Vec<_> = compared.iter().filter(|(p, _)| inside(*p)).collect();
            let expected: f64 = pairs.iter().map(|(p, _)| p).sum();
            let there = pairs.iter().filter(|(_, there)| *there).count();
            print!(" {} | {expected:.1} | {there} |", pairs.len());
        }
        println!();
    }
    Ok(())
}
