//! Line charts as SVG: mean lines with bands, thin axes, and a legend beside the plot, where it cannot hide a line.
//!
//! Every method has a colour and a dash pattern.

use super::curves::{Curve, CurvePoint};
use crate::draw::svg::{
    Axis, COLOURS, Scale, colour, escaped, open_svg, place_list, put, text_width, widened,
};

const DASHES: [&str; 6] = ["", "7 3", "2 2.5", "9 3 2 3", "14 4", "5 2 2 2 2 2"];

/// The dash pattern of the method with this number. Colour and dash together repeat only after 24 methods.
fn dash(style: usize) -> &'static str {
    DASHES[style % DASHES.len()]
}

/// A chart, ready to be drawn.
pub(crate) struct Chart<'a> {
    /// Over the plot.
    pub title: String,
    /// Below the horizontal axis, with its unit.
    pub x_label: &'a str,
    /// Beside the vertical axis, with its unit.
    pub y_label: &'a str,
    /// The horizontal axis.
    pub x_scale: Scale,
    /// The vertical axis.
    pub y_scale: Scale,
    /// The ends of the vertical axis, where they are not to follow the curves.
    pub y_range: Option<(f64, f64)>,
    /// The curves, in the order of the legend.
    pub curves: &'a [Curve],
    /// A vertical line, and what it marks.
    pub mark: Option<(f64, &'a str)>,
    /// Whether each point of a curve gets a dot.
    pub dots: bool,
}

/// Whether numbers are better seen by powers of ten: they are not negative and span more than two of them.
pub(crate) fn sensible_scale(curves: &[Curve]) -> Scale {
    let means = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.mean);
    let low = means().filter(|&mean| mean > 0.0).fold(f64::INFINITY, f64::min);
    let high = means().fold(0.0, f64::max);
    if means().all(|mean| mean >= 0.0) && high > 100.0 * low { Scale::Log } else { Scale::Linear }
}

/// At most about `most` of the points, first and last among them: a line of 1,000 points looks no different.
fn thinned(points: &[CurvePoint], most: usize) -> Vec<CurvePoint> {
    let step = points.len().div_ceil(most).max(1);
    let mut kept: Vec<_> = points.iter().copied().step_by(step).collect();
    if let Some(last) = points.last()
        && !(points.len() - 1).is_multiple_of(step)
    {
        kept.push(*last);
    }
    kept
}

impl Chart<'_> {
    fn x_range(&self) -> (f64, f64) {
        let all = || self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
        let low = all().fold(f64::INFINITY, f64::min);
        widened(low, all().fold(f64::NEG_INFINITY, f64::max), self.x_scale)
    }

    fn y_ends(&self) -> (f64, f64) {
        if let Some(range) = self.y_range {
            return range;
        }
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let high = points().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
        match self.y_scale {
            Scale::Linear => {
                let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min);
                let room = (high - low) * 0.04;
                // zero belongs to the picture if it is near
                let near_zero = low >= 0.0 && low < 0.4 * high;
                widened(if near_zero { 0.0 } else { low - room }, high + room, self.y_scale)
            }
            Scale::Log => {
                let means = || points().map(|point| point.mean).filter(|&mean| mean > 0.0);
                let smallest = means().fold(f64::INFINITY, f64::min);
                let bands = points().map(|point| point.low).filter(|&low| low > smallest / 3.0);
                let low = bands.fold(smallest, f64::min);
                widened(low / 1.15, high * 1.15, self.y_scale)
            }
        }
    }

    /// Draws the chart.
    pub(crate) fn svg(&self, description: &str) -> String {
        const LEGEND_LINE: f64 = 30.0;
        let y_ends = self.y_ends();
        let height = (74.0 + 20.0 * self.curves.len() as f64).max(400.0);
        let mut y = Axis { scale: self.y_scale, low: y_ends.0, high: y_ends.1, from: 0.0, to: 0.0 };
        let y_ticks = y.ticks(7);
        let label_width =
            y_ticks.iter().map(|(_, label)| text_width(label, 12.0)).fold(0.0, f64::max);
        let legend_width = LEGEND_LINE
            + 8.0
            + self.curves.iter().map(|curve| text_width(&curve.label, 12.0)).fold(60.0, f64::max);
        let (left, top, right, bottom) = (label_width + 42.0, 44.0, 640.0, height - 50.0);
        let width = right + 18.0 + legend_width + 12.0;
        (y.from, y.to) = (bottom, top);
        let x_ends = self.x_range();
        let x = Axis { scale: self.x_scale, low: x_ends.0, high: x_ends.1, from: left, to: right };

        let mut svg = open_svg(width, height, description);
        let out = &mut svg;
        put(
            out,
            format_args!(
                "<text class=\"ink\" x=\"{left:.1}\" y=\"22\" font-size=\"15\" fill=\"#1a1a1a\">{}</text>",
                escaped(&self.title)
            ),
        );
        for (number, label) in &y_ticks {
            let at = y.place(*number);
            put(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{at:.1}\" x2=\"{right:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\" stroke-width=\"0.8\"/>"
                ),
            );
            put(
                out,
                format_args!(
                    "<text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333333\">{}</text>",
                    left - 7.0,
                    at + 4.2,
                    escaped(label)
                ),
            );
        }
        for (number, label) in x.ticks(8) {
            let at = x.place(number);
            put(
                out,
                format_args!(
                    "<line class=\"axis\" x1=\"{at:.1}\" y1=\"{bottom:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"#555555\" stroke-width=\"0.8\"/>",
                    bottom + 4.0
                ),
            );
            put(
                out,
                format_args!(
                    "<text class=\"ink\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333333\">{}</text>",
                    bottom + 18.0,
                    escaped(&label)
                ),
            );
        }
        put(
            out,
            format_args!(
                "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" fill=\"none\" stroke=\"#555555\" stroke-width=\"0.8\"/>"
            ),
        );
        put(
            out,
            format_args!(
                "<text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1a1a1a\">{}</text>",
                (left + right) / 2.0,
                bottom + 40.0,
                escaped(self.x_label)
            ),
        );
        let middle = (top + bottom) / 2.0;
        put(
            out,
            format_args!(
                "<text class=\"ink\" transform=\"translate(16 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1a1a1a\">{}</text>",
                escaped(self.y_label)
            ),
        );
        if let Some((at, what)) = self.mark
            && (x.low..=x.high).contains(&at)
        {
            let at = x.place(at);
            put(
                out,
                format_args!(
                    "<line class=\"mark\" x1=\"{at:.1}\" y1=\"{top:.1}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\" stroke=\"#777777\" stroke-width=\"1\" stroke-dasharray=\"1.5 3\"/>"
                ),
            );
            put(
                out,
                format_args!(
                    "<text class=\"ink\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10.5\" fill=\"#555555\">{}</text>",
                    top - 5.0,
                    escaped(what)
                ),
            );
        }

        // worst first, so that the best line lies on top
        for curve in self.curves.iter().rev() {
            let points = thinned(&curve.points, 400);
            if points.iter().any(|point| point.high > point.low) {
                let upper = points.iter().map(|point| (point.x, point.high));
                let lower = points.iter().rev().map(|point| (point.x, point.low));
                let places = place_list(&x, &y, upper.chain(lower));
                put(
                    out,
                    format_args!(
                        "<polygon class=\"band c{}\" fill=\"{}\" fill-opacity=\"0.16\" points=\"{places}\"/>",
                        curve.style % COLOURS.len(),
                        colour(curve.style)
                    ),
                );
            }
        }
        for curve in self.curves.iter().rev() {
            let points = thinned(&curve.points, 400);
            let places = place_list(&x, &y, points.iter().map(|point| (point.x, point.mean)));
            put(
                out,
                format_args!(
                    "<polyline class=\"line s{}\" data-method=\"{}\" {} points=\"{places}\"/>",
                    curve.style % COLOURS.len(),
                    escaped(&curve.label),
                    stroke(curve.style)
                ),
            );
            if self.dots || points.len() == 1 {
                for point in &points {
                    put(
                        out,
                        format_args!(
                            "<circle class=\"c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\"/>",
                            curve.style % COLOURS.len(),
                            x.place(point.x),
                            y.place(point.mean),
                            colour(curve.style)
                        ),
                    );
                }
            }
        }
        let start = right + 18.0;
        for (row, curve) in self.curves.iter().enumerate() {
            let at = top + 8.0 + 20.0 * row as f64;
            put(
                out,
                format_args!(
                    "<line class=\"key s{}\" x1=\"{start:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" {}/>",
                    curve.style % COLOURS.len(),
                    start + LEGEND_LINE,
                    stroke(curve.style)
                ),
            );
            put(
                out,
                format_args!(
                    "<text class=\"ink legend\" x=\"{:.1}\" y=\"{:.1}\" fill=\"#1a1a1a\">{}</text>",
                    start + LEGEND_LINE + 8.0,
                    at + 4.2,
                    escaped(&curve.label)
                ),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn stroke(style: usize) -> String {
    let dashes = match dash(style) {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    };
    format!(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dashes}",
        colour(style)
    )
}
