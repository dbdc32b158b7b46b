// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds network namespaces that exist only through a socket. No thread is in such a namespace and
//! no path in /proc leads to it, but its interfaces exist.
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::mounted::descriptor;
use crate::sched::Tid;
use crate::threads;

/// The ioctl of sockets that opens the socket's network namespace (<linux/sockios.h>).
const SIOCGSKNS: libc::c_int = 0x894C;

/// Opens the network namespaces of all sockets of the process at `path` (/proc/PID). Sockets that
/// this process may not examine are left out.
pub(super) fn namespaces(path: &Path) -> impl Iterator<Item = OwnedFd> + use<> {
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    let process = number.and_then(|pid: Tid| threads::descriptor(pid).ok().flatten());
    let open = fs::read_dir(path.join("fd")).into_iter().flatten();
    open.filter_map(move |entry| {
        let entry = entry.ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        // An open tun device counts as a socket: it keeps an interface in its namespace.
        let target = target.to_string_lossy();
        if !target.starts_with("socket:[") && target != "/dev/net/tun" {
            return None;
        }
        let number = entry.file_name().to_str()?.parse().ok()?;
        namespace(&borrowed(process.as_ref()?, number).ok()?).ok()
    })
}

/// Duplicates the descriptor `number` of the process. This neither reads from the file nor changes
/// it.
fn borrowed(process: &OwnedFd, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes only numbers.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    descriptor(got)
}

/// Opens the network namespace of a socket.
pub fn namespace(socket: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: the request passes no pointers.
    descriptor(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _) }.into())
}
