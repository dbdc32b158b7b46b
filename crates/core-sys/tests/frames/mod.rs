// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds frames from descriptions of their headers.

use proptest::prelude::*;

/// An IPv6 extension header, or an IPv4 authentication header.
#[derive(Clone, Debug)]
pub enum Extension {
    /// A protocol number, and the header's length in units of 8 bytes, minus 1.
    Options(u8, u8),
    /// The offset in units of 8 bytes, and whether more fragments follow.
    Fragment(u16, bool),
    /// The number of words of the integrity check value.
    Authentication(u8),
}

impl Extension {
    fn number(&self) -> u8 {
        match self {
            Extension::Options(number, _) => *number,
            Extension::Fragment(..) => 44,
            Extension::Authentication(_) => 51,
        }
    }

    fn bytes(&self, next: u8) -> Vec<u8> {
        let (units, size) = match self {
            Extension::Options(_, units) => (*units, (usize::from(*units) + 1) * 8),
            Extension::Fragment(..) => (0, 8),
            Extension::Authentication(words) => (words + 1, (usize::from(*words) + 3) * 4),
        };
        let mut bytes = vec![0; size];
        bytes[0] = next;
        bytes[1] = units;
        if let Extension::Fragment(offset, more) = self {
            bytes[2..4].copy_from_slice(&((offset << 3) | u16::from(*more)).to_be_bytes());
        }
        bytes
    }
}

#[derive(Clone, Debug)]
pub enum Network {
    Other(u16, Vec<u8>),
    V4 {
        options: u8,
        offset: u16,
        more: bool,
        is_authenticated: bool,
    },
    V6(Vec<Extension>),
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub tags: Vec<(u16, u16)>,
    pub network: Network,
    pub protocol: u8,
    pub port: u16,
    pub payload: Vec<u8>,
    pub padding: usize,
}

fn transport(protocol: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = match protocol {
        17 => vec![0; 8],
        6 => vec![0; 20],
        _ => return payload.to_vec(),
    };
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    if protocol == 17 {
        bytes[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    } else {
        bytes[12] = 5 << 4;
    }
    bytes.extend(payload);
    bytes
}

impl Frame {
    /// Returns the frame, and how many of its bytes the parser needs.
    pub fn bytes(&self) -> (Vec<u8>, usize) {
        let mut bytes = vec![0x02; 12];
        for &(kind, control) in &self.tags {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(control.to_be_bytes());
        }
        let inner = transport(self.protocol, self.port, &self.payload);
        let (ethertype, extensions) = match &self.network {
            Network::Other(ethertype, payload) => {
                bytes.extend(ethertype.to_be_bytes());
                let needed = bytes.len();
                bytes.extend(payload);
                return (bytes, needed);
            }
            Network::V4 {
                is_authenticated: true,
                ..
            } => (0x0800_u16, vec![Extension::Authentication(2)]),
            Network::V4 { .. } => (0x0800, Vec::new()),
            Network::V6(extensions) => (0x86dd, extensions.clone()),
        };
        bytes.extend(ethertype.to_be_bytes());
        let mut chain = Vec::new();
        let mut first = self.protocol;
        for extension in extensions.iter().rev() {
            chain.splice(0..0, extension.bytes(first));
            first = extension.number();
        }
        let behind = chain.len() + inner.len();
        let mut needed_behind = chain.len();
        if let Network::V4 {
            options,
            offset,
            more,
            ..
        } = self.network
        {
            let header = 20 + usize::from(options) * 4;
            let mut ip = vec![0; header];
            ip[0] = 0x45 + options;
            ip[2..4].copy_from_slice(&((header + behind) as u16).to_be_bytes());
            ip[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
            ip[9] = first;
            bytes.extend(ip);
            if offset != 0 || more {
                let needed = bytes.len();
                bytes.extend(chain.iter().chain(&inner));
                return (bytes, needed);
            }
        } else {
            let mut ip = vec![0; 40];
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
            ip[6] = first;
            bytes.extend(ip);
            let mut length = 0;
            for extension in &extensions {
                length += extension.bytes(0).len();
                if matches!(extension, Extension::Fragment(offset, more) if *offset != 0 || *more) {
                    needed_behind = length;
                    break;
                }
            }
        }
        let is_whole = needed_behind == chain.len()
            && !matches!(extensions.last(), Some(Extension::Fragment(offset, more)) if *offset != 0 || *more);
        let needed = bytes.len()
            + needed_behind
            + if is_whole && matches!(self.protocol, 6 | 17) {
                4
            } else {
                0
            };
        bytes.extend(chain.iter().chain(&inner));
        bytes.extend(vec![0xaa; self.padding]);
        (bytes, needed)
    }
}

fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    let one = prop_oneof![
        (prop_oneof![Just(43_u8), Just(60)], 0_u8..4)
            .prop_map(|(number, units)| Extension::Options(number, units)),
        (0_u16..3, any::<bool>()).prop_map(|(offset, more)| Extension::Fragment(offset, more)),
        Just(Extension::Fragment(0, false)),
        (1_u8..5).prop_map(Extension::Authentication),
    ];
    (prop::option::of(0_u8..3), prop::collection::vec(one, 0..6)).prop_map(
        |(hop_by_hop, mut rest)| {
            if let Some(units) = hop_by_hop {
                rest.insert(0, Extension::Options(0, units));
            }
            rest
        },
    )
}

pub fn frames() -> impl Strategy<Value = Frame> {
    let tag = (
        prop_oneof![Just(0x8100_u16), Just(0x88a8), Just(0x9100)],
        any::<u16>(),
    );
    let bytes = || prop::collection::vec(any::<u8>(), 0..30);
    let other = prop_oneof![
        Just(0x0806_u16),
        Just(0x88f7),
        Just(0x88a4),
        Just(46),
        0x600_u16..0x700
    ];
    let network = prop_oneof![
        1 => (other, bytes()).prop_map(|(ethertype, payload)| Network::Other(ethertype, payload)),
        4 => (0_u8..11, prop_oneof![4 => Just(0_u16), 1 => 0_u16..0x2000], prop::bool::weighted(0.1), prop::bool::weighted(0.2)).prop_map(
            |(options, offset, more, is_authenticated)| Network::V4 { options, offset, more, is_authenticated }
        ),
        4 => extensions().prop_map(Network::V6),
    ];
    let protocol = prop_oneof![4 => Just(17_u8), 3 => Just(6), 1 => Just(1), 1 => Just(58), 1 => Just(50), 1 => Just(132)];
    (
        prop::collection::vec(tag, 0..3),
        network,
        protocol,
        any::<u16>(),
        bytes(),
        0_usize..20,
    )
        .prop_map(|(tags, network, protocol, port, payload, padding)| Frame {
            tags,
            network,
            protocol,
            port,
            payload,
            padding,
        })
}
