// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer's TCP/IP stack.
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::ops::Range;

use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::icmp::{Endpoint, PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, HardwareAddress, Icmpv4Packet, Icmpv4Repr,
    IpAddress, IpCidr, IpProtocol, Ipv4Packet, TcpPacket,
};

use crate::client::ClientRun;
use crate::dhcp::DhcpServer;
use crate::error::PlanError;
use crate::frame::{LONGEST, PEER_ETHERNET};
use crate::plan::Plan;
use crate::report::{ClientReport, DhcpReport, PingReport};
use crate::stream;

/// The identifier in the station's ICMP echo requests.
const IDENTIFIER: u16 = 0x9193;
/// The data of an echo request, as long as that of ping(8).
const DATA: [u8; 56] = [0x5a; 56];
/// The most echo requests that may wait for the guest's MAC address, and the most answers that may
/// wait to be read.
const WAITING: usize = 64;
/// The time resolution of smoltcp in nanoseconds.
const GRAIN: u64 = 1000;
/// The most rounds of a step, in which the station handles the effects of its own actions.
const ROUNDS: usize = 8;

/// A TCP/IP stack whose caller provides the time. It consists of smoltcp and the queues between
/// smoltcp and the wire. smoltcp has a resolution of a microsecond; the measured times are not
/// rounded to it.
pub struct Station {
    interface: Interface,
    sockets: SocketSet<'static>,
    icmp: SocketHandle,
    queues: Queues,
    guest: Ipv4Addr,
    pings: Vec<PingReport>,
    dhcp: Option<DhcpServer>,
    clients: Vec<ClientRun>,
    /// The ports of clients that acknowledge nothing.
    silent: Vec<Range<u16>>,
    stack_wanted: Option<u64>,
}

impl Station {
    /// Makes a station with the address `own` that communicates with `guest`.
    #[must_use]
    pub fn new(own: Ipv4Addr, guest: Ipv4Addr) -> Self {
        let mut queues = Queues::default();
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(PEER_ETHERNET)));
        // The seed determines the stack's ports and sequence numbers, so that they are the same in
        // each run.
        config.random_seed = 1;
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let network = IpCidr::new(IpAddress::Ipv4(own), 24);
            addresses
                .push(network)
                .expect("an interface has room for one address");
        });
        let buffer = || {
            PacketBuffer::new(
                vec![PacketMetadata::EMPTY; WAITING],
                vec![0; WAITING * 2 * DATA.len()],
            )
        };
        let mut icmp = Socket::new(buffer(), buffer());
        icmp.bind(Endpoint::Ident(IDENTIFIER))
            .expect("a new socket can be bound");
        let mut sockets = SocketSet::new(Vec::new());
        let icmp = sockets.add(icmp);
        Self {
            interface,
            sockets,
            icmp,
            queues,
            guest,
            pings: Vec::new(),
            dhcp: None,
            clients: Vec::new(),
            silent: Vec::new(),
            stack_wanted: None,
        }
    }

    /// Makes the station of a plan with its server and its clients.
    ///
    /// # Errors
    /// Fails if a client's pattern cannot be started.
    pub fn with_plan(plan: &Plan) -> Result<Self, PlanError> {
        let mut station = Self::new(plan.address, plan.guest);
        let sockets = &mut station.sockets;
        station.dhcp = plan
            .dhcp
            .as_ref()
            .map(|dhcp| DhcpServer::new(dhcp, plan.address, plan.guest, sockets));
        for (number, client) in (0..).zip(&plan.clients) {
            if !client.acknowledges {
                station.silent.push(stream::ports(number));
            }
            let client = ClientRun::new(client, plan.guest, number, sockets)?;
            station.clients.push(client);
        }
        Ok(station)
    }

    /// Sends an echo request at `now`. The first request waits until the guest's MAC address is
    /// known. A request is dropped if too many already wait.
    pub fn ping(&mut self, now: u64) {
        let sequence = u16::try_from(self.pings.len()).expect("a plan's count has 16 bits");
        let request = Icmpv4Repr::EchoRequest {
            ident: IDENTIFIER,
            seq_no: sequence,
            data: &DATA,
        };
        let socket = self.sockets.get_mut::<Socket>(self.icmp);
        if let Ok(bytes) = socket.send(request.buffer_len(), IpAddress::Ipv4(self.guest)) {
            request.emit(
                &mut Icmpv4Packet::new_unchecked(bytes),
                &ChecksumCapabilities::default(),
            );
        }
        self.pings.push(PingReport {
            asked_ns: now,
            round_trip_ns: None,
        });
        self.stack_wanted = Some(now);
    }

    /// Takes a frame that arrives at `now`.
    pub fn receive(&mut self, now: u64, frame: Vec<u8>) {
        let is_lost = data_for(&frame)
            .is_some_and(|port| self.silent.iter().any(|ports| ports.contains(&port)));
        if is_lost {
            return;
        }
        self.queues.arrived.push_back(frame);
        self.stack_wanted = Some(now);
    }

    /// Does what is due at `now`. Returns the frames to send.
    pub fn step(&mut self, now: u64) -> Vec<Vec<u8>> {
        let instant = Instant::from_micros(i64::try_from(now / GRAIN).unwrap_or(i64::MAX));
        for _ in 0..ROUNDS {
            if let Some(dhcp) = &mut self.dhcp {
                dhcp.progress(now, &mut self.sockets);
            }
            for client in &mut self.clients {
                client.progress(now, &mut self.interface, &mut self.sockets);
            }
            let result = self
                .interface
                .poll(instant, &mut self.queues, &mut self.sockets);
            if result == PollResult::None {
                break;
            }
        }
        let socket = self.sockets.get_mut::<Socket>(self.icmp);
        while let Ok((bytes, _)) = socket.recv() {
            let checksums = ChecksumCapabilities::default();
            let reply = Icmpv4Packet::new_checked(bytes)
                .and_then(|packet| Icmpv4Repr::parse(&packet, &checksums));
            if let Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) = reply {
                if let Some(ping) = self.pings.get_mut(usize::from(seq_no)) {
                    if data == DATA {
                        ping.round_trip_ns.get_or_insert(now - ping.asked_ns);
                    }
                }
            }
        }
        // smoltcp has done all that it could do now, so it must not ask for the current time again.
        self.stack_wanted = self
            .interface
            .poll_at(instant, &self.sockets)
            .and_then(|at| u64::try_from(at.total_micros()).ok())
            .map(|micros| (micros * GRAIN).max(now + GRAIN));
        self.queues.leaving.drain(..).collect()
    }

    /// Returns the time of the next step. `None` if nothing has to be done until a frame arrives.
    #[must_use]
    pub fn wanted(&self) -> Option<u64> {
        let clients = self.clients.iter().filter_map(ClientRun::wanted);
        clients.chain(self.stack_wanted).min()
    }

    /// Returns what the DHCP server has received so far.
    #[must_use]
    pub fn dhcp(&self) -> Option<DhcpReport> {
        self.dhcp.as_ref().map(DhcpServer::report)
    }

    /// Returns the results of the clients' requests so far.
    #[must_use]
    pub fn clients(&self) -> Vec<ClientReport> {
        self.clients.iter().map(ClientRun::report).collect()
    }

    /// Returns the echo requests so far.
    #[must_use]
    pub fn pings(&self) -> &[PingReport] {
        &self.pings
    }
}

/// Returns the destination port of a TCP frame that contains data.
fn data_for(frame: &[u8]) -> Option<u16> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 || packet.next_header() != IpProtocol::Tcp {
        return None;
    }
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    (!segment.payload().is_empty()).then(|| segment.dst_port())
}

/// The queues between smoltcp and the wire.
#[derive(Default)]
struct Queues {
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

impl Device for Queues {
    type RxToken<'a> = Reception;
    type TxToken<'a> = Transmission<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Reception, Transmission<'_>)> {
        let frame = self.arrived.pop_front()?;
        Some((Reception(frame), Transmission(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Transmission<'_>> {
        Some(Transmission(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = LONGEST;
        capabilities
    }
}

struct Reception(Vec<u8>);

impl smoltcp::phy::RxToken for Reception {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Transmission<'a>(&'a mut VecDeque<Vec<u8>>);

impl smoltcp::phy::TxToken for Transmission<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push_back(frame);
        result
    }
}

#[cfg(test)]
mod clients;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    pub const TWO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// Runs a station on a wire where every frame takes 700 ns, as long as one side asks for a
    /// step. `other` is the other end of the wire. It gets the time and the arrived frames, and
    /// returns the frames to send and the time of its next step.
    pub fn run_beside(
        left: &mut Station,
        until: u64,
        mut other: impl FnMut(u64, Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Option<u64>),
    ) {
        let mut flying: VecDeque<(u64, bool, Vec<u8>)> = VecDeque::new();
        let mut other_wants = None;
        loop {
            let times = [left.wanted(), other_wants, flying.front().map(|f| f.0)];
            let Some(now) = times.into_iter().flatten().min().filter(|at| *at < until) else {
                return;
            };
            let mut arrived = Vec::new();
            while flying.front().is_some_and(|frame| frame.0 <= now) {
                match flying.pop_front().unwrap() {
                    (_, true, frame) => left.receive(now, frame),
                    (_, false, frame) => arrived.push(frame),
                }
            }
            for frame in left.step(now) {
                flying.push_back((now + 700, false, frame));
            }
            let (leaving, wants) = other(now, arrived);
            other_wants = wants;
            for frame in leaving {
                flying.push_back((now + 700, true, frame));
            }
        }
    }

    fn run(left: &mut Station, right: &mut Station, until: u64) {
        run_beside(left, until, |now, frames| {
            for frame in frames {
                right.receive(now, frame);
            }
            (right.step(now), right.wanted())
        });
    }

    #[test]
    fn an_echo_is_measured_to_the_nanosecond() {
        let (mut left, mut right) = (Station::new(ONE, TWO), Station::new(TWO, ONE));
        left.ping(123);
        run(&mut left, &mut right, 1_000_000);
        left.ping(2_000_457);
        run(&mut left, &mut right, 4_000_000);
        let trips: Vec<_> = left.pings().iter().map(|p| p.round_trip_ns).collect();
        // The first round trip includes ARP.
        assert_eq!(trips, [Some(2800), Some(1400)]);
    }

    #[test]
    fn without_an_answer_time_goes_on() {
        let mut left = Station::new(ONE, TWO);
        left.ping(500);
        let (mut now, mut steps, mut frames) = (500, 0, 0);
        while now < 10_000_000_000 {
            frames += left.step(now).len();
            steps += 1;
            match left.wanted() {
                Some(at) => now = at,
                None => break,
            }
        }
        assert_eq!(left.pings()[0].round_trip_ns, None);
        // ARP sends about one request per second.
        assert!((5..20).contains(&frames), "{frames} frames");
        assert!(steps < 100, "{steps} steps");
    }

    proptest! {
        #[test]
        fn any_bytes_may_arrive(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..20)) {
            let mut left = Station::new(ONE, TWO);
            for (at, frame) in frames.into_iter().enumerate() {
                left.receive(at as u64 * 5000, frame);
                left.step(at as u64 * 5000);
            }
        }
    }
}
