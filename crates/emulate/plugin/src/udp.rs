// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client that sends datagrams and expects them back. Each datagram begins with its number.
use std::collections::VecDeque;
use std::net::Ipv4Addr;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::IpEndpoint;

use crate::requests::Requests;

/// The most datagrams that may wait for the guest's MAC address, or to be read.
const WAITING: usize = 64;
/// The size of the number in bytes.
const NUMBER: usize = 4;
/// The first port of these clients.
const PORTS: u16 = 30_000;

pub(crate) struct UdpClient {
    socket: SocketHandle,
    guest: IpEndpoint,
    length: usize,
    /// The unanswered requests.
    open: VecDeque<usize>,
}

impl UdpClient {
    pub(crate) fn new(
        guest: Ipv4Addr,
        port: u16,
        number: u16,
        length: u16,
        sockets: &mut SocketSet<'static>,
    ) -> Self {
        let length = usize::from(length).max(NUMBER);
        let buffer = || {
            PacketBuffer::new(
                vec![PacketMetadata::EMPTY; WAITING],
                vec![0; WAITING * length],
            )
        };
        let mut socket = Socket::new(buffer(), buffer());
        socket
            .bind(PORTS + number)
            .expect("a new socket can be bound");
        Self {
            socket: sockets.add(socket),
            guest: IpEndpoint::new(guest.into(), port),
            length,
            open: VecDeque::new(),
        }
    }

    /// Sends a datagram. It is dropped if too many already wait.
    pub(crate) fn ask(&mut self, number: usize, sockets: &mut SocketSet<'static>) {
        let mut bytes = vec![0; self.length];
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a plan's count has 32 bits"
        )]
        bytes[..NUMBER].copy_from_slice(&(number as u32).to_be_bytes());
        let socket = sockets.get_mut::<Socket>(self.socket);
        let _ = socket.send_slice(&bytes, self.guest);
        self.open.push_back(number);
    }

    pub(crate) fn oldest(&self) -> Option<usize> {
        self.open.front().copied()
    }

    pub(crate) fn progress(
        &mut self,
        now: u64,
        requests: &mut Requests,
        sockets: &mut SocketSet<'static>,
    ) {
        let socket = sockets.get_mut::<Socket>(self.socket);
        while let Ok((bytes, _)) = socket.recv() {
            let Some(number) = bytes.first_chunk::<NUMBER>() else {
                continue;
            };
            let number = u32::from_be_bytes(*number) as usize;
            let is_whole =
                bytes.len() == self.length && bytes[NUMBER..].iter().all(|byte| *byte == 0);
            if let Some(at) = self.open.iter().position(|open| *open == number) {
                self.open.remove(at);
                let result = match is_whole {
                    true => Ok(()),
                    false => Err("the answer is another datagram".to_owned()),
                };
                requests.end(number, now, result);
            }
        }
        while let Some(number) = self.oldest().filter(|n| requests.deadline(*n) <= now) {
            self.open.pop_front();
            requests.end(number, now, Err("no answer".to_owned()));
        }
    }
}
