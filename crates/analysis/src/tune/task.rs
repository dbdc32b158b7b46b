// SPDX-License-Identifier: MIT OR Apache-2.0
//! The task of tuning: what may change, and within which bounds.

use weir_model::{Expiry, Interval, Limit, Place, Policy, Rate, System, Timing};

use crate::tune::assign::ChannelOccupancy;
use crate::tune::band::Band;
use crate::tune::plan::{Arrangement, Choice, LimitPlan, Setting, SharedTimer};
use crate::tune::platform::Platform;

/// The user's wishes beside the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How much more than it is asked for a limit may let through: 0.1 is 10 %.
    pub over_admission: f64,
    /// The rate at which the shared timer has to run.
    pub timer_rate: Option<Rate>,
    /// The most cycles for which interrupts together may hold the processor.
    pub longest_delay: Option<u64>,
    /// Which of the limits at the largest scale are chosen.
    pub aim: Aim,
}

impl Default for Options {
    /// An over-admission of 10 %, no other bounds, and the knee.
    fn default() -> Self {
        Self {
            over_admission: 0.1,
            timer_rate: None,
            longest_delay: None,
            aim: Aim::Knee,
        }
    }
}

/// Which limits are the best of those that let through the same share of the tolerated rates
/// (decision 0019).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aim {
    /// Those with the least product of overhead and longest delay.
    #[default]
    Knee,
    /// Those with the fewest timer interrupts. Bursts grow as far as deadlines allow.
    FewestInterrupts,
}

/// A source whose limit is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedSource {
    /// Index in [`System::sources`].
    pub source: usize,
    /// The rates between which its limit has to lie.
    pub band: Band,
    /// The arrangements that are possible; the policy that the file states stays.
    pub ways: Vec<Arrangement>,
    /// The channel that the file states for it, as an index into [`Platform::channels`].
    pub channel: Option<usize>,
}

impl TunedSource {
    /// May the shared timer clear it?
    #[must_use]
    pub fn may_share(&self) -> bool {
        self.ways.contains(&Arrangement::Shared)
    }
}

/// The shared timer that may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Index in [`System::timers`]; none: a new one.
    pub timer: Option<usize>,
    /// The channel that the file states for it, as an index into [`Platform::channels`].
    pub channel: Option<usize>,
}

/// A system with what may be changed in it.
#[derive(Clone)]
pub struct TuningTask<'a> {
    /// The system.
    pub system: &'a System,
    /// Its timers.
    pub platform: &'a Platform,
    /// What the user asks for.
    pub options: Options,
    /// The sources whose limits are chosen, in the file's order.
    pub tuned: Vec<TunedSource>,
    /// The shared timer.
    pub slot: Slot,
    /// The channels and divisors that the rest of the system uses.
    pub taken: ChannelOccupancy,
    /// Can the file state this plan? It is asked of plans that work otherwise, for rules that the
    /// timers alone do not show.
    pub accepts: Option<Accepts<'a>>,
}

/// A judge of plans.
pub type Accepts<'a> = &'a (dyn Fn(&LimitPlan) -> bool + Sync);

impl<'a> TuningTask<'a> {
    /// The limits that the tuned sources have now. `None` if one has no limit, or one on a channel
    /// that the platform does not know.
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

    /// The task for `system`: it tunes every source that states an expected or a tolerated rate,
    /// but for those in `keep` (indices in [`System::sources`]).
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

    /// The first shared timer of the file that no source uses which stays as it is.
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

    /// Can a timer of the file clear sources? The alarm of a group that is at rest is none.
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

    /// Does the scale of the tolerated rates matter to any source?
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.tuned.iter().any(|tuned| tuned.band.is_scaled())
    }
}

/// The arrangements for a source with this limit: those of its policy or, without a limit, those
/// that are worth a try.
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

/// The requests per second, in hertz, that bring the packets of a source's flows with deadlines.
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
