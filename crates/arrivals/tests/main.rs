// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read and what is drawn, beside files and streams that the tests make themselves.

mod capture;
mod csv;
mod streams;

#[path = "../../test-cases.rs"]
mod number;

use number::cases;
