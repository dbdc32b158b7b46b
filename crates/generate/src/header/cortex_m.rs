// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the parts of the header for ports/cortex-m.
use std::fmt::{self, Write};

use weir_boards::{TimerCode, cortex_m};

use super::{PortText, limit_fields, stands_first};
use crate::c_text::{call, definition};
use crate::plan::{ChipPlan, LineStart, PlannedSource, PlannedTimer};
use crate::rtos_text::SOURCES_START;

pub(super) const TEXT: PortText = PortText {
    article: "a",
    usage,
    head,
    timers,
    free_line,
    source,
    shared: groups,
    start,
};

/// The number of IRQ0 among a board's vectors. The vectors begin with the reset, which has the
/// number 1.
const FIRST_LINE: u32 = cortex_m::EXCEPTIONS as u32 + 1;

fn usage(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        " * One C file has the handlers, and behind them what their timers need:\n *\n *     #include \"weir_system.h\""
    )?;
    for source in &plan.sources {
        writeln!(
            out,
            " *     WEIR_SOURCE_{} {{ the body of the handler }}",
            source.identifier
        )?;
    }
    for timer in &plan.timers {
        writeln!(out, " *     WEIR_TIMER_{};", timer.name)?;
    }
    writeln!(
        out,
        " *     int main(void) {{ ...; {}; ... }}\n *",
        match plan.freertos {
            Some(_) => "weir_system_start(weir_freertos_lwip_input, &netif)",
            None => "weir_system_start()",
        }
    )?;
    writeln!(
        out,
        " * Then NAME_disable() and NAME_enable() are a line's enable bit. The interrupt functions have the names of CMSIS, IRQ20_Handler for example; if"
    )?;
    writeln!(
        out,
        " * your vector table has others, say so before this is included: #define WEIR_VECTOR_IRQ20 Encoder_Handler.\n *"
    )?;
    writeln!(
        out,
        " *     arm-none-eabi-gcc -mcpu={} -mthumb -std=c11 -Os -Icore/include -Iports/cortex-m/include ... core/src/limit.c",
        plan.chip,
    )
}

fn head(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    if let Some((name, family)) = cortex_m::CHIPS.iter().find(|of| of.0 == plan.chip) {
        writeln!(
            out,
            "#ifndef {family}\n#error \"these limits are for a {}: compile with -mcpu={name} -mthumb\"\n#endif\n",
            name.replace("cortex-m", "Cortex-M")
        )?;
    }
    // This comes first, so that the limits know what FreeRTOS masks.
    if plan.freertos.is_some() {
        writeln!(out, "#include <weir/freertos.h>\n")?;
    }
    let mut headers: Vec<&str> = drivers(plan).map(|(_, code, _)| code.header).collect();
    headers.sort_unstable();
    headers.dedup();
    for header in headers {
        writeln!(out, "#include <{header}>")?;
    }
    writeln!(out, "#include <weir/cortex_m.h>\n")?;
    writeln!(
        out,
        "/* The interrupt functions, as the vector table calls them. */"
    )?;
    let of_sources = plan.sources.iter().map(|source| source.vector);
    let of_timers = plan.timers.iter().map(|timer| timer.vector);
    for vector in of_sources.chain(of_timers) {
        writeln!(
            out,
            "#ifndef WEIR_VECTOR_{vector}\n#define WEIR_VECTOR_{vector} {}\n#endif",
            function(vector)
        )?;
    }
    writeln!(out)
}

/// The name of an interrupt function in CMSIS.
fn function(vector: &str) -> String {
    let of_core = [
        ("NMI", "NMI"),
        ("HARD_FAULT", "HardFault"),
        ("MEM_MANAGE", "MemManage"),
        ("BUS_FAULT", "BusFault"),
        ("USAGE_FAULT", "UsageFault"),
        ("SVCALL", "SVC"),
        ("DEBUG_MONITOR", "DebugMon"),
        ("PENDSV", "PendSV"),
        ("SYSTICK", "SysTick"),
    ];
    let known = of_core.iter().find(|(name, _)| *name == vector);
    format!("{}_Handler", known.map_or(vector, |(_, cmsis)| cmsis))
}

/// The timers that are used, each with its code and the address of its registers.
fn drivers<'a>(
    plan: &'a ChipPlan<'a>,
) -> impl Iterator<Item = (&'a PlannedTimer<'a>, TimerCode<'a>, u32)> {
    let timers = plan.timers.iter();
    timers.filter_map(|timer| {
        timer
            .driver
            .map(|(code, registers)| (timer, code, registers))
    })
}

fn timers(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    for (timer, code, registers) in drivers(plan) {
        writeln!(
            out,
            "/* {}: a tick is {} cycles of the processor. */",
            timer.name, timer.tick_cycles
        )?;
        writeln!(
            out,
            "{}({}, {registers:#010x}, {}, {});\n",
            code.call,
            c_name(&timer.name),
            timer.number.saturating_sub(FIRST_LINE),
            timer.prescaler
        )?;
    }
    Ok(())
}

/// The C name of the object that the port defines for a timer.
fn c_name(timer: &str) -> String {
    format!("weir_{}", timer.to_lowercase())
}

fn free_line(out: &mut String, _: &ChipPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        "/* A line without a limit: the same calls as for one with a limit. */"
    )?;
    let lines = [
        "#define WEIR_SYSTEM_LINE_(name, number, urgency, vector)",
        "    WEIR_INLINE void name##_enable(void)",
        "    {",
        "        weir_nvic_enable(number);",
        "    }",
        "    WEIR_INLINE void name##_disable(void)",
        "    {",
        "        weir_nvic_disable(number);",
        "    }",
        "    WEIR_INLINE void name##_start(void)",
        "    {",
        "        weir_nvic_set_priority(number, urgency);",
        "        weir_nvic_enable(number);",
        "    }",
        "    void vector(void);",
        "    void vector(void)",
    ];
    definition(out, &lines.map(str::to_owned))
}

fn source(source: &PlannedSource<'_>) -> Vec<String> {
    let name = &source.identifier;
    let line = source.number.saturating_sub(FIRST_LINE);
    let vector = format!("WEIR_VECTOR_{}", source.vector);
    match &source.limit {
        Some(limit) => {
            let own = [
                name.clone(),
                c_name(&limit.channel),
                line.to_string(),
                vector,
            ];
            let all: Vec<String> = own.into_iter().chain(limit_fields(limit)).collect();
            call("WEIR_CORTEX_M_LIMIT", &all)
        }
        None if source.start == LineStart::Line => {
            let priority = source.priority.unwrap_or(0);
            vec![format!(
                "    WEIR_SYSTEM_LINE_({name}, {line}, {priority}, {vector})"
            )]
        }
        None => vec![
            format!("    void {vector}(void);"),
            format!("    void {vector}(void)"),
        ],
    }
}

fn groups(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    for timer in &plan.timers {
        writeln!(
            out,
            "/** The interrupt of {}, which ends the intervals of {}. Stands behind their handlers, in the same file. */",
            timer.name,
            timer.sources.join(", ")
        )?;
        let name = &timer.name;
        let mut lines = vec![
            format!("#define WEIR_TIMER_{name}"),
            format!("    enum {{ {} = 1 }};", stands_first("TIMER", name)),
        ];
        let own = [
            format!("{}_group", c_name(name)),
            c_name(name),
            timer.priority.unwrap_or(0).to_string(),
            format!("WEIR_VECTOR_{}", timer.vector),
        ];
        let all: Vec<String> = own.into_iter().chain(timer.sources.clone()).collect();
        lines.extend(call("WEIR_CORTEX_M_GROUP", &all));
        definition(out, &lines)?;
    }
    Ok(())
}

fn start(out: &mut String, plan: &ChipPlan<'_>) -> fmt::Result {
    let name = match plan.freertos {
        Some(_) => SOURCES_START,
        None => "weir_system_start()",
    };
    writeln!(
        out,
        "/** Gives the interrupts their priorities and starts every source; from a thread. No handler runs before all have started. */"
    )?;
    let mut lines = vec![format!("#define {name}"), "    do {".to_owned()];
    let mut statement = |text: String| lines.push(format!("        {text};"));
    for source in &plan.sources {
        statement(format!(
            "(void) {}",
            stands_first("SOURCE", &source.identifier)
        ));
    }
    for timer in &plan.timers {
        statement(format!("(void) {}", stands_first("TIMER", &timer.name)));
    }
    statement("uint32_t weir_before_".to_owned());
    statement(
        "__asm volatile(\"mrs %0, primask\\n\\tcpsid i\" : \"=r\"(weir_before_)::\"memory\")"
            .to_owned(),
    );
    for timer in &plan.timers {
        statement(format!("{}_group_run()", c_name(&timer.name)));
    }
    for source in &plan.sources {
        if source.start != LineStart::Device {
            statement(format!("{}_start()", source.identifier));
        }
    }
    statement("__asm volatile(\"msr primask, %0\" ::\"r\"(weir_before_) : \"memory\")".to_owned());
    lines.push("    } while (0)".to_owned());
    definition(out, &lines)
}
