// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks which keys of a limit do not go together.
use miette::SourceSpan;

use crate::diagnostics::Problems;
use crate::file::sections::Limit;
use crate::file::value::KeyValue;

/// The keys of a limit, each with whether it is stated and its place.
pub(super) struct Keys(Vec<(&'static str, bool, SourceSpan)>);

impl Keys {
    pub const ALL: [&'static str; 8] = [
        "timing",
        "place",
        "rate",
        "interval",
        "burst",
        "timer",
        "prescaler",
        "trigger",
    ];

    pub fn of(limit: &Limit) -> Self {
        fn key<T>(name: &'static str, key: &KeyValue<T>) -> (&'static str, bool, SourceSpan) {
            (name, key.is_stated(), key.at)
        }
        Self(vec![
            key("timing", &limit.timing),
            key("place", &limit.place),
            key("rate", &limit.rate),
            key("interval", &limit.interval),
            key("burst", &limit.burst),
            key("timer", &limit.timer),
            key("prescaler", &limit.prescaler),
            key("trigger", &limit.trigger),
        ])
    }

    /// Reports each of the keys `names` that is stated although it has no meaning together with
    /// `with`. The help tells the user to leave the key out, or to do `or_else`. Returns whether
    /// none of them is stated.
    pub fn refuse(
        &self,
        names: &[&str],
        with: &str,
        or_else: &str,
        problems: &mut Problems<'_>,
    ) -> bool {
        let mut none = true;
        for (name, _, at) in self
            .0
            .iter()
            .filter(|(name, stated, _)| *stated && names.contains(name))
        {
            problems.report(
                format!("`{name}` does not go with {with}"),
                *at,
                "contradicts",
                format!("leave `{name}` out, or {or_else}"),
            );
            none = false;
        }
        none
    }
}
