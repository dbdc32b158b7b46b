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
use std::time::Duration;

use weir_model::TopHalf;

use crate::sched::{Cpus, Policy};
use crate::settings::ethtool::{self, Flow, Rule};
use crate::settings::{
    Applied, Interface, Journal, JournalError, OpenInterface, Setting, SettingError, Value,
};
use crate::threads::{self, KernelThread, Work};
use crate::urgency::Urgency;

/// How many polls without a packet end a deferral: after them the interface waits for an interrupt again.
const EMPTY_POLLS: u32 = 2;

/// The least run time of SCHED_DEADLINE that the kernel takes.
const LEAST_RUNTIME: Duration = Duration::from_nanos(1024);

/// What is wanted of one interface.
#[derive(Debug, Clone)]
pub struct Device {
    /// Which.
    pub interface: Interface,
    /// The urgency of the most urgent of its receivers.
    pub urgency: Urgency,
    /// What its threads may do; `None`: they have `urgency`.
    pub top_half: Option<TopHalf>,
    /// How long packets may wait for the next poll instead of an interrupt each; `None`: this is left as it is.
    pub deferral: Option<Duration>,
    /// How long the card gathers packets before an interrupt, in whole microseconds; `None`: this is left as it is. The queue of `steered` does not gather.
    pub gathering: Option<Duration>,
    /// Packets that get the last receive queue for themselves, where the card can steer and has more than one.
    pub steered: Vec<Flow>,
    /// The CPUs that do the stack's work for it, where the card does not spread it itself (veth); `None`: this is left as it is.
    pub spread: Option<Cpus>,
}

impl Device {
    /// An interface whose most urgent receiver is of `urgency`, with nothing else wanted.
    #[must_use]
    pub fn new(interface: Interface, urgency: Urgency) -> Self {
        Self {
            interface,
            urgency,
            top_half: None,
            deferral: None,
            gathering: None,
            steered: Vec::new(),
            spread: None,
        }
    }

    /// What each of its `number` threads is scheduled by: a cap is that of all together, since all can run on one CPU.
    fn policy(&self, number: usize) -> Policy {
        match self.top_half {
            None => self.urgency.policy(),
            Some(TopHalf::Urgency(priority)) => {
                Urgency::new(priority).unwrap_or(Urgency::MOST).policy()
            }
            Some(TopHalf::Cap { runtime, period }) => {
                let parts = u32::try_from(number.max(1)).unwrap_or(u32::MAX);
                // A part that is too short for the kernel is the same share of a longer period.
                let (mut runtime, mut period) = (runtime / parts, period);
                while runtime < LEAST_RUNTIME && !runtime.is_zero() {
                    runtime *= 2;
                    period *= 2;
                }
                Policy::Deadline {
                    runtime,
                    deadline: period,
                    period,
                }
            }
        }
    }
}

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
    /// Interfaces whose NAPI gets threads, and what those will be scheduled by; only in a plan. A cap is then that of all the interface's threads together.
    pub expected: Vec<(String, Policy)>,
    /// What is not to be had.
    pub notes: Vec<Note>,
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
            let wanted = device_settings(device, &mut report.notes)?;
            list(&mut report, wanted)?;
            let threads = napi(device)?;
            if threads.is_empty() {
                report
                    .expected
                    .push((device.interface.name.clone(), device.policy(1)));
            }
            list(&mut report, thread_settings(device, &threads)?)?;
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
                device_settings(device, &mut report.notes).map_err(JournalError::Setting)?;
            if journal.settings().any(|setting| rule_of(setting, device)) {
                // The rules are there; their places are taken now, and others would be new rules.
                wanted.retain(|(setting, _)| !rule_of(setting, device));
            }
            set(journal, &mut report, wanted)?;
            let threads = napi(device).map_err(JournalError::Setting)?;
            if threads.is_empty() {
                report
                    .notes
                    .push(Note::NoThread(device.interface.name.clone()));
            }
            let wanted = thread_settings(device, &threads).map_err(JournalError::Setting)?;
            set(journal, &mut report, wanted)?;
        }
        Ok(report)
    }

    fn softirqs(&self) -> Result<Vec<(Setting, Value)>, SettingError> {
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

/// The threads of the device's NAPI instances. By the interface's name: one of another namespace that is named alike and has such threads cannot be told apart.
fn napi(device: &Device) -> Result<Vec<KernelThread>, SettingError> {
    find(|work| matches!(work, Work::Napi { interface, .. } if *interface == device.interface.name))
}

/// The interface's own settings. The time of a deferral is set before the number that turns it on, and put back after it.
fn device_settings(
    device: &Device,
    notes: &mut Vec<Note>,
) -> Result<Vec<(Setting, Value)>, SettingError> {
    let interface = &device.interface;
    let mut wanted = Vec::new();
    let mut file = |name: String, text: String| {
        wanted.push((Setting::device(interface, name), Value::Text(text)));
    };
    if let Some(time) = device.deferral {
        file("gro_flush_timeout".into(), time.as_nanos().to_string());
        file("napi_defer_hard_irqs".into(), EMPTY_POLLS.to_string());
    }
    let open = match interface.open() {
        Ok(open) => open,
        Err(error) => {
            let setting = Setting::device(interface, "threaded");
            notes.push(missing(setting.explain(error))?);
            return Ok(Vec::new());
        }
    };
    if let Some(cpus) = &device.spread {
        let queues = open.list("queues").unwrap_or_default();
        for queue in queues.iter().filter(|queue| queue.starts_with("rx-")) {
            file(format!("queues/{queue}/rps_cpus"), cpus.mask());
        }
    }
    file("threaded".into(), "1".into());
    let steered = steering(device, &open, notes, &mut wanted);
    if let Some(time) = device.gathering {
        gathering(device, &open, time, steered, &mut wanted);
    }
    Ok(wanted)
}

/// The rules that give `device.steered` the last queue; which that is, if it is one.
fn steering(
    device: &Device,
    open: &OpenInterface,
    notes: &mut Vec<Note>,
    wanted: &mut Vec<(Setting, Value)>,
) -> Option<u32> {
    if device.steered.is_empty() {
        return None;
    }
    let name = || device.interface.name.clone();
    let (queues, places) = match ethtool::queues(open)
        .and_then(|queues| Ok((queues, ethtool::free_places(open, device.steered.len())?)))
    {
        Ok(found) => found,
        Err(error) => {
            notes.push(Note::NoSteering(name(), error.to_string()));
            return None;
        }
    };
    if queues < 2 || places.len() < device.steered.len() {
        let reason = format!(
            "{queues} receive queues and {} free places for rules; {} are needed",
            places.len(),
            device.steered.len()
        );
        notes.push(Note::NoSteering(name(), reason));
        return None;
    }
    let queue = queues - 1;
    for (flow, place) in device.steered.iter().zip(places) {
        let setting = Setting::Steering {
            interface: device.interface.clone(),
            place,
        };
        wanted.push((setting, Value::Rule(Some(Rule::new(*flow, queue, place)))));
    }
    Some(queue)
}

/// Lets each queue but `steered` gather packets for `time`, or the whole card where its queues have no settings of their own and none is steered.
fn gathering(
    device: &Device,
    open: &OpenInterface,
    time: Duration,
    steered: Option<u32>,
    wanted: &mut Vec<(Setting, Value)>,
) {
    let microseconds = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let queues = ethtool::queues(open).unwrap_or(0);
    let own = queues > 0 && ethtool::coalescing(open, Some(0)).is_ok();
    let of: Vec<Option<u32>> = match steered {
        _ if own => (0..queues)
            .filter(|queue| steered != Some(*queue))
            .map(Some)
            .collect(),
        Some(_) => return,
        None => vec![None],
    };
    for queue in of {
        let setting = Setting::Coalescing {
            interface: device.interface.clone(),
            queue,
        };
        // Where it cannot be read it cannot be set: the caller notes that it is not there.
        let now = ethtool::coalescing(open, queue).unwrap_or_default();
        let value = Value::Coalescing(now.with_receive_microseconds(microseconds));
        wanted.push((setting, value));
    }
}

/// The policies of the device's threads: NAPI's, and those of its interrupts where they have threads (PREEMPT_RT).
fn thread_settings(
    device: &Device,
    napi: &[KernelThread],
) -> Result<Vec<(Setting, Value)>, SettingError> {
    let of_napi = device.policy(napi.len());
    // A thread of an interrupt wakes NAPI's and does no more: it precedes nobody whom the interface's receivers do not precede.
    let of_irq = match of_napi {
        Policy::Deadline { .. } => device.urgency.policy(),
        policy => policy,
    };
    let numbers = device
        .interface
        .open()
        .map(|open| interrupts(&open))
        .unwrap_or_default();
    let irqs = find(|work| matches!(work, Work::Irq { number, .. } if numbers.contains(number)))?;
    Ok(napi
        .iter()
        .map(|thread| policy(thread, of_napi))
        .chain(irqs.iter().map(|thread| policy(thread, of_irq)))
        .collect())
}

/// The numbers of an interface's interrupts; none for one that is no device.
fn interrupts(open: &OpenInterface) -> Vec<u32> {
    // The PCI device below a virtio device has the interrupts; above a PCI device is a bridge, whose interrupts are its own.
    let folder = if open.read("device/class").is_ok() || open.read("device/features").is_err() {
        "device"
    } else {
        "device/.."
    };
    let listed = open
        .list(&format!("{folder}/msi_irqs"))
        .unwrap_or_default()
        .into_iter();
    let single = open.read(&format!("{folder}/irq")).ok();
    listed
        .chain(single)
        .filter_map(|number| number.trim().parse().ok())
        // 0 stands for none.
        .filter(|number| *number != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn ksoftirqd_does_not_stay_ordinary() {
        assert_eq!(Native::new(vec![device(0, None)]).softirq.get(), 1);
        let native = Native::new(vec![device(10, None), device(70, None)]);
        assert_eq!(native.softirq.get(), 70);
        assert_eq!(native.with_softirq(Urgency::ORDINARY).softirq.get(), 0);
    }
}
