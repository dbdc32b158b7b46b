// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limiter in silicon (rtl/limit): its parameters, the intervals that it can keep, and the
//! delay of its deliveries.
//!
//! The limiter has a phase of `phase_bits` bits for each source. In every tick the phase grows by
//! the rate in the source's register. When the phase overflows, the source may deliver again. So an
//! interval is exactly tick · ⌈2^`phase_bits` / rate⌉ clocks, and the interval of a file is rounded
//! up to the next of these (core/CONTRACTS.md, "limit in silicon").

use crate::system::Interval;

pub use crate::file::words::{SiliconForm, SiliconReset};

/// The block that enforces all limits in hardware of a system. It runs with the processor's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silicon {
    /// The number of sources that the block limits, 1 to 1,024. These are the sources with a limit
    /// in hardware, in the system's order.
    pub sources: u32,
    /// Where the state of the sources is kept.
    pub form: SiliconForm,
    /// The width of a phase in bits, 8 to 32.
    pub phase_bits: u32,
    /// The width of a rate in bits, 1 to `phase_bits`.
    pub rate_bits: u32,
    /// The width of a burst in bits, 0 to 8; with 0 only strict limits are possible.
    pub burst_bits: u32,
    /// The width of the count of held requests in bits, 0 to 16; with 0 they are not counted.
    pub held_bits: u32,
    /// The number of stages of each line's synchroniser: 0, 2 or 3.
    pub synchroniser: u32,
    /// How the block's registers are reset.
    pub reset: SiliconReset,
    /// Whether a delivery is a pulse of one clock. If not, it is held until it is acknowledged.
    pub pulses: bool,
    /// Whether rates and bursts can be read back.
    pub readback: bool,
    /// Whether each source has an enable bit for the user (regehr2005 §4).
    pub enables: bool,
    /// Whether the block reports the begin of an overload.
    pub overload: bool,
    /// Whether a source's limit can be locked until reset.
    pub lock: bool,
    /// Whether the block has inputs and outputs for streams of interrupt numbers.
    pub messages: bool,
    /// Whether the block passes lines through while its clock is stopped.
    pub bypass: bool,
    /// The address where the block's registers begin, a multiple of 64 KiB. `None` if the firmware
    /// that includes the generated header has to define it.
    pub base: Option<u32>,
}

/// The numbers of one limit in silicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiliconLimit {
    /// The interval in cycles that the file asks for. It is not more than the interval that
    /// results.
    pub asked: u64,
    /// The value of the limit's rate register.
    pub rate: u32,
    /// K: the most clocks from a request to its delivery, while the limiter is open.
    pub delay: u64,
    /// Whether the line requests as long as it is high. If not, it requests with each rising edge.
    pub is_level: bool,
}

/// The reason why the limiter cannot keep an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The interval is too long even for the slowest rate.
    TooLong {
        /// The fewest phase bits with which the interval is possible, 9 to 32; `None` if it never
        /// is.
        phase_bits: Option<u32>,
    },
    /// The interval is too short even for the fastest rate.
    TooShort {
        /// The fewest rate bits, up to the phase bits, with which the interval is possible; `None`
        /// if it never is.
        rate_bits: Option<u32>,
    },
}

/// The most sources that one block can limit.
pub const SILICON_SOURCES_MOST: u32 = 1024;
/// The most bits that a phase can have.
const PHASE_BITS_MOST: u32 = 32;

impl Silicon {
    /// Clocks between two steps of a phase: 1 if the state is in registers, the period of the scan
    /// if it is in memories.
    #[must_use]
    pub fn tick(&self) -> u64 {
        match self.form {
            SiliconForm::Registers => 1,
            SiliconForm::Memory => {
                (SCAN_GROUP + 1) * u64::from(self.sources).div_ceil(SCAN_GROUP).max(2)
            }
        }
    }

    /// The most clocks from a request to its delivery, while the limiter is open: K of
    /// LIMIT-SILICON-9. It does not include the time that an MSI waits to be accepted.
    #[must_use]
    pub fn delay(&self) -> u64 {
        let scan = match self.form {
            SiliconForm::Registers => 0,
            SiliconForm::Memory => self.tick() + SCAN_GROUP + 2,
        };
        u64::from(self.synchroniser) + LINE_STAGES + scan
    }

    /// The rate for the shortest interval of at least `cycles` clocks.
    ///
    /// # Errors
    /// Returns [`Misfit`] if no rate that the register can hold is slow enough, or if none is fast
    /// enough.
    pub fn rate(&self, cycles: u64) -> Result<u32, Misfit> {
        let ticks = cycles.div_ceil(self.tick()).max(1);
        let rate = fastest(ticks, self.phase_bits);
        if rate == 0 {
            let mut wider = self.phase_bits + 1..=PHASE_BITS_MOST;
            return Err(Misfit::TooLong {
                phase_bits: wider.find(|&bits| fastest(ticks, bits) > 0),
            });
        }
        match u32::try_from(rate) {
            Ok(rate) if u64::from(rate) <= most(self.rate_bits) => Ok(rate),
            _ => {
                let mut wider = self.rate_bits + 1..=self.phase_bits;
                Err(Misfit::TooShort {
                    rate_bits: wider.find(|&bits| rate <= most(bits)),
                })
            }
        }
    }

    /// The longest interval of at most `cycles` clocks; `None` if even the shortest is longer.
    #[must_use]
    pub fn interval_at_most(&self, cycles: u64) -> Option<u64> {
        let (longest, shortest) = self.range();
        let interval = match self.rate(cycles) {
            Err(Misfit::TooLong { .. }) => longest,
            Err(Misfit::TooShort { .. }) => shortest,
            Ok(rate) if self.interval(rate).cycles() == cycles => cycles,
            Ok(rate) if u64::from(rate) < most(self.rate_bits) => self.interval(rate + 1).cycles(),
            Ok(_) => return None,
        };
        (interval <= cycles).then_some(interval)
    }

    /// The interval that results from a rate of at least 1.
    #[must_use]
    pub fn interval(&self, rate: u32) -> Interval {
        let whole = 1_u64 << self.phase_bits.min(PHASE_BITS_MOST);
        Interval {
            ticks: whole.div_ceil(u64::from(rate.max(1))),
            tick: self.tick(),
        }
    }

    /// The longest and the shortest interval, in clocks.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let fastest = u32::try_from(most(self.rate_bits)).unwrap_or(u32::MAX);
        (self.interval(1).cycles(), self.interval(fastest).cycles())
    }
}

/// Clocks from a line's synchroniser to its output. The limiter sees an edge in one clock, notes
/// and delivers it in the next, and drives the output after that.
const LINE_STAGES: u64 = 3;
/// Sources that a scan visits in a row, one per clock, before it leaves one clock to the bus (GROUP
/// of rtl/limit/src/weir_limit_scan.sv).
const SCAN_GROUP: u64 = 8;

/// The largest number that has this many bits.
const fn most(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The largest rate with ⌈2^bits / rate⌉ ≥ `ticks`; 0 if there is none.
fn fastest(ticks: u64, bits: u32) -> u64 {
    let whole = 1_u64 << bits;
    match ticks {
        // With any rate, at least one tick passes before the phase overflows.
        0 | 1 => whole,
        // The condition is 2^bits / rate > ticks - 1.
        _ => whole.div_ceil(ticks - 1) - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn silicon(phase_bits: u32, rate_bits: u32) -> Silicon {
        Silicon {
            sources: 1,
            form: SiliconForm::Registers,
            phase_bits,
            rate_bits,
            burst_bits: 0,
            held_bits: 0,
            synchroniser: 2,
            reset: SiliconReset::Synchronous,
            pulses: true,
            readback: true,
            enables: true,
            overload: true,
            lock: true,
            messages: false,
            bypass: true,
            base: None,
        }
    }

    #[test]
    fn an_interval_is_the_next_that_a_rate_makes() {
        let silicon = silicon(14, 14);
        assert_eq!(silicon.rate(2), Ok(16_383));
        assert_eq!(silicon.rate(100), Ok(165));
        assert_eq!(silicon.interval(165).cycles(), 100);
        assert_eq!(silicon.rate(16_384), Ok(1));
        assert_eq!(silicon.interval(1).cycles(), 16_384);
        assert_eq!(silicon.range(), (16_384, 2));
    }

    #[test]
    fn what_does_not_fit_is_told_with_the_bits_that_would() {
        let narrow = silicon(14, 6);
        assert_eq!(
            narrow.rate(100),
            Err(Misfit::TooShort { rate_bits: Some(8) })
        );
        assert_eq!(
            narrow.rate(16_385),
            Err(Misfit::TooLong {
                phase_bits: Some(15)
            })
        );
        assert_eq!(
            narrow.rate((1 << 32) + 1),
            Err(Misfit::TooLong { phase_bits: None })
        );
        assert_eq!(
            silicon(32, 32).rate(1),
            Err(Misfit::TooShort { rate_bits: None })
        );
    }

    #[test]
    fn a_memory_counts_once_in_a_scan() {
        let memory = Silicon {
            sources: 64,
            form: SiliconForm::Memory,
            ..silicon(16, 16)
        };
        let rate = memory.rate(100_000).unwrap();
        assert_eq!(memory.tick(), 72);
        assert!(memory.interval(rate).cycles() >= 100_000 && memory.interval(rate).tick == 72);
        assert_eq!(memory.delay(), 2 + 3 + 72 + 10);
    }

    proptest! {
        #[test]
        fn a_rate_is_the_fastest_that_is_slow_enough(cycles in 1..1_u64 << 33, phase_bits in 8..33_u32, narrower in 0..8_u32) {
            let silicon = silicon(phase_bits, phase_bits - narrower);
            if let Ok(rate) = silicon.rate(cycles) {
                prop_assert!(rate >= 1 && silicon.interval(rate).cycles() >= cycles);
                // The next larger rate is too fast.
                prop_assert!(rate == u32::MAX || silicon.interval(rate + 1).cycles() < cycles);
                let below = silicon.interval_at_most(cycles);
                prop_assert!(below.is_none_or(|below| below <= cycles && silicon.rate(below).is_ok_and(|rate| silicon.interval(rate).cycles() == below)));
            } else {
                let (longest, shortest) = silicon.range();
                prop_assert!(cycles > longest || cycles <= shortest, "{cycles}: {longest} to {shortest}");
            }
        }
    }
}
