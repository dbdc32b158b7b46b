// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the table of receivers up to date. It records events, looks up what the table asks for,
//! and scans within a budget of time.
use std::mem;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::programs::{Error, EventScope, FollowPrograms};
use super::table::Questions;
use super::{ReceiverTable, RuleSet, TableChange, cgroup};

/// Most processes that are scanned one by one. If there are more, one scan of all processes takes
/// their place.
const MOST_SCANS: usize = 32;
/// Most sockets whose unknown owners are looked for one by one.
const MOST_OWNERS: usize = 256;

/// How closely the system is followed, and at what cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Time between two scans of all open files. These scans find what no event reports. The time
    /// is longer if the scans would otherwise cost more than `share`.
    pub period: Duration,
    /// Inverse of the largest share of time that scans may take: 50 means 2 %.
    pub share: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(2),
            share: 50,
        }
    }
}

/// Follows the receivers of all processes.
pub struct Follower {
    programs: FollowPrograms,
    table: ReceiverTable,
    questions: Questions,
    options: Options,
    lost: u64,
    /// Time of the next scan of all processes, and the time before which no scan may begin.
    due: Instant,
    free: Instant,
}

impl Follower {
    /// Starts to follow the receivers. The first [`poll`](Self::poll) returns everything that
    /// already exists as changes.
    ///
    /// # Errors
    /// Fails if the kernel refuses the programs (they need CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and
    /// BTF), or if cgroup v2 is not mounted and cannot be mounted (CAP_SYS_ADMIN). It also fails
    /// outside of the first process namespace.
    pub fn start(rules: RuleSet, options: Options) -> Result<Self, Error> {
        // Events are recorded from here on, so they report every change that the scan below misses.
        let programs = FollowPrograms::load(EventScope::Events)?;
        let now = Instant::now();
        let mut follower = Self {
            lost: programs.lost()?,
            programs,
            table: ReceiverTable::new(rules),
            questions: Questions::default(),
            options,
            due: now,
            free: now,
        };
        follower.scan_all()?;
        Ok(follower)
    }

    /// Returns the changes since the last call. If there are none, it waits for one, for at most
    /// `timeout`.
    ///
    /// # Errors
    /// Fails if the kernel reports no events any longer.
    pub fn poll(&mut self, timeout: Duration) -> Result<Vec<TableChange>, Error> {
        let end = later(Instant::now(), timeout);
        loop {
            let now = Instant::now();
            let wait = end.min(self.next_scan()).saturating_duration_since(now);
            for record in self.programs.events(wait)? {
                self.table.apply(record, &mut self.questions);
            }
            let lost = self.programs.lost()?;
            if lost != self.lost {
                self.lost = lost;
                self.due = Instant::now();
            }
            self.scan_what_is_due()?;
            answer_cgroups(&mut self.table, &mut self.questions);
            let changes = self.table.changes();
            if !changes.is_empty() || Instant::now() >= end {
                return Ok(changes);
            }
        }
    }

    /// The table of receivers as of the last [`poll`](Self::poll).
    #[must_use]
    pub fn table(&self) -> &ReceiverTable {
        &self.table
    }

    /// Descriptor that is readable when [`poll`](Self::poll) has work before [`due`](Self::due).
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.programs.descriptor()
    }

    /// Time of the next scan, at which [`poll`](Self::poll) has work even without an event.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.next_scan()
    }

    /// Status of the follower, as JSON.
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        serde_json::json!({
            "sockets": self.table.sockets(),
            "lost_events": self.lost,
        })
    }

    /// Number of events that the kernel has lost so far. Each loss has led to a scan.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn next_scan(&self) -> Instant {
        let is_wanted = !self.questions.scan.is_empty() || !self.questions.owners.is_empty();
        let due = if is_wanted { self.free } else { self.due };
        due.max(self.free)
    }

    fn scan_what_is_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.next_scan() {
            return Ok(());
        }
        let is_much =
            self.questions.scan.len() > MOST_SCANS || self.questions.owners.len() > MOST_OWNERS;
        if now >= self.due || is_much {
            return self.scan_all();
        }
        let owners = mem::take(&mut self.questions.owners);
        let mut wanted = mem::take(&mut self.questions.scan);
        wanted.extend(owners.values());
        for pid in wanted {
            let records = self.programs.scan(Some(pid))?;
            self.table
                .reconcile(Some(pid), records, &mut self.questions);
        }
        self.spend(now);
        // For a connection, the event names whichever process was running when the packet was sent.
        // So it does not tell the owner.
        if owners.keys().any(|cookie| !self.table.has_socket(*cookie)) {
            self.due = self.due.min(self.free);
        }
        Ok(())
    }

    fn scan_all(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        self.questions.scan.clear();
        self.questions.owners.clear();
        let records = self.programs.scan(None)?;
        self.table.reconcile(None, records, &mut self.questions);
        self.spend(begin);
        self.due = self.free.max(later(begin, self.options.period));
        Ok(())
    }

    /// Charges the time since `begin` to the budget of scans.
    fn spend(&mut self, begin: Instant) {
        let now = Instant::now();
        self.free = later(now, (now - begin).saturating_mul(self.options.share));
    }
}

/// Adds `time` to `now`. A time longer than a day counts as a day, so that the addition does not
/// overflow.
fn later(now: Instant, time: Duration) -> Instant {
    now + time.min(Duration::from_secs(86_400))
}

/// Reads the cgroups that the table has asked for.
pub(super) fn answer_cgroups(table: &mut ReceiverTable, questions: &mut Questions) {
    for pid in mem::take(&mut questions.cgroups) {
        table.set_cgroup(pid, &cgroup::read(pid));
    }
}
