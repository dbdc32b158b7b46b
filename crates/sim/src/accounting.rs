// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom the clock ticks are charged to, by the account of core/ (zhang2006 §3.1).

use weir_core_sys::account::{Account, Config, Mode};
use weir_model::System;

use crate::SimulationError;
use crate::options::{Compensation, Options};

/// An account, if the run keeps one.
#[derive(Debug)]
pub(crate) struct Accounting {
    account: Option<Account>,
    /// All that was done for a packet is measured, its interrupt as well.
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

    /// The bottom half of a packet of a source was done for a receiver, or for nobody, after its
    /// interrupt had `spent` cycles on it. The paper counts bottom halves only.
    pub fn handled(&mut self, source: usize, receiver: Option<usize>, spent: u64, cycles: u64) {
        if let Some(account) = &mut self.account {
            let before = if self.measures { spent } else { 0 };
            account.handled(source, receiver, before + cycles);
        }
    }

    /// The tick is charged to a task, or to nobody: the ticks that it is charged more, or less.
    pub fn tick(&mut self, running: Option<usize>) -> i64 {
        self.account
            .as_mut()
            .map_or(0, |account| i64::from(account.tick(running).ticks))
    }
}
