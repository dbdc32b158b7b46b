// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs firmware on an emulated board, with stimuli on its pins, and observes its behaviour.
//!
//! [`run::run`] returns the cycles per interrupt vector, missed edges and counters of a run on an
//! emulated ATmega128 or Cortex-M3, or a simulated RISC-V. This crate is the only package of Weir
//! that links simavr (GPL-3).
pub mod atmega128;
pub mod board;
pub mod chip;
pub mod command;
pub mod elf;
pub mod emulation;
pub mod error;
pub mod firmware;
pub mod limiter;
pub mod line;
pub mod mps2;
pub mod result;
pub mod run;
pub mod soc;
pub mod stimulus;

mod built;
mod session;
