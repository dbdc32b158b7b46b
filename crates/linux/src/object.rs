// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the programs and maps of a loaded BPF object by name, and maps the memory of maps into
//! this process.
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use libbpf_rs::{Error, Map, MapCore as _, Object, ProgramMut};

/// Finds the program `name`.
///
/// # Errors
/// Fails if the object has no such program, which is a defect of Weir.
pub(crate) fn program<'object>(
    object: &'object Object,
    name: &str,
) -> Result<ProgramMut<'object>, Error> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.ok_or_else(|| missing("program", name))
}

/// Finds the map `name`.
///
/// # Errors
/// Fails if the object has no such map, which is a defect of Weir.
pub(crate) fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| missing("map", name))
}

fn missing(what: &str, name: &str) -> Error {
    Error::from(io::Error::other(format!(
        "the BPF object has no {what} `{name}`"
    )))
}

/// A type that may lie in memory that BPF programs use at the same time.
///
/// # Safety
/// The type must consist of atomics alone, for which any bytes are valid. It must not need a larger
/// alignment than a page has.
pub(crate) unsafe trait Shared {}

// SAFETY: `AtomicU64` is an atomic.
unsafe impl Shared for AtomicU64 {}

/// The first elements of a map that was created with BPF_F_MMAPABLE, in the memory of this process.
#[derive(Debug)]
pub(crate) struct Memory<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: the memory belongs to the whole process, and only atomics are reached through it.
unsafe impl<T: Shared> Send for Memory<T> {}
// SAFETY: the reasons for `Send` hold here, too.
unsafe impl<T: Shared> Sync for Memory<T> {}

impl<T: Shared> Memory<T> {
    /// Maps the first `count` elements of an array map for reading and writing.
    ///
    /// # Errors
    /// Fails if the array has fewer elements or cannot be mapped.
    pub fn new(array: &impl AsFd, count: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address of the new mapping, so it overlaps no other. The
        // mapping keeps the map alive.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                array.as_fd().as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { first, count })
    }

    /// The mapped elements.
    pub fn elements(&self) -> &[T] {
        // SAFETY: `count` elements are mapped, aligned to a page, until `drop`. The bound `Shared`
        // allows for changes by the kernel.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this size, and no borrow of the elements outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
