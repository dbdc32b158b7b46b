// SPDX-License-Identifier: GPL-3.0-or-later
//! Experiments: Weir on emulated boards and kernels, compared with its claims.
pub mod commands;
pub mod experiment;
pub mod ledger;
