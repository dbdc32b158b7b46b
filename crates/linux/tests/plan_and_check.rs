// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that `weir linux plan` and `weir check` agree about a file. If check guarantees a
//! deadline, plan must not say that a flood can take it.

use std::time::Duration;

use proptest::prelude::*;
use weir_analysis::{analyse, units::Part};
use weir_linux::share::Share;
use weir_linux::system::Node;
use weir_model::System;

/// A system file for Linux with one task and two receivers of packets.
fn text(linux: &str, urgencies: [u8; 3], wcet_us: u64, deadline_us: u64) -> String {
    let costs = ["1us", "4us", "3us"];
    with_costs(linux, urgencies, wcet_us, deadline_us, costs)
}

/// The same system file with these costs of a packet: its top half, and two bottom halves.
fn with_costs(
    linux: &str,
    urgencies: [u8; 3],
    wcet_us: u64,
    deadline_us: u64,
    costs: [&str; 3],
) -> String {
    let [task, first, second] = urgencies;
    let [top, bottom, other] = costs;
    format!(
        r#"schema = 1
[cpu]
clock = "1000MHz"
interrupts = "flat"
longest_instruction = "100ns"
context_switch = "2us"
costs = {{ off = {{ request_served = "2us" }} }}
[linux]
{linux}
[[source]]
name = "eth"
vector = {{ name = "eth0", order = 1 }}
interface = "eth0"
handler = "2us"
max_work = 1
moderation = {{ absolute = "1ms" }}
rate = {{ worst = "ethernet-100" }}
[[receiver]]
name = "task"
urgency = {task}
period = "200ms"
deadline = "{deadline_us}us"
wcet = "{wcet_us}us"
[[receiver]]
name = "first"
urgency = {first}
[[receiver]]
name = "second"
urgency = {second}
[[flow]]
name = "one"
source = "eth"
receiver = "first"
top_half = "{top}"
bottom_half = "{bottom}"
[[flow]]
name = "two"
source = "eth"
receiver = "second"
top_half = "{top}"
bottom_half = "{other}"
"#
    )
}

fn linux() -> impl Strategy<Value = (String, Duration)> {
    let mode = prop::sample::select(vec!["native", "predicted", "exact"]);
    let top_half = prop_oneof![
        Just(String::new()),
        Just("top_half = { thread = false }\n".to_owned()),
        (1..99_u8).prop_map(|of| format!("top_half = {{ urgency = {of} }}\n")),
        (100..2_000_u64, 10..60_u64).prop_map(|(us, ms)| format!(
            "top_half = {{ runtime = \"{us}us\", period = \"{ms}ms\" }}\n"
        )),
    ];
    let tick = prop::sample::select(vec![1_u64, 4, 10]);
    (mode, top_half, tick, any::<bool>()).prop_map(|(mode, top_half, tick, has_timer)| {
        let ends_by_timer = has_timer && top_half.contains("runtime");
        let timer = if ends_by_timer {
            "cap_timer = true\n"
        } else {
            ""
        };
        let tick_of_run = if ends_by_timer { 0 } else { tick };
        (
            format!("mode = \"{mode}\"\n{top_half}{timer}tick = \"{tick}ms\"\n"),
            Duration::from_millis(tick_of_run),
        )
    })
}

/// The bound on the task's response time in cycles. `None` if `weir check` does not guarantee its
/// deadline.
fn guaranteed(system: &System) -> Option<u64> {
    let checked = system.clone().with_threads().ok()?;
    let analysis = analyse(&checked);
    let row = analysis.row(Part::Task(0))?;
    (row.holds() == Some(true)).then(|| analysis.response_of(&checked, 0))?
}

proptest! {
    #[test]
    fn what_is_guaranteed_bears_what_a_flood_takes(
        (linux, tick) in linux(),
        urgencies in [0..99_u8, 0..99_u8, 0..99_u8],
        wcet_us in 500..40_000_u64,
        slack_us in 0..60_000_u64,
    ) {
        let text = text(&linux, urgencies, wcet_us, wcet_us + slack_us);
        let system = weir_model::parse("test.toml", &text).unwrap();
        // Mode predicted has no cap, and only mode exact works without a thread, so such files are
        // refused.
        let Ok(node) = Node::new(&system, None) else {
            prop_assert!(system.with_threads().is_err(), "{text}");
            return Ok(());
        };
        let share = Share::new(&node, &node.interfaces[0], tick, None);
        let Some(bound) = guaranteed(&system) else { return Ok(()) };
        let is_safe = share.safe.iter().any(|name| name == "task");
        match share.at_once {
            Some(at_once) => {
                prop_assert!(is_safe, "{text}");
                let taken = (at_once * 1e9) as u64;
                prop_assert!(bound >= wcet_us * 1_000 + taken, "{bound} {taken} {text}");
                let in_the_long_run = wcet_us as f64 * 1e3 / (1.0 - share.cap.unwrap());
                prop_assert!(bound as f64 >= in_the_long_run, "{bound} {text}");
            }
            // Without a cap, a flood is bounded only by the rate of the wire, at 5 us per packet.
            None if !is_safe => {
                let most = wcet_us as f64 * 1e3 * (1.0 + 148_809.0 * 1e-6);
                prop_assert!(bound as f64 >= most, "{bound} {text}");
            }
            None => {}
        }
    }
}

proptest! {
    /// If a thread's work for a packet is not stated, the thread has no bound, and neither has any
    /// task that it delays.
    #[test]
    fn what_is_guaranteed_does_not_wait_for_unknown_costs(
        (linux, tick) in linux(),
        urgencies in [0..99_u8, 0..99_u8, 0..99_u8],
    ) {
        let zero = ["0us"; 3];
        let text = with_costs(&linux, urgencies, 1_000, 100_000, zero);
        let system = weir_model::parse("test.toml", &text).unwrap();
        let Ok(node) = Node::new(&system, None) else { return Ok(()) };
        let share = Share::new(&node, &node.interfaces[0], tick, None);
        prop_assert_eq!(share.capacity_hz, None);
        let precedes = share.cap.is_some() || !share.safe.iter().any(|name| name == "task");
        prop_assert!(!precedes || guaranteed(&system).is_none(), "{}", text);
    }
}

/// A cap of 1 ms and a tick of 4 ms can take 5.3 ms at one stretch. The loop has a slack of 5 ms.
#[test]
fn a_loop_with_less_slack_than_a_flood_takes_at_once_is_not_guaranteed() {
    let linux =
        "mode = \"native\"\ntop_half = { runtime = \"1ms\", period = \"10ms\" }\ntick = \"4ms\"\n";
    let with_slack = |slack_us: u64| {
        let text = text(linux, [80, 60, 0], 4_000, 4_000 + slack_us);
        guaranteed(&weir_model::parse("test.toml", &text).unwrap())
    };
    assert_eq!(with_slack(5_000), None);
    assert!(with_slack(13_000).is_some());
}
