// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a machine that Weir changes. Each value is recorded before it changes, and
//! restored afterwards.
pub mod ethtool;
pub mod journal;
pub mod namespace;
pub mod netlink;
pub mod sockets;
pub mod steering;

use std::fmt;
use std::fs;
use std::io;

use procfs::ProcError;
use serde::{Deserialize, Serialize};

use crate::ranges::ranges;
use crate::sched::{self, Cpus, SchedPolicy};
use crate::threads::{KernelThread, Thread};
use ethtool::Coalescing;
use journal::Adjustable;
pub use journal::{ApplyOutcome, JournalError, Outcome, Restoration};
pub use namespace::{Namespace, NetDevice, OpenInterface};
use steering::Rule;

/// The journal of the settings of a machine.
pub type Journal = journal::Log<Setting>;

impl Journal {
    /// Locks `interface` against other runs until this run ends.
    ///
    /// # Errors
    /// Fails when another run has locked the interface.
    pub fn lock_interface(&mut self, interface: &NetDevice) -> Result<(), JournalError<Setting>> {
        let NetDevice {
            name,
            index,
            device,
            namespace,
            ..
        } = interface;
        // The lock has the number of the device, which stays the same if the interface is renamed
        // or moved to another namespace.
        let lock = match device {
            Some(device) => format!("device.{device}"),
            None => format!("{namespace}.{index}"),
        };
        self.lock(&lock).map_err(|error| match error {
            JournalError::Locked { pid, .. } => JournalError::Locked {
                what: name.clone(),
                pid,
            },
            error => error,
        })
    }
}

/// A setting of a running machine. The variants say which kind of [`Value`] they have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A file of an interface in /sys/class/net, such as `threaded`, `gro_flush_timeout` or
    /// `queues/rx-0/rps_cpus`. Its value is [`Value::Text`].
    Device {
        /// The interface.
        interface: NetDevice,
        /// Path of the file, relative to the interface's folder.
        file: String,
    },
    /// Policy of a thread. Its value is [`Value::Policy`].
    Policy {
        /// The thread.
        thread: Thread,
        /// Name of the thread, for messages.
        name: String,
    },
    /// CPUs on which a thread may run. The value is [`Value::Cpus`].
    Affinity {
        /// The thread.
        thread: Thread,
        /// Name of the thread, for messages.
        name: String,
    },
    /// A setting in /proc/sys. Its value is [`Value::Text`].
    Sysctl {
        /// Path relative to /proc/sys, such as `kernel/sched_rt_runtime_us`.
        path: String,
    },
    /// A feature of the kernel's scheduler. Its value is a [`Value::Text`]: the name of the
    /// feature, with `NO_` before it if the feature is off. It applies to the whole machine, and
    /// needs debugfs to be mounted and writable.
    Feature {
        /// Name of the feature, such as `HRTICK_DL`.
        name: String,
    },
    /// How an interface gathers packets before an interrupt. The value is [`Value::Coalescing`].
    Coalescing {
        /// The interface.
        interface: NetDevice,
        /// Number of the receive queue. `None` means all queues.
        queue: Option<u32>,
    },
    /// Number of packets for which each receive queue of an interface has room. The value is
    /// [`Value::Packets`].
    Ring {
        /// The interface.
        interface: NetDevice,
    },
    /// A place in an interface's table of rules. Its value is [`Value::Rule`].
    Steering {
        /// The interface.
        interface: NetDevice,
        /// Number of the place, from 0.
        place: u32,
    },
    /// Table of queues by which a card spreads the packets that no rule matches. Its value is
    /// [`Value::Queues`].
    Spread {
        /// The interface.
        interface: NetDevice,
    },
}

/// Value of a [`Setting`]. The setting determines the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A line of text, in most cases a number.
    Text(String),
    /// Policy of a thread.
    Policy(SchedPolicy),
    /// CPUs on which a thread may run.
    Cpus(Cpus),
    /// How an interface gathers packets.
    Coalescing(Coalescing),
    /// A number of packets.
    Packets(u32),
    /// A rule. `None` if the place has no rule.
    Rule(Option<Rule>),
    /// Numbers of receive queues.
    Queues(Vec<u32>),
}

/// Reason why a setting could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The interface, the thread or the namespace no longer exists.
    #[error("{0} is no longer there")]
    Vanished(Setting),
    /// The interface's driver, or the kernel, has no such setting.
    #[error("{0} is not available here")]
    Absent(Setting),
    /// The variant of the value does not fit the setting, or the path leads out of its folder.
    #[error("{setting} cannot be set to {value}")]
    Unfit {
        /// The setting.
        setting: Box<Setting>,
        /// The value.
        value: Value,
    },
    /// The CPUs have no room for this share of SCHED_DEADLINE.
    #[error(
        "{setting}: the CPUs have no room for {policy} beside the shares of others; take a smaller share, or an urgency, which needs no room"
    )]
    NoRoom {
        /// The setting.
        setting: Box<Setting>,
        /// The policy.
        policy: SchedPolicy,
    },
    /// The list of the kernel's threads cannot be read.
    #[error("the kernel's threads cannot be read from /proc: {0}")]
    Threads(String),
    /// The kernel reports an error.
    #[error("{setting}: {error}")]
    Refused {
        /// The setting.
        setting: Box<Setting>,
        /// Error of the kernel.
        error: io::Error,
    },
}

impl Setting {
    /// The setting in the file `file` of `interface`.
    #[must_use]
    pub fn device(interface: &NetDevice, file: impl Into<String>) -> Self {
        Self::Device {
            interface: interface.clone(),
            file: file.into(),
        }
    }

    /// The setting of the policy of `thread`.
    #[must_use]
    pub fn policy(thread: &KernelThread) -> Self {
        Self::Policy {
            thread: thread.thread,
            name: thread.work.to_string(),
        }
    }

    /// The setting of the CPUs of `thread`.
    #[must_use]
    pub fn affinity(thread: &KernelThread) -> Self {
        Self::Affinity {
            thread: thread.thread,
            name: thread.work.to_string(),
        }
    }

    /// Reads the present value.
    ///
    /// # Errors
    /// Fails when the interface or the thread does not exist, or when the value cannot be read.
    pub fn value(&self) -> Result<Value, SettingError> {
        self.get().map_err(|error| self.explain(error))
    }

    fn get(&self) -> io::Result<Value> {
        Ok(match self {
            Self::Device { interface, file } => {
                let text = interface.open()?.read(within(file)?)?;
                Value::Text(normal(file, &text))
            }
            Self::Policy { thread, .. } => Value::Policy(sched::get(live_tid(*thread)?)?),
            Self::Affinity { thread, .. } => Value::Cpus(sched::affinity(live_tid(*thread)?)?),
            Self::Sysctl { path } => {
                let file = format!("/proc/sys/{}", within(path)?);
                // In a network namespace of its own, settings of the whole machine are read-only.
                if fs::metadata(&file)?.permissions().readonly() {
                    return Err(io::Error::from_raw_os_error(libc::EROFS));
                }
                let text = fs::read_to_string(file)?;
                Value::Text(normal(path, &text))
            }
            Self::Feature { name } => Value::Text(feature(name)?),
            Self::Coalescing { interface, queue } => {
                Value::Coalescing(ethtool::coalescing(&interface.open()?, *queue)?)
            }
            Self::Ring { interface } => Value::Packets(ethtool::ring(&interface.open()?)?.now),
            Self::Steering { interface, place } => {
                Value::Rule(steering::rule(&interface.open()?, *place)?)
            }
            Self::Spread { interface } => Value::Queues(steering::spread(&interface.open()?)?),
        })
    }

    fn set(&self, value: &Value) -> io::Result<()> {
        match (self, value) {
            (Self::Device { interface, file }, Value::Text(text)) => {
                interface.open()?.write(within(file)?, text)
            }
            (Self::Policy { thread, .. }, Value::Policy(policy)) => {
                sched::set(live_tid(*thread)?, *policy)
            }
            (Self::Affinity { thread, .. }, Value::Cpus(cpus)) => {
                sched::set_affinity(live_tid(*thread)?, cpus)
            }
            (Self::Sysctl { path }, Value::Text(text)) => {
                fs::write(format!("/proc/sys/{}", within(path)?), text)
            }
            (Self::Feature { name }, Value::Text(text)) if is_of(text, name) => {
                fs::write(FEATURES, text)
            }
            (Self::Coalescing { interface, queue }, Value::Coalescing(coalescing)) => {
                ethtool::set_coalescing(&interface.open()?, *queue, *coalescing)
            }
            (Self::Ring { interface }, Value::Packets(packets)) => {
                ethtool::set_ring(&interface.open()?, *packets)
            }
            (Self::Steering { interface, place }, Value::Rule(rule)) => {
                steering::set_rule(&interface.open()?, *place, rule.clone())
            }
            (Self::Spread { interface }, Value::Queues(queues)) => {
                steering::set_spread(&interface.open()?, queues)
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// Whether the interface or the thread of the setting still exists.
    fn is_there(&self) -> bool {
        match self {
            Self::Device { interface, .. }
            | Self::Coalescing { interface, .. }
            | Self::Ring { interface }
            | Self::Steering { interface, .. }
            | Self::Spread { interface } => interface.open().is_ok(),
            Self::Policy { thread, .. } | Self::Affinity { thread, .. } => {
                live_tid(*thread).is_ok()
            }
            Self::Sysctl { .. } | Self::Feature { .. } => true,
        }
    }

    /// Converts the kernel's `error` to what it means for this setting.
    pub(crate) fn explain(&self, error: io::Error) -> SettingError {
        let setting = self.clone();
        match error.raw_os_error() {
            Some(libc::ESRCH | libc::ENODEV | libc::ENXIO | libc::ENOENT) if !self.is_there() => {
                SettingError::Vanished(setting)
            }
            Some(libc::ENOENT | libc::EOPNOTSUPP) => SettingError::Absent(setting),
            // A kernel in lockdown lets nobody write to debugfs.
            Some(libc::EPERM | libc::EACCES) if matches!(self, Self::Feature { .. }) => {
                SettingError::Absent(setting)
            }
            // In a container, all of /proc/sys is mounted read-only.
            Some(libc::EROFS) if matches!(self, Self::Sysctl { .. }) => {
                SettingError::Absent(setting)
            }
            _ => SettingError::Refused {
                setting: Box::new(setting),
                error,
            },
        }
    }
}

/// Path of the features at the place where systemd mounts debugfs.
const FEATURES: &str = "/sys/kernel/debug/sched/features";

/// Whether `text` is the feature `name`, either on or off.
fn is_of(text: &str, name: &str) -> bool {
    text.strip_prefix("NO_").unwrap_or(text) == name
}

/// State of the scheduler's feature `name`.
fn feature(name: &str) -> io::Result<String> {
    let all = fs::read_to_string(FEATURES)?;
    let found = all.split_whitespace().find(|text| is_of(text, name));
    found.map_or_else(
        || Err(io::Error::from_raw_os_error(libc::ENOENT)),
        |text| Ok(text.to_owned()),
    )
}

/// Number of `thread`. Fails if the thread no longer exists.
fn live_tid(thread: Thread) -> io::Result<sched::Tid> {
    match thread.exists() {
        Ok(true) => Ok(thread.tid),
        Ok(false) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        Err(ProcError::Io(error, _)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Fails if `path` leads out of its folder. The path may come from a journal that somebody else has
/// written.
fn within(path: &str) -> io::Result<&str> {
    let stays = |name: &str| !name.is_empty() && name != "." && name != "..";
    if path.split('/').all(stays) {
        Ok(path)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// Brings `text` into a normal form, so that equal values have equal texts. The kernel writes
/// leading zeros, and tabs between numbers.
fn normal(file: &str, text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if file.ends_with("_cpus") && text.is_ascii() {
        let digits = text.replace(',', "");
        let digits = digits.trim_start_matches('0');
        // A comma stands before every eight digits, counted from the end.
        let mut mask = String::new();
        for (place, digit) in digits.char_indices() {
            if place > 0 && (digits.len() - place) % 8 == 0 {
                mask.push(',');
            }
            mask.push(digit);
        }
        return if mask.is_empty() {
            "0".to_owned()
        } else {
            mask
        };
    }
    text
}

impl Adjustable for Setting {
    type Value = Value;
    type Error = SettingError;

    fn read(&self) -> Result<Value, SettingError> {
        self.value()
    }

    fn apply(&self, value: &Value) -> Result<(), SettingError> {
        self.set(value).map_err(|error| {
            if let (Some(libc::EBUSY), Value::Policy(policy)) = (error.raw_os_error(), value) {
                SettingError::NoRoom {
                    setting: Box::new(self.clone()),
                    policy: *policy,
                }
            } else if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none()
            {
                SettingError::Unfit {
                    setting: Box::new(self.clone()),
                    value: value.clone(),
                }
            } else {
                self.explain(error)
            }
        })
    }

    fn vanished(error: &SettingError) -> bool {
        matches!(error, SettingError::Vanished(_))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { interface, file } => write!(formatter, "{file} of {}", interface.name),
            Self::Policy { name, thread } => {
                write!(formatter, "the policy of {name} (thread {})", thread.tid)
            }
            Self::Affinity { name, thread } => {
                write!(formatter, "the CPUs of {name} (thread {})", thread.tid)
            }
            Self::Sysctl { path } => write!(formatter, "the sysctl {}", path.replace('/', ".")),
            Self::Feature { name } => write!(formatter, "the scheduler's feature {name}"),
            Self::Coalescing {
                interface,
                queue: None,
            } => write!(formatter, "the coalescing of {}", interface.name),
            Self::Coalescing {
                interface,
                queue: Some(queue),
            } => write!(
                formatter,
                "the coalescing of {}'s queue {queue}",
                interface.name
            ),
            Self::Ring { interface } => {
                write!(formatter, "the receive ring of {}", interface.name)
            }
            Self::Steering { interface, place } => {
                write!(formatter, "rule {place} of {}", interface.name)
            }
            Self::Spread { interface } => {
                write!(formatter, "the spread over queues of {}", interface.name)
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Policy(policy) => policy.fmt(formatter),
            Self::Cpus(cpus) => write!(formatter, "CPUs {cpus}"),
            Self::Coalescing(coalescing) => write!(
                formatter,
                "{} us, {} packets",
                coalescing.receive_microseconds(),
                coalescing.receive_frames()
            ),
            Self::Packets(packets) => write!(formatter, "{packets} packets"),
            Self::Rule(None) => formatter.write_str("no rule"),
            Self::Rule(Some(rule)) => rule.fmt(formatter),
            Self::Queues(queues) => {
                let queues = queues.iter().map(|queue| *queue as usize);
                write!(formatter, "queues {}", ranges(&queues.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_compared_without_leading_zeros() {
        assert_eq!(normal("queues/rx-0/rps_cpus", "00000000,00000003\n"), "3");
        assert_eq!(normal("queues/rx-0/rps_cpus", "1,00000000\n"), "1,00000000");
        assert_eq!(normal("queues/rx-0/rps_cpus", "0\n"), "0");
        assert_eq!(
            normal("net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            "4096 131072 6291456"
        );
    }

    #[test]
    fn a_feature_is_on_or_off_and_no_other() {
        assert!(is_of("HRTICK_DL", "HRTICK_DL") && is_of("NO_HRTICK_DL", "HRTICK_DL"));
        assert!(!is_of("HRTICK", "HRTICK_DL") && !is_of("NO_HRTICK", "HRTICK_DL"));
        let setting = Setting::Feature {
            name: "HRTICK_DL".to_owned(),
        };
        let foreign = setting.apply(&Value::Text("NO_RT_PUSH_IPI".to_owned()));
        assert!(matches!(foreign, Err(SettingError::Unfit { .. })));
    }

    #[test]
    fn a_setting_stays_in_its_folder() {
        for path in [
            "../../etc/passwd",
            "/etc/passwd",
            "kernel//x",
            "",
            "kernel/..",
        ] {
            let setting = Setting::Sysctl {
                path: path.to_owned(),
            };
            assert!(
                matches!(
                    setting.apply(&Value::Text("1".to_owned())),
                    Err(SettingError::Unfit { .. })
                ),
                "{path}"
            );
        }
    }

    #[test]
    fn what_is_not_there_is_told_apart_from_what_vanished() {
        let absent = Setting::Sysctl {
            path: "kernel/weir_has_no_such".to_owned(),
        };
        assert!(matches!(absent.read(), Err(SettingError::Absent(_))));
        let fixed = Setting::Sysctl {
            path: "kernel/ostype".to_owned(),
        };
        assert!(matches!(fixed.read(), Err(SettingError::Absent(_))));
        let gone = Setting::Policy {
            thread: Thread {
                tid: 1 << 23,
                started: 0,
            },
            name: "nobody".to_owned(),
        };
        assert!(matches!(gone.read(), Err(SettingError::Vanished(_))));
    }
}
