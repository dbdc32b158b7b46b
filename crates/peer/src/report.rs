// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a run. Times are nanoseconds of the guest's clock.
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
    /// The flood.
    pub flood: Option<FloodReport>,
    /// The SHA-256 of all frames in both directions with their times.
    pub digest: String,
}

/// An echo request of the TCP/IP stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// When it was asked for.
    pub asked_ns: u64,
    /// The time until its answer was there; none if it never was.
    pub round_trip_ns: Option<u64>,
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
