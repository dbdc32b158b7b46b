// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes what a system guarantees, and proves it. Limiters become tasks (regehr2005 §5.2),
//! interrupts get the ranks that the processor gives them, and every unit gets a response time.
//!
//! [`analyse`] takes a resolved system and gives a row per interrupt, task and bottom half.
//! docs/analysis.md derives the equations. [`tune`] goes the other way: it finds limits for given
//! deadlines.
// Cycles become f64 only for shares of the processor and for bounds that are rounded to the safe
// side.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles are below 2^62, shares are rounded to the safe side, floats become cycles by saturating casts"
)]

pub mod certificate;
pub mod check;
pub mod curve;
pub mod limiter;
pub mod rank;
pub mod rta;
pub mod tune;
pub mod units;

mod analysis;
mod sensitivity;
mod shared_timer;
mod slack;

pub use analysis::{Analysis, BoundFailure, Row, analyse, units_hold};
pub use certificate::certificate;
pub use sensitivity::{Headroom, headroom, headroom_at_least};
