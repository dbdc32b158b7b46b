// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/start.md shows the actual output of `weir check` and `weir simulate` and the actual source
//! of the example. Every code block of README.md is of a kind that a test runs.

use std::path::Path;

use crate::common::{run, weir};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The page with a first system.
const PAGE: &str = "docs/start.md";

/// Returns the text on the page between the line `begin` and the end of its block.
fn block(begin: &str) -> String {
    let page = text(PAGE);
    let (_, rest) = page
        .split_once(&format!("```{begin}\n"))
        .unwrap_or_else(|| panic!("{PAGE} has no block that begins with {begin:?}"));
    let (block, _) = rest.split_once("\n```").expect("a block that ends");
    block.to_owned()
}

/// Asserts that the page shows lines of a command's output in order. A line of `…` stands for
/// omitted lines.
fn shows(command: &str) {
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let printed = run(weir().args(arguments).current_dir(repository())).out;
    let shown = block(&format!("\n$ {command}"));
    let mut lines = printed.lines();
    for line in shown.lines().filter(|line| *line != "…") {
        assert!(
            lines.any(|printed| printed == line),
            "{PAGE} shows\n{line}\nand {command} prints\n{printed}"
        );
    }
}

#[test]
fn the_page_shows_what_check_prints() {
    shows("weir check examples/motor-controller/system.toml");
}

#[test]
fn the_page_shows_what_simulate_prints() {
    shows("weir simulate examples/network-node/system.toml --flood telemetry=30kHz");
}

#[test]
fn the_page_shows_a_source_of_the_example() {
    let shown = block("toml");
    let system = text("examples/motor-controller/system.toml");
    assert!(system.contains(&shown), "{shown}");
}

/// scripts/fresh.sh runs the two commands. scripts/test-examples.sh compiles the C, and runs the
/// commands after it and those in the table.
#[test]
fn every_block_of_the_readme_is_run_by_a_test() {
    let readme = text("README.md");
    let kinds: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("```"))
        .step_by(2)
        .collect();
    assert_eq!(kinds, ["", "c", "sh"]);
    let two: Vec<&str> = readme
        .split_once("## See it")
        .and_then(|(_, rest)| rest.split("```").nth(1))
        .expect("a block")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .collect();
    assert_eq!(two, ["make demo", "make test"]);
}

#[test]
fn the_readme_is_short() {
    assert!(text("README.md").chars().count() <= 7_000);
}
