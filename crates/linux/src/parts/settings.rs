// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own settings, which every mode has, kept as they should be.
use miette::IntoDiagnostic as _;
use serde_json::Value;

use super::{Part, Turn};
use crate::plan;
use crate::system::Node;

/// What `plan` lists of settings, set.
pub struct Settings {
    node: Node,
    /// How many were changed.
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
        // Anew each time: an interface that has gone may come back as another one.
        let all = self.node.interfaces.iter();
        let there = all.filter(|of| turn.presence.has(&of.name));
        let native = plan::native(&self.node, there).into_diagnostic()?;
        let report = native.apply(turn.journal).into_diagnostic()?;
        self.changes += report.changes.len();
        for note in &report.notes {
            turn.said.once(&note.to_string());
        }
        Ok(())
    }

    fn status(&self) -> Value {
        self.changes.into()
    }
}
