// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests main loops that disturb a source continuously: they change the limit or enable the line
//! repeatedly, or mask interrupts for as long as a timer takes to wrap.

use crate::port::{CLOCK, Elf, Flavour, build, flood};
use weir_emulate::board::EmulatedBoard;
use weir_emulate::run::run;

/// Returns the number of services in a second under a flood, and how many of them came too soon.
fn served(elf: &Elf) -> (u64, u64) {
    let mut spec = EmulatedBoard::ATMEGA128.spec(&elf.path, CLOCK, CLOCK);
    spec.floods = vec![flood("INT0=20kHz")];
    spec.counters = ["served", "soon"].map(str::to_owned).to_vec();
    let result = run(&spec).unwrap_or_else(|error| panic!("{error}"));
    (result.counters["served"], result.counters["soon"])
}

fn firmware(flavour: Flavour, defines: &[(&str, &str)]) -> Elf {
    let defines: Vec<String> = defines
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    build(&["restless.c"], flavour, &defines)
}

/// LIMIT-CHANGE-3: setting a limit to its current value does not starve the source, however often
/// that happens.
#[test]
fn changes_at_any_rate_do_not_starve_the_source() {
    for timing in ["WEIR_LIMIT_EAGER", "WEIR_LIMIT_LAZY"] {
        for pause in ["40", "700", "1500", "2040", "2500", "3065", "4000"] {
            let elf = firmware(
                Flavour::C,
                &[
                    ("TEST_KIND", "1"),
                    ("TEST_CHANNEL", "TIMER3A"),
                    ("TEST_PRESCALER", "1024"),
                    ("TEST_INTERVAL", "20"),
                    ("TEST_TIMING", timing),
                    ("TEST_PAUSE", pause),
                ],
            );
            let (served, _) = served(&elf);
            assert!(
                (150..=196).contains(&served),
                "{served} served, 195 allowed: {timing}, a change each {pause} cycles"
            );
        }
    }
}

/// LIMIT-ENABLE-1 and -BURSTY-1: enabling a line that is on changes nothing.
#[test]
fn enabling_what_is_on_buys_nothing_on_a_shared_timer() {
    for flavour in [Flavour::C, Flavour::FastShared] {
        let elf = firmware(
            flavour,
            &[
                ("TEST_KIND", "2"),
                ("TEST_CHANNEL", "TIMER3A"),
                ("TEST_PRESCALER", "8"),
                ("TEST_INTERVAL", "5000"),
                ("TEST_PAUSE", "1000"),
            ],
        );
        let (served, _) = served(&elf);
        assert!((99..=101).contains(&served), "{served} served: {flavour:?}");
    }
}

/// LIMIT-LIVE-1: the shortest period of a shared timer is kept from the timer's start on.
#[test]
fn a_shared_timer_keeps_a_period_of_one_tick() {
    let elf = firmware(
        Flavour::FastShared,
        &[
            ("TEST_KIND", "4"),
            ("TEST_CHANNEL", "TIMER3A"),
            ("TEST_PRESCALER", "1024"),
            ("TEST_INTERVAL", "1"),
            ("TEST_PAUSE", "1000"),
        ],
    );
    let (served, _) = served(&elf);
    assert!(served > 3_800, "{served} served");
}

/// LIMIT-STRICT-1: an expiry that is taken a whole wrap late serves only once.
#[test]
fn an_expiry_a_wrap_late_serves_once() {
    for timing in ["WEIR_LIMIT_EAGER", "WEIR_LIMIT_LAZY"] {
        for (flavour, channel, prescaler, interval, off) in [
            (Flavour::Fast, "TIMER2", "8", "69", "2000"),
            (Flavour::Fast, "TIMER0", "8", "100", "1900"),
            (Flavour::C, "TIMER3A", "1", "1100", "65200"),
        ] {
            let elf = firmware(
                flavour,
                &[
                    ("TEST_KIND", "3"),
                    ("TEST_CHANNEL", channel),
                    ("TEST_PRESCALER", prescaler),
                    ("TEST_INTERVAL", interval),
                    ("TEST_TIMING", timing),
                    ("TEST_PAUSE", "3001"),
                    ("TEST_OFF", off),
                ],
            );
            let (served, soon) = served(&elf);
            assert!(served > 60, "{served} served");
            assert_eq!(soon, 0, "{channel} {timing}: too soon, of {served} served");
        }
    }
}
