// SPDX-License-Identifier: GPL-3.0-or-later
//! The names of a board's interrupt lines, and of the ATmega128's pins.
use std::fmt;
use std::str::FromStr;

/// A line that requests interrupts. The lines of a board are in
/// [`EmulatedBoard::lines`](crate::board::EmulatedBoard::lines). Parsing a text gives a line of the
/// ATmega128.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    kind: LineKind,
    number: u8,
}

/// The kinds of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum LineKind {
    /// An external interrupt, numbered from INT0.
    External,
    /// An input of a Cortex-M's interrupt controller, numbered from IRQ0.
    Controller,
    /// The frames that reach an Ethernet controller.
    Ethernet,
}

impl Line {
    /// The number of lines of the ATmega128.
    pub const COUNT: usize = 8;
    /// The largest number of external interrupts of any board.
    pub const MOST: usize = 32;
    /// The line on pin PD0.
    pub const INT0: Self = Self::external(0);
    /// The line on pin PD1.
    pub const INT1: Self = Self::external(1);
    /// The line on pin PD2.
    pub const INT2: Self = Self::external(2);
    /// The line on pin PD3.
    pub const INT3: Self = Self::external(3);
    /// The line on pin PE4.
    pub const INT4: Self = Self::external(4);
    /// The line on pin PE5.
    pub const INT5: Self = Self::external(5);
    /// The line on pin PE6.
    pub const INT6: Self = Self::external(6);
    /// The line on pin PE7.
    pub const INT7: Self = Self::external(7);
    /// The frames that reach the Ethernet controller.
    pub const ETH: Self = Self {
        kind: LineKind::Ethernet,
        number: 0,
    };

    const fn external(number: u8) -> Self {
        Self {
            kind: LineKind::External,
            number,
        }
    }

    /// Returns the external interrupt of this number. `None` if the number is at least
    /// [`Self::MOST`].
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|&n| usize::from(n) < Self::MOST)
            .map(Self::external)
    }

    /// Returns the interrupt controller's input of this number on a Cortex-M.
    #[must_use]
    pub fn irq(number: u8) -> Self {
        Self {
            kind: LineKind::Controller,
            number,
        }
    }

    /// Returns the line's number among the lines of its kind: 0 for INT0.
    #[must_use]
    pub fn number(self) -> usize {
        usize::from(self.number)
    }

    /// Iterates over the lines of the ATmega128, INT0 first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::first(Self::COUNT)
    }

    /// Iterates over the first `count` external interrupts, from INT0 on, but at most
    /// [`Self::MOST`].
    pub fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map_while(Self::from_number)
    }

    /// Finds the line of this name among the lines of a board.
    pub(crate) fn among(lines: &[Self], name: &str) -> Result<Self, NameError> {
        let upper = name.trim().to_ascii_uppercase();
        lines
            .iter()
            .copied()
            .find(|line| line.to_string() == upper)
            .ok_or_else(|| NameError::Line {
                name: name.to_owned(),
                known: listed(lines),
            })
    }
}

/// Lists the lines in words: `INT0, INT1 and INT2`. If there are many lines of a kind, only the
/// first and the last are named.
pub(crate) fn listed(lines: &[Line]) -> String {
    let kinds = lines.chunk_by(|one, next| one.kind == next.kind);
    let names = kinds.flat_map(|kind| match kind {
        [first, .., last] if kind.len() > Line::COUNT => vec![format!("{first} to {last}")],
        few => few.iter().map(Line::to_string).collect(),
    });
    match names.collect::<Vec<_>>().as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LineKind::External => write!(f, "INT{}", self.number),
            LineKind::Controller => write!(f, "IRQ{}", self.number),
            LineKind::Ethernet => f.write_str("ETH"),
        }
    }
}

/// No line or pin of the board has this name. The message lists the valid names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No line has this name.
    #[error("there is no interrupt line `{name}`: the lines are {known}")]
    Line {
        /// The name that was searched for.
        name: String,
        /// The existing lines.
        known: String,
    },
    /// No pin has this name.
    #[error(
        "there is no pin `{0}`: the pins are PA0 to PA7, the same for PB, PC, PD, PE and PF, and PG0 to PG4"
    )]
    Pin(String),
}

impl FromStr for Line {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::among(&Self::all().collect::<Vec<_>>(), text)
    }
}

/// A pin of a port: `PB0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin {
    port: u8,
    bit: u8,
}

impl Pin {
    /// Returns the port's number: 0 for port A, 6 for port G.
    #[must_use]
    pub fn port(self) -> usize {
        usize::from(self.port)
    }

    /// Returns the pin's bit in the port, 0 to 7.
    #[must_use]
    pub fn bit(self) -> u8 {
        self.bit
    }
}

impl FromStr for Pin {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let upper = text.trim().to_ascii_uppercase();
        let &[b'P', port @ b'A'..=b'G', bit @ b'0'..=b'7'] = upper.as_bytes() else {
            return Err(NameError::Pin(text.to_owned()));
        };
        if port == b'G' && bit > b'4' {
            return Err(NameError::Pin(text.to_owned()));
        }
        Ok(Self {
            port: port - b'A',
            bit: bit - b'0',
        })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}{}", char::from(b'A' + self.port), self.bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for line in Line::all() {
            assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
        }
        assert_eq!("pb0".parse::<Pin>().unwrap().to_string(), "PB0");
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        assert!(
            "INT8"
                .parse::<Line>()
                .unwrap_err()
                .to_string()
                .contains("INT6 and INT7")
        );
        let mut lines: Vec<Line> = (0..32).map(Line::irq).collect();
        lines.push(Line::ETH);
        assert_eq!(Line::among(&lines, "irq31"), Ok(Line::irq(31)));
        assert_eq!(Line::among(&lines, "eth"), Ok(Line::ETH));
        let message = Line::among(&lines, "INT0").unwrap_err().to_string();
        assert!(
            message.contains("`INT0`: the lines are IRQ0 to IRQ31 and ETH"),
            "{message}"
        );
        for pin in ["PH0", "PG5", "PB8", "B0", "", "PB00", "é0"] {
            assert!(pin.parse::<Pin>().is_err(), "{pin}");
        }
    }
}
