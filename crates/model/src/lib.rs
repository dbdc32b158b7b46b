// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Weir's programs have in common: quantities with units, and the description of systems.
pub mod quantity;
pub mod system;

pub use quantity::{Duration, QuantityError, Rate};
pub use system::*;
