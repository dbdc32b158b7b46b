// SPDX-License-Identifier: GPL-3.0-or-later
//! The costs of a limiter's interrupts in boards/atmega128/costs.toml are the worst ones. An
//! adversary that was written independently of the experiment that measured them makes no interrupt
//! longer.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::port::{CLOCK, Elf, Flavour, build};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use weir_emulate::board::EmulatedBoard;
use weir_emulate::firmware::Toolchain;
use weir_emulate::line::Line;
use weir_emulate::run::{BoardEvent, EventKind, LineStimulus, Stimulus, run};

/// The cycles of NODE_MARK in boards/atmega128/firmware/node.h.
const BODY: u64 = 102;
/// The address of OCR2, which the handler writes.
const MARK: u16 = 0x43;
const CYCLES: u64 = 3_000_000;

type Costs = BTreeMap<String, u64>;

/// A limiter with one policy on one line.
struct Limiter {
    flavour: Flavour,
    policy: &'static str,
    timing: &'static str,
    channel: &'static str,
    prescaler: u64,
    interval: u64,
    burst: u64,
    line: u64,
}

const fn limiter(
    policy: &'static str,
    timing: &'static str,
    channel: &'static str,
    (prescaler, interval, burst): (u64, u64, u64),
    line: u64,
) -> Limiter {
    let flavour = if matches!(channel.as_bytes(), b"TIMER0") {
        Flavour::Fast
    } else {
        Flavour::C
    };
    Limiter {
        flavour,
        policy,
        timing,
        channel,
        prescaler,
        interval,
        burst,
        line,
    }
}

/// Lines, channels, intervals and bursts that differ from those of the experiment.
const LIMITERS: &[Limiter] = &[
    limiter("strict", "eager", "TIMER1B", (1, 777, 1), 1),
    limiter("strict", "lazy", "TIMER1A", (8, 160, 1), 7),
    limiter("strict", "lazy", "TIMER3B", (1, 1234, 1), 2),
    limiter("paced", "eager", "TIMER1A", (1, 900, 1), 3),
    limiter("paced", "lazy", "TIMER1C", (1, 1100, 1), 4),
    limiter("bursty", "eager", "TIMER3A", (1, 2100, 3), 5),
    limiter("bursty", "lazy", "TIMER1A", (1, 1300, 3), 6),
    limiter("bursty", "one_shot", "TIMER1B", (1, 1700, 2), 7),
    limiter("bucket", "eager", "TIMER1A", (1, 850, 3), 1),
    limiter("bucket", "lazy", "TIMER1A", (1, 1050, 3), 2),
    limiter("bucket", "lazy", "TIMER3C", (8, 70, 3), 3),
    limiter("strict", "lazy", "TIMER0", (8, 110, 1), 4),
    limiter("bursty", "lazy", "TIMER0", (8, 180, 3), 5),
    limiter("bucket", "lazy", "TIMER0", (8, 75, 3), 6),
];

impl Limiter {
    fn name(&self) -> String {
        let flavour = if self.flavour == Flavour::C {
            "c"
        } else {
            "fast"
        };
        format!("{flavour}.{}.{}", self.policy, self.timing)
    }

    /// Returns the stated costs of the limiter, and whether they are those of its channel or the
    /// worst of all channels.
    fn stated(&self) -> (Costs, bool) {
        let path = format!(
            "{}/../../boards/atmega128/costs.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        let version = Toolchain::AVR.version().unwrap();
        let table: toml::Table = toml::from_str(&text).unwrap();
        let of_channel = table["channel"].get(self.channel);
        let costs = self
            .name()
            .split('.')
            .fold(of_channel.unwrap_or(&table["limiter"]), |table, part| {
                &table[part]
            });
        let costs = costs
            .as_table()
            .unwrap()
            .iter()
            .map(|(name, columns)| {
                let columns = columns.as_table().unwrap();
                // For a compiler that was never measured, the worst of all columns is used.
                let cycles = match columns.get(&version.number()) {
                    Some(own) => own.as_integer(),
                    None => columns.values().filter_map(toml::Value::as_integer).max(),
                };
                (name.clone(), u64::try_from(cycles.unwrap()).unwrap())
            })
            .collect();
        (costs, of_channel.is_some())
    }

    fn firmware(&self) -> Elf {
        let constant = |name: &str| format!("WEIR_LIMIT_{}", name.to_uppercase());
        let sources =
            ["node.c", "limited.c"].map(|name| format!("boards/atmega128/firmware/{name}"));
        build(
            &sources.each_ref().map(String::as_str),
            self.flavour,
            &[
                "NODE_MARK=OCR2".to_owned(),
                "WEIR_LIMIT_RECORD=0".to_owned(),
                // INT0 also interrupts for this many cycles.
                format!("NODE_BLOCK={}", self.interval * self.prescaler * 7 / 4),
                format!("NODE_LINE={}", self.line),
                format!("NODE_CHANNEL={}", self.channel),
                format!("NODE_PRESCALER={}", self.prescaler),
                format!("NODE_POLICY={}", constant(self.policy)),
                format!("NODE_TIMING={}", constant(self.timing)),
                format!("NODE_INTERVAL={}", self.interval),
                format!("NODE_BURST={}", self.burst),
            ],
        )
    }

    fn line(&self) -> Line {
        Line::from_number(usize::try_from(self.line).unwrap()).unwrap()
    }

    /// Returns Poisson requests whose rate changes at random, from far below the limit to far above
    /// it.
    fn attack(&self, seed: u64) -> Vec<LineStimulus> {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let interval = (self.interval * self.prescaler) as f64;
        let mut edges = [Vec::new(), Vec::new()];
        let mut now = 3000.0;
        while now < CYCLES as f64 {
            let mean = interval * [0.05, 0.15, 0.4, 1.0, 3.0][random.random_range(0..5)];
            for _ in 0..random.random_range(1..=4 * self.burst) {
                let uniform: f64 = random.random_range(f64::EPSILON..1.0);
                now += 10.0 - mean * uniform.ln();
                edges[0].push(now as u64);
            }
            if random.random_bool(0.15) {
                edges[1].push((now + random.random_range(0.0..2.0) * interval) as u64);
            }
            if random.random_bool(0.2) {
                now += random.random_range(1.0..4.0) * interval;
            }
        }
        edges[1].sort_unstable();
        edges[1].dedup_by(|later, earlier| *later < *earlier + 10);
        [self.line(), Line::INT0]
            .into_iter()
            .zip(edges)
            .map(|(line, times)| LineStimulus {
                line,
                stimulus: Stimulus::Trace {
                    name: format!("adversary {seed}"),
                    times: Arc::from(times),
                },
            })
            .collect()
    }

    /// Returns the longest interrupt of each kind, without the handler's body.
    fn observe(&self, elf: &Elf, seed: u64) -> Costs {
        let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, CLOCK, CYCLES);
        spec.floods = self.attack(seed);
        spec.trace = true;
        let events = run(&spec).unwrap_or_else(|error| panic!("{error}")).events;
        let mut longest = Costs::new();
        for interrupt in interrupts(&events) {
            let [begin, .., end] = interrupt else {
                continue;
            };
            let EventKind::VectorEntered(number) = begin.kind else {
                continue;
            };
            let ran = |event: &BoardEvent| matches!(event.kind, EventKind::IoWritten { address, .. } if address == MARK);
            let served = interrupt.iter().any(ran);
            let name = match (number, served) {
                (1, _) => continue,
                (2..=8, true) => "request_served",
                (2..=8, false) => "request_refused",
                (_, true) => "expiry_served",
                (_, false) => "expiry_empty",
            };
            let cycles = end.cycle - begin.cycle - if served { BODY } else { 0 };
            let most = longest.entry(name.to_owned()).or_insert(0);
            *most = cycles.max(*most);
        }
        longest
    }
}

/// Splits the events by interrupt, each from its start to its RETI. The last interrupt may be
/// incomplete.
fn interrupts(events: &[BoardEvent]) -> impl Iterator<Item = &[BoardEvent]> {
    events
        .split_inclusive(|event| event.kind == EventKind::Reti)
        .filter(|part| part.last().is_some_and(|last| last.kind == EventKind::Reti))
        .filter_map(|part| {
            let begin = part
                .iter()
                .rposition(|event| matches!(event.kind, EventKind::VectorEntered(_)))?;
            Some(&part[begin..])
        })
}

/// Returns the interrupts that took longer than stated, or that have no stated costs.
fn beyond(stated: &Costs, observed: &Costs) -> Vec<String> {
    observed
        .iter()
        .filter(|(name, cycles)| stated.get(*name).is_none_or(|most| *cycles > most))
        .map(|(name, cycles)| format!("{name} took {cycles} cycles, stated {:?}", stated.get(name)))
        .collect()
}

#[test]
fn no_interrupt_of_a_limiter_takes_longer_than_the_boards_costs_say() {
    LIMITERS.par_iter().for_each(|limiter| {
        let (stated, of_channel) = limiter.stated();
        let elf = limiter.firmware();
        let mut longest = Costs::new();
        for seed in 0..4 {
            let observed = limiter.observe(&elf, seed);
            let wrong = beyond(&stated, &observed);
            assert!(
                wrong.is_empty(),
                "{} on {}: {wrong:?}",
                limiter.name(),
                limiter.channel
            );
            for (name, cycles) in observed {
                let most = longest.entry(name).or_insert(0);
                *most = cycles.max(*most);
            }
        }
        // Every stated kind of interrupt was observed, and took nearly as long as stated. So the
        // costs are neither those of another firmware nor too high.
        for (name, most) in &stated {
            let seen = longest.get(name).copied().unwrap_or(0);
            assert!(
                seen * 4 >= most * 3 || !of_channel && seen > 0,
                "{} on {}: {name} is stated as {most} cycles, {seen} were seen",
                limiter.name(),
                limiter.channel
            );
        }
    });
}

#[test]
fn a_cycle_less_would_be_noticed() {
    let limiter = &LIMITERS[1];
    let (mut stated, _) = limiter.stated();
    for cycles in stated.values_mut() {
        *cycles -= 1;
    }
    let observed = limiter.observe(&limiter.firmware(), 0);
    assert!(!beyond(&stated, &observed).is_empty(), "{observed:?}");
    // A kind of interrupt without stated costs is found, too.
    stated.remove("request_refused");
    let refused = |wrong: &String| wrong.starts_with("request_refused");
    assert!(beyond(&stated, &observed).iter().any(refused));
}
