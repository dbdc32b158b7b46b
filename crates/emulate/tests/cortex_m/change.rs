// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests limits of ports/cortex-m that change at run time, and the record of a source. Both are
//! compared with the limiter of core/, event by event, under floods on the board mps2-an385.

use crate::cortex::events::{
    Event, INTERVALS, Kind, defines, flooded, judge_curve, judge_expiries, judge_taken, latest,
    parse, replay, told, words,
};
use crate::cortex::{Elf, Limit, adversaries, can_run, compile, flood, storm};
use rayon::prelude::*;
use weir_core_sys::{Action, LimitPolicy, Record, W32};
use weir_emulate::run::LineStimulus;

const SOURCE: &str = "ports/cortex-m/tests/limited.c";
/// The most instructions for which a call that changes a limit delays the group, including the
/// additional work of the group's interrupts afterwards.
const CHANGE: u64 = 1000;

fn tunable(limit: &Limit, changes: &[(u64, u8)], pause: u64) -> Elf {
    let pairs = changes
        .iter()
        .fold(String::new(), |text, (interval, burst)| {
            format!("{text}{{{interval}, {burst}}},")
        });
    let more = [format!("CHANGES={pairs}"), format!("PAUSE={pause}")];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    compile(SOURCE, &defines(limit, &more)).unwrap()
}

fn run(limit: &Limit, elf: &Elf, flood: LineStimulus, what: &str) -> Vec<Event> {
    let (result, events) = flooded(elf, limit, &[flood], &["served0", "misjudged"]);
    let machine = replay::<W32>(&limit.config, &events, what);
    let served = events.iter().filter(|event| event.has(Action::Serve));
    assert_eq!(result.counters["served0"], served.count() as u64, "{what}");
    assert_eq!(
        machine.record().map(|record| u64::from(record.served)),
        Some(result.counters["served0"])
    );
    // LIMIT-CHANGE-4: a limit that cannot be kept is rejected. The replay shows that nothing
    // changes.
    assert_eq!(result.counters["misjudged"], 0, "{what}");
    events
}

/// LIMIT-CHANGE-1, -2 and -4: pairs in which one curve lies above the other, and pairs whose curves
/// cross. The changes are at distances from much less than an interval to several intervals.
#[test]
fn cortex_m_keeps_the_curves_over_changes() {
    if !can_run() {
        return;
    }
    Limit::each_kind().into_par_iter().for_each(|limit| {
        let (interval, burst) = (limit.config.interval, limit.config.burst);
        let counts = matches!(
            limit.config.policy,
            LimitPolicy::Bursty | LimitPolicy::Bucket
        );
        let more = if counts { burst + 2 } else { 1 };
        let changes = [
            (interval, burst),
            (interval * 2, burst),
            (interval * 3 / 2, more),
            (interval * 3 / 5, burst.div_ceil(2)),
        ];
        let cycles = interval * limit.tick();
        let [above, around, ..] = adversaries("IRQ20", &limit);
        let storm = storm("IRQ20", cycles, 1, INTERVALS * cycles);
        for (pause, flood) in [
            (cycles / 30, above),
            (cycles / 8, around),
            (cycles / 5, storm),
        ] {
            let elf = tunable(&limit, &changes, pause);
            let what = format!("{limit:?} {pause} {}", flood.stimulus);
            let events = run(&limit, &elf, flood, &what);
            let late = latest(&limit, CHANGE);
            judge_curve(&limit.config, &events, late, &what);
            judge_expiries(&events, late, &what);
            judge_taken(&events, &what);
            let changed = events.iter().filter(|event| event.kind == Kind::Change);
            assert!(changed.count() > 20, "{what}");
        }
    });
}

/// LIMIT-CHANGE-3: if the curves do not cross, changes do not starve a source, however often they
/// come.
#[test]
fn cortex_m_is_not_starved_by_changes() {
    if !can_run() {
        return;
    }
    Limit::each_kind().into_par_iter().for_each(|limit| {
        let (interval, burst) = (limit.config.interval, limit.config.burst);
        let slower = interval * 3 / 2;
        // The changes come as fast as possible, or about once in an interval.
        let pauses = [5, interval * limit.tick() / 25];
        for pause in &pauses[usize::from(limit.divisor == 16)..] {
            let elf = tunable(&limit, &[(interval, burst), (slower, burst)], *pause);
            let what = format!("{limit:?} {pause}");
            let flood = flood("IRQ20=uniform:50cycles..700cycles:seed=6");
            let events = run(&limit, &elf, flood, &what);
            let late = latest(&limit, CHANGE);
            judge_curve(&limit.config, &events, late, &what);
            judge_expiries(&events, late, &what);
            let served = events.iter().filter(|event| event.has(Action::Serve));
            let span = events.last().unwrap().now - events[0].now;
            let per_period = match limit.config.policy {
                LimitPolicy::Bursty => u64::from(burst),
                _ => 1,
            };
            // With one-shot timing, the next request starts the period.
            let least = span / (slower + 2 * late + 700 / limit.tick()) * per_period;
            let served = served.count() as u64;
            assert!(
                served + 2 * per_period >= least,
                "{what}: {served}, not {least}"
            );
        }
    });
}

/// LIMIT-RECORD-1 and -3: the record equals that of the limiter of core/ after the same events.
#[test]
fn cortex_m_keeps_the_record_of_core() {
    const WORK: u64 = 200;
    if !can_run() {
        return;
    }
    Limit::each_kind().into_par_iter().for_each(|limit| {
        let more = ["WEIR_LIMIT_RECORD=1", "RECORD", "WORK=200"];
        let elf = compile(SOURCE, &defines(&limit, &more)).unwrap();
        let cycles = limit.config.interval * limit.tick();
        let mut overloads = 0;
        for seed in 0..2 {
            // The requests have about the rate of the burst.
            let apart = cycles / u64::from(limit.config.burst);
            let storm = storm("IRQ20", apart, seed, INTERVALS * cycles * 4 / 5);
            let what = format!("{limit:?} {seed}");
            let counters = ["served0", "torn", "begun", "ended", "misordered"];
            let result = told(&elf, &[storm], &counters, INTERVALS * cycles);
            let (record, events) = result.said.split_once('\n').unwrap();
            let events = parse(events);
            let machine = replay::<W32>(&limit.config, &events, &what);
            let seen = record_of(&words(record));
            let kept = machine.record().unwrap();
            assert_eq!(
                seen,
                Record {
                    longest_handler: seen.longest_handler,
                    ..kept
                },
                "{what}"
            );
            // An iteration of the handler's loop has five to eight instructions. The decision comes
            // in addition.
            let ran = seen.longest_handler * limit.tick();
            assert!(
                ran + limit.tick() >= WORK * 5 && ran <= WORK * 8 + 400 + limit.tick(),
                "{what}: the longest handler took {ran} instructions"
            );
            let count = |name: &str| result.counters[name];
            assert_eq!(count("served0"), u64::from(seen.served), "{what}");
            assert_eq!((count("torn"), count("misordered")), (0, 0), "{what}");
            assert_eq!(count("begun"), u64::from(seen.overloads), "{what}");
            // A lazy bursty limiter detects the end of the last overload only when the next request
            // comes.
            assert!(count("begun") - count("ended") <= 1, "{what}");
            overloads += seen.overloads;
        }
        assert!(overloads > 5, "{limit:?}: {overloads} overloads");
    });
}

/// Parses a weir_limit_record_t with 32-bit ticks from memory words.
fn record_of(words: &[u32]) -> Record {
    Record {
        taken: words[0],
        served: words[1],
        masked_intervals: words[2],
        overloads: words[3] & 0xffff,
        longest_masked: u64::from(words[4]),
        longest_handler: u64::from(words[5]),
        first_overload: u64::from(words[6]),
        last_overload: u64::from(words[7]),
    }
}
