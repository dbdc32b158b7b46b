// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the command `weir`, started as users start it.

mod check;
mod check_files;
mod check_freertos;
mod check_freertos_queues;
mod check_printed;
mod common;
mod generate;
mod mark;
mod observed;
mod outputs;
mod readme;
mod signals;
mod simulate;
mod sweep;
mod terminal;
mod tune;
mod verify;
mod weir;

#[path = "../../test-length.rs"]
mod length;

use length::is_long;
