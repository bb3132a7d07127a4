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
        .with_relative_cost_reduction_tolerance(2.2e-9);
    // How it ended does not matter: what was seen is what counts.
    let _ = Executor::new(objective, solver, FirstOrderState::new(start))
        .max_iter(max_evaluations as u64)
        .run();
    state.into_inner().best
}
