// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a run: its longest time, and the signals that end it early.
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock;

/// Longest time of a run, in nanoseconds: 10 minutes. A flood, or a loop at a real-time priority,
/// must end even if it is forgotten.
pub const LONGEST: u64 = 600_000_000_000;

/// A time of at least one nanosecond and at most [`LONGEST`], as a command line gives it: `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The time in nanoseconds.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.0
    }
}

/// The times here are counted in cycles of one nanosecond.
const CLOCK_HZ: u64 = 1_000_000_000;

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time: weir_model::Duration = text.parse().map_err(|error| format!("{error}"))?;
        match time.cycles(CLOCK_HZ).map_err(|error| format!("{error}"))? {
            nanoseconds @ 1..=LONGEST => Ok(Self(nanoseconds)),
            0 => Err(format!("`{text}` is less than a nanosecond")),
            _ => Err(format!(
                "`{text}` is more than 10 minutes, the longest that anything runs here"
            )),
        }
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Lets SIGINT and SIGTERM end a run early. The run still prints its result.
///
/// # Errors
/// The system refuses.
pub fn stop_on_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all zeros is a valid sigaction: no flags (so that a wait for packets is
        // interrupted) and an empty mask. The handler only stores an atomic.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// End of a run.
#[derive(Debug, Clone, Copy)]
pub struct End(u64);

impl End {
    /// The end that comes after `time`, counted from now.
    #[must_use]
    pub fn after(time: Time) -> Self {
        Self(clock::now() + time.nanoseconds())
    }

    /// The end by the monotonic clock, in nanoseconds.
    #[must_use]
    pub fn at(self) -> u64 {
        self.0
    }

    /// Whether the run is over at `now`, or a signal has ended it.
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        now >= self.0 || STOPPED.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_bounds() {
        assert_eq!("1.5ms".parse(), Ok(Time(1_500_000)));
        assert_eq!("600s".parse(), Ok(Time(LONGEST)));
        for (text, says) in [
            ("601s", "10 minutes"),
            ("0s", "zero"),
            ("soon", "soon"),
            ("1e30s", ""),
        ] {
            let error = text.parse::<Time>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
