// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the receivers of frames in C: their part of the header, and the file with their tables.
use std::fmt::{self, Write};

use weir_report::plural;

use crate::c_text::{c_string, comment, definition};
use crate::header::mark;
use crate::identifier::MAX_WORK;
use crate::plan::ChipPlan;
use crate::rtos::{PlannedClass, RtosPlan};

/// The macro that starts all sources. The receivers of their frames have to be started first.
pub(crate) const SOURCES_START: &str = "weir_sources_start()";

/// Writes the part of the comment at the top that says what firmware needs in addition to handlers.
pub(crate) fn usage(out: &mut String, plan: &RtosPlan<'_>) -> fmt::Result {
    writeln!(
        out,
        " *\n * The receivers' tables are in the C file of the same name, which is compiled with those of ports/freertos/src, core/src/demux.c and core/src/moderate.c; with"
    )?;
    writeln!(
        out,
        " * -Iports/freertos/include, -DWEIR_CLASSES={} or more, and -DWEIR_FREERTOS_CLOCK=... (ports/freertos/README.md).",
        plan.core_classes
    )?;
    writeln!(
        out,
        " * WEIR_SOURCE_{} takes frames by weir_freertos_take(&weir_net, ...), and the start comes before it interrupts.",
        plan.card
    )?;
    if plan.receivers.iter().any(|of| of.budget.is_some()) {
        writeln!(
            out,
            " * vApplicationTickHook() calls weir_freertos_refill(&weir_net): budgets begin anew there."
        )?;
    }
    Ok(())
}

/// Writes the part of the header after the sources.
pub(crate) fn declarations(out: &mut String, plan: &RtosPlan<'_>) -> fmt::Result {
    checks(out, plan)?;
    if let Some(work) = plan.max_work {
        writeln!(
            out,
            "/** The units of work of one interrupt, for weir_freertos_take(): a frame is one, and more if it is long. */\nenum {{ WEIR_SOURCE_{}{MAX_WORK} = {work} }};\n",
            plan.card
        )?;
    }
    writeln!(
        out,
        "/** Who receives: the index of each in weir_net.receivers, which counts what its frames took. */\nenum {{"
    )?;
    for (number, receiver) in plan.receivers.iter().enumerate() {
        let budget = receiver.budget.map_or_else(String::new, |frames| {
            format!(", at most {} in a tick", plural(frames.into(), "frame"))
        });
        let ports: Vec<String> = plan
            .bindings
            .iter()
            .filter(|binding| binding.receiver == number)
            .map(ToString::to_string)
            .collect();
        writeln!(
            out,
            "    WEIR_RECEIVER_{} = {number}, /**< {}: {}; urgency {}{budget} */",
            receiver.identifier,
            comment(receiver.name),
            ports.join(", "),
            receiver.urgency
        )?;
    }
    writeln!(out, "    WEIR_RECEIVERS = {}\n}};\n", plan.receivers.len())?;
    writeln!(
        out,
        "/** The urgencies, as FreeRTOS's priorities: of the tasks that receive, and of the others. */\nenum {{"
    )?;
    for receiver in plan.receivers.iter().chain(&plan.tasks) {
        let (name, urgency) = (&receiver.identifier, receiver.urgency);
        writeln!(out, "    WEIR_URGENCY_{name} = {urgency},")?;
    }
    writeln!(out, "}};\n\n/** The ports of the flows. */\nenum {{")?;
    for binding in &plan.bindings {
        let (name, port) = (&binding.identifier, binding.port);
        writeln!(out, "    WEIR_PORT_{name} = {port}, /**< {binding} */")?;
    }
    writeln!(out, "}};\n")?;
    writeln!(
        out,
        "/** The receivers' names in the system file. */\nextern const char *const weir_receiver_names[WEIR_RECEIVERS];\n"
    )?;
    writeln!(
        out,
        "/** The frames of {}, and who receives them. */\nextern weir_freertos_net_t weir_net;\n",
        plan.card
    )?;
    writeln!(
        out,
        "/** Starts the workers, which give frames to `input` with `context`, binds all ports and sets all budgets. weir_system_start() calls it. */"
    )?;
    writeln!(
        out,
        "weir_freertos_error_t weir_receivers_start(weir_freertos_input_t *input, void *context);\n"
    )?;
    writeln!(
        out,
        "/** Starts the receivers (weir_receivers_start) and then all sources. Is WEIR_FREERTOS_OK, or why no source was started; before the scheduler, or in a"
    )?;
    writeln!(out, " * task. */")?;
    definition(
        out,
        &[
            "#define weir_system_start(input, context)",
            "    __extension__({",
            "        weir_freertos_error_t weir_error_ = weir_receivers_start(input, context);",
            "        if (weir_error_ == WEIR_FREERTOS_OK) {",
            &format!("            {SOURCES_START};"),
            "        }",
            "        weir_error_;",
            "    })",
        ]
        .map(str::to_owned),
    )
}

/// Writes checks that the build has the settings of the system file.
fn checks(out: &mut String, plan: &RtosPlan<'_>) -> fmt::Result {
    let mut check = |condition: String, message: String| {
        writeln!(out, "_Static_assert({condition}, {});", c_string(&message))
    };
    check(
        format!("WEIR_CLASSES >= {}", plan.classes.len()),
        format!(
            "compile all files with -DWEIR_CLASSES={}",
            plan.core_classes
        ),
    )?;
    check(
        format!("configMAX_PRIORITIES == {}", plan.priorities),
        "the system file has other `priorities` than configMAX_PRIORITIES".to_owned(),
    )?;
    check(
        format!("configTICK_RATE_HZ == {}", plan.tick_hz),
        "the system file has another `tick_rate` than configTICK_RATE_HZ".to_owned(),
    )?;
    let (preemption, tasks) = if plan.is_preemptive {
        (1, "preemptive")
    } else {
        (0, "cooperative")
    };
    check(
        format!("configUSE_PREEMPTION == {preemption}"),
        format!("the tasks of the system file are {tasks}: configUSE_PREEMPTION is {preemption}"),
    )?;
    if plan.has_long_slice {
        check(
            "configUSE_TIME_SLICING == 0".to_owned(),
            "`time_slice` of the system file is longer than a tick: configUSE_TIME_SLICING is 0"
                .to_owned(),
        )?;
    }
    if let Some(priority) = plan.card_priority {
        check(
            format!("{priority} >= configMAX_SYSCALL_INTERRUPT_PRIORITY"),
            format!(
                "the source {} calls FreeRTOS: its `priority` is at least configMAX_SYSCALL_INTERRUPT_PRIORITY",
                plan.card
            ),
        )?;
    }
    writeln!(out)
}

/// Writes the C file with the receivers' tables. `header` is the name of its header, and `file` is
/// the name of the system file, for the reader. `None` if the plan is for no operating system.
#[must_use]
pub fn receivers(plan: &ChipPlan<'_>, header: &str, file: &str) -> Option<String> {
    let freertos = plan.freertos.as_ref()?;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_receivers(&mut text, plan, freertos, (header, file));
    Some(text)
}

fn write_receivers(
    out: &mut String,
    system: &ChipPlan<'_>,
    plan: &RtosPlan<'_>,
    (header, file): (&str, &str),
) -> fmt::Result {
    mark(out, file)?;
    writeln!(
        out,
        "/* The receivers of `{}`: what its header declares. */\n#include {}\n",
        comment(system.system),
        c_string(header)
    )?;
    frames(out, &plan.classes)?;
    writeln!(out, "weir_freertos_net_t weir_net;\n")?;
    writeln!(
        out,
        "const char *const weir_receiver_names[WEIR_RECEIVERS] = {{"
    )?;
    for receiver in &plan.receivers {
        writeln!(
            out,
            "    [WEIR_RECEIVER_{}] = {},",
            receiver.identifier,
            c_string(receiver.name)
        )?;
    }
    writeln!(out, "}};\n")?;
    writeln!(
        out,
        "static const struct {{\n    uint8_t protocol;\n    uint16_t port;\n    uint16_t receiver;\n    UBaseType_t urgency;\n}} bindings[] = {{"
    )?;
    for binding in &plan.bindings {
        let Some(receiver) = plan.receivers.get(binding.receiver) else {
            continue;
        };
        writeln!(
            out,
            "    {{{0}, WEIR_PORT_{1}, WEIR_RECEIVER_{2}, WEIR_URGENCY_{2}}},",
            binding.protocol, binding.identifier, receiver.identifier
        )?;
    }
    writeln!(
        out,
        "}};\nenum {{ BINDINGS = sizeof bindings / sizeof bindings[0] }};\n"
    )?;
    start(out, plan, system.clock_hz)
}

/// Writes the buffers and the classes.
fn frames(out: &mut String, classes: &[PlannedClass<'_>]) -> fmt::Result {
    for class in classes {
        writeln!(
            out,
            "static weir_freertos_frame_t frames_of_{}[{}]; /* {} */",
            class.urgency,
            class.frames,
            comment(&class.of.join(", "))
        )?;
    }
    writeln!(
        out,
        "\nstatic const weir_freertos_class_t classes[] = {{ /* from the least urgent on */"
    )?;
    for class in classes {
        writeln!(
            out,
            "    {{.urgency = {0}, .frames = frames_of_{0}, .count = {1}}},",
            class.urgency, class.frames
        )?;
    }
    writeln!(out, "}};\n")
}

fn start(out: &mut String, plan: &RtosPlan<'_>, clock_hz: u64) -> fmt::Result {
    let class = |of: Option<usize>| {
        of.map_or_else(|| "WEIR_DEMUX_DROP".to_owned(), |index| index.to_string())
    };
    let gather = plan
        .gather_cycles
        .map_or_else(|| "0".to_owned(), |_| "(uint32_t) GATHER".to_owned());
    if let Some(cycles) = plan.gather_cycles {
        writeln!(
            out,
            "#ifndef WEIR_FREERTOS_CLOCK_HZ\n#error \"frames are gathered: compile with -DWEIR_FREERTOS_CLOCK_HZ=..., the rate of WEIR_FREERTOS_CLOCK\"\n#endif\n\n\
             /* How long they wait, in units of that clock. */\n\
             #define GATHER ({cycles}u * (uint64_t) WEIR_FREERTOS_CLOCK_HZ / {clock_hz}u)\n\
             _Static_assert(GATHER >= 1 && GATHER < 0x80000000u, \"moderation: absolute is shorter than a unit of WEIR_FREERTOS_CLOCK, or half of its wrap\");\n"
        )?;
    }
    let cycles = plan.overhead_cycles;
    writeln!(
        out,
        "/* What the card's interrupt takes outside of its account, in units of WEIR_FREERTOS_CLOCK: cycles,\n \
         * unless -DWEIR_FREERTOS_CLOCK_HZ=... says how many it has in a second. */\n\
         #ifdef WEIR_FREERTOS_CLOCK_HZ\n\
         #define OVERHEAD ((uint32_t) (({cycles}u * (uint64_t) WEIR_FREERTOS_CLOCK_HZ + {}u) / {clock_hz}u))\n\
         #else\n#define OVERHEAD {cycles}u\n#endif\n",
        clock_hz / 2
    )?;
    writeln!(
        out,
        "weir_freertos_error_t weir_receivers_start(weir_freertos_input_t *input, void *context)\n{{"
    )?;
    writeln!(out, "    const weir_freertos_config_t config = {{")?;
    for (field, value) in [
        ("classes", "classes".to_owned()),
        ("count", plan.classes.len().to_string()),
        ("common", plan.common.to_string()),
        ("orphans", class(plan.orphans)),
        ("fragments", class(plan.fragments)),
        ("slots", plan.slots.to_string()),
        ("bindings", "BINDINGS".to_owned()),
        ("receivers", "WEIR_RECEIVERS".to_owned()),
        ("stack_words", plan.stack_words.to_string()),
        ("gather", gather),
        ("overhead", "OVERHEAD".to_owned()),
        ("input", "input".to_owned()),
        ("context", "context".to_owned()),
    ] {
        writeln!(out, "        .{field} = {value},")?;
    }
    writeln!(
        out,
        "    }};\n    weir_freertos_error_t error = weir_freertos_start(&weir_net, &config);"
    )?;
    writeln!(
        out,
        "    for (uint32_t at = 0; error == WEIR_FREERTOS_OK && at < BINDINGS; at++) {{\n        error = weir_freertos_bind(&weir_net, bindings[at].protocol, bindings[at].port, bindings[at].receiver, bindings[at].urgency);\n    }}"
    )?;
    for receiver in &plan.receivers {
        writeln!(
            out,
            "    if (error == WEIR_FREERTOS_OK) {{\n        error = weir_freertos_set_quota(&weir_net, WEIR_RECEIVER_{}, {});\n    }}",
            receiver.identifier, receiver.frames
        )?;
        if let Some(frames) = receiver.budget {
            writeln!(
                out,
                "    if (error == WEIR_FREERTOS_OK) {{\n        error = weir_freertos_set_budget(&weir_net, WEIR_RECEIVER_{}, {frames});\n    }}",
                receiver.identifier
            )?;
        }
    }
    writeln!(out, "    return error;\n}}")
}
