// SPDX-License-Identifier: MIT OR Apache-2.0
//! A response time, or the reason why there is none, compared with a deadline.
use serde::Serialize;
use weir_model::System;

use crate::analysis::{BoundFailure, Row};
use crate::rta::NoBound;
use crate::units::Part;

/// The result of comparing a response time with its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundState {
    /// There is a bound, and it does not exceed the deadline, if there is one.
    Ok,
    /// The bound exceeds the deadline.
    Missed,
    /// There is no bound.
    Unbounded,
}

/// The reason why there is no bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Some sources may interrupt without bound.
    Starved {
        /// The names of these sources, at most [`MOST_NAMED`].
        by: Vec<String>,
        /// The number of these sources.
        count: usize,
    },
    /// The row and more urgent work need the whole processor or more.
    Overload,
    /// There may be a bound, but it is beyond the range of the search.
    TooLong,
    /// Packets wait for more than one interrupt, and the file does not say how many packets the
    /// device of this source holds.
    QueueUnstated {
        /// The name of the source.
        source: String,
    },
}

/// The most names that are listed. A longer list would not help the reader.
pub const MOST_NAMED: usize = 8;

/// A worst-case response time, compared with a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// The result of the comparison.
    pub state: BoundState,
    /// The cycles from the release to the end, at worst; `None` if there is no bound.
    pub response_cycles: Option<u64>,
    /// The deadline less the response time; negative if the deadline is missed. `None` if there is
    /// no deadline or no bound.
    pub slack_cycles: Option<i64>,
    /// The reason why there is no bound; `None` if there is one.
    pub cause: Option<Cause>,
}

impl Bound {
    pub(super) fn of(system: &System, row: &Row, deadline: Option<u64>) -> Self {
        match &row.outcome {
            Ok(solution) => Self::bounded(solution.response, deadline),
            Err(why) => Self::none(Cause::of(system, why)),
        }
    }

    pub(super) fn bounded(response: u64, deadline: Option<u64>) -> Self {
        Self {
            state: match deadline {
                Some(deadline) if response > deadline => BoundState::Missed,
                _ => BoundState::Ok,
            },
            response_cycles: Some(response),
            slack_cycles: deadline.map(|deadline| {
                let slack = i128::from(deadline) - i128::from(response);
                i64::try_from(slack).unwrap_or(if slack < 0 { i64::MIN } else { i64::MAX })
            }),
            cause: None,
        }
    }

    pub(super) fn none(cause: Cause) -> Self {
        Self {
            state: BoundState::Unbounded,
            response_cycles: None,
            slack_cycles: None,
            cause: Some(cause),
        }
    }
}

impl Cause {
    pub(super) fn of(system: &System, why: &BoundFailure) -> Self {
        match why {
            BoundFailure::Starved(parts) => {
                // Work for packets has no bound if the source of the packets has none.
                let mut sources: Vec<usize> = parts
                    .iter()
                    .filter_map(|part| match *part {
                        Part::Request(source) | Part::Expiry(source) => Some(source),
                        Part::BottomHalf(flow) | Part::Delivered(flow) => {
                            system.flows.get(flow).map(|flow| flow.source)
                        }
                        Part::Timer(_) | Part::Task(_) => None,
                    })
                    .collect();
                sources.sort_unstable();
                sources.dedup();
                Self::Starved {
                    by: sources
                        .iter()
                        .filter_map(|&source| system.sources.get(source))
                        .take(MOST_NAMED)
                        .map(|source| source.name.clone())
                        .collect(),
                    count: sources.len(),
                }
            }
            BoundFailure::NoBound(NoBound::Overload) => Self::Overload,
            BoundFailure::NoBound(NoBound::TooLong | NoBound::Exceeded) => Self::TooLong,
        }
    }
}
