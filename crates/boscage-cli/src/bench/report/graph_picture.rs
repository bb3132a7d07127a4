//! The true graph beside a learned one, drawn with the same layout.

use std::collections::BTreeSet;

use boscage::graph::Edge;

use crate::draw::layout::{closest, from_segment, layout};
use crate::draw::svg::{colour, escaped, open_svg, put, text_width};

/// What is drawn.
pub(crate) struct GraphPicture<'a> {
    /// Over the panels.
    pub title: String,
    /// Number of variables.
    pub vertices: usize,
    /// The true edges, if known.
    pub truth: Option<&'a [Edge]>,
    /// The learned edges, each with its share of the structure samples.
    pub learned: &'a [(Edge, f64)],
}

const PANEL: f64 = 400.0;
const GAP: f64 = 28.0;
const TOP: f64 = 58.0;
/// More vertices than this get no numbers.
const MOST_LABELLED: usize = 40;
/// The colour of edges that are right, and of those that are wrong.
const RIGHT: usize = 0;
const WRONG: usize = 1;

impl GraphPicture<'_> {
    /// Draws the picture.
    pub(crate) fn svg(&self, description: &str) -> String {
        let learned: Vec<(usize, usize)> =
            self.learned.iter().map(|(edge, _)| (*edge).into()).collect();
        let truth: Option<Vec<(usize, usize)>> =
            self.truth.map(|edges| edges.iter().map(|&edge| edge.into()).collect());
        let shape = match &truth {
            Some(truth) if !truth.is_empty() => truth,
            _ => &learned,
        };
        let labelled = self.vertices <= MOST_LABELLED;
        let places = layout(self.vertices, shape);
        let margin = if labelled { 14.0 } else { 8.0 };
        let scale = PANEL - 2.0 * margin;
        let radius =
            (0.40 * closest(&places) * scale).clamp(1.2, if labelled { 10.0 } else { 5.0 });

        let panels = if truth.is_some() { 2.0 } else { 1.0 };
        let width = panels * PANEL + (panels - 1.0) * GAP + 32.0;
        let height = TOP + PANEL + 44.0;
        let mut svg = open_svg(width.max(560.0), height, description);
        let out = &mut svg;
        put(
            out,
            format_args!(
                "<text class=\"ink\" x=\"16\" y=\"22\" font-size=\"15\" fill=\"#1a1a1a\">{}</text>",
                escaped(&self.title)
            ),
        );
        let at = |vertex: usize, left: f64| {
            let [x, y] = places.get(vertex).copied().unwrap_or_default();
            (left + margin + x * scale, TOP + margin + y * scale)
        };
        let line = |out: &mut String,
                    (i, j): (usize, usize),
                    left: f64,
                    class: &str,
                    look: String| {
            let ((x1, y1), (x2, y2)) = (at(i, left), at(j, left));
            let hides = |k: usize| {
                k != i && k != j && from_segment(at(k, left), (x1, y1), (x2, y2)) < 1.5 * radius
            };
            // an edge that would run through a third vertex goes around it
            let bend = if (0..self.vertices).any(hides) { 0.14 } else { 0.0 };
            let (middle_x, middle_y) =
                ((x1 + x2) / 2.0 - bend * (y2 - y1), (y1 + y2) / 2.0 + bend * (x2 - x1));
            match bend {
                0.0 => put(
                    out,
                    format_args!(
                        "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" fill=\"none\" {look}/>"
                    ),
                ),
                _ => put(
                    out,
                    format_args!(
                        "<path class=\"{class}\" d=\"M{x1:.1} {y1:.1}Q{middle_x:.1} {middle_y:.1} {x2:.1} {y2:.1}\" fill=\"none\" {look}/>"
                    ),
                ),
            }
        };
        let heading = |out: &mut String, left: f64, text: String| {
            put(
                out,
                format_args!(
                    "<text class=\"ink\" x=\"{:.1}\" y=\"46\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1a1a1a\">{}</text>",
                    left + PANEL / 2.0,
                    escaped(&text)
                ),
            );
        };
        let vertices = |out: &mut String, left: f64| {
            for vertex in 0..self.vertices {
                let (x, y) = at(vertex, left);
                put(
                    out,
                    format_args!(
                        "<circle class=\"vertex\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"#ffffff\" stroke=\"#444444\" stroke-width=\"0.9\"/>"
                    ),
                );
                if labelled && radius >= 5.0 {
                    put(
                        out,
                        format_args!(
                            "<text class=\"ink\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{:.1}\" fill=\"#1a1a1a\">{vertex}</text>",
                            y + 0.36 * radius,
                            radius
                        ),
                    );
                }
            }
        };

        let mut left = 16.0;
        if let Some(truth) = &truth {
            heading(out, left, format!("true graph: {} edges", truth.len()));
            for &edge in truth {
                line(
                    out,
                    edge,
                    left,
                    "true-edge",
                    "stroke=\"#555555\" stroke-width=\"1.4\"".to_string(),
                );
            }
            vertices(out, left);
            left += PANEL + GAP;
        }
        let is_true: BTreeSet<_> = truth.iter().flatten().copied().collect();
        let right = learned.iter().filter(|edge| is_true.contains(edge)).count();
        heading(
            out,
            left,
            match &truth {
                Some(_) => format!("learned graph: {} edges, {right} of them true", learned.len()),
                None => format!("learned graph: {} edges", learned.len()),
            },
        );
        let found: BTreeSet<_> = learned.iter().copied().collect();
        for &edge in is_true.difference(&found) {
            line(
                out,
                edge,
                left,
                "missed",
                "stroke=\"#999999\" stroke-width=\"1\" stroke-dasharray=\"1 3\"".to_string(),
            );
        }
        for (&edge, &(_, share)) in learned.iter().zip(self.learned) {
            let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
            let (class, style, dash) = match is_true.contains(&edge) || truth.is_none() {
                true => ("right s0", RIGHT, ""),
                false => ("wrong s1", WRONG, " stroke-dasharray=\"6 3\""),
            };
            line(
                out,
                edge,
                left,
                class,
                format!(
                    "stroke=\"{}\" stroke-width=\"{:.1}\" stroke-opacity=\"{:.2}\"{dash}",
                    colour(style),
                    0.8 + 2.6 * share,
                    0.4 + 0.6 * share
                ),
            );
        }
        vertices(out, left);

        let key_y = height - 20.0;
        let mut x = 16.0;
        let mut key = |out: &mut String, class: &str, look: String, text: &str| {
            put(
                out,
                format_args!(
                    "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {look}/>",
                    key_y - 4.0,
                    x + 28.0,
                    key_y - 4.0
                ),
            );
            put(
                out,
                format_args!(
                    "<text class=\"ink\" x=\"{:.1}\" y=\"{key_y:.1}\" font-size=\"11.5\" fill=\"#1a1a1a\">{text}</text>",
                    x + 34.0
                ),
            );
            x += 34.0 + text_width(text, 11.5) + 14.0;
        };
        if truth.is_some() {
            key(
                out,
                "s0",
                format!("stroke=\"{}\" stroke-width=\"3\"", colour(RIGHT)),
                "learned, true",
            );
            key(
                out,
                "s1",
                format!("stroke=\"{}\" stroke-width=\"3\" stroke-dasharray=\"6 3\"", colour(WRONG)),
                "learned, not true",
            );
            key(
                out,
                "missed",
                "stroke=\"#999999\" stroke-width=\"1\" stroke-dasharray=\"1 3\"".to_string(),
                "true, not learned",
            );
        }
        key(
            out,
            "s0",
            format!("stroke=\"{}\" stroke-width=\"1\" stroke-opacity=\"0.45\"", colour(RIGHT)),
            "thin: in few of the samples",
        );
        svg.push_str("</svg>\n");
        svg
    }
}
