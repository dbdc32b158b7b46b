// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode native: the settings that the kernel itself has, set so that an interface's bottom halves
//! run at the urgency of its most urgent receiver.
//!
//! The NAPI of each interface gets threads, which are scheduled like processes (zhang2006 §3,
//! without a patch of the kernel). If a card can steer packets, its most urgent packets get a queue
//! of their own. Then only the thread of that queue has the urgency of their receivers (lee2010's
//! demultiplexing, done by the card). An interrupt wakes the thread directly, without a soft
//! interrupt.
//!
//! So ksoftirqd keeps its policy. In an overload the kernel leaves the packets of other interfaces
//! to ksoftirqd. With a higher urgency, it would take time from every less urgent process of the
//! machine, at any rate of packets for anybody (decision 0016). In two cases it gets the urgency of
//! the most urgent receiver: where Weir itself moves the stack's work to other CPUs as a soft
//! interrupt ([`Device::spread`]), and where the file wants no threads ([`TopHalf::Interrupt`]). In
//! these cases ksoftirqd takes the interface's own packets in an overload.
//!
//! [`TopHalf::Interrupt`]: weir_model::TopHalf::Interrupt
//!
//! Deferral bounds the rate of interrupts, which precede all processes. On PREEMPT_RT the timer of
//! a deferral is handled by a thread (ktimers). That thread gets the urgency of the most urgent
//! receiver, too. Otherwise any real-time process that does not sleep would hold up the packets.
//!
//! A flood takes only the time of the interrupts from a process that is more urgent than the
//! interface's receivers. From other processes, a cap bounds what a flood can take. It uses
//! SCHED_DEADLINE: at any rate of packets, all threads of an interface together run for `runtime`
//! in each `period`, in the long run. So the processes lose at most that share of a CPU, plus one
//! interrupt of each queue per deferral time, plus one poll of each queue per period, which the
//! kernel neither ends nor charges ([`crate::share::Share::poll`]). At one stretch they lose
//! `runtime` plus a tick of the kernel's clock, since the kernel checks the cap at its ticks. The
//! card drops packets above the cap before they cost anything.
mod device;
mod queue;

use std::fmt;

use crate::sched::SchedPolicy;
use crate::settings::{ApplyOutcome, Journal, JournalError, Setting, SettingError, Value};
use crate::threads::{self, KernelThread, Work};
use crate::urgency::Urgency;

pub use device::Device;
use device::is_napi;
use queue::UrgentQueue;

/// A wish of the file that this machine cannot fulfil, or a side effect of a change.
#[derive(Debug, thiserror::Error)]
pub enum Note {
    /// The driver or the kernel has no such setting, or the interface or thread has gone.
    #[error(transparent)]
    Missing(SettingError),
    /// Somebody else has changed the setting since Weir did.
    #[error("{setting} was changed to {found} by somebody else, and stays so")]
    Foreign {
        /// The setting.
        setting: Setting,
        /// The value that it has now.
        found: Value,
    },
    /// The interface has no NAPI of its own. Its packets are received as a soft interrupt on the
    /// CPU that sends them (veth).
    #[error(
        "{0} has no NAPI instance now, so no thread receives its packets (veth has one with GRO on, or with an XDP program)"
    )]
    NoThread(String),
    /// The kernel has no timer for the end of a cap, or does not allow turning the timer on.
    #[error(
        "a cap ends at a tick of the kernel's clock: {0} (mount -t debugfs debug /sys/kernel/debug)"
    )]
    NoCapTimer(SettingError),
    /// The card cannot steer packets to a queue.
    #[error(
        "{0} cannot steer packets to a queue of their own: {1} (some drivers can after `ethtool -K {0} ntuple on`)"
    )]
    NoSteering(String, String),
    /// The card refuses a setting that its driver has.
    #[error("{0}; it stays as it is")]
    Refused(SettingError),
    /// Packets that no rule matches also arrive in the queue of the steered packets.
    #[error("queue {queue} of {interface} is not for the most urgent packets alone: {reason}")]
    Shared {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
        /// Reason why the driver does not change how it spreads packets.
        reason: String,
    },
    /// It is not known which thread serves the queue of the steered packets.
    #[error(
        "the driver of {interface} does not tell which thread serves queue {queue} (from Linux 6.8 on some do), so all have the urgency of its most urgent receiver"
    )]
    NoInstance {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// Changing the receive ring of this interface may take its link down. This note appears only
    /// in a plan.
    #[error("a driver may take the link of {0} down for a moment to change its receive ring")]
    Link(String),
}

/// A setting that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting.
    pub setting: Setting,
    /// Value before the change.
    pub from: Value,
    /// Value after the change.
    pub to: Value,
}

/// The changes that the mode would make, or has made.
#[derive(Debug, Default)]
pub struct NativeReport {
    /// Settings that differ from the wanted values, in the order in which they change. A plan has
    /// only the settings that are known before NAPI has threads.
    pub changes: Vec<SettingChange>,
    /// Threads for which a plan has no single new value. The list is empty in a report of changes
    /// that were made.
    pub expected: Vec<ThreadChange>,
    /// Wishes that cannot be fulfilled, and side effects.
    pub notes: Vec<Note>,
}

/// Threads whose scheduling changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadChange {
    /// The threads.
    pub threads: Threads,
    /// Name of the interface that the threads belong to.
    pub interface: String,
    /// The new scheduling of the threads.
    pub scheduled: Scheduling,
}

/// Which threads of an interface change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Threads {
    /// An existing thread. The fields are the setting of its policy, and the value now.
    One(Setting, Value),
    /// All NAPI threads of the interface, which do not exist yet.
    All,
    /// The thread of one receive queue, which does not exist yet.
    OfQueue(u32),
    /// The threads of all queues but the one in [`Threads::OfQueue`], which do not exist yet.
    OfOthers,
}

/// How threads are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The threads have this policy. All threads of an interface together have one cap.
    By(SchedPolicy),
    /// The threads have the urgency of the receiver that they follow, up to this urgency.
    Following(Urgency),
}

impl fmt::Display for Scheduling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(policy) => policy.fmt(formatter),
            Self::Following(most) => write!(formatter, "its receivers', up to {}", most.policy()),
        }
    }
}

/// Mode native for some interfaces.
#[derive(Debug, Clone)]
pub struct Native {
    devices: Vec<Device>,
    softirq: Urgency,
    cap_timer: bool,
    receive_buffer: Option<u32>,
}

/// The setting, and the value that turns on the timer with which SCHED_DEADLINE ends a thread's run
/// time. Otherwise the kernel checks the run time only at the ticks of its clock.
#[must_use]
pub fn cap_timer() -> (Setting, Value) {
    let name = "HRTICK_DL".to_owned();
    let on = Value::Text(name.clone());
    (Setting::Feature { name }, on)
}

/// The setting of the receive buffer of new sockets, and its value: `bytes`, but never less than
/// now.
fn receive_buffer(bytes: u32) -> (Setting, Value) {
    let path = "net/core/rmem_default".to_owned();
    let setting = Setting::Sysctl { path };
    let is_enough = |now: Value| match now {
        Value::Text(text) => text.parse().ok().filter(|&now: &u32| now >= bytes),
        _ => None,
    };
    // If the value cannot be read, the error is reported when the setting is applied.
    let more = setting.value().ok().and_then(is_enough);
    (setting, Value::Text(more.unwrap_or(bytes).to_string()))
}

impl Native {
    /// Creates mode native for `devices`. The urgency of the most urgent receiver of all devices,
    /// at least 1, is also given to other threads: to those of timers if a device defers
    /// interrupts; to ksoftirqd and the CPUs' backlog threads if the work of a device is spread
    /// over CPUs; and to ksoftirqd if a device has no threads.
    #[must_use]
    pub fn new(devices: Vec<Device>) -> Self {
        let softirq = devices
            .iter()
            .map(|device| device.urgency.get())
            .fold(1, u8::max);
        Self {
            devices,
            softirq: Urgency::new(softirq).unwrap_or(Urgency::MOST),
            cap_timer: false,
            receive_buffer: None,
        }
    }

    /// Sets whether a timer ends caps ([`cap_timer`]).
    #[must_use]
    pub fn with_cap_timer(mut self, cap_timer: bool) -> Self {
        self.cap_timer = cap_timer;
        self
    }

    /// Sets the least receive buffer of new sockets that do not set their own, in bytes.
    #[must_use]
    pub fn with_receive_buffer(mut self, bytes: Option<u32>) -> Self {
        self.receive_buffer = bytes;
        self
    }

    /// Sets the urgency of the threads of soft interrupts. With urgency 0 they are ordinary, so a
    /// real-time process that does not sleep holds up their work.
    #[must_use]
    pub fn with_softirq(mut self, urgency: Urgency) -> Self {
        self.softirq = urgency;
        self
    }

    /// Computes the changes that [`Self::apply`] would make.
    ///
    /// # Errors
    /// Fails when a setting cannot be read.
    pub fn plan(&self) -> Result<NativeReport, SettingError> {
        let mut report = NativeReport::default();
        let list = |report: &mut NativeReport, wanted: Vec<(Setting, Value)>| {
            for (setting, to) in wanted {
                match setting.value() {
                    Ok(from) if from == to => {}
                    Ok(from) => report.changes.push(SettingChange { setting, from, to }),
                    Err(error) => report.notes.push(missing(error)?),
                }
            }
            Ok(())
        };
        list(&mut report, self.softirqs()?)?;
        list(&mut report, self.of_machine())?;
        for device in &self.devices {
            let wanted = device::settings(device, &mut report.notes)?;
            list(&mut report, wanted)?;
            let threads = device.threads()?;
            let own = urgent_queue(device, &mut report.notes);
            let mut expected = |threads, scheduled| {
                report.expected.push(ThreadChange {
                    threads,
                    interface: device.interface.name.clone(),
                    scheduled,
                });
            };
            if device.has_threads() && !threads.iter().any(is_napi) {
                match (device.follows, &own) {
                    (Some(most), _) => expected(Threads::All, Scheduling::Following(most)),
                    (None, None) => expected(Threads::All, Scheduling::By(device.policy(1))),
                    (None, Some(own)) => {
                        let by = |urgency: Urgency| Scheduling::By(urgency.policy());
                        expected(Threads::OfQueue(own.queue), by(device.urgency));
                        expected(Threads::OfOthers, by(device.others));
                    }
                }
            }
            match device.follows {
                None => {
                    let instance = own.and_then(|own| own.instance);
                    list(&mut report, device.policies(&threads, instance))?;
                }
                Some(most) => {
                    for thread in &threads {
                        let setting = Setting::policy(thread);
                        match setting.value() {
                            Ok(now) => {
                                expected(Threads::One(setting, now), Scheduling::Following(most))
                            }
                            Err(error) => report.notes.push(missing(error)?),
                        }
                    }
                }
            }
        }
        let rings = report
            .changes
            .iter()
            .filter_map(|change| match &change.setting {
                Setting::Ring { interface } => Some(Note::Link(interface.name.clone())),
                _ => None,
            });
        report.notes.extend(rings);
        Ok(report)
    }

    /// Applies all settings through `journal`, which restores them later. A setting that this
    /// machine does not have is noted in the report, and is no error.
    ///
    /// Call it again whenever interfaces may have changed, since an interface that was taken down
    /// and up has new threads.
    ///
    /// # Errors
    /// Fails when another run has one of the interfaces, when the journal cannot be written, or
    /// when the kernel refuses an existing setting. The kernel does that without CAP_NET_ADMIN or
    /// CAP_SYS_NICE, and for a cap for which the CPUs have no room. The journal still has all
    /// settings that were changed before the error.
    pub fn apply(&self, journal: &mut Journal) -> Result<NativeReport, JournalError<Setting>> {
        let mut report = NativeReport::default();
        let softirqs = self.softirqs().map_err(JournalError::Setting)?;
        for device in &self.devices {
            journal.lock_interface(&device.interface)?;
        }
        set(journal, &mut report, softirqs)?;
        set(journal, &mut report, self.of_machine())?;
        for device in &self.devices {
            let wanted =
                device::settings(device, &mut report.notes).map_err(JournalError::Setting)?;
            set(journal, &mut report, wanted)?;
            let threads = device.threads().map_err(JournalError::Setting)?;
            if device.has_threads() && !threads.iter().any(is_napi) {
                report
                    .notes
                    .push(Note::NoThread(device.interface.name.clone()));
            }
            if device.follows.is_none() {
                // The threads of the queues differ only if the card has accepted all of its rules.
                let own =
                    urgent_queue(device, &mut report.notes).filter(|own| own.wanted.is_empty());
                let instance = own.and_then(|own| own.instance);
                set(journal, &mut report, device.policies(&threads, instance))?;
            }
        }
        Ok(report)
    }

    /// Settings that exist once for the whole machine.
    fn of_machine(&self) -> Vec<(Setting, Value)> {
        let timer = self.cap_timer.then(cap_timer);
        let buffer = self.receive_buffer.map(receive_buffer);
        timer.into_iter().chain(buffer).collect()
    }

    /// Policies for the threads of soft interrupts. The list is empty if there are no devices.
    fn softirqs(&self) -> Result<Vec<(Setting, Value)>, SettingError> {
        if self.devices.is_empty() {
            return Ok(Vec::new());
        }
        let found = find(|work| self.is_softirq(work))?;
        Ok(found
            .iter()
            .map(|thread| policy(thread, self.softirq.policy()))
            .collect())
    }

    /// Whether a thread with this work handles soft interrupts that the devices wait for.
    fn is_softirq(&self, work: &Work) -> bool {
        match work {
            Work::SoftIrq { .. } => {
                let waits = |device: &Device| device.spread.is_some() || !device.has_threads();
                self.devices.iter().any(waits)
            }
            Work::Backlog { .. } => self.devices.iter().any(|device| device.spread.is_some()),
            Work::Timers { .. } => self.devices.iter().any(|device| device.deferral.is_some()),
            Work::Napi { .. } | Work::Irq { .. } | Work::CpuMap { .. } => false,
        }
    }
}

/// The queue of `device`'s most urgent packets. `None` if its thread has no policy of its own, or
/// is not known.
fn urgent_queue(device: &Device, notes: &mut Vec<Note>) -> Option<UrgentQueue> {
    if !device.tells_queues_apart() {
        return None;
    }
    let open = device.interface.open().ok()?;
    // If the card refuses rules, the function `settings` adds the note.
    let own = UrgentQueue::find(device, &open, &mut Vec::new())?;
    if own.instance.is_none() {
        notes.push(Note::NoInstance {
            interface: device.interface.name.clone(),
            queue: own.queue,
        });
        return None;
    }
    Some(own)
}

fn set(
    journal: &mut Journal,
    report: &mut NativeReport,
    wanted: Vec<(Setting, Value)>,
) -> Result<(), JournalError<Setting>> {
    let mut is_steered = true;
    for (setting, to) in wanted {
        if !is_steered && matches!(setting, Setting::Spread { .. }) {
            // If the card has refused the rules, spreading the other packets over the other queues
            // would leave this queue idle.
            continue;
        }
        let changed = setting
            .value()
            .map_err(JournalError::Setting)
            .and_then(|from| Ok((from, journal.apply(&setting, &to)?)));
        match changed {
            Ok((from, ApplyOutcome::Changed)) => {
                report.changes.push(SettingChange { setting, from, to })
            }
            Ok((_, ApplyOutcome::Already)) => {}
            Err(JournalError::Setting(error)) => {
                is_steered &= !matches!(setting, Setting::Steering { .. });
                let note = missing(error).map_err(JournalError::Setting)?;
                report.notes.push(note);
            }
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
        SettingError::Absent(Setting::Feature { .. }) => Ok(Note::NoCapTimer(error)),
        SettingError::Absent(_) | SettingError::Vanished(_) => Ok(Note::Missing(error)),
        SettingError::Refused {
            ref setting,
            error: ref answer,
        } if is_cards(setting) && answer.raw_os_error() != Some(libc::EPERM) => {
            Ok(Note::Refused(error))
        }
        error => Err(error),
    }
}

/// Whether the values that are allowed for this setting depend on the card.
fn is_cards(setting: &Setting) -> bool {
    matches!(
        setting,
        Setting::Steering { .. }
            | Setting::Spread { .. }
            | Setting::Coalescing { .. }
            | Setting::Ring { .. }
    )
}

fn policy(thread: &KernelThread, policy: SchedPolicy) -> (Setting, Value) {
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
    use crate::settings::NetDevice;

    fn device(urgency: u8, top_half: Option<TopHalf>) -> Device {
        let interface = NetDevice {
            name: "eth0".to_owned(),
            index: 2,
            device: None,
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
        assert_eq!(device(40, None).policy(2), SchedPolicy::Fifo(40));
        assert_eq!(device(0, None).policy(1), SchedPolicy::Other { nice: 0 });
        assert_eq!(
            device(40, Some(TopHalf::Urgency(3))).policy(1),
            SchedPolicy::Fifo(3)
        );
    }

    #[test]
    fn a_cap_is_that_of_all_threads_together() {
        let share = |runtime: Duration, period, threads: usize| {
            let cap = TopHalf::Cap { runtime, period };
            let SchedPolicy::Deadline {
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
    fn the_timer_of_caps_is_turned_on_if_it_is_asked_for() {
        let native = Native::new(vec![device(40, None)]);
        assert_eq!(native.of_machine(), []);
        let timers = native.with_cap_timer(true).of_machine();
        let [(Setting::Feature { name }, Value::Text(on))] = &timers[..] else {
            panic!("{timers:?}");
        };
        assert_eq!((name.as_str(), on.as_str()), ("HRTICK_DL", "HRTICK_DL"));
    }

    #[test]
    fn a_receive_buffer_is_never_made_smaller() {
        // In a network namespace other than the first, this setting may be missing.
        if receive_buffer(1).0.value().is_err() {
            crate::skipped::skipped("net.core.rmem_default cannot be set here");
            return;
        }
        let wanted = |bytes| {
            let native = Native::new(vec![device(40, None)]).with_receive_buffer(Some(bytes));
            let wanted = native.of_machine();
            let [(setting, Value::Text(text))] = &wanted[..] else {
                panic!("{wanted:?}");
            };
            (setting.value().unwrap(), text.parse::<u32>().unwrap())
        };
        let (now, smallest) = wanted(1);
        assert_eq!(now, Value::Text(smallest.to_string()));
        assert_eq!(wanted(smallest + 1).1, smallest + 1);
    }

    #[test]
    fn ksoftirqd_does_not_stay_ordinary() {
        assert_eq!(Native::new(vec![device(0, None)]).softirq.get(), 1);
        let native = Native::new(vec![device(10, None), device(70, None)]);
        assert_eq!(native.softirq.get(), 70);
        assert_eq!(native.with_softirq(Urgency::ORDINARY).softirq.get(), 0);
    }

    #[test]
    fn soft_interrupts_are_urgent_only_where_packets_wait_for_one() {
        let are_softirqs = |deferral, spread: Option<&str>| {
            let deferring = Device {
                deferral,
                spread: spread.map(|cpus| cpus.parse().unwrap()),
                ..device(70, None)
            };
            let native = Native::new(vec![device(10, None), deferring]);
            let is_softirq = |name| native.is_softirq(&Work::parse(name).unwrap());
            ["ksoftirqd/0", "backlog_napi/0", "ktimers/0", "napi/eth0-1"].map(is_softirq)
        };
        let some = Some(Duration::from_micros(50));
        // The first two threads also handle the packets of other interfaces, so they change only if
        // packets are spread.
        assert_eq!(are_softirqs(None, None), [false, false, false, false]);
        assert_eq!(are_softirqs(some, None), [false, false, true, false]);
        assert_eq!(are_softirqs(None, Some("0-1")), [true, true, false, false]);
        let native = Native::new(vec![device(70, Some(TopHalf::Interrupt))]);
        let is_softirq = |name| native.is_softirq(&Work::parse(name).unwrap());
        assert!(is_softirq("ksoftirqd/0") && !is_softirq("backlog_napi/0"));
    }
}
