// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receivers that run now, without following them: what `weir linux inspect` drafts a system
//! file from.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::follower::answer_cgroups;
use super::programs::{Error, EventScope, FollowPrograms};
use super::table::Questions;
use super::{PacketKey, ReceiverTable, RuleSet};
use crate::urgency::Urgency;

/// A process that reads sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SocketReader {
    /// Its number in the first process namespace.
    pub pid: u32,
    /// When it was started, in ns since boot.
    pub start: u64,
    /// The user that it runs as; none: it acts for another one than its own.
    pub user: Option<u32>,
    /// The command's name: the first 15 bytes.
    #[serde(serialize_with = "super::text")]
    pub comm: Arc<str>,
    /// Its cgroup, as in [`Reader::cgroup`](super::Reader::cgroup).
    #[serde(serialize_with = "super::text")]
    pub cgroup: Arc<str>,
    /// That of its most urgent thread, or of a rule on any of its ports if that is more.
    pub urgency: Urgency,
    /// What it reads.
    pub keys: BTreeSet<PacketKey>,
    /// The network namespaces that it reads in, by their cookies.
    pub namespaces: BTreeSet<u64>,
    /// Whether it takes packets only from the loopback interface.
    pub only_loopback: bool,
}

impl ReceiverTable {
    /// All receivers, in the order of their numbers.
    #[must_use]
    pub fn receivers(&self) -> Vec<SocketReader> {
        let mut receivers: BTreeMap<u32, SocketReader> = BTreeMap::new();
        for (key, reader) in self.iter() {
            let receiver = receivers
                .entry(reader.id.pid)
                .or_insert_with(|| SocketReader {
                    pid: reader.id.pid,
                    start: reader.id.start,
                    user: self
                        .processes
                        .get(&reader.id.pid)
                        .and_then(|process| process.user),
                    comm: reader.comm,
                    cgroup: reader.cgroup,
                    urgency: reader.urgency,
                    keys: BTreeSet::new(),
                    namespaces: BTreeSet::new(),
                    only_loopback: true,
                });
            receiver.keys.insert(key);
            receiver.namespaces.insert(reader.id.place.namespace);
            receiver.urgency = receiver.urgency.max(reader.urgency);
            receiver.only_loopback &= reader.id.place.loopback;
        }
        receivers.into_values().collect()
    }
}

/// The receivers of all network namespaces as they are now, in the order of their numbers. Nothing
/// is attached.
///
/// # Errors
/// When the kernel does not take the programs (CAP_BPF and CAP_PERFMON are needed, and BTF), or
/// outside of the first process namespace.
pub fn inspect(rules: RuleSet) -> Result<Vec<SocketReader>, Error> {
    let programs = FollowPrograms::load(EventScope::Scans)?;
    let mut table = ReceiverTable::new(rules);
    let mut questions = Questions::default();
    table.reconcile(None, programs.scan(None)?, &mut questions);
    answer_cgroups(&mut table, &mut questions);
    table.changes();
    Ok(table.receivers())
}
