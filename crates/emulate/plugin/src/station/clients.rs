// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the clients against another station, which has servers.
use smoltcp::socket::{tcp, udp};

use super::tests::{ONE, TWO, run_beside};
use super::*;
use crate::report::RequestReport;

/// A station with two servers: an echo server on port 7, and a server on port 80 or 502 that
/// answers each request with `answer` and then closes the connection.
struct Servers {
    station: Station,
    echo: SocketHandle,
    /// A socket for each connection. The side that closes first cannot reuse its socket for a
    /// while.
    streams: [SocketHandle; 2],
    port: u16,
    answer: &'static [u8],
}

impl Servers {
    fn new(port: u16, answer: &'static [u8]) -> Self {
        let mut station = Station::new(TWO, ONE);
        let packets = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 2048]);
        let mut echo = udp::Socket::new(packets(), packets());
        echo.bind(7).unwrap();
        let bytes = || tcp::SocketBuffer::new(vec![0; 2048]);
        let mut stream = || station.sockets.add(tcp::Socket::new(bytes(), bytes()));
        Self {
            streams: [stream(), stream()],
            echo: station.sockets.add(echo),
            station,
            port,
            answer,
        }
    }

    /// Answers the requests that have arrived. Returns true if there were any.
    fn serve(&mut self) -> bool {
        let mut has_served = false;
        let echo = self.station.sockets.get_mut::<udp::Socket>(self.echo);
        while let Ok((bytes, from)) = echo.recv() {
            let bytes = bytes.to_vec();
            echo.send_slice(&bytes, from.endpoint).unwrap();
            has_served = true;
        }
        for handle in self.streams {
            let stream = self.station.sockets.get_mut::<tcp::Socket>(handle);
            if !stream.is_open() {
                stream.listen(self.port).unwrap();
            }
            if stream.can_recv() && stream.may_send() {
                stream.recv(|bytes| (bytes.len(), ())).unwrap();
                stream.send_slice(self.answer).unwrap();
                stream.close();
                has_served = true;
            }
        }
        has_served
    }
}

/// Returns the results of a client with two requests, 10 ms apart.
fn ask(question: &str, port: u16, answer: &'static [u8]) -> Vec<RequestReport> {
    let plan = Plan::parse(&format!(
        r#"{{"end": "9s", "clients": [{{"pattern": "100Hz", "count": 2, "begin": "1ms", "patience": "5ms", {question}}}]}}"#
    ))
    .unwrap();
    let mut station = Station::with_plan(&plan).unwrap();
    let mut servers = Servers::new(port, answer);
    servers.serve();
    run_beside(&mut station, 9_000_000_000, |now, frames| {
        for frame in frames {
            servers.station.receive(now, frame);
        }
        let mut leaving = servers.station.step(now);
        while servers.serve() {
            leaving.extend(servers.station.step(now));
        }
        (leaving, servers.station.wanted())
    });
    station.clients().remove(0).requests
}

fn latencies(requests: &[RequestReport]) -> Vec<u64> {
    requests
        .iter()
        .map(|request| request.latency_ns.unwrap_or_else(|| panic!("{request:?}")))
        .collect()
}

fn failures(requests: &[RequestReport]) -> Vec<&str> {
    let failures = requests.iter().map(|request| request.failure.as_deref());
    failures.map(|failure| failure.unwrap_or("none")).collect()
}

#[test]
fn latencies_are_those_of_the_wire() {
    // A frame takes 700 ns, and the first request includes ARP.
    assert_eq!(
        latencies(&ask(r#""ask": {"udp": 32}"#, 80, b"")),
        [2800, 1400]
    );
    assert_eq!(latencies(&ask(r#""ask": "tcp""#, 80, b"")), [2800, 1400]);
    let page = ask(
        r#""ask": {"http": "/"}"#,
        80,
        b"HTTP/1.0 200 OK\r\n\r\npage",
    );
    // Three round trips, of which one is saved: those of the connection and of the page.
    assert_eq!(latencies(&page), [4200, 2800]);
}

#[test]
fn what_is_no_answer_is_told() {
    let closed = ask(r#""ask": "tcp", "port": 81"#, 80, b"");
    assert!(failures(&closed).iter().all(|why| why.contains("refuses")));
    let missing = ask(r#""ask": {"http": "/"}"#, 80, b"HTTP/1.0 404 No\r\n\r\n");
    assert!(failures(&missing).iter().all(|why| why.contains("404")));
    let nobody = ask(r#""ask": {"udp": 32}, "port": 9"#, 80, b"");
    assert_eq!(failures(&nobody), ["no answer"; 2]);
    let silent = ask(
        r#""ask": {"http": "/"}, "reads": false"#,
        80,
        b"HTTP/1.0 200 OK\r\n\r\n",
    );
    assert_eq!(failures(&silent)[0], "no answer");
    // The client sends its request and gets no data.
    let gone = ask(
        r#""ask": {"http": "/"}, "acknowledges": false"#,
        80,
        b"HTTP/1.0 200 OK\r\n\r\n",
    );
    assert_eq!(failures(&gone)[0], "no answer");
}

#[test]
fn registers_are_judged_by_their_transaction() {
    let modbus = |answer| {
        let requests = ask(
            r#""ask": {"modbus": {"first": 0, "count": 2}}"#,
            502,
            answer,
        );
        failures(&requests)[0].to_owned()
    };
    let good = b"\0\0\0\0\0\x07\x01\x03\x04\0\x01\0\x02";
    assert_eq!(modbus(good), "none");
    assert!(modbus(b"\0\x09\0\0\0\x07\x01\x03\x04\0\x01\0\x02").contains("another"));
    assert!(modbus(b"\0\0\0\0\0\x03\x01\x83\x02").contains("exception 2"));
    assert!(modbus(b"\0\0\0\0\0\x07\x01\x03\x04\0\x01").contains("too soon"));
    assert!(modbus(b"").contains("closed"));
}
