// SPDX-License-Identifier: GPL-3.0-or-later
//! The text form of a flood.
use std::path::Path;

use weir_model::{Duration, QuantityError, Rate};

use super::trace::{TraceError, read_trace};
use super::{Flood, Stimulus};
use crate::line::{Line, NameError};

/// Why a text is no flood, or a stimulus cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StimulusError {
    /// No `=` between the line and the pattern.
    #[error(
        "`{0}` does not say which line: write LINE=PATTERN, for example INT0=20kHz or INT1=poisson:2kHz:seed=1"
    )]
    NoLine(String),
    /// The line does not exist.
    #[error(transparent)]
    Line(#[from] NameError),
    /// A rate or a time is wrong.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The pattern does not exist.
    #[error(
        "there is no pattern `{0}`: write a rate (20kHz) or one of poisson:RATE:seed=N, pairs:PERIOD:gap=TIME, \
         bursts:COUNT:gap=TIME:period=TIME, level:low=TIME:high=TIME, trace:FILE.csv"
    )]
    Pattern(String),
    /// A part of the pattern is missing, unknown, given twice or not a number.
    #[error("in `{text}`: {what}; the form is {form}")]
    Part {
        /// The pattern as it was given.
        text: String,
        /// What is wrong.
        what: String,
        /// The pattern's form.
        form: &'static str,
    },
    /// The parts contradict each other.
    #[error("{0}")]
    Impossible(String),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

const PERIODIC: &str = "RATE or RATE:phase=TIME, for example 20kHz:phase=10us";
const POISSON: &str = "poisson:RATE:seed=N, for example poisson:20kHz:seed=1";
const PAIRS: &str = "pairs:PERIOD:gap=TIME, for example pairs:2ms:gap=10us";
const BURSTS: &str =
    "bursts:COUNT:gap=TIME:period=TIME, for example bursts:16:gap=20us:period=25ms";
const LEVEL: &str = "level:low=TIME:high=TIME, for example level:low=100us:high=1ms";

pub(super) fn parse_flood(text: &str, clock_hz: u64) -> Result<Flood, StimulusError> {
    let (line, pattern) = text
        .split_once('=')
        .ok_or_else(|| StimulusError::NoLine(text.to_owned()))?;
    let line: Line = line.parse()?;
    let stimulus = parse_stimulus(pattern.trim(), clock_hz)?;
    stimulus.check()?;
    Ok(Flood { line, stimulus })
}

fn parse_stimulus(text: &str, clock_hz: u64) -> Result<Stimulus, StimulusError> {
    let (head, rest) = text.split_once(':').unwrap_or((text, ""));
    if head == "trace" {
        if rest.is_empty() {
            return Err(part(text, "the file is missing", "trace:FILE.csv"));
        }
        let times = read_trace(Path::new(rest), clock_hz)?;
        return Ok(Stimulus::Trace {
            name: rest.to_owned(),
            times: times.into(),
        });
    }
    match head {
        "poisson" => {
            let mut parts = Parts::new(text, rest, POISSON)?;
            let rate: Rate = parts.first("the rate")?.parse()?;
            let seed = parts.number("seed")?;
            parts.end()?;
            Ok(Stimulus::Poisson {
                rate_hz: rate.hertz(),
                seed,
            })
        }
        "pairs" => {
            let mut parts = Parts::new(text, rest, PAIRS)?;
            let period_cycles = parts
                .first("the period")?
                .parse::<Duration>()?
                .cycles(clock_hz)?;
            let gap_cycles = parts.time("gap", clock_hz)?;
            parts.end()?;
            Ok(Stimulus::Pairs {
                period_cycles,
                gap_cycles,
            })
        }
        "bursts" => {
            let mut parts = Parts::new(text, rest, BURSTS)?;
            let count = parts.first("the count")?;
            let count = count.parse().map_err(|_| {
                part(
                    text,
                    &format!("`{count}` is not a number of edges from 1 to {}", u32::MAX),
                    BURSTS,
                )
            })?;
            let gap_cycles = parts.time("gap", clock_hz)?;
            let period_cycles = parts.time("period", clock_hz)?;
            parts.end()?;
            Ok(Stimulus::Bursts {
                count,
                gap_cycles,
                period_cycles,
            })
        }
        "level" => {
            let mut parts = Parts::new(text, rest, LEVEL)?;
            let low_cycles = parts.time("low", clock_hz)?;
            let high_cycles = parts.time("high", clock_hz)?;
            parts.end()?;
            Ok(Stimulus::Level {
                low_cycles,
                high_cycles,
            })
        }
        rate if rate.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            let rate: Rate = rate.parse()?;
            let mut parts = Parts::new(text, rest, PERIODIC)?;
            let phase_cycles = if parts.has("phase") {
                parts.time("phase", clock_hz)?
            } else {
                0
            };
            parts.end()?;
            Ok(Stimulus::Periodic {
                rate_hz: rate.hertz(),
                phase_cycles,
            })
        }
        other => Err(StimulusError::Pattern(other.to_owned())),
    }
}

pub(super) fn check_burst(count: u32, gap: u64, period: u64) -> Result<(), StimulusError> {
    if count == 0 {
        return Err(StimulusError::Impossible(
            "a burst of 0 edges is no burst: write at least bursts:1".to_owned(),
        ));
    }
    if gap == 0 {
        return Err(StimulusError::Impossible(
            "edges 0 cycles apart are one edge: give a gap of at least 1 cycle".to_owned(),
        ));
    }
    let lasts = gap.checked_mul(u64::from(count - 1));
    if lasts.is_none_or(|lasts| lasts >= period) {
        return Err(StimulusError::Impossible(format!(
            "{count} edges {gap} cycles apart do not fit into a period of {period} cycles: make the gap shorter or the period longer"
        )));
    }
    Ok(())
}

fn part(text: &str, what: &str, form: &'static str) -> StimulusError {
    StimulusError::Part {
        text: text.to_owned(),
        what: what.to_owned(),
        form,
    }
}

/// The parts behind the pattern's name: one without a name at most, the others `name=value`.
struct Parts<'a> {
    text: &'a str,
    form: &'static str,
    first: Option<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str, rest: &'a str, form: &'static str) -> Result<Self, StimulusError> {
        let mut parts = Self {
            text,
            form,
            first: None,
            named: Vec::new(),
        };
        for piece in rest
            .split(':')
            .map(str::trim)
            .filter(|piece| !piece.is_empty())
        {
            match piece.split_once('=') {
                Some((name, _)) if parts.has(name) => {
                    return Err(part(text, &format!("`{name}` is given twice"), form));
                }
                Some(named) => parts.named.push(named),
                None if parts.first.is_none() => parts.first = Some(piece),
                None => return Err(part(text, &format!("`{piece}` is one part too many"), form)),
            }
        }
        Ok(parts)
    }

    fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(known, _)| *known == name)
    }

    fn first(&mut self, what: &str) -> Result<&'a str, StimulusError> {
        self.first
            .take()
            .ok_or_else(|| part(self.text, &format!("{what} is missing"), self.form))
    }

    fn take(&mut self, name: &str) -> Result<&'a str, StimulusError> {
        match self.named.iter().position(|(known, _)| *known == name) {
            Some(at) => Ok(self.named.remove(at).1),
            None => Err(part(self.text, &format!("`{name}=` is missing"), self.form)),
        }
    }

    fn time(&mut self, name: &str, clock_hz: u64) -> Result<u64, StimulusError> {
        Ok(self.take(name)?.parse::<Duration>()?.cycles(clock_hz)?)
    }

    fn number(&mut self, name: &str) -> Result<u64, StimulusError> {
        let value = self.take(name)?;
        value.parse().map_err(|_| {
            part(
                self.text,
                &format!("`{name}={value}` is not a whole number"),
                self.form,
            )
        })
    }

    fn end(self) -> Result<(), StimulusError> {
        match (self.first, self.named.first()) {
            (None, None) => Ok(()),
            (Some(extra), _) => Err(part(
                self.text,
                &format!("`{extra}` is one part too many"),
                self.form,
            )),
            (None, Some((name, _))) => Err(part(
                self.text,
                &format!("`{name}=` does not belong there"),
                self.form,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLOCK: u64 = 4_000_000;

    #[test]
    fn every_form_reads_back() {
        for text in [
            "INT0=20kHz",
            "INT7=781Hz:phase=1ms",
            "INT0=poisson:20kHz:seed=1",
            "INT0=pairs:2ms:gap=10us",
            "INT0=bursts:16:gap=20us:period=25ms",
            "INT0=level:low=100us:high=1ms",
        ] {
            let flood = Flood::parse(text, CLOCK).unwrap();
            assert_eq!(
                Flood::parse(&flood.to_string(), CLOCK).unwrap(),
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
            ("INT0=0kHz", "not more than zero"),
            ("INT0=-1kHz", "not more than zero"),
            ("INT0=storm", "there is no pattern `storm`"),
            ("INT0=", "there is no pattern"),
            ("INT0=poisson:20kHz", "`seed=` is missing"),
            ("INT0=poisson:20kHz:seed=x", "not a whole number"),
            ("INT0=poisson:seed=1", "the rate is missing"),
            ("INT0=20kHz:gap=1us", "`gap=` does not belong there"),
            ("INT0=20kHz:30kHz", "one part too many"),
            ("INT0=pairs:2ms:gap=10us:gap=11us", "given twice"),
            ("INT0=pairs:10us:gap=10us", "do not fit"),
            ("INT0=bursts:0:gap=1us:period=1ms", "a burst of 0 edges"),
            ("INT0=bursts:100:gap=20us:period=1ms", "do not fit"),
            (
                "INT0=bursts:-1:gap=20us:period=1ms",
                "not a number of edges",
            ),
            ("INT0=level:low=1us", "`high=` is missing"),
            ("INT0=trace:", "the file is missing"),
            ("INT0=trace:/nowhere/t.csv", "/nowhere/t.csv"),
            ("INT0=pairs:1ns:gap=1ns", "less than one cycle"),
        ] {
            let message = Flood::parse(text, CLOCK).unwrap_err().to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "INT[0-9]=(poisson|pairs|bursts|level)?:?[a-z0-9=:.]*") {
            let _ = Flood::parse(&text, CLOCK);
        }
    }
}
