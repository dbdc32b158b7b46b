// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and attaches the BPF programs of src/bpf/account.bpf.c, and reads their counters.
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsRawFd;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};

use super::Error;
use super::layout::{Delivery, HandlerPlace, MapOverflow, Spent};
use crate::receivers::cgroup;

/// The only program that runs for each packet.
const DELIVERED: &str = "account_delivered";

/// Values of all counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub spent: BTreeMap<HandlerPlace, Spent>,
    pub deliveries: BTreeMap<Delivery, u64>,
    pub lost: MapOverflow,
}

/// The attached programs. The kernel detaches them when this is dropped, or when the process ends.
pub(super) struct AccountPrograms {
    spent: MapHandle,
    deliveries: MapHandle,
    lost: MapHandle,
    network_interrupts: MapHandle,
    _links: Vec<Link>,
    _object: Object,
}

fn map(object: &Object, name: &str) -> Result<MapHandle, Error> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
    Ok(MapHandle::try_from(&map)?)
}

impl AccountPrograms {
    /// Loads and attaches the programs. The program that counts each packet is left out unless
    /// `packets` is true.
    pub fn load(packets: bool) -> Result<Self, Error> {
        let mut open = ObjectBuilder::default()
            .open_memory(include_bytes!(concat!(env!("OUT_DIR"), "/account.bpf.o")))?;
        for mut program in open.progs_mut() {
            if program.name() == DELIVERED {
                program.set_autoload(packets);
            }
        }
        let object = open.load()?;
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.autoload()) {
            links.push(if program.name() == DELIVERED {
                let root = cgroup::root().map_err(Error::Cgroup)?;
                program.attach_cgroup(root.as_raw_fd())?
            } else {
                program.attach()?
            });
        }
        Ok(Self {
            spent: map(&object, "spent")?,
            deliveries: map(&object, "deliveries")?,
            lost: map(&object, "lost")?,
            network_interrupts: map(&object, "network_interrupts")?,
            _links: links,
            _object: object,
        })
    }

    /// Tells the programs which interrupt numbers belong to network devices.
    pub fn name_interrupts(&self, numbers: &BTreeSet<u32>) -> Result<(), Error> {
        for number in numbers {
            let (key, yes) = (number.to_ne_bytes(), [1]);
            self.network_interrupts.update(&key, &yes, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// Reads the counters.
    pub fn read(&self) -> Result<Counters, Error> {
        let of_cpus = self
            .lost
            .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut lost = MapOverflow::default();
        for one in of_cpus.unwrap_or_default() {
            lost += MapOverflow::decode(&one).unwrap_or_default();
        }
        let count = |value: &[u8]| value.try_into().ok().map(u64::from_ne_bytes);
        Ok(Counters {
            spent: all(&self.spent, HandlerPlace::decode, Spent::decode)?,
            deliveries: all(&self.deliveries, Delivery::decode, count)?,
            lost,
        })
    }

    /// Removes counters to make room for others. A removed counter begins again at 0 when it is
    /// needed.
    pub fn forget(&self, places: &[HandlerPlace], deliveries: &[Delivery]) -> Result<(), Error> {
        for place in places {
            self.spent.delete(&place.encode())?;
        }
        for delivery in deliveries {
            self.deliveries.delete(&delivery.encode())?;
        }
        Ok(())
    }
}

/// Reads all elements of a map with one call.
fn all<K: Ord, V>(
    map: &MapHandle,
    key: impl Fn(&[u8]) -> Option<K>,
    value: impl Fn(&[u8]) -> Option<V>,
) -> Result<BTreeMap<K, V>, Error> {
    let elements = map.lookup_batch(map.max_entries(), MapFlags::ANY, MapFlags::ANY)?;
    Ok(elements
        .filter_map(|(bytes, content)| key(&bytes).zip(value(&content)))
        .collect())
}
