// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the root of cgroup v2, and the cgroup of a process.
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use procfs::process::Process;

use crate::mounted::mounted;

/// Opens the root of cgroup v2, so that programs can be attached to it. If cgroup v2 is not
/// mounted, this process mounts it, which needs CAP_SYS_ADMIN. That mount has no place in the tree
/// of folders, and disappears with the descriptor.
pub(crate) fn root() -> io::Result<OwnedFd> {
    let mounts = Process::myself()
        .and_then(|myself| myself.mountinfo())
        .map_err(io::Error::other)?;
    // The list also has mounts that are hidden by another mount.
    let found = mounts
        .into_iter()
        .filter(|mount| mount.fs_type == "cgroup2" && mount.root == "/")
        .find_map(|mount| File::open(mount.mount_point).ok());
    match found {
        Some(root) => Ok(root.into()),
        None => mounted(c"cgroup2"),
    }
}

/// Path of a process's cgroup: of v2, or of systemd's own hierarchy if v2 has only a root. The path
/// is empty if the process has ended.
pub(crate) fn read(pid: u32) -> String {
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
        assert!(read(std::process::id()).starts_with('/'));
        assert_eq!(read(u32::MAX), "");
    }
}
