// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the latency of flows, from a packet's arrival to the end of its bottom half
//! (docs/analysis.md, "Flows").

use crate::Claims;
use crate::buffers::{needed, room};
use crate::format::{Flow, FlowClaim, Kind, Policy, System, Unit};
use crate::units::{Units, never_held, rounds};

/// The values of a flow that follow from the rows. `None` means that there is no bound.
pub(crate) struct Derived {
    latency: Option<u64>,
    queue_needed: Option<u64>,
}

impl Derived {
    /// Computes the values of the flow with this index. `late` is the most cycles from the expiry
    /// of the source's timer to the start of the timer's interrupt.
    pub(crate) fn new(
        system: &System,
        units: &Units,
        claims: &Claims,
        index: usize,
        late: u64,
    ) -> Self {
        let nothing = Self {
            latency: None,
            queue_needed: None,
        };
        let Some(flow) = system.flows.get(index) else {
            return nothing;
        };
        let Some(source) = system.sources.get(flow.source) else {
            return nothing;
        };
        // `Some(None)` means that the unit has no bound. A unit that does not exist takes no time.
        let response = |kind, index| {
            let claim = claims.find(Unit(kind, index))?;
            Some(claim.map(|claim| claim.response))
        };
        let bottom_half = response(Kind::BottomHalf, index).unwrap_or(Some(0));
        let line = response(Kind::Request, flow.source);
        let expiry = response(Kind::Expiry, flow.source);
        let always_passes = source.limit.policy == Policy::Off || never_held(source, late);
        // The delay K applies to every request that hardware limits, whether or not the request is
        // held back.
        let delay = source.limit.delay;
        let interrupt = if always_passes {
            line.unwrap_or(Some(0))
                .map(|response| response.saturating_add(delay))
        } else {
            // A request that was held back is released at the end of the interval. Either the
            // line's interrupt serves it, with the timer's delay, or the timer's own interrupt
            // does.
            let by_line = match (line, expiry) {
                (None, Some(_)) => Some(0),
                (line, _) => line
                    .unwrap_or(Some(0))
                    .map(|response| response.saturating_add(late).saturating_add(delay)),
            };
            let by_expiry = expiry.unwrap_or(Some(0));
            by_line
                .zip(by_expiry)
                .map(|(line, expiry)| line.max(expiry).saturating_add(source.limit.interval))
        };
        let taken = match source.moderation {
            None if always_passes => interrupt,
            None => interrupt
                .zip(rounds(source, source.queue))
                .map(|(interrupt, rounds)| interrupt.saturating_mul(rounds)),
            Some(of) => {
                // An interrupt in progress is no longer held by the limit. It is the line's, or the
                // timer's if a request was held back there.
                let under_way = [line, expiry.filter(|_| !always_passes)]
                    .into_iter()
                    .flatten()
                    .try_fold(0, |longest: u64, run| Some(longest.max(run?)));
                let unless_counted = source
                    .queue
                    .map(|queue| of.count.map_or(queue, |count| queue.min(count - 1)));
                let windows = rounds(source, unless_counted);
                // The window ends with a tick. The next tick is later by at most one tick, plus its
                // own delay. The interrupt that began the window took no packet.
                let longest = of.tick.map_or(of.absolute, |tick| {
                    tick.saturating_mul(2).saturating_add(of.absolute)
                });
                let begins = if of.tick.is_some() { windows } else { Some(0) };
                let delays = windows.map(|windows| windows.saturating_mul(longest));
                let runs = rounds(source, source.queue)
                    .zip(begins)
                    .map(|(rounds, begins)| rounds.saturating_add(begins));
                (interrupt.zip(under_way)).zip(runs.zip(delays)).map(
                    |((interrupt, under_way), (runs, delays))| {
                        interrupt
                            .saturating_mul(runs)
                            .saturating_add(under_way)
                            .saturating_add(delays)
                    },
                )
            }
        };
        Self {
            latency: taken
                .zip(bottom_half)
                .map(|(taken, bottom_half)| taken.saturating_add(bottom_half)),
            queue_needed: needed(system, units, claims, index, flow),
        }
    }

    /// Checks that the certificate claims at least the derived values.
    pub(crate) fn allows(&self, claim: &FlowClaim) -> Result<(), String> {
        enough("latency", claim.latency, self.latency)?;
        enough("queue_needed", claim.queue_needed, self.queue_needed)
    }
}

fn enough(key: &str, claimed: Option<u64>, derived: Option<u64>) -> Result<(), String> {
    match (claimed, derived) {
        (None, _) => Ok(()),
        (Some(claimed), Some(derived)) if claimed >= derived => Ok(()),
        (Some(claimed), Some(derived)) => Err(format!("{key}: {claimed} is less than {derived}")),
        (Some(claimed), None) => Err(format!("{key}: {claimed}, but there is no bound: null")),
    }
}

/// Returns whether, by the claimed values, a flow meets its deadline, has room for its packets, and
/// stays within its budget. A flow without a deadline always meets it.
pub(crate) fn holds(system: &System, units: &Units, flow: &Flow, claim: &FlowClaim) -> bool {
    let Some(deadline) = flow.deadline else {
        return true;
    };
    let in_time = claim.latency.is_some_and(|latency| latency <= deadline);
    let has_room = room(system, flow)
        .is_none_or(|room| claim.queue_needed.is_some_and(|needed| needed <= room));
    in_time && has_room && !units.exceeds_budget(flow)
}
