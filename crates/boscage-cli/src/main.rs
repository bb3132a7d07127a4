//! The program `boscage`.
//!
//! Exit codes: 0 done; 1 no result, or some runs failed; 2 what was asked for makes no sense or cannot be done; 130 stopped
//! by Ctrl-C or another signal to end.

mod bench;
mod draw;
mod init;
mod interrupt;
mod shell;
mod show;
mod study_argument;
mod study_commands;
mod study_report;
mod tune;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Bayesian optimization of expensive black-box functions with 10 to 1,000 parameters.
#[derive(Parser)]
#[command(name = "boscage", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  boscage tune example                        tune a small program that comes with boscage
  boscage init                                write a study file for a program of your own
  boscage tune study.toml                     tune it, or go on with it
  boscage show study.toml                     what was found and learned
  boscage bench run star25 --profile quick    compare methods on problems with known answers

Exit codes: 0 done; 1 no result, or some runs failed; 2 usage, data or store error; 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    Tune(tune::TuneArgs),
    Init(init::InitArgs),
    Studies(study_commands::StudiesArgs),
    Show(study_commands::ShowArgs),
    Report(study_commands::ReportArgs),
    Export(study_commands::ExportArgs),
    Import(study_commands::ImportArgs),
    Enqueue(study_commands::EnqueueArgs),
    Ask(study_commands::AskArgs),
    Tell(study_commands::TellArgs),
    /// Run experiments: problems with known answers, methods, recipes, results and figures.
    Bench(bench::BenchArgs),
    /// Write completions of the command line for a shell.
    Completions(shell::CompletionsArgs),
    /// Write the manual: a page for the program and one for each of its commands.
    Man(shell::ManArgs),
}

/// A negative number with a negative exponent, `-1.5e-3`, without one: clap would take it for options.
fn plain_number(argument: OsString) -> OsString {
    let number =
        argument.to_str().filter(|text| text.starts_with('-') && text.contains(['e', 'E']));
    match number.and_then(|text| text.parse::<f64>().ok()) {
        // All digits that are needed to read the same number, and no exponent.
        Some(number) if number.is_finite() => number.to_string().into(),
        _ => argument,
    }
}

fn main() -> ExitCode {
    let arguments = std::env::args_os().map(plain_number);
    let done = match &Arguments::parse_from(arguments).command {
        Command::Tune(args) => tune::run(args),
        Command::Init(args) => init::run(args),
        Command::Studies(args) => study_commands::studies(args),
        Command::Show(args) => study_commands::show(args),
        Command::Report(args) => study_commands::report(args),
        Command::Export(args) => study_commands::export(args),
        Command::Import(args) => study_commands::import(args),
        Command::Enqueue(args) => study_commands::enqueue(args),
        Command::Ask(args) => study_commands::ask(args),
        Command::Tell(args) => study_commands::tell(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions(args) => {
            shell::completions(args, Arguments::command(), &mut std::io::stdout())
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Man(args) => shell::man(args, Arguments::command(), &mut std::io::stdout())
            .map(|()| ExitCode::SUCCESS),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_exponents_are_no_options() {
        for (given, plain) in [
            ("-1.5e-3", "-0.0015"),
            ("-2E5", "-200000"),
            ("1e-3", "1e-3"),
            ("-v", "-v"),
            ("-e", "-e"),
            ("-inf", "-inf"),
            ("--seed", "--seed"),
            ("-1e999", "-1e999"),
        ] {
            assert_eq!(plain_number(given.into()), plain);
        }
        for number in [-5e-324, -1.2345678901234567e-200, -f64::MIN_POSITIVE] {
            let plain = plain_number(format!("{number:e}").into());
            let plain = plain.to_str().unwrap();
            assert!(!plain.contains('e'));
            assert_eq!(plain.parse(), Ok(number));
        }
    }
}
