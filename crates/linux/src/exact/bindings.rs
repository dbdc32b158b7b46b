// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a [`Table`] in step with who receives: each key that somebody reads is bound there, in the class of its most urgent reader.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use weir_core_sys::demux::{DemuxError, Key};

use super::assign::class_of;
use super::{Table, TableError};
use crate::urgency::Urgency;

/// What is bound.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: BTreeMap<Key, Bound>,
    /// Numbers that no binding has any longer; all from `next` on have not had one.
    free: Vec<u16>,
    next: u16,
    /// Keys for which the table has no room, with their urgencies.
    waiting: BTreeMap<Key, Urgency>,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    /// The core's name for whoever reads the key. Each key has one of its own: a process can be of another urgency at each, by the rules of the system file.
    reader: u16,
    urgency: Urgency,
    class: u8,
}

impl Bindings {
    /// How many keys are bound.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bound.len()
    }

    /// Whether none is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }

    /// How many keys wait for room in the table: their packets are left to the kernel.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The keys that somebody reads.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.bound.keys().chain(self.waiting.keys()).copied()
    }

    /// The urgencies that there are.
    #[must_use]
    pub fn urgencies(&self) -> BTreeSet<Urgency> {
        let bound = self.bound.values().map(|bound| bound.urgency);
        bound.chain(self.waiting.values().copied()).collect()
    }

    /// Brings `table` up to date: `wanted` are the keys of which something may have changed, each with the urgency of its most urgent reader, none if nobody reads it;
    /// `classes` are the classes' urgencies. The table is to be published then.
    ///
    /// # Errors
    /// When the table refuses for another reason than that it is full.
    pub fn update(
        &mut self,
        table: &mut Table,
        classes: &[Urgency],
        wanted: &BTreeMap<Key, Option<Urgency>>,
    ) -> Result<(), TableError> {
        // What goes makes room for what comes.
        for key in wanted
            .iter()
            .filter(|(_, urgency)| urgency.is_none())
            .map(|(key, _)| key)
        {
            self.waiting.remove(key);
            if let Some(bound) = self.bound.remove(key) {
                table.unbind(*key, bound.reader)?;
                self.free.push(bound.reader);
            }
        }
        for (key, bound) in &mut self.bound {
            if let Some(Some(urgency)) = wanted.get(key) {
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
        let mut waiting: Vec<(Key, Urgency)> = self
            .waiting
            .iter()
            .map(|(key, urgency)| (*key, *urgency))
            .collect();
        waiting.sort_by_key(|(_, urgency)| Reverse(*urgency));
        for (key, urgency) in waiting {
            if !self.bind(table, classes, key, urgency)? {
                break;
            }
        }
        Ok(())
    }

    /// Binds a key that waits; whether there was room.
    fn bind(
        &mut self,
        table: &mut Table,
        classes: &[Urgency],
        key: Key,
        urgency: Urgency,
    ) -> Result<bool, TableError> {
        let class = class_of(classes, urgency);
        let reader = match self.free.last() {
            Some(reader) => *reader,
            None if self.next == u16::MAX => return Ok(false),
            None => self.next,
        };
        match table.bind(key, reader, class) {
            Ok(()) => {}
            Err(TableError::Demux(DemuxError::NoSlot | DemuxError::NoLinks)) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.free.pop().is_none() {
            self.next += 1;
        }
        self.waiting.remove(&key);
        self.bound.insert(
            key,
            Bound {
                reader,
                urgency,
                class,
            },
        );
        Ok(true)
    }
}
