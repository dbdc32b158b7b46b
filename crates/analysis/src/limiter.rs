// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models a limited source as tasks: the cost of its interrupts and how often they come (regehr2005
//! §5.2, core/CONTRACTS.md).
//!
//! docs/analysis.md derives each line. The model goes beyond the paper in two points. First, the
//! timer's interrupt itself serves a request that waited. An interrupt is therefore either a
//! "request" or an "expiry", and only the two together bound the demand. Second, other interrupts
//! delay the timer that ends an interval; `latency` is the bound of that delay.

use weir_model::{Expiry, Limit, Place, Policy, Source, System, Timing};

use crate::curve::{Curve, FOREVER, Staircase};
use crate::rta::Demand;

/// The demands of one source's interrupts.
#[derive(Debug, Clone)]
pub struct Tasks {
    /// The most requests served in any window; `None` if there is no bound.
    pub serves: Option<Curve>,
    /// The interrupt of the source's own line; `None` if the source is polled or has no bound.
    pub request: Option<Interrupt>,
    /// The interrupt of the source's own timer; `None` if the source has no such timer.
    pub expiry: Option<Interrupt>,
    /// The cost of both interrupts together. This bound is below the sum of the two single bounds.
    pub together: Vec<Demand>,
    /// Cycles that the source adds at worst to one interrupt of a shared timer.
    pub shared: u64,
}

/// One of the interrupts of a source.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// The runs that are to be bounded: the runs that serve a request, or the expiries.
    pub own: Demand,
    /// The other runs of the same interrupt: those that refuse a request.
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

    /// All runs of the interrupt, both `own` and `other`.
    pub fn demands(&self) -> impl Iterator<Item = &Demand> {
        std::iter::once(&self.own).chain(&self.other)
    }
}

/// The cost of one run of a source's handler with the most work that one interrupt may do. The
/// limiter's own cost is not included.
#[derive(Debug, Clone, Copy)]
pub struct Body {
    /// The cost of the run, in cycles.
    pub cycles: u64,
    /// Whether the run may leave packets in the device, so that the device interrupts again.
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

/// The least number of cycles between two packets or edges at the line, from the worst rate that
/// the file states. `None` if there is no bound. A level-triggered line of a limiter in silicon has
/// no bound, because it stays asserted as long as its handler waits.
#[must_use]
pub fn line_interarrival(source: &Source, clock_hz: u64) -> Option<u64> {
    if source.limit.silicon.is_some_and(|of| of.is_level) {
        return None;
    }
    source.rates.worst.map(|rate| rate.least_cycles(clock_hz))
}

/// A kind of window, with what a source's timer can do in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The most cycles by which an expiry is served late: L in core/CONTRACTS.md.
    latency: u64,
    /// The part of L, in cycles, that may have passed before the window begins.
    before: u64,
    /// Whether expiries run in the window.
    expires: bool,
}

impl Window {
    /// Any window, in which expiries are served up to `latency` cycles late.
    #[must_use]
    pub fn any(latency: u64) -> Self {
        Self {
            latency,
            before: latency,
            expires: true,
        }
    }

    /// The busy windows of work that the timer delays. No more urgent work is left when such a
    /// window begins, so no expiry is late at that instant.
    #[must_use]
    pub fn below_timer(latency: u64) -> Self {
        Self {
            before: 0,
            ..Self::any(latency)
        }
    }

    /// The busy windows of work that is more urgent than the timer. No expiry begins in them.
    #[must_use]
    pub fn above_timer(latency: u64) -> Self {
        Self {
            expires: false,
            ..Self::any(latency)
        }
    }
}

/// The least number of cycles between two requests of the line; `None` if there is no bound.
///
/// Moderation never makes requests more frequent. After an interrupt, the next one needs a packet
/// and then the first of the moderation timers, or a full count of packets, or as many packets as
/// the interrupt before took. The exception is a wait that a tick ends: there two requests can come
/// at one instant.
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
            // Packets that an interrupt leaves in the device count for the next interrupt, so the
            // next one needs no more new packets than the interrupt before took.
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

/// The most requests in any window that reach the limit of `source`; `None` if there is no bound.
#[must_use]
pub fn requests(source: &Source, clock_hz: u64) -> Option<Staircase> {
    let delay = source.limit.delay();
    let of_tick = source.moderation.and_then(|of| {
        let tick = of.tick?.max(1);
        // One request begins a wait and one ends it. A wait may be cut to the shortest length, but
        // no two waits end at the same tick.
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

/// The most packets that may wait in the device if a tick ends the wait. `None` if no tick does, or
/// if the file does not state the number.
pub(crate) fn kept_until_a_tick(source: &Source) -> Option<u64> {
    source.moderation?.tick?;
    source.queue
}

/// The number of interrupts that `source` needs to take `packets` packets, if each interrupt finds
/// as many as it can take.
pub(crate) fn interrupts_for(source: &Source, packets: u64) -> u64 {
    packets.div_ceil(source.packets_taken())
}

/// Whether moderation lets more packets pile up than one interrupt takes. The bottom halves of
/// these packets then wait for longer than the moderation's delay.
pub(crate) fn piles_up(source: &Source) -> bool {
    source.moderation.is_some()
        && source
            .queue
            .is_none_or(|queue| interrupts_for(source, queue) > 1)
}

/// Whether the source is so slow that its limit never refuses a request (LIMIT-LOSS-1).
fn within_limit(limit: &Limit, interarrival: u64, latency: u64) -> bool {
    match limit.policy {
        Policy::Off => true,
        Policy::Poll => false,
        _ => spare(limit, interarrival).is_some_and(|spare| latency <= spare),
    }
}

/// The number of cycles by which the source's requests are further apart than its limit requires,
/// if nothing is late. `None` if they are not further apart. A limiter in hardware also has to
/// deliver each request before the next one comes, since a scan that finds two requests counts them
/// as one.
fn spare(limit: &Limit, interarrival: u64) -> Option<u64> {
    if limit.place == Place::Hardware && interarrival < limit.delay() {
        return None;
    }
    let span = interarrival.saturating_mul(u64::from(limit.per_interval()));
    span.checked_sub(limit.interval.cycles().saturating_add(skew(limit)))
}

/// Whether the limiter of `source` never holds a request back if its timer is served up to
/// `latency` cycles late. False if the source has no worst rate, because nothing is known then.
#[must_use]
pub fn never_holds(source: &Source, clock_hz: u64, latency: u64) -> bool {
    request_interarrival(source, clock_hz)
        .is_some_and(|interarrival| within_limit(&source.limit, interarrival, latency))
}

/// The number of cycles by which two starts of interrupts may be closer than the times that the
/// limiter reads. A limiter in software reads the timer some instructions after the start, to the
/// tick, and the port may set the one-shot short by `lag` ticks. For a limiter in hardware, this is
/// the number of cycles by which requests may be closer at the limiter than at the line.
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

/// The longest latency, in cycles, with which a limited source still cannot come faster than its
/// limit allows. `None` if the source can come faster with any latency, or has no limit.
#[must_use]
pub fn longest_borne(source: &Source, clock_hz: u64) -> Option<u64> {
    let limit = &source.limit;
    if limit.place == Place::Hardware || matches!(limit.policy, Policy::Off | Policy::Poll) {
        return None;
    }
    spare(limit, request_interarrival(source, clock_hz)?)
}

/// The most requests that the line's interrupt serves before the next expiry. `None` if there is no
/// bound, which is so for a policy that also reads the clock.
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

/// The most requests served in any window, as core/CONTRACTS.md promises it, measured in cycles
/// from interrupt to interrupt. `None` if there is no bound.
fn serves(source: &Source, clock_hz: u64, body: Body, window: Window) -> Option<Curve> {
    let limit = &source.limit;
    let arrivals = requests(source, clock_hz);
    let burst = u64::from(limit.burst);
    // A limiter in hardware measures its deliveries by its own clock, so none comes early.
    let early = match limit.place {
        Place::Software => skew(limit),
        Place::Hardware => 0,
    };
    let late = skew(limit).saturating_add(window.before).min(
        // This is J of core/CONTRACTS.md. A limiter that is a whole interval late starts a new
        // interval from that instant.
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
        // The window also serves the packets that waited in the device before it began.
        return Some(curve);
    }
    // A window serves the requests that came in it, one request that the limiter held or noted
    // before, and one that was pending.
    Some(curve.and(Staircase {
        base: 3,
        ..arrivals
    }))
}

/// Whether the handler runs inside the timer's interrupt. It does if the source is polled, and if
/// the port states a cost for serving a waiting request there.
#[must_use]
pub fn serves_in_expiry(limit: &Limit) -> bool {
    limit.policy == Policy::Poll || limit.costs.expiry_served > 0
}

/// The longest run of the timer's interrupt, in cycles. The handler is included if it runs inside
/// this interrupt.
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

/// The demands of the interrupts of `source`, whose handler costs `body`, in windows of the kind
/// `window`.
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
        // By LIMIT-LAZY-1, a source below its limit takes no timer interrupt.
        (_, _, Timing::Lazy) if limiter.slower.is_some() => limiter.line_alone(),
        _ => limiter.line_and_timer(),
    }
}

/// A limiter in one kind of window, with a bound on the requests that it serves.
struct LimiterWindow<'a> {
    limit: &'a Limit,
    body: Body,
    serves: Curve,
    /// The least number of cycles between two requests; `None` if the source can come faster than
    /// its limit.
    slower: Option<u64>,
    /// Whether expiries run in the window.
    expires: bool,
}

impl LimiterWindow<'_> {
    /// The runs of the line's interrupt that serve a request.
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

    /// The cost of a refusal in cycles, R in docs/analysis.md; `None` if the policy refuses
    /// nothing.
    fn refused(&self) -> Option<u64> {
        (self.limit.timing == Timing::Lazy).then_some(self.limit.costs.request_refused)
    }

    /// Whether two services always have between them either an empty expiry, after which the line
    /// serves, or a refusal, after which the expiry serves.
    fn is_spaced(&self) -> bool {
        match self.limit.policy {
            Policy::Strict | Policy::Paced => true,
            Policy::Bucket => self.limit.burst == 1,
            Policy::Bursty | Policy::Off | Policy::Poll => false,
        }
    }

    /// The number of cycles by which a request costs more if an expiry serves it and not the line's
    /// interrupt.
    fn dearer(&self) -> u64 {
        let costs = &self.limit.costs;
        costs.expiry_served.saturating_sub(costs.request_served)
    }

    /// Expiries are at least an interval apart. Those of a free-running timer are exactly an
    /// interval apart; for them the skew only makes the bound safer.
    fn expiries(&self) -> Curve {
        Curve::new(Staircase::sporadic(
            self.limit.interval.cycles(),
            skew(self.limit),
        ))
    }

    /// Services and expiries together, for a policy whose services are spaced (see `is_spaced`).
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

    /// The cost that expiries add, if each service is already counted as one by the line's
    /// interrupt.
    fn overhead(&self) -> Demand {
        // An expiry serves the request that was refused. An expiry that serves nothing does not
        // follow a refusal.
        let by_expiry = self.dearer().saturating_add(self.refused().unwrap_or(0));
        Demand {
            cost: self.limit.costs.expiry_empty.max(by_expiry),
            curve: match self.slower.filter(|_| self.is_spaced()) {
                // Requests are further apart than an interval, so there are fewer expiries: one for
                // each request, and one for a request before the window.
                Some(interarrival) => self.expiries().and(Staircase {
                    base: 2,
                    ..Staircase::sporadic(interarrival, 0)
                }),
                None => self.expiries(),
            },
        }
    }

    /// The runs of the line's interrupt that refuse a request. After each, an expiry ends the
    /// interval; one more refusal may come at the window's end.
    fn refusals(&self) -> Vec<Demand> {
        let Some(cost) = self.refused() else {
            return Vec::new();
        };
        // A refusal masks the line until the next expiry.
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
            // The expiries of a shared timer are a task of their own, so only the work of the
            // line's interrupt remains here.
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
