// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wraps the limiter of core/ for timers of 16, 32 and 64 bits. All times are in processor cycles,
//! not in timer ticks.

use weir_core_sys::{Action, Config, ConfigError, LimitTiming, Step, Trigger, W16, W32, W64};
use weir_model::{Limit, Policy, Timing};

/// The limiter's orders to its port. Times are cycles of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    pub serve: bool,
    pub ack: bool,
    pub mask: bool,
    pub unmask: bool,
    pub disarm: bool,
    /// The cycle at which the timer has to interrupt. `None` if the limiter arms
    /// nothing.
    pub arm: Option<u64>,
    /// The cycle whose passing the timer has to record. `None` if the limiter watches
    /// nothing.
    pub watch: Option<u64>,
}

/// The orders for a request of a source without a limit.
pub(crate) const SERVE: Orders = Orders {
    serve: true,
    ack: false,
    mask: false,
    unmask: false,
    disarm: false,
    arm: None,
    watch: None,
};

#[derive(Debug)]
enum WidthMachine {
    Bits16(weir_core_sys::Limiter<W16>),
    Bits32(weir_core_sys::Limiter<W32>),
    Bits64(weir_core_sys::Limiter<W64>),
}

macro_rules! each_width {
    ($machine:expr, $limiter:ident => $event:expr) => {
        match $machine {
            WidthMachine::Bits16($limiter) => $event,
            WidthMachine::Bits32($limiter) => $event,
            WidthMachine::Bits64($limiter) => $event,
        }
    };
}

/// A limiter and its timer.
#[derive(Debug)]
pub(crate) struct TimedLimiter {
    machine: WidthMachine,
    /// The cycles of a timer tick.
    tick: u64,
    bits: u32,
}

/// Returns the settings of the limiter of core/ for a limit, in timer ticks. Returns `None` for
/// polling, which needs no limiter.
#[must_use]
pub fn core_config(limit: &Limit, trigger: Trigger) -> Config {
    Config {
        policy: match limit.policy {
            Policy::Strict => weir_core_sys::LimitPolicy::Strict,
            Policy::Paced => weir_core_sys::LimitPolicy::Paced,
            Policy::Bursty => weir_core_sys::LimitPolicy::Bursty,
            Policy::Bucket => weir_core_sys::LimitPolicy::Bucket,
            Policy::Off | Policy::Poll => weir_core_sys::LimitPolicy::Off,
        },
        timing: match limit.timing {
            Timing::Eager => LimitTiming::Eager,
            Timing::Lazy => LimitTiming::Lazy,
            Timing::OneShot => LimitTiming::OneShot,
        },
        trigger,
        interval: limit.interval.ticks.max(1),
        lag: u64::from(limit.lag),
        burst: u8::try_from(limit.burst).unwrap_or(u8::MAX),
    }
}

impl TimedLimiter {
    /// Starts a limiter. Its timer is `bits` bits wide and has ticks of `tick` cycles. The limiter
    /// of core/ uses 16, 32 or 64 bits: a port extends any other width to the next larger one.
    ///
    /// # Errors
    /// Fails if the limit does not fit the timer.
    pub fn start(
        config: &Config,
        tick: u64,
        bits: u32,
        now: u64,
    ) -> Result<(Self, Orders), ConfigError> {
        let ticks = now / tick;
        let (machine, step, bits) = if bits <= 16 {
            let (limiter, step) = weir_core_sys::Limiter::start(config, ticks)?;
            (WidthMachine::Bits16(limiter), step, 16)
        } else if bits <= 32 {
            let (limiter, step) = weir_core_sys::Limiter::start(config, ticks)?;
            (WidthMachine::Bits32(limiter), step, 32)
        } else {
            let (limiter, step) = weir_core_sys::Limiter::start(config, ticks)?;
            (WidthMachine::Bits64(limiter), step, 64)
        };
        let limiter = Self {
            machine,
            tick,
            bits,
        };
        let orders = limiter.orders(step, now);
        Ok((limiter, orders))
    }

    /// Asks the limiter in the source's interrupt. `elapsed` says whether the watched cycle has
    /// passed.
    pub fn request(&mut self, now: u64, elapsed: bool) -> Orders {
        let ticks = now / self.tick;
        let step = each_width!(&mut self.machine, limiter => limiter.request(ticks, elapsed));
        self.orders(step, now)
    }

    /// Asks the limiter in the timer's interrupt. `pending` is the source's pending bit, or false
    /// if the port cannot serve requests in this interrupt.
    pub fn expired(&mut self, now: u64, pending: bool) -> Orders {
        let ticks = now / self.tick;
        let step = each_width!(&mut self.machine, limiter => limiter.expired(ticks, pending));
        self.orders(step, now)
    }

    fn orders(&self, step: Step, now: u64) -> Orders {
        let at = |wanted: Action| step.has(wanted).then(|| self.cycle_of(step.at, now));
        Orders {
            serve: step.has(Action::Serve),
            ack: step.has(Action::Ack),
            mask: step.has(Action::Mask),
            unmask: step.has(Action::Unmask),
            disarm: step.has(Action::Disarm),
            arm: at(Action::Arm),
            watch: at(Action::Watch),
        }
    }

    /// Returns the cycle at which the timer shows `at`. The result is `now` if `at` lies within
    /// half a wrap in the past, and otherwise the next such cycle.
    fn cycle_of(&self, at: u64, now: u64) -> u64 {
        let ticks = now / self.tick;
        let all = u64::MAX >> (64 - self.bits);
        let ahead = at.wrapping_sub(ticks) & all;
        if ahead > all / 2 {
            now
        } else {
            (ticks + ahead).saturating_mul(self.tick).max(now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(interval: u64) -> Config {
        Config {
            policy: weir_core_sys::LimitPolicy::Strict,
            timing: LimitTiming::Eager,
            trigger: Trigger::Edge,
            interval,
            lag: 0,
            burst: 1,
        }
    }

    #[test]
    fn instants_are_cycles_wherever_the_timer_wraps() {
        for bits in [16, 32, 64] {
            let before_the_wrap = 0xFFFF_u64 * 8 + 5;
            let (mut limiter, _) =
                TimedLimiter::start(&strict(1000), 8, bits, before_the_wrap).unwrap();
            let orders = limiter.request(before_the_wrap, false);
            assert!(orders.serve && orders.mask, "{bits}");
            assert_eq!(orders.arm, Some((0xFFFF + 1000) * 8), "{bits}");
        }
    }

    #[test]
    fn what_does_not_fit_the_timer_is_refused() {
        assert!(TimedLimiter::start(&strict(40_000), 1, 16, 0).is_err());
        for bits in [17, 24, 31, 32, 48] {
            assert!(
                TimedLimiter::start(&strict(40_000), 1, bits, 0).is_ok(),
                "{bits}"
            );
        }
    }
}
