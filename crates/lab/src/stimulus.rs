// SPDX-License-Identifier: GPL-3.0-or-later
//! What is done to a pin: the edges of a flood, at exact cycles.
//!
//! The text form, as the command line takes it and [`Flood`]'s `Display` writes it:
//!
//! | text | edges |
//! |---|---|
//! | `INT0=20kHz` | every 50 us; `:phase=10us` delays the first |
//! | `INT0=poisson:20kHz:seed=1` | memoryless, 20 000 a second on average |
//! | `INT0=pairs:2ms:gap=10us` | two, 10 us apart, every 2 ms |
//! | `INT0=bursts:16:gap=20us:period=25ms` | 16, 20 us apart, every 25 ms |
//! | `INT0=level:low=100us:high=1ms` | the pin itself: low for 100 us, then high for 1 ms |
//! | `INT0=trace:file.csv` | those of a recording |
use std::fmt;
use std::sync::Arc;

use rand::SeedableRng;
use rand::distr::{Distribution, Open01};
use rand_chacha::ChaCha12Rng;
use weir_model::{Duration, Rate};

use crate::line::Line;

mod text;
mod trace;

pub use text::StimulusError;
pub use trace::{TraceError, read_trace};

/// A stimulus on one line, from cycle 0 to the end of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Flood {
    /// The line whose pin is driven.
    pub line: Line,
    /// What is done to it.
    pub stimulus: Stimulus,
}

/// A pattern of edges. All times are cycles of the board's clock.
#[derive(Debug, Clone, PartialEq)]
pub enum Stimulus {
    /// The k-th edge (from 0) at `phase_cycles + k * clock / rate_hz`, rounded: fractions do not add up to a drift.
    Periodic {
        /// Edges per second.
        rate_hz: f64,
        /// When the first edge comes.
        phase_cycles: u64,
    },
    /// Exponentially distributed gaps, drawn by ChaCha from `seed`.
    Poisson {
        /// Edges per second on average.
        rate_hz: f64,
        /// The same seed gives the same edges.
        seed: u64,
    },
    /// Two edges close together, every period.
    Pairs {
        /// From the first edge of a pair to the first of the next; more than the gap.
        period_cycles: u64,
        /// From the first edge of a pair to its second.
        gap_cycles: u64,
    },
    /// `count` edges close together, every period.
    Bursts {
        /// Edges per burst, at least 1.
        count: u32,
        /// Between the edges of a burst.
        gap_cycles: u64,
        /// From the first edge of a burst to the first of the next; more than the burst lasts.
        period_cycles: u64,
    },
    /// The pin itself, not edges: low, then high, and so on.
    Level {
        /// How long it is low.
        low_cycles: u64,
        /// How long it is high.
        high_cycles: u64,
    },
    /// Recorded edges, in ascending order.
    Trace {
        /// Where they come from, for messages.
        name: String,
        /// Cycles.
        times: Arc<[u64]>,
    },
}

impl Flood {
    /// Reads the text form; `clock_hz` turns times into cycles, and a trace's file is read.
    ///
    /// # Errors
    /// An unknown line or pattern, a bad quantity, a trace that cannot be read; the message says what would be right.
    pub fn parse(text: &str, clock_hz: u64) -> Result<Self, StimulusError> {
        text::parse_flood(text, clock_hz)
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.line, self.stimulus)
    }
}

impl fmt::Display for Stimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |hertz: &f64| {
            Rate::from_hertz(*hertz).map_or_else(|_| format!("{hertz}Hz"), |r| r.to_string())
        };
        let time = |cycles: &u64| Duration::Cycles(*cycles);
        match self {
            Self::Periodic {
                rate_hz,
                phase_cycles: 0,
            } => f.write_str(&rate(rate_hz)),
            Self::Periodic {
                rate_hz,
                phase_cycles,
            } => write!(f, "{}:phase={}", rate(rate_hz), time(phase_cycles)),
            Self::Poisson { rate_hz, seed } => write!(f, "poisson:{}:seed={seed}", rate(rate_hz)),
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => {
                write!(f, "pairs:{}:gap={}", time(period_cycles), time(gap_cycles))
            }
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => {
                write!(
                    f,
                    "bursts:{count}:gap={}:period={}",
                    time(gap_cycles),
                    time(period_cycles)
                )
            }
            Self::Level {
                low_cycles,
                high_cycles,
            } => {
                write!(
                    f,
                    "level:low={}:high={}",
                    time(low_cycles),
                    time(high_cycles)
                )
            }
            Self::Trace { name, .. } => write!(f, "trace:{name}"),
        }
    }
}

/// The edges of a stimulus in ascending order; endless but for a trace. A [`Stimulus::Level`] has none: see
/// [`levels`].
pub struct Edges {
    source: Source,
}

enum Source {
    Periodic {
        period: f64,
        phase: f64,
        index: f64,
    },
    Poisson {
        mean: f64,
        at: f64,
        random: Box<ChaCha12Rng>,
    },
    Bursts {
        count: u64,
        gap: u64,
        period: u64,
        burst: u64,
        index: u64,
    },
    Trace {
        times: Arc<[u64]>,
        index: usize,
    },
    Nothing,
}

impl Stimulus {
    /// The edges of this stimulus at a clock of `clock_hz`.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "clocks and phases are far below 2^52"
    )]
    pub fn edges(&self, clock_hz: u64) -> Edges {
        let clock = clock_hz as f64;
        let source = match self {
            Self::Periodic {
                rate_hz,
                phase_cycles,
            } => Source::Periodic {
                period: clock / rate_hz,
                phase: *phase_cycles as f64,
                index: 0.0,
            },
            Self::Poisson { rate_hz, seed } => Source::Poisson {
                mean: clock / rate_hz,
                at: 0.0,
                random: Box::new(ChaCha12Rng::seed_from_u64(*seed)),
            },
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => Source::Bursts {
                count: 2,
                gap: *gap_cycles,
                period: *period_cycles,
                burst: 0,
                index: 0,
            },
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => Source::Bursts {
                count: u64::from(*count),
                gap: *gap_cycles,
                period: *period_cycles,
                burst: 0,
                index: 0,
            },
            Self::Trace { times, .. } => Source::Trace {
                times: Arc::clone(times),
                index: 0,
            },
            Self::Level { .. } => Source::Nothing,
        };
        Edges { source }
    }

    /// Whether the stimulus can be run: rates and periods above zero, bursts shorter than their period, a trace in order.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    pub fn check(&self) -> Result<(), StimulusError> {
        let wrong = |what: String| Err(StimulusError::Impossible(what));
        match self {
            Self::Periodic { rate_hz, .. } | Self::Poisson { rate_hz, .. } => {
                Rate::from_hertz(*rate_hz)
                    .map(|_| ())
                    .map_err(StimulusError::from)
            }
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => text::check_burst(2, *gap_cycles, *period_cycles),
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => text::check_burst(*count, *gap_cycles, *period_cycles),
            Self::Level { low_cycles: 0, .. } | Self::Level { high_cycles: 0, .. } => wrong(
                "a level that lasts 0 cycles is no level: give low and high at least 1 cycle"
                    .to_owned(),
            ),
            Self::Level { .. } => Ok(()),
            Self::Trace { name, times } => {
                match times.windows(2).position(|pair| pair[0] > pair[1]) {
                    Some(at) => wrong(format!(
                        "the trace {name} is out of order: edge {} at cycle {} comes after cycle {}",
                        at + 2,
                        times[at + 1],
                        times[at]
                    )),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Iterator for Edges {
    type Item = u64;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are positive and saturate far beyond any run"
    )]
    fn next(&mut self) -> Option<u64> {
        match &mut self.source {
            Source::Periodic {
                period,
                phase,
                index,
            } => {
                let at = (*phase + *index * *period).round() as u64;
                *index += 1.0;
                Some(at)
            }
            Source::Poisson { mean, at, random } => {
                let uniform: f64 = Open01.sample(random);
                *at -= *mean * uniform.ln();
                Some(at.round() as u64)
            }
            Source::Bursts {
                count,
                gap,
                period,
                burst,
                index,
            } => {
                let at = burst.checked_mul(*period)?.checked_add(*index * *gap)?;
                *index += 1;
                if index == count {
                    *index = 0;
                    *burst += 1;
                }
                Some(at)
            }
            Source::Trace { times, index } => {
                let at = times.get(*index).copied();
                *index += 1;
                at
            }
            Source::Nothing => None,
        }
    }
}

/// When a [`Stimulus::Level`] moves the pin, and to which level: low at 0, high after `low_cycles`, and so on.
pub fn levels(low_cycles: u64, high_cycles: u64) -> impl Iterator<Item = (u64, bool)> {
    let period = low_cycles.saturating_add(high_cycles);
    (0_u64..).map_while(move |k| {
        let start = (k / 2).checked_mul(period)?;
        if k % 2 == 0 {
            Some((start, false))
        } else {
            Some((start.checked_add(low_cycles)?, true))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: u64 = 4_000_000;

    fn edges(text: &str) -> Edges {
        Flood::parse(text, CLOCK).unwrap().stimulus.edges(CLOCK)
    }

    #[test]
    fn a_period_that_is_no_whole_number_of_cycles_does_not_drift() {
        // 4 MHz / 4.7 kHz = 851.06 cycles.
        let last = edges("INT0=4.7kHz").nth(4_700_000).unwrap();
        assert_eq!(last, 1000 * CLOCK);
    }

    #[test]
    fn a_phase_delays_the_first_edge() {
        assert_eq!(
            edges("INT0=1kHz:phase=10us").take(2).collect::<Vec<_>>(),
            [40, 4040]
        );
    }

    #[test]
    fn poisson_has_the_rate_and_repeats_with_its_seed() {
        let first: Vec<u64> = edges("INT0=poisson:20kHz:seed=1").take(20_000).collect();
        assert_eq!(
            first,
            edges("INT0=poisson:20kHz:seed=1")
                .take(20_000)
                .collect::<Vec<_>>()
        );
        assert_ne!(
            first,
            edges("INT0=poisson:20kHz:seed=2")
                .take(20_000)
                .collect::<Vec<_>>()
        );
        assert!(first.is_sorted());
        // 20 000 gaps: the mean's standard deviation is 0.7 %.
        let seconds = *first.last().unwrap() as f64 / CLOCK as f64;
        assert!((0.97..1.03).contains(&seconds), "{seconds}");
    }

    #[test]
    fn pairs_and_bursts_come_every_period() {
        assert_eq!(
            edges("INT0=pairs:2ms:gap=10us").take(4).collect::<Vec<_>>(),
            [0, 40, 8000, 8040]
        );
        assert_eq!(
            edges("INT0=bursts:3:gap=20us:period=1ms")
                .take(5)
                .collect::<Vec<_>>(),
            [0, 80, 160, 4000, 4080]
        );
    }

    #[test]
    fn levels_alternate() {
        assert_eq!(
            levels(400, 4000).take(4).collect::<Vec<_>>(),
            [(0, false), (400, true), (4400, false), (4800, true)]
        );
    }
}
