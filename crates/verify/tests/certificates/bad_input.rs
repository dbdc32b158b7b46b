// SPDX-License-Identifier: MIT OR Apache-2.0
//! A text that is not a certificate is distinguished from a wrong certificate, and no input makes
//! the program panic.
use crate::systems;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use weir_verify::verify;

/// Returns a valid certificate that uses every feature.
fn valid() -> Value {
    let mut runner = TestRunner::deterministic();
    loop {
        let system = systems::system(4).new_tree(&mut runner).unwrap().current();
        let analysis = weir_analysis::analyse(&system);
        let text = serde_json::to_string(&weir_analysis::certificate(&system, &analysis)).unwrap();
        let has = |part: &str| text.contains(part);
        let value: Value = serde_json::from_str(&text).unwrap();
        if has("[\"bottom_half\"")
            && has("[\"expiry\"")
            && has("\"shared\"")
            && has("\"absolute\"")
            && has("\"frames\"")
            && has("\"bound\"")
        {
            return value;
        }
    }
}

fn message(text: &str) -> String {
    verify(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn what_is_not_json_is_told_with_its_place() {
    for (text, part) in [
        ("", "EOF"),
        ("weir", "line 1 column 1"),
        ("{\"certificate\":NaN}", "line 1 column 16"),
        ("{\"certificate\":2", "EOF"),
        ("[]", "certificate"),
        ("{}", "missing field `certificate`"),
        ("{\"certificate\":2} 2", "trailing characters"),
        ("{\"certificate\":null}", "version"),
        ("{\"certificate\":-1}", "version"),
        ("{\"certificate\":1.5}", "version"),
        ("{\"certificate\":2}", "missing field `system`"),
        (
            "{\"certificate\":{\"certificate\":2}}",
            "missing field `system`",
        ),
        ("{\"certificate\":{\"certificate\":{}}}", "version"),
        ("{\"certificate\":1,\"certificate\":1}", "duplicate field"),
    ] {
        let found = message(text);
        assert!(found.contains(part), "{text}: {found}");
    }
    assert!(verify(b"\xff\xfe\x00{").is_err());
}

#[test]
fn another_version_is_told_before_anything_else() {
    for (text, other) in [
        ("{\"certificate\":1}", "version 1"),
        (
            "{\"certificate\":{\"certificate\":3,\"new\":[]}}",
            "version 3",
        ),
    ] {
        let found = message(text);
        assert!(
            found.contains(other) && found.contains("version 2"),
            "{found}"
        );
    }
}

#[test]
fn nesting_without_end_is_no_certificate() {
    let deep = "[".repeat(200_000);
    message(&format!("{{\"certificate\":1,\"rows\":{deep}"));
    message(&format!("{{\"certificate\":{deep}"));
    message(&"{\"certificate\":".repeat(100_000));
}

#[test]
fn a_certificate_may_be_inside_the_report_of_check() {
    let bare = valid();
    let inside = |key: &str, value: Value| {
        let answer = json!({ "certificate": bare, key: value });
        verify(answer.to_string().as_bytes())
    };
    let alone = verify(bare.to_string().as_bytes()).unwrap();
    assert_eq!(inside("verdict", bare["verdict"].clone()).unwrap(), alone);
    // Keys that do not follow from the certificate are reported.
    let more = inside("sentence", "all is well".into()).unwrap();
    assert_eq!(more.unchecked, ["sentence"]);
    assert!(more.is_valid(), "{more:?}");
    // The certificate has to cover each row, and each unit has to have a row.
    let rows = inside("rows", json!([])).unwrap();
    assert!(!rows.is_valid(), "{rows:?}");
    assert!(inside("rows", json!([1, 2])).is_err());
}

/// Each fault with a part of the expected message.
#[test]
fn every_key_has_to_be_there_and_no_other() {
    fn objects(of: &Value, path: &str, found: &mut Vec<(String, String)>) {
        match of {
            Value::Object(items) => {
                for (key, item) in items {
                    found.push((path.to_owned(), key.clone()));
                    objects(item, &format!("{path}/{key}"), found);
                }
            }
            Value::Array(items) => (0..).zip(items).for_each(|(index, item): (usize, _)| {
                objects(item, &format!("{path}/{index}"), found);
            }),
            _ => {}
        }
    }
    let valid = valid();
    let mut all = Vec::new();
    objects(&valid, "", &mut all);
    assert!(all.len() > 100);
    for (path, key) in all {
        let mut less = valid.clone();
        let object = less.pointer_mut(&path).unwrap().as_object_mut().unwrap();
        let was = object.remove(&key).unwrap();
        // A key that may be null may also be absent: both mean that there is no value.
        if !was.is_null() {
            let optional = verify(less.to_string().as_bytes()).is_ok();
            let may_be_null = [
                "time_slice",
                "max_work",
                "packet_units",
                "interarrival",
                "moderation",
                "packet",
                "count",
                "deadline",
                "period",
                "queue",
                "expiry",
                "latency",
                "queue_needed",
                "budget",
                "buffers",
                "tick",
            ];
            assert!(
                !optional || may_be_null.contains(&key.as_str()),
                "{path}/{key}"
            );
        }
        let mut more = valid.clone();
        let object = more.pointer_mut(&path).unwrap().as_object_mut().unwrap();
        object.insert("intreval".to_owned(), 1.into());
        let found = message(&more.to_string());
        // An enum has exactly one key, whatever its name is.
        let is_choice = path.ends_with("/expiry") || path.ends_with("/outcome");
        let part = if is_choice {
            "expected value"
        } else {
            "intreval"
        };
        assert!(found.contains(part), "{path}: {found}");
    }
}

#[test]
fn a_system_that_cannot_be_is_told_with_its_key() {
    let valid = valid();
    let sources = valid["system"]["sources"].as_array().unwrap();
    let shared = sources
        .iter()
        .position(|source| source["limit"]["expiry"]["shared"].is_u64())
        .unwrap();
    let limit = format!("/system/sources/{shared}/limit");
    let flows = valid["system"]["flows"].as_array().unwrap();
    let budget = flows.iter().position(|flow| flow["budget"].is_object());
    let budget = format!("/system/flows/{}/budget", budget.unwrap());
    let mut cooperative = valid["system"]["cpu"].clone();
    cooperative["tasks"] = json!("cooperative");
    cooperative["time_slice"] = json!(100);
    for (path, value, part) in [
        (
            "/system/flows/0/source".to_owned(),
            json!(99),
            "system.flows[0].source: there is no number 99",
        ),
        (
            "/system/flows/0/receiver".to_owned(),
            json!(99),
            "system.flows[0].receiver",
        ),
        (
            format!("{budget}/frames"),
            json!(0),
            "budget.frames: 0 is too little",
        ),
        (
            format!("{budget}/tick"),
            json!(0),
            "budget.tick: 0 is too little",
        ),
        (
            "/system/cpu/time_slice".to_owned(),
            json!(0),
            "system.cpu.time_slice: 0 is too little",
        ),
        (
            "/system/cpu".to_owned(),
            cooperative,
            "system.cpu.time_slice: cooperative tasks",
        ),
        (
            "/system/timers/0/period".to_owned(),
            json!(0),
            "system.timers[0].period: 0 is too little",
        ),
        (
            format!("{limit}/expiry"),
            json!(null),
            "limit.expiry: a limit in software has a timer",
        ),
        (
            format!("{limit}/expiry/shared"),
            json!(99),
            "expiry.shared: there is no number 99",
        ),
        (
            format!("{limit}/policy"),
            json!("strict"),
            "limit.policy: a limit on a shared timer",
        ),
        (
            format!("{limit}/policy"),
            json!("of"),
            "unknown variant `of`",
        ),
        (
            format!("{limit}/place"),
            json!("hardware"),
            "limit.expiry: a limit in hardware",
        ),
        (format!("{limit}/interval"), json!(7), "7 is not the period"),
        (
            format!("{limit}/interval"),
            json!(0),
            "interval: 0 is too little",
        ),
        (format!("{limit}/burst"), json!(0), "burst: 0 is too little"),
        (format!("{limit}/tick"), json!(u64::MAX), "more than 2^62"),
        (format!("{limit}/tick"), json!(-1), "system.sources["),
        (format!("{limit}/tick"), json!(1.5), "limit.tick"),
        (format!("{limit}/tick"), json!("1"), "limit.tick"),
    ] {
        let mut changed = valid.clone();
        *changed.pointer_mut(&path).unwrap() = value;
        let found = message(&changed.to_string());
        assert!(found.contains(part), "{path}: {found}");
    }
}

#[test]
fn budgets_of_one_receiver_are_alike_and_all_ticks_are_one() {
    let valid = valid();
    let flow = |receiver: u64, frames: u64, tick: u64| {
        let mut flow = valid["system"]["flows"][0].clone();
        flow["receiver"] = receiver.into();
        flow["budget"] = json!({ "frames": frames, "tick": tick });
        flow
    };
    for (second, part) in [
        (flow(0, 2, 100), None),
        (flow(0, 3, 100), Some("flows[1].budget.frames: 3 is not")),
        (flow(0, 2, 101), Some("flows[1].budget.tick: 101 is not")),
    ] {
        let mut changed = valid.clone();
        changed["system"]["flows"] = json!([flow(0, 2, 100), second]);
        match (verify(changed.to_string().as_bytes()), part) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) => {
                assert!(error.to_string().contains(part), "{error}");
            }
            (found, part) => panic!("{found:?}: {part:?}"),
        }
    }
}

const ODD: [&str; 12] = [
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "-1",
    "0",
    "1.5",
    "NaN",
    "\"\\u0000\"",
    "null",
    "[]",
    "{}",
    "4611686018427387905",
];

proptest! {
    #![proptest_config(crate::cases(600, 4000))]

    #[test]
    fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(verify(&bytes).is_err());
    }

    #[test]
    fn no_odd_number_makes_it_fail(system in systems::system(3), changes in prop::collection::vec((any::<prop::sample::Index>(), 0..ODD.len()), 1..4)) {
        let analysis = weir_analysis::analyse(&system);
        let mut text = serde_json::to_string(&weir_analysis::certificate(&system, &analysis)).unwrap();
        for (place, odd) in changes {
            let digits: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
            let at = digits[place.index(digits.len())];
            let end = text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| at + length);
            text.replace_range(at..end, ODD[odd]);
        }
        let _ = verify(text.as_bytes());
    }

    #[test]
    fn no_damage_makes_it_fail(system in systems::system(2), from: prop::sample::Index, length in 0..40_usize, junk in prop::collection::vec(any::<u8>(), 0..6)) {
        let analysis = weir_analysis::analyse(&system);
        let mut text = serde_json::to_vec(&weir_analysis::certificate(&system, &analysis)).unwrap();
        let at = from.index(text.len());
        let end = (at + length).min(text.len());
        text.splice(at..end, junk);
        let _ = verify(&text);
    }
}
