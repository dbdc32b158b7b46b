// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces that nothing but a socket may keep: no thread is in such a one, nothing in
//! /proc leads into it, and its interfaces are there all the same.
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::mounted::descriptor;
use crate::sched::Tid;
use crate::threads;

/// Of a socket: its network namespace (<linux/sockios.h>).
const SIOCGSKNS: libc::c_int = 0x894C;

/// The network namespaces of all sockets that the process at `path` (/proc/PID) has open; none of
/// those that this process may not look at.
pub(super) fn namespaces(path: &Path) -> impl Iterator<Item = OwnedFd> + use<> {
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let process = number.and_then(|pid: Tid| threads::descriptor(pid).ok().flatten());
    let open = fs::read_dir(path.join("fd")).into_iter().flatten();
    open.filter_map(move |entry| {
        let entry = entry.ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        // An interface of the kind tun is in the namespace of a device that a process has open.
        let target = target.to_string_lossy();
        if !target.starts_with("socket:[") && target != "/dev/net/tun" {
            return None;
        }
        let number = entry.file_name().to_str()?.parse().ok()?;
        namespace(&borrowed(process.as_ref()?, number).ok()?).ok()
    })
}

/// What the process has open by this number: the same, and nothing is read from it or changed.
fn borrowed(process: &OwnedFd, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    descriptor(got)
}

/// The network namespace of a socket.
pub fn namespace(socket: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: the request takes no more than the descriptor.
    descriptor(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _) }.into())
}
