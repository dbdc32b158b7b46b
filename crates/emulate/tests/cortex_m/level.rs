// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests limits of ports/cortex-m that mask a level-triggered source at the device's own enable
//! bit. The source is the LAN9118 of mps2-an385, alone on its line or with another device. The
//! events are compared with the limiter of core/ one by one.

use crate::cortex::events::{
    Event, INTERVALS, Kind, defines, flooded, judge_curve, judge_expiries, latest, replay,
};
use crate::cortex::{Limit, adversaries, can_run, compile, flood, storm};
use rayon::prelude::*;
use weir_core_sys::{Action, Bare, LimitTiming, Trigger, W32};
use weir_emulate::run::{LineStimulus, RunResult};

const SOURCE: &str = "ports/cortex-m/tests/level.c";
/// The most instructions of the handler, which reads a frame, and of the line's function.
const BODY: u64 = 300;
/// The cycles between two interrupts of the line's other device: 300 us.
const OTHER_CYCLES: u64 = 37_500;

fn levels() -> Vec<Limit> {
    let mut all = Limit::each_kind();
    for limit in &mut all {
        limit.config.trigger = Trigger::Level;
    }
    all
}

/// Runs the firmware and checks every event. Returns the events with the board's result.
fn hold(limit: &Limit, more: &[&str], flood: LineStimulus) -> (RunResult, Vec<Event>) {
    let what = format!("{limit:?} {more:?} {}", flood.stimulus);
    let elf = compile(
        SOURCE,
        &defines(limit, &[more, &["WEIR_LIMIT_RECORD=0"]].concat()),
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let counters = ["served", "frames", "waiting", "others"];
    let is_shared = more.contains(&"SHARED");
    let counters = &counters[..if is_shared { 4 } else { 3 }];
    let (result, events) = flooded(&elf, limit, &[flood], counters);
    replay::<Bare<W32>>(&limit.config, &events, &what);
    let late = latest(limit, BODY);
    let jitter = if more.is_empty() || is_shared {
        late
    } else {
        limit.config.interval - 1
    };
    let served = judge_curve(&limit.config, &events, jitter, &what) as u64;
    judge_expiries(&events, late, &what);
    let count = |name: &str| result.counters[name];
    assert_eq!(count("served"), served, "{what}");
    // No frame that the controller took is lost: all are handled or wait in its FIFO.
    let frames = &result.lines[0];
    assert_eq!(
        count("frames") + count("waiting"),
        frames.offered - frames.missed,
        "{what}"
    );
    if is_shared {
        // The other device is never delayed by the limit.
        let least = INTERVALS * limit.config.interval * limit.tick() / (OTHER_CYCLES * 21 / 20);
        assert!(count("others") >= least, "{what}: {}", count("others"));
    }
    (result, events)
}

#[test]
fn cortex_m_masks_at_the_device_whatever_else_its_line_does() {
    if !can_run() {
        return;
    }
    levels().into_par_iter().for_each(|limit| {
        let cycles = limit.config.interval * limit.tick();
        let [above, around, bursts, fastest] = adversaries("ETH", &limit);
        let storm = storm("ETH", cycles, 7, INTERVALS * cycles);
        let user = format!("USER={}", cycles / 10);
        hold(&limit, &[&user], around);
        hold(&limit, &["SHARED"], storm);
        // The other kinds are tried with one prescaler each, to save time.
        match limit.divisor {
            1 => drop(hold(&limit, &[], bursts)),
            16 => drop(hold(&limit, &["SHARED"], above)),
            _ => {}
        }
        // LIMIT-OVERLOAD-1 and -2 for a level-triggered source, which an expiry cannot serve. Each
        // served request costs an interrupt of the line, an expiry and, with lazy timing, one
        // refusal.
        let (result, events) = hold(&limit, &["SHARED"], fastest);
        let what = format!("{limit:?}");
        let count = |is: &dyn Fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        let served = count(&|event| event.has(Action::Serve));
        let refusals = count(&Event::is_refusal);
        let expiries = count(&|event| event.kind == Kind::Tick && event.has(Action::Unmask));
        assert!(served > 100, "{what}: {served}");
        assert!(expiries <= served + 1, "{what}: {expiries}");
        let most = match limit.config.timing {
            LimitTiming::Lazy => expiries + 1,
            _ => 0,
        };
        assert!(
            refusals <= most,
            "{what}: {refusals} refusals, {expiries} expiries"
        );
        // The flood does not slow down the thread.
        let thread = result.background_cycles as f64 / result.cycles as f64;
        assert!(thread > 0.6, "{what}: the thread has {thread}");
    });
}

/// Tests LIMIT-LOSS-1 and -LAZY-1.
#[test]
fn cortex_m_serves_every_frame_below_the_limit() {
    if !can_run() {
        return;
    }
    levels().into_par_iter().for_each(|limit| {
        let least = (limit.config.interval + 1) * limit.tick() + 1000 + limit.tick();
        let text = format!("ETH=uniform:{least}cycles..{}cycles:seed=8", 2 * least);
        let (result, events) = hold(&limit, &[], flood(&text));
        let served = events
            .iter()
            .filter(|event| event.has(Action::Serve))
            .count() as u64;
        assert!(result.counters["waiting"] <= 1, "{limit:?}");
        assert_eq!(served, result.counters["frames"], "{limit:?}");
        assert!(!events.iter().any(Event::is_refusal), "{limit:?}");
        if limit.config.timing == LimitTiming::Lazy {
            assert!(
                events.iter().all(|event| event.kind != Kind::Tick),
                "{limit:?}"
            );
        }
    });
}
