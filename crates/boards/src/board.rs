// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards with their interrupts and timers, as boards/*/board.toml states them.
use std::sync::LazyLock;

use serde::Deserialize;

use crate::costs::{Costs, ExceptionCosts, GROUP};
use crate::refused::{self, BoardError};
use crate::{Events, Flavour, Port, PortRules, TimerDriver};

/// A board, with the costs that were measured on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The board's name, which is the name of its folder.
    pub name: String,
    chip: Option<String>,
    /// The port whose rules its limits follow.
    pub port: Port,
    /// The board's usual clock in Hz.
    pub clock_hz: u64,
    /// The names of the vectors in their order of priority. The first has the number 1 and is
    /// served first.
    pub vectors: Vec<String>,
    /// The cost of taking an interrupt.
    pub interrupt: InterruptFacts,
    /// The board's timers; empty if Weir analyses no limits on this board.
    #[serde(default, rename = "timer")]
    pub timers: Vec<TimerFacts>,
    /// The board's external interrupts, which its port can limit.
    #[serde(default, rename = "line")]
    pub lines: Vec<LineFacts>,
    /// Bytes of RAM at address 0, if the processor starts there; 0 if it starts elsewhere.
    #[serde(default)]
    pub ram_bytes: u32,
    /// The facts that only AVR microcontrollers have.
    pub avr: Option<Avr>,
    /// The priorities that programs can choose for interrupts; `None` if the order of the vectors
    /// decides.
    pub priorities: Option<Priorities>,
    #[serde(skip)]
    costs: Costs,
}

/// The cost of taking an interrupt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptFacts {
    /// The cycles of the longest instruction. An interrupt waits for the end of an instruction.
    pub longest_instruction_cycles: u64,
}

/// A hardware timer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerFacts {
    /// The prefix of the names of the timer's channels and vectors, for example `TIMER1`.
    pub name: String,
    /// The timer's width in bits.
    pub bits: u32,
    /// The register bit that resets the timer's prescaler. Timers with the same bit share a
    /// prescaler. Empty if the prescaler always runs.
    #[serde(default)]
    pub prescaler: String,
    /// The prescalers, in ascending order. On AVR the clock select bits number them from 1.
    pub divisors: Vec<u64>,
    /// Processor cycles of one cycle of the timer's input clock, which the prescaler divides.
    #[serde(default = "one")]
    pub clock_cycles: u64,
    /// The timer's only interrupt. `None` if each compare channel has one, for example
    /// `TIMER1_COMPA`.
    pub vector: Option<String>,
    /// The code that runs the timer, if the port has code for several kinds of timers.
    pub driver: Option<TimerDriver>,
    /// The address of the timer's registers, if the firmware has to know it.
    pub registers: Option<u32>,
}

const fn one() -> u64 {
    1
}

/// The priorities that a program can give to interrupts (NVIC). A smaller number preempts a larger
/// one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priorities {
    /// The largest number, which is the least urgent priority.
    pub most: u32,
    /// The step between priorities: every priority is a multiple of it. Two priorities that differ
    /// by less do not preempt each other.
    pub step: u32,
}

impl Priorities {
    /// The preemption group of a priority; a higher group is more urgent. `None` if there is no
    /// such priority.
    #[must_use]
    pub fn group(&self, priority: u64) -> Option<u32> {
        let priority = u32::try_from(priority).ok()?;
        let exists = priority % self.step.max(1) == 0;
        self.most.checked_sub(priority).filter(|_| exists)
    }

    /// The priority of a preemption group; `None` if there is no such group.
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
    /// The name of the interrupt, for example `INT0`.
    pub name: String,
    /// The pin of the interrupt, for example `PD0`; `None` if it is an internal wire.
    pub pin: Option<String>,
    /// Whether the clock samples the line's edges. Such lines have the mode "any change".
    #[serde(default)]
    pub sampled: bool,
}

/// The facts that the emulator of an AVR microcontroller needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Avr {
    /// The family of instruction sets, as avr-gcc numbers it.
    pub elf_arch: u32,
    /// The flash in bytes.
    pub flash_bytes: u32,
    /// The first address of the internal RAM in data space.
    pub ram_start: u16,
    /// The last address of the internal RAM.
    pub ram_end: u16,
    /// Cycles from the end of the interrupted instruction to the first instruction in the vector.
    pub response_cycles: u64,
    /// Further cycles of the response if the processor slept.
    pub wakeup_cycles: u64,
    /// The distance between two vectors in bytes.
    pub vector_bytes: u32,
}

/// A compare channel of a board's timer.
#[derive(Debug, Clone, Copy)]
pub struct Channel<'a> {
    /// The timer that has the channel.
    pub timer: &'a TimerFacts,
    /// The timer's index in [`Board::timers`].
    pub index: usize,
    /// The channel's interrupt, for example `TIMER1_COMPA`.
    pub vector: &'a str,
    /// The channel's letter, for example `A`; empty if the timer has only one channel.
    pub letter: &'a str,
}

impl Channel<'_> {
    /// The channel's name as the port calls it, for example `TIMER1A` or `TIMER0`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", self.timer.name, self.letter)
    }

    /// The prescaler with which a tick takes `tick` processor cycles.
    #[must_use]
    pub fn prescaler(&self, tick: u64) -> u64 {
        tick / self.timer.clock_cycles.max(1)
    }
}

impl Board {
    /// Reads the board from the texts of board.toml and costs.toml.
    ///
    /// # Errors
    /// Fails if one of the texts is not TOML of this form, or if the port has no code for what it
    /// states.
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

    /// The folders of boards/ whose files cannot be used, each by its name and with the reason.
    #[must_use]
    pub fn refused() -> &'static [(&'static str, BoardError)] {
        &BOARDS.1
    }

    /// The board of this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|board| board.name == name)
    }

    /// The name of the chip, as `weir generate --chip` and a compiler take it. It is the board's
    /// name if the file states no chip.
    #[must_use]
    pub fn chip(&self) -> &str {
        self.chip.as_deref().unwrap_or(&self.name)
    }

    /// The compare channel of this name; `None` if there is none.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<Channel<'_>> {
        self.channels().find(|channel| channel.name() == name)
    }

    /// The number of a vector, counted from 1 in the order of priority; `None` if there is no such
    /// vector.
    #[must_use]
    pub fn vector(&self, name: &str) -> Option<u32> {
        let index = self.vectors.iter().position(|known| known == name)?;
        u32::try_from(index).ok()?.checked_add(1)
    }

    /// The vector that follows this one in the vector table; `None` if there is none.
    #[must_use]
    pub fn vector_behind(&self, name: &str) -> Option<&str> {
        let index = self.vectors.iter().position(|known| known == name)?;
        self.vectors.get(index + 1).map(String::as_str)
    }

    /// Whether this is the name of one of the board's external interrupts.
    #[must_use]
    pub fn is_line(&self, name: &str) -> bool {
        self.lines.iter().any(|line| line.name == name)
    }

    /// The names of the board's external interrupts.
    #[must_use]
    pub fn line_names(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.name.as_str()).collect()
    }

    /// The compare channels in the order of the timers. The vector `TIMER1_COMPA` is that of the
    /// channel `TIMER1A`. A timer with one interrupt has one channel.
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

    /// The flavours of the board's port whose costs were measured.
    #[must_use]
    pub fn flavours(&self) -> Vec<&'static str> {
        let measured = |flavour: &Flavour| self.costs.policies(flavour.name()).is_some();
        Flavour::ALL
            .into_iter()
            .filter(measured)
            .map(Flavour::name)
            .collect()
    }

    /// The rules of a flavour of the board's port. `None` if Weir analyses no limits in software
    /// with it.
    #[must_use]
    pub fn rules(&self, flavour: Flavour) -> Option<&'static PortRules> {
        self.port.rules(flavour)
    }

    /// The costs of a flavour's events on `channel` if these were measured, otherwise the worst of
    /// all channels. `path` is the policy and, if the policy has several, the timing. `None` if the
    /// flavour does not have this policy and timing.
    #[must_use]
    pub fn events(&self, flavour: Flavour, path: &[&str], channel: Option<&str>) -> Option<Events> {
        self.costs.events(flavour.name(), path, channel)
    }

    /// Two costs of a group's alarm in cycles (LIMIT-SHARED-1). The first is that of an interrupt
    /// in which nothing is due, with one source in the group. The second is what each further
    /// source adds to any interrupt of the alarm.
    #[must_use]
    pub fn group_costs(&self, flavour: Flavour) -> (u64, u64) {
        let events = self.events(flavour, &[GROUP], None).unwrap_or_default();
        (
            events.expiry_base.unwrap_or(0),
            events.clear_empty.unwrap_or(0),
        )
    }

    /// The costs of exceptions that the board's emulator does not count; `None` if it counts all
    /// costs.
    #[must_use]
    pub fn exception_costs(&self) -> Option<ExceptionCosts> {
        self.costs.exception
    }

    /// The limits that a flavour has, as texts such as `bucket (eager, lazy)` or `off`.
    #[must_use]
    pub fn abilities(&self, flavour: Flavour) -> Vec<String> {
        self.costs.abilities(flavour.name())
    }

    /// The compilers with which the board's costs were measured, for example `avr-gcc 14.2.0`.
    #[must_use]
    pub fn compilers(&self) -> &[String] {
        &self.costs.compilers
    }

    /// The text that says where the board's costs come from.
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

/// The boards, and the folders whose files describe no valid board.
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

    /// A new board needs only these two texts.
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
            // A board for which Weir analyses limits in software needs both channels and lines.
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

    /// The rules and the measured costs must agree on what a flavour can do.
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
