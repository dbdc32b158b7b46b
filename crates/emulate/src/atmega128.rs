// SPDX-License-Identifier: GPL-3.0-or-later
//! The emulated ATmega128: simavr executes the instructions. This module implements the rest of the
//! chip according to the data sheet.
//!
//! The data sheet's rules for interrupts ("Reset and Interrupt Handling"), which simavr does not
//! follow:
//! - taking one costs 4 cycles, and 4 more when the processor sleeps; its flag is cleared then;
//! - of several, the one with the lowest vector goes first;
//! - a flag that was raised while its enable bit was clear requests the interrupt when the bit is
//!   set;
//! - after RETI and after SEI one more instruction is executed first;
//! - writing a one to a flag clears it, writing a zero leaves it;
//! - a line that requests at low level has no pending bit.
mod account;
mod core;
mod loader;
mod peripherals;
mod pins;
mod ports;
mod registers;
mod timer;

use std::ffi::CString;

use self::account::Account;
pub use self::account::VectorAccount;
use self::core::{Core, CoreFault};
pub use self::peripherals::LineCount;
use self::peripherals::Peripherals;
pub use self::pins::{Driver, Move};
use crate::chip::Chip;
use crate::elf::{DataSymbol, Image};
use crate::error::RunError;
use crate::line::{Line, Pin};
use crate::result::{BoardEvent, EventKind};

/// A code address whose execution is recorded.
struct Mark {
    address: u32,
    symbol: String,
    reached: Vec<u64>,
}

/// A board with its firmware.
pub struct Atmega128Board<'a> {
    chip: &'a Chip,
    image: &'a Image,
    core: Core,
    /// Created by [`Peripherals::install`], freed with the board. Instructions access the
    /// peripherals, too, so no reference to them may exist while an instruction is executed.
    peripherals: *mut Peripherals,
    account: Account,
    drivers: Vec<(Line, Driver)>,
    next_move: Option<u64>,
    /// The enabled requests: one bit per vector number.
    requested: u64,
    /// Whether the processor has to execute one instruction before it takes the next interrupt.
    hold: bool,
    /// The vectors without a handler: one bit per number.
    without_handler: u64,
    marks: Vec<Mark>,
    trace: bool,
}

// SAFETY: the peripherals are the board's own, and point only into its core.
unsafe impl Send for Atmega128Board<'_> {}

impl<'a> Atmega128Board<'a> {
    /// Makes a board in its state after a reset.
    ///
    /// # Errors
    /// Fails if simavr cannot emulate the chip.
    pub fn new(
        chip: &'a Chip,
        image: &'a Image,
        clock_hz: u64,
        trace: bool,
    ) -> Result<Self, RunError> {
        let core = CString::new(chip.name())
            .ok()
            .and_then(|name| Core::new(&name, clock_hz, &image.flash));
        let mut core = core
            .ok_or_else(|| RunError::Spec(format!("simavr cannot emulate the {}", chip.name())))?;
        let peripherals = Peripherals::install(&mut core, chip, trace);
        let numbers = 1..=u8::try_from(chip.board.vectors.len()).unwrap_or(u8::MAX);
        let without_handler = numbers
            .filter(|&number| image.is_bad_interrupt(u32::from(number) * chip.avr.vector_bytes))
            .fold(0, |vectors, number| vectors | 1 << number);
        Ok(Self {
            chip,
            image,
            core,
            peripherals,
            account: Account::new(),
            drivers: Vec::new(),
            next_move: None,
            requested: 0,
            hold: false,
            without_handler,
            marks: Vec::new(),
            trace,
        })
    }

    /// Sets the driver that moves a line's pin from now on.
    pub fn drive(&mut self, line: Line, driver: Driver) {
        self.drivers.push((line, driver));
        self.plan_move();
    }

    /// Appends moves to the [`Driver::Wire`] on `line`.
    pub fn extend_wire(&mut self, line: Line, moves: impl Iterator<Item = (u64, bool)>) {
        let wire = self
            .drivers
            .iter_mut()
            .find_map(|(driven, driver)| match driver {
                Driver::Wire(wire) if *driven == line => Some(wire),
                _ => None,
            });
        if let Some(wire) = wire {
            wire.extend(moves);
        }
        self.plan_move();
    }

    /// Starts recording the moves of an output pin for [`Self::take_watched_moves`].
    pub fn watch(&mut self, pin: Pin) {
        self.peripherals().watch(pin);
    }

    /// Returns the moves of the watched pin since the last call.
    pub fn take_watched_moves(&mut self) -> Vec<(u64, bool)> {
        self.peripherals().take_watched_moves().collect()
    }

    /// Starts recording when the processor reaches this symbol of the code.
    ///
    /// # Errors
    /// Fails if the firmware has no such symbol.
    pub fn mark(&mut self, symbol: &str) -> Result<(), RunError> {
        let address = self.image.code_address(symbol)?;
        self.marks.push(Mark {
            address,
            symbol: symbol.to_owned(),
            reached: Vec::new(),
        });
        Ok(())
    }

    /// Returns, for each mark, the cycles at which the processor was about to execute there, since
    /// the last call or [`Self::clear`].
    pub fn take_marks(&mut self) -> impl Iterator<Item = (String, Vec<u64>)> {
        std::mem::take(&mut self.marks)
            .into_iter()
            .map(|mark| (mark.symbol, mark.reached))
    }

    /// Returns the cycles since the reset.
    pub fn cycle(&self) -> u64 {
        self.core.cycle()
    }

    /// Returns the current value of a variable, converted from the chip's byte order.
    pub fn read(&self, symbol: DataSymbol) -> u64 {
        let bytes = (symbol.address..).take(usize::from(symbol.size));
        let bytes = bytes.map(|address| u16::try_from(address).map_or(0, |at| self.core.byte(at)));
        bytes.enumerate().fold(0, |value, (place, byte)| {
            value | u64::from(byte) << (8 * place)
        })
    }

    /// Returns the use of a vector since the last [`Self::clear`].
    pub fn vector(&mut self, number: u8) -> VectorAccount {
        self.account.charge(self.core.cycle());
        self.account.vector(number)
    }

    /// Returns three counts since the last [`Self::clear`]: the cycles neither in an interrupt nor
    /// asleep, the cycles asleep, and the wake-ups.
    pub fn idle_time(&mut self) -> (u64, u64, u64) {
        self.account.charge(self.core.cycle());
        (
            self.account.background(),
            self.account.asleep(),
            self.account.wakeups(),
        )
    }

    /// Returns the number of edges on a line since the last [`Self::clear`].
    pub fn line(&mut self, line: Line) -> LineCount {
        self.peripherals().count(line)
    }

    /// Returns the events since the last call. Empty without a trace.
    pub fn take_events(&mut self) -> Vec<BoardEvent> {
        self.peripherals().take_events()
    }

    /// Discards all statistics, marks and events so far.
    pub fn clear(&mut self) {
        self.account.clear(self.core.cycle());
        self.peripherals().clear_counts();
        self.peripherals().take_events();
        for mark in &mut self.marks {
            mark.reached.clear();
        }
    }

    /// Runs until the first instruction boundary at or after `cycle`.
    ///
    /// # Errors
    /// Fails if the firmware crashes or uses a feature that the board does not model.
    pub fn run_until(&mut self, cycle: u64) -> Result<(), RunError> {
        while self.core.cycle() < cycle {
            self.process_events()?;
            if self.core.is_sleeping() {
                if self.requested == 0 || !self.core.interrupts_enabled() {
                    let next = self
                        .next_event()
                        .unwrap_or(cycle)
                        .clamp(self.core.cycle() + 1, cycle);
                    self.core.set_cycle(next);
                    self.account.sleep(next);
                    continue;
                }
                self.core.wake();
                self.account.wake();
                self.take_interrupt(self.chip.avr.wakeup_cycles)?;
            } else if !self.hold && self.requested != 0 && self.core.interrupts_enabled() {
                self.take_interrupt(0)?;
            }
            if self.core.cycle() < cycle {
                self.execute(cycle)?;
            }
        }
        self.process_events()?;
        // simavr reports some errors to its logger only. The next board on this thread must not see
        // them.
        match self.core.take_mishap() {
            Some(core_fault) => Err(self.core_fault(Some(core_fault))),
            None => Ok(()),
        }
    }

    /// Executes instructions until the next possible event, or until `limit`.
    #[inline]
    fn execute(&mut self, limit: u64) -> Result<(), RunError> {
        let now = self.core.cycle();
        let single = std::mem::take(&mut self.hold) || !self.marks.is_empty();
        let cycles = if single {
            1
        } else {
            self.next_event()
                .map_or(limit, |event| event.min(limit))
                .saturating_sub(now)
        };
        if !self.marks.is_empty() {
            self.note_marks(now);
        }
        self.core.run(cycles);
        if self.peripherals().take_touched() {
            self.after_touch()?;
        } else if self.core.has_broken_off() {
            // If no register was accessed, the batch ended because the I flag was set, by SEI or by
            // a write to SREG.
            self.hold = true;
        }
        if self.core.is_sleeping() {
            self.fall_asleep()?;
        } else if self.core.is_crashed() {
            return Err(self.core_fault(self.core.take_mishap()));
        }
        Ok(())
    }

    #[cold]
    fn note_marks(&mut self, now: u64) {
        let pc = self.core.pc();
        for index in 0..self.marks.len() {
            if self.marks[index].address == pc {
                self.marks[index].reached.push(now);
                if self.trace {
                    let symbol = self.marks[index].symbol.clone();
                    self.peripherals().record(now, EventKind::PcReached(symbol));
                }
            }
        }
    }

    fn after_touch(&mut self) -> Result<(), RunError> {
        let now = self.core.cycle();
        if self.peripherals().take_reti() {
            self.account.leave(now);
            self.peripherals().record(now, EventKind::Reti);
            self.hold = true;
        }
        self.requested = self.peripherals().requested();
        match self.peripherals().fault().cloned() {
            Some(fault) => Err(self.error(fault.what, &fault.help)),
            None => Ok(()),
        }
    }

    /// Handles all events that are due at this instruction boundary.
    #[inline]
    fn process_events(&mut self) -> Result<(), RunError> {
        let now = self.core.cycle();
        let mut changed = false;
        while self.next_move.is_some_and(|at| at <= now) {
            self.move_pin();
            changed = true;
        }
        if self
            .peripherals()
            .next_timer_event()
            .is_some_and(|at| at <= now)
        {
            self.peripherals().process_timers(now);
            changed = true;
        }
        if self.core.next_cycle_timer().is_some_and(|at| at <= now) {
            if !self.core.process_cycle_timers() {
                self.core.set_cycle(now);
                return Err(self.error(
                    "is reset by the watchdog".to_owned(),
                    "serve the watchdog in time, or switch it off for the measurement",
                ));
            }
            self.peripherals().note_simavr_event();
            changed = true;
        }
        if changed {
            self.peripherals().take_touched();
            self.requested = self.peripherals().requested();
        }
        Ok(())
    }

    #[inline]
    fn next_event(&mut self) -> Option<u64> {
        let earlier = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let timers = self.peripherals().next_timer_event();
        earlier(
            earlier(self.next_move, timers),
            self.core.next_cycle_timer(),
        )
    }

    fn move_pin(&mut self) {
        let Some(at) = self.next_move else { return };
        for index in 0..self.drivers.len() {
            let (line, driver) = &mut self.drivers[index];
            let line = *line;
            while driver.next_move() == Some(at) {
                let Some(movement) = driver.take() else { break };
                // SAFETY: made by `install`, freed in `drop`; no instruction is being executed.
                unsafe { &mut *self.peripherals }.drive(line, movement, at);
            }
        }
        self.plan_move();
    }

    fn plan_move(&mut self) {
        self.next_move = self
            .drivers
            .iter_mut()
            .filter_map(|(_, driver)| driver.next_move())
            .min();
    }

    fn take_interrupt(&mut self, wakeup_cycles: u64) -> Result<(), RunError> {
        let number = u8::try_from(self.requested.trailing_zeros()).unwrap_or(0);
        let now = self.core.cycle();
        if self.without_handler & 1 << number != 0 {
            let name = self.chip.vector_name(number);
            return Err(self.error(
                format!("takes the interrupt {name}, for which it has no handler,"),
                &format!("define ISR({name}_vect), or leave the interrupt's enable bit clear"),
            ));
        }
        let stack = self.core.stack_pointer();
        self.account.enter(number, now, stack);
        self.peripherals().acknowledge(number, now);
        self.core
            .enter(u32::from(number) * self.chip.avr.vector_bytes);
        self.core
            .set_cycle(now + self.chip.avr.response_cycles + wakeup_cycles);
        let lowest = self
            .image
            .data_end
            .unwrap_or(self.chip.avr.ram_start)
            .max(self.chip.avr.ram_start);
        if stack < lowest + 2 {
            return Err(self.error(
                format!("overflows its stack: it reaches 0x{stack:04x} and its variables end at 0x{lowest:04x}"),
                "the firmware needs less RAM, less recursion, or handlers that do not interrupt each other",
            ));
        }
        self.peripherals().take_touched();
        self.requested = self.peripherals().requested();
        Ok(())
    }

    /// Handles a SLEEP instruction.
    fn fall_asleep(&mut self) -> Result<(), RunError> {
        let control = self.core.byte(registers::MCUCR);
        if control & registers::SLEEP_ENABLE == 0 {
            self.core.wake();
            return Ok(());
        }
        if control & registers::SLEEP_MODE != 0 {
            return Err(self.error(
                "sleeps in another mode than idle".to_owned(),
                "this board models idle only: set_sleep_mode(SLEEP_MODE_IDLE)",
            ));
        }
        self.account.charge(self.core.cycle());
        Ok(())
    }

    fn core_fault(&self, core_fault: Option<CoreFault>) -> RunError {
        let (what, help) = match core_fault {
            Some(CoreFault::BadOpcode) => (
                "executes an instruction that the chip does not have",
                "a wild jump, or code for another chip: look at the code that leads there",
            ),
            Some(CoreFault::OutsideRam) => (
                "accesses an address beyond the RAM",
                "look for a wild pointer",
            ),
            None => ("crashes", "look for a jump beyond the end of the flash"),
        };
        self.error(what.to_owned(), help)
    }

    fn error(&self, what: String, help: &str) -> RunError {
        RunError::Firmware {
            what,
            cycle: self.core.cycle(),
            place: self.image.place(self.core.pc()),
            help: help.to_owned(),
        }
    }

    #[inline]
    fn peripherals(&mut self) -> &mut Peripherals {
        // SAFETY: made by `install`, freed in `drop`; the borrow of the board ends before the next
        // instruction runs.
        unsafe { &mut *self.peripherals }
    }
}

impl Drop for Atmega128Board<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `install`; the core executes nothing any more.
        drop(unsafe { Box::from_raw(self.peripherals) });
    }
}
