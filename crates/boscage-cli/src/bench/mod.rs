//! `boscage bench`: experiments.

mod claims;
mod export;
pub(crate) mod list;
pub(crate) mod progress;
mod report;
mod run;
mod serve;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What follows `boscage bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

const EXAMPLES: &str = "Examples:
  boscage bench recipes                        the experiments that come with boscage
  boscage bench run star25 --profile quick     run one of them, in minutes
  boscage bench run my.toml --dry-run          what a recipe of your own would run, and how long it would take
  boscage bench problems hartmann6             a problem, as TOML for a recipe
  boscage bench methods tree                   a method's settings
  boscage bench serve hartmann6                its values, for an optimizer in another language";

#[derive(Subcommand)]
enum BenchCommand {
    /// List the problems, or show one of them as TOML for a recipe.
    Problems(list::ProblemsArgs),
    /// List the methods, or show all settings of one of them.
    Methods(list::MethodsArgs),
    /// List the recipes that come with boscage, or show one of them.
    Recipes(list::RecipesArgs),
    /// Run a recipe, or go on with it: nothing is run twice.
    Run(run::RunArgs),
    /// Make figures, tables and a page from results.
    Report(report::ReportArgs),
    /// Write results as CSV or Parquet.
    Export(export::ExportArgs),
    /// Test the paper's claims on results.
    Claims(claims::ClaimsArgs),
    /// Evaluate a problem for an optimizer in another language.
    Serve(serve::ServeArgs),
}

/// Does what was asked for.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        BenchCommand::Problems(args) => list::problems(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Methods(args) => list::methods(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Recipes(args) => list::recipes(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Run(args) => run::run(args),
        BenchCommand::Report(args) => report::run(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Export(args) => export::run(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Claims(args) => claims::run(args),
        BenchCommand::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
    }
}
