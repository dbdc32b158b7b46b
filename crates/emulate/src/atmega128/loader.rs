// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps simavr's firmware loader, and with it libelf, out of the linked program.
//!
//! [`Image`](crate::elf::Image) reads the firmware, so simavr's loader is not needed. But simavr's
//! debugger, which is never started, calls a function for hexadecimal digits that is in the
//! loader's file. The loader needs libelf, which simavr-ffi links statically. From elfutils 0.191
//! on, the static libelf needs a library that Debian does not ship. This module defines that one
//! function, so the linker leaves out the loader and libelf.
use std::ffi::{c_char, c_int};

/// Replaces simavr's function of this name, which returns -1 for a character that is not
/// hexadecimal.
/// SAFETY: the signature is that of simavr's sim_hex.h. A second definition, the loader's, would be
/// a linker error.
#[unsafe(no_mangle)]
extern "C" fn read_hex_string(_source: *const c_char, _buffer: *mut u8, _length: c_int) -> c_int {
    -1
}
