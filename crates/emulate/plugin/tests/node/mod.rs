// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the peer with a guest that has an operating system and a TCP/IP stack: the node of
//! behnke2021.
mod generated;
mod ram;
mod real;
mod stages;
mod tone;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weir_peer::{ClientReport, Report};

use crate::arm::skipped::skipped;

/// The node with a folder for the files of its runs.
struct Node {
    folder: TempDir,
    elf: PathBuf,
}

/// Returns the path of a file of this repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

impl Node {
    /// Builds the node. Prints a message and returns `None` if the tools are missing.
    fn new() -> Option<Self> {
        Self::built(&[])
    }

    /// Builds the node with these options of the compiler.
    fn built(options: &[&str]) -> Option<Self> {
        Self::with_tools(|_| {
            let mut build = Command::new(repository("boards/mps2-an385/node/build.sh"));
            build.args(options);
            build
        })
    }

    /// Runs a build command that prints the path of its ELF file. The command may write into the
    /// given folder.
    fn with_tools(build: impl FnOnce(&Path) -> Command) -> Option<Self> {
        if !crate::arm::has_tools() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let output = build(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(Self {
            folder,
            elf: PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command that runs QEMU with the node and these options.
    fn qemu(&self, options: &str) -> Command {
        let arguments: String = options
            .split_whitespace()
            .fold(String::new(), |text, option| text + ",arg=" + option);
        let mut command = Command::new("timeout");
        command
            .args(["120", "qemu-system-arm", "-M", "mps2-an385"])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-seed", "1", "-kernel"])
            .arg(&self.elf)
            .arg("-chardev")
            .arg(format!("file,id=out,path={}", self.path("out").display()))
            .arg("-semihosting-config")
            .arg(format!(
                "enable=on,target=native,chardev=out,arg=node{arguments}"
            ));
        command
    }

    /// Returns the command that runs QEMU with the node and a peer with this plan.
    fn qemu_with_peer(&self, plan: &str, options: &str) -> Command {
        fs::write(self.path("plan"), plan).unwrap();
        // Cargo builds the plugin for the tests and places it beside this program.
        let plugin = std::env::current_exe()
            .unwrap()
            .with_file_name("libweir_peer.so");
        let mut command = self.qemu(options);
        command
            .args(["-icount", "shift=3,sleep=off"])
            .args(["-netdev", "hubport,id=net,hubid=0"])
            .args(["-net", "nic,netdev=net,model=lan9118"])
            .arg("-plugin")
            .arg(format!(
                "{},plan={},report={}",
                plugin.display(),
                self.path("plan").display(),
                self.path("report").display()
            ));
        command
    }

    fn try_run(&self, plan: &str, options: &str) -> Output {
        self.qemu_with_peer(plan, options).output().unwrap()
    }

    /// Returns the peer's report and the node's output.
    fn run(&self, plan: &str, options: &str) -> (Report, String) {
        let output = self.try_run(plan, options);
        assert!(output.status.success(), "{output:?}");
        let report = fs::read_to_string(self.path("report")).unwrap();
        (
            serde_json::from_str(&report).unwrap(),
            fs::read_to_string(self.path("out")).unwrap(),
        )
    }

    /// Returns the number of steps of the critical task in one second, and the number of interrupts
    /// meanwhile.
    fn steps(&self, flood: &str, options: &str) -> (u64, u64) {
        let plan = format!(r#"{{"end": "9s"{flood}}}"#);
        let options = format!("address=10.0.0.2 task=utilisation windows=1 {options}");
        let printed = self.run(&plan, &options).1;
        let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let count = |name: &str| printed["windows"][0][name].as_u64().unwrap();
        (count("steps"), count("busy_interrupts"))
    }
}

const STATIC: &str = "address=10.0.0.2";

fn failures(client: &ClientReport) -> Vec<&str> {
    let failures = client
        .requests
        .iter()
        .map(|request| request.failure.as_deref());
    failures.flatten().collect()
}

/// Returns the latencies of a client. All its requests must have been answered.
fn latencies(client: &ClientReport) -> Vec<u64> {
    assert_eq!(failures(client), [""; 0]);
    let latencies = client.requests.iter().map(|request| request.latency_ns);
    latencies.map(Option::unwrap).collect()
}

#[test]
fn the_node_answers_everybody_and_the_same_in_each_run() {
    let Some(node) = Node::new() else { return };
    let plan = r#"{"end": "400ms", "clients": [
        {"ask": {"udp": 32}, "pattern": "100Hz", "count": 10, "begin": "100ms"},
        {"ask": "tcp", "pattern": "100Hz:phase=1ms", "count": 10, "begin": "100ms"},
        {"ask": {"http": "/"}, "pattern": "100Hz:phase=2ms", "count": 10, "begin": "100ms"},
        {"ask": {"modbus": {"first": 0, "count": 10}}, "pattern": "100Hz:phase=4ms", "count": 10, "begin": "100ms"},
        {"ask": {"modbus": {"first": 60, "count": 10}}, "pattern": "100Hz", "count": 1, "begin": "300ms"},
        {"ask": {"http": "/none"}, "pattern": "100Hz", "count": 1, "begin": "300ms"},
        {"ask": "tcp", "port": 81, "pattern": "100Hz", "count": 1, "begin": "300ms"}],
        "flood": {"pattern": "poisson:2kHz", "begin": "100ms", "end": "300ms", "frames": {"udp": 5000}}}"#;
    let (report, _) = node.run(plan, STATIC);
    assert!(report.planned_end);
    assert_eq!(report, node.run(plan, STATIC).0);
    // The wire takes 72 bytes of 80 ns in each direction.
    for client in &report.clients[..4] {
        let latencies = latencies(client);
        assert_eq!(latencies.len(), 10);
        let most = latencies.iter().max().unwrap();
        assert!(
            latencies.iter().all(|each| *each > 2 * 5760),
            "{latencies:?}"
        );
        assert!(*most < 20_000_000, "{latencies:?}");
    }
    for (client, reason) in
        report.clients[4..]
            .iter()
            .zip(["exception 2", "404", "refuses or resets"])
    {
        let failures = failures(client);
        assert_eq!(failures.len(), 1);
        assert!(failures[0].contains(reason), "{failures:?}");
    }
}

#[test]
fn an_address_is_given_or_never_answered() {
    let Some(node) = Node::new() else { return };
    // lwIP checks for ten seconds whether another host has the address.
    let plan = |answers: bool| {
        format!(
            r#"{{"end": "12s", "dhcp": {{"answers": {answers}}},
            "clients": [{{"ask": {{"udp": 32}}, "pattern": "10Hz", "count": 5, "begin": "11s", "patience": "100ms"}}]}}"#
        )
    };
    let (report, _) = node.run(&plan(true), "address=dhcp");
    let dhcp = report.dhcp.unwrap();
    assert_eq!((dhcp.discovers, dhcp.requests), (1, 1));
    assert!(dhcp.acknowledged_ns.unwrap() < 1_000_000_000);
    assert_eq!(latencies(&report.clients[0]).len(), 5);

    let (report, _) = node.run(&plan(false), "address=dhcp");
    let dhcp = report.dhcp.unwrap();
    assert!(dhcp.discovers >= 2, "{dhcp:?}");
    assert_eq!((dhcp.requests, dhcp.acknowledged_ns), (0, None));
    assert_eq!(failures(&report.clients[0]), ["no answer"; 5]);
    assert!(report.planned_end);
}

#[test]
fn neither_broken_frames_nor_a_peer_that_never_reads_stop_the_node() {
    let Some(node) = Node::new() else { return };
    for driver in ["masked", "packet"] {
        for frames in ["malformed", "truncated", "oversized"] {
            let plan = format!(
                r#"{{"end": "900ms",
                "flood": {{"pattern": "poisson:20kHz", "begin": "100ms", "end": "300ms", "frames": "{frames}"}},
                "clients": [
                {{"ask": {{"modbus": {{"first": 0, "count": 60}}}}, "reads": false, "patience": "5ms", "pattern": "100Hz", "count": 50, "begin": "50ms"}},
                {{"ask": {{"http": "/"}}, "pattern": "100Hz", "count": 10, "begin": "350ms"}}]}}"#
            );
            let (report, printed) = node.run(&plan, &format!("{STATIC} driver={driver}"));
            assert!(report.planned_end, "{printed}");
            let flood = report.flood.unwrap();
            assert!(flood.sent > 3500, "{flood:?}");
            assert_eq!(failures(&report.clients[0]), ["no answer"; 50]);
            assert_eq!(latencies(&report.clients[1]).len(), 10);
        }
    }
}

#[test]
fn a_masked_interrupt_costs_a_task_above_nothing_and_others_one_each() {
    let Some(node) = Node::new() else { return };
    let flood = r#", "flood": {"pattern": "poisson:10kHz", "begin": "900ms", "end": "9s", "frames": {"udp": 5000}}"#;
    let alone = node.steps("", "urgency=above").0;
    let masked = node.steps(flood, "urgency=above driver=masked").0;
    assert!(masked * 1000 >= alone * 999, "{masked} of {alone}");
    let (packet, interrupts) = node.steps(flood, "urgency=above driver=packet");
    // A step takes 547 instructions, and an interrupt about 100 to 300.
    let cost = (alone - packet) * 547 / interrupts;
    assert!((50..400).contains(&cost), "{cost} instructions");
    let below = node.steps(flood, "urgency=below driver=masked").0;
    assert!(below < packet, "{below} and {packet}");
}

#[test]
fn what_lwip_must_not_do_beside_weir_does_not_compile() {
    if !crate::arm::has_tools() {
        return;
    }
    for (option, says) in [
        ("-DTCP_QUEUE_OOSEQ=1", "TCP_QUEUE_OOSEQ to 0"),
        (
            "-DLWIP_NETCONN_SEM_PER_THREAD=1",
            "define WEIR_FREERTOS_POINTER as 1",
        ),
    ] {
        let mut build = Command::new(repository("boards/mps2-an385/node/build.sh"));
        let output = build.args(["-DNODE_WEIR", option]).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{option}");
        assert!(printed.contains(says), "{option}: {printed}");
    }
}

#[test]
fn what_the_node_cannot_do_is_refused() {
    let Some(node) = Node::new() else { return };
    for (options, reason) in [
        ("drvier=masked", "no option; they are address=dhcp"),
        ("driver=both", "it is to be masked or packet or demux"),
        ("driver=demux", "build.sh -DNODE_WEIR"),
        ("limit-hz=5", "build.sh -DNODE_WEIR"),
        ("windows=1000", "a number from 0 to 128"),
        ("address=10.0.0", "as in 10.0.0.2"),
        ("layout=p0 urgency=above task=lateness", "nothing is above"),
        ("busy-ms=200", "interval-ms at most"),
        ("change-ms=5", "driver=demux server=on"),
    ] {
        let output = node.try_run(r#"{"end": "1s"}"#, options);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let printed = fs::read_to_string(node.path("out")).unwrap();
        assert!(printed.contains(reason), "{options}: {printed}");
    }
}
