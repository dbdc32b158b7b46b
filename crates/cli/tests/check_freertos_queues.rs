// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir check` for FreeRTOS: which frames share buffers and for how long, and how a tick
//! affects tasks and waiting frames.

use crate::common::{check, json, one, run, verdict, weir};
use tempfile::TempDir;

/// A card that receives a frame in each millisecond, and a task above `control` that runs for 5 ms.
const NODE: &str = r#"schema = 1
name = "queues"
[cpu]
board = "mps2-an385"
[freertos]
priorities = 25
common = { urgency = 2, queue = 8 }
[[source]]
name = "ethernet"
vector = "IRQ13"
priority = 96
handler = "1000 cycles"
max_work = 1
queue = 8
rate = { worst = "1kHz" }
[[receiver]]
name = "control"
urgency = 20
[[flow]]
name = "command"
source = "ethernet"
receiver = "control"
selector = { protocol = "udp", port = 5000 }
rate = "100Hz"
bottom_half = "1000 cycles"
queue = 2
deadline = "9ms"
[[receiver]]
name = "urgent"
urgency = 22
period = "10ms"
wcet = "5ms"
"#;

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(NODE.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "`{from}` in\n{text}");
        text.replace(from, to)
    })
}

/// Asserts that the certificate of `text` is valid and that the answer beside it follows from it.
fn is_certified(text: &str) {
    let folder = TempDir::new().unwrap();
    let system = folder.path().join("system.toml");
    std::fs::write(&system, text).unwrap();
    let answer = run(weir().args(["check", "--json"]).arg(&system)).out;
    let verified = run(weir()
        .args(["verify", "-", "--system"])
        .arg(&system)
        .write_stdin(answer));
    let is_valid = verified.out.starts_with("valid: ");
    assert!(is_valid, "{}{}", verified.out, verified.err);
}

/// Returns how many buffers the frames of `command` need, and how many there are.
fn needed(text: &str) -> (u64, u64) {
    let (of, _) = json(text);
    let flow = one(&of["flows"], "name", "command");
    let number = |key: &str| flow[key].as_u64().unwrap();
    (number("queue_needed"), number("queue"))
}

#[test]
fn flows_of_one_receiver_share_its_buffers() {
    assert_eq!(check(with(&[]), &[]).code, Some(0));
    let (alone, _) = needed(&with(&[]));
    let noise = r#"[[flow]]
name = "noise"
source = "ethernet"
receiver = "control"
selector = { protocol = "udp", port = 6000 }
bottom_half = "10000 cycles"
queue = 1
"#;
    let text = with(&[]) + noise;
    // One frame comes in each millisecond while `urgent` runs, and each may be noise.
    let (both, room) = needed(&text);
    assert_eq!(room, 3);
    assert!(both >= alone + 5, "{both} of {room}, {alone} alone");
    let printed = check(&text, &[]);
    assert_eq!(printed.code, Some(1), "{}", printed.out);
    assert!(
        verdict(&printed)
            .starts_with("not guaranteed: a packet of command may find its queue full"),
        "{}",
        printed.out
    );
    is_certified(&text);
    let roomy = text.replace("queue = 1\n", "queue = 9\n");
    assert_eq!(check(&roomy, &[]).code, Some(0));
    is_certified(&roomy);
}

#[test]
fn a_lane_of_the_same_urgency_takes_buffers_beyond_its_own() {
    let lane = |queue: u32| {
        let key =
            format!("common = {{ urgency = 20, queue = {queue}, bottom_half = \"10000 cycles\" }}");
        with(&[("common = { urgency = 2, queue = 8 }", &key)])
    };
    let printed = check(lane(1), &[]);
    assert_eq!(printed.code, Some(1), "{}", printed.out);
    assert!(
        verdict(&printed).contains("command may find its queue full"),
        "{}",
        printed.out
    );
    is_certified(&lane(1));
    assert_eq!(check(lane(9), &[]).code, Some(0));
    is_certified(&lane(9));
}

#[test]
fn a_frame_keeps_its_buffer_until_the_receiver_has_taken_it() {
    // The receiver takes the waiting frames once in a second: a hundred frames at 100 Hz, and one
    // more.
    let poll = |queue: &str| {
        with(&[
            ("worst = \"1kHz\"", "worst = \"100Hz\""),
            (
                "urgency = 20\n",
                "urgency = 20\nperiod = \"1s\"\nwcet = \"1ms\"\n",
            ),
            ("queue = 2\n", queue),
        ])
    };
    let printed = check(poll("queue = 110\n"), &[]);
    let text = "each job takes all frames that wait, of control";
    assert!(printed.out.contains(text), "{}", printed.out);
    let (needed, _) = needed(&poll("queue = 2\n"));
    assert!((101..=104).contains(&needed), "{needed}");
    assert_eq!(check(poll("queue = 2\n"), &[]).code, Some(1));
    is_certified(&poll("queue = 2\n"));
    assert_eq!(check(poll("queue = 110\n"), &[]).code, Some(0));

    // The job of the receiver waits for more urgent work, even if the file states no work for it.
    let idle = poll("queue = 2\n").replace("wcet = \"1ms\"", "");
    assert!(self::needed(&idle).0 >= 101, "{idle}");
    // The receiver may also run for each frame, with 4 ms of work.
    let worker = with(&[("urgency = 20\n", "urgency = 20\nwcet = \"4ms\"\n")]);
    assert_eq!(check(&worker, &[]).code, Some(1));
    is_certified(&worker);
}

/// A worker runs for each frame. It is less urgent than other work, and waits for the stack's lock.
#[test]
fn a_worker_without_a_stated_cost_waits_all_the_same() {
    let free = with(&[("bottom_half = \"1000 cycles\"\n", "")]);
    let latency = |text: &str| {
        let (of, _) = json(text);
        one(&of["flows"], "name", "command")["response_cycles"]
            .as_u64()
            .unwrap()
    };
    assert!(latency(&free) > 5 * 125_000, "{}", latency(&free));
    let lane = with(&[(
        "common = { urgency = 2, queue = 8 }",
        "common = { urgency = 20, queue = 1, bottom_half = \"0 cycles\" }",
    )]);
    assert_eq!(check(&lane, &[]).code, Some(1));
    let locked = with(&[("urgency = 20\n", "urgency = 20\nblocking = \"3ms\"\n")]);
    assert!(latency(&locked) >= latency(&with(&[])) + 3 * 125_000);
    for text in [free, lane, locked] {
        is_certified(&text);
    }
}

#[test]
fn a_tick_ends_the_wait_of_gathered_frames() {
    let gathered = |tick: &str| {
        let rate = format!("priorities = 25\ntick_rate = \"{tick}\"");
        with(&[
            ("priorities = 25", &rate),
            (
                "queue = 8\nrate",
                "queue = 8\nmoderation = { absolute = \"100us\" }\nrate",
            ),
            ("max_work = 1", "max_work = 200"),
            ("queue = 2\n", "queue = 2000\n"),
            ("wcet = \"5ms\"", "wcet = \"1ms\""),
        ])
    };
    // A frame that arrives just after a tick waits for the next one.
    let printed = check(gathered("100Hz"), &[]);
    assert!(
        verdict(&printed).starts_with("not guaranteed: a packet of command can take"),
        "{}",
        printed.out
    );
    is_certified(&gathered("100Hz"));
    let (quick, code) = json(&gathered("1kHz"));
    assert_eq!(code, Some(0), "{quick}");
    assert_eq!(quick["assumptions"]["gathering"][0], "ethernet");
    let flow = one(&quick["flows"], "name", "command");
    // The delay is 0.1 ms, the time to the next tick, and the tick's own delay. A microsecond has
    // 125 cycles.
    assert_eq!(flow["moderation_cycles"], 125 * 2100);
    is_certified(&gathered("1kHz"));
}

#[test]
fn tasks_take_turns_at_a_tick_if_the_file_states_no_slice() {
    let with_slice = |keys: &str| {
        let cpu = format!("board = \"mps2-an385\"\ncontext_switch = \"100us\"{keys}");
        with(&[("board = \"mps2-an385\"", &cpu)])
            + "[[receiver]]\nname = \"other\"\nurgency = 22\nperiod = \"100ms\"\nwcet = \"3ms\"\n"
    };
    let response = |text: &str| {
        let (of, _) = json(text);
        let row = one(&of["rows"], "name", "urgent").clone();
        row["response_cycles"].as_u64().unwrap()
    };
    let unstated = response(&with_slice(""));
    assert_eq!(unstated, response(&with_slice("\ntime_slice = \"1ms\"")));
    assert!(unstated > response(&with_slice("\ntime_slice = \"1s\"")));
    // Cooperative tasks have no time slices.
    let cooperative = with_slice("\ntasks = \"cooperative\"");
    assert_ne!(check(cooperative, &[]).code, Some(2));
}
