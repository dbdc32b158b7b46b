// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds, beside what runs them and what others say of the same systems; limits that are
//! chosen.

mod busy_windows;
mod common;
mod exhaustive;
mod gathered;
mod headroom;
mod library;
mod limiters;
mod published;
mod pyrta;
mod python;
mod servers;
mod silicon;
mod slices;
mod starvation;
mod tune;

#[path = "../../test-cases.rs"]
mod number;

use number::{cases, is_long};
