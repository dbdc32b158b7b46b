// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the limits and timers of a file want of the counters.
use miette::SourceSpan;
use weir_boards::Range;

/// An interval that a counter has to measure.
#[derive(Debug)]
pub(crate) struct IntervalWish {
    /// For the reader: "the limit of `encoder`".
    pub who: String,
    /// Where the file states the interval or the rate.
    pub at: SourceSpan,
    pub channel: usize,
    /// Where the channel is.
    pub channel_at: SourceSpan,
    /// The cycles of the interval, at least.
    pub cycles: u64,
    /// Events per interval. A message about the interval states it as a rate of these events, too.
    pub events: u64,
    pub range: Range,
    /// The prescaler that the file states, and where.
    pub prescaler: Option<(u64, SourceSpan)>,
    /// May others use the channel, too, because its alarm is for whoever comes first?
    pub in_group: bool,
}
