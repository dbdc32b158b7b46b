// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what comes, what is lost on the way, and how old it is; and answers, if it is to.
use std::io;
use std::net::SocketAddr;

use serde::Serialize;

use crate::bound::{End, Time};
use crate::clock::{self, Stamps};
use crate::latency::Distribution;
use crate::send::seconds;

mod flows;
mod sockets;

use flows::Tally;
use sockets::Sockets;

/// What is listened to.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The addresses and ports.
    pub at: Vec<SocketAddr>,
    /// TCP and not UDP.
    pub stream: bool,
    /// Send each message back, one by one.
    pub answer: bool,
    /// Messages taken with one system call, from 1 to 64; a server that takes them one by one has
    /// 1.
    pub batch: usize,
    /// Bytes of the socket's buffer, as the system counts them; its default if there is none.
    pub buffer: Option<u32>,
    /// The sender's clock.
    pub stamps: Stamps,
    /// Length of the run.
    pub time: Time,
    /// End after so many messages.
    pub count: Option<u64>,
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// No socket at an address.
    #[error("cannot listen at {at}: {cause}")]
    Bind {
        /// The address.
        at: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// The system refuses.
    #[error("cannot receive: {0}")]
    System(#[from] io::Error),
}

/// What came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reception {
    /// How long it was listened, in seconds.
    pub seconds: f64,
    /// Per address, in the order in which they were given.
    pub ports: Vec<PortTraffic>,
}

/// What came to one address.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortTraffic {
    /// The address.
    pub at: SocketAddr,
    /// Messages of `weir-load send`.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first of them to the last, in seconds; what is divided by it is a throughput.
    pub span: f64,
    /// Messages from others.
    pub foreign: u64,
    /// Messages that the socket's buffer had no room for; none where the kernel does not say.
    pub overflowed: Option<u64>,
    /// Per sender.
    pub flows: Vec<SenderFlow>,
    /// How old messages were, in nanoseconds. What a clock puts into the future is 0 old.
    pub latency: Distribution,
}

/// What came from one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SenderFlow {
    /// The sender's number.
    pub flow: u32,
    /// Its messages.
    pub packets: u64,
    /// Messages before the latest one that did not come. What was lost after it only the sender
    /// knows.
    pub lost: u64,
    /// Messages that came after a later one.
    pub late: u64,
}

impl Listen {
    /// Opens the sockets, calls `ready`, and counts until the time is over, the count is reached,
    /// or a signal comes.
    ///
    /// # Errors
    /// An address is taken or not this machine's.
    pub fn run(&self, ready: impl FnOnce()) -> Result<Reception, ReceiveError> {
        let mut sockets = Sockets::open(self)?;
        let mut tallies: Vec<Tally> = self.at.iter().map(|_| Tally::default()).collect();
        let start = clock::now();
        let end = End::after(self.time);
        ready();
        let mut now = start;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 && !end.is_over(now) {
            sockets.wait(end.at() - now)?;
            left = left.saturating_sub(sockets.take(&mut tallies)?);
            now = clock::now();
        }
        let ports = self
            .at
            .iter()
            .zip(tallies)
            .enumerate()
            .map(|(index, (&at, tally))| tally.port(at, sockets.overflowed(index)))
            .collect();
        Ok(Reception {
            seconds: seconds(now - start),
            ports,
        })
    }
}
