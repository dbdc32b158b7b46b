// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks a server that answers (`weir-load receive --answer`), one question after the other, and
//! measures the latency of each answer.
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use crate::bound::{End, Time};
use crate::clock;
use crate::latency::{Distribution, Times};
use crate::payload::{HEADER, Header};
use crate::send::{self, SendError, Transport, is_temporary, seconds, write_whole};

/// The longest wait for the answer to a datagram, in nanoseconds: 1 s. Without an answer by then
/// the datagram counts as lost.
pub const PATIENCE: u64 = 1_000_000_000;
/// The longest wait in one system call: a run checks whether it is over at least this often.
const WAIT: Duration = Duration::from_millis(50);

/// A series of questions, each asked when the one before is answered or lost.
#[derive(Debug, Clone)]
pub struct Questions {
    /// The address of the server.
    pub to: SocketAddr,
    /// Whether the questions go over a TCP connection; otherwise they are UDP datagrams.
    pub stream: bool,
    /// The length of a question and of its answer in bytes, from [`HEADER`] to
    /// [`crate::payload::LONGEST`].
    pub size: usize,
    /// The number of questions. `None` means as many as `time` allows.
    pub count: Option<u64>,
    /// The longest time that the series takes.
    pub time: Time,
}

/// The result of [`Questions::run`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answers {
    /// The time that all questions took together, in seconds.
    pub seconds: f64,
    /// The number of questions asked.
    pub asked: u64,
    /// The number of questions that were answered.
    pub answered: u64,
    /// The number of datagrams that were not answered within [`PATIENCE`]. TCP loses none. A
    /// question that is unanswered when the run ends is neither answered nor lost.
    pub lost: u64,
    /// The time from a question to the end of its answer, in nanoseconds.
    pub latency: Distribution,
}

impl Questions {
    /// Asks until all questions are asked, the time is over or a signal comes.
    ///
    /// # Errors
    /// Fails if the address is public or cannot be reached, or if the server ends the connection.
    pub fn run(&self) -> Result<Answers, SendError> {
        if send::is_public(self.to.ip()) {
            return Err(SendError::Public(self.to.ip()));
        }
        self.ask()
            .map_err(|cause| SendError::System { to: self.to, cause })
    }

    fn ask(&self) -> io::Result<Answers> {
        let mut transport = Transport::open(self.to, None, self.stream, self.time)?;
        transport.set_read_timeout(WAIT)?;
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
            match answer(&mut transport, &mut message, header, end)? {
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
}

/// What became of a question.
enum Outcome {
    Answered,
    Lost,
    /// The run ended before the answer came.
    Open,
}

/// Sends the question in `message`, whose header is `asked`, and reads its answer into `message`.
fn answer(
    transport: &mut Transport,
    message: &mut [u8],
    asked: Header,
    end: End,
) -> io::Result<Outcome> {
    match transport {
        Transport::Datagrams(socket) => {
            // A refusal means that nobody listens there. The question then counts as lost, like any
            // other without an answer.
            let _ = socket.send(message);
            loop {
                match socket.recv(message) {
                    // The answer to an earlier question may still come after that question was
                    // counted as lost.
                    Ok(length) if Header::decode(&message[..length]) == Some(asked) => {
                        return Ok(Outcome::Answered);
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) if is_temporary(&error) => {}
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
        Transport::Stream(stream) => {
            if !write_whole(stream, message, end)? {
                return Ok(Outcome::Open);
            }
            let mut read = 0;
            while read < message.len() {
                match stream.read(&mut message[read..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(length) => read += length,
                    Err(error) if is_temporary(&error) => {}
                    Err(error) => return Err(error),
                }
                if read < message.len() && end.is_over(clock::now()) {
                    return Ok(Outcome::Open);
                }
            }
            if Header::decode(message) == Some(asked) {
                Ok(Outcome::Answered)
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }
}
