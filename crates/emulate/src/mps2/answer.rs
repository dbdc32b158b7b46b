// SPDX-License-Identifier: GPL-3.0-or-later
//! Converts the plugin's report to the result that all boards return.
use weir_peer::{ExceptionReport, Report};

use super::error::QemuError;
use super::facts::{BOARD, CYCLE_NS};
use crate::emulation::RunSpec;
use crate::line::Line;
use crate::result::{LineUse, RunResult, VectorUse};

pub(super) fn result(
    spec: &RunSpec,
    report: Report,
    said: String,
    exit: Option<u32>,
) -> Result<RunResult, QemuError> {
    let profile = report.profile.unwrap_or_default();
    let cycles = profile.elapsed_ns / CYCLE_NS;
    if cycles == 0 {
        return Err(QemuError::Early {
            code: exit.unwrap_or(0),
            ns: report.last_ns,
        });
    }
    let vectors: Vec<VectorUse> = profile.exceptions.iter().map(vector).collect();
    let lines = spec.driven_lines().into_iter().map(|line| {
        let pin = report
            .pins
            .iter()
            .find(|pin| line == Line::irq(u8::try_from(pin.irq).unwrap_or(u8::MAX)));
        let frames = report.flood.as_ref().filter(|_| line == Line::ETH);
        LineUse {
            line,
            offered: pin.map_or(0, |pin| pin.offered) + frames.map_or(0, |frames| frames.sent),
            missed: pin.map_or(0, |pin| pin.missed) + frames.map_or(0, |frames| frames.lost),
            delivered: None,
        }
    });
    // Exceptions cost more than their instructions. On a real processor these costs reduce the time
    // asleep, and if that is too short, the background's time.
    let handlers: u64 = vectors.iter().map(|used| used.cycles).sum();
    let left = cycles.saturating_sub(handlers);
    let background_cycles = left.min(profile.background_instructions);
    Ok(RunResult {
        cycles,
        vectors,
        background_cycles,
        sleep_cycles: left - background_cycles,
        wakeups: profile.wakeups,
        lines: lines.collect(),
        counters: profile.watched,
        marks: std::collections::BTreeMap::new(),
        events: Vec::new(),
        said,
        exit,
        bus_errors: 0,
    })
}

/// Converts the use of an exception, and adds the costs of its entry and return.
fn vector(used: &ExceptionReport) -> VectorUse {
    let costs = BOARD.exception_costs();
    let beside = |taken, tail_chained| costs.map_or(0, |costs| costs.of(taken, tail_chained));
    let index = usize::from(used.number).checked_sub(1);
    let name = index.and_then(|index| BOARD.vectors.get(index));
    VectorUse {
        number: u8::try_from(used.number).unwrap_or(u8::MAX),
        name: name.map_or_else(|| format!("EXCEPTION{}", used.number), Clone::clone),
        taken: used.taken,
        cycles: used.instructions + beside(used.taken, used.tail_chained),
        longest_cycles: used.longest_instructions + beside(1, 0),
        instructions: Some(used.instructions),
        tail_chained: Some(used.tail_chained),
    }
}
