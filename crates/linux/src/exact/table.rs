// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table that the XDP program looks receivers up in.
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_core_sys::demux::{Demux, DemuxError, Found, Key, Packet};

use super::layout::{self, CLASSES, SAME_CPU, SLOTS, TABLE_WORDS};
use crate::object::Memory;

/// Why a table is not changed; nothing is then.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// There are not so many classes.
    #[error("class {class}: there are {classes}, from 0 (the least urgent) on")]
    Class {
        /// What was asked for.
        class: u8,
        /// How many there are.
        classes: u8,
    },
    /// The core's table refuses.
    #[error(transparent)]
    Demux(#[from] DemuxError),
    /// The kernel does not take the new table; the old one stays in use.
    #[error("the kernel does not take the new table: {0}")]
    Publish(#[from] libbpf_rs::Error),
}

/// One of the two tables that the program knows.
#[derive(Debug)]
struct Copy {
    map: MapHandle,
    memory: Memory<AtomicU64>,
}

/// Who receives what, and in which class; [`publish`](Table::publish) makes changes known to the program.
///
/// The core's table in this process is the original. The program has two copies: it looks up in one, and the other is overwritten and then put in its place,
/// so a lookup never sees half of a change.
#[derive(Debug)]
pub struct Table {
    original: Demux,
    classes: u8,
    cpu: [u32; CLASSES],
    map: [u32; CLASSES],
    copies: [Copy; 2],
    in_use: MapHandle,
    used: usize,
    is_changed: bool,
}

impl Table {
    /// An empty table. `copies` are the program's two, of which it uses the first; `map` has the numbers of the classes' CPUMAPs.
    pub(super) fn new(
        copies: [MapHandle; 2],
        in_use: MapHandle,
        classes: u8,
        map: [u32; CLASSES],
    ) -> std::io::Result<Self> {
        // What has no receiver is no class's: the program leaves it to the kernel. A reader more than there are slots for could not be found by the program.
        let original =
            Demux::new(SLOTS, usize::from(u16::MAX), None, None).map_err(std::io::Error::other)?;
        let copy = |map: MapHandle| {
            let memory = Memory::new(&map, TABLE_WORDS)?;
            Ok::<_, std::io::Error>(Copy { map, memory })
        };
        let [first, second] = copies;
        Ok(Self {
            original,
            classes,
            cpu: [SAME_CPU; CLASSES],
            map,
            copies: [copy(first)?, copy(second)?],
            in_use,
            used: 0,
            is_changed: true,
        })
    }

    /// How many classes there are from now on.
    pub(super) fn set_classes(&mut self, classes: u8) {
        self.classes = classes;
    }

    fn check(&self, class: u8) -> Result<(), TableError> {
        let classes = self.classes;
        if class < classes {
            Ok(())
        } else {
            Err(TableError::Class { class, classes })
        }
    }

    /// `reader`, the caller's name for a process, reads the socket `key` from now on. It has one class, the one told last, in all its sockets; a socket that
    /// several read has that of the most urgent one.
    ///
    /// # Errors
    /// No such class or key, or no room: 8,192 sockets always have it, up to 16,384 may.
    pub fn bind(&mut self, key: Key, reader: u16, class: u8) -> Result<(), TableError> {
        self.check(class)?;
        self.original.bind(key, reader, class)?;
        self.is_changed = true;
        Ok(())
    }

    /// `reader` does not read the socket any more.
    ///
    /// # Errors
    /// It does not read it.
    pub fn unbind(&mut self, key: Key, reader: u16) -> Result<(), TableError> {
        self.original.unbind(key, reader)?;
        self.is_changed = true;
        Ok(())
    }

    /// The class of `reader` changes, in all its sockets.
    ///
    /// # Errors
    /// No such class, or it reads no socket.
    pub fn set_class(&mut self, reader: u16, class: u8) -> Result<(), TableError> {
        self.check(class)?;
        self.original.set_class(reader, class)?;
        self.is_changed = true;
        Ok(())
    }

    /// Where a class's bottom half runs from the next [`publish`](Table::publish) on.
    pub(super) fn place(&mut self, class: usize, cpu: u32) {
        self.is_changed |= self.cpu[class] != cpu;
        self.cpu[class] = cpu;
    }

    /// Whom a packet for `key` is for, once all changes are published.
    #[must_use]
    pub fn lookup(&self, key: Key) -> Found {
        self.original.lookup(key)
    }

    /// Whom a frame is for, once all changes are published.
    #[must_use]
    pub fn classify(&self, packet: &Packet) -> Found {
        self.original.classify(packet)
    }

    /// Makes all changes since the last time known to the program, at once. Without changes it does nothing.
    ///
    /// It returns when no CPU looks up in the former table any more, after some milliseconds to some tens of them: change much, then publish once.
    ///
    /// # Errors
    /// [`TableError::Publish`]; to call it again tries again.
    pub fn publish(&mut self) -> Result<(), TableError> {
        if !self.is_changed {
            return Ok(());
        }
        let spare = 1 - self.used;
        let copy = &self.copies[spare];
        let (head, slots) = self.original.raw();
        let words = layout::table(head, slots, &self.cpu, &self.map);
        for (to, from) in copy.memory.elements().iter().zip(words) {
            // What is the same stays in the caches of the other CPUs.
            if to.load(Ordering::Relaxed) != from {
                to.store(from, Ordering::Relaxed);
            }
        }
        // The kernel returns from a change of a map of maps when the programs that were running then have ended.
        self.in_use.update(
            &0_u32.to_ne_bytes(),
            &copy.map.as_fd().as_raw_fd().to_ne_bytes(),
            MapFlags::ANY,
        )?;
        self.used = spare;
        self.is_changed = false;
        Ok(())
    }
}
