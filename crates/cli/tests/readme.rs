// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the README shows of `weir check` and `weir simulate` is what they print, and the source
//! that it shows is the example's.
mod common;

use std::path::Path;

use common::{run, weir};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands in the README between a line that is `begin` and the end of its block.
fn block(begin: &str) -> String {
    let readme = text("README.md");
    let (_, rest) = readme
        .split_once(&format!("```{begin}\n"))
        .unwrap_or_else(|| panic!("README.md has no block that begins with {begin:?}"));
    let (block, _) = rest.split_once("\n```").expect("a block that ends");
    block.to_owned()
}

/// The README shows the lines of what a command prints in their order; what it leaves out is a line
/// of `…`.
fn shows(command: &str) {
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let printed = run(weir().args(arguments).current_dir(repository())).out;
    let shown = block(&format!("\n$ {command}"));
    let mut lines = printed.lines();
    for line in shown.lines().filter(|line| *line != "…") {
        assert!(
            lines.any(|printed| printed == line),
            "README.md shows\n{line}\nand {command} prints\n{printed}"
        );
    }
}

#[test]
fn the_readme_shows_what_check_prints() {
    shows("weir check examples/motor-controller/system.toml");
}

#[test]
fn the_readme_shows_what_simulate_prints() {
    shows("weir simulate examples/network-node/system.toml --flood telemetry=30kHz");
}

#[test]
fn the_readme_shows_a_source_of_the_example() {
    let shown = block("toml");
    let system = text("examples/motor-controller/system.toml");
    assert!(system.contains(&shown), "{shown}");
}
