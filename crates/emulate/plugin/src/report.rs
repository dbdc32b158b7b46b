// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a run. Times are nanoseconds of the guest's clock.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Did the peer end the run, as planned? Otherwise the guest or the host did.
    pub planned_end: bool,
    /// The time of the last thing that the peer did or saw.
    pub last_ns: u64,
    /// By how much the peer acted later than it was to, at most.
    pub late_ns: u64,
    /// Frames that the guest has sent.
    pub from_guest: u64,
    /// The longest time that one of them has waited for the wire. An emulated card sends at once,
    /// however fast: where this grows, the guest sends more than a real card could.
    pub wire_wait_ns: u64,
    /// Frames of the TCP/IP stack that have reached the card.
    pub to_guest: u64,
    /// Those of them that the card did not take.
    pub to_guest_lost: u64,
    /// The echo requests of the TCP/IP stack.
    pub pings: Vec<PingReport>,
    /// The DHCP server.
    pub dhcp: Option<DhcpReport>,
    /// The clients, in the plan's order.
    pub clients: Vec<ClientReport>,
    /// The flood.
    pub flood: Option<FloodReport>,
    /// The lines of the interrupt controller that the plan moves, in its order.
    pub pins: Vec<PinReport>,
    /// The output pins of the plan, in its order.
    pub outputs: Vec<OutputReport>,
    /// What was measured of the guest's processor.
    pub profile: Option<ProfileReport>,
    /// The SHA-256 of all frames in both directions with their times.
    pub digest: String,
}

/// An input line of the interrupt controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinReport {
    /// Its number.
    pub irq: u16,
    /// Rising edges.
    pub offered: u64,
    /// Those of them that found the line's request waiting already: they are lost.
    pub missed: u64,
}

/// An output pin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// Its name.
    pub name: String,
    /// The times of its edges: the first rises, and each that follows goes the other way.
    pub edges_ns: Vec<u64>,
}

/// What the guest's processor did from the beginning of the measurement to the end of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileReport {
    /// The time between the two.
    pub elapsed_ns: u64,
    /// Instructions that were executed in this time.
    pub instructions: u64,
    /// Those of them outside of exceptions.
    pub background_instructions: u64,
    /// Exceptions that ended a WFI.
    pub wakeups: u64,
    /// The exceptions that were taken or running, by number.
    pub exceptions: Vec<ExceptionReport>,
    /// The most instructions that one thread or handler executed while it kept interrupts off, or
    /// some of them, by CPS or BASEPRI.
    pub longest_masked_instructions: u64,
    /// The most instructions that a thread executed from one switch of threads (PendSV) to the
    /// next, which may switch to the same thread.
    pub longest_turn_instructions: u64,
    /// The spans of the plan, by name.
    pub spans: BTreeMap<String, SpanReport>,
    /// The growth of each watched variable. One that falls below its first value has grown by 0.
    pub watched: BTreeMap<String, u64>,
}

/// One of the processor's exceptions. What interrupts it is not counted for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptionReport {
    /// Its number (IPSR): from 16 on the lines of the interrupt controller.
    pub number: u16,
    /// How often it was taken.
    pub taken: u64,
    /// How often that was directly after another one (tail-chaining).
    pub tail_chained: u64,
    /// The instructions of its handler.
    pub instructions: u64,
    /// The most instructions of one activation.
    pub longest_instructions: u64,
}

/// A span of the code, as threads and handlers execute it. What interrupts them is not counted for
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanReport {
    /// How often it was executed.
    pub taken: u64,
    /// The instructions of all.
    pub instructions: u64,
    /// The most instructions of one.
    pub longest_instructions: u64,
}

/// An echo request of the TCP/IP stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// When it was asked for.
    pub asked_ns: u64,
    /// The time until its answer was there; none if it never was.
    pub round_trip_ns: Option<u64>,
}

/// What a DHCP server was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpReport {
    /// Messages that look for a server.
    pub discovers: u64,
    /// Messages that ask for an address.
    pub requests: u64,
    /// When the first of these was granted.
    pub acknowledged_ns: Option<u64>,
}

/// A client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Its requests, in the order in which they were asked.
    pub requests: Vec<RequestReport>,
}

/// A request of a client. It has a latency, a failure, or neither if it is still open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReport {
    /// When it was due. It may have left later: the one before it had no answer yet.
    pub asked_ns: u64,
    /// The time until its whole answer was there.
    pub latency_ns: Option<u64>,
    /// Why it has none.
    pub failure: Option<String>,
}

impl RequestReport {
    pub(crate) fn asked(now: u64) -> Self {
        Self {
            asked_ns: now,
            ..Self::default()
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.latency_ns.is_none() && self.failure.is_none()
    }
}

/// A flood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodReport {
    /// Frames that have reached the card.
    pub sent: u64,
    /// Those of them that the card did not take: it had no room, or was not switched on.
    pub lost: u64,
    /// Those of them that the guest has answered.
    pub answered: u64,
    /// The times from a frame's arrival at the card to that of its answer at the peer.
    pub round_trips: Option<RoundTrips>,
}

/// The spread of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The shortest.
    pub least_ns: u64,
    /// Their mean, rounded down.
    pub mean_ns: u64,
    /// The longest.
    pub most_ns: u64,
}
