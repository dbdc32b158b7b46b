// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers on FreeRTOS: what is generated, and what is refused with which words. That the result
//! compiles and runs is tested on the board, in crates/emulate/plugin.
use std::path::Path;

use weir_generate::{ChipPlan, Refusal, RtosPlan, chip, header, receivers};
use weir_model::System;

/// The example's file.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rtos-node/system.toml");
    std::fs::read_to_string(path).unwrap()
}

/// The example with other texts in place of some of its own.
fn changed(changes: &[(&str, &str)]) -> System {
    let text = changes.iter().fold(example(), |text, (from, to)| {
        assert!(text.contains(from), "`{from}` in\n{text}");
        text.replacen(from, to, 1)
    });
    weir_model::parse("system.toml", &text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn plan(system: &System) -> Result<ChipPlan<'_>, Refusal> {
    ChipPlan::with_freertos(system, chip("cortex-m3").unwrap())
}

fn planned(system: &System) -> RtosPlan<'_> {
    let plan = plan(system).unwrap_or_else(|refused| panic!("{refused}: {:?}", refused.reasons));
    plan.freertos.unwrap()
}

#[track_caller]
fn assert_refused(changes: &[(&str, &str)], parts: &[&str]) {
    let system = changed(changes);
    let reasons: Vec<String> = plan(&system)
        .unwrap_err()
        .reasons
        .iter()
        .map(|reason| format!("{reason}. {}", reason.right))
        .collect();
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    for part in parts {
        assert!(reasons[0].contains(part), "no `{part}` in {reasons:#?}");
    }
}

/// A flow of the example, with its last line.
const LINE: &str = "port = 514 }";
/// A flow more, to a receiver of the example.
fn more(flow: &str) -> String {
    format!(
        "queue = 16\n[[flow]]\nname = \"more\"\nsource = \"ethernet\"\nreceiver = \"commands\"\n{flow}\n"
    )
}

#[test]
fn a_receiver_is_followed_by_its_name_from_the_file_to_the_code() {
    let system = changed(&[
        ("name = \"log\"", "name = \"event-log\""),
        ("\"log\"", "\"event-log\""),
    ]);
    let plan = plan(&system).unwrap();
    let declared = header(&plan, "system.toml");
    for line in [
        "WEIR_RECEIVER_event_log = 1, /**< event-log: UDP 514; urgency 5, at most 1 frame in a tick */",
        "WEIR_RECEIVERS = 2",
        "enum { WEIR_SOURCE_ethernet_MAX_WORK = 1 };",
        "WEIR_URGENCY_event_log = 5,",
        "WEIR_URGENCY_control = 17,",
        "WEIR_PORT_command = 5000, /**< UDP 5000 */",
        "_Static_assert(configMAX_PRIORITIES == 25,",
        "_Static_assert(96 >= configMAX_SYSCALL_INTERRUPT_PRIORITY,",
        "_Static_assert(configUSE_PREEMPTION == 1,",
        "#define weir_system_start(input, context)",
        "WEIR_CORTEX_M_LIMIT(ethernet, weir_dualtimer, 13, WEIR_VECTOR_IRQ13, .policy = WEIR_LIMIT_BUCKET,",
    ] {
        assert!(declared.contains(line), "no `{line}` in\n{declared}");
    }
    let tables = receivers(&plan, "limits.h", "system.toml").unwrap();
    for line in [
        "#include \"limits.h\"",
        "static weir_freertos_frame_t frames_of_5[16]; /* event-log */",
        "{.urgency = 2, .frames = frames_of_2, .count = 8},",
        "[WEIR_RECEIVER_event_log] = \"event-log\",",
        "{17, WEIR_PORT_line, WEIR_RECEIVER_event_log, WEIR_URGENCY_event_log},",
        ".common = 0,",
        ".gather = 0,",
        ".orphans = WEIR_DEMUX_DROP,",
        "weir_freertos_set_budget(&weir_net, WEIR_RECEIVER_event_log, 1);",
    ] {
        assert!(tables.contains(line), "no `{line}` in\n{tables}");
    }
    // Without --rtos nothing of it is there.
    let bare = ChipPlan::new(&system, chip("cortex-m3").unwrap()).unwrap();
    assert!(!header(&bare, "system.toml").contains("freertos"));
    assert_eq!(receivers(&bare, "limits.h", "system.toml"), None);
}

#[test]
fn receivers_and_lanes_of_one_urgency_share_a_class_and_add_up_their_buffers() {
    let system = changed(&[
        (
            "common = {",
            "orphans = { urgency = 5, queue = 3 }\nfragments = { urgency = 0, queue = 1 }\ncommon = {",
        ),
        (
            "queue = 16",
            &more("selector = { protocol = \"tcp\", port = 502 }\nqueue = 4"),
        ),
        ("tick_rate = \"1kHz\"", "stack = 4096"),
    ]);
    let plan = planned(&system);
    let classes: Vec<(u8, u16)> = plan
        .classes
        .iter()
        .map(|class| (class.urgency, class.frames))
        .collect();
    assert_eq!(classes, [(0, 1), (2, 8), (5, 19), (20, 12)]);
    assert_eq!(
        (plan.fragments, plan.common, plan.orphans),
        (Some(0), 1, Some(2))
    );
    assert_eq!(plan.classes[2].of, ["orphans", "log"]);
    let ports: Vec<String> = plan
        .bindings
        .iter()
        .map(|binding| format!("{binding} of {}", plan.receivers[binding.receiver].name))
        .collect();
    assert_eq!(
        ports,
        [
            "UDP 5000 of commands",
            "UDP 514 of log",
            "TCP 502 of commands"
        ]
    );
    assert_eq!(
        (plan.stack_words, plan.core_classes, plan.slots),
        (1024, 8, 8)
    );
}

#[test]
fn gathered_frames_wait_in_units_of_the_ports_clock() {
    let moderated = |keys: &str| {
        let line = format!("max_work = 4\nmoderation = {{ absolute = \"2ms\"{keys} }}");
        changed(&[("max_work = 1", &line)])
    };
    let system = moderated("");
    let plan = plan(&system).unwrap();
    let tables = receivers(&plan, "weir_system.h", "system.toml").unwrap();
    // 2 ms of 125 MHz.
    for line in [
        "#define GATHER (250000u * (uint64_t) WEIR_FREERTOS_CLOCK_HZ / 125000000u)",
        "_Static_assert(GATHER >= 1 && GATHER < 0x80000000u,",
        ".gather = (uint32_t) GATHER,",
    ] {
        assert!(tables.contains(line), "{tables}");
    }
    assert!(tables.contains("#error \"frames are gathered"), "{tables}");
    assert_refused(
        &[(
            "max_work = 1",
            "max_work = 1\nmoderation = { absolute = \"2ms\", count = 3 }",
        )],
        &[
            "source `ethernet`",
            "by the time of the first alone",
            "leave `packet` and `count` out",
        ],
    );
}

#[test]
fn what_is_missing_or_contradicts_itself_is_refused() {
    let all = example();
    let section = &all[all.find("[freertos]").unwrap()..all.find("[[source]]").unwrap()];
    assert_refused(
        &[(section, ""), ("budget = \"1kHz\"", "")],
        &["[freertos]: the file does not say", "priorities = 25"],
    );
    assert_refused(
        &[(
            "queue = 16",
            &more("selector = { protocol = \"udp\", port = 514 }\nqueue = 1"),
        )],
        &[
            "flow `more`",
            "another receiver has this port by the flow `line`",
            "a port of its own",
        ],
    );
    assert_refused(
        &[(
            "queue = 16",
            &more("selector = { protocol = \"udp\", port = 5000 }\nqueue = 1"),
        )],
        &[
            "flow `more`",
            "the same receiver has this port by the flow `command`",
        ],
    );
    for selector in [
        "",
        "selector = { protocol = \"icmp\" }",
        "selector = { port = 7 }",
    ] {
        assert_refused(
            &[("queue = 16", &more(&format!("{selector}\nqueue = 1")))],
            &[
                "flow `more`: it has no protocol and port",
                "or leave the flow out",
            ],
        );
    }
    for (key, value) in [
        ("address", "\"10.0.0.0/8\""),
        ("pcp", "5"),
        ("ethertype", "0x0800"),
    ] {
        assert_refused(
            &[(LINE, &format!("port = 514, {key} = {value} }}"))],
            &[
                "flow `line`",
                &format!("not by `{key}`"),
                &format!("leave `{key}` out"),
            ],
        );
    }
    assert_refused(
        &[("queue = 16", "")],
        &[
            "flow `line`: it does not say how many of its frames can wait",
            "write queue = 8",
        ],
    );
    assert_refused(
        &[("queue = 16", "queue = 70000")],
        &["urgency 5 has 70000 buffers, for log", "at most 65535"],
    );
    assert_refused(
        &[("urgency = 17", "urgency = 17\nbudget = \"1kHz\"")],
        &["receiver `control`: it has a budget, but no flow of the card brings it frames"],
    );
    assert_refused(
        &[("name = \"control\"", "name = \"weir-loop\"")],
        &["receiver `weir-loop`", "Weir's own", "rename it"],
    );
    assert_refused(
        &[
            ("name = \"control\"", "name = \"a-b\""),
            (
                "[[flow]]",
                "[[receiver]]\nname = \"a_b\"\nurgency = 1\n[[flow]]",
            ),
        ],
        &["receiver `a_b`: in C it is called `a_b`, like `a-b`"],
    );
    let other = "[[source]]\nname = \"radio\"\nvector = \"IRQ20\"\npriority = 128\nhandler = \"90 cycles\"\nmax_work = 1\n[[receiver]]";
    assert_refused(
        &[
            ("[[receiver]]", other),
            (
                "queue = 16",
                "queue = 16\n[[flow]]\nname = \"more\"\nsource = \"radio\"\nreceiver = \"log\"\nselector = { protocol = \"udp\", port = 9 }\nqueue = 1\n",
            ),
        ],
        &[
            "flow `more`: it comes from `radio`, and `command` from `ethernet`",
            "one source",
        ],
    );
}

#[test]
fn more_urgencies_than_core_has_classes_and_a_file_without_ports_are_refused() {
    let flows = |count: u32| {
        (0..count).fold("queue = 16\n".to_owned(), |text, at| {
            text + &format!(
                "[[receiver]]\nname = \"r{at}\"\nurgency = {}\n[[flow]]\nname = \"f{at}\"\nsource = \"ethernet\"\nreceiver = \"r{at}\"\nselector = {{ protocol = \"tcp\", port = {} }}\nqueue = 1\n",
                100 + at,
                1000 + at
            )
        })
    };
    let changes = |count| {
        [
            ("priorities = 25".to_owned(), "priorities = 256".to_owned()),
            ("queue = 16".to_owned(), flows(count)),
        ]
    };
    let of = |count| {
        let changes = changes(count);
        let changes: Vec<(&str, &str)> = changes
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        changed(&changes)
    };
    let fits = of(61);
    assert_eq!(
        (planned(&fits).core_classes, planned(&fits).slots),
        (64, 128)
    );
    let refused = plan(&of(62)).unwrap_err();
    assert!(
        refused.reasons[0].what.contains("65 urgencies"),
        "{refused:?}"
    );
    assert!(
        refused.reasons[0].right.contains("at most 64"),
        "{refused:?}"
    );

    let text = example();
    let without = &text[..text.find("[[flow]]").unwrap()];
    let system =
        weir_model::parse("system.toml", &without.replace("budget = \"1kHz\"", "")).unwrap();
    let refused = plan(&system).unwrap_err();
    assert!(
        refused.reasons[0].what.contains("no flow has a port"),
        "{refused:?}"
    );
}

/// These ports of UDP have the same two buckets of core's table with 32 slots, which hold eight.
const CROWDED: [u16; 9] = [
    23194, 23196, 23198, 23199, 23200, 23201, 23202, 23210, 23212,
];

#[test]
fn a_table_has_room_for_the_ports_whatever_they_are() {
    let flows = CROWDED.iter().fold("queue = 16\n".to_owned(), |text, port| {
        text + &format!(
            "[[flow]]\nname = \"p{port}\"\nsource = \"ethernet\"\nreceiver = \"log\"\nselector = {{ protocol = \"udp\", port = {port} }}\nqueue = 16\n"
        )
    });
    let system = changed(&[("queue = 16", &flows)]);
    let plan = planned(&system);
    let mut table =
        weir_core_sys::demux::Demux::new(plan.slots, plan.bindings.len(), None, None).unwrap();
    for binding in &plan.bindings {
        let key = weir_core_sys::demux::SocketKey::udp(binding.port);
        table.bind(key, 0, 0).unwrap();
    }
    assert!(plan.slots > 32, "{}", plan.slots);
}

#[test]
fn a_file_without_usable_ports_is_refused_for_them_alone() {
    let system = changed(&[
        (
            "selector = { protocol = \"udp\", port = 5000 }",
            "selector = { protocol = \"icmp\" }",
        ),
        (
            "selector = { protocol = \"udp\", port = 514 }",
            "selector = { port = 514 }",
        ),
    ]);
    let refused = plan(&system).unwrap_err();
    let table = |what: &str| what.contains("flows have ports");
    assert!(
        !refused.reasons.iter().any(|reason| table(&reason.what)),
        "{refused:?}"
    );
    assert_eq!(refused.reasons.len(), 2, "{refused:?}");
}

#[test]
fn an_interrupt_takes_as_many_frames_as_work_counts() {
    let most = changed(&[("max_work = 1", "max_work = 65535")]);
    assert_eq!(planned(&most).max_work, Some(65535));
    assert_refused(
        &[("max_work = 1", "max_work = 65536")],
        &["source `ethernet`", "65536", "at most 65535"],
    );
}

#[test]
fn a_source_is_not_called_like_the_cards_work() {
    let other = "[[source]]\nname = \"ethernet-MAX_WORK\"\nvector = \"IRQ20\"\npriority = 96\nhandler = { worst = \"400 cycles\", measured = true }\nrate = { expected = \"1kHz\" }\nlimit = { policy = \"off\" }\n[[source]]";
    assert_refused(
        &[("[[source]]", other)],
        &[
            "source `ethernet-MAX_WORK`",
            "`ethernet_MAX_WORK`",
            "rename",
        ],
    );
}

#[test]
fn other_chips_have_no_receivers() {
    let text = "schema = 1\n[cpu]\nboard = \"atmega128\"\nclock = \"16MHz\"\n";
    let system = weir_model::parse("system.toml", text).unwrap();
    let refused = ChipPlan::with_freertos(&system, chip("atmega128").unwrap()).unwrap_err();
    assert!(
        refused.reasons[0].right.contains("--chip cortex-m3"),
        "{refused:?}"
    );
}
