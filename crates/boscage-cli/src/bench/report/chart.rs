//! Line charts as SVG: mean lines with bands, thin axes, and a legend beside the plot, where it cannot hide a line.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can tell apart; every method also has a dash pattern.
//! Presentation attributes carry the light look; the page's style sheet overrides them by class on dark screens.

use std::fmt::Write;

use super::curves::{Curve, CurvePoint};

/// Okabe and Ito's colours, with grey for their yellow, which is lost on white.
const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888"];
const DASHES: [&str; 6] = ["", "7 3", "2 2.5", "9 3 2 3", "14 4", "5 2 2 2 2 2"];

/// The font of all pictures: the first is the one that PNG files are drawn with.
pub(crate) const FONT: &str = "DejaVu Sans, Verdana, Segoe UI, Arial, sans-serif";

/// The colour of the method with this number.
pub(crate) fn colour(style: usize) -> &'static str {
    COLOURS[style % COLOURS.len()]
}

/// The dash pattern of the method with this number. Colour and dash together repeat only after 24 methods.
fn dash(style: usize) -> &'static str {
    DASHES[style % DASHES.len()]
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log,
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

/// One axis: from numbers to places.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Where a number is drawn; what lies outside is drawn at the end.
    fn place(&self, number: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (number - self.low) / (self.high - self.low),
            Scale::Log if number <= self.low => 0.0,
            Scale::Log => (number / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, most),
            Scale::Log => log_ticks(self.low, self.high, most),
        }
    }
}

/// Round numbers between two ends, at most `most` of them, with their labels.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let rough = (high - low) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| step * most as f64 >= high - low)
        .unwrap_or(10.0 * power);
    let decimals = (-(step * 1.0001).log10().floor()).clamp(0.0, 12.0) as usize;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let plain = low.abs().max(high.abs()) < 1e7 && decimals <= 6;
    (first..=last)
        .map(|k| {
            let number = k as f64 * step;
            let label = if plain { grouped(number, decimals) } else { short(number) };
            (number, label)
        })
        .collect()
}

/// Powers of ten between two ends; if there are hardly any, 2 and 5 times them too.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |number: f64| number >= low * (1.0 - 1e-9) && number <= high * (1.0 + 1e-9);
    let decades: Vec<i32> = (first..=last).filter(|&k| inside(10f64.powi(k))).collect();
    if decades.len() < 3 {
        let factors: &[f64] = if high / low < 4.0 {
            &[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        return (first..=last)
            .flat_map(|k| factors.iter().map(move |factor| factor * 10f64.powi(k)))
            .filter(|&number| inside(number))
            .map(|number| (number, short(number)))
            .collect();
    }
    let plain = decades.iter().all(|k| (-3..=3).contains(k));
    let skip = decades.len().div_ceil(most.max(1)) as i32;
    decades
        .into_iter()
        .filter(|k| k.rem_euclid(skip) == 0)
        .map(|k| {
            let number = 10f64.powi(k);
            (number, if plain { short(number) } else { format!("10{}", superscript(k)) })
        })
        .collect()
}

fn superscript(number: i32) -> String {
    let digit = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(c),
    };
    number.to_string().chars().map(digit).collect()
}

/// A number with commas between groups of three digits.
pub(crate) fn grouped(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    let negative = number < 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0');
    format!("{}{out}{rest}", if negative { "−" } else { "" })
}

/// A number with about four digits.
pub(crate) fn short(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        "0".to_string()
    } else if !number.is_finite() {
        "–".to_string()
    } else if !(1e-4..1e7).contains(&size) {
        let power = size.log10().floor() as i32;
        let digits = trimmed(grouped(number / 10f64.powi(power), 2));
        format!("{digits}·10{}", superscript(power))
    } else {
        let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
        trimmed(grouped(number, decimals))
    }
}

fn trimmed(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

/// Text for XML and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // control characters may not stand in XML at all
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text is drawn; a little too wide rather than too narrow.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if "il.,'|:; ".contains(c) { 0.38 } else { 0.65 }).sum::<f64>() * size
}

/// The opening of a picture.
pub(crate) fn open_svg(width: f64, height: f64, description: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"{FONT}\" font-size=\"12\" role=\"img\" aria-label=\"{}\">\n\
         <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n",
        escaped(description)
    )
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

/// An axis needs two different ends.
fn widened(low: f64, high: f64, scale: Scale) -> (f64, f64) {
    if high > low && (high - low) > 1e-12 * high.abs() {
        return (low, high);
    }
    match scale {
        Scale::Linear => (low - 0.5 * low.abs().max(1e-9), low + 0.5 * low.abs().max(1e-9)),
        Scale::Log => (low / 2.0, low * 2.0),
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

fn place_list(x: &Axis, y: &Axis, points: impl Iterator<Item = (f64, f64)>) -> String {
    points
        .map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Adds a line. Writing to a string cannot fail.
pub(crate) fn put(out: &mut String, line: std::fmt::Arguments) {
    let _ = out.write_fmt(line);
    out.push('\n');
}
