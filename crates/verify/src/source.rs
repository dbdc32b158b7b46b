// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models a limited source as tasks (docs/analysis.md, "A limited source").

use crate::curve::{Curve, Demand, TooLarge};
use crate::format::{Costs, Expiry, Limit, Place, Policy, Source, Timing};
use crate::units::taken_by_one;

/// The demands of a source, as other units see them. A source without a bound has no demands and no
/// curve.
#[derive(Debug, Clone, Default)]
pub(crate) struct Views {
    /// The curve α of served requests.
    pub(crate) served: Option<Curve>,
    /// The demands of the line's interrupt: first the runs that serve a request, then those that
    /// refuse one.
    pub(crate) line: Vec<Demand>,
    /// The demand of the interrupt of the source's own timer.
    pub(crate) expiry: Option<Demand>,
    /// The demand of both interrupts together, which is at most the sum of both.
    pub(crate) together: Vec<Demand>,
}

/// Returns the costs S, R, X and E as other interrupts see them. Each nonzero cost includes the
/// instruction that runs between two interrupts.
pub(crate) fn longer(limit: &Limit, instruction: u64) -> Costs {
    let costs = limit.costs;
    let longer = |cost: u64| match cost {
        0 => 0,
        cost => cost.saturating_add(instruction),
    };
    Costs {
        request_served: costs.request_served.saturating_add(instruction),
        request_refused: longer(costs.request_refused),
        expiry_served: match limit.policy {
            Policy::Poll => costs.expiry_served.saturating_add(instruction),
            _ => longer(costs.expiry_served),
        },
        expiry_empty: longer(costs.expiry_empty),
    }
}

/// Returns a, the least time between two requests after moderation. `None` if there is no bound.
pub(crate) fn interarrival(source: &Source) -> Option<u64> {
    let line = source.interarrival;
    let Some(moderation) = source.moderation else {
        return line;
    };
    if moderation.tick.is_some() {
        // The packet that ends a wait and the packet that begins the next.
        return None;
    }
    let timers = moderation
        .packet
        .unwrap_or(u64::MAX)
        .min(moderation.absolute);
    let moderated = match moderation.count {
        None => Some(timers),
        Some(count) => {
            // The count that remains after an interrupt is reached again after as many packets as
            // the interrupt took.
            let packets = taken_by_one(source).min(count);
            line.map(|line| line.saturating_mul(packets).min(timers))
        }
    };
    // `None` compares as less than any number.
    line.max(moderated)
}

/// Returns the absolute delay and the tick. `None` unless a tick ends the waits of `source`.
fn ticked(source: &Source) -> Option<(u64, u64)> {
    let of = source.moderation?;
    Some((of.absolute, of.tick?))
}

/// Returns σ, by which the starts of two interrupts can be closer together than the instants at
/// which the limiter reads its timer. In hardware it is K, by which two requests can be closer at
/// the limiter than at the line.
fn skew(limit: &Limit, costs: Costs) -> u128 {
    if limit.place == Place::Hardware {
        return u128::from(limit.delay);
    }
    let entry = costs
        .request_served
        .max(costs.request_refused)
        .max(costs.expiry_served);
    u128::from(limit.tick) * (u128::from(limit.lag) + 1) + u128::from(entry)
}

/// Returns whether the source can never exceed its limit.
pub(crate) fn within_limit(source: &Source, costs: Costs, latency: u64) -> bool {
    let limit = &source.limit;
    let Some(interarrival) = interarrival(source) else {
        return limit.policy == Policy::Off;
    };
    let late = u128::from(limit.interval) + skew(limit, costs) + u128::from(latency);
    // Requests that the hardware finds in one scan are delivered as one.
    let merges = limit.place == Place::Hardware && limit.delay > interarrival;
    match limit.policy {
        Policy::Off => true,
        Policy::Poll => false,
        _ if merges => false,
        Policy::Strict | Policy::Paced | Policy::Bucket => u128::from(interarrival) >= late,
        Policy::Bursty => u128::from(interarrival) * u128::from(limit.burst) >= late,
    }
}

/// The kind of windows for which demands hold, and the state of the timer in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// The latency L of the timer's interrupt.
    pub(crate) latency: u64,
    /// The part of L that may be over when the window begins.
    pub(crate) before: u64,
    /// Whether the timer's interrupt can run in the window.
    pub(crate) expires: bool,
}

/// Returns α for windows of this kind.
fn served(
    source: &Source,
    costs: Costs,
    leaves_packets: bool,
    window: Window,
) -> Result<Option<Curve>, TooLarge> {
    let limit = &source.limit;
    let interarrival = interarrival(source);
    let delay = u128::from(limit.delay);
    // The source is masked after the last request within the limit, until an expiry.
    let most = match (limit.place, limit.timing, limit.policy) {
        _ if window.expires => None,
        (Place::Hardware, _, _) | (_, Timing::Lazy, _) => None,
        (_, _, Policy::Strict | Policy::Paced) => Some(1),
        (_, _, Policy::Bursty) => Some(limit.burst),
        (_, _, Policy::Bucket) => Some(limit.burst).filter(|&burst| burst == 1),
        (_, _, Policy::Off | Policy::Poll) => None,
    };
    let masked = |curve: Curve| match most {
        Some(most) => Ok(curve.and(Curve::stairs(most, 0, 1, 0)?)),
        None => Ok(curve),
    };
    if let (Policy::Off, Some((absolute, tick))) = (limit.policy, ticked(source)) {
        // Two requests come in each wait. The ends of two waits are as far apart as a wait lasts,
        // rounded to ticks if there is a tick.
        let late = u128::from(tick);
        let two = if absolute >= tick {
            Curve::stairs(2, 2, absolute, delay)?
        } else {
            Curve::stairs(3, 2, tick, delay + late)?
        };
        return Ok(Some(masked(two)?));
    }
    if within_limit(source, costs, window.latency) {
        return interarrival
            .map(|interarrival| masked(Curve::stairs(1, 1, interarrival, delay)?))
            .transpose();
    }
    let early = if limit.place == Place::Hardware {
        0
    } else {
        skew(limit, costs)
    };
    let interval = limit.interval;
    let late =
        (early + u128::from(window.before)).min(early.max(u128::from(interval).saturating_sub(1)));
    let twice = limit.burst.saturating_mul(2);
    let limited = match (limit.policy, limit.timing) {
        (Policy::Poll | Policy::Off, _) => Curve::stairs(1, 1, interval, 0),
        (Policy::Strict, _) => Curve::stairs(1, 1, interval, early),
        (Policy::Paced, _) => Curve::stairs(1, 1, interval, late),
        (Policy::Bursty, Timing::OneShot) => {
            Curve::stairs(twice.saturating_sub(1), limit.burst, interval, early)
        }
        (Policy::Bursty, _) => Curve::stairs(twice, limit.burst, interval, late),
        (Policy::Bucket, _) => Curve::stairs(limit.burst, 1, interval, early),
    }?;
    let limited = masked(limited)?;
    // If a handler may leave packets in the device, the device requests again, independently of the
    // arrivals.
    Ok(Some(match interarrival.filter(|_| !leaves_packets) {
        None => limited,
        Some(interarrival) => limited.and(Curve::stairs(3, 1, interarrival, delay)?),
    }))
}

/// Returns whether a source with this policy and these costs is served inside the timer's
/// interrupt. X = 0 means that waiting requests are not served there. A polled source is always
/// served there.
pub(crate) fn expiry_serves(policy: Policy, costs: Costs) -> bool {
    costs.expiry_served != 0 || policy == Policy::Poll
}

/// Returns the longest run of the timer's interrupt, or the source's part of a shared timer's
/// interrupt.
pub(crate) fn longest_expiry(policy: Policy, costs: Costs, body: u64) -> u64 {
    let serves = Some(costs.expiry_served.saturating_add(body));
    let serves = serves.filter(|_| expiry_serves(policy, costs));
    serves.unwrap_or(0).max(costs.expiry_empty)
}

/// Returns the additional cost of an expiry if the request that it serves is counted as served by
/// the line.
pub(crate) fn beside(costs: Costs) -> u64 {
    let serves = costs.expiry_served.saturating_sub(costs.request_served);
    costs.expiry_empty.max(serves)
}

/// Returns the demands of `source` with S, R, X and E in `costs` and W in `body`. With
/// `leaves_packets` the handler may leave packets in the device.
pub(crate) fn views(
    source: &Source,
    costs: Costs,
    body: u64,
    leaves_packets: bool,
    window: Window,
) -> Result<Views, TooLarge> {
    let limit = &source.limit;
    let Some(alpha) = served(source, costs, leaves_packets, window)? else {
        return Ok(Views::default());
    };
    let serving = Demand::new(costs.request_served.saturating_add(body), alpha.clone());
    let lazy = limit.timing == Timing::Lazy;
    let unlimited = limit.policy == Policy::Off || limit.place == Place::Hardware;
    if limit.policy == Policy::Poll {
        let polls = Curve::stairs(1, 1, limit.interval, 0)?;
        let polling = Demand::new(longest_expiry(limit.policy, costs, body), polls);
        return Ok(Views {
            served: Some(alpha),
            line: Vec::new(),
            expiry: Some(polling.clone()),
            together: vec![polling],
        });
    }
    if unlimited || (lazy && within_limit(source, costs, window.latency)) {
        return Ok(Views {
            served: Some(alpha),
            line: vec![serving.clone()],
            expiry: None,
            together: vec![serving],
        });
    }

    let (refused, early) = (costs.request_refused, skew(limit, costs));
    let expiries = Curve::stairs(1, 1, limit.interval, early)?;
    let last_refusal = lazy.then(|| Demand::new(refused, Curve::once()));
    let refused_once = if lazy { refused } else { 0 };
    let spaced = match limit.policy {
        Policy::Strict | Policy::Paced => true,
        Policy::Bucket => limit.burst == 1,
        _ => false,
    };
    let mut line = vec![serving.clone()];
    if lazy && window.expires {
        let refusals = if spaced { &alpha } else { &expiries };
        line.push(Demand::new(refused, refusals.clone()));
    }
    line.extend(last_refusal.clone());
    if let Some(Expiry::Shared(_)) = limit.expiry {
        return Ok(Views {
            served: Some(alpha),
            line,
            expiry: None,
            together: vec![serving],
        });
    }
    let slower = interarrival(source).filter(|_| within_limit(source, costs, window.latency));
    let mut together = if spaced && slower.is_none() {
        let by_line = costs.request_served.saturating_add(costs.expiry_empty);
        let by_expiry = costs.expiry_served.saturating_add(refused_once);
        let dearest = by_line.max(by_expiry).saturating_add(body);
        vec![Demand::new(dearest, alpha.clone())]
    } else {
        let serves = costs.expiry_served.saturating_sub(costs.request_served);
        let overhead = serves.saturating_add(refused_once).max(costs.expiry_empty);
        let few = match slower.filter(|_| spaced) {
            Some(interarrival) => expiries.clone().and(Curve::stairs(2, 1, interarrival, 0)?),
            None => expiries.clone(),
        };
        vec![serving, Demand::new(overhead, few)]
    };
    together.extend(last_refusal);
    Ok(Views {
        served: Some(alpha),
        line,
        expiry: Some(Demand::new(
            longest_expiry(limit.policy, costs, body),
            expiries,
        )),
        together,
    })
}
