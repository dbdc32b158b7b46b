// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the tuning task: what may change in a system, and within which bounds.

use weir_model::{Expiry, Interval, Limit, Place, Policy, Rate, System, Timing};

use crate::tune::assign::ChannelOccupancy;
use crate::tune::band::Band;
use crate::tune::plan::{Arrangement, Choice, LimitPlan, Setting, SharedTimer};
use crate::tune::platform::Platform;

/// What the user asks for in addition to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The share by which a limit may let through more than is asked of it: 0.1 is 10 %.
    pub over_admission: f64,
    /// The rate at which the shared timer has to run; `None` if the tuner may choose.
    pub timer_rate: Option<Rate>,
    /// The most cycles for which interrupts together may hold the processor; `None` if there is no
    /// bound.
    pub longest_delay: Option<u64>,
    /// The rule that chooses among the limits at the largest scale.
    pub aim: Aim,
}

impl Default for Options {
    /// An over-admission of 10 %, no other bounds, and the aim [`Aim::Knee`].
    fn default() -> Self {
        Self {
            over_admission: 0.1,
            timer_rate: None,
            longest_delay: None,
            aim: Aim::Knee,
        }
    }
}

/// Which limits are the best among those that let through the same share of the tolerated rates
/// (decision 0019).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aim {
    /// The limits with the least product of overhead and longest delay.
    #[default]
    Knee,
    /// The limits with the fewest timer interrupts. Bursts grow as far as deadlines allow.
    FewestInterrupts,
}

/// A source whose limit is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedSource {
    /// Index in [`System::sources`].
    pub source: usize,
    /// The rates between which the source's limit has to lie.
    pub band: Band,
    /// The arrangements that are possible. If the file states a policy, all of them have that
    /// policy.
    pub ways: Vec<Arrangement>,
    /// The channel that the file states for the limit, as an index into [`Platform::channels`];
    /// `None` if the file states none.
    pub channel: Option<usize>,
}

impl TunedSource {
    /// Whether the shared timer may clear the source.
    #[must_use]
    pub fn may_share(&self) -> bool {
        self.ways.contains(&Arrangement::Shared)
    }
}

/// The shared timer that may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Index in [`System::timers`]; `None` if the tuner has to add a timer.
    pub timer: Option<usize>,
    /// The channel that the file states for the timer, as an index into [`Platform::channels`];
    /// `None` if the file states none.
    pub channel: Option<usize>,
}

/// A system and what the tuner may change in it.
#[derive(Clone)]
pub struct TuningTask<'a> {
    /// The system.
    pub system: &'a System,
    /// The timers of the system's processor.
    pub platform: &'a Platform,
    /// What the user asks for.
    pub options: Options,
    /// The sources whose limits are chosen, in the file's order.
    pub tuned: Vec<TunedSource>,
    /// The shared timer that the tuner may use.
    pub slot: Slot,
    /// The channels and divisors that the rest of the system uses.
    pub taken: ChannelOccupancy,
    /// Tells whether the file can state a plan. It is called only for plans that work otherwise,
    /// and covers rules that do not follow from the timers alone.
    pub accepts: Option<Accepts<'a>>,
}

/// A predicate on plans.
pub type Accepts<'a> = &'a (dyn Fn(&LimitPlan) -> bool + Sync);

impl<'a> TuningTask<'a> {
    /// The limits that the tuned sources have now. `None` if a source has no limit, or a limit on a
    /// channel that the platform does not have.
    #[must_use]
    pub fn current(&self) -> Option<LimitPlan> {
        let setting = |channel: &str, interval: Interval| {
            let channel = self
                .platform
                .channels
                .iter()
                .position(|of| of.name == channel)?;
            Some(Setting { channel, interval })
        };
        let mut shared = None;
        let mut choices = Vec::with_capacity(self.tuned.len());
        for tuned in &self.tuned {
            let limit = &self.system.sources.get(tuned.source)?.limit;
            let choice = match (limit.policy, limit.place, &limit.expiry) {
                (Policy::Off, _, _) => return None,
                (_, Place::Hardware, _) => Choice::Hardware {
                    requests: limit.per_interval(),
                    interval: limit.interval.cycles(),
                },
                (_, _, Some(Expiry::Own { channel, .. })) => Choice::Own {
                    policy: limit.policy,
                    timing: limit.timing,
                    burst: limit.burst,
                    setting: setting(channel, limit.interval)?,
                },
                (_, _, Some(Expiry::Shared(timer))) if self.slot.timer == Some(*timer) => {
                    let of = self.system.timers.get(*timer)?;
                    shared = Some(SharedTimer {
                        timer: Some(*timer),
                        setting: setting(&of.channel, of.period)?,
                    });
                    Choice::Shared { burst: limit.burst }
                }
                _ => return None,
            };
            choices.push((tuned.source, choice));
        }
        Some(LimitPlan { shared, choices })
    }

    /// The task for `system`. It tunes every source that states an expected or a tolerated rate,
    /// except the sources in `keep` (indices in [`System::sources`]).
    #[must_use]
    pub fn new(
        system: &'a System,
        platform: &'a Platform,
        options: Options,
        keep: &[usize],
    ) -> Self {
        let mut task = Self {
            system,
            platform,
            tuned: Vec::new(),
            slot: Slot::default(),
            taken: ChannelOccupancy::default(),
            options,
            accepts: None,
        };
        task.slot = task.free_timer(keep);
        // The file's shared timer keeps running, whether or not a source uses it.
        task.taken.only_shared.extend(task.slot.channel);
        for (source, of) in system.sources.iter().enumerate() {
            let band = Band::new(&of.rates, task.options.over_admission)
                .filter(|_| !keep.contains(&source))
                .map(|band| band.at_least(promised(system, source)));
            let ways = task.ways(source);
            match band {
                Some(band) if !ways.is_empty() => task.tuned.push(TunedSource {
                    source,
                    band,
                    ways,
                    channel: own_channel(system, source).and_then(|name| task.channel(name)),
                }),
                _ => task.take_own(source),
            }
        }
        for (index, timer) in system.timers.iter().enumerate() {
            if task.slot.timer != Some(index) && task.can_clear(index) {
                task.take(&timer.channel, timer.period.tick, None);
            }
        }
        task
    }

    /// The same task for a changed system.
    #[must_use]
    pub fn with<'b>(&self, system: &'b System, keep: &[usize]) -> TuningTask<'b>
    where
        'a: 'b,
    {
        TuningTask {
            accepts: self.accepts,
            ..TuningTask::new(system, self.platform, self.options.clone(), keep)
        }
    }

    fn channel(&self, name: &str) -> Option<usize> {
        self.platform
            .channels
            .iter()
            .position(|channel| channel.name == name)
    }

    /// The first shared timer of the file that no kept source uses.
    fn free_timer(&self, keep: &[usize]) -> Slot {
        let system = self.system;
        let is_free = |timer: usize| {
            !system.sources.iter().enumerate().any(|(source, of)| {
                let stays = keep.contains(&source) || Band::new(&of.rates, 0.0).is_none();
                stays && of.limit.expiry == Some(Expiry::Shared(timer))
            })
        };
        let timers = 0..system.timers.len();
        let timer = timers
            .filter(|&timer| self.can_clear(timer))
            .find(|&timer| is_free(timer));
        Slot {
            timer,
            channel: timer
                .and_then(|timer| system.timers.get(timer))
                .and_then(|timer| self.channel(&timer.channel)),
        }
    }

    /// Whether a timer of the file can clear sources. The alarm of a group at rest cannot.
    fn can_clear(&self, timer: usize) -> bool {
        let timer = self.system.timers.get(timer);
        let channel = timer.and_then(|timer| self.channel(&timer.channel));
        let channel = channel.and_then(|index| self.platform.channels.get(index));
        channel.is_none_or(|channel| channel.shared.is_some())
    }

    fn ways(&self, source: usize) -> Vec<Arrangement> {
        let Some(of) = self.system.sources.get(source) else {
            return Vec::new();
        };
        let exists = |way: &Arrangement| {
            let mut channels = self.platform.channels.iter();
            match *way {
                Arrangement::Shared => channels.any(|channel| channel.shared.is_some()),
                Arrangement::Own(policy, timing, _) => {
                    channels.any(|channel| channel.offer(policy, timing).is_some())
                }
                Arrangement::Hardware => true,
            }
        };
        ways(&of.limit).into_iter().filter(exists).collect()
    }

    fn take_own(&mut self, source: usize) {
        if let (Some(name), Some(of)) = (
            own_channel(self.system, source),
            self.system.sources.get(source),
        ) {
            self.take(name, of.limit.interval.tick, Some(of.level.group));
        }
    }

    fn take(&mut self, name: &str, divisor: u64, group: Option<u32>) {
        let Some(index) = self.channel(name) else {
            return;
        };
        let Some(counter) = self.platform.channels.get(index).map(|of| of.counter) else {
            return;
        };
        self.taken.channels.push(index);
        self.taken.groups.extend(group.map(|group| (index, group)));
        if !self.taken.divisors.iter().any(|(of, _)| *of == counter) {
            self.taken.divisors.push((counter, divisor));
        }
    }

    /// Whether the scale of the tolerated rates matters to any source.
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.tuned.iter().any(|tuned| tuned.band.is_scaled())
    }
}

/// The arrangements for a source with this limit: those of its policy or, if it has no limit, those
/// that are worth trying.
#[must_use]
pub fn ways(limit: &Limit) -> Vec<Arrangement> {
    if limit.place == Place::Hardware {
        return vec![Arrangement::Hardware];
    }
    let own_timing = match limit.expiry {
        Some(Expiry::Own { .. }) => limit.timing,
        _ => Timing::Lazy,
    };
    match limit.policy {
        Policy::Off => vec![
            Arrangement::Shared,
            Arrangement::Own(Policy::Strict, Timing::Lazy, 1),
            Arrangement::Own(Policy::Bursty, Timing::Lazy, 2),
        ],
        Policy::Bursty => vec![
            Arrangement::Shared,
            Arrangement::Own(Policy::Bursty, own_timing, 2),
        ],
        policy => vec![Arrangement::Own(policy, limit.timing, limit.burst)],
    }
}

/// The rate of requests, in hertz, that brings the packets of a source's flows with deadlines.
fn promised(system: &System, source: usize) -> f64 {
    let packets = system.promised_hertz(source);
    let taken = system
        .sources
        .get(source)
        .filter(|of| of.max_work.is_some());
    taken.map_or(0.0, |of| packets / of.packets_taken() as f64)
}

fn own_channel(system: &System, source: usize) -> Option<&str> {
    match &system.sources.get(source)?.limit.expiry {
        Some(Expiry::Own { channel, .. }) => Some(channel),
        _ => None,
    }
}
