//! What is refused, and whether the refusal says what was wrong: settings, their JSON, methods, errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use boscage::additive_gp::AdditivePrior;
use boscage::additive_gp_ucb::{Acquisition, Learning};
use boscage::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings};
use boscage::graph::{Component, Edge, Forest};
use boscage::graph_learning::GraphLearning;
use boscage::kernel::{Kernel, KernelFamily};
use boscage::kernel_learning::{Budget, KernelPrior};
use boscage::message_passing::{Grid, Zoom};
use boscage::outputs::OutputRule;
use boscage::partition_learning::PartitionLearning;
use boscage::structure::{RandomForest, Structure};
use boscage::tree_learning::TreeLearning;
use boscage::{Error, Method, Optimizer, Parameter, Point, Space, Stream, Value, minimize};

fn presets() -> [AdditiveGpUcbSettings; 2] {
    [AdditiveGpUcbSettings::default(), AdditiveGpUcbSettings::paper()]
}

/// Both presets, changed like this, must be refused at construction, in this setting and naming this value.
#[track_caller]
fn refused(setting: &str, value: &str, change: impl Fn(&mut AdditiveGpUcbSettings)) {
    for mut settings in presets() {
        change(&mut settings);
        let space = Space::unit_cube(3).unwrap();
        let direct = AdditiveGpUcb::new(space.clone(), settings.clone()).err();
        let error = Method::Tree(Box::new(settings)).build(space).err();
        assert_eq!(direct, error);
        let Some(Error::InvalidSetting { setting: named, value: found, reason }) = &error else {
            panic!("{setting} = {value}: {error:?}");
        };
        assert_eq!((*named, found.as_str()), (setting, value));
        let text = error.as_ref().unwrap().to_string();
        assert!(text.contains(setting) && text.contains(value) && text.contains(reason), "{text}");
    }
}

/// Both presets, changed like this, must run through initial points, learning and model-based asks.
#[track_caller]
fn accepted(what: &str, change: impl Fn(&mut AdditiveGpUcbSettings)) {
    for mut settings in presets() {
        change(&mut settings);
        let space = Space::unit_cube(3).unwrap();
        let mut optimizer = AdditiveGpUcb::new(space.clone(), settings).unwrap();
        for trial in 0..16 {
            let point = optimizer.ask(&[], &Stream::new(5, trial)).unwrap();
            space.check(&point).unwrap();
            let outcome = -(point.0[0] - 0.4).powi(2) + point.0[1] * point.0[2];
            optimizer.tell(point, outcome).unwrap();
        }
        assert!(optimizer.evaluations() > 0, "{what}: the model was never used");
    }
}

fn tree(settings: &mut AdditiveGpUcbSettings) -> &mut TreeLearning {
    match &mut settings.structure {
        Structure::Tree(learning) => learning,
        other => panic!("not a tree: {other:?}"),
    }
}

fn prior(settings: &mut AdditiveGpUcbSettings) -> &mut KernelPrior {
    let default = AdditiveGpUcbSettings::default().kernel_learning.prior;
    settings.kernel_learning.prior.get_or_insert(default.unwrap())
}

#[test]
fn tree_learning_settings() {
    for bad in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        refused("edge_prior", &bad.to_string(), |s| {
            tree(s).edge_prior = bad;
        });
    }
    refused("generation", "0", |s| tree(s).generation = 0);
}

#[test]
fn zoom_settings() {
    for bad in [0, 1] {
        refused("zoom.grid_size", &bad.to_string(), |s| {
            s.zoom.grid_size = bad;
        });
    }
    refused("zoom.levels", "0", |s| s.zoom.levels = 0);
}

#[test]
fn initial_kernel_parameters() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let value = bad.to_string();
        refused("lengthscale", &value, |s| s.lengthscale = bad);
        refused("scale", &value, |s| s.scale = Some(bad));
        refused("noise_std", &value, |s| s.noise_std = bad);
    }
}

#[test]
fn bounds_of_kernel_learning() {
    let bad = [
        [2.0, 1.0],
        [0.0, 1.0],
        [-1.0, 1.0],
        [f64::NAN, 1.0],
        [1.0, f64::NAN],
        [1.0, f64::INFINITY],
    ];
    for bounds in bad {
        let value = format!("[{}, {}]", bounds[0], bounds[1]);
        refused("lengthscale_bounds", &value, |s| {
            s.kernel_learning.lengthscale_bounds = bounds;
        });
        refused("scale_bounds", &value, |s| {
            s.kernel_learning.scale_bounds = bounds;
        });
        refused("noise_std_bounds", &value, |s| {
            s.kernel_learning.noise_std_bounds = Some(bounds);
        });
    }
}

#[test]
fn priors_of_kernel_learning() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let value = bad.to_string();
        refused("prior", &value, |s| prior(s).lengthscales.median = bad);
        refused("prior", &value, |s| prior(s).scales.common_log_std = bad);
        refused("prior", &value, |s| prior(s).noise_std.log_std = bad);
    }
}

#[test]
fn learning_and_acquisition() {
    refused("learning", "every 0", |s| s.learning = Learning::Every(0));
    for bad in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        refused("learning", &format!("growth {bad}"), |s| {
            s.learning = Learning::Growth(bad);
        });
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        refused("acquisition", &format!("joint {bad}"), |s| {
            s.acquisition = Acquisition::Joint(bad);
        });
    }
}

#[test]
fn the_limits_of_what_is_allowed_work() {
    accepted("no samples", |s| tree(s).samples = 0);
    accepted("one sample", |s| tree(s).samples = 1);
    accepted("no initial points", |s| s.initial_points = 0);
    accepted("no kernel learning", |s| {
        s.kernel_learning.budget = Budget::Fixed(0);
    });
    accepted("one evaluation", |s| {
        s.kernel_learning.budget = Budget::Fixed(1);
    });
    accepted("learning each time", |s| s.learning = Learning::Every(1));
    accepted("no exploration", |s| {
        s.acquisition = Acquisition::Joint(0.0);
    });
    accepted("the coarsest grid", |s| {
        s.zoom = Zoom { grid_size: 2, levels: 1 };
    });
    accepted("one admissible value", |s| {
        s.kernel_learning.lengthscale_bounds = [0.5, 0.5];
        s.kernel_learning.scale_bounds = [0.5, 0.5];
        s.kernel_learning.noise_std_bounds = Some([0.5, 0.5]);
    });
    accepted("initial parameters out of the bounds", |s| {
        s.lengthscale = 1e-6;
        s.scale = Some(1e6);
        s.noise_std = 1e-9;
    });
}

#[test]
fn unknown_fields_in_json_are_named() {
    let read = |text: &str| serde_json::from_str::<Method>(text);
    // Where each unknown field sits; the same text without it must be fine, so that it is the field that is refused.
    let texts = [
        r#"{"name":"tree","settings":{"initial_points":5,"BAD":1}}"#,
        r#"{"name":"tree","settings":{"zoom":{"grid_size":3,"BAD":1}}}"#,
        r#"{"name":"tree","settings":{"structure":{"tree":{"samples":3,"BAD":1}}}}"#,
        r#"{"name":"tree","settings":{"kernel_learning":{"budget":"growing","BAD":1}}}"#,
        r#"{"name":"tree","settings":{},"BAD":1}"#,
        r#"{"name":"overlap","settings":{"structure":{"graph":{"samples":3,"BAD":1}}}}"#,
        r#"{"name":"no-overlap","settings":{"structure":{"partition":{"samples":3,"BAD":1}}}}"#,
        r#"{"name":"random-trees","settings":{"structure":{"random-forest":{"edge_share":0.1,"BAD":1}}}}"#,
        r#"{"name":"random","BAD":1}"#,
    ];
    for text in texts {
        for bad in ["smaples", "zoom_levels", "gamma"] {
            let error = read(&text.replace("BAD", bad)).unwrap_err().to_string();
            assert!(error.contains(bad), "{text}: {error}");
        }
        read(&text.replace(r#","BAD":1"#, "")).unwrap();
    }
    let mut full = serde_json::to_value(Method::default()).unwrap();
    for part in ["lengthscales", "scales", "noise_std"] {
        let before = full.clone();
        full["settings"]["kernel_learning"]["prior"][part]["mean"] = 1.0.into();
        let error = serde_json::from_value::<Method>(full).unwrap_err().to_string();
        assert!(error.contains("mean"), "{error}");
        full = before;
    }
    full["settings"]["kernel_learning"]["prior"]["noise"] = 1.0.into();
    let error = serde_json::from_value::<Method>(full).unwrap_err().to_string();
    assert!(error.contains("`noise`"), "{error}");
}

#[test]
fn wrong_words_and_types_in_json_are_named() {
    let read = |settings: &str| {
        let text = format!(r#"{{"name":"tree","settings":{settings}}}"#);
        serde_json::from_str::<Method>(&text).unwrap_err().to_string()
    };
    for (settings, word, known) in [
        (r#"{"repeats":"never"}"#, "never", "avoid"),
        (r#"{"outputs":"log"}"#, "log", "standardised"),
        (r#"{"family":"cubic"}"#, "cubic", "matern52"),
        (r#"{"learning":{"sometimes":3}}"#, "sometimes", "every"),
        (r#"{"acquisition":"ei"}"#, "ei", "additive"),
    ] {
        let error = read(settings);
        assert!(error.contains(word) && error.contains(known), "{error}");
    }
    assert!(read(r#"{"initial_points":-3}"#).contains("-3"));
    assert!(read(r#"{"lengthscale":"long"}"#).contains("long"));
    let unknown = serde_json::from_str::<Method>(r#"{"name":"forest"}"#);
    let error = unknown.unwrap_err().to_string();
    for known in ["forest", "tree", "random"] {
        assert!(error.contains(known), "{error}");
    }
}

#[test]
fn settings_that_came_through_json_are_checked_too() {
    let text = r#"{"name":"tree","settings":{"structure":{"tree":{"edge_prior":1}}}}"#;
    let method: Method = serde_json::from_str(text).unwrap();
    let error = method.build(Space::unit_cube(2).unwrap()).err().unwrap();
    assert!(
        matches!(&error, Error::InvalidSetting { setting: "edge_prior", value, .. } if value == "1"),
        "{error:?}"
    );
}

#[test]
fn an_unknown_method_is_told_the_known_ones() {
    for unknown in ["", "Tree", "tree ", "bayes"] {
        let error = Method::named(unknown).unwrap_err();
        assert!(matches!(&error, Error::UnknownMethod { name } if name == unknown));
        let text = error.to_string();
        assert!(text.contains(unknown));
        for known in Method::NAMES {
            assert!(text.contains(known.name), "{} is not in {text:?}", known.name);
        }
    }
    for known in Method::NAMES {
        assert_eq!(Method::named(known.name).unwrap(), (known.method)());
        assert!(!known.summary.is_empty());
    }
    let mut names = Method::NAMES.map(|known| known.name);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

/// Named settings of a method with an additive GP, or none for the others.
fn additive(method: Method) -> Option<AdditiveGpUcbSettings> {
    match method {
        Method::Boscage(settings)
        | Method::Tree(settings)
        | Method::Overlap(settings)
        | Method::NoOverlap(settings)
        | Method::RandomTrees(settings)
        | Method::Oracle(settings)
        | Method::GpUcb(settings) => Some(*settings),
        Method::Line(_) | Method::Rembo(_) | Method::Random => None,
    }
}

fn truth(dimension: usize) -> AdditivePrior {
    let edge = |i: usize| Component::pair(Edge::new(i - 1, i).unwrap());
    AdditivePrior {
        components: (1..dimension).map(edge).collect(),
        kernel: Kernel::uniform(KernelFamily::Rbf, dimension, 0.2, 0.5),
        noise_std: 0.1,
        all_pairs: None,
        constant: 0.0,
        common_std: 0.0,
    }
}

/// Refused when built in three dimensions, in this setting and naming this value.
#[track_caller]
fn not_built(method: Method, setting: &str, value: &str) {
    let error = method.build(Space::unit_cube(3).unwrap()).err();
    let Some(Error::InvalidSetting { setting: named, value: found, reason }) = &error else {
        panic!("{setting} = {value}: {error:?}");
    };
    assert_eq!((*named, found.as_str()), (setting, value));
    assert!(!reason.is_empty());
}

#[test]
fn a_structure_of_another_method_is_refused_by_its_name() {
    type Wrap = fn(Box<AdditiveGpUcbSettings>) -> Method;
    let methods: [Wrap; 7] = [
        Method::Boscage,
        Method::Tree,
        Method::Overlap,
        Method::NoOverlap,
        Method::RandomTrees,
        Method::Oracle,
        Method::GpUcb,
    ];
    let mut structures: Vec<Structure> = Vec::new();
    for known in Method::NAMES {
        if let Some(settings) = additive((known.method)()) {
            structures.push(match settings.structure {
                Structure::Given(None) => Structure::Given(Some(Box::new(truth(3)))),
                other => other,
            });
        }
    }
    assert_eq!(structures.len(), 11);
    let mut fitting = 0;
    for structure in structures {
        for method in methods {
            let settings = AdditiveGpUcbSettings {
                structure: structure.clone(),
                acquisition: Acquisition::Joint(2.0),
                outputs: OutputRule::Raw,
                ..AdditiveGpUcbSettings::default()
            };
            let method = method(Box::new(settings));
            match method.build(Space::unit_cube(3).unwrap()) {
                Ok(_) => fitting += 1,
                Err(_) => not_built(method, "structure", structure.name()),
            }
        }
    }
    assert_eq!(fitting, 11, "each structure fits one method");
}

#[test]
fn settings_of_graphs_groups_and_forests() {
    let overlap = |change: fn(&mut GraphLearning)| {
        let mut learning = GraphLearning::default();
        change(&mut learning);
        let structure = Structure::Graph(learning);
        Method::Overlap(Box::new(AdditiveGpUcbSettings {
            structure,
            ..AdditiveGpUcbSettings::overlap()
        }))
    };
    not_built(overlap(|g| g.edge_prior = 0.0), "edge_prior", "0");
    not_built(overlap(|g| g.edge_prior = f64::NAN), "edge_prior", "NaN");
    not_built(overlap(|g| g.max_table = Some(3)), "max_table", "3");
    let no_overlap = |change: fn(&mut PartitionLearning)| {
        let mut learning = PartitionLearning::default();
        change(&mut learning);
        let structure = Structure::Partition(learning);
        Method::NoOverlap(Box::new(AdditiveGpUcbSettings {
            structure,
            ..AdditiveGpUcbSettings::no_overlap(None)
        }))
    };
    not_built(no_overlap(|p| p.concentration = 0.0), "concentration", "0");
    not_built(no_overlap(|p| p.concentration = f64::INFINITY), "concentration", "inf");
    not_built(no_overlap(|p| p.max_group_size = Some(0)), "max_group_size", "0");
    for (share, text) in [(0.0, "0"), (1.0, "1"), (-0.5, "-0.5"), (f64::NAN, "NaN")] {
        let structure = Structure::RandomForest(RandomForest { edge_share: share });
        let settings = AdditiveGpUcbSettings { structure, ..AdditiveGpUcbSettings::random_trees() };
        not_built(Method::RandomTrees(Box::new(settings)), "edge_share", text);
    }
    for (growth, text) in [(-0.1, "-0.1"), (1.5, "1.5"), (f64::NAN, "NaN")] {
        let settings =
            AdditiveGpUcbSettings { lengthscale_growth: growth, ..AdditiveGpUcbSettings::gp_ucb() };
        not_built(Method::GpUcb(Box::new(settings)), "lengthscale_growth", text);
    }
    // One component of all variables has no additive bound.
    let additive = AdditiveGpUcbSettings {
        acquisition: Acquisition::Additive,
        ..AdditiveGpUcbSettings::gp_ucb()
    };
    not_built(Method::GpUcb(Box::new(additive)), "acquisition", "additive");
}

#[test]
fn the_truth_must_be_given_and_fit() {
    let oracle = |truth: Option<AdditivePrior>| {
        Method::Oracle(Box::new(AdditiveGpUcbSettings::oracle(truth)))
    };
    not_built(Method::named("oracle").unwrap(), "structure", "given");
    assert!(oracle(Some(truth(3))).build(Space::unit_cube(3).unwrap()).is_ok());
    let wrong = oracle(Some(truth(4))).build(Space::unit_cube(3).unwrap()).err().unwrap();
    assert!(matches!(wrong, Error::WrongDimension { expected: 3, found: 4, .. }), "{wrong:?}");
    let mut beyond = truth(3);
    beyond.components.push(Component::single(3));
    let wrong = oracle(Some(beyond)).build(Space::unit_cube(3).unwrap()).err().unwrap();
    assert!(matches!(wrong, Error::InvalidStructure { .. }), "{wrong:?}");
    let mut negative = truth(3);
    negative.kernel.scales[1] = -1.0;
    not_built(oracle(Some(negative)), "scales", "-1");
    // Its kernel and noise are those of raw outcomes.
    let standardised = AdditiveGpUcbSettings {
        outputs: OutputRule::Standardised,
        ..AdditiveGpUcbSettings::oracle(Some(truth(3)))
    };
    not_built(Method::Oracle(Box::new(standardised)), "outputs", "standardised");
}

#[test]
fn every_error_names_the_offending_value() {
    let space = Space::unit_cube(2).unwrap();
    let told = |x: Vec<f64>, y: f64| {
        let mut optimizer = Method::default().build(space.clone()).unwrap();
        optimizer.tell(Point(x), y).unwrap_err()
    };
    let named = |names: &[&str]| {
        let parameters = names.iter().map(|n| Parameter::real(*n, 0.0, 1.0));
        Space::new(parameters.collect()).unwrap_err()
    };
    let exhausted = {
        let fixed = Space::new(vec![Parameter::integer("i", 3, 3)]).unwrap();
        let mut optimizer = Method::default().build(fixed).unwrap();
        optimizer.tell(Point(vec![0.5]), 1.0).unwrap();
        optimizer.ask(&[], &Stream::new(0, 0)).unwrap_err()
    };
    let cycle = {
        let edges = [(0, 1), (1, 2), (0, 2)].map(|(a, b)| Edge::new(a, b).unwrap());
        Forest::from_edges(3, edges).unwrap_err()
    };
    let cases: Vec<(Error, &str, &[&str])> = vec![
        (Space::new(vec![]).unwrap_err(), "EmptySpace", &["at least one"]),
        (named(&["a", ""]), "EmptyName", &["1"]),
        (named(&["rate", "b", "rate"]), "DuplicateName", &["\"rate\""]),
        (
            Space::new(vec![Parameter::real("r", 3.5, 1.25)]).unwrap_err(),
            "InvalidDomain",
            &["\"r\"", "3.5", "1.25"],
        ),
        (
            space.encode(&[Value::Real(0.5), Value::Real(7.25)]).unwrap_err(),
            "InvalidValue",
            &["\"x1\"", "7.25"],
        ),
        (told(vec![0.5; 3], 0.0), "WrongDimension", &["3", "2"]),
        (told(vec![0.5, -2.5], 0.0), "InvalidPoint", &["coordinate 1", "-2.5"]),
        (told(vec![f64::NAN, 0.5], 0.0), "InvalidPoint", &["coordinate 0", "NaN"]),
        (told(vec![0.5; 2], f64::NEG_INFINITY), "InvalidOutcome", &["-inf"]),
        (Method::named("magic").unwrap_err(), "UnknownMethod", &["method", "magic"]),
        (Grid::new(vec![vec![0.0], vec![]]).unwrap_err(), "InvalidStructure", &["1"]),
        (cycle, "InvalidStructure", &["1–2", "cycle"]),
        (Edge::new(4, 4).unwrap_err(), "InvalidStructure", &["4"]),
        (Error::NotPositiveDefinite { pivot: 17 }, "NotPositiveDefinite", &["17"]),
        (Error::TableTooLarge { entries: 9001, limit: 512 }, "TableTooLarge", &["9001", "512"]),
        (exhausted, "SpaceExhausted", &["1"]),
        (minimize(&space, 3, 0, |_| f64::INFINITY).unwrap_err(), "Objective", &["trial 2", "inf"]),
    ];
    for (error, variant, parts) in cases {
        assert!(format!("{error:?}").starts_with(variant), "{error:?}");
        let text = error.to_string();
        assert!(!text.trim().is_empty());
        for part in parts {
            assert!(text.contains(part), "{variant}: {part} is not in {text:?}");
        }
    }
}
