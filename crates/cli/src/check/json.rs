// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole answer as JSON (docs/check.md).
use serde::Serialize;
use weir_analysis::certificate::Certificate;
use weir_analysis::check::CheckReport;
use weir_analysis::{Analysis, certificate};
use weir_model::System;

use super::observed::Comparison;
use super::verdict;
use crate::output::About;
use crate::words::CycleClock;

/// Increased when a key changes its meaning or is removed; keys may be added.
const VERSION: u32 = 1;

#[derive(Serialize)]
pub(super) struct CheckAnswer<'a> {
    check: u32,
    system: About<'a>,
    sentence: String,
    #[serde(flatten)]
    report: &'a CheckReport,
    observed: Option<&'a Comparison>,
    certificate: Certificate<'a>,
}

/// The whole answer.
pub(super) fn answer<'a>(
    system: &'a System,
    analysis: &'a Analysis,
    report: &'a CheckReport,
    observed: Option<&'a Comparison>,
) -> CheckAnswer<'a> {
    let sentence = verdict::sentence(report, CycleClock::of(system));
    CheckAnswer {
        check: VERSION,
        system: About::of(system),
        sentence: format!("{}: {sentence}", verdict::word(report.verdict)),
        report,
        observed,
        certificate: certificate(system, analysis),
    }
}
