// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCP server (RFC 2131) with a single address, that of the guest.
use std::net::Ipv4Addr;

use serde::Deserialize;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{
    DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpMessageType, DhcpPacket, DhcpRepr, IpAddress,
};

use crate::CLOCK_HZ;
use crate::report::DhcpReport;
use crate::times::time;

/// The size of the longest message in bytes.
const LONGEST: usize = 1024;
/// The most messages that may wait.
const WAITING: usize = 8;
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// The settings of a DHCP server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DhcpPlan {
    /// Whether the server answers. If not, it only counts the messages.
    #[serde(default = "answers")]
    pub answers: bool,
    /// The duration of a lease in nanoseconds.
    #[serde(default = "lease", deserialize_with = "time")]
    pub lease: u64,
}

fn answers() -> bool {
    true
}

fn lease() -> u64 {
    3600 * CLOCK_HZ
}

/// The state of a DHCP server.
pub(crate) struct DhcpServer {
    plan: DhcpPlan,
    own: Ipv4Addr,
    guest: Ipv4Addr,
    socket: SocketHandle,
    counts: DhcpReport,
}

impl DhcpServer {
    /// Makes a server with the address `own`, which assigns the address `guest`.
    pub(crate) fn new(
        plan: &DhcpPlan,
        own: Ipv4Addr,
        guest: Ipv4Addr,
        sockets: &mut SocketSet<'static>,
    ) -> Self {
        let buffer = || {
            PacketBuffer::new(
                vec![PacketMetadata::EMPTY; WAITING],
                vec![0; WAITING * LONGEST],
            )
        };
        let mut socket = Socket::new(buffer(), buffer());
        socket
            .bind(DHCP_SERVER_PORT)
            .expect("a new socket can be bound");
        Self {
            plan: plan.clone(),
            own,
            guest,
            socket: sockets.add(socket),
            counts: DhcpReport::default(),
        }
    }

    /// Answers the messages that have arrived.
    pub(crate) fn progress(&mut self, now: u64, sockets: &mut SocketSet<'static>) {
        let socket = sockets.get_mut::<Socket>(self.socket);
        while let Ok((bytes, _)) = socket.recv() {
            let answer = self.answer(now, bytes);
            if let Some(answer) = answer.filter(|_| self.plan.answers) {
                // The client has no address yet, so the answer is broadcast. An answer that does
                // not fit into the queue is lost, as on any network, and the client asks again.
                let everybody = (IpAddress::from(Ipv4Addr::BROADCAST), DHCP_CLIENT_PORT);
                let _ = socket.send_slice(&answer, everybody);
            }
        }
    }

    pub(crate) fn report(&self) -> DhcpReport {
        self.counts
    }

    fn answer(&mut self, now: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let packet = DhcpPacket::new_checked(bytes).ok()?;
        let request = DhcpRepr::parse(&packet).ok()?;
        let message_type = match request.message_type {
            DhcpMessageType::Discover => {
                self.counts.discovers += 1;
                DhcpMessageType::Offer
            }
            DhcpMessageType::Request => {
                self.counts.requests += 1;
                // A client that renews its lease writes its own address into the header instead of
                // the option.
                if request.requested_ip.unwrap_or(request.client_ip) == self.guest {
                    DhcpMessageType::Ack
                } else {
                    DhcpMessageType::Nak
                }
            }
            _ => return None,
        };
        if message_type == DhcpMessageType::Ack && self.plan.answers {
            self.counts.acknowledged_ns.get_or_insert(now);
        }
        let grants = message_type != DhcpMessageType::Nak;
        let seconds = u32::try_from(self.plan.lease / CLOCK_HZ).unwrap_or(u32::MAX);
        let answer = DhcpRepr {
            message_type,
            transaction_id: request.transaction_id,
            secs: 0,
            client_hardware_address: request.client_hardware_address,
            client_ip: Ipv4Addr::UNSPECIFIED,
            your_ip: if grants {
                self.guest
            } else {
                Ipv4Addr::UNSPECIFIED
            },
            server_ip: self.own,
            router: grants.then_some(self.own),
            subnet_mask: grants.then_some(MASK),
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: true,
            requested_ip: None,
            client_identifier: None,
            server_identifier: Some(self.own),
            parameter_request_list: None,
            dns_servers: None,
            max_size: None,
            lease_duration: grants.then_some(seconds),
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        let mut bytes = vec![0; answer.buffer_len()];
        answer
            .emit(&mut DhcpPacket::new_unchecked(&mut bytes))
            .ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smoltcp::wire::EthernetAddress;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn server() -> DhcpServer {
        let plan: DhcpPlan = serde_json::from_str(r#"{"lease": "60s"}"#).unwrap();
        DhcpServer::new(&plan, OWN, GUEST, &mut SocketSet::new(Vec::new()))
    }

    /// Returns the server's answer: its type, the assigned address, and the duration of the lease
    /// in seconds.
    fn ask(
        server: &mut DhcpServer,
        message_type: DhcpMessageType,
        wanted: Option<Ipv4Addr>,
    ) -> (DhcpMessageType, Ipv4Addr, Option<u32>) {
        let question = DhcpRepr {
            message_type,
            transaction_id: 77,
            secs: 0,
            client_hardware_address: EthernetAddress([2, 0, 0, 0, 0, 9]),
            client_ip: Ipv4Addr::UNSPECIFIED,
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: false,
            requested_ip: wanted,
            client_identifier: None,
            server_identifier: None,
            parameter_request_list: None,
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        let mut bytes = vec![0; question.buffer_len()];
        question
            .emit(&mut DhcpPacket::new_unchecked(&mut bytes))
            .unwrap();
        let answer = server.answer(500, &bytes).unwrap();
        let packet = DhcpPacket::new_checked(&answer[..]).unwrap();
        let answer = DhcpRepr::parse(&packet).unwrap();
        assert_eq!(answer.transaction_id, 77);
        assert_eq!(answer.server_identifier, Some(OWN));
        (answer.message_type, answer.your_ip, answer.lease_duration)
    }

    #[test]
    fn the_guest_gets_its_address_and_no_other() {
        let mut server = server();
        let offer = ask(&mut server, DhcpMessageType::Discover, None);
        assert_eq!(offer, (DhcpMessageType::Offer, GUEST, Some(60)));
        let other = Ipv4Addr::new(10, 0, 0, 3);
        let refused = ask(&mut server, DhcpMessageType::Request, Some(other));
        assert_eq!(refused, (DhcpMessageType::Nak, Ipv4Addr::UNSPECIFIED, None));
        assert_eq!(server.report().acknowledged_ns, None);
        let granted = ask(&mut server, DhcpMessageType::Request, Some(GUEST));
        assert_eq!(granted, (DhcpMessageType::Ack, GUEST, Some(60)));
        let counts = server.report();
        assert_eq!((counts.discovers, counts.requests), (1, 2));
        assert_eq!(counts.acknowledged_ns, Some(500));
    }

    proptest! {
        #[test]
        fn any_bytes_may_be_asked(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            server().answer(0, &bytes);
        }
    }
}
