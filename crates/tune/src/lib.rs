// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses limits, bursts and shared timers such that every deadline holds, says what each choice
//! costs, and writes them into the system file.
//!
//! The objective is decision 0005 (docs/decisions/). Each result was analysed whole by
//! `weir_analysis`.
// Rates are f64; cycles are below 2^60, and what becomes a number of cycles is rounded to the safe
// side by saturating casts.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles are below 2^60 and floats become cycles by saturating casts"
)]

mod assign;
mod band;
mod explain;
mod layout;
mod measure;
mod plan;
mod platform;
mod probe;
mod rate_text;
mod search;
mod session;
mod task;
mod window;
mod write;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use band::{Band, Percent, hertz};
pub use explain::{Conflict, Demand, Remedy, explain};
pub use measure::{Measure, MeasureKey};
pub use plan::{Arrangement, Choice, LimitPlan, Setting, SharedTimer};
pub use platform::{MOST_BURST, Offer, Platform, Range, SharedOffer, TimerChannel, TimerCounter};
pub use search::{Progress, TuningSolution, alternatives, is_feasible, search};
pub use session::{Idleness, LoweredBurst, OTHER_FLAVOUR, Outcome, Session, SessionError};
pub use task::{Accepts, Aim, Options, Slot, TunedSource, TuningTask};
pub use write::{WriteBackError, write_back};
