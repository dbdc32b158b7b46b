// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the [`AccountReport`] from the data of the [`Accountant`].
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::CStr;

use super::ledger::PortFlow as FlowOf;
use super::report::{
    AccountReport, Cgroup, Cpu, EndedProcesses, FlowReport, InterruptTime, KernelThread, Process,
};
use super::{Accountant, sources};
use crate::sched::Tid;

/// Name of the interface that a flow comes from. In a network namespace other than `own` it is `#`
/// and the interface's index. `None` if the interface is not known.
pub(super) fn interface(flow: &FlowOf, own: u64) -> Option<String> {
    let index = flow.interface;
    if index == 0 {
        return None;
    }
    if flow.namespace != own {
        return Some(format!("#{index}"));
    }
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the call writes at most IF_NAMESIZE bytes that end with 0, and returns null if it
    // fails.
    let written = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if written.is_null() {
        return Some(format!("#{index}"));
    }
    // SAFETY: `written` points to `name`, which the call above has filled.
    let name = unsafe { CStr::from_ptr(written) };
    Some(name.to_string_lossy().into_owned())
}

pub(super) fn report(of: &Accountant) -> AccountReport {
    let processes = processes(of);
    let totals = of.ledger.totals();
    let (ended, sums) = of.ledger.ended();
    AccountReport {
        elapsed_ns: (of.turned - of.began).as_nanos() as u64,
        counts_packets: of.options.packets,
        used_without_interrupts: of.table.is_without_interrupts(),
        measured: InterruptTime {
            total_ns: of.parts.total(),
            device_ns: of.parts.device,
            other_devices_ns: of.parts.others,
            receive_ns: of.parts.receive,
            other_soft_ns: of.parts.soft,
            overhead_ns: of.parts.overhead,
            threads_ns: of.parts.threads,
            lost_ns: of.parts.lost,
        },
        received_ns: totals.received,
        orphans_ns: totals.orphans,
        unattributed_ns: totals.unattributed,
        packets: totals.packets,
        orphan_packets: totals.orphan_packets,
        lost_packets: of.lost_packets,
        interrupts: of.interrupts,
        cpus: of
            .cpus
            .iter()
            .map(|(&cpu, &interrupts_ns)| Cpu { cpu, interrupts_ns })
            .collect(),
        threads: of
            .table
            .sums()
            .map(|(tid, name, ran_ns)| KernelThread { tid, name, ran_ns })
            .collect(),
        cgroups: cgroups(&processes),
        processes,
        ended: EndedProcesses {
            processes: ended,
            charged_ns: sums.charged(),
            own_ns: sums.own,
            taken_ns: sums.taken(),
            packets: sums.packets,
        },
        flows: flows(of),
    }
}

fn processes(of: &Accountant) -> Vec<Process> {
    let mut processes: Vec<Process> = of
        .ledger
        .processes()
        .map(|pid| {
            let sums = of.ledger.of(pid);
            let entry = of.processes.known(pid);
            let thread = entry.and_then(|entry| entry.thread);
            Process {
                pid,
                started: thread.map_or(0, |thread| thread.started),
                command: entry.map_or_else(|| "?".to_owned(), |entry| entry.command.clone()),
                cgroup: entry.map_or_else(String::new, |entry| entry.cgroup.clone()),
                used_ns: Tid::try_from(pid)
                    .ok()
                    .and_then(sources::run_time)
                    .unwrap_or(0),
                charged_ns: sums.charged(),
                own_ns: sums.own,
                taken_ns: sums.taken(),
                packets: sums.packets,
            }
        })
        .collect();
    processes.sort_by_key(|process| (Reverse(process.charged_ns + process.taken_ns), process.pid));
    processes
}

fn cgroups(processes: &[Process]) -> Vec<Cgroup> {
    let mut cgroups: BTreeMap<&str, Cgroup> = BTreeMap::new();
    for process in processes {
        let cgroup = cgroups.entry(&process.cgroup).or_default();
        cgroup.used_ns += process.used_ns;
        cgroup.charged_ns += process.charged_ns;
        cgroup.taken_ns += process.taken_ns;
        cgroup.packets += process.packets;
    }
    let named = cgroups.into_iter().map(|(name, sums)| Cgroup {
        cgroup: name.to_owned(),
        ..sums
    });
    let mut cgroups: Vec<Cgroup> = named.collect();
    cgroups.sort_by_key(|cgroup| Reverse(cgroup.charged_ns + cgroup.taken_ns));
    cgroups
}

fn flows(of: &Accountant) -> Vec<FlowReport> {
    let mut flows: Vec<FlowReport> = of
        .flows
        .iter()
        .map(|(flow, sums)| FlowReport {
            protocol: flow.key.map(|key| key.protocol),
            port: flow.key.map_or(0, |key| key.port),
            interface: interface(flow, of.namespace),
            interrupts_ns: sums.time,
            packets: sums.packets,
        })
        .collect();
    flows.sort_by_key(|flow| Reverse(flow.interrupts_ns));
    flows
}
