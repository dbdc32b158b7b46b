// SPDX-License-Identifier: MIT OR Apache-2.0
//! A choice of limits, and its application to a system.

use weir_model::{
    EventCosts, Expiry, Interval, Limit, Policy, SiliconLimit, System, Timer, Timing,
};

use crate::tune::band::hertz;
use crate::tune::platform::Platform;

/// How a source may be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// The limit is bursty, and the shared timer clears it.
    Shared,
    /// The limit has a channel of its own. For the policies bursty and bucket, the number is the
    /// burst with which the search begins.
    Own(Policy, Timing, u32),
    /// The limit is in hardware, in front of the processor, and needs no timer.
    Hardware,
}

/// A timer channel and the interval to which it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Index in [`Platform::channels`].
    pub channel: usize,
    /// The interval of the limit, or the period of the shared timer.
    pub interval: Interval,
}

/// The limit that is chosen for one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A bursty limit that the shared timer clears.
    Shared {
        /// The most requests per period of the shared timer.
        burst: u32,
    },
    /// A limiter with a channel of its own.
    Own {
        /// The limiter's policy.
        policy: Policy,
        /// When the limiter masks the source.
        timing: Timing,
        /// The requests per interval, or the bucket's tokens.
        burst: u32,
        /// The limiter's channel and its interval.
        setting: Setting,
    },
    /// A limiter in hardware, whose policy and burst stay as they are.
    Hardware {
        /// The requests per interval.
        requests: u32,
        /// The interval in cycles.
        interval: u64,
    },
}

/// The timer that clears the sources of [`Choice::Shared`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedTimer {
    /// Index in [`System::timers`]; `None` if the file does not have the timer yet.
    pub timer: Option<usize>,
    /// The timer's channel and its period.
    pub setting: Setting,
}

/// The choices for all sources that are tuned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitPlan {
    /// The timer that sources share; `None` if no sources share one.
    pub shared: Option<SharedTimer>,
    /// The index in [`System::sources`] and the choice, for each tuned source.
    pub choices: Vec<(usize, Choice)>,
}

impl LimitPlan {
    /// Returns the same system with these limits. `platform` must be the one for which they were
    /// chosen.
    #[must_use]
    pub fn apply(&self, system: &System, platform: &Platform) -> System {
        let mut changed = system.clone();
        let timer = self.shared.and_then(|shared| {
            let channel = platform.channels.get(shared.setting.channel)?;
            let offer = channel.shared.as_ref()?;
            let index = shared.timer.unwrap_or(changed.timers.len());
            let timer = Timer {
                name: timer_name(system, platform, shared),
                channel: channel.name.clone(),
                level: channel.level.clone(),
                period: shared.setting.interval,
                base: offer.base,
            };
            match changed.timers.get_mut(index) {
                Some(old) => *old = timer,
                None => changed.timers.push(timer),
            }
            Some((index, offer, shared.setting))
        });
        for &(index, choice) in &self.choices {
            let Some(source) = changed.sources.get_mut(index) else {
                continue;
            };
            source.limit = match choice {
                Choice::Shared { burst } => {
                    let Some((timer, offer, setting)) = timer else {
                        continue;
                    };
                    Limit {
                        policy: Policy::Bursty,
                        interval: setting.interval,
                        burst,
                        bits: offer.bits,
                        expiry: Some(Expiry::Shared(timer)),
                        ..Limit::off(costs(&offer.costs, index))
                    }
                }
                Choice::Own {
                    policy,
                    timing,
                    burst,
                    setting,
                } => {
                    let Some((channel, offer)) = platform
                        .channels
                        .get(setting.channel)
                        .and_then(|channel| Some((channel, channel.offer(policy, timing)?)))
                    else {
                        continue;
                    };
                    Limit {
                        policy,
                        timing,
                        interval: setting.interval,
                        burst,
                        bits: offer.bits,
                        lag: offer.lag,
                        expiry: Some(Expiry::Own {
                            channel: channel.name.clone(),
                            level: channel.level_for(&source.level),
                        }),
                        ..Limit::off(costs(&offer.costs, index))
                    }
                }
                Choice::Hardware { interval, .. } => {
                    let kept = system
                        .silicon
                        .and_then(|of| Some((of, of.rate(interval).ok()?)));
                    Limit {
                        interval: kept.map_or(Interval::of_cycles(interval), |(of, rate)| {
                            of.interval(rate)
                        }),
                        silicon: source.limit.silicon.zip(kept).map(|(of, (_, rate))| {
                            SiliconLimit {
                                asked: interval,
                                rate,
                                ..of
                            }
                        }),
                        ..source.limit.clone()
                    }
                }
            };
        }
        changed
    }

    /// The rate, in hertz, that the limit of source `index` lets through in the long run; `None` if
    /// the plan has no limit for it.
    #[must_use]
    pub fn effective(&self, index: usize, clock_hz: u64) -> Option<f64> {
        let (_, choice) = self.choices.iter().find(|(source, _)| *source == index)?;
        Some(match *choice {
            Choice::Shared { burst } => {
                hertz(burst, self.shared?.setting.interval.cycles(), clock_hz)
            }
            Choice::Own {
                policy: Policy::Bursty,
                burst,
                setting,
                ..
            } => hertz(burst, setting.interval.cycles(), clock_hz),
            Choice::Own { setting, .. } => hertz(1, setting.interval.cycles(), clock_hz),
            Choice::Hardware { requests, interval } => hertz(requests, interval, clock_hz),
        })
    }
}

fn costs(of_sources: &[EventCosts], source: usize) -> EventCosts {
    of_sources.get(source).copied().unwrap_or_default()
}

/// The name of the shared timer in the file.
#[must_use]
pub fn timer_name(system: &System, platform: &Platform, shared: SharedTimer) -> String {
    let old = shared.timer.and_then(|index| system.timers.get(index));
    let stated = platform
        .channels
        .get(shared.setting.channel)
        .and_then(|channel| channel.timer.clone());
    old.map(|timer| timer.name.clone())
        .or(stated)
        .unwrap_or_else(|| free_name(system))
}

/// The name of a new shared timer: `shared`, or another name if that one is taken.
#[must_use]
fn free_name(system: &System) -> String {
    let taken = |name: &str| {
        system.timers.iter().any(|timer| timer.name == name)
            || system.sources.iter().any(|source| source.name == name)
    };
    std::iter::once("shared".to_owned())
        .chain((2_u32..).map(|number| format!("shared{number}")))
        .find(|name| !taken(name))
        .unwrap_or_default()
}
