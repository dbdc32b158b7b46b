// SPDX-License-Identifier: MIT OR Apache-2.0
//! Urgency: Linux's scheduling policies as one number, both for processes and for the work that the
//! kernel does for them.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sched::SchedPolicy;

/// How urgent a process is, from 0 to 99; higher is more urgent.
///
/// Urgency 0 is that of every process that is not real-time, whatever its nice value. The urgencies
/// 1 to 99 are the priorities of SCHED_FIFO and SCHED_RR. A process of SCHED_DEADLINE, which
/// precedes all of these, has urgency 99.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Urgency(u8);

/// The number is above 99, so no process of Linux has this urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an urgency of {0}: Linux has 0 (not real-time) and 1 to 99 (the priorities of SCHED_FIFO and SCHED_RR)"
)]
pub struct TooUrgent(pub u8);

impl Urgency {
    /// Urgency of processes that are not real-time.
    pub const ORDINARY: Self = Self(0);
    /// Urgency of SCHED_FIFO 99 and of SCHED_DEADLINE.
    pub const MOST: Self = Self(99);

    /// Creates the urgency `number`.
    ///
    /// # Errors
    /// Fails when the number is above 99.
    pub const fn new(number: u8) -> Result<Self, TooUrgent> {
        if number <= Self::MOST.0 {
            Ok(Self(number))
        } else {
            Err(TooUrgent(number))
        }
    }

    /// The number, from 0 to 99.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Urgency of a process with `policy`.
    #[must_use]
    pub const fn from_policy(policy: SchedPolicy) -> Self {
        match policy {
            SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
                if priority <= Self::MOST.0 {
                    Self(priority)
                } else {
                    Self::MOST
                }
            }
            SchedPolicy::Deadline { .. } => Self::MOST,
            SchedPolicy::Other { .. }
            | SchedPolicy::Batch { .. }
            | SchedPolicy::Idle
            | SchedPolicy::Extensible { .. } => Self::ORDINARY,
        }
    }

    /// Policy of kernel threads that work for a process of this urgency. It is SCHED_FIFO, since
    /// these threads wait for work and need no time slices. For urgency 0 it is SCHED_OTHER with
    /// nice 0.
    #[must_use]
    pub const fn policy(self) -> SchedPolicy {
        match self.0 {
            0 => SchedPolicy::Other { nice: 0 },
            priority => SchedPolicy::Fifo(priority),
        }
    }
}

impl TryFrom<u8> for Urgency {
    type Error = TooUrgent;

    fn try_from(number: u8) -> Result<Self, TooUrgent> {
        Self::new(number)
    }
}

impl From<Urgency> for u8 {
    fn from(urgency: Urgency) -> Self {
        urgency.0
    }
}

impl fmt::Display for Urgency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn follows_the_policies_of_linux() {
        let urgency = |policy| Urgency::from_policy(policy).get();
        assert_eq!(urgency(SchedPolicy::Other { nice: -20 }), 0);
        assert_eq!(urgency(SchedPolicy::Batch { nice: 19 }), 0);
        assert_eq!(urgency(SchedPolicy::Idle), 0);
        assert_eq!(urgency(SchedPolicy::Fifo(1)), 1);
        assert_eq!(urgency(SchedPolicy::RoundRobin(99)), 99);
        let period = Duration::from_millis(10);
        assert_eq!(
            urgency(SchedPolicy::Deadline {
                runtime: period / 10,
                deadline: period,
                period
            }),
            99
        );
    }

    #[test]
    fn a_thread_of_an_urgency_has_that_urgency() {
        for number in 0..=99 {
            let urgency = Urgency::new(number).unwrap();
            assert_eq!(Urgency::from_policy(urgency.policy()), urgency);
        }
    }

    #[test]
    fn refuses_what_linux_does_not_have() {
        assert_eq!(Urgency::new(100), Err(TooUrgent(100)));
        assert!(serde_json::from_str::<Urgency>("100").is_err());
        assert_eq!(
            serde_json::from_str::<Urgency>("99").unwrap(),
            Urgency::MOST
        );
    }
}
