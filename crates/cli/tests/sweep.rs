// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir sweep`: the table, its parts, interruption, and rejected input.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{Printed, run, weir};
use tempfile::TempDir;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flight-controller/system.toml")
}

/// Runs `weir sweep` on the example with the output `out`.
fn sweep(out: &Path, arguments: &[&str]) -> Printed {
    run(weir()
        .arg("sweep")
        .arg(example())
        .arg("--out")
        .arg(out)
        .args(arguments))
}

/// Returns the rows of a table, by column name.
fn rows(path: &Path) -> Vec<std::collections::HashMap<String, String>> {
    let mut table = csv::Reader::from_path(path).unwrap();
    table.deserialize().map(Result::unwrap).collect()
}

#[test]
fn a_row_stands_for_each_combination_the_last_parameter_changing_fastest() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.csv");
    let printed = sweep(
        &out,
        &[
            "--vary",
            "flood.ignition=none,20kHz..100kHz:80kHz",
            "--vary",
            "run=with,without",
            "--duration",
            "100ms",
        ],
    );
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(printed.out, format!("6 rows are in {}\n", out.display()));
    let rows = rows(&out);
    let of = |column: &str| {
        rows.iter()
            .map(|row| row[column].as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("flood.ignition"),
        ["none", "none", "20kHz", "20kHz", "100kHz", "100kHz"]
    );
    assert_eq!(of("run")[..2], ["with", "without"]);
    assert_eq!(of("error"), [""; 6]);
    assert_eq!(
        of("source.ignition.arrived")[3..],
        ["2000", "10000", "10000"]
    );
    let missed = of("receiver.attitude.missed");
    assert_eq!(missed[..5], ["0"; 5]);
    assert_ne!(missed[5], "0");
    // No job ends there, and no bound is given.
    assert_eq!(of("receiver.attitude.response_max_s")[5], "");
    assert_eq!(of("receiver.attitude.bound_s")[5], "");
    let number = |column: &str, row: usize| of(column)[row].parse::<f64>().unwrap();
    let response = number("receiver.attitude.response_max_s", 4);
    assert!(response > 0.0002 && response <= number("receiver.attitude.bound_s", 4));
}

#[test]
fn a_key_that_no_file_has_is_refused_before_any_run() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.csv");
    for key in [
        "cpu.clok",
        "source.ignition.limit.rat",
        "receiver.attitude.wect",
    ] {
        let printed = sweep(&out, &["--vary", &format!("{key}=1MHz,2MHz")]);
        assert_eq!(printed.code, Some(2), "{key}: {}", printed.out);
        assert!(printed.err.contains("cannot be varied"), "{}", printed.err);
        assert!(printed.err.contains("did you mean"), "{}", printed.err);
        assert!(!out.exists());
    }
}

#[test]
fn keys_of_the_file_are_varied_and_what_is_no_system_says_so() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.csv");
    let printed = sweep(
        &out,
        &[
            "--vary",
            "source.ignition.limit.rate=500Hz,1kHz,1MHz",
            "--flood",
            "ignition",
            "--duration",
            "1s",
            "--seeds",
            "1,2",
        ],
    );
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(
        printed
            .out
            .contains("2 of those that were run now are no systems")
    );
    let rows = rows(&out);
    let served: Vec<&str> = rows
        .iter()
        .map(|row| row["source.ignition.served"].as_str())
        .collect();
    assert_eq!(served, ["500", "500", "1000", "1000", "", ""]);
    assert!(rows[4]["error"].contains("1us"), "{}", rows[4]["error"]);
}

#[test]
fn a_combination_that_is_no_system_is_a_row_wherever_it_stands() {
    for (rates, served) in [
        ("1MHz,500Hz", &["", "50"][..]),
        ("500Hz,1MHz", &["50", ""]),
        ("1MHz,none", &["", ""]),
    ] {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("out.csv");
        let vary = format!("source.ignition.limit.rate={rates}");
        let arguments = [
            "--vary",
            &vary,
            "--flood",
            "ignition",
            "--duration",
            "100ms",
        ];
        let printed = sweep(&out, &arguments);
        assert_eq!(printed.code, Some(0), "{rates}: {}", printed.err);
        let rows = rows(&out);
        let column = |name: &str| {
            rows.iter()
                .map(|row| row[name].as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(column("source.ignition.served"), served);
        for (error, served) in column("error").iter().zip(served) {
            assert_eq!(error.is_empty(), !served.is_empty(), "{rates}: {error}");
        }
    }
}

const MANY: [&str; 6] = [
    "--vary",
    "flood.ignition=poisson:{1kHz..100kHz:1kHz}",
    "--seeds",
    "1..4",
    "--duration",
    "200ms",
];

#[test]
fn the_table_does_not_depend_on_the_number_of_threads() {
    let folder = TempDir::new().unwrap();
    let table = |jobs: &str| {
        let out = folder.path().join(format!("{jobs}.csv"));
        let arguments = [&MANY[..], &["--jobs", jobs, "--shard", "1/8"]].concat();
        assert_eq!(sweep(&out, &arguments).code, Some(0));
        std::fs::read(out).unwrap()
    };
    assert_eq!(table("1"), table("2"));
}

/// Starts a part of the sweep.
fn start(out: &Path, shard: &str) -> Child {
    std::process::Command::new(assert_cmd::cargo::cargo_bin("weir"))
        .arg("sweep")
        .arg(example())
        .args(MANY)
        .args(["--jobs", "1", "--shard", shard])
        .arg("--out")
        .arg(out)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts a part and kills it by SIGKILL, which it cannot handle, when some of its rows have been
/// written.
fn kill_midway(out: &Path, shard: &str) {
    let partial = out.with_extension("csv.partial");
    for _ in 0..20 {
        let mut child = start(out, shard);
        while child.try_wait().unwrap().is_none() {
            let written = std::fs::read(&partial).unwrap_or_default();
            if written.iter().filter(|&&byte| byte == b'\n').count() > 10 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if partial.exists() {
            assert!(!out.exists());
            return;
        }
        // The part finished before it could be killed.
        std::fs::remove_file(out).unwrap();
    }
    panic!("never killed in its midst");
}

#[test]
fn parts_of_which_one_was_killed_and_resumed_are_together_what_one_process_writes() {
    let folder = TempDir::new().unwrap();
    let whole = folder.path().join("whole.csv");
    assert_eq!(sweep(&whole, &MANY).code, Some(0));
    let part = |index: usize| folder.path().join(format!("part{index}.csv"));

    let mut others: Vec<Child> = [1, 2, 4]
        .map(|index| start(&part(index), &format!("{index}/4")))
        .into();
    kill_midway(&part(3), "3/4");
    for other in &mut others {
        assert!(other.wait().unwrap().success());
    }
    // The file is cut as if the process had died within a line.
    let partial = part(3).with_extension("csv.partial");
    let mut torn = std::fs::read(&partial).unwrap();
    let lines = torn.iter().filter(|&&byte| byte == b'\n').count();
    torn.extend(b"poisson:5");
    std::fs::write(&partial, torn).unwrap();
    let arguments = [&MANY[..], &["--shard", "3/4"]].concat();
    let printed = sweep(&part(3), &arguments);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let there = format!("; {lines} were there already");
    assert!(printed.out.contains(&there), "{} {there}", printed.out);

    let parts: Vec<u8> = (1..=4)
        .flat_map(|index| std::fs::read(part(index)).unwrap())
        .collect();
    assert!(parts == std::fs::read(whole).unwrap());
    // No other files are left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
}

/// A limit on the size of files makes a write fail in the middle, as a full disk does.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_the_rows_that_it_has() {
    let folder = TempDir::new().unwrap();
    let (out, whole) = (
        folder.path().join("out.csv"),
        folder.path().join("whole.csv"),
    );
    assert_eq!(sweep(&whole, &MANY).code, Some(0));
    let mut command = assert_cmd::Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
        .arg(assert_cmd::cargo::cargo_bin("weir"))
        .arg("sweep")
        .arg(example())
        .args(MANY)
        .arg("--out")
        .arg(&out);
    let printed = run(&mut command);
    assert_eq!(printed.code, Some(2), "{}", printed.out);
    assert!(printed.err.contains("cannot write"), "{}", printed.err);
    assert!(!out.exists());
    let printed = sweep(&out, &MANY);
    assert!(
        printed.out.contains("were there already"),
        "{}",
        printed.out
    );
    assert!(std::fs::read(out).unwrap() == std::fs::read(whole).unwrap());
}

#[test]
fn another_sweep_is_not_mixed_in() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.csv");
    kill_midway(&out, "1/1");
    let before = std::fs::read(out.with_extension("csv.partial")).unwrap();
    for other in [&["--shard", "1/2"][..], &["--costs", "uniform:50%"]] {
        let printed = sweep(&out, &[&MANY[..], other].concat());
        assert_eq!(printed.code, Some(2));
        let said = printed.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("another sweep"), "{said}");
    }
    let after = std::fs::read(out.with_extension("csv.partial")).unwrap();
    assert!(before == after && !out.exists());
}

#[test]
fn what_cannot_be_varied_is_refused_before_anything_is_written() {
    for (arguments, says) in [
        (&["--vary", "speed=1"][..], "`speed` cannot be varied"),
        (&["--vary", "seed"], "write a parameter and its values"),
        (&["--vary", "seed=one"], "a seed is a whole number"),
        (&["--vary", "seed=5..1"], "has no values"),
        (
            &["--vary", "seed=1", "--seeds", "1..4"],
            "`seed` is varied twice",
        ),
        (
            &["--vary", "defer=exact,never"],
            "`never` is none of exact, waiting",
        ),
        (&["--vary", "run=half"], "there is no such run"),
        (&["--vary", "flood.gsp=1kHz"], "did you mean `gps`?"),
        (
            &["--vary", "flood.gps=1kHz,fast"],
            "there is no pattern `fast`",
        ),
        (&["--vary", "source.gsp.max_work=1"], "did you mean `gps`?"),
        (
            &["--vary", "source.gps.vector.of=1"],
            "something that has no keys",
        ),
        (&["--shard", "0/4"], "write which part of how many"),
        (&["--jobs", "0"], "--jobs"),
    ] {
        let folder = TempDir::new().unwrap();
        let printed = sweep(&folder.path().join("out.csv"), arguments);
        assert_eq!(printed.code, Some(2), "{arguments:?}: {}", printed.out);
        let words = printed.err.split_whitespace().filter(|word| *word != "│");
        let said = words.collect::<Vec<_>>().join(" ");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_table_that_cannot_be_written_is_said() {
    let folder = TempDir::new().unwrap();
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "a file").unwrap();
    for out in [blocked.join("out.csv"), folder.path().to_owned()] {
        let printed = sweep(&out, &["--duration", "1ms"]);
        assert_eq!(printed.code, Some(2), "{}", printed.out);
        assert!(printed.err.contains("cannot write"), "{}", printed.err);
    }
}

/// A part prepares only its own rows. There may be 10^12 other rows.
#[cfg(target_os = "linux")]
#[test]
fn a_part_needs_no_memory_for_the_rows_of_others() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out.csv");
    let printed = run(assert_cmd::Command::new("sh")
        .args(["-c", "ulimit -d 65536 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_weir"))
        .arg("sweep")
        .arg(example())
        .args([
            "--vary",
            "seed=1..1000000",
            "--vary",
            "duration=1us..1s:1us",
        ])
        .args(["--shard", "7/4000000000", "--jobs", "1", "--out"])
        .arg(&out));
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(printed.out, format!("250 rows are in {}\n", out.display()));
}
