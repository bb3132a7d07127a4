//! One page with everything: no scripts, no files or addresses beside it.

use std::collections::{BTreeMap, BTreeSet};

use boscage_bench::results::RunResult;

use super::chart::escaped;
use super::figures::Figure;
use super::selection::{self, ProblemRuns};
use super::table::Table;

/// What the page has for one problem.
pub(crate) struct Section<'a> {
    /// The problem.
    pub problem: &'a ProblemRuns<'a>,
    /// Its table.
    pub table: Table,
    /// Its figures.
    pub figures: Vec<Figure>,
}

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1a1a1a; --soft: #5a5a5a; --rule: #dddddd; --link: #005a8c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e8e8e8; --soft: #a8adb2; --rule: #363b40; --link: #7cc4f0; }
  svg .ink { fill: var(--ink); } svg .axis, svg .mark { stroke: #9aa0a6; } svg .grid { stroke: #2b3036; }
  svg .vertex { fill: #14171a; stroke: #b0b5ba; } svg .true-edge { stroke: #b0b5ba; } svg .missed { stroke: #6a7076; }
  svg .s0 { stroke: #3d9bd6; } svg .c0 { fill: #3d9bd6; } svg .s1 { stroke: #f07a2b; } svg .c1 { fill: #f07a2b; }
  svg .s2 { stroke: #1fbf91; } svg .c2 { fill: #1fbf91; } svg .s6 { stroke: #e8e8e8; } svg .c6 { fill: #e8e8e8; }
  svg .band { fill-opacity: 0.24; }
}
svg .paper { fill: none; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem;
  border-top: 1px solid var(--rule); padding-top: 1.2rem; }
a { color: var(--link); } nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--soft); } dd { margin: 0; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; display: block; }
figcaption, caption, .legend-note { color: var(--soft); font-size: .88rem; text-align: left; } figcaption { margin-top: .3rem; }
caption { caption-side: bottom; padding-top: .5rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { vertical-align: bottom; white-space: normal; } th[scope=row], thead th:first-child { text-align: left; }
.notes { padding-left: 1.2rem; } pre { overflow-x: auto; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: .9em; } summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
  nav { display: none; } .scroll { overflow: visible; } table { font-size: 7pt; } }
";

/// The page.
pub(crate) fn html(runs: &[RunResult], sections: &[Section], series: &[Figure]) -> String {
    let recipes = distinct(runs, |run| run.start.recipe.clone());
    let title = format!("boscage: {}", recipes.join(", "));
    let mut body = format!("<h1>{}</h1>\n", escaped(&title));
    body.push_str(&overview(runs, sections, &recipes));
    body.push_str(&format!("<p class=\"legend-note\">{}</p>\n", escaped(super::table::LEGEND)));
    body.push_str("<nav aria-label=\"Problems\"><ul>\n");
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
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(&title)
    )
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
