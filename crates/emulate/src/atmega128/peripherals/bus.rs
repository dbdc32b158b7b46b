// SPDX-License-Identifier: GPL-3.0-or-later
//! The effects of register accesses, and the cycle in which they take place.
//!
//! IN and OUT access a register in their only cycle; LDS, STS and the indirect instructions do so
//! in their second cycle. SBI and CBI read in the first and write in the second. A write takes
//! effect at the end of its cycle.
use std::ffi::c_void;

use simavr_ffi as simavr;

use super::{DATA_SPACE_IO_END, Peripherals, note_reti};
use crate::atmega128::core::{Core, Original};
use crate::atmega128::ports::Sense;
use crate::atmega128::registers as reg;
use crate::line::Line;
use crate::result::EventKind;

/// The register at an address.
#[derive(Debug, Clone, Copy)]
enum Register {
    TimerControl(usize),
    /// The low byte of a 16-bit counter. Reading it copies the high byte to TEMP.
    CounterLow(usize),
    CounterHigh(usize),
    Counter8(usize),
    CompareLow(usize, usize),
    /// A high byte that is written through TEMP but read directly.
    CompareHigh(usize),
    Compare8(usize),
    CaptureLow(usize),
    CaptureHigh(usize),
    TimerFlags,
    TimerMask,
    ExternalFlags,
    ExternalMask,
    ExternalControl,
    Prescaler,
    Pins(usize),
    Direction(usize),
    Port(usize),
    /// A register with some bits whose use is an error.
    Watched,
}

fn register_at(address: u16) -> Option<Register> {
    for (index, timer) in reg::TIMERS.iter().enumerate() {
        let wide = timer.control_a.is_some();
        if address == timer.control || Some(address) == timer.control_a {
            return Some(Register::TimerControl(index));
        }
        if address == timer.counter {
            return Some(if wide {
                Register::CounterLow(index)
            } else {
                Register::Counter8(index)
            });
        }
        if let Some(channel) = timer.compare.iter().position(|&low| low == address) {
            return Some(if wide {
                Register::CompareLow(index, channel)
            } else {
                Register::Compare8(index)
            });
        }
        if !wide {
            continue;
        }
        if address == timer.counter + 1 {
            return Some(Register::CounterHigh(index));
        }
        if timer.compare.iter().any(|&low| low + 1 == address) {
            return Some(Register::CompareHigh(index));
        }
        if timer.capture == Some(address) {
            return Some(Register::CaptureLow(index));
        }
        if timer.capture.map(|low| low + 1) == Some(address) {
            return Some(Register::CaptureHigh(index));
        }
    }
    for (port, &[pins, direction, output]) in reg::PORTS.iter().enumerate() {
        match address {
            _ if address == pins => return Some(Register::Pins(port)),
            _ if address == direction => return Some(Register::Direction(port)),
            _ if address == output => return Some(Register::Port(port)),
            _ => {}
        }
    }
    match address {
        reg::TIFR | reg::ETIFR => Some(Register::TimerFlags),
        reg::TIMSK | reg::ETIMSK => Some(Register::TimerMask),
        reg::EIFR => Some(Register::ExternalFlags),
        reg::EIMSK => Some(Register::ExternalMask),
        reg::EICRA | reg::EICRB => Some(Register::ExternalControl),
        reg::SFIOR => Some(Register::Prescaler),
        reg::MCUCR | reg::ASSR | reg::XDIV => Some(Register::Watched),
        _ => None,
    }
}

impl Register {
    /// Returns whether reading has effects beyond fetching the byte in data space.
    fn has_read_hook(self) -> bool {
        matches!(
            self,
            Self::CounterLow(_)
                | Self::CounterHigh(_)
                | Self::Counter8(_)
                | Self::CaptureLow(_)
                | Self::CaptureHigh(_)
                | Self::TimerFlags
                | Self::Pins(_)
        )
    }

    fn is_read_traced(self) -> bool {
        matches!(
            self,
            Self::CounterLow(_) | Self::CounterHigh(_) | Self::Counter8(_) | Self::TimerFlags
        )
    }

    fn is_write_traced(self) -> bool {
        matches!(
            self,
            Self::CounterLow(_)
                | Self::CounterHigh(_)
                | Self::Counter8(_)
                | Self::CompareLow(..)
                | Self::CompareHigh(_)
                | Self::Compare8(_)
                | Self::TimerFlags
                | Self::TimerMask
                | Self::ExternalFlags
                | Self::ExternalMask
        )
    }
}

/// Puts the peripherals on the core's bus.
pub(super) fn connect(core: &mut Core, peripherals: *mut Peripherals) {
    let param = peripherals.cast::<c_void>();
    for address in 0x20..=DATA_SPACE_IO_END {
        let register = register_at(address);
        let original = core.original(address);
        // SAFETY: the caller keeps the peripherals alive as long as the core runs.
        unsafe {
            if let Some(register) = register {
                core.hook(
                    address,
                    register.has_read_hook().then_some(read as _),
                    Some(write),
                    param,
                );
            } else if let Some(original) = original {
                (*peripherals).keep_original(address, original);
                core.hook(
                    address,
                    original.read.map(|_| read_original as _),
                    original.write.map(|_| write_original as _),
                    param,
                );
            }
        }
    }
    // SAFETY: as above.
    unsafe { core.on_reti(note_reti, param) };
}

unsafe extern "C" fn read(_: *mut simavr::avr_t, address: u16, param: *mut c_void) -> u8 {
    // SAFETY: `connect` gave the peripherals; the run loop holds no reference to them while
    // instructions run.
    unsafe { &mut *param.cast::<Peripherals>() }.read(address)
}

unsafe extern "C" fn write(_: *mut simavr::avr_t, address: u16, value: u8, param: *mut c_void) {
    // SAFETY: as in `read`.
    unsafe { &mut *param.cast::<Peripherals>() }.write(address, value);
}

unsafe extern "C" fn read_original(
    avr: *mut simavr::avr_t,
    address: u16,
    param: *mut c_void,
) -> u8 {
    // SAFETY: as in `read`; simavr's own callback gets simavr's own parameter, and no reference is
    // alive meanwhile.
    unsafe {
        let peripherals = param.cast::<Peripherals>();
        (*peripherals).note_access();
        let original = (*peripherals).original(address);
        match original.and_then(|original| Some((original.read?, original.read_param))) {
            Some((callback, its_param)) => callback(avr, address, its_param),
            None => (*peripherals).byte(address),
        }
    }
}

unsafe extern "C" fn write_original(
    avr: *mut simavr::avr_t,
    address: u16,
    value: u8,
    param: *mut c_void,
) {
    // SAFETY: as in `read_original`.
    unsafe {
        let peripherals = param.cast::<Peripherals>();
        let original = (*peripherals).original(address);
        if let Some((callback, its_param)) =
            original.and_then(|original| Some((original.write?, original.write_param)))
        {
            callback(avr, address, value, its_param);
        }
        (*peripherals).note_access();
    }
}

impl Peripherals {
    fn original(&self, address: u16) -> Option<Original> {
        self.originals[usize::from(address)]
    }

    fn keep_original(&mut self, address: u16, original: Original) {
        self.originals[usize::from(address)] = Some(original);
    }

    /// Records that the program has accessed one of simavr's own peripherals.
    fn note_access(&mut self) {
        self.simavr_touched = true;
        self.raise_touched();
    }

    fn opcode(&self) -> u16 {
        // SAFETY: the core executes an instruction at `pc`, which it has checked to be inside the
        // flash.
        unsafe {
            let at = (*self.avr).flash.add((*self.avr).pc as usize);
            u16::from_le_bytes([*at, *at.add(1)])
        }
    }

    fn read_cycle(&self) -> u64 {
        // SAFETY: the core lives as long as its peripherals.
        let cycle = unsafe { (*self.avr).cycle };
        match self.opcode() & 0xf800 {
            0xb000 | 0x9800 => cycle,
            _ => cycle + 1,
        }
    }

    fn write_cycle(&self) -> u64 {
        // SAFETY: the core lives as long as its peripherals.
        let cycle = unsafe { (*self.avr).cycle };
        if self.opcode() & 0xf800 == 0xb800 {
            cycle
        } else {
            cycle + 1
        }
    }

    fn read(&mut self, address: u16) -> u8 {
        let cycle = self.read_cycle();
        let Some(register) = register_at_cached(address) else {
            return self.byte(address);
        };
        let value = match register {
            Register::Pins(port) => self.ports.pins(port),
            Register::TimerFlags => {
                self.advance_timers(cycle);
                self.byte(address)
            }
            Register::Counter8(index) => {
                self.advance_timers(cycle);
                low(self.timers[index].value())
            }
            Register::CounterLow(index) => {
                self.advance_timers(cycle);
                let value = self.timers[index].value();
                self.temp[index] = high(value);
                low(value)
            }
            Register::CaptureLow(index) => {
                let value = self.timers[index].capture();
                self.temp[index] = high(value);
                low(value)
            }
            Register::CounterHigh(index) | Register::CaptureHigh(index) => self.temp[index],
            _ => self.byte(address),
        };
        if register.is_read_traced() {
            self.record(cycle, EventKind::IoRead { address, value });
        }
        value
    }

    fn write(&mut self, address: u16, value: u8) {
        let cycle = self.write_cycle();
        let effective = cycle + 1;
        let Some(register) = register_at_cached(address) else {
            return;
        };
        if register.is_write_traced() {
            self.record(cycle, EventKind::IoWritten { address, value });
        }
        match register {
            Register::TimerFlags => {
                // Writing a one clears a flag. A flag that is set in the same cycle stays set.
                self.advance_timers(cycle);
                self.set_byte(address, self.byte(address) & !value);
                self.plan_timer_event();
            }
            Register::TimerMask => {
                self.advance_timers(cycle);
                self.set_byte(address, value);
                self.plan_timer_event();
            }
            Register::ExternalFlags => self.set_byte(address, self.byte(address) & !value),
            Register::ExternalMask => self.set_byte(address, value),
            Register::ExternalControl => {
                self.set_byte(address, value);
                self.configure_lines(address, value);
            }
            Register::Pins(_) => return,
            Register::Direction(port) => {
                self.set_byte(address, value);
                let mut requests = std::mem::take(&mut self.requests);
                self.ports.set_direction(port, value, &mut requests);
                self.requests = requests;
                self.after_port_write(effective);
                return;
            }
            Register::Port(port) => {
                self.set_byte(address, value);
                let mut requests = std::mem::take(&mut self.requests);
                self.ports.set_port(port, value, &mut requests);
                self.requests = requests;
                self.after_port_write(effective);
                return;
            }
            Register::Watched => {
                self.set_byte(address, value);
                self.check_watched(address, value);
            }
            Register::CounterHigh(index) | Register::CaptureHigh(index) => {
                self.temp[index] = value;
                return;
            }
            Register::CompareHigh(index) => {
                self.temp[index] = value;
                return;
            }
            _ => {
                self.advance_timers(effective);
                self.write_timer(register, address, value, effective);
                self.plan_timer_event();
            }
        }
        self.raise_touched();
    }

    fn write_timer(&mut self, register: Register, address: u16, value: u8, effective: u64) {
        match register {
            Register::TimerControl(index) => {
                self.set_byte(address, value);
                self.configure_timer(index);
            }
            Register::Counter8(index) => self.timers[index].set_value(u16::from(value)),
            Register::CounterLow(index) => {
                let value = u16::from_le_bytes([value, self.temp[index]]);
                self.timers[index].set_value(value);
            }
            Register::Compare8(index) => {
                self.set_byte(address, value);
                self.timers[index].set_compare(0, u16::from(value));
            }
            Register::CompareLow(index, channel) => {
                self.set_byte(address, value);
                self.set_byte(address + 1, self.temp[index]);
                self.timers[index]
                    .set_compare(channel, u16::from_le_bytes([value, self.temp[index]]));
            }
            Register::CaptureLow(index) => {
                self.timers[index].set_capture(u16::from_le_bytes([value, self.temp[index]]));
            }
            Register::Prescaler => self.write_sfior(value, effective),
            _ => {}
        }
    }

    /// PSR0 and PSR321 reset their prescalers. Hardware clears these bits, unless TSM keeps them
    /// set.
    fn write_sfior(&mut self, value: u8, effective: u64) {
        let synchronising = value & reg::TSM != 0;
        for (timer, registers) in self.timers.iter_mut().zip(&reg::TIMERS) {
            if value & registers.prescaler_reset != 0 {
                timer.reset_prescaler(effective, synchronising);
            } else {
                timer.release_prescaler(effective);
            }
        }
        let kept = if synchronising {
            value
        } else {
            value & !(reg::PSR0 | reg::PSR321)
        };
        self.set_byte(reg::SFIOR, kept);
    }

    fn configure_lines(&mut self, address: u16, value: u8) {
        let first = if address == reg::EICRA { 0 } else { 4 };
        for line in Line::all().skip(first).take(4) {
            let sense = match value >> (2 * (line.number() - first)) & 3 {
                0 => Sense::Low,
                1 => Sense::Change,
                2 => Sense::Falling,
                _ => Sense::Rising,
            };
            self.ports.set_sense(line, sense);
            if sense == Sense::Low {
                // Data sheet: "The flags are always cleared when configured as a level interrupt."
                self.set_byte(reg::EIFR, self.byte(reg::EIFR) & !(1 << line.number()));
            }
        }
    }

    fn after_port_write(&mut self, cycle: u64) {
        self.watch_pin(cycle);
        if !self.requests.is_empty() {
            self.take_requests(cycle);
            self.raise_touched();
        }
    }

    fn check_watched(&mut self, address: u16, value: u8) {
        match address {
            reg::MCUCR if value & reg::SRE != 0 => {
                self.refuse(
                    "enables the external memory interface".to_owned(),
                    "this board has no external memory",
                );
            }
            reg::MCUCR if value & reg::IVSEL != 0 => self.refuse(
                "moves the interrupt vectors to the boot section".to_owned(),
                "this board models vectors at address 0 only: leave IVSEL clear",
            ),
            reg::ASSR if value & reg::AS0 != 0 => self.refuse(
                "clocks TIMER0 from the TOSC pins".to_owned(),
                "this board has no watch crystal: leave AS0 clear",
            ),
            reg::XDIV if value & reg::XDIVEN != 0 => self.refuse(
                "divides the processor's clock by XDIV".to_owned(),
                "this board models one fixed clock: leave XDIVEN clear",
            ),
            _ => {}
        }
    }
}

fn low(value: u16) -> u8 {
    value.to_le_bytes()[0]
}

fn high(value: u16) -> u8 {
    value.to_le_bytes()[1]
}

/// Looks up [`register_at`] in a table, because every access calls this function.
fn register_at_cached(address: u16) -> Option<Register> {
    static TABLE: std::sync::LazyLock<Vec<Option<Register>>> =
        std::sync::LazyLock::new(|| (0..=DATA_SPACE_IO_END).map(register_at).collect());
    TABLE.get(usize::from(address)).copied().flatten()
}
