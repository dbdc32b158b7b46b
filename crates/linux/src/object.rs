// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs and maps of a loaded BPF object by their names, and the memory that maps share with
//! this process.
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use libbpf_rs::{Error, Map, MapCore as _, Object, ProgramMut};

/// Finds the program `name`.
///
/// # Errors
/// Fails if the object has no such program: it is not the object that this was written for.
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
/// Fails if the object has no such map.
pub(crate) fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| missing("map", name))
}

fn missing(what: &str, name: &str) -> Error {
    Error::from(io::Error::other(format!(
        "the BPF object has no {what} `{name}`"
    )))
}

/// A type that may lie in memory that the kernel's programs use at the same time.
///
/// # Safety
/// The type consists of atomics alone, for which any bytes are a value, and needs no larger
/// alignment than a page has.
pub(crate) unsafe trait Shared {}

// SAFETY: the type is an atomic.
unsafe impl Shared for AtomicU64 {}

/// The first elements of a map that was created with BPF_F_MMAPABLE.
#[derive(Debug)]
pub(crate) struct Memory<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: the memory belongs to the whole process, and only atomics are reached through it.
unsafe impl<T: Shared> Send for Memory<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Memory<T> {}

impl<T: Shared> Memory<T> {
    /// Maps the first `count` elements of the array for reading and writing.
    ///
    /// # Errors
    /// Fails if the array is smaller or cannot be mapped.
    pub fn new(array: &impl AsFd, count: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place of a new mapping, so it overlaps nothing. The
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

    /// The elements.
    pub fn elements(&self) -> &[T] {
        // SAFETY: `count` elements were mapped, aligned to a page, and stay until `drop`. `Shared`
        // allows the kernel to change them meanwhile.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this size, and no borrow of the elements outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
