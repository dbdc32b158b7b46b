// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU that goes and comes back while a run goes on, under load. It is one of a guest (boards/linux): none of this machine is touched.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const MODES: [&str; 3] = ["native", "predicted", "exact"];
/// Flows of the load, each to its port.
const FLOWS: u64 = 3;
/// Packets a second of each flow.
const RATE: u64 = 500;
/// How long the load takes.
const SECONDS: u64 = 15;

/// A thread's real-time priority, the number of its policy, and its CPUs.
type Scheduled = (u8, u8, String);

/// What the job has printed: by mode and when, the threads by their names.
type Threads = BTreeMap<(String, String), BTreeMap<String, Scheduled>>;

/// A flood for each mode, as boards/linux/packets.c reads them.
fn floods() -> Vec<u8> {
    let packets = RATE * SECONDS * FLOWS;
    let mut words = Vec::new();
    for _ in MODES {
        words.push(packets);
        for number in 0..packets {
            words.extend([number * 1_000_000_000 / (RATE * FLOWS), number % FLOWS, 64]);
        }
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Runs the job in a guest with two CPUs, and returns what it printed.
fn run(out: &TempDir) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(root.join("boards/linux/build"))
        .arg("6.1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let folder = String::from_utf8(built.stdout).unwrap();
    let path = |name: &str| out.path().join(name);
    let system = include_str!("system.toml");
    let job = include_str!("job.sh");
    let job = format!("cat >/run/system.toml <<'SYSTEM'\n{system}SYSTEM\n{job}");
    fs::write(path("job"), job).unwrap();
    fs::write(path("floods"), floods()).unwrap();
    let ran = Command::new(root.join("boards/linux/run"))
        .arg(folder.trim())
        .args([path("job"), path("floods"), path("out")])
        .arg("2")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    String::from_utf8(ran.stdout).unwrap()
}

fn parse(printed: &str) -> (Threads, BTreeMap<(String, String, String), u64>) {
    let (mut threads, mut numbers) = (Threads::new(), BTreeMap::new());
    for line in printed.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [mode, when, name, priority, policy, cpus] => {
                let scheduled = (priority.parse().unwrap(), policy.parse().unwrap());
                let of = threads
                    .entry((mode.to_owned(), when.to_owned()))
                    .or_default();
                let scheduled = (scheduled.0, scheduled.1, cpus.to_owned());
                of.insert(name.to_owned(), scheduled);
            }
            [mode, what, of, number] => {
                let key = [mode, what, of].map(ToOwned::to_owned);
                numbers.insert(key.into(), number.parse().unwrap());
            }
            _ => panic!("{line}"),
        }
    }
    (threads, numbers)
}

/// The threads of classes: CPU, priority, policy and CPUs of each, without the maps' numbers.
fn classes(threads: &BTreeMap<String, Scheduled>) -> Vec<(String, &Scheduled)> {
    let all = threads.iter();
    let mut classes: Vec<_> = all
        .filter_map(|(name, scheduled)| {
            let (cpu, _) = name.strip_prefix("cpumap/")?.split_once('/')?;
            Some((cpu.to_owned(), scheduled))
        })
        .collect();
    classes.sort();
    classes
}

#[test]
#[ignore = "takes a guest and minutes: scripts/test-guest"]
fn a_cpu_may_go_and_come_back_under_load() {
    let out = tempfile::tempdir().unwrap();
    let printed = run(&out);
    println!("{printed}");
    let (threads, numbers) = parse(&printed);
    let sent: serde_json::Value =
        serde_json::from_slice(&fs::read(out.path().join("out/sent")).unwrap()).unwrap();
    println!("{sent}");
    for (flood, mode) in MODES.into_iter().enumerate() {
        let at = |when: &str| &threads[&(mode.to_owned(), when.to_owned())];
        let number = |what: &str, of: &str| numbers[&(mode.into(), what.into(), of.into())];
        // Nothing is lost, whoever it is for, and nothing is left.
        for flow in 0..FLOWS {
            let taken = &sent[flood]["sent"][flow as usize];
            let received = number("received", &(5000 + flow).to_string());
            assert_eq!(Some(received), taken.as_u64(), "{mode}, flow {flow}");
            assert!(received > RATE * SECONDS / 2, "{mode}: {sent}");
        }
        assert_eq!(number("left", "nothing"), 0, "{mode}");
        // The threads are as they were, with each CPU's own on it.
        let begun = at("begun");
        let others = |when: &str| {
            let mut others = at(when).clone();
            others.retain(|name, _| !name.starts_with("cpumap/"));
            // Under load those of the mode predicted follow who waits just then.
            let follow = mode == "predicted" && when != "ended";
            others.retain(|name, _| !follow || !name.starts_with("napi/"));
            others
        };
        for when in ["back", "again", "ended"] {
            assert_eq!(classes(at(when)), classes(begun), "{mode}, {when}");
            for (name, scheduled) in others(when) {
                assert_eq!(scheduled, begun[&name], "{mode}, {when}: {name}");
            }
            assert!(others(when).contains_key("ksoftirqd/1"), "{mode}, {when}");
        }
        let gone = classes(at("gone"));
        assert!(gone.iter().all(|(cpu, _)| cpu == "0"), "{mode}: {gone:?}");
        assert_eq!(2 * gone.len(), classes(begun).len(), "{mode}");
        assert_eq!(mode == "exact", !gone.is_empty());
        for (cpu, (_, _, cpus)) in classes(begun) {
            assert_eq!(cpu, *cpus, "{mode}");
        }
        // ksoftirqd has the urgency of the most urgent receiver of all, SCHED_FIFO, until the end.
        let ksoftirqd =
            |when: &str| [0, 1].map(|cpu| at(when)[&format!("ksoftirqd/{cpu}")].clone());
        for (cpu, (priority, policy, _)) in ksoftirqd("again").into_iter().enumerate() {
            assert_eq!((priority, policy), (80, 1), "{mode}, CPU {cpu}");
        }
        assert_eq!(ksoftirqd("after"), ksoftirqd("before"), "{mode}");
        let left: Vec<_> = at("after")
            .iter()
            .filter(|(name, (_, policy, _))| name.starts_with("cpumap/") || *policy != 0)
            .collect();
        assert!(left.is_empty(), "{mode}: {left:?}");
    }
}
