// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares the frames of a flood.
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv4Packet, Icmpv4Repr,
    IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};

use crate::cable::LEAST;
use crate::error::PlanError;
use crate::frame::{ETHERNET, FloodPlan, FrameKind, HEADERS, PEER_ETHERNET, SOURCE_PORT};
use crate::plan::Plan;
use crate::spoof::Spoofer;

/// The identifier in the flood's ICMP echo requests.
pub(crate) const IDENTIFIER: u16 = 0xf100;
/// The destination port of malformed datagrams.
const DISCARD: u16 = 9;
/// The offset of a flood's fragments within their datagrams, in bytes. One other fragment would
/// come before them.
const FRAGMENT_OFFSET: u16 = 1480;
/// The most bytes in which a malformed frame differs from a valid one.
const MOST_WRONG: usize = 8;

/// Generates the frames of a flood.
pub(crate) struct Frames {
    kind: FrameKind,
    others: Spoofer,
    whole: Vec<u8>,
    frame: Vec<u8>,
    random: ChaCha8Rng,
}

impl Frames {
    pub(crate) fn new(plan: &Plan, flood: &FloodPlan) -> Result<Self, PlanError> {
        let length = flood.frames.length(flood)?;
        let mut whole = match flood.frames {
            FrameKind::Echo => echo(plan, length),
            FrameKind::Udp(port) => datagram(plan, length, port),
            FrameKind::Syn(_) | FrameKind::Segment(_) | FrameKind::Arp => vec![0; length],
            _ => datagram(plan, length.max(LEAST), DISCARD),
        };
        whole.truncate(length);
        Ok(Self {
            kind: flood.frames,
            others: Spoofer::new(plan),
            frame: whole.clone(),
            whole,
            random: ChaCha8Rng::seed_from_u64(flood.seed),
        })
    }

    /// Returns the next frame. An echo request gets the sequence number.
    pub(crate) fn next(&mut self, sequence: u16) -> &[u8] {
        match self.kind {
            FrameKind::Echo => {
                let mut packet = Icmpv4Packet::new_unchecked(&mut self.frame[HEADERS - 8..]);
                packet.set_echo_seq_no(sequence);
                packet.fill_checksum();
            }
            FrameKind::Malformed => {
                self.frame.copy_from_slice(&self.whole);
                for _ in 0..self.random.random_range(1..=MOST_WRONG) {
                    let at = self.random.random_range(ETHERNET - 2..self.frame.len());
                    self.frame[at] = self.random.random();
                }
            }
            FrameKind::Fragment => {
                let mut packet = Ipv4Packet::new_unchecked(&mut self.frame[ETHERNET..]);
                packet.set_ident(sequence);
                packet.set_frag_offset(FRAGMENT_OFFSET);
                packet.fill_checksum();
            }
            FrameKind::Syn(port) => {
                self.others
                    .segment(&mut self.frame, &mut self.random, port, true);
            }
            FrameKind::Segment(port) => {
                self.others
                    .segment(&mut self.frame, &mut self.random, port, false);
            }
            FrameKind::Arp => self.others.question(&mut self.frame, &mut self.random),
            FrameKind::Udp(_) | FrameKind::Truncated | FrameKind::Oversized => {}
        }
        &self.frame
    }
}

/// Returns a frame of `length` bytes to the guest with the given protocol, whose payload `emit`
/// writes.
fn ipv4(plan: &Plan, length: usize, protocol: IpProtocol, emit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut ethernet = EthernetFrame::new_unchecked(&mut bytes);
    EthernetRepr {
        src_addr: EthernetAddress(PEER_ETHERNET),
        dst_addr: EthernetAddress(plan.guest_ethernet),
        ethertype: EthernetProtocol::Ipv4,
    }
    .emit(&mut ethernet);
    let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
    Ipv4Repr {
        src_addr: plan.address,
        dst_addr: plan.guest,
        next_header: protocol,
        payload_len: length - ETHERNET - 20,
        hop_limit: 64,
    }
    .emit(&mut packet, &ChecksumCapabilities::default());
    emit(packet.payload_mut());
    bytes
}

/// Returns an echo request whose checksum has not been computed yet.
fn echo(plan: &Plan, length: usize) -> Vec<u8> {
    let data = vec![0; length - HEADERS];
    ipv4(plan, length, IpProtocol::Icmp, |payload| {
        Icmpv4Repr::EchoRequest {
            ident: IDENTIFIER,
            seq_no: 0,
            data: &data,
        }
        .emit(
            &mut Icmpv4Packet::new_unchecked(payload),
            &ChecksumCapabilities::default(),
        );
    })
}

fn datagram(plan: &Plan, length: usize, port: u16) -> Vec<u8> {
    let (source, destination) = (plan.address.into(), plan.guest.into());
    ipv4(plan, length, IpProtocol::Udp, |payload| {
        UdpRepr {
            src_port: SOURCE_PORT,
            dst_port: port,
        }
        .emit(
            &mut UdpPacket::new_unchecked(payload),
            &source,
            &destination,
            length - HEADERS,
            |data| data.fill(0),
            &ChecksumCapabilities::default(),
        );
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::wire::{ArpOperation, ArpPacket, TcpPacket};
    use std::net::Ipv4Addr;

    fn frames(rest: &str) -> Result<Frames, PlanError> {
        let plan = Plan::parse(&format!(
            r#"{{"end": "1s", "flood": {{"pattern": "1kHz", "begin": "1ms", "end": "2ms", {rest}}}}}"#
        ))?;
        Frames::new(&plan, plan.flood.as_ref().unwrap())
    }

    #[test]
    fn a_datagram_is_whole() {
        let mut frames = frames(r#""frames": {"udp": 5000}, "length": 120"#).unwrap();
        let ethernet = EthernetFrame::new_checked(frames.next(7)).unwrap();
        let ipv4 = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
        assert!(ipv4.verify_checksum());
        let udp = UdpPacket::new_checked(ipv4.payload()).unwrap();
        assert!(udp.verify_checksum(&ipv4.src_addr().into(), &ipv4.dst_addr().into()));
        assert_eq!((udp.dst_port(), udp.payload().len()), (5000, 120 - HEADERS));
    }

    #[test]
    fn broken_frames_are_broken_in_their_way() {
        let mut short = frames(r#""frames": "truncated""#).unwrap();
        let bytes = short.next(0);
        assert_eq!(bytes.len(), 30);
        assert!(Ipv4Packet::new_checked(&bytes[ETHERNET..]).is_err());
        assert_eq!(
            frames(r#""frames": "oversized""#).unwrap().next(0).len(),
            1600
        );
        let mut wrong = frames(r#""frames": "malformed""#).unwrap();
        let whole = wrong.whole.clone();
        let differ = (0..100).filter(|_| wrong.next(0) != whole).count();
        assert!(differ > 95, "{differ}");
        assert!((0..100).all(|_| wrong.next(0)[..12] == whole[..12]));
    }

    /// Returns the packet of a frame and its source address.
    fn packet(frame: &[u8]) -> (Ipv4Packet<&[u8]>, Ipv4Addr) {
        let ethernet = EthernetFrame::new_checked(frame).unwrap();
        let packet = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
        assert!(packet.verify_checksum());
        assert_eq!(packet.dst_addr(), Ipv4Addr::new(10, 0, 0, 2));
        let from = packet.src_addr();
        (packet, from)
    }

    #[test]
    fn segments_are_whole_and_from_hosts_that_do_not_exist() {
        for (kind, is_first) in [("syn", true), ("segment", false)] {
            let mut frames = frames(&format!(r#""frames": {{"{kind}": 502}}"#)).unwrap();
            let mut hosts = std::collections::BTreeSet::new();
            for number in 0..1000 {
                let (packet, host) = packet(frames.next(number));
                assert_eq!(host.octets()[..3], [10, 0, 0]);
                assert!((3..255).contains(&host.octets()[3]), "{host}");
                hosts.insert(host);
                let tcp = TcpPacket::new_checked(packet.payload()).unwrap();
                assert!(tcp.verify_checksum(&host.into(), &packet.dst_addr().into()));
                assert_eq!((tcp.dst_port(), tcp.syn()), (502, is_first));
                assert_eq!(tcp.payload().is_empty(), is_first);
            }
            assert!(hosts.len() > 200);
        }
    }

    #[test]
    fn fragments_are_of_many_datagrams() {
        let mut frames = frames(r#""frames": "fragment""#).unwrap();
        for number in 0..100 {
            let (packet, _) = packet(frames.next(number));
            assert_eq!((packet.ident(), packet.frag_offset()), (number, 1480));
            assert!(!packet.more_frags());
        }
    }

    #[test]
    fn questions_are_for_the_guest() {
        let mut frames = frames(r#""frames": "arp""#).unwrap();
        let ethernet = EthernetFrame::new_checked(frames.next(0)).unwrap();
        let arp = ArpPacket::new_checked(ethernet.payload()).unwrap();
        assert_eq!(arp.operation(), ArpOperation::Request);
        assert_eq!(arp.target_protocol_addr(), [10, 0, 0, 2]);
        assert_eq!(arp.source_hardware_addr(), ethernet.src_addr().as_bytes());
    }

    #[test]
    fn other_lengths_are_refused() {
        for (rest, reason) in [
            (r#""length": 59"#, "from 60 to 1514 bytes, not 59"),
            (
                r#""frames": "truncated", "length": 60"#,
                "from 14 to 59 bytes, not 60",
            ),
            (
                r#""frames": "oversized", "length": 2048"#,
                "from 1515 to 2047 bytes, not 2048",
            ),
            (r#""frames": "odd""#, "unknown variant `odd`"),
        ] {
            let message = frames(rest).err().unwrap().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
