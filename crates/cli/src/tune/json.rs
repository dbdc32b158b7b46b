// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON of `weir tune`: docs/tune.md explains it.
use serde_json::{Error, json, to_string_pretty, to_value};
use weir_tune::{Conflict, Session};

use super::conflict::demands;
use super::summary::Summary;

/// `{"feasible": true, "system": …, "sources": […], …}`.
pub(super) fn text(summary: &Summary) -> Result<String, Error> {
    let mut value = json!({ "feasible": true });
    if let (Some(all), serde_json::Value::Object(of)) = (value.as_object_mut(), to_value(summary)?)
    {
        all.extend(of);
    }
    to_string_pretty(&value)
}

/// `{"feasible": false, "system": …, "conflict": [{"deadline": "control"}, {"rate": "uart"}],
/// "told": "…"}`.
pub(super) fn conflict(
    session: &Session,
    conflict: &Conflict,
    told: &str,
) -> Result<String, Error> {
    let demands: Vec<_> = demands(session, conflict)
        .into_iter()
        .map(|demand| json!({ demand.kind: demand.name, "value": demand.value }))
        .collect();
    to_string_pretty(&json!({
        "feasible": false,
        "system": session.system().name,
        "conflict": demands,
        "told": told,
    }))
}
