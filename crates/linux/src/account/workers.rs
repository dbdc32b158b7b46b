// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel threads that do the work of interrupts: what each has run is interrupt time, and the
//! kernel knows it to the ns.
use std::collections::BTreeMap;

use procfs::ProcResult;

use super::interval::{Ran, Workers};
use super::layout::since;
use super::sources;
use crate::threads::{self, Thread, Work};

/// One of them.
#[derive(Debug, Clone)]
struct Worker {
    thread: Thread,
    work: Work,
    /// What it had run when it was last asked.
    run: u64,
    /// What it has run since it was first asked.
    sum: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Crew {
    without_interrupts: bool,
    workers: BTreeMap<u32, Worker>,
}

impl Crew {
    /// Those that there are now. `without_interrupts`: whether the kernel's times are.
    pub fn find(without_interrupts: bool) -> ProcResult<Self> {
        let mut crew = Self {
            without_interrupts,
            workers: BTreeMap::new(),
        };
        for found in threads::all()? {
            let run = sources::run_time(found.thread.tid).unwrap_or(0);
            crew.add(found.thread, found.work, run);
        }
        Ok(crew)
    }

    fn add(&mut self, thread: Thread, work: Work, run: u64) {
        let Ok(tid) = u32::try_from(thread.tid) else {
            return;
        };
        if self.workers.get(&tid).map(|known| known.thread) != Some(thread) {
            let sum = 0;
            let worker = Worker {
                thread,
                work,
                run,
                sum,
            };
            self.workers.insert(tid, worker);
        }
    }

    /// Looks for those that nothing was seen of yet.
    pub fn look_again(&mut self) -> ProcResult<()> {
        for found in threads::all()? {
            self.join(found.thread, &found.work);
        }
        Ok(())
    }

    /// One that was not there when the account began, so that all that it has run is of this
    /// account.
    pub fn join(&mut self, thread: Thread, work: &Work) {
        self.add(thread, work.clone(), 0);
    }

    /// What each has run since it was last asked; those that are gone are left out from now on.
    pub fn run(&mut self) -> Workers {
        let mut ran = Workers::new();
        let without = self.without_interrupts;
        self.workers.retain(|tid, worker| {
            let Some(now) = sources::run_time(worker.thread.tid) else {
                return false;
            };
            let time = since(now, std::mem::replace(&mut worker.run, now));
            worker.sum += time;
            // The kernel books soft interrupts of ksoftirqd for it in any case.
            let without_soft = without && !matches!(worker.work, Work::SoftIrq { .. });
            let of = Ran {
                time,
                without_handlers: without,
                without_soft,
            };
            ran.insert(*tid, of);
            true
        });
        ran
    }

    /// Whether the kernel's times are without interrupts.
    pub fn is_without_interrupts(&self) -> bool {
        self.without_interrupts
    }

    /// By number: the name, and what it has run since it was first asked.
    pub fn sums(&self) -> impl Iterator<Item = (u32, String, u64)> + '_ {
        let workers = self.workers.iter();
        workers.map(|(tid, worker)| (*tid, worker.work.to_string(), worker.sum))
    }
}
