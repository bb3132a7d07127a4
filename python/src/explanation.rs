//! What was learned, explained.

use boscage_study::StudyView;
use boscage_study::explain::{MainEffect, PairSurface, Predicted, Share};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::errors::Failure;
use crate::{bytes, short};

/// An effect as Python gets it: values of each axis as JSON, mean and standard deviation as bytes.
type Effect = (String, Vec<u8>, Vec<u8>);

/// What was learned, explained.
#[pyclass(frozen, module = "boscage._native")]
pub(crate) struct Explanation {
    inner: boscage_study::Explanation,
    space: boscage_study::StudySpace,
    graph: Json,
}

impl Explanation {
    pub(crate) fn of(view: &StudyView) -> Result<Option<Self>, Failure> {
        let Some(inner) = boscage_study::Explanation::new(view)? else { return Ok(None) };
        let graph = view.model.as_ref().map_or(Json::Null, |model| {
            json!({"observations": model.observations, "log_likelihood": model.log_likelihood})
        });
        Ok(Some(Self { inner, space: view.space.clone(), graph }))
    }
}

#[pymethods]
impl Explanation {
    /// Everything but functions, as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        short(py, || {
            let name =
                |d: usize| self.space.parameters().get(d).map(|parameter| parameter.name.clone());
            let share =
                |share: &Share| json!({"value": share.value, "low": share.low, "high": share.high});
            let point = |point: &Predicted| {
                json!({
                    "trial": point.trial, "params": self.space.to_json(&point.values), "outcome": point.outcome,
                    "mean": point.mean, "std": point.std,
                })
            };
            let inner = &self.inner;
            let parameters = inner.parameters.iter().map(|one| {
                json!({"parameter": name(one.parameter), "main": share(&one.main), "total": one.total})
            });
            let pairs = inner.pairs.iter().map(|pair| {
                json!({
                    "first": name(pair.first), "second": name(pair.second), "share": share(&pair.share),
                    "frequency": pair.frequency,
                })
            });
            let trust = &inner.trust;
            let summary = json!({
                "sentence": inner.sentence(), "recommended": point(&inner.recommended), "luckiest": point(&inner.luckiest),
                "parameters": parameters.collect::<Json>(), "pairs": pairs.collect::<Json>(), "rest": inner.rest,
                "additive": inner.additive, "average": inner.average(), "model": self.graph,
                "trust": {
                    "observations": trust.observations, "predicted": trust.predicted, "error": trust.error,
                    "within_two": trust.within_two, "noise": trust.noise,
                },
            });
            Ok(summary.to_string())
        })
    }

    /// How well models of other kinds predict the same outcomes, as JSON.
    fn comparison(&self, py: Python<'_>) -> PyResult<String> {
        short(py, || {
            let found = self.inner.comparison()?;
            let pairs = found.forest.map_or(0, |(count, _)| count);
            let mut sentences = self.inner.comparison_sentences(&found);
            sentences.extend(self.inner.range_sentences());
            let summary = json!({
                "model": self.inner.trust.predicted, "alone": found.alone,
                "forest": found.forest.and_then(|(_, predicted)| predicted), "pairs": pairs, "whole": found.whole,
                "sentence": sentences.join(" "),
            });
            Ok(summary.to_string())
        })
    }

    fn main_effect(&self, py: Python<'_>, parameter: usize) -> PyResult<Effect> {
        short(py, || match self.inner.main_effect(parameter)? {
            Some(MainEffect { values, mean, std, .. }) => {
                Ok((serde_json::to_string(&[values])?, bytes(&mean), bytes(&std)))
            }
            None => Err(Failure::Value(format!("there is no parameter {parameter}"))),
        })
    }

    fn pair_surface(&self, py: Python<'_>, first: usize, second: usize) -> PyResult<Effect> {
        short(py, || match self.inner.pair_surface(first, second)? {
            Some(PairSurface { first, second, mean, std }) => {
                Ok((serde_json::to_string(&[first, second])?, bytes(&mean), bytes(&std)))
            }
            None => {
                Err(Failure::Value(format!("there is no pair of parameters {first} and {second}")))
            }
        })
    }

    /// Mean and standard deviation at each of these points, a JSON list of objects.
    fn predict(&self, py: Python<'_>, points: String) -> PyResult<(Vec<u8>, Vec<u8>)> {
        short(py, || {
            let points: Vec<serde_json::Map<String, Json>> =
                crate::optimization::read("points", &points)?;
            let (mut means, mut stds) = (Vec::new(), Vec::new());
            for point in &points {
                let (mean, std) = self.inner.predict(&self.space.partial_from_json(point)?)?;
                means.push(mean);
                stds.push(std);
            }
            Ok((bytes(&means), bytes(&stds)))
        })
    }
}
