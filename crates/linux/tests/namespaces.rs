// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the ground itself: it works, and it disappears.
use crate::ground;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use ground::{Need, Offload};

#[test]
fn packets_pass_between_the_namespaces_and_nowhere_else() {
    let Some(ground) = ground::begin(&[Need::Namespaces]) else {
        return;
    };
    for (here, there) in [
        (
            SocketAddr::from((ground.receiver.v4, 0)),
            SocketAddr::from((ground.sender.v4, 0)),
        ),
        (
            SocketAddr::from((ground.receiver.v6, 0)),
            SocketAddr::from((ground.sender.v6, 0)),
        ),
    ] {
        let receiver = ground.receiver.run(move || UdpSocket::bind(here)).unwrap();
        let sender = ground.sender.run(move || UdpSocket::bind(there)).unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        sender
            .send_to(b"weir", receiver.local_addr().unwrap())
            .unwrap();
        let mut data = [0; 8];
        let (length, from) = receiver.recv_from(&mut data).unwrap();
        assert_eq!(
            (&data[..length], from),
            (&b"weir"[..], sender.local_addr().unwrap())
        );
    }
    // The interfaces are not in this process's own namespace.
    for interface in [&ground.sender.interface, &ground.receiver.interface] {
        assert!(!Path::new("/sys/class/net").join(interface).exists());
        assert!(interface.len() < 16, "{interface}");
    }
}

#[test]
fn a_program_runs_in_the_namespace_and_ends_with_the_test() {
    let Some(ground) = ground::begin(&[Need::Namespaces]) else {
        return;
    };
    let output = ground
        .receiver
        .command("ip")
        .args(["-o", "link"])
        .output()
        .unwrap();
    let links = String::from_utf8(output.stdout).unwrap();
    assert!(links.contains(&ground.receiver.interface), "{links}");
    assert!(!links.contains("eth0"), "{links}");
    let mut child = std::thread::scope(|scope| {
        scope
            .spawn(|| ground.receiver.command("sleep").arg("60").spawn().unwrap())
            .join()
            .unwrap()
    });
    // The thread that started the program has ended.
    assert!(!child.wait().unwrap().success());
}

#[test]
fn offloads_are_set_where_they_are_asked_for() {
    let Some(ground) = ground::begin(&[Need::Namespaces]) else {
        return;
    };
    for on in [true, false, true] {
        ground.receiver.offload(Offload::Receive, on);
        ground.receiver.offload(Offload::SendChecksums, on);
    }
    let path = ground.receiver.path();
    assert!(path.exists());
    let interface = ground.receiver.interface.clone();
    drop(ground);
    assert!(!path.exists(), "{interface}");
}
