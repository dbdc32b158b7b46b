// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a flood, before the flood starts.
use std::fmt;
use std::sync::Arc;

use rand::distr::Uniform as Between;
use weir_model::{Duration, Rate};

use crate::arrivals::{ArrivalSource, Arrivals};
use crate::steps::{Alternation, Bursts, Mmpp, MmppState, Periodic, Poisson, Uniform};
use crate::text::{self, PatternError};
use crate::trace::Recording;

/// The significant digits of numbers that are shown to users.
const DIGITS: u8 = 4;

/// A pattern of arrivals. All times are cycles of the processor's clock, from the start of the run.
///
/// `Display` writes the text form, which [`Pattern::parse`] reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Arrival k (from 0) comes at `phase_cycles + k * clock / rate_hz`, rounded to the nearest
    /// cycle. The rounding errors do not add up.
    Periodic {
        /// Arrivals per second: more than zero, at most 10¹².
        rate_hz: f64,
        /// The cycle of the first arrival.
        phase_cycles: u64,
    },
    /// Gaps are exponentially distributed.
    Poisson {
        /// Arrivals per second on average: more than zero, at most 10¹².
        rate_hz: f64,
        /// The same seed gives the same arrivals. `None` means that the seed given to
        /// [`Pattern::start`] is used.
        seed: Option<u64>,
    },
    /// The two-state Markov-modulated Poisson process of zhang2006 §5. Bursts last for
    /// exponentially distributed times and contain a Poisson process, so that their number of
    /// arrivals is geometric, starting at 0. Exponentially distributed pauses separate the bursts.
    Mmpp {
        /// Arrivals per second within a burst: more than zero, at most 10¹².
        rate_hz: f64,
        /// The mean number of arrivals per burst, at least 1; 5000 in the paper.
        burst: u32,
        /// The mean length of a pause in cycles, at least 1.
        gap_cycles: u64,
        /// Arrivals per second in a pause, less than within a burst. `None` means that there are no
        /// arrivals in a pause.
        idle_hz: Option<f64>,
        /// The seed, as in [`Pattern::Poisson`].
        seed: Option<u64>,
    },
    /// Two arrivals close together, every period.
    Pairs {
        /// Cycles from the first arrival of a pair to the first arrival of the next pair; greater
        /// than the gap.
        period_cycles: u64,
        /// Cycles from the first arrival of a pair to its second arrival.
        gap_cycles: u64,
    },
    /// `count` arrivals close together, every period.
    Bursts {
        /// Arrivals per burst, at least 1.
        count: u32,
        /// Cycles between consecutive arrivals of a burst.
        gap_cycles: u64,
        /// Cycles from the first arrival of a burst to the first arrival of the next one; longer
        /// than the burst.
        period_cycles: u64,
    },
    /// Gaps are uniformly distributed whole numbers of cycles.
    Uniform {
        /// The shortest gap in cycles.
        min_cycles: u64,
        /// The longest gap in cycles.
        max_cycles: u64,
        /// The seed, as in [`Pattern::Poisson`].
        seed: Option<u64>,
    },
    /// The line has alternating levels, first low and then high. There are no requests.
    Level {
        /// Cycles for which the line is low.
        low_cycles: u64,
        /// Cycles for which the line is high.
        high_cycles: u64,
    },
    /// A list of requests that a program provides, in ascending order.
    Trace {
        /// The origin of the list, for messages.
        name: String,
        /// The cycles of the requests.
        times: Arc<[u64]>,
    },
    /// A recording in a file.
    File(Recording),
}

impl Pattern {
    /// Parses the text form. `clock_hz` converts times to cycles. The file of a trace is read
    /// completely now, and again while it is played.
    ///
    /// # Errors
    /// Fails for an unknown pattern, an invalid quantity, or an unreadable trace. The message says
    /// what would be right.
    pub fn parse(text: &str, clock_hz: u64) -> Result<Self, PatternError> {
        let pattern = text::parse(text.trim(), clock_hz)?;
        pattern.check()?;
        Ok(pattern)
    }

    /// Starts the arrivals. `clock_hz` must be the clock that was given to [`Self::parse`]. A
    /// random pattern without a seed of its own uses `seed`.
    ///
    /// # Errors
    /// Fails as [`Self::check`] does, for a clock of 0 Hz, and if a file cannot be opened again.
    #[expect(
        clippy::cast_precision_loss,
        reason = "clocks are far below 2^52; the mean of a random length to 16 digits"
    )]
    pub fn start(&self, clock_hz: u64, seed: u64) -> Result<Arrivals, PatternError> {
        self.check()?;
        if clock_hz == 0 {
            return impossible("a clock of 0 Hz does not run: give for example 4 MHz".to_owned());
        }
        let clock = clock_hz as f64;
        let source = match self {
            Self::Periodic {
                rate_hz,
                phase_cycles,
            } => ArrivalSource::Periodic(Periodic::new(*rate_hz, *phase_cycles, clock_hz)),
            Self::Poisson { rate_hz, seed: own } => {
                ArrivalSource::Poisson(Poisson::new(clock / rate_hz, own.unwrap_or(seed)))
            }
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => ArrivalSource::Bursts(Bursts::new(2, *gap_cycles, *period_cycles)),
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => ArrivalSource::Bursts(Bursts::new(*count, *gap_cycles, *period_cycles)),
            Self::Uniform {
                min_cycles,
                max_cycles,
                seed: own,
            } => ArrivalSource::Uniform(Uniform::new(
                gaps(*min_cycles, *max_cycles)?,
                own.unwrap_or(seed),
            )),
            Self::Level {
                low_cycles,
                high_cycles,
            } => ArrivalSource::Level(Alternation::new(*low_cycles, *high_cycles)),
            Self::Mmpp {
                rate_hz,
                burst,
                gap_cycles,
                idle_hz,
                seed: own,
            } => {
                let gap = clock / rate_hz;
                let burst = MmppState {
                    gap,
                    stay: gap * f64::from(*burst),
                };
                let pause = MmppState {
                    gap: idle_hz.map_or(f64::INFINITY, |idle| clock / idle),
                    stay: *gap_cycles as f64,
                };
                ArrivalSource::Mmpp(Mmpp::new(burst, pause, own.unwrap_or(seed)))
            }
            Self::Trace { times, .. } => ArrivalSource::Times {
                times: Arc::clone(times),
                index: 0,
            },
            Self::File(recording) => ArrivalSource::File(Box::new(recording.play(clock_hz)?)),
        };
        Ok(Arrivals::new(source))
    }

    /// Returns whether the arrivals are random and depend on the seed given to [`Self::start`].
    #[must_use]
    pub fn needs_seed(&self) -> bool {
        matches!(
            self,
            Self::Poisson { seed: None, .. }
                | Self::Uniform { seed: None, .. }
                | Self::Mmpp { seed: None, .. }
        )
    }

    /// Checks whether the pattern can be run: rates and periods are above zero, bursts are shorter
    /// than their period, and a trace is in order.
    ///
    /// # Errors
    /// The error says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), PatternError> {
        match self {
            Self::Periodic { rate_hz, .. } | Self::Poisson { rate_hz, .. } => {
                Rate::from_hertz(*rate_hz)?;
                Ok(())
            }
            Self::Mmpp {
                rate_hz,
                burst,
                gap_cycles,
                idle_hz,
                ..
            } => {
                Rate::from_hertz(*rate_hz)?;
                if *burst == 0 || *gap_cycles == 0 {
                    return impossible(
                        "a burst has at least 1 arrival on average, and the gap between bursts at least 1 cycle: write for example burst=5000:gap=100ms"
                            .to_owned(),
                    );
                }
                match idle_hz {
                    Some(idle) if Rate::from_hertz(*idle)?.hertz() >= *rate_hz => impossible(
                        "between bursts as much arrives as within them: make idle less than the rate"
                            .to_owned(),
                    ),
                    _ => Ok(()),
                }
            }
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => check_burst(2, *gap_cycles, *period_cycles),
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => check_burst(*count, *gap_cycles, *period_cycles),
            Self::Uniform {
                min_cycles,
                max_cycles,
                ..
            } => gaps(*min_cycles, *max_cycles).map(|_| ()),
            Self::Level { low_cycles: 0, .. } | Self::Level { high_cycles: 0, .. } => impossible(
                "a level that lasts 0 cycles is no level: give low and high at least 1 cycle"
                    .to_owned(),
            ),
            Self::Level { .. } => Ok(()),
            Self::Trace { name, times } => {
                match times.windows(2).position(|pair| pair[0] > pair[1]) {
                    Some(at) => impossible(format!(
                        "the trace {name} is out of order: edge {} at cycle {} comes after cycle {}",
                        at + 2,
                        times[at + 1],
                        times[at]
                    )),
                    None => Ok(()),
                }
            }
            Self::File(_) => Ok(()),
        }
    }
}

fn impossible<T>(what: String) -> Result<T, PatternError> {
    Err(PatternError::Impossible(what))
}

fn check_burst(count: u32, gap: u64, period: u64) -> Result<(), PatternError> {
    if count == 0 {
        return impossible("a burst of 0 edges is no burst: write at least bursts:1".to_owned());
    }
    if gap == 0 {
        return impossible(
            "edges 0 cycles apart are one edge: give a gap of at least 1 cycle".to_owned(),
        );
    }
    let lasts = gap.checked_mul(u64::from(count - 1));
    if lasts.is_none_or(|lasts| lasts >= period) {
        return impossible(format!(
            "{count} edges {gap} cycles apart do not fit into a period of {period} cycles: make the gap shorter or the period longer"
        ));
    }
    Ok(())
}

/// Returns the distribution of the gaps of a uniform pattern.
fn gaps(min: u64, max: u64) -> Result<Between<u64>, PatternError> {
    if min == 0 {
        return impossible(
            "arrivals 0 cycles apart are one arrival: let the shortest gap be at least 1 cycle"
                .to_owned(),
        );
    }
    Between::new_inclusive(min, max).or_else(|_| {
        impossible(format!(
            "no gap is between {min} and {max} cycles: write the shorter time first, for example uniform:10us..90us"
        ))
    })
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |hertz: f64| {
            Rate::from_hertz(hertz).map_or_else(|_| format!("{hertz}Hz"), |r| r.to_string())
        };
        self.write(f, &rate, &|cycles| Duration::Cycles(cycles).to_string())
    }
}

impl Pattern {
    /// Formats the pattern for users: the text form, but with times instead of cycles of a clock of
    /// `clock_hz`, and with four digits.
    #[must_use]
    pub fn told(&self, clock_hz: u64) -> String {
        let plain = |text: String| text.replace(' ', "");
        let hertz = clock_hz.max(1) as f64;
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(
            &mut text,
            &|hertz| plain(weir_report::rate(hertz, DIGITS)),
            &|cycles| plain(weir_report::time(cycles as f64 / hertz, DIGITS)),
        );
        text
    }

    /// Returns the text form of this pattern for a clock of 1 GHz. `cycle_ns` is the length of a
    /// cycle of the pattern's own clock in nanoseconds.
    #[must_use]
    pub fn in_nanoseconds(&self, cycle_ns: u64) -> String {
        let rate = |hertz: f64| {
            Rate::from_hertz(hertz).map_or_else(|_| format!("{hertz}Hz"), |r| r.to_string())
        };
        let time = |cycles: u64| format!("{}ns", cycles.saturating_mul(cycle_ns));
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(&mut text, &rate, &time);
        text
    }

    fn write(
        &self,
        f: &mut impl fmt::Write,
        rate: &dyn Fn(f64) -> String,
        time: &dyn Fn(u64) -> String,
    ) -> fmt::Result {
        match self {
            Self::Periodic {
                rate_hz,
                phase_cycles: 0,
            } => f.write_str(&rate(*rate_hz)),
            Self::Periodic {
                rate_hz,
                phase_cycles,
            } => write!(f, "{}:phase={}", rate(*rate_hz), time(*phase_cycles)),
            Self::Poisson { rate_hz, seed } => {
                write!(f, "poisson:{}{}", rate(*rate_hz), Seed(*seed))
            }
            Self::Pairs {
                period_cycles,
                gap_cycles,
            } => {
                write!(
                    f,
                    "pairs:{}:gap={}",
                    time(*period_cycles),
                    time(*gap_cycles)
                )
            }
            Self::Bursts {
                count,
                gap_cycles,
                period_cycles,
            } => {
                write!(
                    f,
                    "bursts:{count}:gap={}:period={}",
                    time(*gap_cycles),
                    time(*period_cycles)
                )
            }
            Self::Uniform {
                min_cycles,
                max_cycles,
                seed,
            } => {
                write!(
                    f,
                    "uniform:{}..{}{}",
                    time(*min_cycles),
                    time(*max_cycles),
                    Seed(*seed)
                )
            }
            Self::Level {
                low_cycles,
                high_cycles,
            } => {
                write!(
                    f,
                    "level:low={}:high={}",
                    time(*low_cycles),
                    time(*high_cycles)
                )
            }
            Self::Mmpp {
                rate_hz,
                burst,
                gap_cycles,
                idle_hz,
                seed,
            } => {
                write!(
                    f,
                    "mmpp:{}:burst={burst}:gap={}",
                    rate(*rate_hz),
                    time(*gap_cycles)
                )?;
                if let Some(idle) = idle_hz {
                    write!(f, ":idle={}", rate(*idle))?;
                }
                write!(f, "{}", Seed(*seed))
            }
            Self::Trace { name, .. } => write!(f, "trace:{name}"),
            Self::File(recording) => write!(f, "trace:{recording}"),
        }
    }
}

/// Formats the seed as a part of the text form, if there is a seed.
struct Seed(Option<u64>);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |seed| write!(f, ":seed={seed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::What;

    const CLOCK: u64 = 4_000_000;

    fn times(text: &str) -> impl Iterator<Item = u64> {
        Pattern::parse(text, CLOCK)
            .unwrap()
            .start(CLOCK, 7)
            .unwrap()
            .map(|arrival| arrival.at)
    }

    #[test]
    fn a_period_that_is_no_whole_number_of_cycles_does_not_drift() {
        // 4 MHz / 4.7 kHz = 851.06 cycles.
        let last = times("4.7kHz").nth(4_700_000).unwrap();
        assert_eq!(last, 1000 * CLOCK);
    }

    #[test]
    fn a_pattern_in_nanoseconds_is_the_same_at_another_clock() {
        let cycle_ns = 1_000_000_000 / CLOCK;
        for text in [
            "20kHz:phase=10us",
            "pairs:2ms:gap=10us",
            "bursts:16:gap=20us:period=25ms",
            "level:low=100us:high=1ms",
        ] {
            let pattern = Pattern::parse(text, CLOCK).unwrap();
            let other = Pattern::parse(&pattern.in_nanoseconds(cycle_ns), 1_000_000_000).unwrap();
            let later = other.start(1_000_000_000, 7).unwrap().take(40);
            let now = pattern.start(CLOCK, 7).unwrap().take(40);
            assert!(
                now.map(|arrival| arrival.at * cycle_ns)
                    .eq(later.map(|arrival| arrival.at)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_phase_delays_the_first_arrival() {
        assert_eq!(
            times("1kHz:phase=10us").take(2).collect::<Vec<_>>(),
            [40, 4040]
        );
    }

    #[test]
    fn pairs_and_bursts_come_every_period() {
        assert_eq!(
            times("pairs:2ms:gap=10us").take(4).collect::<Vec<_>>(),
            [0, 40, 8000, 8040]
        );
        assert_eq!(
            times("bursts:3:gap=20us:period=1ms")
                .take(5)
                .collect::<Vec<_>>(),
            [0, 80, 160, 4000, 4080]
        );
    }

    #[test]
    fn levels_alternate() {
        let level = Pattern::parse("level:low=100us:high=1ms", CLOCK).unwrap();
        let moves = level.start(CLOCK, 0).unwrap();
        assert_eq!(
            moves
                .take(4)
                .map(|arrival| (arrival.at, arrival.what))
                .collect::<Vec<_>>(),
            [
                (0, What::Fall),
                (400, What::Rise),
                (4400, What::Fall),
                (4800, What::Rise)
            ]
        );
    }
}
