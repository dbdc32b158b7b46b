// SPDX-License-Identifier: GPL-3.0-or-later
//! The values that the simulator counted in a run, by name. Times are in seconds.
//!
//! - `seconds`, `interrupts` of the run: its length; the interrupts that the processor took
//! - `NAME.released`, `.ended`, `.missed`, `.received` of a receiver: jobs released, ended, and
//!   late; packets received
//! - `NAME.ran`, `.interrupted`, `.interrupted_by_bottom_halves`, `.charged`, `.accounted` of a
//!   receiver: the time that it ran; that interrupts and bottom halves took from it; that bottom
//!   halves for others took from it; that interrupts and bottom halves spent for it; that the
//!   system's ticks charged to it
//! - `NAME.response.mean`, `.median`, `.most` of a receiver: from the release to the end of its
//!   jobs
//! - `NAME.arrived`, `.delivered`, `.lost` of a flow: packets
//! - `NAME.latency.mean`, `.median`, `.most` of a flow: from a packet's arrival to the end of its
//!   bottom half
//! - `NAME.arrived`, `.interrupts`, `.served`, `.taken`, `.lost` of a source: packets or requests
//!   that arrived; its interrupts; runs of its handler; packets taken out of the device; packets or
//!   requests lost
use weir_model::System;
use weir_sim::Tally;
use weir_sim::tally::Spans;

use crate::experiment::series::Values;
use crate::experiment::series::formula::number;

/// The names of all values. If two objects have the same name, the names of their values occur
/// twice.
pub(super) fn names(system: &System) -> Vec<String> {
    let nothing = Tally {
        tasks: vec![Default::default(); system.receivers.len()],
        sources: vec![Default::default(); system.sources.len()],
        flows: vec![Default::default(); system.flows.len()],
        ..Tally::default()
    };
    let all = all(system, &nothing, 1);
    all.into_iter().map(|(name, _)| name).collect()
}

/// The values of a run. `tick` is the length of a clock tick in cycles. A mean over no events is
/// left out.
pub(super) fn values(system: &System, tally: &Tally, tick: u64) -> Values {
    all(system, tally, tick)
        .into_iter()
        .filter_map(|(name, value)| Some((name, number(value?))))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^52"
)]
fn all(system: &System, tally: &Tally, tick: u64) -> Vec<(String, Option<f64>)> {
    let clock = system.cpu.clock_hz as f64;
    let time = |cycles: u64| Some(cycles as f64 / clock);
    let count = |number: u64| Some(number as f64);
    let spans = |of: &str, spans: &Spans| {
        let (mean, most) = (spans.mean(), spans.most());
        [
            (format!("{of}.mean"), mean.map(|cycles| cycles / clock)),
            (format!("{of}.median"), spans.quantile(0.5).and_then(time)),
            (format!("{of}.most"), most.and_then(time)),
        ]
    };
    let mut all = vec![
        ("seconds".to_owned(), time(tally.duration)),
        ("interrupts".to_owned(), count(tally.interrupts)),
    ];
    for (receiver, task) in system.receivers.iter().zip(&tally.tasks) {
        let of = |what: &str| format!("{}.{what}", receiver.name);
        all.extend([
            (of("released"), count(task.released)),
            (of("ended"), count(task.ended)),
            (of("missed"), count(task.missed)),
            (of("received"), count(task.received)),
            (of("ran"), time(task.ran)),
            (of("interrupted"), time(task.interrupted)),
            (
                of("interrupted_by_bottom_halves"),
                time(task.interrupted_by_bottom_halves),
            ),
            (of("charged"), time(task.charged)),
            (
                of("accounted"),
                Some(task.ticks as f64 * tick as f64 / clock),
            ),
        ]);
        all.extend(spans(&of("response"), &task.responses));
    }
    for (flow, counted) in system.flows.iter().zip(&tally.flows) {
        let of = |what: &str| format!("{}.{what}", flow.name);
        all.extend([
            (of("arrived"), count(counted.arrived)),
            (of("delivered"), count(counted.delivered)),
            (of("lost"), count(counted.lost.total())),
        ]);
        all.extend(spans(&of("latency"), &counted.latencies));
    }
    for (source, counted) in system.sources.iter().zip(&tally.sources) {
        let of = |what: &str| format!("{}.{what}", source.name);
        all.extend([
            (of("arrived"), count(counted.arrived)),
            (of("interrupts"), count(counted.interrupts)),
            (of("served"), count(counted.served)),
            (of("taken"), count(counted.taken)),
            (of("lost"), count(counted.lost.total())),
        ]);
    }
    all
}
