// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `weir linux inspect` on this machine as it runs. It changes nothing.
use crate::{ground, turn};

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::process::Command;

use clap::CommandFactory as _;
use ground::Need;
use weir_linux::commands::Cli;
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
    let inspect = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-linux"));
        command
            .args(["inspect", "-o"])
            .arg(&draft)
            .args(more)
            .output()
            .unwrap()
    };
    let output = inspect(&[]);
    assert!(output.status.success(), "{output:?}");
    let system = weir_model::load(&draft).unwrap();
    let interfaces = weir_linux::machine::interfaces().unwrap();
    let is_up = |name: &&String| {
        let flags = format!("/sys/class/net/{name}/flags");
        let flags = std::fs::read_to_string(flags).unwrap();
        // The lowest bit is the flag IFF_UP.
        *name != "lo"
            && flags
                .trim()
                .ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])
    };
    let up = interfaces.iter().filter(is_up).count();
    assert_eq!(system.linux.interfaces.len(), up);
    if up > 0 {
        let node = Node::new(&system, None).unwrap();
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
    // The file is replaced only with --force, since people edit a draft.
    let again = inspect(&[]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(inspect(&["--force"]).status.success());
}

#[test]
fn a_file_of_somebody_else_and_a_missing_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, none) = (folder.path().join("theirs"), folder.path().join("no/such"));
    std::fs::write(&theirs, "of great value").unwrap();
    for path in [&theirs, &none] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-linux"));
        let output = command.args(["inspect", "-o"]).arg(path).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot write"), "{said}");
    }
    assert_eq!(std::fs::read(&theirs).unwrap(), b"of great value");
    assert!(!none.parent().unwrap().exists());
}

/// Without root the command says only what it cannot see, in words that a user knows.
#[test]
fn without_root_it_says_what_it_cannot_see() {
    if !turn::is_own(&[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let everybody = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let program = folder.path().join("weir-linux");
    std::fs::copy(env!("CARGO_BIN_EXE_weir-linux"), &program).unwrap();
    everybody(folder.path());
    everybody(&program);
    for (command, unseen) in [
        (&["inspect"][..], "which processes receive packets"),
        (&["top", "--once"], "whom interrupts are for"),
    ] {
        let mut plain = Command::new("setpriv");
        // Any other user has no capabilities that could be dropped.
        if nix::unistd::geteuid().is_root() {
            plain.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            plain.arg("--inh-caps=-all");
        }
        let output = plain.arg(&program).args(command).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let said = said.replace('│', " ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in [unseen, "cannot be seen", "root", "CAP_BPF"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("libbpf"), "{said}");
    }
}

/// A new option with a path must be added to one of these lists. If it names an output, it must
/// also be added to the tests.
#[test]
fn every_option_that_takes_a_path_is_an_input_or_obeys_the_rule_for_outputs() {
    let known = [
        // These options name inputs.
        "plan system",
        "run system",
        "install config",
        // These options name the folder of the runs, which the journal manages.
        "run state",
        "status state",
        "stop state",
        "top state",
        // These options name outputs.
        "inspect output",
        // These options name folders below which tests/install.rs checks the rule for outputs.
        "install prefix",
        "install destdir",
        "uninstall prefix",
        "uninstall destdir",
    ];
    let path = std::any::TypeId::of::<std::path::PathBuf>();
    let commands = Cli::command();
    let paths = commands.get_subcommands().flat_map(|command| {
        let paths = command
            .get_arguments()
            .filter(|of| of.get_value_parser().type_id() == path);
        paths.map(move |of| format!("{} {}", command.get_name(), of.get_id()))
    });
    assert_eq!(
        paths.collect::<BTreeSet<_>>(),
        known.map(str::to_owned).into()
    );
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
