// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random systems of every kind that the model permits. Their numbers are small, so that
//! coincidences which are rare in practice are frequent here.

use proptest::prelude::*;
use weir_model::{
    Cost, Cpu, EventCosts, Expiry, Flow, FrameBudget, FrameLane, Freertos, Interval, Level, Limit,
    Linux, Moderation, Nesting, Origin, Place, Policy, Rate, Rates, Receiver, Selector,
    SiliconLimit, Source, System, TaskModel, Timer, Timing,
};

/// The clock of all systems in these tests, in cycles per second.
pub const CLOCK: u64 = 1_000_000;

pub fn cost(cycles: u64) -> Cost {
    Cost {
        cycles,
        origin: Origin::Declared,
    }
}

pub fn level(group: u32, order: u32) -> Level {
    Level {
        vector: format!("IRQ{order}"),
        group,
        order,
    }
}

/// Returns a rate of one per `cycles`, up to the rounding of f64.
pub fn rate(cycles: u64) -> Rate {
    Rate::from_hertz(CLOCK as f64 / cycles as f64).expect("a rate of one per some cycles")
}

fn sometimes<T: std::fmt::Debug + Clone>(
    of: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.6, of)
}

fn limit() -> impl Strategy<Value = Limit> {
    use Policy::{Bucket, Bursty, Off, Paced, Poll, Strict};
    let policy = prop::sample::select(vec![Off, Strict, Paced, Bursty, Bucket, Poll]);
    let timing = prop::sample::select(vec![Timing::Eager, Timing::Lazy, Timing::OneShot]);
    let costs = (0..9_u64, 0..9_u64, 0..14_u64, 0..9_u64);
    let numbers = (20..900_u64, 1..9_u64, 1..5_u32, 0..3_u32);
    let delay = prop_oneof![0..9_u64, 0..400_u64];
    let place = (0..4_u32, delay);
    (policy, timing, place, numbers, costs, 0..4_u32).prop_map(
        |(policy, timing, (place, delay), (interval, tick, burst, lag), costs, group)| {
            let place = match policy {
                Strict | Bucket | Bursty if place == 0 => Place::Hardware,
                _ => Place::Software,
            };
            let timing = match (timing, policy) {
                (_, Bursty) if place == Place::Hardware => Timing::OneShot,
                _ if place == Place::Hardware => Timing::Eager,
                (Timing::OneShot, Bursty) => Timing::OneShot,
                (Timing::OneShot, _) => Timing::Eager,
                (timing, _) => timing,
            };
            let has_expiry = policy != Policy::Off && place == Place::Software;
            let happens = |yes: bool, cost: u64| if yes { cost } else { 0 };
            Limit {
                policy,
                timing,
                place,
                interval: Interval {
                    ticks: happens(policy != Policy::Off, interval.div_ceil(tick)),
                    tick,
                },
                bits: 16,
                burst,
                lag,
                expiry: has_expiry.then(|| Expiry::Own {
                    channel: String::new(),
                    // The order is set when all interrupts are known.
                    level: level(group, 0),
                }),
                silicon: (place == Place::Hardware).then_some(SiliconLimit {
                    asked: 1,
                    rate: 1,
                    delay,
                    is_level: false,
                }),
                costs: EventCosts {
                    request_served: happens(policy != Policy::Poll, costs.0),
                    request_refused: happens(
                        timing == Timing::Lazy && policy != Policy::Off,
                        costs.1,
                    ),
                    expiry_served: happens(has_expiry, costs.2),
                    expiry_empty: happens(has_expiry, costs.3),
                },
            }
        },
    )
}

fn source() -> impl Strategy<Value = Source> {
    let moderation = (
        1..200_u64,
        sometimes(1..60_u64),
        sometimes(1..5_u64),
        sometimes(1..200_u64),
    )
        .prop_map(|(absolute, packet, count, tick)| Moderation {
            absolute,
            packet,
            count,
            tick,
        });
    (
        0..4_u32,
        (1..20_u64, 0..5_u64, sometimes(1..4_u64)),
        proptest::option::weighted(0.8, 10..1500_u64),
        limit(),
        sometimes(20..800_u64),
        (
            proptest::option::weighted(0.2, moderation),
            sometimes(1..9_u64),
        ),
        any::<bool>(),
        prop_oneof![Just(1), 1..4_u64],
    )
        .prop_map(
            |(
                group,
                (handler, work, max_work),
                worst,
                limit,
                deadline,
                (moderation, queue),
                proven,
                packet_units,
            )| {
                Source {
                    name: String::new(),
                    level: level(group, 0),
                    handler: cost(handler),
                    work: cost(work),
                    max_work: max_work.or(proven.then_some(1)),
                    packet_units,
                    rates: Rates {
                        expected: None,
                        tolerated: None,
                        worst: worst.map(rate),
                        worst_name: None,
                    },
                    limit,
                    deadline,
                    moderation,
                    queue,
                }
            },
        )
}

fn receiver() -> impl Strategy<Value = Receiver> {
    (
        0..5_u8,
        proptest::option::weighted(0.9, 150..4000_u64),
        prop_oneof![Just(0), 0..300_u64],
        (0..160_u64, 0..10_u64, 0..14_u64),
        sometimes(50..6000_u64),
    )
        .prop_map(
            |(urgency, period, jitter, (wcet, blocking, section), deadline)| Receiver {
                name: String::new(),
                urgency,
                period,
                jitter,
                deadline,
                wcet: cost(wcet),
                blocking: cost(blocking),
                critical_section: cost(section),
                backlog: None,
                port: None,
            },
        )
}

fn flow() -> impl Strategy<Value = Flow> {
    (
        any::<(prop::sample::Index, prop::sample::Index)>(),
        sometimes(50..3000_u64),
        (0..6_u64, 0..4_u64, 0..20_u64),
        sometimes(0..12_u64),
        sometimes(50..6000_u64),
        sometimes(Just(7)),
    )
        .prop_map(
            |((source, receiver), interarrival, (top, demux, bottom), queue, deadline, port)| {
                Flow {
                    name: String::new(),
                    // The index is reduced to the valid range when the lists are known.
                    source: source.index(1 << 16),
                    receiver: receiver.index(1 << 16),
                    rate: interarrival.map(rate),
                    top_half: cost(top),
                    demux: cost(demux),
                    bottom_half: cost(bottom),
                    queue,
                    deadline,
                    selector: Selector {
                        port,
                        ..Selector::default()
                    },
                }
            },
        )
}

/// Returns FreeRTOS settings with these budgets. The analysis ignores all other settings.
pub fn with_budgets(tick_cycles: u64, budgets: Vec<FrameBudget>) -> Freertos {
    Freertos {
        priorities: 5,
        tick_hz: 1,
        tick_cycles,
        stack_bytes: 512,
        common: FrameLane {
            urgency: 0,
            queue: 1,
            bottom_half: cost(0),
        },
        orphans: None,
        fragments: None,
        budgets,
    }
}

/// Generates budgets of receivers. The receivers' indices are reduced to the valid range when the
/// lists are known.
fn freertos() -> impl Strategy<Value = Freertos> {
    let budget = (0..1_usize << 16, 1..5_u32)
        .prop_map(|(receiver, per_tick)| FrameBudget { receiver, per_tick });
    (50..2000_u64, prop::collection::vec(budget, 0..6))
        .prop_map(|(tick, budgets)| with_budgets(tick, budgets))
}

fn timer() -> impl Strategy<Value = Timer> {
    (0..4_u32, 100..900_u64, 0..20_u64).prop_map(|(group, period, base)| Timer {
        name: String::new(),
        channel: String::new(),
        level: level(group, 0),
        period: Interval::of_cycles(period),
        base,
    })
}

fn cpu() -> impl Strategy<Value = Cpu> {
    let slice = proptest::option::weighted(0.3, 5..300_u64);
    (any::<(bool, bool)>(), 0..6_u64, 0..20_u64, 0..6_u64, slice).prop_map(
        |((flat, preemptive), longest_instruction, section, switch, slice)| Cpu {
            board: None,
            flavour: None,
            clock_hz: CLOCK,
            nesting: if flat {
                Nesting::Flat
            } else {
                Nesting::Grouped
            },
            longest_instruction,
            critical_section: cost(section),
            context_switch: cost(switch),
            tasks: if preemptive {
                TaskModel::Preemptive
            } else {
                TaskModel::Cooperative
            },
            time_slice: slice.filter(|_| preemptive),
            unlimited: EventCosts::default(),
            costs_from: String::new(),
        },
    )
}

/// Generates a system with up to `most` items of each kind.
pub fn system(most: usize) -> impl Strategy<Value = System> {
    use prop::collection::vec;
    (
        cpu(),
        vec((source(), any::<prop::sample::Index>()), 0..=most),
        vec(timer(), 0..=most.div_ceil(3)),
        vec(receiver(), 0..=most),
        vec(flow(), 0..=most),
        sometimes(freertos()),
        any::<u64>(),
    )
        .prop_map(
            |(cpu, sources, timers, receivers, flows, freertos, seed)| System {
                freertos: freertos.map(|of| in_range(of, receivers.len())),
                ..assemble(cpu, sources, timers, receivers, flows, seed)
            },
        )
}

/// Keeps at most one budget for each of `receivers` receivers.
fn in_range(mut freertos: Freertos, receivers: usize) -> Freertos {
    for budget in &mut freertos.budgets {
        budget.receiver %= receivers.max(1);
    }
    freertos.budgets.sort_by_key(|budget| budget.receiver);
    freertos.budgets.dedup_by_key(|budget| budget.receiver);
    freertos
}

fn assemble(
    cpu: Cpu,
    sources: Vec<(Source, prop::sample::Index)>,
    mut timers: Vec<Timer>,
    mut receivers: Vec<Receiver>,
    mut flows: Vec<Flow>,
    seed: u64,
) -> System {
    let mut orders = Orders::new(sources.len() * 2 + timers.len(), seed);
    for (index, timer) in timers.iter_mut().enumerate() {
        timer.name = format!("timer{index}");
        orders.give(&mut timer.level);
    }
    let mut finished = Vec::new();
    for (index, (mut source, shared)) in sources.into_iter().enumerate() {
        source.name = format!("source{index}");
        orders.give(&mut source.level);
        if let Some(Expiry::Own { level, .. }) = &mut source.limit.expiry {
            orders.give(level);
        }
        let shares = source.limit.policy == Policy::Bursty && source.limit.timing == Timing::Eager;
        if shares && !timers.is_empty() {
            let timer = shared.index(timers.len());
            source.limit.expiry = Some(Expiry::Shared(timer));
            source.limit.interval = timers[timer].period;
        }
        finished.push(source);
    }
    for (index, receiver) in receivers.iter_mut().enumerate() {
        receiver.name = format!("receiver{index}");
    }
    if finished.is_empty() || receivers.is_empty() {
        flows.clear();
    }
    for (index, flow) in flows.iter_mut().enumerate() {
        flow.name = format!("flow{index}");
        flow.source %= finished.len();
        flow.receiver %= receivers.len();
    }
    System {
        name: "random".to_owned(),
        sha256: "0".repeat(64),
        cpu,
        silicon: None,
        sources: finished,
        timers,
        receivers,
        flows,
        linux: Linux::default(),
        freertos: None,
    }
}

/// Generates a different order for each interrupt, in a random sequence.
struct Orders {
    left: Vec<u32>,
    state: u64,
}

impl Orders {
    fn new(count: usize, seed: u64) -> Self {
        let count = u32::try_from(count).expect("few interrupts");
        Self {
            left: (0..count).collect(),
            state: seed,
        }
    }

    fn give(&mut self, level: &mut Level) {
        // Knuth's MMIX generator. Its quality does not matter, and the test's seed determines it.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let pick = usize::try_from(self.state >> 33).expect("31 bits") % self.left.len();
        *level = self::level(level.group, self.left.swap_remove(pick));
    }
}
