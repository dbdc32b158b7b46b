// SPDX-License-Identifier: GPL-3.0-or-later
//! The simulator's report of a run.
use std::collections::BTreeMap;

use serde::Deserialize;

use super::facts::BOARD;
use crate::emulation::RunSpec;
use crate::line::Line;
use crate::result::{LineUse, RunResult, VectorUse};

/// The simulator's JSON output. Other programs read its other members.
#[derive(Debug, Deserialize)]
pub struct SimulatorResult {
    cycles: u64,
    background: Share,
    interrupts: Vec<Trap>,
    exceptions: Vec<Trap>,
    lines: Vec<Wire>,
    counters: BTreeMap<String, u64>,
    marks: BTreeMap<String, Vec<u64>>,
    uart: String,
    exit: Option<u32>,
    bus_errors: BusErrors,
}

#[derive(Debug, Deserialize)]
struct Share {
    cycles: u64,
}

#[derive(Debug, Deserialize)]
struct BusErrors {
    count: u64,
}

/// The interrupts or exceptions of one cause. For an external interrupt, `line` is the line of the
/// interrupt controller.
#[derive(Debug, Deserialize)]
struct Trap {
    cause: u8,
    #[serde(default)]
    line: Option<u8>,
    taken: u64,
    cycles: u64,
    longest_cycles: u64,
    instructions: u64,
}

#[derive(Debug, Deserialize)]
struct Wire {
    line: usize,
    offered: u64,
    missed: u64,
    delivered: u64,
}

/// The first number of the causes that RISC-V reserves for the platform.
const FIRST_LINE: u8 = 16;
/// The first number of exceptions, above those of all lines. Exceptions are listed like interrupts,
/// because they cost as much.
const FIRST_EXCEPTION: u8 = 64;

impl Trap {
    /// Returns the use of an interrupt. The controller's lines above the event wires belong to the
    /// limiter and the bus.
    fn interrupt(self) -> VectorUse {
        let name = match (self.line, self.cause) {
            (Some(line), _) => match usize::from(line).checked_sub(BOARD.lines.len()) {
                Some(0) => "OVERLOAD".to_owned(),
                Some(1) => "BUS_ERROR".to_owned(),
                _ => format!("INT{line}"),
            },
            (None, 3) => "SOFTWARE".to_owned(),
            (None, 7) => "TIMER".to_owned(),
            (None, 11) => "EXTERNAL".to_owned(),
            (None, cause) => format!("CAUSE{cause}"),
        };
        let number = self
            .line
            .map_or(self.cause, |line| FIRST_LINE.saturating_add(line));
        self.used(number, name)
    }

    fn exception(self) -> VectorUse {
        let name = format!("EXCEPTION{}", self.cause);
        let number = FIRST_EXCEPTION.saturating_add(self.cause);
        self.used(number, name)
    }

    fn used(self, number: u8, name: String) -> VectorUse {
        VectorUse {
            number,
            name,
            taken: self.taken,
            cycles: self.cycles,
            longest_cycles: self.longest_cycles,
            instructions: Some(self.instructions),
            tail_chained: None,
        }
    }
}

impl SimulatorResult {
    /// Converts the report to the result that all boards return. Only driven lines are kept.
    pub fn into_result(self, spec: &RunSpec) -> RunResult {
        let driven = spec.driven_lines();
        let lines = self.lines.into_iter().filter_map(|wire| {
            let line = Line::from_number(wire.line).filter(|line| driven.contains(line))?;
            Some(LineUse {
                line,
                offered: wire.offered,
                missed: wire.missed,
                delivered: Some(wire.delivered),
            })
        });
        let interrupts = self.interrupts.into_iter().map(Trap::interrupt);
        let exceptions = self.exceptions.into_iter().map(Trap::exception);
        let taken = |used: &VectorUse| used.taken > 0 || used.cycles > 0;
        RunResult {
            cycles: self.cycles,
            vectors: interrupts.chain(exceptions).filter(taken).collect(),
            background_cycles: self.background.cycles,
            // VexRiscv_Min never sleeps: its WFI is a no-operation.
            sleep_cycles: 0,
            wakeups: 0,
            lines: lines.collect(),
            counters: self.counters,
            marks: self.marks,
            events: Vec::new(),
            said: self.uart,
            exit: self.exit,
            bus_errors: self.bus_errors.count,
        }
    }
}
