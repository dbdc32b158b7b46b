// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sockets of a receiver, and the reading of messages from them.
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::flows::Tally;
use super::{Listener, ReceiveError};
use crate::clock::Stamps;
use crate::datagrams;
use crate::payload::{self, Header};
use crate::send::is_temporary;

/// The most connections at a time. The kernel keeps further connections waiting.
const STREAMS: usize = 256;
/// The longest wait in nanoseconds. A signal that comes just before a wait does not end the wait,
/// so a run checks for signals at least this often.
const WAIT: u64 = 50_000_000;

pub(super) struct Sockets {
    listening: Vec<ListeningSocket>,
    streams: Vec<Stream>,
    buffers: Vec<Vec<u8>>,
    stamps: Stamps,
    answer: bool,
    /// Whether each socket, and after the sockets each stream, can be read or written.
    ready: Vec<bool>,
}

enum ListeningSocket {
    Datagrams(UdpSocket),
    Listener(TcpListener),
}

/// A connection to the address with the number `index`. It holds the begin of an unfinished
/// message, and the bytes that are still to be sent back.
struct Stream {
    index: usize,
    stream: TcpStream,
    begun: Vec<u8>,
    answers: Vec<u8>,
}

impl ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Datagrams(socket) => socket.as_fd(),
            Self::Listener(listener) => listener.as_fd(),
        }
    }

    fn open(at: SocketAddr, spec: &Listener) -> io::Result<Self> {
        let socket = if spec.stream {
            let listener = TcpListener::bind(at)?;
            listener.set_nonblocking(true)?;
            Self::Listener(listener)
        } else {
            let socket = UdpSocket::bind(at)?;
            socket.set_nonblocking(true)?;
            Self::Datagrams(socket)
        };
        if let Some(bytes) = spec.buffer {
            set_buffer(socket.as_fd(), bytes)?;
        }
        Ok(socket)
    }
}

impl Sockets {
    pub fn open(spec: &Listener) -> Result<Self, ReceiveError> {
        let open = |&at: &SocketAddr| {
            ListeningSocket::open(at, spec).map_err(|cause| ReceiveError::Bind { at, cause })
        };
        Ok(Self {
            listening: spec.at.iter().map(open).collect::<Result<_, _>>()?,
            streams: Vec::new(),
            buffers: vec![vec![0; payload::LONGEST]; spec.batch.clamp(1, datagrams::MOST)],
            stamps: spec.stamps,
            answer: spec.answer,
            ready: Vec::new(),
        })
    }

    /// Waits until a socket can be read or written, for at most `longest` nanoseconds, or until a
    /// signal comes.
    pub fn wait(&mut self, longest: u64) -> io::Result<()> {
        let accepts = self.streams.len() < STREAMS;
        let listening = self.listening.iter().map(|socket| {
            let is_wanted = accepts || matches!(socket, ListeningSocket::Datagrams(_));
            let events = if is_wanted {
                PollFlags::POLLIN
            } else {
                PollFlags::empty()
            };
            PollFd::new(socket.as_fd(), events)
        });
        let streams = self.streams.iter();
        let streams = streams.map(|stream| PollFd::new(stream.stream.as_fd(), stream.wants()));
        let mut polled: Vec<PollFd<'_>> = listening.chain(streams).collect();
        // Rounding up keeps a last wait of less than a millisecond from becoming a busy loop.
        let milliseconds = longest.min(WAIT).div_ceil(1_000_000);
        self.ready.clear();
        match poll(&mut polled, u16::try_from(milliseconds).unwrap_or(0)) {
            Ok(_) => {
                let ready = polled.iter().map(|socket| socket.any().unwrap_or(true));
                self.ready.extend(ready);
                Ok(())
            }
            Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes one batch from each socket that has messages. Returns the number of messages.
    pub fn take(&mut self, tallies: &mut [Tally]) -> io::Result<u64> {
        let mut count = 0;
        let mut accepted = Vec::new();
        let mut ended = Vec::new();
        for (place, _) in self
            .ready
            .iter()
            .enumerate()
            .filter(|(_, is_ready)| **is_ready)
        {
            match self.listening.get(place) {
                Some(ListeningSocket::Datagrams(socket)) => {
                    let take = if self.answer { answer } else { datagrams };
                    count += take(socket, &mut self.buffers, self.stamps, &mut tallies[place])?;
                }
                Some(ListeningSocket::Listener(listener)) => {
                    // A client may have closed its connection before the connection is accepted.
                    if let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true)?;
                        stream.set_nodelay(self.answer)?;
                        accepted.push(Stream {
                            index: place,
                            stream,
                            begun: Vec::new(),
                            answers: Vec::new(),
                        });
                    }
                }
                None => {
                    let at = place - self.listening.len();
                    let stream = &mut self.streams[at];
                    if stream.answers.is_empty() {
                        let tally = &mut tallies[stream.index];
                        let buffer = &mut self.buffers[0];
                        match stream.read(buffer, self.stamps, self.answer, tally) {
                            Some(messages) => count += messages,
                            None => ended.push(at),
                        }
                    } else if !stream.answer() {
                        ended.push(at);
                    }
                }
            }
        }
        for at in ended.into_iter().rev() {
            self.streams.swap_remove(at);
        }
        self.streams.append(&mut accepted);
        Ok(count)
    }

    /// The number of messages for which the socket's buffer had no room.
    pub fn overflowed(&self, index: usize) -> Option<u64> {
        match &self.listening[index] {
            ListeningSocket::Datagrams(socket) => overflowed(socket.as_fd()),
            // TCP makes the sender wait instead of dropping.
            ListeningSocket::Listener(_) => Some(0),
        }
    }
}

fn datagrams(
    socket: &UdpSocket,
    buffers: &mut [Vec<u8>],
    stamps: Stamps,
    tally: &mut Tally,
) -> io::Result<u64> {
    let mut lengths = [0; datagrams::MOST];
    let received = match datagrams::receive(socket.as_fd(), buffers, &mut lengths) {
        Ok(received) => received,
        Err(error) if is_temporary(&error) => 0,
        Err(error) => return Err(error),
    };
    let now = stamps.now();
    for (buffer, &length) in buffers.iter().zip(&lengths[..received]) {
        tally.message(&buffer[..length], now);
    }
    Ok(received as u64)
}

/// Receives a datagram and sends it back.
fn answer(
    socket: &UdpSocket,
    buffers: &mut [Vec<u8>],
    stamps: Stamps,
    tally: &mut Tally,
) -> io::Result<u64> {
    match socket.recv_from(&mut buffers[0]) {
        Ok((length, from)) => {
            let message = &buffers[0][..length];
            tally.message(message, stamps.now());
            // If an answer cannot be sent, the client counts it as lost.
            let _ = socket.send_to(message, from);
            Ok(1)
        }
        Err(error) if is_temporary(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

impl Stream {
    /// The events to wait for. While answers are pending, only room to write: no message is read
    /// before all earlier messages are answered.
    fn wants(&self) -> PollFlags {
        if self.answers.is_empty() {
            PollFlags::POLLIN
        } else {
            PollFlags::POLLOUT
        }
    }

    /// Sends answers as far as the connection takes them. Returns whether the connection is still
    /// open.
    fn answer(&mut self) -> bool {
        while !self.answers.is_empty() {
            match self.stream.write(&self.answers) {
                Ok(0) => return false,
                Ok(written) => drop(self.answers.drain(..written)),
                Err(error) if is_temporary(&error) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads messages, and answers them if `answer` is true. Returns the number of completed
    /// messages, or `None` if the connection is over.
    fn read(
        &mut self,
        buffer: &mut [u8],
        stamps: Stamps,
        answer: bool,
        tally: &mut Tally,
    ) -> Option<u64> {
        let length = match self.stream.read(buffer) {
            Ok(0) => return None,
            Ok(length) => length,
            Err(error) if is_temporary(&error) => return Some(0),
            Err(_) => return None,
        };
        let now = stamps.now();
        self.begun.extend_from_slice(&buffer[..length]);
        let mut rest = self.begun.as_slice();
        let mut count = 0;
        while rest.len() >= payload::HEADER {
            let Some(header) = Header::decode(rest) else {
                // Without a header, the begin of the next message is not known.
                tally.foreign();
                return None;
            };
            let Some((message, after)) = rest.split_at_checked(header.length as usize) else {
                break;
            };
            tally.message(message, now);
            count += 1;
            rest = after;
        }
        let done = self.begun.len() - rest.len();
        let messages = self.begun.drain(..done);
        if answer {
            self.answers.extend(messages);
        } else {
            drop(messages);
        }
        self.answer().then_some(count)
    }
}

/// Sets the size of the socket's buffer. A size beyond the system's limit needs CAP_NET_ADMIN;
/// without it, the size becomes the limit.
fn set_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let set = |option| {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value has the length that is passed, and the call only reads it.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const value).cast(),
                length,
            )
        }
    };
    if set(libc::SO_RCVBUFFORCE) == 0 || set(libc::SO_RCVBUF) == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number of messages that the socket dropped. That is `SK_MEMINFO_DROPS`, the last of the
/// numbers that the socket option `SO_MEMINFO` returns.
fn overflowed(socket: BorrowedFd<'_>) -> Option<u64> {
    const DROPS: usize = 8;
    let mut numbers = [0u32; DROPS + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the array has the length that is passed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &mut length,
        )
    };
    (result == 0 && length as usize == size_of_val(&numbers)).then(|| numbers[DROPS].into())
}
