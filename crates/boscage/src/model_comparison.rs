//! How well models of other kinds predict the same outcomes: a guard against the wrong one.
//!
//! Not in the paper, which believes in its forest. Here each outcome is predicted from all others, in closed form, by a sum of
//! functions of single variables (and what they do alike), by that and the pairs of a forest, and by one function of all variables
//! together. Each has parameters of its own, learned from the same observations.
//!
//! Cost: 40 gradients of ρ for each model with at most 300 observations, and one inverse with all of them.

use crate::additive_gp::{AdditivePosterior, AdditivePrior, Dataset};
use crate::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use crate::error::Result;
use crate::graph::{Component, Edge, Forest};
use crate::kernel_learning::{KernelLearning, kernel_learning};
use crate::outputs::{OutputMap, OutputRule};
use crate::space::Space;

/// Parameters are learned from at most so many observations.
const MOST_OBSERVATIONS: usize = 300;

/// The share of the variance of the outcomes that each model predicts, each outcome from all others; see [`predicted_share`].
#[derive(Debug, Clone, PartialEq)]
pub struct ModelComparison {
    /// Every variable on its own.
    pub alone: Option<f64>,
    /// The number of pairs in the forest, and every variable on its own with these; none if there are no pairs.
    pub forest: Option<(usize, Option<f64>)>,
    /// One function of all variables.
    pub whole: Option<f64>,
}

/// How much of the variance of the outcomes is predicted, each from all others: 1 is all, 0 no more than the mean of the others does.
/// None if there are fewer than three, or if they are all the same.
pub fn predicted_share(posterior: &AdditivePosterior, y: &[f64]) -> Option<f64> {
    let n = y.len() as f64;
    let squares: f64 = left_out(posterior).iter().map(|(residual, _)| residual * residual).sum();
    let average = y.iter().sum::<f64>() / n;
    // The mean of the others is the prediction to beat.
    let plain: f64 = y.iter().map(|y| ((y - average) * n / (n - 1.0)).powi(2)).sum();
    let predicted = 1.0 - squares / plain;
    Some(predicted).filter(|share| y.len() >= 3 && plain > 0.0 && share.is_finite())
}

/// What is left of each outcome when it is predicted from all others, and the variance of that: α_a/P_aa and 1/P_aa with P = Δ⁻¹.
pub fn left_out(posterior: &AdditivePosterior) -> Vec<(f64, f64)> {
    let precisions = posterior.precisions();
    let pair = |(alpha, precision): (&f64, f64)| (alpha / precision, 1.0 / precision);
    posterior.weights().iter().zip(precisions).map(pair).collect()
}

/// Compares the models. Of these edges, those that close no cycle with earlier ones make the forest.
pub fn model_comparison(space: &Space, data: &Dataset, edges: &[Edge]) -> Result<ModelComparison> {
    // The scale that the priors are made for, whatever the outcomes were scaled to before.
    let outputs = OutputMap::fit(OutputRule::Standardised, data.outcomes());
    let y = data.outcomes().iter().map(|&y| outputs.apply(y)).collect();
    let data = &data.with_outcomes(data.len(), y);
    let predicted = |start: &AdditivePrior, config: &KernelLearning| -> Result<Option<f64>> {
        let most_observations = Some(MOST_OBSERVATIONS);
        let config = KernelLearning { most_observations, ..config.clone() };
        let prior = kernel_learning(start, data, &config)?.prior;
        Ok(predicted_share(&prior.condition(data)?, data.outcomes()))
    };
    let pairs = AdditiveGpUcb::new(space.clone(), AdditiveGpUcbSettings::boscage())?;
    let (start, config) = pairs.untrained();
    let mut alone = AdditivePrior { all_pairs: None, ..start.clone() };
    let predicted_alone = predicted(&alone, config)?;
    let mut forest = Forest::empty(space.dimension());
    for &edge in edges {
        if !forest.contains(edge) && !forest.closes_cycle(edge) {
            forest.add(edge)?;
            alone.components.push(Component::pair(edge));
        }
    }
    let with_forest = match forest.edge_count() {
        0 => None,
        count => Some((count, predicted(&alone, config)?)),
    };
    let whole = AdditiveGpUcb::new(space.clone(), AdditiveGpUcbSettings::gp_ucb())?;
    let (start, config) = whole.untrained();
    let whole = predicted(start, config)?;
    Ok(ModelComparison { alone: predicted_alone, forest: with_forest, whole })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Point;
    use crate::stream::{Purpose, Stream};

    fn data(n: u64, outcome: impl Fn(&[f64]) -> f64) -> (Space, Dataset) {
        let space = Space::unit_cube(4).unwrap();
        let mut data = Dataset::empty(4);
        for a in 0..n {
            let point = space.sample(&mut Stream::new(3, a).generator(Purpose::Problem));
            let y = outcome(&point.0);
            data.push(&point, y).unwrap();
        }
        let y = data.outcomes();
        let mean = y.iter().sum::<f64>() / n as f64;
        let std = (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        let y = y.iter().map(|y| (y - mean) / std.max(1e-9)).collect();
        (space, data.with_outcomes(n as usize, y))
    }

    #[test]
    fn left_out_outcomes_are_predicted_as_if_they_were_left_out() {
        let (space, data) = data(12, |x| x[0] * x[1] + x[2]);
        let optimizer = AdditiveGpUcb::new(space, AdditiveGpUcbSettings::boscage()).unwrap();
        let (prior, _) = optimizer.untrained();
        let posterior = prior.condition(&data).unwrap();
        let mut squares = 0.0;
        for (a, (residual, variance)) in left_out(&posterior).into_iter().enumerate() {
            let mut others = Dataset::empty(4);
            for b in (0..12).filter(|&b| b != a) {
                others.push(&data.point(b), data.outcomes()[b]).unwrap();
            }
            let normal = prior.condition(&others).unwrap().joint(&data.point(a)).unwrap();
            assert!((data.outcomes()[a] - normal.mean - residual).abs() < 1e-9);
            assert!((normal.variance + prior.noise_std.powi(2) - variance).abs() < 1e-9);
            squares += residual * residual;
        }
        // The outcomes have mean 0 and variance 1, and the mean of all others is off by 12/11 of each.
        let share = predicted_share(&posterior, data.outcomes()).unwrap();
        assert!((share - (1.0 - squares / 12.0 * (11.0_f64 / 12.0).powi(2))).abs() < 1e-9);
    }

    #[test]
    fn each_model_predicts_what_it_can_say() {
        let edge = Edge::new(0, 2).unwrap();
        let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 0.05;
        // A sum: all but the plain GP predict it nearly to the end, and pairs add nothing.
        let (space, sum) = data(60, |x| (3.0 * x[0]).sin() + x[1] * x[1] - x[3]);
        let found = model_comparison(&space, &sum, &[]).unwrap();
        assert!(close(found.alone, 1.0) && found.forest.is_none(), "{found:?}");
        assert!(found.whole.unwrap() > 0.8, "{found:?}");
        // A pair: single variables cannot say it.
        let (space, pair) = data(60, |x| (x[0] - 0.5) * (x[2] - 0.5) + 0.02 * x[1]);
        let found = model_comparison(&space, &pair, &[edge, edge]).unwrap();
        assert!(found.alone.unwrap() < 0.4, "{found:?}");
        let (count, share) = found.forest.unwrap();
        assert!(count == 1 && close(share, 1.0), "{found:?}");
        // Three at once: only one function of all variables can, and edges that close a cycle are left out.
        let (space, three) =
            data(150, |x| (x[0] - 0.5) * (x[2] - 0.5) * (x[3] - 0.5) + 1e-3 * x[1]);
        let edges = [(0, 2), (2, 3), (0, 3)].map(|(i, j)| Edge::new(i, j).unwrap());
        let found = model_comparison(&space, &three, &edges).unwrap();
        let (count, share) = found.forest.unwrap();
        assert_eq!(count, 2);
        assert!(found.whole.unwrap() > share.unwrap() + 0.2, "{found:?}");
    }

    #[test]
    fn the_scale_of_the_outcomes_does_not_matter() {
        let (space, data) = data(40, |x| (x[0] - 0.5) * (x[2] - 0.5) + x[1]);
        let y = data.outcomes().iter().map(|y| 1e4 + 1e3 * y).collect();
        let other = data.with_outcomes(40, y);
        let [one, two] = [&data, &other].map(|data| model_comparison(&space, data, &[]).unwrap());
        for (one, two) in [(one.alone, two.alone), (one.whole, two.whole)] {
            assert!((one.unwrap() - two.unwrap()).abs() < 1e-6, "{one:?} {two:?}");
        }
    }

    #[test]
    fn too_little_says_nothing() {
        for (n, outcome) in [(2, 1.0), (5, 0.0)] {
            let (space, data) = data(n, |x| outcome * x[0]);
            let found = model_comparison(&space, &data, &[]).unwrap();
            let nothing = ModelComparison { alone: None, forest: None, whole: None };
            assert_eq!(found, nothing);
        }
        let mut empty = Dataset::empty(4);
        let space = Space::unit_cube(4).unwrap();
        assert_eq!(model_comparison(&space, &empty, &[]).unwrap().alone, None);
        empty.push(&Point(vec![0.1; 4]), 1.0).unwrap();
        assert_eq!(model_comparison(&space, &empty, &[]).unwrap().alone, None);
    }
}
