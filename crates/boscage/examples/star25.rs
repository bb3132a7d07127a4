//! Regret and F1 on functions drawn from an additive GP over a star with 25 variables, for the paper's settings, the default
//! and random search.
//!
//! ```text
//! cargo run --release --example star25 -- --seeds 5 --trials 300 --traces traces.json
//! ```
//!
//! Every function is a sum of 24 independent draws, one for each edge of the star, on a grid of 51 levels an axis: RBF
//! kernel with lengthscale 0.2 and variance 1, observed with noise of standard deviation 0.15. All methods see the same
//! functions, noise and initial points. t counts what is chosen after the 10 initial points. The optimum is exact, by
//! message passing over the true tables.
//!
//! `--methods` takes names and files, separated by commas; a file holds a method with its settings as JSON, for example
//! `{"name": "tree", "settings": {"acquisition": "additive"}}` for the default with the paper's acquisition function.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::time::Instant;

use boscage::acquisition::AdditiveFunction;
use boscage::graph::{Component, Edge, edge_score};
use boscage::message_passing::{Grid, msg_passing_discrete};
use boscage::stream::{Generator, Purpose};
use boscage::{Method, Parameter, Point, Space, Stream};
use rand::RngExt;
use rayon::prelude::*;

const DIMENSION: usize = 25;
const LEVELS: usize = 51;
const LENGTHSCALE: f64 = 0.2;
const NOISE_STD: f64 = 0.15;
const INITIAL: usize = 10;

/// The true function: one table for each edge of the star.
struct Star {
    components: Vec<Component>,
    tables: Vec<Vec<f64>>,
}

impl AdditiveFunction for Star {
    fn components(&self) -> &[Component] {
        &self.components
    }

    /// The tables belong to the full grid, the only one they are asked for.
    fn tabulate(&self, _: &Grid) -> boscage::Result<Vec<Vec<f64>>> {
        Ok(self.tables.clone())
    }
}

impl Star {
    /// Draws a function. The kernel of an edge is a product, so a draw is L Z Lᵀ with Z of independent normals.
    fn draw(seed: u64) -> boscage::Result<Self> {
        let l = rbf_factor();
        let mut rng = Stream::new(seed, 0).generator(Purpose::Problem);
        let (mut components, mut tables) = (Vec::new(), Vec::new());
        for leaf in 1..DIMENSION {
            let z = Matrix::from_fn(|_, _| normal(&mut rng));
            let rows = Matrix::from_fn(|a, b| (0..=b).map(|k| z.at(a, k) * l.at(b, k)).sum());
            let table = Matrix::from_fn(|a, b| (0..=a).map(|k| l.at(a, k) * rows.at(k, b)).sum());
            components.push(Component::pair(Edge::new(0, leaf)?));
            tables.push(table.0);
        }
        Ok(Self { components, tables })
    }

    fn value(&self, space: &Space, point: &Point) -> f64 {
        let level = |d: usize| space.level(d, point.0[d]) as usize;
        self.components
            .iter()
            .zip(&self.tables)
            .map(|(g, table)| table[level(g.variables()[0]) * LEVELS + level(g.variables()[1])])
            .sum()
    }
}

/// LEVELS × LEVELS, by row.
struct Matrix(Vec<f64>);

impl Matrix {
    fn from_fn(mut f: impl FnMut(usize, usize) -> f64) -> Self {
        Self((0..LEVELS * LEVELS).map(|k| f(k / LEVELS, k % LEVELS)).collect())
    }

    fn at(&self, a: usize, b: usize) -> f64 {
        self.0[a * LEVELS + b]
    }
}

/// The lower factor of the RBF kernel matrix of the levels; 1e-9 on the diagonal keeps it from losing its last pivots.
fn rbf_factor() -> Matrix {
    let mut l = Matrix::from_fn(|_, _| 0.0);
    for a in 0..LEVELS {
        for b in 0..=a {
            let distance = (a - b) as f64 / (LEVELS - 1) as f64 / LENGTHSCALE;
            let mut value = (-0.5 * distance * distance).exp() + if a == b { 1e-9 } else { 0.0 };
            value -= (0..b).map(|k| l.at(a, k) * l.at(b, k)).sum::<f64>();
            l.0[a * LEVELS + b] = if a == b { value.max(1e-12).sqrt() } else { value / l.at(b, b) };
        }
    }
    l
}

/// A standard normal number.
fn normal(rng: &mut Generator) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Regret and F1 after each evaluation, the edges learned last with their frequencies, and the seconds it took.
struct Trace {
    regret: Vec<f64>,
    f1: Vec<f64>,
    edges: Vec<Edge>,
    seconds: f64,
}

fn run(method: &Method, seed: u64, trials: usize) -> boscage::Result<Trace> {
    let levels: Vec<f64> = (0..LEVELS).map(|k| k as f64 / (LEVELS - 1) as f64).collect();
    let parameters = (0..DIMENSION).map(|i| Parameter::ordinal(format!("x{i}"), levels.clone()));
    let space = Space::new(parameters.collect())?;
    let star = Star::draw(seed)?;
    let axis = |d: usize| (0..LEVELS as u64).map(|k| space.coordinate(d, k)).collect();
    let optimum = msg_passing_discrete(&star, &Grid::new((0..DIMENSION).map(axis).collect())?)?;
    let truth: Vec<Edge> = (1..DIMENSION).map(|j| Edge::new(0, j)).collect::<Result<_, _>>()?;

    let mut optimizer = method.build(space.clone())?;
    let mut noise = Stream::new(seed, 1).generator(Purpose::Problem);
    let mut best = f64::NEG_INFINITY;
    let mut trace = Trace { regret: vec![], f1: vec![], edges: vec![], seconds: 0.0 };
    let start = Instant::now();
    for number in 0..INITIAL + trials {
        let point = optimizer.ask(&[], &Stream::new(seed, number as u64))?;
        let value = star.value(&space, &point);
        best = best.max(value);
        optimizer.tell(point, value + NOISE_STD * normal(&mut noise))?;
        trace.edges = optimizer.model().map_or_else(Vec::new, |m| m.forest.edges().to_vec());
        trace.regret.push(optimum.value - best);
        trace.f1.push(edge_score(&trace.edges, &truth).f1);
    }
    trace.seconds = start.elapsed().as_secs_f64();
    Ok(trace)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut seeds, mut first_seed, mut trials) = (5_u64, 0_u64, 300_usize);
    let mut methods = "tree-paper,tree,random".to_string();
    let mut traces_file = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--seeds" => seeds = value.parse()?,
            "--first-seed" => first_seed = value.parse()?,
            "--trials" => trials = value.parse()?,
            "--methods" => methods = value,
            "--traces" => traces_file = Some(value),
            _ => return Err(format!("unknown flag {flag}; see the top of this file").into()),
        }
    }
    let checkpoints: Vec<usize> = [100, 200, 300].into_iter().filter(|&t| t <= trials).collect();
    let heading: Vec<String> = checkpoints.iter().map(|t| format!("t={t}")).collect();
    let heading = heading.join(" / ");
    println!(
        "| method | regret at {heading} | F1 at {heading} | regret of each seed at the end | seconds a run |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let mut all = serde_json::Map::new();
    for name in methods.split(',') {
        let method = if name.ends_with(".json") {
            serde_json::from_str(&std::fs::read_to_string(name)?)?
        } else {
            Method::named(name)?
        };
        let traces: Vec<Trace> = (first_seed..first_seed + seeds)
            .into_par_iter()
            .map(|seed| run(&method, seed, trials))
            .collect::<Result<_, _>>()?;
        let at = |pick: &dyn Fn(&Trace) -> &Vec<f64>| {
            let mean = |t: usize| {
                traces.iter().map(|trace| pick(trace)[INITIAL + t - 1]).sum::<f64>()
                    / traces.len() as f64
            };
            let means: Vec<String> =
                checkpoints.iter().map(|&t| format!("{:.2}", mean(t))).collect();
            means.join(" / ")
        };
        let ends: Vec<String> = traces
            .iter()
            .filter_map(|trace| trace.regret.last())
            .map(|regret| format!("{regret:.1}"))
            .collect();
        let seconds = traces.iter().map(|t| t.seconds).sum::<f64>() / traces.len() as f64;
        println!(
            "| {name} | {} | {} | {} | {seconds:.1} |",
            at(&|t| &t.regret),
            at(&|t| &t.f1),
            ends.join(", ")
        );
        let traces: Vec<serde_json::Value> = traces
            .iter()
            .map(|t| serde_json::json!({ "regret": t.regret, "f1": t.f1, "edges": t.edges }))
            .collect();
        all.insert(name.to_string(), traces.into());
    }
    if let Some(file) = traces_file {
        std::fs::write(file, serde_json::to_string(&all)?)?;
    }
    Ok(())
}
