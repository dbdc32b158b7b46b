// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of receivers for the XDP program.
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_core_sys::demux::{Demux, DemuxError, Lookup, Packet, SocketKey};

use super::layout::{self, CLASSES, FAMILIES, SAME_CPU, SLOTS, TABLE_WORDS};
use crate::object::Memory;
use crate::receivers::Family;

/// Reason why a table was not changed.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The class does not exist.
    #[error(
        "there is no class {class}: there are {classes} classes, numbered from 0 (the least urgent)"
    )]
    Class {
        /// Number of the class that the caller named.
        class: u8,
        /// Number of classes.
        classes: u8,
    },
    /// Core's table refuses the change.
    #[error(transparent)]
    Demux(#[from] DemuxError),
    /// The kernel refuses the new table; the old one stays in use.
    #[error("the kernel refuses the new table: {0}")]
    Publish(#[from] libbpf_rs::Error),
}

/// One of the two sets of tables that the program has in its memory.
#[derive(Debug)]
struct Copy {
    map: MapHandle,
    memory: Memory<AtomicU64>,
}

/// The receivers with their classes. [`publish`](Table::publish) passes changes to the program.
///
/// The originals are core's tables in this process: one for IPv4 and for packets without IP, and
/// one for IPv6. The program has two copies of both. It uses one copy while the other is
/// overwritten, and then the two change places. So a lookup never sees an incomplete change.
#[derive(Debug)]
pub struct Table {
    originals: [Demux; FAMILIES],
    classes: u8,
    cpu: [u32; CLASSES],
    map: [u32; CLASSES],
    copies: [Copy; 2],
    in_use: MapHandle,
    used: usize,
    is_changed: bool,
}

impl Table {
    /// Creates an empty table. `copies` are the two copies in the program's memory, of which the
    /// program uses the first. `map` is the map with the numbers of the classes' CPUMAPs.
    pub(super) fn new(
        copies: [MapHandle; 2],
        in_use: MapHandle,
        classes: u8,
        map: [u32; CLASSES],
    ) -> std::io::Result<Self> {
        // Packets without a receiver have no class, so the program leaves them to the kernel.
        // Reader numbers end at the number of slots, since the program could not find a higher one.
        let original =
            Demux::new(SLOTS, usize::from(u16::MAX), None, None).map_err(std::io::Error::other)?;
        let originals = [original.clone(), original];
        let copy = |map: MapHandle| {
            let memory = Memory::new(&map, FAMILIES * TABLE_WORDS)?;
            Ok::<_, std::io::Error>(Copy { map, memory })
        };
        let [first, second] = copies;
        Ok(Self {
            originals,
            classes,
            cpu: [SAME_CPU; CLASSES],
            map,
            copies: [copy(first)?, copy(second)?],
            in_use,
            used: 0,
            is_changed: true,
        })
    }

    /// Sets the number of classes.
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

    fn original(&mut self, family: Family) -> &mut Demux {
        &mut self.originals[usize::from(family == Family::V6)]
    }

    /// Binds `reader` to `key` of `family`. `reader` is a number that the caller chooses for a
    /// process. A reader has one class for all of its sockets: the class of the latest call. If a
    /// socket has several readers, their most urgent class counts.
    ///
    /// # Errors
    /// Fails when there is no such class or key, or no room. 8,192 sockets of a version of IP
    /// always find room, and up to 16,384 may.
    pub fn bind_in(
        &mut self,
        family: Family,
        key: SocketKey,
        reader: u16,
        class: u8,
    ) -> Result<(), TableError> {
        self.check(class)?;
        self.original(family).bind(key, reader, class)?;
        self.is_changed = true;
        Ok(())
    }

    /// Binds `reader` to `key` of both versions of IP.
    ///
    /// # Errors
    /// Fails as [`bind_in`](Self::bind_in) does. Nothing is changed then.
    pub fn bind(&mut self, key: SocketKey, reader: u16, class: u8) -> Result<(), TableError> {
        self.bind_in(Family::V4, key, reader, class)?;
        let other = self.bind_in(Family::V6, key, reader, class);
        if other.is_err() {
            self.unbind_in(Family::V4, key, reader)?;
        }
        other
    }

    /// Removes the binding of `reader` to `key` of `family`.
    ///
    /// # Errors
    /// Fails when there is no such binding.
    pub fn unbind_in(
        &mut self,
        family: Family,
        key: SocketKey,
        reader: u16,
    ) -> Result<(), TableError> {
        self.original(family).unbind(key, reader)?;
        self.is_changed = true;
        Ok(())
    }

    /// Removes the bindings of `reader` to `key` of both versions of IP.
    ///
    /// # Errors
    /// Fails when one of the bindings does not exist.
    pub fn unbind(&mut self, key: SocketKey, reader: u16) -> Result<(), TableError> {
        let both = Family::ALL.map(|family| self.unbind_in(family, key, reader));
        both.into_iter().collect()
    }

    /// Changes the class of `reader` for all of its sockets.
    ///
    /// # Errors
    /// Fails when there is no such class, or when `reader` has no sockets.
    pub fn set_class(&mut self, reader: u16, class: u8) -> Result<(), TableError> {
        self.check(class)?;
        let done = Family::ALL.map(|family| self.original(family).set_class(reader, class));
        if let [Err(error), Err(_)] = done {
            return Err(error.into());
        }
        self.is_changed = true;
        Ok(())
    }

    /// Sets the CPU on which the bottom half of a class runs, from the next
    /// [`publish`](Table::publish) on.
    pub(super) fn place(&mut self, class: usize, cpu: u32) {
        self.is_changed |= self.cpu[class] != cpu;
        self.cpu[class] = cpu;
    }

    /// Looks up the receiver of a packet, as the program will after the next
    /// [`publish`](Table::publish).
    #[must_use]
    pub fn classify(&self, packet: &Packet) -> Lookup {
        /// The EtherType of IPv6.
        const V6: Option<u16> = Some(0x86dd);
        self.originals[usize::from(packet.ethertype() == V6)].classify(packet)
    }

    /// Passes all changes since the last call to the program, at once. Does nothing without
    /// changes.
    ///
    /// It returns after some milliseconds to some tens of them, when no CPU uses the former copy
    /// any more. So many changes should be published together.
    ///
    /// # Errors
    /// Fails with [`TableError::Publish`]. The next call tries again.
    pub fn publish(&mut self) -> Result<(), TableError> {
        if !self.is_changed {
            return Ok(());
        }
        let spare = 1 - self.used;
        let copy = &self.copies[spare];
        let words = self.originals.iter().flat_map(|original| {
            let (head, slots) = original.raw();
            layout::table(head, slots, &self.cpu, &self.map)
        });
        for (to, from) in copy.memory.elements().iter().zip(words) {
            // A word that has not changed is not written, so that it stays in the caches of other
            // CPUs.
            if to.load(Ordering::Relaxed) != from {
                to.store(from, Ordering::Relaxed);
            }
        }
        // The kernel returns from a change of a map of maps only when all programs that were
        // running have ended.
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
