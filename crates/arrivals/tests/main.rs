// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of recordings and of random streams. The tests create all files and streams themselves.

mod capture;
mod csv;
mod streams;

#[path = "../../test-cases.rs"]
mod number;

use number::cases;
