// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences of two reports of an account, as shares of one processor. `weir linux top` shows
//! them.
use std::collections::HashMap;

use serde::Serialize;
use weir_report::{Align, Emphasis, Grid, count, percent};

use super::super::end_of;
use crate::account::{AccountReport, Process};

/// Interrupt time in an interval. Shares are of one processor, from 0 on; with several processors
/// they may exceed 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct View {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Share of one processor that interrupts took.
    pub interrupts: f64,
    /// The part of `interrupts` for packets that no socket received.
    pub orphans: f64,
    /// The part of `interrupts` that belongs to no known packet.
    pub unattributed: f64,
    /// Packets per second that sockets received.
    pub packets_hz: f64,
    /// Packets per second that no socket received.
    pub orphans_hz: f64,
    /// Processes. Those that cost or lost most are first.
    pub processes: Vec<Row>,
}

/// A process. Its times are shares of one processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Name of the program.
    pub command: String,
    /// Number of the process.
    pub pid: u32,
    /// Path of the control group.
    pub cgroup: String,
    /// Share that the kernel has booked for the process.
    pub used: f64,
    /// Interrupt time that was spent for the process while others ran.
    pub charged: f64,
    /// Interrupt time that was spent for others in the time of the process.
    pub taken: f64,
    /// Packets per second that the process's sockets received.
    pub packets_hz: f64,
}

impl View {
    /// Computes the difference of the reports `before` and `now`, and sets `before` to `now`.
    /// `None` if both are the same, since a run writes its account at times of its own.
    pub fn next(before: &mut AccountReport, now: &AccountReport) -> Option<Self> {
        if now.elapsed_ns == before.elapsed_ns {
            return None;
        }
        let view = Self::between(before, now);
        before.clone_from(now);
        Some(view)
    }

    /// Computes the difference of two reports of the same account. If they belong to different
    /// accounts, the result is the whole of `now`.
    #[must_use]
    fn between(before: &AccountReport, now: &AccountReport) -> Self {
        let nothing = AccountReport::default();
        let is_same = before.elapsed_ns < now.elapsed_ns;
        let before = if is_same { before } else { &nothing };
        let elapsed = (now.elapsed_ns - before.elapsed_ns).max(1) as f64;
        let share = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed;
        let hertz = |now: u64, before: u64| share(now, before) * 1e9;
        let known: HashMap<_, _> = before
            .processes
            .iter()
            .map(|process| ((process.pid, process.started), process))
            .collect();
        let unknown = Process::default();
        let rows = now.processes.iter().map(|process| {
            let before = known.get(&(process.pid, process.started));
            // For a process that `before` does not have, it is not known how much of its time
            // belongs to this interval.
            let used = before.map_or(0.0, |before| share(process.used_ns, before.used_ns));
            let before = before.copied().unwrap_or(&unknown);
            Row {
                command: process.command.clone(),
                pid: process.pid,
                cgroup: process.cgroup.clone(),
                used,
                charged: share(process.charged_ns, before.charged_ns),
                taken: share(process.taken_ns, before.taken_ns),
                packets_hz: hertz(process.packets, before.packets),
            }
        });
        let mut processes: Vec<Row> = rows
            .filter(|row| row.charged + row.taken >= LEAST || row.packets_hz >= 1.0)
            .collect();
        processes.sort_by(|a, b| (b.charged + b.taken).total_cmp(&(a.charged + a.taken)));
        Self {
            seconds: elapsed / 1e9,
            interrupts: share(now.measured.total_ns, before.measured.total_ns),
            orphans: share(now.orphans_ns, before.orphans_ns),
            unattributed: share(now.unattributed_ns, before.unattributed_ns),
            packets_hz: hertz(now.packets, before.packets),
            orphans_hz: hertz(now.orphan_packets, before.orphan_packets),
            processes,
        }
    }

    /// The two lines above the table of processes.
    #[must_use]
    pub fn headings(&self) -> [String; 2] {
        [
            format!(
                "interrupts: {} of a processor; {} for nobody, {} for no packet that is known of",
                percent(self.interrupts),
                percent(self.orphans),
                percent(self.unattributed)
            ),
            format!(
                "packets/s: {} to sockets, {} to none",
                count(self.packets_hz as u64),
                count(self.orphans_hz as u64)
            ),
        ]
    }

    /// Formats the whole text, with at most 100 columns and at most `most` processes.
    #[must_use]
    pub fn text(&self, most: usize, coloured: bool) -> String {
        let mut grid = Grid::new(&COLUMNS, coloured);
        for row in self.processes.iter().take(most) {
            grid.row(row.cells().map(|cell| (cell, Emphasis::Plain)));
        }
        let [first, second] = self.headings();
        let left = self.processes.len().saturating_sub(most);
        let mut text = format!("{first}\n{second}\n\n{}", grid.text());
        if left > 0 {
            text.push_str(&format!("\nand {left} more"));
        }
        text
    }
}

/// Columns of the table of processes.
pub const COLUMNS: [(&str, Align); 7] = [
    ("process", Align::Left),
    ("number", Align::Right),
    ("used", Align::Right),
    ("charged", Align::Right),
    ("taken", Align::Right),
    ("packets/s", Align::Right),
    ("cgroup", Align::Left),
];

/// Smallest share of a processor that is not shown as 0.
const LEAST: f64 = 0.0005;

impl Row {
    /// Cells of the row, in the order of [`COLUMNS`].
    #[must_use]
    pub fn cells(&self) -> [String; 7] {
        [
            self.command.clone(),
            self.pid.to_string(),
            percent(self.used),
            percent(self.charged),
            percent(self.taken),
            count(self.packets_hz as u64),
            end_of(&self.cgroup),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::InterruptTime;

    fn process(pid: u32, used: u64, charged: u64, taken: u64, packets: u64) -> Process {
        Process {
            pid,
            command: format!("p{pid}"),
            cgroup: "/system.slice/a-service-with-a-long-name.service".to_owned(),
            used_ns: used,
            charged_ns: charged,
            taken_ns: taken,
            packets,
            ..Process::default()
        }
    }

    fn report(elapsed_ns: u64, total_ns: u64, processes: Vec<Process>) -> AccountReport {
        AccountReport {
            elapsed_ns,
            measured: InterruptTime {
                total_ns,
                ..InterruptTime::default()
            },
            processes,
            ..AccountReport::default()
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn rates_are_of_what_came_in_between() {
        let before = report(
            SECOND,
            100,
            vec![process(1, 50, 100, 0, 10), process(2, 0, 5, 5, 5)],
        );
        let now = report(
            3 * SECOND,
            SECOND + 100,
            vec![
                process(1, 50 + SECOND, 100 + SECOND / 2, 0, 2010),
                process(2, SECOND, 5, 5, 5),
                process(3, 9 * SECOND, 0, SECOND, 0),
            ],
        );
        let view = View::between(&before, &now);
        assert_eq!((view.seconds, view.interrupts), (2.0, 0.5));
        let shown: Vec<_> = view
            .processes
            .iter()
            .map(|row| (row.pid, row.used, row.charged, row.taken, row.packets_hz))
            .collect();
        // Processes without any share are left out.
        assert_eq!(
            shown,
            [(3, 0.0, 0.0, 0.5, 0.0), (1, 0.5, 0.25, 0.0, 1000.0)]
        );
    }

    #[test]
    fn a_report_that_is_read_twice_is_shown_once() {
        let first = report(SECOND, 100, Vec::new());
        let second = report(3 * SECOND, 100 + SECOND, Vec::new());
        let mut before = first.clone();
        assert_eq!(View::next(&mut before, &first), None);
        let view = View::next(&mut before, &second).unwrap();
        assert_eq!((view.seconds, view.interrupts), (2.0, 0.5));
        assert_eq!(View::next(&mut before, &second), None);
    }

    #[test]
    fn an_account_that_began_anew_is_shown_as_it_is() {
        let before = report(5 * SECOND, 4 * SECOND, Vec::new());
        let now = report(SECOND, SECOND / 4, vec![process(1, 7, SECOND / 4, 0, 1)]);
        assert_eq!(View::between(&before, &now).interrupts, 0.25);
    }

    #[test]
    fn the_text_has_a_hundred_columns_and_says_what_it_leaves_out() {
        let processes = (1..30).map(|pid| process(pid, 0, u64::from(pid) * SECOND / 100, 1, 1));
        let now = report(SECOND, SECOND, processes.collect());
        let text = View::between(&AccountReport::default(), &now).text(10, false);
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(text.ends_with("and 19 more"), "{text}");
        assert!(text.contains("p29") && !text.contains("p19 "), "{text}");
    }
}
