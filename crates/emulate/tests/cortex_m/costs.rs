// SPDX-License-Identifier: GPL-3.0-or-later
//! Measures the costs of ports/cortex-m's limits. The instructions by policy must equal those of
//! boards/mps2-an385/costs.toml if that file has a column for the installed compiler. The bytes are
//! measured, too.
//!
//! The test searches for the longest interrupt of each kind, with floods of [`RUN`] intervals that
//! include a wrap of the timer. The floods are storms of rates around and above the limit at random
//! phases ([`storm`]), and bursts within the limit. Two firmwares differ only in the handler's
//! body, which has [`SHORT`] or [`LONG`] instructions. By the length of an interrupt the test tells
//! whether the handler ran in it.
//!
//! `cargo test -p weir-emulate --test main cortex_m::costs -- --nocapture` prints the tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::cortex::{Elf, Limit, PER_TICK, can_run, compile, flood, requests, spec, storm};
use object::{Object, ObjectSection, SectionKind};
use rayon::prelude::*;
use weir_core_sys::LimitTiming;
use weir_emulate::firmware::Toolchain;
use weir_emulate::run::{LineStimulus, run};

const SOURCE: &str = "ports/cortex-m/tests/cost.c";
/// The number of instructions in the handler's body: as few as possible, or more than the
/// difference between any two kinds of interrupts.
const SHORT: u64 = 2;
const LONG: u64 = 1000;
/// The duration of a search in intervals.
const RUN: u64 = 1200;
/// The cycles until the firmware has started its sources.
const STARTED: u64 = 2000;

/// Builds a firmware with these limits in one group.
fn elf(limits: &[Limit], more: &[String]) -> Elf {
    let mut defines = vec!["WEIR_LIMIT_RECORD=0".to_owned()];
    let join = |prefix: &str| {
        (1..limits.len()).fold(format!("{prefix}0"), |text, n| {
            format!("{text},{prefix}{n}")
        })
    };
    if !limits.is_empty() {
        defines.push(format!("SOURCES={}", join("")));
        defines.push(format!("MEMBERS={}", join("source")));
    }
    for (index, limit) in limits.iter().enumerate() {
        defines.push(limit.initialiser(&format!("LIMIT{index}")));
    }
    defines.extend_from_slice(more);
    compile(SOURCE, &defines).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the instructions of the longest interrupt of a source's line, and of the timer, from
/// cycle `begin` to `end`. 0 if there is none.
fn longest(elf: &Elf, floods: &[LineStimulus], begin: u64, end: u64) -> (u64, u64) {
    let mut spec = spec(elf, floods, end - begin);
    spec.warmup_cycles = begin;
    let result = run(&spec).unwrap_or_else(|error| panic!("{error}"));
    let of = |name: &str| {
        let vector = result.vectors.iter().find(|used| used.name == name);
        vector.map_or(0, |used| used.longest_cycles - 24)
    };
    (of("IRQ20"), of("IRQ10"))
}

/// Returns the instructions of the longest interrupt of each kind, by its name in
/// boards/atmega128/costs.toml.
fn costs(limit: &Limit) -> BTreeMap<&'static str, u64> {
    let (interval, burst) = (limit.config.interval * PER_TICK, limit.config.burst);
    let end = RUN * interval;
    // The timer wraps in the middle of the search.
    let wrap = format!("BEFORE_WRAP={}", RUN / 2 * limit.config.interval);
    let [short, long] =
        [SHORT, LONG].map(|padding| elf(&[*limit], &[wrap.clone(), format!("PADDING={padding}")]));
    let beyond = [storm("IRQ20", interval, 1, end)];
    // At most this many requests come. Then none come until the limiter has forgotten them.
    let within = [flood(&format!(
        "IRQ20=bursts:{burst}:gap={}cycles:period={}cycles",
        interval / 7,
        (u64::from(burst) + 4) * interval + 17
    ))];

    let (request, expiry) = longest(&long, &beyond, STARTED, end);
    let (request_within, _) = longest(&long, &within, STARTED, end);
    let served = request.max(request_within) - LONG;
    let mut all = BTreeMap::from([("request_served", served), ("expiry_served", expiry - LONG)]);
    let (short_within, mut empty) = longest(&short, &within, STARTED, end);
    assert_eq!(
        request_within - LONG,
        short_within - SHORT,
        "only the body differs"
    );
    if limit.config.timing == LimitTiming::Lazy {
        // The longest refusal is the longest interrupt of all, unless an interrupt that served is
        // longer.
        let (request, _) = longest(&short, &beyond, STARTED, end);
        let refused = if request > served + SHORT {
            request
        } else {
            first_refusal(limit, &short)
        };
        all.insert("request_refused", refused);
        empty = empty.max(last_expiry(limit, &short, &long));
    }
    assert!(empty > 0, "{limit:?} has no expiry in vain");
    all.insert("expiry_empty", empty);
    all
}

/// Returns the cost of the first request that a lazy limiter refuses, with one request more than
/// the burst.
fn first_refusal(limit: &Limit, short: &Elf) -> u64 {
    let times: Vec<u64> = (0..=u64::from(limit.config.burst))
        .map(|n| 5000 + 300 * n)
        .collect();
    let last = times[times.len() - 1];
    longest(short, &[requests("IRQ20", times)], last - 100, last + 200).0
}

/// Returns the cost of the longest expiry of a lazy limiter that serves nothing. Such an expiry
/// comes when the source is silent after an overload.
fn last_expiry(limit: &Limit, short: &Elf, long: &Elf) -> u64 {
    let (interval, burst) = (
        limit.config.interval * PER_TICK,
        u64::from(limit.config.burst),
    );
    // The requests are one more than the burst, followed by enough to use up the next burst.
    let mut times: Vec<u64> = (0..=burst).map(|n| 5000 + 300 * n).collect();
    let next = times[0] + interval + 1500;
    times.extend((1..burst).map(|n| next + 300 * n));
    // The requests may also come without a pause, until the limiter masks the source for another
    // interval.
    let lasting: Vec<u64> = (0..40).map(|n| 5000 + n * interval / 8).collect();
    let vain = [times, lasting].map(|times| {
        let silent = times[times.len() - 1];
        let floods = [requests("IRQ20", times)];
        let end = silent + 12 * interval;
        // Only windows in which no handler runs are considered.
        let windows = (0..16).map(|half| silent + 400 + half * interval / 2);
        let mut vain = windows.filter(|&begin| longest(long, &floods, begin, end).1 < LONG);
        vain.next()
            .map_or(0, |begin| longest(short, &floods, begin, end).1)
    });
    vain[0].max(vain[1])
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
    let limits: Vec<Limit> = Limit::all()
        .into_iter()
        .filter(|limit| limit.divisor == 1)
        .collect();
    let all: Vec<_> = limits
        .par_iter()
        .map(|limit| (limit, costs(limit)))
        .collect();
    for (limit, costs) in all {
        let path = limit.names();
        writeln!(measured, "\n[instructions.c.{}.{}]", path[0], path[1]).unwrap();
        for (event, instructions) in costs {
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
            // The code of another compiler has other costs.
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

/// Returns the bytes of code and constants, and the bytes of variables.
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
        let [none, one, two] = [0, 1, 2].map(|limited| bytes(&elf(&[*limit; 2][..limited], &[])));
        let tunable = bytes(&elf(&[*limit; 2], &["TUNABLE".to_owned()]));
        let first = (one.0 - none.0, one.1 - none.1);
        let second = (two.0 - one.0, two.1 - one.1);
        // The size of both sources together, including the functions of core/ that change limits.
        let changing = (tunable.0 - none.0, tunable.1 - none.1);
        println!(
            "{:?}: {first:?} bytes of flash and RAM with the timer, {second:?} for another, {changing:?} for two that change",
            limit.names()
        );
        // The sizes include the timer, its interrupt and its set-up.
        for (flash, memory) in [first, second, (changing.0 / 2, changing.1 / 2)] {
            assert!(flash <= 2048 && memory <= 32, "{limit:?} {flash} {memory}");
        }
    }
}
