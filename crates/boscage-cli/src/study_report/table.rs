//! The tables of trials on a report's page.

use boscage::Value;
use boscage_study::{State, StudyView, Trial};

use super::figures::clipped;
use crate::draw::svg::escaped;
use crate::show::{brief, name_of, number};

/// Rows of a table.
const MOST_ROWS: usize = 100;
/// A study with more parameters than the first has only the second number of them as columns.
const MOST_COLUMNS: usize = 30;
const IMPORTANT_COLUMNS: usize = 20;
/// Longer texts are clipped, and whole as a tooltip.
const MOST_LETTERS: usize = 24;

/// Text of which the whole is a tooltip, if it is long.
pub(crate) fn clipped_html(text: &str) -> String {
    let shown = clipped(text, MOST_LETTERS);
    if shown == text {
        return escaped(text);
    }
    format!("<span title=\"{}\">{}</span>", escaped(text), escaped(&shown))
}

/// A cell with a value; the exact one is a tooltip where it is shown shorter.
pub(crate) fn value_cell(value: Option<&Value>, class: &str) -> String {
    let shown = clipped(&brief(value), MOST_LETTERS);
    let exact = value.map(|value| match value {
        // As short as possible, if nothing is lost.
        Value::Real(real) if brief(Some(value)).parse() == Ok(*real) => shown.clone(),
        other => other.to_string(),
    });
    match exact {
        Some(exact) if exact != shown => {
            format!("<td{class} title=\"{}\">{}</td>", escaped(&exact), escaped(&shown))
        }
        _ => format!("<td{class}>{}</td>", escaped(&shown)),
    }
}

/// The best and the last trials. Columns are the parameters, the strongest only if there are many.
pub(crate) fn trials(view: &StudyView, order: &[usize]) -> String {
    let dimension = view.space.dimension();
    let mut text = String::new();
    let columns: Vec<usize> = if dimension > MOST_COLUMNS {
        text += &format!(
            "<p>The {IMPORTANT_COLUMNS} parameters of {dimension} that matter most; <code>boscage export</code> writes all of \
             them.</p>\n"
        );
        order.iter().copied().take(IMPORTANT_COLUMNS).collect()
    } else {
        (0..dimension).collect()
    };
    let mut best: Vec<&Trial> =
        view.trials.iter().filter(|trial| trial.outcome().is_some()).collect();
    let merit = |trial: &Trial| view.goal.sign() * trial.outcome().unwrap_or(f64::NEG_INFINITY);
    best.sort_by(|a, b| merit(b).total_cmp(&merit(a)).then(a.number.cmp(&b.number)));
    best.truncate(MOST_ROWS);
    let few = view.trials.len() <= MOST_ROWS;
    if !best.is_empty() && !few {
        text += &format!("<h3>The best {}</h3>\n", best.len());
        text += &rows(view, &columns, &best);
    }
    let mut last: Vec<&Trial> = view.trials.iter().collect();
    last.sort_by_key(|trial| std::cmp::Reverse(trial.number));
    last.truncate(MOST_ROWS);
    text += &if few {
        "<h3>All, the last first</h3>\n".to_string()
    } else {
        format!("<h3>The last {MOST_ROWS}</h3>\n")
    };
    text + &rows(view, &columns, &last)
}

fn rows(view: &StudyView, columns: &[usize], trials: &[&Trial]) -> String {
    let best = view.best().map(|trial| trial.number);
    let mut text = "<div class=\"scroll tall\"><table><thead><tr><th>trial</th><th>outcome</th><th class=\"word\">state</th><th>seconds</th>"
        .to_string();
    for &d in columns {
        text += &format!("<th>{}</th>", clipped_html(name_of(view, d)));
    }
    text += "</tr></thead><tbody>\n";
    for trial in trials {
        let class = if Some(trial.number) == best { " class=\"best\"" } else { "" };
        let value = trial.value.map(Value::Real);
        text += &format!("<tr{class}><th scope=\"row\">{}</th>", trial.number);
        text += &match &value {
            Some(value) => value_cell(Some(value), ""),
            None => "<td></td>".to_string(),
        };
        let state = match trial.state {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Complete if trial.infeasible => "infeasible",
            State::Complete => "complete",
            State::Pruned => "pruned",
            State::Failed => "failed",
        };
        text += &match &trial.failure {
            Some(failure) => format!(
                "<td class=\"word\" title=\"{}\">{}</td>",
                escaped(&clipped(failure, 400)),
                escaped(&clipped(&format!("{state}: {failure}"), 40))
            ),
            None => format!("<td class=\"word\">{state}</td>"),
        };
        text += &format!("<td>{}</td>", trial.seconds.map(number).unwrap_or_default());
        match &trial.values {
            Some(values) => {
                for &d in columns {
                    text += &value_cell(values.get(d).and_then(Option::as_ref), "");
                }
            }
            None => text += &format!("<td colspan=\"{}\"></td>", columns.len()),
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}
