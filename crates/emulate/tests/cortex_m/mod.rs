// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of ports/cortex-m on the board mps2-an385.

mod bounds;
mod change;
mod contracts;
mod costs;
mod generate;
mod groups;
mod level;
mod measure;
mod random;
mod rest;
mod rtos;
