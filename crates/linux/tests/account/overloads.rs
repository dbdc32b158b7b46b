// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests how overloads are reported to users: once when an overload begins, with its cause, and
//! once when it has ended. Short rests in between are not reported.
use std::io::{BufRead as _, BufReader, Read};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::actor::Actor;
use super::commands::machine;
use super::flood::{self, Flood};
use super::machine::{Machine, printed, signal, until};

/// The lines that a run has printed so far.
#[derive(Clone)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn new(stream: impl Read + Send + 'static) -> Self {
        let lines = Self(Arc::default());
        let told = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                told.0.lock().unwrap().push(line.unwrap());
            }
        });
        lines
    }

    fn containing(&self, part: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let meant = lines.iter().filter(|line| line.contains(part));
        meant.cloned().collect()
    }
}

/// What the status says about the present overload.
fn in_status(machine: &Machine) -> Value {
    machine.run_status()["account"]["overload"].clone()
}

fn flood_for(machine: &Machine, port: &'static [u16], time: Duration) {
    let flood = Flood::begin(&machine.ground, port);
    std::thread::sleep(time);
    flood.end();
}

/// A run whose messages are read, with two receivers.
struct Watched {
    machine: Machine,
    receivers: [Actor; 2],
    run: Child,
    lines: Lines,
    /// Parts of the lines that report a begin and an end.
    begins: &'static str,
    ends: &'static str,
}

impl Watched {
    /// Begins a run that reports in words or in JSON.
    fn begin(json: bool) -> Option<Self> {
        let mut machine = machine("accounting = \"packets\"")?;
        if !flood::has_two_cpus() {
            return None;
        }
        if json {
            machine.arguments.push("--json");
        }
        let receivers = [5001, 5002].map(|port| flood::receiver(&machine.ground.receiver, port));
        let mut run = machine.run();
        let (begins, ends, lines) = if json {
            let lines = Lines::new(run.stdout.take().unwrap());
            ("\"overload_begins\"", "\"overload_ends\"", lines)
        } else {
            let lines = Lines::new(run.stderr.take().unwrap());
            let begins = "weir linux: overload: ";
            (begins, "the overload has ended", lines)
        };
        assert_eq!(in_status(&machine), Value::Null);
        Some(Self {
            machine,
            receivers,
            run,
            lines,
            begins,
            ends,
        })
    }

    /// Number of begins and of ends that have been reported.
    fn counts(&self) -> (usize, usize) {
        let count = |part| self.lines.containing(part).len();
        (count(self.begins), count(self.ends))
    }

    /// Ends the run. Returns the lines that reported begins and ends.
    fn end(mut self) -> (Vec<String>, Vec<String>) {
        signal(&self.run, Signal::SIGTERM);
        assert!(self.run.wait().unwrap().success());
        (
            self.lines.containing(self.begins),
            self.lines.containing(self.ends),
        )
    }
}

#[test]
fn each_overload_is_told_once_in_words() {
    let Some(watched) = Watched::begin(false) else {
        return;
    };
    let machine = &watched.machine;
    // The flood pauses, but for less time than it takes to end an overload.
    for _ in 0..2 {
        flood_for(machine, &[5001], Duration::from_secs(3));
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(watched.counts(), (1, 0));
    }
    assert!(in_status(machine).is_string());
    let rest = Instant::now();
    until("it has ended", || watched.counts().1 == 1);
    // The overload ends after 5 quiet seconds, of which two had passed.
    assert!(rest.elapsed() > Duration::from_secs(2));
    until("the status says so", || in_status(machine).is_null());
    flood_for(machine, &[5002], Duration::from_secs(3));
    until("the next one has ended, too", || watched.counts().1 == 2);
    let pids = [&watched.receivers[0], &watched.receivers[1]].map(Actor::pid);
    let (begun, ended) = watched.end();
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
    // The time of the first overload includes the pauses.
    assert!((6..=12).contains(&seconds(first)), "{first}");
    assert!((2..=6).contains(&seconds(second)), "{second}");
}

/// The test in words checks when overloads begin and end. This test checks only the format.
#[test]
fn an_overload_is_told_once_to_programs() {
    let Some(watched) = Watched::begin(true) else {
        return;
    };
    flood_for(&watched.machine, &[5001], Duration::from_secs(3));
    until("it has ended", || watched.counts().1 == 1);
    let pid = watched.receivers[0].pid();
    let (begun, ended) = watched.end();
    let parse = |line: &String| -> Value { serde_json::from_str(line).unwrap() };
    let begun: Vec<Value> = begun.iter().map(parse).collect();
    let ended: Vec<Value> = ended.iter().map(parse).collect();
    let ([event], [end]) = (&begun[..], &ended[..]) else {
        panic!("{begun:#?} {ended:#?}");
    };
    let culprit = &event["culprit"];
    assert_eq!(culprit["key"]["protocol"], "udp", "{event}");
    assert_eq!(culprit["key"]["port"], 5001, "{event}");
    assert_eq!(culprit["receiver"]["pid"], pid, "{event}");
    assert!(culprit["share"].as_f64().unwrap() > 0.0, "{event}");
    let what = event["cause"]["what"].as_str().unwrap();
    assert!(["cpu", "drops", "rate"].contains(&what), "{event}");
    assert!(event["text"].as_str().unwrap().starts_with("overload: "));
    let after = end["after_s"].as_f64().unwrap();
    assert!((2.0..=6.0).contains(&after), "{end}");
}

#[test]
fn what_comes_while_a_run_begins_is_no_overload() {
    let Some(machine) = machine("accounting = \"packets\"") else {
        return;
    };
    let _receiver = flood::receiver(&machine.ground.receiver, 5001);
    // The flood has 80 packets per second, and the file tolerates 100. Two packets within 20 ms
    // would exceed that, if the rate were computed over 20 ms.
    let flood = Flood::bursts(&machine.ground, &[5001], Duration::from_micros(12_400));
    for _ in 0..5 {
        let child = machine.run();
        std::thread::sleep(Duration::from_millis(1500));
        signal(&child, Signal::SIGTERM);
        let ended = child.wait_with_output().unwrap();
        let told = printed(&ended);
        assert!(!told.contains("overload"), "{told}");
    }
    flood.end();
}
