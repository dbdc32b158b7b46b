// SPDX-License-Identifier: GPL-3.0-or-later
//! Interrupts with Weir preserve all registers of the interrupted code, except those that the fast
//! flavour reserves.

use std::process::Command;

use crate::port::{CLOCK, Elf, Flavour, Limit, build, flood};
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::run::run;

fn limits(flavour: Flavour) -> Vec<Limit> {
    if flavour == Flavour::C {
        vec![
            Limit::new(
                LimitPolicy::Strict,
                LimitTiming::Eager,
                1000,
                1,
                "TIMER1A",
                1,
            ),
            Limit::new(
                LimitPolicy::Strict,
                LimitTiming::Lazy,
                1000,
                1,
                "TIMER3A",
                1,
            ),
            Limit::new(LimitPolicy::Paced, LimitTiming::Lazy, 1000, 1, "TIMER1A", 1),
            Limit::new(
                LimitPolicy::Bursty,
                LimitTiming::Lazy,
                4000,
                4,
                "TIMER1A",
                1,
            ),
            Limit::new(LimitPolicy::Bucket, LimitTiming::Lazy, 50, 4, "TIMER1A", 8),
        ]
    } else {
        vec![
            Limit::new(LimitPolicy::Strict, LimitTiming::Eager, 125, 1, "TIMER0", 8),
            Limit::new(LimitPolicy::Strict, LimitTiming::Lazy, 125, 1, "TIMER2", 8),
            Limit::new(LimitPolicy::Bursty, LimitTiming::Lazy, 240, 4, "TIMER0", 8),
            Limit::new(LimitPolicy::Bucket, LimitTiming::Lazy, 50, 4, "TIMER0", 8),
            Limit::new(LimitPolicy::Bucket, LimitTiming::Lazy, 50, 4, "TIMER2", 8),
        ]
    }
}

fn firmware(limit: &Limit, flavour: Flavour, wrapped: bool) -> Elf {
    let mut defines = limit.defines();
    if wrapped {
        defines.push("TEST_WRAP".to_owned());
    }
    build(&["registers.c"], flavour, &defines)
}

#[test]
fn every_register_and_flag_survives_every_interrupt() {
    // Cycles of a run, and the least interrupts and looks in it.
    let (cycles, least) = if crate::is_long() {
        (4_000_000, 1000)
    } else {
        (1_000_000, 200)
    };
    for flavour in [Flavour::C, Flavour::Fast] {
        for wrapped in [false, true] {
            limits(flavour).into_par_iter().for_each(|limit| {
                let elf = firmware(&limit, flavour, wrapped);
                for text in [
                    format!("INT0={:.1}Hz", limit.rate() * 0.91),
                    format!("INT0=poisson:{:.1}Hz:seed=3", limit.rate() * 1.5),
                    format!("INT0={:.1}Hz", limit.rate() * 2.7),
                ] {
                    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, CLOCK, cycles);
                    spec.floods.push(flood(&text));
                    spec.counters = vec!["intact".to_owned(), "spoilt".to_owned()];
                    let result = run(&spec).unwrap();
                    let taken: u64 = result.vectors.iter().map(|vector| vector.taken).sum();
                    assert!(taken > least, "{taken} interrupts taken");
                    assert_eq!(
                        result.counters["spoilt"], 0,
                        "{limit:?} {flavour:?} wrapped {wrapped} {text}"
                    );
                    assert!(
                        result.counters["intact"] > least,
                        "{} looks",
                        result.counters["intact"]
                    );
                }
            });
        }
    }
}

/// Returns the disassembly of a firmware by function.
fn functions(elf: &Elf) -> Vec<(String, Vec<String>)> {
    let output = Command::new("avr-objdump")
        .arg("-d")
        .arg(&elf.path)
        .output()
        .unwrap();
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((_, name)) = line
            .strip_suffix(">:")
            .and_then(|line| line.split_once('<'))
        {
            // A local label of the assembler is in the middle of a function.
            if !name.starts_with(".L") {
                all.push((name.to_owned(), Vec::new()));
            }
        } else if let (Some((_, lines)), Some(instruction)) =
            (all.last_mut(), line.split('\t').nth(2))
        {
            let operands = line.split('\t').nth(3).unwrap_or("");
            lines.push(format!("{} {operands}", instruction.trim()));
        }
    }
    all
}

/// Returns whether an instruction uses one of the registers r2 to r10.
fn names_a_reserved_register(instruction: &str) -> bool {
    instruction.split([' ', ',', ';']).any(|word| {
        word.strip_prefix('r')
            .and_then(|number| number.parse::<u8>().ok())
            .is_some_and(|n| (2..=10).contains(&n))
    })
}

#[test]
fn only_the_fast_limiter_touches_the_registers_that_it_reserves() {
    for limit in limits(Flavour::Fast) {
        let elf = build(&["limited.c"], Flavour::Fast, &limit.defines());
        let mut entries = 0;
        for (name, instructions) in functions(&elf) {
            let uses = instructions
                .iter()
                .filter(|one| names_a_reserved_register(one))
                .count();
            // The interrupt entries are in the vector table and after it, where objdump knows only
            // the linker's label. main() contains the code of weir_avr_start().
            let is_entry = name.starts_with("__vectors")
                || name == "__trampolines_end"
                || name.starts_with("weir_fast");
            if is_entry {
                entries += uses;
            } else if name != "main" {
                assert_eq!(uses, 0, "{name} of {limit:?}: {instructions:?}");
            }
        }
        assert!(entries > 3, "the entries are to be found: {entries} uses");
    }
}
