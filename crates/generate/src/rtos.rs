// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans the configuration of ports/freertos for a system: its receivers, the ports by which demux
//! identifies them, and the classes in which their frames wait.
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use weir_core_sys::demux::{Demux, SocketKey};
use weir_model::{Flow, FrameLane, Freertos, Protocol, Section, System, TaskModel};

use crate::identifier::c_identifier;
use crate::plan::PlannedSource;
use crate::port::Lack;

/// The most slots of core's table. (DEMUX-TABLE-5 requires twice as many slots as sockets.)
const SLOTS_MOST: usize = 32_768;
/// The numbers of classes for which core can be compiled.
const CLASSES: [usize; 4] = [8, 16, 32, 64];
/// The protocol numbers of IP for the protocols that have ports.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of a word of a stack.
const WORD: u32 = 4;

/// The configuration of ports/freertos. Every plan can be compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RtosPlan<'a> {
    /// The C name of the source that brings the frames.
    pub card: String,
    /// The priority of the network card's interrupt; `None` if the chip's own order holds.
    pub card_priority: Option<u32>,
    /// The most frames that one interrupt of the card takes; `None` if the file does not state it.
    pub max_work: Option<u64>,
    /// The time for which frames wait in the card for further frames, in cycles; `None` if they do
    /// not wait.
    pub gather_cycles: Option<u64>,
    /// The cycles of the card's interrupt outside its handler's code: those of the exception and
    /// the limit.
    pub overhead_cycles: u64,
    /// `configMAX_PRIORITIES`.
    pub priorities: u32,
    /// `configTICK_RATE_HZ`.
    pub tick_hz: u64,
    /// `configUSE_PREEMPTION`.
    pub is_preemptive: bool,
    /// Whether the file states a time slice longer than a tick, which is the slice of FreeRTOS. If
    /// so, `configUSE_TIME_SLICING` is 0.
    pub has_long_slice: bool,
    /// The size of each worker's stack in words.
    pub stack_words: u32,
    /// The least value of `WEIR_CLASSES`.
    pub core_classes: usize,
    /// The number of slots of core's table.
    pub slots: usize,
    /// The classes in ascending urgency.
    pub classes: Vec<PlannedClass<'a>>,
    /// The class of frames without a port, as an index in `classes`.
    pub common: usize,
    /// The class of frames for ports that no receiver has, as an index in `classes`; `None` if such
    /// frames are dropped.
    pub orphans: Option<usize>,
    /// The class of fragments, as an index in `classes`; `None` if they are dropped.
    pub fragments: Option<usize>,
    /// The receivers of frames, in the order of their numbers.
    pub receivers: Vec<PlannedReceiver<'a>>,
    /// The receivers that get no frames. These are tasks that only have an urgency.
    pub tasks: Vec<PlannedReceiver<'a>>,
    /// The ports that are bound to receivers.
    pub bindings: Vec<PortBinding<'a>>,
}

impl RtosPlan<'_> {
    /// The lanes of frames without a receiver that share a class with receivers. Each has the name
    /// of its key and the names of these receivers. Frames of such a lane have no quota, and can
    /// use up the class's buffers.
    #[must_use]
    pub fn lanes_without_quota(&self) -> Vec<(&'static str, Vec<&str>)> {
        let lanes = [
            ("common", Some(self.common)),
            ("orphans", self.orphans),
            ("fragments", self.fragments),
        ];
        let with_receivers = lanes.into_iter().filter_map(|(key, class)| {
            let urgency = self.classes.get(class?)?.urgency;
            let beside = self.receivers.iter().filter(|of| of.urgency == urgency);
            Some((key, beside.map(|of| of.name).collect()))
        });
        with_receivers
            .filter(|(_, beside): &(_, Vec<&str>)| !beside.is_empty())
            .collect()
    }
}

/// A class: one worker of one urgency, and its buffers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedClass<'a> {
    /// The class's priority in FreeRTOS.
    pub urgency: u8,
    /// The number of the class's buffers, which is the most of its frames that are in the system at
    /// once.
    pub frames: u16,
    /// The names of the receivers and lanes whose frames the class takes.
    pub of: Vec<&'a str>,
}

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedReceiver<'a> {
    /// The receiver's name in the system.
    pub name: &'a str,
    /// The receiver's name in C.
    pub identifier: String,
    /// The receiver's priority in FreeRTOS.
    pub urgency: u8,
    /// The buffers of its class that the receiver may use, which is the sum of the queues of its
    /// flows.
    pub frames: u16,
    /// The most frames that the receiver gets in a tick; `None` if it has no budget.
    pub budget: Option<u32>,
}

/// A port that belongs to a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortBinding<'a> {
    /// The flow that states the port.
    pub flow: &'a str,
    /// The flow's name in C.
    pub identifier: String,
    /// The protocol number of IP: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// The port number.
    pub port: u16,
    /// The receiver, as an index in [`RtosPlan::receivers`].
    pub receiver: usize,
}

impl fmt::Display for PortBinding<'_> {
    /// Prints the protocol and the port, as in `TCP 502`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.protocol == TCP { "TCP" } else { "UDP" };
        write!(f, "{protocol} {}", self.port)
    }
}

/// A contradiction or an omission, with its section.
pub(crate) type PlacedLack = (Section, Lack);

/// Decides the configuration of ports/freertos.
///
/// # Errors
/// Returns everything that is missing or contradictory.
pub(crate) fn plan<'a>(
    system: &'a System,
    sources: &[PlannedSource<'a>],
) -> Result<RtosPlan<'a>, Vec<PlacedLack>> {
    let Some(freertos) = &system.freertos else {
        let lack = Lack::new(
            "the file does not say for which FreeRTOS the code is",
            "add priorities = 25 (configMAX_PRIORITIES) and common = { urgency = 2, queue = 8 } to it, for example",
        );
        return Err(vec![(Section::Freertos, lack)]);
    };
    let mut planner = RtosPlanner {
        system,
        freertos,
        wrong: Vec::new(),
    };
    let plan = planner.plan(sources);
    plan.filter(|_| planner.wrong.is_empty())
        .ok_or(planner.wrong)
}

/// The frames that can wait for a receiver, in all its flows. A sum that is too large for the type
/// is refused later, with the receiver's class.
fn frames_of(flows: &[&Flow], receiver: usize) -> u16 {
    let its = flows.iter().filter(|flow| flow.receiver == receiver);
    let queues = its.filter_map(|flow| flow.queue);
    u16::try_from(queues.fold(0, u64::saturating_add)).unwrap_or(u16::MAX)
}

struct RtosPlanner<'a> {
    system: &'a System,
    freertos: &'a Freertos,
    wrong: Vec<PlacedLack>,
}

/// The receivers of a system, with and without flows.
#[derive(Default)]
struct PlannedReceivers<'a> {
    of_flows: Vec<PlannedReceiver<'a>>,
    others: Vec<PlannedReceiver<'a>>,
    /// The number of each receiver of flows, by its index in the system.
    numbers: BTreeMap<usize, usize>,
}

impl<'a> RtosPlanner<'a> {
    fn refuse(&mut self, place: Section, what: impl Into<String>, right: impl Into<String>) {
        self.wrong.push((place, Lack::new(what, right)));
    }

    /// Makes the plan. Returns `None` only after a refusal.
    fn plan(&mut self, sources: &[PlannedSource<'a>]) -> Option<RtosPlan<'a>> {
        let freertos = self.freertos;
        let (number, flows) = self.flows()?;
        let card = sources
            .iter()
            .find(|source| std::ptr::eq(source.source, &self.system.sources[number]));
        let max_work = self.max_work(number);
        let receivers = self.receivers(&flows);
        let bindings = self.bindings(&flows, &receivers.numbers);
        let classes = self.classes(&flows);
        let of = |urgency| classes.iter().position(|class| class.urgency == urgency);
        let of_lane = |lane: Option<FrameLane>| lane.and_then(|lane| of(lane.urgency));
        Some(RtosPlan {
            card: card.map_or_else(String::new, |card| card.identifier.clone()),
            card_priority: card.and_then(|card| card.priority),
            max_work,
            gather_cycles: self.gather(number),
            overhead_cycles: self.system.sources[number].limit.costs.request_served,
            priorities: freertos.priorities,
            tick_hz: freertos.tick_hz,
            is_preemptive: self.system.cpu.tasks == TaskModel::Preemptive,
            has_long_slice: (self.system.cpu.time_slice)
                .is_some_and(|slice| slice > freertos.tick_cycles),
            stack_words: freertos.stack_bytes / WORD,
            core_classes: self.core_classes(classes.len()),
            slots: self.slots(&bindings),
            common: of(freertos.common.urgency)?,
            orphans: of_lane(freertos.orphans),
            fragments: of_lane(freertos.fragments),
            classes,
            receivers: receivers.of_flows,
            tasks: receivers.others,
            bindings,
        })
    }

    /// The network card and its flows. The card is the source whose flows have ports.
    fn flows(&mut self) -> Option<(usize, Vec<&'a Flow>)> {
        let system = self.system;
        let mut with_port = system
            .flows
            .iter()
            .filter(|flow| flow.selector.port.is_some());
        let Some(first) = with_port.next() else {
            self.refuse(
                Section::Freertos,
                "no flow has a port, so no frame has a receiver",
                "add a [[flow]] with selector = { protocol = \"tcp\", port = 502 }, for example",
            );
            return None;
        };
        for flow in with_port.filter(|flow| flow.source != first.source) {
            self.refuse(
                of_flow(flow),
                format!(
                    "it comes from `{}`, and `{}` from `{}`: ports/freertos has one card",
                    system.sources[flow.source].name, first.name, system.sources[first.source].name
                ),
                "let all flows with ports come from one source",
            );
        }
        let all = system.flows_of(first.source).map(|(_, flow)| flow);
        Some((first.source, all.collect()))
    }

    /// The frames that an interrupt takes. weir_work_begin() counts them in 16 bits.
    fn max_work(&mut self, card: usize) -> Option<u64> {
        let source = &self.system.sources[card];
        let work = source.max_work?;
        if work > u64::from(u16::MAX) {
            self.refuse(
                Section::Source(source.name.clone()),
                format!("`max_work` is {work}"),
                format!("an interrupt takes at most {} frames", u16::MAX),
            );
        }
        Some(work)
    }

    /// The time for which the card's frames wait for further frames, in cycles.
    fn gather(&mut self, card: usize) -> Option<u64> {
        let source = &self.system.sources[card];
        let moderation = source.moderation?;
        if moderation.packet.is_some() || moderation.count.is_some() {
            self.refuse(
                Section::Source(source.name.clone()),
                "ports/freertos gathers frames by the time of the first alone",
                "leave `packet` and `count` out of its `moderation`",
            );
        }
        Some(moderation.absolute)
    }

    /// The receivers, those of flows first. Also returns the number of each receiver of flows by
    /// its index in the system.
    fn receivers(&mut self, flows: &[&'a Flow]) -> PlannedReceivers<'a> {
        let system = self.system;
        let mut planned = PlannedReceivers::default();
        let mut names = BTreeMap::new();
        for (index, receiver) in system.receivers.iter().enumerate() {
            let place = Section::Receiver(receiver.name.clone());
            let budgets = &self.freertos.budgets;
            let budget = budgets.iter().find(|budget| budget.receiver == index);
            let identifier = self.identifier(&place, &receiver.name, &mut names);
            let of = PlannedReceiver {
                name: &receiver.name,
                identifier,
                urgency: receiver.urgency,
                frames: frames_of(flows, index),
                budget: budget.map(|budget| budget.per_tick),
            };
            if flows.iter().any(|flow| flow.receiver == index) {
                planned.numbers.insert(index, planned.of_flows.len());
                planned.of_flows.push(of);
                continue;
            }
            planned.others.push(of);
            if budget.is_some() {
                self.refuse(
                    place,
                    "it has a budget, but no flow of the card brings it frames",
                    "add a [[flow]] to it, or leave the budget out",
                );
            }
        }
        planned
    }

    /// A name in C that is not yet in `names`.
    fn identifier(
        &mut self,
        place: &Section,
        name: &'a str,
        names: &mut BTreeMap<String, &'a str>,
    ) -> String {
        let identifier = match c_identifier(name) {
            Ok(identifier) => identifier,
            Err(error) => {
                let what = format!("the name `{name}` cannot be one in C: {error}");
                self.refuse(place.clone(), what, "rename it in the system file");
                return String::new();
            }
        };
        if let Some(first) = names.insert(identifier.clone(), name) {
            let what = format!("in C it is called `{identifier}`, like `{first}`");
            self.refuse(place.clone(), what, "rename one of them in the system file");
        }
        identifier
    }

    fn bindings(
        &mut self,
        flows: &[&'a Flow],
        numbers: &BTreeMap<usize, usize>,
    ) -> Vec<PortBinding<'a>> {
        let mut owners: BTreeMap<(u8, u16), &'a Flow> = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut bindings = Vec::new();
        for flow in flows {
            let identifier = self.identifier(&of_flow(flow), &flow.name, &mut names);
            let Some((protocol, port)) = self.port(flow) else {
                continue;
            };
            if let Some(first) = owners.insert((protocol, port), flow) {
                let whose = if first.receiver == flow.receiver {
                    "the same receiver has"
                } else {
                    "another receiver has"
                };
                self.refuse(
                    of_flow(flow),
                    format!("{whose} this port by the flow `{}`", first.name),
                    "give the flow a port of its own, or leave it out",
                );
            }
            bindings.extend(numbers.get(&flow.receiver).map(|&receiver| PortBinding {
                flow: &flow.name,
                identifier,
                protocol,
                port,
                receiver,
            }));
        }
        bindings
    }

    /// The protocol and the port by which demux identifies the flow.
    fn port(&mut self, flow: &Flow) -> Option<(u8, u16)> {
        let selector = &flow.selector;
        let more = [
            ("ethertype", selector.ethertype.is_some()),
            ("pcp", selector.pcp.is_some()),
            ("address", selector.address.is_some()),
        ];
        for (key, _) in more.iter().filter(|(_, is_stated)| *is_stated) {
            self.refuse(
                of_flow(flow),
                format!("ports/freertos tells frames by protocol and port, not by `{key}`"),
                format!("leave `{key}` out"),
            );
        }
        let protocol = match selector.protocol {
            Some(Protocol::Tcp) => Some(TCP),
            Some(Protocol::Udp) => Some(UDP),
            Some(Protocol::Icmp) | None => None,
        };
        let known = protocol.zip(selector.port);
        if known.is_none() {
            self.refuse(
                of_flow(flow),
                "it has no protocol and port by which its frames are told from others",
                "write selector = { protocol = \"udp\", port = 5000 }, for example, or leave the flow out: frames without a port are `common`",
            );
        }
        known
    }

    /// The classes in ascending urgency: one for each urgency of a receiver or a lane.
    fn classes(&mut self, flows: &[&'a Flow]) -> Vec<PlannedClass<'a>> {
        let system = self.system;
        let freertos = self.freertos;
        let mut classes: BTreeMap<u8, (u64, Vec<&'a str>)> = BTreeMap::new();
        let mut add = |urgency, frames, of| {
            let (sum, users) = classes.entry(urgency).or_default();
            *sum = u64::saturating_add(*sum, frames);
            if !users.contains(&of) {
                users.push(of);
            }
        };
        for (key, lane) in freertos.lanes() {
            add(lane.urgency, u64::from(lane.queue), key);
        }
        for flow in flows {
            let receiver = &system.receivers[flow.receiver];
            add(
                receiver.urgency,
                flow.queue.unwrap_or(0),
                receiver.name.as_str(),
            );
        }
        for flow in flows.iter().filter(|flow| flow.queue.is_none()) {
            self.refuse(
                of_flow(flow),
                "it does not say how many of its frames can wait, and so how many buffers there are",
                "write queue = 8, for example",
            );
        }
        let mut planned = Vec::new();
        for (urgency, (frames, of)) in classes {
            let frames = u16::try_from(frames).unwrap_or_else(|_| {
                self.refuse(
                    Section::Freertos,
                    format!(
                        "urgency {urgency} has {frames} buffers, for {}",
                        of.join(", ")
                    ),
                    format!("at most {} are possible: write a smaller `queue`", u16::MAX),
                );
                u16::MAX
            });
            planned.push(PlannedClass {
                urgency,
                frames,
                of,
            });
        }
        planned
    }

    fn core_classes(&mut self, classes: usize) -> usize {
        let [.., most] = CLASSES;
        CLASSES
            .into_iter()
            .find(|&of| of >= classes)
            .unwrap_or_else(|| {
                self.refuse(
                    Section::Freertos,
                    format!("receivers and lanes have {classes} urgencies"),
                    format!(
                        "core/ has at most {most} classes: give some receivers the same urgency"
                    ),
                );
                most
            })
    }

    /// The slots of a table that has room for these ports. Twice as many slots as ports are enough
    /// for nearly all sets of ports.
    fn slots(&mut self, bindings: &[PortBinding<'_>]) -> usize {
        let least = (2 * bindings.len()).next_power_of_two().max(CLASSES[0]);
        let mut sizes = std::iter::successors(Some(least), |slots| Some(2 * slots))
            .take_while(|slots| *slots <= SLOTS_MOST);
        sizes
            .find(|slots| holds(*slots, bindings))
            .unwrap_or_else(|| {
                self.refuse(
                    Section::Freertos,
                    format!("{} flows have ports", bindings.len()),
                    format!(
                        "core's table holds {} of nearly any ports, and not these: leave some out",
                        SLOTS_MOST / 2
                    ),
                );
                SLOTS_MOST
            })
    }
}

/// Whether core's table with this number of slots has room for these ports.
fn holds(slots: usize, bindings: &[PortBinding<'_>]) -> bool {
    // Without ports there would be no table. Such a system is refused for another reason.
    let Ok(mut table) = Demux::new(slots, bindings.len().max(1), None, None) else {
        return false;
    };
    bindings.iter().all(|binding| {
        let key = match binding.protocol {
            TCP => SocketKey::tcp(binding.port),
            _ => SocketKey::udp(binding.port),
        };
        table.bind(key, 0, 0).is_ok()
    })
}

fn of_flow(flow: &Flow) -> Section {
    Section::Flow(flow.name.clone())
}
