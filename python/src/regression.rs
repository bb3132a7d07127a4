//! The additive GP as a regression model, without any optimization.

use boscage::additive_gp::{AdditivePosterior, Normal};
use boscage::additive_gp_ucb::AdditiveGpUcb;
use boscage::outputs::OutputMap;
use boscage::{Method, Optimizer, Parameter, Point, Space, Stream};
use boscage_study::MethodChoice;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::Failure;
use crate::{bytes, long, numbers};

/// Widths of the training data that a point may be away from it; beyond, all points look alike to every kernel.
const FAR: f64 = 1e6;

/// Rounds of learning structure and kernel in turn; after the first few, only as long as the log likelihood still rises by so
/// much.
const ROUNDS: u64 = 10;
const LEAST_ROUNDS: u64 = 3;
const RISE: f64 = 0.5;

/// A fitted model.
#[pyclass(frozen, module = "boscage._native")]
pub(crate) struct Regression {
    posterior: std::sync::Arc<AdditivePosterior>,
    outputs: OutputMap,
    /// Smallest and largest value of each column.
    ranges: Vec<(f64, f64)>,
    model: boscage::Model,
}

impl Regression {
    fn points(ranges: &[(f64, f64)], x: &[f64]) -> Vec<Point> {
        let rows = x.chunks_exact(ranges.len().max(1));
        let place = |(value, (low, high)): (&f64, &(f64, f64))| {
            // Halves, because the difference of two finite numbers may not be finite.
            let width = high / 2.0 - low / 2.0;
            if width > 0.0 { ((value / 2.0 - low / 2.0) / width).clamp(-FAR, FAR) } else { 0.5 }
        };
        rows.map(|row| Point(row.iter().zip(ranges).map(place).collect())).collect()
    }
}

#[pymethods]
impl Regression {
    /// Fits a model to rows of `columns` numbers and their outcomes.
    #[staticmethod]
    fn fit(
        py: Python<'_>,
        x: Vec<u8>,
        columns: usize,
        y: Vec<u8>,
        method: String,
        seed: u64,
    ) -> PyResult<Self> {
        long(py, move || {
            let (x, y) = (numbers(&x), numbers(&y));
            if columns == 0 || x.len() != y.len() * columns || y.is_empty() {
                return Err(Failure::Value(format!(
                    "{} numbers are not {} rows of {columns}",
                    x.len(),
                    y.len()
                )));
            }
            let ranges: Vec<(f64, f64)> = (0..columns)
                .map(|column| {
                    let values = x.iter().skip(column).step_by(columns);
                    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| {
                        (low.min(v), high.max(v))
                    })
                })
                .collect();
            let parameters = ranges.iter().enumerate().map(|(d, &(low, high))| {
                // Scaled here, so that the engine sees the unit cube; a constant column has one value.
                if high > low {
                    Parameter::real(format!("x{d}"), 0.0, 1.0)
                } else {
                    Parameter::real(format!("x{d}"), 0.5, 0.5)
                }
            });
            let space = Space::new(parameters.collect())?;
            let choice: MethodChoice = crate::optimization::read("method", &method)?;
            let settings = match choice.resolve()? {
                Method::Boscage(settings)
                | Method::Tree(settings)
                | Method::Overlap(settings)
                | Method::NoOverlap(settings)
                | Method::GpUcb(settings) => *settings,
                _ => return Err(Failure::Value(format!("{} has no model to fit", choice.name))),
            };
            let mut model = AdditiveGpUcb::new(space, settings)?;
            for (point, &y) in Self::points(&ranges, &x).into_iter().zip(&y) {
                model.tell(point, y)?;
            }
            // The structure is sampled with the present kernel, and the kernel learned for the present structure: both from
            // scratch here, so that it takes some rounds until they fit each other. The likeliest is kept.
            let mut best: Option<boscage::Model> = None;
            for round in 0..ROUNDS {
                model.learn(&Stream::new(seed, round))?;
                let Some(learned) = model.model() else { break };
                let before = best.as_ref().map_or(f64::NEG_INFINITY, |best| best.log_likelihood);
                if learned.log_likelihood > before {
                    best = Some(learned.clone());
                }
                if round + 1 >= LEAST_ROUNDS && learned.log_likelihood < before + RISE {
                    break;
                }
            }
            if let Some(best) = best {
                model.resume(best)?;
            }
            let posterior = std::sync::Arc::new(model.posterior()?.clone());
            let model = model
                .model()
                .cloned()
                .ok_or_else(|| Failure::Bug("nothing was learned".to_string()))?;
            Ok(Self { posterior, outputs: model.outputs, ranges, model })
        })
    }

    /// Mean and standard deviation of the function for rows of numbers.
    fn predict(&self, py: Python<'_>, x: Vec<u8>) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let (posterior, outputs, ranges) =
            (self.posterior.clone(), self.outputs, self.ranges.clone());
        long(py, move || {
            let points = Self::points(&ranges, &numbers(&x));
            let normals: Vec<Normal> = posterior.joint_many(&points)?;
            let means: Vec<f64> =
                normals.iter().map(|normal| outputs.invert(normal.mean)).collect();
            let stds: Vec<f64> = normals
                .iter()
                .map(|normal| outputs.scale * normal.variance.max(0.0).sqrt())
                .collect();
            Ok((bytes(&means), bytes(&stds)))
        })
    }

    /// Edges with frequencies, noise, likelihood, as JSON.
    fn summary(&self) -> String {
        let edges: Vec<(usize, usize)> =
            self.model.graph.edges().iter().map(|edge| (edge.low(), edge.high())).collect();
        let frequencies: Vec<(usize, usize, f64)> = self
            .model
            .edge_frequencies
            .iter()
            .map(|(edge, share)| (edge.low(), edge.high(), *share))
            .collect();
        json!({
            "edges": edges, "edge_frequencies": frequencies, "log_likelihood": self.model.log_likelihood,
            "noise": self.outputs.scale * self.model.prior.noise_std,
        })
        .to_string()
    }
}
