// SPDX-License-Identifier: MIT OR Apache-2.0
//! Empty: Cargo wants a package to have something to compile.
