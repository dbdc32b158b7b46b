// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is generated, and what is refused with which words. That the result compiles and runs is
//! tested on the board, in crates/emulate.

use crate::systems::{limited, share, source, system};
use proptest::prelude::*;
use weir_generate::{ChipPlan, Flavour, LineStart, chip, header};
use weir_model::{Interval, Nesting, Place, Policy, System, Timing};

const STRICT: (Policy, Timing) = (Policy::Strict, Timing::Eager);
const BUCKET: (Policy, Timing) = (Policy::Bucket, Timing::Lazy);

fn text(system: &System) -> String {
    let plan = ChipPlan::new(system, chip("atmega128").unwrap()).unwrap_or_else(|refused| {
        panic!("{refused}: {:?}", refused.reasons);
    });
    header(&plan, "system.toml")
}

/// The reasons, one a line: where, what, and what would be right.
fn reasons(system: &System) -> Vec<String> {
    let refused = ChipPlan::new(system, chip("atmega128").unwrap()).unwrap_err();
    assert!(!refused.reasons.is_empty());
    refused
        .reasons
        .iter()
        .map(|reason| format!("{reason}. {}", reason.right))
        .collect()
}

#[track_caller]
fn assert_refused(system: &System, parts: &[&str]) {
    let reasons = reasons(system);
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    for part in parts {
        assert!(reasons[0].contains(part), "no `{part}` in {reasons:#?}");
    }
}

/// The text of a macro without its backslashes.
fn macro_of(text: &str, name: &str) -> String {
    let start = text
        .find(&format!("#define {name}"))
        .unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let lines = text[start..].lines();
    let mut body = Vec::new();
    for line in lines {
        body.push(line.trim_end_matches('\\').trim());
        if !line.ends_with('\\') {
            break;
        }
    }
    body.join(" ")
}

#[test]
fn a_limit_is_followed_by_its_name_and_keeps_its_numbers() {
    let mut system = system("c");
    system.name = "motor".to_owned();
    let mut button = limited("stop-button", "INT4", STRICT, ("TIMER3B", 1), 1000, 1);
    button.limit.lag = 23;
    system.sources = vec![
        limited("encoder", "INT0", BUCKET, ("TIMER1A", 8), 500, 5),
        button,
        source("radio", "USART0_RX"),
        source("spare", "INT7"),
    ];
    let text = text(&system);
    assert!(macro_of(&text, "WEIR_SOURCE_encoder").contains(
        "WEIR_AVR_LIMIT(encoder, INT0, TIMER1A, .policy = WEIR_LIMIT_BUCKET, .timing = WEIR_LIMIT_LAZY, .interval = 500, .lag = 0, .burst = 5)"
    ));
    assert!(macro_of(&text, "WEIR_SOURCE_stop_button").contains(
        "WEIR_AVR_LIMIT(stop_button, INT4, TIMER3B, .policy = WEIR_LIMIT_STRICT, .timing = WEIR_LIMIT_EAGER, .interval = 1000, .lag = 23, .burst = 1)"
    ));
    assert!(macro_of(&text, "WEIR_SOURCE_radio").ends_with("ISR(USART0_RX_vect)"));
    assert!(macro_of(&text, "WEIR_SOURCE_spare").ends_with("WEIR_SYSTEM_LINE_(spare, INT7)"));
    // 4 MHz / (8 * 500)
    assert!(
        text.contains("at most 1 kHz in the long run (LIMIT-BUCKET-1)"),
        "{text}"
    );
    assert!(
        text.contains("requests at least 250 µs apart (1000 cycles): at most 4 kHz"),
        "{text}"
    );
    assert!(text.contains("expected 100 Hz, tolerated 4 kHz"), "{text}");
    let timers = macro_of(&text, "weir_system_run_timers()");
    assert!(
        timers.contains("weir_avr_run_timer(TIMER1A, 8); weir_avr_run_timer(TIMER3B, 1);"),
        "{timers}"
    );
    // Timers, then lines that are on for good, then limiters; a device is its driver's.
    let start = macro_of(&text, "weir_system_start()");
    assert!(
        start.contains("weir_system_run_timers(); weir_avr_start(spare); weir_avr_start(encoder); weir_avr_start(stop_button); }"),
        "{start}"
    );
}

#[test]
fn a_shared_timer_clears_its_sources_and_starts_last() {
    let mut system = system("c");
    share(
        &mut system,
        ("TIMER1A", 1),
        36_364,
        &[("a", "INT0", 3), ("b", "INT1", 2), ("c", "INT2", 7)],
    );
    system
        .sources
        .push(limited("d", "INT3", STRICT, ("TIMER3A", 64), 100, 1));
    let text = text(&system);
    assert!(
        macro_of(&text, "WEIR_SOURCE_c")
            .contains("WEIR_AVR_LIMIT_SHARED(c, INT2, TIMER1A, .interval = 36364, .burst = 7)")
    );
    let timer = macro_of(&text, "WEIR_TIMER_slow0");
    assert!(
        timer.contains("WEIR_AVR_SHARED_TIMER(TIMER1A, 36364)"),
        "{timer}"
    );
    for name in ["a", "b", "c"] {
        assert!(
            timer.contains(&format!("weir_avr_clear({name});")),
            "{timer}"
        );
    }
    assert!(!timer.contains("weir_avr_clear(d)"), "{timer}");
    let start = macro_of(&text, "weir_system_start()");
    assert!(
        start.ends_with("weir_avr_start(d); weir_avr_start_shared(); } } while (0)"),
        "{start}"
    );
}

#[test]
fn the_same_system_gives_the_same_text_with_its_origin() {
    let mut system = system("c");
    system.name = "a \"b\" */ c".to_owned();
    system.sources = vec![limited("x", "INT0", STRICT, ("TIMER1A", 8), 500, 1)];
    let text = text(&system);
    assert_eq!(text, self::text(&system));
    let first = text.lines().next().unwrap();
    assert!(
        first.contains(weir_generate::MARKER) && first.contains("system.toml"),
        "{first}"
    );
    assert!(first.contains(env!("CARGO_PKG_VERSION")), "{first}");
    assert!(text.contains(&system.sha256) && text.contains("schema 1"));
    assert!(
        text.contains(r#"#define WEIR_SYSTEM_NAME "a \"b\" */ c""#),
        "{text}"
    );
    assert!(text.contains("`a \"b\" * / c`"), "{text}");
}

#[test]
fn a_wrong_build_is_told_the_right_flag() {
    let mut system = system("c");
    system.cpu.clock_hz = 16_000_000;
    system.sources = vec![limited("x", "INT0", STRICT, ("TIMER1A", 8), 500, 1)];
    let c = text(&system);
    for flag in [
        "-DF_CPU=16000000UL",
        "-DWEIR_TICK_BITS=16",
        "-mmcu=atmega128",
        "without -DWEIR_AVR_FAST",
    ] {
        assert!(
            c.lines()
                .any(|line| line.starts_with("#error") && line.contains(flag)),
            "{flag}"
        );
    }
    system.cpu.flavour = Some("fast".to_owned());
    system.sources = vec![limited("x", "INT0", STRICT, ("TIMER0", 8), 125, 1)];
    let fast = text(&system);
    assert!(fast.contains("compile with -DWEIR_AVR_FAST"), "{fast}");
    assert!(fast.contains("ports/avr/start/start.S"), "{fast}");
}

#[test]
fn a_limit_off_keeps_the_names_and_switches_the_line_on() {
    let mut system = system("c");
    system.sources = vec![source("x", "INT5"), source("adc", "ADC")];
    let chip = chip("atmega128").unwrap();
    let plan = ChipPlan::new(&system, chip).unwrap();
    assert_eq!(plan.flavour, Flavour::C);
    assert_eq!(plan.sources[0].start, LineStart::Line);
    assert_eq!(plan.sources[1].start, LineStart::Device);
    assert!(plan.timers.is_empty() && plan.shared_timer.is_none());
}

#[test]
fn a_limit_in_silicon_is_a_line_without_one_in_software() {
    let mut system = system("c");
    let mut outside = limited("x", "INT5", STRICT, ("TIMER1A", 8), 500, 1);
    outside.limit.place = Place::Hardware;
    outside.limit.expiry = None;
    let inside = limited("y", "INT0", STRICT, ("TIMER1A", 8), 500, 1);
    system.sources = vec![outside, inside];
    let text = text(&system);
    assert!(text.contains("x: INT5, limited in silicon"), "{text}");
    assert!(macro_of(&text, "WEIR_SOURCE_x").ends_with("WEIR_SYSTEM_LINE_(x, INT5)"));
    assert!(macro_of(&text, "WEIR_SOURCE_y").contains("WEIR_AVR_LIMIT(y, INT0, TIMER1A"));
}

#[test]
fn another_processor_is_refused() {
    let mut own = system("c");
    own.cpu.board = None;
    assert_refused(&own, &["cpu", "the file's own", "board = \"atmega128\""]);
    own.cpu.board = Some("mps2-an385".to_owned());
    assert_refused(&own, &["mps2-an385"]);
    let mut nested = system("c");
    nested.cpu.nesting = Nesting::Grouped;
    assert_refused(&nested, &["interrupts = \"flat\""]);
    assert_refused(&system("quick"), &["no flavour `quick`", "flavour = \"c\""]);
}

#[test]
fn what_the_chip_lacks_is_refused_by_name() {
    let refuse = |change: &dyn Fn(&mut System), parts: &[&str]| {
        let mut system = system("c");
        system.sources = vec![limited("x", "INT0", STRICT, ("TIMER1A", 8), 500, 1)];
        change(&mut system);
        assert_refused(&system, parts);
    };
    refuse(
        &|s| s.sources[0].level.vector = "INT8".to_owned(),
        &["source `x`", "no vector `INT8`", "INT7, TIMER2_COMP"],
    );
    refuse(
        &|s| s.sources[0].level.vector = "ADC".to_owned(),
        &["ADC is no external line", "INT0, INT1"],
    );
    refuse(
        &|s| s.sources[0].limit.policy = Policy::Poll,
        &["polling", "policy = \"strict\""],
    );
    refuse(&|s| s.sources[0].limit.expiry = None, &["no timer"]);
    refuse(
        &|s| s.sources[0].limit.expiry = Some(weir_model::Expiry::Shared(7)),
        &["no timer"],
    );
    refuse(
        &|s| s.sources[0].limit.interval.tick = 32,
        &[
            "TIMER1 cannot count once in 32 cycles",
            "1, 8, 64, 256, 1024",
        ],
    );
    refuse(&|s| s.sources[0].limit.interval.tick = 0, &["cannot count"]);
    refuse(
        &|s| s.sources[0].limit.interval.ticks = 0,
        &["shorter than a tick"],
    );
    refuse(
        &|s| s.sources[0].limit.interval.ticks = 16_384,
        &["16384 ticks is too long", "at most 16383 fit"],
    );
    refuse(&|s| s.sources[0].limit.burst = 2, &["burst cannot be 2"]);
    refuse(&|s| s.sources[0].limit.burst = 0, &["burst cannot be 0"]);
    refuse(&|s| s.sources[0].limit.lag = 500, &["lag cannot be 500"]);
    refuse(
        &|s| s.sources[0].limit.timing = Timing::OneShot,
        &["one-shot"],
    );
    refuse(
        &|s| {
            s.sources[0].limit.interval = Interval::of_cycles(240);
        },
        &["prescaler of 8 or more"],
    );
    refuse(
        &|s| s.sources[0] = limited("x", "INT0", BUCKET, ("TIMER1A", 8), 5462, 5),
        &["at most 5461 fit"],
    );
    refuse(
        &|s| s.sources[0] = limited("x", "INT0", STRICT, ("TIMER0", 8), 100, 1),
        &[
            "`TIMER0`",
            "flavour `c`",
            "TIMER1A, TIMER1B, TIMER1C, TIMER3A",
        ],
    );
    refuse(
        &|s| s.sources[0].name = "3phase".to_owned(),
        &["`3phase`", "letter"],
    );
    refuse(
        &|s| s.sources[0].name = "weir_avr_shared".to_owned(),
        &["Weir's own"],
    );
}

#[test]
fn what_two_sources_cannot_both_have_is_refused() {
    let refuse = |other: weir_model::Source, parts: &[&str]| {
        let mut system = system("c");
        system.sources = vec![
            limited("x-1", "INT0", STRICT, ("TIMER1A", 8), 500, 1),
            other,
        ];
        assert_refused(&system, parts);
    };
    refuse(
        source("x_1", "INT1"),
        &["source `x_1`", "called `x_1`, like `x-1`"],
    );
    refuse(
        source("x-1.must-stand-before_this", "INT1"),
        &["like what is made of `x-1`", "rename it"],
    );
    refuse(
        source("UINT32_MAX", "INT1"),
        &["called `UINT32_MAX`, like what a header of C itself"],
    );
    refuse(
        source("y", "INT0"),
        &["INT0 is used by source `x-1` already"],
    );
    refuse(
        limited("y", "INT1", STRICT, ("TIMER1A", 8), 500, 1),
        &["TIMER1_COMPA is used by source `x-1`"],
    );
    refuse(source("y", "TIMER1_COMPA"), &["TIMER1_COMPA"]);
    refuse(
        limited("y", "INT1", STRICT, ("TIMER1B", 64), 500, 1),
        &["source `y`", "ticks of 8 cycles for `x-1`", "ticks of 64"],
    );

    let mut two = system("c");
    share(&mut two, ("TIMER1A", 8), 1000, &[("a", "INT0", 3)]);
    share(&mut two, ("TIMER3A", 8), 1000, &[("b", "INT1", 3)]);
    assert_refused(&two, &["timer `slow0`", "`slow1` is shared, too"]);
    let mut lazy = system("c");
    share(&mut lazy, ("TIMER1A", 8), 1000, &[("a", "INT0", 3)]);
    lazy.sources[0].limit.timing = Timing::Lazy;
    assert_refused(&lazy, &["only bursty, eager limits can share"]);
}

#[test]
fn fast_has_one_limit_or_four_that_share() {
    let fast = |sources: Vec<weir_model::Source>| {
        let mut system = system("fast");
        system.sources = sources;
        system
    };
    let one = || limited("x", "INT0", STRICT, ("TIMER0", 8), 125, 1);
    text(&fast(vec![
        one(),
        source("y", "INT1"),
        source("z", "TIMER2_OVF"),
    ]));
    assert_refused(
        &fast(vec![
            one(),
            limited("y", "INT1", STRICT, ("TIMER2", 8), 125, 1),
        ]),
        &["`x`, `y` at once"],
    );
    let unlimited = text(&fast(vec![source("y", "INT1")]));
    assert!(!unlimited.contains("-nostartfiles"), "{unlimited}");
    assert_refused(
        &fast(vec![limited("x", "INT0", STRICT, ("TIMER1A", 8), 125, 1)]),
        &["TIMER2, TIMER0"],
    );
    assert_refused(
        &fast(vec![limited("x", "INT0", STRICT, ("TIMER0", 1), 125, 1)]),
        &["8, 32, 64, 128, 256, 1024"],
    );
    assert_refused(
        &fast(vec![limited("x", "INT0", STRICT, ("TIMER0", 8), 251, 1)]),
        &["at most 250 fit"],
    );
    assert_refused(
        &fast(vec![limited("x", "INT0", BUCKET, ("TIMER0", 8), 61, 4)]),
        &["at most 60 fit"],
    );
    assert_refused(
        &fast(vec![limited("x", "INT0", BUCKET, ("TIMER0", 8), 4, 100)]),
        &["bucket (lazy, 2 to 60)"],
    );
    assert_refused(
        &fast(vec![limited(
            "x",
            "INT0",
            (Policy::Paced, Timing::Lazy),
            ("TIMER0", 8),
            125,
            1,
        )]),
        &["lacks this policy"],
    );
    // The entry of strict, eager spills into the vector behind it.
    assert_refused(
        &fast(vec![one(), source("y", "TIMER0_OVF")]),
        &["TIMER0_OVF is used by source `x`"],
    );
    let lazy = limited(
        "x",
        "INT0",
        (Policy::Strict, Timing::Lazy),
        ("TIMER0", 8),
        125,
        1,
    );
    text(&fast(vec![lazy, source("y", "TIMER0_OVF")]));

    let mut shared = system("fast");
    share(
        &mut shared,
        ("TIMER3A", 1),
        20_000,
        &[("a", "INT0", 5), ("b", "INT3", 7)],
    );
    let text = text(&shared);
    assert!(!text.contains("-nostartfiles"), "{text}");
    shared.sources[1].level.vector = "INT4".to_owned();
    assert_refused(&shared, &["INT4 cannot share", "INT3"]);
    let mut channel_b = system("fast");
    share(&mut channel_b, ("TIMER1B", 1), 20_000, &[("a", "INT0", 5)]);
    let reasons = reasons(&channel_b);
    assert!(
        reasons
            .iter()
            .all(|reason| reason.contains("use one of TIMER1A, TIMER3A")),
        "{reasons:#?}"
    );
}

#[test]
fn every_reason_is_told_at_once() {
    let mut system = system("c");
    system.sources = vec![
        limited("3x", "INT0", STRICT, ("TIMER1A", 8), 500, 1),
        limited("y", "ADC", STRICT, ("TIMER1B", 8), 500, 1),
        limited("z", "INT1", STRICT, ("TIMER9", 8), 500, 1),
    ];
    let reasons = reasons(&system);
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
}

proptest! {
    #![proptest_config(crate::cases(64, 256))]

    /// Whatever a system holds, it is planned or refused, and what is planned has each number in
    /// the header.
    #[test]
    fn no_system_makes_it_panic(
        name in ".{0,12}",
        vector in prop_oneof![Just("INT0"), Just("ADC"), Just("")],
        policy in prop_oneof![Just(Policy::Off), Just(Policy::Strict), Just(Policy::Paced), Just(Policy::Bursty), Just(Policy::Bucket), Just(Policy::Poll)],
        timing in prop_oneof![Just(Timing::Eager), Just(Timing::Lazy), Just(Timing::OneShot)],
        flavour in prop_oneof![Just("c"), Just("fast")],
        channel in prop_oneof![Just("TIMER1A"), Just("TIMER0"), Just("TIMER3C"), Just("X")],
        tick in prop_oneof![Just(8_u64), Just(0), any::<u64>()],
        ticks in prop_oneof![0_u64..20_000, any::<u64>()],
        (burst, lag) in (prop_oneof![0_u32..20, any::<u32>()], prop_oneof![0_u32..20, any::<u32>()]),
        clock_hz in any::<u64>(),
    ) {
        let mut system = system(flavour);
        system.name.clone_from(&name);
        system.cpu.clock_hz = clock_hz;
        let mut source = limited(&name, vector, (policy, timing), (channel, 1), 1, burst);
        source.limit.interval = Interval { ticks, tick };
        source.limit.lag = lag;
        system.sources.push(source);
        if let Ok(plan) = ChipPlan::new(&system, chip("atmega128").unwrap()) {
            let text = header(&plan, &name);
            let written = format!("WEIR_SOURCE_{}", plan.sources[0].identifier);
            prop_assert!(text.contains(&written));
            prop_assert_eq!(text.matches("#if").count(), text.matches("#endif").count());
        }
    }
}
