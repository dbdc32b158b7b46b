// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the verdicts and exit codes of `weir check`.

use crate::common::{BUTTON_LIMIT, check, json, node, one, verdict};

/// Returns a system whose network card has this rate.
fn gateway(rate: &str) -> String {
    include_str!("data/gateway.toml").replace("rate = { expected = \"1kHz\" }", rate)
}

#[test]
fn a_guarantee_says_so_and_succeeds() {
    let printed = check(node(&[]), &[]);
    assert_eq!(
        verdict(&printed),
        "guaranteed: every deadline holds whatever the sources do",
        "{}",
        printed.out
    );
    assert_eq!(printed.code, Some(0));
    assert_eq!(printed.err, "");
}

#[test]
fn a_guarantee_names_the_rates_that_it_needs() {
    let printed = check(
        node(&[
            (BUTTON_LIMIT, ""),
            (r#"tolerated = "60Hz" }"#, r#"worst = "60Hz" }"#),
        ]),
        &[],
    );
    assert_eq!(
        verdict(&printed),
        "guaranteed: every deadline holds as long as button keeps to its worst rate"
    );
    assert_eq!(printed.code, Some(0));
}

#[test]
fn a_missed_deadline_is_told_with_what_it_can_take() {
    // Only the deadline of `control` is changed, so its bound is the same as before.
    let printed = check(node(&[("deadline = \"2ms\"", "deadline = \"501us\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: control can take ")
            && sentence.ends_with(" against its deadline of 501 µs"),
        "{sentence}"
    );
    assert_eq!(printed.code, Some(1));
    assert_eq!(printed.out.matches("MISSED").count(), 1, "{}", printed.out);
}

#[test]
fn a_failed_check_says_where_to_begin() {
    let changes: [(&[_], &str); 5] = [
        (
            &[("deadline = \"2ms\"", "deadline = \"501us\"")],
            "The largest part of it: control itself, 500 µs of",
        ),
        (
            &[
                ("deadline = \"2ms\"", "deadline = \"120us\""),
                ("wcet = \"500us\"", "wcet = \"40us\""),
            ],
            "The largest part of it: interrupts of encoder, 128 µs of 198 µs.",
        ),
        (
            &[("wcet = \"500us\"", "wcet = \"1990us\"")],
            "The largest part of it: control itself, 99.5 % of the processor.",
        ),
        (
            &[("deadline = \"20ms\"", "deadline = \"1ms\"")],
            "The largest part of it: the wait for the limit, 16.6 ms of 19 ms.",
        ),
        (
            &[(BUTTON_LIMIT, "")],
            "system.toml looks for limits with which every deadline holds.",
        ),
    ];
    for (changes, says) in changes {
        let printed = check(node(changes), &[]);
        assert_eq!(printed.code, Some(1));
        let text = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says), "`{says}` in\n{}", printed.out);
        assert!(text.contains("weir tune"), "{}", printed.out);
    }
    assert!(!check(node(&[]), &[]).out.contains("weir tune"));
    let unknown = node(&[(BUTTON_LIMIT, "")]);
    let rates = unknown.lines().filter(|line| !line.starts_with("rate = "));
    let unknown: Vec<&str> = rates.collect();
    let printed = check(unknown.join("\n"), &[]);
    assert!(
        printed.out.contains("State what a healthy source does"),
        "{}",
        printed.out
    );
}

#[test]
fn the_largest_part_is_in_json_where_a_deadline_is_missed() {
    let changes = [("deadline = \"2ms\"", "deadline = \"501us\"")];
    let (json, _) = json(&node(&changes));
    let part = &one(&json["rows"], "name", "control")["largest_part"];
    assert_eq!(
        (&part["kind"], &part["cycles"]),
        (&"own".into(), &8000.into())
    );
    assert!(part["of_cycles"].as_u64() > Some(8000), "{part}");
    assert!(one(&json["rows"], "name", "monitor")["largest_part"].is_null());
}

#[test]
fn the_unlimited_source_that_starves_is_named() {
    let printed = check(node(&[(BUTTON_LIMIT, "")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: control may never run: it is starved by button, which has neither a limit nor a \
         worst rate; 1 more row and 1 flow miss their deadlines, too"
    );
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_source_without_bound_that_has_a_deadline_itself_is_told_so() {
    let printed = check(node(&[(BUTTON_LIMIT, "deadline = \"1ms\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: button may interrupt without end"),
        "{sentence}"
    );
}

#[test]
fn more_demand_than_the_processor_has_is_a_verdict() {
    let printed = check(node(&[("wcet = \"1ms\"", "wcet = \"9ms\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: monitor may never end") && sentence.contains(" % "),
        "{sentence}"
    );
    assert_eq!(printed.code, Some(1));
    // A WCET above the period is rejected, too.
    let printed = check(node(&[("wcet = \"1ms\"", "wcet = \"11ms\"")]), &[]);
    assert_eq!(printed.code, Some(1));
    assert_eq!(printed.err, "");
}

#[test]
fn a_source_that_states_no_max_work_proves_nothing() {
    let printed = check(
        node(&[(
            "max_work = 1\nrate = { expected = \"10Hz\"",
            "rate = { expected = \"10Hz\"",
        )]),
        &[],
    );
    assert_eq!(
        verdict(&printed),
        "not proven: button states no max_work, so one interrupt of it may take any time"
    );
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("NOT STATED by button"),
        "{}",
        printed.out
    );
}

#[test]
fn without_a_deadline_nothing_is_proven() {
    let printed = check(
        node(&[
            ("deadline = \"2ms\"\n", ""),
            ("deadline = \"10ms\"\n", ""),
            ("deadline = \"20ms\"\n", ""),
        ]),
        &[],
    );
    assert!(verdict(&printed).starts_with("not proven: nothing has a deadline"));
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_flow_can_be_late_or_lose_packets() {
    let printed = check(node(&[("deadline = \"20ms\"", "deadline = \"4ms\"")]), &[]);
    assert!(
        verdict(&printed).starts_with("not guaranteed: a packet of counts can take "),
        "{}",
        printed.out
    );
    let printed = check(node(&[("queue = 16", "queue = 7")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: a packet of counts may find its queue full: 8 may wait, and there is room for 7"
    );
    assert!(printed.out.contains("QUEUE SHORT"), "{}", printed.out);
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_device_of_unknown_length_gives_no_guarantee() {
    let printed = check(node(&[("queue = 4\n", "")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: a packet of counts may wait for any number of interrupts, behind as many packets as encoder holds: state the source's `queue`"
    );
    assert_eq!(printed.code, Some(1));
    // If each packet raises its own interrupt, the size of the queue does not matter.
    let text = gateway("rate = { worst = \"100Hz\" }");
    let (of, code) = json(&text);
    assert_eq!(code, Some(0), "{of}");
}

#[test]
fn packets_wait_for_all_interrupts_that_take_those_before_them() {
    let wait = |queue: &str, key: &str| {
        let (of, _) = json(&node(&[("queue = 4\n", queue)]));
        one(&of["flows"], "name", "counts")[key].as_u64().unwrap()
    };
    for key in ["limit_cycles", "interrupt_cycles"] {
        // If one interrupt takes all packets, no packets are left to raise it again, and each
        // packet is answered sooner.
        let (one, two) = (wait("queue = 1\n", key), wait("queue = 2\n", key));
        assert!(one > 0 && two >= 2 * one, "{key}: {one}, {two}");
        assert_eq!(2 * wait("queue = 3\n", key), 3 * two, "{key}");
    }
    // An interrupt takes 8 of 20 packets. If 4 are counted, the packets left before the last
    // interrupt raise it again without delay.
    for (count, delays) in [("", 3), (", count = 4", 1), (", count = 10", 2)] {
        let (of, _) = json(&gateway(&format!(
            "rate = {{ worst = \"100Hz\" }}\nqueue = 20\nmoderation = {{ absolute = \"1ms\"{count} }}"
        )));
        let flow = one(&of["flows"], "name", "commands");
        let response = &one(&of["rows"], "kind", "interrupt")["response_cycles"];
        assert_eq!(flow["moderation_cycles"], delays * 100_000, "{of}");
        // One more interrupt may be in progress.
        let interrupts = 4 * response.as_u64().unwrap();
        assert_eq!(flow["interrupt_cycles"], interrupts, "{of}");
    }
}

#[test]
fn what_the_limits_buy_is_shown() {
    let printed = check(node(&[]), &[]);
    let section = printed
        .out
        .split("What the limits buy: ")
        .nth(1)
        .unwrap_or_else(|| panic!("{}", printed.out))
        .split("\n\n")
        .next()
        .unwrap();
    assert!(section.contains("starved by button"), "{section}");
    for name in ["control", "monitor"] {
        let line = section.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with("starved"), "{line}");
    }
}

#[test]
fn assumptions_tell_stated_from_measured_and_default() {
    let printed = check(
        node(&[
            ("[cpu]", "[cpu]\ntime_slice = \"10ms\""),
            (
                "wcet = \"1ms\"",
                "wcet = { worst = \"1ms\", measured = true }",
            ),
        ]),
        &[],
    );
    let list = printed.out.split("This rests on:\n").nth(1).unwrap();
    let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 measured, that is seen, not proven (monitor)",
        "boards/atmega128/costs.toml",
        "stated by every source",
        "at most 3.75 µs (60 cycles): declared",
        "between two interrupts one instruction of the interrupted program runs, whichever it is, \
         for at most 250 ns (4 cycles): it counts as the ready task's",
        "a switch of tasks costs 0 cycles: not stated",
        "take turns, none shorter than 10 ms unless its work ends",
        "tasks do not suspend themselves",
    ] {
        assert!(list.contains(part), "`{part}` in {list}");
    }
}
