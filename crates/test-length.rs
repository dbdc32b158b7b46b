// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the tests of a crate are. Each crate's tests take this file in.

/// Do the tests take their long form? CONTRIBUTING.md says when.
pub fn is_long() -> bool {
    std::env::var_os("WEIR_LONG").is_some_and(|value| value == "1")
}
