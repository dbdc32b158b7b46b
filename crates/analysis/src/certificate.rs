// SPDX-License-Identifier: MIT OR Apache-2.0
//! The certificate: the system in cycles and the proof of each bound, for a program that checks
//! them independently.
//!
//! docs/certificate.md describes each field and how `weir verify` checks it. This module only
//! copies values of the analysis; it calculates nothing.

use serde::{Serialize, Serializer};
use weir_model as model;
use weir_model::{FrameBuffers, System};

use crate::analysis::{self, Analysis, BoundFailure};
use crate::check::{self, Verdict};
use crate::curve::Staircase;
use crate::limiter::line_interarrival;
use crate::rta::NoBound;
use crate::units::{Part, Units, flow_interarrival};

/// The version of the certificate's format.
pub const VERSION: u64 = 2;

/// The data that `weir verify` checks.
#[derive(Debug, Clone, Serialize)]
pub struct Certificate<'a> {
    /// The format's version, [`VERSION`].
    certificate: u64,
    system: Description<'a>,
    verdict: Verdict,
    /// The latency L of each source, in cycles.
    latencies: &'a [u64],
    rows: Vec<Row>,
    flows: Vec<FlowClaim>,
}

/// Makes the certificate of `system`, whose analysis is `analysis`.
#[must_use]
pub fn certificate<'a>(system: &'a System, analysis: &'a Analysis) -> Certificate<'a> {
    let units = Units::new(system, &analysis.latencies);
    let flows = check::flows(system, &units, analysis);
    Certificate {
        certificate: VERSION,
        system: description(system),
        verdict: check::verdict(system, analysis, &flows),
        latencies: &analysis.latencies.source,
        rows: analysis.rows.iter().map(row).collect(),
        flows: flows
            .iter()
            .map(|flow| FlowClaim {
                latency: flow.bound.response_cycles,
                queue_needed: flow.queue_needed,
            })
            .collect(),
    }
}

/// The system as the certificate describes it. `weir verify --system` compares it with the system
/// of the current file.
#[derive(Debug, Clone, Serialize)]
pub struct Description<'a> {
    name: &'a str,
    sha256: &'a str,
    cpu: Cpu,
    sources: Vec<Source<'a>>,
    timers: Vec<Timer<'a>>,
    receivers: Vec<Receiver<'a>>,
    flows: Vec<Flow<'a>>,
}

#[derive(Debug, Clone, Serialize)]
struct Cpu {
    clock_hz: u64,
    nesting: &'static str,
    tasks: &'static str,
    time_slice: Option<u64>,
    longest_instruction: u64,
    critical_section: u64,
    context_switch: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Source<'a> {
    name: &'a str,
    level: Level,
    handler: u64,
    work: u64,
    max_work: Option<u64>,
    packet_units: u64,
    queue: Option<u64>,
    /// The clock divided by the worst rate, rounded down; `None` if there is no worst rate.
    interarrival: Option<u64>,
    moderation: Option<Moderation>,
    limit: Limit,
    deadline: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Level {
    group: u32,
    order: u32,
}

#[derive(Debug, Clone, Serialize)]
struct Moderation {
    absolute: u64,
    packet: Option<u64>,
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tick: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct Limit {
    policy: &'static str,
    timing: &'static str,
    place: &'static str,
    interval: u64,
    tick: u64,
    burst: u32,
    lag: u32,
    delay: u64,
    expiry: Option<Expiry>,
    costs: Costs,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
enum Expiry {
    Own(Level),
    Shared(usize),
}

#[derive(Debug, Clone, Serialize)]
struct Costs {
    request_served: u64,
    request_refused: u64,
    expiry_served: u64,
    expiry_empty: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Timer<'a> {
    name: &'a str,
    level: Level,
    period: u64,
    base: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Receiver<'a> {
    name: &'a str,
    urgency: u8,
    period: Option<u64>,
    jitter: u64,
    wcet: u64,
    blocking: u64,
    critical_section: u64,
    deadline: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct Flow<'a> {
    name: &'a str,
    source: usize,
    receiver: usize,
    /// The clock divided by the flow's rate, rounded down; `None` if there is no rate.
    interarrival: Option<u64>,
    top_half: u64,
    demux: u64,
    bottom_half: u64,
    queue: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffers: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
    deadline: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct Budget {
    frames: u64,
    tick: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Row {
    #[serde(serialize_with = "unit")]
    unit: Part,
    outcome: Outcome,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Bound(Bound),
    Starved(#[serde(serialize_with = "unit")] Part),
    Overload,
    TooLong,
}

#[derive(Debug, Clone, Serialize)]
struct Bound {
    cost: u64,
    /// The base, step, period and jitter of each staircase.
    curve: Vec<[u64; 4]>,
    blocking: u64,
    busy_window: u64,
    /// The arrival A, the start s and the finish f of each job (docs/certificate.md).
    jobs: Vec<[u64; 3]>,
    start_delay: u64,
    response: u64,
}

#[derive(Debug, Clone, Serialize)]
struct FlowClaim {
    latency: Option<u64>,
    queue_needed: Option<u64>,
}

fn unit<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    match *part {
        Part::Request(index) => ("request", index),
        Part::Expiry(index) => ("expiry", index),
        Part::Timer(index) => ("timer", index),
        Part::Task(index) => ("task", index),
        Part::BottomHalf(index) => ("bottom_half", index),
        Part::Delivered(index) => ("delivered", index),
    }
    .serialize(serializer)
}

/// Describes `system` in the form of a certificate.
#[must_use]
pub fn description(system: &System) -> Description<'_> {
    let clock = system.cpu.clock_hz;
    Description {
        name: &system.name,
        sha256: &system.sha256,
        cpu: Cpu {
            clock_hz: clock,
            nesting: match system.cpu.nesting {
                model::Nesting::Flat => "flat",
                model::Nesting::Grouped => "grouped",
            },
            tasks: match system.cpu.tasks {
                model::TaskModel::Preemptive => "preemptive",
                model::TaskModel::Cooperative => "cooperative",
            },
            time_slice: system.cpu.time_slice,
            longest_instruction: system.cpu.longest_instruction,
            critical_section: system.cpu.critical_section.cycles,
            context_switch: system.cpu.context_switch.cycles,
        },
        sources: system.sources.iter().map(|of| source(of, clock)).collect(),
        timers: system
            .timers
            .iter()
            .map(|timer| Timer {
                name: &timer.name,
                level: level(&timer.level),
                period: timer.period.cycles(),
                base: timer.base,
            })
            .collect(),
        receivers: system.receivers.iter().map(receiver).collect(),
        flows: system.flows.iter().map(|of| flow(system, of)).collect(),
    }
}

fn level(level: &model::Level) -> Level {
    Level {
        group: level.group,
        order: level.order,
    }
}

fn source(source: &model::Source, clock_hz: u64) -> Source<'_> {
    Source {
        name: &source.name,
        level: level(&source.level),
        handler: source.handler.cycles,
        work: source.work.cycles,
        max_work: source.max_work,
        packet_units: source.packet_units,
        queue: source.queue,
        interarrival: line_interarrival(source, clock_hz),
        moderation: source.moderation.map(|moderation| Moderation {
            absolute: moderation.absolute,
            packet: moderation.packet,
            count: moderation.count,
            tick: moderation.tick,
        }),
        limit: limit(&source.limit),
        deadline: source.deadline,
    }
}

fn limit(limit: &model::Limit) -> Limit {
    Limit {
        policy: limit.policy.name(),
        timing: limit.timing.name(),
        place: limit.place.name(),
        interval: limit.interval.cycles(),
        tick: limit.interval.tick,
        burst: limit.burst,
        lag: limit.lag,
        delay: limit.delay(),
        expiry: limit.expiry.as_ref().map(|expiry| match expiry {
            model::Expiry::Own { level: of, .. } => Expiry::Own(level(of)),
            model::Expiry::Shared(timer) => Expiry::Shared(*timer),
        }),
        costs: Costs {
            request_served: limit.costs.request_served,
            request_refused: limit.costs.request_refused,
            expiry_served: limit.costs.expiry_served,
            expiry_empty: limit.costs.expiry_empty,
        },
    }
}

fn receiver(receiver: &model::Receiver) -> Receiver<'_> {
    Receiver {
        name: &receiver.name,
        urgency: receiver.urgency,
        period: receiver.period,
        jitter: receiver.jitter,
        wcet: receiver.wcet.cycles,
        blocking: receiver.blocking.cycles,
        critical_section: receiver.critical_section.cycles,
        deadline: receiver.deadline,
    }
}

fn flow<'a>(system: &System, flow: &'a model::Flow) -> Flow<'a> {
    Flow {
        name: &flow.name,
        source: flow.source,
        receiver: flow.receiver,
        interarrival: flow_interarrival(flow, system.cpu.clock_hz),
        top_half: flow.top_half.cycles,
        demux: flow.demux.cycles,
        bottom_half: flow.bottom_half.cycles,
        queue: flow.queue,
        buffers: (system.frame_buffers(flow)).map(|of| match of {
            FrameBuffers::OfReceiver => "of_receiver",
            FrameBuffers::OfUrgency => "of_urgency",
        }),
        budget: (system.tick_budget(flow)).map(|of| Budget {
            frames: of.frames,
            tick: of.tick,
        }),
        deadline: flow.deadline,
    }
}

fn row(row: &analysis::Row) -> Row {
    let outcome = match (&row.outcome, &row.unit.own) {
        (Ok(solution), Some(own)) => Outcome::Bound(Bound {
            cost: own.cost,
            curve: own
                .curve
                .staircases()
                .map(|of: Staircase| [of.base, of.step, of.period, of.jitter])
                .collect(),
            blocking: row.blocking,
            busy_window: solution.busy_window,
            jobs: solution
                .jobs
                .iter()
                .map(|job| [job.arrival, job.start.saturating_add(1), job.finish])
                .collect(),
            start_delay: solution.start_delay,
            response: solution.response,
        }),
        (Err(BoundFailure::Starved(parts)), _) => parts
            .first()
            .map_or(Outcome::TooLong, |&part| Outcome::Starved(part)),
        (Err(BoundFailure::NoBound(NoBound::Overload)), _) => Outcome::Overload,
        (Err(BoundFailure::NoBound(_)), _) | (Ok(_), None) => Outcome::TooLong,
    };
    Row {
        unit: row.unit.part,
        outcome,
    }
}
