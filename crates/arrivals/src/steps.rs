// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the next arrival in whole cycles. The remaining fraction of a cycle is carried over to
//! the next step, so that rates do not drift.
use rand::SeedableRng;
use rand::distr::{Distribution, Open01, Uniform as Between};
use rand_chacha::ChaCha8Rng;

use crate::arrivals::{Arrival, LATEST, What};

/// Arrival k (from 0) comes at `phase + k * clock / rate`, rounded to the nearest cycle. The
/// computation is exact, because a rate is a fraction.
pub(crate) struct Periodic {
    /// The next arrival. `None` after the last one before [`LATEST`].
    at: Option<u64>,
    /// The period is `cycles + over / parts` cycles.
    cycles: u64,
    over: u64,
    parts: u64,
    /// The accumulated fraction of a cycle, in units of `1 / parts`. It starts at one half, so that
    /// instants are rounded to the nearest cycle.
    carried: u64,
}

impl Periodic {
    /// `rate_hz` is a [`Rate`](weir_model::Rate): more than zero and at most 10¹².
    pub fn new(rate_hz: f64, phase: u64, clock_hz: u64) -> Self {
        let (numerator, denominator) = fraction(rate_hz);
        // If the product does not fit 128 bits, the period is longer than 2^73 cycles.
        let (cycles, over) = match u128::from(clock_hz).checked_mul(denominator) {
            Some(product) => (
                u64::try_from(product / u128::from(numerator)).unwrap_or(LATEST),
                product % u128::from(numerator),
            ),
            None => (LATEST, 0),
        };
        Self {
            at: Some(phase),
            cycles,
            // The remainder is less than the divisor, which fits 64 bits.
            over: u64::try_from(over).unwrap_or(0),
            parts: numerator,
            carried: numerator / 2,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        let now = self.at?;
        self.carried += self.over;
        let mut cycles = self.cycles;
        if self.carried >= self.parts {
            self.carried -= self.parts;
            cycles += 1;
        }
        self.at = now.checked_add(cycles);
        Some(now)
    }
}

/// Converts a positive rate to an exact fraction: a numerator below 2^54 and a denominator that is
/// a power of two.
fn fraction(rate_hz: f64) -> (u64, u128) {
    // Multiplication by two is exact. 128 multiplications suffice for any rate with a second
    // arrival before [`LATEST`].
    let mut scaled = rate_hz;
    let mut denominator = 1_u128;
    while scaled.fract() != 0.0 && denominator < 1 << 126 {
        scaled *= 2.0;
        denominator *= 2;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and either at most 1e12 or a fraction times two, which has 53 digits"
    )]
    let numerator = (scaled as u64).max(1);
    (numerator, denominator)
}

/// An instant that advances by fractional numbers of cycles.
struct Position {
    at: u64,
    /// The fraction of a cycle after `at`. It starts at one half, so that instants are rounded to
    /// the nearest cycle.
    fraction: f64,
}

impl Position {
    const START: Self = Self {
        at: 0,
        fraction: 0.5,
    };

    /// Advances by `cycles`, which is not negative. The instant saturates at the largest u64.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "not negative; saturates beyond the end of time; whole numbers below 2^53 are exact, and larger ones have no fraction"
    )]
    fn advance(&mut self, cycles: f64) -> u64 {
        let sum = self.fraction + cycles;
        let whole = sum as u64;
        self.fraction = sum - whole as f64;
        self.at = self.at.saturating_add(whole);
        self.at
    }
}

/// Draws a number from the exponential distribution with mean 1, by inversion: at least 0 and less
/// than 37.
#[inline]
fn exponential(random: &mut ChaCha8Rng) -> f64 {
    let uniform: f64 = Open01.sample(random);
    -libm::log(uniform)
}

/// Exponentially distributed gaps. The first gap comes before the first arrival.
pub(crate) struct Poisson {
    /// The mean gap in cycles.
    mean: f64,
    position: Position,
    random: ChaCha8Rng,
}

impl Poisson {
    pub fn new(mean_cycles: f64, seed: u64) -> Self {
        Self {
            mean: mean_cycles,
            position: Position::START,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        Some(
            self.position
                .advance(self.mean * exponential(&mut self.random)),
        )
    }
}

/// The two-state Markov-modulated Poisson process (MMPP-2) of zhang2006 §5. Bursts last for
/// exponentially distributed times and contain a Poisson process, so that their number of arrivals
/// is geometric. The pauses between them last for exponentially distributed times, too. A pause has
/// a Poisson process of its own or no arrivals.
pub(crate) struct Mmpp {
    now: MmppState,
    other: MmppState,
    /// The remaining cycles of the current state.
    left: f64,
    position: Position,
    random: ChaCha8Rng,
}

/// A state of an [`Mmpp`].
#[derive(Clone, Copy)]
pub(crate) struct MmppState {
    /// The mean gap between arrivals in cycles. It is infinite if the state has no arrivals.
    pub gap: f64,
    /// The mean duration of the state in cycles.
    pub stay: f64,
}

impl Mmpp {
    /// Starts in a burst or a pause with the probabilities of the stationary process, so that the
    /// mean rate holds from the start.
    pub fn new(burst: MmppState, pause: MmppState, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let uniform: f64 = Open01.sample(&mut random);
        let (now, other) = if uniform * (burst.stay + pause.stay) < burst.stay {
            (burst, pause)
        } else {
            (pause, burst)
        };
        Self {
            now,
            other,
            left: now.stay * exponential(&mut random),
            position: Position::START,
            random,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        // A gap that exceeds the state is drawn again in the next state, because an exponential
        // distribution has no memory.
        loop {
            let gap = self.now.gap * exponential(&mut self.random);
            if gap < self.left {
                self.left -= gap;
                return Some(self.position.advance(gap));
            }
            // With extreme rates a state may last for almost no time, so that no arrival ever
            // comes.
            if self.position.advance(self.left) >= LATEST {
                return None;
            }
            std::mem::swap(&mut self.now, &mut self.other);
            self.left = self.now.stay * exponential(&mut self.random);
        }
    }
}

/// Uniformly distributed gaps. The first gap comes before the first arrival.
pub(crate) struct Uniform {
    at: u64,
    gap: Between<u64>,
    random: ChaCha8Rng,
}

impl Uniform {
    pub fn new(gap: Between<u64>, seed: u64) -> Self {
        Self {
            at: 0,
            gap,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        self.at = self.at.saturating_add(self.gap.sample(&mut self.random));
        Some(self.at)
    }
}

/// Bursts of `count` arrivals with gaps of `gap` cycles, once every `period` cycles.
pub(crate) struct Bursts {
    count: u64,
    gap: u64,
    period: u64,
    /// The cycle at which the current burst begins.
    begin: u64,
    /// The index of the next arrival within the burst.
    index: u64,
}

impl Bursts {
    /// Makes the stream. The burst must be shorter than the period.
    pub fn new(count: u32, gap: u64, period: u64) -> Self {
        Self {
            count: u64::from(count),
            gap,
            period,
            begin: 0,
            index: 0,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        let at = self.begin.checked_add(self.index * self.gap)?;
        self.index += 1;
        if self.index == self.count {
            self.index = 0;
            self.begin = self.begin.saturating_add(self.period);
        }
        Some(at)
    }
}

/// Alternating levels: low from cycle 0, then high, and so on.
pub(crate) struct Alternation {
    low: u64,
    high: u64,
    at: u64,
    is_high: bool,
}

impl Alternation {
    pub fn new(low: u64, high: u64) -> Self {
        Self {
            low,
            high,
            at: 0,
            is_high: false,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Arrival> {
        let (what, lasts) = if self.is_high {
            (What::Rise, self.high)
        } else {
            (What::Fall, self.low)
        };
        let now = Arrival { at: self.at, what };
        self.at = self.at.saturating_add(lasts);
        self.is_high = !self.is_high;
        Some(now)
    }
}
