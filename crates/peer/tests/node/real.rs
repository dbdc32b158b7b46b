// SPDX-License-Identifier: MIT OR Apache-2.0
//! The node is real: programs that know nothing of it talk to it, through QEMU's user network.
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::{Node, repository, skipped};

/// QEMU, which ends with the test.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // `timeout` hands a signal that can be caught on to QEMU.
        let timeout = Pid::from_raw(self.0.id().try_into().unwrap());
        let _ = signal::kill(timeout, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs a command until it succeeds: the node needs a moment to start.
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

#[test]
fn curl_and_pymodbus_talk_to_the_node() {
    let Some(node) = Node::new() else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        skipped("curl is missing; scripts/bootstrap.sh arm installs it");
        return;
    }
    let python = Command::new(repository("scripts/python-env.sh"))
        .arg("node")
        .output()
        .unwrap();
    assert!(python.status.success(), "{python:?}");
    let python = String::from_utf8(python.stdout).unwrap();
    let (http, modbus) = (free_port(), free_port());
    let machine = node
        .qemu("address=10.0.2.15")
        .arg("-netdev")
        .arg(format!(
            "user,id=net,hostfwd=tcp:127.0.0.1:{http}-:80,hostfwd=tcp:127.0.0.1:{modbus}-:502"
        ))
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

    let registers = Command::new(format!("{}/bin/python", python.trim()))
        .arg(repository("crates/peer/tests/node/modbus.py"))
        .arg(modbus.to_string())
        .output()
        .unwrap();
    assert!(registers.status.success(), "{registers:?}");
    drop(machine);
}
