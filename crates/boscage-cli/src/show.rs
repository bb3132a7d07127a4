//! What a study has learned, as text for a terminal and as JSON: `boscage show`, and the end of `boscage tune`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use boscage::Value;
use boscage::graph::UnionFind;
use boscage_study::explain::{Explanation, PairImportance, Predicted, Share};
use boscage_study::{State, StudyView, Trial};
use serde_json::{Value as Json, json};

/// The width of text that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;
/// The most bars, and the most edges of the forest, in the text of a study and in a summary.
const MOST_BARS: usize = 15;
const MOST_EDGES: usize = 30;
const MOST_SUMMARY_EDGES: usize = 15;
/// A point with more parameters than the first has only the second number of them listed.
const MOST_VALUES: usize = 60;
const MOST_VALUES_OF_MANY: usize = 24;
/// The most parameters whose values a summary lists.
const MOST_SUMMARY_VALUES: usize = 12;
/// The most failures whose reasons are listed, and the most characters of each.
const MOST_FAILURES: usize = 5;
const MOST_REASON: usize = 300;
/// Shares below this are left out, and counted.
pub(crate) const LEAST_SHARE: f64 = 0.005;

/// How text is laid out.
#[derive(Clone, Copy)]
struct Look {
    width: usize,
    colour: bool,
}

impl Look {
    fn of_terminal() -> Self {
        let width = console::Term::stdout().size_checked().map(|(_, width)| usize::from(width));
        Self { width: width.unwrap_or(PLAIN_WIDTH).max(40), colour: console::colors_enabled() }
    }

    fn heading(self, text: &str) -> String {
        console::style(text).bold().force_styling(self.colour).to_string()
    }

    fn strong(self, text: &str) -> String {
        console::style(text).green().force_styling(self.colour).to_string()
    }

    fn soft(self, text: &str) -> String {
        console::style(text).dim().force_styling(self.colour).to_string()
    }
}

/// Writes all that is known of a study.
pub(crate) fn text(
    view: &StudyView,
    explanation: Option<&Explanation>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    write_text(view, explanation, out, Look::of_terminal())
}

/// Writes the best point and the learned forest, in about ten lines.
pub(crate) fn summary(
    view: &StudyView,
    explanation: Option<&Explanation>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    write_summary(view, explanation, out, Look::of_terminal())
}

fn write_text(
    view: &StudyView,
    explanation: Option<&Explanation>,
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    writeln!(out, "{}", look.heading(&harmless(&view.name)))?;
    let facts = [
        ("goal", view.goal.name().to_string()),
        ("stored in", harmless(&view.storage)),
        ("method", format!("{}, seed {}", method_name(view), view.seed)),
        ("parameters", view.space.dimension().to_string()),
        ("trials", trial_counts(view)),
    ];
    for (name, fact) in facts {
        writeln!(out, "  {name:<12}{fact}")?;
    }
    let Some(best) = view.best() else {
        writeln!(out, "\nNo trial has a value yet.")?;
        return write_failures(view, out, look);
    };
    let value = best.outcome().map(number).unwrap_or_default();
    writeln!(out, "\n{}", look.heading(&format!("Best outcome: {value}, trial {}", best.number)))?;
    let Some(explanation) = explanation else {
        write_values(view, None, best.values.as_deref().unwrap_or_default(), None, out, look)?;
        writeln!(out, "\n{}", no_model(view))?;
        return write_failures(view, out, look);
    };
    let (recommended, luckiest) = (&explanation.recommended, &explanation.luckiest);
    writeln!(out, "  {}", luckiest_line(luckiest))?;
    if recommended.trial == luckiest.trial {
        let reason = match explanation.is_believable() {
            true => {
                "It is also the recommended point: of all points tried the model expects most of it."
            }
            false => {
                "It is also the recommended point, as long as the model predicts too little to know a better one."
            }
        };
        writeln!(out, "  {reason}")?;
        write_values(view, Some(explanation), &luckiest.values, None, out, look)?;
    } else {
        write_values(view, Some(explanation), &luckiest.values, None, out, look)?;
        let heading = format!("Recommended point: trial {}", recommended.trial);
        writeln!(out, "\n{}", look.heading(&heading))?;
        writeln!(out, "  {}", recommended_line(recommended))?;
        let others = Some(luckiest.values.as_slice());
        write_values(view, Some(explanation), &recommended.values, others, out, look)?;
    }
    writeln!(out, "\n{}", look.heading("What matters"))?;
    writeln!(out, "  {}", harmless(&explanation.sentence()))?;
    write_bars(view, explanation, out, look)?;
    writeln!(out, "\n{}", look.heading("What acts together"))?;
    write_forest(view, explanation, MOST_EDGES, out, look)?;
    writeln!(out, "\n{}", look.heading("How far to trust this"))?;
    for line in trust_lines(explanation) {
        writeln!(out, "  {line}")?;
    }
    write_failures(view, out, look)
}

/// Why the last trials that failed did.
fn write_failures(view: &StudyView, out: &mut dyn Write, look: Look) -> anyhow::Result<()> {
    let failures: Vec<(u64, &str)> = failures(view).collect();
    if failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", look.heading("What failed"))?;
    let left = failures.len().saturating_sub(MOST_FAILURES);
    if left > 0 {
        let earlier =
            format!("{} earlier; `boscage export` has all reasons", counted(left, "trial"));
        writeln!(out, "  {}", look.soft(&earlier))?;
    }
    for (number, reason) in &failures[left..] {
        // The rest is what the program said.
        let line = harmless(reason.lines().next().unwrap_or_default());
        match line.char_indices().nth(MOST_REASON) {
            Some((end, _)) => writeln!(out, "  trial {number}: {} …", &line[..end])?,
            None => writeln!(out, "  trial {number}: {line}")?,
        }
    }
    Ok(())
}

/// Numbers of the trials that failed, or whose value was made up, and why.
fn failures(view: &StudyView) -> impl Iterator<Item = (u64, &str)> {
    view.trials.iter().filter_map(|trial| Some((trial.number, trial.failure.as_deref()?)))
}

fn write_summary(
    view: &StudyView,
    explanation: Option<&Explanation>,
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    let Some(best) = view.best() else {
        writeln!(out, "No trial has a value: {}.", trial_counts(view))?;
        return Ok(());
    };
    let value = best.outcome().map(number).unwrap_or_default();
    writeln!(out, "{} (trial {})", look.heading(&format!("Best outcome: {value}")), best.number)?;
    let order =
        explanation.map_or_else(|| (0..view.space.dimension()).collect(), Explanation::strongest);
    let shown: BTreeSet<usize> = order.iter().copied().take(MOST_SUMMARY_VALUES).collect();
    let values = best.values.as_deref().unwrap_or_default();
    let cells = cells(view, values, None, |d| shown.contains(&d));
    write_columns(&cells, out, look)?;
    if let Some(left) = view.space.dimension().checked_sub(shown.len()).filter(|&left| left > 0) {
        writeln!(out, "  {}", look.soft(&format!("and {}", counted(left, "more parameter"))))?;
    }
    let Some(explanation) = explanation else { return Ok(()) };
    if explanation.recommended.trial != explanation.luckiest.trial {
        let line = recommended_line(&explanation.recommended);
        writeln!(out, "Recommended: trial {}. {line}", explanation.recommended.trial)?;
    }
    writeln!(out, "{}", harmless(&explanation.sentence()))?;
    let is_shown =
        |pair: &PairImportance| pair.frequency.is_some() && pair.share.value >= LEAST_SHARE;
    if explanation.pairs.iter().any(is_shown) {
        writeln!(out, "{}", look.heading("Learned to act together:"))?;
        write_forest(view, explanation, MOST_SUMMARY_EDGES, out, look)?;
    }
    Ok(())
}

/// Why there is nothing to explain.
pub(crate) fn no_model(view: &StudyView) -> String {
    let outcomes = view.trials.iter().filter(|trial| trial.outcome().is_some()).count();
    match method_name(view).as_str() {
        name @ ("random" | "rembo") => {
            format!("The method {name} has no model of the parameters: it cannot say what matters.")
        }
        _ => format!("There is no model yet, after {}.", counted(outcomes, "outcome")),
    }
}

/// The name of the method, as settings have it.
pub(crate) fn method_name(view: &StudyView) -> String {
    let json = serde_json::to_value(&view.method).unwrap_or_default();
    json.get("name").and_then(Json::as_str).unwrap_or("unknown").to_string()
}

/// "60: 55 complete, 5 failed".
pub(crate) fn trial_counts(view: &StudyView) -> String {
    let states = [
        (State::Complete, "complete"),
        (State::Running, "running"),
        (State::Waiting, "waiting"),
        (State::Pruned, "pruned"),
        (State::Failed, "failed"),
    ];
    let count = |state| view.trials.iter().filter(|trial| trial.state == state).count();
    let mut parts: Vec<String> = states
        .iter()
        .map(|&(state, word)| (count(state), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let infeasible = view.trials.iter().filter(|trial| trial.infeasible).count();
    if infeasible > 0 {
        parts.push(format!("{infeasible} of them infeasible"));
    }
    match parts.is_empty() {
        true => "none".to_string(),
        false => format!("{}: {}", view.trials.len(), parts.join(", ")),
    }
}

/// "1 edge", "2 edges".
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number with at most six digits, as programs read it.
pub(crate) fn number(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    let size = rounded.abs();
    if rounded == 0.0 {
        "0".to_string()
    } else if (1e-4..1e7).contains(&size) {
        format!("{rounded}")
    } else {
        format!("{rounded:e}")
    }
}

/// A number with at most three digits.
fn rough(size: f64) -> String {
    number(format!("{size:.2e}").parse().unwrap_or(size))
}

/// A mean and its standard deviation, the mean with as many decimals as the deviation gives sense to.
pub(crate) fn plus_minus(mean: f64, std: f64) -> String {
    let finest = if std > 0.0 { (1.0 - std.log10().floor()).clamp(0.0, 12.0) } else { 0.0 };
    if std > 0.0 && (1e-4..1e7).contains(&mean.abs().max(std)) {
        let digits = finest as usize;
        format!("{mean:.digits$} ± {std:.digits$}")
    } else {
        format!("{} ± {}", number(mean), number(std))
    }
}

/// A value in few digits; `-` where there is none.
pub(crate) fn brief(value: Option<&Value>) -> String {
    match value {
        None => "-".to_string(),
        Some(Value::Real(real)) => number(*real),
        Some(other) => harmless(&other.to_string()),
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    match 100.0 * share {
        zero if zero <= 0.0 => "0 %".to_string(),
        tiny if tiny < 0.1 => "<0.1 %".to_string(),
        small if small < 9.95 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}

/// Text that cannot move the cursor or change colours.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

pub(crate) fn luckiest_line(luckiest: &Predicted) -> String {
    format!(
        "It gave {}; the model expects {} there.",
        number(luckiest.outcome),
        plus_minus(luckiest.mean, luckiest.std)
    )
}

pub(crate) fn recommended_line(recommended: &Predicted) -> String {
    format!(
        "Of all points tried the model expects most of this one: {}. It gave {}.",
        plus_minus(recommended.mean, recommended.std),
        number(recommended.outcome)
    )
}

/// How far the model can be trusted, in sentences.
pub(crate) fn trust_lines(explanation: &Explanation) -> Vec<String> {
    let trust = &explanation.trust;
    let Some(predicted) = trust.predicted else {
        let little = format!(
            "{}: nothing can be predicted from so little.",
            counted(trust.observations, "outcome")
        );
        return [little].into_iter().chain(explanation.penalties_sentence()).collect();
    };
    let verdict = match predicted {
        p if p >= 0.9 => "the model describes the outcomes well",
        p if p >= 0.6 => "the model describes the main lines",
        p if p >= 0.25 => "the model is rough: read importances as hints",
        _ => "the model does not describe the outcomes yet: do not read anything into importances",
    };
    let share = if predicted <= 0.0 { "none".to_string() } else { percent(predicted) };
    let mut lines = vec![
        format!(
            "Each of {} predicted from the others: {share} of the variance; {verdict}.",
            counted(trust.observations, "outcome")
        ),
        format!(
            "Typical error of such a prediction: {}; {} lie within two standard deviations (95 % should). Learned noise: {}.",
            rough(trust.error),
            percent(trust.within_two),
            rough(trust.noise)
        ),
    ];
    lines.extend(explanation.penalties_sentence());
    // What cannot be learned has nothing to say.
    if let Ok(comparison) = explanation.comparison() {
        lines.extend(explanation.comparison_sentences(&comparison));
    }
    lines.extend(explanation.range_sentences());
    lines
}

/// Names and values of the parameters that are wanted, with a mark where they differ from others.
fn cells(
    view: &StudyView,
    values: &[Option<Value>],
    others: Option<&[Option<Value>]>,
    wanted: impl Fn(usize) -> bool,
) -> Vec<(String, String)> {
    let parameters = view.space.parameters().iter().enumerate().filter(|(d, _)| wanted(*d));
    parameters
        .map(|(d, parameter)| {
            let value = values.get(d).and_then(Option::as_ref);
            let differs =
                others.is_some_and(|others| others.get(d).and_then(Option::as_ref) != value);
            let mark = if differs { " *" } else { "" };
            (harmless(&parameter.name), format!("{}{mark}", brief(value)))
        })
        .collect()
}

/// The values of a point; of many parameters only the strongest.
fn write_values(
    view: &StudyView,
    explanation: Option<&Explanation>,
    values: &[Option<Value>],
    others: Option<&[Option<Value>]>,
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    let dimension = view.space.dimension();
    let most = if dimension <= MOST_VALUES { dimension } else { MOST_VALUES_OF_MANY };
    let order = explanation.map_or_else(|| (0..dimension).collect(), Explanation::strongest);
    let shown: BTreeSet<usize> = order.into_iter().take(most).collect();
    write_columns(&cells(view, values, others, |d| shown.contains(&d)), out, look)?;
    if others.is_some_and(|others| others != values) {
        writeln!(out, "  {}", look.soft("* not as in the best trial"))?;
    }
    if dimension > most {
        let which = if explanation.is_some() { "that matter less" } else { "after these" };
        let line = format!("{} parameters {which} are left out; --json has all", dimension - most);
        writeln!(out, "  {}", look.soft(&line))?;
    }
    Ok(())
}

/// Names with values in as many columns as fit, read from top to bottom.
fn write_columns(
    cells: &[(String, String)],
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    let widest = |pick: fn(&(String, String)) -> &String| {
        cells.iter().map(|cell| console::measure_text_width(pick(cell))).max().unwrap_or(0)
    };
    let (names, values) = (widest(|cell| &cell.0), widest(|cell| &cell.1));
    let cell_width = names + 2 + values + 4;
    let columns = (look.width.saturating_sub(2) / cell_width.max(1)).clamp(1, 6);
    let rows = cells.len().div_ceil(columns);
    for row in 0..rows {
        let mut line = String::from("  ");
        for (name, value) in cells.iter().skip(row).step_by(rows.max(1)) {
            line += &format!("{}  {}    ", padded(name, names), padded(value, values));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(console::measure_text_width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// The strongest effects as bars.
fn write_bars(
    view: &StudyView,
    explanation: &Explanation,
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    let all = shares(view, explanation);
    let shown: Vec<&(String, Share)> =
        all.iter().filter(|(_, share)| share.value >= LEAST_SHARE).take(MOST_BARS).collect();
    let names =
        shown.iter().map(|(name, _)| console::measure_text_width(name)).max().unwrap_or(0).min(40);
    let room = look.width.saturating_sub(names + 32).clamp(10, 40);
    let largest = shown.iter().map(|(_, share)| share.value).fold(1e-12, f64::max);
    for (name, share) in &shown {
        let eighths = (share.value / largest * 8.0 * room as f64).round().max(1.0) as usize;
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar = padded(&format!("{}{part}", "█".repeat(eighths / 8)), room);
        let range = format!("({} to {})", percent(share.low), percent(share.high));
        let value = percent(share.value);
        writeln!(
            out,
            "  {}  {} {value:>7}  {}",
            padded(name, names),
            look.strong(&bar),
            look.soft(&range)
        )?;
    }
    let left = all.len() - shown.len();
    if left > 0 {
        let rest: f64 = all.iter().map(|(_, share)| share.value).sum::<f64>()
            - shown.iter().map(|(_, share)| share.value).sum::<f64>();
        let line = format!("{} with {} in sum left out", counted(left, "effect"), percent(rest));
        writeln!(out, "  {}", look.soft(&line))?;
    }
    if explanation.rest > 0.0 {
        let what = match explanation.rest_is_pairs {
            true => "weaker pairs do",
            false => "more parameters do together",
        };
        let line = format!("{} is what {what}", percent(explanation.rest));
        writeln!(out, "  {}", look.soft(&line))?;
    }
    Ok(())
}

/// All effects with their names, strongest first.
fn shares(view: &StudyView, explanation: &Explanation) -> Vec<(String, Share)> {
    let name = |d: usize| harmless(name_of(view, d));
    let alone =
        explanation.parameters.iter().map(|parameter| (name(parameter.parameter), parameter.main));
    let pairs = explanation
        .pairs
        .iter()
        .map(|pair| (format!("{} × {}", name(pair.first), name(pair.second)), pair.share));
    let mut shares: Vec<(String, Share)> = alone.chain(pairs).collect();
    shares.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    shares
}

/// The name of a parameter.
pub(crate) fn name_of(view: &StudyView, d: usize) -> &str {
    view.space.parameters().get(d).map_or("", |parameter| parameter.name.as_str())
}

/// The learned graph as indented trees, strongest first. Weak edges are counted only.
fn write_forest(
    view: &StudyView,
    explanation: &Explanation,
    most: usize,
    out: &mut dyn Write,
    look: Look,
) -> anyhow::Result<()> {
    let learned: Vec<&PairImportance> =
        explanation.pairs.iter().filter(|pair| pair.frequency.is_some()).collect();
    if learned.is_empty() {
        let line = match explanation.additive {
            true if explanation.probabilities => {
                "No two parameters stand out; weak pairs may be there unseen."
            }
            true => "No two parameters: each acts on its own.",
            false => "The model is one function of all parameters: it has no structure to show.",
        };
        writeln!(out, "  {line}")?;
        return Ok(());
    }
    let shown: Vec<&PairImportance> =
        learned.iter().copied().filter(|pair| pair.share.value >= LEAST_SHARE).take(most).collect();
    // A graph with cycles is shown as its strongest forest, and what closes a cycle after that.
    let mut joined = UnionFind::new(view.space.dimension());
    let (tree, closing): (Vec<&PairImportance>, Vec<&PairImportance>) =
        shown.iter().copied().partition(|pair| joined.union(pair.first, pair.second));
    let mut neighbours: Neighbours = BTreeMap::new();
    for pair in tree {
        neighbours.entry(pair.first).or_default().push((pair.second, pair));
        neighbours.entry(pair.second).or_default().push((pair.first, pair));
    }
    let mut roots: Vec<usize> = neighbours.keys().copied().collect();
    let total = |d: usize| explanation.parameters.get(d).map_or(0.0, |parameter| parameter.total);
    roots.sort_by(|&a, &b| total(b).total_cmp(&total(a)));
    let mut lines: Vec<(String, Option<&PairImportance>)> = Vec::new();
    let mut begun = UnionFind::new(view.space.dimension());
    for pair in shown.iter() {
        begun.union(pair.first, pair.second);
    }
    let mut parts = BTreeSet::new();
    for root in roots {
        if parts.insert(begun.find(root)) {
            lines.push((harmless(name_of(view, root)), None));
            add_children(view, &neighbours, root, None, "", &mut lines);
        }
    }
    for pair in closing {
        let name = |d: usize| harmless(name_of(view, d));
        lines.push((format!("also {} × {}", name(pair.first), name(pair.second)), Some(pair)));
    }
    let width = lines.iter().map(|(line, _)| console::measure_text_width(line)).max().unwrap_or(0);
    for (line, pair) in &lines {
        match pair {
            None => writeln!(out, "  {line}")?,
            Some(pair) => {
                let seen = percent(pair.frequency.unwrap_or(0.0));
                let facts =
                    format!("interaction {}, in {seen} of samples", percent(pair.share.value));
                writeln!(out, "  {}  {}", padded(line, width), look.soft(&facts))?;
            }
        }
    }
    let left = learned.len() - shown.len();
    if left > 0 {
        let parameters = view.space.dimension() - lines_parameters(&shown).len();
        let weak = if shown.len() < most {
            format!(" below {}", percent(LEAST_SHARE))
        } else {
            String::new()
        };
        let line = format!(
            "{}{weak} and {} left out",
            counted(left, "edge"),
            counted(parameters, "parameter")
        );
        writeln!(out, "  {}", look.soft(&line))?;
    }
    Ok(())
}

fn lines_parameters(pairs: &[&PairImportance]) -> BTreeSet<usize> {
    pairs.iter().flat_map(|pair| [pair.first, pair.second]).collect()
}

type Neighbours<'a> = BTreeMap<usize, Vec<(usize, &'a PairImportance)>>;

/// The rows below a parameter of a forest, strongest first.
fn add_children<'a>(
    view: &StudyView,
    neighbours: &Neighbours<'a>,
    parameter: usize,
    parent: Option<usize>,
    indent: &str,
    lines: &mut Vec<(String, Option<&'a PairImportance>)>,
) {
    let around = neighbours.get(&parameter).map(Vec::as_slice).unwrap_or_default();
    let children: Vec<_> = around.iter().filter(|(other, _)| Some(*other) != parent).collect();
    for (k, &&(child, pair)) in children.iter().enumerate() {
        let (branch, next) =
            if k + 1 == children.len() { ("└─", "   ") } else { ("├─", "│  ") };
        lines.push((format!("{indent}{branch} {}", harmless(name_of(view, child))), Some(pair)));
        add_children(view, neighbours, child, Some(parameter), &format!("{indent}{next}"), lines);
    }
}

/// All that is known of a study, for programs.
pub(crate) fn json(view: &StudyView, explanation: Option<&Explanation>) -> Json {
    let values = |values: &[Option<Value>]| Json::Object(view.space.to_json(values));
    let count = |state| view.trials.iter().filter(|trial| trial.state == state).count();
    let best = view.best().map(|trial: &Trial| {
        json!({
            "trial": trial.number,
            "value": trial.value,
            "values": values(trial.values.as_deref().unwrap_or_default()),
        })
    });
    let predicted = |point: &Predicted| {
        json!({
            "trial": point.trial,
            "outcome": point.outcome,
            "mean": point.mean,
            "std": point.std,
            "values": values(&point.values),
        })
    };
    let explained = explanation.map(|explanation| {
        let parameters: Vec<Json> = explanation
            .strongest()
            .into_iter()
            .filter_map(|d| explanation.parameters.get(d))
            .map(|parameter| {
                json!({
                    "name": name_of(view, parameter.parameter),
                    "share": parameter.main.value,
                    "low": parameter.main.low,
                    "high": parameter.main.high,
                    "total": parameter.total,
                })
            })
            .collect();
        let pairs: Vec<Json> = explanation
            .pairs
            .iter()
            .map(|pair| {
                json!({
                    "names": [name_of(view, pair.first), name_of(view, pair.second)],
                    "share": pair.share.value,
                    "low": pair.share.low,
                    "high": pair.share.high,
                    "frequency": pair.frequency,
                })
            })
            .collect();
        let trust = &explanation.trust;
        // What cannot be learned has nothing to say.
        let others = explanation.comparison().ok().map(|found| {
            json!({
                "alone": found.alone,
                "forest": found.forest.and_then(|(_, predicted)| predicted),
                "pairs": found.forest.map_or(0, |(count, _)| count),
                "whole": found.whole,
            })
        });
        json!({
            "recommended": predicted(&explanation.recommended),
            "luckiest": predicted(&explanation.luckiest),
            "sentence": explanation.sentence(),
            "ranges": explanation.range_sentences(),
            "importance": { "parameters": parameters, "pairs": pairs, "rest": explanation.rest },
            "trust": {
                "observations": trust.observations,
                "penalties": explanation.penalties.len(),
                "predicted": trust.predicted,
                "error": trust.error,
                "within_two": trust.within_two,
                "noise": trust.noise,
                "others": others,
            },
        })
    });
    json!({
        "name": view.name,
        "storage": view.storage,
        "goal": view.goal.name(),
        "method": serde_json::to_value(&view.method).unwrap_or_default(),
        "seed": view.seed,
        "parameters": view.space.dimension(),
        "trials": {
            "all": view.trials.len(),
            "complete": count(State::Complete),
            "running": count(State::Running),
            "waiting": count(State::Waiting),
            "pruned": count(State::Pruned),
            "failed": count(State::Failed),
            "infeasible": view.trials.iter().filter(|trial| trial.infeasible).count(),
        },
        "failures": failures(view)
            .map(|(number, reason)| json!({"trial": number, "reason": reason}))
            .collect::<Vec<Json>>(),
        "best": best,
        "explanation": explained,
    })
}

#[cfg(test)]
mod tests {
    use boscage::Method;
    use boscage_study::{Goal, Kind, StudyParameter};

    use super::*;
    use crate::study_report::examples::{large, mixed, star, view_of};

    const LOOK: Look = Look { width: 100, colour: false };

    fn texts(view: &StudyView) -> (String, String) {
        let explanation = Explanation::new(view).unwrap();
        let (mut whole, mut short) = (Vec::new(), Vec::new());
        write_text(view, explanation.as_ref(), &mut whole, LOOK).unwrap();
        write_summary(view, explanation.as_ref(), &mut short, LOOK).unwrap();
        (String::from_utf8(whole).unwrap(), String::from_utf8(short).unwrap())
    }

    #[test]
    fn a_study_of_every_kind() {
        let (whole, short) = texts(&mixed(60));
        insta::assert_snapshot!(whole, @r#"
        example
          goal        minimize
          stored in   sqlite:///example.db
          method      boscage, seed 7
          parameters  8
          trials      60: 55 complete, 5 failed

        Best outcome: 20.0287, trial 49
          It gave 20.0287; the model expects 20.086 ± 0.025 there.
          cache     4096          rate      0.00112519    compress  true          share     1
          threads   15            mode      fast          level     high          idle      0.8

        Recommended point: trial 52
          Of all points tried the model expects most of this one: 20.071 ± 0.048. It gave 20.0602.
          cache     44 *             mode      fast             share     1
          threads   8 *              compress  true             idle      -1 *
          rate      0.000999272 *    level     high
          * not as in the best trial

        What matters
          4 of 8 parameters explain 95 % of the variance; cache and threads must be tuned together.
          cache × threads  ████████████████████████████████████████    39 %  (32 % to 43 %)
          mode             ███████████████████████                     23 %  (19 % to 27 %)
          threads          ████████████▌                               12 %  (9.8 % to 19 %)
          rate             ███████████▎                                11 %  (8.3 % to 14 %)
          cache            ██████████▊                                 11 %  (7.1 % to 12 %)
          compress         ███▌                                       3.4 %  (2.3 % to 5.0 %)
          30 effects with 0.7 % in sum left out

        What acts together
          threads
          └─ cache  interaction 39 %, in 100 % of samples
          3 edges below 0.5 % and 6 parameters left out

        How far to trust this
          Each of 55 outcomes predicted from the others: 98 % of the variance; the model describes the outcomes well.
          Typical error of such a prediction: 0.243; 100 % lie within two standard deviations (95 % should). Learned noise: 0.0557.
          Other models would predict: single parameters 54 %, these and 1 likely pair 99 %, one function of all parameters 97 %.
          A model with the likely pairs makes the outcomes clearly more likely, so that it searches the whole space.

        What failed
          trial 5: the program ended with exit code 3
          trial 18: the program ended with exit code 3
          trial 31: the program ended with exit code 3
          trial 44: the program ended with exit code 3
          trial 57: the program ended with exit code 3
        "#);
        insta::assert_snapshot!(short, @r#"
        Best outcome: 20.0287 (trial 49)
          cache     4096          rate      0.00112519    compress  true          share     1
          threads   15            mode      fast          level     high          idle      0.8
        Recommended: trial 52. Of all points tried the model expects most of this one: 20.071 ± 0.048. It gave 20.0602.
        4 of 8 parameters explain 95 % of the variance; cache and threads must be tuned together.
        Learned to act together:
          threads
          └─ cache  interaction 39 %, in 100 % of samples
          3 edges below 0.5 % and 6 parameters left out
        "#);
    }

    #[test]
    fn a_lucky_trial_is_shown_and_another_one_recommended() {
        // The first trial with which there are both, if it comes out best by luck.
        let explained = |lucky: usize| {
            let mut view = mixed(60);
            let best = view.trials.iter().filter_map(|trial| trial.value).fold(f64::MAX, f64::min);
            view.trials[lucky].value = view.trials[lucky].value.map(|_| best - 0.001);
            let explanation = Explanation::new(&view).unwrap().unwrap();
            (view, explanation.luckiest, explanation.recommended)
        };
        let has_both = |(_, lucky, recommended): &(StudyView, Predicted, Predicted)| {
            lucky.trial != recommended.trial && lucky.values != recommended.values
        };
        let (mut view, lucky, recommended) = (0..60).map(explained).find(has_both).unwrap();
        let (whole, short) = texts(&view);
        let is_best = |line: &str| {
            line.starts_with("Best outcome: 20.")
                && line.ends_with(&format!(", trial {}", lucky.trial))
        };
        assert!(whole.lines().any(is_best), "{whole}");
        let other = format!("Recommended point: trial {}", recommended.trial);
        for line in [&other, "  * not as in the best trial"] {
            assert!(whole.lines().any(|found| found == line), "{line}\n{whole}");
        }
        assert!(whole.contains("the model expects most of this one: 20."), "{whole}");
        let other = format!("\nRecommended: trial {}. Of all points tried", recommended.trial);
        assert!(short.contains(&other), "{short}");
        // If that one had come out best, there were one point to show.
        view.trials[recommended.trial as usize].value = Some(20.001);
        let (whole, short) = texts(&view);
        let best = format!("Best outcome: 20.001, trial {}", recommended.trial);
        assert!(whole.contains(&best), "{whole}");
        assert!(whole.contains("It is also the recommended point"), "{whole}");
        assert!(
            !whole.contains("Recommended point:") && !short.contains("Recommended:"),
            "{short}"
        );
    }

    #[test]
    fn many_parameters_stay_readable() {
        let view = large();
        let (whole, short) = texts(&view);
        assert!(whole.lines().count() < 70, "{whole}");
        assert!(short.lines().count() < 20, "{short}");
        assert!(whole.lines().all(|line| line.chars().count() < 170), "{whole}");
        assert!(
            whole.contains("226 parameters that matter less are left out; --json has all"),
            "{whole}"
        );
        assert!(whole.contains("├─ knob_002  interaction"), "{whole}");
        assert!(whole.contains("edges below 0.5 % and"), "{whole}");
        let json = json(&view, Explanation::new(&view).unwrap().as_ref());
        assert_eq!(json["best"]["values"].as_object().unwrap().len(), 250);
        assert_eq!(json["explanation"]["importance"]["parameters"].as_array().unwrap().len(), 250);
    }

    #[test]
    fn json_has_the_numbers_of_the_explanation() {
        let view = star(6, 40);
        let explanation = Explanation::new(&view).unwrap().unwrap();
        let json = json(&view, Some(&explanation));
        assert_eq!(json["goal"], "maximize");
        assert_eq!(json["trials"]["complete"], 40);
        assert_eq!(json["best"]["trial"], explanation.luckiest.trial);
        assert_eq!(json["explanation"]["recommended"]["mean"], explanation.recommended.mean);
        assert_eq!(json["explanation"]["sentence"], explanation.sentence());
        let strongest = &explanation.pairs[0];
        let pair = &json["explanation"]["importance"]["pairs"][0];
        assert_eq!(pair["names"][0], name_of(&view, strongest.first));
        assert_eq!(pair["share"], strongest.share.value);
        assert_eq!(pair["frequency"], serde_json::json!(strongest.frequency));
        // It is JSON also as text.
        assert!(serde_json::from_str::<Json>(&json.to_string()).is_ok());
    }

    #[test]
    fn without_model_or_trials() {
        let parameters = || {
            vec![StudyParameter::new(
                "x",
                Kind::Real { low: 0.0, high: 1.0, log: false, step: None },
            )]
        };
        let random =
            view_of(parameters(), Method::Random, Goal::Minimize, 3, |k, _| Some(k as f64));
        let (whole, short) = texts(&random);
        assert!(whole.ends_with(
            "The method random has no model of the parameters: it cannot say what matters.\n"
        ));
        assert!(short.starts_with("Best outcome: 0 (trial 0)\n  x  "), "{short}");
        let failed = view_of(parameters(), Method::default(), Goal::Minimize, 2, |_, _| None);
        let (whole, short) = texts(&failed);
        let reasons = "What failed\n  trial 0: the program ended with exit code 3\n";
        assert!(whole.contains(&format!("No trial has a value yet.\n\n{reasons}")), "{whole}");
        assert_eq!(short, "No trial has a value: 2: 2 failed.\n");
        let none = view_of(parameters(), Method::default(), Goal::Minimize, 0, |_, _| None);
        assert_eq!(texts(&none).1, "No trial has a value: none.\n");
        assert_eq!(json(&none, None)["best"], Json::Null);
        let one = view_of(
            parameters(),
            Method::named("gp-ucb").unwrap(),
            Goal::Minimize,
            25,
            |_, values| values[0].as_ref().and_then(Value::as_f64),
        );
        assert!(texts(&one).0.contains("it has no structure to show"), "{}", texts(&one).0);
    }

    #[test]
    fn words_cannot_control_the_terminal() {
        let parameters = vec![
            StudyParameter::new(
                "word",
                Kind::Categorical { choices: vec!["x\u{1b}[0m".into(), "y\r".into()] },
            ),
            StudyParameter::new("plain", Kind::Integer { low: 0, high: 99, step: 1, log: false }),
        ];
        let mut view =
            view_of(parameters, Method::default(), Goal::Minimize, 15, |k, _| Some((k % 4) as f64));
        view.name = "study\u{1b}]0;title\u{7}".to_string();
        let (whole, short) = texts(&view);
        assert!(!(whole + &short).contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn cycles_are_shown_once() {
        let mut view = star(4, 60);
        let model = view.model.as_mut().unwrap();
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
            .map(|pair| boscage::graph::Edge::try_from(pair).unwrap());
        model.graph = boscage::graph::Graph::from_edges(4, edges).unwrap();
        model.prior.components = edges.map(boscage::graph::Component::pair).to_vec();
        model.edge_frequencies = edges.map(|edge| (edge, 0.5)).to_vec();
        let mut explanation = Explanation::new(&view).unwrap().unwrap();
        for pair in &mut explanation.pairs {
            pair.share.value = 0.2;
        }
        let mut out = Vec::new();
        write_forest(&view, &explanation, 30, &mut out, LOOK).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("interaction 20 %, in 50 % of samples").count(), 4, "{text}");
        assert_eq!(text.matches("also ").count(), 1, "{text}");
    }

    #[test]
    fn numbers_have_sensible_digits() {
        let shown = [0.0, 1.0, 0.000_123_456_78, 1.0 / 3.0, 1e-9, 123_456_789.0, -2.5].map(number);
        assert_eq!(shown, ["0", "1", "0.000123457", "0.333333", "1e-9", "1.23457e8", "-2.5"]);
        assert_eq!(plus_minus(20.0823, 0.0204), "20.082 ± 0.020");
        assert_eq!(plus_minus(1234.6, 31.0), "1235 ± 31");
        assert_eq!(plus_minus(2.0, 0.0), "2 ± 0");
        assert_eq!(plus_minus(2e-9, 1e-10), "2e-9 ± 1e-10");
        assert_eq!(
            [0.0, 0.0004, 0.0312, 0.0996, 1.0].map(percent),
            ["0 %", "<0.1 %", "3.1 %", "10 %", "100 %"]
        );
    }
}
