// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests TCP in mode exact. A connection has the class of its reader, over both versions of IP and
//! whichever side began it. All bytes arrive.
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::machine;
use super::machine::until;
use crate::ground::Namespace;

/// Number of bytes of a transfer. They are some thousand packets, more than any queue holds.
const SIZE: usize = 4_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes to be sent, of which no two parts are equal.
fn content() -> Vec<u8> {
    let words = 0..(SIZE / 8) as u64;
    words
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect()
}

/// Opens a connection from the namespace `client` to a server in the namespace `server`. Returns
/// the server's listener, the client's end, and the server's end.
fn connection(
    server: &Namespace,
    client: &Namespace,
    at: SocketAddr,
) -> (TcpListener, TcpStream, TcpStream) {
    let listener = server.run(move || TcpListener::bind(at).unwrap());
    let near = client.run(move || TcpStream::connect_timeout(&at, PATIENCE).unwrap());
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (listener, near, far)
}

/// Sends the content into one end of a connection, and returns what arrives at the other end.
fn transferred(mut from: TcpStream, mut to: TcpStream) -> Vec<u8> {
    let sending = thread::spawn(move || from.write_all(&content()).unwrap());
    let mut arrived = Vec::new();
    to.read_to_end(&mut arrived).unwrap();
    sending.join().unwrap();
    arrived
}

/// Packets that were given to classes.
fn given(status: &Value) -> u64 {
    let classes = status["exact"]["classes"].as_array().unwrap();
    let given = classes.iter().map(|class| class["given"].as_u64().unwrap());
    given.sum()
}

#[test]
fn what_is_sent_over_a_connection_goes_through_a_class_and_arrives_whole() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let (receiver, sender) = (&machine.ground.receiver, &machine.ground.sender);
    let families: [[IpAddr; 2]; 2] = [
        [receiver.v4.into(), sender.v4.into()],
        [receiver.v6.into(), sender.v6.into()],
    ];
    for (number, [here, there]) in families.into_iter().enumerate() {
        let port = 4600 + number as u16;
        // Packets are either for a server on this side, or answers for a client on this side at a
        // port that the kernel has chosen.
        for served_here in [true, false] {
            let name = format!("{here}, served here: {served_here}");
            let sockets = || machine.run_status()["exact"]["sockets"].as_u64().unwrap();
            // Only the socket of the system file is left.
            until("the sockets of the connection before are gone", || {
                sockets() == 1
            });
            let (_listener, source, sink) = if served_here {
                connection(receiver, sender, SocketAddr::new(here, port))
            } else {
                let at = SocketAddr::new(there, port);
                let (listener, near, far) = connection(sender, receiver, at);
                (listener, far, near)
            };
            until("a socket here is known", || sockets() > 1);
            let first = given(&machine.run_status());
            assert!(transferred(source, sink) == content(), "{name}");
            // A packet holds at most 1448 bytes, and packets are not joined before the program sees
            // them.
            let least = (SIZE / 1500) as u64;
            until(&name, || given(&machine.run_status()) - first >= least);
        }
    }
    machine.end(run, Signal::SIGINT, &before);
}
