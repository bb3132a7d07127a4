//! The figures of a report: which there are, what stands on their axes, and what is said below them.

use std::collections::BTreeMap;

use boscage_bench::results::{LearnedGraph, RunResult};

use super::Horizontal;
use super::chart::{Chart, sensible_scale};
use super::curves::{Curve, CurvePoint, Metric, cost_curves, curves};
use super::graph_picture::GraphPicture;
use super::selection::{MethodRuns, ProblemRuns};
use crate::draw::svg::{Scale, short};

/// A figure, drawn.
pub(crate) struct Figure {
    /// Name of its files, without the ending.
    pub name: String,
    /// What it shows, and how to read it.
    pub caption: String,
    /// The picture.
    pub svg: String,
}

const BAND: &str = "Lines are means over seeds, bands ± ¼ standard deviation; the legend begins with the best final value.";

/// A name for files: what is not surely harmless in one becomes `_`.
fn file_name(label: &str, what: &str) -> String {
    let safe = label
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' });
    format!("{}-{what}", safe.collect::<String>().trim_start_matches('.'))
}

fn seed_count(problem: &ProblemRuns) -> String {
    let seeds = |method: &MethodRuns| method.runs.len();
    let most = problem.methods.iter().map(seeds).max().unwrap_or(0);
    if most == 1 { "1 seed".to_string() } else { format!("{most} seeds") }
}

/// The figures of one problem.
pub(crate) fn of_problem(problem: &ProblemRuns, horizontal: &[Horizontal]) -> Vec<Figure> {
    let (name, y_label) = match Metric::objective(problem) {
        Metric::Regret => ("regret", "regret (units of the function)"),
        _ => ("best value", "best value (units of the function)"),
    };
    let file = name.replace(' ', "-");
    let mut figures = Vec::new();
    if horizontal.contains(&Horizontal::Evaluations) {
        let curves = curves(problem, Metric::objective(problem));
        figures.extend(line_figure(
            problem,
            &curves,
            file_name(problem.label, &file),
            format!("{}: {name} over evaluations, {}", problem.label, seed_count(problem)),
            y_label,
            Horizontal::Evaluations,
        ));
    }
    if horizontal.contains(&Horizontal::Cost) {
        let curves = cost_curves(problem);
        figures.extend(line_figure(
            problem,
            &curves,
            file_name(problem.label, &format!("{file}-cost")),
            format!("{}: {name} over message-passing cost, {}", problem.label, seed_count(problem)),
            y_label,
            Horizontal::Cost,
        ));
    }
    let has_truth = runs(problem)
        .any(|(_, run)| run.start.true_edges.as_ref().is_some_and(|edges| !edges.is_empty()));
    let learns =
        problem.methods.iter().any(|m| m.used().any(|t| t.iter().any(|t| t.learned.is_some())));
    if has_truth && learns {
        let curves = curves(problem, Metric::F1);
        figures.extend(line_figure(
            problem,
            &curves,
            file_name(problem.label, "f1"),
            format!("{}: F1 of the learned graph, {}", problem.label, seed_count(problem)),
            "F1 (1 = the true graph)",
            Horizontal::Evaluations,
        ));
    }
    figures.extend(problem.methods.iter().filter_map(|method| graph_figure(problem, method)));
    figures
}

fn runs<'a>(
    problem: &'a ProblemRuns<'a>,
) -> impl Iterator<Item = (&'a MethodRuns<'a>, &'a RunResult)> {
    problem.methods.iter().flat_map(|method| method.runs.iter().map(move |run| (method, *run)))
}

fn line_figure(
    problem: &ProblemRuns,
    curves: &[Curve],
    name: String,
    title: String,
    y_label: &str,
    horizontal: Horizontal,
) -> Option<Figure> {
    if curves.is_empty() {
        return None;
    }
    let is_f1 = name.ends_with("-f1");
    let y_scale =
        if problem.optimum_known && !is_f1 { sensible_scale(curves) } else { Scale::Linear };
    let over_cost = horizontal == Horizontal::Cost;
    let chart = Chart {
        title: title.clone(),
        x_label: match horizontal {
            Horizontal::Evaluations => "evaluations of the function",
            Horizontal::Cost => "message-passing cost (values of φ computed)",
        },
        y_label,
        x_scale: if over_cost { Scale::Log } else { Scale::Linear },
        y_scale,
        y_range: is_f1.then_some((0.0, 1.0)),
        curves,
        mark: (!over_cost && problem.initial_points > 0)
            .then_some((problem.initial_points as f64, "end of initial design")),
        dots: false,
    };
    let mut caption = format!("{title}. {BAND}");
    if over_cost {
        caption.push_str(
            " At each cost a seed counts with what it had reached by then; a line begins when every seed has spent \
             something and ends where the first seed has spent all.",
        );
        let absent: Vec<&str> = problem
            .methods
            .iter()
            .map(|method| method.label)
            .filter(|label| {
                !curves.iter().any(|curve| curve.label.split(' ').next() == Some(label))
            })
            .collect();
        if !absent.is_empty() {
            caption
                .push_str(&format!(" Without such a cost, so not shown: {}.", absent.join(", ")));
        }
    }
    let zero = |curve: &Curve| curve.points.iter().any(|point| point.mean <= 0.0);
    if y_scale == Scale::Log && curves.iter().any(zero) {
        caption.push_str(" A regret of 0 is drawn on the lower edge.");
    }
    Some(Figure { svg: chart.svg(&description(&title, curves)), name, caption })
}

/// What someone who cannot see the chart should know.
fn description(title: &str, curves: &[Curve]) -> String {
    let ends: Vec<String> =
        curves.iter().map(|curve| format!("{} {}", curve.label, short(curve.last()))).collect();
    format!("{title}. Last means: {}.", ends.join(", "))
}

/// The learned graph of the method's median run by F1; of its first run if the true graph is not known.
fn graph_figure(problem: &ProblemRuns, method: &MethodRuns) -> Option<Figure> {
    let mut learned: Vec<(Option<f64>, &RunResult, &LearnedGraph)> = method
        .runs
        .iter()
        .zip(method.used())
        .filter_map(|(run, trials)| {
            let graph = trials.iter().rev().find_map(|trial| trial.learned.as_ref())?;
            Some((Metric::F1.of(trials).last().copied().flatten(), *run, graph))
        })
        .collect();
    let scored = learned.iter().all(|(f1, ..)| f1.is_some());
    let count = learned.len();
    let place = if scored {
        learned.sort_by(|a, b| {
            a.0.unwrap_or(0.0)
                .total_cmp(&b.0.unwrap_or(0.0))
                .then(a.1.start.seed.cmp(&b.1.start.seed))
        });
        count.saturating_sub(1) / 2
    } else {
        0
    };
    let &(f1, run, graph) = learned.get(place)?;
    let which = match (f1.filter(|_| scored), count) {
        (Some(f1), 1) => format!("seed {}, F1 {f1:.2}", run.start.seed),
        (Some(f1), _) => format!("seed {}, the median of {count} by F1 ({f1:.2})", run.start.seed),
        (None, 1) => format!("seed {}", run.start.seed),
        (None, _) => format!("seed {}, the first of {count}", run.start.seed),
    };
    let title = format!("{}, {}: {which}", problem.label, method.label);
    let picture = GraphPicture {
        title: title.clone(),
        vertices: run.start.dimension,
        truth: run.start.true_edges.as_deref(),
        learned: &graph.edges,
    };
    let caption = format!(
        "{title}. The graph that {} learned last, and the true one where it is known, with the same places. \
         Width and opacity of a learned edge say how often it was in the samples of the structure.",
        method.label
    );
    let description = format!("{title}. {} edges were learned.", graph.edges.len());
    Some(Figure {
        name: file_name(&format!("{}-{}", problem.label, method.label), "graph"),
        svg: picture.svg(&description),
        caption,
    })
}

/// Cumulative cost over dimension, for every series of at least three problems whose labels differ by numbers only.
pub(crate) fn of_series(problems: &[ProblemRuns]) -> Vec<Figure> {
    let mut series: BTreeMap<&str, Vec<&ProblemRuns>> = BTreeMap::new();
    for problem in problems {
        let family =
            problem.label.trim_end_matches(|c: char| c.is_ascii_digit() || "x+-_.".contains(c));
        series.entry(family).or_default().push(problem);
    }
    series.iter().filter_map(|(family, problems)| series_figure(family, problems)).collect()
}

fn series_figure(family: &str, problems: &[&ProblemRuns]) -> Option<Figure> {
    let mut problems = problems.to_vec();
    problems.sort_by_key(|problem| problem.dimension);
    problems.dedup_by_key(|problem| problem.dimension);
    if problems.len() < 3 {
        return None;
    }
    let curves = cost_over_dimension(&problems);
    if curves.is_empty() {
        return None;
    }
    let family = if family.is_empty() { "all problems" } else { family };
    let title = format!("{family}: cumulative message-passing cost over dimension");
    let chart = Chart {
        title: title.clone(),
        x_label: "dimension (number of parameters)",
        y_label: "message-passing cost of a run (values of φ computed)",
        x_scale: Scale::Linear,
        y_scale: Scale::Log,
        y_range: None,
        curves: &curves,
        mark: None,
        dots: true,
    };
    let mut lengths: Vec<usize> = problems.iter().map(|problem| problem.trials).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let trials = match lengths.as_slice() {
        [one] => format!("Each run has {one} trials."),
        many => format!(
            "The problems do not have the same number of trials: {}.",
            many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
    };
    let caption = format!(
        "{title}. Points are means over seeds, bands ± ¼ standard deviation; the legend begins with the lowest cost in the \
         highest dimension. {trials} Methods without such a cost, and those that did not finish, are left out."
    );
    Some(Figure {
        name: file_name(family, "cost-over-dimension"),
        svg: chart.svg(&description(&title, &curves)),
        caption,
    })
}

/// The cost of whole runs, one point a problem, one curve a method; lowest at its end first, longest curves before.
pub(crate) fn cost_over_dimension(problems: &[&ProblemRuns]) -> Vec<Curve> {
    let mut curves: BTreeMap<&str, Curve> = BTreeMap::new();
    for problem in problems {
        for method in problem.methods.iter().filter(|method| method.trials == problem.trials) {
            let costs: Vec<f64> = method
                .used()
                .filter_map(|trials| trials.last())
                .map(|trial| trial.cost as f64)
                .collect();
            if let Some(point) = CurvePoint::of_seeds(problem.dimension as f64, &costs)
                && point.mean > 0.0
            {
                let label = method.label.to_string();
                let new = Curve { label, style: method.style, points: Vec::new() };
                curves.entry(method.label).or_insert(new).points.push(point);
            }
        }
    }
    let mut curves: Vec<Curve> = curves.into_values().collect();
    let reach = |curve: &Curve| curve.points.last().map_or(0.0, |point| point.x);
    curves.sort_by(|a, b| reach(b).total_cmp(&reach(a)).then(a.last().total_cmp(&b.last())));
    curves
}
