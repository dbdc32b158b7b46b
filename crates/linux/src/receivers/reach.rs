// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which receivers the packets of an interface can be for.
use std::fs;
use std::io;

use super::SocketPlace;
use crate::settings::NetDevice;

/// Which receivers can receive from an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Its index.
    pub index: u32,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// The only network namespace that its packets get to, by its cookie; `None` if they may be
    /// forwarded to others.
    pub namespace: Option<u64>,
}

impl Reach {
    /// That of the interface `name` of the caller's network namespace.
    ///
    /// # Errors
    /// When there is no such interface, or it cannot be looked at.
    pub fn of(name: &str) -> io::Result<Self> {
        Self::of_interface(&NetDevice::find(name, None)?)
    }

    /// That of an interface of the caller's network namespace. Its packets may get to other
    /// namespaces if IPv4 or IPv6 is forwarded from it, or if it is a port of a bridge or such.
    ///
    /// # Errors
    /// When it is gone, or cannot be looked at.
    pub fn of_interface(interface: &NetDevice) -> io::Result<Self> {
        /// ARPHRD_LOOPBACK of <linux/if_arp.h>.
        const LOOPBACK: &str = "772";
        let open = interface.open()?;
        let forwards = ["ipv4", "ipv6"].iter().any(|family| {
            let setting = format!("/proc/sys/net/{family}/conf/{}/forwarding", open.name());
            fs::read_to_string(setting).is_ok_and(|text| text.trim() != "0")
        });
        let is_port = open.read("master/ifindex").is_ok();
        Ok(Self {
            index: u32::try_from(interface.index).map_err(io::Error::other)?,
            loopback: open.read("type")?.trim() == LOOPBACK,
            namespace: Some(interface.namespace).filter(|_| !forwards && !is_port),
        })
    }

    /// Whether what comes from the interface can get to a socket at `place`.
    #[must_use]
    pub fn includes(&self, place: &SocketPlace) -> bool {
        match self.namespace {
            Some(namespace) if namespace != place.namespace => false,
            // Indexes are those of one namespace.
            Some(_) if place.device != 0 && place.device != self.index => false,
            // The kernel drops what comes from elsewhere for an address of the loopback interface.
            _ => self.loopback || !place.loopback,
        }
    }
}
