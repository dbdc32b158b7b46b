// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policies and timings of limits, with their names in files.

/// The policies of core/CONTRACTS.md, and polling (regehr2005 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Every request is served.
    Off,
    /// The limit keeps a minimum time between two requests (LIMIT-STRICT-1).
    Strict,
    /// The limit is strict with nominal instants (LIMIT-PACED-1).
    Paced,
    /// The limit serves N requests per period (LIMIT-BURSTY-1 and -2).
    Bursty,
    /// The limit is a token bucket (LIMIT-BUCKET-1).
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

    /// The policy's name in system files, certificates and the costs of a board. C has the same
    /// name in capitals.
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

    /// Whether a limit of this policy counts requests, so that it has a burst.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Bursty | Self::Bucket)
    }
}

/// When a limiter masks its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// The limiter masks with the request that uses up what the policy allows.
    Eager,
    /// The limiter masks with the first request beyond what the policy allows.
    Lazy,
    /// The period begins with a request. Only bursty limits have this timing.
    OneShot,
}

impl Timing {
    /// Every timing.
    pub const ALL: [Self; 3] = [Self::Eager, Self::Lazy, Self::OneShot];

    /// The timing's name in system files, certificates and the costs of a board. C has the same
    /// name in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::OneShot => "one_shot",
        }
    }
}
