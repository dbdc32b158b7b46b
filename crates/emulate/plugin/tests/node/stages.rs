// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of ports/freertos in the node: demux, defer and account behind a card's interrupt.
use serde_json::Value;

use super::{Node, failures, latencies};

/// The number of buffers of all classes: eight for each receiver, and eight for each lane of frames
/// without a receiver.
const BUFFERS: u64 = 80;
const RECEIVERS: [&str; 7] = [
    "modbus0", "modbus1", "modbus2", "modbus3", "udp", "http", "echo",
];
const REASONS: [&str; 5] = [
    "no_receiver",
    "malformed",
    "lane_full",
    "over_budget",
    "too_deep",
];

struct Run {
    clients: Vec<weir_peer::ClientReport>,
    sent: u64,
    lost: u64,
    printed: Value,
}

impl Run {
    fn count(&self, path: &[&str]) -> u64 {
        let found = path
            .iter()
            .fold(&self.printed["weir"], |value, name| &value[*name]);
        found
            .as_u64()
            .unwrap_or_else(|| panic!("{path:?} in {}", self.printed))
    }

    fn of_receivers(&self, name: &str) -> u64 {
        RECEIVERS
            .iter()
            .map(|receiver| self.count(&[receiver, name]))
            .sum()
    }
}

/// Runs the node for a second with a flood of 200 ms, while clients send requests.
fn run(node: &Node, flood: &str, clients: &str, options: &str) -> Run {
    let plan = format!(
        r#"{{"end": "9s", "flood": {{"begin": "100ms", "end": "300ms", {flood}}}, "clients": [{clients}]}}"#
    );
    let options = format!(
        "address=10.0.0.2 driver=demux modbus=apart begin-ms=50 window-ms=950 windows=1 {options}"
    );
    let (report, printed) = node.run(&plan, &options);
    let flood = report.flood.unwrap();
    Run {
        clients: report.clients,
        sent: flood.sent,
        lost: flood.lost,
        printed: serde_json::from_str(&printed).unwrap(),
    }
}

const PAGE: &str = r#"{"ask": {"http": "/"}, "pattern": "100Hz", "count": 10, "begin": "350ms"}"#;

#[test]
fn broken_frames_are_dropped_with_a_reason_and_no_buffer_is_lost() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    for frames in ["malformed", "truncated", "oversized"] {
        let flood = format!(r#""pattern": "poisson:20kHz", "frames": "{frames}""#);
        let ran = run(&node, &flood, PAGE, "");
        assert_eq!(latencies(&ran.clients[0]).len(), 10, "{frames}");
        assert_eq!(
            ran.count(&["buffers"]),
            BUFFERS,
            "{frames}: {}",
            ran.printed
        );
        // All frames that arrived were handled. A frame that the card calls broken is one of the
        // malformed frames.
        let window = &ran.printed["windows"][0];
        let broken = window["broken"].as_u64().unwrap();
        assert!(ran.count(&["handled"]) + ran.lost >= ran.sent, "{frames}");
        assert!(ran.count(&["malformed"]) >= broken, "{frames}");
        // Skipping the 400 words of a frame takes a thousand instructions, and five instructions
        // are a tick. They are charged to nobody, and not to the next receiver.
        assert!(ran.count(&["for_nobody"]) >= 200 * broken, "{frames}");
    }
}

#[test]
fn hosts_that_do_not_exist_take_no_buffer_for_good() {
    let Some(node) = Node::built(&["-DNODE_WEIR", "-DNODE_HARDENED"]) else {
        return;
    };
    let neighbour = "neighbour=10.0.0.1/52:54:00:00:00:01";
    for frames in [r#"{"syn": 502}"#, r#"{"segment": 502}"#, r#""arp""#] {
        let flood = format!(r#""pattern": "poisson:50kHz", "frames": {frames}"#);
        let ran = run(&node, &flood, PAGE, neighbour);
        assert_eq!(latencies(&ran.clients[0]).len(), 10, "{frames}");
        assert_eq!(ran.count(&["buffers"]), BUFFERS, "{frames}");
    }
}

/// lwIP keeps fragments for seconds, in the buffers of their own class.
#[test]
fn fragments_keep_no_buffer_of_others() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let flood = r#""pattern": "poisson:50kHz", "frames": "fragment""#;
    let ran = run(&node, flood, PAGE, "");
    assert_eq!(latencies(&ran.clients[0]).len(), 10);
    let kept = BUFFERS - ran.count(&["buffers"]);
    assert!((1..=8).contains(&kept), "{kept}");
}

#[test]
fn gathered_frames_wait_for_a_tick_at_most_and_none_is_forgotten() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let ask = r#"{"ask": {"udp": 64}, "pattern": "poisson:500Hz:seed=4", "count": 250, "begin": "101ms"}"#;
    for flood in ["1Hz", "poisson:20kHz"] {
        let flood = format!(r#""pattern": "{flood}", "frames": {{"udp": 5001}}"#);
        let soon = run(&node, &flood, ask, "work=40");
        let late = run(&node, &flood, ask, "gather-us=1 work=40");
        let [soon, late] = [soon, late].map(|ran| {
            assert_eq!(failures(&ran.clients[0]), [""; 0], "{flood}");
            *latencies(&ran.clients[0]).iter().max().unwrap()
        });
        // The delay is a tick plus what the same interrupt handles before.
        assert!(late > soon && late < soon + 1_300_000, "{soon} {late}");
    }
}

/// The frames that an interrupt leaves wait for the next tick, and the card has room for few more
/// frames than arrive until then: 21 are lost in the first millisecond. An interrupt that takes
/// only the frames present at its start loses 127.
#[test]
fn at_the_rate_of_the_wire_the_card_has_room_for_what_an_interrupt_leaves() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let flood = r#""pattern": "poisson:148.8kHz", "frames": {"udp": 5001}"#;
    let options = "limit-hz=1900 limit-burst=1 work=165 task=lateness urgency=below server=off";
    let ran = run(&node, flood, PAGE, options);
    assert!(ran.sent > 29_000, "{}", ran.sent);
    assert!(ran.lost < 30, "{} of {}", ran.lost, ran.sent);
}

/// A socket holds six datagrams.
#[test]
fn a_receiver_as_urgent_as_its_worker_takes_its_datagrams_in_turn() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let flood = r#""pattern": "bursts:30:gap=10us:period=5ms", "frames": {"udp": 5000}"#;
    let ran = run(&node, flood, "", "server-urgency=21");
    let served = ran.printed["windows"][0]["served"].as_u64().unwrap();
    // Of thirty frames, the class holds eight, and some more are handled meanwhile.
    assert!(served * 30 >= ran.sent * 12, "{served} of {}", ran.sent);
}

#[test]
fn what_is_for_others_leaves_the_urgent_receiver_alone() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let ask = r#"{"ask": {"modbus": {"first": 0, "count": 10}}, "port": 502, "pattern": "poisson:100Hz:seed=4", "count": 15, "begin": "101ms"}"#;
    for port in [5001, 5000] {
        let flood = format!(r#""pattern": "poisson:40kHz", "frames": {{"udp": {port}}}"#);
        let ran = run(&node, &flood, ask, "task=lateness steps=1136");
        assert_eq!(failures(&ran.clients[0]), [""; 0], "port {port}");
        assert!(ran.count(&["lane_full"]) > 1000, "port {port}");
        assert_eq!(ran.count(&["buffers"]), BUFFERS, "port {port}");
        let window = &ran.printed["windows"][0];
        assert_eq!(window["late_jobs"], 0, "port {port}");
    }
}

/// Every 7 ms of the flood, the receiver of its frames closes its socket with frames waiting, or
/// opens it again. At the same times the limit is halved or doubled, and a budget is set or
/// removed.
#[test]
fn what_changes_in_the_midst_of_a_flood_loses_nothing() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    for options in [
        "",
        "limit-hz=20000",
        "limit-hz=2000 limit=bursty work=60",
        "gather-us=1 work=60",
    ] {
        let flood = r#""pattern": "poisson:40kHz", "frames": {"udp": 5000}"#;
        let ran = run(&node, flood, PAGE, &format!("change-ms=7 {options}"));
        assert_eq!(latencies(&ran.clients[0]).len(), 10, "{options}");
        assert_eq!(ran.count(&["buffers"]), BUFFERS, "{options}");
        // The frames belonged to the receiver for half of the time and to nobody for the other
        // half.
        let of = |names: &[&str]| names.iter().map(|name| ran.of_receivers(name)).sum::<u64>();
        let known = of(&["frames", "lane_full", "over_budget"]);
        let nobodys = ran.count(&["handled"]) - known;
        let own = ran.count(&["udp", "frames"]) + ran.count(&["udp", "lane_full"]);
        assert!(own > 200 && nobodys > 200, "{options}: {own} {nobodys}");
        let charged = ran.of_receivers("ticks") + ran.count(&["for_nobody"]);
        assert_eq!(charged, ran.count(&["ticks"]), "{options}");
    }
}

#[test]
fn accounts_and_reasons_sum_up_to_the_whole() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let flood = r#""pattern": "poisson:30kHz", "frames": {"udp": 5000}"#;
    let ran = run(&node, flood, PAGE, "");
    let charged = ran.of_receivers("ticks") + ran.count(&["for_nobody"]);
    assert_eq!(charged, ran.count(&["ticks"]));
    let dropped: u64 = REASONS.iter().map(|reason| ran.count(&[reason])).sum();
    let handled = ran.of_receivers("frames") + dropped;
    // ARP's frames have no receiver.
    assert!((handled..handled + 10).contains(&ran.count(&["handled"])));
    assert!(ran.count(&["udp", "ticks"]) > ran.count(&["http", "ticks"]));
}

/// QEMU counts the instructions of the card's interrupt, and the account counts in ticks of five
/// instructions. With a regular rate each interrupt would begin in the same phase of a tick.
#[test]
fn the_account_is_what_the_interrupt_took() {
    const INSTRUCTIONS: f64 = 5.0;
    const CARD: u16 = 29;
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let plan = r#"{"end": "9s", "flood": {"pattern": "poisson:10kHz", "begin": "200ms", "end": "700ms", "frames": "truncated"}, "measure": {"begin": "150ms"}}"#;
    for limit in [
        "",
        "limit-hz=20000 limit-burst=4",
        "limit-hz=1900 limit-burst=1 work=24",
        "gather-us=1000 work=60",
    ] {
        let options =
            format!("address=10.0.0.2 driver=demux begin-ms=150 window-ms=600 windows=1 {limit}");
        let (report, printed) = node.run(plan, &options);
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let exceptions = report.profile.unwrap().exceptions;
        let card = exceptions.iter().find(|of| of.number == CARD).unwrap();
        let account = printed["weir"]["ticks"].as_f64().unwrap() * INSTRUCTIONS;
        let ratio = account / card.instructions as f64;
        assert!((0.99..1.01).contains(&ratio), "{limit}: {ratio}");
    }
}

/// A dropped frame is charged to its receiver, to the last byte: an echo costs its receiver the
/// same beside long frames for somebody else as beside short ones.
#[test]
fn a_dropped_frame_is_its_own_receivers_cost() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let echo = r#"{"ask": {"udp": 32}, "port": 7, "pattern": "1.1kHz", "count": 150, "begin": "101ms", "patience": "5ms"}"#;
    let beside = |length: u16| {
        let flood = format!(r#""pattern": "8kHz", "frames": {{"udp": 5000}}, "length": {length}"#);
        let ran = run(&node, &flood, echo, "budget=1");
        assert!(ran.count(&["udp", "over_budget"]) > 1000, "{}", ran.printed);
        let frames = ran.count(&["echo", "frames"]) + ran.count(&["echo", "over_budget"]);
        ran.count(&["echo", "ticks"]) as f64 / frames as f64
    };
    let (short, long) = (beside(60), beside(1514));
    assert!((long / short - 1.0).abs() < 0.03, "{short}, {long}");
}

#[test]
fn a_receiver_gets_no_more_than_its_budget() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    // A frame arrives each millisecond; a Modbus request with its answer takes several.
    let flood = r#""pattern": "poisson:1kHz", "frames": {"udp": 5001}"#;
    let ask = r#"{"ask": {"modbus": {"first": 0, "count": 10}}, "port": 502, "pattern": "2kHz", "count": 400, "begin": "101ms", "patience": "5ms"}"#;
    let ran = run(&node, flood, ask, "budget=1");
    assert!(
        ran.count(&["modbus0", "over_budget"]) > 0,
        "{}",
        ran.printed
    );
    assert!(ran.count(&["modbus0", "frames"]) <= 951);
    assert_eq!(ran.count(&["modbus1", "over_budget"]), 0);
}

/// Clients that lost their requests in a long flood give up without telling the node. The node
/// checks whether they still exist, and then frees their servers for other clients.
#[test]
fn all_servers_answer_again_after_a_long_flood() {
    let Some(node) = Node::built(&["-DNODE_WEIR", "-DNODE_HARDENED"]) else {
        return;
    };
    let client = |server: u32| {
        // The client of the urgent server waits until the end of the flood. The others give up
        // during the flood.
        let patience = if server == 0 { 5 } else { 1 };
        format!(
            r#"{{"ask": {{"modbus": {{"first": 0, "count": 10}}}}, "port": {}, "pattern": "poisson:50Hz:seed={}", "patience": "{patience}s", "count": 450, "begin": "800ms"}}"#,
            502 + server,
            11 + server
        )
    };
    let clients = [0, 1, 2, 3].map(client).join(",");
    let plan = format!(
        r#"{{"end": "10500ms", "flood": {{"begin": "900ms", "end": "4900ms", "pattern": "poisson:40kHz", "frames": {{"udp": 5001}}}}, "clients": [{clients}]}}"#
    );
    let options = "address=10.0.0.2 neighbour=10.0.0.1/52:54:00:00:00:01 driver=demux limit-hz=1900 limit-burst=1 work=24 modbus=apart server=off task=lateness steps=1136 urgency=below windows=9";
    let (report, printed) = node.run(&plan, options);
    for (server, client) in report.clients.iter().enumerate() {
        let answered = client.requests.iter().rev().take(10);
        let answered = answered.filter(|request| request.latency_ns.is_some());
        assert!(answered.count() > 5, "server {server}: {printed}");
    }
}
