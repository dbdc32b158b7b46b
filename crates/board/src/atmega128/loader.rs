// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps simavr's loader of firmware, and with it libelf, out of the program.
//!
//! [`Image`](crate::elf::Image) reads the firmware. But simavr's debugger, which nothing here
//! starts, reads hexadecimal by a function in the file of the loader, and the loader needs libelf,
//! which simavr-ffi links statically. From elfutils 0.191 on the static libelf needs a library that
//! Debian does not ship. With that one function here the linker takes neither the loader nor
//! libelf.
use std::ffi::{c_char, c_int};

/// Stands for simavr's function of this name, which returns -1 for what is not hexadecimal.
// SAFETY: the signature is that of simavr's sim_hex.h. The linker would refuse a second definition,
// that of the loader.
#[unsafe(no_mangle)]
extern "C" fn read_hex_string(_source: *const c_char, _buffer: *mut u8, _length: c_int) -> c_int {
    -1
}
