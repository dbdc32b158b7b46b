// SPDX-License-Identifier: GPL-3.0-or-later
//! Measures the instructions that sources with a shared timer add to the timer's interrupt. They
//! must not exceed `[instructions.c.group]` of boards/mps2-an385/costs.toml, which `weir check`
//! uses.
//!
//! `cargo test -p weir-emulate --test main cortex_m::groups -- --nocapture` prints the table.

use crate::cortex::{Elf, Limit, PER_TICK, can_run, compile, flood, spec};
use rayon::prelude::*;
use weir_boards::{Board, Flavour};
use weir_emulate::firmware::Toolchain;
use weir_emulate::run::run;

const SOURCE: &str = "ports/cortex-m/tests/group.c";
/// More ticks than any run of these tests. A source whose expiry is this far away stays armed.
const LONG: u64 = 100_000_000;

/// Builds the firmware in which sources `from..to` are in the group.
fn elf(limit: &Limit, from: usize, to: usize) -> Elf {
    let mut others = *limit;
    others.config.interval = LONG;
    let names: Vec<String> = (from..to).map(|source| format!("s{source}")).collect();
    let defines = [
        limit.initialiser("FIRST"),
        others.initialiser("OTHERS"),
        format!("GROUP={}", names.join(", ")),
        format!("STARTS={}_start();", names.join("_start();")),
        "WEIR_LIMIT_RECORD=0".to_owned(),
    ];
    compile(SOURCE, &defines).unwrap()
}

/// Returns the instructions of the longest run of each vector under the floods.
fn longest(elf: &Elf, floods: &[String], cycles: u64, vectors: &[&str]) -> Vec<u64> {
    let floods: Vec<_> = floods.iter().map(|text| flood(text)).collect();
    let result = run(&spec(elf, &floods, cycles)).unwrap();
    let of = |name: &&str| {
        let vector = result.vectors.iter().find(|used| used.name == *name);
        vector.map_or(0, |used| used.longest_cycles - 24)
    };
    vectors.iter().map(of).collect()
}

/// Returns requests of sources `from..to`, as many as arm each source for the rest of the run.
fn arming(from: usize, to: usize) -> impl Iterator<Item = String> {
    (from..to).map(|source| {
        format!(
            "IRQ{}=bursts:8:gap=2000cycles:period=800000000cycles",
            20 + source
        )
    })
}

/// Returns the cost of a timer interrupt in which nothing is due, in the worst state of its only
/// source.
fn idle(limit: &Limit) -> u64 {
    let elf = elf(limit, 1, 2);
    let pulses = "IRQ10=uniform:1000cycles..9000cycles:seed=1".to_owned();
    let floods = |is_armed: bool| {
        let armed = arming(1, 2).filter(move |_| is_armed);
        armed.chain([pulses.clone()]).collect::<Vec<_>>()
    };
    [false, true]
        .map(|is_armed| longest(&elf, &floods(is_armed), 2_000_000, &["IRQ10"])[0])
        .into_iter()
        .fold(0, u64::max)
}

/// Returns the cost that each source after the first adds to the timer's interrupts, rounded up.
fn further(limit: &Limit) -> u64 {
    let apart = 8 * limit.config.interval * PER_TICK;
    let burst = u64::from(limit.config.burst);
    let mut most = 0;
    // One expiry serves nothing, and another serves a request.
    for (requests, groups) in [
        (burst, &[(8, true)][..]),
        (burst + 1, &[(2, true), (8, false), (8, true)]),
    ] {
        let first = format!("IRQ20=bursts:{requests}:gap=2000cycles:period={apart}cycles");
        let of = |members: usize, armed: bool| {
            let elf = elf(limit, 0, members);
            let others = arming(1, members).filter(move |_| armed);
            let floods: Vec<String> = others.chain([first.clone()]).collect();
            longest(&elf, &floods, 8 * apart, &["IRQ10", "IRQ20"])
        };
        let alone = of(1, false);
        for &(members, armed) in groups {
            let together = of(members, armed);
            // A line's own interrupt does not depend on the other sources.
            assert!(together[1] <= alone[1], "{limit:?} {members} {together:?}");
            let added = together[0].saturating_sub(alone[0]);
            most = most.max(added.div_ceil(members as u64 - 1));
        }
    }
    most
}

#[test]
fn cortex_m_groups_cost_what_the_file_says() {
    if !can_run() {
        return;
    }
    // The short form tries three of the nine kinds. They must not cost more than the worst.
    let step = if crate::is_long() { 1 } else { 3 };
    let limits = Limit::all().into_iter().filter(|limit| limit.divisor == 1);
    let limits: Vec<Limit> = limits.step_by(step).collect();
    let measured: Vec<(u64, u64)> = limits
        .par_iter()
        .map(|limit| (idle(limit), further(limit)))
        .collect();
    println!("{measured:?}");
    let worst = measured
        .iter()
        .fold((0, 0), |(a, b), of| (a.max(of.0), b.max(of.1)));
    let version = Toolchain::CORTEX_M3.version().unwrap().number();
    println!(
        "[instructions.c.group]\nclear_empty = {{ {version:?} = {} }}\nexpiry_base = {{ {version:?} = {} }}",
        worst.1, worst.0
    );
    let board = Board::named("mps2-an385").unwrap();
    let is_known = board.compilers().iter().any(|of| of.ends_with(&version));
    let costs = board.exception_costs().unwrap();
    let (base, further) = board.group_costs(Flavour::C);
    let stated = (base - costs.entry_cycles - costs.exit_cycles, further);
    // The code of another compiler has other costs.
    let is_right = if crate::is_long() {
        worst == stated
    } else {
        worst.0 <= stated.0 && worst.1 <= stated.1
    };
    assert!(!is_known || is_right, "{worst:?}, the file says {stated:?}");
}
