// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole answer as JSON (docs/check.md).
use serde::Serialize;
use weir_analysis::certificate::Certificate;
use weir_analysis::check::Report;
use weir_analysis::{Analysis, certificate};
use weir_model::System;

use super::text::Clock;
use super::verdict;

/// Raised when a key changes its meaning or goes; new keys may come.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Answer<'a> {
    check: u32,
    system: About<'a>,
    sentence: String,
    #[serde(flatten)]
    report: &'a Report,
    certificate: Certificate<'a>,
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    sha256: &'a str,
    board: Option<&'a str>,
    flavour: Option<&'a str>,
    clock_hz: u64,
}

/// The answer as JSON text.
pub(super) fn text(
    system: &System,
    analysis: &Analysis,
    report: &Report,
) -> serde_json::Result<String> {
    let sentence = verdict::sentence(report, Clock::of(system));
    serde_json::to_string_pretty(&Answer {
        check: VERSION,
        system: About {
            name: &system.name,
            sha256: &system.sha256,
            board: system.cpu.board.as_deref(),
            flavour: system.cpu.flavour.as_deref(),
            clock_hz: system.cpu.clock_hz,
        },
        sentence: format!("{}: {sentence}", verdict::word(report.verdict)),
        report,
        certificate: certificate(system, analysis),
    })
}
