//! The hot paths over sizes: `cargo bench -p boscage`, or `cargo bench -p boscage -- NAME` for one of them.
//!
//! Everything runs on one thread. For a comparison with SciPy see `benches/speed`.

mod problem;

use std::time::Duration;

use boscage::additive_gp::StructureScore;
use boscage::error::Result;
use boscage::message_passing::msg_passing_discrete;
use divan::{Bencher, black_box};
use problem::{NOISE_STD, Problem, Tables};

/// (observations, variables).
const SIZES: [(usize, usize); 9] = [
    (100, 25),
    (500, 25),
    (1000, 25),
    (100, 132),
    (500, 132),
    (1000, 132),
    (100, 250),
    (500, 250),
    (1000, 250),
];
/// Values an axis, the paper's R.
const GRID_SIZE: usize = 4;
const SAMPLES: u32 = 30;
/// After this long a benchmark ends, with fewer samples if it must.
const MAX_TIME: Duration = Duration::from_secs(3);

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    divan::Divan::from_args().sample_count(SAMPLES).max_time(MAX_TIME).main();
    Ok(())
}

/// The value, or the end of the benchmark: inputs made here are always valid.
#[allow(clippy::panic)]
fn valid<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// ρ of a tree of which one edge has moved.
#[divan::bench(args = SIZES, sample_size = 1)]
fn rho_one_edge(bencher: Bencher, (n, dimension): (usize, usize)) {
    let mut problem = valid(Problem::new(n, dimension));
    let (kernel, data) = (problem.kernel.clone(), problem.data.clone());
    let mut score = valid(StructureScore::new(&kernel, NOISE_STD, &data));
    valid(score.log_likelihood(problem.tree.components()));
    bencher
        .with_inputs(|| valid(problem.next_tree()))
        .bench_local_values(|tree| valid(score.log_likelihood(tree)));
}

/// The components' means and variances on a grid.
#[divan::bench(args = SIZES, sample_size = 1)]
fn tabulate(bencher: Bencher, (n, dimension): (usize, usize)) {
    let mut problem = valid(Problem::new(n, dimension));
    let posterior = valid(problem.posterior());
    bencher
        .with_inputs(|| valid(problem.next_grid(GRID_SIZE)))
        .bench_local_refs(|grid| valid(posterior.tabulate(grid)));
}

/// Conditioning, ρ and its gradient by all parameters.
#[divan::bench(args = SIZES, sample_size = 1)]
fn gradient(bencher: Bencher, (n, dimension): (usize, usize)) {
    let mut problem = valid(Problem::new(n, dimension));
    let data = problem.data.clone();
    bencher.with_inputs(|| problem.next_prior()).bench_local_refs(|prior| {
        let posterior = valid(prior.condition(&data));
        (posterior.log_likelihood(), posterior.log_likelihood_gradient())
    });
}

/// One more observation. Making room for it, which happens once in many times, is not included.
#[divan::bench(args = SIZES, sample_size = 1)]
fn append(bencher: Bencher, (n, dimension): (usize, usize)) {
    let mut problem = valid(Problem::new(n, dimension));
    let posterior = valid(problem.posterior());
    bencher.with_inputs(|| (posterior.clone(), problem.next_point())).bench_local_values(
        |(mut posterior, point)| {
            valid(posterior.append(black_box(&point), 0.0));
            posterior
        },
    );
}

/// The maximum of given tables; n does not matter.
#[divan::bench(args = [25, 132, 250])]
fn msg_passing(bencher: Bencher, dimension: usize) {
    let mut problem = valid(Problem::new(10, dimension));
    let posterior = valid(problem.posterior());
    let components = problem.tree.components();
    bencher
        .with_inputs(|| {
            let grid = valid(problem.next_grid(GRID_SIZE));
            let tables = valid(posterior.tabulate(&grid)).means;
            (Tables { components: components.clone(), tables }, grid)
        })
        .bench_local_refs(|(phi, grid)| valid(msg_passing_discrete(phi, grid)));
}
