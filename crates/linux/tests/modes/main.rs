// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modes that follow receivers, by the command: what plan lists is what run changes, bottom halves get whom they are for, and all of it is put back.
#[path = "../actor/mod.rs"]
mod actor;
#[path = "../ground/mod.rs"]
mod ground;
#[path = "../machine/mod.rs"]
mod machine;

mod predicted;

use std::net::SocketAddr;

use actor::{Actor, become_fifo, bind};
use ground::Need;
use libc::SOCK_DGRAM;
use machine::Machine;
use serde_json::Value;

const NEEDS: &[Need] = &[Need::Namespaces, Need::RealTime, Need::Bpf];

/// A machine whose system file has this section `[linux]`.
fn machine(section: &str) -> Option<Machine> {
    let machine = Machine::with(NEEDS)?;
    machine.linux(section);
    Some(machine)
}

fn any(port: u16) -> SocketAddr {
    ([0, 0, 0, 0], port).into()
}

/// A process of SCHED_FIFO with this priority that waits for datagrams for the port.
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

/// What `plan --json` says.
fn plan(machine: &Machine) -> Value {
    let output = machine.weir("plan").arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", machine::said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What changes by a plan: each setting with its new value, sorted.
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
