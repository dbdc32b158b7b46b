// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the bottom half that runs now (`include/weir/defer.h`).

use std::ffi::c_void;

use crate::classes_ffi::{self as ffi, NONE};

/// The choice between a bottom half and a running process of the same urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ties {
    /// The bottom half waits (zhang2006 §3.2).
    Wait = 0,
    /// The bottom half runs (lee2010 §4).
    Run = 1,
}

/// A class of bottom halves, by its index below [`CLASSES`](crate::demux::CLASSES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The most packets that may wait; the one that is being handled is not counted.
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

/// An idle processor counts as a process of the least urgency that yields to equals.
fn threshold(running: Option<u8>, ties: Ties) -> (u8, u8) {
    running.map_or((0, Ties::Run as u8), |urgency| (urgency, ties as u8))
}

impl Defer {
    fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// `weir_defer_start()`: no packet waits. Classes that are not given take no packets until
    /// [`Defer::set_class`].
    ///
    /// # Errors
    /// More than [`CLASSES`](crate::demux::CLASSES) classes.
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

    /// `weir_defer_set_class()`: packets that wait in the class stay, even beyond the new capacity.
    ///
    /// # Errors
    /// The class is not below [`CLASSES`](crate::demux::CLASSES).
    pub fn set_class(&mut self, index: u8, class: Class) -> Result<(), TooManyClasses> {
        // SAFETY: the memory is a weir_defer_t that `new` has started.
        let known = unsafe {
            ffi::weir_ffi_defer_set_class(self.pointer(), index, class.capacity, class.urgency)
        };
        if known { Ok(()) } else { Err(TooManyClasses) }
    }

    /// `weir_defer_set_urgency()`: sets the urgency of a class, and so of the packets that wait in
    /// it. False if there is no such class.
    pub fn set_urgency(&mut self, class: u8, urgency: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_set_urgency(self.pointer(), class, urgency) }
    }

    /// `weir_defer_push()`: a top half leaves a packet. False: the class is full or does not exist;
    /// the packet is dropped.
    #[must_use]
    pub fn push(&mut self, class: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_push(self.pointer(), class) }
    }

    /// `weir_defer_best()`: the class that [`Defer::next`] considers.
    #[must_use]
    pub fn best(&self) -> Option<u8> {
        // SAFETY: as in `set_class`; C only reads.
        class(unsafe { ffi::weir_ffi_defer_best(self.memory.as_ptr().cast()) })
    }

    /// `weir_defer_would_run()`: whether [`Defer::next`] would begin a bottom half. `running` is
    /// the urgency of the process that runs now or, at a context switch, next.
    #[must_use]
    pub fn would_run(&self, running: Option<u8>, ties: Ties) -> bool {
        let (running, ties) = threshold(running, ties);
        // SAFETY: as in `best`.
        unsafe { ffi::weir_ffi_defer_would_run(self.memory.as_ptr().cast(), running, ties) }
    }

    /// `weir_defer_next()`: takes the oldest packet of the class whose bottom half begins now, to
    /// be handled until [`Defer::done`]. None: the running work goes on, or the context switch
    /// takes place.
    #[must_use]
    pub fn next(&mut self, running: Option<u8>, ties: Ties) -> Option<u8> {
        let (running, ties) = threshold(running, ties);
        // SAFETY: as in `set_class`.
        class(unsafe { ffi::weir_ffi_defer_next(self.pointer(), running, ties) })
    }

    /// `weir_defer_done()`: the bottom half of a class has handled its packet. False if it is not
    /// the one that began last.
    pub fn done(&mut self, class: u8) -> bool {
        // SAFETY: as in `set_class`.
        unsafe { ffi::weir_ffi_defer_done(self.pointer(), class) }
    }

    /// `weir_defer_waiting()`: packets that wait in a class; the one that is being handled is not
    /// counted.
    #[must_use]
    pub fn waiting(&self, class: u8) -> u16 {
        // SAFETY: as in `best`.
        unsafe { ffi::weir_ffi_defer_waiting(self.memory.as_ptr().cast(), class) }
    }
}
