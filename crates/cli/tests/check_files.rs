// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the files that `weir check` reads: the examples, bad input, costs of another compiler,
//! Linux.

use std::path::{Path, PathBuf};

use crate::common::{check, check_file, json, node, one, run, verdict, weir};

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

/// The kernel's threads have rows, and a deadline shorter than what they release is rejected.
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

/// A thread without a cap has more work at a higher rate. The headroom of a source takes that into
/// account.
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
    // A thread handles a whole number of packets per millisecond.
    let whole = 1_000.0 * (hz / 1_000.0).floor();
    assert_eq!(check(at(&format!("{whole}Hz")), &[]).code, Some(0));
    let beyond = whole + 2_000.0;
    assert_eq!(check(at(&format!("{beyond}Hz")), &[]).code, Some(1));
    let (needed, _) = json(&at("10kHz"));
    let rates = &needed["assumptions"]["worst_rates"];
    assert_eq!(rates[0], "ethernet", "{rates}");
    // With the cap, the loop meets its deadline at any rate.
    let (capped, _) = json(&text);
    let rates = capped["assumptions"]["worst_rates"].as_array().unwrap();
    assert!(rates.is_empty(), "{rates:?}");
}
