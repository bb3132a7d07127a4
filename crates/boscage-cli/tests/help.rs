//! The help texts, word for word: whoever changes one looks at all of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

const COMMANDS: [&str; 14] = [
    "tune",
    "init",
    "studies",
    "show",
    "report",
    "export",
    "import",
    "enqueue",
    "ask",
    "tell",
    "bench",
    "completions",
    "man",
    "",
];

#[test]
fn help_texts() {
    let mut all = String::new();
    for command in COMMANDS {
        let arguments: Vec<&str> =
            if command.is_empty() { vec!["--help"] } else { vec![command, "--help"] };
        let output = Command::new(env!("CARGO_BIN_EXE_boscage"))
            .args(&arguments)
            .env("COLUMNS", "100")
            .env_remove("BOSCAGE_STORAGE")
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let text: Vec<&str> = text.lines().map(str::trim_end).collect();
        // Examples are what people read.
        assert!(text.iter().any(|line| line.starts_with("Examples:")), "{command} has no examples");
        all += &format!("$ boscage {}\n{}\n\n", arguments.join(" "), text.join("\n"));
    }
    insta::assert_snapshot!(all);
}
