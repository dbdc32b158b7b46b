// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account as it is printed and passed to other programs. `weir linux status --json` has it
//! under the key `account`. All times are in ns since the account began, and never decrease. A rate
//! is the difference of two reports divided by the time between them.
use serde::{Deserialize, Serialize};

use crate::receivers::Protocol;

/// The account of the machine.
///
/// `measured.total_ns` is exactly `received_ns` + `orphans_ns` + `unattributed_ns`. `received_ns`
/// is the sum over `processes` and `ended`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountReport {
    /// Time since the account began.
    pub elapsed_ns: u64,
    /// Whether the packets of all sockets are counted. Otherwise time is charged only for the
    /// packets that mode exact counts.
    pub counts_packets: bool,
    /// Whether the kernel's own run times (`used_ns`) exclude interrupts:
    /// CONFIG_IRQ_TIME_ACCOUNTING.
    pub used_without_interrupts: bool,
    /// All interrupt time.
    pub measured: InterruptTime,
    /// Time that was spent for known processes.
    pub received_ns: u64,
    /// Time that was spent for packets that no socket received: ARP, ICMP, forwarded packets, and
    /// packets for which no socket was open.
    pub orphans_ns: u64,
    /// Time that belongs to no known packet: timers, other devices, and sockets of unknown
    /// processes.
    pub unattributed_ns: u64,
    /// Packets that sockets received.
    pub packets: u64,
    /// Packets that no socket received.
    pub orphan_packets: u64,
    /// Packets that sockets received, but that were counted for no process, since the maps had no
    /// room.
    pub lost_packets: u64,
    /// Number of device handlers that ran.
    pub interrupts: u64,
    /// CPUs in the order of their numbers.
    pub cpus: Vec<Cpu>,
    /// Kernel threads that do the work of interrupts, in the order of their numbers.
    pub threads: Vec<KernelThread>,
    /// Processes for which interrupts were handled, or in whose time they were handled. The most
    /// expensive process is first.
    pub processes: Vec<Process>,
    /// Sums of all processes that have ended.
    pub ended: EndedProcesses,
    /// Control groups of `processes`. The most expensive one is first.
    pub cgroups: Vec<Cgroup>,
    /// Flows. The most expensive one is first.
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
    /// (`interrupt_overhead`). Interrupts during kernel threads are not included, since
    /// `threads_ns` has their time.
    pub overhead_ns: u64,
    /// Run time of the kernel threads that do the work of interrupts, including the interrupts
    /// during them.
    pub threads_ns: u64,
    /// Time that was spent at places for which the maps had no room.
    pub lost_ns: u64,
}

/// The interrupt time of one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time of interrupts, and of the kernel threads that do the work of interrupts.
    pub interrupts_ns: u64,
}

/// A kernel thread that does the work of interrupts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Number of the thread.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// Run time since the account began.
    pub ran_ns: u64,
}

/// The account of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// Start of the process, in ticks since boot. It distinguishes processes with the same number.
    pub started: u64,
    /// Name of the program: the first 15 bytes.
    pub command: String,
    /// Path of the control group.
    pub cgroup: String,
    /// Processor time that the kernel has booked for the process since its start.
    pub used_ns: u64,
    /// Interrupt time that was spent for the process while another one ran, or while the CPU was
    /// idle.
    pub charged_ns: u64,
    /// Interrupt time that was spent for the process in its own time.
    pub own_ns: u64,
    /// Interrupt time that was spent for others in the time of the process. A stock scheduler
    /// cannot give it back.
    pub taken_ns: u64,
    /// Packets that the process's sockets received.
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
    /// Protocol. `None` if it is neither TCP nor UDP.
    pub protocol: Option<Protocol>,
    /// The destination port; 0 if `protocol` is `None`.
    pub port: u16,
    /// Name of the interface, or `#` and its index if it is in another network namespace. `None` if
    /// it is not known.
    pub interface: Option<String>,
    /// Interrupt time that was spent for the traffic.
    pub interrupts_ns: u64,
    /// Packets that sockets received.
    pub packets: u64,
}

impl AccountReport {
    /// Whether the parts of the account add up to the measured time.
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
