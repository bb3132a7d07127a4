//! The program `boscage`.
//!
//! Exit codes: 0 done, 1 some runs failed, 2 what was asked for makes no sense or cannot be done, 130 stopped by Ctrl-C
//! or another signal to end.

mod bench;
mod init;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Bayesian optimization of expensive black-box functions with 10 to 1,000 parameters.
#[derive(Parser)]
#[command(name = "boscage", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  boscage init --parameter 'rate real 1e-5 1 log' -- ./train --rate={rate}
                                              write a study file
  boscage bench recipes                       list the experiments that come with boscage
  boscage bench run star25 --profile quick    run one of them";

#[derive(Subcommand)]
enum Command {
    /// Run experiments: problems with known answers, methods, recipes, results and figures.
    Bench(bench::BenchArgs),
    Init(init::InitArgs),
}

fn main() -> ExitCode {
    let done = match &Arguments::parse().command {
        Command::Bench(args) => bench::run(args),
        Command::Init(args) => init::run(args),
    };
    done.unwrap_or_else(|error| {
        // Whoever reads our output may stop reading: `boscage bench problems | head`.
        let is_broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(is_broken_pipe) {
            return ExitCode::SUCCESS;
        }
        let mut message = format!("error: {error}");
        for cause in error.chain().skip(1).map(ToString::to_string) {
            // Some errors tell their cause themselves.
            if !message.contains(&cause) {
                message += &format!("\n  caused by: {cause}");
            }
        }
        // If even this cannot be written, the exit code still tells.
        let _ = writeln!(std::io::stderr(), "{message}");
        ExitCode::from(2)
    })
}
