// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted while a system runs. Its size does not depend on how long that is.

use hdrhistogram::Histogram;

use crate::observer::Loss;

/// What the processor's time goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Handlers and top halves: what the interrupts are for.
    Handlers,
    /// What limiting costs: requests refused, timers, and what a served request costs more than
    /// without a limiter.
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
    /// Nothing to do.
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

    /// As it is serialised.
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

/// Cycles by stage; together the run's.
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

/// What was lost, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::ALL.len()]);

impl Losses {
    /// One more is lost.
    pub(crate) fn add(&mut self, why: Loss) {
        self.0[why as usize] += 1;
    }

    /// How many were lost for this reason.
    #[must_use]
    pub fn of(&self, why: Loss) -> u64 {
        self.0[why as usize]
    }

    /// How many were lost in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons for which anything was lost, with how many.
    pub fn reasons(&self) -> impl Iterator<Item = (Loss, u64)> {
        Loss::ALL
            .into_iter()
            .map(|why| (why, self.of(why)))
            .filter(|&(_, lost)| lost > 0)
    }
}

/// Spans of time in cycles: exact in number, least, most and sum, to one hundredth between.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    /// Made for the second value that is not the first: what is always the same needs none, and a
    /// system may have thousands.
    histogram: Option<Box<Histogram<u32>>>,
    count: u64,
    least: u64,
    most: u64,
    sum: u128,
}

/// Of decimal digits that a histogram keeps apart. A third would make it eight times as large.
const DIGITS: u8 = 2;

impl Spans {
    pub(crate) fn add(&mut self, span: u64) {
        if self.count == 0 {
            (self.least, self.most) = (span, span);
        } else if self.histogram.is_none() && span != self.least {
            self.begin_histogram();
        }
        if let Some(histogram) = &mut self.histogram {
            // It grows with what it is told; a count that is full stays so.
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

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// The longest.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// The mean.
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

/// How close to each other things arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gaps {
    last: Option<u64>,
    least: Option<u64>,
}

impl Gaps {
    /// Something arrived in this cycle, not before what arrived last.
    pub(crate) fn arrived(&mut self, at: u64) {
        if let Some(last) = self.last.replace(at) {
            let gap = at - last;
            self.least = Some(self.least.map_or(gap, |least| least.min(gap)));
        }
    }

    /// The fewest cycles between two; none if no two arrived.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        self.least
    }
}

/// What a task did.
#[derive(Debug, Clone, Default)]
pub struct TaskTally {
    /// Jobs released.
    pub released: u64,
    /// Jobs that have ended.
    pub ended: u64,
    /// Of those that ended or still run, how many were not done by their deadline.
    pub missed: u64,
    /// From the release to the end of each job that has ended.
    pub responses: Spans,
    /// Of each job that ended, the cycles that it executed.
    pub executed: Spans,
    /// Cycles by which jobs ended after their deadlines, together (behnke2021 §III-A: l = t_end -
    /// d, accumulated).
    pub lateness: u64,
    /// Cycles that it executed.
    pub ran: u64,
    /// Cycles for which interrupts and bottom halves ran while it would have: taken from it.
    pub interrupted: u64,
    /// Of those, the cycles of bottom halves for others.
    pub interrupted_by_bottom_halves: u64,
    /// Cycles of top halves, early demultiplexing and bottom halves that were for it, and its
    /// packets' shares of their handlers: charged to it.
    pub charged: u64,
    /// Packets or events that it has got, of those that bottom halves delivered.
    pub received: u64,
    /// Clock ticks that the system's account says it used.
    pub ticks: i64,
}

/// What a source did.
#[derive(Debug, Clone, Default)]
pub struct SourceTally {
    /// Requests or packets that arrived.
    pub arrived: u64,
    /// Interrupts of its line.
    pub interrupts: u64,
    /// Of those, refused by the limiter.
    pub refused: u64,
    /// Interrupts of its own timer.
    pub expiries: u64,
    /// Runs of the handler, in either.
    pub served: u64,
    /// Packets that the handler took out of the device.
    pub taken: u64,
    /// Times that it was masked.
    pub masked: u64,
    /// How close to each other requests or packets arrived.
    pub gaps: Gaps,
    /// Runs of the handler that ended after the source's deadline, which counts from when the
    /// limiter let the request through.
    pub missed: u64,
    /// From a request's arrival to the end of its handler. Requests that joined one that waited
    /// already are not counted apart.
    pub responses: Spans,
    /// What was lost, and why.
    pub lost: Losses,
}

/// What became of a flow's packets.
#[derive(Debug, Clone, Default)]
pub struct FlowTally {
    /// Packets that arrived.
    pub arrived: u64,
    /// How close to each other they arrived.
    pub gaps: Gaps,
    /// Packets that the bottom half delivered to the receiver.
    pub delivered: u64,
    /// Packets that were not delivered by the flow's deadline, but later or, at the end of the run,
    /// not yet. Those that were lost are not among them.
    pub late: u64,
    /// From the arrival to the end of the bottom half.
    pub latencies: Spans,
    /// What was lost, and why.
    pub lost: Losses,
}

/// What happened in a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Cycles that were simulated.
    pub duration: u64,
    /// Interrupts that the processor took, of all kinds.
    pub interrupts: u64,
    /// By stage.
    pub stages: Stages,
    /// In the system's order.
    pub tasks: Vec<TaskTally>,
    /// In the system's order.
    pub sources: Vec<SourceTally>,
    /// In the system's order.
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
