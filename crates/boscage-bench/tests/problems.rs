//! The problems through their public interface: graphs, drawn functions, formulas and presets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::path::Path;

use boscage::acquisition::AdditiveFunction;
use boscage::graph::{Edge, Graph};
use boscage::message_passing::Grid;
use boscage::stream::{Generator, Purpose};
use boscage::{Point, Stream, Value};
use boscage_bench::problem::{Certainty, Goal, Problem, ProblemSpec};
use boscage_bench::problems::additive::{AdditiveDraw, DrawDomain, DrawnFunction};
use boscage_bench::problems::closed_form::{ClosedForm, ClosedFormFunction, Function};
use boscage_bench::problems::discrete::{Discrete, DiscreteFunction, DiscreteProblem};
use boscage_bench::problems::graphs::GraphShape;
use boscage_bench::problems::rotated::{Rotated, RotatedFunction};
use boscage_bench::problems::{ProblemFacts, facts, preset, presets};
use rand::RngExt;

fn generator(seed: u64) -> Generator {
    Stream::new(seed, 0).generator(Purpose::Problem)
}

fn here() -> &'static Path {
    Path::new(".")
}

fn build(shape: &GraphShape, seed: u64) -> Graph {
    shape.build(&mut generator(seed), here()).unwrap()
}

fn pairs(graph: &Graph) -> Vec<(usize, usize)> {
    graph.edges().iter().map(|edge| (edge.low(), edge.high())).collect()
}

fn is_tree(graph: &Graph) -> bool {
    graph.is_forest() && graph.edge_count() + 1 == graph.dimension()
}

fn draw(spec: &AdditiveDraw, seed: u64) -> DrawnFunction {
    spec.build(seed, here()).unwrap()
}

fn at(problem: &dyn Problem, x: &[f64]) -> f64 {
    problem.evaluate(&x.iter().map(|&x| Value::Real(x)).collect::<Vec<_>>()).unwrap()
}

fn at_point(problem: &dyn Problem, point: &Point) -> f64 {
    problem.evaluate(&problem.space().decode(point).unwrap()).unwrap()
}

/// The best value that several random starts, each with a search along the axes, come to. Finite axes try all levels, others
/// a step to either side that is halved when it does not help.
fn search(problem: &dyn Problem, starts: usize, seed: u64) -> f64 {
    let space = problem.space();
    let sign = problem.goal().sign();
    let value = |x: &[f64]| sign * at_point(problem, &Point(x.to_vec()));
    let mut rng = generator(seed);
    let mut best = f64::NEG_INFINITY;
    for _ in 0..starts {
        let mut x = space.sample(&mut rng).0;
        let mut height = value(&x);
        let mut step = 0.25;
        let mut rounds = 0;
        while step > 1e-7 && rounds < 200 {
            rounds += 1;
            let before = height;
            for d in 0..x.len() {
                let tried: Vec<f64> = match space.levels(d) {
                    Some(levels) => (0..levels).map(|level| space.coordinate(d, level)).collect(),
                    None => vec![(x[d] - step).max(0.0), (x[d] + step).min(1.0)],
                };
                for coordinate in tried {
                    let old = std::mem::replace(&mut x[d], coordinate);
                    let new = value(&x);
                    if new > height {
                        height = new;
                    } else {
                        x[d] = old;
                    }
                }
            }
            if height <= before {
                step = if space.levels(0).is_some() { 0.0 } else { step / 2.0 };
            }
        }
        best = best.max(height);
    }
    sign * best
}

// ---------------------------------------------------------------------------------------------------------------- graphs

#[test]
fn regular_shapes_have_the_edges_they_should() {
    let star = build(&GraphShape::Star { vertices: 5 }, 0);
    assert_eq!(pairs(&star), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    let path = build(&GraphShape::Path { vertices: 4 }, 0);
    assert_eq!(pairs(&path), [(0, 1), (1, 2), (2, 3)]);
    let empty = build(&GraphShape::Empty { vertices: 7 }, 0);
    assert_eq!((empty.dimension(), empty.edge_count()), (7, 0));
    let grid = build(&GraphShape::Grid { rows: 2, columns: Some(3) }, 0);
    assert_eq!(pairs(&grid), [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]);
    let square = build(&GraphShape::Grid { rows: 15, columns: None }, 0);
    assert_eq!((square.dimension(), square.edge_count()), (225, 420));
    let partition = build(&GraphShape::Partition { sizes: vec![1, 2, 3] }, 0);
    assert_eq!(partition.dimension(), 6);
    assert_eq!(pairs(&partition), [(1, 2), (3, 4), (3, 5), (4, 5)]);
    for shape in [
        GraphShape::Star { vertices: 1 },
        GraphShape::Path { vertices: 1 },
        GraphShape::Grid { rows: 1, columns: None },
        GraphShape::RandomTree { vertices: 1 },
        GraphShape::PowerLawTree { vertices: 1, exponent: 3.0 },
        GraphShape::Ancestry { generations: vec![1] },
        GraphShape::ErdosRenyi { vertices: 1, degree: 1.0 },
    ] {
        let graph = build(&shape, 0);
        assert_eq!((graph.dimension(), graph.edge_count()), (1, 0), "{shape:?}");
    }
}

#[test]
fn random_trees_are_trees_that_the_generator_decides() {
    for vertices in [1, 2, 3, 4, 7, 50, 333] {
        for shape in [
            GraphShape::RandomTree { vertices },
            GraphShape::PowerLawTree { vertices, exponent: 3.0 },
            GraphShape::PowerLawTree { vertices, exponent: 1.5 },
            GraphShape::PowerLawTree { vertices, exponent: 10.0 },
        ] {
            for seed in 0..10 {
                let graph = build(&shape, seed);
                assert_eq!(graph.dimension(), vertices);
                assert!(is_tree(&graph), "{shape:?}, seed {seed}");
                assert_eq!(graph, build(&shape, seed));
            }
            assert!(vertices < 50 || build(&shape, 0) != build(&shape, 1), "{shape:?}");
        }
    }
}

/// How often each graph comes up in `count` draws of one generator.
fn frequencies(shape: &GraphShape, count: usize) -> HashMap<Graph, usize> {
    let mut rng = generator(2021);
    let mut seen = HashMap::new();
    for _ in 0..count {
        *seen.entry(shape.build(&mut rng, here()).unwrap()).or_insert(0) += 1;
    }
    seen
}

#[test]
fn all_labelled_trees_are_equally_likely() {
    // 16 trees on 4 vertices, 16,000 draws: each has mean 1,000 and standard deviation 30.6.
    let seen = frequencies(&GraphShape::RandomTree { vertices: 4 }, 16_000);
    assert_eq!(seen.len(), 16);
    let deviation = (16_000.0 * 1.0 / 16.0 * 15.0 / 16.0_f64).sqrt();
    let mut chi_square = 0.0;
    for count in seen.values() {
        let off = *count as f64 - 1_000.0;
        assert!(off.abs() < 4.0 * deviation, "{count}");
        chi_square += off * off / 1_000.0;
    }
    // 15 degrees of freedom: mean 15, standard deviation √30.
    assert!(chi_square < 15.0 + 4.0 * 30.0_f64.sqrt(), "{chi_square}");
}

#[test]
fn power_law_trees_have_the_probabilities_of_their_definition() {
    // A degree of k has weight P(k) = (k − ½)^−2 − (k + ½)^−2, and P(1) = 1 − 1.5^−2. On 4 vertices there are 4 stars, with
    // degrees (3, 1, 1, 1) in some order, and 12 paths, two for each of 6 orders of (2, 2, 1, 1).
    let (one, two, three) =
        (1.0 - 1.5_f64.powi(-2), 1.5_f64.powi(-2) - 0.16, 0.16 - 3.5_f64.powi(-2));
    let (star, path) = (three * one.powi(3), two.powi(2) * one.powi(2) / 2.0);
    let total = 4.0 * star + 12.0 * path;
    let count = 20_000;
    let seen = frequencies(&GraphShape::PowerLawTree { vertices: 4, exponent: 3.0 }, count);
    assert_eq!(seen.len(), 16);
    for (graph, seen) in seen {
        let is_star = (0..4).any(|i| graph.neighbors(i).len() == 3);
        let probability = if is_star { star } else { path } / total;
        let deviation = (count as f64 * probability * (1.0 - probability)).sqrt();
        let off = seen as f64 - count as f64 * probability;
        assert!(
            off.abs() < 4.0 * deviation,
            "star {is_star}: {off} is {} deviations",
            off / deviation
        );
    }
}

#[test]
fn degrees_of_power_law_trees_are_those_of_drawing_until_the_sum_fits() {
    // The obvious way: independent rounded Pareto numbers, thrown away unless they add up. 4,000 trees of 9 vertices each.
    let (vertices, trees) = (9, 4_000);
    let mut rng = generator(5);
    let statistics = |degrees: &[usize]| {
        let leaves = degrees.iter().filter(|&&degree| degree == 1).count() as f64;
        let most = degrees.iter().copied().max().unwrap() as f64;
        [leaves, most, degrees.iter().map(|degree| (degree * degree) as f64).sum()]
    };
    let mut slow = Vec::new();
    while slow.len() < trees {
        let degree = |_| (1.0 - rng.random::<f64>()).powf(-0.5).round() as usize;
        let degrees: Vec<usize> = (0..vertices).map(degree).collect();
        if degrees.iter().sum::<usize>() == 2 * (vertices - 1) {
            slow.push(statistics(&degrees));
        }
    }
    let shape = GraphShape::PowerLawTree { vertices, exponent: 3.0 };
    let fast: Vec<[f64; 3]> = (0..trees)
        .map(|_| {
            let graph = shape.build(&mut rng, here()).unwrap();
            statistics(&(0..vertices).map(|i| graph.neighbors(i).len()).collect::<Vec<_>>())
        })
        .collect();
    for k in 0..3 {
        let moments = |all: &[[f64; 3]]| {
            let mean = all.iter().map(|s| s[k]).sum::<f64>() / trees as f64;
            (mean, all.iter().map(|s| (s[k] - mean).powi(2)).sum::<f64>() / (trees as f64).powi(2))
        };
        let ((slow, slow_variance), (fast, fast_variance)) = (moments(&slow), moments(&fast));
        let error = (slow_variance + fast_variance).sqrt();
        assert!(
            (slow - fast).abs() < 4.0 * error,
            "statistic {k}: {slow} and {fast}, standard error {error}"
        );
    }
}

#[test]
fn erdos_renyi_edges_come_up_with_their_probability() {
    // 400 graphs on 30 vertices: 174,000 pairs with probability 2/30.
    let shape = GraphShape::ErdosRenyi { vertices: 30, degree: 2.0 };
    let mut rng = generator(3);
    let graphs: Vec<Graph> = (0..400).map(|_| shape.build(&mut rng, here()).unwrap()).collect();
    let (pairs, probability) = (400.0 * 435.0, 2.0 / 30.0);
    let edges = graphs.iter().map(Graph::edge_count).sum::<usize>() as f64;
    let deviation = f64::sqrt(pairs * probability * (1.0 - probability));
    assert!((edges - pairs * probability).abs() < 4.0 * deviation, "{edges}");
    // Each vertex on its own: 11,600 pairs.
    for i in 0..30 {
        let degree = graphs.iter().map(|graph| graph.neighbors(i).len()).sum::<usize>() as f64;
        let deviation = f64::sqrt(11_600.0 * probability * (1.0 - probability));
        assert!((degree - 11_600.0 * probability).abs() < 4.5 * deviation, "vertex {i}: {degree}");
    }
    let complete = build(&GraphShape::ErdosRenyi { vertices: 6, degree: 6.0 }, 1);
    assert_eq!(complete.edge_count(), 15);
    assert_eq!(build(&GraphShape::ErdosRenyi { vertices: 6, degree: 0.0 }, 1).edge_count(), 0);
}

#[test]
fn every_member_of_an_ancestry_has_one_parent_in_the_generation_before() {
    let shape: GraphShape = toml::from_str("shape = \"ancestry\"").unwrap();
    assert_eq!(shape, GraphShape::Ancestry { generations: vec![1, 15, 43, 73] });
    let starts = [0, 1, 16, 59, 132];
    let generation = |i: usize| starts.iter().filter(|&&start| start <= i).count() - 1;
    for seed in 0..20 {
        let graph = build(&shape, seed);
        assert!(is_tree(&graph));
        assert_eq!((graph.dimension(), graph.neighbors(0).len()), (132, 15));
        for i in 1..132 {
            let parents =
                graph.neighbors(i).iter().filter(|&&j| generation(j) + 1 == generation(i)).count();
            let children =
                graph.neighbors(i).iter().filter(|&&j| generation(j) == generation(i) + 1).count();
            assert_eq!((parents, parents + children), (1, graph.neighbors(i).len()));
        }
    }
    // 3,000 families in which one member chooses between three parents.
    let mut counts = [0; 3];
    let mut rng = generator(8);
    for _ in 0..3_000 {
        let graph =
            GraphShape::Ancestry { generations: vec![1, 3, 1] }.build(&mut rng, here()).unwrap();
        counts[graph.neighbors(4)[0] - 1] += 1;
    }
    for count in counts {
        assert!(
            (f64::from(count) - 1_000.0).abs() < 4.0 * (3_000.0 * 2.0 / 9.0_f64).sqrt(),
            "{counts:?}"
        );
    }
}

#[test]
fn edge_lists_are_read_and_their_mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str, vertices: Option<usize>| {
        std::fs::write(folder.path().join("edges.txt"), text).unwrap();
        let shape = GraphShape::EdgeList { file: "edges.txt".into(), vertices };
        shape.build(&mut generator(0), folder.path()).map_err(|error| error.to_string())
    };
    let graph = read("# a comment\n0 1\n\n 3\t1 # another\n", None).unwrap();
    assert_eq!((graph.dimension(), pairs(&graph)), (4, vec![(0, 1), (1, 3)]));
    assert_eq!(read("0 1\n", Some(9)).unwrap().dimension(), 9);
    assert_eq!(read("", Some(2)).unwrap(), Graph::empty(2));
    for (text, vertices, expected) in [
        ("0 1\n1 two\n", None, "line 2: \"two\" is not a vertex number"),
        ("0 -1\n", None, "line 1: \"-1\" is not a vertex number"),
        ("0 1.5\n", None, "line 1: \"1.5\" is not a vertex number"),
        ("\n\n4 4\n", None, "line 3: the edge joins vertex 4 to itself"),
        ("0 1\n1 2\n1 0\n", None, "line 3: edge 1 0 is already in line 1"),
        ("0 1 2\n", None, "line 1: there are 3 words"),
        ("0\n", None, "line 1: there is 1 word, but"),
        ("0 10000\n", None, "line 1: vertex 10000 is too large"),
        ("0 99999999999999999999999\n", None, "is not a vertex number"),
        ("0 5\n", Some(5), "there is a vertex 5, but only 5 vertices"),
        ("# nothing\n", None, "there are no edges"),
        ("", Some(20_000), "at most 10000"),
    ] {
        let error = read(text, vertices).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let missing = GraphShape::EdgeList { file: "nowhere.txt".into(), vertices: None };
    let error = missing.build(&mut generator(0), folder.path()).unwrap_err().to_string();
    assert!(error.contains("nowhere.txt") && error.contains("reading failed"), "{error}");
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    for (shape, expected) in [
        (GraphShape::Star { vertices: 0 }, "0 vertices"),
        (GraphShape::Path { vertices: 10_001 }, "at most 10000"),
        (GraphShape::Empty { vertices: usize::MAX }, "at most 10000"),
        (GraphShape::Grid { rows: 0, columns: None }, "0 rows"),
        (GraphShape::Grid { rows: 3, columns: Some(0) }, "0 columns"),
        (GraphShape::Grid { rows: usize::MAX, columns: None }, "at most 10000"),
        (GraphShape::Partition { sizes: vec![] }, "0 vertices"),
        (GraphShape::Partition { sizes: vec![3, 0] }, "clique 1 of a partition has size 0"),
        (GraphShape::Partition { sizes: vec![usize::MAX, 2] }, "at most 10000"),
        (GraphShape::Partition { sizes: vec![5_000] }, "edges; at most 1000000"),
        (GraphShape::ErdosRenyi { vertices: 5, degree: -1.0 }, "degree -1"),
        (GraphShape::ErdosRenyi { vertices: 5, degree: 5.5 }, "degree 5.5"),
        (GraphShape::ErdosRenyi { vertices: 5, degree: f64::NAN }, "degree NaN"),
        (GraphShape::ErdosRenyi { vertices: 10_000, degree: 1e4 }, "edges; at most 1000000"),
        (GraphShape::PowerLawTree { vertices: 5, exponent: 1.0 }, "exponent 1 "),
        (GraphShape::PowerLawTree { vertices: 5, exponent: f64::INFINITY }, "exponent inf"),
        (GraphShape::PowerLawTree { vertices: 0, exponent: 3.0 }, "0 vertices"),
        (GraphShape::RandomTree { vertices: 0 }, "0 vertices"),
        (GraphShape::Ancestry { generations: vec![] }, "do not begin with 1"),
        (GraphShape::Ancestry { generations: vec![2, 3] }, "do not begin with 1"),
        (
            GraphShape::Ancestry { generations: vec![1, 0, 3] },
            "generation 1 of an ancestry has 0 members",
        ),
        (GraphShape::Ancestry { generations: vec![1, 10_000] }, "at most 10000"),
    ] {
        let error = shape.build(&mut generator(0), here()).unwrap_err().to_string();
        assert!(error.contains(expected), "{shape:?}: {error}");
    }
    assert!(toml::from_str::<GraphShape>("shape = \"star\"\nvertices = 3\nsize = 4").is_err());
    assert!(toml::from_str::<GraphShape>("shape = \"ring\"\nvertices = 3").is_err());
}

// ------------------------------------------------------------------------------------------------------- drawn functions

fn kernel(x: f64, y: f64, lengthscale: f64) -> f64 {
    (-(x - y) * (x - y) / (2.0 * lengthscale * lengthscale)).exp()
}

#[test]
fn drawn_components_are_independent_and_have_the_covariance_of_the_kernel() {
    // A triangle and an isolated vertex on 3 levels: three tables of 9 numbers and one of 3. All 465 covariances from 6,000
    // draws, in standard errors √((Σ_aa Σ_bb + Σ_ab²) / n).
    let (lengthscale, variance) = (0.7, 2.0);
    let spec = AdditiveDraw {
        levels: 3,
        lengthscale,
        variance,
        ..AdditiveDraw::new(GraphShape::Partition { sizes: vec![3, 1] })
    };
    let levels = [0.0, 0.5, 1.0];
    let grid = Grid::new(vec![levels.to_vec(); 4]).unwrap();
    let draws = 6_000;
    let mut places = Vec::new();
    let mut sums = vec![0.0; 30 * 30];
    let mut means = [0.0; 30];
    for seed in 0..draws {
        let function = draw(&spec, seed);
        let tables = function.tabulate(&grid).unwrap();
        if places.is_empty() {
            for (number, component) in function.components().iter().enumerate() {
                for a in levels {
                    match component.len() {
                        1 => places.push((number, vec![a])),
                        _ => places.extend(levels.iter().map(|&b| (number, vec![a, b]))),
                    }
                }
            }
        }
        let values = tables.concat();
        for a in 0..30 {
            means[a] += values[a] / draws as f64;
            for b in 0..30 {
                sums[a * 30 + b] += values[a] * values[b] / draws as f64;
            }
        }
    }
    assert_eq!(places.len(), 30);
    let covariance = |a: usize, b: usize| {
        let ((first, x), (second, y)) = (&places[a], &places[b]);
        let product: f64 = x.iter().zip(y).map(|(&x, &y)| kernel(x, y, lengthscale)).product();
        if first == second { variance * product } else { 0.0 }
    };
    let mut largest = 0.0_f64;
    for (a, mean) in means.iter().enumerate() {
        largest = largest.max((mean / (variance / draws as f64).sqrt()).abs());
        for b in 0..=a {
            let error = ((variance * variance + covariance(a, b).powi(2)) / draws as f64).sqrt();
            let off = (sums[a * 30 + b] - covariance(a, b)) / error;
            largest = largest.max(off.abs());
        }
    }
    // The largest of about 500 standard normal numbers is near 3.1 and above 4.5 once in 300 times.
    assert!(largest < 4.5, "{largest} standard errors");
}

#[test]
fn a_function_is_the_sum_of_its_components() {
    let spec = AdditiveDraw {
        levels: 6,
        ..AdditiveDraw::new(GraphShape::Partition { sizes: vec![3, 2, 1] })
    };
    let function = draw(&spec, 1);
    let mut rng = generator(0);
    for _ in 0..50 {
        let point = function.space().sample(&mut rng);
        let grid = Grid::new(point.0.iter().map(|&x| vec![x]).collect()).unwrap();
        let sum: f64 = function.tabulate(&grid).unwrap().concat().iter().sum();
        approx::assert_abs_diff_eq!(sum, at_point(&function, &point), epsilon = 1e-12);
    }
    assert_eq!(function.graph().unwrap(), &build(&spec.graph, 0));
    assert_eq!((function.goal(), function.noise_std()), (Goal::Maximize, 0.15));
    assert!(function.tabulate(&Grid::new(vec![vec![0.0]; 5]).unwrap()).is_err());
}

#[test]
fn a_seed_repeats_its_function_and_others_differ() {
    let spec =
        AdditiveDraw { levels: 11, ..AdditiveDraw::new(GraphShape::RandomTree { vertices: 8 }) };
    let fixed = AdditiveDraw { draw_seed: Some(3), ..spec.clone() };
    let x = [0.1, 0.9, 0.5, 0.0, 1.0, 0.3, 0.7, 0.2];
    let all = |spec: &AdditiveDraw, seed| {
        let function = draw(spec, seed);
        (function.graph().unwrap().clone(), at(&function, &x), function.optimum().unwrap().clone())
    };
    assert_eq!(all(&spec, 3), all(&spec, 3));
    assert_ne!(all(&spec, 3).1, all(&spec, 4).1);
    assert_ne!(all(&spec, 3).0, all(&spec, 4).0);
    assert_eq!(all(&fixed, 3), all(&spec, 3));
    assert_eq!(all(&fixed, 77), all(&spec, 3));
    assert_eq!(&spec.check(3, here()).unwrap(), draw(&spec, 3).space());
}

#[test]
fn the_continuous_function_agrees_with_the_discrete_one_on_the_grid() {
    for (shape, levels, lengthscale) in [
        (GraphShape::Grid { rows: 2, columns: None }, 51, 0.2),
        (GraphShape::Path { vertices: 4 }, 7, 0.05),
        (GraphShape::Empty { vertices: 3 }, 150, 1.0),
    ] {
        let discrete = AdditiveDraw { levels, lengthscale, ..AdditiveDraw::new(shape) };
        let continuous = AdditiveDraw { domain: DrawDomain::Continuous, ..discrete.clone() };
        let (discrete, continuous) = (draw(&discrete, 9), draw(&continuous, 9));
        let mut rng = generator(1);
        for _ in 0..100 {
            let values = discrete.space().decode(&discrete.space().sample(&mut rng)).unwrap();
            let (a, b) =
                (discrete.evaluate(&values).unwrap(), continuous.evaluate(&values).unwrap());
            approx::assert_abs_diff_eq!(a, b, epsilon = 1e-9);
        }
        let (a, b) = (discrete.optimum().unwrap(), continuous.optimum().unwrap());
        assert!(b.value >= a.value - 1e-9, "{} {}", a.value, b.value);
        assert_eq!((a.certainty, b.certainty), (Certainty::Exact, Certainty::Polished));
    }
}

#[test]
fn continuous_functions_are_smooth() {
    // Each component has derivatives of standard deviation 1/ℓ = 5, and second ones of √3/ℓ² = 43, along each axis.
    let spec = AdditiveDraw {
        domain: DrawDomain::Continuous,
        ..AdditiveDraw::new(GraphShape::Path { vertices: 3 })
    };
    for seed in 0..5 {
        let function = draw(&spec, seed);
        let mut rng = generator(seed);
        for _ in 0..200 {
            let x: Vec<f64> = (0..3).map(|_| 0.001 + 0.998 * rng.random::<f64>()).collect();
            let axis = rng.random_range(0..3);
            let moved = |by: f64| {
                let mut x = x.clone();
                x[axis] += by;
                at(&function, &x)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let bend = (moved(1e-3) - 2.0 * moved(0.0) + moved(-1e-3)) / 1e-6;
            assert!(slope.abs() < 6.0 * 10.0 && bend.abs() < 6.0 * 86.0, "{slope} {bend}");
            // Rounding: at this step the true second difference is below 1e-10.
            let rounding = (moved(1e-6) - 2.0 * moved(0.0) + moved(-1e-6)).abs();
            assert!(rounding < 1e-9, "{rounding}");
        }
    }
}

/// The largest value on the whole grid.
fn brute_force(function: &DrawnFunction, levels: usize) -> f64 {
    let dimension = function.space().dimension();
    let mut best = f64::NEG_INFINITY;
    for mut code in 0..levels.pow(dimension as u32) {
        let mut x = Vec::with_capacity(dimension);
        for _ in 0..dimension {
            x.push((code % levels) as f64 / (levels - 1) as f64);
            code /= levels;
        }
        best = best.max(at(function, &x));
    }
    best
}

#[test]
fn the_exact_optimum_is_that_of_trying_everything() {
    for (shape, levels) in [
        (GraphShape::Path { vertices: 3 }, 9),
        (GraphShape::Star { vertices: 5 }, 5),
        (GraphShape::Partition { sizes: vec![3] }, 9),
        (GraphShape::Partition { sizes: vec![3, 1] }, 6),
        (GraphShape::Grid { rows: 2, columns: None }, 6),
        (GraphShape::Grid { rows: 2, columns: Some(3) }, 4),
        (GraphShape::Empty { vertices: 3 }, 9),
        (GraphShape::Empty { vertices: 1 }, 51),
        (GraphShape::Partition { sizes: vec![2, 1, 1] }, 6),
        (GraphShape::RandomTree { vertices: 6 }, 4),
        (GraphShape::ErdosRenyi { vertices: 6, degree: 3.0 }, 4),
    ] {
        for seed in 0..8 {
            let function = draw(&AdditiveDraw { levels, ..AdditiveDraw::new(shape.clone()) }, seed);
            let optimum = function.optimum().unwrap();
            assert_eq!(optimum.certainty, Certainty::Exact);
            assert_eq!(optimum.value, at_point(&function, &optimum.point));
            approx::assert_abs_diff_eq!(
                optimum.value,
                brute_force(&function, levels),
                epsilon = 1e-11
            );
        }
    }
}

#[test]
fn the_exact_optimum_is_not_beaten_by_search() {
    for shape in [
        GraphShape::Star { vertices: 25 },
        GraphShape::Partition { sizes: vec![3; 4] },
        GraphShape::ErdosRenyi { vertices: 12, degree: 2.0 },
        GraphShape::Empty { vertices: 10 },
    ] {
        for seed in 0..2 {
            let function = draw(&AdditiveDraw::new(shape.clone()), seed);
            let optimum = function.optimum().unwrap();
            let found = search(&function, 5, seed);
            assert!(found <= optimum.value + 1e-9, "{shape:?}: {found} above {}", optimum.value);
            assert!(
                found > optimum.value - 15.0,
                "the search does not search: {found}, {}",
                optimum.value
            );
        }
    }
}

#[test]
fn the_polished_optimum_is_not_beaten_by_search() {
    for (shape, starts) in [
        (GraphShape::Grid { rows: 3, columns: None }, 100),
        (GraphShape::Path { vertices: 2 }, 200),
        (GraphShape::Star { vertices: 6 }, 100),
        (GraphShape::Partition { sizes: vec![3, 1] }, 100),
        (GraphShape::Empty { vertices: 3 }, 100),
    ] {
        let spec =
            AdditiveDraw { domain: DrawDomain::Continuous, ..AdditiveDraw::new(shape.clone()) };
        for seed in 0..2 {
            let function = draw(&spec, seed);
            let optimum = function.optimum().unwrap();
            assert_eq!(optimum.certainty, Certainty::Polished);
            assert_eq!(optimum.value, at_point(&function, &optimum.point));
            let found = search(&function, starts, seed);
            assert!(found <= optimum.value + 1e-8, "{shape:?}: {found} above {}", optimum.value);
            if function.space().dimension() <= 3 {
                // With this many starts in so few dimensions the search finds the same optimum.
                approx::assert_abs_diff_eq!(found, optimum.value, epsilon = 1e-6);
            }
        }
    }
}

#[test]
fn an_optimum_that_cannot_be_found_is_unknown() {
    let lattice = AdditiveDraw {
        levels: 51,
        ..AdditiveDraw::new(GraphShape::Grid { rows: 8, columns: None })
    };
    assert!(draw(&lattice, 0).optimum().is_none());
    let everywhere = AdditiveDraw { domain: DrawDomain::Continuous, ..lattice };
    assert!(draw(&everywhere, 0).optimum().is_none());
    // The same graph on few levels is no harder than a lattice of 3 columns on many.
    let few = AdditiveDraw { levels: 2, ..everywhere };
    assert!(draw(&AdditiveDraw { domain: DrawDomain::Discrete, ..few }, 0).optimum().is_some());
}

#[test]
fn settings_of_a_draw_that_make_no_sense_are_refused() {
    let good = AdditiveDraw::new(GraphShape::Path { vertices: 3 });
    for (spec, expected) in [
        (AdditiveDraw { levels: 1, ..good.clone() }, "levels = 1 is not between 2 and 1000"),
        (AdditiveDraw { levels: 1_001, ..good.clone() }, "levels = 1001"),
        (AdditiveDraw { lengthscale: 0.0, ..good.clone() }, "lengthscale = 0 "),
        (AdditiveDraw { lengthscale: -0.2, ..good.clone() }, "lengthscale = -0.2"),
        (AdditiveDraw { lengthscale: f64::NAN, ..good.clone() }, "lengthscale = NaN"),
        (AdditiveDraw { lengthscale: f64::INFINITY, ..good.clone() }, "lengthscale = inf"),
        (AdditiveDraw { variance: 0.0, ..good.clone() }, "variance = 0 "),
        (AdditiveDraw { variance: f64::NAN, ..good.clone() }, "variance = NaN"),
        (AdditiveDraw { noise_std: -0.1, ..good.clone() }, "noise_std = -0.1"),
        (AdditiveDraw { noise_std: f64::INFINITY, ..good.clone() }, "noise_std = inf"),
        (
            AdditiveDraw { noise_std: 2e100, ..good.clone() },
            "noise_std = 2e100 is not between 0 and 1e100",
        ),
        (AdditiveDraw { graph: GraphShape::Path { vertices: 0 }, ..good.clone() }, "0 vertices"),
        (
            AdditiveDraw {
                graph: GraphShape::Path { vertices: 10_000 },
                levels: 500,
                lengthscale: 0.001,
                ..good.clone()
            },
            "9999 components of 500² numbers each",
        ),
    ] {
        let error = spec.build(0, here()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error, spec.check(0, here()).unwrap_err().to_string());
    }
    let text = "graph = { shape = \"star\", vertices = 25 }";
    assert_eq!(
        toml::from_str::<AdditiveDraw>(text).unwrap(),
        AdditiveDraw::new(GraphShape::Star { vertices: 25 })
    );
    assert!(toml::from_str::<AdditiveDraw>(&format!("{text}\nlevel = 51")).is_err());
}

#[test]
fn points_outside_of_a_draw_are_refused() {
    let discrete =
        AdditiveDraw { levels: 11, ..AdditiveDraw::new(GraphShape::Path { vertices: 2 }) };
    let continuous = AdditiveDraw { domain: DrawDomain::Continuous, ..discrete.clone() };
    let (discrete, continuous) = (draw(&discrete, 0), draw(&continuous, 0));
    let error = |function: &DrawnFunction, values: &[Value]| {
        function.evaluate(values).unwrap_err().to_string()
    };
    let real = Value::Real;
    assert!(
        error(&discrete, &[real(0.1), real(0.15)]).contains("0.15 is not one of the 11 levels")
    );
    assert!(error(&discrete, &[real(0.1), real(f64::NAN)]).contains("NaN is not one of"));
    assert!(error(&discrete, &[real(-0.1), real(0.1)]).contains("-0.1 is not one of"));
    assert!(error(&discrete, &[real(1.1), real(0.1)]).contains("1.1 is not one of"));
    assert!(error(&continuous, &[real(0.1), real(1.5)]).contains("1.5 is not between 0 and 1"));
    assert!(error(&continuous, &[real(f64::NAN), real(0.5)]).contains("NaN is not between"));
    assert!(error(&continuous, &[real(0.5)]).contains("1 values for 2 parameters"));
    assert!(error(&continuous, &[real(0.5), Value::Choice("a".into())]).contains("not a number"));
    assert!(continuous.evaluate(&[Value::Integer(0), real(0.15)]).is_ok());
}

// --------------------------------------------------------------------------------------------------------------- formulas

fn formula(spec: &ClosedForm, seed: u64) -> ClosedFormFunction {
    spec.build(seed).unwrap()
}

#[test]
fn formulas_have_the_values_of_an_independent_calculation() {
    // With mpmath in 40 digits, from the formulas as printed.
    for (function, x, expected) in [
        (Function::Hartmann6, vec![0.5; 6], -0.505_314_991_702_233_1),
        (Function::Hartmann6, vec![0.0; 6], -0.005_089_112_883_664_44),
        (Function::Hartmann6, vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6], -1.406_910_576_138_529_7),
        (Function::Camelback, vec![1.0, 1.0], 97.0 / 30.0),
        (Function::Camelback, vec![-2.0, 0.5], 1.983_333_333_333_333_3),
        (Function::Camelback, vec![1.5, -1.0], 0.665_625),
        (Function::StyblinskiTang, vec![1.0, 2.0, -1.0], -34.0),
        (Function::StyblinskiTang, vec![0.0, 0.5], -0.718_75),
        (Function::Rosenbrock, vec![0.0, 0.0, 0.0], 2.0),
        (Function::Rosenbrock, vec![1.5, 2.0, -1.0], 2_507.5),
        (Function::Rosenbrock, vec![2.0, 3.0], 101.0),
        (Function::Gaussian, vec![0.5], -0.367_879_441_171_442_3),
        (Function::Gaussian, vec![0.1, 0.2, -0.3], -0.571_209_063_848_814_9),
    ] {
        approx::assert_relative_eq!(function.value(&x), expected, max_relative = 1e-13);
        let dimension = matches!(
            function,
            Function::StyblinskiTang | Function::Rosenbrock | Function::Gaussian
        )
        .then_some(x.len());
        let (low, high) = (Some(-3.0), Some(3.0));
        let problem = formula(&ClosedForm { dimension, low, high, ..ClosedForm::new(function) }, 0);
        assert_eq!(at(&problem, &x), function.value(&x));
    }
}

/// All functions, some with several numbers of variables, and everything that can be done to them.
fn variants() -> Vec<ClosedForm> {
    let mut all = Vec::new();
    for (function, dimensions) in [
        (Function::Hartmann6, vec![None]),
        (Function::Camelback, vec![None]),
        (Function::StyblinskiTang, vec![None, Some(1), Some(3)]),
        (Function::Rosenbrock, vec![Some(2), Some(3), Some(5)]),
        (Function::Gaussian, vec![None, Some(1), Some(4)]),
    ] {
        for dimension in dimensions {
            for (permute, shift, auxiliary) in
                [(false, false, 0), (false, true, 0), (true, false, 3), (true, true, 2)]
            {
                all.push(ClosedForm {
                    dimension,
                    permute,
                    shift,
                    auxiliary,
                    ..ClosedForm::new(function)
                });
            }
        }
    }
    all
}

#[test]
fn known_minima_are_attained_and_not_beaten() {
    for spec in variants() {
        for seed in 0..3 {
            let problem = formula(&spec, seed);
            let optimum = problem.optimum().unwrap();
            assert_eq!((problem.goal(), optimum.certainty), (Goal::Minimize, Certainty::Exact));
            let scale = optimum.value.abs().max(1.0);
            approx::assert_abs_diff_eq!(
                at_point(&problem, &optimum.point),
                optimum.value,
                epsilon = 1e-13 * scale
            );
            let found = search(&problem, 10, seed);
            assert!(
                found >= optimum.value - 1e-12 * scale,
                "{spec:?}, seed {seed}: {found} below {}",
                optimum.value
            );
            if !matches!(spec.function, Function::Rosenbrock) && problem.space().dimension() <= 10 {
                // One of ten starts finds the lowest well, unless there are a million of them; the valley of Rosenbrock
                // bends too much for a search along axes.
                assert!(
                    found < optimum.value + 0.01 * scale,
                    "{spec:?}: the search does not search: {found}"
                );
            }
        }
    }
}

#[test]
fn minima_stay_the_smallest_far_beyond_the_usual_domain() {
    // What a shift relies on. Random points of a box three times as large, and of one ten times as large.
    let mut rng = generator(4);
    for spec in variants().into_iter().filter(|spec| spec.auxiliary == 0 && !spec.shift) {
        let dimension = spec.dimension.unwrap_or(spec.function.usual_dimension());
        let minimum = spec.function.minimum(dimension);
        for half_width in [15.0, 50.0] {
            for _ in 0..2_000 {
                let x: Vec<f64> = (0..dimension)
                    .map(|_| half_width * (2.0 * rng.random::<f64>() - 1.0))
                    .collect();
                assert!(spec.function.value(&x) > minimum);
            }
        }
    }
}

#[test]
fn shifts_stay_inside_move_with_the_seed_and_only_translate() {
    for spec in variants().into_iter().filter(|spec| spec.shift) {
        let mut seen = Vec::new();
        for seed in 0..50 {
            let problem = formula(&spec, seed);
            let point = &problem.optimum().unwrap().point;
            assert!(point.0.iter().all(|x| (0.05 - 1e-9..=0.95 + 1e-9).contains(x)), "{point:?}");
            assert!(!seen.contains(point));
            seen.push(point.clone());
        }
        // Uniform between 0.05 and 0.95: over 50 seeds the places spread widely.
        let reach =
            |pick: fn(f64, f64) -> f64| seen.iter().map(|point| point.0[0]).reduce(pick).unwrap();
        if spec.auxiliary == 0 {
            assert!(reach(f64::min) < 0.25 && reach(f64::max) > 0.75);
        }
    }
    // Styblinski–Tang keeps its shape: the same values at the same distance from the minimum.
    let spec =
        ClosedForm { dimension: Some(2), shift: true, ..ClosedForm::new(Function::StyblinskiTang) };
    let problem = formula(&spec, 6);
    let best = problem.space().decode(&problem.optimum().unwrap().point).unwrap();
    let best: Vec<f64> = best.iter().filter_map(Value::as_f64).collect();
    let usual = Function::StyblinskiTang.minimisers(2).swap_remove(0);
    for (a, b) in [(0.1, -0.2), (0.0, 0.3), (-0.25, -0.25)] {
        let moved = at(&problem, &[best[0] + a, best[1] + b]);
        let expected = Function::StyblinskiTang.value(&[usual[0] + a, usual[1] + b]);
        approx::assert_relative_eq!(moved, expected, max_relative = 1e-12);
    }
}

#[test]
fn permutations_move_the_variables_with_their_domains_and_edges() {
    let spec = ClosedForm { auxiliary: 8, permute: true, ..ClosedForm::new(Function::Camelback) };
    let mut places = HashMap::new();
    for seed in 0..400 {
        let problem = formula(&spec, seed);
        let graph = problem.graph().unwrap();
        let facts = facts(&problem);
        assert_eq!((facts.dimension, facts.edges), (10, Some(1)));
        let edge = graph.edges()[0];
        // The second variable is the only one with the range from −2 to 2.
        let narrow = problem
            .space()
            .parameters()
            .iter()
            .position(|parameter| {
                parameter.domain == boscage::Domain::Real { low: -2.0, high: 2.0, log: false }
            })
            .unwrap();
        let wide = edge.other(narrow).expect("the edge joins the variables of the function");
        *places.entry(narrow).or_insert(0) += 1;
        let mut x = vec![0.5; 10];
        (x[wide], x[narrow]) = (1.5, -1.0);
        approx::assert_relative_eq!(at(&problem, &x), 0.665_625, max_relative = 1e-13);
        assert_eq!(problem.space().parameters()[3].name, "x3");
    }
    // 400 seeds, 10 places: 40 each, standard deviation 6.
    assert!((0..10).all(|place| (places[&place] as f64 - 40.0).abs() < 4.0 * 6.0), "{places:?}");
    let fixed = ClosedForm { draw_seed: Some(5), ..spec.clone() };
    assert_eq!(formula(&fixed, 0).graph(), formula(&spec, 5).graph());
    assert_eq!(formula(&fixed, 1).graph(), formula(&fixed, 2).graph());
    assert_eq!(&fixed.check(1).unwrap(), formula(&fixed, 2).space());
}

#[test]
fn graphs_agree_with_mixed_second_differences() {
    // Two variables share a component if and only if f(+,+) − f(+,−) − f(−,+) + f(−,−) does not vanish everywhere.
    for spec in variants() {
        let problem = formula(&spec, 11);
        let graph = problem.graph().unwrap();
        let dimension = problem.space().dimension();
        assert_eq!(graph.dimension(), dimension);
        let mut rng = generator(7);
        for j in 0..dimension {
            for i in 0..j {
                let mut largest = 0.0_f64;
                for _ in 0..40 {
                    // Near the optimum, where even the Gaussian is not flat.
                    let near = |x: &f64| (x + 0.3 * (rng.random::<f64>() - 0.5)).clamp(0.1, 0.9);
                    let x: Vec<f64> = problem.optimum().unwrap().point.0.iter().map(near).collect();
                    let moved = |a: f64, b: f64| {
                        let mut x = x.clone();
                        (x[i], x[j]) = (x[i] + a, x[j] + b);
                        at_point(&problem, &Point(x))
                    };
                    let corners = [
                        moved(0.05, 0.05),
                        moved(0.05, -0.05),
                        moved(-0.05, 0.05),
                        moved(-0.05, -0.05),
                    ];
                    let size = corners.iter().map(|corner| corner.abs()).fold(0.0, f64::max);
                    let mixed = corners[0] - corners[1] - corners[2] + corners[3];
                    largest = largest.max(mixed.abs() / size);
                }
                let joined = graph.contains(Edge::new(i, j).unwrap());
                assert_eq!(joined, largest > 1e-9, "{spec:?}: {i}–{j} {largest}");
            }
        }
    }
}

#[test]
fn auxiliary_variables_do_not_matter() {
    for spec in variants().into_iter().filter(|spec| spec.auxiliary > 0) {
        let problem = formula(&spec, 2);
        let dimension = problem.space().dimension();
        let active = spec.dimension.unwrap_or(spec.function.usual_dimension());
        assert_eq!(dimension, active + spec.auxiliary);
        let mut rng = generator(3);
        let x = problem.optimum().unwrap().point.clone();
        let without_effect = (0..dimension)
            .filter(|&d| {
                let mut moved = x.clone();
                moved.0[d] = rng.random();
                at_point(&problem, &moved) == at_point(&problem, &x)
            })
            .count();
        assert_eq!(without_effect, spec.auxiliary, "{spec:?}");
    }
}

#[test]
fn domains_of_formulas() {
    let domain = |spec: ClosedForm| facts(&formula(&spec, 0)).domain;
    assert_eq!(domain(ClosedForm::new(Function::Hartmann6)), "real in [0, 1]");
    assert_eq!(domain(ClosedForm::new(Function::Camelback)), "real in [−2, 2] or real in [−3, 3]");
    assert_eq!(domain(ClosedForm::new(Function::StyblinskiTang)), "real in [−5, 5]");
    assert_eq!(domain(ClosedForm::new(Function::Rosenbrock)), "real in [−5, 10]");
    assert_eq!(domain(ClosedForm::new(Function::Gaussian)), "real in [−1, 1]");
    let narrow = ClosedForm {
        low: Some(-4.0),
        high: Some(4.0),
        ..ClosedForm::new(Function::StyblinskiTang)
    };
    assert_eq!(domain(narrow), "real in [−4, 4]");
    let lower = ClosedForm { low: Some(-10.0), ..ClosedForm::new(Function::StyblinskiTang) };
    assert_eq!(domain(lower), "real in [−10, 5]");
    // Only the second minimiser of the camel is inside.
    let half =
        ClosedForm { low: Some(-0.5), high: Some(2.0), ..ClosedForm::new(Function::Camelback) };
    let problem = formula(&half, 0);
    let point = &problem.optimum().unwrap().point;
    approx::assert_abs_diff_eq!(
        at_point(&problem, point),
        -1.031_628_453_489_877_4,
        epsilon = 1e-14
    );
}

#[test]
fn settings_of_a_formula_that_make_no_sense_are_refused() {
    let of = ClosedForm::new;
    for (spec, expected) in [
        (
            ClosedForm { dimension: Some(7), ..of(Function::Hartmann6) },
            "hartmann6 has 6 variables, not 7",
        ),
        (
            ClosedForm { dimension: Some(1), ..of(Function::Camelback) },
            "camelback has 2 variables, not 1",
        ),
        (
            ClosedForm { dimension: Some(0), ..of(Function::StyblinskiTang) },
            "dimension = 0 of styblinski-tang",
        ),
        (ClosedForm { dimension: Some(1), ..of(Function::Rosenbrock) }, "not between 2 and 10000"),
        (ClosedForm { dimension: Some(1_001), ..of(Function::Gaussian) }, "not between 1 and 1000"),
        (
            ClosedForm { dimension: Some(10_001), ..of(Function::Rosenbrock) },
            "not between 2 and 10000",
        ),
        (
            ClosedForm { auxiliary: usize::MAX, ..of(Function::Camelback) },
            "are more than the 10000 allowed",
        ),
        (
            ClosedForm { low: Some(2.0), high: Some(2.0), ..of(Function::Gaussian) },
            "low = 2 to high = 2",
        ),
        (ClosedForm { low: Some(6.0), ..of(Function::StyblinskiTang) }, "low = 6 to high = 5"),
        (ClosedForm { high: Some(f64::NAN), ..of(Function::Gaussian) }, "high = NaN"),
        (ClosedForm { high: Some(f64::INFINITY), ..of(Function::Gaussian) }, "high = inf"),
        (
            ClosedForm { low: Some(-2.0), ..of(Function::StyblinskiTang) },
            "(-2.9035, -2.9035, -2.9035, -2.9035, -2.9035, -2.9035, …) is outside",
        ),
        (
            ClosedForm { low: Some(0.0), high: Some(1.0), ..of(Function::Camelback) },
            "is outside of the domain",
        ),
        (ClosedForm { noise_std: -1.0, ..of(Function::Gaussian) }, "noise_std = -1"),
        (ClosedForm { noise_std: f64::NAN, ..of(Function::Gaussian) }, "noise_std = NaN"),
        (
            ClosedForm { noise_std: 2e100, ..of(Function::Gaussian) },
            "noise_std = 2e100 is not between 0 and 1e100",
        ),
    ] {
        let error = spec.build(0).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Moved inside, the minimum is known again.
    let moved =
        ClosedForm { low: Some(0.0), high: Some(1.0), shift: true, ..of(Function::Camelback) };
    assert!(moved.build(0).is_ok());
    assert!(toml::from_str::<ClosedForm>("function = \"styblinski-tang\"\nshift = true").is_ok());
    assert!(
        toml::from_str::<ClosedForm>("function = \"styblinski-tang\"\nshifted = true").is_err()
    );
    assert!(toml::from_str::<ClosedForm>("function = \"ackley\"").is_err());
    let problem = formula(&of(Function::Gaussian), 0);
    assert!(problem.evaluate(&[Value::Real(0.0)]).is_err());
    assert!(problem.evaluate(&[Value::Real(0.0), Value::Choice("a".into())]).is_err());
}

// ---------------------------------------------------------------------------------------------- functions of all variables

const ROTATED: [RotatedFunction; 9] = [
    RotatedFunction::Ackley,
    RotatedFunction::Levy,
    RotatedFunction::Ellipsoid,
    RotatedFunction::Hartmann6,
    RotatedFunction::Rastrigin,
    RotatedFunction::Griewank,
    RotatedFunction::Rosenbrock,
    RotatedFunction::StyblinskiTang,
    RotatedFunction::Quadratic,
];

#[test]
fn functions_to_be_turned_have_the_values_of_an_independent_calculation() {
    // As in BoTorch 0.18 (Rosenbrock at 1 + z, Styblinski–Tang at its minimiser + z), but for the ellipsoid, the quadratic
    // function and Hartmann6: by hand, where 0.5 + 0.5z is 0.5 for z = 0.
    for (function, z, expected) in [
        (RotatedFunction::Ackley, vec![1.0, 1.0], 3.625_384_938_440_362_7),
        (RotatedFunction::Ackley, vec![1.0, -2.0, 0.5], 5.972_029_779_887_098),
        (RotatedFunction::Levy, vec![1.0, -2.0, 0.5], 2.162_409_400_199_097_7),
        (RotatedFunction::Ellipsoid, vec![1.0, 2.0, -3.0], 1.0 + 40.0 + 900.0),
        (RotatedFunction::Hartmann6, vec![0.0; 6], -0.505_314_991_702_233_1),
        (RotatedFunction::Hartmann6, vec![-1.0; 6], -0.005_089_112_883_664_44),
        (RotatedFunction::Rastrigin, vec![1.1, -2.3, 0.4], 39.750_169_943_749_455),
        (RotatedFunction::Griewank, vec![110.0, -230.0, 40.0], 17.313_700_215_467_76),
        (RotatedFunction::Rosenbrock, vec![1.1, -2.3, 0.4], 3_275.32),
        (RotatedFunction::StyblinskiTang, vec![1.1, -2.3, 0.4], 192.452_223_905_796),
        (RotatedFunction::Quadratic, vec![1.0, -2.0, 3.0], 1.0 + 8.0 + 27.0),
    ] {
        approx::assert_relative_eq!(function.value(&z), expected, max_relative = 1e-13);
    }
    for function in ROTATED.into_iter().filter(|&one| one != RotatedFunction::Hartmann6) {
        assert_eq!(function.value(&[0.0; 7]), 0.0);
    }
}

#[test]
fn turned_functions_have_their_minimum_where_they_say() {
    for function in ROTATED {
        for (integer, turn) in [(false, true), (true, true), (false, false), (true, false)] {
            let spec = Rotated { integer, turn, ..Rotated::new(function) };
            let in_subspace = [RotatedFunction::Hartmann6, RotatedFunction::Quadratic];
            if !turn && !integer && in_subspace.contains(&function) {
                assert!(spec.build(0).unwrap_err().to_string().contains("set turn = true"));
            }
            if !turn && in_subspace.contains(&function) {
                continue;
            }
            if integer && function == RotatedFunction::Hartmann6 {
                assert!(spec.build(0).unwrap_err().to_string().contains("not at integers"));
                continue;
            }
            let mut seen: Vec<Point> = Vec::new();
            for seed in 0..5 {
                let problem = spec.build(seed).unwrap();
                let optimum = problem.optimum().unwrap();
                assert_eq!(optimum.certainty, Certainty::Exact);
                approx::assert_abs_diff_eq!(
                    at_point(&problem, &optimum.point),
                    optimum.value,
                    epsilon = 1e-12
                );
                // Near it and far from it everything is higher.
                let mut rng = generator(seed);
                for width in [1e-3, 0.1, 1.0] {
                    for _ in 0..200 {
                        let near =
                            |x: &f64| (x + width * (rng.random::<f64>() - 0.5)).clamp(0.0, 1.0);
                        let near: Vec<f64> = optimum.point.0.iter().map(near).collect();
                        let point = problem.space().snap(&near).unwrap();
                        let value = at_point(&problem, &point);
                        assert!(value > optimum.value || point == optimum.point, "{function:?}");
                    }
                }
                assert!(search(&problem, 3, seed) >= optimum.value - 1e-12);
                let again = spec.build(seed).unwrap();
                let x = problem.space().sample(&mut rng);
                assert_eq!(at_point(&problem, &x), at_point(&again, &x));
                let fixed = Rotated { draw_seed: Some(seed), ..spec.clone() }.build(99).unwrap();
                assert_eq!(at_point(&problem, &x), at_point(&fixed, &x));
                assert!(!seen.contains(&optimum.point));
                // Neither at the centre nor in a corner.
                let share = |of: fn(f64) -> bool| {
                    optimum.point.0.iter().filter(|&&x| of(x)).count() as f64
                        / optimum.point.0.len() as f64
                };
                assert!(share(|x| (x - 0.5).abs() > 0.01) > 0.5);
                assert!(share(|x| (0.01..=0.99).contains(&x)) > 0.5);
                seen.push(optimum.point.clone());
            }
        }
    }
}

#[test]
fn what_is_only_moved_is_the_function_around_another_place() {
    let spec = Rotated { turn: false, ..Rotated::new(RotatedFunction::Rastrigin) };
    let problem = spec.build(3).unwrap();
    let optimum = problem.optimum().unwrap();
    let (low, width) = (-5.0, 10.0);
    let minimiser: Vec<f64> = optimum.point.0.iter().map(|x| low + width * x).collect();
    let mut rng = generator(3);
    for _ in 0..50 {
        let x: Vec<f64> = (0..10).map(|_| low + width * rng.random::<f64>()).collect();
        let z: Vec<f64> = x.iter().zip(&minimiser).map(|(x, place)| x - place).collect();
        let values: Vec<Value> = x.into_iter().map(Value::Real).collect();
        let expected = RotatedFunction::Rastrigin.value(&z);
        approx::assert_relative_eq!(
            problem.evaluate(&values).unwrap(),
            expected,
            max_relative = 1e-10
        );
    }
    // A recipe that was written before there was a choice means what it meant.
    let json = serde_json::to_string(&Rotated::new(RotatedFunction::Levy)).unwrap();
    assert!(!json.contains("turn"), "{json}");
    assert!(serde_json::from_str::<Rotated>(&json).unwrap().turn);
}

#[test]
fn turning_keeps_distances_and_mixes_all_variables() {
    // The ellipsoid's value is between the squared distance and 100 times that.
    let problem = Rotated::new(RotatedFunction::Ellipsoid).build(3).unwrap();
    let best: Vec<f64> = problem
        .space()
        .decode(&problem.optimum().unwrap().point)
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    let mut rng = generator(0);
    for _ in 0..100 {
        let x: Vec<f64> = (0..16).map(|_| 20.0 * rng.random::<f64>() - 10.0).collect();
        let distance: f64 = x.iter().zip(&best).map(|(a, b)| (a - b) * (a - b)).sum();
        let value = at(&problem, &x);
        assert!((distance..100.0 * distance).contains(&value), "{value} at {distance}");
    }
    // Every pair of variables interacts: mixed second differences do not vanish.
    for function in ROTATED {
        let problem = Rotated::new(function).build(1).unwrap();
        let x = problem.optimum().unwrap().point.0.clone();
        for (i, j) in [(0, 1), (2, 9), (5, 8)] {
            let moved = |a: f64, b: f64| {
                let mut x = x.clone();
                (x[i], x[j]) = ((x[i] + a).clamp(0.0, 1.0), (x[j] + b).clamp(0.0, 1.0));
                at_point(&problem, &Point(x))
            };
            let mixed =
                moved(0.03, 0.03) - moved(0.03, -0.03) - moved(-0.03, 0.03) + moved(-0.03, -0.03);
            assert!(mixed.abs() > 1e-6, "{function:?} {i} {j}: {mixed}");
        }
    }
}

// ------------------------------------------------------------------------------------------- parameters that are not all real

fn discrete(function: DiscreteFunction, dimension: Option<usize>, seed: u64) -> DiscreteProblem {
    Discrete { dimension, ..Discrete::new(function) }.build(seed).unwrap()
}

#[test]
fn mixed_ackley_counts_what_is_off_its_minimum() {
    let problem = discrete(DiscreteFunction::Ackley, None, 4);
    assert_eq!(facts(&problem).domain, "boolean or real in [−1, 1]");
    let best = problem.space().decode(&problem.optimum().unwrap().point).unwrap();
    assert_eq!(best.len(), 53);
    approx::assert_abs_diff_eq!(problem.evaluate(&best).unwrap(), 0.0, epsilon = 1e-13);
    let truths = best.iter().filter(|value| **value == Value::Boolean(true)).count();
    assert!((10..40).contains(&truths), "{truths} of 50");
    // 7 truth values off, and reals off by 0.25, 0.5 and 1 where that stays inside: as in BoTorch 0.18.
    let mut off = best.clone();
    for value in &mut off[..7] {
        *value = Value::Boolean(*value == Value::Boolean(false));
    }
    for (value, by) in off[50..].iter_mut().zip([0.25, 0.5, 1.0]) {
        let x = value.as_f64().unwrap();
        *value = Value::Real(if x + by <= 1.0 { x + by } else { x - by });
    }
    approx::assert_relative_eq!(
        problem.evaluate(&off).unwrap(),
        1.672_598_871_456_671_5,
        max_relative = 1e-12
    );
    let other = discrete(DiscreteFunction::Ackley, None, 5);
    assert_ne!(other.optimum().unwrap().point, problem.optimum().unwrap().point);
    assert_eq!(
        discrete(DiscreteFunction::Ackley, None, 4).evaluate(&off).unwrap(),
        problem.evaluate(&off).unwrap()
    );
    assert!(problem.evaluate(&best[1..]).is_err());
}

#[test]
fn merit_factors_are_those_of_the_literature() {
    let of = |length| discrete(DiscreteFunction::LowAutocorrelation, Some(length), 0);
    // Energies of best sequences, Packebusch and Mertens, table 1.
    for (length, energy) in [(10, 13), (20, 26), (30, 59), (40, 108), (50, 153), (60, 218)] {
        let problem = of(length);
        let optimum = problem.optimum().unwrap();
        assert_eq!(optimum.value, -((length * length) as f64) / f64::from(2 * energy));
        assert_eq!(at_point(&problem, &optimum.point), optimum.value);
    }
    assert!(of(41).optimum().is_none());
    // + + − + − − − + has the correlations −1, 0, −1, 0, −3, 0, 1, by hand: Σ C² = 12.
    let signs = [true, true, false, true, false, false, false, true];
    let signs: Vec<Value> = signs.into_iter().map(Value::Boolean).collect();
    approx::assert_relative_eq!(
        of(8).evaluate(&signs).unwrap(),
        -64.0 / 24.0,
        max_relative = 1e-15
    );
    // All 1,024 sequences of length 10: none is better.
    let problem = of(10);
    let values = (0..1024).map(|bits: u32| {
        let signs: Vec<Value> = (0..10).map(|i| Value::Boolean(bits >> i & 1 == 1)).collect();
        problem.evaluate(&signs).unwrap()
    });
    let best = values.fold(f64::INFINITY, f64::min);
    assert_eq!(best, problem.optimum().unwrap().value);
    assert!(of(8).evaluate(&vec![Value::Real(1.0); 8]).is_err());
}

#[test]
fn pest_control_agrees_with_the_published_code() {
    // Means of the published code (NumPy) with 2,000,000 fields instead of 100. What is random in a value is the mean over
    // 100 fields of at most 25 stages; the deviation over seeds is measured.
    let seeds = 200;
    for (pattern, expected) in [
        (&[0][..], 23.626_549),
        (&[4], 12.549_801),
        (&[0, 4], 19.718_841),
        (&[1, 2, 3, 4, 0], 17.147_147),
    ] {
        let names = ["nothing", "pesticide-1", "pesticide-2", "pesticide-3", "pesticide-4"];
        let choices: Vec<Value> =
            (0..25).map(|i| Value::Choice(names[pattern[i % pattern.len()]].into())).collect();
        let values: Vec<f64> = (0..seeds)
            .map(|seed| {
                let problem = discrete(DiscreteFunction::PestControl, None, seed);
                assert!(problem.optimum().is_none());
                let value = problem.evaluate(&choices).unwrap();
                assert_eq!(value, problem.evaluate(&choices).unwrap());
                value
            })
            .collect();
        let mean = values.iter().sum::<f64>() / seeds as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / seeds as f64;
        let error = (variance / seeds as f64).sqrt();
        assert!(
            error > 0.0 && (mean - expected).abs() < 4.0 * error,
            "{pattern:?}: {mean} ± {error}"
        );
    }
    // Of a single stage, whose pests are those at first: the price with the whole discount.
    let problem = discrete(DiscreteFunction::PestControl, Some(1), 1);
    let once = |name: &str| problem.evaluate(&[Value::Choice(name.into())]).unwrap();
    let nothing = once("nothing");
    approx::assert_abs_diff_eq!(once("pesticide-1") - nothing, 0.8, epsilon = 1e-12);
    approx::assert_abs_diff_eq!(once("pesticide-2") - nothing, 0.56, epsilon = 1e-12);
    approx::assert_abs_diff_eq!(once("pesticide-3") - nothing, 0.49, epsilon = 1e-12);
    approx::assert_abs_diff_eq!(once("pesticide-4") - nothing, 0.5, epsilon = 1e-12);
    assert!(problem.evaluate(&[Value::Choice("prayer".into())]).is_err());
    assert!(problem.evaluate(&[Value::Integer(1)]).is_err());
}

#[test]
fn settings_of_other_functions_that_make_no_sense_are_refused() {
    let turned = |function, dimension, noise_std| {
        let spec = Rotated { dimension: Some(dimension), noise_std, ..Rotated::new(function) };
        spec.build(0).unwrap_err().to_string()
    };
    assert!(turned(RotatedFunction::Ackley, 1, 0.0).contains("dimension = 1 of ackley"));
    assert!(turned(RotatedFunction::Levy, 1_001, 0.0).contains("not between 2 and 1000"));
    assert!(turned(RotatedFunction::Hartmann6, 5, 0.0).contains("not between 6 and 1000"));
    assert!(turned(RotatedFunction::Quadratic, 7, 0.0).contains("not between 8 and 1000"));
    assert!(turned(RotatedFunction::Ackley, 5, -1.0).contains("noise_std = -1"));
    let other = |function, dimension, noise_std| {
        let spec = Discrete { dimension: Some(dimension), noise_std, ..Discrete::new(function) };
        spec.build(0).unwrap_err().to_string()
    };
    assert!(other(DiscreteFunction::Ackley, 3, 0.0).contains("dimension = 3 is not between 4"));
    assert!(other(DiscreteFunction::LowAutocorrelation, 1, 0.0).contains("dimension = 1"));
    assert!(other(DiscreteFunction::PestControl, 0, 0.0).contains("dimension = 0"));
    assert!(other(DiscreteFunction::PestControl, 5, f64::NAN).contains("noise_std = NaN"));
    assert!(toml::from_str::<Rotated>("function = \"levy\"\ninteger = true").is_ok());
    assert!(toml::from_str::<Rotated>("function = \"levy\"\nlow = 1").is_err());
    assert!(toml::from_str::<Discrete>("function = \"low-autocorrelation\"").is_ok());
    assert!(toml::from_str::<Discrete>("function = \"labs\"").is_err());
}

// ---------------------------------------------------------------------------------------------------------------- presets

#[test]
fn every_preset_can_be_built_and_says_the_truth() {
    let all = presets();
    let mut names: Vec<&str> = all.iter().map(|preset| preset.name).collect();
    assert!(names.iter().all(|name| boscage_bench::plan::is_label(name)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    for preset in all {
        assert!(!preset.summary.is_empty() && !preset.summary.contains('\n'));
        let text = toml::to_string(&preset.spec).unwrap();
        assert_eq!(toml::from_str::<ProblemSpec>(&text).unwrap(), preset.spec, "{text}");
        let problem = preset.spec.build(0, here()).unwrap();
        let facts = facts(problem.as_ref());
        let Some(optimum) = problem.optimum() else {
            assert_eq!(preset.name, "pest-control-25", "the optimum is unknown");
            continue;
        };
        assert_eq!(facts.optimum, Some((optimum.value, optimum.certainty)));
        problem.space().check(&optimum.point).unwrap();
        let attained = at_point(problem.as_ref(), &optimum.point);
        approx::assert_relative_eq!(attained, optimum.value, max_relative = 1e-12, epsilon = 1e-12);
        let sign = problem.goal().sign();
        let mut rng = generator(1);
        for _ in 0..200 {
            let point = problem.space().sample(&mut rng);
            assert!(
                sign * at_point(problem.as_ref(), &point) < sign * optimum.value,
                "{}",
                preset.name
            );
        }
    }
}

#[test]
fn facts_of_the_papers_problems() {
    let facts_of = |name: &str| {
        let problem = preset(name).unwrap().spec.build(0, here()).unwrap();
        let facts = facts(problem.as_ref());
        (facts.dimension, facts.domain, facts.noise_std, facts.edges, facts.goal)
    };
    let levels = || "51 levels in [0, 1]".to_string();
    let real = |range: &str| format!("real in {range}");
    assert_eq!(facts_of("star25"), (25, levels(), 0.15, Some(24), Goal::Maximize));
    assert_eq!(facts_of("partition12"), (12, levels(), 0.15, Some(12), Goal::Maximize));
    assert_eq!(facts_of("grid3x3"), (9, real("[0, 1]"), 0.15, Some(12), Goal::Maximize));
    assert_eq!(facts_of("ancestry132"), (132, real("[0, 1]"), 0.15, Some(131), Goal::Maximize));
    assert_eq!(facts_of("hartmann6+14"), (20, real("[0, 1]"), 0.15, Some(15), Goal::Minimize));
    assert_eq!(
        facts_of("styblinski-tang-250"),
        (250, real("[−4, 4]"), 0.15, Some(0), Goal::Minimize)
    );
    assert_eq!(
        facts_of("rosenbrock-20-noisy"),
        (20, real("[−5, 10]"), 0.15, Some(19), Goal::Minimize)
    );
    assert_eq!(
        facts_of("random-tree50-continuous"),
        (50, real("[0, 1]"), 0.15, Some(49), Goal::Maximize)
    );
    assert!(preset("no-such-problem").is_none());
}

#[test]
fn facts_of_linear_ranges() {
    let real = || "real in [0, 1]".to_string();
    for (name, dimension, domain, noise_std, edges) in [
        ("log-bowl-20", 20, real(), 0.02, 5),
        ("log-bowl-turned-10", 10, real(), 0.02, 45),
        ("log-few-12", 12, real(), 0.05, 0),
        ("saturating-20", 20, real(), 0.02, 0),
        ("log-counts-18", 18, "mixed".to_string(), 0.05, 0),
        ("power-time-16", 16, real(), 0.05, 120),
    ] {
        let problem = preset(name).unwrap().spec.build(0, here()).unwrap();
        let expected = ProblemFacts {
            dimension,
            domain,
            optimum: Some((0.0, Certainty::Exact)),
            noise_std,
            edges: Some(edges),
            goal: Goal::Minimize,
        };
        assert_eq!(facts(problem.as_ref()), expected, "{name}");
    }
}
