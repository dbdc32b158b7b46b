// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what a system file asks of a machine.
use std::path::Path;
use std::time::Duration;

use weir_linux::exact::ORDINARY_QUEUE;
use weir_linux::share::Share;
use weir_linux::system::{ListeningPort, Mark, Node, NotForLinux};
use weir_linux::urgency::Urgency;
use weir_model::{LinuxContradiction, LinuxMode, Protocol, TopHalf};

const BEGINNING: &str = "
schema = 1
name = \"test\"
[cpu]
clock = \"1000MHz\"
interrupts = \"flat\"
longest_instruction = \"100ns\"
costs = { off = { request_served = \"2us\" } }
";

fn node(rest: &str, mode: Option<LinuxMode>) -> Result<Node, NotForLinux> {
    let system = weir_model::parse("test.toml", &format!("{BEGINNING}{rest}"))
        .unwrap_or_else(|error| panic!("{error:?}"));
    Node::new(&system, mode)
}

fn source(number: u32, interface: &str) -> String {
    format!(
        "[[source]]\nname = \"s{number}\"\nvector = {{ name = \"v{number}\", order = {number} }}\nhandler = \"1us\"\n{interface}\n"
    )
}

#[test]
fn the_example_is_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linux-node/system.toml");
    let node = Node::new(&weir_model::load(&path).unwrap(), None).unwrap();
    let share = Share::new(&node, &node.interfaces[0], Duration::from_millis(4), None);
    assert!((share.cap.unwrap() - 0.05).abs() < 1e-12);
    // The time is the sum of 0.5 ms, a tick, and 64 packets of 5 us.
    assert!((share.at_once.unwrap() - 0.004_82).abs() < 1e-12);
    assert!((share.capacity_hz.unwrap() - 10_000.0).abs() < 1.0);
    assert_eq!(share.safe.len(), 3);
    assert_eq!(node.interfaces[0].urgent.len(), 1);
}

#[test]
fn a_system_without_an_interface_is_refused() {
    let error = node(&source(1, ""), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no source of the system `test` is a network interface of Linux"
    );
}

#[test]
fn an_account_needs_no_interface() {
    let text = format!("{}[linux]\naccounting = \"packets\"\n", source(1, ""));
    let node_of = |mode| node(&text, Some(mode));
    assert_eq!(node_of(LinuxMode::Native).unwrap().interfaces, []);
    for mode in [LinuxMode::Predicted, LinuxMode::Exact] {
        let error = node_of(mode).unwrap_err();
        assert!(matches!(error, NotForLinux::NoInterface { .. }), "{error}");
    }
}

#[test]
fn the_queues_of_an_interface_are_one_with_the_ports_of_its_receivers() {
    let text = [
        &source(1, "interface = \"eth0\"\nmoderation = { absolute = \"2ms\" }"),
        &source(2, "interface = \"eth0\"\nmoderation = { absolute = \"1ms\" }"),
        &source(3, "interface = \"eth1\""),
        "[[receiver]]\nname = \"plc\"\nurgency = 60\nmatch = { port = 502, command = \"plc\", user = \"root\" }\n",
        "[[receiver]]\nname = \"log\"\nurgency = 1\n",
        "[[flow]]\nname = \"a\"\nsource = \"s1\"\nreceiver = \"plc\"\nselector = { protocol = \"tcp\", port = 502 }\n",
        "[[flow]]\nname = \"b\"\nsource = \"s2\"\nreceiver = \"log\"\nselector = { protocol = \"udp\", port = 514 }\n",
    ]
    .concat();
    let node = node(&text, None).unwrap();
    let [eth0, eth1] = &node.interfaces[..] else {
        panic!("{node:?}");
    };
    assert_eq!((eth0.name.as_str(), eth1.name.as_str()), ("eth0", "eth1"));
    assert_eq!(eth0.receivers, [0, 1]);
    assert_eq!(eth0.deferral, Some(Duration::from_millis(1)));
    // The port in `match` is of both protocols, so it includes the flow's port.
    let port = |protocol, number| ListeningPort { protocol, number };
    assert_eq!(node.receivers[0].ports, [port(None, 502)]);
    assert_eq!(node.receivers[1].ports, [port(Some(Protocol::Udp), 514)]);
    assert_eq!(node.receivers[0].command.as_deref(), Some("plc"));
    assert_eq!(eth0.urgent, [Mark::Port(port(None, 502))]);
    assert_eq!(eth0.others.get(), 1);
    assert_eq!((eth1.urgent.len(), node.urgency_of(eth1).get()), (0, 0));
    assert_eq!(
        (node.urgency_of(eth0).get(), node.linux.top_half),
        (60, None)
    );
}

#[test]
fn a_card_tells_the_most_urgent_packets_by_what_all_flows_to_their_receivers_name() {
    let node = |selectors: &[&str]| {
        let flows = selectors.iter().enumerate().map(|(number, selector)| {
            format!("[[flow]]\nname = \"f{number}\"\nsource = \"s1\"\nreceiver = \"plc\"\nselector = {selector}\n")
        });
        let text = [
            &source(1, "interface = \"eth0\""),
            "[[receiver]]\nname = \"plc\"\nurgency = 60\n",
            "[[receiver]]\nname = \"log\"\nurgency = 7\n",
            "[[flow]]\nname = \"log\"\nsource = \"s1\"\nreceiver = \"log\"\nselector = { protocol = \"udp\", port = 514 }\n",
            &flows.collect::<String>(),
        ]
        .concat();
        let node = self::node(&text, None).unwrap();
        (
            node.interfaces[0].urgent.clone(),
            node.interfaces[0].others.get(),
        )
    };
    let (profinet, timed) = ("{ ethertype = 0x8892 }", "{ pcp = 6 }");
    let marks = [Mark::EtherType(0x8892), Mark::Priority(6)];
    assert_eq!(node(&[profinet, timed]), (marks.to_vec(), 7));
    // ICMP packets have no port, so all other packets are as urgent as they are.
    let (told, others) = node(&[profinet, "{ protocol = \"icmp\" }"]);
    assert_eq!((told, others), (marks[..1].to_vec(), 60));
}

#[test]
fn the_exact_mode_is_capped_if_the_file_does_not_say() {
    let text = source(1, "interface = \"eth0\"");
    let exact = node(&text, Some(LinuxMode::Exact)).unwrap();
    let cap = TopHalf::Cap {
        runtime: Duration::from_micros(500),
        period: Duration::from_millis(10),
    };
    assert_eq!(
        (exact.linux.mode, exact.linux.top_half),
        (LinuxMode::Exact, Some(cap))
    );
    let placed = format!("{text}[linux]\nmode = \"exact\"\ntop_half = {{ urgency = 9 }}\n");
    assert_eq!(
        node(&placed, None).unwrap().linux.top_half,
        Some(TopHalf::Urgency(9))
    );
}

#[test]
fn a_timer_ends_a_cap_and_nothing_else() {
    let text = source(1, "interface = \"eth0\"");
    let timed = |keys: &str| node(&format!("{text}[linux]\ncap_timer = true\n{keys}"), None);
    // Mode exact has a cap unless the file says otherwise.
    assert!(timed("mode = \"exact\"\n").unwrap().linux.cap_timer);
    let cap = "top_half = { runtime = \"500us\", period = \"10ms\" }\n";
    assert!(timed(cap).unwrap().linux.cap_timer);
    for keys in ["", "top_half = { urgency = 9 }\n"] {
        let error = timed(keys).unwrap_err();
        assert!(
            matches!(error, NotForLinux::Contradiction(LinuxContradiction::NoCap)),
            "{error}"
        );
    }
}

#[test]
fn only_the_mode_exact_does_without_threads() {
    let text = source(1, "interface = \"eth0\"");
    let of = |mode| {
        let text = format!("{text}[linux]\ntop_half = {{ thread = false }}\n");
        node(&text, Some(mode))
    };
    let top_half = of(LinuxMode::Exact).unwrap().linux.top_half;
    assert_eq!(top_half, Some(TopHalf::Interrupt));
    for mode in [LinuxMode::Native, LinuxMode::Predicted] {
        let error = of(mode).unwrap_err();
        assert!(
            matches!(
                error,
                NotForLinux::Contradiction(LinuxContradiction::NoThread { .. })
            ),
            "{error}"
        );
    }
}

#[test]
fn a_card_has_a_longer_ring_only_where_the_file_says_so() {
    let ring = |keys: &str| {
        let text = format!("{}[linux]\n{keys}", source(1, "interface = \"eth0\""));
        node(&text, Some(LinuxMode::Exact))
            .unwrap()
            .linux
            .receive_ring
    };
    assert_eq!(ring(""), None);
    assert_eq!(ring("receive_ring = 1024"), Some(1024));
}

#[test]
fn sockets_have_a_larger_buffer_where_packets_take_more_of_it() {
    let text = source(1, "interface = \"eth0\"");
    let buffer = |mode, keys: &str| {
        let text = format!("{text}[linux]\n{keys}");
        node(&text, Some(mode)).unwrap().linux.receive_buffer
    };
    assert_eq!(buffer(LinuxMode::Native, ""), None);
    assert_eq!(buffer(LinuxMode::Predicted, ""), None);
    assert_eq!(buffer(LinuxMode::Exact, ""), Some(1 << 20));
    assert_eq!(buffer(LinuxMode::Exact, "receive_buffer = 0"), None);
    assert_eq!(buffer(LinuxMode::Native, "receive_buffer = 9"), Some(9));
}

#[test]
fn a_class_has_the_queues_of_all_flows_to_receivers_of_its_urgency() {
    let receiver =
        |name: &str, urgency: u8| format!("[[receiver]]\nname = \"{name}\"\nurgency = {urgency}\n");
    let flow = |number: u16, receiver: &str, queue: &str| {
        format!(
            "[[flow]]\nname = \"f{number}\"\nsource = \"s1\"\nreceiver = \"{receiver}\"\nselector = {{ protocol = \"udp\", port = {number} }}\n{queue}\n"
        )
    };
    let text = |queues: [&str; 3]| {
        [
            source(1, "interface = \"eth0\""),
            receiver("plc", 60),
            receiver("log", 0),
            receiver("archive", 0),
            flow(1, "plc", queues[0]),
            flow(2, "log", queues[1]),
            flow(3, "archive", queues[2]),
        ]
        .concat()
    };
    let exact = |queues| node(&text(queues), Some(LinuxMode::Exact));
    let queues = |queues| exact(queues).unwrap().queues;
    let (short, long) = ("queue = 16", "queue = 4000");
    assert_eq!(
        queues(["", long, "queue = 2000"]),
        [(Urgency::ORDINARY, 6000)].into()
    );
    // Packets for sockets that the file does not name wait in the queue of ordinary processes, too.
    assert_eq!(
        queues([short, short, ""]),
        [
            (Urgency::ORDINARY, ORDINARY_QUEUE),
            (Urgency::new(60).unwrap(), 16)
        ]
        .into()
    );
    let too_long = ["", long, "queue = 12385"];
    assert!(node(&text(too_long), None).is_ok());
    let too_long = exact(too_long).unwrap_err();
    assert_eq!(
        too_long,
        NotForLinux::Queue {
            urgency: Urgency::ORDINARY,
            found: 16_385
        }
    );
}

fn node_of(receiver: &str, selector: &str) -> Result<Node, NotForLinux> {
    let text = format!(
        "{}[[receiver]]\nname = \"plc\"\nurgency = 60\n{receiver}\n[[flow]]\nname = \"in\"\nsource = \"s1\"\nreceiver = \"plc\"\nselector = {{ {selector} }}\n",
        source(1, "interface = \"eth0\"")
    );
    node(&text, None)
}

#[test]
fn an_address_that_is_ignored_is_refused() {
    for address in ["192.0.2.0/24", "2001:db8::1"] {
        let error = node_of(
            "",
            &format!("protocol = \"udp\", port = 502, address = \"{address}\""),
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`weir linux` ignores addresses"), "{error}");
    }
}

#[test]
fn what_is_not_looked_at_and_who_is_trusted_is_said() {
    let said = |receiver, selector| node_of(receiver, selector).unwrap().remarks;
    let [remark] = &said("", "protocol = \"udp\", port = 4840, pcp = 5")[..1] else {
        unreachable!()
    };
    assert!(
        remark.contains("not its EtherType or VLAN priority"),
        "{remark}"
    );
    let remarks = said("", "protocol = \"udp\", port = 4840");
    assert!(remarks[0].contains("port 4840 has the urgency of `plc` whoever binds it"));
    // A process that may bind this port is trusted anyway, and so is a user that the file states.
    assert!(said("", "protocol = \"udp\", port = 502").is_empty());
    assert!(
        said(
            "match = { user = \"root\" }",
            "protocol = \"udp\", port = 4840"
        )
        .is_empty()
    );
    let error = node_of("match = { user = \"weir-nobody\" }", "port = 1").unwrap_err();
    assert!(error.to_string().contains("no such user"), "{error}");
}
