// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps simavr's firmware loader, and with it libelf, out of the program.
//!
//! [`Image`](crate::elf::Image) reads the firmware. But simavr's debugger, which nothing here
//! starts, reads hexadecimal by a function in the loader's file, and the loader needs libelf, which
//! simavr-ffi links statically. From elfutils 0.191 on the static libelf needs a library that
//! Debian does not ship. Because this module defines that one function, the linker takes neither
//! the loader nor libelf.
use std::ffi::{c_char, c_int};

/// Replaces simavr's function of this name, which returns -1 for a character that is not
/// hexadecimal.
/// SAFETY: the signature is that of simavr's sim_hex.h. A second definition, the loader's, would be
/// a linker error.
#[unsafe(no_mangle)]
extern "C" fn read_hex_string(_source: *const c_char, _buffer: *mut u8, _length: c_int) -> c_int {
    -1
}
