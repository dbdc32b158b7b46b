// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures a choice of limits: computes the objective of decision 0005 and the values that are
//! shown beside it.

use std::cmp::Reverse;

use crate::curve::{Curve, Staircase};
use crate::rank::PreemptionRank as Rank;
use crate::rta::{Demand, LONGEST_WINDOW, Problem, solve};
use crate::units::{Latencies, Part, Unit, Units, body};
use crate::{Analysis, analyse};
use serde::Serialize;
use weir_model::{Expiry, Place, Policy, Source, System, Timing};

use crate::tune::band::Percent;
use crate::tune::plan::LimitPlan;
use crate::tune::task::TuningTask;

/// The costs and benefits of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measure {
    /// The share of the tolerated rates that the limits are asked to let through, in percent.
    pub scale_percent: Percent,
    /// Interrupts of limiters' timers per second, at worst.
    pub timer_rate_hz: f64,
    /// The largest excess of a limit over the rate that is asked of it: 0.1 is 10 %.
    pub over_admission: f64,
    /// The share of the processor that limiters need in overload. The reference is limiters in
    /// hardware, which cost nothing (regehr2005 §3.4).
    pub overhead: f64,
    /// The longest time, in cycles, for which interrupts together can hold the processor; `None` if
    /// there is no bound.
    pub longest_delay: Option<u64>,
}

/// The sort key of the objective; the best measure has the least key. Numbers are cut to digits
/// that rounding errors cannot reach, so that the order is total and repeatable.
pub type MeasureKey = (Reverse<Percent>, u64, u64, u64, u64);

/// The sort key for [`Aim::Knee`](crate::tune::Aim::Knee): the scale, then the product of overhead
/// and longest delay, then [`MeasureKey`].
pub type KneeKey = (Reverse<Percent>, u128, MeasureKey);

impl Measure {
    /// The measure's key in the order of the objective; a lesser key is better.
    #[must_use]
    pub fn key(&self) -> MeasureKey {
        (
            Reverse(self.scale_percent),
            (self.timer_rate_hz * 1e6) as u64,
            (self.over_admission * 1e9).round() as u64,
            self.overhead_key(),
            self.longest_delay.unwrap_or(u64::MAX),
        )
    }

    /// The measure's key in the order for the knee; a lesser key is better.
    #[must_use]
    pub fn knee_key(&self) -> KneeKey {
        let product = self.longest_delay.map_or(u128::MAX, |delay| {
            u128::from(delay) * u128::from(self.overhead_key())
        });
        (Reverse(self.scale_percent), product, self.key())
    }

    fn overhead_key(&self) -> u64 {
        (self.overhead * 1e9).round() as u64
    }
}

/// Measures a plan whose system is `system`.
#[must_use]
pub fn measure(task: &TuningTask, plan: &LimitPlan, system: &System, scale: Percent) -> Measure {
    let analysis = analyse(system);
    let over = task.tuned.iter().filter_map(|tuned| {
        let effective = plan.effective(tuned.source, system.cpu.clock_hz)?;
        Some(effective / tuned.band.asked(scale) - 1.0)
    });
    Measure {
        scale_percent: scale,
        timer_rate_hz: timer_rate(system, &analysis),
        over_admission: over.fold(0.0, f64::max),
        overhead: overhead(system, &analysis),
        longest_delay: longest_delay(system, &analysis.latencies),
    }
}

/// The timer interrupts per second at worst. They are those of the shared timers, and those of the
/// sources' own timers that can interrupt.
fn timer_rate(system: &System, analysis: &Analysis) -> f64 {
    let clock = system.cpu.clock_hz as f64;
    analysis
        .rows
        .iter()
        .filter_map(|row| match row.unit.part {
            Part::Expiry(source) => system
                .sources
                .get(source)
                .map(|of| of.limit.interval.cycles()),
            Part::Timer(timer) => system.timers.get(timer).map(|of| of.period.cycles()),
            _ => None,
        })
        .map(|interval| clock / interval.max(1) as f64)
        // The sum of an empty iterator of floats would be -0.
        .fold(0.0, |sum, rate| sum + rate)
}

fn overhead(system: &System, analysis: &Analysis) -> f64 {
    let units = Units::new(system, &analysis.latencies);
    let unlimited = system.cpu.unlimited.request_served;
    let of_sources = system.sources.iter().enumerate().map(|(index, source)| {
        let is_limited =
            source.limit.policy != Policy::Off && source.limit.place == Place::Software;
        let Some(tasks) = units.tasks(index).filter(|_| is_limited) else {
            return 0.0;
        };
        let asked: f64 = tasks.together.iter().map(|of| of.utilisation()).sum();
        let in_hardware = tasks.serves.as_ref().map_or(0.0, |serves| {
            serves.rate() * unlimited.saturating_add(body(system, index).cycles) as f64
        });
        asked - in_hardware
    });
    let of_timers = analysis
        .rows
        .iter()
        .filter(|row| matches!(row.unit.part, Part::Timer(_)))
        .filter_map(|row| row.unit.own.as_ref())
        .map(|own| own.utilisation());
    of_sources.chain(of_timers).sum::<f64>().max(0.0)
}

/// The longest time, in cycles, for which interrupts together can hold the processor. It is the
/// wait of a task of one cycle that is less urgent than all interrupts and more urgent than all
/// tasks. `None` if there is no bound.
#[must_use]
pub fn longest_delay(system: &System, latencies: &Latencies) -> Option<u64> {
    let mut alone = system.clone();
    // The work of tasks and bottom halves does not count as work of interrupts.
    for flow in &mut alone.flows {
        flow.bottom_half.cycles = 0;
    }
    for receiver in &mut alone.receivers {
        receiver.wcet.cycles = 0;
    }
    let units = Units::new(&alone, latencies);
    let own = Demand {
        cost: 1,
        curve: Curve::new(Staircase::sporadic(LONGEST_WINDOW, 0)),
    };
    let probe = Unit {
        part: Part::Task(usize::MAX),
        place: Rank::of_task(&alone.cpu, u8::MAX),
        own: None,
        longest: 1,
        deadline: None,
    };
    let interference = units.interference(&probe).ok()?;
    let solution = solve(&Problem {
        own: &own,
        blocking: 0,
        until_start: &interference.until_start(),
        throughout: &interference.throughout,
    })
    .ok()?;
    Some(solution.start_delay)
}

/// A lower bound on the timer interrupts per second of a plan that is not yet analysed. A lazy
/// limiter of a source below its limit needs no timer interrupts.
#[must_use]
pub fn least_timer_rate(system: &System) -> f64 {
    let clock = system.cpu.clock_hz;
    let interrupts = |source: &&Source| {
        let limit = &source.limit;
        let requests = if limit.policy == Policy::Bursty {
            f64::from(limit.burst)
        } else {
            1.0
        };
        let is_beyond = source.rates.worst.is_none_or(|worst| {
            worst.period_cycles(clock) * requests < limit.interval.cycles() as f64
        });
        matches!(limit.expiry, Some(Expiry::Own { .. }))
            && (is_beyond || limit.timing != Timing::Lazy)
    };
    system
        .sources
        .iter()
        .filter(interrupts)
        .map(|source| source.limit.interval.cycles())
        .chain(system.timers.iter().map(|timer| timer.period.cycles()))
        .map(|interval| clock as f64 / interval.max(1) as f64)
        .sum()
}
