//! The additive Gaussian process against the obvious: a dense one written out below, and finite differences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use boscage::additive_gp::{
    AdditivePosterior, AdditivePrior, Dataset, LikelihoodGradient, Normal, StructureScore,
};
use boscage::error::Error;
use boscage::graph::{Component, Edge, Forest};
use boscage::kernel::{Kernel, KernelFamily, Metric};
use boscage::message_passing::Grid;
use boscage::space::Point;
use boscage::stream::{Generator, Purpose, Stream};
use rand::RngExt;

const FAMILIES: [KernelFamily; 2] = [KernelFamily::Rbf, KernelFamily::Matern52];

fn random(seed: u64) -> Generator {
    Stream::new(seed, 0).generator(Purpose::Problem)
}

fn component(variables: &[usize]) -> Component {
    Component::new(variables.to_vec()).unwrap()
}

/// Alone, in pairs, in threes, all of them overlapping; variable 6 is in no component.
fn overlapping() -> Vec<Component> {
    [&[0][..], &[0, 1], &[1, 2, 3], &[4], &[2, 4], &[5], &[3, 5]].map(component).to_vec()
}

const DIMENSION: usize = 7;

/// Variable 5 is categorical.
fn prior(family: KernelFamily, rng: &mut Generator) -> AdditivePrior {
    let mut kernel = Kernel::uniform(family, DIMENSION, 1.0, 1.0);
    kernel.metrics[5] = Metric::Categorical;
    kernel.lengthscales.fill_with(|| rng.random_range(0.15..0.9));
    kernel.scales.fill_with(|| rng.random_range(0.3..1.5));
    AdditivePrior {
        components: overlapping(),
        kernel,
        noise_std: 0.2,
        all_pairs: None,
        constant: 0.0,
        common_std: 0.0,
    }
}

fn point(kernel: &Kernel, rng: &mut Generator) -> Point {
    let coordinate = |metric: &Metric| match metric {
        Metric::Numeric => rng.random(),
        Metric::Categorical => f64::from(rng.random_range(0..4)) / 3.0,
    };
    Point(kernel.metrics.iter().map(coordinate).collect())
}

fn outcome(x: &Point, rng: &mut Generator) -> f64 {
    let x = &x.0;
    (5.0 * x[0] + x[1]).sin() + 3.0 * x[x.len() - 2] + rng.random_range(-0.3..0.3)
}

fn dataset(n: usize, kernel: &Kernel, rng: &mut Generator) -> Dataset {
    let mut data = Dataset::empty(kernel.dimension());
    for _ in 0..n {
        let x = point(kernel, rng);
        let y = outcome(&x, rng);
        data.push(&x, y).unwrap();
    }
    data
}

/// Of values whose size is of no interest: relative to max(1, |want|). NaN fails.
#[track_caller]
fn assert_close(got: f64, want: f64, tolerance: f64) {
    let close = (got - want).abs() <= tolerance * want.abs().max(1.0);
    assert!(close, "{got:e}, want {want:e} within {tolerance:e}");
}

#[track_caller]
fn assert_same(got: Normal, want: Normal, tolerance: f64) {
    assert_close(got.mean, want.mean, tolerance);
    assert_close(got.variance, want.variance, tolerance);
}

/// Same mean and variance at every given point and same ρ.
#[track_caller]
fn assert_same_posterior(
    got: &AdditivePosterior,
    want: &AdditivePosterior,
    points: &[Point],
    tolerance: f64,
) {
    assert_eq!(got.len(), want.len());
    assert_close(got.log_likelihood(), want.log_likelihood(), tolerance);
    for x in points {
        assert_same(got.joint(x).unwrap(), want.joint(x).unwrap(), tolerance);
        for k in 0..want.prior().components.len() {
            assert_same(got.component(k, x).unwrap(), want.component(k, x).unwrap(), tolerance);
        }
    }
}

// The dense Gaussian process: formulas as in the paper, matrices as lists of rows.

fn kappa(kernel: &Kernel, g: &Component, x: &Point, other: &Point) -> f64 {
    let mut value = g.variables().iter().map(|&i| kernel.scales[i].powi(2)).sum::<f64>().sqrt();
    for &i in g.variables() {
        let difference = match kernel.metrics[i] {
            Metric::Numeric => (x.0[i] - other.0[i]).abs(),
            Metric::Categorical if x.0[i] == other.0[i] => 0.0,
            Metric::Categorical => 1.0,
        };
        let r = difference / kernel.lengthscales[i];
        value *= match kernel.family {
            KernelFamily::Rbf => (-r * r / 2.0).exp(),
            KernelFamily::Matern52 => {
                let s = 5.0_f64.sqrt() * r;
                (1.0 + s + s * s / 3.0) * (-s).exp()
            }
        };
    }
    value
}

/// Gaussian elimination with pivoting: A⁻¹ B and log|det A|.
fn eliminate(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, f64) {
    let n = a.len();
    let mut log_determinant = 0.0;
    for k in 0..n {
        let p = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, p);
        b.swap(k, p);
        log_determinant += a[k][k].abs().ln();
        let (pivot_row, pivot_right) = (a[k].clone(), b[k].clone());
        for i in (0..n).filter(|&i| i != k) {
            let ratio = a[i][k] / pivot_row[k];
            a[i].iter_mut().zip(&pivot_row).for_each(|(v, p)| *v -= ratio * p);
            b[i].iter_mut().zip(&pivot_right).for_each(|(v, p)| *v -= ratio * p);
        }
    }
    for (k, row) in b.iter_mut().enumerate() {
        row.iter_mut().for_each(|v| *v /= a[k][k]);
    }
    (b, log_determinant)
}

struct Dense<'a> {
    prior: &'a AdditivePrior,
    x: Vec<Point>,
    delta: Vec<Vec<f64>>,
    y: Vec<f64>,
}

impl<'a> Dense<'a> {
    fn new(prior: &'a AdditivePrior, data: &Dataset) -> Self {
        let x: Vec<Point> = (0..data.len()).map(|a| data.point(a)).collect();
        let entry = |a: usize, b: usize| {
            let noise = if a == b { prior.noise_std.powi(2) } else { 0.0 };
            noise
                + prior
                    .components
                    .iter()
                    .map(|g| kappa(&prior.kernel, g, &x[a], &x[b]))
                    .sum::<f64>()
        };
        let delta = (0..x.len()).map(|a| (0..x.len()).map(|b| entry(a, b)).collect()).collect();
        Self { prior, x, delta, y: data.outcomes().to_vec() }
    }

    fn log_likelihood(&self) -> f64 {
        let right = self.y.iter().map(|&y| vec![y]).collect();
        let (alpha, log_determinant) = eliminate(self.delta.clone(), right);
        let quadratic: f64 = self.y.iter().zip(&alpha).map(|(y, alpha)| y * alpha[0]).sum();
        let n = self.y.len() as f64;
        -0.5 * (quadratic + log_determinant + n * (2.0 * std::f64::consts::PI).ln())
    }

    /// The sum of these components at x.
    fn at(&self, components: &[Component], x: &Point) -> Normal {
        let kernel = &self.prior.kernel;
        let k = |a: &Point, b: &Point| -> f64 {
            components.iter().map(|g| kappa(kernel, g, a, b)).sum()
        };
        let cross: Vec<f64> = self.x.iter().map(|row| k(row, x)).collect();
        let right = self.y.iter().zip(&cross).map(|(&y, &k)| vec![y, k]).collect();
        let (solved, _) = eliminate(self.delta.clone(), right);
        let dot = |c: usize| cross.iter().zip(&solved).map(|(k, row)| k * row[c]).sum::<f64>();
        Normal { mean: dot(0), variance: k(x, x) - dot(1) }
    }
}

#[test]
fn posterior_and_likelihood_equal_a_dense_gaussian_process() {
    for family in FAMILIES {
        // Around the width of the vectors and of the column blocks, and well beyond.
        for (seed, n) in [1, 2, 7, 8, 9, 17, 40].into_iter().enumerate() {
            let mut rng = random(seed as u64);
            let prior = prior(family, &mut rng);
            let data = dataset(n, &prior.kernel, &mut rng);
            let (posterior, dense) = (prior.condition(&data).unwrap(), Dense::new(&prior, &data));
            assert_eq!(posterior.len(), n);
            assert_close(posterior.log_likelihood(), dense.log_likelihood(), 1e-10);
            // Also at an observed point.
            for x in
                [point(&prior.kernel, &mut rng), point(&prior.kernel, &mut rng), data.point(n / 2)]
            {
                assert_same(posterior.joint(&x).unwrap(), dense.at(&prior.components, &x), 1e-10);
                for (k, g) in prior.components.iter().enumerate() {
                    let want = dense.at(std::slice::from_ref(g), &x);
                    assert_same(posterior.component(k, &x).unwrap(), want, 1e-10);
                }
            }
        }
    }
}

#[test]
fn a_component_may_be_listed_twice() {
    let mut rng = random(1);
    let mut prior = prior(KernelFamily::Rbf, &mut rng);
    prior.components = vec![component(&[0, 1]), component(&[0, 1]), component(&[2])];
    let data = dataset(12, &prior.kernel, &mut rng);
    let (posterior, dense) = (prior.condition(&data).unwrap(), Dense::new(&prior, &data));
    let x = point(&prior.kernel, &mut rng);
    assert_close(posterior.log_likelihood(), dense.log_likelihood(), 1e-11);
    assert_same(posterior.joint(&x).unwrap(), dense.at(&prior.components, &x), 1e-11);
}

#[test]
fn component_means_add_up_to_the_joint_mean() {
    for family in FAMILIES {
        let mut rng = random(2);
        let prior = prior(family, &mut rng);
        let posterior = prior.condition(&dataset(60, &prior.kernel, &mut rng)).unwrap();
        for _ in 0..20 {
            let x = point(&prior.kernel, &mut rng);
            let parts = (0..prior.components.len()).map(|k| posterior.component(k, &x).unwrap());
            let (mut mean, mut variance) = (0.0, 0.0);
            for part in parts {
                mean += part.mean;
                variance += part.variance;
            }
            let joint = posterior.joint(&x).unwrap();
            assert_close(mean, joint.mean, 1e-12);
            // Components compete to explain the data: the variances do not add up.
            assert!(joint.variance < variance - 0.1, "{} {variance}", joint.variance);
        }
    }
}

/// Central differences of `f` by the logarithm of every parameter.
fn differences(prior: &AdditivePrior, f: impl Fn(&AdditivePrior) -> f64) -> LikelihoodGradient {
    let h = 1e-5;
    let slope = |change: &dyn Fn(&mut AdditivePrior, f64)| {
        let at = |by: f64| {
            let mut prior = prior.clone();
            change(&mut prior, by.exp());
            f(&prior)
        };
        (at(h) - at(-h)) / (2.0 * h)
    };
    let dimensions = 0..prior.kernel.dimension();
    LikelihoodGradient {
        log_lengthscales: dimensions
            .clone()
            .map(|i| slope(&|prior, by| prior.kernel.lengthscales[i] *= by))
            .collect(),
        log_scales: dimensions.map(|i| slope(&|prior, by| prior.kernel.scales[i] *= by)).collect(),
        log_noise_std: slope(&|prior, by| prior.noise_std *= by),
        log_pair_weights: Vec::new(),
        log_common_std: None,
        log_stretches: Vec::new(),
    }
}

#[test]
fn gradient_of_the_likelihood_equals_finite_differences() {
    for family in FAMILIES {
        for (seed, n) in [3, 8, 30].into_iter().enumerate() {
            let mut rng = random(seed as u64);
            let prior = prior(family, &mut rng);
            let data = dataset(n, &prior.kernel, &mut rng);
            let got = prior.condition(&data).unwrap().log_likelihood_gradient();
            let want =
                differences(&prior, |prior| prior.condition(&data).unwrap().log_likelihood());
            for i in 0..DIMENSION {
                assert_close(got.log_lengthscales[i], want.log_lengthscales[i], 1e-7);
                assert_close(got.log_scales[i], want.log_scales[i], 1e-7);
            }
            assert_close(got.log_noise_std, want.log_noise_std, 1e-7);
            // The test has teeth: the categorical variable's slope is not zero, the unused variable's is.
            assert!(got.log_lengthscales[5].abs() > 1e-3);
            assert_eq!((got.log_lengthscales[6], got.log_scales[6]), (0.0, 0.0));
        }
    }
}

#[test]
fn joint_gradient_equals_finite_differences() {
    let h = 1e-5;
    for family in FAMILIES {
        let mut rng = random(3);
        let prior = prior(family, &mut rng);
        let data = dataset(30, &prior.kernel, &mut rng);
        let posterior = prior.condition(&data).unwrap();
        // At an observed point the variance is smallest and Matérn's |x − x′| has its kink.
        for x in [point(&prior.kernel, &mut rng), point(&prior.kernel, &mut rng), data.point(4)] {
            let got = posterior.joint_gradient(&x).unwrap();
            assert_same(got.normal, posterior.joint(&x).unwrap(), 1e-12);
            for i in 0..DIMENSION {
                if prior.kernel.metrics[i] == Metric::Categorical || i == 6 {
                    assert_eq!((got.mean_gradient[i], got.variance_gradient[i]), (0.0, 0.0));
                    continue;
                }
                let at = |by: f64| {
                    let mut moved = x.clone();
                    moved.0[i] += by;
                    posterior.joint(&moved).unwrap()
                };
                let (up, down) = (at(h), at(-h));
                assert_close(got.mean_gradient[i], (up.mean - down.mean) / (2.0 * h), 1e-7);
                let want = (up.variance - down.variance) / (2.0 * h);
                assert_close(got.variance_gradient[i], want, 1e-7);
            }
        }
    }
}

#[test]
fn appending_one_by_one_equals_conditioning_on_everything() {
    for family in FAMILIES {
        let mut rng = random(4);
        let prior = prior(family, &mut rng);
        // Far enough for the factor to run out of room more than once.
        let data = dataset(150, &prior.kernel, &mut rng);
        let points: Vec<_> = (0..4).map(|_| point(&prior.kernel, &mut rng)).collect();
        let mut grown = prior.condition(&Dataset::empty(DIMENSION)).unwrap();
        let mut so_far = Dataset::empty(DIMENSION);
        for (a, &y) in data.outcomes().iter().enumerate() {
            grown.append(&data.point(a), y).unwrap();
            so_far.push(&data.point(a), y).unwrap();
            if [1, 2, 32, 33, 34, 80, 81, 149, 150].contains(&(a + 1)) {
                let fresh = prior.condition(&so_far).unwrap();
                assert_same_posterior(&grown, &fresh, &points, 1e-9);
            }
        }
        // The gradient uses the appended inputs and factor too.
        let (got, want) = (
            grown.log_likelihood_gradient(),
            prior.condition(&data).unwrap().log_likelihood_gradient(),
        );
        for i in 0..DIMENSION {
            assert_close(got.log_lengthscales[i], want.log_lengthscales[i], 1e-9);
            assert_close(got.log_scales[i], want.log_scales[i], 1e-9);
        }
        assert_close(got.log_noise_std, want.log_noise_std, 1e-9);
    }
}

#[test]
fn pending_points_keep_the_mean_and_shrink_the_variance() {
    for family in FAMILIES {
        let mut rng = random(5);
        let prior = prior(family, &mut rng);
        let mut data = dataset(25, &prior.kernel, &mut rng);
        let posterior = prior.condition(&data).unwrap();
        let pending: Vec<_> = (0..3).map(|_| point(&prior.kernel, &mut rng)).collect();
        let points: Vec<_> = (0..30).map(|_| point(&prior.kernel, &mut rng)).collect();

        let with = posterior.with_pending(&pending).unwrap();
        assert_eq!((posterior.len(), with.len()), (25, 28));
        for x in points.iter().chain(&pending) {
            let (before, after) = (posterior.joint(x).unwrap(), with.joint(x).unwrap());
            assert_close(after.mean, before.mean, 1e-11);
            assert!(after.variance <= before.variance + 1e-12);
            for k in 0..prior.components.len() {
                let (before, after) =
                    (posterior.component(k, x).unwrap(), with.component(k, x).unwrap());
                assert_close(after.mean, before.mean, 1e-11);
                assert!(after.variance <= before.variance + 1e-12);
            }
        }
        for x in &pending {
            let mut near = x.clone();
            near.0[0] += 0.01;
            for x in [x, &near] {
                let (before, after) = (posterior.joint(x).unwrap(), with.joint(x).unwrap());
                assert!(after.variance < 0.5 * before.variance, "{before:?} {after:?}");
            }
        }
        // One pending point, in closed form: v η²/(v + η²) is left of the variance v.
        let (one, noise) =
            (posterior.with_pending(&pending[..1]).unwrap(), prior.noise_std.powi(2));
        let before = posterior.joint(&pending[0]).unwrap().variance;
        let want = before * noise / (before + noise);
        assert_close(one.joint(&pending[0]).unwrap().variance, want, 1e-12);

        // All of it is what conditioning on the posterior means would give.
        for x in &pending {
            data.push(x, posterior.joint(x).unwrap().mean).unwrap();
        }
        assert_same_posterior(&with, &prior.condition(&data).unwrap(), &points, 1e-9);
        assert_eq!(posterior.with_pending(&[]).unwrap().len(), 25);
    }
}

#[test]
fn the_best_observed_point_has_the_highest_mean() {
    let mut rng = random(13);
    let prior = prior(KernelFamily::Matern52, &mut rng);
    let data = dataset(25, &prior.kernel, &mut rng);
    let posterior = prior.condition(&data).unwrap();
    let mean = |x: &Point| posterior.joint(x).unwrap().mean;
    let highest = (0..25).map(|a| mean(&data.point(a))).fold(f64::NEG_INFINITY, f64::max);
    assert_close(mean(&posterior.best_observed(1)[0]), highest, 1e-9);
    let none = prior.condition(&Dataset::empty(DIMENSION)).unwrap();
    assert!(none.best_observed(1).is_empty());
}

#[test]
fn other_outcomes_on_the_same_inputs() {
    let mut rng = random(6);
    let prior = prior(KernelFamily::Rbf, &mut rng);
    let data = dataset(20, &prior.kernel, &mut rng);
    let points: Vec<_> = (0..5).map(|_| point(&prior.kernel, &mut rng)).collect();
    let mut other = Dataset::empty(DIMENSION);
    for a in 0..20 {
        other.push(&data.point(a), rng.random_range(-3.0..3.0)).unwrap();
    }
    let mut posterior = prior.condition(&data).unwrap();
    posterior.set_outcomes(other.outcomes()).unwrap();
    assert_same_posterior(&posterior, &prior.condition(&other).unwrap(), &points, 1e-12);

    // The append that follows starts from the new outcomes.
    let x = point(&prior.kernel, &mut rng);
    posterior.append(&x, 0.7).unwrap();
    other.push(&x, 0.7).unwrap();
    assert_same_posterior(&posterior, &prior.condition(&other).unwrap(), &points, 1e-9);

    let refused = posterior.set_outcomes(&[1.0, 2.0]).unwrap_err();
    assert!(matches!(refused, Error::WrongDimension { expected: 21, found: 2, .. }), "{refused}");
}

#[test]
fn structure_score_equals_conditioning_along_a_random_walk() {
    let dimension = 9;
    for family in FAMILIES {
        let mut rng = random(7);
        let mut kernel = Kernel::uniform(family, dimension, 1.0, 1.0);
        kernel.lengthscales.fill_with(|| rng.random_range(0.1..0.8));
        kernel.scales.fill_with(|| rng.random_range(0.3..1.5));
        kernel.metrics[8] = Metric::Categorical;
        let data = dataset(35, &kernel, &mut rng);
        let noise_std = 0.1;
        let mut score = StructureScore::new(&kernel, noise_std, &data).unwrap();
        let mut forest = Forest::empty(dimension);
        let (mut scored, mut largest) = (0, 0);
        while scored < 200 {
            let (i, j) = (rng.random_range(0..dimension), rng.random_range(0..dimension));
            let mut candidate = forest.clone();
            let Ok(edge) = Edge::new(i, j) else { continue };
            if candidate.contains(edge) {
                candidate.remove(edge).unwrap();
            } else if candidate.add(edge).is_err() {
                // The edge would close a cycle: put it in place of another one.
                let old = candidate.edges()[rng.random_range(0..candidate.edge_count())];
                candidate.remove(old).unwrap();
                if candidate.add(edge).is_err() {
                    continue;
                }
            }
            let mut components = candidate.components();
            let prior = AdditivePrior {
                components: components.clone(),
                kernel: kernel.clone(),
                noise_std,
                all_pairs: None,
                constant: 0.0,
                common_std: 0.0,
            };
            let want = prior.condition(&data).unwrap().log_likelihood();
            // The order of the components is of no importance.
            if rng.random() {
                components.reverse();
            }
            let got = score.log_likelihood(components).unwrap();
            assert!((got - want).abs() < 1e-9, "{got} {want} after {scored} candidates");
            scored += 1;
            largest = largest.max(candidate.edge_count());
            // Some candidates are taken and some not, as by the learner; now and then it starts anew.
            if rng.random_range(0.0..1.0) < 0.6 {
                forest = candidate;
            }
            if scored % 67 == 0 {
                forest = Forest::empty(dimension);
            }
        }
        assert!(largest >= 4, "the walk stayed at {largest} edges");
    }
}

#[test]
fn tables_equal_the_components_entry_by_entry() {
    for family in FAMILIES {
        for n in [0, 1, 23] {
            let mut rng = random(8);
            let prior = prior(family, &mut rng);
            let data = dataset(n, &prior.kernel, &mut rng);
            let posterior = prior.condition(&data).unwrap();
            // All sizes differ where it matters, and tables run across the blocks of 128 that are solved together.
            let sizes = [3, 50, 4, 5, 7, 4, 1];
            let axes: Vec<Vec<f64>> = sizes
                .iter()
                .zip(&prior.kernel.metrics)
                .map(|(&size, metric)| match metric {
                    Metric::Numeric => (0..size).map(|_| rng.random()).collect(),
                    Metric::Categorical => (0..size).map(|c| f64::from(c) / 3.0).collect(),
                })
                .collect();
            let grid = Grid::new(axes.clone()).unwrap();
            let tables = posterior.tabulate(&grid).unwrap();
            assert_eq!(tables.means.len(), prior.components.len());
            assert_eq!(tables.variances.len(), prior.components.len());
            let mut x = Point(axes.iter().map(|axis| axis[0]).collect());
            for (k, g) in prior.components.iter().enumerate() {
                let size: usize = g.variables().iter().map(|&i| axes[i].len()).product();
                assert_eq!((tables.means[k].len(), tables.variances[k].len()), (size, size));
                for entry in 0..size {
                    // The digits of the entry number: the last variable varies fastest.
                    let mut rest = entry;
                    for &i in g.variables().iter().rev() {
                        x.0[i] = axes[i][rest % axes[i].len()];
                        rest /= axes[i].len();
                    }
                    let want = posterior.component(k, &x).unwrap();
                    assert_close(tables.means[k][entry], want.mean, 1e-12);
                    assert_close(tables.variances[k][entry], want.variance, 1e-12);
                }
            }
            if n == 23 {
                // Spelled out once, for a component of three: entry (2, 1, 3) of a 50 × 4 × 5 table.
                (x.0[1], x.0[2], x.0[3]) = (axes[1][2], axes[2][1], axes[3][3]);
                let want = posterior.component(2, &x).unwrap();
                assert_close(tables.means[2][(2 * 4 + 1) * 5 + 3], want.mean, 1e-12);
                assert!((tables.means[2][(3 * 4 + 1) * 5 + 2] - want.mean).abs() > 1e-6);
            }
            let means = posterior.tabulate_means(&grid).unwrap();
            assert_eq!(means.len(), tables.means.len());
            for (got, want) in means.iter().zip(&tables.means) {
                assert_eq!(got.len(), want.len());
                got.iter().zip(want).for_each(|(&got, &want)| assert_close(got, want, 1e-12));
            }
            let short = Grid::new(axes[..6].to_vec()).unwrap();
            for refused in
                [posterior.tabulate(&short).err(), posterior.tabulate_means(&short).err()]
            {
                let expected = Error::WrongDimension { what: "the grid", expected: 7, found: 6 };
                assert_eq!(refused, Some(expected));
            }
        }
    }
}

#[test]
fn many_points_at_once_equal_each_alone() {
    for n in [0, 1, 40] {
        let mut rng = random(14);
        let prior = prior(KernelFamily::Rbf, &mut rng);
        let posterior = prior.condition(&dataset(n, &prior.kernel, &mut rng)).unwrap();
        for m in [0, 1, 9] {
            let points: Vec<_> = (0..m).map(|_| point(&prior.kernel, &mut rng)).collect();
            let many = posterior.joint_many(&points).unwrap();
            assert_eq!(many.len(), m);
            for (got, x) in many.iter().zip(&points) {
                assert_same(*got, posterior.joint(x).unwrap(), 1e-12);
            }
        }
    }
}

#[test]
fn bad_points_and_outcomes_are_refused() {
    let mut rng = random(9);
    let prior = prior(KernelFamily::Rbf, &mut rng);
    let mut data = dataset(10, &prior.kernel, &mut rng);
    let good = point(&prior.kernel, &mut rng);
    let short = Point(good.0[..6].to_vec());
    let with = |value: f64| {
        let mut bad = good.clone();
        bad.0[3] = value;
        bad
    };
    let is_dimension =
        |error: Error| matches!(error, Error::WrongDimension { expected: 7, found: 6, .. });
    let is_point = |error: Error| matches!(error, Error::InvalidPoint { coordinate: 3, .. });
    let is_outcome = |error: Error| matches!(error, Error::InvalidOutcome { .. });

    let before = data.clone();
    assert!(is_dimension(data.push(&short, 1.0).unwrap_err()));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(is_point(data.push(&with(bad), 1.0).unwrap_err()));
        assert!(is_outcome(data.push(&good, bad).unwrap_err()));
    }
    assert_eq!(data, before, "a refused observation must leave nothing behind");

    let mut posterior = prior.condition(&data).unwrap();
    let untouched = posterior.clone();
    assert!(is_dimension(posterior.append(&short, 1.0).unwrap_err()));
    assert!(is_dimension(posterior.joint(&short).unwrap_err()));
    assert!(is_dimension(posterior.component(0, &short).unwrap_err()));
    assert!(is_dimension(posterior.joint_gradient(&short).unwrap_err()));
    assert!(is_dimension(posterior.with_pending(std::slice::from_ref(&short)).unwrap_err()));
    assert!(is_dimension(posterior.joint_many(&[good.clone(), short]).unwrap_err()));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(is_point(posterior.append(&with(bad), 1.0).unwrap_err()));
        assert!(is_outcome(posterior.append(&good, bad).unwrap_err()));
        assert!(is_outcome(posterior.set_outcomes(&[bad; 10]).unwrap_err()));
        assert!(is_point(posterior.joint(&with(bad)).unwrap_err()));
        assert!(is_point(posterior.component(0, &with(bad)).unwrap_err()));
        assert!(is_point(posterior.joint_gradient(&with(bad)).unwrap_err()));
        assert!(is_point(posterior.with_pending(&[with(bad)]).unwrap_err()));
    }
    assert!(matches!(posterior.component(7, &good), Err(Error::InvalidStructure { .. })));
    // After all this the posterior is as it was, and still works.
    assert_same_posterior(&posterior, &untouched, std::slice::from_ref(&good), 0.0);
    posterior.append(&good, 1.0).unwrap();
    assert_eq!(posterior.len(), 11);
}

#[test]
fn bad_priors_are_refused() {
    let mut rng = random(10);
    let good = prior(KernelFamily::Rbf, &mut rng);
    let data = dataset(5, &good.kernel, &mut rng);
    assert!(good.condition(&data).is_ok());

    let mut beyond = good.clone();
    beyond.components.push(component(&[2, 7]));
    assert!(matches!(beyond.condition(&data), Err(Error::InvalidStructure { .. })));

    for noise_std in [-0.1, f64::NAN, f64::INFINITY] {
        let bad = AdditivePrior { noise_std, ..good.clone() };
        let refused = bad.condition(&data).unwrap_err();
        assert!(matches!(refused, Error::InvalidSetting { setting: "noise_std", .. }), "{refused}");
        assert!(StructureScore::new(&good.kernel, noise_std, &data).is_err());
    }
    for parameter in [0.0, -1.0, f64::NAN] {
        let mut bad = good.clone();
        bad.kernel.lengthscales[6] = parameter;
        let refused = bad.condition(&data).unwrap_err();
        assert!(matches!(refused, Error::InvalidSetting { setting: "lengthscales", .. }));
        assert!(StructureScore::new(&bad.kernel, 0.1, &data).is_err());
    }
    let narrow = Dataset::empty(6);
    let refused = good.condition(&narrow).unwrap_err();
    assert!(matches!(refused, Error::WrongDimension { expected: 7, found: 6, .. }), "{refused}");
    let refused = StructureScore::new(&good.kernel, 0.1, &narrow).unwrap_err();
    assert!(matches!(refused, Error::WrongDimension { expected: 7, found: 6, .. }), "{refused}");

    let mut score = StructureScore::new(&good.kernel, 0.1, &data).unwrap();
    let refused = score.log_likelihood(vec![component(&[0]), component(&[2, 7])]).unwrap_err();
    assert!(matches!(refused, Error::InvalidStructure { .. }), "{refused}");
    // A refused candidate does not spoil the next one.
    let want = AdditivePrior { noise_std: 0.1, ..good.clone() }.condition(&data).unwrap();
    let got = score.log_likelihood(good.components.clone()).unwrap();
    assert_close(got, want.log_likelihood(), 1e-12);
}

#[test]
fn duplicates_without_noise_get_by_with_jitter() {
    for family in FAMILIES {
        let mut rng = random(11);
        let mut prior = prior(family, &mut rng);
        prior.noise_std = 0.0;
        let distinct = dataset(12, &prior.kernel, &mut rng);
        let mut all = distinct.clone();
        let mut grown = prior.condition(&distinct).unwrap();
        // The first twice more with the same outcome; the second once more, contradicting itself by 1.
        for (a, contradiction) in [(0, 0.0), (0, 0.0), (1, 1.0)] {
            let (x, y) = (distinct.point(a), distinct.outcomes()[a] + contradiction);
            all.push(&x, y).unwrap();
            grown.append(&x, y).unwrap();
        }
        // The factor with jitter goes on growing.
        let fresh_point = point(&prior.kernel, &mut rng);
        all.push(&fresh_point, 0.5).unwrap();
        grown.append(&fresh_point, 0.5).unwrap();

        for posterior in [prior.condition(&all).unwrap(), grown] {
            assert_eq!(posterior.len(), 16);
            assert!(posterior.log_likelihood().is_finite());
            let gradient = posterior.log_likelihood_gradient();
            assert!(gradient.log_lengthscales.iter().all(|g| g.is_finite()));
            assert!(gradient.log_scales.iter().all(|g| g.is_finite()));
            // Without noise all outcomes are met, and of two that contradict each other the middle.
            for a in 0..16 {
                let got = posterior.joint(&all.point(a)).unwrap();
                let want = match a {
                    1 | 14 => distinct.outcomes()[1] + 0.5,
                    _ => all.outcomes()[a],
                };
                assert!((got.mean - want).abs() < 1e-3, "{a}: {got:?}, want {want}");
                assert!((0.0..1e-3).contains(&got.variance), "{a}: {got:?}");
            }
            for _ in 0..10 {
                let x = point(&prior.kernel, &mut rng);
                let got = posterior.joint(&x).unwrap();
                assert!(got.mean.is_finite() && got.mean.abs() < 100.0, "{got:?}");
                assert!(got.variance >= 0.0 && got.variance <= prior.variance(&x));
            }
        }
    }
}

#[test]
fn without_data_the_posterior_is_the_prior() {
    for family in FAMILIES {
        let mut rng = random(12);
        let prior = prior(family, &mut rng);
        let posterior = prior.condition(&Dataset::empty(DIMENSION)).unwrap();
        assert!(posterior.is_empty());
        assert_eq!(posterior.log_likelihood(), 0.0);
        let zero = LikelihoodGradient {
            log_lengthscales: vec![0.0; DIMENSION],
            log_scales: vec![0.0; DIMENSION],
            log_noise_std: 0.0,
            log_pair_weights: Vec::new(),
            log_common_std: None,
            log_stretches: Vec::new(),
        };
        assert_eq!(posterior.log_likelihood_gradient(), zero);
        let x = point(&prior.kernel, &mut rng);
        let mut sum = 0.0;
        for (k, g) in prior.components.iter().enumerate() {
            let variance = kappa(&prior.kernel, g, &x, &x);
            sum += variance;
            assert_same(posterior.component(k, &x).unwrap(), Normal { mean: 0.0, variance }, 1e-14);
        }
        assert_same(posterior.joint(&x).unwrap(), Normal { mean: 0.0, variance: sum }, 1e-14);
        assert_close(prior.variance(&x), sum, 1e-14);
        let gradient = posterior.joint_gradient(&x).unwrap();
        assert_eq!(gradient.mean_gradient, vec![0.0; DIMENSION]);
        assert_eq!(gradient.variance_gradient, vec![0.0; DIMENSION]);
    }
}

/// The bits of everything that is computed in parallel.
fn bits(prior: &AdditivePrior, data: &Dataset, grid: &Grid) -> Vec<u64> {
    let posterior = prior.condition(data).unwrap();
    let gradient = posterior.log_likelihood_gradient();
    let tables = posterior.tabulate(grid).unwrap();
    let joint = posterior.joint(&data.point(0)).unwrap();
    [joint.mean, joint.variance, posterior.log_likelihood(), gradient.log_noise_std]
        .into_iter()
        .chain(gradient.log_lengthscales)
        .chain(gradient.log_scales)
        .chain(tables.means.into_iter().flatten())
        .chain(tables.variances.into_iter().flatten())
        .map(f64::to_bits)
        .collect()
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let (n, dimension) = (320, 32);
    for family in FAMILIES {
        let mut rng = random(13);
        let mut kernel = Kernel::uniform(family, dimension, 1.0, 1.0);
        kernel.lengthscales.fill_with(|| rng.random_range(0.1..0.8));
        kernel.scales.fill_with(|| rng.random_range(0.3..1.5));
        let mut components: Vec<_> = (1..dimension)
            .map(|j| Component::pair(Edge::new(rng.random_range(0..j), j).unwrap()))
            .collect();
        components.push(Component::single(0));
        // Below this the work is not shared out, and nothing would be tested.
        assert!(n * n * components.len() > 1 << 21);
        let data = dataset(n, &kernel, &mut rng);
        let axes = (0..dimension).map(|_| (0..4).map(|_| rng.random()).collect()).collect();
        let grid = Grid::new(axes).unwrap();
        let prior = AdditivePrior {
            components,
            kernel,
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        };
        let with_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                assert_eq!(rayon::current_num_threads(), threads);
                bits(&prior, &data, &grid)
            })
        };
        let one = with_threads(1);
        assert!(one.len() > 128 * 4, "less than four blocks of a table");
        for threads in [2, 3] {
            assert!(one == with_threads(threads), "{threads} threads change the result");
        }
    }
}

#[test]
fn covariances_made_from_factors_give_the_posterior() {
    let mut rng = random(77);
    for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
        let prior = prior(family, &mut rng);
        let data = dataset(150, &prior.kernel, &mut rng);
        let posterior = prior.condition(&data).unwrap();
        // More columns than are solved for at once.
        let points: Vec<Point> = (0..200).map(|_| point(&prior.kernel, &mut rng)).collect();
        let mut columns = Vec::new();
        for x in &points {
            let mut column = vec![0.0; 150];
            for g in &prior.components {
                let mut product = vec![prior.kernel.amplitude(g); 150];
                for &i in g.variables() {
                    let factors = posterior.factors(i, x.0[i]).unwrap();
                    product
                        .iter_mut()
                        .zip(factors)
                        .for_each(|(product, factor)| *product *= factor);
                }
                column.iter_mut().zip(product).for_each(|(sum, product)| *sum += product);
            }
            columns.extend(column);
        }
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let means: Vec<f64> =
            columns.chunks(150).map(|column| dot(column, posterior.weights())).collect();
        // A rest that is no column stays as it is.
        columns.push(3.5);
        posterior.whiten(&mut columns);
        assert_eq!(columns.pop(), Some(3.5));
        for ((x, mean), column) in points.iter().zip(means).zip(columns.chunks(150)) {
            let variance = prior.variance(x) - dot(column, column);
            assert_same(Normal { mean, variance }, posterior.joint(x).unwrap(), 1e-9);
        }
        assert!(posterior.factors(prior.kernel.dimension(), 0.5).is_none());

        // Leaving out the last outcome is not having seen it.
        let mut without = Dataset::empty(data.dimension());
        for a in 0..149 {
            without.push(&data.point(a), data.outcomes()[a]).unwrap();
        }
        let left_out = prior.condition(&without).unwrap().joint(&data.point(149)).unwrap();
        let precision = posterior.precisions()[149];
        assert_close(1.0 / precision, left_out.variance + prior.noise_std.powi(2), 1e-7);
        let residual = data.outcomes()[149] - left_out.mean;
        assert_close(posterior.weights()[149] / precision, residual, 1e-7);
    }
}
