// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the kernel threads that do the work of interrupts, by their names in /proc.
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use procfs::process::{Process, all_processes};
use procfs::{ProcError, ProcResult};
use serde::{Deserialize, Serialize};

use crate::sched::Tid;

/// The flag of a kernel thread in /proc/TID/stat: PF_KTHREAD of <linux/sched.h>.
pub(crate) const KERNEL_THREAD: u32 = 0x0020_0000;

/// A thread of this boot. Its start distinguishes it from later threads with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// Number of the thread.
    pub tid: Tid,
    /// Start of the thread, in ticks (of sysconf(_SC_CLK_TCK)) since boot.
    pub started: u64,
}

impl Thread {
    /// Finds the thread that has the number `tid` now. `None` if there is none.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn find(tid: Tid) -> ProcResult<Option<Self>> {
        Ok(
            if_there(Process::new(tid).and_then(|process| process.stat()))?.map(|stat| Self {
                tid,
                started: stat.starttime,
            }),
        )
    }

    /// Whether the thread still exists.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn exists(self) -> ProcResult<bool> {
        Ok(Self::find(self.tid)? == Some(self))
    }
}

/// A kernel thread with a descriptor (pidfd_open). The descriptor tells when the thread has ended,
/// without reading /proc.
#[derive(Debug)]
pub struct ThreadHandle {
    /// The thread.
    pub thread: Thread,
    descriptor: OwnedFd,
}

impl ThreadHandle {
    /// Opens `thread`. `None` if the thread has ended.
    ///
    /// # Errors
    /// Fails when the limit of descriptors is reached, or /proc cannot be read.
    pub fn new(thread: Thread) -> io::Result<Option<Self>> {
        let descriptor = descriptor(thread.tid)?;
        // The check comes after opening, so that the descriptor cannot belong to a later thread.
        let exists = thread.exists().map_err(io::Error::other)?;
        let held = descriptor.map(|descriptor| Self { thread, descriptor });
        Ok(held.filter(|_| exists))
    }

    /// Whether the thread has ended.
    ///
    /// # Errors
    /// Fails when the kernel does not answer.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut polled, PollTimeout::ZERO)? > 0)
    }
}

/// Opens the process or kernel thread `pid`. `None` if there is none.
pub(crate) fn descriptor(pid: Tid) -> io::Result<Option<OwnedFd>> {
    // SAFETY: the call takes only numbers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just created the descriptor for this call.
        Ok(descriptor) if descriptor >= 0 => Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            error => Err(error),
        },
    }
}

/// Converts the error for a thread that ended before or during reading to `None`.
fn if_there<T>(read: ProcResult<T>) -> ProcResult<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(ProcError::NotFound(_)) => Ok(None),
        // Reading a file that was opened before the thread ended fails with ESRCH.
        Err(ProcError::Io(error, _)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Work of a kernel thread, as the thread's name tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// `napi/INTERFACE-ID`: receives packets for one queue of an interface with threaded NAPI, and
    /// cleans up after sending.
    Napi {
        /// Name that the interface had when the thread was created. Interfaces of other network
        /// namespaces may have the same name.
        interface: String,
        /// Number of the NAPI instance. It is unique on the machine.
        id: u32,
    },
    /// `irq/NUMBER-NAME`: handles one interrupt. Such threads exist on PREEMPT_RT, with
    /// `threadirqs`, or if the driver asks for one.
    Irq {
        /// Number of the interrupt, as in /proc/interrupts.
        number: u32,
        /// Name of the handler. Most drivers derive it from the interface's name.
        name: String,
    },
    /// `ksoftirqd/CPU`: handles soft interrupts in an overload. On PREEMPT_RT it handles those that
    /// no other thread handles.
    SoftIrq {
        /// CPU that the thread is bound to.
        cpu: u32,
    },
    /// `ktimers/CPU`: handles the soft interrupts of timers on PREEMPT_RT. The timer of an
    /// interface's deferral is one of them.
    Timers {
        /// CPU that the thread is bound to.
        cpu: u32,
    },
    /// `backlog_napi/CPU`: receives packets that another CPU, or the same CPU, has put into this
    /// CPU's backlog (RPS, loopback, veth without NAPI). It exists on PREEMPT_RT and with
    /// `threadirqs`, from Linux 6.10 on. Otherwise a soft interrupt does this work.
    Backlog {
        /// CPU that the thread is bound to.
        cpu: u32,
    },
    /// `cpumap/CPU/map:ID`: runs the network stack for the packets that an XDP program has
    /// redirected to this entry of a CPUMAP.
    CpuMap {
        /// CPU that the thread is bound to. It is also the index of the entry.
        cpu: u32,
        /// Number of the map.
        map: u32,
    },
}

impl Work {
    /// Work of the kernel thread with the name `name`. `None` if the thread does no work of
    /// interrupts.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("napi/") {
            // The last dash separates the number, since names of interfaces may contain dashes.
            let (interface, id) = rest.rsplit_once('-')?;
            let interface = interface.to_owned();
            return Some(Self::Napi {
                interface,
                id: id.parse().ok()?,
            });
        }
        if let Some(rest) = name.strip_prefix("irq/") {
            let (number, name) = rest.split_once('-')?;
            return Some(Self::Irq {
                number: number.parse().ok()?,
                name: name.to_owned(),
            });
        }
        if let Some(cpu) = name.strip_prefix("ksoftirqd/") {
            return Some(Self::SoftIrq {
                cpu: cpu.parse().ok()?,
            });
        }
        if let Some(cpu) = name.strip_prefix("ktimers/") {
            return Some(Self::Timers {
                cpu: cpu.parse().ok()?,
            });
        }
        if let Some(cpu) = name.strip_prefix("backlog_napi/") {
            return Some(Self::Backlog {
                cpu: cpu.parse().ok()?,
            });
        }
        let (cpu, map) = name.strip_prefix("cpumap/")?.split_once("/map:")?;
        Some(Self::CpuMap {
            cpu: cpu.parse().ok()?,
            map: map.parse().ok()?,
        })
    }
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Napi { interface, id } => write!(formatter, "napi/{interface}-{id}"),
            Self::Irq { number, name } => write!(formatter, "irq/{number}-{name}"),
            Self::SoftIrq { cpu } => write!(formatter, "ksoftirqd/{cpu}"),
            Self::Timers { cpu } => write!(formatter, "ktimers/{cpu}"),
            Self::Backlog { cpu } => write!(formatter, "backlog_napi/{cpu}"),
            Self::CpuMap { cpu, map } => write!(formatter, "cpumap/{cpu}/map:{map}"),
        }
    }
}

/// A kernel thread that does the work of interrupts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelThread {
    /// The thread.
    pub thread: Thread,
    /// Work of the thread. As text it is the thread's name.
    pub work: Work,
}

/// Finds all kernel threads that do the work of interrupts, in ascending order of their numbers.
///
/// Only threads in /proc are found. A container with its own process namespace sees none of them.
///
/// # Errors
/// Fails when /proc cannot be read.
pub fn all() -> ProcResult<Vec<KernelThread>> {
    let mut found = Vec::new();
    for process in all_processes()? {
        let Some(stat) = if_there(process.and_then(|process| process.stat()))? else {
            continue;
        };
        if stat.flags & KERNEL_THREAD == 0 {
            continue;
        }
        if let Some(work) = Work::parse(&stat.comm) {
            found.push(KernelThread {
                thread: Thread {
                    tid: stat.pid,
                    started: stat.starttime,
                },
                work,
            });
        }
    }
    found.sort();
    Ok(found)
}

/// Finds the threads whose work `wanted` accepts, in ascending order of their numbers.
///
/// # Errors
/// Fails when /proc cannot be read.
pub fn which(wanted: impl Fn(&Work) -> bool) -> ProcResult<Vec<KernelThread>> {
    Ok(all()?
        .into_iter()
        .filter(|thread| wanted(&thread.work))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_threads_are_for_by_their_names() {
        for name in [
            "napi/eth0-8193",
            "napi/br-lan.2-17",
            "irq/24-eth0-TxRx-0",
            "irq/9-acpi",
            "ksoftirqd/11",
            "ktimers/2",
            "backlog_napi/3",
            "cpumap/1/map:42",
        ] {
            assert_eq!(Work::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(
            Work::parse("napi/br-lan-17"),
            Some(Work::Napi {
                interface: "br-lan".to_owned(),
                id: 17
            })
        );
        for name in [
            "kworker/0:1",
            "napi/eth0",
            "napi/eth0-x",
            "irq/x-eth0",
            "ksoftirqd/",
            "cpumap/1",
            "cpumap/1/map:",
        ] {
            assert_eq!(Work::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_thread_is_there_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let thread = Thread::find(child.id() as Tid).unwrap().unwrap();
        assert!(thread.exists().unwrap());
        let other = Thread {
            started: thread.started + 1,
            ..thread
        };
        assert!(!other.exists().unwrap());
        assert!(ThreadHandle::new(other).unwrap().is_none());
        let held = ThreadHandle::new(thread).unwrap().unwrap();
        assert!(!held.has_ended().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!thread.exists().unwrap());
        assert!(held.has_ended().unwrap());
        assert!(ThreadHandle::new(thread).unwrap().is_none());
    }
}
