// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the simulator: runs computed by hand, bounds that hold in every run, and traces.

mod bounds;
mod bounds_flows;
mod by_hand;
mod common;
mod limits_by_hand;
mod memory;
mod recorded;
mod simso;
mod trace;

#[path = "../../test-cases.rs"]
mod number;

use number::{cases, is_long};
