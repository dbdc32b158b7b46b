// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the C header of the driver: the numbers of the sources, their limits, and the work that
//! their handlers may do.
use std::fmt::{self, Write};

use weir_report::{rate, time};

use super::{SiliconPlan, SiliconSource};
use crate::c_text::{c_string, comment};
use crate::header::mark;

/// The number of significant digits in comments.
const DIGITS: u8 = 4;
/// The address of the first source's registers, and the distance to the next source's, both in
/// bytes. The numbers are those of rtl/limit/registers.
const SOURCES_AT: u32 = 0x8000;
const SOURCE_BYTES: u32 = 32;
/// The offsets in bytes of the registers of a source.
const REGISTERS: [(&str, u32); 5] = [
    ("CONTROL", 0x00),
    ("RATE", 0x04),
    ("BURST", 0x08),
    ("STATUS", 0x0c),
    ("HELD", 0x10),
];

/// The endings of the constants of a source, each after `WEIR_SOURCE_name_`.
const KEYS: [&str; 6] = [
    "RATE",
    "BURST",
    "BURSTY",
    "INTERVAL",
    "MILLIHERTZ",
    "MAX_WORK",
];

/// Whether a constant of the source `one` has the name of the source `other`.
pub(super) fn clash(one: &str, other: &str) -> bool {
    KEYS.iter().any(|key| other == format!("{one}_{key}"))
}

/// Writes the header `NAME_limits.h`. `file` is the name of the system file, for the reader.
#[must_use]
pub fn silicon_header(plan: &SiliconPlan<'_>, file: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_header(&mut text, plan, file);
    text
}

fn write_header(out: &mut String, plan: &SiliconPlan<'_>, file: &str) -> fmt::Result {
    mark(out, file)?;
    writeln!(out, "/**")?;
    writeln!(
        out,
        " * The limits of `{}` in silicon (rtl/limit), for C. They hold from reset on: a firmware has nothing to do but to keep each handler's work within",
        comment(plan.system)
    )?;
    writeln!(out, " * what was checked, with core/include/weir/work.h:")?;
    writeln!(out, " *")?;
    writeln!(out, " *     static weir_work_t work;")?;
    writeln!(
        out,
        " *     weir_work_begin(&work, WEIR_SOURCE_name_MAX_WORK);"
    )?;
    writeln!(out, " *     while (... && weir_work_take(&work)) {{ ... }}")?;
    writeln!(out, " *")?;
    writeln!(out, " * System file: SHA-256")?;
    writeln!(out, " * {}", comment(plan.sha256))?;
    writeln!(out, " */")?;
    let guard = format!("{}_H", plan.module.to_ascii_uppercase());
    writeln!(out, "#ifndef {guard}\n#define {guard}\n")?;
    writeln!(out, "#include <stdint.h>\n")?;
    block(out, plan)?;
    for (number, source) in plan.sources.iter().enumerate() {
        one(out, number, source, plan.clock_hz)?;
    }
    writeln!(out, "#endif")
}

fn block(out: &mut String, plan: &SiliconPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        "#define WEIR_LIMITS_SYSTEM_NAME {}",
        c_string(plan.system)
    )?;
    writeln!(
        out,
        "#define WEIR_LIMITS_SYSTEM_SHA256 {}\n",
        c_string(plan.sha256)
    )?;
    match plan.silicon.base {
        Some(base) => {
            writeln!(out, "/** The address of the registers. */")?;
            writeln!(out, "#define WEIR_LIMITS_BASE UINT32_C({base:#010x})\n")?;
        }
        None => {
            writeln!(out, "#ifndef WEIR_LIMITS_BASE")?;
            writeln!(
                out,
                "#error \"define WEIR_LIMITS_BASE, the address of the limiter's registers, or state `base` in [silicon] of the system file\""
            )?;
            writeln!(out, "#endif\n")?;
        }
    }
    writeln!(
        out,
        "/** Sources; cycles per second; clocks between two steps of a phase; bits of a phase, of a rate and of a burst (0: strict only). */"
    )?;
    for (name, number) in [
        ("SOURCES", u64::from(plan.silicon.sources)),
        ("CLOCK_HZ", plan.clock_hz),
        ("TICK", plan.tick_clocks),
        ("PHASE_BITS", u64::from(plan.phase_bits)),
        ("RATE_BITS", u64::from(plan.rate_bits)),
        ("BURST_BITS", u64::from(plan.silicon.burst_bits)),
    ] {
        writeln!(out, "#define WEIR_LIMITS_{name} {}", constant(number))?;
    }
    writeln!(
        out,
        "\n/** A request reaches the processor so many clocks later, at most, if the limit lets it through. */"
    )?;
    writeln!(
        out,
        "#define WEIR_LIMITS_DELAY {}\n",
        constant(plan.delay_clocks)
    )?;
    writeln!(
        out,
        "/** The register at `offset` of a source: volatile, 32 bits. */"
    )?;
    writeln!(
        out,
        "#define WEIR_LIMITS_REGISTER(source, offset) (*(volatile uint32_t *) (uintptr_t) (WEIR_LIMITS_BASE + {SOURCES_AT:#x}u + {SOURCE_BYTES}u * (uint32_t) (source) + (offset)))"
    )?;
    for (name, offset) in REGISTERS {
        writeln!(
            out,
            "#define WEIR_LIMITS_{name}(source) WEIR_LIMITS_REGISTER(source, {offset:#04x}u)"
        )?;
    }
    writeln!(out)
}

fn one(out: &mut String, number: usize, source: &SiliconSource<'_>, clock_hz: u64) -> fmt::Result {
    let seconds = |clocks: u64| time(as_f64(clocks) / as_f64(clock_hz.max(1)), DIGITS);
    writeln!(out, "/**")?;
    writeln!(
        out,
        " * {}: {}, {}: {} in the long run.",
        comment(source.name),
        source.promise(),
        seconds(source.interval_clocks),
        rate(source.limit_hz, DIGITS)
    )?;
    if source.interval_clocks != source.asked_clocks {
        writeln!(out, " * Asked for: {} clocks.", source.asked_clocks)?;
    }
    if source.max_work.is_none() {
        writeln!(
            out,
            " * The system does not say how much work one interrupt may do (max_work): nothing is proven of it."
        )?;
    }
    writeln!(out, " */")?;
    let name = &source.identifier;
    writeln!(out, "#define WEIR_SOURCE_{name} {number}u")?;
    let numbers = [
        Some(u64::from(source.rate)),
        Some(u64::from(source.burst)),
        Some(u64::from(source.is_bursty())),
        Some(source.interval_clocks),
        Some(millihertz(source, clock_hz)),
        source.max_work,
    ];
    for (key, number) in KEYS.iter().zip(numbers) {
        if let Some(number) = number {
            writeln!(out, "#define WEIR_SOURCE_{name}_{key} {}", constant(number))?;
        }
    }
    writeln!(out)
}

/// The rate in mHz that the limit lets through in the long run, rounded up.
fn millihertz(source: &SiliconSource<'_>, clock_hz: u64) -> u64 {
    let events = u128::from(source.source.limit.per_interval());
    let rate =
        (events * u128::from(clock_hz) * 1000).div_ceil(u128::from(source.interval_clocks.max(1)));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A C constant of the smallest type that holds the value.
fn constant(number: u64) -> String {
    if number <= 0xffff {
        format!("{number}u")
    } else if u32::try_from(number).is_ok() {
        format!("UINT32_C({number})")
    } else {
        format!("UINT64_C({number})")
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
