// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status of a run as text of at most 100 columns.
use std::collections::BTreeMap;

use serde_json::Value;
use weir_report::terminal::wrapped;
use weir_report::{Align, Emphasis, Grid, count, percent, time};

use crate::account::AccountReport;
use crate::commands::end_of;
use crate::parts::exact::{ClassStatus, Status as Exact};
use crate::sched::Cpus;

/// Most processes that are shown. `--json` shows all.
const MOST: usize = 10;
/// Number of significant digits of times.
const DIGITS: u8 = 3;

/// Formats a block of text for each part in `status`. A part that the status lacks yields no block,
/// so the status of an older version can be read, too.
pub(super) fn blocks(status: &Value, coloured: bool) -> Vec<String> {
    let part_of = |part: &str| status.get(part).cloned().unwrap_or_default();
    let mut blocks = vec![settings(status)];
    if let Some(text) = predicted(&part_of("predicted")) {
        blocks.push(text);
    }
    if let Ok(exact) = serde_json::from_value(part_of("exact")) {
        blocks.push(self::exact(&exact, coloured));
    }
    let account = part_of("account");
    if let Some(overload) = account["overload"].as_str() {
        blocks.push(Emphasis::Bad.paint(&wrapped(overload, "", "  "), coloured));
    }
    if let Ok(report) = serde_json::from_value(account) {
        blocks.push(self::account(&report, coloured));
    }
    blocks
}

fn settings(status: &Value) -> String {
    let changes = count(status["changes"].as_u64().unwrap_or(0));
    match status["receivers"]["sockets"].as_u64() {
        Some(sockets) => format!(
            "settings changed: {changes}; sockets that are followed: {}",
            count(sockets)
        ),
        None => format!("settings changed: {changes}"),
    }
}

/// Shows which receivers the threads of interfaces follow.
fn predicted(status: &Value) -> Option<String> {
    let lines = status["interfaces"].as_array()?.iter().map(|interface| {
        let urgency = |key: &str| interface[key].as_u64().unwrap_or(0);
        let waiting = match interface["waiting"].as_u64() {
            Some(waiting) => format!("; threads that wait for packets: {}", count(waiting)),
            None => String::new(),
        };
        format!(
            "{}: urgency {} of at most {}{waiting}",
            interface["name"].as_str().unwrap_or("?"),
            urgency("urgency"),
            urgency("most"),
        )
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Shows the classes and their threads.
fn exact(status: &Exact, coloured: bool) -> String {
    let columns = [
        ("class of urgency", Align::Right),
        ("packets given", Align::Right),
        ("dropped", Align::Right),
        ("threads on CPUs", Align::Left),
        ("scheduled by", Align::Left),
    ];
    let mut grid = Grid::new(&columns, coloured);
    for class in &status.classes {
        let counts = [
            class.urgency.to_string(),
            count(class.given),
            count(class.dropped),
        ];
        // CPUs whose threads have the same policy share a line. The first line also has the counts.
        let alike = alike(class);
        let first = alike.first().cloned().unwrap_or_default();
        let lines = std::iter::once((counts, first));
        let others = alike.into_iter().skip(1);
        let none = || [const { String::new() }; 3];
        for (counts, (policy, cpus)) in lines.chain(others.map(|one| (none(), one))) {
            let cells = counts.into_iter().chain([cpus, policy]);
            grid.row(cells.map(|cell| (cell, Emphasis::Plain)));
        }
    }
    let mut text = grid.text();
    let left = status.left.iter().filter(|(_, packets)| **packets > 0);
    let left: Vec<String> = left
        .map(|(reason, packets)| format!("{} {reason}", count(*packets)))
        .collect();
    if !left.is_empty() {
        let left = format!("packets left to the kernel: {}", left.join(", "));
        text.push_str(&format!("\n{}", wrapped(&left, "", "  ")));
    }
    if status.without_room > 0 {
        let without = count(status.without_room as u64);
        text.push_str(&format!(
            "\nports for which the table has no room: {without}"
        ));
    }
    text
}

/// Policies of a class's threads, each with the CPUs on which threads have it.
fn alike(class: &ClassStatus) -> Vec<(String, String)> {
    let mut policies: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for thread in &class.threads {
        let cpus = policies.entry(thread.policy.to_string()).or_default();
        cpus.push(thread.cpu as usize);
    }
    let policies = policies.into_iter();
    policies
        .map(|(policy, cpus)| (policy, cpus.into_iter().collect::<Cpus>().to_string()))
        .collect()
}

/// Shows for whom interrupts were handled since the account began.
fn account(report: &AccountReport, coloured: bool) -> String {
    let seconds = |ns: u64| time(ns as f64 / 1e9, DIGITS);
    let share = report.measured.total_ns as f64 / report.elapsed_ns.max(1) as f64;
    let text = format!(
        "in {} interrupts had {} ({} of a processor): {} for processes, {} for nobody, {} for no packet that is known of; packets to sockets: {}, to none: {}",
        seconds(report.elapsed_ns),
        seconds(report.measured.total_ns),
        percent(share),
        seconds(report.received_ns),
        seconds(report.orphans_ns),
        seconds(report.unattributed_ns),
        count(report.packets),
        count(report.orphan_packets),
    );
    let mut text = wrapped(&text, "", "  ");
    if report.processes.is_empty() {
        return text;
    }
    let columns = [
        ("process", Align::Left),
        ("number", Align::Right),
        ("used", Align::Right),
        ("charged", Align::Right),
        ("taken", Align::Right),
        ("packets", Align::Right),
        ("cgroup", Align::Left),
    ];
    let mut grid = Grid::new(&columns, coloured);
    for process in report.processes.iter().take(MOST) {
        let cells = [
            process.command.clone(),
            process.pid.to_string(),
            seconds(process.used_ns),
            seconds(process.charged_ns),
            seconds(process.taken_ns),
            count(process.packets),
            end_of(&process.cgroup),
        ];
        grid.row(cells.map(|cell| (cell, Emphasis::Plain)));
    }
    text.push_str(&format!("\n\n{}", grid.text()));
    let left = report.processes.len().saturating_sub(MOST);
    if left > 0 {
        text.push_str(&format!("\nand {left} more, which --json shows"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::account::Process;
    use crate::exact::DemuxReason;
    use crate::parts::exact::ThreadStatus;
    use crate::sched::SchedPolicy;
    use crate::urgency::Urgency;

    #[test]
    fn cpus_on_which_a_class_is_alike_share_a_line() {
        let thread = |cpu, policy| ThreadStatus {
            tid: 100,
            cpu,
            policy,
        };
        let (right, wrong) = (SchedPolicy::Fifo(50), SchedPolicy::Other { nice: 0 });
        let status = Exact {
            interfaces: vec!["eth0".to_owned()],
            classes: vec![ClassStatus {
                urgency: Urgency::new(50).unwrap(),
                given: 1234,
                dropped: 5,
                threads: vec![thread(0, right), thread(1, right), thread(2, wrong)],
            }],
            left: BTreeMap::from([(DemuxReason::Arp, 7), (DemuxReason::Ptp, 0)]),
            sockets: 1,
            without_room: 0,
        };
        let text = exact(&status, false);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(
            lines.contains(&vec!["50", "1,234", "5", "0-1", "SCHED_FIFO", "50"]),
            "{text}"
        );
        assert!(
            lines.contains(&vec!["2", "SCHED_OTHER,", "nice", "0"]),
            "{text}"
        );
        assert!(
            text.ends_with("packets left to the kernel: 7 ARP"),
            "{text}"
        );
    }

    #[test]
    fn all_fits_a_hundred_columns() {
        let process = |pid: u32| Process {
            pid: 4_000_000 + pid,
            command: "a-process-of-15".to_owned(),
            cgroup: "/system.slice/a-service-with-a-long-name-of-its-own.service".to_owned(),
            used_ns: 123_456_789_012,
            charged_ns: 987_654_321,
            taken_ns: 123_456_789,
            packets: 1_234_567_890,
            ..Process::default()
        };
        let report = AccountReport {
            elapsed_ns: 1_000_000_000,
            processes: (0..12).map(process).collect(),
            ..AccountReport::default()
        };
        let mut account = json!(report);
        account["overload"] = json!("overload: ".to_owned() + &"many words ".repeat(30));
        let interface = json!({ "name": "eth0", "urgency": 50, "most": 98, "waiting": 3 });
        let status = json!({
            "changes": 1,
            "receivers": { "sockets": 10_000 },
            "predicted": { "interfaces": [interface] },
            "account": account,
        });
        let text = blocks(&status, false).join("\n\n");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(text.contains("eth0: urgency 50 of at most 98; threads that wait for packets: 3"));
        assert!(text.ends_with("and 2 more, which --json shows"), "{text}");
    }
}
