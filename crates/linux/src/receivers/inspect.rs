// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the receivers that exist now, without following them. `weir linux inspect` drafts a system
//! file from the result.
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
    /// Process number in the first process namespace.
    pub pid: u32,
    /// Start of the process, in ns since boot.
    pub start: u64,
    /// User of the process. `None` if its effective user is not its real user.
    pub user: Option<u32>,
    /// Name of the command: the first 15 bytes.
    #[serde(serialize_with = "super::text")]
    pub comm: Arc<str>,
    /// Cgroup of the process, as in [`Reader::cgroup`](super::Reader::cgroup).
    #[serde(serialize_with = "super::text")]
    pub cgroup: Arc<str>,
    /// Urgency of the process's most urgent thread, or of a rule for one of its ports if that is
    /// higher.
    pub urgency: Urgency,
    /// Protocols and ports that the process reads.
    pub keys: BTreeSet<PacketKey>,
    /// Cookies of the network namespaces in which the process reads.
    pub namespaces: BTreeSet<u64>,
    /// Whether the process receives only from the loopback interface.
    pub only_loopback: bool,
}

impl ReceiverTable {
    /// All receivers in the order of their process numbers.
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

/// Finds the receivers of all network namespaces, in the order of their process numbers. It
/// attaches no program to events.
///
/// # Errors
/// Fails if the kernel refuses the programs (they need CAP_BPF, CAP_PERFMON and BTF), and outside
/// of the first process namespace.
pub fn inspect(rules: RuleSet) -> Result<Vec<SocketReader>, Error> {
    let programs = FollowPrograms::load(EventScope::Scans)?;
    let mut table = ReceiverTable::new(rules);
    let mut questions = Questions::default();
    table.reconcile(None, programs.scan(None)?, &mut questions);
    answer_cgroups(&mut table, &mut questions);
    table.changes();
    Ok(table.receivers())
}
