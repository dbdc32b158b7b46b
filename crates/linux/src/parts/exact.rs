// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mode exact in a run: the program on each interface, the table of receivers, and the classes with
//! their urgencies.
use std::collections::{BTreeMap, BTreeSet};

use miette::IntoDiagnostic as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_core_sys::demux;

use super::{Part, Turn};
use crate::account::DemuxCounts;
use crate::exact::{Bindable, Bindings, DemuxReason, Exact, Options, assign};
use crate::machine::Lack;
use crate::receivers::{Family, PacketKey, Protocol, Reach, ReceiverTable, TableChange};
use crate::sched::{self, SchedPolicy, Tid};
use crate::system::Node;
use crate::urgency::Urgency;
use crate::veth::Checksums;

/// Section of mode exact in the status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Names of the interfaces to which the program is attached.
    pub interfaces: Vec<String>,
    /// Classes in ascending order of their urgencies.
    pub classes: Vec<ClassStatus>,
    /// Packets that were left to the kernel, by reason.
    pub left: BTreeMap<DemuxReason, u64>,
    /// Number of ports whose packets are given to a class.
    pub sockets: usize,
    /// Number of ports for which the table has no room. Their packets are left to the kernel.
    pub without_room: usize,
}

/// A class in the [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// Urgency of the class's receivers.
    pub urgency: Urgency,
    /// Packets that were given to the threads of the class.
    pub given: u64,
    /// The part of `given` that was dropped, since a queue was full.
    pub dropped: u64,
    /// Threads of the class, one on each CPU.
    pub threads: Vec<ThreadStatus>,
}

/// A kernel thread of a class in the [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// Number of the thread.
    pub tid: Tid,
    /// CPU on which it runs.
    pub cpu: u32,
    /// Policy that the thread has now.
    pub policy: SchedPolicy,
}

/// The part that gives each packet to the thread of its receiver's class.
pub struct Demultiplexing {
    node: Node,
    /// Whether packets count as having checksums where that cannot be checked.
    trusted: bool,
    exact: Exact,
    bindings: Bindings,
    /// Urgencies that the file states for ports, whoever reads them. They apply even while nobody
    /// reads the port. Otherwise, if real-time processes leave this process no time, it would learn
    /// too late that a port was bound.
    stated: BTreeMap<PacketKey, Urgency>,
    /// Where the packets of the present interfaces can get to.
    reaches: Vec<Reach>,
    /// Whether the bindings may be out of date and must all be compared again.
    is_stale: bool,
}

impl Demultiplexing {
    /// Attaches the program to the interfaces. Until the first turn, the program leaves every
    /// packet to the kernel.
    pub fn start(node: &Node, trusted: bool) -> miette::Result<Self> {
        let classes = assign::classes(&[], &node.urgencies(), &BTreeSet::new());
        let options = Options {
            queues: node.queues.clone(),
            ..Options::default()
        };
        let mut exact = Exact::load(&classes, &options).into_diagnostic()?;
        for interface in &node.interfaces {
            exact.add(interface.name.as_str()).into_diagnostic()?;
        }
        Ok(Self {
            node: node.clone(),
            trusted,
            exact,
            bindings: Bindings::default(),
            stated: node.rules().of_ports(),
            reaches: Vec::new(),
            is_stale: true,
        })
    }

    /// Adapts to CPUs and interfaces that appear and disappear.
    fn settle(&mut self, turn: &mut Turn<'_>) -> miette::Result<()> {
        // The result is ignored, since interfaces that have disappeared are reported elsewhere.
        let _ = self.exact.settle().into_diagnostic()?;
        for interface in &self.node.interfaces {
            let has_it = self
                .exact
                .interfaces()
                .any(|one| one.name == interface.name);
            if has_it || !turn.presence.has(&interface.name) {
                continue;
            }
            // An interface that came back may be another one than the one that was checked at the
            // start.
            let checksums = Checksums::examine(&interface.name).into_diagnostic()?;
            let name = interface.name.clone();
            if let Some(lack) = Lack::from_checksums(checksums, name, self.trusted) {
                turn.messages.once(&lack.to_string());
            } else if let Err(error) = self.exact.add(interface.name.as_str()) {
                if !turn.presence.is_outdated() {
                    turn.messages.once(&error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Updates the receivers of `keys`, or of all keys if `keys` is `None`.
    fn update(
        &mut self,
        receivers: &ReceiverTable,
        keys: Option<BTreeSet<PacketKey>>,
    ) -> miette::Result<()> {
        let mut wanted: BTreeMap<Bindable, Option<Urgency>> = BTreeMap::new();
        let keys = keys.unwrap_or_else(|| {
            wanted.extend(self.bindings.keys().map(|key| (key, None)));
            receivers
                .keys()
                .chain(self.stated.keys().copied())
                .collect()
        });
        for key in keys {
            for family in Family::ALL {
                let of_readers = receivers.urgency_from(key, family, &self.reaches);
                let urgency = of_readers.or_else(|| self.stated.get(&key).copied());
                wanted.insert((family, named(key)), urgency);
            }
        }
        for (key, urgency) in &self.node.selected {
            wanted.extend(Family::ALL.map(|family| ((family, *key), Some(*urgency))));
        }
        let now: Vec<Urgency> = self.exact.urgencies().collect();
        let mut present = self.bindings.urgencies();
        present.extend(wanted.values().flatten());
        let classes = assign::classes(&now, &self.node.urgencies(), &present);
        if classes != now {
            self.exact.set_classes(&classes).into_diagnostic()?;
        }
        let table = self.exact.table();
        self.bindings
            .update(table, &classes, &wanted)
            .into_diagnostic()?;
        table.publish().into_diagnostic()
    }
}

/// Converts a key to the form of core's table.
fn named(key: PacketKey) -> demux::SocketKey {
    match key.protocol {
        Protocol::Tcp => demux::SocketKey::tcp(key.port),
        Protocol::Udp => demux::SocketKey::udp(key.port),
    }
}

impl Part for Demultiplexing {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn turn(&mut self, turn: &mut Turn<'_>) -> miette::Result<()> {
        if turn.is_period {
            self.settle(turn)?;
            let present = self.node.interfaces.iter();
            let reaches: Vec<Reach> = present
                .filter_map(|interface| Reach::find(&interface.name).ok())
                .collect();
            self.is_stale |= reaches != self.reaches;
            self.reaches = reaches;
        }
        let Some(receivers) = turn.receivers else {
            return Ok(());
        };
        if self.is_stale || !turn.changes.is_empty() {
            let changed = || turn.changes.iter().map(TableChange::key).collect();
            let keys = (!self.is_stale).then(changed);
            // After an error, some of the changes may have been made, so all keys are compared
            // again.
            self.is_stale = true;
            self.update(receivers, keys)?;
            self.is_stale = false;
        }
        if self.bindings.waiting() > 0 {
            turn.messages.once(
                "the table of receivers is full: packets of further receivers are left to the kernel, and have no class",
            );
        }
        Ok(())
    }

    fn given(&self) -> Option<DemuxCounts> {
        Some(DemuxCounts::read(self.exact.counters()))
    }

    fn status(&self) -> Value {
        let total = self.exact.counters().total();
        let mut classes: Vec<ClassStatus> = self
            .exact
            .urgencies()
            .zip(total.classes)
            .map(|(urgency, count)| ClassStatus {
                urgency,
                given: count.given,
                dropped: count.dropped,
                threads: Vec::new(),
            })
            .collect();
        for scheduled in self.exact.scheduled() {
            let tid = scheduled.thread.tid;
            // A thread that has ended is not shown.
            if let (Some(class), Ok(policy)) = (
                classes.get_mut(usize::from(scheduled.class)),
                sched::get(tid),
            ) {
                let cpu = scheduled.cpu;
                class.threads.push(ThreadStatus { tid, cpu, policy });
            }
        }
        json!(Status {
            interfaces: self.exact.interfaces().map(ToString::to_string).collect(),
            classes,
            left: DemuxReason::ALL.into_iter().zip(total.left).collect(),
            sockets: self.bindings.len(),
            without_room: self.bindings.waiting(),
        })
    }
}
