// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what a flavour of a port lacks for a limit. The messages use the terms of the system file,
//! so that users see an error before anything is compiled.
use weir_boards::{Board, Channel, Flavour, Misfit, PortRules};
use weir_model::{Policy, Timing};

use crate::plan::SoftwareLimit;

/// A feature that the port does not have, and what it has instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lack {
    pub what: String,
    pub right: String,
}

impl Lack {
    pub fn new(what: impl Into<String>, right: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            right: right.into(),
        }
    }
}

/// The port of a chip, in one of its flavours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChipPort<'a> {
    pub chip: &'a Board,
    pub flavour: Flavour,
    pub rules: &'a PortRules,
}

impl<'a> ChipPort<'a> {
    /// The channel of this name. It is an error if a limit (or a shared timer) cannot use the
    /// channel.
    pub fn channel(self, name: &str, shared: bool) -> Result<Channel<'a>, Lack> {
        let usable = |channel: &Channel<'_>| {
            let bits = channel.timer.bits;
            if shared {
                self.rules.shares(&channel.name(), bits)
            } else {
                self.rules.own_bits == bits
            }
        };
        self.chip.channel(name).filter(usable).ok_or_else(|| {
            let whose = if shared { "shared timers" } else { "limits" };
            // The channels are sorted by their interrupts in the vector table.
            let mut all: Vec<Channel<'_>> = self.chip.channels().filter(usable).collect();
            all.sort_by_key(|channel| self.chip.vector(channel.vector));
            let names: Vec<String> = all.iter().map(Channel::name).collect();
            Lack::new(
                format!(
                    "the timer channel `{name}` cannot be used by {whose} of the flavour `{}`",
                    self.flavour.name()
                ),
                format!("use one of {}", names.join(", ")),
            )
        })
    }

    /// The reason why a prescaler does not work; `None` if it works.
    pub fn prescaler(self, channel: &Channel<'_>, shared: bool, tick: u64) -> Option<Lack> {
        let least = if shared { 1 } else { self.rules.least_divisor };
        let timer = channel.timer;
        let wanted = channel.prescaler(tick);
        let has = || timer.divisors.iter().filter(|&&divisor| divisor >= least);
        let is_whole = tick % timer.clock_cycles.max(1) == 0;
        if is_whole && has().any(|&divisor| divisor == wanted) {
            return None;
        }
        let list: Vec<String> = has().map(u64::to_string).collect();
        Some(Lack::new(
            format!("{} cannot count once in {tick} cycles", timer.name),
            match timer.clock_cycles {
                1 => format!("its prescalers are {}", list.join(", ")),
                clock => format!(
                    "its prescalers are {}, and one of its clock is {clock} cycles",
                    list.join(", ")
                ),
            },
        ))
    }

    /// The reasons why a limit with a channel of its own does not work.
    pub fn own_limit(self, limit: &SoftwareLimit) -> Vec<Lack> {
        let mut lacks = common(limit);
        let (burst, ticks) = (u64::from(limit.burst), limit.interval_ticks);
        let offer = (self.rules.offers)(limit.policy, limit.timing, burst, self.rules.own_bits);
        let Some(range) = offer else {
            if self.flavour == Flavour::Fast {
                let most = |policy| *(self.rules.bursts)(policy).end();
                lacks.push(Lack::new(
                    "the flavour `fast` lacks this policy, timing or burst",
                    format!(
                        "it has strict (eager or lazy), bursty (lazy, a burst of 2 to {}) and bucket (lazy, 2 to {}); the flavour `c` has all",
                        most(Policy::Bursty),
                        most(Policy::Bucket)
                    ),
                ));
            }
            return lacks;
        };
        let most = range.most;
        match range.fits(ticks, limit.prescaler) {
            Err(Misfit::TooLong) => lacks.push(Lack::new(
                format!("the interval of {ticks} ticks is too long"),
                format!("at most {most} fit: choose a larger prescaler, or a higher rate"),
            )),
            // An interval of zero ticks has already been reported.
            Err(Misfit::TooShort) if ticks > 0 => lacks.push(Lack::new(
                format!("the interval of {ticks} ticks is too short"),
                format!(
                    "{} or more are needed: choose a smaller prescaler, or a lower rate",
                    range.least
                ),
            )),
            Err(Misfit::Divisor) => lacks.push(Lack::new(
                format!(
                    "{ticks} ticks with prescaler {} are too short",
                    limit.prescaler
                ),
                format!(
                    "choose a prescaler of {} or more, or more than {} ticks",
                    range.short_divisor, range.short
                ),
            )),
            Err(Misfit::TooShort) | Ok(()) => {}
        }
        lacks
    }

    /// The reasons why a limit on a shared timer does not work (regehr2005 §3.5).
    pub fn shared_limit(self, vector: &str, limit: &SoftwareLimit) -> Vec<Lack> {
        let mut lacks = common(limit);
        if (limit.policy, limit.timing) != (Policy::Bursty, Timing::Eager) {
            lacks.push(Lack::new(
            "only bursty, eager limits can share a timer",
            "write policy = \"bursty\" and timing = \"eager\", or give the source a channel of its own",
        ));
        }
        if limit.interval_ticks > u64::from(u16::MAX) {
            lacks.push(Lack::new(
                format!("the period of {} ticks is too long", limit.interval_ticks),
                format!("at most {} fit: choose a larger prescaler", u16::MAX),
            ));
        }
        let mut lines = self.chip.line_names();
        lines.truncate(self.rules.shared_lines.unwrap_or(usize::MAX));
        if !lines.contains(&vector) {
            lacks.push(Lack::new(
                format!(
                    "{vector} cannot share a timer in the flavour `{}`",
                    self.flavour.name()
                ),
                format!("use one of {}, or the flavour `c`", lines.join(", ")),
            ));
        }
        lacks
    }
}

/// Checks the rules of core's weir_limit_check() for the widths of the port's types.
fn common(limit: &SoftwareLimit) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let counts = matches!(limit.policy, Policy::Bursty | Policy::Bucket);
    if limit.timing == Timing::OneShot && limit.policy != Policy::Bursty {
        lacks.push(Lack::new(
            "only a bursty limit can be one-shot",
            "write timing = \"lazy\" or timing = \"eager\"",
        ));
    }
    if limit.burst == 0 || limit.burst > u32::from(u8::MAX) || (!counts && limit.burst != 1) {
        lacks.push(Lack::new(
            format!("the burst cannot be {}", limit.burst),
            "bursty and bucket have bursts of 1 to 255, strict and paced of 1",
        ));
    }
    if limit.interval_ticks == 0 {
        lacks.push(Lack::new(
            "the interval is shorter than a tick of its timer",
            "choose a smaller prescaler, or a lower rate",
        ));
    } else if limit.lag_ticks != 0
        && (limit.policy != Policy::Strict || u64::from(limit.lag_ticks) >= limit.interval_ticks)
    {
        lacks.push(Lack::new(
            format!("the lag cannot be {} ticks", limit.lag_ticks),
            "it is 0, for a strict limit below the interval",
        ));
    }
    lacks
}
