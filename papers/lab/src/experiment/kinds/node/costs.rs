// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads the costs that formulas can name from two files:
//!
//! - `exception.entry`, `exception.exit`, `exception.tail_chain`: the cycles of the board's
//!   costs.toml that the emulator does not count
//! - `costs.interrupt.NAME`, `costs.task.NAME`, `costs.longest.NAME`: the instructions of the
//!   node's own costs.toml
use std::collections::BTreeMap;

use serde::Deserialize;
use weir_boards::Board;
use weir_emulate::firmware::Toolchain;

use super::BOARD;
use crate::experiment::error::ExperimentError;
use crate::experiment::place::Checkout;
use crate::experiment::series::Values;
use crate::experiment::series::formula::number;

/// The path of the node's costs, relative to the repository's root.
const FILE: &str = "papers/experiments/behnke2021/node/costs.toml";

/// The measured costs of the node, in instructions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeCosts {
    /// The mean number of instructions of each interrupt.
    interrupt: CostsOfCompilers,
    /// The mean number of instructions of each activity of a task.
    task: CostsOfCompilers,
    /// The largest observed number of instructions.
    longest: CostsOfCompilers,
}

/// Numbers of instructions, by name and compiler version.
type CostsOfCompilers = BTreeMap<String, BTreeMap<String, f64>>;

/// Reads all costs for the installed compiler, by name.
pub(super) fn constants(place: &Checkout) -> Result<Values, ExperimentError> {
    let version = Toolchain::CORTEX_M3.version()?.number();
    for_compiler(place, &version)
}

/// Reads all costs for a compiler version, by name.
pub(super) fn for_compiler(place: &Checkout, version: &str) -> Result<Values, ExperimentError> {
    let path = place.path(FILE);
    let wrong = |what| ExperimentError::Data {
        path: path.clone(),
        what,
    };
    let text = std::fs::read_to_string(&path).map_err(|cause| ExperimentError::Read {
        path: path.clone(),
        cause,
    })?;
    let mut constants = of_node(&text, version).map_err(wrong)?;
    constants.extend(of_exceptions());
    Ok(constants)
}

/// The costs of the node for a compiler version. If the file does not have this version, the
/// largest cost of all versions counts.
fn of_node(text: &str, version: &str) -> Result<Values, String> {
    let costs: NodeCosts = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut constants = Values::new();
    let tables = [
        ("interrupt", costs.interrupt),
        ("task", costs.task),
        ("longest", costs.longest),
    ];
    for (table, costs) in tables {
        for (name, columns) in costs {
            let largest = columns.values().copied().reduce(f64::max);
            let cost = columns.get(version).copied().or(largest);
            let cost = cost.ok_or_else(|| format!("`{table}.{name}` has no compiler"))?;
            constants.insert(format!("costs.{table}.{name}"), number(cost));
        }
    }
    Ok(constants)
}

#[expect(clippy::cast_precision_loss, reason = "a handful of cycles")]
fn of_exceptions() -> Values {
    let costs = Board::named(BOARD).and_then(Board::exception_costs);
    let named = costs.into_iter().flat_map(|costs| {
        [
            ("entry", costs.entry_cycles),
            ("exit", costs.exit_cycles),
            ("tail_chain", costs.tail_chain_cycles),
        ]
    });
    named
        .map(|(name, cycles)| (format!("exception.{name}"), number(cycles as f64)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_compilers_or_the_largest() {
        let text =
            "[interrupt]\npacket = { \"12.2.1\" = 141, \"14.2.1\" = 150 }\n[task]\n[longest]";
        let cost = |version| of_node(text, version).unwrap()["costs.interrupt.packet"].clone();
        assert_eq!(cost("12.2.1"), number(141.0));
        assert_eq!(cost("13.2.1"), number(150.0));
        let none = of_node("[interrupt]\npacket = {}\n[task]\n[longest]", "12.2.1").unwrap_err();
        assert!(none.contains("interrupt.packet"), "{none}");
        assert!(of_node("[interrupts]", "12.2.1").is_err());
    }

    #[test]
    fn the_board_says_what_exceptions_cost() {
        let costs = Board::named(BOARD).and_then(Board::exception_costs);
        let entry = costs.map(|costs| costs.entry_cycles).unwrap();
        assert_eq!(of_exceptions().len(), 3);
        assert_eq!(
            of_exceptions()["exception.entry"].as_number(),
            Ok(f64::from(u32::try_from(entry).unwrap()))
        );
    }
}
