// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the properties of each mode. No other list of modes exists.
use super::LinuxMode;

/// The properties of a mode. What a mode does in a run belongs to them, and is in
/// crates/linux/src/parts.rs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeFacts {
    /// Whether BPF programs find the receivers. If not, kernel settings alone are used, on any
    /// kernel.
    pub loads_programs: bool,
    /// Whether the threads of an interface get the urgency of a receiver that waits for a packet.
    pub follows_receivers: bool,
    /// Whether an XDP program hands each packet to the thread of its receiver's urgency. The top
    /// half then has an urgency or a cap of its own.
    pub demultiplexes: bool,
}

impl LinuxMode {
    /// The properties of the mode.
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
