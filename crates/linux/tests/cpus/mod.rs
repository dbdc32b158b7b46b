// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU that goes and comes back while a run goes on, under load, and one that is offline when a
//! run begins. They are those of a guest (boards/linux): none of this machine is touched.
use crate::emulated;

use std::collections::BTreeMap;

use emulated::Guest;
use serde_json::Value;
use weir_linux::account::AccountReport;

const MODES: [&str; 3] = ["native", "predicted", "exact"];
/// The kernel alone.
const VANILLA: &str = "vanilla";
/// Flows of the load, each to its port.
const FLOWS: u64 = 3;
/// Packets a second of each flow.
const RATE: u64 = 500;
/// How many seconds the load lasts: in a run in which CPU 1 goes offline and comes back, and in a
/// run in which it is offline when the mode begins.
const SECONDS: [u64; 2] = [15, 3];
/// How many guests there are at most. With two CPUs they have the host's clock, and a host that is
/// busy with something else now and then leaves them too little time: where QEMU was given an
/// eighth of a CPU, the kernel alone lost 45 % of the packets at the card in one guest, the mode
/// native 13 % and predicted 12.
const GUESTS: usize = 3;

/// A thread's real-time priority, the number of its policy, and its CPUs.
type Scheduled = (u8, u8, String);

/// The kernel's threads by their names.
type Threads = BTreeMap<String, Scheduled>;

/// The runs of the job as it prints them, MODE/BEGIN, in the order of their floods; how many
/// seconds each one takes.
fn runs() -> Vec<(String, u64)> {
    let online = [VANILLA].into_iter().chain(MODES);
    let online = online.map(|mode| (format!("{mode}/online"), SECONDS[0]));
    let offline = MODES.map(|mode| (format!("{mode}/offline"), SECONDS[1]));
    online.chain(offline).collect()
}

/// A flood for each run, as boards/linux/packets.c reads them.
fn floods() -> Vec<u8> {
    let mut words = Vec::new();
    for (_, seconds) in runs() {
        let packets = RATE * seconds * FLOWS;
        words.push(packets);
        for number in 0..packets {
            words.extend([
                number * 1_000_000_000 / (RATE * FLOWS),
                number % FLOWS,
                4,
                64,
            ]);
        }
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// What was seen of one run of the job.
#[derive(Default)]
struct Run {
    /// By when they were.
    threads: BTreeMap<String, Threads>,
    /// By what they count.
    numbers: BTreeMap<String, u64>,
    /// What weir-linux says of itself after the flood.
    status: Value,
    /// Packets of each flow that the card took.
    taken: Vec<u64>,
    /// Those that it had no buffer for, all in all.
    lost: u64,
}

impl Run {
    fn at(&self, when: &str) -> &Threads {
        &self.threads[when]
    }

    fn ksoftirqd(&self, when: &str) -> [&Scheduled; 2] {
        [0, 1].map(|cpu| &self.at(when)[&format!("ksoftirqd/{cpu}")])
    }
}

/// Runs the job in a guest with two CPUs, and returns its runs.
fn guest() -> BTreeMap<String, Run> {
    let system = include_str!("system.toml");
    let job = include_str!("job.sh");
    let job = format!("cat >/run/system.toml <<'SYSTEM'\n{system}SYSTEM\n{job}");
    let ended = Guest::new("6.1").run(&job, &floods(), 2);
    let mut seen: BTreeMap<String, Run> = BTreeMap::new();
    for line in ended.printed.lines() {
        let (run, line) = line.split_once(' ').unwrap();
        let run = seen.entry(run.to_owned()).or_default();
        if let Some(status) = line.strip_prefix("status ") {
            let mut status: Value = serde_json::from_str(status).unwrap();
            run.status = status["systems"][0]["status"].take();
            continue;
        }
        match line.split(' ').collect::<Vec<_>>()[..] {
            [when, name, priority, policy, cpus] => {
                let scheduled = (priority.parse().unwrap(), policy.parse().unwrap());
                let scheduled = (scheduled.0, scheduled.1, cpus.to_owned());
                let threads = run.threads.entry(when.to_owned()).or_default();
                threads.insert(name.to_owned(), scheduled);
            }
            [_, of, number] => {
                run.numbers.insert(of.to_owned(), number.parse().unwrap());
            }
            _ => panic!("{line}"),
        }
    }
    let sent: Vec<BTreeMap<String, Vec<u64>>> = serde_json::from_slice(&ended.sent).unwrap();
    for ((name, seconds), mut sent) in runs().into_iter().zip(sent) {
        let run = seen.get_mut(&name).unwrap();
        run.taken = sent.remove("sent").unwrap();
        run.lost = sent["lost"].iter().sum();
        println!(
            "{name}: the card took {:?} and lost {}",
            run.taken, run.lost
        );
        assert_eq!(
            run.taken.iter().sum::<u64>() + run.lost,
            RATE * seconds * FLOWS
        );
    }
    seen
}

/// The threads of classes: CPU, priority, policy and CPUs of each, without the maps' numbers.
fn classes(threads: &Threads) -> Vec<(&str, &Scheduled)> {
    let mut classes: Vec<_> = threads
        .iter()
        .filter_map(|(name, scheduled)| {
            let (cpu, _) = name.strip_prefix("cpumap/")?.split_once('/')?;
            Some((cpu, scheduled))
        })
        .collect();
    classes.sort();
    classes
}

/// The others. In the mode predicted those of the card follow who waits, under load with each
/// packet: then they are not among them.
fn others<'a>(threads: &'a Threads, mode: &str, is_loaded: bool) -> Vec<(&'a str, &'a Scheduled)> {
    let follows = |name: &str| mode == "predicted" && is_loaded && name.starts_with("napi/");
    let all = threads.iter().map(|(name, of)| (name.as_str(), of));
    all.filter(|(name, _)| !name.starts_with("cpumap/") && !follows(name))
        .collect()
}

/// What holds of each run: nothing that the card took is lost, whoever it is for, and nothing is
/// left.
fn judge(name: &str, run: &Run) {
    for (flow, taken) in run.taken[..FLOWS as usize].iter().enumerate() {
        assert!(*taken > 0, "{name}, flow {flow}");
        assert_eq!(
            run.numbers[&(5000 + flow).to_string()],
            *taken,
            "{name}, flow {flow}"
        );
    }
    assert_eq!(run.ksoftirqd("after"), run.ksoftirqd("before"), "{name}");
    let is_left = |(name, of): &(&String, &Scheduled)| name.starts_with("cpumap/") || of.1 != 0;
    let left: Vec<_> = run.at("after").iter().filter(is_left).collect();
    assert!(left.is_empty(), "{name}: {left:?}");
    if !name.starts_with(VANILLA) {
        assert_eq!(run.numbers["nothing"], 0, "{name}");
    }
}

/// Each class has a thread on each of these CPUs, which it is bound to, with the same policy on
/// all; there are classes in the mode exact.
fn judge_classes(mode: &str, threads: &Threads, cpus: &[&str]) {
    let classes = classes(threads);
    let on = |cpu: &str| -> Vec<_> {
        let on = classes.iter().filter(|(of, _)| *of == cpu);
        on.map(|(_, (priority, policy, _))| (*priority, *policy))
            .collect()
    };
    let first = on(cpus[0]);
    assert_eq!(first.is_empty(), mode != "exact", "{threads:?}");
    assert!(cpus.iter().all(|cpu| on(cpu) == first), "{classes:?}");
    assert_eq!(classes.len(), first.len() * cpus.len(), "{classes:?}");
    assert!(
        classes.iter().all(|(cpu, (_, _, bound))| cpu == bound),
        "{classes:?}"
    );
}

/// CPU 1 has gone and come back, twice.
fn judge_online(mode: &str, run: &Run) {
    judge_classes(mode, run.at("begun"), &["0", "1"]);
    judge_classes(mode, run.at("gone"), &["0"]);
    for when in ["back", "again", "ended"] {
        assert_eq!(
            classes(run.at(when)),
            classes(run.at("begun")),
            "{mode}, {when}"
        );
        let of = |at: &'static str| others(run.at(at), mode, when != "ended");
        assert_eq!(of(when), of("begun"), "{mode}, {when}");
    }
    // ksoftirqd does others' work, and is left as it is.
    assert_eq!(run.ksoftirqd("again"), run.ksoftirqd("before"), "{mode}");
}

/// CPU 1 has come, and then all packets on it.
fn judge_offline(mode: &str, run: &Run) {
    judge_classes(mode, run.at("begun"), &["0"]);
    for when in ["back", "ended"] {
        judge_classes(mode, run.at(when), &["0", "1"]);
        assert_eq!(
            others(run.at(when), mode, false),
            others(run.at("begun"), mode, false)
        );
        assert_eq!(
            run.ksoftirqd(when),
            run.ksoftirqd("before"),
            "{mode}, {when}"
        );
    }
    let account: AccountReport = serde_json::from_value(run.status["account"].clone()).unwrap();
    assert!(account.adds_up(), "{mode}");
    let ran = |cpu| {
        account
            .cpus
            .iter()
            .any(|one| one.cpu == cpu && one.interrupts_ns > 0)
    };
    assert!(ran(1), "{mode}: {:?}", account.cpus);
    // What mode exact counts on that CPU tells whom the time was for; without packets nothing else
    // does.
    assert_eq!(
        account.received_ns > 0,
        mode == "exact",
        "{mode}: {account:?}"
    );
    let left = &run.status["exact"]["left"];
    assert!(mode != "exact" || left["no_thread"] == 0, "{left}");
}

#[test]
fn a_cpu_may_go_and_come_under_load() {
    if !emulated::is_wanted() {
        return;
    }
    // The fewest packets that the card has lost in a guest, by run.
    let mut least: BTreeMap<String, u64> = BTreeMap::new();
    for number in 1..=GUESTS {
        let seen = guest();
        for (name, run) in &seen {
            judge(name, run);
            match name.split_once('/').unwrap() {
                (VANILLA, _) => {}
                (mode, "online") => judge_online(mode, run),
                (mode, _) => judge_offline(mode, run),
            }
            let lost = least.entry(name.clone()).or_insert(run.lost);
            *lost = run.lost.min(*lost);
        }
        // No mode more than the kernel alone: nothing, unless the host is busy.
        let control = least[&format!("{VANILLA}/online")];
        if least.values().all(|lost| *lost <= control) {
            return;
        }
        println!(
            "guest {number} of {GUESTS}: the card loses more than the kernel alone: {least:?}"
        );
    }
    panic!("of each run's losses at the card in {GUESTS} guests the fewest: {least:?}");
}
