// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file says of FreeRTOS, and what it cannot say. In the texts « » stand around what the
//! first label must cover.

use crate::common::{on_board, own, parsed, says};
use weir_model::{Cost, FRAME_UNITS, FrameBudget, FrameLane, Freertos, TickBudget};

const COMMON: &str = "common = { urgency = 2, queue = 8 }";

/// A file with these lines in `[freertos]` and in its receiver.
fn text(freertos: &str, receiver: &str) -> String {
    own(
        crate::common::LIMITER_OFF,
        &format!("{freertos}\n[[receiver]]\nname = \"log\"\n{receiver}\n"),
    )
}

fn section(keys: &str) -> String {
    text(&format!("[freertos]\n{keys}"), "urgency = 5")
}

#[test]
fn what_is_said_is_passed_on_and_the_rest_has_its_defaults() {
    assert_eq!(parsed(&text("", "urgency = 5")).freertos, None);
    let least = parsed(&section(&format!("priorities = 6\n{COMMON}")));
    let lane = |urgency, queue| FrameLane {
        urgency,
        queue,
        bottom_half: Cost::NONE,
    };
    let wanted = Freertos {
        priorities: 6,
        tick_hz: 1000,
        tick_cycles: 8000,
        stack_bytes: 3072,
        common: lane(2, 8),
        orphans: None,
        fragments: None,
        budgets: vec![],
    };
    assert_eq!(least.freertos, Some(wanted.clone()));
    let all = parsed(&text(
        &format!(
            "[freertos]\npriorities = 6\ntick_rate = \"250Hz\"\nstack = 4096\norphans = {{ urgency = 0, queue = 1 }}\nfragments = {{ urgency = 5, queue = 65535 }}\n{COMMON}"
        ),
        "urgency = 5\nbudget = \"1.1kHz\"",
    ));
    assert_eq!(
        all.freertos,
        Some(Freertos {
            tick_hz: 250,
            tick_cycles: 32_000,
            stack_bytes: 4096,
            orphans: Some(lane(0, 1)),
            fragments: Some(lane(5, 65535)),
            // 4.4 of them, rounded down.
            budgets: vec![FrameBudget {
                receiver: 0,
                per_tick: 4
            }],
            ..wanted
        })
    );
}

#[test]
fn it_runs_on_the_boards_of_its_port() {
    says(
        &on_board(&format!(
            "«[freertos]»\npriorities = 6\n{COMMON}\n[[receiver]]\nname = \"log\"\nurgency = 5\n"
        )),
        "ports/freertos has no call that starts it on atmega128",
        "leave `[freertos]` out",
    );
}

#[test]
fn every_urgency_is_one_of_its_priorities() {
    says(
        &text(
            &format!("[freertos]\npriorities = 25\n{COMMON}"),
            "urgency = «25»",
        ),
        "FreeRTOS has no priority 25",
        "from 0 to 24, or raise `priorities` and configMAX_PRIORITIES",
    );
    says(
        &section(&format!(
            "priorities = 6\norphans = {{ urgency = «6», queue = 1 }}\n{COMMON}"
        )),
        "no priority 6",
        "from 0 to 5",
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let with = |key: &str| section(&format!("priorities = 25\n{COMMON}\n{key}"));
    says(&with("tick_rate = «\"0.5Hz\"»"), "whole hertz", "\"1kHz\"");
    says(&with("stack = «1026»"), "no whole number of words", "1028");
    says(&with("stack = «100»"), "out of range", "from 512");
    says(
        &section(&format!("priorities = «1»\n{COMMON}")),
        "out of range",
        "from 2 to 256",
    );
    says(
        &with("orphans = { urgency = 1, queue = «0» }"),
        "out of range",
        "from 1 to 65535",
    );
    for budget in ["\"999Hz\"", "\"1000.5Hz\""] {
        says(
            &text(
                &format!("[freertos]\npriorities = 25\n{COMMON}"),
                &format!("urgency = 5\nbudget = «{budget}»"),
            ),
            "no whole number of hertz with at least one frame in each tick",
            "a multiple of \"1000Hz\"",
        );
    }
    says(
        &text(
            &format!("[freertos]\npriorities = 25\ntick_rate = \"1Hz\"\n{COMMON}"),
            "urgency = 5\nbudget = «\"1000000MHz\"»",
        ),
        "more than 32 bits count",
        "leave it out",
    );
    says(
        &text("", "urgency = 5\nbudget = «\"1kHz\"»"),
        "nothing keeps this budget",
        "add `[freertos]`",
    );
}

/// A card whose frames for port 7 are a task's with this deadline.
fn node(lanes: &str, receiver: &str) -> String {
    own(
        crate::common::LIMITER_OFF,
        &format!(
            "[[source]]\nname = \"a\"\nvector = \"IRQ13\"\norder = 1\nhandler = \"1us\"\n[freertos]\npriorities = 25\n{lanes}\n[[receiver]]\nname = \"log\"\nurgency = 5\n{receiver}\n[[flow]]\nname = \"line\"\nsource = \"a\"\nreceiver = \"log\"\nselector = {{ protocol = \"udp\", port = 7 }}\n"
        ),
    )
}

const LATE: &str = "period = \"10ms\"\nwcet = \"1ms\"\ndeadline = \"9ms\"";

#[test]
fn a_lane_says_what_its_frames_cost_where_a_deadline_waits_for_them() {
    for urgency in [5, 24] {
        says(
            &node(
                &format!("common = {{ urgency = «{urgency}», queue = 8 }}"),
                LATE,
            ),
            "does not say what these frames cost, and the deadline of `log` waits for them",
            "add `bottom_half`",
        );
    }
    says(
        &node(
            &format!("{COMMON}\nfragments = {{ urgency = «6», queue = 8 }}"),
            LATE,
        ),
        "the deadline of `log` waits for them",
        "below that of every deadline",
    );
    // Of a flow, too.
    says(
        &(node("common = { urgency = «5», queue = 8 }", "") + "deadline = \"5ms\"\n"),
        "the deadline of `line` waits for them",
        "add `bottom_half`",
    );
    parsed(&node("common = { urgency = 4, queue = 8 }", LATE));
    parsed(&node("common = { urgency = 24, queue = 8 }", ""));
    let free = "common = { urgency = 24, queue = 8, bottom_half = \"0 cycles\" }";
    parsed(&node(free, LATE));
}

#[test]
fn lanes_with_a_cost_are_work_for_the_analysis() {
    let lanes = "common = { urgency = 6, queue = 8, bottom_half = \"90 cycles\" }\norphans = { urgency = 3, queue = 2 }";
    let file = parsed(&node(lanes, LATE));
    assert_eq!((file.receivers.len(), file.flows.len()), (1, 1));
    let whole = file.clone().with_freertos_work();
    assert_eq!(whole.receivers[..1], file.receivers[..]);
    let [receiver] = &whole.receivers[1..] else {
        panic!("one lane has a cost: {:?}", whole.receivers);
    };
    assert_eq!(
        (receiver.name.as_str(), receiver.urgency),
        ("common lane", 6)
    );
    let flow = &whole.flows[1];
    assert_eq!((flow.source, flow.receiver), (file.flows[0].source, 1));
    assert_eq!(
        (flow.bottom_half.cycles, flow.queue, flow.rate),
        (90, Some(8), None)
    );
}

#[test]
fn a_budget_is_for_frames_that_are_found_by_their_port() {
    let text = node(
        &format!("tick_rate = \"250Hz\"\n{COMMON}"),
        "budget = \"1kHz\"",
    ) + "[[flow]]\nname = \"other\"\nsource = \"a\"\nreceiver = \"log\"\n";
    let file = parsed(&text);
    let of = |flow: usize| file.tick_budget(&file.flows[flow]);
    assert_eq!(
        of(0),
        Some(TickBudget {
            frames: 4,
            tick: 32_000
        })
    );
    assert_eq!(of(1), None);
}

/// The constant of the port's header, as the preprocessor has it.
fn of_port(name: &str) -> u64 {
    let header = include_str!("../../../ports/freertos/include/weir/freertos.h");
    let line = header
        .lines()
        .find_map(|line| line.strip_prefix(&format!("#define {name} ")))
        .unwrap();
    line.trim_end_matches('u').parse().unwrap()
}

#[test]
fn a_long_frame_is_as_many_units_as_in_the_port() {
    let behind = of_port("WEIR_FREERTOS_LONGEST") - 4 - of_port("WEIR_FREERTOS_HEAD");
    assert_eq!(FRAME_UNITS, 1 + behind / of_port("WEIR_FREERTOS_UNIT"));
    let taken = |work: &str| {
        let text = node(COMMON, "").replace("order = 1\n", &format!("order = 1\n{work}\n"));
        parsed(&text).sources[0].packets_taken()
    };
    for (work, frames) in [("", 1), ("max_work = 1", 1), ("max_work = 23", 1)] {
        assert_eq!(taken(work), frames, "{work}");
    }
    // The last one does more than is left.
    assert_eq!(taken("max_work = 24"), 2);
    assert_eq!(taken("max_work = 47"), 3);
}

#[test]
fn a_file_is_for_one_operating_system() {
    let of_both = section(&format!(
        "priorities = 6\n{COMMON}\n«[linux]»\nmode = \"exact\""
    ));
    says(&of_both, "for FreeRTOS or for Linux", "a file of its own");
    let source = "name = \"a\"\n";
    let alone = node(COMMON, "");
    assert_eq!(alone.matches(source).count(), 1, "{alone}");
    let with_interface = alone.replace(source, &format!("{source}interface = «\"eth0\"»\n"));
    says(
        &with_interface,
        "for FreeRTOS or for Linux",
        "a file of its own",
    );
}

#[test]
fn what_takes_frames_says_when() {
    let sporadic = "wcet = \"1ms\"\ninterarrival = «\"10ms\"»";
    says(
        &node(COMMON, sporadic),
        "`log` takes its frames when a job comes",
        "write `period`",
    );
    let fragments = |urgency: &str| {
        let lane = format!("fragments = {{ urgency = {urgency}, queue = 8 }}");
        node(&format!("{COMMON}\n{lane}"), "")
    };
    says(
        &fragments("«5»"),
        "those of `log` are the same",
        "that no receiver of frames has",
    );
    parsed(&fragments("4"));
}
