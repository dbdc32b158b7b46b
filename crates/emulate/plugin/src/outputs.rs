// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output pins of the guest: bits of device registers, such as those of LEDs.
use serde::Deserialize;

use crate::report::OutputReport;

/// An output pin whose edges are recorded from the start of the run. It is low at the start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPlan {
    /// The pin's name in the report.
    pub name: String,
    /// The address of the pin's register, a word whose reads return what was written.
    pub address: u32,
    /// The number of the pin's bit in the register.
    pub bit: u8,
}

/// Records the edges of output pins.
#[derive(Debug, Default)]
pub struct Outputs(Vec<Output>);

#[derive(Debug)]
struct Output {
    plan: OutputPlan,
    edges_ns: Vec<u64>,
}

impl Outputs {
    /// Makes a recorder for these pins.
    #[must_use]
    pub fn new(plans: &[OutputPlan]) -> Self {
        let output = |plan: &OutputPlan| Output {
            plan: plan.clone(),
            edges_ns: Vec::new(),
        };
        Self(plans.iter().map(output).collect())
    }

    /// Returns whether the register at this address contains a pin.
    #[must_use]
    pub fn has(&self, address: u32) -> bool {
        self.0.iter().any(|output| output.plan.address == address)
    }

    /// Records that the register at the address has had this content since `now`.
    pub fn note(&mut self, now: u64, address: u32, content: u32) {
        for output in &mut self.0 {
            // The first edge rises, and edges alternate.
            let was_high = output.edges_ns.len() % 2 == 1;
            let is_high = content >> output.plan.bit & 1 == 1;
            if output.plan.address == address && is_high != was_high {
                output.edges_ns.push(now);
            }
        }
    }

    /// Returns the recorded edges in the order of the plan.
    #[must_use]
    pub fn report(&self) -> Vec<OutputReport> {
        let report = |output: &Output| OutputReport {
            name: output.plan.name.clone(),
            edges_ns: output.edges_ns.clone(),
        };
        self.0.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_a_change_of_the_pins_own_bit() {
        let plan = |name: &str, address, bit| OutputPlan {
            name: name.to_owned(),
            address,
            bit,
        };
        let mut outputs =
            Outputs::new(&[plan("low", 8, 0), plan("high", 8, 31), plan("far", 12, 0)]);
        assert!(outputs.has(8) && !outputs.has(4));
        for (now, address, content) in [
            (1, 8, 0),
            (2, 8, 1),
            (3, 8, 1),
            (4, 8, 0x8000_0001),
            (5, 12, 2),
            (6, 8, 0x8000_0000),
        ] {
            outputs.note(now, address, content);
        }
        let edges: Vec<Vec<u64>> = outputs.report().into_iter().map(|of| of.edges_ns).collect();
        assert_eq!(edges, [vec![2, 6], vec![4], vec![]]);
    }
}
