// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured costs of limiters, as boards/*/costs.toml states them.
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Policy;

/// The tables of boards/NAME/costs.toml that the analysis needs. The means of the paper's Table 2
/// are skipped. Each event has a table of its cycles by compiler.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Costs {
    /// The compilers with which the costs were measured.
    #[serde(default)]
    pub compilers: Vec<String>,
    /// The costs by flavour and policy. A policy's table holds either events, or a table of events
    /// per timing.
    #[serde(default)]
    limiter: BTreeMap<String, toml::Table>,
    /// The costs in instructions of one cycle each, without the costs of [`ExceptionCosts`].
    #[serde(default)]
    instructions: BTreeMap<String, toml::Table>,
    /// The costs by flavour and channel, where they depend on the channel.
    #[serde(default)]
    pub channel: BTreeMap<String, BTreeMap<String, toml::Table>>,
    /// The costs of exceptions, if the emulator does not count them.
    pub exception: Option<ExceptionCosts>,
}

/// The costs of exceptions in cycles on a real processor, for a board whose emulator does not count
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExceptionCosts {
    /// Cycles from the request to the handler's first instruction.
    pub entry_cycles: u64,
    /// Cycles from the handler's end to the next instruction of the interrupted program.
    pub exit_cycles: u64,
    /// Cycles from the end of one handler to the first instruction of another that follows it
    /// directly.
    pub tail_chain_cycles: u64,
}

impl ExceptionCosts {
    /// The cost of `taken` exceptions, of which `tail_chained` follow another one directly.
    #[must_use]
    pub fn of(&self, taken: u64, tail_chained: u64) -> u64 {
        taken.saturating_sub(tail_chained) * (self.entry_cycles + self.exit_cycles)
            + tail_chained * self.tail_chain_cycles
    }
}

/// The worst of the costs that a table states for its compilers.
fn worst<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    Ok(BTreeMap::<String, u64>::deserialize(value)?
        .into_values()
        .max())
}

/// The cycles of a limiter's events; `None` for an event that does not happen. boards/*/costs.toml
/// defines each event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Events {
    /// The line's interrupt that runs the handler.
    #[serde(deserialize_with = "worst")]
    pub request_served: Option<u64>,
    /// The line's interrupt that does not run the handler.
    #[serde(deserialize_with = "worst")]
    pub request_refused: Option<u64>,
    /// The timer's interrupt that runs the handler.
    #[serde(deserialize_with = "worst")]
    pub expiry_served: Option<u64>,
    /// The timer's interrupt that does not run the handler.
    #[serde(deserialize_with = "worst")]
    pub expiry_empty: Option<u64>,
    /// A shared timer's interrupt without its sources.
    #[serde(deserialize_with = "worst")]
    pub expiry_base: Option<u64>,
    /// The cycles that a source without a waiting request adds to a shared timer's interrupt.
    #[serde(deserialize_with = "worst")]
    pub clear_empty: Option<u64>,
    /// The cycles that a source with a waiting request adds to a shared timer's interrupt.
    #[serde(deserialize_with = "worst")]
    pub clear_served: Option<u64>,
}

impl Events {
    /// These costs, completed by those of `other` where these have none.
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

    /// These costs with `more` cycles added to each interrupt. What a source adds to a shared
    /// timer's interrupt does not change, because it is not an interrupt.
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

/// The key of the table of groups, which stands beside the policies. It states what a further
/// source adds to the timer's interrupt of its group.
pub(crate) const GROUP: &str = "group";

impl Costs {
    /// Implements [`crate::Board::events`].
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

    /// The tables of a flavour by policy; `None` if its costs were not measured.
    pub fn policies(&self, flavour: &str) -> Option<&toml::Table> {
        self.limiter
            .get(flavour)
            .or_else(|| self.instructions.get(flavour))
    }

    /// The limits that a flavour has, as texts such as `bucket (eager, lazy)` or `off`. Polling is
    /// not among them: its cost is only measured for comparison, and no port has code for it.
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
                    // A timing has a table of events, each of which has a table by compiler. An
                    // event itself only has the table by compiler.
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
