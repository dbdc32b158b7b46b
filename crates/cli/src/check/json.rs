// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole answer as JSON (docs/check.md).
use serde::Serialize;
use weir_analysis::certificate::Certificate;
use weir_analysis::check::CheckReport;
use weir_analysis::{Analysis, certificate};
use weir_model::System;

use super::observed::Observed;
use super::verdict;
use crate::output::About;
use crate::words::Clock;

/// Raised when a key changes its meaning or goes; new keys may come.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Answer<'a> {
    check: u32,
    system: About<'a>,
    sentence: String,
    #[serde(flatten)]
    report: &'a CheckReport,
    observed: Option<&'a Observed>,
    certificate: Certificate<'a>,
}

/// The answer as JSON text.
pub(super) fn text(
    system: &System,
    analysis: &Analysis,
    report: &CheckReport,
    observed: Option<&Observed>,
) -> serde_json::Result<String> {
    let sentence = verdict::sentence(report, Clock::of(system));
    serde_json::to_string_pretty(&Answer {
        check: VERSION,
        system: About::of(system),
        sentence: format!("{}: {sentence}", verdict::word(report.verdict)),
        report,
        observed,
        certificate: certificate(system, analysis),
    })
}
