// SPDX-License-Identifier: MIT OR Apache-2.0
//! boards/*/board.toml: the boards, their interrupts and timers.
use std::sync::LazyLock;

use serde::Deserialize;

use crate::costs::{Costs, ExceptionCosts, GROUP};
use crate::refused::{self, BoardError};
use crate::{Events, Flavour, Port, PortRules, TimerDriver};

/// A board, with what was measured on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its name: the folder's.
    pub name: String,
    chip: Option<String>,
    /// The port whose rules its limits follow.
    pub port: Port,
    /// Its usual clock in Hz.
    pub clock_hz: u64,
    /// The names of its vectors, the first served first; the first has the number 1.
    pub vectors: Vec<String>,
    /// What taking an interrupt costs.
    pub interrupt: InterruptFacts,
    /// Its timers; none: Weir analyses no limits on this board.
    #[serde(default, rename = "timer")]
    pub timers: Vec<TimerFacts>,
    /// Its external interrupts, which its port limits.
    #[serde(default, rename = "line")]
    pub lines: Vec<LineFacts>,
    /// Bytes of RAM at address 0, where the processor starts; 0: it starts elsewhere.
    #[serde(default)]
    pub ram_bytes: u32,
    /// What only AVR microcontrollers have.
    pub avr: Option<Avr>,
    /// The priorities of its interrupts, where programs choose them; none: the vectors' order.
    pub priorities: Option<Priorities>,
    #[serde(skip)]
    costs: Costs,
}

/// What taking an interrupt costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptFacts {
    /// The longest instruction, in cycles: an interrupt waits for its end.
    pub longest_instruction_cycles: u64,
}

/// A timer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerFacts {
    /// The beginning of its channels' and vectors' names: `TIMER1`.
    pub name: String,
    /// Its width.
    pub bits: u32,
    /// The register bit that resets its prescaler; timers with the same one share it. Empty: it
    /// runs by itself.
    #[serde(default)]
    pub prescaler: String,
    /// The prescalers, in ascending order; on AVR the clock select bits number them from 1.
    pub divisors: Vec<u64>,
    /// Cycles of the processor for one of the timer's clock, which the prescaler divides.
    #[serde(default = "one")]
    pub clock_cycles: u64,
    /// Its one interrupt; none: those of its compare channels, `TIMER1_COMPA`.
    pub vector: Option<String>,
    /// By which code it runs, where its port has several.
    pub driver: Option<TimerDriver>,
    /// The address of its registers, where that is for the firmware to say.
    pub registers: Option<u32>,
}

const fn one() -> u64 {
    1
}

/// The priorities that a program may give to interrupts (NVIC): a smaller number preempts a larger
/// one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priorities {
    /// The largest number, of the least urgent.
    pub most: u32,
    /// Two that differ by less do not preempt each other; all are multiples of it.
    pub step: u32,
}

impl Priorities {
    /// The preemption group of a priority, the higher the more urgent; none: there is no such
    /// priority.
    #[must_use]
    pub fn group(&self, priority: u64) -> Option<u32> {
        let priority = u32::try_from(priority).ok()?;
        let exists = priority % self.step.max(1) == 0;
        self.most.checked_sub(priority).filter(|_| exists)
    }

    /// The priority of a preemption group; none: there is no such group.
    #[must_use]
    pub fn of_group(&self, group: u32) -> Option<u32> {
        let priority = self.most.checked_sub(group)?;
        self.group(u64::from(priority)).map(|_| priority)
    }
}

/// An external interrupt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineFacts {
    /// Its name: `INT0`.
    pub name: String,
    /// Its pin: `PD0`; none: a wire of its own.
    pub pin: Option<String>,
    /// Does the clock sample its edges? Such lines have the mode "any change".
    #[serde(default)]
    pub sampled: bool,
}

/// What the emulator of an AVR microcontroller has to know.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Avr {
    /// avr-gcc's family of instruction sets.
    pub elf_arch: u32,
    /// The flash in bytes.
    pub flash_bytes: u32,
    /// The first address of the internal RAM in data space.
    pub ram_start: u16,
    /// The last address of the internal RAM.
    pub ram_end: u16,
    /// Cycles from the end of the interrupted instruction to the first one in the vector.
    pub response_cycles: u64,
    /// Further cycles if the processor slept.
    pub wakeup_cycles: u64,
    /// Bytes between two vectors.
    pub vector_bytes: u32,
}

/// A compare channel of a board's timer.
#[derive(Debug, Clone, Copy)]
pub struct Channel<'a> {
    /// The timer it belongs to.
    pub timer: &'a TimerFacts,
    /// Its index in [`Board::timers`].
    pub index: usize,
    /// Its interrupt: `TIMER1_COMPA`.
    pub vector: &'a str,
    /// `A`; empty where the timer has but one.
    pub letter: &'a str,
}

impl Channel<'_> {
    /// As the port calls it: `TIMER1A`, `TIMER0`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", self.timer.name, self.letter)
    }

    /// The prescaler with which a tick has so many cycles of the processor.
    #[must_use]
    pub fn prescaler(&self, tick: u64) -> u64 {
        tick / self.timer.clock_cycles.max(1)
    }
}

impl Board {
    /// Reads the board from the texts of board.toml and costs.toml.
    ///
    /// # Errors
    /// One of the texts is not TOML of this form, or the port has no code for what it says.
    pub fn parse(facts: &str, costs: &str) -> Result<Self, BoardError> {
        let mut board: Self = toml::from_str(facts)
            .map_err(|error| BoardError::of_form("board.toml", facts, &error))?;
        board.costs = toml::from_str(costs)
            .map_err(|error| BoardError::of_form("costs.toml", costs, &error))?;
        refused::check(&board, facts)?;
        Ok(board)
    }

    /// All boards, by name.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &BOARDS.0
    }

    /// The folders of boards/ whose files cannot be used, by name, each with the reason.
    #[must_use]
    pub fn refused() -> &'static [(&'static str, BoardError)] {
        &BOARDS.1
    }

    /// The board of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|board| board.name == name)
    }

    /// The chip's name, as `weir generate --chip` and a compiler take it: the board's, where it has
    /// none of its own.
    #[must_use]
    pub fn chip(&self) -> &str {
        self.chip.as_deref().unwrap_or(&self.name)
    }

    /// The compare channel of this name.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<Channel<'_>> {
        self.channels().find(|channel| channel.name() == name)
    }

    /// The number of a vector, its place in the order of priority, from 1 on.
    #[must_use]
    pub fn vector(&self, name: &str) -> Option<u32> {
        let index = self.vectors.iter().position(|known| known == name)?;
        u32::try_from(index).ok()?.checked_add(1)
    }

    /// The vector that stands behind another one.
    #[must_use]
    pub fn vector_behind(&self, name: &str) -> Option<&str> {
        let index = self.vectors.iter().position(|known| known == name)?;
        self.vectors.get(index + 1).map(String::as_str)
    }

    /// Is this one of its external interrupts?
    #[must_use]
    pub fn is_line(&self, name: &str) -> bool {
        self.lines.iter().any(|line| line.name == name)
    }

    /// The names of its external interrupts.
    #[must_use]
    pub fn line_names(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.name.as_str()).collect()
    }

    /// The compare channels in the order of the timers: a vector `TIMER1_COMPA` is the channel
    /// `TIMER1A`. A timer with one interrupt is one channel.
    pub fn channels(&self) -> impl Iterator<Item = Channel<'_>> {
        self.timers.iter().enumerate().flat_map(|(index, timer)| {
            self.vectors.iter().filter_map(move |vector| {
                let letter = match &timer.vector {
                    Some(only) => (only == vector).then_some("")?,
                    None => vector
                        .strip_prefix(timer.name.as_str())?
                        .strip_prefix("_COMP")?,
                };
                Some(Channel {
                    timer,
                    index,
                    vector,
                    letter,
                })
            })
        })
    }

    /// The flavours of its port whose costs were measured.
    #[must_use]
    pub fn flavours(&self) -> Vec<&'static str> {
        let measured = |flavour: &Flavour| self.costs.policies(flavour.name()).is_some();
        Flavour::ALL
            .into_iter()
            .filter(measured)
            .map(Flavour::name)
            .collect()
    }

    /// What a flavour of its port can do. None: Weir analyses no limit in software of it.
    #[must_use]
    pub fn rules(&self, flavour: Flavour) -> Option<&'static PortRules> {
        self.port.rules(flavour)
    }

    /// The costs of a flavour's events on `channel` if that was measured, else the worst of all
    /// channels. `path` is the policy and, where there is one, the timing. None: the flavour does
    /// not have this.
    #[must_use]
    pub fn events(&self, flavour: Flavour, path: &[&str], channel: Option<&str>) -> Option<Events> {
        self.costs.events(flavour.name(), path, channel)
    }

    /// The interrupt of a group's alarm in which nothing is due (LIMIT-SHARED-1), with one source
    /// in the group, and what each further source adds to any of the alarm's interrupts: in cycles.
    #[must_use]
    pub fn group_costs(&self, flavour: Flavour) -> (u64, u64) {
        let events = self.events(flavour, &[GROUP], None).unwrap_or_default();
        (
            events.expiry_base.unwrap_or(0),
            events.clear_empty.unwrap_or(0),
        )
    }

    /// What its exceptions cost beside what its emulator counts; none: it counts all.
    #[must_use]
    pub fn exception_costs(&self) -> Option<ExceptionCosts> {
        self.costs.exception
    }

    /// The limits that a flavour has: `bucket (eager, lazy)`, `off`, ….
    #[must_use]
    pub fn abilities(&self, flavour: Flavour) -> Vec<String> {
        self.costs.abilities(flavour.name())
    }

    /// The compilers with which its costs were measured: `avr-gcc 14.2.0`.
    #[must_use]
    pub fn compilers(&self) -> &[String] {
        &self.costs.compilers
    }

    /// The origin of its costs.
    #[must_use]
    pub fn costs_from(&self) -> String {
        format!(
            "boards/{}/costs.toml, {}",
            self.name,
            self.compilers().join(" and ")
        )
    }
}

/// The folders of boards/ with the texts of their board.toml and costs.toml, which build.rs
/// collects.
const TEXTS: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/boards.rs"));

/// The boards, and the folders that describe none.
type Read = (Vec<Board>, Vec<(&'static str, BoardError)>);

static BOARDS: LazyLock<Read> = LazyLock::new(|| {
    let (mut boards, mut refused) = Read::default();
    for (folder, facts, costs) in TEXTS {
        match Board::parse(facts, costs) {
            Ok(board) => boards.push(board),
            Err(error) => refused.push((*folder, error)),
        }
    }
    (boards, refused)
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, Timing};

    const FACTS: &str = r#"
        name = "test"
        chip = "atmega128"
        port = "avr"
        clock_hz = 1_000_000
        vectors = ["INT0", "TIMER3_COMPA", "TIMER3_OVF", "TIMER2_COMP"]
        interrupt = { longest_instruction_cycles = 3 }
        timer = [
            { name = "TIMER3", bits = 16, prescaler = "A", divisors = [1, 8] },
            { name = "TIMER2", bits = 8, prescaler = "A", divisors = [8] },
        ]
        line = [{ name = "INT0" }]
    "#;
    const COSTS: &str = r#"
        compilers = ["cc 1.0.0", "cc 2.0.0"]
        [limiter.c.off]
        request_served = { "1.0.0" = 20, "2.0.0" = 18 }
        [limiter.c.strict.lazy]
        request_served = { "1.0.0" = 58, "2.0.0" = 60 }
        request_refused = { "1.0.0" = 50, "2.0.0" = 44 }
        [channel.TIMER3A.c.strict.lazy]
        request_served = { "1.0.0" = 55, "2.0.0" = 55 }
    "#;

    /// Adding a board takes these two texts, and nothing else.
    #[test]
    fn a_board_follows_from_its_folder() {
        let board = Board::parse(FACTS, COSTS).unwrap();
        let channels: Vec<(String, usize, Option<u32>)> = board
            .channels()
            .map(|channel| (channel.name(), channel.index, board.vector(channel.vector)))
            .collect();
        assert_eq!(
            channels,
            [
                ("TIMER3A".to_owned(), 0, Some(2)),
                ("TIMER2".to_owned(), 1, Some(4))
            ]
        );
        assert_eq!(board.vector("INT0"), Some(1));
        assert_eq!(board.vector("TIMER7_COMPA"), None);
        assert_eq!(board.flavours(), ["c"]);
        let rules = board.rules(Flavour::C).unwrap();
        assert!(rules.shares("TIMER3A", 16));
        assert!((rules.offers)(Policy::Strict, Timing::Lazy, 1, 16).is_some());
    }

    #[test]
    fn the_costs_of_a_channel_precede_the_worst_of_all() {
        let board = Board::parse(FACTS, COSTS).unwrap();
        let events = |channel| {
            let path = ["strict", "lazy"];
            board.events(Flavour::C, &path, channel).unwrap()
        };
        assert_eq!(events(None).request_served, Some(60));
        assert_eq!(events(None).request_refused, Some(50));
        assert_eq!(events(None).expiry_empty, None);
        assert_eq!(events(Some("TIMER3A")).request_served, Some(55));
        assert_eq!(events(Some("TIMER2")).request_served, Some(60));
        let off = board.events(Flavour::C, &["off"], None).unwrap();
        assert_eq!(off.request_served, Some(20));
        assert_eq!(board.events(Flavour::C, &["strict", "eager"], None), None);
        assert_eq!(board.events(Flavour::Fast, &["off"], None), None);
        assert_eq!(board.abilities(Flavour::C), ["off", "strict (lazy)"]);
    }

    #[test]
    fn every_board_of_the_repository_is_whole() {
        assert_eq!(Board::refused(), []);
        assert!(Board::named("atmega128").is_some());
        for board in Board::all() {
            // A limit in software that Weir analyses needs channels and lines.
            assert!(board.channels().next().is_none() || !board.lines.is_empty());
            for line in &board.lines {
                assert!(board.vector(&line.name).is_some(), "{}", line.name);
            }
            for name in board.flavours() {
                let flavour = Flavour::named(name).unwrap();
                let off = board.events(flavour, &["off"], None).unwrap();
                assert!(off.request_served.unwrap() > 0, "{name}");
            }
        }
    }

    /// Rules and measured costs must agree on what a flavour can do.
    #[test]
    fn what_a_port_offers_was_measured_and_nothing_else() {
        for board in Board::all() {
            for flavour in Flavour::ALL {
                let Some(rules) = board.rules(flavour) else {
                    continue;
                };
                for policy in Policy::ALL {
                    for timing in Timing::ALL {
                        let burst = if policy.counts() { 2 } else { 1 };
                        let offer = (rules.offers)(policy, timing, burst, rules.own_bits);
                        let path = [policy.name(), timing.name()];
                        let is_measured = board.events(flavour, &path, None).is_some();
                        assert_eq!(offer.is_some(), is_measured, "{flavour:?} {path:?}");
                    }
                }
            }
        }
    }
}
