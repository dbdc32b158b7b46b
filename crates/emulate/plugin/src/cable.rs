// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transmission time of frames.

/// Nanoseconds per byte at 100 Mbit/s, the speed of a LAN9118.
const BYTE_NS: u64 = 80;
/// The least length of a frame in bytes, without its checksum (IEEE 802.3). Shorter frames are
/// padded.
pub(crate) const LEAST: usize = 60;
/// The bytes of preamble and start delimiter.
const BEFORE: u64 = 8;
/// The bytes of the frame's checksum.
const CHECKSUM: u64 = 4;
/// The interframe gap in bytes.
const GAP: u64 = 12;

/// One direction of a 100 Mbit/s cable. Frames are transmitted one after the other, separated by
/// the interframe gap. The propagation delay is zero.
#[derive(Debug, Default)]
pub struct Cable {
    free_at: u64,
    longest_wait: u64,
}

impl Cable {
    /// Starts to transmit a frame of `length` bytes (without its checksum) at `now`, or when the
    /// wire is free. Returns the time at which its last bit arrives.
    pub fn carry(&mut self, now: u64, length: usize) -> u64 {
        let begin = now.max(self.free_at);
        self.longest_wait = self.longest_wait.max(begin - now);
        let end = begin + (BEFORE + length.max(LEAST) as u64 + CHECKSUM) * BYTE_NS;
        self.free_at = end + GAP * BYTE_NS;
        end
    }

    /// Returns the longest time that a frame has waited for the wire.
    #[must_use]
    pub fn longest_wait(&self) -> u64 {
        self.longest_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_frame_takes_its_time() {
        // The frame has 72 bytes of 80 ns each.
        assert_eq!(Cable::default().carry(1000, 42), 1000 + 5760);
        assert_eq!(Cable::default().carry(1000, 60), 1000 + 5760);
        assert_eq!(Cable::default().carry(1000, 61), 1000 + 5840);
    }

    #[test]
    fn frames_follow_each_other_at_the_rate_of_the_standard() {
        let mut wire = Cable::default();
        let first = wire.carry(0, 60);
        let times: Vec<u64> = (0..3).map(|_| wire.carry(0, 60)).collect();
        // The distance between frame starts is 84 bytes, which gives 148 809 frames a second.
        assert_eq!(times, [first + 6720, first + 2 * 6720, first + 3 * 6720]);
        assert_eq!(wire.carry(1_000_000, 60), 1_005_760);
        assert_eq!(wire.longest_wait(), 3 * 6720);
    }
}
