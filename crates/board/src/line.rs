// SPDX-License-Identifier: GPL-3.0-or-later
//! The names of a board's interrupt lines, and of the ATmega128's pins.
use std::fmt;
use std::str::FromStr;

/// An external interrupt line, from `INT0` on. The board determines their number:
/// [`EmulatedBoard::lines`](crate::board::EmulatedBoard::lines). Parsing a text gives a line of the
/// ATmega128, which has eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(u8);

impl Line {
    /// The number of lines of the ATmega128.
    pub const COUNT: usize = 8;
    /// The largest number of lines of any board.
    pub const MOST: usize = 32;
    /// The line on pin PD0.
    pub const INT0: Self = Self(0);
    /// The line on pin PD1.
    pub const INT1: Self = Self(1);
    /// The line on pin PD2.
    pub const INT2: Self = Self(2);
    /// The line on pin PD3.
    pub const INT3: Self = Self(3);
    /// The line on pin PE4.
    pub const INT4: Self = Self(4);
    /// The line on pin PE5.
    pub const INT5: Self = Self(5);
    /// The line on pin PE6.
    pub const INT6: Self = Self(6);
    /// The line on pin PE7.
    pub const INT7: Self = Self(7);

    /// The line of this number; `None` from [`Self::MOST`] on.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|&n| usize::from(n) < Self::MOST)
            .map(Self)
    }

    /// The line's number: 0 for INT0.
    #[must_use]
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// Every line of the ATmega128, INT0 first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::first(Self::COUNT)
    }

    /// The first `count` lines, from INT0 on; never more than [`Self::MOST`].
    pub fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map_while(Self::from_number)
    }

    /// The line of this name on a board with `count` lines.
    pub(crate) fn among(count: usize, name: &str) -> Result<Self, NameError> {
        let upper = name.trim().to_ascii_uppercase();
        Self::first(count)
            .find(|line| line.to_string() == upper)
            .ok_or_else(|| NameError::Line {
                name: name.to_owned(),
                known: listed(count),
            })
    }
}

/// A list of the lines: `INT0, INT1 and INT2`; for many lines only the first and the last.
pub(crate) fn listed(count: usize) -> String {
    let names: Vec<String> = Line::first(count).map(|line| line.to_string()).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first, .., last] if names.len() > Line::COUNT => format!("{first} to {last}"),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INT{}", self.0)
    }
}

/// A name that is no line or pin of the board; the message lists the right ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No line has this name.
    #[error("there is no interrupt line `{name}`: the lines are {known}")]
    Line {
        /// The name that was asked for.
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
        Self::among(Self::COUNT, text)
    }
}

/// A pin of a port: `PB0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin {
    port: u8,
    bit: u8,
}

impl Pin {
    /// The port's number: 0 for port A, 6 for port G.
    #[must_use]
    pub fn port(self) -> usize {
        usize::from(self.port)
    }

    /// The pin's bit in the port, 0 to 7.
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
        let message = Line::among(32, "INTO").unwrap_err().to_string();
        assert!(
            message.contains("`INTO`: the lines are INT0 to INT31"),
            "{message}"
        );
        for pin in ["PH0", "PG5", "PB8", "B0", "", "PB00", "é0"] {
            assert!(pin.parse::<Pin>().is_err(), "{pin}");
        }
    }
}
