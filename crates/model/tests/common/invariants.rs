// SPDX-License-Identifier: MIT OR Apache-2.0
//! What crates/model/src/system.rs says of every system.
use std::collections::HashSet;
use std::net::IpAddr;

use weir_model::{
    Expiry, Interval, Level, Limit, Nesting, Place, Policy, Protocol, Selector, Source, System,
    TaskModel, Timing, TopHalf,
};

/// Cycles that can be added to each other without overflow.
const CYCLES_MOST: u64 = 1 << 62;

/// Panics if `system` breaks what its types document.
pub fn hold(system: &System) {
    assert!(!system.name.is_empty());
    assert_eq!(system.sha256.len(), 64);
    assert!(
        system
            .sha256
            .chars()
            .all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    );
    assert!(system.cpu.clock_hz >= 1);
    assert_eq!(system.cpu.board.is_some(), system.cpu.flavour.is_some());
    assert!(!system.cpu.costs_from.is_empty());
    assert!(system.cpu.longest_instruction <= CYCLES_MOST);
    if let Some(slice) = system.cpu.time_slice {
        assert!((1..=CYCLES_MOST).contains(&slice));
        assert_eq!(system.cpu.tasks, TaskModel::Preemptive);
    }
    unique(system.sources.iter().map(|source| &source.name));
    unique(system.timers.iter().map(|timer| &timer.name));
    unique(system.receivers.iter().map(|receiver| &receiver.name));
    unique(system.flows.iter().map(|flow| &flow.name));
    levels(system);

    for timer in &system.timers {
        counted(timer.period);
        assert!(timer.base <= CYCLES_MOST);
    }
    for source in &system.sources {
        assert!(source.handler.cycles <= CYCLES_MOST && source.work.cycles <= CYCLES_MOST);
        assert!(source.max_work != Some(0));
        let rates = &source.rates;
        assert!(rates.worst_name.is_none() || rates.worst.is_some());
        if let (Some(expected), Some(tolerated)) = (rates.expected, rates.tolerated) {
            assert!(expected <= tolerated, "{rates:?}");
        }
        for time in [
            source.deadline,
            source.moderation.map(|moderation| moderation.absolute),
        ] {
            assert!(time.is_none_or(|time| (1..=CYCLES_MOST).contains(&time)));
        }
        ring(system, source);
        limit(system, &source.limit);
        in_band(system, source);
    }
    for (index, receiver) in system.receivers.iter().enumerate() {
        for time in [receiver.period, receiver.deadline] {
            assert!(time.is_none_or(|time| (1..=CYCLES_MOST).contains(&time)));
        }
        assert!(
            receiver.period.is_some()
                || receiver.wcet.cycles == 0
                || system.flows.iter().any(|flow| flow.receiver == index),
            "{receiver:?}"
        );
        assert!(receiver.backlog != Some(0) && receiver.port != Some(0));
        assert!(receiver.jitter <= CYCLES_MOST && receiver.wcet.cycles <= CYCLES_MOST);
    }
    for flow in &system.flows {
        assert!(flow.source < system.sources.len() && flow.receiver < system.receivers.len());
        assert!(flow.queue != Some(0));
        selector(&flow.selector);
    }
    linux(system);
}

fn linux(system: &System) {
    let linux = &system.linux;
    match linux.top_half {
        Some(TopHalf::Cap { runtime, period }) => assert!(
            runtime.as_nanos() >= 1024 && runtime <= period * 95 / 100 && period.as_secs() <= 4,
            "{linux:?}"
        ),
        Some(TopHalf::Urgency(urgency)) => assert!((1..=99).contains(&urgency)),
        Some(TopHalf::Interrupt) | None => {}
    }
    for interface in &linux.interfaces {
        assert!(interface.source < system.sources.len());
        assert!((1..=15).contains(&interface.name.len()) && !interface.name.contains(['/', ':']));
    }
    if !linux.interfaces.is_empty() {
        assert!(
            system
                .receivers
                .iter()
                .all(|receiver| receiver.urgency <= 99)
        );
    }
    for one in &linux.matches {
        assert!(one.receiver < system.receivers.len());
        assert!(one.cgroup.is_some() || one.command.is_some());
        assert!(one.cgroup.as_ref().is_none_or(|path| path.starts_with('/')));
    }
}

/// Packets wait in devices that have any, and so many as moderation counts.
fn ring(system: &System, source: &Source) {
    let Some(queue) = source.queue else {
        return;
    };
    assert!(queue >= 1);
    let mut flows = system.flows.iter();
    assert!(
        source.moderation.is_some() || flows.any(|flow| system.sources[flow.source] == *source),
        "{source:?}"
    );
    let count = source.moderation.and_then(|moderation| moderation.count);
    assert!(count.is_none_or(|count| count <= queue), "{source:?}");
}

/// Some packet has all of it.
fn selector(selector: &Selector) {
    let of_ip =
        selector.protocol.is_some() || selector.address.is_some() || selector.port.is_some();
    assert!(!of_ip || matches!(selector.ethertype, None | Some(0x0800 | 0x86dd)));
    assert!(selector.protocol != Some(Protocol::Icmp) || selector.port.is_none());
    assert!(selector.port != Some(0) && selector.pcp.is_none_or(|pcp| pcp <= 7));
    if let Some(network) = selector.address {
        let (bits, kind) = match network.address {
            IpAddr::V4(_) => (32, 0x0800),
            IpAddr::V6(_) => (128, 0x86dd),
        };
        assert!(network.prefix <= bits);
        assert!(selector.ethertype.is_none_or(|ethertype| ethertype == kind));
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) {
    let mut seen = HashSet::new();
    for name in names {
        assert!(
            !name.is_empty() && seen.insert(name),
            "`{name}` twice or empty"
        );
    }
}

/// No two interrupts have one vector, or one place.
fn levels(system: &System) {
    let own = system
        .sources
        .iter()
        .filter_map(|source| match &source.limit.expiry {
            Some(Expiry::Own { level, .. }) => Some(level),
            _ => None,
        });
    let all = system.sources.iter().map(|source| &source.level);
    let all: Vec<&Level> = all
        .chain(own)
        .chain(system.timers.iter().map(|timer| &timer.level))
        .collect();
    let mut seen = HashSet::new();
    for level in all {
        assert!(seen.insert(level.vector.clone()), "{} twice", level.vector);
        assert!(
            seen.insert(format!("{} {}", level.group, level.order)),
            "{level:?} twice"
        );
        assert!(system.cpu.nesting == Nesting::Grouped || level.group == 0);
    }
}

fn counted(interval: Interval) {
    let cycles = interval.cycles();
    assert!((1..=CYCLES_MOST).contains(&cycles), "{interval:?}");
    // The product is no bound that saturated.
    assert_eq!(interval.ticks.checked_mul(interval.tick), Some(cycles));
}

fn limit(system: &System, limit: &Limit) {
    assert!(limit.burst >= 1 && (8..=64).contains(&limit.bits));
    if limit.policy == Policy::Off {
        assert_eq!((limit.place, &limit.expiry), (Place::Software, &None));
        assert_eq!(limit.costs, system.cpu.unlimited);
        return;
    }
    counted(limit.interval);
    assert!(u64::from(limit.lag) < limit.interval.ticks);
    assert!(limit.timing != Timing::OneShot || limit.policy == Policy::Bursty);
    assert!(limit.burst == 1 || matches!(limit.policy, Policy::Bursty | Policy::Bucket));
    match (&limit.expiry, limit.place) {
        (None, Place::Hardware) => in_silicon(system, limit),
        (Some(Expiry::Own { channel, .. }), Place::Software) => assert!(!channel.is_empty()),
        (Some(Expiry::Shared(index)), Place::Software) => {
            assert_eq!(
                (limit.policy, limit.timing),
                (Policy::Bursty, Timing::Eager)
            );
            let timer = &system.timers[*index];
            assert_eq!(limit.interval, timer.period);
        }
        other => panic!("{other:?}"),
    }
    if limit.timing != Timing::Lazy && system.cpu.board.is_some() {
        assert_eq!(
            limit.costs.request_refused, 0,
            "eager limits refuse nothing"
        );
    }
}

/// The block has the numbers of the limit.
fn in_silicon(system: &System, limit: &Limit) {
    assert!(matches!(
        (limit.policy, limit.timing),
        (Policy::Strict | Policy::Bucket, Timing::Eager) | (Policy::Bursty, Timing::OneShot)
    ));
    let (block, of) = (system.silicon.unwrap(), limit.silicon.unwrap());
    let hardware = system.sources.iter();
    let hardware = hardware.filter(|source| source.limit.place == Place::Hardware);
    assert_eq!(hardware.count(), block.sources as usize);
    assert!(
        (8..=32).contains(&block.phase_bits) && (1..=block.phase_bits).contains(&block.rate_bits)
    );
    assert!(of.rate >= 1 && u64::from(of.rate) < 1 << block.rate_bits);
    assert_eq!(block.interval(of.rate), limit.interval);
    assert_eq!(
        (block.tick(), block.delay()),
        (limit.interval.tick, of.delay)
    );
    assert!(limit.burst == 1 || limit.burst < 1 << block.burst_bits);
}

/// The effective rate lies between what is expected and what is tolerated.
fn in_band(system: &System, source: &Source) {
    let limit = &source.limit;
    if limit.policy == Policy::Off {
        return;
    }
    let events = if limit.policy == Policy::Bursty {
        limit.burst
    } else {
        1
    };
    let effective = f64::from(events) * system.cpu.clock_hz as f64 / limit.interval.cycles() as f64;
    // f64 rounds; the model does not.
    let slack = 1.0 + 1e-12;
    if let Some(expected) = source.rates.expected {
        assert!(effective * slack >= expected.hertz(), "{source:?}");
    }
    if let Some(tolerated) = source.rates.tolerated {
        assert!(effective <= tolerated.hertz() * slack, "{source:?}");
    }
}
