// SPDX-License-Identifier: MIT OR Apache-2.0
//! The intervals that the limits and timers of a file need from the counters.
use miette::SourceSpan;
use weir_boards::Range;

/// An interval that a counter has to measure.
#[derive(Debug)]
pub(crate) struct IntervalWish {
    /// The user of the interval in words, for messages, for example "the limit of `encoder`".
    pub who: String,
    /// The place where the file states the interval or the rate.
    pub at: SourceSpan,
    pub channel: usize,
    /// The place where the file states the channel.
    pub channel_at: SourceSpan,
    /// The least number of cycles of the interval.
    pub cycles: u64,
    /// The events per interval. A message about the interval also states it as a rate of these
    /// events.
    pub events: u64,
    pub range: Range,
    /// The prescaler that the file states, and its place; `None` if it states none.
    pub prescaler: Option<(u64, SourceSpan)>,
    /// Whether other limits may use the channel too, because its alarm serves the earliest of them.
    pub in_group: bool,
}
