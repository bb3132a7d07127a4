//! What all pictures are made from: colours, numbers as text, axes with round ticks, and the frame of an SVG.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can tell apart. Presentation attributes carry the
//! light look; a page's style sheet overrides them by class on dark screens.

use std::fmt::Write;

/// Okabe and Ito's colours, with grey for their yellow, which is lost on white.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888"];

/// The font of all pictures: the first is the one that PNG files are drawn with.
pub(crate) const FONT: &str = "DejaVu Sans, Verdana, Segoe UI, Arial, sans-serif";

/// The colour with this number.
pub(crate) fn colour(style: usize) -> &'static str {
    COLOURS[style % COLOURS.len()]
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log,
}

/// One axis: from numbers to places.
pub(crate) struct Axis {
    /// How it is divided.
    pub scale: Scale,
    /// The number at its beginning.
    pub low: f64,
    /// The number at its end.
    pub high: f64,
    /// Where it begins in the picture.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

impl Axis {
    /// Where a number is drawn; what lies outside is drawn at the end.
    pub(crate) fn place(&self, number: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (number - self.low) / (self.high - self.low),
            Scale::Log if number <= self.low => 0.0,
            Scale::Log => (number / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// At most about `most` round numbers, with their labels.
    pub(crate) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
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

/// An axis needs two different ends.
pub(crate) fn widened(low: f64, high: f64, scale: Scale) -> (f64, f64) {
    if high > low && (high - low) > 1e-12 * high.abs() {
        return (low, high);
    }
    match scale {
        Scale::Linear => (low - 0.5 * low.abs().max(1e-9), low + 0.5 * low.abs().max(1e-9)),
        Scale::Log => (low / 2.0, low * 2.0),
    }
}

/// Places as a polygon or polyline lists them.
pub(crate) fn place_list(x: &Axis, y: &Axis, points: impl Iterator<Item = (f64, f64)>) -> String {
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
