// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks that count nanoseconds.

fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing. Both clocks always exist, so the call cannot fail.
    unsafe { libc::clock_gettime(id, &mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The monotonic clock, the same in all processes and namespaces of a machine.
#[must_use]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time that the kernel has charged to this thread.
#[must_use]
pub fn charged() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until `then`, or until a signal comes.
pub fn sleep_until(then: u64) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(then / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(then % 1_000_000_000).unwrap_or(0),
    };
    // SAFETY: `time` is valid. For an absolute time nothing is written.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        );
    }
}

/// The clock that stamps packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Stamps {
    /// The machine's monotonic clock: sender and receiver are on one machine.
    #[default]
    Monotonic,
    /// The processor's time-stamp counter. It counts nanoseconds in a guest of QEMU with `-icount
    /// shift=0`, whose QEMU is the sender.
    Tsc,
}

impl Stamps {
    /// The time now.
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: every x86-64 processor has the instruction.
            Self::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            _ => now(),
        }
    }
}
