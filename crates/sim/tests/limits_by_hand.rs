// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small runs with limited sources, in which the instant of every event was computed by hand.

use crate::common::{CPU, LINE, TASK, feed, flat, options, parse, run};
use weir_sim::tally::Stage;
use weir_sim::{SimulationEvent, Track};

const LIMITED: &str = r#"
limit = { policy = "strict", timing = "eager", interval = "200us", timer = "own" }
[[timer]]
name = "own"
width = 16
order = 2
"#;

#[test]
fn a_strict_limit_serves_one_per_interval_and_costs_what_it_costs() {
    let system = flat(&format!("{LINE}{LIMITED}{TASK}"));
    let mut with = options(1000);
    with.feeds = vec![feed(&system, "line", "100kHz")];
    let (tally, log) = run(&system, &with);
    // The first request is served in the line's interrupt (15 + 20 cycles). The waiting requests
    // are served in the timer's interrupt (18 + 20), an interval after the previous service.
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::Request(0))),
        [0]
    );
    assert_eq!(
        log.instants(SimulationEvent::Starts(Track::Expiry(0))),
        [200, 400, 600, 800]
    );
    let source = &tally.sources[0];
    assert_eq!(
        (source.served, source.interrupts, source.expiries),
        (5, 1, 4)
    );
    assert_eq!(source.arrived, 100);
    // The first request takes 35 cycles, each of the other four 38. The handler accounts for 20 of
    // each, and entry and exit of the line's interrupt for 10.
    assert_eq!(tally.stages.of(Stage::Handlers), 10 + 5 * 20);
    assert_eq!(tally.stages.of(Stage::Limit), 5 + 4 * 18);
    assert_eq!(
        tally.tasks[0].missed, 1,
        "95 and 35 cycles are more than 100"
    );

    let mut without = with.clone();
    without.limits = false;
    let (tally, _) = run(&system, &without);
    // The interrupt takes 30 of every 30 cycles, so that the task never runs.
    assert_eq!((tally.tasks[0].ran, tally.tasks[0].missed), (0, 1));
}

#[test]
fn what_waits_for_a_poll_at_the_end_is_not_late() {
    let line = LINE.replace("max_work = 1", "max_work = 1\ndeadline = \"50us\"");
    let polled = LIMITED.replace("\"strict\", timing = \"eager\"", "\"poll\"");
    let costs = CPU.replace(
        "[cpu.costs]",
        "[cpu.costs]\npoll = { expiry_served = \"18 cycles\", expiry_empty = \"12 cycles\" }",
    );
    let costs = costs.replace("INTERRUPTS", "flat");
    let system = parse(&format!("{costs}{line}{polled}"));
    // The third poll, at 600, is after the end of the run. The request of 450 waits for it.
    let mut options = options(599);
    options.feeds = vec![feed(&system, "line", "5kHz:phase=50us")];
    let (tally, _) = run(&system, &options);
    let source = &tally.sources[0];
    assert_eq!((source.arrived, source.served), (3, 2));
    assert_eq!((source.missed, source.overdue), (0, 0));
}

#[test]
fn what_a_limit_lets_through_is_bounded_by_its_curve_in_any_window() {
    let system = flat(&format!("{LINE}{LIMITED}"));
    let mut options = options(1_000_000);
    options.feeds = vec![feed(&system, "line", "poisson:30kHz")];
    let (_, log) = run(&system, &options);
    let mut served = log.instants(SimulationEvent::Starts(Track::Request(0)));
    let expiries = log.instants(SimulationEvent::Starts(Track::Expiry(0)));
    let ends = log.instants(SimulationEvent::Ends(Track::Expiry(0)));
    // A timer interrupt that serves takes 18 + 20 cycles, any other takes 12.
    served.extend(
        expiries
            .iter()
            .zip(ends)
            .filter(|(start, end)| end - *start == 38)
            .map(|(start, _)| start),
    );
    served.sort_unstable();
    // LIMIT-STRICT-1: each closed window shorter than the interval has at most one service.
    assert!(served.len() > 4500, "{}", served.len());
    assert!(served.windows(2).all(|pair| pair[1] - pair[0] >= 200));
}

/// Returns the instants at which the line's interrupts start behind this limit in hardware, with a
/// request every 50 cycles.
fn behind(limit: &str, duration: u64) -> Vec<u64> {
    let limit = format!("limit = {{ {limit}, place = \"hardware\", interval = \"200us\" }}\n");
    let system = flat(&format!("{LINE}{limit}"));
    let mut options = options(duration);
    options.feeds = vec![feed(&system, "line", "20kHz:phase=50us")];
    let (_, log) = run(&system, &options);
    log.instants(SimulationEvent::Starts(Track::Request(0)))
}

#[test]
fn a_limiter_in_hardware_delivers_what_it_noted_at_the_intervals_end() {
    assert_eq!(behind("policy = \"strict\"", 700), [50, 250, 450, 650]);
    // The first token is refilled an interval after the bucket was last full.
    assert_eq!(
        behind("policy = \"bucket\", burst = 3", 700),
        [50, 100, 150, 250, 450, 650]
    );
    // A period begins with a delivery. All tokens are refilled at its end.
    assert_eq!(
        behind("policy = \"bursty\", burst = 3", 700),
        [50, 100, 150, 250, 300, 350, 450, 500, 550, 650]
    );
}
