// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces that exist only through a socket: no thread is in such a namespace and
//! nothing in /proc leads to it, but its interfaces exist.
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::mounted::descriptor;
use crate::sched::Tid;
use crate::threads;

/// Socket ioctl: opens the socket's network namespace (<linux/sockios.h>).
const SIOCGSKNS: libc::c_int = 0x894C;

/// Network namespaces of all sockets of the process at `path` (/proc/PID), without those that this
/// process may not examine.
pub(super) fn namespaces(path: &Path) -> impl Iterator<Item = OwnedFd> + use<> {
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let process = number.and_then(|pid: Tid| threads::descriptor(pid).ok().flatten());
    let open = fs::read_dir(path.join("fd")).into_iter().flatten();
    open.filter_map(move |entry| {
        let entry = entry.ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        // A process may keep an interface of the kind tun, in its namespace, by an open device.
        let target = target.to_string_lossy();
        if !target.starts_with("socket:[") && target != "/dev/net/tun" {
            return None;
        }
        let number = entry.file_name().to_str()?.parse().ok()?;
        namespace(&borrowed(process.as_ref()?, number).ok()?).ok()
    })
}

/// Duplicates the descriptor `number` of the process. Nothing is read from it or changed.
fn borrowed(process: &OwnedFd, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    descriptor(got)
}

/// Network namespace of a socket.
pub fn namespace(socket: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: the request uses only the descriptor.
    descriptor(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _) }.into())
}
