// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mode native: the kernel's own means, set so that an interface's bottom halves run at the urgency of its most urgent receiver.
//!
//! Each interface's NAPI gets threads, which are scheduled like processes (zhang2006 §3 without a patch). ksoftirqd, which takes receive work over after an
//! overload and keeps the rest from being done anywhere else, gets the urgency of the most urgent receiver of all: as SCHED_OTHER, any real-time process that
//! does not sleep would end all reception, the urgent one's too. Deferral bounds the interrupts, which precede everything.
//!
//! What a flood can take from a process that is more urgent than the interface's receivers is the interrupts only. Where a process is not, a cap bounds it: with
//! SCHED_DEADLINE an interface's threads together run `runtime` in each `period`, at any rate of packets, so `runtime / period` of a CPU is lost at most, besides
//! at most one interrupt of each queue per deferral time. Packets above that are dropped by the card before they cost anything.
mod device;

use std::fmt;

use crate::sched::Policy;
use crate::settings::{Applied, Journal, JournalError, Setting, SettingError, Value};
use crate::threads::{self, KernelThread, Work};
use crate::urgency::Urgency;

pub use device::Device;
use device::is_napi;

/// Something that was wanted, and is not so.
#[derive(Debug, thiserror::Error)]
pub enum Note {
    /// The driver or the kernel has no such setting, or the interface or thread has gone.
    #[error(transparent)]
    Missing(SettingError),
    /// Somebody else has changed the setting since Weir did.
    #[error("{setting} was changed to {found} by somebody else, and is left so")]
    Foreign {
        /// The setting.
        setting: Setting,
        /// What it is.
        found: Value,
    },
    /// The interface has no NAPI of its own: what is received on it is done where it is sent, as softirq.
    #[error(
        "{0} has no NAPI instance now, so no thread does its receive work (veth has one with GRO on, or with an XDP program)"
    )]
    NoThread(String),
    /// The card cannot steer packets to a queue.
    #[error("{0} cannot steer packets to a queue of their own: {1}")]
    NoSteering(String, String),
}

/// One setting that is to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub setting: Setting,
    /// What it is now.
    pub from: Value,
    /// What it is to be.
    pub to: Value,
}

/// What the mode would do, or has done.
#[derive(Debug, Default)]
pub struct Report {
    /// The settings that differ from what is wanted, in the order in which they change. In a plan they are all that can be told before NAPI has threads.
    pub changes: Vec<Change>,
    /// Threads of which a plan cannot tell one value that they change to; empty once it is done.
    pub expected: Vec<Expected>,
    /// What is not to be had.
    pub notes: Vec<Note>,
}

/// Threads that are to be scheduled otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Which; none: all of the interface's, which its NAPI does not have yet.
    pub thread: Option<(Setting, Value)>,
    /// Whose.
    pub interface: String,
    /// How.
    pub scheduled: Scheduled,
}

/// How threads are to be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduled {
    /// By this policy. A cap is that of all the interface's threads together.
    By(Policy),
    /// As urgently as the receiver that they follow, up to this urgency.
    Following(Urgency),
}

impl fmt::Display for Scheduled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(policy) => policy.fmt(formatter),
            Self::Following(most) => write!(formatter, "its receivers', up to {}", most.policy()),
        }
    }
}

/// The mode native for some interfaces.
#[derive(Debug, Clone)]
pub struct Native {
    devices: Vec<Device>,
    softirq: Urgency,
}

impl Native {
    /// For `devices`. ksoftirqd, and where it has threads the CPUs' backlog, get the urgency of the most urgent receiver of all, and at least 1.
    #[must_use]
    pub fn new(devices: Vec<Device>) -> Self {
        let softirq = devices
            .iter()
            .map(|device| device.urgency.get())
            .fold(1, u8::max);
        Self {
            devices,
            softirq: Urgency::new(softirq).unwrap_or(Urgency::MOST),
        }
    }

    /// Gives ksoftirqd and the backlog another urgency; 0 leaves it to ordinary processes, and so reception to end whenever a real-time process does not sleep.
    #[must_use]
    pub fn with_softirq(mut self, urgency: Urgency) -> Self {
        self.softirq = urgency;
        self
    }

    /// What [`Self::apply`] would change. Nothing is changed.
    ///
    /// # Errors
    /// When a setting cannot be read.
    pub fn plan(&self) -> Result<Report, SettingError> {
        let mut report = Report::default();
        let list = |report: &mut Report, wanted: Vec<(Setting, Value)>| {
            for (setting, to) in wanted {
                match setting.value() {
                    Ok(from) if from == to => {}
                    Ok(from) => report.changes.push(Change { setting, from, to }),
                    Err(error) => report.notes.push(missing(error)?),
                }
            }
            Ok(())
        };
        list(&mut report, self.softirqs()?)?;
        for device in &self.devices {
            let wanted = device::settings(device, &mut report.notes)?;
            list(&mut report, wanted)?;
            let threads = device.threads()?;
            let expected = |thread, scheduled| Expected {
                thread,
                interface: device.interface.name.clone(),
                scheduled,
            };
            if !threads.iter().any(is_napi) {
                let policy = Scheduled::By(device.policy(1));
                let scheduled = device.follows.map_or(policy, Scheduled::Following);
                report.expected.push(expected(None, scheduled));
            }
            match device.follows {
                None => list(&mut report, device.policies(&threads))?,
                Some(most) => {
                    for thread in &threads {
                        let setting = Setting::policy(thread);
                        match setting.value() {
                            Ok(now) => report
                                .expected
                                .push(expected(Some((setting, now)), Scheduled::Following(most))),
                            Err(error) => report.notes.push(missing(error)?),
                        }
                    }
                }
            }
        }
        Ok(report)
    }

    /// Sets everything, through `journal`, which puts it back. What is not to be had is noted, and is no error.
    ///
    /// It can be done again at any time: an interface that was taken down and up has new threads then.
    ///
    /// # Errors
    /// When another run has one of the interfaces, the journal cannot be kept, or the kernel refuses a setting that is there: without CAP_NET_ADMIN or
    /// CAP_SYS_NICE, or a cap for which the CPUs have no room. What was set by then is still in the journal.
    pub fn apply(&self, journal: &mut Journal) -> Result<Report, JournalError<Setting>> {
        let mut report = Report::default();
        let softirqs = self.softirqs().map_err(JournalError::Setting)?;
        for device in &self.devices {
            journal.lock_interface(&device.interface)?;
        }
        set(journal, &mut report, softirqs)?;
        for device in &self.devices {
            let mut wanted =
                device::settings(device, &mut report.notes).map_err(JournalError::Setting)?;
            if journal.settings().any(|setting| rule_of(setting, device)) {
                // The rules are there; their places are taken now, and others would be new rules.
                wanted.retain(|(setting, _)| !rule_of(setting, device));
            }
            set(journal, &mut report, wanted)?;
            let threads = device.threads().map_err(JournalError::Setting)?;
            if !threads.iter().any(is_napi) {
                report
                    .notes
                    .push(Note::NoThread(device.interface.name.clone()));
            }
            if device.follows.is_none() {
                set(journal, &mut report, device.policies(&threads))?;
            }
        }
        Ok(report)
    }

    /// For no device there is nothing to serve.
    fn softirqs(&self) -> Result<Vec<(Setting, Value)>, SettingError> {
        if self.devices.is_empty() {
            return Ok(Vec::new());
        }
        let found = find(|work| matches!(work, Work::SoftIrq { .. } | Work::Backlog { .. }))?;
        Ok(found
            .iter()
            .map(|thread| policy(thread, self.softirq.policy()))
            .collect())
    }
}

fn rule_of(setting: &Setting, device: &Device) -> bool {
    matches!(setting, Setting::Steering { interface, .. } if *interface == device.interface)
}

fn set(
    journal: &mut Journal,
    report: &mut Report,
    wanted: Vec<(Setting, Value)>,
) -> Result<(), JournalError<Setting>> {
    for (setting, to) in wanted {
        let changed = setting
            .value()
            .map_err(JournalError::Setting)
            .and_then(|from| Ok((from, journal.apply(&setting, &to)?)));
        match changed {
            Ok((from, Applied::Changed)) => report.changes.push(Change { setting, from, to }),
            Ok((_, Applied::Already)) => {}
            Err(JournalError::Setting(error)) => report
                .notes
                .push(missing(error).map_err(JournalError::Setting)?),
            Err(JournalError::Foreign { setting, found }) => {
                report.notes.push(Note::Foreign {
                    setting: *setting,
                    found,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn missing(error: SettingError) -> Result<Note, SettingError> {
    match error {
        SettingError::Absent(_) | SettingError::Vanished(_) => Ok(Note::Missing(error)),
        error => Err(error),
    }
}

fn policy(thread: &KernelThread, policy: Policy) -> (Setting, Value) {
    (Setting::policy(thread), Value::Policy(policy))
}

fn find(wanted: impl Fn(&Work) -> bool) -> Result<Vec<KernelThread>, SettingError> {
    threads::which(wanted).map_err(|error| SettingError::Threads(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_model::TopHalf;

    use super::device::LEAST_RUNTIME;
    use super::*;
    use crate::settings::Interface;

    fn device(urgency: u8, top_half: Option<TopHalf>) -> Device {
        let interface = Interface {
            name: "eth0".to_owned(),
            index: 2,
            namespace: 1,
            path: None,
        };
        Device {
            top_half,
            ..Device::new(interface, Urgency::new(urgency).unwrap())
        }
    }

    #[test]
    fn threads_have_the_urgency_of_the_receivers_or_the_stated_place() {
        assert_eq!(device(40, None).policy(2), Policy::Fifo(40));
        assert_eq!(device(0, None).policy(1), Policy::Other { nice: 0 });
        assert_eq!(
            device(40, Some(TopHalf::Urgency(3))).policy(1),
            Policy::Fifo(3)
        );
    }

    #[test]
    fn a_cap_is_that_of_all_threads_together() {
        let share = |runtime: Duration, period, threads: usize| {
            let cap = TopHalf::Cap { runtime, period };
            let Policy::Deadline {
                runtime,
                deadline,
                period,
            } = device(40, Some(cap)).policy(threads)
            else {
                panic!("a cap is SCHED_DEADLINE");
            };
            assert_eq!(deadline, period);
            assert!(runtime >= LEAST_RUNTIME);
            runtime.as_secs_f64() / period.as_secs_f64() * threads as f64
        };
        let (runtime, period) = (Duration::from_micros(500), Duration::from_millis(10));
        for threads in [1, 2, 3, 64, 1000] {
            let all = share(runtime, period, threads);
            assert!(all <= 0.05 + 1e-12 && all > 0.0495, "{threads}: {all}");
        }
    }

    #[test]
    fn without_an_interface_nothing_is_changed() {
        let plan = Native::new(Vec::new()).plan().unwrap();
        assert_eq!((plan.changes.len(), plan.expected.len()), (0, 0));
    }

    #[test]
    fn ksoftirqd_does_not_stay_ordinary() {
        assert_eq!(Native::new(vec![device(0, None)]).softirq.get(), 1);
        let native = Native::new(vec![device(10, None), device(70, None)]);
        assert_eq!(native.softirq.get(), 70);
        assert_eq!(native.with_softirq(Urgency::ORDINARY).softirq.get(), 0);
    }
}
