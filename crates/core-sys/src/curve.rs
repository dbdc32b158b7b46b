// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrival curves: the most requests that a limiter serves in any window of a given length, as
//! `CONTRACTS.md` promises.
//!
//! A window is closed: two requests served `t` ticks apart lie in a window of length `t`, so
//! `most(.., 0, ..)` counts the requests that may be served at one instant.

use crate::{Config, LimitPolicy, LimitTiming};

/// Returns the most requests served in any window of `window` ticks, if each expiry is served at
/// most `jitter` ticks after the armed instant. `None` means that there is no bound (policy off).
///
/// LIMIT-STRICT-1, LIMIT-PACED-1, LIMIT-BURSTY-1, LIMIT-BURSTY-2, LIMIT-BUCKET-1.
#[must_use]
pub fn most(config: &Config, window: u64, jitter: u64) -> Option<u64> {
    let interval = config.interval;
    let burst = u64::from(config.burst);
    // A limiter that is late by a whole interval starts again from the late instant.
    let late = window + jitter.min(interval - 1);
    Some(match (config.policy, config.timing) {
        (LimitPolicy::Off, _) => return None,
        (LimitPolicy::Strict, _) => 1 + window / interval,
        (LimitPolicy::Paced, _) => 1 + late / interval,
        (LimitPolicy::Bursty, LimitTiming::Eager | LimitTiming::Lazy) => {
            burst * (late / interval + 2)
        }
        (LimitPolicy::Bursty, LimitTiming::OneShot) => burst * (window / interval + 2) - 1,
        (LimitPolicy::Bucket, _) => burst + window / interval,
    })
}

/// LIMIT-CHANGE-1: returns the most requests served in any window that includes one change of the
/// configuration: the larger of the two curves for that length.
#[must_use]
pub fn most_across(before: &Config, after: &Config, window: u64, jitter: u64) -> Option<u64> {
    Some(most(before, window, jitter)?.max(most(after, window, jitter)?))
}

/// LIMIT-CHANGE-2: returns the most requests served in any window with any number of changes: the
/// curve of the shortest interval with the largest burst. `configs` are the configurations in force
/// during the window. They may differ only in interval, burst and lag.
#[must_use]
pub fn most_across_all(configs: &[Config], window: u64, jitter: u64) -> Option<u64> {
    let loosest = configs.iter().copied().reduce(|a, b| Config {
        interval: a.interval.min(b.interval),
        burst: a.burst.max(b.burst),
        ..a
    })?;
    most(&loosest, window, jitter)
}
