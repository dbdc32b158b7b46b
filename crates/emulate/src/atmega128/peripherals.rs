// SPDX-License-Identifier: GPL-3.0-or-later
//! Timers 0 to 3, external interrupts and ports, as the data sheet describes them. simavr's models
//! of these are removed from the bus. simavr's other peripherals stay, with callbacks that report
//! accesses to the board.
use std::ffi::c_void;

use simavr_ffi as simavr;

use super::core::{Core, Original};
use super::pins::Move;
use super::ports::{Ports, Request, Sense};
use super::registers as reg;
use super::timer::{CountMode, TimerCounter};
use crate::chip::Chip;
use crate::line::{Line, Pin};
use crate::result::{BoardEvent, EventKind};

mod bus;

/// A feature that the program uses and that this board does not model.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The predicate of a message, `uses …`, which follows "the firmware …".
    pub what: String,
    /// Advice for the user.
    pub help: String,
}

/// Edges on one line.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineCount {
    /// Edges of the direction that requests an interrupt.
    pub offered: u64,
    /// The part of `offered` that found the pending bit already set.
    pub missed: u64,
}

/// The vector of one of simavr's own peripherals. Its enable and flag bits are given as address and
/// mask.
struct SimavrVector {
    number: u8,
    enable: (u16, u8),
    raised: (u16, u8),
    vector: *mut simavr::avr_int_vector_t,
}

impl SimavrVector {
    fn all(avr: *mut simavr::avr_t) -> Vec<Self> {
        // SAFETY: the table is part of the core, its first vector_count entries point into simavr's
        // peripherals.
        let entries = unsafe {
            let table = &(*avr).interrupts;
            table.vector[..usize::from(table.vector_count)]
                .iter()
                .map(|&vector| (vector, &*vector))
                .collect::<Vec<_>>()
        };
        let place = |field: &simavr::avr_regbit_t| {
            let address = u16::try_from(field.reg())
                .ok()
                .filter(|&address| address != 0)?;
            Some((address, u8::try_from(field.mask() << field.bit()).ok()?))
        };
        let foreign = entries
            .into_iter()
            .filter(|(_, v)| v.vector > 8 && !reg::TIMER_VECTORS.contains(&v.vector));
        foreign
            .filter_map(|(vector, v)| {
                Some(Self {
                    number: v.vector,
                    enable: place(&v.enable)?,
                    raised: place(&v.raised)?,
                    vector,
                })
            })
            .collect()
    }
}

/// The devices on the chip's I/O bus.
pub struct Peripherals {
    /// simavr's data memory. It contains the registers' plain bits, which IN and OUT access without
    /// a callback.
    data: *mut u8,
    avr: *mut simavr::avr_t,
    timers: [TimerCounter; 4],
    /// The divisors of each timer's prescaler.
    divisors: Vec<Vec<u64>>,
    /// The TEMP registers of the 16-bit timers, which buffer one byte of a 16-bit access.
    temp: [u8; 4],
    ports: Ports,
    requests: Vec<(Line, Request)>,
    counts: [LineCount; Line::COUNT],
    /// The cycle at which a timer next sets a flag that may interrupt; `None` for never.
    next_timer_event: Option<u64>,
    /// Whether something has changed that the run loop has to handle.
    touched: bool,
    reti: bool,
    fault: Option<Fault>,
    originals: Vec<Option<Original>>,
    /// The vectors of simavr's own peripherals.
    simavr_vectors: Vec<SimavrVector>,
    /// The requests of simavr's own peripherals: one bit per vector number. Recomputed after an
    /// access to these peripherals.
    simavr_requests: u64,
    simavr_touched: bool,
    watched: Option<Pin>,
    watched_level: bool,
    watched_moves: Vec<(u64, bool)>,
    events: Option<Vec<BoardEvent>>,
}

const DATA_SPACE_IO_END: u16 = 0xff;

impl Peripherals {
    /// Installs these peripherals on the chip's I/O bus. They must outlive the core's last
    /// instruction.
    pub fn install(core: &mut Core, chip: &Chip, trace: bool) -> *mut Self {
        let avr = core.pointer();
        let peripherals = Box::new(Self {
            // SAFETY: the core is initialised.
            data: unsafe { (*avr).data },
            avr,
            timers: std::array::from_fn(|index| {
                TimerCounter::new(chip.board.timers[index].bits, reg::TIMERS[index].flags)
            }),
            divisors: chip
                .board
                .timers
                .iter()
                .map(|timer| timer.divisors.clone())
                .collect(),
            temp: [0; 4],
            ports: Ports::new(),
            requests: Vec::new(),
            counts: [LineCount::default(); Line::COUNT],
            next_timer_event: None,
            touched: false,
            reti: false,
            fault: None,
            originals: vec![None; usize::from(DATA_SPACE_IO_END) + 1],
            simavr_vectors: SimavrVector::all(avr),
            simavr_requests: 0,
            simavr_touched: false,
            watched: None,
            watched_level: true,
            watched_moves: Vec::new(),
            events: trace.then(Vec::new),
        });
        let pointer = Box::into_raw(peripherals);
        bus::connect(core, pointer);
        pointer
    }

    // --- Functions for the run loop ------------------------------------------------------------

    /// Returns the enabled requests: one bit per vector number.
    pub fn requested(&mut self) -> u64 {
        let mut vectors = 0;
        if std::mem::take(&mut self.simavr_touched) {
            self.simavr_requests = self.find_simavr_requests();
            // The board does not use simavr's queue of pending interrupts. It must be empty, or
            // SLEEP does not work. SAFETY: the queue is part of the core, which lives as long as
            // its peripherals.
            unsafe {
                let queue = &mut (*self.avr).interrupts.pending;
                queue.read = queue.write;
            }
        }
        let enabled = self.byte(reg::EIMSK);
        if enabled != 0 {
            let mut requests = self.byte(reg::EIFR) & enabled;
            for line in Line::all().filter(|line| enabled & (1 << line.number()) != 0) {
                if self.ports.sense(line) == Sense::Low && !self.ports.level(line) {
                    requests |= 1 << line.number();
                }
            }
            vectors |= u64::from(requests) << 1;
        }
        let mut timers = self.flags() & self.timer_enables();
        while timers != 0 {
            let bit = timers.trailing_zeros();
            vectors |= 1 << reg::TIMER_VECTORS[bit as usize];
            timers &= timers - 1;
        }
        vectors | self.simavr_requests
    }

    /// Clears the flag of a vector, as the hardware does when the interrupt is taken.
    pub fn acknowledge(&mut self, vector: u8, cycle: u64) {
        self.record(cycle, EventKind::VectorEntered(vector));
        if (1..=8).contains(&vector) {
            self.set_byte(reg::EIFR, self.byte(reg::EIFR) & !(1 << (vector - 1)));
        } else if let Some(bit) = reg::TIMER_VECTORS.iter().position(|&timer| timer == vector) {
            self.advance_timers(cycle);
            self.set_flags(self.flags() & !(1 << bit));
            self.plan_timer_event();
        } else if let Some(other) = self
            .simavr_vectors
            .iter()
            .find(|other| other.number == vector)
        {
            // SAFETY: the vector is part of one of simavr's peripherals, which live as long as the
            // core.
            unsafe { simavr::avr_clear_interrupt(self.avr, other.vector) };
            self.simavr_touched = true;
        }
    }

    /// Sets the flags that the timers have raised by `cycle`.
    pub fn process_timers(&mut self, cycle: u64) {
        self.advance_timers(cycle);
        self.plan_timer_event();
    }

    /// Records an event of simavr's own peripherals.
    pub fn note_simavr_event(&mut self) {
        self.simavr_touched = true;
        self.touched = true;
    }

    pub fn next_timer_event(&self) -> Option<u64> {
        self.next_timer_event
    }

    /// Returns whether the run loop has to handle a change since the last call.
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// Returns whether a RETI was executed since the last call.
    pub fn take_reti(&mut self) -> bool {
        std::mem::take(&mut self.reti)
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Moves the pin of a line from outside, at `cycle`.
    pub fn drive(&mut self, line: Line, movement: Move, cycle: u64) {
        let mut requests = std::mem::take(&mut self.requests);
        self.ports.drive(line, movement, &mut requests);
        self.requests = requests;
        self.take_requests(cycle);
        self.touched = true;
    }

    /// Returns the number of edges since the last [`Self::clear_counts`].
    pub fn count(&self, line: Line) -> LineCount {
        self.counts[line.number()]
    }

    pub fn clear_counts(&mut self) {
        self.counts = [LineCount::default(); Line::COUNT];
    }

    /// Starts recording an output pin. A pull-up holds the pin high until the program drives it.
    pub fn watch(&mut self, pin: Pin) {
        self.watched = Some(pin);
    }

    /// Returns the watched pin's moves since the last call.
    pub fn take_watched_moves(&mut self) -> std::vec::Drain<'_, (u64, bool)> {
        self.watched_moves.drain(..)
    }

    /// Adds an event to the trace, if there is one.
    pub fn record(&mut self, cycle: u64, kind: EventKind) {
        if let Some(events) = &mut self.events {
            events.push(BoardEvent { cycle, kind });
        }
    }

    pub fn take_events(&mut self) -> Vec<BoardEvent> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    // --- Private functions ---------------------------------------------------------------------

    fn byte(&self, address: u16) -> u8 {
        // SAFETY: every address is a register's, and data space is larger than the registers.
        unsafe { *self.data.add(usize::from(address)) }
    }

    fn set_byte(&mut self, address: u16, value: u8) {
        // SAFETY: as in `byte`.
        unsafe { *self.data.add(usize::from(address)) = value }
    }

    /// Returns TIFR in the low byte and ETIFR in the high byte.
    fn flags(&self) -> u16 {
        u16::from_le_bytes([self.byte(reg::TIFR), self.byte(reg::ETIFR)])
    }

    fn set_flags(&mut self, flags: u16) {
        let [low, high] = flags.to_le_bytes();
        self.set_byte(reg::TIFR, low);
        self.set_byte(reg::ETIFR, high);
    }

    fn timer_enables(&self) -> u16 {
        u16::from_le_bytes([self.byte(reg::TIMSK), self.byte(reg::ETIMSK)])
    }

    fn advance_timers(&mut self, cycle: u64) {
        let raised = self
            .timers
            .iter_mut()
            .fold(0, |raised, timer| raised | timer.advance(cycle));
        if raised != 0 {
            self.set_flags(self.flags() | raised);
        }
    }

    /// Only clear flags that may interrupt are scheduled as events. All other flags are computed
    /// when they are read.
    fn plan_timer_event(&mut self) {
        let wanted = self.timer_enables() & !self.flags();
        self.next_timer_event = if wanted == 0 {
            None
        } else {
            self.timers
                .iter()
                .filter_map(|timer| timer.next_event(wanted))
                .min()
        };
    }

    fn take_requests(&mut self, cycle: u64) {
        let mut requests = std::mem::take(&mut self.requests);
        for (line, request) in requests.drain(..) {
            self.record(cycle, EventKind::PinEdge(line));
            let count = &mut self.counts[line.number()];
            count.offered += 1;
            if request == Request::Edge {
                let (flags, bit) = (self.byte(reg::EIFR), 1 << line.number());
                if flags & bit != 0 {
                    self.counts[line.number()].missed += 1;
                }
                self.set_byte(reg::EIFR, flags | bit);
            }
            if self.ports.sense(line) == Sense::Change
                && line.number() < 4
                && self.byte(reg::EIMSK) & (1 << line.number()) != 0
            {
                self.refuse(
                    format!(
                        "uses {line} with the reserved setting ISC{0}1:0 = 01",
                        line.number()
                    ),
                    "choose low level, falling or rising edge in EICRA",
                );
            }
        }
        self.requests = requests;
    }

    fn watch_pin(&mut self, cycle: u64) {
        let Some(pin) = self.watched else { return };
        let [_, ddr, port] = reg::PORTS[pin.port()];
        let bit = 1 << pin.bit();
        let level = self.byte(ddr) & bit == 0 || self.byte(port) & bit != 0;
        if level != self.watched_level {
            self.watched_level = level;
            self.watched_moves.push((cycle, level));
        }
    }

    fn refuse(&mut self, what: String, help: &str) {
        self.touched = true;
        if self.fault.is_none() {
            self.fault = Some(Fault {
                what,
                help: help.to_owned(),
            });
        }
    }

    fn find_simavr_requests(&self) -> u64 {
        self.simavr_vectors.iter().fold(0, |requests, vector| {
            let bit = |(address, mask): (u16, u8)| self.byte(address) & mask != 0;
            requests | u64::from(bit(vector.enable) && bit(vector.raised)) << vector.number
        })
    }

    fn configure_timer(&mut self, index: usize) {
        let registers = &reg::TIMERS[index];
        let control = self.byte(registers.control);
        let (mode, outputs) = match registers.control_a {
            None => {
                let mode = match (control & 0x40 != 0, control & 0x08 != 0) {
                    (false, false) => Some(CountMode::Normal),
                    (false, true) => Some(CountMode::ClearOnCompare),
                    (true, _) => None,
                };
                (mode, control & 0x30)
            }
            Some(address) => {
                let control_a = self.byte(address);
                let mode = match ((control & 0x18) >> 1) | (control_a & 3) {
                    0 => Some(CountMode::Normal),
                    4 => Some(CountMode::ClearOnCompare),
                    12 => Some(CountMode::ClearOnCapture),
                    _ => None,
                };
                (mode, control_a & 0xfc)
            }
        };
        let select = usize::from(control & 7);
        let divisor = select
            .checked_sub(1)
            .and_then(|select| self.divisors[index].get(select).copied());
        if select != 0 {
            let help = "this board models the timers' normal and CTC modes on the processor's clock, without outputs";
            if divisor.is_none() {
                self.refuse(format!("clocks TIMER{index} from its external pin"), help);
            } else if mode.is_none() {
                self.refuse(format!("runs TIMER{index} in a PWM mode"), help);
            } else if outputs != 0 {
                self.refuse(
                    format!("connects an output compare pin of TIMER{index}"),
                    help,
                );
            }
        }
        self.timers[index].set_divisor(divisor);
        self.timers[index].set_mode(mode.unwrap_or(CountMode::Normal));
    }

    fn raise_touched(&mut self) {
        self.touched = true;
        // SAFETY: the core lives as long as its peripherals. A state below 0 ends simavr's batch of
        // instructions.
        unsafe { (*self.avr).interrupt_state = -1 };
    }
}

/// simavr calls this function at each RETI.
unsafe extern "C" fn note_reti(_: *mut simavr::avr_irq_t, _: u32, peripherals: *mut c_void) {
    // SAFETY: the pointer is from `install`, and the run loop holds no reference to it while
    // instructions run.
    let peripherals = unsafe { &mut *peripherals.cast::<Peripherals>() };
    peripherals.reti = true;
    peripherals.raise_touched();
}
