// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ports/avr can keep, by flavour: the rules that its headers enforce when they are compiled, said before that and in the words of the system file.
use serde::Serialize;
use weir_model::{Policy, Timing};

use crate::chip::{Channel, Chip};
use crate::plan::SoftwareLimit;

/// A flavour of ports/avr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Ordinary C handlers, on the 16-bit timers.
    C,
    /// Entries written by hand, on an 8-bit timer, or several sources on channel A of a 16-bit one.
    Fast,
}

impl Flavour {
    /// The flavour of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "c" => Some(Self::C),
            "fast" => Some(Self::Fast),
            _ => None,
        }
    }

    /// As the system file calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Fast => "fast",
        }
    }

    /// True iff a source's own limit can use this channel.
    fn has_own(self, channel: &Channel<'_>) -> bool {
        match self {
            Self::C => channel.timer.bits == 16,
            Self::Fast => channel.timer.bits == 8,
        }
    }

    /// True iff sources can share this channel: `fast` restarts the timer at each match, which only channel A can (clear on match).
    fn has_shared(self, channel: &Channel<'_>) -> bool {
        channel.timer.bits == 16 && (self == Self::C || channel.letter == "A")
    }

    /// Of a chip's channels those that serve a purpose, for a message.
    fn list(self, chip: &Chip, shared: bool) -> String {
        let names: Vec<String> = chip
            .channels()
            .filter(|channel| {
                if shared {
                    self.has_shared(channel)
                } else {
                    self.has_own(channel)
                }
            })
            .map(|channel| channel.name())
            .collect();
        names.join(", ")
    }
}

/// Something that the port does not have, and what it has instead.
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

/// The channel of this name, if a limit (or a shared timer) of this flavour can use it.
pub(crate) fn channel<'a>(
    chip: &'a Chip,
    flavour: Flavour,
    name: &str,
    shared: bool,
) -> Result<Channel<'a>, Lack> {
    let usable = |channel: &Channel<'_>| {
        if shared {
            flavour.has_shared(channel)
        } else {
            flavour.has_own(channel)
        }
    };
    chip.channel(name).filter(usable).ok_or_else(|| {
        let whose = if shared { "shared timers" } else { "limits" };
        Lack::new(
            format!(
                "the timer channel `{name}` is none that {whose} of the flavour `{}` can use",
                flavour.name()
            ),
            format!("use one of {}", flavour.list(chip, shared)),
        )
    })
}

/// What is wrong with a prescaler.
pub(crate) fn prescaler(
    flavour: Flavour,
    channel: &Channel<'_>,
    shared: bool,
    tick: u64,
) -> Option<Lack> {
    let least = if flavour == Flavour::Fast && !shared {
        8
    } else {
        1
    };
    let timer = channel.timer;
    let has: Vec<u64> = timer
        .divisors
        .iter()
        .copied()
        .filter(|divisor| *divisor >= least)
        .collect();
    if has.contains(&tick) {
        return None;
    }
    let list: Vec<String> = has.iter().map(u64::to_string).collect();
    Some(Lack::new(
        format!("{} cannot count once in {tick} cycles", timer.name),
        format!("its prescalers are {}", list.join(", ")),
    ))
}

/// Half a wrap of 16-bit ticks, less one: what LIMIT-TIME-3 divides.
const REACH_TICKS: u64 = 0x7fff;
/// Where a burst takes no longer than this, one byte of the counter is compared, which needs a few cycles between two ticks.
const ONE_BYTE_TICKS: u64 = 240;
/// The fewest ticks of the flavour `c`: the board's costs hold from there on (lean.h, `WEIR_AVR_IS_LONG`, `WEIR_AVR_BUCKET_IS_LONG`).
fn c_least_ticks(policy: Policy, burst: u32) -> u64 {
    if policy == Policy::Bucket && burst > 6 {
        40
    } else {
        16
    }
}
/// What an 8-bit timer can hold beside the ticks that the entries need.
const FAST_MOST_TICKS: u64 = 250;

/// What the entries need at least.
const FAST_LEAST_TICKS: u64 = 4;

/// What is wrong with a limit that has a channel of its own.
pub(crate) fn own_limit(flavour: Flavour, limit: &SoftwareLimit) -> Vec<Lack> {
    let mut lacks = common(limit);
    match flavour {
        Flavour::C => {
            // A bucket looks `burst` intervals ahead, the others one; one more is kept for the latency.
            let spans = if limit.policy == Policy::Bucket {
                u64::from(limit.burst) + 1
            } else {
                2
            };
            let most = REACH_TICKS / spans;
            if limit.interval_ticks > most {
                lacks.push(Lack::new(
                    format!("the interval of {} ticks is too long", limit.interval_ticks),
                    format!("at most {most} fit: choose a larger prescaler, or a higher rate"),
                ));
            }
            let least = c_least_ticks(limit.policy, limit.burst);
            if (1..least).contains(&limit.interval_ticks) {
                lacks.push(Lack::new(
                    format!(
                        "the interval of {} ticks is too short",
                        limit.interval_ticks
                    ),
                    format!(
                        "{least} or more are needed: choose a smaller prescaler, or a lower rate"
                    ),
                ));
            }
            let span = limit.interval_ticks.saturating_mul(u64::from(limit.burst));
            if limit.prescaler < 8 && span <= ONE_BYTE_TICKS {
                lacks.push(Lack::new(
                    format!("{span} ticks of one cycle are too short"),
                    format!("choose a prescaler of 8 or more, or more than {ONE_BYTE_TICKS} ticks"),
                ));
            }
        }
        Flavour::Fast => {
            let has = match (limit.policy, limit.timing) {
                (Policy::Strict, Timing::Eager | Timing::Lazy) => true,
                (Policy::Bursty | Policy::Bucket, Timing::Lazy) => limit.burst >= 2,
                _ => false,
            };
            if !has {
                lacks.push(Lack::new(
                    "the flavour `fast` lacks this policy",
                    "it has strict (eager or lazy), bursty and bucket (lazy, burst 2 or more); the flavour `c` has all",
                ));
            }
            let most = if limit.policy == Policy::Bucket {
                ONE_BYTE_TICKS / u64::from(limit.burst.max(1))
            } else {
                FAST_MOST_TICKS
            };
            if most < FAST_LEAST_TICKS {
                lacks.push(Lack::new(
                    format!("{} intervals do not fit an 8-bit timer", limit.burst),
                    format!(
                        "choose a burst of at most {}",
                        ONE_BYTE_TICKS / FAST_LEAST_TICKS
                    ),
                ));
            } else if !(FAST_LEAST_TICKS..=most).contains(&limit.interval_ticks) {
                lacks.push(Lack::new(
                    format!("the interval of {} ticks does not fit an 8-bit timer", limit.interval_ticks),
                    format!("{FAST_LEAST_TICKS} to {most} ticks do: choose another prescaler, or another rate"),
                ));
            }
        }
    }
    lacks
}

/// What is wrong with a limit whose count a shared timer clears (regehr2005 §3.5).
pub(crate) fn shared_limit(flavour: Flavour, vector: &str, limit: &SoftwareLimit) -> Vec<Lack> {
    let mut lacks = common(limit);
    if (limit.policy, limit.timing) != (Policy::Bursty, Timing::Eager) {
        lacks.push(Lack::new(
            "only bursty, eager limits can share a timer",
            "say policy = \"bursty\" and timing = \"eager\", or give the source a channel of its own",
        ));
    }
    if limit.interval_ticks > u64::from(u16::MAX) {
        lacks.push(Lack::new(
            format!("the period of {} ticks is too long", limit.interval_ticks),
            format!("at most {} fit: choose a larger prescaler", u16::MAX),
        ));
    }
    if flavour == Flavour::Fast && !matches!(vector, "INT0" | "INT1" | "INT2" | "INT3") {
        lacks.push(Lack::new(
            format!("{vector} cannot share a timer in the flavour `fast`"),
            "use INT0, INT1, INT2 or INT3, or the flavour `c`",
        ));
    }
    lacks
}

/// core's weir_limit_check(), in the widths of the port.
fn common(limit: &SoftwareLimit) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let counts = matches!(limit.policy, Policy::Bursty | Policy::Bucket);
    if limit.timing == Timing::OneShot && limit.policy != Policy::Bursty {
        lacks.push(Lack::new(
            "only a bursty limit can be one-shot",
            "say timing = \"lazy\" or timing = \"eager\"",
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
