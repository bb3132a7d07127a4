//! `boscage bench report` on a small results folder: files, pictures, page, and the page in a browser.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use boscage::Point;
use boscage::graph::{Edge, edge_score};
use boscage_bench::Goal;
use boscage_bench::problem::{Certainty, Optimum};
use boscage_bench::results::{
    LearnedGraph, Line, Machine, SCHEMA, Start, Timing, TrialRecord, run_path,
};
use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree::Document;

const TRIALS: u64 = 12;
const INITIAL: u64 = 3;

/// A run of a star whose regret falls at a rate; a learner finds one more edge every third trial.
fn write_run(
    out: &Path,
    problem: &str,
    dimension: usize,
    method: &str,
    seed: u64,
    rate: f64,
    learns: bool,
) {
    let truth: Vec<Edge> = (1..dimension).map(|leaf| Edge::new(0, leaf).unwrap()).collect();
    let mut lines = vec![Line::Start(Box::new(Start {
        schema: SCHEMA,
        recipe: "small".to_string(),
        problem: problem.to_string(),
        problem_settings: serde_json::json!({ "kind": "star" }),
        method: method.to_string(),
        method_settings: serde_json::json!({ "text": "<script>alert(1)</script> & \"quotes\"" }),
        seed,
        initial_points: INITIAL,
        trials: 0,
        dimension,
        goal: Goal::Maximize,
        noise_std: 0.1,
        optimum: Some(Optimum {
            value: 0.0,
            point: Point(vec![0.5; dimension]),
            certainty: Certainty::Exact,
        }),
        true_edges: Some(truth.clone()),
        version: "0.1.0".to_string(),
        commit: None,
        machine: Machine { system: "a system".to_string(), processor: None, cores: 2 },
        started: 1.79e9,
    }))];
    let mut best = None;
    let mut score = None;
    for trial in 0..TRIALS {
        let initial = trial < INITIAL;
        let failed = trial == 4;
        let value = (!failed).then(|| -(10.0 + seed as f64) * (-rate * trial as f64).exp());
        best = value.or(best);
        let learned = (learns && !initial && trial % 3 == 0).then(|| {
            let found = truth.iter().take((trial / 3) as usize).copied();
            let wrong = Edge::new(1, 2).unwrap();
            LearnedGraph {
                edges: found.map(|edge| (edge, 0.8)).chain([(wrong, 0.3)]).collect(),
                log_likelihood: -1.0,
            }
        });
        if let Some(graph) = &learned {
            let edges: Vec<Edge> = graph.edges.iter().map(|edge| edge.0).collect();
            score = Some(edge_score(&edges, &truth));
        }
        lines.push(Line::Trial(Box::new(TrialRecord {
            trial,
            initial,
            point: Point(vec![0.5; dimension]),
            observed: value,
            value,
            failure: failed.then(|| "it broke".to_string()),
            best_value: best,
            regret: best.map(|best: f64| -best),
            score,
            cost: if learns {
                trial.saturating_sub(INITIAL - 1) * 100 * dimension as u64
            } else {
                0
            },
            learned,
            model: None,
            timing: Timing { ask_seconds: 0.01, resident_bytes: 1 << 24, ..Timing::default() },
        })));
    }
    let path = run_path(out, problem, method, seed);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: Vec<String> =
        lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    std::fs::write(path, text.concat()).unwrap();
}

/// Three problems of a series, three methods, two seeds.
fn results() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for dimension in [4, 9, 16] {
        for seed in 0..2 {
            for (method, rate, learns) in
                [("random", 0.05, false), ("overlap", 0.3, true), ("tree", 0.6, true)]
            {
                write_run(
                    folder.path(),
                    &format!("star{dimension}"),
                    dimension,
                    method,
                    seed,
                    rate,
                    learns,
                );
            }
        }
    }
    folder
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::cargo_bin("boscage").unwrap();
    command.args(["bench", "report"]).arg(folder).args(arguments).output().unwrap()
}

fn made(folder: &Path) -> String {
    let output = report(&[], folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join("report").join(file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_figure_is_there_in_both_formats_and_shows_something() {
    let folder = results();
    made(folder.path());
    let mut names = vec!["star-cost-over-dimension".to_string()];
    for problem in ["star4", "star9", "star16"] {
        for what in ["regret", "regret-cost", "f1", "tree-graph", "overlap-graph"] {
            names.push(format!("{problem}-{what}"));
        }
    }
    for name in &names {
        let svg = read(folder.path(), &format!("{name}.svg"));
        Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let png = std::fs::read(folder.path().join(format!("report/{name}.png"))).unwrap();
        let picture = Pixmap::decode_png(&png).unwrap_or_else(|error| panic!("{name}: {error}"));
        let white = picture
            .pixels()
            .iter()
            .filter(|pixel| (pixel.red(), pixel.green(), pixel.blue()) == (255, 255, 255));
        let drawn = picture.pixels().len() - white.count();
        assert!(
            drawn > 2_000 && drawn < picture.pixels().len() / 2,
            "{name}: {drawn} pixels are drawn"
        );
    }
    // nothing else is written but the table and the page
    let files = std::fs::read_dir(folder.path().join("report")).unwrap().count();
    assert_eq!(files, 2 * names.len() + 2);
}

#[test]
fn a_chart_has_a_line_and_a_band_for_each_method_and_its_legend_begins_with_the_best() {
    let folder = results();
    made(folder.path());
    let svg = read(folder.path(), "star9-regret.svg");
    let document = Document::parse(&svg).unwrap();
    let with_class = |class: &str| -> Vec<_> {
        let is_in = |names: &str| names.split(' ').any(|name| name == class);
        document.descendants().filter(|node| node.attribute("class").is_some_and(is_in)).collect()
    };
    let lines = with_class("line");
    assert_eq!(lines.len(), 3);
    assert_eq!(with_class("band").len(), 3);
    for line in &lines {
        assert_eq!(line.tag_name().name(), "polyline");
        assert_eq!(line.attribute("points").unwrap().split(' ').count() as u64, TRIALS);
    }
    let legend: Vec<_> =
        with_class("legend").iter().map(|node| node.text().unwrap().to_string()).collect();
    assert_eq!(legend, ["tree", "overlap", "random"]);
    // the regret of tree spans three decades: a straight line if and only if the axis is logarithmic
    let tree = lines.iter().find(|line| line.attribute("data-method") == Some("tree")).unwrap();
    let heights: Vec<f64> = tree
        .attribute("points")
        .unwrap()
        .split(' ')
        .map(|point| point.split_once(',').unwrap().1.parse().unwrap())
        .collect();
    let (first, last) = (heights[0], heights[TRIALS as usize - 1]);
    let middle = heights[6];
    assert!((middle - (first + (last - first) * 6.0 / 11.0)).abs() < 0.2, "{heights:?}");
    // methods look the same in all figures
    let look = |file: &str, method: &str| -> Option<String> {
        let svg = read(folder.path(), file);
        let document = Document::parse(&svg).unwrap();
        let line =
            document.descendants().find(|node| node.attribute("data-method") == Some(method))?;
        Some(format!("{:?} {:?}", line.attribute("stroke"), line.attribute("stroke-dasharray")))
    };
    let files = [
        "star9-regret.svg",
        "star16-regret-cost.svg",
        "star4-f1.svg",
        "star-cost-over-dimension.svg",
    ];
    for method in ["tree", "overlap"] {
        let looks = files.map(|file| look(file, method).unwrap());
        assert!(looks.iter().all(|other| *other == looks[0]), "{looks:?}");
    }
    assert_ne!(look(files[0], "tree"), look(files[0], "overlap"));
    // without a cost there is no line over cost
    assert_eq!(look("star16-regret-cost.svg", "random"), None);
}

#[test]
fn the_table_is_printed_and_stored() {
    let folder = results();
    let printed = made(folder.path());
    let table = read(folder.path(), "table.md");
    assert!(printed.starts_with(&table) && printed.contains("index.html"), "{printed}");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip_while(|line| !line.starts_with("## star16"))
        .filter(|line| line.starts_with("| ") && !line.starts_with("| -"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows[0][..2], ["method", "seeds"]);
    let methods: Vec<_> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(methods, ["tree", "overlap", "random"]);
    // random ends at 10 and 11 times exp(−0.55): median and mean 6.058, quartiles a quarter of the way in
    assert_eq!(rows[3][1..5], ["2", "6.058", "5.914 … 6.202", "6.058"]);
    // tree has 3 of 15 edges and a wrong one: precision 3/4, recall 3/15, F1 6/19; cost 9 · 100 · 16
    assert_eq!(rows[1][5..8], ["baseline", "0.32", "14,400"]);
    assert_eq!(rows[1][8..], ["0.01", "0", "16"]);
    assert!(table.contains("tree: 2 of 24 trials failed."), "{table}");
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let folder = results();
    made(folder.path());
    let page = read(folder.path(), "index.html");
    for attribute in ["src=\"", "href=\"", "url(", "@import", "action=\""] {
        for (place, _) in page.match_indices(attribute) {
            let target = &page[place + attribute.len()..];
            assert!(
                target.starts_with('#') || target.starts_with("data:,"),
                "{attribute}{}",
                &target[..40]
            );
        }
    }
    assert!(!page.contains("<script"), "settings must not become markup");
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(page.matches("<svg ").count(), 16);
    assert_eq!(page.matches("role=\"img\" aria-label=\"").count(), 16);
    // One for each problem, and one for all of them together.
    assert_eq!(page.matches("<table>").count(), 4);
    // a second report of the same results is the same, and does not take the first one for results
    made(folder.path());
    assert_eq!(read(folder.path(), "index.html"), page);
}

#[test]
fn options_choose_what_is_made() {
    let folder = results();
    let out = folder.path().join("elsewhere");
    let arguments =
        ["--out", out.to_str().unwrap(), "--format", "svg", "--x", "cost", "--baseline", "random"];
    let output = report(&arguments, folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        out.join("star9-regret-cost.svg").exists() && !out.join("star9-regret-cost.png").exists()
    );
    assert!(!out.join("star9-regret.svg").exists());
    assert!(
        std::fs::read_to_string(out.join("table.md"))
            .unwrap()
            .contains("difference to random [95 %]")
    );
}

#[test]
fn what_cannot_be_reported_is_refused() {
    let folder = results();
    let refused = |arguments: &[&str], folder: &Path| {
        let output = report(arguments, folder);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let message = refused(&["--baseline", "bush"], folder.path());
    assert!(
        message.contains("no run has the method `bush`; the results have tree, overlap, random"),
        "{message}"
    );
    let message = refused(&[folder.path().to_str().unwrap()], folder.path());
    assert!(message.contains("are the same run; name only one of their folders"), "{message}");
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&[], empty.path()).contains("there are no results here"));
    assert!(refused(&["--format", "gif"], folder.path()).contains("possible values: svg, png"));
}

#[test]
fn the_page_opens_in_a_browser_without_an_error() {
    if std::env::var("BOSCAGE_WITHOUT_BROWSER").is_ok_and(|value| value == "1") {
        return;
    }
    let folder = results();
    made(folder.path());
    let path = folder.path().join("report/index.html");
    let open = |path: &Path| -> (String, String) {
        let profile = tempfile::tempdir().unwrap();
        let output = std::process::Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--enable-logging=stderr", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("file://{}", path.display()))
            .output()
            .expect("this test needs the program `chromium`: install it, or set BOSCAGE_WITHOUT_BROWSER=1 to do without");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr))
    };
    let (page, log) = open(&path);
    assert_eq!(page.matches("<svg ").count(), 16, "{log}");
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    // the same page with an error in it is noticed
    let broken = folder.path().join("broken.html");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&broken, text.replace("</body>", "<script>missing()</script></body>")).unwrap();
    assert!(open(&broken).1.lines().any(|line| line.contains("CONSOLE")));
}
