// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real packets and real jobs for tests and experiments on Linux: [`send`] floods an address,
//! [`receive`] counts messages and measures their age, [`ask`] measures the latency of answers,
//! [`spin`] works like a CPU-bound process and measures how much longer it takes than alone, and
//! [`drop`] drops packets at the least cost that they can have.
//!
//! Every run ends by itself after at most [`bound::LONGEST`].
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
