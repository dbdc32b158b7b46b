// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir-load` from end to end, over the loopback interface.
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;

fn load(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("weir-load").unwrap();
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A receiver process that is ready. It is killed if the test fails.
struct Receiver(Option<Child>);

impl Receiver {
    fn start(arguments: &[&str]) -> Self {
        let mut child = load(&[&["receive", "--json", "--for", "20s"], arguments].concat())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stderr = child.stderr.as_mut().unwrap();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(Some(child))
    }

    fn result(mut self) -> Value {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn ask_to_end(&self) {
        signal(self.0.as_ref().unwrap(), libc::SIGTERM);
    }
}

fn signal(child: &Child, signal: libc::c_int) {
    let id = child.id().try_into().unwrap();
    // SAFETY: the process is a child of this test that has not been waited for, so its number is
    // still its own.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn datagrams_arrive_and_are_counted_per_sender() {
    let receiver = Receiver::start(&[
        "127.0.0.1:47110",
        "[::1]:47111",
        "--count",
        "600",
        "--buffer",
        "4194304",
    ]);
    for (to, flow) in [
        ("127.0.0.1:47110", "1"),
        ("127.0.0.1:47110", "2"),
        ("[::1]:47111", "3"),
    ] {
        let pattern = "bursts:50:gap=1us:period=10ms";
        let sent = json(&mut load(&[
            "send",
            to,
            "--flow",
            flow,
            "--pattern",
            pattern,
            "--for",
            "35ms",
            "--json",
        ]));
        assert_eq!(
            sent["packets"].as_u64().unwrap() + sent["late"].as_u64().unwrap(),
            200,
            "{sent}"
        );
        if sent["late"] != 0 {
            // The machine was too busy to send the whole pattern, so the receiver will not reach
            // its count.
            receiver.ask_to_end();
            return;
        }
    }
    let found = receiver.result();
    let ports = found["ports"].as_array().unwrap();
    assert_eq!(
        (&ports[0]["packets"], &ports[1]["packets"]),
        (&400.into(), &200.into()),
        "{found}"
    );
    assert_eq!(ports[0]["flows"].as_array().unwrap().len(), 2);
    assert_eq!(ports[0]["bytes"], 400 * 512);
    assert!(
        ports
            .iter()
            .flat_map(|port| port["flows"].as_array().unwrap())
            .all(|flow| flow["lost"] == 0)
    );
    assert!(ports[0]["latency"]["p50"].as_u64().unwrap() > 0);
}

#[test]
fn a_stream_keeps_its_messages() {
    let receiver = Receiver::start(&["127.0.0.1:47112", "--tcp"]);
    let sent = json(&mut load(&[
        "send",
        "127.0.0.1:47112",
        "--tcp",
        "--size",
        "5000",
        "--pattern",
        "5kHz",
        "--for",
        "50ms",
        "--json",
    ]));
    let packets = sent["packets"].as_u64().unwrap();
    assert!(packets > 0, "{sent}");
    std::thread::sleep(std::time::Duration::from_millis(200));
    receiver.ask_to_end();
    let found = receiver.result();
    assert_eq!(found["ports"][0]["packets"], packets, "{found}");
    assert_eq!(found["ports"][0]["foreign"], 0, "{found}");
}

#[test]
fn a_connection_takes_what_it_can_and_all_of_it_arrives() {
    for at in ["127.0.0.1:47115", "[::1]:47115"] {
        let receiver = Receiver::start(&[at, "--tcp"]);
        let sent = json(&mut load(&[
            "send", at, "--tcp", "--fast", "--size", "20000", "--for", "100ms", "--json",
        ]));
        thread::sleep(Duration::from_millis(200));
        receiver.ask_to_end();
        let found = &receiver.result()["ports"][0];
        assert_eq!(found["packets"], sent["packets"], "{found} {sent}");
        assert_eq!((&found["foreign"], &sent["late"]), (&0.into(), &0.into()));
        // The bound is low enough for a busy machine: a pattern of 1 kHz would be 20 MB/s.
        let span = found["span"].as_f64().unwrap();
        assert!(span > 0.0 && span < 5.0, "{found}");
        assert!(
            found["bytes"].as_f64().unwrap() / span > 4e7,
            "{found} {sent}"
        );
    }
}

#[test]
fn questions_are_answered_by_both_protocols_and_families() {
    for (at, tcp) in [
        ("127.0.0.1:47116", &[][..]),
        ("[::1]:47116", &[]),
        ("127.0.0.1:47116", &["--tcp"]),
        ("[::1]:47116", &["--tcp"]),
    ] {
        let receiver = Receiver::start(&[&[at, "--answer"], tcp].concat());
        // The size is more than one read takes, and less than the loopback's limit for a datagram.
        let ask = [
            "ask", at, "--count", "50", "--size", "60000", "--for", "10s",
        ];
        let answers = json(&mut load(&[&ask, tcp, &["--json"]].concat()));
        receiver.ask_to_end();
        let found = &receiver.result()["ports"][0];
        let counts = ["asked", "answered", "lost"].map(|name| answers[name].as_u64().unwrap());
        assert_eq!(counts, [50, 50, 0], "{at} {tcp:?}: {answers}");
        assert_eq!(found["packets"], 50, "{at} {tcp:?}: {found}");
        let latency = |name: &str| answers["latency"][name].as_u64().unwrap();
        assert_eq!(latency("count"), 50);
        assert!(latency("min") > 0 && latency("min") <= latency("p99"));
    }
}

#[test]
fn what_nobody_answers_is_lost_or_open_at_the_end() {
    let ask = |time: &str| {
        json(&mut load(&[
            "ask",
            "127.0.0.1:47117",
            "--for",
            time,
            "--json",
        ]))
    };
    let answers = ask("100ms");
    assert_eq!(
        (&answers["asked"], &answers["lost"], &answers["answered"]),
        (&1.into(), &0.into(), &0.into()),
        "{answers}"
    );
    let answers = ask("1300ms");
    assert_eq!(
        (&answers["asked"], &answers["lost"], &answers["answered"]),
        (&2.into(), &1.into(), &0.into()),
        "{answers}"
    );
}

#[test]
fn where_nobody_listens_packets_are_refused_and_the_flood_ends() {
    let sent = json(&mut load(&[
        "send",
        "127.0.0.1:47113",
        "--pattern",
        "1kHz",
        "--for",
        "50ms",
        "--json",
    ]));
    assert!(sent["refused"].as_u64().unwrap() > 0, "{sent}");
    assert!(sent["seconds"].as_f64().unwrap() < 10.0, "{sent}");
}

#[test]
fn jobs_are_done() {
    let spun = json(&mut load(&[
        "spin", "--work", "2ms", "--period", "20ms", "--jobs", "3", "--json",
    ]));
    assert_eq!(
        (&spun["released"], &spun["finished"]),
        (&3.into(), &3.into()),
        "{spun}"
    );
    let speed = spun["speed"].to_string();
    let again = json(&mut load(&[
        "spin", "--work", "2ms", "--jobs", "1", "--speed", &speed, "--json",
    ]));
    assert_eq!(again["speed"], spun["speed"]);
}

#[test]
fn what_keeps_a_job_from_beginning_counts_as_lost() {
    let jobs = load(&[
        "spin", "--work", "1ms", "--period", "20ms", "--jobs", "60", "--speed", "1e8", "--json",
    ])
    .spawn()
    .unwrap();
    thread::sleep(Duration::from_millis(200));
    // The process sleeps most of the time, so the signal stops it before a job and not during one.
    signal(&jobs, libc::SIGSTOP);
    thread::sleep(Duration::from_millis(400));
    signal(&jobs, libc::SIGCONT);
    let output = jobs.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["busy"].as_f64().unwrap() > 0.3, "{result}");
}

#[test]
fn another_process_is_given_a_policy() {
    // No other process has this name.
    let name = format!("weir-{}", std::process::id());
    let program = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut child = Command::new(&program).arg("30").spawn().unwrap();
    let of_child =
        |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    while !of_child("comm").starts_with(&name) {
        std::thread::yield_now();
    }
    let raised = json(&mut load(&["raise", &name, "--policy", "batch", "--json"]));
    // The policy is the 41st word of /proc/PID/stat (proc(5)); 3 is SCHED_BATCH.
    let policy = of_child("stat")
        .split_whitespace()
        .nth(40)
        .unwrap()
        .to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(program).unwrap();
    assert_eq!(policy, "3");
    assert_eq!(raised["raised"], serde_json::json!([name]));
}

#[test]
fn bad_input_is_told_and_exits_with_2() {
    for (arguments, says) in [
        (&["send", "8.8.8.8:53"][..], "public address"),
        (&["send", "localhost"], "invalid socket address"),
        (
            &["send", "127.0.0.1:1", "--pattern", "storm"],
            "there is no pattern",
        ),
        (
            &["send", "127.0.0.1:1", "--pattern", "level:low=1us:high=1us"],
            "a level is no pattern of packets",
        ),
        (&["send", "127.0.0.1:1", "--size", "27"], "28..=65507"),
        (&["send", "127.0.0.1:1", "--fast"], "--tcp"),
        (&["ask", "8.8.8.8:53"], "public address"),
        (
            &["ask", "127.0.0.1:1", "--tcp"],
            "cannot send to 127.0.0.1:1",
        ),
        (&["ask", "127.0.0.1:1", "--size", "27"], "28..=65507"),
        (&["send", "127.0.0.1:1", "--for", "1000s"], "10 minutes"),
        (&["receive"], "PORT"),
        (&["receive", "0"], "port 0"),
        (
            &["receive", "192.0.2.1:5000"],
            "cannot listen at 192.0.2.1:5000",
        ),
        (&["receive", "47114", "--cpu", "999"], "may run on"),
        (
            &["spin", "--work", "2ms", "--period", "1ms"],
            "make the period longer",
        ),
        (&["drop", "nowhere0"], "no network interface `nowhere0`"),
        (&["spin", "--speed", "NaN"], "not between 1e3 and 1e12"),
        (&["spin", "--policy", "fifo:100"], "from 1 to 99"),
        (
            &["raise", "napi/nothing-", "--policy", "other"],
            "begins with `napi/nothing-`",
        ),
    ] {
        let output = load(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        // The message may be broken over several lines.
        let words: Vec<&str> = message
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect();
        assert!(words.join(" ").contains(says), "{arguments:?}: {message}");
    }
}
