// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the metrics of a run with a strict parser of Prometheus's text format.
use std::collections::BTreeMap;
use std::process::Output;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::commands::machine;
use super::flood::{self, Flood};
use super::machine::{Machine, printed, until};

/// Values, by the metric's name and labels.
type Values = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Parses metrics in the text format (version 0.0.4). Panics if the text breaks a rule: each name
/// has one block that begins with its help and its type, and no value occurs twice.
fn read(text: &str) -> Values {
    assert!(text.ends_with('\n'));
    let mut values = Values::new();
    let mut lines = text.lines().peekable();
    let mut names = Vec::new();
    while let Some(line) = lines.next() {
        let (name, help) = line
            .strip_prefix("# HELP ")
            .unwrap()
            .split_once(' ')
            .unwrap();
        assert!(
            !help.is_empty() && is_name(name) && !names.contains(&name),
            "{line}"
        );
        names.push(name);
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        assert_eq!(lines.next(), Some(&*format!("# TYPE {name} {kind}")));
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line.strip_prefix(name).unwrap().strip_prefix('{').unwrap();
            let (labels, value) = labels(rest);
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            let twice = values.insert((name.to_owned(), labels), value);
            assert_eq!(twice, None, "{line}");
        }
    }
    values
}

fn is_name(text: &str) -> bool {
    let mut all = text.chars();
    all.next().is_some_and(|first| first.is_ascii_lowercase())
        && all.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
}

/// Parses the labels up to the closing brace. Returns them and the text after the space that
/// follows.
fn labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, of_it) = rest.split_once("=\"").unwrap();
        assert!(is_name(name), "{rest}");
        let mut text = String::new();
        let mut all = of_it.char_indices();
        let end = loop {
            match all.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => text.push(match all.next().unwrap().1 {
                    'n' => '\n',
                    one @ ('\\' | '"') => one,
                    other => panic!("\\{other} in {rest}"),
                }),
                (_, other) => text.push(other),
            }
        };
        assert_eq!(labels.insert(name.to_owned(), text), None);
        rest = &of_it[end + 1..];
        if let Some(value) = rest.strip_prefix("} ") {
            return (labels, value);
        }
        rest = rest.strip_prefix(',').unwrap();
    }
}

fn metrics(machine: &Machine) -> Output {
    machine.weir("status").arg("--metrics").output().unwrap()
}

/// The metrics, and the status at the same moment.
fn both(machine: &Machine) -> (Values, Value) {
    let mut found = None;
    until("the status stays while it is read", || {
        let before = machine.run_status();
        let output = metrics(machine);
        assert!(output.status.success(), "{}", printed(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let is_same = machine.run_status() == before;
        found = is_same.then(|| (read(&text), before));
        is_same
    });
    found.unwrap()
}

#[test]
fn metrics_are_those_of_the_status() {
    let Some(machine) = machine("mode = \"exact\"\naccounting = \"packets\"") else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    let nothing = metrics(&machine);
    assert_eq!(nothing.status.code(), Some(1));
    assert_eq!(
        printed(&nothing),
        "# nothing runs, and nothing is to be put back"
    );
    let exclude = machine
        .weir("status")
        .args(["--metrics", "--json"])
        .output();
    assert_eq!(exclude.unwrap().status.code(), Some(2));
    let before = machine.settings();
    let receiver = flood::receiver(&machine.ground.receiver, 5001);
    let mut run = machine.run();
    let flood = Flood::begin(&machine.ground, &[5001, 5003]);
    let pid = receiver.pid().to_string();
    until("the receiver is charged", || {
        let processes = machine.run_status()["account"]["processes"].clone();
        let mut all = processes.as_array().into_iter().flatten();
        all.any(|of| of["pid"] == receiver.pid() && of["packets"].as_u64() > Some(1000))
    });
    flood.end();
    let (values, status) = both(&machine);
    let value = |name: &str, labels: &[(&str, &str)]| {
        let with = |(of, has): &(String, BTreeMap<String, String>)| {
            *of == format!("weir_linux_{name}")
                && has["system"] == "test"
                && labels.iter().all(|(label, text)| has[*label] == *text)
        };
        let found: Vec<f64> = values
            .iter()
            .filter_map(|(key, value)| with(key).then_some(*value))
            .collect();
        assert!(!found.is_empty(), "{name} {labels:?}: {values:#?}");
        found.iter().sum::<f64>()
    };
    let whole = |of: &Value| of.as_f64().unwrap();
    assert_eq!(value("running", &[("mode", "exact")]), 1.0);
    assert_eq!(
        value("settings_changed_total", &[]),
        whole(&status["changes"])
    );
    assert_eq!(
        value("followed_sockets", &[]),
        whole(&status["receivers"]["sockets"])
    );
    let exact = &status["exact"];
    for (number, class) in exact["classes"].as_array().unwrap().iter().enumerate() {
        let labels = [("class", &*number.to_string())];
        assert_eq!(value("class_urgency", &labels), whole(&class["urgency"]));
        assert_eq!(
            value("class_packets_total", &labels),
            whole(&class["given"])
        );
        assert_eq!(
            value("class_dropped_packets_total", &labels),
            whole(&class["dropped"])
        );
    }
    for (reason, packets) in exact["left"].as_object().unwrap() {
        assert_eq!(
            value("left_packets_total", &[("reason", reason)]),
            whole(packets)
        );
    }
    assert!(value("left_packets_total", &[("reason", "no_receiver")]) > 0.0);
    let account = &status["account"];
    let is_time = |seconds: f64, ns: &Value| {
        assert!(
            (seconds * 1e9 - whole(ns)).abs() < 2.0,
            "{seconds} s is not {ns} ns"
        );
    };
    is_time(value("account_seconds_total", &[]), &account["elapsed_ns"]);
    is_time(
        value("interrupt_seconds_total", &[]),
        &account["measured"]["total_ns"],
    );
    is_time(
        value("attributed_seconds_total", &[]),
        &account["measured"]["total_ns"],
    );
    let packets = [("to", "processes")];
    assert_eq!(value("packets_total", &packets), whole(&account["packets"]));
    assert_eq!(
        value("receiver_packets_total", &[]),
        whole(&account["packets"])
    );
    let of = account["processes"].as_array().unwrap().iter();
    let of = of.clone().find(|of| of["pid"] == receiver.pid()).unwrap();
    let labels = [
        ("pid", &*pid),
        ("receiver", of["command"].as_str().unwrap()),
    ];
    assert_eq!(
        value("receiver_packets_total", &labels),
        whole(&of["packets"])
    );
    is_time(
        value("receiver_charged_seconds_total", &labels),
        &of["charged_ns"],
    );
    let interface = &*machine.ground.receiver.interface;
    let labels = [
        ("interface", interface),
        ("protocol", "udp"),
        ("port", "5001"),
    ];
    assert!(value("flow_packets_total", &labels) > 1000.0);
    run.kill().unwrap();
    run.wait().unwrap();
    let crashed = metrics(&machine);
    assert_eq!(crashed.status.code(), Some(1));
    let values = read(&String::from_utf8(crashed.stdout).unwrap());
    assert_eq!(values.into_values().collect::<Vec<_>>(), [0.0]);
    let run = machine.run();
    machine.end(run, Signal::SIGTERM, &before);
}
