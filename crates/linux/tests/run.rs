// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `weir linux` as users know it, on an interface of the test. A run makes the changes that
//! `plan` lists, and all are restored however it ends.
use crate::ground;
use crate::machine;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use ground::Offload;
use machine::{FILES, Machine, PATIENCE, printed, signal};
use nix::sys::signal::Signal;
use serde_json::Value;
use weir_linux::sched::SchedPolicy;
use weir_linux::settings::NetDevice;

#[test]
fn plan_lists_what_run_changes_and_stop_puts_it_back() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let output = machine.weir("plan").arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(machine.settings(), before);
    let mut listed: Vec<(String, String)> = plan["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            let text = |key: &str| change[key].as_str().unwrap().to_owned();
            (text("setting"), text("new"))
        })
        .collect();
    assert_eq!(plan["shares"][0]["safe"], serde_json::json!(["control"]));
    let capacity = plan["shares"][0]["capacity_hz"].as_f64().unwrap();
    assert!((capacity - 200_000.0).abs() < 1.0, "{capacity}");

    let child = machine.run();
    let now = machine.settings();
    let interface = &machine.ground.receiver.interface;
    let mut changed: Vec<(String, String)> = FILES
        .iter()
        .zip(before.files.iter().zip(&now.files))
        .filter(|(_, (before, now))| before != now)
        .map(|(file, (_, now))| (format!("{file} of {interface}"), now.clone()))
        .collect();
    let [napi] = machine.napi()[..] else {
        panic!("a veth of one queue has one NAPI thread");
    };
    changed.push((
        format!("the policy of the threads of {interface}"),
        napi.to_string(),
    ));
    assert_eq!(napi, SchedPolicy::Fifo(2));
    listed.sort();
    changed.sort();
    assert_eq!(listed, changed);

    let stopped = machine.weir("stop").arg("test").output().unwrap();
    assert!(stopped.status.success(), "{}", printed(&stopped));
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", printed(&ended));
    assert!(
        printed(&ended).contains("test is stopped"),
        "{}",
        printed(&ended)
    );
    assert_eq!(machine.settings(), before);
    assert!(machine.is_clean());
    assert_eq!(machine.status()["systems"], serde_json::json!([]));
}

#[test]
fn a_stop_of_another_system_says_what_runs() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let child = machine.run();
    let stopped = machine.weir("stop").arg("tset").output().unwrap();
    assert!(
        printed(&stopped).contains("no system `tset` runs; what runs is test"),
        "{}",
        printed(&stopped)
    );
    let told = machine.weir("stop").args(["tset", "--json"]).output();
    let told: serde_json::Value = serde_json::from_slice(&told.unwrap().stdout).unwrap();
    assert_eq!(told["running"], serde_json::json!(["test"]));
    assert_ne!(machine.settings(), before);
    machine.end(child, Signal::SIGINT, &before);
}

#[test]
fn control_c_and_a_term_put_everything_back() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    for how in [Signal::SIGINT, Signal::SIGTERM] {
        let child = machine.run();
        assert_ne!(machine.settings(), before);
        signal(&child, how);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", printed(&ended));
        assert_eq!(machine.settings(), before);
        assert!(machine.is_clean());
    }
}

#[test]
fn after_a_kill_stop_or_the_next_run_puts_everything_back() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let before = machine.settings();
    let mut killed = machine.run();
    signal(&killed, Signal::SIGKILL);
    killed.wait().unwrap();
    assert_ne!(machine.settings(), before);
    let status = machine.weir("status").output().unwrap();
    assert_eq!(status.status.code(), Some(1));
    assert!(printed(&status).contains("crashed"), "{}", printed(&status));
    let stopped = machine.weir("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", printed(&stopped));
    assert_eq!(machine.settings(), before);
    assert!(machine.is_clean());

    let mut killed = machine.run();
    signal(&killed, Signal::SIGKILL);
    killed.wait().unwrap();
    let next = machine.run();
    signal(&next, Signal::SIGINT);
    let ended = next.wait_with_output().unwrap();
    assert!(
        printed(&ended).contains("a crashed run had left settings"),
        "{}",
        printed(&ended)
    );
    assert_eq!(machine.settings(), before);
    assert!(machine.is_clean());
}

#[test]
fn what_somebody_else_has_set_is_left_and_said() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let child = machine.run();
    let name = &machine.ground.receiver.interface;
    let path = machine.ground.receiver.path();
    let open = NetDevice::find(name, Some(&path)).unwrap().open().unwrap();
    open.write("gro_flush_timeout", "77000").unwrap();
    signal(&child, Signal::SIGINT);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", printed(&ended));
    assert!(
        printed(&ended).contains("somebody else has set it to 77000"),
        "{}",
        printed(&ended)
    );
    assert_eq!(open.read("gro_flush_timeout").unwrap().trim(), "77000");
    open.write("gro_flush_timeout", "0").unwrap();
}

#[test]
fn a_second_run_on_the_interface_is_refused() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let child = machine.run();
    let second = machine.weir("run").output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let text = printed(&second);
    assert!(text.contains(&format!("process {}", child.id())), "{text}");
    assert_eq!(machine.status()["systems"].as_array().unwrap().len(), 1);
    signal(&child, Signal::SIGINT);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn what_the_machine_does_not_have_is_named_and_nothing_changes() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let refused = |mut command: Command, message: &str| {
        let output = command.output().unwrap();
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(message), "no `{message}` in {text}");
        assert!(text.contains("nothing was changed"), "{text}");
    };
    let before = machine.settings();
    machine.ground.receiver.offload(Offload::Receive, false);
    for command in ["plan", "run"] {
        refused(machine.weir(command), "it has no NAPI");
    }
    machine.ground.receiver.offload(Offload::Receive, true);
    let mut without = machine.ground.receiver.command("setpriv");
    without
        .args([
            "--bounding-set=-sys_nice",
            env!("CARGO_BIN_EXE_weir-linux"),
            "plan",
        ])
        .arg(machine.file());
    refused(
        without,
        "this process lacks CAP_SYS_NICE, which the mode `native` needs",
    );
    machine.write("weir-none");
    refused(
        machine.weir("run"),
        "there is no network interface `weir-none` here",
    );
    assert_eq!(machine.settings(), before);
    assert!(!machine.state().exists());
}

#[test]
fn programs_are_told_what_happens_an_object_a_line() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    machine.arguments.push("--json");
    let before = machine.settings();
    let run = machine.run();
    let pid = run.id();
    signal(&run, Signal::SIGINT);
    let ended = run.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty());
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.map(Result::unwrap).collect();
    let of = |event| lines.iter().find(|line| line["event"] == event).unwrap();
    assert_eq!(of("ready")["run"]["process"]["tid"], pid);
    assert_eq!(of("ready")["run"]["mode"], "native");
    assert!(of("note")["text"].as_str().unwrap().contains("coalescing"));
    let changes = of("stopped")["status"]["changes"].as_u64().unwrap();
    assert_eq!(changes, of("ready")["run"]["status"]["changes"]);
    assert_eq!(of("stopped")["complete"], true);
    assert_eq!(machine.settings(), before);
}

#[test]
fn systemd_is_told_when_it_is_ready_alive_and_ending() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let socket = machine.folder.path().join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = |listener: &UnixDatagram| {
        let mut text = [0; 256];
        let length = listener.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    let child = machine
        .weir("run")
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "600000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(heard(&listener).contains("READY=1"));
    assert_ne!(machine.settings().files[0], "0");
    assert!(heard(&listener).contains("WATCHDOG=1"));
    signal(&child, Signal::SIGTERM);
    loop {
        let text = heard(&listener);
        if text.contains("STOPPING=1") {
            break;
        }
        assert!(text.contains("WATCHDOG=1"), "{text}");
    }
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(Path::new(&machine.state()).exists() && machine.is_clean());
}
