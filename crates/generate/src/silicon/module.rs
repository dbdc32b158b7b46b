// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the instance of rtl/limit's `weir_limit`, in the layout of verible-verilog-format.
use std::fmt::{self, Write};

use weir_model::{Silicon, SiliconForm, SiliconReset};
use weir_report::rate;

use super::{SiliconPlan, SiliconSource};
use crate::MARKER;

/// The number of significant digits in comments.
const DIGITS: u8 = 4;

/// Writes the module `NAME_limits`. `file` is the name of the system file, for the reader.
#[must_use]
pub fn silicon_module(plan: &SiliconPlan<'_>, file: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_module(&mut text, plan, file);
    text
}

fn write_module(out: &mut String, plan: &SiliconPlan<'_>, file: &str) -> fmt::Result {
    let silicon = &plan.silicon;
    writeln!(
        out,
        "// {MARKER} {} from {}: change that file instead.",
        env!("CARGO_PKG_VERSION"),
        comment(file)
    )?;
    writeln!(out, "//")?;
    writeln!(
        out,
        "// The limits of `{}` at {}: rtl/limit's weir_limit with the parameters, and the registers after reset, that the system file asks for.",
        comment(plan.system),
        rate(as_f64(plan.clock_hz), DIGITS)
    )?;
    writeln!(out, "// System file: SHA-256 {}", plan.sha256)?;
    writeln!(out, "//")?;
    writeln!(
        out,
        "// The lines, by their numbers in irq_i, irq_o and the registers:"
    )?;
    for (number, source) in plan.sources.iter().enumerate() {
        writeln!(
            out,
            "//   {number} {} ({}), {}, {}",
            comment(source.name),
            if source.is_level { "level" } else { "edge" },
            source.promise(),
            rate(source.limit_hz, DIGITS)
        )?;
    }
    writeln!(out, "`default_nettype none\n")?;
    ports(out, plan)?;
    writeln!(out, "  weir_limit #(")?;
    parameters(out, plan)?;
    writeln!(out, "  ) u_limit (")?;
    connections(out, silicon)?;
    writeln!(out, "  );")?;
    unused(out, silicon)?;
    writeln!(out, "endmodule\n\n`default_nettype wire")
}

/// A port of the module `weir_limit`.
struct ModulePort {
    is_input: bool,
    /// The range, for example `[15:0] `, or an empty text for a single bit.
    range: String,
    name: &'static str,
    /// Whether the port exists with these parameters.
    has: bool,
}

fn all_ports(silicon: &Silicon) -> Vec<ModulePort> {
    let lines = format!("[{}:0] ", silicon.sources.saturating_sub(1));
    let messages = silicon.messages;
    let port = |is_input, range: &str, name, has| ModulePort {
        is_input,
        range: range.to_owned(),
        name,
        has,
    };
    vec![
        port(true, "", "clk_i", true),
        port(true, "", "rst_ni", true),
        port(true, "", "psel_i", true),
        port(true, "", "penable_i", true),
        port(true, "", "pwrite_i", true),
        port(true, "[15:0] ", "paddr_i", true),
        port(true, "[31:0] ", "pwdata_i", true),
        port(true, "[3:0] ", "pstrb_i", true),
        port(false, "", "pready_o", true),
        port(false, "[31:0] ", "prdata_o", true),
        port(false, "", "pslverr_o", true),
        port(true, &lines, "irq_i", true),
        port(true, &lines, "ack_i", !silicon.pulses && !messages),
        port(false, &lines, "irq_o", !messages || silicon.bypass),
        port(true, "", "msi_valid_i", messages),
        port(true, "[9:0] ", "msi_number_i", messages),
        port(false, "", "msi_ready_o", messages),
        port(false, "", "msi_valid_o", messages),
        port(false, "[9:0] ", "msi_number_o", messages),
        port(true, "", "msi_ready_i", messages),
        port(true, "", "bypass_i", silicon.bypass),
        port(false, "", "overload_irq_o", silicon.overload),
    ]
}

fn ports(out: &mut String, plan: &SiliconPlan<'_>) -> fmt::Result {
    writeln!(out, "module {} (", plan.module)?;
    let ports = all_ports(&plan.silicon);
    let ports: Vec<&ModulePort> = ports.iter().filter(|port| port.has).collect();
    for (index, port) in ports.iter().enumerate() {
        let direction = if port.is_input { "input" } else { "output" };
        let comma = if index + 1 == ports.len() { "" } else { "," };
        writeln!(
            out,
            "    {direction} wire {}{}{comma}",
            port.range, port.name
        )?;
    }
    writeln!(out, ");")?;
    for port in all_ports(&plan.silicon) {
        if !port.has && !port.is_input {
            writeln!(out, "  wire {}{};", port.range, port.name)?;
        }
    }
    Ok(())
}

fn parameters(out: &mut String, plan: &SiliconPlan<'_>) -> fmt::Result {
    let silicon = &plan.silicon;
    let count = silicon.sources;
    let truth = u32::from;
    let numbers = [
        ("SOURCES", count),
        ("FORM", truth(silicon.form == SiliconForm::Memory)),
        ("PHASE_BITS", silicon.phase_bits),
        ("RATE_BITS", silicon.rate_bits),
        ("BURST_BITS", silicon.burst_bits),
        ("HELD_BITS", silicon.held_bits),
        ("SYNC", silicon.synchroniser),
        (
            "RESET",
            match silicon.reset {
                SiliconReset::None => 0,
                SiliconReset::Synchronous => 1,
                SiliconReset::Asynchronous => 2,
            },
        ),
        ("PULSE", truth(silicon.pulses)),
        ("READBACK", truth(silicon.readback)),
        ("ENABLES", truth(silicon.enables)),
        ("OVERLOAD", truth(silicon.overload)),
        ("LOCK", truth(silicon.lock)),
        ("MSI", truth(silicon.messages)),
        ("BYPASS", truth(silicon.bypass)),
    ];
    for (name, number) in numbers {
        writeln!(out, "      .{name}({number}),")?;
    }
    vector(
        out,
        "LEVEL",
        plan,
        1,
        |source| u32::from(source.is_level),
        ",",
    )?;
    vector(
        out,
        "RATE_RESET",
        plan,
        silicon.rate_bits,
        |source| source.rate,
        ",",
    )?;
    vector(
        out,
        "BURST_RESET",
        plan,
        silicon.burst_bits.max(1),
        |source| source.burst,
        ",",
    )?;
    writeln!(
        out,
        "      // Limits hold, and lines are on, from the first clock."
    )?;
    vector(out, "ENABLE_RESET", plan, 1, |_| 1, ",")?;
    vector(out, "LIMIT_RESET", plan, 1, |_| 1, ",")?;
    vector(
        out,
        "POLICY_RESET",
        plan,
        1,
        |source| u32::from(source.is_bursty()),
        "",
    )
}

/// Writes a vector with one value of `bits` bits for each source, the first source in the lowest
/// bits.
fn vector(
    out: &mut String,
    name: &str,
    plan: &SiliconPlan<'_>,
    bits: u32,
    value: impl Fn(&SiliconSource<'_>) -> u32,
    comma: &str,
) -> fmt::Result {
    writeln!(out, "      .{name}({{")?;
    for (number, source) in plan.sources.iter().enumerate().rev() {
        let next = if number == 0 { "" } else { "," };
        writeln!(out, "        {bits}'d{}{next}  // {number}", value(source))?;
    }
    writeln!(out, "      }}){comma}")
}

fn connections(out: &mut String, silicon: &Silicon) -> fmt::Result {
    let ports = all_ports(silicon);
    for (index, port) in ports.iter().enumerate() {
        let comma = if index + 1 == ports.len() { "" } else { "," };
        if port.has || !port.is_input {
            writeln!(out, "      .{}{comma}", port.name)?;
        } else {
            writeln!(out, "      .{}('0){comma}", port.name)?;
        }
    }
    Ok(())
}

/// Lists the outputs of parts that are not built, which are left open.
fn unused(out: &mut String, silicon: &Silicon) -> fmt::Result {
    let names: Vec<&str> = all_ports(silicon)
        .iter()
        .filter(|port| !port.has && !port.is_input)
        .map(|port| port.name)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(out, "  wire unused = &{{1'b0, {}}};", names.join(", "))
}

/// Makes a user's text safe for a comment of one line.
fn comment(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || c == '\\' { '_' } else { c })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
