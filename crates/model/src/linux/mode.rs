// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each mode does: the one list of modes.
use super::LinuxMode;

/// What a mode does. What a mode does in a run is a part of it, in crates/linux/src/parts.rs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeFacts {
    /// BPF programs find the receivers; else the settings alone do all, on any kernel.
    pub loads_programs: bool,
    /// The threads of an interface get the urgency of a receiver that waits for a packet.
    pub follows_receivers: bool,
    /// An XDP program gives each packet to the thread of its receiver's urgency. So the top half
    /// has an urgency, or a cap, of its own.
    pub demultiplexes: bool,
}

impl LinuxMode {
    /// What the mode does.
    #[must_use]
    pub const fn facts(self) -> ModeFacts {
        match self {
            Self::Native => ModeFacts {
                loads_programs: false,
                follows_receivers: false,
                demultiplexes: false,
            },
            Self::Predicted => ModeFacts {
                loads_programs: true,
                follows_receivers: true,
                demultiplexes: false,
            },
            Self::Exact => ModeFacts {
                loads_programs: true,
                follows_receivers: false,
                demultiplexes: true,
            },
        }
    }
}
