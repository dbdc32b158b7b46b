// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of ports/avr on the board atmega128.

mod build;
mod change;
mod contracts;
mod modes;
mod paper;
mod random;
mod record;
mod registers;
mod replay_c;
mod replay_fast;
mod restless;
