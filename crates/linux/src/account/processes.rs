// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes and kernel threads by their numbers, as /proc shows them.
use std::collections::BTreeMap;

use procfs::process::Process;

use crate::receivers::cgroup;
use crate::sched::Tid;
use crate::threads::{KERNEL_THREAD, Thread, Work};

/// What /proc says about a process or a kernel thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    /// The thread. `None` if it ended before it could be examined.
    pub thread: Option<Thread>,
    pub command: String,
    pub cgroup: String,
    /// Whether this is a kernel thread or the idle task.
    pub is_kernel: bool,
}

impl ProcessEntry {
    fn read(pid: u32) -> Self {
        let stat = Tid::try_from(pid)
            .ok()
            .filter(|pid| *pid > 0)
            .and_then(|pid| Process::new(pid).and_then(|process| process.stat()).ok());
        let Some(stat) = stat else {
            return Self {
                thread: None,
                command: "?".to_owned(),
                cgroup: String::new(),
                is_kernel: pid == 0,
            };
        };
        let is_kernel = stat.flags & KERNEL_THREAD != 0;
        Self {
            thread: Some(Thread {
                tid: stat.pid,
                started: stat.starttime,
            }),
            command: stat.comm,
            cgroup: if is_kernel {
                String::new()
            } else {
                cgroup::read(pid)
            },
            is_kernel,
        }
    }

    /// The interrupt work that this kernel thread does. `None` for other kernel threads and for
    /// processes.
    pub fn work(&self) -> Option<Work> {
        Work::parse(&self.command).filter(|_| self.is_kernel)
    }
}

/// All processes and threads that were looked up, by number.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    known: BTreeMap<u32, ProcessEntry>,
}

impl ProcessTable {
    /// Looks up a process or thread. The entry is as /proc was at the first lookup.
    pub fn entry(&mut self, pid: u32) -> &ProcessEntry {
        self.host(pid, false)
    }

    /// Looks up the host of an interrupt. The caller knows whether it is a kernel thread, even if
    /// it has ended.
    pub fn host(&mut self, pid: u32, is_kernel: bool) -> &ProcessEntry {
        self.known.entry(pid).or_insert_with(|| {
            let entry = ProcessEntry::read(pid);
            ProcessEntry {
                is_kernel: entry.is_kernel || is_kernel,
                ..entry
            }
        })
    }

    /// Returns the entry of a process or thread that was looked up before.
    pub fn known(&self, pid: u32) -> Option<&ProcessEntry> {
        self.known.get(&pid)
    }

    /// Removes the processes and threads that have ended, and returns their numbers.
    pub fn forget_ended(&mut self) -> Vec<u32> {
        let is_there = |entry: &ProcessEntry| {
            let exists = entry.thread.map(Thread::exists);
            // If /proc cannot be read, the entry stays for now.
            exists.is_some_and(|exists| exists.unwrap_or(true))
        };
        let ended: Vec<u32> = self
            .known
            .iter()
            .filter(|(pid, entry)| **pid != 0 && !is_there(entry))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in &ended {
            self.known.remove(pid);
        }
        ended
    }

    /// Reads control groups and names again, since they can change.
    pub fn look_again(&mut self) {
        for (pid, entry) in &mut self.known {
            let now = ProcessEntry::read(*pid);
            if now.thread == entry.thread {
                *entry = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let mut processes = ProcessTable::default();
        assert!(!processes.entry(pid).is_kernel && processes.entry(pid).cgroup.starts_with('/'));
        assert!(processes.entry(0).is_kernel);
        assert!(processes.forget_ended().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(processes.forget_ended(), [pid]);
        assert_eq!(processes.known(pid), None);
        // If the host ended before it could be examined, it is a kernel thread if the caller says
        // so.
        assert!(!processes.host(pid, false).is_kernel);
        assert_eq!(processes.forget_ended(), [pid]);
        assert!(processes.host(pid, true).is_kernel);
    }
}
