// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a [`Table`] up to date with the receivers. A key is a protocol and a port. Each key that a
//! process reads is bound to the class of its most urgent reader. If the table is full, less urgent
//! keys are unbound. So a process with very many sockets cannot keep out a more urgent one.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use weir_core_sys::demux::{DemuxError, SocketKey};

use super::assign::class_of;
use super::{Table, TableError};
use crate::receivers::Family;
use crate::urgency::Urgency;

/// A key, for the packets of one version of IP.
pub type Bindable = (Family, SocketKey);

/// All keys that are bound, or that wait for room in the table.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: BTreeMap<Bindable, Binding>,
    /// The bound keys of each version of IP, the least urgent first. Each version has a table of
    /// its own.
    least: BTreeMap<Family, BTreeSet<(Urgency, SocketKey)>>,
    /// Reader numbers that have become free. In addition, all numbers from `next` on are unused.
    free: Vec<u16>,
    next: u16,
    /// Keys for which the table has no room, with their urgencies.
    waiting: BTreeMap<Bindable, Urgency>,
}

#[derive(Debug, Clone, Copy)]
struct Binding {
    /// Number by which core's table knows the reader of the key. Each key has a number of its own,
    /// since the rules of the system file may give a process another urgency at each port.
    reader: u16,
    urgency: Urgency,
    class: u8,
}

impl Bindings {
    /// Number of bound keys. A key that is bound for both versions of IP counts twice.
    #[must_use]
    pub fn len(&self) -> usize {
        let waiting = self.without_room();
        let bound: BTreeSet<SocketKey> = self.bound.keys().map(|(_, key)| *key).collect();
        bound.difference(&waiting).count()
    }

    fn without_room(&self) -> BTreeSet<SocketKey> {
        self.waiting.keys().map(|(_, key)| *key).collect()
    }

    /// Whether no key is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }

    /// Number of keys for which the table has no room. Their packets are left to the kernel.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.without_room().len()
    }

    /// Keys that at least one process reads.
    pub fn keys(&self) -> impl Iterator<Item = Bindable> + '_ {
        self.bound.keys().chain(self.waiting.keys()).copied()
    }

    /// Urgencies of the bound keys.
    #[must_use]
    pub fn urgencies(&self) -> BTreeSet<Urgency> {
        let bound = self.bound.values().map(|bound| bound.urgency);
        bound.chain(self.waiting.values().copied()).collect()
    }

    /// Updates `table`. `wanted` are the keys that may have changed, each with the urgency of its
    /// most urgent reader, or `None` if nobody reads it. `classes` are the urgencies of the
    /// classes. The caller must publish the table afterwards.
    ///
    /// # Errors
    /// Fails when the table refuses a change for any reason other than that it is full.
    pub fn update(
        &mut self,
        table: &mut Table,
        classes: &[Urgency],
        wanted: &BTreeMap<Bindable, Option<Urgency>>,
    ) -> Result<(), TableError> {
        // Removals are done first, to make room.
        for key in wanted
            .iter()
            .filter(|(_, urgency)| urgency.is_none())
            .map(|(key, _)| key)
        {
            self.waiting.remove(key);
            self.let_go(table, *key)?;
        }
        for (key, bound) in &mut self.bound {
            if let Some(Some(urgency)) = wanted.get(key).filter(|it| **it != Some(bound.urgency)) {
                let least = self.least.entry(key.0).or_default();
                least.remove(&(bound.urgency, key.1));
                least.insert((*urgency, key.1));
                bound.urgency = *urgency;
            }
            let class = class_of(classes, bound.urgency);
            if class != bound.class {
                table.set_class(bound.reader, class)?;
                bound.class = class;
            }
        }
        for (key, urgency) in wanted {
            match urgency {
                Some(urgency) if !self.bound.contains_key(key) => {
                    self.waiting.insert(*key, *urgency);
                }
                _ => {}
            }
        }
        let mut waiting: Vec<(Bindable, Urgency)> = self
            .waiting
            .iter()
            .map(|(key, urgency)| (*key, *urgency))
            .collect();
        waiting.sort_by_key(|(_, urgency)| Reverse(*urgency));
        let mut full = BTreeSet::new();
        for (key, urgency) in waiting {
            // The following keys are at most as urgent as this one.
            while !full.contains(&key.0) && !self.bind(table, classes, key, urgency)? {
                // The table is full for a key when all places are taken in which the key may lie.
                // To free one of these places, some hundred other keys may have to be unbound.
                if !self.evict(table, key.0, urgency)? {
                    full.insert(key.0);
                }
            }
        }
        Ok(())
    }

    /// Unbinds one of the least urgent keys of `family`, if it is less urgent than `urgency`. That
    /// key then waits for room. Returns whether there was such a key.
    fn evict(
        &mut self,
        table: &mut Table,
        family: Family,
        urgency: Urgency,
    ) -> Result<bool, TableError> {
        let first = self.least.get(&family).and_then(BTreeSet::first);
        let Some((least, key)) = first.copied().filter(|(least, _)| *least < urgency) else {
            return Ok(false);
        };
        self.let_go(table, (family, key))?;
        self.waiting.insert((family, key), least);
        Ok(true)
    }

    /// Unbinds a key if it is bound.
    fn let_go(&mut self, table: &mut Table, key: Bindable) -> Result<(), TableError> {
        if let Some(bound) = self.bound.remove(&key) {
            let least = self.least.entry(key.0).or_default();
            least.remove(&(bound.urgency, key.1));
            table.unbind_in(key.0, key.1, bound.reader)?;
            self.free.push(bound.reader);
        }
        Ok(())
    }

    /// Binds a key that waits, and returns whether there was room.
    fn bind(
        &mut self,
        table: &mut Table,
        classes: &[Urgency],
        key: Bindable,
        urgency: Urgency,
    ) -> Result<bool, TableError> {
        let class = class_of(classes, urgency);
        let reader = match self.free.last() {
            Some(reader) => *reader,
            None if self.next == u16::MAX => return Ok(false),
            None => self.next,
        };
        match table.bind_in(key.0, key.1, reader, class) {
            Ok(()) => {}
            Err(TableError::Demux(DemuxError::NoSlot | DemuxError::NoLinks)) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.free.pop().is_none() {
            self.next += 1;
        }
        self.waiting.remove(&key);
        let least = self.least.entry(key.0).or_default();
        least.insert((urgency, key.1));
        self.bound.insert(
            key,
            Binding {
                reader,
                urgency,
                class,
            },
        );
        Ok(true)
    }
}
