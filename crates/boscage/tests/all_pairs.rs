//! All pairs, a constant and what all variables do alike against their formulas, and gradients against differences.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use boscage::additive_gp::{AdditivePrior, Dataset};
use boscage::all_pairs::AllPairs;
use boscage::common_effect::SameChoices;
use boscage::graph::Component;
use boscage::kernel::{Kernel, KernelFamily, Metric};
use boscage::stream::Purpose;
use boscage::{Error, Parameter, Point, Space, Stream};

const FAMILIES: [KernelFamily; 2] = [KernelFamily::Rbf, KernelFamily::Matern52];

/// Three numeric variables and two categorical ones with the same choices: alone, one joint component besides, and all pairs.
fn prior(family: KernelFamily) -> AdditivePrior {
    let mut kernel = Kernel::uniform(family, 5, 0.3, 0.5);
    kernel.lengthscales = vec![0.2, 0.5, 0.9, 0.7, 0.4];
    kernel.scales = vec![0.4, 0.1, 0.3, 0.2, 0.3];
    kernel.metrics[3..].fill(Metric::Categorical);
    kernel.same_choices = vec![SameChoices { variables: vec![3, 4], choices: 3 }];
    let mut components: Vec<Component> = (0..5).map(Component::single).collect();
    components.push(Component::new(vec![0, 2]).unwrap());
    let all_pairs = Some(AllPairs { weights: vec![0.3, 0.5, 0.1, 0.4, 0.2] });
    AdditivePrior { components, kernel, noise_std: 0.2, all_pairs, constant: 0.8, common_std: 0.6 }
}

/// That, and one component of all variables with a constant and no pairs: a plain GP. Both also with stretched ranges.
fn priors(family: KernelFamily) -> [AdditivePrior; 4] {
    let with_pairs = prior(family);
    let components = vec![Component::new(vec![0, 1, 2, 3, 4]).unwrap()];
    let plain = AdditivePrior { components, all_pairs: None, constant: 10.0, ..with_pairs.clone() };
    let [mut stretched, mut plain_stretched] = [with_pairs.clone(), plain.clone()];
    stretched.kernel.stretches = vec![300.0, 0.05, 1.0, 1.0, 7.0];
    plain_stretched.kernel.stretches = vec![0.2, 5.0, 40.0, 2.0, 1.0];
    [with_pairs, plain, stretched, plain_stretched]
}

fn point(a: usize) -> Point {
    let space = Space::unit_cube(5).unwrap();
    let mut point = space.sample(&mut Stream::new(7, a as u64).generator(Purpose::Problem));
    point.0[3] = (a % 3) as f64 / 2.0;
    point.0[4] = (a * a % 3) as f64 / 2.0;
    point
}

fn outcome(a: usize) -> f64 {
    let x = point(a).0;
    (4.0 * x[0]).sin() + x[0] * x[1] - x[3] + 0.1 * (a as f64).cos()
}

fn data(n: usize) -> Dataset {
    let mut data = Dataset::empty(5);
    for a in 0..n {
        data.push(&point(a), outcome(a)).unwrap();
    }
    data
}

/// The kernel of the whole sum by its formula.
fn covariance(prior: &AdditivePrior, x: &Point, other: &Point) -> f64 {
    let kernel = Kernel { stretches: Vec::new(), ..prior.kernel.clone() };
    let seen = |x: &Point| -> Vec<f64> {
        let through = |(i, &x): (usize, &f64)| match prior.kernel.stretches.get(i) {
            Some(&r) if kernel.metrics[i] == Metric::Numeric && r != 1.0 => {
                (1.0 + (r - 1.0) * x).ln() / r.ln()
            }
            _ => x,
        };
        x.0.iter().enumerate().map(through).collect()
    };
    let of = |component: &Component| kernel.value(component, &seen(x), &seen(other));
    // A factor is the kernel of a variable alone, without its scale.
    let e = |i: usize| of(&Component::single(i)) / kernel.scales[i];
    let mut sum = prior.constant + prior.components.iter().map(of).sum::<f64>();
    if let Some(all_pairs) = &prior.all_pairs {
        for i in 0..5 {
            for j in 0..i {
                sum += all_pairs.weights[i] * all_pairs.weights[j] * e(i) * e(j);
            }
        }
    }
    for degree in 0..4 {
        let alike = |x: &Point| -> f64 { (0..3).map(|i| shifted_legendre(x.0[i])[degree]).sum() };
        // Three variables are ordered.
        sum += prior.common_std.powi(2) * alike(x) * alike(other) / 3.0;
    }
    // Two have the same three choices: 1 where they are equal, −½ elsewhere, and 4 s² for all of it.
    for i in 3..5 {
        for j in 3..5 {
            let alike = if x.0[i] == other.0[j] { 1.0 } else { -0.5 };
            sum += 4.0 * prior.common_std.powi(2) * alike / 2.0;
        }
    }
    sum
}

/// Legendre's polynomials over 0 to 1, with variance 1.
fn shifted_legendre(x: f64) -> [f64; 4] {
    [
        3.0_f64.sqrt() * (2.0 * x - 1.0),
        5.0_f64.sqrt() * (6.0 * x.powi(2) - 6.0 * x + 1.0),
        7.0_f64.sqrt() * (20.0 * x.powi(3) - 30.0 * x.powi(2) + 12.0 * x - 1.0),
        3.0 * (70.0 * x.powi(4) - 140.0 * x.powi(3) + 90.0 * x.powi(2) - 20.0 * x + 1.0),
    ]
}

/// Solves Ax = b for a symmetric A by elimination, and gives log det A.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> (Vec<f64>, f64) {
    let n = b.len();
    let mut log_determinant = 0.0;
    for k in 0..n {
        log_determinant += a[k][k].ln();
        for i in k + 1..n {
            let by = a[i][k] / a[k][k];
            let row = a[k].clone();
            a[i].iter_mut().zip(&row).for_each(|(value, above)| *value -= by * above);
            b[i] -= by * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    (b, log_determinant)
}

fn matrix(prior: &AdditivePrior, n: usize) -> Vec<Vec<f64>> {
    let noise = |a: usize, b: usize| if a == b { prior.noise_std.powi(2) } else { 0.0 };
    let row =
        |a: usize| (0..n).map(|b| covariance(prior, &point(a), &point(b)) + noise(a, b)).collect();
    (0..n).map(row).collect()
}

#[track_caller]
fn close(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance * (1.0 + wanted.abs()), "{found} for {wanted}");
}

#[test]
fn posterior_and_likelihood_are_those_of_the_formula() {
    for prior in FAMILIES.into_iter().flat_map(priors) {
        // More observations than a block of columns, and fewer.
        for n in [1, 5, 21] {
            let y: Vec<f64> = (0..n).map(outcome).collect();
            let (alpha, log_determinant) = solve(matrix(&prior, n), y.clone());
            let fit: f64 = y.iter().zip(&alpha).map(|(y, alpha)| y * alpha).sum();
            let log_2_pi = (2.0 * std::f64::consts::PI).ln();
            let want = -0.5 * (fit + log_determinant + n as f64 * log_2_pi);
            let posterior = prior.condition(&data(n)).unwrap();
            close(posterior.log_likelihood(), want, 1e-10);
            let others: Vec<Point> = (100..105).map(point).collect();
            let many = posterior.joint_many(&others).unwrap();
            for (x, of_many) in others.iter().zip(many) {
                let k: Vec<f64> = (0..n).map(|a| covariance(&prior, &point(a), x)).collect();
                let mean: f64 = k.iter().zip(&alpha).map(|(k, alpha)| k * alpha).sum();
                let told = solve(matrix(&prior, n), k.clone()).0;
                let told: f64 = k.iter().zip(&told).map(|(k, told)| k * told).sum();
                let found = posterior.joint(x).unwrap();
                close(found.mean, mean, 1e-10);
                close(found.variance, covariance(&prior, x, x) - told, 1e-9);
                close(of_many.mean, mean, 1e-10);
                close(of_many.variance, found.variance, 1e-9);
            }
            close(prior.variance(&others[0]), covariance(&prior, &others[0], &others[0]), 1e-13);
        }
    }
}

#[test]
fn appended_observations_are_as_good_as_given_ones() {
    for prior in FAMILIES.into_iter().flat_map(priors) {
        let whole = prior.condition(&data(21)).unwrap();
        let mut grown = prior.condition(&data(4)).unwrap();
        for a in 4..21 {
            grown.append(&point(a), outcome(a)).unwrap();
        }
        close(grown.log_likelihood(), whole.log_likelihood(), 1e-10);
        for a in 200..205 {
            let (found, wanted) = (grown.joint(&point(a)), whole.joint(&point(a)));
            let (found, wanted) = (found.unwrap(), wanted.unwrap());
            close(found.mean, wanted.mean, 1e-9);
            close(found.variance, wanted.variance, 1e-9);
        }
    }
}

#[test]
fn gradients_are_differences() {
    let h = 1e-5;
    for prior in FAMILIES.into_iter().flat_map(priors) {
        let rho = |change: &dyn Fn(&mut AdditivePrior, f64), by: f64| {
            let mut prior = prior.clone();
            change(&mut prior, by.exp());
            prior.condition(&data(21)).unwrap().log_likelihood()
        };
        let slope = |change: &dyn Fn(&mut AdditivePrior, f64)| {
            (rho(change, h) - rho(change, -h)) / (2.0 * h)
        };
        let posterior = prior.condition(&data(21)).unwrap();
        let gradient = posterior.log_likelihood_gradient();
        let weights = prior.all_pairs.as_ref().map_or(0, |pairs| pairs.weights.len());
        assert_eq!(gradient.log_pair_weights.len(), weights);
        for i in 0..4 {
            let lengthscale = slope(&|prior, by| prior.kernel.lengthscales[i] *= by);
            close(gradient.log_lengthscales[i], lengthscale, 1e-6);
            close(gradient.log_scales[i], slope(&|prior, by| prior.kernel.scales[i] *= by), 1e-6);
        }
        assert_eq!(gradient.log_stretches.len(), prior.kernel.stretches.len());
        for (i, &found) in gradient.log_stretches.iter().enumerate() {
            close(found, slope(&|prior, by| prior.kernel.stretches[i] *= by), 1e-6);
            assert_eq!(found == 0.0, i > 2, "categories have no range to stretch");
        }
        for (i, &found) in gradient.log_pair_weights.iter().enumerate() {
            let weight = |prior: &mut AdditivePrior, by: f64| {
                prior.all_pairs.as_mut().unwrap().weights[i] *= by;
            };
            close(found, slope(&weight), 1e-6);
        }
        let common = slope(&|prior, by| prior.common_std *= by);
        close(gradient.log_common_std.unwrap(), common, 1e-6);
        close(gradient.log_noise_std, slope(&|prior, by| prior.noise_std *= by), 1e-6);
        for a in 300..305 {
            let x = point(a);
            let joint = posterior.joint_gradient(&x).unwrap();
            for d in 0..3 {
                let at = |by: f64| {
                    let mut x = x.clone();
                    x.0[d] += by;
                    posterior.joint(&x).unwrap()
                };
                let (up, down) = (at(h), at(-h));
                close(joint.mean_gradient[d], (up.mean - down.mean) / (2.0 * h), 1e-6);
                close(joint.variance_gradient[d], (up.variance - down.variance) / (2.0 * h), 1e-6);
            }
            assert_eq!((joint.mean_gradient[3], joint.variance_gradient[3]), (0.0, 0.0));
        }
    }
}

/// A constant of great variance is one that is learned: the posterior mean is what generalised least squares makes of it.
#[test]
fn a_constant_of_great_variance_is_the_one_that_fits_best() {
    let [_, plain, ..] = priors(KernelFamily::Matern52);
    let n = 12;
    let without = AdditivePrior { constant: 0.0, ..plain.clone() };
    let y: Vec<f64> = (0..n).map(|a| outcome(a) - 7.0).collect();
    let by_one = solve(matrix(&without, n), vec![1.0; n]).0;
    let fitted =
        by_one.iter().zip(&y).map(|(w, y)| w * y).sum::<f64>() / by_one.iter().sum::<f64>();
    let around = |mean: f64| -> Dataset {
        let mut data = Dataset::empty(5);
        y.iter().enumerate().for_each(|(a, y)| data.push(&point(a), y - mean).unwrap());
        data
    };
    let great = AdditivePrior { constant: 1e7, ..plain.clone() }.condition(&around(0.0)).unwrap();
    let centred = without.condition(&around(fitted)).unwrap();
    for a in 400..405 {
        let (found, wanted) = (great.joint(&point(a)).unwrap(), centred.joint(&point(a)).unwrap());
        close(found.mean, fitted + wanted.mean, 1e-5);
        // What is not known of the constant is not known of the point.
        assert!(found.variance > wanted.variance);
    }
    // Without one, outcomes that are all far from 0 are taken for a function that comes back to 0.
    let far = without.condition(&around(0.0)).unwrap().joint(&point(400)).unwrap();
    assert!(far.mean > great.joint(&point(400)).unwrap().mean + 1.0, "{far:?}");
}

/// What all variables do alike is found from fewer observations than there are variables, and what they do not is not.
#[test]
fn what_all_variables_do_alike_is_known_before_what_each_does() {
    const DIMENSION: usize = 30;
    let space = Space::unit_cube(DIMENSION).unwrap();
    let sample = |a: u64| space.sample(&mut Stream::new(9, a).generator(Purpose::Problem));
    let kernel = Kernel::uniform(KernelFamily::Matern52, DIMENSION, 0.5, 1.0 / DIMENSION as f64);
    let components = (0..DIMENSION).map(Component::single).collect();
    let prior = AdditivePrior {
        components,
        kernel,
        noise_std: 0.01,
        all_pairs: None,
        constant: 1.0,
        common_std: 0.3,
    };
    // The share of the variance at other points that is predicted from 15 observations.
    let predicted = |prior: &AdditivePrior, f: &dyn Fn(usize, f64) -> f64| {
        let value = |x: &Point| x.0.iter().enumerate().map(|(i, &x)| f(i, x)).sum::<f64>();
        let mut data = Dataset::empty(DIMENSION);
        for a in 0..15 {
            data.push(&sample(a), value(&sample(a))).unwrap();
        }
        let posterior = prior.condition(&data).unwrap();
        let others: Vec<Point> = (100..300).map(sample).collect();
        let mean = others.iter().map(value).sum::<f64>() / 200.0;
        let left = |x: &Point| (posterior.joint(x).unwrap().mean - value(x)).powi(2);
        let all = |x: &Point| (value(x) - mean).powi(2);
        1.0 - others.iter().map(left).sum::<f64>() / others.iter().map(all).sum::<f64>()
    };
    let without = AdditivePrior { common_std: 0.0, ..prior.clone() };
    let alike = |_: usize, x: f64| (x - 0.4).powi(2);
    let (with_it, without_it) = (predicted(&prior, &alike), predicted(&without, &alike));
    assert!(with_it > 0.85 && without_it < 0.2, "{with_it} {without_it}");
    // Half of the variables do the opposite: nothing is gained, and next to nothing lost.
    let opposite = |i: usize, x: f64| if i.is_multiple_of(2) { alike(i, x) } else { -alike(i, x) };
    let (with_it, without_it) = (predicted(&prior, &opposite), predicted(&without, &opposite));
    assert!((with_it - without_it).abs() < 0.1, "{with_it} {without_it}");
}

/// The same for choices: what one is worth wherever it is taken.
#[test]
fn what_choices_are_worth_wherever_they_are_taken_is_known_before_what_each_is() {
    const DIMENSION: usize = 20;
    let names = ["a", "b", "c", "d"];
    let parameter = |i| Parameter::categorical(format!("p{i}"), names);
    let space = Space::new((0..DIMENSION).map(parameter).collect()).unwrap();
    let sample = |a: u64| space.sample(&mut Stream::new(9, a).generator(Purpose::Problem));
    let mut kernel = Kernel::uniform(KernelFamily::Matern52, DIMENSION, 0.5, 0.005);
    kernel.metrics.fill(Metric::Categorical);
    kernel.same_choices = vec![SameChoices { variables: (0..DIMENSION).collect(), choices: 4 }];
    let components = (0..DIMENSION).map(Component::single).collect();
    let (all_pairs, constant) = (None, 1.0);
    let prior =
        AdditivePrior { components, kernel, noise_std: 0.01, all_pairs, constant, common_std: 0.3 };
    let worth = |x: &Point| x.0.iter().map(|x| [0.3, -0.4, 0.0, 0.2][(3.0 * x) as usize]).sum();
    let left = |prior: &AdditivePrior| {
        let mut data = Dataset::empty(DIMENSION);
        for a in 0..10 {
            data.push(&sample(a), worth(&sample(a))).unwrap();
        }
        let posterior = prior.condition(&data).unwrap();
        let others: Vec<Point> = (100..200).map(sample).collect();
        let square = |x: &Point| (posterior.joint(x).unwrap().mean - worth(x)).powi(2);
        let all: f64 = others.iter().map(|x| worth(x).powi(2)).sum();
        others.iter().map(square).sum::<f64>() / all
    };
    let (with_it, without_it) =
        (left(&prior), left(&AdditivePrior { common_std: 0.0, ..prior.clone() }));
    assert!(with_it < 0.05 && without_it > 0.5, "{with_it} {without_it}");
}

#[test]
fn choices_that_no_variable_can_have_are_refused() {
    let refused = |variables: &[usize], choices| {
        let mut prior = prior(KernelFamily::Rbf);
        let mut sets = vec![SameChoices { variables: variables.to_vec(), choices }];
        prior.kernel.same_choices.append(&mut sets);
        match prior.condition(&data(3)) {
            Err(Error::InvalidStructure { reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&[2], 3).contains("variable 2 has choices but is not categorical"));
    assert!(refused(&[9], 3).contains("variable 9 has choices but is not categorical"));
    assert!(refused(&[4], 3).contains("variable 4 has two sets of choices"));
    assert!(refused(&[4], 1).contains("with 1 choices"));
    assert!(refused(&[], 2).contains("variables [] with 2"));
}

#[test]
fn weights_that_make_no_kernel_are_refused() {
    let changed = |change: &dyn Fn(&mut AdditivePrior)| {
        let mut prior = prior(KernelFamily::Rbf);
        change(&mut prior);
        prior.condition(&data(3)).err()
    };
    let with = |weights: Vec<f64>, constant: f64| {
        changed(&|prior| {
            prior.all_pairs = Some(AllPairs { weights: weights.clone() });
            prior.constant = constant;
        })
    };
    let dimension = with(vec![0.1; 3], 0.0);
    assert!(matches!(dimension, Some(Error::WrongDimension { expected: 5, found: 3, .. })));
    for weight in [-0.1, f64::NAN, f64::INFINITY] {
        let refused = with(vec![0.1, weight, 0.1, 0.1, 0.1], 0.0);
        assert!(matches!(refused, Some(Error::InvalidSetting { setting: "all_pairs", .. })));
        let refused = with(vec![0.1; 5], weight);
        assert!(matches!(refused, Some(Error::InvalidSetting { setting: "constant", .. })));
        let refused = changed(&|prior| prior.common_std = weight);
        assert!(matches!(refused, Some(Error::InvalidSetting { setting: "common_std", .. })));
    }
    // No interaction at all is a kernel.
    assert!(with(vec![0.0; 5], 0.0).is_none());
}

#[test]
fn priors_survive_json_with_and_without_pairs() {
    let with = prior(KernelFamily::Matern52);
    let without = AdditivePrior { all_pairs: None, constant: 0.0, common_std: 0.0, ..with.clone() };
    for prior in [&with, &without] {
        let json = serde_json::to_string(prior).unwrap();
        assert_eq!(serde_json::from_str::<AdditivePrior>(&json).unwrap(), *prior);
    }
    let json = serde_json::to_string(&without).unwrap();
    for absent in ["all_pairs", "constant", "common_std"] {
        assert!(!json.contains(absent), "{json}");
    }
    // As it was stored before: the constant a part of all pairs.
    let mut before = serde_json::to_value(&with).unwrap();
    let constant = before.as_object_mut().unwrap().remove("constant").unwrap();
    before["all_pairs"]["constant"] = constant;
    assert_eq!(serde_json::from_value::<AdditivePrior>(before).unwrap(), with);
}
