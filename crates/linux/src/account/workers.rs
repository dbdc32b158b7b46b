// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel threads that do the work of interrupts. All of their run time is interrupt time, and
//! the kernel knows it to the ns.
use std::collections::BTreeMap;

use procfs::ProcResult;

use super::interval::{RunTime, Workers};
use super::layout::since;
use super::sources;
use crate::threads::{self, Thread, Work};

/// A kernel thread that does the work of interrupts.
#[derive(Debug, Clone)]
struct Worker {
    thread: Thread,
    work: Work,
    /// Run time at the last query, in ns.
    run: u64,
    /// Run time since the first query, in ns.
    sum: u64,
}

/// All kernel threads that do the work of interrupts, by thread number.
#[derive(Debug)]
pub(super) struct WorkerTable {
    without_interrupts: bool,
    workers: BTreeMap<u32, Worker>,
}

impl WorkerTable {
    /// Finds the threads that exist now. `without_interrupts` says whether the kernel's run times
    /// exclude interrupts.
    pub fn find(without_interrupts: bool) -> ProcResult<Self> {
        let mut table = Self {
            without_interrupts,
            workers: BTreeMap::new(),
        };
        for found in threads::all()? {
            let run = sources::run_time(found.thread.tid).unwrap_or(0);
            table.add(found.thread, found.work, run);
        }
        Ok(table)
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

    /// Adds threads that were created since the last search.
    pub fn look_again(&mut self) -> ProcResult<()> {
        for found in threads::all()? {
            self.join(found.thread, &found.work);
        }
        Ok(())
    }

    /// Adds a thread that did not exist when the account began. All of its run time belongs to the
    /// account.
    pub fn join(&mut self, thread: Thread, work: &Work) {
        self.add(thread, work.clone(), 0);
    }

    /// Returns the run time of each thread since the last call. Threads that have ended are
    /// removed.
    pub fn run(&mut self) -> Workers {
        let mut ran = Workers::new();
        let without = self.without_interrupts;
        self.workers.retain(|tid, worker| {
            let Some(now) = sources::run_time(worker.thread.tid) else {
                return false;
            };
            let time = since(now, std::mem::replace(&mut worker.run, now));
            worker.sum += time;
            // The run time of ksoftirqd always includes the soft interrupts that it handles.
            let without_soft = without && !matches!(worker.work, Work::SoftIrq { .. });
            let run_time = RunTime {
                time,
                without_handlers: without,
                without_soft,
            };
            ran.insert(*tid, run_time);
            true
        });
        ran
    }

    /// Whether the kernel's run times exclude interrupts.
    pub fn is_without_interrupts(&self) -> bool {
        self.without_interrupts
    }

    /// Number, name, and run time since the first query (ns) of each thread.
    pub fn sums(&self) -> impl Iterator<Item = (u32, String, u64)> + '_ {
        let workers = self.workers.iter();
        workers.map(|(tid, worker)| (*tid, worker.work.to_string(), worker.sum))
    }
}
