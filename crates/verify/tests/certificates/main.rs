// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with right certificates, wrong certificates, and texts that are not certificates.
mod agreement;
mod bad_input;
mod described;
mod large;
mod mutations;
mod systems;

#[path = "../../../test-cases.rs"]
mod number;

use number::cases;
