// SPDX-License-Identifier: MIT OR Apache-2.0
//! Certificates of the analysis: right ones, wrong ones and none at all.
mod agreement;
mod bad_input;
mod described;
mod large;
mod mutations;
mod systems;

#[path = "../../../test-cases.rs"]
mod number;

use number::cases;
