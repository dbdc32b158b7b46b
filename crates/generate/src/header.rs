// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a plan as a C header for `ports/avr`.
use std::fmt::{self, Write};

use weir_model::{Policy, Rate, Source, Timing};
use weir_report::{rate, time};

use crate::MARKER;
use crate::c_text::{c_string, call, comment, definition};
use crate::plan::{ChipPlan, LineStart, PlannedSource, SoftwareLimit};
use weir_target::Flavour;

/// The schema of the system files that Weir reads.
const SCHEMA: u32 = 1;
/// The digits of numbers in comments.
const DIGITS: u8 = 4;

/// The header that keeps the plan's limits. `file` is the name of the system file, for the reader;
/// its folder does not belong there, since the same system gives the same text on every machine.
#[must_use]
pub fn header(plan: &ChipPlan<'_>, file: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_header(&mut text, plan, file);
    text
}

fn write_header(out: &mut String, plan: &ChipPlan<'_>, file: &str) -> fmt::Result {
    preamble(out, plan, file)?;
    writeln!(out, "#ifndef WEIR_SYSTEM_H\n#define WEIR_SYSTEM_H\n")?;
    build_checks(out, plan)?;
    writeln!(out, "#include <avr/interrupt.h>")?;
    writeln!(out, "#include <util/atomic.h>")?;
    writeln!(out, "#include <weir/avr.h>\n")?;
    name_checks(out, plan)?;
    writeln!(
        out,
        "/* For the firmware to tell what it was built from. */"
    )?;
    writeln!(out, "#define WEIR_SYSTEM_NAME {}", c_string(plan.system))?;
    writeln!(
        out,
        "#define WEIR_SYSTEM_SHA256 {}\n",
        c_string(plan.sha256)
    )?;
    if plan.sources.iter().any(|s| s.start == LineStart::Line) {
        line_without_limit(out, plan.flavour)?;
    }
    for source in &plan.sources {
        source_comment(out, plan, source)?;
        source_macro(out, source)?;
    }
    shared_timer(out, plan)?;
    start(out, plan)?;
    writeln!(out, "#endif")
}

fn preamble(out: &mut String, plan: &ChipPlan<'_>, file: &str) -> fmt::Result {
    writeln!(
        out,
        "/* {MARKER} {} from {}: change that file instead. */",
        env!("CARGO_PKG_VERSION"),
        comment(file)
    )?;
    writeln!(out, "/**")?;
    writeln!(
        out,
        " * The limits of `{}` on an {}, in the flavour {} of ports/avr. System file: schema {SCHEMA}, SHA-256",
        comment(plan.system),
        plan.chip,
        plan.flavour.name(),
    )?;
    writeln!(out, " * {}", comment(plan.sha256))?;
    writeln!(out, " *")?;
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
        match (plan.flavour, &plan.shared_timer) {
            (Flavour::Fast, None) => " -nostartfiles ports/avr/start/start.S",
            _ => "",
        }
    )?;
    writeln!(out, " *")?;
    writeln!(
        out,
        " * What was checked are the costs without the record: -DWEIR_LIMIT_RECORD=1 is for looking, not for shipping."
    )?;
    writeln!(out, " */")
}

/// The checks of the build: one with other settings than those that were checked stops with a
/// message.
fn build_checks(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    let clock = plan.clock_hz;
    let mut check = |condition: &str, message: &str| {
        writeln!(out, "#if {condition}\n#error \"{message}\"\n#endif")
    };
    if plan.chip == "atmega128" {
        check(
            "!defined(__AVR_ATmega128__)",
            "these limits are for an ATmega128: compile with -mmcu=atmega128",
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
    writeln!(out)
}

/// Checks in the header that no source has the name of a macro. Weir's macros join a source's name
/// to other names; if it were a macro itself, the compiler's messages would not say what is wrong.
fn name_checks(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    for source in &plan.sources {
        writeln!(
            out,
            "#ifdef {0}\n#error \"{0} is a macro: rename this source in the system file\"\n#endif",
            source.identifier
        )?;
    }
    writeln!(out)
}

/// The calls of a limited line for one without a limit, so that a limit can be added or removed
/// without a change of the firmware.
fn line_without_limit(out: &mut String, flavour: Flavour) -> fmt::Result {
    let switch = |on: bool| match (flavour, on) {
        (Flavour::C, true) => "WEIR_AVR_UNMASK(WEIR_AVR_##line);",
        (Flavour::C, false) => "WEIR_AVR_MASK(WEIR_AVR_##line);",
        (Flavour::Fast, true) => "weir_avr_line_on(line);",
        (Flavour::Fast, false) => "weir_avr_line_off(line);",
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

fn source_comment(
    out: &mut String,
    plan: &ChipPlan<'_>,
    planned: &PlannedSource<'_>,
) -> fmt::Result {
    let source = planned.source;
    writeln!(out, "/**")?;
    writeln!(
        out,
        " * {}: {}, {}.",
        comment(planned.name),
        planned.vector,
        planned.limit.as_ref().map_or_else(
            || "no limit, every request is served (LIMIT-OFF-1)".to_owned(),
            |limit| promise(limit, plan.clock_hz)
        )
    )?;
    if let Some(rates) = rates(source) {
        writeln!(out, " * {rates}.")?;
    }
    match source.max_work {
        None => writeln!(
            out,
            " * The system does not say how much work one interrupt may do (max_work): nothing is proven of it."
        )?,
        Some(units) => {
            write!(
                out,
                " * What was checked holds while a run of the handler takes at most {} cycles",
                source.handler.cycles
            )?;
            if source.work.cycles > 0 {
                write!(
                    out,
                    " and {} for each of at most {units} units of work",
                    source.work.cycles
                )?;
            }
            writeln!(out, ".")?;
        }
    }
    if planned.start == LineStart::Device {
        writeln!(
            out,
            " * Its enable bit is yours: weir_system_start() does not switch it on."
        )?;
    }
    writeln!(out, " */")
}

/// What the limit lets through, with the number of the promise in core/CONTRACTS.md.
fn promise(limit: &SoftwareLimit, clock_hz: u64) -> String {
    let cycles = limit.interval_ticks.saturating_mul(limit.prescaler);
    let interval = duration(cycles, clock_hz);
    let burst = limit.burst;
    let (what, number) = match (limit.policy, limit.timing) {
        (Policy::Bursty, Timing::OneShot) => (
            format!("at most {burst} requests in a period of {interval}"),
            "LIMIT-BURSTY-2",
        ),
        (Policy::Bursty, _) => (
            format!("at most {burst} requests in a period of {interval}"),
            "LIMIT-BURSTY-1",
        ),
        (Policy::Bucket, _) => (
            format!("bursts of at most {burst}, one more after each {interval}"),
            "LIMIT-BUCKET-1",
        ),
        (Policy::Paced, _) => (format!("one request in each {interval}"), "LIMIT-PACED-1"),
        _ => (
            format!("requests at least {interval} apart"),
            "LIMIT-STRICT-1",
        ),
    };
    format!(
        "{what} ({cycles} cycles): at most {} in the long run ({number})",
        rate(limit.limit_hz, DIGITS)
    )
}

fn rates(source: &Source) -> Option<String> {
    let rates = &source.rates;
    let named = |name: &str, rate: Option<Rate>| {
        rate.map(|known| format!("{name} {}", self::rate(known.hertz(), DIGITS)))
    };
    let mut worst = named("worst", rates.worst);
    if let (Some(worst), Some(name)) = (worst.as_mut(), rates.worst_name) {
        let _ = write!(worst, " ({})", comment(name));
    }
    let said: Vec<String> = [
        named("expected", rates.expected),
        named("tolerated", rates.tolerated),
        worst,
    ]
    .into_iter()
    .flatten()
    .collect();
    (!said.is_empty()).then(|| format!("The system file says: {}", said.join(", ")))
}

fn source_macro(out: &mut String, source: &PlannedSource<'_>) -> fmt::Result {
    let name = &source.identifier;
    let mut lines = vec![
        format!("#define WEIR_SOURCE_{name}"),
        format!("    enum {{ {} = 1 }};", stands_first("SOURCE", name)),
    ];
    match &source.limit {
        Some(limit) if limit.shared => lines.extend(call(
            "WEIR_AVR_LIMIT_SHARED",
            &[
                name.clone(),
                source.vector.to_owned(),
                limit.channel.clone(),
                format!(".interval = {}", limit.interval_ticks),
                format!(".burst = {}", limit.burst),
            ],
        )),
        Some(limit) => lines.extend(call(
            "WEIR_AVR_LIMIT",
            &[
                name.clone(),
                source.vector.to_owned(),
                limit.channel.clone(),
                format!(
                    ".policy = WEIR_LIMIT_{}",
                    limit.policy.name().to_uppercase()
                ),
                format!(
                    ".timing = WEIR_LIMIT_{}",
                    limit.timing.name().to_uppercase()
                ),
                format!(".interval = {}", limit.interval_ticks),
                format!(".lag = {}", limit.lag_ticks),
                format!(".burst = {}", limit.burst),
            ],
        )),
        None if source.start == LineStart::Line => {
            lines.push(format!("    WEIR_SYSTEM_LINE_({name}, {})", source.vector));
        }
        None => lines.push(format!("    ISR({}_vect)", source.vector)),
    }
    definition(out, &lines)
}

/// A name that only the macro defines: where it is missing, the compiler's message shows what to
/// do.
fn stands_first(kind: &str, name: &str) -> String {
    format!("WEIR_{kind}_{name}_must_stand_before_this")
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

/// The order of the start: timers before the limiters, which read them; lines without a limit
/// before the others, which take over the enable bits that they find set (`fast`); the shared timer
/// last, once all its sources are started.
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

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn duration(cycles: u64, clock_hz: u64) -> String {
    time(cycles as f64 / clock_hz.max(1) as f64, DIGITS)
}
