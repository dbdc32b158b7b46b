// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounts file systems without a place in the tree of folders.
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

const FSOPEN_CLOEXEC: libc::c_int = 1;
const FSMOUNT_CLOEXEC: libc::c_int = 1;
const FSCONFIG_CMD_CREATE: libc::c_int = 6;

/// Mounts `filesystem` without a place in the tree of folders, and returns its root. The mount
/// disappears when the descriptor is closed.
///
/// # Errors
/// Fails with EPERM without CAP_SYS_ADMIN, and with ENODEV if the kernel has no such file system.
pub(crate) fn mounted(filesystem: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the call reads a string that ends with 0.
    let opened = unsafe { libc::syscall(libc::SYS_fsopen, filesystem.as_ptr(), FSOPEN_CLOEXEC) };
    let context = descriptor(opened)?;
    let none = ptr::null::<libc::c_void>();
    // SAFETY: this command takes neither a key nor a value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            none,
            none,
            0,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes only a descriptor and numbers.
    let mounted =
        unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) };
    descriptor(mounted)
}

/// Converts the result of a system call that returns a descriptor.
pub(crate) fn descriptor(returned: libc::c_long) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    let number = i32::try_from(returned).map_err(io::Error::other)?;
    // SAFETY: the kernel has just created the descriptor for this call, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
