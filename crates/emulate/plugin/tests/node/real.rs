// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independent programs can communicate with the node, through QEMU's user network.
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::{Node, repository, skipped};

/// A QEMU process that is ended with the test.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // `timeout` forwards a signal that can be caught to QEMU.
        let timeout = Pid::from_raw(self.0.id().try_into().unwrap());
        let _ = signal::kill(timeout, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs a command until it succeeds, because the node needs a moment to start.
fn eventually(command: &mut Command) -> Output {
    let begin = Instant::now();
    loop {
        let output = command.output().unwrap();
        if output.status.success() || begin.elapsed() > Duration::from_secs(60) {
            return output;
        }
        sleep(Duration::from_millis(200));
    }
}

/// Returns a command that runs pymodbus, which writes and reads registers through this port.
fn pymodbus(port: u16) -> Command {
    let python = Command::new(repository("scripts/python-env.sh"))
        .arg("node")
        .output()
        .unwrap();
    assert!(python.status.success(), "{python:?}");
    let folder = String::from_utf8(python.stdout).unwrap();
    let mut client = Command::new(format!("{}/bin/python", folder.trim()));
    client
        .arg(repository("crates/emulate/plugin/tests/node/modbus.py"))
        .arg(port.to_string());
    client
}

/// Returns the option for QEMU's user network, which forwards two ports of this machine to the
/// node.
fn user_network(id: &str, http: u16, modbus: u16) -> String {
    format!("user,id={id},hostfwd=tcp:127.0.0.1:{http}-:80,hostfwd=tcp:127.0.0.1:{modbus}-:502")
}

#[test]
fn curl_and_pymodbus_talk_to_the_node() {
    let Some(node) = Node::new() else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        skipped("curl is missing; scripts/bootstrap.sh arm installs it");
        return;
    }
    let (http, modbus) = (free_port(), free_port());
    let machine = node
        .qemu("address=10.0.2.15")
        .args(["-netdev", &user_network("net", http, modbus)])
        .args(["-net", "nic,netdev=net,model=lan9118"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let machine = Machine(machine);

    let page = eventually(
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--max-time", "10"])
            .arg(format!("http://127.0.0.1:{http}/")),
    );
    assert!(page.status.success(), "{page:?}");
    let page = String::from_utf8_lossy(&page.stdout);
    assert!(page.contains("lwIP"), "{page}");

    let registers = pymodbus(modbus).output().unwrap();
    assert!(registers.status.success(), "{registers:?}");
    drop(machine);
}

/// The peer floods the node while an independent client communicates with it, beside a task that
/// uses half of the processor. With the unmodified driver, pymodbus gives up at this rate.
#[test]
fn pymodbus_talks_to_the_node_under_a_flood() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let plan = r#"{"end": "200s", "address": "10.0.2.77", "guest": "10.0.2.15",
        "flood": {"pattern": "poisson:120kHz", "end": "200s", "frames": {"udp": 5001}}}"#;
    let modbus = free_port();
    let options = "address=10.0.2.15 modbus=apart task=lateness steps=1136 driver=demux limit-hz=1900 limit-burst=1 work=165";
    let machine = node
        .qemu_with_peer(plan, options)
        .args(["-netdev", &user_network("user", free_port(), modbus)])
        .args(["-netdev", "hubport,id=out,hubid=0,netdev=user"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let machine = Machine(machine);
    let registers = eventually(&mut pymodbus(modbus));
    assert!(registers.status.success(), "{registers:?}");
    drop(machine);
}
