// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests an interface with several receive queues, which the machine spreads over its CPUs (RPS).
//! Each queue has a thread, and all packets reach their receivers.
use std::thread::available_parallelism;

use nix::sys::signal::Signal;
use weir_linux::sched::{Cpus, SchedPolicy};
use weir_linux::settings::journal::Adjustable as _;
use weir_linux::settings::{NetDevice, Setting, Value};
use weir_linux::threads::{KernelThread, Work, which};

use super::{deliver, machine, socket};
use crate::ground::skipped;
use crate::machine::{Machine, until};

const QUEUES: u32 = 2;
/// Number of flows. The sender chooses the queue by a hash of the flow. The probability that all
/// flows have the same queue is 1 in 2^31.
const FLOWS: usize = 32;
/// Number of packets of each flow.
const PACKETS: usize = 20;

fn threads(machine: &Machine) -> Vec<KernelThread> {
    let name = &machine.ground.receiver.interface;
    which(|work| matches!(work, Work::Napi { interface, .. } if interface == name)).unwrap()
}

/// How often the kernel has given the thread a CPU.
fn begun(thread: &KernelThread) -> u64 {
    let path = format!("/proc/{}/schedstat", thread.thread.tid);
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// Packets that were given to classes, and packets that were left to the kernel, since their class
/// had no thread on the CPU on which they arrived.
fn counted(status: &serde_json::Value) -> (u64, u64) {
    let classes = status["exact"]["classes"].as_array().unwrap();
    let given = classes.iter().map(|class| class["given"].as_u64().unwrap());
    let left = &status["exact"]["left"]["no_thread"];
    (given.sum(), left.as_u64().unwrap())
}

#[test]
fn each_queue_has_its_thread_and_no_flow_loses_any() {
    let cap = |runtime: &str| format!("SCHED_DEADLINE, {runtime} of every 10ms within 10ms");
    for (mode, policy) in [
        ("native", SchedPolicy::Fifo(2).to_string()),
        // The share is half of what all threads of the interface have together.
        ("exact", cap("250µs")),
    ] {
        let Some(machine) = machine(&format!("mode = \"{mode}\"")) else {
            return;
        };
        let cpus = available_parallelism().unwrap().get();
        if cpus < QUEUES as usize {
            skipped(&format!("it takes {QUEUES} CPUs"));
            return;
        }
        let ground = &machine.ground;
        ground.sender.queues(QUEUES);
        ground.receiver.queues(QUEUES);
        let name = &ground.receiver.interface;
        let interface = NetDevice::find(name, Some(&ground.receiver.path())).unwrap();
        let all = (0..cpus).collect::<Cpus>().mask();
        let spread: Vec<_> = (0..QUEUES)
            .map(|queue| Setting::device(&interface, format!("queues/rx-{queue}/rps_cpus")))
            .collect();
        for one in &spread {
            one.apply(&Value::Text(all.clone())).unwrap();
        }
        let spread = || -> Vec<_> { spread.iter().map(|one| one.value().unwrap()).collect() };
        let (before, spread_before) = (machine.settings(), spread());

        let run = machine.run();
        let policies = || -> Vec<_> { machine.napi().iter().map(ToString::to_string).collect() };
        until("each queue has a thread", || {
            policies() == [policy.clone(), policy.clone()]
        });
        let (ours, others) = (socket(ground, 9), socket(ground, 4500));
        if mode == "exact" {
            until("both are known", || {
                machine.run_status()["exact"]["sockets"] == 2
            });
        }
        let first = machine.run_status();
        let threads = threads(&machine);
        let begun_before: Vec<u64> = threads.iter().map(begun).collect();
        for _ in 0..FLOWS {
            assert_eq!(deliver(ground, &ours, PACKETS), PACKETS, "{mode}");
            assert_eq!(deliver(ground, &others, PACKETS), PACKETS, "{mode}");
        }
        for (thread, before) in threads.iter().zip(begun_before) {
            assert!(
                begun(thread) > before,
                "{mode}: {} did nothing",
                thread.work
            );
        }
        if mode == "exact" {
            let (given, left) = counted(&first);
            let all = (2 * FLOWS * PACKETS) as u64;
            until("the status has all packets", || {
                counted(&machine.run_status()) == (given + all, left)
            });
        }
        machine.end(run, Signal::SIGINT, &before);
        assert_eq!(spread(), spread_before);
    }
}
