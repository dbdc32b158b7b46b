// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account in a run: kept once a second, told in the status, and said when an overload begins
//! or ends.
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::{Value, json};

use super::Said;
use crate::account::{self, Accountant, DemuxCounts, Event};
use crate::receivers::ReceiverTable;

/// How often what was counted is divided and booked.
const PERIOD: Duration = Duration::from_secs(1);

/// Whom interrupts were for, and whom they were taken from.
pub struct Accounting {
    accountant: Accountant,
    due: Instant,
    /// What was said of the overload that there is.
    overload: Option<String>,
}

impl Accounting {
    /// Loads the programs.
    pub fn start(options: account::Options) -> miette::Result<Self> {
        Ok(Self {
            accountant: Accountant::start(options).into_diagnostic()?,
            due: Instant::now(),
            overload: None,
        })
    }

    /// When it is to have a turn.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Books what was counted, if it is time to. `given` is asked only then.
    pub fn turn(
        &mut self,
        receivers: Option<&ReceiverTable>,
        given: impl FnOnce() -> Option<DemuxCounts>,
        said: &Said,
    ) -> miette::Result<()> {
        let now = Instant::now();
        let Some(receivers) = receivers.filter(|_| now >= self.due) else {
            return Ok(());
        };
        // Also if it fails: to try again at once would be to try for ever.
        self.due = now + PERIOD;
        let event = self.accountant.turn(receivers, given().as_ref());
        if let Some(event) = event.into_diagnostic()? {
            let text = event.to_string();
            let (name, more) = match event {
                Event::Begins { cause, culprit } => {
                    self.overload = Some(text.clone());
                    (
                        "overload_begins",
                        json!({ "cause": cause, "culprit": culprit }),
                    )
                }
                Event::Ends { after } => {
                    self.overload = None;
                    ("overload_ends", json!({ "after_s": after.as_secs_f64() }))
                }
            };
            said.event(name, &text, more);
        }
        Ok(())
    }

    /// How it stands, and what was said of the overload that there is.
    pub fn status(&self) -> Value {
        // It has no maps with keys that JSON does not have, so it can be written.
        let mut status = serde_json::to_value(self.accountant.report()).unwrap_or(Value::Null);
        status["overload"] = json!(self.overload);
        status
    }
}
