// SPDX-License-Identifier: MIT OR Apache-2.0
//! What drivers of network cards answer: what they are called, how long they gather packets before
//! an interrupt, and for how many they have room. By the ioctls of <linux/ethtool.h>, which every
//! kernel from 6.1 on has, whatever its driver answers.
use std::io;

use serde::{Deserialize, Serialize};

use super::namespace::OpenInterface;

const GET_DRIVER: u32 = 0x03;
const GET_COALESCING: u32 = 0x0e;
const SET_COALESCING: u32 = 0x0f;
const GET_RING: u32 = 0x10;
const SET_RING: u32 = 0x11;
const PER_QUEUE: u32 = 0x4b;
const GET_SEND_CHECKSUMS: u32 = 0x16;

/// How a card gathers packets before it interrupts: the members of `struct ethtool_coalesce` after
/// its first, in their order. What a driver does not have is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Coalescing([u32; 22]);

impl Coalescing {
    /// The longest from a packet's arrival to its interrupt, in microseconds.
    #[must_use]
    pub fn receive_microseconds(&self) -> u32 {
        self.0[0]
    }

    /// The most packets that arrive before the interrupt; 0 where the driver has no such limit.
    #[must_use]
    pub fn receive_frames(&self) -> u32 {
        self.0[1]
    }

    /// The same but for the time of [`Self::receive_microseconds`], which is then no longer adapted
    /// to the load by the driver.
    #[must_use]
    pub fn with_receive_microseconds(mut self, microseconds: u32) -> Self {
        self.0[0] = microseconds;
        self.0[9] = 0;
        self
    }

    /// The same but for the number of [`Self::receive_frames`].
    #[must_use]
    pub fn with_receive_frames(mut self, frames: u32) -> Self {
        self.0[1] = frames;
        self
    }
}

#[repr(C)]
struct CoalescingRequest {
    command: u32,
    values: [u32; 22],
}

/// Of `struct ethtool_per_queue_op`: the queues are bits of 4,096.
#[repr(C)]
struct QueueRequest {
    command: u32,
    of_queue: u32,
    queues: [u32; 128],
    data: CoalescingRequest,
}

impl QueueRequest {
    fn new(queue: u32, command: u32, values: [u32; 22]) -> io::Result<Self> {
        let mut queues = [0; 128];
        let word = queues
            .get_mut(queue as usize / 32)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word = 1 << (queue % 32);
        Ok(Self {
            command: PER_QUEUE,
            of_queue: command,
            queues,
            data: CoalescingRequest { command, values },
        })
    }
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverRequest {
    command: u32,
    driver: [u8; 32],
    others: [u8; 160],
}

/// What the driver of `interface` is called, as in `ethtool -i`.
///
/// # Errors
/// EOPNOTSUPP when it does not say.
pub fn driver(interface: &OpenInterface) -> io::Result<String> {
    let mut request = DriverRequest {
        command: GET_DRIVER,
        driver: [0; 32],
        others: [0; 160],
    };
    // SAFETY: this is as large as the command's structure.
    unsafe { interface.ethtool(&mut request)? };
    let name = request.driver.split(|byte| *byte == 0).next();
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}

/// `struct ethtool_value`.
#[repr(C)]
struct ValueRequest {
    command: u32,
    data: u32,
}

/// Whether `interface` takes packets without checksums to be sent, as `tx-checksumming` of
/// `ethtool -k` says.
///
/// # Errors
/// As its driver answers.
pub fn leaves_checksums_out(interface: &OpenInterface) -> io::Result<bool> {
    let mut request = ValueRequest {
        command: GET_SEND_CHECKSUMS,
        data: 0,
    };
    // SAFETY: this is the command's structure.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request.data != 0)
}

/// How `interface` gathers packets, all of it or one receive queue.
///
/// # Errors
/// EOPNOTSUPP when its driver does not say.
pub fn coalescing(interface: &OpenInterface, queue: Option<u32>) -> io::Result<Coalescing> {
    let values = [0; 22];
    match queue {
        None => {
            let mut request = CoalescingRequest {
                command: GET_COALESCING,
                values,
            };
            // SAFETY: this is the command's structure.
            unsafe { interface.ethtool(&mut request)? };
            Ok(Coalescing(request.values))
        }
        Some(queue) => {
            let mut request = QueueRequest::new(queue, GET_COALESCING, values)?;
            // SAFETY: this is the command's structure, with the data of the one queue that is asked
            // for.
            unsafe { interface.ethtool(&mut request)? };
            Ok(Coalescing(request.data.values))
        }
    }
}

/// Lets `interface` gather packets so, all of it or one receive queue.
///
/// # Errors
/// EOPNOTSUPP when its driver cannot, EINVAL when it cannot so.
pub fn set_coalescing(
    interface: &OpenInterface,
    queue: Option<u32>,
    Coalescing(values): Coalescing,
) -> io::Result<()> {
    match queue {
        None => {
            let mut request = CoalescingRequest {
                command: SET_COALESCING,
                values,
            };
            // SAFETY: this is the command's structure.
            unsafe { interface.ethtool(&mut request) }
        }
        Some(queue) => {
            let mut request = QueueRequest::new(queue, SET_COALESCING, values)?;
            // SAFETY: this is the command's structure, with the data of the one queue that is
            // meant.
            unsafe { interface.ethtool(&mut request) }
        }
    }
}

/// `struct ethtool_ringparam`.
#[repr(C)]
#[derive(Default)]
struct RingRequest {
    command: u32,
    /// The most that the card takes: what it receives, of two kinds more that few cards have, and
    /// what it sends.
    most: [u32; 4],
    /// The same as it is.
    now: [u32; 4],
}

/// Room for packets in each receive queue of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Packets that fit now.
    pub now: u32,
    /// The most that the card can have.
    pub most: u32,
}

impl Ring {
    /// Packets that are to fit where it shall be so many at least: never less than now, and not
    /// more than the card can have.
    #[must_use]
    pub fn at_least(&self, packets: u32) -> u32 {
        packets.min(self.most).max(self.now)
    }
}

/// How many packets the receive queues of `interface` have room for, as `ethtool -g` says.
///
/// # Errors
/// EOPNOTSUPP when its driver does not say.
pub fn ring(interface: &OpenInterface) -> io::Result<Ring> {
    let RingRequest { most, now, .. } = rings(interface)?;
    Ok(Ring {
        now: now[0],
        most: most[0],
    })
}

/// Gives each receive queue of `interface` room for so many packets; what it sends and the rest
/// stay as they are.
///
/// # Errors
/// EOPNOTSUPP when its driver cannot, EINVAL when it cannot so.
pub fn set_ring(interface: &OpenInterface, packets: u32) -> io::Result<()> {
    let mut request = rings(interface)?;
    request.command = SET_RING;
    request.now[0] = packets;
    // SAFETY: this is the command's structure.
    unsafe { interface.ethtool(&mut request) }
}

fn rings(interface: &OpenInterface) -> io::Result<RingRequest> {
    let mut request = RingRequest {
        command: GET_RING,
        ..RingRequest::default()
    };
    // SAFETY: this is the command's structure.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn a_ring_is_never_made_smaller_and_no_larger_than_the_card_can() {
        let ring = Ring {
            now: 256,
            most: 4096,
        };
        assert_eq!(
            [1, 256, 1024, 65_536].map(|of| ring.at_least(of)),
            [256, 256, 1024, 4096]
        );
    }

    /// The sizes and places that a C compiler gives the structures of <linux/ethtool.h>.
    #[test]
    fn structures_are_the_kernels() {
        assert_eq!(size_of::<DriverRequest>(), 196);
        assert_eq!(size_of::<CoalescingRequest>(), 92);
        assert_eq!(size_of::<RingRequest>(), 36);
        assert_eq!(offset_of!(QueueRequest, data), 520);
    }
}
