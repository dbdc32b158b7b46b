// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates a described system in virtual time, and shows how every task fares when sources
//! misbehave.
//!
//! Time is counted in processor cycles from the start of the run. The policies (limit, demux,
//! moderate, defer, account) are the C code of core/.

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
    /// The limiter of core/ rejects the limit of a source.
    #[error("the limit of `{source_name}` does not fit its timer: {error}")]
    Limit {
        /// The name of the source.
        source_name: String,
        /// The reason.
        error: weir_core_sys::ConfigError,
    },
    /// The moderator of core/ rejects a device's settings.
    #[error("moderation: {0}")]
    Moderation(weir_core_sys::moderate::QueueError),
    /// The system needs more classes of bottom halves than core/ has. The fields are their number
    /// and where they come from.
    #[error(
        "bottom halves are told apart in {CLASSES} classes at most, and this run wants {0}: {1}"
    )]
    TooManyClasses(usize, &'static str),
    /// The predictor of core/ cannot keep the history.
    #[error("prediction: {0}")]
    History(weir_core_sys::predict::BadHistory),
    /// The demultiplexer of core/ rejects the table of flows.
    #[error("flows: {0}")]
    Demux(weir_core_sys::demux::DemuxError),
    /// A recording names a flow that the system does not have.
    #[error("the recording names the flow `{0}`, which the system does not have")]
    UnknownFlow(String),
    /// The account of core/ rejects the clock tick's settings.
    #[error("accounting: {0}")]
    Account(weir_core_sys::account::AccountError),
    /// A recording was changed after it was checked, or can no longer be read.
    #[error("a recording changed during the run: {0}")]
    Recording(String),
    /// A trace cannot be read again.
    #[error(transparent)]
    Pattern(#[from] weir_arrivals::PatternError),
}

/// Runs a system. The same options always give the same run.
///
/// `inline(never)`: the run is compiled in this crate, with this crate's optimization level.
///
/// # Errors
/// Fails if the system or the options cannot be simulated, or if a recording changes during the
/// run.
pub fn simulate(system: &System, options: &Options) -> Result<Tally, SimulationError> {
    simulate_observed(system, options, &mut ())
}

/// Runs a system like [`simulate`], and reports every event to an observer.
///
/// # Errors
/// Fails as [`simulate`] does. The observer gets no event of a run that fails before it begins.
pub fn simulate_observed<O: Observer>(
    system: &System,
    options: &Options,
    observer: &mut O,
) -> Result<Tally, SimulationError> {
    engine::Engine::new(system, options, observer)?.run()
}
