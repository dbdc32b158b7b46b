// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tallies of a run. Their size does not depend on its length.

use hdrhistogram::Histogram;

use crate::observer::Loss;

/// The uses of the processor's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Handlers and top halves: the purpose of the interrupts.
    Handlers,
    /// Limiting: requests refused, timers, and the additional cost of a served request.
    Limit,
    /// Finding out the receivers in the top half.
    Demux,
    /// Bottom halves.
    BottomHalves,
    /// The clock tick.
    Tick,
    /// Tasks.
    Tasks,
    /// Switching to tasks and back.
    Switches,
    /// Idleness.
    Idle,
}

impl Stage {
    /// All stages, in the order of a request's way.
    pub const ALL: [Stage; 8] = [
        Stage::Handlers,
        Stage::Limit,
        Stage::Demux,
        Stage::BottomHalves,
        Stage::Tick,
        Stage::Tasks,
        Stage::Switches,
        Stage::Idle,
    ];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handlers => "handlers",
            Self::Limit => "limit",
            Self::Demux => "demux",
            Self::BottomHalves => "bottom_halves",
            Self::Tick => "tick",
            Self::Tasks => "tasks",
            Self::Switches => "switches",
            Self::Idle => "idle",
        }
    }
}

/// Cycles by stage, which add up to those of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages([u64; Stage::ALL.len()]);

impl Stages {
    /// Adds cycles to a stage.
    pub(crate) fn add(&mut self, stage: Stage, cycles: u64) {
        self.0[stage as usize] += cycles;
    }

    /// The cycles of a stage.
    #[must_use]
    pub fn of(&self, stage: Stage) -> u64 {
        self.0[stage as usize]
    }

    /// All cycles.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The numbers of losses, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::ALL.len()]);

impl Losses {
    /// Counts a loss.
    pub(crate) fn add(&mut self, why: Loss) {
        self.0[why as usize] += 1;
    }

    /// The number of losses for this reason.
    #[must_use]
    pub fn of(&self, why: Loss) -> u64 {
        self.0[why as usize]
    }

    /// The number of all losses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons with a loss, with their numbers.
    pub fn reasons(&self) -> impl Iterator<Item = (Loss, u64)> {
        Loss::ALL
            .into_iter()
            .map(|why| (why, self.of(why)))
            .filter(|&(_, lost)| lost > 0)
    }
}

/// Spans of time in cycles: exact in number, least, most and sum; quantiles are exact to one
/// hundredth.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    /// The histogram, made with the second different value: spans that are always the same need
    /// none, and a system may have thousands of tallies.
    histogram: Option<Box<Histogram<u32>>>,
    count: u64,
    least: u64,
    most: u64,
    sum: u128,
}

/// The decimal digits that a histogram tells apart. A third would make it eight times as large.
const DIGITS: u8 = 2;

impl Spans {
    pub(crate) fn add(&mut self, span: u64) {
        if self.count == 0 {
            (self.least, self.most) = (span, span);
        } else if self.histogram.is_none() && span != self.least {
            self.begin_histogram();
        }
        if let Some(histogram) = &mut self.histogram {
            // The histogram grows with its values; a counter that is full stays full.
            let grown = histogram.record(span);
            debug_assert!(grown.is_ok());
        }
        self.count += 1;
        self.least = self.least.min(span);
        self.most = self.most.max(span);
        self.sum += u128::from(span);
    }

    #[cold]
    fn begin_histogram(&mut self) {
        let mut histogram = Histogram::new(DIGITS).expect("two digits are allowed");
        histogram.auto(true);
        let before = u32::try_from(self.count).unwrap_or(u32::MAX);
        let grown = histogram.record_n(self.least, before);
        debug_assert!(grown.is_ok());
        self.histogram = Some(Box::new(histogram));
    }

    /// The number of spans.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest span.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// The longest span.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// The mean span.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The span below which the fraction `quantile` of all lie, to one hundredth.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let within = match &self.histogram {
            Some(histogram) => histogram.value_at_quantile(quantile),
            None => self.least,
        };
        (self.count > 0).then(|| within.clamp(self.least, self.most))
    }
}

/// The least distance between arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gaps {
    last: Option<u64>,
    least: Option<u64>,
}

impl Gaps {
    /// Counts an arrival in this cycle, not before the last one.
    pub(crate) fn arrived(&mut self, at: u64) {
        if let Some(last) = self.last.replace(at) {
            let gap = at - last;
            self.least = Some(self.least.map_or(gap, |least| least.min(gap)));
        }
    }

    /// The fewest cycles between two arrivals; none if there were not two.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        self.least
    }
}

/// The tally of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskTally {
    /// Jobs released.
    pub released: u64,
    /// Jobs that have ended.
    pub ended: u64,
    /// Jobs, ended or running, that were not done by their deadline.
    pub missed: u64,
    /// From the release to the end of each job that has ended.
    pub responses: Spans,
    /// The cycles that each job executed, of the jobs that ended.
    pub executed: Spans,
    /// The sum of the cycles by which jobs ended after their deadlines (behnke2021 §III-A: l =
    /// t_end - d, accumulated).
    pub lateness: u64,
    /// Cycles that the task executed.
    pub ran: u64,
    /// Cycles taken from the task: interrupts and bottom halves ran in them while it would have.
    pub interrupted: u64,
    /// Those of them in which bottom halves for others ran.
    pub interrupted_by_bottom_halves: u64,
    /// Cycles charged to the task: top halves, early demultiplexing and bottom halves for it, and
    /// its packets' shares of their handlers.
    pub charged: u64,
    /// Packets or events that bottom halves delivered and that it has got.
    pub received: u64,
    /// Clock ticks that the system's account charges to it.
    pub ticks: i64,
}

/// The tally of a source.
#[derive(Debug, Clone, Default)]
pub struct SourceTally {
    /// Requests or packets that arrived.
    pub arrived: u64,
    /// Interrupts of its line.
    pub interrupts: u64,
    /// Those of them that the limiter refused.
    pub refused: u64,
    /// Interrupts of its own timer.
    pub expiries: u64,
    /// Runs of the handler, in either interrupt.
    pub served: u64,
    /// Packets that the handler took out of the device.
    pub taken: u64,
    /// Times that it was masked.
    pub masked: u64,
    /// The least distance between requests or packets.
    pub gaps: Gaps,
    /// Runs of the handler that ended after the source's deadline, which counts from the instant at
    /// which the limiter let the request through; and `overdue`.
    pub missed: u64,
    /// Requests whose handler has not run at the end, after their deadline: one, or none.
    pub overdue: u64,
    /// Cycles from a request's arrival to the end of its handler. Requests that joined a waiting
    /// one are not counted apart.
    pub responses: Spans,
    /// The losses.
    pub lost: Losses,
}

/// The tally of a flow's packets.
#[derive(Debug, Clone, Default)]
pub struct FlowTally {
    /// Packets that arrived.
    pub arrived: u64,
    /// The least distance between packets.
    pub gaps: Gaps,
    /// Packets that the bottom half delivered to the receiver.
    pub delivered: u64,
    /// Packets that were delivered after the flow's deadline, or are late at the end of the run.
    /// Lost packets are not among them.
    pub late: u64,
    /// Cycles from the arrival to the end of the bottom half.
    pub latencies: Spans,
    /// The losses.
    pub lost: Losses,
}

/// The tally of a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Cycles that were simulated.
    pub duration: u64,
    /// Interrupts that the processor took, of all kinds.
    pub interrupts: u64,
    /// The processor's time, by stage.
    pub stages: Stages,
    /// The tasks, in the system's order.
    pub tasks: Vec<TaskTally>,
    /// The sources, in the system's order.
    pub sources: Vec<SourceTally>,
    /// The flows, in the system's order.
    pub flows: Vec<FlowTally>,
    /// Interrupts of the shared timers, in the system's order.
    pub timers: Vec<u64>,
    /// Cycles of top and bottom halves for packets without a receiver.
    pub orphans: u64,
    /// Clock ticks while no task was there to be charged.
    pub idle_ticks: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_are_summed_up_as_a_sorted_list_would_be(
            mut spans in proptest::collection::vec(prop_oneof![Just(40_u64), 1_u64..2_000_000], 1..300),
            quantile in 0.0_f64..=1.0,
        ) {
            let mut summed = Spans::default();
            prop_assert_eq!(summed.quantile(quantile), None);
            for &span in &spans {
                summed.add(span);
            }
            spans.sort_unstable();
            prop_assert_eq!(summed.count(), spans.len() as u64);
            prop_assert_eq!((summed.least(), summed.most()), (spans.first().copied(), spans.last().copied()));
            let mean = spans.iter().sum::<u64>() as f64 / spans.len() as f64;
            prop_assert!((summed.mean().unwrap() - mean).abs() <= mean * 1e-9);
            // The library rounds the rank where the product is hardly above a whole number.
            let rank = ((quantile * spans.len() as f64).ceil() as usize).clamp(1, spans.len());
            let said = summed.quantile(quantile).unwrap() as f64;
            let near = |exact: u64| (said - exact as f64).abs() <= exact as f64 / 100.0 + 1.0;
            prop_assert!(spans[rank.saturating_sub(2)..rank].iter().any(|&exact| near(exact)), "{said} at rank {rank}");
        }
    }

    #[test]
    fn what_is_always_the_same_needs_no_histogram() {
        let mut spans = Spans::default();
        for _ in 0..1000 {
            spans.add(7);
        }
        assert!(spans.histogram.is_none());
        spans.add(9);
        assert_eq!(
            (spans.quantile(0.99), spans.quantile(1.0)),
            (Some(7), Some(9))
        );
    }
}
