// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust counterparts of the declarations in `src/bpf/table.h`.
use weir_core_sys::demux::{Head, Slot};

/// Slots of a table. Half as many sockets always find room.
pub const SLOTS: usize = 16_384;
/// Number of tables: one for each version of IP.
pub const FAMILIES: usize = 2;
/// Most classes.
pub const CLASSES: usize = 8;
/// Number of reasons for leaving packets to the kernel.
pub const REASONS: usize = 9;
/// Number of ports that are counted: first all of UDP, then all of TCP.
pub const PORTS: usize = 131_072;
/// Stands for the CPU on which the packet arrived.
pub const SAME_CPU: u32 = u32::MAX;

/// The structure `weir_xdp_table_t`.
#[repr(C)]
struct RawTable {
    head: Head,
    unused: u16,
    cpu: [u32; CLASSES],
    map: [u32; CLASSES],
    slots: [Slot; SLOTS],
}

/// The structure `weir_xdp_counts_t`, in 64-bit words.
#[repr(C)]
struct RawCounts {
    given: [u64; CLASSES],
    dropped: [u64; CLASSES],
    left: [u64; REASONS],
    unused: [u64; 7],
}

/// Length of `weir_xdp_table_t` in 64-bit words.
pub const TABLE_WORDS: usize = size_of::<RawTable>() / 8;
/// Length of `weir_xdp_counts_t` in 64-bit words.
pub const COUNTS_WORDS: usize = size_of::<RawCounts>() / 8;
/// Index of the word at which the counts of dropped packets begin.
pub const DROPPED_AT: usize = std::mem::offset_of!(RawCounts, dropped) / 8;
/// Index of the word at which the counts of packets that were left to the kernel begin.
pub const LEFT_AT: usize = std::mem::offset_of!(RawCounts, left) / 8;

// src/bpf/table.h asserts the same numbers.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Head>() == 14 && size_of::<Slot>() == 8);
    assert!(offset_of!(RawTable, cpu) == 16 && offset_of!(RawTable, slots) == 80);
    assert!(size_of::<RawTable>() == 80 + 8 * SLOTS);
    assert!(offset_of!(RawCounts, left) == 128 && size_of::<RawCounts>() == 256);
};

fn word(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = from;
    }
    u64::from_ne_bytes(word)
}

/// The words of a `weir_xdp_table_t`. They are made one at a time, since they are also written to
/// the map one at a time.
pub fn table<'a>(
    head: &Head,
    slots: &'a [Slot],
    cpu: &[u32; CLASSES],
    map: &[u32; CLASSES],
) -> impl Iterator<Item = u64> + 'a {
    let [by_port, by_protocol, by_ethertype, by_pcp] = head.bound;
    let halves = |halves: [u16; 4]| word(halves.into_iter().flat_map(u16::to_ne_bytes));
    let classes = u16::from_ne_bytes([head.orphans, head.fragments]);
    let head = [
        halves([head.mask, head.free, by_port, by_protocol]),
        halves([by_ethertype, by_pcp, classes, 0]),
    ];
    let pairs: Vec<u64> = cpu
        .chunks_exact(2)
        .chain(map.chunks_exact(2))
        .map(|pair| word(pair.iter().flat_map(|number| number.to_ne_bytes())))
        .collect();
    let slots = slots.iter().map(|slot| {
        let first = slot.first.to_ne_bytes();
        word(
            slot.key
                .to_ne_bytes()
                .into_iter()
                .chain(first)
                .chain([slot.which]),
        )
    });
    head.into_iter().chain(pairs).chain(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lies_in_memory_as_c_has_it() {
        let head = Head {
            mask: 1,
            free: 2,
            bound: [3, 4, 5, 6],
            orphans: 7,
            fragments: 8,
        };
        let slot = |key, first, which| Slot { key, first, which };
        let slots = [slot(9, 10, 11), slot(0x0111_1388, 0xffff, 255)];
        let bytes: Vec<u8> = table(&head, &slots, &[12; CLASSES], &[13; CLASSES])
            .flat_map(u64::to_ne_bytes)
            .collect();
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let whole = |at| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        assert_eq!(
            [half(0), half(2), half(4), half(6), half(8), half(10)],
            [1, 2, 3, 4, 5, 6]
        );
        let head_at = |field| bytes[field];
        assert_eq!(head_at(std::mem::offset_of!(Head, orphans)), 7);
        assert_eq!(head_at(std::mem::offset_of!(Head, fragments)), 8);
        assert_eq!(
            (whole(16), whole(44), whole(48), whole(76)),
            (12, 12, 13, 13)
        );
        for (number, slot) in slots.iter().enumerate() {
            let at = std::mem::offset_of!(RawTable, slots) + number * size_of::<Slot>();
            assert_eq!(whole(at + std::mem::offset_of!(Slot, key)), slot.key);
            assert_eq!(half(at + std::mem::offset_of!(Slot, first)), slot.first);
            assert_eq!(bytes[at + std::mem::offset_of!(Slot, which)], slot.which);
        }
    }
}
