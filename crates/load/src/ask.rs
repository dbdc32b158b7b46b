// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks a server that answers (`weir-load receive --answer`), one question after the other, and
//! measures how long each answer takes.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use serde::Serialize;

use crate::bound::{End, Time};
use crate::clock;
use crate::latency::{Distribution, Times};
use crate::payload::{HEADER, Header};
use crate::send::{self, SendError, seconds};

/// Longest wait for the answer to a datagram, in nanoseconds: 1 s. After it the datagram is lost.
pub const PATIENCE: u64 = 1_000_000_000;
/// Longest wait in one system call; after it the run checks whether it is over.
const WAIT: Duration = Duration::from_millis(50);

/// Questions, each asked when the one before is answered or lost.
#[derive(Debug, Clone)]
pub struct Questions {
    /// Address of the server.
    pub to: SocketAddr,
    /// Whether to use TCP; else UDP.
    pub stream: bool,
    /// Bytes of a question and of its answer, from [`HEADER`] to [`crate::payload::LONGEST`].
    pub size: usize,
    /// Number of questions; none: as many as the time allows.
    pub count: Option<u64>,
    /// Longest time of the run.
    pub time: Time,
}

/// Results of the questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answers {
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// Questions that were asked.
    pub asked: u64,
    /// Questions that were answered.
    pub answered: u64,
    /// Datagrams that were not answered within a second ([`PATIENCE`]); TCP loses none. What is
    /// open at the end is neither answered nor lost.
    pub lost: u64,
    /// Time from a question to the whole of its answer, in nanoseconds.
    pub latency: Distribution,
}

impl Questions {
    /// Asks until all questions are asked, the time is over or a signal comes.
    ///
    /// # Errors
    /// A public address, one that cannot be reached, a connection that the server ends.
    pub fn run(&self) -> Result<Answers, SendError> {
        if send::is_public(self.to.ip()) {
            return Err(SendError::Public(self.to.ip()));
        }
        self.ask()
            .map_err(|cause| SendError::System { to: self.to, cause })
    }

    fn ask(&self) -> io::Result<Answers> {
        let mut way = self.way()?;
        let mut times = Times::default();
        let mut message = vec![0x5a; self.size];
        let (mut asked, mut answered, mut lost) = (0, 0, 0);
        let start = clock::now();
        let end = End::after(self.time);
        let mut now = start;
        while self.count.is_none_or(|count| asked < count) && !end.is_over(now) {
            let header = Header {
                length: u32::try_from(self.size).unwrap_or(u32::MAX),
                flow: 0,
                sequence: asked,
                sent: now,
            };
            message[..HEADER].copy_from_slice(&header.to_bytes());
            asked += 1;
            match way.answer(&mut message, header, end)? {
                Outcome::Answered => {
                    answered += 1;
                    times.record(clock::now() - now);
                }
                Outcome::Lost => lost += 1,
                Outcome::Open => {}
            }
            now = clock::now();
        }
        Ok(Answers {
            seconds: seconds(now - start),
            asked,
            answered,
            lost,
            latency: times.distribution(),
        })
    }

    fn way(&self) -> io::Result<AskSocket> {
        if self.stream {
            let stream = send::connect(self.to, self.time)?;
            stream.set_read_timeout(Some(WAIT))?;
            return Ok(AskSocket::Stream(stream));
        }
        let socket = send::socket(self.to, None)?;
        socket.set_read_timeout(Some(WAIT))?;
        Ok(AskSocket::Datagrams(socket))
    }
}

/// The socket of the questions.
enum AskSocket {
    Datagrams(UdpSocket),
    Stream(TcpStream),
}

/// Result of one question.
enum Outcome {
    Answered,
    Lost,
    /// The run ended before the answer came.
    Open,
}

impl AskSocket {
    /// Asks, and waits for the whole answer, which is read into `message`.
    fn answer(&mut self, message: &mut [u8], asked: Header, end: End) -> io::Result<Outcome> {
        match self {
            Self::Datagrams(socket) => {
                // Where nobody listens, no answer comes either: the question counts as lost.
                let _ = socket.send(message);
                loop {
                    match socket.recv(message) {
                        // The answer to an earlier question, which counts as lost, may still come.
                        Ok(length) if Header::of(&message[..length]) == Some(asked) => {
                            return Ok(Outcome::Answered);
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                        Err(error) if is_wait(&error) => {}
                        Err(error) => return Err(error),
                    }
                    let now = clock::now();
                    if end.is_over(now) {
                        return Ok(Outcome::Open);
                    }
                    if now - asked.sent > PATIENCE {
                        return Ok(Outcome::Lost);
                    }
                }
            }
            Self::Stream(stream) => {
                let mut written = 0;
                while written < message.len() {
                    match stream.write(&message[written..]) {
                        Ok(length) => written += length,
                        Err(error) if is_wait(&error) => {}
                        Err(error) => return Err(error),
                    }
                    if written < message.len() && end.is_over(clock::now()) {
                        return Ok(Outcome::Open);
                    }
                }
                let mut come = 0;
                while come < message.len() {
                    match stream.read(&mut message[come..]) {
                        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Ok(length) => come += length,
                        Err(error) if is_wait(&error) => {}
                        Err(error) => return Err(error),
                    }
                    if come < message.len() && end.is_over(clock::now()) {
                        return Ok(Outcome::Open);
                    }
                }
                if Header::of(message) == Some(asked) {
                    Ok(Outcome::Answered)
                } else {
                    Err(io::ErrorKind::InvalidData.into())
                }
            }
        }
    }
}

/// Whether nothing has come yet, or a signal has interrupted the wait.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
