// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON form of the result of `weir tune`, which docs/tune.md explains.
use serde::Serialize;
use serde_json::{Value, json};
use weir_analysis::tune::{Conflict, Session};

use super::conflict::demands;
use super::summary::Summary;

/// The answer if limits were found: `{"feasible": true, "system": …, "sources": […], …}`.
#[derive(Serialize)]
pub(super) struct TuneAnswer<'a> {
    pub feasible: bool,
    #[serde(flatten)]
    pub summary: &'a Summary,
}

/// The answer if no limits were found: `{"feasible": false, "system": …, "conflict": [{"deadline":
/// "control"}, {"rate": "uart"}], "told": "…"}`.
pub(super) fn conflict(session: &Session, conflict: &Conflict, told: &[String]) -> Value {
    let demands: Vec<_> = demands(session, conflict)
        .into_iter()
        .map(|demand| json!({ demand.kind: demand.name, "value": demand.value }))
        .collect();
    json!({
        "feasible": false,
        "system": session.system().name,
        "conflict": demands,
        "told": told.join(". ") + ".",
    })
}
