// SPDX-License-Identifier: MIT OR Apache-2.0
//! DEMUX-PARSE-*: frames that are well formed, cut off, mutated and random, read here and by the crate etherparse.

use etherparse::{LaxNetSlice, LaxSlicedPacket, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_core_sys::demux::{Demux, Key, Outcome, Packet, Reason, Receiver, parse};

/// An IPv6 extension header, or IPv4's authentication header.
#[derive(Clone, Debug)]
enum Extension {
    /// The protocol number of a header of so many units of 8 bytes, less one.
    Options(u8, u8),
    /// Offset in units of 8 bytes, and whether more follow.
    Fragment(u16, bool),
    /// So many words of check value.
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
enum Network {
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
struct Frame {
    tags: Vec<(u16, u16)>,
    network: Network,
    protocol: u8,
    port: u16,
    payload: Vec<u8>,
    padding: usize,
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
    /// The frame, and how many of its bytes the parser needs.
    fn bytes(&self) -> (Vec<u8>, usize) {
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

fn frames() -> impl Strategy<Value = Frame> {
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

/// What etherparse says that a frame is, as far as it is of one mind with the standards that this parser follows.
fn ethertype_of(frame: &[u8]) -> Option<(u16, usize, usize)> {
    let mut at = 12;
    let mut tags = 0;
    loop {
        let ethertype = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if tags == 2 || !matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
            return Some((ethertype, at + 2, tags));
        }
        at += 4;
        tags += 1;
    }
}

/// Everything that must hold between this parser and etherparse, whatever the bytes are.
fn agree(frame: &[u8]) -> Result<(), TestCaseError> {
    let mine = parse(frame);
    let outcome = mine.outcome();
    let Some((ethertype, at, tags)) = ethertype_of(frame) else {
        prop_assert_eq!(outcome, Err(Reason::Truncated));
        return Ok(());
    };
    let lax = LaxSlicedPacket::from_ethernet(frame).expect("an Ethernet header is there");
    prop_assert_eq!(mine.ethertype(), (ethertype >= 0x600).then_some(ethertype));
    let vlan = lax.link_exts.first().and_then(|tag| match tag {
        etherparse::LaxLinkExtSlice::Vlan(tag) => Some((
            tag.vlan_identifier().value(),
            tag.priority_code_point().value(),
        )),
        _ => None,
    });
    prop_assert_eq!(mine.tag(), if tags == 0 { None } else { vlan });
    if ethertype != 0x0800 && ethertype != 0x86dd {
        prop_assert_eq!(outcome, Ok(Outcome::NotIp));
        return Ok(());
    }
    // etherparse goes by the version in the header alone.
    let Some(version) = frame.get(at).map(|first| first >> 4) else {
        prop_assert_eq!(outcome, Err(Reason::Truncated));
        return Ok(());
    };
    if version != if ethertype == 0x0800 { 4 } else { 6 } {
        prop_assert!(
            matches!(outcome, Err(Reason::Malformed | Reason::Truncated)),
            "{:?}",
            outcome
        );
        return Ok(());
    }
    // It takes an IPv6 packet of length 0 for a jumbogram, which Ethernet cannot carry.
    if ethertype == 0x86dd && frame.get(at + 4..at + 6) == Some(&[0, 0]) && frame.len() >= at + 40 {
        let next = frame[at + 6];
        if matches!(next, 0 | 6 | 17 | 43 | 44 | 51 | 60) {
            prop_assert_eq!(outcome, Err(Reason::Malformed));
        } else {
            prop_assert_eq!(outcome, Ok(Outcome::OtherProtocol(next)));
        }
        return Ok(());
    }
    if let Ok(strict) = SlicedPacket::from_ethernet(frame) {
        let (fragmented, number) = match &strict.net {
            Some(NetSlice::Ipv4(ip)) => (ip.payload().fragmented, ip.payload().ip_number),
            Some(NetSlice::Ipv6(ip)) => (ip.payload().fragmented, ip.payload().ip_number),
            other => panic!("{other:?} of version {version}"),
        };
        match (&strict.transport, outcome) {
            (_, Err(Reason::TooDeep)) => prop_assert_eq!(version, 6),
            _ if fragmented => {
                prop_assert!(
                    matches!(
                        outcome,
                        Ok(Outcome::FirstFragment(_) | Outcome::LaterFragment(_))
                    ),
                    "{:?}",
                    outcome
                );
            }
            (Some(TransportSlice::Udp(udp)), _) => {
                prop_assert_eq!(
                    outcome,
                    Ok(Outcome::Port {
                        protocol: 17,
                        port: udp.destination_port()
                    })
                );
            }
            (Some(TransportSlice::Tcp(tcp)), _) => {
                prop_assert_eq!(
                    outcome,
                    Ok(Outcome::Port {
                        protocol: 6,
                        port: tcp.destination_port()
                    })
                );
            }
            _ => prop_assert_eq!(outcome, Ok(Outcome::OtherProtocol(number.0))),
        }
        return Ok(());
    }
    // Something is wrong with it, or it is cut off: what is found nevertheless, etherparse finds there, too.
    let payload = match &lax.net {
        Some(LaxNetSlice::Ipv4(ip)) => Some(ip.payload()),
        Some(LaxNetSlice::Ipv6(ip)) => Some(ip.payload()),
        _ => None,
    };
    match outcome {
        Ok(Outcome::Port { protocol, port }) => {
            let payload = payload.expect("there is a port");
            prop_assert_eq!(payload.ip_number.0, protocol);
            prop_assert_eq!(&payload.payload[2..4], &port.to_be_bytes());
            prop_assert!(!payload.fragmented);
        }
        Ok(Outcome::OtherProtocol(protocol)) => {
            let payload = payload.expect("there is a protocol");
            prop_assert_eq!(payload.ip_number.0, protocol);
            prop_assert!(!payload.fragmented);
        }
        // Behind a fragment's header etherparse goes on reading, and may stumble.
        Ok(Outcome::FirstFragment(_) | Outcome::LaterFragment(_)) => {
            prop_assert!(payload.expect("it is IP").fragmented)
        }
        Ok(Outcome::NotIp) => prop_assert!(false, "it is IP"),
        Err(_) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// DEMUX-PARSE-2: a well-formed frame is read right, padding is not taken for a port, and (DEMUX-PARSE-3) of the beginning of one exactly what is
    /// there is told.
    #[test]
    fn well_formed_frames_and_their_beginnings(frame in frames()) {
        let (bytes, needed) = frame.bytes();
        agree(&bytes)?;
        let whole = parse(&bytes);
        let deep = matches!(&frame.network, Network::V6(extensions) if extensions.len() > 6);
        let deep = deep && whole.outcome() == Err(Reason::TooDeep);
        prop_assert!(deep || whole.outcome().is_ok(), "{:?}", whole.outcome());
        for length in 0..bytes.len() {
            let part = parse(&bytes[..length]);
            agree(&bytes[..length])?;
            if !deep && length < needed {
                prop_assert_eq!(part.outcome(), Err(Reason::Truncated), "{} of {}", length, needed);
            } else if !deep {
                prop_assert_eq!(part, whole, "{} of {}", length, needed);
            }
        }
    }

    /// DEMUX-PARSE-2 and -3 on frames with wrong bytes.
    #[test]
    fn mutated_frames(frame in frames(), mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>()) {
        let (mut bytes, _) = frame.bytes();
        for (index, byte) in mutations {
            let at = 12 + index.index(bytes.len() - 12);
            bytes[at] = byte;
        }
        agree(&bytes)?;
        agree(&bytes[..cut.index(bytes.len() + 1)])?;
    }

    /// Random bytes behind an EtherType.
    #[test]
    fn random_frames(is_v6 in any::<bool>(), mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        agree(&bytes)?;
        if bytes.len() > 14 {
            bytes[12..14].copy_from_slice(if is_v6 { &[0x86, 0xdd] } else { &[8, 0] });
            bytes[14] = if is_v6 { 0x60 } else { 0x45 };
            agree(&bytes)?;
        }
    }
}

fn udp_frame(network: Network, tags: Vec<(u16, u16)>) -> Vec<u8> {
    let frame = Frame {
        tags,
        network,
        protocol: 17,
        port: 5000,
        payload: vec![1, 2, 3],
        padding: 0,
    };
    frame.bytes().0
}

const V4: Network = Network::V4 {
    options: 0,
    offset: 0,
    more: false,
    is_authenticated: false,
};

fn found(demux: &Demux, bytes: &[u8]) -> (Option<u8>, Receiver) {
    let found = demux.classify(&parse(bytes));
    (found.class, found.receiver)
}

/// DEMUX-LOOKUP-2: the port before the protocol, before the EtherType, before the VLAN priority; then fragments and orphans.
#[test]
fn the_most_specific_socket_gets_the_frame() {
    let mut demux = Demux::new(16, 16, Some(0), Some(1)).unwrap();
    let whole = udp_frame(V4, vec![(0x8100, 6 << 13 | 12)]);
    let fragment = udp_frame(
        Network::V4 {
            options: 0,
            offset: 5,
            more: true,
            is_authenticated: false,
        },
        vec![(0x8100, 6 << 13 | 12)],
    );
    let cut = &whole[..30];
    assert_eq!(found(&demux, &whole), (Some(0), Receiver::Orphan));
    assert_eq!(found(&demux, &fragment), (Some(1), Receiver::Fragment));
    for (key, class) in [
        (Key::pcp(6), 10),
        (Key::ethertype(0x0800), 11),
        (Key::protocol(17), 12),
        (Key::udp(5000), 13),
    ] {
        demux.bind(key, u16::from(class), class).unwrap();
        assert_eq!(
            found(&demux, &whole),
            (Some(class), Receiver::Bound(u16::from(class)))
        );
        // A fragment has everything but the port.
        let of_fragment = class.min(12);
        assert_eq!(
            found(&demux, &fragment),
            (Some(of_fragment), Receiver::Bound(u16::from(of_fragment)))
        );
        assert_eq!(found(&demux, cut), (Some(0), Receiver::Orphan));
    }
}

/// DEMUX-LOOKUP-3: nothing is urgent that nobody reads; a card drops it.
#[test]
fn orphans_and_fragments_are_dropped_if_asked() {
    let demux = Demux::new(1, 1, None, None).unwrap();
    let fragment = udp_frame(Network::V6(vec![Extension::Fragment(0, true)]), Vec::new());
    assert_eq!(
        found(&demux, &udp_frame(V4, Vec::new())),
        (None, Receiver::Orphan)
    );
    assert_eq!(found(&demux, &fragment), (None, Receiver::Fragment));
    assert_eq!(found(&demux, &[]), (None, Receiver::Orphan));
}

/// DEMUX-PARSE-4: so many extension headers, and no more.
#[test]
fn extension_headers_are_bounded() {
    for count in 0..10 {
        let bytes = udp_frame(
            Network::V6(vec![Extension::Options(60, 0); count]),
            Vec::new(),
        );
        let expected = if count <= 6 {
            Ok(Outcome::Port {
                protocol: 17,
                port: 5000,
            })
        } else {
            Err(Reason::TooDeep)
        };
        assert_eq!(parse(&bytes).outcome(), expected, "{count}");
    }
    for count in 0..5 {
        let packet: Packet = parse(&udp_frame(V4, vec![(0x88a8, 7); count]));
        let expected = if count <= 2 {
            Ok(Outcome::Port {
                protocol: 17,
                port: 5000,
            })
        } else {
            Ok(Outcome::NotIp)
        };
        assert_eq!(packet.outcome(), expected, "{count}");
        assert_eq!(packet.tag(), (count > 0).then_some((7, 0)));
    }
}
