// SPDX-License-Identifier: MIT OR Apache-2.0
//! The difference between two readings of the counters: a pool of time for each place, which can
//! then be divided over packets.
use std::collections::BTreeMap;

use super::divide::{Pool, apportion};
use super::layout::{Delivery, HandlerPlace, MapOverflow, SocketKey, Spent, since};
use super::programs::Counters;
use crate::receivers::{PacketKey, Protocol};

/// Stands for the CPU if it is not known on which CPU a thread ran.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Receiver of packets, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Destination {
    /// The socket that received the packets.
    Socket(SocketKey),
    /// Whoever reads this port. Mode exact gave the packets to the class of the port, so their
    /// socket is not known.
    Key(PacketKey),
}

impl Destination {
    /// Protocol and port. `None` if the protocol is neither TCP nor UDP.
    pub fn key(self) -> Option<PacketKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Socket(SocketKey { port, protocol, .. }) => {
                let protocol = u8::try_from(protocol)
                    .ok()
                    .and_then(Protocol::from_number)?;
                Some(PacketKey { protocol, port })
            }
        }
    }
}

/// Kernel threads that do the work of interrupts, by thread number, with the run time of each.
pub(super) type Workers = BTreeMap<u32, RunTime>;

/// Run time of a kernel thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunTime {
    /// Time in ns, as the kernel reports it.
    pub time: u64,
    /// Whether the time excludes device handlers that interrupted the thread.
    pub without_handlers: bool,
    /// Whether the time excludes soft interrupts in the thread's context.
    pub without_soft: bool,
}

/// The measured time by what it was spent on, in ns. The fields are those of
/// [`InterruptTime`](super::report::InterruptTime).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Breakdown {
    pub device: u64,
    pub others: u64,
    pub receive: u64,
    pub soft: u64,
    pub overhead: u64,
    pub threads: u64,
    pub lost: u64,
}

impl Breakdown {
    pub fn total(&self) -> u64 {
        let Self {
            device,
            others,
            receive,
            soft,
            overhead,
            threads,
            lost,
        } = self;
        device + others + receive + soft + overhead + threads + lost
    }

    pub fn add(&mut self, more: &Self) {
        self.device += more.device;
        self.others += more.others;
        self.receive += more.receive;
        self.soft += more.soft;
        self.overhead += more.overhead;
        self.threads += more.threads;
        self.lost += more.lost;
    }
}

/// The difference between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MeasuredInterval {
    pub parts: Breakdown,
    pub pools: Vec<Pool<Destination>>,
    pub interrupts: u64,
    pub lost: MapOverflow,
    /// Places whose counters have not changed since the reading before.
    pub idle_places: Vec<HandlerPlace>,
    pub idle_deliveries: Vec<Delivery>,
}

#[derive(Default)]
struct IntervalCounts {
    spent: Spent,
    delivered: BTreeMap<Destination, u64>,
}

impl IntervalCounts {
    fn packets(&self) -> u64 {
        let delivered: u64 = self.delivered.values().sum();
        delivered.saturating_add(self.spent.polled)
    }
}

/// Computes the difference between two readings. `workers` are the run times of kernel threads in
/// between. Each interrupt took `overhead` ns in addition to its measured time.
pub(super) fn between(
    before: &Counters,
    now: &Counters,
    workers: &Workers,
    overhead: u64,
) -> MeasuredInterval {
    let mut interval = MeasuredInterval {
        lost: now.lost - before.lost,
        ..MeasuredInterval::default()
    };
    let mut places: BTreeMap<HandlerPlace, IntervalCounts> = BTreeMap::new();
    for (place, spent) in &now.spent {
        let more = *spent - before.spent.get(place).copied().unwrap_or_default();
        if more == Spent::default() {
            interval.idle_places.push(*place);
        } else {
            places.entry(*place).or_default().spent = more;
        }
    }
    for (delivery, count) in &now.deliveries {
        let more = since(
            *count,
            before.deliveries.get(delivery).copied().unwrap_or(0),
        );
        if more == 0 {
            interval.idle_deliveries.push(*delivery);
        } else {
            let counted = places.entry(delivery.place).or_default();
            counted
                .delivered
                .insert(Destination::Socket(delivery.socket), more);
        }
    }
    interval.parts.lost = interval.lost.time;
    interval.interrupts = places
        .values()
        .map(|counted| counted.spent.interrupts)
        .sum();
    let mut of_workers: BTreeMap<u32, Vec<(u32, IntervalCounts)>> =
        workers.keys().map(|host| (*host, Vec::new())).collect();
    for (place, counted) in places {
        if let Some(of_worker) = of_workers.get_mut(&place.host) {
            of_worker.push((place.cpu, counted));
            continue;
        }
        let Spent {
            device,
            others,
            receive,
            soft,
            interrupts,
            ..
        } = counted.spent;
        let added = interrupts.saturating_mul(overhead);
        interval.parts.overhead += added;
        // The overhead is booked as a whole. If some of the interrupts came from network devices,
        // most of them did.
        let (with_packets, without) = if device > 0 { (added, 0) } else { (0, added) };
        interval.parts.device += device;
        interval.parts.others += others;
        interval.parts.receive += receive;
        interval.parts.soft += soft;
        let time = device + receive + with_packets;
        let pool = pool(place, time, others + soft + without, counted);
        interval.pools.push(pool);
    }
    for (host, counted) in of_workers {
        let ran = workers.get(&host).copied().unwrap_or_default();
        interval.worker(host, ran, counted);
    }
    interval
}

fn pool(place: HandlerPlace, time: u64, apart: u64, counted: IntervalCounts) -> Pool<Destination> {
    Pool {
        host: place.host,
        cpu: place.cpu,
        time,
        apart,
        polled: counted.spent.polled,
        delivered: counted.delivered,
    }
}

impl MeasuredInterval {
    /// Adds the pools of a kernel thread. Only the sum of its run time is known. The sum is divided
    /// over the CPUs in proportion to the packets that the thread handled on each.
    fn worker(&mut self, host: u32, ran: RunTime, mut places: Vec<(u32, IntervalCounts)>) {
        if places.is_empty() {
            if ran.time == 0 {
                return;
            }
            places.push((NOWHERE, IntervalCounts::default()));
        }
        let mut time = ran.time;
        for (_, IntervalCounts { spent, .. }) in &places {
            if ran.without_handlers {
                time += spent.device + spent.others;
            }
            if ran.without_soft {
                time += spent.receive + spent.soft;
            }
        }
        self.parts.threads += time;
        let has_packets = places.iter().any(|(_, counted)| counted.packets() > 0);
        let weights: Vec<u64> = places
            .iter()
            .map(|(_, counted)| if has_packets { counted.packets() } else { 1 })
            .collect();
        let times = apportion(time, weights);
        for ((cpu, counted), time) in places.into_iter().zip(times) {
            let apart = time.min(counted.spent.others + counted.spent.soft);
            let place = HandlerPlace {
                cpu,
                host,
                is_kernel: true,
            };
            self.pools.push(pool(place, time - apart, apart, counted));
        }
    }

    /// Interrupt time of each CPU, in ns, by the CPU's number.
    pub fn cpus(&self) -> BTreeMap<u32, u64> {
        let mut cpus = BTreeMap::new();
        for pool in &self.pools {
            if pool.cpu != NOWHERE {
                *cpus.entry(pool.cpu).or_default() += pool.time + pool.apart;
            }
        }
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: SocketKey = SocketKey {
        cookie: 9,
        interface: 2,
        port: 5000,
        protocol: 17,
    };

    fn place(cpu: u32, host: u32) -> HandlerPlace {
        HandlerPlace {
            cpu,
            host,
            is_kernel: false,
        }
    }

    fn counters(spent: &[(HandlerPlace, Spent)], delivered: &[(HandlerPlace, u64)]) -> Counters {
        let deliveries = delivered.iter().map(|(place, count)| {
            let (place, socket) = (*place, SOCKET);
            (Delivery { place, socket }, *count)
        });
        Counters {
            spent: spent.iter().copied().collect(),
            deliveries: deliveries.collect(),
            lost: MapOverflow::default(),
        }
    }

    fn spent(device: u64, receive: u64, soft: u64, polled: u64) -> Spent {
        Spent {
            device,
            receive,
            soft,
            polled,
            interrupts: u64::from(device > 0),
            ..Spent::default()
        }
    }

    #[test]
    fn a_process_hosts_what_was_measured_in_its_time() {
        let before = counters(&[(place(0, 7), spent(1, 1, 1, 1))], &[]);
        let now = counters(
            &[
                (place(0, 7), spent(11, 101, 6, 4)),
                (place(1, 8), Spent::default()),
            ],
            &[(place(0, 7), 3)],
        );
        let interval = between(&before, &now, &Workers::new(), 0);
        let [pool] = &interval.pools[..] else {
            panic!("{interval:?}")
        };
        assert_eq!((pool.host, pool.cpu), (7, 0));
        assert_eq!((pool.time, pool.apart, pool.polled), (110, 5, 3));
        assert_eq!(
            pool.delivered,
            BTreeMap::from([(Destination::Socket(SOCKET), 3)])
        );
        assert_eq!(interval.parts.total(), 115);
        assert_eq!(interval.idle_places, [place(1, 8)]);
        assert_eq!(interval.cpus(), BTreeMap::from([(0, 115)]));
        assert_eq!(between(&now, &now, &Workers::new(), 0).pools, []);
    }

    #[test]
    fn an_interrupt_takes_more_than_is_measured_of_it() {
        let other = Spent {
            others: 5,
            interrupts: 2,
            ..Spent::default()
        };
        let now = counters(
            &[(place(0, 7), spent(11, 0, 0, 1)), (place(0, 8), other)],
            &[],
        );
        let interval = between(&Counters::default(), &now, &Workers::new(), 100);
        let pools = interval.pools.iter();
        let times: Vec<_> = pools.map(|pool| (pool.time, pool.apart)).collect();
        assert_eq!(times, [(111, 0), (0, 205)]);
        assert_eq!(
            (interval.parts.overhead, interval.parts.total()),
            (300, 316)
        );
    }

    #[test]
    fn a_thread_is_known_by_what_it_ran() {
        let now = counters(
            &[
                (place(0, 40), spent(5, 0, 10, 30)),
                (place(1, 40), spent(0, 0, 0, 10)),
            ],
            &[],
        );
        let ran = RunTime {
            time: 1000,
            ..RunTime::default()
        };
        let with = |ran| between(&Counters::default(), &now, &Workers::from([(40, ran)]), 9);
        let times = |interval: &MeasuredInterval| {
            let pools = interval.pools.iter();
            pools
                .map(|pool| (pool.time, pool.apart))
                .collect::<Vec<_>>()
        };
        let interval = with(ran);
        assert_eq!(times(&interval), [(740, 10), (250, 0)]);
        assert_eq!(interval.parts.total(), 1000);
        // The kernel's run time excludes this time, so it is added.
        let interval = with(RunTime {
            without_handlers: true,
            without_soft: true,
            ..ran
        });
        assert_eq!(interval.parts.total(), 1015);
    }

    #[test]
    fn a_thread_that_was_seen_nowhere_ran_all_the_same() {
        let ran = RunTime {
            time: 10,
            ..RunTime::default()
        };
        let workers = Workers::from([(40, ran), (41, RunTime::default())]);
        let interval = between(&Counters::default(), &Counters::default(), &workers, 9);
        assert_eq!(interval.parts.total(), 10);
        assert_eq!(interval.pools.len(), 1);
        assert_eq!(interval.cpus(), BTreeMap::new());
    }
}
