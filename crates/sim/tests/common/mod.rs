// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds systems from texts and runs them.
#![allow(dead_code, reason = "the benchmark of papers/bench uses a part")]

pub mod limits;

use weir_arrivals::Pattern;
use weir_model::System;
use weir_sim::{
    CostSpreads, Defer, Feed, Observer, Options, SimulationEvent, Spread, Tally, Target, Ties,
    simulate_observed,
};

/// A source whose handler takes 20 cycles.
pub const LINE: &str = r#"
[[source]]
name = "line"
vector = "INT0"
order = 1
handler = "20 cycles"
max_work = 1
"#;

/// A task that runs 95 cycles in every 1000.
pub const TASK: &str = r#"
[[receiver]]
name = "task"
urgency = 5
period = "1ms"
deadline = "100us"
wcet = "95us"
"#;

/// A processor of 1 MHz, so that a cycle is a microsecond. An unlimited interrupt takes 10 cycles
/// in addition to its handler.
pub const CPU: &str = r#"
schema = 1
[cpu]
clock = "1MHz"
interrupts = "INTERRUPTS"
longest_instruction = "0 cycles"
[cpu.costs]
off = { request_served = "10 cycles" }
strict = { eager = { request_served = "15 cycles", expiry_served = "18 cycles", expiry_empty = "12 cycles" } }
bursty = { lazy = { request_served = "14 cycles", request_refused = "11 cycles", expiry_served = "17 cycles", expiry_empty = "13 cycles" } }
"#;

/// Builds the system that `rest` describes on [`CPU`]. Its interrupts do not nest.
pub fn flat(rest: &str) -> System {
    parse(&(CPU.replace("INTERRUPTS", "flat") + rest))
}

/// Builds the system that `rest` describes on [`CPU`]. Its interrupts nest by groups.
pub fn grouped(rest: &str) -> System {
    parse(&(CPU.replace("INTERRUPTS", "grouped") + rest))
}

pub fn parse(text: &str) -> System {
    weir_model::parse("test.toml", text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// Returns the options of a run of `duration` cycles with everything as the system describes it.
pub fn options(duration: u64) -> Options {
    Options {
        duration,
        seed: 1,
        costs: CostSpreads::all(Spread::Worst),
        limits: true,
        moderation: true,
        defer: Defer::Exact(Ties::Run),
        tick: None,
        closed_loops: Vec::new(),
        feeds: Vec::new(),
    }
}

/// Returns a feed of the pattern to the source or flow called `to`.
pub fn feed(system: &System, to: &str, pattern: &str) -> Feed {
    let source = system.sources.iter().position(|source| source.name == to);
    let flow = system.flows.iter().position(|flow| flow.name == to);
    Feed {
        to: flow.map_or_else(
            || Target::Source(source.expect("a source or a flow")),
            Target::Flow,
        ),
        pattern: Pattern::parse(pattern, system.cpu.clock_hz)
            .unwrap_or_else(|error| panic!("{error}")),
    }
}

/// The events of a run, in order.
#[derive(Default)]
pub struct Log(pub Vec<(u64, SimulationEvent)>);

impl Observer for Log {
    fn event(&mut self, at: u64, event: SimulationEvent) {
        self.0.push((at, event));
    }
}

impl Log {
    /// Returns the instants of an event.
    pub fn instants(&self, wanted: SimulationEvent) -> Vec<u64> {
        let events = self.0.iter();
        events
            .filter(|(_, event)| *event == wanted)
            .map(|(at, _)| *at)
            .collect()
    }
}

/// Runs a system and logs all events. Asserts that the cycles of the stages add up to the duration.
pub fn run(system: &System, options: &Options) -> (Tally, Log) {
    let mut log = Log::default();
    let tally =
        simulate_observed(system, options, &mut log).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        tally.stages.total(),
        options.duration,
        "every cycle is counted once"
    );
    (tally, log)
}
