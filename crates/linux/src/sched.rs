// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling policies of threads, and the CPUs on which they may run.
use std::fmt;
use std::io;
use std::mem;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ranges::ranges;

/// Number of a thread.
pub type Tid = i32;

/// SCHED_EXT of <linux/sched.h>, which the crate libc does not define.
const SCHED_EXT: u32 = 7;

/// Scheduling policy of a thread.
///
/// Some attributes are not included: a thread's slice (Linux 6.12), its utilisation clamps, and the
/// other flags of SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedPolicy {
    /// SCHED_OTHER with its nice value, from -20 (most favourable) to 19.
    Other {
        /// The nice value.
        nice: i8,
    },
    /// SCHED_BATCH with its nice value, from -20 (most favourable) to 19.
    Batch {
        /// The nice value.
        nice: i8,
    },
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with its priority, from 1 to 99 (highest).
    Fifo(u8),
    /// SCHED_RR with its priority, from 1 to 99 (highest).
    RoundRobin(u8),
    /// SCHED_DEADLINE. The thread gets `runtime` in each `period`, before `deadline`. The kernel
    /// requires 1,024 ns <= runtime <= deadline <= period.
    Deadline {
        /// Time that the thread may run in each period.
        runtime: Duration,
        /// Time from the start of the period by which the thread gets its run time.
        deadline: Duration,
        /// Time from one replenishment of the run time to the next.
        period: Duration,
    },
    /// SCHED_EXT (Linux 6.12) with its nice value. A BPF program schedules the thread.
    Extensible {
        /// The nice value.
        nice: i8,
    },
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { nice } => write!(formatter, "SCHED_OTHER, nice {nice}"),
            Self::Batch { nice } => write!(formatter, "SCHED_BATCH, nice {nice}"),
            Self::Idle => formatter.write_str("SCHED_IDLE"),
            Self::Fifo(priority) => write!(formatter, "SCHED_FIFO {priority}"),
            Self::RoundRobin(priority) => write!(formatter, "SCHED_RR {priority}"),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => write!(
                formatter,
                "SCHED_DEADLINE, {runtime:?} of every {period:?} within {deadline:?}"
            ),
            Self::Extensible { nice } => write!(formatter, "SCHED_EXT, nice {nice}"),
        }
    }
}

fn errno(returned: libc::c_long) -> io::Result<()> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn attributes(tid: Tid) -> io::Result<libc::sched_attr> {
    // SAFETY: all members of sched_attr are integers, for which zero is a valid value.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = libc::c_uint::try_from(mem::size_of_val(&attributes)).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `size` bytes to `attributes`.
    errno(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, 0) })?;
    Ok(attributes)
}

fn nice_of(attributes: &libc::sched_attr) -> i8 {
    // The kernel returns a value between -20 and 19.
    attributes.sched_nice as i8
}

/// Reads the policy of thread `tid` (0: the calling thread).
///
/// # Errors
/// Fails with ESRCH when there is no such thread, and with ENOTSUP for a policy that
/// [`SchedPolicy`] does not have.
pub fn get(tid: Tid) -> io::Result<SchedPolicy> {
    let attributes = attributes(tid)?;
    let nice = nice_of(&attributes);
    let priority = attributes.sched_priority as u8;
    Ok(match attributes.sched_policy as libc::c_int {
        libc::SCHED_OTHER => SchedPolicy::Other { nice },
        libc::SCHED_BATCH => SchedPolicy::Batch { nice },
        libc::SCHED_IDLE => SchedPolicy::Idle,
        libc::SCHED_FIFO => SchedPolicy::Fifo(priority),
        libc::SCHED_RR => SchedPolicy::RoundRobin(priority),
        libc::SCHED_DEADLINE => SchedPolicy::Deadline {
            runtime: Duration::from_nanos(attributes.sched_runtime),
            deadline: Duration::from_nanos(attributes.sched_deadline),
            period: Duration::from_nanos(attributes.sched_period),
        },
        _ if attributes.sched_policy == SCHED_EXT => SchedPolicy::Extensible { nice },
        _ => return Err(io::Error::from_raw_os_error(libc::ENOTSUP)),
    })
}

/// Sets the policy of thread `tid` (0: the calling thread). The flag SCHED_FLAG_RESET_ON_FORK, with
/// which children start as ordinary processes, stays as it is.
///
/// # Errors
/// Fails with ESRCH when there is no such thread, and with EPERM without CAP_SYS_NICE.
/// SCHED_DEADLINE also fails with EPERM when the thread may not run on every CPU of its domain, and
/// with EBUSY when the CPUs have no room for its share. EINVAL means that a number is out of range.
pub fn set(tid: Tid, policy: SchedPolicy) -> io::Result<()> {
    let now = attributes(tid)?;
    if now.sched_policy == libc::SCHED_DEADLINE as u32
        && !matches!(policy, SchedPolicy::Deadline { .. })
    {
        // If a sleeping thread leaves SCHED_DEADLINE, the kernel (6.18) never frees its share.
        // After several such changes there would be no room for another share. So the thread first
        // gets the least share. The kernel rounds it to none, so there is always room for it.
        set_from(now, tid, LEAST_SHARE)?;
    }
    set_from(now, tid, policy)
}

/// A share of a CPU that the kernel rounds to none: the shortest run time in the longest period of
/// SCHED_DEADLINE.
const LEAST_SHARE: SchedPolicy = SchedPolicy::Deadline {
    runtime: Duration::from_nanos(1024),
    deadline: Duration::from_secs(4),
    period: Duration::from_secs(4),
};

/// Sets a policy for a thread with these attributes.
fn set_from(mut attributes: libc::sched_attr, tid: Tid, policy: SchedPolicy) -> io::Result<()> {
    attributes.size = u32::try_from(mem::size_of_val(&attributes)).map_err(io::Error::other)?;
    attributes.sched_flags &= libc::SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_nice = 0;
    attributes.sched_priority = 0;
    attributes.sched_runtime = 0;
    attributes.sched_deadline = 0;
    attributes.sched_period = 0;
    let number = match policy {
        SchedPolicy::Other { nice }
        | SchedPolicy::Batch { nice }
        | SchedPolicy::Extensible { nice } => {
            attributes.sched_nice = i32::from(nice);
            match policy {
                SchedPolicy::Other { .. } => libc::SCHED_OTHER as u32,
                SchedPolicy::Batch { .. } => libc::SCHED_BATCH as u32,
                _ => SCHED_EXT,
            }
        }
        SchedPolicy::Idle => libc::SCHED_IDLE as u32,
        SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
            attributes.sched_priority = u32::from(priority);
            match policy {
                SchedPolicy::Fifo(_) => libc::SCHED_FIFO as u32,
                _ => libc::SCHED_RR as u32,
            }
        }
        SchedPolicy::Deadline {
            runtime,
            deadline,
            period,
        } => {
            let nanoseconds = |time: Duration| {
                u64::try_from(time.as_nanos())
                    .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
            };
            attributes.sched_runtime = nanoseconds(runtime)?;
            attributes.sched_deadline = nanoseconds(deadline)?;
            attributes.sched_period = nanoseconds(period)?;
            libc::SCHED_DEADLINE as u32
        }
    };
    attributes.sched_policy = number;
    // SAFETY: the kernel reads `size` bytes of `attributes`.
    errno(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) })
}

/// A set of CPUs. As text and as JSON it is a list of ranges in the notation of Linux: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(Vec<bool>);

/// One more than the highest number of a CPU that any Linux kernel can have.
const MOST_CPUS: usize = 8192;

/// The text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no list of CPUs such as `0-3,8`, each below {MOST_CPUS}")]
pub struct NoCpus(String);

impl Cpus {
    /// Adds `cpu`. A number above 8191 is ignored, since no machine has such a CPU.
    fn insert(&mut self, cpu: usize) {
        if cpu < MOST_CPUS {
            if self.0.len() <= cpu {
                self.0.resize(cpu + 1, false);
            }
            self.0[cpu] = true;
        }
    }

    /// Whether the set contains `cpu`.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.get(cpu).copied().unwrap_or(false)
    }

    /// Iterates over the CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).filter(|cpu| self.0[*cpu])
    }

    /// Formats the set as a hexadecimal mask, as in /proc and /sys, with a comma after every 32
    /// CPUs. The mask of CPUs 0 and 1 is `3`.
    #[must_use]
    pub fn mask(&self) -> String {
        let words: Vec<u32> = self
            .0
            .chunks(32)
            .map(|chunk| {
                chunk
                    .iter()
                    .enumerate()
                    .fold(0, |word, (bit, present)| word | u32::from(*present) << bit)
            })
            .collect();
        let Some((most, rest)) = words.split_last() else {
            return "0".to_owned();
        };
        rest.iter().rev().fold(format!("{most:x}"), |text, word| {
            format!("{text},{word:08x}")
        })
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::default();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl FromStr for Cpus {
    type Err = NoCpus;

    fn from_str(text: &str) -> Result<Self, NoCpus> {
        let wrong = || NoCpus(text.to_owned());
        let number = |text: &str| {
            text.parse::<usize>()
                .ok()
                .filter(|cpu| *cpu < MOST_CPUS)
                .ok_or_else(wrong)
        };
        let mut set = Self::default();
        for range in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(wrong());
            }
            for cpu in first..=last {
                set.insert(cpu);
            }
        }
        Ok(set)
    }
}

impl TryFrom<String> for Cpus {
    type Error = NoCpus;

    fn try_from(text: String) -> Result<Self, NoCpus> {
        text.parse()
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> Self {
        cpus.to_string()
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.0.iter().enumerate().filter(|(_, is_set)| **is_set);
        formatter.write_str(&ranges(&set.map(|(cpu, _)| cpu).collect()))
    }
}

/// Reads the set of CPUs that thread `tid` (0: the calling thread) may run on.
///
/// # Errors
/// Fails with ESRCH when there is no such thread.
pub fn affinity(tid: Tid) -> io::Result<Cpus> {
    let mut mask = [0_u64; MOST_CPUS / 64];
    // SAFETY: the kernel writes at most the given size to `mask`. This calls the kernel directly:
    // unlike the C library's function, the system call returns the size that it wrote, and takes
    // any number of CPUs.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid,
            mem::size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    errno(written)?;
    Ok((0..MOST_CPUS)
        .filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 != 0)
        .collect())
}

/// Restricts thread `tid` (0: the calling thread) to `cpus`.
///
/// # Errors
/// Fails with ESRCH when there is no such thread, and with EPERM without CAP_SYS_NICE. EINVAL means
/// that none of `cpus` exists, or that the kernel has bound the thread to its CPU. EBUSY means that
/// the thread has SCHED_DEADLINE.
pub fn set_affinity(tid: Tid, cpus: &Cpus) -> io::Result<()> {
    let mut mask = [0_u64; MOST_CPUS / 64];
    for cpu in cpus.iter() {
        mask[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads at most the given size of `mask`.
    errno(unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid,
            mem::size_of_val(&mask),
            mask.as_ptr(),
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_and_keeps_what_a_thread_has() {
        // The test changes the policy of its thread, so it creates a thread of its own.
        std::thread::spawn(|| {
            let before = get(0).unwrap();
            // These two changes need no capability.
            set(0, SchedPolicy::Batch { nice: 7 }).unwrap();
            assert_eq!(get(0).unwrap(), SchedPolicy::Batch { nice: 7 });
            set(0, SchedPolicy::Idle).unwrap();
            assert_eq!(get(0).unwrap(), SchedPolicy::Idle);
            assert_ne!(get(0).unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn keeps_whether_children_start_as_ordinary_processes() {
        std::thread::spawn(|| {
            let reset = libc::SCHED_FLAG_RESET_ON_FORK as u64;
            let mut own = attributes(0).unwrap();
            own.size = u32::try_from(mem::size_of_val(&own)).unwrap();
            own.sched_flags |= reset;
            // SAFETY: the kernel reads `size` bytes of `own`.
            errno(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const own, 0) }).unwrap();
            set(0, SchedPolicy::Batch { nice: 3 }).unwrap();
            assert_eq!(attributes(0).unwrap().sched_flags & reset, reset);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn says_that_there_is_no_such_thread() {
        // Linux gives no thread a number above 2^22.
        let nobody = 1 << 23;
        let gone = Some(libc::ESRCH);
        assert_eq!(get(nobody).unwrap_err().raw_os_error(), gone);
        assert_eq!(
            set(nobody, SchedPolicy::Idle).unwrap_err().raw_os_error(),
            gone
        );
        assert_eq!(affinity(nobody).unwrap_err().raw_os_error(), gone);
        assert_eq!(
            set_affinity(nobody, &[0].into_iter().collect())
                .unwrap_err()
                .raw_os_error(),
            gone
        );
    }

    #[test]
    fn a_thread_runs_where_it_is_let() {
        std::thread::spawn(|| {
            let all = affinity(0).unwrap();
            let first = all.iter().next().unwrap();
            let one: Cpus = [first].into_iter().collect();
            set_affinity(0, &one).unwrap();
            assert_eq!(affinity(0).unwrap(), one);
            let none = set_affinity(0, &Cpus::default()).unwrap_err();
            assert_eq!(none.raw_os_error(), Some(libc::EINVAL));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn writes_cpus_as_linux_does() {
        let cpus: Cpus = "0-3,8,32-33".parse().unwrap();
        assert_eq!(cpus.to_string(), "0-3,8,32-33");
        assert_eq!(cpus.mask(), "3,0000010f");
        assert_eq!(Cpus::default().to_string(), "");
        assert_eq!(Cpus::default().mask(), "0");
        for wrong in ["3-1", "a", "1,,2", "8192", "-1", "1-", " "] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn cpus_are_read_as_they_are_written(cpus in prop::collection::btree_set(0..300_usize, 0..40)) {
            let set: Cpus = cpus.iter().copied().collect();
            prop_assert_eq!(set.to_string().parse::<Cpus>().unwrap(), set.clone());
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), cpus.into_iter().collect::<Vec<_>>());
        }
    }
}
