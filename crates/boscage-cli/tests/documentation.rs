//! Every command in the documentation runs: the lines of its `sh` blocks that call boscage, in order, page by page, with the
//! `smoke` profile in place of `quick` and of the full size.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the blocks of a page that begin with three backticks and this language.
fn blocks(page: &str, language: &str) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let mut inside = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(found), None) => {
                inside = Some(found == language);
                if found == language {
                    blocks.push(Vec::new());
                }
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => {
                if let Some(block) = blocks.last_mut() {
                    block.push(line.to_string());
                }
            }
            (None, _) => {}
        }
    }
    blocks
}

/// The arguments of a line that calls boscage, made small; nothing for other lines.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next()?.split(" | ").next()?.trim();
    let called =
        line.strip_prefix("boscage ").or_else(|| line.strip_prefix("cargo run --release -- "))?;
    let mut words: Vec<String> = called
        .split_whitespace()
        .map(|word| word.replace("-quick", "-smoke").replace("quick", "smoke"))
        .collect();
    let is = |words: &[String], command: &str| {
        words.get(..2) == Some(&["bench".to_string(), command.to_string()])
    };
    if is(&words, "run") && !words.iter().any(|word| word == "--profile") {
        words.extend(["--profile".to_string(), "smoke".to_string()]);
    }
    if is(&words, "claims") {
        words.extend(["--profile".to_string(), "smoke".to_string()]);
    }
    Some(words)
}

/// Runs what a page says, in a folder of its own with the files that the page shows or takes for granted.
fn follow(page: &str) -> usize {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("edges.txt"), "0 1\n1 2\n1 3\n").unwrap();
    let solver = folder.path().join("solver");
    std::fs::write(&solver, "#!/bin/sh\nfor word; do echo \"$word\"; done | awk '{ n += length($0) } END { print n }'\n")
        .unwrap();
    std::fs::set_permissions(&solver, std::fs::Permissions::from_mode(0o755)).unwrap();
    for block in blocks(&text, "toml") {
        let recipe = block.join("\n");
        if let Some(name) = block.iter().find_map(|line| line.strip_prefix("name = ")) {
            std::fs::write(folder.path().join(format!("{}.toml", name.trim_matches('"'))), recipe)
                .unwrap();
        }
    }
    for block in blocks(&text, "csv") {
        std::fs::write(folder.path().join("past.csv"), block.join("\n") + "\n").unwrap();
    }
    let mut ran = 0;
    for line in blocks(&text, "sh").concat() {
        let Some(words) = arguments(&line) else { continue };
        let output = Command::new(env!("CARGO_BIN_EXE_boscage"))
            .args(&words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{page}: {line}\nran as: boscage {}\n{}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        ran += 1;
    }
    ran
}

#[test]
fn repeat_the_paper() {
    assert!(follow("docs/repeat-the-paper.md") >= 10);
}

#[test]
fn methods() {
    assert!(follow("docs/methods.md") >= 3);
}

#[test]
fn results() {
    assert!(follow("docs/results.md") >= 4);
}

#[test]
fn readme() {
    assert!(follow("README.md") >= 6);
}

#[test]
fn tune() {
    assert!(follow("docs/tune.md") >= 10);
}

#[test]
fn experiments() {
    assert!(follow("experiments/README.md") >= 2);
}

/// The names by which the headings of a page are linked to.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    })
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/default-method.md",
        "docs/repeat-the-paper.md",
        "docs/methods.md",
        "docs/results.md",
        "docs/tune.md",
        "docs/paper-map.md",
        "experiments/README.md",
        "experiments/ablation/README.md",
        "experiments/peers/README.md",
        "experiments/peers/held-out.md",
        "experiments/peers/moved.md",
        "experiments/peers/penalised.md",
        "experiments/peers/ranges.md",
        "experiments/peers/rotated.md",
    ] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let (target, heading) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            let target = match target {
                "" => path.clone(),
                target => path.parent().unwrap().join(target),
            };
            assert!(target.exists(), "{page} links to {link}");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                assert!(headings(&text).any(|found| found == heading), "{page} links to {link}");
            }
            checked += 1;
        }
    }
    assert!(checked > 10);
}
