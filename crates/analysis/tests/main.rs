// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the bounds with simulated runs and with other analyses of the same systems, and tests
//! the limits that the tuner chooses.

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
