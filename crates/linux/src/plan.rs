// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the changes that a run of a system would make on this machine, and their effect on
//! receivers.
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use serde::Serialize;
use weir_model::{LONGEST_TICK, Protocol, TopHalf};

use crate::exact::assign;
use crate::native::{Device, Native, NativeReport, Threads, cap_timer};
use crate::programs::{self, Program};
use crate::settings::ethtool;
use crate::settings::steering::FlowSpec;
use crate::settings::{NetDevice, SettingError};
use crate::share::{self, Share};
use crate::system::{self, ListeningPort, Mark, Node};
use crate::urgency::Urgency;
use crate::veth::Checksums;

/// Everything that a run changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunPlan {
    /// Name of the system in its file.
    pub system: String,
    /// Name of the mode, by which bottom halves get the urgency of their receivers.
    pub mode: &'static str,
    /// Settings that change, in the order of the changes.
    pub changes: Vec<ChangeRow>,
    /// XDP programs that are attached in mode exact.
    pub attached: Vec<AttachmentPlan>,
    /// Other BPF programs that are attached. They affect all processes of the machine.
    pub programs: Vec<Program>,
    /// What a flood over each interface can take from the receivers.
    pub shares: Vec<Share>,
    /// Wishes of the file that this machine cannot fulfil. The run leaves them out.
    pub notes: Vec<String>,
    /// Statements of the file that have no effect, and users that the file trusts.
    pub remarks: Vec<String>,
}

/// An XDP program that is attached to an interface during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentPlan {
    /// Name of the interface.
    pub interface: String,
    /// Name of the driver. `None` if the driver does not report it.
    pub driver: Option<String>,
    /// Urgencies of the classes, in ascending order. Each class has a kernel thread on each CPU.
    pub classes: Vec<Urgency>,
    /// What attaching the program may cost, as sentences.
    pub costs: Vec<String>,
}

impl AttachmentPlan {
    fn new(node: &Node, node_interface: &system::NodeInterface) -> Result<Self, PlanError> {
        let interface = find_device(node_interface)?;
        let driver = interface
            .open()
            .and_then(|open| ethtool::driver(&open))
            .ok();
        let mut costs = vec![
            "the driver may take the link down for a moment, and drop what arrives then, at the begin and at the end".to_owned(),
            "packets that are given to a class are not joined (GRO), and lose what the card knows of them: its check of the checksum, their hash, their time stamp, a VLAN tag that it took off".to_owned(),
        ];
        match driver.as_deref() {
            _ if matches!(Checksums::examine(&node_interface.name), Ok(Checksums::Unknown)) => costs.push(
                "packets whose checksums the other end leaves out are lost, which cannot be seen from here: turn that off there (`ethtool -K PEER tx off`), and say so with --yes-checksums".to_owned(),
            ),
            Some("virtio_net") => costs.push(
                "this driver refuses while its host joins packets or leaves checksums out (`ethtool -K INTERFACE gro-hw off`, or options of the host), or has fewer queues than CPUs".to_owned(),
            ),
            _ => {}
        }
        Ok(Self {
            interface: node_interface.name.clone(),
            driver,
            classes: assign::classes(&[], &node.urgencies(), &BTreeSet::new()),
            costs,
        })
    }
}

/// A setting that changes, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeRow {
    /// Description of the setting.
    pub setting: String,
    /// Value now. `None` if an earlier change creates the object of the setting.
    pub now: Option<String>,
    /// Value after the change.
    pub new: String,
}

/// Reason why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A setting cannot be read.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The BPF programs cannot be read.
    #[error("the BPF programs of weir-linux cannot be read: {0}")]
    Programs(#[from] libbpf_rs::Error),
    /// An interface cannot be found.
    #[error("the interface `{name}` cannot be found: {cause}")]
    Interface {
        /// Name of the interface.
        name: String,
        /// The system's error.
        cause: io::Error,
    },
}

impl RunPlan {
    /// Computes what a run of `node` would change, without changing anything.
    ///
    /// # Errors
    /// Fails when an interface is missing, or a setting cannot be read.
    pub fn new(node: &Node) -> Result<Self, PlanError> {
        let report = native(node, &node.interfaces)?.plan()?;
        let ends_by_timer = node.linux.cap_timer && cap_timer().0.value().is_ok();
        let tick = if ends_by_timer {
            Duration::ZERO
        } else {
            share::tick()
        };
        let attached = node
            .interfaces
            .iter()
            .filter(|_| node.linux.mode.facts().demultiplexes)
            .map(|interface| AttachmentPlan::new(node, interface))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            system: node.name.clone(),
            mode: node.linux.mode.name(),
            changes: changes(&report),
            attached,
            programs: programs::attached(node)?,
            shares: node
                .interfaces
                .iter()
                .map(|interface| Share::new(node, interface, tick, ring(node, interface)))
                .collect(),
            notes: report.notes.iter().map(ToString::to_string).collect(),
            remarks: node
                .remarks
                .iter()
                .cloned()
                .chain(tick_remark(node, tick))
                .collect(),
        })
    }
}

/// A remark for a cap that ends later on this machine than `weir check` has assumed, because of the
/// kernel's tick. `None` if the assumption holds.
fn tick_remark(node: &Node, tick: Duration) -> Option<String> {
    let is_capped = matches!(node.linux.top_half, Some(TopHalf::Cap { .. }));
    let assumed = match node.linux.tick {
        _ if node.linux.cap_timer => Duration::ZERO,
        Some(stated) => stated,
        None => LONGEST_TICK,
    };
    (is_capped && tick > assumed).then(|| {
        format!(
            "a cap ends at a tick of {tick:?} on this machine, and `weir check` took {assumed:?}: state `tick = \"{}us\"` in [linux]{}",
            tick.as_micros(),
            if node.linux.cap_timer {
                ", and leave `cap_timer` out, which this machine does not have"
            } else {
                ""
            }
        )
    })
}

/// Number of packets for which each receive queue of the card will have room. `None` if its driver
/// does not report it.
fn ring(node: &Node, interface: &system::NodeInterface) -> Option<u32> {
    let open = NetDevice::find(&interface.name, None).and_then(|found| found.open());
    let ring = open.and_then(|open| ethtool::ring(&open)).ok()?;
    Some(ring.at_least(node.linux.receive_ring.unwrap_or(0)))
}

fn changes(report: &NativeReport) -> Vec<ChangeRow> {
    let listed = report.changes.iter().map(|change| ChangeRow {
        setting: change.setting.to_string(),
        now: Some(change.from.to_string()),
        new: change.to.to_string(),
    });
    let expected = report.expected.iter().map(|expected| {
        let interface = &expected.interface;
        let (setting, now) = match &expected.threads {
            Threads::One(setting, now) => (setting.to_string(), Some(now.to_string())),
            Threads::All => (format!("the policy of the threads of {interface}"), None),
            Threads::OfQueue(queue) => (
                format!("the policy of the thread of {interface}'s queue {queue}"),
                None,
            ),
            Threads::OfOthers => (
                format!("the policy of the other threads of {interface}"),
                None,
            ),
        };
        ChangeRow {
            setting,
            now,
            new: expected.scheduled.to_string(),
        }
    });
    listed.chain(expected).collect()
}

/// Mode native for these interfaces of `node`, as they are now.
///
/// # Errors
/// Fails when an interface is missing.
pub fn native<'a>(
    node: &Node,
    interfaces: impl IntoIterator<Item = &'a system::NodeInterface>,
) -> Result<Native, PlanError> {
    let devices = interfaces
        .into_iter()
        .map(|interface| device(node, interface));
    let devices = devices.collect::<Result<_, PlanError>>()?;
    Ok(Native::new(devices)
        .with_cap_timer(node.linux.cap_timer)
        .with_receive_buffer(node.linux.receive_buffer))
}

/// Wanted state of one interface of `node`.
///
/// # Errors
/// Fails when the interface is missing.
pub fn device(node: &Node, node_interface: &system::NodeInterface) -> Result<Device, PlanError> {
    let interface = find_device(node_interface)?;
    let facts = node.linux.mode.facts();
    let follows = facts
        .follows_receivers
        .then(|| node.most_of(node_interface));
    Ok(Device {
        top_half: node.linux.top_half,
        follows,
        deferral: node_interface.deferral,
        gathering: node_interface.deferral,
        // If a program finds the receivers, or threads follow them, all queues are treated alike.
        steered: if facts.loads_programs {
            Vec::new()
        } else {
            node_interface
                .urgent
                .iter()
                .flat_map(|&mark| flows(mark))
                .collect()
        },
        others: node_interface.others,
        ring: node.linux.receive_ring,
        ..Device::new(interface, node.urgency_of(node_interface))
    })
}

fn find_device(interface: &system::NodeInterface) -> Result<NetDevice, PlanError> {
    NetDevice::find(&interface.name, None).map_err(|cause| PlanError::Interface {
        name: interface.name.clone(),
        cause,
    })
}

/// Flows that a mark selects. The rules of a card distinguish protocols and versions of IP, so one
/// port may need several flows.
fn flows(mark: Mark) -> Vec<FlowSpec> {
    let ListeningPort { protocol, number } = match mark {
        Mark::Port(port) => port,
        Mark::EtherType(number) => return vec![FlowSpec::EtherType(number)],
        Mark::Priority(number) => return vec![FlowSpec::Priority(number)],
    };
    let protocols: &[bool] = match protocol {
        Some(Protocol::Tcp) => &[true],
        Some(Protocol::Udp) => &[false],
        Some(Protocol::Icmp) => &[],
        None => &[true, false],
    };
    let versions = [false, true];
    let of_both = |&tcp: &bool| {
        versions.map(|v6| FlowSpec::Port {
            tcp,
            v6,
            port: number,
        })
    };
    protocols.iter().flat_map(of_both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_each_of_its_protocols_and_versions() {
        let port = |protocol| {
            Mark::Port(ListeningPort {
                protocol,
                number: 502,
            })
        };
        assert_eq!(flows(port(None)).len(), 4);
        assert_eq!(flows(port(Some(Protocol::Icmp))), []);
        let udp = flows(port(Some(Protocol::Udp)));
        assert_eq!(
            udp,
            [false, true].map(|v6| FlowSpec::Port {
                tcp: false,
                v6,
                port: 502
            })
        );
        assert_eq!(
            flows(Mark::EtherType(0x88f7)),
            [FlowSpec::EtherType(0x88f7)]
        );
    }
}
