// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the `weir` command as a whole.
#![cfg(unix)]
use std::path::Path;

use assert_cmd::Command;

/// Copies weir to `folder`, so that no other program is beside it unless the test puts it there.
///
/// A separate process writes the programs that a test starts. Otherwise a child of another test
/// could inherit the file while it is open for writing, and a program that is open for writing
/// cannot be started.
fn weir_in(folder: &Path) -> Command {
    let path = folder.join("weir");
    Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_weir"))
        .arg(&path)
        .assert()
        .success();
    let mut command = Command::new(path);
    command.env("PATH", "/usr/bin:/bin");
    command
}

fn put_program(folder: &Path, name: &str, script: &str) {
    Command::new("sh")
        .args(["-c", r#"cat >"$0" && chmod +x "$0""#])
        .arg(folder.join(name))
        .write_stdin(format!("#!/bin/sh\n{script}\n"))
        .assert()
        .success();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_explains_each_command_in_a_line_and_lists_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let output = weir_in(folder.path()).arg("--help").assert().success();
    let help = text(&output.get_output().stdout);
    let section = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .unwrap();
    let names: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        [
            "check",
            "tune",
            "verify",
            "simulate",
            "sweep",
            "generate",
            "run",
            "linux",
            "reproduce",
            "help"
        ],
        "{help}"
    );
}

#[test]
fn help_of_a_command_is_what_the_command_says_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    put_program(folder.path(), "weir-linux", "printf '<%s>' \"$@\"");
    let said = |arguments: &[&str]| {
        let output = weir_in(folder.path()).args(arguments).assert().success();
        text(&output.get_output().stdout)
    };
    for command in ["check", "tune", "verify", "simulate", "sweep", "generate"] {
        let help = said(&["help", command]);
        assert!(help.contains("Usage:"), "{help}");
        assert_eq!(help, said(&[command, "--help"]));
    }
    assert_eq!(said(&["help"]), said(&["--help"]));
    assert_eq!(said(&["help", "linux", "plan"]), "<plan><--help>");
    let unknown = weir_in(folder.path()).args(["help", "chekc"]).assert();
    unknown.code(2);
}

#[test]
fn a_command_reaches_the_program_beside_it_with_every_argument_and_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    put_program(folder.path(), "weir-run", "printf '<%s>' \"$@\"; exit 7");
    let output = weir_in(folder.path())
        .args([
            "run",
            "my firmware.elf",
            "--flood",
            "INT0=20kHz",
            "--help",
            "--",
            "-x",
        ])
        .assert()
        .code(7);
    assert_eq!(
        text(&output.get_output().stdout),
        "<my firmware.elf><--flood><INT0=20kHz><--help><--><-x>"
    );
}

#[test]
fn the_commands_of_linux_are_those_of_their_own_program() {
    let folder = tempfile::tempdir().unwrap();
    put_program(folder.path(), "weir-linux", "printf '<%s>' \"$@\"; exit 1");
    let output = weir_in(folder.path())
        .args(["linux", "plan", "system.toml", "--json"])
        .assert()
        .code(1);
    assert_eq!(
        text(&output.get_output().stdout),
        "<plan><system.toml><--json>"
    );
}

#[test]
fn a_program_on_the_path_is_found_too() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    put_program(other.path(), "weir-lab", "echo \"$1\"");
    let output = weir_in(folder.path())
        .env("PATH", other.path())
        .args(["reproduce", "--list"])
        .assert()
        .success();
    assert_eq!(text(&output.get_output().stdout), "reproduce\n");
}

#[test]
fn a_missing_program_is_named_with_the_way_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = weir_in(folder.path())
        .env("PATH", folder.path())
        .arg("run")
        .assert()
        .code(2);
    let message = text(&output.get_output().stderr);
    assert!(
        message.contains("weir-run") && message.contains("cargo install --path crates/emulate"),
        "{message}"
    );
}

#[test]
fn an_unknown_command_is_refused_with_the_near_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = weir_in(folder.path()).arg("reprodce").assert().code(2);
    let message = text(&output.get_output().stderr);
    assert!(message.contains("'reproduce'"), "{message}");
}

#[test]
fn no_command_at_all_shows_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let output = weir_in(folder.path()).assert().code(2);
    assert!(text(&output.get_output().stderr).contains("Commands:"));
}
