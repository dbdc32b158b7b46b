// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the root of cgroup v2 is, and in which cgroup a process is.
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use procfs::process::Process;

/// The root of cgroup v2, to attach programs to: where it is mounted, else by a mount of our own that has no place in the tree and is gone with the descriptor
/// (which needs CAP_SYS_ADMIN).
pub(crate) fn root() -> io::Result<OwnedFd> {
    let mounts = Process::myself()
        .and_then(|myself| myself.mountinfo())
        .map_err(io::Error::other)?;
    let mounted = mounts
        .into_iter()
        .find(|mount| mount.fs_type == "cgroup2" && mount.root == "/");
    match mounted {
        Some(mount) => Ok(File::open(mount.mount_point)?.into()),
        None => mount(c"cgroup2"),
    }
}

/// Mounts a file system without a place.
fn mount(name: &CStr) -> io::Result<OwnedFd> {
    /// FSCONFIG_CMD_CREATE of <linux/mount.h>.
    const CREATE: libc::c_long = 6;
    // SAFETY: the call reads a string that ends with 0.
    let context = opened(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), 1) })?;
    let none = std::ptr::null::<u8>();
    // SAFETY: this command takes neither key nor value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            CREATE,
            none,
            none,
            0,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes a descriptor and numbers. 1 is FSMOUNT_CLOEXEC.
    opened(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}

fn opened(returned: libc::c_long) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = i32::try_from(returned).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The path of the cgroup that a process is in, empty if the process is gone: of v2; of systemd's own hierarchy where that one has only a root.
pub(crate) fn of(pid: u32) -> String {
    let groups = i32::try_from(pid)
        .ok()
        .and_then(|pid| Process::new(pid).ok()?.cgroups().ok());
    let mut path = String::new();
    for group in groups.into_iter().flatten() {
        let is_second = group.controllers.iter().all(String::is_empty);
        let is_systemd = group.controllers.iter().any(|name| name == "name=systemd");
        if is_second && (path.is_empty() || group.pathname != "/")
            || is_systemd && matches!(&*path, "" | "/")
        {
            path = group.pathname;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_cgroup() {
        assert!(of(std::process::id()).starts_with('/'));
        assert_eq!(of(u32::MAX), "");
    }
}
