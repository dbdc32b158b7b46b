// SPDX-License-Identifier: GPL-3.0-or-later
//! What a limit of ports/cortex-m costs: instructions by policy, which must be those of
//! boards/mps2-an385/costs.toml where the installed compiler has a column there, and bytes.
//!
//! `cargo test -p weir-board --test cortex_m_costs -- --nocapture` prints the tables.
mod cortex;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cortex::{Elf, Limit, PER_TICK, can_run, compile, spec};
use object::{Object, ObjectSection, SectionKind};
use weir_board::firmware::Toolchain;
use weir_board::run::{RunResult, run};
use weir_core_sys::{LimitPolicy, LimitTiming};

const SOURCE: &str = "ports/cortex-m/tests/cost.c";

fn elf(limit: &Limit, limited: u32, body: u64) -> Elf {
    let mut defines = vec![
        limit.initialiser(),
        format!("LIMITED={limited}"),
        "WEIR_LIMIT_RECORD=0".to_owned(),
    ];
    if body > 0 {
        let nops = "nop\\n\\t".repeat(usize::try_from(body).unwrap());
        defines.push(format!("BODY=__asm volatile(\"{nops}\")"));
    }
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

/// The instructions of a body, more than a limiter's: the runs that are longer have served.
const BODY: u64 = 150;

/// What the line and the timer did in a flood: how often they were taken, their instructions, and
/// those of the longest run of each.
fn flooded(elf: &Elf, flood: &str, cycles: u64, warmup: u64) -> [(u64, u64, u64); 2] {
    let mut spec = spec(elf, &[flood], cycles);
    spec.warmup_cycles = warmup;
    let result = run(&spec).unwrap();
    ["IRQ20", "IRQ10"].map(|vector| used(&result, vector))
}

/// The instructions of each event, by its name in boards/atmega128/costs.toml.
fn costs(limit: &Limit) -> BTreeMap<&'static str, u64> {
    let [empty_body, with_body] = [0, BODY].map(|body| elf(limit, 1, body));
    let interval = limit.config.interval * PER_TICK;
    let burst = u64::from(limit.config.burst);
    let per_request = match limit.config.policy {
        LimitPolicy::Bursty => interval / burst,
        _ => interval,
    };
    // A burst as soon as it may come.
    let soon = 1000 * burst
        + 500
        + match limit.config.policy {
            LimitPolicy::Bucket => burst * interval,
            _ => interval,
        };
    // So many requests, close together, in each round, which ends with an idle limiter.
    let apart = (burst + 4) * interval;
    let rounds = |requests: u64| format!("bursts:{requests}:gap=2000cycles:period={apart}cycles");
    // Requests within the limit, and beyond it at any distance.
    let within = [
        rounds(burst),
        format!("bursts:{burst}:gap=1000cycles:period={soon}cycles"),
        format!(
            "uniform:{}cycles..{}cycles:seed=1",
            per_request + 500,
            2 * per_request
        ),
    ];
    let beyond = [
        rounds(burst + 1),
        rounds(burst + 3),
        format!("uniform:400cycles..{}cycles:seed=2", 2 * per_request),
        format!("bursts:2:gap=400cycles:period={per_request}cycles"),
    ];
    let longest = |elf: &Elf, patterns: &[String]| {
        let each = patterns
            .iter()
            .map(|pattern| flooded(elf, &format!("IRQ20={pattern}"), 300 * interval, 0));
        each.fold([0, 0], |[line, timer], [of_line, of_timer]| {
            [line.max(of_line.2), timer.max(of_timer.2)]
        })
    };
    let all = [&within[..], &beyond[..]].concat();
    let [served, expiry_served] = longest(&with_body, &all).map(|run| run - BODY);
    // Within the limit no expiry serves.
    let [longest_served, expiry_empty] = longest(&empty_body, &within);
    let expiry_empty = expiry_empty.max(longest(&with_body, &within)[1]);
    let mut all = BTreeMap::from([("request_served", served), ("expiry_served", expiry_served)]);
    // A lazy limiter takes no expiry in vain after such floods.
    if expiry_empty > 0 {
        all.insert("expiry_empty", expiry_empty);
    }
    if limit.config.timing == LimitTiming::Lazy {
        // A refused request takes longer than a served one, or what it adds to a round. The first
        // round is not counted.
        let round = |requests| {
            let flood = format!("IRQ20={}", rounds(requests));
            flooded(&empty_body, &flood, 50 * apart, apart - 1000)[0]
        };
        let (without, with) = (round(burst), round(burst + 1));
        let refused = if with.2 > longest_served {
            with.2
        } else {
            (with.1 - without.1) / 50
        };
        all.insert("request_refused", refused);
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
        let [none, one, two] = [0, 1, 2].map(|limited| bytes(&elf(limit, limited, 0)));
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
