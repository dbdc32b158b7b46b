// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account in a run. It is updated once a second and shown in the status. It reports when an
//! overload begins or ends.
use std::time::{Duration, Instant};

use miette::IntoDiagnostic as _;
use serde_json::{Value, json};

use super::Messages;
use crate::account::{self, Accountant, DemuxCounts, Event};
use crate::receivers::ReceiverTable;

/// Period in which the counters are read and booked.
const PERIOD: Duration = Duration::from_secs(1);

/// The part that keeps the account.
pub struct Accounting {
    accountant: Accountant,
    due: Instant,
    /// Message about the present overload. `None` if there is none.
    overload: Option<String>,
}

impl Accounting {
    /// Loads and attaches the BPF programs of the account.
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

    /// Books the counters if a period has passed. Only then does it call `given`, which reads the
    /// counters of mode exact.
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
        // After an error, too, the next turn is a period later. Otherwise the loop would try again
        // at once without end.
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

    /// Status of the account, including the message about the present overload.
    pub fn status(&self) -> Value {
        // Serializing cannot fail: all maps of the report have keys that JSON allows.
        let mut status = serde_json::to_value(self.accountant.report()).unwrap_or(Value::Null);
        status["overload"] = json!(self.overload);
        status
    }
}
