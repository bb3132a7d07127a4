//! `boscage report`: one page with all that a study has learned. No scripts, nothing beside it.

#[cfg(test)]
pub(crate) mod examples;
mod figures;
mod table;

use boscage_study::explain::{Explanation, MainEffect, PairImportance, PairSurface};
use boscage_study::{Kind, StudyParameter, StudyView};

use crate::draw::page::document;
use crate::draw::svg::escaped;
use crate::show::{
    LEAST_SHARE, brief, luckiest_line, method_name, name_of, no_model, number, percent, plus_minus,
    recommended_line, trial_counts, trust_lines,
};
use figures::Figure;

/// The most main effects, slices and surfaces on a page.
const MOST_EFFECTS: usize = 12;
const MOST_SURFACES: usize = 6;
/// A study with more parameters than this has the values of a point in a list that can be opened.
const MOST_OPEN: usize = 30;

const STYLE: &str = "
.claim { font-size: 1.15rem; margin: .6rem 0 1rem; max-width: 54rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }
.card { border: 1px solid var(--rule); border-radius: .5rem; padding: .7rem .9rem; } .card p { margin: 0; color: var(--soft);
  font-size: .85rem; overflow-wrap: anywhere; } .card strong { display: block; font-size: 1.45rem; line-height: 1.3; }
h1 { overflow-wrap: anywhere; } dd { overflow-wrap: anywhere; } h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.tall { max-height: 34rem; overflow: auto; border: 1px solid var(--rule); border-radius: .3rem; }
.tall thead th { position: sticky; top: 0; background: var(--paper); }
.tall th[scope=row] { position: sticky; left: 0; background: var(--paper); }
td.word { text-align: left; } tr.best { font-weight: 600; } td.differs { font-weight: 600; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) {
  svg .vertex { stroke: #14171a; } svg .vertex.c0 { fill: #3d9bd6; } svg .s5 { stroke: #56b4e9; } svg .c5 { fill: #56b4e9; }
}
@media print { .tall { max-height: none; overflow: visible; border: 0; } }
";

/// The page.
pub(crate) fn html(view: &StudyView, explanation: Option<&Explanation>) -> anyhow::Result<String> {
    let mut sections: Vec<(&str, &str, String)> = Vec::new();
    let mut body = format!("<h1>{}</h1>\n", escaped(&view.name));
    match explanation {
        Some(explanation) => {
            body += &format!("<p class=\"claim\">{}</p>\n", escaped(&explanation.sentence()));
        }
        None => body += &format!("<p class=\"claim\">{}</p>\n", escaped(&no_model(view))),
    }
    body += &cards(view, explanation);

    sections
        .extend(figures::history(view).map(|figure| ("history", "History", figure_html(&figure))));
    sections.extend(points(view, explanation).map(|text| ("points", "The point to use", text)));
    let order: Vec<usize> =
        explanation.map_or_else(|| (0..view.space.dimension()).collect(), Explanation::strongest);
    if let Some(explanation) = explanation {
        let mut text = figure_html(&figures::importances(view, explanation));
        text += &trust(explanation);
        sections.push(("importance", "What matters", text));
        if let Some((figure, whole)) = figures::forest(view, explanation) {
            let mut text = figure_html(&figure);
            if let Some(whole) = whole {
                text += &format!(
                    "<details open><summary>The whole graph</summary>\n{}</details>\n",
                    figure_html(&whole)
                );
            }
            sections.push(("forest", "What acts together", text));
        }
        let effects = effects(explanation)?;
        sections.extend(
            figures::main_effects(view, &effects)
                .map(|figure| ("effects", "What each parameter does", figure_html(&figure))),
        );
        let surfaces: String =
            figures::surfaces(view, &surfaces(explanation)?).iter().map(figure_html).collect();
        if !surfaces.is_empty() {
            sections.push(("surfaces", "What pairs do", surfaces));
        }
    }
    let shown: Vec<usize> = order.iter().copied().take(MOST_EFFECTS).collect();
    sections.extend(
        figures::slices(view, &shown)
            .map(|figure| ("slices", "Outcomes against parameters", figure_html(&figure))),
    );
    if !view.trials.is_empty() {
        sections.push(("trials", "Trials", table::trials(view, &order)));
    }
    sections.push(("settings", "The study", settings(view)));

    body += "<nav aria-label=\"Sections\"><ul>\n";
    for (id, heading, _) in &sections {
        body += &format!("<li><a href=\"#{id}\">{heading}</a></li>\n");
    }
    body += "</ul></nav>\n";
    for (id, heading, text) in &sections {
        body += &format!("<section>\n<h2 id=\"{id}\">{heading}</h2>\n{text}</section>\n");
    }
    Ok(document(&format!("{}: boscage", view.name), STYLE, &body))
}

fn figure_html(figure: &Figure) -> String {
    format!(
        "<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n",
        figure.svg,
        escaped(&figure.caption)
    )
}

/// The numbers to see first.
fn cards(view: &StudyView, explanation: Option<&Explanation>) -> String {
    let mut cards: Vec<(&str, String, String)> = Vec::new();
    if let Some((best, value)) = view.best().and_then(|best| Some((best, best.outcome()?))) {
        cards.push((
            "Best outcome",
            number(value),
            format!("trial {}, {}d", best.number, view.goal.name()),
        ));
    }
    if let Some(explanation) = explanation {
        let point = &explanation.recommended;
        cards.push((
            "Recommended point",
            plus_minus(point.mean, point.std),
            format!("expected at trial {}", point.trial),
        ));
        if let Some(predicted) = explanation.trust.predicted {
            let share = if predicted <= 0.0 { "none".to_string() } else { percent(predicted) };
            cards.push(("Predicted", share, "of the variance of outcomes left out".to_string()));
        }
    }
    let complete = view.trials.iter().filter(|trial| trial.outcome().is_some()).count();
    cards.push(("Trials with an outcome", complete.to_string(), trial_counts(view)));
    let mut text = "<div class=\"cards\">\n".to_string();
    for (name, value, note) in cards {
        text += &format!(
            "<div class=\"card\"><p>{name}</p><strong>{}</strong><p>{}</p></div>\n",
            escaped(&value),
            escaped(&note)
        );
    }
    text + "</div>\n"
}

/// The recommended point beside the best trial.
fn points(view: &StudyView, explanation: Option<&Explanation>) -> Option<String> {
    let best = view.best()?;
    let best_values = best.values.as_deref().unwrap_or_default();
    let mut text = String::new();
    let mut columns = vec![(format!("best, trial {}", best.number), best_values)];
    if let Some(explanation) = explanation {
        let (recommended, luckiest) = (&explanation.recommended, &explanation.luckiest);
        text += &format!(
            "<p>Best outcome, trial {}: {}",
            luckiest.trial,
            escaped(&luckiest_line(luckiest))
        );
        if recommended.trial == luckiest.trial {
            text += match explanation.is_believable() {
                true => " It is also the point that the model expects most of.</p>\n",
                false => " The model predicts too little to know a better one.</p>\n",
            };
        } else {
            text += &format!(
                "<br>Recommended, trial {}: {}</p>\n",
                recommended.trial,
                escaped(&recommended_line(recommended))
            );
            columns.insert(
                0,
                (format!("recommended, trial {}", recommended.trial), &recommended.values),
            );
        }
    }
    let order =
        explanation.map_or_else(|| (0..view.space.dimension()).collect(), Explanation::strongest);
    let mut table = "<div class=\"scroll tall\"><table><thead><tr><th>parameter</th>".to_string();
    for (heading, _) in &columns {
        table += &format!("<th>{}</th>", escaped(heading));
    }
    table += "<th>share of the variance</th></tr></thead><tbody>\n";
    for d in order {
        table += &format!("<tr><th scope=\"row\">{}</th>", table::clipped_html(name_of(view, d)));
        let values: Vec<_> =
            columns.iter().map(|(_, values)| values.get(d).and_then(Option::as_ref)).collect();
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        for value in &values {
            table += &table::value_cell(*value, if differs { " class=\"differs\"" } else { "" });
        }
        let share = explanation.and_then(|explanation| explanation.parameters.get(d));
        table += &format!(
            "<td>{}</td></tr>\n",
            share.map(|share| percent(share.total)).unwrap_or_default()
        );
    }
    table += "</tbody></table></div>\n";
    if view.space.dimension() > MOST_OPEN {
        text += &format!("<details><summary>All values</summary>\n{table}</details>\n");
    } else {
        text += &table;
    }
    Some(text)
}

fn trust(explanation: &Explanation) -> String {
    let lines = trust_lines(&explanation.trust);
    format!("<h3>How far to trust this</h3>\n<p>{}</p>\n", escaped(&lines.join(" ")))
}

/// The main effects that are worth a panel.
fn effects(explanation: &Explanation) -> anyhow::Result<Vec<(usize, MainEffect)>> {
    let mut order: Vec<usize> = (0..explanation.parameters.len()).collect();
    let share = |d: usize| explanation.parameters[d].main.value;
    order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
    let mut effects = Vec::new();
    for (k, d) in order.into_iter().take(MOST_EFFECTS).enumerate() {
        if (share(d) >= LEAST_SHARE || k == 0)
            && let Some(effect) = explanation.main_effect(d)?
        {
            effects.push((d, effect));
        }
    }
    Ok(effects)
}

/// The pairs that are worth a picture.
fn surfaces(explanation: &Explanation) -> anyhow::Result<Vec<(PairImportance, PairSurface)>> {
    let mut surfaces = Vec::new();
    let strong = explanation.pairs.iter().filter(|pair| pair.share.value >= LEAST_SHARE);
    for pair in strong.take(MOST_SURFACES) {
        if let Some(surface) = explanation.pair_surface(pair.first, pair.second)? {
            surfaces.push((*pair, surface));
        }
    }
    Ok(surfaces)
}

/// How the study was set up.
fn settings(view: &StudyView) -> String {
    let facts = [
        ("Name", view.name.clone()),
        ("Goal", view.goal.name().to_string()),
        ("Stored in", view.storage.clone()),
        ("Method", method_name(view)),
        ("Seed", view.seed.to_string()),
        ("Parameters", view.space.dimension().to_string()),
        ("Trials", trial_counts(view)),
        ("Version", format!("boscage {}", env!("CARGO_PKG_VERSION"))),
    ];
    let mut text = "<dl>\n".to_string();
    for (name, fact) in facts {
        text += &format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&fact));
    }
    text += "</dl>\n<details><summary>Parameters</summary>\n<div class=\"scroll tall\"><table><thead><tr><th>parameter</th>\
             <th>values</th><th>default</th><th>only if</th></tr></thead><tbody>\n";
    for parameter in view.space.parameters() {
        text += &format!(
            "<tr><th scope=\"row\">{}</th><td class=\"word\">{}</td><td>{}</td><td class=\"word\">{}</td></tr>\n",
            table::clipped_html(&parameter.name),
            table::clipped_html(&kind_text(parameter)),
            parameter
                .default
                .as_ref()
                .map(|value| escaped(&brief(Some(value))))
                .unwrap_or_default(),
            parameter
                .condition
                .as_ref()
                .map(|condition| table::clipped_html(condition.text()))
                .unwrap_or_default()
        );
    }
    text += "</tbody></table></div>\n";
    for condition in view.space.forbidden() {
        text += &format!("<p>Never: <code>{}</code></p>\n", escaped(condition.text()));
    }
    let method = serde_json::to_string_pretty(&view.method).unwrap_or_default();
    text += &format!(
        "</details>\n<details><summary>Settings of the method</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&method)
    );
    text
}

fn kind_text(parameter: &StudyParameter) -> String {
    let list = |values: &[boscage::Value]| {
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let log = |log: bool| if log { ", log" } else { "" };
    match &parameter.kind {
        Kind::Real { low, high, log: is_log, step } => {
            let step = step.map(|step| format!(", step {step}")).unwrap_or_default();
            format!("real, {} to {}{step}{}", number(*low), number(*high), log(*is_log))
        }
        Kind::Integer { low, high, step, log: is_log } => {
            let step = if *step == 1 { String::new() } else { format!(", step {step}") };
            format!("integer, {low} to {high}{step}{}", log(*is_log))
        }
        Kind::Ordinal { levels } => format!("in order: {}", list(levels)),
        Kind::Boolean {} => "false or true".to_string(),
        Kind::Categorical { choices } => format!("one of {}", list(choices)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch() {
        for (name, view) in [
            ("mixed", examples::mixed(90)),
            ("star", examples::star(25, 150)),
            ("large", examples::large()),
        ] {
            let t = std::time::Instant::now();
            let explanation = Explanation::new(&view).unwrap();
            eprintln!("{name}: explained in {:?}", t.elapsed());
            let t = std::time::Instant::now();
            let page = html(&view, explanation.as_ref()).unwrap();
            eprintln!("{name}: page in {:?}, {} bytes", t.elapsed(), page.len());
            std::fs::write(format!("/tmp/h/h2-{name}.html"), page).unwrap();
            let mut out = Vec::new();
            crate::show::text(&view, explanation.as_ref(), &mut out).unwrap();
            out.extend(b"\n=====\n");
            crate::show::summary(&view, explanation.as_ref(), &mut out).unwrap();
            std::fs::write(format!("/tmp/h/h2-{name}.txt"), out).unwrap();
        }
    }
}
