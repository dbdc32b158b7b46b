// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries of the table of receivers. Everywhere here, a key is a protocol and a port.
use std::collections::{BTreeMap, BTreeSet};

use super::reach::Reach;
use super::{Family, PacketKey, Reader, ReaderId, ReceiverTable, SocketPlace};
use crate::urgency::Urgency;

/// The answers describe the table as of the last changes that were returned.
impl ReceiverTable {
    /// The readers of `key`.
    pub fn readers(&self, key: PacketKey) -> impl Iterator<Item = Reader> + '_ {
        self.reported
            .get(&key)
            .into_iter()
            .flatten()
            .map(|(id, urgency)| self.reader(*id, *urgency))
    }

    /// All keys, with their readers.
    pub fn iter(&self) -> impl Iterator<Item = (PacketKey, Reader)> + '_ {
        self.reported.iter().flat_map(|(key, readers)| {
            readers
                .iter()
                .map(|(id, urgency)| (*key, self.reader(*id, *urgency)))
        })
    }

    /// Urgency of a packet for `key`, which is that of the most urgent reader. `None` if nobody
    /// reads the key.
    #[must_use]
    pub fn urgency(&self, key: PacketKey) -> Option<Urgency> {
        self.reported.get(&key)?.values().copied().max()
    }

    /// Urgency of a packet for `key` that comes by this version of IP from any of these interfaces.
    /// It is that of the most urgent reader that the packet can reach. `None` if it can reach no
    /// reader.
    #[must_use]
    pub fn urgency_from(
        &self,
        key: PacketKey,
        family: Family,
        interfaces: &[Reach],
    ) -> Option<Urgency> {
        let readers = self.reported.get(&key)?;
        let owner = self.owner(readers.keys());
        let reached = readers
            .iter()
            .filter(|(id, _)| id.place.families.has(family))
            .filter(|(id, _)| interfaces.iter().any(|reach| reach.includes(&id.place)));
        reached
            .map(|(id, urgency)| match self.processes.get(&id.pid) {
                Some(process)
                    if process.user != owner
                        && self.rules.is_of_port_alone(key, &process.subject()) =>
                {
                    process.urgency()
                }
                _ => *urgency,
            })
            .max()
    }

    /// The user that a port most likely belongs to, if no rule says more. Candidates are the users
    /// who read the port, by any version of IP and at any address. Root comes first, then the user
    /// of the process with the most urgent policy, then the user of the process that started first.
    fn owner<'a>(&self, readers: impl Iterator<Item = &'a ReaderId>) -> Option<u32> {
        let processes = readers.filter_map(|id| Some((id, self.processes.get(&id.pid)?)));
        let first = processes.max_by_key(|(id, process)| {
            let is_root = process.user == Some(0);
            (is_root, process.urgency(), std::cmp::Reverse(id.start))
        });
        first?.1.user
    }

    /// All keys that have a reader.
    pub fn keys(&self) -> impl Iterator<Item = PacketKey> + '_ {
        self.reported.keys().copied()
    }

    /// Urgencies of the receivers that can receive from an interface. Mode native uses them.
    #[must_use]
    pub fn urgencies(&self, reach: &Reach) -> BTreeSet<Urgency> {
        self.reported
            .values()
            .flatten()
            .filter(|(id, _)| reach.includes(&id.place))
            .map(|(_, urgency)| *urgency)
            .collect()
    }

    /// From where the socket with this cookie receives, and the processes that have it. `None` if
    /// the socket is not known.
    #[must_use]
    pub fn holders(&self, cookie: u64) -> Option<(SocketPlace, &BTreeSet<u32>)> {
        let bound = self.sockets.get(&cookie)?;
        Some((bound.socket.place, &bound.holders))
    }

    /// Number of sockets that are known.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Threads of a process that reads at least one key. Each has the urgency of its policy.
    pub fn threads(&self, pid: u32) -> impl Iterator<Item = (u32, Urgency)> + '_ {
        self.processes.get(&pid).into_iter().flat_map(|process| {
            process
                .threads
                .iter()
                .map(|(tid, urgency)| (*tid, *urgency))
        })
    }

    /// Threads that may wait for a packet from any of these interfaces, of which there are at most
    /// 8. Each thread has its urgency and a bit for each interface. Threads with urgency 0 are left
    /// out. A thread's urgency is that of its policy, or of the most urgent rule for a key that its
    /// process reads.
    #[must_use]
    pub fn waiters(&self, interfaces: &[Reach]) -> BTreeMap<u32, (Urgency, u8)> {
        let mut of_processes: BTreeMap<u32, (Option<Urgency>, u8)> = BTreeMap::new();
        for (key, readers) in &self.reported {
            for id in readers.keys() {
                let mut devices = 0;
                for (bit, reach) in interfaces.iter().take(8).enumerate() {
                    devices |= u8::from(reach.includes(&id.place)) << bit;
                }
                let Some(process) = self.processes.get(&id.pid) else {
                    continue;
                };
                let ruled = self.rules.urgency(*key, &process.subject());
                let (most, all) = of_processes.entry(id.pid).or_default();
                if devices != 0 {
                    *all |= devices;
                    *most = (*most).max(ruled);
                }
            }
        }
        let mut waiters = BTreeMap::new();
        for (pid, (ruled, devices)) in of_processes {
            for (tid, own) in self.threads(pid) {
                let urgency = ruled.unwrap_or(own);
                if devices != 0 && urgency > Urgency::ORDINARY {
                    waiters.insert(tid, (urgency, devices));
                }
            }
        }
        waiters
    }

    pub(super) fn reader(&self, id: ReaderId, urgency: Urgency) -> Reader {
        let process = self.processes.get(&id.pid);
        Reader {
            id,
            comm: process.map_or_else(|| "".into(), |process| process.comm.clone()),
            cgroup: process.map_or_else(|| "".into(), |process| process.cgroup.clone()),
            urgency,
        }
    }
}
