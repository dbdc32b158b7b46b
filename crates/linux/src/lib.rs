// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weir on stock Linux: bottom halves run at the urgency of the process that they are for
//! (zhang2006, lee2010). It needs Linux 6.1 or newer, without patches.
pub mod account;
pub mod commands;
pub mod draft;
pub mod exact;
pub mod install;
pub mod instance;
mod iterator;
pub mod machine;
mod mounted;
pub mod native;
mod object;
pub mod parts;
pub mod plan;
pub mod predicted;
pub mod programs;
mod ranges;
pub mod receivers;
pub mod restored;
pub mod sched;
pub mod settings;
pub mod share;
#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
pub mod system;
pub mod threads;
pub mod urgency;
pub mod veth;
