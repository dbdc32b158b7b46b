// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output fits the width of the terminal. `script` provides a terminal.
#![cfg(target_os = "linux")]
use std::path::Path;

use assert_cmd::cargo::cargo_bin;

/// Returns the lines of `weir ARGUMENTS` on a terminal of this many columns.
fn lines(arguments: &str, terminal: u16, environment: &str) -> Vec<String> {
    let weir = cargo_bin("weir");
    let command = format!(
        "stty rows 40 cols {terminal}; NO_COLOR=1 {environment} '{}' {arguments}",
        weir.display()
    );
    let output = std::process::Command::new("script")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"))
        .args(["-qec", &command, "/dev/null"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script, of bsdutils");
    let text = String::from_utf8(output.stdout).unwrap();
    // A slow machine shows a progress bar, which is erased later. The erased text is removed.
    let shown = |line: &str| line.rsplit("\u{1b}[2K").next().map(str::to_owned);
    text.lines()
        .filter_map(|line| shown(line.trim_end()))
        .collect()
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn tables_and_sentences_are_as_wide_as_the_terminal() {
    for arguments in [
        "check shared-timer/system.toml",
        "check network-node/system.toml --all",
        "tune shared-timer/system.toml",
        "simulate motor-controller/system.toml --duration 10ms",
        "generate limit-in-silicon/system.toml --rtl --output /nowhere/at/all",
    ] {
        for terminal in [60, 80, 100] {
            let lines = lines(arguments, terminal, "");
            assert!(
                widest(&lines) <= terminal.into(),
                "{arguments}:\n{}",
                lines.join("\n")
            );
        }
        // On a wide terminal, tables are only as wide as necessary, and sentences end at 100
        // columns.
        assert!(widest(&lines(arguments, 200, "")) <= 130, "{arguments}");
    }
    let columns = lines("check shared-timer/system.toml", 200, "COLUMNS=60");
    assert_eq!(widest(&columns), 60);
}

/// If a word would fit on the previous line, a paragraph was broken twice.
#[test]
fn help_is_broken_once() {
    for command in ["check", "tune", "verify", "simulate", "sweep", "generate"] {
        for terminal in [60, 80, 120] {
            let lines = lines(&format!("{command} --help"), terminal, "");
            assert!(widest(&lines) <= terminal.into(), "{}", lines.join("\n"));
            for pair in lines.windows(2) {
                let next = pair[1].split(' ').next().unwrap_or_default();
                let is_prose = pair
                    .iter()
                    .all(|line| line.starts_with(char::is_alphanumeric));
                let room = usize::from(terminal.min(100)) - pair[0].chars().count();
                assert!(
                    !is_prose || next.chars().count() >= room,
                    "{terminal}: {pair:?}"
                );
            }
        }
    }
}

#[test]
fn what_takes_long_says_how_far_it_is_on_a_terminal_only() {
    let long = "simulate motor-controller/system.toml --duration 100000s";
    let shown = lines(long, 100, "timeout 3").join("\n");
    for part in [" % ", "left"] {
        assert!(shown.contains(part), "{shown}");
    }
    let silent = lines(&format!("{long} 2>&1 | cat"), 100, "timeout 3");
    assert!(silent.iter().all(String::is_empty), "{silent:?}");
}
