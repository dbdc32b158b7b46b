// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the text form of a pattern.
use std::path::Path;

use weir_model::{Duration, QuantityError, Rate};

use crate::pattern::Pattern;
use crate::trace::{Recording, TraceError};

/// Why a text is not a valid pattern, or why a pattern cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// A rate or a time is not valid.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// No pattern has this name.
    #[error(
        "there is no pattern `{0}`: write a rate (20kHz) or one of poisson:RATE, pairs:PERIOD:gap=TIME, bursts:COUNT:gap=TIME:period=TIME, \
         uniform:TIME..TIME, mmpp:RATE:burst=COUNT:gap=TIME, level:low=TIME:high=TIME, trace:FILE"
    )]
    Pattern(String),
    /// A part of the pattern is missing, unknown, repeated or not a number.
    #[error("in `{text}`: {what}; the form is {form}")]
    Part {
        /// The text of the pattern.
        text: String,
        /// What is wrong.
        what: String,
        /// The form of a valid pattern of this kind.
        form: &'static str,
    },
    /// Parts of the pattern contradict each other.
    #[error("{0}")]
    Impossible(String),
    /// A recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

const PERIODIC: &str = "RATE or RATE:phase=TIME, for example 20kHz:phase=10us";
const POISSON: &str = "poisson:RATE or poisson:RATE:seed=N, for example poisson:20kHz:seed=1";
const PAIRS: &str = "pairs:PERIOD:gap=TIME, for example pairs:2ms:gap=10us";
const BURSTS: &str =
    "bursts:COUNT:gap=TIME:period=TIME, for example bursts:16:gap=20us:period=25ms";
const UNIFORM: &str =
    "uniform:TIME..TIME or uniform:TIME..TIME:seed=N, for example uniform:10us..90us";
const LEVEL: &str = "level:low=TIME:high=TIME, for example level:low=100us:high=1ms";

const MMPP: &str = "mmpp:RATE:burst=COUNT:gap=TIME, and :idle=RATE and :seed=N may follow, for example mmpp:20kHz:burst=5000:gap=100ms";
const TRACE: &str =
    "trace:FILE, and :speed=N and :repeat may follow, for example trace:eth0.pcap:speed=2";

/// Parses a pattern without checking whether it can be run.
pub(crate) fn parse(text: &str, clock_hz: u64) -> Result<Pattern, PatternError> {
    let (head, rest) = text.split_once(':').unwrap_or((text, ""));
    let parts = |form| PatternArguments::new(text, rest, form);
    match head {
        "poisson" => {
            let mut parts = parts(POISSON)?;
            let rate: Rate = parts.first("the rate")?.parse()?;
            let seed = parts.seed()?;
            parts.end(Pattern::Poisson {
                rate_hz: rate.hertz(),
                seed,
            })
        }
        "pairs" => {
            let mut parts = parts(PAIRS)?;
            let period: Duration = parts.first("the period")?.parse()?;
            let gap_cycles = parts.time("gap", clock_hz)?;
            parts.end(Pattern::Pairs {
                period_cycles: period.cycles(clock_hz)?,
                gap_cycles,
            })
        }
        "bursts" => {
            let mut parts = parts(BURSTS)?;
            let count = parts.first("the count")?;
            let count = count.parse().map_err(|_| {
                parts.wrong(format!(
                    "`{count}` is not a number of edges from 1 to {}",
                    u32::MAX
                ))
            })?;
            let gap_cycles = parts.time("gap", clock_hz)?;
            let period_cycles = parts.time("period", clock_hz)?;
            parts.end(Pattern::Bursts {
                count,
                gap_cycles,
                period_cycles,
            })
        }
        "uniform" => {
            let mut parts = parts(UNIFORM)?;
            let gaps = parts.first("the time between arrivals")?;
            let (min, max) = gaps.split_once("..").ok_or_else(|| {
                parts.wrong(format!("`{gaps}` is not a shortest and a longest time"))
            })?;
            let seed = parts.seed()?;
            parts.end(Pattern::Uniform {
                min_cycles: min.parse::<Duration>()?.cycles(clock_hz)?,
                max_cycles: max.parse::<Duration>()?.cycles(clock_hz)?,
                seed,
            })
        }
        "mmpp" => {
            let mut parts = parts(MMPP)?;
            let rate: Rate = parts.first("the rate")?.parse()?;
            let burst = parts.take("burst")?;
            let burst = burst.parse().map_err(|_| {
                parts.wrong(format!(
                    "`burst={burst}` is not a number of arrivals from 1 to {}",
                    u32::MAX
                ))
            })?;
            let gap_cycles = parts.time("gap", clock_hz)?;
            let idle_hz = if parts.has("idle") {
                Some(parts.take("idle")?.parse::<Rate>()?.hertz())
            } else {
                None
            };
            let seed = parts.seed()?;
            parts.end(Pattern::Mmpp {
                rate_hz: rate.hertz(),
                burst,
                gap_cycles,
                idle_hz,
                seed,
            })
        }
        "level" => {
            let mut parts = parts(LEVEL)?;
            let low_cycles = parts.time("low", clock_hz)?;
            let high_cycles = parts.time("high", clock_hz)?;
            parts.end(Pattern::Level {
                low_cycles,
                high_cycles,
            })
        }
        "trace" => recording(text, rest, clock_hz),
        rate if rate.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            let rate: Rate = rate.parse()?;
            let mut parts = parts(PERIODIC)?;
            let phase_cycles = if parts.has("phase") {
                parts.time("phase", clock_hz)?
            } else {
                0
            };
            parts.end(Pattern::Periodic {
                rate_hz: rate.hertz(),
                phase_cycles,
            })
        }
        other => Err(PatternError::Pattern(other.to_owned())),
    }
}

/// A file name may contain colons, so only the last parts of the text that look like options are
/// treated as options.
fn recording(text: &str, rest: &str, clock_hz: u64) -> Result<Pattern, PatternError> {
    let (mut file, mut speed, mut repeats) = (rest, None, false);
    loop {
        match file.rsplit_once(':') {
            Some((before, "repeat")) if !repeats => (file, repeats) = (before, true),
            Some((before, option)) if speed.is_none() && option.starts_with("speed=") => {
                let number = option.trim_start_matches("speed=");
                speed = Some(
                    number
                        .parse()
                        .map_err(|_| part(text, &format!("`{option}` is not a number"), TRACE))?,
                );
                file = before;
            }
            _ => break,
        }
    }
    if file.is_empty() {
        return Err(part(text, "the file is missing", TRACE));
    }
    Ok(Pattern::File(Recording::read(
        Path::new(file),
        speed.unwrap_or(1.0),
        repeats,
        clock_hz,
    )?))
}

fn part(text: &str, what: &str, form: &'static str) -> PatternError {
    PatternError::Part {
        text: text.to_owned(),
        what: what.to_owned(),
        form,
    }
}

/// The arguments after the pattern's name: at most one argument without a name, and arguments of
/// the form `name=value`.
struct PatternArguments<'a> {
    text: &'a str,
    form: &'static str,
    first: Option<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> PatternArguments<'a> {
    fn new(text: &'a str, rest: &'a str, form: &'static str) -> Result<Self, PatternError> {
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

    fn first(&mut self, what: &str) -> Result<&'a str, PatternError> {
        self.first
            .take()
            .ok_or_else(|| self.wrong(format!("{what} is missing")))
    }

    fn take(&mut self, name: &str) -> Result<&'a str, PatternError> {
        match self.named.iter().position(|(known, _)| *known == name) {
            Some(at) => Ok(self.named.remove(at).1),
            None => Err(self.wrong(format!("`{name}=` is missing"))),
        }
    }

    fn time(&mut self, name: &str, clock_hz: u64) -> Result<u64, PatternError> {
        Ok(self.take(name)?.parse::<Duration>()?.cycles(clock_hz)?)
    }

    fn seed(&mut self) -> Result<Option<u64>, PatternError> {
        if !self.has("seed") {
            return Ok(None);
        }
        let value = self.take("seed")?;
        match value.parse() {
            Ok(seed) => Ok(Some(seed)),
            Err(_) => Err(self.wrong(format!("`seed={value}` is not a whole number"))),
        }
    }

    fn wrong(&self, what: String) -> PatternError {
        part(self.text, &what, self.form)
    }

    /// Returns the pattern if all arguments were used, and an error otherwise.
    fn end(self, pattern: Pattern) -> Result<Pattern, PatternError> {
        match (self.first, self.named.first()) {
            (None, None) => Ok(pattern),
            (Some(extra), _) => Err(self.wrong(format!("`{extra}` is one part too many"))),
            (None, Some((name, _))) => Err(self.wrong(format!("`{name}=` does not belong there"))),
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
            "20kHz",
            "781Hz:phase=1ms",
            "poisson:20kHz",
            "poisson:20kHz:seed=1",
            "pairs:2ms:gap=10us",
            "bursts:16:gap=20us:period=25ms",
            "uniform:1.5us..90us",
            "uniform:10us..90us:seed=3",
            "level:low=100us:high=1ms",
            "mmpp:20kHz:burst=5000:gap=100ms",
            "mmpp:20kHz:burst=5000:gap=100ms:idle=10Hz:seed=4",
        ] {
            let pattern = Pattern::parse(text, CLOCK).unwrap();
            assert_eq!(
                Pattern::parse(&pattern.to_string(), CLOCK).unwrap(),
                pattern,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_advice() {
        for (text, says) in [
            ("0kHz", "not more than zero"),
            ("-1kHz", "not more than zero"),
            ("storm", "there is no pattern `storm`"),
            ("", "there is no pattern"),
            ("poisson:20kHz:seed=x", "not a whole number"),
            ("poisson:seed=1", "the rate is missing"),
            ("20kHz:gap=1us", "`gap=` does not belong there"),
            ("20kHz:30kHz", "one part too many"),
            ("pairs:2ms:gap=10us:gap=11us", "given twice"),
            ("pairs:10us:gap=10us", "do not fit"),
            ("bursts:0:gap=1us:period=1ms", "a burst of 0 edges"),
            ("bursts:100:gap=20us:period=1ms", "do not fit"),
            ("bursts:-1:gap=20us:period=1ms", "not a number of edges"),
            ("uniform:10us", "not a shortest and a longest time"),
            ("uniform:seed=3", "the time between arrivals is missing"),
            ("uniform:0us..10us", "not more than zero"),
            ("uniform:90us..10us", "write the shorter time first"),
            ("level:low=1us", "`high=` is missing"),
            ("mmpp:20kHz:gap=100ms", "`burst=` is missing"),
            ("mmpp:20kHz:burst=0:gap=100ms", "at least 1 arrival"),
            ("mmpp:20kHz:burst=1.5:gap=100ms", "not a number of arrivals"),
            ("mmpp:20kHz:burst=5000", "`gap=` is missing"),
            ("mmpp:20kHz:burst=5000:gap=0ms", "not more than zero"),
            (
                "mmpp:20kHz:burst=5000:gap=1ms:idle=20kHz",
                "idle less than the rate",
            ),
            ("trace::repeat", "the file is missing"),
            ("trace:t.csv:speed=x", "`speed=x` is not a number"),
            ("trace:t.csv:speed=0", "more than zero"),
            ("trace:t.csv:speed=NaN", "more than zero"),
            ("trace:t.csv:speed=inf", "more than zero"),
            ("trace:", "the file is missing"),
            ("trace:/nowhere/t.csv", "/nowhere/t.csv"),
            ("pairs:1ns:gap=1ns", "less than one cycle"),
        ] {
            let message = Pattern::parse(text, CLOCK).unwrap_err().to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(poisson|pairs|bursts|level|uniform|mmpp)?:?[a-z0-9=:.]*") {
            let _ = Pattern::parse(&text, CLOCK);
        }
    }
}
