// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only some network cards have: how long they gather packets before an interrupt, and rules that steer packets to a queue. By the ioctls of
//! <linux/ethtool.h>, which every kernel from 6.1 on has, whatever its driver answers.
use std::io;

use serde::{Deserialize, Serialize};

use super::namespace::OpenInterface;

const GET_DRIVER: u32 = 0x03;
const GET_COALESCING: u32 = 0x0e;
const SET_COALESCING: u32 = 0x0f;
const PER_QUEUE: u32 = 0x4b;
const GET_SEND_CHECKSUMS: u32 = 0x16;
const COUNT_QUEUES: u32 = 0x2d;
const COUNT_RULES: u32 = 0x2e;
const GET_RULE: u32 = 0x2f;
const LIST_RULES: u32 = 0x30;
const DELETE_RULE: u32 = 0x31;
const INSERT_RULE: u32 = 0x32;

/// How a card gathers packets before it interrupts: the members of `struct ethtool_coalesce` after its first, in their order. What a driver does not have is 0.
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

    /// The same but for the time of [`Self::receive_microseconds`], which is then no longer adapted to the load by the driver.
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

/// Whether `interface` takes packets without checksums to be sent, as `tx-checksumming` of `ethtool -k` says.
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
            // SAFETY: this is the command's structure, with the data of the one queue that is asked for.
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
            // SAFETY: this is the command's structure, with the data of the one queue that is meant.
            unsafe { interface.ethtool(&mut request) }
        }
    }
}

/// Packets to one port, which a rule steers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flow {
    /// TCP; else UDP.
    pub tcp: bool,
    /// IPv6; else IPv4.
    pub v6: bool,
    /// The destination port.
    pub port: u16,
}

/// A rule of a card: `struct ethtool_rx_flow_spec` as it is, so that one that was there before is put back whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Rule(Box<[u8; Self::SIZE]>);

impl Rule {
    const SIZE: usize = 168;
    /// Where the values and the masks of the fields begin, and the queue and the rule's place are.
    const VALUES: usize = 4;
    const MASKS: usize = 76;
    const QUEUE: usize = 152;
    const PLACE: usize = 160;

    /// The rule at `place` of a table that brings `flow` to receive queue `queue`.
    #[must_use]
    pub fn new(flow: Flow, queue: u32, place: u32) -> Self {
        let (kind, port): (u32, usize) = match flow {
            Flow { v6: false, tcp, .. } => (if tcp { 1 } else { 2 }, 10),
            Flow { v6: true, tcp, .. } => (if tcp { 5 } else { 6 }, 34),
        };
        let mut bytes = Box::new([0; Self::SIZE]);
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[Self::VALUES + port..][..2].copy_from_slice(&flow.port.to_be_bytes());
        bytes[Self::MASKS + port..][..2].copy_from_slice(&[0xff; 2]);
        bytes[Self::QUEUE..][..8].copy_from_slice(&u64::from(queue).to_ne_bytes());
        Self(bytes).at(place)
    }

    fn at(mut self, place: u32) -> Self {
        self.0[Self::PLACE..][..4].copy_from_slice(&place.to_ne_bytes());
        self
    }
}

impl TryFrom<Vec<u8>> for Rule {
    type Error = String;

    fn try_from(bytes: Vec<u8>) -> Result<Self, String> {
        let length = bytes.len();
        bytes
            .try_into()
            .map(|bytes| Self(Box::new(bytes)))
            .map_err(|_| format!("a rule of {length} bytes; it has {}", Self::SIZE))
    }
}

impl From<Rule> for Vec<u8> {
    fn from(rule: Rule) -> Self {
        rule.0.to_vec()
    }
}

/// `struct ethtool_rxnfc` with room for the places of rules.
#[repr(C, align(8))]
struct RuleRequest {
    command: u32,
    kind: u32,
    data: u64,
    rule: [u8; Rule::SIZE],
    count: u32,
    places: [u32; MOST_RULES],
}

/// A card with more rules than these is not steered.
const MOST_RULES: usize = 1023;

fn rules(interface: &OpenInterface, command: u32, rule: Option<Rule>) -> io::Result<RuleRequest> {
    let mut request = RuleRequest {
        command,
        kind: 0,
        data: 0,
        rule: rule.map_or([0; Rule::SIZE], |rule| *rule.0),
        count: if command == LIST_RULES {
            MOST_RULES as u32
        } else {
            0
        },
        places: [0; MOST_RULES],
    };
    // SAFETY: this is the structure of all these commands, and has room for as many places as it says.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request)
}

fn nothing() -> Rule {
    Rule(Box::new([0; Rule::SIZE]))
}

/// How many receive queues `interface` spreads packets over.
///
/// # Errors
/// EOPNOTSUPP when its driver does not say.
pub fn queues(interface: &OpenInterface) -> io::Result<u32> {
    let request = rules(interface, COUNT_QUEUES, None)?;
    Ok(u32::try_from(request.data).unwrap_or(u32::MAX))
}

/// Up to `most` places of `interface`'s table that no rule has: the last ones, which come after all others.
///
/// # Errors
/// EOPNOTSUPP when its driver has no rules.
pub fn free_places(interface: &OpenInterface, most: usize) -> io::Result<Vec<u32>> {
    let listed = rules(interface, COUNT_RULES, None)?;
    let taken = rules(interface, LIST_RULES, None)?;
    let taken = &taken.places[..(taken.count as usize).min(MOST_RULES)];
    // The highest bit says that the driver takes places of special meaning.
    let places = (listed.data & 0x7fff_ffff) as u32;
    Ok((0..places)
        .rev()
        .filter(|place| !taken.contains(place))
        .take(most)
        .collect())
}

/// The rule at `place`, `None` when there is none.
///
/// # Errors
/// EOPNOTSUPP when the driver has no rules.
pub fn rule(interface: &OpenInterface, place: u32) -> io::Result<Option<Rule>> {
    match rules(interface, GET_RULE, Some(nothing().at(place))) {
        Ok(request) => Ok(Some(Rule(Box::new(request.rule)))),
        // Drivers differ in how they say that there is none.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts `rule` at `place`, or removes the one there.
///
/// # Errors
/// EOPNOTSUPP when the driver has no rules (or none such), others as it answers.
pub fn set_rule(interface: &OpenInterface, place: u32, rule: Option<Rule>) -> io::Result<()> {
    match rule {
        Some(rule) => rules(interface, INSERT_RULE, Some(rule.at(place))),
        None => rules(interface, DELETE_RULE, Some(nothing().at(place))),
    }
    .map(drop)
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The sizes and places that a C compiler gives the structures of <linux/ethtool.h>.
    #[test]
    fn structures_are_the_kernels() {
        assert_eq!(size_of::<DriverRequest>(), 196);
        assert_eq!(size_of::<CoalescingRequest>(), 92);
        assert_eq!(offset_of!(QueueRequest, data), 520);
        assert_eq!(offset_of!(RuleRequest, rule), 16);
        assert_eq!(offset_of!(RuleRequest, count), 184);
        assert_eq!(offset_of!(RuleRequest, places), 188);
    }

    #[test]
    fn a_rule_names_the_port_and_the_queue() {
        let flow = Flow {
            tcp: false,
            v6: false,
            port: 0x1234,
        };
        let Rule(bytes) = Rule::new(flow, 3, 7);
        assert_eq!(bytes[..4], 2_u32.to_ne_bytes());
        assert_eq!(bytes[14..16], [0x12, 0x34]);
        assert_eq!(bytes[86..88], [0xff, 0xff]);
        assert_eq!(bytes[152..160], 3_u64.to_ne_bytes());
        assert_eq!(bytes[160..164], 7_u32.to_ne_bytes());
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 7);
        let Rule(bytes) = Rule::new(
            Flow {
                tcp: true,
                v6: true,
                port: 1,
            },
            0,
            0,
        );
        assert_eq!(
            (bytes[0], bytes[39], bytes[110], bytes[111]),
            (5, 1, 255, 255)
        );
    }
}
