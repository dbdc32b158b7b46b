// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of receivers: sockets, the processes that hold them, and so the readers of each
//! protocol and port (a key). The table does no input or output. It records what its callers
//! report, and returns questions about what it does not know.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use super::record::{Record, SocketRecord, ThreadRecord};
use super::rules::RuleSubject;
use super::{PacketKey, ReaderId, RuleSet, SocketPlace, TableChange};
use crate::urgency::Urgency;

/// Questions that the table asks its caller.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Numbers of processes whose sockets and threads must be scanned.
    pub scan: BTreeSet<u32>,
    /// Cookies of sockets whose owners are unknown, each with the process that probably owns it.
    pub owners: BTreeMap<u64, u32>,
    /// Numbers of processes whose cgroup is unknown.
    pub cgroups: BTreeSet<u32>,
}

#[derive(Debug)]
pub(super) struct BoundSocket {
    pub(super) socket: SocketRecord,
    pub(super) holders: BTreeSet<u32>,
}

#[derive(Debug)]
pub(super) struct Process {
    start: u64,
    pub(super) comm: Arc<str>,
    /// User of the process. `None` if its effective user is not its real user.
    pub(super) user: Option<u32>,
    pub(super) cgroup: Arc<str>,
    /// Number of the cgroup v2 for which the path `cgroup` was read.
    cgroup_number: u64,
    pub(super) threads: BTreeMap<u32, Urgency>,
    /// Cookies of the process's sockets.
    sockets: BTreeSet<u64>,
}

impl Process {
    fn new(seen: &ThreadRecord) -> Self {
        Self {
            start: seen.start,
            comm: seen.comm.clone(),
            user: seen.user,
            cgroup: "".into(),
            cgroup_number: seen.cgroup,
            threads: BTreeMap::from([(seen.tid, seen.urgency)]),
            sockets: BTreeSet::new(),
        }
    }

    /// What the rules need to know about the process.
    pub(super) fn subject(&self) -> RuleSubject<'_> {
        RuleSubject {
            comm: &self.comm,
            cgroup: &self.cgroup,
            user: self.user,
        }
    }

    /// Urgency of the process's most urgent thread, by its policy.
    pub(super) fn urgency(&self) -> Urgency {
        self.threads
            .values()
            .copied()
            .max()
            .unwrap_or(Urgency::ORDINARY)
    }
}

/// Result of scanning a process: its sockets by their cookies, and its threads.
#[derive(Debug, Default)]
struct ScanResult {
    sockets: BTreeMap<u64, SocketRecord>,
    threads: BTreeMap<u32, Urgency>,
}

/// Table of all sockets and their readers, with their urgencies.
#[derive(Debug, Default)]
pub struct ReceiverTable {
    pub(super) rules: RuleSet,
    /// Sockets by their cookies.
    pub(super) sockets: HashMap<u64, BoundSocket>,
    pub(super) processes: BTreeMap<u32, Process>,
    /// Number of the process of each known thread, by thread number.
    process_of: HashMap<u32, u32>,
    /// Number of sockets by which each reader reads a key.
    holds: BTreeMap<PacketKey, BTreeMap<ReaderId, usize>>,
    /// Readers as of the last call of `changes`. They differ from `holds` only for the keys in
    /// `touched`.
    pub(super) reported: BTreeMap<PacketKey, BTreeMap<ReaderId, Urgency>>,
    touched: BTreeSet<(PacketKey, ReaderId)>,
}

/// These functions take the input from events and scans.
impl ReceiverTable {
    pub(super) fn new(rules: RuleSet) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    pub(super) fn apply(&mut self, record: Record, questions: &mut Questions) {
        match record {
            Record::Bound(seen, socket) => {
                if !self.knows(&seen) {
                    // The other threads of the process are not known yet, so it must be scanned.
                    questions.scan.insert(seen.pid);
                    self.add(&seen, questions);
                }
                if socket.unsure {
                    questions.scan.insert(seen.pid);
                }
                self.rename(&seen);
                self.place(socket);
                self.hold(seen.pid, socket.cookie);
            }
            Record::Released { cookie } => self.release(cookie, questions),
            Record::Sent { cookie, pid } => {
                if !self.sockets.contains_key(&cookie) {
                    questions.owners.insert(cookie, pid);
                }
            }
            Record::Forked { parent, child } => self.fork(parent, &child, questions),
            Record::Thread(seen) => {
                if self.knows(&seen) {
                    self.set_thread(seen.pid, seen.tid, seen.urgency);
                }
            }
            Record::Ended(seen) => {
                if self.knows(&seen) {
                    self.remove_thread(seen.pid, seen.tid);
                }
            }
            Record::Exited(seen) => {
                if self.knows(&seen) {
                    self.remove(seen.pid);
                }
            }
            Record::Executed(seen) => {
                if self.knows(&seen) {
                    self.set_threads(seen.pid, BTreeMap::from([(seen.tid, seen.urgency)]));
                    self.rename(&seen);
                    questions.scan.insert(seen.pid);
                }
            }
            Record::Migrated(seen) => {
                if self.knows(&seen) {
                    self.ask_cgroup(&seen, questions);
                    // The number of the cgroup v2 does not change when a process moves in a
                    // hierarchy of v1, so the path is read again.
                    questions.cgroups.insert(seen.pid);
                }
            }
        }
    }

    /// Replaces the content of the table by the result of a scan of all processes, or of one
    /// process.
    pub(super) fn reconcile(
        &mut self,
        scope: Option<u32>,
        records: impl IntoIterator<Item = Record>,
        questions: &mut Questions,
    ) {
        let mut found: BTreeMap<u32, ScanResult> = BTreeMap::new();
        for record in records {
            match record {
                Record::Bound(seen, socket) => {
                    if !self.knows(&seen) {
                        self.add(&seen, questions);
                    }
                    self.rename(&seen);
                    self.ask_cgroup(&seen, questions);
                    let sockets = &mut found.entry(seen.pid).or_default().sockets;
                    sockets.insert(socket.cookie, socket);
                }
                Record::Thread(seen) if self.knows(&seen) => {
                    let threads = &mut found.entry(seen.pid).or_default().threads;
                    threads.insert(seen.tid, seen.urgency);
                }
                _ => {}
            }
        }
        // The sockets that are held now are recorded first, since a socket is removed with its last
        // holder.
        for (pid, process) in &found {
            for socket in process.sockets.values() {
                self.place(*socket);
                self.hold(*pid, socket.cookie);
            }
        }
        let known: Vec<u32> = match scope {
            Some(pid) => vec![pid],
            None => self.processes.keys().copied().collect(),
        };
        for pid in known {
            match found.remove(&pid) {
                Some(process) if !process.sockets.is_empty() => {
                    self.keep_only(pid, &process.sockets);
                    // A process that ended during the scan may have no threads in its result.
                    if !process.threads.is_empty() {
                        self.set_threads(pid, process.threads);
                    }
                }
                _ => self.remove(pid),
            }
        }
    }

    /// Removes all sockets of a process except for `sockets`.
    fn keep_only(&mut self, pid: u32, sockets: &BTreeMap<u64, SocketRecord>) {
        let held = self.processes.get(&pid).into_iter();
        let closed: Vec<u64> = held
            .flat_map(|process| &process.sockets)
            .filter(|cookie| !sockets.contains_key(cookie))
            .copied()
            .collect();
        for cookie in closed {
            self.let_go(pid, cookie);
        }
    }

    /// Sets the path of a process's cgroup.
    pub(super) fn set_cgroup(&mut self, pid: u32, cgroup: &str) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if &*process.cgroup != cgroup {
            process.cgroup = cgroup.into();
            self.touch(pid);
        }
    }

    pub(super) fn has_socket(&self, cookie: u64) -> bool {
        self.sockets.contains_key(&cookie)
    }

    /// Returns the changes since the last call.
    pub(super) fn changes(&mut self) -> Vec<TableChange> {
        let mut changes = Vec::new();
        for (key, id) in mem::take(&mut self.touched) {
            let now = self.now(key, id);
            let before = match now {
                Some(urgency) => self.reported.entry(key).or_default().insert(id, urgency),
                None => forget(&mut self.reported, key, &id),
            };
            match (before, now) {
                (None, Some(urgency)) => changes.push(TableChange::Bound {
                    key,
                    reader: self.reader(id, urgency),
                }),
                (Some(_), None) => changes.push(TableChange::Unbound { key, reader: id }),
                (Some(from), Some(to)) if from != to => changes.push(TableChange::Urgency {
                    key,
                    reader: id,
                    from,
                    to,
                }),
                _ => {}
            }
        }
        changes
    }

    fn now(&self, key: PacketKey, id: ReaderId) -> Option<Urgency> {
        self.holds.get(&key)?.get(&id)?;
        let process = self.processes.get(&id.pid)?;
        let ruled = self.rules.urgency(key, &process.subject());
        Some(ruled.unwrap_or_else(|| process.urgency()))
    }
}

/// Removes a value from a map of maps. The inner map is removed with its last value.
fn forget<V>(
    maps: &mut BTreeMap<PacketKey, BTreeMap<ReaderId, V>>,
    key: PacketKey,
    id: &ReaderId,
) -> Option<V> {
    let inner = maps.get_mut(&key)?;
    let value = inner.remove(id);
    if inner.is_empty() {
        maps.remove(&key);
    }
    value
}

/// These functions record changes of processes.
impl ReceiverTable {
    fn knows(&self, seen: &ThreadRecord) -> bool {
        self.processes
            .get(&seen.pid)
            .is_some_and(|process| process.start == seen.start)
    }

    fn add(&mut self, seen: &ThreadRecord, questions: &mut Questions) {
        self.remove(seen.pid);
        self.processes.insert(seen.pid, Process::new(seen));
        self.process_of.insert(seen.tid, seen.pid);
        questions.cgroups.insert(seen.pid);
    }

    fn remove(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        for cookie in process.sockets.clone() {
            self.let_go(pid, cookie);
        }
        self.set_threads(pid, BTreeMap::new());
        self.processes.remove(&pid);
    }

    fn fork(&mut self, parent: u32, child: &ThreadRecord, questions: &mut Questions) {
        let Some(process) = self.processes.get(&parent) else {
            return;
        };
        let (sockets, cgroup) = (process.sockets.clone(), process.cgroup.clone());
        self.add(child, questions);
        self.set_cgroup(child.pid, &cgroup);
        for cookie in sockets {
            self.hold(child.pid, cookie);
        }
    }

    /// Asks for the path of a process's cgroup if the number of the cgroup has changed.
    fn ask_cgroup(&mut self, seen: &ThreadRecord, questions: &mut Questions) {
        let Some(process) = self.processes.get_mut(&seen.pid) else {
            return;
        };
        if process.cgroup_number != seen.cgroup {
            process.cgroup_number = seen.cgroup;
            questions.cgroups.insert(seen.pid);
        }
    }

    /// Updates the name and the user of a process.
    fn rename(&mut self, seen: &ThreadRecord) {
        let Some(process) = self.processes.get_mut(&seen.pid) else {
            return;
        };
        if process.comm != seen.comm || process.user != seen.user {
            process.comm = seen.comm.clone();
            process.user = seen.user;
            self.touch(seen.pid);
        }
    }

    fn set_thread(&mut self, pid: u32, tid: u32, urgency: Urgency) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let before = process.urgency();
        process.threads.insert(tid, urgency);
        let is_another = process.urgency() != before;
        self.process_of.insert(tid, pid);
        if is_another {
            self.touch(pid);
        }
    }

    fn remove_thread(&mut self, pid: u32, tid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.remove(&tid);
            self.process_of.remove(&tid);
            self.touch(pid);
        }
    }

    fn set_threads(&mut self, pid: u32, threads: BTreeMap<u32, Urgency>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.threads == threads {
            return;
        }
        for tid in process.threads.keys() {
            self.process_of.remove(tid);
        }
        for tid in threads.keys() {
            self.process_of.insert(*tid, pid);
        }
        process.threads = threads;
        self.touch(pid);
    }

    /// Marks all keys that a process reads, so that `changes` compares them.
    fn touch(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        for cookie in &process.sockets {
            if let Some(bound) = self.sockets.get(cookie) {
                let id = reader(pid, process.start, bound.socket.place);
                self.touched.insert((bound.socket.key, id));
            }
        }
    }
}

fn reader(pid: u32, start: u64, place: SocketPlace) -> ReaderId {
    ReaderId { pid, start, place }
}

/// These functions record changes of sockets.
impl ReceiverTable {
    /// Records where a socket is bound. The socket may have been bound elsewhere before.
    fn place(&mut self, socket: SocketRecord) {
        let Some(bound) = self.sockets.get_mut(&socket.cookie) else {
            let holders = BTreeSet::new();
            self.sockets
                .insert(socket.cookie, BoundSocket { socket, holders });
            return;
        };
        let before = mem::replace(&mut bound.socket, socket);
        if (before.key, before.place) != (socket.key, socket.place) {
            for pid in bound.holders.clone() {
                self.count(pid, before, false);
                self.count(pid, socket, true);
            }
        }
    }

    fn release(&mut self, cookie: u64, questions: &mut Questions) {
        questions.owners.remove(&cookie);
        let Some(bound) = self.sockets.get(&cookie) else {
            return;
        };
        // A socket that a listener has accepted has the listener's port, but no event reports it.
        let may_have_accepted =
            bound.socket.key.protocol == super::Protocol::Tcp && !bound.socket.connected;
        for pid in bound.holders.clone() {
            self.let_go(pid, cookie);
            if may_have_accepted {
                questions.scan.insert(pid);
            }
        }
        self.sockets.remove(&cookie);
    }

    fn hold(&mut self, pid: u32, cookie: u64) {
        let (Some(process), Some(bound)) =
            (self.processes.get_mut(&pid), self.sockets.get_mut(&cookie))
        else {
            return;
        };
        if process.sockets.insert(cookie) {
            bound.holders.insert(pid);
            let socket = bound.socket;
            self.count(pid, socket, true);
        }
    }

    fn let_go(&mut self, pid: u32, cookie: u64) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !process.sockets.remove(&cookie) {
            return;
        }
        let Some(bound) = self.sockets.get_mut(&cookie) else {
            return;
        };
        bound.holders.remove(&pid);
        let (socket, is_last) = (bound.socket, bound.holders.is_empty());
        if is_last {
            self.sockets.remove(&cookie);
        }
        self.count(pid, socket, false);
    }

    /// Adds one to the number of sockets by which a process reads a key, or subtracts one if `more`
    /// is false.
    fn count(&mut self, pid: u32, socket: SocketRecord, more: bool) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let id = reader(pid, process.start, socket.place);
        self.touched.insert((socket.key, id));
        let readers = self.holds.entry(socket.key).or_default();
        let sockets = readers.entry(id).or_default();
        if more {
            *sockets += 1;
        } else if *sockets > 1 {
            *sockets -= 1;
        } else {
            forget(&mut self.holds, socket.key, &id);
        }
    }
}
