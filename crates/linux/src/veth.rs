// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of a veth pair, which leaves the checksums of what it sends out unless that is
//! turned off: nobody is to check them, since no wire is between. An XDP program's redirection
//! forgets that, so what mode exact gives to a class would be dropped as damaged there
//! (veth_convert_skb_to_xdp_buff and cpu_map_build_skb of the kernel up to 6.18).
use std::io;

use crate::machine::Lack;
use crate::settings::namespace::{NamespacePath, handle};
use crate::settings::{Namespace, NetDevice, OpenInterface, ethtool, netlink};

/// What its driver is called.
const DRIVER: &str = "veth";

fn is_veth(open: &OpenInterface) -> bool {
    ethtool::driver(open).is_ok_and(|driver| driver == DRIVER)
}

/// Whether what comes from the other end has its checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksums {
    /// It has, or the interface is no veth.
    Whole,
    /// It has not.
    LeftOut {
        /// The other end's name, where it is.
        peer: String,
    },
    /// The other end is where this process cannot look: in another network namespace, which takes
    /// CAP_SYS_ADMIN.
    Unknown,
}

impl Checksums {
    /// Of what comes to the interface `name` of this process's network namespace.
    ///
    /// # Errors
    /// ENODEV when there is none.
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

    /// What is lacking of an interface whose packets are to be given to classes. `trusted` says
    /// that what cannot be seen is whole.
    #[must_use]
    pub fn lack(self, name: &str, trusted: bool) -> Option<Lack> {
        let name = name.to_owned();
        match self {
            Self::LeftOut { peer } => Some(Lack::Checksums { name, peer }),
            Self::Unknown if !trusted => Some(Lack::UnknownChecksums { name }),
            Self::Unknown | Self::Whole => None,
        }
    }
}

/// The interface of the number `peer` where the other end of `index` is; none if this process may
/// not enter that.
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
