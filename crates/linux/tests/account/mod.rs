// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flood is charged to whom it is for, and reported to whom it is taken from.
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

/// An account is of the whole machine: what other tests send would be in it.
const NEEDS: &[Need] = &[Need::Namespaces, Need::RealTime, Need::Bpf, Need::Alone];

/// An account with the receivers that it charges.
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
        // What came while the programs were loaded is not of the test.
        books.turn();
        books
    }

    fn turn(&mut self) {
        self.follower.poll(Duration::ZERO).unwrap();
        let event = self.accountant.turn(self.follower.table(), None).unwrap();
        self.events.extend(event);
    }

    /// Turns four times a second for that long, and returns the account.
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

/// The account of a process; all 0 if it has none.
fn of(report: &AccountReport, pid: u32) -> Process {
    let mut processes = report.processes.iter();
    let process = processes.find(|process| process.pid == pid);
    process.cloned().unwrap_or_default()
}
