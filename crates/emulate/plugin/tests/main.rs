// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin in QEMU, with guests: one program, which is linked once.
mod arm;

mod guest;
mod node;
