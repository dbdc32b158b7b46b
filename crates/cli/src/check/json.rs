// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON form of the whole answer (docs/check.md).
use serde::Serialize;
use weir_analysis::certificate::Certificate;
use weir_analysis::check::CheckReport;
use weir_analysis::{Analysis, certificate};
use weir_model::System;

use super::observed::Comparison;
use super::verdict;
use crate::output::About;
use crate::words::CycleClock;

/// The version of the JSON form. It is increased when a key is removed or changes its meaning. New
/// keys do not change it.
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

/// Returns the whole answer.
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
