//! Ready-made problems, most of them the paper's, and what there is to say about a problem in a list.

use boscage::Domain;

use crate::problem::{Certainty, Goal, Preset, Problem, ProblemSpec};
use crate::problems::additive::{AdditiveDraw, DrawDomain};
use crate::problems::closed_form::{ClosedForm, Function};
use crate::problems::discrete::{Discrete, DiscreteFunction};
use crate::problems::graphs::{GraphShape, four_generations};
use crate::problems::linear_ranges::{LinearRanges, LinearRangesFunction};
use crate::problems::penalised::{Penalised, PenalisedShape};
use crate::problems::rotated::{Rotated, RotatedFunction};

/// The noise of the paper's synthetic experiments.
const PAPER_NOISE: f64 = 0.15;

/// All ready-made problems. `benches/peers` compares optimizers on some of them; it says which.
pub fn presets() -> Vec<Preset> {
    let drawn = |name, summary, graph| Preset {
        name,
        summary,
        spec: ProblemSpec::Additive(AdditiveDraw::new(graph)),
    };
    let drawn_everywhere = |name, summary, graph| Preset {
        name,
        summary,
        spec: ProblemSpec::Additive(AdditiveDraw {
            domain: DrawDomain::Continuous,
            ..AdditiveDraw::new(graph)
        }),
    };
    let rotated = |name, summary, spec| Preset { name, summary, spec: ProblemSpec::Rotated(spec) };
    let discrete = |name, summary, function| Preset {
        name,
        summary,
        spec: ProblemSpec::Discrete(Discrete::new(function)),
    };
    let penalised = |name, summary, shape| Preset {
        name,
        summary,
        spec: ProblemSpec::Penalised(Penalised::new(shape)),
    };
    let linear = |name, summary, function, noise_std| Preset {
        name,
        summary,
        spec: ProblemSpec::LinearRanges(LinearRanges { noise_std, ..LinearRanges::new(function) }),
    };
    let turned = |function| Rotated { noise_std: PAPER_NOISE, ..Rotated::new(function) };
    let moved = |function, variables| Rotated {
        dimension: Some(variables),
        turn: false,
        ..turned(function)
    };
    // The box of the published experiments. The minimum is at −2.9 on each axis, far from the centre and the corners.
    let styblinski_tang = |dimension| ClosedForm {
        low: Some(-4.0),
        high: Some(4.0),
        dimension: Some(dimension),
        noise_std: PAPER_NOISE,
        ..ClosedForm::new(Function::StyblinskiTang)
    };
    let formula =
        |name, summary, spec| Preset { name, summary, spec: ProblemSpec::ClosedForm(spec) };
    let of = |function, dimension| ClosedForm {
        dimension: Some(dimension),
        ..ClosedForm::new(function)
    };
    let noisy = |spec: ClosedForm| ClosedForm { noise_std: PAPER_NOISE, ..spec };
    let among =
        |function, auxiliary| ClosedForm { auxiliary, permute: true, ..ClosedForm::new(function) };
    vec![
        drawn(
            "star25",
            "GP draw, one variable joined to 24 others",
            GraphShape::Star { vertices: 25 },
        ),
        drawn("path10", "GP draw, 10 variables in a row", GraphShape::Path { vertices: 10 }),
        drawn("empty10", "GP draw, 10 variables on their own", GraphShape::Empty { vertices: 10 }),
        drawn(
            "partition12",
            "GP draw, four triangles",
            GraphShape::Partition { sizes: vec![3; 4] },
        ),
        drawn_everywhere(
            "star25-continuous",
            "GP draw, a continuous function on a star of 25 variables",
            GraphShape::Star { vertices: 25 },
        ),
        drawn_everywhere(
            "path50-continuous",
            "GP draw, a continuous function of 50 variables in a row",
            GraphShape::Path { vertices: 50 },
        ),
        drawn_everywhere(
            "partition12-continuous",
            "GP draw, a continuous function on four triangles",
            GraphShape::Partition { sizes: vec![3; 4] },
        ),
        drawn_everywhere(
            "grid3x3",
            "GP draw, a continuous function on a 3 × 3 lattice",
            GraphShape::Grid { rows: 3, columns: None },
        ),
        drawn_everywhere(
            "ancestry132",
            "GP draw, a continuous function on a random family tree of 1, 15, 43 and 73 members",
            GraphShape::Ancestry { generations: four_generations() },
        ),
        drawn(
            "erdos-renyi20",
            "GP draw, a random graph with 2 neighbours on average",
            GraphShape::ErdosRenyi { vertices: 20, degree: 2.0 },
        ),
        drawn(
            "power-law-tree50",
            "GP draw, a random tree with few hubs and many leaves",
            GraphShape::PowerLawTree { vertices: 50, exponent: 3.0 },
        ),
        drawn(
            "random-tree50",
            "GP draw, a tree drawn from all trees",
            GraphShape::RandomTree { vertices: 50 },
        ),
        drawn_everywhere(
            "random-tree50-continuous",
            "GP draw, a continuous function on a tree drawn from all trees",
            GraphShape::RandomTree { vertices: 50 },
        ),
        formula(
            "hartmann6",
            "Hartmann's function: all 6 variables interact",
            noisy(ClosedForm::new(Function::Hartmann6)),
        ),
        formula(
            "hartmann6+14",
            "Hartmann6 hidden among 14 variables that do not matter",
            noisy(among(Function::Hartmann6, 14)),
        ),
        formula(
            "camelback",
            "six-hump camel: 2 variables, 2 minima",
            noisy(ClosedForm::new(Function::Camelback)),
        ),
        formula(
            "camelback+8",
            "six-hump camel hidden among 8 variables that do not matter",
            noisy(among(Function::Camelback, 8)),
        ),
        formula(
            "camelback+10",
            "six-hump camel hidden among 10 variables that do not matter",
            noisy(among(Function::Camelback, 10)),
        ),
        formula(
            "styblinski-tang-20",
            "Styblinski–Tang: no interactions, two wells a variable; moved by the seed",
            ClosedForm { shift: true, ..of(Function::StyblinskiTang, 20) },
        ),
        formula(
            "styblinski-tang-50",
            "Styblinski–Tang in 50 dimensions, on the box of the published experiments",
            styblinski_tang(50),
        ),
        formula(
            "styblinski-tang-100",
            "Styblinski–Tang in 100 dimensions, on the box of the published experiments",
            styblinski_tang(100),
        ),
        formula(
            "styblinski-tang-250",
            "Styblinski–Tang in 250 dimensions, on the box of the published experiments",
            styblinski_tang(250),
        ),
        formula(
            "rosenbrock-20",
            "Rosenbrock: a curved valley along a path of variables; moved by the seed",
            ClosedForm { shift: true, ..of(Function::Rosenbrock, 20) },
        ),
        formula(
            "rosenbrock-20-noisy",
            "Rosenbrock as it is usually stated, not moved, with noise",
            noisy(of(Function::Rosenbrock, 20)),
        ),
        formula(
            "gaussian-4",
            "one narrow well: flat nearly everywhere; moved by the seed",
            ClosedForm { shift: true, ..of(Function::Gaussian, 4) },
        ),
        rotated(
            "ackley-rotated-20",
            "Ackley, turned about and moved by the seed: many small wells in a wide one",
            turned(RotatedFunction::Ackley),
        ),
        rotated(
            "levy-rotated-12",
            "Lévy, turned about and moved by the seed",
            turned(RotatedFunction::Levy),
        ),
        rotated(
            "hartmann6-embedded-40",
            "Hartmann6 in a random subspace of 40 dimensions: all variables matter",
            turned(RotatedFunction::Hartmann6),
        ),
        rotated(
            "ellipsoid-integer-16",
            "a quadratic bowl in integers, turned about and moved by the seed",
            Rotated { integer: true, ..Rotated::new(RotatedFunction::Ellipsoid) },
        ),
        rotated(
            "rastrigin-rotated-10",
            "Rastrigin, turned about and moved by the seed: deep wells in a wide one",
            turned(RotatedFunction::Rastrigin),
        ),
        rotated(
            "griewank-rotated-10",
            "Griewank, turned about and moved by the seed: ripples on a wide bowl",
            turned(RotatedFunction::Griewank),
        ),
        rotated(
            "rosenbrock-rotated-10",
            "Rosenbrock's curved valley, turned about and moved by the seed",
            turned(RotatedFunction::Rosenbrock),
        ),
        rotated(
            "styblinski-tang-rotated-15",
            "Styblinski–Tang, turned about and moved by the seed",
            turned(RotatedFunction::StyblinskiTang),
        ),
        rotated(
            "ellipsoid-rotated-20",
            "a quadratic bowl of 20 variables, turned about and moved by the seed",
            Rotated { dimension: Some(20), ..turned(RotatedFunction::Ellipsoid) },
        ),
        rotated(
            "quadratic-embedded-100",
            "a quadratic bowl in a random subspace of 100 dimensions: 8 directions matter",
            turned(RotatedFunction::Quadratic),
        ),
        rotated(
            "ackley-moved-50",
            "Ackley of 50 variables, its minimum moved by the seed",
            moved(RotatedFunction::Ackley, 50),
        ),
        rotated(
            "levy-moved-50",
            "Lévy of 50 variables, its minimum moved by the seed",
            moved(RotatedFunction::Levy, 50),
        ),
        rotated(
            "rastrigin-moved-30",
            "Rastrigin of 30 variables, its minimum moved by the seed",
            moved(RotatedFunction::Rastrigin, 30),
        ),
        rotated(
            "griewank-moved-60",
            "Griewank of 60 variables, its minimum moved by the seed: a wide bowl",
            moved(RotatedFunction::Griewank, 60),
        ),
        rotated(
            "rosenbrock-moved-40",
            "Rosenbrock's curved valley in 40 variables, moved by the seed",
            moved(RotatedFunction::Rosenbrock, 40),
        ),
        rotated(
            "styblinski-tang-moved-50",
            "Styblinski–Tang of 50 variables, its minimum moved by the seed",
            moved(RotatedFunction::StyblinskiTang, 50),
        ),
        rotated(
            "ellipsoid-moved-100",
            "a quadratic bowl of 100 variables of different weights, moved by the seed",
            moved(RotatedFunction::Ellipsoid, 100),
        ),
        discrete(
            "ackley53",
            "Ackley of 50 truth values and 3 reals; the seed says which are best",
            DiscreteFunction::Ackley,
        ),
        discrete(
            "pest-control-25",
            "a pesticide or none in each of 25 stages; the seed makes the weather",
            DiscreteFunction::PestControl,
        ),
        discrete(
            "labs-40",
            "binary sequence with low autocorrelation: minus the merit factor of 40 signs",
            DiscreteFunction::LowAutocorrelation,
        ),
        penalised(
            "half-spaces-penalised-20",
            "a quadratic bowl, and a million outside of three half spaces; the seed draws them",
            PenalisedShape::HalfSpaces,
        ),
        penalised(
            "corner-penalised-20",
            "a quadratic bowl, and a million outside of one corner; the seed says which",
            PenalisedShape::Corner,
        ),
        penalised(
            "choices-penalised-20",
            "a quadratic bowl, and a million where two levels clash; the seed says which",
            PenalisedShape::Choices,
        ),
        penalised(
            "memory-penalised-20",
            "a quadratic bowl, and a million where a product is too large",
            PenalisedShape::Memory,
        ),
        linear(
            "log-bowl-20",
            "a bowl of 20 logarithms, 10 of them in pairs, on linear ranges",
            LinearRangesFunction::Bowl,
            0.02,
        ),
        linear(
            "log-bowl-turned-10",
            "a bowl of 10 logarithms that all act together, on linear ranges",
            LinearRangesFunction::TurnedBowl,
            0.02,
        ),
        linear(
            "log-few-12",
            "12 linear ranges, of which 4 should be logarithmic; the seed says which",
            LinearRangesFunction::Few,
            0.05,
        ),
        linear(
            "saturating-20",
            "20 things that cost, and help until they saturate; the seed says when",
            LinearRangesFunction::Saturating,
            0.02,
        ),
        linear(
            "log-counts-18",
            "6 counts up to 1000 of which few are right, 6 reals and 6 choices",
            LinearRangesFunction::Counts,
            0.05,
        ),
        linear(
            "power-time-16",
            "a run time: too little or too much of any of 16 things multiplies it",
            LinearRangesFunction::Powers,
            0.05,
        ),
    ]
}

/// The ready-made problem of this name.
pub fn preset(name: &str) -> Option<Preset> {
    presets().into_iter().find(|preset| preset.name == name)
}

/// What there is to say about a problem in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ProblemFacts {
    /// Number of parameters.
    pub dimension: usize,
    /// Their values in words, such as `51 levels in [0, 1]` or `real in [−5, 5]`.
    pub domain: String,
    /// The best value and how sure it is, if it is known.
    pub optimum: Option<(f64, Certainty)>,
    /// Standard deviation of the noise.
    pub noise_std: f64,
    /// Number of edges of the true graph, if it is known.
    pub edges: Option<usize>,
    /// What is sought.
    pub goal: Goal,
}

/// What there is to say about a problem in a list.
pub fn facts(problem: &dyn Problem) -> ProblemFacts {
    let mut domains: Vec<String> = Vec::new();
    for parameter in problem.space().parameters() {
        let domain = domain_in_words(&parameter.domain);
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    domains.sort();
    ProblemFacts {
        dimension: problem.space().dimension(),
        domain: if domains.len() <= 2 { domains.join(" or ") } else { "mixed".to_string() },
        optimum: problem.optimum().map(|optimum| (optimum.value, optimum.certainty)),
        noise_std: problem.noise_std(),
        edges: problem.graph().map(|graph| graph.edge_count()),
        goal: problem.goal(),
    }
}

fn domain_in_words(domain: &Domain) -> String {
    let words = match domain {
        Domain::Real { low, high, log } => {
            format!("real in [{low}, {high}]{}", if *log { ", log scale" } else { "" })
        }
        Domain::Integer { low, high, log, .. } => {
            format!("integer in [{low}, {high}]{}", if *log { ", log scale" } else { "" })
        }
        Domain::Ordinal { levels } => match levels[..] {
            [] => "no levels".to_string(),
            [only] => format!("1 level, {only}"),
            [first, .., last] => format!("{} levels in [{first}, {last}]", levels.len()),
        },
        Domain::Boolean => "boolean".to_string(),
        Domain::Categorical { choices } => format!("{} choices", choices.len()),
    };
    // A true minus, as in all other text for people.
    words.replace('-', "−")
}
