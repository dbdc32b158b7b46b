// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overloads as users are told of them: once when one begins, with who it is, and once when it has
//! ended, however it flickers in between.
use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::commands::machine;
use super::flood::{self, Flood};
use super::machine::{Machine, said, signal, until};

/// The lines that a run has told until now.
#[derive(Clone)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self(Arc::default());
        let told = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                told.0.lock().unwrap().push(line.unwrap());
            }
        });
        lines
    }

    fn with(&self, part: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let meant = lines.iter().filter(|line| line.contains(part));
        meant.cloned().collect()
    }
}

/// What the status says of the overload that there is.
fn in_status(machine: &Machine) -> Value {
    machine.said()["account"]["overload"].clone()
}

fn flood_for(machine: &Machine, port: &'static [u16], time: Duration) {
    let flood = Flood::begin(&machine.ground, port);
    std::thread::sleep(time);
    flood.end();
}

/// A run that tells in words or in JSON sees two overloads; returns what it told when each began
/// and ended, and the numbers of the two receivers.
fn two_overloads(json: bool) -> Option<(Vec<String>, Vec<String>, [u32; 2])> {
    let mut machine = machine("accounting = \"packets\"")?;
    if !flood::has_two_cpus() {
        return None;
    }
    if json {
        machine.arguments.push("--json");
    }
    let receivers = [5001, 5002].map(|port| flood::receiver(&machine.ground.receiver, port));
    let mut child = machine.run();
    let (begins, ends) = if json {
        ("\"overload_begins\"", "\"overload_ends\"")
    } else {
        ("weir linux: overload: ", "the overload has ended")
    };
    let lines = if json {
        Lines::of(child.stdout.take().unwrap())
    } else {
        Lines::of(child.stderr.take().unwrap())
    };
    assert_eq!(in_status(&machine), Value::Null);
    // It flickers: a rest that is shorter than what ends it.
    for _ in 0..2 {
        flood_for(&machine, &[5001], Duration::from_secs(3));
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!((lines.with(begins).len(), lines.with(ends).len()), (1, 0));
    }
    assert!(in_status(&machine).is_string());
    let rest = Instant::now();
    until("it has ended", || lines.with(ends).len() == 1);
    // Of the 5 s that it takes, two were over.
    assert!(rest.elapsed() > Duration::from_secs(2));
    until("the status says so", || in_status(&machine).is_null());
    flood_for(&machine, &[5002], Duration::from_secs(3));
    until("the next one has ended, too", || {
        lines.with(ends).len() == 2
    });
    signal(&child, Signal::SIGTERM);
    assert!(child.wait().unwrap().success());
    let pids = [receivers[0].pid(), receivers[1].pid()];
    Some((lines.with(begins), lines.with(ends), pids))
}

#[test]
fn each_overload_is_told_once_in_words() {
    let Some((begun, ended, pids)) = two_overloads(false) else {
        return;
    };
    let [first, second] = &begun[..] else {
        panic!("{begun:?}");
    };
    for (line, port, pid) in [(first, 5001, pids[0]), (second, 5002, pids[1])] {
        assert!(
            line.contains(&format!("most of it is udp {port} from ")),
            "{line}"
        );
        assert!(line.contains(&format!("(process {pid}, /")), "{line}");
    }
    let seconds = |line: &String| -> u64 {
        let number = line.strip_prefix("weir linux: the overload has ended after ");
        number.unwrap().strip_suffix(" s").unwrap().parse().unwrap()
    };
    let [first, second] = &ended[..] else {
        panic!("{ended:?}");
    };
    // The first with its rest.
    assert!((6..=12).contains(&seconds(first)), "{first}");
    assert!((2..=6).contains(&seconds(second)), "{second}");
}

#[test]
fn each_overload_is_told_once_to_programs() {
    let Some((begun, ended, pids)) = two_overloads(true) else {
        return;
    };
    let parse = |line: &String| -> Value { serde_json::from_str(line).unwrap() };
    let begun: Vec<Value> = begun.iter().map(parse).collect();
    let ended: Vec<Value> = ended.iter().map(parse).collect();
    assert_eq!((begun.len(), ended.len()), (2, 2), "{begun:#?} {ended:#?}");
    for (event, (port, pid)) in begun.iter().zip([(5001, pids[0]), (5002, pids[1])]) {
        let culprit = &event["culprit"];
        assert_eq!(culprit["key"]["protocol"], "udp", "{event}");
        assert_eq!(culprit["key"]["port"], port, "{event}");
        assert_eq!(culprit["receiver"]["pid"], pid, "{event}");
        assert!(culprit["share"].as_f64().unwrap() > 0.0, "{event}");
        let what = event["cause"]["what"].as_str().unwrap();
        assert!(["cpu", "drops", "rate"].contains(&what), "{event}");
        assert!(event["text"].as_str().unwrap().starts_with("overload: "));
    }
    assert!(ended[0]["after_s"].as_f64() > ended[1]["after_s"].as_f64());
}

#[test]
fn what_comes_while_a_run_begins_is_no_overload() {
    let Some(machine) = machine("accounting = \"packets\"") else {
        return;
    };
    let _receiver = flood::receiver(&machine.ground.receiver, 5001);
    // 80 packets a second of the 100 that the file tolerates: two within 20 ms would be too many,
    // if a rate were taken of that.
    let flood = Flood::bursts(&machine.ground, &[5001], Duration::from_micros(12_400));
    for _ in 0..5 {
        let child = machine.run();
        std::thread::sleep(Duration::from_millis(1500));
        signal(&child, Signal::SIGTERM);
        let ended = child.wait_with_output().unwrap();
        let told = said(&ended);
        assert!(!told.contains("overload"), "{told}");
    }
    flood.end();
}
