// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine for a test on which `weir linux` is run as users run it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use weir_linux::sched::{self, SchedPolicy};
use weir_linux::settings::NetDevice;
use weir_linux::threads::{self, Work};

use crate::ground::{self, Ground, Need, Offload};

/// Longest wait for anything. On a busy machine, too, it comes sooner.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const FILES: [&str; 3] = ["threaded", "gro_flush_timeout", "napi_defer_hard_irqs"];

/// A ground with an interface, a system file for the interface, and a folder for the state of runs.
pub struct Machine {
    pub ground: Ground,
    pub folder: TempDir,
    /// Arguments of `run` after the system file.
    pub arguments: Vec<&'static str>,
}

/// The settings that a run may change, with their values.
#[derive(Debug, PartialEq)]
pub struct Settings {
    pub files: Vec<String>,
    pub napi: usize,
}

impl Machine {
    /// Creates the machine. `None` where this machine does not allow what the test needs.
    pub fn new() -> Option<Self> {
        Self::new_with(&[Need::Namespaces, Need::RealTime])
    }

    /// Creates the machine for a test with more needs.
    pub fn new_with(needs: &[Need]) -> Option<Self> {
        let ground = ground::begin(needs)?;
        ground.receiver.offload(Offload::Receive, true);
        let folder = tempfile::tempdir().unwrap();
        let machine = Self {
            ground,
            folder,
            arguments: Vec::new(),
        };
        machine.write(&machine.ground.receiver.interface);
        Some(machine)
    }

    /// Writes the system file for this interface.
    pub fn write(&self, interface: &str) {
        let text = SYSTEM.replace("INTERFACE", interface);
        fs::write(self.file(), text).unwrap();
    }

    /// Replaces the section `[linux]` of the system file.
    pub fn linux(&self, section: &str) {
        self.write(&self.ground.receiver.interface);
        let text = fs::read_to_string(self.file()).unwrap();
        fs::write(self.file(), format!("{text}[linux]\n{section}\n")).unwrap();
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("system.toml")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn weir(&self, command: &str) -> Command {
        let mut weir = self
            .ground
            .receiver
            .command(env!("CARGO_BIN_EXE_weir-linux"));
        weir.arg(command).stdin(Stdio::null());
        if command != "plan" {
            weir.arg("--state").arg(self.state());
        }
        if matches!(command, "plan" | "run") {
            weir.arg(self.file());
        }
        if command == "run" {
            weir.args(&self.arguments);
        }
        weir
    }

    pub fn settings(&self) -> Settings {
        let name = &self.ground.receiver.interface;
        let path = self.ground.receiver.path();
        let open = NetDevice::find(name, Some(&path)).unwrap().open().unwrap();
        let read = |file: &&str| open.read(file).unwrap().trim().to_owned();
        Settings {
            files: FILES.iter().map(read).collect(),
            napi: self.napi().len(),
        }
    }

    pub fn napi(&self) -> Vec<SchedPolicy> {
        let name = &self.ground.receiver.interface;
        policies(|work| matches!(work, Work::Napi { interface, .. } if interface == name))
    }

    /// The output of `status --json`.
    pub fn status(&self) -> Value {
        let output = self.weir("status").arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The status of the only run.
    pub fn run_status(&self) -> Value {
        self.status()["systems"][0]["status"].clone()
    }

    /// Starts a run, and waits until it is ready.
    pub fn run(&self) -> Child {
        let child = self
            .weir("run")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the run is ready", || {
            let status = self.status();
            status["systems"][0]["running"] == true
                && status["systems"][0]["status"]["changes"]
                    .as_u64()
                    .is_some_and(|changes| changes > 0)
        });
        child
    }

    /// Ends a run by a signal, and checks that all settings have the values `before`. Returns what
    /// the run printed.
    pub fn end(&self, run: Child, how: Signal, before: &Settings) -> String {
        signal(&run, how);
        let ended = run.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", printed(&ended));
        assert_eq!(self.settings(), *before);
        assert!(self.is_clean());
        printed(&ended)
    }

    /// Whether the state folder is empty. It is not while a run keeps a journal of the settings
    /// that it changes.
    pub fn is_clean(&self) -> bool {
        fs::read_dir(self.state()).unwrap().next().is_none()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // After a failed test, this restores the settings of the machine, which the other tests
        // share.
        if std::thread::panicking() {
            let _ = self.weir("stop").output();
        }
    }
}

const SYSTEM: &str = r#"
schema = 1
name = "test"
[cpu]
clock = "1000MHz"
interrupts = "flat"
longest_instruction = "100ns"
costs = { off = { request_served = "2us" } }
[[source]]
name = "net"
vector = { name = "net", order = 1 }
handler = "2us"
interface = "INTERFACE"
moderation = { absolute = "1ms" }
[[receiver]]
name = "control"
urgency = 3
period = "10ms"
wcet = "1ms"
[[receiver]]
name = "server"
urgency = 2
[[flow]]
name = "requests"
source = "net"
receiver = "server"
selector = { protocol = "udp", port = 9 }
top_half = "1us"
bottom_half = "4us"
"#;

pub fn policies(wanted: impl Fn(&Work) -> bool) -> Vec<SchedPolicy> {
    let found = threads::which(wanted).unwrap();
    found
        .iter()
        .filter_map(|thread| match sched::get(thread.thread.tid) {
            // The thread has ended since it was found.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            policy => Some(policy.unwrap()),
        })
        .collect()
}

/// Numbers of the loaded BPF programs whose names begin with one of `beginnings`. The kernel
/// unloads programs late, so those of an earlier test may disappear at any moment. That is why
/// tests check for a subset.
pub fn programs(beginnings: &[&str]) -> BTreeSet<u32> {
    ProgInfoIter::default()
        .filter(|info| {
            let name = info.name.to_string_lossy();
            beginnings.iter().any(|begin| name.starts_with(begin))
        })
        .map(|info| info.id)
        .collect()
}

/// The programs of [`programs`] that belong to no process. Either they are about to be unloaded, or
/// they are attached for good.
pub fn orphans(beginnings: &[&str]) -> BTreeSet<u32> {
    let mut orphans = programs(beginnings);
    for process in fs::read_dir("/proc").unwrap().flatten() {
        for program in programs_of(&process.path()) {
            orphans.remove(&program);
        }
    }
    orphans
}

/// Numbers of the BPF programs that a process has open or has attached. The set is empty if the
/// process has ended. `process` is its folder in /proc.
pub fn programs_of(process: &Path) -> BTreeSet<u32> {
    let descriptors = fs::read_dir(process.join("fdinfo")).into_iter().flatten();
    let texts = descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_to_string(descriptor.path()).ok());
    texts
        .flat_map(|text| {
            let numbers = text
                .lines()
                .filter_map(|line| line.strip_prefix("prog_id:"));
            let numbers = numbers.map(|number| number.trim().parse().unwrap());
            numbers.collect::<Vec<u32>>()
        })
        .collect()
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

pub fn printed(output: &Output) -> String {
    // miette breaks long lines, so line breaks are replaced by spaces.
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(all).unwrap().replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
