// SPDX-License-Identifier: MIT OR Apache-2.0
//! DEMUX-PARSE-*: parses well-formed, truncated, mutated and random frames with core/ and with the
//! crate etherparse.

use crate::frames::{Extension, Frame, Network, frames};
use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_core_sys::demux::{
    Demux, DemuxReceiver, Outcome, Packet, Reason, SocketKey, parse, parse_plain,
};

/// Returns the EtherType after at most two tags, the offset of the bytes after it, and the number
/// of tags.
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

/// etherparse reads only one authentication header of an IPv4 packet; core/ reads all of them. If
/// there is a second one, this function returns the frame without the first. The packet begins at
/// `at`.
fn without_first_of_two(frame: &[u8], at: usize, lax: &LaxSlicedPacket<'_>) -> Option<Vec<u8>> {
    let Some(LaxNetSlice::Ipv4(ip)) = &lax.net else {
        return None;
    };
    let first = ip.extensions().auth?;
    if ip.payload().fragmented || first.next_header() != IpNumber::AUTHENTICATION_HEADER {
        return None;
    }
    let begin = at + ip.header().slice().len();
    let length = first.slice().len();
    let mut shorter = frame.to_vec();
    shorter.drain(begin..begin + length);
    let total = u16::from_be_bytes([frame[at + 2], frame[at + 3]]) - length as u16;
    shorter[at + 2..at + 4].copy_from_slice(&total.to_be_bytes());
    Some(shorter)
}

/// Checks everything on which core/ and etherparse must agree for any bytes.
fn agree(frame: &[u8]) -> Result<(), TestCaseError> {
    let mine = parse(frame);
    let outcome = mine.outcome();
    if let Some(plain) = parse_plain(frame) {
        prop_assert_eq!(plain, mine);
    }
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
    // etherparse does not compare the EtherType with the version in the IP header.
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
    // etherparse treats an IPv6 packet of length 0 as a jumbogram, which Ethernet cannot carry.
    if ethertype == 0x86dd && frame.get(at + 4..at + 6) == Some(&[0, 0]) && frame.len() >= at + 40 {
        let next = frame[at + 6];
        if matches!(next, 0 | 6 | 17 | 43 | 44 | 51 | 60) {
            prop_assert_eq!(outcome, Err(Reason::Malformed));
        } else {
            prop_assert_eq!(outcome, Ok(Outcome::OtherProtocol(next)));
        }
        return Ok(());
    }
    // etherparse accepts an IPv4 packet that is shorter than its header.
    if let (0x0800, Some(ip)) = (ethertype, frame.get(at..at + 20)) {
        if u16::from_be_bytes([ip[2], ip[3]]) < u16::from(ip[0] & 0x0f) * 4 {
            prop_assert_eq!(outcome, Err(Reason::Malformed));
            return Ok(());
        }
    }
    if let Some(shorter) = without_first_of_two(frame, at, &lax) {
        if outcome != Err(Reason::TooDeep) {
            prop_assert_eq!(parse(&shorter).outcome(), outcome);
        }
        return agree(&shorter);
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
    // The frame is malformed or truncated. Everything that core/ finds in it, etherparse finds,
    // too.
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
        // etherparse reads on after a fragment header, and may fail there.
        Ok(Outcome::FirstFragment(_) | Outcome::LaterFragment(_)) => {
            prop_assert!(payload.expect("it is IP").fragmented)
        }
        Ok(Outcome::NotIp) => prop_assert!(false, "it is IP"),
        Err(_) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::cases(2000, 20_000))]

    /// DEMUX-PARSE-2: a well-formed frame is parsed correctly, and padding is not mistaken for a
    /// port. DEMUX-PARSE-3: a truncated frame gives exactly what its bytes contain.
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

    /// DEMUX-PARSE-2 and -3 for frames with corrupted bytes.
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

    /// Parses random bytes after an EtherType.
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

/// DEMUX-PARSE-5: the fast parser accepts frames with headers at the usual offsets and no others.
#[test]
fn frames_with_their_headers_in_the_usual_places_are_plain() {
    let padded = |network, tags| {
        let mut bytes = udp_frame(network, tags);
        bytes.resize(bytes.len().max(60), 0);
        bytes
    };
    for network in [V4, Network::V6(Vec::new())] {
        let bytes = padded(network, Vec::new());
        let plain = parse_plain(&bytes);
        assert_eq!(plain, Some(parse(&bytes)));
        let outcome = plain.map(|packet| packet.outcome());
        let udp = Outcome::Port {
            protocol: 17,
            port: 5000,
        };
        assert_eq!(outcome, Some(Ok(udp)));
        assert_eq!(parse_plain(&bytes[..57]), None);
    }
    let options = Network::V4 {
        options: 1,
        offset: 0,
        more: false,
        is_authenticated: false,
    };
    assert_eq!(parse_plain(&padded(options, Vec::new())), None);
    assert_eq!(parse_plain(&padded(V4, vec![(0x8100, 5)])), None);
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

/// DEMUX-PARSE-2: headers after two authentication headers are parsed. If the second one is
/// invalid, the frame is malformed.
#[test]
fn ipv4_may_have_two_authentication_headers() {
    let network = Network::V4 {
        options: 0,
        offset: 0,
        more: false,
        is_authenticated: true,
    };
    let one = udp_frame(network, Vec::new());
    let (begin, length) = (34, (usize::from(one[35]) + 2) * 4);
    let mut two = one.clone();
    two.splice(begin..begin, one[begin..begin + length].to_vec());
    two[begin] = 51;
    let total = u16::from_be_bytes([one[16], one[17]]) + length as u16;
    two[16..18].copy_from_slice(&total.to_be_bytes());
    let port = Ok(Outcome::Port {
        protocol: 17,
        port: 5000,
    });
    assert_eq!(parse(&two).outcome(), port);
    agree(&two).unwrap();
    let mut wrong = one;
    wrong[begin] = 51;
    // The length of a UDP header is not valid for an authentication header.
    wrong[begin + length + 1] = 0;
    assert_eq!(parse(&wrong).outcome(), Err(Reason::Malformed));
    agree(&wrong).unwrap();
}

fn found(demux: &Demux, bytes: &[u8]) -> (Option<u8>, DemuxReceiver) {
    let found = demux.classify(&parse(bytes));
    (found.class, found.receiver)
}

/// DEMUX-LOOKUP-2: the port takes precedence over the protocol, the EtherType and the VLAN
/// priority, in this order. Fragments and orphans come last.
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
    assert_eq!(found(&demux, &whole), (Some(0), DemuxReceiver::Orphan));
    assert_eq!(found(&demux, &fragment), (Some(1), DemuxReceiver::Fragment));
    for (key, class) in [
        (SocketKey::pcp(6), 10),
        (SocketKey::ethertype(0x0800), 11),
        (SocketKey::protocol(17), 12),
        (SocketKey::udp(5000), 13),
    ] {
        demux.bind(key, u16::from(class), class).unwrap();
        assert_eq!(
            found(&demux, &whole),
            (Some(class), DemuxReceiver::Bound(u16::from(class)))
        );
        // A fragment matches all keys except the port.
        let of_fragment = class.min(12);
        assert_eq!(
            found(&demux, &fragment),
            (
                Some(of_fragment),
                DemuxReceiver::Bound(u16::from(of_fragment))
            )
        );
        assert_eq!(found(&demux, cut), (Some(0), DemuxReceiver::Orphan));
    }
}

/// DEMUX-LOOKUP-3: a packet without a reader is never urgent, and a card drops it.
#[test]
fn orphans_and_fragments_are_dropped_if_asked() {
    let demux = Demux::new(1, 1, None, None).unwrap();
    let fragment = udp_frame(Network::V6(vec![Extension::Fragment(0, true)]), Vec::new());
    assert_eq!(
        found(&demux, &udp_frame(V4, Vec::new())),
        (None, DemuxReceiver::Orphan)
    );
    assert_eq!(found(&demux, &fragment), (None, DemuxReceiver::Fragment));
    assert_eq!(found(&demux, &[]), (None, DemuxReceiver::Orphan));
}

/// DEMUX-PARSE-4: the parser skips up to the stated number of extension headers and rejects one
/// more.
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
