//! `boscage bench export`: all trials as one table.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use boscage_bench::export::{Format, Points, export, write_csv};
use boscage_bench::results::read_runs;
use clap::{Args, ValueEnum};

/// Write all trials of a folder of results as one table, for Python, R and spreadsheets.
///
/// The columns are described in docs/results.md.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Folder of the results.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Format of the table [default: by the ending of --out, otherwise csv].
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// File to write, or `-` for CSV to standard output [default: FOLDER/trials.csv or FOLDER/trials.parquet].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add the points, in model coordinates: a list in Parquet, JSON in CSV.
    #[arg(long)]
    points: bool,
}

const EXAMPLES: &str = "Examples:
  boscage bench export results/star25-quick
  boscage bench export results/star25-quick --format parquet --points
  boscage bench export results/star25-quick --out - | head";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Csv,
    Parquet,
}

/// Writes the table.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let format = format(args)?;
    let points = if args.points { Points::Include } else { Points::Omit };
    let runs = read_runs(&args.folder)?;
    if args.out.as_deref() == Some(Path::new("-")) {
        let out = std::io::stdout().lock();
        return match write_csv(&runs, points, out, Path::new("standard output")) {
            // The next program has seen enough.
            Err(boscage_bench::Error::File { source, .. })
                if source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                Ok(())
            }
            written => Ok(written.map(|_| ())?),
        };
    }
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| args.folder.join("trials").with_extension(format.extension()));
    let rows = export(&runs, format, points, &out)?;
    writeln!(std::io::stdout(), "{}: {rows} trials of {} runs", out.display(), runs.len())?;
    Ok(())
}

fn format(args: &ExportArgs) -> anyhow::Result<Format> {
    let extension = args.out.as_deref().and_then(Path::extension).and_then(|e| e.to_str());
    let to_standard_output = args.out.as_deref() == Some(Path::new("-"));
    Ok(match (args.format, extension) {
        (Some(FormatName::Parquet), _) if to_standard_output => {
            bail!("Parquet cannot be written to standard output; name a file with --out")
        }
        (Some(FormatName::Csv), _) => Format::Csv,
        (Some(FormatName::Parquet), _) | (None, Some("parquet")) => Format::Parquet,
        (None, Some("csv") | None) => Format::Csv,
        (None, Some(other)) => {
            bail!(
                "the ending .{other} does not tell the format; use .csv or .parquet, or give --format"
            )
        }
    })
}
