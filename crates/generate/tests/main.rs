// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is generated for a system, and what is refused.

mod plan;
mod rtos;
mod silicon;
mod systems;

#[path = "../../test-cases.rs"]
mod number;

use number::cases;
