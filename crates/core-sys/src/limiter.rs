// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limiter of core/. A type parameter chooses the tick width.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::limit_ffi::{self as ffi, Functions, RawLimit, RawRecord, RawStep};

/// The policies of a limit (regehr2005 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LimitPolicy {
    /// Every request is served.
    Off = 0,
    /// A minimum interarrival time, counted from the previous service.
    Strict = 1,
    /// A minimum interarrival time, counted from the nominal instant of the previous service.
    Paced = 2,
    /// `burst` requests per period of a timer.
    Bursty = 3,
    /// A token bucket.
    Bucket = 4,
}

/// When a limiter masks its source, and which timer interrupts it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LimitTiming {
    /// The limiter masks the source as soon as the next request would be too early. With bursty,
    /// the timer that clears the count always interrupts.
    Eager = 0,
    /// The limiter masks the source only when a request has come too early. With bursty, the timer
    /// interrupts only while the source is masked.
    Lazy = 1,
    /// Bursty only: the first request of a burst starts the timer (regehr2005 §4).
    OneShot = 2,
}

/// The source's interrupt condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Trigger {
    /// Edge-triggered, with a pending bit that survives masking.
    Edge = 0,
    /// Edge-triggered, without a pending bit.
    EdgeUnlatched = 1,
    /// Level-triggered.
    Level = 2,
}

/// The configuration of a limiter: `weir_limit_config_t`, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The policy of the limit.
    pub policy: LimitPolicy,
    /// When the source is masked, and which timer interrupts the limiter takes.
    pub timing: LimitTiming,
    /// The source's interrupt condition.
    pub trigger: Trigger,
    /// The minimum interarrival time T, or the period P of bursty, in ticks; at least 1.
    pub interval: u64,
    /// The ticks by which the one-shot timer is set early. Must be 0 unless the policy is strict
    /// and the timing eager.
    pub lag: u64,
    /// The burst size N, 1 to 255. Must be 1 with strict and paced.
    pub burst: u8,
}

/// Why a configuration or a change of it is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The timing is one-shot, but the policy is not bursty.
    Policy,
    /// The interval is 0, or `burst` intervals are at least half a wrap of the ticks.
    Interval,
    /// The burst is 0, or it is not 1 with strict or paced.
    Burst,
    /// The lag is not below the interval, or it is not 0 although the limiter is not strict and
    /// eager.
    Lag,
    /// The change affects other settings than interval, burst and lag.
    Change,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ConfigError::Policy => "one-shot timing goes with the bursty policy only",
            ConfigError::Interval => "the interval must be at least 1 tick, and the burst's intervals must stay below half a wrap of the timer",
            ConfigError::Burst => "the burst must be 1 to 255, and 1 with strict and paced",
            ConfigError::Lag => "the lag must be below the interval, and 0 with any policy but strict and eager",
            ConfigError::Change => "a change at run time may touch interval, burst and lag only",
        })
    }
}

impl std::error::Error for ConfigError {}

fn result(code: u32) -> Result<(), ConfigError> {
    match code {
        0 => Ok(()),
        1 => Err(ConfigError::Policy),
        2 => Err(ConfigError::Interval),
        3 => Err(ConfigError::Burst),
        4 => Err(ConfigError::Lag),
        _ => Err(ConfigError::Change),
    }
}

/// An action of a [`Step`], as a bit mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    /// Run the handler.
    Serve = 0x01,
    /// Clear the pending bit, before the handler runs.
    Ack = 0x02,
    /// Clear the source's enable bit.
    Mask = 0x04,
    /// Set the source's enable bit.
    Unmask = 0x08,
    /// Set the timer to interrupt at [`Step::at`].
    Arm = 0x10,
    /// Set the timer to record, without an interrupt, that [`Step::at`] has passed.
    Watch = 0x20,
    /// Cancel the timer's interrupt.
    Disarm = 0x40,
}

/// The actions that the port performs next: `weir_limit_step_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Step {
    actions: u32,
    /// The instant to arm or to watch, modulo the width. Undefined if the step does neither.
    pub at: u64,
}

impl Step {
    /// Returns whether the step contains this action.
    #[must_use]
    pub fn has(self, action: Action) -> bool {
        self.actions & action as u32 != 0
    }
}

/// The record of a source: `weir_limit_record_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Interrupts for which the port asked the limiter, and requests that an expiry took from the
    /// pending bit.
    pub taken: u32,
    /// Interrupts that ran the handler.
    pub served: u32,
    /// How often the limiter masked the source.
    pub masked_intervals: u32,
    /// The number of overloads that began.
    pub overloads: u32,
    /// The longest time for which the source was masked, in ticks. The value saturates at half a
    /// wrap.
    pub longest_masked: u64,
    /// The longest run of the handler in ticks.
    pub longest_handler: u64,
    /// The instant at which the first overload began. Valid only if `overloads` is not 0.
    pub first_overload: u64,
    /// The instant at which the last overload began. Valid only if `overloads` is not 0.
    pub last_overload: u64,
}

mod functions_of {
    /// Restricts [`super::Width`] to the widths for which the C file is compiled.
    pub trait FunctionsOf {
        /// Returns the C functions for this width.
        fn functions() -> &'static super::Functions;
    }
}

/// A tick width.
pub trait Width: functions_of::FunctionsOf + Copy {
    /// The number of bits of an instant.
    const BITS: u32;

    /// Reduces an instant or a time span modulo the width.
    #[must_use]
    fn wrap(instant: u64) -> u64 {
        instant & (u64::MAX >> (64 - Self::BITS))
    }
}

/// 16-bit ticks, with a record.
#[derive(Clone, Copy, Debug)]
pub struct W16;
/// 32-bit ticks, with a record.
#[derive(Clone, Copy, Debug)]
pub struct W32;
/// 64-bit ticks, with a record.
#[derive(Clone, Copy, Debug)]
pub struct W64;
/// A tick width of a limiter that keeps no record (`WEIR_LIMIT_RECORD` 0).
#[derive(Clone, Copy, Debug)]
pub struct Bare<W>(PhantomData<W>);

macro_rules! width {
    ($type:ty, $bits:literal, $functions:ident) => {
        impl functions_of::FunctionsOf for $type {
            fn functions() -> &'static Functions {
                &ffi::$functions
            }
        }
        impl Width for $type {
            const BITS: u32 = $bits;
        }
    };
}
width!(W16, 16, BITS16);
width!(W32, 32, BITS32);
width!(W64, 64, BITS64);
width!(Bare<W16>, 16, BARE16);
width!(Bare<W32>, 32, BARE32);
width!(Bare<W64>, 64, BARE64);

const WORDS: usize = 20;

/// A limiter. A clone is an independent limiter in the same state. Instants are reduced modulo the
/// width.
#[derive(Clone, Debug)]
pub struct Limiter<W: Width> {
    /// A `weir_limit_t`. [`Limiter::start`] checks that its size and alignment fit.
    memory: [u64; WORDS],
    width: PhantomData<W>,
}

impl Config {
    fn raw(&self) -> RawLimit {
        RawLimit {
            interval: self.interval,
            lag: self.lag,
            burst: self.burst,
            policy: self.policy as u8,
            timing: self.timing as u8,
            trigger: self.trigger as u8,
        }
    }

    /// Calls `weir_limit_check()` for the width `W`.
    ///
    /// # Errors
    /// Fails if the configuration is not valid, or if the interval or the lag does not fit the
    /// width.
    pub fn check<W: Width>(&self) -> Result<(), ConfigError> {
        if W::wrap(self.interval) != self.interval {
            return Err(ConfigError::Interval);
        }
        if W::wrap(self.lag) != self.lag {
            return Err(ConfigError::Lag);
        }
        let raw = self.raw();
        // SAFETY: `raw` lives through the call; both sides assert its layout.
        result(unsafe { (W::functions().check)(&raw const raw) })
    }
}

impl<W: Width> Limiter<W> {
    fn pointer(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    fn call(&mut self, event: impl FnOnce(*mut c_void, *mut RawStep)) -> Step {
        let mut raw = RawStep::default();
        event(self.pointer(), &raw mut raw);
        Step {
            actions: raw.actions,
            at: raw.at,
        }
    }

    /// Calls `weir_limit_start()`. At the start no request has been served, and the source is
    /// unmasked.
    ///
    /// # Errors
    /// Fails as [`Config::check`] does.
    pub fn start(config: &Config, now: u64) -> Result<(Self, Step), ConfigError> {
        config.check::<W>()?;
        // SAFETY: both functions take no argument and touch no memory.
        let (size, alignment) = unsafe { ((W::functions().size)(), (W::functions().alignment)()) };
        assert!(
            size <= WORDS * 8 && alignment <= align_of::<u64>(),
            "weir_limit_t has outgrown WORDS"
        );
        let mut limiter = Limiter {
            memory: [0; WORDS],
            width: PhantomData,
        };
        let raw = config.raw();
        // SAFETY: `limit` points to at least `size` bytes of suitable alignment (asserted above);
        // `raw` and `step` live through the call.
        let step = limiter.call(|limit, step| unsafe {
            (W::functions().start)(limit, &raw const raw, now, step)
        });
        Ok((limiter, step))
    }

    /// Calls `weir_limit_request_with()`: the source's interrupt was taken. `elapsed` says whether
    /// the port has recorded that the watched instant has passed.
    pub fn request(&mut self, now: u64, elapsed: bool) -> Step {
        // SAFETY: `limit` is a weir_limit_t that `start` initialised.
        self.call(|limit, step| unsafe { (W::functions().request)(limit, now, elapsed, step) })
    }

    /// Calls `weir_limit_refused()`: the source's interrupt was taken although the source is off.
    pub fn refused(&mut self, now: u64) -> Step {
        // SAFETY: as in `request`.
        self.call(|limit, step| unsafe { (W::functions().refused)(limit, now, step) })
    }

    /// Calls `weir_limit_expired()`: the timer has expired. `pending` is the source's pending bit.
    pub fn expired(&mut self, now: u64, pending: bool) -> Step {
        // SAFETY: as in `request`.
        self.call(|limit, step| unsafe { (W::functions().expired)(limit, now, pending, step) })
    }

    /// Calls `weir_limit_tick()`, for ports that have a periodic tick instead of a timer. `pending`
    /// is the source's pending bit.
    pub fn tick(&mut self, now: u64, pending: bool) -> Step {
        // SAFETY: as in `request`.
        self.call(|limit, step| unsafe { (W::functions().tick)(limit, now, pending, step) })
    }

    /// Calls `weir_limit_user_enable()`: the user enables the source.
    pub fn user_enable(&mut self, now: u64) -> Step {
        // SAFETY: as in `request`.
        self.call(|limit, step| unsafe { (W::functions().user_enable)(limit, now, step) })
    }

    /// Calls `weir_limit_user_disable()`: the user disables the source.
    pub fn user_disable(&mut self) -> Step {
        // SAFETY: as in `request`.
        self.call(|limit, step| unsafe { (W::functions().user_disable)(limit, step) })
    }

    /// Calls `weir_limit_reconfigure()`: changes interval, burst and lag.
    ///
    /// # Errors
    /// Fails as [`Config::check`] does, or with [`ConfigError::Change`], and then changes nothing.
    pub fn reconfigure(&mut self, to: &Config, now: u64) -> Result<Step, ConfigError> {
        to.check::<W>()?;
        let raw = to.raw();
        let mut code = 0;
        // SAFETY: as in `request`; `raw` lives through the call.
        let step = self.call(|limit, step| {
            code = unsafe { (W::functions().reconfigure)(limit, &raw const raw, now, step) }
        });
        result(code).map(|()| step)
    }

    /// Calls `weir_limit_age()`, so that old instants are not misread after the ticks wrap.
    pub fn age(&mut self, now: u64) {
        // SAFETY: as in `request`.
        unsafe { (W::functions().age)(self.pointer(), now) }
    }

    /// Calls `weir_limit_elapsed()`: the port has recorded that the watched instant has passed.
    pub fn elapsed(&mut self) {
        // SAFETY: as in `request`.
        unsafe { (W::functions().elapsed)(self.pointer()) }
    }

    /// Calls `weir_limit_done()`: a handler ran from `begin` to `now`.
    pub fn done(&mut self, begin: u64, now: u64) {
        // SAFETY: as in `request`.
        unsafe { (W::functions().done)(self.pointer(), begin, now) }
    }

    /// Calls `weir_limit_is_on()`: returns whether both the user and the limiter want the source
    /// on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        // SAFETY: as in `request`; the function only reads.
        unsafe { (W::functions().is_on)(self.memory.as_ptr().cast()) }
    }

    /// Calls `weir_limits_next()`: returns the earliest instant, modulo the width, at which one of
    /// at most 255 limiters has to expire.
    ///
    /// # Panics
    /// Panics with more than 255 limiters.
    #[must_use]
    pub fn next(limiters: &[&Self], now: u64) -> Option<u64> {
        let pointers: Vec<*const c_void> = limiters
            .iter()
            .map(|limiter| limiter.memory.as_ptr().cast())
            .collect();
        let count = u8::try_from(pointers.len()).expect("at most 255 limiters share a timer");
        let mut at = 0;
        // SAFETY: `pointers` holds `count` pointers to started limiters, borrowed through the call.
        unsafe { (W::functions().next)(pointers.as_ptr(), count, now, &raw mut at) }.then_some(at)
    }

    /// Returns the record, or `None` if this width keeps none.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        let mut raw = RawRecord::default();
        // SAFETY: as in `request`; `raw` lives through the call.
        let kept = unsafe { (W::functions().record)(self.memory.as_ptr().cast(), &raw mut raw) };
        kept.then_some(Record {
            taken: raw.taken,
            served: raw.served,
            masked_intervals: raw.masked_intervals,
            overloads: raw.overloads,
            longest_masked: raw.longest_masked,
            longest_handler: raw.longest_handler,
            first_overload: raw.first_overload,
            last_overload: raw.last_overload,
        })
    }
}
