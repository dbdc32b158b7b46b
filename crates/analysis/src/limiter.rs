// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limited source as tasks: what its interrupts cost and how often they come (regehr2005 §5.2,
//! core/CONTRACTS.md).
//!
//! docs/analysis.md derives each line. Two things go beyond the paper. A request that waited is
//! served *inside* the timer's interrupt, so an interrupt is either "request" or "expiry", and only
//! both together bound the demand. And other interrupts delay the clearing timer itself; that is
//! `latency`.

use weir_model::{Expiry, Limit, Place, Policy, Source, System, Timing};

use crate::curve::{Curve, FOREVER, Staircase};
use crate::rta::Demand;

/// The interrupts of one source.
#[derive(Debug, Clone)]
pub struct Tasks {
    /// The most requests served in any window; none without bound.
    pub serves: Option<Curve>,
    /// The line's own interrupt; none if the source is polled, or without bound.
    pub request: Option<Interrupt>,
    /// The interrupt of the source's own timer.
    pub expiry: Option<Interrupt>,
    /// The cost of both together, which is less than their sum.
    pub together: Vec<Demand>,
    /// What the source adds at worst to the interrupt of a shared timer.
    pub shared: u64,
}

/// One of the interrupts of a source.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// The runs that are to be bounded: those that serve, or the expiries.
    pub own: Demand,
    /// The other runs of the same interrupt: those that refuse requests.
    pub other: Vec<Demand>,
    /// The longest single run, in cycles.
    pub longest: u64,
}

impl Interrupt {
    fn new(own: Demand, other: Vec<Demand>) -> Self {
        let longest = other
            .iter()
            .map(|demand| demand.cost)
            .fold(own.cost, u64::max);
        Self {
            own,
            other,
            longest,
        }
    }

    /// All runs.
    pub fn demands(&self) -> impl Iterator<Item = &Demand> {
        std::iter::once(&self.own).chain(&self.other)
    }
}

/// The cost of one run of a source's handler, with the most work that one interrupt may do, and
/// without the limiter.
#[derive(Debug, Clone, Copy)]
pub struct Body {
    /// Cycles.
    pub cycles: u64,
    /// May the run leave packets in the device, which ask again?
    pub leaves_packets: bool,
}

/// The cost of one run of a source's handler with the most work that it may do: the units of work
/// and, for each packet, the top half and the demultiplexing.
#[must_use]
pub fn body(system: &System, source: usize) -> Body {
    let Some(of) = system.sources.get(source) else {
        return Body {
            cycles: 0,
            leaves_packets: false,
        };
    };
    let packet = system
        .flows_of(source)
        .map(|(_, flow)| flow.top_half.cycles.saturating_add(flow.demux.cycles))
        .fold(0, u64::max);
    let per_unit = of.work.cycles.saturating_add(packet);
    let all_taken = of.queue.is_some_and(|queue| queue <= of.packets_taken());
    Body {
        leaves_packets: system.brings_packets(source) && !all_taken,
        cycles: of
            .handler
            .cycles
            .saturating_add(per_unit.saturating_mul(of.max_work.unwrap_or(1)))
            .min(FOREVER),
    }
}

/// The least cycles between two packets or edges at the line, by the worst rate that is stated;
/// none without bound. A level in silicon has no bound: it asks again as long as its handler waits.
#[must_use]
pub fn line_interarrival(source: &Source, clock_hz: u64) -> Option<u64> {
    if source.limit.silicon.is_some_and(|of| of.is_level) {
        return None;
    }
    source.rates.worst.map(|rate| rate.least_cycles(clock_hz))
}

/// A kind of window, and what a source's timer can do in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// L of the contracts: how late expiries are served, at worst.
    latency: u64,
    /// The part of L that may have passed before the window begins.
    before: u64,
    /// Do expiries run in the window?
    expires: bool,
}

impl Window {
    /// Any window, with expiries served up to `latency` cycles late.
    #[must_use]
    pub fn any(latency: u64) -> Self {
        Self {
            latency,
            before: latency,
            expires: true,
        }
    }

    /// The busy windows of what the timer delays. At their begin no more urgent work is left, so no
    /// expiry is late already.
    #[must_use]
    pub fn below_timer(latency: u64) -> Self {
        Self {
            before: 0,
            ..Self::any(latency)
        }
    }

    /// The busy windows of what is more urgent than the timer, in which no expiry begins.
    #[must_use]
    pub fn above_timer(latency: u64) -> Self {
        Self {
            expires: false,
            ..Self::any(latency)
        }
    }
}

/// The least cycles between two requests of the line; none without bound.
///
/// Moderation only ever makes them rarer: after an interrupt the next one needs a packet and then
/// the first of its timers, or a full count of packets, or as many as the one before took. But
/// where a tick ends the wait, two can come at one instant.
#[must_use]
pub fn request_interarrival(source: &Source, clock_hz: u64) -> Option<u64> {
    let line = line_interarrival(source, clock_hz);
    let Some(moderation) = source.moderation else {
        return line;
    };
    if moderation.tick.is_some() {
        return None;
    }
    let timers = moderation.packet.map_or(moderation.absolute, |packet| {
        packet.min(moderation.absolute)
    });
    let moderated = match (moderation.count, line) {
        (Some(count), Some(line)) => {
            // What an interrupt leaves counts for the next one, so that it needs no more packets
            // than were taken.
            let new = count.min(source.packets_taken());
            Some(timers.min(line.saturating_mul(new)))
        }
        (Some(_), None) => None,
        (None, _) => Some(timers),
    };
    match (line, moderated) {
        (Some(line), Some(moderated)) => Some(line.max(moderated)),
        (line, moderated) => line.or(moderated),
    }
}

/// The most requests in any window that reach the limit of `source`; none without bound.
#[must_use]
pub fn requests(source: &Source, clock_hz: u64) -> Option<Staircase> {
    let delay = source.limit.delay();
    let of_tick = source.moderation.and_then(|of| {
        let tick = of.tick?.max(1);
        // One begins a wait and one ends it. Waits are as long as they have to be, and no two end
        // at the same tick.
        let (base, period, jitter) = if of.absolute < tick {
            (3, tick, tick)
        } else {
            (2, of.absolute, 0)
        };
        Some(Staircase {
            base,
            step: 2,
            period,
            jitter: delay.saturating_add(jitter),
        })
    });
    of_tick.or_else(|| {
        let apart = request_interarrival(source, clock_hz)?;
        Some(Staircase::sporadic(apart, delay))
    })
}

/// The packets that may wait in the device, where a tick ends the wait; none: no tick does, or the
/// file does not say how many they are.
pub(crate) fn kept_until_a_tick(source: &Source) -> Option<u64> {
    source.moderation?.tick?;
    source.queue
}

/// The number of interrupts of `source` that take so many packets, if enough packets wait.
pub(crate) fn interrupts_for(source: &Source, packets: u64) -> u64 {
    packets.div_ceil(source.packets_taken())
}

/// Does moderation let more packets pile up than one interrupt takes? Their bottom halves then wait
/// for longer than moderation lets packets wait.
pub(crate) fn piles_up(source: &Source) -> bool {
    source.moderation.is_some()
        && source
            .queue
            .is_none_or(|queue| interrupts_for(source, queue) > 1)
}

/// Is the source too slow for its limit ever to refuse a request (LIMIT-LOSS-1)?
fn within_limit(limit: &Limit, interarrival: u64, latency: u64) -> bool {
    match limit.policy {
        Policy::Off => true,
        Policy::Poll => false,
        _ => spare(limit, interarrival).is_some_and(|spare| latency <= spare),
    }
}

/// Cycles by which a source's requests are further apart than its limit asks for, if nothing is
/// late; none if they are not. In hardware, each also has to be delivered before the next one
/// comes, since a scan takes two that it finds at once for one.
fn spare(limit: &Limit, interarrival: u64) -> Option<u64> {
    if limit.place == Place::Hardware && interarrival < limit.delay() {
        return None;
    }
    let span = interarrival.saturating_mul(u64::from(limit.per_interval()));
    span.checked_sub(limit.interval.cycles().saturating_add(skew(limit)))
}

/// Does the limiter of `source` never hold a request back, if its timer is served up to `latency`
/// cycles late? Not known of a source without worst rate.
#[must_use]
pub fn never_holds(source: &Source, clock_hz: u64, latency: u64) -> bool {
    request_interarrival(source, clock_hz)
        .is_some_and(|interarrival| within_limit(&source.limit, interarrival, latency))
}

/// Cycles by which two starts of interrupts may be closer than the instants that the limiter tells
/// apart: it reads the timer after some instructions, to the tick, and the port may set the
/// one-shot short by `lag` ticks. In hardware, cycles by which requests may be closer at the
/// limiter than at the line.
fn skew(limit: &Limit) -> u64 {
    if limit.place == Place::Hardware {
        return limit.delay();
    }
    let costs = &limit.costs;
    let entry = [
        costs.request_served,
        costs.request_refused,
        costs.expiry_served,
    ]
    .into_iter()
    .fold(0, u64::max);
    limit
        .interval
        .tick
        .saturating_mul(u64::from(limit.lag).saturating_add(1))
        .saturating_add(entry)
}

/// The longest latency with which a limited source still cannot come faster than its limit lets it.
/// None: it can with any, or nothing limits it.
#[must_use]
pub fn longest_borne(source: &Source, clock_hz: u64) -> Option<u64> {
    let limit = &source.limit;
    if limit.place == Place::Hardware || matches!(limit.policy, Policy::Off | Policy::Poll) {
        return None;
    }
    spare(limit, request_interarrival(source, clock_hz)?)
}

/// The most requests that the line's interrupt serves before the next expiry. None: no bound, since
/// the policy reads the clock, too.
fn most_without_expiry(limit: &Limit) -> Option<u64> {
    let burst = u64::from(limit.burst);
    match (limit.place, limit.timing, limit.policy) {
        (Place::Hardware, _, _) | (_, Timing::Lazy, _) => None,
        (_, _, Policy::Strict | Policy::Paced) => Some(1),
        (_, _, Policy::Bursty) => Some(burst),
        (_, _, Policy::Bucket) => (burst == 1).then_some(1),
        (_, _, Policy::Off | Policy::Poll) => None,
    }
}

/// The most requests served in any window, as CONTRACTS.md promises it, in cycles from interrupt to
/// interrupt. None without bound.
fn serves(source: &Source, clock_hz: u64, body: Body, window: Window) -> Option<Curve> {
    let limit = &source.limit;
    let arrivals = requests(source, clock_hz);
    let burst = u64::from(limit.burst);
    // A limiter in hardware measures by its own clock what it delivers, so nothing comes early.
    let early = match limit.place {
        Place::Software => skew(limit),
        Place::Hardware => 0,
    };
    let late = skew(limit).saturating_add(window.before).min(
        // J of the contracts: a limiter that is a whole interval late begins anew from there.
        limit.interval.cycles().saturating_sub(1).max(skew(limit)),
    );
    let limited = |base, step, jitter| Staircase {
        base,
        step,
        period: limit.interval.cycles(),
        jitter,
    };
    let staircase = match (limit.policy, limit.place) {
        (Policy::Off, _) => return arrivals.map(Curve::new),
        (Policy::Poll, _) => limited(1, 1, 0),
        (Policy::Strict, _) => limited(1, 1, early),
        (Policy::Paced, _) => limited(1, 1, late),
        (Policy::Bursty, _) if limit.timing == Timing::OneShot => {
            limited((2 * burst).saturating_sub(1), burst, early)
        }
        (Policy::Bursty, _) => limited(2 * burst, burst, late),
        (Policy::Bucket, _) => limited(burst, 1, early),
    };
    let until_expiry = most_without_expiry(limit).filter(|_| !window.expires);
    let masked = |curve: Curve| match until_expiry {
        Some(most) => curve.and(Staircase::once(most)),
        None => curve,
    };
    let curve = masked(Curve::new(staircase));
    let Some(arrivals) = arrivals.filter(|_| request_interarrival(source, clock_hz).is_some())
    else {
        return Some(curve);
    };
    if within_limit(limit, arrivals.period, window.latency) {
        return Some(masked(Curve::new(arrivals)));
    }
    if body.leaves_packets {
        // The window serves also what waited in the device before it.
        return Some(curve);
    }
    // A window serves what came in it, one request that the limiter held or noted, and one that was
    // pending.
    Some(curve.and(Staircase {
        base: 3,
        ..arrivals
    }))
}

/// Does the handler run inside the timer's interrupt? It does if the source is polled, and where
/// the port states a cost for serving a waiting request there.
#[must_use]
pub fn serves_in_expiry(limit: &Limit) -> bool {
    limit.policy == Policy::Poll || limit.costs.expiry_served > 0
}

/// The longest run of the timer's interrupt, with the handler where that runs inside it.
#[must_use]
pub fn longest_expiry(limit: &Limit, body: Body) -> u64 {
    let costs = &limit.costs;
    if serves_in_expiry(limit) {
        let served = costs.expiry_served.saturating_add(body.cycles);
        costs.expiry_empty.max(served)
    } else {
        costs.expiry_empty
    }
}

/// The interrupts of `source`, whose handler costs `body`, in windows in which its timer does what
/// `window` says.
#[must_use]
pub fn tasks(source: &Source, body: Body, clock_hz: u64, window: Window) -> Tasks {
    let limit = &source.limit;
    let interarrival = request_interarrival(source, clock_hz);
    let Some(serves) = serves(source, clock_hz, body, window) else {
        return Tasks {
            serves: None,
            request: None,
            expiry: None,
            together: Vec::new(),
            shared: 0,
        };
    };
    let limiter = LimiterWindow {
        limit,
        body,
        serves,
        slower: interarrival.filter(|&apart| within_limit(limit, apart, window.latency)),
        expires: window.expires,
    };
    match (limit.policy, limit.place, limit.timing) {
        (Policy::Off, _, _) | (_, Place::Hardware, _) => limiter.line_alone(),
        (Policy::Poll, _, _) => limiter.polling(),
        // LIMIT-LAZY-1: a source below its limit takes no timer interrupt.
        (_, _, Timing::Lazy) if limiter.slower.is_some() => limiter.line_alone(),
        _ => limiter.line_and_timer(),
    }
}

/// A limiter in one kind of window, with a bound on its services.
struct LimiterWindow<'a> {
    limit: &'a Limit,
    body: Body,
    serves: Curve,
    /// Cycles between two requests; only of a source that cannot come faster than its limit.
    slower: Option<u64>,
    /// Do expiries run in the window?
    expires: bool,
}

impl LimiterWindow<'_> {
    /// The runs of the line's interrupt that serve.
    fn served(&self) -> Demand {
        Demand {
            cost: self
                .limit
                .costs
                .request_served
                .saturating_add(self.body.cycles),
            curve: self.serves.clone(),
        }
    }

    fn line_alone(self) -> Tasks {
        let served = self.served();
        Tasks {
            together: vec![served.clone()],
            request: Some(Interrupt::new(served, Vec::new())),
            expiry: None,
            serves: Some(self.serves),
            shared: 0,
        }
    }

    fn polling(self) -> Tasks {
        let own = Demand {
            cost: longest_expiry(self.limit, self.body),
            curve: Curve::new(Staircase::sporadic(self.limit.interval.cycles(), 0)),
        };
        Tasks {
            together: vec![own.clone()],
            request: None,
            expiry: Some(Interrupt::new(own, Vec::new())),
            serves: Some(self.serves),
            shared: 0,
        }
    }

    /// R, the cost of a refusal; none if the policy refuses nothing.
    fn refused(&self) -> Option<u64> {
        (self.limit.timing == Timing::Lazy).then_some(self.limit.costs.request_refused)
    }

    /// Are two services always parted by an empty expiry, after which the line serves, or by a
    /// refusal, after which the expiry serves?
    fn is_spaced(&self) -> bool {
        match self.limit.policy {
            Policy::Strict | Policy::Paced => true,
            Policy::Bucket => self.limit.burst == 1,
            Policy::Bursty | Policy::Off | Policy::Poll => false,
        }
    }

    /// The extra cost of a request that an expiry serves, if the request is counted as one that the
    /// line's interrupt serves.
    fn dearer(&self) -> u64 {
        let costs = &self.limit.costs;
        costs.expiry_served.saturating_sub(costs.request_served)
    }

    /// Expiries are at least an interval apart. Those of a timer that runs on its own are exactly
    /// so; there the skew only makes the bound safer.
    fn expiries(&self) -> Curve {
        Curve::new(Staircase::sporadic(
            self.limit.interval.cycles(),
            skew(self.limit),
        ))
    }

    /// Services and expiries of a spaced policy together.
    fn each_service(&self) -> Demand {
        let costs = &self.limit.costs;
        let by_line = costs.request_served.saturating_add(costs.expiry_empty);
        let by_expiry = costs
            .expiry_served
            .saturating_add(self.refused().unwrap_or(0));
        Demand {
            cost: by_line.max(by_expiry).saturating_add(self.body.cycles),
            curve: self.serves.clone(),
        }
    }

    /// The cost that expiries add to the services, each of which is counted as one by the line.
    fn overhead(&self) -> Demand {
        // An expiry serves the request that was refused; an expiry that serves nothing follows on
        // no refusal.
        let by_expiry = self.dearer().saturating_add(self.refused().unwrap_or(0));
        Demand {
            cost: self.limit.costs.expiry_empty.max(by_expiry),
            curve: match self.slower.filter(|_| self.is_spaced()) {
                // Requests are further apart than intervals, so there are fewer expiries: one for
                // each request, and one for a request before the window.
                Some(interarrival) => self.expiries().and(Staircase {
                    base: 2,
                    ..Staircase::sporadic(interarrival, 0)
                }),
                None => self.expiries(),
            },
        }
    }

    /// The runs of the line's interrupt that refuse. Each is followed by the expiry that ends its
    /// interval; one more may come at the window's end.
    fn refusals(&self) -> Vec<Demand> {
        let Some(cost) = self.refused() else {
            return Vec::new();
        };
        // A refusal masks the line until an expiry.
        let followed = self.expires.then(|| {
            if self.is_spaced() && self.slower.is_none() {
                self.serves.clone()
            } else {
                self.expiries()
            }
        });
        let last = Curve::new(Staircase::once(1));
        followed
            .into_iter()
            .chain([last])
            .map(|curve| Demand { cost, curve })
            .collect()
    }

    fn line_and_timer(self) -> Tasks {
        let served = self.served();
        let refusals = self.refusals();
        let own_timer = matches!(self.limit.expiry, Some(Expiry::Own { .. }));
        let together = if !own_timer {
            // A shared timer is a task of its own; here remains what the line's interrupt does.
            vec![served.clone()]
        } else {
            let mut all = if self.is_spaced() && self.slower.is_none() {
                vec![self.each_service()]
            } else {
                vec![served.clone(), self.overhead()]
            };
            all.extend(refusals.last().cloned());
            all
        };
        let expiry = own_timer.then(|| {
            let own = Demand {
                cost: longest_expiry(self.limit, self.body),
                curve: self.expiries(),
            };
            Interrupt::new(own, Vec::new())
        });
        Tasks {
            request: Some(Interrupt::new(served, refusals)),
            expiry,
            together,
            shared: self.limit.costs.expiry_empty.max(self.dearer()),
            serves: Some(self.serves),
        }
    }
}
