// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flood can take from tasks, at any rate, and the packets that can be taken from a device:
//! from what its top half may do.
use std::time::Duration;

use nix::time::{ClockId, clock_getres};
use serde::Serialize;
use weir_model::{LinuxMode, TopHalf};

use crate::system::{Node, NodeInterface};

/// What one interface can do to the tasks of the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Of the interface.
    pub interface: String,
    /// The share of a processor that its top half takes from any task in the long run, at any rate
    /// of packets; none: it has a place among the tasks instead.
    pub cap: Option<f64>,
    /// What one receive queue takes in each of the cap's periods beyond that, in seconds: the rest
    /// of a poll, which the kernel does not end and does not charge to it, by the costs in the file
    /// of as many packets as a poll has at most. None without a cap, or if the file states no
    /// costs.
    pub poll: Option<f64>,
    /// What one receive queue can take at once with that cap, in seconds: its run time, up to a
    /// tick of the kernel's clock if it ends only there, and `poll`. It waits the longer
    /// afterwards. None without a cap.
    pub at_once: Option<f64>,
    /// Its priority of SCHED_FIFO, 0 for SCHED_OTHER; none: it has a cap, which precedes all of
    /// them.
    pub urgency: Option<u8>,
    /// The receivers of the file to which no flood of this interface does more than interrupts and
    /// the cap, in the file's order.
    pub safe: Vec<String>,
    /// Those that a flood can take time from beyond that: they are not more urgent than what works
    /// for it. All their time; but in the mode exact with a cap, the bottom halves of as many
    /// packets as the cap lets through.
    pub exposed: Vec<String>,
    /// Interrupts of each queue a second, at most; none: packets are not deferred, so each may
    /// interrupt.
    pub interrupts_hz: Option<f64>,
    /// Packets a second that the top half can take; none: the file states no cost for them.
    pub capacity_hz: Option<f64>,
    /// The period of its cap in seconds, in each of which it takes as many packets as that is of
    /// them, however close they come; none without a cap.
    pub period: Option<f64>,
    /// Packets that each receive queue of the card has room for while the top half does not run;
    /// the card drops what comes then beyond that. None: the driver does not say.
    pub ring: Option<u32>,
}

impl Share {
    /// That of an interface of `node` whose receive queues will have room for `ring` packets. A cap
    /// ends at the next of the kernel's ticks, which come once in `tick`; zero: it ends when it is
    /// over.
    #[must_use]
    pub fn of(node: &Node, interface: &NodeInterface, tick: Duration, ring: Option<u32>) -> Self {
        let capped = match node.linux.top_half {
            Some(TopHalf::Cap { runtime, period }) => Some((runtime, period)),
            Some(TopHalf::Urgency(_)) | None => None,
        };
        let cap = capped.map(|(runtime, period)| runtime.as_secs_f64() / period.as_secs_f64());
        let urgency = match node.linux.top_half {
            _ if node.linux.mode == LinuxMode::Predicted => Some(node.most_of(interface).get()),
            Some(TopHalf::Cap { .. }) => None,
            Some(TopHalf::Urgency(urgency)) => Some(urgency),
            None => Some(node.urgency_of(interface).get()),
        };
        // In the mode exact the cap is of the top half alone, and each bottom half has its own
        // receiver's urgency; else the top half does it all.
        let most = match node.linux.mode {
            LinuxMode::Exact => urgency.max(Some(node.urgency_of(interface).get())),
            LinuxMode::Native | LinuxMode::Predicted => urgency,
        };
        let (safe, exposed) = node.receivers.iter().partition::<Vec<_>, _>(|receiver| {
            most.is_none_or(|most| receiver.urgency.get() > most)
        });
        let names =
            |of: Vec<&crate::system::NodeReceiver>| of.iter().map(|of| of.name.clone()).collect();
        let per_packet = match node.linux.mode {
            LinuxMode::Exact => interface.top_half,
            LinuxMode::Native | LinuxMode::Predicted => interface
                .top_half
                .map(|top| top + interface.bottom_half.unwrap_or_default())
                .or(interface.bottom_half),
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

/// How long the kernel's clock ticks: 1/CONFIG_HZ, by the resolution of the clocks that it sets
/// only then.
#[must_use]
pub fn tick() -> Duration {
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(LONGEST_TICK, Duration::from)
}

/// Packets that a thread takes at most before it can be preempted: the kernel's NAPI_POLL_WEIGHT,
/// which drivers keep. A task of SCHED_DEADLINE that is out of run time by then is charged nothing
/// for the rest (`update_curr_dl`: it has left its queue).
const MOST_OF_POLL: u32 = 64;

/// That of 100 Hz.
const LONGEST_TICK: Duration = Duration::from_millis(10);

fn per_second(time: Duration) -> f64 {
    1.0 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Linux;

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
        Share::of(
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
        // 64 packets of 5 us.
        assert_eq!(native.poll, Some(0.000_32));
        assert_eq!(native.at_once, Some(0.004_82));
        assert_eq!((native.period, native.ring), (Some(0.01), Some(256)));
        assert_eq!(native.safe, ["control", "plc", "log"]);
        let share = share(&node(LinuxMode::Exact, Some(top_half)));
        assert_eq!((share.cap, share.urgency), (Some(0.05), None));
        // The bottom halves are not in the cap.
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
    }
}
