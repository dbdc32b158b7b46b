// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a BPF array, which the kernel's programs use at the same time.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// All elements of an array of words that BPF_F_MMAPABLE lets be mapped.
#[derive(Debug)]
pub struct Memory {
    first: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: it is memory of the whole process, and nothing but atomic words is reached through it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `words` words of the array, to be read and written.
    ///
    /// # Errors
    /// The array is smaller, or cannot be mapped.
    pub fn new(array: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, where the kernel likes it, takes nothing from anybody.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                words * size_of::<u64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                array.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { first, words })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many were mapped, aligned to a page, until `drop`; that the kernel changes them meanwhile is what atomics are for.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and no borrow of the words outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}
