// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of network cards that their drivers have: the driver's name, how the card gathers
//! packets before an interrupt, and the room of its queues. They use the ioctls of
//! <linux/ethtool.h>, which every kernel from 6.1 on has.
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

/// How a card gathers packets before an interrupt. These are the members of `struct
/// ethtool_coalesce` after the first, in their order. A member that a driver does not support is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Coalescing([u32; 22]);

impl Coalescing {
    /// Longest time from a packet's arrival to its interrupt, in microseconds.
    #[must_use]
    pub fn receive_microseconds(&self) -> u32 {
        self.0[0]
    }

    /// Most packets that arrive before an interrupt, or 0 if the driver has no such limit.
    #[must_use]
    pub fn receive_frames(&self) -> u32 {
        self.0[1]
    }

    /// Returns a copy with another [`Self::receive_microseconds`]. The driver then no longer adapts
    /// this time to the load.
    #[must_use]
    pub fn with_receive_microseconds(mut self, microseconds: u32) -> Self {
        self.0[0] = microseconds;
        self.0[9] = 0;
        self
    }

    /// Returns a copy with another [`Self::receive_frames`].
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

/// The structure `ethtool_per_queue_op`, which selects queues by a mask of 4,096 bits.
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

/// The structure `ethtool_drvinfo`.
#[repr(C)]
struct DriverRequest {
    command: u32,
    driver: [u8; 32],
    others: [u8; 160],
}

/// Name of the driver of `interface`, as in `ethtool -i`.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver does not report its name.
pub fn driver(interface: &OpenInterface) -> io::Result<String> {
    let mut request = DriverRequest {
        command: GET_DRIVER,
        driver: [0; 32],
        others: [0; 160],
    };
    // SAFETY: the value has the layout of the command's structure.
    unsafe { interface.ethtool(&mut request)? };
    let name = request.driver.split(|byte| *byte == 0).next();
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}

/// The structure `ethtool_value`.
#[repr(C)]
struct ValueRequest {
    command: u32,
    data: u32,
}

/// Whether `interface` accepts packets without checksums for sending. That is `tx-checksumming` of
/// `ethtool -k`.
///
/// # Errors
/// Fails with the driver's error.
pub fn leaves_checksums_out(interface: &OpenInterface) -> io::Result<bool> {
    let mut request = ValueRequest {
        command: GET_SEND_CHECKSUMS,
        data: 0,
    };
    // SAFETY: the value has the layout of the command's structure.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request.data != 0)
}

/// Reads how `interface`, or one of its receive queues, gathers packets.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver does not report this.
pub fn coalescing(interface: &OpenInterface, queue: Option<u32>) -> io::Result<Coalescing> {
    coalesce(interface, queue, GET_COALESCING, [0; 22]).map(Coalescing)
}

/// Sets how `interface`, or one of its receive queues, gathers packets.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver has no such setting, and with EINVAL when it refuses the
/// value.
pub fn set_coalescing(
    interface: &OpenInterface,
    queue: Option<u32>,
    Coalescing(values): Coalescing,
) -> io::Result<()> {
    coalesce(interface, queue, SET_COALESCING, values).map(drop)
}

/// Executes `command` for `interface` or one of its receive queues. Returns the values that the
/// kernel has written.
fn coalesce(
    interface: &OpenInterface,
    queue: Option<u32>,
    command: u32,
    values: [u32; 22],
) -> io::Result<[u32; 22]> {
    let Some(queue) = queue else {
        let mut request = CoalescingRequest { command, values };
        // SAFETY: the value has the layout of the command's structure.
        unsafe { interface.ethtool(&mut request)? };
        return Ok(request.values);
    };
    let mut request = QueueRequest::new(queue, command, values)?;
    // SAFETY: the value has the layout of the command's structure, followed by the data of the one
    // queue that it names.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request.data.values)
}

/// The structure `ethtool_ringparam`.
#[repr(C)]
#[derive(Default)]
struct RingRequest {
    command: u32,
    /// The largest numbers of packets that the card allows: for receiving, for two kinds of queues
    /// that few cards have, and for sending.
    most: [u32; 4],
    /// The present numbers of packets, in the same order.
    now: [u32; 4],
}

/// Number of packets for which each receive queue of a card has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Present number.
    pub now: u32,
    /// Largest number that the card allows.
    pub most: u32,
}

impl Ring {
    /// The number that gives room for at least `packets`. It is never less than now, and never more
    /// than the card allows.
    #[must_use]
    pub fn at_least(&self, packets: u32) -> u32 {
        packets.min(self.most).max(self.now)
    }
}

/// Reads the room of the receive queues of `interface`, as in `ethtool -g`.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver does not report this.
pub fn ring(interface: &OpenInterface) -> io::Result<Ring> {
    let RingRequest { most, now, .. } = rings(interface)?;
    Ok(Ring {
        now: now[0],
        most: most[0],
    })
}

/// Gives each receive queue of `interface` room for `packets`. The other numbers stay as they are.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver has no such setting, and with EINVAL when it refuses the
/// value.
pub fn set_ring(interface: &OpenInterface, packets: u32) -> io::Result<()> {
    let mut request = rings(interface)?;
    request.command = SET_RING;
    request.now[0] = packets;
    // SAFETY: the value has the layout of the command's structure.
    unsafe { interface.ethtool(&mut request) }
}

fn rings(interface: &OpenInterface) -> io::Result<RingRequest> {
    let mut request = RingRequest {
        command: GET_RING,
        ..RingRequest::default()
    };
    // SAFETY: the value has the layout of the command's structure.
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
            [1, 256, 1024, 65_536].map(|packets| ring.at_least(packets)),
            [256, 256, 1024, 4096]
        );
    }

    /// The numbers are the sizes and offsets that a C compiler gives the structures of
    /// <linux/ethtool.h>.
    #[test]
    fn structures_are_the_kernels() {
        assert_eq!(size_of::<DriverRequest>(), 196);
        assert_eq!(size_of::<CoalescingRequest>(), 92);
        assert_eq!(size_of::<RingRequest>(), 36);
        assert_eq!(offset_of!(QueueRequest, data), 520);
    }
}
