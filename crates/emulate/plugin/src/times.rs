// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of a plan, in nanoseconds.
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use weir_model::Duration;

use crate::CLOCK_HZ;

/// Parses a time such as `1ms` to nanoseconds.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?
        .parse::<Duration>()
        .and_then(|time| time.cycles(CLOCK_HZ))
        .map_err(D::Error::custom)
}

pub(crate) fn some_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    time(deserializer).map(Some)
}
