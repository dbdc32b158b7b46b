// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the account where users see it: in the status of a run, in `top`, and as a line in the
//! journal when an overload begins.
use std::fs;
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use weir_linux::account::AccountReport;

use super::flood::{self, Flood};
use super::ground::Offload;
use super::machine::{Machine, printed, programs, signal, until};
use super::{NEEDS, process};

/// A machine whose file has this section `[linux]`, and tolerates 100 packets per second.
pub fn machine(section: &str) -> Option<Machine> {
    let mut machine = Machine::new_with(NEEDS)?;
    machine.arguments = vec!["--yes-xdp"];
    machine.ground.sender.offload(Offload::Receive, true);
    machine.ground.sender.offload(Offload::SendChecksums, false);
    machine.linux(section);
    let text = fs::read_to_string(machine.file()).unwrap();
    let rate = "rate = { tolerated = \"100Hz\" }\nmoderation =";
    fs::write(machine.file(), text.replace("moderation =", rate)).unwrap();
    Some(machine)
}

/// The account in the output of a command. `None` if it has none.
fn account(of: &Value) -> Option<AccountReport> {
    serde_json::from_value(of.clone()).ok()
}

fn in_status(machine: &Machine) -> Option<AccountReport> {
    account(&machine.status()["systems"][0]["status"]["account"])
}

fn top(machine: &Machine) -> Value {
    let output = machine.weir("top").args(["--once", "--json"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The beginnings of the names of an account's BPF programs.
const PROGRAMS: [&str; 1] = ["account_"];

fn end(child: Child) -> String {
    signal(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_keeps_the_account_and_names_the_culprit_once() {
    let Some(machine) = machine("accounting = \"packets\"") else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    let receiver = flood::receiver(&machine.ground.receiver, 5001);
    let child = machine.run();
    let flood = Flood::begin(&machine.ground, &[5001]);
    until("the receiver is charged", || {
        in_status(&machine).is_some_and(|report| process(&report, receiver.pid()).packets > 1000)
    });
    let shown = top(&machine);
    let status = machine.weir("status").output().unwrap();
    flood.end();
    let status = String::from_utf8(status.stdout).unwrap();
    println!("{status}");
    let is_its = |line: &str| line.split_whitespace().nth(1) == Some(&receiver.pid().to_string());
    assert!(status.lines().any(is_its), "{status}");
    assert!(
        status.contains("\noverload: ") && status.contains(" for nobody,"),
        "{status}"
    );
    assert!(
        status.lines().all(|line| line.chars().count() <= 100),
        "{status}"
    );
    let report = account(&shown["account"]).unwrap();
    assert!(report.adds_up(), "{report:#?}");
    let rows = shown["rates"]["processes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["pid"] == receiver.pid());
    let row = row.unwrap_or_else(|| panic!("{shown:#}"));
    assert!(row["charged"].as_f64().unwrap() > 0.0 && row["packets_hz"].as_f64().unwrap() > 100.0);
    let told = end(child);
    let begun: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("overload: "))
        .collect();
    let [begun] = begun[..] else { panic!("{told}") };
    let interface = &machine.ground.receiver.interface;
    let named = format!("most of it is udp 5001 from {interface} for");
    let process = format!("(process {}, /", receiver.pid());
    assert!(begun.contains(&named) && begun.contains(&process), "{told}");
    assert!(begun.contains("packets/s"), "{told}");
}

#[test]
fn in_mode_exact_both_halves_are_charged() {
    let section = "mode = \"exact\"\ntop_half = { urgency = 40 }";
    let Some(machine) = machine(section) else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    let receiver = flood::receiver(&machine.ground.receiver, 5001);
    let child = machine.run();
    // One packet in four is for nobody.
    let flood = Flood::begin(&machine.ground, &[5001, 5001, 5003, 5001]);
    until("the receiver is charged", || {
        in_status(&machine).is_some_and(|report| process(&report, receiver.pid()).packets > 10_000)
    });
    let report = in_status(&machine).unwrap();
    flood.end();
    assert!(report.adds_up(), "{report:#?}");
    let interface = &machine.ground.receiver.interface;
    let ran = |prefix: &str| -> u64 {
        let threads = report.threads.iter();
        let meant = threads.filter(|thread| thread.name.starts_with(prefix));
        meant.map(|thread| thread.ran_ns).sum()
    };
    let (top_half, bottom_half) = (ran(&format!("napi/{interface}-")), ran("cpumap/"));
    let charged = process(&report, receiver.pid()).charged_ns;
    println!(
        "top half {top_half} ns, bottom half {bottom_half} ns; charged {charged} ns for {} packets, nobody {} ns for {}",
        report.packets, report.orphans_ns, report.orphan_packets
    );
    assert!(top_half > 0 && bottom_half > 0, "{report:#?}");
    // The receivers cost three quarters of the top half, and all of the bottom half.
    let wanted = top_half as f64 * 0.75 + bottom_half as f64;
    let error = (charged as f64 - wanted).abs() / wanted;
    assert!(error < 0.1, "{error:.3}: {report:#?}");
    let orphans = report.orphan_packets as f64 / report.packets as f64;
    assert!((0.25..0.45).contains(&orphans), "{report:#?}");
    end(child);
}

#[test]
fn nothing_of_an_account_outlives_kill_9() {
    let Some(machine) = machine("accounting = \"time\"") else {
        return;
    };
    let before = programs(&PROGRAMS);
    let mut child = machine.run();
    until("the account is told", || {
        in_status(&machine).is_some_and(|report| report.elapsed_ns > 0)
    });
    let report = in_status(&machine).unwrap();
    assert!(!report.counts_packets && report.received_ns == 0);
    assert!(report.adds_up(), "{report:#?}");
    assert!(!programs(&PROGRAMS).is_subset(&before));
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees the programs a little later.
    until("the programs are gone", || {
        programs(&PROGRAMS).is_subset(&before)
    });
    assert!(machine.weir("stop").status().unwrap().success());
}

#[test]
fn top_measures_by_itself_where_nobody_keeps_an_account() {
    let Some(machine) = machine("accounting = \"off\"") else {
        return;
    };
    let receiver = flood::receiver(&machine.ground.receiver, 5001);
    if !flood::has_two_cpus() {
        return;
    }
    let before = programs(&PROGRAMS);
    let flood = Flood::begin(&machine.ground, &[5001]);
    let report = account(&top(&machine)["account"]).unwrap();
    assert!(
        report.adds_up() && process(&report, receiver.pid()).packets > 100,
        "{report:#?}"
    );
    let output = machine.weir("top").arg("--once").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    flood.end();
    assert!(text.contains(&receiver.pid().to_string()), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    until("the programs are gone", || {
        programs(&PROGRAMS).is_subset(&before)
    });
    // A run without an account has none in its status and loads no BPF programs.
    let child = machine.run();
    std::thread::sleep(Duration::from_millis(500));
    assert!(programs(&PROGRAMS).is_subset(&before));
    assert!(in_status(&machine).is_none());
    end(child);
}
