// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flow a recorded packet belongs to.

use weir_arrivals::{Packet, Protocol};
use weir_model::{Selector, System};

/// The selectors of all flows, by source.
#[derive(Debug)]
pub(crate) struct Selectors {
    by_source: Vec<Vec<(usize, Selector)>>,
}

impl Selectors {
    pub fn new(system: &System) -> Self {
        let mut by_source = vec![Vec::new(); system.sources.len()];
        for (index, flow) in system.flows.iter().enumerate() {
            by_source[flow.source].push((index, flow.selector));
        }
        Self { by_source }
    }

    /// The first flow of the source whose selector takes the packet. What the recording does not say is taken to be as the selector wants it.
    pub fn flow_of(&self, source: usize, packet: &Packet) -> Option<usize> {
        self.by_source[source]
            .iter()
            .find(|(_, selector)| takes(selector, packet))
            .map(|&(flow, _)| flow)
    }
}

fn takes(selector: &Selector, packet: &Packet) -> bool {
    let protocol = match (selector.protocol, packet.protocol) {
        (Some(wanted), Some(is)) => matches!(
            (wanted, is),
            (weir_model::Protocol::Tcp, Protocol::Tcp)
                | (weir_model::Protocol::Udp, Protocol::Udp)
                | (weir_model::Protocol::Icmp, Protocol::Icmp)
        ),
        _ => true,
    };
    let port = match (selector.port, packet.port) {
        (Some(wanted), Some(is)) => wanted == is,
        // A packet whose protocol is known and that has no port is none of TCP or UDP.
        (Some(_), None) => packet.protocol.is_none() && packet.length == 0,
        (None, _) => true,
    };
    protocol && port
}
