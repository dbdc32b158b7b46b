// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the C policies of core/ against models that know nothing of their representation.

mod account;
mod account_error;
mod board;
mod change;
mod defer;
mod demux;
mod enable;
mod exhaustive;
mod frame;
mod frames;
mod moderate;
mod moderate_random;
mod paper;
mod predict;
mod random;

#[path = "../../test-cases.rs"]
mod number;

use number::{cases, is_long};
