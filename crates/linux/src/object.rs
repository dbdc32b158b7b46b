// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in a BPF object that was loaded: its programs and maps by their names, and the memory
//! that maps share with this process.
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use libbpf_rs::{Error, Map, MapCore as _, Object, ProgramMut};

/// The program `name`.
///
/// # Errors
/// The object has none: it is not the one that this was written for.
pub(crate) fn program<'object>(
    object: &'object Object,
    name: &str,
) -> Result<ProgramMut<'object>, Error> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.ok_or_else(|| missing("program", name))
}

/// The map `name`.
///
/// # Errors
/// The object has none.
pub(crate) fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| missing("map", name))
}

fn missing(what: &str, name: &str) -> Error {
    Error::from(io::Error::other(format!(
        "the BPF object has no {what} `{name}`"
    )))
}

/// What may lie in memory that the kernel's programs use at the same time.
///
/// # Safety
/// It is made of atomics alone, for which any bytes are a value, and needs no larger alignment than
/// a page has.
pub(crate) unsafe trait Shared {}

// SAFETY: it is an atomic.
unsafe impl Shared for AtomicU64 {}

/// The first elements of an array that BPF_F_MMAPABLE lets be mapped.
#[derive(Debug)]
pub(crate) struct Memory<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: it is memory of the whole process, and nothing but atomics is reached through it.
unsafe impl<T: Shared> Send for Memory<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Memory<T> {}

impl<T: Shared> Memory<T> {
    /// Maps the first `count` elements of the array, to be read and written.
    ///
    /// # Errors
    /// The array is smaller, or cannot be mapped.
    pub fn new(array: &impl AsFd, count: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, where the kernel likes it, takes nothing from anybody; it keeps
        // the map alive.
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
        // SAFETY: so many were mapped, aligned to a page, until `drop`; that the kernel changes
        // them meanwhile is what `Shared` is about.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and no borrow of the elements outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
