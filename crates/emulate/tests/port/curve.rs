// SPDX-License-Identifier: GPL-3.0-or-later
//! The arrival curves that core/ promises, in cycles.
use weir_core_sys::LimitPolicy;

/// Returns the most requests that may be served in `span` cycles, which include the jitter J:
/// LIMIT-*-1.
pub fn curve(policy: LimitPolicy, interval: u64, burst: u64, span: u64) -> u64 {
    match policy {
        LimitPolicy::Strict | LimitPolicy::Paced => 1 + span / interval,
        LimitPolicy::Bursty => burst * (span / interval + 2),
        LimitPolicy::Bucket => burst + span / interval,
        LimitPolicy::Off => u64::MAX,
    }
}
