// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns timer channels to limits. Counters have few channels, and all channels of one counter
//! have the same divisor.

use weir_model::{Interval, Policy, Timing};

use crate::tune::plan::Setting;
use crate::tune::platform::{Platform, TimerChannel};

/// What a channel is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelUse {
    /// The channel clears several sources.
    Shared,
    /// The channel serves one limiter of this policy and timing.
    Own(Policy, Timing),
}

/// A limit or shared timer that needs a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// What the client uses the channel for.
    pub wanted: ChannelUse,
    /// The channel that the file states; `None` if any free channel will do.
    pub channel: Option<usize>,
    /// The shortest interval that the client accepts, in cycles.
    pub shortest: u64,
    /// The longest interval that the client accepts, in cycles.
    pub longest: u64,
    /// The preemption group of the limited source. All sources whose limits use one channel are in
    /// the group of its interrupt. `None` for a shared timer, which takes the channel's own group.
    pub group: Option<u32>,
    /// Whether ticks are rounded up. If so, the interval is never shorter than `shortest` and may
    /// exceed `longest`. If not, ticks are rounded down.
    pub up: bool,
}

/// The channels and divisors that the rest of the system uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelOccupancy {
    /// The channels that are in use, as indices in [`Platform::channels`].
    pub channels: Vec<usize>,
    /// Channels that limits use, as indices in [`Platform::channels`], each with the preemption
    /// group of the limits' sources.
    pub groups: Vec<(usize, u32)>,
    /// The counters that are in use, as indices in [`Platform::counters`], each with its divisor.
    pub divisors: Vec<(usize, u64)>,
    /// The channels that the file reserves for a shared timer, as indices in
    /// [`Platform::channels`].
    pub only_shared: Vec<usize>,
}

/// The most attempts of a search, which is more than the channels of a chip need. An assignment
/// that takes more counts as impossible.
const MOST_ATTEMPTS: u32 = 2_000;

/// Finds a setting for every client, in the order of `clients`; `None` if there is no assignment.
/// The search shortens as few intervals as possible. Then it prefers the finest divisors, for
/// earlier clients first.
#[must_use]
pub fn assign(
    platform: &Platform,
    taken: &ChannelOccupancy,
    clients: &[Client],
) -> Option<Vec<Setting>> {
    let may_ever = |client: &Client| {
        let mut channels = platform.channels.iter();
        channels.any(|channel| !settings_of(channel, client).is_empty())
    };
    if !clients.iter().all(may_ever) {
        return None;
    }
    let reserved: Vec<usize> = clients.iter().filter_map(|of| of.channel).collect();
    let with_cuts = |most: usize| {
        let mut search = Search {
            platform,
            reserved: &reserved,
            clients,
            taken: taken.clone(),
            settings: Vec::with_capacity(clients.len()),
            cuts_left: most,
            attempts: 0,
        };
        search
            .place()
            .then_some((search.settings, most - search.cuts_left))
    };
    let (any, cuts) = with_cuts(clients.len())?;
    let fewer = (0..cuts).find_map(with_cuts);
    Some(fewer.map_or(any, |(settings, _)| settings))
}

/// A depth-first search for an assignment.
struct Search<'a> {
    platform: &'a Platform,
    /// The channels that the file states for some client.
    reserved: &'a [usize],
    clients: &'a [Client],
    taken: ChannelOccupancy,
    /// The settings of the clients that are already placed, in their order.
    settings: Vec<Setting>,
    /// The number of further intervals that may be cut short.
    cuts_left: usize,
    attempts: u32,
}

impl Search<'_> {
    fn place(&mut self) -> bool {
        let (platform, reserved) = (self.platform, self.reserved);
        let Some(client) = self.clients.get(self.settings.len()) else {
            return true;
        };
        let mut counters = Vec::new();
        let mut fresh_kinds = Vec::new();
        for (index, channel) in platform.channels.iter().enumerate() {
            let may = match client.channel {
                Some(fixed) => fixed == index,
                // The free channels of a counter are nearly equal, so only the first of them is
                // tried.
                None => {
                    (channel.limits > 1 || !reserved.contains(&index))
                        && !counters.contains(&channel.counter)
                }
            };
            let is_refused = matches!(client.wanted, ChannelUse::Own(..))
                && self.taken.only_shared.contains(&index);
            let users = self
                .taken
                .channels
                .iter()
                .filter(|&&of| of == index)
                .count();
            let is_of_other_group = |&(of, group): &(usize, u32)| {
                of == index && client.group.is_some_and(|own| own != group)
            };
            let is_others = channel.limits > 1 && self.taken.groups.iter().any(is_of_other_group);
            if !may || is_refused || is_others || users >= channel.limits {
                continue;
            }
            counters.push(channel.counter);
            if client.channel.is_none()
                && is_fresh(platform, &self.taken, reserved, channel.counter)
            {
                let kind = platform.counters.get(channel.counter).map(|of| of.kind);
                if fresh_kinds.contains(&kind) {
                    // A client that fails with one unused counter fails with every other unused
                    // counter of this kind.
                    continue;
                }
                fresh_kinds.push(kind);
            }
            let set = self
                .taken
                .divisors
                .iter()
                .find(|(counter, _)| *counter == channel.counter)
                .map(|&(_, divisor)| divisor);
            for (interval, is_cut) in settings_of(channel, client) {
                let cuts = usize::from(is_cut);
                if cuts > self.cuts_left || set.is_some_and(|set| set != interval.tick) {
                    continue;
                }
                self.attempts += 1;
                if self.attempts > MOST_ATTEMPTS {
                    return false;
                }
                self.cuts_left -= cuts;
                self.taken.channels.push(index);
                self.taken
                    .groups
                    .extend(client.group.map(|group| (index, group)));
                if set.is_none() {
                    self.taken.divisors.push((channel.counter, interval.tick));
                }
                self.settings.push(Setting {
                    channel: index,
                    interval,
                });
                if self.place() {
                    return true;
                }
                self.cuts_left += cuts;
                self.settings.pop();
                self.taken.channels.pop();
                if client.group.is_some() {
                    self.taken.groups.pop();
                }
                if set.is_none() {
                    self.taken.divisors.pop();
                }
            }
        }
        false
    }
}

/// Whether the counter is neither used nor reserved.
fn is_fresh(
    platform: &Platform,
    taken: &ChannelOccupancy,
    reserved: &[usize],
    counter: usize,
) -> bool {
    let is_of_counter = |index: &usize| {
        let channel = platform.channels.get(*index);
        channel.is_some_and(|channel| channel.counter == counter)
    };
    let all = [&taken.channels[..], &taken.only_shared, reserved];
    !all.into_iter().flatten().any(is_of_counter)
        && !taken.divisors.iter().any(|(of, _)| *of == counter)
}

/// The intervals with which a channel can serve the client; the flag is true if the counter cuts
/// the interval short. Intervals that reach the client's longest come first, from the finest
/// divisor on. Then come the shortened intervals, the longest first.
fn settings_of(channel: &TimerChannel, client: &Client) -> Vec<(Interval, bool)> {
    let ranges = match client.wanted {
        ChannelUse::Shared => channel.shared.as_ref().map(|offer| &offer.ranges),
        ChannelUse::Own(policy, timing) => channel.offer(policy, timing).map(|offer| &offer.ranges),
    };
    let (mut whole, mut cut) = (Vec::new(), Vec::new());
    for range in ranges.into_iter().flatten() {
        let tick = range.divisor.max(1);
        let wanted = if client.up {
            client.shortest.div_ceil(tick)
        } else {
            client.longest / tick
        };
        let ticks = wanted.min(range.most);
        let interval = Interval { ticks, tick };
        let fits = ticks > 0 && ticks >= range.least && interval.cycles() >= client.shortest;
        match (fits, ticks == wanted) {
            (true, true) => whole.push((interval, false)),
            (true, false) => cut.push((interval, true)),
            (false, _) => {}
        }
    }
    whole.extend(cut.into_iter().rev());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fixture;

    fn strict(shortest: u64, longest: u64) -> Client {
        Client {
            wanted: ChannelUse::Own(Policy::Strict, Timing::Lazy),
            channel: None,
            shortest,
            longest,
            group: None,
            up: false,
        }
    }

    #[test]
    fn channels_of_one_counter_have_one_divisor() {
        let platform = fixture::atmega128();
        let clients = [
            strict(3_000, 3_100),
            strict(400_000, 401_000),
            strict(9_000, 9_100),
        ];
        let settings = assign(&platform, &ChannelOccupancy::default(), &clients).unwrap();
        for (setting, client) in settings.iter().zip(&clients) {
            assert!((client.shortest..=client.longest).contains(&setting.interval.cycles()));
            for other in &settings {
                let counter = |of: &Setting| platform.channels[of.channel].counter;
                assert!(
                    counter(setting) != counter(other)
                        || setting.interval.tick == other.interval.tick
                );
                assert!(setting == other || setting.channel != other.channel);
            }
        }
        assert_eq!(settings[0].interval.tick, 1);
        assert_eq!(settings[1].interval.tick, 64);
    }

    #[test]
    fn no_interval_is_cut_short_that_need_not_be() {
        let mut platform = fixture::atmega128();
        platform.channels.truncate(2);
        assert_eq!(platform.channels[0].counter, platform.channels[1].counter);
        // The finest divisor would suit the first client, but would cut the interval of the second
        // to a tenth.
        let clients = [strict(3_000, 64_000), strict(10_000, 640_000)];
        let settings = assign(&platform, &ChannelOccupancy::default(), &clients).unwrap();
        let cycles = settings.iter().map(|of| of.interval.cycles());
        assert_eq!(cycles.collect::<Vec<_>>(), [64_000, 640_000]);
        // A client that needs the finest divisor gets the other counter.
        let clients = [clients[0], strict(3_001, 3_001), clients[1]];
        platform.channels = fixture::atmega128().channels;
        let settings = assign(&platform, &ChannelOccupancy::default(), &clients).unwrap();
        let cycles = settings.iter().map(|of| of.interval.cycles());
        assert_eq!(cycles.collect::<Vec<_>>(), [64_000, 3_001, 640_000]);
    }

    #[test]
    fn there_are_only_so_many_channels_and_divisors() {
        let platform = fixture::atmega128();
        let some = |number| vec![strict(3_000, 3_100); number];
        assert!(assign(&platform, &ChannelOccupancy::default(), &some(6)).is_some());
        assert!(assign(&platform, &ChannelOccupancy::default(), &some(7)).is_none());
        // Each of the three clients needs its own divisor, but there are only two counters.
        let apart = [
            strict(3_001, 3_001),
            strict(16_000 * 8 + 8, 16_000 * 8 + 8),
            strict(15_001 * 64, 15_001 * 64),
        ];
        assert!(assign(&platform, &ChannelOccupancy::default(), &apart[..2]).is_some());
        assert!(assign(&platform, &ChannelOccupancy::default(), &apart).is_none());
    }

    #[test]
    fn sources_of_different_groups_do_not_share_a_channel() {
        let mut platform = fixture::atmega128();
        platform.channels.truncate(1);
        platform.channels[0].limits = 4;
        let of = |group| Client {
            group: Some(group),
            ..strict(3_000, 3_100)
        };
        let none = ChannelOccupancy::default();
        assert!(assign(&platform, &none, &[of(1), of(1)]).is_some());
        assert!(assign(&platform, &none, &[of(1), of(2)]).is_none());
        let taken = ChannelOccupancy {
            channels: vec![0],
            groups: vec![(0, 1)],
            ..none
        };
        assert!(assign(&platform, &taken, &[of(1)]).is_some());
        assert!(assign(&platform, &taken, &[of(2)]).is_none());
    }

    #[test]
    fn what_is_taken_stays() {
        let platform = fixture::atmega128();
        let taken = ChannelOccupancy {
            channels: vec![0, 1, 2],
            groups: Vec::new(),
            divisors: vec![(0, 64), (1, 8)],
            only_shared: Vec::new(),
        };
        let settings = assign(&platform, &taken, &[strict(3_000, 3_100)]).unwrap();
        assert_eq!((settings[0].channel, settings[0].interval.tick), (3, 8));
    }

    #[test]
    fn a_pinned_period_is_rounded_up() {
        let platform = fixture::atmega128();
        let client = Client {
            wanted: ChannelUse::Shared,
            channel: None,
            shortest: 100_001,
            longest: 100_001,
            group: None,
            up: true,
        };
        let settings = assign(&platform, &ChannelOccupancy::default(), &[client]).unwrap();
        assert_eq!(
            (settings[0].interval.tick, settings[0].interval.ticks),
            (8, 12_501)
        );
    }
}
