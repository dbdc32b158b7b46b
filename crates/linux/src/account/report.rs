// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account as it is shown, and told to other programs: `weir linux status --json` has it under
//! `account`. All times are in ns since the account began, and only grow; whoever wants rates takes
//! the difference of two reports.
use serde::{Deserialize, Serialize};

use crate::receivers::Protocol;

/// The account of the machine.
///
/// `measured.total` is `received` + `orphans` + `unattributed`, to the ns; `received` is the sum
/// over `processes` and `ended`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountReport {
    /// How long it has been kept.
    pub elapsed_ns: u64,
    /// Whether packets are counted; else nothing is attributed but what mode exact counts.
    pub counts_packets: bool,
    /// Whether the kernel's own times (`used_ns`) are without the interrupts in them:
    /// CONFIG_IRQ_TIME_ACCOUNTING.
    pub used_without_interrupts: bool,
    /// All interrupt time.
    pub measured: InterruptTime,
    /// Spent for processes that are known.
    pub received_ns: u64,
    /// Spent for packets that no socket got: for nobody, ARP, ICMP, forwarded.
    pub orphans_ns: u64,
    /// Spent for no packet that is known of: timers, other devices, sockets whose process is not
    /// known.
    pub unattributed_ns: u64,
    /// That sockets got.
    pub packets: u64,
    /// That no socket got.
    pub orphan_packets: u64,
    /// That were delivered, but not counted for anybody, since there was no room.
    pub lost_packets: u64,
    /// Handlers of devices that ran.
    pub interrupts: u64,
    /// By number.
    pub cpus: Vec<Cpu>,
    /// Kernel threads that do the work of interrupts, by number.
    pub threads: Vec<KernelThread>,
    /// Those that interrupts were handled for, or in whose time; what cost most comes first.
    pub processes: Vec<Process>,
    /// All processes that have ended.
    pub ended: EndedProcesses,
    /// Of `processes`; what cost most comes first.
    pub cgroups: Vec<Cgroup>,
    /// What cost most comes first.
    pub flows: Vec<FlowReport>,
}

/// What the interrupt time consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptTime {
    /// All of it.
    pub total_ns: u64,
    /// In handlers of network devices.
    pub device_ns: u64,
    /// In handlers of other devices.
    pub other_devices_ns: u64,
    /// In the soft interrupt that receives.
    pub receive_ns: u64,
    /// In other soft interrupts.
    pub other_soft_ns: u64,
    /// On the way into interrupts and out of them, as the system file says (`interrupt_overhead`);
    /// not in the time of threads, which have it already.
    pub overhead_ns: u64,
    /// In kernel threads that do such work, with the interrupts in their time.
    pub threads_ns: u64,
    /// Of places for which there was no room.
    pub lost_ns: u64,
}

/// The interrupt time on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Interrupts, and threads that do their work.
    pub interrupts_ns: u64,
}

/// A kernel thread that does the work of interrupts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// What it has run since the account began.
    pub ran_ns: u64,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks since boot: tells processes of one number apart.
    pub started: u64,
    /// The name of its program: the first 15 bytes.
    pub command: String,
    /// Its control group.
    pub cgroup: String,
    /// Processor time that the kernel has booked for it since it was started.
    pub used_ns: u64,
    /// Interrupts for it while others ran, or nobody.
    pub charged_ns: u64,
    /// Interrupts for it in its own time.
    pub own_ns: u64,
    /// Interrupts in its time that were not for it. A stock scheduler cannot give that back.
    pub taken_ns: u64,
    /// Packets that its sockets got.
    pub packets: u64,
}

/// Processes that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedProcesses {
    /// How many.
    pub processes: u64,
    /// As of a process.
    pub charged_ns: u64,
    /// As of a process.
    pub own_ns: u64,
    /// As of a process.
    pub taken_ns: u64,
    /// As of a process.
    pub packets: u64,
}

/// The processes of one control group that interrupts have to do with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path.
    pub cgroup: String,
    /// The sum over these processes.
    pub used_ns: u64,
    /// The sum over these processes.
    pub charged_ns: u64,
    /// The sum over these processes.
    pub taken_ns: u64,
    /// The sum over these processes.
    pub packets: u64,
}

/// What one port got from one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// None: of another protocol.
    pub protocol: Option<Protocol>,
    /// The destination port; 0 without a protocol.
    pub port: u16,
    /// The interface's name, or its index where it is another network namespace's; none: not known.
    pub interface: Option<String>,
    /// Interrupts for it.
    pub interrupts_ns: u64,
    /// That sockets got.
    pub packets: u64,
}

impl AccountReport {
    /// Does what was measured add up to what became of it?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let of_processes: u64 = self
            .processes
            .iter()
            .map(|process| process.charged_ns + process.own_ns)
            .sum();
        self.measured.total_ns == self.received_ns + self.orphans_ns + self.unattributed_ns
            && self.received_ns == of_processes + self.ended.charged_ns + self.ended.own_ns
    }
}
