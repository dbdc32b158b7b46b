// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account in a run: updated once a second, shown in the status, and the source of messages
//! when an overload begins or ends.
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::{Value, json};

use super::Messages;
use crate::account::{self, Accountant, DemuxCounts, Event};
use crate::receivers::ReceiverTable;

/// Period in which counters are divided and booked.
const PERIOD: Duration = Duration::from_secs(1);

/// The part that keeps the account.
pub struct Accounting {
    accountant: Accountant,
    due: Instant,
    /// Message about the present overload.
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

    /// Time of the next turn.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Books the counters if it is time. `given` is called only then.
    pub fn turn(
        &mut self,
        receivers: Option<&ReceiverTable>,
        given: impl FnOnce() -> Option<DemuxCounts>,
        messages: &Messages,
    ) -> miette::Result<()> {
        let now = Instant::now();
        let Some(receivers) = receivers.filter(|_| now >= self.due) else {
            return Ok(());
        };
        // The next turn is a period later even after an error, so that it is not tried without end.
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
            messages.event(name, &text, more);
        }
        Ok(())
    }

    /// Status of the account, with the message about the present overload.
    pub fn status(&self) -> Value {
        // The account has no maps with keys that JSON cannot have, so it can be written.
        let mut status = serde_json::to_value(self.accountant.report()).unwrap_or(Value::Null);
        status["overload"] = json!(self.overload);
        status
    }
}
