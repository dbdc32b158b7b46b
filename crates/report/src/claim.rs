// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured value and the goal that it is compared with.
use std::fmt;

use serde::Serialize;

use crate::number::short;

/// The goal of a measured value. NaN meets no goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The value must be at most this number.
    AtMost(f64),
    /// The value must be at least this number.
    AtLeast(f64),
    /// The value must be exactly this number.
    Equal(f64),
    /// The value must lie between these two numbers, both included.
    Within(f64, f64),
    /// The value is shown for comparison and not judged.
    Shown,
}

impl Goal {
    /// Returns whether `measured` meets the goal.
    #[must_use]
    pub fn is_met_by(self, measured: f64) -> bool {
        match self {
            Self::AtMost(most) => measured <= most,
            Self::AtLeast(least) => measured >= least,
            // The comparison is exact: a count that should be 0 must be 0, and there is no sensible
            // tolerance.
            #[allow(clippy::float_cmp)]
            Self::Equal(value) => measured == value,
            Self::Within(least, most) => (least..=most).contains(&measured),
            Self::Shown => !measured.is_nan(),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {}", short(*most)),
            Self::AtLeast(least) => write!(f, "≥ {}", short(*least)),
            Self::Equal(value) => write!(f, "= {}", short(*value)),
            Self::Within(least, most) => write!(f, "{} to {}", short(*least), short(*most)),
            Self::Shown => f.write_str("-"),
        }
    }
}

/// A claim with its measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The name of the claim, unique within its report.
    pub id: String,
    /// The meaning of the value in words, for readers of a table.
    pub what: String,
    /// Unit of `paper`, `goal` and `measured`.
    pub unit: String,
    /// The value that the paper states. `None` if the paper states none.
    pub paper: Option<f64>,
    /// Goal of the measured value.
    pub goal: Goal,
    /// The limit that the measured value must keep while the goal is known to be missed. `None` if
    /// the goal is expected to be met.
    pub today: Option<Goal>,
    /// The measured value.
    pub measured: f64,
}

/// How a measured value compares with its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The value meets its goal.
    Met,
    /// The value is a number and has no goal.
    Shown,
    /// The value misses its goal, as is known, but keeps the limit `today`.
    Missed,
    /// The value meets neither its goal nor a limit `today`.
    NotMet,
}

impl Claim {
    /// Returns whether the goal is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.goal.is_met_by(self.measured)
    }

    /// Compares the measured value with the goal.
    #[must_use]
    pub fn verdict(&self) -> ClaimVerdict {
        match self.today {
            _ if self.is_met() && self.goal == Goal::Shown => ClaimVerdict::Shown,
            _ if self.is_met() => ClaimVerdict::Met,
            Some(today) if today.is_met_by(self.measured) => ClaimVerdict::Missed,
            _ => ClaimVerdict::NotMet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, ClaimVerdict, Goal};

    fn claim(goal: Goal, today: Option<Goal>, measured: f64) -> Claim {
        Claim {
            id: String::new(),
            what: String::new(),
            unit: String::new(),
            paper: None,
            goal,
            today,
            measured,
        }
    }

    #[test]
    fn what_is_only_shown_is_a_number() {
        let verdict = |measured| claim(Goal::Shown, None, measured).verdict();
        assert_eq!(verdict(-1.0), ClaimVerdict::Shown);
        assert_eq!(verdict(f64::NAN), ClaimVerdict::NotMet);
    }

    #[test]
    fn a_goal_that_is_missed_as_known_may_not_fall_behind() {
        let verdict = |today, measured| claim(Goal::AtMost(1.0), today, measured).verdict();
        let today = Some(Goal::AtMost(2.0));
        assert_eq!(verdict(None, 1.5), ClaimVerdict::NotMet);
        assert_eq!(verdict(today, 1.0), ClaimVerdict::Met);
        assert_eq!(verdict(today, 2.0), ClaimVerdict::Missed);
        assert_eq!(verdict(today, 2.1), ClaimVerdict::NotMet);
        assert_eq!(verdict(today, f64::NAN), ClaimVerdict::NotMet);
    }

    #[test]
    fn a_goal_is_met_on_its_bound_and_not_beyond() {
        assert!(Goal::AtMost(4.6).is_met_by(4.6) && !Goal::AtMost(4.6).is_met_by(4.601));
        assert!(Goal::AtLeast(97.0).is_met_by(97.0) && !Goal::AtLeast(97.0).is_met_by(96.9));
        assert!(Goal::Equal(0.0).is_met_by(0.0) && !Goal::Equal(0.0).is_met_by(1.0));
        let within = Goal::Within(1.0, 2.0);
        assert!(within.is_met_by(1.0) && within.is_met_by(2.0));
        assert!(!within.is_met_by(0.9) && !within.is_met_by(2.1));
    }

    #[test]
    fn what_is_not_a_number_meets_no_goal() {
        for goal in [
            Goal::AtMost(1.0),
            Goal::AtLeast(1.0),
            Goal::Equal(1.0),
            Goal::Within(0.0, 1.0),
            Goal::Shown,
        ] {
            assert!(!goal.is_met_by(f64::NAN), "{goal}");
        }
    }
}
