// SPDX-License-Identifier: GPL-3.0-or-later
//! ports/cortex-m on the board mps2-an385: what `ports/cortex-m/tests/limited.c` tells of every
//! event is held against the machine of core/, and what it served against the curves of
//! core/CONTRACTS.md. Every test needs QEMU and the compiler for Arm.
mod cortex;

use cortex::{Elf, Limit, PER_TICK, can_run, compile, spec};
use rayon::prelude::*;
use weir_board::board::EmulatedBoard;
use weir_board::run::{LineStimulus, RunResult, run};
use weir_board::stimulus::arrivals;
use weir_core_sys::curve::most;
use weir_core_sys::{Action, Bare, LimitTiming, Limiter, Step, W32};

/// The firmware that tells its events.
const SOURCE: &str = "ports/cortex-m/tests/limited.c";
/// The most instructions from the instant that was armed to the one in the timer's interrupt,
/// beside the body of a handler.
const LATENCY: u64 = 400;
/// Every action of a step, in the order of their bits.
const ACTIONS: [Action; 7] = [
    Action::Serve,
    Action::Ack,
    Action::Mask,
    Action::Unmask,
    Action::Arm,
    Action::Watch,
    Action::Disarm,
];

/// What the firmware tells of an event.
#[derive(Debug, Clone, Copy)]
struct Event {
    kind: u32,
    pending: bool,
    actions: u32,
    is_enabled: bool,
    now: u64,
    at: u64,
}

impl Event {
    fn parse(line: &str) -> Self {
        let words: Vec<u32> = line
            .split(' ')
            .map(|word| u32::from_str_radix(word, 16).unwrap())
            .collect();
        Self {
            kind: words[0] & 15,
            pending: words[0] >> 4 & 1 != 0,
            actions: words[0] >> 8 & 0x7f,
            is_enabled: words[0] >> 16 & 1 != 0,
            now: u64::from(words[1]),
            at: u64::from(words[2]),
        }
    }

    fn has(&self, action: Action) -> bool {
        self.actions & action as u32 != 0
    }
}

mod kind {
    pub const START: u32 = 0;
    pub const REQUEST: u32 = 1;
    pub const REFUSED: u32 = 2;
    pub const TICK: u32 = 3;
    pub const ENABLE: u32 = 4;
    pub const DISABLE: u32 = 5;
}

/// How many intervals a run lasts.
const INTERVALS: u64 = 150;

fn defines(limit: &Limit, more: &[&str]) -> Vec<String> {
    let mut all = vec![
        limit.initialiser(),
        format!("DIVISOR={}", limit.divisor),
        format!("LAST={}", INTERVALS * limit.config.interval),
    ];
    all.extend(more.iter().map(ToString::to_string));
    all
}

fn flood(elf: &Elf, limit: &Limit, floods: &[&str], counters: &[&str]) -> (RunResult, Vec<Event>) {
    // The firmware ends it, after it has told everything.
    let cycles = INTERVALS * limit.config.interval * limit.tick() + 60_000_000;
    let mut spec = spec(elf, floods, cycles);
    spec.counters = counters.iter().map(ToString::to_string).collect();
    let result = run(&spec).unwrap();
    assert_eq!(result.exit, Some(0), "{limit:?}");
    let events = result.said.lines().map(Event::parse).collect();
    (result, events)
}

/// The adversaries: far above the limit, just around it, in bursts, and as fast as it gets.
fn adversaries(limit: &Limit) -> [String; 4] {
    let interval = limit.config.interval * limit.tick();
    [
        format!("IRQ20=uniform:1cycles..{}cycles:seed=1", interval * 2 / 3),
        format!(
            "IRQ20=uniform:{}cycles..{}cycles:seed=2",
            interval - limit.tick() - 20,
            interval + limit.tick() + 20
        ),
        format!(
            "IRQ20=bursts:12:gap={}cycles:period={}cycles",
            interval / 10,
            interval * 5
        ),
        "IRQ20=uniform:50cycles..700cycles:seed=3".to_owned(),
    ]
}

/// Replays the events in the machine of core/, which must take the same steps, and compares the
/// enable bit in the NVIC with what the machine and the user want (LIMIT-ENABLE-1).
fn replay(limit: &Limit, events: &[Event], what: &str) {
    let mut machine: Option<Limiter<Bare<W32>>> = None;
    for (index, event) in events.iter().enumerate() {
        let step: Step = match (&mut machine, event.kind) {
            (None, kind::START) => {
                let (limiter, step) = Limiter::start(&limit.config, event.now).unwrap();
                machine = Some(limiter);
                step
            }
            (Some(machine), kind::REQUEST) => machine.request(event.now, false),
            (Some(machine), kind::REFUSED) => machine.refused(event.now),
            (Some(machine), kind::TICK) => machine.tick(event.now, event.pending),
            (Some(machine), kind::ENABLE) => machine.user_enable(event.now),
            (Some(machine), kind::DISABLE) => machine.user_disable(),
            other => panic!("{what}: event {index} is {:?}", other.1),
        };
        for action in ACTIONS {
            assert_eq!(
                event.has(action),
                step.has(action),
                "{limit:?} {what}: {action:?} of event {index}, {event:?}"
            );
        }
        if step.has(Action::Arm) {
            assert_eq!(event.at, step.at, "{limit:?} {what}: event {index}");
        }
        // The first event comes before the port lets the line in.
        if index > 0 {
            let is_on = machine.as_ref().is_some_and(Limiter::is_on);
            assert_eq!(event.is_enabled, is_on, "{limit:?} {what}: event {index}");
        }
    }
}

/// The instants of the services never exceed the curve (LIMIT-*-1, -2), and expiries come in time.
/// Returns their number.
fn judge(limit: &Limit, events: &[Event], body: u64, what: &str) -> usize {
    let latest = (LATENCY + body).div_ceil(limit.tick()) + 1;
    let served: Vec<u64> = events
        .iter()
        .filter(|event| event.has(Action::Serve))
        .map(|event| event.now)
        .collect();
    for (first, &from) in served.iter().enumerate() {
        for (last, &to) in served.iter().enumerate().skip(first).take(60) {
            let count = (last - first + 1) as u64;
            let most = most(&limit.config, to - from, latest).unwrap();
            assert!(
                count <= most,
                "{limit:?} {what}: {count} from tick {from} to {to}, the curve allows {most}"
            );
        }
    }
    // LIMIT-LIVE-1: what was armed happens; here with the latency that is known.
    let mut armed: Option<u64> = None;
    for event in events {
        if event.kind == kind::TICK && armed.is_some_and(|at| event.now >= at) {
            armed = None;
        }
        if event.has(Action::Arm) {
            armed = Some(event.at.max(event.now));
        }
        if let Some(at) = armed {
            assert!(event.now <= at + latest, "{limit:?} {what}: {at} {event:?}");
        }
    }
    served.len()
}

#[test]
fn cortex_m_takes_every_step_of_core_under_adversaries_at_every_prescaler() {
    if !can_run() {
        return;
    }
    Limit::all().into_par_iter().for_each(|limit| {
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0"])).unwrap();
        for text in adversaries(&limit) {
            let (result, events) = flood(&elf, &limit, &[&text], &["served"]);
            replay(&limit, &events, &text);
            let served = judge(&limit, &events, 0, &text);
            assert_eq!(result.counters["served"], served as u64);
            assert!(served > 50, "{limit:?} {text}: only {served}");
            // LIMIT-LIVE-2: what was taken is served; one or two may wait at the end.
            let taken = events.iter().filter(|event| {
                event.kind == kind::REQUEST || event.kind == kind::REFUSED || event.has(Action::Ack)
            });
            assert!(
                (0..=1).contains(&(taken.count() - served)),
                "{limit:?} {text}"
            );
        }
    });
}

#[test]
fn cortex_m_follows_the_user_and_changes_nothing_by_its_record() {
    if !can_run() {
        return;
    }
    Limit::all().into_par_iter().for_each(|limit| {
        let turns = limit.config.interval * limit.tick() / 10;
        for record in [0, 1] {
            let more = [
                &format!("USER={turns}"),
                &format!("WEIR_LIMIT_RECORD={record}"),
                "WORK=20",
            ]
            .map(|text: &str| text.to_owned());
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let elf = compile(SOURCE, &defines(&limit, &more)).unwrap();
            for text in &adversaries(&limit)[..2] {
                let (_, events) = flood(&elf, &limit, &[text], &[]);
                replay(&limit, &events, text);
                // While the user has it off, an expiry may wait: only the curve is judged.
                let mut off = false;
                for event in &events {
                    off = match event.kind {
                        kind::DISABLE => true,
                        kind::ENABLE => false,
                        _ => off,
                    };
                    // LIMIT-ENABLE-2.
                    assert!(!(off && event.has(Action::Serve)), "{limit:?} {event:?}");
                }
                let switched = events.iter().filter(|event| event.kind == kind::DISABLE);
                assert!(switched.count() > 20, "{limit:?}");
            }
        }
    });
}

#[test]
fn cortex_m_loses_nothing_below_the_limit() {
    if !can_run() {
        return;
    }
    Limit::all().into_par_iter().for_each(|limit| {
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0"])).unwrap();
        // A tick for the rounding of instants, and the latency of an expiry (eager).
        let least = (limit.config.interval + 1) * limit.tick() + LATENCY + limit.tick();
        let text = format!("IRQ20=uniform:{least}cycles..{}cycles:seed=4", 2 * least);
        let (result, events) = flood(&elf, &limit, &[&text], &[]);
        replay(&limit, &events, &text);
        let served = judge(&limit, &events, 0, &text);
        // LIMIT-LOSS-1. The flood goes on while the firmware tells its events; one request may come
        // before the first of them, and one at the end.
        let clock = EmulatedBoard::Mps2An385.clock_hz();
        let flood = LineStimulus::on(EmulatedBoard::Mps2An385, &text, clock).unwrap();
        let end = INTERVALS * limit.config.interval * limit.tick();
        let offered = arrivals(&flood.stimulus, clock)
            .unwrap()
            .take_while(|arrival| arrival.at < end)
            .count();
        assert!(
            served.abs_diff(offered) <= 1,
            "{limit:?}: {served} {offered}"
        );
        let requests = events.iter().filter(|event| event.kind == kind::REQUEST);
        assert!(events.iter().all(|event| event.kind != kind::REFUSED));
        if limit.config.timing == LimitTiming::Lazy {
            // LIMIT-LAZY-1.
            assert_eq!(requests.count(), served, "{limit:?}");
            let timer = result.vectors.iter().find(|used| used.name == "IRQ10");
            assert_eq!(timer.map_or(0, |used| used.taken), 0, "{limit:?}");
        }
    });
}

/// LIMIT-TIMERLESS-1: the same with SysTick, every fifth of an interval, in place of the timer.
#[test]
fn cortex_m_keeps_its_limits_by_a_tick_that_exists_already() {
    if !can_run() {
        return;
    }
    Limit::all().into_par_iter().for_each(|limit| {
        let period = limit.config.interval * limit.divisor / 5;
        let ticked = format!("TICKED={period}");
        let elf = compile(SOURCE, &defines(&limit, &["WEIR_LIMIT_RECORD=0", &ticked])).unwrap();
        for text in &adversaries(&limit)[..2] {
            let (result, events) = flood(&elf, &limit, &[text], &["served"]);
            replay(&limit, &events, text);
            let served = judge(&limit, &events, period * PER_TICK, text);
            assert_eq!(result.counters["served"], served as u64);
            assert!(served > 50, "{limit:?} {text}: only {served}");
        }
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
        "IRQ21=uniform:1cycles..2500cycles:seed=2",
    ];
    let counters = ["served", "served_urgent", "nested", "held", "held_urgent"];
    let (result, events) = flood(&elf, &limit, &floods, &counters);
    replay(&limit, &events, "nested");
    // A critical section of 500 turns, of at most ten instructions, holds the group back.
    judge(&limit, &events, 5000 + 10 * 500, "nested");
    let count = |name: &str| result.counters[name];
    assert!(count("served") > 50 && count("served_urgent") > 300);
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
        if more.iter().any(|define| define.starts_with("LIMIT=")) {
            all.remove(0);
        }
        compile(SOURCE, &all).err().map(|error| error.to_string())
    };
    let strict = "LIMIT=.policy = WEIR_LIMIT_STRICT, .burst = 1, .interval = ";
    for (more, reason) in [
        (vec![format!("{strict}0")], "the interval must be 1 to 2^29"),
        (vec![format!("{strict}0x20000001")], "cannot be kept"),
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
    ] {
        assert_eq!(refused(more), None, "{more:?}");
    }
}
