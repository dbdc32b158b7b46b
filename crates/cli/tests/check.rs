// SPDX-License-Identifier: MIT OR Apache-2.0
//! `weir check` as its users meet it: verdicts, exit codes, what is printed and what is not.
mod common;

use std::path::{Path, PathBuf};

use common::{check, check_file, json, node, run, verdict, weir};
use serde_json::Value;

const BUTTON_LIMIT: &str =
    r#"limit = { policy = "strict", timing = "lazy", rate = "50Hz", timer = "TIMER1B" }"#;

/// A system whose network card has this rate.
fn gateway(rate: &str) -> String {
    include_str!("data/gateway.toml").replace("rate = { expected = \"1kHz\" }", rate)
}

/// The only object of a list with this value.
fn one<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let mut found = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item[key] == value);
    let first = found.next().unwrap_or_else(|| panic!("{value} in {list}"));
    assert!(found.next().is_none(), "{value} twice in {list}");
    first
}

#[test]
fn a_guarantee_says_so_and_succeeds() {
    let printed = check(node(&[]), &[]);
    assert_eq!(
        verdict(&printed),
        "guaranteed: every deadline holds whatever the sources do",
        "{}",
        printed.out
    );
    assert_eq!(printed.code, Some(0));
    assert_eq!(printed.err, "");
}

#[test]
fn a_guarantee_names_the_rates_that_it_needs() {
    let printed = check(
        node(&[
            (BUTTON_LIMIT, ""),
            (r#"tolerated = "60Hz" }"#, r#"worst = "60Hz" }"#),
        ]),
        &[],
    );
    assert_eq!(
        verdict(&printed),
        "guaranteed: every deadline holds as long as button keeps to its worst rate"
    );
    assert_eq!(printed.code, Some(0));
}

#[test]
fn a_missed_deadline_is_told_with_what_it_can_take() {
    // Its own deadline only: it can take what it could take before.
    let printed = check(node(&[("deadline = \"2ms\"", "deadline = \"501us\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: control can take ")
            && sentence.ends_with(" against its deadline of 501 µs"),
        "{sentence}"
    );
    assert_eq!(printed.code, Some(1));
    assert_eq!(printed.out.matches("MISSED").count(), 1, "{}", printed.out);
}

#[test]
fn a_failed_check_says_where_to_begin() {
    let changes: [(&[_], &str); 5] = [
        (
            &[("deadline = \"2ms\"", "deadline = \"501us\"")],
            "The largest part of it: control itself, 500 µs of",
        ),
        (
            &[
                ("deadline = \"2ms\"", "deadline = \"120us\""),
                ("wcet = \"500us\"", "wcet = \"40us\""),
            ],
            "The largest part of it: interrupts of encoder, 128 µs of 198 µs.",
        ),
        (
            &[("wcet = \"500us\"", "wcet = \"1990us\"")],
            "The largest part of it: control itself, 99.5 % of the processor.",
        ),
        (
            &[("deadline = \"20ms\"", "deadline = \"1ms\"")],
            "The largest part of it: the wait for the limit, 16.6 ms of 19 ms.",
        ),
        (
            &[(BUTTON_LIMIT, "")],
            "system.toml looks for limits with which every deadline holds.",
        ),
    ];
    for (changes, says) in changes {
        let printed = check(node(changes), &[]);
        assert_eq!(printed.code, Some(1));
        let text = printed.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says), "`{says}` in\n{}", printed.out);
        assert!(text.contains("weir tune"), "{}", printed.out);
    }
    assert!(!check(node(&[]), &[]).out.contains("weir tune"));
    let unknown = node(&[(BUTTON_LIMIT, "")]);
    let rates = unknown.lines().filter(|line| !line.starts_with("rate = "));
    let unknown: Vec<&str> = rates.collect();
    let printed = check(unknown.join("\n"), &[]);
    assert!(
        printed.out.contains("State what a healthy source does"),
        "{}",
        printed.out
    );
}

#[test]
fn the_largest_part_is_in_json_where_a_deadline_is_missed() {
    let changes = [("deadline = \"2ms\"", "deadline = \"501us\"")];
    let (json, _) = json(&node(&changes));
    let part = &one(&json["rows"], "name", "control")["largest_part"];
    assert_eq!(
        (&part["kind"], &part["cycles"]),
        (&"own".into(), &8000.into())
    );
    assert!(part["of_cycles"].as_u64() > Some(8000), "{part}");
    assert!(one(&json["rows"], "name", "monitor")["largest_part"].is_null());
}

#[test]
fn the_unlimited_source_that_starves_is_named() {
    let printed = check(node(&[(BUTTON_LIMIT, "")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: control may never run: it is starved by button, which has neither a limit nor a \
         worst rate; 1 more row and 1 flow miss their deadlines, too"
    );
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_source_without_bound_that_has_a_deadline_itself_is_told_so() {
    let printed = check(node(&[(BUTTON_LIMIT, "deadline = \"1ms\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: button may interrupt without end"),
        "{sentence}"
    );
}

#[test]
fn more_demand_than_the_processor_has_is_a_verdict() {
    let printed = check(node(&[("wcet = \"1ms\"", "wcet = \"9ms\"")]), &[]);
    let sentence = verdict(&printed);
    assert!(
        sentence.starts_with("not guaranteed: monitor may never end") && sentence.contains(" % "),
        "{sentence}"
    );
    assert_eq!(printed.code, Some(1));
    // As is a WCET above its period.
    let printed = check(node(&[("wcet = \"1ms\"", "wcet = \"11ms\"")]), &[]);
    assert_eq!(printed.code, Some(1));
    assert_eq!(printed.err, "");
}

#[test]
fn a_source_that_states_no_max_work_proves_nothing() {
    let printed = check(
        node(&[(
            "max_work = 1\nrate = { expected = \"10Hz\"",
            "rate = { expected = \"10Hz\"",
        )]),
        &[],
    );
    assert_eq!(
        verdict(&printed),
        "not proven: button states no max_work, so one interrupt of it may take any time"
    );
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("NOT STATED by button"),
        "{}",
        printed.out
    );
}

#[test]
fn without_a_deadline_nothing_is_proven() {
    let printed = check(
        node(&[
            ("deadline = \"2ms\"\n", ""),
            ("deadline = \"10ms\"\n", ""),
            ("deadline = \"20ms\"\n", ""),
        ]),
        &[],
    );
    assert!(verdict(&printed).starts_with("not proven: nothing has a deadline"));
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_flow_can_be_late_or_lose_packets() {
    let printed = check(node(&[("deadline = \"20ms\"", "deadline = \"4ms\"")]), &[]);
    assert!(
        verdict(&printed).starts_with("not guaranteed: a packet of counts can take "),
        "{}",
        printed.out
    );
    let printed = check(node(&[("queue = 16", "queue = 7")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: a packet of counts may find its queue full: 8 may wait, and there is room for 7"
    );
    assert!(printed.out.contains("QUEUE SHORT"), "{}", printed.out);
    assert_eq!(printed.code, Some(1));
}

#[test]
fn a_device_of_unknown_length_gives_no_guarantee() {
    let printed = check(node(&[("queue = 4\n", "")]), &[]);
    assert_eq!(
        verdict(&printed),
        "not guaranteed: a packet of counts may wait for any number of interrupts, behind as many packets as encoder holds: state the source's `queue`"
    );
    assert_eq!(printed.code, Some(1));
    // Nothing depends on it where each packet asks for its own interrupt.
    let text = gateway("rate = { worst = \"100Hz\" }");
    let (of, code) = json(&text);
    assert_eq!(code, Some(0), "{of}");
}

#[test]
fn packets_wait_for_all_interrupts_that_take_those_before_them() {
    let wait = |queue: &str, key: &str| {
        let (of, _) = json(&node(&[("queue = 4\n", queue)]));
        one(&of["flows"], "name", "counts")[key].as_u64().unwrap()
    };
    for key in ["limit_cycles", "interrupt_cycles"] {
        // Where one interrupt takes all, none leaves packets that ask again, and each is answered
        // sooner.
        let (one, two) = (wait("queue = 1\n", key), wait("queue = 2\n", key));
        assert!(one > 0 && two >= 2 * one, "{key}: {one}, {two}");
        assert_eq!(2 * wait("queue = 3\n", key), 3 * two, "{key}");
    }
    // 8 packets in an interrupt, of 20; where 4 are counted, those before the last interrupt are
    // asked for without delay.
    for (count, delays) in [("", 3), (", count = 4", 1), (", count = 10", 2)] {
        let (of, _) = json(&gateway(&format!(
            "rate = {{ worst = \"100Hz\" }}\nqueue = 20\nmoderation = {{ absolute = \"1ms\"{count} }}"
        )));
        let flow = one(&of["flows"], "name", "commands");
        let response = &one(&of["rows"], "kind", "interrupt")["response_cycles"];
        assert_eq!(flow["moderation_cycles"], delays * 100_000, "{of}");
        // And one that may be under way.
        let interrupts = 4 * response.as_u64().unwrap();
        assert_eq!(flow["interrupt_cycles"], interrupts, "{of}");
    }
}

#[test]
fn what_the_limits_buy_is_shown() {
    let printed = check(node(&[]), &[]);
    let section = printed
        .out
        .split("What the limits buy: ")
        .nth(1)
        .unwrap_or_else(|| panic!("{}", printed.out))
        .split("\n\n")
        .next()
        .unwrap();
    assert!(section.contains("starved by button"), "{section}");
    for name in ["control", "monitor"] {
        let line = section.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with("starved"), "{line}");
    }
}

#[test]
fn assumptions_tell_stated_from_measured_and_default() {
    let printed = check(
        node(&[
            ("[cpu]", "[cpu]\ntime_slice = \"10ms\""),
            (
                "wcet = \"1ms\"",
                "wcet = { worst = \"1ms\", measured = true }",
            ),
        ]),
        &[],
    );
    let list = printed.out.split("This rests on:\n").nth(1).unwrap();
    let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 measured, that is seen, not proven (monitor)",
        "boards/atmega128/costs.toml",
        "stated by every source",
        "at most 3.75 µs (60 cycles): declared",
        "between two interrupts one instruction of the interrupted program runs, whichever it is, \
         for at most 250 ns (4 cycles): it counts as the ready task's",
        "a switch of tasks costs 0 cycles: not stated",
        "take turns, none shorter than 10 ms unless its work ends",
        "tasks do not suspend themselves",
    ] {
        assert!(list.contains(part), "`{part}` in {list}");
    }
}

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
    assert_eq!(json["assumptions"]["instruction_between"], 4);
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
    // Every documented key is documented: docs/check.md names it.
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
    // The latency of a flow with a deadline may shrink when its limit grows: no first miss is known
    // for sure.
    assert!(factor > 1.0 && headroom["exact"] == false, "{headroom}");
    let binding = headroom["binding"].as_str().unwrap();
    let hz = headroom["hz"].as_f64().unwrap();
    // Well below it still holds, and well above it the row breaks that was told.
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
    // What misses is never folded away behind what does not.
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

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("system.toml"))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

#[test]
fn the_examples_have_a_verdict() {
    let examples = examples();
    assert!(!examples.is_empty());
    for path in examples {
        let printed = check_file(&path, &[]);
        assert!(
            matches!(printed.code, Some(0 | 1)),
            "{}: {}",
            path.display(),
            printed.err
        );
        assert!(!verdict(&printed).is_empty());
        if path.to_string_lossy().contains("motor-controller") {
            assert_eq!(printed.code, Some(0), "{}", printed.out);
        }
    }
}

#[test]
fn bad_input_is_answered_with_2_and_no_panic() {
    let binary: Vec<u8> = (0..4096_u32).map(|i| (i * 7919 % 251) as u8).collect();
    let huge = format!("# {}\n", "x".repeat(10 << 20));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("binary", binary),
        ("ten megabytes", huge.into_bytes()),
        ("no TOML", b"[cpu".to_vec()),
        ("wrong schema", node(&[("schema = 1", "schema = 2")]).into()),
        (
            "unknown key",
            node(&[(
                "max_work = 1\nrate = { expected = \"10Hz\"",
                "max_wrok = 1\nrate = { expected = \"10Hz\"",
            )])
            .into(),
        ),
        (
            "negative",
            node(&[("wcet = \"1ms\"", "wcet = \"-1ms\"")]).into(),
        ),
        (
            "not a number",
            node(&[("wcet = \"1ms\"", "wcet = \"NaNms\"")]).into(),
        ),
        (
            "overflow",
            node(&[("wcet = \"1ms\"", "wcet = \"99999999999999999999 cycles\"")]).into(),
        ),
        (
            "wrong unit",
            node(&[("wcet = \"1ms\"", "wcet = \"1kHz\"")]).into(),
        ),
        (
            "duplicate name",
            node(&[("name = \"button\"", "name = \"encoder\"")]).into(),
        ),
        (
            "limit outside its band",
            node(&[("rate = \"50Hz\"", "rate = \"500Hz\"")]).into(),
        ),
        (
            "unknown receiver",
            node(&[("receiver = \"monitor\"", "receiver = \"montior\"")]).into(),
        ),
    ];
    for (name, content) in cases {
        let printed = check(&content, &[]);
        assert_eq!(
            printed.code,
            Some(2),
            "{name}: {}\n{}",
            printed.out,
            printed.err
        );
        assert_eq!(printed.out, "", "{name}");
        assert!(!printed.err.trim().is_empty(), "{name}");
        assert!(!printed.err.contains("panicked"), "{name}: {}", printed.err);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let printed = check_file(Path::new("no/such/system.toml"), &[]);
    assert_eq!(printed.code, Some(2));
    assert!(
        printed.err.contains("no/such/system.toml"),
        "{}",
        printed.err
    );
}

#[cfg(unix)]
#[test]
fn costs_of_another_compiler_than_this_machines_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let compiler = folder.path().join("avr-gcc");
    for (number, is_warned) in [("5.4.0", false), ("14.2.0", false), ("7.3.0", true)] {
        std::fs::write(
            &compiler,
            format!("#!/bin/sh\necho 'avr-gcc (GCC) {number}'\n"),
        )
        .unwrap();
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/motor-controller/system.toml");
        let checked = run(weir().arg("check").arg(&example).env("PATH", folder.path()));
        let generated = run(weir()
            .arg("generate")
            .arg(&example)
            .args(["--chip", "atmega128", "--output", "-"])
            .env("PATH", folder.path()));
        for printed in [checked, generated] {
            assert_eq!(printed.code, Some(0));
            assert_eq!(
                printed.err.contains("warning"),
                is_warned,
                "{}",
                printed.err
            );
            assert!(!is_warned || printed.err.contains("this machine has avr-gcc 7.3.0"));
        }
    }
}

/// The kernel's threads are rows, and a deadline below what they release is refused.
#[test]
fn a_file_for_linux_has_the_kernels_threads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linux-node/system.toml");
    let printed = check_file(&path, &[]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    for row in ["threads of eth0", "last tick of eth0", "SCHED_DEADLINE"] {
        assert!(printed.out.contains(row), "{row}: {}", printed.out);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("system.toml");
    for (from, to, says) in [
        ("mode = \"native\"", "mode = \"exact\"", None),
        ("urgency = 80", "urgency = 50", None),
        (
            "backlog = 32",
            "backlog = 32\nperiod = \"1s\"\nwcet = \"1ms\"\ndeadline = \"1s\"",
            None,
        ),
        (
            "rate = \"200Hz\"",
            "rate = \"200Hz\"\ndeadline = \"5ms\"",
            Some("no bound is known for the deadline of the flow `requests`"),
        ),
    ] {
        std::fs::write(&changed, text.replacen(from, to, 1)).unwrap();
        let printed = check_file(&changed, &[]);
        match says {
            None => assert_ne!(printed.code, Some(2), "{to}: {}", printed.err),
            Some(says) => {
                assert_eq!(printed.code, Some(2), "{to}: {}", printed.out);
                let told = printed.err.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(told.replace("│ ", "").contains(says), "{told}");
            }
        }
    }
    let exposed = text
        .replacen("mode = \"native\"", "mode = \"exact\"", 1)
        .replacen("urgency = 80", "urgency = 50", 1);
    std::fs::write(&changed, exposed).unwrap();
    let printed = check_file(&changed, &[]);
    assert_eq!(printed.code, Some(2), "{}", printed.out);
}

/// A thread without a cap has more to do at a higher rate: what a source may rise to counts that.
#[test]
fn what_a_rate_may_rise_to_counts_the_threads_that_take_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linux-node/system.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let cap = "top_half = { runtime = \"500us\", period = \"10ms\" }";
    assert!(text.contains(cap));
    let at = |rate: &str| {
        text.replacen(cap, "top_half = { urgency = 90 }", 1)
            .replacen("\"ethernet-100\"", &format!("\"{rate}\""), 1)
    };
    let (answer, code) = json(&at("10kHz"));
    assert_eq!(code, Some(0), "{answer}");
    let headroom = &one(&answer["sources"], "name", "ethernet")["headroom"];
    assert_eq!(headroom["binding"], "control", "{headroom}");
    let hz = headroom["hz"].as_f64().unwrap();
    // A thread has so many whole packets in each millisecond.
    let whole = 1_000.0 * (hz / 1_000.0).floor();
    assert_eq!(check(at(&format!("{whole}Hz")), &[]).code, Some(0));
    let beyond = whole + 2_000.0;
    assert_eq!(check(at(&format!("{beyond}Hz")), &[]).code, Some(1));
    let (needed, _) = json(&at("10kHz"));
    let rates = &needed["assumptions"]["worst_rates"];
    assert_eq!(rates[0], "ethernet", "{rates}");
    // With its cap the loop keeps its deadline whatever comes.
    let (capped, _) = json(&text);
    let rates = capped["assumptions"]["worst_rates"].as_array().unwrap();
    assert!(rates.is_empty(), "{rates:?}");
}
