// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the results of `weir check` independently.
//!
//! The output of `weir check --json` contains a certificate (docs/certificate.md). It describes the
//! system in cycles and gives, for each interrupt, task and bottom half, the windows that prove its
//! response time. Finding the windows requires a search; checking them does not. [`verify`] inserts
//! each window once into the equations of docs/analysis.md. This crate shares no code with the
//! analysis, so an error goes unnoticed only if both make it.
mod answer;
mod buffers;
mod curve;
mod flows;
mod format;
mod rows;
mod source;
mod system;
mod units;

use std::collections::HashSet;

use serde::Serialize;

pub use format::{BadInput, VERSION, Verdict, description};
use format::{Certificate, Expiry, Kind, Outcome, Policy, System, Unit};
use units::Units;

/// The result of checking a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The name of the system.
    pub name: String,
    /// The SHA-256 of the system file, in hexadecimal, as the certificate states it.
    pub sha256: String,
    /// The conclusion of the certificate. It is valid if nothing was rejected.
    pub verdict: Verdict,
    /// The number of interrupts, tasks and bottom halves that were checked.
    pub units: usize,
    /// The number of busy windows, starts and ends that were inserted into the equations.
    pub fixed_points: usize,
    /// The keys beside the certificate that do not follow from it and were not checked.
    pub unchecked: Vec<String>,
    /// The errors in the order in which they were found. Empty if the certificate is valid.
    pub rejections: Vec<Rejection>,
}

/// A claim of a certificate that is wrong or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// The name of the unit or flow, or the key.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl Report {
    /// Returns whether nothing was rejected.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.rejections.is_empty()
    }
}

/// Checks the certificate in `text`, which is a bare certificate or the output of `weir check
/// --json`. The rows, the flows and the verdict of that output are compared with the certificate,
/// too.
///
/// The running time is proportional to the number of fixed points times the number of units;
/// docs/certificate.md has figures.
///
/// # Errors
/// Fails with [`BadInput`] if the text is not a certificate, or if it describes an impossible
/// system.
pub fn verify(text: &[u8]) -> Result<Report, BadInput> {
    let certificate = format::read(text)?;
    system::validate(&certificate.system)?;
    let mut report = Report {
        name: certificate.system.name.clone(),
        sha256: certificate.system.sha256.clone(),
        verdict: certificate.verdict,
        units: 0,
        fixed_points: 0,
        unchecked: Vec::new(),
        rejections: Vec::new(),
    };
    let (stated, sources) = (
        certificate.latencies.len(),
        certificate.system.sources.len(),
    );
    if stated != sources {
        report.reject(
            "latencies",
            format!("{stated} numbers for {sources} sources"),
        );
        return Ok(report);
    }
    let units = Units::new(&certificate.system, &certificate.latencies)?;
    report.units = units.list.len();
    let claims = report.check_rows(&certificate, &units);
    report.check_latencies(&certificate, &units, &claims);
    let flows_hold = report.check_flows(&certificate, &units, &claims);
    report.check_verdict(&certificate, &units, &claims, flows_hold);
    if let Some(answer) = format::answer(text)? {
        report.check_answer(answer, &certificate.system, &claims, &certificate.flows);
    }
    Ok(report)
}

/// A response bound that a row claims.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    response: u64,
    start_delay: u64,
}

/// The claims of the rows, in the order of [`Units::list`]. `None` means that a row claims no
/// bound.
pub(crate) struct Claims<'a> {
    units: &'a Units<'a>,
    of: Vec<Option<Claim>>,
}

impl Claims<'_> {
    /// Returns the claim about a unit. `None` if the system has no such unit, `Some(None)` if the
    /// unit has no bound.
    fn find(&self, unit: Unit) -> Option<Option<Claim>> {
        self.of.get(self.units.find(unit)?).copied()
    }

    fn deadline(&self, unit: Unit) -> Option<u64> {
        self.units.list.get(self.units.find(unit)?)?.deadline
    }
}

impl Report {
    fn reject(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.rejections.push(Rejection {
            place: place.into(),
            what: what.into(),
        });
    }

    fn check_rows<'a>(&mut self, certificate: &Certificate, units: &'a Units) -> Claims<'a> {
        let mut claims = Claims {
            units,
            of: vec![None; units.list.len()],
        };
        let mut seen = HashSet::new();
        for (number, row) in certificate.rows.iter().enumerate() {
            let index = units.find(row.unit);
            let found =
                index.and_then(|index| Some((units.list.get(index)?, claims.of.get_mut(index)?)));
            let Some((expected, claim)) = found else {
                self.reject(format!("rows[{number}]"), "the system has no such unit");
                continue;
            };
            let place = name(&certificate.system, row.unit);
            if !seen.insert(row.unit) {
                self.reject(place, "there is more than one row");
                continue;
            }
            if let Outcome::Bound(bound) = &row.outcome {
                self.fixed_points = self
                    .fixed_points
                    .saturating_add(bound.jobs.len().saturating_mul(2).saturating_add(1));
                *claim = Some(Claim {
                    response: bound.response,
                    start_delay: bound.start_delay,
                });
            }
            if let Err(what) = rows::check(units, expected, &row.outcome) {
                self.reject(place, what);
            }
        }
        for expected in units.list.iter().filter(|of| !seen.contains(&of.unit)) {
            self.reject(name(&certificate.system, expected.unit), "there is no row");
        }
        claims
    }

    /// Checks that each timer latency is at least the bound in the rows, which were computed from
    /// that latency.
    fn check_latencies(&mut self, certificate: &Certificate, units: &Units, claims: &Claims) {
        let sources = certificate.system.sources.iter();
        for (index, (source, &stated)) in sources.zip(&certificate.latencies).enumerate() {
            let delay = |unit| match claims.find(unit) {
                Some(Some(claim)) => claim.start_delay,
                _ => u64::MAX,
            };
            let least = match source.limit.expiry {
                Some(Expiry::Shared(timer)) => delay(Unit(Kind::Timer, timer))
                    .saturating_add(units.longest_timer(timer).unwrap_or(u64::MAX)),
                Some(Expiry::Own(_))
                    if source.limit.policy != Policy::Poll && units.has_expiry(index) =>
                {
                    delay(Unit(Kind::Expiry, index))
                }
                _ => 0,
            };
            let least = least.min(source.limit.interval.saturating_sub(1));
            // The limiter measures the distance of requests by the start of their interrupts. If
            // one interrupt starts late, the next one seems to come too early.
            let line = if units.is_counted_on(index) {
                delay(Unit(Kind::Request, index))
            } else {
                0
            };
            let least = least.saturating_add(line);
            if stated < least {
                self.reject(
                    format!("latency of source `{}`", source.name),
                    format!("{stated}: its interrupts may begin {least} cycles late"),
                );
            }
        }
    }

    /// Checks the claims about flows. Returns whether all flows meet their deadlines.
    fn check_flows(&mut self, certificate: &Certificate, units: &Units, claims: &Claims) -> bool {
        let (stated, flows) = (certificate.flows.len(), certificate.system.flows.len());
        if stated != flows {
            self.reject("flows", format!("{stated} entries for {flows} flows"));
            return false;
        }
        let mut all = true;
        for (index, (flow, claim)) in certificate
            .system
            .flows
            .iter()
            .zip(&certificate.flows)
            .enumerate()
        {
            let Some(latency) = certificate.latencies.get(flow.source).copied() else {
                continue;
            };
            let derived = flows::Derived::new(&certificate.system, units, claims, index, latency);
            if let Err(what) = derived.allows(claim) {
                self.reject(format!("flow `{}`", flow.name), what);
            }
            all = all && flows::holds(&certificate.system, units, flow, claim);
        }
        all
    }

    fn check_verdict(
        &mut self,
        certificate: &Certificate,
        units: &Units,
        claims: &Claims,
        flows_hold: bool,
    ) {
        let rows_hold = units.list.iter().zip(&claims.of).all(|(of, claim)| {
            of.deadline
                .is_none_or(|deadline| claim.is_some_and(|claim| claim.response <= deadline))
        });
        let system = &certificate.system;
        let has_deadline = units.list.iter().any(|of| of.deadline.is_some())
            || system.flows.iter().any(|flow| flow.deadline.is_some());
        let is_proven = has_deadline && system.sources.iter().all(|of| of.max_work.is_some());
        let verdict = match (rows_hold && flows_hold, is_proven) {
            (false, _) => Verdict::NotGuaranteed,
            (true, false) => Verdict::NotProven,
            (true, true) => Verdict::Guaranteed,
        };
        if certificate.verdict != verdict {
            self.reject(
                "verdict",
                format!(
                    "`{}`, but the responses and the deadlines make it `{verdict}`",
                    certificate.verdict
                ),
            );
        }
    }
}

/// Returns the name of a unit as users write it.
fn name(system: &System, Unit(kind, index): Unit) -> String {
    let of = |name: Option<&String>| name.map_or("?", String::as_str).to_owned();
    let source = || of(system.sources.get(index).map(|of| &of.name));
    match kind {
        Kind::Request => format!("interrupt of source `{}`", source()),
        Kind::Expiry => format!("timer of source `{}`", source()),
        Kind::Timer => format!(
            "timer `{}`",
            of(system.timers.get(index).map(|of| &of.name))
        ),
        Kind::Task => format!(
            "task `{}`",
            of(system.receivers.get(index).map(|of| &of.name))
        ),
        Kind::Delivered => {
            let flow = system.flows.get(index);
            let receiver = flow.and_then(|flow| system.receivers.get(flow.receiver));
            format!(
                "task `{}` for flow `{}`",
                of(receiver.map(|of| &of.name)),
                of(flow.map(|of| &of.name))
            )
        }
        Kind::BottomHalf => format!(
            "bottom half of flow `{}`",
            of(system.flows.get(index).map(|of| &of.name))
        ),
    }
}
