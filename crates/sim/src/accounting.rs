// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charges clock ticks to tasks, by the account of core/ (zhang2006 §3.1).

use weir_core_sys::account::{Account, Config, Mode};
use weir_model::System;

use crate::SimulationError;
use crate::options::{Compensation, Options};

/// An account, if the run keeps one.
#[derive(Debug)]
pub(crate) struct Accounting {
    account: Option<Account>,
    /// Measures all work for packets, their interrupts included.
    measures: bool,
}

impl Accounting {
    pub fn new(system: &System, options: &Options) -> Result<Self, SimulationError> {
        let account = options.tick.and_then(|tick| {
            let mode = match tick.compensation {
                Compensation::None => return None,
                Compensation::Counted => Mode::Counted,
                Compensation::Measured => Mode::Measured,
            };
            let config = Config {
                mode,
                cycles_per_tick: tick.period,
                gamma: Config::GAMMA,
            };
            Some(Account::new(
                system.receivers.len(),
                system.sources.len(),
                &config,
            ))
        });
        Ok(Self {
            account: account.transpose().map_err(SimulationError::Account)?,
            measures: options
                .tick
                .is_some_and(|tick| tick.compensation == Compensation::Measured),
        })
    }

    /// Tells the account that the bottom half of a packet of a source was for a receiver, or for
    /// nobody, after its interrupt had `spent` cycles on it. The paper counts bottom halves only.
    pub fn handled(&mut self, source: usize, receiver: Option<usize>, spent: u64, cycles: u64) {
        if let Some(account) = &mut self.account {
            let before = if self.measures { spent } else { 0 };
            account.handled(source, receiver, before + cycles);
        }
    }

    /// Charges the tick to a task, or to nobody. Returns by how many ticks more, or less, the task
    /// is charged.
    pub fn tick(&mut self, running: Option<usize>) -> i64 {
        self.account
            .as_mut()
            .map_or(0, |account| i64::from(account.tick(running).ticks))
    }
}
