// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the modes that follow receivers through the command. A run makes the changes that `plan`
//! lists, bottom halves get the urgency of their receivers, and everything is restored.
use crate::actor;
use crate::ground;
use crate::machine;

mod borrowed;
mod exact;
mod faults;
mod killed;
mod namespaces;
mod predicted;
mod queues;
mod streams;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use actor::{Actor, become_fifo, bind};
use ground::{Ground, Need, Offload};
use libc::SOCK_DGRAM;
use machine::{FILES, Machine, Settings};
use serde_json::Value;

const NEEDS: &[Need] = &[Need::Namespaces, Need::RealTime, Need::Bpf];

/// A machine whose system file has this section `[linux]`, and on which an XDP program may be
/// attached.
fn machine(section: &str) -> Option<Machine> {
    machine_that_has(&[], section)
}

/// Creates the machine for a test with more needs.
fn machine_that_has(needs: &[Need], section: &str) -> Option<Machine> {
    let mut machine = Machine::new_with(&[NEEDS, needs].concat())?;
    machine.linux(section);
    machine.arguments.push("--yes-xdp");
    // Otherwise datagrams without checksums would be lost on their way through a class.
    machine.ground.sender.offload(Offload::SendChecksums, false);
    Some(machine)
}

/// Opens a socket of this process in the receivers' namespace.
fn socket(ground: &Ground, port: u16) -> UdpSocket {
    let socket = ground
        .receiver
        .run(move || UdpSocket::bind(any(port)).unwrap());
    let patience = Some(Duration::from_secs(5));
    socket.set_read_timeout(patience).unwrap();
    socket
}

/// Sends `count` datagrams to the port of `socket`, and counts those that arrive. The bursts are
/// small enough for the shortest queue.
fn deliver(ground: &Ground, socket: &UdpSocket, count: usize) -> usize {
    let to = (ground.receiver.v4, socket.local_addr().unwrap().port());
    let sender = ground.sender.run(|| UdpSocket::bind(any(0)).unwrap());
    let mut arrived = 0;
    for burst in (0..count).step_by(20) {
        let burst = 20.min(count - burst);
        for _ in 0..burst {
            sender.send_to(b"weir", to).unwrap();
        }
        let mut buffer = [0; 8];
        arrived += (0..burst)
            .take_while(|_| socket.recv(&mut buffer).is_ok())
            .count();
    }
    arrived
}

fn any(port: u16) -> SocketAddr {
    ([0, 0, 0, 0], port).into()
}

/// Starts a process of SCHED_FIFO with this priority that waits for datagrams for the port.
fn receiver(machine: &Machine, port: u16, priority: i32) -> Actor {
    Actor::new(&machine.ground.receiver, move || {
        let socket = bind(any(port), SOCK_DGRAM);
        become_fifo(priority);
        actor::child(move || {
            loop {
                let mut byte = 0_u8;
                // SAFETY: the byte outlives the call.
                unsafe { libc::recv(socket, (&raw mut byte).cast(), 1, 0) };
            }
        });
    })
}

/// The output of `plan --json`.
fn plan(machine: &Machine) -> Value {
    let output = machine.weir("plan").arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", machine::printed(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The changes of a plan, as settings with their new values, sorted.
fn listed(plan: &Value) -> Vec<(String, String)> {
    let changes = plan["changes"].as_array().unwrap().iter();
    let mut listed: Vec<_> = changes
        .map(|change| {
            let text = |key: &str| change[key].as_str().unwrap().to_owned();
            (text("setting"), text("new"))
        })
        .collect();
    listed.sort();
    listed
}

/// The settings that have changed, in the words of a plan. `policy` is what the plan says about the
/// threads of the interface.
fn changed(
    machine: &Machine,
    before: &Settings,
    now: &Settings,
    policy: &str,
) -> Vec<(String, String)> {
    let interface = &machine.ground.receiver.interface;
    let files = FILES.iter().zip(before.files.iter().zip(&now.files));
    let mut changed: Vec<_> = files
        .filter(|(_, (before, now))| before != now)
        .map(|(file, (_, now))| (format!("{file} of {interface}"), now.clone()))
        .collect();
    changed.push((
        format!("the policy of the threads of {interface}"),
        policy.to_owned(),
    ));
    changed.sort();
    changed
}

#[test]
fn what_it_may_not_do_is_named() {
    for mode in ["predicted", "exact"] {
        let Some(machine) = machine(&format!("mode = \"{mode}\"")) else {
            return;
        };
        for (dropped, name) in [
            ("-bpf", "CAP_BPF"),
            ("-perfmon", "CAP_PERFMON"),
            ("-net_admin", "CAP_NET_ADMIN"),
            ("-sys_nice", "CAP_SYS_NICE"),
        ] {
            let mut without = machine.ground.receiver.command("setpriv");
            without
                .arg(format!("--bounding-set={dropped}"))
                .args([env!("CARGO_BIN_EXE_weir-linux"), "run", "--yes-xdp"])
                .arg(machine.file())
                .arg("--state")
                .arg(machine.state());
            let output = without.output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            let text = machine::printed(&output);
            let wanted = format!("this process lacks {name}, which the mode `{mode}` needs");
            assert!(text.contains(&wanted), "{text}");
        }
        assert!(!machine.state().exists());
    }
}
