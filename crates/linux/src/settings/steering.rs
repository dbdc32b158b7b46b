// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers packets to the receive queues of a card. Rules steer some packets, and a table spreads
//! the rest. Both are set by the ioctls of <linux/ethtool.h>.
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::namespace::OpenInterface;

const COUNT_QUEUES: u32 = 0x2d;
const COUNT_RULES: u32 = 0x2e;
const GET_RULE: u32 = 0x2f;
const LIST_RULES: u32 = 0x30;
const DELETE_RULE: u32 = 0x31;
const INSERT_RULE: u32 = 0x32;
const GET_SPREAD: u32 = 0x38;
const SET_SPREAD: u32 = 0x39;

/// Kinds of rules, and the flag of a rule that also examines the VLAN tag (FLOW_EXT).
const TCP_V4: u32 = 0x01;
const UDP_V4: u32 = 0x02;
const TCP_V6: u32 = 0x05;
const UDP_V6: u32 = 0x06;
const ETHERNET: u32 = 0x12;
const EXTENDED: u32 = 0x8000_0000;

/// Packets that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowSpec {
    /// Packets for a destination port.
    Port {
        /// Whether the protocol is TCP. Otherwise it is UDP.
        tcp: bool,
        /// Whether the version of IP is 6. Otherwise it is 4.
        v6: bool,
        /// Destination port.
        port: u16,
    },
    /// Packets with this EtherType.
    EtherType(u16),
    /// Packets with this priority in their VLAN tag (PCP of IEEE 802.1Q), from 0 to 7.
    Priority(u8),
}

impl fmt::Display for FlowSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Port { tcp, v6, port } => {
                let protocol = if tcp { "TCP" } else { "UDP" };
                let version = if v6 { 6 } else { 4 };
                write!(formatter, "{protocol} port {port} over IPv{version}")
            }
            Self::EtherType(number) => write!(formatter, "EtherType {number:#06x}"),
            Self::Priority(number) => write!(formatter, "VLAN priority {number}"),
        }
    }
}

/// A rule of a card. It keeps all bytes of `struct ethtool_rx_flow_spec`, so that a rule that was
/// set before can be restored completely.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Rule(Box<[u8; Self::SIZE]>);

impl Rule {
    const SIZE: usize = 168;
    /// Offsets in the structure: of the values and the masks of the fields, of the queue, and of
    /// the rule's place.
    const VALUES: usize = 4;
    const MASKS: usize = 76;
    const QUEUE: usize = 152;
    const PLACE: usize = 160;
    /// Offset, within the values and within the masks, of the fields that only a rule with the flag
    /// `EXTENDED` has.
    const EXTENSION: usize = 52;

    /// Creates the rule at `place` of the table that steers `flow` to receive queue `queue`.
    #[must_use]
    pub fn new(flow: FlowSpec, queue: u32, place: u32) -> Self {
        // The tuple has the kind of the rule, the field's offset among the values, the field's
        // value, and its mask.
        let (kind, field, value, mask) = match flow {
            FlowSpec::Port {
                v6: false,
                tcp,
                port,
            } => (if tcp { TCP_V4 } else { UDP_V4 }, 10, port, 0xffff),
            FlowSpec::Port {
                v6: true,
                tcp,
                port,
            } => (if tcp { TCP_V6 } else { UDP_V6 }, 34, port, 0xffff),
            FlowSpec::EtherType(number) => (ETHERNET, 12, number, 0xffff),
            FlowSpec::Priority(number) => {
                (ETHERNET | EXTENDED, 62, u16::from(number) << 13, 0xe000_u16)
            }
        };
        let mut bytes = Box::new([0; Self::SIZE]);
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[Self::VALUES + field..][..2].copy_from_slice(&value.to_be_bytes());
        bytes[Self::MASKS + field..][..2].copy_from_slice(&mask.to_be_bytes());
        bytes[Self::QUEUE..][..8].copy_from_slice(&u64::from(queue).to_ne_bytes());
        Self(bytes).with_place(place)
    }

    /// Number of the rule's place in the table.
    #[must_use]
    pub fn place(&self) -> u32 {
        self.word(Self::PLACE)
    }

    /// Whether the rule steers all of `flow` to `queue`.
    #[must_use]
    pub fn brings(&self, flow: FlowSpec, queue: u32) -> bool {
        *self == Self::new(flow, queue, self.place())
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn with_place(mut self, place: u32) -> Self {
        self.0[Self::PLACE..][..4].copy_from_slice(&place.to_ne_bytes());
        self
    }

    /// Brings the rule into a normal form, in which equal rules have equal bytes. Some drivers
    /// return values without a mask, or set the flag `EXTENDED` in each rule.
    fn normal(mut self) -> Self {
        for at in Self::VALUES..Self::MASKS {
            self.0[at] &= self.0[at - Self::VALUES + Self::MASKS];
        }
        let extension = &self.0[Self::MASKS + Self::EXTENSION..Self::QUEUE];
        if extension.iter().all(|mask| *mask == 0) {
            let kind = self.word(0) & !EXTENDED;
            self.0[..4].copy_from_slice(&kind.to_ne_bytes());
        }
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

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |at: usize| {
            u16::from_be_bytes([self.0[Self::VALUES + at], self.0[Self::VALUES + at + 1]])
        };
        let queue = self.word(Self::QUEUE);
        let flow = match self.word(0) {
            kind @ (TCP_V4 | UDP_V4) => FlowSpec::Port {
                tcp: kind == TCP_V4,
                v6: false,
                port: field(10),
            },
            kind @ (TCP_V6 | UDP_V6) => FlowSpec::Port {
                tcp: kind == TCP_V6,
                v6: true,
                port: field(34),
            },
            ETHERNET => FlowSpec::EtherType(field(12)),
            _ => FlowSpec::Priority((field(62) >> 13) as u8),
        };
        if self.brings(flow, queue) {
            write!(formatter, "{flow} to queue {queue}")
        } else {
            formatter.write_str("a rule of somebody else's")
        }
    }
}

/// The structure `ethtool_rxnfc`, with room for the places of rules.
#[repr(C, align(8))]
struct RuleRequest {
    command: u32,
    kind: u32,
    data: u64,
    rule: [u8; Rule::SIZE],
    count: u32,
    places: [u32; MOST_RULES],
}

/// Most rules that a card may have if Weir is to steer its packets.
const MOST_RULES: usize = 1023;

fn ask(interface: &OpenInterface, command: u32, rule: Option<Rule>) -> io::Result<RuleRequest> {
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
    // SAFETY: all these commands use this structure, and it has room for as many places as it
    // states.
    unsafe { interface.ethtool(&mut request)? };
    Ok(request)
}

fn nothing() -> Rule {
    Rule(Box::new([0; Rule::SIZE]))
}

/// Reads the number of receive queues over which `interface` spreads packets.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver does not report this.
pub fn queues(interface: &OpenInterface) -> io::Result<u32> {
    let request = ask(interface, COUNT_QUEUES, None)?;
    Ok(u32::try_from(request.data).unwrap_or(u32::MAX))
}

/// The table of a card's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTable {
    /// The rules in the order of their places.
    pub rules: Vec<Rule>,
    /// Number of places in the table.
    pub places: u32,
}

impl RuleTable {
    /// Reads the table of `interface`.
    ///
    /// # Errors
    /// Fails with EOPNOTSUPP when the driver has no such table.
    pub fn read(interface: &OpenInterface) -> io::Result<Self> {
        let counted = ask(interface, COUNT_RULES, None)?;
        let listed = ask(interface, LIST_RULES, None)?;
        let taken = &listed.places[..(listed.count as usize).min(MOST_RULES)];
        let rules: io::Result<Vec<Option<Rule>>> =
            taken.iter().map(|&place| rule(interface, place)).collect();
        let mut rules: Vec<Rule> = rules?.into_iter().flatten().collect();
        rules.sort_by_key(Rule::place);
        Ok(Self {
            rules,
            // The highest bit of the number means that the driver has places with a special
            // meaning.
            places: (counted.data & 0x7fff_ffff) as u32,
        })
    }

    /// Places without a rule, the last one first. A rule at a later place applies after the others.
    pub fn free(&self) -> impl Iterator<Item = u32> {
        let is_free = |place: &u32| !self.rules.iter().any(|rule| rule.place() == *place);
        (0..self.places).rev().filter(is_free)
    }
}

/// Reads the rule at `place`. `None` when there is no rule.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver has no rules.
pub fn rule(interface: &OpenInterface, place: u32) -> io::Result<Option<Rule>> {
    match ask(interface, GET_RULE, Some(nothing().with_place(place))) {
        Ok(request) => Ok(Some(Rule(Box::new(request.rule)).normal())),
        // Drivers report a missing rule by different errors.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets `rule` at `place`, or removes the rule there.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver has no such rules, otherwise with its error.
pub fn set_rule(interface: &OpenInterface, place: u32, rule: Option<Rule>) -> io::Result<()> {
    match rule {
        Some(rule) => ask(interface, INSERT_RULE, Some(rule.with_place(place))),
        None => ask(interface, DELETE_RULE, Some(nothing().with_place(place))),
    }
    .map(drop)
}

/// The structure `ethtool_rxfh_indir`, with room for the largest table.
#[repr(C)]
struct SpreadRequest {
    command: u32,
    size: u32,
    queues: [u32; LONGEST_SPREAD],
}

/// Length of the longest table that can be read. The tables of drivers have up to some thousand
/// places.
const LONGEST_SPREAD: usize = 8192;

/// Reads the table of queues by which a card spreads the packets that no rule matches. The card
/// uses the lower bits of a packet's hash as the index.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver has no such table, and with ENOBUFS when the table is
/// longer than any known table.
pub fn spread(interface: &OpenInterface) -> io::Result<Vec<u32>> {
    let mut request = Box::new(SpreadRequest {
        command: GET_SPREAD,
        size: 0,
        queues: [0; LONGEST_SPREAD],
    });
    // SAFETY: with the size 0 the kernel writes only the table's size.
    unsafe { interface.ethtool(&mut *request)? };
    let size = request.size as usize;
    if size > LONGEST_SPREAD {
        return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
    }
    request.command = GET_SPREAD;
    // SAFETY: the stated size is that of the driver's table, and the structure has room for it.
    unsafe { interface.ethtool(&mut *request)? };
    Ok(request.queues[..size].to_vec())
}

/// Sets the table of queues. It must be as long as the table that [`spread`] returns.
///
/// # Errors
/// Fails with EOPNOTSUPP when the driver's table is fixed, and with EINVAL when the length is wrong
/// or a queue does not exist.
pub fn set_spread(interface: &OpenInterface, table: &[u32]) -> io::Result<()> {
    let mut request = Box::new(SpreadRequest {
        command: SET_SPREAD,
        size: u32::try_from(table.len()).unwrap_or(u32::MAX),
        queues: [0; LONGEST_SPREAD],
    });
    let to = request.queues.get_mut(..table.len());
    // An empty table is refused, since it would restore the driver's default.
    let to = to.filter(|to| !to.is_empty());
    to.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?
        .copy_from_slice(table);
    // SAFETY: the structure has as many places as it states.
    unsafe { interface.ethtool(&mut *request) }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The numbers are the offsets that a C compiler gives the members of the structure in
    /// <linux/ethtool.h>.
    #[test]
    fn the_structure_is_the_kernels() {
        assert_eq!(offset_of!(RuleRequest, rule), 16);
        assert_eq!(offset_of!(RuleRequest, count), 184);
        assert_eq!(offset_of!(RuleRequest, places), 188);
        assert_eq!(size_of::<SpreadRequest>(), 8 + 4 * LONGEST_SPREAD);
    }

    const FLOWS: [FlowSpec; 4] = [
        FlowSpec::Port {
            tcp: false,
            v6: false,
            port: 0x1234,
        },
        FlowSpec::Port {
            tcp: true,
            v6: true,
            port: 1,
        },
        FlowSpec::EtherType(0x88f7),
        FlowSpec::Priority(5),
    ];

    #[test]
    fn a_rule_names_the_field_and_the_queue() {
        let Rule(bytes) = Rule::new(FLOWS[0], 3, 7);
        assert_eq!(bytes[..4], 2_u32.to_ne_bytes());
        assert_eq!(bytes[14..16], [0x12, 0x34]);
        assert_eq!(bytes[86..88], [0xff, 0xff]);
        assert_eq!(bytes[152..160], 3_u64.to_ne_bytes());
        assert_eq!(bytes[160..164], 7_u32.to_ne_bytes());
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 7);
        let Rule(bytes) = Rule::new(FLOWS[1], 0, 0);
        let port = (bytes[0], bytes[39], bytes[110], bytes[111]);
        assert_eq!(port, (5, 1, 255, 255));
        let Rule(bytes) = Rule::new(FLOWS[2], 0, 0);
        assert_eq!(
            (bytes[0], &bytes[16..18], &bytes[88..90]),
            (0x12, &[0x88, 0xf7][..], &[0xff, 0xff][..])
        );
        let Rule(bytes) = Rule::new(FLOWS[3], 0, 0);
        assert_eq!(bytes[..4], 0x8000_0012_u32.to_ne_bytes());
        assert_eq!(
            (&bytes[66..68], &bytes[138..140]),
            (&[0xa0, 0][..], &[0xe0, 0][..])
        );
    }

    #[test]
    fn a_rule_says_what_it_does() {
        let texts = FLOWS.map(|flow| Rule::new(flow, 2, 9).to_string());
        assert_eq!(
            texts,
            [
                "UDP port 4660 over IPv4 to queue 2",
                "TCP port 1 over IPv6 to queue 2",
                "EtherType 0x88f7 to queue 2",
                "VLAN priority 5 to queue 2",
            ]
        );
        let mut narrower = Rule::new(FLOWS[0], 2, 9);
        narrower.0[Rule::MASKS] = 0xff;
        assert_eq!(narrower.to_string(), "a rule of somebody else's");
    }

    #[test]
    fn a_drivers_way_to_say_it_makes_no_other_rule() {
        for flow in FLOWS {
            let ours = Rule::new(flow, 1, 4);
            let mut answered = ours.clone();
            // The driver ixgbe answers with these bytes, to which the test adds a value without a
            // mask.
            let kind = answered.word(0) | EXTENDED;
            answered.0[..4].copy_from_slice(&kind.to_ne_bytes());
            answered.0[Rule::VALUES + 2] = 77;
            assert_eq!(answered.normal(), ours);
            assert!(ours.brings(flow, 1) && !ours.brings(flow, 2));
        }
    }

    #[test]
    fn free_places_are_the_last() {
        let rules = [7, 5].map(|place| Rule::new(FLOWS[0], 0, place)).to_vec();
        let rules = RuleTable { rules, places: 8 };
        assert_eq!(rules.free().take(3).collect::<Vec<_>>(), [6, 4, 3]);
    }
}
