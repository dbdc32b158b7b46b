// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects when an overload begins and ends, and its cause. Each overload is reported once, however
//! long it lasts.
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use weir_report::{count, percent};

use crate::receivers::PacketKey;

/// Limits beyond which there is an overload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Share of a CPU that interrupts may take, above 0 and at most 1.
    pub share: f64,
    /// Share of an interface's packets that may be dropped, above 0. It counts the packets that are
    /// dropped before the kernel has spent more than the top half on them.
    pub dropped: f64,
    /// Part of each limit, from 0 to 1. An overload ends when all values have been below this part
    /// of their limits for `quiet`, so that it does not end and begin with every burst.
    pub end: f64,
    /// Time below the limits after which an overload ends.
    pub quiet: Duration,
}

impl Default for Limits {
    /// The limits are half of a CPU and 1 % dropped; the overload ends after 5 s below 80 % of
    /// them.
    fn default() -> Self {
        Self {
            share: 0.5,
            dropped: 0.01,
            end: 0.8,
            quiet: Duration::from_secs(5),
        }
    }
}

/// Packets in an interval: those of one interface, or those of all queues of mode exact.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that were dropped for lack of room.
    pub dropped: u64,
    /// Packets per second that the system file tolerates (`rate.tolerated` of the sources). `None`
    /// if it states no number.
    pub tolerated: Option<f64>,
}

/// Shortest interval that is judged. Two packets in 17 ms are not a rate of 119 per second.
const SHORTEST: Duration = Duration::from_millis(500);

/// What was measured in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LoadSample {
    /// Length of the interval.
    pub elapsed: Duration,
    /// Share of each CPU that interrupts took, from 0 to 1, by the number of the CPU.
    pub shares: BTreeMap<u32, f64>,
    /// Traffic by the interface's name.
    pub traffic: BTreeMap<String, Traffic>,
}

impl LoadSample {
    /// Joins the measurements of two consecutive intervals.
    fn join(mut self, next: &Self) -> Self {
        let elapsed = self.elapsed + next.elapsed;
        let part =
            |length: Duration| length.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let (before, after) = (part(self.elapsed), part(next.elapsed));
        for share in self.shares.values_mut() {
            *share *= before;
        }
        for (cpu, share) in &next.shares {
            *self.shares.entry(*cpu).or_default() += share * after;
        }
        for (name, more) in &next.traffic {
            let all = self.traffic.entry(name.clone()).or_default();
            all.received += more.received;
            all.dropped += more.dropped;
            all.tolerated = more.tolerated;
        }
        self.elapsed = elapsed;
        self
    }
}

/// Cause of an overload.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Cause {
    /// Interrupts take too much of a CPU.
    Cpu {
        /// Number of the CPU.
        cpu: u32,
        /// Share of the CPU.
        share: f64,
    },
    /// Packets are dropped.
    Drops {
        /// Name of the interface or queue.
        at: String,
        /// Dropped packets per second.
        hertz: f64,
    },
    /// More packets arrive than the system file tolerates.
    Rate {
        /// Name of the interface.
        at: String,
        /// Arriving packets per second.
        hertz: f64,
        /// Packets per second that the file tolerates.
        tolerated: f64,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { cpu, share } => {
                write!(
                    formatter,
                    "interrupts have {} of CPU {cpu}",
                    percent(*share)
                )
            }
            Self::Drops { at, hertz } => {
                write!(formatter, "{at} drops {} packets/s", count(*hertz as u64))
            }
            Self::Rate {
                at,
                hertz,
                tolerated,
            } => write!(
                formatter,
                "{at} brings {} packets/s, and the system file tolerates {}",
                count(*hertz as u64),
                count(*tolerated as u64)
            ),
        }
    }
}

/// The flow for which most of the interrupt time was spent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Culprit {
    /// Protocol and port. `None` stands for the packets that no socket receives.
    pub key: Option<PacketKey>,
    /// Name of the interface. `None` if it is not known.
    pub interface: Option<String>,
    /// Packets of the flow per second.
    pub hertz: f64,
    /// Share of the interrupt time that was spent for the flow, at most 1.
    pub share: f64,
    /// The receiving process, or the first if there are several. `None` if there is none.
    pub receiver: Option<ReceiverProcess>,
    /// Number of receiving processes beyond `receiver`.
    pub others: usize,
}

/// A process that receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceiverProcess {
    /// Number of the process.
    pub pid: u32,
    /// Name of its program: the first 15 bytes.
    pub command: String,
    /// Path of its control group.
    pub cgroup: String,
}

impl fmt::Display for Culprit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            Some(key) => write!(formatter, "{key}")?,
            None => formatter.write_str("packets that no socket gets")?,
        }
        if let Some(interface) = &self.interface {
            write!(formatter, " from {interface}")?;
        }
        if let Some(receiver) = &self.receiver {
            let ReceiverProcess {
                pid,
                command,
                cgroup,
            } = receiver;
            write!(formatter, " for {command} (process {pid}, {cgroup})")?;
        }
        if self.others > 0 {
            write!(formatter, " and {} more", self.others)?;
        }
        write!(
            formatter,
            ": {} packets/s, {} of the interrupt time",
            count(self.hertz as u64),
            percent(self.share)
        )
    }
}

/// The begin or the end of an overload.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An overload begins.
    Begins {
        /// The cause by which the overload was detected.
        cause: Cause,
        /// The flow for which most time was spent. `None` if packets are not counted.
        culprit: Option<Culprit>,
    },
    /// The overload has ended.
    Ends {
        /// Duration of the overload.
        after: Duration,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begins { cause, culprit } => {
                write!(formatter, "overload: {cause}")?;
                match culprit {
                    Some(culprit) => write!(formatter, "; most of it is {culprit}"),
                    None => formatter.write_str("; whose packets these are is not known"),
                }
            }
            Self::Ends { after } => {
                write!(
                    formatter,
                    "the overload has ended after {} s",
                    after.as_secs()
                )
            }
        }
    }
}

/// Watches the measurements for an overload.
#[derive(Debug)]
pub(super) struct Watch {
    limits: Limits,
    /// Measurements that have not been judged yet.
    pending: LoadSample,
    /// Duration of the overload, and the time since a limit was last exceeded. `None` if there is
    /// no overload.
    overload: Option<(Duration, Duration)>,
}

impl Watch {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            pending: LoadSample::default(),
            overload: None,
        }
    }

    /// Judges an interval, and returns an event if an overload begins or ends. The event has no
    /// culprit yet; the caller adds it. A short interval is judged together with the following
    /// ones.
    pub fn look(&mut self, seen: &LoadSample) -> Option<Event> {
        let seen = std::mem::take(&mut self.pending).join(seen);
        if seen.elapsed < SHORTEST {
            self.pending = seen;
            return None;
        }
        self.judge(&seen)
    }

    fn judge(&mut self, seen: &LoadSample) -> Option<Event> {
        let Some((lasted, quiet)) = &mut self.overload else {
            let cause = self.limits.cause(seen, 1.0)?;
            self.overload = Some((seen.elapsed, Duration::ZERO));
            let culprit = None;
            return Some(Event::Begins { cause, culprit });
        };
        *lasted += seen.elapsed;
        if self.limits.cause(seen, self.limits.end).is_some() {
            *quiet = Duration::ZERO;
            return None;
        }
        *quiet += seen.elapsed;
        if *quiet < self.limits.quiet {
            return None;
        }
        let after = lasted.saturating_sub(*quiet);
        self.overload = None;
        Some(Event::Ends { after })
    }

    /// Whether there is an overload now.
    pub fn is_overloaded(&self) -> bool {
        self.overload.is_some()
    }
}

impl Limits {
    /// Looks for a value above `part` of its limit: first the CPU with the largest share, then the
    /// interfaces by name.
    fn cause(&self, seen: &LoadSample, part: f64) -> Option<Cause> {
        let worst = seen.shares.iter().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((&cpu, &share)) = worst.filter(|(_, share)| **share >= self.share * part) {
            return Some(Cause::Cpu { cpu, share });
        }
        let seconds = seen.elapsed.as_secs_f64();
        seen.traffic.iter().find_map(|(at, traffic)| {
            let (received, dropped) = (traffic.received as f64, traffic.dropped as f64);
            let all = received + dropped;
            if dropped > 0.0 && dropped >= all * self.dropped * part {
                let hertz = dropped / seconds;
                return Some(Cause::Drops {
                    at: at.clone(),
                    hertz,
                });
            }
            let hertz = all / seconds;
            let tolerated = traffic
                .tolerated
                .filter(|tolerated| hertz > tolerated * part)?;
            Some(Cause::Rate {
                at: at.clone(),
                hertz,
                tolerated,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receivers::Protocol;

    fn share(share: f64) -> LoadSample {
        LoadSample {
            elapsed: Duration::from_secs(1),
            shares: BTreeMap::from([(0, 0.1), (1, share)]),
            ..LoadSample::default()
        }
    }

    fn traffic(received: u64, dropped: u64, tolerated: Option<f64>) -> LoadSample {
        let traffic = Traffic {
            received,
            dropped,
            tolerated,
        };
        LoadSample {
            traffic: BTreeMap::from([("eth0".to_owned(), traffic)]),
            ..share(0.0)
        }
    }

    fn begins(event: Option<Event>) -> String {
        match event {
            Some(Event::Begins { cause, .. }) => cause.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn an_overload_is_told_once_and_ends_when_it_has_been_quiet() {
        let mut watch = Watch::new(Limits::default());
        assert_eq!(watch.look(&share(0.49)), None);
        let event = watch.look(&share(0.5));
        assert_eq!(begins(event), "interrupts have 50.0 % of CPU 1");
        // Neither a further rise, nor a short rest, nor a value slightly below the limit causes an
        // event.
        for seen in [0.9, 0.1, 0.1, 0.1, 0.1, 0.45, 0.1, 0.1, 0.1, 0.1] {
            assert_eq!(watch.look(&share(seen)), None, "{seen}");
            assert!(watch.is_overloaded());
        }
        let after = Duration::from_secs(7);
        assert_eq!(watch.look(&share(0.1)), Some(Event::Ends { after }));
        assert!(!watch.is_overloaded());
        assert!(watch.look(&share(0.6)).is_some());
    }

    #[test]
    fn what_comes_in_a_short_time_is_judged_with_what_follows() {
        let brief = |seen: LoadSample, milliseconds| LoadSample {
            elapsed: Duration::from_millis(milliseconds),
            ..seen
        };
        let mut watch = Watch::new(Limits::default());
        // If this interval were judged alone, two packets in 17 ms would be 119 per second.
        assert_eq!(watch.look(&brief(traffic(2, 0, Some(100.0)), 17)), None);
        assert_eq!(watch.look(&brief(share(1.0), 17)), None);
        assert_eq!(watch.look(&traffic(90, 0, Some(100.0))), None);
        // Intervals of a quarter of a second are judged together.
        let event = (0..8).find_map(|_| watch.look(&brief(share(0.6), 250)));
        assert_eq!(begins(event), "interrupts have 60.0 % of CPU 1");
        let quarter = brief(traffic(26, 0, Some(100.0)), 250);
        let mut watch = Watch::new(Limits::default());
        let event = (0..8).find_map(|_| watch.look(&quarter));
        assert_eq!(
            begins(event),
            "eth0 brings 104 packets/s, and the system file tolerates 100"
        );
    }

    #[test]
    fn drops_and_rates_are_overloads_too() {
        let cause = |seen| begins(Watch::new(Limits::default()).look(&seen));
        assert_eq!(cause(traffic(9_900, 100, None)), "eth0 drops 100 packets/s");
        assert_eq!(cause(traffic(9_901, 99, None)), "None");
        assert_eq!(cause(traffic(0, 0, None)), "None");
        assert_eq!(
            cause(traffic(2_000, 0, Some(1_500.0))),
            "eth0 brings 2,000 packets/s, and the system file tolerates 1,500"
        );
        assert_eq!(cause(traffic(1_500, 0, Some(1_500.0))), "None");
    }

    #[test]
    fn the_culprit_is_named_with_all_that_is_known() {
        let culprit = Culprit {
            key: Some(PacketKey {
                protocol: Protocol::Udp,
                port: 5001,
            }),
            interface: Some("eth0".to_owned()),
            hertz: 120_000.0,
            share: 0.71,
            receiver: Some(ReceiverProcess {
                pid: 1234,
                command: "iperf".to_owned(),
                cgroup: "/system.slice/iperf.service".to_owned(),
            }),
            others: 1,
        };
        let cause = Cause::Cpu {
            cpu: 0,
            share: 0.83,
        };
        let event = Event::Begins {
            cause,
            culprit: Some(culprit),
        };
        assert_eq!(
            event.to_string(),
            "overload: interrupts have 83.0 % of CPU 0; most of it is udp 5001 from eth0 for iperf (process 1234, /system.slice/iperf.service) and 1 more: \
             120,000 packets/s, 71.0 % of the interrupt time"
        );
    }
}
