// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a run. Times are nanoseconds of the guest's clock.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The results of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the peer ended the run as planned. If not, the guest or the host ended it.
    pub planned_end: bool,
    /// The time of the peer's last action or observation.
    pub last_ns: u64,
    /// The longest delay between the planned and the actual time of an action of the peer.
    pub late_ns: u64,
    /// The number of frames that the guest sent.
    pub from_guest: u64,
    /// The longest time that a frame from the guest waited for the wire. An emulated card accepts
    /// frames from the guest at any rate. If this time grows, the guest sends more than a real card
    /// could.
    pub wire_wait_ns: u64,
    /// The number of frames of the TCP/IP stack that reached the card.
    pub to_guest: u64,
    /// The part of `to_guest` that the card did not accept.
    pub to_guest_lost: u64,
    /// The echo requests of the TCP/IP stack.
    pub pings: Vec<PingReport>,
    /// The results of the DHCP server. `None` if the plan has none.
    pub dhcp: Option<DhcpReport>,
    /// The results of the clients, in the order of the plan.
    pub clients: Vec<ClientReport>,
    /// The results of the flood. `None` if the plan has none.
    pub flood: Option<FloodReport>,
    /// The results of the driven lines of the interrupt controller, in the order of the plan.
    pub pins: Vec<PinReport>,
    /// The edges of the output pins, in the order of the plan.
    pub outputs: Vec<OutputReport>,
    /// The measurement of the guest's processor. `None` if nothing was measured.
    pub profile: Option<ProfileReport>,
    /// The SHA-256 of all frames in both directions and their times.
    pub digest: String,
}

/// The counts of an input line of the interrupt controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinReport {
    /// The number of the line.
    pub irq: u16,
    /// The number of rising edges.
    pub offered: u64,
    /// The part of `offered` that found a request of the line already pending. These requests are
    /// lost.
    pub missed: u64,
}

/// The edges of an output pin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReport {
    /// The name of the pin.
    pub name: String,
    /// The times of the edges. The first edge rises, and edges alternate.
    pub edges_ns: Vec<u64>,
}

/// The activity of the guest's processor during the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileReport {
    /// The duration of the measurement.
    pub elapsed_ns: u64,
    /// The instructions executed in this time.
    pub instructions: u64,
    /// The part of `instructions` executed outside of exceptions.
    pub background_instructions: u64,
    /// The number of exceptions that ended a WFI.
    pub wakeups: u64,
    /// The exceptions that were taken or active, by number.
    pub exceptions: Vec<ExceptionReport>,
    /// The most instructions that a thread or handler executed while it masked all or some
    /// interrupts, by CPS or BASEPRI.
    pub longest_masked_instructions: u64,
    /// The most instructions that a thread executed between two consecutive thread switches
    /// (PendSV). A switch may return to the same thread.
    pub longest_turn_instructions: u64,
    /// The measured spans, by name.
    pub spans: BTreeMap<String, SpanReport>,
    /// The increase of each watched variable. 0 if the variable fell below its first value.
    pub watched: BTreeMap<String, u64>,
}

/// The counts of an exception. Instructions of exceptions that interrupt it are not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptionReport {
    /// The number of the exception (IPSR). From 16 on it is a line of the interrupt controller.
    pub number: u16,
    /// How often the exception was taken.
    pub taken: u64,
    /// How often the exception was taken directly after another one (tail-chaining).
    pub tail_chained: u64,
    /// The instructions of the exception's handler.
    pub instructions: u64,
    /// The most instructions of a single activation.
    pub longest_instructions: u64,
}

/// The counts of a code span that threads and handlers executed. Instructions of exceptions that
/// interrupt it are not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanReport {
    /// How often the span was executed.
    pub taken: u64,
    /// The instructions of all executions.
    pub instructions: u64,
    /// The most instructions of a single execution.
    pub longest_instructions: u64,
}

/// An echo request of the TCP/IP stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// The time at which the request was due.
    pub asked_ns: u64,
    /// The time from the request to its answer. `None` if there was no answer.
    pub round_trip_ns: Option<u64>,
}

/// The messages that a DHCP server received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpReport {
    /// The number of DHCPDISCOVER messages.
    pub discovers: u64,
    /// The number of DHCPREQUEST messages.
    pub requests: u64,
    /// The time of the first DHCPACK. `None` if there was none.
    pub acknowledged_ns: Option<u64>,
}

/// The results of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientReport {
    /// The client's requests, in the order in which they were due.
    pub requests: Vec<RequestReport>,
}

/// A request of a client. It has a latency or a failure. It has neither while it is open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReport {
    /// The time at which the request was due. It may have been sent later, because the previous
    /// request had not been answered.
    pub asked_ns: u64,
    /// The time until the answer was complete.
    pub latency_ns: Option<u64>,
    /// Why the request has no answer.
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

/// The results of a flood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodReport {
    /// The number of frames that reached the card.
    pub sent: u64,
    /// The part of `sent` that the card did not accept, because it had no room or was not enabled.
    pub lost: u64,
    /// The part of `sent` that the guest answered.
    pub answered: u64,
    /// The times from a frame's arrival at the card to the arrival of its answer at the peer.
    /// `None` if there were no answers.
    pub round_trips: Option<RoundTrips>,
}

/// Statistics of round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The shortest round-trip time.
    pub least_ns: u64,
    /// The mean round-trip time, rounded down.
    pub mean_ns: u64,
    /// The longest round-trip time.
    pub most_ns: u64,
}
