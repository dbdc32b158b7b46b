// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client that sends requests over TCP, one at a time. Further requests wait.
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::ops::Range;

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer};
use smoltcp::wire::IpEndpoint;

use crate::requests::Requests;

/// The size of a connection's buffers in bytes.
const BUFFER: usize = 8192;
/// The size of the receive buffer of a client that does not read, in bytes. It is small, so that
/// the buffer is soon full.
const NARROW: usize = 512;
/// The number of ports that each client uses in turn.
const PORTS_EACH: u16 = 1000;
const PORTS: u16 = 32_000;
/// Returns the ports of the client with this number.
pub(crate) fn ports(number: u16) -> Range<u16> {
    let first = PORTS + PORTS_EACH * number;
    first..first + PORTS_EACH
}

/// The bytes of a Modbus/TCP message before the function: transaction, protocol, length and unit.
const MODBUS_HEADER: usize = 7;
const READ_HOLDING: u8 = 3;

/// The protocol of the requests.
pub(crate) enum Dialogue {
    /// No protocol: the request succeeds when the connection is established.
    Connection,
    /// HTTP 1.0, with a connection for each request. The field is the path of the page.
    Http(String),
    /// Modbus/TCP on a single connection. The fields are the first register and the number of
    /// registers.
    Modbus(u16, u16),
}

impl Dialogue {
    fn request(&self, number: usize) -> Vec<u8> {
        match self {
            Self::Connection => Vec::new(),
            Self::Http(path) => format!("GET {path} HTTP/1.0\r\n\r\n").into_bytes(),
            Self::Modbus(first, count) => {
                let mut bytes = transaction(number).to_vec();
                bytes.extend([0, 0, 0, 6, 1, READ_HOLDING]);
                bytes.extend(first.to_be_bytes());
                bytes.extend(count.to_be_bytes());
                bytes
            }
        }
    }

    /// Judges the data received so far. `None` if the answer is not complete yet.
    fn judge(&self, number: usize, received: &[u8], is_over: bool) -> Option<Result<(), String>> {
        match self {
            Self::Connection => Some(Ok(())),
            Self::Http(_) => is_over.then(|| judge_page(received)),
            Self::Modbus(_, count) => judge_registers(number, *count, received, is_over),
        }
    }

    fn keeps_connection(&self) -> bool {
        matches!(self, Self::Modbus(..))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "transactions go round")]
fn transaction(number: usize) -> [u8; 2] {
    (number as u16).to_be_bytes()
}

fn judge_page(received: &[u8]) -> Result<(), String> {
    let line = received.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let line = String::from_utf8_lossy(line);
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(format!("the server says `{line}`")),
    }
}

fn judge_registers(
    number: usize,
    count: u16,
    received: &[u8],
    is_over: bool,
) -> Option<Result<(), String>> {
    if received.len() <= MODBUS_HEADER + 1 {
        return is_over.then(|| Err("the server has closed the connection".to_owned()));
    }
    let function = received[MODBUS_HEADER];
    if received[..2] != transaction(number) || received[2..4] != [0, 0] {
        return Some(Err("the answer is another one".to_owned()));
    }
    if function != READ_HOLDING {
        let code = received[MODBUS_HEADER + 1];
        return Some(Err(format!("the server answers exception {code}")));
    }
    let whole = MODBUS_HEADER + 2 + 2 * usize::from(count);
    if received.len() < whole {
        return is_over.then(|| Err("the answer ends too soon".to_owned()));
    }
    Some(Ok(()))
}

pub(crate) struct StreamClient {
    dialogue: Dialogue,
    guest: IpEndpoint,
    ports: u16,
    connections: u16,
    reads: bool,
    socket: Option<SocketHandle>,
    /// The unanswered requests. If `has_sent`, the first one has been sent.
    open: VecDeque<usize>,
    has_sent: bool,
    received: Vec<u8>,
    /// Closing sockets, which are kept until TCP has released them.
    closing: Vec<SocketHandle>,
}

impl StreamClient {
    pub(crate) fn new(
        dialogue: Dialogue,
        guest: Ipv4Addr,
        port: u16,
        number: u16,
        reads: bool,
    ) -> Self {
        Self {
            dialogue,
            guest: IpEndpoint::new(guest.into(), port),
            ports: ports(number).start,
            connections: 0,
            reads,
            socket: None,
            open: VecDeque::new(),
            has_sent: false,
            received: Vec::new(),
            closing: Vec::new(),
        }
    }

    pub(crate) fn ask(&mut self, number: usize) {
        self.open.push_back(number);
    }

    pub(crate) fn oldest(&self) -> Option<usize> {
        self.open.front().copied()
    }

    pub(crate) fn progress(
        &mut self,
        now: u64,
        requests: &mut Requests,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
    ) {
        self.closing.retain(|handle| {
            let is_open = sockets.get::<Socket>(*handle).is_open();
            if !is_open {
                sockets.remove(*handle);
            }
            is_open
        });
        while let Some(number) = self.oldest() {
            let result = match self.advance(number, interface, sockets) {
                None if requests.deadline(number) <= now => Err("no answer".to_owned()),
                None => return,
                Some(result) => result,
            };
            let keeps = !self.reads || result.is_ok() && self.dialogue.keeps_connection();
            let has_failed = result.is_err();
            requests.end(number, now, result);
            self.open.pop_front();
            self.has_sent = false;
            self.received.clear();
            if !keeps {
                self.leave(has_failed, sockets);
            }
        }
    }

    /// Advances the current request. Returns the result if it is over.
    fn advance(
        &mut self,
        number: usize,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
    ) -> Option<Result<(), String>> {
        let handle = match self.socket {
            Some(handle) => handle,
            None => self.connect(interface, sockets),
        };
        let socket = sockets.get_mut::<Socket>(handle);
        if !socket.is_open() {
            self.socket = None;
            sockets.remove(handle);
            return Some(Err("the guest refuses or resets the connection".to_owned()));
        }
        if !self.has_sent {
            if !socket.may_send() {
                return None;
            }
            let request = self.dialogue.request(number);
            if socket.send_capacity() - socket.send_queue() < request.len() {
                return None;
            }
            socket
                .send_slice(&request)
                .expect("a socket that may send has room for what fits");
            self.has_sent = true;
        }
        if !self.reads {
            return None;
        }
        let mut is_over = false;
        loop {
            match socket.recv(|bytes| (bytes.len(), bytes.to_vec())) {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => self.received.extend(bytes),
                Err(RecvError::Finished) => {
                    is_over = true;
                    break;
                }
                Err(RecvError::InvalidState) => break,
            }
        }
        self.dialogue.judge(number, &self.received, is_over)
    }

    fn connect(
        &mut self,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
    ) -> SocketHandle {
        let size = if self.reads { BUFFER } else { NARROW };
        let buffer = |size| SocketBuffer::new(vec![0; size]);
        let mut socket = Socket::new(buffer(size), buffer(BUFFER));
        let port = self.ports + self.connections % PORTS_EACH;
        self.connections = self.connections.wrapping_add(1);
        socket
            .connect(interface.context(), self.guest, port)
            .expect("a new socket can connect from a port to an address");
        let handle = sockets.add(socket);
        self.socket = Some(handle);
        handle
    }

    /// Closes the connection, immediately if an error occurred.
    fn leave(&mut self, at_once: bool, sockets: &mut SocketSet<'static>) {
        if let Some(handle) = self.socket.take() {
            let socket = sockets.get_mut::<Socket>(handle);
            if at_once {
                socket.abort();
            } else {
                socket.close();
            }
            self.closing.push(handle);
        }
    }
}
