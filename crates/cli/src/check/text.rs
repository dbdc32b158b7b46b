// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the whole answer as text.
use std::path::Path;

use weir_analysis::check::{CheckReport, Verdict};
use weir_model::System;
use weir_report::Emphasis;
use weir_report::terminal::wrapped;

use super::observed::Comparison;
use super::{advice, assumptions, tables, verdict};
use crate::tables::Format;
use crate::words::{CycleClock, title};

/// Returns the whole text.
pub(super) fn text(
    system: &System,
    report: &CheckReport,
    seen: Option<&Comparison>,
    file: &Path,
    format: Format,
) -> String {
    let clock = CycleClock::of(system);
    let mut parts = vec![
        wrapped(&title(system), "", "  "),
        tables::rows(report, clock, format),
        tables::without_limits(report, clock, format),
        tables::sources(report, format),
        tables::flows(report, clock, format),
        said(report, clock, format),
        advice::text(system, report, clock, file),
        seen.map_or_else(String::new, |seen| seen.text(format)),
        assumptions::text(report, clock),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn said(report: &CheckReport, clock: CycleClock, format: Format) -> String {
    let word = verdict::word(report.verdict);
    let sentence = wrapped(
        &format!("{word}: {}", verdict::sentence(report, clock)),
        "",
        "  ",
    );
    let emphasis = match report.verdict {
        Verdict::Guaranteed => Emphasis::Good,
        Verdict::NotGuaranteed | Verdict::NotProven => Emphasis::Bad,
    };
    match sentence.strip_prefix(word) {
        Some(rest) => format!("{}{rest}", emphasis.paint(word, format.coloured)),
        None => sentence,
    }
}
