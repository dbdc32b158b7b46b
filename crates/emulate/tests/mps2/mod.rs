// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of `weir run --board mps2-an385`. Tests whose names begin with `qemu` need QEMU and the
//! compiler for Arm.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;
use tempfile::TempDir;
use weir_emulate::firmware::{Firmware, Toolchain};

/// A compiled guest.
struct Guest {
    _folder: TempDir,
    elf: PathBuf,
}

impl Guest {
    /// Compiles `guest.c` with these macros. Prints a message and returns `None` if the tools are
    /// missing.
    fn new(defines: &[&str]) -> Option<Self> {
        Self::of("tests/mps2/guest.c", defines, &[])
    }

    fn of(source: &str, defines: &[&str], flags: &[&str]) -> Option<Self> {
        if !crate::arm::has_tools() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let elf = folder.path().join("guest.elf");
        let places = "-Wl,--section-start=.vectors=0,-Ttext=0x100,-Tbss=0x20000000,--entry=0x100";
        let firmware = Firmware {
            sources: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(source)],
            defines: defines.iter().map(ToString::to_string).collect(),
            includes: Vec::new(),
            flags: ["-Wl,--no-gc-sections", "-Wl,--nmagic", places]
                .iter()
                .chain(flags)
                .map(ToString::to_string)
                .collect(),
        };
        firmware.build_with(&Toolchain::CORTEX_M3, &elf).unwrap();
        Some(Self {
            _folder: folder,
            elf,
        })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(&self.elf, arguments)
    }

    fn result(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["--json"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn complaint(&self, arguments: &[&str]) -> String {
        complaint(&self.run(arguments))
    }
}

fn weir_run(elf: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("weir-run").unwrap();
    command.env("NO_COLOR", "1").arg(elf);
    command.args(["--board", "mps2-an385"]).args(arguments);
    command
}

fn run(elf: &Path, arguments: &[&str]) -> Output {
    weir_run(elf, arguments).output().unwrap()
}

/// Returns the message of a run that must be rejected with exit code 2.
fn complaint(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    assert!(!message.contains("panicked"), "{message}");
    let message = message.replace('│', " ");
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn vector<'a>(result: &'a Value, name: &str) -> &'a Value {
    let vectors = result["vectors"].as_array().unwrap();
    vectors.iter().find(|used| used["name"] == name).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn qemu_charges_every_instruction_to_somebody() {
    let Some(guest) = Guest::new(&[]) else { return };
    let flags = ["--for=200ms", "--flood=IRQ20=20kHz:phase=10us"];
    let counters = ["--counter=progress", "--counter=handled"];
    let result = guest.result(&[flags, counters].concat());
    let irq = vector(&result, "IRQ20");
    assert_eq!(number(&irq["number"]), 36);
    assert_eq!(number(&irq["taken"]), 4000);
    let each = number(&irq["instructions"]) / 4000;
    // Entry and exit take 12 cycles each, which QEMU does not count.
    assert_eq!(number(&irq["cycles"]), 4000 * (each + 24));
    assert_eq!(number(&irq["longest_cycles"]), each + 24);
    assert_eq!(number(&result["cycles"]), 25_000_000);
    let background = number(&result["background"]["cycles"]);
    assert_eq!(background + 4000 * (each + 24), 25_000_000);
    assert_eq!(number(&result["sleep"]["cycles"]), 0);
    assert_eq!(number(&result["counters"]["handled"]["count"]), 4000);
    // An iteration of the background loop has four instructions: load, add, store, branch.
    let executed = 25_000_000 - 4000 * each;
    let turns = number(&result["counters"]["progress"]["count"]);
    assert!(turns.abs_diff(executed / 4) <= 1, "{turns}");
    assert_eq!(number(&result["lines"][0]["missed"]), 0);

    let shown = guest.run(&flags);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in ["IRQ20", "instructions each", "everything else", "12 cycles"] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let is_narrow = |line: &str| line.chars().count() <= 100;
    assert!(shown.lines().all(is_narrow), "{shown}");
}

#[test]
fn qemu_counts_every_exception_under_two_floods_and_each_run_is_the_same() {
    for defines in [&[][..], &["NESTED"]] {
        let Some(guest) = Guest::new(defines) else {
            return;
        };
        let flags = [
            "--for=6ms",
            "--flood=IRQ20=poisson:3MHz:seed=1",
            "--flood=IRQ21=poisson:4MHz:seed=2",
            "--counter=handled",
            "--counter=handled_too",
        ];
        let result = guest.result(&flags);
        assert_eq!(result, guest.result(&flags), "to the bit");
        for (index, counter) in [(0, "handled"), (1, "handled_too")] {
            let line = &result["lines"][index];
            let name = line["line"].as_str().unwrap();
            let (offered, missed) = (number(&line["offered"]), number(&line["missed"]));
            assert!(missed > 0, "{line}");
            // One request may wait at the beginning, and one at the end.
            let taken = number(&vector(&result, name)["taken"]);
            assert!(taken.abs_diff(offered - missed) <= 1, "{taken} {line}");
            let count = number(&result["counters"][counter]["count"]);
            assert!(taken.abs_diff(count) <= 1, "{taken} {count}");
            assert!(number(&vector(&result, name)["tail_chained"]) > 0);
        }
    }
}

#[test]
fn qemu_tells_sleep_from_work() {
    let Some(guest) = Guest::new(&["SLEEP"]) else {
        return;
    };
    let result = guest.result(&["--for=100ms", "--flood=IRQ20=1kHz:phase=100us"]);
    assert_eq!(number(&result["sleep"]["wakeups"]), 100);
    assert!(number(&result["sleep"]["cycles"]) > 12_490_000);
    let sum = number(&result["sleep"]["cycles"])
        + number(&result["background"]["cycles"])
        + number(&vector(&result, "IRQ20")["cycles"]);
    assert_eq!(sum, number(&result["cycles"]));
}

#[test]
fn qemu_has_a_limit_before_a_line() {
    let Some(guest) = Guest::new(&[]) else { return };
    let result = guest.result(&[
        "--for=100ms",
        "--warmup=50100us",
        "--flood=IRQ20=20kHz",
        "--hardware-limit=IRQ20=4kHz",
    ]);
    assert_eq!(number(&vector(&result, "IRQ20")["taken"]), 400);
}

#[test]
fn qemu_floods_with_frames() {
    let guest = Guest::of(
        "plugin/tests/echo.c",
        &[],
        &["-O2", "-fno-tree-loop-distribute-patterns"],
    );
    let Some(guest) = guest else { return };
    let result = guest.result(&[
        "--for=20ms",
        "--warmup=5ms",
        "--flood=ETH=poisson:20kHz:seed=1",
        "--frame-bytes=200",
    ]);
    let line = &result["lines"][0];
    let offered = number(&line["offered"]);
    assert!((350..450).contains(&offered), "{line}");
    assert_eq!(number(&line["missed"]), 0);
    let taken = number(&vector(&result, "IRQ13")["taken"]);
    assert!(taken > 200 && taken <= offered, "{taken} {offered}");
    for (flags, reason) in [
        (
            ["--frame-bytes=59", "--flood=ETH=1kHz"],
            "60 to 1514 bytes, not 59",
        ),
        (
            ["--for=1ms", "--flood=ETH=level:low=1us:high=1us"],
            "ETH has frames",
        ),
    ] {
        let message = guest.complaint(&flags);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn qemu_ends_with_its_guest() {
    let Some(guest) = Guest::new(&["EXIT"]) else {
        return;
    };
    let result = guest.result(&["--for=1s"]);
    assert_eq!(result["exit"], 7);
    // The loop has 4,000,000 iterations of six or seven instructions. The warm-up of 50 ms is not
    // included.
    let seconds = result["seconds"].as_f64().unwrap();
    assert!((0.1..0.3).contains(&seconds), "{seconds}");
    let result = guest.result(&["--for=1ms", "--warmup=0.008us"]);
    assert_eq!(
        (&result["exit"], &result["serial"]),
        (&Value::Null, &"hello\n".into())
    );

    for (define, reason) in [
        ("EXIT_EARLY", "ended the run with 7"),
        ("RESET", "before the measurement began"),
        ("CRASH", "locked up near"),
    ] {
        let guest = Guest::new(&[define]).unwrap();
        let message = guest.complaint(&["--for=1ms"]);
        assert!(message.contains(reason), "{define}: {message}");
    }
}

#[test]
fn qemu_refuses_firmware_for_other_boards() {
    let Some(guest) = Guest::new(&[]) else { return };
    let refused = |source: &str, flags: &[&str]| {
        Guest::of(source, &[], flags)
            .unwrap()
            .complaint(&["--for=1ms"])
    };
    for (flag, reason) in [
        ("-mcpu=cortex-m4", "is for a Cortex-M4 or M7"),
        ("-mcpu=cortex-m33", "is for a Cortex-M23 or newer"),
        (
            "-Wl,--section-start=.vectors=0x1000",
            "no vector table at address 0",
        ),
        ("-Wl,-Tbss=0x30000000", "no memory for a segment"),
    ] {
        let message = refused("tests/mps2/guest.c", &[flag]);
        assert!(message.contains(reason), "{flag}: {message}");
    }
    // The instruction set of a Cortex-M0 is a subset of that of a Cortex-M3.
    let small = Guest::of("tests/mps2/guest.c", &[], &["-mcpu=cortex-m0"]).unwrap();
    assert!(small.run(&["--for=1ms"]).status.success());

    let whole = fs::read(&guest.elf).unwrap();
    for length in [0, 3, 40, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&guest.elf, &whole[..length]).unwrap();
        guest.complaint(&["--for=1ms"]);
    }
    fs::write(&guest.elf, &whole).unwrap();
    for (flags, reason) in [
        (&["--clock=25MHz"][..], "125 MHz, and no other"),
        (
            &["--flood=IRQ32=1kHz"],
            "the lines are IRQ0 to IRQ31 and ETH",
        ),
        (
            &["--flood=INT0=1kHz"],
            "the lines are IRQ0 to IRQ31 and ETH",
        ),
        (&["--flood=IRQ1=poisson:1kHz"], "`seed=` is missing"),
        (&["--counter=progres"], "no variable `progres`"),
        (&["--front=x.elf"], "no second chip"),
    ] {
        let message = guest.complaint(flags);
        assert!(message.contains(reason), "{flags:?}: {message}");
    }
}

/// Writes a program with QEMU's name.
fn pretended(folder: &Path, script: &str) {
    let program = folder.join("qemu-system-arm");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn qemu_that_is_missing_or_fails_is_told() {
    let Some(guest) = Guest::new(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let complain = |path: &Path| {
        let mut command = weir_run(&guest.elf, &["--for=1ms"]);
        complaint(&command.env("PATH", path).output().unwrap())
    };
    let message = complain(folder.path());
    assert!(message.contains("is not installed"), "{message}");
    const NEW: &str =
        "if [ \"$1\" = --version ]; then echo QEMU emulator version 10.0.2; exit 0; fi;";
    for (script, reason) in [
        ("echo QEMU emulator version 6.2.0", "too old"),
        ("exit 3", "too old"),
        (
            &format!("{NEW} kill -9 $$"),
            "ended from outside, by signal 9",
        ),
        (
            &format!("{NEW} echo qemu: terminating on signal 15 from pid 1 >&2"),
            "ended from outside, by signal 15",
        ),
        (
            &format!("{NEW} echo '-plugin: invalid option' >&2; exit 1"),
            "-plugin: invalid option",
        ),
        (&format!("{NEW} exit 0"), "said nothing"),
    ] {
        pretended(folder.path(), script);
        let message = complain(folder.path());
        assert!(message.contains(reason), "{script}: {message}");
    }
    let mut command = weir_run(&guest.elf, &["--for=1ms"]);
    let message = complaint(&command.env("WEIR_PEER", "/nowhere.so").output().unwrap());
    assert!(message.contains("/nowhere.so"), "{message}");
}
