//! `boscage bench report`: the paper's figures, tables and one page, from stored results.
//!
//! The steps are apart: [`selection`] says which runs are compared, [`curves`], [`table`] and [`pooled`] compute numbers from them,
//! [`figures`], [`chart`] and [`graph_picture`] draw, [`page`] puts all of it on a page. Figures are SVG of our own: the page
//! can restyle it for dark screens, and the PNG files are rendered from the same text ([`render`]).

mod chart;
mod curves;
mod figures;
mod graph_picture;
mod page;
mod pooled;
mod render;
mod selection;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use boscage_bench::results;
use clap::{Args, ValueEnum};

const EXAMPLES: &str = "Examples:
  boscage bench report results/star25                       writes results/star25/report/index.html
  boscage bench report results/star25 --baseline random     compares with another method
  boscage bench report mine theirs --out both --format svg  several folders in one report";

/// Make figures, tables and a page from results.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Folders with results, as written by `boscage bench run`.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) results: Vec<PathBuf>,
    /// Where the report goes [default: the folder `report` in the first DIR].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The method the others are compared with [default: `tree` if it was run, else the first one].
    #[arg(long, value_name = "METHOD")]
    pub(crate) baseline: Option<String>,
    /// Formats of the figures' files. The page always has all figures.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Format::Svg, Format::Png])]
    pub(crate) format: Vec<Format>,
    /// What the regret is drawn over.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Horizontal::Evaluations, Horizontal::Cost])]
    pub(crate) x: Vec<Horizontal>,
}

/// A format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Scalable vector graphics.
    Svg,
    /// Pixels, at twice the size of the page's figures.
    Png,
}

/// What the regret is drawn over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Horizontal {
    /// Evaluations of the function.
    Evaluations,
    /// The paper's message-passing cost.
    Cost,
}

/// Reads the results, writes the report, and prints its tables.
///
/// # Errors
///
/// If results cannot be read or do not belong together, or if the report cannot be written.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let first = args.results.first().context("a folder with results is needed")?;
    let out = args.out.clone().unwrap_or_else(|| first.join("report"));
    let mut runs = Vec::new();
    for folder in &args.results {
        runs.extend(results::read_runs(folder)?);
    }
    let problems = selection::problems(&runs)?;
    let methods = selection::methods(&runs);
    let baseline = baseline(args.baseline.as_deref(), &methods)?;

    std::fs::create_dir_all(&out)
        .with_context(|| format!("{}: making the folder failed", out.display()))?;
    let sections: Vec<page::Section> = problems
        .iter()
        .map(|problem| page::Section {
            problem,
            table: table::table(problem, &baseline),
            figures: figures::of_problem(problem, &args.x),
        })
        .collect();
    let pooled = pooled::pooled(&problems, &baseline);
    let series = figures::of_series(&problems);

    for figure in sections.iter().flat_map(|section| &section.figures).chain(&series) {
        let path = out.join(&figure.name);
        if args.format.contains(&Format::Svg) {
            write(&path.with_added_extension("svg"), figure.svg.as_bytes())?;
        }
        if args.format.contains(&Format::Png) {
            write(&path.with_added_extension("png"), &render::png(&figure.svg)?)?;
        }
    }
    let markdown = markdown(&sections, pooled.as_ref());
    write(&out.join("table.md"), markdown.as_bytes())?;
    let page_path = out.join("index.html");
    write(&page_path, page::html(&runs, &sections, pooled.as_ref(), &series).as_bytes())?;

    writeln!(std::io::stdout(), "{markdown}The report is in {}", page_path.display())?;
    Ok(())
}

fn baseline(wish: Option<&str>, methods: &[&str]) -> anyhow::Result<String> {
    match wish {
        Some(wish) if methods.contains(&wish) => Ok(wish.to_string()),
        Some(wish) => {
            bail!("no run has the method `{wish}`; the results have {}", methods.join(", "))
        }
        // `tree` comes first if it was run
        None => Ok(methods.first().map(ToString::to_string).unwrap_or_default()),
    }
}

fn markdown(sections: &[page::Section], pooled: Option<&pooled::Pooled>) -> String {
    let mut text = String::new();
    if let Some(pooled) = pooled {
        let (caption, table) = (pooled.caption(), pooled.markdown());
        text.push_str(&format!("## All problems together\n\n{caption}\n\n{table}\n"));
    }
    for section in sections {
        text.push_str(&format!("## {}\n\n", selection::heading(section.problem)));
        for note in &section.problem.notes {
            text.push_str(&format!("- {note}\n"));
        }
        text.push_str(&format!("\n{}\n", section.table.markdown()));
    }
    text.push_str(&format!("{}\n", table::LEGEND));
    text
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("{}: writing failed", path.display()))
}
