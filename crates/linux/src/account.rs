// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account of interrupt time (zhang2006 §3.1). It charges interrupt time to the processes whose
//! packets caused it. It also reports which processes lost that time because the interrupts ran in
//! their place. A stock scheduler cannot give the time back to them.
//!
//! BPF programs keep counters for each CPU and each host. A host is the interrupted process, or the
//! kernel thread that does the work. The programs count the time of handlers and of soft
//! interrupts, the packets that were taken from devices, and the packets that each socket received.
//! The kernel itself knows the run times of its threads. Every turn divides the time since the turn
//! before over the packets ([`divide`]), and books it with the account of core/ ([`ledger`]).
//!
//! The account covers all network namespaces. Its gaps and its costs are described in
//! docs/linux-accounting.md.
mod divide;
mod interval;
mod layout;
mod ledger;
mod overload;
mod processes;
mod programs;
mod report;
mod shown;
mod sources;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use procfs::net::dev_status;

use crate::exact::Counters as ExactCounters;
use crate::receivers::{PacketKey, Protocol, ReceiverTable};
use crate::settings::Namespace;

use interval::{Breakdown, Destination, MeasuredInterval};
use layout::{Delivery, HandlerPlace, since};
use ledger::{Bookings, FlowCosts, Ledger, PortFlow, Readers};
pub use overload::{Cause, Culprit, Event, Limits, ReceiverProcess, Traffic};
use overload::{LoadSample, Watch};
use processes::ProcessTable;
use programs::{AccountPrograms, Counters};
pub use report::{
    AccountReport, Cgroup, Cpu, EndedProcesses, FlowReport, InterruptTime, KernelThread, Process,
};
use workers::WorkerTable;

/// Number of turns without a change after which a counter is removed, to make room for others.
const IDLE_TURNS: u32 = 30;
/// Period of the search for new interrupts, kernel threads and names.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Options of [`Accountant`].
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Whether the packets of each socket are counted, which makes every packet slower
    /// (docs/linux-accounting.md). Otherwise time can be charged only for the packets that mode
    /// exact counts.
    pub packets: bool,
    /// Cost of an interrupt beyond its handler and its soft interrupts. It is added for each
    /// interrupt.
    pub interrupt_overhead: Duration,
    /// Limits above which there is an overload.
    pub limits: Limits,
    /// Names of the interfaces whose drops are checked. Each has the packets per second that the
    /// system file tolerates from it, or `None` if the file does not state that.
    pub interfaces: BTreeMap<String, Option<f64>>,
}

impl Default for Options {
    /// Packets are counted, and nothing else is set.
    fn default() -> Self {
        Self {
            packets: true,
            interrupt_overhead: Duration::ZERO,
            limits: Limits::default(),
            interfaces: BTreeMap::new(),
        }
    }
}

/// Reason why no account can be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses a BPF program, or does not let its counters be read.
    #[error("the kernel refuses the BPF programs that measure interrupts: {0}")]
    Programs(#[from] libbpf_rs::Error),
    /// There is no cgroup v2 to attach to.
    #[error("packets cannot be counted without cgroup v2: {0}")]
    Cgroup(io::Error),
    /// /proc cannot be read.
    #[error("the kernel's threads cannot be read from /proc: {0}")]
    Threads(#[from] procfs::ProcError),
}

/// Counters of mode exact since its program was loaded. They count the packets that the program
/// gave to the threads of their classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DemuxCounts {
    /// Packets by protocol and port, including the dropped packets.
    pub keys: BTreeMap<PacketKey, u64>,
    /// Packets that were dropped because the queue of their class was full.
    pub dropped: u64,
}

impl DemuxCounts {
    /// Reads these counters now.
    #[must_use]
    pub fn read(counters: &ExactCounters) -> Self {
        let mut keys = BTreeMap::new();
        for cpu in 0..counters.of_cpus().count() {
            for (port, packets) in counters.ports_of(cpu) {
                if let Some(protocol) = Protocol::from_number(port.protocol) {
                    let port = port.port;
                    *keys.entry(PacketKey { protocol, port }).or_default() += packets;
                }
            }
        }
        let classes = counters.total().classes;
        Self {
            keys,
            dropped: classes.iter().map(|class| class.dropped).sum(),
        }
    }

    fn since(&self, before: &Self) -> Self {
        let keys = self.keys.iter().map(|(key, packets)| {
            let before = before.keys.get(key).copied().unwrap_or(0);
            (*key, since(*packets, before))
        });
        Self {
            keys: keys.collect(),
            dropped: since(self.dropped, before.dropped),
        }
    }
}

/// Keeps the account for as long as it lives. The kernel detaches the BPF programs when the process
/// ends, even if it is killed.
pub struct Accountant {
    programs: AccountPrograms,
    options: Options,
    began: Instant,
    turned: Instant,
    looked: Instant,
    counters: Counters,
    given: DemuxCounts,
    devices: BTreeMap<String, Traffic>,
    table: WorkerTable,
    processes: ProcessTable,
    /// Last known readers of each socket, by the socket's cookie. They are kept because a socket
    /// may be closed before its last packets are booked.
    holders: BTreeMap<u64, Readers>,
    /// Cookie of this process's network namespace. Interfaces of other namespaces are shown by
    /// number.
    namespace: u64,
    idle_places: BTreeMap<HandlerPlace, u32>,
    idle_deliveries: BTreeMap<Delivery, u32>,
    ledger: Ledger,
    watch: Watch,
    parts: Breakdown,
    interrupts: u64,
    lost_packets: u64,
    cpus: BTreeMap<u32, u64>,
    flows: BTreeMap<PortFlow, FlowCosts>,
}

impl Accountant {
    /// Loads the BPF programs and starts the account.
    ///
    /// # Errors
    /// Fails when the kernel refuses the programs (they need CAP_BPF, CAP_PERFMON and BTF), or when
    /// there is no cgroup v2 in which packets can be counted.
    pub fn start(options: Options) -> Result<Self, Error> {
        let programs = AccountPrograms::load(options.packets)?;
        programs.name_interrupts(&sources::network_interrupts())?;
        let table = WorkerTable::find(sources::is_without_interrupts())?;
        let counters = programs.read()?;
        let now = Instant::now();
        Ok(Self {
            devices: devices(&options),
            watch: Watch::new(options.limits),
            programs,
            options,
            began: now,
            turned: now,
            looked: now,
            counters,
            given: DemuxCounts::default(),
            table,
            processes: ProcessTable::default(),
            holders: BTreeMap::new(),
            namespace: Namespace::own().map_or(0, |own| own.cookie()),
            idle_places: BTreeMap::new(),
            idle_deliveries: BTreeMap::new(),
            ledger: Ledger::new(),
            parts: Breakdown::default(),
            interrupts: 0,
            lost_packets: 0,
            cpus: BTreeMap::new(),
            flows: BTreeMap::new(),
        })
    }

    /// Books the time since the turn before. `table` says which processes receive which packets,
    /// and `given` what mode exact has counted, or `None` if it is off. Call this about once a
    /// second: the time between two turns is divided as a whole.
    ///
    /// # Errors
    /// Fails when the counters cannot be read any longer. The next call tries again.
    pub fn turn(
        &mut self,
        table: &ReceiverTable,
        given: Option<&DemuxCounts>,
    ) -> Result<Option<Event>, Error> {
        let now = Instant::now();
        let counters = self.programs.read()?;
        if now - self.looked >= LOOK_AGAIN {
            self.looked = now;
            self.processes.look_again();
            self.programs
                .name_interrupts(&sources::network_interrupts())?;
            self.table.look_again()?;
        }
        for place in counters.spent.keys() {
            let entry = self.processes.host(place.host, place.is_kernel);
            if let (Some(thread), Some(work)) = (entry.thread, entry.work()) {
                self.table.join(thread, &work);
            }
        }
        let overhead = self.options.interrupt_overhead.as_nanos() as u64;
        let interval = interval::between(&self.counters, &counters, &self.table.run(), overhead);
        let handed = given.map(|given| given.since(&self.given));
        let keys = handed.as_ref().map(|handed| {
            let keys = handed.keys.iter();
            keys.map(|(key, packets)| (Destination::Key(*key), *packets))
                .collect()
        });
        let shares = divide::divide(&interval.pools, keys.as_ref());
        self.note_holders(&interval, table);
        let (holders, processes) = (&self.holders, &self.processes);
        let booked = self.ledger.book(
            &interval,
            &shares,
            |to| readers_of(to, holders, table),
            |host| processes.known(host).is_some_and(|entry| !entry.is_kernel),
        );
        self.counters = counters;
        self.given = given.cloned().unwrap_or_default();
        self.note(&interval, &booked);
        for pid in self.ledger.processes().collect::<Vec<_>>() {
            self.processes.entry(pid);
        }
        let seen = self.seen(&interval, now - self.turned, handed.as_ref());
        self.turned = now;
        let mut event = self.watch.look(&seen);
        if let Some(Event::Begins { culprit, .. }) = &mut event {
            *culprit = self.culprit(&interval, &booked, &seen);
        }
        for pid in self.processes.forget_ended() {
            self.ledger.end(pid);
        }
        self.make_room(&interval)?;
        Ok(event)
    }

    /// Returns the account up to the last turn.
    #[must_use]
    pub fn report(&self) -> AccountReport {
        shown::report(self)
    }

    /// Whether there is an overload.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.watch.is_overloaded()
    }

    fn note_holders(&mut self, interval: &MeasuredInterval, table: &ReceiverTable) {
        for to in interval.pools.iter().flat_map(|pool| pool.delivered.keys()) {
            let Destination::Socket(socket) = to else {
                continue;
            };
            if let Some((place, readers)) = table.holders(socket.cookie) {
                let readers = Readers {
                    namespace: place.namespace,
                    readers: readers.clone(),
                };
                self.holders.insert(socket.cookie, readers);
            }
        }
    }

    fn note(&mut self, interval: &MeasuredInterval, booked: &Bookings) {
        self.parts.add(&interval.parts);
        self.interrupts += interval.interrupts;
        self.lost_packets += interval.lost.packets;
        for (cpu, time) in interval.cpus() {
            *self.cpus.entry(cpu).or_default() += time;
        }
        for (flow, costs) in &booked.flows {
            let all = self.flows.entry(*flow).or_default();
            all.time += costs.time;
            all.packets += costs.packets;
            all.readers.clone_from(&costs.readers);
        }
    }

    /// Collects the measurements by which an overload is detected.
    fn seen(
        &mut self,
        interval: &MeasuredInterval,
        elapsed: Duration,
        handed: Option<&DemuxCounts>,
    ) -> LoadSample {
        let devices = devices(&self.options);
        let mut traffic: BTreeMap<String, Traffic> = devices
            .iter()
            .map(|(name, now)| {
                let before = self.devices.get(name).copied().unwrap_or_default();
                let traffic = Traffic {
                    received: since(now.received, before.received),
                    dropped: since(now.dropped, before.dropped),
                    tolerated: now.tolerated,
                };
                (name.clone(), traffic)
            })
            .collect();
        self.devices = devices;
        if let Some(handed) = handed {
            let all: u64 = handed.keys.values().sum();
            let queues = Traffic {
                received: all.saturating_sub(handed.dropped),
                dropped: handed.dropped,
                tolerated: None,
            };
            traffic.insert("a class's queue".to_owned(), queues);
        }
        let nanoseconds = elapsed.as_nanos().max(1) as f64;
        let shares = interval.cpus().into_iter();
        LoadSample {
            elapsed,
            shares: shares
                .map(|(cpu, time)| (cpu, time as f64 / nanoseconds))
                .collect(),
            traffic,
        }
    }

    /// Finds the port for which most of the interval's time was spent.
    fn culprit(
        &self,
        interval: &MeasuredInterval,
        booked: &Bookings,
        seen: &LoadSample,
    ) -> Option<Culprit> {
        let seconds = seen.elapsed.as_secs_f64();
        let total = interval.parts.total().max(1) as f64;
        let mut keys: BTreeMap<PacketKey, FlowCosts> = BTreeMap::new();
        for (flow, costs) in &booked.flows {
            let Some(key) = flow.key else { continue };
            let all = keys.entry(key).or_default();
            all.time += costs.time;
            all.packets += costs.packets;
            all.readers.extend(&costs.readers);
        }
        let worst = keys.into_iter().max_by_key(|(_, costs)| costs.time);
        let orphans = booked.totals.orphans;
        let Some((key, costs)) = worst.filter(|(_, costs)| costs.time > 0 && costs.time >= orphans)
        else {
            return (orphans > 0).then(|| Culprit {
                key: None,
                interface: None,
                hertz: booked.totals.orphan_packets as f64 / seconds,
                share: orphans as f64 / total,
                receiver: None,
                others: 0,
            });
        };
        let flows = booked
            .flows
            .iter()
            .filter(|(flow, _)| flow.key == Some(key));
        let main = flows
            .filter(|(flow, _)| flow.interface != 0)
            .max_by_key(|(_, costs)| costs.packets);
        let receiver = costs.readers.first().map(|pid| {
            let entry = self.processes.known(*pid);
            ReceiverProcess {
                pid: *pid,
                command: entry.map_or_else(|| "?".to_owned(), |entry| entry.command.clone()),
                cgroup: entry.map_or_else(String::new, |entry| entry.cgroup.clone()),
            }
        });
        Some(Culprit {
            key: Some(key),
            interface: main.and_then(|(flow, _)| shown::interface(flow, self.namespace)),
            hertz: costs.packets as f64 / seconds,
            share: costs.time as f64 / total,
            receiver,
            others: costs.readers.len().saturating_sub(1),
        })
    }

    /// Removes counters that have not changed for [`IDLE_TURNS`] turns.
    fn make_room(&mut self, interval: &MeasuredInterval) -> Result<(), Error> {
        let places = long_idle(&mut self.idle_places, &interval.idle_places);
        let deliveries = long_idle(&mut self.idle_deliveries, &interval.idle_deliveries);
        self.programs.forget(&places, &deliveries)?;
        for place in &places {
            self.counters.spent.remove(place);
        }
        for delivery in &deliveries {
            self.counters.deliveries.remove(delivery);
        }
        if !deliveries.is_empty() {
            let left = self.counters.deliveries.keys();
            let cookies: BTreeSet<u64> = left.map(|delivery| delivery.socket.cookie).collect();
            self.holders.retain(|cookie, _| cookies.contains(cookie));
        }
        Ok(())
    }
}

/// Finds the processes that receive a packet.
fn readers_of(to: Destination, holders: &BTreeMap<u64, Readers>, table: &ReceiverTable) -> Readers {
    if let Destination::Socket(socket) = to {
        if let Some(known) = holders.get(&socket.cookie) {
            return known.clone();
        }
    }
    // The sockets that a listener has accepted become known only with the next scan. Until then
    // they most likely belong to the process that listens on the port.
    let readers = to.key().into_iter().flat_map(|key| table.readers(key));
    let (mut namespaces, mut all) = (BTreeSet::new(), BTreeSet::new());
    for reader in readers {
        namespaces.insert(reader.id.place.namespace);
        all.insert(reader.id.pid);
    }
    let only = namespaces.first().filter(|_| namespaces.len() == 1);
    Readers {
        namespace: only.copied().unwrap_or(0),
        readers: all,
    }
}

/// Counts for how many turns in a row each counter of `idle` has not changed. Removes and returns
/// those that have reached [`IDLE_TURNS`].
fn long_idle<T: Copy + Ord>(turns: &mut BTreeMap<T, u32>, idle: &[T]) -> Vec<T> {
    let mut long = Vec::new();
    let before = std::mem::take(turns);
    for one in idle {
        let count = before.get(one).copied().unwrap_or(0) + 1;
        if count >= IDLE_TURNS {
            long.push(*one);
        } else {
            turns.insert(*one, count);
        }
    }
    long
}

/// Packets that the interfaces have received and dropped so far.
fn devices(options: &Options) -> BTreeMap<String, Traffic> {
    if options.interfaces.is_empty() {
        return BTreeMap::new();
    }
    // An interface that does not exist is left out.
    let all = dev_status().unwrap_or_default();
    let wanted = options.interfaces.iter().filter_map(|(name, tolerated)| {
        let status = all.get(name)?;
        let traffic = Traffic {
            received: status.recv_packets,
            dropped: status.recv_drop + status.recv_fifo,
            tolerated: *tolerated,
        };
        Some((name.clone(), traffic))
    });
    wanted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_idle_for_long_makes_room_and_what_is_not_stays() {
        let mut turns = BTreeMap::new();
        for turn in 1..IDLE_TURNS {
            assert!(long_idle(&mut turns, &[1, 2]).is_empty(), "{turn}");
        }
        // The second counter has changed in between.
        assert_eq!(long_idle(&mut turns, &[1]), [1]);
        assert!(long_idle(&mut turns, &[1, 2]).is_empty());
    }
}
