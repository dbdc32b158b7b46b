// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests the port's other modes on the board: without a timer, and with a shared timer.

use crate::port::curve::curve;
use crate::port::history::{History, Kind, channel, history};
use crate::port::{CLOCK, Elf, Flavour, Limit, build, flood, mark, trace};
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::run::LineStimulus;

/// The duration of a run: 0.5 s of the board's time, in cycles.
const CYCLES: u64 = 2_000_000;

/// The address of OCR2, to which the firmware writes its marks.
const MARK: u16 = 0x43;

/// The cycles by which the instant of service may vary: the execution of an entry, an expiry and a
/// handler.
const WANDER: u64 = 400;

/// The cycles until main has started everything and has served earlier requests.
const STARTED: u64 = 3000;

/// Checks LIMIT-*-1 in every window of up to 200 services.
fn judge_curve(served: &[u64], j: u64, most: impl Fn(u64) -> u64, what: &str) {
    for (first, &from) in served.iter().enumerate() {
        for (more, &to) in served[first..].iter().enumerate().take(200) {
            let (count, most) = (more as u64 + 1, most(to - from + j));
            assert!(
                count <= most,
                "{count} served from cycle {from} to {to}, the curve allows {most}: {what}"
            );
        }
    }
}

fn instants(history: &History, source: u8) -> Vec<u64> {
    let of_source = history.served.iter().filter(|&&(_, whose)| whose == source);
    of_source.map(|&(at, _)| at).collect()
}

/// Checks LIMIT-LOSS-1: each request is served, at most `within` cycles after it.
fn judge_none_lost(history: &History, source: u8, within: u64, what: &str) {
    let due = history.edges.iter().copied();
    let due: Vec<u64> = due
        .filter(|&at| at >= STARTED && at + within < CYCLES)
        .collect();
    assert!(due.len() > 20);
    // Services before the first of these requests belong to earlier requests.
    let served = instants(history, source);
    let served = &served[served.partition_point(|&at| at < due[0])..];
    for (request, at) in due.into_iter().enumerate() {
        let then = served.get(request);
        assert!(
            then.is_some_and(|&then| then >= at && then <= at + within),
            "request {request}, at {at}, is lost or late, served at {then:?}: {what}"
        );
    }
}

/// The cycles of a tick.
const TICK: u64 = 1000;

/// Returns the same limits in ticks, and in cycles of a timer that the tick reads: interval and
/// burst, and whether the clock has the finer resolution.
fn ticked_limits() -> Vec<(Limit, bool)> {
    let mut all = Vec::new();
    for (policy, timing, ticks, burst) in [
        (LimitPolicy::Strict, LimitTiming::Eager, 5, 1),
        (LimitPolicy::Strict, LimitTiming::Lazy, 5, 1),
        (LimitPolicy::Bursty, LimitTiming::Eager, 12, 4),
        (LimitPolicy::Bursty, LimitTiming::Lazy, 12, 4),
        (LimitPolicy::Bursty, LimitTiming::OneShot, 12, 4),
    ] {
        all.push((
            Limit::new(policy, timing, ticks, burst, "TIMER3A", TICK),
            false,
        ));
        let cycles = ticks * TICK;
        all.push((
            Limit::new(policy, timing, cycles, burst, "TIMER3A", 1),
            true,
        ));
    }
    all
}

fn ticked(limit: &Limit, fine: bool) -> Elf {
    let mut defines = limit.defines();
    defines.push(format!("TEST_TICK={TICK}"));
    if fine {
        defines.push("TEST_FINE_CLOCK".to_owned());
    }
    build(&["ticked.c"], Flavour::C, &defines)
}

fn watch(elf: &Elf, floods: &[LineStimulus]) -> History {
    let result = trace(elf, floods, CYCLES);
    history(&result.events, 0, channel("TIMER3A"), MARK)
}

/// LIMIT-TIMERLESS-1: every instant of service has a jitter of one tick.
#[test]
fn without_a_timer_the_curve_holds_with_the_tick_as_jitter() {
    ticked_limits().into_par_iter().for_each(|(limit, fine)| {
        let elf = ticked(&limit, fine);
        let (interval, burst) = (limit.interval_cycles(), u64::from(limit.config.burst));
        let mut held_back = 0;
        // The floods are those for a timer whose interval has the same length in cycles.
        let in_cycles = Limit::new(
            limit.config.policy,
            limit.config.timing,
            interval,
            limit.config.burst,
            "TIMER3A",
            1,
        );
        for text in in_cycles.floods() {
            let history = watch(&elf, &[flood(&text)]);
            let served = instants(&history, 0);
            assert!(served.len() > 20, "{} served: {text}", served.len());
            held_back += history.edges.len() - served.len();
            judge_curve(
                &served,
                TICK + WANDER,
                |span| curve(limit.config.policy, interval, burst, span),
                &format!("{limit:?} {text}"),
            );
        }
        assert!(
            held_back > 1000,
            "only {held_back} were held back: {limit:?}"
        );
    });
}

/// LIMIT-LOSS-1 with L equal to a tick: if requests are a tick further apart than the limit
/// requires, all are served, each within an interval and a tick.
#[test]
fn without_a_timer_nothing_is_lost_below_the_limit() {
    ticked_limits().into_par_iter().for_each(|(limit, fine)| {
        let elf = ticked(&limit, fine);
        let burst = u64::from(limit.config.burst);
        let apart = limit.interval_cycles() + TICK + WANDER;
        for text in [
            format!("INT0=bursts:{burst}:gap=700cycles:period={apart}cycles"),
            format!(
                "INT0=bursts:{burst}:gap=407cycles:period={}cycles",
                apart + 377
            ),
            format!("INT0={:.3}Hz", CLOCK as f64 / (apart / burst + 1) as f64),
            // If the 16-bit clock counts cycles, it wraps between bursts.
            format!("INT0=bursts:{burst}:gap=500cycles:period=71003cycles"),
        ] {
            let history = watch(&elf, &[flood(&text)]);
            judge_none_lost(&history, 0, apart, &format!("{limit:?} fine {fine} {text}"));
        }
    });
}

/// LIMIT-LIVE-1: after a flood the line is unmasked within an interval and a tick. A request after
/// silence is served at once.
#[test]
fn without_a_timer_the_source_comes_back() {
    ticked_limits().into_par_iter().for_each(|(limit, fine)| {
        let elf = ticked(&limit, fine);
        let interval = limit.interval_cycles();
        // The flood has 60 requests and is followed by silence.
        let text = format!(
            "INT0=bursts:60:gap=170cycles:period={}cycles",
            10_200 + 5 * interval
        );
        let history = watch(&elf, &[flood(&text)]);
        let mut floods = 0;
        for pair in history.edges.windows(2) {
            if pair[1] - pair[0] < interval {
                continue;
            }
            floods += 1;
            // With lazy timing, the held request and the pending request take an interval each.
            let (silent, next) = (pair[0] + 3 * interval + 2 * TICK, pair[1]);
            let last = history
                .episodes
                .iter()
                .rfind(|episode| episode.begin < next);
            assert!(
                last.is_some_and(|last| last.enabled),
                "still masked at {next}: {limit:?}"
            );
            let served = instants(&history, 0);
            assert!(
                !served.iter().any(|&at| at > silent && at < next),
                "served long after the last request: {limit:?}"
            );
            assert!(
                served.iter().any(|&at| at >= next && at <= next + 150),
                "the request at {next} waits after silence: {limit:?}"
            );
        }
        assert!(floods > 20);
        let masks = history
            .episodes
            .iter()
            .filter(|one| one.kind == Kind::Request);
        assert!(masks.clone().any(|one| !one.enabled), "nothing was masked");
    });
}

/// The period of the shared timer in cycles. The bursts are those of ports/avr/tests/shared.c.
const PERIOD: u64 = 20_000;
const BURSTS: [u64; 3] = [4, 7, 2];

/// Returns the firmware with this number of sources in three variants: the `c` flavour, its general
/// limiter (which keeps the record), and `fast`.
fn shared(sources: usize) -> Vec<(Elf, String)> {
    let base = [
        format!("TEST_SOURCES={sources}"),
        format!("TEST_PERIOD={PERIOD}"),
    ];
    shared_with(&base)
}

fn shared_with(base: &[String]) -> Vec<(Elf, String)> {
    let flavours = [
        (Flavour::C, "WEIR_LIMIT_RECORD=0"),
        (Flavour::C, "WEIR_LIMIT_RECORD=1"),
        (Flavour::FastShared, "WEIR_LIMIT_RECORD=0"),
    ];
    let one = |(flavour, record): (Flavour, &str)| {
        let defines = [base, &[record.to_owned()]].concat();
        let what = format!("{flavour:?} {defines:?}");
        (build(&["shared.c"], flavour, &defines), what)
    };
    flavours.into_iter().map(one).collect()
}

fn watch_line(elf: &Elf, line: u8, floods: &[LineStimulus]) -> History {
    let result = trace(elf, floods, CYCLES);
    history(&result.events, line, channel("TIMER1A"), MARK)
}

/// Checks LIMIT-BURSTY-1 for one of the sources on the shared timer.
fn judge_shared_curve(history: &History, source: u8, what: &str) {
    let burst = BURSTS[usize::from(source)];
    judge_curve(
        &instants(history, source),
        WANDER,
        |span| curve(LimitPolicy::Bursty, PERIOD, burst, span),
        &format!("INT{source} {what}"),
    );
}

/// LIMIT-SHARED-2: each source keeps its own curve and gets its own burst in each period, whatever
/// the others request.
#[test]
fn on_a_shared_timer_each_source_keeps_its_curve_and_its_share() {
    [2, 3].into_par_iter().for_each(|sources| {
        for (elf, what) in shared(sources) {
            for kind in [
                "40kHz",
                "poisson:9kHz:seed=3",
                "bursts:12:gap=160cycles:period=20011cycles",
            ] {
                let floods: Vec<LineStimulus> = (0..sources)
                    .map(|line| flood(&format!("INT{line}={kind}")))
                    .collect();
                let history = watch_line(&elf, 0, &floods);
                for (index, burst) in (0_u8..).zip(BURSTS).take(sources) {
                    judge_shared_curve(&history, index, &format!("{kind} {what}"));
                    let served = instants(&history, index).len() as u64;
                    let share = burst * (CYCLES / PERIOD);
                    assert!(
                        served >= share - burst && served <= share + burst,
                        "INT{index} is served {served} times, its share is {share}: {kind} {what}"
                    );
                }
            }
        }
    });
}

/// LIMIT-SHARED-2 and LIMIT-LOSS-1: a flood of one line does not affect the others.
#[test]
fn on_a_shared_timer_a_flood_of_one_loses_nothing_of_the_others() {
    let pairs: Vec<(usize, usize, usize)> = (2..=3)
        .flat_map(|sources| (0..sources).map(move |flooded| (sources, flooded)))
        .flat_map(|(sources, flooded)| (0..sources).map(move |other| (sources, flooded, other)))
        .filter(|(_, flooded, other)| flooded != other)
        .collect();
    pairs.into_par_iter().for_each(|(sources, flooded, other)| {
        let burst = BURSTS[other];
        // Any N + 1 consecutive requests are further apart than the period and the latency.
        let span = PERIOD + WANDER + 200;
        for (elf, what) in shared(sources) {
            for below in [
                format!("bursts:{burst}:gap=1100cycles:period={span}cycles"),
                format!("bursts:{burst}:gap=1100cycles:period={}cycles", span + 777),
                format!("{:.4}Hz", CLOCK as f64 / (span / burst + 1) as f64),
            ] {
                let floods = [
                    flood(&format!("INT{flooded}=50kHz")),
                    flood(&format!("INT{other}={below}")),
                ];
                let line = u8::try_from(other).unwrap();
                let history = watch_line(&elf, line, &floods);
                // A request is served at once, or after the handlers of the flooded source, because
                // its line is never masked for long.
                judge_none_lost(
                    &history,
                    line,
                    PERIOD,
                    &format!("INT{other}={below} {what}"),
                );
                let held_back = u8::try_from(flooded).unwrap();
                judge_shared_curve(&history, held_back, &what);
                assert!(!instants(&history, held_back).is_empty());
            }
        }
    });
}

/// Tests the two enable bits of regehr2005 §4 with a shared timer. The user switches INT1 off and
/// on, both while it is masked and while it is not.
#[test]
fn on_a_shared_timer_a_line_never_fires_while_the_user_holds_it_off() {
    [(2, 300), (3, 300), (2, 1100), (3, 1100)]
        .into_par_iter()
        .for_each(|(sources, pause)| {
            let base = [
                format!("TEST_SOURCES={sources}"),
                format!("TEST_PERIOD={PERIOD}"),
                format!("TEST_USER={pause}"),
            ];
            for (elf, what) in shared_with(&base) {
                let floods: Vec<LineStimulus> = ["INT0=21kHz", "INT1=17kHz"].map(flood).into();
                let history = watch_line(&elf, 1, &floods);
                judge_user(&history, &what);
                judge_shared_curve(&history, 1, &what);
                judge_shared_curve(&history, 0, &what);
                // The switching does not affect the other source.
                let (served, share) = (instants(&history, 0).len() as u64, 4 * (CYCLES / PERIOD));
                assert!(
                    served >= share - 4,
                    "INT0 is served {served} times of {share}: {what}"
                );
            }
        });
}

/// Checks LIMIT-ENABLE-1 and -2: the line is on iff both the user and the limiter want it on.
/// Switching it off and on does not unmask it.
fn judge_user(history: &History, what: &str) {
    let mut on = true;
    let mut left = BURSTS[1];
    let (mut while_masked, mut while_open) = (0, 0);
    for episode in &history.episodes {
        let services = episode
            .served
            .iter()
            .filter(|&&(_, whose)| whose == 1)
            .count() as u64;
        match episode.kind {
            Kind::Call(mark::DISABLE) => on = false,
            Kind::Call(mark::ENABLE) => {
                on = true;
                if left == 0 {
                    while_masked += 1;
                } else {
                    while_open += 1;
                }
            }
            Kind::Call(_) => {}
            Kind::Request => {
                assert!(
                    on && services == 1,
                    "fires while the user has it off: {episode:?} {what}"
                );
                left -= 1;
            }
            Kind::Expiry => {
                assert!(
                    on || services == 0,
                    "served while the user has it off: {episode:?} {what}"
                );
                left = BURSTS[1] - services;
            }
        }
        assert_eq!(
            episode.enabled,
            on && left > 0,
            "the user wants it {on}, of its burst {left} are left: {episode:?} {what}"
        );
    }
    assert!(
        while_masked > 10 && while_open > 10,
        "{while_masked} times enabled while masked, {while_open} while not: {what}"
    );
}
