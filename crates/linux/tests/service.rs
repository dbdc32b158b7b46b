// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the systemd unit allows a run what it needs. Each mode runs with the unit's
//! capabilities, while strace refuses every system call that the unit's filter does not contain. So
//! systemd itself need not run.
use crate::ground;
use crate::machine;

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ground::{Need, Offload, skipped};
use machine::{Machine, printed, until};

const UNIT: &str = include_str!("../systemd/weir-linux@.service");
const NEEDS: &[Need] = &[Need::Namespaces, Need::RealTime, Need::Bpf];

/// The words of a setting in the unit.
fn words(setting: &str) -> impl Iterator<Item = &'static str> {
    let line = UNIT.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name == setting).then_some(value)
    });
    line.unwrap().split(' ')
}

/// The sets of system calls, as `systemd-analyze` prints them. `None` if systemd-analyze or strace
/// is missing.
fn sets() -> Option<String> {
    let printed = Command::new("systemd-analyze")
        .arg("syscall-filter")
        .output();
    let strace = Command::new("strace").arg("--version").output();
    match (printed, strace) {
        (Ok(printed), Ok(_)) if printed.status.success() => {
            Some(String::from_utf8(printed.stdout).unwrap())
        }
        _ => {
            skipped("systemd-analyze and strace are needed");
            None
        }
    }
}

/// The system calls that a name in a filter stands for. It is a call itself, or a set of calls.
fn calls(name: &str, sets: &str) -> BTreeSet<String> {
    if !name.starts_with('@') {
        return BTreeSet::from([name.to_owned()]);
    }
    let is_other = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let lines = sets.lines().skip_while(|line| *line != name).skip(1);
    let members = lines.take_while(|line| !is_other(line)).map(str::trim);
    members
        .filter(|member| !member.is_empty() && !member.starts_with('#'))
        .flat_map(|member| calls(member, sets))
        .collect()
}

/// Runs the system as the unit does, with further `arguments`, and logs the system calls that are
/// refused.
fn run(machine: &Machine, sets: &str, arguments: &[&str]) -> Child {
    // systemd adds this set to every filter.
    let filter = words("SystemCallFilter").chain(["@default"]);
    let allowed: BTreeSet<String> = filter.flat_map(|name| calls(name, sets)).collect();
    assert!(allowed.contains("sched_setattr") && !allowed.contains("mount"));
    // System calls that this version of strace does not know are left out.
    let list = |calls: &mut dyn Iterator<Item = &String>| {
        calls
            .map(|call| format!("?{call}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    let refused = list(&mut allowed.iter());
    let logged = list(&mut allowed.iter().filter(|call| *call != "socket"));
    let capabilities: Vec<String> = words("CapabilityBoundingSet")
        .map(|name| format!("+{}", name.strip_prefix("CAP_").unwrap().to_lowercase()))
        .collect();
    let mut command = machine.ground.receiver.command("unshare");
    // The service's /sys shows the interfaces of its own network namespace.
    let script = "mount -t sysfs sys /sys && mount -t cgroup2 cgroup /sys/fs/cgroup && exec \"$@\"";
    command
        .args([
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            "setpriv",
            "--no-new-privs",
        ])
        .arg(format!("--bounding-set=-all,{}", capabilities.join(",")))
        .args(["strace", "--seccomp-bpf", "-f", "-qq", "-o"])
        .arg(machine.folder.path().join("calls"))
        .arg(format!("--trace=!{logged}"))
        .arg(format!("--inject=!{refused}:error=EPERM"))
        .args([env!("CARGO_BIN_EXE_weir-linux"), "run", "--yes-xdp"])
        .args(arguments)
        .arg(machine.file())
        .arg("--state")
        .arg(machine.state())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The system calls that were refused, and the families of the sockets that were opened.
fn logged(machine: &Machine) -> (BTreeSet<String>, BTreeSet<String>) {
    let log = fs::read_to_string(machine.folder.path().join("calls")).unwrap();
    let call = |line: &str| {
        let call = line.split_whitespace().nth(1)?.split('(').next()?;
        Some(call.to_owned())
    };
    let refused = log.lines().filter(|line| line.contains("(INJECTED)"));
    let family = |line: &str| {
        let (_, arguments) = line.split_once("socket(")?;
        Some(arguments.split(',').next()?.to_owned())
    };
    (
        refused.filter_map(call).collect(),
        log.lines().filter_map(family).collect(),
    )
}

#[test]
fn the_unit_leaves_each_mode_what_it_needs() {
    let Some(sets) = sets() else { return };
    let sections = [
        "mode = \"native\"",
        "mode = \"predicted\"\naccounting = \"packets\"",
        "mode = \"exact\"\naccounting = \"packets\"",
    ];
    for section in sections {
        let Some(machine) = Machine::new_with(NEEDS) else {
            return;
        };
        machine.linux(section);
        machine.ground.sender.offload(Offload::SendChecksums, false);
        let before = machine.settings();
        let is_exact = section.contains("exact");
        if is_exact {
            // The other end is in a namespace that the service may not enter.
            let refused = run(&machine, &sets, &[]).wait_with_output().unwrap();
            assert_eq!(refused.status.code(), Some(2));
            let text = printed(&refused);
            assert!(text.contains("say so with --yes-checksums"), "{text}");
        }
        let child = run(&machine, &sets, &["--yes-checksums"]);
        until("the run is ready", || {
            machine.run_status()["changes"].as_u64() >= Some(1)
        });
        let (here, there) = (machine.ground.receiver.v4, machine.ground.sender.v4);
        let bind = |address| move || UdpSocket::bind((address, 0)).unwrap();
        let receiver = machine.ground.receiver.run(bind(here));
        let sender = machine.ground.sender.run(bind(there));
        receiver
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        if is_exact {
            // The second socket is the one of the system file.
            until("it has a class", || {
                machine.run_status()["exact"]["sockets"] == 2
            });
        }
        for _ in 0..20 {
            sender
                .send_to(b"weir", receiver.local_addr().unwrap())
                .unwrap();
            receiver.recv(&mut [0; 8]).unwrap();
        }
        if section.contains("accounting") {
            until("they are charged", || {
                machine.run_status()["account"]["packets"].as_u64() >= Some(20)
            });
        }
        // A period passes, in which the run examines everything again.
        std::thread::sleep(Duration::from_secs(3));
        assert_ne!(machine.settings(), before);
        assert!(machine.weir("stop").status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let text = printed(&ended);
        assert!(ended.status.success(), "{section}: {text}");
        assert!(!text.contains("not permitted"), "{section}: {text}");
        assert_eq!(machine.settings(), before);
        let (refused, families) = logged(&machine);
        println!("{section}: refused {refused:?}, sockets {families:?}");
        // The run can do without this call, by which it would mount a sysfs of its own.
        let dispensable = BTreeSet::from(["fsopen".to_owned()]);
        assert!(refused.is_subset(&dispensable), "{refused:?}");
        let allowed: BTreeSet<&str> = words("RestrictAddressFamilies").collect();
        assert!(
            families
                .iter()
                .all(|family| allowed.contains(family.as_str())),
            "{families:?}"
        );
    }
}
