// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments: Weir on emulated boards and kernels, held against what they claim.
pub mod commands;
pub mod experiment;
