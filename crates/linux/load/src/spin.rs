// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU-bound process. It does jobs of a fixed amount of work, and compares the time that they
//! take with the time that they take when nothing disturbs them.
use std::hint::black_box;

use serde::Serialize;

use crate::bound::{End, Time};
use crate::clock;
use crate::latency::{Distribution, Times};
use crate::send::seconds;

/// The work between two readings of the clock, in nanoseconds of undisturbed time.
const CHUNK: u64 = 20_000;
/// The number of chunks, of about [`CHUNK`] each, by which the speed is measured.
const CALIBRATION: u32 = 500;

/// A series of jobs, one after the other or periodic.
#[derive(Debug, Clone, Copy)]
pub struct Jobs {
    /// The time that one job takes when nothing disturbs it.
    pub work: Time,
    /// The undisturbed rounds of work per second. `None` means that they are measured first.
    pub speed: Option<f64>,
    /// The time from one job's release to the next one's. `None` means that each job is released
    /// when the one before it has ended.
    pub period: Option<Time>,
    /// The deadline of a job, counted from its release. `None` means its period.
    pub deadline: Option<Time>,
    /// The number of jobs. `None` means as many as `time` allows.
    pub count: Option<u64>,
    /// The longest time that the series takes.
    pub time: Time,
}

/// Reason why no job can run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpinError {
    /// The period is shorter than the work.
    #[error(
        "a job of {work} ns cannot be done every {period} ns: make the period longer than the work"
    )]
    Overload {
        /// The work in nanoseconds.
        work: u64,
        /// The period in nanoseconds.
        period: u64,
    },
    /// The speed is out of its range.
    #[error(
        "the speed {0} is not between 1e3 and 1e12 rounds per second: give the `speed` that `weir-load spin --json` prints"
    )]
    Speed(String),
}

/// The result of [`Jobs::run`]. Times are in nanoseconds unless the field says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobTimes {
    /// The time that the series took, in seconds.
    pub seconds: f64,
    /// The undisturbed rounds of work per second.
    pub speed: f64,
    /// The number of jobs that were released.
    pub released: u64,
    /// The number of jobs that were completed.
    pub finished: u64,
    /// The number of jobs that were not completed by their deadline.
    pub missed: u64,
    /// The time from the release to the completion of the completed jobs.
    pub response: Distribution,
    /// The time from the begin to the completion of the completed jobs.
    pub execution: Distribution,
    /// The mean of `execution` divided by the work. `None` if no job was completed.
    pub ratio: Option<f64>,
    /// The work that was done, in seconds of undisturbed time. It includes the work on an
    /// unfinished job.
    pub worked: f64,
    /// The time in which there was work to do, in seconds. For each job it counts from the instant
    /// at which the job could begin (it was released, and the job before it was completed) to the
    /// job's completion or the end of the run. It equals `worked` if nothing disturbs.
    pub busy: f64,
    /// The processor time that the kernel charged to the thread during the run, in seconds.
    pub charged: f64,
    /// The longest time that 20 us of work took.
    pub longest: u64,
}

/// Does `rounds` of work, which touch no memory, so that their time does not depend on the caches.
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

/// Measures the undisturbed rounds of work per second: the fastest of 500 tries. It takes about 10
/// ms.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a speed to 16 digits")]
pub fn speed() -> f64 {
    let mut rounds = 1000;
    // Looks for the number of rounds that takes about as long as [`CHUNK`].
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
    /// Fails if the period is shorter than the work, or the speed is out of its range.
    pub fn run(&self) -> Result<JobTimes, SpinError> {
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
    /// The number of rounds between two readings of the clock.
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
    fn run(mut self) -> JobTimes {
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
                clock::sleep_until(release.min(self.end.instant()));
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
        // Jobs that never began are missed, too, if their deadlines were before the end.
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
        JobTimes {
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

    /// Does one job. Returns whether it was completed before the end of the run.
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

/// Converts a time of undisturbed work to rounds, at `speed` rounds per second.
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
        // Other processes use the machine, too. So a job takes at least the time that it takes
        // alone, but for the error of the calibration.
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
