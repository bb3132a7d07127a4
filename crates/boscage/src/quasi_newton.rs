//! Minimisation in a box with gradients: L-BFGS-B, behind one function.
//!
//! Used by kernel learning (the paper's "gradient-based approach") and to polish points. This is the only file that knows
//! the optimisation crate, whose L-BFGS-B follows SciPy's step for step.
//!
//! Cost: a few vector operations for each evaluation of the function.

use std::cell::RefCell;

use basin::{
    BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, Executor,
    FirstOrderState, Gradient, Lbfgsb,
};

/// The relative gain at which SciPy ends.
pub(crate) const TOLERANCE: f64 = 2.2e-9;

/// The best point that was found.
#[derive(Debug, Clone)]
pub(crate) struct Minimum {
    pub(crate) point: Vec<f64>,
    pub(crate) value: f64,
    /// How often the function was evaluated.
    pub(crate) evaluations: usize,
}

/// The evaluations are used up: the only reason to stop from inside the function.
#[derive(Debug)]
struct BudgetUsed;

impl std::fmt::Display for BudgetUsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the budget of evaluations is used up")
    }
}

impl std::error::Error for BudgetUsed {}

struct Objective<'a, F> {
    lower: &'a Vec<f64>,
    upper: &'a Vec<f64>,
    max_evaluations: usize,
    state: &'a RefCell<State<F>>,
}

struct State<F> {
    function: F,
    best: Minimum,
    /// The latest evaluation: the solver may ask for cost and gradient of a point one after the other.
    latest: (Vec<f64>, f64, Vec<f64>),
}

impl<F: FnMut(&[f64]) -> (f64, Vec<f64>)> Objective<'_, F> {
    fn evaluate(&self, x: &[f64]) -> Result<(f64, Vec<f64>), BudgetUsed> {
        let mut state = self.state.borrow_mut();
        if state.latest.0 != x {
            if state.best.evaluations >= self.max_evaluations {
                return Err(BudgetUsed);
            }
            state.best.evaluations += 1;
            let (value, gradient) = (state.function)(x);
            if value < state.best.value {
                state.best.value = value;
                state.best.point = x.to_vec();
            }
            state.latest = (x.to_vec(), value, gradient);
        }
        Ok((state.latest.1, state.latest.2.clone()))
    }
}

impl<F: FnMut(&[f64]) -> (f64, Vec<f64>)> CostFunction for Objective<'_, F> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = BudgetUsed;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, BudgetUsed> {
        Ok(self.evaluate(x)?.0)
    }
}

impl<F: FnMut(&[f64]) -> (f64, Vec<f64>)> Gradient for Objective<'_, F> {
    type Gradient = Vec<f64>;

    fn gradient(&self, x: &Vec<f64>) -> Result<Vec<f64>, BudgetUsed> {
        Ok(self.evaluate(x)?.1)
    }

    fn cost_and_gradient(&self, x: &Vec<f64>) -> Result<(f64, Vec<f64>), BudgetUsed> {
        self.evaluate(x)
    }
}

impl<F> Constraints for Objective<'_, F> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(self.lower), Some(self.upper)))
    }
}

/// Minimises `function` (value and gradient) in the box from `start`, with at most `max_evaluations` evaluations.
///
/// Always returns the best point evaluated, however the solver ended; points where the function is not finite are never
/// the best unless there is no other.
pub(crate) fn minimize_in_box(
    function: impl FnMut(&[f64]) -> (f64, Vec<f64>),
    start: &[f64],
    lower: &[f64],
    upper: &[f64],
    max_evaluations: usize,
) -> Minimum {
    minimize_in_box_to(TOLERANCE, function, start, lower, upper, max_evaluations)
}

/// [`minimize_in_box`], until a step lessens the value by less than this share of it (of 1, if it is smaller).
pub(crate) fn minimize_in_box_to(
    tolerance: f64,
    function: impl FnMut(&[f64]) -> (f64, Vec<f64>),
    start: &[f64],
    lower: &[f64],
    upper: &[f64],
    max_evaluations: usize,
) -> Minimum {
    let start: Vec<f64> = start
        .iter()
        .zip(lower.iter().zip(upper))
        .map(|(&x, (&low, &high))| x.clamp(low, high))
        .collect();
    let (lower, upper) = (lower.to_vec(), upper.to_vec());
    let state = RefCell::new(State {
        function,
        best: Minimum { point: start.clone(), value: f64::INFINITY, evaluations: 0 },
        latest: (Vec::new(), f64::NAN, Vec::new()),
    });
    let objective = Objective { lower: &lower, upper: &upper, max_evaluations, state: &state };
    let solver = Lbfgsb::new()
        .with_m_capacity(10)
        .with_absolute_projected_gradient_tolerance(1e-5)
        .with_relative_cost_reduction_tolerance(tolerance);
    // How it ended does not matter: what was seen is what counts.
    let _ = Executor::new(objective, solver, FirstOrderState::new(start))
        .max_iter(max_evaluations as u64)
        .run();
    state.into_inner().best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classical first driver of L-BFGS-B: a chained Rosenbrock function in 25 dimensions.
    fn rosenbrock(x: &[f64]) -> (f64, Vec<f64>) {
        let mut gradient = vec![0.0; x.len()];
        let mut value = 0.25 * (x[0] - 1.0).powi(2);
        gradient[0] = 2.0 * (x[0] - 1.0);
        for i in 1..x.len() {
            let t = x[i] - x[i - 1] * x[i - 1];
            value += t * t;
            gradient[i] += 8.0 * t;
            gradient[i - 1] -= 16.0 * x[i - 1] * t;
        }
        (4.0 * value, gradient)
    }

    fn rosenbrock_box() -> (Vec<f64>, Vec<f64>) {
        let lower = (0..25).map(|i| if i % 2 == 0 { 1.0 } else { -100.0 }).collect();
        (lower, vec![100.0; 25])
    }

    #[test]
    fn rosenbrock_takes_scipys_path() {
        let (lower, upper) = rosenbrock_box();
        let minimum = minimize_in_box(rosenbrock, &[3.0; 25], &lower, &upper, 200);
        // scipy.optimize.minimize(method="L-BFGS-B") with its default tolerances, memory 10: 28 evaluations.
        assert_eq!(minimum.evaluations, 28);
        assert!((minimum.value / 6.689_966_906e-10 - 1.0).abs() < 1e-9, "{:e}", minimum.value);
        // Along the chain errors double from one coordinate to the next, so the last ones say little.
        for x in &minimum.point[..10] {
            assert!((x - 1.0).abs() < 1e-3, "{x}");
        }
    }

    /// ½ Σ w_i (x_i − c_i)².
    fn bowl(center: &[f64]) -> impl FnMut(&[f64]) -> (f64, Vec<f64>) {
        let center = center.to_vec();
        move |x| {
            let mut value = 0.0;
            let slope = |(i, (x, c)): (usize, (&f64, &f64))| {
                let weight = (i + 1) as f64;
                value += 0.5 * weight * (x - c) * (x - c);
                weight * (x - c)
            };
            let gradient = x.iter().zip(&center).enumerate().map(slope).collect();
            (value, gradient)
        }
    }

    #[test]
    fn bounds_are_active_where_the_minimum_lies_outside() {
        let center = [-2.0, 0.3, 5.0, 0.9];
        let (lower, upper) = ([0.0, 0.0, -1.0, 0.9], [1.0, 1.0, 1.0, 0.9]);
        let mut outside = 0;
        let mut f = bowl(&center);
        let minimum = minimize_in_box(
            |x| {
                outside += usize::from((0..4).any(|i| !(lower[i]..=upper[i]).contains(&x[i])));
                f(x)
            },
            &[0.5, 0.9, 7.0, -3.0], // partly outside of the box itself
            &lower,
            &upper,
            100,
        );
        assert_eq!(outside, 0, "evaluated outside of the box");
        // On the bounds to the bit.
        assert_eq!((minimum.point[0], minimum.point[2], minimum.point[3]), (0.0, 1.0, 0.9));
        assert!((minimum.point[1] - 0.3).abs() < 1e-5);
        assert!((minimum.value - (0.5 * 4.0 + 1.5 * 16.0)).abs() < 1e-9);
    }

    #[test]
    fn the_budget_is_never_exceeded() {
        let (lower, upper) = rosenbrock_box();
        let mut last = f64::INFINITY;
        for budget in 0..40 {
            let mut calls = 0;
            let mut best = f64::INFINITY;
            let minimum = minimize_in_box(
                |x| {
                    calls += 1;
                    let (value, gradient) = rosenbrock(x);
                    best = best.min(value);
                    (value, gradient)
                },
                &[3.0; 25],
                &lower,
                &upper,
                budget,
            );
            assert_eq!(calls, minimum.evaluations);
            // All of it is used until the solver is content.
            assert_eq!(calls, budget.min(28));
            // The best of what was seen, whatever the solver was doing when it was stopped.
            assert_eq!(minimum.value, best);
            assert!(minimum.value <= last);
            last = minimum.value;
            if budget > 0 {
                assert_eq!(rosenbrock(&minimum.point).0, minimum.value);
            } else {
                assert_eq!(minimum.point, [3.0; 25]);
            }
        }
    }

    #[test]
    fn walls_of_infinity_are_stepped_back_from() {
        // Σ x − log x: from 9 the second step reaches far below 0, where nothing can be scored.
        let mut walls = 0;
        let minimum = minimize_in_box(
            |x| {
                if x.iter().any(|&x| x <= 0.0) {
                    walls += 1;
                    return (f64::INFINITY, vec![0.0; 3]);
                }
                let value = x.iter().map(|x| x - x.ln()).sum();
                (value, x.iter().map(|x| 1.0 - 1.0 / x).collect())
            },
            &[9.0, 8.0, 7.0],
            &[-10.0; 3],
            &[10.0; 3],
            100,
        );
        assert!(walls > 0, "the wall was never met");
        assert!((minimum.value - 3.0).abs() < 1e-6, "{minimum:?}");
    }

    #[test]
    fn nothing_finite_returns_the_start() {
        for value in [f64::INFINITY, f64::NAN] {
            let minimum =
                minimize_in_box(|_| (value, vec![0.0; 2]), &[0.2, 7.0], &[0.0; 2], &[1.0; 2], 20);
            assert_eq!(minimum.point, [0.2, 1.0]);
            assert_eq!(minimum.value, f64::INFINITY);
            assert!(minimum.evaluations <= 20);
        }
    }

    #[test]
    fn a_gradient_that_is_not_a_number_does_not_panic() {
        for bad in [f64::NAN, f64::INFINITY] {
            for from in 0..5 {
                let mut calls = 0;
                let mut f = bowl(&[0.4, -0.3]);
                let minimum = minimize_in_box(
                    |x| {
                        calls += 1;
                        let (value, gradient) = f(x);
                        if calls > from { (value, vec![bad; 2]) } else { (value, gradient) }
                    },
                    &[5.0, 5.0],
                    &[-10.0; 2],
                    &[10.0; 2],
                    50,
                );
                // At least the start was seen.
                let at_start = bowl(&[0.4, -0.3])(&[5.0, 5.0]).0;
                assert!(minimum.value <= at_start && minimum.value >= 0.0);
                assert!(minimum.point.iter().all(|x| (-10.0..=10.0).contains(x)));
                assert!(calls <= 50);
            }
        }
    }
}
