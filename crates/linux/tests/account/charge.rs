// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests to whom interrupt time is charged, and from whom it is taken.
use std::time::Duration;

use procfs::{CurrentSI as _, KernelStats};
use weir_linux::account::{Event, Limits, Options};
use weir_linux::settings::NetDevice;
use weir_linux::threads::{self, Work};

use super::flood::{self, Flood, HANDLES, Spinner};
use super::ground::{self, Namespace, Offload};
use super::{Books, NEEDS, process};

const TIME: Duration = Duration::from_secs(2);

/// Time that the kernel itself counts for interrupts and soft interrupts on the CPU that handles
/// them, in /proc/stat.
fn kernel_says() -> Duration {
    let stat = KernelStats::current().unwrap();
    let cpu = &stat.cpu_time[HANDLES];
    cpu.irq_duration().unwrap_or_default() + cpu.softirq_duration().unwrap_or_default()
}

/// The index of a namespace's interface.
fn interface_index(namespace: &Namespace) -> i32 {
    let path = namespace.path();
    let interface = NetDevice::find(&namespace.interface, Some(&path));
    interface.unwrap().index
}

fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

#[test]
fn a_flood_is_charged_to_its_receiver_and_taken_from_who_runs() {
    let Some(ground) = ground::begin(NEEDS) else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    flood::steer(&ground.receiver);
    let receiver = flood::receiver(&ground.receiver, 5001);
    let spinner = Spinner::begin(&ground.receiver);
    // The limits are so low that the flood is an overload on any machine.
    let limits = Limits {
        share: 0.02,
        ..Limits::default()
    };
    let mut books = Books::open(Options {
        limits,
        ..Options::default()
    });
    let before = kernel_says();
    let flood = Flood::begin(&ground, &[5001]);
    let report = books.keep(TIME);
    let (sent, kernel) = (flood.end(), kernel_says() - before);
    let (charged, taken) = (
        process(&report, receiver.pid()),
        process(&report, spinner.pid()),
    );
    let on_cpu = report.cpus.iter().find(|cpu| cpu.cpu == HANDLES as u32);
    let measured = on_cpu.map_or(0, |cpu| cpu.interrupts_ns);
    println!(
        "{sent} packets sent, {} counted; on CPU {HANDLES}: measured {:?}, /proc/stat {kernel:?}; charged {:?}, taken {:?}",
        charged.packets,
        Duration::from_nanos(measured),
        Duration::from_nanos(charged.charged_ns),
        Duration::from_nanos(taken.taken_ns),
    );
    // Packets that are sent after the last turn are not counted, and the backlog of a CPU may drop
    // packets.
    assert!(charged.packets > sent / 4 && charged.packets <= sent);
    // Besides the flood, the machine does other work.
    assert!(
        part(charged.charged_ns, report.measured.total_ns) > 0.6,
        "{report:#?}"
    );
    // What the spinner lost was spent for the receiver, apart from timers and the like.
    assert!(part(taken.taken_ns, measured) > 0.6, "{report:#?}");
    assert!(taken.charged_ns == 0 && charged.taken_ns < measured / 100);
    // Without CONFIG_IRQ_TIME_ACCOUNTING the kernel only checks at each tick what the tick
    // interrupts. The result is random, and biased in a virtual machine.
    if report.used_without_interrupts {
        let kernel = kernel.as_nanos() as f64;
        let error = (measured as f64 - kernel).abs() / kernel;
        assert!(
            error < 0.1,
            "{error:.3}: measured {measured} ns, /proc/stat {kernel} ns"
        );
    }
    let culprits: Vec<String> = books.events.iter().map(Event::to_string).collect();
    println!("{culprits:?}");
    let [culprit] = &culprits[..] else {
        panic!("{culprits:?}");
    };
    let named = format!(
        "udp 5001 from #{index} for",
        index = interface_index(&ground.receiver)
    );
    let process = format!("(process {}, /", receiver.pid());
    assert!(
        culprit.contains(&named) && culprit.contains(&process),
        "{culprit}"
    );
}

#[test]
fn two_receivers_are_charged_by_their_packets_and_a_closed_port_to_nobody() {
    let Some(ground) = ground::begin(NEEDS) else {
        return;
    };
    if !flood::has_two_cpus() {
        return;
    }
    // If the interface has a thread, packets are counted on the interface on which they arrive.
    for end in [&ground.sender, &ground.receiver] {
        end.offload(Offload::Receive, true);
    }
    ground.sender.offload(Offload::SendChecksums, false);
    let (path, name) = (ground.receiver.path(), &ground.receiver.interface);
    let interface = NetDevice::find(name, Some(&path)).unwrap().open().unwrap();
    interface.write("threaded", "1").unwrap();
    let [one, other] = [5001, 5002].map(|port| flood::receiver(&ground.receiver, port));
    let spinner = Spinner::begin(&ground.receiver);
    let mut books = Books::open(Options::default());
    let flood = Flood::begin(&ground, &[5001, 5002, 5001, 5003]);
    let report = books.keep(TIME);
    flood.end();
    let (one, other) = (process(&report, one.pid()), process(&report, other.pid()));
    let threads =
        threads::which(|work| matches!(work, Work::Napi { interface, .. } if interface == name));
    let tids: Vec<u32> = threads
        .unwrap()
        .iter()
        .map(|of| of.thread.tid as u32)
        .collect();
    let ran: u64 = report
        .threads
        .iter()
        .filter(|thread| tids.contains(&thread.tid))
        .map(|thread| thread.ran_ns)
        .sum();
    println!(
        "the interface's threads ran {:?}; 5001 is charged {:?} for {} packets, 5002 {:?} for {}, nobody {:?} for {}",
        Duration::from_nanos(ran),
        Duration::from_nanos(one.charged_ns),
        one.packets,
        Duration::from_nanos(other.charged_ns),
        other.packets,
        Duration::from_nanos(report.orphans_ns),
        report.orphan_packets,
    );
    assert!(ran > 0 && one.packets > 1000, "{report:#?}");
    // Of four packets, two are for one process, one for the other, and one for nobody.
    let all = part(one.packets, other.packets);
    assert!((1.9..2.1).contains(&all), "{all}");
    let time = part(one.charged_ns, other.charged_ns);
    assert!((1.8..2.2).contains(&time), "{time}");
    let orphans = part(report.orphan_packets, other.packets);
    assert!((0.9..1.2).contains(&orphans), "{orphans}");
    // All of the thread's work is charged, to the receivers or to nobody. It is done in the
    // thread's own time and not in the spinner's.
    let booked = one.charged_ns + other.charged_ns + report.orphans_ns;
    assert!(booked as f64 > ran as f64 * 0.95, "{report:#?}");
    assert!(
        process(&report, spinner.pid()).taken_ns < ran / 2,
        "{report:#?}"
    );
}
