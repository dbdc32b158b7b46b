// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards that Weir supports, with their timers and lines, the costs of limiting on them, and
//! the limits that each flavour of a port can keep.
//!
//! Only this crate reads `boards/*/board.toml` and `boards/*/costs.toml`. A board is a folder of
//! boards/. A port with rules of its own for timers is a module, such as [`avr`] and [`cortex_m`].
pub mod avr;
mod board;
pub mod cortex_m;
mod costs;
mod policy;
mod port;
mod refused;

pub use board::{Avr, Board, Channel, InterruptFacts, LineFacts, Priorities, TimerFacts};
pub use cortex_m::{TimerCode, TimerDriver};
pub use costs::{Events, ExceptionCosts};
pub use policy::{Policy, Timing};
pub use port::{Flavour, Misfit, Port, PortRules, Range};
pub use refused::BoardError;
