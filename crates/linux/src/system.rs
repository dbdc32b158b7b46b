// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system file in the form that this machine uses: interfaces by their names, each with its
//! receivers.
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_core_sys::demux;
use weir_model::{Accounting, CAP, Linux, LinuxMode, Protocol, System, TopHalf};

use crate::account;
use crate::exact::{LONGEST_QUEUE, ORDINARY_QUEUE};
use crate::predicted;
use crate::receivers::{self, Rule, RuleSet};
use crate::urgency::Urgency;

pub use refused::NotForLinux;

/// Default receive buffer of new sockets in mode [`LinuxMode::Exact`], in bytes. A packet that
/// passes through a class takes 4,352 bytes of the buffer: a page, and the kernel's record of the
/// packet. Otherwise a small packet takes 768 bytes. So this buffer has room for 240 packets. The
/// kernel's own default has room for 277 small packets, or for 92 packets of 1,500 bytes.
const RECEIVE_BUFFER: u32 = 1 << 20;

/// What a system file asks this machine to do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// Name of the system in its file.
    pub name: String,
    /// The section `[linux]`, with the defaults of the mode filled in. `accounting` is never
    /// `None`. `top_half` is `None` if the thread has the urgency of its most urgent receiver.
    /// `receive_buffer` is `None` if the buffers stay as they are.
    pub linux: Linux,
    /// Interfaces in the file's order, each once. There is at least one, unless the run only keeps
    /// an account.
    pub interfaces: Vec<NodeInterface>,
    /// Receivers in the file's order.
    pub receivers: Vec<NodeReceiver>,
    /// Number of packets that may wait for the bottom halves of a class on each CPU, by the class's
    /// urgency. It is the sum of the queues that are stated for flows to receivers of that urgency.
    /// Only mode exact uses it.
    pub queues: BTreeMap<Urgency, u32>,
    /// Packets that flows select by something other than a port, each with the urgency of their
    /// receiver. In mode exact they apply to packets that no port decides.
    pub selected: Vec<(demux::SocketKey, Urgency)>,
    /// Statements of the file that have no effect, and remarks about users that it trusts.
    pub remarks: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeInterface {
    /// Name as `ip link` shows it.
    pub name: String,
    /// Indices in [`Node::receivers`] of the receivers of the interface's flows, in ascending
    /// order.
    pub receivers: Vec<usize>,
    /// Time for which packets may wait to share an interrupt. `None` if the file does not state it.
    pub deferral: Option<Duration>,
    /// Marks of the packets for the most urgent receivers, if the interface has other receivers,
    /// too. Packets with these marks need not wait behind the others.
    pub urgent: Vec<Mark>,
    /// Urgency of the most urgent receiver of packets without such a mark.
    pub others: Urgency,
    /// Longest work for each packet in the thread that takes packets from the device. `None` if the
    /// file does not state it.
    pub top_half: Option<Duration>,
    /// Longest work for each packet after the top half, at the receiver's urgency. `None` if the
    /// file does not state it.
    pub bottom_half: Option<Duration>,
    /// Packets per second that the system tolerates from the interface. `None` if the file does not
    /// state it for each of the interface's sources.
    pub tolerated_hz: Option<f64>,
}

/// A receiver, and the properties by which its sockets are recognised.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeReceiver {
    /// Name of the receiver in the file.
    pub name: String,
    /// Urgency of the receiver.
    pub urgency: Urgency,
    /// Ports of the receiver's `match` and of its flows, each once. An empty list means any port.
    pub ports: Vec<ListeningPort>,
    /// Path of the receiver's control group, or of a group above it. `None` means any.
    pub cgroup: Option<String>,
    /// Name of the receiver's program. `None` means any.
    pub command: Option<String>,
    /// Number of the user that the receiver runs as. `None` means any.
    pub user: Option<u32>,
}

/// A port of TCP, of UDP or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningPort {
    /// The protocol. `None` means both.
    pub protocol: Option<Protocol>,
    /// Number of the port, from 1 to 65535.
    pub number: u16,
}

/// A property of packets by which a network card can select them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Destination port.
    Port(ListeningPort),
    /// The packet's EtherType.
    EtherType(u16),
    /// Priority in the packet's VLAN tag, from 0 to 7.
    Priority(u8),
}

impl Node {
    /// Converts `system` for this machine. If `mode` is given, it replaces the mode in the file.
    ///
    /// # Errors
    /// Fails when the system has no network interface although the mode needs one. Also fails when
    /// it asks for something that Linux does not have.
    pub fn new(system: &System, mode: Option<LinuxMode>) -> Result<Self, NotForLinux> {
        if let Some((flow, network)) = system
            .flows
            .iter()
            .find_map(|flow| Some((flow, flow.selector.address?)))
        {
            return Err(NotForLinux::Address {
                flow: flow.name.clone(),
                address: format!("{}/{}", network.address, network.prefix),
            });
        }
        let receivers = (0..system.receivers.len())
            .map(|index| receiver(system, index))
            .collect::<Result<Vec<_>, _>>()?;
        let mut linux = system.linux.clone();
        let mode = mode.unwrap_or(linux.mode);
        linux.mode = mode;
        let facts = mode.facts();
        // A mode without BPF works everywhere. The account needs BPF, so the default in such a mode
        // is to keep none.
        linux.accounting.get_or_insert(if facts.loads_programs {
            Accounting::Packets
        } else {
            Accounting::Off
        });
        let mut interfaces = interfaces(system);
        let only_accounts = !facts.loads_programs && linux.accounting != Some(Accounting::Off);
        if interfaces.is_empty() && !only_accounts {
            return Err(NotForLinux::NoInterface {
                name: system.name.clone(),
            });
        }
        for interface in &mut interfaces {
            (interface.urgent, interface.others) = urgent(system, interface, &receivers);
        }
        linux.check(mode)?;
        if facts.follows_receivers && interfaces.len() > predicted::DEVICES {
            return Err(NotForLinux::Interfaces {
                name: system.name.clone(),
                found: interfaces.len(),
            });
        }
        if facts.demultiplexes {
            linux.top_half.get_or_insert(CAP);
            linux.receive_buffer.get_or_insert(RECEIVE_BUFFER);
        }
        linux.receive_buffer = linux.receive_buffer.filter(|&bytes| bytes > 0);
        Ok(Self {
            name: system.name.clone(),
            linux,
            interfaces,
            selected: selected(system, &receivers),
            remarks: remarks(system, &receivers),
            queues: if facts.demultiplexes {
                queues(system, &receivers)?
            } else {
                BTreeMap::new()
            },
            receivers,
        })
    }

    /// Whether a run loads BPF programs: for its mode, or for the account.
    #[must_use]
    pub fn loads_programs(&self) -> bool {
        self.linux.mode.facts().loads_programs || self.is_accounting()
    }

    /// Urgencies of the receivers in the file.
    #[must_use]
    pub fn urgencies(&self) -> BTreeSet<Urgency> {
        self.receivers.iter().map(|one| one.urgency).collect()
    }

    /// Rules of the file for receivers: one for each port of a receiver. A receiver without any
    /// property of its sockets has no rule.
    #[must_use]
    pub fn rules(&self) -> RuleSet {
        let rules = self.receivers.iter().flat_map(|receiver| {
            let rule = |protocol, port| Rule {
                protocol,
                port,
                cgroup: receiver.cgroup.clone(),
                command: receiver.command.clone(),
                user: receiver.user,
                urgency: receiver.urgency,
            };
            let mut rules: Vec<Rule> = receiver
                .ports
                .iter()
                .filter_map(|port| {
                    let protocol = match port.protocol {
                        None => None,
                        Some(Protocol::Tcp) => Some(receivers::Protocol::Tcp),
                        Some(Protocol::Udp) => Some(receivers::Protocol::Udp),
                        // ICMP has no ports, so there is no rule for it.
                        Some(Protocol::Icmp) => return None,
                    };
                    Some(rule(protocol, Some(port.number)))
                })
                .collect();
            let says_who =
                receiver.cgroup.is_some() || receiver.command.is_some() || receiver.user.is_some();
            if receiver.ports.is_empty() && says_who {
                rules.push(rule(None, None));
            }
            rules
        });
        RuleSet::new(rules.collect())
    }

    /// Whether an account is kept.
    #[must_use]
    pub fn is_accounting(&self) -> bool {
        self.linux
            .accounting
            .is_some_and(|kept| kept != Accounting::Off)
    }

    /// Options of the account. `None` if no account is kept.
    #[must_use]
    pub fn accounting(&self) -> Option<account::Options> {
        if !self.is_accounting() {
            return None;
        }
        let interfaces: BTreeMap<_, _> = self
            .interfaces
            .iter()
            .map(|interface| (interface.name.clone(), interface.tolerated_hz))
            .collect();
        Some(account::Options {
            packets: self.linux.accounting == Some(Accounting::Packets),
            interrupt_overhead: self.linux.interrupt_overhead,
            interfaces,
            ..account::Options::default()
        })
    }

    /// Highest urgency of an interface's threads in mode predicted. It is the stated urgency of the
    /// top half, or else that of the interface's most urgent receiver in the file. So no other
    /// process gains more urgency than the file gives. Without either it is the highest of all
    /// urgencies.
    #[must_use]
    pub fn most_of(&self, interface: &NodeInterface) -> Urgency {
        let most = match self.linux.top_half {
            Some(TopHalf::Urgency(place)) => Urgency::new(place).unwrap_or(Urgency::MOST),
            _ if interface.receivers.is_empty() => Urgency::MOST,
            _ => self.urgency_of(interface),
        };
        most.min(predicted::MOST)
    }

    /// Urgency of the most urgent receiver of an interface. It is 0 if the interface has no
    /// receiver.
    #[must_use]
    pub fn urgency_of(&self, interface: &NodeInterface) -> Urgency {
        let receivers = interface.receivers.iter();
        receivers
            .filter_map(|&index| self.receivers.get(index))
            .map(|receiver| receiver.urgency)
            .max()
            .unwrap_or(Urgency::ORDINARY)
    }
}

fn receiver(system: &System, index: usize) -> Result<NodeReceiver, NotForLinux> {
    let described = &system.receivers[index];
    let mut ports: Vec<ListeningPort> = Vec::new();
    let stated = described.port.map(|number| ListeningPort {
        protocol: None,
        number,
    });
    let of_flows = system.flows.iter().filter(|flow| flow.receiver == index);
    let of_flows = of_flows.filter_map(|flow| {
        Some(ListeningPort {
            protocol: flow.selector.protocol,
            number: flow.selector.port?,
        })
    });
    for port in stated.into_iter().chain(of_flows) {
        // A port without a protocol includes the ports of both protocols.
        if !ports.iter().any(|known| {
            *known == port || (known.number == port.number && known.protocol.is_none())
        }) {
            ports.push(port);
        }
    }
    let matched = system
        .linux
        .matches
        .iter()
        .find(|one| one.receiver == index);
    Ok(NodeReceiver {
        name: described.name.clone(),
        urgency: Urgency::new(described.urgency).map_err(|cause| NotForLinux::TooUrgent {
            name: described.name.clone(),
            cause,
        })?,
        ports,
        user: matched
            .and_then(|one| one.user.as_deref())
            .map(|user| user_of(&described.name, user))
            .transpose()?,
        cgroup: matched.and_then(|one| one.cgroup.clone()),
        command: matched.and_then(|one| one.command.clone()),
    })
}

/// Computes the lengths of the queues. A class has one queue for all of its flows, and a flow that
/// states no queue adds nothing to it. If packets of ordinary processes wait in the queue, too, it
/// has at least their usual room.
fn queues(
    system: &System,
    receivers: &[NodeReceiver],
) -> Result<BTreeMap<Urgency, u32>, NotForLinux> {
    let mut queues: BTreeMap<Urgency, u64> = BTreeMap::new();
    for interface in &system.linux.interfaces {
        for (_, flow) in system.flows_of(interface.source) {
            if let (Some(queue), Some(to)) = (flow.queue, receivers.get(flow.receiver)) {
                let all = queues.entry(to.urgency).or_default();
                *all = all.saturating_add(queue);
            }
        }
    }
    if let Some(all) = queues.get_mut(&Urgency::ORDINARY) {
        *all = (*all).max(ORDINARY_QUEUE.into());
    }
    let fits = |(urgency, found): (Urgency, u64)| {
        let queue = u32::try_from(found)
            .ok()
            .filter(|&queue| queue <= LONGEST_QUEUE);
        Ok((urgency, queue.ok_or(NotForLinux::Queue { urgency, found })?))
    };
    queues.into_iter().map(fits).collect()
}

/// Number of a user. The file gives the user by name or by number.
fn user_of(receiver: &str, user: &str) -> Result<u32, NotForLinux> {
    let known = || {
        let found = nix::unistd::User::from_name(user).ok().flatten();
        found.map(|found| found.uid.as_raw())
    };
    let number = user.parse().ok().filter(|number| *number != u32::MAX);
    number.or_else(known).ok_or_else(|| NotForLinux::User {
        name: receiver.to_owned(),
        user: user.to_owned(),
    })
}

/// Binding a port below this needs a capability, unless the machine has another bound
/// (net.ipv4.ip_unprivileged_port_start).
const PRIVILEGED: u16 = 1024;

/// Remarks about the file: statements that have no effect, and users that it trusts.
fn remarks(system: &System, receivers: &[NodeReceiver]) -> Vec<String> {
    let mut remarks = Vec::new();
    for flow in &system.flows {
        let selector = &flow.selector;
        let is_here = system
            .linux
            .interfaces
            .iter()
            .any(|interface| interface.source == flow.source);
        if is_here
            && selector.port.is_some()
            && (selector.ethertype.is_some() || selector.pcp.is_some())
        {
            remarks.push(format!(
                "of the flow `{}` only the protocol and the port count, not its EtherType or VLAN priority",
                flow.name
            ));
        }
    }
    for receiver in receivers {
        let is_open = |port: &&ListeningPort| port.number >= PRIVILEGED;
        let says_who =
            receiver.cgroup.is_some() || receiver.command.is_some() || receiver.user.is_some();
        if receiver.urgency == Urgency::ORDINARY || says_who {
            continue;
        }
        if let Some(port) = receiver.ports.iter().find(is_open) {
            remarks.push(format!(
                "port {} has the urgency of `{}` whoever binds it, and any user may: `match = {{ user = … }}` of the receiver says whose it is",
                port.number, receiver.name
            ));
        }
    }
    remarks
}

/// Selectors of flows without a port, each with an urgency. If several flows have the same
/// selector, the most urgent receiver counts. Selectors with more than one property are left out,
/// since the table cannot represent them.
fn selected(system: &System, receivers: &[NodeReceiver]) -> Vec<(demux::SocketKey, Urgency)> {
    let is_here = |source: usize| {
        system
            .linux
            .interfaces
            .iter()
            .any(|interface| interface.source == source)
    };
    let flows = system.flows.iter().filter(|flow| is_here(flow.source));
    let mut selected: BTreeMap<demux::SocketKey, Urgency> = BTreeMap::new();
    for flow in flows {
        let selector = &flow.selector;
        let keys = match (
            selector.ethertype,
            selector.pcp,
            selector.protocol,
            selector.address,
            selector.port,
        ) {
            (Some(ethertype), None, None, None, None) => {
                vec![demux::SocketKey::ethertype(ethertype)]
            }
            (None, Some(pcp), None, None, None) => vec![demux::SocketKey::pcp(pcp)],
            (None, None, Some(protocol), None, None) => match protocol {
                Protocol::Tcp => vec![demux::SocketKey::protocol(6)],
                Protocol::Udp => vec![demux::SocketKey::protocol(17)],
                Protocol::Icmp => [1, 58].map(demux::SocketKey::protocol).to_vec(),
            },
            _ => Vec::new(),
        };
        let Some(receiver) = receivers.get(flow.receiver) else {
            continue;
        };
        for key in keys {
            let most = selected.entry(key).or_default();
            *most = receiver.urgency.max(*most);
        }
    }
    selected.into_iter().collect()
}

/// Marks of the packets for the most urgent receivers of `interface`, and the urgency of the most
/// urgent receiver of packets without such a mark. If some packets for a most urgent receiver have
/// no mark, that urgency is the receiver's.
fn urgent(
    system: &System,
    interface: &NodeInterface,
    receivers: &[NodeReceiver],
) -> (Vec<Mark>, Urgency) {
    let urgency = |index: &usize| receivers.get(*index).map(|receiver| receiver.urgency);
    let most = interface.receivers.iter().filter_map(urgency).max();
    let (urgent, others): (Vec<usize>, Vec<usize>) = interface
        .receivers
        .iter()
        .partition(|index| urgency(index) == most);
    let most = most.unwrap_or(Urgency::ORDINARY);
    if others.is_empty() {
        return (Vec::new(), most);
    }
    let here = |source: usize| {
        let mut known = system.linux.interfaces.iter();
        known.any(|known| known.source == source && known.name == interface.name)
    };
    let mut marks: Vec<Mark> = urgent
        .iter()
        .filter_map(|&index| receivers.get(index))
        .flat_map(|receiver| receiver.ports.iter().copied().map(Mark::Port))
        .collect();
    let mut all_are_marked = true;
    for flow in &system.flows {
        if !urgent.contains(&flow.receiver) || !here(flow.source) {
            continue;
        }
        let selector = &flow.selector;
        match (
            selector.ethertype,
            selector.pcp,
            selector.protocol,
            selector.port,
        ) {
            // The flow's port is in the list of the receiver's ports already.
            (_, _, _, Some(_)) => {}
            (Some(ethertype), None, None, None) => marks.push(Mark::EtherType(ethertype)),
            (None, Some(priority), None, None) => marks.push(Mark::Priority(priority)),
            _ => all_are_marked = false,
        }
    }
    let less = others.iter().filter_map(urgency).max();
    (marks, less.filter(|_| all_are_marked).unwrap_or(most))
}

/// The interfaces of the system. Sources that are queues of the same interface become one
/// interface, since the kernel has settings per interface.
fn interfaces(system: &System) -> Vec<NodeInterface> {
    let mut interfaces: Vec<NodeInterface> = Vec::new();
    let time = |cycles: u64| {
        let nanoseconds = u128::from(cycles) * 1_000_000_000 / u128::from(system.cpu.clock_hz);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    };
    for linux_interface in &system.linux.interfaces {
        let Some(source) = system.sources.get(linux_interface.source) else {
            continue;
        };
        let known = interfaces
            .iter()
            .position(|known| known.name == linux_interface.name);
        let index = known.unwrap_or_else(|| {
            interfaces.push(NodeInterface {
                name: linux_interface.name.clone(),
                tolerated_hz: Some(0.0),
                ..NodeInterface::default()
            });
            interfaces.len() - 1
        });
        let interface = &mut interfaces[index];
        let tolerated = source.rates.tolerated.map(|rate| rate.hertz());
        interface.tolerated_hz = interface.tolerated_hz.zip(tolerated).map(|(a, b)| a + b);
        if let Some(moderation) = &source.moderation {
            let wait = time(moderation.absolute);
            interface.deferral = Some(interface.deferral.map_or(wait, |known| known.min(wait)));
        }
        for (_, flow) in system.flows_of(linux_interface.source) {
            if !interface.receivers.contains(&flow.receiver) {
                interface.receivers.push(flow.receiver);
            }
            let top_half = time(flow.top_half.cycles.saturating_add(flow.demux.cycles));
            let bottom_half = time(flow.bottom_half.cycles);
            let stated = |time: Duration| Some(time).filter(|time| !time.is_zero());
            interface.top_half = interface.top_half.max(stated(top_half));
            interface.bottom_half = interface.bottom_half.max(stated(bottom_half));
        }
        interface.receivers.sort_unstable();
    }
    interfaces
}
