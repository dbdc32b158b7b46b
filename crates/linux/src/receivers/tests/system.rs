// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of the system that consists of plain lists, and of the events that its kernel would
//! report.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use super::super::record::{Record, SocketRecord, ThreadRecord};
use super::super::rules::RuleSubject;
use super::super::table::Questions;
use super::super::{
    Families, PacketKey, Protocol, ReaderId, ReceiverTable, Rule, RuleSet, SocketPlace,
};
use crate::urgency::Urgency;

/// Numbers of processes and sockets at a time. They are so few that steps often concern the same
/// ones.
const PROCESSES: u32 = 6;

#[derive(Debug, Clone)]
pub enum Step {
    Bind {
        process: usize,
        port: u16,
        tcp: bool,
        place: u8,
    },
    /// A listener accepts a connection. No event reports this.
    Accept {
        process: usize,
        socket: usize,
    },
    /// All processes close their descriptors of a socket.
    Release {
        socket: usize,
    },
    Fork {
        parent: usize,
    },
    Execute {
        process: usize,
        kept: u8,
    },
    Exit {
        process: usize,
    },
    StartThread {
        process: usize,
    },
    EndThread {
        process: usize,
        thread: usize,
    },
    Migrate {
        process: usize,
    },
    /// No event reports these four steps.
    SetUrgency {
        process: usize,
        thread: usize,
        urgency: u8,
    },
    Pass {
        process: usize,
        to: usize,
        socket: usize,
    },
    Close {
        process: usize,
        socket: usize,
    },
    Lose {
        events: usize,
    },
    /// Some of the waiting events are delivered.
    Tell {
        events: usize,
    },
    Scan,
}

#[derive(Debug, Clone)]
struct Process {
    start: u64,
    comm: Arc<str>,
    user: u32,
    cgroup: u64,
    threads: BTreeMap<u32, u8>,
}

/// The system. A list of pairs says which process has which socket.
#[derive(Debug, Default)]
pub struct System {
    processes: BTreeMap<u32, Process>,
    pub sockets: BTreeMap<u64, SocketRecord>,
    has: BTreeSet<(u32, u64)>,
    next: u64,
    pub events: VecDeque<Record>,
}

fn urgency(number: u8) -> Urgency {
    Urgency::new(number).unwrap()
}

pub fn rules() -> RuleSet {
    let any = Rule {
        protocol: None,
        port: None,
        cgroup: None,
        command: None,
        user: None,
        urgency: urgency(0),
    };
    RuleSet::new(vec![
        Rule {
            port: Some(1),
            protocol: Some(Protocol::Udp),
            urgency: urgency(77),
            ..any.clone()
        },
        Rule {
            cgroup: Some("/3".into()),
            urgency: urgency(33),
            ..any.clone()
        },
        Rule {
            command: Some("executed".into()),
            urgency: urgency(11),
            ..any
        },
    ])
}

/// There are four cgroups. They are deleted and created again, with other numbers.
fn path(cgroup: u64) -> String {
    format!("/{}", cgroup % 4)
}

impl System {
    pub fn new() -> Self {
        let mut system = Self::default();
        for _ in 0..2 {
            let pid = system.number();
            system.begin(pid, "first".into(), 1, 0);
        }
        system
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        // Numbers of processes are used again.
        let mut pid = (self.next % 10 * 100) as u32 + 100;
        while self.processes.contains_key(&pid) {
            pid += 100;
        }
        pid
    }

    fn begin(&mut self, pid: u32, comm: Arc<str>, cgroup: u64, urgency: u8) {
        self.next += 1;
        let process = Process {
            start: self.next,
            comm,
            user: 0,
            cgroup,
            threads: BTreeMap::from([(pid, urgency)]),
        };
        self.processes.insert(pid, process);
    }

    fn process(&self, which: usize) -> Option<u32> {
        let count = self.processes.len().max(1);
        self.processes.keys().nth(which % count).copied()
    }

    fn socket(&self, which: usize) -> Option<u64> {
        let count = self.sockets.len().max(1);
        self.sockets.keys().nth(which % count).copied()
    }

    fn thread(&self, pid: u32, which: usize) -> u32 {
        let threads = &self.processes[&pid].threads;
        *threads.keys().nth(which % threads.len()).unwrap()
    }

    fn seen(&self, pid: u32, tid: u32) -> ThreadRecord {
        let process = &self.processes[&pid];
        ThreadRecord {
            pid,
            tid,
            start: process.start,
            urgency: urgency(process.threads[&tid]),
            cgroup: process.cgroup,
            user: Some(process.user),
            comm: process.comm.clone(),
        }
    }

    fn holders(&self, cookie: u64) -> Vec<u32> {
        let holders = self.has.iter().filter(|(_, socket)| *socket == cookie);
        holders.map(|(pid, _)| *pid).collect()
    }

    /// Closes a descriptor. The socket is released with its last descriptor.
    fn close(&mut self, pid: u32, cookie: u64) {
        if self.has.remove(&(pid, cookie)) && self.holders(cookie).is_empty() {
            self.sockets.remove(&cookie);
            self.events.push_back(Record::Released { cookie });
        }
    }

    fn held_by(&self, pid: u32) -> Vec<u64> {
        let held = self.has.iter().filter(|(holder, _)| *holder == pid);
        held.map(|(_, cookie)| *cookie).collect()
    }

    pub fn step(&mut self, step: &Step) -> Option<()> {
        match *step {
            Step::Bind {
                process,
                port,
                tcp,
                place,
            } => {
                let pid = self.process(process)?;
                self.next += 1;
                let socket = SocketRecord {
                    cookie: self.next,
                    key: PacketKey {
                        protocol: if tcp { Protocol::Tcp } else { Protocol::Udp },
                        port,
                    },
                    place: SocketPlace {
                        namespace: u64::from(place / 2),
                        device: 0,
                        loopback: place % 2 == 1,
                        families: [Families::V4, Families::V6, Families::BOTH]
                            [usize::from(port % 3)],
                    },
                    connected: false,
                    unsure: false,
                };
                self.sockets.insert(socket.cookie, socket);
                self.has.insert((pid, socket.cookie));
                self.events
                    .push_back(Record::Bound(self.seen(pid, pid), socket));
            }
            Step::Accept { process, socket } => {
                let pid = self.process(process)?;
                let listener = self.sockets[&self.socket(socket)?];
                if listener.key.protocol == Protocol::Tcp {
                    self.next += 1;
                    let cookie = self.next;
                    let connected = true;
                    self.sockets.insert(
                        cookie,
                        SocketRecord {
                            cookie,
                            connected,
                            ..listener
                        },
                    );
                    self.has.insert((pid, cookie));
                }
            }
            Step::Release { socket } => {
                let cookie = self.socket(socket)?;
                for pid in self.holders(cookie) {
                    self.close(pid, cookie);
                }
            }
            Step::Fork { parent } => {
                let parent = self.process(parent)?;
                if self.processes.len() < PROCESSES as usize {
                    let pid = self.number();
                    let Process { comm, cgroup, .. } = self.processes[&parent].clone();
                    self.begin(pid, comm, cgroup, self.processes[&parent].threads[&parent]);
                    for cookie in self.held_by(parent) {
                        self.has.insert((pid, cookie));
                    }
                    self.events.push_back(Record::Forked {
                        parent,
                        child: self.seen(pid, pid),
                    });
                }
            }
            Step::Execute { process, kept } => {
                let pid = self.process(process)?;
                let process = self.processes.get_mut(&pid)?;
                process.comm = "executed".into();
                process.threads.retain(|tid, _| *tid == pid);
                let seen = self.seen(pid, pid);
                self.events.push_back(Record::Executed(seen));
                for (at, cookie) in self.held_by(pid).into_iter().enumerate() {
                    if kept >> (at % 8) & 1 == 0 {
                        self.close(pid, cookie);
                    }
                }
            }
            Step::Exit { process } => {
                let pid = self.process(process)?;
                let seen = self.seen(pid, pid);
                self.events.push_back(Record::Exited(seen));
                for cookie in self.held_by(pid) {
                    self.close(pid, cookie);
                }
                self.processes.remove(&pid);
            }
            Step::StartThread { process } => {
                let pid = self.process(process)?;
                let tid = pid + self.processes[&pid].threads.len() as u32 * 7;
                let inherited = self.processes[&pid].threads[&pid];
                let threads = &mut self.processes.get_mut(&pid)?.threads;
                if tid < pid + 100 && !threads.contains_key(&tid) {
                    threads.insert(tid, inherited);
                    let seen = self.seen(pid, tid);
                    self.events.push_back(Record::Thread(seen));
                }
            }
            Step::EndThread { process, thread } => {
                let pid = self.process(process)?;
                let tid = self.thread(pid, thread);
                if tid != pid {
                    let seen = self.seen(pid, tid);
                    self.events.push_back(Record::Ended(seen));
                    self.processes.get_mut(&pid)?.threads.remove(&tid);
                }
            }
            Step::SetUrgency {
                process,
                thread,
                urgency,
            } => {
                let pid = self.process(process)?;
                let tid = self.thread(pid, thread);
                self.processes.get_mut(&pid)?.threads.insert(tid, urgency);
            }
            Step::Migrate { process } => {
                let pid = self.process(process)?;
                self.next += 1;
                self.processes.get_mut(&pid)?.cgroup = self.next;
                let seen = self.seen(pid, pid);
                self.events.push_back(Record::Migrated(seen));
            }
            Step::Pass {
                process,
                to,
                socket,
            } => {
                let (pid, to) = (self.process(process)?, self.process(to)?);
                let cookie = self.socket(socket)?;
                if self.has.contains(&(pid, cookie)) {
                    self.has.insert((to, cookie));
                }
            }
            Step::Close { process, socket } => {
                let pid = self.process(process)?;
                self.close(pid, self.socket(socket)?);
            }
            Step::Lose { events } => {
                let kept = self.events.len().saturating_sub(events);
                self.events.truncate(kept);
            }
            Step::Tell { .. } | Step::Scan => {}
        }
        Some(())
    }

    /// What the iterators would report.
    pub fn scan(&self, scope: Option<u32>) -> Vec<Record> {
        let is_in = |pid: u32| scope.is_none_or(|only| only == pid);
        let sockets = self.has.iter().filter(|(pid, _)| is_in(*pid));
        let mut records: Vec<Record> = sockets
            .map(|(pid, cookie)| Record::Bound(self.seen(*pid, *pid), self.sockets[cookie]))
            .collect();
        for (pid, process) in self.processes.iter().filter(|(pid, _)| is_in(**pid)) {
            for tid in process.threads.keys() {
                records.push(Record::Thread(self.seen(*pid, *tid)));
            }
        }
        records
    }

    /// Who reads which port, computed from the lists alone.
    pub fn readers(&self) -> BTreeMap<(PacketKey, ReaderId), Urgency> {
        let rules = rules();
        self.has
            .iter()
            .map(|(pid, cookie)| {
                let (process, socket) = (&self.processes[pid], &self.sockets[cookie]);
                let own = urgency(*process.threads.values().max().unwrap());
                let subject = RuleSubject {
                    comm: &process.comm,
                    cgroup: &path(process.cgroup),
                    user: Some(process.user),
                };
                let ruled = rules.urgency(socket.key, &subject);
                let id = ReaderId {
                    pid: *pid,
                    start: process.start,
                    place: socket.place,
                };
                ((socket.key, id), ruled.unwrap_or(own))
            })
            .collect()
    }

    pub fn answer(&self, table: &mut ReceiverTable, questions: &mut Questions) {
        for pid in mem::take(&mut questions.scan) {
            table.reconcile(Some(pid), self.scan(Some(pid)), questions);
        }
        for pid in mem::take(&mut questions.cgroups) {
            if let Some(process) = self.processes.get(&pid) {
                table.set_cgroup(pid, &path(process.cgroup));
            }
        }
    }
}
