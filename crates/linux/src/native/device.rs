// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wanted of one interface, and the settings and threads that it is wanted of.
use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::TopHalf;

use super::queue::Own;
use super::{Note, find, missing, policy};
use crate::sched::{Cpus, SchedPolicy};
use crate::settings::steering::FlowSpec;
use crate::settings::{
    NetDevice, OpenInterface, Setting, SettingError, Value, ethtool, netlink, steering,
};
use crate::threads::{KernelThread, Thread, Work};
use crate::urgency::Urgency;

/// How many polls without a packet end a deferral: after them the interface waits for an interrupt
/// again.
const EMPTY_POLLS: u32 = 2;

/// The least run time of SCHED_DEADLINE that the kernel takes.
pub(super) const LEAST_RUNTIME: Duration = Duration::from_nanos(1024);

/// What is wanted of one interface.
#[derive(Debug, Clone)]
pub struct Device {
    /// Which.
    pub interface: NetDevice,
    /// The urgency of the most urgent of its receivers.
    pub urgency: Urgency,
    /// What its threads may do; `None`: they have `urgency`.
    pub top_half: Option<TopHalf>,
    /// Its threads follow its receivers, up to this urgency, so that their policies are left alone
    /// here (the mode predicted); `None`: they do not.
    pub follows: Option<Urgency>,
    /// How long packets may wait for the next poll instead of an interrupt each; `None`: this is
    /// left as it is.
    pub deferral: Option<Duration>,
    /// How long the card gathers packets before an interrupt, in whole microseconds; `None`: this
    /// is left as it is. The queue of `steered` does not gather.
    pub gathering: Option<Duration>,
    /// Packets that each receive queue of the card has room for at least, or as many as it can
    /// have; `None`: this is left as it is.
    pub ring: Option<u32>,
    /// Packets that get the last receive queue for themselves, where the card can steer and has
    /// more than one.
    pub steered: Vec<FlowSpec>,
    /// The urgency of the most urgent receiver of other packets than those: what the threads of the
    /// other queues have, where it is known which they are.
    pub others: Urgency,
    /// The CPUs that do the stack's work for it, where the card does not spread it itself (veth);
    /// `None`: this is left as it is.
    pub spread: Option<Cpus>,
}

impl Device {
    /// An interface whose most urgent receiver is of `urgency`, with nothing else wanted.
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

    /// Whether the thread of a queue for the most urgent packets is scheduled otherwise than the
    /// rest. A stated place or cap is that of all of them.
    pub(super) fn tells_queues_apart(&self) -> bool {
        self.top_half.is_none() && self.follows.is_none() && self.others < self.urgency
    }

    /// What each of its `number` receiving threads is scheduled by: a cap is that of all together,
    /// since all can run on one CPU.
    pub(super) fn policy(&self, number: usize) -> SchedPolicy {
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
                SchedPolicy::Deadline {
                    runtime,
                    deadline: period,
                    period,
                }
            }
        }
    }

    /// The kernel threads that do its work now: those of its NAPI instances, and those of its
    /// interrupts where they have threads (PREEMPT_RT).
    ///
    /// Those of NAPI have the interface's name. One of another network namespace may be named
    /// alike, and any user may make it so: from Linux 6.8 on the kernel tells whose they are.
    ///
    /// # Errors
    /// When /proc cannot be read.
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
            // The kernel does not tell.
            return Ok(named);
        };
        // Of one that is down it tells none. What is no device has either none with a number or
        // all.
        let has_numberless = open.is_some_and(|open| {
            let is_device = || open.list("device").is_ok_and(|of| !of.is_empty());
            open.is_up().is_ok_and(|up| up) && (instances.is_empty() || is_device())
        });
        Ok(own(named, &instances, has_numberless))
    }

    /// The policies that `threads`, its own, are to have, if the NAPI instance `own` serves the
    /// most urgent packets alone.
    pub(super) fn policies(
        &self,
        threads: &[KernelThread],
        own: Option<u32>,
    ) -> Vec<(Setting, Value)> {
        let is_own =
            |thread: &KernelThread| matches!(thread.work, Work::Napi { id, .. } if Some(id) == own);
        if self.tells_queues_apart() && threads.iter().any(is_own) {
            // The threads of interrupts wake those of all queues.
            let of = |thread: &KernelThread| {
                if is_napi(thread) && !is_own(thread) {
                    self.others.policy()
                } else {
                    self.urgency.policy()
                }
            };
            let policies = threads.iter().map(|thread| policy(thread, of(thread)));
            return policies.collect();
        }
        let of_napi = || threads.iter().filter(|thread| is_napi(thread));
        // Where all look as if they only sent (tunnels), they receive.
        let all_send = of_napi().all(only_sends);
        let receives = |thread: &KernelThread| is_napi(thread) && (all_send || !only_sends(thread));
        let of_receiving = self.policy(threads.iter().filter(|thread| receives(thread)).count());
        // A thread of an interrupt wakes NAPI's and does no more, and what is sent is no flood's:
        // they precede nobody whom the interface's receivers do not precede, and take no part of a
        // cap.
        let of_others = match of_receiving {
            SchedPolicy::Deadline { .. } => self.urgency.policy(),
            policy => policy,
        };
        let of = |thread| {
            if receives(thread) {
                of_receiving
            } else {
                of_others
            }
        };
        threads
            .iter()
            .map(|thread| policy(thread, of(thread)))
            .collect()
    }
}

/// Those of `named` that are an interface's own, which has these NAPI instances with these threads.
///
/// If it may have threads of instances without a number, too, these are made together with those of
/// others: beside each of these the one that was made closest to it is taken, if that was in the
/// same second. Where no instance has a number (tunnels), nothing tells them apart.
fn own(
    named: Vec<KernelThread>,
    instances: &BTreeMap<u32, Option<u32>>,
    has_numberless: bool,
) -> Vec<KernelThread> {
    let number_of = |of: &KernelThread| {
        let is_its = |(_, thread): &(&u32, &Option<u32>)| **thread == of.thread.tid.try_into().ok();
        instances.iter().find(is_its).map(|(number, _)| *number)
    };
    let (told, others): (Vec<_>, Vec<_>) = named
        .into_iter()
        .partition(|of| is_napi(of) && number_of(of).is_some());
    let (napi, mut own): (Vec<_>, Vec<_>) = others.into_iter().partition(is_napi);
    let is_possible = |of: &KernelThread| has_numberless && only_sends(of);
    let mut numberless: Vec<_> = napi.into_iter().filter(is_possible).collect();
    if instances.is_empty() {
        own.append(&mut numberless);
    }
    for mut of in told {
        let Thread { tid, started } = of.thread;
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
        // One that was made before its instance had a number has none in its name.
        if let (Some(number), Work::Napi { id, .. }) = (number_of(&of), &mut of.work) {
            *id = number;
        }
        own.push(of);
    }
    own.sort();
    own
}

/// Whether it is of a NAPI instance; else it serves an interrupt.
pub(super) fn is_napi(thread: &KernelThread) -> bool {
    matches!(thread.work, Work::Napi { .. })
}

/// Whether it only cleans up after what was sent: the kernel gives instances that nobody may poll
/// for packets no number.
fn only_sends(thread: &KernelThread) -> bool {
    matches!(thread.work, Work::Napi { id: 0, .. })
}

/// The interface's own settings. The time of a deferral is set before the number that turns it on,
/// and put back after it.
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
    file("threaded".into(), "1".into());
    // Drivers make their queues anew for it, so it comes first, and is put back last.
    if let Some(packets) = device.ring {
        wanted.insert(0, ring(interface, &open, packets));
    }
    let own = Own::of(device, &open, notes);
    let queue = own.as_ref().map(|own| own.queue);
    wanted.extend(own.map(|own| own.wanted).unwrap_or_default());
    if let Some(time) = device.gathering {
        gathering(device, &open, time, queue, &mut wanted);
    }
    Ok(wanted)
}

/// Room for `packets` in each receive queue, or for as many as the card can have; never less than
/// there is.
fn ring(interface: &NetDevice, open: &OpenInterface, packets: u32) -> (Setting, Value) {
    let setting = Setting::Ring {
        interface: interface.clone(),
    };
    // Where it cannot be read it cannot be set: the caller notes that it is not there.
    let wanted = ethtool::ring(open).map_or(packets, |ring| ring.at_least(packets));
    (setting, Value::Packets(wanted))
}

/// Lets each queue but `steered` gather packets for `time`, or the whole card where its queues have
/// no settings of their own and none is steered.
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

/// The numbers of an interface's interrupts; none for one that is no device.
fn interrupts(open: &OpenInterface) -> Vec<u32> {
    // The PCI device below a virtio device has the interrupts; above a PCI device is a bridge,
    // whose interrupts are its own.
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_of_others_that_are_named_alike_are_none_of_its() {
        let thread = |tid, started, name| KernelThread {
            thread: Thread { tid, started },
            work: Work::of(name).unwrap(),
        };
        let named = || {
            vec![
                thread(1, 5_000, "napi/eth0-0"),
                thread(7, 9_000, "napi/eth0-8193"),
                thread(8, 9_001, "napi/eth0-0"),
                // Of an instance that got its number later.
                thread(9, 9_001, "napi/eth0-0"),
                thread(10, 9_002, "napi/eth0-0"),
                thread(20, 9_003, "napi/eth0-0"),
                thread(21, 9_003, "napi/eth0-8195"),
                thread(30, 1, "irq/24-virtio0"),
            ]
        };
        let tids = |instances: &[(u32, Option<u32>)]| -> Vec<_> {
            let own = own(named(), &instances.iter().copied().collect(), true);
            own.iter().map(|of| of.thread.tid).collect()
        };
        let (first, second) = ((8193, Some(7)), (8194, Some(9)));
        assert_eq!(tids(&[first, second]), [7, 8, 9, 10, 30]);
        assert_eq!(
            tids(&[first, second, (8195, Some(21))]),
            [7, 8, 9, 10, 20, 21, 30]
        );
        let numbered = own(named(), &[first, second].into(), true);
        assert_eq!(numbered[2].work, Work::of("napi/eth0-8194").unwrap());
        let told = own(named(), &[first, second].into(), false);
        assert_eq!(
            told.iter().map(|of| of.thread.tid).collect::<Vec<_>>(),
            [7, 9, 30]
        );
        // Not yet threaded, and one that has none but those.
        assert_eq!(tids(&[(4, None)]), [30]);
        assert_eq!(tids(&[]), [1, 8, 9, 10, 20, 30]);
        assert_eq!(own(named(), &BTreeMap::new(), false).len(), 1);
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
            work: Work::of(name).unwrap(),
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
                work: Work::of(name).unwrap(),
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
        // It is not known which thread that is, or not there.
        assert_eq!(priorities(&device, None), [40, 40, 40]);
        assert_eq!(priorities(&device, Some(9)), [40, 40, 40]);
        let placed = Device {
            top_half: Some(TopHalf::Urgency(20)),
            ..device
        };
        assert_eq!(priorities(&placed, Some(8194)), [20, 20, 20]);
    }
}
