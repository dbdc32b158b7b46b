// SPDX-License-Identifier: MIT OR Apache-2.0
//! A described system in virtual time: what happens to every task when its sources misbehave.
//!
//! Time is counted in cycles of the processor from the start of the run. The policies (limit, demux, moderate, defer, account) are the C ones of core/.

pub mod observer;
pub mod spread;
pub mod trace;

pub use observer::{Event, Loss, Observer, Queue, Track};
pub use spread::Spread;
