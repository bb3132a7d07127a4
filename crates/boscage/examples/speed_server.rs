//! Times boscage's hot paths on request, for comparison with SciPy: the counterpart of `benches/speed/scipy_speed.py`.
//!
//! ```sh
//! echo 'rho_one_edge/1000/250 5' | cargo run --release -p boscage --example speed_server
//! ```
//!
//! Each line of input is a request, each answered by one line of JSON:
//!
//! * `NAME [REPEATS]`: times a quantity (REPEATS defaults to 11);
//! * `info`: version, vector instructions, cores;
//! * `list`: the names that the comparison uses; other sizes may be asked for;
//! * `quit`: ends (so does the end of input).
//!
//! Names, with N observations of D variables and a random spanning tree unless said otherwise:
//!
//! * `rho_one_edge/N/D`: ρ of a tree that differs from the one scored before by one moved edge; the average of 20;
//! * `condition/N/D`: a posterior from its prior and the data;
//! * `append/N/D`: one more observation; the average of 20, from N to N + 20;
//! * `tabulate/N/D/R`: means and variances of all components on a grid of R values an axis;
//! * `max_sum/N/D/R`: the maximum of such tables, which are given;
//! * `ask/N/D`: a maximisation of UCB over the unit cube with R = 4, L = 4, without learning;
//! * `learn/N/D/S`: tree learning with S likelihoods from a random spanning tree;
//! * `learn_growth/N/D/S`: the same from the forest without edges;
//! * `gradient/N/D`: conditioning, ρ and its gradient by all parameters, at new parameters each time;
//! * `gradient_only/N/D`: the gradient alone, given the posterior.
//!
//! One thread is used, or K if `/Kthreads` is appended. Inputs are made afresh before each repeat, outside of the timed
//! region; one untimed run comes first. With the argument `--cpu-time` the time that a single thread spent waiting for a
//! core is taken off (Linux only): for a machine that others use too.

// A program that talks on standard output.
#![allow(clippy::print_stdout)]

#[path = "../benches/problem/mod.rs"]
mod problem;

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use boscage::acquisition::{Ucb, beta};
use boscage::additive_gp::StructureScore;
use boscage::graph::Forest;
use boscage::message_passing::{Zoom, msg_passing_continuous, msg_passing_discrete};
use boscage::space::Space;
use boscage::stream::{Purpose, Stream};
use boscage::tree_learning::{TreeLearning, tree_learning};
use problem::{NOISE_STD, Problem, Tables};
use serde_json::{Value, json};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Calls that make one repeat of the quickest quantities.
const CALLS: usize = 20;
const DEFAULT_REPEATS: usize = 11;
const NAMES: [&str; 18] = [
    "rho_one_edge/1000/250",
    "rho_one_edge/500/250",
    "condition/1000/250",
    "append/1000/250",
    "tabulate/1000/250/4",
    "tabulate/1000/250/4/2threads",
    "tabulate/500/250/4",
    "max_sum/1000/250/4",
    "ask/1000/250",
    "ask/1000/250/2threads",
    "learn/500/250/250",
    "learn/500/250/250/2threads",
    "learn_growth/500/250/250",
    "learn_growth/500/250/250/2threads",
    "gradient/1000/250",
    "gradient/1000/250/2threads",
    "gradient_only/1000/250",
    "gradient_only/1000/250/2threads",
];

/// Runs `work` on the clock. Never inlined, so that profilers can find it by name.
#[inline(never)]
fn timed_region<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// How long this thread has been waiting for a core since it started, if it is to be taken off.
fn waited() -> Answer<Duration> {
    if rayon::current_num_threads() > 1 || !std::env::args().any(|word| word == "--cpu-time") {
        return Ok(Duration::ZERO);
    }
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = statistics.split_whitespace().nth(1).ok_or("no scheduler statistics")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Seconds a call of each repeat. `prepare` makes the inputs, off the clock; `run` makes `calls` calls.
fn measure<I, T>(
    repeats: usize,
    calls: usize,
    mut prepare: impl FnMut() -> Answer<I>,
    mut run: impl FnMut(I) -> Answer<T>,
) -> Answer<Vec<f64>> {
    let input = prepare()?;
    black_box(run(input)?);
    let mut seconds = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let input = prepare()?;
        let before = waited()?;
        let (result, elapsed) = timed_region(|| run(black_box(input)));
        let elapsed = elapsed.saturating_sub(waited()? - before);
        black_box(result?);
        seconds.push(elapsed.as_secs_f64() / calls as f64);
    }
    Ok(seconds)
}

fn seconds(quantity: &str, sizes: &[usize], repeats: usize) -> Answer<Vec<f64>> {
    match (quantity, sizes) {
        ("rho_one_edge", &[n, d]) => {
            let mut problem = Problem::new(n, d)?;
            let (kernel, data) = (problem.kernel.clone(), problem.data.clone());
            let mut score = StructureScore::new(&kernel, NOISE_STD, &data)?;
            score.log_likelihood(problem.tree.components())?;
            let trees = || -> Answer<Vec<_>> {
                Ok((0..CALLS).map(|_| problem.next_tree()).collect::<Result<_, _>>()?)
            };
            measure(repeats, CALLS, trees, |trees| {
                let mut sum = 0.0;
                for tree in trees {
                    sum += score.log_likelihood(tree)?;
                }
                Ok(sum)
            })
        }
        ("condition", &[n, d]) => {
            let mut problem = Problem::new(n, d)?;
            let data = problem.data.clone();
            measure(repeats, 1, || Ok(problem.next_prior()), |prior| Ok(prior.condition(&data)?))
        }
        ("append", &[n, d]) => {
            let mut problem = Problem::new(n, d)?;
            let posterior = problem.posterior()?;
            let prepare = || {
                let points: Vec<_> = (0..CALLS).map(|_| problem.next_point()).collect();
                Ok((posterior.clone(), points))
            };
            measure(repeats, CALLS, prepare, |(mut posterior, points)| {
                for point in &points {
                    posterior.append(point, 0.0)?;
                }
                Ok(posterior)
            })
        }
        ("tabulate", &[n, d, r]) => {
            let mut problem = Problem::new(n, d)?;
            let posterior = problem.posterior()?;
            measure(repeats, 1, || Ok(problem.next_grid(r)?), |grid| Ok(posterior.tabulate(&grid)?))
        }
        ("max_sum", &[n, d, r]) => {
            let mut problem = Problem::new(n, d)?;
            let posterior = problem.posterior()?;
            let components = problem.tree.components();
            let prepare = || {
                let grid = problem.next_grid(r)?;
                let tables = posterior.tabulate(&grid)?.means;
                Ok((Tables { components: components.clone(), tables }, grid))
            };
            measure(repeats, 1, prepare, |(phi, grid)| Ok(msg_passing_discrete(&phi, &grid)?))
        }
        ("ask", &[n, d]) => {
            let posterior = Problem::new(n, d)?.posterior()?;
            let space = Space::unit_cube(d)?;
            let mut trial = 0;
            let generator = || {
                trial += 1;
                Ok(Stream::new(1, trial).generator(Purpose::Zoom))
            };
            measure(repeats, 1, generator, |mut rng| {
                let ucb = Ucb { posterior: &posterior, beta: beta(n) };
                Ok(msg_passing_continuous(&ucb, &space, Zoom::default(), &mut rng)?)
            })
        }
        ("learn" | "learn_growth", &[n, d, samples]) => {
            let mut problem = Problem::new(n, d)?;
            let (kernel, data) = (problem.kernel.clone(), problem.data.clone());
            let config = TreeLearning { samples, ..TreeLearning::paper() };
            let mut trial = 0;
            let prepare = || {
                trial += 1;
                let start = if quantity == "learn" {
                    problem::random_tree(d, &mut problem.rng)?
                } else {
                    Forest::empty(d)
                };
                Ok((start, Stream::new(1, trial).generator(Purpose::Structure)))
            };
            measure(repeats, 1, prepare, |(start, mut rng)| {
                let mut score = StructureScore::new(&kernel, NOISE_STD, &data)?;
                let rho = |forest: &Forest| score.log_likelihood(forest.components());
                let learned = tree_learning(&start, rho, &config, &mut rng)?;
                if learned.evaluations != samples {
                    return Err(format!("{} likelihoods evaluated", learned.evaluations).into());
                }
                Ok(learned)
            })
        }
        ("gradient", &[n, d]) => {
            let mut problem = Problem::new(n, d)?;
            let data = problem.data.clone();
            measure(
                repeats,
                1,
                || Ok(problem.next_prior()),
                |prior| {
                    let posterior = prior.condition(&data)?;
                    Ok((posterior.log_likelihood(), posterior.log_likelihood_gradient()))
                },
            )
        }
        ("gradient_only", &[n, d]) => {
            let mut problem = Problem::new(n, d)?;
            let data = problem.data.clone();
            let posterior = || Ok(problem.next_prior().condition(&data)?);
            measure(repeats, 1, posterior, |posterior| Ok(posterior.log_likelihood_gradient()))
        }
        _ => Err(format!("unknown quantity {quantity:?} with {} sizes", sizes.len()).into()),
    }
}

/// Splits `NAME/SIZE/SIZE…[/Kthreads]`.
fn parse(name: &str) -> Answer<(&str, Vec<usize>, usize)> {
    let mut parts: Vec<&str> = name.split('/').collect();
    let mut threads = 1;
    if let Some(count) = parts.last().and_then(|last| last.strip_suffix("threads")) {
        threads = count.parse()?;
        parts.pop();
    }
    let sizes = parts[1..].iter().map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?;
    let least = [1, 2, 1]; // observations, variables, the rest
    if threads == 0 || sizes.iter().zip(least).any(|(&size, least)| size < least) {
        return Err(format!("{name}: too small").into());
    }
    Ok((parts[0], sizes, threads))
}

fn time(name: &str, repeats: usize) -> Answer<Value> {
    if repeats == 0 {
        return Err("repeats must be at least 1".into());
    }
    let (quantity, sizes, threads) = parse(name)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    // Everything runs inside of the pool, so that one thread means one thread.
    let mut seconds = pool.install(|| seconds(quantity, &sizes, repeats))?;
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    let median = match seconds.len() % 2 {
        0 => 0.5 * (seconds[middle - 1] + seconds[middle]),
        _ => seconds[middle],
    };
    Ok(json!({
        "name": name,
        "repeats": repeats,
        "min_seconds": seconds[0],
        "median_seconds": median,
    }))
}

fn vector_instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "AVX2";
        }
    }
    "baseline"
}

fn answer(request: &str) -> Answer<Value> {
    match *request.split_whitespace().collect::<Vec<_>>() {
        ["info"] => Ok(json!({
            "boscage": env!("CARGO_PKG_VERSION"),
            "vector_instructions": vector_instructions(),
            "cores": std::thread::available_parallelism()?.get(),
            "optimised": !cfg!(debug_assertions),
        })),
        ["list"] => Ok(json!({ "names": NAMES })),
        [name] => time(name, DEFAULT_REPEATS),
        [name, repeats] => time(name, repeats.parse()?),
        _ => Err("expected: NAME [REPEATS], info, list or quit".into()),
    }
}

fn main() -> Answer<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim() == "quit" {
            break;
        }
        let answer = answer(&line).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
