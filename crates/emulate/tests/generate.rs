// SPDX-License-Identifier: GPL-3.0-or-later
//! Generated headers compile without warnings, reject a build that differs from the one that was
//! checked, and keep their limits on the board.

use crate::generated::{CLOCK, Generated};
use crate::systems::{limited, share, source, system};
use rayon::prelude::*;
use weir_generate::chip;
use weir_model::{Policy, System, Timing};

const STRICT: (Policy, Timing) = (Policy::Strict, Timing::Eager);
const STRICT_LAZY: (Policy, Timing) = (Policy::Strict, Timing::Lazy);
const PACED: (Policy, Timing) = (Policy::Paced, Timing::Lazy);
const BURSTY: (Policy, Timing) = (Policy::Bursty, Timing::Lazy);
const ONE_SHOT: (Policy, Timing) = (Policy::Bursty, Timing::OneShot);
const BUCKET: (Policy, Timing) = (Policy::Bucket, Timing::Lazy);

/// Returns a system with a source of each kind that the flavour c supports, a line without a limit,
/// and a device.
fn one_of_each() -> System {
    let mut system = system("c");
    system.name = "one of each, \"quoted\" ??/ */".to_owned();
    let mut eager = limited("eager", "INT0", STRICT, ("TIMER1A", 1), 4000, 1);
    eager.limit.lag = 23;
    system.sources = vec![
        eager,
        limited("lazy", "INT1", STRICT_LAZY, ("TIMER1B", 1), 4000, 1),
        limited("paced", "INT2", PACED, ("TIMER1C", 1), 4000, 1),
        limited("bursty", "INT3", BURSTY, ("TIMER3A", 64), 250, 4),
        limited("one-shot", "INT4", ONE_SHOT, ("TIMER3B", 64), 250, 4),
        limited("bucket", "INT5", BUCKET, ("TIMER3C", 64), 63, 4),
        source("free", "INT6"),
        source("radio", "USART0_RX"),
    ];
    system
}

fn fast(sources: Vec<weir_model::Source>) -> System {
    let mut system = system("fast");
    system.sources = sources;
    system
}

#[test]
fn every_limit_is_kept_under_a_flood_and_the_background_goes_on() {
    let generated = Generated::new(&one_of_each());
    let floods: Vec<String> = (0..=5).map(|line| format!("INT{line}=20kHz")).collect();
    let mut floods: Vec<&str> = floods.iter().map(String::as_str).collect();
    floods.push("INT6=100Hz");
    // For each source: its name, and the fewest and the most requests served in a second. The
    // bounds are 1 + t/T, N (t/T + 2) and N + t/T. All have a long-run rate of 1000 Hz.
    let expected = [
        ("eager_runs", 960, 1001),
        ("lazy_runs", 960, 1001),
        ("paced_runs", 960, 1001),
        ("bursty_runs", 960, 1008),
        ("one_shot_runs", 960, 1008),
        ("bucket_runs", 960, 1004),
        ("free_runs", 98, 101),
        ("radio_runs", 0, 0),
    ];
    let names: Vec<&str> = expected.iter().map(|(name, _, _)| *name).collect();
    let result = generated.run(&floods, CLOCK, &names);
    for (name, least, most) in expected {
        let count = result.counters[name];
        assert!((least..=most).contains(&count), "{name}: {count}");
    }
    // 120,000 unlimited requests a second would leave no time for the background.
    assert!(
        result.counters["progress"] > 50_000,
        "{:?}",
        result.counters
    );
}

#[test]
fn sources_on_a_shared_timer_each_keep_their_burst() {
    for flavour in ["c", "fast"] {
        let mut system = system(flavour);
        let sources = [("a", "INT0", 3), ("b", "INT1", 2), ("c", "INT2", 7)];
        share(&mut system, ("TIMER1A", 1), 36_364, &sources);
        system.sources.push(source("free", "INT3"));
        let generated = Generated::new(&system);
        let floods = ["INT0=20kHz", "INT1=20kHz", "INT2=20kHz", "INT3=500Hz"];
        let counters = ["a_runs", "b_runs", "c_runs", "free_runs"];
        let result = generated.run(&floods, CLOCK, &counters);
        // The shared timer has a rate of 110 Hz.
        for ((name, _, burst), counter) in sources.iter().zip(counters) {
            let burst = u64::from(*burst);
            let count = result.counters[counter];
            assert!(
                (109 * burst..=112 * burst).contains(&count),
                "{flavour} {name}: {count}"
            );
        }
        assert!(
            (498..=501).contains(&result.counters["free_runs"]),
            "{flavour}: {:?}",
            result.counters
        );
        assert!(
            result.counters["progress"] > 100_000,
            "{flavour}: {:?}",
            result.counters
        );
    }
}

#[test]
fn the_fast_flavour_keeps_its_limit_beside_a_free_line() {
    for (kind, ticks, burst, channel) in [
        (STRICT, 125, 1, ("TIMER0", 32)),
        (STRICT_LAZY, 125, 1, ("TIMER0", 32)),
        (BURSTY, 250, 4, ("TIMER2", 64)),
        (BUCKET, 60, 4, ("TIMER2", 64)),
    ] {
        let hot = limited("hot", "INT0", kind, channel, ticks, burst);
        let interval = hot.limit.interval.cycles();
        let generated = Generated::new(&fast(vec![hot, source("free", "INT3")]));
        let floods = ["INT0=20kHz", "INT3=500Hz"];
        let result = generated.run(&floods, CLOCK, &["hot_runs", "free_runs"]);
        let per_second = match kind.0 {
            Policy::Bursty => u64::from(burst) * CLOCK / interval,
            _ => CLOCK / interval,
        };
        let count = result.counters["hot_runs"];
        let most = per_second + 2 * u64::from(burst);
        assert!(
            (per_second * 96 / 100..=most).contains(&count),
            "{kind:?}: {count} of {per_second}"
        );
        assert!(
            (498..=501).contains(&result.counters["free_runs"]),
            "{kind:?}: {:?}",
            result.counters
        );
        assert!(
            result.counters["progress"] > 100_000,
            "{kind:?}: {:?}",
            result.counters
        );
    }
}

#[test]
fn any_vector_can_be_a_source_without_a_limit() {
    for flavour in ["c", "fast"] {
        let mut system = system(flavour);
        // One source is limited. All other vectors, except that of its channel, become sources
        // without a limit.
        let hot = match flavour {
            "c" => limited("hot", "INT0", STRICT, ("TIMER1A", 8), 500, 1),
            _ => limited("hot", "INT0", STRICT_LAZY, ("TIMER0", 8), 125, 1),
        };
        let taken = match flavour {
            "c" => "TIMER1_COMPA",
            _ => "TIMER0_COMP",
        };
        system.sources.push(hot);
        let free = chip("atmega128").unwrap().vectors.iter();
        for vector in free.filter(|vector| *vector != "INT0" && *vector != taken) {
            let name = format!("on-{}", vector.to_lowercase());
            system.sources.push(source(&name, vector));
        }
        assert_eq!(system.sources.len(), 33);
        Generated::new(&system)
            .build()
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn handlers_may_stand_in_several_files() {
    let mut system = system("c");
    system.sources = vec![
        limited("a", "INT0", STRICT, ("TIMER1A", 8), 500, 1),
        limited("b", "INT1", STRICT, ("TIMER1B", 8), 500, 1),
    ];
    let mut generated = Generated::new(&system);
    let part = |name: &str| {
        format!(
            "#include \"weir_system.h\"\nvoid {name}_init(void);\nvolatile uint16_t {name}_runs;\nWEIR_SOURCE_{name}\n{{\n    {name}_runs++;\n}}\n\
             void {name}_init(void)\n{{\n    weir_avr_start({name});\n}}\n"
        )
    };
    generated.write("a.c", &part("a"));
    generated.write("b.c", &part("b"));
    generated.write(
        "main.c",
        "#include \"weir_system.h\"\nvoid a_init(void);\nvoid b_init(void);\nvolatile uint32_t progress;\n\
         int main(void)\n{\n    EICRA = 0xff;\n    weir_system_run_timers();\n    a_init();\n    b_init();\n    sei();\n    for (;;) {\n        progress++;\n    }\n}\n",
    );
    let result = generated.run(
        &["INT0=20kHz", "INT1=20kHz"],
        CLOCK / 10,
        &["a_runs", "b_runs"],
    );
    for name in ["a_runs", "b_runs"] {
        assert!(
            (95..=101).contains(&result.counters[name]),
            "{:?}",
            result.counters
        );
    }
}

#[test]
fn a_line_can_be_switched_whether_it_has_a_limit_or_not() {
    let switched = "int main(void)\n{\n    EICRA = 0xff;\n    weir_system_start();\n    weir_avr_disable(x);\n    sei();\n    for (;;) {\n        progress++;\n        if (progress == 5000) {\n            weir_avr_enable(x);\n        }\n    }\n}\n";
    let systems = [
        (
            "c",
            vec![limited("x", "INT1", STRICT, ("TIMER1A", 8), 500, 1)],
        ),
        ("c", vec![source("x", "INT1")]),
        (
            "fast",
            vec![
                limited("y", "INT0", STRICT, ("TIMER0", 8), 125, 1),
                source("x", "INT1"),
            ],
        ),
    ];
    for (flavour, sources) in systems {
        let mut system = system(flavour);
        system.sources = sources;
        let mut generated = Generated::new(&system);
        let main = std::fs::read_to_string(generated.folder.path().join("main.c")).unwrap();
        let handlers = main.split("int main").next().unwrap();
        generated.write("main.c", &format!("{handlers}{switched}"));
        let before = generated.run(&["INT1=100Hz"], 40_000, &["x_runs"]);
        assert_eq!(before.counters["x_runs"], 0, "{flavour}");
        let later = generated.run(&["INT1=100Hz"], CLOCK, &["x_runs"]);
        assert!(
            (80..=100).contains(&later.counters["x_runs"]),
            "{flavour}: {:?}",
            later.counters
        );
    }
}

#[test]
fn another_build_than_the_checked_one_is_told_the_right_flag() {
    let c = || {
        let mut system = system("c");
        system.sources = vec![limited("x", "INT0", STRICT, ("TIMER1A", 8), 500, 1)];
        Generated::new(&system)
    };
    let cases: [(&str, &str, &str); 4] = [
        (
            "F_CPU=4000000UL",
            "F_CPU=8000000UL",
            "compile with -DF_CPU=4000000UL",
        ),
        (
            "F_CPU=4000000UL",
            "UNRELATED",
            "compile with -DF_CPU=4000000UL",
        ),
        (
            "WEIR_TICK_BITS=16",
            "UNRELATED",
            "compile with -DWEIR_TICK_BITS=16",
        ),
        (
            "WEIR_TICK_BITS=16",
            "WEIR_TICK_BITS=32",
            "compile with -DWEIR_TICK_BITS=16",
        ),
    ];
    cases.par_iter().for_each(|(right, wrong, message)| {
        let mut generated = c();
        let defines = &mut generated.firmware.defines;
        for define in defines.iter_mut().filter(|define| define == right) {
            (*wrong).clone_into(define);
        }
        let refusal = generated.refusal();
        assert!(refusal.contains(message), "{wrong}: {refusal}");
    });
    let mut fast_build = c();
    fast_build.firmware.defines.push("WEIR_AVR_FAST".to_owned());
    assert!(fast_build.refusal().contains("without -DWEIR_AVR_FAST"));
    let hot = limited("hot", "INT0", STRICT, ("TIMER0", 8), 125, 1);
    let mut c_build = Generated::new(&fast(vec![hot]));
    c_build
        .firmware
        .defines
        .retain(|define| define != "WEIR_AVR_FAST");
    assert!(c_build.refusal().contains("compile with -DWEIR_AVR_FAST"));
    let mut other_chip = c();
    other_chip
        .firmware
        .flags
        .push("-U__AVR_ATmega128__".to_owned());
    assert!(
        other_chip
            .refusal()
            .contains("compile with -mmcu=atmega128")
    );
}

#[test]
fn a_missing_handler_is_named() {
    let mut system = system("c");
    share(
        &mut system,
        ("TIMER1A", 8),
        1000,
        &[("a", "INT0", 3), ("b", "INT1", 3)],
    );
    system.sources.push(source("free", "INT2"));
    for missing in ["WEIR_SOURCE_b", "WEIR_SOURCE_free", "WEIR_TIMER_slow0"] {
        let mut generated = Generated::new(&system);
        let main = std::fs::read_to_string(generated.folder.path().join("main.c")).unwrap();
        // The macro before a handler's body is replaced, so that the body becomes a function that
        // is never called.
        let text = main
            .replace(missing, "void nobody(void); void nobody(void)")
            .replace("nobody(void);\n", "nobody(void) {}\n");
        generated.write("main.c", &text);
        let refusal = generated.refusal();
        assert!(
            refusal.contains(&format!("{missing}_must_stand_before_this")),
            "{refusal}"
        );
    }
}

#[test]
fn a_name_that_is_a_macro_is_explained() {
    let mut system = system("c");
    system.sources = vec![limited("PORTA", "INT0", STRICT, ("TIMER1A", 8), 500, 1)];
    let refusal = Generated::new(&system).refusal();
    assert!(
        refusal.contains("PORTA is a macro: rename this source in the system file"),
        "{refusal}"
    );
}
