// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks, in nanoseconds.
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

fn read(clock: ClockId) -> u64 {
    // Linux always has both of the clocks that this is called with.
    let time = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of the monotonic clock, which is the same in all processes and namespaces of a machine.
#[must_use]
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The processor time that the kernel has charged to the calling thread.
#[must_use]
pub fn charged() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until the monotonic clock is at `then`, or until a signal comes.
pub fn sleep_until(then: u64) {
    let then = TimeSpec::from_duration(Duration::from_nanos(then));
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &then,
    );
}

/// The clock by which the sender of a packet writes its time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Stamps {
    /// The machine's monotonic clock, for a sender and a receiver on the same machine.
    #[default]
    Monotonic,
    /// The processor's time-stamp counter, read as nanoseconds. In a guest of QEMU with `-icount
    /// shift=0` the counter counts nanoseconds, and QEMU itself sends the packets.
    Tsc,
}

impl Stamps {
    /// The current time of this clock, in nanoseconds.
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: every x86-64 processor has the instruction `rdtsc`.
            Self::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            _ => now(),
        }
    }
}
