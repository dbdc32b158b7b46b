// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a client.
use crate::report::RequestReport;

/// The requests of a client, by their number.
pub(crate) struct Requests {
    /// How long an answer is waited for, in nanoseconds.
    pub(crate) patience: u64,
    pub(crate) list: Vec<RequestReport>,
}

impl Requests {
    /// The time until which the answer to a request is waited for.
    pub(crate) fn deadline(&self, number: usize) -> u64 {
        self.list[number].asked_ns + self.patience
    }

    /// Ends a request at `now`. What has ended before stays as it was.
    pub(crate) fn end(&mut self, number: usize, now: u64, result: Result<(), String>) {
        let Some(request) = self
            .list
            .get_mut(number)
            .filter(|request| request.is_open())
        else {
            return;
        };
        match result {
            Ok(()) => request.latency_ns = Some(now - request.asked_ns),
            Err(reason) => request.failure = Some(reason),
        }
    }
}
