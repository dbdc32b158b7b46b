// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin in QEMU, with a guest (`echo.c`) that answers ARP and echo requests.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weir_peer::Report;

/// A guest with a folder for the files of its runs.
struct Guest {
    folder: TempDir,
}

impl Guest {
    /// Compiles the guest. Prints a message and returns `None` if the tools are missing.
    fn new() -> Option<Self> {
        if !crate::arm::has_tools() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new("arm-none-eabi-gcc")
            .args(["-mcpu=cortex-m3", "-mthumb", "-std=c11", "-O2", "-Wall"])
            .args(["-Wextra", "-Werror", "-ffreestanding", "-nostdlib"])
            .arg("-fno-tree-loop-distribute-patterns")
            .arg("-Wl,--section-start=.vectors=0,-Ttext=0x100,-Tbss=0x20000000,--entry=0x100")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/echo.c"))
            .arg("-o")
            .arg(folder.path().join("echo.elf"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(Self { folder })
    }

    fn report_path(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// Runs the guest, which executes its loop `work` times for each frame.
    fn try_run(&self, plan: &str, work: u32, network: &[&str]) -> Output {
        let plan_path = self.folder.path().join("plan");
        fs::write(&plan_path, plan).unwrap();
        // Cargo builds the plugin for the tests and places it beside this program.
        let plugin = std::env::current_exe()
            .unwrap()
            .with_file_name("libweir_peer.so");
        Command::new("timeout")
            .args(["120", "qemu-system-arm", "-M", "mps2-an385"])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-icount", "shift=3,sleep=off", "-seed", "1"])
            .args(network)
            .arg("-device")
            .arg(format!("loader,addr=0x20100000,data={work},data-len=4"))
            .arg("-kernel")
            .arg(self.folder.path().join("echo.elf"))
            .arg("-plugin")
            .arg(format!(
                "{},plan={},report={}",
                plugin.display(),
                plan_path.display(),
                self.report_path().display()
            ))
            .output()
            .unwrap()
    }

    fn run(&self, plan: &str, work: u32) -> Report {
        let output = self.try_run(plan, work, &HUB);
        assert!(output.status.success(), "{output:?}");
        let report = fs::read_to_string(self.report_path()).unwrap();
        fs::remove_file(self.report_path()).unwrap();
        serde_json::from_str(&report).unwrap()
    }
}

const HUB: [&str; 4] = [
    "-netdev",
    "hubport,id=net,hubid=0",
    "-net",
    "nic,netdev=net,model=lan9118",
];

#[test]
fn an_idle_guest_answers_always_after_the_same_time() {
    let Some(guest) = Guest::new() else { return };
    let plan = r#"{"end": "30ms", "pings": {"pattern": "1kHz", "count": 20, "begin": "1ms"}}"#;
    let report = guest.run(plan, 0);
    assert!(report.planned_end);
    assert_eq!((report.from_guest, report.to_guest), (21, 21));
    assert_eq!(report.to_guest_lost, 0);
    let trips: Vec<u64> = report
        .pings
        .iter()
        .map(|ping| ping.round_trip_ns.unwrap())
        .collect();
    // The first one includes ARP. Two frames of 110 bytes take 17.6 us on the wire.
    assert!(trips[1..].iter().all(|trip| *trip == trips[1]), "{trips:?}");
    assert!((17_600..30_000).contains(&trips[1]), "{trips:?}");
    assert!(trips[0] > trips[1]);
    // An iteration of the guest's loop has at least two instructions of 8 ns.
    let busy = guest.run(plan, 1000).pings[1].round_trip_ns.unwrap();
    assert!(busy >= trips[1] + 16_000, "{busy}");
}

#[test]
fn a_flood_is_counted_and_the_same_in_each_run() {
    let Some(guest) = Guest::new() else { return };
    let plan = r#"{"end": "40ms",
        "pings": {"pattern": "200Hz", "count": 4, "begin": "1ms"},
        "flood": {"pattern": "poisson:120kHz", "begin": "5ms", "end": "25ms"}}"#;
    let slow = guest.run(plan, 1000);
    assert_eq!(slow, guest.run(plan, 1000));
    // An action at a time that is not a multiple of an instruction's time waits for the next
    // instruction.
    assert!(slow.late_ns < 8, "{}", slow.late_ns);
    let flood = slow.flood.unwrap();
    assert!((2200..2600).contains(&flood.sent), "{flood:?}");
    assert!(flood.lost > 0, "{flood:?}");
    assert_eq!(flood.sent, flood.lost + flood.answered);

    let fast = guest.run(plan, 0).flood.unwrap();
    assert_eq!(
        (fast.sent, fast.lost, fast.answered),
        (flood.sent, 0, flood.sent)
    );
}

#[test]
fn what_is_missing_is_said() {
    let Some(guest) = Guest::new() else { return };
    for (plan, network, reason) in [
        (r#"{"end": "1ms"}"#, &[][..], "QEMU has no netdev `net`"),
        (
            r#"{"end": "1ms"}"#,
            &["-netdev", "user,id=net", "-net", "nic,netdev=net"][..],
            "no port of a hub",
        ),
        (
            r#"{"end": "1ms"}"#,
            &["-netdev", "hubport,id=net,hubid=0"][..],
            "no card is on",
        ),
        (r#"{"end": "1"}"#, &HUB[..], "for example 250cycles"),
    ] {
        let output = guest.try_run(plan, 0, network);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(reason), "{error}");
        assert!(!guest.report_path().exists());
    }
}
