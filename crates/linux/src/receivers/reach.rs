// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which receivers the packets of an interface can reach.
use std::fs;
use std::io;

use super::SocketPlace;
use crate::settings::NetDevice;

/// Where the packets of an interface can get to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Index of the interface.
    pub index: u32,
    /// Whether this is the loopback interface.
    pub loopback: bool,
    /// Cookie of the only network namespace that the packets can get to. `None` if they may be
    /// forwarded to others.
    pub namespace: Option<u64>,
}

impl Reach {
    /// Finds the reach of the interface `name` of the caller's network namespace.
    ///
    /// # Errors
    /// Fails if there is no such interface, or if it cannot be examined.
    pub fn find(name: &str) -> io::Result<Self> {
        Self::for_interface(&NetDevice::find(name, None)?)
    }

    /// Finds the reach of an interface of the caller's network namespace. Its packets may get to
    /// other namespaces if it forwards IPv4 or IPv6, or if it is a port of a bridge or a similar
    /// device.
    ///
    /// # Errors
    /// Fails if the interface is gone or cannot be examined.
    pub fn for_interface(interface: &NetDevice) -> io::Result<Self> {
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

    /// Whether packets from the interface can get to a socket at `place`.
    #[must_use]
    pub fn includes(&self, place: &SocketPlace) -> bool {
        match self.namespace {
            Some(namespace) if namespace != place.namespace => false,
            // Both interfaces are in the same namespace here, so their indices can be compared.
            Some(_) if place.device != 0 && place.device != self.index => false,
            // If a packet for a loopback address comes from another interface, the kernel drops it.
            _ => self.loopback || !place.loopback,
        }
    }
}
