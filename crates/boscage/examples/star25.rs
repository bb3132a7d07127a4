//! Star-25.
use boscage::acquisition::AdditiveFunction;
use boscage::graph::{Component, Edge, edge_score};
use boscage::message_passing::{Grid, msg_passing_discrete};
use boscage::methods::{RandomSearch, TreeGpUcb, TreeGpUcbSettings};
use boscage::optimizer::Optimizer;
use boscage::space::{Parameter, Point, Space};
use boscage::stream::{Generator, Purpose, Stream};
use rand::RngExt;

const LEVELS: usize = 51;

struct Tables {
    components: Vec<Component>,
    tables: Vec<Vec<f64>>,
}
impl AdditiveFunction for Tables {
    fn components(&self) -> &[Component] {
        &self.components
    }
    fn tabulate(&self, _: &Grid) -> boscage::error::Result<Vec<Vec<f64>>> {
        Ok(self.tables.clone())
    }
}
fn normal(rng: &mut Generator) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
fn star(dimension: usize, seed: u64) -> Tables {
    let m = LEVELS;
    let mut l = vec![vec![0.0; m]; m];
    for a in 0..m {
        for b in 0..=a {
            let d = (a as f64 - b as f64) / (m - 1) as f64;
            let mut s = (-d * d / (2.0 * 0.04)).exp() + if a == b { 1e-9 } else { 0.0 };
            for k in 0..b {
                s -= l[a][k] * l[b][k];
            }
            l[a][b] = if a == b {
                s.max(1e-12).sqrt()
            } else {
                s / l[b][b]
            };
        }
    }
    let mut rng = Stream::new(seed, 0).generator(Purpose::Problem);
    let mut components = vec![];
    let mut tables = vec![];
    for j in 1..dimension {
        components.push(Component::pair(Edge::new(0, j).unwrap()));
        let z: Vec<f64> = (0..m * m).map(|_| normal(&mut rng)).collect();
        let mut t = vec![0.0; m * m];
        for a in 0..m {
            for b in 0..m {
                let mut s = 0.0;
                for k in 0..=b {
                    s += z[a * m + k] * l[b][k];
                }
                t[a * m + b] = s;
            }
        }
        let mut f = vec![0.0; m * m];
        for a in 0..m {
            for b in 0..m {
                let mut s = 0.0;
                for k in 0..=a {
                    s += l[a][k] * t[k * m + b];
                }
                f[a * m + b] = s;
            }
        }
        tables.push(f);
    }
    Tables { components, tables }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let name = args[1].clone();
    let n: usize = args.get(2).map_or(300, |s| s.parse().unwrap());
    let seeds: u64 = args.get(3).map_or(5, |s| s.parse().unwrap());
    let dimension = 25;
    let parameters: Vec<Parameter> = (0..dimension)
        .map(|i| {
            Parameter::ordinal(
                format!("x{i}"),
                (0..LEVELS).map(|k| k as f64 / 50.0).collect::<Vec<_>>(),
            )
        })
        .collect();
    let checkpoints: Vec<usize> = vec![110, 210, 310, 410, 610]
        .into_iter()
        .filter(|&c| c <= n)
        .collect();
    let run = |seed: u64| {
        let truth = star(dimension, seed);
        let space = Space::new(parameters.clone()).unwrap();
        let grid = Grid::new(
            (0..dimension)
                .map(|d| (0..LEVELS as u64).map(|k| space.coordinate(d, k)).collect())
                .collect(),
        )
        .unwrap();
        let optimum = msg_passing_discrete(&truth, &grid).unwrap().value;
        let edges: Vec<Edge> = (1..dimension).map(|j| Edge::new(0, j).unwrap()).collect();
        let f = |p: &Point| -> f64 {
            truth
                .components
                .iter()
                .zip(&truth.tables)
                .map(|(c, t)| {
                    let v = c.variables();
                    t[space.level(v[0], p.0[v[0]]) as usize * LEVELS
                        + space.level(v[1], p.0[v[1]]) as usize]
                })
                .sum()
        };
        let mut method: Box<dyn Optimizer> = match name.as_str() {
            "random" => Box::new(RandomSearch::new(space.clone())),
            "paper" => Box::new(TreeGpUcb::new(space.clone(), TreeGpUcbSettings::paper()).unwrap()),
            "default" => {
                Box::new(TreeGpUcb::new(space.clone(), TreeGpUcbSettings::default()).unwrap())
            }
            other => {
                let s: TreeGpUcbSettings = serde_json::from_str(other).unwrap();
                Box::new(TreeGpUcb::new(space.clone(), s).unwrap())
            }
        };
        let start = std::time::Instant::now();
        let mut best = f64::NEG_INFINITY;
        let mut out = vec![];
        let mut noise = Stream::new(seed, 1).generator(Purpose::Problem);
        for t in 0..n {
            let p = method.ask(&[], &Stream::new(seed, t as u64)).unwrap();
            let value = f(&p);
            best = best.max(value);
            method.tell(p, value + 0.15 * normal(&mut noise)).unwrap();
            if checkpoints.contains(&(t + 1)) {
                let f1 = method
                    .model()
                    .map_or(0.0, |m| edge_score(m.forest.edges(), &edges).f1);
                out.push((optimum - best, f1));
            }
        }
        (
            out,
            start.elapsed().as_secs_f64(),
            method.model().map(|m| {
                (
                    m.prior.noise_std,
                    m.prior.kernel.lengthscales.clone(),
                    m.prior.kernel.scales.clone(),
                )
            }),
        )
    };
    use rayon::prelude::*;
    let first: u64 = args.get(4).map_or(0, |s| s.parse().unwrap());
    let results: Vec<_> = (first..first + seeds).into_par_iter().map(run).collect();
    for (k, c) in checkpoints.iter().enumerate() {
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| {
            results.iter().map(|r| f(&r.0[k])).sum::<f64>() / seeds as f64
        };
        println!(
            "t={c} regret {:.2} F1 {:.2}  [{}]",
            mean(&|x| x.0),
            mean(&|x| x.1),
            results
                .iter()
                .map(|r| format!("{:.1}/{:.2}", r.0[k].0, r.0[k].1))
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    println!(
        "seconds {:?}",
        results
            .iter()
            .map(|r| (r.1 * 10.0).round() / 10.0)
            .collect::<Vec<_>>()
    );
    if let Some(m) = &results[0].2 {
        println!("noise {:.3} l {:.2?} s {:.2?}", m.0, m.1, m.2);
    }
}
