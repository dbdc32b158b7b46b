// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a system file for `weir linux`, and the kernel threads that follow from them for
//! the analysis.
mod contradiction;
mod mode;
mod threads;

use std::time::Duration;

use crate::system::Cost;

pub use crate::file::linux::{Accounting, LinuxMode, Predict};
pub use contradiction::LinuxContradiction;
pub use mode::ModeFacts;
pub use threads::{
    CAP, DEADLINE_URGENCY, INTERRUPT_URGENCY, LONGEST_TICK, LinuxBoundError, MOST_OF_POLL,
};

/// The settings of a system file for a stock Linux kernel. They say how its bottom halves get their
/// receivers' urgency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linux {
    /// The way in which bottom halves get an urgency.
    pub mode: LinuxMode,
    /// The receivers that threads follow in the mode [`LinuxMode::Predicted`].
    pub predict: Predict,
    /// The kind of accounting; `None` if the file does not state it, so that the mode decides.
    pub accounting: Option<Accounting>,
    /// The part of an interrupt's cost that cannot be measured; 0 if the file does not state it.
    pub interrupt_overhead: Duration,
    /// Whether a timer ends a cap. If not, a tick of the kernel's clock ends it.
    pub cap_timer: bool,
    /// The longest tick of the kernel's clock; `None` if the file does not state it.
    pub tick: Option<Duration>,
    /// The least number of bytes of the receive buffer of new sockets; 0 leaves it unchanged.
    /// `None` if the file does not state it, so that the mode decides.
    pub receive_buffer: Option<u32>,
    /// The least number of packets for which each receive queue of a network card has room; `None`
    /// if the file does not state it.
    pub receive_ring: Option<u32>,
    /// The settings of the thread that takes packets from the device; `None` if the file states
    /// none, so that the mode decides.
    pub top_half: Option<TopHalf>,
    /// The sources that are queues of a network interface, in the file's order. Several sources may
    /// belong to the same interface.
    pub interfaces: Vec<Interface>,
    /// The kernel threads that [`crate::System::with_threads`] added. It is empty for a system that
    /// was just read from a file.
    pub threads: Vec<InterfaceThread>,
    /// The receivers that are recognised by more than their port ([`crate::Receiver::port`]), in
    /// the file's order.
    pub matches: Vec<Match>,
}

/// A kernel thread that was added to the receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceThread {
    /// The thread's index in [`crate::System::receivers`].
    pub receiver: usize,
    /// The source whose packets the thread takes at their worst rate, as an index in
    /// [`crate::System::sources`], with the cost of a packet. `None` if the thread has a cap, which
    /// bounds its work for any packets.
    pub takes: Option<(usize, Cost)>,
}

/// The bound on the thread that takes packets from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopHalf {
    /// The thread runs under SCHED_DEADLINE: no flood takes more time, whoever its packets are for.
    Cap {
        /// The longest time that the thread runs in each period. It is at least 1,024 ns and at
        /// most 95 % of the period.
        runtime: Duration,
        /// The period, 100 µs to 4 s.
        period: Duration,
    },
    /// The thread runs under SCHED_FIFO with this priority, 1 to 99.
    Urgency(u8),
    /// There is no thread: the soft interrupt takes the packets, before every task.
    Interrupt,
}

/// A source that is a queue of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Index in [`crate::System::sources`].
    pub source: usize,
    /// The name of the interface, as `ip link` shows it: 1 to 15 bytes without spaces, `/` and `:`.
    pub name: String,
}

/// Criteria in addition to the port that recognise a receiver. All stated criteria must hold, and
/// at least one is stated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Index in [`crate::System::receivers`].
    pub receiver: usize,
    /// The receiver's control group or one of its ancestors, as a path that begins with `/`.
    pub cgroup: Option<String>,
    /// The name of the receiver's program. Any process can give itself any name, so `user` is
    /// stated wherever this is.
    pub command: Option<String>,
    /// The user of the receiver's process, as a name or a number.
    pub user: Option<String>,
}
