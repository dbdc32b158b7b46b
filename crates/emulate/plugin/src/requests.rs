// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a client.
use crate::report::RequestReport;

/// The requests of a client, indexed by their number.
pub(crate) struct Requests {
    /// The longest time to wait for an answer, in nanoseconds.
    pub(crate) patience: u64,
    pub(crate) list: Vec<RequestReport>,
}

impl Requests {
    /// Returns the time until which the client waits for the answer to a request.
    pub(crate) fn deadline(&self, number: usize) -> u64 {
        self.list[number].asked_ns + self.patience
    }

    /// Ends a request at `now`. A request that has already ended is not changed.
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
