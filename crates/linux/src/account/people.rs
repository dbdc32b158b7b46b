// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes and kernel threads by their numbers, as /proc shows them.
use std::collections::BTreeMap;

use procfs::process::Process;

use crate::receivers::cgroup;
use crate::sched::Tid;
use crate::threads::{KERNEL_THREAD, Thread, Work};

/// A process or a kernel thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    /// The thread; none: it ended before it could be examined.
    pub thread: Option<Thread>,
    pub command: String,
    pub cgroup: String,
    /// Whether it is a kernel thread, or the idle task.
    pub is_kernel: bool,
}

impl Person {
    fn of(pid: u32) -> Self {
        let there = Tid::try_from(pid)
            .ok()
            .filter(|pid| *pid > 0)
            .and_then(|pid| Process::new(pid).and_then(|process| process.stat()).ok());
        let Some(stat) = there else {
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
                cgroup::of(pid)
            },
            is_kernel,
        }
    }

    /// The work for interrupts that it does, if it is such a kernel thread.
    pub fn work(&self) -> Option<Work> {
        Work::of(&self.command).filter(|_| self.is_kernel)
    }
}

/// All processes and threads that were asked for.
#[derive(Debug, Default)]
pub(super) struct People {
    known: BTreeMap<u32, Person>,
}

impl People {
    /// The process or thread with this number, as it was when it was first asked for.
    pub fn of(&mut self, pid: u32) -> &Person {
        self.host(pid, false)
    }

    /// The same for the host of interrupts, of which is known whether it is a kernel thread, even
    /// if it has ended.
    pub fn host(&mut self, pid: u32, is_kernel: bool) -> &Person {
        self.known.entry(pid).or_insert_with(|| {
            let person = Person::of(pid);
            Person {
                is_kernel: person.is_kernel || is_kernel,
                ..person
            }
        })
    }

    /// The same for one that was asked for before.
    pub fn known(&self, pid: u32) -> Option<&Person> {
        self.known.get(&pid)
    }

    /// Removes those that have ended, and returns their numbers.
    pub fn forget_ended(&mut self) -> Vec<u32> {
        let is_there = |person: &Person| {
            let exists = person.thread.map(Thread::exists);
            // If /proc gives no answer, it stays for now.
            exists.is_some_and(|exists| exists.unwrap_or(true))
        };
        let ended: Vec<u32> = self
            .known
            .iter()
            .filter(|(pid, person)| **pid != 0 && !is_there(person))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in &ended {
            self.known.remove(pid);
        }
        ended
    }

    /// Reads control groups and names again.
    pub fn look_again(&mut self) {
        for (pid, person) in &mut self.known {
            let now = Person::of(*pid);
            if now.thread == person.thread {
                *person = now;
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
        let mut people = People::default();
        assert!(!people.of(pid).is_kernel && people.of(pid).cgroup.starts_with('/'));
        assert!(people.of(0).is_kernel);
        assert!(people.forget_ended().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(people.forget_ended(), [pid]);
        assert_eq!(people.known(pid), None);
        // Nothing is taken from a kernel thread, however short it lived.
        assert!(!people.host(pid, false).is_kernel);
        assert_eq!(people.forget_ended(), [pid]);
        assert!(people.host(pid, true).is_kernel);
    }
}
