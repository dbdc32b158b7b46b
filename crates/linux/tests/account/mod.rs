// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a flood is charged to its receiver, and reported as taken from the process that was
//! interrupted.
use crate::actor;
use crate::ground::{self, Need};
use crate::machine;

mod charge;
mod commands;
mod cost;
mod flood;
mod metrics;
mod overloads;

use std::time::{Duration, Instant};

use weir_linux::account::{AccountReport, Accountant, Event, Options, Process};
use weir_linux::receivers::{self, Follower, RuleSet};

/// The account covers the whole machine, so it would include the packets of other tests.
const NEEDS: &[Need] = &[Need::Namespaces, Need::RealTime, Need::Bpf, Need::Alone];

/// An account, with the receivers to which it charges time.
struct Books {
    follower: Follower,
    accountant: Accountant,
    events: Vec<Event>,
}

impl Books {
    fn open(options: Options) -> Self {
        let mut books = Self {
            follower: Follower::start(RuleSet::default(), receivers::Options::default()).unwrap(),
            accountant: Accountant::start(options).unwrap(),
            events: Vec::new(),
        };
        // Packets that arrived while the programs were loaded do not belong to the test.
        books.turn();
        books
    }

    fn turn(&mut self) {
        self.follower.poll(Duration::ZERO).unwrap();
        let event = self.accountant.turn(self.follower.table(), None).unwrap();
        self.events.extend(event);
    }

    /// Turns four times a second for the time `time`, and returns the account.
    fn keep(&mut self, time: Duration) -> AccountReport {
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(250));
            self.turn();
        }
        let report = self.accountant.report();
        assert!(report.adds_up(), "{report:#?}");
        report
    }
}

/// The account of a process. All values are 0 if the process has none.
fn process(report: &AccountReport, pid: u32) -> Process {
    let mut processes = report.processes.iter();
    let process = processes.find(|process| process.pid == pid);
    process.cloned().unwrap_or_default()
}
