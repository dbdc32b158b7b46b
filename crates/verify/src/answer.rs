// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the keys beside the certificate in the output of `weir check --json`. Readers take
//! numbers from these keys, so none of them may promise more than the certificate shows.
use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::buffers::room;
use crate::format::{FlowClaim, Kind, System, Unit, Verdict};
use crate::{Claims, Report, name};

/// The parts of the output that follow from the certificate.
#[derive(Deserialize)]
pub(crate) struct Answer {
    #[serde(rename = "certificate")]
    _certificate: IgnoredAny,
    system: Option<AnswerSystem>,
    verdict: Option<Verdict>,
    rows: Option<Vec<AnswerRow>>,
    flows: Option<Vec<AnswerFlow>>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct AnswerSystem {
    name: String,
    sha256: String,
    clock_hz: u64,
}

#[derive(Deserialize)]
struct AnswerRow {
    kind: RowKind,
    name: String,
    flow: Option<String>,
    #[serde(flatten)]
    bound: AnswerBound,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RowKind {
    Interrupt,
    Expiry,
    Timer,
    Task,
    BottomHalf,
}

#[derive(Deserialize)]
struct AnswerFlow {
    name: String,
    queue: Option<u64>,
    queue_needed: Option<u64>,
    #[serde(flatten)]
    bound: AnswerBound,
}

/// A response time and its deadline.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct AnswerBound {
    deadline_cycles: Option<u64>,
    state: State,
    response_cycles: Option<u64>,
    slack_cycles: Option<i64>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Missed,
    Unbounded,
}

impl AnswerBound {
    fn new(deadline: Option<u64>, response: Option<u64>) -> Self {
        let slack = |deadline: u64| {
            let slack = i128::from(deadline) - i128::from(response?);
            Some(i64::try_from(slack).unwrap_or(if slack < 0 { i64::MIN } else { i64::MAX }))
        };
        Self {
            deadline_cycles: deadline,
            state: match (response, deadline) {
                (None, _) => State::Unbounded,
                (Some(response), Some(deadline)) if response > deadline => State::Missed,
                _ => State::Ok,
            },
            response_cycles: response,
            slack_cycles: deadline.and_then(slack),
        }
    }

    fn check(&self, shown: &Self) -> Result<(), String> {
        if self == shown {
            return Ok(());
        }
        let text = |of: &Self| {
            let number = |of: Option<u64>| of.map_or("none".to_owned(), |of| of.to_string());
            format!(
                "response {}, deadline {}, slack {}, {:?}",
                number(of.response_cycles),
                number(of.deadline_cycles),
                of.slack_cycles
                    .map_or("none".to_owned(), |of| of.to_string()),
                of.state
            )
        };
        Err(format!(
            "{}; by the certificate it is {}",
            text(self),
            text(shown)
        ))
    }
}

impl Report {
    /// Compares `answer` with the certificate and with the verdict of the report. Records the keys
    /// that do not follow from the certificate.
    pub(crate) fn check_answer(
        &mut self,
        answer: Answer,
        system: &System,
        claims: &Claims,
        flow_claims: &[FlowClaim],
    ) {
        let (has_rows, has_flows) = (answer.rows.is_some(), answer.flows.is_some());
        let has_system = answer.system.is_some();
        let other_system = answer.system.is_some_and(|of| {
            (&of.name, &of.sha256, of.clock_hz)
                != (&system.name, &system.sha256, system.cpu.clock_hz)
        });
        let other_verdict = answer
            .verdict
            .is_some_and(|verdict| verdict != self.verdict);
        for (is, key) in [(other_system, "system"), (other_verdict, "verdict")] {
            if is {
                let place = format!("beside the certificate, {key}");
                self.reject(place, "it is not the certificate's");
            }
        }
        self.check_answer_rows(answer.rows.as_deref(), system, claims);
        self.check_answer_flows(answer.flows.as_deref(), system, flow_claims);
        let stated = answer
            .others
            .into_iter()
            .filter(|(_, value)| !value.is_null());
        self.unchecked = stated.map(|(key, _)| key).collect();
        let partly = [
            (has_rows, "rows"),
            (has_flows, "flows"),
            (has_system, "system"),
        ];
        let partly = partly.into_iter().filter(|(has, _)| *has);
        self.unchecked
            .extend(partly.map(|(_, key)| format!("the rest of {key}")));
    }

    fn check_answer_rows(&mut self, rows: Option<&[AnswerRow]>, system: &System, claims: &Claims) {
        let Some(rows) = rows else {
            return;
        };
        let mut seen = HashSet::new();
        for (number, row) in rows.iter().enumerate() {
            let place = format!("beside the certificate, rows[{number}]");
            let unit = row.unit(system);
            let covered = unit.and_then(|unit| Some((unit, claims.find(unit)?)));
            let Some((unit, claim)) = covered else {
                self.reject(place, "the certificate covers no such row");
                continue;
            };
            if !seen.insert(unit) {
                self.reject(
                    place,
                    format!("there is more than one {}", name(system, unit)),
                );
                continue;
            }
            let deadline = claims.deadline(unit);
            let shown = AnswerBound::new(deadline, claim.map(|claim| claim.response));
            if let Err(what) = row.bound.check(&shown) {
                self.reject(place, what);
            }
        }
        for unit in claims.units.list.iter().map(|of| of.unit) {
            if !seen.contains(&unit) {
                let what = format!("there is no row of the {}", name(system, unit));
                self.reject("beside the certificate, rows", what);
            }
        }
    }

    fn check_answer_flows(
        &mut self,
        stated: Option<&[AnswerFlow]>,
        system: &System,
        claims: &[FlowClaim],
    ) {
        let Some(stated) = stated else {
            return;
        };
        let same = stated
            .iter()
            .map(|of| &of.name)
            .eq(system.flows.iter().map(|of| &of.name));
        if !same {
            self.reject(
                "beside the certificate, flows",
                "they are not the certificate's",
            );
            return;
        }
        for ((stated, flow), claim) in stated.iter().zip(&system.flows).zip(claims) {
            let place = || format!("beside the certificate, flow `{}`", flow.name);
            let shown = AnswerBound::new(flow.deadline, claim.latency);
            if let Err(what) = stated.bound.check(&shown) {
                self.reject(place(), what);
            }
            if (stated.queue, stated.queue_needed) != (room(system, flow), claim.queue_needed) {
                self.reject(place(), "its queue is not the certificate's");
            }
        }
    }
}

impl AnswerRow {
    /// Returns the unit that the row describes. `None` if `system` has no unit of this name.
    fn unit(&self, system: &System) -> Option<Unit> {
        let source = || system.sources.iter().position(|of| of.name == self.name);
        let flow = |name: &str| system.flows.iter().position(|of| of.name == name);
        Some(match (self.kind, &self.flow) {
            (RowKind::Interrupt, None) => Unit(Kind::Request, source()?),
            (RowKind::Expiry, None) => Unit(Kind::Expiry, source()?),
            (RowKind::Timer, None) => {
                let timer = system.timers.iter().position(|of| of.name == self.name);
                Unit(Kind::Timer, timer?)
            }
            (RowKind::BottomHalf, None) => Unit(Kind::BottomHalf, flow(&self.name)?),
            (RowKind::Task, None) => {
                let task = system.receivers.iter().position(|of| of.name == self.name);
                Unit(Kind::Task, task?)
            }
            (RowKind::Task, Some(of)) => {
                let index = flow(of)?;
                let receiver = system.flows.get(index)?.receiver;
                let is_its = system.receivers.get(receiver)?.name == self.name;
                is_its.then_some(Unit(Kind::Delivered, index))?
            }
            (_, Some(_)) => return None,
        })
    }
}
