// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a flood with the addresses of nonexistent hosts as their source.
use std::net::Ipv4Addr;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

use crate::frame::{ETHERNET, SOURCE_PORT};
use crate::plan::Plan;

/// The last byte of the broadcast address in a network of 256 addresses.
const BROADCAST: u8 = 255;

/// Writes frames whose source is another, nonexistent host of the guest's network.
pub(crate) struct Spoofer {
    guest: Ipv4Addr,
    guest_ethernet: [u8; 6],
    /// The greater of the last bytes of the guest's and the peer's address. Nonexistent hosts have
    /// greater ones.
    least: u8,
}

impl Spoofer {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            guest: plan.guest,
            guest_ethernet: plan.guest_ethernet,
            least: plan.address.octets()[3].max(plan.guest.octets()[3]),
        }
    }

    /// Returns the addresses of a random nonexistent host.
    fn host(&self, random: &mut ChaCha8Rng) -> (Ipv4Addr, EthernetAddress) {
        let [a, b, c, _] = self.guest.octets();
        let last = random.random_range(self.least.saturating_add(1).min(BROADCAST - 1)..BROADCAST);
        let ethernet = EthernetAddress([0x52, 0x54, 0, 0, 1, last]);
        (Ipv4Addr::new(a, b, c, last), ethernet)
    }

    fn ethernet<'a>(
        &self,
        frame: &'a mut [u8],
        from: EthernetAddress,
        ethertype: EthernetProtocol,
    ) -> &'a mut [u8] {
        EthernetRepr {
            src_addr: from,
            dst_addr: EthernetAddress(self.guest_ethernet),
            ethertype,
        }
        .emit(&mut EthernetFrame::new_unchecked(&mut *frame));
        &mut frame[ETHERNET..]
    }

    /// Writes a TCP segment that fills the frame. It is the first segment of a connection or one in
    /// its middle.
    pub(crate) fn segment(
        &self,
        frame: &mut [u8],
        random: &mut ChaCha8Rng,
        port: u16,
        is_first: bool,
    ) {
        let (host, ethernet) = self.host(random);
        let data = vec![0; frame.len() - ETHERNET - 20 - 20];
        let segment = TcpRepr {
            src_port: random.random_range(SOURCE_PORT..=u16::MAX),
            dst_port: port,
            control: if is_first {
                TcpControl::Syn
            } else {
                TcpControl::Psh
            },
            seq_number: TcpSeqNumber(random.random()),
            ack_number: (!is_first).then(|| TcpSeqNumber(random.random())),
            window_len: 1460,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: if is_first { &[] } else { &data },
        };
        let packet = Ipv4Repr {
            src_addr: host,
            dst_addr: self.guest,
            next_header: IpProtocol::Tcp,
            payload_len: segment.buffer_len(),
            hop_limit: 64,
        };
        let bytes = self.ethernet(frame, ethernet, EthernetProtocol::Ipv4);
        bytes.fill(0);
        let checksums = ChecksumCapabilities::default();
        let mut bytes = Ipv4Packet::new_unchecked(bytes);
        packet.emit(&mut bytes, &checksums);
        segment.emit(
            &mut TcpPacket::new_unchecked(bytes.payload_mut()),
            &host.into(),
            &self.guest.into(),
            &checksums,
        );
    }

    /// Writes an ARP request for the guest's MAC address.
    pub(crate) fn question(&self, frame: &mut [u8], random: &mut ChaCha8Rng) {
        let (host, ethernet) = self.host(random);
        let bytes = self.ethernet(frame, ethernet, EthernetProtocol::Arp);
        ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: ethernet,
            source_protocol_addr: host,
            target_hardware_addr: EthernetAddress([0; 6]),
            target_protocol_addr: self.guest,
        }
        .emit(&mut ArpPacket::new_unchecked(bytes));
    }
}
