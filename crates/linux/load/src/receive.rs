// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the messages that come and those that are lost, and measures their age. Answers them on
//! request.
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

/// A receiver of messages at several addresses.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The addresses and ports.
    pub at: Vec<SocketAddr>,
    /// Whether messages come over TCP; else by UDP.
    pub stream: bool,
    /// Whether each message is sent back, one by one.
    pub answer: bool,
    /// The most datagrams that one system call takes, 1 to 64.
    pub batch: usize,
    /// The size of the socket's buffer in bytes, as the system counts them; none: its default.
    pub buffer: Option<u32>,
    /// The clock of the sender's stamps.
    pub stamps: Stamps,
    /// The time after which the receiver ends.
    pub time: Time,
    /// The number of messages after which it ends.
    pub count: Option<u64>,
}

/// A reason why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The system refuses a socket at an address.
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

/// The result of [`Listener::run`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reception {
    /// The time for which it listened, in seconds.
    pub seconds: f64,
    /// The messages to each address, in the order of [`Listener::at`].
    pub ports: Vec<ListeningPort>,
}

/// The messages that came to one address.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListeningPort {
    /// The address.
    pub at: SocketAddr,
    /// The number of messages of `weir-load send`.
    pub packets: u64,
    /// The bytes of these messages.
    pub bytes: u64,
    /// The time from the first of them to the last, in seconds. Divided by it, the bytes are a
    /// throughput.
    pub span: f64,
    /// The number of messages from other programs.
    pub foreign: u64,
    /// The number of messages for which the socket's buffer had no room; none: the kernel does not
    /// say.
    pub overflowed: Option<u64>,
    /// The messages of each sender.
    pub flows: Vec<SenderCounts>,
    /// The age of the messages, in nanoseconds; 0 if their stamp is in the future.
    pub latency: Distribution,
}

/// The messages that came from one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SenderCounts {
    /// The number of the sender.
    pub flow: u32,
    /// The number of its messages.
    pub packets: u64,
    /// The number of messages that did not come and precede the latest one that did. Only the
    /// sender knows what was lost after that.
    pub lost: u64,
    /// The number of messages that came after a later one.
    pub late: u64,
}

impl Listener {
    /// Opens the sockets, calls `ready`, and counts until the time is over, the count is reached,
    /// or a signal comes.
    ///
    /// # Errors
    /// An address is in use, or not one of this machine.
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
