// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Weir's programs have in common: quantities with units.
pub mod quantity;

pub use quantity::{Duration, QuantityError, Rate};
