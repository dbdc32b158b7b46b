// SPDX-License-Identifier: GPL-3.0-or-later
//! The arrival curves that core/ promises, in cycles.
use weir_core_sys::Policy;

/// The most requests that may be served in `span` cycles, J included: LIMIT-*-1.
pub fn curve(policy: Policy, interval: u64, burst: u64, span: u64) -> u64 {
    match policy {
        Policy::Strict | Policy::Paced => 1 + span / interval,
        Policy::Bursty => burst * (span / interval + 2),
        Policy::Bucket => burst + span / interval,
        Policy::Off => u64::MAX,
    }
}
