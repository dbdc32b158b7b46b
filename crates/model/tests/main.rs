// SPDX-License-Identifier: MIT OR Apache-2.0
//! System files that are taken, those that are refused, and with which words.

mod bad;
mod common;
mod contradictions;
mod freertos;
mod fuzz;
mod good;
mod linux;
mod priorities;
mod reference;
mod silicon;
mod timers;

#[path = "../../test-cases.rs"]
mod number;

use number::{cases, is_long};
