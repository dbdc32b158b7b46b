// SPDX-License-Identifier: GPL-3.0-or-later
//! What a limit of ports/cortex-m costs: instructions by policy, which must be those of
//! boards/mps2-an385/costs.toml where the installed compiler has a column there, and bytes.
//!
//! `cargo test -p weir-board --test cortex_m_costs -- --nocapture` prints the tables.
mod cortex;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cortex::{Elf, Limit, PER_TICK, can_run, compile, flood, spec};
use object::{Object, ObjectSection, SectionKind};
use weir_board::firmware::Toolchain;
use weir_board::run::{RunResult, run};
use weir_core_sys::LimitTiming;

const SOURCE: &str = "ports/cortex-m/tests/cost.c";

fn elf(limit: &Limit, limited: u32) -> Elf {
    let defines = [
        limit.initialiser("LIMIT"),
        format!("LIMITED={limited}"),
        "WEIR_LIMIT_RECORD=0".to_owned(),
    ];
    compile(SOURCE, &defines).unwrap()
}

/// How often a vector was taken, its instructions in all, and those of the longest.
fn used(result: &RunResult, name: &str) -> (u64, u64, u64) {
    let vector = result.vectors.iter().find(|used| used.name == name);
    vector.map_or((0, 0, 0), |used| {
        let longest = used.longest_cycles - 24;
        (used.taken, used.instructions.unwrap(), longest)
    })
}

/// The instructions of each event, by its name in boards/atmega128/costs.toml.
fn costs(limit: &Limit) -> BTreeMap<&'static str, u64> {
    let elf = elf(limit, 1);
    let interval = limit.config.interval * PER_TICK;
    let burst = u64::from(limit.config.burst);
    // So many requests, close together, in each round, which ends with an idle limiter. The first
    // round is not counted.
    let rounds = |requests: u64| {
        let (count, apart) = (50, (burst + 4) * interval);
        let text = format!("IRQ20=bursts:{requests}:gap=2000cycles:period={apart}cycles");
        let mut spec = spec(&elf, &[flood(&text)], count * apart);
        spec.warmup_cycles = apart - 1000;
        let result = run(&spec).unwrap();
        let request = used(&result, "IRQ20");
        let expiry = used(&result, "IRQ10");
        (request.1 / count, request.2, expiry.1 / count, expiry.2)
    };
    // Within the limit everything is served; one request more waits.
    let (served, longest_served, empty, longest_empty) = rounds(burst);
    let (with_refused, longest, expiries, longest_expiry) = rounds(burst + 1);
    let mut all = BTreeMap::from([("request_served", longest_served)]);
    if limit.config.timing == LimitTiming::Lazy {
        // A refused request takes longer than a served one, or what it adds to a round.
        let added = with_refused - served;
        let refused = if longest > longest_served {
            longest
        } else {
            added
        };
        all.insert("request_refused", refused);
    }
    all.insert("expiry_served", longest_expiry);
    assert!(expiries > 0, "the request that waited is served by one");
    // A lazy limiter takes no expiry in vain after such floods.
    if empty > 0 {
        all.insert("expiry_empty", longest_empty);
    }
    all
}

#[test]
fn cortex_m_costs_are_those_of_the_file() {
    if !can_run() {
        return;
    }
    let version = Toolchain::CORTEX_M3.version().unwrap().number();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards/mps2-an385/costs.toml");
    let file: toml::Table = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut measured = String::new();
    let mut differ = Vec::new();
    for limit in Limit::all().iter().filter(|limit| limit.divisor == 1) {
        let (policy, timing) = (limit.config.policy, limit.config.timing);
        let timing = match timing {
            LimitTiming::OneShot => "one_shot".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let path = [format!("{policy:?}").to_lowercase(), timing];
        writeln!(measured, "\n[instructions.c.{}.{}]", path[0], path[1]).unwrap();
        for (event, instructions) in costs(limit) {
            writeln!(measured, "{event} = {{ {version:?} = {instructions} }}").unwrap();
            let mut found = file.get("instructions").and_then(|table| table.get("c"));
            for name in path.iter().map(String::as_str).chain([event]) {
                found = found.and_then(|table| table.get(name));
            }
            let kept = found.and_then(|columns| columns.get(&version));
            let has_column =
                found.is_some_and(|columns| columns.as_table().is_some_and(|all| !all.is_empty()));
            let is_right =
                kept.and_then(toml::Value::as_integer) == i64::try_from(instructions).ok();
            // Another compiler's code costs something else.
            if !is_right && (kept.is_some() || !has_column) {
                differ.push(format!("{}.{event}", path.join(".")));
            }
        }
    }
    println!("{measured}");
    assert!(
        differ.is_empty(),
        "{differ:?} differ; measured:\n{measured}"
    );
}

/// Bytes of code and constants, and of variables.
fn bytes(elf: &Elf) -> (u64, u64) {
    let content = std::fs::read(&elf.path).unwrap();
    let file = object::File::parse(&*content).unwrap();
    let sum = |kinds: &[SectionKind]| -> u64 {
        file.sections()
            .filter(|section| kinds.contains(&section.kind()))
            .map(|section| section.size())
            .sum()
    };
    (
        sum(&[SectionKind::Text, SectionKind::ReadOnlyData]),
        sum(&[SectionKind::Data, SectionKind::UninitializedData]),
    )
}

#[test]
fn cortex_m_limits_are_small() {
    if !can_run() {
        return;
    }
    for limit in Limit::all().iter().filter(|limit| limit.divisor == 1) {
        let [none, one, two] = [0, 1, 2].map(|limited| bytes(&elf(limit, limited)));
        let (first, second) = (
            (one.0 - none.0, one.1 - none.1),
            (two.0 - one.0, two.1 - one.1),
        );
        println!(
            "{:?} {:?}: {first:?} bytes of flash and RAM with the timer, {second:?} for another",
            limit.config.policy, limit.config.timing
        );
        // With the timer, its interrupt and the set-up in it.
        assert!(
            first.0 <= 2048 && second.0 <= 2048,
            "{limit:?} {first:?} {second:?}"
        );
        assert!(
            first.1 <= 32 && second.1 <= 32,
            "{limit:?} {first:?} {second:?}"
        );
    }
}
