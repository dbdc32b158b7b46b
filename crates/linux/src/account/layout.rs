// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust counterparts of the structures in `src/bpf/account.h`, decoded from the bytes of the maps.
use std::ops::{AddAssign, Sub};

/// Where interrupt work was done: on which CPU, and in whose time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HandlerPlace {
    pub cpu: u32,
    /// Number of the interrupted process, or of the kernel thread that did the work; 0 if the CPU
    /// was idle.
    pub host: u32,
    /// Whether the host is a kernel thread. The program notes it since the thread may have ended by
    /// now.
    pub is_kernel: bool,
}

/// The bit WEIR_ACCOUNT_KERNEL of `src/bpf/account.h`.
const KERNEL: u32 = 1 << 31;

/// Time that was spent at a place, in ns, and counts. The time of a nested interrupt counts only
/// once, for the nested interrupt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Time in handlers of network devices.
    pub device: u64,
    /// Time in handlers of other devices.
    pub others: u64,
    /// Time in the soft interrupt that receives packets.
    pub receive: u64,
    /// Time in other soft interrupts.
    pub soft: u64,
    /// Number of handlers that ran.
    pub interrupts: u64,
    /// Packets that were taken from devices.
    pub polled: u64,
}

/// Packets that a socket received at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Delivery {
    pub place: HandlerPlace,
    pub socket: SocketKey,
}

/// A socket, as the BPF program identifies it for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SocketKey {
    /// Cookie of the socket; 0 means any socket of the port.
    pub cookie: u64,
    /// Index of the interface on which the packets arrived, in its network namespace.
    pub interface: u32,
    pub port: u16,
    /// Protocol number: 17 (UDP), 6 (TCP) or another.
    pub protocol: u16,
}

/// Work that was not counted, since the maps had no room for another place or socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MapOverflow {
    /// Time in ns.
    pub time: u64,
    pub packets: u64,
}

/// Reads a field of `N` bytes that begins at byte `at`. `None` if `bytes` is too short.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    field(bytes, at).map(u16::from_ne_bytes)
}

fn single(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_ne_bytes)
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_ne_bytes)
}

impl HandlerPlace {
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let host = single(bytes, 4)?;
        Some(Self {
            cpu: single(bytes, 0)?,
            host: host & !KERNEL,
            is_kernel: host & KERNEL != 0,
        })
    }

    pub fn encode(&self) -> [u8; 8] {
        let host = self.host | if self.is_kernel { KERNEL } else { 0 };
        let mut bytes = [0; 8];
        bytes[0..4].copy_from_slice(&self.cpu.to_ne_bytes());
        bytes[4..8].copy_from_slice(&host.to_ne_bytes());
        bytes
    }
}

impl Spent {
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            device: double(bytes, 0)?,
            others: double(bytes, 8)?,
            receive: double(bytes, 16)?,
            soft: double(bytes, 24)?,
            interrupts: double(bytes, 32)?,
            polled: double(bytes, 40)?,
        })
    }
}

impl Delivery {
    /// Length of the structure in bytes.
    pub const LENGTH: usize = 24;

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            place: HandlerPlace::decode(bytes)?,
            socket: SocketKey {
                interface: single(bytes, 8)?,
                port: half(bytes, 12)?,
                protocol: half(bytes, 14)?,
                cookie: double(bytes, 16)?,
            },
        })
    }

    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let Self { place, socket } = self;
        let mut bytes = [0; Self::LENGTH];
        bytes[0..8].copy_from_slice(&place.encode());
        bytes[8..12].copy_from_slice(&socket.interface.to_ne_bytes());
        bytes[12..14].copy_from_slice(&socket.port.to_ne_bytes());
        bytes[14..16].copy_from_slice(&socket.protocol.to_ne_bytes());
        bytes[16..24].copy_from_slice(&socket.cookie.to_ne_bytes());
        bytes
    }
}

impl MapOverflow {
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            time: double(bytes, 0)?,
            packets: double(bytes, 8)?,
        })
    }
}

/// Increase of a counter since it had the value `before`. A lower value means that the counter was
/// removed in between and began again at 0.
pub(super) fn since(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            device: since(self.device, before.device),
            others: since(self.others, before.others),
            receive: since(self.receive, before.receive),
            soft: since(self.soft, before.soft),
            interrupts: since(self.interrupts, before.interrupts),
            polled: since(self.polled, before.polled),
        }
    }
}

impl AddAssign for MapOverflow {
    fn add_assign(&mut self, more: Self) {
        self.time += more.time;
        self.packets += more.packets;
    }
}

impl Sub for MapOverflow {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            time: since(self.time, before.time),
            packets: since(self.packets, before.packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_written_as_it_is_read() {
        for is_kernel in [false, true] {
            let delivery = Delivery {
                place: HandlerPlace {
                    cpu: 1,
                    host: 2,
                    is_kernel,
                },
                socket: SocketKey {
                    cookie: u64::MAX - 3,
                    interface: 4,
                    port: 5,
                    protocol: 6,
                },
            };
            assert_eq!(Delivery::decode(&delivery.encode()), Some(delivery));
            assert_eq!(Delivery::decode(&delivery.encode()[1..]), None);
        }
    }

    #[test]
    fn a_counter_that_was_made_anew_began_at_0() {
        assert_eq!((since(7, 5), since(5, 7), since(5, 5)), (2, 5, 0));
    }
}
