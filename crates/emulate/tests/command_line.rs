// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of the command line of `weir run`.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn weir_run(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("weir-run").unwrap();
    command
        .env("NO_COLOR", "1")
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the message of an invalid call, which must exit with 2 and print nothing else.
fn complaint(arguments: &[&str]) -> String {
    let output = weir_run(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!message.contains("panicked"), "{message}");
    // miette wraps long lines and draws a bar before the continuation lines.
    message
        .replace('│', " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_run_shows_the_shares_and_the_counters() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let output = weir_run(&[
        text(&elf),
        "--clock=4MHz",
        "--flood",
        "INT0=20kHz",
        "--for",
        "100ms",
        "--counter",
        "handled",
    ]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stderr.is_empty(), "a short run shows no progress");
    assert!(!shown.contains('\u{1b}'), "no colours in a pipe");
    for part in [
        "INT0=20kHz",
        "share of cycles",
        "INT0 ",
        "everything else",
        "missed",
        "handled",
        "2000",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
}

#[test]
fn json_has_the_same_run() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let arguments = [
        text(&elf),
        "--clock=4MHz",
        "--flood",
        "INT0=20kHz",
        "--hardware-limit",
        "INT0=4kHz",
        "--json",
    ];
    let output = weir_run(&arguments);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["vectors"][0]["name"], "INT0");
    assert_eq!(json["lines"][0]["offered"], 4000);
    assert_eq!(json["clock_hz"], 4_000_000);
}

#[test]
fn a_chip_in_front_is_run_too() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let (_front_folder, front) = crate::common::build("repeater.c", &[]);
    let front = format!("{}:in=INT0:out=PB0:to=INT0", front.display());
    let output = weir_run(&[
        text(&elf),
        "--clock=4MHz",
        "--flood",
        "INT0=2kHz",
        "--front",
        &front,
        "--json",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["vectors"][0]["taken"], 2000);
}

#[test]
fn bad_arguments_are_refused_with_what_would_be_right() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let elf = text(&elf);
    for (arguments, says) in [
        (
            &["--board", "mps3"][..],
            "there is no board `mps3`: the boards are atmega128",
        ),
        (
            &["--flood", "INT9=20kHz"],
            "there is no interrupt line `INT9`: the lines are INT0",
        ),
        (&["--flood", "INT0=0kHz"], "not more than zero"),
        (&["--flood", "INT0=20"], "no unit"),
        (
            &["--flood", "INT0=20kHz", "--flood", "INT0=1kHz"],
            "INT0 has two floods",
        ),
        (&["--flood", "INT0=trace:/nowhere.csv"], "/nowhere.csv"),
        (&["--hardware-limit", "INT0=4kHz"], "has nothing to limit"),
        (&["--hardware-limit", "INT0"], "write LINE=RATE"),
        (&["--counter", "handld"], "no variable `handld`"),
        (&["--counter", "handld"], "handled"),
        (&["--clock", "4"], "no unit"),
        (&["--clock", "-4MHz"], "not more than zero"),
        (&["--for", "0s"], "not more than zero"),
        (&["--for", "1ns"], "less than one cycle"),
        (&["--for", "1e300s"], "too large"),
        (
            &["--front", "/nowhere.elf", "--flood", "INT0=1kHz"],
            "cannot read /nowhere.elf",
        ),
        (&["--front", "x.elf:out=PB9"], "there is no pin `PB9`"),
    ] {
        // In the form NAME=VALUE, a value that begins with a minus is not mistaken for an option.
        let joined: Vec<String> = arguments.chunks(2).map(|pair| pair.join("=")).collect();
        let mut all = vec![elf];
        if !arguments.contains(&"--clock") {
            all.push("--clock=4MHz");
        }
        all.extend(joined.iter().map(String::as_str));
        let message = complaint(&all);
        assert!(message.contains(says), "{arguments:?}: {message}");
    }
}

#[test]
fn the_clock_is_the_firmwares_own_or_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let compile = |clocks: &[&str]| {
        let elf = folder.path().join("app.elf");
        let objects = clocks.iter().enumerate().map(|(part, clock)| {
            let source = folder.path().join(format!("part{part}.c"));
            // The first part calls the second one. Otherwise the linker would drop the second one
            // with its clock.
            let body = match part {
                0 if clocks.len() > 1 => "int other(void); int main(void) { return other(); }",
                0 => "int main(void) { return 0; }",
                _ => "int other(void) { return 0; }",
            };
            std::fs::write(&source, format!("#include <weir/avr.h>\n{body}\n")).unwrap();
            let object = source.with_extension("o");
            let status = std::process::Command::new("avr-gcc")
                .args(["-mmcu=atmega128", "-Os", "-DWEIR_TICK_BITS=16", "-c", clock])
                .arg("-I")
                .arg(here.join("core/include"))
                .arg("-I")
                .arg(here.join("ports/avr/include"))
                .arg(source)
                .arg("-o")
                .arg(&object)
                .status();
            assert!(status.unwrap().success());
            object
        });
        let status = std::process::Command::new("avr-gcc")
            .args(["-mmcu=atmega128", "-Wl,--gc-sections", "-o"])
            .arg(&elf)
            .args(objects.collect::<Vec<_>>())
            .status();
        assert!(status.unwrap().success());
        elf
    };
    let clock_of = |arguments: &[&str]| {
        let output = weir_run(&[&["--json", "--for=1ms"], arguments].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["clock_hz"].as_u64().unwrap()
    };
    let elf = compile(&["-DF_CPU=16000000UL", "-DF_CPU=16000000UL"]);
    assert_eq!(clock_of(&[text(&elf)]), 16_000_000);
    assert_eq!(clock_of(&[text(&elf), "--clock=16MHz"]), 16_000_000);
    let message = complaint(&[text(&elf), "--clock=4MHz"]);
    assert!(
        message.contains("compiled for 16MHz, not for 4MHz"),
        "{message}"
    );
    let elf = compile(&["-DF_CPU=16000000UL", "-DF_CPU=8000000UL"]);
    let message = complaint(&[text(&elf)]);
    assert!(message.contains("in one part"), "{message}");
    let silent = compile(&["-UF_CPU"]);
    let message = complaint(&[text(&silent)]);
    assert!(message.contains("which clock"), "{message}");
    assert_eq!(clock_of(&[text(&silent), "--clock=8MHz"]), 8_000_000);
}

#[test]
fn files_that_are_no_firmware_for_the_chip_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let host = std::env::current_exe().unwrap();
    let (_elf_folder, good) = crate::common::build("counter.c", &[]);
    let good = std::fs::read(good).unwrap();
    let other_chip = folder.path().join("other.elf");
    let source = write("empty.c", b"int main(void) { return 0; }\n");
    let compile = |flags: &[&str], output: &Path| {
        let status = std::process::Command::new("avr-gcc")
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(output)
            .status();
        assert!(status.unwrap().success());
    };
    compile(&["-mmcu=atmega328p"], &other_chip);
    let unlinked = folder.path().join("empty.o");
    compile(&["-mmcu=atmega128", "-c"], &unlinked);
    for (path, says) in [
        (folder.path().join("missing.elf"), "cannot read"),
        (folder.path().to_owned(), "cannot read"),
        (write("empty.elf", b""), "not an ELF file"),
        (
            write(
                "text.elf",
                b"not an ELF file at all, but long enough to look at",
            ),
            "not an ELF file",
        ),
        (write("cut.elf", &good[..good.len() / 4]), "not an ELF file"),
        (host, "the architecture"),
        (other_chip, "is for the atmega328p, not for the atmega128"),
        (unlinked, "not linked"),
    ] {
        let message = complaint(&[text(&path)]);
        assert!(message.contains(says), "{}: {message}", path.display());
    }
}

#[test]
fn no_bytes_in_an_elf_make_the_loader_panic() {
    let (_folder, elf) = crate::common::build("counter.c", &[]);
    let good = std::fs::read(&elf).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.elf");
    // Every byte of the headers is changed, and some of the others.
    let places = (0..180).chain((180..good.len()).step_by(97));
    for place in places {
        for value in [0x00, 0x7f, 0xff] {
            let mut damaged = good.clone();
            damaged[place] = value;
            std::fs::write(&path, damaged).unwrap();
            let _ = weir_emulate::elf::Image::load(&path, &weir_emulate::chip::ATMEGA128);
        }
    }
}

#[test]
fn help_names_the_examples() {
    let shown = String::from_utf8(weir_run(&["--help"]).stdout).unwrap();
    assert!(
        shown.contains("Examples:") && shown.contains("--flood INT0=20kHz"),
        "{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
}

/// A missing file is reported before the simulator is built, which takes minutes.
#[test]
fn inputs_are_checked_before_a_simulator_is_found_or_built() {
    for (arguments, says) in [
        (&["--board", "soc"][..], "cannot read missing.elf"),
        (&["--board", "mps2-an385"], "cannot read missing.elf"),
        (
            &["--board", "soc", "--flood=INT0=1kHz", "--flood=INT0=2kHz"],
            "INT0 has two floods",
        ),
        (
            &["--board", "mps2-an385", "--clock", "1MHz"],
            "has a clock of 125 MHz",
        ),
    ] {
        // In this folder there is neither a simulator nor a script that builds one.
        let output = Command::cargo_bin("weir-run")
            .unwrap()
            .args(["missing.elf"])
            .args(arguments)
            .current_dir("/")
            .env("PATH", "")
            .env_remove("WEIR_SOC")
            .env_remove("WEIR_PEER")
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {message}");
        assert!(message.contains(says), "{arguments:?} {message}");
    }
}
