// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that send requests to the guest at the times of a pattern, and measure the latency of
//! the answers.
use std::net::Ipv4Addr;

use serde::Deserialize;
use smoltcp::iface::{Interface, SocketSet};
use weir_arrivals::{Arrivals, Pattern};

use crate::CLOCK_HZ;
use crate::error::PlanError;
use crate::report::{ClientReport, RequestReport};
use crate::requests::Requests;
use crate::stream::{Dialogue, StreamClient};
use crate::times::time;
use crate::udp::UdpClient;

/// A client of the plan: its requests and their times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPlan {
    /// The kind of request.
    pub ask: Question,
    /// The guest's port. `None` means the usual port of the kind of request; for `tcp` that is 80.
    pub port: Option<u16>,
    /// The times of the requests, as a pattern of `weir-arrivals`.
    pub pattern: String,
    /// The seed for a random pattern that states no seed.
    #[serde(default)]
    pub seed: u64,
    /// The number of requests.
    pub count: u32,
    /// The start time of the pattern, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub begin: u64,
    /// The longest time to wait for an answer, in nanoseconds.
    #[serde(default = "patience", deserialize_with = "time")]
    pub patience: u64,
    /// Whether the client reads the data that it receives over TCP. If not, it still sends
    /// requests, and its receive window closes.
    #[serde(default = "yes")]
    pub reads: bool,
    /// Whether the client acknowledges the data that it receives over TCP. If not, it behaves like
    /// a host that has lost its power, and the guest retransmits.
    #[serde(default = "yes")]
    pub acknowledges: bool,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// A datagram of this many bytes, which the guest has to echo unchanged (RFC 862).
    Udp(u16),
    /// A TCP connection, which is closed as soon as it is established.
    Tcp,
    /// A page with this path over HTTP 1.0.
    Http(String),
    /// A Modbus/TCP request for registers (function 3). All requests use one connection.
    Modbus {
        /// The number of the first register.
        first: u16,
        /// The number of registers.
        count: u16,
    },
}

fn patience() -> u64 {
    CLOCK_HZ
}

fn yes() -> bool {
    true
}

/// The state of a client during a run.
pub(crate) struct ClientRun {
    arrivals: Arrivals,
    begin: u64,
    left: u32,
    next: Option<u64>,
    requests: Requests,
    transport: Transport,
}

/// The protocol by which a client reaches the guest.
enum Transport {
    Udp(UdpClient),
    Stream(StreamClient),
}

impl ClientRun {
    pub(crate) fn new(
        plan: &ClientPlan,
        guest: Ipv4Addr,
        number: u16,
        sockets: &mut SocketSet<'static>,
    ) -> Result<Self, PlanError> {
        let stream = |protocol, usual| {
            let port = plan.port.unwrap_or(usual);
            Transport::Stream(StreamClient::new(protocol, guest, port, number, plan.reads))
        };
        let transport = match &plan.ask {
            Question::Udp(length) => {
                let port = plan.port.unwrap_or(7);
                Transport::Udp(UdpClient::new(guest, port, number, *length, sockets))
            }
            Question::Tcp => stream(Dialogue::Connection, 80),
            Question::Http(path) => stream(Dialogue::Http(path.clone()), 80),
            Question::Modbus { first, count } => stream(Dialogue::Modbus(*first, *count), 502),
        };
        let mut client = Self {
            arrivals: Pattern::parse(&plan.pattern, CLOCK_HZ)?.start(CLOCK_HZ, plan.seed)?,
            begin: plan.begin,
            left: plan.count,
            next: None,
            requests: Requests {
                patience: plan.patience,
                list: Vec::new(),
            },
            transport,
        };
        client.find_next();
        Ok(client)
    }

    /// Returns the next time at which the client has to act without having received a frame: to
    /// send a request or to give up an answer.
    pub(crate) fn wanted(&self) -> Option<u64> {
        let waits = match &self.transport {
            Transport::Udp(udp) => udp.oldest(),
            Transport::Stream(stream) => stream.oldest(),
        };
        let deadline = waits.map(|number| self.requests.deadline(number));
        self.next.into_iter().chain(deadline).min()
    }

    /// Does what is due at `now`: sends requests, reads answers, and gives up answers that are
    /// late.
    pub(crate) fn progress(
        &mut self,
        now: u64,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
    ) {
        while self.next.is_some_and(|at| at <= now) {
            let number = self.requests.list.len();
            self.requests.list.push(RequestReport::asked(now));
            match &mut self.transport {
                Transport::Udp(udp) => udp.ask(number, sockets),
                Transport::Stream(stream) => stream.ask(number),
            }
            self.find_next();
        }
        match &mut self.transport {
            Transport::Udp(udp) => udp.progress(now, &mut self.requests, sockets),
            Transport::Stream(stream) => {
                stream.progress(now, &mut self.requests, interface, sockets)
            }
        }
    }

    pub(crate) fn report(&self) -> ClientReport {
        ClientReport {
            requests: self.requests.list.clone(),
        }
    }

    fn find_next(&mut self) {
        self.next = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.arrivals.next().map(|arrival| self.begin + arrival.at)
            }
            None => None,
        };
    }
}
