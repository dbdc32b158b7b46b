// SPDX-License-Identifier: GPL-3.0-or-later
//! The ATmega128, as `boards/atmega128/board.toml` describes it.
use std::sync::LazyLock;

use serde::Deserialize;

/// A board with its chip.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// The board's name.
    pub name: String,
    /// The chip's name, as avr-gcc's `-mmcu` takes it.
    pub chip: String,
    /// avr-gcc's family of instruction sets.
    pub elf_arch: u32,
    /// The usual clock in Hz.
    pub clock_hz: u64,
    /// The flash in bytes.
    pub flash_bytes: u32,
    /// The first address of the internal RAM in data space.
    pub ram_start: u16,
    /// The last one.
    pub ram_end: u16,
    /// The names of the vectors from number 1 on.
    pub vectors: Vec<String>,
    /// What taking an interrupt costs.
    pub interrupt: InterruptCost,
    /// The timers.
    #[serde(rename = "timer")]
    pub timers: Vec<TimerFacts>,
    /// The external interrupts.
    #[serde(rename = "line")]
    pub lines: Vec<LineFacts>,
}

/// What taking an interrupt costs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptCost {
    /// From the end of the interrupted instruction to the first one in the vector.
    pub response_cycles: u64,
    /// More when the processor slept.
    pub wakeup_cycles: u64,
    /// The longest instruction: an interrupt waits for its end.
    pub longest_instruction_cycles: u64,
    /// Between two vectors, in bytes.
    pub vector_bytes: u32,
}

/// A timer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerFacts {
    /// Its name, as its vectors' names begin.
    pub name: String,
    /// 8 or 16.
    pub bits: u32,
    /// The bit of SFIOR that resets its prescaler; timers with the same one share it.
    pub prescaler: String,
    /// By the clock select bits, from 1 on.
    pub divisors: Vec<u64>,
}

/// An external interrupt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineFacts {
    /// `INT0`.
    pub name: String,
    /// `PD0`.
    pub pin: String,
    /// Whether its edges are sampled by the clock: such lines know the mode "any change".
    pub sampled: bool,
}

impl Chip {
    /// The data sheet's name of a vector.
    #[must_use]
    pub fn vector_name(&self, number: u8) -> &str {
        let index = usize::from(number).checked_sub(1);
        index
            .and_then(|index| self.vectors.get(index))
            .map_or("RESET", String::as_str)
    }
}

/// The ATmega128.
pub static ATMEGA128: LazyLock<Chip> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../boards/atmega128/board.toml")).unwrap_or_else(|error| {
        panic!("boards/atmega128/board.toml, which is part of this program: {error}")
    })
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, Pin};

    #[test]
    fn the_boards_file_names_every_line_and_pin_as_the_code_does() {
        for line in Line::all() {
            let facts = &ATMEGA128.lines[line.number()];
            assert_eq!(facts.name, line.to_string());
            assert_eq!(
                usize::from(facts.pin.parse::<Pin>().unwrap().bit()),
                line.number()
            );
        }
        assert_eq!(ATMEGA128.vectors.len(), 34);
        assert_eq!(ATMEGA128.vector_name(34), "SPM_READY");
    }
}
