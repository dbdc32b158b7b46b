// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the assumptions behind a guarantee (docs/analysis.md, "What it rests on") for one system.
use serde::{Serialize, Serializer};
use weir_model::{Cost, Flow, FrameBuffers, Origin, Place, Policy, Source, System};

use super::deadlines::keeps_deadlines;

/// The assumptions behind a guarantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumptions {
    /// The origin of the costs of interrupts, which is a file or a compiler.
    pub interrupt_costs: String,
    /// The execution times of handlers, tasks and flows.
    pub execution_times: ByOrigin,
    /// Sources that do not state the most work of one interrupt. Nothing is proven if there are
    /// any.
    pub max_work_missing: Vec<String>,
    /// The number of sources that state the most work of one interrupt.
    pub max_work_stated: usize,
    /// The longest time for which code outside interrupts disables interrupts.
    pub critical_section: AssumedCost,
    /// The most cycles of the one instruction of the interrupted program that runs between two
    /// interrupts. It may be any instruction, and counts as work of the ready task. `None` if no
    /// instruction runs between two interrupts.
    pub instruction_between: Option<u64>,
    /// The cost of switching to a task and back.
    pub context_switch: AssumedCost,
    /// The cycles of a turn where tasks of the same urgency take turns (round robin). A turn is
    /// only shorter if its work ends. `None` if tasks do not take turns.
    pub time_slice: Option<u64>,
    /// Sources that have to stay below the worst rate that the file states. These are the sources
    /// without a limit, and those whose limit alone would not be sufficient. Empty if a deadline is
    /// missed.
    pub worst_rates: Vec<String>,
    /// Flows that have to stay below their rate. Empty if a deadline is missed.
    pub flow_rates: Vec<String>,
    /// The number of sources with a limit in software. For these the port has to keep the promises
    /// of core/CONTRACTS.md.
    pub software_limits: usize,
    /// The number of tasks. None of them may suspend itself.
    pub tasks: usize,
    /// Receivers whose budgets are refilled at FreeRTOS's ticks, each of which is less than a tick
    /// late.
    pub budgets: Vec<String>,
    /// Network cards that gather frames until one of FreeRTOS's ticks, each of which is less than a
    /// tick late.
    pub gathering: Vec<String>,
    /// Receivers on FreeRTOS with a period. Each of their jobs has to take all frames that wait.
    pub emptying: Vec<String>,
    /// Rows that stand for threads of a Linux kernel. Each source has to have one receive queue.
    pub kernel_threads: Vec<String>,
    /// Whether a timer of Linux ends caps. The kernel then needs HRTICK_DL in debugfs.
    pub cap_timer: bool,
    /// Flows whose packets have a deadline. A device holds no more of their packets than its queue.
    /// An interrupt takes all packets that wait, up to `max_work`. A packet that finds its device
    /// full is lost.
    pub packet_deadlines: Vec<String>,
}

/// Names, grouped by what is known about their execution times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ByOrigin {
    /// Names whose execution times are all declared.
    pub declared: Vec<String>,
    /// Names with at least one measured execution time, which was observed but not proven.
    pub measured: Vec<String>,
}

/// A number of cycles and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AssumedCost {
    /// The cost in cycles, at worst.
    pub cycles: u64,
    /// The origin: `declared`, `measured` (observed, not proven) or `default` (not stated).
    #[serde(serialize_with = "origin_name")]
    pub origin: Origin,
}

impl From<Cost> for AssumedCost {
    fn from(cost: Cost) -> Self {
        Self {
            cycles: cost.cycles,
            origin: cost.origin,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn origin_name<S: Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match origin {
        Origin::Declared => "declared",
        Origin::Measured => "measured",
        Origin::Default => "default",
    })
}

/// Collects the assumptions of `system`. `kept` says that every deadline holds; only then can the
/// necessary rates be determined.
pub(super) fn assumptions(system: &System, kept: bool) -> Assumptions {
    let (worst_rates, flow_rates) = if kept {
        rates(system)
    } else {
        (Vec::new(), Vec::new())
    };
    let (stated, missing): (Vec<_>, Vec<_>) = system
        .sources
        .iter()
        .partition(|source| source.max_work.is_some());
    Assumptions {
        interrupt_costs: system.cpu.costs_from.clone(),
        execution_times: execution_times(system),
        max_work_missing: missing.iter().map(|source| source.name.clone()).collect(),
        max_work_stated: stated.len(),
        critical_section: system.cpu.critical_section.into(),
        instruction_between: (!system.sources.is_empty())
            .then_some(system.cpu.longest_instruction)
            .filter(|&cycles| cycles > 0),
        context_switch: system.cpu.context_switch.into(),
        time_slice: system.cpu.time_slice,
        worst_rates,
        flow_rates,
        software_limits: system
            .sources
            .iter()
            .filter(|source| {
                source.limit.policy != Policy::Off && source.limit.place == Place::Software
            })
            .count(),
        tasks: system
            .receivers
            .iter()
            .filter(|receiver| receiver.wcet.cycles > 0)
            .count(),
        budgets: (system.freertos.iter())
            .flat_map(|of| &of.budgets)
            .filter_map(|of| system.receivers.get(of.receiver))
            .map(|of| of.name.clone())
            .collect(),
        gathering: (system.sources.iter())
            .filter(|of| of.moderation.is_some_and(|of| of.tick.is_some()))
            .map(|of| of.name.clone())
            .collect(),
        emptying: emptying(system),
        kernel_threads: system
            .linux
            .threads
            .iter()
            .filter_map(|thread| system.receivers.get(thread.receiver))
            .map(|thread| thread.name.clone())
            .collect(),
        cap_timer: !system.linux.threads.is_empty() && system.linux.cap_timer,
        packet_deadlines: (system.flows.iter())
            .filter(|flow| flow.deadline.is_some())
            .map(|flow| flow.name.clone())
            .collect(),
    }
}

fn execution_times(system: &System) -> ByOrigin {
    let sources = system
        .sources
        .iter()
        .map(|of| (&of.name, vec![of.handler, of.work]));
    let receivers = system
        .receivers
        .iter()
        .map(|of| (&of.name, vec![of.wcet, of.blocking, of.critical_section]));
    let flows = system
        .flows
        .iter()
        .map(|of| (&of.name, vec![of.top_half, of.demux, of.bottom_half]));
    let mut found = ByOrigin::default();
    for (name, costs) in sources.chain(receivers).chain(flows) {
        let has = |origin| costs.iter().any(|cost| cost.origin == origin);
        if has(Origin::Measured) {
            found.measured.push(name.clone());
        } else if has(Origin::Declared) {
            found.declared.push(name.clone());
        }
    }
    found
}

/// The names of the sources and flows whose stated rates are necessary for the deadlines. Without
/// these rates there would be no guarantee. Where either of several rates would be enough, all are
/// named.
fn rates(system: &System) -> (Vec<String>, Vec<String>) {
    let is_unlimited = |source: &Source| source.limit.policy == Policy::Off;
    // Tells whether the deadlines hold if the worst rates of the sources for which `forgotten` is
    // true are dropped and, if `flows` is true, those of flows too.
    let keeps = |forgotten: &dyn Fn(&Source) -> bool, flows: bool| {
        let mut careless = system.clone();
        for source in &mut careless.sources {
            if forgotten(source) {
                source.rates.worst = None;
            }
        }
        for flow in &mut careless.flows {
            if flows {
                flow.rate = None;
            }
        }
        careless.renew_threads();
        keeps_deadlines(&careless)
    };
    let has_flow_rates = system.flows.iter().any(|flow| flow.rate.is_some());
    let limited = |source: &Source| !is_unlimited(source);
    let (needs_worst, needs_flows) = if keeps(&limited, true) {
        (false, false)
    } else if has_flow_rates && keeps(&limited, false) {
        (false, true)
    } else {
        (true, true)
    };
    // Only its rate bounds a line without a limit, unless its device gathers packets.
    let needs_unlimited = needs_worst
        || (system.sources.iter())
            .any(|of| is_unlimited(of) && of.rates.worst.is_some() && of.moderation.is_none())
        || !keeps(&|_| true, !needs_flows);
    let sources = system
        .sources
        .iter()
        .filter(|source| source.rates.worst.is_some())
        .filter(|source| needs_worst || (needs_unlimited && is_unlimited(source)))
        .map(|source| source.name.clone())
        .collect();
    let flows = system
        .flows
        .iter()
        .filter(|flow| needs_flows && flow.rate.is_some())
        .map(|flow| flow.name.clone())
        .collect();
    (sources, flows)
}

/// The receivers with a period whose frames wait in FreeRTOS's buffers.
fn emptying(system: &System) -> Vec<String> {
    let of_receiver = |flow: &&Flow| system.frame_buffers(flow) == Some(FrameBuffers::OfReceiver);
    let frames = system.flows.iter().filter(of_receiver);
    let with_frames: Vec<usize> = frames.map(|flow| flow.receiver).collect();
    (0..)
        .zip(&system.receivers)
        .filter(|(index, of)| of.period.is_some() && with_frames.contains(index))
        .map(|(_, of)| of.name.clone())
        .collect()
}
