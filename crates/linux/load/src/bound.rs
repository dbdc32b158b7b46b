// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a run ends: at the end of its time, or at a signal.
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::clock;

/// The longest time of a run, in nanoseconds: 10 minutes. A forgotten flood, or a forgotten job of
/// real-time priority, must end by itself.
pub const LONGEST: u64 = 600_000_000_000;

/// A time of at least one nanosecond and at most [`LONGEST`]. The command line writes it with a
/// unit: `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The time in nanoseconds.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.0
    }
}

/// The clock frequency with which [`Time`] parses a duration: one cycle is one nanosecond.
const CLOCK_HZ: u64 = 1_000_000_000;

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time: weir_model::Duration = text.parse().map_err(|error| format!("{error}"))?;
        match time.cycles(CLOCK_HZ).map_err(|error| format!("{error}"))? {
            nanoseconds @ 1..=LONGEST => Ok(Self(nanoseconds)),
            0 => Err(format!("`{text}` is less than a nanosecond")),
            _ => Err(format!(
                "`{text}` is longer than the longest run, 10 minutes"
            )),
        }
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Makes SIGINT and SIGTERM end a run early. The run still prints its result.
///
/// # Errors
/// Fails if the system refuses the signal handlers.
pub fn stop_on_signals() -> nix::Result<()> {
    // SA_RESTART is not set, so that a signal interrupts a wait for packets.
    let handler = SigHandler::Handler(stop);
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic variable.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// The instant at which a run ends.
#[derive(Debug, Clone, Copy)]
pub struct End(u64);

impl End {
    /// The end of a run that begins now and lasts `time`.
    #[must_use]
    pub fn after(time: Time) -> Self {
        Self(clock::now() + time.nanoseconds())
    }

    /// The instant at which the run ends, by the monotonic clock, in nanoseconds.
    #[must_use]
    pub fn instant(self) -> u64 {
        self.0
    }

    /// Whether the run is over at `now`: its time has passed, or a signal has come.
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
