// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the tone that the node plays on an output pin, and of the paper's limit (regehr2005
//! §7).
use super::Node;

const MS: u64 = 1_000_000;
const OUTPUTS: &str = r#"{"end": "9s", "outputs": [
    {"name": "tone", "address": 1073905664, "bit": 0}, {"name": "other", "address": 1073905664, "bit": 1}]"#;
const OPTIONS: &str = "address=10.0.0.2 task=tone period-us=2000 urgency=above driver=packet begin-ms=100 window-ms=300 windows=1";

#[test]
fn edges_are_noted_to_the_instruction() {
    let Some(node) = Node::new() else { return };
    let (report, _) = node.run(&format!("{OUTPUTS}}}"), OPTIONS);
    let [tone, other] = &report.outputs[..] else {
        panic!("{report:?}")
    };
    assert_eq!((tone.name.as_str(), other.edges_ns.len()), ("tone", 0));
    assert!(tone.edges_ns.len() > 190, "{}", tone.edges_ns.len());
    let distances = tone.edges_ns.windows(2).map(|pair| pair[1] - pair[0]);
    let (exact, others): (Vec<u64>, Vec<u64>) = distances.partition(|at| *at == 2 * MS);
    // Other work of the kernel delays some of the edges.
    assert!(exact.len() > 2 * others.len(), "{others:?}");
    // An instruction takes 8 ns.
    assert!(tone.edges_ns.iter().all(|at| at % 8 == 0));
    assert_eq!(
        node.run(&format!("{OUTPUTS}}}"), OPTIONS).0.outputs,
        report.outputs
    );
}

#[test]
fn a_bursty_limit_lets_its_burst_through_in_each_interval_and_the_tone_goes_on() {
    let Some(node) = Node::built(&["-DNODE_WEIR"]) else {
        return;
    };
    let plan = format!(
        r#"{OUTPUTS}, "flood": {{"pattern": "100kHz", "begin": "90ms", "end": "9s", "frames": {{"udp": 5001}}}}}}"#
    );
    let options = format!("{OPTIONS} limit=bursty limit-hz=600 limit-burst=15");
    let (report, printed) = node.run(&plan, &options);
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    // 300 ms are twelve intervals of 25 ms.
    assert_eq!(printed["windows"][0]["frames"], 12 * 15);
    let edges = &report.outputs[0].edges_ns;
    let within = edges.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = within.fold((u64::MAX, 0), |(least, most), at| {
        (least.min(at), most.max(at))
    });
    assert!(
        2 * MS - least < MS / 20 && most - 2 * MS < MS / 20,
        "{least} {most}"
    );
    // The effect of fifteen consecutive interrupts is visible.
    assert!(most - 2 * MS > MS / 100, "{most}");
}

#[test]
fn a_cooperative_kernel_ends_no_task_for_a_more_urgent_one() {
    let Some(node) = Node::built(&["-DconfigUSE_PREEMPTION=0"]) else {
        return;
    };
    // The flood is more than the driver's task can handle, so it never waits for a frame.
    let plan = format!(
        r#"{OUTPUTS}, "flood": {{"pattern": "400kHz", "begin": "200ms", "end": "300ms", "frames": {{"udp": 5001}}}}}}"#
    );
    let (report, _) = node.run(&plan, OPTIONS);
    let edges = &report.outputs[0].edges_ns;
    let during = edges
        .iter()
        .filter(|at| (201 * MS..300 * MS).contains(*at))
        .count();
    let before = edges
        .iter()
        .filter(|at| (101 * MS..200 * MS).contains(*at))
        .count();
    let after = edges.iter().filter(|at| **at > 310 * MS).count();
    assert!((48..=51).contains(&before), "{before}");
    assert_eq!(during, 0);
    assert!(after > 40, "{after}");
}
