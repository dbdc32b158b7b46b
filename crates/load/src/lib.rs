// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real packets and real jobs for tests and experiments on Linux: [`send`] floods an address,
//! [`receive`] counts what comes and how old it is, [`ask`] measures how long it takes to be
//! answered, [`spin`] works like a CPU-bound process and says how much longer than alone it took,
//! [`drop`] is the least that packets can cost.
//!
//! Every run ends by itself: none is longer than [`bound::LONGEST`], whatever is asked for.
pub mod ask;
pub mod bound;
pub mod clock;
pub mod commands;
pub mod drop;
pub mod latency;
pub mod payload;
pub mod place;
pub mod receive;
pub mod send;
pub mod spin;

mod datagrams;
