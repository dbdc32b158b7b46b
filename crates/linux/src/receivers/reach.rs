// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which receivers the packets of an interface can be for.
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::Place;

/// Which receivers can receive from an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Its index.
    pub index: u32,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// The only network namespace that its packets get to, by its cookie; `None` if they may be forwarded to others.
    pub namespace: Option<u64>,
}

impl Reach {
    /// That of the interface `name` of the caller's network namespace. Its packets may get to other namespaces if IPv4 or IPv6 is forwarded from it, or if it
    /// is a port of a bridge or such.
    ///
    /// # Errors
    /// When there is no such interface, or /sys shows another namespace than the caller's.
    pub fn of(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.contains('/') || name == ".." {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let folder = Path::new("/sys/class/net").join(name);
        let number = |file: &str| -> io::Result<u32> {
            let text = fs::read_to_string(folder.join(file))?;
            text.trim().parse().map_err(io::Error::other)
        };
        /// ARPHRD_LOOPBACK of <linux/if_arp.h>.
        const LOOPBACK: u32 = 772;
        let forwards = ["ipv4", "ipv6"].iter().any(|family| {
            let setting = format!("/proc/sys/net/{family}/conf/{name}/forwarding");
            fs::read_to_string(setting).is_ok_and(|text| text.trim() != "0")
        });
        let is_port = folder.join("master").exists();
        Ok(Self {
            index: number("ifindex")?,
            loopback: number("type")? == LOOPBACK,
            namespace: if forwards || is_port {
                None
            } else {
                Some(own_namespace()?)
            },
        })
    }

    /// Whether what comes from the interface can get to a socket at `place`.
    #[must_use]
    pub fn includes(&self, place: &Place) -> bool {
        match self.namespace {
            Some(namespace) if namespace != place.namespace => false,
            // Indexes are those of one namespace.
            Some(_) if place.device != 0 && place.device != self.index => false,
            // The kernel drops what comes from elsewhere for an address of the loopback interface.
            _ => self.loopback || !place.loopback,
        }
    }
}

/// The cookie of the caller's network namespace.
pub(crate) fn own_namespace() -> io::Result<u64> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).or_else(|_| UdpSocket::bind(("::1", 0)))?;
    let mut cookie = 0_u64;
    let mut length = 8;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`.
    let returned = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}
