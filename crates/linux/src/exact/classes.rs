// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel threads of the classes. Each class has one thread on each of its CPUs, with the class's
//! urgency.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::{ExactError, Placement};
use crate::sched::{self, Cpus};
use crate::threads::{self, Thread, Work};
use crate::urgency::Urgency;

/// A kernel thread that runs the bottom half of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassThread {
    /// Number of the class.
    pub class: u8,
    /// CPU that the thread is bound to.
    pub cpu: u32,
    /// The kernel thread.
    pub thread: Thread,
}

/// A class, with its CPUMAP and its threads.
#[derive(Debug)]
pub(super) struct ThreadClass {
    pub urgency: Urgency,
    /// The CPUMAP of the class, and the number of that map.
    map: MapHandle,
    pub number: u32,
    /// CPUs on which the class has threads.
    cpus: BTreeSet<u32>,
    /// Threads as they were when their policies were last set.
    pub threads: Vec<ClassThread>,
    /// Length of each thread's queue, in packets.
    queue: u32,
    /// Whether all threads have the urgency of the class.
    is_scheduled: bool,
}

/// CPUs that are online.
pub(super) fn online() -> Result<Cpus, ExactError> {
    listed("online")
}

/// CPUs that are online or can come online.
pub(super) fn present() -> Result<Cpus, ExactError> {
    listed("present")
}

fn listed(list: &str) -> Result<Cpus, ExactError> {
    let path = format!("/sys/devices/system/cpu/{list}");
    let text = fs::read_to_string(&path).map_err(system(path.as_str()))?;
    let cpus = text.trim().parse();
    cpus.map_err(|error| system(path)(io::Error::other(error)))
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ExactError {
    let what = what.into();
    |cause| ExactError::System { what, cause }
}

/// Numbers of the CPUs on which a class needs threads.
pub(super) fn wanted(placement: &Placement, class: usize, online: &Cpus) -> BTreeSet<u32> {
    let is_online = |cpu: &u32| online.contains(*cpu as usize);
    match placement {
        Placement::Fixed(cpus) if class < cpus.len() => cpus
            .get(class)
            .copied()
            .filter(is_online)
            .into_iter()
            .collect(),
        // The cast is exact, since the number of a CPU is below 8192.
        Placement::Arrival | Placement::Fixed(_) => online.iter().map(|cpu| cpu as u32).collect(),
    }
}

impl ThreadClass {
    pub fn new(urgency: Urgency, map: MapHandle) -> Result<Self, ExactError> {
        let number = map.info()?.info.id;
        Ok(Self {
            urgency,
            map,
            number,
            cpus: BTreeSet::new(),
            threads: Vec::new(),
            queue: 0,
            is_scheduled: true,
        })
    }

    /// Starts threads, with queues of `queue` packets, on the CPUs where the class `class` needs
    /// them. Ends the threads on other CPUs.
    pub fn settle(
        &mut self,
        class: u8,
        wanted: &BTreeSet<u32>,
        queue: u32,
    ) -> Result<(), ExactError> {
        // The kernel sets the length of a queue only when it creates the thread.
        if self.queue != queue {
            self.end(&self.cpus.clone())?;
            self.queue = queue;
        }
        self.end(&self.cpus.difference(wanted).copied().collect())?;
        for cpu in wanted {
            if !self.cpus.contains(cpu) {
                // The structure bpf_cpumap_val: the size of the queue, and no second BPF program.
                let value = [queue.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
                self.map.update(&cpu.to_ne_bytes(), &value, MapFlags::ANY)?;
                self.cpus.insert(*cpu);
                self.is_scheduled = false;
            }
        }
        if self.is_scheduled {
            Ok(())
        } else {
            self.schedule(class)
        }
    }

    /// Ends the threads of the class on `cpus`. The packets in their queues are still delivered.
    fn end(&mut self, cpus: &BTreeSet<u32>) -> Result<(), ExactError> {
        for cpu in cpus {
            self.map.delete(&cpu.to_ne_bytes())?;
            self.cpus.remove(cpu);
        }
        Ok(())
    }

    /// Sets the policy of all threads of the class.
    pub fn schedule(&mut self, class: u8) -> Result<(), ExactError> {
        self.is_scheduled = false;
        self.threads = find(&[(class, self.number)])?;
        for cpu in &self.cpus {
            let name = Work::CpuMap {
                cpu: *cpu,
                map: self.number,
            };
            // A thread that has ended may still exist for a moment.
            let of_cpu = self.threads.iter().filter(|thread| thread.cpu == *cpu);
            let found = of_cpu.max_by_key(|thread| (thread.thread.started, thread.thread.tid));
            let found = found.ok_or_else(|| ExactError::NoThread(name.to_string()))?;
            sched::set(found.thread.tid, self.urgency.policy())
                .map_err(system(name.to_string()))?;
        }
        self.is_scheduled = true;
        Ok(())
    }
}

/// Finds the threads of classes. Each class is given with the number of its CPUMAP.
pub(super) fn find(classes: &[(u8, u32)]) -> Result<Vec<ClassThread>, ExactError> {
    let classes: BTreeMap<u32, u8> = classes.iter().map(|(class, map)| (*map, *class)).collect();
    let found = threads::which(
        |work| matches!(work, Work::CpuMap { map, .. } if classes.contains_key(map)),
    )
    .map_err(|error| system("/proc")(io::Error::other(error)))?;
    let mut threads: Vec<ClassThread> = found
        .into_iter()
        .filter_map(|found| match found.work {
            Work::CpuMap { cpu, map } => Some(ClassThread {
                class: *classes.get(&map)?,
                cpu,
                thread: found.thread,
            }),
            _ => None,
        })
        .collect();
    threads.sort();
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_only_where_cpus_work() {
        let online: Cpus = "0,2-3".parse().unwrap();
        let all = BTreeSet::from([0, 2, 3]);
        assert_eq!(wanted(&Placement::Arrival, 0, &online), all);
        let fixed = Placement::Fixed(vec![2, 1]);
        assert_eq!(wanted(&fixed, 0, &online), BTreeSet::from([2]));
        assert_eq!(wanted(&fixed, 1, &online), BTreeSet::new());
        assert_eq!(wanted(&fixed, 2, &online), all);
    }
}
