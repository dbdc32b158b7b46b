// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured costs of limiters: boards/*/costs.toml.
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Policy;

/// The tables of boards/NAME/costs.toml that analyses need; the means of the paper's Table 2 are
/// skipped. Each event has a table of its cycles by compiler.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Costs {
    /// The compilers with which the costs were measured.
    #[serde(default)]
    pub compilers: Vec<String>,
    /// By flavour: a policy's table holds either events or a table of them per timing.
    #[serde(default)]
    limiter: BTreeMap<String, toml::Table>,
    /// The same in instructions, each a cycle, without what [`ExceptionCosts`] add.
    #[serde(default)]
    instructions: BTreeMap<String, toml::Table>,
    /// The costs by flavour and channel, where they depend on the channel.
    #[serde(default)]
    pub channel: BTreeMap<String, BTreeMap<String, toml::Table>>,
    /// What exceptions cost, where the emulator does not count it.
    pub exception: Option<ExceptionCosts>,
}

/// What exceptions cost on a real processor, in cycles, on a board whose emulator does not count
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExceptionCosts {
    /// From the request to the handler's first instruction.
    pub entry_cycles: u64,
    /// From the handler's end to the next instruction of what it interrupted.
    pub exit_cycles: u64,
    /// From one handler's end to the first instruction of another that follows it.
    pub tail_chain_cycles: u64,
}

impl ExceptionCosts {
    /// The cost of so many exceptions, of which so many follow another one.
    #[must_use]
    pub fn of(&self, taken: u64, tail_chained: u64) -> u64 {
        taken.saturating_sub(tail_chained) * (self.entry_cycles + self.exit_cycles)
            + tail_chained * self.tail_chain_cycles
    }
}

/// The worst of the compilers that a table names.
fn worst<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    Ok(BTreeMap::<String, u64>::deserialize(value)?
        .into_values()
        .max())
}

/// The events of a limiter that happen, with their cycles (boards/*/costs.toml says what each is).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Events {
    /// The line's interrupt that runs the handler.
    #[serde(deserialize_with = "worst")]
    pub request_served: Option<u64>,
    /// The line's interrupt that does not run it.
    #[serde(deserialize_with = "worst")]
    pub request_refused: Option<u64>,
    /// The timer's interrupt that runs the handler.
    #[serde(deserialize_with = "worst")]
    pub expiry_served: Option<u64>,
    /// The timer's interrupt that does not run it.
    #[serde(deserialize_with = "worst")]
    pub expiry_empty: Option<u64>,
    /// A shared timer's interrupt without its sources.
    #[serde(deserialize_with = "worst")]
    pub expiry_base: Option<u64>,
    /// What a source adds to a shared timer's interrupt.
    #[serde(deserialize_with = "worst")]
    pub clear_empty: Option<u64>,
    /// What a source adds whose request waits.
    #[serde(deserialize_with = "worst")]
    pub clear_served: Option<u64>,
}

impl Events {
    /// These costs, with those of `other` where these have none.
    #[must_use]
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

    /// These costs, of which each interrupt takes `more` cycles more. What a source adds to a
    /// shared timer's interrupt is none.
    fn longer(self, more: u64) -> Self {
        let longer = |cost: Option<u64>| cost.map(|cycles| cycles + more);
        Self {
            request_served: longer(self.request_served),
            request_refused: longer(self.request_refused),
            expiry_served: longer(self.expiry_served),
            expiry_empty: longer(self.expiry_empty),
            expiry_base: longer(self.expiry_base),
            ..self
        }
    }
}

/// The table beside the policies: what a further source adds to the timer's interrupt of its group.
pub(crate) const GROUP: &str = "group";

impl Costs {
    /// Does the same as [`crate::Board::events`].
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
            .and_then(|channel| self.channel.get(channel)?.get(flavour))
            .and_then(at);
        let alone = self.exception.map_or(0, |exception| {
            exception.entry_cycles + exception.exit_cycles
        });
        of_channel
            .or_else(|| at(self.limiter.get(flavour)?))
            .or_else(|| Some(at(self.instructions.get(flavour)?)?.longer(alone)))
    }

    /// The tables of a flavour, by policy.
    pub fn policies(&self, flavour: &str) -> Option<&toml::Table> {
        self.limiter
            .get(flavour)
            .or_else(|| self.instructions.get(flavour))
    }

    /// The limits that a flavour has: `bucket (eager, lazy)`, `off`, …. What polling costs is
    /// measured to be compared, and no port has code for it.
    pub fn abilities(&self, flavour: &str) -> Vec<String> {
        self.policies(flavour)
            .into_iter()
            .flatten()
            .filter(|(policy, _)| ![GROUP, Policy::Poll.name()].contains(&policy.as_str()))
            .map(|(policy, table)| {
                let timings: Vec<&str> = table
                    .as_table()
                    .into_iter()
                    .flatten()
                    // A timing has a table of events, each with a table by compiler; an event has
                    // that table only.
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
}
