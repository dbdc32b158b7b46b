// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests limits in silicon: compares the curves of docs/analysis.md, "A limited source", with
//! numbers computed by hand.

use crate::common::{CLOCK, level, no_limit, source};
use weir_analysis::limiter::{Body, Window, tasks};
use weir_model::{Interval, Limit, Place, Policy, SiliconLimit, Timing};

/// T and K of docs/analysis.md, in clocks.
const INTERVAL: u64 = 120;
const DELAY: u64 = 5;

fn limit(policy: Policy, burst: u32, is_level: bool) -> Limit {
    Limit {
        policy,
        timing: if policy == Policy::Bursty {
            Timing::OneShot
        } else {
            Timing::Eager
        },
        place: Place::Hardware,
        interval: Interval::of_cycles(INTERVAL),
        burst,
        silicon: Some(SiliconLimit {
            asked: INTERVAL,
            rate: 1,
            delay: DELAY,
            is_level,
        }),
        ..no_limit()
    }
}

/// The most deliveries in windows of these lengths, for a source that requests at most every
/// `interarrival` cycles.
fn delivered(limit: Limit, interarrival: Option<u64>, windows: &[u64]) -> Vec<u64> {
    let source = source(level(0, 1), 10, interarrival, limit);
    let body = Body {
        cycles: 10,
        leaves_packets: false,
    };
    let curve = tasks(&source, body, CLOCK, Window::any(0)).serves;
    let curve = curve.expect("a bound");
    windows.iter().map(|&window| curve.events(window)).collect()
}

#[test]
fn deliveries_keep_the_promises_of_the_contracts() {
    let windows = [1, 120, 121, 241];
    for (policy, burst, expected) in [
        (Policy::Strict, 1, [1, 1, 2, 3]),
        (Policy::Bucket, 3, [3, 3, 4, 5]),
        (Policy::Bursty, 3, [5, 5, 8, 11]),
        // With a burst of one, both policies are strict.
        (Policy::Bucket, 1, [1, 1, 2, 3]),
        (Policy::Bursty, 1, [1, 1, 2, 3]),
    ] {
        assert_eq!(
            delivered(limit(policy, burst, false), None, &windows),
            expected,
            "{policy:?} {burst}"
        );
    }
}

#[test]
fn requests_that_no_limit_holds_come_closer_by_the_way_through_the_limiter() {
    let strict = || limit(Policy::Strict, 1, false);
    assert_eq!(delivered(strict(), Some(200), &[195, 196]), [1, 2]);
    // The requests are apart by the interval and the delay of the limiter, so the limiter holds
    // none.
    assert_eq!(delivered(strict(), Some(125), &[245, 246]), [2, 3]);
    // Otherwise the bound is what the limit lets through, or the requests and two that waited.
    assert_eq!(delivered(strict(), Some(100), &[240, 241]), [2, 3]);
    let burst = limit(Policy::Bursty, 30, false);
    assert_eq!(delivered(burst, Some(4), &[3, 4]), [4, 5]);
}

#[test]
fn a_level_asks_as_long_as_it_stands_whatever_its_worst_rate_is() {
    let level = limit(Policy::Strict, 1, true);
    assert_eq!(delivered(level, Some(1000), &[120, 121, 241]), [1, 2, 3]);
}
