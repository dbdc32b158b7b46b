// SPDX-License-Identifier: MIT OR Apache-2.0
//! This file is empty. It exists because Cargo requires a package to have a target.
