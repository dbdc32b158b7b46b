// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives messages, counts those that arrive and those that are lost, and measures their age. On
//! request it answers each message.
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
    /// The addresses and ports at which messages are received.
    pub at: Vec<SocketAddr>,
    /// Whether messages come over TCP; otherwise they come as UDP datagrams.
    pub stream: bool,
    /// Whether each message is sent back to its sender, one at a time.
    pub answer: bool,
    /// The most datagrams that one system call takes, from 1 to 64.
    pub batch: usize,
    /// The size of the socket's buffer in bytes, as the system counts them. `None` means the
    /// system's default.
    pub buffer: Option<u32>,
    /// The clock of the senders' time stamps.
    pub stamps: Stamps,
    /// The time after which the receiver ends.
    pub time: Time,
    /// The number of messages after which the receiver ends. `None` means that only `time` ends it.
    pub count: Option<u64>,
}

/// Reason why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The system refuses a socket at an address.
    #[error("cannot listen at {at}: {cause}")]
    Bind {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// The system refuses another operation.
    #[error("cannot receive: {0}")]
    System(#[from] io::Error),
}

/// The result of [`Listener::run`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reception {
    /// The time for which the receiver ran, in seconds.
    pub seconds: f64,
    /// The messages to each address, in the order of [`Listener::at`].
    pub ports: Vec<ListeningPort>,
}

/// The messages that came to one address.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListeningPort {
    /// The address.
    pub at: SocketAddr,
    /// The number of messages that `weir-load send` sent and that arrived.
    pub packets: u64,
    /// The bytes of these messages, with their headers.
    pub bytes: u64,
    /// The time from the first of these messages to the last, in seconds. `bytes` divided by `span`
    /// is the throughput.
    pub span: f64,
    /// The number of messages from other programs.
    pub foreign: u64,
    /// The number of messages for which the socket's buffer had no room. `None` means that the
    /// kernel does not report it.
    pub overflowed: Option<u64>,
    /// The messages of each sender.
    pub flows: Vec<SenderCounts>,
    /// The age of the messages on arrival, in nanoseconds. A message whose stamp is in the future
    /// has the age 0.
    pub latency: Distribution,
}

/// The messages that came from one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SenderCounts {
    /// The number of the sender.
    pub flow: u32,
    /// The number of messages that arrived from this sender.
    pub packets: u64,
    /// The number of messages that are missing before the latest message that arrived. What was
    /// lost after that message, only the sender knows.
    pub lost: u64,
    /// The number of messages that came after a message with a higher number.
    pub late: u64,
}

impl Listener {
    /// Opens the sockets, calls `ready`, and counts until the time is over, the count is reached,
    /// or a signal comes.
    ///
    /// # Errors
    /// Fails if an address is in use, or is not an address of this machine.
    pub fn run(&self, ready: impl FnOnce()) -> Result<Reception, ReceiveError> {
        let mut sockets = Sockets::open(self)?;
        let mut tallies: Vec<Tally> = self.at.iter().map(|_| Tally::default()).collect();
        let start = clock::now();
        let end = End::after(self.time);
        ready();
        let mut now = start;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 && !end.is_over(now) {
            sockets.wait(end.instant() - now)?;
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
