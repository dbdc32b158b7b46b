// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests ports/cortex-m on the board mps2-an385. The events that `ports/cortex-m/tests/limited.c`
//! reports are compared with the limiter of core/, and its services with the curves of
//! core/CONTRACTS.md. All tests need QEMU and the compiler for Arm.

use crate::cortex::events::{
    Event, FIRST_LINE, INTERVALS, Kind, LATENCY, defines, flooded, judge, judge_curve,
    judge_expiries, judge_taken, latest, parse, replay, told,
};
use crate::cortex::{Elf, Limit, PER_TICK, adversaries, can_run, compile, flood, storm};
use rayon::prelude::*;
use weir_core_sys::{Action, Bare, Config, LimitPolicy, LimitTiming, W32};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::run::RunResult;
use weir_emulate::stimulus::arrivals;

/// The firmware that reports its events.
const SOURCE: &str = "ports/cortex-m/tests/limited.c";
/// The exception numbers of IRQ20 and of the timer's line.
const LINE: u32 = FIRST_LINE + 20;
const TIMER: u32 = FIRST_LINE + 10;

/// Returns the duration of a run in cycles.
fn end(limit: &Limit) -> u64 {
    INTERVALS * limit.config.interval * limit.tick()
}

/// Runs a limit under the fixed adversaries and two random ones. Compares each run with the limiter
/// of core/ and with the curves. `judge_more` gets the result, the events and the name of each run.
fn under_adversaries(elf: &Elf, limit: &Limit, judge_more: impl Fn(&RunResult, &[Event], &str)) {
    let interval = limit.config.interval * limit.tick();
    let storms = (0..2).map(|seed| storm("IRQ20", interval, seed, end(limit)));
    for flood in adversaries("IRQ20", limit).into_iter().chain(storms) {
        let text = format!("{limit:?} {}", flood.stimulus);
        let (result, events) = flooded(elf, limit, &[flood], &["served0"]);
        replay::<Bare<W32>>(&limit.config, &events, &text);
        let served = judge(limit, &events, 0, &text);
        assert_eq!(result.counters["served0"], served as u64, "{text}");
        assert!(served > 30, "{text}: only {served}");
        judge_taken(&events, &text);
        judge_more(&result, &events, &text);
    }
}

#[test]
fn cortex_m_takes_every_step_of_core_under_adversaries() {
    if !can_run() {
        return;
    }
    Limit::tried().into_par_iter().for_each(|limit| {
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0"])).unwrap();
        under_adversaries(&elf, &limit, |_, events, text| {
            // LIMIT-OVERLOAD-2: every refusal masks the source, and the next refusal comes after an
            // expiry. An eager limiter refuses no request.
            let mut is_refused = false;
            for event in events {
                if event.is_refusal() {
                    assert!(!is_refused && event.has(Action::Mask), "{text}: {event:?}");
                    assert_eq!(limit.config.timing, LimitTiming::Lazy, "{text}: {event:?}");
                }
                is_refused = event.is_refusal() || (is_refused && event.kind != Kind::Tick);
            }
        });
    });
}

/// Tests LIMIT-STRICT-2, -PACED-2, -BUCKET-2, -BURSTY-3, -PROMPT-1 and -OVERLOAD-1 in a lasting
/// overload.
#[test]
fn cortex_m_serves_what_it_may_in_overload_by_one_interrupt_each() {
    if !can_run() {
        return;
    }
    Limit::tried().into_par_iter().for_each(|limit| {
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0"])).unwrap();
        let floods = [flood("IRQ20=uniform:50cycles..700cycles:seed=5")];
        let (_, events) = flooded(&elf, &limit, &floods, &[]);
        let what = format!("{limit:?}");
        replay::<Bare<W32>>(&limit.config, &events, &what);
        judge(&limit, &events, 0, &what);
        // The check begins with the third period. A request takes at most 700 cycles to arrive.
        let (interval, burst) = (limit.config.interval, u64::from(limit.config.burst));
        let begin = events[0].now + 3 * interval * burst;
        let last = events.last().unwrap().now;
        let events: Vec<_> = events.iter().filter(|event| event.now >= begin).collect();
        let served: Vec<u64> = events
            .iter()
            .filter(|event| event.has(Action::Serve))
            .map(|event| event.now)
            .collect();
        let span = last - begin;
        let count = served.len() as u64;
        let late = latest(&limit, 0);
        let ticks = events.iter().filter(|event| event.kind == Kind::Tick);
        let taken = events.iter().filter(|event| event.kind != Kind::Tick);
        let (ticks, taken) = (ticks.count() as u64, taken.count() as u64);
        match limit.config.policy {
            LimitPolicy::Bursty => {
                // Each period has one interrupt of the timer, and one interrupt of the source less
                // than the burst.
                let period = match limit.config.timing {
                    LimitTiming::OneShot => interval + 2 * late + 700 / limit.tick(),
                    _ => interval,
                };
                assert!(
                    count + 2 * burst >= span / period * burst,
                    "{what}: {count}"
                );
                assert!(ticks <= span / interval + 2, "{what}: {ticks} of the timer");
                assert!(
                    taken <= (span / interval + 2) * (burst - 1),
                    "{what}: {taken} of the source"
                );
            }
            LimitPolicy::Strict => {
                assert!(
                    served
                        .windows(2)
                        .all(|two| two[1] - two[0] <= interval + late),
                    "{what}"
                );
                assert_eq!((ticks, taken), (count, 0), "{what}");
            }
            _ => {
                // The rate is exact, and no service is later than L after the first allowed
                // instant.
                assert!(count.abs_diff(span / interval) <= 1, "{what}: {count}");
                for (index, &at) in served.iter().enumerate() {
                    let nominal = served[0] + index as u64 * interval;
                    assert!(at.abs_diff(nominal) <= late, "{what}: {at} for {nominal}");
                }
                assert_eq!((ticks, taken), (count, 0), "{what}");
            }
        }
    });
}

/// Tests LIMIT-ENABLE-1 to -4 and LIMIT-RECORD-2.
#[test]
fn cortex_m_follows_the_user_and_changes_nothing_by_its_record() {
    if !can_run() {
        return;
    }
    Limit::each_kind().into_par_iter().for_each(|limit| {
        let interval = limit.config.interval * limit.tick();
        let turns = format!("USER={}", interval / 10);
        let storm = storm("IRQ20", interval, 3, end(&limit));
        let floods = adversaries("IRQ20", &limit)[..2].to_vec();
        for record in [0, 1] {
            let record = format!("WEIR_LIMIT_RECORD={record}");
            let elf = compile(SOURCE, &defines(&limit, &[&turns, &record, "WORK=20"])).unwrap();
            for flood in floods.iter().chain([&storm]) {
                let what = format!("{limit:?} {record} {}", flood.stimulus);
                let (_, events) = flooded(&elf, &limit, std::slice::from_ref(flood), &[]);
                replay::<Bare<W32>>(&limit.config, &events, &what);
                // While the user delays a due request, a paced limiter may be late by up to an
                // interval.
                judge_curve(&limit.config, &events, limit.config.interval - 1, &what);
                judge_user(&limit, &events, &what);
            }
        }
    });
}

/// Checks LIMIT-ENABLE-3: a request that waits when the user enables the source is served within an
/// interval, and at once if the source has been idle for long enough.
fn judge_user(limit: &Limit, events: &[Event], what: &str) {
    // With bursty, the count may be cleared after the pause.
    let late = latest(limit, 40 * 4);
    let rest = match limit.config.policy {
        LimitPolicy::Bursty => 2 * limit.config.interval,
        LimitPolicy::Bucket => u64::from(limit.config.burst) * limit.config.interval,
        _ => limit.config.interval,
    };
    let mut last_served = None;
    let mut waited = 0;
    let mut at_once = 0;
    let mut held = 0;
    for (index, event) in events.iter().enumerate() {
        held += i64::from(event.is_taken()) - i64::from(event.has(Action::Serve));
        if event.has(Action::Serve) {
            last_served = Some(event.now);
            assert!(
                event.exception == LINE || event.exception == TIMER,
                "{what}: {event:?}"
            );
            // LIMIT-ENABLE-4: requests are served only in an interrupt or a tick.
            assert!(event.kind == Kind::Request || event.kind == Kind::Tick);
        }
        if event.kind != Kind::Enable || (held == 0 && !event.waits) {
            continue;
        }
        let has_rested = last_served.is_none_or(|at| event.now - at > rest + late);
        let most = event.now + late + if has_rested { 0 } else { limit.config.interval };
        // The check ends when the user disables the source again, or at the end of the run.
        for after in &events[index + 1..] {
            if after.kind == Kind::Disable {
                assert!(after.now <= most, "{what}: not served after {event:?}");
                break;
            }
            if after.has(Action::Serve) {
                assert!(
                    after.now <= most,
                    "{what}: {event:?} is served at {after:?}"
                );
                waited += 1;
                at_once += u64::from(has_rested);
                break;
            }
        }
    }
    assert!(waited > 5 && at_once > 0, "{what}: {waited} {at_once}");
}

#[test]
fn cortex_m_loses_nothing_below_the_limit() {
    if !can_run() {
        return;
    }
    Limit::tried().into_par_iter().for_each(|limit| {
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0"])).unwrap();
        // A tick is added for the rounding of instants, and the latency of an expiry with eager
        // timing.
        let least = (limit.config.interval + 1) * limit.tick() + LATENCY + limit.tick();
        let text = format!("IRQ20=uniform:{least}cycles..{}cycles:seed=4", 2 * least);
        let flood = flood(&text);
        let (result, events) = flooded(&elf, &limit, std::slice::from_ref(&flood), &[]);
        replay::<Bare<W32>>(&limit.config, &events, &text);
        let served = judge(&limit, &events, 0, &text);
        // Checks LIMIT-LOSS-1. The flood also covers the time before and after the reported events:
        // one request may come before the first event, and one at the end.
        let clock = EmulatedBoard::MPS2_AN385.clock_hz();
        let offered = arrivals(&flood.stimulus, clock)
            .unwrap()
            .take_while(|arrival| arrival.at < end(&limit))
            .count();
        assert!(
            served.abs_diff(offered) <= 1,
            "{limit:?}: {served} {offered}"
        );
        assert!(!events.iter().any(Event::is_refusal));
        if limit.config.timing == LimitTiming::Lazy {
            // LIMIT-LAZY-1: below the limit the timer never interrupts.
            let requests = events.iter().filter(|event| event.kind == Kind::Request);
            assert_eq!(requests.count(), served, "{limit:?}");
            let timer = result.vectors.iter().find(|used| used.name == "IRQ10");
            assert_eq!(timer.map_or(0, |used| used.taken), 0, "{limit:?}");
        }
    });
}

/// LIMIT-TIMERLESS-1: the same test with SysTick instead of the timer, with five ticks per
/// interval.
#[test]
fn cortex_m_keeps_its_limits_by_a_tick_that_exists_already() {
    if !can_run() {
        return;
    }
    Limit::each_kind().into_par_iter().for_each(|limit| {
        let period = limit.config.interval * limit.divisor / 5;
        let ticked = format!("TICKED={period}");
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0", &ticked])).unwrap();
        let interval = limit.config.interval * limit.tick();
        let storm = storm("IRQ20", interval, 4, end(&limit));
        let floods = adversaries("IRQ20", &limit)[..2].to_vec();
        for flood in floods.into_iter().chain([storm]) {
            let text = format!("{limit:?} {}", flood.stimulus);
            let (result, events) = flooded(&elf, &limit, &[flood], &["served0"]);
            replay::<Bare<W32>>(&limit.config, &events, &text);
            let served = judge(&limit, &events, period * PER_TICK, &text);
            assert_eq!(result.counters["served0"], served as u64);
            assert!(served > 30, "{text}: only {served}");
        }
    });
}

/// Tests the 24-bit SysTick as the timer of the group, with a separate counter.
#[test]
fn cortex_m_keeps_its_limits_by_systick() {
    if !can_run() {
        return;
    }
    // The timer makes no difference between the kinds of limits, so the short form tries every
    // other one.
    let step = if crate::is_long() { 1 } else { 2 };
    let limits = Limit::all().into_iter().filter(|limit| limit.divisor == 1);
    let limits: Vec<Limit> = limits.step_by(step).collect();
    limits.into_par_iter().for_each(|limit| {
        let mut macros = vec!["WEIR_LIMIT_RECORD=0", "SYSTICK"];
        let elf = compile(SOURCE, &defines(&limit, &macros)).unwrap();
        // In QEMU the cycle counter does not count.
        macros.push("CYCLES");
        compile(SOURCE, &defines(&limit, &macros)).unwrap();
        under_adversaries(&elf, &limit, |result, events, text| {
            // SysTick interrupts as often as the dual timer does: once for each expiry.
            let ticks = events.iter().filter(|event| event.kind == Kind::Tick);
            let timer = result.vectors.iter().find(|used| used.name == "SYSTICK");
            let taken = timer.map_or(0, |used| used.taken);
            assert!(taken.abs_diff(ticks.count() as u64) <= 1, "{text}: {taken}");
        });
    });
}

/// An interval may exceed the 24 bits of SysTick. SysTick then interrupts in between and finds
/// nothing due.
#[test]
fn cortex_m_waits_longer_than_systick_counts() {
    if !can_run() {
        return;
    }
    let long = |limit: Limit| {
        let config = Config {
            interval: (1 << 24) + 500_000,
            ..limit.config
        };
        Limit { config, ..limit }
    };
    // Strict eager is tried, and paced lazy in the long form. The other kinds set the timer in the
    // same way, and a run takes 20 s.
    let kinds: &[usize] = if crate::is_long() { &[0, 3] } else { &[0] };
    let limits: Vec<Limit> = kinds.iter().map(|kind| long(Limit::all()[*kind])).collect();
    limits.into_par_iter().for_each(|limit| {
        let last = limit.config.interval + 200_000;
        let macros = [
            "WEIR_LIMIT_RECORD=0".to_owned(),
            "SYSTICK".to_owned(),
            limit.initialiser("LIMIT0"),
            format!("DIVISOR={}", limit.divisor),
            format!("LAST={last}"),
        ];
        let elf = compile(SOURCE, &macros).unwrap();
        let what = format!("{limit:?}");
        let floods = [flood("IRQ20=100Hz")];
        let result = told(&elf, &floods, &["served0"], last * limit.tick());
        let events = parse(&result.said);
        replay::<Bare<W32>>(&limit.config, &events, &what);
        assert_eq!(judge(&limit, &events, 0, &what), 2, "{what}");
        assert_eq!(result.counters["served0"], 2, "{what}");
        let is_in_vain = |event: &Event| {
            event.kind == Kind::Tick && !event.has(Action::Serve) && !event.has(Action::Unmask)
        };
        let comes_between = events.iter().any(is_in_vain);
        assert!(comes_between, "{what}: SysTick does not come between");
    });
}

#[test]
fn cortex_m_groups_nest_and_critical_sections_hold_back_only_theirs() {
    if !can_run() {
        return;
    }
    let limit = Limit::all()[1];
    let elf = compile(
        SOURCE,
        &defines(&limit, &["WEIR_LIMIT_RECORD=0", "NESTED", "WORK=500"]),
    )
    .unwrap();
    let floods = [
        "IRQ20=uniform:1cycles..8000cycles:seed=1",
        "IRQ28=uniform:1cycles..2500cycles:seed=2",
    ]
    .map(flood);
    let counters = ["served0", "served_urgent", "nested", "held", "held_urgent"];
    let (result, events) = flooded(&elf, &limit, &floods, &counters);
    replay::<Bare<W32>>(&limit.config, &events, "nested");
    // A critical section of 500 iterations with at most ten instructions each delays the group.
    let late = latest(&limit, 5000 + 10 * 500);
    judge_expiries(&events, late, "nested");
    judge_curve(&limit.config, &events, late, "nested");
    let count = |name: &str| result.counters[name];
    assert!(count("served0") > 50 && count("served_urgent") > 300);
    assert!(count("nested") > 10, "bodies are interrupted");
    assert_eq!(count("held"), 0);
    assert!(count("held_urgent") > 50);
}

#[test]
fn cortex_m_refuses_what_cannot_be_kept_when_it_is_compiled() {
    if !can_run() {
        return;
    }
    let limit = Limit::all()[0];
    let refused = |more: &[&str]| {
        let mut all = defines(&limit, more);
        if more.iter().any(|define| define.starts_with("LIMIT0=")) {
            all.remove(0);
        }
        compile(SOURCE, &all).err().map(|error| error.to_string())
    };
    let strict = "LIMIT0=.policy = WEIR_LIMIT_STRICT, .burst = 1, .interval = ";
    let tunable = ["CHANGES={1, 1}", "PAUSE=1"];
    for (more, reason) in [
        (vec![format!("{strict}0")], "the interval must be 1 to 2^29"),
        (vec![format!("{strict}0x20000001")], "cannot be kept"),
        (
            [&tunable[..], &[&*format!("{strict}0")]]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect(),
            "cannot be kept",
        ),
        (vec!["PRIORITY=0".to_owned()], "the priority of a group"),
        (
            vec![
                "PRIORITY=0x80".to_owned(),
                "configMAX_SYSCALL_INTERRUPT_PRIORITY=0xa0".to_owned(),
            ],
            "configMAX_SYSCALL_INTERRUPT_PRIORITY",
        ),
        (vec!["WEIR_TICK_BITS=16".to_owned()], "counts in 32 bits"),
        (vec!["DIVISOR=8".to_owned()], "divides by 1, 16 or 256"),
    ] {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let message = refused(&more).unwrap_or_else(|| panic!("{more:?} compiles"));
        assert!(message.contains(reason), "{more:?}: {message}");
    }
    for more in [
        &[&*format!("{strict}0x20000000")][..],
        &["configMAX_SYSCALL_INTERRUPT_PRIORITY=0x80"],
        &tunable,
    ] {
        assert_eq!(refused(more), None, "{more:?}");
    }
}
