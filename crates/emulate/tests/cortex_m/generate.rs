// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests headers that `weir generate --chip cortex-m3` writes: they compile without warnings, keep
//! their limits on the board, and reject a build that differs from the one that was checked.

use std::fmt::Write;

use crate::cortex::generated::{build, build_with, header_of, program, system};
use crate::cortex::{Elf, Limit, can_run, compile_with, flood, root, spec};
use rayon::prelude::*;
use weir_boards::Board;
use weir_core_sys::{LimitPolicy, LimitTiming};
use weir_emulate::run::{RunResult, run};
use weir_generate::ChipPlan;
use weir_model::System;

/// Returns the keys of the system file for a limit.
fn words(limit: &Limit) -> String {
    let timing = match limit.config.timing {
        LimitTiming::OneShot => "one_shot".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    };
    let burst = match limit.config.policy {
        LimitPolicy::Bursty | LimitPolicy::Bucket => format!(", burst = {}", limit.config.burst),
        _ => String::new(),
    };
    format!(
        "limit = {{ policy = \"{}\", timing = \"{timing}\", interval = \"{} cycles\", timer = \"DUALTIMER\", prescaler = {}{burst} }}",
        format!("{:?}", limit.config.policy).to_lowercase(),
        limit.config.interval * limit.tick(),
        limit.divisor
    )
}

/// Returns a system with one source for each limit, named s0, s1, … on IRQ20, IRQ21, …. A line
/// without a limit, `free`, is more urgent than them.
fn all_of(limits: &[Limit]) -> System {
    let mut text = "schema = 1\n[cpu]\nboard = \"mps2-an385\"\n\
         [[source]]\nname = \"free\"\nvector = \"IRQ3\"\npriority = 32\nhandler = \"20 cycles\"\nmax_work = 1\n"
        .to_owned();
    for (index, limit) in limits.iter().enumerate() {
        write!(
            text,
            "[[source]]\nname = \"s{index}\"\nvector = \"IRQ{}\"\npriority = 128\nhandler = \"20 cycles\"\nmax_work = 1\n{}\n",
            20 + index,
            words(limit)
        )
        .unwrap();
    }
    system(&text)
}

fn flooded(elf: &Elf, floods: &[String], cycles: u64, counters: &[&str]) -> RunResult {
    let floods: Vec<_> = floods.iter().map(|text| flood(text)).collect();
    let mut spec = spec(elf, &floods, cycles);
    spec.counters = counters.iter().map(ToString::to_string).collect();
    run(&spec).unwrap()
}

#[test]
fn cortex_m_headers_keep_every_limit_at_every_prescaler() {
    if !can_run() {
        return;
    }
    // Eight sources share one timer. The ninth kind of limit is alone.
    let all = Limit::all();
    all.par_chunks(9).for_each(|limits| {
        for group in [&limits[..8], &limits[8..]] {
            let system = all_of(group);
            let elf = build(&system, &program(&system), &[]).unwrap_or_else(|e| panic!("{e}"));
            let lines = (0..group.len()).map(|index| format!("IRQ{}=90kHz", 20 + index));
            let floods: Vec<String> = lines.chain(["IRQ3=1kHz".to_owned()]).collect();
            let names: Vec<String> = (0..group.len()).map(|at| format!("s{at}_runs")).collect();
            let mut counters: Vec<&str> = names.iter().map(String::as_str).collect();
            counters.extend(["free_runs", "progress"]);
            // An interval is about 100 us, so the run lasts 250 intervals.
            let cycles = 3_125_000;
            let result = flooded(&elf, &floods, cycles, &counters);
            for (limit, name) in group.iter().zip(&names) {
                let config = limit.config;
                let burst = u64::from(config.burst);
                let periods = cycles / (config.interval * limit.tick());
                let (long, short) = match config.policy {
                    LimitPolicy::Bursty => (burst * periods, 2 * burst),
                    _ => (periods, burst),
                };
                let served = result.counters[name];
                // The flood has 9 requests per interval, so that it uses up bursts.
                let least = long.min(9 * periods) * 9 / 10;
                assert!(
                    (least..=long + short).contains(&served),
                    "{limit:?}: {served}, {long} in the long run"
                );
            }
            assert!((24..=26).contains(&result.counters["free_runs"]));
            assert!(
                result.counters["progress"] > 100_000,
                "{:?}",
                result.counters
            );
        }
    });
}

/// Builds and floods the example as its readers do. The expected counts are in its `expect`.
#[test]
fn cortex_m_example_does_what_it_says() {
    if !can_run() {
        return;
    }
    let folder = root().join("examples/valve-controller");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let described = system(&read("system.toml"));
    assert!(weir_analysis::check::keeps_deadlines(&described));
    let made = tempfile::tempdir().unwrap();
    std::fs::write(made.path().join("weir_system.h"), header_of(&described)).unwrap();
    let elf = compile_with(
        &[folder.join("main.c")],
        &[made.path().to_owned()],
        &["-Werror"],
        &[],
    )
    .unwrap();
    let expect = read("expect");
    let mut lines = expect.lines().filter(|line| !line.starts_with('#'));
    let arguments: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let floods: Vec<String> = arguments
        .chunks(2)
        .filter(|words| words[0] == "--flood")
        .map(|words| words[1].to_owned())
        .collect();
    assert_eq!(arguments[arguments.len() - 2..], ["--for", "1s"]);
    let counters: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    let names: Vec<&str> = counters.iter().map(|of| of[0]).collect();
    let result = flooded(&elf, &floods, 125_000_000, &names);
    for of in &counters {
        let [least, most] = [of[1], of[2]].map(|number| number.parse::<u64>().unwrap());
        let count = result.counters[of[0]];
        assert!((least..=most).contains(&count), "{of:?}: {count}");
    }
}

/// For a board with a timer that Weir does not support, the file names a header of its own, and the
/// limit is the same.
#[test]
fn cortex_m_boards_of_ones_own_name_the_code_of_their_timer() {
    const OWN: &str = "#include <weir/chips/cmsdk.h>\n\
        #define MY_TIMER(name, base, irq, divisor) WEIR_CMSDK_DUAL_TIMER(name, base, irq, divisor)\n";
    if !can_run() {
        return;
    }
    let folder = root().join("boards/mps2-an385");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let facts = read("board.toml")
        .replace("name = \"mps2-an385\"", "name = \"mine\"")
        .replace(
            "driver = \"cmsdk-dual-timer\"",
            "driver = { header = \"my_timer.h\", macro = \"MY_TIMER\" }",
        );
    let board = Board::parse(&facts, &read("costs.toml")).unwrap();
    let described = all_of(&Limit::all()[..1]);
    let mut of_mine = described.clone();
    of_mine.cpu.board = Some("mine".to_owned());
    let plan = ChipPlan::new(&of_mine, &board).unwrap();
    let header = weir_generate::header(&plan, "system.toml");
    assert!(header.contains("#include <my_timer.h>"), "{header}");
    assert!(header.contains("MY_TIMER(weir_dualtimer, 0x40002000, 10, 1);"));
    assert!(!header.contains("cmsdk"), "{header}");
    let text = program(&described);
    let headers = [("weir_system.h", header.as_str()), ("my_timer.h", OWN)];
    let own = build_with(&headers, &text, &[]).unwrap();
    let known = build(&described, &text, &[]).unwrap();
    let floods = ["IRQ20=90kHz".to_owned()];
    let [own, known] = [own, known].map(|elf| flooded(&elf, &floods, 3_125_000, &["s0_runs"]));
    assert_eq!(own.counters, known.counters);
    assert!(own.counters["s0_runs"] > 200, "{:?}", own.counters);

    // Another processor defines another macro, and its build needs another compiler option.
    let facts = read("board.toml").replace("cortex-m3", "cortex-m4");
    let board = Board::parse(&facts, &read("costs.toml")).unwrap();
    let plan = ChipPlan::new(&described, &board).unwrap();
    let header = weir_generate::header(&plan, "system.toml");
    assert!(header.contains("#ifndef __ARM_ARCH_7EM__\n#error \"these limits are for a Cortex-M4: compile with -mcpu=cortex-m4 -mthumb\""));
    let headers = [("weir_system.h", header.as_str())];
    let refused = build_with(&headers, &text, &[]).err().unwrap().to_string();
    assert!(refused.contains("-mcpu=cortex-m4"), "{refused}");
}

#[test]
fn cortex_m_builds_that_were_not_checked_are_told_what_is_missing() {
    if !can_run() {
        return;
    }
    let limits = Limit::all();
    let described = all_of(&limits[..2]);
    let right = program(&described);
    let refusal = |program: &str, defines: &[String]| match build(&described, program, defines) {
        Ok(_) => panic!("this compiles:\n{program}"),
        Err(error) => error.to_string(),
    };
    for missing in ["WEIR_SOURCE_s1", "WEIR_SOURCE_free", "WEIR_TIMER_DUALTIMER"] {
        // The macro before a handler's body is removed, so that the body becomes a function that is
        // never called.
        let text = right
            .replace(missing, "void nobody(void); void nobody(void)")
            .replace("nobody(void);\n", "nobody(void) {}\n");
        let said = refusal(&text, &[]);
        assert!(
            said.contains(&format!("{missing}_must_stand_before_this")),
            "{said}"
        );
    }
    let said = refusal(&right, &["WEIR_TICK_BITS=16".to_owned()]);
    assert!(said.contains("-DWEIR_TICK_BITS=32"), "{said}");
    let said = refusal(&right, &["s1".to_owned()]);
    assert!(said.contains("s1 is a macro: rename this source"), "{said}");
    let other = format!("#undef __ARM_ARCH_7M__\n{right}");
    assert!(refusal(&other, &[]).contains("compile with -mcpu=cortex-m3 -mthumb"));
}
