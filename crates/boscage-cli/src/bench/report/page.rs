//! One page with everything: no scripts, no files or addresses beside it.

use std::collections::{BTreeMap, BTreeSet};

use boscage_bench::results::RunResult;

use super::figures::Figure;
use super::pooled::Pooled;
use super::selection::{self, ProblemRuns};
use super::table::{self, Table};
use crate::draw::page::document;
use crate::draw::svg::escaped;

/// What the page has for one problem.
pub(crate) struct Section<'a> {
    /// The problem.
    pub problem: &'a ProblemRuns<'a>,
    /// Its table.
    pub table: Table,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// The page.
pub(crate) fn html(
    runs: &[RunResult],
    sections: &[Section],
    pooled: Option<&Pooled>,
    series: &[Figure],
) -> String {
    let recipes = distinct(runs, |run| run.start.recipe.clone());
    let title = format!("boscage: {}", recipes.join(", "));
    let mut body = format!("<h1>{}</h1>\n", escaped(&title));
    body.push_str(&overview(runs, sections, &recipes));
    body.push_str(&format!("<p class=\"legend-note\">{}</p>\n", escaped(table::LEGEND)));
    body.push_str("<nav aria-label=\"Problems\"><ul>\n");
    if pooled.is_some() {
        body.push_str("<li><a href=\"#pooled\">all problems together</a></li>\n");
    }
    for (number, section) in sections.iter().enumerate() {
        body.push_str(&format!(
            "<li><a href=\"#problem-{number}\">{}</a></li>\n",
            escaped(section.problem.label)
        ));
    }
    if !series.is_empty() {
        body.push_str("<li><a href=\"#series\">cost over dimension</a></li>\n");
    }
    body.push_str("</ul></nav>\n");
    if let Some(pooled) = pooled {
        let table = table::html(&pooled.cells(), &pooled.caption(), "Table of ratios");
        body.push_str(&format!(
            "<section>\n<h2 id=\"pooled\">All problems together</h2>\n{table}</section>\n"
        ));
    }
    for (number, section) in sections.iter().enumerate() {
        let heading = escaped(&selection::heading(section.problem));
        body.push_str(&format!(
            "<section>\n<h2 id=\"problem-{number}\">{heading}</h2>\n<ul class=\"notes\">\n"
        ));
        for note in &section.problem.notes {
            body.push_str(&format!("<li>{}</li>\n", escaped(note)));
        }
        body.push_str(&format!("</ul>\n{}", section.table.html()));
        section.figures.iter().for_each(|figure| body.push_str(&figure_html(figure)));
        body.push_str("</section>\n");
    }
    if !series.is_empty() {
        body.push_str("<section>\n<h2 id=\"series\">Cost over dimension</h2>\n");
        series.iter().for_each(|figure| body.push_str(&figure_html(figure)));
        body.push_str("</section>\n");
    }
    document(&title, "", &body)
}

fn figure_html(figure: &Figure) -> String {
    format!(
        "<figure>\n{}<figcaption>{} <span>File: <code>{}</code></span></figcaption>\n</figure>\n",
        figure.svg,
        escaped(&figure.caption),
        escaped(&figure.name)
    )
}

fn distinct(runs: &[RunResult], what: impl Fn(&RunResult) -> String) -> Vec<String> {
    runs.iter().map(what).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What was run, with which settings, where and when.
fn overview(runs: &[RunResult], sections: &[Section], recipes: &[String]) -> String {
    let machines = distinct(runs, |run| {
        let machine = &run.start.machine;
        let processor = machine.processor.as_deref().unwrap_or("processor unknown");
        format!("{processor}, {} cores, {}", machine.cores, machine.system)
    });
    let seeds: BTreeSet<u64> = runs.iter().map(|run| run.start.seed).collect();
    let mut days: Vec<f64> = runs.iter().map(|run| run.start.started).collect();
    days.sort_by(f64::total_cmp);
    let days = match (days.first().copied().and_then(date), days.last().copied().and_then(date)) {
        (Some(first), Some(last)) if first == last => first,
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "unknown".to_string(),
    };
    let trials: BTreeSet<usize> = sections.iter().map(|section| section.problem.trials).collect();
    let trials: Vec<String> = trials.iter().map(ToString::to_string).collect();
    let problems: Vec<&str> = sections.iter().map(|section| section.problem.label).collect();
    let facts = [
        ("Recipe", recipes.join(", ")),
        ("Problems", problems.join(", ")),
        ("Methods", selection::methods(runs).join(", ")),
        ("Seeds", selection::seed_list(&seeds.into_iter().collect::<Vec<_>>())),
        ("Trials in a run", trials.join(", ")),
        ("Runs found", runs.len().to_string()),
        ("Begun", days),
        (
            "Version",
            format!("boscage {}", distinct(runs, |run| run.start.version.clone()).join(", ")),
        ),
        ("Machine", machines.join("; ")),
    ];
    let mut text = "<dl>\n".to_string();
    for (name, value) in facts {
        text.push_str(&format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value)));
    }
    text.push_str("</dl>\n<details><summary>Settings of problems and methods</summary>\n");
    // a method may have settings of its own for a problem
    let mut settings: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    let pretty = |value| serde_json::to_string_pretty(value).unwrap_or_default();
    for run in runs {
        let start = &run.start;
        settings
            .entry((&start.problem, format!("problem\0{}", pretty(&start.problem_settings))))
            .or_default();
        let of_method =
            (start.method.as_str(), format!("method\0{}", pretty(&start.method_settings)));
        settings.entry(of_method).or_default().insert(&start.problem);
    }
    for ((label, setting), problems) in &settings {
        let (kind, setting) = setting.split_once('\0').unwrap_or_default();
        let several = settings.keys().filter(|(other, _)| other == label).count() > 1;
        let on = if kind == "method" && several {
            format!(" on {}", problems.iter().copied().collect::<Vec<_>>().join(", "))
        } else {
            String::new()
        };
        text.push_str(&format!(
            "<h3>{kind} {}{}</h3>\n<pre>{}</pre>\n",
            escaped(label),
            escaped(&on),
            escaped(setting)
        ));
    }
    text.push_str("</details>\n");
    text
}

/// The day of a time in seconds since 1970, as `2026-11-15`.
fn date(seconds: f64) -> Option<String> {
    if !(0.0..4e11).contains(&seconds) {
        return None;
    }
    // civil calendar with years that begin in March, so that the leap day is the last one
    let days = (seconds / 86_400.0).floor() as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0.0, "1970-01-01"),
            (951_782_400.0, "2000-02-29"),
            (951_868_800.0, "2000-03-01"),
            (1_735_689_599.0, "2024-12-31"),
            (4_107_542_400.0, "2100-03-01"),
        ] {
            assert_eq!(date(seconds).as_deref(), Some(day), "{seconds}");
        }
        assert_eq!(date(f64::NAN), None);
    }
}
