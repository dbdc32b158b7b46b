// SPDX-License-Identifier: GPL-3.0-or-later
//! Accounting of the processor's cycles, by vector.

/// The use of one vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorAccount {
    /// The number of interrupts that were taken.
    pub taken: u64,
    /// The total cycles of these interrupts.
    pub cycles: u64,
    /// The cycles of the longest interrupt.
    pub longest: u64,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    vector: u8,
    /// The stack pointer when the handler began. If the stack pointer rises above it, the handler
    /// has been left without a RETI.
    stack: u16,
    used: u64,
}

/// Charges every cycle to a vector, to the background or to sleep. The cycles of a nested interrupt
/// are charged to the nested interrupt only.
#[derive(Debug, Clone)]
pub struct Account {
    vectors: [VectorAccount; 64],
    background: u64,
    asleep: u64,
    wakeups: u64,
    frames: Vec<Frame>,
    charged_until: u64,
}

impl Account {
    pub fn new() -> Self {
        Self {
            vectors: [VectorAccount::default(); 64],
            background: 0,
            asleep: 0,
            wakeups: 0,
            frames: Vec::new(),
            charged_until: 0,
        }
    }

    /// Records that an interrupt is taken. `stack` is the stack pointer before the return address
    /// is pushed.
    pub fn enter(&mut self, vector: u8, cycle: u64, stack: u16) {
        self.charge(cycle);
        // The stack has shrunk below the start of this handler, so the handler was left by a jump.
        while self.frames.last().is_some_and(|frame| frame.stack <= stack) {
            self.leave_frame();
        }
        self.frames.push(Frame {
            vector,
            stack,
            used: 0,
        });
        self.vectors[usize::from(vector)].taken += 1;
    }

    /// Records the end of a RETI.
    pub fn leave(&mut self, cycle: u64) {
        self.charge(cycle);
        self.leave_frame();
    }

    /// Records that the processor slept until `cycle`.
    pub fn sleep(&mut self, cycle: u64) {
        self.asleep += cycle - self.charged_until;
        self.charged_until = cycle;
    }

    pub fn wake(&mut self) {
        self.wakeups += 1;
    }

    /// Charges the time until `cycle` to the running handler or the background.
    pub fn charge(&mut self, cycle: u64) {
        let used = cycle - self.charged_until;
        self.charged_until = cycle;
        match self.frames.last_mut() {
            Some(frame) => {
                frame.used += used;
                self.vectors[usize::from(frame.vector)].cycles += used;
            }
            None => self.background += used,
        }
    }

    /// Discards all charges until `cycle`. Handlers in progress continue.
    pub fn clear(&mut self, cycle: u64) {
        self.charge(cycle);
        let frames = std::mem::take(&mut self.frames);
        *self = Self {
            frames,
            charged_until: cycle,
            ..Self::new()
        };
    }

    pub fn vector(&self, number: u8) -> VectorAccount {
        let mut used = self
            .vectors
            .get(usize::from(number))
            .copied()
            .unwrap_or_default();
        let running = self
            .frames
            .iter()
            .filter(|frame| frame.vector == number)
            .map(|frame| frame.used)
            .max();
        used.longest = used.longest.max(running.unwrap_or(0));
        used
    }

    pub fn background(&self) -> u64 {
        self.background
    }

    pub fn asleep(&self) -> u64 {
        self.asleep
    }

    pub fn wakeups(&self) -> u64 {
        self.wakeups
    }

    fn leave_frame(&mut self) {
        if let Some(frame) = self.frames.pop() {
            let vector = &mut self.vectors[usize::from(frame.vector)];
            vector.longest = vector.longest.max(frame.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_interrupts_are_charged_to_themselves() {
        let mut account = Account::new();
        account.enter(1, 100, 0x1000);
        account.enter(2, 130, 0x0ff0);
        account.leave(150);
        account.leave(160);
        account.charge(200);
        assert_eq!(
            account.vector(1),
            VectorAccount {
                taken: 1,
                cycles: 40,
                longest: 40
            }
        );
        assert_eq!(
            account.vector(2),
            VectorAccount {
                taken: 1,
                cycles: 20,
                longest: 20
            }
        );
        assert_eq!(account.background(), 140);
    }

    #[test]
    fn a_handler_that_jumps_out_is_over_at_the_next_interrupt() {
        let mut account = Account::new();
        account.enter(1, 100, 0x1000);
        account.enter(1, 150, 0x1000);
        account.leave(160);
        account.charge(200);
        assert_eq!(account.vector(1).cycles, 60);
        assert_eq!(account.background(), 140);
    }

    #[test]
    fn clearing_keeps_who_runs() {
        let mut account = Account::new();
        account.enter(1, 100, 0x1000);
        account.clear(110);
        account.leave(130);
        account.sleep(150);
        assert_eq!(
            (
                account.vector(1).cycles,
                account.vector(1).taken,
                account.asleep()
            ),
            (20, 0, 20)
        );
        assert_eq!(account.vector(1).longest, 30);
    }
}
