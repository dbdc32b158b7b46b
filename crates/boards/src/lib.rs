// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Weir has ports for: boards with their timers and lines, what limiting costs on them, and
//! the limits that each flavour of a port keeps.
//!
//! This is the one reader of `boards/*/board.toml` and `boards/*/costs.toml`. A board is a folder
//! there. A port whose timers follow other rules is a file, as [`avr`] and [`cortex_m`] are.
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
