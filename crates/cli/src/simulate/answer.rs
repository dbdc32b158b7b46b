// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer as data: the keys of `weir simulate --json` (docs/simulate.md). Times are in cycles.
use serde::Serialize;
use weir_model::System;
use weir_sim::feeds::Feeds;
use weir_sim::tally::{FlowTally, Losses, SourceTally, Spans, Stage, TaskTally};
use weir_sim::{Loss, Options, Tally, Target};

use super::bounds::Bounds;
use super::how::How;
use crate::output::About;

/// The version of the JSON form. It is increased when a key is removed or changes its meaning. New
/// keys do not change it.
const VERSION: u32 = 1;

/// The whole answer.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    simulate: u32,
    system: About<'a>,
    pub sentence: String,
    options: RunOptions,
    pub arrivals: Vec<Arrival<'a>>,
    pub silent: Vec<&'a str>,
    /// The parts of Weir that are disabled in the second run.
    pub without: Vec<&'static str>,
    pub bounds: Bounds<'a>,
    pub runs: Runs<'a>,
}

/// Options of the runs.
#[derive(Debug, Serialize)]
struct RunOptions {
    duration_cycles: u64,
    seed: u64,
    costs: CostsTold,
    defer: weir_sim::Deferral,
    ties: weir_sim::Ties,
    tick: Option<TickTold>,
}

#[derive(Debug, Serialize)]
struct CostsTold {
    interrupts: String,
    bottom_halves: String,
    tasks: String,
}

#[derive(Debug, Serialize)]
struct TickTold {
    period_cycles: u64,
    cost_cycles: u64,
    compensation: weir_sim::Compensation,
}

impl RunOptions {
    fn new(how: &How, options: &Options) -> Self {
        let costs = &options.costs;
        Self {
            duration_cycles: options.duration,
            seed: options.seed,
            costs: CostsTold {
                interrupts: costs.interrupts.to_string(),
                bottom_halves: costs.bottom_halves.to_string(),
                tasks: costs.tasks.to_string(),
            },
            defer: how.defer,
            ties: how.ties,
            tick: options.tick.map(|tick| TickTold {
                period_cycles: tick.period,
                cost_cycles: tick.cost,
                compensation: how.compensation,
            }),
        }
    }
}

/// A pattern of arrivals at a source or a flow.
#[derive(Debug, Serialize)]
pub(super) struct Arrival<'a> {
    pub source: &'a str,
    /// The flow to which the packets belong. `None` if they belong to no flow, or if the recording
    /// states their flows.
    pub flow: Option<&'a str>,
    /// The pattern in the form that `--flood` takes.
    pub pattern: String,
    /// The pattern in a form for users.
    #[serde(skip)]
    pub told: String,
    pub flood: bool,
}

fn name_of(system: &System, target: Target) -> (&str, Option<&str>) {
    match target {
        Target::Source(source) => (&system.sources[source].name, None),
        Target::Flow(flow) => {
            let flow = &system.flows[flow];
            (&system.sources[flow.source].name, Some(&flow.name))
        }
    }
}

/// The runs of the answer: with Weir, without Weir, or both.
#[derive(Debug, Serialize)]
pub(super) struct Runs<'a> {
    pub as_described: Option<RunAnswer<'a>>,
    pub without: Option<RunAnswer<'a>>,
}

impl<'a> Runs<'a> {
    /// Iterates over the runs. The verdict is about the first one.
    pub fn made(&self) -> impl Iterator<Item = &RunAnswer<'a>> {
        self.as_described.iter().chain(&self.without)
    }
}

/// Results of one run.
#[derive(Debug, Serialize)]
pub(crate) struct RunAnswer<'a> {
    /// The number of interrupts of all kinds that were taken.
    pub interrupts: u64,
    pub tasks: Vec<TaskAnswer<'a>>,
    pub sources: Vec<SourceAnswer<'a>>,
    pub flows: Vec<FlowAnswer<'a>>,
    pub timers: Vec<TimerAnswer<'a>>,
    /// The stages in the order in which a request passes them.
    pub stages: Vec<StageShare>,
    /// The cycles that were charged to nobody.
    pub orphans_cycles: u64,
    pub idle_ticks: i64,
}

/// Results of a task in a run.
#[derive(Debug, Serialize)]
pub(crate) struct TaskAnswer<'a> {
    pub name: &'a str,
    pub urgency: u8,
    pub deadline_cycles: Option<u64>,
    pub released: u64,
    pub ended: u64,
    pub missed: u64,
    pub responses: Option<SpanSummary>,
    pub executed: Option<SpanSummary>,
    pub lateness_cycles: u64,
    pub ran_cycles: u64,
    pub interrupted_cycles: u64,
    pub interrupted_by_bottom_halves_cycles: u64,
    pub charged_cycles: u64,
    pub received: u64,
    pub ticks: i64,
}

/// Results of a source in a run.
#[derive(Debug, Serialize)]
pub(crate) struct SourceAnswer<'a> {
    pub name: &'a str,
    pub deadline_cycles: Option<u64>,
    pub arrived: u64,
    pub interrupts: u64,
    pub refused: u64,
    pub expiries: u64,
    pub served: u64,
    pub taken: u64,
    pub masked: u64,
    pub missed: u64,
    /// The part of `missed` that was not served by the end of the run.
    #[serde(skip)]
    pub overdue: u64,
    pub responses: Option<SpanSummary>,
    pub lost: Vec<LossCount>,
}

/// Results of a flow in a run.
#[derive(Debug, Serialize)]
pub(crate) struct FlowAnswer<'a> {
    pub name: &'a str,
    pub receiver: &'a str,
    pub deadline_cycles: Option<u64>,
    /// Whether the flow itself is flooded. Its deadlines are then ignored.
    pub flooded: bool,
    pub arrived: u64,
    pub delivered: u64,
    pub late: u64,
    pub latencies: Option<SpanSummary>,
    pub lost: Vec<LossCount>,
}

impl FlowAnswer<'_> {
    /// Returns the number of packets that were late or never delivered.
    pub fn missed(&self) -> u64 {
        self.late + self.lost.iter().map(|lost| lost.count).sum::<u64>()
    }
}

/// Results of a shared timer in a run.
#[derive(Debug, Serialize)]
pub(crate) struct TimerAnswer<'a> {
    pub name: &'a str,
    pub interrupts: u64,
}

/// The cycles of a stage.
#[derive(Debug, Serialize)]
pub(crate) struct StageShare {
    pub stage: Stage,
    pub cycles: u64,
}

/// The number of losses for a reason.
#[derive(Debug, Serialize)]
pub(crate) struct LossCount {
    pub why: Loss,
    pub count: u64,
}

/// A summary of time spans. The median and p99 have an error of at most one hundredth.
#[derive(Debug, Serialize)]
pub(crate) struct SpanSummary {
    pub min: u64,
    pub median: u64,
    pub p99: u64,
    pub max: u64,
    pub mean: f64,
}

impl SpanSummary {
    fn of(spans: &Spans) -> Option<Self> {
        Some(Self {
            min: spans.least()?,
            median: spans.quantile(0.5)?,
            p99: spans.quantile(0.99)?,
            max: spans.most()?,
            mean: spans.mean()?,
        })
    }
}

fn lost(losses: &Losses) -> Vec<LossCount> {
    let of = |(why, count)| LossCount { why, count };
    losses.reasons().map(of).collect()
}

impl<'a> RunAnswer<'a> {
    /// Makes the results of a run of `system` from the run's statistics.
    pub fn new(system: &'a System, feeds: &Feeds, tally: &Tally) -> Self {
        let flows = system.flows.iter().zip(&tally.flows).enumerate();
        Self {
            interrupts: tally.interrupts,
            tasks: each(&system.receivers, &tally.tasks, task),
            sources: each(&system.sources, &tally.sources, source),
            flows: flows
                .map(|(index, (of, did))| {
                    let receiver = &system.receivers[of.receiver].name;
                    flow(of, receiver, feeds.is_flooded(system, index), did)
                })
                .collect(),
            timers: each(&system.timers, &tally.timers, |of, &interrupts| {
                TimerAnswer {
                    name: &of.name,
                    interrupts,
                }
            }),
            stages: Stage::ALL
                .map(|stage| StageShare {
                    stage,
                    cycles: tally.stages.of(stage),
                })
                .into(),
            orphans_cycles: tally.orphans,
            idle_ticks: tally.idle_ticks,
        }
    }
}

fn each<'a, A, B, C>(of: &'a [A], did: &[B], to: impl Fn(&'a A, &B) -> C) -> Vec<C> {
    of.iter().zip(did).map(|(of, did)| to(of, did)).collect()
}

fn task<'a>(of: &'a weir_model::Receiver, did: &TaskTally) -> TaskAnswer<'a> {
    TaskAnswer {
        name: &of.name,
        urgency: of.urgency,
        deadline_cycles: of.deadline,
        released: did.released,
        ended: did.ended,
        missed: did.missed,
        responses: SpanSummary::of(&did.responses),
        executed: SpanSummary::of(&did.executed),
        lateness_cycles: did.lateness,
        ran_cycles: did.ran,
        interrupted_cycles: did.interrupted,
        interrupted_by_bottom_halves_cycles: did.interrupted_by_bottom_halves,
        charged_cycles: did.charged,
        received: did.received,
        ticks: did.ticks,
    }
}

fn source<'a>(of: &'a weir_model::Source, did: &SourceTally) -> SourceAnswer<'a> {
    SourceAnswer {
        name: &of.name,
        deadline_cycles: of.deadline,
        arrived: did.arrived,
        interrupts: did.interrupts,
        refused: did.refused,
        expiries: did.expiries,
        served: did.served,
        overdue: did.overdue,
        taken: did.taken,
        masked: did.masked,
        missed: did.missed,
        responses: SpanSummary::of(&did.responses),
        lost: lost(&did.lost),
    }
}

fn flow<'a>(
    of: &'a weir_model::Flow,
    receiver: &'a str,
    flooded: bool,
    did: &FlowTally,
) -> FlowAnswer<'a> {
    FlowAnswer {
        name: &of.name,
        receiver,
        deadline_cycles: of.deadline,
        flooded,
        arrived: did.arrived,
        delivered: did.delivered,
        late: did.late,
        latencies: SpanSummary::of(&did.latencies),
        lost: lost(&did.lost),
    }
}

impl<'a> Answer<'a> {
    /// Returns whether the run had a clock tick.
    pub fn has_tick(&self) -> bool {
        self.options.tick.is_some()
    }

    /// Makes the answer about the runs of `system`. `without` names the parts that are disabled in
    /// the second run.
    pub fn new(
        system: &'a System,
        how: &How,
        options: &Options,
        feeds: &'a Feeds,
        without: Vec<&'static str>,
        bounds: Bounds<'a>,
        runs: Runs<'a>,
    ) -> Self {
        let arrivals = feeds.feeds.iter().zip(&feeds.floods);
        Self {
            simulate: VERSION,
            system: About::of(system),
            sentence: super::verdict::sentence(&runs, &without),
            options: RunOptions::new(how, options),
            arrivals: arrivals
                .map(|(feed, &flood)| {
                    let (source, flow) = name_of(system, feed.to);
                    Arrival {
                        source,
                        flow,
                        pattern: feed.pattern.to_string(),
                        told: feed.pattern.told(system.cpu.clock_hz),
                        flood,
                    }
                })
                .collect(),
            silent: feeds
                .silent
                .iter()
                .map(|&target| {
                    let (source, flow) = name_of(system, target);
                    flow.unwrap_or(source)
                })
                .collect(),
            without,
            bounds,
            runs,
        }
    }
}
