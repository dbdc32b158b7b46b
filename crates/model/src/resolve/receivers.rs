// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves receivers, and the flows that lead to them.
use super::processor::Processor;
use super::units::hertz_text;
use super::{Names, refer};
use crate::Rate;
use crate::diagnostics::{Problem, Problems};
use crate::file::leaf::PortNumber;
use crate::file::leaf::{Amount, Whole};
use crate::file::sections::{self as raw, Root};
use crate::file::value::KeyValue;
use crate::system::{Flow, Protocol, Receiver, Selector, System};

/// The source and the receiver of a flow. A field is `None` if the file names one that does not
/// exist.
pub(crate) struct Link {
    source: Option<usize>,
    receiver: Option<usize>,
}

/// Resolves the names in the flows, and reports names that do not exist.
pub(crate) fn links(
    root: &Root,
    sources: &Names<'_>,
    receivers: &Names<'_>,
    problems: &mut Problems<'_>,
) -> Vec<Link> {
    root.flow
        .elements()
        .iter()
        .map(|flow| Link {
            source: refer(&flow.source, "source", "sources", sources, problems),
            receiver: refer(&flow.receiver, "receiver", "receivers", receivers, problems),
        })
        .collect()
}

/// Resolves all receivers.
pub(crate) fn receivers(
    root: &Root,
    links: &[Link],
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<Receiver>> {
    let all: Vec<Option<Receiver>> = root
        .receiver
        .elements()
        .iter()
        .enumerate()
        .map(|(index, receiver)| {
            // A flow to a receiver that does not exist may be meant for this receiver.
            let has_flow = links
                .iter()
                .any(|link| link.receiver.is_none_or(|to| to == index));
            one(receiver, has_flow, processor, problems)
        })
        .collect();
    all.into_iter().collect()
}

fn one(
    receiver: &raw::Receiver,
    has_flow: bool,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Receiver> {
    let clock = processor.clock;
    if receiver.period.is_stated() && receiver.interarrival.is_stated() {
        problems.add(
            Problem::new(
                "a receiver has a period or an interarrival time, not both",
                receiver.interarrival.at,
                "the interarrival time",
            )
            .and_at(receiver.period.at, "the period")
            .help("leave one of them out"),
        );
    }
    let never = receiver.period.is_absent() && receiver.interarrival.is_absent();
    let works = receiver
        .wcet
        .get()
        .is_some_and(|wcet| wcet.worst != Amount::Zero);
    if never && works && !has_flow {
        problems.report("this task has a WCET, but the file does not say how often it runs", receiver.wcet.at, "how often?", "add `period` or `interarrival`, or a [[flow]] with this receiver: without a period the WCET is that of each packet that a flow delivers");
    }
    let is_idle = receiver.wcet.is_absent() || receiver.wcet.get().is_some() && !works;
    if receiver.deadline.is_stated() && is_idle {
        problems.report("this receiver has a deadline, but the file does not say what it does until then", receiver.deadline.at, "for what?", "add `wcet`: what it does in each period, or for each packet that a flow delivers; a deadline of packets is the `deadline` of their [[flow]]");
    }
    let period = clock.optional(&receiver.period, problems);
    let interarrival = clock.optional(&receiver.interarrival, problems);
    let jitter = clock.amount_of(&receiver.jitter, problems);
    let deadline = clock.optional(&receiver.deadline, problems);
    let wcet = clock.cost(&receiver.wcet, problems);
    let blocking = clock.cost(&receiver.blocking, problems);
    let critical_section = clock.cost(&receiver.critical_section, problems);
    let backlog = receiver.backlog.optional();
    let listens_at = match receiver.matches.get() {
        Some(matches) => port(&matches.port),
        None if receiver.matches.is_absent() => Some(None),
        None => None,
    };
    let period = period?.or(interarrival?);
    Some(Receiver {
        name: receiver.name.get()?.0.clone(),
        urgency: receiver.urgency.get()?.0,
        period,
        jitter: jitter?,
        deadline: deadline?,
        wcet: wcet?,
        blocking: blocking?,
        critical_section: critical_section?,
        backlog: backlog?.map(|count| count.0),
        port: listens_at?,
    })
}

fn port(key: &KeyValue<PortNumber>) -> Option<Option<u16>> {
    match key.optional()? {
        None => Some(None),
        Some(Whole(port)) => u16::try_from(port).ok().map(Some),
    }
}

/// Resolves all flows.
pub(crate) fn flows(
    root: &Root,
    links: Vec<Link>,
    processor: &Processor<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<Flow>> {
    let all: Vec<Option<Flow>> = root
        .flow
        .elements()
        .iter()
        .zip(links)
        .map(|(flow, link)| {
            let selector = selector(&flow.selector, problems);
            let clock = processor.clock;
            let top_half = clock.cost(&flow.top_half, problems);
            let demux = clock.cost(&flow.demux, problems);
            let bottom_half = clock.cost(&flow.bottom_half, problems);
            let deadline = clock.optional(&flow.deadline, problems);
            Some(Flow {
                name: flow.name.get()?.0.clone(),
                source: link.source?,
                receiver: link.receiver?,
                selector: selector?,
                rate: flow.rate.optional()?.map(|rate| rate.rate),
                top_half: top_half?,
                demux: demux?,
                bottom_half: bottom_half?,
                queue: flow.queue.optional()?.map(|count| count.0),
                deadline: deadline?,
            })
        })
        .collect();
    all.into_iter().collect()
}

/// Reports flows with deadlines that bring more packets than the limit of their source lets
/// through. Some of these packets would find the device full, however long its queue is. A limit
/// for which `yet_to_be_chosen` is true (by its source's index) may let through what the source
/// tolerates.
pub(crate) fn check_rates(
    root: &Root,
    system: &System,
    yet_to_be_chosen: &dyn Fn(usize) -> bool,
    problems: &mut Problems<'_>,
) {
    for (index, source) in system.sources.iter().enumerate() {
        let chosen_later = yet_to_be_chosen(index);
        let requests = if chosen_later {
            source.rates.tolerated.map(Rate::hertz)
        } else {
            system.let_through(index)
        };
        let (Some(requests), true) = (requests, source.max_work.is_some()) else {
            continue;
        };
        let through = requests * source.packets_taken() as f64;
        let mut sum = 0.0;
        for (flow, rate) in system.promised_rates(index) {
            let with = if sum > 0.0 {
                ", with the flows before it,"
            } else {
                ""
            };
            sum += rate.hertz();
            // The work of FreeRTOS includes flows that the file does not state.
            let stated = root.flow.elements().get(flow);
            let (Some(stated), true) = (stated, sum > through * (1.0 + SAME)) else {
                continue;
            };
            let (whose, help) = if chosen_later {
                (
                    format!("`{}` tolerates", source.name),
                    "tolerate more, or raise `max_work`; write a lower rate; or leave the deadline out, if packets may be lost",
                )
            } else {
                (
                    format!("the limit of `{}` lets through", source.name),
                    "raise the limit (weir tune chooses one), or `max_work`; write a lower rate; or leave the deadline out, if packets may be lost",
                )
            };
            problems.report(
                format!(
                    "{} of packets{with} are more than the {} that {whose}",
                    hertz_text(sum),
                    hertz_text(through),
                ),
                stated.rate.at,
                "some are lost, and miss the deadline",
                help,
            );
            break;
        }
    }
}

/// The relative difference up to which two rates count as equal.
const SAME: f64 = 1e-9;

/// The selector of a flow; it selects all packets if the file states none. `None` if no packet can
/// match.
fn selector(key: &KeyValue<raw::Selector>, problems: &mut Problems<'_>) -> Option<Selector> {
    if key.is_absent() {
        return Some(Selector::default());
    }
    let selector = key.get()?;
    contradictions(selector, problems);
    let protocol = selector.protocol.optional()?;
    let ethertype = selector.ethertype.optional()?;
    let pcp = selector.pcp.optional()?;
    Some(Selector {
        ethertype: ethertype.and_then(|kind| u16::try_from(kind.0).ok()),
        pcp: pcp.and_then(|pcp| u8::try_from(pcp.0).ok()),
        protocol,
        address: selector.address.optional()?,
        port: port(&selector.port)?,
    })
}

/// Reports a selector that no packet can match.
fn contradictions(selector: &raw::Selector, problems: &mut Problems<'_>) {
    const IPV4: u64 = 0x0800;
    const IPV6: u64 = 0x86dd;
    if selector.protocol.get() == Some(&Protocol::Icmp) && selector.port.is_stated() {
        problems.add(
            Problem::new("ICMP has no ports", selector.port.at, "a port")
                .and_at(selector.protocol.at, "the protocol")
                .help("leave one of them out"),
        );
    }
    let of_ip =
        selector.protocol.is_stated() || selector.port.is_stated() || selector.address.is_stated();
    if let Some(ethertype) = selector.ethertype.get() {
        if of_ip && ethertype.0 != IPV4 && ethertype.0 != IPV6 {
            problems.report(format!(
                        "frames of type {:#06x} have no protocol, address or port of IP",
                        ethertype.0
                    ), selector.ethertype.at, "not IP", "write 0x0800 (IPv4) or 0x86dd (IPv6), or leave `protocol`, `address` and `port` out");
        }
        let of_version = |version: u64| ethertype.0 == version;
        let other = selector.address.get().is_some_and(|network| {
            of_version(if network.address.is_ipv4() {
                IPV6
            } else {
                IPV4
            })
        });
        if other {
            problems.add(
                Problem::new(
                    format!(
                        "frames of type {:#06x} have addresses of the other version of IP",
                        ethertype.0
                    ),
                    selector.ethertype.at,
                    "the type",
                )
                .and_at(selector.address.at, "the address")
                .help("leave one of them out"),
            );
        }
    }
}
