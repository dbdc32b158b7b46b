// SPDX-License-Identifier: MIT OR Apache-2.0
//! The highest rates at which common sources can interrupt (regehr2005 Table 1):
//! data/worst-rates.toml.
use std::sync::LazyLock;

use serde::Deserialize;

use crate::Rate;

/// A source of regehr2005 Table 1. Its worst rate is the rate at which its bits fill the line. A
/// source that was measured on a device has one bit per interrupt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorstRate {
    /// The source's name in system files.
    pub id: String,
    /// The bits per second of the line.
    pub bits_per_second: f64,
    /// The bits per interrupt.
    pub bits_per_interrupt: f64,
    /// The origin of the numbers.
    pub why: String,
}

impl WorstRate {
    /// The interrupts per second at worst.
    #[must_use]
    pub fn hertz(&self) -> f64 {
        self.bits_per_second / self.bits_per_interrupt
    }

    /// The worst rate. It is `None` for no source of the data that Weir includes.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_hertz(self.hertz()).ok()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RatesFile {
    source: Vec<WorstRate>,
}

static ALL: LazyLock<Vec<WorstRate>> = LazyLock::new(|| {
    let file: RatesFile =
        toml::from_str(include_str!("../data/worst-rates.toml")).unwrap_or_else(|error| {
            panic!("data/worst-rates.toml, which is part of this program: {error}")
        });
    file.source
});

/// All named sources, in ascending order of their rates.
#[must_use]
pub fn all() -> &'static [WorstRate] {
    &ALL
}

/// The source of this name; `None` if there is none.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static WorstRate> {
    all().iter().find(|rate| rate.id == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_rate_and_they_ascend() {
        let rates: Vec<f64> = all()
            .iter()
            .map(|source| source.rate().unwrap().hertz())
            .collect();
        assert_eq!(rates.len(), 11);
        assert!(rates.is_sorted(), "{rates:?}");
    }

    /// The number is that of regehr2005 Table 1.
    #[test]
    fn ethernet_is_as_fast_as_in_the_paper() {
        let hertz = by_name("ethernet-100").unwrap().hertz();
        assert!((hertz - 148_800.0).abs() < 100.0, "{hertz}");
    }
}
