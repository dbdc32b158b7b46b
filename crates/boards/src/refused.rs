// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a board's file states everything that code for the board needs. No fact of a board
//! is ever assumed: code for a timer that does not exist would compile, but it would limit nothing.
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::{Board, Port, TimerFacts, avr, cortex_m};

/// The reason why a board's file cannot be used, with the line and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardError {
    /// The file: `board.toml` or `costs.toml`.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl BoardError {
    fn new(
        file: &'static str,
        text: &str,
        at: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> Self {
        let before = text.get(..at.map_or(0, |at| at.start)).unwrap_or_default();
        Self {
            file,
            line: before.matches('\n').count() + 1,
            message: message.into(),
        }
    }

    /// The error for a text that does not have the form of its file.
    pub(crate) fn of_form(file: &'static str, text: &str, error: &toml::de::Error) -> Self {
        Self::new(file, text, error.span(), error.message())
    }
}

impl fmt::Display for BoardError {
    /// Prints the error after its place, as in `board.toml:58: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for BoardError {}

/// The places of the facts that can be wrong.
#[derive(Deserialize)]
struct Places {
    chip: Option<Spanned<IgnoredAny>>,
    port: Spanned<IgnoredAny>,
    vectors: Spanned<IgnoredAny>,
    priorities: Option<Spanned<IgnoredAny>>,
    #[serde(default, rename = "timer")]
    timers: Vec<Spanned<TimerPlaces>>,
    #[serde(default, rename = "line")]
    lines: Vec<Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
struct TimerPlaces {
    name: Spanned<IgnoredAny>,
    driver: Option<Spanned<IgnoredAny>>,
    registers: Option<Spanned<IgnoredAny>>,
}

/// Checks that the board's port has code for what the file states. `text` is that of board.toml.
pub(crate) fn check(board: &Board, text: &str) -> Result<(), BoardError> {
    let places: Places =
        toml::from_str(text).map_err(|error| BoardError::of_form("board.toml", text, &error))?;
    let checker = Checker {
        board,
        text,
        places,
    };
    checker.names()?;
    checker.no_name_twice()?;
    match board.port {
        Port::Avr => checker.avr(),
        Port::CortexM => checker.cortex_m(),
        Port::Riscv => checker.riscv(),
    }
}

struct Checker<'a> {
    board: &'a Board,
    text: &'a str,
    places: Places,
}

impl Checker<'_> {
    fn refuse(&self, at: Range<usize>, message: impl Into<String>) -> Result<(), BoardError> {
        Err(BoardError::new("board.toml", self.text, Some(at), message))
    }

    /// The timers, each with its place.
    fn timers(&self) -> impl Iterator<Item = (&TimerFacts, &Spanned<TimerPlaces>)> {
        self.board.timers.iter().zip(&self.places.timers)
    }

    /// Checks the names of vectors and timers, because they become names in C. Checks that lines
    /// and timers have vectors.
    fn names(&self) -> Result<(), BoardError> {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name
                    .chars()
                    .all(|of| of.is_ascii_alphanumeric() || of == '_')
        };
        if let Some(bad) = self.board.vectors.iter().find(|name| !is_name(name)) {
            let message =
                format!("the vector `{bad}` becomes a name in C: write letters, digits and `_`");
            return self.refuse(self.places.vectors.span(), message);
        }
        for (timer, at) in self.timers() {
            let at = at.get_ref();
            if !is_name(&timer.name) {
                let message = format!(
                    "the timer `{}` becomes a name in C: write letters, digits and `_`",
                    timer.name
                );
                return self.refuse(at.name.span(), message);
            }
            if let Some(missing) = timer
                .vector
                .as_ref()
                .filter(|of| self.board.vector(of).is_none())
            {
                let message = format!(
                    "the timer `{}` interrupts by `{missing}`, which is none of the `vectors`: add it there",
                    timer.name
                );
                return self.refuse(at.name.span(), message);
            }
        }
        for (line, at) in self.board.lines.iter().zip(&self.places.lines) {
            if self.board.vector(&line.name).is_none() {
                let message = format!(
                    "the line `{}` is none of the `vectors`: add it there",
                    line.name
                );
                return self.refuse(at.span(), message);
            }
        }
        Ok(())
    }

    /// Two timers, or two lines, of one name could not be told apart.
    fn no_name_twice(&self) -> Result<(), BoardError> {
        let mut seen = HashSet::new();
        for (timer, at) in self.timers() {
            if !seen.insert(timer.name.as_str()) {
                let message = format!(
                    "there is another timer `{}`: name it differently",
                    timer.name
                );
                return self.refuse(at.get_ref().name.span(), message);
            }
        }
        let mut seen = HashSet::new();
        for (line, at) in self.board.lines.iter().zip(&self.places.lines) {
            if !seen.insert(line.name.as_str()) {
                let message = format!("the line `{}` is there already: leave it out", line.name);
                return self.refuse(at.span(), message);
            }
        }
        Ok(())
    }

    /// Checks that the port has code for the chip.
    fn chip(&self, known: &[&str]) -> Result<(), BoardError> {
        if known.contains(&self.board.chip()) {
            return Ok(());
        }
        let at = self.places.chip.as_ref().unwrap_or(&self.places.port);
        let message = format!(
            "{} has no code for the chip `{}`: it has for {}",
            self.board.port.folder(),
            self.board.chip(),
            known.join(", ")
        );
        self.refuse(at.span(), message)
    }

    /// Checks that no timer states a driver, because the port has no use for it.
    fn no_drivers(&self) -> Result<(), BoardError> {
        for (timer, at) in self.timers() {
            if timer.driver.is_some() {
                let at = at
                    .get_ref()
                    .driver
                    .as_ref()
                    .map_or(at.span(), Spanned::span);
                let message = format!(
                    "{} finds the code of a timer by its name: leave `driver` out",
                    self.board.port.folder()
                );
                return self.refuse(at, message);
            }
        }
        Ok(())
    }

    fn avr(&self) -> Result<(), BoardError> {
        self.chip(&avr::CHIPS.map(|chip| chip.name))?;
        self.no_drivers()?;
        let Some(chip) = avr::chip(self.board.chip()) else {
            return Ok(());
        };
        for (timer, at) in self.timers() {
            if !chip.timers.contains(&timer.name.as_str()) {
                let message = format!(
                    "ports/avr has no registers for the timer `{}` of the {}: it has for {}",
                    timer.name,
                    chip.name,
                    chip.timers.join(", ")
                );
                return self.refuse(at.get_ref().name.span(), message);
            }
        }
        for (line, at) in self.board.lines.iter().zip(&self.places.lines) {
            if !chip.lines.contains(&line.name.as_str()) {
                let message = format!(
                    "ports/avr has no registers for the line `{}` of the {}: it has for {}",
                    line.name,
                    chip.name,
                    chip.lines.join(", ")
                );
                return self.refuse(at.span(), message);
            }
        }
        Ok(())
    }

    fn cortex_m(&self) -> Result<(), BoardError> {
        self.chip(&cortex_m::CHIPS.map(|(name, _)| name))?;
        if self.board.vectors.iter().position(|name| name == "SYSTICK")
            != Some(cortex_m::EXCEPTIONS - 1)
        {
            let message = format!(
                "the first {} vectors of a Cortex-M are its exceptions, of which SYSTICK is the last, and the lines of the NVIC follow: write all of them",
                cortex_m::EXCEPTIONS
            );
            return self.refuse(self.places.vectors.span(), message);
        }
        let Some(priorities) = self.board.priorities else {
            return self.refuse(
                self.places.port.span(),
                "the interrupts of a Cortex-M have priorities: add [priorities] with `most` and `step`, as boards/mps2-an385/board.toml does",
            );
        };
        // A priority is a byte, of which a chip has the upper bits (ARMv7-M, B1.5.4).
        let is_possible =
            priorities.most <= 255 && priorities.step <= 128 && priorities.step.is_power_of_two();
        if !is_possible {
            let at = self.places.priorities.as_ref();
            return self.refuse(
                at.map_or(self.places.port.span(), Spanned::span),
                "a priority is a byte of which the chip has the upper bits: write most = 255 or less, and for `step` 1, 2, 4 and so on up to 128",
            );
        }
        for (timer, at) in self.timers() {
            self.driver(timer, at)?;
        }
        Ok(())
    }

    /// Checks that the file states the code that runs the timer, and the data that this code needs.
    fn driver(&self, timer: &TimerFacts, at: &Spanned<TimerPlaces>) -> Result<(), BoardError> {
        let places = at.get_ref();
        let name = &timer.name;
        let known = cortex_m::DRIVERS.map(|(name, _)| format!("\"{name}\""));
        let right = format!(
            "write driver = {}, or the header of your own and its macro: driver = {{ header = \"my_timer.h\", macro = \"MY_TIMER\" }} (ports/cortex-m/README.md)",
            known.join(" or ")
        );
        let Some(driver) = &timer.driver else {
            let message =
                format!("the file does not say by which code the timer `{name}` runs: {right}");
            return self.refuse(places.name.span(), message);
        };
        let at_driver = places.driver.as_ref().map_or(at.span(), Spanned::span);
        let Some(code) = driver.code() else {
            let message = format!("Weir has no code for the timer `{name}` of this kind: {right}");
            return self.refuse(at_driver, message);
        };
        if !code.is_safe() {
            let message =
                "the header is a path of letters, digits and `_ - . /`, and the macro a name in C";
            return self.refuse(at_driver, message);
        }
        let lacks = [
            (
                "registers",
                timer.registers.is_none(),
                "the address of its registers",
            ),
            (
                "vector",
                timer.vector.is_none(),
                "the vector by which it interrupts",
            ),
        ];
        if let Some((key, _, what)) = lacks.into_iter().find(|lack| lack.1) {
            let message = format!("the timer `{name}` needs `{key}`, {what}");
            return self.refuse(places.name.span(), message);
        }
        if timer.registers.is_some_and(|at| at == 0 || at % 4 != 0) {
            let at = places.registers.as_ref().map_or(at.span(), Spanned::span);
            let message = format!(
                "the registers of the timer `{name}` are words: write their address, a multiple of 4 other than 0"
            );
            return self.refuse(at, message);
        }
        let of_known = matches!(driver, crate::TimerDriver::Known(_));
        let other: Vec<u64> = (timer.divisors.iter().copied())
            .filter(|of| of_known && !code.divisors.contains(of))
            .collect();
        if let Some(other) = other.first() {
            let message = format!(
                "this code of the timer `{name}` does not divide by {other}: write divisors = {:?}, or some of them",
                code.divisors
            );
            return self.refuse(places.name.span(), message);
        }
        let line = timer.vector.as_deref().and_then(|of| self.board.vector(of));
        if line.is_none_or(|line| line as usize <= cortex_m::EXCEPTIONS) {
            let at = places.registers.as_ref().map_or(at.span(), Spanned::span);
            let message = format!(
                "the timer `{name}` interrupts by a line of the NVIC, and its `vector` is an exception"
            );
            return self.refuse(at, message);
        }
        Ok(())
    }

    fn riscv(&self) -> Result<(), BoardError> {
        match self.timers().next() {
            Some((timer, at)) => self.refuse(
                at.get_ref().name.span(),
                format!("no code is generated for limits in software of ports/riscv, which the timer `{}` is for: leave it out", timer.name),
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flavour;

    const CORTEX_M: &str = include_str!("../../../boards/mps2-an385/board.toml");
    const AVR: &str = include_str!("../../../boards/atmega128/board.toml");
    const RISCV: &str = include_str!("../../../boards/soc/board.toml");

    /// The board of `text` with `from` replaced by `to`.
    fn changed(text: &str, from: &str, to: &str) -> Result<Board, BoardError> {
        assert!(text.contains(from), "no `{from}`");
        Board::parse(&text.replacen(from, to, 1), "")
    }

    #[test]
    fn what_a_port_has_no_code_for_is_refused_at_its_line() {
        const DRIVER: &str = "driver = \"cmsdk-dual-timer\"";
        let known = "driver = \"cmsdk-dual-timer\", or the header of your own";
        let no_line = "this line is not in the file";
        for (text, from, to, line, message) in [
            (
                CORTEX_M,
                DRIVER,
                "",
                "name = \"DUALTIMER\"",
                "by which code the timer `DUALTIMER` runs",
            ),
            (CORTEX_M, DRIVER, "", "name = \"DUALTIMER\"", known),
            (
                CORTEX_M,
                DRIVER,
                "driver = \"stm32\"",
                "driver = ",
                "no code for the timer `DUALTIMER` of this kind",
            ),
            (CORTEX_M, DRIVER, "driver = \"stm32\"", "driver = ", known),
            (
                CORTEX_M,
                DRIVER,
                "driver = 3",
                "driver = ",
                "a driver is the name of one, or { header",
            ),
            (
                CORTEX_M,
                DRIVER,
                "driver = { header = \"a.h\" }",
                "driver = ",
                "a driver is the name of one",
            ),
            (
                CORTEX_M,
                DRIVER,
                "driver = { header = \"a.h>\", macro = \"A\" }",
                "driver = ",
                "the header is a path",
            ),
            (
                CORTEX_M,
                DRIVER,
                "driver = { header = \"a.h\", macro = \"A(\" }",
                "driver = ",
                "the macro a name in C",
            ),
            (
                CORTEX_M,
                "registers = 0x4000_2000",
                "",
                "name = \"DUALTIMER\"",
                "needs `registers`",
            ),
            (
                CORTEX_M,
                "vector = \"IRQ10\"",
                "",
                "name = \"DUALTIMER\"",
                "needs `vector`",
            ),
            (
                CORTEX_M,
                "vector = \"IRQ10\"",
                "vector = \"IRQ99\"",
                "name = \"DUALTIMER\"",
                "`IRQ99`, which is none of the `vectors`",
            ),
            (
                CORTEX_M,
                "vector = \"IRQ10\"",
                "vector = \"PENDSV\"",
                "registers = ",
                "its `vector` is an exception",
            ),
            (
                CORTEX_M,
                "[1, 16, 256]",
                "[1, 8]",
                "name = \"DUALTIMER\"",
                "does not divide by 8",
            ),
            (
                CORTEX_M,
                "name = \"DUALTIMER\"",
                "name = \"DUAL TIMER\"",
                "name = \"DUAL",
                "becomes a name in C",
            ),
            (
                CORTEX_M,
                "chip = \"cortex-m3\"",
                "chip = \"cortex-m0\"",
                "chip = ",
                "it has for cortex-m3, cortex-m4, cortex-m7",
            ),
            (
                CORTEX_M,
                "chip = \"cortex-m3\"",
                "",
                "port = ",
                "no code for the chip `mps2-an385`",
            ),
            (
                CORTEX_M,
                "\"RESET\", ",
                "",
                "vectors = ",
                "of which SYSTICK is the last",
            ),
            (
                CORTEX_M,
                "{ name = \"IRQ31\" }",
                "{ name = \"IRQ32\" }",
                "    { name = \"IRQ32\"",
                "the line `IRQ32` is none of the `vectors`",
            ),
            (
                CORTEX_M,
                "step = 2",
                "step = 0",
                "[priorities]",
                "up to 128",
            ),
            (
                CORTEX_M,
                "step = 2",
                "step = 3",
                "[priorities]",
                "up to 128",
            ),
            (
                CORTEX_M,
                "most = 254",
                "most = 300",
                "[priorities]",
                "255 or less",
            ),
            (
                CORTEX_M,
                "registers = 0x4000_2000",
                "registers = 0x4000_2001",
                "registers = ",
                "a multiple of 4",
            ),
            (
                AVR,
                "name = \"TIMER3\"",
                "name = \"TIMER1\"",
                "name = \"TIMER1\"",
                "there is another timer `TIMER1`",
            ),
            (
                AVR,
                "[[line]]\nname = \"INT7\"",
                "[[line]]\nname = \"INT6\"",
                no_line,
                "the line `INT6` is there already",
            ),
            (
                AVR,
                "chip = \"atmega128\"",
                "chip = \"atmega328p\"",
                "chip = ",
                "ports/avr has no code for the chip `atmega328p`: it has for atmega128",
            ),
            (
                AVR,
                "name = \"TIMER3\"",
                "name = \"TIMER5\"",
                "name = \"TIMER5\"",
                "no registers for the timer `TIMER5`",
            ),
            (
                AVR,
                "name = \"TIMER3\"",
                "driver = \"x\"\nname = \"TIMER3\"",
                "driver = ",
                "leave `driver` out",
            ),
            (
                AVR,
                "[[line]]\nname = \"INT7\"",
                "[[line]]\nname = \"ADC\"",
                no_line,
                "no registers for the line `ADC`",
            ),
            (
                RISCV,
                "[interrupt]",
                "[[timer]]\nname = \"MTIME\"\nbits = 64\ndivisors = [1]\n[interrupt]",
                "name = \"MTIME\"",
                "the timer `MTIME` is for: leave it out",
            ),
            (
                RISCV,
                "port = \"riscv\"",
                "port = \"z80\"",
                "port = ",
                "unknown variant `z80`",
            ),
        ] {
            let error = changed(text, from, to).unwrap_err();
            assert!(error.message.contains(message), "{to}: {error}");
            let text = text.replacen(from, to, 1);
            let found = text.lines().nth(error.line - 1).unwrap();
            let at = if line == no_line { "[[line]]" } else { line };
            assert!(found.starts_with(at), "{to}: {error} at `{found}`");
        }
    }

    #[test]
    fn a_cortex_m_has_priorities() {
        let from = CORTEX_M.find("[priorities]").unwrap();
        let to = CORTEX_M.find("[[timer]]").unwrap();
        let error = changed(CORTEX_M, &CORTEX_M[from..to], "").unwrap_err();
        assert!(error.message.contains("add [priorities]"), "{error}");
    }

    #[test]
    fn a_board_can_have_a_timer_of_its_own() {
        let own = "driver = { header = \"chips/my_timer.h\", macro = \"MY_TIMER\" }";
        let board = changed(CORTEX_M, "driver = \"cmsdk-dual-timer\"", own).unwrap();
        let code = board.timers[0].driver.as_ref().unwrap().code().unwrap();
        assert_eq!((code.header, code.call), ("chips/my_timer.h", "MY_TIMER"));
        assert!(board.rules(Flavour::C).is_some());
        // The file has to state the divisors of such a timer.
        let text = CORTEX_M.replace("driver = \"cmsdk-dual-timer\"", own);
        assert!(changed(&text, "[1, 16, 256]", "[1, 2, 4]").is_ok());
        for chip in ["cortex-m4", "cortex-m7"] {
            assert!(changed(CORTEX_M, "cortex-m3", chip).is_ok(), "{chip}");
        }
    }
}
