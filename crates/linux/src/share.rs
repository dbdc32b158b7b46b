// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes what a flood of packets, at any rate, can take from tasks, and how many packets can be
//! received. Both follow from the limits of the top half.
use std::time::Duration;

use nix::time::{ClockId, clock_getres};
use serde::Serialize;
use weir_model::{INTERRUPT_URGENCY, LONGEST_TICK, MOST_OF_POLL, TopHalf};

use crate::system::{Node, NodeInterface};

/// Effect of one interface on the tasks of the file. A field about a cap is `None` if there is no
/// cap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Name of the interface.
    pub interface: String,
    /// Share of a processor that the interface's top half takes from any task in the long run, at
    /// any rate of packets. `None` means that the top half has an urgency among the tasks instead
    /// of a cap.
    pub cap: Option<f64>,
    /// Time beyond the cap that one receive queue takes in each period, in seconds. It is the rest
    /// of a poll, which the kernel neither ends nor charges. It is computed for the most packets of
    /// a poll, from the file's costs. `None` without a cap, or if the file states no costs.
    pub poll: Option<f64>,
    /// Time that one receive queue can take at one stretch in spite of the cap, in seconds: the run
    /// time of the cap, a tick of the kernel's clock if the kernel checks the cap only at ticks,
    /// and `poll`. After that the queue waits longer. `None` without a cap.
    pub at_once: Option<f64>,
    /// Priority of the top half in SCHED_FIFO, or 0 for SCHED_OTHER, or [`INTERRUPT_URGENCY`] if it
    /// has no thread. `None` with a cap, which precedes all priorities.
    pub urgency: Option<u8>,
    /// Names of the receivers from which a flood over this interface takes only the time of the
    /// interrupts and the cap, in the file's order.
    pub safe: Vec<String>,
    /// Names of the receivers from which a flood can take more, since they are not more urgent than
    /// the work for it. The flood can take all of their time. In mode exact with a cap it can take
    /// the time of the bottom halves of as many packets as the cap lets through.
    pub exposed: Vec<String>,
    /// Most interrupts per second of each queue. `None` if packets are not deferred, so that each
    /// may cause an interrupt.
    pub interrupts_hz: Option<f64>,
    /// Packets per second that the top half can receive. `None` if the file states no costs.
    pub capacity_hz: Option<f64>,
    /// Period of the cap, in seconds. In each period the top half receives the packets of that
    /// period, however close together they come. `None` without a cap.
    pub period: Option<f64>,
    /// Number of packets for which each receive queue of the card has room while the top half does
    /// not run. The card drops further packets. `None` if the driver does not report it.
    pub ring: Option<u32>,
}

impl Share {
    /// Computes the share of an interface of `node`. Its receive queues will have room for `ring`
    /// packets. A cap ends at the next tick of the kernel's clock, which has the period `tick`, or
    /// exactly if `tick` is zero.
    #[must_use]
    pub fn new(node: &Node, interface: &NodeInterface, tick: Duration, ring: Option<u32>) -> Self {
        let capped = match node.linux.top_half {
            Some(TopHalf::Cap { runtime, period }) => Some((runtime, period)),
            Some(TopHalf::Urgency(_) | TopHalf::Interrupt) | None => None,
        };
        let cap = capped.map(|(runtime, period)| runtime.as_secs_f64() / period.as_secs_f64());
        let facts = node.linux.mode.facts();
        let urgency = match node.linux.top_half {
            _ if facts.follows_receivers => Some(node.most_of(interface).get()),
            Some(TopHalf::Cap { .. }) => None,
            Some(TopHalf::Urgency(urgency)) => Some(urgency),
            Some(TopHalf::Interrupt) => Some(INTERRUPT_URGENCY),
            None => Some(node.urgency_of(interface).get()),
        };
        // In mode exact the cap applies to the top half alone, and each bottom half has its own
        // receiver's urgency. In the other modes the top half does all of the work.
        let most = if facts.demultiplexes {
            urgency.max(Some(node.urgency_of(interface).get()))
        } else {
            urgency
        };
        let (safe, exposed) = node.receivers.iter().partition::<Vec<_>, _>(|receiver| {
            most.is_none_or(|most| receiver.urgency.get() > most)
        });
        let names = |receivers: Vec<&crate::system::NodeReceiver>| {
            receivers
                .iter()
                .map(|receivers| receivers.name.clone())
                .collect()
        };
        let per_packet = if facts.demultiplexes {
            interface.top_half
        } else {
            interface
                .top_half
                .map(|top| top + interface.bottom_half.unwrap_or_default())
                .or(interface.bottom_half)
        };
        let poll = capped.and(per_packet.map(|time| time * MOST_OF_POLL));
        let at_once =
            capped.map(|(runtime, _)| (runtime + tick + poll.unwrap_or_default()).as_secs_f64());
        Self {
            interface: interface.name.clone(),
            cap,
            poll: poll.map(|time| time.as_secs_f64()),
            at_once,
            urgency,
            safe: names(safe),
            exposed: names(exposed),
            interrupts_hz: interface.deferral.map(per_second),
            capacity_hz: per_packet.map(|time| per_second(time) * cap.unwrap_or(1.0)),
            period: capped.map(|(_, period)| period.as_secs_f64()),
            ring,
        }
    }
}

/// Period of the kernel's clock, 1/CONFIG_HZ. It is the resolution of the clocks that advance only
/// at its ticks.
#[must_use]
pub fn tick() -> Duration {
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(LONGEST_TICK, Duration::from)
}

fn per_second(time: Duration) -> f64 {
    1.0 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Linux;
    use weir_model::LinuxMode;

    use crate::system::NodeReceiver;
    use crate::urgency::Urgency;

    fn node(mode: LinuxMode, top_half: Option<TopHalf>) -> Node {
        let receiver = |name: &str, urgency| NodeReceiver {
            name: name.to_owned(),
            urgency: Urgency::new(urgency).unwrap(),
            ..NodeReceiver::default()
        };
        Node {
            name: "node".to_owned(),
            linux: Linux {
                mode,
                top_half,
                ..Linux::default()
            },
            interfaces: vec![NodeInterface {
                name: "eth0".to_owned(),
                receivers: vec![1, 2],
                deferral: Some(Duration::from_millis(1)),
                top_half: Some(Duration::from_micros(2)),
                bottom_half: Some(Duration::from_micros(3)),
                ..NodeInterface::default()
            }],
            receivers: vec![
                receiver("control", 80),
                receiver("plc", 60),
                receiver("log", 0),
            ],
            ..Node::default()
        }
    }

    fn share(node: &Node) -> Share {
        Share::new(
            node,
            &node.interfaces[0],
            Duration::from_millis(4),
            Some(256),
        )
    }

    #[test]
    fn a_cap_bounds_what_any_task_loses() {
        let top_half = TopHalf::Cap {
            runtime: Duration::from_micros(500),
            period: Duration::from_millis(10),
        };
        let native = share(&node(LinuxMode::Native, Some(top_half)));
        assert_eq!((native.cap, native.urgency), (Some(0.05), None));
        // The most packets of a poll are 64, and each takes 5 us.
        assert_eq!(native.poll, Some(0.000_32));
        assert_eq!(native.at_once, Some(0.004_82));
        assert_eq!((native.period, native.ring), (Some(0.01), Some(256)));
        assert_eq!(native.safe, ["control", "plc", "log"]);
        let share = share(&node(LinuxMode::Exact, Some(top_half)));
        assert_eq!((share.cap, share.urgency), (Some(0.05), None));
        // In mode exact the cap does not include the bottom halves.
        assert_eq!(
            (share.safe, share.exposed.len()),
            (vec!["control".to_owned()], 2)
        );
        assert!((share.capacity_hz.unwrap() - 25_000.0).abs() < 1e-6);
        assert!((share.interrupts_hz.unwrap() - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_cap_only_more_urgent_tasks_are_safe() {
        let native = share(&node(LinuxMode::Native, None));
        assert_eq!((native.cap, native.urgency), (None, Some(60)));
        assert_eq!(
            (native.poll, native.at_once, native.period),
            (None, None, None)
        );
        assert_eq!(
            (native.safe, native.exposed),
            (
                vec!["control".to_owned()],
                vec!["plc".to_owned(), "log".to_owned()]
            )
        );
        assert!((native.capacity_hz.unwrap() - 200_000.0).abs() < 1e-6);
        let above = share(&node(LinuxMode::Native, Some(TopHalf::Urgency(90))));
        assert_eq!(above.exposed.len(), 3);
        let first = share(&node(LinuxMode::Exact, Some(TopHalf::Interrupt)));
        assert_eq!((first.cap, first.urgency), (None, Some(INTERRUPT_URGENCY)));
        assert_eq!((first.safe.len(), first.exposed.len()), (0, 3));
    }
}
