// SPDX-License-Identifier: MIT OR Apache-2.0
//! Those who ask the guest something, at the times of a pattern, and measure how long it takes.
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

/// Who asks the guest, what, and when.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPlan {
    /// What is asked.
    pub ask: Question,
    /// The guest's port. Each question has a usual one; `tcp` has 80.
    pub port: Option<u16>,
    /// When it is asked, in the language of `weir-arrivals`.
    pub pattern: String,
    /// The seed of a random pattern that has none of its own.
    #[serde(default)]
    pub seed: u64,
    /// How often.
    pub count: u32,
    /// The time from which the pattern counts, in nanoseconds.
    #[serde(deserialize_with = "time")]
    pub begin: u64,
    /// How long an answer is waited for, in nanoseconds.
    #[serde(default = "patience", deserialize_with = "time")]
    pub patience: u64,
    /// Does it read what it gets over TCP? If not, it asks all the same and its window closes.
    #[serde(default = "yes")]
    pub reads: bool,
    /// Does it acknowledge what it gets over TCP? If not, it is as one that has lost its power: the
    /// guest sends it the same again and again.
    #[serde(default = "yes")]
    pub acknowledges: bool,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// A datagram of so many bytes, which is to come back as it was (RFC 862).
    Udp(u16),
    /// A connection, which is closed as soon as it stands.
    Tcp,
    /// A page (HTTP 1.0), by its path.
    Http(String),
    /// Registers of a Modbus/TCP server: function 3, on one connection.
    Modbus {
        /// The first one's number.
        first: u16,
        /// How many.
        count: u16,
    },
}

fn patience() -> u64 {
    CLOCK_HZ
}

fn yes() -> bool {
    true
}

/// A client of the plan at work: when it asks, and how.
pub(crate) struct ClientRun {
    arrivals: Arrivals,
    begin: u64,
    left: u32,
    next: Option<u64>,
    requests: Requests,
    transport: Transport,
}

/// How a client reaches the guest.
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

    /// When it has something to do that no frame causes: to ask, or to give an answer up.
    pub(crate) fn wanted(&self) -> Option<u64> {
        let waits = match &self.transport {
            Transport::Udp(udp) => udp.oldest(),
            Transport::Stream(stream) => stream.oldest(),
        };
        let deadline = waits.map(|number| self.requests.deadline(number));
        self.next.into_iter().chain(deadline).min()
    }

    /// Does what is due at `now`: asks, reads answers, gives up.
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
