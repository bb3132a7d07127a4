//! Completions that shells accept, and man pages that `man` shows without a warning.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

fn boscage(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_boscage")).args(arguments).output().unwrap()
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a program is there: some systems lack some of them.
fn has(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// The commands below a command, as its help lists them.
fn commands_below(words: &[&str]) -> Vec<String> {
    let help = text(boscage(&[words, &["--help"]].concat()));
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    // Two spaces; the lines that a long description goes on in have more.
    let names =
        lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_string());
    names.filter(|name| name != "help").collect()
}

/// The program and all its commands, with a dash between the words.
fn all_commands() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = open.pop() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        found.insert([&["boscage"], &words[..]].concat().join("-"));
        for below in commands_below(&words) {
            open.push(words.iter().map(ToString::to_string).chain([below]).collect());
        }
    }
    found
}

#[test]
fn completions_are_accepted_by_the_shells() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(boscage(&["completions", shell]));
        // All commands and an option of one of them.
        for word in ["bench", "completions", "man", "recipes", "profile"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        let path = folder.path().join(shell);
        std::fs::write(&path, script).unwrap();
        if ["bash", "zsh", "fish"].contains(&shell) && has(shell) {
            let checked = Command::new(shell).arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
            assert!(checked.stderr.is_empty(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    assert_eq!(boscage(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn bash_completes_a_command() {
    if !has("bash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completions");
    std::fs::write(&path, text(boscage(&["completions", "bash"]))).unwrap();
    let ask = "source \"$1\"; COMP_WORDS=(boscage bench re); COMP_CWORD=2; _boscage boscage re bench; echo \"${COMPREPLY[@]}\"";
    let reply = Command::new("bash").args(["-c", ask, "bash"]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&reply.stdout), "recipes report\n", "{reply:?}");
}

/// The lines of a section of a page.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let begin = format!("\n.SH {heading}\n");
    let quoted = format!("\n.SH \"{heading}\"\n");
    let (_, rest) = page
        .split_once(&begin)
        .or_else(|| page.split_once(&quoted))
        .unwrap_or_else(|| panic!("there is no {heading} in\n{page}"));
    rest.split("\n.SH ").next().unwrap()
}

#[test]
fn there_is_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("new").join("man1");
    let said = text(boscage(&["man", "--folder", pages.to_str().unwrap()]));
    let commands = all_commands();
    assert!(commands.contains("boscage-bench-run"), "{commands:?}");
    assert!(said.ends_with(&format!("man1: {} pages\n", commands.len())), "{said}");
    let names = std::fs::read_dir(&pages).unwrap();
    let names: BTreeSet<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, commands.iter().map(|name| format!("{name}.1")).collect());
    let mut all = BTreeSet::new();
    for command in &commands {
        let path = pages.join(format!("{command}.1"));
        let page = std::fs::read_to_string(&path).unwrap();
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(title.starts_with(&format!(".TH {command} 1 ")), "{title}");
        let plain = |heading: &str| section(&page, heading).replace('\\', "");
        assert!(plain("NAME").starts_with(&format!("{command} - ")), "{}", plain("NAME"));
        let called = command.replace("-", " ");
        assert!(plain("SYNOPSIS").contains(&format!("fB{called}fR")), "{}", plain("SYNOPSIS"));
        assert!(!plain("DESCRIPTION").trim().is_empty());
        lint(&path);
        all.insert(page);
    }
    let first = std::fs::read_to_string(pages.join("boscage.1")).unwrap();
    assert!(section(&first, "EXIT STATUS").contains("130"));
    assert!(section(&first, "ENVIRONMENT").contains("NO_COLOR"));
    assert!(section(&first, "EXAMPLES").contains("boscage bench run star25"));

    // All of them, the program's first.
    let together = text(boscage(&["man"]));
    let titles: Vec<&str> = together.lines().filter(|line| line.starts_with(".TH ")).collect();
    assert_eq!(titles.len(), commands.len());
    assert!(titles[0].starts_with(".TH boscage 1 "), "{}", titles[0]);
    for page in all {
        assert!(together.contains(&page));
    }
}

/// Shows a page with whatever can check it.
fn lint(path: &Path) {
    let mut lint = if has("mandoc") {
        let mut lint = Command::new("mandoc");
        lint.args(["-Tlint", "-Wwarning"]);
        lint
    } else if has("groff") {
        let mut lint = Command::new("groff");
        lint.args(["-man", "-Tutf8", "-Kutf8", "-ww", "-z"]);
        lint
    } else {
        return;
    };
    let checked = lint.arg(path).output().unwrap();
    let said = [checked.stdout, checked.stderr].concat();
    assert!(said.is_empty(), "{}: {}", path.display(), String::from_utf8_lossy(&said));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("man1");
    let output = boscage(&["man", "--folder", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("man1: writing failed"), "{said}");
}
