//! Small studies of known functions, for tests.

use boscage::additive_gp::AdditivePrior;
use boscage::additive_gp_ucb::AdditiveGpUcbSettings;
use boscage::graph::{Component, Edge, Graph};
use boscage::kernel::{Kernel, KernelFamily};
use boscage::outputs::{OutputMap, OutputRule};
use boscage::stream::Purpose;
use boscage::{Method, Model, Stream, Value};
use boscage_study::{Goal, Kind, State, StudyParameter, StudySpace, StudyView, Trial};

/// A study of some trials, as a method would make it. An objective of nothing is a failure.
pub(crate) fn view_of(
    parameters: Vec<StudyParameter>,
    method: Method,
    goal: Goal,
    trials: u64,
    objective: impl Fn(u64, &[Option<Value>]) -> Option<f64>,
) -> StudyView {
    let space = StudySpace::new(parameters, Vec::new()).unwrap();
    let mut optimizer = method.build(space.engine().clone()).unwrap();
    let mut view = StudyView {
        name: "example".to_string(),
        storage: "sqlite:///example.db".to_string(),
        goal,
        space,
        method,
        seed: 7,
        trials: Vec::new(),
        model: None,
    };
    for number in 0..trials {
        let point = optimizer.ask(&[], &Stream::new(view.seed, number)).unwrap();
        let values = view.space.decode(&point).unwrap();
        let value = objective(number, &values);
        let point = view.space.encode(&values).unwrap();
        match value {
            Some(value) => optimizer.tell(point, goal.sign() * value).unwrap(),
            None => optimizer.fail(point).unwrap(),
        }
        view.trials.push(Trial {
            number,
            state: if value.is_some() { State::Complete } else { State::Failed },
            value,
            values: Some(values),
            failure: value.is_none().then(|| "the program ended with exit code 3".to_string()),
            infeasible: false,
            began: None,
            ended: None,
            seconds: Some(0.25 * (number % 7) as f64),
            attributes: serde_json::Map::new(),
        });
    }
    view.model = optimizer.model().cloned();
    view
}

fn number(value: &Option<Value>) -> f64 {
    value.as_ref().and_then(Value::as_f64).unwrap_or_default()
}

/// Parameters of every kind, with a few failures. Cache and threads act together, and so do rate and mode.
pub(crate) fn mixed(trials: u64) -> StudyView {
    let words = |words: &[&str]| words.iter().map(|&word| Value::from(word)).collect::<Vec<_>>();
    let parameters = vec![
        StudyParameter::new("cache", Kind::Integer { low: 1, high: 4096, step: 1, log: true }),
        StudyParameter::new("threads", Kind::Integer { low: 1, high: 16, step: 1, log: false }),
        StudyParameter::new("rate", Kind::Real { low: 1e-5, high: 0.1, log: true, step: None }),
        StudyParameter::new(
            "mode",
            Kind::Categorical { choices: words(&["plain", "fast", "careful"]) },
        ),
        StudyParameter::new("compress", Kind::Boolean {}),
        StudyParameter::new("level", Kind::Ordinal { levels: words(&["low", "middle", "high"]) }),
        StudyParameter::new(
            "share",
            Kind::Real { low: 0.0, high: 1.0, log: false, step: Some(0.1) },
        ),
        StudyParameter::new("idle", Kind::Real { low: -1.0, high: 1.0, log: false, step: None }),
    ];
    view_of(parameters, Method::default(), Goal::Minimize, trials, |trial, values| {
        if trial % 13 == 5 {
            return None;
        }
        let (cache, threads) = (number(&values[0]).log2() / 12.0, number(&values[1]) / 16.0);
        let rate = number(&values[2]).log10() + 3.0;
        let mode = match &values[3] {
            Some(Value::Choice(mode)) if mode == "fast" => 0.0,
            Some(Value::Choice(mode)) if mode == "plain" => 1.0,
            _ => 1.8,
        };
        let compress = if values[4] == Some(Value::Boolean(true)) { 0.0 } else { 0.6 };
        let noise = ((trial * 7919 + 13) % 101) as f64 / 500.0;
        Some(20.0 + 6.0 * (cache - threads).powi(2) + 0.5 * rate.powi(2) + mode + compress + noise)
    })
}

/// Many parameters of which one acts together with each of the next few; the others do little. The points of the design come
/// first, so that a model is learned only once.
pub(crate) fn star(dimension: usize, trials: u64) -> StudyView {
    let parameter = |d: usize| {
        StudyParameter::new(
            format!("knob_{d:03}"),
            Kind::Real { low: 0.0, high: 1.0, log: false, step: None },
        )
    };
    let settings = AdditiveGpUcbSettings {
        initial_points: trials as usize - 1,
        ..AdditiveGpUcbSettings::default()
    };
    let method = Method::Tree(Box::new(settings));
    view_of((0..dimension).map(parameter).collect(), method, Goal::Maximize, trials, |_, values| {
        Some(star_outcome(values))
    })
}

fn star_outcome(values: &[Option<Value>]) -> f64 {
    let x: Vec<f64> = values.iter().map(number).collect();
    let pairs: f64 =
        (1..8.min(x.len())).map(|d| (x[0] - 0.5) * (x[d] - 0.5) * (8 - d) as f64).sum();
    let alone: f64 =
        x.iter().skip(8).take(10).enumerate().map(|(k, x)| (x - 0.3).abs() / (1 + k) as f64).sum();
    pairs - alone
}

/// The largest study that a report must cope with: 250 parameters, all of them in one tree, and 1,000 trials.
pub(crate) fn large() -> StudyView {
    const DIMENSION: usize = 250;
    let mut view = star(DIMENSION, 12);
    let mut generator = Stream::new(1, 1).generator(Purpose::Design);
    for number in view.trials.len() as u64..1000 {
        let values = view.space.decode(&view.space.engine().sample(&mut generator)).unwrap();
        let value = star_outcome(&values);
        let first = view.trials[0].clone();
        view.trials.push(Trial { number, value: Some(value), values: Some(values), ..first });
    }
    let parent = |d: usize| if d < 8 { 0 } else { (d * 7) % (d / 2) };
    let edges: Vec<Edge> = (1..DIMENSION).map(|d| Edge::new(parent(d), d).unwrap()).collect();
    let mut kernel = Kernel::uniform(KernelFamily::Rbf, DIMENSION, 0.8, 0.001);
    kernel.scales[..18].fill(0.2);
    let outcomes: Vec<f64> = view.trials.iter().filter_map(Trial::outcome).collect();
    view.model = Some(Model {
        graph: Graph::from_edges(DIMENSION, edges.iter().copied()).unwrap(),
        prior: AdditivePrior {
            components: edges.iter().map(|&edge| Component::pair(edge)).collect(),
            kernel,
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        },
        outputs: OutputMap::fit(OutputRule::Standardised, &outcomes),
        observations: 1000,
        log_likelihood: 0.0,
        edge_frequencies: edges
            .iter()
            .map(|&edge| (edge, 1.0 / (1 + edge.high() / 60) as f64))
            .collect(),
        verdict: None,
        local: None,
        failures: None,
    });
    view
}
