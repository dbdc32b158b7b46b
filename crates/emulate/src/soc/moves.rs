// SPDX-License-Identifier: GPL-3.0-or-later
//! Writes the moves of the wires in the simulator's format: one number contains the cycle and the
//! level of a move.
use std::io::{self, Write};

use crate::atmega128::{Driver, Move};

/// Writes the moves before cycle `end`, and returns their number. A request becomes a rising edge,
/// because the event devices expect one.
pub fn write(driver: &mut Driver, end: u64, file: &mut impl Write) -> io::Result<u64> {
    let mut count = 0;
    while let Some(cycle) = driver.next_move().filter(|cycle| *cycle < end) {
        let Some(moved) = driver.take() else {
            break;
        };
        let level = match moved {
            Move::Request => true,
            Move::Rest => false,
            Move::Level(level) => level,
        };
        file.write_all(&(cycle << 1 | u64::from(level)).to_le_bytes())?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::EmulatedBoard;

    fn moves(text: &str, limit: Option<u64>, end: u64) -> Vec<(u64, u64)> {
        let flood = EmulatedBoard::SOC.stimulus(text, 4_000_000).unwrap();
        let mut driver = Driver::new(&flood.stimulus, 4_000_000, limit).unwrap();
        let mut bytes = Vec::new();
        let count = write(&mut driver, end, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, 8 * count);
        bytes
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .map(|word| (word >> 1, word & 1))
            .collect()
    }

    #[test]
    fn a_request_is_a_pulse_and_nothing_moves_from_the_end_on() {
        assert_eq!(
            moves("INT5=40kHz", None, 108),
            [(0, 1), (8, 0), (100, 1)],
            "the pulse at 100 ends at 108"
        );
        assert_eq!(
            moves("INT0=level:low=10cycles:high=20cycles", None, 40),
            [(0, 0), (10, 1), (30, 0)]
        );
    }

    #[test]
    fn an_ideal_limiter_stands_in_front() {
        assert_eq!(
            moves("INT0=pairs:1000cycles:gap=6cycles", Some(50), 100),
            [(0, 1), (8, 0), (50, 1), (58, 0)]
        );
    }
}
