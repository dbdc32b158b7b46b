// SPDX-License-Identifier: GPL-3.0-or-later
//! The result of a run, as tables and as JSON.
use std::fmt::Write;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, TableComponent};
use serde_json::{Value, json};
use weir_model::Rate;
use weir_report::plural;
use weir_report::terminal::width;

use crate::run::{RunResult, RunSpec};
use weir_boards::ExceptionCosts;

/// Formats the tables to fit the terminal. If the output is not a terminal, there are no colours
/// and no emphasis.
pub fn text(spec: &RunSpec, result: &RunResult) -> String {
    let mut text = String::new();
    let firmware = spec
        .elf
        .file_name()
        .unwrap_or(spec.elf.as_os_str())
        .to_string_lossy();
    let clock = rate(spec.clock_hz as f64);
    let _ = writeln!(
        text,
        "{firmware} for {} at {clock}",
        time(result.cycles, spec.clock_hz)
    );
    for flood in &spec.floods {
        let limit = spec
            .hardware_limits
            .iter()
            .find(|limit| limit.line == flood.line);
        let behind = match (limit, &spec.front) {
            (Some(limit), _) => format!(
                ", through a hardware limiter of {}",
                plural(limit.interval_cycles, "cycle")
            ),
            (None, Some(front)) if front.to == flood.line => {
                format!(", through {}", front.elf.display())
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "flood {}={}{behind}",
            flood.line,
            flood.stimulus.told(spec.clock_hz)
        );
    }
    let _ = writeln!(text, "\n{}", shares(spec, result));
    if let Some(costs) = spec.target.board().board().exception_costs() {
        let _ = writeln!(text, "{}", note(costs, result));
    }
    if result.wakeups > 0 {
        let _ = writeln!(text, "woken from sleep {}", plural(result.wakeups, "time"));
    }
    if !result.lines.is_empty() {
        let _ = writeln!(text, "\n{}", lines(spec, result));
    }
    if !result.counters.is_empty() {
        let _ = writeln!(text, "\n{}", counters(spec, result));
    }
    if !result.said.is_empty() {
        let _ = writeln!(text, "\nserial port:\n{}", result.said.trim_end());
    }
    if result.bus_errors > 0 {
        let accesses = if result.bus_errors == 1 {
            "access"
        } else {
            "accesses"
        };
        let _ = writeln!(text, "\nthe bus refused {} {accesses}", result.bus_errors);
    }
    if let Some(code) = result.exit {
        let _ = writeln!(text, "\nthe firmware ended the run with {code}");
    }
    text
}

/// Explains which costs the shares contain in addition to what the emulator counts.
fn note(costs: ExceptionCosts, result: &RunResult) -> String {
    let mut text = format!(
        "an instruction counts as a cycle; {} for each exception's entry and {} for its return,\n\
         or {} if it follows another, are added: the emulator does not count them",
        plural(costs.entry_cycles, "cycle"),
        costs.exit_cycles,
        costs.tail_chain_cycles,
    );
    let handlers: u64 = result.vectors.iter().map(|used| used.cycles).sum();
    if handlers > result.cycles {
        text += "\nthat is more than the processor has: a real one could not serve all of them";
    }
    text
}

fn shares(spec: &RunSpec, result: &RunResult) -> Table {
    let counted = result
        .vectors
        .iter()
        .any(|used| used.instructions.is_some());
    let mut header = vec!["", "share of cycles", "taken", "per second", "longest"];
    header.extend(counted.then_some("instructions each"));
    let mut table = table(&header);
    let share = |cycles: u64| format!("{:.2} %", percent(cycles, result.cycles));
    for vector in &result.vectors {
        let longest = format!(
            "{} cycles, {}",
            vector.longest_cycles,
            time(vector.longest_cycles, spec.clock_hz)
        );
        let each = vector
            .instructions
            .map(|all| format!("{:.1}", all as f64 / vector.taken as f64));
        let cells = [
            share(vector.cycles),
            vector.taken.to_string(),
            per_second(vector.taken, spec, result),
            longest,
        ];
        table.add_row(row(&vector.name, cells.into_iter().chain(each)));
    }
    if result.sleep_cycles > 0 {
        table.add_row(row("asleep", [share(result.sleep_cycles)]));
    }
    table.add_row(row("everything else", [share(result.background_cycles)]));
    table
}

fn lines(spec: &RunSpec, result: &RunResult) -> Table {
    let limited = result.lines.iter().any(|line| line.delivered.is_some());
    let mut header = vec!["line", "requests", "per second", "missed", "missed share"];
    header.extend(limited.then_some("past the limiter"));
    let mut table = table(&header);
    for line in &result.lines {
        let cells = [
            line.offered.to_string(),
            per_second(line.offered, spec, result),
            line.missed.to_string(),
            format!("{:.2} %", percent(line.missed, line.offered)),
        ];
        let delivered = line.delivered.map(|count| count.to_string());
        table.add_row(row(
            &line.line.to_string(),
            cells.into_iter().chain(delivered),
        ));
    }
    table
}

fn counters(spec: &RunSpec, result: &RunResult) -> Table {
    let mut table = table(&["variable", "grew by", "per second"]);
    for (name, count) in &result.counters {
        table.add_row(row(
            name,
            [count.to_string(), per_second(*count, spec, result)],
        ));
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections);
    table
        .remove_style(TableComponent::LeftBorderIntersections)
        .remove_style(TableComponent::RightBorderIntersections);
    table.set_width(width());
    table.set_header(
        header
            .iter()
            .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
    );
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(name: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// Returns the result as JSON. Cycles are counts, rates are per second.
pub fn json(spec: &RunSpec, board: &str, result: &RunResult) -> Value {
    let seconds = result.cycles as f64 / spec.clock_hz as f64;
    let share = |cycles: u64| percent(cycles, result.cycles) / 100.0;
    let vectors: Vec<Value> = result
        .vectors
        .iter()
        .map(|vector| {
            let mut entry = json!({
                "number": vector.number,
                "name": vector.name,
                "taken": vector.taken,
                "cycles": vector.cycles,
                "share": share(vector.cycles),
                "longest_cycles": vector.longest_cycles,
            });
            if let Some(instructions) = vector.instructions {
                entry["instructions"] = json!(instructions);
            }
            if let Some(tail_chained) = vector.tail_chained {
                entry["tail_chained"] = json!(tail_chained);
            }
            entry
        })
        .collect();
    let lines: Vec<Value> = result
        .lines
        .iter()
        .map(|line| {
            let mut entry = json!({"line": line.line.to_string(), "offered": line.offered, "missed": line.missed});
            if let Some(delivered) = line.delivered {
                entry["delivered"] = json!(delivered);
            }
            entry
        })
        .collect();
    let counters: serde_json::Map<String, Value> = result
        .counters
        .iter()
        .map(|(name, &count)| {
            (
                name.clone(),
                json!({"count": count, "per_second": count as f64 / seconds}),
            )
        })
        .collect();
    let mut all = json!({
        "firmware": spec.elf.display().to_string(),
        "board": board,
        "clock_hz": spec.clock_hz,
        "floods": spec.floods.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cycles": result.cycles,
        "seconds": seconds,
        "vectors": vectors,
        "background": {"cycles": result.background_cycles, "share": share(result.background_cycles)},
        "sleep": {"cycles": result.sleep_cycles, "share": share(result.sleep_cycles), "wakeups": result.wakeups},
        "lines": lines,
        "counters": counters,
    });
    // Only some boards have a serial port and can end a run themselves.
    let abilities = spec.target.board().abilities();
    if abilities.serial {
        all["serial"] = json!(result.said);
        all["exit"] = json!(result.exit);
    }
    if abilities.bus_errors {
        all["bus_errors"] = json!(result.bus_errors);
    }
    all
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

fn per_second(count: u64, spec: &RunSpec, result: &RunResult) -> String {
    let rate = count as f64 * spec.clock_hz as f64 / result.cycles as f64;
    if rate < 10_000.0 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.0}")
    }
}

pub fn rate(hertz: f64) -> String {
    Rate::from_hertz(hertz).map_or_else(|_| format!("{hertz} Hz"), |rate| rate.to_string())
}

/// Formats a time with a useful precision.
fn time(cycles: u64, clock_hz: u64) -> String {
    let seconds = cycles as f64 / clock_hz as f64;
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::EmulatedBoard;
    use crate::line::Line;
    use crate::run::{LineUse, Target, VectorUse};

    fn example() -> (RunSpec, RunResult) {
        let mut spec = EmulatedBoard::ATMEGA128.spec("app.elf", 4_000_000, 4_000_000);
        spec.floods.push(
            EmulatedBoard::ATMEGA128
                .stimulus("INT0=20kHz", 4_000_000)
                .unwrap(),
        );
        let vector = |number, name: &str| VectorUse {
            number,
            name: name.to_owned(),
            taken: 123_456_789,
            cycles: 1_000_000,
            longest_cycles: 4_000_000_000,
            instructions: None,
            tail_chained: None,
        };
        let result = RunResult {
            cycles: 4_000_000,
            vectors: vec![vector(1, "INT0"), vector(19, "USART0_UDRE")],
            background_cycles: 1_500_000,
            sleep_cycles: 500_000,
            wakeups: 12,
            lines: vec![LineUse {
                line: Line::INT0,
                offered: 20_000,
                missed: 5000,
                delivered: None,
            }],
            counters: [("progress".to_owned(), 181_818)].into(),
            marks: std::collections::BTreeMap::new(),
            events: Vec::new(),
            said: String::new(),
            exit: None,
            bus_errors: 0,
        };
        (spec, result)
    }

    #[test]
    fn the_tables_fit_into_100_columns_and_say_everything() {
        let (spec, result) = example();
        let text = text(&spec, &result);
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        for part in [
            "INT0=20kHz",
            "25.00 %",
            "37.50 %",
            "12.50 %",
            "USART0_UDRE",
            "woken from sleep 12",
            "181818",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn what_only_some_boards_count_is_shown_where_it_is_counted() {
        let (mut spec, mut result) = example();
        assert!(!text(&spec, &result).contains("instructions"));
        assert!(json(&spec, "atmega128", &result).get("serial").is_none());
        spec.target = Target::unfound(EmulatedBoard::SOC);
        result.vectors[0].instructions = Some(2 * 123_456_789);
        result.lines[0].delivered = Some(4000);
        result.said = "hello\n".to_owned();
        result.exit = Some(3);
        result.bus_errors = 7;
        let shown = text(&spec, &result);
        assert!(
            shown.lines().all(|line| line.chars().count() <= 100),
            "{shown}"
        );
        for part in [
            "2.0",
            "past the limiter",
            "4000",
            "hello",
            "refused 7 accesses",
            "ended the run with 3",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        let json = json(&spec, "soc", &result);
        assert_eq!(json["vectors"][0]["instructions"], 246_913_578);
        assert_eq!(json["lines"][0]["delivered"], 4000);
        assert_eq!(
            (&json["serial"], &json["exit"]),
            (&"hello\n".into(), &3.into())
        );
    }

    #[test]
    fn the_json_has_the_same_numbers() {
        let (spec, result) = example();
        let json = json(&spec, "atmega128", &result);
        assert_eq!(json["vectors"][0]["share"], 0.25);
        assert_eq!(json["sleep"]["wakeups"], 12);
        assert_eq!(json["lines"][0]["missed"], 5000);
        assert_eq!(json["counters"]["progress"]["count"], 181_818);
    }
}
