// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wanted state of one interface, and the settings and threads that belong to it.
use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::TopHalf;

use super::queue::UrgentQueue;
use super::{Note, find, missing, policy};
use crate::sched::{Cpus, SchedPolicy};
use crate::settings::steering::FlowSpec;
use crate::settings::{
    NetDevice, OpenInterface, Setting, SettingError, Value, ethtool, netlink, steering,
};
use crate::threads::{KernelThread, Thread, Work};
use crate::urgency::Urgency;

/// Number of polls in a row that find no packet before a deferral ends. The interface then waits
/// for an interrupt again.
const EMPTY_POLLS: u32 = 2;

/// Shortest run time of SCHED_DEADLINE that the kernel accepts.
pub(super) const LEAST_RUNTIME: Duration = Duration::from_nanos(1024);

/// Wanted state of one interface. A field that is `None` means that the setting is not changed.
#[derive(Debug, Clone)]
pub struct Device {
    /// The interface.
    pub interface: NetDevice,
    /// Urgency of the most urgent receiver of the interface.
    pub urgency: Urgency,
    /// Cap or urgency of the interface's threads. `None` means that they have `urgency`.
    pub top_half: Option<TopHalf>,
    /// Highest urgency of the interface's threads if they follow receivers (mode predicted). Their
    /// policies are not set here then. `None` means that they do not follow receivers.
    pub follows: Option<Urgency>,
    /// Time for which packets may wait for the next poll, instead of causing an interrupt each.
    pub deferral: Option<Duration>,
    /// Time for which the card gathers packets before an interrupt. It is rounded down to
    /// microseconds. It does not apply to the queue of `steered`.
    pub gathering: Option<Duration>,
    /// Number of packets for which each receive queue of the card has room. It is set to at least
    /// this number, or to the most that the card allows.
    pub ring: Option<u32>,
    /// Packets that get the last receive queue for themselves, if the card can steer packets and
    /// has more than one queue.
    pub steered: Vec<FlowSpec>,
    /// Urgency of the most urgent receiver of all packets other than `steered`. The threads of the
    /// other queues get this urgency if they are known.
    pub others: Urgency,
    /// CPUs that run the network stack for the interface's packets, if the card does not spread
    /// packets itself (veth).
    pub spread: Option<Cpus>,
}

impl Device {
    /// Creates the state of an interface whose most urgent receiver has `urgency`. No other setting
    /// changes.
    #[must_use]
    pub fn new(interface: NetDevice, urgency: Urgency) -> Self {
        Self {
            interface,
            urgency,
            top_half: None,
            follows: None,
            deferral: None,
            gathering: None,
            ring: None,
            steered: Vec::new(),
            others: urgency,
            spread: None,
        }
    }

    /// Whether the thread of the queue for the most urgent packets has a policy other than that of
    /// the other queues. If the file states an urgency or a cap, all threads have that.
    pub(super) fn tells_queues_apart(&self) -> bool {
        self.top_half.is_none() && self.follows.is_none() && self.others < self.urgency
    }

    /// Whether threads take the packets from the interface. Otherwise its interrupts do.
    pub(super) fn has_threads(&self) -> bool {
        self.top_half != Some(TopHalf::Interrupt)
    }

    /// Policy of each of the interface's receiving threads, of which there are `number`. A cap is
    /// divided by `number`, since all threads may run on one CPU.
    pub(super) fn policy(&self, number: usize) -> SchedPolicy {
        match self.top_half {
            // With `TopHalf::Interrupt` the policy is for the threads of interrupts (PREEMPT_RT).
            None | Some(TopHalf::Interrupt) => self.urgency.policy(),
            Some(TopHalf::Urgency(priority)) => {
                Urgency::new(priority).unwrap_or(Urgency::MOST).policy()
            }
            Some(TopHalf::Cap { runtime, period }) => {
                let parts = u32::try_from(number.max(1)).unwrap_or(u32::MAX);
                // The kernel refuses a run time that is too short. Run time and period are doubled
                // then, which keeps the share.
                let (mut runtime, mut period) = (runtime / parts, period);
                while runtime < LEAST_RUNTIME && !runtime.is_zero() {
                    runtime *= 2;
                    period *= 2;
                }
                SchedPolicy::Deadline {
                    runtime,
                    deadline: period,
                    period,
                }
            }
        }
    }

    /// Kernel threads that work for the interface now: those of its NAPI instances, and those of
    /// its interrupts where interrupts have threads (PREEMPT_RT).
    ///
    /// The names of NAPI threads contain the name of the interface. An interface of another network
    /// namespace may have the same name, and any user can create one. From Linux 6.8 on, the kernel
    /// reports which threads belong to which interface.
    ///
    /// # Errors
    /// Fails when /proc cannot be read.
    pub fn threads(&self) -> Result<Vec<KernelThread>, SettingError> {
        let open = self.interface.open().ok();
        let numbers = open.as_ref().map(interrupts).unwrap_or_default();
        let named = find(|work| match work {
            Work::Napi { interface, .. } => *interface == self.interface.name,
            Work::Irq { number, .. } => numbers.contains(number),
            _ => false,
        })?;
        let index = self.interface.index;
        let Ok(instances) = self.interface.inside(|| netlink::threads(index)) else {
            // The kernel does not report which threads belong to the interface, so their names
            // decide.
            return Ok(named);
        };
        // The kernel reports no instances of an interface that is down. The instances of an
        // interface without a device either all have a number or all have none.
        let has_numberless = open.is_some_and(|open| {
            let is_device = || open.list("device").is_ok_and(|names| !names.is_empty());
            open.is_up().is_ok_and(|up| up) && (instances.is_empty() || is_device())
        });
        Ok(select(named, &instances, has_numberless))
    }

    /// Policies of `threads`, which belong to the interface. `own` is the number of the NAPI
    /// instance that serves only the most urgent packets, or `None` if there is no such instance.
    pub(super) fn policies(
        &self,
        threads: &[KernelThread],
        own: Option<u32>,
    ) -> Vec<(Setting, Value)> {
        let is_own =
            |thread: &KernelThread| matches!(thread.work, Work::Napi { id, .. } if Some(id) == own);
        if self.tells_queues_apart() && threads.iter().any(is_own) {
            // Threads of interrupts get the highest urgency, since they wake the threads of all
            // queues.
            let policy_of = |thread: &KernelThread| {
                if is_napi(thread) && !is_own(thread) {
                    self.others.policy()
                } else {
                    self.urgency.policy()
                }
            };
            let policies = threads
                .iter()
                .map(|thread| policy(thread, policy_of(thread)));
            return policies.collect();
        }
        let of_napi = || threads.iter().filter(|thread| is_napi(thread));
        // If all instances seem only to send (tunnels), they receive, too.
        let all_send = of_napi().all(only_sends);
        let receives = |thread: &KernelThread| is_napi(thread) && (all_send || !only_sends(thread));
        let of_receiving = self.policy(threads.iter().filter(|thread| receives(thread)).count());
        // Threads of interrupts only wake NAPI threads, and threads that only send handle no
        // packets of a flood. So both have the urgency of the interface's receivers, and no part of
        // a cap.
        let of_others = match of_receiving {
            SchedPolicy::Deadline { .. } => self.urgency.policy(),
            policy => policy,
        };
        let policy_of = |thread| {
            if receives(thread) {
                of_receiving
            } else {
                of_others
            }
        };
        threads
            .iter()
            .map(|thread| policy(thread, policy_of(thread)))
            .collect()
    }
}

/// Selects the threads of `named` that belong to an interface. `instances` are the interface's NAPI
/// instances, each with the number of its thread.
///
/// The interface may also have instances without a number (`has_numberless`). The kernel creates
/// their threads together with the others. So for each thread with a number, the closest thread
/// without one is included, if both were created within the same second. If no instance has a
/// number (tunnels), all threads of the name are included, since nothing distinguishes them.
fn select(
    named: Vec<KernelThread>,
    instances: &BTreeMap<u32, Option<u32>>,
    has_numberless: bool,
) -> Vec<KernelThread> {
    let number_of = |thread: &KernelThread| {
        let serves = |(_, tid): &(&u32, &Option<u32>)| **tid == thread.thread.tid.try_into().ok();
        instances.iter().find(serves).map(|(number, _)| *number)
    };
    let (numbered, others): (Vec<_>, Vec<_>) = named
        .into_iter()
        .partition(|thread| is_napi(thread) && number_of(thread).is_some());
    let (napi, mut own): (Vec<_>, Vec<_>) = others.into_iter().partition(is_napi);
    let is_possible = |thread: &KernelThread| has_numberless && only_sends(thread);
    let mut numberless: Vec<_> = napi.into_iter().filter(is_possible).collect();
    if instances.is_empty() {
        own.append(&mut numberless);
    }
    for mut thread in numbered {
        let Thread { tid, started } = thread.thread;
        let apart = |one: &KernelThread| {
            let one = one.thread;
            (one.started.abs_diff(started), one.tid.abs_diff(tid))
        };
        let closest = (0..numberless.len()).min_by_key(|at| apart(&numberless[*at]));
        if let Some(at) =
            closest.filter(|at| apart(&numberless[*at]).0 <= procfs::ticks_per_second())
        {
            own.push(numberless.remove(at));
        }
        // A thread that was created before its instance got a number has the number 0 in its name.
        if let (Some(number), Work::Napi { id, .. }) = (number_of(&thread), &mut thread.work) {
            *id = number;
        }
        own.push(thread);
    }
    own.sort();
    own
}

/// Whether the thread serves a NAPI instance. Otherwise it serves an interrupt.
pub(super) fn is_napi(thread: &KernelThread) -> bool {
    matches!(thread.work, Work::Napi { .. })
}

/// Whether the thread only cleans up after sending. The kernel gives no number to NAPI instances
/// that are never polled for packets.
fn only_sends(thread: &KernelThread) -> bool {
    matches!(thread.work, Work::Napi { id: 0, .. })
}

/// Settings of the interface itself. The time of a deferral is set before the number that turns the
/// deferral on, so the time is restored after the number.
pub(super) fn settings(
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
    file(
        "threaded".into(),
        u8::from(device.has_threads()).to_string(),
    );
    // Drivers create their queues anew when the ring changes, so the ring is set first and restored
    // last.
    if let Some(packets) = device.ring {
        wanted.insert(0, ring(interface, &open, packets));
    }
    let own = UrgentQueue::find(device, &open, notes);
    let queue = own.as_ref().map(|own| own.queue);
    wanted.extend(own.map(|own| own.wanted).unwrap_or_default());
    if let Some(time) = device.gathering {
        gathering(device, &open, time, queue, &mut wanted);
    }
    Ok(wanted)
}

/// The setting of the receive ring and its value: room for `packets` in each receive queue, or the
/// most that the card allows, but never less than now.
fn ring(interface: &NetDevice, open: &OpenInterface, packets: u32) -> (Setting, Value) {
    let setting = Setting::Ring {
        interface: interface.clone(),
    };
    // If the value cannot be read, it cannot be set either, and the caller notes that the setting
    // is missing.
    let wanted = ethtool::ring(open).map_or(packets, |ring| ring.at_least(packets));
    (setting, Value::Packets(wanted))
}

/// Lets each queue but `steered` gather packets for `time`. If the queues have no settings of their
/// own, the whole card gathers packets, unless one of its queues is steered.
fn gathering(
    device: &Device,
    open: &OpenInterface,
    time: Duration,
    steered: Option<u32>,
    wanted: &mut Vec<(Setting, Value)>,
) {
    let microseconds = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let queues = steering::queues(open).unwrap_or(0);
    let own = queues > 0 && ethtool::coalescing(open, Some(0)).is_ok();
    let gathering_queues: Vec<Option<u32>> = match steered {
        _ if own => (0..queues)
            .filter(|queue| steered != Some(*queue))
            .map(Some)
            .collect(),
        Some(_) => return,
        None => vec![None],
    };
    for queue in gathering_queues {
        let setting = Setting::Coalescing {
            interface: device.interface.clone(),
            queue,
        };
        // If the value cannot be read, it cannot be set either, and the caller notes that the
        // setting is missing.
        let now = ethtool::coalescing(open, queue).unwrap_or_default();
        let value = Value::Coalescing(now.with_receive_microseconds(microseconds));
        wanted.push((setting, value));
    }
}

/// Numbers of an interface's interrupts. The list is empty if the interface has no device.
fn interrupts(open: &OpenInterface) -> Vec<u32> {
    // The interrupts of a virtio device belong to the PCI device that is its parent. The parent of
    // a PCI device is a bridge, which has interrupts of its own.
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
        // The number 0 means that there is no interrupt.
        .filter(|number| *number != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_of_others_that_are_named_alike_are_none_of_its() {
        let thread = |tid, started, name| KernelThread {
            thread: Thread { tid, started },
            work: Work::parse(name).unwrap(),
        };
        let named = || {
            vec![
                thread(1, 5_000, "napi/eth0-0"),
                thread(7, 9_000, "napi/eth0-8193"),
                thread(8, 9_001, "napi/eth0-0"),
                // The instance of this thread got its number after the thread was created.
                thread(9, 9_001, "napi/eth0-0"),
                thread(10, 9_002, "napi/eth0-0"),
                thread(20, 9_003, "napi/eth0-0"),
                thread(21, 9_003, "napi/eth0-8195"),
                thread(30, 1, "irq/24-virtio0"),
            ]
        };
        let tids = |instances: &[(u32, Option<u32>)]| -> Vec<_> {
            let own = select(named(), &instances.iter().copied().collect(), true);
            own.iter().map(|thread| thread.thread.tid).collect()
        };
        let (first, second) = ((8193, Some(7)), (8194, Some(9)));
        assert_eq!(tids(&[first, second]), [7, 8, 9, 10, 30]);
        assert_eq!(
            tids(&[first, second, (8195, Some(21))]),
            [7, 8, 9, 10, 20, 21, 30]
        );
        let numbered = select(named(), &[first, second].into(), true);
        assert_eq!(numbered[2].work, Work::parse("napi/eth0-8194").unwrap());
        let selected = select(named(), &[first, second].into(), false);
        assert_eq!(
            selected
                .iter()
                .map(|thread| thread.thread.tid)
                .collect::<Vec<_>>(),
            [7, 9, 30]
        );
        // One instance has no thread yet. The second interface has only instances without a number.
        assert_eq!(tids(&[(4, None)]), [30]);
        assert_eq!(tids(&[]), [1, 8, 9, 10, 20, 30]);
        assert_eq!(select(named(), &BTreeMap::new(), false).len(), 1);
    }

    #[test]
    fn what_only_sends_takes_no_part_of_a_cap() {
        let interface = NetDevice {
            name: "eth0".to_owned(),
            index: 2,
            device: None,
            namespace: 1,
            path: None,
        };
        let cap = TopHalf::Cap {
            runtime: Duration::from_micros(500),
            period: Duration::from_millis(10),
        };
        let device = Device {
            top_half: Some(cap),
            ..Device::new(interface, Urgency::new(40).unwrap())
        };
        let thread = |name: &str| KernelThread {
            thread: Thread { tid: 1, started: 0 },
            work: Work::parse(name).unwrap(),
        };
        let runtimes = |names: &[&str]| -> Vec<Option<u128>> {
            let threads: Vec<_> = names.iter().map(|name| thread(name)).collect();
            let policies = device.policies(&threads, None).into_iter();
            policies
                .map(|(_, value)| match value {
                    Value::Policy(SchedPolicy::Deadline { runtime, .. }) => {
                        Some(runtime.as_micros())
                    }
                    value => {
                        assert_eq!(value, Value::Policy(SchedPolicy::Fifo(40)));
                        None
                    }
                })
                .collect()
        };
        assert_eq!(
            runtimes(&["napi/eth0-0", "napi/eth0-8193", "irq/24-virtio0"]),
            [None, Some(500), None]
        );
        assert_eq!(
            runtimes(&["napi/eth0-8193", "napi/eth0-8194"]),
            [Some(250), Some(250)]
        );
        assert_eq!(
            runtimes(&["napi/eth0-0", "napi/eth0-0"]),
            [Some(250), Some(250)]
        );
    }

    #[test]
    fn the_thread_of_the_urgent_packets_is_above_the_others() {
        let interface = NetDevice {
            name: "eth0".to_owned(),
            index: 2,
            device: None,
            namespace: 1,
            path: None,
        };
        let urgency = |number| Urgency::new(number).unwrap();
        let device = Device {
            others: urgency(10),
            ..Device::new(interface, urgency(40))
        };
        let threads =
            ["napi/eth0-8193", "napi/eth0-8194", "irq/24-eth0"].map(|name| KernelThread {
                thread: Thread { tid: 1, started: 0 },
                work: Work::parse(name).unwrap(),
            });
        let priorities = |device: &Device, own| -> Vec<u8> {
            let policies = device.policies(&threads, own).into_iter();
            policies
                .map(|(_, value)| match value {
                    Value::Policy(SchedPolicy::Fifo(priority)) => priority,
                    value => panic!("{value}"),
                })
                .collect()
        };
        assert_eq!(priorities(&device, Some(8194)), [10, 40, 40]);
        // The thread of the queue for the most urgent packets is unknown or does not exist.
        assert_eq!(priorities(&device, None), [40, 40, 40]);
        assert_eq!(priorities(&device, Some(9)), [40, 40, 40]);
        let placed = Device {
            top_half: Some(TopHalf::Urgency(20)),
            ..device
        };
        assert_eq!(priorities(&placed, Some(8194)), [20, 20, 20]);
    }
}
