// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charges clock ticks to tasks with the account stage of core/ (zhang2006 §3.1).

use weir_core_sys::account::{Account, Config, Mode};
use weir_model::System;

use crate::SimulationError;
use crate::options::{Compensation, Options};

/// The account of a run, if the run has a clock tick with compensation.
#[derive(Debug)]
pub(crate) struct Accounting {
    account: Option<Account>,
    /// Whether the cost of all work for packets is measured, including their interrupts.
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

    /// Reports a handled packet of `source` to the account. `receiver` is the task that the packet
    /// was for, or `None` if it was for nobody. `spent` is the number of cycles that the packet's
    /// interrupt took; an account that counts bottom halves only, as the paper does, ignores it.
    pub fn handled(&mut self, source: usize, receiver: Option<usize>, spent: u64, cycles: u64) {
        if let Some(account) = &mut self.account {
            let before = if self.measures { spent } else { 0 };
            account.handled(source, receiver, before + cycles);
        }
    }

    /// Charges the clock tick to the `running` task, or to nobody. Returns the difference between
    /// the charged ticks and one tick, as compensation for bottom halves.
    pub fn tick(&mut self, running: Option<usize>) -> i64 {
        self.account
            .as_mut()
            .map_or(0, |account| i64::from(account.tick(running).ticks))
    }
}
