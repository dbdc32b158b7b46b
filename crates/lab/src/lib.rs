// SPDX-License-Identifier: GPL-3.0-or-later
//! Boards, stimuli and experiments: Weir on emulated hardware.
//!
//! [`run::run`] takes one firmware and what is done to its pins, and returns what it did: cycles per interrupt vector,
//! edges missed, counters, on an emulated ATmega128 or a simulated RISC-V. It links simavr (GPL-3), and is the only package of Weir that does.
pub mod board;
pub mod chip;
pub mod commands;
pub mod elf;
pub mod experiment;
pub mod firmware;
pub mod limiter;
pub mod line;
pub mod machine;
pub mod run;
pub mod soc;
pub mod stimulus;

mod session;
