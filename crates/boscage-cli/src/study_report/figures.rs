//! The pictures of a study's report, each an SVG of its own.
//!
//! Many points are drawn as one path of round dots: a page with a thousand trials stays small.

use std::collections::BTreeSet;
use std::fmt::Write;

use boscage::Value;
use boscage_study::explain::{Explanation, MainEffect, PairImportance, PairSurface, Share};
use boscage_study::{Goal, Kind, State, StudyParameter, StudyView};

use crate::draw::layout::{closest, layout};
use crate::draw::svg::{Axis, Scale, colour, escaped, open_svg, put, short, text_width, widened};
use crate::show::{LEAST_SHARE, name_of, percent};

/// A picture with what is said below it.
pub(crate) struct Figure {
    pub(crate) svg: String,
    pub(crate) caption: String,
}

const PAGE_WIDTH: f64 = 1040.0;
/// Size of one of several small panels, without its labels.
const PANEL_WIDTH: f64 = 250.0;
const PANEL_HEIGHT: f64 = 150.0;
/// More levels than this are not all labelled.
const MOST_LABELS: usize = 6;
/// A study with more parameters than this has only those drawn that matter, and at most this many of them.
const MOST_VERTICES: usize = 40;
const MOST_DRAWN: usize = 60;

/// A parameter along an axis: numbers, or levels side by side.
enum ParameterAxis {
    Numbers(Axis),
    Levels { values: Vec<Value>, from: f64, to: f64 },
}

impl ParameterAxis {
    fn new(parameter: &StudyParameter, from: f64, to: f64) -> Self {
        let numbers = |low: f64, high: f64, log: bool| {
            let scale = if log && low > 0.0 { Scale::Log } else { Scale::Linear };
            let (low, high) = widened(low, high, scale);
            Self::Numbers(Axis { scale, low, high, from, to })
        };
        match &parameter.kind {
            &Kind::Real { low, high, log, .. } => numbers(low, high, log),
            &Kind::Integer { low, high, log, .. } => numbers(low as f64, high as f64, log),
            Kind::Ordinal { levels: values } | Kind::Categorical { choices: values } => {
                Self::Levels { values: values.clone(), from, to }
            }
            Kind::Boolean {} => {
                Self::Levels { values: vec![Value::Boolean(false), Value::Boolean(true)], from, to }
            }
        }
    }

    /// How wide a level is drawn.
    fn step(&self) -> f64 {
        match self {
            Self::Numbers(_) => 0.0,
            Self::Levels { values, from, to } => (to - from) / values.len().max(1) as f64,
        }
    }

    fn place(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Numbers(axis) => value.as_f64().map(|number| axis.place(number)),
            Self::Levels { values, from, .. } => {
                let level = values.iter().position(|known| known == value)?;
                Some(from + (level as f64 + 0.5) * self.step())
            }
        }
    }

    /// Where the cells of a heat map begin and end.
    fn cells(&self, values: &[Value]) -> Vec<(f64, f64)> {
        let places: Vec<f64> = values.iter().filter_map(|value| self.place(value)).collect();
        match self {
            Self::Levels { .. } => {
                places.iter().map(|at| (at - self.step() / 2.0, at + self.step() / 2.0)).collect()
            }
            Self::Numbers(axis) => {
                let middle = |k: usize| match (places.get(k), places.get(k + 1)) {
                    (Some(a), Some(b)) => (a + b) / 2.0,
                    _ => axis.to,
                };
                (0..places.len())
                    .map(|k| (if k == 0 { axis.from } else { middle(k - 1) }, middle(k)))
                    .collect()
            }
        }
    }

    /// Places, labels as they fit, and whole labels.
    fn ticks(&self, room: usize) -> Vec<(f64, String, String)> {
        match self {
            Self::Numbers(axis) => {
                let mut ticks = axis.ticks(4);
                let skip = ticks.len().div_ceil(6).max(1);
                ticks = ticks.into_iter().step_by(skip).collect();
                ticks
                    .into_iter()
                    .map(|(number, label)| (axis.place(number), label.clone(), label))
                    .collect()
            }
            Self::Levels { values, from, .. } => {
                let skip = values.len().div_ceil(MOST_LABELS).max(1);
                let shown = values.len().div_ceil(skip).max(1);
                let most = (room / shown).max(2);
                let tick = |(k, value): (usize, &Value)| {
                    let text = level_text(value);
                    (from + (k as f64 + 0.5) * self.step(), clipped(&text, most), text)
                };
                values.iter().enumerate().step_by(skip).map(tick).collect()
            }
        }
    }
}

fn level_text(value: &Value) -> String {
    match value {
        Value::Real(number) => short(*number),
        other => other.to_string(),
    }
}

/// The beginning of a text, if it is too long.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A text in a picture; whole as a tooltip, if it is clipped.
fn label(out: &mut String, x: f64, y: f64, look: &str, text: &str, most: usize) {
    let shown = clipped(text, most);
    let title =
        if shown == text { String::new() } else { format!("<title>{}</title>", escaped(text)) };
    put(
        out,
        format_args!(
            "<text class=\"ink\" x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#1a1a1a\" {look}>{}{title}</text>",
            escaped(&shown)
        ),
    );
}

/// Dots as one path.
fn dots(out: &mut String, class: &str, look: &str, places: impl Iterator<Item = (f64, f64)>) {
    let mut path = String::new();
    for (x, y) in places {
        // Writing to a string cannot fail.
        let _ = write!(path, "M{x:.1} {y:.1}h0");
    }
    if !path.is_empty() {
        put(
            out,
            format_args!(
                "<path class=\"{class}\" d=\"{path}\" fill=\"none\" stroke-linecap=\"round\" {look}/>"
            ),
        );
    }
}

fn line_path(places: &[(f64, f64)]) -> String {
    places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// The ends of a vertical axis for outcomes: the best belongs to the picture always, the worst few do not if they would press
/// the others flat.
fn outcome_range(outcomes: &[f64], goal: Goal) -> (f64, f64) {
    let mut sorted: Vec<f64> = outcomes.iter().map(|outcome| goal.sign() * outcome).collect();
    // Best first.
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (Some(&best), Some(&worst)) = (sorted.first(), sorted.last()) else { return (0.0, 1.0) };
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let end =
        if best - worst > 4.0 * (best - at(0.9)) { best - 1.3 * (best - at(0.9)) } else { worst };
    let (a, b) = (goal.sign() * best, goal.sign() * end);
    let (low, high) = (a.min(b), a.max(b));
    let room = 0.05 * (high - low);
    widened(low - room, high + room, Scale::Linear)
}

/// A vertical axis for outcomes.
fn outcome_axis(outcomes: &[f64], goal: Goal, from: f64, to: f64) -> Axis {
    let low = outcomes.iter().copied().fold(f64::INFINITY, f64::min);
    let high = outcomes.iter().copied().fold(0.0, f64::max);
    // By powers of ten only where small is good: there the best ones would be pressed flat.
    let (scale, low, high) = if goal == Goal::Minimize && low > 0.0 && high > 100.0 * low {
        (Scale::Log, low / 1.2, high * 1.2)
    } else {
        let (low, high) = outcome_range(outcomes, goal);
        (Scale::Linear, low, high)
    };
    Axis { scale, low, high, from, to }
}

/// Grid, ticks and labels of a vertical axis.
fn vertical(out: &mut String, axis: &Axis, left: f64, right: f64, most: usize) {
    for (number, text) in axis.ticks(most) {
        let at = axis.place(number);
        put(
            out,
            format_args!(
                "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{at:.1}\" x2=\"{right:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\" stroke-width=\"0.8\"/>"
            ),
        );
        label(out, left - 6.0, at + 4.0, "text-anchor=\"end\" font-size=\"11\"", &text, 12);
    }
}

/// The line and ticks of a horizontal axis of a parameter.
fn horizontal(out: &mut String, axis: &ParameterAxis, left: f64, right: f64, bottom: f64) {
    put(
        out,
        format_args!(
            "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\"/>"
        ),
    );
    for (at, text, whole) in axis.ticks(((right - left) / 7.0) as usize) {
        put(
            out,
            format_args!(
                "<path class=\"axis\" d=\"M{at:.1} {bottom:.1}v4\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\"/>"
            ),
        );
        let most = text.chars().count();
        label(out, at, bottom + 16.0, "text-anchor=\"middle\" font-size=\"11\"", &whole, most);
    }
}

/// Every outcome, and the best so far.
pub(crate) fn history(view: &StudyView) -> Option<Figure> {
    let outcomes: Vec<(f64, f64)> = view
        .trials
        .iter()
        .filter_map(|trial| Some((trial.number as f64, trial.outcome()?)))
        .collect();
    if outcomes.is_empty() {
        return None;
    }
    let values: Vec<f64> = outcomes.iter().map(|(_, value)| *value).collect();
    let (left, top, right, bottom) = (80.0, 18.0, PAGE_WIDTH - 20.0, 290.0);
    let last = view.trials.iter().map(|trial| trial.number).max().unwrap_or(0) as f64;
    let (low, high) = widened(0.0, last.max(1.0), Scale::Linear);
    let x = Axis { scale: Scale::Linear, low, high, from: left + 6.0, to: right - 6.0 };
    let y = outcome_axis(&values, view.goal, bottom - 16.0, top);
    let best = view.best().and_then(|trial| trial.outcome()).unwrap_or_default();
    let description =
        format!("Outcomes of {} trials; the best is {}.", outcomes.len(), short(best));
    let mut svg = open_svg(PAGE_WIDTH, 340.0, &description);
    let out = &mut svg;
    vertical(out, &y, left, right, 6);
    put(
        out,
        format_args!(
            "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\"/>"
        ),
    );
    for (number, text) in x.ticks(10) {
        label(
            out,
            x.place(number),
            bottom + 17.0,
            "text-anchor=\"middle\" font-size=\"11\"",
            &text,
            12,
        );
    }
    label(
        out,
        (left + right) / 2.0,
        bottom + 38.0,
        "text-anchor=\"middle\" font-size=\"13\"",
        "trial",
        20,
    );
    let middle = (top + bottom) / 2.0;
    put(
        out,
        format_args!(
            "<text class=\"ink\" transform=\"translate(15 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1a1a1a\">outcome</text>"
        ),
    );
    let places = outcomes.iter().map(|&(number, value)| (x.place(number), y.place(value)));
    let width = if outcomes.len() > 400 { 3.2 } else { 5.0 };
    dots(
        out,
        "s5",
        &format!("stroke=\"{}\" stroke-width=\"{width}\" stroke-opacity=\"0.75\"", colour(5)),
        places,
    );
    // A step for each improvement.
    let mut steps: Vec<(f64, f64)> = Vec::new();
    let mut so_far: Option<f64> = None;
    for &(number, value) in &outcomes {
        if so_far.is_none_or(|known| view.goal.is_better(value, known)) {
            if let Some(known) = so_far {
                steps.push((x.place(number), y.place(known)));
            }
            steps.push((x.place(number), y.place(value)));
            so_far = Some(value);
        }
    }
    steps.push((x.place(last), y.place(so_far.unwrap_or_default())));
    put(
        out,
        format_args!(
            "<polyline class=\"s0\" points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>",
            line_path(&steps),
            colour(0)
        ),
    );
    let failed: Vec<f64> = view
        .trials
        .iter()
        .filter(|trial| trial.state == State::Failed || trial.infeasible)
        .map(|trial| x.place(trial.number as f64))
        .collect();
    let crosses: String = failed
        .iter()
        .map(|at| format!("M{:.1} {:.1}l6 6m-6 0l6-6", at - 3.0, bottom - 10.0))
        .collect();
    if !crosses.is_empty() {
        put(
            out,
            format_args!(
                "<path class=\"failed s1\" d=\"{crosses}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                colour(1)
            ),
        );
    }
    svg.push_str("</svg>\n");
    let mut caption = "Dots: the outcome of each trial. Line: the best so far.".to_string();
    if !failed.is_empty() {
        caption += &format!(
            " Crosses at the bottom: {} trials that failed or broke a constraint.",
            failed.len()
        );
    }
    let beyond = values.iter().filter(|value| !(y.low..=y.high).contains(*value)).count();
    if beyond > 0 {
        caption += &format!(" {beyond} outcomes far from the others are drawn on the edge.");
    }
    Some(Figure { svg, caption })
}

/// Bars with whiskers: parameters on the left, pairs on the right.
pub(crate) fn importances(view: &StudyView, explanation: &Explanation) -> Figure {
    const ROWS: usize = 20;
    const LINE: f64 = 21.0;
    type Bar = (String, Share, Option<f64>);
    let kept =
        |share: f64, row: usize| (share >= LEAST_SHARE || row < 3) && share > 0.0 && row < ROWS;
    let mut order: Vec<usize> = explanation.strongest();
    order.retain(|&d| explanation.parameters[d].total > 0.0);
    let parameters: Vec<Bar> = order
        .iter()
        .enumerate()
        .map(|(row, &d)| (row, explanation.parameters[d]))
        .filter(|(row, importance)| kept(importance.total, *row))
        .map(|(_, importance)| {
            (
                name_of(view, importance.parameter).to_string(),
                importance.main,
                Some(importance.total),
            )
        })
        .collect();
    let pairs: Vec<Bar> = explanation
        .pairs
        .iter()
        .enumerate()
        .filter(|(row, pair)| kept(pair.share.value, *row))
        .map(|(_, pair)| {
            let names = [pair.first, pair.second].map(|d| clipped(name_of(view, d), 15));
            (names.join(" × "), pair.share, None)
        })
        .collect();
    let rows = parameters.len().max(pairs.len()).max(1);
    let height = 58.0 + LINE * rows as f64;
    let mut svg = open_svg(PAGE_WIDTH, height, "Shares of the variance of parameters and pairs.");
    let out = &mut svg;
    let largest = parameters
        .iter()
        .chain(&pairs)
        .map(|(_, share, total)| share.high.max(total.unwrap_or(0.0)))
        .fold(1e-9, f64::max);
    let column = |out: &mut String, left: f64, title: &str, bars: &[Bar], label_room: f64| {
        label(out, left, 16.0, "font-size=\"14\" font-weight=\"600\"", title, 60);
        let start = left + label_room;
        let x =
            Axis { scale: Scale::Linear, low: 0.0, high: largest, from: start, to: left + 440.0 };
        let bottom = 30.0 + LINE * bars.len() as f64;
        for (number, _) in x.ticks(4) {
            let at = x.place(number);
            put(
                out,
                format_args!(
                    "<path class=\"grid\" d=\"M{at:.1} 26V{bottom:.1}\" fill=\"none\" stroke=\"#e4e4e4\" stroke-width=\"0.8\"/>"
                ),
            );
            label(
                out,
                at,
                bottom + 14.0,
                "text-anchor=\"middle\" font-size=\"10.5\"",
                &percent_tick(number),
                9,
            );
        }
        if bars.is_empty() {
            label(out, left, 46.0, "", "none", 10);
        }
        for (row, (name, share, total)) in bars.iter().enumerate() {
            let y = 30.0 + LINE * row as f64;
            label(
                out,
                start - 8.0,
                y + 14.0,
                "text-anchor=\"end\"",
                name,
                (label_room / 7.2) as usize,
            );
            if let Some(total) = total {
                let tip = format!(
                    "{name}: {} alone, {} with its pairs",
                    percent(share.value),
                    percent(*total)
                );
                put(
                    out,
                    format_args!(
                        "<rect class=\"c5\" x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"13\" fill=\"{}\" fill-opacity=\"0.45\"><title>{}</title></rect>",
                        y + 3.5,
                        x.place(*total) - start,
                        colour(5),
                        escaped(&tip)
                    ),
                );
            }
            let style = if total.is_some() { 0 } else { 2 };
            put(
                out,
                format_args!(
                    "<rect class=\"c{style}\" x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"13\" fill=\"{}\"/>",
                    y + 3.5,
                    x.place(share.value) - start,
                    colour(style)
                ),
            );
            put(
                out,
                format_args!(
                    "<path class=\"axis\" d=\"M{:.1} {:.1}H{:.1}m0-3.5v7M{:.1} {:.1}v7\" fill=\"none\" stroke=\"#333333\" stroke-width=\"1.1\"/>",
                    x.place(share.low),
                    y + 10.0,
                    x.place(share.high),
                    x.place(share.low),
                    y + 6.5
                ),
            );
            let shown = total.unwrap_or(share.value);
            let end = x.place(share.high.max(shown)) + 8.0;
            label(out, end, y + 14.0, "font-size=\"11\"", &percent(shown), 9);
        }
    };
    column(out, 10.0, "Parameters", &parameters, 150.0);
    column(out, PAGE_WIDTH / 2.0 + 20.0, "Pairs, beyond what each does alone", &pairs, 215.0);
    svg.push_str("</svg>\n");
    let left = order.len() - parameters.len() + explanation.pairs.len() - pairs.len();
    let mut caption = "Share of the variance over the whole space that comes from each parameter alone (full) and from the pairs \
         that it is in (faint), and from each pair beyond its two parameters. Whiskers: nine of ten functions that fit the \
         outcomes as well lie between."
        .to_string();
    if left > 0 {
        caption += &format!(" {left} weaker parameters and pairs are not shown.");
    }
    if explanation.rest > 0.0 {
        caption += &format!(
            " {} of the variance comes from more parameters together.",
            percent(explanation.rest)
        );
    }
    Figure { svg, caption }
}

fn percent_tick(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The learned graph. A large one is drawn as far as it matters, and whole as a second, small picture.
pub(crate) fn forest(
    view: &StudyView,
    explanation: &Explanation,
) -> Option<(Figure, Option<Figure>)> {
    let learned: Vec<&PairImportance> =
        explanation.pairs.iter().filter(|pair| pair.frequency.is_some()).collect();
    if learned.is_empty() {
        return None;
    }
    let dimension = view.space.dimension();
    let all: Vec<usize> = (0..dimension).collect();
    if dimension <= MOST_VERTICES {
        let svg = graph(view, explanation, &all, &learned, true);
        let caption = format!("{} {}", GRAPH_CAPTION, crate::show::counted(learned.len(), "edge"));
        return Some((Figure { svg, caption: caption + "." }, None));
    }
    let mut kept: BTreeSet<usize> = BTreeSet::new();
    let strong: Vec<&PairImportance> =
        learned.iter().copied().filter(|pair| pair.share.value >= LEAST_SHARE).collect();
    for pair in strong.iter().take(MOST_DRAWN / 2) {
        kept.extend([pair.first, pair.second]);
    }
    for d in explanation.strongest() {
        if kept.len() < MOST_DRAWN && explanation.parameters[d].total >= LEAST_SHARE {
            kept.insert(d);
        }
    }
    let kept: Vec<usize> = kept.into_iter().collect();
    let inside: Vec<&PairImportance> = learned
        .iter()
        .copied()
        .filter(|pair| {
            kept.binary_search(&pair.first).is_ok() && kept.binary_search(&pair.second).is_ok()
        })
        .collect();
    let whole = Figure {
        svg: graph(view, explanation, &all, &learned, false),
        caption: format!("All {dimension} parameters and {} edges.", learned.len()),
    };
    let svg = graph(view, explanation, &kept, &inside, true);
    let caption = format!(
        "{GRAPH_CAPTION} {} of {} edges; {} of {dimension} parameters matter too little to be drawn.",
        inside.len(),
        learned.len(),
        dimension - kept.len()
    );
    Some((Figure { svg, caption }, Some(whole)))
}

const GRAPH_CAPTION: &str = "The learned dependencies. Circles grow with what a parameter does alone, lines with what two do \
     together; a dashed line was in fewer than half of the structure samples.";

fn graph(
    view: &StudyView,
    explanation: &Explanation,
    vertices: &[usize],
    edges: &[&PairImportance],
    labelled: bool,
) -> String {
    let place_of = |d: usize| vertices.iter().position(|&vertex| vertex == d);
    let links: Vec<(usize, usize)> = edges
        .iter()
        .filter_map(|pair| Some((place_of(pair.first)?, place_of(pair.second)?)))
        .collect();
    // Parameters without an edge stand in rows below the others.
    let mut rank: Vec<Option<usize>> = vec![None; vertices.len()];
    let mut linked = 0;
    for &(i, j) in &links {
        for k in [i, j] {
            if rank[k].is_none() {
                rank[k] = Some(linked);
                linked += 1;
            }
        }
    }
    let of = |k: usize| rank.get(k).copied().flatten().unwrap_or_default();
    let ranked: Vec<(usize, usize)> = links.iter().map(|&(i, j)| (of(i), of(j))).collect();
    let places = layout(linked, &ranked);
    let side = match linked {
        _ if !labelled => 640.0,
        0..=3 => 150.0,
        4..=8 => 300.0,
        9..=20 => 440.0,
        _ => 680.0,
    };
    // Names need room at the sides.
    let (margin_x, margin_y) = if labelled { (120.0, 32.0) } else { (16.0, 16.0) };
    let widen = if labelled { 1.3 } else { 1.0 };
    // What is not used above and below is cut off.
    let first = places.iter().map(|place| place[1]).fold(1.0, f64::min);
    let last = places.iter().map(|place| place[1]).fold(first, f64::max);
    let below = 2.0 * margin_y + side * (last - first);
    let (step_x, step_y) = if labelled { (170.0, 44.0) } else { (12.0, 12.0) };
    let width = (side * widen + 2.0 * margin_x).max(if labelled { PAGE_WIDTH } else { 0.0 });
    let columns = (((width - 40.0) / step_x) as usize).max(1);
    let isolated: Vec<usize> = (0..vertices.len()).filter(|&k| rank[k].is_none()).collect();
    let height = below + step_y * isolated.len().div_ceil(columns) as f64;
    let at = |k: usize| match rank.get(k).copied().flatten() {
        Some(rank) => {
            let [x, y] = places.get(rank).copied().unwrap_or_default();
            (margin_x + x * side * widen, margin_y + (y - first) * side)
        }
        None => {
            let place = isolated.iter().position(|&other| other == k).unwrap_or_default();
            let (row, column) = (place / columns, place % columns);
            (30.0 + step_x * column as f64, below + step_y * (row as f64 + 0.4))
        }
    };
    let most_radius = (0.42 * closest(&places) * side).clamp(2.5, 18.0);
    let share =
        |d: usize| explanation.parameters.get(d).map_or(0.0, |parameter| parameter.main.value);
    let largest = vertices.iter().map(|&d| share(d)).fold(1e-9, f64::max);
    let radius = |d: usize| (most_radius * (share(d) / largest).sqrt()).max(most_radius.min(3.5));
    let widest = explanation.pairs.iter().map(|pair| pair.share.value).fold(1e-9, f64::max);
    let description = format!("{} parameters and {} edges.", vertices.len(), edges.len());
    let mut svg = open_svg(width, height, &description);
    let out = &mut svg;
    // Weak ones first, so that strong ones lie on top.
    for (pair, &(i, j)) in edges.iter().zip(&links).rev() {
        let ((x1, y1), (x2, y2)) = (at(i), at(j));
        let strength = (pair.share.value / widest).sqrt();
        let frequency = pair.frequency.unwrap_or(1.0);
        let dash = if frequency < 0.5 { " stroke-dasharray=\"5 4\"" } else { "" };
        let tip = format!(
            "{} × {}: {} of the variance, in {} of the structure samples",
            name_of(view, pair.first),
            name_of(view, pair.second),
            percent(pair.share.value),
            percent(frequency)
        );
        put(
            out,
            format_args!(
                "<path class=\"edge s2\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\" stroke-opacity=\"{:.2}\"{dash}><title>{}</title></path>",
                colour(2),
                0.7 + 6.0 * strength,
                0.3 + 0.6 * strength,
                escaped(&tip)
            ),
        );
    }
    for (k, &d) in vertices.iter().enumerate() {
        let (x, y) = at(k);
        let tip = format!("{}: {} of the variance alone", name_of(view, d), percent(share(d)));
        put(
            out,
            format_args!(
                "<circle class=\"vertex c0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1\"><title>{}</title></circle>",
                radius(d),
                colour(0),
                escaped(&tip)
            ),
        );
    }
    if labelled {
        let mut taken: Vec<[f64; 4]> = Vec::new();
        for (k, &d) in vertices.iter().enumerate() {
            let ((x, y), r) = (at(k), radius(d));
            taken.push([x - r, y - r, x + r, y + r]);
        }
        let order = explanation.strongest();
        let ranked = order.iter().filter_map(|&d| Some((d, place_of(d)?)));
        for (d, k) in ranked {
            let ((x, y), r) = (at(k), radius(d));
            let name = clipped(name_of(view, d), 18);
            let (wide, high) = (text_width(&name, 12.0), 12.0);
            let mut choices = [
                (x + r + 4.0, y + 4.0, "start", x + r + 4.0, (1.0, 0.0)),
                (x - r - 4.0, y + 4.0, "end", x - r - 4.0 - wide, (-1.0, 0.0)),
                (x, y - r - 5.0, "middle", x - wide / 2.0, (0.0, -1.0)),
                (x, y + r + 13.0, "middle", x - wide / 2.0, (0.0, 1.0)),
            ];
            // Away from the edges.
            let towards = |direction: (f64, f64)| {
                let ends = links.iter().filter(|(i, j)| *i == k || *j == k);
                ends.map(|&(i, j)| {
                    let (other_x, other_y) = at(if i == k { j } else { i });
                    let (dx, dy) = (other_x - x, other_y - y);
                    (dx * direction.0 + dy * direction.1) / dx.hypot(dy).max(1e-9)
                })
                .fold(-1.0, f64::max)
            };
            choices.sort_by(|a, b| towards(a.4).total_cmp(&towards(b.4)));
            let free = choices.iter().find(|(_, baseline, _, start, _)| {
                let own = [*start, baseline - high + 2.0, start + wide, baseline + 2.0];
                own[0] > 0.0
                    && own[2] < width
                    && own[1] > 0.0
                    && own[3] < height
                    && !taken
                        .iter()
                        .enumerate()
                        .any(|(other, area)| other != k && overlap(&own, area))
            });
            if let Some(&(x, baseline, anchor, start, _)) = free {
                taken.push([start, baseline - high + 2.0, start + wide, baseline + 2.0]);
                let look = format!("class=\"ink halo\" text-anchor=\"{anchor}\"");
                put(
                    out,
                    format_args!(
                        "<text x=\"{x:.1}\" y=\"{baseline:.1}\" fill=\"#1a1a1a\" {look}>{}</text>",
                        escaped(&name)
                    ),
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Where small panels stand: three in a row.
struct Panels {
    svg: String,
    count: usize,
}

/// The corners of a small panel.
#[derive(Clone, Copy)]
struct Panel {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Panels {
    const ROW: f64 = PANEL_HEIGHT + 66.0;
    const COLUMN: f64 = PAGE_WIDTH / 3.0;

    fn new(count: usize, description: &str) -> Self {
        let height = Self::ROW * count.div_ceil(3).max(1) as f64;
        Self { svg: open_svg(PAGE_WIDTH, height, description), count: 0 }
    }

    /// The next panel, with its heading.
    fn next(&mut self, heading: &str) -> Panel {
        let (row, column) = (self.count / 3, self.count % 3);
        self.count += 1;
        let (left, top) = (Self::COLUMN * column as f64 + 68.0, Self::ROW * row as f64 + 26.0);
        label(&mut self.svg, left, top - 10.0, "font-size=\"13\" font-weight=\"600\"", heading, 30);
        Panel { left, top, right: left + PANEL_WIDTH, bottom: top + PANEL_HEIGHT }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Main effects with bands of two standard deviations; bars where a parameter has levels without numbers.
pub(crate) fn main_effects(view: &StudyView, effects: &[(usize, MainEffect)]) -> Option<Figure> {
    if effects.is_empty() {
        return None;
    }
    let ends = |sign: f64| {
        let all = effects.iter().flat_map(|(_, effect)| effect.mean.iter().zip(&effect.std));
        all.map(move |(mean, std)| mean + sign * 2.0 * std)
    };
    let low = ends(-1.0).fold(0.0, f64::min);
    let high = ends(1.0).fold(0.0, f64::max);
    let (low, high) = widened(low, high, Scale::Linear);
    let mut panels = Panels::new(effects.len(), "Effects of single parameters.");
    for (d, effect) in effects {
        let Some(parameter) = view.space.parameters().get(*d) else { continue };
        let Panel { left, top, right, bottom } = panels.next(&parameter.name);
        let out = &mut panels.svg;
        let y = Axis { scale: Scale::Linear, low, high, from: bottom, to: top };
        let x = ParameterAxis::new(parameter, left, right);
        vertical(out, &y, left, right, 5);
        horizontal(out, &x, left, right, bottom);
        let zero = y.place(0.0);
        put(
            out,
            format_args!(
                "<path class=\"axis\" d=\"M{left:.1} {zero:.1}H{right:.1}\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\" stroke-dasharray=\"2 3\"/>"
            ),
        );
        let points: Vec<(f64, f64, f64)> = effect
            .values
            .iter()
            .zip(effect.mean.iter().zip(&effect.std))
            .filter_map(|(value, (mean, std))| Some((x.place(value)?, *mean, 2.0 * std)))
            .collect();
        match &x {
            ParameterAxis::Levels { .. } => {
                let width = (0.6 * x.step()).min(46.0);
                for &(at, mean, band) in &points {
                    let (one, two) = (y.place(mean).min(zero), y.place(mean).max(zero));
                    put(
                        out,
                        format_args!(
                            "<rect class=\"bar c5\" x=\"{:.1}\" y=\"{one:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\" fill-opacity=\"0.8\"/>",
                            at - width / 2.0,
                            (two - one).max(1.0),
                            colour(5)
                        ),
                    );
                    put(
                        out,
                        format_args!(
                            "<path class=\"axis\" d=\"M{at:.1} {:.1}V{:.1}m-4 0h8M{:.1} {:.1}h8\" fill=\"none\" stroke=\"#333333\" stroke-width=\"1.2\"/>",
                            y.place(mean - band),
                            y.place(mean + band),
                            at - 4.0,
                            y.place(mean - band)
                        ),
                    );
                }
            }
            ParameterAxis::Numbers(_) => {
                let upper = points.iter().map(|&(at, mean, band)| (at, y.place(mean + band)));
                let lower = points.iter().rev().map(|&(at, mean, band)| (at, y.place(mean - band)));
                put(
                    out,
                    format_args!(
                        "<polygon class=\"band c0\" points=\"{}\" fill=\"{}\" fill-opacity=\"0.18\"/>",
                        line_path(&upper.chain(lower).collect::<Vec<_>>()),
                        colour(0)
                    ),
                );
                let line: Vec<(f64, f64)> =
                    points.iter().map(|&(at, mean, _)| (at, y.place(mean))).collect();
                put(
                    out,
                    format_args!(
                        "<polyline class=\"s0\" points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
                        line_path(&line),
                        colour(0)
                    ),
                );
            }
        }
    }
    let good = match view.goal {
        Goal::Minimize => "down",
        Goal::Maximize => "up",
    };
    let caption = format!(
        "What each parameter does alone: how far the outcome is above or below its average over the space, in its own units \
         ({good} is good). Bands and error bars: two standard deviations of the model."
    );
    Some(Figure { svg: panels.finish(), caption })
}

/// The colour between others, at a share of the way.
fn blend(stops: &[[f64; 3]], share: f64) -> String {
    let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let k = (at as usize).min(stops.len().saturating_sub(2));
    let part = at - k as f64;
    let channel = |c: usize| (stops[k][c] + part * (stops[k + 1][c] - stops[k][c])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2))
}

/// Good, average, bad.
const GOOD_TO_BAD: [[f64; 3]; 5] = [
    [5.0, 80.0, 130.0],
    [95.0, 165.0, 205.0],
    [245.0, 245.0, 240.0],
    [240.0, 165.0, 100.0],
    [165.0, 65.0, 0.0],
];
/// Sure to unsure.
const SURE_TO_UNSURE: [[f64; 3]; 3] =
    [[250.0, 248.0, 252.0], [175.0, 150.0, 200.0], [75.0, 35.0, 110.0]];
/// Shades of a heat map.
const SHADES: usize = 40;

/// A heat map: cells of a shade as one path.
fn heat(
    out: &mut String,
    columns: &[(f64, f64)],
    rows: &[(f64, f64)],
    shade: impl Fn(usize, usize) -> f64,
    stops: &[[f64; 3]],
) {
    let mut paths: Vec<String> = vec![String::new(); SHADES + 1];
    for (s, &(bottom, top)) in rows.iter().enumerate() {
        for (r, &(left, right)) in columns.iter().enumerate() {
            let shade = shade(r, s);
            let shade = if shade.is_finite() { shade.clamp(0.0, 1.0) } else { 0.5 };
            let path = &mut paths[(shade * SHADES as f64).round() as usize];
            // Writing to a string cannot fail.
            let _ = write!(path, "M{left:.1} {bottom:.1}H{right:.1}V{top:.1}H{left:.1}z");
        }
    }
    for (k, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let colour = blend(stops, k as f64 / SHADES as f64);
        put(
            out,
            format_args!(
                "<path d=\"{path}\" fill=\"{colour}\" stroke=\"{colour}\" stroke-width=\"0.4\"/>"
            ),
        );
    }
}

/// The strongest pairs: what the model expects, and how sure it is.
pub(crate) fn surfaces(
    view: &StudyView,
    surfaces: &[(PairImportance, PairSurface)],
) -> Vec<Figure> {
    surfaces.iter().filter_map(|(pair, surface)| surface_figure(view, pair, surface)).collect()
}

fn surface_figure(
    view: &StudyView,
    pair: &PairImportance,
    surface: &PairSurface,
) -> Option<Figure> {
    const SIDE: f64 = 300.0;
    let parameters = view.space.parameters();
    let (first, second) = (parameters.get(pair.first)?, parameters.get(pair.second)?);
    let (top, bottom) = (34.0, 34.0 + SIDE);
    let description = format!("{} and {} together.", first.name, second.name);
    let mut svg = open_svg(PAGE_WIDTH, bottom + 56.0, &description);
    let out = &mut svg;
    let largest = surface.mean.iter().map(|mean| mean.abs()).fold(0.0, f64::max);
    let widest = surface.std.iter().copied().fold(0.0, f64::max);
    let size = surface.second.len();
    let bad = -view.goal.sign();
    for panel in 0..2 {
        let left = 90.0 + panel as f64 * 520.0;
        let right = left + SIDE + 40.0;
        let x = ParameterAxis::new(first, left, right);
        let y = ParameterAxis::new(second, bottom, top);
        let (columns, rows) = (x.cells(&surface.first), y.cells(&surface.second));
        let entry =
            |list: &[f64], r: usize, s: usize| list.get(r * size + s).copied().unwrap_or(0.0);
        let (title, stops, ends): (_, &[[f64; 3]], _) = if panel == 0 {
            let shade = |r, s| 0.5 + 0.5 * bad * entry(&surface.mean, r, s) / largest.max(1e-300);
            heat(out, &columns, &rows, shade, &GOOD_TO_BAD);
            ("expected, against the average", &GOOD_TO_BAD, (-bad * largest, bad * largest))
        } else {
            let shade = |r, s| entry(&surface.std, r, s) / widest.max(1e-300);
            heat(out, &columns, &rows, shade, &SURE_TO_UNSURE);
            ("standard deviation", &SURE_TO_UNSURE, (0.0, widest))
        };
        label(out, left, 20.0, "font-size=\"13\" font-weight=\"600\"", title, 60);
        let tried =
            view.trials.iter().filter(|trial| trial.outcome().is_some()).filter_map(|trial| {
                let values = trial.values.as_ref()?;
                let jitter = |axis: &ParameterAxis, salt: u64| {
                    0.55 * axis.step() * spread(trial.number, salt)
                };
                let at_x = x.place(values.get(pair.first)?.as_ref()?)? + jitter(&x, 1);
                let at_y = y.place(values.get(pair.second)?.as_ref()?)? + jitter(&y, 2);
                Some((at_x, at_y))
            });
        let tried: Vec<(f64, f64)> = tried.collect();
        let size = if tried.len() > 300 { 2.2 } else { 3.4 };
        let ring =
            format!("stroke=\"#ffffff\" stroke-width=\"{}\" stroke-opacity=\"0.8\"", size + 1.4);
        dots(out, "tried", &ring, tried.iter().copied());
        dots(
            out,
            "tried",
            &format!("stroke=\"#1a1a1a\" stroke-width=\"{size}\""),
            tried.into_iter(),
        );
        horizontal(out, &x, left, right, bottom);
        for (at, text, whole) in y.ticks(7 * MOST_LABELS) {
            put(
                out,
                format_args!(
                    "<path class=\"axis\" d=\"M{left:.1} {at:.1}h-4\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\"/>"
                ),
            );
            let most = if text == whole { usize::MAX } else { text.chars().count() };
            label(
                out,
                left - 7.0,
                at + 4.0,
                "text-anchor=\"end\" font-size=\"11\"",
                &whole,
                most.min(9),
            );
        }
        label(
            out,
            (left + right) / 2.0,
            bottom + 38.0,
            "text-anchor=\"middle\" font-size=\"13\"",
            &first.name,
            44,
        );
        let middle = (top + bottom) / 2.0;
        put(
            out,
            format_args!(
                "<text class=\"ink\" transform=\"translate({:.1} {middle:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1a1a1a\">{}</text>",
                left - 72.0,
                escaped(&clipped(&second.name, 40))
            ),
        );
        colour_key(out, right + 14.0, top, bottom, stops, ends);
    }
    svg.push_str("</svg>\n");
    let frequency = pair
        .frequency
        .map(|share| format!(", in {} of the structure samples", percent(share)))
        .unwrap_or_default();
    let caption = format!(
        "{} and {}: {} of the variance is what they do together beyond what each does alone{frequency}. Blue is good. Dots are \
         trials.",
        first.name,
        second.name,
        percent(pair.share.value)
    );
    Some(Figure { svg, caption })
}

/// What colours mean, beside a heat map; the first colour at the bottom.
fn colour_key(
    out: &mut String,
    left: f64,
    top: f64,
    bottom: f64,
    stops: &[[f64; 3]],
    ends: (f64, f64),
) {
    let step = (bottom - top) / SHADES as f64;
    for k in 0..SHADES {
        put(
            out,
            format_args!(
                "<path d=\"M{left:.1} {:.1}h14v{:.1}h-14z\" fill=\"{}\"/>",
                bottom - step * k as f64,
                -step - 0.4,
                blend(stops, k as f64 / (SHADES - 1) as f64)
            ),
        );
    }
    label(out, left + 19.0, bottom, "font-size=\"11\"", &short(ends.0), 10);
    label(out, left + 19.0, top + 9.0, "font-size=\"11\"", &short(ends.1), 10);
}

/// A number from −½ to ½ that looks random but is always the same for a trial.
fn spread(trial: u64, salt: u64) -> f64 {
    let mixed = (trial.wrapping_add(salt << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f64 / (1_u64 << 24) as f64 - 0.5
}

/// Outcomes against single parameters.
pub(crate) fn slices(view: &StudyView, parameters: &[usize]) -> Option<Figure> {
    let outcomes: Vec<(u64, f64, &boscage_study::Values)> = view
        .trials
        .iter()
        .filter_map(|trial| Some((trial.number, trial.outcome()?, trial.values.as_ref()?)))
        .collect();
    if outcomes.is_empty() || parameters.is_empty() {
        return None;
    }
    let values: Vec<f64> = outcomes.iter().map(|outcome| outcome.1).collect();
    let mut panels = Panels::new(parameters.len(), "Outcomes against single parameters.");
    for &d in parameters {
        let Some(parameter) = view.space.parameters().get(d) else { continue };
        let Panel { left, top, right, bottom } = panels.next(&parameter.name);
        let out = &mut panels.svg;
        let y = outcome_axis(&values, view.goal, bottom, top);
        let x = ParameterAxis::new(parameter, left, right);
        vertical(out, &y, left, right, 5);
        horizontal(out, &x, left, right, bottom);
        let size = if outcomes.len() > 300 { 2.6 } else { 4.0 };
        // Late trials are darker.
        for (part, opacity) in [(0, 0.3), (1, 0.55), (2, 0.9)] {
            let third = outcomes.len().div_ceil(3);
            let places = outcomes.iter().skip(part * third).take(third).filter_map(
                |(number, outcome, values)| {
                    let at = x.place(values.get(d)?.as_ref()?)?;
                    Some((at + 0.5 * x.step() * spread(*number, 1), y.place(*outcome)))
                },
            );
            dots(
                out,
                "s0",
                &format!(
                    "stroke=\"{}\" stroke-width=\"{size}\" stroke-opacity=\"{opacity}\"",
                    colour(0)
                ),
                places,
            );
        }
        let best = view.best().and_then(|best| {
            let at = x.place(best.values.as_ref()?.get(d)?.as_ref()?)?;
            Some((at + 0.5 * x.step() * spread(best.number, 1), y.place(best.outcome()?)))
        });
        if let Some((at, height)) = best {
            put(
                out,
                format_args!(
                    "<circle class=\"s1\" cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"5\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>",
                    colour(1)
                ),
            );
        }
    }
    let caption = "The outcome of every trial against one parameter at a time; late trials are darker, the best one has a ring. \
                   Everything else varies too, so that this shows where the search went more than what a parameter does."
        .to_string();
    Some(Figure { svg: panels.finish(), caption })
}
