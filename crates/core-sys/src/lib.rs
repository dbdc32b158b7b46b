// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust bindings of the C policies of `core/`, for a host program that needs every tick width at
//! once.
//!
//! [`Limiter`] wraps `core/include/weir/limit.h`; [`curve`] has the bounds that `core/CONTRACTS.md`
//! promises for it. [`moderate`], [`account`], [`demux`], [`defer`] and [`predict`] wrap the
//! headers of these names.

pub mod account;
mod account_ffi;
mod classes_ffi;
pub mod curve;
pub mod defer;
pub mod demux;
mod functions;
mod limit_ffi;
mod limiter;
pub mod moderate;
mod moderate_ffi;
pub mod predict;

pub use limiter::{
    Action, Bare, Config, ConfigError, LimitPolicy, LimitTiming, Limiter, Record, Step, Trigger,
    W16, W32, W64, Width,
};
