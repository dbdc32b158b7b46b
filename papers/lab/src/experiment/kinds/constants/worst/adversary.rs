// SPDX-License-Identifier: GPL-3.0-or-later
//! Generates requests that bring a limiter into each of its states at critical times.
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

/// The limit under attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttackedLimit {
    /// The limit's interval or period, in cycles.
    pub interval: u64,
    /// The number of requests that may pass together.
    pub burst: u64,
    /// The approximate length in cycles of another interrupt that delays the limiter's interrupts.
    /// It is 0 if there is no such interrupt.
    pub block: u64,
    /// The number of cycles without a request after which the timer has wrapped around.
    pub wrap: u64,
}

impl AttackedLimit {
    /// A limit whose interrupts are not delayed by another interrupt, and whose timer need not
    /// wrap.
    pub fn alone(interval: u64, burst: u64) -> Self {
        Self {
            interval,
            burst,
            block: 0,
            wrap: interval,
        }
    }

    /// Checks that the interval is long enough and short enough for an attack.
    ///
    /// # Errors
    /// Returns a description of the error and of correct values.
    pub fn check(&self) -> Result<(), String> {
        let least = (LEAST_GAP + 1)
            .saturating_mul(self.burst.saturating_add(2))
            .max(400);
        if self.burst == 0 {
            return Err("a burst of 0 lets nothing pass: give at least 1".to_owned());
        }
        if !(least..=LONGEST_INTERVAL).contains(&self.interval) {
            return Err(format!(
                "an interval of {} cycles cannot be attacked: with a burst of {} give {least} to {LONGEST_INTERVAL}",
                self.interval, self.burst
            ));
        }
        Ok(())
    }
}

/// The edges of an attack, in cycles and in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attack {
    /// The edges on each limited line.
    pub requests: Vec<u64>,
    /// The edges on the line whose interrupts delay those of the limiter.
    pub blocks: Vec<u64>,
    /// The cycle at which the run ends.
    pub end: u64,
}

impl Attack {
    /// Adds `row` back-to-back blocking interrupts. Each is requested while the previous one runs.
    fn block(&mut self, from: u64, row: u64, limit: &AttackedLimit) {
        self.blocks
            .extend((0..row).map(|index| from + index * limit.block));
    }
}

/// The least number of cycles between two edges of a burst, less than an interrupt takes.
const LEAST_GAP: u64 = 60;
/// The longest allowed interval, in cycles. An attack lasts for thousands of intervals.
const LONGEST_INTERVAL: u64 = 100_000;
/// The cycle at which the start-up code has ended.
const START: u64 = 3000;
/// Edges aim at multiples of the interval, where expiries lie. They miss them by at most this many
/// cycles.
const REACH: u64 = 220;
/// The longest pause in cycles that an attack contains. A pause for a whole wrap of the timer is
/// tried only if it is not longer.
const LONGEST_PAUSE: u64 = 600_000;

/// Generates bursts, each followed by edges near the ends of the next intervals. The distance to an
/// end is the same within a burst, and takes every value up to REACH cycles. The number of edges,
/// the other edges and the pauses are drawn from `seed`.
pub(super) fn in_step(limit: &AttackedLimit, seed: u64) -> Attack {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut attack = Attack::default();
    let mut now = START;
    for step in 0..=2 * REACH {
        let first = now;
        let count =
            [1, 2, limit.burst, limit.burst + 1, 2 * limit.burst + 1][random.random_range(0..5)];
        let widest = [250, limit.interval / 3][random.random_range(0..2)];
        let gap = random.random_range(LEAST_GAP..widest);
        attack
            .requests
            .extend((0..count).map(|index| first + index * gap));
        let instants = random.random_range(1..=4);
        let blocked = limit.block > 0 && random.random_bool(0.4);
        // The probability of an edge near the end of each interval. With 0, no edges may follow a
        // burst.
        let eager = [0.0, 0.4, 0.8][random.random_range(0..3)];
        let mut last = first + count * gap;
        for instant in 1..=instants {
            let edge = first + instant * limit.interval + step - REACH.min(limit.interval);
            if random.random_bool(eager) {
                attack.requests.push(edge);
            }
            if random.random_bool(0.4) {
                let from = edge + random.random_range(30..400);
                let gap = random.random_range(LEAST_GAP..limit.interval / (limit.burst + 2));
                let more = random.random_range(1..=limit.burst);
                attack
                    .requests
                    .extend((0..more).map(|index| from + index * gap));
            }
            last = last.max(attack.requests.last().copied().unwrap_or(edge));
        }
        if blocked {
            let row = random.random_range(1..=2 * limit.burst + 4);
            let length = row * limit.block;
            let from = if random.random_bool(0.5) {
                // The blocking interrupts come after all requests, and delay the end of a masked
                // interval. No request waits at that end.
                last + random.random_range(0..2 * limit.interval)
            } else {
                // The expiry falls into the blocking interrupts, and is late by about a whole
                // number of intervals.
                let due = first + random.random_range(1..=instants) * limit.interval;
                let late = random.random_range(0..=length / limit.interval) * limit.interval;
                due.saturating_sub((length + REACH).saturating_sub(late + step))
            };
            attack.block(from, row, limit);
            last = last.max(from + length);
        }
        now = last
            + match random.random_range(0..40) {
                0..18 => random.random_range(0..limit.interval),
                18..34 => random.random_range(limit.interval..3 * limit.interval),
                34..39 => limit.interval * (limit.burst + 2),
                _ if limit.wrap <= LONGEST_PAUSE => limit.wrap + random.random_range(0..REACH),
                _ => 0,
            };
    }
    finish(attack, now, limit)
}

/// Generates random edges: bursts and single edges, near multiples of the interval and elsewhere,
/// faster and slower than the limit.
pub(super) fn storm(limit: &AttackedLimit, seed: u64, cycles: u64) -> Attack {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut attack = Attack::default();
    let interval = limit.interval;
    let mut now = START;
    while now < cycles {
        attack.requests.push(now);
        if limit.block > 0 && random.random_range(0..12) == 0 {
            let row = random.random_range(1..=2 * limit.burst + 4);
            attack.block(now + random.random_range(0..interval), row, limit);
        }
        now += match random.random_range(0..20) {
            0..11 => random.random_range(LEAST_GAP..400),
            11..15 => random.random_range(interval / 8..interval),
            15..18 => {
                interval * random.random_range(1..4) - random.random_range(0..REACH.min(interval))
            }
            18 => random.random_range(interval..interval * 3),
            _ => random.random_range(interval..interval * (limit.burst + 3)),
        };
    }
    finish(attack, now, limit)
}

/// Sorts the edges, drops those too close to the previous one, and extends the run until waiting
/// requests have been served.
fn finish(mut attack: Attack, now: u64, limit: &AttackedLimit) -> Attack {
    for edges in [&mut attack.requests, &mut attack.blocks] {
        edges.sort_unstable();
        edges.retain(|edge| *edge >= START);
        // A pin needs a few cycles to fall and to rise again.
        edges.dedup_by(|later, earlier| *later < *earlier + 8);
    }
    attack.end = now + 4 * limit.interval;
    attack
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: AttackedLimit = AttackedLimit {
        interval: 1000,
        burst: 4,
        block: 500,
        wrap: 70_000,
    };

    #[test]
    fn edges_ascend_and_repeat_with_their_seed() {
        for attack in [in_step(&TARGET, 1), storm(&TARGET, 1, 200_000)] {
            assert!(attack.requests.len() > 100 && attack.blocks.len() > 10);
            for edges in [&attack.requests, &attack.blocks] {
                assert!(edges.is_sorted_by(|a, b| a + 8 <= *b));
                assert!(edges.iter().all(|edge| *edge < attack.end));
            }
        }
        assert_eq!(in_step(&TARGET, 2), in_step(&TARGET, 2));
        assert_ne!(in_step(&TARGET, 2), in_step(&TARGET, 3));
    }

    #[test]
    fn what_leaves_no_room_is_refused() {
        assert_eq!(TARGET.check(), Ok(()));
        for (interval, burst) in [
            (0, 1),
            (399, 1),
            (700, 10),
            (1000, 0),
            (u64::MAX, 1),
            (1000, u64::MAX),
        ] {
            let narrow = AttackedLimit {
                interval,
                burst,
                ..TARGET
            };
            assert!(narrow.check().is_err(), "{narrow:?}");
        }
        // The shortest allowed interval.
        let narrow = AttackedLimit {
            interval: 400,
            burst: 1,
            block: 220,
            ..TARGET
        };
        assert_eq!(narrow.check(), Ok(()));
        in_step(&narrow, 1);
        storm(&narrow, 1, 100_000);
    }

    #[test]
    fn nobody_blocks_where_nobody_else_is() {
        let alone = AttackedLimit { block: 0, ..TARGET };
        assert!(in_step(&alone, 1).blocks.is_empty());
        assert!(storm(&alone, 1, 200_000).blocks.is_empty());
    }
}
