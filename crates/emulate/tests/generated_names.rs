// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests pairs of sources in which one has a name that the generated code derives from the other's
//! name. Such a pair is rejected, or it compiles.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use rayon::prelude::*;

use crate::cortex::generated::{build, vectors};
use crate::cortex::{can_run, root};
use crate::generated::Generated;
use crate::systems::{limited, share, source, system};
use weir_generate::{ChipPlan, chip, header};
use weir_model::{Policy, System, Timing};

/// Returns the identifiers in a text that begin with `before`, each without that beginning.
fn endings(text: &str, before: &str) -> Vec<String> {
    let of_name = |of: char| of.is_ascii_alphanumeric() || of == '_';
    let behind = text.split(before).skip(1);
    let behind = behind.map(|of| of.chars().take_while(|&of| of_name(of)).collect());
    behind.filter(|of: &String| of.starts_with('_')).collect()
}

/// Returns all endings that the headers in a folder append to a name.
fn of_folder(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(of_folder(&path));
        } else {
            found.extend(endings(&std::fs::read_to_string(path).unwrap(), "name##"));
        }
    }
    found
}

/// Returns the names that a port, or a header generated for it, derives from the source `x`.
fn made_of_x(port: &str, generated: &str) -> Vec<String> {
    let mut found = of_folder(&root().join(port));
    found.extend(endings(generated, "WEIR_SOURCE_x"));
    assert!(found.contains("_start") && found.len() > 12, "{found:?}");
    found.iter().map(|ending| format!("x{ending}")).collect()
}

/// Returns whether the other name is rejected.
fn is_refused(system: &System, on: &str) -> bool {
    let Err(refused) = ChipPlan::new(system, chip(on).unwrap()) else {
        return false;
    };
    let says = |part: &str| refused.reasons.iter().all(|of| of.what.contains(part));
    assert!(says("like what is made of `x`"), "{:?}", refused.reasons);
    true
}

#[test]
fn names_made_of_a_name_are_refused_or_compile_on_the_atmega128() {
    const STRICT: (Policy, Timing) = (Policy::Strict, Timing::Eager);
    let x = || limited("x", "INT0", STRICT, ("TIMER1A", 1), 4000, 1);
    let pairs = |other: &str| {
        let both_limited = limited(other, "INT1", STRICT, ("TIMER1B", 1), 4000, 1);
        let mut all: Vec<System> = [both_limited, source(other, "INT1")]
            .map(|other| System {
                sources: vec![x(), other],
                ..system("c")
            })
            .into();
        for flavour in ["c", "fast"] {
            let mut sharing = system(flavour);
            let both = [("x", "INT0", 3), (other, "INT1", 3)];
            share(&mut sharing, ("TIMER1A", 64), 1000, &both);
            all.push(sharing);
        }
        let fast = limited("x", "INT0", STRICT, ("TIMER0", 8), 125, 1);
        all.push(System {
            sources: vec![fast, source(other, "INT1")],
            ..system("fast")
        });
        all
    };
    let alone = System {
        sources: vec![x()],
        ..system("c")
    };
    let plan = ChipPlan::new(&alone, chip("atmega128").unwrap()).unwrap();
    let names = made_of_x("ports/avr/include", &header(&plan, "system.toml"));
    let all: Vec<System> = names.iter().flat_map(|name| pairs(name)).collect();
    let refused = |of: &&System| is_refused(of, "atmega128");
    let (refused, right): (Vec<&System>, Vec<&System>) = all.iter().partition(refused);
    let of_each = pairs("x_must_stand_before_this").len();
    assert_eq!(refused.len(), of_each);
    right.par_iter().for_each(|pair| {
        let built = Generated::new(pair).build();
        assert!(built.is_ok(), "{}: {built:?}", pair.sources[1].name);
    });
}

#[test]
fn cortex_m_names_made_of_a_name_are_refused_or_compile() {
    if !can_run() {
        return;
    }
    let one = |name: &str, line: u32, limit: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\nvector = \"IRQ{line}\"\npriority = 128\nhandler = \"20 cycles\"\nmax_work = 1\n{limit}\n"
        )
    };
    let strict =
        "limit = { policy = \"strict\", interval = \"2500 cycles\", timer = \"DUALTIMER\" }";
    let of = |sources: &[String]| {
        let cpu = "schema = 1\n[cpu]\nboard = \"mps2-an385\"\n";
        crate::cortex::generated::system(&(cpu.to_owned() + &sources.concat()))
    };
    // FreeRTOS has one name more.
    let example = root().join("examples/rtos-node/system.toml");
    let example = std::fs::read_to_string(example).unwrap();
    let example = crate::cortex::generated::system(&example.replace("\"ethernet\"", "\"x\""));
    let plan = ChipPlan::with_freertos(&example, chip("cortex-m3").unwrap()).unwrap();
    let names = made_of_x("ports/cortex-m/include", &header(&plan, "system.toml"));
    let pairs =
        |name: &String| [strict, ""].map(|other| of(&[one("x", 20, strict), one(name, 21, other)]));
    let all: Vec<System> = names.iter().flat_map(pairs).collect();
    let refused = |of: &&System| is_refused(of, "cortex-m3");
    let (refused, right): (Vec<&System>, Vec<&System>) = all.iter().partition(refused);
    let refused: BTreeSet<&str> = refused.iter().map(|of| &*of.sources[1].name).collect();
    let known = BTreeSet::from(["x_MAX_WORK", "x_must_stand_before_this"]);
    assert_eq!(refused, known);
    right.par_iter().for_each(|pair| {
        let mut program = "#include \"weir_system.h\"\n".to_owned();
        for source in &pair.sources {
            writeln!(program, "WEIR_SOURCE_{}\n{{\n}}", source.name).unwrap();
        }
        program += "WEIR_TIMER_DUALTIMER;\nint main(void)\n{\n    weir_system_start();\n    for (;;) {\n    }\n}\n";
        let built = build(pair, &(program + &vectors(pair)), &[]);
        assert!(built.is_ok(), "{}: {:?}", pair.sources[1].name, built.err());
    });
}
