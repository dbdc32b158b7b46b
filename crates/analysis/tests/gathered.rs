// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates, event by event, a network card whose waits a tick ends (ports/freertos, `gather`). No
//! packet waits for longer than its bound, and no more interrupts are requested than the curve
//! allows.

use crate::common::{cost, cpu, level, no_limit, source, system, task};
use proptest::prelude::*;
use weir_analysis::analyse;
use weir_analysis::check::report;
use weir_analysis::limiter::requests;
use weir_analysis::units::Units;
use weir_model::{
    Flow, Interval, Limit, Moderation, Nesting, Place, Policy, Selector, System, TaskModel,
};

/// A random card and its packets. Times are in cycles.
#[derive(Debug, Clone)]
struct Card {
    tick: u64,
    absolute: u64,
    handler: u64,
    max_work: u64,
    ring: u64,
    /// The interval of an ideal limiter; `None` if there is no limit.
    limit: Option<u64>,
    /// The least time from one packet to the next; `None` if it is not stated.
    apart: Option<u64>,
    /// The times from each packet to the next; `apart` is taken if it is longer.
    gaps: Vec<u64>,
    /// The delays of the ticks, in thousandths of a tick.
    late: Vec<u64>,
}

impl Card {
    fn system(&self) -> System {
        let mut system = system(cpu(Nesting::Flat, TaskModel::Preemptive));
        let limit = self.limit.map_or_else(no_limit, |interval| Limit {
            policy: Policy::Strict,
            place: Place::Hardware,
            interval: Interval::of_cycles(interval),
            ..no_limit()
        });
        let mut card = source(level(0, 0), self.handler, self.apart, limit);
        card.max_work = Some(self.max_work);
        card.queue = Some(self.ring);
        card.moderation = Some(Moderation {
            absolute: self.absolute,
            packet: None,
            count: None,
            tick: Some(self.tick),
        });
        system.sources.push(card);
        system.receivers.push(task(1, 0, 1_000_000, 0));
        system.flows.push(Flow {
            name: "packets".into(),
            source: 0,
            receiver: 0,
            selector: Selector::default(),
            rate: None,
            top_half: cost(0),
            demux: cost(0),
            bottom_half: cost(0),
            queue: None,
            deadline: None,
        });
        system
    }
}

/// The events of a run, with the longest time from a packet's arrival to the end of the interrupt
/// that takes it, and the times at which interrupts were requested.
struct Run<'a> {
    card: &'a Card,
    is_on: bool,
    /// The time since which frames wait for others; `None` if no frames wait or the wait has ended.
    open: Option<u64>,
    has_ended: bool,
    pending: bool,
    /// Before this time the limit lets nothing through, or the handler runs.
    free: u64,
    waiting: Vec<u64>,
    asked: Vec<u64>,
    taken: Vec<u64>,
    longest: u64,
}

impl Run<'_> {
    fn ask(&mut self, now: u64) {
        if !self.pending {
            self.pending = true;
            self.asked.push(now);
        }
    }

    /// Runs the handler as often as possible until `now`.
    fn serve(&mut self, now: u64) {
        while self.pending {
            let begin = self.free.max(*self.asked.last().unwrap());
            if begin >= now {
                return;
            }
            let end = begin + self.card.handler;
            self.pending = false;
            self.free = (begin + self.card.limit.unwrap_or(0)).max(end);
            if !self.has_ended {
                (self.is_on, self.open) = (false, Some(begin));
                continue;
            }
            let number = self.waiting.len().min(self.card.max_work as usize);
            for arrival in self.waiting.drain(..number) {
                self.longest = self.longest.max(end - arrival);
                self.taken.push(end);
            }
            self.has_ended = false;
            if self.waiting.is_empty() {
                self.is_on = true;
            } else {
                self.open = Some(end);
            }
        }
    }

    fn packet(&mut self, now: u64) {
        self.serve(now);
        if (self.waiting.len() as u64) < self.card.ring {
            self.waiting.push(now);
        }
        if self.is_on {
            self.ask(now);
        }
    }

    fn tick(&mut self, now: u64) {
        self.serve(now);
        if self
            .open
            .is_some_and(|first| now >= first + self.card.absolute)
        {
            (self.open, self.has_ended) = (None, true);
            self.ask(now);
        }
    }
}

fn run(card: &Card) -> Run<'_> {
    let mut packets = card.gaps.iter().scan(0, |now, gap| {
        *now += card.apart.unwrap_or(0).max(*gap);
        Some(*now)
    });
    let ticks = (1..).zip(card.late.iter().cycle());
    let mut ticks = ticks.map(|(number, late)| number * card.tick + late * card.tick / 1000);
    let mut run = Run {
        card,
        is_on: true,
        open: None,
        has_ended: false,
        pending: false,
        free: 0,
        waiting: Vec::new(),
        asked: Vec::new(),
        taken: Vec::new(),
        longest: 0,
    };
    let (mut packet, mut tick) = (packets.next(), ticks.next().unwrap());
    while packet.is_some() || !run.waiting.is_empty() {
        match packet {
            Some(at) if at < tick => {
                run.packet(at);
                packet = packets.next();
            }
            _ => {
                run.tick(tick);
                tick = ticks.next().unwrap();
            }
        }
    }
    run
}

/// The longest time from a packet's arrival to the end of its interrupt, according to `weir check`.
fn bound(system: &System) -> Option<u64> {
    let report = report(system, &analyse(system), &mut |_| ());
    report.flows[0].bound.response_cycles
}

fn cards() -> impl Strategy<Value = Card> {
    let gap = prop_oneof![Just(0_u64), 1..30_u64, 1..2000_u64];
    (
        10..400_u64,
        1..800_u64,
        1..9_u64,
        (1..6_u64, 1..20_u64),
        (
            proptest::option::of(10..900_u64),
            proptest::option::of(1..300_u64),
        ),
        prop::collection::vec(gap, 1..60),
        prop::collection::vec(0..1000_u64, 1..40),
    )
        .prop_map(
            |(tick, absolute, handler, (max_work, ring), (limit, apart), gaps, late)| Card {
                tick,
                absolute,
                handler,
                max_work,
                ring,
                limit,
                apart,
                gaps,
                late,
            },
        )
}

proptest! {
    #![proptest_config(crate::cases(300, 2000))]

    #[test]
    fn no_packet_waits_for_longer_than_its_bound(card in cards()) {
        let system = card.system();
        let run = run(&card);
        // If handlers take the whole processor, there is no bound.
        if let Some(bound) = bound(&system) {
            prop_assert!(run.longest <= bound, "{} > {bound}", run.longest);
        }
        let curve = requests(&system.sources[0], system.cpu.clock_hz).unwrap();
        no_more_than(&run.asked, |cycles| curve.events(cycles))?;
        let latencies = analyse(&system).latencies;
        let packets = Units::new(&system, &latencies).packets(0).unwrap();
        no_more_than(&run.taken, |cycles| packets.events(cycles))?;
    }
}

/// Checks that no window contains more of these instants than allowed.
fn no_more_than(instants: &[u64], most: impl Fn(u64) -> u64) -> Result<(), TestCaseError> {
    for (index, from) in instants.iter().enumerate() {
        for (number, to) in (1..).zip(&instants[index..]) {
            let most = most(to - from + 1);
            prop_assert!(number <= most, "{number} from {from} to {to}, of {most}");
        }
    }
    Ok(())
}

/// Checks that the bound is tight. A packet that comes after a tick, and a tick that is late, reach
/// it except for a few cycles.
#[test]
fn the_bound_is_nearly_reached() {
    let card = Card {
        tick: 1000,
        absolute: 990,
        handler: 1,
        max_work: 4,
        ring: 4,
        limit: None,
        apart: None,
        gaps: vec![12],
        late: vec![0, 999],
    };
    let bound = bound(&card.system());
    let longest = run(&card).longest;
    assert!(
        bound.is_some_and(|bound| longest <= bound && bound < longest + 1100),
        "{longest} of {bound:?}"
    );
}

/// A late tick ends a wait, and the next one, which is on time, ends another. Together with the
/// requests that begin the waits, there are as many requests as the curve allows at one instant.
#[test]
fn the_curve_of_requests_is_reached() {
    let card = Card {
        tick: 1000,
        absolute: 1,
        handler: 1,
        max_work: 4,
        ring: 4,
        limit: None,
        apart: None,
        gaps: vec![2996, 2, 3],
        late: vec![0, 997, 0],
    };
    let system = card.system();
    let curve = requests(&system.sources[0], system.cpu.clock_hz).unwrap();
    let asked = run(&card).asked;
    assert_eq!(asked[..5], [2996, 2997, 2998, 3000, 3001]);
    assert_eq!(curve.events(asked[4] - asked[0] + 1), 5);
}
