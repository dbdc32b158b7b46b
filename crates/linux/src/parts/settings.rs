// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of mode native, which every mode makes. This part keeps their values.
use miette::IntoDiagnostic as _;
use serde_json::Value;

use super::{Part, Turn};
use crate::plan;
use crate::system::Node;

/// The part that applies the settings of `plan`.
pub struct Settings {
    node: Node,
    /// Number of settings that have been changed so far.
    changes: usize,
}

impl Settings {
    pub fn new(node: Node) -> Self {
        Self { node, changes: 0 }
    }
}

impl Part for Settings {
    fn name(&self) -> &'static str {
        "changes"
    }

    fn turn(&mut self, turn: &mut Turn<'_>) -> miette::Result<()> {
        if !turn.is_period {
            return Ok(());
        }
        // The settings are computed anew each time, since another interface may have taken the
        // name.
        let all = self.node.interfaces.iter();
        let present = all.filter(|interface| turn.presence.has(&interface.name));
        let native = plan::native(&self.node, present).into_diagnostic()?;
        let report = native.apply(turn.journal).into_diagnostic()?;
        self.changes += report.changes.len();
        for note in &report.notes {
            turn.messages.once(&note.to_string());
        }
        Ok(())
    }

    fn status(&self) -> Value {
        self.changes.into()
    }
}
