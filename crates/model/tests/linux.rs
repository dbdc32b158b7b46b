// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file says to `weir linux`, and what it cannot say. In the texts « » stand around what the
//! first label must cover.

use std::time::Duration;

use crate::common::{on_board, own, parsed, says};
use weir_model::{Accounting, Interface, Linux, LinuxMode, Match, Predict, TopHalf};

const SOURCE: &str =
    "[[source]]\nname = \"eth\"\nvector = { name = \"eth0\", order = 1 }\nhandler = \"2us\"\n";
const RECEIVER: &str = "[[receiver]]\nname = \"plc\"\nurgency = 60\n";

/// A file with these lines in `[linux]`, in its source and in its receiver.
fn text(linux: &str, source: &str, receiver: &str) -> String {
    own(
        crate::common::LIMITER_OFF,
        &format!("{linux}\n{SOURCE}{source}\n{RECEIVER}{receiver}\n"),
    )
}

fn top_half(keys: &str) -> String {
    text(&format!("[linux]\ntop_half = {keys}"), "", "")
}

#[test]
fn a_file_that_says_nothing_is_of_the_native_mode_and_has_no_interface() {
    let linux = parsed(&text("", "", "")).linux;
    assert_eq!(linux, Linux::default());
    assert_eq!(
        (linux.mode, linux.predict, linux.top_half),
        (LinuxMode::Native, Predict::Waiting, None)
    );
}

#[test]
fn everything_that_is_said_is_passed_on() {
    let system = parsed(&text(
        "[linux]\nmode = \"predicted\"\npredict = \"registered\"\naccounting = \"time\"\ninterrupt_overhead = \"1500ns\"\ncap_timer = true\ntick = \"4ms\"\nreceive_buffer = 4194304\nreceive_ring = 1024\ntop_half = { runtime = \"500us\", period = \"10ms\" }",
        "interface = \"eth0\"",
        "match = { port = 502, cgroup = \"/plant/control\", command = \"plc\", user = \"plc\" }",
    ));
    assert_eq!(
        system.linux,
        Linux {
            mode: LinuxMode::Predicted,
            predict: Predict::Registered,
            accounting: Some(Accounting::Time),
            interrupt_overhead: Duration::from_nanos(1500),
            cap_timer: true,
            tick: Some(Duration::from_millis(4)),
            receive_buffer: Some(4_194_304),
            receive_ring: Some(1024),
            top_half: Some(TopHalf::Cap {
                runtime: Duration::from_micros(500),
                period: Duration::from_millis(10),
            }),
            interfaces: vec![Interface {
                source: 0,
                name: "eth0".to_owned(),
            }],
            threads: vec![],
            matches: vec![Match {
                receiver: 0,
                cgroup: Some("/plant/control".to_owned()),
                command: Some("plc".to_owned()),
                user: Some("plc".to_owned()),
            }],
        }
    );
    assert_eq!(system.receivers[0].port, Some(502));
    let placed = parsed(&text(
        "[linux]\ntop_half = { urgency = 40 }",
        "",
        "match = { port = 502 }",
    ));
    assert_eq!(placed.linux.top_half, Some(TopHalf::Urgency(40)));
    let threadless = parsed(&top_half("{ thread = false }"));
    assert_eq!(threadless.linux.top_half, Some(TopHalf::Interrupt));
    assert_eq!(placed.linux.matches, []);
}

#[test]
fn a_top_half_has_a_whole_cap_or_an_urgency() {
    says(
        &top_half("{ runtime = \"1ms\", period = \"10ms\", urgency = «40» }"),
        "a cap or an urgency, not both",
        "write `runtime` and `period`, or `urgency`",
    );
    says(
        &top_half("{ urgency = «40», period = \"10ms\" }"),
        "a cap or an urgency",
        "or `urgency`",
    );
    says(
        &top_half("{ runtime = «\"1ms\"» }"),
        "needs the period",
        "`runtime` and `period`",
    );
    says(
        &top_half("{ period = «\"1ms\"» }"),
        "needs the runtime",
        "`runtime` and `period`",
    );
    says(
        &top_half("{ urgency = 40, thread = «false» }"),
        "without a thread",
        "`urgency`",
    );
    says(
        &top_half("«{ thread = true }»"),
        "says nothing",
        "thread = false",
    );
    says(&top_half("«{}»"), "says nothing", "`runtime` and `period`");
    says(&top_half("{ urgency = «100» }"), "out of range", "1 to 99");
    says(&top_half("«40»"), "expected a table", "");
}

#[test]
fn a_cap_is_one_that_the_kernel_takes() {
    for (keys, help) in [
        (
            "{ runtime = \"50us\", period = «\"99us\"» }",
            "from \"100us\" to \"4s\"",
        ),
        (
            "{ runtime = \"50us\", period = «\"5s\"» }",
            "from \"100us\" to \"4s\"",
        ),
        ("{ runtime = «\"1us\"», period = \"10ms\" }", "\"1024ns\""),
        ("{ runtime = «\"9.6ms\"», period = \"10ms\" }", "\"9500us\""),
        ("{ runtime = «\"1s\"», period = \"10ms\" }", "\"9500us\""),
    ] {
        says(&top_half(keys), "Linux refuses such a", help);
    }
    for keys in [
        "{ runtime = \"9.5ms\", period = \"10ms\" }",
        "{ runtime = \"1125ns\", period = \"100us\" }",
        "{ runtime = \"8000 cycles\", period = \"4s\" }",
    ] {
        parsed(&top_half(keys));
    }
}

#[test]
fn an_interface_is_one_that_the_kernel_could_have() {
    for name in [
        "",
        "eth 0",
        "eth/0",
        "eth0:1",
        ".",
        "..",
        "a-name-of-16-by",
        "ß1234567890123",
    ] {
        let text = text("", &format!("interface = «\"{name}\"»"), "");
        if name == "a-name-of-16-by" {
            // 15 bytes are the most.
            parsed(&text.replace(['«', '»'], ""));
            says(
                &text.replace("by\"", "byt\""),
                "cannot be a network interface",
                "1 to 15 bytes",
            );
        } else if name.starts_with('ß') {
            parsed(&text.replace(['«', '»'], ""));
        } else {
            says(&text, "cannot be a network interface", "ip link");
        }
    }
    says(
        &text("", "interface = «0»", ""),
        "expected the name of a network interface",
        "",
    );
}

#[test]
fn a_control_group_is_a_path_from_the_root() {
    for path in ["plant", "/plant/", "//plant", "/plant/../other", "/./plant"] {
        says(
            &text("", "", &format!("match = {{ cgroup = «\"{path}\"» }}")),
            "no path of a control group",
            "/proc/PID/cgroup",
        );
    }
    let root = parsed(&text("", "", "match = { cgroup = \"/\" }"));
    assert_eq!(root.linux.matches[0].cgroup.as_deref(), Some("/"));
}

#[test]
fn a_command_is_some_users() {
    says(
        &text("", "", "match = { command = «\"plc\"» }"),
        "any process of any user can give itself this name",
        "add `user`",
    );
    let whose = parsed(&text("", "", "match = { user = \"1000\" }"));
    assert_eq!(whose.linux.matches[0].user.as_deref(), Some("1000"));
}

#[test]
fn urgencies_are_linux_s_where_the_file_is_for_linux() {
    let urgent = |linux: &str, source: &str| {
        text(linux, source, "").replace("urgency = 60", "urgency = «100»")
    };
    for (linux, source) in [("[linux]", ""), ("", "interface = \"eth0\"")] {
        says(
            &urgent(linux, source),
            "Linux has no urgency 100",
            "from 1 to 99",
        );
    }
    parsed(&urgent("", "").replace(['«', '»'], ""));
}

#[test]
fn words_that_are_not_there_are_refused_with_the_nearest() {
    says(
        &text("[linux]\nmode = «\"exakt\"»", "", ""),
        "no mode `exakt`",
        "did you mean `exact`?",
    );
    says(
        &text("[linux]\npredict = «\"waits\"»", "", ""),
        "no predict `waits`",
        "`registered`",
    );
    says(
        &text("[linux]\n«cap» = 3", "", ""),
        "[linux] has no key `cap`",
        "top_half",
    );
}

#[test]
fn a_tick_is_that_of_a_kernel() {
    says(
        &text("[linux]\ntick = «\"11ms\"»", "", ""),
        "no kernel has so long a tick",
        "CONFIG_HZ",
    );
}

#[test]
fn no_board_runs_it() {
    for mode in LinuxMode::ALL {
        says(
            &on_board(&format!("«[linux]»\nmode = \"{}\"\n", mode.name())),
            "no Linux runs on atmega128",
            "weir linux inspect",
        );
    }
    let of_board = on_board(
        "[[source]]\nname = \"a\"\nvector = \"INT0\"\nhandler = \"10 cycles\"\ninterface = «\"eth0\"»\n",
    );
    says(&of_board, "no Linux runs on atmega128", "leave it out");
}

#[test]
fn nobody_keeps_the_limit_of_an_interface() {
    let with = |limit: &str, interface: &str| {
        let costs = "costs.strict.lazy = { request_served = \"59 cycles\", request_refused = \"54 cycles\", expiry_served = \"71 cycles\", expiry_empty = \"60 cycles\" }";
        own(
            &format!("{}\n{costs}", crate::common::LIMITER_OFF),
            &format!(
                "[[timer]]\nname = \"t\"\nwidth = 16\norder = 2\n{SOURCE}{interface}limit = {{ {limit} }}\n{RECEIVER}"
            ),
        )
    };
    let software = "policy = «\"strict\"», rate = \"1kHz\", timer = \"t\"";
    let hardware = "policy = \"strict\", rate = \"1kHz\", place = \"hardware\"";
    let interface = "interface = \"eth0\"\n";
    says(
        &with(software, interface),
        "`weir linux` keeps no limit of a source",
        "top_half",
    );
    parsed(&with(hardware, interface));
    parsed(&with("policy = \"off\"", interface));
    parsed(&with(&software.replace(['«', '»'], ""), ""));
}
