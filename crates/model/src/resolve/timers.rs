// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timers that limits can use: a board's compare channels, and each `[[timer]]` of the file.
use miette::SourceSpan;
use weir_boards::{Board, Range};

use super::cpu::stated;
use super::levels;
use super::processor::Processor;
use super::wish::IntervalWish;
use crate::Level;
use crate::diagnostics::{Problem, Problems, did_you_mean};
use crate::exact::Round;
use crate::file::leaf::Name;
use crate::file::sections::{Root, Source, Timer};

/// A counter with its prescalers.
#[derive(Debug)]
pub(crate) struct BankCounter {
    pub name: String,
    pub bits: u32,
    /// The prescalers, in ascending order.
    pub divisors: Vec<u64>,
    /// Processor cycles of one cycle of the counter's clock, which the prescaler divides.
    pub clock_cycles: u64,
}

/// A compare channel of a counter.
#[derive(Debug)]
pub(crate) struct BankChannel {
    pub name: String,
    pub counter: usize,
    pub level: Level,
}

/// A timer that limits share, before its prescaler is known.
#[derive(Debug)]
pub(crate) struct SharedChannel {
    pub name: String,
    pub at: SourceSpan,
    pub channel: usize,
    /// The least number of cycles of the period.
    pub cycles: u64,
    pub prescaler: Option<(u64, SourceSpan)>,
    pub wish: SourceSpan,
}

/// The preemption group of a channel's interrupt. It is the group of the sources whose limits name
/// the channel, which must be the same for all of them.
fn group_of_users(root: &Root, channel: &str, board: &Board) -> u32 {
    let names_it = |source: &&Source| {
        let timer = source.limit.get().and_then(|limit| limit.timer.get());
        timer.is_some_and(|Name(name)| name == channel)
    };
    let first = root.source.elements().iter().find(names_it);
    first
        .and_then(|source| board.priorities?.group(source.priority.get()?.0))
        .unwrap_or(0)
}

/// The timers of a system.
#[derive(Debug, Default)]
pub(crate) struct Bank {
    pub counters: Vec<BankCounter>,
    pub channels: Vec<BankChannel>,
    pub shared: Vec<SharedChannel>,
    /// The names of timers for which an error was reported. A limit that uses one needs no further
    /// error.
    bad: Vec<String>,
}

/// What the key `timer` of a limit refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// The limit has a channel of its own, with this index.
    Channel(usize),
    /// The limit uses the shared timer with this index.
    Shared(usize),
}

impl Bank {
    /// Collects the timers of the board and of the file.
    pub fn new(root: &Root, processor: &Processor<'_>, problems: &mut Problems<'_>) -> Self {
        let mut bank = Self::default();
        if let Some((board, _)) = processor.board() {
            bank.counters = board
                .timers
                .iter()
                .map(|timer| BankCounter {
                    name: timer.name.clone(),
                    bits: timer.bits,
                    divisors: timer.divisors.clone(),
                    clock_cycles: timer.clock_cycles,
                })
                .collect();
            bank.channels = board
                .channels()
                .filter_map(|channel| {
                    let name = channel.name();
                    let group = group_of_users(root, &name, board);
                    Some(BankChannel {
                        level: levels::of_vector(board, channel.vector, group)?,
                        name,
                        counter: channel.index,
                    })
                })
                .collect();
        }
        for timer in root.timer.elements() {
            let added = match processor.board() {
                Some((board, _)) => bank.add_of_board(timer, board, processor, problems),
                None => bank.add_own(timer, processor, problems),
            };
            if let (None, Some(Name(name))) = (added, timer.name.get()) {
                bank.bad.push(name.clone());
            }
        }
        bank
    }

    fn add_of_board(
        &mut self,
        timer: &Timer,
        board: &Board,
        processor: &Processor<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<()> {
        levels::refuse_own(&timer.group, board, problems);
        levels::refuse_own(&timer.order, board, problems);
        let of_board = [
            (timer.width.is_stated(), timer.width.at, "width"),
            (timer.divisors.is_stated(), timer.divisors.at, "divisors"),
        ];
        for (_, at, key) in of_board.into_iter().filter(|key| key.0) {
            problems.report(
                format!("the timers of {} are fixed", board.name),
                at,
                format!("`{key}` is for systems without a board"),
                "leave it out: the board says it",
            );
        }
        let Name(name) = timer.name.get()?;
        let rules = processor.rules();
        if rules.is_some_and(|rules| rules.shared_lines == Some(0)) {
            return problems.refuse(
                format!(
                    "no timer of {} clears the counts of several sources",
                    board.name
                ),
                timer.at,
                "this section",
                format!(
                    "leave it out: limits that write timer = \"{}\" share its alarm",
                    self.names(|_| true).join("\" or \"")
                ),
            );
        }
        let is_wide = |bits| rules.is_none_or(|rules| rules.shared_bits == bits);
        if self.channels.iter().any(|channel| channel.name == *name) {
            return problems.refuse(format!("a timer may not be called `{name}`, like a channel of the board"), timer.name.at, "is a channel", "limits refer to both by name: give the timer another, and write channel = \"…\" to say where it runs");
        }
        if timer.channel.is_absent() {
            return problems.refuse(
                format!("the timer `{name}` does not say on which channel it runs"),
                timer.at,
                "in this section",
                format!(
                    "add channel = \"…\"; the channels are {}",
                    self.names(is_wide).join(", ")
                ),
            );
        }
        let Name(wanted) = timer.channel.get()?;
        let channel = self.channel(wanted, timer.channel.at, board, problems)?;
        let counter = self.counter_of(channel)?;
        let unfit = if !is_wide(counter.bits) {
            Some(format!("{} has {} bits", counter.name, counter.bits))
        } else if rules.is_none_or(|rules| rules.shares(wanted, counter.bits)) {
            None
        } else {
            let flavour = processor.board().map_or("", |(_, flavour)| flavour.name());
            Some(format!("in the flavour `{flavour}` it is not channel A"))
        };
        if let Some(why) = unfit {
            return problems.refuse(
                format!("{wanted} cannot be a shared timer: {why}"),
                timer.channel.at,
                "not this channel",
                "take channel A of a 16-bit timer, for example \"TIMER1A\"",
            );
        }
        if timer.rate.is_absent() && timer.period.is_absent() {
            return problems.refuse(format!("the timer `{name}` does not say how often it comes"), timer.at, "in this section", "add rate = \"110Hz\" or period = \"9ms\"; a limit that has a channel for itself names it without a [[timer]]");
        }
        self.add_shared(timer, channel, processor, problems)
    }

    fn add_own(
        &mut self,
        timer: &Timer,
        processor: &Processor<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<()> {
        let Name(name) = timer.name.get()?;
        let vector = timer.channel.or(Name(name.clone()));
        let bits = stated(&timer.width, "width", "16", timer.at, problems);
        let level = levels::own(
            &vector?.0,
            &timer.group,
            &timer.order,
            timer.at,
            processor,
            problems,
        );
        let mut divisors: Vec<u64> = timer
            .divisors
            .elements()
            .iter()
            .map(|divisor| divisor.0)
            .collect();
        if timer.divisors.is_absent() {
            divisors.push(1);
        } else if divisors.is_empty() {
            return problems.refuse("a timer without a divisor cannot run", timer.divisors.at, "empty", "write the prescalers that it has, for example [1, 8, 64], or leave the key out for [1]");
        }
        divisors.sort_unstable();
        self.counters.push(BankCounter {
            name: name.clone(),
            bits: u32::try_from(bits?.0).ok()?,
            divisors,
            clock_cycles: 1,
        });
        self.channels.push(BankChannel {
            name: name.clone(),
            counter: self.counters.len() - 1,
            level: level?,
        });
        let channel = self.channels.len() - 1;
        if timer.rate.is_absent() && timer.period.is_absent() {
            if timer.prescaler.is_stated() {
                problems.report("the prescaler of a timer that one limit uses is the limit's", timer.prescaler.at, "not here", "write it in the limit, or add `rate` or `period` for a timer that limits share");
            }
            return Some(());
        }
        self.add_shared(timer, channel, processor, problems)
    }

    fn add_shared(
        &mut self,
        timer: &Timer,
        channel: usize,
        processor: &Processor<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<()> {
        let clock = processor.clock;
        let (cycles, wish) = match (timer.rate.get(), timer.period.get()) {
            (Some(_), Some(_)) => {
                return problems.refuse_with(
                    Problem::new(
                        "a timer has a rate or a period, not both",
                        timer.period.at,
                        "the period",
                    )
                    .and_at(timer.rate.at, "the rate")
                    .help("leave one of them out"),
                );
            }
            (Some(rate), None) => {
                let at = timer.rate.at;
                let cycles = rate.interval(1, clock.hz, Round::Up);
                (cycles.or_else(|| clock.too_long(at, problems))?, at)
            }
            (None, Some(&period)) => {
                let at = timer.period.at;
                (clock.at_least(period, at, problems)?, at)
            }
            (None, None) => return None,
        };
        let prescaler = timer.prescaler.optional()?;
        self.shared.push(SharedChannel {
            name: timer.name.get()?.0.clone(),
            at: timer.at,
            channel,
            cycles,
            prescaler: prescaler.map(|prescaler| (prescaler.0, timer.prescaler.at)),
            wish,
        });
        Some(())
    }

    fn channel(
        &self,
        name: &str,
        at: SourceSpan,
        board: &Board,
        problems: &mut Problems<'_>,
    ) -> Option<usize> {
        let found = self
            .channels
            .iter()
            .position(|channel| channel.name == name);
        if found.is_none() {
            problems.report(
                format!("{} has no compare channel `{name}`", board.name),
                at,
                "unknown channel",
                did_you_mean(name, "channels", &self.names(|_| true)),
            );
        }
        found
    }

    /// Finds what the `timer` of a limit refers to. `None` if the name does not exist, which is
    /// reported, or if an error of this timer was reported before.
    pub fn find(
        &self,
        name: &str,
        at: SourceSpan,
        problems: &mut Problems<'_>,
    ) -> Option<TimerKind> {
        if let Some(shared) = self.shared.iter().position(|timer| timer.name == name) {
            return Some(TimerKind::Shared(shared));
        }
        if let Some(channel) = self
            .channels
            .iter()
            .position(|channel| channel.name == name)
        {
            return Some(TimerKind::Channel(channel));
        }
        if self.bad.iter().any(|bad| bad == name) {
            return None;
        }
        let mut known: Vec<&str> = self
            .shared
            .iter()
            .map(|timer| timer.name.as_str())
            .collect();
        known.extend(self.names(|_| true));
        known.dedup();
        problems.refuse(
            format!("there is no timer `{name}`"),
            at,
            "unknown timer",
            did_you_mean(name, "timers", &known),
        )
    }

    /// The names of the channels whose counters have a suitable width in bits.
    pub fn names(&self, right: impl Fn(u32) -> bool) -> Vec<&str> {
        self.channels
            .iter()
            .filter(|channel| {
                self.counters
                    .get(channel.counter)
                    .is_some_and(|counter| right(counter.bits))
            })
            .map(|channel| channel.name.as_str())
            .collect()
    }

    /// The counter of the channel with this index.
    pub fn counter_of(&self, channel: usize) -> Option<&BankCounter> {
        self.counters.get(self.channels.get(channel)?.counter)
    }

    /// The periods that shared timers need from their counters.
    pub fn uses(&self) -> Vec<IntervalWish> {
        self.shared
            .iter()
            .filter_map(|timer| {
                Some(IntervalWish {
                    who: format!("the timer `{}`", timer.name),
                    at: timer.wish,
                    channel: timer.channel,
                    channel_at: timer.at,
                    cycles: timer.cycles,
                    events: 1,
                    range: Range::of_period(self.counter_of(timer.channel)?.bits),
                    prescaler: timer.prescaler,
                    in_group: false,
                })
            })
            .collect()
    }
}
