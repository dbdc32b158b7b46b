// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir check --observed`, which compares observations with the system file.

use crate::common::{Printed, check, json, node, verdict};
use serde_json::Value;

/// Runs `weir check` on the node with this content in the file for `--observed`.
fn observed(content: &str, extra: &[&str]) -> Printed {
    let folder = tempfile::TempDir::new().unwrap();
    let run = folder.path().join("run.json");
    std::fs::write(&run, content).unwrap();
    let mut arguments = vec!["--observed", run.to_str().unwrap()];
    arguments.extend(extra);
    check(node(&[]), &arguments)
}

#[test]
fn what_was_observed_is_held_against_the_file() {
    let (all, _) = json(&node(&[]));
    let source = &all["certificate"]["system"]["sources"][0];
    let (name, vector) = (source["name"].as_str().unwrap(), "INT0");
    let most = ["handler", "work"]
        .iter()
        .map(|key| source[key].as_u64().unwrap())
        .sum::<u64>()
        + source["limit"]["costs"]["request_served"].as_u64().unwrap()
        + all["certificate"]["system"]["flows"][0]["top_half"]
            .as_u64()
            .unwrap();
    let run = |cycles: u64, more: &str| {
        format!(
            "{{\"vectors\": [{{\"name\": \"{vector}\", \"taken\": 3, \"longest_cycles\": {cycles}}}{more}]}}"
        )
    };
    let kept = observed(&run(most, ""), &[]);
    assert_eq!(kept.code, Some(0), "{}{}", kept.out, kept.err);
    assert!(
        kept.out.contains("kept: 1 interrupt or source"),
        "{}",
        kept.out
    );

    let exceeded = observed(&run(most + 1, ""), &[]);
    assert_eq!(exceeded.code, Some(1));
    let said = format!(
        "exceeded: {name} took {} cycles in one interrupt (INT0)",
        most + 1
    );
    assert!(exceeded.out.contains(&said), "{}", exceeded.out);
    // The guarantee itself depends on the file only.
    assert!(verdict(&exceeded).starts_with("guaranteed"));

    let units = observed(&format!("{{\"work\": {{\"{name}\": 2}}}}"), &["--json"]);
    let value: Value = serde_json::from_str(&units.out).unwrap();
    assert_eq!(units.code, Some(1));
    let first = &value["observed"]["exceeded"][0];
    assert_eq!(
        (&first["name"], &first["what"]),
        (&name.into(), &"units".into())
    );
    assert_eq!((&first["seen"], &first["stated"]), (&2.into(), &1.into()));

    let more = ", {\"name\": \"TIMER0_OVF\", \"taken\": 1, \"longest_cycles\": 9}, {\"name\": \"ADC\", \"taken\": 0, \"longest_cycles\": 0}";
    let unknown = observed(&run(1, more), &[]);
    assert_eq!(unknown.code, Some(0));
    assert!(
        unknown.out.contains("knows nothing of TIMER0_OVF"),
        "{}",
        unknown.out
    );
}

#[test]
fn what_is_no_observation_is_refused() {
    for (content, message) in [
        ("", "is not the JSON"),
        ("{}", "says nothing of any interrupt"),
        ("{\"work\": {\"a\": -1}}", "is not the JSON"),
    ] {
        let printed = observed(content, &[]);
        assert_eq!(printed.code, Some(2), "{content}");
        assert!(printed.err.contains(message), "{}", printed.err);
        assert_eq!(printed.out, "");
    }
}
