// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the parts of the header for ports/avr.
use std::fmt::{self, Write};

use weir_boards::{Flavour, avr};

use super::{PortText, limit_fields, stands_first};
use crate::c_text::{call, comment, definition};
use crate::plan::{ChipPlan, LineStart, PlannedSource};

pub(super) const TEXT: PortText = PortText {
    article: "an",
    usage,
    head,
    timers: |_, _| Ok(()),
    free_line,
    source,
    shared: shared_timer,
    start,
};

fn usage(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        " * One C file has the handlers; the lines are triggered by edges, which ones is for EICRA and EICRB to say:"
    )?;
    writeln!(out, " *")?;
    writeln!(out, " *     #include \"weir_system.h\"")?;
    for source in &plan.sources {
        writeln!(
            out,
            " *     WEIR_SOURCE_{} {{ the body of the handler }}",
            source.identifier
        )?;
    }
    if let Some(timer) = &plan.shared_timer {
        writeln!(out, " *     WEIR_TIMER_{};", timer.identifier)?;
    }
    writeln!(
        out,
        " *     int main(void) {{ ...; weir_system_start(); sei(); ... }}"
    )?;
    writeln!(out, " *")?;
    writeln!(
        out,
        " * Then weir_avr_disable(NAME) and weir_avr_enable(NAME) are a line's enable bit. Where the handlers stand in several files, each of them includes"
    )?;
    writeln!(
        out,
        " * this one; weir_system_run_timers() comes first then, and weir_avr_start(NAME) in the file of each handler, in place of weir_system_start()."
    )?;
    writeln!(out, " *")?;
    writeln!(
        out,
        " *     avr-gcc -mmcu={} -std=c11 -Os -DF_CPU={}UL -DWEIR_TICK_BITS=16 -Icore/include -Iports/avr/include{} ... core/src/limit.c{}",
        plan.chip,
        plan.clock_hz,
        match plan.flavour {
            Flavour::C => "",
            Flavour::Fast =>
                " -DWEIR_AVR_FAST\n *     -ffixed-r2 -ffixed-r3 -ffixed-r4 -ffixed-r5 -ffixed-r6 -ffixed-r7 -ffixed-r8 -ffixed-r9 -ffixed-r10",
        },
        if plan.is_by_hand() {
            " -nostartfiles ports/avr/start/start.S"
        } else {
            ""
        }
    )
}

/// Writes the includes and the checks of the build. A build with other settings than the planned
/// ones stops with a message.
fn head(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    let clock = plan.clock_hz;
    let mut check = |condition: &str, message: &str| {
        writeln!(out, "#if {condition}\n#error \"{message}\"\n#endif")
    };
    if let Some(chip) = avr::chip(plan.chip) {
        let name = chip.name;
        check(
            &format!("!defined({})", chip.symbol),
            &format!("these limits are for an {name}: compile with -mmcu={name}"),
        )?;
    }
    check(
        &format!("!defined(F_CPU) || F_CPU != {clock}"),
        &format!("these limits are for a clock of {clock} Hz: compile with -DF_CPU={clock}UL"),
    )?;
    check(
        "!defined(WEIR_TICK_BITS) || WEIR_TICK_BITS != 16",
        "the timers of this chip have 16 bits: compile with -DWEIR_TICK_BITS=16",
    )?;
    match plan.flavour {
        Flavour::C => check(
            "defined(WEIR_AVR_FAST)",
            "these limits are for the flavour c: compile without -DWEIR_AVR_FAST",
        )?,
        Flavour::Fast => check(
            "!defined(WEIR_AVR_FAST)",
            "these limits are for the flavour fast: compile with -DWEIR_AVR_FAST",
        )?,
    }
    writeln!(out)?;
    writeln!(out, "#include <avr/interrupt.h>")?;
    writeln!(out, "#include <util/atomic.h>")?;
    writeln!(out, "#include <weir/avr.h>\n")
}

/// Gives a line without a limit the same calls as a limited line, so that a limit can be added or
/// removed without a change of the firmware.
fn free_line(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    let switch = |on: bool| match (plan.is_by_hand(), on) {
        (false, true) => "WEIR_AVR_UNMASK(WEIR_AVR_##line);",
        (false, false) => "WEIR_AVR_MASK(WEIR_AVR_##line);",
        (true, true) => "weir_avr_line_on(line);",
        (true, false) => "weir_avr_line_off(line);",
    };
    writeln!(
        out,
        "/* A line without a limit: the same calls as for one with a limit. */"
    )?;
    let mut lines = vec!["#define WEIR_SYSTEM_LINE_(name, line)".to_owned()];
    for (call, on) in [("enable", true), ("disable", false)] {
        lines.extend([
            format!("    WEIR_INLINE void name##_{call}(void)"),
            "    {".to_owned(),
            "        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)".to_owned(),
            "        {".to_owned(),
            format!("            {}", switch(on)),
            "        }".to_owned(),
            "    }".to_owned(),
        ]);
    }
    lines.extend([
        "    WEIR_INLINE void name##_start(void)".to_owned(),
        "    {".to_owned(),
        "        name##_enable();".to_owned(),
        "    }".to_owned(),
        "    ISR(line##_vect)".to_owned(),
    ]);
    definition(out, &lines)
}

fn source(source: &PlannedSource<'_>) -> Vec<String> {
    let name = &source.identifier;
    match &source.limit {
        Some(limit) if limit.shared => call(
            "WEIR_AVR_LIMIT_SHARED",
            &[
                name.clone(),
                source.vector.to_owned(),
                limit.channel.clone(),
                format!(".interval = {}", limit.interval_ticks),
                format!(".burst = {}", limit.burst),
            ],
        ),
        Some(limit) => {
            let own = [
                name.clone(),
                source.vector.to_owned(),
                limit.channel.clone(),
            ];
            let all: Vec<String> = own.into_iter().chain(limit_fields(limit)).collect();
            call("WEIR_AVR_LIMIT", &all)
        }
        None if source.start == LineStart::Line => {
            vec![format!("    WEIR_SYSTEM_LINE_({name}, {})", source.vector)]
        }
        None => vec![format!("    ISR({}_vect)", source.vector)],
    }
}

fn shared_timer(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    let Some(timer) = &plan.shared_timer else {
        return Ok(());
    };
    writeln!(
        out,
        "/** {}: clears the counts of {}. Stands behind their handlers, in the same file. */",
        comment(timer.name),
        timer.clears.join(", ")
    )?;
    let mut lines = vec![
        format!("#define WEIR_TIMER_{}", timer.identifier),
        format!(
            "    enum {{ {} = 1 }};",
            stands_first("TIMER", &timer.identifier)
        ),
        format!(
            "    WEIR_AVR_SHARED_TIMER({}, {})",
            timer.channel, timer.period_ticks
        ),
        "    {".to_owned(),
    ];
    for name in &timer.clears {
        lines.push(format!("        (void) {};", stands_first("SOURCE", name)));
        lines.push(format!("        weir_avr_clear({name});"));
    }
    lines.push("    }".to_owned());
    lines.push("    struct weir_avr_semicolon".to_owned());
    definition(out, &lines)
}

/// Writes the start in the order that the port requires. Timers come before the limiters, which
/// read them. Lines without a limit come before limited ones, because limiters take over the enable
/// bits that are set then (`fast`). The shared timer comes last, when all its sources are started.
fn start(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        "/** Lets the timers of the limits count. Before any start. */"
    )?;
    let mut lines = vec![
        "#define weir_system_run_timers()".to_owned(),
        "    do {".to_owned(),
    ];
    for timer in &plan.timers {
        lines.push(format!(
            "        weir_avr_run_timer({}, {});",
            timer.channel, timer.prescaler
        ));
    }
    lines.push("    } while (0)".to_owned());
    definition(out, &lines)?;

    writeln!(
        out,
        "/** Starts every source; from a thread, or before interrupts are on. No handler runs before all have started. */"
    )?;
    let mut lines = vec![
        "#define weir_system_start()".to_owned(),
        "    do {".to_owned(),
        "        ATOMIC_BLOCK(ATOMIC_RESTORESTATE)".to_owned(),
        "        {".to_owned(),
    ];
    let mut statement = |text: String| lines.push(format!("            {text};"));
    for source in &plan.sources {
        statement(format!(
            "(void) {}",
            stands_first("SOURCE", &source.identifier)
        ));
    }
    if let Some(timer) = &plan.shared_timer {
        statement(format!(
            "(void) {}",
            stands_first("TIMER", &timer.identifier)
        ));
    }
    statement("weir_system_run_timers()".to_owned());
    for kind in [LineStart::Line, LineStart::Limiter] {
        for source in plan.sources.iter().filter(|source| source.start == kind) {
            statement(format!("weir_avr_start({})", source.identifier));
        }
    }
    if plan.shared_timer.is_some() {
        statement("weir_avr_start_shared()".to_owned());
    }
    lines.push("        }".to_owned());
    lines.push("    } while (0)".to_owned());
    definition(out, &lines)
}
