// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account as it is printed and passed to other programs: `weir linux status --json` has it
//! under `account`. All times are in ns since the account began and never decrease; rates are the
//! differences of two reports.
use serde::{Deserialize, Serialize};

use crate::receivers::Protocol;

/// The account of the machine.
///
/// `measured.total` is `received` + `orphans` + `unattributed`, to the ns; `received` is the sum
/// over `processes` and `ended`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountReport {
    /// Time since the account began.
    pub elapsed_ns: u64,
    /// Whether packets are counted; else only packets that mode exact counts are attributed.
    pub counts_packets: bool,
    /// Whether the kernel's own times (`used_ns`) exclude interrupts: CONFIG_IRQ_TIME_ACCOUNTING.
    pub used_without_interrupts: bool,
    /// All interrupt time.
    pub measured: InterruptTime,
    /// Time spent for known processes.
    pub received_ns: u64,
    /// Time spent for packets that no socket received: for nobody, ARP, ICMP, forwarded.
    pub orphans_ns: u64,
    /// Time spent for no known packet: timers, other devices, sockets of unknown processes.
    pub unattributed_ns: u64,
    /// Packets that sockets received.
    pub packets: u64,
    /// Packets that no socket received.
    pub orphan_packets: u64,
    /// Packets that were delivered, but not counted for anybody for lack of room.
    pub lost_packets: u64,
    /// Number of device handlers that ran.
    pub interrupts: u64,
    /// CPUs in the order of their numbers.
    pub cpus: Vec<Cpu>,
    /// Kernel threads that do the work of interrupts, in the order of their numbers.
    pub threads: Vec<KernelThread>,
    /// Processes that interrupts were handled for, or in whose time; the most expensive first.
    pub processes: Vec<Process>,
    /// Sums of all processes that have ended.
    pub ended: EndedProcesses,
    /// Control groups of `processes`; the most expensive first.
    pub cgroups: Vec<Cgroup>,
    /// Flows; the most expensive first.
    pub flows: Vec<FlowReport>,
}

/// Parts of the interrupt time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptTime {
    /// Sum of all parts.
    pub total_ns: u64,
    /// Time in handlers of network devices.
    pub device_ns: u64,
    /// Time in handlers of other devices.
    pub other_devices_ns: u64,
    /// Time in the soft interrupt that receives.
    pub receive_ns: u64,
    /// Time in other soft interrupts.
    pub other_soft_ns: u64,
    /// Time for entering and leaving interrupts, as the system file states it
    /// (`interrupt_overhead`); not for interrupts of threads, whose time includes it.
    pub overhead_ns: u64,
    /// Time of kernel threads that do such work, with the interrupts in it.
    pub threads_ns: u64,
    /// Time at places for which there was no room.
    pub lost_ns: u64,
}

/// The interrupt time on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Time of interrupts, and of threads that do their work.
    pub interrupts_ns: u64,
}

/// A kernel thread that does the work of interrupts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Run time since the account began.
    pub ran_ns: u64,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Start, in ticks since boot; it distinguishes processes with the same number.
    pub started: u64,
    /// Name of the program: its first 15 bytes.
    pub command: String,
    /// Its control group.
    pub cgroup: String,
    /// Processor time that the kernel has booked for the process since its start.
    pub used_ns: u64,
    /// Interrupt time for it while others ran, or nobody.
    pub charged_ns: u64,
    /// Interrupt time for it in its own time.
    pub own_ns: u64,
    /// Interrupt time in its time that was not for it. A stock scheduler cannot give it back.
    pub taken_ns: u64,
    /// Packets that its sockets received.
    pub packets: u64,
}

/// Sums of processes that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedProcesses {
    /// Number of the processes.
    pub processes: u64,
    /// Sum of [`Process::charged_ns`].
    pub charged_ns: u64,
    /// Sum of [`Process::own_ns`].
    pub own_ns: u64,
    /// Sum of [`Process::taken_ns`].
    pub taken_ns: u64,
    /// Sum of [`Process::packets`].
    pub packets: u64,
}

/// Sums of the processes of one control group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Path of the control group.
    pub cgroup: String,
    /// Sum of [`Process::used_ns`].
    pub used_ns: u64,
    /// Sum of [`Process::charged_ns`].
    pub charged_ns: u64,
    /// Sum of [`Process::taken_ns`].
    pub taken_ns: u64,
    /// Sum of [`Process::packets`].
    pub packets: u64,
}

/// Traffic from one interface to one port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Protocol; none: neither TCP nor UDP.
    pub protocol: Option<Protocol>,
    /// The destination port; 0 without a protocol.
    pub port: u16,
    /// Name of the interface, or its index if it is in another network namespace; none: not known.
    pub interface: Option<String>,
    /// Interrupt time for the traffic.
    pub interrupts_ns: u64,
    /// Packets that sockets received.
    pub packets: u64,
}

impl AccountReport {
    /// Whether the parts add up to what was measured.
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
