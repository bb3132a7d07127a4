//! A problem and a method of your own in the harness: stored, resumed and reported like those that come with boscage.
//!
//! ```text
//! cargo run --release -p boscage-bench --example own_problem
//! cargo run --release -p boscage-cli -- bench report results/own
//! ```

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use boscage::stream::Purpose;
use boscage::{Error, Method, Optimizer, Parameter, Point, Space, Stream, Value};
use boscage_bench::{
    Event, Observations, Plan, PlannedMethod, PlannedProblem, Problem, RunnerOptions, run_plan,
};
use rand::RngExt;

/// How long a baker waits: twelve ovens whose temperatures should match those of their neighbours, and a kind of yeast.
struct Bakery {
    space: Space,
}

impl Bakery {
    fn new() -> boscage::Result<Self> {
        let ovens = (0..12).map(|oven| Parameter::real(format!("oven{oven}"), 150.0, 300.0));
        let yeast = Parameter::categorical("yeast", ["fresh", "dry", "wild"]);
        Ok(Self { space: Space::new(ovens.chain([yeast]).collect())? })
    }
}

impl Problem for Bakery {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, values: &[Value]) -> boscage_bench::Result<f64> {
        let ovens: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
        let matching: f64 = ovens.windows(2).map(|pair| ((pair[0] - pair[1]) / 50.0).powi(2)).sum();
        let heat: f64 = ovens.iter().map(|oven| ((oven - 230.0) / 50.0).powi(2)).sum();
        let yeast = if values.last() == Some(&Value::from("wild")) { 3.0 } else { 0.0 };
        Ok(matching + heat + yeast)
    }

    fn noise_std(&self) -> f64 {
        0.2
    }
}

/// A method: the best point so far, with a few coordinates drawn anew.
struct Shaking {
    space: Space,
    best: Option<(f64, Point)>,
}

impl Optimizer for Shaking {
    fn ask(&mut self, _pending: &[Point], stream: &Stream) -> boscage::Result<Point> {
        let mut rng = stream.generator(Purpose::Zoom);
        let mut point = self.space.sample(&mut rng);
        if let Some((_, best)) = &self.best {
            for (new, old) in point.0.iter_mut().zip(&best.0) {
                if rng.random_bool(0.8) {
                    *new = *old;
                }
            }
        }
        Ok(point)
    }

    fn tell(&mut self, point: Point, outcome: f64) -> boscage::Result<()> {
        if !outcome.is_finite() {
            return Err(Error::InvalidOutcome { value: outcome });
        }
        if self.best.as_ref().is_none_or(|(best, _)| outcome > *best) {
            self.best = Some((outcome, point));
        }
        Ok(())
    }

    fn fail(&mut self, _point: Point) -> boscage::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tree = Method::default();
    let plan = Plan {
        name: "own".to_string(),
        title: "A bakery".to_string(),
        problems: vec![PlannedProblem {
            label: "bakery".to_string(),
            title: "Bakery".to_string(),
            settings: serde_json::json!({ "ovens": 12 }),
            build: Arc::new(|_seed| Ok(Box::new(Bakery::new()?))),
        }],
        methods: vec![
            PlannedMethod {
                label: "tree".to_string(),
                settings: serde_json::to_value(&tree)?,
                observations: Observations::Noisy,
                build: Arc::new(move |problem| Ok(tree.build(problem.space().clone())?)),
            },
            PlannedMethod {
                label: "shaking".to_string(),
                settings: serde_json::json!({ "kept": 0.8 }),
                observations: Observations::Noisy,
                build: Arc::new(|problem| {
                    Ok(Box::new(Shaking { space: problem.space().clone(), best: None }))
                }),
            },
        ],
        seeds: vec![0, 1, 2],
        initial_points: 10,
        trials: 60,
    };
    let options = RunnerOptions { out: "results/own".into(), jobs: 2, threads: 1 };
    let observe = |event: Event<'_>| {
        if let Event::Finished { run } = event {
            println!("run {run} is complete");
        }
    };
    let summary = run_plan(&plan, &options, &AtomicBool::new(false), &observe)?;
    println!("{} runs completed, {} were there before", summary.finished, summary.already_done);
    println!("results are in results/own");
    Ok(())
}
