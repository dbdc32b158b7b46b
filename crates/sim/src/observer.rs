// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a run, which observers receive. A timeline is drawn from them.

/// A kind of work on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Track {
    /// The interrupt of the source with this index.
    Request(usize),
    /// The timer interrupt of the limiter, or of the polling, of the source with this index.
    Expiry(usize),
    /// The interrupt of the shared timer with this index.
    Timer(usize),
    /// The interrupt of the system's clock tick.
    Tick,
    /// The bottom half for packets of the flow with this index.
    BottomHalf(usize),
    /// The bottom half for packets without a receiver, on the source with this index.
    Orphan(usize),
    /// The task with this index.
    Task(usize),
}

/// A place where packets or requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The device of the source with this index.
    Device(usize),
    /// The packets of the flow with this index that wait for their bottom half.
    Deferred(usize),
    /// The packets without a receiver, on the source with this index, that wait for their bottom
    /// half.
    Orphans(usize),
    /// The delivered packets or events that wait for the receiver with this index.
    Backlog(usize),
}

/// Why a request or a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The pending bit was already set. It can hold one request only.
    Pending,
    /// The line was masked, and a masked line stores no pending bit.
    Masked,
    /// The device's queue was full.
    DeviceFull,
    /// The packet had no receiver, and the network card dropped it before any interrupt (behnke2022
    /// §2.2).
    NoReceiver,
    /// The packet had no receiver, which the processor found out.
    Orphan,
    /// The receiver's packet budget was used up.
    OverBudget,
    /// The queue for the bottom half was full.
    QueueFull,
    /// The receiver's queue was full, so that the bottom half ran in vain.
    BacklogFull,
}

impl Loss {
    /// All reasons, in the order in which a packet can meet them.
    pub const ALL: [Loss; 8] = [
        Loss::Pending,
        Loss::Masked,
        Loss::DeviceFull,
        Loss::NoReceiver,
        Loss::Orphan,
        Loss::OverBudget,
        Loss::QueueFull,
        Loss::BacklogFull,
    ];

    /// Returns the reason in a few words, as timelines and tables print it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Pending => "pending already",
            Self::Masked => "masked",
            Self::DeviceFull => "device full",
            Self::NoReceiver => "no receiver, seen by the card",
            Self::Orphan => "no receiver",
            Self::OverBudget => "over budget",
            Self::QueueFull => "queue full",
            Self::BacklogFull => "backlog full",
        }
    }
}

/// An event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulationEvent {
    /// A request or a packet arrived at a source.
    Arrived(usize),
    /// A request or a packet of a source was lost.
    Lost(usize, Loss),
    /// The limiter masked the source.
    Masked(usize),
    /// The limiter unmasked the source.
    Unmasked(usize),
    /// Work starts. If other work runs, [`Stops`](Self::Stops) comes first, so that at most one
    /// thing runs.
    Starts(Track),
    /// Preempted work is resumed.
    Resumes(Track),
    /// The running work is preempted.
    Stops(Track),
    /// The running work ends.
    Ends(Track),
    /// A job of a task was released.
    Released(usize),
    /// A job of a task ended after its deadline.
    Missed(usize),
    /// The number of packets or requests in a queue has changed to this number.
    Depth(Queue, u64),
}

/// An observer of a run. It receives the events in order of time.
pub trait Observer {
    /// Receives an event. `at` is the cycle at which it happened.
    fn event(&mut self, at: u64, event: SimulationEvent);
}

/// Ignores all events, at no cost.
impl Observer for () {
    #[inline(always)]
    fn event(&mut self, _: u64, _: SimulationEvent) {}
}
