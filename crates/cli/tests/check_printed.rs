// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the output of `weir check`: text that fits the width, JSON with its keys, and shortened
//! tables of large systems.

use crate::common::{BUTTON_LIMIT, check, json, node, one};
use serde_json::Value;

#[test]
fn what_is_printed_fits_into_100_columns_and_is_plain() {
    let long = "a_name_that_nobody_would_choose_but_that_somebody_will_write_one";
    for content in [
        node(&[]),
        node(&[(BUTTON_LIMIT, "")]),
        node(&[("name = \"button\"", &format!("name = \"{long}\""))]),
        node(&[("name = \"control\"", &format!("name = \"{long}\""))]),
    ] {
        let printed = check(content, &[]);
        assert_ne!(printed.code, Some(2), "{}", printed.err);
        for line in printed.out.lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert_eq!(line.trim_end(), line);
        }
        assert!(!printed.out.contains('\u{1b}'), "{}", printed.out);
    }
}

#[test]
fn json_has_the_documented_keys_and_the_printed_numbers() {
    let (json, code) = json(&node(&[]));
    assert_eq!(code, Some(0));
    let keys: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "check",
            "system",
            "sentence",
            "verdict",
            "utilisation",
            "rows",
            "sources",
            "most_critical",
            "flows",
            "assumptions",
            "observed",
            "certificate",
        ]
    );
    assert_eq!(json["check"], 1);
    assert_eq!(json["system"]["clock_hz"], 16_000_000);
    assert_eq!(json["verdict"], "guaranteed");
    let assumed = &json["assumptions"];
    assert_eq!(assumed["instruction_between"], 4);
    assert_eq!(assumed["packet_deadlines"], serde_json::json!(["counts"]));
    assert_eq!(assumed["cap_timer"], false);
    let control = one(&json["rows"], "name", "control");
    assert_eq!(control["kind"], "task");
    assert_eq!(control["cost_cycles"], 8000);
    assert_eq!(control["arrivals"]["period_cycles"], 32_000);
    assert_eq!(control["deadline_cycles"], 32_000);
    let response = control["response_cycles"].as_i64().unwrap();
    assert_eq!(control["slack_cycles"], 32_000 - response);
    assert!(response > 8000);
    assert_eq!(control["without_limits"]["state"], "unbounded");
    assert_eq!(
        control["without_limits"]["cause"]["starved"]["by"],
        serde_json::json!(["button"])
    );
    let encoder = one(&json["sources"], "name", "encoder");
    assert_eq!(encoder["policy"], "bursty");
    assert_eq!(encoder["burst"], 4);
    assert_eq!(encoder["interval_cycles"], 64_000);
    assert_eq!(encoder["effective_hz"], 1000.0);
    assert_eq!(json["flows"][0]["queue"], 16);
    // docs/check.md names every key.
    let page = include_str!("../../../docs/check.md");
    let mut undocumented = Vec::new();
    keys_of(&json, &mut |key| {
        if !page.contains(&format!("`{key}`")) {
            undocumented.push(key.to_owned());
        }
    });
    assert!(undocumented.is_empty(), "{undocumented:?}");
}

fn keys_of(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key != "certificate" {
                    each(key);
                    keys_of(value, each);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys_of(value, each)),
        _ => {}
    }
}

#[test]
fn the_rate_at_which_the_first_deadline_breaks_is_right() {
    let text = node(&[]);
    let (before, _) = json(&text);
    let name = before["most_critical"].as_str().unwrap();
    let headroom = &one(&before["sources"], "name", name)["headroom"];
    let factor = headroom["factor"].as_f64().unwrap();
    // The latency of a flow with a deadline may decrease when its limit grows. So the first missed
    // deadline is not known for sure.
    assert!(factor > 1.0 && headroom["exact"] == false, "{headroom}");
    let binding = headroom["binding"].as_str().unwrap();
    let hz = headroom["hz"].as_f64().unwrap();
    // Well below the headroom all deadlines hold. Well above it, the predicted row misses its
    // deadline.
    let limit = "limit = { policy = \"bursty\", timing = \"lazy\", burst = 4, rate = \"1kHz\", timer = \"TIMER1A\" }";
    let band = "tolerated = \"1kHz\", worst = \"100kHz\"";
    assert_eq!(name, "encoder", "{before}");
    let at = |rate: f64| {
        let limit_at = format!(
            "limit = {{ policy = \"bursty\", timing = \"lazy\", burst = 4, rate = \"{rate}Hz\", timer = \"TIMER1A\" }}"
        );
        node(&[(limit, &limit_at), (band, "worst = \"100kHz\"")])
    };
    assert_eq!(check(at((hz * 0.98).floor()), &[]).code, Some(0));
    let (after, code) = json(&at((hz * 1.02).ceil()));
    assert_eq!(code, Some(1));
    let row = after["rows"]
        .as_array()
        .unwrap()
        .iter()
        .chain(after["flows"].as_array().unwrap())
        .find(|row| row["name"] == binding && row["deadline_cycles"].is_number())
        .unwrap();
    let short = row["queue_needed"].as_u64() > row["queue"].as_u64();
    assert!(row["state"] != "ok" || short, "{row}");
}

fn large(sources: usize, tasks: usize) -> String {
    let mut text = "schema = 1\n[cpu]\nclock = \"100MHz\"\ninterrupts = \"flat\"\nlongest_instruction = \"4 cycles\"\n\
        [cpu.costs.off]\nrequest_served = \"26 cycles\"\n"
        .to_owned();
    for index in 0..sources {
        text += &format!(
            "[[source]]\nname = \"s{index}\"\nvector = \"IRQ{index}\"\norder = {index}\n\
             handler = \"100 cycles\"\nmax_work = 1\nrate = {{ worst = \"20Hz\" }}\n"
        );
    }
    for index in 0..tasks {
        text += &format!(
            "[[receiver]]\nname = \"t{index}\"\nurgency = {}\nperiod = \"{}ms\"\ndeadline = \"{}ms\"\nwcet = \"20us\"\n",
            index % 200,
            400 + index,
            400 + index
        );
    }
    text
}

#[test]
fn large_systems_are_folded_unless_all_is_asked_for() {
    let text = large(60, 60);
    let printed = check(&text, &[]);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.out, printed.err);
    assert!(printed.out.lines().count() < 90, "{}", printed.out);
    assert!(
        printed
            .out
            .contains("80 more rows, with more slack, or without deadline: --all shows them"),
        "{}",
        printed.out
    );
    let all = check(&text, &["--all"]);
    assert!(!all.out.contains("--all"), "{}", all.out);
    assert!(
        all.out.lines().any(|line| line.starts_with("s59 ")),
        "{}",
        all.out
    );
    // Rows that miss a deadline are shown even if others are hidden.
    let late = text.replace(
        "name = \"t7\"\nurgency = 7\nperiod = \"407ms\"\ndeadline = \"407ms\"",
        "name = \"t7\"\nurgency = 7\nperiod = \"407ms\"\ndeadline = \"21us\"",
    );
    assert_ne!(late, text);
    let printed = check(&late, &[]);
    assert!(
        printed
            .out
            .lines()
            .any(|line| line.starts_with("t7 ") && line.ends_with("MISSED")),
        "{}",
        printed.out
    );
}
