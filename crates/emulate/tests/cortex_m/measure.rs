// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests the program that measures the costs of limits on a chip (ports/cortex-m/measure). Its
//! output is compared with the exact counts of the board mps2-an385.

use std::path::Path;
use std::process::Command;

use crate::cortex::{Elf, Limit, can_run, root, spec};
use rayon::prelude::*;
use weir_emulate::run::run;

/// The number of instructions per tick of the counter, as in ports/cortex-m/measure/mps2-an385.h.
const GRAIN: u64 = 5;

fn build(output: &Path, options: &[String]) -> Result<(), String> {
    let script = root().join("ports/cortex-m/measure/build.sh");
    let mut command = Command::new(script);
    command.arg("mps2-an385.h").arg(output).args(options);
    let result = command.output().unwrap();
    match result.status.code() {
        Some(0) => Ok(()),
        Some(2) => Err(String::from_utf8_lossy(&result.stderr).into_owned()),
        other => panic!("build.sh ended with {other:?}"),
    }
}

#[test]
fn cortex_m_measures_of_its_limits_what_the_board_counts() {
    if !can_run() {
        return;
    }
    let limits: Vec<Limit> = Limit::all()
        .into_iter()
        .filter(|limit| limit.divisor == 1)
        .collect();
    limits.into_par_iter().for_each(|limit| {
        let [policy, timing] = limit.names();
        let upper = [policy.to_uppercase(), timing.to_uppercase()];
        let only = format!(
            "-DPOLICIES(DO)=DO({policy}, {timing}, {}, {}, {})",
            upper[0], upper[1], limit.config.burst
        );
        let elf = Elf::new();
        build(&elf.path, &[only]).unwrap_or_else(|error| panic!("{error}"));
        let result = run(&spec(&elf, &[], 125_000_000)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result.exit, Some(0));
        let said: toml::Table = toml::from_str(&result.said).unwrap();
        let costs = &said["cpu"]["costs"];
        let cycles = |table: &toml::Value, event: &str| -> u64 {
            let text = table.get(event).and_then(toml::Value::as_str);
            text.map_or(0, |text| {
                text.strip_suffix(" cycles").unwrap().parse().unwrap()
            })
        };
        let own = &costs[policy.as_str()][timing.as_str()];
        for (line, events) in [
            ("IRQ20", ["request_served", "request_refused"]),
            ("IRQ10", ["expiry_served", "expiry_empty"]),
        ] {
            let told = events
                .map(|event| cycles(own, event))
                .into_iter()
                .max()
                .unwrap();
            let vector = result
                .vectors
                .iter()
                .find(|used| used.name == line)
                .unwrap();
            let counted = vector.longest_cycles;
            assert!(
                (counted..=counted + 3 * GRAIN).contains(&told),
                "{policy} {timing}: {line} takes {counted}, and {told} are told: {}",
                result.said
            );
        }
        // Both kinds of timer interrupts occur, and those kinds of line interrupts that the timing
        // has.
        let is_lazy = timing == "lazy";
        for (event, happens) in [
            ("request_served", true),
            ("request_refused", is_lazy),
            ("expiry_served", true),
            ("expiry_empty", true),
        ] {
            assert_eq!(
                cycles(own, event) > 0,
                happens,
                "{policy} {timing}: {event}"
            );
        }
        // An interrupt without a limit has four instructions and a return.
        let ordinary = cycles(&costs["off"], "request_served");
        assert!(
            (24 + 5..=24 + 5 + 3 * GRAIN).contains(&ordinary),
            "{ordinary}"
        );
    });
}

#[test]
fn cortex_m_refuses_what_cannot_be_measured() {
    if !can_run() {
        return;
    }
    let elf = Elf::new();
    let bad = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        build(&elf.path, &options).expect_err("it is built")
    };
    assert!(bad(&["0x08000000", "0x20000000"]).contains("the end of the RAM"));
    assert!(
        bad(&["-DPOLICIES(DO)=DO(strict, eager, STRICT, EAGER, 2)"]).contains("cannot be kept")
    );
    assert!(bad(&["-DCHIP_LINE"]).contains("message is above"));
}
