// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir linux inspect` on this machine as it runs: it only looks.
mod ground;

use std::net::UdpSocket;
use std::process::Command;

use ground::Need;
use weir_linux::system::Node;

#[test]
fn the_draft_is_a_system_of_this_machine_with_the_test_as_a_receiver() {
    if ground::begin(&[Need::Namespaces, Need::Bpf]).is_none() {
        return;
    }
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let draft = folder.path().join("node.toml");
    let inspect = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-linux"));
        command
            .args(["inspect", "-o"])
            .arg(&draft)
            .output()
            .unwrap()
    };
    let output = inspect();
    assert!(output.status.success(), "{output:?}");
    let system = weir_model::load(&draft).unwrap();
    let interfaces = weir_linux::machine::interfaces().unwrap();
    let is_up = |name: &&String| {
        let flags = format!("/sys/class/net/{name}/flags");
        let flags = std::fs::read_to_string(flags).unwrap();
        // The lowest bit is IFF_UP.
        *name != "lo"
            && flags
                .trim()
                .ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])
    };
    let up = interfaces.iter().filter(is_up).count();
    assert_eq!(system.linux.interfaces.len(), up);
    if up > 0 {
        let node = Node::of(&system, None).unwrap();
        let mut ports = node.receivers.iter().flat_map(|receiver| &receiver.ports);
        assert!(ports.any(|known| known.number == port), "{node:?}");
    }
    let mut told = Command::new(env!("CARGO_BIN_EXE_weir-linux"));
    let told = told.args(["inspect", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let receivers = told["receivers"].as_array().unwrap();
    let mine = receivers
        .iter()
        .find(|one| one["pid"] == std::process::id())
        .unwrap();
    let keys = mine["keys"].as_array().unwrap();
    assert!(keys.iter().any(|key| key["port"] == port), "{mine}");
    assert_eq!(told["interfaces"].as_array().unwrap().len(), up);
    // What is there already is not written over.
    let again = inspect();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
}

#[test]
fn it_is_about_the_network_namespace_that_it_is_in_whatever_sys_shows() {
    let Some(ground) = ground::begin(&[Need::Namespaces, Need::Bpf]) else {
        return;
    };
    let mut inspect = ground.receiver.command(env!("CARGO_BIN_EXE_weir-linux"));
    let told = inspect.args(["inspect", "--json"]).output().unwrap();
    assert!(told.status.success(), "{told:?}");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let interfaces = told["interfaces"].as_array().unwrap();
    let names: Vec<_> = interfaces.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&ground.receiver.interface]);
    assert!(interfaces[0]["queues"].as_u64() >= Some(1), "{told}");
}
