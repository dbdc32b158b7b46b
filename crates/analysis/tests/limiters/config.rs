// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit of a system as the C machine is told it.

use weir_core_sys::{Config, Timing as CoreTiming, Trigger};
use weir_model::{Policy, Source, Timing};

/// What `source`'s limiter is configured with; the machine knows no polling, which has no limiter.
pub fn core_config(source: &Source, trigger: Trigger) -> Config {
    let limit = &source.limit;
    Config {
        policy: match limit.policy {
            Policy::Strict => weir_core_sys::Policy::Strict,
            Policy::Paced => weir_core_sys::Policy::Paced,
            Policy::Bursty => weir_core_sys::Policy::Bursty,
            Policy::Bucket => weir_core_sys::Policy::Bucket,
            Policy::Off | Policy::Poll => weir_core_sys::Policy::Off,
        },
        timing: match limit.timing {
            Timing::Eager => CoreTiming::Eager,
            Timing::Lazy => CoreTiming::Lazy,
            Timing::OneShot => CoreTiming::OneShot,
        },
        trigger,
        interval: (limit.interval / limit.tick).max(1),
        lag: u64::from(limit.lag),
        burst: u8::try_from(limit.burst).expect("a burst that the machine counts"),
    }
}
