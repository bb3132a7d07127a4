//! `boscage completions` and `boscage man`: what shells and manuals know of the program, made from the same description as its
//! help texts.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// Write completions of the command line for a shell.
///
/// The shell has to read them when it starts; how is shown below.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "Examples:
  boscage completions bash > ~/.local/share/bash-completion/completions/boscage
  boscage completions zsh > ~/.zfunc/_boscage       with fpath+=~/.zfunc before compinit in ~/.zshrc
  boscage completions fish > ~/.config/fish/completions/boscage.fish";

/// Write the manual: a page for the program and one for each of its commands.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Folder for the pages, a file for each; it is made if it does not exist [default: all to standard output].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "Examples:
  boscage man | man -l -                            read all pages
  boscage man --folder ~/.local/share/man/man1      from then on: man boscage, man boscage-bench-run";

/// What the page of the program says beside its help.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Done."),
    ("1", "No result: no trial gave a value, or some runs of an experiment failed."),
    ("2", "What was asked for makes no sense or cannot be done."),
    ("130", "Stopped by Ctrl-C or another signal to end."),
];
const ENVIRONMENT: &[(&str, &str)] = &[
    ("BOSCAGE_STORAGE", "Where studies are stored, as with --storage."),
    ("NO_COLOR", "If it is set to anything, there are no colours."),
];

/// Writes the completions.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // The generator panics where it cannot write, so that it gets memory to write to.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "boscage", &mut text);
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// Writes the manual.
pub(crate) fn man(
    args: &ManArgs,
    command: clap::Command,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let pages = pages(command)?;
    let Some(folder) = &args.folder else {
        for (_, page) in &pages {
            out.write_all(page)?;
        }
        return Ok(out.flush()?);
    };
    let failed = |path: &Path| format!("{}: writing failed", path.display());
    std::fs::create_dir_all(folder).with_context(|| failed(folder))?;
    for (name, page) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, page).with_context(|| failed(&path))?;
    }
    writeln!(out, "{}: {} pages", folder.display(), pages.len())?;
    Ok(())
}

/// The names of all pages and what is in them, the program's first.
fn pages(command: clap::Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut open = vec![(command, true)];
    while let Some((command, is_first)) = open.pop() {
        // The last one that is put there comes out next.
        let below: Vec<clap::Command> =
            command.get_subcommands().filter(|below| !below.is_hide_set()).cloned().collect();
        pages.push(page(command, is_first)?);
        open.extend(below.into_iter().rev().map(|command| (command, false)));
    }
    Ok(pages)
}

fn page(command: clap::Command, is_first: bool) -> std::io::Result<(String, Vec<u8>)> {
    let after = command.get_after_help().map(ToString::to_string);
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    let version = concat!("boscage ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).source(version).manual("boscage");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    if is_first {
        for (heading, lines) in [("EXIT STATUS", EXIT_STATUS), ("ENVIRONMENT", ENVIRONMENT)] {
            roff.control("SH", [heading]);
            for (name, meaning) in lines {
                roff.control("TP", []);
                roff.text([roman(*name)]);
                roff.text([roman(*meaning)]);
            }
        }
    }
    if let Some(after) = after {
        let (heading, text) = match after.strip_prefix("Examples:") {
            Some(examples) => ("EXAMPLES", examples),
            None => ("NOTES", after.as_str()),
        };
        roff.control("SH", [heading]);
        // Line by line as they are.
        roff.control("nf", []);
        for line in text.trim_start_matches('\n').lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(&mut page)?;
    Ok((man.get_filename(), page))
}
