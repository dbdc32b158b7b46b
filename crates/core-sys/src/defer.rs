// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which bottom half runs now (`include/weir/defer.h`).

use std::ffi::c_void;

use crate::classes_ffi::{self as ffi, NONE};

/// Decides between a bottom half and a running process of the same urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ties {
    /// The bottom half waits (zhang2006 §3.2).
    Wait = 0,
    /// The bottom half runs (lee2010 §4).
    Run = 1,
}

/// The settings of a class of bottom halves. A class is identified by an index below
/// [`CLASSES`](crate::demux::CLASSES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The most packets that may wait, not counting the packet that is being handled.
    pub capacity: u16,
    /// The urgency of the class; higher is more urgent.
    pub urgency: u8,
}

/// There are more classes than [`CLASSES`](crate::demux::CLASSES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyClasses;

impl std::fmt::Display for TooManyClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there may be 64 classes at most")
    }
}

impl std::error::Error for TooManyClasses {}

/// The bottom halves of one processor: `weir_defer_t`. A clone is independent.
#[derive(Clone, Debug)]
pub struct Defer {
    memory: Box<[u64]>,
}

fn class(raw: u8) -> Option<u8> {
    (raw != NONE).then_some(raw)
}

/// An idle processor counts as a process of the lowest urgency that yields to bottom halves of the
/// same urgency.
fn threshold(running: Option<u8>, ties: Ties) -> (u8, u8) {
    running.map_or((0, Ties::Run as u8), |urgency| (urgency, ties as u8))
}

impl Defer {
    fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// Calls `weir_defer_start()`. No packets wait at the beginning. Classes beyond `classes`
    /// accept no packets until [`Defer::set_class`] is called for them.
    ///
    /// # Errors
    /// Fails if there are more than [`CLASSES`](crate::demux::CLASSES) classes.
    pub fn new(classes: &[Class]) -> Result<Self, TooManyClasses> {
        // SAFETY: the function takes no argument and touches no memory.
        let size = unsafe { ffi::weir_ffi_defer_size() };
        let mut defer = Defer {
            memory: vec![0; size.div_ceil(8)].into_boxed_slice(),
        };
        // SAFETY: the memory has at least `size` bytes, and nothing in a weir_defer_t needs a
        // greater alignment than a u64's.
        unsafe { ffi::weir_ffi_defer_start(defer.pointer()) };
        for (index, &class) in classes.iter().enumerate() {
            let index = u8::try_from(index).unwrap_or(NONE);
            defer.set_class(index, class)?;
        }
        Ok(defer)
    }

    /// Calls `weir_defer_set_class()`. Packets that wait in the class stay there, even if they
    /// exceed the new capacity.
    ///
    /// # Errors
    /// Fails if the class is not below [`CLASSES`](crate::demux::CLASSES).
    pub fn set_class(&mut self, index: u8, class: Class) -> Result<(), TooManyClasses> {
        // SAFETY: the memory is a weir_defer_t that `new` has started.
        let known = unsafe {
            ffi::weir_ffi_defer_set_class(self.pointer(), index, class.capacity, class.urgency)
        };
        if known { Ok(()) } else { Err(TooManyClasses) }
    }

    /// Calls `weir_defer_set_urgency()`: sets the urgency of a class, which also applies to the
    /// packets that already wait in it. Returns false if the class does not exist.
    pub fn set_urgency(&mut self, class: u8, urgency: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_set_urgency(self.pointer(), class, urgency) }
    }

    /// Calls `weir_defer_push()` for a packet that a top half defers. Returns false if the class is
    /// full or does not exist; the packet is then dropped.
    #[must_use]
    pub fn push(&mut self, class: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_push(self.pointer(), class) }
    }

    /// Calls `weir_defer_best()`: returns the class that [`Defer::next`] considers.
    #[must_use]
    pub fn best(&self) -> Option<u8> {
        // SAFETY: as in `set_class`; C only reads.
        class(unsafe { ffi::weir_ffi_defer_best(self.memory.as_ptr().cast()) })
    }

    /// Calls `weir_defer_would_run()`: returns whether [`Defer::next`] would start a bottom half.
    /// `running` is the urgency of the process that runs now or, at a context switch, next.
    #[must_use]
    pub fn would_run(&self, running: Option<u8>, ties: Ties) -> bool {
        let (running, ties) = threshold(running, ties);
        // SAFETY: as in `best`.
        unsafe { ffi::weir_ffi_defer_would_run(self.memory.as_ptr().cast(), running, ties) }
    }

    /// Calls `weir_defer_next()`: removes the oldest packet of the class whose bottom half starts
    /// now, and returns that class. The packet is being handled until [`Defer::done`]. `None` means
    /// that the running work continues, or that the context switch takes place.
    #[must_use]
    pub fn next(&mut self, running: Option<u8>, ties: Ties) -> Option<u8> {
        let (running, ties) = threshold(running, ties);
        // SAFETY: as in `set_class`.
        class(unsafe { ffi::weir_ffi_defer_next(self.pointer(), running, ties) })
    }

    /// Calls `weir_defer_done()` when the bottom half of a class has handled its packet. Returns
    /// false unless that bottom half started last.
    pub fn done(&mut self, class: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_done(self.pointer(), class) }
    }

    /// Calls `weir_defer_waiting()`: returns the number of packets that wait in a class, not
    /// counting the packet that is being handled.
    #[must_use]
    pub fn waiting(&self, class: u8) -> u16 {
        // SAFETY: as in `best`.
        unsafe { ffi::weir_ffi_defer_waiting(self.memory.as_ptr().cast(), class) }
    }
}
