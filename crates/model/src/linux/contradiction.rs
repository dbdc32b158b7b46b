// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a section `[linux]` for settings that contradict each other on any machine.
use super::{Linux, LinuxMode, TopHalf};

/// The reason why a section `[linux]` cannot be carried out in a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum LinuxContradiction {
    /// The threads follow receivers, but they also have a cap.
    #[error(
        "the mode `predicted` gives an interface's threads the urgency of a receiver, and `top_half` gives them a cap, which has none"
    )]
    #[diagnostic(help(
        "write `top_half = {{ urgency = 40 }}` for the highest urgency that they get, or leave it out; the modes `native` and `exact` take a cap"
    ))]
    CapFollows,
    /// The bottom halves would also run without a thread.
    #[error(
        "the mode `{mode}` gives an urgency to the thread that takes packets from a device, and `top_half` says that there is none"
    )]
    #[diagnostic(help(
        "leave `thread` out, or take the mode `exact`, which has threads behind it"
    ))]
    NoThread {
        /// The name of the mode.
        mode: &'static str,
    },
    /// The file sets `cap_timer`, but there is no cap.
    #[error("`cap_timer` says how a cap ends, and the top half has none")]
    #[diagnostic(help(
        "write `top_half = {{ runtime = \"500us\", period = \"10ms\" }}` for a cap, or leave `cap_timer` out"
    ))]
    NoCap,
}

impl Linux {
    /// Checks that the section can be carried out in this mode, which may differ from the section's
    /// mode.
    ///
    /// # Errors
    /// Returns [`LinuxContradiction`] if it cannot.
    pub fn check(&self, mode: LinuxMode) -> Result<(), LinuxContradiction> {
        let facts = mode.facts();
        match self.top_half {
            Some(TopHalf::Cap { .. }) if facts.follows_receivers => {
                Err(LinuxContradiction::CapFollows)
            }
            Some(TopHalf::Interrupt) if !facts.demultiplexes => {
                Err(LinuxContradiction::NoThread { mode: mode.name() })
            }
            // The mode `exact` has a cap by default.
            None if facts.demultiplexes => Ok(()),
            Some(TopHalf::Cap { .. }) => Ok(()),
            _ if self.cap_timer => Err(LinuxContradiction::NoCap),
            _ => Ok(()),
        }
    }
}
