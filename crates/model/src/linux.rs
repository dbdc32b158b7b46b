// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a system file says to `weir linux`, and the threads that follow from it for the analysis.
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

/// How the bottom halves of a stock Linux kernel get their receivers' urgency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linux {
    /// How they get it.
    pub mode: LinuxMode,
    /// Whom threads follow in the mode [`LinuxMode::Predicted`].
    pub predict: Predict,
    /// What is accounted; none: the file does not say, so the mode decides.
    pub accounting: Option<Accounting>,
    /// What an interrupt costs beside what can be measured of it; 0 if the file does not say.
    pub interrupt_overhead: Duration,
    /// Does a cap end by a timer? Else it ends at a tick of the kernel's clock.
    pub cap_timer: bool,
    /// The longest tick of the kernel's clock; none: the file does not say.
    pub tick: Option<Duration>,
    /// Bytes of the buffer that new sockets have for what they receive, at least; 0 leaves it as it
    /// is. None: the file does not say, so the mode decides.
    pub receive_buffer: Option<u32>,
    /// Packets that each receive queue of a card has room for, at least; none: the file does not
    /// say.
    pub receive_ring: Option<u32>,
    /// What the file says of the thread that takes packets from the device; none: nothing, so the
    /// mode decides.
    pub top_half: Option<TopHalf>,
    /// The sources that are queues of a network interface, in the file's order. Several may be of
    /// the same interface.
    pub interfaces: Vec<Interface>,
    /// The threads of the kernel that [`crate::System::with_threads`] added. A file has none.
    pub threads: Vec<InterfaceThread>,
    /// The receivers that are recognised by more than their port ([`crate::Receiver::port`]), in
    /// the file's order.
    pub matches: Vec<Match>,
}

/// A thread of the kernel that stands among the receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceThread {
    /// Its index in [`crate::System::receivers`].
    pub receiver: usize,
    /// The source whose packets it takes at their worst rate, as an index in
    /// [`crate::System::sources`], with what each costs; none: it has a cap, whatever comes.
    pub takes: Option<(usize, Cost)>,
}

/// What the thread that takes packets from the device may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopHalf {
    /// SCHED_DEADLINE: no flood takes more time, whomever it is for.
    Cap {
        /// The longest time that the thread runs in each period: at least 1,024 ns and at most 95 %
        /// of the period.
        runtime: Duration,
        /// The period, 100 µs to 4 s.
        period: Duration,
    },
    /// SCHED_FIFO of this priority, 1 to 99.
    Urgency(u8),
    /// There is no thread: the soft interrupt takes them, before every task.
    Interrupt,
}

/// A source that is a queue of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Index in [`crate::System::sources`].
    pub source: usize,
    /// As `ip link` shows it: 1 to 15 bytes without spaces, `/` and `:`.
    pub name: String,
}

/// How a receiver is recognised, beside its port: by everything that is stated. At least one thing
/// is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Index in [`crate::System::receivers`].
    pub receiver: usize,
    /// Its control group, or one above: a path that begins with `/`.
    pub cgroup: Option<String>,
    /// The name of its program. Any process can give itself any name, so there is a `user` where
    /// there is a command.
    pub command: Option<String>,
    /// The user that it runs as: a name, or a number.
    pub user: Option<String>,
}
