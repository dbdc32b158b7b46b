// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the table as the system is: books events, answers what the table asks, and scans within a
//! budget.
use std::mem;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::programs::{Error, EventScope, FollowPrograms};
use super::table::Questions;
use super::{ReceiverTable, RuleSet, TableChange, cgroup};
use crate::sched;
use crate::urgency::Urgency;

/// More processes than this are looked at by one scan of all.
const MOST_SCANS: usize = 32;
/// The same for sockets of which nobody knows who has them.
const MOST_OWNERS: usize = 256;

/// How closely the system is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// All open files are looked at this often: what no event tells is known so much later at the
    /// latest. Longer if that would cost more than `share`.
    pub period: Duration,
    /// Scans take at most one part in this many of the time: 50 is 2 %.
    pub share: u32,
    /// Whether a policy that is set is seen at once, for which every system call of every process
    /// pays (docs/linux-receivers.md); otherwise only at the next scan.
    pub priorities_at_once: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(2),
            share: 50,
            priorities_at_once: false,
        }
    }
}

/// Follows who receives what.
pub struct Follower {
    programs: FollowPrograms,
    table: ReceiverTable,
    questions: Questions,
    options: Options,
    lost: u64,
    /// When the next scan of everything is due, and before when no scan may begin.
    due: Instant,
    free: Instant,
}

impl Follower {
    /// Begins to follow, with all that is there already. The first [`poll`](Self::poll) tells that
    /// as changes.
    ///
    /// # Errors
    /// When the kernel does not take the programs (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN are
    /// needed, and BTF), when cgroup v2 is not mounted and cannot be (CAP_SYS_ADMIN), or outside of
    /// the first process namespace.
    pub fn start(rules: RuleSet, options: Options) -> Result<Self, Error> {
        // Events are told from here on; so what the scan below does not see any longer, or not yet,
        // one of them tells.
        let programs = FollowPrograms::load(if options.priorities_at_once {
            EventScope::All
        } else {
            EventScope::Events
        })?;
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

    /// What changed since the last call; waits for a change for at most `timeout`.
    ///
    /// # Errors
    /// When the kernel does not tell any longer.
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
            self.answer();
            let changes = self.table.changes();
            if !changes.is_empty() || Instant::now() >= end {
                return Ok(changes);
            }
        }
    }

    /// The table as of the last [`poll`](Self::poll).
    #[must_use]
    pub fn table(&self) -> &ReceiverTable {
        &self.table
    }

    /// Readable when [`poll`](Self::poll) has something to do before [`due`](Self::due).
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.programs.descriptor()
    }

    /// When [`poll`](Self::poll) has something to do whatever happens: the next scan.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.next_scan()
    }

    /// How it stands, for people and programs.
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        serde_json::json!({
            "sockets": self.table.sockets(),
            "lost_events": self.lost,
        })
    }

    /// How many events the kernel had no room for until now; each led to a scan.
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
        // A packet of a connection may be sent while any process runs.
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

    /// Books the time of a scan.
    fn spend(&mut self, begin: Instant) {
        let now = Instant::now();
        self.free = later(now, (now - begin).saturating_mul(self.options.share));
    }

    fn answer(&mut self) {
        answer_cgroups(&mut self.table, &mut self.questions);
        let mut threads = mem::take(&mut self.questions.priorities);
        if mem::take(&mut self.questions.all_priorities) {
            threads.extend(self.table.all_threads());
        }
        for tid in threads {
            // A thread that is gone tells so itself.
            if let Some(policy) = tid
                .try_into()
                .ok()
                .and_then(|tid: sched::Tid| sched::get(tid).ok())
            {
                self.table.set_urgency(tid, Urgency::of(policy));
            }
        }
    }
}

/// A time from `now`: a day for all that is longer, so that no clock overflows.
fn later(now: Instant, time: Duration) -> Instant {
    now + time.min(Duration::from_secs(86_400))
}

/// Reads the cgroups that the table asks for.
pub(super) fn answer_cgroups(table: &mut ReceiverTable, questions: &mut Questions) {
    for pid in mem::take(&mut questions.cgroups) {
        table.set_cgroup(pid, &cgroup::of(pid));
    }
}
