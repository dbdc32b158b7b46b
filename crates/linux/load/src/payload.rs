// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of a message: its sender, its number, and the time at which it was sent. The emulated
//! network of the guest (boards/linux/packets.c) writes the same header.

/// The length of a header in bytes, which is the shortest message.
pub const HEADER: usize = 28;
/// The length of the longest message in bytes: the payload of a UDP packet over IPv4.
pub const LONGEST: usize = 65_507;

const MAGIC: [u8; 4] = *b"WEIR";

/// The header of every message: the letters `WEIR`, then these fields in network byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The length of the message including its header, in bytes. A receiver of a stream finds the
    /// next message by it.
    pub length: u32,
    /// The number of the sender.
    pub flow: u32,
    /// The number of the message among those of its sender, counted from 0.
    pub sequence: u64,
    /// The time at which the message was sent, by the sender's clock, in nanoseconds.
    pub sent: u64,
}

impl Header {
    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.flow.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[20..].copy_from_slice(&self.sent.to_be_bytes());
        bytes
    }

    /// Reads the header at the begin of `message`. `None` means that another program sent the
    /// message.
    #[must_use]
    pub fn decode(message: &[u8]) -> Option<Self> {
        let (bytes, _) = message.split_first_chunk::<HEADER>()?;
        let four = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let eight = |at: usize| u64::from(four(at)) << 32 | u64::from(four(at + 4));
        let header = Self {
            length: four(4),
            flow: four(8),
            sequence: eight(12),
            sent: eight(20),
        };
        let length = usize::try_from(header.length).ok()?;
        (bytes[..4] == MAGIC && (HEADER..=LONGEST).contains(&length)).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Header = Header {
        length: 512,
        flow: 7,
        sequence: 1 << 40,
        sent: u64::MAX - 1,
    };

    #[test]
    fn a_header_reads_back() {
        assert_eq!(Header::decode(&HEAD.to_bytes()), Some(HEAD));
    }

    #[test]
    fn what_is_no_header_is_none() {
        let mut bytes = HEAD.to_bytes();
        assert_eq!(Header::decode(&bytes[..HEADER - 1]), None);
        bytes[0] = b'w';
        assert_eq!(Header::decode(&bytes), None);
        for length in [0, 27, 65_508, u32::MAX] {
            assert_eq!(Header::decode(&Header { length, ..HEAD }.to_bytes()), None);
        }
    }
}
