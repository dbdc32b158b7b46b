// SPDX-License-Identifier: MIT OR Apache-2.0
//! The features of other packages that all of Weir's crates have in common: see `Cargo.toml`.
