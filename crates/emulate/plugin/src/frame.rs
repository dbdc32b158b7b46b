// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the frames of a flood are.
use serde::Deserialize;

use crate::cable::LEAST;
use crate::error::PlanError;
use crate::times::time;

/// Bytes of Ethernet, IPv4 and ICMP before an echo's data.
pub(crate) const HEADERS: usize = 14 + 20 + 8;
/// Bytes of the longest frame, without its checksum.
pub(crate) const LONGEST: usize = 1514;
/// The peer's hardware address.
pub(crate) const PEER_ETHERNET: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// The port that a flood's datagrams come from.
pub(crate) const SOURCE_PORT: u16 = 40_000;
/// Bytes of Ethernet's header. What is shorter is no frame, also for QEMU's cards.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of the longest frame that QEMU's LAN9118 hands to the guest.
const OVERSIZE: usize = 2047;

/// A flood: frames that reach the card exactly when its pattern says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloodPlan {
    /// When they arrive, in the language of `weir-arrivals`.
    pub pattern: String,
    /// The seed of a random pattern that has none of its own.
    #[serde(default)]
    pub seed: u64,
    /// The time from which the pattern counts, in nanoseconds.
    #[serde(default, deserialize_with = "time")]
    pub begin: u64,
    /// The time from which no frame is sent any more, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub end: u64,
    /// What its frames are.
    #[serde(default)]
    pub frames: FrameKind,
    /// Bytes of a frame, without its checksum; the kind of frames says what they are otherwise.
    pub length: Option<usize>,
}

/// What a flood's frames are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Echo requests, whose answers are counted.
    #[default]
    Echo,
    /// Datagrams to a port.
    Udp(u16),
    /// Datagrams with some bytes behind the addresses replaced by random ones.
    Malformed,
    /// Datagrams that end before what their headers promise.
    Truncated,
    /// Datagrams longer than Ethernet allows.
    Oversized,
    /// Requests for a connection to a port, each from another host of the guest's network that
    /// does not exist.
    Syn(u16),
    /// Segments with data for a port, from such hosts: the guest has no such connection.
    Segment(u16),
    /// Questions for the guest's hardware address, from such hosts.
    Arp,
    /// Last fragments of datagrams, each of another one, whose other fragments never come.
    Fragment,
}

impl FrameKind {
    /// The least and the greatest length, and that of a plan which has none.
    fn lengths(self) -> (usize, usize, usize) {
        match self {
            Self::Echo
            | Self::Udp(_)
            | Self::Malformed
            | Self::Syn(_)
            | Self::Segment(_)
            | Self::Fragment => (LEAST, LONGEST, LEAST),
            Self::Arp => (LEAST, LEAST, LEAST),
            Self::Truncated => (ETHERNET, LEAST - 1, ETHERNET + 16),
            Self::Oversized => (LONGEST + 1, OVERSIZE, LONGEST + 86),
        }
    }

    /// The length that a plan asks for.
    pub(crate) fn length(self, flood: &FloodPlan) -> Result<usize, PlanError> {
        let (least, most, usual) = self.lengths();
        let length = flood.length.unwrap_or(usual);
        if (least..=most).contains(&length) {
            Ok(length)
        } else {
            Err(PlanError::Length(least, most, length))
        }
    }
}
