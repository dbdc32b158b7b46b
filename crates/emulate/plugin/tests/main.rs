// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the plugin in QEMU with guests, linked as a single program.
mod arm;

mod guest;
mod node;
