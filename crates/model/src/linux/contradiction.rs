// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a section `[linux]` cannot ask for at once, on any machine.
use super::{Linux, LinuxMode, TopHalf};

/// Why a section `[linux]` cannot be carried out in a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum LinuxContradiction {
    /// Threads that follow receivers have a cap.
    #[error(
        "the mode `predicted` gives an interface's threads the urgency of a receiver, and `top_half` gives them a cap, which has none"
    )]
    #[diagnostic(help(
        "write `top_half = {{ urgency = 40 }}` for the highest urgency that they get, or leave it out; the modes `native` and `exact` take a cap"
    ))]
    CapFollows,
    /// The bottom halves would run without a thread, too.
    #[error(
        "the mode `{mode}` gives an urgency to the thread that takes packets from a device, and `top_half` says that there is none"
    )]
    #[diagnostic(help(
        "leave `thread` out, or take the mode `exact`, which has threads behind it"
    ))]
    NoThread {
        /// Name of the mode.
        mode: &'static str,
    },
    /// `cap_timer` is set without a cap.
    #[error("`cap_timer` says how a cap ends, and the top half has none")]
    #[diagnostic(help(
        "write `top_half = {{ runtime = \"500us\", period = \"10ms\" }}` for a cap, or leave `cap_timer` out"
    ))]
    NoCap,
}

impl Linux {
    /// Checks that the section can be carried out in this mode, its own or another.
    ///
    /// # Errors
    /// [`LinuxContradiction`], if it cannot.
    pub fn check(&self, mode: LinuxMode) -> Result<(), LinuxContradiction> {
        let facts = mode.facts();
        match self.top_half {
            Some(TopHalf::Cap { .. }) if facts.follows_receivers => {
                Err(LinuxContradiction::CapFollows)
            }
            Some(TopHalf::Interrupt) if !facts.demultiplexes => {
                Err(LinuxContradiction::NoThread { mode: mode.name() })
            }
            // The mode exact has a cap where the file says nothing.
            None if facts.demultiplexes => Ok(()),
            Some(TopHalf::Cap { .. }) => Ok(()),
            _ if self.cap_timer => Err(LinuxContradiction::NoCap),
            _ => Ok(()),
        }
    }
}
