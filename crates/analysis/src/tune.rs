// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses limits, bursts and shared timers such that every deadline holds, tells what each choice
//! costs, and writes them into the system file.
//!
//! The objective is that of decision 0005 (docs/decisions/). The analysis has confirmed each result
//! for the whole system.
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
