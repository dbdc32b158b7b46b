// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `weir check` for FreeRTOS: the rows contain all work of the generated code.

use crate::common::{check, json, one, run, verdict, weir};
use serde_json::Value;
use tempfile::TempDir;

const COMMON: &str = "common = { urgency = 2, queue = 8 }";

/// Returns the example with `changes`: each first text is replaced by the second.
fn rtos_node(changes: &[(&str, &str)]) -> String {
    let text = include_str!("../../../examples/rtos-node/system.toml");
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "`{from}` in\n{text}");
        text.replace(from, to)
    })
}

/// Returns the longest response time of the control loop.
fn of_control(text: &str) -> u64 {
    let (of, code) = json(text);
    assert_eq!(code, Some(0), "{of}");
    one(&of["rows"], "name", "control")["response_cycles"]
        .as_u64()
        .unwrap()
}

/// Returns the plan from which code is generated.
fn plan(text: &str) -> Value {
    let folder = TempDir::new().unwrap();
    let system = folder.path().join("system.toml");
    std::fs::write(&system, text).unwrap();
    let printed = run(weir()
        .args(["generate", "--chip", "cortex-m3", "--rtos", "freertos"])
        .args(["--json", "-o"])
        .args([&folder.path().join("weir_system.h"), &system]));
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    serde_json::from_str(&printed.out).unwrap()
}

/// Every worker that the generated code starts has a row for each receiver whose frames it handles.
/// Otherwise it is less urgent than every deadline.
#[test]
fn every_worker_of_generated_code_is_in_the_rows() {
    let lane = |urgency: u8| {
        format!("{{ urgency = {urgency}, queue = 8, bottom_half = \"1000 cycles\" }}")
    };
    for (common, others) in [(2, 2), (17, 18), (22, 22), (22, 3), (20, 5)] {
        let lanes = format!(
            "common = {}\norphans = {}\nfragments = {}",
            lane(common),
            lane(others),
            lane(22)
        );
        let text = rtos_node(&[(COMMON, &lanes)]);
        let (checked, _) = json(&text);
        let rows = checked["rows"].as_array().unwrap();
        for class in plan(&text)["freertos"]["classes"].as_array().unwrap() {
            let same = rows
                .iter()
                .filter(|row| row["kind"] == "bottom_half" && row["urgency"] == class["urgency"]);
            assert_eq!(
                same.count(),
                class["of"].as_array().unwrap().len(),
                "{class}: {checked}"
            );
        }
    }
}

#[test]
fn a_lane_above_a_task_takes_time_from_it() {
    let plain = of_control(&rtos_node(&[]));
    let lane = |urgency: u8| {
        let key =
            format!("common = {{ urgency = {urgency}, queue = 8, bottom_half = \"800 cycles\" }}");
        rtos_node(&[(COMMON, &key)])
    };
    assert_eq!(of_control(&lane(2)), plain);
    // At most 8 frames come at once, and then one in 400 us. Each costs a switch of 200 cycles.
    assert!(of_control(&lane(22)) > plain + 8 * 1000, "{plain}");
    let folder = TempDir::new().unwrap();
    let system = folder.path().join("system.toml");
    std::fs::write(&system, lane(22)).unwrap();
    let certificate = run(weir().args(["check", "--json"]).arg(&system)).out;
    let verified = run(weir()
        .args(["verify", "-", "--system"])
        .arg(&system)
        .write_stdin(certificate));
    assert_eq!(verified.code, Some(0), "{}{}", verified.out, verified.err);

    let silent = rtos_node(&[(COMMON, "common = { urgency = 22, queue = 8 }")]);
    for command in ["check", "tune"] {
        std::fs::write(&system, &silent).unwrap();
        let refused = run(weir().arg(command).arg(&system));
        assert_eq!(refused.code, Some(2));
        assert!(
            refused.err.contains("`control` waits for them"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_budget_buys_time_for_what_is_less_urgent() {
    let commands = "name = \"commands\"\nurgency = 20\n";
    let with = |keys: &str| rtos_node(&[(commands, &format!("{commands}{keys}"))]);
    let (free, held) = (
        of_control(&with("")),
        of_control(&with("budget = \"1kHz\"")),
    );
    assert!(held < free, "{held}, {free}");
    let printed = check(with("budget = \"1kHz\""), &[]);
    assert!(
        printed
            .out
            .contains("FreeRTOS's ticks are less than a tick late"),
        "{}",
        printed.out
    );
}

#[test]
fn a_deadline_of_frames_beyond_a_budget_is_no_guarantee() {
    // Between a tick and a late next tick, the limit admits 13 frames: 8 at once, and then one in
    // 400 us.
    let with = |budget: &str| {
        let line = "name = \"line\"\n";
        rtos_node(&[
            ("budget = \"1kHz\"", &format!("budget = \"{budget}\"")),
            (line, &format!("{line}deadline = \"50ms\"\n")),
            ("max_work = 1\n", "max_work = 1\nqueue = 1\n"),
            ("queue = 16", "queue = 60"),
        ])
    };
    let printed = check(with("12kHz"), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: a packet of line may find the budget of log used up: 13 may come between two ticks, and it gets 12 in each"
    );
    assert!(printed.out.contains("BUDGET SHORT"), "{}", printed.out);
    assert_eq!(printed.code, Some(1));
    let (of, code) = json(&with("13kHz"));
    assert_eq!(code, Some(0), "{of}");
    let flow = one(&of["flows"], "name", "line");
    assert_eq!(
        (&flow["budget_needed"], &flow["budget"]),
        (&13.into(), &13.into())
    );
}

/// A frame of 1,514 bytes is 23 units of work, and a frame that has been started is always
/// completed.
#[test]
fn long_frames_wait_for_more_interrupts_than_short_ones() {
    for (work, interrupts) in [(1, 64), (23, 64), (24, 32), (47, 22)] {
        let work = format!("max_work = {work}\nqueue = 64\n");
        // With larger costs the interrupt alone would need more than the whole processor.
        let cheap = |worst: &str| (worst.to_owned(), worst.replace("2100", "210"));
        let text = rtos_node(&[("max_work = 1\n", &work)]);
        let (from, to) = cheap("top_half = { worst = \"2100 cycles\"");
        let (of, _) = json(&text.replace(&from, &to));
        let row = of["rows"].as_array().unwrap().iter();
        let responses = row.filter(|row| row["kind"] == "interrupt" && row["name"] == "ethernet");
        let response = responses
            .filter_map(|row| row["response_cycles"].as_u64())
            .max()
            .unwrap();
        let flow = one(&of["flows"], "name", "command");
        assert_eq!(flow["interrupt_cycles"], interrupts * response, "{of}");
    }
}
