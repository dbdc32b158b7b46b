// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a described system in virtual time: what happens to every task when its sources misbehave.
//!
//! Time is counted in cycles of the processor from the start of the run. The policies (limit,
//! demux, moderate, defer, account) are the C ones of core/.

mod accounting;
mod agenda;
mod engine;
pub mod feeds;
mod limiter;
pub mod observer;
pub mod options;
mod ranks;
mod ready;
mod selectors;
pub mod spread;
pub mod tally;
pub mod trace;

use weir_core_sys::demux::CLASSES;
use weir_model::System;

pub use limiter::core_config;
pub use observer::{Loss, Observer, Queue, SimulationEvent, Track};
pub use options::{
    Batches, By, Compensation, CostSpreads, Defer, Deferral, Feed, Options, Target, Tick, Ties,
};
pub use spread::Spread;
pub use tally::Tally;

/// Why a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The limit machine does not take the limit of a source.
    #[error("the limit of `{source_name}` does not fit its timer: {error}")]
    Limit {
        /// The source.
        source_name: String,
        /// What is wrong.
        error: weir_core_sys::ConfigError,
    },
    /// A device cannot moderate as described.
    #[error("moderation: {0}")]
    Moderation(weir_core_sys::moderate::QueueError),
    /// There are more classes of bottom halves than core/ has; how many, and their origin.
    #[error(
        "bottom halves are told apart in {CLASSES} classes at most, and this run wants {0}: {1}"
    )]
    TooManyClasses(usize, &'static str),
    /// The history of a predictor cannot be kept.
    #[error("prediction: {0}")]
    History(weir_core_sys::predict::BadHistory),
    /// The table of flows cannot be made.
    #[error("flows: {0}")]
    Demux(weir_core_sys::demux::DemuxError),
    /// A recording names a flow that the system does not have.
    #[error("the recording names the flow `{0}`, which the system does not have")]
    UnknownFlow(String),
    /// The account cannot be kept.
    #[error("accounting: {0}")]
    Account(weir_core_sys::account::AccountError),
    /// A recording was changed after it was checked, or can no longer be read.
    #[error("a recording changed during the run: {0}")]
    Recording(String),
    /// A trace cannot be read again.
    #[error(transparent)]
    Pattern(#[from] weir_arrivals::PatternError),
}

/// Runs a system. The same options give the same run.
///
/// It is compiled in this crate, with its optimization, and not in the caller's.
///
/// # Errors
/// What the run cannot be made with, or a recording that changed while it was played.
pub fn simulate(system: &System, options: &Options) -> Result<Tally, SimulationError> {
    simulate_observed(system, options, &mut ())
}

/// Like [`simulate`], and tells an observer everything that happens.
///
/// # Errors
/// As [`simulate`]; nothing is told of a run that cannot be made.
pub fn simulate_observed<O: Observer>(
    system: &System,
    options: &Options,
    observer: &mut O,
) -> Result<Tally, SimulationError> {
    engine::Engine::new(system, options, observer)?.run()
}
