// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the program as users do, with a changed system in a temporary folder.
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The output and the exit code of a command.
pub struct Printed {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit code. `None` if a signal ended the command.
    pub code: Option<i32>,
}

/// Returns the command `weir` without arguments.
pub fn weir() -> Command {
    Command::cargo_bin("weir").unwrap()
}

/// Runs `command` to its end.
pub fn run(command: &mut Command) -> Printed {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Printed {
        out: text(output.stdout),
        err: text(output.stderr),
        code: output.status.code(),
    }
}

/// Returns the node of `tests/data` with `changes`: each first text, which must occur once, is
/// replaced by the second.
pub fn node(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(
        include_str!("../data/node.toml").to_owned(),
        |text, (from, to)| {
            assert_eq!(text.matches(from).count(), 1, "`{from}` in\n{text}");
            text.replace(from, to)
        },
    )
}

/// Runs `weir check` with `arguments` on a file with this content.
pub fn check(content: impl AsRef<[u8]>, arguments: &[&str]) -> Printed {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("system.toml");
    std::fs::write(&path, content).unwrap();
    check_file(&path, arguments)
}

/// Runs `weir check` with `arguments` on the file at `path`.
pub fn check_file(path: &Path, arguments: &[&str]) -> Printed {
    run(weir().arg("check").arg(path).args(arguments))
}

/// Returns the sentence of the verdict on one line.
pub fn verdict(printed: &Printed) -> String {
    let at = ["guaranteed: ", "not guaranteed: ", "not proven: "]
        .iter()
        .find_map(|word| printed.out.find(&format!("\n{word}")))
        .unwrap_or_else(|| panic!("{}\n{}", printed.out, printed.err));
    let paragraph = printed.out[at..].trim_start().split("\n\n").next().unwrap();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the output of `weir check --json` for a file with this content, and the exit code.
pub fn json(content: &str) -> (Value, Option<i32>) {
    let printed = check(content, &["--json"]);
    let value = serde_json::from_str(&printed.out)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", printed.out, printed.err));
    (value, printed.code)
}

/// Returns the only object in a list that has this value.
pub fn one<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let mut found = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item[key] == value);
    let first = found.next().unwrap_or_else(|| panic!("{value} in {list}"));
    assert!(found.next().is_none(), "{value} twice in {list}");
    first
}

/// The limit of the button in `tests/data/node.toml`.
pub const BUTTON_LIMIT: &str =
    r#"limit = { policy = "strict", timing = "lazy", rate = "50Hz", timer = "TIMER1B" }"#;
