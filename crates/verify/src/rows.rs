// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the rows. Each window, start and end is checked once (docs/analysis.md, "Response
//! times").

use crate::curve::{ALL, Demand, LONGEST_WINDOW, cycles};
use crate::format::{Bound, Job, Outcome};
use crate::units::{Expected, Units, Urgent};

/// A demand this close to the whole processor (within 2⁻³⁶) counts as the whole. Stating that there
/// is no bound promises nothing, and the tolerance lets an analysis calculate in f64.
const NEARLY_ALL: u128 = ALL - (1 << 28);

/// Checks one row. The error says what is wrong.
pub(crate) fn check(units: &Units, of: &Expected, outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::TooLong => Ok(()),
        Outcome::Starved(by) => {
            let itself = of.own.is_none() && *by == of.unit;
            if itself || units.urgent(of).unbounded.contains(by) {
                Ok(())
            } else {
                Err(
                    "starved: the unit that is named has a bound or is less urgent than this one"
                        .to_owned(),
                )
            }
        }
        Outcome::Overload => {
            let urgent = urgent(units, of)?;
            let own = own(of)?;
            let throughout = urgent.throughout.iter().copied();
            let all = urgent.until_start().chain(throughout);
            let share = all.fold(own.share(), |sum, demand| {
                sum.saturating_add(demand.share())
            });
            if share >= NEARLY_ALL {
                Ok(())
            } else {
                Err("overload: in the long run it and what is more urgent ask for less than the processor has".to_owned())
            }
        }
        Outcome::Bound(bound) => {
            let urgent = urgent(units, of)?;
            check_bound(own(of)?, &urgent, units.blocking(of), bound)
        }
    }
}

fn own(of: &Expected) -> Result<&Demand, String> {
    of.own
        .as_ref()
        .ok_or_else(|| "its source has no bound, so it has none".to_owned())
}

fn urgent<'a>(units: &'a Units, of: &Expected) -> Result<Urgent<'a>, String> {
    let urgent = units.urgent(of);
    if urgent.unbounded.is_empty() {
        Ok(urgent)
    } else {
        Err("a more urgent source has no bound, so it has none".to_owned())
    }
}

fn check_bound(own: &Demand, urgent: &Urgent, blocking: u64, claim: &Bound) -> Result<(), String> {
    if claim.cost != own.cost {
        return Err(format!("cost: {} is not its {}", claim.cost, own.cost));
    }
    if !own.curve.is(&claim.curve) {
        return Err("curve: not the one that the limit, the rates and the latency give".to_owned());
    }
    if claim.blocking != blocking {
        return Err(format!(
            "blocking: {} is not its {blocking}",
            claim.blocking
        ));
    }
    let window = claim.busy_window;
    let demand = cycles(urgent.until_start(), window)
        .saturating_add(cycles(urgent.throughout.iter().copied(), window))
        .saturating_add(own.cycles(window))
        .saturating_add(blocking);
    fits("busy_window", window.max(1), demand)?;
    if window == 0 {
        return Err("busy_window: at least 1".to_owned());
    }
    check_coverage(own, claim)?;
    for (index, job) in claim.jobs.iter().enumerate() {
        let place = format!("jobs[{index}]");
        check_job(&place, own, urgent, blocking, *job)?;
        let Job(arrival, start, finish) = *job;
        let response = finish.saturating_sub(arrival);
        if response > claim.response {
            return Err(format!(
                "response: {} is less than the {response} of {place}",
                claim.response
            ));
        }
        let delay = start.saturating_sub(1).saturating_sub(arrival);
        if delay > claim.start_delay {
            return Err(format!(
                "start_delay: {} is less than the {delay} of {place}",
                claim.start_delay
            ));
        }
    }
    Ok(())
}

/// Checks that demand(x) <= x, so that the least fixed point is not above x.
fn fits(place: &str, window: u64, demand: u64) -> Result<(), String> {
    if window > LONGEST_WINDOW {
        return Err(format!("{place}: {window} is more than 2^60 cycles"));
    }
    if demand > window {
        return Err(format!(
            "{place}: {demand} cycles may be asked for within {window}"
        ));
    }
    Ok(())
}

/// Checks that there is a job for each step of the curve in the busy window: the curve must be
/// constant between consecutive jobs, before the first job and after the last.
fn check_coverage(own: &Demand, claim: &Bound) -> Result<(), String> {
    let mut so_far = 0;
    for (index, &Job(arrival, ..)) in claim.jobs.iter().enumerate() {
        if arrival >= claim.busy_window {
            return Err(format!(
                "jobs[{index}]: {arrival} is not inside the busy window"
            ));
        }
        let before = own.curve.events(arrival);
        if before != so_far {
            return Err(format!(
                "jobs[{index}]: a job that comes before {arrival} is missing, or the order is wrong"
            ));
        }
        so_far = own.curve.events(arrival.saturating_add(1));
        if so_far == before {
            return Err(format!("jobs[{index}]: no job comes at {arrival}"));
        }
    }
    if own.curve.events(claim.busy_window) != so_far {
        return Err("jobs: the last ones of the busy window are missing".to_owned());
    }
    Ok(())
}

fn check_job(
    place: &str,
    own: &Demand,
    urgent: &Urgent,
    blocking: u64,
    Job(arrival, start, finish): Job,
) -> Result<(), String> {
    if finish.saturating_add(1) < start {
        return Err(format!(
            "{place} finish: {finish} is before its first cycle"
        ));
    }
    let earlier = own
        .curve
        .events(arrival.saturating_add(1))
        .saturating_sub(1);
    let ahead = own.cost.saturating_mul(earlier).saturating_add(blocking);
    let until_start = cycles(urgent.until_start(), start);
    let by_start = cycles(urgent.throughout.iter().copied(), start)
        .saturating_add(until_start)
        .saturating_add(ahead)
        .saturating_add(1);
    fits(&format!("{place} start"), start, by_start)?;
    let by_finish = cycles(urgent.throughout.iter().copied(), finish)
        .saturating_add(until_start)
        .saturating_add(ahead)
        .saturating_add(own.cost);
    fits(&format!("{place} finish"), finish, by_finish)
}
