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

const STYLE: &str = "
.claim { font-size: 1.15rem; margin: .6rem 0 1rem; max-width: 54rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }
.card { border: 1px solid var(--rule); border-radius: .5rem; padding: .7rem .9rem; } .card p { margin: 0; color: var(--soft);
  font-size: .85rem; overflow-wrap: anywhere; } .card strong { display: block; font-size: 1.45rem; line-height: 1.3; }
h1 { overflow-wrap: anywhere; } dd { overflow-wrap: anywhere; } h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.tall { max-height: 30rem; overflow: auto; width: fit-content; max-width: 100%; border: 1px solid var(--rule); border-radius: .3rem; }
.tall thead th { position: sticky; top: 0; background: var(--paper); }
.tall th[scope=row] { position: sticky; left: 0; background: var(--paper); }
td.word, thead th.word { text-align: left; } tr.best { font-weight: 600; } td.differs { font-weight: 600; }
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
                    "<details><summary>The whole graph</summary>\n{}</details>\n",
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
    text += &table;
    Some(text)
}

fn trust(explanation: &Explanation) -> String {
    let lines = trust_lines(explanation);
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
             <th class=\"word\">values</th><th>default</th><th class=\"word\">only if</th></tr></thead><tbody>\n";
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
    use boscage::{Method, Value};
    use boscage_study::Goal;
    use resvg::usvg::roxmltree::Document;

    use super::examples::{large, mixed, star, view_of};
    use super::*;

    fn page(view: &StudyView) -> String {
        html(view, Explanation::new(view).unwrap().as_ref()).unwrap()
    }

    /// The pictures of a page; each must be well-formed, with finite numbers.
    fn pictures(page: &str) -> Vec<&str> {
        let starts = page.match_indices("<svg ").map(|(start, _)| start);
        let pictures: Vec<&str> = starts
            .map(|start| &page[start..start + page[start..].find("</svg>").unwrap() + 6])
            .collect();
        for picture in &pictures {
            Document::parse(picture).unwrap();
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
        pictures
    }

    fn headings(page: &str) -> Vec<&str> {
        page.split("<h2 id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
    }

    fn check_whole(page: &str) {
        assert!(!page.contains("<script"));
        for address in ["src=", "@import", "url(", "<link rel=\"stylesheet"] {
            assert!(!page.contains(address), "{address}");
        }
        assert_eq!(
            page.matches("http").count(),
            page.matches("http://www.w3.org/2000/svg").count()
        );
    }

    #[test]
    fn every_kind_of_parameter_has_its_picture() {
        let view = mixed(60);
        let page = page(&view);
        check_whole(&page);
        let expected = [
            "history",
            "points",
            "importance",
            "forest",
            "effects",
            "surfaces",
            "slices",
            "trials",
            "settings",
        ];
        assert_eq!(headings(&page), expected);
        let pictures = pictures(&page);
        // History, importances, forest, effects, slices, and a surface for each strong pair.
        let explanation = Explanation::new(&view).unwrap().unwrap();
        let strong =
            explanation.pairs.iter().filter(|pair| pair.share.value >= LEAST_SHARE).count();
        assert_eq!(pictures.len(), 5 + strong);
        let failed = view.trials.iter().filter(|trial| trial.outcome().is_none()).count();
        let crosses = pictures[0]
            .split("class=\"failed s1\" d=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(crosses.matches('M').count(), failed);
        let dots =
            pictures[0].split("class=\"s5\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(dots.matches('M').count(), 60 - failed);
        // Categories have bars, numbers have bands.
        let effects =
            pictures.iter().find(|picture| picture.contains("Effects of single")).unwrap();
        assert!(effects.contains("class=\"bar c5\"") && effects.contains("class=\"band c0\""));
        assert_eq!(page.matches("<tr").count() - page.matches("<tr><th>").count(), 8 + 60 + 8);
        let sentence = explanation.sentence();
        assert!(page.contains(&format!("<p class=\"claim\">{}</p>", escaped(&sentence))));
    }

    #[test]
    fn the_largest_study_stays_small() {
        let view = large();
        let page = page(&view);
        check_whole(&page);
        pictures(&page);
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        assert!(page.contains("20 parameters of 250 that matter most"));
        assert!(page.contains("<h3>The best 100</h3>") && page.contains("<h3>The last 100</h3>"));
        assert!(page.contains("240 of 250 parameters matter too little to be drawn"), "the forest");
    }

    #[test]
    fn nothing_in_names_or_choices_becomes_markup() {
        let evil = "<script>alert(1)</script>\"'&";
        let parameters = vec![
            StudyParameter::new(evil, Kind::Real { low: 0.0, high: 1.0, log: false, step: None }),
            StudyParameter::new(
                "</svg><img src=x>",
                Kind::Categorical { choices: vec![evil.into(), "--><b>".into(), "fine".into()] },
            ),
        ];
        let mut view =
            view_of(parameters, Method::default(), Goal::Maximize, 30, |trial, values| {
                let place = if values[1] == Some(Value::from("fine")) { 2.0 } else { 1.0 };
                let x = values[0].as_ref().and_then(Value::as_f64)?;
                (trial % 9 != 4).then_some(place * x)
            });
        view.name = evil.to_string();
        view.storage = evil.to_string();
        for trial in view.trials.iter_mut().filter(|trial| trial.failure.is_some()) {
            trial.failure = Some(evil.to_string());
        }
        let page = page(&view);
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"));
        pictures(&page);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    }

    #[test]
    fn a_study_without_model_outcomes_or_trials_has_a_page() {
        let parameters = || {
            vec![
                StudyParameter::new(
                    "x",
                    Kind::Real { low: 0.0, high: 1.0, log: false, step: None },
                ),
                StudyParameter::new("one", Kind::Integer { low: 3, high: 3, step: 1, log: false }),
                StudyParameter::new("only", Kind::Categorical { choices: vec!["a".into()] }),
            ]
        };
        let random =
            view_of(parameters(), Method::Random, Goal::Minimize, 12, |k, _| Some(k as f64));
        let shown = page(&random);
        assert_eq!(headings(&shown), ["history", "points", "slices", "trials", "settings"]);
        pictures(&shown);
        let failed = view_of(parameters(), Method::default(), Goal::Minimize, 3, |_, _| None);
        assert_eq!(headings(&page(&failed)), ["trials", "settings"]);
        let none = view_of(parameters(), Method::default(), Goal::Minimize, 0, |_, _| None);
        assert_eq!(headings(&page(&none)), ["settings"]);
        // Outcomes that are all the same, one outcome, and outcomes of very different sizes.
        for (trials, outcome) in [(15, 4.0), (1, 4.0)] {
            let same = view_of(parameters(), Method::default(), Goal::Minimize, trials, |_, _| {
                Some(outcome)
            });
            pictures(&page(&same));
        }
        let wild = view_of(parameters(), Method::default(), Goal::Minimize, 20, |k, _| {
            Some([1e-300, 1e300, -1e300, 0.0, 7.0][k as usize % 5])
        });
        pictures(&page(&wild));
    }

    #[test]
    fn other_methods_have_pages_too() {
        for method in ["gp-ucb", "overlap", "no-overlap", "line-coordinate", "rembo"] {
            let mut view = star(6, 12);
            let method = Method::named(method).unwrap();
            view = view_of(
                view.space.parameters().to_vec(),
                method,
                Goal::Minimize,
                25,
                |_, values| {
                    let x: Vec<f64> =
                        values.iter().filter_map(|value| value.as_ref()?.as_f64()).collect();
                    Some(x[0] * x[1] + (x[2] - 0.4).powi(2))
                },
            );
            let page = page(&view);
            check_whole(&page);
            pictures(&page);
        }
    }
}
