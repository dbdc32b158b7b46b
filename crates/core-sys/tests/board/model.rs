// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of the policies from first principles: may a request be served now, given the instants
//! of all earlier services? The model assumes expiries without latency, a user who leaves the
//! source on, and a configuration that does not change.

use super::Served;
use weir_core_sys::{Config, LimitPolicy, LimitTiming};

/// Orders events within an instant: first those before the due expiries, then those after them.
fn order(at: u64, after_expiry: bool) -> u64 {
    2 * at + u64::from(after_expiry)
}

/// Returns whether a bursty limiter may serve at `now`, given the services since `start`.
fn may_serve_bursty(config: &Config, start: u64, served: &[Served], now: u64) -> bool {
    let burst = u64::from(config.burst);
    match config.timing {
        LimitTiming::Eager => {
            // Eager: the count is cleared at each multiple of the period.
            let done = (now / 2 - start) / config.interval;
            let cleared = order(start + done * config.interval, true);
            let cleared = if cleared <= now {
                cleared
            } else {
                cleared - 2 * config.interval
            };
            let count = served
                .iter()
                .filter(|served| order(served.at, served.after_expiry) >= cleared)
                .count();
            (count as u64) < burst
        }
        LimitTiming::Lazy => {
            // Lazy: a period ends when a request comes after its end. It ends at its end if a
            // request waits or the source is masked then. When the burst is used up, the source is
            // masked at once only if the previous period ended with a waiting request.
            let (mut cleared, mut count, mut sustained, mut masked) = (start, 0, false, false);
            for served in served {
                if count == burst {
                    cleared = if masked {
                        cleared + config.interval
                    } else {
                        served.at
                    };
                    (count, sustained) = (0, served.by_expiry);
                }
                count += 1;
                masked = count == burst && sustained && served.at < cleared + config.interval;
            }
            let end = cleared + config.interval;
            count < burst
                || if masked {
                    now >= order(end, true)
                } else {
                    now >= order(end, false)
                }
        }
        LimitTiming::OneShot => {
            // One-shot: the count is cleared one period after the first request of a burst.
            let mut burst_began = None;
            let mut count = 0;
            for served in served {
                let at = order(served.at, served.after_expiry);
                if burst_began.is_none_or(|began: u64| at >= order(began + config.interval, true)) {
                    burst_began = Some(served.at);
                    count = 0;
                }
                count += 1;
            }
            count < burst
                || burst_began.is_some_and(|began| now >= order(began + config.interval, true))
        }
    }
}

/// Returns whether a request may be served at `now`.
pub fn may_serve(
    config: &Config,
    start: u64,
    served: &[Served],
    now: u64,
    after_expiry: bool,
) -> bool {
    let burst = u64::from(config.burst);
    let fits = |tokens: u64| {
        let total = served.len() as u64 + 1;
        served
            .iter()
            .zip(0..)
            .all(|(first, i)| total - i <= tokens + (now - first.at) / config.interval)
    };
    match config.policy {
        LimitPolicy::Off => true,
        LimitPolicy::Strict | LimitPolicy::Paced => fits(1),
        LimitPolicy::Bucket => fits(burst),
        LimitPolicy::Bursty => may_serve_bursty(config, start, served, order(now, after_expiry)),
    }
}
