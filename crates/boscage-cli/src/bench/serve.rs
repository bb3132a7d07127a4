//! `boscage bench serve`: a problem for optimizers in other languages.

use std::io::{BufRead, BufWriter, Write};
use std::path::Path;

use anyhow::bail;
use boscage::Value;
use boscage_bench::Problem;
use boscage_bench::problems::{preset, presets};
use boscage_bench::recipe::choices;
use clap::Args;
use serde_json::json;

/// Evaluate a problem for an optimizer in another language.
///
/// The first line that is printed says what the problem is, as JSON: its name, seed and goal, its parameters, its optimum (null if
/// it is not known) and the standard deviation of the noise that is meant to be added. Then every line of the input is a point, the
/// values of all parameters in order as a JSON array, and is answered by {"value": …}, without noise, or {"error": "…"}. It ends
/// with the input.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boscage bench serve star25-continuous --seed 3
  echo '[0.2, 0.15, 0.48, 0.28, 0.31, 0.66]' | boscage bench serve hartmann6")]
pub(crate) struct ServeArgs {
    /// A problem; `boscage bench problems` lists them.
    problem: String,
    /// Seed of the problem: draws, permutes or moves the function.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// `boscage bench serve`.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let Some(preset) = preset(&args.problem) else {
        bail!(
            "there is no problem {:?}{}",
            args.problem,
            choices(&args.problem, presets().iter().map(|preset| preset.name))
        );
    };
    let problem = preset.spec.build(args.seed, Path::new(""))?;
    serve(
        preset.name,
        args.seed,
        problem.as_ref(),
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    )
}

fn serve(
    name: &str,
    seed: u64,
    problem: &dyn Problem,
    mut input: impl BufRead,
    out: impl Write,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    let optimum = match problem.optimum() {
        None => serde_json::Value::Null,
        Some(optimum) => json!({
            "value": optimum.value,
            "at": problem.space().decode(&optimum.point)?,
            "certainty": optimum.certainty,
        }),
    };
    let first = json!({
        "name": name,
        "seed": seed,
        "goal": problem.goal(),
        "parameters": problem.space().parameters(),
        "optimum": optimum,
        "noise_std": problem.noise_std(),
    });
    writeln!(out, "{first}")?;
    out.flush()?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = match evaluate(problem, &line) {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        writeln!(out, "{answer}")?;
        // Whoever asked waits for it.
        out.flush()?;
    }
}

fn evaluate(problem: &dyn Problem, line: &[u8]) -> anyhow::Result<f64> {
    let values: Vec<Value> = serde_json::from_slice(line).map_err(|error| {
        anyhow::anyhow!("the line is no JSON array of values, such as [0.5, 3, true]: {error}")
    })?;
    // Whether every value belongs to its parameter.
    problem.space().encode(&values)?;
    let value = problem.evaluate(&values)?;
    if !value.is_finite() {
        bail!("the value is {value}");
    }
    Ok(value)
}
