// SPDX-License-Identifier: GPL-3.0-or-later
//! What a file of an experiment in the guest says.
use serde::Deserialize;
use weir_model::Duration;

use crate::experiment::file::Quantity;
use crate::experiment::series::formula::Template;
use crate::experiment::series::{Axis, SeriesSpec};

/// The parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::experiment) struct LinuxSpec {
    /// As `boards/linux/build` takes it, of variants that name none.
    pub kernel: String,
    /// Of the floods; every point is run with each.
    pub seeds: Vec<u64>,
    /// What `--quick` runs in place of the axis and the seeds.
    pub quick: Option<QuickSpec>,
    /// What the guest's shell does first.
    #[serde(default)]
    pub prepare: String,
    /// What arrives.
    pub feed: Vec<FeedSpec>,
    /// For how long it arrives, from the begin of the process that is waited for.
    pub feed_for: Quantity<Duration>,
    /// What runs in the guest.
    pub process: Vec<ProcessSpec>,
    /// What differs from point to point.
    pub x: Axis,
    /// The ways to run the guest.
    pub variant: Vec<VariantSpec>,
    /// What is looked at, over the names that [`super::values`] lists.
    pub series: Vec<SeriesSpec>,
}

/// A part of the runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment) struct QuickSpec {
    pub values: Vec<f64>,
    pub seeds: Vec<u64>,
}

/// Packets; where a pattern depends on x, there are none at x = 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment) struct FeedSpec {
    /// Its port is 5000 + flow.
    pub flow: u16,
    /// Of the UDP payload.
    pub bytes: u16,
    /// As `weir-load send --pattern` takes it.
    pub pattern: Template,
}

/// A program that prints JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment) struct ProcessSpec {
    /// Before the names of its values.
    pub id: String,
    /// For the guest's shell, where `$speed` is what `weir-load spin` calls so. The flood begins before the one that is waited for, and ends after it; the others
    /// are servers, which say `ready` on their standard error, and are ended by SIGTERM.
    pub command: String,
    /// Whether it is waited for: of exactly one process.
    #[serde(default)]
    pub awaited: bool,
}

/// A way to run the guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiment) struct VariantSpec {
    /// Before the names of what is counted in its runs.
    pub id: String,
    /// In place of the experiment's.
    pub kernel: Option<String>,
    /// What the guest's shell does after the experiment's own lines.
    #[serde(default)]
    pub prepare: String,
}

impl LinuxSpec {
    /// Keeps what `--quick` runs; false if nothing says what that is.
    pub fn shorten(&mut self) -> bool {
        let Some(quick) = self.quick.clone() else {
            return false;
        };
        self.x.values = quick.values;
        self.seeds = quick.seeds;
        true
    }

    /// The kernel of a variant.
    pub fn kernel_of<'a>(&'a self, variant: &'a VariantSpec) -> &'a str {
        variant.kernel.as_ref().unwrap_or(&self.kernel)
    }
}
