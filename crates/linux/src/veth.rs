// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checksums of packets on a veth pair. By default the sending end leaves checksums out, since no
//! wire could damage the packets. When an XDP program redirects such a packet, the kernel forgets
//! that the checksum was left out. So a packet that mode exact gives to a class would be dropped
//! there as damaged (veth_convert_skb_to_xdp_buff and cpu_map_build_skb of the kernel up to 6.18).
use std::io;

use crate::settings::namespace::{NamespacePath, handle};
use crate::settings::{Namespace, NetDevice, OpenInterface, ethtool, netlink};

/// Name of the driver of veth pairs.
const DRIVER: &str = "veth";

fn is_veth(open: &OpenInterface) -> bool {
    ethtool::driver(open).is_ok_and(|driver| driver == DRIVER)
}

/// Whether packets from the other end have their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksums {
    /// The packets have checksums, or the interface is not a veth.
    Whole,
    /// The packets have no checksums.
    LeftOut {
        /// Name of the other end in its namespace.
        peer: String,
    },
    /// The other end is in another network namespace, and this process cannot examine it without
    /// CAP_SYS_ADMIN.
    Unknown,
}

impl Checksums {
    /// Examines the interface `name` in this process's network namespace.
    ///
    /// # Errors
    /// Fails with ENODEV when there is no such interface.
    pub fn examine(name: &str) -> io::Result<Self> {
        let interface = NetDevice::find(name, None)?;
        let open = interface.open()?;
        if !is_veth(&open) {
            return Ok(Self::Whole);
        }
        let peer = open.read("iflink")?;
        let peer = peer.trim().parse().map_err(io::Error::other)?;
        let Some(end) = other_end(interface.index, peer)? else {
            return Ok(Self::Unknown);
        };
        Ok(if ethtool::leaves_checksums_out(&end)? {
            let peer = end.name().to_owned();
            Self::LeftOut { peer }
        } else {
            Self::Whole
        })
    }
}

/// Finds the other end of the interface `index`: the interface with the index `peer` in the
/// namespace of that end. `None` if this process may not enter the namespace.
fn other_end(index: i32, peer: i32) -> io::Result<Option<OpenInterface>> {
    let Some(wanted) = netlink::namespace_of_link(index)? else {
        return Ok(Namespace::own()?.into_interface(peer));
    };
    let is_it = |place: &NamespacePath| {
        let number = handle(place).and_then(|namespace| netlink::number_of(&namespace));
        number.is_ok_and(|number| number == Some(wanted))
    };
    let place = Namespace::places().find(is_it);
    Ok(place.and_then(|place| Namespace::open(place).ok()?.into_interface(peer)))
}
