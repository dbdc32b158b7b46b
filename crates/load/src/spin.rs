// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU-bound process: jobs of a fixed amount of work, and how much longer than alone they take.
use std::hint::black_box;

use serde::Serialize;

use crate::bound::{End, Time};
use crate::clock;
use crate::latency::{Distribution, Times};
use crate::send::seconds;

/// Work between two readings of the clock, in nanoseconds if nothing disturbs.
const CHUNK: u64 = 20_000;
/// Length of the measurement of the speed, in chunks of about [`CHUNK`].
const CALIBRATION: u32 = 500;

/// Jobs, one after the other or periodic.
#[derive(Debug, Clone, Copy)]
pub struct Jobs {
    /// Time that a job takes where nothing disturbs it.
    pub work: Time,
    /// Rounds of work per second where nothing disturbs; measured first if it is none.
    pub speed: Option<f64>,
    /// Time from a job's release to the next one's. If it is none, each job begins when the one
    /// before has ended.
    pub period: Option<Time>,
    /// Deadline, from a job's release; none: its period.
    pub deadline: Option<Time>,
    /// Number of jobs; none: as many as fit into the time.
    pub count: Option<u64>,
    /// Longest time of the run.
    pub time: Time,
}

/// Why no job can run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpinError {
    /// The period is shorter than the work.
    #[error(
        "a job of {work} ns cannot be done every {period} ns: make the period longer than the work"
    )]
    Overload {
        /// The work, in nanoseconds.
        work: u64,
        /// The period, in nanoseconds.
        period: u64,
    },
    /// The speed is not possible.
    #[error(
        "a speed of {0} rounds per second is none: give what `weir-load spin --json` calls speed, between 1e3 and 1e12"
    )]
    Speed(String),
}

/// Results of the jobs; times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spun {
    /// Length of the run, in seconds.
    pub seconds: f64,
    /// Rounds of work per second where nothing disturbs.
    pub speed: f64,
    /// Jobs whose release came.
    pub released: u64,
    /// Jobs that were done.
    pub finished: u64,
    /// Jobs that were not done by their deadline.
    pub missed: u64,
    /// From release to completion, of those that were done.
    pub response: Distribution,
    /// From begin to completion, of those that were done.
    pub execution: Distribution,
    /// The mean of the executions, divided by the work; none without a job.
    pub ratio: Option<f64>,
    /// All work that was done, in seconds of undisturbed time, also of a job that was not finished.
    pub worked: f64,
    /// Time in which a job could run, in seconds: from its release, or the end of the job before,
    /// to its completion or the end of the run. It equals `worked` if nothing disturbs.
    pub busy: f64,
    /// Time that the kernel has charged to the thread while it worked or waited for its next job,
    /// in seconds.
    pub charged: f64,
    /// The longest time for a chunk of work of 20 us.
    pub longest: u64,
}

/// The work itself: it touches no memory, and so takes the same whatever others do to the caches.
#[inline(never)]
fn burn(rounds: u64, seed: u64) -> u64 {
    let mut state = black_box(seed | 1);
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state)
}

/// Rounds of work per second where nothing disturbs: the quickest of some hundred tries. Takes
/// about 10 ms.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a speed to 16 digits")]
pub fn speed() -> f64 {
    let mut rounds = 1000;
    // Find the number of rounds that takes about a chunk.
    while timed(rounds) < CHUNK / 2 && rounds < 1 << 40 {
        rounds *= 2;
    }
    let best = (0..CALIBRATION).map(|_| timed(rounds)).min().unwrap_or(1);
    rounds as f64 * 1e9 / best.max(1) as f64
}

fn timed(rounds: u64) -> u64 {
    let start = clock::now();
    burn(rounds, start);
    clock::now() - start
}

impl Jobs {
    /// Works until all jobs are done, the time is over or a signal comes.
    ///
    /// # Errors
    /// More work than time, an impossible speed.
    pub fn run(&self) -> Result<Spun, SpinError> {
        let work = self.work.nanoseconds();
        if let Some(period) = self
            .period
            .map(Time::nanoseconds)
            .filter(|&period| period < work)
        {
            return Err(SpinError::Overload { work, period });
        }
        let speed = self.speed.unwrap_or_else(speed);
        if !(1e3..=1e12).contains(&speed) {
            return Err(SpinError::Speed(speed.to_string()));
        }
        Ok(Worker::new(self, speed).run())
    }
}

struct Worker<'a> {
    jobs: &'a Jobs,
    speed: f64,
    /// Rounds of a chunk.
    rounds: u64,
    start: u64,
    end: End,
    done: u64,
    longest: u64,
}

impl<'a> Worker<'a> {
    fn new(jobs: &'a Jobs, speed: f64) -> Self {
        Self {
            jobs,
            speed,
            rounds: rounds(speed, CHUNK).max(1),
            start: clock::now(),
            end: End::after(jobs.time),
            done: 0,
            longest: 0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "ratios to 16 digits")]
    fn run(mut self) -> Spun {
        let charged = clock::charged();
        let deadline = self
            .jobs
            .deadline
            .or(self.jobs.period)
            .map_or(u64::MAX, Time::nanoseconds);
        let (mut released, mut finished, mut missed, mut busy) = (0, 0, 0, 0);
        let (mut response, mut execution) = (Times::default(), Times::default());
        let mut now = self.start;
        while self.jobs.count.is_none_or(|count| released < count) {
            let release = self
                .jobs
                .period
                .map_or(now, |period| self.start + released * period.nanoseconds());
            let ready = release.max(now);
            while now < release && !self.end.is_over(now) {
                clock::sleep_until(release.min(self.end.at()));
                now = clock::now();
            }
            if self.end.is_over(now) {
                busy += now.saturating_sub(ready);
                break;
            }
            released += 1;
            let begin = now;
            let whole = self.job();
            now = clock::now();
            busy += now - ready;
            let late = now - release > deadline;
            missed += u64::from(late || (!whole && deadline < u64::MAX));
            if !whole {
                break;
            }
            finished += 1;
            response.record(now - release);
            execution.record(now - begin);
        }
        // Jobs whose deadline came before the end are missed, too, if they never began.
        if let Some(period) = self.jobs.period {
            let due = |job: u64| {
                self.start
                    .saturating_add(job.saturating_mul(period.nanoseconds()))
                    .saturating_add(deadline)
                    <= now
            };
            while self.jobs.count.is_none_or(|count| released < count) && due(released) {
                released += 1;
                missed += 1;
            }
        }
        let execution = execution.distribution();
        Spun {
            seconds: seconds(now - self.start),
            speed: self.speed,
            released,
            finished,
            missed,
            response: response.distribution(),
            execution,
            ratio: (finished > 0).then(|| execution.mean / self.jobs.work.nanoseconds() as f64),
            worked: self.done as f64 / self.speed,
            busy: seconds(busy),
            charged: seconds(clock::charged() - charged),
            longest: self.longest,
        }
    }

    /// Does one job and returns whether it was finished before the end.
    fn job(&mut self) -> bool {
        let mut left = rounds(self.speed, self.jobs.work.nanoseconds());
        let mut before = clock::now();
        while left > 0 {
            let chunk = left.min(self.rounds);
            burn(chunk, left);
            left -= chunk;
            self.done += chunk;
            let now = clock::now();
            self.longest = self.longest.max(now - before);
            before = now;
            if left > 0 && self.end.is_over(now) {
                return false;
            }
        }
        true
    }
}

/// Rounds that take so many nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "at most 600 s at 1e12 per second, and positive"
)]
fn rounds(speed: f64, nanoseconds: u64) -> u64 {
    (speed * nanoseconds as f64 / 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(work: &str) -> Jobs {
        Jobs {
            work: work.parse().unwrap(),
            speed: None,
            period: None,
            deadline: None,
            count: Some(5),
            time: "5s".parse().unwrap(),
        }
    }

    #[test]
    fn work_is_done_and_counted() {
        let spun = jobs("3ms").run().unwrap();
        assert_eq!((spun.released, spun.finished, spun.missed), (5, 5, 0));
        assert!((spun.worked / 0.015 - 1.0).abs() < 0.01, "{spun:?}");
        // The machine is shared. A job takes at least the time that it takes alone, give or take
        // the error of the calibration.
        assert!(spun.ratio.unwrap() > 0.8, "{spun:?}");
        assert!(spun.seconds > 0.012 && spun.charged > 0.012, "{spun:?}");
    }

    #[test]
    fn jobs_are_released_every_period_and_miss_a_deadline_that_is_too_short() {
        let periodic = Jobs {
            period: Some("20ms".parse().unwrap()),
            deadline: Some("1ms".parse().unwrap()),
            ..jobs("2ms")
        };
        let spun = periodic.run().unwrap();
        assert_eq!((spun.released, spun.finished, spun.missed), (5, 5, 5));
        assert!(spun.seconds >= 0.08, "{spun:?}");
    }

    #[test]
    fn the_end_comes_in_the_midst_of_a_job() {
        let endless = Jobs {
            count: None,
            period: Some("100s".parse().unwrap()),
            time: "30ms".parse().unwrap(),
            ..jobs("50s")
        };
        let spun = endless.run().unwrap();
        assert_eq!((spun.released, spun.finished, spun.missed), (1, 0, 1));
        assert_eq!(spun.ratio, None);
        assert!(spun.worked > 0.0 && spun.seconds < 5.0, "{spun:?}");
        assert!(spun.busy > 0.02 && spun.busy <= spun.seconds, "{spun:?}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let period = Some("1ms".parse().unwrap());
        let overload = SpinError::Overload {
            work: 2_000_000,
            period: 1_000_000,
        };
        assert_eq!(
            Jobs {
                period,
                ..jobs("2ms")
            }
            .run(),
            Err(overload)
        );
        for speed in [f64::NAN, 0.0, -1.0, 1e13] {
            let jobs = Jobs {
                speed: Some(speed),
                ..jobs("1ms")
            };
            assert!(matches!(jobs.run(), Err(SpinError::Speed(_))), "{speed}");
        }
    }
}
