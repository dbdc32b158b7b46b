// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statistics of a run. Their size does not depend on the duration of the run.

use hdrhistogram::Histogram;

use crate::observer::Loss;

/// The uses of the processor's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Handlers and top halves: the purpose of the interrupts.
    Handlers,
    /// Limiting: refused requests, timer interrupts, and the additional cost of a served request.
    Limit,
    /// Finding the receivers of packets in the top half.
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
    /// All stages, in the order in which a request passes them.
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

/// The cycles of each stage. Their sum is the duration of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages([u64; Stage::ALL.len()]);

impl Stages {
    /// Adds cycles to a stage.
    pub(crate) fn add(&mut self, stage: Stage, cycles: u64) {
        self.0[stage as usize] += cycles;
    }

    /// Returns the cycles of a stage.
    #[must_use]
    pub fn of(&self, stage: Stage) -> u64 {
        self.0[stage as usize]
    }

    /// Returns the cycles of all stages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The number of losses for each reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::ALL.len()]);

impl Losses {
    /// Counts a loss.
    pub(crate) fn add(&mut self, why: Loss) {
        self.0[why as usize] += 1;
    }

    /// Returns the number of losses for this reason.
    #[must_use]
    pub fn of(&self, why: Loss) -> u64 {
        self.0[why as usize]
    }

    /// Returns the number of all losses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Iterates over the reasons that have caused losses, with the numbers of losses.
    pub fn reasons(&self) -> impl Iterator<Item = (Loss, u64)> {
        Loss::ALL
            .into_iter()
            .map(|why| (why, self.of(why)))
            .filter(|&(_, lost)| lost > 0)
    }
}

/// Statistics of time spans in cycles. Their number, minimum, maximum and sum are exact; quantiles
/// have an error of at most one hundredth.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    /// The histogram. `None` while all spans are equal: a system may have thousands of statistics,
    /// and many of them have a single value.
    histogram: Option<Box<Histogram<u32>>>,
    count: u64,
    least: u64,
    most: u64,
    sum: u128,
}

/// The number of significant decimal digits of the histogram. A third digit would make it eight
/// times as large.
const DIGITS: u8 = 2;

impl Spans {
    pub(crate) fn add(&mut self, span: u64) {
        if self.count == 0 {
            (self.least, self.most) = (span, span);
        } else if self.histogram.is_none() && span != self.least {
            self.begin_histogram();
        }
        if let Some(histogram) = &mut self.histogram {
            // The histogram grows with its values. A counter that has reached its maximum keeps it.
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

    /// Returns the number of spans.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the shortest span. `None` if there are no spans.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// Returns the longest span. `None` if there are no spans.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// Returns the mean span. `None` if there are no spans.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the quantile of the spans for a fraction between 0 and 1, with an error of at most
    /// one hundredth. `None` if there are no spans.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let within = match &self.histogram {
            Some(histogram) => histogram.value_at_quantile(quantile),
            None => self.least,
        };
        (self.count > 0).then(|| within.clamp(self.least, self.most))
    }
}

/// The shortest distance between consecutive arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gaps {
    last: Option<u64>,
    least: Option<u64>,
}

impl Gaps {
    /// Counts an arrival at cycle `at`, which must not be before the previous one.
    pub(crate) fn arrived(&mut self, at: u64) {
        if let Some(last) = self.last.replace(at) {
            let gap = at - last;
            self.least = Some(self.least.map_or(gap, |least| least.min(gap)));
        }
    }

    /// Returns the fewest cycles between two consecutive arrivals. `None` if there were fewer than
    /// two.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        self.least
    }
}

/// The statistics of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskTally {
    /// Number of released jobs.
    pub released: u64,
    /// Number of jobs that have ended.
    pub ended: u64,
    /// Number of jobs that did not end by their deadline, including unfinished ones.
    pub missed: u64,
    /// Response times of ended jobs: the cycles from release to end.
    pub responses: Spans,
    /// Execution times of ended jobs, in cycles.
    pub executed: Spans,
    /// The sum of the cycles by which jobs ended after their deadlines (behnke2021 §III-A: l =
    /// t_end - d, accumulated).
    pub lateness: u64,
    /// Cycles that the task executed.
    pub ran: u64,
    /// Cycles in which interrupts and bottom halves ran while this task would otherwise have run.
    pub interrupted: u64,
    /// The part of `interrupted` in which bottom halves for other tasks ran.
    pub interrupted_by_bottom_halves: u64,
    /// Cycles charged to the task: top halves, early demultiplexing and bottom halves of its
    /// packets, and the shares of handlers for its packets.
    pub charged: u64,
    /// Packets or events that the task has received.
    pub received: u64,
    /// Clock ticks that the system's accounting charges to the task.
    pub ticks: i64,
}

/// The statistics of a source.
#[derive(Debug, Clone, Default)]
pub struct SourceTally {
    /// Requests or packets that arrived.
    pub arrived: u64,
    /// Interrupts of the source's line.
    pub interrupts: u64,
    /// The part of `interrupts` that the limiter refused.
    pub refused: u64,
    /// Interrupts of the source's own timer.
    pub expiries: u64,
    /// Runs of the handler, in the line's or the timer's interrupt.
    pub served: u64,
    /// Packets that the handler took from the device.
    pub taken: u64,
    /// How often the limiter masked the source.
    pub masked: u64,
    /// The shortest distance between requests or packets.
    pub gaps: Gaps,
    /// Handler runs that ended after the source's deadline, counted from the instant at which the
    /// limiter admitted the request, plus `overdue`.
    pub missed: u64,
    /// Requests (0 or 1) that are past their deadline at the end of the run and whose handler has
    /// not run.
    pub overdue: u64,
    /// Response times: the cycles from a request's arrival to the end of its handler. Requests that
    /// merged with a pending one are not counted separately.
    pub responses: Spans,
    /// The lost requests and packets, by reason.
    pub lost: Losses,
}

/// The statistics of a flow's packets.
#[derive(Debug, Clone, Default)]
pub struct FlowTally {
    /// Packets that arrived.
    pub arrived: u64,
    /// The shortest distance between packets.
    pub gaps: Gaps,
    /// Packets that bottom halves delivered to the receiver.
    pub delivered: u64,
    /// Packets that were delivered after the flow's deadline, or are past it and undelivered at the
    /// end of the run. Lost packets are not included.
    pub late: u64,
    /// Latencies: the cycles from a packet's arrival to the end of its bottom half.
    pub latencies: Spans,
    /// The lost packets, by reason.
    pub lost: Losses,
}

/// The statistics of a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The simulated cycles.
    pub duration: u64,
    /// Interrupts of all kinds that the processor took.
    pub interrupts: u64,
    /// The processor's time, by stage.
    pub stages: Stages,
    /// The statistics of each task, in the system's order.
    pub tasks: Vec<TaskTally>,
    /// The statistics of each source, in the system's order.
    pub sources: Vec<SourceTally>,
    /// The statistics of each flow, in the system's order.
    pub flows: Vec<FlowTally>,
    /// The number of interrupts of each shared timer, in the system's order.
    pub timers: Vec<u64>,
    /// Cycles of top and bottom halves for packets without a receiver.
    pub orphans: u64,
    /// Clock ticks at which no task could be charged.
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
            // The histogram library rounds the rank if the product is only slightly above a whole
            // number.
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
