// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that no process gets the urgency of another one in mode exact.
use std::net::UdpSocket;

use libc::SOCK_DGRAM;
use nix::sys::signal::Signal;

use super::exact::given;
use super::machine::until;
use super::{any, machine, receiver};
use crate::actor::{Actor, become_fifo, bind, bind_only6};

/// Sends datagrams to a port by IPv6 or by IPv4.
fn send(machine: &super::machine::Machine, v6: bool, port: u16, count: usize) {
    let ground = &machine.ground;
    let to = if v6 {
        (ground.receiver.v6, port).into()
    } else {
        std::net::SocketAddr::from((ground.receiver.v4, port))
    };
    ground.sender.run(move || {
        let from = if v6 { ([0_u16; 8], 0).into() } else { any(0) };
        let socket = UdpSocket::bind(from).unwrap();
        for _ in 0..count {
            socket.send_to(b"weir", to).unwrap();
        }
    });
}

#[test]
fn another_users_socket_by_the_other_family_has_its_own_class() {
    let Some(machine) = machine("mode = \"exact\"") else {
        return;
    };
    let before = machine.settings();
    let run = machine.run();
    let _urgent = receiver(&machine, 4701, 50);
    let _other = Actor::new(&machine.ground.receiver, || {
        // SAFETY: the system call uses no memory.
        unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        bind_only6(4701, SOCK_DGRAM);
    });
    // The file states only an urgency for this port. Here any user may bind the port.
    machine.ground.receiver.run(|| {
        std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0").unwrap();
    });
    let _of_the_file = super::socket(&machine.ground, 9);
    let _of_another = Actor::new(&machine.ground.receiver, || {
        // SAFETY: the system call uses no memory.
        unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        bind_only6(9, SOCK_DGRAM);
    });
    // This urgent receiver takes packets of both versions of IP.
    let _both = Actor::new(&machine.ground.receiver, || {
        bind(([0_u16; 8], 4702).into(), SOCK_DGRAM);
        become_fifo(50);
    });
    until("all are known", || {
        let status = machine.run_status();
        let classes = status["exact"]["classes"].as_array().unwrap().clone();
        status["exact"]["sockets"] == 3 && classes.iter().any(|class| class["urgency"] == 50)
    });
    // The table follows bound sockets at once, but policies and versions of IP only by a scan.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let check = |v6, port, urgency: u8| {
        let first = machine.run_status();
        send(&machine, v6, port, 40);
        until("they are counted", || {
            let now = machine.run_status();
            let more = |urgency| given(&now, urgency) - given(&first, urgency);
            let others = [0, 2, 50].into_iter().filter(|of| *of != urgency);
            let (own, other) = (more(urgency), others.map(more).sum::<u64>());
            assert!(own <= 40 && other == 0, "{port}, IPv6 {v6}: {own}, {other}");
            own == 40
        });
    };
    check(false, 4701, 50);
    check(true, 4701, 0);
    check(false, 9, 2);
    check(true, 9, 0);
    check(false, 4702, 50);
    check(true, 4702, 50);
    machine.end(run, Signal::SIGINT, &before);
}
