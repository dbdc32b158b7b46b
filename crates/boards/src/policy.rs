// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policies and timings of limits, by the names that files give them.

/// The policies of core/CONTRACTS.md, and polling (regehr2005 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Every request is served.
    Off,
    /// A minimum time between two requests (LIMIT-STRICT-1).
    Strict,
    /// Strict with nominal instants (LIMIT-PACED-1).
    Paced,
    /// N requests per period (LIMIT-BURSTY-1 and -2).
    Bursty,
    /// A token bucket (LIMIT-BUCKET-1).
    Bucket,
    /// The source has no interrupt of its own; a timer polls it.
    Poll,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Strict,
        Self::Paced,
        Self::Bursty,
        Self::Bucket,
        Self::Poll,
    ];

    /// The name in system files, certificates and the costs of a board; C has the same in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Strict => "strict",
            Self::Paced => "paced",
            Self::Bursty => "bursty",
            Self::Bucket => "bucket",
            Self::Poll => "poll",
        }
    }

    /// Does a limit of this policy count requests, so that it has a burst?
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Bursty | Self::Bucket)
    }
}

/// When a limiter masks its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// With the request that used up what the policy allows.
    Eager,
    /// With the first request beyond it.
    Lazy,
    /// Bursty only: the period begins with a request.
    OneShot,
}

impl Timing {
    /// Every timing.
    pub const ALL: [Self; 3] = [Self::Eager, Self::Lazy, Self::OneShot];

    /// The name in system files, certificates and the costs of a board; C has the same in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::OneShot => "one_shot",
        }
    }
}
