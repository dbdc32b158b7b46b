// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weir on stock Linux: bottom halves run at the urgency of the process that they are for (zhang2006, lee2010), on kernels from 6.1 on, unpatched.
mod iterator;
pub mod native;
pub mod predicted;
pub mod receivers;
pub mod sched;
pub mod settings;
pub mod threads;
pub mod urgency;
