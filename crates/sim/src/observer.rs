// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a run, for observers: everything that a timeline shows.

/// A kind of work on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Track {
    /// The interrupt of the source with this index.
    Request(usize),
    /// The interrupt of the timer of the source's own limiter, or of its polling.
    Expiry(usize),
    /// The interrupt of the shared timer with this index.
    Timer(usize),
    /// The interrupt of the system's clock tick.
    Tick,
    /// The bottom half of the flow with this index.
    BottomHalf(usize),
    /// The bottom half of packets without a receiver on the source with this index.
    Orphan(usize),
    /// The task with this index.
    Task(usize),
}

/// A place where packets or requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// In the device of the source with this index.
    Device(usize),
    /// The queue before the bottom half of the flow with this index.
    Deferred(usize),
    /// The queue before the bottom half of packets without a receiver on the source with this
    /// index.
    Orphans(usize),
    /// At the receiver with this index.
    Backlog(usize),
}

/// Why a request or a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The pending bit was set already; it holds one request.
    Pending,
    /// The line was masked and keeps no pending bit.
    Masked,
    /// The device's queue was full.
    DeviceFull,
    /// It is for nobody, and the network card dropped it before any interrupt (behnke2022 §2.2).
    NoReceiver,
    /// It was for nobody, and the processor found out.
    Orphan,
    /// Its receiver had used up its budget.
    OverBudget,
    /// The queue of the bottom half was full.
    QueueFull,
    /// The receiver's own backlog was full: its bottom half ran for nothing.
    BacklogFull,
}

impl Loss {
    /// All reasons, in the order of a packet's way.
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

    /// The reason in a few words, as the timeline and the tables say it.
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
    /// The source is unmasked.
    Unmasked(usize),
    /// Work begins. Other work is stopped first, so at most one thing runs.
    Starts(Track),
    /// Preempted work is resumed.
    Resumes(Track),
    /// The work that runs is preempted.
    Stops(Track),
    /// The work that runs has ended.
    Ends(Track),
    /// A job of a task was released.
    Released(usize),
    /// A job of a task ended after its deadline.
    Missed(usize),
    /// The number of packets or requests in a queue has changed to this.
    Depth(Queue, u64),
}

/// An observer of a run. Events come in order of time.
pub trait Observer {
    /// Receives an event of this cycle.
    fn event(&mut self, at: u64, event: SimulationEvent);
}

/// The observer of a run that nobody watches, which costs nothing.
impl Observer for () {
    #[inline(always)]
    fn event(&mut self, _: u64, _: SimulationEvent) {}
}
