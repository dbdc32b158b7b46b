// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured value and the goal that it is compared with.
use std::fmt;

use serde::Serialize;

use crate::number::short;

/// Goal of a measured value. A value that is not a number meets no goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// Exactly this.
    Equal(f64),
    /// From the first to the second, both included.
    Within(f64, f64),
    /// Any number: the value is shown beside others, and not judged.
    Shown,
}

impl Goal {
    /// Whether `measured` meets the goal.
    #[must_use]
    pub fn is_met_by(self, measured: f64) -> bool {
        match self {
            Self::AtMost(most) => measured <= most,
            Self::AtLeast(least) => measured >= least,
            // A count that should be 0 is exactly 0: there is no tolerance to choose.
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
    /// Its name, unique in its report.
    pub id: String,
    /// Meaning in words, for the reader of a table.
    pub what: String,
    /// Unit of `paper`, `goal` and `measured`.
    pub unit: String,
    /// Value that the paper states.
    pub paper: Option<f64>,
    /// Goal of the measured value.
    pub goal: Goal,
    /// The value that the measured one must not fall behind while the goal is known to be missed.
    pub today: Option<Goal>,
    /// The measured value.
    pub measured: f64,
}

/// How a measured value stands to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// It is as it should be.
    Met,
    /// It is a number, and has no goal.
    Shown,
    /// It is not, as was known, and it did not fall behind.
    Missed,
    /// It is not.
    NotMet,
}

impl Claim {
    /// Whether the goal is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.goal.is_met_by(self.measured)
    }

    /// How the measured value stands to the goal.
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
