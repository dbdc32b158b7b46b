// SPDX-License-Identifier: GPL-3.0-or-later
//! The hardware scheduler of regehr2005 §3.4 as an ideal filter between a stimulus and a pin.

/// Passes a request if its counter is zero, and reloads the counter. Otherwise it stores the
/// request, and passes it when the counter reaches zero. It stores one request only.
pub struct IdealLimiter<I: Iterator> {
    requests: std::iter::Peekable<I>,
    interval: u64,
    /// The time at which the counter reaches zero.
    free_at: u64,
}

impl<I: Iterator<Item = u64>> IdealLimiter<I> {
    /// Filters `requests`, which must be in ascending order. `interval` is the counter's initial
    /// value, in the requests' unit of time.
    pub fn new(requests: I, interval: u64) -> Self {
        Self {
            requests: requests.peekable(),
            interval,
            free_at: 0,
        }
    }
}

impl<I: Iterator<Item = u64>> Iterator for IdealLimiter<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let request = self.requests.next()?;
        let passes = request.max(self.free_at);
        // Requests that arrive while the counter runs merge with the stored request. So does a
        // request at the instant at which the counter reaches zero, because the paper's counter is
        // reloaded at that instant.
        while self.requests.next_if(|later| *later <= passes).is_some() {}
        self.free_at = passes.saturating_add(self.interval);
        Some(passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_request_is_held_and_the_others_are_dropped() {
        let passed: Vec<u64> =
            IdealLimiter::new([0, 10, 20, 30, 250, 600].into_iter(), 100).collect();
        assert_eq!(passed, [0, 100, 250, 600]);
    }

    #[test]
    fn a_held_request_reloads_the_counter() {
        let passed: Vec<u64> = IdealLimiter::new([0, 10, 150, 160].into_iter(), 100).collect();
        assert_eq!(passed, [0, 100, 200]);
    }

    /// §3.4 implemented literally, with a counter that is decremented once per unit of time.
    fn by_counting(requests: &[u64], interval: u64, until: u64) -> Vec<u64> {
        let (mut counter, mut noted, mut passed) = (0_u64, false, Vec::new());
        for now in 0..until {
            noted |= requests.contains(&now);
            if counter == 0 && noted {
                passed.push(now);
                noted = false;
                counter = interval;
            }
            counter = counter.saturating_sub(1);
        }
        passed
    }

    proptest! {
        #[test]
        fn it_does_what_the_counter_does(mut requests in proptest::collection::vec(0_u64..300, 0..60), interval in 1_u64..50) {
            requests.sort_unstable();
            let passed: Vec<u64> = IdealLimiter::new(requests.iter().copied(), interval).collect();
            prop_assert_eq!(&passed, &by_counting(&requests, interval, 400));
            prop_assert!(passed.windows(2).all(|pair| pair[1] - pair[0] >= interval));
        }

        #[test]
        fn below_the_limit_it_changes_nothing(gaps in proptest::collection::vec(50_u64..500, 0..40)) {
            let requests: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            prop_assert_eq!(IdealLimiter::new(requests.iter().copied(), 50).collect::<Vec<_>>(), requests);
        }
    }
}
