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

/// The clock frequency of arrival patterns: one cycle is one nanosecond.
pub const CLOCK_HZ: u64 = 1_000_000_000;

/// The longest gap between messages, in nanoseconds, that is waited for in a busy loop. A sleep
/// would take longer.
const SHORT: u64 = 20_000;
/// The longest time that a write to a stream blocks. A run checks at least this often whether it is
/// over.
const PATIENCE: Duration = Duration::from_millis(50);

/// A flood of messages to one address.
#[derive(Debug, Clone)]
pub struct Flood {
    /// The address that is flooded.
    pub to: SocketAddr,
    /// The sender's own address. `None` means that the system chooses one.
    pub from: Option<SocketAddr>,
    /// Whether messages go over a TCP connection; otherwise they are UDP datagrams.
    pub stream: bool,
    /// The times at which messages are sent. `None` means as fast as the connection takes them.
    pub pattern: Option<Pattern>,
    /// The seed of random patterns that state no seed of their own.
    pub seed: u64,
    /// The length of a message in bytes, from [`payload::HEADER`] to [`payload::LONGEST`].
    pub size: usize,
    /// The number of this sender, which its messages contain.
    pub flow: u32,
    /// The time after which the flood ends.
    pub time: Time,
}

/// Reason why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The arrival pattern cannot be used.
    #[error("{0}")]
    Pattern(#[from] PatternError),
    /// A flood of datagrams has no pattern. Only a TCP connection limits the rate by itself.
    #[error("UDP needs a pattern: only a TCP connection says when it takes no more")]
    Datagrams,
    /// The pattern describes the level of a line, not packets.
    #[error("a level is no pattern of packets: give a rate such as 20kHz, or another pattern")]
    Level,
    /// The address may belong to somebody on the internet.
    #[error(
        "{0} is a public address: weir-load sends only to this machine (127.0.0.1), to private and to link-local addresses"
    )]
    Public(IpAddr),
    /// The system refuses to connect or to send.
    #[error("cannot send to {to}: {cause}")]
    System {
        /// The address that was to be flooded.
        to: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
}

/// The result of [`Flood::run`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// The time that the flood took, in seconds.
    pub seconds: f64,
    /// The number of the sender.
    pub flow: u32,
    /// The number of messages that the system took.
    pub packets: u64,
    /// The bytes of these messages, without the headers of the protocols below them.
    pub bytes: u64,
    /// The number of messages that the system refused, since nobody listens there or a queue was
    /// full.
    pub refused: u64,
    /// The number of messages that were due but not sent before the end, since the sender is too
    /// slow for the pattern.
    pub late: u64,
    /// The longest delay of a message after its due time, in nanoseconds.
    pub behind: u64,
}

impl Flood {
    /// Sends until the time is over, the pattern ends, or a signal comes.
    ///
    /// # Errors
    /// Fails if the pattern does not describe packets, or if the address is public or cannot be
    /// reached. Then nothing was sent.
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
        let mut transport =
            Transport::open(self.to, self.from, self.stream, self.time).map_err(system)?;
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
            .run(&mut transport, End::after(self.time))
            .map_err(system)?;
        Ok(sender.sent)
    }
}

/// Whether `address` may belong to somebody who has not asked for a flood.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_private() || v4.is_link_local()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

/// A connected socket.
pub(crate) enum Transport {
    Datagrams(UdpSocket),
    Stream(TcpStream),
}

impl Transport {
    /// Connects to `to`; a stream must be connected within `time`. If `from` is `None`, the system
    /// chooses the sender's address of datagrams.
    pub fn open(
        to: SocketAddr,
        from: Option<SocketAddr>,
        is_stream: bool,
        time: Time,
    ) -> io::Result<Self> {
        if is_stream {
            let time = Duration::from_nanos(time.nanoseconds());
            let stream = TcpStream::connect_timeout(&to, time)?;
            // Each message is sent at once; otherwise the kernel would hold it back to join it with
            // the next one.
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Self::Stream(stream));
        }
        let any = match to {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
        };
        let socket = UdpSocket::bind(from.unwrap_or(any))?;
        socket.connect(to)?;
        Ok(Self::Datagrams(socket))
    }

    /// Limits the time for which a read blocks to `time`.
    pub fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Datagrams(socket) => socket.set_read_timeout(Some(time)),
            Self::Stream(stream) => stream.set_read_timeout(Some(time)),
        }
    }
}

/// The times at which messages are due, in nanoseconds since the start.
enum Due {
    /// Each message is due as soon as the one before it is sent.
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

    /// The time at which the next message is due.
    fn next(&self, now: u64) -> Option<u64> {
        match self {
            Self::Always => Some(now),
            Self::Pattern { next, .. } => next.map(|next| next.at),
        }
    }

    /// Takes the next message if it is due by `now`. Returns the time at which it was due.
    fn take(&mut self, now: u64) -> Option<u64> {
        let at = self.next(now).filter(|&at| at <= now)?;
        if let Self::Pattern { arrivals, next } = self {
            *next = arrivals.next();
        }
        Some(at)
    }

    /// Takes all messages that were due by `end`. Returns their number.
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
    fn run(&mut self, transport: &mut Transport, end: End) -> io::Result<()> {
        let start = clock::now();
        let mut now = start;
        while !end.is_over(now) {
            let count = self.fill(now - start, now);
            if count > 0 {
                self.give(transport, count, end)?;
            } else {
                let Some(next) = self.due.next(now - start) else {
                    break;
                };
                let then = (start + next).min(end.instant());
                if then > now + SHORT {
                    clock::sleep_until(then - SHORT / 2);
                }
            }
            now = clock::now();
        }
        self.sent.late = self.due.left(end.instant().min(now) - start);
        self.sent.seconds = seconds(now - start);
        Ok(())
    }

    /// Writes the headers of the messages that are due, at most as many as one system call takes.
    /// Returns their number.
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

    /// Sends the first `count` messages.
    fn give(&mut self, transport: &mut Transport, count: usize, end: End) -> io::Result<()> {
        let size = self.messages[0].len();
        let mut done = 0;
        while done < count {
            let taken = match transport {
                Transport::Datagrams(socket) => {
                    datagrams::send(socket.as_fd(), &mut self.messages[done..count])
                }
                Transport::Stream(stream) => {
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

/// Whether the system refused a datagram. The datagram is lost then, as it might be on the wire.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Writes `message`. Returns whether all of it was written before the end.
pub(crate) fn write_whole(stream: &mut TcpStream, message: &[u8], end: End) -> io::Result<bool> {
    let mut rest = message;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if is_temporary(&error) => {
                if end.is_over(clock::now()) {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Whether the same call may succeed later: it would block now, or a signal interrupted it.
pub(crate) fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
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
