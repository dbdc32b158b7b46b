// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU and the scheduling policy of a thread.
use std::fmt;
use std::io;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A scheduling policy of Linux, with the range of priorities that Linux allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedPolicy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
}

impl FromStr for SchedPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, priority) = text.split_once(':').unwrap_or((text, ""));
        let level = || match priority.parse() {
            Ok(level @ 1..=99) => Ok(level),
            _ => Err(format!(
                "`{text}`: a priority is a number from 1 to 99, as in fifo:50"
            )),
        };
        match (name, priority) {
            ("other", "") => Ok(Self::Other),
            ("batch", "") => Ok(Self::Batch),
            ("idle", "") => Ok(Self::Idle),
            ("fifo", _) => level().map(Self::Fifo),
            ("rr", _) => level().map(Self::RoundRobin),
            _ => Err(format!(
                "there is no policy `{text}`: it is one of other, batch, idle, fifo:1 to fifo:99 and rr:1 to rr:99"
            )),
        }
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Batch => f.write_str("batch"),
            Self::Idle => f.write_str("idle"),
            Self::Fifo(level) => write!(f, "fifo:{level}"),
            Self::RoundRobin(level) => write!(f, "rr:{level}"),
        }
    }
}

/// The options with which a command places its thread.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct ThreadOptions {
    /// Run on this CPU alone
    #[arg(long, value_name = "NUMBER")]
    pub cpu: Option<usize>,

    /// The scheduling policy: other, batch, idle, fifo:50, rr:50; unchanged if not given
    #[arg(long)]
    pub policy: Option<SchedPolicy>,
}

/// Reason why a thread cannot have its CPU or its policy.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The CPU does not exist, or this process may not use it.
    #[error("--cpu {cpu}: {cause}; this process may run on {allowed}")]
    Cpu {
        /// The CPU that the option named.
        cpu: usize,
        /// The system's error.
        cause: io::Error,
        /// The CPUs that the process may run on, as text.
        allowed: String,
    },
    /// The system refuses the policy.
    #[error(
        "--policy {policy}: {cause}; a real-time policy needs root, CAP_SYS_NICE, or an RLIMIT_RTPRIO of at least its priority"
    )]
    Policy {
        /// The policy that the option named.
        policy: SchedPolicy,
        /// The system's error.
        cause: io::Error,
    },
}

/// Reason why [`raise`] failed.
#[derive(Debug, thiserror::Error)]
pub enum RaiseError {
    /// The processes cannot be listed.
    #[error("cannot read /proc: {0}")]
    Processes(io::Error),
    /// No process has a name that begins with this text.
    #[error(
        "the name of no process begins with `{0}`: `ps -e` lists them; a network card has threads napi/... once its file `threaded` has 1"
    )]
    NoProcess(String),
    /// The system refuses the policy.
    #[error("{name}: {cause}")]
    Policy {
        /// Name of the process.
        name: String,
        /// The reason.
        cause: PlaceError,
    },
}

impl ThreadOptions {
    /// Gives the calling thread its CPU and its policy.
    ///
    /// # Errors
    /// Fails if the system refuses. The error says which right is needed.
    pub fn apply(self) -> Result<(), PlaceError> {
        if let Some(cpu) = self.cpu {
            bind(cpu).map_err(|cause| PlaceError::Cpu {
                cpu,
                cause: cause.into(),
                allowed: allowed(),
            })?;
        }
        if let Some(policy) = self.policy {
            schedule(THIS_THREAD.as_raw(), policy)
                .map_err(|cause| PlaceError::Policy { policy, cause })?;
        }
        Ok(())
    }
}

/// The calling thread: system calls take 0 for it.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Gives `policy` to all processes whose names begin with `beginning`, including kernel threads.
/// Returns their names.
///
/// # Errors
/// Fails if there is no such process, or if the system refuses the policy.
pub fn raise(beginning: &str, policy: SchedPolicy) -> Result<Vec<String>, RaiseError> {
    let mut names = Vec::new();
    let processes = std::fs::read_dir("/proc").map_err(RaiseError::Processes)?;
    for entry in processes.flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // If the process has ended meanwhile, its name cannot be read and stays empty.
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let name = name.trim_end();
        if name.starts_with(beginning) {
            schedule(id, policy).map_err(|cause| RaiseError::Policy {
                name: name.to_owned(),
                cause: PlaceError::Policy { policy, cause },
            })?;
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return Err(RaiseError::NoProcess(beginning.to_owned()));
    }
    Ok(names)
}

fn bind(cpu: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(THIS_THREAD, &set)
}

/// The CPUs that the calling thread may run on, as text.
fn allowed() -> String {
    let set = sched_getaffinity(THIS_THREAD).unwrap_or_default();
    let is_allowed = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
    let cpus = (0..CpuSet::count()).filter(is_allowed);
    let names: Vec<String> = cpus.map(|cpu| cpu.to_string()).collect();
    names.join(", ")
}

fn schedule(thread: libc::pid_t, policy: SchedPolicy) -> io::Result<()> {
    let (number, priority) = match policy {
        SchedPolicy::Other => (libc::SCHED_OTHER, 0),
        SchedPolicy::Batch => (libc::SCHED_BATCH, 0),
        SchedPolicy::Idle => (libc::SCHED_IDLE, 0),
        SchedPolicy::Fifo(level) => (libc::SCHED_FIFO, level),
        SchedPolicy::RoundRobin(level) => (libc::SCHED_RR, level),
    };
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    // This is a system call, since musl's function of this name does nothing.
    // SAFETY: the parameters are valid, and the kernel only reads them.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, number, &parameters) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_read_back() {
        for text in ["other", "batch", "idle", "fifo:1", "rr:99"] {
            assert_eq!(text.parse::<SchedPolicy>().unwrap().to_string(), text);
        }
        for text in [
            "", "fifo", "fifo:0", "fifo:100", "rr:x", "other:1", "deadline",
        ] {
            assert!(text.parse::<SchedPolicy>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        for cpu in [1023, 1024, usize::MAX] {
            let options = ThreadOptions {
                cpu: Some(cpu),
                policy: None,
            };
            let message = options.apply().unwrap_err().to_string();
            assert!(message.contains("may run on"), "{message}");
            assert!(
                message
                    .chars()
                    .last()
                    .is_some_and(|last| last.is_ascii_digit()),
                "{message}"
            );
        }
    }
}
