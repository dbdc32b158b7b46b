// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a run depends on its system, not on its duration.

use crate::common::{feed, flat, options};
use crate::is_long;
use peak_alloc::PeakAlloc;
use rusty_fork::rusty_fork_test;
use weir_model::System;
use weir_sim::trace::PerfettoTrace;
use weir_sim::{Observer, Options, simulate_observed};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The system has a flooded line behind a limit, an overloaded receiver of packets, and a task that
/// is always late.
const SYSTEM: &str = r#"
[[timer]]
name = "own"
width = 16
order = 3
[[source]]
name = "line"
vector = "INT0"
order = 1
handler = "20 cycles"
max_work = 1
limit = { policy = "strict", timing = "eager", interval = "200us", timer = "own" }
[[source]]
name = "eth"
vector = "ETH"
order = 2
handler = "20 cycles"
max_work = 4
[[receiver]]
name = "server"
urgency = 5
wcet = "300us"
[[receiver]]
name = "late"
urgency = 4
period = "1ms"
deadline = "1ms"
wcet = "900us"
[[flow]]
name = "packets"
source = "eth"
receiver = "server"
bottom_half = "100 cycles"
"#;

/// Returns the most bytes in use at once during a run.
fn peak(system: &System, options: &Options, observer: &mut impl Observer) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let tally =
        simulate_observed(system, options, observer).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        tally.tasks[1].missed > 0 && tally.flows[0].lost.total() > 0,
        "not the overload that is meant"
    );
    MEMORY.peak_usage() - before
}

fn memory_is_the_same_for_twenty_times_the_time() {
    let system = flat(SYSTEM);
    let mut short = options(if is_long() { 5_000_000 } else { 1_000_000 });
    short.feeds = vec![
        feed(&system, "line", "poisson:20kHz"),
        feed(&system, "packets", "poisson:5kHz"),
    ];
    let mut long = short.clone();
    long.duration *= 20;
    let watched = |options: &Options| {
        let mut trace = PerfettoTrace::new(std::io::sink(), &system);
        let peak = peak(&system, options, &mut trace);
        trace
            .finish(options.duration)
            .expect("nothing is written anywhere");
        peak
    };
    for (first, second) in [
        (
            peak(&system, &short, &mut ()),
            peak(&system, &long, &mut ()),
        ),
        (watched(&short), watched(&long)),
    ] {
        // A histogram may still grow by one step when a rare, long span is recorded.
        assert!(
            second <= first + first / 10,
            "{first} bytes, and for twenty times as long {second}"
        );
    }
}

// The test runs in a process of its own. Otherwise the allocations of concurrent tests would count,
// too.
rusty_fork_test! {
    #[test]
    fn memory_does_not_grow_with_time() {
        memory_is_the_same_for_twenty_times_the_time();
    }
}
