// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chips for which code can be generated, as `boards/*/board.toml` describes them.
use std::sync::LazyLock;

use serde::Deserialize;

/// What the generator has to know of a chip. Other programs read other parts of the same file.
#[derive(Debug, Clone, Deserialize)]
pub struct Chip {
    /// Its name, as `--chip` and avr-gcc's `-mmcu` take it.
    #[serde(rename = "chip")]
    pub name: String,
    /// The board whose costs were measured on it.
    #[serde(rename = "name")]
    pub board: String,
    /// The names of its vectors, in the order of their priority.
    pub vectors: Vec<String>,
    #[serde(rename = "timer")]
    timers: Vec<Timer>,
    #[serde(rename = "line")]
    lines: Vec<Line>,
}

/// A timer of the chip.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Timer {
    /// `TIMER1`.
    pub name: String,
    /// 8 or 16.
    pub bits: u32,
    /// Its prescalers.
    pub divisors: Vec<u64>,
}

#[derive(Debug, Clone, Deserialize)]
struct Line {
    name: String,
}

/// A compare channel, found by its name in ports/avr: `TIMER1A` is `TIMER1`'s, `TIMER0` has but one.
#[derive(Debug, Clone)]
pub(crate) struct Channel<'a> {
    /// The timer it belongs to.
    pub timer: &'a Timer,
    /// `TIMER1_COMPA`.
    pub vector: &'a str,
    /// `A`; empty where the timer has but one.
    pub letter: &'a str,
}

impl Chip {
    /// True iff the chip has an interrupt of this name.
    #[must_use]
    pub fn has_vector(&self, name: &str) -> bool {
        self.vectors.iter().any(|vector| vector == name)
    }

    /// True iff this is an external line, which the port can mask by itself.
    #[must_use]
    pub fn is_line(&self, name: &str) -> bool {
        self.lines.iter().any(|line| line.name == name)
    }

    /// The names of the external lines.
    pub(crate) fn line_names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.name.as_str())
    }

    pub(crate) fn channel(&self, name: &str) -> Option<Channel<'_>> {
        self.channels().find(|channel| channel.name() == name)
    }

    /// Every compare channel, in the order of the vectors.
    pub(crate) fn channels(&self) -> impl Iterator<Item = Channel<'_>> {
        self.vectors.iter().filter_map(|vector| {
            let (timer, compare) = vector.split_once('_')?;
            let letter = compare.strip_prefix("COMP")?;
            let timer = self.timers.iter().find(|known| known.name == timer)?;
            Some(Channel {
                timer,
                vector,
                letter,
            })
        })
    }
}

impl Channel<'_> {
    /// As ports/avr calls it.
    pub fn name(&self) -> String {
        format!("{}{}", self.timer.name, self.letter)
    }
}

static ATMEGA128: LazyLock<Chip> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../boards/atmega128/board.toml")).unwrap_or_else(|error| {
        panic!("boards/atmega128/board.toml, which is part of this program: {error}")
    })
});

/// The names that [`chip`] knows.
pub const CHIPS: &[&str] = &["atmega128"];

/// A chip for which there is no port.
#[derive(Debug, Clone, thiserror::Error, miette::Diagnostic)]
#[error("there is no port for the chip `{name}`")]
#[diagnostic(help("the chips are: {}", CHIPS.join(", ")))]
pub struct UnknownChip {
    /// What was asked for.
    pub name: String,
}

/// The chip of this name.
///
/// # Errors
/// A chip that Weir has no port for; the message lists those there are.
pub fn chip(name: &str) -> Result<&'static Chip, UnknownChip> {
    if name == ATMEGA128.name {
        return Ok(&ATMEGA128);
    }
    Err(UnknownChip {
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_of_the_list_is_there_and_no_other() {
        for name in CHIPS {
            assert_eq!(chip(name).unwrap().name, *name);
        }
        let refused = chip("atmega8").unwrap_err();
        assert!(refused.to_string().contains("atmega8"), "{refused}");
    }

    #[test]
    fn channels_are_found_by_the_ports_names() {
        let chip = chip("atmega128").unwrap();
        let names: Vec<String> = chip.channels().map(|channel| channel.name()).collect();
        assert_eq!(
            names,
            [
                "TIMER2", "TIMER1A", "TIMER1B", "TIMER0", "TIMER1C", "TIMER3A", "TIMER3B",
                "TIMER3C"
            ]
        );
        let channel = chip.channel("TIMER3B").unwrap();
        assert_eq!((channel.vector, channel.timer.bits), ("TIMER3_COMPB", 16));
        assert!(chip.channel("TIMER1").is_none());
        assert!(chip.channel("TIMER1_COMPA").is_none());
    }
}
