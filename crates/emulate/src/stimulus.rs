// SPDX-License-Identifier: GPL-3.0-or-later
//! Stimuli of pins: patterns of [`weir_arrivals`] on lines, exact to the cycle. The text form is
//! LINE=PATTERN, for example `INT0=20kHz` or `INT1=poisson:2kHz:seed=1`.
//!
//! Each arrival is an edge on the pin; the pattern `level` sets the level of the pin. A random
//! pattern must state its seed, so that the text alone determines the run.
use std::fmt;
use std::net::Ipv4Addr;

use weir_arrivals::{Arrivals, PatternError, What};

use crate::line::{Line, NameError};

pub use weir_arrivals::Pattern as Stimulus;

/// A stimulus on one line, from cycle 0 to the end of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct LineStimulus {
    /// The line whose pin is driven.
    pub line: Line,
    /// The pattern on the line.
    pub stimulus: Stimulus,
}

/// Why a text is not a valid flood, or why a stimulus cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StimulusError {
    /// The text has no `=` between a line and a pattern.
    #[error(
        "`{0}` does not say which line: write LINE=PATTERN, for example INT0=20kHz or INT1=poisson:2kHz:seed=1"
    )]
    NoLine(String),
    /// The line does not exist.
    #[error(transparent)]
    Line(#[from] NameError),
    /// The pattern is not valid, or cannot be run.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A random pattern has no seed.
    #[error(
        "in `{0}`: `seed=` is missing: the text alone must repeat the run; write for example {0}:seed=1"
    )]
    NoSeed(Stimulus),
}

impl LineStimulus {
    /// Parses the text form of a flood of a board with these lines. `clock_hz` converts times to
    /// cycles. The file of a trace is read here.
    ///
    /// # Errors
    /// Fails for an unknown line or pattern, an invalid quantity, or an unreadable trace. The
    /// message says what would be right.
    pub fn on(lines: &[Line], text: &str, clock_hz: u64) -> Result<Self, StimulusError> {
        let (line, pattern) = text
            .split_once('=')
            .ok_or_else(|| StimulusError::NoLine(text.to_owned()))?;
        let line = Line::among(lines, line)?;
        let stimulus = Stimulus::parse(pattern, clock_hz)?;
        arrivals(&stimulus, clock_hz)?;
        Ok(Self { line, stimulus })
    }
}

impl fmt::Display for LineStimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.line, self.stimulus)
    }
}

/// The frames of a flood, which are ICMP echo requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// The length of each frame in bytes without the checksum: 60 to 1514.
    pub bytes: usize,
    /// The destination address of the frames.
    pub to: Ipv4Addr,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            bytes: 60,
            to: Ipv4Addr::new(10, 0, 0, 2),
        }
    }
}

/// Returns the arrivals of a stimulus.
///
/// # Errors
/// Fails if the stimulus cannot be run, or if it is random and has no seed.
pub fn arrivals(stimulus: &Stimulus, clock_hz: u64) -> Result<Arrivals, StimulusError> {
    if stimulus.needs_seed() {
        return Err(StimulusError::NoSeed(stimulus.clone()));
    }
    Ok(stimulus.start(clock_hz, 0)?)
}

/// Returns the level to which an arrival moves a pin. `None` for a request.
#[must_use]
pub fn level(what: What) -> Option<bool> {
    match what {
        What::Rise => Some(true),
        What::Fall => Some(false),
        What::Request | What::Packet(_) => None,
    }
}

#[cfg(test)]
mod tests {

    use crate::board::EmulatedBoard;
    use proptest::prelude::*;

    const CLOCK: u64 = 4_000_000;

    #[test]
    fn a_flood_reads_back() {
        for text in [
            "INT0=20kHz",
            "INT7=781Hz:phase=1ms",
            "INT0=poisson:20kHz:seed=1",
            "INT0=uniform:10us..90us:seed=1",
            "INT0=pairs:2ms:gap=10us",
            "INT0=bursts:16:gap=20us:period=25ms",
            "INT0=level:low=100us:high=1ms",
        ] {
            let flood = EmulatedBoard::ATMEGA128.stimulus(text, CLOCK).unwrap();
            assert_eq!(
                EmulatedBoard::ATMEGA128
                    .stimulus(&flood.to_string(), CLOCK)
                    .unwrap(),
                flood,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_advice() {
        for (text, says) in [
            ("20kHz", "LINE=PATTERN"),
            ("INT9=20kHz", "INT0, INT1"),
            ("INT0=storm", "there is no pattern `storm`"),
            ("INT0=", "there is no pattern"),
            ("INT0=poisson:20kHz", "`seed=` is missing"),
            (
                "INT0=poisson:20kHz",
                "write for example poisson:20kHz:seed=1",
            ),
            ("INT0=uniform:10us..90us", "`seed=` is missing"),
            ("INT0=pairs:10us:gap=10us", "do not fit"),
            ("INT0=trace:/nowhere/t.csv", "/nowhere/t.csv"),
        ] {
            let message = EmulatedBoard::ATMEGA128
                .stimulus(text, CLOCK)
                .unwrap_err()
                .to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "INT[0-9]=(poisson|pairs|bursts|level)?:?[a-z0-9=:.]*") {
            let _ = EmulatedBoard::ATMEGA128.stimulus(&text, CLOCK);
        }
    }
}
