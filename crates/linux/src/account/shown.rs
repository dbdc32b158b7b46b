// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the [`AccountReport`] from the data of the [`Accountant`].
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::CStr;

use super::ledger::PortFlow;
use super::report::{
    AccountReport, Cgroup, Cpu, EndedProcesses, FlowReport, InterruptTime, KernelThread, Process,
};
use super::{Accountant, sources};
use crate::sched::Tid;

/// Name of the interface that a flow comes from. In a network namespace other than `own` it is `#`
/// and the interface's index. `None` if the interface is not known.
pub(super) fn interface(flow: &PortFlow, own: u64) -> Option<String> {
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

pub(super) fn report(accountant: &Accountant) -> AccountReport {
    let processes = processes(accountant);
    let totals = accountant.ledger.totals();
    let (ended, sums) = accountant.ledger.ended();
    AccountReport {
        elapsed_ns: (accountant.turned - accountant.began).as_nanos() as u64,
        counts_packets: accountant.options.packets,
        used_without_interrupts: accountant.table.is_without_interrupts(),
        measured: InterruptTime {
            total_ns: accountant.parts.total(),
            device_ns: accountant.parts.device,
            other_devices_ns: accountant.parts.others,
            receive_ns: accountant.parts.receive,
            other_soft_ns: accountant.parts.soft,
            overhead_ns: accountant.parts.overhead,
            threads_ns: accountant.parts.threads,
            lost_ns: accountant.parts.lost,
        },
        received_ns: totals.received,
        orphans_ns: totals.orphans,
        unattributed_ns: totals.unattributed,
        packets: totals.packets,
        orphan_packets: totals.orphan_packets,
        lost_packets: accountant.lost_packets,
        interrupts: accountant.interrupts,
        cpus: accountant
            .cpus
            .iter()
            .map(|(&cpu, &interrupts_ns)| Cpu { cpu, interrupts_ns })
            .collect(),
        threads: accountant
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
        flows: flows(accountant),
    }
}

fn processes(accountant: &Accountant) -> Vec<Process> {
    let mut processes: Vec<Process> = accountant
        .ledger
        .processes()
        .map(|pid| {
            let sums = accountant.ledger.sums(pid);
            let entry = accountant.processes.known(pid);
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

fn flows(accountant: &Accountant) -> Vec<FlowReport> {
    let mut flows: Vec<FlowReport> = accountant
        .flows
        .iter()
        .map(|(flow, sums)| FlowReport {
            protocol: flow.key.map(|key| key.protocol),
            port: flow.key.map_or(0, |key| key.port),
            interface: interface(flow, accountant.namespace),
            interrupts_ns: sums.time,
            packets: sums.packets,
        })
        .collect();
    flows.sort_by_key(|flow| Reverse(flow.interrupts_ns));
    flows
}
