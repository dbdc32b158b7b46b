// SPDX-License-Identifier: GPL-3.0-or-later
//! The checks of a [`RunSpec`] that hold for every board.
use crate::emulation::RunSpec;
use crate::error::RunError;
use crate::line::listed;
use crate::stimulus::Stimulus;

pub(super) fn check(spec: &RunSpec) -> Result<(), RunError> {
    let wrong = |message: String| Err(RunError::Spec(message));
    if spec.clock_hz == 0 {
        return wrong("a clock of 0 Hz does not run: give for example 4 MHz".to_owned());
    }
    if spec.cycles == 0 {
        return wrong("0 cycles are nothing to measure: run at least 1".to_owned());
    }
    if spec
        .cycles
        .checked_add(spec.warmup_cycles)
        .is_none_or(|all| all > 1 << 62)
    {
        return wrong("the run is too long: at most 2^62 cycles".to_owned());
    }
    let lines = spec.target.board().lines();
    let named = spec.floods.iter().map(|flood| flood.line);
    let named = named.chain(spec.hardware_limits.iter().map(|limit| limit.line));
    if let Some(missing) = named.into_iter().find(|line| !lines.contains(line)) {
        return wrong(format!(
            "the board {} has no line {missing}: its lines are {}",
            spec.target.board().name(),
            listed(&lines)
        ));
    }
    for (index, flood) in spec.floods.iter().enumerate() {
        if spec.floods[..index]
            .iter()
            .any(|other| other.line == flood.line)
        {
            return wrong(format!(
                "{} has two floods: give it one, a trace for example",
                flood.line
            ));
        }
    }
    for (index, limit) in spec.hardware_limits.iter().enumerate() {
        let line = limit.line;
        if limit.interval_cycles == 0 {
            return wrong(format!(
                "the hardware limit on {line} has an interval of 0 cycles: give at least 1"
            ));
        }
        if spec.hardware_limits[..index]
            .iter()
            .any(|other| other.line == line)
        {
            return wrong(format!("{line} has two hardware limits: give it one"));
        }
        match spec.floods.iter().find(|flood| flood.line == line) {
            None => {
                return wrong(format!(
                    "the hardware limit on {line} has nothing to limit: flood {line} too"
                ));
            }
            Some(flood) if matches!(flood.stimulus, Stimulus::Level { .. }) => {
                return wrong(format!(
                    "the hardware limit on {line} cannot filter a level: use a flood of edges"
                ));
            }
            Some(_) if spec.front.as_ref().is_some_and(|front| front.to == line) => {
                return wrong(format!(
                    "{line} has a hardware limit and a chip in front: give it one of them"
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(front) = &spec.front {
        let board = spec.target.board();
        if !board.abilities().chip_in_front {
            return wrong(format!(
                "the board {} has no second chip in front: an ideal limiter is a hardware limit",
                board.name()
            ));
        }
        if !spec.floods.iter().any(|flood| flood.line == front.to) {
            return wrong(format!(
                "the chip in front of {0} has no input: flood {0}",
                front.to
            ));
        }
    }
    Ok(())
}
