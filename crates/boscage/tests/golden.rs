//! The additive Gaussian process against numbers from scikit-learn, NumPy and mpmath; with one component of all variables it is
//! a plain GP.
//!
//! The numbers and the scripts that made them are in `tests/golden`. They were computed from formulas that share no code
//! with this crate, so what agrees here agrees with the paper's definitions and not only with itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use boscage::additive_gp::{AdditivePosterior, AdditivePrior, Dataset, Normal};
use boscage::graph::Component;
use boscage::kernel::{Kernel, KernelFamily, Metric};
use boscage::message_passing::Grid;
use boscage::space::Point;
use serde_json::Value;

/// What every number must agree to, relative to max(1, |value|).
const TOLERANCE: f64 = 1e-8;

const FILES: [&str; 2] =
    [include_str!("golden/additive_gp.json"), include_str!("golden/plain_gp.json")];

fn cases() -> Vec<Value> {
    let cases = |file: &str| {
        let file: Value = serde_json::from_str(file).unwrap();
        let cases = file["cases"].as_array().unwrap().clone();
        // A file that lost its cases must not pass.
        assert!(cases.len() >= 8, "only {} cases", cases.len());
        cases
    };
    FILES.into_iter().flat_map(cases).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).iter().map(number).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn points(value: &Value) -> Vec<Point> {
    rows(value).into_iter().map(Point).collect()
}

fn prior(case: &Value) -> AdditivePrior {
    let family = match case["kernel"].as_str().unwrap() {
        "rbf" => KernelFamily::Rbf,
        "matern52" => KernelFamily::Matern52,
        other => panic!("unknown kernel {other}"),
    };
    let metrics = case["categorical"].as_array().unwrap().iter();
    let components = case["components"].as_array().unwrap().iter();
    AdditivePrior {
        components: components
            .map(|variables| {
                let variables = variables.as_array().unwrap().iter();
                Component::new(variables.map(|i| i.as_u64().unwrap() as usize).collect()).unwrap()
            })
            .collect(),
        kernel: Kernel {
            family,
            metrics: metrics
                .map(|c| if c.as_bool().unwrap() { Metric::Categorical } else { Metric::Numeric })
                .collect(),
            lengthscales: numbers(&case["lengthscales"]),
            scales: numbers(&case["scales"]),
            same_choices: Vec::new(),
            stretches: Vec::new(),
        },
        noise_std: number(&case["noise_std"]),
        all_pairs: None,
        constant: 0.0,
        common_std: 0.0,
    }
}

fn posterior(case: &Value) -> AdditivePosterior {
    let prior = prior(case);
    let mut data = Dataset::empty(prior.kernel.dimension());
    for (point, y) in points(&case["X"]).iter().zip(numbers(&case["y"])) {
        data.push(point, y).unwrap();
    }
    prior.condition(&data).unwrap()
}

/// Compares, and names the place on failure.
struct Check<'a> {
    case: &'a str,
    compared: usize,
}

impl Check<'_> {
    fn number(&mut self, what: &str, got: f64, want: f64) {
        self.compared += 1;
        // Written so that NaN fails.
        let close = (got - want).abs() <= TOLERANCE * want.abs().max(1.0);
        assert!(close, "{}, {what}: {got:e}, want {want:e}", self.case);
    }

    fn numbers(&mut self, what: &str, got: &[f64], want: &Value) {
        let want = numbers(want);
        assert_eq!(got.len(), want.len(), "{}, {what}", self.case);
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            self.number(&format!("{what}[{i}]"), *got, want);
        }
    }

    fn normals(&mut self, what: &str, got: &[Normal], want: &Value) {
        let pick = |f: fn(&Normal) -> f64| got.iter().map(f).collect::<Vec<f64>>();
        self.numbers(&format!("mean of {what}"), &pick(|n| n.mean), &want["mean"]);
        self.numbers(&format!("variance of {what}"), &pick(|n| n.variance), &want["variance"]);
    }
}

/// Runs the check on every case; each must compare something.
fn for_every_case(check: impl Fn(&Value, &mut Check<'_>)) {
    for case in cases() {
        let mut to = Check { case: case["name"].as_str().unwrap(), compared: 0 };
        check(&case, &mut to);
        assert!(to.compared > 0, "{}: nothing compared", to.case);
    }
}

#[test]
fn log_likelihood() {
    for_every_case(|case, to| {
        to.number("rho", posterior(case).log_likelihood(), number(&case["results"]["rho"]));
    });
}

#[test]
fn gradient_of_the_log_likelihood() {
    for_every_case(|case, to| {
        let got = posterior(case).log_likelihood_gradient();
        let want = &case["results"]["gradient"];
        to.numbers("∂ρ/∂log ℓ", &got.log_lengthscales, &want["log_lengthscales"]);
        to.numbers("∂ρ/∂log σ", &got.log_scales, &want["log_scales"]);
        to.number("∂ρ/∂log η", got.log_noise_std, number(&want["log_noise_std"]));
    });
}

#[test]
fn components_at_points() {
    for_every_case(|case, to| {
        let posterior = posterior(case);
        let points = points(&case["Xs"]);
        let want = case["results"]["components"].as_array().unwrap();
        assert_eq!(want.len(), posterior.prior().components.len());
        for (k, want) in want.iter().enumerate() {
            let got: Vec<_> = points.iter().map(|x| posterior.component(k, x).unwrap()).collect();
            to.normals(&format!("component {k}"), &got, want);
        }
    });
}

#[test]
fn whole_sum_at_points() {
    for_every_case(|case, to| {
        let posterior = posterior(case);
        let points = points(&case["Xs"]);
        let got: Vec<_> = points.iter().map(|x| posterior.joint(x).unwrap()).collect();
        to.normals("the sum", &got, &case["results"]["joint"]);
        // The gradient comes with the same two numbers, by another way through the factor.
        let got: Vec<_> =
            points.iter().map(|x| posterior.joint_gradient(x).unwrap().normal).collect();
        to.normals("the sum with gradient", &got, &case["results"]["joint"]);
    });
}

#[test]
fn point_gradients() {
    let mut with_gradient = 0;
    for case in cases() {
        let want = &case["results"]["test_point_gradient"];
        if want.is_null() {
            continue;
        }
        with_gradient += 1;
        let mut to = Check { case: case["name"].as_str().unwrap(), compared: 0 };
        let point = Point(numbers(&want["point"]));
        let got = posterior(&case).joint_gradient(&point).unwrap();
        to.numbers("∂mean/∂x", &got.mean_gradient, &want["joint_mean"]);
        to.numbers("∂variance/∂x", &got.variance_gradient, &want["joint_variance"]);
    }
    // RBF and Matérn.
    assert!(with_gradient >= 2, "only {with_gradient} cases with point gradients");
}

#[test]
fn components_on_grids_of_one_point() {
    for_every_case(|case, to| {
        let posterior = posterior(case);
        let components = posterior.prior().components.len();
        let mut got = vec![Vec::new(); components];
        for point in rows(&case["Xs"]) {
            let grid = Grid::new(point.into_iter().map(|x| vec![x]).collect()).unwrap();
            let tables = posterior.tabulate(&grid).unwrap();
            assert_eq!((tables.means.len(), tables.variances.len()), (components, components));
            for (k, got) in got.iter_mut().enumerate() {
                assert_eq!((tables.means[k].len(), tables.variances[k].len()), (1, 1));
                got.push(Normal { mean: tables.means[k][0], variance: tables.variances[k][0] });
            }
        }
        for (k, got) in got.iter().enumerate() {
            let want = &case["results"]["components"][k];
            to.normals(&format!("component {k} on a grid"), got, want);
        }
    });
}
