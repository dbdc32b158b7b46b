// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards that Weir knows: boards/*/board.toml and the costs measured on them, boards/*/costs.toml.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::{CompilerVersion, Level};

/// A board, with what analysis needs of it.
#[derive(Debug)]
pub(crate) struct Board {
    facts: Facts,
    costs: MeasuredCosts,
}

/// boards/NAME/board.toml; the keys that only emulation needs are left alone.
#[derive(Debug, Deserialize)]
struct Facts {
    name: String,
    clock_hz: u64,
    vectors: Vec<String>,
    interrupt: InterruptFacts,
    /// None: its port cannot limit anything that Weir analyses.
    #[serde(default, rename = "timer")]
    timers: Vec<TimerFacts>,
    #[serde(default, rename = "line")]
    lines: Vec<LineFacts>,
}

#[derive(Debug, Deserialize)]
struct InterruptFacts {
    longest_instruction_cycles: u64,
}

/// A timer of a board.
#[derive(Debug, Deserialize)]
pub(crate) struct TimerFacts {
    /// As its channels' names begin: `TIMER1`.
    pub name: String,
    /// Its width.
    pub bits: u32,
    /// What it can divide the clock by, in ascending order.
    pub divisors: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct LineFacts {
    name: String,
}

/// boards/NAME/costs.toml; the means of the paper's Table 2 are left alone. Each event has a table of its cycles by compiler.
#[derive(Debug, Deserialize)]
struct MeasuredCosts {
    /// For which it holds.
    compilers: Vec<String>,
    /// By flavour: a policy's table holds either events or a table of them per timing.
    limiter: BTreeMap<String, toml::Table>,
    /// The same where the channel is known.
    #[serde(default)]
    channel: BTreeMap<String, BTreeMap<String, toml::Table>>,
}

/// The worst of all compilers that a table of cycles by compiler names.
fn worst<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    Ok(BTreeMap::<String, u64>::deserialize(value)?
        .into_values()
        .max())
}

/// The events of a limiter that happen, with their cycles (boards/*/costs.toml says what each is).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Events {
    #[serde(deserialize_with = "worst")]
    pub request_served: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub request_refused: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub expiry_served: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub expiry_empty: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub expiry_base: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub clear_empty: Option<u64>,
    #[serde(deserialize_with = "worst")]
    pub clear_served: Option<u64>,
}

impl Events {
    /// These, and `other` where these say nothing.
    pub fn or(self, other: Self) -> Self {
        Self {
            request_served: self.request_served.or(other.request_served),
            request_refused: self.request_refused.or(other.request_refused),
            expiry_served: self.expiry_served.or(other.expiry_served),
            expiry_empty: self.expiry_empty.or(other.expiry_empty),
            expiry_base: self.expiry_base.or(other.expiry_base),
            clear_empty: self.clear_empty.or(other.clear_empty),
            clear_served: self.clear_served.or(other.clear_served),
        }
    }
}

/// A compare channel of a board's timer.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    /// As the port calls it: `TIMER1A`, `TIMER0`.
    pub name: String,
    /// The timer's index in [`Board::timers`].
    pub timer: usize,
    /// The vector of its compare interrupt.
    pub level: Level,
}

impl Board {
    fn new(facts: &str, costs: &str) -> Self {
        fn embedded<T: serde::de::DeserializeOwned>(text: &str) -> T {
            toml::from_str(text).unwrap_or_else(|error| {
                panic!("a file of boards/, which is part of this program: {error}")
            })
        }
        Self {
            facts: embedded(facts),
            costs: embedded(costs),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// Its usual clock.
    pub fn clock_hz(&self) -> u64 {
        self.facts.clock_hz
    }

    /// Its longest instruction in cycles.
    pub fn longest_instruction(&self) -> u64 {
        self.facts.interrupt.longest_instruction_cycles
    }

    /// Its timers.
    pub fn timers(&self) -> &[TimerFacts] {
        &self.facts.timers
    }

    /// Its external interrupts, which its port limits.
    pub fn lines(&self) -> Vec<&str> {
        self.facts
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect()
    }

    /// Its vectors, the first served first.
    pub fn vectors(&self) -> Vec<&str> {
        self.facts.vectors.iter().map(String::as_str).collect()
    }

    /// Where a vector stands. No interrupt of any board preempts another, so there is one group; the place among the vectors, counted from 1, is the order.
    pub fn level(&self, vector: &str) -> Option<Level> {
        let index = self.facts.vectors.iter().position(|name| name == vector)?;
        Some(Level {
            vector: vector.to_owned(),
            group: 0,
            order: u32::try_from(index).ok()?.checked_add(1)?,
        })
    }

    /// The compare channels in the order of the timers: a vector `TIMER1_COMPA` is the channel `TIMER1A`.
    pub fn channels(&self) -> Vec<Channel> {
        let mut channels = Vec::new();
        for (timer, facts) in self.facts.timers.iter().enumerate() {
            for vector in &self.facts.vectors {
                let letter = vector
                    .strip_prefix(facts.name.as_str())
                    .and_then(|rest| rest.strip_prefix("_COMP"));
                if let Some((letter, level)) = letter.zip(self.level(vector)) {
                    channels.push(Channel {
                        name: format!("{}{letter}", facts.name),
                        timer,
                        level,
                    });
                }
            }
        }
        channels
    }

    /// The flavours of its port.
    pub fn flavours(&self) -> Vec<&str> {
        self.costs.limiter.keys().map(String::as_str).collect()
    }

    /// What a flavour's events cost: `path` is the policy and, where it has one, the timing. Of the `channel` if that was measured, else the worst of all. None: the
    /// flavour does not have this.
    pub fn events(&self, flavour: &str, path: &[&str], channel: Option<&str>) -> Option<Events> {
        let at = |table: &toml::Table| -> Option<Events> {
            let (last, tables) = path.split_last()?;
            let mut table = table;
            for name in tables {
                table = table.get(*name)?.as_table()?;
            }
            table.get(*last)?.clone().try_into().ok()
        };
        let of_channel = channel
            .and_then(|channel| self.costs.channel.get(channel)?.get(flavour))
            .and_then(at);
        of_channel.or_else(|| at(self.costs.limiter.get(flavour)?))
    }

    /// What a flavour can do: `bucket (eager, lazy)`, `off`, ….
    pub fn abilities(&self, flavour: &str) -> Vec<String> {
        let Some(policies) = self.costs.limiter.get(flavour) else {
            return Vec::new();
        };
        policies
            .iter()
            .map(|(policy, table)| {
                let timings: Vec<&str> = table
                    .as_table()
                    .into_iter()
                    .flatten()
                    // A timing has a table of events, each with a table by compiler; an event has that table only.
                    .filter(|(_, value)| {
                        value
                            .as_table()
                            .is_some_and(|table| table.values().all(toml::Value::is_table))
                    })
                    .map(|(timing, _)| timing.as_str())
                    .collect();
                if timings.is_empty() {
                    policy.clone()
                } else {
                    format!("{policy} ({})", timings.join(", "))
                }
            })
            .collect()
    }

    /// What its costs rest on.
    pub fn costs_from(&self) -> String {
        let compilers = self.costs.compilers.join(" and ");
        format!("boards/{}/costs.toml, {compilers}", self.name())
    }
}

static ATMEGA128: LazyLock<Board> = LazyLock::new(|| {
    Board::new(
        include_str!("../../../boards/atmega128/board.toml"),
        include_str!("../../../boards/atmega128/costs.toml"),
    )
});

static SOC: LazyLock<Board> = LazyLock::new(|| {
    Board::new(
        include_str!("../../../boards/soc/board.toml"),
        include_str!("../../../boards/soc/costs.toml"),
    )
});

/// All boards.
pub(crate) fn all() -> [&'static Board; 2] {
    [&ATMEGA128, &SOC]
}

/// The board of this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Board> {
    all().into_iter().find(|board| board.name() == name)
}

/// A timer of a board, for those who choose limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardTimer {
    /// As its channels' names begin: `TIMER1`.
    pub name: String,
    /// What it can divide the clock by, in ascending order. All its channels have the divisor in common.
    pub divisors: Vec<u64>,
    /// Its compare channels, as a limit's `timer` or a `[[timer]]`'s `channel` names them.
    pub channels: Vec<String>,
}

/// The compilers with which the costs of the board of this name were measured; none: Weir does not know the board.
///
/// # Panics
/// Not with the boards that are part of this program.
#[must_use]
pub fn board_compilers(board: &str) -> Option<Vec<CompilerVersion>> {
    let compilers = &by_name(board)?.costs.compilers;
    let version = |line: &String| {
        CompilerVersion::parse(line)
            .unwrap_or_else(|| panic!("a file of boards/, which is part of this program: {line}"))
    };
    Some(compilers.iter().map(version).collect())
}

/// The timers of the board of this name; none: Weir does not know the board. What limits they can serve depends on the port's flavour: [`crate::parse`] tells.
#[must_use]
pub fn board_timers(board: &str) -> Option<Vec<BoardTimer>> {
    let board = by_name(board)?;
    let channels = board.channels();
    let of = |(index, timer): (usize, &TimerFacts)| BoardTimer {
        name: timer.name.clone(),
        divisors: timer.divisors.clone(),
        channels: channels
            .iter()
            .filter(|channel| channel.timer == index)
            .map(|channel| channel.name.clone())
            .collect(),
    };
    Some(board.timers().iter().enumerate().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str = r#"
        name = "test"
        clock_hz = 1_000_000
        vectors = ["LINE", "TIMER5_COMPA", "TIMER5_OVF", "TIMER6_COMP"]
        interrupt = { longest_instruction_cycles = 3 }
        timer = [{ name = "TIMER5", bits = 16, divisors = [1, 8] }, { name = "TIMER6", bits = 8, divisors = [8] }]
        line = [{ name = "LINE" }]
    "#;
    const COSTS: &str = r#"
        compilers = ["cc 1.0.0", "cc 2.0.0"]
        [limiter.c.off]
        request_served = { "1.0.0" = 20, "2.0.0" = 18 }
        [limiter.c.strict.lazy]
        request_served = { "1.0.0" = 58, "2.0.0" = 60 }
        request_refused = { "1.0.0" = 50, "2.0.0" = 44 }
        [channel.TIMER5A.c.strict.lazy]
        request_served = { "1.0.0" = 55, "2.0.0" = 55 }
    "#;

    #[test]
    fn vectors_and_channels_follow_from_the_table() {
        let board = Board::new(FACTS, COSTS);
        let channels: Vec<(String, usize, u32)> = board
            .channels()
            .into_iter()
            .map(|channel| (channel.name, channel.timer, channel.level.order))
            .collect();
        assert_eq!(
            channels,
            [("TIMER5A".to_owned(), 0, 2), ("TIMER6".to_owned(), 1, 4)]
        );
        assert_eq!(board.level("LINE").unwrap().order, 1);
        assert_eq!(board.level("TIMER7_COMPA"), None);
    }

    #[test]
    fn the_costs_of_a_channel_precede_the_worst_of_all() {
        let board = Board::new(FACTS, COSTS);
        let events = |channel| board.events("c", &["strict", "lazy"], channel).unwrap();
        assert_eq!(events(None).request_served, Some(60));
        assert_eq!(events(None).request_refused, Some(50));
        assert_eq!(events(None).expiry_empty, None);
        assert_eq!(events(Some("TIMER5A")).request_served, Some(55));
        assert_eq!(events(Some("TIMER6")).request_served, Some(60));
        assert_eq!(
            board.events("c", &["off"], None).unwrap().request_served,
            Some(20)
        );
        assert_eq!(board.events("c", &["strict", "eager"], None), None);
        assert_eq!(board.events("d", &["off"], None), None);
        assert_eq!(board.abilities("c"), ["off", "strict (lazy)"]);
    }

    #[test]
    fn the_boards_that_weir_brings_can_be_read() {
        for board in all() {
            // A limit in software needs both.
            assert_eq!(board.channels().is_empty(), board.lines().is_empty());
            for line in board.lines() {
                assert!(board.level(line).is_some(), "{line}");
            }
            for flavour in board.flavours() {
                let off = board.events(flavour, &["off"], None).unwrap();
                assert!(off.request_served.unwrap() > 0, "{flavour}");
            }
        }
    }
}
