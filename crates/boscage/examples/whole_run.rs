//! A whole run of the default method, with progress, the share of time of each phase, and peak memory.
//!
//! ```text
//! cargo run --release --example whole_run -- DIMENSION TRIALS [TOLD [METHOD]]
//! ```
//!
//! The objective is a sum of smooth random functions over the edges of a random tree. The first TOLD points are random
//! and told without asking, to look at a late part of a run.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use boscage::additive_gp_ucb::AdditiveGpUcb;
use boscage::additive_gp_ucb::Phase;
use boscage::graph::{Edge, edge_score};
use boscage::stream::Purpose;
use boscage::{Method, Optimizer, Point, Space, Stream};
use rand::RngExt;

/// A smooth function on an edge: a few waves of random direction and phase.
struct Waves(Edge, Vec<[f64; 4]>);

impl Waves {
    fn value(&self, point: &Point) -> f64 {
        let (x, y) = (point.0[self.0.low()], point.0[self.0.high()]);
        self.1.iter().map(|[a, b, phase, height]| height * (a * x + b * y + phase).sin()).sum()
    }
}

fn random_tree(dimension: usize, seed: u64) -> boscage::Result<Vec<Waves>> {
    let mut rng = Stream::new(seed, 0).generator(Purpose::Problem);
    let mut draw = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    (1..dimension)
        .map(|j| {
            let parent = (draw(0.0, 1.0) * j as f64) as usize;
            let wave = |draw: &mut dyn FnMut(f64, f64) -> f64| {
                [draw(-8.0, 8.0), draw(-8.0, 8.0), draw(0.0, 6.3), draw(0.2, 0.8)]
            };
            let waves = (0..4).map(|_| wave(&mut draw)).collect();
            Ok(Waves(Edge::new(parent.min(j - 1), j)?, waves))
        })
        .collect()
}

/// Peak resident memory, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".to_string(), |kilobytes| {
        let kilobytes = kilobytes.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0);
        format!("{:.2} GiB", kilobytes / 1024.0 / 1024.0)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize, default: usize| -> Result<usize, Box<dyn Error>> {
        Ok(arguments.get(k).map(|s| s.parse()).transpose()?.unwrap_or(default))
    };
    let (dimension, trials, told) = (number(0, 25)?, number(1, 300)?, number(2, 0)?);
    let method = Method::named(arguments.get(3).map_or("boscage", |name| name.as_str()))?;
    let (Method::Boscage(settings) | Method::Tree(settings)) = method else {
        return Err("only boscage and the tree methods have phases".into());
    };

    let objective = random_tree(dimension, 1)?;
    let value = |point: &Point| objective.iter().map(|waves| waves.value(point)).sum::<f64>();
    let space = Space::unit_cube(dimension)?;
    // The clock: time between one phase's beginning and the next's goes to the first.
    let clock = Arc::new(Mutex::new((Phase::Done, Instant::now(), BTreeMap::new())));
    let observer = Arc::clone(&clock);
    let mut optimizer =
        AdditiveGpUcb::new(space.clone(), *settings)?.with_observer(Arc::new(move |phase| {
            if let Ok(mut clock) = observer.lock() {
                let (running, since) = (clock.0, clock.1);
                *clock.2.entry(running).or_insert(Duration::ZERO) += since.elapsed();
                (clock.0, clock.1) = (phase, Instant::now());
            }
        }));
    let mut best = f64::NEG_INFINITY;
    let start = Instant::now();
    for trial in 0..trials {
        let stream = Stream::new(7, trial as u64);
        let point = if trial < told {
            space.sample(&mut stream.generator(Purpose::Initial))
        } else {
            optimizer.ask(&[], &stream)?
        };
        let outcome = value(&point);
        best = best.max(outcome);
        optimizer.tell(point, outcome)?;
        if (trial + 1) % (trials / 10).max(1) == 0 {
            eprintln!("{} of {trials}: best {best:.2}, {:.1?}", trial + 1, start.elapsed());
        }
    }
    let total = start.elapsed().as_secs_f64();
    let truth: Vec<Edge> = objective.iter().map(|waves| waves.0).collect();
    let learned = optimizer.model().map_or(&[][..], |model| model.graph.edges());
    println!("D = {dimension}, N = {trials} ({told} told at first): {total:.1} s");
    println!("best value {best:.3}, F1 {:.2}", edge_score(learned, &truth).f1);
    println!("peak memory {}", peak_memory());
    if let Ok(clock) = clock.lock() {
        for (phase, time) in clock.2.iter().filter(|(phase, _)| **phase != Phase::Done) {
            let seconds = time.as_secs_f64();
            println!("{phase:?}: {seconds:.1} s, {:.0} %", 100.0 * seconds / total);
        }
    }
    Ok(())
}
