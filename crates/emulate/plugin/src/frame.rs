// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of frames in a flood.
use serde::Deserialize;

use crate::cable::LEAST;
use crate::error::PlanError;
use crate::times::time;

/// The bytes of Ethernet, IPv4 and ICMP headers before the data of an echo request.
pub(crate) const HEADERS: usize = 14 + 20 + 8;
/// The length of the longest frame in bytes, without its checksum.
pub(crate) const LONGEST: usize = 1514;
/// The peer's MAC address.
pub(crate) const PEER_ETHERNET: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// The source port of a flood's datagrams.
pub(crate) const SOURCE_PORT: u16 = 40_000;
/// The bytes of the Ethernet header. A shorter frame is invalid, for QEMU's cards, too.
pub(crate) const ETHERNET: usize = 14;
/// The length of the longest frame that QEMU's LAN9118 passes to the guest, in bytes.
const OVERSIZE: usize = 2047;

/// A flood of frames that reach the card exactly at the times of a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloodPlan {
    /// The arrival times, as a pattern of `weir-arrivals`.
    pub pattern: String,
    /// The seed for a random pattern that states no seed.
    #[serde(default)]
    pub seed: u64,
    /// The start time of the pattern, in nanoseconds.
    #[serde(default, deserialize_with = "time")]
    pub begin: u64,
    /// The time from which no more frames are sent, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub end: u64,
    /// The kind of frames.
    #[serde(default)]
    pub frames: FrameKind,
    /// The length of a frame in bytes, without its checksum. `None` means the usual length of the
    /// kind of frames.
    pub length: Option<usize>,
}

/// The kind of frames in a flood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// ICMP echo requests, whose answers are counted.
    #[default]
    Echo,
    /// UDP datagrams to this port.
    Udp(u16),
    /// Datagrams in which some bytes after the addresses are replaced by random ones.
    Malformed,
    /// Datagrams that end before the length in their headers.
    Truncated,
    /// Datagrams longer than Ethernet allows.
    Oversized,
    /// TCP connection requests (SYN) to this port. Each comes from a different, nonexistent host of
    /// the guest's network.
    Syn(u16),
    /// TCP data segments to this port from nonexistent hosts. The guest has no such connections.
    Segment(u16),
    /// ARP requests for the guest's MAC address, from nonexistent hosts.
    Arp,
    /// Last fragments of datagrams whose other fragments never arrive.
    Fragment,
}

impl FrameKind {
    /// Returns the least, the greatest and the usual length of a frame, in bytes.
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

    /// Returns the length of the frames of a planned flood.
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
