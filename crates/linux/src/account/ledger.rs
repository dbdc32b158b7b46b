// SPDX-License-Identifier: MIT OR Apache-2.0
//! The books of each process: the interrupt time that was spent for it, and the interrupt time that
//! was taken from it. The account of core/ keeps them (`core/include/weir/account.h`, zhang2006
//! §3.1). That account works in clock ticks. Here each pool is one tick: it has the work that was
//! done, the receivers of that work, and the process whose time it took.
use std::collections::{BTreeMap, BTreeSet};

use weir_core_sys::account::{Account, Config, Mode};

use super::divide::{Shares, apportion};
use super::interval::{Destination, MeasuredInterval};
use super::layout::SocketKey;
use crate::receivers::PacketKey;

/// Resolution of the times in /proc, in ns: sysconf(_SC_CLK_TCK) is 100 on all processors that Weir
/// supports.
const TICK: u64 = 10_000_000;
/// The only device in core's account. That account distinguishes devices in its measured mode,
/// which is not needed here.
const DEVICE: usize = 0;

/// The account of a process. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Interrupt time that was spent for the process, in the time of any process.
    pub received: u64,
    /// The part of `received` that was spent in the process's own time.
    pub own: u64,
    /// Interrupt time that was spent in the process's own time, for any process.
    pub hosted: u64,
    /// Packets that the process's sockets received.
    pub packets: u64,
}

impl Sums {
    /// Interrupt time that was spent for the process while another one ran, or while the CPU was
    /// idle.
    pub fn charged(&self) -> u64 {
        self.received - self.own
    }

    /// Interrupt time that was taken from the process for others.
    pub fn taken(&self) -> u64 {
        self.hosted - self.own
    }

    pub fn add(&mut self, more: &Self) {
        self.received += more.received;
        self.own += more.own;
        self.hosted += more.hosted;
        self.packets += more.packets;
    }
}

/// The packets for one port that came from one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PortFlow {
    /// Protocol and port. `None` if the protocol is neither TCP nor UDP.
    pub key: Option<PacketKey>,
    /// Index of the interface in its network namespace; 0 if it is not known.
    pub interface: u32,
    /// Cookie of the network namespace; 0 if it is not known.
    pub namespace: u64,
}

/// The processes that receive packets, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Readers {
    /// Cookie of the socket's network namespace; 0 if it is not known.
    pub namespace: u64,
    /// Numbers of the processes.
    pub readers: BTreeSet<u32>,
}

impl PortFlow {
    fn new(to: Destination, namespace: u64) -> Self {
        let key = to.key();
        match to {
            Destination::Key(_) => Self {
                key,
                interface: 0,
                namespace,
            },
            Destination::Socket(SocketKey { interface, .. }) => Self {
                key,
                interface,
                namespace,
            },
        }
    }
}

/// Costs of a flow. Times are in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FlowCosts {
    pub time: u64,
    /// Packets that sockets received.
    pub packets: u64,
    pub readers: BTreeSet<u32>,
}

/// Sums of everything that was measured. Times are in ns, with the names of
/// [`AccountReport`](super::report::AccountReport).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub received: u64,
    pub orphans: u64,
    pub unattributed: u64,
    pub packets: u64,
    pub orphan_packets: u64,
}

/// What was booked for one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bookings {
    pub flows: BTreeMap<PortFlow, FlowCosts>,
    pub totals: Totals,
}

/// The books of all processes of the machine.
pub(super) struct Ledger {
    account: Account,
    /// Index of each process in core's account, by process number.
    slots: BTreeMap<u32, usize>,
    free: Vec<usize>,
    packets: BTreeMap<u32, u64>,
    ended: Sums,
    ended_processes: u64,
    totals: Totals,
}

impl Ledger {
    pub fn new() -> Self {
        let config = Config {
            mode: Mode::Measured,
            cycles_per_tick: TICK,
            gamma: Config::GAMMA,
        };
        Self {
            account: Account::new(0, 1, &config)
                .expect("a tick of 10 ms is one of 2^36 ns at most"),
            slots: BTreeMap::new(),
            free: Vec::new(),
            packets: BTreeMap::new(),
            ended: Sums::default(),
            ended_processes: 0,
            totals: Totals::default(),
        }
    }

    /// Books an interval. `readers_of` returns the processes that a packet was for. `is_process`
    /// says whether a host is a process. Kernel threads and the idle task are none: an interrupt in
    /// their time takes nothing from anybody.
    pub fn book(
        &mut self,
        interval: &MeasuredInterval,
        shares: &[Shares<Destination>],
        readers_of: impl Fn(Destination) -> Readers,
        is_process: impl Fn(u32) -> bool,
    ) -> Bookings {
        let mut booked = Bookings::default();
        let totals = &mut booked.totals;
        for (pool, shares) in interval.pools.iter().zip(shares) {
            totals.orphans += shares.orphans;
            totals.unattributed += shares.unattributed;
            totals.orphan_packets += shares.orphan_packets;
            self.account
                .handled(DEVICE, None, shares.orphans + shares.unattributed);
            for (to, time) in &shares.received {
                let Readers { namespace, readers } = readers_of(*to);
                let packets = pool.delivered.get(to).copied().unwrap_or(0);
                totals.packets += packets;
                let of_flow = booked
                    .flows
                    .entry(PortFlow::new(*to, namespace))
                    .or_default();
                of_flow.time += time;
                of_flow.packets += packets;
                of_flow.readers.extend(&readers);
                if readers.is_empty() {
                    totals.unattributed += time;
                    self.account.handled(DEVICE, None, *time);
                    continue;
                }
                totals.received += time;
                // It is not known yet which of the readers will read a packet, so they share the
                // cost equally.
                let equal = readers.iter().map(|_| 1);
                let (times, counts) = (apportion(*time, equal.clone()), apportion(packets, equal));
                for ((reader, time), count) in readers.iter().zip(times).zip(counts) {
                    let slot = self.slot(*reader);
                    self.account.handled(DEVICE, Some(slot), time);
                    *self.packets.entry(*reader).or_default() += count;
                }
            }
            let host = is_process(pool.host).then(|| self.slot(pool.host));
            // The result says how many ticks to give back to the process. A stock kernel cannot do
            // that.
            let _ = self.account.tick(host);
        }
        totals.unattributed += interval.lost.time;
        self.totals.received += totals.received;
        self.totals.orphans += totals.orphans;
        self.totals.unattributed += totals.unattributed;
        self.totals.packets += totals.packets;
        self.totals.orphan_packets += totals.orphan_packets;
        booked
    }

    fn slot(&mut self, pid: u32) -> usize {
        if let Some(slot) = self.slots.get(&pid) {
            return *slot;
        }
        let slot = self
            .free
            .pop()
            .unwrap_or_else(|| self.account.add_process());
        self.slots.insert(pid, slot);
        slot
    }

    /// Numbers of all processes that have an account.
    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.keys().copied()
    }

    /// Account of a process; zero if the process has none.
    pub fn sums(&self, pid: u32) -> Sums {
        let Some(slot) = self.slots.get(&pid) else {
            return Sums::default();
        };
        let report = self.account.process(*slot);
        Sums {
            received: report.received,
            own: report.own,
            hosted: report.hosted,
            packets: self.packets.get(&pid).copied().unwrap_or(0),
        }
    }

    /// Closes the account of a process that has ended, and adds it to the sum of all ended
    /// processes.
    pub fn end(&mut self, pid: u32) {
        let sums = self.sums(pid);
        let Some(slot) = self.slots.remove(&pid) else {
            return;
        };
        self.packets.remove(&pid);
        self.account.exit(slot);
        self.free.push(slot);
        self.ended.add(&sums);
        self.ended_processes += 1;
    }

    /// Number of processes that have ended, and the sum of their accounts.
    pub fn ended(&self) -> (u64, Sums) {
        (self.ended_processes, self.ended)
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::divide::{Pool, divide};
    use super::super::interval::Breakdown;
    use super::*;
    use crate::receivers::Protocol;

    const fn port(port: u16) -> Destination {
        Destination::Key(PacketKey {
            protocol: Protocol::Udp,
            port,
        })
    }

    /// The reader of a port is the process with the same number. Port 0 has no reader, and port 9
    /// has the readers 1 and 2.
    fn readers_of(to: Destination) -> Readers {
        let readers = match to {
            Destination::Key(PacketKey { port: 0, .. }) | Destination::Socket(_) => BTreeSet::new(),
            Destination::Key(PacketKey { port: 9, .. }) => BTreeSet::from([1, 2]),
            Destination::Key(PacketKey { port, .. }) => BTreeSet::from([u32::from(port)]),
        };
        Readers {
            namespace: 0,
            readers,
        }
    }

    fn interval(pools: Vec<Pool<Destination>>) -> MeasuredInterval {
        let time = pools.iter().map(|pool| pool.time + pool.apart).sum();
        MeasuredInterval {
            parts: Breakdown {
                receive: time,
                ..Breakdown::default()
            },
            pools,
            ..MeasuredInterval::default()
        }
    }

    fn book(ledger: &mut Ledger, interval: &MeasuredInterval) -> Bookings {
        // In these tests, hosts with numbers from 100 on are kernel threads.
        ledger.book(
            interval,
            &divide(&interval.pools, None),
            readers_of,
            |host| host != 0 && host < 100,
        )
    }

    fn pool(
        host: u32,
        time: u64,
        apart: u64,
        polled: u64,
        delivered: &[(u16, u64)],
    ) -> Pool<Destination> {
        Pool {
            host,
            cpu: 0,
            time,
            apart,
            polled,
            delivered: delivered.iter().map(|(to, n)| (port(*to), *n)).collect(),
        }
    }

    #[test]
    fn the_receiver_is_charged_and_who_ran_is_told_what_was_taken() {
        let mut ledger = Ledger::new();
        // The time of process 2 goes to three packets for process 1, one packet for process 2
        // itself, and one packet for nobody. Timers took 50 ns more.
        let pools = vec![pool(2, 500, 50, 5, &[(1, 3), (2, 1)])];
        let booked = book(&mut ledger, &interval(pools));
        assert_eq!(
            (
                ledger.sums(1).charged(),
                ledger.sums(1).taken(),
                ledger.sums(1).packets
            ),
            (300, 0, 3)
        );
        assert_eq!((ledger.sums(2).charged(), ledger.sums(2).taken()), (0, 450));
        assert_eq!(ledger.sums(2).own, 100);
        let totals = ledger.totals();
        assert_eq!((totals.received, totals.orphans), (400, 100));
        assert_eq!((totals.unattributed, totals.orphan_packets), (50, 1));
        assert_eq!(booked.totals, totals);
    }

    #[test]
    fn nothing_is_taken_from_kernel_threads() {
        let mut ledger = Ledger::new();
        let pools = vec![
            pool(100, 500, 0, 2, &[(1, 2)]),
            pool(0, 70, 0, 1, &[(1, 1)]),
        ];
        book(&mut ledger, &interval(pools));
        assert_eq!(ledger.sums(1).charged(), 570);
        assert_eq!(ledger.processes().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_shared_socket_is_divided_and_an_unknown_one_is_not_attributed() {
        let mut ledger = Ledger::new();
        let pools = vec![pool(0, 303, 0, 3, &[(9, 2), (0, 1)])];
        let booked = book(&mut ledger, &interval(pools));
        assert_eq!(
            (ledger.sums(1).received, ledger.sums(2).received),
            (101, 101)
        );
        assert_eq!((ledger.sums(1).packets, ledger.sums(2).packets), (1, 1));
        assert_eq!(booked.totals.unattributed, 101);
        assert_eq!(booked.totals.packets, 3);
        assert_eq!(booked.flows.len(), 2);
    }

    #[test]
    fn who_ends_leaves_its_sums_and_no_trace_of_its_number() {
        let mut ledger = Ledger::new();
        let one = interval(vec![pool(0, 100, 0, 1, &[(1, 1)])]);
        book(&mut ledger, &one);
        ledger.end(1);
        assert_eq!((ledger.sums(1), ledger.ended().0), (Sums::default(), 1));
        assert_eq!(ledger.ended().1.charged(), 100);
        book(&mut ledger, &one);
        assert_eq!(ledger.sums(1).charged(), 100);
    }

    fn pools() -> impl Strategy<Value = Vec<Pool<Destination>>> {
        let delivered = proptest::collection::vec((0..10_u16, 0..1000_u64), 0..4);
        let host = prop_oneof![0..12_u32, Just(100)];
        let all = (
            host,
            0..1_000_000_u64,
            0..1_000_000_u64,
            0..1000_u64,
            delivered,
        );
        let one =
            all.prop_map(|(host, time, apart, polled, to)| pool(host, time, apart, polled, &to));
        proptest::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn all_that_was_measured_is_booked(intervals in proptest::collection::vec((pools(), proptest::option::of(0..12_u32)), 0..6)) {
            let mut ledger = Ledger::new();
            let (mut measured, mut hosted) = (0, 0);
            for (pools, ends) in intervals {
                let interval = interval(pools);
                measured += interval.parts.total();
                let of_processes = interval.pools.iter().filter(|pool| pool.host != 0 && pool.host < 100);
                hosted += of_processes.map(|pool| pool.time + pool.apart).sum::<u64>();
                book(&mut ledger, &interval);
                if let Some(pid) = ends {
                    ledger.end(pid);
                }
            }
            let totals = ledger.totals();
            prop_assert_eq!(totals.received + totals.orphans + totals.unattributed, measured);
            let mut all = ledger.ended().1;
            for pid in ledger.processes() {
                all.add(&ledger.sums(pid));
            }
            prop_assert_eq!(all.received, totals.received);
            prop_assert_eq!(all.hosted, hosted);
            prop_assert_eq!(all.charged() + all.own, all.received);
        }
    }
}
