// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of the emulated boards and of the ports, linked as a single program. Tests that need QEMU
//! and the compiler for Arm have names that begin with `cortex_m_` or `qemu_`.
#[path = "../plugin/tests/arm/mod.rs"]
mod arm;
mod common;
mod cortex;
mod generated;
mod port;
#[path = "../../generate/tests/systems/mod.rs"]
mod systems;

mod avr;
mod command_line;
mod cortex_m;
mod generate;
mod generated_names;
mod instructions;
mod interrupts;
mod limiter_costs;
mod mps2;
mod run;
mod soc;
mod timers;
mod trace;
mod words;

#[path = "../../test-length.rs"]
mod length;

use length::is_long;
