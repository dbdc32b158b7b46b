// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a plan as a C header for its port.
mod avr;
mod cortex_m;

use std::fmt::{self, Write};

use weir_model::{Policy, Rate, Source, Timing};
use weir_report::{rate, time};

use crate::MARKER;
use crate::c_text::{c_string, comment, definition};
use crate::identifier::STANDS_FIRST;
use crate::plan::{ChipPlan, LineStart, PlannedSource, SoftwareLimit};
use crate::rtos_text;
use weir_boards::Port;

/// The schema of the system files that Weir reads.
const SCHEMA: u32 = 1;
/// The number of significant digits in comments.
const DIGITS: u8 = 4;

/// A function that writes a part of the header from the plan.
type Writer = fn(&mut String, &ChipPlan<'_>) -> fmt::Result;

/// The parts of the header that depend on the port, in the order of the text.
struct PortText {
    /// The article before the chip's name.
    article: &'static str,
    /// Writes the comment at the top: how firmware uses the header, and how it is compiled.
    usage: Writer,
    /// Writes the checks of the build, and the includes.
    head: Writer,
    /// Writes the timers that the sources' macros need.
    timers: Writer,
    /// Writes the macro for a line without a limit.
    free_line: Writer,
    /// Returns the lines of a source's macro that follow the first two.
    source: fn(&PlannedSource<'_>) -> Vec<String>,
    /// Writes the part after the handlers.
    shared: Writer,
    /// Writes the code that starts the sources.
    start: Writer,
}

/// The limit as the values of a weir_limit_config_t's fields.
fn limit_fields(limit: &SoftwareLimit) -> [String; 5] {
    [
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
    ]
}

/// Writes the header that keeps the plan's limits. `file` is the name of the system file, for the
/// reader. It must not contain the folder, so that the same system gives the same text on every
/// machine.
#[must_use]
pub fn header(plan: &ChipPlan<'_>, file: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_header(&mut text, plan, file);
    text
}

fn write_header(out: &mut String, plan: &ChipPlan<'_>, file: &str) -> fmt::Result {
    let port = match plan.port {
        Port::CortexM => &cortex_m::TEXT,
        Port::Avr | Port::Riscv => &avr::TEXT,
    };
    preamble(out, plan, port, file)?;
    writeln!(out, "#ifndef WEIR_SYSTEM_H\n#define WEIR_SYSTEM_H\n")?;
    (port.head)(out, plan)?;
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
    (port.timers)(out, plan)?;
    if plan.sources.iter().any(|s| s.start == LineStart::Line) {
        (port.free_line)(out, plan)?;
    }
    for source in &plan.sources {
        source_comment(out, plan, source)?;
        let mut lines = vec![
            format!("#define WEIR_SOURCE_{}", source.identifier),
            format!(
                "    enum {{ {} = 1 }};",
                stands_first("SOURCE", &source.identifier)
            ),
        ];
        lines.extend((port.source)(source));
        definition(out, &lines)?;
    }
    (port.shared)(out, plan)?;
    (port.start)(out, plan)?;
    if let Some(freertos) = &plan.freertos {
        rtos_text::declarations(out, freertos)?;
    }
    writeln!(out, "#endif")
}

/// Writes the first line of a generated file.
pub(crate) fn mark(out: &mut String, file: &str) -> fmt::Result {
    writeln!(
        out,
        "/* {MARKER} {} from {}: change that file instead. */",
        env!("CARGO_PKG_VERSION"),
        comment(file)
    )
}

fn preamble(out: &mut String, plan: &ChipPlan<'_>, port: &PortText, file: &str) -> fmt::Result {
    mark(out, file)?;
    writeln!(out, "/**")?;
    writeln!(
        out,
        " * The limits of `{}` on {} {}, in the flavour {} of {}. System file: schema {SCHEMA}, SHA-256",
        comment(plan.system),
        port.article,
        plan.chip,
        plan.flavour.name(),
        plan.port.folder(),
    )?;
    writeln!(out, " * {}", comment(plan.sha256))?;
    writeln!(out, " *")?;
    (port.usage)(out, plan)?;
    if let Some(freertos) = &plan.freertos {
        rtos_text::usage(out, freertos)?;
    }
    writeln!(out, " *")?;
    writeln!(
        out,
        " * What was checked are the costs without the record: -DWEIR_LIMIT_RECORD=1 is for looking, not for shipping."
    )?;
    writeln!(out, " */")
}

/// Writes checks that no source has the name of a macro. Weir's macros join a source's name to
/// other names. If the name were a macro itself, the compiler's messages would not say what is
/// wrong.
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
        match &planned.limit {
            Some(limit) => promise(limit, plan.clock_hz),
            None if planned.is_in_silicon() =>
                "limited in silicon in front of the line (weir generate --rtl)".to_owned(),
            None => "no limit, every request is served (LIMIT-OFF-1)".to_owned(),
        }
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

/// The text of what the limit lets through, with the number of the promise in core/CONTRACTS.md.
fn promise(limit: &SoftwareLimit, clock_hz: u64) -> String {
    let cycles = limit.interval_ticks.saturating_mul(limit.tick_cycles);
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

/// A name that only the macro defines. If the macro is missing, the compiler's message shows this
/// name, which says what to do.
fn stands_first(kind: &str, name: &str) -> String {
    format!("WEIR_{kind}_{name}{STANDS_FIRST}")
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn duration(cycles: u64, clock_hz: u64) -> String {
    time(cycles as f64 / clock_hz.max(1) as f64, DIGITS)
}
