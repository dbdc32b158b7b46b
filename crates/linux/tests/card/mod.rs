// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests mode native on a card that steers packets, spreads them, and gathers packets for each
//! queue. The card is a kernel module (boards/linux/card) in a guest, since the machines that run
//! the tests have no such card.
use crate::emulated;

use std::collections::BTreeMap;
use std::process::Command;

use emulated::{Guest, output, program};
use serde_json::Value;

/// Number of the card's receive queues. The last queue is for the urgent packets.
const QUEUES: usize = 4;

/// What the job in the guest has printed about a case.
#[derive(Debug, Default)]
struct Case {
    /// The output of `weir-linux plan`, by the moment at which it was run.
    plans: BTreeMap<String, Value>,
    /// Packets that each queue has received, by the flood after which they were counted.
    received: BTreeMap<String, [u64; QUEUES]>,
    /// Real-time priorities of the threads, by the numbers of their NAPI instances. The numbers
    /// ascend with the queues.
    priorities: BTreeMap<u32, u8>,
    /// Real-time priorities of the threads after the run has ended.
    left: Vec<u8>,
    /// Packets that each receiver got, by its port.
    delivered: BTreeMap<String, u64>,
}

impl Case {
    /// The settings with their values, to compare them with those before the run. Policies of
    /// threads are left out, since the threads exist only from the run on.
    fn settings(&self, when: &str) -> Vec<(&str, &str)> {
        let changes = self.plans[when]["changes"].as_array().unwrap().iter();
        changes
            .map(|change| (change["setting"].as_str().unwrap(), &change["now"]))
            .filter_map(|(setting, now)| Some((setting, now.as_str()?)))
            .filter(|(setting, _)| !setting.contains("napi/"))
            .collect()
    }

    /// The changes that `weir-linux plan` listed, as setting and new value.
    fn changes(&self, when: &str) -> Vec<(&str, &str)> {
        let changes = self.plans[when]["changes"].as_array().unwrap().iter();
        changes
            .map(|change| {
                let of = |what: &str| change[what].as_str().unwrap();
                (of("setting"), of("new"))
            })
            .collect()
    }

    fn notes(&self, when: &str) -> Vec<&str> {
        let notes = self.plans[when]["notes"].as_array().unwrap().iter();
        notes.map(|note| note.as_str().unwrap()).collect()
    }

    /// Packets that each queue received between two counts.
    fn came(&self, from: &str, to: &str) -> [u64; QUEUES] {
        let (from, to) = (self.received[from], self.received[to]);
        std::array::from_fn(|queue| to[queue] - from[queue])
    }

    fn priorities(&self) -> Vec<u8> {
        self.priorities.values().copied().collect()
    }
}

/// Runs the job in a guest of `kernel`.
fn run(kernel: &str) -> BTreeMap<String, Case> {
    let guest = Guest::new(kernel);
    let module = output(Command::new(program("card/build.sh")).arg(&guest.folder));
    let encoded = output(Command::new("base64").arg(module.trim()));
    let system = include_str!("system.toml");
    let job = include_str!("job.sh");
    let job = format!(
        "base64 -d >/run/weir_card.ko <<'MODULE'\n{encoded}MODULE\ncat >/run/system.toml <<'SYSTEM'\n{system}SYSTEM\n{job}"
    );
    parse(&guest.run(&job, &[], 1).printed)
}

fn parse(printed: &str) -> BTreeMap<String, Case> {
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let [case, what, rest] = words[..] else {
            panic!("{line}");
        };
        let case = cases.entry(case.to_owned()).or_default();
        let pair = || rest.split_once(' ').unwrap();
        match what {
            "before" | "running" | "after" => {
                let plan = serde_json::from_str(rest).unwrap();
                case.plans.insert(what.to_owned(), plan);
            }
            "thread" => {
                let (id, priority) = pair();
                let (id, priority) = (id.parse().unwrap(), priority.parse().unwrap());
                case.priorities.insert(id, priority);
            }
            "left" => case.left.push(pair().1.parse().unwrap()),
            "received" => {
                let (port, packets) = pair();
                let packets = packets.parse().unwrap();
                case.delivered.insert(port.to_owned(), packets);
            }
            _ => {
                let counts: Vec<u64> = rest.split(',').map(|one| one.parse().unwrap()).collect();
                let counts = counts.try_into().unwrap();
                case.received.insert(what.to_owned(), counts);
            }
        }
    }
    cases
}

/// Checks the cases. `tells` says whether the kernel can report which NAPI instance serves a queue.
fn judge(cases: &BTreeMap<String, Case>, tells: bool) {
    for (name, case) in cases {
        let ring = ("the receive ring of card0", "256 packets");
        assert!(case.settings("after").contains(&ring), "{name}");
        let notes = case.notes("before");
        assert!(notes.iter().any(|note| note.contains("link")), "{name}");
        // All settings are restored, and no packet is lost.
        assert_eq!(case.settings("before"), case.settings("after"), "{name}");
        assert_eq!(case.left, [0; QUEUES], "{name}");
        assert_eq!(case.delivered["5000"], 220, "{name}");
        assert_eq!(case.delivered["5001"], 200, "{name}");
    }
    let gathers = [0, 1, 2].map(|queue| format!("the coalescing of card0's queue {queue}"));
    for name in ["steers", "silent"] {
        let case = &cases[name];
        // A plan during the run reads the card again, and finds nothing to change.
        assert!(case.changes("running").is_empty(), "{name}");
        let changes = case.changes("before");
        for change in [
            ("rule 15 of card0", "UDP port 5001 over IPv4 to queue 3"),
            ("rule 14 of card0", "UDP port 5001 over IPv6 to queue 3"),
            ("the spread over queues of card0", "queues 0-2"),
            ("the receive ring of card0", "512 packets"),
        ] {
            assert!(changes.contains(&change), "{name}: {changes:?}");
        }
        let gathering = changes
            .iter()
            .filter(|(setting, _)| setting.contains("coalescing"));
        assert!(
            gathering.map(|(setting, _)| *setting).eq(gathers.iter()),
            "{name}: {changes:?}"
        );
        assert_eq!(case.came("first", "urgent"), [0, 0, 0, 200], "{name}");
        let others = case.came("urgent", "others");
        assert_eq!((others[3], others.iter().sum()), (0, 200), "{name}");
    }
    // If the thread of the urgent packets' queue is known, it is above the others.
    let apart = [10, 10, 10, 80];
    let alike = [80; QUEUES];
    let steers = &cases["steers"];
    assert_eq!(steers.priorities(), if tells { apart } else { alike });
    let expected = if tells {
        (
            "the policy of the thread of card0's queue 3",
            "SCHED_FIFO 80",
        )
    } else {
        ("the policy of the threads of card0", "SCHED_FIFO 80")
    };
    let changes = steers.changes("before");
    assert!(changes.contains(&expected), "{changes:?}");
    // One note is about the ring. If the kernel does not report instances, another says that the
    // threads cannot be distinguished.
    assert_eq!(steers.notes("before").len(), if tells { 1 } else { 2 });
    let silent = &cases["silent"];
    assert_eq!(silent.priorities(), alike);
    let notes = silent.notes("before");
    assert!(
        matches!(notes[..], [note, _] if note.contains("does not tell which thread serves queue 3")),
        "{notes:?}"
    );
    // If the card refuses such rules, the run goes on without them.
    let refuses = &cases["refuses"];
    let refused = refuses.changes("running");
    let rules = refused
        .iter()
        .filter(|(setting, _)| setting.starts_with("rule"));
    assert_eq!(rules.count(), 2, "{refused:?}");
    let others = cases["ethernet"].changes("before");
    assert!(
        others.contains(&("rule 15 of card0", "EtherType 0x8892 to queue 3")),
        "{others:?}"
    );
    let priorities = cases["ethernet"].priorities();
    assert_eq!(priorities, if tells { apart } else { alike });
}

#[test]
fn a_card_steers_the_most_urgent_packets_to_a_queue_of_their_own() {
    if !emulated::is_wanted() {
        return;
    }
    for (kernel, tells) in [("6.1", false), ("6.12", true)] {
        judge(&run(kernel), tells);
    }
}
