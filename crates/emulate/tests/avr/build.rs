// SPDX-License-Identifier: GPL-3.0-or-later
//! A limit that ports/avr cannot keep does not compile, and the error says what would be right.
//! Files that disagree about a limiter's layout do not link.

use std::path::Path;
use std::process::Command;

use crate::port::{Flavour, Limit, firmware, try_build};
use rayon::prelude::*;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::firmware::Firmware;

/// Macros of limited.c, with values that replace the default ones.
type Defines<'a> = &'a [(&'a str, &'a str)];

/// Returns the messages of a compilation that must fail.
fn refusal(firmware: &Firmware) -> String {
    match try_build(firmware) {
        Ok(_) => panic!("this compiles: {:?}", firmware.defines),
        Err(error) => error.to_string(),
    }
}

/// Returns limited.c with some of its macros replaced.
fn limited(flavour: Flavour, replaced: &[(&str, &str)]) -> Firmware {
    let limit = match flavour {
        Flavour::C => Limit::new(
            LimitPolicy::Strict,
            LimitTiming::Lazy,
            1000,
            1,
            "TIMER1A",
            8,
        ),
        _ => Limit::new(LimitPolicy::Strict, LimitTiming::Lazy, 100, 1, "TIMER0", 32),
    };
    let mut defines = limit.defines();
    for (name, value) in replaced {
        let start = format!("{name}=");
        defines.retain(|define| !define.starts_with(&start));
        defines.push(format!("{name}={value}"));
    }
    firmware(&["limited.c"], flavour, &defines)
}

const STRICT: &str = "WEIR_LIMIT_STRICT";
const BURSTY: &str = "WEIR_LIMIT_BURSTY";
const BUCKET: &str = "WEIR_LIMIT_BUCKET";

const INTERVAL: &str = "the interval must be 1 to 16383 ticks";
const BURST: &str = "the burst must be 1 to 255";
const POLICY: &str = "policy, timing and trigger must be WEIR_LIMIT_ names";
const LAG: &str = "the lag must be below the interval";
const FAST_POLICY: &str = "fast has strict (eager or lazy), bursty";
const FAST_INTERVAL: &str = "the interval must be 4 to 250 ticks of the 8-bit timer";
const PRESCALER: &str = "this timer has no such prescaler";

#[test]
fn a_limit_that_cannot_be_kept_does_not_compile() {
    let bad: &[(Flavour, Defines<'_>, &str)] = &[
        (Flavour::C, &[("TEST_INTERVAL", "0")], INTERVAL),
        (Flavour::C, &[("TEST_INTERVAL", "16384")], INTERVAL),
        // Truncated to 16 bits, this value would be 1000.
        (Flavour::C, &[("TEST_INTERVAL", "66536")], INTERVAL),
        (Flavour::C, &[("TEST_INTERVAL", "-5")], INTERVAL),
        (
            Flavour::C,
            &[
                ("TEST_INTERVAL", "0"),
                ("TEST_LIMIT", "WEIR_AVR_LIMIT_TUNABLE"),
            ],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[("TEST_INTERVAL", "0"), ("WEIR_LIMIT_RECORD", "1")],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[
                ("TEST_POLICY", BUCKET),
                ("TEST_BURST", "4"),
                ("TEST_INTERVAL", "6554"),
            ],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[("TEST_INTERVAL", "WEIR_AVR_TICKS(0, 8)")],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[("TEST_INTERVAL", "WEIR_AVR_TICKS(-3, 8)")],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[("TEST_INTERVAL", "WEIR_AVR_TICKS(500001, 8)")],
            INTERVAL,
        ),
        (
            Flavour::C,
            &[("TEST_INTERVAL", "WEIR_AVR_TICKS(30, 8)")],
            INTERVAL,
        ),
        (Flavour::C, &[("TEST_BURST", "0")], BURST),
        (Flavour::C, &[("TEST_BURST", "2")], BURST),
        (
            Flavour::C,
            &[("TEST_POLICY", BURSTY), ("TEST_BURST", "0")],
            BURST,
        ),
        (
            Flavour::C,
            &[("TEST_POLICY", BURSTY), ("TEST_BURST", "260")],
            BURST,
        ),
        (Flavour::C, &[("TEST_POLICY", "9")], POLICY),
        (
            Flavour::C,
            &[("TEST_TIMING", "WEIR_LIMIT_ONE_SHOT")],
            POLICY,
        ),
        (Flavour::C, &[("TEST_LAG", "1000")], LAG),
        (
            Flavour::C,
            &[("TEST_POLICY", "WEIR_LIMIT_PACED"), ("TEST_LAG", "1")],
            LAG,
        ),
        (Flavour::C, &[("TEST_PRESCALER", "32")], PRESCALER),
        (Flavour::Fast, &[("TEST_INTERVAL", "251")], FAST_INTERVAL),
        (Flavour::Fast, &[("TEST_INTERVAL", "3")], FAST_INTERVAL),
        (Flavour::Fast, &[("TEST_INTERVAL", "65636")], INTERVAL),
        (
            Flavour::Fast,
            &[
                ("TEST_POLICY", BUCKET),
                ("TEST_BURST", "4"),
                ("TEST_INTERVAL", "61"),
            ],
            FAST_INTERVAL,
        ),
        (
            Flavour::Fast,
            &[("TEST_POLICY", "WEIR_LIMIT_PACED")],
            FAST_POLICY,
        ),
        (
            Flavour::Fast,
            &[
                ("TEST_POLICY", BURSTY),
                ("TEST_TIMING", "WEIR_LIMIT_EAGER"),
                ("TEST_BURST", "4"),
            ],
            FAST_POLICY,
        ),
        (
            Flavour::Fast,
            &[("TEST_POLICY", BURSTY), ("TEST_BURST", "129")],
            FAST_POLICY,
        ),
        (Flavour::Fast, &[("TEST_POLICY", BUCKET)], FAST_POLICY),
        (
            Flavour::Fast,
            &[("TEST_POLICY", STRICT), ("TEST_BURST", "3")],
            BURST,
        ),
        (Flavour::Fast, &[("TEST_PRESCALER", "1")], PRESCALER),
        (
            Flavour::Fast,
            &[("TEST_CHANNEL", "TIMER2"), ("TEST_PRESCALER", "32")],
            PRESCALER,
        ),
    ];
    bad.par_iter().for_each(|(flavour, replaced, message)| {
        let messages = refusal(&limited(*flavour, replaced));
        assert!(
            messages.contains(message),
            "{flavour:?} {replaced:?} says: {messages}"
        );
    });
    let good: &[(Flavour, Defines<'_>)] = &[
        (Flavour::C, &[]),
        (Flavour::C, &[("TEST_INTERVAL", "16383")]),
        (Flavour::C, &[("TEST_INTERVAL", "WEIR_AVR_TICKS(31, 8)")]),
        (
            Flavour::C,
            &[
                ("TEST_POLICY", BUCKET),
                ("TEST_BURST", "4"),
                ("TEST_INTERVAL", "6553"),
            ],
        ),
        (Flavour::Fast, &[("TEST_INTERVAL", "250")]),
        (
            Flavour::Fast,
            &[
                ("TEST_POLICY", BUCKET),
                ("TEST_BURST", "4"),
                ("TEST_INTERVAL", "60"),
            ],
        ),
    ];
    good.par_iter().for_each(|(flavour, replaced)| {
        if let Err(error) = try_build(&limited(*flavour, replaced)) {
            panic!("{flavour:?} {replaced:?}: {error}");
        }
    });
}

/// The facts about the port in crates/boards agree with the port's headers: a limit compiles if its
/// flavour supports it, with the greatest number of ticks but not with one more.
#[test]
fn the_headers_take_what_the_rules_offer() {
    let board = weir_boards::Board::named("atmega128").unwrap();
    let mut cases = Vec::new();
    // The short form tries the bursts at both ends of the widest ranges.
    let bursts: &[u64] = if crate::is_long() {
        &[0, 1, 2, 60, 61, 128, 129, 255, 256]
    } else {
        &[1, 61, 255, 256]
    };
    for flavour in weir_boards::Flavour::ALL {
        let rules = board.rules(flavour).unwrap();
        for policy in weir_boards::Policy::ALL {
            if matches!(policy, weir_boards::Policy::Off | weir_boards::Policy::Poll) {
                continue;
            }
            for timing in weir_boards::Timing::ALL {
                for &burst in bursts {
                    let offer = (rules.offers)(policy, timing, burst, rules.own_bits);
                    let limit = (flavour, policy.name(), timing.name(), burst);
                    match offer {
                        Some(range) => {
                            cases.push((limit, range.most, true));
                            cases.push((limit, range.most + 1, false));
                        }
                        None => cases.push((limit, 4, false)),
                    }
                }
            }
        }
    }
    assert!(cases.len() > 22 * bursts.len());
    cases
        .par_iter()
        .for_each(|&((flavour, policy, timing, burst), interval, is_kept)| {
            let of_port = match flavour {
                weir_boards::Flavour::C => Flavour::C,
                weir_boards::Flavour::Fast => Flavour::Fast,
            };
            let name = |word: &str| format!("WEIR_LIMIT_{}", word.to_uppercase());
            let (burst, interval) = (burst.to_string(), interval.to_string());
            let built = try_build(&limited(
                of_port,
                &[
                    ("TEST_POLICY", &name(policy)),
                    ("TEST_TIMING", &name(timing)),
                    ("TEST_BURST", &burst),
                    ("TEST_INTERVAL", &interval),
                ],
            ));
            assert_eq!(
                built.is_ok(),
                is_kept,
                "{flavour:?} {policy} {timing}, {interval} ticks, burst {burst}: {:?}",
                built.err().map(|error| error.to_string())
            );
        });
}

/// Builds a C file with this text and the port's headers.
fn source(folder: &Path, text: &str, flavour: Flavour) -> Firmware {
    let file = folder.join("source.c");
    std::fs::write(&file, text).unwrap();
    firmware(&[file.to_str().unwrap()], flavour, &[])
}

#[test]
fn a_shared_timer_that_cannot_be_kept_does_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    for flavour in [Flavour::C, Flavour::FastShared] {
        for (burst, period, message) in [
            ("0", "20000", BURST),
            ("256", "20000", BURST),
            ("5", "0", "the period must be 1 to 65535 ticks"),
            ("5", "65536", "the period must be 1 to 65535 ticks"),
            ("5", "65535", ""),
        ] {
            let text = format!(
                "#include <weir/avr.h>\n\
                 WEIR_AVR_LIMIT_SHARED(a, INT0, TIMER1A, .interval = 20000, .burst = {burst}) {{ PORTA = 1; }}\n\
                 WEIR_AVR_SHARED_TIMER(TIMER1A, {period}) {{ weir_avr_clear(a); }}\n\
                 int main(void) {{ weir_avr_start(a); weir_avr_start_shared(); for (;;) {{ }} }}\n"
            );
            let firmware = source(folder.path(), &text, flavour);
            if message.is_empty() {
                try_build(&firmware).unwrap_or_else(|error| panic!("{error}"));
            } else {
                let messages = refusal(&firmware);
                assert!(
                    messages.contains(message),
                    "{flavour:?} {burst} {period} says: {messages}"
                );
            }
        }
    }
}

#[test]
fn the_ticks_of_a_rate_never_admit_more_than_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "#include <weir/avr.h>\nint main(void) { return 0; }\n".to_owned();
    for prescaler in [1_u64, 8, 64, 256, 1024] {
        for hertz in [1_u64, 3, 7, 100, 400, 781, 977, 1000, 3905, 3906] {
            let exact = 4_000_000_u64.div_ceil(hertz * prescaler);
            text += &format!(
                "_Static_assert(WEIR_AVR_TICKS({hertz}, {prescaler}) == {exact}, \"\");\n"
            );
        }
    }
    text += "_Static_assert(WEIR_AVR_TICKS(3907, 1024) == 0 && WEIR_AVR_TICKS(0, 1) == 0, \"\");\n";
    if let Err(error) = try_build(&source(folder.path(), &text, Flavour::C)) {
        panic!("{error}");
    }
}

#[test]
fn files_that_disagree_about_the_record_do_not_link() {
    let folder = tempfile::tempdir().unwrap();
    let mut firmware = limited(Flavour::C, &[]);
    // The limiter's set-up is compiled separately, with a record.
    let object = folder.path().join("limit.o");
    let position = firmware
        .sources
        .iter()
        .position(|source| source.ends_with("limit.c"))
        .unwrap();
    let compiled = Command::new("avr-gcc")
        .args([
            "-mmcu=atmega128",
            "-Os",
            "-std=c11",
            "-DWEIR_TICK_BITS=16",
            "-DWEIR_LIMIT_RECORD=1",
            "-c",
            "-I",
        ])
        .arg(&firmware.includes[0])
        .arg(&firmware.sources[position])
        .arg("-o")
        .arg(&object)
        .status()
        .unwrap();
    assert!(compiled.success());
    firmware.sources[position] = object;
    let messages = refusal(&firmware);
    assert!(
        messages.contains("weir_limit_start_with_record_0_and_ticks_16"),
        "{messages}"
    );
    firmware.defines.push("WEIR_LIMIT_RECORD=1".to_owned());
    try_build(&firmware).unwrap_or_else(|error| panic!("{error}"));
}
