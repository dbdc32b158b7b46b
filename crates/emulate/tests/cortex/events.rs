// SPDX-License-Identifier: GPL-3.0-or-later
//! Parses the events that the firmware of ports/cortex-m/tests reports (told.h), and checks them.
use weir_core_sys::curve::{most, most_across, most_across_all};
use weir_core_sys::{Action, Config, Limiter, Step, W32, Width};
use weir_emulate::run::{LineStimulus, RunResult, run};

use super::{Elf, Limit, spec};

/// The most instructions from the armed instant to the instant that the timer's interrupt reads,
/// without the bodies of handlers, with one source in the group.
pub const LATENCY: u64 = 400;
/// The duration of a run in intervals.
pub const INTERVALS: u64 = 150;
/// The exception number of IRQ0.
pub const FIRST_LINE: u32 = 16;
/// All actions of a step, in the order of their bits.
const ACTIONS: [Action; 7] = [
    Action::Serve,
    Action::Ack,
    Action::Mask,
    Action::Unmask,
    Action::Arm,
    Action::Watch,
    Action::Disarm,
];
/// A window of the curve's check begins at a service and contains at most this many later services.
const WINDOW: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Start,
    Request,
    Refused,
    Tick,
    Enable,
    Disable,
    Change,
}

/// An event that the firmware reports.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub source: usize,
    pub kind: Kind,
    pub pending: bool,
    /// Whether a request waits after the event.
    pub waits: bool,
    actions: u32,
    pub is_enabled: bool,
    /// The number of the exception in which the event happens; 0 for a thread.
    pub exception: u32,
    pub now: u64,
    pub at: u64,
    /// The interval and the burst in force, if the limit can change.
    pub limit: (u64, u8),
}

impl Event {
    fn parse(line: &str) -> Self {
        use Kind::{Change, Disable, Enable, Refused, Request, Start, Tick};
        let words = words(line);
        let kinds = [Start, Request, Refused, Tick, Enable, Disable, Change];
        Self {
            kind: kinds[words[0] as usize & 15],
            pending: words[0] >> 4 & 1 != 0,
            waits: words[0] >> 5 & 1 != 0,
            actions: words[0] >> 8 & 0x7f,
            is_enabled: words[0] >> 16 & 1 != 0,
            source: words[0] as usize >> 20 & 15,
            exception: words[0] >> 24,
            now: u64::from(words[1]),
            at: u64::from(words[2]),
            limit: (u64::from(words[3] & 0x00ff_ffff), words[3].to_be_bytes()[0]),
        }
    }

    pub fn has(&self, action: Action) -> bool {
        self.actions & action as u32 != 0
    }

    /// Returns whether this is an interrupt of the source that did not run its handler.
    pub fn is_refusal(&self) -> bool {
        self.kind == Kind::Refused || (self.kind == Kind::Request && !self.has(Action::Serve))
    }

    /// Returns whether a request was taken, by an interrupt or, from the pending bit, by an expiry.
    pub fn is_taken(&self) -> bool {
        matches!(self.kind, Kind::Request | Kind::Refused) || self.has(Action::Ack)
    }
}

/// Parses the events that a firmware has reported. Instants continue when the timer wraps. Two
/// events are less than half a wrap apart, because a group ages its sources that often.
pub fn parse(lines: &str) -> Vec<Event> {
    let mut events: Vec<Event> = lines.lines().map(Event::parse).collect();
    let ahead = |to: u64, from: u64| i64::from((to as u32).wrapping_sub(from as u32) as i32);
    let mut now = events.first().map_or(0, |event| event.now);
    for event in &mut events {
        // Both values have 32 bits; `at` may be before `now`.
        now = now.wrapping_add_signed(ahead(event.now, now));
        event.at = now.wrapping_add_signed(ahead(event.at, event.now));
        event.now = now;
    }
    events
}

/// Parses the hexadecimal words of a line.
pub fn words(line: &str) -> Vec<u32> {
    line.split(' ')
        .map(|word| u32::from_str_radix(word, 16).unwrap())
        .collect()
}

/// Returns the macros of limited.c for one source.
pub fn defines(limit: &Limit, more: &[&str]) -> Vec<String> {
    let mut all = vec![
        limit.initialiser("LIMIT0"),
        format!("DIVISOR={}", limit.divisor),
        format!("LAST={}", INTERVALS * limit.config.interval),
    ];
    all.extend(more.iter().map(ToString::to_string));
    all
}

/// Runs a firmware until it ends. By then it has reported all events.
pub fn told(elf: &Elf, floods: &[LineStimulus], counters: &[&str], cycles: u64) -> RunResult {
    let mut spec = spec(elf, floods, cycles + 100_000_000);
    spec.counters = counters.iter().map(ToString::to_string).collect();
    let result = run(&spec).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.exit, Some(0));
    result
}

/// Returns the events of a run of [`INTERVALS`] intervals.
pub fn flooded(
    elf: &Elf,
    limit: &Limit,
    floods: &[LineStimulus],
    counters: &[&str],
) -> (RunResult, Vec<Event>) {
    let cycles = INTERVALS * limit.config.interval * limit.tick();
    let result = told(elf, floods, counters, cycles);
    let events = parse(&result.said);
    (result, events)
}

/// Replays the events of one source in the limiter of core/, which must take the same steps. Checks
/// that the enable bit is what the limiter and the user want (LIMIT-ENABLE-1), and that nothing is
/// served in a thread (LIMIT-ENABLE-4) or while the user has the source off (LIMIT-ENABLE-2).
pub fn replay<W: Width>(config: &Config, events: &[Event], what: &str) -> Limiter<W> {
    let first = events.first().unwrap_or_else(|| panic!("{what}: no event"));
    assert_eq!(first.kind, Kind::Start, "{what}");
    let (mut machine, mut step) = Limiter::<W>::start(config, first.now).unwrap();
    let mut is_user_off = false;
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            step = next(&mut machine, config, event);
            // The first event comes before the port enables the line.
            assert_eq!(
                event.is_enabled,
                machine.is_on(),
                "{what}: the enable bit after event {index}, {event:?}"
            );
        }
        for action in ACTIONS {
            assert_eq!(
                event.has(action),
                step.has(action),
                "{config:?} {what}: {action:?} of event {index}, {event:?}"
            );
        }
        if step.has(Action::Arm) {
            assert_eq!(
                W32::wrap(event.at),
                step.at,
                "{config:?} {what}: event {index}"
            );
        }
        is_user_off = match event.kind {
            Kind::Disable => true,
            Kind::Enable => false,
            _ => is_user_off,
        };
        if event.has(Action::Serve) {
            assert!(!is_user_off, "{config:?} {what}: {event:?} while it is off");
            assert_ne!(
                event.exception, 0,
                "{config:?} {what}: {event:?} in a thread"
            );
        }
    }
    machine
}

fn next<W: Width>(machine: &mut Limiter<W>, config: &Config, event: &Event) -> Step {
    match event.kind {
        Kind::Start => panic!("a second start"),
        Kind::Request => machine.request(event.now, false),
        Kind::Refused => machine.refused(event.now),
        Kind::Tick => machine.tick(event.now, event.pending),
        Kind::Enable => machine.user_enable(event.now),
        Kind::Disable => machine.user_disable(),
        Kind::Change => {
            let (interval, burst) = event.limit;
            let to = Config {
                interval,
                burst,
                ..*config
            };
            machine.reconfigure(&to, event.now).unwrap()
        }
    }
}

/// Checks that the services never exceed the curve (LIMIT-*-1, -2), not even across changes
/// (LIMIT-CHANGE-1, -2). Returns the number of services.
pub fn judge_curve(config: &Config, events: &[Event], jitter: u64, what: &str) -> usize {
    // The successive limits, and for each service the index of its limit.
    let mut limits = vec![*config];
    let mut served = Vec::new();
    for event in events {
        if event.kind == Kind::Change {
            let (interval, burst) = event.limit;
            limits.push(Config {
                interval,
                burst,
                ..*config
            });
        }
        if event.has(Action::Serve) {
            served.push((event.now, limits.len() - 1));
        }
    }
    for (first, &(from, before)) in served.iter().enumerate() {
        for (last, &(to, after)) in served.iter().enumerate().skip(first).take(WINDOW) {
            let count = (last - first + 1) as u64;
            let window = to - from;
            let allowed = match after - before {
                0 => most(&limits[before], window, jitter),
                1 => most_across(&limits[before], &limits[after], window, jitter),
                _ => most_across_all(&limits[before..=after], window, jitter),
            }
            .unwrap();
            assert!(
                count <= allowed,
                "{config:?} {what}: {count} from tick {from} to {to}, {} changes, the curves allow {allowed}",
                after - before
            );
        }
    }
    served.len()
}

/// Checks that each expiry happens at most `latest` ticks after the armed instant (LIMIT-LIVE-1,
/// LIMIT-SHARED-1).
pub fn judge_expiries(events: &[Event], latest: u64, what: &str) {
    let mut armed: Option<u64> = None;
    for event in events {
        if event.kind == Kind::Tick && armed.is_some_and(|at| event.now >= at) {
            armed = None;
        }
        // An event in a thread may come before the timer's interrupt, which the thread delays.
        if let Some(at) = armed {
            assert!(
                event.now <= at + latest,
                "{what}: armed for {at}, {event:?}"
            );
        }
        if event.has(Action::Arm) {
            armed = Some(event.at.max(event.now));
        }
    }
}

/// Checks the curve and the expiries of a source that is alone in its group. `body` is the number
/// of its handler's instructions. Returns the number of services.
pub fn judge(limit: &Limit, events: &[Event], body: u64, what: &str) -> usize {
    let latest = latest(limit, body);
    judge_expiries(events, latest, what);
    judge_curve(&limit.config, events, latest, what)
}

/// Returns L in ticks. The handler executes `body` instructions more than an empty one.
pub fn latest(limit: &Limit, body: u64) -> u64 {
    (LATENCY + body).div_ceil(limit.tick()) + 1
}

/// Checks that every taken request is served. One request may wait at the end (LIMIT-LIVE-2).
pub fn judge_taken(events: &[Event], what: &str) {
    let taken = events.iter().filter(|event| event.is_taken()).count();
    let served = events
        .iter()
        .filter(|event| event.has(Action::Serve))
        .count();
    assert!(
        (served..=served + 1).contains(&taken),
        "{what}: {taken} taken, {served} served"
    );
}
