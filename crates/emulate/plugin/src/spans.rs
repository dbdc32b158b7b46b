// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the instructions that a thread or an exception handler executes between two places of the
//! code. Instructions of interrupting exceptions and of other threads are not counted.
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::masking::Context;
use crate::processor::Processor;
use crate::report::SpanReport;

/// A span of code between two places, as executed by a thread or by a handler in one activation.
/// Places are addresses at which a block of instructions begins, such as those of functions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpanPlan {
    /// The span's name in the report.
    pub name: String,
    /// The address at which the span begins. While a context executes the span, reaching this
    /// address does not start it again.
    pub begin: u32,
    /// The address at which the span ends. It may equal `begin`, so that the span is one iteration
    /// of a loop. `None` means that the span is a call of the function at `begin`.
    pub end: Option<u32>,
    /// The addresses at which the span is abandoned.
    #[serde(default)]
    pub unless: Vec<u32>,
}

/// A span that has begun and not ended.
#[derive(Debug)]
struct OpenSpan {
    /// The index of the span in the plan.
    plan: usize,
    context: Context,
    /// The number of instructions that the context had executed when the span began.
    since: u64,
    /// The address at which the span ends. For a function call, also the stack pointer after the
    /// return.
    end: (u32, Option<u32>),
}

/// Measures spans.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    plans: Vec<SpanPlan>,
    open: Vec<OpenSpan>,
    reports: BTreeMap<String, SpanReport>,
}

impl Spans {
    pub fn new(plans: &[SpanPlan]) -> Self {
        Self {
            plans: plans.to_vec(),
            ..Self::default()
        }
    }

    pub fn has_plans(&self) -> bool {
        !self.plans.is_empty()
    }

    /// Handles the start of a block at address `pc`, in a thread or handler that has executed `own`
    /// instructions.
    pub fn look(&mut self, pc: u32, context: Context, own: u64, processor: &impl Processor) {
        let (plans, reports) = (&self.plans, &mut self.reports);
        self.open.retain(|open| {
            if open.context != context {
                return true;
            }
            let plan = &plans[open.plan];
            let (address, stack) = open.end;
            if pc == address && stack.is_none_or(|stack| stack == processor.stack()) {
                let length = own - open.since;
                let report = reports.entry(plan.name.clone()).or_default();
                report.taken += 1;
                report.instructions += length;
                report.longest_instructions = report.longest_instructions.max(length);
                return false;
            }
            !plan.unless.contains(&pc)
        });
        for (index, plan) in self.plans.iter().enumerate() {
            let is_open = |open: &OpenSpan| open.plan == index && open.context == context;
            if plan.begin == pc && !self.open.iter().any(is_open) {
                let call = || (processor.link() & !1, Some(processor.stack()));
                self.open.push(OpenSpan {
                    plan: index,
                    context,
                    since: own,
                    end: plan.end.map_or_else(call, |end| (end, None)),
                });
            }
        }
    }

    /// Abandons the spans that this context has begun.
    pub fn give_up(&mut self, context: Context) {
        self.open.retain(|open| open.context != context);
    }

    /// Resets the measurements and abandons all spans that have begun.
    pub fn clear(&mut self) {
        self.open.clear();
        self.reports.clear();
    }

    /// Returns all spans, including those that were never executed.
    pub fn report(&self) -> BTreeMap<String, SpanReport> {
        let of = |plan: &SpanPlan| {
            let report = self.reports.get(&plan.name).copied();
            (plan.name.clone(), report.unwrap_or_default())
        };
        self.plans.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor whose stack pointer is the field, and whose link register is 0x101.
    struct Still(u32);

    impl Processor for Still {
        fn exception(&self) -> u16 {
            0
        }

        fn register(&self, number: u8) -> u32 {
            if number == 13 { self.0 } else { 0x101 }
        }

        fn thread(&self) -> u32 {
            0
        }
    }

    fn spans(end: Option<u32>, unless: &[u32]) -> Spans {
        Spans::new(&[SpanPlan {
            name: "it".to_owned(),
            begin: 0x10,
            end,
            unless: unless.to_vec(),
        }])
    }

    /// Visits the addresses with a stack pointer of 40. Each address comes with a thread and the
    /// number of its instructions.
    fn of(mut spans: Spans, looks: &[(u32, u32, u64)]) -> SpanReport {
        for &(pc, thread, own) in looks {
            spans.look(pc, (0, thread), own, &Still(40));
        }
        spans.report().remove("it").unwrap_or_default()
    }

    #[test]
    fn a_span_counts_the_instructions_of_its_thread() {
        let looks = [
            (0x10, 1, 100),
            (0x10, 2, 5),
            (0x10, 1, 110),
            (0x20, 2, 9),
            (0x20, 1, 130),
            (0x20, 1, 140),
        ];
        let report = of(spans(Some(0x20), &[]), &looks);
        assert_eq!((report.taken, report.longest_instructions), (2, 30));
        assert_eq!(report.instructions, 34);
    }

    #[test]
    fn a_turn_ends_where_the_next_one_begins() {
        let looks = [(0x10, 1, 0), (0x10, 1, 7), (0x10, 1, 19)];
        let report = of(spans(Some(0x10), &[]), &looks);
        assert_eq!((report.taken, report.longest_instructions), (2, 12));
        let looks = [(0x10, 1, 0), (0x30, 1, 3), (0x10, 1, 7), (0x10, 1, 9)];
        let report = of(spans(Some(0x10), &[0x30]), &looks);
        assert_eq!((report.taken, report.longest_instructions), (1, 2));
    }

    #[test]
    fn a_call_ends_with_the_return_of_the_same_depth() {
        let mut spans = spans(None, &[]);
        spans.look(0x10, (0, 1), 0, &Still(40));
        // The same address is reached deeper in the stack, as in a recursion.
        spans.look(0x100, (0, 1), 5, &Still(32));
        spans.look(0x100, (0, 2), 6, &Still(40));
        spans.look(0x100, (0, 1), 8, &Still(40));
        let report = spans.report()["it"];
        assert_eq!((report.taken, report.longest_instructions), (1, 8));
        spans.look(0x10, (0, 1), 9, &Still(40));
        spans.clear();
        spans.look(0x100, (0, 1), 12, &Still(40));
        assert_eq!(spans.report()["it"], SpanReport::default());
    }
}
