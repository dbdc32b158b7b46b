// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the flow of a recorded packet with the demultiplexing table of core/.

use weir_arrivals::{Packet, Protocol};
use weir_core_sys::demux::{CLASSES, Demux, DemuxError, DemuxReceiver, SocketKey};
use weir_model::{Selector, System};

/// The demultiplexing table of each source.
#[derive(Debug)]
pub(crate) struct Selectors {
    by_source: Vec<Flows>,
}

#[derive(Debug)]
struct Flows {
    /// The demultiplexing table. Its receivers are the flows.
    table: Demux,
    /// The flow that gets the packets that match no other flow.
    rest: Option<usize>,
}

/// The table's slots per flow. A flow has at most two keys, and a hash table is fast if at most
/// half of it is used.
const SLOTS: usize = 4;

impl Selectors {
    /// # Errors
    /// Fails if the system has more flows than a table can hold.
    pub fn new(system: &System) -> Result<Self, DemuxError> {
        let mut by_source = Vec::new();
        for source in 0..system.sources.len() {
            let slots = (system.flows_of(source).count().max(1) * SLOTS).next_power_of_two();
            let mut flows = Flows {
                table: Demux::new(slots, slots, None, None)?,
                rest: None,
            };
            for (index, flow) in system.flows_of(source) {
                // Only the order of classes matters: if two flows have the same key, the more
                // urgent one gets the packet.
                let class = system.receivers[flow.receiver].urgency / (u8::MAX / CLASSES + 1);
                let reader = u16::try_from(index).map_err(|_| DemuxError::Capacity)?;
                let keys = keys(&flow.selector);
                if keys.iter().all(Option::is_none) {
                    flows.rest.get_or_insert(index);
                }
                for key in keys.into_iter().flatten() {
                    flows.table.bind(key, reader, class)?;
                }
            }
            by_source.push(flows);
        }
        Ok(Self { by_source })
    }

    /// Returns the flow of a packet that was recorded at a source. A recording contains protocols
    /// and ports; selectors of other kinds are ignored. The queues of a network card (the sources
    /// that moderate) share all packets that were recorded at any of them.
    pub fn flow_of(&self, system: &System, source: usize, packet: &Packet) -> Option<usize> {
        let is_queue = |source: usize| system.sources[source].moderation.is_some();
        self.at(source, packet).or_else(|| {
            let mut queues =
                (0..self.by_source.len()).filter(|&other| is_queue(source) && is_queue(other));
            queues.find_map(|other| self.at(other, packet))
        })
    }

    fn at(&self, source: usize, packet: &Packet) -> Option<usize> {
        let flows = &self.by_source[source];
        let keys = match (packet.protocol, packet.port) {
            (None, Some(port)) => [Some(SocketKey::udp(port)), Some(SocketKey::tcp(port))],
            (Some(protocol), port) => {
                let by_port = port.and_then(|port| key_of_port(protocol, port));
                [by_port, Some(SocketKey::protocol(number(protocol)))]
            }
            (None, None) => [None, None],
        };
        let bound = |key| match flows.table.lookup(key).receiver {
            DemuxReceiver::Bound(flow) => Some(usize::from(flow)),
            DemuxReceiver::Orphan | DemuxReceiver::Fragment => None,
        };
        keys.into_iter().flatten().find_map(bound).or(flows.rest)
    }
}

/// Returns the keys that identify packets of a flow. Both are `None` if the selector has no such
/// key.
fn keys(selector: &Selector) -> [Option<SocketKey>; 2] {
    let protocol = selector.protocol.map(|protocol| match protocol {
        weir_model::Protocol::Tcp => Protocol::Tcp,
        weir_model::Protocol::Udp => Protocol::Udp,
        weir_model::Protocol::Icmp => Protocol::Icmp,
    });
    match (protocol, selector.port) {
        (Some(protocol), Some(port)) => [key_of_port(protocol, port), None],
        (None, Some(port)) => [Some(SocketKey::udp(port)), Some(SocketKey::tcp(port))],
        (Some(protocol), None) => [Some(SocketKey::protocol(number(protocol))), None],
        (None, None) => {
            let ethertype = selector.ethertype.filter(|&kind| kind >= 0x600);
            [
                ethertype
                    .map(SocketKey::ethertype)
                    .or(selector.pcp.map(SocketKey::pcp)),
                None,
            ]
        }
    }
}

fn key_of_port(protocol: Protocol, port: u16) -> Option<SocketKey> {
    match protocol {
        Protocol::Tcp => Some(SocketKey::tcp(port)),
        Protocol::Udp => Some(SocketKey::udp(port)),
        Protocol::Icmp => None,
    }
}

/// Returns the protocol number of the IP header.
fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Icmp => 1,
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    }
}
