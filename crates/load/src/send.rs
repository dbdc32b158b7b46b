// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floods an address.
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use serde::Serialize;
use weir_arrivals::{Arrival, Arrivals, Pattern, PatternError};

use crate::bound::{End, Time};
use crate::payload::{self, Header};
use crate::{clock, datagrams};

/// Frequency of the cycles in arrival patterns: a cycle is a nanosecond.
pub const CLOCK_HZ: u64 = 1_000_000_000;

/// Gaps below this are spent without sleep, in nanoseconds: a sleep takes longer.
const SHORT: u64 = 20_000;
/// Longest time for which a write may block; after it the run checks whether it is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// A flood.
#[derive(Debug, Clone)]
pub struct Flood {
    /// Address of the receiver.
    pub to: SocketAddr,
    /// The sender's own address; none: the system chooses it.
    pub from: Option<SocketAddr>,
    /// Whether to use TCP; else UDP.
    pub stream: bool,
    /// When messages are sent; none: as fast as the connection takes them.
    pub pattern: Option<Pattern>,
    /// Seed of the random patterns that have none of their own.
    pub seed: u64,
    /// Bytes of a message, from [`payload::HEADER`] to [`payload::LONGEST`].
    pub size: usize,
    /// The number of this sender in its messages.
    pub flow: u32,
    /// Length of the run.
    pub time: Time,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The pattern cannot be run.
    #[error("{0}")]
    Pattern(#[from] PatternError),
    /// Datagrams need a pattern.
    #[error("datagrams need a pattern: only a connection says when it takes no more")]
    Datagrams,
    /// The pattern moves a line.
    #[error("a level is no packets: give a rate (20kHz) or another pattern of packets")]
    Level,
    /// The address is a public one.
    #[error(
        "{0} is a public address: a flood goes to this machine (127.0.0.1), to private or to link-local addresses only"
    )]
    Public(IpAddr),
    /// The system refuses.
    #[error("cannot send to {to}: {cause}")]
    System {
        /// The address of the receiver.
        to: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

/// Results of a flood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// The number of the sender.
    pub flow: u32,
    /// Messages that the system took.
    pub packets: u64,
    /// Bytes of these messages, without headers of the network.
    pub bytes: u64,
    /// Messages that the system refused: nobody receives at the address, or a queue was full.
    pub refused: u64,
    /// Messages that were due and not sent before the end: the sender is too slow for the pattern.
    pub late: u64,
    /// Longest delay of a message after its time, in nanoseconds.
    pub behind: u64,
}

impl Flood {
    /// Sends until the time is over, the pattern ends, or a signal comes.
    ///
    /// # Errors
    /// Nothing was sent: the pattern has no packets, the address is public or cannot be reached.
    pub fn run(&self) -> Result<Sent, SendError> {
        let due = match &self.pattern {
            None if !self.stream => return Err(SendError::Datagrams),
            None => Due::Always,
            Some(Pattern::Level { .. }) => return Err(SendError::Level),
            Some(pattern) => Due::new(pattern.start(CLOCK_HZ, self.seed)?),
        };
        if is_public(self.to.ip()) {
            return Err(SendError::Public(self.to.ip()));
        }
        let system = |cause| SendError::System { to: self.to, cause };
        let mut way = self.way().map_err(system)?;
        let mut sender = Sender {
            due,
            messages: vec![vec![0x5a; self.size]; datagrams::MOST],
            sent: Sent {
                seconds: 0.0,
                flow: self.flow,
                packets: 0,
                bytes: 0,
                refused: 0,
                late: 0,
                behind: 0,
            },
            sequence: 0,
        };
        sender
            .run(&mut way, End::after(self.time))
            .map_err(system)?;
        Ok(sender.sent)
    }

    fn way(&self) -> io::Result<SendSocket> {
        if self.stream {
            return connect(self.to, self.time).map(SendSocket::Stream);
        }
        socket(self.to, self.from).map(SendSocket::Datagrams)
    }
}

/// Opens a connection that sends each message at once, and whose writes block for a while at most.
pub(crate) fn connect(to: SocketAddr, time: Time) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, Duration::from_nanos(time.nanoseconds()))?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Opens a socket for datagrams to `to`; the system chooses its own address if `from` is none.
pub(crate) fn socket(to: SocketAddr, from: Option<SocketAddr>) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
    };
    let socket = UdpSocket::bind(from.unwrap_or(any))?;
    socket.connect(to)?;
    Ok(socket)
}

/// Whether `address` may belong to somebody who has not asked for a flood.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_private() || v4.is_link_local()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

/// The socket of the messages.
enum SendSocket {
    Datagrams(UdpSocket),
    Stream(TcpStream),
}

/// Times at which messages are due, counted from the start.
enum Due {
    /// A message is due as soon as the one before is gone.
    Always,
    Pattern {
        arrivals: Box<Arrivals>,
        next: Option<Arrival>,
    },
}

impl Due {
    fn new(mut arrivals: Arrivals) -> Self {
        let next = arrivals.next();
        Self::Pattern {
            arrivals: Box::new(arrivals),
            next,
        }
    }

    /// Time at which the next message is due.
    fn next(&self, now: u64) -> Option<u64> {
        match self {
            Self::Always => Some(now),
            Self::Pattern { next, .. } => next.map(|next| next.at),
        }
    }

    /// Takes the next message that is due by `now`.
    fn take(&mut self, now: u64) -> Option<u64> {
        let at = self.next(now).filter(|&at| at <= now)?;
        if let Self::Pattern { arrivals, next } = self {
            *next = arrivals.next();
        }
        Some(at)
    }

    /// Number of messages that were due by `end` and were not taken.
    fn left(&mut self, end: u64) -> u64 {
        match self {
            Self::Always => 0,
            Self::Pattern { .. } => std::iter::from_fn(|| self.take(end)).map(|_| 1).sum(),
        }
    }
}

struct Sender {
    due: Due,
    messages: Vec<Vec<u8>>,
    sent: Sent,
    sequence: u64,
}

impl Sender {
    fn run(&mut self, way: &mut SendSocket, end: End) -> io::Result<()> {
        let start = clock::now();
        let mut now = start;
        while !end.is_over(now) {
            let count = self.fill(now - start, now);
            if count > 0 {
                self.give(way, count, end)?;
            } else {
                let Some(next) = self.due.next(now - start) else {
                    break;
                };
                let then = (start + next).min(end.at());
                if then > now + SHORT {
                    clock::sleep_until(then - SHORT / 2);
                }
            }
            now = clock::now();
        }
        self.sent.late = self.due.left(end.at().min(now) - start);
        self.sent.seconds = seconds(now - start);
        Ok(())
    }

    /// Writes the headers of the messages that are due, at most as many as go in one call. Returns
    /// their number.
    fn fill(&mut self, elapsed: u64, now: u64) -> usize {
        let mut count = 0;
        for message in &mut self.messages {
            let Some(at) = self.due.take(elapsed) else {
                break;
            };
            self.sent.behind = self.sent.behind.max(elapsed - at);
            let header = Header {
                length: u32::try_from(message.len()).unwrap_or(u32::MAX),
                flow: self.sent.flow,
                sequence: self.sequence,
                sent: now,
            };
            message[..payload::HEADER].copy_from_slice(&header.to_bytes());
            self.sequence += 1;
            count += 1;
        }
        count
    }

    fn give(&mut self, way: &mut SendSocket, count: usize, end: End) -> io::Result<()> {
        let size = self.messages[0].len();
        let mut done = 0;
        while done < count {
            let taken = match way {
                SendSocket::Datagrams(socket) => {
                    datagrams::send(socket.as_fd(), &mut self.messages[done..count])
                }
                SendSocket::Stream(stream) => {
                    write_whole(stream, &self.messages[done], end).map(usize::from)
                }
            };
            match taken {
                Ok(0) => return Ok(()),
                Ok(taken) => {
                    done += taken;
                    self.sent.packets += taken as u64;
                    self.sent.bytes += (taken * size) as u64;
                }
                Err(error) if is_refusal(&error) => {
                    done += 1;
                    self.sent.refused += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A datagram that the system does not take is lost, as it would be on the wire.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Writes the message and returns whether that was done before the end.
fn write_whole(stream: &mut TcpStream, message: &[u8], end: End) -> io::Result<bool> {
    let mut rest = message;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                if end.is_over(clock::now()) {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Converts nanoseconds to seconds.
#[expect(clippy::cast_precision_loss, reason = "a time to 16 digits")]
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_on_the_internet_is_flooded() {
        for (address, public) in [
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("192.168.0.1", false),
            ("169.254.3.4", false),
            ("::1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::ffff:127.0.0.1", false),
            ("8.8.8.8", true),
            ("0.0.0.0", true),
            ("255.255.255.255", true),
            ("2001:4860:4860::8888", true),
            ("::ffff:8.8.8.8", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
