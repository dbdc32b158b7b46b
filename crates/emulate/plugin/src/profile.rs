// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the exception in which each of the guest's instructions was executed.
//!
//! A Cortex-M changes its exception only between two instructions, and an emulator that works in
//! blocks of instructions does so only between two blocks. So it is enough to examine the processor
//! at the start of a block. The exception number (IPSR) is always read. The stack pointer and the
//! link register are read if the number has changed, or if a change may not be visible in the
//! number (ARMv7-M Architecture Reference Manual, B1.5).
use std::collections::BTreeMap;

use crate::block::{BlockEnd, Mask};
use crate::masking::{Context, Masking};
use crate::processor::Processor;
use crate::report::{ExceptionReport, ProfileReport};
use crate::spans::{SpanPlan, Spans};

/// The number of the exception in which an operating system switches threads (PendSV).
const SWITCH: u16 = 14;

/// The lowest EXC_RETURN value. A branch to such an address returns from an exception.
const LEAST_RETURN: u32 = 0xffff_ffe0;

/// An active exception.
#[derive(Debug)]
struct Activation {
    number: u16,
    /// The address of the handler's first instruction.
    begin: u32,
    /// The stack pointer at that instruction.
    stack: u32,
    /// The end of the last executed block of the handler.
    end: BlockEnd,
    instructions: u64,
}

/// Charges instructions to exceptions.
#[derive(Debug)]
pub struct Profile {
    /// The active exceptions, with the running one last.
    active: Vec<Activation>,
    /// The end of the last executed block.
    end: BlockEnd,
    /// The number of executed instructions when the processor was examined last.
    seen: u64,
    background: u64,
    wakeups: u64,
    exceptions: BTreeMap<u16, ExceptionReport>,
    /// The thread that runs outside of exceptions.
    thread: u32,
    /// The instructions of each thread since the start of the run.
    threads: BTreeMap<u32, u64>,
    /// The number of the running thread's instructions when it was last switched to.
    switched_at: u64,
    /// Whether a thread switch has begun whose new thread is not known yet.
    is_switched: bool,
    longest_turn: u64,
    masking: Masking,
    spans: Spans,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            active: Vec::new(),
            end: BlockEnd::Other,
            seen: 0,
            background: 0,
            wakeups: 0,
            exceptions: BTreeMap::new(),
            thread: 0,
            threads: BTreeMap::new(),
            switched_at: 0,
            is_switched: false,
            longest_turn: 0,
            masking: Masking::default(),
            spans: Spans::default(),
        }
    }
}

impl Profile {
    /// Makes a profile that measures these spans.
    #[must_use]
    pub fn with_spans(plans: &[SpanPlan]) -> Self {
        Self {
            spans: Spans::new(plans),
            ..Self::default()
        }
    }

    /// Examines the processor at the start of the block at address `pc`. `executed` is the number
    /// of instructions since the start of the run; the last of them ended a block with `end`.
    /// Returns the number of the exception.
    pub fn block_begins(
        &mut self,
        executed: u64,
        pc: u32,
        end: BlockEnd,
        processor: &impl Processor,
    ) -> u16 {
        self.charge(executed);
        self.end = end;
        if let Some(running) = self.active.last_mut() {
            running.end = end;
        }
        if let BlockEnd::Mask(mask) = self.end {
            // Taking an exception does not change this register.
            let value = match mask {
                Mask::All(_) => 0,
                Mask::Some(register) => processor.register(register),
            };
            let (context, own) = self.context();
            self.masking.change(mask, value, context, own);
        }
        let number = processor.exception();
        let before = self.active.last().map_or(0, |running| running.number);
        if number != before {
            self.change(number, pc, processor);
        } else if number != 0 {
            self.take_again(pc, processor);
        }
        let (context, own) = self.context();
        self.spans.look(pc, context, own, processor);
        number
    }

    /// Returns whether spans are measured. Any block may begin or end a span.
    pub fn has_spans(&self) -> bool {
        self.spans.has_plans()
    }

    /// Returns the running thread or handler, and the number of instructions that it has executed.
    fn context(&self) -> (Context, u64) {
        let of_thread = || ((0, self.thread), self.of_thread());
        self.active.last().map_or_else(of_thread, |running| {
            let context = (self.active.len(), u32::from(running.number));
            (context, running.instructions)
        })
    }

    /// Returns the number of the running thread's instructions since the start of the run.
    fn of_thread(&self) -> u64 {
        self.threads.get(&self.thread).copied().unwrap_or(0)
    }

    /// Charges the instructions up to number `executed` to the current exception.
    fn charge(&mut self, executed: u64) {
        let instructions = executed - self.seen;
        self.seen = executed;
        match self.active.last_mut() {
            None => {
                self.background += instructions;
                *self.threads.entry(self.thread).or_default() += instructions;
            }
            Some(running) => {
                running.instructions += instructions;
                let counts = self.exceptions.entry(running.number).or_default();
                counts.instructions += instructions;
                counts.longest_instructions = counts.longest_instructions.max(running.instructions);
            }
        }
    }

    /// Handles a change of the exception number.
    fn change(&mut self, number: u16, pc: u32, processor: &impl Processor) {
        let stack = processor.stack();
        // The stack frames of ended exceptions are no longer on the stack.
        let has_ended = |top: &Activation| number == 0 || top.stack < stack;
        while self.active.last().is_some_and(has_ended) {
            self.active.pop();
        }
        if number == 0 {
            self.thread = processor.thread();
            if std::mem::take(&mut self.is_switched) {
                self.switched_at = self.of_thread();
            }
        }
        // The exception returned to a thread, or to an exception that was interrupted.
        let running = self.active.last();
        if number == running.map_or(0, |running| running.number) {
            self.take_again(pc, processor);
            return;
        }
        // An exception that interrupts another one pushes a stack frame. An exception that follows
        // another one reuses that frame, so that the stack pointer is the same (tail-chaining).
        let follows = running.is_some_and(|running| running.stack == stack);
        if follows {
            self.active.pop();
        }
        self.enter(number, pc, stack, follows);
    }

    /// Handles a new activation of an exception that is already active. If the last block ended the
    /// exception, this activation follows it, or it interrupts another exception that has not
    /// executed an instruction yet.
    fn take_again(&mut self, pc: u32, processor: &impl Processor) {
        let stack = processor.stack();
        let is_new = |running: &&Activation| {
            running.end == BlockEnd::Return
                && running.begin == pc
                && stack <= running.stack
                && processor.link() >= LEAST_RETURN
        };
        if let Some(running) = self.active.last().filter(is_new) {
            let (number, follows) = (running.number, stack == running.stack);
            self.active.pop();
            self.enter(number, pc, stack, follows);
        }
    }

    fn enter(&mut self, number: u16, begin: u32, stack: u32, follows: bool) {
        // If a handler ended by a return, its function calls have ended. Its other spans are
        // abandoned here.
        self.spans
            .give_up((self.active.len() + 1, u32::from(number)));
        if number == SWITCH && !std::mem::replace(&mut self.is_switched, true) {
            let turn = self.of_thread().saturating_sub(self.switched_at);
            self.longest_turn = self.longest_turn.max(turn);
        }
        let counts = self.exceptions.entry(number).or_default();
        counts.number = number;
        counts.taken += 1;
        counts.tail_chained += u64::from(follows);
        self.wakeups += u64::from(!follows && self.end == BlockEnd::Sleep);
        self.active.push(Activation {
            number,
            begin,
            stack,
            end: BlockEnd::Other,
            instructions: 0,
        });
    }

    /// Resets the counts. Active exceptions stay active, and their further instructions are
    /// counted.
    pub fn clear(&mut self, executed: u64) {
        self.charge(executed);
        self.background = 0;
        self.wakeups = 0;
        self.longest_turn = 0;
        self.masking.clear();
        self.spans.clear();
        self.exceptions.clear();
        for active in &mut self.active {
            active.instructions = 0;
            self.exceptions.entry(active.number).or_default().number = active.number;
        }
    }

    /// Returns the counts since the start or [`Self::clear`].
    pub fn report(&mut self, executed: u64) -> ProfileReport {
        self.charge(executed);
        let exceptions: Vec<ExceptionReport> = self.exceptions.values().copied().collect();
        ProfileReport {
            instructions: self.background
                + exceptions.iter().map(|used| used.instructions).sum::<u64>(),
            background_instructions: self.background,
            wakeups: self.wakeups,
            longest_masked_instructions: self.masking.longest,
            longest_turn_instructions: self.longest_turn,
            spans: self.spans.report(),
            exceptions,
            ..ProfileReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At {
        exception: u16,
        stack: u32,
        link: u32,
    }

    impl Processor for At {
        fn exception(&self) -> u16 {
            self.exception
        }

        fn register(&self, number: u8) -> u32 {
            match number {
                13 => self.stack,
                14 => self.link,
                _ => u32::from(number),
            }
        }

        fn thread(&self) -> u32 {
            self.stack
        }
    }

    const TO_THREAD: u32 = 0xffff_fff9;
    const TO_HANDLER: u32 = 0xffff_fff1;

    /// Runs a program of blocks. Each block has an exception, a stack pointer, a link register, an
    /// address, a number of instructions and an end.
    fn run(blocks: &[(u16, u32, u32, u32, u64, BlockEnd)]) -> ProfileReport {
        let mut profile = Profile::default();
        let mut executed = 0;
        let mut last = BlockEnd::Other;
        for &(exception, stack, link, pc, instructions, end) in blocks {
            let at = At {
                exception,
                stack,
                link,
            };
            profile.block_begins(executed, pc, last, &at);
            executed += instructions;
            last = end;
        }
        profile.report(executed)
    }

    fn of(report: &ProfileReport, number: u16) -> (u64, u64, u64, u64) {
        let used = report.exceptions.iter().find(|used| used.number == number);
        used.map_or((0, 0, 0, 0), |used| {
            (
                used.taken,
                used.tail_chained,
                used.instructions,
                used.longest_instructions,
            )
        })
    }

    #[test]
    fn an_interrupt_takes_its_instructions_from_the_background() {
        let report = run(&[
            (0, 100, 1, 0x100, 10, BlockEnd::Other),
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Other),
            (20, 60, 0x105, 0x210, 4, BlockEnd::Return),
            (0, 100, 1, 0x10a, 5, BlockEnd::Sleep),
            (20, 68, TO_THREAD, 0x200, 2, BlockEnd::Return),
            (0, 100, 1, 0x100, 1, BlockEnd::Other),
        ]);
        assert_eq!(of(&report, 20), (2, 0, 9, 7));
        assert_eq!(report.background_instructions, 16);
        assert_eq!((report.instructions, report.wakeups), (25, 1));
    }

    #[test]
    fn one_that_interrupts_another_is_told_from_one_that_follows_it() {
        let report = run(&[
            (0, 100, 1, 0x100, 10, BlockEnd::Other),
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Return),
            // 21 interrupts 20, and 22 follows 21. The link register of 22 is the same.
            (21, 36, TO_HANDLER, 0x300, 4, BlockEnd::Return),
            (22, 36, TO_HANDLER, 0x400, 5, BlockEnd::Return),
            (20, 68, 0x105, 0x204, 6, BlockEnd::Return),
            (0, 100, 1, 0x100, 7, BlockEnd::Other),
        ]);
        assert_eq!(of(&report, 20), (1, 0, 9, 9));
        assert_eq!(of(&report, 21), (1, 0, 4, 4));
        assert_eq!(of(&report, 22), (1, 1, 5, 5));
        assert_eq!(report.background_instructions, 17);
    }

    #[test]
    fn one_that_is_interrupted_before_its_first_instruction_is_taken_once() {
        let report = run(&[
            (0, 100, 1, 0x100, 10, BlockEnd::Other),
            // 20 has already been taken, so its frame is on the stack.
            (21, 36, TO_HANDLER, 0x300, 4, BlockEnd::Return),
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Other),
            (21, 36, TO_HANDLER, 0x300, 4, BlockEnd::Return),
            (20, 68, TO_THREAD, 0x206, 2, BlockEnd::Return),
            (0, 100, 1, 0x100, 7, BlockEnd::Other),
        ]);
        assert_eq!(of(&report, 20), (1, 0, 5, 5));
        assert_eq!(of(&report, 21), (2, 0, 8, 4));
    }

    #[test]
    fn one_that_follows_itself_and_is_interrupted_at_once_is_taken_again() {
        let report = run(&[
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Return),
            (21, 36, TO_HANDLER, 0x300, 4, BlockEnd::Return),
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Return),
            // 22 was taken and interrupted before its first instruction.
            (20, 36, TO_HANDLER, 0x200, 3, BlockEnd::Return),
            (22, 68, TO_THREAD, 0x400, 5, BlockEnd::Return),
            (0, 100, 1, 0x100, 7, BlockEnd::Other),
        ]);
        assert_eq!(of(&report, 20), (3, 1, 9, 3));
        assert_eq!((of(&report, 21).0, of(&report, 22).0), (1, 1));
    }

    #[test]
    fn an_interrupt_that_follows_itself_is_taken_again() {
        let handler = |link, end| (20, 68, link, 0x200, 3, end);
        let report = run(&[
            (0, 100, 1, 0x100, 10, BlockEnd::Other),
            handler(TO_THREAD, BlockEnd::Return),
            handler(TO_THREAD, BlockEnd::Other),
            // The handler jumps back to its first instruction.
            handler(TO_THREAD, BlockEnd::Return),
            // The handler's function is called as an ordinary function.
            handler(0x211, BlockEnd::Return),
            (0, 100, 1, 0x10a, 5, BlockEnd::Other),
        ]);
        assert_eq!(of(&report, 20), (2, 1, 12, 9));
    }

    #[test]
    fn only_what_comes_after_the_beginning_counts() {
        let mut profile = Profile::default();
        let at = |exception| At {
            exception,
            stack: 68,
            link: TO_THREAD,
        };
        profile.block_begins(0, 0x100, BlockEnd::Other, &at(0));
        profile.block_begins(10, 0x200, BlockEnd::Other, &at(20));
        profile.clear(12);
        let report = profile.report(15);
        assert_eq!(of(&report, 20), (0, 0, 3, 3));
        assert_eq!(report.background_instructions, 0);
    }

    #[test]
    fn masked_instructions_are_those_of_who_masks() {
        let mask = |register| BlockEnd::Mask(Mask::Some(register));
        let report = run(&[
            (14, 68, TO_THREAD, 0x80, 1, BlockEnd::Return),
            // Register 5 has the value 5, and register 0 the value 0.
            (0, 100, 1, 0x100, 10, mask(5)),
            (0, 100, 1, 0x120, 3, BlockEnd::Other),
            // The interrupt is not masked. It may mask others itself.
            (20, 68, TO_THREAD, 0x200, 90, BlockEnd::Return),
            (0, 100, 1, 0x126, 4, mask(0)),
            (21, 68, TO_THREAD, 0x300, 2, mask(5)),
            (21, 68, TO_THREAD, 0x304, 6, mask(0)),
            (0, 100, 1, 0x130, 50, BlockEnd::Other),
        ]);
        assert_eq!(report.longest_masked_instructions, 7);
    }

    #[test]
    fn a_turn_of_a_thread_is_from_switch_to_switch_without_interrupts() {
        let report = run(&[
            (14, 68, TO_THREAD, 0x80, 1, BlockEnd::Return),
            (0, 100, 1, 0x100, 10, BlockEnd::Other),
            (20, 68, TO_THREAD, 0x200, 90, BlockEnd::Return),
            (0, 100, 1, 0x110, 7, BlockEnd::Other),
            // An interrupt is followed by a thread switch, which another interrupt interrupts.
            (20, 68, TO_THREAD, 0x200, 3, BlockEnd::Return),
            (14, 68, TO_THREAD, 0x80, 1, BlockEnd::Other),
            (21, 36, TO_HANDLER, 0x300, 40, BlockEnd::Return),
            (14, 68, 1, 0x84, 1, BlockEnd::Return),
            (0, 200, 1, 0x100, 12, BlockEnd::Other),
            // The thread yields and continues.
            (14, 168, TO_THREAD, 0x80, 2, BlockEnd::Return),
            (0, 200, 1, 0x104, 9, BlockEnd::Other),
            (14, 168, TO_THREAD, 0x80, 2, BlockEnd::Return),
        ]);
        assert_eq!(report.longest_turn_instructions, 17);
    }

    #[test]
    fn spans_are_those_of_a_thread() {
        let mut profile = Profile::with_spans(&[SpanPlan {
            name: "turn".to_owned(),
            begin: 0x100,
            end: Some(0x100),
            unless: Vec::new(),
        }]);
        let mut executed = 0;
        // Two threads, identified by their stacks in this test, and the switches between them.
        for (exception, stack, pc, instructions) in [
            (14, 0, 0x300, 1),
            (0, 40, 0x100, 10),
            (14, 0, 0x300, 5),
            (0, 80, 0x100, 100),
            (14, 0, 0x300, 5),
            (0, 40, 0x10a, 20),
            (0, 40, 0x100, 7),
        ] {
            let at = At {
                exception,
                stack,
                link: TO_THREAD,
            };
            profile.block_begins(executed, pc, BlockEnd::Other, &at);
            executed += instructions;
        }
        let turn = profile.report(executed).spans["turn"];
        assert_eq!((turn.taken, turn.longest_instructions), (1, 30));
    }

    #[test]
    fn spans_of_a_handler_are_those_of_one_activation() {
        let mut profile = Profile::with_spans(&[SpanPlan {
            name: "call".to_owned(),
            begin: 0x210,
            end: None,
            unless: Vec::new(),
        }]);
        let mut executed = 0;
        for (exception, stack, link, pc, instructions) in [
            (0, 100, 1, 0x100, 10),
            (20, 68, TO_THREAD, 0x200, 3),
            (20, 60, 0x205, 0x210, 4),
            // A more urgent interrupt comes during the call. Its instructions do not belong to the
            // call.
            (21, 28, TO_HANDLER, 0x300, 50),
            (20, 60, 0x205, 0x214, 6),
            (20, 60, 0x205, 0x204, 2),
            (0, 100, 1, 0x10a, 5),
            // The next activation begins the call. The end of the exception abandons it.
            (20, 68, TO_THREAD, 0x200, 3),
            (20, 60, 0x205, 0x210, 4),
            (0, 100, 1, 0x10a, 5),
            (20, 68, TO_THREAD, 0x200, 3),
            (20, 60, 0x205, 0x204, 9),
        ] {
            let at = At {
                exception,
                stack,
                link,
            };
            profile.block_begins(executed, pc, BlockEnd::Other, &at);
            executed += instructions;
        }
        let call = profile.report(executed).spans["call"];
        assert_eq!((call.taken, call.longest_instructions), (1, 10));
    }
}
