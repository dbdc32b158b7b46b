// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checksums of packets on a veth pair. The other end leaves them out unless that is turned off,
//! since no wire could damage the packets. An XDP program's redirection loses that information, so
//! packets that mode exact gives to a class would be dropped there as damaged
//! (veth_convert_skb_to_xdp_buff and cpu_map_build_skb of the kernel up to 6.18).
use std::io;

use crate::settings::namespace::{NamespacePath, handle};
use crate::settings::{Namespace, NetDevice, OpenInterface, ethtool, netlink};

/// Name of the driver.
const DRIVER: &str = "veth";

fn is_veth(open: &OpenInterface) -> bool {
    ethtool::driver(open).is_ok_and(|driver| driver == DRIVER)
}

/// Whether packets from the other end have their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksums {
    /// They have checksums, or the interface is no veth.
    Whole,
    /// They have none.
    LeftOut {
        /// Name of the other end in its namespace.
        peer: String,
    },
    /// This process cannot examine the other end, which is in another network namespace, without
    /// CAP_SYS_ADMIN.
    Unknown,
}

impl Checksums {
    /// Examines the interface `name` of this process's network namespace.
    ///
    /// # Errors
    /// Fails with ENODEV when there is no such interface.
    pub fn of(name: &str) -> io::Result<Self> {
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

/// The interface with the number `peer` in the namespace of the other end of `index`; none if this
/// process may not enter that namespace.
fn other_end(index: i32, peer: i32) -> io::Result<Option<OpenInterface>> {
    let Some(wanted) = netlink::namespace_of_link(index)? else {
        return Ok(Namespace::own()?.at(peer));
    };
    let is_it = |place: &NamespacePath| {
        let number = handle(place).and_then(|namespace| netlink::number_of(&namespace));
        number.is_ok_and(|number| number == Some(wanted))
    };
    let place = Namespace::places().find(is_it);
    Ok(place.and_then(|place| Namespace::open(place).ok()?.at(peer)))
}
